/* The run over text. A pass's rows of a layer are kept until its hook_resid_post is there, then read; nothing of them
 * stays but counts, and the predictions until the model's own are known. */
#include <stdlib.h>
#include <string.h>

#include "cli/draw.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/room.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "kv.h"

enum { RESIDUAL, MLP, OUT, PARTS };

struct weir_kv_live {
    weir_kv *t;
    uint8_t *kind;          /* [V] why an id is left out: WEIR_MASK_* */
    int64_t room;           /* rows of these: */
    uint8_t *mask;          /* [room] of the search: rows behind which nothing comes are no triggers */
    int64_t *row;           /* [room] rows of the pass that are split: n of them */
    float *part;            /* [PARTS, room, C] */
    float *coefficient;     /* [room, F] */
    int32_t *final;         /* [room] */
    int32_t *top;           /* [n_layers, PARTS, room] */
    int64_t n, split;       /* of this pass; so far */
    const weir_point *last; /* the stream behind the last block */
    int64_t rows;           /* run */
};

void weir_kv_live_free(struct weir_kv_live *l)
{
    if (!l)
        return;
    void *const own[] = {l->kind, l->mask, l->row, l->part, l->coefficient, l->final, l->top, l};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

/* --- the hook */

static weir_want wants(void *self, const weir_point *p)
{
    const struct weir_kv_live *live = self;
    const weir_kv *t = live->t;
    for (int i = 0; i < t->n_layers; i++) {
        const weir_kv_layer *l = &t->layer[i];
        if (p == l->residual || p == l->attn_out || p == l->mlp || p == l->out)
            return WEIR_READ;
        for (int key = 0; key < WEIR_KV_KEYS; key++)
            if (p == l->point[key])
                return WEIR_READ;
    }
    return p == live->last ? WEIR_READ : WEIR_NONE;
}

static bool make_room(struct weir_kv_live *l, int64_t rows)
{
    const size_t n = (size_t)rows, c = (size_t)l->t->C;
    if (rows <= l->room)
        return true;
    if (!weir_room(&l->mask, n, 1) || !weir_room(&l->row, n, sizeof *l->row) ||
        !weir_room(&l->part, PARTS * n * c, sizeof *l->part) ||
        !weir_room(&l->coefficient, n * (size_t)l->t->F, sizeof *l->coefficient) ||
        !weir_room(&l->final, n, sizeof *l->final) ||
        !weir_room(&l->top, PARTS * n * (size_t)l->t->n_layers, sizeof *l->top))
        return false;
    l->room = rows;
    return true;
}

/* Is the position one of those that --every leaves? The same ones however the text is cut. */
static bool drawn(const weir_kv *t, int64_t doc, int64_t pos)
{
    uint64_t state = (uint64_t)t->a->seed ^ (uint64_t)doc << 32 ^ (uint64_t)pos;
    return t->a->every == 1 || weir_draw(&state) % (uint64_t)t->a->every == 0;
}

static weir_status on_begin(void *self, const weir_rows *rows, weir_err *err)
{
    struct weir_kv_live *l = self;
    if (!make_room(l, rows->n))
        return weir_fail(err, WEIR_E_NOMEM, "out of memory for the rows of a pass");
    l->n = 0;
    for (int64_t i = 0; i < rows->n; i++) {
        const bool last = rows->doc_pos[i] == rows->doc_len[i] - 1;
        l->mask[i] = l->kind[rows->id[i]] ? l->kind[rows->id[i]] : last ? WEIR_MASK_ID : 0;
        if (rows->keep[i] && rows->doc_pos[i] >= 0 && !l->kind[rows->id[i]] &&
            drawn(l->t, rows->tag[i], rows->doc_pos[i]))
            l->row[l->n++] = i;
    }
    const weir_neurons_rows_of of = {.n = rows->n,
                                     .id = rows->id,
                                     .doc = rows->tag,
                                     .pos = rows->doc_pos,
                                     .ctx_pos = rows->pos,
                                     .keep = rows->keep,
                                     .mask = l->mask};
    return weir_neurons_rows(l->t->search, &of, false, err);
}

static void copy_rows(const struct weir_kv_live *l, const weir_value *v, float *to)
{
    for (int64_t i = 0; i < l->n; i++)
        memcpy(to + i * v->width, v->data + l->row[i] * v->width, (size_t)v->width * sizeof *to);
}

static void add_rows(const struct weir_kv_live *l, const weir_value *v, float *to)
{
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t c = 0; c < v->width; c++)
            to[i * v->width + c] += v->data[l->row[i] * v->width + c];
}

static int32_t *top_of(const struct weir_kv_live *l, int layer, int part)
{
    return l->top + (layer * PARTS + part) * l->room;
}

static weir_status predict(const struct weir_kv_live *l, weir_lens_norm norm, const float *x, int32_t *id,
                           weir_err *err)
{
    return weir_memory_predict(l->t->lens, norm, l->t->vocab, x, l->n, id, err);
}

/* All parts of a layer are there. */
static weir_status read_layer(struct weir_kv_live *l, int layer, weir_err *err)
{
    const weir_kv *t = l->t;
    for (int part = 0; part < PARTS; part++)
        WEIR_TRY(predict(l, t->norm, l->part + part * l->room * t->C, top_of(l, layer, part), err));
    const weir_keyvalue_rows rows = {.n = l->n,
                                     .residual = top_of(l, layer, RESIDUAL),
                                     .mlp = top_of(l, layer, MLP),
                                     .layer = top_of(l, layer, OUT),
                                     .coefficient = l->coefficient};
    return weir_keyvalue_add(t->split, layer, &rows, err);
}

/* What the stream keeps at this point, of the layer that is read now. */
static void take_parts(struct weir_kv_live *l, const weir_kv_layer *of, const weir_value *v)
{
    float *part = l->part;
    const int64_t size = l->room * l->t->C;
    if (v->point == of->residual)
        copy_rows(l, v, part + RESIDUAL * size);
    else if (v->point == of->attn_out)
        add_rows(l, v, part + RESIDUAL * size);
    else if (v->point == of->mlp)
        copy_rows(l, v, part + MLP * size);
    else if (v->point == of->out)
        copy_rows(l, v, part + OUT * size);
    else if (v->point == of->point[WEIR_KV_COEFFICIENT])
        copy_rows(l, v, l->coefficient);
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    struct weir_kv_live *l = self;
    const weir_kv *t = l->t;
    const weir_neurons_values values = {.x = v->data, .stride = v->width, .whole = true};
    for (int i = 0; i < t->n_layers; i++) {
        if (t->layer[i].layer != v->point->layer)
            continue;
        take_parts(l, &t->layer[i], v);
        for (int key = 0; key < WEIR_KV_KEYS; key++)
            if (t->key[key] && v->point == t->layer[i].point[key])
                WEIR_TRY(weir_neurons_add(t->search, t->table[key] + i, &values, err));
        if (v->point == t->layer[i].out)
            WEIR_TRY(read_layer(l, i, err));
    }
    if (v->point != l->last)
        return WEIR_OK;
    copy_rows(l, v, l->part); /* nothing else needs the room any more */
    return predict(l, WEIR_LENS_RECOMPUTE, l->part, l->final, err);
}

static weir_status on_end(void *self, const weir_rows *rows, weir_err *err)
{
    struct weir_kv_live *l = self;
    (void)rows;
    for (int i = 0; i < l->t->n_layers; i++)
        WEIR_TRY(
            weir_keyvalue_add_final(l->t->split, i, l->n, top_of(l, i, RESIDUAL), top_of(l, i, OUT), l->final, err));
    l->split += l->n;
    return WEIR_OK;
}

static const weir_hook_class live_class = {.struct_size = sizeof(weir_hook_class),
                                           .abi = WEIR_HOOK_ABI,
                                           .name = "kv-read",
                                           .wants = wants,
                                           .on_begin = on_begin,
                                           .on_value = on_value,
                                           .on_end = on_end};

static int read_masks(weir_kv *t, uint8_t **kind)
{
    weir_err err = {0};
    weir_masks masks;
    weir_status st = weir_masks_parse(&masks, t->a->mask, &err);
    if (st == WEIR_OK)
        st = weir_masks_kinds(&masks, t->s.tok, t->s.info->V, kind, &err);
    weir_masks_free(&masks);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_bad_argument(t->cli, "--mask", &err);
}

/* Last of all, so that it sees what interventions leave. */
int weir_kv_attach(weir_kv *t)
{
    weir_err err = {0};
    char name[64];
    t->live = calloc(1, sizeof *t->live);
    if (!t->live)
        return weir_cli_error(t->cli, "out of memory");
    t->live->t = t;
    snprintf(name, sizeof name, "blocks.%lld.hook_resid_post", (long long)t->s.info->L - 1);
    t->live->last = weir_model_point(t->s.model, name);
    const int code = read_masks(t, &t->live->kind);
    if (code == WEIR_EXIT_OK && weir_run_hook_object(t->s.run, &live_class, t->live, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    return code;
}

/* --- running */

static weir_status run_batches(weir_kv *t, weir_err *err)
{
    weir_progress bar;
    const weir_batch *b;
    weir_status st = WEIR_OK;
    weir_progress_start(&bar, t->cli);
    while (!weir_signals_seen() && (st = weir_feed_next(t->s.feed, &b, err)) == WEIR_OK && b) {
        if (b->restart)
            weir_run_slot_reset(t->s.run, 0);
        if (b->n_seq)
            st = weir_run_forward(t->s.run, b->seq, b->n_seq, 0, err);
        if (st != WEIR_OK || weir_run_enough(t->s.run))
            break;
        weir_progress_update(&bar, weir_feed_progress(t->s.feed), t->live->rows += b->rows);
    }
    weir_progress_stop(&bar, t->cli);
    return weir_signals_seen() ? weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen()) : st;
}

int weir_kv_run(weir_kv *t)
{
    weir_err err = {0};
    if (run_batches(t, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    const weir_feed_counts counts = weir_feed_counts_of(t->s.feed);
    if (counts.docs == 0)
        return weir_cli_error(t->cli, "the input holds no document");
    if (weir_neurons_counts_of(t->search).masked[0] == 0 && t->live->split == 0)
        return weir_cli_error(t->cli, "no position is left: --positions or --mask leave out all of them");
    if (weir_run_finish(t->s.run, stderr, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    const weir_report r = {.model = t->s.model,
                           .run = t->s.run,
                           .docs = t->s.in.docs,
                           .counts = counts,
                           .rows = t->live->split,
                           .rows_run = t->live->rows,
                           .seconds = weir_now() - t->start,
                           .attach = &t->s.attach};
    weir_report_say(&r, t->cli);
    return WEIR_EXIT_OK;
}

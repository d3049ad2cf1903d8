/* From a dump of `weir trace`: the same values give the same bytes as a run. */
#include <stdlib.h>
#include <string.h>

#include "cli/from.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "decompose.h"

enum {
    MOST_BYTES = 64 << 20, /* of values that are read at a time */
    MOST_POSITIONS = 256
};

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

/* --- which hooks */

/* Where the dump has a point; -1: it lacks it, or has it in part. */
static int find(const weir_decompose *d, const weir_point *p)
{
    const int i = weir_dump_find(d->dump, p->name);
    const weir_dump_hook *h = i < 0 ? NULL : weir_dump_hook_at(d->dump, i);
    return h && !h->units && h->width == p->width ? i : -1;
}

/* What must be recorded, as trace takes it. */
static const char *hooks_text(const weir_decompose *d, char *buf, size_t n)
{
    const bool post = weir_model_point(d->session.model, "blocks.0.ln1_post.hook_scale") != NULL;
    const bool heads = d->heads.mode || *d->lacks[0];
    snprintf(buf, n, "hook_*embed,*hook_attn_out,*hook_mlp_out,blocks.%lld.hook_resid_post%s%s%s",
             (long long)d->session.info->L - 1, heads ? ",*hook_z" : "",
             d->neurons.mode || *d->lacks[1] ? ",*mlp.hook_post" : "", post && heads ? ",*_post.hook_scale" : "");
    return buf;
}

int weir_decompose_open_dump(weir_decompose *d)
{
    char hooks[300];
    for (int i = 0; i < d->values.n_slots; i++) {
        weir_sites_slot *s = &d->values.slot[i];
        s->dump = find(d, s->point);
        if (s->dump < 0)
            return weir_cli_error(d->cli, "%s lacks %s of all units: weir trace --hooks '%s' --dump FILE.h5 records it",
                                  d->dump_path, s->point->name, hooks_text(d, hooks, sizeof hooks));
    }
    for (int mlp = 0; mlp < 2; mlp++)
        if (*d->lacks[mlp])
            weir_cli_note(d->cli, "no %s: %s lacks %s", mlp ? "neurons" : "heads", d->dump_path, d->lacks[mlp]);
    weir_from_note_incomplete(d->cli, d->dump, d->dump_path);
    return WEIR_EXIT_OK;
}

/* --- documents to positions */

typedef struct reading {
    weir_decompose *d;
    int64_t first_doc;
    int64_t most; /* positions that are read at a time */
    int64_t *row; /* [most] of the positions that wait */
    int64_t *pos; /* [room] of one document's rows */
    int32_t *id;
    int64_t room;
    uint8_t *keep; /* [keep_room] */
    int64_t keep_room;
} reading;

static weir_status make_room(reading *r, int64_t n, weir_err *err)
{
    if (n <= r->room)
        return WEIR_OK;
    int64_t *pos = realloc(r->pos, (size_t)n * sizeof *pos);
    r->pos = pos ? pos : r->pos;
    int32_t *id = realloc(r->id, (size_t)n * sizeof *id);
    r->id = id ? id : r->id;
    r->room = pos && id ? n : 0;
    return r->room ? WEIR_OK : no_memory(err);
}

static weir_status make_keep(reading *r, int64_t len, weir_err *err)
{
    if (len <= r->keep_room)
        return WEIR_OK;
    uint8_t *keep = realloc(r->keep, (size_t)len);
    if (!keep)
        return no_memory(err);
    r->keep = keep;
    r->keep_room = len;
    return WEIR_OK;
}

/* Rows that follow one another are read together. */
static weir_status read_slot(const reading *r, const weir_sites_slot *s, weir_err *err)
{
    const int64_t n = r->d->values.n;
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && r->row[end] == r->row[end - 1] + 1;)
            end++;
        WEIR_TRY(weir_dump_read(r->d->dump, s->dump, r->row[i], end - i, s->data + i * s->point->width, err));
    }
    return WEIR_OK;
}

/* The positions that wait. */
static weir_status take(const reading *r, weir_err *err)
{
    weir_sites *v = &r->d->values;
    for (int i = 0; i < v->n_slots && v->n; i++)
        WEIR_TRY(read_slot(r, &v->slot[i], err));
    return weir_decompose_take(r->d, err);
}

static weir_status add(reading *r, int64_t doc, const weir_dump_doc_rows *rows, int64_t i, weir_err *err)
{
    weir_sites *v = &r->d->values;
    const bool follows = i + 1 < rows->n && r->pos[i + 1] == r->pos[i] + 1;
    if (v->n == r->most)
        WEIR_TRY(take(r, err));
    r->row[v->n] = rows->row + i;
    v->doc[v->n] = doc + r->first_doc;
    v->pos[v->n] = r->pos[i];
    v->id[v->n] = r->id[i];
    v->next[v->n++] = follows ? r->id[i + 1] : -1;
    return WEIR_OK;
}

/* A damaged file may hold anything. */
static weir_status check_doc(const reading *r, int64_t doc, int64_t n, weir_err *err)
{
    const int64_t vocab = r->d->session.info->V;
    WEIR_TRY(weir_from_positions(r->pos, n, doc, err));
    for (int64_t i = 0; i < n; i++) {
        if (r->id[i] < 0 || r->id[i] >= vocab)
            return weir_fail(err, WEIR_E_FORMAT, "document %lld: token %d is none of the model's %lld", (long long)doc,
                             r->id[i], (long long)vocab);
    }
    return WEIR_OK;
}

static weir_status read_doc(reading *r, int64_t doc, weir_err *err)
{
    weir_dump_doc_rows rows;
    WEIR_TRY(weir_dump_read_doc(r->d->dump, doc, &rows, err));
    if (rows.n == 0)
        return WEIR_OK;
    WEIR_TRY(make_room(r, rows.n, err));
    const weir_token_columns columns = {.id = r->id, .pos = r->pos};
    WEIR_TRY(weir_dump_read_tokens(r->d->dump, rows.row, rows.n, &columns, err));
    WEIR_TRY(check_doc(r, doc, rows.n, err));
    const int64_t len = r->pos[rows.n - 1] + 1;
    WEIR_TRY(make_keep(r, len, err));
    WEIR_TRY(weir_positions_keep(&r->d->asked, NULL, NULL, NULL, 0, len, r->keep, err));
    for (int64_t i = 0; i < rows.n; i++)
        if (r->keep[r->pos[i]])
            WEIR_TRY(add(r, doc, &rows, i, err));
    return WEIR_OK;
}

static weir_status read_docs(reading *r, weir_err *err)
{
    const int64_t n = weir_dump_n_docs(r->d->dump), fits = MOST_BYTES / r->d->values.row_bytes;
    weir_progress bar;
    r->most = fits < 1 ? 1 : fits > MOST_POSITIONS ? MOST_POSITIONS : fits;
    r->row = calloc((size_t)r->most, sizeof *r->row);
    if (!r->row)
        return no_memory(err);
    WEIR_TRY(weir_sites_room(&r->d->values, r->most, err));
    weir_progress_start(&bar, r->d->cli);
    weir_status st = WEIR_OK;
    for (int64_t doc = 0; doc < n && st == WEIR_OK && !ferror(r->d->out); doc++) { /* else computed in vain */
        st = weir_signals_seen() ? WEIR_STOP : read_doc(r, doc, err);
        weir_progress_update(&bar, (double)(doc + 1) / (double)n, -1);
    }
    if (st == WEIR_OK)
        st = take(r, err);
    weir_progress_stop(&bar, r->d->cli);
    return st;
}

int weir_decompose_dump(weir_decompose *d)
{
    weir_err err = {0};
    reading r = {.d = d};
    weir_from_part part = {0};
    weir_signals_catch();
    weir_status st = weir_from_part_of(d->dump, &part, &err);
    r.first_doc = part.first_doc;
    if (st == WEIR_OK)
        st = read_docs(&r, &err);
    void *const own[] = {r.row, r.pos, r.id, r.keep};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    if (st == WEIR_STOP)
        return weir_cli_error(d->cli, "stopped by signal %d", weir_signals_seen());
    if (st != WEIR_OK)
        return weir_cli_fail_at(d->cli, d->dump_path, &err);
    return WEIR_EXIT_OK;
}

/* Attention from a dump of `weir trace` that has hook_pattern: the same maps as a run gives. */
#include <stdlib.h>
#include <string.h>

#include "cli/from.h"
#include "cli/progress.h"
#include "cli/room.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "job.h"

typedef struct dump {
    weir_dump_reader *r;
    const char *path;
    int *hook;     /* [L] of each layer; -1: the dump lacks it */
    int64_t *keys; /* [L] weights of one head in a row of it */
    weir_positions positions;
    int64_t first_doc; /* number of document 0 in the whole text */
    int32_t bos;       /* the token that begins windows; -1: none, or not known */
    /* the document at hand */
    int64_t row, n;         /* its rows */
    int32_t *id;            /* [n] */
    int64_t *pos, *ctx_pos; /* [n] */
    int64_t cap;
    uint8_t *keep; /* [keep_cap] by position in the document */
    int64_t keep_cap;
    float *block; /* [block_rows, H, keys] of one layer */
    int64_t block_size;
} dump;

enum { BLOCK_FLOATS = 4 << 20 };

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for the rows of a document");
}

/* --- a document */

static weir_status read_tokens(dump *d, weir_err *err)
{
    if (d->n > d->cap) {
        if (!weir_room(&d->id, (size_t)d->n, sizeof *d->id) || !weir_room(&d->pos, (size_t)d->n, sizeof *d->pos) ||
            !weir_room(&d->ctx_pos, (size_t)d->n, sizeof *d->ctx_pos))
            return no_memory(err);
        d->cap = d->n;
    }
    const weir_token_columns c = {.id = d->id, .pos = d->pos, .ctx_pos = d->ctx_pos};
    return d->n ? weir_dump_read_tokens(d->r, d->row, d->n, &c, err) : WEIR_OK;
}

static weir_status open_doc(dump *d, int64_t doc, weir_err *err)
{
    weir_dump_doc_rows rows;
    WEIR_TRY(weir_dump_read_doc(d->r, doc, &rows, err));
    d->row = rows.row;
    d->n = rows.n;
    WEIR_TRY(read_tokens(d, err));
    WEIR_TRY(weir_from_positions(d->pos, d->n, doc, err));
    for (int64_t i = 0; i < d->n; i++)
        if (d->ctx_pos[i] < 0)
            return weir_fail(err, WEIR_E_FORMAT, "is damaged: document %lld has a ctx_pos below 0", (long long)doc);
    int64_t len = d->n ? d->pos[d->n - 1] + 1 : 0;
    if (len > d->keep_cap) {
        if (!weir_room(&d->keep, (size_t)len, 1))
            return no_memory(err);
        d->keep_cap = len;
    }
    return weir_positions_keep(&d->positions, NULL, d->path, NULL, 0, len, d->keep, err);
}

/* --- a window: rows [first, end) of the document, which have one distance between pos and ctx_pos */

/* All its tokens up to the last row: those that were recorded, and places for the others. */
static weir_status add_tokens(weir_attention_job *j, const dump *d, int64_t doc, int64_t first, int64_t end,
                              weir_err *err)
{
    const int64_t begin = d->pos[first] - d->ctx_pos[first]; /* in the document */
    int64_t row = first, older = 0;
    for (int64_t c = 0; c <= d->ctx_pos[end - 1]; c++) {
        bool repeated = c == 0 && begin > 0 && d->bos >= 0, here = row < end && d->ctx_pos[row] == c;
        weir_attention_token t = {.doc = d->first_doc + doc, .pos = repeated ? -1 : begin + c, .ctx_pos = c, .id = -1};
        while (older < d->n && d->pos[older] < begin + c)
            older++;
        if (repeated)
            t.id = d->bos;
        else if (older < d->n && d->pos[older] == begin + c)
            t.id = d->id[older];
        t.query = here && d->keep[d->pos[row]];
        row += here;
        WEIR_TRY(weir_attention_gather_add(&j->gather, &t, err));
    }
    return WEIR_OK;
}

/* The weights of one layer's heads. base: of the window's first token in gather. */
static weir_status read_layer(const weir_attention_job *j, dump *d, int layer, int64_t first, int64_t end, int64_t base,
                              weir_err *err)
{
    const weir_attention_gather *g = &j->gather;
    const int64_t keys = d->keys[layer], width = keys * j->session.info->H, step = d->block_size / width;
    int head, n = weir_attention_heads_of(g->about, layer, &head);
    for (int64_t row = first; n && row < end; row += step) {
        int64_t rows = end - row < step ? end - row : step;
        WEIR_TRY(weir_dump_read(d->r, d->hook[layer], d->row + row, rows, d->block, err));
        for (int64_t i = 0; i < rows; i++) {
            int64_t at = g->at[base + d->ctx_pos[row + i]];
            for (int h = head; at >= 0 && h < head + n; h++)
                memcpy(g->pattern[h] + at, d->block + i * width + g->about->head[h].head * keys,
                       sizeof(float) * (size_t)(d->ctx_pos[row + i] + 1));
        }
    }
    return WEIR_OK;
}

static weir_status add_window(weir_attention_job *j, dump *d, int64_t doc, int64_t first, int64_t end, weir_err *err)
{
    const int64_t base = j->gather.n;
    for (int64_t i = first; i < end; i++)
        for (int l = 0; l < j->session.info->L; l++)
            if (d->ctx_pos[i] >= d->keys[l] && d->hook[l] >= 0)
                return weir_fail(err, WEIR_E_FORMAT,
                                 "position %lld of a window has no weights of its own: they have %lld keys",
                                 (long long)d->ctx_pos[i], (long long)d->keys[l]);
    WEIR_TRY(add_tokens(j, d, doc, first, end, err));
    for (int l = 0; l < j->session.info->L; l++)
        if (d->hook[l] >= 0)
            WEIR_TRY(read_layer(j, d, l, first, end, base, err));
    return weir_attention_gather_flush(&j->gather, err);
}

static weir_status add_doc(weir_attention_job *j, dump *d, int64_t doc, weir_err *err)
{
    WEIR_TRY(open_doc(d, doc, err));
    for (int64_t first = 0, end; first < d->n; first = end) {
        int64_t kept = first; /* behind the last row that is asked for: a run goes no further either */
        for (end = first; end < d->n && d->pos[end] - d->ctx_pos[end] == d->pos[first] - d->ctx_pos[first]; end++)
            kept = d->keep[d->pos[end]] ? end + 1 : kept;
        if (kept > first)
            WEIR_TRY(add_window(j, d, doc, first, kept, err));
    }
    return WEIR_OK;
}

static int feed(weir_attention_job *j)
{
    dump *d = j->from;
    weir_err err = {0};
    weir_status st = WEIR_OK;
    const int64_t docs = weir_dump_n_docs(d->r);
    for (int64_t i = 0; i < docs && st == WEIR_OK && !weir_signals_seen(); i++) {
        st = add_doc(j, d, i, &err);
        if (j->cli->progress)
            weir_progress_update(j->cli->progress, (double)i / (double)docs, -1);
    }
    if (weir_signals_seen())
        return weir_cli_error(j->cli, "stopped by signal %d", weir_signals_seen());
    if (st != WEIR_OK) /* E_ARG: about what is asked for, not about the file */
        return err.code == WEIR_E_ARG ? weir_cli_fail(j->cli, &err) : weir_cli_fail_at(j->cli, d->path, &err);
    if (j->gather.maps == 0)
        return weir_cli_error(j->cli, "%s: no document has a row for --positions %s", d->path,
                              j->a->session.rows.positions);
    return WEIR_EXIT_OK;
}

/* --- opening */

static bool there(const weir_attention_job *j, int layer)
{
    return ((const dump *)j->from)->hook[layer] >= 0;
}

/* Which layers the dump has, whole. */
static int find_hooks(weir_attention_job *j, dump *d)
{
    const int64_t L = j->session.info->L, H = j->session.info->H;
    d->hook = malloc(sizeof *d->hook * (size_t)L);
    d->keys = calloc((size_t)L, sizeof *d->keys);
    if (!d->hook || !d->keys)
        return weir_cli_error(j->cli, "out of memory");
    d->block_size = BLOCK_FLOATS;
    for (int l = 0; l < L; l++) {
        const weir_point *p = weir_attention_point(j->session.model, l);
        d->hook[l] = p ? weir_dump_find(d->r, p->name) : -1;
        if (d->hook[l] < 0)
            continue;
        const weir_dump_hook *h = weir_dump_hook_at(d->r, d->hook[l]);
        if (h->units || h->heads != H || h->width != H * h->size)
            return weir_cli_error(j->cli, "%s has only some of the weights of %s: record it whole", d->path, h->name);
        d->keys[l] = h->size;
        d->block_size = h->width > d->block_size ? h->width : d->block_size;
    }
    d->block = malloc(sizeof *d->block * (size_t)d->block_size);
    return d->block ? WEIR_EXIT_OK : weir_cli_error(j->cli, "out of memory");
}

static int check_layers(const weir_attention_job *j, const dump *d)
{
    int n = j->about.n_heads;
    for (int i = 0; i < n; i++)
        if (d->hook[j->head[i].layer] < 0)
            return weir_cli_error(
                j->cli,
                "%s lacks blocks.%d.attn.hook_pattern: weir trace --hooks 'blocks.*.attn.hook_pattern' "
                "records all of them",
                d->path, j->head[i].layer);
    return n ? WEIR_EXIT_OK
             : weir_cli_error(
                   j->cli, "%s has no attention pattern: weir trace --hooks 'blocks.*.attn.hook_pattern' records them",
                   d->path);
}

static int find_part(const weir_attention_job *j, dump *d)
{
    weir_err err = {0};
    weir_from_part part;
    if (weir_from_part_of(d->r, &part, &err) != WEIR_OK)
        return weir_cli_fail_at(j->cli, d->path, &err);
    d->first_doc = part.first_doc;
    return WEIR_EXIT_OK;
}

static int describe(weir_attention_job *j, dump *d)
{
    int code = weir_provenance_of_dump(&j->about.run, &j->room, &j->session, d->r, d->path);
    if (code != WEIR_EXIT_OK)
        return code;
    d->bos = j->about.run.bos && j->session.tok ? weir_tokenizer_bos(j->session.tok) : -1;
    weir_from_note_incomplete(j->cli, d->r, d->path);
    return WEIR_EXIT_OK;
}

int weir_attention_from_dump(weir_attention_job *j)
{
    dump *d = calloc(1, sizeof *d);
    if (!d)
        return weir_cli_error(j->cli, "out of memory");
    d->path = j->dump;
    j->from = d;
    j->feed = feed;
    weir_signals_catch();
    int code = weir_from_open(&d->r, &d->positions, &j->session, d->path);
    if (code == WEIR_EXIT_OK)
        code = weir_from_model(&j->session, d->r, d->path, j->a->force, j->room.fingerprint);
    if (code == WEIR_EXIT_OK)
        code = find_part(j, d);
    if (code == WEIR_EXIT_OK)
        code = find_hooks(j, d);
    if (code == WEIR_EXIT_OK)
        code = weir_attention_choose(j, there);
    if (code == WEIR_EXIT_OK)
        code = check_layers(j, d);
    if (code == WEIR_EXIT_OK)
        code = weir_from_tokenizer(&j->session);
    if (code == WEIR_EXIT_OK)
        code = describe(j, d);
    return code;
}

void weir_attention_close_dump(weir_attention_job *j)
{
    dump *d = j->dump ? j->from : NULL;
    if (!d)
        return;
    weir_dump_close(d->r);
    weir_positions_free(&d->positions);
    void *const own[] = {d->hook, d->keys, d->id, d->pos, d->ctx_pos, d->keep, d->block};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

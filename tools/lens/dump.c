/* logit-lens from a dump of `weir trace`: the same rows give the same numbers as a run. The dump has the stream, the
 * model the final norm and the unembedding. */
#include <stdlib.h>
#include <string.h>

#include "cli/from.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "job.h"

/* Rows of the dump, one after the other, that go into a batch. */
typedef struct stretch {
    int64_t row, n;
} stretch;

typedef struct dump {
    weir_dump_reader *r;
    const char *path;
    int *hook; /* [n_points] of the stack */
    weir_positions positions;
    int64_t first_doc; /* number of document 0 in the whole text */
    /* the document at hand */
    int64_t row, n; /* its rows */
    int32_t *id;    /* [n] */
    int64_t *pos;   /* [n] */
    int64_t cap;
    uint8_t *keep; /* [keep_cap] by position in the document */
    int64_t keep_cap;
    /* the batch */
    stretch *part; /* [n_parts] */
    int64_t n_parts, parts_cap;
} dump;

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for the rows of a document");
}

/* --- batches */

/* Rows of the document that --positions asks for. */
static weir_status choose_rows(dump *d, weir_err *err)
{
    int64_t len = d->n ? d->pos[d->n - 1] + 1 : 0;
    if (len > d->keep_cap) {
        uint8_t *keep = realloc(d->keep, (size_t)len);
        if (!keep)
            return no_memory(err);
        d->keep = keep;
        d->keep_cap = len;
    }
    return weir_positions_keep(&d->positions, NULL, d->path, NULL, 0, len, d->keep, err);
}

static bool grow(dump *d, int64_t n)
{
    if (n <= d->cap)
        return true;
    int32_t *id = realloc(d->id, sizeof *id * (size_t)n);
    d->id = id ? id : d->id;
    int64_t *pos = realloc(d->pos, sizeof *pos * (size_t)n);
    d->pos = pos ? pos : d->pos;
    d->cap = id && pos ? n : d->cap;
    return id && pos;
}

/* Columns of a document. */
static weir_status open_doc(dump *d, int64_t doc, weir_err *err)
{
    weir_dump_doc_rows rows;
    WEIR_TRY(weir_dump_read_doc(d->r, doc, &rows, err));
    d->row = rows.row;
    d->n = rows.n;
    if (!grow(d, rows.n))
        return no_memory(err);
    const weir_token_columns c = {.id = d->id, .pos = d->pos};
    if (rows.n)
        WEIR_TRY(weir_dump_read_tokens(d->r, rows.row, rows.n, &c, err));
    WEIR_TRY(weir_from_positions(d->pos, d->n, doc, err));
    return choose_rows(d, err);
}

/* Reads the rows of the batch, hook by hook, and measures them. */
static weir_status flush(weir_lens_job *j, dump *d, bool ends, weir_err *err)
{
    weir_lens_cells *c = &j->cells;
    const int64_t C = j->session.info->C;
    for (int i = 0; i < j->stack.n_points; i++) {
        float *to = c->row[i];
        for (int64_t p = 0; p < d->n_parts; p++) {
            WEIR_TRY(weir_dump_read(d->r, d->hook[i], d->part[p].row, d->part[p].n, to, err));
            to += d->part[p].n * C;
        }
    }
    d->n_parts = 0;
    return weir_lens_cells_put(c, ends, err);
}

static weir_status add_row(dump *d, int64_t row, weir_err *err)
{
    stretch *last = d->n_parts ? &d->part[d->n_parts - 1] : NULL;
    if (last && last->row + last->n == row) {
        last->n++;
        return WEIR_OK;
    }
    if (d->n_parts == d->parts_cap) {
        stretch *part = realloc(d->part, sizeof *part * (size_t)(2 * d->parts_cap + 16));
        if (!part)
            return no_memory(err);
        d->part = part;
        d->parts_cap = 2 * d->parts_cap + 16;
    }
    d->part[d->n_parts++] = (stretch){row, 1};
    return WEIR_OK;
}

/* The token that follows in the document, if the dump has it. */
static int32_t next_of(const dump *d, int64_t i)
{
    return i + 1 < d->n && d->pos[i + 1] == d->pos[i] + 1 ? d->id[i + 1] : -1;
}

static weir_status add_doc(weir_lens_job *j, dump *d, int64_t doc, weir_err *err)
{
    weir_lens_cells *c = &j->cells;
    WEIR_TRY(open_doc(d, doc, err));
    for (int64_t i = 0; i < d->n; i++) {
        if (!d->keep[d->pos[i]])
            continue;
        if (d->id[i] < 0 || d->id[i] >= j->session.info->V)
            return weir_fail(err, WEIR_E_FORMAT, "token %d is not in the model's vocabulary of %lld", d->id[i],
                             (long long)j->session.info->V);
        if (c->n == c->room)
            WEIR_TRY(flush(j, d, c->doc[c->n - 1] != d->first_doc + doc, err));
        WEIR_TRY(add_row(d, d->row + i, err));
        c->doc[c->n] = d->first_doc + doc;
        c->pos[c->n] = d->pos[i];
        c->id[c->n] = d->id[i];
        c->next[c->n++] = next_of(d, i);
    }
    return WEIR_OK;
}

static int feed(weir_lens_job *j)
{
    dump *d = j->from;
    weir_err err = {0};
    weir_status st = WEIR_OK;
    const int64_t docs = weir_dump_n_docs(d->r);
    for (int64_t i = 0; i < docs && st == WEIR_OK && !weir_signals_seen() && !weir_lens_cells_vain(&j->cells); i++) {
        st = add_doc(j, d, i, &err);
        if (j->cli->progress)
            weir_progress_update(j->cli->progress, (double)i / (double)docs, -1);
    }
    if (st == WEIR_OK)
        st = flush(j, d, true, &err);
    if (weir_signals_seen())
        return weir_cli_error(j->cli, "stopped by signal %d", weir_signals_seen());
    if (st != WEIR_OK)
        return weir_cli_fail_at(j->cli, d->path, &err);
    if (j->cells.cells == 0)
        return weir_cli_error(j->cli, "%s: no document has a row for --positions %s", d->path,
                              j->a->session.rows.positions);
    return WEIR_EXIT_OK;
}

/* --- what the dump holds */

/* Whole rows of this point. */
static bool there(void *ctx, const weir_point *p)
{
    const dump *d = ctx;
    int i = weir_dump_find(d->r, p->name);
    return i >= 0 && !weir_dump_hook_at(d->r, i)->units && weir_dump_hook_at(d->r, i)->width == p->width;
}

static int lacks(const weir_lens_job *j, const dump *d, const weir_point *p, const char *why)
{
    int i = weir_dump_find(d->r, p->name);
    if (i >= 0)
        return weir_cli_error(j->cli, "%s has only %lld of the %lld units of %s: record it whole", d->path,
                              (long long)weir_dump_hook_at(d->r, i)->width, (long long)p->width, p->name);
    return weir_cli_error(j->cli, "%s lacks %s%s: weir trace --hooks '%s' records %s", d->path, p->name, why,
                          p->site == WEIR_SITE_RESID_POST ? "blocks.0.hook_resid_pre,blocks.*.hook_resid_post"
                                                          : p->name,
                          p->site == WEIR_SITE_RESID_POST ? "the stream" : "it");
}

/* The points of the stack; all of them have to be there. */
static int find_hooks(weir_lens_job *j, dump *d)
{
    const weir_point *last = weir_lens_last_point(j->session.model);
    if (!there(d, last))
        return lacks(j, d, last, ", the stream behind the last block, which every row is compared with");
    int code = weir_lens_ask_lines(j, there, d);
    if (code != WEIR_EXIT_OK)
        return code;
    d->hook = calloc((size_t)j->stack.n_points, sizeof *d->hook);
    if (!d->hook)
        return weir_cli_error(j->cli, "out of memory");
    for (int i = 0; i < j->stack.n_points; i++) {
        if (!there(d, j->stack.point[i]))
            return lacks(j, d, j->stack.point[i], "");
        d->hook[i] = weir_dump_find(d->r, j->stack.point[i]->name);
    }
    if (j->stack.n == 1 && !j->layers)
        return weir_cli_error(j->cli, "%s has no layer of --site %s: weir trace --layer all --site %s records them",
                              d->path, j->sites ? j->sites : "resid_post", j->sites ? j->sites : "resid_post");
    return WEIR_EXIT_OK;
}

static int find_part(weir_lens_job *j, dump *d)
{
    weir_err err = {0};
    weir_from_part part;
    if (weir_from_part_of(d->r, &part, &err) != WEIR_OK)
        return weir_cli_fail_at(j->cli, d->path, &err);
    d->first_doc = part.first_doc;
    j->shard = part.shard;
    j->shards = part.shards;
    return WEIR_EXIT_OK;
}

static int describe(weir_lens_job *j, const dump *d)
{
    const char *storage = weir_from_attr(d->r, "storage", "float32");
    int code = weir_provenance_of_dump(&j->about.run, &j->room, &j->session, d->r, d->path);
    if (code != WEIR_EXIT_OK)
        return code;
    if (strcmp(storage, "float32") != 0)
        weir_cli_note(j->cli, "%s holds values rounded to %s: the last row is not exactly the model's own", d->path,
                      storage);
    weir_from_note_incomplete(j->cli, d->r, d->path);
    return WEIR_EXIT_OK;
}

/* --- opening */

static int open_cells(weir_lens_job *j)
{
    weir_err err = {0};
    const weir_session *s = &j->session;
    int64_t room = weir_lens_cells_room(&j->stack, s->model, j->about.k, j->a->tuned != NULL), asked = s->a->run.batch;
    j->cells.room = asked < room ? asked : room;
    if (weir_lens_cells_open(&j->cells, s->model, weir_kernel_name(&s->a->run), (int)s->a->run.threads, &err) !=
        WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    return WEIR_EXIT_OK;
}

int weir_lens_from_dump(weir_lens_job *j)
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
        code = weir_from_tokenizer(&j->session);
    if (code == WEIR_EXIT_OK)
        code = weir_lens_ask(j);
    if (code == WEIR_EXIT_OK)
        code = describe(j, d);
    return code == WEIR_EXIT_OK ? open_cells(j) : code;
}

void weir_lens_close_dump(weir_lens_job *j)
{
    dump *d = j->from;
    if (!d)
        return;
    weir_dump_close(d->r);
    weir_positions_free(&d->positions);
    void *const own[] = {d->hook, d->id, d->pos, d->keep, d->part, d};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

/* The table of positions as a file of arrays, format "weir-lens-map" version 1: README.md has the schema. Cells come
 * position by position and are stored line by line, so they are kept until the last position is known: at most 256
 * MiB of them. The file is written at the end, from memory, so that a run that is stopped leaves nothing. */
#include <stdlib.h>
#include <string.h>

#include "cli/room.h"
#include "cli/say.h"
#include "corpus.h"

#define FORMAT "weir-lens-map"
enum {
    VERSION = 1,
    HELD = 256 << 20,              /* bytes of cells */
    COLUMNS = WEIR_STAT_COUNT + 2, /* the statistics, and two of the likeliest tokens */
    BUFFER = 64                    /* bytes of an array's name */
};

/* An array of cells: [n, n_lines, width] while it is made, [n_lines, n, width] in the file. */
typedef struct column {
    char name[BUFFER];
    weir_array_type type; /* of four bytes */
    int64_t width;
    bool ranked; /* three axes, though width may be 1 */
    char *cell;
} column;

typedef struct map {
    weir_lens_sink sink; /* first: what callers hold */
    const weir_lens_about *a;
    const char *path; /* borrowed */
    int threads;
    column column[COLUMNS];
    int n_columns;
    int64_t n, room, cell_bytes;
    int64_t *pos, *doc;         /* [n] */
    int32_t *id, *next, *asked; /* [n] */
    int64_t docs, docs_room;
    int64_t *number, *start, *count; /* [docs] */
} map;

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for a map's cells");
}

/* --- filling */

static void add_column(map *m, const char *name, weir_array_type type, int64_t width, bool ranked)
{
    column *c = &m->column[m->n_columns++];
    *c = (column){.type = type, .width = width, .ranked = ranked};
    snprintf(c->name, sizeof c->name, "%s", name);
    m->cell_bytes += (int64_t)weir_array_type_bytes(type) * width;
}

static weir_status begin(weir_lens_sink *sink, const weir_lens_about *a, weir_err *err)
{
    map *m = (map *)sink;
    char name[BUFFER];
    (void)err;
    m->a = a;
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        if (a->has & 1u << s) {
            snprintf(name, sizeof name, "stats/%s", weir_lens_stat_name[s]);
            add_column(m, name, WEIR_ARRAY_F32, 1, false);
        }
    add_column(m, "top/id", WEIR_ARRAY_I32, a->k, true);
    add_column(m, "top/logprob", WEIR_ARRAY_F32, a->k, true);
    return WEIR_OK;
}

static size_t position_bytes(const map *m, const column *c)
{
    return weir_array_type_bytes(c->type) * (size_t)(c->width * m->a->n_lines);
}

static bool grow(map *m, int64_t n)
{
    if (n <= m->room)
        return true;
    const size_t room = (size_t)(n < 2 * m->room ? 2 * m->room : n);
    bool ok = weir_room(&m->pos, room, sizeof *m->pos) && weir_room(&m->doc, room, sizeof *m->doc) &&
              weir_room(&m->id, room, sizeof *m->id) && weir_room(&m->next, room, sizeof *m->next) &&
              weir_room(&m->asked, room, sizeof *m->asked);
    for (int i = 0; i < m->n_columns; i++)
        ok = ok && weir_room(&m->column[i].cell, room, position_bytes(m, &m->column[i]));
    m->room = ok ? (int64_t)room : m->room;
    return ok;
}

static weir_status begin_doc(map *m, int64_t number, weir_err *err)
{
    if (m->docs == m->docs_room) {
        const size_t room = 2 * (size_t)m->docs_room + 16;
        if (!weir_room(&m->number, room, sizeof *m->number) || !weir_room(&m->start, room, sizeof *m->start) ||
            !weir_room(&m->count, room, sizeof *m->count))
            return no_memory(err);
        m->docs_room = (int64_t)room;
    }
    m->number[m->docs] = number;
    m->start[m->docs] = m->n;
    m->count[m->docs++] = 0;
    return WEIR_OK;
}

/* Cells of a piece stand line by line. */
static void put_cells(const map *m, const column *c, const void *from, int64_t n)
{
    const size_t bytes = weir_array_type_bytes(c->type) * (size_t)c->width;
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < m->a->n_lines; l++)
            memcpy(c->cell + (size_t)((m->n + i) * m->a->n_lines + l) * bytes,
                   (const char *)from + (size_t)(l * n + i) * bytes, bytes);
}

static weir_status piece(weir_lens_sink *sink, const weir_lens_piece *p, weir_err *err)
{
    map *m = (map *)sink;
    if (p->doc_begins)
        WEIR_TRY(begin_doc(m, p->doc, err));
    if ((m->n + p->n) * m->a->n_lines * m->cell_bytes > HELD)
        return weir_fail(err, WEIR_E_ARG,
                         "a map holds at most %d MiB of cells, which is %lld positions here, and this text has more: "
                         "choose --positions, --layers or a smaller -k, or --corpus for the whole text",
                         HELD >> 20, (long long)(HELD / (m->a->n_lines * m->cell_bytes)));
    if (!grow(m, m->n + p->n))
        return no_memory(err);
    int at = 0;
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        if (m->a->has & 1u << s)
            put_cells(m, &m->column[at++], p->stat[s], p->n);
    put_cells(m, &m->column[at], p->top_id, p->n);
    put_cells(m, &m->column[at + 1], p->top_logprob, p->n);
    for (int64_t i = 0; i < p->n; i++) {
        m->doc[m->n + i] = p->doc;
        m->pos[m->n + i] = p->pos[i];
        m->id[m->n + i] = p->id[i];
        m->next[m->n + i] = p->next[i];
        m->asked[m->n + i] = p->target[i];
    }
    m->n += p->n;
    m->count[m->docs - 1] += p->n;
    return WEIR_OK;
}

/* --- writing */

static weir_status put_texts(weir_arrays_out *w, const char *group, weir_str (*of)(const map *m, int64_t i),
                             const map *m, int64_t n, weir_err *err)
{
    weir_str *text = malloc(((size_t)n + 1) * sizeof *text);
    if (!text)
        return no_memory(err);
    for (int64_t i = 0; i < n; i++)
        text[i] = of(m, i);
    const weir_status st = weir_arrays_put_texts(w, group, text, n, err);
    free(text);
    return st;
}

static weir_str text(const char *z)
{
    return (weir_str){z, strlen(z)};
}

static weir_str name_of(const map *m, int64_t l)
{
    return text(m->a->line[l].name);
}

static weir_str hook_of(const map *m, int64_t l)
{
    return text(m->a->line[l].hook);
}

static weir_str site_of(const map *m, int64_t l)
{
    return text(m->a->line[l].site);
}

static weir_str token_of(const map *m, int64_t id)
{
    return weir_tokenizer_bytes(m->sink.tok, (int32_t)id);
}

static weir_status put_lines(weir_arrays_out *w, const map *m, weir_err *err)
{
    const int64_t n = m->a->n_lines;
    int32_t *layer = malloc(sizeof *layer * (size_t)n);
    if (!layer)
        return no_memory(err);
    for (int64_t l = 0; l < n; l++)
        layer[l] = m->a->line[l].layer;
    weir_status st = put_texts(w, "lines/name", name_of, m, n, err);
    if (st == WEIR_OK)
        st = put_texts(w, "lines/hook", hook_of, m, n, err);
    if (st == WEIR_OK)
        st = put_texts(w, "lines/site", site_of, m, n, err);
    if (st == WEIR_OK)
        st = weir_arrays_put(w, "lines/layer", WEIR_ARRAY_I32, 1, &n, layer, err);
    free(layer);
    return st;
}

/* Keys of the head of ndjson (head.c), as attributes; absent where that has null. */
static weir_status put_head(weir_arrays_out *w, const weir_lens_about *a, weir_err *err)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"weir_version", weir_version()},
                 {"model", a->run.model},
                 {"fingerprint", a->run.fingerprint},
                 {"tokenizer", a->run.tokenizer},
                 {"input", a->run.source},
                 {"source", a->run.text},
                 {"interventions", a->run.interventions ? a->run.interventions : "[]"},
                 {"lens", a->lens},
                 {"norm", a->norm},
                 {"target", a->target},
                 {"contrast_a", a->contrast[0]},
                 {"contrast_b", a->contrast[1]},
                 {"shown", weir_lens_stat_name[a->shown]}};
    const struct {
        const char *name;
        int64_t v;
    } ints[] = {{"bos", a->run.bos},
                {"ctx", a->run.ctx},
                {"stride", a->run.stride},
                {"softcap_left_out", a->no_softcap},
                {"vocabulary", a->V},
                {"padding_from", a->padding_from},
                {"padding_masked", a->padding_masked},
                {"k", a->k}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text)
            WEIR_TRY(weir_arrays_put_text(w, "", texts[i].name, texts[i].text, err));
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        WEIR_TRY(weir_arrays_put_int(w, "", ints[i].name, ints[i].v, err));
    return WEIR_OK;
}

static weir_status put_rows(weir_arrays_out *w, const map *m, weir_err *err)
{
    const struct {
        const char *name;
        weir_array_type type;
        int64_t n;
        const void *p;
    } array[] = {
        {"docs/number", WEIR_ARRAY_I64, m->docs, m->number}, {"docs/start", WEIR_ARRAY_I64, m->docs, m->start},
        {"docs/count", WEIR_ARRAY_I64, m->docs, m->count},   {"tokens/id", WEIR_ARRAY_I32, m->n, m->id},
        {"tokens/doc", WEIR_ARRAY_I64, m->n, m->doc},        {"tokens/pos", WEIR_ARRAY_I64, m->n, m->pos},
        {"tokens/next", WEIR_ARRAY_I32, m->n, m->next},      {"tokens/target", WEIR_ARRAY_I32, m->n, m->asked}};
    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        WEIR_TRY(weir_arrays_put(w, array[i].name, array[i].type, 1, &array[i].n, array[i].p, err));
    return WEIR_OK;
}

/* Line by line. */
static weir_status put_column(weir_arrays_out *w, const map *m, const column *c, weir_err *err)
{
    const int64_t dim[3] = {m->a->n_lines, m->n, c->width};
    const size_t bytes = weir_array_type_bytes(c->type) * (size_t)c->width;
    char *turned = malloc((size_t)m->n * position_bytes(m, c) + 1);
    if (!turned)
        return no_memory(err);
    for (int64_t l = 0; l < m->a->n_lines; l++)
        for (int64_t i = 0; i < m->n; i++)
            memcpy(turned + (size_t)(l * m->n + i) * bytes, c->cell + (size_t)(i * m->a->n_lines + l) * bytes, bytes);
    weir_status st = weir_arrays_put(w, c->name, c->type, c->ranked ? 3 : 2, dim, turned, err);
    free(turned);
    return st;
}

static weir_status put_all(weir_arrays_out *w, const map *m, weir_err *err)
{
    WEIR_TRY(put_head(w, m->a, err));
    WEIR_TRY(put_lines(w, m, err));
    WEIR_TRY(put_rows(w, m, err));
    for (int i = 0; i < m->n_columns; i++)
        WEIR_TRY(put_column(w, m, &m->column[i], err));
    return put_texts(w, "vocab", token_of, m, m->sink.tok ? weir_tokenizer_size(m->sink.tok) : 0, err);
}

static weir_status end(weir_lens_sink *sink, weir_err *err)
{
    const map *m = (const map *)sink;
    weir_arrays_out *w;
    WEIR_TRY(weir_arrays_create(&w, m->path, FORMAT, VERSION, m->threads, err));
    weir_status st = put_all(w, m, err);
    if (st == WEIR_OK)
        return weir_arrays_commit(w, err);
    weir_arrays_abort(w);
    return st;
}

static void drop(weir_lens_sink *sink)
{
    map *m = (map *)sink;
    if (!m)
        return;
    for (int i = 0; i < m->n_columns; i++)
        free(m->column[i].cell);
    void *const own[] = {m->pos, m->doc, m->id, m->next, m->asked, m->number, m->start, m->count, m};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

weir_lens_sink *weir_lens_h5_new(const char *path, int threads, const weir_tokenizer *tok)
{
    map *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->sink = (weir_lens_sink){begin, piece, end, drop, stdout, tok};
    m->path = path;
    m->threads = threads;
    return &m->sink;
}

/* --- files */

bool weir_lens_h5_is(const char *path)
{
    return weir_arrays_is(path, FORMAT);
}

/* How many there are along the only axis of an array; -1: it is not there. */
static int64_t length(weir_arrays_in *r, const char *name, weir_array_type type)
{
    weir_err err = {0};
    int64_t n;
    return weir_arrays_shape(r, name, type, 1, &n, &err) == WEIR_OK ? n : -1;
}

int weir_lens_h5_tell(const weir_cli *cli, const char *path)
{
    weir_err err = {0};
    weir_arrays_in *r;
    if (weir_arrays_open(&r, path, FORMAT, VERSION, &err) != WEIR_OK)
        return weir_cli_fail_at(cli, path, &err);
    const int64_t docs = length(r, "docs/start", WEIR_ARRAY_I64), n = length(r, "tokens/id", WEIR_ARRAY_I32),
                  lines = length(r, "lines/layer", WEIR_ARRAY_I32);
    weir_arrays_close(r);
    return weir_cli_usage(
        cli,
        "%s is a map that logit-lens wrote (%lld lines of %lld positions in %lld document%s), no text "
        "and no dump: weir notebook-export %s shows it",
        path, (long long)lines, (long long)n, (long long)docs, docs == 1 ? "" : "s", path);
}

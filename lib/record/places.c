/* record/places.c: rows of a dump by document and position. Positions are read in blocks as they are asked for, values
 * in blocks of each hook point: memory is bounded whatever the size of the dump. */
#include <string.h>

#include <weir/values.h>

#include "base/mem.h"
#include "reader.h"

enum { BLOCK = 1024, CACHE_BYTES = 64 << 20 };

/* Rows of one hook point, of which one block is in memory. */
typedef struct band {
    int hook;                  /* in the reader */
    int64_t width, rows, most; /* rows: of the dataset; most: of a block */
    int64_t from, n;           /* block holds [from, from + n) */
    float *block;              /* [most, width] */
} band;

struct weir_places {
    char *path;
    weir_dump_reader *dump;
    int64_t first_doc;              /* of a shard: the number in the whole text of its first document */
    int64_t doc, doc_row, doc_rows; /* the document asked for last; -1: none yet */
    int64_t pos_from, pos_n;        /* pos holds rows [pos_from, pos_from + pos_n) */
    int64_t pos[BLOCK];
    int64_t points;
    band *band; /* [n_bands] */
    int n_bands;
};

weir_status weir_places_open(weir_places **out, const char *path, int64_t points, weir_err *err)
{
    *out = NULL;
    weir_places *p = weir_calloc(1, sizeof *p);
    if (!p || !(p->path = weir_strndup(path, strlen(path)))) {
        weir_free(p);
        return weir_nomem(err, "a dump's places");
    }
    p->points = points > 0 ? points : 1;
    p->doc = -1;
    weir_status st = weir_dump_open(&p->dump, path, err);
    if (st) {
        weir_places_close(p);
        return st;
    }
    weir_h5_quiet q;
    weir_h5_quiet_begin(&q);
    if (!weir_h5_get_int(p->dump->file.id, "shard_first_doc", &p->first_doc) || p->first_doc < 0)
        p->first_doc = 0;
    weir_h5_quiet_end(&q);
    *out = p;
    return WEIR_OK;
}

void weir_places_close(weir_places *p)
{
    if (!p)
        return;
    weir_dump_close(p->dump);
    for (int i = 0; i < p->n_bands; i++)
        weir_free(p->band[i].block);
    weir_free(p->band);
    weir_free(p->path);
    weir_free(p);
}

/* --- documents */

/* Makes doc the document asked for last. It has no rows where the dump has no such document. */
static weir_status to_document(weir_places *p, int64_t doc, weir_err *err)
{
    weir_dump_doc_rows d = {0};
    if (doc == p->doc)
        return WEIR_OK;
    if (doc >= p->first_doc && doc - p->first_doc < weir_dump_n_docs(p->dump))
        WEIR_TRY(weir_dump_read_doc(p->dump, doc - p->first_doc, &d, err));
    p->doc = doc;
    p->doc_row = d.row;
    p->doc_rows = d.n;
    return WEIR_OK;
}

static weir_status position_of(weir_places *p, int64_t row, int64_t *pos, weir_err *err)
{
    if (row < p->pos_from || row >= p->pos_from + p->pos_n) {
        int64_t from = row - row % BLOCK, n = weir_dump_rows(p->dump) - from;
        n = n < BLOCK ? n : BLOCK;
        const weir_token_columns want = {.pos = p->pos};
        p->pos_n = 0; /* nothing, should reading fail */
        WEIR_TRY(weir_dump_read_tokens(p->dump, from, n, &want, err));
        p->pos_from = from;
        p->pos_n = n;
    }
    *pos = p->pos[row - p->pos_from];
    return WEIR_OK;
}

/* Positions ascend within a document. Mostly all were recorded, so the first guess is right. */
static weir_status search(weir_places *p, int64_t pos, int64_t *row, weir_err *err)
{
    int64_t low = 0, high = p->doc_rows, v, i = pos < high ? pos : high - 1;
    for (; low < high; i = low + (high - low) / 2) {
        WEIR_TRY(position_of(p, p->doc_row + i, &v, err));
        if (v == pos) {
            *row = p->doc_row + i;
            return WEIR_OK;
        }
        if (v < pos)
            low = i + 1;
        else
            high = i;
    }
    return WEIR_OK;
}

weir_status weir_places_find(weir_places *p, int64_t doc, int64_t pos, int64_t *row, weir_err *err)
{
    *row = -1;
    if (pos < 0)
        return WEIR_OK;
    WEIR_TRY(to_document(p, doc, err));
    return search(p, pos, row, err);
}

/* --- values */

static weir_status add_band(weir_places *p, int hook, weir_err *err)
{
    const weir_dump_hook *h = weir_dump_hook_at(p->dump, hook);
    int64_t most = CACHE_BYTES / p->points / 4 / h->width;
    band *more = weir_realloc(p->band, (size_t)p->n_bands + 1, sizeof *more);
    if (!more)
        return weir_nomem(err, "a dump's rows");
    p->band = more;
    band *b = &more[p->n_bands];
    *b = (band){.hook = hook, .width = h->width, .rows = h->rows, .most = most < 1 ? 1 : most > BLOCK ? BLOCK : most};
    b->block = weir_calloc((size_t)(b->most * b->width), sizeof *b->block);
    if (!b->block)
        return weir_nomem(err, "a dump's rows");
    p->n_bands++;
    return WEIR_OK;
}

weir_status weir_places_hook(weir_places *p, const char *hook, int *index, const weir_dump_hook **info, weir_err *err)
{
    int i = weir_dump_find(p->dump, hook);
    weir_status st = i >= 0 ? add_band(p, i, err)
                            : weir_fail(err, WEIR_E_ARG, "%s was not recorded in it: --hooks %s does that", hook, hook);
    if (st)
        return weir_err_where(err, p->path, NULL, -1);
    *index = p->n_bands - 1;
    *info = weir_dump_hook_at(p->dump, i);
    return WEIR_OK;
}

int64_t weir_places_column(const weir_places *p, int index, int64_t element)
{
    return weir_dump_column(p->dump, p->band[index].hook, element);
}

weir_status weir_places_row(weir_places *p, int index, int64_t row, const float **x, weir_err *err)
{
    band *b = &p->band[index];
    if (row < 0 || row >= b->rows)
        return weir_fail(err, WEIR_E_ARG, "row %lld is asked of %lld", (long long)row, (long long)b->rows);
    if (row < b->from || row >= b->from + b->n) {
        int64_t from = row - row % b->most, n = b->rows - from;
        n = n < b->most ? n : b->most;
        b->n = 0;
        WEIR_TRY(weir_dump_read(p->dump, b->hook, from, n, b->block, err));
        b->from = from;
        b->n = n;
    }
    *x = b->block + (row - b->from) * b->width;
    return WEIR_OK;
}

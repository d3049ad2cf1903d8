/* A dump's rows, hook by hook: its tokens, masks, and values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/signals.h"
#include "dump_impl.h"

enum {
    TILE = 1024, /* rows of a tile, and the columns of one: */
    TILE_COLUMNS = 64,
    MOST_ROWS = 8 * TILE, /* of a pass */
    MOST_FLOATS = 1 << 22 /* of a pass of chosen columns, beyond one tile's rows */
};

/* One pass: the columns of its rows. */
typedef struct pass {
    weir_neurons_dump *d;
    weir_neurons *s;
    weir_progress *progress;
    int64_t n;
    int32_t *id;
    int64_t *doc, *pos, *ctx_pos;
    uint8_t *flags, *mask, *skip; /* [MOST_ROWS] each */
    weir_high_rows high;          /* of the table's layer */
    float *x;                     /* values that cannot be taken as they come: [room] */
    int64_t room;
} pass;

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for rows of a dump");
}

static bool alloc_pass(pass *p)
{
    p->id = malloc(sizeof *p->id * MOST_ROWS);
    p->doc = malloc(sizeof *p->doc * MOST_ROWS);
    p->pos = malloc(sizeof *p->pos * MOST_ROWS);
    p->ctx_pos = malloc(sizeof *p->ctx_pos * MOST_ROWS);
    p->flags = malloc(MOST_ROWS);
    p->mask = malloc(MOST_ROWS);
    p->skip = malloc(MOST_ROWS);
    return p->id && p->doc && p->pos && p->ctx_pos && p->flags && p->mask && p->skip;
}

static void free_pass(pass *p)
{
    free(p->id);
    free(p->doc);
    free(p->pos);
    free(p->ctx_pos);
    free(p->flags);
    free(p->mask);
    free(p->skip);
    free(p->high.bit);
    free(p->x);
}

static bool values_room(pass *p, int64_t n)
{
    if (n <= p->room)
        return true;
    free(p->x);
    p->x = malloc(sizeof *p->x * (size_t)n);
    p->room = p->x ? n : 0;
    return p->x != NULL;
}

/* --- tokens */

/* Why a row is not counted. BOS and special tokens are known by id, so that they are found wherever they stand. */
static uint8_t mask_of(const weir_neurons_dump *d, int32_t id, uint8_t flags)
{
    uint8_t kind = id >= 0 && id < d->n_vocab ? d->kind[id] : 0;
    if (d->o.mask_bos && (kind & WEIR_KIND_BOS || flags & WEIR_TOKEN_BOS))
        return WEIR_MASK_BOS;
    if (d->o.mask_special && (kind || flags & (WEIR_TOKEN_BOS | WEIR_TOKEN_SPECIAL)))
        return WEIR_MASK_SPECIAL;
    for (int i = 0; i < d->o.n_mask_ids; i++)
        if (d->o.mask_id[i] == id)
            return WEIR_MASK_ID;
    return 0;
}

static weir_status begin_rows(pass *p, int64_t row, int64_t n, bool again, weir_err *err)
{
    const weir_neurons_dump *d = p->d;
    weir_token_columns c = {.id = p->id, .doc = p->doc, .pos = p->pos, .ctx_pos = p->ctx_pos, .flags = p->flags};
    WEIR_TRY(weir_dump_read_tokens(d->r, row, n, &c, err));
    for (int64_t i = 0; i < n; i++) {
        p->doc[i] += d->first_doc;
        p->mask[i] = mask_of(d, p->id[i], p->flags[i]);
        p->skip[i] = p->high.bit ? p->high.bit[(row + i) / 8] >> (row + i) % 8 & 1 : 0;
    }
    p->n = n;
    weir_neurons_rows_of rows = {
        .n = n, .id = p->id, .doc = p->doc, .pos = p->pos, .ctx_pos = p->ctx_pos, .mask = p->mask};
    return weir_neurons_rows(p->s, &rows, again, err);
}

/* --- values */

/* Values of the pass's rows, as they were stored: [n, columns]. */
static weir_status add_values(pass *p, int t, const float *x, int64_t columns, bool whole, weir_err *err)
{
    if (p->d->source[t].gate_act) {
        if (x != p->x && !values_room(p, p->n * columns))
            return no_memory(err);
        WEIR_TRY(weir_gate_act(p->d->o.model, p->d->o.kernel, x, p->n * columns, p->x, err));
        x = p->x;
    }
    weir_neurons_values v = {.x = x, .stride = columns, .whole = whole, .skip = p->high.bit ? p->skip : NULL};
    return weir_neurons_add(p->s, t, &v, err);
}

static weir_status tell(const pass *p, int t, int64_t row)
{
    double share = p->d->rows ? ((double)t + (double)row / (double)p->d->rows) / p->d->n : 1;
    if (p->progress)
        weir_progress_update(p->progress, share, -1);
    return weir_signals_seen() ? WEIR_STOP : WEIR_OK;
}

/* The table's columns alone. */
static weir_status feed_columns(pass *p, int t, weir_err *err)
{
    const weir_dump_source *source = &p->d->source[t];
    int64_t tiles = MOST_FLOATS / TILE / source->n, step = TILE * (tiles < 1 ? 1 : tiles < 8 ? tiles : 8);
    if (!values_room(p, step * source->n))
        return no_memory(err);
    for (int64_t row = 0; row < p->d->rows; row += step) {
        int64_t n = p->d->rows - row < step ? p->d->rows - row : step;
        WEIR_TRY(begin_rows(p, row, n, t > 0, err));
        WEIR_TRY(weir_dump_read_columns(p->d->r, source->hook, source->column, source->n, row, n, p->x, err));
        WEIR_TRY(add_values(p, t, p->x, source->n, false, err));
        WEIR_TRY(tell(p, t, row + n));
    }
    return WEIR_OK;
}

/* A block's columns at their units in whole rows; units that were not recorded are NaN. */
static void spread(float *to, int64_t width, const weir_dump_hook *h, const weir_dump_block *b)
{
    for (int64_t r = 0; r < b->n; r++) {
        float *row = to + r * width;
        for (int64_t c = 0; b->column == 0 && h->units && c < width; c++)
            row[c] = NAN;
        for (int64_t c = 0; c < b->n_columns; c++) {
            int64_t column = b->column + c;
            row[h->units ? h->units[column] : column] = b->data[r * b->n_columns + c];
        }
    }
}

/* The next rows with all that was recorded of them, or all units if the search needs those. A hook that is so wide that
 * its blocks have some columns only is put together. *n = 0: there are no more. */
static weir_status next_rows(pass *p, int t, weir_dump_stream *stream, const float **x, int64_t *columns, int64_t *row,
                             int64_t *n, weir_err *err)
{
    const weir_dump_hook *h = weir_dump_hook_at(p->d->r, p->d->source[t].hook);
    bool spread_out = h->units && p->d->o.whole;
    int64_t width = spread_out ? p->d->table[t].width : h->width;
    for (weir_dump_block b = {0};;) {
        WEIR_TRY(weir_dump_stream_next(stream, &b, err));
        *row = b.row;
        *n = b.n;
        *columns = width;
        *x = b.data;
        if (b.n == 0 || (!spread_out && b.n_columns == h->width))
            return WEIR_OK;
        if (!values_room(p, b.n * width))
            return no_memory(err);
        spread(p->x, width, spread_out ? h : &(weir_dump_hook){.width = width}, &b);
        *x = p->x;
        if (b.column + b.n_columns == h->width)
            return WEIR_OK;
    }
}

/* Every row of the hook, once. */
static weir_status feed_stream(pass *p, int t, weir_dump_stream *stream, weir_err *err)
{
    const weir_dump_source *source = &p->d->source[t];
    const weir_dump_hook *h = weir_dump_hook_at(p->d->r, source->hook);
    /* The library takes a row as it is when it holds the table's neurons and no others. */
    bool whole = !h->units || p->d->o.whole;
    for (;;) {
        const float *x;
        int64_t columns, row, n;
        WEIR_TRY(next_rows(p, t, stream, &x, &columns, &row, &n, err));
        if (n == 0)
            return WEIR_OK;
        for (int64_t at = 0; at < n; at += MOST_ROWS) {
            int64_t m = n - at < MOST_ROWS ? n - at : MOST_ROWS;
            WEIR_TRY(begin_rows(p, row + at, m, t > 0, err));
            WEIR_TRY(add_values(p, t, x + at * columns, columns, whole, err));
        }
        WEIR_TRY(tell(p, t, row + n));
    }
}

/* Does reading the table's tiles alone save anything? */
static bool few_tiles(const weir_neurons_dump *d, int t)
{
    const weir_dump_source *source = &d->source[t];
    const weir_dump_hook *h = weir_dump_hook_at(d->r, source->hook);
    int64_t tiles = 0, last = -1;
    if (d->o.whole)
        return false;
    for (int64_t i = 0; i < source->n; i++) { /* columns ascend with the units */
        tiles += source->column[i] / TILE_COLUMNS != last;
        last = source->column[i] / TILE_COLUMNS;
    }
    /* Chosen units of a chosen set cannot be taken from rows as they are stored. */
    return tiles * TILE_COLUMNS * 2 <= h->width || (h->units && source->n < h->width);
}

static weir_status feed_table(pass *p, int t, weir_err *err)
{
    weir_dump_stream *stream = NULL;
    if (few_tiles(p->d, t))
        return feed_columns(p, t, err);
    weir_status st = weir_dump_stream_open(&stream, p->d->r, p->d->source[t].hook, 0, p->d->rows, err);
    if (st == WEIR_OK)
        st = feed_stream(p, t, stream, err);
    weir_dump_stream_close(stream);
    return st;
}

weir_status weir_neurons_dump_feed(weir_neurons_dump *d, weir_neurons *s, weir_progress *progress, weir_err *err)
{
    pass p = {.d = d, .s = s, .progress = progress};
    weir_status st = alloc_pass(&p) ? WEIR_OK : no_memory(err);
    for (int t = 0; t < d->n && st == WEIR_OK; t++) {
        if (d->o.max_norm_ratio > 0 && (t == 0 || d->table[t].layer != d->table[t - 1].layer)) {
            free(p.high.bit);
            p.high.bit = NULL;
            st = d->table[t].layer < 0 ? WEIR_OK : weir_high_rows_find(&p.high, d, d->table[t].layer, err);
        }
        if (st == WEIR_OK)
            st = feed_table(&p, t, err);
    }
    free_pass(&p);
    if (st < 0)
        weir_err_where(err, d->o.path, NULL, -1);
    return st;
}

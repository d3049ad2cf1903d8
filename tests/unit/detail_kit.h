/* unit/detail_kit.h: a search that has nothing but named neurons, and rows to feed it with. */
#ifndef WEIR_TEST_DETAIL_KIT_H
#define WEIR_TEST_DETAIL_KIT_H

#include "moments_kit.h"

#include "search/detail.h"

enum { DK_ROWS = 300, DK_WIDTH = 150, DK_IDS = 40, DK_NAMED = 4, DK_UNITS = 5 };

typedef struct dk_rows {
    float x[DK_ROWS * DK_WIDTH];
    int32_t id[DK_ROWS];
} dk_rows;

/* Units are mixtures of a few hidden ones, so that correlations are of every size. */
static inline dk_rows *dk_make(bool wild, uint32_t seed)
{
    dk_rows *d = malloc(sizeof *d);
    for (int r = 0; r < DK_ROWS; r++) {
        float hidden[3];
        for (int i = 0; i < 3; i++)
            hidden[i] = kit_gauss(&seed);
        for (int u = 0; u < DK_WIDTH; u++)
            d->x[r * DK_WIDTH + u] = hidden[u % 3] * (float)(u % 7) / 5 + kit_gauss(&seed) + (float)(u % 11) / 4;
        d->id[r] = (int32_t)(kit_next(&seed) % DK_IDS);
    }
    for (int i = 0; wild && i < 900; i++) {
        float x = kit_wild(&seed);
        x = isfinite(x) && fabsf(x) >= 0x1p24f ? NAN : x; /* those have a test of their own */
        d->x[kit_next(&seed) % (DK_ROWS * DK_WIDTH)] = x;
    }
    return d;
}

/* Table 0: all units; table 1: DK_UNITS of them, which are searched alone. Named: three of the first, one of the
 * second. */
typedef struct dk_search {
    weir_neurons s;
    weir_ntable table[2];
    int32_t row[DK_ROWS], taken[DK_ROWS], id[DK_ROWS];
    weir_place at[DK_ROWS];
    weir_neurons_named named[DK_NAMED];
} dk_search;

static const int64_t dk_units[DK_UNITS] = {3, 64, 70, 128, 149};
static const weir_neurons_named dk_named[DK_NAMED] = {{0, 2}, {0, 63}, {1, 3}, {0, 149}};
static inline int64_t dk_column(int named)
{
    return dk_named[named].table ? dk_units[dk_named[named].neuron] : dk_named[named].neuron;
}

/* d: zeroed. */
static inline weir_status dk_init(dk_search *d, const char *kernel, int threads, bool correlate, weir_err *err)
{
    const weir_neurons_table all = {.hook = "h", .site = "post", .width = DK_WIDTH, .n = DK_WIDTH};
    const weir_neurons_table few = {.hook = "g", .site = "post", .width = DK_WIDTH, .n = DK_UNITS, .units = dk_units};
    d->table[0] = (weir_ntable){.pub = all, .n = all.n};
    d->table[1] = (weir_ntable){.pub = few, .n = few.n};
    memcpy(d->named, dk_named, sizeof d->named);
    d->s.table = d->table;
    d->s.n_tables = 2;
    d->s.threads = threads;
    d->s.o.kernel = kernel;
    d->s.o.n_named = DK_NAMED;
    d->s.o.token_means = DK_IDS - 3;
    d->s.o.correlate = correlate;
    d->s.o.named = d->s.named = d->named;
    d->s.pass.row = d->row;
    d->s.pass.at = d->at;
    d->s.pass.id = d->id;
    return weir_detail_new(&d->s, err);
}

static inline weir_status dk_new(dk_search **out, const char *kernel, int threads, bool correlate, weir_err *err)
{
    *out = calloc(1, sizeof **out);
    return dk_init(*out, kernel, threads, correlate, err);
}

static inline void dk_free(dk_search *d)
{
    weir_detail_free(d->s.detail);
    free(d);
}

/* A pass of rows order[from .. to) of the data for both tables. */
static inline weir_status dk_feed(dk_search *d, const dk_rows *data, const int32_t *order, int from, int to,
                                  weir_err *err)
{
    const weir_neurons_values v = {.x = data->x, .stride = DK_WIDTH, .whole = true};
    const int m = to - from;
    for (int i = 0; i < m; i++) { /* packed the wrong way round: what is said by rows[] must be looked up */
        const int c = m - 1 - i, r = order[from + i];
        d->taken[i] = c;
        d->row[c] = r;
        d->id[c] = data->id[r];
        d->at[c] = (weir_place){(uint32_t)r / 7, (uint32_t)r % 7};
    }
    for (int t = 0; t < 2; t++)
        WEIR_TRY(weir_detail_add(&d->s, t, &v, d->taken, m, err));
    return WEIR_OK;
}

static inline void dk_order(int32_t *order)
{
    for (int r = 0; r < DK_ROWS; r++)
        order[r] = r;
}

#endif

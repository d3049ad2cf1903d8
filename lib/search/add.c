/* search/add.c: one table's values of a pass. Neurons are cut into blocks; a thread takes a block and does all there is
 * to do for it, so that threads share nothing. A block's values are copied together first, SOME rows at a time: what
 * follows reads them again and again from a cache. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "search/add.h"
#include "search/mean.h"
#include "search/scan.h"

enum {
    BLOCK = WEIR_NEURONS_BLOCK,
    SOME = 1024,   /* rows of a block: 256 KiB */
    TURNED = 64,   /* rows, and neurons, whose bits are turned together */
    FETCHED = 128, /* longest list that is fetched ahead */
};

size_t weir_add_scratch_bytes(void)
{
    return SOME * BLOCK * sizeof(float);
}

typedef struct work {
    weir_neurons *s;
    weir_ntable *t;
    const weir_neurons_values *v;
    int64_t m;           /* rows: pass.taken[m] */
    _Atomic bool failed; /* out of memory */
} work;

/* Rows [r, r + m) that were taken, of one block of neurons, packed. */
typedef struct part {
    int64_t first, nb, r, m;
    const float *x; /* [m, BLOCK] */
} part;

/* --- packing */

static void pack(const work *w, const part *p, float *to)
{
    const int32_t *taken = w->s->pass.taken + p->r, *row = w->s->pass.row;
    const int64_t *units = w->v->whole ? w->t->pub.units : NULL;
    for (int64_t r = 0; r < p->m; r++, to += BLOCK) {
        const float *from = w->v->x + row[taken[r]] * w->v->stride;
        if (units)
            for (int64_t j = 0; j < p->nb; j++)
                to[j] = from[units[p->first + j]];
        else if (p->nb == BLOCK) /* a size that the compiler knows */
            memcpy(to, from + p->first, BLOCK * sizeof *to);
        else
            memcpy(to, from + p->first, (size_t)p->nb * sizeof *to);
        if (p->nb < BLOCK)
            memset(to + p->nb, 0, (size_t)(BLOCK - p->nb) * sizeof *to);
    }
}

/* --- asking memory ahead */

static void fetch(const void *array, int64_t from, int64_t n, size_t size)
{
    if (!array)
        return;
    const char *p = (const char *)array + (size_t)from * size;
    for (int64_t at = 0; at < n * (int64_t)size; at += 64)
        __builtin_prefetch(p + at, 1, 2);
}

/* The lists of many neurons, and their histograms, lie in memory, out of the caches' reach, and each pass visits them
 * all: they are asked for long before they are needed. */
static void fetch_lists(const work *w, const part *p)
{
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        const weir_lists *l = &w->t->list[which];
        const int64_t from = p->first * l->room, n = p->nb * l->room;
        if (l->room > FETCHED)
            continue;
        fetch(l->value, from, n, sizeof *l->value);
        fetch(l->slot, from, n, sizeof *l->slot);
        fetch(l->key, from, n, sizeof *l->key);
    }
}

/* Of each neuron, where its values have lain so far, but for those near 0: these are too many bins for too few values.
 */
static void fetch_hist(const weir_ntable *t, const part *p)
{
    const float near = 0x1p-8f;
    for (int64_t i = p->first; i < p->first + p->nb; i++) {
        const int64_t at = i * WEIR_NEURONS_BINS, low = weir_neurons_bin(t->min[i]), high = weir_neurons_bin(t->max[i]);
        if (t->min[i] < -near)
            fetch(t->hist, at + low, weir_neurons_bin(-near) - low + 1, sizeof *t->hist);
        if (t->max[i] > near && t->max[i] >= t->min[i])
            fetch(t->hist, at + weir_neurons_bin(near), high - weir_neurons_bin(near) + 1, sizeof *t->hist);
    }
}

/* --- counts */

static void count_part(const work *w, const part *p)
{
    const weir_neurons *s = w->s;
    weir_ntable *t = w->t;
    const int64_t first = p->first;
    const weir_scan_counts c = {
        .nb = p->nb,
        .hist = t->hist + first * WEIR_NEURONS_BINS,
        .min = t->min + first,
        .max = t->max + first,
        .nonfinite = t->nonfinite + first,
        .above = t->above + first * s->o.n_thresholds,
        .threshold = s->threshold,
        .n_thresholds = s->o.n_thresholds,
    };
    int32_t row[SOME];
    for (int i = 0; i < p->m; i++)
        row[i] = i;
    s->kernel->moments(t->sums + first, p->x, BLOCK, row, p->m, p->nb);
    s->kernel->count(&c, p->x, p->m);
    for (int64_t j = 0; j < p->nb; j++) { /* which of both zeros came first must not show */
        c.min[j] += 0.0f;
        c.max[j] += 0.0f;
    }
}

/* --- lists */

/* What a value must be beyond to have any business in list i, from a row at this place on. A value that ties with the
 * worst place gets in only from before it; that can be only where lists were merged. */
static float gate_of(const weir_lists *l, weir_neurons_list which, int64_t i, weir_place at)
{
    const float end = which == WEIR_NEURONS_BOTTOM ? INFINITY : -INFINITY;
    if (l->size[i] < l->room)
        return end;
    const int64_t first = i * l->room, last = first + l->room - 1;
    const float least = which == WEIR_NEURONS_ABS ? fabsf(l->value[last]) : l->value[last];
    const bool late = l->mixed && weir_place_before(at, l->at[first + l->slot[last]]);
    return late ? nextafterf(least, end) : least;
}

static bool is_beyond(weir_neurons_list which, float x, float gate)
{
    return which == WEIR_NEURONS_TOP ? x > gate : which == WEIR_NEURONS_BOTTOM ? x < gate : fabsf(x) > gate;
}

static float stricter(weir_neurons_list which, float a, float b)
{
    return which == WEIR_NEURONS_BOTTOM ? fminf(a, b) : fmaxf(a, b);
}

/* The value of the n-th best of a column of m rows, by figure; the open end if it has fewer finite ones. Quickselect.
 */
static float nth_best(const float *x, int64_t m, weir_neurons_list which, int64_t n)
{
    float figure[SOME];
    int64_t size = 0, low = 0, high;
    for (int64_t r = 0; r < m; r++) {
        const float v = x[r * BLOCK];
        figure[size] = which == WEIR_NEURONS_TOP ? v : which == WEIR_NEURONS_BOTTOM ? -v : fabsf(v);
        size += isfinite(v) != 0;
    }
    if (size < n)
        return which == WEIR_NEURONS_BOTTOM ? INFINITY : -INFINITY;
    for (high = size - 1; low < high;) {
        const float pivot = figure[(low + high) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            for (; figure[i] > pivot; i++)
                ;
            for (; figure[j] < pivot; j--)
                ;
            if (i <= j) {
                const float swap = figure[i];
                figure[i++] = figure[j];
                figure[j--] = swap;
            }
        }
        if (n - 1 <= j)
            high = j;
        else if (n - 1 >= i)
            low = i;
        else
            break;
    }
    return which == WEIR_NEURONS_BOTTOM ? -figure[n - 1] : figure[n - 1];
}

/* A bound that the n best values of neuron i are beyond, and few others, if its histogram holds nothing but the part; else
 * false. Which costs a walk over some bins instead of one over all rows. */
static bool bound_of_bins(const work *w, const part *p, int64_t i, weir_neurons_list which, int64_t n, float *bound)
{
    const uint32_t *hist = w->t->hist + i * WEIR_NEURONS_BINS;
    const bool top = which == WEIR_NEURONS_TOP;
    int64_t beyond = 0;
    int bin = top ? WEIR_NEURONS_BINS : -1;
    if (w->t->rows > 0 || p->r > 0 || which == WEIR_NEURONS_ABS)
        return false;
    while (beyond < n && (top ? bin > 0 : bin < WEIR_NEURONS_BINS - 1))
        beyond += hist[top ? --bin : ++bin];
    if (beyond < n || beyond > 2 * n)
        return false;
    const double edge = weir_neurons_edge(top ? bin : bin + 1);
    *bound = nextafterf((float)edge, top ? -INFINITY : INFINITY); /* so that the bin's own values are beyond it */
    return true;
}

/* One look at the rows of a part for one list. */
typedef struct look {
    const work *w;
    const part *p;
    weir_neurons_list which;
    _Alignas(64) float gate[BLOCK]; /* what a value must be beyond */
    float done[BLOCK];              /* values beyond this have been put before */
} look;

/* Rows of bits become columns: bit c of a[r] changes places with bit r of a[c]. Squares are exchanged across the
 * diagonal, each half as wide as those before. */
static void turn(uint64_t a[TURNED])
{
    uint64_t low = UINT32_MAX; /* the bits of the left squares */
    for (int half = TURNED / 2; half; half /= 2, low ^= low << half)
        for (int r = 0; r < TURNED; r = ((r | half) + 1) & ~half) {
            const uint64_t swap = ((a[r] >> half) ^ a[r | half]) & low;
            a[r] ^= swap << half;
            a[r | half] ^= swap;
        }
}

/* Neuron j of the block has values beyond its gate in the rows of the bits of row[..][j]. */
static void put_rows(look *o, int j, uint64_t row[][TURNED], int64_t tiles)
{
    const part *p = o->p;
    weir_lists *l = &o->w->t->list[o->which];
    const weir_pass *pass = &o->w->s->pass;
    float gate = o->gate[j];
    for (int64_t t = 0; t < tiles; t++)
        for (uint64_t bits = row[t][j]; bits; bits &= bits - 1) {
            const int64_t r = t * TURNED + __builtin_ctzll(bits);
            const float x = p->x[r * BLOCK + j];
            if (!is_beyond(o->which, x, gate) || is_beyond(o->which, x, o->done[j])) /* a row before has raised it */
                continue;
            const int32_t c = pass->taken[p->r + r];
            const weir_entry e = {x, pass->at[c], pass->key[c], 1};
            o->w->s->kernel->put(l, o->which, p->first + j, &e);
            gate = stricter(o->which, gate_of(l, o->which, p->first + j, e.at), gate);
        }
}

/* What an entry that comes into a full list writes to, and the list itself: from an outer cache into the first. */
static void fetch_list(const weir_lists *l, int64_t i)
{
    const int64_t first = i * l->room;
    if (l->room > FETCHED || l->size[i] < l->room)
        return;
    fetch(l->value, first, l->room, sizeof *l->value);
    fetch(l->slot, first, l->room, sizeof *l->slot);
    __builtin_prefetch(&l->at[first + l->slot[first + l->room - 1]], 1, 3);
}

/* Neuron by neuron, so that each list is worked on once, while it is near. */
static void look_at_rows(look *o)
{
    uint64_t row[SOME / TURNED][TURNED], any = 0;
    const int64_t tiles = (o->p->m + TURNED - 1) / TURNED;
    for (int64_t t = 0, r = 0; t < tiles; t++, r += TURNED) {
        const int64_t m = o->p->m - r < TURNED ? o->p->m - r : TURNED;
        o->w->s->kernel->beyond[o->which](row[t], o->p->x + r * BLOCK, m, o->gate);
        memset(row[t] + m, 0, (size_t)(TURNED - m) * sizeof row[t][0]);
        for (int64_t i = 0; i < m; i++)
            any |= row[t][i];
        turn(row[t]);
    }
    for (; any; any &= any - 1) {
        const uint64_t next = any & (any - 1);
        if (next)
            fetch_list(&o->w->t->list[o->which], o->p->first + __builtin_ctzll(next));
        put_rows(o, __builtin_ctzll(any), row, tiles);
    }
}

/* A list that is not full would take nearly every row for a while, only to lose them again. So it is first offered
 * those that are better than as many others of the same part as it has room for. Then the rest, should the list still
 * not be full or its worst place be worse than these: ties, places that are the same, or places of earlier parts. */
static void list_part(const work *w, const part *p, weir_neurons_list which)
{
    const weir_lists *l = &w->t->list[which];
    const weir_place begin = w->s->pass.at[w->s->pass.taken[p->r]];
    const float end = which == WEIR_NEURONS_BOTTOM ? INFINITY : -INFINITY;
    look o = {.w = w, .p = p, .which = which};
    float first[BLOCK];
    bool rest = false;
    for (int j = 0; j < BLOCK; j++) { /* nothing is beyond the gate of a neuron that there is not */
        o.gate[j] = j < p->nb ? gate_of(l, which, p->first + j, begin) : -end;
        o.done[j] = -end;
        const bool hungry = j < p->nb && l->size[p->first + j] < l->room && p->m > l->room;
        first[j] = end;
        if (hungry && !bound_of_bins(w, p, p->first + j, which, l->room, &first[j]))
            first[j] = nth_best(p->x + j, p->m, which, l->room);
        o.gate[j] = stricter(which, first[j], o.gate[j]);
    }
    look_at_rows(&o);
    for (int j = 0; j < BLOCK; j++) {
        const float gate = first[j] != end ? gate_of(l, which, p->first + j, begin) : -end;
        const bool open = is_beyond(which, first[j], gate);
        o.gate[j] = open ? gate : -end;
        o.done[j] = open ? first[j] : -end;
        rest = rest || open;
    }
    if (rest)
        look_at_rows(&o);
}

/* --- samples of bands */

static bool sample_part(const work *w, const part *p)
{
    const weir_pass *pass = &w->s->pass;
    for (int64_t r = 0; r < p->m; r++) {
        const int32_t c = pass->taken[p->r + r];
        for (int64_t j = 0; j < p->nb; j++) {
            const float x = p->x[r * BLOCK + j];
            if (!isfinite(x))
                continue;
            const weir_sample e = {pass->hash[c], pass->at[c], x, (uint32_t)weir_neurons_bin(x)};
            if (weir_samples_put(&w->t->samples, p->first + j, w->s->o.per_band, &e, NULL) != WEIR_OK)
                return false;
        }
    }
    return true;
}

/* --- blocks */

static void add_part(work *w, const part *p)
{
    const weir_neurons *s = w->s;
    count_part(w, p);
    if (s->o.rank == WEIR_RANK_MEAN)
        weir_mean_add(s, w->t, p->first, p->nb, p->x, p->r, p->m);
    else
        for (int which = 0; which < WEIR_NEURONS_LISTS; which++)
            if (w->t->list[which].room)
                list_part(w, p, (weir_neurons_list)which);
    if (s->o.per_band > 0 && !sample_part(w, p))
        w->failed = true;
}

static void add_block(void *ctx, int64_t block, int thread)
{
    work *w = ctx;
    float *x = w->s->scratch[thread];
    part p = {.first = block * BLOCK, .x = x};
    p.nb = w->t->n - p.first < BLOCK ? w->t->n - p.first : BLOCK;
    for (p.r = 0; p.r < w->m; p.r += SOME) {
        p.m = w->m - p.r < SOME ? w->m - p.r : SOME;
        fetch_hist(w->t, &p);
        fetch_lists(w, &p);
        pack(w, &p, x);
        add_part(w, &p);
    }
}

/* --- a table */

/* Which of the pass's counted rows this table takes: those that it has not seen and that are not skipped. */
static int64_t take(weir_neurons *s, weir_ntable *t, const weir_neurons_values *v)
{
    const weir_pass *p = &s->pass;
    int64_t m = 0;
    for (int32_t c = 0; c < p->counted; c++) {
        if (t->fed && !weir_place_before(t->last, p->at[c]))
            continue;
        t->fed = true;
        t->last = p->at[c];
        if (v->skip && v->skip[p->row[c]])
            t->skipped++;
        else
            p->taken[m++] = c;
    }
    return m;
}

static void spill_one(void *ctx, int64_t i, int thread)
{
    weir_ntable *t = ctx;
    (void)thread;
    for (int64_t b = i * WEIR_NEURONS_BINS; b < (i + 1) * WEIR_NEURONS_BINS; b++) {
        t->hist_all[b] += t->hist[b];
        t->hist[b] = 0;
    }
}

/* Before the small counters of the histogram could overflow, they are added to large ones. */
static weir_status make_counters_ready(const weir_neurons *s, weir_ntable *t, int64_t m, weir_err *err)
{
    if (t->hist_rows + m <= INT32_MAX) {
        t->hist_rows += m;
        return WEIR_OK;
    }
    if (!t->hist_all)
        t->hist_all = weir_calloc((size_t)t->n, WEIR_NEURONS_BINS * sizeof *t->hist_all);
    if (!t->hist_all)
        return weir_nomem(err, "a histogram of so many rows");
    weir_parallel_for(s->threads, t->n, 0, spill_one, t);
    t->hist_rows = m;
    return WEIR_OK;
}

static weir_status add_random(weir_neurons *s, weir_ntable *t, const weir_neurons_values *v, int64_t m, weir_err *err)
{
    const weir_pass *p = &s->pass;
    const int64_t most = s->o.random;
    weir_random *random = &t->random;
    float *values = NULL;
    weir_status st = WEIR_OK;
    for (int64_t r = 0; r < m && st == WEIR_OK; r++) {
        const int32_t c = p->taken[r];
        if (most == 0 || (random->n == most && p->hash[c] > random->hash[most - 1]))
            continue;
        if (!values && !(values = weir_calloc((size_t)t->n, sizeof *values)))
            return weir_nomem(err, "random places");
        const float *x = v->x + p->row[c] * v->stride;
        for (int64_t i = 0; i < t->n; i++)
            values[i] = x[v->whole && t->pub.units ? t->pub.units[i] : i];
        st = weir_random_put(random, most, t->n, p->hash[c], p->at[c], values, 1, err);
    }
    weir_free(values);
    return st;
}

weir_status weir_neurons_add(weir_neurons *s, int t, const weir_neurons_values *v, weir_err *err)
{
    if (t < 0 || t >= s->n_tables)
        return weir_fail(err, WEIR_E_ARG, "table %d: there are %d", t, s->n_tables);
    weir_ntable *table = &s->table[t];
    const int64_t m = take(s, table, v);
    if (m == 0)
        return WEIR_OK;
    WEIR_TRY(make_counters_ready(s, table, m, err));
    WEIR_TRY(weir_detail_add(s, t, v, s->pass.taken, m, err));
    WEIR_TRY(add_random(s, table, v, m, err));
    if (s->o.rank == WEIR_RANK_MEAN)
        WEIR_TRY(weir_mean_ends(s, table, m, err));
    work w = {.s = s, .t = table, .v = v, .m = m};
    weir_parallel_for(s->threads, (table->n + BLOCK - 1) / BLOCK, 1, add_block, &w);
    if (w.failed)
        return weir_nomem(err, "samples of places");
    if (s->o.rank == WEIR_RANK_MEAN)
        weir_mean_go_on(s, table, m);
    table->rows += m;
    s->finished = false;
    return WEIR_OK;
}

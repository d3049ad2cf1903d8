/* search/file_read_table.c: one table out of a file. Nothing is believed: what cannot be true of any text is an error
 * that names the array. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "search/file.h"

typedef struct sheet {
    weir_arrays_in *r;
    weir_neurons *s;
    weir_ntable *table;
    const char *group;
    int64_t n;
} sheet;

static weir_status get(const sheet *h, const char *name, weir_array_type type, int rank, const int64_t *dim, void *out,
                       weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    weir_file_path(path, h->group, name);
    return weir_arrays_get(h->r, path, type, rank, dim, out, err);
}

/* A new array of this shape: *out, to be freed. */
static weir_status get_new(const sheet *h, const char *name, weir_array_type type, int rank, const int64_t *dim,
                           void *out, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    int64_t there[WEIR_ARRAY_RANK], count = 1;
    void *p = NULL;
    weir_file_path(path, h->group, name);
    WEIR_TRY(
        weir_arrays_shape(h->r, path, type, rank, there, err)); /* so much the file has; is it what it should have? */
    for (int i = 0; i < rank; i++) {
        if (there[i] != dim[i])
            return weir_arrays_bad(h->r, path, err, "dimension %d is %" PRId64 " instead of %" PRId64, i, there[i],
                                   dim[i]);
        count *= dim[i];
    }
    if (!(p = weir_calloc((size_t)count, weir_array_type_bytes(type))))
        return weir_nomem(err, "an array");
    weir_status st = weir_arrays_get(h->r, path, type, rank, dim, p, err);
    if (st)
        weir_free(p);
    else
        memcpy(out, &p, sizeof p);
    return st;
}

static weir_status bad(const sheet *h, const char *name, int64_t i, const char *what, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    weir_file_path(path, h->group, name);
    return weir_arrays_bad(h->r, path, err, "is damaged: neuron %" PRId64 " has %s", i, what);
}

/* --- statistics */

static weir_status get_rows(const sheet *h, weir_err *err)
{
    weir_ntable *t = h->table;
    WEIR_TRY(weir_arrays_get_int(h->r, h->group, "rows", &t->rows, err));
    WEIR_TRY(weir_arrays_get_int(h->r, h->group, "skipped", &t->skipped, err));
    if (t->rows < 0 || t->skipped < 0 || t->rows > INT64_MAX / 4 || t->skipped > INT64_MAX / 4)
        return weir_arrays_bad(h->r, h->group, err, "is damaged: an impossible number of rows");
    WEIR_TRY(get(h, "nonfinite", WEIR_ARRAY_I64, 1, &h->n, t->nonfinite, err));
    for (int64_t i = 0; i < h->n; i++)
        if (t->nonfinite[i] < 0 || t->nonfinite[i] > t->rows)
            return bad(h, "nonfinite", i, "more values than rows", err);
    return WEIR_OK;
}

static int64_t counted(const sheet *h, int64_t i)
{
    return h->table->rows - h->table->nonfinite[i];
}

static weir_status take_extremes(const sheet *h, const float *low, const float *high, weir_err *err)
{
    for (int64_t i = 0; i < h->n; i++) {
        if (counted(h, i) == 0)
            continue;
        if (!isfinite(low[i]) || !isfinite(high[i]) || low[i] > high[i])
            return bad(h, "min", i, "an impossible lowest or highest value", err);
        h->table->min[i] = low[i];
        h->table->max[i] = high[i];
    }
    return WEIR_OK;
}

static weir_status get_extremes(const sheet *h, weir_err *err)
{
    float *low = NULL, *high = NULL;
    weir_status st = get_new(h, "min", WEIR_ARRAY_F32, 1, &h->n, &low, err);
    if (!st)
        st = get_new(h, "max", WEIR_ARRAY_F32, 1, &h->n, &high, err);
    if (!st)
        st = take_extremes(h, low, high, err);
    weir_free(low);
    weir_free(high);
    return st;
}

static weir_status get_above(const sheet *h, weir_err *err)
{
    const int64_t thresholds = h->s->o.n_thresholds, dim[2] = {h->n, thresholds};
    WEIR_TRY(get(h, "above", WEIR_ARRAY_I64, 2, dim, h->table->above, err));
    for (int64_t i = 0; i < h->n * thresholds; i++)
        if (h->table->above[i] < 0 || h->table->above[i] > counted(h, i / thresholds))
            return bad(h, "above", i / thresholds, "more values above a threshold than values", err);
    return WEIR_OK;
}

static weir_status take_sums(const sheet *h, const uint64_t *word, const int64_t *beyond, weir_err *err)
{
    enum { POWERS = 4 };
    for (int64_t i = 0; i < h->n; i++) {
        weir_sums *a = &h->table->sums[i];
        if (beyond[i] < 0 || beyond[i] > counted(h, i))
            return bad(h, "beyond", i, "more values than rows", err);
        a->beyond = beyond[i];
        for (int m = 0; m < POWERS; m++)
            memcpy(a->power[m].w, word + (i * POWERS + m) * WEIR_SUM_WORDS, sizeof a->power[m].w);
    }
    return WEIR_OK;
}

static weir_status get_sums(const sheet *h, weir_err *err)
{
    const int64_t dim[3] = {h->n, 4, WEIR_SUM_WORDS};
    uint64_t *word = NULL;
    int64_t *beyond = NULL;
    weir_status st = get_new(h, "sums", WEIR_ARRAY_U64, 3, dim, &word, err);
    if (!st)
        st = get_new(h, "beyond", WEIR_ARRAY_I64, 1, &h->n, &beyond, err);
    if (!st)
        st = take_sums(h, word, beyond, err);
    weir_free(word);
    weir_free(beyond);
    return st;
}

static weir_status take_hist(const sheet *h, const int64_t *hist, int64_t first, int64_t bins, weir_err *err)
{
    weir_ntable *t = h->table;
    const bool narrow = t->rows < INT32_MAX; /* each bin fits into the 32 bits before the first spill */
    if (!narrow)
        WEIR_TRY(weir_hist_widen(t, err));
    for (int64_t i = 0; i < h->n; i++) {
        int64_t left = counted(h, i);
        for (int64_t b = 0; b < bins; b++) {
            const int64_t count = hist[i * bins + b];
            if (count < 0 || count > left)
                return bad(h, "hist", i, "other values in its bins than it counted", err);
            left -= count;
            if (narrow)
                t->hist[i * WEIR_NEURONS_BINS + first + b] = (uint32_t)count;
            else
                t->hist_all[i * WEIR_NEURONS_BINS + first + b] = count;
        }
        if (left != 0)
            return bad(h, "hist", i, "other values in its bins than it counted", err);
    }
    t->hist_rows = narrow ? t->rows : 0;
    return WEIR_OK;
}

static weir_status get_hist(const sheet *h, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    int64_t dim[2], first, *hist;
    weir_file_path(path, h->group, "hist");
    WEIR_TRY(weir_arrays_shape(h->r, path, WEIR_ARRAY_I64, 2, dim, err));
    WEIR_TRY(weir_arrays_get_int(h->r, path, "first_bin", &first, err));
    if (dim[1] > WEIR_NEURONS_BINS || first < 0 || first > WEIR_NEURONS_BINS - dim[1])
        return weir_arrays_bad(h->r, path, err, "is damaged: it has bins that do not exist");
    dim[0] = h->n;
    WEIR_TRY(get_new(h, "hist", WEIR_ARRAY_I64, 2, dim, &hist, err));
    weir_status st = take_hist(h, hist, first, dim[1], err);
    weir_free(hist);
    return st;
}

/* --- places */

typedef struct places {
    float *value;
    int64_t *doc, *pos, *count; /* count NULL: not kept */
} places;

static void places_free(places *p)
{
    weir_free(p->value);
    weir_free(p->doc);
    weir_free(p->pos);
    weir_free(p->count);
}

/* NAME_value, NAME_doc, NAME_pos, and NAME_count if asked for. p is to be freed in every case. */
static weir_status get_places(const sheet *h, const char *name, int rank, const int64_t *dim, bool counts, places *p,
                              weir_err *err)
{
    char full[64];
    *p = (places){0};
    snprintf(full, sizeof full, "%s_value", name);
    WEIR_TRY(get_new(h, full, WEIR_ARRAY_F32, rank, dim, &p->value, err));
    snprintf(full, sizeof full, "%s_doc", name);
    WEIR_TRY(get_new(h, full, WEIR_ARRAY_I64, rank, dim, &p->doc, err));
    snprintf(full, sizeof full, "%s_pos", name);
    WEIR_TRY(get_new(h, full, WEIR_ARRAY_I64, rank, dim, &p->pos, err));
    snprintf(full, sizeof full, "%s_count", name);
    return counts ? get_new(h, full, WEIR_ARRAY_I64, rank, dim, &p->count, err) : WEIR_OK;
}

/* False: there is none at i, or it is no place. */
static bool place_at(const places *p, int64_t i, weir_place *at)
{
    if (p->doc[i] < 0 || p->doc[i] > UINT32_MAX || p->pos[i] < 0 || p->pos[i] > UINT32_MAX)
        return false;
    *at = (weir_place){(uint32_t)p->doc[i], (uint32_t)p->pos[i]};
    return true;
}

/* --- lists */

typedef struct listed {
    weir_neurons_list which;
    const char *name;
    places hits, next;
    uint64_t *key; /* NULL without dedup */
} listed;

static void listed_free(listed *l)
{
    places_free(&l->hits);
    places_free(&l->next);
    weir_free(l->key);
}

static weir_status get_listed(const sheet *h, listed *l, weir_err *err)
{
    const int64_t k = h->s->o.k, dim[2] = {h->n, k}, key[2] = {h->n, k + 1};
    char name[32];
    WEIR_TRY(get_places(h, l->name, 2, dim, true, &l->hits, err));
    snprintf(name, sizeof name, "%s_next", l->name);
    WEIR_TRY(get_places(h, name, 1, &h->n, false, &l->next, err));
    snprintf(name, sizeof name, "%s_key", l->name);
    return h->s->o.dedup == WEIR_DEDUP_NONE ? WEIR_OK : get_new(h, name, WEIR_ARRAY_U64, 2, key, &l->key, err);
}

/* Entry j of neuron i, of k + 1. False: its place is no place, and `none` says whether it says so. */
static bool entry_at(const listed *l, int64_t k, int64_t i, int64_t j, weir_entry *e, bool *none)
{
    const places *p = j < k ? &l->hits : &l->next;
    const int64_t at = j < k ? i * k + j : i, count = j < k ? p->count[at] : 0;
    *none = p->doc[at] == -1;
    if (!place_at(p, at, &e->at) || !isfinite(p->value[at]) || count < 0 || count > UINT32_MAX)
        return false;
    e->value = p->value[at];
    e->count = l->key ? (uint32_t)count : 1;
    e->key = l->key ? l->key[i * (k + 1) + j] : 0;
    return true;
}

static weir_status take_list(const sheet *h, const listed *l, int64_t i, weir_err *err)
{
    const int64_t k = h->s->o.k;
    weir_lists *to = &h->table->list[l->which];
    weir_entry last = {0}, e = {0};
    char name[32];
    int64_t n = 0;
    bool none, good = true;
    snprintf(name, sizeof name, "%s_value", l->name);
    while (good && n <= k && entry_at(l, k, i, n, &e, &none)) {
        good = n == 0 || weir_entry_better(l->which, last.value, last.at, e.value, e.at);
        weir_lists_put(to, l->which, i, &e);
        last = e;
        n++;
    }
    for (int64_t j = n; good && j <= k; j++)
        good = !entry_at(l, k, i, j, &e, &none) && none;
    weir_lists_settle(to, l->which, i);
    if (!good || to->size[i] != n || n > h->table->rows)
        return bad(h, name, i, "a list that is out of order, or has a text or a gap twice", err);
    return WEIR_OK;
}

static weir_status get_lists(const sheet *h, weir_err *err)
{
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        listed l = {.which = (weir_neurons_list)which, .name = weir_neurons_list_names[which]};
        if (!(h->s->o.lists & 1u << which))
            continue;
        weir_status st = get_listed(h, &l, err);
        for (int64_t i = 0; i < h->n && !st; i++)
            st = take_list(h, &l, i, err);
        listed_free(&l);
        WEIR_TRY(st);
    }
    return WEIR_OK;
}

/* --- samples */

static weir_status take_sample(const sheet *h, const places *p, int64_t i, int64_t j, weir_err *err)
{
    weir_sample e = {.value = p->value[j]};
    if (!place_at(p, j, &e.at) || !isfinite(e.value))
        return bad(h, "sample_value", i, "a sample that is no place", err);
    e.hash = weir_place_hash(h->s->o.seed, e.at);
    e.bin = (uint32_t)weir_neurons_bin(e.value);
    return weir_samples_put(&h->table->samples, i, h->s->o.per_band, &e, err);
}

static weir_status take_samples(const sheet *h, const int64_t *offset, const places *p, weir_err *err)
{
    for (int64_t i = 0; i < h->n; i++) {
        for (int64_t j = offset[i]; j < offset[i + 1]; j++)
            WEIR_TRY(take_sample(h, p, i, j, err));
        if (weir_samples_get(&h->table->samples, i, NULL, 0) != offset[i + 1] - offset[i])
            return bad(h, "sample_value", i, "too many samples in a bin", err);
    }
    return WEIR_OK;
}

static weir_status check_offsets(const sheet *h, const int64_t *offset, weir_err *err)
{
    const int64_t most = h->s->o.per_band * WEIR_NEURONS_BINS;
    for (int64_t i = 0; i < h->n; i++)
        if (offset[i + 1] < offset[i] || offset[i + 1] - offset[i] > most)
            return bad(h, "sample_offsets", i, "an impossible number of samples", err);
    return offset[0] == 0 ? WEIR_OK : bad(h, "sample_offsets", 0, "samples that do not begin at 0", err);
}

static weir_status get_samples(const sheet *h, weir_err *err)
{
    const int64_t ends = h->n + 1;
    int64_t *offset;
    places p = {0};
    if (h->s->o.per_band == 0)
        return WEIR_OK;
    WEIR_TRY(get_new(h, "sample_offsets", WEIR_ARRAY_I64, 1, &ends, &offset, err));
    weir_status st = check_offsets(h, offset, err);
    if (!st)
        st = get_places(h, "sample", 1, &offset[h->n], false, &p, err);
    if (!st)
        st = take_samples(h, offset, &p, err);
    places_free(&p);
    weir_free(offset);
    return st;
}

/* values [n, m]: those of place j are m apart. */
static weir_status take_random(const sheet *h, const places *p, int64_t m, weir_err *err)
{
    weir_random *r = &h->table->random;
    float *row = weir_calloc((size_t)h->n, sizeof *row);
    weir_status st = row ? WEIR_OK : weir_nomem(err, "random places");
    for (int64_t j = 0; j < m && !st; j++) {
        weir_place at;
        for (int64_t i = 0; i < h->n; i++)
            row[i] = p->value[i * m + j];
        if (!place_at(p, j, &at))
            st = bad(h, "random_doc", 0, "a random place that is none", err);
        else
            st = weir_random_put(r, h->s->o.random, h->n, weir_place_hash(h->s->o.seed, at), at, row, 1, err);
    }
    weir_free(row);
    if (!st && r->n != m)
        st = bad(h, "random_doc", 0, "a random place twice", err);
    return st;
}

static weir_status get_random(const sheet *h, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    int64_t m;
    places p = {0};
    if (h->s->o.random == 0)
        return WEIR_OK;
    weir_file_path(path, h->group, "random_doc");
    WEIR_TRY(weir_arrays_shape(h->r, path, WEIR_ARRAY_I64, 1, &m, err));
    if (m > h->s->o.random)
        return weir_arrays_bad(h->r, path, err, "has %" PRId64 " places of %" PRId64, m, h->s->o.random);
    const int64_t dim[2] = {h->n, m};
    weir_status st = get_new(h, "random_doc", WEIR_ARRAY_I64, 1, &m, &p.doc, err);
    if (!st)
        st = get_new(h, "random_pos", WEIR_ARRAY_I64, 1, &m, &p.pos, err);
    if (!st)
        st = get_new(h, "random_value", WEIR_ARRAY_F32, 2, dim, &p.value, err);
    if (!st)
        st = take_random(h, &p, m, err);
    places_free(&p);
    return st;
}

weir_status weir_file_get_table(weir_arrays_in *r, weir_neurons *s, int t, const char *group, weir_err *err)
{
    const sheet h = {.r = r, .s = s, .table = &s->table[t], .group = group, .n = s->table[t].n};
    WEIR_TRY(get_rows(&h, err));
    WEIR_TRY(get_extremes(&h, err));
    WEIR_TRY(get_above(&h, err));
    WEIR_TRY(get_hist(&h, err));
    WEIR_TRY(get_sums(&h, err));
    WEIR_TRY(get_lists(&h, err));
    WEIR_TRY(get_samples(&h, err));
    WEIR_TRY(get_random(&h, err));
    return weir_file_get_weights(r, s, t, group, err);
}

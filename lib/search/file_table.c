/* search/file_table.c: one table's arrays in a file. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "search/file.h"

/* Where a table's arrays go. */
typedef struct sheet {
    weir_arrays_out *w;
    const weir_neurons *s;
    int t;
    const weir_ntable *table;
    char group[WEIR_ARRAY_NAMES];
} sheet;

static weir_status put(const sheet *h, const char *name, weir_array_type type, int rank, const int64_t *dim,
                       const void *p, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    weir_file_path(path, h->group, name);
    return weir_arrays_put(h->w, path, type, rank, dim, p, err);
}

static weir_status put_column(const sheet *h, const char *name, weir_array_type type, const void *p, weir_err *err)
{
    return put(h, name, type, 1, &h->table->n, p, err);
}

/* One pattern for what is no number, and no -0 where the sign would depend on which of the zeros came first. */
static double plain(double x)
{
    return isnan(x) ? (double)NAN : x;
}

static float plainf(float x)
{
    return isnan(x) ? NAN : x + 0.0f;
}

/* --- statistics */

static weir_status put_units(const sheet *h, weir_err *err)
{
    const weir_neurons_table *pub = &h->table->pub;
    if (pub->units)
        return put_column(h, "unit", WEIR_ARRAY_I64, pub->units, err);
    int64_t *unit = weir_calloc((size_t)pub->n, sizeof *unit);
    if (!unit)
        return weir_nomem(err, "a table's units");
    for (int64_t i = 0; i < pub->n; i++)
        unit[i] = i;
    weir_status st = put_column(h, "unit", WEIR_ARRAY_I64, unit, err);
    weir_free(unit);
    return st;
}

enum { MOMENTS = 4, EXTREMES = 2 };

typedef struct columns {
    int64_t *count, *above;
    double *moment, *density; /* moment [MOMENTS, n] */
    float *extreme;           /* [EXTREMES, n] */
} columns;

static bool columns_new(columns *c, size_t n, size_t thresholds)
{
    c->count = weir_calloc(n, sizeof *c->count);
    c->above = weir_calloc(n, thresholds * sizeof *c->above);
    c->moment = weir_calloc(n, MOMENTS * sizeof *c->moment);
    c->density = weir_calloc(n, thresholds * sizeof *c->density);
    c->extreme = weir_calloc(n, EXTREMES * sizeof *c->extreme);
    return c->count && c->above && c->moment && c->density && c->extreme;
}

static void columns_free(columns *c)
{
    weir_free(c->count);
    weir_free(c->above);
    weir_free(c->moment);
    weir_free(c->density);
    weir_free(c->extreme);
}

typedef struct filling {
    columns *c;
    const sheet *h;
} filling;

static void columns_fill(void *ctx, int64_t i, int thread)
{
    const filling *f = ctx;
    columns *c = f->c;
    const int64_t n = f->h->table->n, thresholds = f->h->s->o.n_thresholds;
    weir_neuron_stats a;
    (void)thread;
    weir_neurons_stats(f->h->s, f->h->t, i, &a);
    const double moment[MOMENTS] = {a.mean, a.sd, a.skew, a.kurtosis};
    c->count[i] = a.count;
    for (int m = 0; m < MOMENTS; m++)
        c->moment[m * n + i] = plain(moment[m]);
    c->extreme[i] = plainf(a.min);
    c->extreme[n + i] = plainf(a.max);
    for (int64_t j = 0; j < thresholds; j++) {
        c->above[i * thresholds + j] = a.above[j];
        c->density[i * thresholds + j] = a.count ? (double)a.above[j] / (double)a.count : (double)NAN;
    }
}

static weir_status put_columns(const sheet *h, const columns *c, weir_err *err)
{
    static const char *const moment[MOMENTS] = {"mean", "sd", "skew", "kurtosis"};
    const int64_t n = h->table->n, dim[2] = {n, h->s->o.n_thresholds};
    WEIR_TRY(put_column(h, "count", WEIR_ARRAY_I64, c->count, err));
    WEIR_TRY(put_column(h, "nonfinite", WEIR_ARRAY_I64, h->table->nonfinite, err));
    for (int m = 0; m < MOMENTS; m++)
        WEIR_TRY(put_column(h, moment[m], WEIR_ARRAY_F64, c->moment + m * n, err));
    WEIR_TRY(put_column(h, "min", WEIR_ARRAY_F32, c->extreme, err));
    WEIR_TRY(put_column(h, "max", WEIR_ARRAY_F32, c->extreme + n, err));
    WEIR_TRY(put(h, "above", WEIR_ARRAY_I64, 2, dim, c->above, err));
    return put(h, "density", WEIR_ARRAY_F64, 2, dim, c->density, err);
}

static weir_status put_stats(const sheet *h, weir_err *err)
{
    columns c = {0};
    weir_status st = WEIR_OK;
    if (!columns_new(&c, (size_t)h->table->n, (size_t)h->s->o.n_thresholds))
        st = weir_nomem(err, "a table's statistics");
    if (!st) {
        weir_parallel_for(h->s->threads, h->table->n, 0, columns_fill, &(filling){&c, h});
        st = put_columns(h, &c, err);
    }
    columns_free(&c);
    return st;
}

/* The exact sums, from which mean to kurtosis come: two's complement, the lowest word first. */
static weir_status put_sums(const sheet *h, weir_err *err)
{
    const int64_t n = h->table->n, dim[3] = {n, MOMENTS, WEIR_SUM_WORDS};
    uint64_t *word = weir_calloc((size_t)n, MOMENTS * WEIR_SUM_WORDS * sizeof *word);
    int64_t *beyond = weir_calloc((size_t)n, sizeof *beyond);
    weir_status st = word && beyond ? WEIR_OK : weir_nomem(err, "a table's sums");
    for (int64_t i = 0; i < n && !st; i++) {
        const weir_sums *a = &h->table->sums[i];
        for (int m = 0; m < MOMENTS; m++)
            memcpy(word + (i * MOMENTS + m) * WEIR_SUM_WORDS, a->power[m].w, sizeof a->power[m].w);
        beyond[i] = a->beyond;
    }
    if (!st)
        st = put(h, "sums", WEIR_ARRAY_U64, 3, dim, word, err);
    if (!st)
        st = put_column(h, "beyond", WEIR_ARRAY_I64, beyond, err);
    weir_free(word);
    weir_free(beyond);
    return st;
}

/* The range of bins in which any neuron has a value: [*first, *end). */
static void bins_used(const sheet *h, int *first, int *end)
{
    *first = WEIR_NEURONS_BINS;
    *end = 0;
    for (int64_t i = 0; i < h->table->n; i++) {
        if (!(h->table->min[i] <= h->table->max[i])) /* it has none */
            continue;
        const int low = weir_neurons_bin(h->table->min[i]), high = weir_neurons_bin(h->table->max[i]);
        *first = low < *first ? low : *first;
        *end = high >= *end ? high + 1 : *end;
    }
    if (*end == 0)
        *first = 0;
}

typedef struct bins {
    const sheet *h;
    int first, n;
    int64_t *out; /* [neurons, n] */
} bins;

static void copy_bins(void *ctx, int64_t i, int thread)
{
    const bins *b = ctx;
    int64_t hist[WEIR_NEURONS_BINS];
    (void)thread;
    weir_neurons_hist(b->h->s, b->h->t, i, hist);
    memcpy(b->out + i * b->n, hist + b->first, (size_t)b->n * sizeof *hist);
}

static weir_status put_hist(const sheet *h, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    int first, end;
    bins_used(h, &first, &end);
    const int64_t dim[2] = {h->table->n, end - first};
    int64_t *out = weir_calloc((size_t)dim[0], (size_t)dim[1] * sizeof *out);
    if (!out)
        return weir_nomem(err, "a table's histograms");
    weir_parallel_for(h->s->threads, dim[0], 0, copy_bins, &(bins){h, first, end - first, out});
    weir_status st = put(h, "hist", WEIR_ARRAY_I64, 2, dim, out, err);
    weir_free(out);
    weir_file_path(path, h->group, "hist");
    return st ? st : weir_arrays_put_int(h->w, path, "first_bin", first, err);
}

/* --- places: columns of one list or sample, [rows, k], with NaN and -1 where there is none */

typedef struct places {
    int64_t n; /* rows * k */
    float *value;
    int64_t *doc, *pos, *count;
} places;

static weir_status places_new(places *p, int64_t n, weir_err *err)
{
    p->n = n;
    p->value = weir_calloc((size_t)n, sizeof *p->value);
    p->doc = weir_calloc((size_t)n, sizeof *p->doc);
    p->pos = weir_calloc((size_t)n, sizeof *p->pos);
    p->count = weir_calloc((size_t)n, sizeof *p->count);
    if (!p->value || !p->doc || !p->pos || !p->count)
        return weir_nomem(err, "a list's places");
    for (int64_t i = 0; i < n; i++) {
        p->value[i] = NAN;
        p->doc[i] = p->pos[i] = p->count[i] = -1;
    }
    return WEIR_OK;
}

static void places_free(places *p)
{
    weir_free(p->value);
    weir_free(p->doc);
    weir_free(p->pos);
    weir_free(p->count);
}

static void places_set(places *p, int64_t at, const weir_neuron_hit *hit)
{
    p->value[at] = isfinite(hit->value) ? hit->value : NAN;
    p->doc[at] = hit->doc;
    p->pos[at] = hit->pos;
    p->count[at] = hit->count;
}

/* As NAME_value, NAME_doc, NAME_pos and, if asked for, NAME_count. */
static weir_status put_places(const sheet *h, const char *name, const places *p, int rank, const int64_t *dim,
                              bool counts, weir_err *err)
{
    const struct {
        const char *what;
        weir_array_type type;
        const void *p;
    } all[] = {{"value", WEIR_ARRAY_F32, p->value},
               {"doc", WEIR_ARRAY_I64, p->doc},
               {"pos", WEIR_ARRAY_I64, p->pos},
               {"count", WEIR_ARRAY_I64, p->count}};
    for (size_t i = 0; i < (counts ? 4 : 3); i++) {
        char full[64];
        snprintf(full, sizeof full, "%s_%s", name, all[i].what);
        WEIR_TRY(put(h, full, all[i].type, rank, dim, all[i].p, err));
    }
    return WEIR_OK;
}

/* --- lists */

static weir_status list_hits(const sheet *h, weir_neurons_list which, places *p, weir_err *err)
{
    const int64_t k = h->s->o.k;
    weir_neuron_hit *hit = weir_calloc((size_t)k, sizeof *hit);
    if (!hit)
        return weir_nomem(err, "a list's places");
    for (int64_t i = 0; i < h->table->n; i++) {
        const int64_t n = weir_neurons_hits(h->s, h->t, i, which, hit);
        for (int64_t j = 0; j < n; j++)
            places_set(p, i * k + j, &hit[j]);
    }
    weir_free(hit);
    return WEIR_OK;
}

static weir_status put_hits(const sheet *h, weir_neurons_list which, weir_err *err)
{
    const int64_t dim[2] = {h->table->n, h->s->o.k};
    places p = {0};
    weir_status st = places_new(&p, dim[0] * dim[1], err);
    if (!st)
        st = list_hits(h, which, &p, err);
    if (!st)
        st = put_places(h, weir_neurons_list_names[which], &p, 2, dim, true, err);
    places_free(&p);
    return st;
}

/* The place that just missed the list: which counts are known depends on it. */
static weir_status put_next(const sheet *h, weir_neurons_list which, weir_err *err)
{
    const weir_lists *l = &h->table->list[which];
    const int64_t k = h->s->o.k;
    char name[32];
    places p = {0};
    weir_status st = places_new(&p, l->n, err);
    for (int64_t i = 0; i < l->n && !st; i++)
        if (l->size[i] > k) {
            const weir_entry e = weir_lists_get(l, i, k);
            places_set(&p, i, &(weir_neuron_hit){.value = e.value, .doc = e.at.doc, .pos = e.at.pos});
        }
    snprintf(name, sizeof name, "%s_next", weir_neurons_list_names[which]);
    if (!st)
        st = put_places(h, name, &p, 1, &h->table->n, false, err);
    places_free(&p);
    return st;
}

/* What tells duplicates, of the list's places and of the next. */
static weir_status put_keys(const sheet *h, weir_neurons_list which, weir_err *err)
{
    const weir_lists *l = &h->table->list[which];
    const int64_t room = h->s->o.k + 1, dim[2] = {l->n, room};
    char name[32];
    uint64_t *key = weir_calloc((size_t)l->n, (size_t)room * sizeof *key);
    if (!key)
        return weir_nomem(err, "a list's keys");
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t j = 0; j < l->size[i]; j++)
            key[i * room + j] = weir_lists_get(l, i, j).key;
    snprintf(name, sizeof name, "%s_key", weir_neurons_list_names[which]);
    weir_status st = put(h, name, WEIR_ARRAY_U64, 2, dim, key, err);
    weir_free(key);
    return st;
}

static weir_status put_lists(const sheet *h, weir_err *err)
{
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        if (!(h->s->o.lists & 1u << which))
            continue;
        WEIR_TRY(put_hits(h, (weir_neurons_list)which, err));
        WEIR_TRY(put_next(h, (weir_neurons_list)which, err));
        if (h->s->o.dedup != WEIR_DEDUP_NONE)
            WEIR_TRY(put_keys(h, (weir_neurons_list)which, err));
    }
    return WEIR_OK;
}

/* --- samples */

static weir_status put_bands(const sheet *h, weir_err *err)
{
    const int64_t per = h->s->o.per_band, dim[3] = {h->table->n, WEIR_NEURONS_BANDS, per};
    places p = {0};
    weir_neuron_hit *hit = weir_calloc((size_t)per, sizeof *hit);
    weir_status st = hit ? places_new(&p, dim[0] * dim[1] * per, err) : weir_nomem(err, "a band's places");
    for (int64_t i = 0; i < dim[0] && !st; i++)
        for (int b = 0; b < WEIR_NEURONS_BANDS; b++) {
            const int64_t n = weir_neurons_band(h->s, h->t, i, b, hit);
            for (int64_t j = 0; j < n; j++)
                places_set(&p, (i * WEIR_NEURONS_BANDS + b) * per + j, &hit[j]);
        }
    if (!st)
        st = put_places(h, "band", &p, 3, dim, false, err);
    places_free(&p);
    weir_free(hit);
    return st;
}

/* All samples of all bins, neuron after neuron: which of them a band shows is known only at the end. */
static weir_status put_bins(const sheet *h, int64_t total, const int64_t *offset, weir_err *err)
{
    const int64_t n = h->table->n, dim = n + 1;
    places p = {0};
    weir_sample *one = NULL;
    weir_status st = places_new(&p, total, err);
    for (int64_t i = 0; i < n && !st; i++) {
        const int64_t m = offset[i + 1] - offset[i];
        if (!(one = weir_calloc((size_t)m, sizeof *one))) {
            st = weir_nomem(err, "samples");
            break;
        }
        weir_samples_get(&h->table->samples, i, one, m);
        for (int64_t j = 0; j < m; j++)
            places_set(&p, offset[i] + j,
                       &(weir_neuron_hit){.value = one[j].value, .doc = one[j].at.doc, .pos = one[j].at.pos});
        weir_free(one);
    }
    if (!st)
        st = put(h, "sample_offsets", WEIR_ARRAY_I64, 1, &dim, offset, err);
    if (!st)
        st = put_places(h, "sample", &p, 1, &total, false, err);
    places_free(&p);
    return st;
}

static weir_status put_samples(const sheet *h, weir_err *err)
{
    const int64_t n = h->table->n;
    if (h->s->o.per_band == 0)
        return WEIR_OK;
    WEIR_TRY(put_bands(h, err));
    int64_t *offset = weir_calloc((size_t)n + 1, sizeof *offset);
    if (!offset)
        return weir_nomem(err, "samples");
    for (int64_t i = 0; i < n; i++)
        offset[i + 1] = offset[i] + weir_samples_get(&h->table->samples, i, NULL, 0);
    weir_status st = put_bins(h, offset[n], offset, err);
    weir_free(offset);
    return st;
}

/* Random places, in the order of their hash, and the values of all neurons there: [n, places]. */
static weir_status random_values(const sheet *h, int64_t *doc, int64_t *pos, float *value, weir_err *err)
{
    const weir_random *r = &h->table->random;
    const int64_t n = h->table->n, dim[2] = {n, r->n};
    for (int64_t m = 0; m < r->n; m++) {
        doc[m] = r->at[m].doc;
        pos[m] = r->at[m].pos;
        const float *row = r->value + r->row[m] * n;
        for (int64_t i = 0; i < n; i++)
            value[i * r->n + m] = isfinite(row[i]) ? row[i] : NAN;
    }
    WEIR_TRY(put(h, "random_doc", WEIR_ARRAY_I64, 1, &r->n, doc, err));
    WEIR_TRY(put(h, "random_pos", WEIR_ARRAY_I64, 1, &r->n, pos, err));
    return put(h, "random_value", WEIR_ARRAY_F32, 2, dim, value, err);
}

static weir_status put_random(const sheet *h, weir_err *err)
{
    const size_t m = (size_t)h->table->random.n;
    if (h->s->o.random == 0)
        return WEIR_OK;
    int64_t *doc = weir_calloc(m, sizeof *doc), *pos = weir_calloc(m, sizeof *pos);
    float *value = weir_calloc((size_t)h->table->n, m * sizeof *value);
    weir_status st =
        doc && pos && value ? random_values(h, doc, pos, value, err) : weir_nomem(err, "a table's random places");
    weir_free(doc);
    weir_free(pos);
    weir_free(value);
    return st;
}

/* --- the table */

static weir_status put_attributes(const sheet *h, weir_err *err)
{
    const weir_neurons_table *pub = &h->table->pub;
    const struct {
        const char *name;
        int64_t v;
    } ints[] = {{"table", h->t},
                {"layer", pub->layer},
                {"width", pub->width},
                {"rows", h->table->rows},
                {"skipped", h->table->skipped}};
    WEIR_TRY(weir_arrays_put_text(h->w, h->group, "hook", pub->hook, err));
    WEIR_TRY(weir_arrays_put_text(h->w, h->group, "site", pub->site, err));
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        WEIR_TRY(weir_arrays_put_int(h->w, h->group, ints[i].name, ints[i].v, err));
    return WEIR_OK;
}

weir_status weir_file_put_table(weir_arrays_out *w, const weir_neurons *s, int t, weir_err *err)
{
    sheet h = {.w = w, .s = s, .t = t, .table = &s->table[t]};
    WEIR_TRY(weir_file_group(s, t, h.group, err));
    WEIR_TRY(put_attributes(&h, err));
    WEIR_TRY(put_units(&h, err));
    WEIR_TRY(put_stats(&h, err));
    WEIR_TRY(put_hist(&h, err));
    WEIR_TRY(put_lists(&h, err));
    WEIR_TRY(put_samples(&h, err));
    WEIR_TRY(put_random(&h, err));
    WEIR_TRY(weir_file_put_weights(w, s, t, h.group, err));
    return put_sums(&h, err);
}

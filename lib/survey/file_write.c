/* survey/file_write.c: writing a result. README.md has the schema. */
#include <weir/arrays.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "survey/impl.h"

typedef struct sheet {
    weir_arrays_out *w;
    const weir_survey *c;
} sheet;

/* --- attributes */

static weir_status put_about(const sheet *h, weir_err *err)
{
    const weir_survey *c = h->c;
    const char *text[WEIR_SURVEY_TEXTS];
    const struct {
        const char *name;
        int64_t v;
    } ints[] = {{"softcap_left_out", c->about.no_softcap},
                {"padding_masked", c->about.padding_masked},
                {"shard", c->about.shard},
                {"shards", c->about.shards}};
    weir_survey_texts(&c->about, text);
    WEIR_TRY(weir_arrays_put_text(h->w, "", "weir_version", weir_version(), err));
    for (int i = 0; i < WEIR_SURVEY_TEXTS; i++)
        WEIR_TRY(weir_arrays_put_text(h->w, "", weir_survey_text_names[i], text[i], err));
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        WEIR_TRY(weir_arrays_put_int(h->w, "", ints[i].name, ints[i].v, err));
    return weir_arrays_put_attribute(h->w, "", "shards_in", WEIR_ARRAY_I64, c->n_shards, c->shard, err);
}

static weir_status put_counts(const sheet *h, weir_err *err)
{
    const weir_survey_counts *n = &h->c->counts;
    const struct {
        const char *name;
        int64_t v;
    } ints[] = {{"docs", n->docs},
                {"rows", n->rows},
                {"counted", n->masked[0]},
                {"masked_bos", n->masked[WEIR_MASK_BOS]},
                {"masked_special", n->masked[WEIR_MASK_SPECIAL]},
                {"masked_id", n->masked[WEIR_MASK_ID]},
                {"lost", n->lost},
                {"seen", n->seen},
                {"without_next", n->without_next}};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        WEIR_TRY(weir_arrays_put_int(h->w, "", ints[i].name, ints[i].v, err));
    return WEIR_OK;
}

/* --- lines */

static weir_status put_texts(const sheet *h, const char *group, const char *const *text, int64_t n, weir_err *err)
{
    weir_str *s = weir_calloc((size_t)n, sizeof *s);
    for (int64_t i = 0; s && i < n; i++)
        s[i] = (weir_str){text[i], strlen(text[i])};
    weir_status st = s ? weir_arrays_put_texts(h->w, group, s, n, err) : weir_nomem(err, "the names of lines");
    weir_free(s);
    return st;
}

static const char *name_of(const weir_survey_line *l)
{
    return l->name;
}

static const char *hook_of(const weir_survey_line *l)
{
    return l->hook;
}

static const char *site_of(const weir_survey_line *l)
{
    return l->site;
}

static weir_status put_lines(const sheet *h, weir_err *err)
{
    static const struct {
        const char *group;
        const char *(*of)(const weir_survey_line *);
    } columns[] = {{"lines/name", name_of}, {"lines/hook", hook_of}, {"lines/site", site_of}};
    const int64_t n = h->c->n;
    const char **text = weir_calloc((size_t)n, sizeof *text);
    int32_t *layer = weir_calloc((size_t)n, sizeof *layer);
    weir_status st = text && layer ? WEIR_OK : weir_nomem(err, "the names of lines");
    for (size_t i = 0; i < sizeof columns / sizeof *columns && !st; i++) {
        for (int64_t l = 0; l < n; l++)
            text[l] = columns[i].of(&h->c->line[l]);
        st = put_texts(h, columns[i].group, text, n, err);
    }
    for (int64_t l = 0; l < n && !st; l++)
        layer[l] = h->c->line[l].layer;
    if (!st)
        st = weir_arrays_put(h->w, "lines/layer", WEIR_ARRAY_I32, 1, &n, layer, err);
    weir_free(text);
    weir_free(layer);
    return st;
}

/* --- values: one array after another, made in one buffer */

/* What a line's value has in one array: `width` elements at p. */
typedef void put_one(const weir_survey *c, int line, weir_survey_value v, void *p);

static void put_count(const weir_survey *c, int line, weir_survey_value v, void *p)
{
    memcpy(p, &weir_survey_sums_at(c, line, (int)v)->count, sizeof(int64_t));
}

static void put_lost(const weir_survey *c, int line, weir_survey_value v, void *p)
{
    memcpy(p, &weir_survey_sums_at(c, line, (int)v)->lost, sizeof(int64_t));
}

static void put_sum(const weir_survey *c, int line, weir_survey_value v, void *p)
{
    const unsigned __int128 sum = (unsigned __int128)weir_survey_sums_at(c, line, (int)v)->sum;
    const uint64_t words[2] = {(uint64_t)sum, (uint64_t)(sum >> 64)};
    memcpy(p, words, sizeof words);
}

static void put_mean(const weir_survey *c, int line, weir_survey_value v, void *p)
{
    const weir_survey_stat s = weir_survey_stat_of(c, line, v);
    const double mean = s.count ? s.mean : (double)NAN;
    memcpy(p, &mean, sizeof mean);
}

static void put_quantiles(const weir_survey *c, int line, weir_survey_value v, void *p)
{
    const weir_survey_stat s = weir_survey_stat_of(c, line, v);
    memcpy(p, s.quantile, sizeof s.quantile);
}

static void put_min(const weir_survey *c, int line, weir_survey_value v, void *p)
{
    const weir_survey_stat s = weir_survey_stat_of(c, line, v);
    memcpy(p, &s.min, sizeof s.min);
}

static void put_max(const weir_survey *c, int line, weir_survey_value v, void *p)
{
    const weir_survey_stat s = weir_survey_stat_of(c, line, v);
    memcpy(p, &s.max, sizeof s.max);
}

static const struct {
    const char *name;
    weir_array_type type;
    int64_t width; /* 1: the array has one dimension */
    put_one *put;
} arrays[] = {
    {"count", WEIR_ARRAY_I64, 1, put_count}, {"lost", WEIR_ARRAY_I64, 1, put_lost},
    {"mean", WEIR_ARRAY_F64, 1, put_mean},   {"min", WEIR_ARRAY_F32, 1, put_min},
    {"max", WEIR_ARRAY_F32, 1, put_max},     {"quantile", WEIR_ARRAY_F64, WEIR_SURVEY_QUANTILES, put_quantiles},
    {"sum", WEIR_ARRAY_U64, 2, put_sum}};

static weir_status put_array(const sheet *h, weir_survey_value v, size_t i, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    const int64_t dim[2] = {h->c->n, arrays[i].width};
    const size_t step = weir_array_type_bytes(arrays[i].type) * (size_t)dim[1];
    char *p = weir_calloc((size_t)dim[0], step);
    if (!p)
        return weir_nomem(err, "the statistics of a text");
    for (int l = 0; l < h->c->n; l++)
        arrays[i].put(h->c, l, v, p + step * (size_t)l);
    snprintf(path, sizeof path, "%s/%s", weir_survey_value_names[v], arrays[i].name);
    weir_status st = weir_arrays_put(h->w, path, arrays[i].type, dim[1] > 1 ? 2 : 1, dim, p, err);
    weir_free(p);
    return st;
}

/* Bins [*first, *end) are those that any line has values in. */
static void bins_used(const weir_survey *c, weir_survey_value v, int *first, int *end)
{
    *first = WEIR_SURVEY_BINS;
    *end = 0;
    for (int l = 0; l < c->n; l++) {
        const int64_t *hist = weir_survey_sums_at(c, l, (int)v)->hist;
        for (int b = 0; b < *first; b++)
            if (hist[b])
                *first = b;
        for (int b = WEIR_SURVEY_BINS; b > *end; b--)
            if (hist[b - 1])
                *end = b;
    }
    if (*end == 0)
        *first = 0;
}

static weir_status put_hist(const sheet *h, weir_survey_value v, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    int first, end;
    bins_used(h->c, v, &first, &end);
    const int64_t dim[2] = {h->c->n, end - first};
    int64_t *out = weir_calloc((size_t)dim[0], (size_t)dim[1] * sizeof *out);
    if (!out)
        return weir_nomem(err, "the histograms of a text");
    for (int64_t l = 0; l < dim[0]; l++)
        memcpy(out + l * dim[1], weir_survey_sums_at(h->c, (int)l, (int)v)->hist + first, (size_t)dim[1] * sizeof *out);
    snprintf(path, sizeof path, "%s/hist", weir_survey_value_names[v]);
    weir_status st = weir_arrays_put(h->w, path, WEIR_ARRAY_I64, 2, dim, out, err);
    weir_free(out);
    return st ? st : weir_arrays_put_int(h->w, path, "first_bin", first, err);
}

static weir_status put_values(const sheet *h, weir_err *err)
{
    for (int v = 0; v < WEIR_SURVEY_VALUES; v++) {
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
            WEIR_TRY(put_array(h, (weir_survey_value)v, i, err));
        WEIR_TRY(put_hist(h, (weir_survey_value)v, err));
    }
    return WEIR_OK;
}

static weir_status put_edges(const sheet *h, weir_err *err)
{
    const int64_t n = WEIR_SURVEY_BINS + 1, m = WEIR_SURVEY_QUANTILES;
    double share[WEIR_SURVEY_QUANTILES], *edge = weir_calloc((size_t)n, sizeof *edge);
    if (!edge)
        return weir_nomem(err, "the histograms of a text");
    for (int i = 0; i < n; i++)
        edge[i] = weir_survey_edge(i);
    for (int q = 0; q < m; q++)
        share[q] = weir_survey_share(q);
    weir_status st = weir_arrays_put(h->w, "edges", WEIR_ARRAY_F64, 1, &n, edge, err);
    weir_free(edge);
    return st ? st : weir_arrays_put(h->w, "quantiles", WEIR_ARRAY_F64, 1, &m, share, err);
}

/* --- tokens */

static weir_status put_settle(const sheet *h, weir_err *err)
{
    const weir_survey *c = h->c;
    const int64_t dim[2] = {c->n_sites, c->n}, wide[2] = {c->n_sites, WEIR_SURVEY_QUANTILES};
    double mean[WEIR_SURVEY_SITES], quantile[WEIR_SURVEY_SITES][WEIR_SURVEY_QUANTILES];
    for (int s = 0; s < c->n_sites; s++) {
        const weir_survey_stat at = weir_survey_settle_of(c, s);
        mean[s] = at.mean;
        memcpy(quantile[s], at.quantile, sizeof at.quantile);
    }
    WEIR_TRY(put_texts(h, "settle/site", c->site_name, c->n_sites, err));
    WEIR_TRY(weir_arrays_put(h->w, "settle/mean", WEIR_ARRAY_F64, 1, dim, mean, err));
    WEIR_TRY(weir_arrays_put(h->w, "settle/quantile", WEIR_ARRAY_F64, 2, wide, quantile, err));
    return weir_arrays_put(h->w, "settle/count", WEIR_ARRAY_I64, 2, dim, c->settled, err);
}

static weir_status put_all(const sheet *h, weir_err *err)
{
    const int64_t n = h->c->n;
    WEIR_TRY(put_about(h, err));
    WEIR_TRY(put_counts(h, err));
    WEIR_TRY(put_lines(h, err));
    WEIR_TRY(put_edges(h, err));
    WEIR_TRY(put_values(h, err));
    WEIR_TRY(weir_arrays_put(h->w, "agree", WEIR_ARRAY_I64, 1, &n, h->c->agree, err));
    WEIR_TRY(weir_arrays_put(h->w, "right", WEIR_ARRAY_I64, 1, &n, h->c->right, err));
    return put_settle(h, err);
}

weir_status weir_survey_write(const weir_survey *c, const char *path, int threads, weir_err *err)
{
    sheet h = {.c = c};
    WEIR_TRY(weir_arrays_create(&h.w, path, WEIR_SURVEY_FORMAT, WEIR_SURVEY_VERSION, threads, err));
    weir_status st = put_all(&h, err);
    if (st) {
        weir_arrays_abort(h.w);
        weir_err_where(err, path, NULL, -1);
        return st;
    }
    return weir_arrays_commit(h.w, err);
}

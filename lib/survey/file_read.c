/* survey/file_read.c: reading a result. What is computed from sums and counts is computed again. */
#include <weir/arrays.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "survey/impl.h"

static weir_status get_int(weir_arrays_in *r, const char *name, int64_t high, int64_t *out, weir_err *err)
{
    WEIR_TRY(weir_arrays_get_int(r, "", name, out, err));
    if (*out < 0 || *out > high)
        return weir_arrays_bad(r, "", err, "its attribute %s is %" PRId64, name, *out);
    return WEIR_OK;
}

/* --- lines */

/* A column of texts: [n] strings, to be freed one by one. */
static weir_status get_texts(weir_arrays_in *r, const char *group, int64_t n, char **out, weir_err *err)
{
    weir_array_texts t;
    WEIR_TRY(weir_arrays_get_texts(r, group, &t, err));
    weir_status st =
        t.n == n ? WEIR_OK : weir_arrays_bad(r, group, err, "has %" PRId64 " texts for %" PRId64 " lines", t.n, n);
    for (int64_t i = 0; i < n && !st; i++) {
        const weir_str s = weir_array_text(&t, i);
        if (!(out[i] = weir_strndup(s.p, s.n)))
            st = weir_nomem(err, "the names of lines");
    }
    weir_array_texts_free(&t);
    return st;
}

enum { NAME, HOOK, SITE, COLUMNS };

typedef struct names {
    char **text[COLUMNS]; /* [n] each */
    int32_t *layer;       /* [n] */
    weir_survey_line *line;
    int64_t n;
} names;

static void names_free(names *t)
{
    for (int i = 0; i < COLUMNS; i++) {
        for (int64_t l = 0; t->text[i] && l < t->n; l++)
            weir_free(t->text[i][l]);
        weir_free(t->text[i]);
    }
    weir_free(t->layer);
    weir_free(t->line);
}

static weir_status get_names(weir_arrays_in *r, names *t, weir_err *err)
{
    static const char *const group[COLUMNS] = {"lines/name", "lines/hook", "lines/site"};
    WEIR_TRY(weir_arrays_shape(r, "lines/layer", WEIR_ARRAY_I32, 1, &t->n, err));
    if (t->n < 1 || t->n > WEIR_SURVEY_LINES)
        return weir_arrays_bad(r, "lines/layer", err, "has %" PRId64 " lines", t->n);
    t->layer = weir_calloc((size_t)t->n, sizeof *t->layer);
    t->line = weir_calloc((size_t)t->n, sizeof *t->line);
    for (int i = 0; i < COLUMNS; i++)
        t->text[i] = weir_calloc((size_t)t->n, sizeof *t->text[i]);
    if (!t->layer || !t->line || !t->text[NAME] || !t->text[HOOK] || !t->text[SITE])
        return weir_nomem(err, "the names of lines");
    for (int i = 0; i < COLUMNS; i++)
        WEIR_TRY(get_texts(r, group[i], t->n, t->text[i], err));
    WEIR_TRY(weir_arrays_get(r, "lines/layer", WEIR_ARRAY_I32, 1, &t->n, t->layer, err));
    for (int64_t l = 0; l < t->n; l++)
        t->line[l] = (weir_survey_line){t->text[NAME][l], t->text[HOOK][l], t->text[SITE][l], t->layer[l]};
    return WEIR_OK;
}

/* --- attributes */

static weir_status get_about(weir_arrays_in *r, weir_survey *c, weir_err *err)
{
    char *text[WEIR_SURVEY_TEXTS] = {NULL};
    int64_t softcap = 0, padding = 0, shard = 0, shards = 0;
    weir_status st = WEIR_OK;
    for (int i = 0; i < WEIR_SURVEY_TEXTS && !st; i++)
        st = weir_arrays_get_text(r, "", weir_survey_text_names[i], &text[i], err);
    if (!st)
        st = get_int(r, "softcap_left_out", 1, &softcap, err);
    if (!st)
        st = get_int(r, "padding_masked", 1, &padding, err);
    if (!st)
        st = get_int(r, "shards", INT32_MAX, &shards, err);
    if (!st)
        st = get_int(r, "shard", shards ? shards - 1 : 0, &shard, err);
    const weir_survey_about a = {text[0], text[1],      text[2],      text[3], text[4], text[5],
                                 text[6], softcap != 0, padding != 0, shard,   shards};
    if (!st)
        st = weir_survey_set_about(c, &a, err);
    for (int i = 0; i < WEIR_SURVEY_TEXTS; i++)
        weir_free(text[i]);
    return st;
}

static weir_status get_shards(weir_arrays_in *r, weir_survey *c, weir_err *err)
{
    const weir_survey_about *a = &c->about;
    int64_t n = 0, *in = weir_calloc(WEIR_ARRAY_ATTRIBUTE, sizeof *in);
    if (!in)
        return weir_nomem(err, "the parts of a text");
    weir_free(c->shard);
    c->shard = in;
    c->n_shards = 0;
    WEIR_TRY(weir_arrays_get_attribute(r, "", "shards_in", WEIR_ARRAY_I64, WEIR_ARRAY_ATTRIBUTE, &n, in, err));
    bool good = a->shards == 0 ? n == 0 : n > 0 && in[0] == a->shard && n < a->shards;
    for (int64_t i = 0; i < n && good; i++)
        good = in[i] >= 0 && in[i] < a->shards && (i == 0 || in[i] > in[i - 1]);
    if (!good)
        return weir_arrays_bad(r, "", err, "its attribute shards_in does not fit its shards");
    c->n_shards = n;
    return WEIR_OK;
}

static weir_status get_counts(weir_arrays_in *r, weir_survey *c, weir_err *err)
{
    weir_survey_counts *n = &c->counts;
    const struct {
        const char *name;
        int64_t *out;
    } ints[] = {{"docs", &n->docs},
                {"rows", &n->rows},
                {"counted", &n->masked[0]},
                {"masked_bos", &n->masked[WEIR_MASK_BOS]},
                {"masked_special", &n->masked[WEIR_MASK_SPECIAL]},
                {"masked_id", &n->masked[WEIR_MASK_ID]},
                {"lost", &n->lost},
                {"seen", &n->seen},
                {"without_next", &n->without_next}};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        WEIR_TRY(get_int(r, ints[i].name, WEIR_SURVEY_MOST, ints[i].out, err));
    int64_t sum = 0;
    for (int i = 0; i < WEIR_MASK_KINDS; i++)
        sum += n->masked[i];
    if (sum != n->rows || n->lost + n->seen != n->masked[0] || n->without_next > n->seen)
        return weir_arrays_bad(r, "", err, "its counts of positions do not fit together");
    return WEIR_OK;
}

/* --- values */

static weir_status get_column(weir_arrays_in *r, const char *group, const char *name, weir_array_type type, int64_t n,
                              void *out, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    snprintf(path, sizeof path, "%s/%s", group, name);
    return weir_arrays_get(r, path, type, 1, &n, out, err);
}

static weir_status get_hist(weir_arrays_in *r, weir_survey *c, int v, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    int64_t dim[2], first;
    const int64_t most = WEIR_SURVEY_BINS;
    snprintf(path, sizeof path, "%s/hist", weir_survey_value_names[v]);
    WEIR_TRY(weir_arrays_shape(r, path, WEIR_ARRAY_I64, 2, dim, err));
    WEIR_TRY(weir_arrays_get_int(r, path, "first_bin", &first, err));
    if (dim[0] != c->n || first < 0 || dim[1] > most || first > most - dim[1])
        return weir_arrays_bad(r, path, err, "is damaged: more lines or bins than there are");
    int64_t *all = weir_calloc((size_t)dim[0], (size_t)dim[1] * sizeof *all);
    if (!all)
        return weir_nomem(err, "the histograms of a text");
    weir_status st = weir_arrays_get(r, path, WEIR_ARRAY_I64, 2, dim, all, err);
    for (int64_t l = 0; l < dim[0] && !st; l++)
        memcpy(weir_survey_sums_at(c, (int)l, v)->hist + first, all + l * dim[1], (size_t)dim[1] * sizeof *all);
    weir_free(all);
    return st;
}

/* Counts, sums and extremes of one kind of value, column by column. */
typedef struct columns {
    int64_t *count, *lost;
    uint64_t *sum; /* [n, 2] */
    float *min, *max;
} columns;

static bool columns_new(columns *k, size_t n)
{
    k->count = weir_calloc(n, sizeof *k->count);
    k->lost = weir_calloc(n, sizeof *k->lost);
    k->sum = weir_calloc(n, 2 * sizeof *k->sum);
    k->min = weir_calloc(n, sizeof *k->min);
    k->max = weir_calloc(n, sizeof *k->max);
    return k->count && k->lost && k->sum && k->min && k->max;
}

static void columns_free(columns *k)
{
    void *const own[] = {k->count, k->lost, k->sum, k->min, k->max};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        weir_free(own[i]);
}

static weir_status get_columns(weir_arrays_in *r, const char *group, int64_t n, const columns *k, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    const int64_t dim[2] = {n, 2};
    WEIR_TRY(get_column(r, group, "count", WEIR_ARRAY_I64, n, k->count, err));
    WEIR_TRY(get_column(r, group, "lost", WEIR_ARRAY_I64, n, k->lost, err));
    WEIR_TRY(get_column(r, group, "min", WEIR_ARRAY_F32, n, k->min, err));
    WEIR_TRY(get_column(r, group, "max", WEIR_ARRAY_F32, n, k->max, err));
    snprintf(path, sizeof path, "%s/sum", group);
    return weir_arrays_get(r, path, WEIR_ARRAY_U64, 2, dim, k->sum, err);
}

static void take_columns(weir_survey *c, int v, const columns *k)
{
    for (int l = 0; l < c->n; l++) {
        weir_survey_sums *s = weir_survey_sums_at(c, l, v);
        s->count = k->count[l];
        s->lost = k->lost[l];
        s->sum = (__int128)((unsigned __int128)k->sum[2 * l + 1] << 64 | k->sum[2 * l]);
        if (s->count > 0) {
            s->min = k->min[l];
            s->max = k->max[l];
        }
    }
}

/* Do counts, bins and extremes tell of the same values? */
static bool fits(const weir_survey_sums *s, int64_t values)
{
    const __int128 most = (__int128)WEIR_SURVEY_MOST << (20 + WEIR_SURVEY_FRACTION);
    int64_t n = 0;
    if (s->count < 0 || s->lost < 0 || s->count > values || s->lost != values - s->count)
        return false;
    for (int b = 0; b < WEIR_SURVEY_BINS; b++) {
        if (s->hist[b] < 0 || s->hist[b] > s->count - n)
            return false;
        n += s->hist[b];
    }
    if (n != s->count || s->sum > most || s->sum < -most)
        return false;
    if (s->count == 0)
        return s->sum == 0;
    const int low = weir_survey_bin(s->min), high = weir_survey_bin(s->max);
    return low >= 0 && high >= 0 && s->min <= s->max && s->hist[low] > 0 && s->hist[high] > 0;
}

static weir_status get_values(weir_arrays_in *r, weir_survey *c, int v, weir_err *err)
{
    columns k = {0};
    const char *group = weir_survey_value_names[v];
    const int64_t values = c->counts.seen - (v == WEIR_SURVEY_CE ? c->counts.without_next : 0);
    weir_status st = columns_new(&k, (size_t)c->n) ? WEIR_OK : weir_nomem(err, "the statistics of a text");
    if (!st)
        st = get_columns(r, group, c->n, &k, err);
    if (!st)
        take_columns(c, v, &k);
    columns_free(&k);
    if (!st)
        st = get_hist(r, c, v, err);
    for (int l = 0; l < c->n && !st; l++)
        if (!fits(weir_survey_sums_at(c, l, v), values))
            st = weir_arrays_bad(r, group, err, "is damaged: the numbers of line %d do not fit together", l);
    return st;
}

/* --- tokens */

static weir_status get_tokens(weir_arrays_in *r, weir_survey *c, weir_err *err)
{
    const int64_t n = c->n, dim[2] = {c->n_sites, c->n};
    const int64_t seen = c->counts.seen, with_next = seen - c->counts.without_next;
    WEIR_TRY(weir_arrays_get(r, "agree", WEIR_ARRAY_I64, 1, &n, c->agree, err));
    WEIR_TRY(weir_arrays_get(r, "right", WEIR_ARRAY_I64, 1, &n, c->right, err));
    WEIR_TRY(weir_arrays_get(r, "settle/count", WEIR_ARRAY_I64, 2, dim, c->settled, err));
    for (int l = 0; l < c->n; l++)
        if (c->agree[l] < 0 || c->agree[l] > seen || c->right[l] < 0 || c->right[l] > with_next)
            return weir_arrays_bad(r, "agree", err, "is damaged: line %d counts more than the positions there are", l);
    for (int s = 0; s < c->n_sites; s++) {
        int64_t sum = 0;
        bool good = true;
        for (int l = 0; l < c->n && good; l++) {
            const int64_t at = c->settled[s * n + l];
            good = at >= 0 && at <= seen - sum && (at == 0 || c->site[l] == s || c->site[l] < 0);
            sum += at;
        }
        if (!good || sum != seen)
            return weir_arrays_bad(r, "settle/count", err, "is damaged: site %d does not have all positions once", s);
    }
    return WEIR_OK;
}

/* --- all */

static weir_status fill(weir_arrays_in *r, weir_survey *c, weir_err *err)
{
    WEIR_TRY(get_about(r, c, err));
    WEIR_TRY(get_shards(r, c, err));
    WEIR_TRY(get_counts(r, c, err));
    for (int v = 0; v < WEIR_SURVEY_VALUES; v++)
        WEIR_TRY(get_values(r, c, v, err));
    return get_tokens(r, c, err);
}

static weir_status read_all(weir_arrays_in *r, weir_survey **out, weir_err *err)
{
    names t = {0};
    weir_survey *c = NULL;
    weir_status st = get_names(r, &t, err);
    if (!st)
        st = weir_survey_new(&c, t.line, (int)t.n, err);
    names_free(&t);
    if (!st)
        st = fill(r, c, err);
    if (st)
        weir_survey_free(c);
    else
        *out = c;
    return st;
}

weir_status weir_survey_read(weir_survey **out, const char *path, weir_err *err)
{
    weir_arrays_in *r;
    *out = NULL;
    WEIR_TRY(weir_arrays_open(&r, path, WEIR_SURVEY_FORMAT, WEIR_SURVEY_VERSION, err));
    weir_status st = read_all(r, out, err);
    weir_arrays_close(r);
    if (st)
        weir_err_where(err, path, NULL, -1);
    return st;
}

bool weir_survey_is_file(const char *path)
{
    return weir_arrays_is(path, WEIR_SURVEY_FORMAT);
}

/* search/file_write.c: writing a result: what stands once in a file. */
#include <math.h>
#include <string.h>

#include "search/detail.h"
#include "search/file.h"

const char *const weir_neurons_list_names[WEIR_NEURONS_LISTS] = {"top", "bottom", "abs"};
const char *const weir_neurons_rank_names[2] = {"max", "mean"};
const char *const weir_neurons_dedup_names[4] = {"none", "window", "doc", "text"};
const char *const weir_neurons_mask_names[WEIR_MASK_KINDS] = {"counted", "masked_bos", "masked_special", "masked_id"};

void weir_file_path(char out[WEIR_ARRAY_NAMES], const char *group, const char *name)
{
    size_t n = strnlen(group, WEIR_ARRAY_NAMES - 1), m = strnlen(name, WEIR_ARRAY_NAMES - 1);
    memcpy(out, group, n);
    out[n++] = '/';
    m = n + m < WEIR_ARRAY_NAMES ? m : WEIR_ARRAY_NAMES - n - 1;
    if (n < WEIR_ARRAY_NAMES)
        memcpy(out + n, name, m);
    out[n < WEIR_ARRAY_NAMES ? n + m : WEIR_ARRAY_NAMES - 1] = 0;
}

weir_status weir_file_group(const weir_neurons *s, int t, char out[WEIR_ARRAY_NAMES], weir_err *err)
{
    enum { MOST = WEIR_ARRAY_NAMES - 64 }; /* room for "neurons/", and for the arrays in the group */
    const weir_neurons_table *pub = &s->table[t].pub;
    bool with_site = !strcmp(pub->site, "gate-act");
    for (int i = 0; i < t; i++)
        with_site = with_site || !strcmp(s->table[i].pub.hook, pub->hook);
    if (!pub->hook[0] || strchr(pub->hook, '/') || (with_site && strchr(pub->site, '/')) ||
        strlen(pub->hook) + strlen(pub->site) > MOST)
        return weir_fail(err, WEIR_E_ARG, "%.80s (%.40s) cannot be the name of a group in a file", pub->hook,
                         pub->site);
    snprintf(out, WEIR_ARRAY_NAMES, "neurons/%s%s%s", pub->hook, with_site ? "@" : "", with_site ? pub->site : "");
    return WEIR_OK;
}

typedef struct integer {
    const char *name;
    int64_t v;
} integer;

static weir_status put_ints(weir_arrays_out *w, const integer *all, size_t n, weir_err *err)
{
    for (size_t i = 0; i < n; i++)
        WEIR_TRY(weir_arrays_put_int(w, "", all[i].name, all[i].v, err));
    return WEIR_OK;
}

static weir_status put_about(weir_arrays_out *w, const weir_neurons *s, weir_err *err)
{
    const weir_neurons_about *a = &s->about;
    const struct {
        const char *name, *text;
    } texts[] = {{"weir_version", weir_version()},   {"model", a->model},         {"family", a->family},
                 {"fingerprint", a->fingerprint},    {"tokenizer", a->tokenizer}, {"source", a->source},
                 {"interventions", a->interventions}};
    const integer ints[] = {
        {"shard", a->shard}, {"shards", a->shards}, {"rows_done", a->rows_done}, {"complete", a->complete}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        WEIR_TRY(weir_arrays_put_text(w, "", texts[i].name, texts[i].text, err));
    WEIR_TRY(put_ints(w, ints, sizeof ints / sizeof *ints, err));
    return weir_arrays_put_attribute(w, "", "shards_in", WEIR_ARRAY_I64, s->covered.n_shards, s->covered.shard, err);
}

/* "top,bottom" */
static void name_lists(unsigned lists, char out[32])
{
    int n = 0;
    out[0] = 0;
    for (int i = 0; i < WEIR_NEURONS_LISTS; i++)
        if (lists & 1u << i)
            n += snprintf(out + n, 32 - (size_t)n, "%s%s", n ? "," : "", weir_neurons_list_names[i]);
}

static weir_status put_options(weir_arrays_out *w, const weir_neurons_options *o, weir_err *err)
{
    const integer ints[] = {
        {"k", o->k},           {"dedup_n", o->dedup_n}, {"per_band", o->per_band},       {"random", o->random},
        {"before", o->before}, {"after", o->after},     {"token_means", o->token_means}, {"correlate", o->correlate}};
    char lists[32];
    name_lists(o->lists, lists);
    WEIR_TRY(put_ints(w, ints, sizeof ints / sizeof *ints, err));
    WEIR_TRY(weir_arrays_put_text(w, "", "lists", lists, err));
    WEIR_TRY(weir_arrays_put_text(w, "", "rank", weir_neurons_rank_names[o->rank], err));
    WEIR_TRY(weir_arrays_put_text(w, "", "dedup", weir_neurons_dedup_names[o->dedup], err));
    WEIR_TRY(weir_arrays_put_attribute(w, "", "seed", WEIR_ARRAY_U64, -1, &o->seed, err));
    return weir_arrays_put_attribute(w, "", "thresholds", WEIR_ARRAY_F64, o->n_thresholds, o->threshold, err);
}

static weir_status put_counts(weir_arrays_out *w, const weir_neurons_counts *c, weir_err *err)
{
    const integer ints[] = {{"docs", c->docs}, {"rows", c->rows}, {"context", c->context}};
    WEIR_TRY(put_ints(w, ints, sizeof ints / sizeof *ints, err));
    for (int i = 0; i < WEIR_MASK_KINDS; i++)
        WEIR_TRY(weir_arrays_put_int(w, "", weir_neurons_mask_names[i], c->masked[i], err));
    return WEIR_OK;
}

static weir_status put_spans(weir_arrays_out *w, const weir_covered *p, weir_err *err)
{
    const int64_t dim[2] = {p->n_spans, 2};
    int64_t *ends = weir_calloc((size_t)p->n_spans, 2 * sizeof *ends);
    if (!ends)
        return weir_nomem(err, "the parts of a text");
    for (int64_t i = 0; i < p->n_spans; i++) {
        ends[2 * i] = p->span[i].first;
        ends[2 * i + 1] = p->span[i].last;
    }
    weir_status st = weir_arrays_put(w, "documents", WEIR_ARRAY_I64, 2, dim, ends, err);
    weir_free(ends);
    return st;
}

static weir_status put_edges(weir_arrays_out *w, weir_err *err)
{
    const int64_t n = WEIR_NEURONS_BINS + 1;
    double edge[WEIR_NEURONS_BINS + 1];
    for (int i = 0; i < n; i++)
        edge[i] = weir_neurons_edge(i);
    return weir_arrays_put(w, "hist/edges", WEIR_ARRAY_F64, 1, &n, edge, err);
}

static weir_status put_vocab(weir_arrays_out *w, const weir_neurons *s, weir_err *err)
{
    if (s->n_vocab == 0)
        return WEIR_OK;
    const int64_t offsets = s->n_vocab + 1, bytes = s->vocab_at[s->n_vocab];
    WEIR_TRY(weir_arrays_put(w, "vocab/bytes", WEIR_ARRAY_U8, 1, &bytes, s->vocab, err));
    WEIR_TRY(weir_arrays_put(w, "vocab/offsets", WEIR_ARRAY_I64, 1, &offsets, s->vocab_at, err));
    return s->special ? weir_arrays_put(w, "vocab/special", WEIR_ARRAY_U8, 1, &s->n_vocab, s->special, err) : WEIR_OK;
}

static weir_status put_texts(weir_arrays_out *w, const weir_texts *t, weir_err *err)
{
    int64_t *doc = weir_calloc((size_t)t->n, sizeof *doc), *pos = weir_calloc((size_t)t->n, sizeof *pos);
    weir_status st = doc && pos ? WEIR_OK : weir_nomem(err, "the tokens around a search's places");
    for (int64_t i = 0; i < t->n && !st; i++) {
        doc[i] = t->at[i].doc;
        pos[i] = t->at[i].pos;
    }
    if (!st)
        st = weir_arrays_put(w, "tokens/doc", WEIR_ARRAY_I64, 1, &t->n, doc, err);
    if (!st)
        st = weir_arrays_put(w, "tokens/pos", WEIR_ARRAY_I64, 1, &t->n, pos, err);
    if (!st)
        st = weir_arrays_put(w, "tokens/id", WEIR_ARRAY_I32, 1, &t->n, t->id, err);
    if (!st)
        st = weir_arrays_put(w, "tokens/edge", WEIR_ARRAY_U8, 1, &t->n, t->edge, err);
    weir_free(doc);
    weir_free(pos);
    return st;
}

/* --- named neurons */

static weir_status put_names(weir_arrays_out *w, const weir_neurons_options *o, weir_err *err)
{
    const int64_t n = o->n_named;
    int64_t table[WEIR_NEURONS_MAX_NAMED], neuron[WEIR_NEURONS_MAX_NAMED];
    for (int64_t j = 0; j < n; j++) {
        table[j] = o->named[j].table;
        neuron[j] = o->named[j].neuron;
    }
    WEIR_TRY(weir_arrays_put(w, "named/table", WEIR_ARRAY_I64, 1, &n, table, err));
    return weir_arrays_put(w, "named/neuron", WEIR_ARRAY_I64, 1, &n, neuron, err);
}

/* Activations at /tokens. */
static weir_status put_values(weir_arrays_out *w, const weir_neurons *s, weir_err *err)
{
    const weir_texts *t = &s->texts;
    const int64_t dim[2] = {s->o.n_named, t->n};
    float *value = weir_calloc((size_t)dim[0], (size_t)dim[1] * sizeof *value);
    if (!value)
        return weir_nomem(err, "the values around a search's places");
    for (int64_t j = 0; j < dim[0]; j++)
        for (int64_t i = 0; i < dim[1]; i++) {
            const float x = t->value ? t->value[j][i] : NAN;
            value[j * dim[1] + i] = isnan(x) ? NAN : x;
        }
    weir_status st = weir_arrays_put(w, "named/value", WEIR_ARRAY_F32, 2, dim, value, err);
    weir_free(value);
    return st;
}

/* What the sums by token come to: [tokens, named]. */
static weir_status put_means(weir_arrays_out *w, const weir_detail *d, weir_err *err)
{
    const int64_t dim[2] = {d->n_tokens, d->n_named}, n = dim[0] * dim[1];
    double *mean = weir_calloc((size_t)n, sizeof *mean);
    if (!mean)
        return weir_nomem(err, "means by token");
    for (int64_t i = 0; i < n; i++)
        mean[i] = d->count[i] ? weir_wide_to_double(&d->sum[i]) / (double)d->count[i] : (double)NAN;
    weir_status st = weir_arrays_put(w, "named/token_mean", WEIR_ARRAY_F64, 2, dim, mean, err);
    weir_free(mean);
    return st;
}

/* Correlations of named neuron j, by unit; NaN for itself. */
static weir_status put_relations(weir_arrays_out *w, const weir_neurons *s, int j, weir_err *err)
{
    const weir_neurons_table *pub = &s->table[s->o.named[j].table].pub;
    const int64_t width = pub->width;
    char name[64];
    double *r = weir_calloc((size_t)width, sizeof *r), *cofire = weir_calloc((size_t)width, sizeof *cofire);
    weir_neuron_relation *all = weir_calloc((size_t)width, sizeof *all);
    weir_status st = r && cofire && all ? WEIR_OK : weir_nomem(err, "correlations");
    const int64_t n = st ? 0 : weir_neurons_related(s, j, false, width, all);
    for (int64_t u = 0; u < width && !st; u++)
        r[u] = cofire[u] = NAN;
    for (int64_t i = 0; i < n; i++) {
        r[all[i].unit] = isnan(all[i].r) ? NAN : all[i].r;
        cofire[all[i].unit] = isnan(all[i].cofire) ? NAN : all[i].cofire;
    }
    snprintf(name, sizeof name, "named/%d/r", j);
    if (!st)
        st = weir_arrays_put(w, name, WEIR_ARRAY_F64, 1, &width, r, err);
    snprintf(name, sizeof name, "named/%d/cofire", j);
    if (!st)
        st = weir_arrays_put(w, name, WEIR_ARRAY_F64, 1, &width, cofire, err);
    weir_free(r);
    weir_free(cofire);
    weir_free(all);
    return st;
}

static weir_status put_detail(weir_arrays_out *w, weir_detail *d, weir_err *err)
{
    static const weir_array_type type[] = {
        [WEIR_DETAIL_I32] = WEIR_ARRAY_I32, [WEIR_DETAIL_I64] = WEIR_ARRAY_I64, [WEIR_DETAIL_U64] = WEIR_ARRAY_U64};
    weir_detail_array a;
    char path[WEIR_ARRAY_NAMES];
    for (int i = 0; weir_detail_array_at(d, i, &a); i++) {
        weir_file_path(path, "named/sums", a.name);
        WEIR_TRY(weir_arrays_put(w, path, type[a.type], a.rank, a.dim, a.p, err));
    }
    return WEIR_OK;
}

static weir_status put_named(weir_arrays_out *w, weir_neurons *s, weir_err *err)
{
    if (s->o.n_named == 0)
        return WEIR_OK;
    WEIR_TRY(put_names(w, &s->o, err));
    WEIR_TRY(put_values(w, s, err));
    if (!s->detail)
        return WEIR_OK;
    weir_detail_sort(s->detail);
    WEIR_TRY(put_means(w, s->detail, err));
    for (int j = 0; j < s->o.n_named && s->o.correlate; j++)
        WEIR_TRY(put_relations(w, s, j, err));
    return put_detail(w, s->detail, err);
}

/* --- all */

static weir_status put_all(weir_arrays_out *w, weir_neurons *s, weir_err *err)
{
    WEIR_TRY(put_about(w, s, err));
    WEIR_TRY(put_options(w, &s->o, err));
    WEIR_TRY(put_counts(w, &s->counts, err));
    WEIR_TRY(put_spans(w, &s->covered, err));
    WEIR_TRY(put_vocab(w, s, err));
    WEIR_TRY(put_texts(w, &s->texts, err));
    WEIR_TRY(put_edges(w, err));
    for (int t = 0; t < s->n_tables; t++)
        WEIR_TRY(weir_file_put_table(w, s, t, err));
    return put_named(w, s, err);
}

weir_status weir_neurons_write(weir_neurons *s, const char *path, const weir_neurons_about *about, weir_err *err)
{
    weir_arrays_out *w;
    if (!s->finished)
        return weir_fail(err, WEIR_E_ARG, "a search is written after weir_neurons_finish");
    WEIR_TRY(weir_about_take(s, about, err));
    WEIR_TRY(weir_covered_settle(s, err));
    WEIR_TRY(weir_arrays_create(&w, path, WEIR_NEURONS_FORMAT, WEIR_NEURONS_VERSION, s->threads, err));
    weir_status st = put_all(w, s, err);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        weir_arrays_abort(w);
        return st;
    }
    return weir_arrays_commit(w, err);
}

bool weir_neurons_is_file(const char *path)
{
    return weir_arrays_is(path, WEIR_NEURONS_FORMAT);
}

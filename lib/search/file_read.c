/* search/file_read.c: a result out of a file: what it is about, its options and tables, of which a search is made; then
 * what the search holds. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "search/detail.h"
#include "search/file.h"
#include "search/weights.h"

/* --- what a search is made of */

typedef struct plan {
    weir_arrays_in *r;
    weir_neurons_options o;
    weir_neurons_named named[WEIR_NEURONS_MAX_NAMED];
    int n_tables;
    weir_neurons_table *table;
    char **group; /* [n_tables] */
} plan;

static void plan_free(plan *p)
{
    for (int t = 0; t < p->n_tables && p->table && p->group; t++) {
        weir_free((void *)(uintptr_t)p->table[t].hook);
        weir_free((void *)(uintptr_t)p->table[t].site);
        weir_free((void *)(uintptr_t)p->table[t].units);
        weir_free(p->group[t]);
    }
    weir_free(p->table);
    weir_free(p->group);
}

/* An integer attribute of the root within [low, high]. */
static weir_status get_int(weir_arrays_in *r, const char *name, int64_t low, int64_t high, int64_t *out, weir_err *err)
{
    WEIR_TRY(weir_arrays_get_int(r, "", name, out, err));
    if (*out < low || *out > high)
        return weir_arrays_bad(r, "", err, "its attribute %s is %" PRId64, name, *out);
    return WEIR_OK;
}

/* A text attribute of the root that is one of n. */
static weir_status get_choice(weir_arrays_in *r, const char *name, const char *const *all, int n, int *out,
                              weir_err *err)
{
    char *text;
    WEIR_TRY(weir_arrays_get_text(r, "", name, &text, err));
    for (*out = 0; *out < n && strcmp(text, all[*out]) != 0; ++*out)
        ;
    weir_status st = *out < n ? WEIR_OK : weir_arrays_bad(r, "", err, "its attribute %s is \"%.40s\"", name, text);
    weir_free(text);
    return st;
}

static weir_status get_list_set(plan *p, weir_err *err)
{
    char *text;
    WEIR_TRY(weir_arrays_get_text(p->r, "", "lists", &text, err));
    bool good = true;
    p->o.lists = 0;
    for (char *rest = text, *name; good && *rest && (name = strsep(&rest, ","));) {
        int i = 0;
        while (i < WEIR_NEURONS_LISTS && strcmp(name, weir_neurons_list_names[i]) != 0)
            i++;
        good = i < WEIR_NEURONS_LISTS;
        p->o.lists |= good ? 1u << i : 0;
        if (!rest)
            break;
    }
    weir_free(text);
    return good ? WEIR_OK : weir_arrays_bad(p->r, "", err, "its attribute lists names a list that is unknown");
}

static weir_status get_thresholds(plan *p, weir_err *err)
{
    int64_t n;
    WEIR_TRY(weir_arrays_get_attribute(p->r, "", "thresholds", WEIR_ARRAY_F64, WEIR_NEURONS_MAX_THRESHOLDS, &n,
                                       p->o.threshold, err));
    p->o.n_thresholds = (int)n;
    for (int i = 0; i < n; i++)
        if (!isfinite(p->o.threshold[i]))
            return weir_arrays_bad(p->r, "", err, "its attribute thresholds is damaged");
    return n > 0 ? WEIR_OK : weir_arrays_bad(p->r, "", err, "its attribute thresholds is empty");
}

static weir_status get_options(plan *p, weir_err *err)
{
    weir_neurons_options *o = &p->o;
    int64_t correlate = 0, n = 0;
    int rank, dedup;
    const struct {
        const char *name;
        int64_t low, high, *out;
    } ints[] = {{"k", 1, WEIR_NEURONS_MAX_K, &o->k},
                {"dedup_n", 0, INT32_MAX, &o->dedup_n},
                {"per_band", 0, 100, &o->per_band},
                {"random", 0, 1000, &o->random},
                {"before", 0, INT32_MAX, &o->before},
                {"after", 0, INT32_MAX, &o->after},
                {"token_means", 0, WEIR_NEURONS_IDS_MAX, &o->token_means},
                {"correlate", 0, 1, &correlate}};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        WEIR_TRY(get_int(p->r, ints[i].name, ints[i].low, ints[i].high, ints[i].out, err));
    o->correlate = correlate;
    WEIR_TRY(get_choice(p->r, "rank", weir_neurons_rank_names, 2, &rank, err));
    WEIR_TRY(get_choice(p->r, "dedup", weir_neurons_dedup_names, 4, &dedup, err));
    o->rank = (weir_neurons_rank)rank;
    o->dedup = (weir_neurons_dedup)dedup;
    WEIR_TRY(weir_arrays_get_attribute(p->r, "", "seed", WEIR_ARRAY_U64, 1, &n, &o->seed, err));
    WEIR_TRY(get_list_set(p, err));
    return get_thresholds(p, err);
}

/* --- tables */

static weir_status get_units(plan *p, int t, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    weir_neurons_table *to = &p->table[t];
    void *units;
    weir_file_path(path, p->group[t], "unit");
    WEIR_TRY(weir_arrays_get_new(p->r, path, WEIR_ARRAY_I64, &to->n, &units, err));
    const int64_t *u = to->units = units;
    bool good = to->n > 0 && to->n <= to->width;
    for (int64_t i = 0; i < to->n && good; i++)
        good = u[i] >= 0 && u[i] < to->width && (i == 0 || u[i] > u[i - 1]);
    if (!good)
        return weir_arrays_bad(p->r, path, err, "is damaged: units must ascend and lie below the width");
    if (to->n == to->width) {
        weir_free(units);
        to->units = NULL;
    }
    return WEIR_OK;
}

/* A search makes room for lists before they are read: does the file have as much? */
static weir_status check_lists(plan *p, int t, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES], name[32];
    int64_t dim[2];
    for (int i = 0; i < WEIR_NEURONS_LISTS; i++) {
        if (!(p->o.lists & 1u << i))
            continue;
        snprintf(name, sizeof name, "%s_value", weir_neurons_list_names[i]);
        weir_file_path(path, p->group[t], name);
        WEIR_TRY(weir_arrays_shape(p->r, path, WEIR_ARRAY_F32, 2, dim, err));
        if (dim[0] != p->table[t].n || dim[1] != p->o.k)
            return weir_arrays_bad(p->r, path, err, "has another shape than the neurons and k of its file");
    }
    return WEIR_OK;
}

static weir_status get_table(plan *p, int t, weir_err *err)
{
    weir_neurons_table *to = &p->table[t];
    char *hook, *site;
    int64_t layer;
    WEIR_TRY(weir_arrays_get_text(p->r, p->group[t], "hook", &hook, err));
    to->hook = hook;
    WEIR_TRY(weir_arrays_get_text(p->r, p->group[t], "site", &site, err));
    to->site = site;
    WEIR_TRY(weir_arrays_get_int(p->r, p->group[t], "layer", &layer, err));
    WEIR_TRY(weir_arrays_get_int(p->r, p->group[t], "width", &to->width, err));
    if (layer < -1 || layer > INT32_MAX || to->width < 1 || to->width > WEIR_NEURONS_WIDTH_MAX)
        return weir_arrays_bad(p->r, p->group[t], err, "is damaged: an impossible layer or width");
    to->layer = (int)layer;
    WEIR_TRY(get_units(p, t, err));
    return check_lists(p, t, err);
}

/* The groups of /neurons, by their attribute `table`. */
static weir_status name_groups(plan *p, weir_err *err)
{
    char name[WEIR_ARRAY_NAMES], path[WEIR_ARRAY_NAMES];
    for (int i = 0; i < p->n_tables; i++) {
        int64_t t;
        if (!weir_arrays_child(p->r, "neurons", i, name))
            return weir_arrays_bad(p->r, "neurons", err, "is damaged: its groups cannot be listed");
        weir_file_path(path, "neurons", name);
        WEIR_TRY(weir_arrays_get_int(p->r, path, "table", &t, err));
        if (t < 0 || t >= p->n_tables || p->group[t])
            return weir_arrays_bad(p->r, path, err, "its attribute table is %" PRId64 ", out of range or there twice",
                                   t);
        if (!(p->group[t] = weir_strndup(path, strlen(path))))
            return weir_nomem(err, "a group's name");
    }
    return WEIR_OK;
}

static weir_status get_tables(plan *p, weir_err *err)
{
    enum { MOST = 1 << 16 };
    char name[WEIR_ARRAY_NAMES];
    while (p->n_tables < MOST && weir_arrays_child(p->r, "neurons", p->n_tables, name))
        p->n_tables++;
    if (p->n_tables == 0 || p->n_tables == MOST)
        return weir_arrays_bad(p->r, "neurons", err, "has no groups, or too many");
    p->table = weir_calloc((size_t)p->n_tables, sizeof *p->table);
    p->group = weir_calloc((size_t)p->n_tables, sizeof *p->group);
    if (!p->table || !p->group)
        return weir_nomem(err, "the tables of a file");
    WEIR_TRY(name_groups(p, err));
    for (int t = 0; t < p->n_tables; t++)
        WEIR_TRY(get_table(p, t, err));
    return WEIR_OK;
}

/* --- named neurons */

static weir_status check_sums(plan *p, int t, weir_err *err)
{
    char path[64];
    int64_t dim[2];
    snprintf(path, sizeof path, "named/sums/t%d_sum", t);
    WEIR_TRY(weir_arrays_shape(p->r, path, WEIR_ARRAY_U64, 2, dim, err));
    return dim[0] == p->table[t].width ? WEIR_OK
                                       : weir_arrays_bad(p->r, path, err, "is not as long as its hook is wide");
}

static weir_status take_named(plan *p, const int64_t *table, const int64_t *neuron, int64_t n, weir_err *err)
{
    for (int64_t j = 0; j < n; j++) {
        if (table[j] < 0 || table[j] >= p->n_tables || neuron[j] < 0 || neuron[j] >= p->table[table[j]].n)
            return weir_arrays_bad(p->r, "named/neuron", err, "is damaged: it names a neuron that is not there");
        p->named[j] = (weir_neurons_named){(int)table[j], neuron[j]};
        if (p->o.correlate)
            WEIR_TRY(check_sums(p, (int)table[j], err));
    }
    p->o.named = p->named;
    p->o.n_named = (int)n;
    return WEIR_OK;
}

static weir_status get_named(plan *p, weir_err *err)
{
    int64_t n, table[WEIR_NEURONS_MAX_NAMED], neuron[WEIR_NEURONS_MAX_NAMED];
    if (!weir_arrays_has(p->r, "named"))
        return WEIR_OK;
    WEIR_TRY(weir_arrays_shape(p->r, "named/table", WEIR_ARRAY_I64, 1, &n, err));
    if (n < 1 || n > WEIR_NEURONS_MAX_NAMED)
        return weir_arrays_bad(p->r, "named/table", err, "has %" PRId64 " neurons", n);
    WEIR_TRY(weir_arrays_get(p->r, "named/table", WEIR_ARRAY_I64, 1, &n, table, err));
    WEIR_TRY(weir_arrays_get(p->r, "named/neuron", WEIR_ARRAY_I64, 1, &n, neuron, err));
    return take_named(p, table, neuron, n, err);
}

/* --- what the search holds */

static weir_status get_shards(weir_arrays_in *r, weir_neurons *s, weir_err *err)
{
    const weir_neurons_about *a = &s->about;
    int64_t *in = weir_calloc(WEIR_ARRAY_ATTRIBUTE, sizeof *in), n = 0;
    if (!in)
        return weir_nomem(err, "the parts of a text");
    weir_status st = weir_arrays_get_attribute(r, "", "shards_in", WEIR_ARRAY_I64, WEIR_ARRAY_ATTRIBUTE, &n, in, err);
    bool good = a->shards == 0 ? a->shard == 0 && (st || n == 0) : st || (n > 0 && in[0] == a->shard && n < a->shards);
    for (int64_t i = 0; i < n && good && !st; i++)
        good = in[i] >= 0 && in[i] < a->shards && (i == 0 || in[i] > in[i - 1]);
    if (!st && !good)
        st = weir_arrays_bad(r, "", err, "its attribute shards_in does not fit its shards");
    s->covered.n_shards = st ? 0 : n;
    s->covered.shard = in;
    return st;
}

static weir_status get_spans(weir_arrays_in *r, weir_neurons *s, weir_err *err)
{
    int64_t dim[2], last = -1;
    WEIR_TRY(weir_arrays_shape(r, "documents", WEIR_ARRAY_I64, 2, dim, err));
    if (dim[1] != 2 || !(s->covered.span = weir_calloc((size_t)dim[0], sizeof *s->covered.span)))
        return dim[1] == 2 ? weir_nomem(err, "the parts of a text")
                           : weir_arrays_bad(r, "documents", err, "has %" PRId64 " columns instead of 2", dim[1]);
    WEIR_TRY(weir_arrays_get(r, "documents", WEIR_ARRAY_I64, 2, dim, s->covered.span, err));
    s->covered.n_spans = dim[0];
    for (int64_t i = 0; i < dim[0]; i++) {
        const weir_span span = s->covered.span[i];
        if (span.first <= last || span.last < span.first || span.last > UINT32_MAX)
            return weir_arrays_bad(r, "documents", err, "is damaged: spans that do not ascend");
        last = span.last;
    }
    return WEIR_OK;
}

static weir_status get_about(weir_arrays_in *r, weir_neurons *s, weir_err *err)
{
    static const char *const name[] = {"model", "family", "fingerprint", "tokenizer", "source", "interventions"};
    enum { N = sizeof name / sizeof *name };
    weir_neurons_about a = {0};
    const char **to[N] = {&a.model, &a.family, &a.fingerprint, &a.tokenizer, &a.source, &a.interventions};
    char *text[N] = {NULL};
    int64_t complete = 0;
    weir_status st = WEIR_OK;
    for (int i = 0; i < N && !st; i++) {
        st = weir_arrays_get_text(r, "", name[i], &text[i], err);
        *to[i] = text[i];
    }
    if (!st)
        st = get_int(r, "shards", 0, INT32_MAX, &a.shards, err);
    if (!st)
        st = get_int(r, "shard", 0, a.shards ? a.shards - 1 : 0, &a.shard, err);
    if (!st)
        st = get_int(r, "rows_done", 0, INT64_MAX / 4, &a.rows_done, err);
    if (!st)
        st = get_int(r, "complete", 0, 1, &complete, err);
    a.complete = complete;
    if (!st)
        st = weir_about_take(s, &a, err);
    for (int i = 0; i < N; i++)
        weir_free(text[i]);
    return st;
}

static weir_status get_counts(weir_arrays_in *r, weir_neurons *s, weir_err *err)
{
    weir_neurons_counts *c = &s->counts;
    WEIR_TRY(get_int(r, "docs", 0, INT64_MAX / 4, &c->docs, err));
    WEIR_TRY(get_int(r, "rows", 0, INT64_MAX / 4, &c->rows, err));
    WEIR_TRY(get_int(r, "context", 0, INT64_MAX / 4, &c->context, err));
    for (int i = 0; i < WEIR_MASK_KINDS; i++)
        WEIR_TRY(get_int(r, weir_neurons_mask_names[i], 0, INT64_MAX / 4, &c->masked[i], err));
    return WEIR_OK;
}

static weir_status get_vocab(weir_arrays_in *r, weir_neurons *s, weir_err *err)
{
    weir_array_texts v;
    void *special = NULL;
    if (!weir_arrays_has(r, "vocab"))
        return WEIR_OK;
    WEIR_TRY(weir_arrays_get_texts(r, "vocab", &v, err));
    weir_status st =
        v.n > 0 && v.n < INT32_MAX ? WEIR_OK : weir_arrays_bad(r, "vocab/offsets", err, "has %" PRId64 " tokens", v.n);
    if (!st && weir_arrays_has(r, "vocab/special")) {
        special = weir_calloc((size_t)v.n, 1);
        st = special ? weir_arrays_get(r, "vocab/special", WEIR_ARRAY_U8, 1, &v.n, special, err)
                     : weir_nomem(err, "the vocabulary of a search");
    }
    if (!st)
        st = weir_neurons_vocab_bytes(s, v.n, (const uint8_t *)v.bytes, v.offset, special, err);
    weir_array_texts_free(&v);
    weir_free(special);
    return st;
}

static weir_status take_texts(weir_arrays_in *r, weir_texts *t, const int64_t *doc, const int64_t *pos, weir_err *err)
{
    for (int64_t i = 0; i < t->n; i++) {
        if (doc[i] < 0 || doc[i] > UINT32_MAX || pos[i] < 0 || pos[i] > UINT32_MAX || t->id[i] < 0 || t->edge[i] > 3)
            return weir_arrays_bad(r, "tokens", err, "is damaged: token %" PRId64 " has an impossible place or id", i);
        t->at[i] = (weir_place){(uint32_t)doc[i], (uint32_t)pos[i]};
        if (i > 0 && !weir_place_before(t->at[i - 1], t->at[i]))
            return weir_arrays_bad(r, "tokens", err, "is damaged: its places do not ascend");
    }
    return WEIR_OK;
}

static weir_status get_texts(weir_arrays_in *r, weir_neurons *s, weir_err *err)
{
    weir_texts *t = &s->texts;
    int64_t n = 0;
    void *doc = NULL, *pos = NULL, *id = NULL, *edge = NULL;
    weir_status st = weir_arrays_get_new(r, "tokens/doc", WEIR_ARRAY_I64, &n, &doc, err);
    const int64_t most = n;
    if (!st)
        st = weir_arrays_get_new(r, "tokens/pos", WEIR_ARRAY_I64, &n, &pos, err);
    if (!st && n == most)
        st = weir_arrays_get_new(r, "tokens/id", WEIR_ARRAY_I32, &n, &id, err);
    t->id = id;
    if (!st && n == most)
        st = weir_arrays_get_new(r, "tokens/edge", WEIR_ARRAY_U8, &n, &edge, err);
    t->edge = edge;
    if (!st && n != most)
        st = weir_arrays_bad(r, "tokens", err, "is damaged: its arrays are not equally long");
    if (!st && !(t->at = weir_calloc((size_t)n, sizeof *t->at)))
        st = weir_nomem(err, "the tokens around a search's places");
    t->n = st ? 0 : n;
    if (!st)
        st = take_texts(r, t, doc, pos, err);
    weir_free(doc);
    weir_free(pos);
    return st;
}

static weir_status get_values(weir_arrays_in *r, weir_neurons *s, weir_err *err)
{
    weir_texts *t = &s->texts;
    const int64_t there[2] = {s->o.n_named, t->n};
    int64_t dim[2];
    WEIR_TRY(weir_arrays_shape(r, "named/value", WEIR_ARRAY_F32, 2, dim, err));
    if (dim[0] != there[0] || dim[1] != there[1])
        return weir_arrays_bad(r, "named/value", err, "has another shape than its file has neurons and tokens");
    if (!(t->value = weir_calloc((size_t)dim[0], sizeof *t->value)))
        return weir_nomem(err, "the values around a search's places");
    float *all = weir_calloc((size_t)dim[0], (size_t)dim[1] * sizeof *all);
    weir_status st = all ? weir_arrays_get(r, "named/value", WEIR_ARRAY_F32, 2, dim, all, err)
                         : weir_nomem(err, "the values around a search's places");
    for (int64_t j = 0; j < dim[0] && !st; j++)
        if (!(t->value[j] = weir_calloc((size_t)dim[1], sizeof **t->value)))
            st = weir_nomem(err, "the values around a search's places");
        else
            memcpy(t->value[j], all + j * dim[1], (size_t)dim[1] * sizeof *all);
    weir_free(all);
    return st;
}

static weir_status get_detail(weir_arrays_in *r, weir_neurons *s, weir_err *err)
{
    static const weir_array_type type[] = {
        [WEIR_DETAIL_I32] = WEIR_ARRAY_I32, [WEIR_DETAIL_I64] = WEIR_ARRAY_I64, [WEIR_DETAIL_U64] = WEIR_ARRAY_U64};
    weir_detail_array a;
    char path[WEIR_ARRAY_NAMES];
    int64_t tokens;
    bool apart = false;
    if (!s->detail)
        return WEIR_OK;
    WEIR_TRY(weir_arrays_shape(r, "named/sums/token_id", WEIR_ARRAY_I32, 1, &tokens, err));
    for (int t = 0; t < s->n_tables; t++) {
        snprintf(path, sizeof path, "named/sums/t%d_apart", t);
        apart = apart || weir_arrays_has(r, path);
    }
    WEIR_TRY(weir_detail_room(s->detail, tokens, apart, err));
    for (int i = 0; weir_detail_array_at(s->detail, i, &a); i++) {
        weir_file_path(path, "named/sums", a.name);
        WEIR_TRY(weir_arrays_get(r, path, type[a.type], a.rank, a.dim, a.p, err));
    }
    return weir_detail_filled(s->detail, err);
}

static weir_status fill(const plan *p, weir_neurons *s, weir_err *err)
{
    WEIR_TRY(get_about(p->r, s, err));
    WEIR_TRY(get_counts(p->r, s, err));
    WEIR_TRY(get_shards(p->r, s, err));
    WEIR_TRY(get_spans(p->r, s, err));
    WEIR_TRY(get_vocab(p->r, s, err));
    for (int t = 0; t < p->n_tables; t++)
        WEIR_TRY(weir_file_get_table(p->r, s, t, p->group[t], err));
    if (s->weights)
        WEIR_TRY(weir_weights_check(s->weights, INT32_MAX, err)); /* a model may have more rows than its vocabulary */
    WEIR_TRY(get_texts(p->r, s, err));
    if (s->o.n_named > 0) {
        WEIR_TRY(get_values(p->r, s, err));
        WEIR_TRY(get_detail(p->r, s, err));
    }
    s->finished = true;
    return WEIR_OK;
}

static weir_status read_all(plan *p, weir_neurons **out, weir_err *err)
{
    weir_neurons *s;
    WEIR_TRY(get_options(p, err));
    WEIR_TRY(get_tables(p, err));
    WEIR_TRY(get_named(p, err));
    WEIR_TRY(weir_neurons_new(&s, &p->o, p->table, p->n_tables, err));
    weir_status st = fill(p, s, err);
    if (st)
        weir_neurons_free(s);
    else
        *out = s;
    return st;
}

weir_status weir_neurons_read(weir_neurons **out, const char *path, int threads, weir_err *err)
{
    plan p = {0};
    *out = NULL;
    WEIR_TRY(weir_arrays_open(&p.r, path, WEIR_NEURONS_FORMAT, WEIR_NEURONS_VERSION, err));
    weir_neurons_options_init(&p.o);
    p.o.threads = threads;
    weir_status st = read_all(&p, out, err);
    plan_free(&p);
    weir_arrays_close(p.r);
    if (st)
        weir_err_where(err, path, NULL, -1);
    return st;
}

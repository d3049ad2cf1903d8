/* search/covered.c: what a result is about, which part of a text it has seen, and whether two results belong together. */
#include <inttypes.h>
#include <string.h>

#include "search/file.h"

/* --- about */

enum { TEXTS = 6 };

static void list_texts(const weir_neurons_about *a, const char *out[TEXTS])
{
    const char *const all[TEXTS] = {a->model, a->family, a->fingerprint, a->tokenizer, a->source, a->interventions};
    for (int i = 0; i < TEXTS; i++)
        out[i] = all[i] ? all[i] : "";
}

/* The one shard of one is the whole text. */
static void drop_single(weir_neurons_about *a)
{
    if (a->shards == 1)
        a->shard = a->shards = 0;
}

weir_status weir_about_take(weir_neurons *s, const weir_neurons_about *about, weir_err *err)
{
    const char *text[TEXTS];
    char *copy[TEXTS] = {NULL};
    bool good = true;
    list_texts(about, text);
    for (int i = 0; i < TEXTS && good; i++)
        good = (copy[i] = weir_strndup(text[i], strlen(text[i]))) != NULL;
    if (!good) {
        for (int i = 0; i < TEXTS; i++)
            weir_free(copy[i]);
        return weir_nomem(err, "what a search is about");
    }
    s->about = *about; /* about may be &s->about: its strings are freed only now */
    drop_single(&s->about);
    for (int i = 0; i < TEXTS; i++) {
        weir_free(s->own.text[i]);
        s->own.text[i] = copy[i];
    }
    s->about.model = copy[0];
    s->about.family = copy[1];
    s->about.fingerprint = copy[2];
    s->about.tokenizer = copy[3];
    s->about.source = copy[4];
    s->about.interventions = copy[5];
    return WEIR_OK;
}

weir_status weir_neurons_set_about(weir_neurons *s, const weir_neurons_about *about, weir_err *err)
{
    return weir_about_take(s, about, err);
}

/* --- spans of documents and lists of shards */

void weir_covered_free(weir_covered *p)
{
    weir_free(p->span);
    weir_free(p->shard);
    *p = (weir_covered){0};
}

static weir_status add_span(weir_covered *p, weir_span span, weir_err *err)
{
    weir_span *grown = weir_realloc(p->span, (size_t)p->n_spans + 1, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "the parts of a text");
    p->span = grown;
    int64_t at = p->n_spans++;
    for (; at > 0 && grown[at - 1].first > span.first; at--)
        grown[at] = grown[at - 1];
    grown[at] = span;
    return WEIR_OK;
}

static weir_status add_shard(weir_covered *p, int64_t shard, weir_err *err)
{
    int64_t *grown = weir_realloc(p->shard, (size_t)p->n_shards + 1, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "the parts of a text");
    p->shard = grown;
    int64_t at = p->n_shards++;
    for (; at > 0 && grown[at - 1] > shard; at--)
        grown[at] = grown[at - 1];
    grown[at] = shard;
    return WEIR_OK;
}

weir_status weir_covered_copy(weir_covered *to, const weir_covered *from, weir_err *err)
{
    for (int64_t i = 0; i < from->n_spans; i++)
        WEIR_TRY(add_span(to, from->span[i], err));
    for (int64_t i = 0; i < from->n_shards; i++)
        WEIR_TRY(add_shard(to, from->shard[i], err));
    return WEIR_OK;
}

/* Spans that touch become one. */
static void join_spans(weir_covered *p)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->n_spans; i++)
        if (n > 0 && p->span[i].first <= p->span[n - 1].last + 1)
            p->span[n - 1].last = p->span[i].last;
        else
            p->span[n++] = p->span[i];
    p->n_spans = n;
}

/* What was fed behind a file that was read goes on from its last document. */
static weir_status settle_spans(weir_neurons *s, weir_err *err)
{
    weir_spool_record r;
    const int64_t n = s->tokens ? weir_spool_count(s->tokens) : 0;
    weir_covered *p = &s->covered;
    if (n == 0)
        return WEIR_OK;
    WEIR_TRY(weir_spool_read(s->tokens, 0, 1, &r, err));
    const int64_t first = r.doc;
    WEIR_TRY(weir_spool_read(s->tokens, n - 1, 1, &r, err));
    if (p->n_spans == 0)
        return add_span(p, (weir_span){first, r.doc}, err);
    if (p->span[p->n_spans - 1].last < r.doc)
        p->span[p->n_spans - 1].last = r.doc;
    return WEIR_OK;
}

weir_status weir_covered_settle(weir_neurons *s, weir_err *err)
{
    const weir_neurons_about *a = &s->about;
    WEIR_TRY(settle_spans(s, err));
    if (a->shards == 0)
        s->covered.n_shards = 0;
    else if (s->covered.n_shards == 0)
        return add_shard(&s->covered, a->shard, err);
    return WEIR_OK;
}

static weir_status check_apart(const weir_neurons *to, const weir_neurons *from, weir_err *err)
{
    const weir_covered *a = &to->covered, *b = &from->covered;
    if (to->about.shards != from->about.shards)
        return weir_fail(err, WEIR_E_ARG,
                         "one is of a text in %" PRId64 " shards, the other in %" PRId64 " (0: the whole text)",
                         to->about.shards, from->about.shards);
    for (int64_t i = 0, j = 0; i < a->n_shards && j < b->n_shards;) {
        if (a->shard[i] == b->shard[j])
            return weir_fail(err, WEIR_E_ARG, "both have shard %" PRId64 " of %" PRId64, a->shard[i], to->about.shards);
        *(a->shard[i] < b->shard[j] ? &i : &j) += 1;
    }
    for (int64_t i = 0, j = 0; i < a->n_spans && j < b->n_spans;) {
        const weir_span x = a->span[i], y = b->span[j];
        if (x.first <= y.last && y.first <= x.last)
            return weir_fail(err, WEIR_E_ARG, "both have document %" PRId64, x.first > y.first ? x.first : y.first);
        *(x.last < y.last ? &i : &j) += 1;
    }
    return WEIR_OK;
}

weir_status weir_covered_merge(weir_neurons *to, const weir_neurons *from, weir_err *err)
{
    weir_covered *p = &to->covered;
    weir_neurons_about *a = &to->about;
    WEIR_TRY(check_apart(to, from, err));
    WEIR_TRY(weir_covered_copy(p, &from->covered, err));
    join_spans(p);
    a->rows_done += from->about.rows_done;
    a->complete = a->complete && from->about.complete;
    if (a->shards == 0)
        return WEIR_OK;
    a->shard = p->shard[0];
    if (p->n_shards == a->shards) { /* the whole text: documents that were empty may lie between the shards */
        a->shard = a->shards = p->n_shards = 0;
        if (p->n_spans > 0)
            p->span[0].last = p->span[p->n_spans - 1].last;
        p->n_spans = p->n_spans > 0;
    }
    return WEIR_OK;
}

/* --- do they belong together? */

static weir_status differ(weir_err *err, const char *what)
{
    return weir_fail(err, WEIR_E_ARG, "they differ in %s", what);
}

static weir_status numbers_alike(const weir_neurons_options *a, const weir_neurons_options *b, weir_err *err)
{
    const struct {
        const char *name;
        int64_t a, b;
    } all[] = {
        {"k", a->k, b->k},
        {"the lists that are kept", a->lists, b->lists},
        {"how they rank", (int64_t)a->rank, (int64_t)b->rank},
        {"what counts as a duplicate", (int64_t)a->dedup, (int64_t)b->dedup},
        {"the tokens by which duplicates are known", a->dedup_n, b->dedup_n},
        {"the number of thresholds", a->n_thresholds, b->n_thresholds},
        {"the samples of a band", a->per_band, b->per_band},
        {"the number of random places", a->random, b->random},
        {"the tokens of context before a place", a->before, b->before},
        {"the tokens of context after a place", a->after, b->after},
        {"the number of named neurons", a->n_named, b->n_named},
        {"means by token", a->token_means, b->token_means},
        {"correlations", a->correlate, b->correlate},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].a != all[i].b)
            return weir_fail(err, WEIR_E_ARG, "they differ in %s: %" PRId64 " and %" PRId64, all[i].name, all[i].a,
                             all[i].b);
    return a->seed == b->seed ? WEIR_OK : differ(err, "the seed");
}

static weir_status options_alike(const weir_neurons *x, const weir_neurons *y, weir_err *err)
{
    const weir_neurons_options *a = &x->o, *b = &y->o;
    WEIR_TRY(numbers_alike(a, b, err));
    for (int i = 0; i < a->n_thresholds; i++)
        if (a->threshold[i] != b->threshold[i])
            return weir_fail(err, WEIR_E_ARG, "they differ in a threshold: %g and %g", a->threshold[i],
                             b->threshold[i]);
    for (int i = 0; i < a->n_named; i++)
        if (a->named[i].table != b->named[i].table || a->named[i].neuron != b->named[i].neuron)
            return differ(err, "the neurons that are named");
    return WEIR_OK;
}

static weir_status tables_alike(const weir_neurons *a, const weir_neurons *b, weir_err *err)
{
    if (a->n_tables != b->n_tables)
        return weir_fail(err, WEIR_E_ARG, "they differ in the number of hook points: %d and %d", a->n_tables,
                         b->n_tables);
    for (int t = 0; t < a->n_tables; t++) {
        const weir_neurons_table *x = &a->table[t].pub, *y = &b->table[t].pub;
        if (strcmp(x->hook, y->hook) != 0 || strcmp(x->site, y->site) != 0)
            return weir_fail(err, WEIR_E_ARG, "they differ in a hook point: %.80s (%.40s) and %.80s (%.40s)", x->hook,
                             x->site, y->hook, y->site);
        bool same = x->layer == y->layer && x->width == y->width && x->n == y->n;
        for (int64_t i = 0; i < x->n && same; i++)
            same = (x->units ? x->units[i] : i) == (y->units ? y->units[i] : i);
        if (!same)
            return weir_fail(err, WEIR_E_ARG, "they differ in the neurons of %.80s", x->hook);
    }
    return WEIR_OK;
}

/* The bytes alone: which tokens are special, a part of a dump knows only of those that it has. */
static bool vocab_alike(const weir_neurons *a, const weir_neurons *b)
{
    if (a->n_vocab != b->n_vocab)
        return false;
    for (int64_t i = 0; i < a->n_vocab; i++)
        if (a->vocab_at[i + 1] != b->vocab_at[i + 1])
            return false;
    return a->n_vocab == 0 || !memcmp(a->vocab, b->vocab, (size_t)a->vocab_at[a->n_vocab]);
}

weir_status weir_neurons_alike(const weir_neurons *a, const weir_neurons *b, weir_err *err)
{
    WEIR_TRY(options_alike(a, b, err));
    WEIR_TRY(tables_alike(a, b, err));
    return vocab_alike(a, b) ? WEIR_OK : differ(err, "the vocabulary");
}

weir_status weir_about_alike(const weir_neurons_about *a, const weir_neurons_about *b, weir_err *err)
{
    static const char *const name[TEXTS] = {"the model",     "its family",        "its fingerprint",
                                            "the tokenizer", "the text (source)", "interventions"};
    const char *x[TEXTS], *y[TEXTS];
    list_texts(a, x);
    list_texts(b, y);
    for (int i = 0; i < TEXTS; i++)
        if (strcmp(x[i], y[i]) != 0)
            return weir_fail(err, WEIR_E_ARG, "they differ in %s: %.150s and %.150s", name[i], x[i], y[i]);
    return WEIR_OK;
}

weir_status weir_neurons_same(const weir_neurons *was, const weir_neurons *now, const weir_neurons_about *about,
                              weir_err *err)
{
    weir_neurons_about a = *about;
    drop_single(&a);
    WEIR_TRY(weir_about_alike(&was->about, &a, err));
    if (was->about.shards != a.shards || was->about.shard != a.shard)
        return weir_fail(err, WEIR_E_ARG, "they differ in the shard: %" PRId64 "/%" PRId64 " and %" PRId64 "/%" PRId64,
                         was->about.shard, was->about.shards, a.shard, a.shards);
    return weir_neurons_alike(was, now, err);
}

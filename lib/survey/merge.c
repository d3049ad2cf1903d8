/* survey/merge.c: what a result is about, which parts of a text it has, and adding one to another. */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "survey/impl.h"

const char *const weir_survey_text_names[WEIR_SURVEY_TEXTS] = {"model",         "fingerprint", "tokenizer", "source",
                                                               "interventions", "lens",        "norm"};
const char *const weir_survey_text_words[WEIR_SURVEY_TEXTS] = {
    "the model", "the model's fingerprint", "the tokenizer", "the text (source)", "interventions", "the lens",
    "the norm"};
const char *const weir_survey_value_names[WEIR_SURVEY_VALUES] = {"ce", "kl"};

/* --- about */

void weir_survey_texts(const weir_survey_about *a, const char *out[WEIR_SURVEY_TEXTS])
{
    const char *const all[WEIR_SURVEY_TEXTS] = {a->model,         a->fingerprint, a->tokenizer, a->source,
                                                a->interventions, a->lens,        a->norm};
    for (int i = 0; i < WEIR_SURVEY_TEXTS; i++)
        out[i] = all[i] ? all[i] : "";
}

static weir_status set_shard(weir_survey *c, int64_t shard, int64_t shards, weir_err *err)
{
    c->n_shards = 0;
    if (shards <= 1) {
        c->about.shard = c->about.shards = 0;
        return WEIR_OK;
    }
    int64_t *one = weir_realloc(c->shard, 1, sizeof *one);
    if (!one)
        return weir_nomem(err, "the parts of a text");
    c->shard = one;
    one[0] = shard;
    c->n_shards = 1;
    return WEIR_OK;
}

weir_status weir_survey_set_about(weir_survey *c, const weir_survey_about *about, weir_err *err)
{
    const char *text[WEIR_SURVEY_TEXTS];
    char *copy[WEIR_SURVEY_TEXTS] = {NULL};
    bool good = true;
    if (about->shards < 0 || about->shard < 0 || (about->shard > 0 && about->shard >= about->shards))
        return weir_fail(err, WEIR_E_ARG, "shard %" PRId64 " of %" PRId64 " is none", about->shard, about->shards);
    weir_survey_texts(about, text);
    for (int i = 0; i < WEIR_SURVEY_TEXTS && good; i++)
        good = (copy[i] = weir_strndup(text[i], strlen(text[i]))) != NULL;
    for (int i = 0; i < WEIR_SURVEY_TEXTS; i++) {
        weir_free(good ? c->text[i] : copy[i]);
        c->text[i] = good ? copy[i] : c->text[i];
    }
    if (!good)
        return weir_nomem(err, "what statistics are about");
    c->about = (weir_survey_about){copy[0],      copy[1],           copy[2],
                                   copy[3],      copy[4],           copy[5],
                                   copy[6],      about->no_softcap, about->padding_masked,
                                   about->shard, about->shards};
    return set_shard(c, about->shard, about->shards, err);
}

const weir_survey_about *weir_survey_about_of(const weir_survey *c)
{
    return &c->about;
}

int64_t weir_survey_missing(const weir_survey *c, int64_t from)
{
    for (int64_t i = 0; i < c->n_shards; i++)
        from += c->shard[i] == from;
    return c->n_shards == 0 || from >= c->about.shards ? -1 : from;
}

/* --- do they belong together? */

static weir_status lines_alike(const weir_survey *a, const weir_survey *b, weir_err *err)
{
    if (a->n != b->n)
        return weir_fail(err, WEIR_E_ARG, "they differ in the number of lines: %d and %d", a->n, b->n);
    for (int l = 0; l < a->n; l++) {
        const weir_survey_line *x = &a->line[l], *y = &b->line[l];
        if (strcmp(x->name, y->name) != 0 || strcmp(x->hook, y->hook) != 0 || strcmp(x->site, y->site) != 0 ||
            x->layer != y->layer)
            return weir_fail(err, WEIR_E_ARG, "they differ in a line: %.80s and %.80s", x->name, y->name);
    }
    return WEIR_OK;
}

static weir_status about_alike(const weir_survey_about *a, const weir_survey_about *b, weir_err *err)
{
    const char *x[WEIR_SURVEY_TEXTS], *y[WEIR_SURVEY_TEXTS];
    weir_survey_texts(a, x);
    weir_survey_texts(b, y);
    for (int i = 0; i < WEIR_SURVEY_TEXTS; i++)
        if (strcmp(x[i], y[i]) != 0)
            return weir_fail(err, WEIR_E_ARG, "they differ in %s: %.150s and %.150s", weir_survey_text_words[i], x[i],
                             y[i]);
    if (a->no_softcap != b->no_softcap)
        return weir_fail(err, WEIR_E_ARG, "they differ in the soft cap: one leaves it out");
    if (a->padding_masked != b->padding_masked)
        return weir_fail(err, WEIR_E_ARG, "they differ in padding of the vocabulary: one leaves it out");
    return WEIR_OK;
}

static weir_status check_apart(const weir_survey *a, const weir_survey *b, weir_err *err)
{
    if (a->about.shards == 0 && b->about.shards == 0)
        return weir_fail(err, WEIR_E_ARG, "both are of the whole text");
    if (a->about.shards != b->about.shards)
        return weir_fail(err, WEIR_E_ARG,
                         "one is of a text in %" PRId64 " shards, the other in %" PRId64 " (0: the whole text)",
                         a->about.shards, b->about.shards);
    for (int64_t i = 0, j = 0; i < a->n_shards && j < b->n_shards;) {
        if (a->shard[i] == b->shard[j])
            return weir_fail(err, WEIR_E_ARG, "both have shard %" PRId64 " of %" PRId64, a->shard[i], a->about.shards);
        *(a->shard[i] < b->shard[j] ? &i : &j) += 1;
    }
    if (a->counts.rows > WEIR_SURVEY_MOST - b->counts.rows || a->counts.docs > WEIR_SURVEY_MOST - b->counts.docs)
        return weir_fail(err, WEIR_E_FORMAT, "together they would have more than 2^41 positions: a count is damaged");
    return WEIR_OK;
}

/* --- adding */

static void add_counts(int64_t *to, const int64_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void merge_sums(weir_survey_sums *to, const weir_survey_sums *from)
{
    to->count += from->count;
    to->lost += from->lost;
    to->sum += from->sum;
    to->min = from->min < to->min ? from->min : to->min;
    to->max = from->max > to->max ? from->max : to->max;
    add_counts(to->hist, from->hist, WEIR_SURVEY_BINS);
}

static void merge_numbers(weir_survey *to, const weir_survey *from)
{
    weir_survey_counts *a = &to->counts;
    const weir_survey_counts *b = &from->counts;
    a->docs += b->docs;
    a->rows += b->rows;
    a->lost += b->lost;
    a->seen += b->seen;
    a->without_next += b->without_next;
    add_counts(a->masked, b->masked, WEIR_MASK_KINDS);
    add_counts(to->agree, from->agree, to->n);
    add_counts(to->right, from->right, to->n);
    add_counts(to->settled, from->settled, (int64_t)to->n_sites * to->n);
    for (int i = 0; i < to->n * WEIR_SURVEY_VALUES; i++)
        merge_sums(&to->sums[i], &from->sums[i]);
}

/* Both lists ascend; all shards together are the whole text. */
static void merge_shards(weir_survey *to, const weir_survey *from)
{
    int64_t i = to->n_shards, j = from->n_shards;
    to->n_shards += from->n_shards;
    for (int64_t at = to->n_shards; j > 0;)
        to->shard[--at] = i > 0 && to->shard[i - 1] > from->shard[j - 1] ? to->shard[--i] : from->shard[--j];
    to->about.shard = to->shard[0];
    if (to->n_shards == to->about.shards)
        to->about.shard = to->about.shards = to->n_shards = 0;
}

weir_status weir_survey_merge(weir_survey *to, const weir_survey *from, weir_err *err)
{
    WEIR_TRY(about_alike(&to->about, &from->about, err));
    WEIR_TRY(lines_alike(to, from, err));
    WEIR_TRY(check_apart(to, from, err));
    int64_t *grown = weir_realloc(to->shard, (size_t)(to->n_shards + from->n_shards), sizeof *grown);
    if (!grown)
        return weir_nomem(err, "the parts of a text");
    to->shard = grown;
    merge_numbers(to, from);
    merge_shards(to, from);
    return WEIR_OK;
}

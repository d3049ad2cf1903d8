/* search/merge.c: two results become one: that of both texts. */
#include <string.h>

#include "search/file.h"
#include "search/weights.h"

weir_status weir_hist_widen(weir_ntable *t, weir_err *err)
{
    const size_t n = (size_t)t->n * WEIR_NEURONS_BINS;
    if (!t->hist_all && !(t->hist_all = weir_calloc(n, sizeof *t->hist_all)))
        return weir_nomem(err, "a histogram of so many rows");
    for (size_t i = 0; i < n; i++) {
        t->hist_all[i] += t->hist[i];
        t->hist[i] = 0;
    }
    t->hist_rows = 0;
    return WEIR_OK;
}

static weir_status merge_hist(weir_ntable *to, const weir_ntable *from, weir_err *err)
{
    const size_t n = (size_t)to->n * WEIR_NEURONS_BINS;
    if (!from->hist_all && to->hist_rows + from->hist_rows < INT32_MAX) {
        for (size_t i = 0; i < n; i++)
            to->hist[i] += from->hist[i];
        to->hist_rows += from->hist_rows;
        return WEIR_OK;
    }
    WEIR_TRY(weir_hist_widen(to, err));
    for (size_t i = 0; i < n; i++)
        to->hist_all[i] += from->hist[i] + (from->hist_all ? from->hist_all[i] : 0);
    return WEIR_OK;
}

static void merge_stats(weir_ntable *to, const weir_ntable *from, int64_t thresholds)
{
    for (int64_t i = 0; i < to->n; i++) {
        const int64_t had = to->rows - to->nonfinite[i], more = from->rows - from->nonfinite[i];
        if (more > 0 && (had == 0 || from->min[i] < to->min[i]))
            to->min[i] = from->min[i];
        if (more > 0 && (had == 0 || from->max[i] > to->max[i]))
            to->max[i] = from->max[i];
        to->nonfinite[i] += from->nonfinite[i];
        weir_sums_merge(&to->sums[i], &from->sums[i]);
    }
    for (int64_t i = 0; i < to->n * thresholds; i++)
        to->above[i] += from->above[i];
    to->rows += from->rows;
    to->skipped += from->skipped;
}

static void merge_lists(weir_ntable *to, const weir_ntable *from)
{
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        const weir_lists *l = &from->list[which];
        for (int64_t i = 0; i < l->n && l->room > 0; i++)
            for (int64_t j = 0; j < l->size[i]; j++) {
                const weir_entry e = weir_lists_get(l, i, j);
                weir_lists_put(&to->list[which], (weir_neurons_list)which, i, &e);
            }
    }
}

static weir_status merge_samples(weir_ntable *to, const weir_ntable *from, int64_t per, weir_err *err)
{
    weir_status st = WEIR_OK;
    for (int64_t i = 0; i < from->n && !st; i++) {
        const int64_t n = weir_samples_get(&from->samples, i, NULL, 0);
        weir_sample *all = weir_calloc((size_t)n, sizeof *all);
        if (!all)
            return weir_nomem(err, "samples");
        weir_samples_get(&from->samples, i, all, n);
        for (int64_t j = 0; j < n && !st; j++)
            st = weir_samples_put(&to->samples, i, per, &all[j], err);
        weir_free(all);
    }
    return st;
}

static weir_status merge_random(weir_ntable *to, const weir_ntable *from, int64_t most, weir_err *err)
{
    const weir_random *r = &from->random;
    for (int64_t i = 0; i < r->n; i++)
        WEIR_TRY(weir_random_put(&to->random, most, to->n, r->hash[i], r->at[i], r->value + r->row[i] * to->n, 1, err));
    return WEIR_OK;
}

static weir_status merge_table(weir_ntable *to, const weir_ntable *from, const weir_neurons_options *o, weir_err *err)
{
    WEIR_TRY(merge_hist(to, from, err));
    merge_stats(to, from, o->n_thresholds);
    merge_lists(to, from);
    if (o->per_band > 0)
        WEIR_TRY(merge_samples(to, from, o->per_band, err));
    return o->random > 0 ? merge_random(to, from, o->random, err) : WEIR_OK;
}

static void merge_counts(weir_neurons_counts *to, const weir_neurons_counts *from)
{
    to->docs += from->docs;
    to->rows += from->rows;
    to->context += from->context;
    for (int i = 0; i < WEIR_MASK_KINDS; i++)
        to->masked[i] += from->masked[i];
}

/* No text has so many rows; counts that do are damaged, and their sums would not fit. */
static bool too_many(int64_t a, int64_t b)
{
    return a > INT64_MAX / 4 - b;
}

static weir_status check_sizes(const weir_neurons *to, const weir_neurons *from, weir_err *err)
{
    const weir_neurons_counts *a = &to->counts, *b = &from->counts;
    bool bad = too_many(a->docs, b->docs) || too_many(a->rows, b->rows) || too_many(a->context, b->context) ||
               too_many(to->about.rows_done, from->about.rows_done);
    for (int i = 0; i < WEIR_MASK_KINDS; i++)
        bad = bad || too_many(a->masked[i], b->masked[i]);
    for (int t = 0; t < to->n_tables; t++)
        bad = bad || too_many(to->table[t].rows, from->table[t].rows) ||
              too_many(to->table[t].skipped, from->table[t].skipped);
    return bad ? weir_fail(err, WEIR_E_FORMAT, "together they would have more than 2^61 rows: a count is damaged")
               : WEIR_OK;
}

/* What one of them knows to be special is so in both. */
static weir_status merge_special(weir_neurons *to, const weir_neurons *from, weir_err *err)
{
    if (!from->special)
        return WEIR_OK;
    if (!to->special && !(to->special = weir_calloc((size_t)to->n_vocab, 1)))
        return weir_nomem(err, "the vocabulary of a search");
    for (int64_t i = 0; i < to->n_vocab; i++)
        to->special[i] |= from->special[i];
    return WEIR_OK;
}

/* A part of `from` beside from itself, which is const: what it was fed counts too. */
static weir_status merge_parts(weir_neurons *to, const weir_neurons *from, weir_err *err)
{
    weir_neurons part = {.tokens = from->tokens, .about = from->about};
    weir_status st = weir_covered_settle(to, err);
    if (!st)
        st = weir_covered_copy(&part.covered, &from->covered, err);
    if (!st)
        st = weir_covered_settle(&part, err);
    if (!st)
        st = weir_covered_merge(to, &part, err);
    weir_covered_free(&part.covered);
    return st;
}

weir_status weir_neurons_merge(weir_neurons *to, const weir_neurons *from, weir_err *err)
{
    if (!from->finished)
        return weir_fail(err, WEIR_E_ARG, "a search is merged after weir_neurons_finish");
    WEIR_TRY(weir_about_alike(&to->about, &from->about, err));
    WEIR_TRY(weir_neurons_alike(to, from, err));
    WEIR_TRY(check_sizes(to, from, err));
    WEIR_TRY(weir_neurons_settle(to, err));
    WEIR_TRY(merge_parts(to, from, err));
    WEIR_TRY(merge_special(to, from, err));
    to->finished = false;
    for (int t = 0; t < to->n_tables; t++)
        WEIR_TRY(merge_table(&to->table[t], &from->table[t], &to->o, err));
    merge_counts(&to->counts, &from->counts);
    if (to->detail)
        WEIR_TRY(weir_detail_merge(to, from, err));
    WEIR_TRY(weir_weights_merge(to, from, err));
    return weir_texts_join(to, &from->texts, err);
}

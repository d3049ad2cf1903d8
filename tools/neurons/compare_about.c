/* What two results say of themselves: where that differs, it mostly explains why the numbers do. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "compare.h"
#include "output.h"

typedef struct teller {
    weir_said_fn *put;
    void *user;
} teller;

static void tell(const teller *t, const char *what, const char *a, const char *b)
{
    if (strcmp(a ? a : "", b ? b : "") != 0)
        t->put(t->user, what, a ? a : "", b ? b : "");
}

static void tell_int(const teller *t, const char *what, int64_t a, int64_t b)
{
    char text[2][32];
    snprintf(text[0], sizeof text[0], "%" PRId64, a);
    snprintf(text[1], sizeof text[1], "%" PRId64, b);
    tell(t, what, text[0], text[1]);
}

/* --- the text, and how it was cut */

/* The value behind a key of a JSON object, to be freed: a string's text, others as they stand. "" where there is none.
 */
static char *part_of(const char *object, const char *part)
{
    weir_json j;
    weir_str key;
    char *found = NULL;
    weir_json_init(&j, object ? object : "", object ? strlen(object) : 0, NULL, NULL);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        if (found || !weir_str_eq(key, part))
            continue;
        weir_str value = weir_json_peek(&j) == WEIR_JSON_STRING ? weir_json_string(&j) : weir_json_raw(&j);
        found = strndup(value.p ? value.p : "", value.n);
    }
    weir_json_done(&j);
    return found ? found : strdup("");
}

/* Tells of one part; false: it is the same in both. */
static bool tell_part(const teller *t, const char *what, const char *a, const char *b, const char *part)
{
    char *x = part_of(a, part), *y = part_of(b, part);
    bool differs = x && y && strcmp(x, y) != 0;
    if (differs)
        tell(t, what, x, y);
    free(x);
    free(y);
    return differs;
}

/* What the text is and how it is read. It is known by its name; by sizes and hashes where the names are the same. */
static bool tell_text(const teller *t, const char *a, const char *b)
{
    static const char *const part[] = {"docs", "field", "jsonl", "ids", "max_tokens", "positions"};
    char name[2][400], *x = part_of(a, "text"), *y = part_of(b, "text");
    bool found = false;
    weir_input_name(name[0], sizeof name[0], a);
    weir_input_name(name[1], sizeof name[1], b);
    if (strcmp(name[0], name[1]) != 0) {
        tell(t, "text", name[0], name[1]);
        found = true;
    } else {
        found = tell_part(t, "text", x, y, "text");
    }
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        found = tell_part(t, part[i], x, y, part[i]) || found;
    free(x);
    free(y);
    return found;
}

static void tell_source(const teller *t, const char *a, const char *b)
{
    static const char *const part[] = {"bos", "ctx", "stride", "mask", "max_norm_ratio"};
    bool found = tell_text(t, a, b);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        found = tell_part(t, part[i], a, b, part[i]) || found;
    if (!found)
        tell(t, "source", a, b);
}

static void tell_shards(const teller *t, const weir_neurons_about *a, const weir_neurons_about *b)
{
    char text[2][64];
    const weir_neurons_about *of[2] = {a, b};
    for (int i = 0; i < 2; i++)
        if (of[i]->shards)
            snprintf(text[i], sizeof text[i], "%" PRId64 "/%" PRId64, of[i]->shard, of[i]->shards);
        else
            snprintf(text[i], sizeof text[i], "all");
    tell(t, "shard", text[0], text[1]);
}

static void tell_about(const teller *t, const weir_neurons_about *a, const weir_neurons_about *b)
{
    tell(t, "model", a->model, b->model);
    tell(t, "family", a->family, b->family);
    tell(t, "model's fingerprint", a->fingerprint, b->fingerprint);
    tell(t, "tokenizer's fingerprint", a->tokenizer, b->tokenizer);
    tell(t, "interventions", a->interventions, b->interventions);
    tell_source(t, a->source ? a->source : "", b->source ? b->source : "");
    tell_shards(t, a, b);
    tell(t, "complete", a->complete ? "yes" : "no", b->complete ? "yes" : "no");
    tell_int(t, "rows done", a->rows_done, b->rows_done);
}

/* --- options and counts */

static void tell_thresholds(const teller *t, const weir_neurons_options *a, const weir_neurons_options *b)
{
    char text[2][WEIR_NEURONS_MAX_THRESHOLDS * 26] = {"", ""};
    const weir_neurons_options *of[2] = {a, b};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < of[i]->n_thresholds; j++) {
            size_t at = strlen(text[i]);
            snprintf(text[i] + at, sizeof text[i] - at, "%s%.17g", j ? " " : "", of[i]->threshold[j]);
        }
    tell(t, "thresholds", text[0], text[1]);
}

static void tell_options(const teller *t, const weir_neurons_options *a, const weir_neurons_options *b)
{
    static const char *const lists[] = {"none", "top",      "bottom",      "top, bottom",
                                        "abs",  "top, abs", "bottom, abs", "all"};
    static const char *const rank[] = {"max", "mean"}, *const dedup[] = {"none", "window", "doc", "text"};
    tell_int(t, "k", a->k, b->k);
    tell(t, "lists", lists[a->lists & 7], lists[b->lists & 7]);
    tell(t, "rank", rank[a->rank], rank[b->rank]);
    tell(t, "dedup", dedup[a->dedup], dedup[b->dedup]);
    tell_int(t, "dedup's tokens", a->dedup_n, b->dedup_n);
    tell_thresholds(t, a, b);
    tell_int(t, "samples of a band", a->per_band, b->per_band);
    tell_int(t, "random places", a->random, b->random);
    tell_int(t, "seed", (int64_t)a->seed, (int64_t)b->seed);
    tell_int(t, "context before", a->before, b->before);
    tell_int(t, "context behind", a->after, b->after);
    tell_int(t, "named neurons", a->n_named, b->n_named);
    tell_int(t, "ids with means", a->token_means, b->token_means);
    tell(t, "correlated", a->correlate ? "yes" : "no", b->correlate ? "yes" : "no");
}

static void tell_counts(const teller *t, weir_neurons_counts a, weir_neurons_counts b)
{
    static const char *const kind[WEIR_MASK_KINDS] = {"tokens counted", "BOS masked", "special masked",
                                                      "chosen ids masked"};
    tell_int(t, "documents", a.docs, b.docs);
    tell_int(t, "tokens", a.rows, b.rows);
    for (int i = 0; i < WEIR_MASK_KINDS; i++)
        tell_int(t, kind[i], a.masked[i], b.masked[i]);
    tell_int(t, "context tokens", a.context, b.context);
}

static bool has_weights(const weir_neurons *s)
{
    int64_t n = 0;
    for (int t = 0; t < weir_neurons_n_tables(s); t++)
        if (weir_neurons_table_at(s, t)->n && weir_neurons_weight_tokens(s, t, 0, WEIR_SIDE_OUT, true, &n))
            return true;
    return false;
}

static bool same_token(const weir_neurons *const s[2], int32_t id)
{
    weir_str a = weir_neurons_token(s[0], id), b = weir_neurons_token(s[1], id);
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0) &&
           weir_neurons_token_special(s[0], id) == weir_neurons_token_special(s[1], id);
}

static void tell_vocabulary(const teller *t, const weir_neurons *const s[2])
{
    char other[80], n[32];
    int64_t size[2] = {weir_neurons_vocab_size(s[0]), weir_neurons_vocab_size(s[1])}, id = 0;
    tell_int(t, "vocabulary", size[0], size[1]);
    if (size[0] != size[1])
        return;
    while (id < size[0] && same_token(s, (int32_t)id))
        id++;
    if (id == size[0])
        return;
    snprintf(other, sizeof other, "%s tokens, others from %" PRId64 " on", weir_commas(size[0], n), id);
    tell(t, "vocabulary", n, other);
}

void weir_results_said(const weir_neurons *const s[2], weir_said_fn *put, void *user)
{
    teller t = {put, user};
    tell_about(&t, weir_neurons_about_of(s[0]), weir_neurons_about_of(s[1]));
    tell_options(&t, weir_neurons_options_of(s[0]), weir_neurons_options_of(s[1]));
    tell_counts(&t, weir_neurons_counts_of(s[0]), weir_neurons_counts_of(s[1]));
    tell_vocabulary(&t, s);
    tell(&t, "tokens from the weights", has_weights(s[0]) ? "yes" : "no", has_weights(s[1]) ? "yes" : "no");
}

/* Reading result files of logit-lens --corpus: an input edits a sound one (h5_edit.h). A file that is taken can be
 * asked everything, written again, and read from that; and it is merged into a sound one, or refused.
 *
 *     input: 1 byte base, then steps
 */
#include <math.h>
#include <weir/survey.h>

#define FUZZ_COST 30
#include "h5_edit.h"

enum { BASES = 2, LINES = 4, N = 8 };

static const char *const object[] = {"/ce/count",
                                     "/ce/lost",
                                     "/ce/mean",
                                     "/ce/min",
                                     "/ce/max",
                                     "/ce/quantile",
                                     "/ce/sum",
                                     "/ce/hist",
                                     "/kl/count",
                                     "/kl/lost",
                                     "/kl/min",
                                     "/kl/max",
                                     "/kl/sum",
                                     "/kl/hist",
                                     "/agree",
                                     "/right",
                                     "/settle/count",
                                     "/settle/mean",
                                     "/settle/site/bytes",
                                     "/settle/site/offsets",
                                     "/lines/layer",
                                     "/lines/name/bytes",
                                     "/lines/name/offsets",
                                     "/lines/hook/bytes",
                                     "/lines/hook/offsets",
                                     "/lines/site/bytes",
                                     "/lines/site/offsets",
                                     "/edges",
                                     "/quantiles",
                                     "/",
                                     "/ce",
                                     "/kl",
                                     "/lines",
                                     "/lines/name",
                                     "/lines/new",
                                     "/settle"};
static const char *const attribute[] = {"format",
                                        "format_version",
                                        "weir_version",
                                        "model",
                                        "fingerprint",
                                        "tokenizer",
                                        "source",
                                        "interventions",
                                        "lens",
                                        "norm",
                                        "softcap_left_out",
                                        "padding_masked",
                                        "shard",
                                        "shards",
                                        "shards_in",
                                        "docs",
                                        "rows",
                                        "counted",
                                        "masked_bos",
                                        "masked_special",
                                        "masked_id",
                                        "lost",
                                        "seen",
                                        "without_next",
                                        "first_bin"};
static const edit_names names = {object, attribute, sizeof object / sizeof *object,
                                 sizeof attribute / sizeof *attribute};

/* --- sound files */

static const weir_survey_line lines[LINES] = {{"embed", "blocks.0.hook_resid_pre", "resid_post", -1},
                                              {"L0 attn", "blocks.0.hook_attn_out", "attn_out", 0},
                                              {"L0", "blocks.0.hook_resid_post", "resid_post", 0},
                                              {"out", "blocks.1.hook_resid_post", "resid_post", 1}};

/* Positions with masks, ends of documents, and values that are lost. */
static void feed(weir_survey *s, int shard)
{
    float kl[LINES * N], logprob[LINES * N];
    int32_t top[LINES * N], next[N];
    uint8_t mask[N] = {WEIR_MASK_BOS, 0, 0, 0, 0, WEIR_MASK_ID};
    for (int i = 0; i < LINES * N; i++) {
        kl[i] = i / N == LINES - 1 ? 0 : (float)(i % 7) / 3;
        logprob[i] = i == 9 ? -INFINITY : -(float)(i % 5 + shard);
        top[i] = i % 3;
    }
    for (int i = 0; i < N; i++)
        next[i] = i == N - 1 ? -1 : i % 3;
    kl[2] = kl[(LINES - 1) * N + 3] = NAN;
    const weir_survey_batch b = {.n = N,
                                 .kl_final = kl,
                                 .logprob = logprob,
                                 .n_targets = 1,
                                 .top_id = top,
                                 .k = 1,
                                 .next = next,
                                 .mask = mask,
                                 .docs = 2};
    edit_ok(weir_survey_add(s, &b, NULL));
}

/* base 0: one of three shards; 1: a whole text without a position. */
static edit_base make(int which, int shard)
{
    const weir_survey_about about = {.model = "m",
                                     .fingerprint = "f",
                                     .tokenizer = "t",
                                     .source = "{\"text\":1}",
                                     .interventions = "[]",
                                     .lens = "logit lens",
                                     .norm = "recompute",
                                     .shard = which ? 0 : shard,
                                     .shards = which ? 0 : 3};
    weir_survey *s;
    edit_ok(weir_survey_new(&s, lines, LINES, NULL));
    if (which == 0)
        feed(s, shard);
    edit_ok(weir_survey_set_about(s, &about, NULL));
    edit_ok(weir_survey_write(s, parts_path("base.h5"), 1, NULL));
    weir_survey_free(s);
    edit_base b = edit_read(parts_path("base.h5"));
    unlink(parts_path("base.h5"));
    return b;
}

static const edit_base *base_of(int which, int shard)
{
    static edit_base base[BASES][2];
    if (!base[which][shard].p)
        base[which][shard] = make(which, shard);
    return &base[which][shard];
}

/* --- what holds of every file that is taken */

static void ask_value(const weir_survey *s, int line, weir_survey_value v)
{
    static int64_t hist[WEIR_SURVEY_BINS];
    const weir_survey_stat at = weir_survey_stat_of(s, line, v);
    int64_t all = 0;
    weir_survey_hist(s, line, v, hist);
    for (int b = 0; b < WEIR_SURVEY_BINS; b++)
        all += hist[b];
    PROMISE(at.count == all && at.lost >= 0);
    if (at.count == 0)
        return;
    PROMISE(isfinite(at.mean) && at.min <= at.max);
    for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++)
        PROMISE(at.quantile[q] >= (double)at.min && at.quantile[q] <= (double)at.max);
}

static void ask(const weir_survey *s)
{
    const weir_survey_counts n = weir_survey_counts_of(s);
    const int last = weir_survey_n_lines(s) - 1;
    PROMISE(n.rows >= n.seen && n.seen >= n.without_next && n.without_next >= 0);
    for (int l = 0; l <= last && l < 16; l++) {
        const weir_survey_line *line = weir_survey_line_at(s, l);
        PROMISE(line->name && line->hook && line->site);
        PROMISE(weir_survey_agree(s, l) <= n.seen && weir_survey_right(s, l) <= n.seen - n.without_next);
        for (int v = 0; v < WEIR_SURVEY_VALUES; v++)
            ask_value(s, l, (weir_survey_value)v);
    }
    for (int i = 0; i < weir_survey_n_sites(s); i++) {
        int64_t all = 0;
        for (int l = 0; l <= last; l++)
            all += weir_survey_settled(s, i, l);
        PROMISE(all == n.seen && weir_survey_settle_of(s, i).count == n.seen);
    }
}

/* What was read is written, and what was written is read, and is the same. */
static void write_again(const weir_survey *s)
{
    weir_err err = {0};
    weir_survey *back;
    promise_error(weir_survey_write(s, parts_path("again.h5"), 1, &err), &err);
    if (err.code) /* a text that cannot be an attribute */
        return;
    const edit_base once = edit_read(parts_path("again.h5"));
    edit_ok(weir_survey_read(&back, parts_path("again.h5"), NULL));
    edit_ok(weir_survey_write(back, parts_path("again.h5"), 1, NULL));
    const edit_base twice = edit_read(parts_path("again.h5"));
    PROMISE(once.n == twice.n && !memcmp(once.p, twice.p, once.n));
    free(once.p);
    free(twice.p);
    weir_survey_free(back);
    unlink(parts_path("again.h5"));
}

static void merge_it(const weir_survey *s, int which)
{
    const edit_base *b = base_of(which, 1);
    weir_err err = {0};
    weir_survey *to;
    parts_write("other.h5", b->p, b->n);
    edit_ok(weir_survey_read(&to, parts_path("other.h5"), NULL));
    promise_error(weir_survey_merge(to, s, &err), &err);
    ask(to);
    weir_survey_free(to);
    unlink(parts_path("other.h5"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    edit_input in = {data, size};
    weir_err err = {0};
    weir_survey *s;
    const int which = (int)(edit_number(&in, 1) % BASES);
    edit_file(&in, "survey.h5", base_of(which, 0), &names);
    promise_error(weir_survey_read(&s, parts_path("survey.h5"), &err), &err);
    PROMISE(!s == (err.code != WEIR_OK));
    if (s) {
        ask(s);
        write_again(s);
        merge_it(s, which);
    }
    weir_survey_free(s);
    unlink(parts_path("survey.h5"));
    return 0;
}

/* Reading result files of neuron-top: an input edits a sound one (h5_edit.h). A file that is taken can be asked
 * everything, written again, and read from that; and it is merged into a sound one, or refused.
 *
 *     input: 1 byte base, then steps
 */
#define WORLD_WIDTH 10
#include "../unit/search_world.h"

#define FUZZ_COST 30
#include "h5_edit.h"

enum { BASES = 2, DOCS = 5, K = 2 };

static const char *const object[] = {"/neurons/blocks.0.mlp.hook_pre/top_value",
                                     "/neurons/blocks.0.mlp.hook_pre/top_doc",
                                     "/neurons/blocks.0.mlp.hook_pre/top_pos",
                                     "/neurons/blocks.0.mlp.hook_pre/top_count",
                                     "/neurons/blocks.0.mlp.hook_pre/top_key",
                                     "/neurons/blocks.0.mlp.hook_pre/top_next_value",
                                     "/neurons/blocks.0.mlp.hook_pre/top_next_pos",
                                     "/neurons/blocks.0.mlp.hook_pre/abs_value",
                                     "/neurons/blocks.0.mlp.hook_pre/unit",
                                     "/neurons/blocks.0.mlp.hook_pre/nonfinite",
                                     "/neurons/blocks.0.mlp.hook_pre/above",
                                     "/neurons/blocks.0.mlp.hook_pre/hist",
                                     "/neurons/blocks.0.mlp.hook_pre/min",
                                     "/neurons/blocks.0.mlp.hook_pre/sums",
                                     "/neurons/blocks.0.mlp.hook_pre/beyond",
                                     "/neurons/blocks.0.mlp.hook_pre/sample_offsets",
                                     "/neurons/blocks.0.mlp.hook_pre/sample_value",
                                     "/neurons/blocks.0.mlp.hook_pre/sample_doc",
                                     "/neurons/blocks.0.mlp.hook_pre/random_doc",
                                     "/neurons/blocks.0.mlp.hook_pre/random_value",
                                     "/neurons/blocks.1.mlp.hook_post/unit",
                                     "/neurons/blocks.0.mlp.hook_pre@gate-act/unit",
                                     "/named/table",
                                     "/named/neuron",
                                     "/named/value",
                                     "/named/sums/token_id",
                                     "/named/sums/token_count",
                                     "/named/sums/token_sum",
                                     "/named/sums/t0_sum",
                                     "/named/sums/t0_both",
                                     "/named/sums/t0_count",
                                     "/tokens/doc",
                                     "/tokens/pos",
                                     "/tokens/id",
                                     "/tokens/edge",
                                     "/vocab/bytes",
                                     "/vocab/offsets",
                                     "/vocab/special",
                                     "/documents",
                                     "/",
                                     "/neurons",
                                     "/neurons/blocks.0.mlp.hook_pre",
                                     "/neurons/blocks.0.mlp.hook_pre@gate-act",
                                     "/neurons/new",
                                     "/named",
                                     "/named/sums",
                                     "/tokens",
                                     "/vocab"};
static const char *const attribute[] = {
    "format", "format_version", "k",      "lists",      "rank",        "dedup",     "dedup_n",   "thresholds",
    "seed",   "per_band",       "random", "before",     "after",       "correlate", "hook",      "site",
    "layer",  "width",          "rows",   "first_bin",  "token_means", "shard",     "shards",    "shards_in",
    "table",  "skipped",        "docs",   "masked_bos", "rows_done",   "complete",  "masked_id", "source"};
static const edit_names names = {object, attribute, sizeof object / sizeof *object,
                                 sizeof attribute / sizeof *attribute};

/* 0: with everything that a file can hold; 1: lists alone, without duplicates. */
static weir_neurons_options options(int base)
{
    weir_neurons_options o = world_options(base ? 1 : 0);
    o.lists = 7;
    o.k = K;
    o.threads = 1;
    o.per_band = base ? 0 : 1;
    o.random = base ? 0 : 2;
    return o;
}

static edit_base make(int which, int64_t first, int64_t end, int64_t shard)
{
    const weir_neurons_options o = options(which);
    const weir_neurons_about about = world_about(shard, 3);
    weir_neurons *s;
    edit_ok(world_search(&s, &o, first, end, 1, NULL));
    edit_ok(weir_neurons_write(s, parts_path("base.h5"), &about, NULL));
    weir_neurons_free(s);
    edit_base b = edit_read(parts_path("base.h5"));
    unlink(parts_path("base.h5"));
    return b;
}

static const edit_base *base_of(int which)
{
    static edit_base base[BASES];
    if (!base[which].p)
        base[which] = make(which, 0, DOCS, 0);
    return &base[which];
}

/* Another shard, which is as it should be. */
static const edit_base *other_of(int which)
{
    static edit_base base[BASES];
    if (!base[which].p)
        base[which] = make(which, DOCS, DOCS + 2, 1);
    return &base[which];
}

static void ask_list(const weir_neurons *s, int t, int64_t i, weir_neurons_list which)
{
    static weir_neuron_hit hit[WEIR_NEURONS_MAX_K];
    static int32_t cluster[WEIR_NEURONS_MAX_K];
    weir_neuron_clusters c;
    weir_err err = {0};
    const int64_t n = weir_neurons_hits(s, t, i, which, hit);
    PROMISE(n >= 0 && n <= weir_neurons_options_of(s)->k);
    for (int64_t j = 0; j < n; j++) {
        const weir_neurons_context around =
            weir_neurons_context_of(s, hit[j].doc, hit[j].pos, weir_neurons_find_named(s, t, i));
        PROMISE(around.n >= 0 && (around.n == 0 || around.hit < around.n));
        for (int64_t k = 0; k < around.n; k++)
            PROMISE(weir_neurons_token(s, around.id[k]).p);
        PROMISE(isfinite(hit[j].value) && hit[j].count >= 0);
    }
    promise_error(weir_neurons_clusters(s, t, i, which, &c, cluster, &err), &err);
}

static void ask_neuron(const weir_neurons *s, int t, int64_t i)
{
    static int64_t hist[WEIR_NEURONS_BINS];
    static weir_neuron_hit hit[1000];
    weir_neuron_stats stats;
    int64_t all = 0;
    weir_neurons_stats(s, t, i, &stats);
    weir_neurons_hist(s, t, i, hist);
    for (int b = 0; b < WEIR_NEURONS_BINS; b++)
        all += hist[b];
    PROMISE(all == stats.count && stats.count >= 0);
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++)
        ask_list(s, t, i, (weir_neurons_list)which);
    for (int b = 0; b < WEIR_NEURONS_BANDS; b++)
        PROMISE(weir_neurons_band(s, t, i, b, hit) <= weir_neurons_options_of(s)->per_band);
    PROMISE(weir_neurons_random(s, t, i, hit) <= weir_neurons_options_of(s)->random);
}

static void ask(const weir_neurons *s)
{
    weir_token_mean mean[8];
    weir_neuron_relation related[8];
    for (int t = 0; t < weir_neurons_n_tables(s); t++) {
        const weir_neurons_table *table = weir_neurons_table_at(s, t);
        PROMISE(table->hook && table->site && table->n >= 1);
        for (int64_t i = 0; i < table->n && i < 16; i++)
            ask_neuron(s, t, i);
    }
    for (int j = 0; j < weir_neurons_options_of(s)->n_named; j++) {
        PROMISE(weir_neurons_token_means(s, j, true, 0, 8, mean) <= 8);
        PROMISE(weir_neurons_related(s, j, false, 8, related) <= 8);
    }
}

/* What was read is written, and what was written is read, and is the same. */
static void write_again(weir_neurons *s)
{
    weir_err err = {0};
    weir_neurons *back;
    promise_error(weir_neurons_write(s, parts_path("again.h5"), weir_neurons_about_of(s), &err), &err);
    if (err.code) /* a name that cannot be a group's */
        return;
    const edit_base once = edit_read(parts_path("again.h5"));
    edit_ok(weir_neurons_read(&back, parts_path("again.h5"), 1, NULL));
    edit_ok(weir_neurons_write(back, parts_path("again.h5"), weir_neurons_about_of(back), NULL));
    const edit_base twice = edit_read(parts_path("again.h5"));
    PROMISE(once.n == twice.n && !memcmp(once.p, twice.p, once.n));
    free(once.p);
    free(twice.p);
    weir_neurons_free(back);
    unlink(parts_path("again.h5"));
}

static void merge_it(const weir_neurons *s, int which)
{
    const edit_base *b = other_of(which);
    weir_err err = {0};
    weir_neurons *to;
    parts_write("other.h5", b->p, b->n);
    edit_ok(weir_neurons_read(&to, parts_path("other.h5"), 1, NULL));
    promise_error(weir_neurons_merge(to, s, &err), &err);
    if (!err.code) {
        promise_error(weir_neurons_finish(to, &err), &err);
        if (!err.code)
            ask(to);
    }
    weir_neurons_free(to);
    unlink(parts_path("other.h5"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    edit_input in = {data, size};
    weir_err err = {0};
    weir_neurons *s;
    const int which = (int)(edit_number(&in, 1) % BASES);
    edit_file(&in, "neurons.h5", base_of(which), &names);
    promise_error(weir_neurons_read(&s, parts_path("neurons.h5"), 1, &err), &err);
    PROMISE(!s == (err.code != WEIR_OK));
    if (s) {
        ask(s);
        write_again(s);
        merge_it(s, which);
    }
    weir_neurons_free(s);
    unlink(parts_path("neurons.h5"));
    return 0;
}

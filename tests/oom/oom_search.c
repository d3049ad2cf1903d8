/* Every allocation of a search fails once: of making it, of a vocabulary, of feeding it, of ending it. Each time an
 * error that says so, and nothing is left. */
#include "search/impl.h"
#include "support/oom.h"
#include "support/scratch.h"

enum { TOKENS = 300, LENGTH = 30, WIDTH = 9 };

static const int64_t units[] = {3, 5, 8};
static const weir_neurons_table tables[] = {{"blocks.0.mlp.hook_post", "post", 0, WIDTH, WIDTH, NULL},
                                            {"blocks.1.mlp.hook_post", "post", 1, WIDTH, 3, units}};
static const weir_neurons_named named[] = {{0, 4}, {1, 2}};

static weir_neurons_options options(weir_neurons_rank rank)
{
    weir_neurons_options o;
    weir_neurons_options_init(&o);
    o.k = 10;
    o.lists = 7;
    o.rank = rank;
    o.per_band = 2;
    o.random = 20;
    o.named = named;
    o.n_named = 2;
    o.token_means = 100;
    o.correlate = true;
    o.threads = 1;
    o.kernel = "ref";
    o.spool = scratch(".");
    return o;
}

/* Two passes that overlap, and both again for the second table; the first table's counters overflow in the second. */
static weir_status feed(weir_neurons *s, weir_err *err)
{
    static int32_t id[TOKENS];
    static int64_t doc[TOKENS], pos[TOKENS];
    static float x[TOKENS * WIDTH];
    for (int i = 0; i < TOKENS; i++) {
        id[i] = i % 7;
        doc[i] = i / LENGTH;
        pos[i] = i % LENGTH;
        for (int j = 0; j < WIDTH; j++)
            x[i * WIDTH + j] = (float)((i * 37 + j * 11) % 1009) / 8 - 60;
    }
    const weir_neurons_values v = {.x = x, .stride = WIDTH, .whole = true};
    const weir_neurons_rows_of first = {.n = 100, .id = id, .doc = doc, .pos = pos, .ctx_pos = pos};
    const weir_neurons_rows_of rest = {
        .n = TOKENS - 90, .id = id + 90, .doc = doc + 90, .pos = pos + 90, .ctx_pos = pos + 90};
    const weir_neurons_rows_of all = {.n = TOKENS, .id = id, .doc = doc, .pos = pos, .ctx_pos = pos};
    WEIR_TRY(weir_neurons_rows(s, &first, false, err));
    WEIR_TRY(weir_neurons_add(s, 0, &v, err));
    WEIR_TRY(weir_neurons_rows(s, &rest, false, err));
    s->table[0].hist_rows = INT32_MAX;
    WEIR_TRY(weir_neurons_add(s, 0, &v, err));
    WEIR_TRY(weir_neurons_rows(s, &all, true, err));
    return weir_neurons_add(s, 1, &v, err);
}

static weir_status use(weir_neurons *s, weir_err *err)
{
    const int64_t offset[] = {0, 1, 3};
    WEIR_TRY(weir_neurons_vocab_bytes(s, 2, (const uint8_t *)"abc", offset, (const uint8_t[]){0, 1}, err));
    WEIR_TRY(feed(s, err));
    return weir_neurons_finish(s, err);
}

static weir_status search(const void *rank, weir_err *err)
{
    const weir_neurons_options o = options(*(const weir_neurons_rank *)rank);
    weir_neurons *s;
    weir_status st = weir_neurons_new(&s, &o, tables, 2, err);
    if (st) {
        assert_null(s);
        return st;
    }
    st = use(s, err);
    weir_neurons_free(s);
    return st;
}

static void test_search(void **state)
{
    (void)state;
    const weir_neurons_rank max = WEIR_RANK_MAX, mean = WEIR_RANK_MEAN;
    assert_in_range(oom_each(search, &max), 100, 5000);
    assert_in_range(oom_each(search, &mean), 100, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_search)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

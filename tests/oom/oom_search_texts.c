/* Every allocation of a spool, of gathering and joining the tokens around a search's places, and of clustering them
 * fails once: each time an error that says so, and the search is as before. */
#include "search/impl.h"
#include "support/oom.h"
#include "support/scratch.h"

enum { TOKENS = 3000, LENGTH = 30 };

static weir_neurons *search;
static const weir_neurons_table table = {.hook = "h", .site = "h", .layer = -1, .width = 1, .n = 1};
static const weir_neurons_named named = {0, 0};

static weir_neurons_options options(void)
{
    weir_neurons_options o;
    weir_neurons_options_init(&o);
    o.k = 40;
    o.per_band = 2;
    o.random = 5;
    o.named = &named;
    o.n_named = 1;
    o.dedup = WEIR_DEDUP_NONE;
    o.threads = 1;
    return o;
}

static weir_status feed(weir_neurons *s, weir_err *err)
{
    static int32_t id[TOKENS];
    static int64_t doc[TOKENS], pos[TOKENS];
    static float x[TOKENS];
    for (int i = 0; i < TOKENS; i++) {
        id[i] = i % 7;
        doc[i] = i / LENGTH;
        pos[i] = i % LENGTH;
        x[i] = (float)(i * 37 % 1009) - 500;
    }
    const weir_neurons_rows_of rows = {.n = TOKENS, .id = id, .doc = doc, .pos = pos, .ctx_pos = pos};
    const weir_neurons_values v = {.x = x, .stride = 1, .whole = true};
    WEIR_TRY(weir_neurons_rows(s, &rows, false, err));
    WEIR_TRY(weir_neurons_add(s, 0, &v, err));
    return weir_neurons_finish(s, err);
}

static int make_search(void **state)
{
    weir_err err = {0};
    weir_neurons_options o = options();
    if (scratch_make(state) || weir_neurons_new(&search, &o, &table, 1, &err))
        return -1;
    return feed(search, &err) ? -1 : 0;
}

static int free_search(void **state)
{
    weir_neurons_free(search);
    return scratch_remove(state);
}

static weir_status spool(const void *ctx, weir_err *err)
{
    (void)ctx;
    weir_spool *s;
    WEIR_TRY(weir_spool_new(&s, scratch("."), err));
    weir_spool_free(s);
    return WEIR_OK;
}

static void test_spool(void **state)
{
    (void)state;
    assert_in_range(oom_each(spool, NULL), 2, 20);
}

static weir_status gather(const void *ctx, weir_err *err)
{
    (void)ctx;
    int64_t n = search->texts.n;
    weir_status st = weir_texts_gather(search, err);
    assert_int_equal(search->texts.n, n);
    return st;
}

static void test_gather(void **state)
{
    (void)state;
    assert_true(search->texts.n > 1024); /* more than the first room */
    assert_in_range(oom_each(gather, NULL), 10, 100);
}

static weir_status join(const void *ctx, weir_err *err)
{
    (void)ctx;
    weir_neurons half = {.o = search->o};
    weir_texts first = search->texts, last = search->texts;
    first.n = last.n = search->texts.n / 2;
    last.at += first.n;
    last.id += first.n;
    last.edge += first.n;
    float *values = search->texts.value[0] + first.n;
    last.value = &values;
    weir_status st = weir_texts_join(&half, &last, err);
    if (st == WEIR_OK)
        st = weir_texts_join(&half, &first, err);
    weir_texts_free(&half.texts, half.o.n_named);
    return st;
}

static void test_join(void **state)
{
    (void)state;
    assert_in_range(oom_each(join, NULL), 10, 100);
}

static weir_status clusters(const void *ctx, weir_err *err)
{
    (void)ctx;
    weir_neuron_clusters c;
    return weir_neurons_clusters(search, 0, 0, WEIR_NEURONS_TOP, &c, NULL, err);
}

static void test_clusters(void **state)
{
    (void)state;
    assert_in_range(oom_each(clusters, NULL), 4, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spool),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_clusters),
    };
    return cmocka_run_group_tests(tests, make_search, free_search);
}

/* Every allocation for named neurons fails once: each time an error that says so, and nothing is lost. */
#include "support/oom.h"

#include "../unit/detail_kit.h"

static dk_rows *usual, *wild;
static dk_search search[2];

static weir_status feed_and_merge(const void *data, weir_err *err)
{
    int32_t order[DK_ROWS];
    dk_order(order);
    memset(search, 0, sizeof search);
    weir_status st = dk_init(&search[0], "ref", 1, true, err);
    if (!st)
        st = dk_init(&search[1], "ref", 1, true, err);
    if (!st)
        st = dk_feed(&search[0], usual, order, 0, 10, err);
    if (!st)
        st = dk_feed(&search[1], data, order, 5, 60, err);
    if (!st)
        st = weir_detail_merge(&search[0].s, &search[1].s, err);
    if (!st)
        st = weir_detail_room(search[1].s.detail, search[1].s.detail->ids, true, err);
    weir_detail_free(search[0].s.detail);
    weir_detail_free(search[1].s.detail);
    return st;
}

static void each_allocation_fails(void **state)
{
    (void)state;
    assert_in_range(oom_each(feed_and_merge, usual), 40, 80);
    assert_in_range(oom_each(feed_and_merge, wild), 40, 80);
}

static int make(void **state)
{
    (void)state;
    usual = dk_make(false, 1);
    wild = dk_make(true, 1);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    free(usual);
    free(wild);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_fails)};
    return cmocka_run_group_tests(tests, make, drop);
}

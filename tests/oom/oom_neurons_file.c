/* Every allocation of writing a result file, of reading it, and of merging fails once: each time an error that says so,
 * no leak, and no file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define WORLD_WIDTH 10
#include "../unit/search_world.h"
#include "support/oom.h"

enum { DOCS = 4 };

static weir_neurons *finished;

/* Everything that a file can hold. */
static weir_neurons_options everything(void)
{
    weir_neurons_options o = world_options(0);
    o.lists = 7;
    o.k = 2;
    o.per_band = 1;
    o.random = 3;
    o.threads = 1;
    return o;
}

static weir_neurons *searched(int64_t first, int64_t end)
{
    const weir_neurons_options o = everything();
    weir_err err = {0};
    weir_neurons *s;
    if (world_search(&s, &o, first, end, 1, &err))
        fail_msg("%s", err.msg);
    return s;
}

static weir_status write_it(const void *name, weir_err *err)
{
    const weir_neurons_about about = world_about(0, 2);
    weir_status st = weir_neurons_write(finished, scratch(name), &about, err);
    assert_false(scratch_exists("out.h5.new"));
    assert_int_equal(scratch_exists("out.h5"), st == WEIR_OK);
    unlink(scratch(name));
    return st;
}

static void test_write(void **state)
{
    (void)state;
    finished = searched(0, DOCS);
    const weir_neurons_about about = world_about(0, 2);
    weir_err err = {0};
    /* What s keeps for itself is made now: the work is to leave nothing. */
    assert_int_equal(weir_neurons_write(finished, scratch("first.h5"), &about, &err), WEIR_OK);
    assert_in_range(oom_each(write_it, "out.h5"), 200, 5000);
    weir_neurons_free(finished);
}

static weir_status read_it(const void *path, weir_err *err)
{
    weir_neurons *s;
    weir_status st = weir_neurons_read(&s, path, 1, err);
    assert_int_equal(s != NULL, st == WEIR_OK);
    weir_neurons_free(s);
    return st;
}

static void test_read(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s", scratch("first.h5"));
    assert_in_range(oom_each(read_it, path), 200, 5000);
}

static weir_status merge_it(const void *path, weir_err *err)
{
    weir_neurons *s;
    weir_status st = weir_neurons_read(&s, path, 1, err);
    if (!st)
        st = weir_neurons_merge(s, finished, err);
    if (!st)
        st = weir_neurons_finish(s, err);
    weir_neurons_free(s);
    return st;
}

static void test_merge(void **state)
{
    (void)state;
    char path[1024];
    const weir_neurons_about about = world_about(1, 2);
    weir_err err = {0};
    snprintf(path, sizeof path, "%s", scratch("first.h5"));
    finished = searched(DOCS, DOCS + 2);
    assert_int_equal(weir_neurons_write(finished, scratch("second.h5"), &about, &err), WEIR_OK);
    assert_in_range(oom_each(merge_it, path), 300, 10000);
    weir_neurons_free(finished);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_write), cmocka_unit_test(test_read),
                                       cmocka_unit_test(test_merge)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

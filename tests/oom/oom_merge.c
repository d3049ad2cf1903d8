/* Every allocation of cutting a text into blocks, and of joining dumps, fails once: each time an error that says so, no
 * leak, and no result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../unit/record_read.h"
#include "support/oom.h"

static char first[512], second[512], out[512];

static weir_status read_block(const void *path, weir_err *err)
{
    const char *const paths[] = {path};
    weir_docs_options o = {.paths = paths, .n_paths = 1, .shard = 1, .shards = 2};
    weir_docs *docs;
    weir_doc d;
    bool more;
    WEIR_TRY(weir_docs_open(&docs, &o, err));
    weir_status st;
    do
        st = weir_docs_next(docs, &d, &more, err);
    while (!st && more);
    weir_docs_free(docs);
    return st;
}

static void test_block(void **state)
{
    (void)state;
    const char *path =
        scratch_text("t.jsonl", "{\"text\":\"a\",\"name\":\"x\",\"n\":1}\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n");
    assert_in_range(oom_each(read_block, path), 5, 200);
}

static weir_status merge(const void *as_virtual, weir_err *err)
{
    const char *const paths[] = {first, second};
    weir_merge_options o;
    weir_merge_options_init(&o);
    o.as_virtual = as_virtual != NULL;
    o.threads = 1;
    o.force = true;
    weir_status st = weir_dump_merge(out, paths, 2, &o, NULL, err);
    assert_false(scratch_exists("out.h5.part"));
    assert_int_equal(scratch_exists("out.h5"), st == WEIR_OK);
    unlink(out);
    return st;
}

static void test_merge(void **state)
{
    (void)state;
    const rr_shape shape = {.rows = 10, .len = 5, .compress = 1, .threads = 1};
    rr_write(fx_path(first, "a.h5"), &shape);
    rr_write(fx_path(second, "b.h5"), &shape);
    fx_path(out, "out.h5");
    assert_in_range(oom_each(merge, NULL), 100, 20000);
    assert_in_range(oom_each(merge, "virtual"), 100, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_block), cmocka_unit_test(test_merge)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Every allocation of writing and reading a dump fails once: each time a clean error, nothing under the final name that
 * is not whole, no leak, no crash. (HDF5's and libdeflate's own allocations are theirs.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "../unit/record_fixture.h"
#include "support/oom.h"

static char path[512];
static fx_pass pass; /* made once, outside the count */
static float values[FX_CTX * FX_H * FX_C];

static weir_status fill(weir_dump *d, weir_err *err)
{
    static const int64_t units[] = {1, 2};
    const weir_field fields[] = {{.name = {"n", 1}, .type = WEIR_FIELD_INT, .i = 1},
                                 {.name = {"s", 1}, .type = WEIR_FIELD_STRING, .str = {"text", 4}}};
    const weir_doc doc = {.fields = fields, .n_fields = 2};
    for (int p = 0; p < FX_POINTS; p++)
        WEIR_TRY(weir_dump_add_point(d, &fx_point[p], p == 0 ? units : NULL, p == 0 ? 2 : -1, err));
    WEIR_TRY(weir_dump_doc(d, &doc, "a.jsonl", err));
    WEIR_TRY(fx_tokens(d, &pass, 0, err));
    for (int p = 0; p < FX_POINTS; p++) {
        int64_t size = fx_size(p, pass.rows.n);
        weir_value v = {&fx_point[p], values, fx_point[p].heads * size, fx_point[p].heads, size, &pass.rows};
        WEIR_TRY(weir_dump_value(d, &v, err));
    }
    return WEIR_OK;
}

static weir_status write_dump(weir_err *err)
{
    weir_dump *d;
    weir_dump_options o;
    weir_dump_header h = fx_header();
    weir_dump_options_init(&o);
    o.threads = 1;
    o.force = true;
    WEIR_TRY(weir_dump_new(&d, path, &h, &o, err));
    weir_status st = fill(d, err);
    if (st) {
        weir_dump_abort(d, true);
        return st;
    }
    return weir_dump_commit(d, NULL, err);
}

static weir_status read_dump(weir_err *err)
{
    weir_dump_reader *r;
    WEIR_TRY(weir_dump_open(&r, path, err));
    weir_status st = weir_dump_read(r, 0, 0, 1, values, err);
    if (!st && !weir_dump_attr(r, "ctx"))
        st = WEIR_E_NOMEM;
    weir_dump_close(r);
    return st;
}

static bool whole(void)
{
    weir_dump_reader *r;
    if (weir_dump_open(&r, path, NULL))
        return false;
    const char *complete = weir_dump_attr(r, "complete");
    bool good = complete && !strcmp(complete, "1") && weir_dump_rows(r) == pass.rows.n;
    weir_dump_close(r);
    return good;
}

static void each_failure_is_clean(weir_status (*use)(weir_err *), bool keeps_file)
{
    struct stat st;
    weir_err err = {0};
    allocations = fail_at = 0;
    assert_int_equal(use(&err), WEIR_OK);
    long n = allocations;
    assert_true(n > 10);
    for (long i = 1; i <= n; i++) {
        memset(&err, 0, sizeof err);
        if (!keeps_file)
            unlink(path);
        allocations = 0;
        fail_at = i;
        weir_status got = use(&err);
        fail_at = 0;
        if (got != WEIR_E_NOMEM)
            fail_msg("allocation %ld of %ld: status %d, %s", i, n, (int)got, err.msg);
        if (!keeps_file)
            assert_true(stat(path, &st) != 0);
    }
    fail_at = 0;
}

static void writing(void **state)
{
    (void)state;
    each_failure_is_clean(write_dump, false);
    weir_err err = {0};
    assert_int_equal(write_dump(&err), WEIR_OK); /* over a .part that a failure left */
    assert_true(whole());
}

static void reading(void **state)
{
    (void)state;
    weir_err err = {0};
    assert_int_equal(write_dump(&err), WEIR_OK);
    each_failure_is_clean(read_dump, true);
    assert_true(whole());
}

static int set_up(void **state)
{
    fx_pass_make(&pass, 0, FX_CTX, 0, 0);
    if (scratch_make(state))
        return -1;
    fx_path(path, "oom.h5");
    return 0;
}

static int tear_down(void **state)
{
    fx_pass_free(&pass);
    return scratch_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(writing), cmocka_unit_test(reading)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* File maps, the cursor, element types, and output files that appear whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include <weir/tensor.h>

#include <sys/stat.h>

#include "base/mem.h"
#include "io/cursor.h"
#include "io/filemap.h"
#include "support/said.h"
#include "support/scratch.h"

static void test_map(void **state)
{
    (void)state;
    weir_filemap m;
    weir_err e = {0};
    assert_int_equal(weir_filemap_open(&m, scratch_text("a", "hello"), &e), WEIR_OK);
    assert_int_equal(m.size, 5);
    assert_memory_equal(m.data, "hello", 5);
    assert_string_equal(m.path, scratch("a"));
    weir_filemap_close(&m);
    assert_int_equal(weir_filemap_open(&m, scratch_text("empty", ""), &e), WEIR_OK);
    assert_true(m.size == 0 && !m.data);
    weir_filemap_close(&m);
    assert_int_equal(weir_filemap_open(&m, scratch("none"), &e), WEIR_E_IO);
    assert_true(said(&e, WEIR_E_IO, "none: cannot open: No such file or directory"));
    e.code = WEIR_OK;
    assert_int_equal(weir_filemap_open(&m, scratch_root, &e), WEIR_E_ARG);
    assert_true(said(&e, WEIR_E_ARG, "not a regular file but a directory"));
    assert_int_equal(mkfifo(scratch("fifo"), 0600), 0); /* must not wait for a writer */
    e.code = WEIR_OK;
    assert_int_equal(weir_filemap_open(&m, scratch("fifo"), &e), WEIR_E_ARG);
    assert_true(said(&e, WEIR_E_ARG, "not a regular file"));
}

static void test_paths(void **state)
{
    (void)state;
    static const char *const join[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};
    for (size_t i = 0; i < 4; i++) {
        char *p = weir_path_join(join[i][0], join[i][1]);
        assert_string_equal(p, join[i][2]);
        weir_free(p);
    }
    assert_true(weir_path_is_dir(scratch_root) && !weir_path_is_file(scratch_root));
    assert_true(weir_path_is_file(scratch_text("f", "x")) && !weir_path_is_dir(scratch("f")));
    assert_false(weir_path_is_file(scratch("none")) || weir_path_is_dir(scratch("none")));
    assert_false(weir_path_is_file(scratch("f/none")));
    assert_int_equal(symlink("loop", scratch("loop")), 0);
    assert_true(weir_path_is_file(scratch("loop")));
    weir_filemap m;
    weir_err e = {0};
    assert_int_equal(weir_filemap_open(&m, scratch("loop"), &e), WEIR_E_IO);
    assert_true(said(&e, WEIR_E_IO, "loop: cannot open: Too many levels of symbolic links"));
}

static void test_cursor(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    weir_cursor c;
    weir_err e = {0};
    weir_cursor_init(&c, bytes, sizeof bytes, "f.bin", &e);
    assert_int_equal(weir_cursor_u8(&c), 1);
    assert_int_equal(weir_cursor_u16(&c), 0x0302);
    assert_int_equal(weir_cursor_u32(&c), 0x07060504);
    assert_true(weir_cursor_u64(&c) == 0x0f0e0d0c0b0a0908u);
    assert_int_equal(weir_cursor_left(&c), 2);
    assert_null(weir_cursor_bytes(&c, UINT64_MAX));
    assert_true(said(&e, WEIR_E_FORMAT,
                     "f.bin: at byte 15: the file ends too early: 18446744073709551615 bytes wanted, 2 left"));
    assert_int_equal(weir_cursor_u8(&c), 0); /* sticky, though bytes are left */
    assert_int_equal(weir_cursor_left(&c), 0);
    assert_int_equal(weir_cursor_fail(&c, WEIR_E_ARG, "second"), WEIR_E_FORMAT);
    weir_cursor_init(&c, bytes, sizeof bytes, "f.bin", NULL);
    assert_ptr_equal(weir_cursor_bytes(&c, 17), bytes);
    assert_non_null(weir_cursor_bytes(&c, 0));
    assert_int_equal(weir_cursor_u16(&c), 0);
    assert_int_equal(c.status, WEIR_E_FORMAT);
    weir_cursor_init(&c, NULL, 9, "f.bin", NULL);
    assert_int_equal(weir_cursor_left(&c), 0);
}

static void test_dtypes(void **state)
{
    (void)state;
    assert_string_equal(weir_dtype_name(WEIR_BF16), "BF16");
    assert_string_equal(weir_dtype_name(WEIR_Q4_K), "Q4_K");
    assert_string_equal(weir_dtype_name(WEIR_OTHER), "OTHER");
    for (int t = 0; t <= WEIR_OTHER; t++) {
        int64_t block = weir_dtype_block((weir_dtype)t);
        assert_non_null(weir_dtype_name((weir_dtype)t));
        assert_true(block == 1 || block == 32 || block == 256);
        assert_true(weir_dtype_bytes((weir_dtype)t) > 0);
    }
    assert_int_equal(weir_dtype_block(WEIR_Q8_0), 32);
    assert_int_equal(weir_dtype_bytes(WEIR_Q8_0), 34);
    assert_int_equal(weir_dtype_bytes(WEIR_Q6_K), 210);
}

/* --- output files */

static bool holds(const char *name, const char *text)
{
    char buf[100] = "";
    FILE *f = fopen(scratch(name), "rb");
    if (!f)
        return false;
    size_t n = fread(buf, 1, sizeof buf - 1, f);
    fclose(f);
    return n == strlen(text) && memcmp(buf, text, n) == 0;
}

static void test_holds_can_fail(void **state)
{
    (void)state;
    scratch_text("h", "yes");
    assert_true(holds("h", "yes"));
    assert_false(holds("h", "no") || holds("h", "ye") || holds("none", ""));
}

static void test_outfile(void **state)
{
    (void)state;
    weir_outfile *f;
    weir_err e = {0};
    assert_int_equal(weir_outfile_open(&f, scratch("out"), false, &e), WEIR_OK);
    fputs("one", weir_outfile_stream(f));
    assert_true(scratch_exists("out.part"));
    assert_false(scratch_exists("out"));
    assert_int_equal(weir_outfile_commit(f, &e), WEIR_OK);
    assert_true(holds("out", "one"));
    assert_false(scratch_exists("out.part"));

    assert_int_equal(weir_outfile_open(&f, scratch("out"), false, &e), WEIR_E_ARG);
    assert_true(said(&e, WEIR_E_ARG, "out: the file exists"));
    assert_null(f);
    e.code = WEIR_OK;
    assert_int_equal(weir_outfile_open(&f, scratch("out"), true, &e), WEIR_OK);
    fputs("two", weir_outfile_stream(f));
    assert_true(holds("out", "one")); /* the old one stands until the end */
    weir_outfile_abort(f);
    assert_true(holds("out", "one") && !scratch_exists("out.part"));
    assert_int_equal(weir_outfile_open(&f, scratch("out"), true, &e), WEIR_OK);
    fputs("three", weir_outfile_stream(f));
    assert_int_equal(weir_outfile_commit(f, &e), WEIR_OK);
    assert_true(holds("out", "three"));
    weir_outfile_abort(NULL);
}

static void test_outfile_taken_meanwhile(void **state)
{
    (void)state;
    weir_outfile *f;
    weir_err e = {0};
    assert_int_equal(weir_outfile_open(&f, scratch("race"), false, &e), WEIR_OK);
    fputs("ours", weir_outfile_stream(f));
    scratch_text("race", "theirs");
    assert_int_equal(weir_outfile_commit(f, &e), WEIR_E_ARG);
    assert_true(holds("race", "theirs") && !scratch_exists("race.part"));
}

/* Two runs of one output never mix: the second one is refused while the first one writes, and may write behind it. */
static void test_outfile_of_two_runs(void **state)
{
    (void)state;
    weir_outfile *f, *second;
    weir_err e = {0};
    scratch_text("both.part", "left by a kill");
    assert_int_equal(weir_outfile_open(&f, scratch("both"), true, &e), WEIR_OK);
    fputs("first", weir_outfile_stream(f));
    assert_int_equal(weir_outfile_open(&second, scratch("both"), true, &e), WEIR_E_IO);
    assert_true(said(&e, WEIR_E_IO, "both.part: another run is writing it"));
    assert_null(second);
    e = (weir_err){0};
    assert_int_equal(weir_outfile_commit(f, &e), WEIR_OK);
    assert_true(holds("both", "first"));
    assert_int_equal(weir_outfile_open(&second, scratch("both"), true, &e), WEIR_OK);
    assert_int_equal(weir_outfile_commit(second, &e), WEIR_OK);
    assert_true(holds("both", ""));
}

static void test_outfile_replaces_files_only(void **state)
{
    (void)state;
    weir_outfile *f;
    weir_err e = {0};
    assert_int_equal(mkfifo(scratch("pipe"), 0600), 0);
    assert_int_equal(weir_outfile_open(&f, scratch("pipe"), true, &e), WEIR_E_ARG);
    assert_true(said(&e, WEIR_E_ARG, "a pipe or a device"));
    assert_true(scratch_exists("pipe") && !scratch_exists("pipe.part"));
    assert_int_equal(mkfifo(scratch("x.part"), 0600), 0); /* nobody reads it: to open it would never end */
    e = (weir_err){0};
    assert_int_equal(weir_outfile_open(&f, scratch("x"), true, &e), WEIR_E_ARG);
    assert_true(said(&e, WEIR_E_ARG, "x.part: it is a pipe or a device") && scratch_exists("x.part"));
}

static void test_outfile_errors(void **state)
{
    (void)state;
    weir_outfile *f;
    weir_err e = {0};
    scratch_dir("dir");
    assert_int_equal(weir_outfile_open(&f, scratch("dir"), true, &e), WEIR_E_IO);
    assert_true(said(&e, WEIR_E_IO, "dir: cannot write it: Is a directory"));
    e.code = WEIR_OK;
    assert_int_equal(weir_outfile_open(&f, scratch("no/such/dir"), true, &e), WEIR_E_IO);
    assert_true(said(&e, WEIR_E_IO, "no/such/dir.part: cannot create it: No such file or directory"));
    assert_int_equal(weir_outfile_open(&f, "", true, NULL), WEIR_E_ARG);
    scratch_text("victim", "kept");
    assert_int_equal(symlink(scratch("victim"), scratch("linked.part")), 0);
    assert_int_equal(weir_outfile_open(&f, scratch("linked"), true, NULL), WEIR_E_IO);
    assert_true(holds("victim", "kept"));
}

/* A full disk is noticed at the latest by commit, and nothing is left. */
static void fill_disk(int n)
{
    weir_outfile *f;
    weir_err e = {0};
    assert_int_equal(weir_outfile_open(&f, scratch("full"), false, &e), WEIR_OK);
    assert_non_null(freopen("/dev/full", "wb", weir_outfile_stream(f)));
    for (int i = 0; i < n; i++)
        putc('x', weir_outfile_stream(f));
    assert_int_equal(weir_outfile_commit(f, &e), WEIR_E_IO);
    assert_true(said(&e, WEIR_E_IO, "full.part: cannot write it: No space left on device"));
    assert_false(scratch_exists("full") || scratch_exists("full.part"));
}

static void test_full_disk(void **state)
{
    (void)state;
    fill_disk(1);
    fill_disk(100000); /* more than the stream holds: the error came long before */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_holds_can_fail),
        cmocka_unit_test(test_outfile),
        cmocka_unit_test(test_outfile_taken_meanwhile),
        cmocka_unit_test(test_outfile_of_two_runs),
        cmocka_unit_test(test_outfile_replaces_files_only),
        cmocka_unit_test(test_outfile_errors),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

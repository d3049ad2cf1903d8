/* A recording while it goes on: others follow it, others must not touch it, and file systems differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "record/round.h"
#include "record_runs.h"

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static void record_slowly(void *user)
{
    run_how h = run_usual();
    weir_err err = {0};
    h.pause = 4000;
    if (run_all(user, &h, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        _exit(3);
    }
}

/* What a follower reads of a dataset after H5Drefresh: rows [row, row + n) into out. */
static bool follow_rows(hid_t d, hid_t type, int64_t row, int64_t n, int64_t width, void *out)
{
    hsize_t start[2] = {(hsize_t)row, 0}, count[2] = {(hsize_t)n, (hsize_t)width};
    int rank = width ? 2 : 1;
    H5Drefresh(d);
    hid_t file = H5Dget_space(d), memory = H5Screate_simple(rank, count, NULL);
    bool good = H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                H5Dread(d, type, memory, file, H5P_DEFAULT, out) >= 0;
    H5Sclose(file);
    H5Sclose(memory);
    return good;
}

/* One look at a file that grows: rows that are said to be whole, all checked; -1: what was said does not hold. */
static int64_t look(hid_t f)
{
    int64_t complete[16] = {0}, start = 0, count = 0, doc = 0;
    int32_t id[8192];
    float embed[FX_C];
    hid_t progress = H5Dopen2(f, "progress/rows_complete", H5P_DEFAULT), ids = H5Dopen2(f, "tokens/id", H5P_DEFAULT),
          docs = H5Dopen2(f, "tokens/doc", H5P_DEFAULT), starts = H5Dopen2(f, "docs/start", H5P_DEFAULT),
          counts = H5Dopen2(f, "docs/count", H5P_DEFAULT), embeds = H5Dopen2(f, "activations/hook_embed", H5P_DEFAULT);
    H5Drefresh(progress);
    bool good = H5Dread(progress, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, complete) >= 0;
    int64_t rows = complete[0]; /* tokens */
    if (good && rows > 0) {
        good = follow_rows(ids, H5T_NATIVE_INT32, 0, rows, 0, id) &&
               follow_rows(embeds, H5T_NATIVE_FLOAT, rows - 1, 1, FX_C, embed) &&
               follow_rows(docs, H5T_NATIVE_INT64, rows - 1, 1, 0, &doc) &&
               follow_rows(starts, H5T_NATIVE_INT64, doc, 1, 0, &start) &&
               follow_rows(counts, H5T_NATIVE_INT64, doc, 1, 0, &count) && start < rows && start + count >= rows;
        for (int64_t i = 0; i < rows && good; i++)
            good = id[i] == i % 5;
        for (int64_t e = 0; e < FX_C && good; e++)
            good = embed[e] == fx_value(0, rows - 1, e);
    }
    hid_t all[] = {progress, ids, docs, starts, counts, embeds};
    for (int i = 0; i < 6; i++)
        H5Dclose(all[i]);
    return good ? rows : -1;
}

static void a_run_can_be_followed(void **state)
{
    (void)state;
    char path[512], part[600];
    int status = 0, different = 0;
    int64_t seen = -1;
    hid_t f = -1;
    snprintf(part, sizeof part, "%s.part", fx_path(path, "follow.h5"));
    pid_t writer = fork();
    if (writer == 0) {
        record_slowly(path);
        _exit(0);
    }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    while (waitpid(writer, &status, WNOHANG) == 0) {
        if (f < 0)
            f = H5Fopen(part, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, fapl);
        if (f >= 0) {
            int64_t rows = look(f);
            if (rows < 0 || rows < seen)
                fail_msg("a follower reads something else behind %d rows", (int)seen);
            different += rows > seen;
            seen = rows;
        }
        usleep(1000);
    }
    assert_int_equal(status, 0); /* the end is not disturbed by the follower, who has the file open still */
    assert_true(different >= 3);
    assert_true(seen >= 2048);
    assert_true(exists(path));
    H5Fclose(f);
    f = H5Fopen(path, H5F_ACC_RDONLY, fapl);
    assert_int_equal(look(f), run_start(RUN_DOCS));
    H5Fclose(f);
    H5Pclose(fapl);
}

/* Our reader, opened anew: rows that it has, all checked; -1: what it reads is something else. */
static int64_t read_look(const char *part)
{
    weir_dump_reader *r;
    weir_err err = {0};
    int32_t id[8192];
    float embed[8192];
    if (weir_dump_open(&r, part, &err))
        return 0; /* not begun */
    int64_t rows = weir_dump_rows(r);
    int hook = weir_dump_find(r, "hook_embed");
    bool good = rows == 0 || (hook >= 0 && !weir_dump_read_ids(r, 0, rows, id, &err) &&
                              !weir_dump_read_column(r, hook, 7, 0, rows, embed, &err));
    for (int64_t i = 0; i < rows && good; i++)
        good = id[i] == i % 5 && embed[i] == fx_value(0, i, 7);
    if (!good)
        fprintf(stderr, "%lld rows: %s\n", (long long)rows, err.msg);
    weir_dump_close(r);
    return good ? rows : -1;
}

/* While it is written, and after its writer was killed. */
static void a_run_can_be_read(void **state)
{
    (void)state;
    char path[512], part[600];
    int different = 0;
    int64_t seen = 0;
    snprintf(part, sizeof part, "%s.part", fx_path(path, "read.h5"));
    pid_t writer = fork();
    if (writer == 0) {
        record_slowly(path);
        _exit(0);
    }
    while (seen < 2048) {
        int64_t rows = exists(part) ? read_look(part) : 0;
        assert_true(rows >= seen);
        different += rows > seen;
        seen = rows;
        usleep(1000);
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    assert_true(different >= 2);
    assert_true(read_look(part) >= seen);
}

static void a_run_is_let_alone(void **state)
{
    (void)state;
    char path[512], part[600];
    int status = 0;
    weir_dump_options o;
    weir_dump *d = NULL;
    weir_dump_header head = fx_header();
    snprintf(part, sizeof part, "%s.part", fx_path(path, "busy.h5"));
    run_watch();
    pid_t writer = fork();
    if (writer == 0) {
        record_slowly(path);
        _exit(0);
    }
    while (*run_safe == 0)
        usleep(1000);
    for (int how = 0; how < 3; how++) {
        weir_err err = {0};
        weir_dump_options_init(&o);
        o.force = how == 1;
        o.resume = how == 2;
        weir_status st = how ? weir_dump_new(&d, path, &head, &o, &err) : weir_dump_repair(part, NULL, &err);
        assert_int_equal(st, WEIR_E_ARG);
        if (!strstr(err.msg, "another"))
            fail_msg("%s", err.msg);
    }
    waitpid(writer, &status, 0);
    assert_int_equal(status, 0);
    assert_true(exists(path));
}

static void keep_line(void *user, weir_log_level level, const char *msg)
{
    if (level == WEIR_LOG_WARN)
        snprintf(user, 512, "%s", msg);
}

static void locks_that_fail_are_said(void **state)
{
    (void)state;
    char path[512], other[512], part[600], first[128], said[512];
    for (int how = 0; how < 3; how++) {
        weir_err err = {0};
        run_how h = run_usual();
        snprintf(part, sizeof part, "%s.part", fx_path(path, "nolocks.h5"));
        said[0] = '\0';
        h.o.log = (weir_log){keep_line, said};
        run_no_locks = how == 1;
        if (how == 2)
            setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
        h.stop = 100;
        assert_int_equal(run_all(path, &h, &err), WEIR_OK);
        h.stop = RUN_DOCS;
        h.o.resume = true;
        if (run_all(path, &h, &err))
            fail_msg("%s", err.msg);
        unsetenv("HDF5_USE_FILE_LOCKING");
        run_no_locks = false;
        if (how)
            assert_int_equal(run_differences(path, other, false, first), 0);
        else
            rename(path, fx_path(other, "locks.h5"));
        assert_true(how ? strstr(said, "locks do not work here") != NULL : !said[0]);
    }
}

/* --- fewer bits */

static bool has_bits(const char *path, const run_how *h)
{
    float row[FX_C], want[FX_C];
    uint16_t half[FX_C];
    hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), d = H5Dopen2(f, "activations/hook_embed", H5P_DEFAULT);
    hid_t type = H5Dget_type(d);
    bool good = H5Tget_size(type) == (h->o.f16 ? 2 : 4);
    for (int64_t r = 0; r < run_start(RUN_DOCS); r += 97) {
        good = good && follow_rows(d, H5T_NATIVE_FLOAT, r, 1, FX_C, row);
        for (int64_t e = 0; e < FX_C; e++)
            want[e] = fx_value(0, r, e);
        if (h->o.f16) {
            weir_to_f16(half, want, FX_C);
            weir_from_f16(want, half, FX_C);
        } else if (h->o.mantissa) {
            weir_round_mantissa(want, want, FX_C, h->o.mantissa);
        }
        good = good && !memcmp(row, want, sizeof want);
    }
    H5Tclose(type);
    H5Dclose(d);
    H5Fclose(f);
    return good;
}

static void fewer_bits_are_stored_and_gone_on_with(void **state)
{
    (void)state;
    static const int bits[] = {0, 7, 10, 16};
    for (int i = 0; i < 4; i++) {
        char path[512], again[512], first[128];
        run_how h = run_usual();
        weir_err err = {0};
        weir_dump_options_init(&h.o);
        h.o.threads = 1;
        h.o.mantissa = bits[i] < 16 ? bits[i] : 0;
        h.o.f16 = bits[i] == 16;
        assert_int_equal(run_all(fx_path(path, "bits.h5"), &h, &err), WEIR_OK);
        assert_true(has_bits(path, &h));
        h.stop = 71;
        assert_int_equal(run_all(fx_path(again, "again.h5"), &h, &err), WEIR_OK);
        h.stop = RUN_DOCS;
        h.o.resume = true;
        if (run_all(again, &h, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(run_differences(again, path, false, first), 0);
        h.o.mantissa = bits[i] == 7 ? 10 : 7; /* the comparison can fail */
        h.o.f16 = false;
        assert_false(has_bits(path, &h));
    }
}

static void bits_that_are_not_offered(void **state)
{
    (void)state;
    char path[512];
    weir_dump *d = NULL;
    weir_dump_header head = fx_header();
    for (int i = 0; i < 2; i++) {
        weir_err err = {0};
        weir_dump_options o;
        weir_dump_options_init(&o);
        o.mantissa = i ? 7 : 8;
        o.f16 = i;
        assert_int_equal(weir_dump_new(&d, fx_path(path, "no.h5"), &head, &o, &err), WEIR_E_ARG);
        assert_non_null(strstr(err.msg, i ? "choose one" : "7 or 10"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_can_be_followed),
        cmocka_unit_test(a_run_can_be_read),     cmocka_unit_test(a_run_is_let_alone),
        cmocka_unit_test(locks_that_fail_are_said),  cmocka_unit_test(fewer_bits_are_stored_and_gone_on_with),
        cmocka_unit_test(bits_that_are_not_offered),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Files that are damaged, unfinished, being written, or made of others: what can be read is read, and one line says
 * what cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <hdf5.h>
#include <sys/wait.h>

#include "record_read.h"

enum { POINT = 7, WIDE = FX_F };

static const char dataset[] = "activations/blocks.10.mlp.hook_post";

/* Byte offset of the chunk that begins at `row`, `column`. */
static int64_t chunk_at(const char *path, int64_t row, int64_t column, hsize_t *bytes)
{
    const hsize_t at[2] = {(hsize_t)row, (hsize_t)column};
    haddr_t where = 0;
    unsigned mask;
    hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), d = H5Dopen2(f, dataset, H5P_DEFAULT);
    assert_true(H5Dget_chunk_info_by_coord(d, at, &mask, &where, bytes) >= 0);
    H5Dclose(d);
    H5Fclose(f);
    return (int64_t)where;
}

static void poke(const char *path, int64_t offset, uint8_t mask)
{
    uint8_t b = 0;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &b, 1, offset) == 1);
    b ^= mask;
    assert_int_equal(pwrite(fd, &b, 1, offset), 1);
    close(fd);
}

static void expect_line(const weir_err *err, const char *file, const char *part)
{
    char line[1400];
    weir_err_line(err, line, sizeof line);
    if (!strstr(line, part) || !strstr(line, file) || strchr(line, '\n'))
        fail_msg("not of \"%s\" in %s: %s", part, file, line);
}

/* --- damage */

static void damaged_chunks(void **state)
{
    (void)state;
    char path[512];
    const rr_shape s = {.rows = 2500, .len = 25, .compress = 1, .threads = 2};
    hsize_t bytes;
    float *out = rr_floats(2500 * WIDE);
    rr_write(fx_path(path, "damaged.h5"), &s);
    const int64_t where = chunk_at(path, 1024, 64, &bytes);
    poke(path, where + (int64_t)bytes / 2, 0x55);
    weir_dump_reader *r = rr_open(path);
    const int i = weir_dump_find(r, fx_point[POINT].name);
    for (int way = 0; way < 3; way++) {
        weir_err err = {0};
        weir_status st = way == 0   ? weir_dump_read(r, i, 0, 2500, out, &err)
                         : way == 1 ? weir_dump_read_column(r, i, 100, 0, 2500, out, &err)
                                    : weir_dump_read(r, i, 1100, 1, out, &err);
        assert_int_equal(st, WEIR_E_FORMAT);
        expect_line(&err, path, "rows 1024 to 2047 are damaged");
        assert_string_equal(err.tensor, fx_point[POINT].name);
        assert_int_equal(err.offset, where);
    }
    assert_int_equal(weir_dump_read(r, i, 0, 1024, out, NULL), WEIR_OK); /* the rest is there */
    assert_int_equal(rr_wrong(&s, POINT, out, 0, 1024, NULL, 0, WIDE), 0);
    const int64_t column = 63;
    assert_int_equal(weir_dump_read_column(r, i, column, 0, 2500, out, NULL), WEIR_OK);
    assert_int_equal(rr_wrong(&s, POINT, out, 0, 2500, &column, 0, 1), 0);
    weir_dump_close(r);
    free(out);
}

static void chunks_of_a_wrong_length(void **state)
{
    (void)state;
    char path[512];
    const hsize_t at[2] = {0, 0};
    const rr_shape s = {.rows = 100, .len = 25, .compress = 1};
    float out[100];
    weir_err err = {0};
    rr_write(fx_path(path, "length.h5"), &s);
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), d = H5Dopen2(f, dataset, H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(d, H5P_DEFAULT, 3, at, 10, "0123456789") >= 0); /* says that it is not packed */
    H5Dclose(d);
    H5Fclose(f);
    weir_dump_reader *r = rr_open(path);
    assert_int_equal(weir_dump_read_column(r, weir_dump_find(r, fx_point[POINT].name), 0, 0, 100, out, &err),
                     WEIR_E_FORMAT);
    expect_line(&err, path, "rows 0 to 99 are damaged: their chunk has a wrong length");
    weir_dump_close(r);
}

static void files_that_are_cut_short(void **state)
{
    (void)state;
    char path[512];
    const rr_shape s = {.rows = 2500, .len = 25, .compress = 1};
    float *out = rr_floats(2500);
    weir_dump_reader *r = NULL;
    weir_err err = {0};
    hsize_t bytes;
    rr_write(fx_path(path, "short.h5"), &s);
    const int64_t where = chunk_at(path, 2048, 192, &bytes);
    r = rr_open(path);
    const int i = weir_dump_find(r, fx_point[POINT].name);
    assert_int_equal(weir_dump_read_column(r, i, 0, 0, 2500, out, NULL), WEIR_OK); /* its index is known now */
    assert_int_equal(truncate(path, where + 1), 0);
    assert_int_equal(weir_dump_read_column(r, i, 199, 0, 2500, out, &err), WEIR_E_FORMAT);
    expect_line(&err, path, "the file was cut short");
    weir_dump_close(r);
    memset(&err, 0, sizeof err);
    assert_int_equal(weir_dump_open(&r, path, &err), WEIR_E_FORMAT);
    assert_null(r);
    expect_line(&err, path, "the file is cut short");
    for (int64_t n = 4000; n > 0; n /= 3) {
        assert_int_equal(truncate(path, n), 0);
        assert_int_not_equal(weir_dump_open(&r, path, NULL), WEIR_OK);
    }
    memset(&err, 0, sizeof err);
    assert_int_equal(weir_dump_open(&r, scratch_text("text.h5", "no dump"), &err), WEIR_E_FORMAT);
    assert_non_null(strstr(err.msg, "not an HDF5 file"));
    memset(&err, 0, sizeof err);
    assert_int_equal(weir_dump_open(&r, scratch_root, &err), WEIR_E_FORMAT);
    expect_line(&err, scratch_root, "not a regular file");
    free(out);
}

/* What a kill leaves before the file is ready for readers: flagged as being written (superblock, byte 11). */
static void a_file_for_repair_says_so(void **state)
{
    (void)state;
    char path[512];
    const rr_shape s = {.rows = 10, .len = 5, .compress = 1};
    weir_dump_reader *r = NULL;
    weir_err err = {0};
    rr_write(fx_path(path, "killed.h5"), &s);
    poke(path, 11, 1);
    assert_int_equal(weir_dump_open(&r, path, &err), WEIR_E_FORMAT);
    expect_line(&err, path, "weir repair ");
}

/* --- documents that lie */

static void put_number(const char *path, const char *name, hsize_t at, int64_t value)
{
    const hsize_t one = 1;
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), d = H5Dopen2(f, name, H5P_DEFAULT), space = H5Dget_space(d);
    hid_t mem = H5Screate_simple(1, &one, NULL);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL) >= 0);
    assert_true(H5Dwrite(d, H5T_NATIVE_INT64, mem, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(mem);
    H5Sclose(space);
    H5Dclose(d);
    assert_true(H5Fclose(f) >= 0);
}

static void numbers_that_lie(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        hsize_t at;
        int64_t value;
        const char *said;
    } lie[] = {
        {"docs/start", 1, -1, "document 1 has rows"},        {"docs/start", 1, INT64_MAX, "document 1 has rows"},
        {"docs/count", 1, 6, "document 1 has rows"},         {"docs/count", 1, INT64_MIN, "document 1 has rows"},
        {"docs/source", 1, 2, "sources has no string 2"},    {"docs/source", 1, -1, "sources has no string -1"},
        {"sources/offsets", 1, -1, "sources has wrong"},     {"sources/offsets", 2, 1 << 20, "sources has wrong"},
        {"vocab/offsets", 2, 90, "vocab has wrong offsets"}, {"vocab/offsets", 5, 1 << 20, "vocab has wrong offsets"},
        {"vocab/offsets", 0, -9, "vocab has wrong offsets"}, {"tokens/id", 3, 9, "vocabulary has no token 9"},
    };
    char path[512];
    const rr_shape s = {.rows = 10, .len = 5, .compress = 0};
    fx_path(path, "lies.h5");
    for (size_t k = 0; k < sizeof lie / sizeof *lie; k++) {
        weir_dump_doc_rows doc;
        weir_str text;
        weir_err err = {0};
        rr_write(path, &s);
        put_number(path, lie[k].name, lie[k].at, lie[k].value);
        weir_dump_reader *r = rr_open(path);
        weir_status st = weir_dump_read_doc(r, 1, &doc, &err);
        if (!st)
            st = weir_dump_read_text(r, 0, 10, &text, &err);
        assert_int_equal(st, WEIR_E_FORMAT);
        expect_line(&err, path, lie[k].said);
        weir_dump_close(r);
    }
}

/* --- virtual datasets */

typedef struct part {
    const char *file;
    int64_t rows, row; /* goes to row `row` of the whole */
} part;

static const float gap = 2.5f; /* where no part is */

/* The dump at path with its last hook virtual, made of parts. */
static void make_virtual(const char *path, int64_t rows, const part *p, int n)
{
    const rr_shape s = {.rows = rows, .len = 25, .compress = 1};
    const hsize_t dim[2] = {(hsize_t)rows, WIDE};
    rr_write(path, &s);
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, dim, NULL);
    assert_true(H5Pset_fill_value(plist, H5T_NATIVE_FLOAT, &gap) >= 0);
    assert_true(H5Ldelete(f, dataset, H5P_DEFAULT) >= 0);
    for (int k = 0; k < n; k++) {
        const hsize_t at[2] = {(hsize_t)p[k].row, 0}, its[2] = {(hsize_t)p[k].rows, WIDE};
        hid_t mine = H5Scopy(space), source = H5Screate_simple(2, its, NULL);
        assert_true(H5Sselect_hyperslab(mine, H5S_SELECT_SET, at, NULL, its, NULL) >= 0);
        if (k == 1) /* as a block, the other as all of it: files keep that in two ways */
            assert_true(H5Sselect_hyperslab(source, H5S_SELECT_SET, (hsize_t[2]){0, 0}, NULL, its, NULL) >= 0);
        assert_true(H5Pset_virtual(plist, mine, p[k].file, dataset, source) >= 0);
        H5Sclose(source);
        H5Sclose(mine);
    }
    hid_t d = H5Dcreate2(f, dataset, H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    assert_true(d >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(plist);
    H5Fclose(f);
}

static const rr_shape a_shape = {.rows = 1500, .len = 25, .compress = 1},
                      b_shape = {.rows = 700, .len = 7, .compress = 0};
static const part both[] = {{"b.h5", 700, 1550}, {"a.h5", 1500, 0}}; /* rows 1500 to 1549 are in neither */

static float whole_value(int64_t row, int64_t column)
{
    if (row < 1500)
        return rr_value(&a_shape, POINT, row, column);
    return row < 1550 ? gap : rr_value(&b_shape, POINT, row - 1550, column);
}

static void check_whole(weir_dump_reader *r, int i, int64_t row, int64_t n, const int64_t *column, int64_t n_columns)
{
    float *out = rr_floats(n * n_columns);
    weir_err err = {0};
    char line[1400];
    weir_status st = column ? weir_dump_read_columns(r, i, column, n_columns, row, n, out, &err)
                            : weir_dump_read(r, i, row, n, out, &err);
    if (st)
        fail_msg("%s", weir_err_line(&err, line, sizeof line));
    for (int64_t k = 0; k < n * n_columns; k++) {
        const float want = whole_value(row + k / n_columns, column ? column[k % n_columns] : k % n_columns);
        assert_memory_equal(&out[k], &want, sizeof want);
    }
    free(out);
}

static void parts_are_put_together(void **state)
{
    (void)state;
    char path[512], link_path[512];
    static const int64_t list[] = {0, 199, 64};
    rr_write(scratch("a.h5"), &a_shape);
    rr_write(scratch("b.h5"), &b_shape);
    make_virtual(fx_path(path, "whole.h5"), 2250, both, 2);
    mkdir(scratch("elsewhere"), 0777);
    fx_path(link_path, "elsewhere/link.h5");
    assert_int_equal(symlink(path, link_path), 0);
    for (int way = 0; way < 3; way++) { /* as it is, by HDF5, through a link */
        weir_dump_reader *r = rr_open(way == 2 ? link_path : path);
        const int i = weir_dump_find(r, fx_point[POINT].name);
        weir_dump_read_plainly(r, way == 1);
        check_whole(r, i, 0, 2250, NULL, WIDE);
        check_whole(r, i, 1490, 100, NULL, WIDE);
        check_whole(r, i, 1510, 3, NULL, WIDE);
        check_whole(r, i, 2249, 1, NULL, WIDE);
        check_whole(r, i, 0, 2250, list, 3);
        check_whole(r, i, 1023, 600, list, 1);
        weir_dump_stream *s;
        weir_dump_block b;
        int64_t seen = 0;
        assert_int_equal(weir_dump_stream_open(&s, r, i, 0, 2250, NULL), WEIR_OK);
        while (!weir_dump_stream_next(s, &b, NULL) && b.n > 0)
            for (int64_t k = 0; k < b.n * WIDE; k++, seen++)
                assert_true(b.data[k] == whole_value(b.row + k / WIDE, k % WIDE));
        assert_int_equal(seen, 2250 * WIDE);
        weir_dump_stream_close(s);
        weir_dump_close(r);
    }
}

static void expect_refusal(const char *path, const char *file, const char *said)
{
    float out[10];
    weir_err err = {0};
    weir_dump_reader *r = rr_open(path);
    weir_status st = weir_dump_read_column(r, weir_dump_find(r, fx_point[POINT].name), 0, 1560, 10, out, &err);
    assert_int_not_equal(st, WEIR_OK);
    expect_line(&err, file, said);
    weir_dump_close(r);
}

static void parts_that_are_missing_or_changed(void **state)
{
    (void)state;
    char path[512];
    const rr_shape less = {.rows = 600, .len = 7, .compress = 0};
    const part self[] = {{".", 700, 1550}, {"a.h5", 1500, 0}};
    rr_write(scratch("a.h5"), &a_shape);
    rr_write(scratch("b.h5"), &b_shape);
    make_virtual(fx_path(path, "whole.h5"), 2250, both, 2);
    unlink(scratch("b.h5"));
    expect_refusal(path, "b.h5", "cannot open: No such file");
    rr_write(scratch("b.h5"), &less);
    expect_refusal(path, "b.h5", "has changed");
    scratch_text("b.h5", "something else");
    expect_refusal(path, "b.h5", "not an HDF5 file");
    make_virtual(path, 2250, self, 2);
    expect_refusal(path, "whole.h5", "made of its own file");
}

/* --- a file that is being written */

static void grow(hid_t f, const char *name, hsize_t rows, int rank, hsize_t width)
{
    hsize_t dim[2] = {rows, width};
    hid_t d = H5Dopen2(f, name, H5P_DEFAULT);
    assert_true(d >= 0 && H5Dset_extent(d, dim) >= 0 && (rank == 1 || rank == 2) && H5Dflush(d) >= 0);
    H5Dclose(d);
}

static void set_progress(hid_t f, int64_t rows)
{
    int64_t all[16];
    hid_t d = H5Dopen2(f, "progress/rows_complete", H5P_DEFAULT), space = H5Dget_space(d);
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    assert_true(n > 0 && n <= 16);
    for (hssize_t i = 0; i < n; i++)
        all[i] = rows;
    assert_true(H5Dwrite(d, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0 && H5Dflush(d) >= 0);
    H5Sclose(space);
    H5Dclose(d);
}

/* A writer of the SWMR kind, by hand: it grows tokens and one hook, and says so last. */
static void a_live_file_is_followed(void **state)
{
    (void)state;
    char path[512], part_path[512];
    const rr_shape s = {.rows = 10, .len = 5, .compress = 1, .keep_part = true};
    const char *hook = "blocks.0.hook_resid_pre";
    float row[FX_C];
    weir_err err = {0};
    rr_write(fx_path(path, "live.h5"), &s);
    fx_path(part_path, "live.h5.part");
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V110);
    hid_t f = H5Fopen(part_path, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, fapl);
    assert_true(f >= 0);
    weir_dump_reader *r = rr_open(part_path);
    const int i = weir_dump_find(r, hook);
    const weir_dump_hook *h = weir_dump_hook_at(r, i);
    assert_false(weir_dump_is_complete(r));
    assert_true(weir_dump_rows(r) == 10 && h->rows == 10);
    grow(f, "tokens/id", 1500, 1, 0);
    grow(f, "activations/blocks.0.hook_resid_pre", 1500, 2, FX_C);
    assert_int_equal(weir_dump_refresh(r, &err), WEIR_OK);
    assert_int_equal(h->rows, 10); /* not said yet */
    assert_int_equal(weir_dump_read(r, i, 10, 1, row, NULL), WEIR_E_ARG);
    set_progress(f, 1400);
    assert_int_equal(weir_dump_refresh(r, &err), WEIR_OK);
    assert_int_equal(h->rows, 1400);
    assert_int_equal(weir_dump_rows(r), 10); /* the other hooks have no more */
    assert_int_equal(weir_dump_read(r, i, 9, 1, row, NULL), WEIR_OK);
    assert_true(row[3] == rr_value(&s, 1, 9, 3));
    assert_int_equal(weir_dump_read(r, i, 1399, 1, row, NULL), WEIR_OK);
    assert_true(row[3] == 0); /* grown, never written: the fill value */
    assert_string_equal(h->name, hook);
    assert_int_equal(rename(part_path, path), 0); /* the reader has the file, not its name */
    H5Fclose(f);
    H5Pclose(fapl);
    assert_int_equal(weir_dump_refresh(r, &err), WEIR_OK);
    assert_int_equal(h->rows, 1400);
    weir_dump_close(r);
}

/* A child that is killed while it writes: what was said to be whole is read, without repair. */
static void what_a_kill_leaves_is_read(void **state)
{
    (void)state;
    char path[512], part_path[512];
    const rr_shape s = {.rows = 10, .len = 5, .compress = 1, .keep_part = true};
    float row[FX_C];
    rr_write(fx_path(path, "killed2.h5"), &s);
    fx_path(part_path, "killed2.h5.part");
    const pid_t child = fork();
    if (child == 0) {
        hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
        H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V110);
        hid_t f = H5Fopen(part_path, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, fapl);
        _exit(f >= 0 ? 0 : 1); /* nothing is closed */
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    weir_dump_reader *r = rr_open(part_path);
    assert_int_equal(weir_dump_rows(r), 10);
    assert_int_equal(weir_dump_read(r, weir_dump_find(r, fx_point[1].name), 9, 1, row, NULL), WEIR_OK);
    assert_true(row[3] == rr_value(&s, 1, 9, 3));
    weir_dump_close(r);
}

int main(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_chunks),
        cmocka_unit_test(chunks_of_a_wrong_length),
        cmocka_unit_test(files_that_are_cut_short),
        cmocka_unit_test(a_file_for_repair_says_so),
        cmocka_unit_test(numbers_that_lie),
        cmocka_unit_test(parts_are_put_together),
        cmocka_unit_test(parts_that_are_missing_or_changed),
        cmocka_unit_test(a_live_file_is_followed),
        cmocka_unit_test(what_a_kill_leaves_is_read),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

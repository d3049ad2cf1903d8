/* Hooks that were stored in other ways than weir's, by other programs: the same values, whether we read their chunks or
 * HDF5 does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <hdf5.h>

#include "record_read.h"

enum { ROWS = 900, POINT = 1, MAP = 5 };

static const rr_shape shape = {.rows = ROWS, .len = 30, .compress = 1, .threads = 2};

static float *values(int p, int64_t width)
{
    float *x = rr_floats(ROWS * width);
    for (int64_t i = 0; i < ROWS * width; i++)
        x[i] = rr_value(&shape, p, i / width, i % width);
    return x;
}

/* The dump with the dataset of point p written anew, with this type and these properties. dcpl is closed. */
static void store(const char *path, int p, hid_t type, hid_t dcpl)
{
    const int64_t width = fx_point[p].heads * fx_point[p].size;
    const hsize_t flat[2] = {ROWS, (hsize_t)width},
                  deep[3] = {ROWS, (hsize_t)fx_point[p].heads, (hsize_t)fx_point[p].size};
    const hsize_t any[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
    char name[100];
    float *x = values(p, width);
    rr_write(path, &shape);
    snprintf(name, sizeof name, "activations/%s", fx_point[p].name);
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    const bool grows = H5Pget_layout(dcpl) == H5D_CHUNKED;
    hid_t space = p == MAP ? H5Screate_simple(3, deep, NULL) : H5Screate_simple(2, flat, grows ? any : NULL);
    assert_true(f >= 0 && H5Ldelete(f, name, H5P_DEFAULT) >= 0);
    hid_t d = H5Dcreate2(f, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(d >= 0 && H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(dcpl);
    assert_true(H5Fclose(f) >= 0);
    free(x);
}

static hid_t chunks(int rank, hsize_t a, hsize_t b, hsize_t c, bool shuffle, int level)
{
    const hsize_t dim[3] = {a, b, c};
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(p, rank, dim) >= 0);
    assert_true(!shuffle || H5Pset_shuffle(p) >= 0);
    assert_true(level == 0 || H5Pset_deflate(p, (unsigned)level) >= 0);
    return p;
}

/* Rows, columns and blocks, by ourselves and by HDF5. */
static void reads_well(const char *path, int p)
{
    weir_dump_reader *r = rr_open(path);
    const int i = weir_dump_find(r, fx_point[p].name);
    const int64_t width = weir_dump_hook_at(r, i)->width, list[] = {width - 1, 3, 64, 65, 3};
    float *out = rr_floats(ROWS * width);
    for (int plain = 0; plain < 2; plain++) {
        weir_dump_stream *s;
        weir_dump_block b;
        int64_t seen = 0;
        weir_dump_read_plainly(r, plain);
        assert_int_equal(weir_dump_read(r, i, 0, ROWS, out, NULL), WEIR_OK);
        assert_int_equal(rr_wrong(&shape, p, out, 0, ROWS, NULL, 0, width), 0);
        assert_int_equal(weir_dump_read(r, i, 77, 5, out, NULL), WEIR_OK);
        assert_int_equal(rr_wrong(&shape, p, out, 77, 5, NULL, 0, width), 0);
        assert_int_equal(weir_dump_read_columns(r, i, list, 5, 33, ROWS - 40, out, NULL), WEIR_OK);
        assert_int_equal(rr_wrong(&shape, p, out, 33, ROWS - 40, list, 0, 5), 0);
        assert_int_equal(weir_dump_stream_open(&s, r, i, 0, ROWS, NULL), WEIR_OK);
        while (!weir_dump_stream_next(s, &b, NULL) && b.n > 0) {
            assert_int_equal(rr_wrong(&shape, p, b.data, b.row, b.n, NULL, b.column, b.n_columns), 0);
            seen += b.n * b.n_columns;
        }
        assert_int_equal(seen, ROWS * width);
        weir_dump_stream_close(s);
    }
    free(out);
    weir_dump_close(r);
}

static void chunks_of_other_shapes(void **state)
{
    (void)state;
    static const hsize_t dim[][2] = {{100, 30}, {7, 3}, {256, FX_C}, {ROWS, 1}, {1, FX_C}, {4096, 128}};
    char path[512];
    fx_path(path, "chunks.h5");
    for (size_t k = 0; k < sizeof dim / sizeof *dim; k++)
        for (int how = 0; how < 4; how++) {
            store(path, POINT, H5T_IEEE_F32LE, chunks(2, dim[k][0], dim[k][1], 0, how & 1, how & 2 ? 4 : 0));
            reads_well(path, POINT);
        }
    store(path, MAP, H5T_IEEE_F32LE, chunks(3, 10, 2, 7, true, 1));
    reads_well(path, MAP);
    store(path, MAP, H5T_IEEE_F32LE, chunks(3, 64, 3, 40, false, 9));
    reads_well(path, MAP);
}

static void layouts_that_hdf5_reads(void **state)
{
    (void)state;
    char path[512];
    fx_path(path, "layout.h5");
    store(path, POINT, H5T_IEEE_F32LE, H5Pcreate(H5P_DATASET_CREATE)); /* contiguous */
    reads_well(path, POINT);
    hid_t p = chunks(2, 128, 50, 0, true, 1);
    assert_true(H5Pset_fletcher32(p) >= 0);
    store(path, POINT, H5T_IEEE_F32LE, p);
    reads_well(path, POINT);
    store(path, POINT, H5T_IEEE_F32BE, chunks(2, 128, 50, 0, true, 1));
    reads_well(path, POINT);
    store(path, POINT, H5T_IEEE_F64LE, chunks(2, 128, 50, 0, true, 1));
    reads_well(path, POINT);
}

static hid_t half_type(void)
{
    hid_t t = H5Tcopy(H5T_IEEE_F32LE);
    assert_true(H5Tset_fields(t, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(t, 2) >= 0 && H5Tset_ebias(t, 15) >= 0);
    return t;
}

/* float16: what HDF5 makes of it. */
static void half_floats(void **state)
{
    (void)state;
    char path[512];
    fx_path(path, "half.h5");
    for (int how = 0; how < 4; how++) {
        hid_t t = half_type();
        store(path, POINT, t, chunks(2, 128, 70, 0, how & 1, how & 2 ? 1 : 0));
        H5Tclose(t);
        weir_dump_reader *r = rr_open(path);
        const int i = weir_dump_find(r, fx_point[POINT].name); /* the newest link stands last */
        float *ours = rr_floats(ROWS * FX_C), *theirs = rr_floats(ROWS * FX_C), *column = rr_floats(ROWS);
        assert_int_equal(weir_dump_read(r, i, 0, ROWS, ours, NULL), WEIR_OK);
        assert_int_equal(weir_dump_read_column(r, i, 69, 0, ROWS, column, NULL), WEIR_OK);
        weir_dump_read_plainly(r, true);
        assert_int_equal(weir_dump_read(r, i, 0, ROWS, theirs, NULL), WEIR_OK);
        assert_memory_equal(ours, theirs, ROWS * FX_C * sizeof *ours);
        for (int64_t k = 0; k < ROWS; k++)
            assert_memory_equal(&column[k], &theirs[k * FX_C + 69], sizeof *column);
        assert_true(rr_wrong(&shape, POINT, ours, 0, ROWS, NULL, 0, FX_C) > ROWS); /* it is not exact */
        free(ours);
        free(theirs);
        free(column);
        weir_dump_close(r);
    }
}

/* A chunk that its writer did not pack, and one that is not there at all. */
static void filters_that_were_skipped(void **state)
{
    (void)state;
    char path[512];
    const hsize_t at[2] = {128, 64}, dim[2] = {ROWS, FX_C}, chunk[2] = {128, 64};
    static float one[128 * 64];
    for (int i = 0; i < 128 * 64; i++)
        one[i] = i % 64 < FX_C - 64 ? rr_value(&shape, POINT, 128 + i / 64, 64 + i % 64) : 0;
    rr_write(fx_path(path, "mask.h5"), &shape);
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), p = chunks(2, chunk[0], chunk[1], 0, true, 1);
    const float fill = 2.5f;
    assert_true(H5Pset_fill_value(p, H5T_NATIVE_FLOAT, &fill) >= 0);
    char name[100];
    snprintf(name, sizeof name, "activations/%s", fx_point[POINT].name);
    assert_true(H5Ldelete(f, name, H5P_DEFAULT) >= 0);
    hid_t space = H5Screate_simple(2, dim, NULL);
    hid_t d = H5Dcreate2(f, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, p, H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(d, H5P_DEFAULT, 3, at, sizeof one, one) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(p);
    H5Fclose(f);
    weir_dump_reader *r = rr_open(path);
    const int i = weir_dump_find(r, fx_point[POINT].name);
    float *out = rr_floats(ROWS * FX_C);
    for (int plain = 0; plain < 2; plain++) {
        weir_dump_read_plainly(r, plain);
        assert_int_equal(weir_dump_read(r, i, 0, ROWS, out, NULL), WEIR_OK);
        for (int64_t k = 0; k < ROWS * FX_C; k++) {
            const bool there = k / FX_C >= 128 && k / FX_C < 256 && k % FX_C >= 64;
            const float want = there ? rr_value(&shape, POINT, k / FX_C, k % FX_C) : fill;
            assert_memory_equal(&out[k], &want, sizeof want);
        }
    }
    free(out);
    weir_dump_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_of_other_shapes),
        cmocka_unit_test(layouts_that_hdf5_reads),
        cmocka_unit_test(half_floats),
        cmocka_unit_test(filters_that_were_skipped),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

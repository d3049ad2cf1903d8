/* Files of arrays: every shape is read as it was written, by HDF5 alone too; every array tells by itself when it is
 * damaged, and the seal tells for all the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <hdf5.h>
#include <weir/arrays.h>

#include "support/said.h"
#include "support/scratch.h"

enum { VERSION = 1, SEAL = 42 };
static const char format[] = "weir-test";

typedef struct shape {
    const char *name;
    weir_array_type type;
    int rank;
    int64_t dim[WEIR_ARRAY_RANK];
} shape;

/* Chunks have 256 KiB at most: one, many, with a rest, and rows that are cut along the second axis or the third. */
static const shape shapes[] = {
    {"one", WEIR_ARRAY_I64, 1, {1}},
    {"byte", WEIR_ARRAY_U8, 1, {1}},
    {"none", WEIR_ARRAY_F64, 1, {0}},
    {"no/rows", WEIR_ARRAY_F32, 2, {0, 5}},
    {"no/columns", WEIR_ARRAY_F32, 2, {5, 0}},
    {"small", WEIR_ARRAY_F32, 2, {3, 7}},
    {"deep/in/small", WEIR_ARRAY_U64, 3, {5, 4, 6}},
    {"chunk", WEIR_ARRAY_U8, 1, {1 << 18}},
    {"more", WEIR_ARRAY_I8, 1, {(1 << 18) + 1}},
    {"many", WEIR_ARRAY_F64, 2, {3000, 50}},
    {"rows", WEIR_ARRAY_F64, 2, {3, 32768}},
    {"cut/2", WEIR_ARRAY_F32, 2, {3, 70000}},
    {"cut/3", WEIR_ARRAY_I32, 3, {2, 3, 40000}},
    {"cut/last", WEIR_ARRAY_U32, 3, {2, 2, 70000}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static size_t bytes_of(const shape *s)
{
    size_t n = weir_array_type_bytes(s->type);
    for (int i = 0; i < s->rank; i++)
        n *= (size_t)s->dim[i];
    return n;
}

/* Any bytes, but no NaN: those of HDF5's conversions would not have to be the same. To be freed. */
static uint8_t *values_of(const shape *s)
{
    const size_t n = bytes_of(s);
    uint8_t *p = malloc(n + 1);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(((i * 2654435761u) >> 13 ^ i) & 63);
    return p;
}

static const char *written(const char *name)
{
    weir_arrays_out *w;
    weir_err err = {0};
    const char *path = scratch(name);
    assert_int_equal(weir_arrays_create(&w, path, format, VERSION, 2, &err), WEIR_OK);
    assert_int_equal(weir_arrays_put_text(w, "", "about", "a text of some length, for the heap of strings", &err), 0);
    for (int i = 0; i < SHAPES; i++) {
        uint8_t *p = values_of(&shapes[i]);
        if (weir_arrays_put(w, shapes[i].name, shapes[i].type, shapes[i].rank, shapes[i].dim, p, &err))
            fail_msg("%s", err.msg);
        free(p);
    }
    assert_int_equal(weir_arrays_commit(w, &err), WEIR_OK);
    return path;
}

static weir_status get(weir_arrays_in *r, const shape *s, uint8_t *out, weir_err *err)
{
    return weir_arrays_get(r, s->name, s->type, s->rank, s->dim, out, err);
}

static weir_arrays_in *opened(const char *path)
{
    weir_arrays_in *r;
    weir_err err = {0};
    if (weir_arrays_open(&r, path, format, VERSION, &err))
        fail_msg("%s", err.msg);
    return r;
}

static hid_t h5_opened(const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(f >= 0);
    return f;
}

static bool h5_get(hid_t file, const char *name, uint8_t *out)
{
    hid_t d = H5Dopen2(file, name, H5P_DEFAULT), type = H5Dget_type(d);
    const bool read = H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0;
    H5Tclose(type);
    H5Dclose(d);
    return read;
}

static void test_shapes(void **state)
{
    (void)state;
    const char *path = written("shapes.h5");
    weir_arrays_in *r = opened(path);
    hid_t f = h5_opened(path);
    weir_err err = {0};
    for (int i = 0; i < SHAPES; i++) {
        const size_t n = bytes_of(&shapes[i]);
        uint8_t *p = values_of(&shapes[i]), *ours = malloc(n + 1), *its = malloc(n + 1);
        assert_int_equal(get(r, &shapes[i], ours, &err), WEIR_OK);
        assert_memory_equal(p, ours, n);
        assert_true(h5_get(f, shapes[i].name, its));
        assert_memory_equal(p, its, n);
        free(p);
        free(ours);
        free(its);
    }
    H5Fclose(f);
    weir_arrays_close(r);
}

/* A file must not hold an attribute that its readers have no room for. */
static void test_long_attributes(void **state)
{
    (void)state;
    static int64_t put[WEIR_ARRAY_ATTRIBUTE + 1], got[WEIR_ARRAY_ATTRIBUTE];
    const char *path = scratch("attributes.h5");
    const int64_t most = WEIR_ARRAY_ATTRIBUTE;
    int64_t n;
    weir_arrays_out *w;
    weir_err err = {0};
    put[most - 1] = 7;
    assert_int_equal(weir_arrays_create(&w, path, format, VERSION, 1, &err), WEIR_OK);
    assert_int_equal(weir_arrays_put_attribute(w, "", "full", WEIR_ARRAY_I64, most, put, &err), WEIR_OK);
    assert_int_equal(weir_arrays_put_attribute(w, "", "long", WEIR_ARRAY_I64, most + 1, put, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "attribute long has 4097 numbers: 4096 are the most"));
    assert_int_equal(weir_arrays_commit(w, &err), WEIR_OK);
    weir_arrays_in *r = opened(path);
    assert_int_equal(weir_arrays_get_attribute(r, "", "full", WEIR_ARRAY_I64, most, &n, got, &err), WEIR_OK);
    assert_true(n == most && got[most - 1] == 7);
    weir_arrays_close(r);
}

/* --- damage */

static void flip(const char *path, int64_t byte, int bit)
{
    uint8_t b = 0;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && pread(fd, &b, 1, (off_t)byte) == 1);
    b ^= (uint8_t)(1 << bit);
    assert_int_equal(pwrite(fd, &b, 1, (off_t)byte), 1);
    close(fd);
}

static int64_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* Where chunk i of an array lies; false: it has no such chunk. */
static bool chunk_at(const char *path, const char *name, hsize_t i, int64_t *at, int64_t *n)
{
    hid_t f = h5_opened(path), d = H5Dopen2(f, name, H5P_DEFAULT), all = H5Dget_space(d);
    hsize_t chunks = 0, offset[WEIR_ARRAY_RANK], bytes = 0;
    haddr_t address = 0;
    unsigned mask;
    const bool found = H5Dget_num_chunks(d, all, &chunks) >= 0 && i < chunks &&
                       H5Dget_chunk_info(d, all, i, offset, &mask, &address, &bytes) >= 0;
    *at = (int64_t)address;
    *n = (int64_t)bytes;
    H5Sclose(all);
    H5Dclose(d);
    H5Fclose(f);
    return found;
}

/* Both readers refuse the array, or have it as it was. */
static void check_damaged(const char *path, const shape *s)
{
    const size_t n = bytes_of(s);
    uint8_t *p = values_of(s), *out = malloc(n + 1);
    weir_arrays_in *r = opened(path);
    weir_err err = {0};
    hid_t f = h5_opened(path);
    if (get(r, s, out, &err))
        assert_true(said(&err, err.code, "is damaged"));
    else
        assert_memory_equal(p, out, n);
    if (h5_get(f, s->name, out))
        assert_memory_equal(p, out, n);
    weir_arrays_close(r);
    H5Fclose(f);
    free(p);
    free(out);
}

/* In a file without a seal. The bits: the first, the last, and some between. */
static void test_arrays_tell_themselves(void **state)
{
    (void)state;
    const char *path = written("bits.h5");
    int64_t at, n;
    int seen = 0;
    assert_int_equal(truncate(path, (off_t)(size_of(path) - SEAL)), 0);
    for (int i = 0; i < SHAPES; i++)
        for (hsize_t c = 0; chunk_at(path, shapes[i].name, c, &at, &n) && c < 4; c++, seen++)
            for (int k = 0; k < 5; k++) {
                const int64_t byte = at + (n - 1) * k / 4;
                flip(path, byte, (k + (int)c) % 8);
                check_damaged(path, &shapes[i]);
                flip(path, byte, (k + (int)c) % 8);
            }
    assert_int_equal(seen, 26);
    for (int i = 0; i < SHAPES; i++) /* all that has elements */
        assert_true(bytes_of(&shapes[i]) == 0 || chunk_at(path, shapes[i].name, 0, &at, &n));
}

static void refuse(const char *path, const char *words)
{
    weir_arrays_in *r;
    weir_err err = {0};
    assert_int_equal(weir_arrays_open(&r, path, format, VERSION, &err), WEIR_E_FORMAT);
    assert_true(said(&err, WEIR_E_FORMAT, words));
    assert_null(r);
}

/* Where HDF5 has no checksum, and where it has one. */
static void test_seal(void **state)
{
    (void)state;
    const char *path = written("sealed.h5");
    const int64_t size = size_of(path);
    const int64_t bytes[] = {0, 9, 50, size / 2, size - SEAL - 1, size - 2, size - 9};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        flip(path, bytes[i], (int)i);
        refuse(path, "sealed.h5: is damaged: the CRC-32 of its bytes is ");
        assert_true(weir_arrays_is(path, format));
        flip(path, bytes[i], (int)i);
    }
    weir_arrays_close(opened(path));
    assert_false(weir_arrays_is(path, "weir-tes"));
    assert_false(weir_arrays_is(path, "weir-tests"));
    flip(path, size / 2, 0);
    written("sealed.h5"); /* it is known for ours, without a look at what is damaged */
    weir_arrays_close(opened(path));
}

/* What others wrote with HDF5 has no seal; it is cut off, or was never there. */
static void test_without_seal(void **state)
{
    (void)state;
    const char *path = written("open.h5");
    const int64_t size = size_of(path);
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(f >= 0 && H5Ldelete(f, "small", H5P_DEFAULT) >= 0 && H5Fclose(f) >= 0);
    weir_arrays_in *r = opened(path);
    assert_false(weir_arrays_has(r, "small"));
    assert_true(weir_arrays_has(r, "many"));
    weir_arrays_close(r);
    assert_true(weir_arrays_is(path, format));

    path = written("cut.h5");
    for (int64_t left = 1; left <= SEAL; left++) {
        assert_int_equal(truncate(path, (off_t)(size - left)), 0);
        weir_arrays_close(opened(path));
    }
    assert_int_equal(truncate(path, (off_t)(size - SEAL - 1)), 0);
    refuse(path, "the file is cut short");
}

/* As small arrays were once written: in one piece, without a checksum. */
static void test_plain_array(void **state)
{
    (void)state;
    const char *path = written("plain.h5");
    const shape s = {"plain", WEIR_ARRAY_I64, 1, {3}};
    const int64_t value[3] = {1, -2, 3};
    const hsize_t n = 3;
    int64_t out[3];
    weir_err err = {0};
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate_simple(1, &n, NULL);
    hid_t d = H5Dcreate2(f, "plain", H5T_NATIVE_INT64, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(d >= 0 && H5Dwrite(d, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Fclose(f);
    weir_arrays_in *r = opened(path);
    assert_int_equal(get(r, &s, (uint8_t *)out, &err), WEIR_OK);
    assert_memory_equal(value, out, sizeof out);
    weir_arrays_close(r);
}

/* Chunks that HDF5 takes for whole ones, and reads behind: no filter was applied to one, or it comes out too short. */
static void test_short_chunks(void **state)
{
    (void)state;
    static const uint8_t raw[4] = {1, 2, 3, 4}, nothing[] = {0x78, 0x9c, 3, 0, 0, 0, 0, 1}; /* deflated */
    const char *path = written("short.h5");
    const shape *small = &shapes[5], *deep = &shapes[6], *many = &shapes[9];
    static uint8_t out[3000 * 50 * 8];
    const hsize_t at[3] = {0}, second[3] = {655};
    weir_err err = {0};
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), d = H5Dopen2(f, "small", H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(d, H5P_DEFAULT, 3, at, sizeof raw, raw) >= 0 && H5Dclose(d) >= 0);
    d = H5Dopen2(f, deep->name, H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(d, H5P_DEFAULT, 0, at, sizeof nothing, nothing) >= 0 && H5Dclose(d) >= 0);
    d = H5Dopen2(f, many->name, H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(d, H5P_DEFAULT, 1, second, sizeof nothing, nothing) >= 0 && H5Dclose(d) >= 0);
    H5Fclose(f);
    weir_arrays_in *r = opened(path);
    assert_int_equal(get(r, small, out, &err), WEIR_E_FORMAT);
    assert_true(said(&err, WEIR_E_FORMAT, "is damaged: a part of it is missing"));
    err = (weir_err){0};
    assert_int_equal(get(r, deep, out, &err), WEIR_E_FORMAT);
    assert_true(said(&err, WEIR_E_FORMAT, "is damaged: a part of it cannot be inflated"));
    err = (weir_err){0};
    assert_int_equal(get(r, many, out, &err), WEIR_E_FORMAT);
    assert_true(said(&err, WEIR_E_FORMAT, "is damaged: a part of it is missing"));
    weir_arrays_close(r);
}

/* Texts of any bytes come back; offsets that lie are found, and nothing is left to free. */
static void test_texts(void **state)
{
    (void)state;
    static const weir_str text[] = {{"embed", 5}, {"", 0}, {"a\0b", 3}, {"\xff", 1}};
    static const int64_t bad[][3] = {{0, 2, 1}, {1, 1, 2}, {0, 1, 3}, {0, -1, 2}};
    const char *path = scratch("texts.h5");
    const int64_t n = sizeof text / sizeof *text, size = 2, ends = 3, none = 0;
    char group[32];
    weir_arrays_out *w;
    weir_array_texts t;
    weir_err err = {0};
    assert_int_equal(weir_arrays_create(&w, path, format, VERSION, 1, &err), WEIR_OK);
    assert_int_equal(weir_arrays_put_texts(w, "some", text, n, &err), WEIR_OK);
    assert_int_equal(weir_arrays_put_texts(w, "no", NULL, 0, &err), WEIR_OK);
    for (int i = 0; i < 5; i++) {
        snprintf(group, sizeof group, "bad%d/bytes", i);
        assert_int_equal(weir_arrays_put(w, group, WEIR_ARRAY_U8, 1, &size, "ab", &err), WEIR_OK);
        snprintf(group, sizeof group, "bad%d/offsets", i);
        assert_int_equal(weir_arrays_put(w, group, WEIR_ARRAY_I64, 1, i < 4 ? &ends : &none, bad[i % 4], &err),
                         WEIR_OK);
    }
    assert_int_equal(weir_arrays_commit(w, &err), WEIR_OK);
    weir_arrays_in *r = opened(path);
    assert_int_equal(weir_arrays_get_texts(r, "no", &t, &err), WEIR_OK);
    assert_int_equal(t.n, 0);
    weir_array_texts_free(&t);
    assert_int_equal(weir_arrays_get_texts(r, "some", &t, &err), WEIR_OK);
    assert_int_equal(t.n, n);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(weir_array_text(&t, i).n, text[i].n);
        assert_memory_equal(weir_array_text(&t, i).p, text[i].p, text[i].n);
    }
    weir_array_texts_free(&t);
    for (int i = 0; i < 5; i++) {
        snprintf(group, sizeof group, "bad%d", i);
        assert_int_equal(weir_arrays_get_texts(r, group, &t, &err), WEIR_E_FORMAT);
        assert_true(said(&err, WEIR_E_FORMAT, "offsets must ascend"));
        assert_null(t.bytes);
        err = (weir_err){0};
    }
    weir_arrays_close(r);
}

/* Arrays as weir does not store them. */
static void test_foreign_arrays(void **state)
{
    (void)state;
    const char *path = written("foreign.h5");
    const hsize_t n = 6, chunk = 2;
    const int64_t dim = 6, value[6] = {1, 2, 3, 4, 5, 6};
    int64_t out[6];
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate_simple(1, &n, NULL);
    for (int how = 0; how < 5; how++) {
        const char *words = how == 4 ? "another type of elements" : "is damaged, or not as weir stores arrays";
        char name[16];
        weir_err err = {0};
        hid_t list = H5Pcreate(H5P_DATASET_CREATE);
        snprintf(name, sizeof name, "a%d", how);
        H5Pset_chunk(list, 1, &chunk);
        if (how != 1)
            H5Pset_shuffle(list);
        if (how != 2)
            H5Pset_deflate(list, 1);
        if (how == 3)
            H5Pset_fletcher32(list);
        hid_t d =
            H5Dcreate2(f, name, how == 4 ? H5T_STD_I64BE : H5T_NATIVE_INT64, space, H5P_DEFAULT, list, H5P_DEFAULT);
        if (how > 0) /* else no chunk exists: HDF5 would make zeros up */
            assert_true(H5Dwrite(d, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
        H5Dclose(d);
        H5Pclose(list);
        assert_true(H5Fflush(f, H5F_SCOPE_LOCAL) >= 0);
        weir_arrays_in *r = opened(path);
        assert_int_equal(weir_arrays_get(r, name, WEIR_ARRAY_I64, 1, &dim, out, &err), WEIR_E_FORMAT);
        assert_true(said(&err, WEIR_E_FORMAT, words));
        weir_arrays_close(r);
    }
    H5Sclose(space);
    H5Fclose(f);
}

/* A link that is no plain one may lead into any file: it is not followed, wherever in a path it stands. */
static void test_links(void **state)
{
    (void)state;
    const char *path = written("links.h5"), *other = written("other.h5");
    const shape *small = &shapes[5];
    uint8_t out[84];
    weir_err err = {0};
    hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(f >= 0 && H5Ldelete(f, "small", H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external(other, "small", f, "small", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external(other, "deep", f, "far", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/deep", f, "near", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_hard(f, "deep", f, "same", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(h5_get(f, "small", out)); /* HDF5 follows it */
    H5Fclose(f);
    weir_arrays_in *r = opened(path);
    assert_int_equal(get(r, small, out, &err), WEIR_E_FORMAT);
    assert_true(said(&err, WEIR_E_FORMAT, "is missing"));
    assert_false(weir_arrays_has(r, "far/in/small"));
    assert_false(weir_arrays_has(r, "far"));
    assert_false(weir_arrays_has(r, "near/in/small"));
    assert_true(weir_arrays_has(r, "same/in/small"));
    assert_true(weir_arrays_has(r, "/deep/in/small"));
    assert_false(weir_arrays_has(r, "deep/in/none"));
    assert_false(weir_arrays_has(r, ""));
    assert_false(weir_arrays_has(r, "/"));
    weir_arrays_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_arrays_tell_themselves),
        cmocka_unit_test(test_seal),
        cmocka_unit_test(test_without_seal),
        cmocka_unit_test(test_plain_array),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_short_chunks),
        cmocka_unit_test(test_foreign_arrays),
        cmocka_unit_test(test_long_attributes),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* GGUF: metadata, tensor tables, and the malicious files of the past. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/gguf.h"
#include "io/gguf_types.h"
#include "support/bytes.h"
#include "support/said.h"
#include "support/scratch.h"

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 };

static weir_status open_bytes(weir_gguf *g, blob *b, weir_err *err)
{
    *err = (weir_err){0};
    weir_status s = weir_gguf_open(g, scratch_write("a.gguf", b->p, b->n), err);
    free(b->p);
    *b = (blob){0};
    return s;
}

/* Opening must fail in this way. */
static void refused(blob *b, weir_status code, const char *words)
{
    weir_gguf g;
    weir_err e;
    assert_int_equal(open_bytes(&g, b, &e), code);
    assert_true(said(&e, code, words));
    assert_string_equal(e.file, scratch("a.gguf"));
    assert_null(g.map.data);
}

static void put_values(blob *b)
{
    put_gguf_key(b, "u8", U8), put_int(b, 0xff, 1);
    put_gguf_key(b, "i8", I8), put_int(b, 0xff, 1);
    put_gguf_key(b, "u16", U16), put_int(b, 0xfffe, 2);
    put_gguf_key(b, "i16", I16), put_int(b, 0xfffe, 2);
    put_gguf_key(b, "u32", U32), put_u32(b, 0xfffffffdu);
    put_gguf_key(b, "i32", I32), put_u32(b, 0xfffffffdu);
    put_gguf_key(b, "u64", U64), put_u64(b, UINT64_MAX);
    put_gguf_key(b, "i64", I64), put_u64(b, UINT64_MAX);
    put_gguf_key(b, "f32", F32), put_u32(b, 0x3fc00000u);
    put_gguf_key(b, "f64", F64), put_u64(b, 0xc000000000000000u);
    put_gguf_key(b, "yes", BOOL), put_int(b, 1, 1);
    put_gguf_key(b, "no", BOOL), put_int(b, 0, 1);
    put_gguf_key(b, "text", STRING), put_gguf_str(b, "h\xc3\xa9");
    put_gguf_key(b, "words", ARRAY), put_u32(b, STRING), put_u64(b, 3);
    put_gguf_str(b, "a"), put_gguf_str(b, ""), put_gguf_str(b, "ccc");
    put_gguf_key(b, "ints", ARRAY), put_u32(b, I16), put_u64(b, 2), put_int(b, 7, 2), put_int(b, 0x8000, 2);
    put_gguf_key(b, "floats", ARRAY), put_u32(b, F32), put_u64(b, 2), put_u32(b, 0x3f800000u), put_u32(b, 0xbf000000u);
    put_gguf_key(b, "none", ARRAY), put_u32(b, U32), put_u64(b, 0);
}

static void check_numbers(const weir_gguf *g)
{
    static const struct {
        const char *key;
        int64_t value;
    } ints[] = {{"u8", 255}, {"i8", -1}, {"u16", 65534}, {"i16", -2}, {"u32", 4294967293}, {"i32", -3}, {"i64", -1}};
    weir_err e = {0};
    int64_t i;
    double d;
    bool found, flag;
    for (size_t k = 0; k < sizeof ints / sizeof *ints; k++) {
        assert_int_equal(weir_gguf_int(g, ints[k].key, &i, &found, &e), WEIR_OK);
        assert_true(found && i == ints[k].value);
        assert_int_equal(weir_gguf_double(g, ints[k].key, &d, NULL, &e), WEIR_OK);
        assert_true(d == (double)ints[k].value);
    }
    assert_int_equal(weir_gguf_double(g, "u64", &d, NULL, &e), WEIR_OK);
    assert_true(d == 18446744073709551616.0);
    assert_true(weir_gguf_double(g, "f32", &d, NULL, &e) == WEIR_OK && d == 1.5);
    assert_true(weir_gguf_double(g, "f64", &d, NULL, &e) == WEIR_OK && d == -2.0);
    assert_true(weir_gguf_bool(g, "yes", &flag, NULL, &e) == WEIR_OK && flag);
    assert_true(weir_gguf_bool(g, "no", &flag, NULL, &e) == WEIR_OK && !flag);
    assert_true(weir_gguf_bool(g, "absent", &flag, &found, &e) == WEIR_OK && !found);
}

static void check_arrays(const weir_gguf *g)
{
    weir_err e = {0};
    weir_str s;
    size_t pos = 0;
    assert_int_equal(weir_gguf_str(g, "text", &s, NULL, &e), WEIR_OK);
    assert_true(s.n == 3 && memcmp(s.p, "h\xc3\xa9", 3) == 0);
    const weir_gguf_kv *kv = weir_gguf_find(g, "words");
    assert_true(kv->type == WEIR_GGUF_ARRAY && kv->elem == WEIR_GGUF_STRING && kv->n == 3);
    static const char *const words[] = {"a", "", "ccc"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_gguf_next_str(g, kv, &pos, &s, &e), WEIR_OK);
        assert_true(s.n == strlen(words[i]) && memcmp(s.p, words[i], s.n) == 0);
    }
    kv = weir_gguf_find(g, "ints");
    assert_true(kv->n == 2 && weir_gguf_elem_int(kv, 0) == 7 && weir_gguf_elem_int(kv, 1) == -32768);
    pos = 0;
    assert_int_equal(weir_gguf_next_str(g, kv, &pos, &s, &e), WEIR_E_FORMAT);
    kv = weir_gguf_find(g, "floats");
    assert_true(kv->n == 2 && weir_gguf_elem_double(kv, 0) == 1.0 && weir_gguf_elem_double(kv, 1) == -0.5);
    kv = weir_gguf_find(g, "none");
    assert_true(kv->n == 0 && kv->elem == WEIR_GGUF_U32);
    assert_null(weir_gguf_find(g, "wor"));
}

static void check_wrong_types(const weir_gguf *g)
{
    weir_err e = {0};
    int64_t i;
    double d;
    bool b;
    weir_str s;
    assert_int_equal(weir_gguf_int(g, "absent", &i, NULL, &e), WEIR_E_FORMAT);
    assert_true(said(&e, WEIR_E_FORMAT, "a.gguf: metadata key absent is missing"));
    e.code = WEIR_OK;
    assert_int_equal(weir_gguf_int(g, "u64", &i, NULL, &e), WEIR_E_FORMAT);
    assert_true(said(&e, WEIR_E_FORMAT, "metadata key u64 is too large"));
    assert_true(e.offset > 24);
    assert_int_equal(weir_gguf_int(g, "f32", &i, NULL, NULL), WEIR_E_FORMAT);
    assert_int_equal(weir_gguf_int(g, "yes", &i, NULL, NULL), WEIR_E_FORMAT);
    assert_int_equal(weir_gguf_int(g, "ints", &i, NULL, NULL), WEIR_E_FORMAT);
    assert_int_equal(weir_gguf_double(g, "text", &d, NULL, NULL), WEIR_E_FORMAT);
    assert_int_equal(weir_gguf_bool(g, "u8", &b, NULL, NULL), WEIR_E_FORMAT);
    assert_int_equal(weir_gguf_str(g, "u8", &s, NULL, NULL), WEIR_E_FORMAT);
}

static void test_metadata(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        blob b = {0};
        weir_gguf g;
        weir_err e;
        put_gguf_head(&b, version, 0, 17);
        put_values(&b);
        size_t n = b.n;
        assert_int_equal(open_bytes(&g, &b, &e), WEIR_OK);
        assert_int_equal(g.version, version);
        assert_int_equal(g.n_kv, 17);
        assert_int_equal(g.meta_bytes, n);
        check_numbers(&g);
        check_arrays(&g);
        check_wrong_types(&g);
        weir_gguf_close(&g);
    }
}

static void test_every_cut_is_an_error(void **state)
{
    (void)state;
    blob whole = {0};
    put_gguf_head(&whole, 3, 1, 17);
    put_values(&whole);
    put_gguf_tensor(&whole, "t", 2, (uint64_t[]){4, 2}, 0, 0);
    pad(&whole, 32);
    put_zeros(&whole, 32);
    for (size_t n = 0; n <= whole.n; n++) {
        blob b = {0};
        weir_gguf g;
        weir_err e;
        put(&b, whole.p, n);
        weir_status s = open_bytes(&g, &b, &e);
        assert_int_equal(s, n < whole.n ? WEIR_E_FORMAT : WEIR_OK);
        weir_gguf_close(&g);
    }
    free(whole.p);
}

static void test_tensors(void **state)
{
    (void)state;
    blob b = {0};
    weir_gguf g;
    weir_err e;
    put_gguf_head(&b, 3, 4, 1);
    put_gguf_u32(&b, "general.alignment", 64);
    put_gguf_tensor(&b, "w", 2, (uint64_t[]){64, 3}, 8, 0);        /* Q8_0: 3 rows of 2 blocks: 204 bytes */
    put_gguf_tensor(&b, "cube", 3, (uint64_t[]){2, 3, 4}, 1, 256); /* F16: 48 */
    put_gguf_tensor(&b, "zero", 2, (uint64_t[]){0, 5}, 0, 320);    /* nothing */
    put_gguf_tensor(&b, "one", 0, NULL, 30, 320);                  /* BF16 scalar */
    size_t meta = b.n;
    pad(&b, 64);
    size_t data = b.n;
    put_zeros(&b, 322);
    assert_int_equal(open_bytes(&g, &b, &e), WEIR_OK);
    assert_int_equal(g.meta_bytes, meta);
    assert_int_equal(g.n_tensors, 4);
    static const struct {
        const char *name;
        weir_dtype dtype;
        int rank;
        int64_t shape[4];
        size_t bytes, at;
    } want[] = {{"w", WEIR_Q8_0, 2, {3, 64, 1, 1}, 204, 0},
                {"cube", WEIR_F16, 3, {4, 3, 2, 1}, 48, 256},
                {"zero", WEIR_F32, 2, {5, 0, 1, 1}, 0, 320},
                {"one", WEIR_BF16, 0, {1, 1, 1, 1}, 2, 320}};
    for (int i = 0; i < 4; i++) {
        const weir_tensor *t = &g.tensor[i];
        assert_string_equal(t->name, want[i].name);
        assert_int_equal(t->dtype, want[i].dtype);
        assert_int_equal(t->rank, want[i].rank);
        assert_memory_equal(t->shape, want[i].shape, sizeof t->shape);
        assert_int_equal(t->bytes, want[i].bytes);
        assert_int_equal(t->offset, data + want[i].at);
        assert_ptr_equal(t->data, g.map.data + t->offset);
    }
    weir_gguf_close(&g);
}

static void test_refuses_head(void **state)
{
    (void)state;
    blob b = {0};
    refused(&b, WEIR_E_FORMAT, "the file ends too early");
    put(&b, "GGUF", 4); /* CVE-2024-39720 */
    refused(&b, WEIR_E_FORMAT, "at byte 4: the file ends too early");
    put(&b, "GGML\3\0\0\0", 8);
    refused(&b, WEIR_E_FORMAT, "at byte 0: not a GGUF file");
    put_gguf_head(&b, 1, 0, 0);
    refused(&b, WEIR_E_UNSUPPORTED, "GGUF version 1");
    put_gguf_head(&b, 0, 0, 0);
    refused(&b, WEIR_E_UNSUPPORTED, "GGUF version 0");
    put_gguf_head(&b, 4, 0, 0);
    refused(&b, WEIR_E_UNSUPPORTED, "GGUF version 4");
    put_gguf_head(&b, 0x03000000, 0, 0);
    refused(&b, WEIR_E_UNSUPPORTED, "big-endian");
    put(&b, "FUGG\0\0\0\3", 8);
    refused(&b, WEIR_E_UNSUPPORTED, "big-endian");
    static const uint64_t counts[] = {1, 0x7fffffffffffffffu, UINT64_MAX, 0x1000000000000000u};
    for (int i = 0; i < 4; i++) { /* CVE-2024-23496, -23605: counts beyond the file */
        put_gguf_head(&b, 3, counts[i], 0);
        refused(&b, WEIR_E_FORMAT, "do not fit in the file");
        put_gguf_head(&b, 3, 0, counts[i]);
        refused(&b, WEIR_E_FORMAT, "do not fit in the file");
    }
}

/* A file with one metadata entry, made by hand. */
static void one_kv(blob *b)
{
    put_gguf_head(b, 3, 0, 1);
}

static void test_refuses_metadata(void **state)
{
    (void)state;
    blob b = {0};
    one_kv(&b), put_u64(&b, 0), put_zeros(&b, 20);
    refused(&b, WEIR_E_FORMAT, "at byte 24: an empty key");
    one_kv(&b), put_u64(&b, 65536), put_zeros(&b, 70000);
    refused(&b, WEIR_E_FORMAT, "a key of 65536 bytes: the limit is 65535");
    one_kv(&b), put_u64(&b, UINT64_MAX), put_zeros(&b, 20);
    refused(&b, WEIR_E_FORMAT, "a key of 18446744073709551615 bytes");
    one_kv(&b), put_u64(&b, 300), put_zeros(&b, 20);
    refused(&b, WEIR_E_FORMAT, "the file ends too early: 300 bytes wanted");
    one_kv(&b), put_gguf_key(&b, "k", 13), put_zeros(&b, 8);
    refused(&b, WEIR_E_FORMAT, "unknown value type 13");
    one_kv(&b), put_gguf_key(&b, "k", BOOL), put_int(&b, 2, 1);
    refused(&b, WEIR_E_FORMAT, "a boolean with the value 2");
    one_kv(&b), put_gguf_key(&b, "k", STRING), put_u64(&b, ((uint64_t)1 << 30) + 1), put_zeros(&b, 20);
    refused(&b, WEIR_E_FORMAT, "a string of 1073741825 bytes"); /* ggml #1516 */
    one_kv(&b), put_gguf_key(&b, "k", STRING), put_u64(&b, UINT64_MAX), put_zeros(&b, 20);
    refused(&b, WEIR_E_FORMAT, "a string of 18446744073709551615 bytes");
    one_kv(&b), put_gguf_key(&b, "k", ARRAY), put_u32(&b, ARRAY), put_u64(&b, 1), put_zeros(&b, 20);
    refused(&b, WEIR_E_UNSUPPORTED, "an array of arrays"); /* huggingface.js #2028 */
    one_kv(&b), put_gguf_key(&b, "k", ARRAY), put_u32(&b, 99), put_u64(&b, 1), put_zeros(&b, 20);
    refused(&b, WEIR_E_FORMAT, "unknown element type 99"); /* CVE-2024-21825 */
    one_kv(&b), put_gguf_key(&b, "k", ARRAY), put_u32(&b, U32), put_u64(&b, (uint64_t)1 << 63), put_zeros(&b, 20);
    refused(&b, WEIR_E_FORMAT, "an array of 9223372036854775808 elements"); /* llama.cpp #25378 */
    one_kv(&b), put_gguf_key(&b, "k", ARRAY), put_u32(&b, U64), put_u64(&b, ((uint64_t)1 << 61) + 1), put_zeros(&b, 20);
    refused(&b, WEIR_E_FORMAT, "does not fit in the file"); /* the product wraps */
    one_kv(&b), put_gguf_key(&b, "k", ARRAY), put_u32(&b, STRING), put_u64(&b, 2), put_u64(&b, 1),
        put(&b, "abcdefghi", 9);
    refused(&b, WEIR_E_FORMAT, "a string of"); /* the second length is "bcdefghi" */
    one_kv(&b), put_gguf_key(&b, "k", ARRAY), put_u32(&b, BOOL), put_u64(&b, 2), put(&b, "\1\3", 2);
    refused(&b, WEIR_E_FORMAT, "a boolean with the value 3");
    put_gguf_head(&b, 3, 0, 2), put_gguf_u32(&b, "k", 1), put_gguf_u32(&b, "k", 1);
    refused(&b, WEIR_E_FORMAT, "at byte 41: duplicate key \"k\"");
}

static void test_refuses_alignment_and_splits(void **state)
{
    (void)state;
    static const uint32_t bad[] = {0, 3, 33, 1u << 21,
                                   0x80000000u}; /* gguf-tools #27, candle #3876, llama.cpp #24997 */
    blob b = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        one_kv(&b), put_gguf_u32(&b, "general.alignment", bad[i]);
        refused(&b, WEIR_E_FORMAT, "general.alignment is");
    }
    one_kv(&b), put_gguf_key(&b, "general.alignment", STRING), put_gguf_str(&b, "32");
    refused(&b, WEIR_E_FORMAT, "general.alignment is not an integer");
    one_kv(&b), put_gguf_key(&b, "split.count", U16), put_int(&b, 3, 2);
    refused(&b, WEIR_E_UNSUPPORTED, "one of 3 parts of a split model: join them with llama-gguf-split --merge");
}

/* A file with one tensor and `data` bytes behind the table. */
static void one_tensor(blob *b, const char *name, int rank, const uint64_t *dims, uint32_t type, uint64_t offset,
                       size_t data)
{
    put_gguf_head(b, 3, 1, 0);
    put_gguf_tensor(b, name, rank, dims, type, offset);
    pad(b, 32);
    put_zeros(b, data);
}

static void test_refuses_tensors(void **state)
{
    (void)state;
    blob b = {0};
    uint64_t four[] = {4}, big = (uint64_t)1 << 62;
    char name[65];
    memset(name, 'n', 64);
    name[64] = '\0';
    one_tensor(&b, name, 1, four, 0, 0, 16);
    refused(&b, WEIR_E_FORMAT, "a tensor's name of 64 bytes: the limit is 63");
    one_tensor(&b, name + 1, 1, four, 0, 0, 15);
    refused(&b, WEIR_E_FORMAT, "its 16 bytes reach behind the end of the file"); /* CVE-2026-7482; 63 bytes are fine */
    one_tensor(&b, "", 1, four, 0, 0, 16);
    refused(&b, WEIR_E_FORMAT, "name that is empty");
    one_tensor(&b, "t", 5, (uint64_t[]){1, 1, 1, 1, 1}, 0, 0, 16);
    refused(&b, WEIR_E_FORMAT, "tensor t at byte 37: 5 dimensions: the limit is 4"); /* gguf-tools #25 */
    one_tensor(&b, "t", 1, (uint64_t[]){UINT64_MAX}, 0, 0, 16);
    refused(&b, WEIR_E_FORMAT, "a dimension of 18446744073709551615");
    one_tensor(&b, "t", 2, (uint64_t[]){(uint64_t)1 << 32, (uint64_t)1 << 31}, 0, 0, 16);
    refused(&b, WEIR_E_FORMAT, "the shape's size overflows"); /* CVE-2024-21802, -21836 */
    one_tensor(&b, "t", 1, &big, 0, 0, 16);
    refused(&b, WEIR_E_FORMAT, "the tensor's size overflows"); /* CVE-2026-33298 */
    one_tensor(&b, "t", 1, (uint64_t[]){33}, 8, 0, 64);
    refused(&b, WEIR_E_FORMAT, "rows of 33 elements are not whole blocks of Q8_0 (32)");
    one_tensor(&b, "t", 1, four, 0, 32, 64);
    refused(&b, WEIR_E_FORMAT, "its data begin at 32 instead of 0");
    one_tensor(&b, "t", 1, four, 0, UINT64_MAX, 64);
    refused(&b, WEIR_E_FORMAT, "its data begin at");
    one_tensor(&b, "t", 1, four, 16, 0, 64);
    refused(&b, WEIR_E_UNSUPPORTED, "tensor t at byte 45: type IQ2_XXS is not supported");
    one_tensor(&b, "t", 1, four, 36, 0, 64); /* ggml #1517: a block size of 0 */
    refused(&b, WEIR_E_UNSUPPORTED, "type IQ4_NL_4_4 (id 36) was removed");
    one_tensor(&b, "t", 1, four, 43, 0, 64);
    refused(&b, WEIR_E_FORMAT, "unknown tensor type id 43");
}

static void test_refuses_tables(void **state)
{
    (void)state;
    blob b = {0};
    uint64_t four[] = {4}, huge[] = {((uint64_t)1 << 61) - 4};
    put_gguf_head(&b, 3, 2, 0);
    put_gguf_tensor(&b, "t", 1, four, 0, 0), put_gguf_tensor(&b, "t", 1, four, 0, 32), pad(&b, 32), put_zeros(&b, 64);
    refused(&b, WEIR_E_FORMAT, "tensor t at byte 57: two tensors have this name");
    put_gguf_head(&b, 3, 2, 0);
    put_gguf_tensor(&b, "t", 1, four, 0, 0), put_gguf_tensor(&b, "u", 1, four, 0, 0), pad(&b, 32), put_zeros(&b, 64);
    refused(&b, WEIR_E_FORMAT, "tensor u at byte 82: its data begin at 0 instead of 32");
    put_gguf_head(&b, 3, 2, 0); /* llama.cpp #14595: the sum of sizes wraps */
    put_gguf_tensor(&b, "t", 1, huge, 0, 0), put_gguf_tensor(&b, "u", 1, huge, 0, huge[0] * 4), pad(&b, 32),
        put_zeros(&b, 64);
    refused(&b, WEIR_E_FORMAT, "overflows");
}

/* No id makes it divide by zero or read outside its table. */
static void test_every_type_id(void **state)
{
    (void)state;
    int readable = 0;
    for (uint32_t id = 0; id < 300; id++) {
        weir_dtype t = WEIR_OTHER;
        weir_err e = {0};
        weir_status s = weir_gguf_dtype(id, &t, &e);
        readable += s == WEIR_OK;
        assert_true(s == WEIR_OK ? t < WEIR_OTHER : s == WEIR_E_UNSUPPORTED || s == WEIR_E_FORMAT);
        uint64_t dim = 256;
        blob b = {0};
        weir_gguf g;
        one_tensor(&b, "t", 1, &dim, id, 0, 1024);
        assert_int_equal(open_bytes(&g, &b, &e), s);
        weir_gguf_close(&g);
    }
    assert_int_equal(readable, WEIR_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metadata),         cmocka_unit_test(test_every_cut_is_an_error),
        cmocka_unit_test(test_tensors),          cmocka_unit_test(test_refuses_head),
        cmocka_unit_test(test_refuses_metadata), cmocka_unit_test(test_refuses_alignment_and_splits),
        cmocka_unit_test(test_refuses_tensors),  cmocka_unit_test(test_refuses_tables),
        cmocka_unit_test(test_every_type_id),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Headers of safetensors files: what is read, and everything that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/safetensors.h"
#include "support/bytes.h"
#include "support/said.h"
#include "support/scratch.h"

typedef struct parsed {
    weir_filemap map;
    weir_arena arena;
    weir_tensor *t;
    int64_t n;
    weir_err err;
} parsed;

static weir_status parse(parsed *p, const void *bytes, size_t n)
{
    memset(p, 0, sizeof *p);
    weir_status s = weir_filemap_open(&p->map, scratch_write("a.safetensors", bytes, n), &p->err);
    if (s == WEIR_OK)
        s = weir_safetensors_parse(&p->map, &p->arena, &p->t, &p->n, &p->err);
    return s;
}

static void drop(parsed *p)
{
    weir_arena_free(&p->arena);
    weir_filemap_close(&p->map);
}

static weir_status parse_header(parsed *p, const char *header, size_t data)
{
    blob b = {0};
    put_safetensors(&b, header, data);
    weir_status s = parse(p, b.p, b.n);
    free(b.p);
    return s;
}

static void test_reads(void **state)
{
    (void)state;
    parsed p;
    /* Out of order, escaped names, odd offsets, a scalar, an empty tensor, types that are only carried along. */
    const char *header = "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"},"
                         "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[3,11]},"
                         "\"a\\u00e9\":{\"shape\":[3],\"data_offsets\":[0,3],\"dtype\":\"BOOL\"},"
                         "\"empty\":{\"dtype\":\"F16\",\"shape\":[4,0,2],\"data_offsets\":[11,11]},"
                         "\"s\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[11,13]},"
                         "\"f4\":{\"dtype\":\"F4\",\"shape\":[1,1,1,4],\"data_offsets\":[13,15]},"
                         "\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[15,23]}}  \n";
    assert_int_equal(parse_header(&p, header, 23), WEIR_OK);
    size_t data = 8 + strlen(header);
    static const struct {
        const char *name;
        weir_dtype dtype;
        int rank;
        int64_t shape[4];
        size_t bytes, at;
    } want[] = {
        {"a\xc3\xa9", WEIR_OTHER, 1, {3, 1, 1, 1}, 3, 0}, {"b", WEIR_F32, 2, {2, 1, 1, 1}, 8, 3},
        {"empty", WEIR_F16, 3, {4, 0, 2, 1}, 0, 11},      {"s", WEIR_BF16, 0, {1, 1, 1, 1}, 2, 11},
        {"f4", WEIR_OTHER, 4, {1, 1, 1, 4}, 2, 13},       {"i", WEIR_OTHER, 1, {1, 1, 1, 1}, 8, 15},
    };
    assert_int_equal(p.n, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(p.t[i].name, want[i].name);
        assert_int_equal(p.t[i].dtype, want[i].dtype);
        assert_int_equal(p.t[i].rank, want[i].rank);
        assert_memory_equal(p.t[i].shape, want[i].shape, sizeof want[i].shape);
        assert_int_equal(p.t[i].bytes, want[i].bytes);
        assert_int_equal(p.t[i].offset, data + want[i].at);
        assert_ptr_equal(p.t[i].data, p.map.data + data + want[i].at);
        assert_ptr_equal(p.t[i].file, p.map.path);
    }
    drop(&p);
}

static void test_accepts(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
    } good[] = {
        {"{}", 0},
        {"{}\r \t\n", 0},
        {"{\"__metadata__\":{}}", 0},
        {"{\"t\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4},
        {"{\"t\":{\"dtype\":\"F32\",\"shape\":[2,0],\"data_offsets\":[0,0]}}", 0},
        {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"u\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},\"v\":{\"dtype\":\"U8\",\"shape\":[0],\"data_"
         "offsets\":[4,4]}}",
         4},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        parsed p;
        if (parse_header(&p, good[i].header, good[i].data) != WEIR_OK)
            fail_msg("%s: %s", good[i].header, p.err.msg);
        drop(&p);
    }
}

#define T(rest) "{\"t\":{\"dtype\":\"F32\"," rest "}}"

static void test_refuses_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        weir_status code;
        const char *words;
    } bad[] = {
        {"", 0, WEIR_E_FORMAT, "does not begin with '{'"},
        {" {}", 0, WEIR_E_FORMAT, "does not begin with '{'"},
        {"[]", 0, WEIR_E_FORMAT, "does not begin with '{'"},
        {"\xff", 0, WEIR_E_FORMAT, "does not begin with '{'"},
        {"{", 0, WEIR_E_FORMAT, "at byte 9: a key in quotes was expected"},
        {"{\"\xff\":1}", 0, WEIR_E_FORMAT, "at byte 10: invalid UTF-8"},
        {"{}x", 0, WEIR_E_FORMAT, "something follows the value"},
        {"{}", 1, WEIR_E_FORMAT, "at byte 10: 1 bytes behind the last tensor"},
        {"{\"__metadata__\":{\"a\":1}}", 0, WEIR_E_FORMAT, "a string was expected, found a number"},
        {"{\"__metadata__\":null}", 0, WEIR_E_FORMAT, "an object was expected"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, WEIR_E_FORMAT, "duplicate key"},
        {"{\"t\":1}", 0, WEIR_E_FORMAT, "tensor t at byte 13: an object was expected"},
        {"{\"t\":{}}", 0, WEIR_E_FORMAT, "dtype is missing"},
        {"{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, WEIR_E_FORMAT, "shape is missing"},
        {T("\"shape\":[1]"), 4, WEIR_E_FORMAT, "data_offsets is missing"},
        {T("\"shape\":[1],\"data_offsets\":[0,4],\"x\":1"), 4, WEIR_E_FORMAT, "unknown field \"x\""},
        {T("\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]"), 4, WEIR_E_FORMAT, "duplicate key \"shape\""},
        {"{\"t\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, WEIR_E_UNSUPPORTED,
         "unknown dtype \"F33\""},
        {"{\"t\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, WEIR_E_FORMAT, "a string was expected"},
        {T("\"shape\":[2,2],\"data_offsets\":[0,4]"), 4, WEIR_E_FORMAT,
         "tensor t at byte 63: dtype and shape need 16 bytes, data_offsets give 4"},
        {T("\"shape\":[2,18446744073709551614],\"data_offsets\":[0,4]"), 4, WEIR_E_FORMAT,
         "18446744073709551614 is too large"},
        {T("\"shape\":[2,9223372036854775807],\"data_offsets\":[0,4]"), 4, WEIR_E_FORMAT, "overflows"},
        {T("\"shape\":[9223372036854775807,2,0],\"data_offsets\":[0,0]"), 0, WEIR_E_FORMAT, "overflows"},
        {T("\"shape\":[-1],\"data_offsets\":[0,4]"), 4, WEIR_E_FORMAT, "below zero"},
        {T("\"shape\":[1.0],\"data_offsets\":[0,4]"), 4, WEIR_E_FORMAT, "a fraction or an exponent"},
        {T("\"shape\":[1e0],\"data_offsets\":[0,4]"), 4, WEIR_E_FORMAT, "a fraction or an exponent"},
        {T("\"shape\":[\"1\"],\"data_offsets\":[0,4]"), 4, WEIR_E_FORMAT, "a number was expected"},
        {T("\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]"), 4, WEIR_E_UNSUPPORTED, "more than 4 axes"},
        {T("\"shape\":[1],\"data_offsets\":[4,0]"), 4, WEIR_E_FORMAT, "end before they begin"},
        {T("\"shape\":[1],\"data_offsets\":[0]"), 4, WEIR_E_FORMAT, "fewer than two"},
        {T("\"shape\":[1],\"data_offsets\":[0,4,8]"), 4, WEIR_E_FORMAT, "more than two"},
        {T("\"shape\":[1],\"data_offsets\":[0,18446744073709551615]"), 4, WEIR_E_FORMAT, "too large"},
        {T("\"shape\":[1],\"data_offsets\":[9223372036854775803,9223372036854775807]"), 4, WEIR_E_FORMAT,
         "tensor t: follows a gap"},
        {T("\"shape\":[1],\"data_offsets\":[4,8]"), 8, WEIR_E_FORMAT, "follows a gap of 4 bytes"},
        {T("\"shape\":[1],\"data_offsets\":[0,4]"), 2, WEIR_E_FORMAT, "end 2 bytes behind the file"},
        {T("\"shape\":[1],\"data_offsets\":[0,4]"), 5, WEIR_E_FORMAT, "1 bytes behind the last tensor"},
        {"{\"t\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, WEIR_E_FORMAT, "whole bytes"},
        {"{\"t\\u0000\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, WEIR_E_FORMAT, "holds a NUL"},
        {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_"
         "offsets\":[1,2]}}",
         2, WEIR_E_FORMAT, "duplicate key \"t\""},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]},\"b\":{\"dtype\":\"U8\",\"shape\":[16],"
         "\"data_offsets\":[0,16]}}",
         16, WEIR_E_FORMAT, "tensor b at byte 117: overlaps the tensor before it by 16 bytes"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        parsed p;
        if (parse_header(&p, bad[i].header, bad[i].data) != bad[i].code || !said(&p.err, bad[i].code, bad[i].words))
            fail_msg("case %zu: %s", i, bad[i].header);
        assert_string_equal(p.err.file, p.map.path);
        drop(&p);
    }
}

static void test_refuses_files(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *words;
    } bad[] = {
        {"", 0, "0 bytes are too few"},
        {"\x01\0\0\0", 4, "4 bytes are too few"},
        {"\0\0\0\0\0\0\0\0", 8, "does not begin with '{'"},
        {"\x02\0\0\0\0\0\0\0", 8, "the header has 2 bytes but the file only 8"},
        {"\xff\xff\xff\xff\xff\xff\xff\0{}", 10, "over the format's limit"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "over the format's limit"},
        {"\xe8\x03\0\0\0\0\0\0{}", 10, "the header has 1000 bytes but the file only 10"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        parsed p;
        assert_int_equal(parse(&p, bad[i].bytes, bad[i].n), WEIR_E_FORMAT);
        assert_true(said(&p.err, WEIR_E_FORMAT, bad[i].words));
        drop(&p);
    }
}

static void test_deep_nesting(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    char *header = malloc(DEEP + 8);
    memcpy(header, "{\"t\":", 5);
    memset(header + 5, '[', DEEP);
    header[5 + DEEP] = '\0';
    parsed p;
    assert_int_equal(parse_header(&p, header, 0), WEIR_E_FORMAT);
    drop(&p);
    free(header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),           cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_refuses_headers), cmocka_unit_test(test_refuses_files),
        cmocka_unit_test(test_deep_nesting),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

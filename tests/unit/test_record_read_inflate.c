/* Inflating: what our compressor wrote and what zlib wrote, and nothing that is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "record/deflate.h"
#include "record/inflate_quick.h"

enum { MOST = 1 << 18 };

static uint8_t plain[MOST], packed[2 * MOST + WEIR_INFLATE_SLACK], out[MOST + WEIR_INFLATE_SLACK + 1];
static weir_inflater *z;
static weir_quick *quick; /* [2] */

static bool quickly_one(const uint8_t *src, size_t n, uint8_t *to, size_t to_n)
{
    weir_zlib s = {.src = src, .n = n, .out = to, .out_n = to_n};
    weir_quick_inflate(quick, &s, 1);
    return s.good;
}

/* Bytes of kind 0..5: noise, one value, few values, runs, a slope, exponents. */
static void make(int kind, size_t n)
{
    uint64_t s = (uint64_t)kind + 99;
    for (size_t i = 0; i < n; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        const unsigned r = (unsigned)(s >> 40);
        plain[i] = (uint8_t)(kind == 0   ? r
                             : kind == 1 ? 7
                             : kind == 2 ? (r & 0x10000 ? 200 : 3)
                             : kind == 3 ? (r % 50 == 0 ? r >> 8
                                            : i         ? plain[i - 1]
                                                        : 0)
                             : kind == 4 ? (unsigned)i / 300
                                         : 120u + (unsigned)__builtin_popcount(r & 0xfff));
    }
}

static bool inflate_one(const uint8_t *src, size_t n, size_t plain_n)
{
    weir_zlib one = {.src = src, .n = n, .out = out, .out_n = plain_n};
    weir_inflate_some(z, &one, 1);
    return one.good;
}

/* A mark behind the end and the slack must survive. */
static bool inflates(const uint8_t *stream, size_t n, size_t plain_n)
{
    memset(out, 0xee, sizeof out);
    bool good = inflate_one(stream, n, plain_n);
    assert_int_equal(out[plain_n + WEIR_INFLATE_SLACK], 0xee);
    return good && memcmp(out, plain, plain_n) == 0;
}

static void our_streams(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 4, 100, 4096, 40000, 65536, MOST};
    int quickly = 0, all = 0;
    for (int level = 1; level <= 9; level += 4)
        for (int kind = 0; kind < 6; kind++)
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                weir_packer *p;
                make(kind, sizes[k]);
                assert_int_equal(weir_packer_new(&p, level, NULL), WEIR_OK);
                const size_t elem = sizes[k] % 4 ? 1 : 4;
                const size_t n = weir_packer_pack(p, plain, sizes[k], elem, packed, sizeof packed - WEIR_INFLATE_SLACK);
                assert_true(n > 0);
                assert_true(inflates(packed, n, sizes[k]));
                assert_false(inflates(packed, n, sizes[k] + 1 < MOST ? sizes[k] + 1 : sizes[k] - 1));
                quickly += quickly_one(packed, n, out, sizes[k]);
                all++;
                weir_packer_free(p);
            }
    assert_int_equal(quickly, all); /* none of them needs the general inflater */
}

static void streams_of_zlib(void **state)
{
    (void)state;
    for (int level = 0; level <= 9; level += 3)
        for (int kind = 0; kind < 6; kind++) {
            uLongf n = sizeof packed - WEIR_INFLATE_SLACK;
            make(kind, 30000);
            assert_int_equal(compress2(packed, &n, plain, 30000, level), Z_OK);
            assert_true(inflates(packed, n, 30000));
        }
}

static void fixed_and_run_length_codes(void **state)
{
    (void)state;
    static const int strategies[] = {Z_FIXED, Z_RLE, Z_HUFFMAN_ONLY};
    for (int k = 0; k < 3; k++)
        for (int kind = 0; kind < 6; kind++) {
            z_stream s = {0};
            make(kind, 20000);
            assert_int_equal(deflateInit2(&s, 6, Z_DEFLATED, 15, 8, strategies[k]), Z_OK);
            s.next_in = plain;
            s.avail_in = 20000;
            s.next_out = packed;
            s.avail_out = sizeof packed - WEIR_INFLATE_SLACK;
            assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
            const size_t n = s.total_out;
            deflateEnd(&s);
            assert_true(inflates(packed, n, 20000));
        }
}

/* What zlib makes of a stream. */
static bool zlib_inflates(const uint8_t *stream, size_t n, uint8_t *to, size_t plain_n)
{
    uLongf got = plain_n;
    return uncompress(to, &got, stream, n) == Z_OK && got == plain_n;
}

/* Each bit changed and each byte missing. What zlib takes (bits without meaning, and a few changes that Adler-32 does
 * not see) gives the same bytes; what it refuses is refused, or it is a head that it finds odd and the right bytes. */
static void damage_is_seen(void **state)
{
    (void)state;
    static uint8_t theirs[1200];
    size_t refused = 0, all = 0;
    for (int kind = 0; kind < 6; kind++) {
        weir_packer *p;
        make(kind, 1200);
        assert_int_equal(weir_packer_new(&p, 1, NULL), WEIR_OK);
        const size_t n = weir_packer_pack(p, plain, 1200, 4, packed, sizeof packed - WEIR_INFLATE_SLACK);
        weir_packer_free(p);
        for (size_t i = 0; i < 8 * n; i++, all++) {
            packed[i / 8] ^= (uint8_t)(1 << i % 8);
            const bool want = zlib_inflates(packed, n, theirs, 1200), got = inflate_one(packed, n, 1200);
            assert_true(got || !want);
            if (got)
                assert_memory_equal(out, want ? theirs : plain, 1200);
            packed[i / 8] ^= (uint8_t)(1 << i % 8);
            refused += !got;
        }
        for (size_t i = 0; i < n; i++)
            assert_false(inflates(packed, i, 1200));
    }
    assert_true(refused > all / 10 * 9);
}

/* Two at once: each as if it were alone, whatever the other is. */
static void pairs(void **state)
{
    (void)state;
    enum { KINDS = 7, N = 20000 };
    static uint8_t stream[KINDS][2 * N], want[KINDS][N], got[2][N + WEIR_INFLATE_SLACK];
    size_t n[KINDS];
    for (int kind = 0; kind < KINDS; kind++) { /* the last one is damaged */
        weir_packer *p;
        make(kind % 6, N);
        memcpy(want[kind], plain, N);
        assert_int_equal(weir_packer_new(&p, 1, NULL), WEIR_OK);
        n[kind] = weir_packer_pack(p, plain, N, 4, packed, sizeof packed);
        weir_packer_free(p);
        assert_true(n[kind] > 0 && n[kind] + WEIR_INFLATE_SLACK <= sizeof stream[kind]);
        memcpy(stream[kind], packed, n[kind]);
    }
    stream[KINDS - 1][n[KINDS - 1] - 1] ^= 1;
    for (int a = 0; a < KINDS; a++)
        for (int b = 0; b < KINDS; b++) {
            weir_zlib s[2] = {{.src = stream[a], .n = n[a], .out = got[0], .out_n = N},
                              {.src = stream[b], .n = n[b], .out = got[1], .out_n = N}};
            memset(got, 0, sizeof got);
            weir_quick_inflate(quick, s, 2);
            assert_true(s[0].good == (a < KINDS - 1) && s[1].good == (b < KINDS - 1));
            weir_inflate_some(z, s, 2);
            assert_true(s[0].good == (a < KINDS - 1) && s[1].good == (b < KINDS - 1));
            assert_true(!s[0].good || memcmp(got[0], want[a], N) == 0);
            assert_true(!s[1].good || memcmp(got[1], want[b], N) == 0);
        }
}

static int set_up(void **state)
{
    (void)state;
    quick = calloc(2, sizeof *quick);
    if (!quick || weir_inflater_new(&z, NULL))
        return -1;
    quick[0].kern = quick[1].kern = weir_deflate_pick();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    weir_inflater_free(z);
    free(quick);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_streams),
        cmocka_unit_test(streams_of_zlib),
        cmocka_unit_test(fixed_and_run_length_codes),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(pairs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

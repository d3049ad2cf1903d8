/* The compressor and the inflater of chunks. An input's first byte chooses:
 *   even: the rest is a deflate stream, damaged or not. What we inflate, zlib inflates to the same bytes.
 *   odd:  the rest is data to pack (level and planes in the first byte, then how often it is repeated). Every table of
 *         instructions packs it to the same stream, and zlib and we inflate it.
 */
#include <zlib.h>

#include "base/mem.h"
#include "record/compress.h"
#include "record/inflate.h"

#define FUZZ_COST 2
#include "driver.h"

enum { UNPACKED_MAX = 80000, KERNELS = 3 }; /* more than one piece of the packer */

static weir_inflater *inflater(void)
{
    static weir_inflater *z;
    if (!z && weir_inflater_new(&z, NULL))
        abort();
    return z;
}

/* Level 1 to 9 with each table that runs here; the others are NULL. */
static weir_packer *packer(int level, int kernel)
{
    static const char *const name[KERNELS] = {"ref", "avx2", "avx512"};
    static weir_packer *p[10][KERNELS];
    static bool tried[10][KERNELS];
    if (!tried[level][kernel]) {
        setenv("WEIR_KERNEL", name[kernel], 1);
        if (weir_packer_new(&p[level][kernel], level, NULL))
            p[level][kernel] = NULL;
        unsetenv("WEIR_KERNEL");
        tried[level][kernel] = true;
    }
    return p[level][kernel];
}

/* A block of exactly the size that inflate.h asks for, so that a sanitizer sees a byte more. */
static uint8_t *block(const uint8_t *bytes, size_t n)
{
    uint8_t *p = malloc(n + WEIR_INFLATE_SLACK);
    if (!p)
        abort();
    if (bytes)
        memcpy(p, bytes, n);
    memset(p + n, 0xa5, WEIR_INFLATE_SLACK);
    return p;
}

/* Our own: src[n] inflates to exactly out[n_out]. Alone and beside another stream, to the same result. */
static bool ours(const uint8_t *src, size_t n, uint8_t *out, size_t n_out)
{
    static const uint8_t other[] = {0x78, 0x01, 0x63, 0x60, 0x80, 0x01, 0x00, 0x00, 0x0a, 0x00, 0x01}; /* ten zeros */
    uint8_t *in = block(src, n), *in2 = block(other, sizeof other), *to = block(NULL, n_out), *to2 = block(NULL, 10);
    weir_zlib z[] = {{.src = in2, .n = sizeof other, .out = to2, .out_n = 10},
                     {.src = in, .n = n, .out = to, .out_n = n_out}};
    weir_inflate_some(inflater(), &z[1], 1);
    const bool good = z[1].good;
    if (good)
        memcpy(out, to, n_out);
    for (int swap = 0; swap < 2; swap++) {
        const weir_zlib first = z[0];
        z[0] = z[1];
        z[1] = first;
        weir_inflate_some(inflater(), z, 2);
        for (int i = 0; i < 2; i++)
            PROMISE(z[i].src == in2 ? z[i].good : z[i].good == good && (!good || !memcmp(to, out, n_out)));
    }
    free(in);
    free(in2);
    free(to);
    free(to2);
    return good;
}

/* zlib's word about a raw deflate stream: the bytes that it holds, or -1. */
static long zlibs(const uint8_t *src, size_t n, uint8_t *out, size_t *used)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)src, .avail_in = (uInt)n, .next_out = out, .avail_out = UNPACKED_MAX};
    if (inflateInit2(&z, -15) != Z_OK)
        abort();
    long got = inflate(&z, Z_FINISH) == Z_STREAM_END ? (long)z.total_out : -1;
    *used = n - z.avail_in;
    inflateEnd(&z);
    return got;
}

/* A zlib stream around the deflate stream, with the checksum that is right, so that damage is not found by that alone.
 */
static void unpack(const uint8_t *data, size_t size)
{
    static uint8_t want[UNPACKED_MAX], got[UNPACKED_MAX];
    size_t used;
    long n = zlibs(data, size, want, &used);
    uint8_t *z = calloc(size + 6, 1);
    if (!z)
        abort();
    z[0] = 0x78;
    z[1] = 0x01;
    memcpy(z + 2, data, size);
    uLong sum = adler32(adler32(0, NULL, 0), want, n > 0 ? (uInt)n : 0);
    size_t end = 2 + (n >= 0 ? used : size);
    for (int i = 0; i < 4; i++)
        z[end + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
    bool good = ours(z, end + 4, got, n >= 0 ? (size_t)n : 100);
    PROMISE(n >= 0 ? good && !memcmp(want, got, (size_t)n) : !good);
    if (n >= 0) {
        PROMISE(n == 0 || !ours(z, end + 4, got, (size_t)n - 1));
        PROMISE(!ours(z, end + 4, got, (size_t)n + 1));
        z[end] ^= 1;
        PROMISE(!ours(z, end + 4, got, (size_t)n));
    }
    free(z);
}

static void pack(uint8_t how, const uint8_t *data, size_t size)
{
    static uint8_t src[UNPACKED_MAX], out[KERNELS][2 * UNPACKED_MAX], back[UNPACKED_MAX];
    const int level = 1 + how % 9;
    const size_t elem = (size_t)1 << how / 9 % 4, repeat = !size ? 1 : data[0] < 200 ? 1 + data[0] % 4u : data[0];
    const size_t most = level == 1 ? UNPACKED_MAX : UNPACKED_MAX / 16; /* the others take their time */
    size_t n = 0, length = 0;
    for (size_t r = 0; size > 1 && r < repeat && n + size - 1 <= most; r++, n += size - 1)
        memcpy(src + n, data + 1, size - 1);
    n -= n % elem;
    const size_t cap = weir_packer_bound(n);
    PROMISE(cap <= sizeof out[0]);
    for (int k = 0; k < KERNELS; k++) {
        weir_packer *p = packer(level, k);
        size_t m = p ? weir_packer_pack(p, src, n, elem, out[k], cap) : length;
        PROMISE(m > 0 && m <= cap && (k == 0 || m == length));
        PROMISE(k == 0 || !p || !memcmp(out[0], out[k], m));
        length = m;
    }
    uLongf got = sizeof back;
    PROMISE(uncompress(back, &got, out[0], length) == Z_OK && got == n && !memcmp(src, back, n));
    memset(back, 0, n);
    PROMISE(ours(out[0], length, back, n) && !memcmp(src, back, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] & 1)
        pack(data[0] >> 1, data + 1, size - 1);
    else
        unpack(data + 1, size - 1);
    return 0;
}

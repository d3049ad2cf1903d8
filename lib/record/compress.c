/* record/compress.c: see compress.h. libdeflate where it is there, else zlib. */
#include "compress.h"

#include <string.h>

#ifdef WEIR_HAVE_LIBDEFLATE
#include <libdeflate.h>
#else
#include <zlib.h>
#endif

#include "base/mem.h"

/* --- shuffle */

/* One row of float-sized elements to four planes. The trip count is fixed, so that the compiler vectorises the loop. */
static void split4_64(uint8_t *restrict p0, uint8_t *restrict p1, uint8_t *restrict p2, uint8_t *restrict p3,
                      const uint8_t *restrict src)
{
    uint32_t x[64];
    memcpy(x, src, sizeof x);
    for (int j = 0; j < 64; j++)
        p0[j] = (uint8_t)x[j];
    for (int j = 0; j < 64; j++)
        p1[j] = (uint8_t)(x[j] >> 8);
    for (int j = 0; j < 64; j++)
        p2[j] = (uint8_t)(x[j] >> 16);
    for (int j = 0; j < 64; j++)
        p3[j] = (uint8_t)(x[j] >> 24);
}

static bool little_endian(void)
{
    const uint16_t one = 1;
    uint8_t low;
    memcpy(&low, &one, 1);
    return low == 1;
}

void weir_tile_shuffle(uint8_t *dst, const weir_tile *t)
{
    size_t plane = t->tile_rows * t->tile_cols;
    bool wide = t->elem == 4 && t->cols == 64 && t->tile_cols == 64 && little_endian();
    if (t->rows < t->tile_rows || t->cols < t->tile_cols)
        memset(dst, 0, plane * t->elem);
    for (size_t r = 0; r < t->rows; r++) {
        const uint8_t *src = t->src + r * t->stride;
        uint8_t *row = dst + r * t->tile_cols;
        if (wide) {
            split4_64(row, row + plane, row + 2 * plane, row + 3 * plane, src);
            continue;
        }
        for (size_t k = 0; k < t->elem; k++)
            for (size_t j = 0; j < t->cols; j++)
                row[k * plane + j] = src[j * t->elem + k];
    }
}

void weir_tile_copy(uint8_t *dst, const weir_tile *t)
{
    if (t->rows < t->tile_rows || t->cols < t->tile_cols)
        memset(dst, 0, t->tile_rows * t->tile_cols * t->elem);
    for (size_t r = 0; r < t->rows; r++)
        memcpy(dst + r * t->tile_cols * t->elem, t->src + r * t->stride, t->cols * t->elem);
}

/* --- deflate: a raw stream (RFC 1951) and the checksum, from either library */

#ifdef WEIR_HAVE_LIBDEFLATE
struct weir_packer {
    struct libdeflate_compressor *c;
};

static bool deflater_open(weir_packer *p, int level)
{
    p->c = libdeflate_alloc_compressor(level);
    return p->c != NULL;
}

static void deflater_close(weir_packer *p)
{
    libdeflate_free_compressor(p->c);
}

static size_t deflate_bound(size_t n)
{
    return libdeflate_deflate_compress_bound(NULL, n);
}

static size_t deflate_raw(weir_packer *p, const uint8_t *src, size_t n, uint8_t *out, size_t cap)
{
    return libdeflate_deflate_compress(p->c, src, n, out, cap);
}

static uint32_t checksum(const uint8_t *p, size_t n)
{
    return libdeflate_adler32(1, p, n);
}
#else
struct weir_packer {
    z_stream z;
};

static bool deflater_open(weir_packer *p, int level)
{
    /* Activations hold no repeats but runs of one byte: looking for more costs half of the time and some of the ratio. */
    int strategy = level == 1 ? Z_RLE : Z_DEFAULT_STRATEGY;
    return deflateInit2(&p->z, level, Z_DEFLATED, -15, 8, strategy) == Z_OK;
}

static void deflater_close(weir_packer *p)
{
    deflateEnd(&p->z);
}

static size_t deflate_bound(size_t n)
{
    return n + n / 1000 + 64; /* above zlib's own bound for these parameters */
}

static size_t deflate_raw(weir_packer *p, const uint8_t *src, size_t n, uint8_t *out, size_t cap)
{
    if (deflateReset(&p->z) != Z_OK)
        return 0;
    p->z.next_in = (Bytef *)(uintptr_t)src;
    p->z.avail_in = (uInt)n;
    p->z.next_out = out;
    p->z.avail_out = (uInt)cap;
    return deflate(&p->z, Z_FINISH) == Z_STREAM_END ? cap - p->z.avail_out : 0;
}

static uint32_t checksum(const uint8_t *p, size_t n)
{
    return (uint32_t)adler32(1, p, (uInt)n);
}
#endif

weir_status weir_packer_new(weir_packer **out, int level, weir_err *err)
{
    weir_packer *p = weir_calloc(1, sizeof *p);
    if (!p || !deflater_open(p, level)) {
        weir_free(p);
        return weir_nomem(err, "a compressor");
    }
    *out = p;
    return WEIR_OK;
}

void weir_packer_free(weir_packer *p)
{
    if (!p)
        return;
    deflater_close(p);
    weir_free(p);
}

enum { STORED_MAX = 65535, STORED_HEAD = 5, ZLIB_HEAD = 2, ZLIB_TAIL = 4 };

size_t weir_packer_bound(size_t n)
{
    return ZLIB_HEAD + (n / STORED_MAX + 1) * STORED_HEAD + n + deflate_bound(n) - n + ZLIB_TAIL;
}

/* Are these bytes so evenly spread that coding them would save less than 2 %? Judged from a sample by its collisions:
 * the sum of squared counts is n*n/256 for even bytes, and 1.1 times that at 7.86 bits a byte. */
static bool incompressible(const uint8_t *p, size_t n)
{
    enum { SAMPLE = 8192 };
    if (n < SAMPLE)
        return false;
    uint32_t count[256] = {0};
    size_t step = n / SAMPLE | 1, taken = 0; /* odd: no stride of ours is */
    for (size_t i = 0; i < n; i += step, taken++)
        count[p[i]]++;
    uint64_t squares = 0;
    for (int b = 0; b < 256; b++)
        squares += (uint64_t)count[b] * count[b];
    return squares * 256 * 10 < (uint64_t)taken * taken * 11;
}

static uint8_t *put_stored(uint8_t *out, const uint8_t *src, size_t n)
{
    while (n > 0) {
        uint16_t len = (uint16_t)(n < STORED_MAX ? n : STORED_MAX), inv = (uint16_t)~len;
        const uint8_t head[STORED_HEAD] = {0, (uint8_t)len, (uint8_t)(len >> 8), (uint8_t)inv, (uint8_t)(inv >> 8)};
        memcpy(out, head, STORED_HEAD);
        memcpy(out + STORED_HEAD, src, len);
        out += STORED_HEAD + len;
        src += len;
        n -= len;
    }
    return out;
}

size_t weir_packer_pack(weir_packer *p, const uint8_t *src, size_t n, size_t elem, uint8_t *out, size_t cap)
{
    if (cap < weir_packer_bound(n))
        return 0;
    size_t plane = n / elem, stored = 0;
    while (elem > 1 && stored + plane < n && incompressible(src + stored, plane))
        stored += plane;
    uint8_t *o = out;
    *o++ = 0x78;
    *o++ = 0x01;
    /* Stored blocks end at a byte, so the stream of the rest can follow as it is. */
    o = put_stored(o, src, stored);
    size_t used = deflate_raw(p, src + stored, n - stored, o, cap - (size_t)(o - out) - ZLIB_TAIL);
    if (used == 0)
        return 0;
    o += used;
    uint32_t sum = checksum(src, n);
    for (int shift = 24; shift >= 0; shift -= 8)
        *o++ = (uint8_t)(sum >> shift);
    return (size_t)(o - out);
}

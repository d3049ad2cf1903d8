/* record/compress.c: see compress.h. Which piece of a chunk becomes which kind of block; the zlib container. */
#include "compress.h"

#include "base/mem.h"
#include "deflate.h"
#include "kernels/kernels.h"

/* --- tables */

static const weir_deflate_kern *table_named(const char *name)
{
#if defined(__x86_64__)
    static const weir_deflate_kern *const fast[] = {&weir_deflate_avx2, &weir_deflate_avx512};
    for (int i = 0; i < 2; i++)
        if (!strcmp(fast[i]->name, name))
            return fast[i];
#endif
    (void)name;
    return &weir_deflate_ref;
}

const weir_deflate_kern *weir_deflate_pick(void)
{
    const weir_kern *k;
    return weir_kern_pick(&k, NULL, NULL) == WEIR_OK ? table_named(weir_kern_name(k)) : &weir_deflate_ref;
}

/* --- tiles */

/* Rows that lie without gaps, in the source and in the tile, are one long row: columns of one element, mostly. */
static weir_tile flat(const weir_tile *t)
{
    weir_tile f = *t;
    if (t->cols == t->tile_cols && t->stride == t->cols * t->elem) {
        f.cols = t->rows * t->cols;
        f.tile_cols = t->tile_rows * t->tile_cols;
        f.rows = f.tile_rows = 1;
    }
    return f;
}

/* Zero to the bytes of a plane (or of an unshuffled chunk, `elem` bytes each) that no row fills. */
static void clear_rest(uint8_t *plane, const weir_tile *t, size_t elem)
{
    const size_t row = t->tile_cols * elem, used = t->cols * elem;
    for (size_t r = 0; used < row && r < t->rows; r++)
        memset(plane + r * row + used, 0, row - used);
    memset(plane + t->rows * row, 0, (t->tile_rows - t->rows) * row);
}

void weir_tile_shuffle(uint8_t *dst, const weir_tile *t)
{
    const weir_deflate_kern *kern = weir_deflate_pick();
    const weir_tile f = flat(t);
    const size_t plane = t->tile_rows * t->tile_cols;
    for (size_t k = 0; k < t->elem; k++)
        clear_rest(dst + k * plane, &f, 1);
    if (t->elem == 2) {
        kern->shuffle2(dst, &f);
    } else if (t->elem == 4) {
        kern->shuffle4(dst, &f);
    } else {
        for (size_t r = 0; r < f.rows; r++)
            for (size_t k = 0; k < t->elem; k++)
                for (size_t j = 0; j < f.cols; j++)
                    dst[k * plane + r * f.tile_cols + j] = f.src[r * f.stride + j * f.elem + k];
    }
}

void weir_tile_copy(uint8_t *dst, const weir_tile *t)
{
    clear_rest(dst, t, t->elem);
    for (size_t r = 0; r < t->rows; r++)
        memcpy(dst + r * t->tile_cols * t->elem, t->src + r * t->stride, t->cols * t->elem);
}

/* --- the packer */

struct weir_packer {
    int level;
    weir_deflater deflater;
};

weir_status weir_packer_new(weir_packer **out, int level, weir_err *err)
{
    const weir_kern *k;
    WEIR_TRY(weir_kern_pick(&k, NULL, err));
    weir_packer *p = weir_calloc(1, sizeof *p);
    if (!p)
        return weir_nomem(err, "a compressor");
    p->level = level;
    p->deflater.kern = table_named(weir_kern_name(k));
    *out = p;
    return WEIR_OK;
}

void weir_packer_free(weir_packer *p)
{
    weir_free(p);
}

enum { ZLIB_HEAD = 2, ZLIB_TAIL = 4, PLANES_MAX = 8, SHORT_PLANE = 512, SHORT_TAIL = 256, SPILL = 8 };

size_t weir_packer_bound(size_t n)
{
    /* No block is longer than a stored one, which adds 42 bits at most. A piece is one block and a constant end, or one
     * stored block and the byte that did not fit into it; planes and what is left behind the last one begin pieces. */
    const size_t pieces = n / WEIR_PIECE + PLANES_MAX + 1, blocks = 2 * pieces + n / WEIR_STORED_MAX;
    return ZLIB_HEAD + n + 6 * blocks + ZLIB_TAIL + SPILL;
}

/* What waits, in the hope that the next piece goes on with it: noise, or one byte again and again. */
typedef enum piece_kind { NOTHING, NOISE, CONSTANT } piece_kind;
typedef struct pending {
    piece_kind kind;
    const uint8_t *p;
    size_t n;
} pending;

static void put_pending(weir_deflater *d, pending *w, bool final)
{
    if (w->kind == NOISE)
        weir_put_stored(d, w->p, w->n, final);
    else if (w->kind == CONSTANT)
        weir_put_constant(d, *w->p, w->n, final);
    w->kind = NOTHING;
}

static void hold(weir_deflater *d, pending *w, piece_kind kind, const uint8_t *p, size_t n)
{
    if (w->kind == kind && (kind == NOISE || *w->p == *p)) {
        w->n += n;
        return;
    }
    put_pending(d, w, false);
    *w = (pending){kind, p, n};
}

/* One piece of a plane, of which a constant end (the rows that a tile lacks) is coded apart. */
static void put_piece(weir_deflater *d, pending *w, const uint8_t *p, size_t n, bool final)
{
    size_t tail = weir_tail(p, n);
    tail = tail == n || tail >= SHORT_TAIL ? tail : 0;
    const size_t body = n - tail;
    if (body > 0 && !d->look_for_rows && weir_is_noise(p, body)) {
        hold(d, w, NOISE, p, body);
    } else if (body > 0) {
        put_pending(d, w, false);
        weir_put_fast(d, p, body, final && tail == 0);
    }
    if (tail > 0)
        hold(d, w, CONSTANT, p + body, tail);
}

/* The next piece from `at` on, within its plane. */
static size_t piece_bytes(size_t at, size_t n, size_t plane)
{
    const size_t left = n - at, to_end = plane - at % plane;
    const size_t k = to_end < WEIR_PIECE ? to_end : WEIR_PIECE;
    return k < left ? k : left;
}

/* A row that stands in the chunk twice does so in every plane: a look at the first that is no constant is enough. */
static bool rows_repeat(weir_deflater *d, const uint8_t *src, size_t n, size_t plane)
{
    for (size_t at = 0; at < n; at += plane) {
        const size_t k = piece_bytes(at, n, plane), body = k - weir_tail(src + at, k);
        if (body > 0)
            return weir_has_rows(d, src + at, body);
    }
    return false;
}

static void put_fast(weir_deflater *d, const uint8_t *src, size_t n, size_t elem)
{
    const size_t plane = n / elem < SHORT_PLANE ? n : n / elem;
    pending w = {NOTHING, NULL, 0};
    d->look_for_rows = rows_repeat(d, src, n, plane);
    for (size_t at = 0, k; at < n; at += k) {
        k = piece_bytes(at, n, plane);
        put_piece(d, &w, src + at, k, at + k == n);
    }
    put_pending(d, &w, true);
}

/* A small chunk is one piece: the halves of halves of 2, 4 or 8 planes are planes. */
static void put_fine(weir_deflater *d, const uint8_t *src, size_t n, size_t elem, int level)
{
    const size_t plane = n <= WEIR_PIECE || n / elem == 0 ? n : n / elem, least = WEIR_PIECE >> (level - 2);
    for (size_t at = 0, k; at < n; at += k) {
        k = piece_bytes(at, n, plane);
        weir_put_fine(d, src + at, k, least, at + k == n);
    }
}

/* The blocks of level 1 or of a higher one; returns the end. */
static uint8_t *put_blocks(weir_deflater *d, const uint8_t *src, size_t n, size_t elem, int level, uint8_t *out)
{
    d->out = (weir_bits){out, 0, 0};
    if (n == 0)
        weir_put_end(d);
    else if (level == 1)
        put_fast(d, src, n, elem);
    else
        put_fine(d, src, n, elem, level);
    return d->out.p + (d->out.n > 0);
}

size_t weir_packer_pack(weir_packer *p, const uint8_t *src, size_t n, size_t elem, uint8_t *out, size_t cap)
{
    weir_deflater *d = &p->deflater;
    if (cap < weir_packer_bound(n))
        return 0;
    out[0] = 0x78; /* deflate with a window of 32 KiB; the two bytes are a multiple of 31 */
    out[1] = 0x01;
    uint8_t *o = put_blocks(d, src, n, elem, 1, out + ZLIB_HEAD);
    if (p->level > 1) {
        uint8_t *const fast = o;
        o = put_blocks(d, src, n, elem, p->level, out + ZLIB_HEAD);
        if (o > fast)
            o = put_blocks(d, src, n, elem, 1, out + ZLIB_HEAD);
    }
    const uint32_t sum = d->kern->adler(src, n);
    for (int shift = 24; shift >= 0; shift -= 8)
        *o++ = (uint8_t)(sum >> shift);
    return (size_t)(o - out);
}

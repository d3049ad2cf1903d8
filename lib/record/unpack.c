/* record/unpack.c: see unpack.h. Little-endian machines only: elsewhere HDF5 reads (dset.c). */
#include "unpack.h"

#include <string.h>

#include "round.h"

enum { LANES = 64 }; /* a fixed trip count, so that the compiler vectorises the loop */

static void join4(uint32_t *restrict out, const uint8_t *restrict p0, const uint8_t *restrict p1,
                  const uint8_t *restrict p2, const uint8_t *restrict p3)
{
    for (int j = 0; j < LANES; j++)
        out[j] = p0[j] | (uint32_t)p1[j] << 8 | (uint32_t)p2[j] << 16 | (uint32_t)p3[j] << 24;
}

/* One element as an integer, from any kind of chunk. */
static uint64_t element(const weir_unpack *u, size_t at)
{
    uint64_t v = 0;
    size_t step = u->shuffled ? u->count : 1;
    const uint8_t *p = u->src + (u->shuffled ? at : at * u->elem);
    for (size_t k = 0; k < u->elem; k++)
        v |= (uint64_t)p[k * step] << (8 * k);
    return v;
}

static void put(void *out, size_t bytes, uint64_t v)
{
    const uint32_t four = (uint32_t)v;
    if (bytes == 4)
        memcpy(out, &four, 4);
    else if (bytes == 8)
        memcpy(out, &v, 8);
    else
        *(uint8_t *)out = (uint8_t)v;
}

static void put_halves(const weir_unpack *u, size_t at, size_t step, size_t n, uint8_t *out, size_t out_step)
{
    uint16_t h[LANES];
    float wide[LANES];
    for (size_t done = 0, m; done < n; done += m) {
        m = n - done < LANES ? n - done : LANES;
        for (size_t i = 0; i < m; i++)
            h[i] = (uint16_t)element(u, at + (done + i) * step);
        weir_from_f16(wide, h, (int64_t)m);
        for (size_t i = 0; i < m; i++)
            memcpy(out + (done + i) * out_step * 4, &wide[i], 4);
    }
}

void weir_unpack_column(const weir_unpack *u, size_t at, size_t step, size_t n, void *out, size_t out_step)
{
    uint8_t *o = out;
    if (u->shuffled && u->elem == 4) { /* the case that matters: one neuron */
        const uint8_t *p0 = u->src + at, *p1 = p0 + u->count, *p2 = p1 + u->count, *p3 = p2 + u->count;
        for (size_t i = 0; i < n; i++) {
            const size_t e = i * step;
            const uint32_t v = p0[e] | (uint32_t)p1[e] << 8 | (uint32_t)p2[e] << 16 | (uint32_t)p3[e] << 24;
            memcpy(o + i * out_step * 4, &v, 4);
        }
        return;
    }
    if (u->half) {
        put_halves(u, at, step, n, o, out_step);
        return;
    }
    for (size_t i = 0; i < n; i++)
        put(o + i * out_step * u->elem, u->elem, element(u, at + i * step));
}

void weir_unpack_run(const weir_unpack *u, size_t at, size_t n, void *out)
{
    size_t done = 0;
    if ((!u->shuffled || u->elem == 1) && !u->half) {
        memcpy(out, u->src + at * u->elem, n * u->elem);
        return;
    }
    if (u->shuffled && u->elem == 4) {
        uint32_t block[LANES];
        for (; done + LANES <= n; done += LANES) {
            const uint8_t *p = u->src + at + done;
            join4(block, p, p + u->count, p + 2 * u->count, p + 3 * u->count);
            memcpy((uint8_t *)out + done * 4, block, sizeof block);
        }
    }
    weir_unpack_column(u, at + done, 1, n - done, (uint8_t *)out + done * (u->half ? 4 : u->elem), 1);
}

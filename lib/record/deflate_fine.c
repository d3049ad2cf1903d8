/* record/deflate_fine.c: levels 2 to 9. A piece may be halved, and each half again, down to a size that the level sets;
 * wherever two blocks are shorter than one, it is. Every size is exact: the code of each candidate is made. */
#include "deflate.h"

/* Nodes of the tree of halves: 1 is the piece, 2 i and 2 i + 1 are the halves of i. */
static size_t plan(weir_deflater *d, const uint8_t *p, size_t n, size_t least, int node)
{
    const size_t whole = weir_exact_bits(d, p, n), half = n / 2;
    d->halved[node] = false;
    if (half < least || 2 * node + 1 >= WEIR_FINE_NODES)
        return whole;
    const size_t parts = plan(d, p, half, least, 2 * node) + plan(d, p + half, n - half, least, 2 * node + 1);
    d->halved[node] = parts < whole;
    return parts < whole ? parts : whole;
}

static void put(weir_deflater *d, const uint8_t *p, size_t n, int node, bool final)
{
    if (d->halved[node]) {
        put(d, p, n / 2, 2 * node, false);
        put(d, p + n / 2, n - n / 2, 2 * node + 1, final);
    } else {
        weir_put_exact(d, p, n, final);
    }
}

void weir_put_fine(weir_deflater *d, const uint8_t *p, size_t n, size_t least, bool final)
{
    d->base = p;
    plan(d, p, n, least, 1);
    put(d, p, n, 1, final);
}

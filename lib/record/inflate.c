/* record/inflate.c: see inflate.h. */
#include "inflate.h"

#ifdef WEIR_HAVE_LIBDEFLATE
#include <libdeflate.h>
#else
#include <zlib.h>
#endif

#include "base/mem.h"
#include "deflate.h"
#include "inflate_quick.h"

#ifdef WEIR_HAVE_LIBDEFLATE
struct weir_inflater {
    weir_quick quick[2];
    struct libdeflate_decompressor *d;
};

static bool begin(weir_inflater *z)
{
    z->d = libdeflate_alloc_decompressor();
    return z->d != NULL;
}

static void end(weir_inflater *z)
{
    libdeflate_free_decompressor(z->d);
}

static bool inflate_any(weir_inflater *z, const uint8_t *src, size_t n, uint8_t *out, size_t out_n)
{
    return libdeflate_zlib_decompress(z->d, src, n, out, out_n, NULL) == LIBDEFLATE_SUCCESS;
}
#else
struct weir_inflater {
    weir_quick quick[2];
    z_stream z;
};

static bool begin(weir_inflater *z)
{
    return inflateInit(&z->z) == Z_OK;
}

static void end(weir_inflater *z)
{
    inflateEnd(&z->z);
}

static bool inflate_any(weir_inflater *z, const uint8_t *src, size_t n, uint8_t *out, size_t out_n)
{
    if (n > UINT32_MAX || out_n > UINT32_MAX || inflateReset(&z->z) != Z_OK)
        return false;
    z->z.next_in = (Bytef *)(uintptr_t)src;
    z->z.avail_in = (uInt)n;
    z->z.next_out = out;
    z->z.avail_out = (uInt)out_n;
    return inflate(&z->z, Z_FINISH) == Z_STREAM_END && z->z.avail_out == 0;
}
#endif

weir_status weir_inflater_new(weir_inflater **out, weir_err *err)
{
    weir_inflater *z = weir_calloc(1, sizeof *z);
    if (!z || !begin(z)) {
        weir_free(z);
        return weir_nomem(err, "a decompressor");
    }
    z->quick[0].kern = z->quick[1].kern = weir_deflate_pick();
    *out = z;
    return WEIR_OK;
}

void weir_inflater_free(weir_inflater *z)
{
    if (!z)
        return;
    end(z);
    weir_free(z);
}

void weir_inflate_some(weir_inflater *z, weir_zlib *stream, int n)
{
    weir_quick_inflate(z->quick, stream, n);
    for (int i = 0; i < n; i++)
        if (!stream[i].good)
            stream[i].good = inflate_any(z, stream[i].src, stream[i].n, stream[i].out, stream[i].out_n);
}

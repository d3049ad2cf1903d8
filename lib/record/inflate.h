/* record/inflate.h: one zlib stream (RFC 1950) inflated, with its checksum checked: by inflate_quick.c what our own
 * compressor wrote, the rest by libdeflate where it is there, else by zlib. */
#ifndef WEIR_INFLATE_H
#define WEIR_INFLATE_H

#include <weir/base.h>

enum { WEIR_INFLATE_SLACK = 16 };

/* One thread's. */
typedef struct weir_inflater weir_inflater;
WEIR_CHECKED weir_status weir_inflater_new(weir_inflater **out, weir_err *err);
void weir_inflater_free(weir_inflater *z);

typedef struct weir_zlib {
    const uint8_t *src;
    size_t n;
    uint8_t *out;
    size_t out_n; /* what it should hold, exactly */
    bool good;    /* false: no zlib stream, a wrong checksum, or another length */
} weir_zlib;

/* n streams, 1 or 2; two at once are faster than one after the other. WEIR_INFLATE_SLACK bytes behind src may be read,
 * and behind out written, without meaning. */
void weir_inflate_some(weir_inflater *z, weir_zlib *stream, int n);

#endif

/* page/base64.h: bytes and numbers as base64 text in a stream, as bytes.js reads them. Little endian. */
#ifndef WEIR_TOOLS_PAGE_BASE64_H
#define WEIR_TOOLS_PAGE_BASE64_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Zero it but for out. */
typedef struct weir_base64 {
    FILE *out;
    uint32_t held; /* bytes that wait for their group of three to be whole */
    int n_held;
    uint64_t bytes; /* given so far */
} weir_base64;

void weir_base64_put(weir_base64 *b, const void *p, size_t n);
void weir_base64_end(weir_base64 *b);
void weir_base64_u32(weir_base64 *b, uint32_t x);
void weir_base64_f32(weir_base64 *b, float x);
void weir_base64_f64(weir_base64 *b, double x);
/* A count in as few bytes as it takes: seven bits each, the lowest first, the eighth: more follow. Negative: 0. */
void weir_base64_count(weir_base64 *b, int64_t x);

#endif

/* base/sha256.h: SHA-256 (FIPS 180-4). */
#ifndef WEIR_SHA256_H
#define WEIR_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct weir_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
} weir_sha256;

void weir_sha256_init(weir_sha256 *s);
void weir_sha256_add(weir_sha256 *s, const void *p, size_t n);
void weir_sha256_hex(weir_sha256 *s, char out[65]);

#endif

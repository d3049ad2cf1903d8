/* support/bytes.h: writing little-endian files for tests: GGUF piece by piece, safetensors from a header. */
#ifndef TEST_BYTES_H
#define TEST_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct blob {
    unsigned char *p;
    size_t n, cap;
} blob;

static inline void put(blob *b, const void *p, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = (b->n + n) * 2;
        b->p = realloc(b->p, b->cap);
        if (!b->p)
            abort();
    }
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline void put_int(blob *b, uint64_t v, int size)
{
    for (int i = 0; i < size; i++) {
        unsigned char c = (unsigned char)(v >> (8 * i));
        put(b, &c, 1);
    }
}

static inline void put_u32(blob *b, uint32_t v)
{
    put_int(b, v, 4);
}

static inline void put_u64(blob *b, uint64_t v)
{
    put_int(b, v, 8);
}

static inline void put_zeros(blob *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(b, "", 1);
}

/* --- GGUF */

static inline void put_gguf_head(blob *b, uint32_t version, uint64_t n_tensors, uint64_t n_kv)
{
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_kv);
}

static inline void put_gguf_str(blob *b, const char *z)
{
    put_u64(b, strlen(z));
    put(b, z, strlen(z));
}

static inline void put_gguf_key(blob *b, const char *key, uint32_t type)
{
    put_gguf_str(b, key);
    put_u32(b, type);
}

static inline void put_gguf_u32(blob *b, const char *key, uint32_t v)
{
    put_gguf_key(b, key, 4);
    put_u32(b, v);
}

/* dims as in the file: fastest first. */
static inline void put_gguf_tensor(blob *b, const char *name, int rank, const uint64_t *dims, uint32_t type,
                                   uint64_t offset)
{
    put_gguf_str(b, name);
    put_u32(b, (uint32_t)rank);
    for (int i = 0; i < rank; i++)
        put_u64(b, dims[i]);
    put_u32(b, type);
    put_u64(b, offset);
}

static inline void pad(blob *b, size_t to)
{
    while (b->n % to)
        put(b, "", 1);
}

/* --- safetensors */

static inline void put_safetensors(blob *b, const char *header, size_t data)
{
    put_u64(b, strlen(header));
    put(b, header, strlen(header));
    for (size_t i = 0; i < data; i++)
        put_int(b, i & 0xff, 1);
}

#endif

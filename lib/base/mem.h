/* base/mem.h: allocation. The only file whose .c calls malloc; tests wrap it with the linker to make the n-th
 * allocation fail. Sizes are checked: an overflow is an out-of-memory error. */
#ifndef WEIR_MEM_H
#define WEIR_MEM_H

#include <weir/base.h>

/* NULL on failure or overflow; zeroed. count 0 gives a valid pointer. */
void *weir_calloc(size_t count, size_t size);
/* Grows p to count elements; the old block stays valid on failure (NULL). New bytes are not set. */
void *weir_realloc(void *p, size_t count, size_t size);
/* Room for one more element behind the n of an array that is grown by this call only (room is made for 16, 32, 64,
 * ...). NULL on failure, with the old block valid. */
void *weir_grow(void *p, size_t n, size_t size);
void weir_free(void *p);
/* 64-byte aligned, huge pages advised above 4 MiB, not zeroed; freed with weir_free_aligned. */
void *weir_alloc_aligned(size_t bytes);
void weir_free_aligned(void *p);
/* Copies n bytes and adds a NUL. */
char *weir_strndup(const char *p, size_t n);
/* weir_fail with WEIR_E_NOMEM and what was being made. */
weir_status weir_nomem(weir_err *err, const char *what);

/* Checked arithmetic on sizes from files: false on overflow or a negative operand. */
bool weir_mul64(int64_t a, int64_t b, int64_t *out);
bool weir_add64(int64_t a, int64_t b, int64_t *out);

/* An arena: many small allocations, freed together. Zero it before use. */
typedef struct weir_arena {
    struct weir_arena_block *head;
    size_t used, size;
} weir_arena;
void *weir_arena_alloc(weir_arena *a, size_t count, size_t size); /* 16-byte aligned, zeroed; NULL on failure */
char *weir_arena_strndup(weir_arena *a, const char *p, size_t n);
void weir_arena_free(weir_arena *a);

/* A growing byte buffer, always NUL-terminated when non-NULL. Zero it before use. */
typedef struct weir_buf {
    char *p;
    size_t n, cap;
} weir_buf;
/* Room for n more bytes: adding that many does not move what is there. */
WEIR_CHECKED weir_status weir_buf_reserve(weir_buf *b, size_t n);
WEIR_CHECKED weir_status weir_buf_add(weir_buf *b, const void *p, size_t n);
WEIR_CHECKED weir_status weir_buf_printf(weir_buf *b, const char *fmt, ...) WEIR_PRINTF(2, 3);
void weir_buf_free(weir_buf *b);

#endif

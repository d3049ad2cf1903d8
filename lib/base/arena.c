#include "mem.h"

#include <string.h>

#define ALIGN 16
#define BLOCK_MIN ((size_t)16 << 10)
#define BLOCK_MAX ((size_t)1 << 20)

struct weir_arena_block {
    struct weir_arena_block *next;
    size_t size;
    _Alignas(ALIGN) unsigned char data[];
};

static struct weir_arena_block *new_block(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    struct weir_arena_block *b = weir_calloc(sizeof *b + size, 1);
    if (b)
        b->size = size;
    return b;
}

void *weir_arena_alloc(weir_arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4)
        return NULL;
    bytes = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    if (a->size - a->used >= bytes) {
        void *p = a->head->data + a->used;
        a->used += bytes;
        return p;
    }
    size_t want = a->size ? a->size * 2 : BLOCK_MIN;
    want = want > BLOCK_MAX ? BLOCK_MAX : want;
    bool own = bytes > want / 4; /* a large one gets its own block, behind the head, whose rest stays in use */
    struct weir_arena_block *b = new_block(own ? bytes : want);
    if (!b)
        return NULL;
    if (own && a->head) {
        b->next = a->head->next;
        a->head->next = b;
        return b->data;
    }
    b->next = a->head;
    a->head = b;
    a->size = b->size;
    a->used = bytes;
    return b->data;
}

char *weir_arena_strndup(weir_arena *a, const char *p, size_t n)
{
    char *s = n == SIZE_MAX ? NULL : weir_arena_alloc(a, n + 1, 1);
    if (s && n)
        memcpy(s, p, n);
    return s;
}

void weir_arena_free(weir_arena *a)
{
    for (struct weir_arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        weir_free(b);
    }
    *a = (weir_arena){0};
}

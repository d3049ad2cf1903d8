/* kernels/pool.c: memory for the packed weights of a model.
 *
 * One row of activations reads every weight once, at the speed of memory; on pages of 4 KiB it gets little more than
 * half of that, because the processor's prefetch ends with each page and the translations of a whole model fit nowhere.
 * Matrices of one to four MiB fill no huge page of their own, so they share blocks that do. What a block has left over
 * is never touched and costs nothing.
 *
 * A piece that is given back keeps its addresses and loses its memory. It is handed out again to whoever wants the same
 * size, the newest first: layers have the same sizes, so that one layer's pieces become the next one's, side by side.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "kernels/kern.h"

#define POOL_BLOCK ((size_t)64 << 20)

typedef struct pool_block {
    char *p;
    size_t used, size;
    struct pool_block *next;
} pool_block;

struct weir_panel_pool {
    pthread_mutex_t lock;
    pool_block *blocks;      /* the newest first */
    weir_panel_piece *spare; /* given back, the newest first */
};

weir_status weir_panel_pool_new(weir_panel_pool **out, weir_err *err)
{
    weir_panel_pool *pool = weir_calloc(1, sizeof *pool);
    *out = pool;
    if (!pool)
        return weir_nomem(err, "packed weights");
    pthread_mutex_init(&pool->lock, NULL);
    return WEIR_OK;
}

void weir_panel_pool_free(weir_panel_pool *pool)
{
    if (!pool)
        return;
    while (pool->blocks) {
        pool_block *b = pool->blocks;
        pool->blocks = b->next;
        weir_free_aligned(b->p);
        weir_free(b);
    }
    while (pool->spare) {
        weir_panel_piece *piece = pool->spare;
        pool->spare = piece->next;
        weir_free(piece);
    }
    pthread_mutex_destroy(&pool->lock);
    weir_free(pool);
}

static pool_block *new_block(size_t size)
{
    pool_block *b = weir_calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->size = size;
    b->p = weir_alloc_aligned(size);
    if (!b->p) {
        weir_free(b);
        return NULL;
    }
    return b;
}

/* From the newest block with room for it, else from a new one. */
static void *cut(weir_panel_pool *pool, size_t bytes)
{
    pool_block *b = pool->blocks;
    while (b && b->size - b->used < bytes)
        b = b->next;
    if (!b) {
        b = new_block(bytes > POOL_BLOCK ? bytes : POOL_BLOCK);
        if (!b)
            return NULL;
        b->next = pool->blocks;
        pool->blocks = b;
    }
    void *p = b->p + b->used;
    b->used += bytes;
    return p;
}

static weir_panel_piece *take_spare(weir_panel_pool *pool, size_t bytes)
{
    weir_panel_piece **at = &pool->spare;
    while (*at && (*at)->bytes != bytes)
        at = &(*at)->next;
    weir_panel_piece *piece = *at;
    if (piece)
        *at = piece->next;
    return piece;
}

static weir_panel_piece *take_new(weir_panel_pool *pool, size_t bytes)
{
    weir_panel_piece *piece = weir_calloc(1, sizeof *piece);
    if (!piece)
        return NULL;
    *piece = (weir_panel_piece){.pool = pool, .p = cut(pool, bytes), .bytes = bytes};
    if (piece->p)
        return piece;
    weir_free(piece);
    return NULL;
}

weir_panel_piece *weir_panel_pool_take(weir_panel_pool *pool, size_t bytes)
{
    if (bytes > SIZE_MAX - 63)
        return NULL;
    bytes = (bytes + 63) / 64 * 64;
    pthread_mutex_lock(&pool->lock);
    weir_panel_piece *piece = take_spare(pool, bytes);
    if (!piece)
        piece = take_new(pool, bytes);
    pthread_mutex_unlock(&pool->lock);
    return piece;
}

/* Hands the whole pages of a piece back to the system; they read as zeros if they are touched again. */
static void forget(const weir_panel_piece *piece)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)piece->p + page - 1) / page * page;
    const uintptr_t to = ((uintptr_t)piece->p + piece->bytes) / page * page;
    if (to > from)
        madvise((void *)from, to - from, MADV_DONTNEED);
}

void weir_panel_pool_give(weir_panel_piece *piece)
{
    weir_panel_pool *pool = piece->pool;
    forget(piece);
    pthread_mutex_lock(&pool->lock);
    piece->next = pool->spare;
    pool->spare = piece;
    pthread_mutex_unlock(&pool->lock);
}

/* bpe.c: the merge table and the two ways to merge: a scan for short pieces, a heap over a linked list for long ones.
 */
#include "bpe.h"

#include <string.h>

#include "base/mem.h"

#define NO_RANK UINT32_MAX
#define NONE UINT32_MAX
enum { SHORT_PIECE = 48 };

static size_t slot_of(const weir_tok_merges *m, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> m->shift);
}

/* The merge of a pair, or NULL. */
static const weir_tok_merge *find(const weir_tok_merges *m, int32_t left, int32_t right)
{
    for (size_t i = slot_of(m, left, right);; i = (i + 1) & (m->cap - 1)) {
        const weir_tok_merge *e = &m->slot[i];
        if (e->left == left && e->right == right && e->made >= 0)
            return e;
        if (e->made < 0)
            return NULL;
    }
}

weir_status weir_tok_merges_reserve(weir_tok_merges *m, size_t n)
{
    size_t cap = m->cap ? m->cap : 16;
    int bits = 4;
    if (n > SIZE_MAX / 64)
        return WEIR_E_NOMEM;
    while (cap < n * 2)
        cap *= 2;
    if (cap == m->cap)
        return WEIR_OK;
    while ((size_t)1 << bits < cap)
        bits++;
    weir_tok_merges bigger = {weir_realloc(NULL, cap, sizeof *bigger.slot), cap, 0, 64 - bits};
    if (!bigger.slot)
        return WEIR_E_NOMEM;
    for (size_t i = 0; i < cap; i++)
        bigger.slot[i] = (weir_tok_merge){-1, -1, -1, 0};
    for (size_t i = 0; i < m->cap; i++)
        if (m->slot[i].made >= 0)
            weir_tok_merges_set(&bigger, m->slot[i].left, m->slot[i].right, m->slot[i].made, m->slot[i].rank);
    weir_free(m->slot);
    *m = bigger;
    return WEIR_OK;
}

void weir_tok_merges_set(weir_tok_merges *m, int32_t left, int32_t right, int32_t made, uint32_t rank)
{
    size_t i = slot_of(m, left, right);
    while (m->slot[i].made >= 0 && (m->slot[i].left != left || m->slot[i].right != right))
        i = (i + 1) & (m->cap - 1);
    m->n += m->slot[i].made < 0;
    m->slot[i] = (weir_tok_merge){left, right, made, rank};
}

bool weir_tok_merge_rank(const weir_tok_merges *m, int32_t left, int32_t right, uint32_t *rank)
{
    const weir_tok_merge *e = m->n ? find(m, left, right) : NULL;
    if (e)
        *rank = e->rank;
    return e != NULL;
}

void weir_tok_merges_free(weir_tok_merges *m)
{
    weir_free(m->slot);
    *m = (weir_tok_merges){0};
}

void weir_tok_symbols_free(weir_tok_symbols *s)
{
    weir_free(s->id);
    weir_free(s->at);
    weir_free(s->lost);
    weir_free(s->prev);
    weir_free(s->next);
    weir_free(s->rank);
    weir_free(s->heap);
    *s = (weir_tok_symbols){0};
}

/* Grows one array; false on failure, when it stays as it was. */
static bool grow(void *array, size_t n, size_t size)
{
    void *old;
    memcpy(&old, array, sizeof old);
    void *bigger = weir_realloc(old, n, size);
    if (bigger)
        memcpy(array, &bigger, sizeof bigger);
    return bigger != NULL;
}

weir_status weir_tok_symbols_reserve(weir_tok_symbols *s, size_t n)
{
    if (n <= s->cap)
        return WEIR_OK;
    size_t cap = n + n / 2 + SHORT_PIECE;
    if (!grow(&s->id, cap, sizeof *s->id) || !grow(&s->at, cap, sizeof *s->at) || !grow(&s->lost, cap, 1))
        return WEIR_E_NOMEM;
    s->cap = cap;
    return WEIR_OK;
}

void weir_tok_symbols_add(weir_tok_symbols *s, int32_t id, size_t at, bool lost)
{
    s->id[s->n] = id;
    s->at[s->n] = (uint32_t)at;
    s->lost[s->n++] = lost;
}

static uint32_t rank_of(const weir_tok_merges *m, int32_t left, int32_t right)
{
    const weir_tok_merge *e = find(m, left, right);
    return e ? e->rank : NO_RANK;
}

/* rank[i] belongs to the pair (i, i + 1). */
static void merge_short(const weir_tok_merges *m, weir_tok_symbols *s)
{
    uint32_t rank[SHORT_PIECE];
    int32_t made[SHORT_PIECE];
    size_t n = s->n;
    for (size_t i = 0; i + 1 < n; i++) {
        const weir_tok_merge *e = find(m, s->id[i], s->id[i + 1]);
        rank[i] = e ? e->rank : NO_RANK;
        made[i] = e ? e->made : -1;
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == NO_RANK)
            break;
        s->id[best] = made[best];
        s->lost[best] |= s->lost[best + 1];
        for (size_t i = best + 1; i + 1 < n; i++) {
            s->id[i] = s->id[i + 1];
            s->at[i] = s->at[i + 1];
            s->lost[i] = s->lost[i + 1];
            rank[i - 1] = rank[i];
            made[i - 1] = made[i];
        }
        n--;
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const weir_tok_merge *e = find(m, s->id[i], s->id[i + 1]);
            rank[i] = e ? e->rank : NO_RANK;
            made[i] = e ? e->made : -1;
        }
    }
    s->n = n;
}

/* The heap's least entry is the next merge: rank in the upper half, position in the lower. */
static weir_status heap_push(weir_tok_symbols *s, uint64_t entry)
{
    if (s->heap_n == s->heap_cap) {
        size_t cap = s->heap_cap * 2 + 64;
        if (!grow(&s->heap, cap, sizeof *s->heap))
            return WEIR_E_NOMEM;
        s->heap_cap = cap;
    }
    size_t i = s->heap_n++;
    for (; i && s->heap[(i - 1) / 2] > entry; i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = entry;
    return WEIR_OK;
}

static uint64_t heap_pop(weir_tok_symbols *s)
{
    uint64_t top = s->heap[0], last = s->heap[--s->heap_n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->heap_n)
            break;
        if (child + 1 < s->heap_n && s->heap[child + 1] < s->heap[child])
            child++;
        if (s->heap[child] >= last)
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return top;
}

/* Looks the pair that begins at i up again and queues it. */
static weir_status queue_pair(const weir_tok_merges *m, weir_tok_symbols *s, uint32_t i)
{
    s->rank[i] = s->next[i] == NONE ? NO_RANK : rank_of(m, s->id[i], s->id[s->next[i]]);
    return s->rank[i] == NO_RANK ? WEIR_OK : heap_push(s, (uint64_t)s->rank[i] << 32 | i);
}

static weir_status link_all(const weir_tok_merges *m, weir_tok_symbols *s)
{
    if (s->n > s->links_cap) {
        if (!grow(&s->prev, s->cap, sizeof *s->prev) || !grow(&s->next, s->cap, sizeof *s->next) ||
            !grow(&s->rank, s->cap, sizeof *s->rank))
            return WEIR_E_NOMEM;
        s->links_cap = s->cap;
    }
    s->heap_n = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->prev[i] = i ? (uint32_t)i - 1 : NONE;
        s->next[i] = i + 1 < s->n ? (uint32_t)i + 1 : NONE;
        WEIR_TRY(queue_pair(m, s, (uint32_t)i));
    }
    return WEIR_OK;
}

/* Entries whose pair has changed meanwhile are left in the heap and known by their rank. */
static weir_status merge_long(const weir_tok_merges *m, weir_tok_symbols *s)
{
    WEIR_TRY(link_all(m, s));
    while (s->heap_n) {
        uint64_t entry = heap_pop(s);
        uint32_t i = (uint32_t)entry, gone;
        if (s->rank[i] != entry >> 32)
            continue;
        gone = s->next[i];
        s->id[i] = find(m, s->id[i], s->id[gone])->made;
        s->lost[i] |= s->lost[gone];
        s->rank[gone] = NO_RANK;
        s->next[i] = s->next[gone];
        if (s->next[i] != NONE)
            s->prev[s->next[i]] = i;
        WEIR_TRY(queue_pair(m, s, i));
        if (s->prev[i] != NONE)
            WEIR_TRY(queue_pair(m, s, s->prev[i]));
    }
    size_t n = 0;
    for (uint32_t i = 0; i != NONE; i = s->next[i], n++) {
        s->id[n] = s->id[i];
        s->at[n] = s->at[i];
        s->lost[n] = s->lost[i];
    }
    s->n = n;
    return WEIR_OK;
}

weir_status weir_tok_merge_all(const weir_tok_merges *m, weir_tok_symbols *s)
{
    if (s->n < 2 || !m->n)
        return WEIR_OK;
    if (s->n > SHORT_PIECE)
        return merge_long(m, s);
    merge_short(m, s);
    return WEIR_OK;
}

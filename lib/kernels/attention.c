/* kernels/attention.c: scores, softmax and the mix of values, block by block.
 *
 * The work is cut into blocks of up to 8 successive queries of one head (attn_rows.c multiplies them with keys and
 * values); a row has the same bits in whichever block it stands.
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "kernels/attn.h"

#define BLOCK WEIR_TILE_ROWS

size_t weir_attn_k_floats(int64_t kv_heads, int64_t d, int64_t cap)
{
    return (size_t)kv_heads * (size_t)weir_ceil_div(cap, WEIR_PANEL) * WEIR_PANEL * (size_t)d;
}

/* The tiles of the last key read whole vectors: up to 15 floats more. */
size_t weir_attn_v_floats(int64_t kv_heads, int64_t d, int64_t cap)
{
    return (size_t)kv_heads * (size_t)cap * (size_t)d + 16;
}

/* --- scratch of a thread: where it is in the list of sequences, then packed queries, scores and the packed pattern */
typedef struct attn_scratch {
    int64_t seq, base; /* sequence of the last task and its first task: tasks come in ascending order */
    int64_t pad[6];
} attn_scratch;

typedef struct attn_ctx {
    const weir_kern *kern;
    const weir_attn *a;
    const float *key, *val; /* weir_attn_store */
    int64_t len;            /* floats of a row of scores */
    size_t each;            /* bytes of a thread's scratch */
} attn_ctx;

static size_t scratch_each(int64_t len, int64_t d)
{
    const size_t floats = 2 * BLOCK * (size_t)len + (size_t)weir_ceil_div(BLOCK * d, 16) * 16;
    return sizeof(attn_scratch) + floats * sizeof(float);
}

static int64_t padded(int64_t keys)
{
    return weir_ceil_div(keys, WEIR_PANEL) * WEIR_PANEL;
}

size_t weir_attn_scratch(int64_t max_len, int64_t d, int threads)
{
    return scratch_each(padded(max_len), d) * (size_t)(threads > 1 ? threads : 1);
}

static attn_scratch *scratch_of(const attn_ctx *c, int thread)
{
    return (attn_scratch *)((char *)c->a->scratch + c->each * (size_t)thread);
}
static float *scores_of(const attn_ctx *c, int thread)
{
    return (float *)(scratch_of(c, thread) + 1);
}
static float *packed_of(const attn_ctx *c, int thread)
{
    return scores_of(c, thread) + BLOCK * c->len;
}
static float *query_of(const attn_ctx *c, int thread)
{
    return packed_of(c, thread) + BLOCK * c->len;
}

/* --- blocks of queries */
typedef struct block {
    const weir_attn_seq *seq;
    int64_t head, kv;
    int64_t row; /* in the batch */
    int64_t pos; /* of the first query in its sequence */
    int rows;
} block;

static int64_t tasks_of(const weir_attn *a, const weir_attn_seq *s)
{
    return a->heads * weir_ceil_div(s->n, BLOCK);
}

/* Task i: heads one after the other, so that a head's keys stay in the cache, the longest rows first. */
static block block_of(const attn_ctx *c, int64_t i, int thread)
{
    const weir_attn *a = c->a;
    attn_scratch *at = scratch_of(c, thread);
    while (i - at->base >= tasks_of(a, &a->seq[at->seq])) {
        at->base += tasks_of(a, &a->seq[at->seq]);
        at->seq++;
    }
    const weir_attn_seq *s = &a->seq[at->seq];
    const int64_t blocks = weir_ceil_div(s->n, BLOCK), in = i - at->base;
    const int64_t first = (blocks - 1 - in % blocks) * BLOCK;
    block b = {.seq = s, .head = in / blocks, .row = s->row0 + first, .pos = s->past + first};
    b.kv = b.head / (a->heads / a->kv_heads);
    b.rows = (int)weir_min64(BLOCK, s->n - first);
    return b;
}

static void for_blocks(const weir_kern *k, int threads, const weir_attn *a, void (*body)(void *, int64_t, int))
{
    attn_ctx c = {.kern = k, .a = a};
    int64_t keys = 0, tasks = 0;
    for (int64_t i = 0; i < a->n_seq; i++) {
        keys = weir_max64(keys, a->seq[i].past + a->seq[i].n);
        tasks += tasks_of(a, &a->seq[i]);
    }
    c.len = padded(keys);
    c.each = scratch_each(c.len, a->d);
    for (int t = 0; t < weir_max64(1, threads); t++)
        *scratch_of(&c, t) = (attn_scratch){0};
    weir_parallel_for(threads, tasks, 1, body, &c);
}

static weir_attn_rows rows_of(const attn_ctx *c, const block *b)
{
    return (weir_attn_rows){.kern = c->kern, .a = c->a, .rows = b->rows, .pos = b->pos};
}

/* Raw scores of the block into s [rows][len], for all keys from the first row's first to the last row's last. */
static void block_scores(const attn_ctx *c, const block *b, float *s, float *packed)
{
    const weir_attn *a = c->a;
    const int64_t width = a->heads * a->d;
    const weir_attn_rows r = rows_of(c, b);
    weir_attn_rows_dot(&r, a->q + b->row * width + b->head * a->d, width, weir_attn_key_panel(a, b->seq, b->kv, 0), s,
                       c->len, packed);
}

/* z of the block from its pattern p [rows][ldp]. */
static void block_mix(const attn_ctx *c, const block *b, const float *p, int64_t ldp, float *packed)
{
    const weir_attn *a = c->a;
    const int64_t width = a->heads * a->d;
    const weir_attn_rows r = rows_of(c, b);
    weir_attn_rows_mix(&r, p, ldp, weir_attn_values(a, b->seq, b->kv), a->d, a->z + b->row * width + b->head * a->d,
                       width, packed);
}

/* --- the calls */

static void store_head(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const attn_ctx *c = ctx;
    const weir_attn *a = c->a;
    const weir_attn_seq *s = &a->seq[i / a->kv_heads];
    const int64_t kv = i % a->kv_heads, width = a->kv_heads * a->d, end = s->past + s->n;
    const int64_t from = s->row0 * width + kv * a->d;
    for (int64_t pos = s->past; pos < end;) {
        const int64_t lane = pos % WEIR_PANEL;
        const int rows = (int)weir_min64(weir_min64(16, WEIR_PANEL - lane), end - pos);
        float *panel = weir_attn_key_panel(a, s, kv, pos / WEIR_PANEL);
        const weir_f32u *row[16];
        for (int r = 0; r < rows; r++)
            row[r] = c->key + from + (pos - s->past + r) * width;
        if (lane == 0 && end - pos < WEIR_PANEL) /* lanes of keys to come are read by tiles, though never used */
            memset(panel, 0, (size_t)(WEIR_PANEL * a->d) * sizeof *panel);
        c->kern->transpose(panel + lane, WEIR_PANEL, row, rows, a->d);
        pos += rows;
    }
    for (int64_t r = 0; r < s->n; r++)
        memcpy(weir_attn_values(a, s, kv) + (s->past + r) * a->d, c->val + from + r * width,
               (size_t)a->d * sizeof(float));
}

void weir_attn_store(const weir_kern *k, int threads, const weir_attn *a, const float *key, const float *val)
{
    weir_parallel_for(threads, a->n_seq * a->kv_heads, 0, store_head,
                      &(attn_ctx){.kern = k, .a = a, .key = key, .val = val});
}

static float *score_row_of(const weir_attn *a, float *rows, const block *b, int i)
{
    return rows + ((b->row + i) * a->heads + b->head) * a->s;
}

static void fill(float *p, int64_t from, int64_t to, float value)
{
    for (int64_t i = from; i < to; i++)
        p[i] = value;
}

static void scores_task(void *ctx, int64_t i, int thread)
{
    const attn_ctx *c = ctx;
    const weir_attn *a = c->a;
    const block b = block_of(c, i, thread);
    float *s = scores_of(c, thread);
    block_scores(c, &b, s, query_of(c, thread));
    for (int r = 0; r < b.rows; r++) {
        const int64_t lo = weir_attn_first_key(a, b.pos + r), hi = b.pos + r + 1;
        float *out = score_row_of(a, a->scores, &b, r);
        fill(out, 0, lo, -INFINITY);
        c->kern->score_row(out + lo, s + r * c->len + lo, hi - lo, a->scale, a->softcap);
        fill(out, hi, a->s, -INFINITY);
    }
}

void weir_attn_scores(const weir_kern *k, int threads, const weir_attn *a)
{
    for_blocks(k, threads, a, scores_task);
}

static void softmax_task(void *ctx, int64_t i, int thread)
{
    const attn_ctx *c = ctx;
    const weir_attn *a = c->a;
    const block b = block_of(c, i, thread);
    for (int r = 0; r < b.rows; r++) {
        const int64_t lo = weir_attn_first_key(a, b.pos + r), hi = b.pos + r + 1;
        float *out = score_row_of(a, a->pattern, &b, r);
        c->kern->softmax_row(out, score_row_of(a, a->scores, &b, r), lo, hi, 1.0f, 0.0f);
        fill(out, 0, lo, 0.0f);
        fill(out, hi, a->s, 0.0f);
    }
}

void weir_attn_softmax(const weir_kern *k, int threads, const weir_attn *a)
{
    for_blocks(k, threads, a, softmax_task);
}

static void mix_task(void *ctx, int64_t i, int thread)
{
    const attn_ctx *c = ctx;
    const block b = block_of(c, i, thread);
    block_mix(c, &b, score_row_of(c->a, c->a->pattern, &b, 0), c->a->heads * c->a->s, packed_of(c, thread));
}

void weir_attn_mix(const weir_kern *k, int threads, const weir_attn *a)
{
    for_blocks(k, threads, a, mix_task);
}

static void fused_task(void *ctx, int64_t i, int thread)
{
    const attn_ctx *c = ctx;
    const weir_attn *a = c->a;
    const block b = block_of(c, i, thread);
    float *s = scores_of(c, thread);
    block_scores(c, &b, s, query_of(c, thread));
    for (int r = 0; r < b.rows; r++) {
        float *row = s + r * c->len;
        c->kern->softmax_row(row, row, weir_attn_first_key(a, b.pos + r), b.pos + r + 1, a->scale, a->softcap);
    }
    block_mix(c, &b, s, c->len, packed_of(c, thread));
}

void weir_attn_fused(const weir_kern *k, int threads, const weir_attn *a)
{
    for_blocks(k, threads, a, fused_task);
}

/* kernels/backward_attention.c: from the gradient of z to those of q, k and v.
 *
 * A unit of work is a key head of a sequence. Its queries go by in strips of some 64 rows of (query, head of the
 * group), each in two steps. First, for 8 successive queries of a head at a time, rows over the keys: the pattern
 * again, d P, G, and from G and the keys dq: the products of the forward (attn_rows.c). Then, for 8 keys at a time,
 * chains over the strip's rows: P^T dz goes on in dv, G^T q in dk. The rows of a strip lie query by query, the heads of
 * a query one after the other, so that a chain over them is one tile; between strips it rests in memory, which is
 * exact. The queries that see only some of the 8 keys are taken one by one with those keys: what is invisible enters
 * nothing.
 *
 * Units are shared between threads; of the few that would leave threads without work, one after the other is worked on
 * by all (inside weir_parallel_for another one is serial: the same functions do both), in longer strips.
 */
#include <string.h>

#include "base/parallel.h"
#include "kernels/attn.h"

#define BLOCK WEIR_TILE_ROWS
#define STRIP_ROWS 64   /* of a strip, about: their part of q stays in the first-level cache */
#define SHARED_STRIP 4  /* times as many where threads have to wait for each other at its end */
#define KEYS WEIR_PANEL /* of a task: six tiles */

enum { STEP_SCORES = 1, STEP_MIX = 2 }; /* dq and dk; dv */

/* Sizes of the scratch, in floats. */
typedef struct back_size {
    int64_t dp;    /* the head size in whole vectors */
    int64_t len;   /* of a row over the keys */
    int64_t strip; /* queries of a strip */
    int64_t unit, own;
} back_size;

typedef struct back_ctx {
    const weir_kern *kern;
    const weir_attn_back *b;
    const weir_attn *a;
    int steps;
    bool staged; /* the pattern is given, and d_pattern and d_scores are left for hooks or come from them */
    int64_t group;
    back_size size;
} back_ctx;

/* A unit, its scratch, and the strip that is being worked on. */
typedef struct unit {
    const back_ctx *c;
    const weir_attn_seq *seq;
    int64_t kv;
    int64_t keys;     /* all, cached ones included */
    float *key;       /* [keys, dp] */
    float *val;       /* panels [D][48] of the values */
    float *dk, *dv;   /* [n, dp] */
    float *p, *g;     /* [strip x group, len] */
    float *q, *dz;    /* [strip x group, dp] */
    int64_t from, to; /* queries of the strip, counted from the first of the pass */
} unit;

static int64_t whole(int64_t floats)
{
    return weir_ceil_div(floats, WEIR_LANES) * WEIR_LANES;
}

/* rows: of a strip, about. */
static back_size size_of(int64_t keys, int64_t d, int64_t group, int64_t rows)
{
    back_size s = {.dp = whole(d), .len = weir_ceil_div(keys, WEIR_PANEL) * WEIR_PANEL};
    s.len += s.len / WEIR_LANES % 2 ? 0 : WEIR_LANES; /* odd: neighbouring rows fall into different sets of the cache */
    s.strip = weir_max64(BLOCK, rows / group / BLOCK * BLOCK);
    s.unit = keys * 3 * s.dp + whole(weir_ceil_div(keys, WEIR_PANEL) * WEIR_PANEL * d) +
             2 * s.strip * group * (s.len + s.dp);
    s.own = BLOCK * (s.dp + 2 * s.len);
    return s;
}

size_t weir_attn_back_scratch(int64_t max_len, int64_t d, int64_t group, int threads)
{
    const back_size each = size_of(max_len, d, group, STRIP_ROWS);
    const back_size all = size_of(max_len, d, group, SHARED_STRIP * STRIP_ROWS);
    const int64_t n = weir_max64(1, threads);
    return (size_t)weir_max64(n * (each.unit + each.own), all.unit + n * all.own) * sizeof(float);
}

/* What a thread needs for 8 queries: packed rows of x, then of the keys' length, then scores. It lies behind the unit.
 */
static float *own_of(const unit *u, int thread)
{
    return u->key + u->c->size.unit + thread * u->c->size.own;
}

/* Unit i in the scratch of a thread, or of all (0). */
static unit unit_of(const back_ctx *c, int64_t i, int thread)
{
    const weir_attn_seq *s = &c->a->seq[i / c->a->kv_heads];
    const int64_t rows = c->size.strip * c->group, dp = c->size.dp;
    unit u = {.c = c, .seq = s, .kv = i % c->a->kv_heads, .keys = s->past + s->n};
    u.key = (float *)c->b->scratch + thread * (c->size.unit + c->size.own);
    u.dk = u.key + u.keys * dp;
    u.dv = u.dk + s->n * dp;
    u.q = u.dv + s->n * dp;
    u.dz = u.q + rows * dp;
    u.p = u.dz + rows * dp;
    u.g = u.p + rows * c->size.len;
    u.val = u.g + rows * c->size.len;
    return u;
}

/* --- keys as rows, values as panels: the other way round than the forward has them. Lanes beyond the head size and the
 * last key are read by tiles, though never used: they are zeroed. */

static void turn_panel(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const unit *u = ctx;
    const weir_kern *kern = u->c->kern;
    const weir_attn *a = u->c->a;
    const int64_t d = a->d, dp = u->c->size.dp, at = i * WEIR_PANEL, n = weir_min64(WEIR_PANEL, u->keys - at);
    const float *panel = weir_attn_key_panel(a, u->seq, u->kv, i);
    if (dp > d)
        memset(u->key + at * dp, 0, (size_t)(n * dp) * sizeof(float));
    for (int64_t c = 0; c < d; c += 16) {
        const int rows = (int)weir_min64(16, d - c);
        const weir_f32u *row[16];
        for (int r = 0; r < rows; r++)
            row[r] = panel + (c + r) * WEIR_PANEL;
        kern->transpose(u->key + at * dp + c, dp, row, rows, n);
    }
    const float *v = weir_attn_values(a, u->seq, u->kv) + at * d;
    float *turned = u->val + at * d;
    if (n < WEIR_PANEL)
        memset(turned, 0, (size_t)(WEIR_PANEL * d) * sizeof(float));
    for (int64_t k = 0; k < n; k += 16) {
        const int rows = (int)weir_min64(16, n - k);
        const weir_f32u *row[16];
        for (int r = 0; r < rows; r++)
            row[r] = v + (k + r) * d;
        kern->transpose(turned + k, WEIR_PANEL, row, rows, d);
    }
}

/* --- 8 queries of a head: rows over the keys */

typedef struct block {
    weir_attn_rows r;
    int64_t row, head; /* in the batch */
    float *p, *g;      /* of the first query; the next is ld further on */
    int64_t ld;
} block;

static block block_of(const unit *u, int64_t i)
{
    const back_ctx *c = u->c;
    const int64_t g = i % c->group, first = u->from + i / c->group * BLOCK;
    const int64_t at = (first - u->from) * c->group + g;
    return (block){
        .r = {.kern = c->kern, .a = c->a, .rows = (int)weir_min64(BLOCK, u->to - first), .pos = u->seq->past + first},
        .row = u->seq->row0 + first,
        .head = u->kv * c->group + g,
        .p = u->p + at * c->size.len,
        .g = u->g + at * c->size.len,
        .ld = c->group * c->size.len};
}

/* Rows [T,H,D] of the block, into the strip as whole vectors. */
static void pack_rows(const unit *u, const block *b, const float *src, float *strip)
{
    const back_ctx *c = u->c;
    const int64_t d = c->a->d, dp = c->size.dp, g = b->head - u->kv * c->group;
    for (int i = 0; i < b->r.rows; i++) {
        float *dst = strip + ((b->row + i - u->seq->row0 - u->from) * c->group + g) * dp;
        memcpy(dst, src + ((b->row + i) * c->a->heads + b->head) * d, (size_t)d * sizeof *dst);
        memset(dst + d, 0, (size_t)(dp - d) * sizeof *dst);
    }
}

static int64_t row_at(const back_ctx *c, const block *b, int i)
{
    return ((b->row + i) * c->a->heads + b->head) * c->a->s;
}

static void copy_row(const weir_kern *kern, float *dst, const float *src, int64_t n)
{
    kern->score_row(dst, src, n, 1.0f, 0.0f);
}

/* A row [S] for hooks: 0 where nothing is seen. */
static void leave_row(const back_ctx *c, float *dst, const float *src, int64_t lo, int64_t hi)
{
    copy_row(c->kern, dst + lo, src + lo, hi - lo);
    memset(dst, 0, (size_t)lo * sizeof *dst);
    memset(dst + hi, 0, (size_t)(c->a->s - hi) * sizeof *dst);
}

/* Scores of the block as they were computed, into p; under a cap also into y [8, len]. */
static void block_scores(const unit *u, const block *b, float *packed, float *y)
{
    const back_ctx *c = u->c;
    const weir_attn *a = c->a;
    const int64_t width = a->heads * a->d;
    weir_attn_rows_dot(&b->r, a->q + b->row * width + b->head * a->d, width, weir_attn_key_panel(a, u->seq, u->kv, 0),
                       b->p, b->ld, packed);
    for (int i = 0; a->softcap > 0 && i < b->r.rows; i++) {
        const int64_t lo = weir_attn_first_key(a, b->r.pos + i), hi = b->r.pos + i + 1;
        c->kern->score_row(y + i * c->size.len + lo, b->p + i * b->ld + lo, hi - lo, a->scale, a->softcap);
    }
}

/* The pattern of the block in p, d of it in g. */
static void block_mix(const unit *u, const block *b, float *packed)
{
    const back_ctx *c = u->c;
    const int64_t width = c->a->heads * c->a->d;
    pack_rows(u, b, c->b->dz, u->dz);
    weir_attn_rows_dot(&b->r, c->b->dz + b->row * width + b->head * c->a->d, width, u->val, b->g, b->ld, packed);
    for (int i = 0; c->staged && i < b->r.rows; i++) {
        const int64_t lo = weir_attn_first_key(c->a, b->r.pos + i), hi = b->r.pos + i + 1, at = row_at(c, b, i);
        memcpy(b->p + i * b->ld + lo, c->b->pattern + at + lo, (size_t)(hi - lo) * sizeof(float));
        leave_row(c, c->b->d_pattern + at, b->g + i * b->ld, lo, hi);
    }
}

/* From p, the pattern (or what a softmax makes it), and g, d of it: g becomes d of the scores. */
static void block_softmax(const unit *u, const block *b, const float *y)
{
    const back_ctx *c = u->c;
    const weir_attn *a = c->a;
    const bool capped = a->softcap > 0;
    for (int i = 0; i < b->r.rows; i++) {
        const int64_t lo = weir_attn_first_key(a, b->r.pos + i), hi = b->r.pos + i + 1;
        float *p = b->p + i * b->ld, *g = b->g + i * b->ld;
        c->kern->softmax_row(p, capped ? y + i * c->size.len : p, lo, hi, capped ? 1.0f : a->scale, 0.0f);
        c->kern->softmax_back(g, p, lo, hi);
    }
}

/* g, d of the scores, becomes G; dq. */
static void block_query(const unit *u, const block *b, const float *y, float *packed)
{
    const back_ctx *c = u->c;
    const weir_attn *a = c->a;
    const int64_t width = a->heads * a->d;
    pack_rows(u, b, a->q, u->q);
    for (int i = 0; i < b->r.rows; i++) {
        const int64_t lo = weir_attn_first_key(a, b->r.pos + i), hi = b->r.pos + i + 1;
        c->kern->score_back(b->g + i * b->ld + lo, y + i * c->size.len + lo, hi - lo, a->scale, a->softcap);
    }
    weir_attn_rows_mix(&b->r, b->g, b->ld, u->key, c->size.dp, c->b->dq + b->row * width + b->head * a->d, width,
                       packed);
}

static void queries(void *ctx, int64_t i, int thread)
{
    const unit *u = ctx;
    const back_ctx *c = u->c;
    const block b = block_of(u, i);
    float *packed = own_of(u, thread), *y = packed + BLOCK * (c->size.dp + c->size.len);
    if (c->steps & STEP_MIX)
        block_mix(u, &b, packed);
    if (!(c->steps & STEP_SCORES))
        return;
    if (!c->staged || c->a->softcap > 0)
        block_scores(u, &b, packed, y);
    if (!c->staged)
        block_softmax(u, &b, y);
    for (int r = 0; c->staged && r < b.r.rows; r++) {
        const int64_t lo = weir_attn_first_key(c->a, b.r.pos + r), hi = b.r.pos + r + 1;
        memcpy(b.g + r * b.ld + lo, c->b->d_scores + row_at(c, &b, r) + lo, (size_t)(hi - lo) * sizeof(float));
    }
    block_query(u, &b, y, packed + BLOCK * c->size.dp);
}

/* --- 8 keys: chains over the rows of the strip */

/* The chains of dst [n, dp] for the keys at positions [k0, k1), columns [c0, c0 + 16 nv), over w [rows, len] and x
 * [rows, dp]. Queries that see the same of these keys go together. */
static void chains(const unit *u, const float *w, const float *x, float *dst, int64_t k0, int64_t k1, int64_t c0,
                   int nv)
{
    const back_ctx *c = u->c;
    const int64_t dp = c->size.dp, past = u->seq->past, window = c->a->window;
    weir_tile t = {.nv = nv, .flags = WEIR_TILE_ADD, .lda = c->size.len, .ldb = dp, .ldc = dp};
    int64_t pos = weir_max64(past + u->from, k0), end = past + u->to;
    if (window > 0)
        end = weir_min64(end, k1 - 1 + window);
    while (pos < end) {
        const int64_t lo = weir_max64(k0, weir_attn_first_key(c->a, pos)), hi = weir_min64(k1, pos + 1);
        int64_t next = pos + 1;
        if (lo == k0 && hi == k1)
            next = window > 0 ? weir_max64(next, weir_min64(end, k0 + window)) : end;
        const int64_t row = (pos - past - u->from) * c->group;
        t.mr = (int)(hi - lo);
        t.k = (next - pos) * c->group;
        t.a = w + row * c->size.len + lo;
        t.b = x + row * dp + c0;
        t.c = dst + (lo - past) * dp + c0;
        c->kern->tile[WEIR_F32](&t);
        pos = next;
    }
}

static void all_columns(const unit *u, const float *w, const float *x, float *dst, int64_t k0, int64_t k1)
{
    const int64_t vecs = u->c->size.dp / WEIR_LANES, groups = weir_ceil_div(vecs, 3);
    for (int64_t g = 0; g < groups; g++) {
        const int64_t v0 = vecs * g / groups, v1 = vecs * (g + 1) / groups;
        for (int64_t k = k0; k < k1; k += BLOCK)
            chains(u, w, x, dst, k, weir_min64(k1, k + BLOCK), v0 * WEIR_LANES, (int)(v1 - v0));
    }
}

static void keys(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const unit *u = ctx;
    const int64_t past = u->seq->past, k0 = past + i * KEYS, k1 = weir_min64(past + u->to, k0 + KEYS);
    if (u->c->steps & STEP_SCORES)
        all_columns(u, u->g, u->q, u->dk, k0, k1);
    if (u->c->steps & STEP_MIX)
        all_columns(u, u->p, u->dz, u->dv, k0, k1);
}

/* --- a unit */

static void key_out(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const unit *u = ctx;
    const weir_attn *a = u->c->a;
    const int64_t to = ((u->seq->row0 + i) * a->kv_heads + u->kv) * a->d, from = i * u->c->size.dp;
    if (u->c->steps & STEP_SCORES)
        copy_row(u->c->kern, u->c->b->dk + to, u->dk + from, a->d);
    if (u->c->steps & STEP_MIX)
        copy_row(u->c->kern, u->c->b->dv + to, u->dv + from, a->d);
}

static void run_unit(unit *u, int threads)
{
    const back_ctx *c = u->c;
    const int64_t n = u->seq->n;
    if (n == 0)
        return;
    memset(u->dk, 0, (size_t)(n * c->size.dp) * sizeof(float));
    memset(u->dv, 0, (size_t)(n * c->size.dp) * sizeof(float));
    weir_parallel_for(threads, weir_ceil_div(u->keys, WEIR_PANEL), 1, turn_panel, u);
    for (u->from = 0; u->from < n; u->from += c->size.strip) {
        u->to = weir_min64(n, u->from + c->size.strip);
        weir_parallel_for(threads, weir_ceil_div(u->to - u->from, BLOCK) * c->group, 1, queries, u);
        weir_parallel_for(threads, weir_ceil_div(u->to, KEYS), 1, keys, u);
    }
    weir_parallel_for(n < KEYS ? 1 : threads, n, KEYS, key_out, u);
}

static void unit_task(void *ctx, int64_t i, int thread)
{
    unit u = unit_of(ctx, i, thread);
    run_unit(&u, 1);
}

static int64_t longest(const weir_attn *a)
{
    int64_t keys = 1;
    for (int64_t i = 0; i < a->n_seq; i++)
        keys = weir_max64(keys, a->seq[i].past + a->seq[i].n);
    return keys;
}

static void run_units(const weir_kern *k, int threads, const weir_attn_back *b, int steps, bool staged)
{
    const weir_attn *a = b->a;
    const int64_t keys = longest(a), units = a->n_seq * a->kv_heads, n = weir_max64(1, threads);
    back_ctx c = {.kern = k, .b = b, .a = a, .steps = steps, .staged = staged, .group = a->heads / a->kv_heads};
    const int64_t alone = units < 4 * n ? units / n * n : units;
    c.size = size_of(keys, a->d, c.group, STRIP_ROWS);
    weir_parallel_for(threads, alone, 1, unit_task, &c);
    c.size = size_of(keys, a->d, c.group, SHARED_STRIP * STRIP_ROWS);
    for (int64_t i = alone; i < units; i++) {
        unit u = unit_of(&c, i, 0);
        run_unit(&u, threads);
    }
}

void weir_attn_backward(const weir_kern *k, int threads, const weir_attn_back *b)
{
    run_units(k, threads, b, STEP_SCORES | STEP_MIX, false);
}

void weir_attn_mix_backward(const weir_kern *k, int threads, const weir_attn_back *b)
{
    run_units(k, threads, b, STEP_MIX, true);
}

void weir_attn_scores_backward(const weir_kern *k, int threads, const weir_attn_back *b)
{
    run_units(k, threads, b, STEP_SCORES, true);
}

/* --- the softmax alone: row by row, no products */

static void softmax_query(void *ctx, int64_t i, int thread)
{
    const back_ctx *c = ctx;
    const weir_attn *a = c->a;
    float *p = (float *)c->b->scratch + thread * (c->size.unit + c->size.own);
    int64_t s = 0, n = i;
    while (n >= a->seq[s].n)
        n -= a->seq[s++].n;
    const int64_t pos = a->seq[s].past + n, lo = weir_attn_first_key(a, pos), hi = pos + 1;
    for (int64_t h = 0; h < a->heads; h++) {
        const int64_t at = ((a->seq[s].row0 + n) * a->heads + h) * a->s;
        float *d = c->b->d_scores + at;
        c->kern->softmax_row(p, c->b->scores + at, lo, hi, 1.0f, 0.0f);
        if (d != c->b->d_pattern + at)
            memcpy(d + lo, c->b->d_pattern + at + lo, (size_t)(hi - lo) * sizeof *d);
        c->kern->softmax_back(d, p, lo, hi);
        memset(d, 0, (size_t)lo * sizeof *d);
        memset(d + hi, 0, (size_t)(a->s - hi) * sizeof *d);
    }
}

void weir_attn_softmax_backward(const weir_kern *k, int threads, const weir_attn_back *b)
{
    const weir_attn *a = b->a;
    back_ctx c = {.kern = k, .b = b, .a = a, .group = a->heads / a->kv_heads};
    int64_t rows = 0;
    for (int64_t i = 0; i < a->n_seq; i++)
        rows += a->seq[i].n;
    c.size = size_of(longest(a), a->d, c.group, STRIP_ROWS);
    weir_parallel_for(threads, rows, 1, softmax_query, &c);
}

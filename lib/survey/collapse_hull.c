/* Who leaves the hull of what it was made of. */
#include <math.h>
#include <string.h>

#include <weir/collapse.h>

#include "../base/mem.h"
#include "../base/parallel.h"
#include "collapse_draw.h"

struct weir_hull {
    int64_t L, C, H, K, D;
    int64_t n;              /* directions */
    double *wide, *narrow;  /* [n,C], [n,D] */
    weir_hull_layer *layer; /* [L] */
    /* of a pass, with room for so many rows */
    int64_t room;
    double *before, *after; /* [rows,n] of the stream; of the heads [rows,H,n] */
    double *value;          /* [rows,K,n] */
    float *v;               /* [rows,K,D] */
    double *most, *size;    /* [n], [D] of the sequence so far */
};

/* --- making */

void weir_hull_free(weir_hull *h)
{
    if (!h)
        return;
    void *const own[] = {h->wide, h->narrow, h->layer, h->before, h->after, h->value, h->v, h->most, h->size};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        weir_free(own[i]);
    weir_free(h);
}

static bool init(weir_hull *h, uint64_t seed)
{
    uint64_t state = seed;
    h->wide = weir_calloc((size_t)h->n, (size_t)h->C * sizeof *h->wide);
    h->narrow = weir_calloc((size_t)h->n, (size_t)h->D * sizeof *h->narrow);
    h->layer = weir_calloc((size_t)h->L, sizeof *h->layer);
    h->most = weir_calloc((size_t)h->n, sizeof *h->most);
    h->size = weir_calloc((size_t)h->D, sizeof *h->size);
    if (!h->wide || !h->narrow || !h->layer || !h->most || !h->size)
        return false;
    for (int64_t i = 0; i < h->n; i++) {
        weir_collapse_direction(&state, h->C, h->wide + i * h->C);
        weir_collapse_direction(&state, h->D, h->narrow + i * h->D);
    }
    for (int64_t l = 0; l < h->L; l++)
        h->layer[l].least = INFINITY;
    return true;
}

weir_status weir_hull_new(weir_hull **out, const weir_model *m, int64_t directions, uint64_t seed, weir_err *err)
{
    const weir_model_info *i = weir_model_info_of(m);
    *out = NULL;
    if (directions < 1 || directions > 1 << 20)
        return weir_fail(err, WEIR_E_ARG, "a hull along %lld directions", (long long)directions);
    weir_hull *h = weir_calloc(1, sizeof *h);
    if (h)
        *h = (weir_hull){.L = i->L, .C = i->C, .H = i->H, .K = i->K, .D = i->D, .n = directions};
    if (!h || !init(h, seed)) {
        weir_hull_free(h);
        return weir_nomem(err, "a hull");
    }
    *out = h;
    return WEIR_OK;
}

const weir_hull_layer *weir_hull_of(const weir_hull *h, int64_t layer)
{
    return &h->layer[layer];
}

/* --- along the directions */

typedef struct projecting {
    const float *x;          /* [points,width] */
    const double *direction; /* [n,width] */
    double *to;              /* [points,n] */
    int64_t width, n;
} projecting;

static void project_point(void *ctx, int64_t i, int thread)
{
    const projecting *p = ctx;
    (void)thread;
    for (int64_t k = 0; k < p->n; k++) {
        double sum = 0;
        for (int64_t c = 0; c < p->width; c++)
            sum += p->direction[k * p->width + c] * (double)p->x[i * p->width + c];
        p->to[i * p->n + k] = sum;
    }
}

static void project(const weir_hull *h, const weir_value *v, int64_t points, double *to)
{
    const bool wide = v->point->rank == 2;
    projecting p = {v->data, wide ? h->wide : h->narrow, to, wide ? h->C : h->D, h->n};
    weir_parallel_for(v->rows->threads, points, 0, project_point, &p);
}

/* --- the stream */

static int64_t end_of(const weir_rows *r, int64_t from)
{
    int64_t end = from + 1;
    while (end < r->n && r->seq[end] == r->seq[from])
        end++;
    return end;
}

static void count(weir_hull_count *to, int64_t beyond, int64_t pairs)
{
    to->points++;
    to->outside += beyond > 0;
    to->pairs += pairs;
    to->beyond += beyond;
}

/* Rows [from, end) behind a step against the same rows before it. */
static void compare(const weir_hull *h, const weir_rows *r, int64_t from, int64_t end, weir_hull_count *to)
{
    for (int64_t k = 0; k < h->n; k++) {
        h->most[k] = -INFINITY;
        for (int64_t t = from; t < end; t++)
            h->most[k] = fmax(h->most[k], h->before[t * h->n + k]);
    }
    for (int64_t t = from; t < end; t++) {
        int64_t beyond = 0;
        for (int64_t k = 0; k < h->n; k++)
            beyond += h->after[t * h->n + k] > h->most[k];
        if (r->keep[t])
            count(to, beyond, h->n);
    }
}

/* The stream behind a step, which is the stream before the next one. to NULL: before the first. */
static void step(weir_hull *h, const weir_value *v, weir_hull_count *to)
{
    const weir_rows *r = v->rows;
    project(h, v, r->n, h->after);
    for (int64_t from = 0, end; to && from < r->n; from = end) {
        end = end_of(r, from);
        compare(h, r, from, end, to);
    }
    double *was = h->before;
    h->before = h->after;
    h->after = was;
}

/* --- heads */

/* What fp32 may add to a mixture of n values: each weight, product and sum is rounded, and the weights sum to 1 but for
 * their own rounding. size: the largest magnitude of each component so far. */
static double slack(const weir_hull *h, int64_t direction, int64_t n)
{
    double sum = 0;
    for (int64_t d = 0; d < h->D; d++)
        sum += fabs(h->narrow[direction * h->D + d]) * h->size[d];
    return sum * (double)(3 * n + 32) * 0x1p-24;
}

static void take_value(weir_hull *h, int64_t t, int64_t kv)
{
    for (int64_t k = 0; k < h->n; k++)
        h->most[k] = fmax(h->most[k], h->value[(t * h->K + kv) * h->n + k]);
    for (int64_t d = 0; d < h->D; d++)
        h->size[d] = fmax(h->size[d], (double)fabsf(h->v[(t * h->K + kv) * h->D + d]));
}

static int64_t beyond_values(const weir_hull *h, const double *z, int64_t keys)
{
    int64_t n = 0;
    for (int64_t k = 0; k < h->n; k++)
        n += z[k] > h->most[k] && z[k] > h->most[k] + slack(h, k, keys);
    return n;
}

/* Each row's heads that read key-value head kv against the values so far. */
static void compare_heads(weir_hull *h, const weir_rows *r, int64_t from, int64_t end, int64_t kv, weir_hull_count *to)
{
    const int64_t group = h->H / h->K;
    for (int64_t k = 0; k < h->n; k++)
        h->most[k] = -INFINITY;
    memset(h->size, 0, (size_t)h->D * sizeof *h->size);
    for (int64_t t = from; t < end; t++) {
        take_value(h, t, kv);
        for (int64_t head = kv * group; head < (kv + 1) * group && r->keep[t]; head++)
            count(to, beyond_values(h, h->after + (t * h->H + head) * h->n, t - from + 1), h->n);
    }
}

static void mixtures(weir_hull *h, const weir_value *v, weir_hull_layer *l)
{
    const weir_rows *r = v->rows;
    project(h, v, r->n * h->H, h->after);
    for (int64_t from = 0, end; from < r->n; from = end) {
        end = end_of(r, from);
        for (int64_t kv = 0; kv < h->K; kv++)
            compare_heads(h, r, from, end, kv, &l->heads);
    }
}

/* The keys of a row stand at the positions up to its own. */
static void weights(const weir_value *v, weir_hull_layer *l)
{
    for (int64_t i = 0; i < v->rows->n * v->heads; i++) {
        const float *w = v->data + i * v->size;
        double sum = 0;
        for (int64_t s = 0; s <= v->rows->pos[i / v->heads]; s++) {
            sum += (double)w[s];
            l->least = fmin(l->least, (double)w[s]);
        }
        l->off = fmax(l->off, fabs(sum - 1));
    }
}

/* --- the hook */

static weir_want wants(void *self, const weir_point *p)
{
    (void)self;
    switch (p->site) {
    case WEIR_SITE_RESID_PRE:
    case WEIR_SITE_V:
    case WEIR_SITE_PATTERN:
    case WEIR_SITE_Z:
    case WEIR_SITE_RESID_MID:
    case WEIR_SITE_RESID_POST:
        return WEIR_READ;
    default:
        return WEIR_NONE;
    }
}

static bool grow(double **p, size_t n, size_t size)
{
    double *more = weir_realloc(*p, n, size * sizeof *more);
    *p = more ? more : *p;
    return more;
}

static weir_status on_begin(void *self, const weir_rows *rows, weir_err *err)
{
    weir_hull *h = self;
    if (rows->n <= h->room)
        return WEIR_OK;
    const size_t n = (size_t)rows->n, heads = n * (size_t)h->H, kv = n * (size_t)h->K, each = (size_t)h->n;
    float *v = weir_realloc(h->v, kv, (size_t)h->D * sizeof *v);
    h->v = v ? v : h->v;
    if (!v || !grow(&h->before, heads, each) || !grow(&h->after, heads, each) || !grow(&h->value, kv, each))
        return weir_nomem(err, "a hull");
    h->room = rows->n;
    return WEIR_OK;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    weir_hull *h = self;
    weir_hull_layer *l = &h->layer[v->point->layer];
    (void)err;
    switch (v->point->site) {
    case WEIR_SITE_RESID_PRE:
        step(h, v, NULL);
        break;
    case WEIR_SITE_V:
        memcpy(h->v, v->data, (size_t)(v->rows->n * v->width) * sizeof *h->v);
        project(h, v, v->rows->n * h->K, h->value);
        break;
    case WEIR_SITE_PATTERN:
        weights(v, l);
        break;
    case WEIR_SITE_Z:
        mixtures(h, v, l);
        break;
    case WEIR_SITE_RESID_MID:
        step(h, v, &l->attention);
        break;
    default:
        step(h, v, &l->mlp);
        break;
    }
    return WEIR_OK;
}

static const weir_hook_class listener = {.struct_size = sizeof(weir_hook_class),
                                         .abi = WEIR_HOOK_ABI,
                                         .name = "hull",
                                         .wants = wants,
                                         .on_begin = on_begin,
                                         .on_value = on_value};

weir_status weir_hull_attach(weir_hull *h, weir_run *run, weir_err *err)
{
    return weir_run_hook_object(run, &listener, h, err);
}

/* survey/keyvalue.c: where a layer's prediction comes from: residual, MLP, both or neither; and whether some memory
 * makes it (weir/keyvalue.h). Counts alone. */
#include <stdlib.h>

#include <weir/keyvalue.h>

#include "base/mem.h"

/* A memory that has this likeliest token. */
typedef struct promoting {
    int32_t token, unit;
} promoting;

typedef struct layer_of {
    weir_keyvalue_counts counts;
    promoting *by[2]; /* [size[i]] by token, then unit: of values, of their negatives */
    int64_t size[2];
} layer_of;

struct weir_keyvalue {
    layer_of *layer; /* [n] */
    int n;
    int64_t F, V;
};

/* --- making one */

weir_status weir_keyvalue_new(weir_keyvalue **out, int n_layers, int64_t F, int64_t V, weir_err *err)
{
    *out = NULL;
    if (n_layers < 1 || F < 1 || F > INT32_MAX || V < 1)
        return weir_fail(err, WEIR_E_ARG, "%d layers of %lld memories: there must be some", n_layers, (long long)F);
    weir_keyvalue *kv = weir_calloc(1, sizeof *kv);
    if (!kv)
        return weir_nomem(err, "the counts of memories");
    *kv = (weir_keyvalue){.n = n_layers, .F = F, .V = V, .layer = weir_calloc((size_t)n_layers, sizeof *kv->layer)};
    if (!kv->layer) {
        weir_free(kv);
        return weir_nomem(err, "the counts of memories");
    }
    *out = kv;
    return WEIR_OK;
}

void weir_keyvalue_free(weir_keyvalue *kv)
{
    if (!kv)
        return;
    for (int i = 0; i < kv->n; i++)
        for (int side = 0; side < 2; side++)
            weir_free(kv->layer[i].by[side]);
    weir_free(kv->layer);
    weir_free(kv);
}

static weir_status check_layer(const weir_keyvalue *kv, int layer, weir_err *err)
{
    if (layer < 0 || layer >= kv->n)
        return weir_fail(err, WEIR_E_ARG, "layer %d: there are %d, from 0", layer, kv->n);
    return WEIR_OK;
}

static int by_token(const void *a, const void *b)
{
    const promoting *x = a, *y = b;
    if (x->token != y->token)
        return x->token < y->token ? -1 : 1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

weir_status weir_keyvalue_memories(weir_keyvalue *kv, int layer, const int32_t *top, const int32_t *bottom,
                                   weir_err *err)
{
    const int32_t *const from[] = {top, bottom};
    WEIR_TRY(check_layer(kv, layer, err));
    layer_of *l = &kv->layer[layer];
    for (int side = 0; side < 2; side++) {
        promoting *by = weir_calloc((size_t)kv->F, sizeof *by);
        if (!by)
            return weir_nomem(err, "the memories of a layer");
        weir_free(l->by[side]);
        l->by[side] = by;
        l->size[side] = 0;
        for (int64_t i = 0; i < kv->F; i++)
            if (from[side][i] >= 0)
                by[l->size[side]++] = (promoting){from[side][i], (int32_t)i};
        qsort(by, (size_t)l->size[side], sizeof *by, by_token);
    }
    return WEIR_OK;
}

/* --- feeding */

/* The first memory with this token, or a later one. */
static const promoting *find(const layer_of *l, int side, int32_t token)
{
    int64_t lo = 0, hi = l->size[side];
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (l->by[side][mid].token < token)
            lo = mid + 1;
        else
            hi = mid;
    }
    return l->by[side] + lo;
}

/* Does a memory of this side act for the token? Values where the coefficient is above 0, negatives below. */
static bool acts(const layer_of *l, int side, int32_t token, const float *m)
{
    const promoting *end = l->by[side] + l->size[side];
    for (const promoting *p = find(l, side, token); p < end && p->token == token; p++)
        if (side ? m[p->unit] < 0 : m[p->unit] > 0)
            return true;
    return false;
}

static void count_memories(layer_of *l, int64_t F, int32_t token, const float *m)
{
    weir_keyvalue_counts *c = &l->counts;
    const promoting *p = find(l, 0, token);
    c->unlike_values += p == l->by[0] + l->size[0] || p->token != token;
    c->unlike_acting += !acts(l, 0, token, m) && !acts(l, 1, token, m);
    for (int64_t i = 0; i < F; i++) {
        c->positive += m[i] > 0;
        c->negative += m[i] < 0;
    }
}

static weir_status check_rows(const weir_keyvalue *kv, int64_t n, const int32_t *const *of, int n_of, weir_err *err)
{
    for (int j = 0; j < n_of; j++)
        for (int64_t i = 0; i < n; i++)
            if (of[j][i] < -1 || of[j][i] >= kv->V)
                return weir_fail(err, WEIR_E_ARG, "token %d is outside the vocabulary, 0 to %lld", of[j][i],
                                 (long long)(kv->V - 1));
    return WEIR_OK;
}

weir_status weir_keyvalue_add(weir_keyvalue *kv, int layer, const weir_keyvalue_rows *rows, weir_err *err)
{
    const int32_t *const of[] = {rows->residual, rows->mlp, rows->layer};
    WEIR_TRY(check_layer(kv, layer, err));
    WEIR_TRY(check_rows(kv, rows->n, of, 3, err));
    layer_of *l = &kv->layer[layer];
    weir_keyvalue_counts *c = &l->counts;
    if (!l->by[0] || !l->by[1])
        return weir_fail(err, WEIR_E_ARG, "layer %d: its memories come first", layer);
    for (int64_t i = 0; i < rows->n; i++) {
        const int32_t r = rows->residual[i], y = rows->mlp[i], o = rows->layer[i];
        if (r < 0 || y < 0 || o < 0) {
            c->lost++;
            continue;
        }
        c->rows++;
        c->residual += o == r && o != y;
        c->mlp += o == y && o != r;
        c->agreement += o == r && o == y;
        c->composition += o != r && o != y;
        c->apart += o != r && r == y;
        count_memories(l, kv->F, y, rows->coefficient + i * kv->F);
    }
    return WEIR_OK;
}

weir_status weir_keyvalue_add_final(weir_keyvalue *kv, int layer, int64_t n, const int32_t *residual,
                                    const int32_t *layer_top, const int32_t *final, weir_err *err)
{
    const int32_t *const of[] = {residual, layer_top, final};
    WEIR_TRY(check_layer(kv, layer, err));
    WEIR_TRY(check_rows(kv, n, of, 3, err));
    weir_keyvalue_counts *c = &kv->layer[layer].counts;
    for (int64_t i = 0; i < n; i++) {
        if (residual[i] < 0 || layer_top[i] < 0 || final[i] < 0)
            continue;
        c->compared++;
        c->residual_final += residual[i] == final[i];
        c->layer_final += layer_top[i] == final[i];
    }
    return WEIR_OK;
}

weir_keyvalue_counts weir_keyvalue_counts_of(const weir_keyvalue *kv, int layer)
{
    return kv->layer[layer].counts;
}

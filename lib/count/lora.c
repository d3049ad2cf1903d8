/* Parameters of LoRA adapters: for a matrix of in x out at rank r, r x in and out x r. */
#include <string.h>

#include "impl.h"

typedef enum target { Q, K, V, O, GATE, UP, DOWN, TARGETS } target;
static const char *const WORD[TARGETS] = {"q", "k", "v", "o", "gate", "up", "down"};

typedef struct sum {
    int64_t sides; /* of in + out, over all matrices */
    int64_t matrices;
    bool k_too; /* keys have adapters besides */
    bool ok;
} sum;

static void put(sum *s, int64_t times, int64_t in, int64_t out)
{
    int64_t both, all;
    s->ok = s->ok && weir_add64(in, out, &both) && weir_mul64(both, times, &all) &&
            weir_add64(s->sides, all, &s->sides) && weir_add64(s->matrices, times, &s->matrices);
}

static int64_t product(sum *s, int64_t a, int64_t b)
{
    int64_t v = 0;
    s->ok = s->ok && weir_mul64(a, b, &v);
    return v;
}

static void attention(sum *s, target t, const weir_attention_shape *a, int64_t d)
{
    const int64_t q = product(s, a->heads, a->qk), v = product(s, a->heads, a->v);
    if (t == O)
        put(s, 1, v, d);
    else if (t == Q && a->q_rank) {
        put(s, 1, d, a->q_rank);
        put(s, 1, a->q_rank, q);
    } else if (t == Q)
        put(s, 1, d, q);
    else if (a->kv_rank && !(t == V && s->k_too)) { /* one pair of matrices makes keys and values: once for both */
        put(s, 1, d, a->kv_rank + a->rope);
        put(s, 1, a->kv_rank, product(s, a->heads, a->qk - a->rope + a->v));
    } else if (!a->kv_rank)
        put(s, 1, d, product(s, a->kv_heads, t == K ? a->qk : a->v));
}

static void mlp(sum *s, target t, int64_t times, int64_t width, bool gated, int64_t d)
{
    if (!times || !width || (t == GATE && !gated))
        return;
    if (t == DOWN)
        put(s, times, width, d);
    else
        put(s, times, d, width);
}

static void layer(sum *s, target t, const weir_layer_shape *l, int64_t d)
{
    if (t <= O) {
        for (int i = 0; l->attn.heads && i < 1 + l->cross; i++)
            attention(s, t, &l->attn, d);
        return;
    }
    mlp(s, t, 1, l->mlp.width, l->mlp.gated, d);
    mlp(s, t, l->moe.experts, l->moe.width, l->moe.gated, d);
    mlp(s, t, l->moe.experts ? 1 : 0, l->moe.shared, l->moe.gated, d);
}

/* Which words `targets` has, as bits. */
static weir_status read_targets(unsigned *set, const char *targets, weir_err *err)
{
    *set = 0;
    for (const char *p = targets;; p++) {
        const size_t n = strcspn(p, ",");
        bool known = n == 3 && !memcmp(p, "all", 3);
        if (known)
            *set |= (1u << TARGETS) - 1;
        for (int t = 0; t < TARGETS && !known; t++)
            if (n == strlen(WORD[t]) && !memcmp(p, WORD[t], n)) {
                *set |= 1u << t;
                known = true;
            }
        if (!known)
            return weir_fail(err, WEIR_E_ARG, "\"%.*s\" is none of q, k, v, o, gate, up, down, all",
                             n > 32 ? 32 : (int)n, p);
        p += n;
        if (!*p)
            return WEIR_OK;
    }
}

weir_status weir_bill_lora(int64_t *params, int64_t *matrices, const weir_blueprint *b, const char *targets,
                           int64_t rank, weir_err *err)
{
    unsigned set;
    sum all = {.ok = true};
    const bool every = !strcmp(targets, "all");
    *params = *matrices = 0;
    WEIR_TRY(read_targets(&set, targets, err));
    for (int t = 0; t < TARGETS; t++) {
        sum s = {.k_too = set & 1u << K, .ok = true};
        if (!(set & 1u << t))
            continue;
        for (int64_t i = 0; i < b->n_layers; i++)
            layer(&s, (target)t, &b->layer[i], b->width);
        if (!s.matrices && s.ok && !every && !(t == V && set & 1u << K))
            return weir_fail(err, WEIR_E_ARG, "%s has no matrix \"%s\"", b->name, WORD[t]);
        all.ok = all.ok && s.ok && weir_add64(all.sides, s.sides, &all.sides) &&
                 weir_add64(all.matrices, s.matrices, &all.matrices);
    }
    if (!all.ok || rank < 1 || !weir_mul64(all.sides, rank, params))
        return weir_fail(err, WEIR_E_ARG, "adapters of rank %lld are more than can be counted", (long long)rank);
    *matrices = all.matrices;
    return WEIR_OK;
}

/* Rules of thumb beside the exact numbers, and where an MLP's width may come from. */
#include <stdlib.h>

#include "count.h"

/* --- 4 d^2 + 8 d^2 = 12 d^2 */

double weir_count_error(const weir_count_rule *r)
{
    return r->exact == 0 ? 0 : (r->rule - r->exact) / r->exact;
}

int weir_count_rules(const weir_counted *m, weir_count_rule rule[WEIR_COUNT_RULES])
{
    const weir_bill *b = m->bill;
    const double d = (double)m->b->width, layers = (double)b->n_layers, table = d * (double)m->b->vocab;
    const double attn = b->layers_attn ? (double)b->attn.params / (double)b->layers_attn : 0;
    const double mlp = b->layers_mlp ? (double)b->mlp.params / (double)b->layers_mlp : 0;
    double whole = 0;
    int n = 0;
    for (int64_t i = 0; i < b->n_layers; i++)
        whole += (double)b->layer[i].total.params;
    if (b->layers_attn)
        rule[n++] = (weir_count_rule){"attention_4d2", "4d^2: attention of a layer", 4 * d * d, attn};
    if (b->layers_mlp)
        rule[n++] = (weir_count_rule){"mlp_8d2", "8d^2: MLP of a layer", 8 * d * d, mlp};
    rule[n++] = (weir_count_rule){"layer_12d2", "12d^2: a layer", 12 * d * d, whole / layers};
    rule[n++] = (weir_count_rule){"model_12Ld2_Vd", "12Ld^2 + Vd: the model", 12 * layers * d * d + table,
                                  (double)b->total.params};
    if (m->b->head == WEIR_HEAD_OWN)
        rule[n++] = (weir_count_rule){"model_12Ld2_2Vd", "12Ld^2 + 2Vd: the model, with its own head",
                                      12 * layers * d * d + 2 * table, (double)b->total.params};
    return n;
}

/* --- round-up(multiplier x int(8d/3), multiple), every step cut to an integer */

static int64_t rounded_up(int64_t d, int64_t tenths, int64_t multiple)
{
    const int64_t third = 8 * d / 3, wide = third / 10 * tenths + third % 10 * tenths / 10;
    return (wide + multiple - 1) / multiple * multiple;
}

typedef struct candidate {
    int64_t tenths, multiple;
} candidate;

/* How far above the unrounded width; -1: it does not give this width. */
static int64_t distance(const weir_count_dff *f, candidate c)
{
    return rounded_up(f->d, c.tenths, c.multiple) == f->width ? f->width - rounded_up(f->d, c.tenths, 1) : -1;
}

/* The pairs that Llama 1 to 3 were published with. Where several give the width: the least rounding, then the largest
 * multiple. */
static bool published(weir_count_dff *f, candidate *best)
{
    static const candidate LLAMA[] = {{13, 4096}, {12, 4096}, {13, 1024}, {10, 256}, {15, 256}};
    int64_t least = -1;
    for (size_t i = 0; i < sizeof LLAMA / sizeof *LLAMA; i++) {
        const int64_t off = distance(f, LLAMA[i]);
        if (off >= 0 && (least < 0 || off < least)) {
            least = off;
            *best = LLAMA[i];
        }
    }
    return least >= 0;
}

/* Else the simplest: the smallest multiplier in tenths, with the largest power of two as multiple that gives it. */
static bool search(const weir_count_dff *f, candidate *best)
{
    for (int64_t tenths = 10; tenths <= 30; tenths++)
        for (int64_t multiple = 4096; multiple >= 64; multiple /= 2)
            if (distance(f, (candidate){tenths, multiple}) >= 0) {
                *best = (candidate){tenths, multiple};
                return true;
            }
    return false;
}

bool weir_count_dff_of(const weir_counted *m, weir_count_dff *f)
{
    candidate best = {10, 1};
    *f = (weir_count_dff){.d = m->b->width};
    for (int k = 0; k < m->n_kinds && !f->width; k++) {
        const weir_layer_shape *s = m->kind[k].shape;
        f->width = s->mlp.width ? s->mlp.width : s->moe.width;
        f->gated = s->mlp.width ? s->mlp.gated : s->moe.gated;
    }
    if (!f->width)
        return false;
    f->per_d = (double)f->width / (double)f->d;
    f->in_d2 = (f->gated ? 3 : 2) * f->per_d;
    f->matched = f->gated ? 8 * f->d / 3 : 4 * f->d;
    if (f->gated) {
        f->published = published(f, &best);
        f->found = f->published || search(f, &best);
    } else {
        f->found = f->width == 4 * f->d;
        best.tenths = 15; /* 4d is 1.5 x 8d/3 */
    }
    f->multiplier = (double)best.tenths / 10;
    f->multiple = best.multiple;
    return true;
}

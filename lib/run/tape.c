/* What a pass keeps for the way back (lib/grad), in the memory in which it is made: a taped pass copies nothing, its
 * buffers are other ones in each layer.
 *
 * Of every layer the stream before it is kept. The rest can be made again from that; it is kept of as many layers as
 * the bound has room for, the last ones, since the way back begins there. Layers in which hooks write are always kept:
 * making them again would need the hooks. */
#include <string.h>

#include "state.h"

weir_status weir_tape_init(weir_run *r, weir_err *err)
{
    weir_tape *t = &r->tape;
    if (!t->on)
        return WEIR_OK;
    t->layer = weir_calloc((size_t)r->spec->L + 1, sizeof *t->layer);
    t->silence = weir_calloc((size_t)r->map.all, 1);
    return t->layer && t->silence ? WEIR_OK : weir_nomem(err, "the tape of a run");
}

void weir_tape_free(weir_run *r)
{
    weir_free(r->tape.layer);
    weir_free(r->tape.silence);
}

/* --- the plan */

static const weir_site norms[] = {WEIR_SITE_LN1_SCALE,      WEIR_SITE_LN1_POST_SCALE, WEIR_SITE_LN2_SCALE,
                                  WEIR_SITE_LN2_POST_SCALE, WEIR_SITE_Q_NORM_SCALE,   WEIR_SITE_K_NORM_SCALE,
                                  WEIR_SITE_LNF_SCALE};
enum { NORMS = sizeof norms / sizeof *norms };

int weir_tape_norm(weir_site site)
{
    for (int i = 0; i < NORMS - 1; i++)
        if (norms[i] == site)
            return i;
    return 0; /* ln_final has a layer of its own */
}

static bool written(const weir_run *r, int64_t layer, weir_site site)
{
    return weir_run_want(r, layer, site) == WEIR_WRITE;
}

static bool layer_written(const weir_run *r, int64_t layer)
{
    for (int site = WEIR_SITE_RESID_PRE; site <= WEIR_SITE_RESID_POST; site++)
        if (written(r, layer, (weir_site)site))
            return true;
    return false;
}

/* What is made again if need be. */
static void layout_layer(const weir_run *r, weir_carver *c, weir_tape_layer *y)
{
    const weir_spec *s = r->spec;
    const int64_t t = r->max_rows;
    y->q = weir_carve_floats(c, t, s->H * s->D);
    y->k = weir_carve_floats(c, t, s->K * s->D);
    y->v = weir_carve_floats(c, t, s->K * s->D);
    y->q_in = s->qk_norms ? weir_carve_floats(c, t, s->H * s->D) : NULL;
    y->k_in = s->qk_norms ? weir_carve_floats(c, t, s->K * s->D) : NULL;
    y->mid = s->parallel ? NULL : weir_carve_floats(c, t, s->C);
    y->pre = weir_carve_floats(c, t, s->F);
    y->up = s->gated ? weir_carve_floats(c, t, s->F) : NULL;
    y->attn = s->post_norms ? weir_carve_floats(c, t, s->C) : NULL;
    y->mlp = s->post_norms ? weir_carve_floats(c, t, s->C) : NULL;
}

/* The stream before the layer, and what hooks write that could not be told from the rest. */
static void layout_always(const weir_run *r, weir_carver *c, int64_t layer, weir_tape_layer *y)
{
    const bool last = layer == r->spec->L;
    *y = (weir_tape_layer){.own = layer > 0 ? weir_carve_floats(c, r->max_rows, r->spec->C) : r->b.stream};
    for (int i = 0; i < NORMS; i++)
        if ((norms[i] == WEIR_SITE_LNF_SCALE) == last && written(r, layer, norms[i]))
            y->scale[weir_tape_norm(norms[i])] = weir_carve_floats(c, r->max_rows, weir_norm_heads(r->spec, norms[i]));
    if (last || (!written(r, layer, WEIR_SITE_SCORES) && !written(r, layer, WEIR_SITE_PATTERN)))
        return;
    y->scores = weir_carve_floats(c, r->max_rows * r->spec->H, r->max_len);
    y->pattern = weir_carve_floats(c, r->max_rows * r->spec->H, r->max_len);
}

/* Layers from this one on are kept. used: bytes that the tape takes in any case. */
static int64_t first_kept(const weir_run *r, int64_t used)
{
    weir_carver one = {0};
    weir_tape_layer unused = {0};
    int64_t first = r->spec->L;
    if (!r->tape.bound)
        return 0;
    layout_layer(r, &one, &unused);
    used += one.at; /* for the layers that are not */
    while (first > 0 && one.at <= r->tape.bound - used) {
        used += one.at;
        first--;
    }
    return first;
}

void weir_tape_layout(weir_run *r, weir_carver *c)
{
    const weir_spec *s = r->spec;
    weir_tape *t = &r->tape;
    const int64_t begin = c->at;
    weir_tape_layer shared = {0};
    for (int64_t l = 0; l <= s->L; l++)
        layout_always(r, c, l, &t->layer[l]);
    t->capped =
        s->logit_softcap != 0 && written(r, -1, WEIR_SITE_LOGITS) ? weir_carve_floats(c, r->max_rows, s->V) : NULL;
    const int64_t first = first_kept(r, c->at - begin);
    if (first > 0)
        layout_layer(r, c, &shared);
    for (int64_t l = 0; l < s->L; l++) {
        weir_tape_layer *y = &t->layer[l];
        y->kept = l >= first || layer_written(r, l);
        if (y->kept) {
            layout_layer(r, c, y);
            continue;
        }
        y->q = shared.q, y->k = shared.k, y->v = shared.v;
        y->q_in = shared.q_in, y->k_in = shared.k_in;
        y->mid = shared.mid;
        y->pre = shared.pre, y->up = shared.up;
        y->attn = shared.attn, y->mlp = shared.mlp;
    }
    t->bytes = c->at - begin;
}

/* --- in a pass */

void weir_tape_begin(weir_run *r)
{
    r->b.x = r->b.stream;
    r->tape.whole = false;
    for (int64_t l = 0; r->tape.on && l <= r->spec->L; l++)
        r->tape.layer[l].x = l == weir_run_first(r) ? r->b.stream : r->tape.layer[l].own;
}

void weir_tape_enter(weir_run *r, int64_t layer)
{
    if (!r->tape.on)
        return;
    const weir_tape_layer *y = &r->tape.layer[layer];
    weir_buffers *b = &r->b;
    b->x = y->x;
    b->q = y->q, b->k = y->k, b->v = y->v;
    b->q_in = y->q_in, b->k_in = y->k_in;
    b->pre = y->pre, b->up = y->up;
    b->scores = y->scores ? y->scores : b->maps;
    b->pattern = y->scores ? y->pattern : b->maps;
}

float *weir_tape_sum(const weir_run *r, int64_t layer, weir_site site)
{
    if (!r->tape.on)
        return r->b.x;
    return site == WEIR_SITE_RESID_MID ? r->tape.layer[layer].mid : r->tape.layer[layer + 1].x;
}

void weir_tape_scale(const weir_run *r, int64_t layer, weir_site site, const float *scale, int64_t n)
{
    if (!r->tape.on)
        return;
    float *to = r->tape.layer[layer < 0 ? r->spec->L : layer].scale[weir_tape_norm(site)];
    if (to)
        memcpy(to, scale, (size_t)n * sizeof *to);
}

weir_status weir_run_again(weir_run *r, int64_t layer, weir_err *err)
{
    if (r->tape.layer[layer].kept)
        return WEIR_OK;
    uint8_t *want = r->hooks.want;
    const int64_t last = r->last;
    r->err = err;
    r->normed = false;
    r->hooks.want = r->tape.silence;
    /* to the last value that is kept: the step behind it ends the block */
    r->last = weir_run_order(r, layer, r->spec->post_norms ? WEIR_SITE_MLP_POST : WEIR_SITE_MLP_PRE_LINEAR);
    const weir_status st = weir_run_block(r, layer);
    r->hooks.want = want;
    r->last = last;
    return st == WEIR_STOP ? WEIR_OK : st;
}

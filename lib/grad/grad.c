/* A gradient's life: making it, wishes, memory. */
#include "../base/mem.h"
#include "impl.h"

enum { TILE_BYTES = 24 << 20, MIN_TILE = 24 };

void weir_grad_options_init(weir_grad_options *o)
{
    *o = (weir_grad_options){0};
}

/* Bytes of the largest turned weights that are needed at once. */
static int64_t largest(const weir_model *m)
{
    int64_t most = 0;
    for (int64_t l = 0; l < weir_model_spec(m)->L; l++)
        most = most > weir_model_turned_bytes(m, l) ? most : weir_model_turned_bytes(m, l);
    for (int64_t i = 0; i < weir_model_head_parts(m); i++)
        most = most > weir_model_head_turned_bytes(m, i) ? most : weir_model_head_turned_bytes(m, i);
    return most;
}

static weir_status init(weir_grad *g, weir_run *run, const weir_grad_options *o, weir_err *err)
{
    g->run = run;
    g->model = run->model;
    g->spec = run->spec;
    g->kern = run->kern;
    g->o = *o;
    g->largest = largest(g->model);
    g->to = weir_calloc((size_t)run->map.n, sizeof *g->to);
    g->weights = weir_calloc((size_t)(g->spec->L + weir_model_head_parts(g->model)), sizeof *g->weights);
    if (!g->to || !g->weights)
        return weir_nomem(err, "a gradient");
    if (o->memory) /* the tape takes the least that it can where the weights leave nothing */
        run->tape.bound = o->memory > g->largest ? o->memory - g->largest : 1;
    return weir_grad_turn_edits(g, err);
}

weir_status weir_grad_new(weir_grad **out, weir_run *run, const weir_grad_options *o, weir_err *err)
{
    weir_grad_options defaults;
    weir_grad_options_init(&defaults);
    o = o ? o : &defaults;
    *out = NULL;
    if (!run->tape.on)
        return weir_fail(err, WEIR_E_ARG, "the run keeps nothing for a way back: set `backward` in weir_run_options");
    if (run->prepared)
        return weir_fail(err, WEIR_E_ARG, "the run is prepared already: weir_grad_new comes before its first pass");
    if (o->memory < 0)
        return weir_fail(err, WEIR_E_ARG, "memory is %lld: it cannot be negative", (long long)o->memory);
    weir_grad *g = weir_calloc(1, sizeof *g);
    if (!g)
        return weir_nomem(err, "a gradient");
    const weir_status st = init(g, run, o, err);
    if (st) {
        weir_grad_free(g);
        return st;
    }
    *out = g;
    return WEIR_OK;
}

void weir_grad_free(weir_grad *g)
{
    if (!g)
        return;
    weir_grad_weights_free(g);
    weir_free(g->to);
    weir_free(g->row);
    weir_free(g->order);
    weir_free(g->loss);
    weir_free(g->value);
    weir_free_aligned(g->arena);
    weir_free(g);
}

int64_t weir_grad_point_index(const weir_grad *g, const weir_point *p)
{
    const weir_point_map *map = &g->run->map;
    return p >= map->point && p < map->point + map->n ? p - map->point : -1;
}

weir_status weir_grad_to(weir_grad *g, const weir_point *p, float *dst, weir_err *err)
{
    const int64_t i = p ? weir_grad_point_index(g, p) : -1;
    if (i < 0)
        return weir_fail(err, WEIR_E_ARG, "gradients at %s: that is no point of the forward pass of this model",
                         p ? p->name : "no point");
    g->to[i] = dst;
    return WEIR_OK;
}

/* --- memory */

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void layout_always(weir_grad *g, weir_carver *c)
{
    const weir_run *r = g->run;
    const weir_spec *s = g->spec;
    weir_grad_buffers *b = &g->b;
    const int64_t t = r->max_rows;
    int64_t rank = 0, widest = most(most(s->C, s->F), s->H * s->D);
    for (int i = 0; i < r->n_edits; i++)
        rank = most(rank, weir_edit_rank(r->edit[i]));
    b->dx = weir_carve_floats(c, t, s->C);
    b->sum = s->parallel ? weir_carve_floats(c, t, s->C) : NULL;
    b->dh = weir_carve_floats(c, t, s->C);
    b->dy = weir_carve_floats(c, t, s->C);
    b->part = weir_carve_floats(c, t, s->C);
    b->dscale = weir_carve_floats(c, t, s->qk_norms ? s->H : 1);
    b->s = rank ? weir_carve_floats(c, t, rank) : NULL;
    b->d = rank ? weir_carve_floats(c, t, widest) : NULL;
    b->whole = g->whole ? weir_carve_floats(c, t, s->V) : NULL;
    const int64_t parts = weir_model_head_parts(g->model);
    widest = most(widest, s->V / (parts > 1 ? parts - 1 : 1)); /* all parts but the last are alike */
    b->gemm = weir_carve(c, (int64_t)weir_gemm_scratch(t, most(widest, rank), r->threads), 1, 1);
}

static void layout_attention(weir_grad *g, weir_carver *c)
{
    const weir_run *r = g->run;
    const weir_spec *s = g->spec;
    weir_grad_buffers *b = &g->b;
    const int64_t t = r->max_rows;
    b->dz = weir_carve_floats(c, t, s->H * s->D);
    b->dq = weir_carve_floats(c, t, s->H * s->D);
    b->dk = weir_carve_floats(c, t, s->K * s->D);
    b->dv = weir_carve_floats(c, t, s->K * s->D);
    b->wide = g->wide ? weir_carve_floats(c, t * s->H, s->C) : NULL;
    b->scores = g->maps ? weir_carve_floats(c, t * s->H, r->max_len) : NULL;
    b->pattern = g->maps ? weir_carve_floats(c, t * s->H, r->max_len) : NULL;
    b->maps = g->maps ? weir_carve_floats(c, t * s->H, r->max_len) : NULL;
    b->attn = weir_carve(c, (int64_t)weir_attn_back_scratch(r->max_len, s->D, s->H / s->K, r->threads), 1, 1);
}

static void layout_mlp(weir_grad *g, weir_carver *c)
{
    g->b.dpost = weir_carve_floats(c, g->run->max_rows, g->spec->F);
    g->b.dup = g->spec->gated ? weir_carve_floats(c, g->run->max_rows, g->spec->F) : NULL;
}

static void layout_loss(weir_grad *g, weir_carver *c)
{
    const int64_t v = g->spec->V, fit = TILE_BYTES / ((int64_t)sizeof(float) * v);
    g->tile = fit > MIN_TILE ? fit : MIN_TILE;
    if (g->tile / WEIR_GRAD_TILES > g->run->max_rows)
        g->tile = g->run->max_rows * WEIR_GRAD_TILES;
    g->b.logits = weir_carve_floats(c, g->tile, v);
    g->b.h = weir_carve_floats(c, g->run->max_rows, g->spec->C);
}

/* Attention, MLP and loss are never alive together and share their memory, as in a run. */
static int64_t layout(weir_grad *g, char *base)
{
    weir_carver c = {.base = base};
    layout_always(g, &c);
    const int64_t shared = c.at;
    layout_attention(g, &c);
    c.at = shared;
    layout_mlp(g, &c);
    c.at = shared;
    layout_loss(g, &c);
    return c.overflow ? -1 : c.peak;
}

/* Is a site looked at in any layer? */
static bool looked_at(const weir_grad *g, weir_site site)
{
    for (int64_t l = 0; l < (weir_site_in_block(site) ? g->spec->L : 1); l++)
        if (weir_grad_looks(g, l, site))
            return true;
    return false;
}

weir_status weir_grad_plan(weir_grad *g)
{
    const bool maps = looked_at(g, WEIR_SITE_SCORES) || looked_at(g, WEIR_SITE_PATTERN);
    const bool whole = looked_at(g, WEIR_SITE_UNEMBED_OUT) || looked_at(g, WEIR_SITE_LOGITS);
    const bool wide = looked_at(g, WEIR_SITE_RESULT);
    if (g->arena && (g->maps || !maps) && (g->whole || !whole) && (g->wide || !wide))
        return WEIR_OK;
    if (g->o.memory && g->run->tape.bytes > g->o.memory - g->largest)
        return weir_fail(
            g->err, WEIR_E_NOMEM,
            "the way back needs %lld bytes for what it keeps of each layer and %lld for the turned weights "
            "of one, but the bound is %lld: fewer rows need less",
            (long long)g->run->tape.bytes, (long long)g->largest, (long long)g->o.memory);
    weir_free_aligned(g->arena);
    g->arena = NULL;
    g->maps |= maps;
    g->whole |= whole;
    g->wide |= wide;
    const int64_t bytes = layout(g, NULL);
    g->arena = bytes < 0 ? NULL : weir_alloc_aligned((size_t)bytes);
    if (!g->arena)
        return weir_fail(g->err, WEIR_E_NOMEM,
                         "out of memory: the way back needs %lld bytes for its rows: lower max_rows", (long long)bytes);
    layout(g, g->arena);
    return WEIR_OK;
}

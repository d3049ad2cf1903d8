/* The walk back. */
#include <string.h>

#include "impl.h"

/* --- where it begins and ends */

static int64_t order_of(const weir_grad *g, const weir_point *p)
{
    return weir_run_order(g->run, p->layer, p->site);
}

/* Does the last pass go through the point? The stream that it began with stands at two points: before its first block
 * and behind the one before. */
static bool reaches(const weir_grad *g, const weir_point *p)
{
    const weir_run *r = g->run;
    if (r->from == WEIR_EMBEDDING)
        return true;
    return order_of(g, p) >= (r->from > 0 ? weir_run_order(r, r->from - 1, WEIR_SITE_RESID_POST)
                                          : weir_run_order(r, 0, WEIR_SITE_RESID_PRE));
}

static weir_status check_seeds(const weir_grad *g)
{
    for (int64_t i = 0; i < g->n_seed; i++) {
        const weir_grad_seed *s = &g->seed[i];
        if (!s->point || weir_grad_point_index(g, s->point) < 0)
            return weir_fail(g->err, WEIR_E_ARG,
                             "seed %lld is about %s: that is no point of the forward pass of this model", (long long)i,
                             s->point ? s->point->name : "no point");
        if (!s->d)
            return weir_fail(g->err, WEIR_E_ARG, "seed %lld, about %s, has no values", (long long)i, s->point->name);
        if (!reaches(g, s->point))
            return weir_fail(g->err, WEIR_E_ARG, "seed %lld is about %s: the last pass began behind it", (long long)i,
                             s->point->name);
    }
    return WEIR_OK;
}

/* Sets g->earliest, INT64_MAX if nobody wants a gradient. */
static weir_status find_earliest(weir_grad *g)
{
    const weir_point_map *map = &g->run->map;
    g->earliest = INT64_MAX;
    for (int64_t i = 0; i < map->n; i++) {
        const weir_point *p = &map->point[i];
        const bool hook = g->run->hooks.want[map->n + i] != WEIR_NONE;
        if (!g->to[i] && !hook)
            continue;
        if (reaches(g, p))
            g->earliest = order_of(g, p) < g->earliest ? order_of(g, p) : g->earliest;
        else if (g->to[i])
            return weir_fail(g->err, WEIR_E_ARG, "gradients at %s: the last pass began behind it", p->name);
    }
    return WEIR_OK;
}

/* What is wanted behind the last place where something is sown has no gradient. */
static void clear_behind(const weir_grad *g)
{
    const weir_point_map *map = &g->run->map;
    for (int64_t i = 0; i < map->n; i++) {
        const weir_point *p = &map->point[i];
        if (!g->to[i] || order_of(g, p) <= g->last)
            continue;
        const int64_t width = p->keyed ? p->heads * g->run->longest : p->width;
        memset(g->to[i], 0, (size_t)(weir_grad_rows(g) * width) * sizeof **g->to);
    }
}

/* --- the walk */

/* b.dx = the gradient of the stream behind the blocks. */
static weir_status final(weir_grad *g, const weir_loss_term *term, int64_t n)
{
    const weir_spec *s = g->spec;
    weir_grad_norm_at norm = {.at = {.layer = -1, .scale = WEIR_SITE_LNF_SCALE},
                              .x = g->run->tape.layer[s->L].x,
                              .dy = g->b.dh,
                              .dx = g->b.dx};
    WEIR_TRY(weir_grad_loss(g, term, n));
    if (g->earliest == INT64_MAX)
        return WEIR_STOP;
    WEIR_TRY(weir_grad_arrive(g, -1, WEIR_SITE_UNEMBED_IN, g->b.dh));
    WEIR_TRY(weir_grad_arrive(g, -1, WEIR_SITE_LNF_OUT, g->b.dh));
    WEIR_TRY(weir_model_final(g->model, &norm.at.w, g->err));
    return weir_grad_norm(g, &norm);
}

/* The stream is the sum of both: they have the same gradient, until a hook changes that of one. */
static weir_status embedding(weir_grad *g)
{
    const int64_t n = weir_grad_rows(g) * g->spec->C;
    if (g->spec->positions == WEIR_POS_LEARNED) {
        memcpy(g->b.dh, g->b.dx, (size_t)n * sizeof *g->b.dh);
        WEIR_TRY(weir_grad_arrive(g, -1, WEIR_SITE_POS_EMBED, g->b.dh));
    }
    return weir_grad_arrive(g, -1, WEIR_SITE_EMBED, g->b.dx);
}

static weir_status walk(weir_grad *g, const weir_loss_term *term, int64_t n)
{
    weir_run *r = g->run;
    if (g->last >= weir_run_order(r, -1, WEIR_SITE_LNF_SCALE))
        WEIR_TRY(final(g, term, n));
    else
        memset(g->b.dx, 0, (size_t)(r->rows.n * g->spec->C) * sizeof *g->b.dx);
    if (g->last < g->earliest)
        return WEIR_STOP;
    for (int64_t l = g->spec->L - 1; l >= weir_run_first(r); l--)
        if (weir_run_order(r, l, WEIR_SITE_RESID_PRE) <= g->last)
            WEIR_TRY(weir_grad_block(g, l));
    if (r->from == WEIR_EMBEDDING)
        return embedding(g);
    return r->from > 0 ? weir_grad_arrive(g, r->from - 1, WEIR_SITE_RESID_POST, g->b.dx) : WEIR_OK;
}

static weir_status begin(weir_grad *g, const weir_loss_term *term, int64_t n)
{
    if (!g->run->tape.whole || !g->run->final)
        return weir_fail(g->err, WEIR_E_ARG, "no way back: the last pass did not run with WEIR_FINAL to its end");
    if (n < 0 || g->n_seed < 0 || (n == 0 && g->n_seed == 0))
        return weir_fail(g->err, WEIR_E_ARG, "a gradient of nothing: no term and no seed");
    WEIR_TRY(check_seeds(g));
    WEIR_TRY(weir_grad_terms(g, term, n));
    WEIR_TRY(find_earliest(g));
    WEIR_TRY(weir_grad_plan(g));
    g->last = n ? INT64_MAX : -1;
    for (int64_t i = 0; i < g->n_seed; i++)
        g->last = order_of(g, g->seed[i].point) > g->last ? order_of(g, g->seed[i].point) : g->last;
    clear_behind(g);
    return WEIR_OK;
}

weir_status weir_grad_backward(weir_grad *g, const weir_loss_term *term, int64_t n, const weir_grad_seed *seed,
                               int64_t n_seed, double *loss, double *value, weir_err *err)
{
    g->err = err;
    g->seed = seed;
    g->n_seed = n_seed;
    g->stopped = false;
    WEIR_TRY(begin(g, term, n));
    weir_status st = walk(g, term, n);
    g->n_seed = 0;
    if (st < 0 || g->stopped)
        return st;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)term[i].weight * g->value[i];
        if (value)
            value[i] = g->value[i];
    }
    if (loss)
        *loss = sum;
    return WEIR_OK;
}

/* What happens to a gradient when it is known at a point. */
#include <string.h>

#include "impl.h"

static bool seeded(const weir_grad *g, const weir_point *p)
{
    for (int64_t i = 0; i < g->n_seed; i++)
        if (g->seed[i].point == p)
            return true;
    return false;
}

static int64_t point_of(const weir_grad *g, int64_t layer, weir_site site)
{
    return weir_run_point(g->run, layer, site);
}

bool weir_grad_looks(const weir_grad *g, int64_t layer, weir_site site)
{
    const int64_t i = point_of(g, layer, site);
    if (i < 0)
        return false;
    return g->to[i] || g->run->hooks.want[g->run->map.n + i] != WEIR_NONE || g->run->hooks.want[i] == WEIR_WRITE ||
           seeded(g, &g->run->map.point[i]);
}

/* Floats in a row of a point in this pass. */
static int64_t width_of(const weir_grad *g, const weir_point *p)
{
    return p->keyed ? p->heads * g->run->longest : p->width;
}

static void add_seeds(weir_grad *g, const weir_point *p, float *d)
{
    const weir_run *r = g->run;
    for (int64_t i = 0; i < g->n_seed; i++)
        if (g->seed[i].point == p)
            weir_op_add(r->kern, r->threads, d, d, g->seed[i].d, r->rows.n * width_of(g, p));
}

/* Did hooks hear the point in this pass? Those before its beginning did not change what it began with. */
static bool in_pass(const weir_run *r, const weir_point *p)
{
    return weir_run_order(r, p->layer, p->site) >= weir_run_order(r, weir_run_first(r), WEIR_SITE_RESID_PRE) ||
           r->from == WEIR_EMBEDDING;
}

weir_status weir_grad_arrive(weir_grad *g, int64_t layer, weir_site site, float *d)
{
    const weir_run *r = g->run;
    const int64_t i = point_of(g, layer, site);
    if (i < 0)
        return WEIR_OK;
    const weir_point *p = &r->map.point[i];
    add_seeds(g, p, d);
    if (g->to[i])
        memcpy(g->to[i], d, (size_t)(r->rows.n * width_of(g, p)) * sizeof *d);
    if (r->hooks.want[r->map.n + i] != WEIR_NONE || r->hooks.want[i] == WEIR_WRITE) {
        const weir_value v = {.point = p,
                              .data = d,
                              .width = width_of(g, p),
                              .heads = p->heads,
                              .size = p->keyed ? r->longest : p->size,
                              .rows = &r->rows};
        const int64_t of = r->map.n + i;
        const weir_status st =
            weir_listeners_fire_back(&g->run->hooks, i, &r->map.point[of], of, &v, in_pass(r, p), g->err);
        g->stopped |= st == WEIR_STOP;
        WEIR_TRY(st);
    }
    return weir_run_order(r, layer, site) <= g->earliest ? WEIR_STOP : WEIR_OK;
}

weir_status weir_grad_branch(weir_grad *g, int64_t layer, weir_site site, float *dx, float **d)
{
    const weir_run *r = g->run;
    const int64_t i = point_of(g, layer, site);
    *d = dx;
    if (i >= 0 &&
        (r->hooks.want[i] == WEIR_WRITE || r->hooks.want[r->map.n + i] == WEIR_WRITE || seeded(g, &r->map.point[i]))) {
        *d = g->b.dy;
        memcpy(*d, dx, (size_t)(r->rows.n * g->spec->C) * sizeof **d);
    }
    return weir_grad_arrive(g, layer, site, *d);
}

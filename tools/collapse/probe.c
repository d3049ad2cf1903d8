/* Hulls, and how much MLPs stretch: of the whole models. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/draw.h"
#include "cli/say.h"
#include "collapse.h"

/* --- tokens drawn from the text: reservoir sampling (Vitter 1985, "Random sampling with a reservoir", algorithm R) */

static weir_want wants(void *self, const weir_point *p)
{
    (void)self;
    return p->site == WEIR_SITE_LN2_OUT ? WEIR_READ : WEIR_NONE;
}

static int64_t draw_slot(weir_collapse_probe *p)
{
    const int64_t i = p->seen++, n = p->c->a->tokens;
    if (i < n)
        return p->n++;
    const int64_t k = (int64_t)(weir_draw(&p->state) % (uint64_t)(i + 1));
    return k < n ? k : -1;
}

static weir_status on_begin(void *self, const weir_rows *r, weir_err *err)
{
    weir_collapse_probe *p = self;
    (void)err;
    for (int64_t t = 0; t < r->n; t++) {
        p->slot[t] = r->keep[t] ? draw_slot(p) : -1;
        if (p->slot[t] >= 0)
            p->at[p->slot[t]] = (weir_collapse_place){r->tag[t], r->doc_pos[t], r->id[t]};
    }
    return WEIR_OK;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    weir_collapse_probe *p = self;
    float *x = p->x + v->point->layer * p->c->a->tokens * v->width;
    (void)err;
    for (int64_t t = 0; t < v->rows->n; t++)
        if (p->slot[t] >= 0)
            memcpy(x + p->slot[t] * v->width, v->data + t * v->width, (size_t)v->width * sizeof *x);
    return WEIR_OK;
}

static const weir_hook_class sampler = {.struct_size = sizeof(weir_hook_class),
                                        .abi = WEIR_HOOK_ABI,
                                        .name = "sample",
                                        .wants = wants,
                                        .on_begin = on_begin,
                                        .on_value = on_value};

static bool asked(const weir_collapse *c, int what)
{
    return c->a->what == WEIR_COLLAPSE_ALL || c->a->what == what;
}

static int open_sample(weir_collapse *c, weir_collapse_probe *p, weir_run *run)
{
    weir_err err = {0};
    const size_t layers = (size_t)c->s.info->L, n = (size_t)c->a->tokens;
    p->c = c;
    p->state = (uint64_t)c->a->seed;
    p->slot = calloc((size_t)c->a->session.run.batch, sizeof *p->slot);
    p->at = calloc(n, sizeof *p->at);
    p->x = calloc(layers * n, (size_t)c->s.info->C * sizeof *p->x);
    p->stretch = calloc(layers * n, sizeof *p->stretch);
    if (!p->slot || !p->at || !p->x || !p->stretch)
        return weir_cli_error(c->cli, "out of memory");
    return weir_run_hook_object(run, &sampler, p, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(c->cli, &err);
}

int weir_collapse_probe_open(weir_collapse *c, int kind, weir_run *run)
{
    weir_err err = {0};
    weir_collapse_probe *p = &c->probe[kind];
    if (asked(c, WEIR_COLLAPSE_HULL) &&
        (weir_hull_new(&p->hull, weir_run_model(run), c->a->directions, (uint64_t)c->a->seed, &err) != WEIR_OK ||
         weir_hull_attach(p->hull, run, &err) != WEIR_OK))
        return weir_cli_fail(c->cli, &err);
    return asked(c, WEIR_COLLAPSE_STRETCH) ? open_sample(c, p, run) : WEIR_EXIT_OK;
}

/* The factor is off by about the square of it. */
static const double TOLERANCE = 1e-2;

int weir_collapse_probe_end(weir_collapse *c, int kind)
{
    weir_err err = {0};
    const weir_collapse_probe *p = &c->probe[kind];
    const bool trained = kind == WEIR_COLLAPSE_TRAINED;
    const weir_lipschitz_options o = {.threads = (int)c->session.run.threads,
                                      .kernel = weir_kernel_name(&c->session.run),
                                      .edits = trained ? (const weir_edit *const *)c->s.edits.edit : NULL,
                                      .n_edits = trained ? c->s.edits.n : 0,
                                      .iterations = c->a->iterations,
                                      .tolerance = TOLERANCE,
                                      .seed = (uint64_t)c->a->seed};
    for (int64_t l = 0; p->x && l < c->s.info->L; l++)
        if (weir_lipschitz_measure(p->stretch + l * c->a->tokens, trained ? c->s.model : c->random, l,
                                   p->x + l * c->a->tokens * c->s.info->C, p->n, &o, &err) != WEIR_OK)
            return weir_cli_fail(c->cli, &err);
    return WEIR_EXIT_OK;
}

void weir_collapse_probe_close(weir_collapse_probe *p)
{
    weir_hull_free(p->hull);
    free(p->slot);
    free(p->at);
    free(p->x);
    free(p->stretch);
}

const weir_lipschitz *weir_collapse_widest(const weir_collapse *c, int kind, int64_t layer, double *mean)
{
    const weir_collapse_probe *p = &c->probe[kind];
    const weir_lipschitz *s = p->stretch + layer * c->a->tokens, *best = NULL;
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < p->n; i++) {
        if (isnan(s[i].factor))
            continue;
        best = !best || s[i].factor > best->factor ? &s[i] : best;
        sum += s[i].factor;
        n++;
    }
    *mean = n ? sum / (double)n : NAN;
    return best;
}

/* --- the check */

enum { WEIGHT_SLACK = 16 }; /* units of 2^-24 that a row of weights may be off 1, besides one for each key */

static int check_layer(const weir_collapse *c, int kind, int64_t l)
{
    const weir_hull_layer *h = weir_hull_of(c->probe[kind].hull, l);
    const double slack = ((double)c->s.ctx + WEIGHT_SLACK) * 0x1p-24;
    if (h->heads.outside == 0 && h->least >= 0 && h->off <= slack)
        return WEIR_EXIT_OK;
    weir_cli_error(c->cli,
                   "layer %lld (%s weights): %lld of %lld outputs of heads lie outside the hull of their values; the "
                   "smallest attention weight is %g, and their sum is off 1 by up to %g",
                   (long long)l, weir_collapse_kinds[kind], (long long)h->heads.outside, (long long)h->heads.points,
                   h->least, h->off);
    return WEIR_EXIT_FALSE;
}

int weir_collapse_check(const weir_collapse *c)
{
    int code = WEIR_EXIT_OK;
    for (int kind = 0; kind < WEIR_COLLAPSE_KINDS; kind++)
        for (int64_t l = 0; c->probe[kind].hull && l < c->s.info->L; l++)
            if (check_layer(c, kind, l) != WEIR_EXIT_OK)
                code = WEIR_EXIT_FALSE;
    return code;
}

/* survey/sparsity.c: making the statistics of a model's lines, and hearing their rows. */
#include "survey/sparsity.h"

#include <math.h>

#include "base/mem.h"
#include "model/spec.h"

void weir_sparsity_options_init(weir_sparsity_options *o)
{
    static const double below[] = {0, 0.01, 0.1, 1};
    *o = (weir_sparsity_options){.below = below, .n_below = sizeof below / sizeof *below, .sample = 64};
}

/* --- making one */

void weir_sparsity_free(weir_sparsity *s)
{
    if (!s)
        return;
    for (int i = 0; s->line && i < s->n; i++) {
        weir_sparsity_count *c = &s->line[i];
        for (int t = 0; t < s->n_below; t++) {
            weir_free(c->at[t].count);
            weir_free(c->at[t].l0);
            weir_free(c->at[t].active);
        }
        for (int64_t k = 0; c->sample && k < s->sample; k++)
            weir_free(c->sample[k].x);
        weir_free(c->sample);
        weir_free(c->curve);
        weir_free(c->hist);
        weir_free(c->gate);
    }
    weir_free(s->line);
    weir_free(s->scratch);
    weir_selector_free(s->selector);
    weir_free(s);
}

static bool neuron(const weir_point *p)
{
    return p->site == WEIR_SITE_MLP_POST;
}

static bool make_room(weir_sparsity *s, weir_sparsity_count *c, const weir_sparsity_options *o)
{
    const size_t n = (size_t)c->point->width;
    const bool gated = neuron(c->point) && weir_model_info_of(s->model)->gated;
    c->hist = weir_calloc(WEIR_CUT_BINS, sizeof *c->hist);
    c->gate = gated ? weir_calloc(WEIR_CUT_BINS, sizeof *c->gate) : NULL;
    if (gated && !s->scratch)
        s->scratch = weir_calloc(n, sizeof *s->scratch);
    if (!c->hist || (gated && (!c->gate || !s->scratch)))
        return false;
    for (int t = 0; t < s->n_below; t++) {
        c->at[t] = (weir_sparsity_at){.below = (float)o->below[t],
                                      .count = weir_calloc(n, sizeof *c->at->count),
                                      .l0 = weir_calloc(n + 1, sizeof *c->at->l0),
                                      .active = weir_calloc(n, 1)};
        if (!c->at[t].count || !c->at[t].l0 || !c->at[t].active)
            return false;
    }
    if (!neuron(c->point) || s->sample == 0)
        return true;
    c->sample = weir_calloc((size_t)s->sample, sizeof *c->sample);
    return c->sample != NULL;
}

static weir_status make_lines(weir_sparsity *s, const weir_sparsity_options *o, weir_err *err)
{
    const int64_t n = weir_model_points(s->model, &s->point);
    s->line = weir_calloc((size_t)weir_selector_count(s->selector), sizeof *s->line);
    if (!s->line)
        return weir_nomem(err, "statistics of sparsity");
    for (int64_t i = 0; i < n; i++) {
        const weir_point *p = &s->point[i];
        if (!weir_selector_matches(s->selector, p))
            continue;
        if (p->rank != 2)
            return weir_fail(err, WEIR_E_ARG, "%s has heads; sparsity is that of rows of neurons or of the stream",
                             p->name);
        weir_sparsity_count *c = &s->line[s->n++];
        c->point = p;
        if (!make_room(s, c, o))
            return weir_nomem(err, "statistics of sparsity");
    }
    return WEIR_OK;
}

static weir_status check_options(const weir_sparsity_options *o, weir_err *err)
{
    if (o->n_below < 1 || o->n_below > WEIR_SPARSITY_THRESHOLDS)
        return weir_fail(err, WEIR_E_ARG, "1 to %d thresholds, not %d", WEIR_SPARSITY_THRESHOLDS, o->n_below);
    for (int t = 0; t < o->n_below; t++)
        if (!(o->below[t] >= 0) || !isfinite((float)o->below[t]) ||
            (t && !((float)o->below[t] > (float)o->below[t - 1])))
            return weir_fail(err, WEIR_E_ARG, "threshold %.9g: thresholds are 0 or more, and ascend", o->below[t]);
    if (o->sample < 0 || o->sample > WEIR_SPARSITY_SAMPLE)
        return weir_fail(err, WEIR_E_ARG, "a sample of %lld rows: 0 to %d", (long long)o->sample, WEIR_SPARSITY_SAMPLE);
    if (o->act && !o->act->runs)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "no kernel has the activation %s", o->act->name);
    return WEIR_OK;
}

static weir_status fill(weir_sparsity *s, const weir_sparsity_options *o, weir_err *err)
{
    const char *sites = o->sites ? o->sites : "post";
    WEIR_TRY(check_options(o, err));
    WEIR_TRY(weir_kern_pick(&s->kern, NULL, err));
    WEIR_TRY(weir_selector_build(&s->selector, s->model, NULL, o->layers ? o->layers : "all", sites, err));
    if (weir_selector_has_positions(s->selector))
        return weir_fail(err, WEIR_E_ARG, "%s: a position in brackets has no place here", sites);
    s->n_below = o->n_below;
    s->sample = o->sample;
    s->act = o->act ? weir_activation_act(o->act) : weir_model_spec(s->model)->act;
    s->edits = o->edits;
    s->n_edits = o->n_edits;
    return make_lines(s, o, err);
}

weir_status weir_sparsity_new(weir_sparsity **out, const weir_model *m, const weir_sparsity_options *o, weir_err *err)
{
    *out = NULL;
    weir_sparsity *s = weir_calloc(1, sizeof *s);
    if (!s)
        return weir_nomem(err, "statistics of sparsity");
    s->model = m;
    weir_status st = fill(s, o, err);
    if (st)
        weir_sparsity_free(s);
    else
        *out = s;
    return st;
}

/* --- hearing */

/* The line of a point; NULL: none. */
static weir_sparsity_count *line_at(const weir_sparsity *s, const weir_point *p)
{
    for (int i = 0; i < s->n; i++)
        if (s->line[i].point == p)
            return &s->line[i];
    return NULL;
}

/* The line of hook_post whose gates this point has; NULL: none. */
static weir_sparsity_count *gate_of(const weir_sparsity *s, const weir_point *p)
{
    for (int i = 0; p->site == WEIR_SITE_MLP_PRE && i < s->n; i++)
        if (s->line[i].gate && s->line[i].point->layer == p->layer)
            return &s->line[i];
    return NULL;
}

static weir_want wants(void *self, const weir_point *p)
{
    return line_at(self, p) || gate_of(self, p) ? WEIR_READ : WEIR_NONE;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    weir_sparsity *s = self;
    weir_sparsity_count *own = line_at(s, v->point), *gated = gate_of(s, v->point);
    const weir_rows *r = v->rows;
    for (int64_t t = 0; t < r->n; t++) {
        if (!r->keep[t])
            continue;
        if (own)
            WEIR_TRY(weir_sparsity_add(s, own, v->data + t * v->width, r->tag[t], r->doc_pos[t], err));
        if (gated)
            weir_sparsity_add_gate(s, gated, v->data + t * v->width);
    }
    return WEIR_OK;
}

weir_status weir_sparsity_attach(weir_sparsity *s, weir_run *r, weir_err *err)
{
    static const weir_hook_class reader = {.struct_size = sizeof(weir_hook_class),
                                           .abi = WEIR_HOOK_ABI,
                                           .flags = WEIR_HOOK_ANY_ORDER,
                                           .name = "sparsity",
                                           .help = "counts for weir/sparsity.h",
                                           .args = "",
                                           .wants = wants,
                                           .on_value = on_value};
    return weir_run_hook_object(r, &reader, s, err);
}

weir_status weir_sparsity_finish(weir_sparsity *s, int threads, weir_err *err)
{
    for (int i = 0; i < s->n; i++)
        if (s->line[i].n_sample)
            WEIR_TRY(weir_sparsity_make_curve(s, &s->line[i], threads, err));
    return WEIR_OK;
}

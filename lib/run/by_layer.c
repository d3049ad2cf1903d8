/* The steps of the pass one by one, for all documents through one layer before the next. A part begins with the norm of
 * the stream that it is given and ends with the stream; nothing else passes from one to the next. */
#include "state.h"

float *weir_run_stream(weir_run *r)
{
    return r->prepared ? r->b.stream : NULL;
}

int64_t weir_run_parts(const weir_run *r)
{
    const int64_t last = r->flags & WEIR_FINAL ? INT64_MAX : r->last_heard, layers = r->spec->L;
    int64_t n = r->prepared && last >= 0;
    while (n && n <= layers && weir_run_order(r, n - 1, WEIR_SITE_RESID_PRE) <= last)
        n++;
    return n + (n > layers && weir_run_order(r, -1, WEIR_SITE_LNF_SCALE) <= last);
}

/* The part that a point's value belongs to. */
static int64_t part_of(const weir_run *r, const weir_point *p)
{
    if (weir_site_in_block(p->site))
        return p->layer + 1;
    return p->site < WEIR_SITE_RESID_PRE ? 0 : r->spec->L + 1;
}

void weir_run_part_done(weir_run *r, int64_t part)
{
    for (int i = 0; i < r->hooks.n; i++)
        for (int64_t p = 0; p < r->map.n; p++)
            if (r->hooks.hook[i].want[p] != WEIR_NONE && part_of(r, &r->map.point[p]) == part)
                r->hooks.hook[i].excused = true;
}

void weir_run_let_go(weir_run *r)
{
    if (r->leased >= 0)
        weir_model_layer_done(r->model, r->leased, true);
    r->leased = -1;
}

/* A layer stays packed from one call to the next, and is released when another part is asked for. */
static weir_status keep_packed(weir_run *r, int64_t layer)
{
    const weir_layer *w;
    if (layer == r->leased)
        return WEIR_OK;
    weir_run_let_go(r);
    if (layer < 0 || layer >= r->spec->L || !weir_run_needs(r, layer, WEIR_SITE_LN1_SCALE))
        return WEIR_OK;
    WEIR_TRY(weir_model_layer(r->model, layer, r->room, &w, r->err));
    r->leased = layer;
    return WEIR_OK;
}

static weir_status steps(weir_run *r)
{
    const int64_t layer = r->part - 1;
    WEIR_TRY(keep_packed(r, layer));
    if (layer < 0)
        return weir_run_embed(r);
    return layer < r->spec->L ? weir_run_block(r, layer) : weir_run_final(r);
}

weir_status weir_run_part(weir_run *r, int64_t part, const weir_seq *seqs, int64_t n_seq, weir_err *err)
{
    if (!r->by_layer || !r->prepared)
        return weir_fail(err, WEIR_E_ARG, "%s",
                         r->by_layer ? "weir_run_prepare comes before weir_run_part"
                                     : "the run was not made to go layer by layer");
    if (part < 0 || part >= weir_run_parts(r))
        return weir_fail(err, WEIR_E_ARG, "part %lld: this run has %lld", (long long)part,
                         (long long)weir_run_parts(r));
    r->part = part;
    r->from = part - 1;
    WEIR_TRY(weir_run_pass(r, seqs, n_seq, r->flags, steps, err));
    r->final = r->flags & WEIR_FINAL && part > r->spec->L;
    return WEIR_OK;
}

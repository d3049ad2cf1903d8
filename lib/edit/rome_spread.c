/* An update over several layers (MEMIT, section 4.3): each layer, from the first on, takes its share of what is still
 * missing behind the last one. Keys and the stream are measured again with the layers before it edited. */
#include <math.h>

#include "rome.h"
#include "solve.h"

typedef struct spread {
    weir_rome *w;
    const weir_rome_request *q;
    const weir_rome_rows *rows;
    int64_t n;
    const double *z;
    weir_rome_layer *done; /* [n_layers], these two */
    weir_update *update;
    const weir_edit **edits; /* [n_edits + 1] the last is that of the layers done */
    weir_rome_report *report;
    weir_err *err;
} spread;

/* Where values go: keys [n,F] of a layer, or the stream [n,C] behind it at the bare prompts' subjects. */
typedef struct wanted {
    int64_t layer;
    double *keys, *stream;
} wanted;

/* The layers that are done, as an edit; NULL: none yet. */
static weir_status partial(spread *s, int n_done, weir_edit **out)
{
    *out = NULL;
    for (int i = 0; i < n_done; i++)
        s->update[i] = weir_rome_layer_update(s->w, &s->done[i]);
    return n_done ? weir_edit_new(out, s->w->model, s->update, n_done, s->err) : WEIR_OK;
}

/* With the edits that the model had, and the layers that are done. */
static weir_status observe(spread *s, int n_done, const wanted *want)
{
    const int64_t f = s->w->spec->F, c = s->w->spec->C;
    weir_rome_options o = s->w->o;
    weir_edit *mine = NULL;
    weir_rome_pass *p = NULL;
    weir_status st = partial(s, n_done, &mine);
    if (mine)
        s->edits[o.n_edits++] = mine;
    o.edits = s->edits;
    if (st == WEIR_OK)
        st = weir_rome_pass_new(&p, s->w->model, &o, want->layer, true, s->err);
    for (int64_t i = 0; st == WEIR_OK && i < s->n; i++) {
        const weir_rome_seen *seen;
        st = weir_rome_pass_begin(p, &s->rows[i], false, &seen, s->err);
        if (st == WEIR_OK && want->keys)
            weir_rome_mean(want->keys + i * f, seen->key, s->rows[i].n - 1, f, true);
        for (int64_t j = 0; st == WEIR_OK && want->stream && j < c; j++)
            want->stream[i * c + j] = (double)seen->post[s->rows[i].row[0].at * c + j];
    }
    weir_rome_pass_free(p);
    weir_edit_free(mine);
    return st;
}

static weir_status one(spread *s, int at)
{
    const weir_rome_options *o = &s->w->o;
    const int64_t c = s->w->spec->C, last = o->layer[o->n_layers - 1];
    weir_rome_layer *l = &s->done[at];
    WEIR_TRY(weir_rome_layer_make(l, s->w, at, s->n, s->err));
    wanted keys = {.layer = o->layer[at], .keys = l->k}, stream = {.layer = last, .stream = l->r};
    if (o->layer[at] == last)
        keys.stream = l->r;
    WEIR_TRY(observe(s, at, &keys));
    if (o->layer[at] != last)
        WEIR_TRY(observe(s, at, &stream));
    for (int64_t i = 0; i < s->n * c; i++)
        l->r[i] = (s->z[i] - l->r[i]) / (double)(o->n_layers - at);
    WEIR_TRY(weir_rome_layer_solve(s->w, l, s->q, s->err));
    double share;
    WEIR_TRY(weir_rome_layer_share(s->w, l, &share, s->err));
    for (int64_t i = 0; i < s->n; i++) {
        weir_rome_report *r = &s->report[i];
        r->k_u = l->k_u[i];
        r->lambda = weir_solve_norm(l->u + i * s->w->spec->F, l->v + i * c, 1, s->w->spec->F, c);
        r->share = share > r->share ? share : r->share;
    }
    return WEIR_OK;
}

weir_status weir_rome_spread(weir_rome *w, const weir_rome_request *q, const weir_rome_rows *rows, int64_t n,
                             const double *z, weir_edit **out, weir_rome_report *report, weir_err *err)
{
    const int layers = w->o.n_layers;
    spread s = {.w = w, .q = q, .rows = rows, .n = n, .z = z, .report = report, .err = err};
    s.done = weir_calloc((size_t)layers, sizeof *s.done);
    s.update = weir_calloc((size_t)layers, sizeof *s.update);
    s.edits = weir_calloc((size_t)w->o.n_edits + 1, sizeof *s.edits);
    weir_status st = s.done && s.update && s.edits ? WEIR_OK : weir_nomem(err, "an edit");
    for (int i = 0; st == WEIR_OK && i < w->o.n_edits; i++)
        s.edits[i] = w->o.edits[i];
    for (int i = 0; st == WEIR_OK && i < layers; i++)
        st = one(&s, i);
    if (st == WEIR_OK)
        st = partial(&s, layers, out);
    for (int i = 0; s.done && i < layers; i++)
        weir_rome_layer_free(&s.done[i]);
    weir_free(s.done);
    weir_free(s.update);
    weir_free(s.edits);
    return st;
}

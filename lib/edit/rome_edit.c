/* From requests to an edit. */
#include <math.h>
#include <string.h>

#include "rome.h"
#include "solve.h"

static double cosine(const double *a, const float *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += a[i] * (double)b[i];
        aa += a[i] * a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return aa > 0 && bb > 0 ? ab / (sqrt(aa) * sqrt(bb)) : 0;
}

static void widen(double *dst, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (double)x[i];
}

/* The request's key, its residual, and the length that clamp and decay refer to, from what the pass saw. v0 and the
 * value that is there now are the same in all methods but one: rebuilding-rome takes v0 from the bare prompt and the
 * value from the mean. */
typedef struct roles {
    double *key, *key_at, *v0, *now; /* [F], [F], [C], [C] */
} roles;

static void assign(const weir_rome *w, const weir_rome_seen *seen, int64_t texts, roles *r)
{
    const int64_t f = w->spec->F, c = w->spec->C;
    const weir_rome_method m = w->o.method;
    const bool consistent = m == WEIR_ROME_CONSISTENT || m == WEIR_ROME_EMMET;
    widen(r->key_at, seen->key, f);
    if (m == WEIR_ROME_PROMPT)
        widen(r->key, seen->key, f);
    else
        weir_rome_mean(r->key, seen->key, texts, f, consistent);
    if (consistent) {
        weir_rome_mean(r->v0, seen->value, texts, c, true);
        memcpy(r->now, r->v0, (size_t)c * sizeof *r->now);
        return;
    }
    widen(r->v0, seen->value, c);
    if (m == WEIR_ROME_COMPAT_R)
        weir_rome_mean(r->now, seen->value, texts, c, false);
    else
        memcpy(r->now, r->v0, (size_t)c * sizeof *r->now);
}

/* What the searches of an edit share. */
typedef struct work {
    weir_rome *w;
    const weir_rome_request *q;
    weir_rome_rows *rows; /* [n] */
    int64_t n;
    double *room;             /* of the roles */
    float *delta;             /* [C] */
    double *z;                /* [n,C] methods that spread: what the stream shall be */
    weir_rome_report *report; /* [n] */
    weir_err *err;
} work;

/* A change of nothing is no edit: all searches ended before their first step. */
static weir_status check_deltas(const work *k)
{
    for (int64_t i = 0; i < k->n; i++)
        if (k->report[i].delta > 0)
            return WEIR_OK;
    const weir_rome_step *first = &k->report->step[0];
    if (k->report->steps > 1)
        return weir_fail(k->err, WEIR_E_ARG,
                         "the search went nowhere: nothing is left of a change with rate %g, clamp %g", k->w->o.rate,
                         k->w->o.clamp);
    return weir_fail(
        k->err, WEIR_E_ARG,
        "there is nothing to change: the loss is %.3g before any step, below `enough` (%g), with the target "
        "at p = %.3g",
        first->loss, k->w->o.enough, first->p);
}

/* Nor one whose numbers are too small to be told from 0. */
static weir_status check_update(const work *k, const weir_edit *e)
{
    for (int64_t i = 0; i < weir_edit_n(e); i++) {
        const weir_update *u = weir_edit_update(e, i);
        for (int64_t j = 0; j < u->r * k->w->spec->C; j++)
            if (u->v[j] != 0)
                return WEIR_OK;
    }
    return weir_fail(k->err, WEIR_E_ARG, "the update is 0: its weights leave nothing of a change of length %.3g",
                     k->report->delta);
}

/* --- methods that edit one layer */

static weir_status find_one(work *k, int64_t i, weir_rome_layer *l)
{
    const int64_t f = k->w->spec->F, c = k->w->spec->C;
    weir_rome_report *report = &k->report[i];
    roles r = {.key = l->k + i * f, .key_at = l->key_at, .v0 = k->room, .now = k->room + c};
    double *residual = l->r + i * c;
    const weir_rome_seen *seen;
    WEIR_TRY(weir_rome_pass_begin(k->w->pass, &k->rows[i], true, &seen, k->err));
    assign(k->w, seen, k->rows[i].n - 1, &r);
    report->k_cos = cosine(r.key, seen->key, f);
    WEIR_TRY(weir_rome_search(k->w->pass, &k->w->o, weir_rome_length(r.v0, c), k->delta, report, k->err));
    for (int64_t j = 0; j < c; j++)
        residual[j] = r.v0[j] + (double)k->delta[j] - r.now[j];
    return WEIR_OK;
}

static weir_status report_layer(work *k, const weir_rome_layer *l)
{
    const int64_t c = k->w->spec->C;
    double share;
    WEIR_TRY(weir_rome_layer_share(k->w, l, &share, k->err));
    for (int64_t i = 0; i < k->n; i++) {
        k->report[i].k_u = l->k_u[i];
        k->report[i].lambda = weir_solve_norm(l->u + i * k->w->spec->F, l->v + i * c, 1, k->w->spec->F, c);
        k->report[i].share = share;
    }
    return WEIR_OK;
}

static weir_status one_layer(work *k, weir_edit **out)
{
    weir_rome_layer l;
    WEIR_TRY(weir_rome_layer_make(&l, k->w, 0, k->n, k->err));
    weir_status s = WEIR_OK;
    for (int64_t i = 0; s == WEIR_OK && i < k->n; i++)
        s = find_one(k, i, &l);
    if (s == WEIR_OK)
        s = check_deltas(k);
    if (s == WEIR_OK)
        s = weir_rome_layer_solve(k->w, &l, k->q, k->err);
    if (s == WEIR_OK)
        s = report_layer(k, &l);
    if (s == WEIR_OK) {
        const weir_update u = weir_rome_layer_update(k->w, &l);
        s = weir_edit_new(out, k->w->model, &u, 1, k->err);
    }
    weir_rome_layer_free(&l);
    return s;
}

/* --- methods that spread over several */

static weir_status find_z(work *k, int64_t i)
{
    const int64_t c = k->w->spec->C, f = k->w->spec->F;
    const weir_rome_seen *seen;
    double *z = k->z + i * c;
    WEIR_TRY(weir_rome_pass_begin(k->w->pass, &k->rows[i], true, &seen, k->err));
    widen(z, seen->post + k->rows[i].row[0].at * c, c);
    weir_rome_mean(k->room, seen->key, k->rows[i].n - 1, f, true);
    k->report[i].k_cos = cosine(k->room, seen->key, f);
    WEIR_TRY(weir_rome_search(k->w->pass, &k->w->o, weir_rome_length(z, c), k->delta, &k->report[i], k->err));
    for (int64_t j = 0; j < c; j++)
        z[j] += (double)k->delta[j];
    return WEIR_OK;
}

static weir_status several_layers(work *k, weir_edit **out)
{
    for (int64_t i = 0; i < k->n; i++)
        WEIR_TRY(find_z(k, i));
    WEIR_TRY(check_deltas(k));
    return weir_rome_spread(k->w, k->q, k->rows, k->n, k->z, out, k->report, k->err);
}

/* --- both */

static weir_status make_rows(work *k)
{
    const weir_rome_options *o = &k->w->o;
    for (int64_t i = 0; i < k->n; i++) {
        WEIR_TRY(weir_rome_rows_make(&k->rows[i], k->w->tok, k->w->prefixes, &k->q[i], o->bos, k->err));
        WEIR_TRY(weir_rome_rows_reach(&k->rows[i], &k->q[i], o->layer[o->n_layers - 1], k->w->spec->L, k->err));
        k->report[i].subject_at = k->rows[i].row[0].subject;
        k->report[i].subject_shared = k->rows[i].shared;
        k->report[i].target_tokens = k->rows[i].n_target;
    }
    return WEIR_OK;
}

static weir_status edit(work *k, weir_edit **out)
{
    const weir_spec *s = k->w->spec;
    const int64_t widest = s->F > 2 * s->C ? s->F : 2 * s->C;
    k->rows = weir_calloc((size_t)k->n, sizeof *k->rows);
    k->room = weir_calloc((size_t)widest, sizeof *k->room);
    k->delta = weir_calloc((size_t)s->C, sizeof *k->delta);
    k->z = weir_calloc((size_t)k->n, (size_t)s->C * sizeof *k->z);
    if (!k->rows || !k->room || !k->delta || !k->z)
        return weir_nomem(k->err, "an edit");
    WEIR_TRY(make_rows(k));
    return weir_rome_spreads(k->w->o.method) ? several_layers(k, out) : one_layer(k, out);
}

static void release(work *k)
{
    for (int64_t i = 0; k->rows && i < k->n; i++)
        weir_rome_rows_free(&k->rows[i]);
    weir_free(k->rows);
    weir_free(k->room);
    weir_free(k->delta);
    weir_free(k->z);
}

weir_status weir_rome_make(weir_rome *w, const weir_rome_request *q, int64_t n, weir_edit **out,
                           weir_rome_report *report, weir_err *err)
{
    *out = NULL;
    if (n < 1 || (n > 1 && !weir_rome_spreads(w->o.method) && w->o.method != WEIR_ROME_EMMET))
        return weir_fail(err, WEIR_E_ARG,
                         "%lld requests at once: %s takes one; memit, emmet and alphaedit take several", (long long)n,
                         weir_rome_method_name(w->o.method));
    weir_rome_report *mine = weir_calloc((size_t)n, sizeof *mine);
    if (!mine)
        return weir_nomem(err, "an edit");
    work k = {.w = w, .q = q, .n = n, .report = mine, .err = err};
    weir_status s = edit(&k, out);
    if (s == WEIR_OK)
        s = check_update(&k, *out);
    release(&k);
    if (s != WEIR_OK) {
        weir_edit_free(*out);
        *out = NULL;
    }
    for (int64_t i = 0; i < n; i++)
        if (s == WEIR_OK && report)
            report[i] = mine[i];
        else
            weir_rome_report_free(&mine[i]);
    weir_free(mine);
    return s;
}

/* Values to parts: which are listed, and in which order. Layer by layer, some positions at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/target.h"
#include "decompose.h"

enum {
    BUDGET = 32 << 20, /* bytes: parts of one layer, and lists */
    MOST = 64          /* positions at a time */
};

typedef struct taking {
    weir_decompose *d;
    int64_t first, n;          /* positions */
    weir_part_lines *lists[2]; /* [n] heads; neurons */
    weir_part_value *value;    /* [n, units + 1] of one layer */
    int64_t *unit;             /* [units] of one layer, ascending */
    weir_part_line *edit;      /* [E] */
    int32_t *target, *against; /* [n] */
} taking;

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

static const weir_units *units_of(const weir_decompose *d, bool mlp)
{
    return mlp ? &d->neurons : &d->heads;
}

static int64_t width_of(const weir_decompose *d, bool mlp)
{
    return mlp ? d->session.info->F : d->session.info->H;
}

bool weir_decompose_wants(const weir_decompose *d, int64_t layer, bool mlp)
{
    const weir_units *u = units_of(d, mlp);
    if (u->mode == WEIR_UNITS_NONE || !d->layer[layer])
        return false;
    bool named = u->mode != WEIR_UNITS_NAMED;
    for (int64_t i = 0; i < u->asks.n && !named; i++)
        named = u->asks.ask[i].layer == -1 || u->asks.ask[i].layer == layer;
    return named;
}

/* --- lists */

static double importance(const weir_decompose *d, const weir_parts_sum *s, const weir_part_value *v)
{
    weir_rank_parts rank = (weir_rank_parts)d->a->rank;
    if (rank == WEIR_RANK_AUTO)
        rank = s->target >= 0 ? WEIR_RANK_LOGIT : WEIR_RANK_SHARE;
    const double x = rank == WEIR_RANK_LOGIT ? v->logit : rank == WEIR_RANK_SHARE ? v->share : v->norm;
    return isnan(x) ? -1 : fabs(x);
}

/* Room for one more line. */
static bool grow(weir_part_lines *l)
{
    if (l->n < l->room)
        return true;
    const int64_t room = l->room ? 2 * l->room : 16;
    weir_part_line *line = realloc(l->line, sizeof *line * (size_t)room);
    if (!line)
        return false;
    l->line = line;
    l->room = room;
    return true;
}

/* Parts come in the order of layers and units: of equal ones the first stays before the others. */
static bool list(const taking *t, int64_t i, bool mlp, const weir_part_line *line)
{
    const weir_decompose *d = t->d;
    const weir_parts_sum *s = &weir_parts_sums(d->parts)[i];
    weir_part_lines *l = &t->lists[mlp][i];
    l->of++;
    l->biases += line->part.unit < 0;
    if (!l->top) {
        if (!grow(l))
            return false;
        l->line[l->n++] = *line;
        return true;
    }
    const double x = importance(d, s, &line->value);
    if (l->n == d->a->k && !(x > importance(d, s, &l->line[l->n - 1].value)))
        return true;
    if (l->n < d->a->k) {
        if (!grow(l))
            return false;
        l->n++;
    }
    int64_t at = l->n - 1;
    for (; at > 0 && importance(d, s, &l->line[at - 1].value) < x; at--)
        l->line[at] = l->line[at - 1];
    l->line[at] = *line;
    return true;
}

/* --- one layer */

/* The units of a layer that are named, ascending, each once; their number. */
static int64_t name_units(const taking *t, int64_t layer, bool mlp)
{
    const weir_units *u = units_of(t->d, mlp);
    int64_t n = 0;
    for (int64_t unit = 0; unit < width_of(t->d, mlp); unit++)
        if (weir_asks_have(&u->asks, (int)layer, unit))
            t->unit[n++] = unit;
    return n;
}

/* Biases are parts of their own; where there is none, none is listed, and named units stand for themselves alone. */
static bool is_listed(const weir_units *u, const weir_part_line *line)
{
    const bool bias = line->part.unit < 0;
    return !bias || (u->mode != WEIR_UNITS_NAMED && line->value.norm != 0);
}

static weir_status take_layer(const taking *t, int64_t layer, bool mlp, weir_err *err)
{
    const weir_decompose *d = t->d;
    const weir_units *u = units_of(d, mlp);
    const bool named = u->mode == WEIR_UNITS_NAMED;
    const int64_t n = named ? name_units(t, layer, mlp) : width_of(d, mlp);
    const int64_t *unit = named ? t->unit : NULL;
    if (n == 0)
        return WEIR_OK;
    WEIR_TRY(mlp ? weir_parts_neurons(d->parts, layer, unit, named ? n : 0, t->value, err)
                 : weir_parts_heads(d->parts, layer, unit, named ? n : 0, t->value, err));
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t k = 0; k <= n; k++) {
            const weir_part_kind kind =
                k < n ? (mlp ? WEIR_PART_NEURON : WEIR_PART_HEAD) : (mlp ? WEIR_PART_MLP_BIAS : WEIR_PART_ATTN_BIAS);
            const weir_part_line line = {{kind, (int)layer,
                                          k == n ? -1
                                          : unit ? unit[k]
                                                 : k},
                                         t->value[i * (n + 1) + k]};
            if (is_listed(u, &line) && !list(t, i, mlp, &line))
                return no_memory(err);
        }
    return WEIR_OK;
}

/* --- positions */

static void set_targets(const taking *t, weir_parts_rows *rows)
{
    const weir_decompose *d = t->d;
    for (int64_t i = 0; i < t->n; i++) {
        t->target[i] = d->target == WEIR_TARGET_NEXT ? d->values.next[t->first + i] : d->target;
        t->against[i] = d->against;
    }
    rows->target = t->target;
    rows->against = d->against >= 0 ? t->against : NULL;
}

static void count(weir_decompose *d, const weir_parts_sum *s)
{
    if ((!s->exact || !s->holds) && d->inexact + d->beyond == 0) {
        d->bad_doc = d->view.doc;
        d->bad_pos = d->view.pos;
    }
    d->positions++;
    d->without += d->target == WEIR_TARGET_NEXT && s->target < 0;
    d->lost += !isfinite(s->norm) || (s->target >= 0 && !isfinite(s->logit));
    d->inexact += !s->exact;
    d->beyond += !s->holds;
}

/* Edits of chosen layers, and those outside the blocks; the rest only where there is one. */
static void choose_edits(const taking *t, const weir_part *part, const weir_part_value *value, int64_t n)
{
    weir_view_parts *v = &t->d->view;
    v->n_edits = v->n_others = 0;
    v->others = (weir_part_value){NAN, NAN, 0, 0};
    for (int64_t e = 0; e < n; e++) {
        if (part[e].kind == WEIR_PART_REST && v->sum->exact)
            continue;
        if (part[e].layer < 0 || t->d->layer[part[e].layer]) {
            t->edit[v->n_edits++] = (weir_part_line){part[e], value[e]};
        } else {
            v->n_others++;
            v->others.share += value[e].share;
            v->others.logit += value[e].logit;
        }
    }
    v->edit = t->edit;
}

static weir_status show(const taking *t, weir_err *err)
{
    weir_decompose *d = t->d;
    const weir_part *part;
    const int64_t n = weir_parts_list(d->parts, &part);
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t at = t->first + i;
        weir_view_parts *v = &d->view;
        v->number = d->positions;
        v->doc = d->values.doc[at];
        v->pos = d->values.pos[at];
        v->id = d->values.id[at];
        v->next = d->values.next[at];
        v->sum = &weir_parts_sums(d->parts)[i];
        v->heads = &t->lists[0][i];
        v->neurons = &t->lists[1][i];
        choose_edits(t, part, weir_parts_edits(d->parts) + i * n, n);
        weir_progress_clear(d->cli->progress);
        if (!d->sink->position(d->out, v))
            return no_memory(err);
        count(d, v->sum);
    }
    return WEIR_OK;
}

static weir_status take_some(taking *t, weir_err *err)
{
    weir_decompose *d = t->d;
    weir_parts_rows rows;
    weir_sites_rows(&d->values, t->first, t->n, &rows);
    set_targets(t, &rows);
    rows.edits = (const weir_edit *const *)d->session.edits.edit;
    rows.n_edits = d->session.edits.n;
    WEIR_TRY(weir_parts_begin(d->parts, &rows, err));
    for (int mlp = 0; mlp < 2; mlp++) {
        for (int64_t i = 0; i < t->n; i++) {
            t->lists[mlp][i].n = t->lists[mlp][i].of = t->lists[mlp][i].biases = 0;
            t->lists[mlp][i].top = units_of(d, mlp)->mode == WEIR_UNITS_TOP;
        }
        for (int64_t l = 0; l < d->session.info->L; l++)
            if (weir_decompose_wants(d, l, mlp))
                WEIR_TRY(take_layer(t, l, mlp, err));
    }
    return show(t, err);
}

static int64_t positions_at_once(const weir_decompose *d)
{
    const weir_model_info *m = d->session.info;
    int64_t units = m->H, lines = 0;
    if (d->neurons.mode != WEIR_UNITS_NONE)
        units = m->F > units ? m->F : units;
    if (d->neurons.mode == WEIR_UNITS_ALL)
        lines = m->L * m->F;
    const int64_t n =
        BUDGET / ((units + 1) * (int64_t)sizeof(weir_part_value) + lines * (int64_t)sizeof(weir_part_line));
    return n < 1 ? 1 : n > MOST ? MOST : n;
}

static weir_status make_room(taking *t, int64_t n, weir_err *err)
{
    const weir_decompose *d = t->d;
    const weir_part *part;
    const int64_t h = d->session.info->H, f = d->session.info->F, units = f > h ? f : h;
    t->lists[0] = calloc((size_t)n, sizeof *t->lists[0]);
    t->lists[1] = calloc((size_t)n, sizeof *t->lists[1]);
    t->value = calloc((size_t)n, (size_t)(units + 1) * sizeof *t->value);
    t->unit = calloc((size_t)units, sizeof *t->unit);
    t->edit = calloc((size_t)weir_parts_list(d->parts, &part), sizeof *t->edit);
    t->target = calloc((size_t)n, sizeof *t->target);
    t->against = calloc((size_t)n, sizeof *t->against);
    const bool all = t->lists[0] && t->lists[1] && t->value && t->unit && t->edit && t->target && t->against;
    return all ? WEIR_OK : no_memory(err);
}

weir_status weir_decompose_take(weir_decompose *d, weir_err *err)
{
    const int64_t most = positions_at_once(d), n = d->values.n < most ? d->values.n : most;
    taking t = {.d = d};
    if (n == 0)
        return WEIR_OK;
    weir_status st = make_room(&t, n, err);
    for (t.first = 0; t.first < d->values.n && st == WEIR_OK && !ferror(d->out); t.first += n) {
        t.n = d->values.n - t.first < n ? d->values.n - t.first : n;
        st = take_some(&t, err);
    }
    for (int mlp = 0; mlp < 2; mlp++)
        for (int64_t i = 0; i < n && t.lists[mlp]; i++)
            free(t.lists[mlp][i].line);
    void *const own[] = {t.lists[0], t.lists[1], t.value, t.unit, t.edit, t.target, t.against};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    d->values.n = 0;
    return st;
}

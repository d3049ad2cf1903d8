/* The grid: the same text through the model with and without skips and MLPs, on both kinds of weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "collapse.h"

const char *const weir_collapse_kinds[] = {"trained", "random"};
const char *const weir_collapse_cells[] = {"attention", "attention+skip", "attention+mlp", "whole"};

/* --- matrices */

static weir_want wants(void *self, const weir_point *p)
{
    (void)self;
    return p->site == WEIR_SITE_RESID_POST || (p->site == WEIR_SITE_RESID_PRE && p->layer == 0) ? WEIR_READ : WEIR_NONE;
}

static weir_status add_singular(weir_collapse *c, const float *x, int64_t n, bool rest, double *to, weir_err *err)
{
    const int64_t k = c->a->singular;
    weir_status s = k ? weir_alike_singular(x, n, c->s.info->C, rest, k, c->singular, err) : WEIR_OK;
    for (int64_t i = 0; i < k && s == WEIR_OK; i++)
        to[i] += c->singular[i];
    return s;
}

static weir_status add_matrix(weir_collapse *c, weir_collapse_line *l, const float *x, int64_t n, weir_err *err)
{
    weir_alike a;
    weir_status s = weir_alike_measure(&a, x, n, c->s.info->C, err);
    if (s != WEIR_OK)
        return s;
    if (!(a.composite > 0) || isnan(a.cosine)) {
        l->lost++;
        return WEIR_OK;
    }
    l->windows++;
    l->composite += a.composite;
    l->composite_rest += a.composite_rest;
    l->composite_share += a.composite_rest / a.composite;
    l->frobenius += a.frobenius;
    l->frobenius_rest += a.frobenius_rest;
    l->frobenius_share += a.frobenius_rest / a.frobenius;
    l->cosine += a.cosine;
    s = add_singular(c, x, n, false, l->value, err);
    return s == WEIR_OK ? add_singular(c, x, n, true, l->rest, err) : s;
}

/* Windows are the sequences of a pass. */
static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    weir_collapse_cell *cell = self;
    weir_collapse *c = cell->c;
    const weir_rows *r = v->rows;
    weir_collapse_line *l = &cell->line[v->point->site == WEIR_SITE_RESID_PRE ? 0 : v->point->layer + 1];
    for (int64_t t = 0, n = 0; t < r->n; t++) {
        if (r->keep[t])
            memcpy(c->rows + n++ * v->width, v->data + t * v->width, (size_t)v->width * sizeof *c->rows);
        if (t + 1 < r->n && r->seq[t + 1] == r->seq[t])
            continue;
        const weir_status s = n > 1 ? add_matrix(c, l, c->rows, n, err) : WEIR_OK;
        if (s != WEIR_OK)
            return s;
        n = 0;
    }
    return WEIR_OK;
}

static const weir_hook_class reader = {.struct_size = sizeof(weir_hook_class),
                                       .abi = WEIR_HOOK_ABI,
                                       .name = "collapse",
                                       .wants = wants,
                                       .on_value = on_value};

/* --- runs */

/* The whole model is run in any case: hulls and stretches are its own. */
static bool is_wanted(const weir_collapse *c, int kind, int cell)
{
    if (c->a->weights != WEIR_COLLAPSE_BOTH_KINDS && c->a->weights != kind)
        return false;
    return cell == WEIR_COLLAPSE_WHOLE || c->a->what == WEIR_COLLAPSE_ALL || c->a->what == WEIR_COLLAPSE_GRID;
}

/* What stands behind `without:` in a cell. */
static const char *without(const weir_collapse *c, int cell)
{
    static const char *const words[2][WEIR_COLLAPSE_CELLS] = {{"skip,mlp", "mlp", "skip", NULL},
                                                              {"skip,mlp,norms", "mlp,norms", "skip,norms", "norms"}};
    return words[c->a->no_norms][cell];
}

int weir_collapse_runs(const weir_collapse *c)
{
    int n = 0;
    for (int i = 0; i < WEIR_COLLAPSE_KINDS; i++)
        for (int j = 0; j < WEIR_COLLAPSE_CELLS; j++)
            n += is_wanted(c, i, j);
    return n;
}

static weir_status new_run(weir_collapse *c, int kind, weir_run **out, weir_err *err)
{
    const weir_session *s = &c->s;
    weir_run_options o;
    weir_run_options_init(&o);
    o.threads = (int)s->a->run.threads;
    o.kernel = weir_kernel_name(&s->a->run);
    o.memory = s->a->run.memory;
    o.max_rows = s->a->run.batch;
    o.max_len = s->ctx < s->a->run.batch ? s->ctx : s->a->run.batch;
    if (kind == WEIR_COLLAPSE_TRAINED) {
        o.edits = (const weir_edit *const *)s->edits.edit;
        o.n_edits = s->edits.n;
    }
    return weir_run_new(out, kind == WEIR_COLLAPSE_RANDOM ? c->random : s->model, &o, err);
}

static bool give_lines(const weir_collapse *c, weir_collapse_cell *cell)
{
    const int64_t lines = c->s.info->L + 1, k = c->a->singular;
    cell->line = calloc((size_t)lines, sizeof *cell->line);
    cell->sums = calloc((size_t)lines, 2 * sizeof *cell->sums * (size_t)(k + 1));
    for (int64_t l = 0; cell->line && cell->sums && l < lines; l++) {
        cell->line[l].value = cell->sums + 2 * k * l;
        cell->line[l].rest = cell->line[l].value + k;
    }
    return cell->line && cell->sums;
}

static int open_cell(weir_collapse *c, int kind, int i)
{
    weir_err err = {0};
    weir_collapse_cell *cell = &c->cell[kind][i];
    cell->c = c;
    if (!give_lines(c, cell))
        return weir_cli_error(c->cli, "out of memory");
    if (new_run(c, kind, &cell->run, &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    int code = weir_attach_all(&cell->attach, c->cli, &c->a->session.attach, cell->run);
    if (code != WEIR_EXIT_OK)
        return code;
    cell->attach.edits = kind == WEIR_COLLAPSE_TRAINED ? &c->s.edits : NULL;
    if (without(c, i) && weir_run_hook(cell->run, weir_hook_class_find("without"), without(c, i), &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    if (i == WEIR_COLLAPSE_WHOLE && (code = weir_collapse_probe_open(c, kind, cell->run)) != WEIR_EXIT_OK)
        return code;
    if (weir_run_hook_object(cell->run, &reader, cell, &err) != WEIR_OK ||
        weir_run_prepare(cell->run, 0, &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    return WEIR_EXIT_OK;
}

int weir_collapse_open(weir_collapse *c)
{
    c->rows = calloc((size_t)c->a->session.run.batch, (size_t)c->s.info->C * sizeof *c->rows);
    c->singular = calloc((size_t)c->a->singular + 1, sizeof *c->singular);
    if (!c->rows || !c->singular)
        return weir_cli_error(c->cli, "out of memory");
    for (int i = 0; i < WEIR_COLLAPSE_KINDS; i++)
        for (int j = 0; j < WEIR_COLLAPSE_CELLS; j++) {
            const int code = is_wanted(c, i, j) ? open_cell(c, i, j) : WEIR_EXIT_OK;
            if (code != WEIR_EXIT_OK)
                return code;
        }
    return WEIR_EXIT_OK;
}

static void count_windows(weir_collapse *c, const weir_batch *b)
{
    int64_t row = 0;
    for (int64_t i = 0; i < b->n_seq; i++) {
        int64_t kept = 0;
        for (int64_t end = row + b->seq[i].n, k = 0; k < b->kept.n; k++)
            kept += b->kept_row[k] >= row && b->kept_row[k] < end;
        row += b->seq[i].n;
        c->windows += kept > 1;
        c->short_ones += kept == 1;
    }
    c->rows_seen += b->kept.n;
}

weir_status weir_collapse_forward(weir_collapse *c, const weir_batch *b, weir_err *err)
{
    count_windows(c, b);
    for (int i = 0; i < WEIR_COLLAPSE_KINDS; i++)
        for (int j = 0; j < WEIR_COLLAPSE_CELLS; j++) {
            weir_run *run = c->cell[i][j].run;
            const weir_status s = run ? weir_run_forward(run, b->seq, b->n_seq, 0, err) : WEIR_OK;
            if (s != WEIR_OK)
                return s;
        }
    return WEIR_OK;
}

const weir_collapse_cell *weir_collapse_main(const weir_collapse *c)
{
    const weir_collapse_cell *trained = &c->cell[WEIR_COLLAPSE_TRAINED][WEIR_COLLAPSE_WHOLE];
    return trained->run ? trained : &c->cell[WEIR_COLLAPSE_RANDOM][WEIR_COLLAPSE_WHOLE];
}

weir_status weir_collapse_finish(weir_collapse *c, FILE *out, weir_err *err)
{
    for (int i = 0; i < WEIR_COLLAPSE_KINDS; i++)
        for (int j = 0; j < WEIR_COLLAPSE_CELLS; j++) {
            const weir_collapse_cell *cell = &c->cell[i][j];
            FILE *to = cell == weir_collapse_main(c) ? out : NULL;
            const weir_status s = cell->run ? weir_run_finish(cell->run, to, err) : WEIR_OK;
            if (s != WEIR_OK)
                return s;
        }
    return WEIR_OK;
}

void weir_collapse_close(weir_collapse *c)
{
    for (int i = 0; i < WEIR_COLLAPSE_KINDS; i++)
        for (int j = 0; j < WEIR_COLLAPSE_CELLS; j++) {
            weir_attach_free(&c->cell[i][j].attach);
            weir_run_free(c->cell[i][j].run);
            free(c->cell[i][j].line);
            free(c->cell[i][j].sums);
        }
    for (int i = 0; i < WEIR_COLLAPSE_KINDS; i++)
        weir_collapse_probe_close(&c->probe[i]);
    free(c->rows);
    free(c->singular);
    weir_model_free(c->random);
}

/* --- means */

double weir_collapse_mean(const weir_collapse_line *l, double sum)
{
    return l->windows ? sum / (double)l->windows : NAN;
}

static double share(const weir_collapse_cell *cell, int64_t line)
{
    return weir_collapse_mean(&cell->line[line], cell->line[line].composite_share);
}

double weir_collapse_order(const weir_collapse *c, const weir_collapse_cell *cell, int64_t line)
{
    if (line < 1 || line >= c->s.info->L)
        return NAN;
    const double before = log(share(cell, line) / share(cell, line - 1));
    const double after = log(share(cell, line + 1) / share(cell, line));
    return before < 0 && isfinite(after) ? after / before : NAN;
}

/* Text and TSV. */
#include <math.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "collapse.h"

/* --- TSV */

static void put_tsv_line(const weir_collapse *c, int kind, int i, int64_t line)
{
    const weir_collapse_cell *cell = &c->cell[kind][i];
    const weir_collapse_line *l = &cell->line[line];
    const double of[] = {l->composite_share, l->frobenius_share, l->cosine,        l->composite,
                         l->composite_rest,  l->frobenius,       l->frobenius_rest};
    fprintf(c->out, "%s\t%s\t%lld\t%lld\t%lld", weir_collapse_kinds[kind], weir_collapse_cells[i], (long long)line,
            (long long)l->windows, (long long)l->lost);
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        fprintf(c->out, "\t%.9g", weir_collapse_mean(l, of[k]));
    fprintf(c->out, "\t%.9g", weir_collapse_order(c, cell, line));
    for (int64_t k = 0; k < 2 * c->a->singular; k++)
        fprintf(c->out, "\t%.9g", weir_collapse_mean(l, l->value[k]));
}

/* The columns of the probes, on the lines of the layers of the whole model: line l + 1 is behind layer l. */
static const char probe_head[] =
    "\theads_outside\theads\tleast_weight\tattention_outside\tattention_points\tmlp_outside\t"
    "mlp_points\tlipschitz\tlipschitz_mean\titerations\tresidual";

static void put_tsv_probe(const weir_collapse *c, int kind, int64_t layer)
{
    const weir_collapse_probe *p = &c->probe[kind];
    if (p->hull) {
        const weir_hull_layer *h = weir_hull_of(p->hull, layer);
        fprintf(c->out, "\t%lld\t%lld\t%.9g\t%lld\t%lld\t%lld\t%lld", (long long)h->heads.outside,
                (long long)h->heads.points, h->least, (long long)h->attention.outside, (long long)h->attention.points,
                (long long)h->mlp.outside, (long long)h->mlp.points);
    } else {
        fputs("\t\t\t\t\t\t\t", c->out);
    }
    double mean;
    const weir_lipschitz *s = p->x ? weir_collapse_widest(c, kind, layer, &mean) : NULL;
    if (s)
        fprintf(c->out, "\t%.9g\t%.9g\t%lld\t%.3g", s->factor, mean, (long long)s->iterations, s->residual);
    else
        fputs("\t\t\t\t", c->out);
}

static void put_tsv(const weir_collapse *c)
{
    fputs("weights\tcell\tlayer\twindows\tlost\trelative\trelative_fro\tcosine\tnorm\trest\tnorm_fro\trest_fro\torder",
          c->out);
    for (int64_t k = 0; k < 2 * c->a->singular; k++)
        fprintf(c->out, "\t%s%lld", k < c->a->singular ? "sv" : "rest_sv", (long long)(k % c->a->singular + 1));
    fputs(probe_head, c->out);
    fputc('\n', c->out);
    for (int kind = 0; kind < WEIR_COLLAPSE_KINDS; kind++)
        for (int i = 0; i < WEIR_COLLAPSE_CELLS; i++)
            for (int64_t l = 0; c->cell[kind][i].run && l <= c->s.info->L; l++) {
                put_tsv_line(c, kind, i, l);
                if (i == WEIR_COLLAPSE_WHOLE && l > 0)
                    put_tsv_probe(c, kind, l - 1);
                else
                    fputs("\t\t\t\t\t\t\t\t\t\t\t", c->out);
                fputc('\n', c->out);
            }
}

/* --- text */

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* Eight signs a decade: 1 is a whole bar of 40 signs, 1e-5 and below none. */
static void put_bar(FILE *out, double share)
{
    enum { BAR = 40, DECADES = 5 };
    weir_put_bar(out, isfinite(share) && share > 0 ? 1 + log10(share) / DECADES : 0, BAR);
    fputc('\n', out);
}

static void put_cell(const weir_collapse *c, int kind, int i)
{
    const weir_collapse_cell *cell = &c->cell[kind][i];
    fprintf(c->out, "\n%s weights, %s%s\n", weir_collapse_kinds[kind], weir_collapse_cells[i],
            c->a->no_norms ? ", no norms" : "");
    fprintf(c->out, "%-5s %10s %10s %8s %6s", "", "relative", "Frobenius", "cosine", "order");
    for (int64_t k = 0; k < 2 && k < c->a->singular; k++)
        fprintf(c->out, " %9s%lld", "singular ", (long long)k + 1);
    fputs("  relative, a decade is 8 signs\n", c->out);
    for (int64_t line = 0; line <= c->s.info->L; line++) {
        const weir_collapse_line *l = &cell->line[line];
        char a[32], b[32], o[32], name[24], s[32];
        const double share = weir_collapse_mean(l, l->composite_share), order = weir_collapse_order(c, cell, line);
        snprintf(name, sizeof name, line < c->s.info->L ? "L%lld" : "out", (long long)line);
        fprintf(c->out, "%-5s %10s %10s %8.4f %6s", name, weir_rounded(share, 4, false, a),
                weir_rounded(weir_collapse_mean(l, l->frobenius_share), 4, false, b), weir_collapse_mean(l, l->cosine),
                isnan(order) ? "" : weir_rounded(order, 3, false, o));
        for (int64_t k = 0; k < 2 && k < c->a->singular; k++)
            fprintf(c->out, " %10s", weir_rounded(weir_collapse_mean(l, l->value[k]), 4, false, s));
        fputs("  ", c->out);
        put_bar(c->out, share);
    }
}

static double part(int64_t n, int64_t of)
{
    return of ? 100 * (double)n / (double)of : NAN;
}

static void put_hull(const weir_collapse *c, int kind)
{
    fprintf(c->out, "\n%s weights: who is outside the hull of what it was made of, along %lld directions\n",
            weir_collapse_kinds[kind], (long long)c->a->directions);
    fprintf(c->out, "%-5s %22s %12s %14s %14s\n", "", "heads, of their values", "least weight", "attention's rows",
            "MLP's rows");
    for (int64_t l = 0; l < c->s.info->L; l++) {
        const weir_hull_layer *h = weir_hull_of(c->probe[kind].hull, l);
        char outside[32], points[32];
        fprintf(c->out, "L%-4lld %9s of %9s %12.3g", (long long)l, weir_commas(h->heads.outside, outside),
                weir_commas(h->heads.points, points), h->least);
        if (h->attention.points)
            fprintf(c->out, " %14.1f %%", part(h->attention.outside, h->attention.points));
        else
            fprintf(c->out, " %16s", "none");
        fprintf(c->out, " %12.1f %%\n", part(h->mlp.outside, h->mlp.points));
    }
}

static void put_stretches(const weir_collapse *c, int kind)
{
    const weir_collapse_probe *p = &c->probe[kind];
    fprintf(c->out, "\n%s weights: no Lipschitz constant of the MLP is below the largest |J|_2, here of %lld tokens\n",
            weir_collapse_kinds[kind], (long long)p->n);
    fprintf(c->out, "%-5s %10s %10s %10s %10s\n", "", "largest", "mean", "iterations", "residual");
    for (int64_t l = 0; l < c->s.info->L; l++) {
        double mean;
        char a[32], b[32], r[32];
        const weir_lipschitz *s = weir_collapse_widest(c, kind, l, &mean);
        if (s)
            fprintf(c->out, "L%-4lld %10s %10s %10lld %10s\n", (long long)l, weir_rounded(s->factor, 4, false, a),
                    weir_rounded(mean, 4, false, b), (long long)s->iterations, weir_rounded(s->residual, 2, false, r));
        else
            fprintf(c->out, "L%-4lld no token is finite\n", (long long)l);
    }
}

static bool shows_grid(const weir_collapse *c)
{
    return c->a->what == WEIR_COLLAPSE_ALL || c->a->what == WEIR_COLLAPSE_GRID;
}

static void put_text(const weir_collapse *c)
{
    char windows[32], rows[32];
    weir_put_printable(c->out, c->s.info->name, 0);
    fprintf(c->out, ": how alike the rows are, %s window%s, %s row%s%s\n", weir_commas(c->windows, windows),
            plural(c->windows), weir_commas(c->rows_seen, rows), plural(c->rows_seen), c->s.bos ? ", BOS first" : "");
    if (shows_grid(c))
        fputs("relative: distance from equal rows as a part of the whole; 0: all are equal. order: of its way to 0,\n"
              "1 at a rate, 3 where each layer cubes it\n",
              c->out);
    for (int kind = 0; kind < WEIR_COLLAPSE_KINDS; kind++)
        for (int i = 0; i < WEIR_COLLAPSE_CELLS; i++)
            if (shows_grid(c) && c->cell[kind][i].run)
                put_cell(c, kind, i);
    for (int kind = 0; kind < WEIR_COLLAPSE_KINDS; kind++) {
        if (c->probe[kind].hull)
            put_hull(c, kind);
        if (c->probe[kind].x)
            put_stretches(c, kind);
    }
}

void weir_collapse_put(const weir_collapse *c)
{
    if (c->a->format == WEIR_COLLAPSE_TSV)
        put_tsv(c);
    else
        put_text(c);
}

/* sparsity/text.c: text for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "sparsity.h"

void weir_sparsity_name(const weir_sparsing *t, int line, char buf[64])
{
    const weir_point *p = weir_sparsity_line_of(t->stats, line).point;
    const char *site = strrchr(p->name, '.');
    site = site ? site + 1 : p->name;
    if (strncmp(site, "hook_", 5) == 0)
        site += 5;
    if (p->layer < 0)
        snprintf(buf, 64, "%.60s", p->name);
    else if (strcmp(t->a->sites, "post") == 0)
        snprintf(buf, 64, "L%d", p->layer);
    else
        snprintf(buf, 64, "L%d %.48s", p->layer, site);
}

double weir_sparsity_at_cett(const weir_sparsing *t, int line, double most)
{
    int64_t n;
    const weir_sparsity_point *p = weir_sparsity_curve(t->stats, line, &n);
    double share = n ? 0 : NAN;
    for (int64_t i = 0; i < n && p[i].cett <= most; i++)
        share = p[i].share;
    return share;
}

static double per_value(const weir_sparsity_line *l, int64_t count)
{
    return (double)count / ((double)l->rows * (double)l->point->width);
}

/* A share as per cent; a dash where there is none. */
static void put_share(FILE *out, double share)
{
    if (isnan(share))
        fprintf(out, " %8s", "-");
    else
        fprintf(out, " %7.2f%%", 100 * share);
}

static void put_bar(FILE *out, double share)
{
    fputs("  ", out);
    weir_put_bar(out, share, 10);
}

static int columns(const weir_sparsing *t)
{
    int widest = 5;
    char name[64];
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        weir_sparsity_name(t, i, name);
        widest = (int)strlen(name) > widest ? (int)strlen(name) : widest;
    }
    return widest;
}

static void put_name(const weir_sparsing *t, int line, int wide)
{
    char name[64];
    weir_sparsity_name(t, line, name);
    fprintf(t->out, "%-*s", wide, name);
}

/* --- values: zeros, shares below thresholds, shape */

static void put_moment(FILE *out, double x)
{
    isnan(x) ? fprintf(out, " %10s", "-") : fprintf(out, " %10.4g", x);
}

static void put_values(const weir_sparsing *t, int wide)
{
    char head[32];
    fprintf(t->out, "Values\n%-*s %8s", wide, "", "zero");
    for (int k = 0; k < t->n_below; k++) {
        snprintf(head, sizeof head, "<%g", t->below[k]);
        if (t->below[k] > 0)
            fprintf(t->out, " %8s", head);
    }
    fprintf(t->out, " %10s %10s %8s  zeros\n", "sd", "kurtosis", "Hoyer");
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        const weir_sparsity_line l = weir_sparsity_line_of(t->stats, i);
        put_name(t, i, wide);
        put_share(t->out, per_value(&l, l.zeros));
        for (int k = 0; k < t->n_below; k++)
            if (t->below[k] > 0)
                put_share(t->out, per_value(&l, weir_sparsity_active_of(t->stats, i, k).small));
        put_moment(t->out, l.sd);
        put_moment(t->out, l.kurtosis);
        isnan(l.hoyer) ? fprintf(t->out, " %8s", "-") : fprintf(t->out, " %8.4f", l.hoyer);
        put_bar(t->out, per_value(&l, l.zeros));
        fputc('\n', t->out);
    }
}

/* --- thresholds */

static void put_cuts(const weir_sparsing *t, int wide, bool gate)
{
    fprintf(t->out, "\n%s\n%-*s",
            gate ? "CATS: |act(gate)| below which this share lies"
                 : "TEAL: |x| below which this share of the values lies",
            wide, "");
    for (int k = 0; k < t->n_shares; k++)
        fprintf(t->out, " %10.4g%%", 100 * t->share[k]);
    fputc('\n', t->out);
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        put_name(t, i, wide);
        for (int k = 0; k < t->n_shares; k++) {
            const weir_sparsity_cut c = weir_sparsity_cut_of(t->stats, i, t->share[k], gate);
            if (isnan(c.edge))
                fprintf(t->out, " %11s", "-");
            else
                fprintf(t->out, " %11.4g", c.edge);
        }
        fputc('\n', t->out);
    }
}

/* --- active neurons */

static bool put_active(const weir_sparsing *t, int wide)
{
    weir_err err = {0};
    char head[32];
    const double below = t->below[t->active];
    fprintf(t->out,
            "\nActive neurons (%s%g): how many a token has, what two tokens in a row share; over the text: dead,\n"
            "always on, share of all firings that the most active ones have\n%-*s",
            below > 0 ? "|x| >= " : "x != ", below, wide, "");
    fprintf(t->out, " %7s %7s %7s %7s %7s %9s %7s %7s", "width", "least", "median", "95 %", "most", "overlap", "dead",
            "always");
    for (int k = 0; k < t->n_hot; k++) {
        snprintf(head, sizeof head, "top %g%%", 100 * t->hot[k]);
        fprintf(t->out, " %8s", head);
    }
    fputc('\n', t->out);
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        const weir_sparsity_active a = weir_sparsity_active_of(t->stats, i, t->active);
        put_name(t, i, wide);
        fprintf(t->out, " %7lld %7lld %7lld %7lld %7lld %9.4f %7lld %7lld",
                (long long)weir_sparsity_line_of(t->stats, i).point->width, (long long)a.l0[0], (long long)a.l0[3],
                (long long)a.l0[5], (long long)a.l0[6], a.jaccard, (long long)a.dead, (long long)a.always);
        for (int k = 0; k < t->n_hot; k++) {
            double share;
            if (weir_sparsity_hot(t->stats, i, t->active, t->hot[k], &share, &err) != WEIR_OK)
                return false;
            put_share(t->out, share);
        }
        fputc('\n', t->out);
    }
    return true;
}

/* --- what an output loses */

static void put_cett(const weir_sparsing *t, int wide)
{
    static const double most[] = {0.01, 0.05, 0.1, 0.2, 0.5};
    int64_t n = 0, any = 0;
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        weir_sparsity_curve(t->stats, i, &n);
        any += n;
    }
    if (!any)
        return;
    fprintf(t->out, "\nNeurons that can be left out, if the MLP's output is to lose at most (CETT)\n%-*s", wide, "");
    for (size_t k = 0; k < sizeof most / sizeof *most; k++)
        fprintf(t->out, " %8g", most[k]);
    fprintf(t->out, "  at 0.2\n");
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        put_name(t, i, wide);
        for (size_t k = 0; k < sizeof most / sizeof *most; k++)
            put_share(t->out, weir_sparsity_at_cett(t, i, most[k]));
        put_bar(t->out, weir_sparsity_at_cett(t, i, 0.2));
        fputc('\n', t->out);
    }
}

static void put_losses(const weir_sparsing *t)
{
    char a[32], b[32], c[32], n[32];
    const double asked = weir_sparsity_loss(t, WEIR_SPARSITY_ASKED), plain = weir_sparsity_loss(t, WEIR_SPARSITY_PLAIN);
    fprintf(t->out, "%-14s %12s %12s %12s\n", "", "changed", "plain", "difference");
    fprintf(t->out, "%-14s %12s %12s %12s  nats a token, %s scored\n", "loss", weir_rounded(asked, 6, false, a),
            weir_rounded(plain, 6, false, b), weir_rounded(asked - plain, 6, true, c), weir_commas(t->tokens, n));
    fprintf(t->out, "%-14s %12s %12s %12s\n\n", "perplexity", weir_rounded(exp(asked), 6, false, a),
            weir_rounded(exp(plain), 6, false, b), weir_rounded(exp(asked) - exp(plain), 6, true, c));
}

bool weir_sparsity_put_text(const weir_sparsing *t)
{
    char n[32];
    const int wide = columns(t);
    weir_put_printable(t->out, t->s.info->name, 0);
    fprintf(t->out, ": sparsity over %s tokens", weir_commas(weir_sparsity_line_of(t->stats, 0).rows, n));
    if (t->a->act)
        fprintf(t->out, ", with %s in place of its activation", t->s.act->name);
    if (t->a->mask) {
        fputs(", masked by ", t->out);
        weir_put_printable(t->out, t->a->mask, 0);
    }
    fputs("\n\n", t->out);
    if (t->arms)
        put_losses(t);
    put_values(t, wide);
    put_cuts(t, wide, false);
    if (t->s.info->gated && !isnan(weir_sparsity_cut_of(t->stats, 0, 0.5, true).edge))
        put_cuts(t, wide, true);
    if (!put_active(t, wide))
        return false;
    put_cett(t, wide);
    return true;
}

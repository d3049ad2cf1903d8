/* sparsity/data.c: TSV and JSON. */
#include <math.h>
#include <stdlib.h>

#include "sparsity.h"

static const char *const quantile_key[WEIR_SPARSITY_QUANTILES] = {"l0_min", "l0_05", "l0_25", "l0_50",
                                                                  "l0_75",  "l0_95", "l0_max"};

static void put_place(const weir_sparsing *t, const weir_point *p)
{
    fprintf(t->out, "%d\t%s", p->layer, p->name);
}

/* --- TSV */

static void put_lines_tsv(const weir_sparsing *t)
{
    fputs("layer\thook\trows\tlost\twidth\tzeros\tmean\tsd\tkurtosis\thoyer\tleft_out_at_cett_0.2", t->out);
    for (int k = 0; k < t->n_shares; k++)
        fprintf(t->out, "\tteal_%g\tteal_%g_small", t->share[k], t->share[k]);
    for (int k = 0; t->s.info->gated && k < t->n_shares; k++)
        fprintf(t->out, "\tcats_%g\tcats_%g_small", t->share[k], t->share[k]);
    fputc('\n', t->out);
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        const weir_sparsity_line l = weir_sparsity_line_of(t->stats, i);
        put_place(t, l.point);
        fprintf(t->out, "\t%lld\t%lld\t%lld\t%lld\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g", (long long)l.rows,
                (long long)l.lost, (long long)l.point->width, (long long)l.zeros, l.mean, l.sd, l.kurtosis, l.hoyer,
                weir_sparsity_at_cett(t, i, 0.2));
        for (int k = 0; k < t->n_shares * (1 + t->s.info->gated); k++) {
            const weir_sparsity_cut c = weir_sparsity_cut_of(t->stats, i, t->share[k % t->n_shares], k >= t->n_shares);
            fprintf(t->out, "\t%.9g\t%lld", c.edge, (long long)c.small);
        }
        fputc('\n', t->out);
    }
}

static bool put_active_tsv(const weir_sparsing *t)
{
    weir_err err = {0};
    fputs("layer\thook\tbelow\tsmall\tdead\talways", t->out);
    for (int q = 0; q < WEIR_SPARSITY_QUANTILES; q++)
        fprintf(t->out, "\t%s", quantile_key[q]);
    fputs("\tpairs\tjaccard", t->out);
    for (int k = 0; k < t->n_hot; k++)
        fprintf(t->out, "\thot_%g", t->hot[k]);
    fputc('\n', t->out);
    for (int i = 0; i < weir_sparsity_lines(t->stats) * t->n_below; i++) {
        const int line = i / t->n_below, at = i % t->n_below;
        const weir_sparsity_active a = weir_sparsity_active_of(t->stats, line, at);
        put_place(t, weir_sparsity_line_of(t->stats, line).point);
        fprintf(t->out, "\t%.9g\t%lld\t%lld\t%lld", a.below, (long long)a.small, (long long)a.dead,
                (long long)a.always);
        for (int q = 0; q < WEIR_SPARSITY_QUANTILES; q++)
            fprintf(t->out, "\t%lld", (long long)a.l0[q]);
        fprintf(t->out, "\t%lld\t%.17g", (long long)a.pairs, a.jaccard);
        for (int k = 0; k < t->n_hot; k++) {
            double share;
            if (weir_sparsity_hot(t->stats, line, at, t->hot[k], &share, &err) != WEIR_OK)
                return false;
            fprintf(t->out, "\t%.17g", share);
        }
        fputc('\n', t->out);
    }
    return true;
}

static void put_cett_tsv(const weir_sparsing *t)
{
    fputs("layer\thook\tedge\tshare\tcett\n", t->out);
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        int64_t n;
        const weir_sparsity_point *p = weir_sparsity_curve(t->stats, i, &n);
        for (int64_t k = 0; k < n; k++) {
            put_place(t, weir_sparsity_line_of(t->stats, i).point);
            fprintf(t->out, "\t%.9g\t%.17g\t%.17g\n", p[k].edge, p[k].share, p[k].cett);
        }
    }
}

static void put_neurons_tsv(const weir_sparsing *t)
{
    fputs("layer\thook\tneuron\trows", t->out);
    for (int k = 0; k < t->n_below; k++)
        fprintf(t->out, "\tactive_%g", t->below[k]);
    fputc('\n', t->out);
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        const weir_sparsity_line l = weir_sparsity_line_of(t->stats, i);
        for (int64_t f = 0; f < l.point->width; f++) {
            put_place(t, l.point);
            fprintf(t->out, "\t%lld\t%lld", (long long)f, (long long)l.rows);
            for (int k = 0; k < t->n_below; k++)
                fprintf(t->out, "\t%lld", (long long)weir_sparsity_counts(t->stats, i, k)[f]);
            fputc('\n', t->out);
        }
    }
}

bool weir_sparsity_put_tsv(const weir_sparsing *t)
{
    switch (t->a->per) {
    case WEIR_SPARSITY_PER_ACTIVE:
        return put_active_tsv(t);
    case WEIR_SPARSITY_PER_CETT:
        put_cett_tsv(t);
        return true;
    case WEIR_SPARSITY_PER_NEURON:
        put_neurons_tsv(t);
        return true;
    default:
        put_lines_tsv(t);
        return true;
    }
}

/* --- JSON */

static void put_cuts(const weir_sparsing *t, weir_jsonw *w, int line, bool gate)
{
    weir_jsonw_key(w, gate ? "cats" : "teal");
    weir_jsonw_array(w);
    for (int k = 0; k < t->n_shares; k++) {
        const weir_sparsity_cut c = weir_sparsity_cut_of(t->stats, line, t->share[k], gate);
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, "share", t->share[k]);
        weir_jsonw_key_double(w, "threshold", c.edge);
        weir_jsonw_key_int(w, "small", c.small);
        weir_jsonw_key_int(w, "values", c.values);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static bool put_active(const weir_sparsing *t, weir_jsonw *w, int line, int at)
{
    weir_err err = {0};
    const weir_sparsity_active a = weir_sparsity_active_of(t->stats, line, at);
    weir_jsonw_object(w);
    weir_jsonw_key(w, "below");
    weir_jsonw_float(w, (float)a.below);
    weir_jsonw_key_int(w, "small", a.small);
    weir_jsonw_key_int(w, "dead", a.dead);
    weir_jsonw_key_int(w, "always", a.always);
    for (int q = 0; q < WEIR_SPARSITY_QUANTILES; q++)
        weir_jsonw_key_int(w, quantile_key[q], a.l0[q]);
    weir_jsonw_key_int(w, "pairs", a.pairs);
    weir_jsonw_key_double(w, "jaccard", a.jaccard);
    weir_jsonw_key(w, "hot");
    weir_jsonw_array(w);
    for (int k = 0; k < t->n_hot; k++) {
        double share;
        if (weir_sparsity_hot(t->stats, line, at, t->hot[k], &share, &err) != WEIR_OK)
            return false;
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, "neurons", t->hot[k]);
        weir_jsonw_key_double(w, "firings", share);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
    return true;
}

static void put_curve(const weir_sparsing *t, weir_jsonw *w, int line)
{
    int64_t n;
    const weir_sparsity_point *p = weir_sparsity_curve(t->stats, line, &n);
    if (!n)
        return;
    weir_jsonw_key_double(w, "left_out_at_cett_0.2", weir_sparsity_at_cett(t, line, 0.2));
    weir_jsonw_key(w, "sample");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < weir_sparsity_sampled(t->stats, line); i++) {
        int64_t doc, pos;
        weir_sparsity_sample_at(t->stats, line, i, &doc, &pos);
        weir_jsonw_array(w);
        weir_jsonw_int(w, doc);
        weir_jsonw_int(w, pos);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_key(w, "cett");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, "edge", p[i].edge);
        weir_jsonw_key_double(w, "share", p[i].share);
        weir_jsonw_key_double(w, "cett", p[i].cett);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static bool put_line(const weir_sparsing *t, weir_jsonw *w, int line)
{
    const weir_sparsity_line l = weir_sparsity_line_of(t->stats, line);
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "hook", l.point->name);
    weir_jsonw_key_int(w, "layer", l.point->layer);
    weir_jsonw_key_int(w, "rows", l.rows);
    weir_jsonw_key_int(w, "lost", l.lost);
    weir_jsonw_key_int(w, "width", l.point->width);
    weir_jsonw_key_int(w, "zeros", l.zeros);
    weir_jsonw_key_double(w, "mean", l.mean);
    weir_jsonw_key_double(w, "sd", l.sd);
    weir_jsonw_key_double(w, "kurtosis", l.kurtosis);
    weir_jsonw_key_double(w, "hoyer", l.hoyer);
    put_cuts(t, w, line, false);
    if (!isnan(weir_sparsity_cut_of(t->stats, line, 0.5, true).edge))
        put_cuts(t, w, line, true);
    weir_jsonw_key(w, "active");
    weir_jsonw_array(w);
    for (int k = 0; k < t->n_below; k++)
        if (!put_active(t, w, line, k))
            return false;
    weir_jsonw_end(w);
    put_curve(t, w, line);
    weir_jsonw_end(w);
    return true;
}

static void put_change(const weir_sparsing *t, weir_jsonw *w)
{
    weir_jsonw_key_cstr(w, "act", t->s.act ? t->s.act->name : NULL);
    weir_jsonw_key_cstr(w, "mask", t->a->mask);
    if (t->cut) {
        weir_jsonw_key(w, "mask_below");
        weir_jsonw_array(w);
        for (int64_t l = 0; l < t->s.info->L; l++)
            weir_jsonw_double(w, t->cut[l]);
        weir_jsonw_end(w);
    }
    weir_jsonw_key(w, "interventions");
    weir_attach_write(&t->s.attach, w);
    if (!t->arms)
        return;
    weir_jsonw_key_int(w, "tokens", t->tokens);
    weir_jsonw_key_int(w, "unscored", t->unscored);
    weir_jsonw_key_double(w, "loss", weir_sparsity_loss(t, WEIR_SPARSITY_ASKED));
    weir_jsonw_key_double(w, "plain_loss", weir_sparsity_loss(t, WEIR_SPARSITY_PLAIN));
}

bool weir_sparsity_put_json(const weir_sparsing *t)
{
    weir_jsonw w;
    weir_jsonw_init(&w, t->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-sparsity");
    weir_jsonw_key_cstr(&w, "model", t->s.info->name);
    weir_jsonw_key_bool(&w, "bos", t->s.bos);
    weir_jsonw_key_bool(&w, "gated", t->s.info->gated);
    put_change(t, &w);
    weir_jsonw_key(&w, "lines");
    weir_jsonw_array(&w);
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++)
        if (!put_line(t, &w, i))
            return false;
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    fputc('\n', t->out);
    return true;
}

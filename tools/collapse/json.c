/* JSON: one object. */
#include "collapse.h"

static void put_values(weir_jsonw *w, const char *key, const weir_collapse_line *l, const double *sum, int64_t n)
{
    weir_jsonw_key(w, key);
    weir_jsonw_array(w);
    for (int64_t k = 0; k < n; k++)
        weir_jsonw_double(w, weir_collapse_mean(l, sum[k]));
    weir_jsonw_end(w);
}

static void put_line(const weir_collapse *c, weir_jsonw *w, const weir_collapse_cell *cell, int64_t line)
{
    const weir_collapse_line *l = &cell->line[line];
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "layer", line);
    weir_jsonw_key_int(w, "windows", l->windows);
    weir_jsonw_key_int(w, "lost", l->lost);
    weir_jsonw_key_double(w, "relative", weir_collapse_mean(l, l->composite_share));
    weir_jsonw_key_double(w, "relative_fro", weir_collapse_mean(l, l->frobenius_share));
    weir_jsonw_key_double(w, "cosine", weir_collapse_mean(l, l->cosine));
    weir_jsonw_key_double(w, "norm", weir_collapse_mean(l, l->composite));
    weir_jsonw_key_double(w, "rest", weir_collapse_mean(l, l->composite_rest));
    weir_jsonw_key_double(w, "norm_fro", weir_collapse_mean(l, l->frobenius));
    weir_jsonw_key_double(w, "rest_fro", weir_collapse_mean(l, l->frobenius_rest));
    weir_jsonw_key_double(w, "order", weir_collapse_order(c, cell, line));
    put_values(w, "singular", l, l->value, c->a->singular);
    put_values(w, "rest_singular", l, l->rest, c->a->singular);
    weir_jsonw_end(w);
}

static void put_kind(const weir_collapse *c, weir_jsonw *w, int kind)
{
    weir_jsonw_object(w);
    for (int i = 0; i < WEIR_COLLAPSE_CELLS; i++) {
        if (!c->cell[kind][i].run)
            continue;
        weir_jsonw_key(w, weir_collapse_cells[i]);
        weir_jsonw_array(w);
        for (int64_t l = 0; l <= c->s.info->L; l++)
            put_line(c, w, &c->cell[kind][i], l);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_count(weir_jsonw *w, const char *key, const weir_hull_count *n)
{
    weir_jsonw_key(w, key);
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "points", n->points);
    weir_jsonw_key_int(w, "outside", n->outside);
    weir_jsonw_key_int(w, "pairs", n->pairs);
    weir_jsonw_key_int(w, "beyond", n->beyond);
    weir_jsonw_end(w);
}

static void put_hull(weir_jsonw *w, const weir_hull_layer *h)
{
    weir_jsonw_object(w);
    put_count(w, "heads", &h->heads);
    put_count(w, "attention", &h->attention);
    put_count(w, "mlp", &h->mlp);
    weir_jsonw_key_double(w, "least_weight", h->least);
    weir_jsonw_key_double(w, "sum_off_one", h->off);
    weir_jsonw_end(w);
}

static void put_stretch(const weir_collapse *c, weir_jsonw *w, int kind, int64_t layer)
{
    double mean;
    const weir_collapse_probe *p = &c->probe[kind];
    const weir_lipschitz *first = p->stretch + layer * c->a->tokens, *s = weir_collapse_widest(c, kind, layer, &mean);
    weir_jsonw_object(w);
    weir_jsonw_key_double(w, "largest", s ? s->factor : mean);
    weir_jsonw_key_double(w, "mean", mean);
    weir_jsonw_key(w, "tokens");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < p->n; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "doc", p->at[i].doc);
        weir_jsonw_key_int(w, "pos", p->at[i].pos);
        weir_jsonw_key_int(w, "id", p->at[i].id);
        weir_jsonw_key_double(w, "factor", first[i].factor);
        weir_jsonw_key_int(w, "iterations", first[i].iterations);
        weir_jsonw_key_double(w, "residual", first[i].residual);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

/* An object with an array of layers for each kind of weights. */
static void put_probes(const weir_collapse *c, weir_jsonw *w, bool hull)
{
    weir_jsonw_key(w, hull ? "hull" : "lipschitz");
    weir_jsonw_object(w);
    for (int kind = 0; kind < WEIR_COLLAPSE_KINDS; kind++) {
        const weir_collapse_probe *p = &c->probe[kind];
        if (hull ? !p->hull : !p->x)
            continue;
        weir_jsonw_key(w, weir_collapse_kinds[kind]);
        weir_jsonw_array(w);
        for (int64_t l = 0; l < c->s.info->L; l++)
            if (hull)
                put_hull(w, weir_hull_of(p->hull, l));
            else
                put_stretch(c, w, kind, l);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

void weir_collapse_put_json(const weir_collapse *c)
{
    weir_jsonw w;
    weir_jsonw_init(&w, c->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-collapse");
    weir_jsonw_key_cstr(&w, "model", c->s.info->name);
    weir_jsonw_key_bool(&w, "bos", c->s.bos);
    weir_jsonw_key_int(&w, "rows", c->rows_seen);
    weir_jsonw_key_int(&w, "windows", c->windows);
    weir_jsonw_key_int(&w, "windows_of_one_row", c->short_ones);
    weir_jsonw_key_bool(&w, "norms", !c->a->no_norms);
    weir_jsonw_key_int(&w, "seed", c->a->seed);
    weir_jsonw_key_double(&w, "deviation", c->a->deviation);
    weir_jsonw_key(&w, "grid");
    weir_jsonw_object(&w);
    for (int kind = 0; kind < WEIR_COLLAPSE_KINDS; kind++)
        if (c->cell[kind][WEIR_COLLAPSE_WHOLE].run) {
            weir_jsonw_key(&w, weir_collapse_kinds[kind]);
            put_kind(c, &w, kind);
        }
    weir_jsonw_end(&w);
    put_probes(c, &w, true);
    put_probes(c, &w, false);
    weir_jsonw_key(&w, "interventions");
    weir_attach_write(&weir_collapse_main(c)->attach, &w);
    weir_jsonw_end(&w);
    fputc('\n', c->out);
}

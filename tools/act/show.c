#include <math.h>

#include "act.h"

static void put_lowest(const weir_lowest *l, FILE *out)
{
    if (l->kind == WEIR_LOWEST_DIP)
        fprintf(out, "%.16g at x = %.16g", l->y, l->x);
    else if (l->kind == WEIR_LOWEST_FLAT)
        fprintf(out, "%g at every x <= %g", l->y, l->x);
    else if (l->kind == WEIR_LOWEST_LIMIT)
        fprintf(out, "%g, not reached, for x to minus infinity", l->y);
    else
        fputs("none: it falls without end", out);
}

/* --- text */

static void put_list_text(const weir_acting *t, FILE *out)
{
    fprintf(out, "%-11s %-17s %-14s %s\n", "", "lowest", "gated", "formula; where it is met");
    for (int i = 0; i < t->n; i++) {
        const weir_act_curve *c = &t->curve[i];
        char low[32];
        if (c->lowest.kind == WEIR_LOWEST_DIP)
            snprintf(low, sizeof low, "%.4f at %.3f", c->lowest.y, c->lowest.x);
        else
            snprintf(low, sizeof low, "%s", c->lowest.kind == WEIR_LOWEST_UNBOUNDED ? "-inf" : "0");
        fprintf(out, "%-11s %-17s %-14s %s; %s\n", c->f->name, low, c->f->gated, c->f->formula, c->f->met_in);
    }
}

static void put_kernel(float x, FILE *out)
{
    if (isnan(x))
        fprintf(out, " %13s", "-");
    else
        fprintf(out, " %13.9g", (double)x);
}

static void put_points_text(const weir_acting *t, const weir_act_curve *c, FILE *out)
{
    fprintf(out, "%10s %19s %19s %13s %13s\n", "x", "f(x)", "f'(x)", "kernel f", "kernel f'");
    for (int64_t i = 0; i < t->at.n; i++) {
        const weir_act_point *p = &c->point[i];
        fprintf(out, "%10.6g %19.12g %19.12g", p->x, p->y, p->slope);
        put_kernel(p->kernel, out);
        put_kernel(p->kernel_slope, out);
        fputc('\n', out);
    }
}

static void put_products_text(const weir_acting *t, const weir_act_curve *c, FILE *out)
{
    fprintf(out, "%10s %14s %10s %14s %13s\n", "gate", "f(gate)", "up", "product", "kernel");
    for (int64_t i = 0; i < t->gate.n; i++) {
        const weir_act_product *p = &c->product[i];
        fprintf(out, "%10.6g %14.9g %10.6g %14.9g", p->gate, p->opened, p->up, p->y);
        put_kernel(p->kernel, out);
        fputc('\n', out);
    }
}

static void put_curve_text(const weir_acting *t, const weir_act_curve *c, FILE *out)
{
    fprintf(out, "%s: %s; gated: %s; met in %s\nlowest ", c->f->name, c->f->formula, c->f->gated, c->f->met_in);
    put_lowest(&c->lowest, out);
    fputc('\n', out);
    if (t->against)
        fprintf(out, "differs from %s by at most %.9g on [%g, %g], at x = %.9g\n", t->against->name, c->apart,
                t->a->from, t->a->to, c->apart_at);
    if (t->a->gate)
        put_products_text(t, c, out);
    if (!t->a->gate && !t->against && !t->a->at)
        weir_act_plot(t, c, out);
    if (t->a->at || (!t->a->gate && !t->against))
        put_points_text(t, c, out);
}

/* --- TSV */

static void put_float(float x, FILE *out)
{
    if (!isnan(x))
        fprintf(out, "\t%.9g", (double)x);
    else
        fputs("\t", out);
}

static void put_list_tsv(const weir_acting *t, FILE *out)
{
    static const char *const kind[] = {"dip", "flat", "limit", "unbounded"};
    fputs("function\tformula\tgated\tmet_in\truns\tlowest\tlowest_x\tlowest_y\n", out);
    for (int i = 0; i < t->n; i++) {
        const weir_act_curve *c = &t->curve[i];
        fprintf(out, "%s\t%s\t%s\t%s\t%d\t%s\t%.17g\t%.17g\n", c->f->name, c->f->formula, c->f->gated, c->f->met_in,
                c->f->runs, kind[c->lowest.kind], c->lowest.x, c->lowest.y);
    }
}

static void put_tsv(const weir_acting *t, FILE *out)
{
    if (t->a->gate)
        fputs("function\tgate\tup\topened\tproduct\tkernel\n", out);
    else if (t->against)
        fputs("function\tagainst\tfrom\tto\tx\tdifference\n", out);
    else
        fputs("function\tx\tvalue\tslope\tkernel\tkernel_slope\n", out);
    for (int i = 0; i < t->n; i++) {
        const weir_act_curve *c = &t->curve[i];
        for (int64_t j = 0; t->a->gate && j < t->gate.n; j++) {
            const weir_act_product *p = &c->product[j];
            fprintf(out, "%s\t%.17g\t%.17g\t%.17g\t%.17g", c->f->name, p->gate, p->up, p->opened, p->y);
            put_float(p->kernel, out);
            fputc('\n', out);
        }
        for (int64_t j = 0; !t->a->gate && !t->against && j < t->at.n; j++) {
            const weir_act_point *p = &c->point[j];
            fprintf(out, "%s\t%.17g\t%.17g\t%.17g", c->f->name, p->x, p->y, p->slope);
            put_float(p->kernel, out);
            put_float(p->kernel_slope, out);
            fputc('\n', out);
        }
        if (!t->a->gate && t->against)
            fprintf(out, "%s\t%s\t%.17g\t%.17g\t%.17g\t%.17g\n", c->f->name, t->against->name, t->a->from, t->a->to,
                    c->apart_at, c->apart);
    }
}

/* --- JSON */

static void put_key_float(weir_jsonw *w, const char *key, float x)
{
    weir_jsonw_key(w, key);
    weir_jsonw_float(w, x);
}

static void put_lists_json(const weir_acting *t, const weir_act_curve *c, weir_jsonw *w)
{
    weir_jsonw_key(w, "points");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < t->at.n; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, "x", c->point[i].x);
        weir_jsonw_key_double(w, "value", c->point[i].y);
        weir_jsonw_key_double(w, "slope", c->point[i].slope);
        put_key_float(w, "kernel", c->point[i].kernel);
        put_key_float(w, "kernel_slope", c->point[i].kernel_slope);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_key(w, "products");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < t->gate.n; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, "gate", c->product[i].gate);
        weir_jsonw_key_double(w, "up", c->product[i].up);
        weir_jsonw_key_double(w, "opened", c->product[i].opened);
        weir_jsonw_key_double(w, "product", c->product[i].y);
        put_key_float(w, "kernel", c->product[i].kernel);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_curve_json(const weir_acting *t, const weir_act_curve *c, weir_jsonw *w)
{
    static const char *const kind[] = {"dip", "flat", "limit", "unbounded"};
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "name", c->f->name);
    weir_jsonw_key_cstr(w, "formula", c->f->formula);
    weir_jsonw_key_cstr(w, "gated", c->f->gated);
    weir_jsonw_key_cstr(w, "met_in", c->f->met_in);
    weir_jsonw_key_bool(w, "runs", c->f->runs);
    weir_jsonw_key(w, "lowest");
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "kind", kind[c->lowest.kind]);
    weir_jsonw_key_double(w, "x", c->lowest.x);
    weir_jsonw_key_double(w, "y", c->lowest.y);
    weir_jsonw_end(w);
    if (t->against) {
        weir_jsonw_key(w, "against");
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "name", t->against->name);
        weir_jsonw_key_double(w, "x", c->apart_at);
        weir_jsonw_key_double(w, "difference", c->apart);
        weir_jsonw_end(w);
    }
    if (!t->listed)
        put_lists_json(t, c, w);
    weir_jsonw_end(w);
}

static void put_json(const weir_acting *t, FILE *out)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-act");
    weir_jsonw_key_double(&w, "beta", t->a->beta);
    weir_jsonw_key(&w, "functions");
    weir_jsonw_array(&w);
    for (int i = 0; i < t->n; i++)
        put_curve_json(t, &t->curve[i], &w);
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    fputc('\n', out);
}

int weir_act_put(void *acting, FILE *out)
{
    const weir_acting *t = acting;
    if (t->a->out.json) {
        put_json(t, out);
    } else if (t->a->format == WEIR_ACT_TSV) {
        if (t->listed)
            put_list_tsv(t, out);
        else
            put_tsv(t, out);
    } else if (t->listed) {
        put_list_text(t, out);
    } else {
        for (int i = 0; i < t->n; i++) {
            if (i)
                fputc('\n', out);
            put_curve_text(t, &t->curve[i], out);
        }
    }
    return WEIR_EXIT_OK;
}

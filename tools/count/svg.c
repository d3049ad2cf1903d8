/* The picture: for each model a layer of every kind and the whole, heights in proportion to parameters. Beside a layer
 * runs the stream, with a tap where a sublayer reads from it and writes to it. */
#include <string.h>

#include "cli/progress.h"
#include "count.h"
#include "page/svg.h"

enum {
    TOP = 70,     /* where bars begin */
    HEIGHT = 440, /* of a bar */
    BAR = 70,     /* its width */
    PANEL = 336,  /* a bar with its labels */
    LABEL = 15,   /* between two labels at least */
    KINDS_DRAWN = 3
};

/* A part of a bar. */
typedef struct part {
    const char *name;
    int64_t params;
    const char *colour;
} part;

static const char *colour_of(weir_bill_item i)
{
    if (weir_bill_is_attn(i))
        return "#8fb3d9";
    if (i == WEIR_BILL_EXPERTS)
        return "#f2c48d";
    if (weir_bill_is_mlp(i))
        return "#e59a4f";
    if (i == WEIR_BILL_MIXER)
        return "#9ccb86";
    return i == WEIR_BILL_EMBED || i == WEIR_BILL_UNEMBED ? "#b9a3d4" : "#c9ccd2";
}

static void put_text(FILE *out, double x, double y, const char *weight, const char *text)
{
    fprintf(out, "<text x=\"%g\" y=\"%g\"%s>", x, y, weight);
    weir_svg_text(out, text, strlen(text), 40, false);
    fputs("</text>\n", out);
}

static void put_rect(FILE *out, double x, double y, double w, double h, const char *colour)
{
    fprintf(out,
            "<rect x=\"%.3f\" y=\"%.3f\" width=\"%.3f\" height=\"%.3f\" fill=\"%s\" stroke=\"#ffffff\" "
            "stroke-width=\"%s\"/>\n",
            x, y, w, h, colour, h > 2 ? "0.5" : "0");
}

/* Labels keep their distance: one that would lie on the last is pushed down, and a line leads to its part. */
static void put_label(FILE *out, double x, double middle, double *last, const part *p, double whole)
{
    char text[96], n[32];
    const double y = middle < *last + LABEL ? *last + LABEL : middle;
    snprintf(text, sizeof text, "%s %s (%.1f%%)", p->name, weir_commas(p->params, n), 100 * (double)p->params / whole);
    fprintf(out, "<path d=\"M%g %.2fL%g %.2f\" stroke=\"#8a8f98\" fill=\"none\"/>\n", x, middle, x + 12, y);
    put_text(out, x + 16, y + 4, "", text);
    *last = y;
}

static void put_bar(FILE *out, double x, const part *p, int n)
{
    double whole = 0, y = TOP, last = TOP - LABEL;
    for (int i = 0; i < n; i++)
        whole += (double)p[i].params;
    for (int i = 0; i < n; i++) {
        const double h = HEIGHT * (double)p[i].params / whole;
        if (!p[i].params)
            continue;
        put_rect(out, x, y, BAR, h, p[i].colour);
        put_label(out, x + BAR, y + h / 2, &last, &p[i], whole);
        y += h;
    }
}

/* The stream at the left of a layer: each of attention (or a mixer) and MLP that is there reads it and writes to it. */
static void put_taps(FILE *out, double x, const weir_layer_bill *l)
{
    const weir_cost *item = l->item;
    const double of = HEIGHT / (double)l->total.params;
    const int64_t place[] = {l->attn.params + item[WEIR_BILL_MIXER].params, l->mlp.params};
    double y = TOP;
    fprintf(out, "<path d=\"M%g %dV%d\" stroke=\"#1b1f27\" stroke-width=\"2\"/>\n", x - 26, TOP - 12,
            TOP + HEIGHT + 12);
    for (int i = 0; i < 2; i++) {
        const double h = of * (double)place[i];
        if (place[i])
            fprintf(out,
                    "<path d=\"M%g %.2fH%g M%g %.2fH%g\" stroke=\"#1b1f27\"/><circle cx=\"%g\" cy=\"%.2f\" r=\"3\"/>\n",
                    x - 26, y + h * 0.1, x, x - 26, y + h * 0.9, x, x - 26, y + h * 0.9);
        y += h;
    }
}

/* In the order of the taps: attention and mixers, MLP, norms. */
static int parts_of_layer(part *p, const weir_layer_bill *l)
{
    int n = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < WEIR_BILL_ITEMS; i++) {
            const weir_bill_item item = (weir_bill_item)i;
            const int place = weir_bill_is_attn(item) || item == WEIR_BILL_MIXER ? 0 : weir_bill_is_mlp(item) ? 1 : 2;
            if (place == pass)
                p[n++] = (part){weir_bill_item_name(item), l->item[i].params, colour_of(item)};
        }
    return n;
}

static void put_layer(FILE *out, double x, const weir_count_kind *k)
{
    char title[96], n[32];
    part p[WEIR_BILL_ITEMS];
    snprintf(title, sizeof title, "one of %lld: %s %s", (long long)k->n, k->label,
             weir_commas(k->bill->total.params, n));
    put_text(out, x, TOP - 20, " font-weight=\"bold\"", title);
    put_taps(out, x, k->bill);
    put_bar(out, x, p, parts_of_layer(p, k->bill));
}

/* Layers of the whole: a line between any two, where there is room for it. */
static void put_marks(FILE *out, double x, const weir_counted *m)
{
    const weir_bill *b = m->bill;
    const double of = HEIGHT / (double)b->total.params;
    double y = TOP + of * (double)(b->item[WEIR_BILL_EMBED].params + b->item[WEIR_BILL_POSITION].params);
    for (int64_t i = 0; i < b->n_layers; i++) {
        const weir_layer_bill *l = &b->layer[i];
        const double attn =
            of * (double)(l->attn.params + l->item[WEIR_BILL_MIXER].params + l->item[WEIR_BILL_NORM].params);
        put_rect(out, x, y, BAR, attn,
                 l->item[WEIR_BILL_MIXER].params ? colour_of(WEIR_BILL_MIXER) : colour_of(WEIR_BILL_Q));
        put_rect(out, x, y + attn, BAR, of * (double)l->mlp.params,
                 colour_of(b->layer[i].item[WEIR_BILL_EXPERTS].params ? WEIR_BILL_EXPERTS : WEIR_BILL_UP));
        y += of * (double)l->total.params;
    }
}

static void put_model(FILE *out, double x, const weir_counted *m)
{
    const weir_bill *b = m->bill;
    char title[96], layers[64], n[32];
    int64_t inside = 0;
    for (int64_t i = 0; i < b->n_layers; i++)
        inside += b->layer[i].total.params;
    const int64_t before = b->item[WEIR_BILL_EMBED].params + b->item[WEIR_BILL_POSITION].params;
    snprintf(layers, sizeof layers, "%lld layers", (long long)b->n_layers);
    snprintf(title, sizeof title, "the model: %s", weir_commas(b->total.params, n));
    const part p[] = {{"tables in", before, colour_of(WEIR_BILL_EMBED)},
                      {layers, inside, "#e8e9ec"},
                      {"unembedding", b->item[WEIR_BILL_UNEMBED].params, colour_of(WEIR_BILL_UNEMBED)},
                      {"rest", b->total.params - before - inside - b->item[WEIR_BILL_UNEMBED].params, "#c9ccd2"}};
    put_text(out, x, TOP - 20, " font-weight=\"bold\"", title);
    put_bar(out, x, p, 4);
    put_marks(out, x, m);
}

void weir_count_put_svg(const weir_counting *c, FILE *out)
{
    int panels = 0, at = 0;
    for (int i = 0; i < c->n; i++)
        panels += 1 + (c->model[i].n_kinds < KINDS_DRAWN ? c->model[i].n_kinds : KINDS_DRAWN);
    weir_svg_begin(out, 40 + (double)PANEL * panels, TOP + HEIGHT + 90, "weir count",
                   "A layer and the model, drawn to scale");
    for (int i = 0; i < c->n; i++) {
        const weir_counted *m = &c->model[i];
        put_text(out, 40 + PANEL * (double)at, 24, " font-weight=\"bold\" font-size=\"15\"", m->b->name);
        for (int k = 0; k < m->n_kinds && k < KINDS_DRAWN; k++)
            put_layer(out, 40 + PANEL * (double)at++, &m->kind[k]);
        put_model(out, 40 + PANEL * (double)at++, m);
    }
    weir_svg_end(out);
}

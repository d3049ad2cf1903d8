/* roofline/svg.c: sweeps: time a decode step by context or batch, and the share of FLOPs that attention takes. Both
 * axes of the first picture are logarithmic, the second's upright one is a share. A line a batch (of a sweep over
 * contexts). */
#include <math.h>
#include <string.h>

#include "page/svg.h"
#include "roofline.h"

enum { WIDE = 420, HIGH = 260, LEFT = 64, TOP = 56, GAP = 84, UNDER = 44, LEGEND = 18 };

typedef struct chart {
    FILE *out;
    const weir_rooflining *t;
    bool by_context; /* the level axis */
    bool share;
    double x, from, to, low, high;
} chart;

static double level(const chart *c, const weir_roofline_point *p)
{
    return c->by_context ? p->load.context : p->load.batch;
}

/* A step's time for each of its tokens, or a share. */
static double value(const chart *c, const weir_roofline_point *p)
{
    return c->share ? p->decode.attention.flops / p->decode.total.flops : p->decode_bound.seconds / p->load.batch;
}

static double across(const chart *c, double v)
{
    return c->x + WIDE * (log2(v / c->from) / log2(c->to / c->from));
}

static double up(const chart *c, double v)
{
    const double at = c->share ? v : log10(v / c->low) / log10(c->high / c->low);
    return TOP + HIGH * (1 - at);
}

static void find_range(chart *c)
{
    const weir_sweep *s = c->by_context ? &c->t->context : &c->t->batch;
    c->from = (double)s->v[0];
    c->to = (double)s->v[s->n - 1];
    c->low = INFINITY;
    c->high = 0;
    for (int i = 0; i < c->t->context.n * c->t->batch.n; i++) {
        c->low = fmin(c->low, value(c, &c->t->point[i]));
        c->high = fmax(c->high, value(c, &c->t->point[i]));
    }
    c->low = pow(10, floor(log10(c->low)));
    c->high = pow(10, ceil(log10(c->high) + 1e-9));
    if (!(c->high > c->low))
        c->high = 10 * c->low;
}

static void put_up_axis(const chart *c)
{
    for (int i = 0; c->share && i <= 4; i++)
        fprintf(
            c->out,
            "<path d=\"M%g %.1fh%d\" stroke=\"#d5d9e0\"/><text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%d %%</text>\n",
            c->x, up(c, i / 4.0), WIDE, c->x - 6, up(c, i / 4.0) + 4, 25 * i);
    for (double v = c->low; !c->share && v < c->high * 1.01; v *= 10)
        fprintf(
            c->out,
            "<path d=\"M%g %.1fh%d\" stroke=\"#d5d9e0\"/><text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g ms</text>\n",
            c->x, up(c, v), WIDE, c->x - 6, up(c, v) + 4, 1000 * v);
}

static void put_level_axis(const chart *c)
{
    const weir_sweep *s = c->by_context ? &c->t->context : &c->t->batch;
    const int every = 1 + s->n / 8;
    for (int i = 0; i < s->n; i++)
        if (i == s->n - 1 || (i % every == 0 && i + every <= s->n))
            fprintf(c->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%lld</text>\n",
                    across(c, (double)s->v[i]), TOP + HIGH + 16, (long long)s->v[i]);
    fprintf(c->out, "<text x=\"%g\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", c->x + WIDE / 2.0, TOP + HIGH + 34,
            c->by_context ? "context, tokens" : "batch, sequences");
}

static const char *colour(int k)
{
    static const char *const COLOUR[] = {"#c4501f", "#2f6fbf", "#2d8a4e", "#8a3fb0",
                                         "#b58900", "#16818a", "#a02c5d", "#5a6472"};
    return COLOUR[k % (int)(sizeof COLOUR / sizeof *COLOUR)];
}

/* The k-th line; a point that arithmetic binds is drawn full. */
static void put_line(const chart *c, int k)
{
    const weir_rooflining *t = c->t;
    const int n = c->by_context ? t->context.n : t->batch.n;
    fprintf(c->out, "<path fill=\"none\" stroke-width=\"2\" stroke=\"%s\" d=\"", colour(k));
    for (int i = 0; i < n; i++) {
        const weir_roofline_point *p = &t->point[c->by_context ? i * t->batch.n + k : i];
        fprintf(c->out, "%c%.1f %.1f", i ? 'L' : 'M', across(c, level(c, p)), up(c, value(c, p)));
    }
    fputs("\"/>\n", c->out);
    for (int i = 0; i < n; i++) {
        const weir_roofline_point *p = &t->point[c->by_context ? i * t->batch.n + k : i];
        fprintf(
            c->out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" stroke=\"%s\" fill=\"%s\"><title>context %g, batch %g: %.6g ms, "
            "attention %.4g %%, bound by %s</title></circle>\n",
            across(c, level(c, p)), up(c, value(c, p)), colour(k),
            p->decode_bound.compute >= p->decode_bound.memory ? colour(k) : "#ffffff", p->load.context, p->load.batch,
            1000 * p->decode_bound.seconds / p->load.batch, 100 * p->decode.attention.flops / p->decode.total.flops,
            weir_roofline_limit(&p->decode_bound));
    }
}

static void put_chart(chart *c, const char *title)
{
    find_range(c);
    fprintf(c->out, "<text x=\"%g\" y=\"%d\" font-weight=\"bold\">%s</text>\n", c->x, TOP - 12, title);
    put_up_axis(c);
    put_level_axis(c);
    for (int k = 0; k < (c->by_context ? c->t->batch.n : 1); k++)
        put_line(c, k);
}

int weir_roofline_put_svg(void *rooflining, FILE *out)
{
    const weir_rooflining *t = rooflining;
    const bool by_context = t->context.n > 1;
    const int lines = by_context ? t->batch.n : 1;
    weir_svg_begin(out, 2 * (LEFT + WIDE) + GAP, TOP + HIGH + UNDER + lines * LEGEND + 12, "weir roofline",
                   "roofline of a sweep");
    fprintf(out, "<text x=\"%d\" y=\"20\">", LEFT);
    weir_svg_text(out, t->b->name, strlen(t->b->name), 0, false);
    fputs(" on ", out);
    weir_svg_text(out, t->hw.name, strlen(t->hw.name), 0, false);
    fputs("; full dots: bound by arithmetic, hollow ones: by memory</text>\n", out);
    chart time = {.out = out, .t = t, .by_context = by_context, .x = LEFT},
          share = {.out = out, .t = t, .by_context = by_context, .share = true, .x = 2 * LEFT + WIDE + GAP / 2.0};
    put_chart(&time, "decode: least time for a token");
    put_chart(&share, "attention's share of the FLOPs");
    for (int k = 0; by_context && k < lines; k++)
        fprintf(out, "<text x=\"%d\" y=\"%d\" fill=\"%s\">batch %lld</text>\n", LEFT,
                TOP + HIGH + UNDER + 12 + k * LEGEND, colour(k), (long long)t->batch.v[k]);
    weir_svg_end(out);
    return WEIR_EXIT_OK;
}

/* roofline/svg.c: sweeps: time a decode step by context or batch, and the share of FLOPs that attention takes. Both
 * axes of the first picture are logarithmic, the second's upright one is a share. A line a batch (of a sweep over
 * contexts). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "page/chart.h"
#include "roofline.h"

enum { WIDE = 420, HIGH = 260, TOP = 56, GAP = 40 };

typedef struct picture {
    const weir_rooflining *t;
    bool by_context; /* the level axis */
    bool share;      /* attention's, not time */
    weir_chart c;
    double *x, *y; /* [points] room */
} picture;

static double level(const picture *p, const weir_roofline_point *at)
{
    return p->by_context ? at->load.context : at->load.batch;
}

/* A step's time for each of its tokens, or a share. */
static double value(const picture *p, const weir_roofline_point *at)
{
    return p->share ? at->decode.attention.flops / at->decode.total.flops : at->decode_bound.seconds / at->load.batch;
}

/* A point that arithmetic binds is drawn full. */
static void put_point(const picture *p, const weir_roofline_point *at, const char *colour)
{
    fprintf(p->c.out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" stroke=\"%s\" fill=\"%s\"><title>context %g, batch %g: %.6g ms, "
            "attention %.4g %%, bound by %s</title></circle>\n",
            weir_chart_across(&p->c, level(p, at)), weir_chart_up(&p->c, value(p, at)), colour,
            at->decode_bound.compute >= at->decode_bound.memory ? colour : "#ffffff", at->load.context, at->load.batch,
            1000 * at->decode_bound.seconds / at->load.batch, 100 * at->decode.attention.flops / at->decode.total.flops,
            weir_roofline_limit(&at->decode_bound));
}

/* The k-th line. */
static void put_line(const picture *p, int k)
{
    const weir_rooflining *t = p->t;
    const int n = p->by_context ? t->context.n : t->batch.n;
    for (int i = 0; i < n; i++) {
        const weir_roofline_point *at = &t->point[p->by_context ? i * t->batch.n + k : i];
        p->x[i] = level(p, at);
        p->y[i] = value(p, at);
    }
    weir_chart_line(&p->c, n, p->x, p->y, &(weir_chart_style){.colour = weir_chart_colour(k), .width = 2});
    for (int i = 0; i < n; i++)
        put_point(p, &t->point[p->by_context ? i * t->batch.n + k : i], weir_chart_colour(k));
}

/* tick: the levels, which are where points stand. */
static void put_picture(picture *p, const double *tick)
{
    const weir_rooflining *t = p->t;
    const weir_sweep *s = p->by_context ? &t->context : &t->batch;
    p->c.across = (weir_chart_axis){.label = p->by_context ? "context, tokens" : "batch, sequences",
                                    .from = tick[0],
                                    .to = tick[s->n - 1],
                                    .log = true,
                                    .exact = true,
                                    .tick = tick,
                                    .ticks = s->n};
    if (p->share)
        p->c.up = (weir_chart_axis){.to = 1, .times = 100, .unit = " %"};
    else
        p->c.up = (weir_chart_axis){.log = true, .times = 1000, .unit = " ms"};
    for (int i = 0; !p->share && i < t->context.n * t->batch.n; i++)
        weir_chart_hold_one(&p->c.up, value(p, &t->point[i]));
    weir_chart_frame(&p->c);
    for (int k = 0; k < (p->by_context ? t->batch.n : 1); k++)
        put_line(p, k);
}

static double put_legend(const weir_rooflining *t, FILE *out, double y)
{
    double height = 0;
    for (int k = 0; k < t->batch.n; k++) {
        char name[40];
        snprintf(name, sizeof name, "batch %lld", (long long)t->batch.v[k]);
        const weir_chart_style key = {.name = name, .colour = weir_chart_colour(k), .width = 2};
        height += weir_chart_legend(out, WEIR_CHART_LEFT, y + height, WIDE, &key, 1);
    }
    return height;
}

static void put_title(const weir_rooflining *t, FILE *out)
{
    fprintf(out, "<text x=\"%d\" y=\"20\">", WEIR_CHART_LEFT);
    weir_svg_text(out, t->b->name, strlen(t->b->name), 0, false);
    fputs(" on ", out);
    weir_svg_text(out, t->hw.name, strlen(t->hw.name), 0, false);
    fputs("; full dots: bound by arithmetic, hollow ones: by memory</text>\n", out);
}

int weir_roofline_put_svg(void *rooflining, FILE *out)
{
    const weir_rooflining *t = rooflining;
    const bool by_context = t->context.n > 1;
    const weir_sweep *s = by_context ? &t->context : &t->batch;
    const double under = TOP + HIGH + WEIR_CHART_UNDER;
    double *room = malloc(3 * sizeof *room * (size_t)s->n);
    if (!room)
        return weir_cli_error(t->cli, "out of memory for a picture");
    for (int i = 0; i < s->n; i++)
        room[i] = (double)s->v[i];
    weir_svg_begin(out, 2 * (WEIR_CHART_LEFT + WIDE) + GAP, under + 12 + (by_context ? put_legend(t, NULL, 0) : 0),
                   "weir roofline", "roofline of a sweep");
    put_title(t, out);
    for (int i = 0; i < 2; i++) {
        picture p = {.t = t, .by_context = by_context, .share = i == 1, .x = room + s->n, .y = room + 2 * s->n};
        p.c = (weir_chart){.out = out,
                           .x = WEIR_CHART_LEFT + i * (WIDE + WEIR_CHART_LEFT + GAP / 2.0),
                           .y = TOP,
                           .width = WIDE,
                           .height = HIGH,
                           .title = i ? "attention's share of the FLOPs" : "decode: least time for a token"};
        put_picture(&p, room);
    }
    if (by_context)
        put_legend(t, out, under);
    weir_svg_end(out);
    free(room);
    return WEIR_EXIT_OK;
}

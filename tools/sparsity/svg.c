/* sparsity/svg.c: the CETT curves: how much of an MLP's output is lost (up) as more of its neurons are left out (to the
 * right); a line a layer, from blue (the first) to orange (the last). */
#include <math.h>
#include <string.h>

#include "page/svg.h"
#include "sparsity.h"

enum { WIDE = 420, HIGH = 300, LEFT = 56, TOP = 56, RIGHT = 120, UNDER = 48, LEGEND = 16 };

static double across(double share)
{
    return LEFT + WIDE * share;
}

static double up(double cett)
{
    return TOP + HIGH * (1 - fmin(cett, 1));
}

static void put_axes(FILE *out)
{
    for (int i = 0; i <= 5; i++)
        fprintf(out,
                "<path d=\"M%d %.1fh%d\" stroke=\"#d5d9e0\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d %%</text>\n",
                LEFT, up(i / 5.0), WIDE, LEFT - 6, up(i / 5.0) + 4, i / 5.0, across(i / 5.0), TOP + HIGH + 16, 20 * i);
    fprintf(out,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">neurons left out, smallest first</text>\n"
            "<text x=\"%d\" y=\"%d\">CETT: share of the output's norm that is lost</text>\n",
            LEFT + WIDE / 2, TOP + HIGH + 36, LEFT, TOP - 12);
}

static void put_curve(const weir_sparsing *t, FILE *out, int line, const char *colour)
{
    int64_t n;
    const weir_sparsity_point *p = weir_sparsity_curve(t->stats, line, &n);
    char name[64];
    weir_sparsity_name(t, line, name);
    fprintf(out, "<path fill=\"none\" stroke-width=\"1.5\" stroke=\"%s\" d=\"M%.1f %.1f", colour, across(0), up(0));
    for (int64_t i = 0; i < n; i++)
        fprintf(out, "L%.1f %.1f", across(p[i].share), up(p[i].cett));
    fprintf(out, "\"><title>%s: %.4g %% can be left out at a CETT of 0.2</title></path>\n", name,
            100 * weir_sparsity_at_cett(t, line, 0.2));
}

int weir_sparsity_put_svg(void *ctx, FILE *out)
{
    const weir_sparsing *t = ctx;
    const int n = weir_sparsity_lines(t->stats), rows = n * LEGEND > HIGH ? n * LEGEND : HIGH;
    weir_svg_begin(out, LEFT + WIDE + RIGHT, TOP + rows + UNDER, "weir sparsity", t->s.info->name);
    put_axes(out);
    for (int i = 0; i < n; i++) {
        int64_t points;
        char colour[32], name[64];
        const double at = n > 1 ? (double)i / (n - 1) : 0;
        weir_sparsity_curve(t->stats, i, &points);
        if (!points)
            continue;
        snprintf(colour, sizeof colour, "rgb(%d,%d,%d)", (int)(40 + 180 * at), (int)(110 - 20 * at),
                 (int)(190 - 160 * at));
        put_curve(t, out, i, colour);
        weir_sparsity_name(t, i, name);
        fprintf(out, "<path d=\"M%d %dh14\" stroke=\"%s\" stroke-width=\"3\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
                LEFT + WIDE + 14, TOP + i * LEGEND, colour, LEFT + WIDE + 34, TOP + i * LEGEND + 4, name);
    }
    weir_svg_end(out);
    return WEIR_EXIT_OK;
}

/* sparsity/svg.c: the CETT curves: how much of an MLP's output is lost (up) as more of its neurons are left out (to the
 * right); a line a layer, from blue (the first) to orange (the last). */
#include <stdlib.h>

#include "cli/say.h"
#include "page/chart.h"
#include "sparsity.h"

enum { WIDE = 420, HIGH = 300, RIGHT = 120, TOP = 56, LEGEND = 16 };

/* False: out of memory. */
static bool put_curve(const weir_sparsing *t, const weir_chart *c, int line, const char *colour)
{
    int64_t n;
    const weir_sparsity_point *p = weir_sparsity_curve(t->stats, line, &n);
    double *x = malloc(2 * sizeof *x * (size_t)(n + 1));
    if (!x)
        return false;
    double *y = x + n + 1;
    x[0] = y[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i + 1] = p[i].share;
        y[i + 1] = p[i].cett < 1 ? p[i].cett : 1;
    }
    char layer[64], name[160];
    weir_sparsity_name(t, line, layer);
    snprintf(name, sizeof name, "%s: %.4g %% can be left out at a CETT of 0.2", layer,
             100 * weir_sparsity_at_cett(t, line, 0.2));
    weir_chart_line(c, n + 1, x, y, &(weir_chart_style){.name = name, .colour = colour});
    free(x);
    const weir_chart_style key = {.name = layer, .colour = colour, .width = 3};
    weir_chart_legend(c->out, c->x + WIDE + 14, c->y + line * LEGEND - 8, RIGHT, &key, 1);
    return true;
}

int weir_sparsity_put_svg(void *ctx, FILE *out)
{
    const weir_sparsing *t = ctx;
    const int n = weir_sparsity_lines(t->stats), rows = n * LEGEND > HIGH ? n * LEGEND : HIGH;
    weir_chart c = {.out = out,
                    .x = WEIR_CHART_LEFT,
                    .y = TOP,
                    .width = WIDE,
                    .height = HIGH,
                    .title = "CETT: share of the output's norm that is lost",
                    .across = {.label = "neurons left out, smallest first", .to = 1, .times = 100, .unit = " %"},
                    .up = {.to = 1}};
    bool ok = true;
    weir_svg_begin(out, WEIR_CHART_LEFT + WIDE + RIGHT, TOP + rows + WEIR_CHART_UNDER + 4, "weir sparsity",
                   t->s.info->name);
    weir_chart_frame(&c);
    for (int i = 0; ok && i < n; i++) {
        int64_t points;
        weir_sparsity_curve(t->stats, i, &points);
        if (points)
            ok = put_curve(t, &c, i, weir_chart_ramp(n > 1 ? (double)i / (n - 1) : 0).text);
    }
    weir_svg_end(out);
    return ok ? WEIR_EXIT_OK : weir_cli_error(t->cli, "out of memory for a picture");
}

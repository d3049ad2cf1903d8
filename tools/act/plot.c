/* act/plot.c: a function and its slope on the terminal, and any number of them side by side as SVG. */
#include <math.h>
#include <string.h>

#include "act.h"
#include "cli/terminal.h"
#include "page/chart.h"

/* Where the values of f and its slope lie on [from, to]; 0 is in it. */
static void find_range(const weir_acting *t, const weir_act_curve *c, double *low, double *high)
{
    *low = *high = 0;
    for (int i = 0; i <= 400; i++) {
        const double x = t->a->from + (t->a->to - t->a->from) * i / 400;
        const double y = weir_activation_value(c->f, t->a->beta, x), s = weir_activation_slope(c->f, t->a->beta, x);
        *low = fmin(*low, fmin(y, s));
        *high = fmax(*high, fmax(y, s));
    }
    if (!(*high > *low))
        *high = *low + 1;
}

/* --- the terminal */

enum { ROWS = 15, MARGIN = 8, COLUMNS = 512 };

typedef struct grid {
    char cell[ROWS][COLUMNS];
    int columns;
    double low, high;
} grid;

static int row_of(const grid *g, double y)
{
    const int row = (int)lround((ROWS - 1) * (g->high - y) / (g->high - g->low));
    return row < 0 ? 0 : row >= ROWS ? ROWS - 1 : row;
}

static double place_of(const weir_acting *t, const grid *g, int column)
{
    return t->a->from + (t->a->to - t->a->from) * column / (g->columns - 1);
}

static void draw_axes(const weir_acting *t, grid *g)
{
    memset(g->cell, ' ', sizeof g->cell);
    memset(g->cell[row_of(g, 0)], '-', (size_t)g->columns);
    if (t->a->from <= 0 && t->a->to >= 0)
        for (int row = 0; row < ROWS; row++)
            g->cell[row][lround((g->columns - 1) * -t->a->from / (t->a->to - t->a->from))] = '|';
}

void weir_act_plot(const weir_acting *t, const weir_act_curve *c, FILE *out)
{
    grid g;
    const int width = t->a->width ? (int)t->a->width : weir_width_of(0, out) > 80 ? 80 : weir_width_of(0, out);
    g.columns = width - MARGIN < 12 ? 12 : width - MARGIN > COLUMNS ? COLUMNS : width - MARGIN;
    find_range(t, c, &g.low, &g.high);
    draw_axes(t, &g);
    for (int i = 0; i < g.columns; i++)
        g.cell[row_of(&g, weir_activation_slope(c->f, t->a->beta, place_of(t, &g, i)))][i] = '.';
    for (int i = 0; i < g.columns; i++)
        g.cell[row_of(&g, weir_activation_value(c->f, t->a->beta, place_of(t, &g, i)))][i] = 'o';
    for (int row = 0; row < ROWS; row++) {
        int n = g.columns;
        while (n && g.cell[row][n - 1] == ' ')
            n--;
        if (row == 0 || row == ROWS - 1 || row == row_of(&g, 0))
            fprintf(out, "%*.3g ", MARGIN - 1, row == 0 ? g.high : row == row_of(&g, 0) ? 0 : g.low);
        else if (n)
            fprintf(out, "%*s", MARGIN, "");
        fprintf(out, "%.*s\n", n, g.cell[row]);
    }
    fprintf(out, "%*s%-*g%*g\n%*so f(x)   . f'(x)\n", MARGIN, "", g.columns / 2, t->a->from, g.columns - g.columns / 2,
            t->a->to, MARGIN, "");
}

/* --- SVG */

enum { WIDE = 240, HIGH = 180, LEFT = 56, TOP = 48, GAP = 28, ACROSS = 3, HEAD = 28 };

static void put_line(const weir_acting *t, const weir_act_curve *c, const weir_chart *chart,
                     double (*f)(const weir_activation *, double, double), const weir_chart_style *style)
{
    double x[WIDE + 1], y[WIDE + 1];
    for (int i = 0; i <= WIDE; i++) {
        x[i] = t->a->from + (t->a->to - t->a->from) * i / WIDE;
        y[i] = f(c->f, t->a->beta, x[i]);
    }
    weir_chart_line(chart, WIDE + 1, x, y, style);
}

static void put_panel(const weir_acting *t, const weir_act_curve *c, FILE *out, double x, double y)
{
    const weir_lowest *l = &c->lowest;
    const bool dips = l->kind == WEIR_LOWEST_DIP && l->x >= t->a->from && l->x <= t->a->to;
    const weir_chart_style zero = {.colour = "#b8bfc9", .width = 1};
    weir_chart chart = {.out = out,
                        .x = x,
                        .y = y,
                        .width = WIDE,
                        .height = HIGH,
                        .across = {.from = t->a->from, .to = t->a->to, .exact = true},
                        .up = {.exact = true}};
    find_range(t, c, &chart.up.from, &chart.up.to);
    if (dips)
        weir_chart_hold_one(&chart.up, l->y);
    fprintf(out, "<g><text x=\"%g\" y=\"%g\" font-weight=\"bold\">", x, y - 20);
    weir_svg_text(out, c->f->name, strlen(c->f->name), 0, false);
    fprintf(out, "</text><text x=\"%g\" y=\"%g\" font-size=\"9\" fill=\"#5a6472\">", x, y - 8);
    weir_svg_text(out, c->f->formula, strlen(c->f->formula), 52, false);
    fputs("</text>\n", out);
    weir_chart_frame(&chart);
    weir_chart_rule(&chart, false, 0, &zero);
    weir_chart_rule(&chart, true, 0, &zero);
    put_line(t, c, &chart, weir_activation_slope, &(weir_chart_style){.colour = "#2f6fbf", .width = 1, .dash = "3 3"});
    put_line(t, c, &chart, weir_activation_value, &(weir_chart_style){.colour = "#c4501f", .width = 2});
    if (dips)
        weir_chart_points(&chart, 1, &l->x, &l->y, NULL, false, &(weir_chart_style){.name = "lowest, at", .dots = 3});
    fputs("</g>\n", out);
}

int weir_act_put_svg(void *acting, FILE *out)
{
    const weir_acting *t = acting;
    const int columns = t->n < ACROSS ? t->n : ACROSS, rows = (t->n + ACROSS - 1) / ACROSS;
    weir_svg_begin(out, columns * (LEFT + WIDE) + GAP, HEAD + rows * (TOP + HIGH + GAP), "weir act",
                   "activations and their slopes");
    fprintf(out,
            "<text x=\"%d\" y=\"20\"><tspan fill=\"#c4501f\">f(x)</tspan>, <tspan fill=\"#2f6fbf\">f'(x), dashed"
            "</tspan></text>\n",
            LEFT);
    for (int i = 0; i < t->n; i++)
        put_panel(t, &t->curve[i], out, LEFT + (i % ACROSS) * (LEFT + WIDE),
                  HEAD + TOP + (i / ACROSS) * (TOP + HIGH + GAP));
    weir_svg_end(out);
    return WEIR_EXIT_OK;
}

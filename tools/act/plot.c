/* act/plot.c: a function and its slope on the terminal, and any number of them side by side as SVG. */
#include <math.h>
#include <string.h>

#include "act.h"
#include "cli/terminal.h"
#include "page/svg.h"

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

typedef struct panel {
    FILE *out;
    const weir_acting *t;
    const weir_act_curve *c;
    double x, y, low, high;
} panel;

static double across(const panel *p, double x)
{
    return p->x + WIDE * (x - p->t->a->from) / (p->t->a->to - p->t->a->from);
}

static double up(const panel *p, double y)
{
    return p->y + HIGH * (p->high - y) / (p->high - p->low);
}

static void put_line(const panel *p, double (*f)(const weir_activation *, double, double), const char *style)
{
    fprintf(p->out, "<path fill=\"none\" %s d=\"", style);
    for (int i = 0; i <= WIDE; i++) {
        const double x = p->t->a->from + (p->t->a->to - p->t->a->from) * i / WIDE;
        fprintf(p->out, "%c%.2f %.2f", i ? 'L' : 'M', across(p, x), up(p, f(p->c->f, p->t->a->beta, x)));
    }
    fputs("\"/>\n", p->out);
}

static void put_panel(panel *p)
{
    const weir_lowest *l = &p->c->lowest;
    const double from = p->t->a->from, to = p->t->a->to;
    find_range(p->t, p->c, &p->low, &p->high);
    fprintf(p->out, "<g><text x=\"%g\" y=\"%g\" font-weight=\"bold\">", p->x, p->y - 20);
    weir_svg_text(p->out, p->c->f->name, strlen(p->c->f->name), 0, false);
    fprintf(p->out, "</text><text x=\"%g\" y=\"%g\" font-size=\"9\" fill=\"#5a6472\">", p->x, p->y - 8);
    weir_svg_text(p->out, p->c->f->formula, strlen(p->c->f->formula), 52, false);
    fprintf(p->out, "</text>\n<path d=\"M%g %.2fh%d\" stroke=\"#b8bfc9\"/>", p->x, up(p, 0), WIDE);
    if (from <= 0 && to >= 0)
        fprintf(p->out, "<path d=\"M%.2f %gv%d\" stroke=\"#b8bfc9\"/>", across(p, 0), p->y, HIGH);
    fprintf(p->out, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%.3g</text>", p->x - 4, p->y + 10, p->high);
    fprintf(p->out, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%.3g</text>", p->x - 4, p->y + HIGH, p->low);
    fprintf(p->out, "<text x=\"%g\" y=\"%g\">%g</text>", p->x, p->y + HIGH + 14, from);
    fprintf(p->out, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%g</text>\n", p->x + WIDE, p->y + HIGH + 14, to);
    put_line(p, weir_activation_slope, "stroke=\"#2f6fbf\" stroke-dasharray=\"3 3\"");
    put_line(p, weir_activation_value, "stroke=\"#c4501f\" stroke-width=\"2\"");
    if (l->kind == WEIR_LOWEST_DIP && l->x >= from && l->x <= to)
        fprintf(
            p->out,
            "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"#c4501f\"><title>lowest: %.9g at %.9g</title></circle>\n",
            across(p, l->x), up(p, l->y), l->y, l->x);
    fputs("</g>\n", p->out);
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
    for (int i = 0; i < t->n; i++) {
        panel p = {.out = out,
                   .t = t,
                   .c = &t->curve[i],
                   .x = LEFT + (i % ACROSS) * (LEFT + WIDE),
                   .y = HEAD + TOP + (i / ACROSS) * (TOP + HIGH + GAP)};
        put_panel(&p);
    }
    weir_svg_end(out);
    return WEIR_EXIT_OK;
}

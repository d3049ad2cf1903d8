/* page/chart_map.c: colours of values, and heat maps. */
#include <math.h>
#include <string.h>

#include "chart.h"

#define EMPTY "#eceff3"

/* --- scales */

weir_chart_scale weir_chart_scale_of(const double *v, int64_t n, bool log)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i]) && (!log || v[i] > 0)) {
            low = fmin(low, v[i]);
            high = fmax(high, v[i]);
        }
    if (!(low <= high))
        return (weir_chart_scale){.low = log ? 1 : 0, .most = log ? 10 : 1, .log = log};
    if (log)
        return (weir_chart_scale){.low = low < high ? low : low / 10, .most = high, .log = true};
    const double most = fmax(fabs(low), fabs(high));
    return (weir_chart_scale){.low = low < 0 ? -most : 0, .most = most > 0 ? most : 1};
}

weir_svg_colour weir_chart_scale_colour(const weir_chart_scale *s, double v)
{
    if (isnan(v) || (s->log && v <= 0))
        return weir_svg_heat((double)NAN);
    if (isinf(v))
        return weir_svg_heat(v > 0 ? 1 : -1);
    if (s->log)
        return weir_svg_heat(fmax(0, (log(v) - log(s->low)) / (log(s->most) - log(s->low))));
    return weir_svg_heat(s->low < 0 ? v / s->most : fmax(0, v / s->most));
}

double weir_chart_scale_at(const weir_chart_scale *s, double share)
{
    return s->log ? s->low * pow(s->most / s->low, share) : s->low + (s->most - s->low) * share;
}

enum { SHADES = 48, BAR = 12 };

void weir_chart_scale_bar(FILE *out, const weir_chart_scale *s, double x, double y, double height, const char *label)
{
    const int ticks = height < 60 ? 1 : height < 140 ? 2 : 4;
    if (label) {
        fprintf(out, "<text x=\"%g\" y=\"%g\" font-size=\"11\" fill=\"" WEIR_CHART_SOFT "\">", x, y - 8);
        weir_svg_text(out, label, strlen(label), 0, false);
        fputs("</text>\n", out);
    }
    for (int i = 0; i < SHADES; i++)
        fprintf(out, "<rect x=\"%g\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"%s\"/>", x,
                y + height * (1 - (i + 1.0) / SHADES), BAR, height / SHADES + (i > 0 ? 0.3 : 0),
                weir_chart_scale_colour(s, weir_chart_scale_at(s, (i + 0.5) / SHADES)).text);
    fprintf(out, "<path d=\"M%g %gh%dv%gh-%dz\" fill=\"none\" stroke=\"#9aa3b0\"/>\n", x, y, BAR, height, BAR);
    for (int i = 0; i <= ticks; i++)
        fprintf(out, "<text x=\"%g\" y=\"%.1f\" font-size=\"11\">%.3g</text>\n", x + BAR + 5,
                y + height * (1 - (double)i / ticks) + 4, weir_chart_scale_at(s, (double)i / ticks));
}

/* --- the map's measures */

enum { HEADING = 24, SCALE = 84, CELL = 18, WIDEST = 44, ROW_NAME = 20, COLUMN_NAME = 16 };

typedef struct layout {
    double left, top, cell_w, cell_h, under;
    bool upright; /* names of columns */
} layout;

static int64_t longest_of(const weir_str *name, int64_t n, int64_t most)
{
    int64_t longest = name ? 1 : 4;
    for (int64_t i = 0; name && i < n && longest < most; i++) {
        const int64_t columns = weir_svg_columns(name[i].p, name[i].n);
        longest = columns > longest ? columns : longest;
    }
    return longest < most ? longest : most;
}

static layout layout_of(const weir_chart_map *m)
{
    const double rows = fmax(1, (double)m->rows), columns = fmax(1, (double)m->columns);
    layout l = {.top = m->title || m->label ? HEADING : 6};
    l.left = 12 + 6.6 * (double)longest_of(m->row, m->rows, ROW_NAME) + (m->down ? 18 : 0);
    l.cell_w = fmin(m->digits ? WIDEST : 26, (m->width - l.left - SCALE) / columns);
    l.cell_w = fmax(l.cell_w, 0.5);
    l.cell_h = fmin(CELL, fmax(3, 640 / rows));
    const double name = 6.6 * (double)longest_of(m->column, m->columns, COLUMN_NAME) + 6;
    l.upright = m->column && l.cell_w < name;
    l.under = (l.upright ? name + 6 : 20) + (m->across ? 18 : 0);
    return l;
}

double weir_chart_map_height(const weir_chart_map *m)
{
    const layout l = layout_of(m);
    return l.top + l.cell_h * (double)m->rows + l.under;
}

double weir_chart_map_width(const weir_chart_map *m)
{
    const layout l = layout_of(m);
    return l.left + l.cell_w * (double)m->columns + SCALE;
}

/* --- drawing */

static double row_y(const weir_chart_map *m, const layout *l, int64_t row)
{
    return m->y + l->top + l->cell_h * (double)(m->rising ? m->rows - 1 - row : row);
}

static void put_label(FILE *out, const weir_str *name, int64_t i, int columns)
{
    if (name)
        weir_svg_text(out, name[i].p, name[i].n, columns, true);
    else
        fprintf(out, "%lld", (long long)i);
}

static void put_cell(const weir_chart_map *m, const layout *l, const weir_chart_scale *s, int64_t row, int64_t column)
{
    const double v = m->value[row * m->columns + column], gap = l->cell_w >= 8 && l->cell_h >= 8 ? 1 : 0;
    const double x = m->x + l->left + l->cell_w * (double)column, y = row_y(m, l, row);
    const weir_svg_colour colour = weir_chart_scale_colour(s, v);
    fprintf(m->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>", x, y,
            l->cell_w - gap, l->cell_h - gap, isfinite(v) && colour.text[0] != 'n' ? colour.text : EMPTY);
    put_label(m->out, m->row, row, 0);
    fputs(", ", m->out);
    put_label(m->out, m->column, column, 0);
    fputs(": ", m->out);
    weir_chart_number(m->out, v);
    const char *more = m->tip ? m->tip(m->ctx, row, column) : NULL;
    if (more) {
        fputs("; ", m->out);
        weir_svg_text(m->out, more, strlen(more), 0, false);
    }
    fputs("</title></rect>\n", m->out);
    if (m->digits && isfinite(v) && l->cell_h >= 12 && l->cell_w >= 6.2 * (m->digits + 2))
        fprintf(m->out,
                "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" text-anchor=\"middle\" pointer-events=\"none\">"
                "%.*g</text>\n",
                x + l->cell_w / 2, y + l->cell_h / 2 + 3.5, m->digits, v);
}

static void put_row_names(const weir_chart_map *m, const layout *l)
{
    const int64_t step = (int64_t)ceil(12 / l->cell_h);
    for (int64_t i = 0; i < m->rows; i += step) {
        fprintf(m->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" text-anchor=\"end\">", m->x + l->left - 6,
                row_y(m, l, i) + l->cell_h / 2 + 4);
        put_label(m->out, m->row, i, ROW_NAME);
        fputs("</text>\n", m->out);
    }
}

static void put_column_names(const weir_chart_map *m, const layout *l)
{
    const double y = m->y + l->top + l->cell_h * (double)m->rows;
    const int64_t step = (int64_t)ceil((l->upright || m->column ? 12 : 36) / l->cell_w);
    for (int64_t i = 0; i < m->columns; i += step) {
        const double x = m->x + l->left + l->cell_w * ((double)i + 0.5);
        if (l->upright)
            fprintf(m->out, "<text transform=\"translate(%.1f %.1f)rotate(-90)\" font-size=\"11\" text-anchor=\"end\">",
                    x + 4, y + 6);
        else
            fprintf(m->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" text-anchor=\"middle\">", x, y + 15);
        put_label(m->out, m->column, i, COLUMN_NAME);
        fputs("</text>\n", m->out);
    }
}

static void put_words(const weir_chart_map *m, const layout *l)
{
    const double wide = l->cell_w * (double)m->columns, high = l->cell_h * (double)m->rows;
    if (m->title) {
        fprintf(m->out, "<text x=\"%g\" y=\"%g\" font-weight=\"bold\">", m->x + l->left, m->y + 12);
        weir_svg_text(m->out, m->title, strlen(m->title), 0, false);
        fputs("</text>\n", m->out);
    }
    if (m->across) {
        fprintf(m->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"" WEIR_CHART_SOFT "\">",
                m->x + l->left + wide / 2, m->y + l->top + high + l->under - 4);
        weir_svg_text(m->out, m->across, strlen(m->across), 0, false);
        fputs("</text>\n", m->out);
    }
    if (m->down) {
        fprintf(m->out,
                "<text transform=\"translate(%.1f %.1f)rotate(-90)\" text-anchor=\"middle\" fill=\"" WEIR_CHART_SOFT
                "\">",
                m->x + 12, m->y + l->top + high / 2);
        weir_svg_text(m->out, m->down, strlen(m->down), 0, false);
        fputs("</text>\n", m->out);
    }
}

void weir_chart_map_draw(const weir_chart_map *m)
{
    const layout l = layout_of(m);
    const weir_chart_scale own = weir_chart_scale_of(m->value, m->scale ? 0 : m->rows * m->columns, false);
    const weir_chart_scale *s = m->scale ? m->scale : &own;
    put_words(m, &l);
    for (int64_t row = 0; row < m->rows; row++)
        for (int64_t column = 0; column < m->columns; column++)
            put_cell(m, &l, s, row, column);
    put_row_names(m, &l);
    put_column_names(m, &l);
    weir_chart_scale_bar(m->out, s, m->x + l.left + l.cell_w * (double)m->columns + 16, m->y + l.top,
                         fmax(30, fmin(180, l.cell_h * (double)m->rows)), m->label);
}

/* page/chart_strip.c: tokens in boxes. */
#include <math.h>
#include <string.h>

#include "chart.h"
#include "cli/printable.h"

enum { LINE = 23, BOX = 19, HEADING = 26, SHADES = 40, LONGEST = 40 };
static const double COLUMN = 7.3, PAD = 2.5;

/* What is written in a token's box. */
static void text_of(const weir_chart_strip *s, int64_t i, weir_text *t)
{
    t->n = 0;
    if (s->token[i].n)
        weir_text_printable(t, s->token[i].p, s->token[i].n);
    else if (s->id)
        weir_text_token(t, s->token[i], s->id[i]);
}

static bool ends_line(weir_str token)
{
    return token.n && token.p[token.n - 1] == '\n';
}

/* Spaces keep their place in SVG when they cannot be broken; printable text has no others of that kind. */
static void put_spaced(FILE *out, const weir_text *t)
{
    size_t from = 0;
    for (size_t i = 0; i <= t->n; i++)
        if (i == t->n || t->p[i] == ' ') {
            weir_svg_xml(out, t->p + from, i - from);
            fputs(i < t->n ? "\xc2\xa0" : "", out);
            from = i + 1;
        }
}

static void put_box(const weir_chart_strip *s, const weir_chart_scale *scale, int64_t i, double x, double y,
                    int64_t columns, const weir_text *t)
{
    const weir_svg_colour colour = weir_chart_scale_colour(scale, s->value[i]);
    const double wide = COLUMN * (double)columns;
    fprintf(s->out, "<g><title>%lld: ", (long long)(s->first + i));
    weir_svg_xml(s->out, t->p, t->n);
    fputs("  ", s->out);
    weir_chart_number(s->out, s->value[i]);
    fprintf(s->out,
            "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"3\" fill=\"%s\" stroke=\"#e3e6eb\"/>"
            "<text x=\"%.1f\" y=\"%.1f\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\">",
            x, y, wide + 2 * PAD, BOX, isfinite(s->value[i]) ? colour.text : "none", x + PAD, y + 13.5, wide);
    if (weir_text_columns(t->p, t->n) > columns)
        weir_svg_text(s->out, s->token[i].p, s->token[i].n, LONGEST, true);
    else
        put_spaced(s->out, t);
    fputs("</text></g>\n", s->out);
}

static void put_scale(const weir_chart_strip *s, const weir_chart_scale *scale)
{
    fprintf(s->out, "<text x=\"%g\" y=\"%g\" fill=\"" WEIR_CHART_SOFT "\" font-size=\"11\">", s->x, s->y + 12);
    weir_svg_text(s->out, s->label, strlen(s->label), 60, false);
    const double x = s->x + 6.4 * fmin(60, (double)weir_svg_columns(s->label, strlen(s->label))) + 60;
    fprintf(s->out, "</text><text x=\"%.1f\" y=\"%g\" font-size=\"11\" text-anchor=\"end\">%.3g</text>\n", x - 6,
            s->y + 12, scale->low);
    for (int i = 0; i < SHADES; i++) {
        const double v = weir_chart_scale_at(scale, (i + 0.5) / SHADES);
        fprintf(s->out, "<rect x=\"%.1f\" y=\"%g\" width=\"3.3\" height=\"10\" fill=\"%s\"/>", x + 3 * i, s->y + 3,
                weir_chart_scale_colour(scale, v).text);
    }
    fprintf(s->out, "\n<text x=\"%.1f\" y=\"%g\" font-size=\"11\">%.3g</text>\n", x + 3 * SHADES + 6, s->y + 12,
            scale->most);
}

/* Draws, if there is a scale; returns the height. */
static double lay(const weir_chart_strip *s, const weir_chart_scale *scale)
{
    double x = s->x, y = s->y + (s->label ? HEADING : 0);
    weir_text t = {0};
    for (int64_t i = 0; i < s->n; i++) {
        text_of(s, i, &t);
        if (t.failed)
            break;
        const int64_t whole = weir_text_columns(t.p, t.n);
        const int64_t columns = whole < 1 ? 1 : whole > LONGEST ? LONGEST : whole;
        const double wide = COLUMN * (double)columns + 2 * PAD;
        if (x > s->x && x + wide > s->x + s->width) {
            x = s->x;
            y += LINE;
        }
        if (scale)
            put_box(s, scale, i, x, y, columns, &t);
        x += wide + 1;
        if (ends_line(s->token[i]) && i + 1 < s->n) {
            x = s->x;
            y += LINE;
        }
    }
    weir_text_free(&t);
    return y + LINE - s->y;
}

double weir_chart_strip_height(const weir_chart_strip *s)
{
    return lay(s, NULL);
}

void weir_chart_strip_draw(const weir_chart_strip *s)
{
    const weir_chart_scale own = weir_chart_scale_of(s->value, s->scale ? 0 : s->n, false);
    const weir_chart_scale *scale = s->scale ? s->scale : &own;
    if (s->label)
        put_scale(s, scale);
    fputs("<g font-family=\"ui-monospace, monospace\">\n", s->out);
    lay(s, scale);
    fputs("</g>\n", s->out);
}

/* page/chart_lines.c: lines, bands, bars and points in a frame, cut off at its edges; the legend. */
#include <math.h>
#include <string.h>

#include "chart.h"

const char *weir_chart_colour(int k)
{
    static const char *const COLOUR[] = {"#c4501f", "#2f6fbf", "#2d8a4e", "#8a3fb0",
                                         "#b58900", "#16818a", "#a02c5d", "#5a6472"};
    const int n = sizeof COLOUR / sizeof *COLOUR;
    return COLOUR[(k % n + n) % n];
}

weir_svg_colour weir_chart_ramp(double at)
{
    weir_svg_colour c;
    at = at > 0 ? fmin(at, 1) : 0;
    snprintf(c.text, sizeof c.text, "rgb(%d,%d,%d)", (int)lround(40 + 180 * at), (int)lround(110 - 20 * at),
             (int)lround(190 - 160 * at));
    return c;
}

static const char *colour_of(const weir_chart_style *s)
{
    return s->colour ? s->colour : weir_chart_colour(0);
}

static double width_of(const weir_chart_style *s)
{
    return s->width > 0 ? s->width : 1.5;
}

static void put_stroke(FILE *out, const weir_chart_style *s)
{
    fprintf(out, "fill=\"none\" stroke=\"%s\" stroke-width=\"%g\"", colour_of(s), width_of(s));
    if (s->dash)
        fprintf(out, " stroke-dasharray=\"%s\"", s->dash);
}

/* Ends an element with what it is, if it has a name. */
static void put_name(FILE *out, const weir_chart_style *s, const char *element)
{
    if (!s->name) {
        fputs("/>\n", out);
        return;
    }
    fputs("><title>", out);
    weir_svg_text(out, s->name, strlen(s->name), 0, false);
    fprintf(out, "</title></%s>\n", element);
}

/* --- cutting off */

static double held(double v, double low, double high)
{
    return fmin(fmax(v, low), high);
}

/* The part of a segment inside the frame, of its course from 0 to 1; false: there is none. */
static bool cut(const weir_chart *c, const double from[2], const double to[2], double course[2])
{
    const double low[2] = {c->x, c->y}, high[2] = {c->x + c->width, c->y + c->height};
    course[0] = 0;
    course[1] = 1;
    for (int k = 0; k < 2; k++) {
        const double way = to[k] - from[k];
        if (way == 0) {
            if (from[k] < low[k] - 1e-6 || from[k] > high[k] + 1e-6)
                return false;
            continue;
        }
        const double a = (low[k] - from[k]) / way, b = (high[k] - from[k]) / way;
        course[0] = fmax(course[0], fmin(a, b));
        course[1] = fmin(course[1], fmax(a, b));
    }
    return course[0] <= course[1];
}

static bool inside(const weir_chart *c, double x, double y)
{
    return x >= c->x - 1e-6 && x <= c->x + c->width + 1e-6 && y >= c->y - 1e-6 && y <= c->y + c->height + 1e-6;
}

/* --- lines */

static double nth(const double *x, int64_t i)
{
    return x ? x[i] : (double)i;
}

static void put_dot(const weir_chart *c, double x, double y, double radius, const weir_str *name,
                    const weir_chart_style *s)
{
    fprintf(c->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\"><title>", weir_chart_across(c, x),
            weir_chart_up(c, y), radius, colour_of(s));
    if (s->name) {
        weir_svg_text(c->out, s->name, strlen(s->name), 0, false);
        fputs(", ", c->out);
    }
    const weir_chart_axis *a = &c->across;
    if (!name && a->name && x >= 0 && x < a->names)
        name = &a->name[(int)x];
    if (name)
        weir_svg_text(c->out, name->p, name->n, 0, false);
    else
        weir_chart_number(c->out, x);
    fputs(": ", c->out);
    weir_chart_number(c->out, y);
    fputs("</title></circle>\n", c->out);
}

/* One segment of a path; `on`: the path stands at its beginning already. Returns that of its end. */
static bool put_segment(const weir_chart *c, const double from[2], const double to[2], bool on)
{
    double course[2];
    if (!cut(c, from, to, course))
        return false;
    if (!on || course[0] > 0)
        fprintf(c->out, "M%.2f %.2f", from[0] + course[0] * (to[0] - from[0]), from[1] + course[0] * (to[1] - from[1]));
    fprintf(c->out, "L%.2f %.2f", from[0] + course[1] * (to[0] - from[0]), from[1] + course[1] * (to[1] - from[1]));
    return course[1] >= 1;
}

void weir_chart_line(const weir_chart *c, int64_t n, const double *x, const double *y, const weir_chart_style *s)
{
    double last[2] = {NAN, NAN};
    bool on = false;
    fputs("<path ", c->out);
    put_stroke(c->out, s);
    /* M0 0: a path of nothing is drawn as nothing, and an empty one is no error of any reader. */
    fputs(" stroke-linejoin=\"round\" d=\"M0 0", c->out);
    for (int64_t i = 0; i < n; i++) {
        const double at[2] = {weir_chart_across(c, nth(x, i)), weir_chart_up(c, y[i])};
        const bool there = isfinite(at[0]) && isfinite(at[1]);
        on = there && isfinite(last[0]) && put_segment(c, last, at, on);
        last[0] = there ? at[0] : (double)NAN;
        last[1] = at[1];
    }
    fputc('"', c->out);
    put_name(c->out, s, "path");
    for (int64_t i = 0; i < n; i++) {
        const double px = weir_chart_across(c, nth(x, i)), py = weir_chart_up(c, y[i]);
        const bool alone =
            !(i > 0 && isfinite(weir_chart_up(c, y[i - 1]))) && !(i + 1 < n && isfinite(weir_chart_up(c, y[i + 1])));
        if (inside(c, px, py) && (s->dots > 0 || alone))
            put_dot(c, nth(x, i), y[i], s->dots > 0 ? s->dots : width_of(s), NULL, s);
    }
}

void weir_chart_rule(const weir_chart *c, bool upright, double value, const weir_chart_style *s)
{
    const double at = upright ? weir_chart_across(c, value) : weir_chart_up(c, value);
    if (!inside(c, upright ? at : c->x, upright ? c->y : at))
        return;
    fputs("<path ", c->out);
    put_stroke(c->out, s);
    if (upright)
        fprintf(c->out, " d=\"M%.2f %.2fv%.2f\"", at, c->y, c->height);
    else
        fprintf(c->out, " d=\"M%.2f %.2fh%.2f\"", c->x, at, c->width);
    put_name(c->out, s, "path");
}

/* --- areas */

/* A band's outline on its way, held in the frame. */
typedef struct outline {
    const weir_chart *c;
    double last[2];
    char command; /* M: nothing is drawn yet */
} outline;

static void put_held(outline *o, double x, double y)
{
    const weir_chart *c = o->c;
    fprintf(c->out, "%c%.2f %.2f", o->command, held(x, c->x, c->x + c->width), held(y, c->y, c->y + c->height));
    o->command = 'L';
}

/* The next corner. Where the way to it crosses an edge of the frame there is a corner too: so what is held there is the
 * part of the band inside the frame, and slopes stay what they are. */
static void put_corner(outline *o, double x, double y)
{
    const weir_chart *c = o->c;
    const double at[2] = {weir_chart_across(c, x), weir_chart_up(c, y)};
    const double border[4] = {c->x, c->x + c->width, c->y, c->y + c->height};
    double done = 0;
    for (int step = 0; o->command == 'L' && step < 4; step++) {
        double next = 1;
        for (int k = 0; k < 4; k++) {
            const double course = (border[k] - o->last[k / 2]) / (at[k / 2] - o->last[k / 2]);
            next = course > done && course < next ? course : next;
        }
        if (next < 1)
            put_held(o, o->last[0] + next * (at[0] - o->last[0]), o->last[1] + next * (at[1] - o->last[1]));
        done = next;
    }
    put_held(o, at[0], at[1]);
    o->last[0] = at[0];
    o->last[1] = at[1];
}

void weir_chart_band(const weir_chart *c, int64_t n, const double *x, const double *low, const double *high,
                     const weir_chart_style *s)
{
    fprintf(c->out, "<path fill=\"%s\" d=\"M0 0", colour_of(s));
    for (int64_t i = 0; i < n;) {
        outline o = {.c = c, .command = 'M'};
        int64_t end = i;
        while (end < n && isfinite(weir_chart_across(c, nth(x, end))) && isfinite(weir_chart_up(c, low[end])) &&
               isfinite(weir_chart_up(c, high[end])))
            end++;
        for (int64_t k = i; k < end; k++)
            put_corner(&o, nth(x, k), high[k]);
        for (int64_t k = end; k-- > i;)
            put_corner(&o, nth(x, k), low[k]);
        if (end > i)
            fputc('Z', c->out);
        i = end + 1;
    }
    fputc('"', c->out);
    put_name(c->out, s, "path");
}

/* Where bars stand: at zero, or at the nearest end of the axis. */
static double ground(const weir_chart *c)
{
    return c->up.log ? c->up.from : held(0, c->up.from, c->up.to);
}

void weir_chart_bars(const weir_chart *c, int64_t n, const double *edge, const double *height,
                     const weir_chart_style *s)
{
    const double base = weir_chart_up(c, ground(c));
    for (int64_t i = 0; i < n; i++) {
        const double left = held(weir_chart_across(c, edge[i]), c->x, c->x + c->width);
        const double right = held(weir_chart_across(c, edge[i + 1]), c->x, c->x + c->width);
        const double top = held(weir_chart_up(c, height[i]), c->y, c->y + c->height);
        if (!isfinite(edge[i]) || !isfinite(edge[i + 1]) || !isfinite(weir_chart_up(c, height[i])) || right <= left)
            continue;
        fprintf(c->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>", left,
                fmin(top, base), fmax(right - left - 0.5, 0.3), fabs(base - top), colour_of(s));
        weir_chart_number(c->out, edge[i]);
        fputs(" to ", c->out);
        weir_chart_number(c->out, edge[i + 1]);
        fputs(": ", c->out);
        weir_chart_number(c->out, height[i]);
        fputs("</title></rect>\n", c->out);
    }
}

void weir_chart_steps(const weir_chart *c, int64_t n, const double *edge, const double *height,
                      const weir_chart_style *s)
{
    const double left = c->x, right = c->x + c->width, top = c->y, bottom = c->y + c->height;
    bool on = false;
    fputs("<path ", c->out);
    put_stroke(c->out, s);
    fputs(" d=\"M0 0", c->out);
    for (int64_t i = 0; i < n; i++) {
        const double y = weir_chart_up(c, height[i]);
        const double a = weir_chart_across(c, edge[i]), b = weir_chart_across(c, edge[i + 1]);
        const bool there = isfinite(y) && isfinite(a) && isfinite(b) && b >= left && a <= right;
        if (there)
            fprintf(c->out, "%c%.2f %.2fH%.2f", on ? 'L' : 'M', held(a, left, right), held(y, top, bottom),
                    held(b, left, right));
        on = there;
    }
    fputc('"', c->out);
    put_name(c->out, s, "path");
}

void weir_chart_points(const weir_chart *c, int64_t n, const double *x, const double *y, const weir_str *name,
                       bool written, const weir_chart_style *s)
{
    const double radius = s->dots > 0 ? s->dots : 3;
    for (int64_t i = 0; i < n; i++) {
        const double px = weir_chart_across(c, nth(x, i)), py = weir_chart_up(c, y[i]);
        if (!inside(c, px, py))
            continue;
        put_dot(c, nth(x, i), y[i], radius, name ? &name[i] : NULL, s);
        if (!name || !written)
            continue;
        const bool at_the_end = px > c->x + 0.8 * c->width;
        fprintf(c->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" text-anchor=\"%s\">",
                px + (at_the_end ? -1 : 1) * (radius + 3), py + 3.5, at_the_end ? "end" : "start");
        weir_svg_text(c->out, name[i].p, name[i].n, 18, true);
        fputs("</text>\n", c->out);
    }
}

/* --- the legend */

double weir_chart_legend(FILE *out, double x, double y, double width, const weir_chart_style *s, int n)
{
    double at = x, line = 0;
    for (int i = 0; i < n; i++) {
        if (!s[i].name)
            continue;
        const double wide = 38 + 6.3 * (double)weir_svg_columns(s[i].name, strlen(s[i].name));
        if (at > x && at + wide > x + width) {
            at = x;
            line++;
        }
        const double top = y + line * WEIR_CHART_LEGEND;
        if (out && s[i].area) {
            fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"16\" height=\"10\" fill=\"%s\"/>", at, top + 3,
                    colour_of(&s[i]));
        } else if (out && s[i].loose) {
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\"/>", at + 8, top + 8, s[i].dots,
                    colour_of(&s[i]));
        } else if (out) {
            fprintf(out, "<path d=\"M%.1f %.1fh16\" ", at, top + 8);
            put_stroke(out, &s[i]);
            fputs("/>", out);
        }
        if (out) {
            fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\">", at + 22, top + 12);
            weir_svg_text(out, s[i].name, strlen(s[i].name), 0, false);
            fputs("</text>\n", out);
        }
        at += wide;
    }
    return at > x ? (line + 1) * WEIR_CHART_LEGEND : 0;
}

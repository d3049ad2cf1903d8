/* page/chart.c: axes and frames. */
#include "chart.h"

#include <math.h>
#include <string.h>

#define GRID "#d5d9e0"

/* Values beyond are as good as infinite, and nearer to zero as good as zero: their sums and steps are no numbers. */
#define FARTHEST 1e300
#define NEAREST 1e-300

void weir_chart_open(FILE *out, double width, double height, const char *title)
{
    weir_svg_open(out, width, height, NULL, title);
}

void weir_chart_number(FILE *out, double v)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    if (isfinite(v))
        weir_jsonw_double(&w, v);
    else
        fputs(isnan(v) ? "none" : v > 0 ? "inf" : "-inf", out);
}

/* --- ranges */

void weir_chart_hold_one(weir_chart_axis *a, double v)
{
    if (!(fabs(v) <= FARTHEST) || (a->log && v < NEAREST))
        return;
    v = fabs(v) < NEAREST ? 0 : v;
    const bool empty = !a->held && !(a->from < a->to);
    a->from = empty ? v : fmin(a->from, v);
    a->to = empty ? v : fmax(a->to, v);
    a->held = true;
}

void weir_chart_hold(weir_chart_axis *a, const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        weir_chart_hold_one(a, v[i]);
}

/* The next of 1, 2, 5 times a power of ten, not below x > 0. */
static double round_step(double x)
{
    const double power = pow(10, floor(log10(x))), part = x / power;
    return power * (part > 5.0001 ? 10 : part > 2.0001 ? 5 : part > 1.0001 ? 2 : 1);
}

/* The same, not above. */
static double round_down(double x)
{
    const double power = pow(10, floor(log10(x) + 1e-9)), part = x / power * 1.0001;
    return power * (part >= 5 ? 5 : part >= 2 ? 2 : 1);
}

static double step_of(const weir_chart_axis *a, double room)
{
    const double most = room < 2 ? 2 : room > 6 ? 6 : room;
    return round_step((a->to - a->from) / most);
}

static void settle_log(weir_chart_axis *a)
{
    if (!(a->from > 0 && a->to >= a->from)) {
        a->from = 1;
        a->to = 10;
    }
    if (!a->exact && a->to / a->from < 100) {
        a->from = round_down(a->from);
        a->to = round_step(a->to);
    } else if (!a->exact) {
        a->from = pow(10, floor(log10(a->from) + 1e-9));
        a->to = pow(10, ceil(log10(a->to) - 1e-9));
    }
    if (!(a->to > a->from * (1 + 1e-9)))
        a->to = 10 * a->from;
}

/* room: for so many numbers. */
static void settle(weir_chart_axis *a, double room)
{
    if (a->name && !(a->from < a->to)) {
        a->from = a->names > 1 ? 0 : -0.5;
        a->to = a->names > 1 ? a->names - 1 : 0.5;
    } else if (a->log) {
        settle_log(a);
    } else {
        const double size = fmax(fabs(a->from), fabs(a->to));
        if (!(a->from <= a->to) || size == 0) {
            a->from = 0;
            a->to = 1;
        } else if (a->to - a->from <= 1e-9 * size) {
            a->from -= size / 2;
            a->to += size / 2;
        }
        const double step = step_of(a, room);
        if (!a->exact && !a->name) {
            a->from = step * floor(a->from / step + 1e-6);
            a->to = step * ceil(a->to / step - 1e-6);
        }
    }
}

/* From 0 to 1 on the axis. */
static double place(const weir_chart_axis *a, double v)
{
    if (!isfinite(v) || (a->log && v <= 0))
        return NAN;
    if (a->log) /* quotients may be infinite */
        return (log10(v) - log10(a->from)) / (log10(a->to) - log10(a->from));
    return (v - a->from) / (a->to - a->from);
}

double weir_chart_across(const weir_chart *c, double v)
{
    return c->x + c->width * place(&c->across, v);
}

double weir_chart_up(const weir_chart *c, double v)
{
    return c->y + c->height * (1 - place(&c->up, v));
}

/* --- ticks */

static void put_tick(const weir_chart *c, bool up, double v)
{
    const weir_chart_axis *a = up ? &c->up : &c->across;
    const double at = place(a, v);
    if (!(at >= -1e-6 && at <= 1 + 1e-6))
        return;
    const double x = up ? c->x : weir_chart_across(c, v), y = up ? weir_chart_up(c, v) : c->y + c->height;
    if (up)
        fprintf(c->out, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"" GRID "\"/>", x, y, c->width);
    else
        fprintf(c->out, "<path d=\"M%.1f %.1fv4\" stroke=\"" GRID "\"/>", x, y);
    fprintf(c->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"11\">", up ? x - 6 : x,
            up ? y + 4 : y + 16, up ? "end" : "middle");
    if (a->name && v >= 0 && v < a->names) {
        weir_svg_text(c->out, a->name[(int)v].p, a->name[(int)v].n, up ? 9 : 16, true);
    } else {
        /* Digits that tell this tick from the next: few, but where the axis is far from zero. */
        const double times = a->times != 0 ? a->times : 1, size = fmax(fabs(a->from), fabs(a->to));
        const double need = a->log ? 0 : ceil(log10(size / (a->to - a->from))) + 3;
        fprintf(c->out, "%.*g", need > 6 ? (int)fmin(need, 15) : 6, v * times);
        if (a->unit)
            weir_svg_text(c->out, a->unit, strlen(a->unit), 0, false);
    }
    fputs("</text>\n", c->out);
}

/* Every how many-th of n names, the longest of which takes so many pixels, an axis of this length has room for. */
static int every(int n, double length, double longest)
{
    const int room = (int)fmax(1, length / longest);
    return (n + room - 1) / room;
}

static void put_names(const weir_chart *c, bool up)
{
    const weir_chart_axis *a = up ? &c->up : &c->across;
    int64_t longest = 1;
    for (int i = 0; i < a->names; i++) {
        const int64_t n = weir_svg_columns(a->name[i].p, a->name[i].n);
        longest = n > longest ? n : longest;
    }
    const int step =
        every(a->names, up ? c->height : c->width, up ? 14 : 7.0 * (double)(longest > 16 ? 16 : longest) + 8);
    for (int i = 0; i < a->names; i += step)
        put_tick(c, up, i);
}

static void put_given_ticks(const weir_chart *c, bool up)
{
    const weir_chart_axis *a = up ? &c->up : &c->across;
    const int step = every(a->ticks, up ? c->height : c->width, up ? 14 : 44);
    for (int i = 0; i < a->ticks; i++)
        if (i == a->ticks - 1 || (i % step == 0 && i + step <= a->ticks))
            put_tick(c, up, a->tick[i]);
}

static void put_log_ticks(const weir_chart *c, bool up)
{
    const weir_chart_axis *a = up ? &c->up : &c->across;
    const double decades = log10(a->to) - log10(a->from);
    const int step = (int)fmax(1, ceil(decades / (up ? 8 : 6)));
    const int first = (int)floor(log10(a->from) + 1e-9);
    for (int k = first; k <= first + (int)decades + 1; k += step) {
        put_tick(c, up, pow(10, k));
        if (decades <= 2.001) {
            put_tick(c, up, 2 * pow(10, k));
            put_tick(c, up, 5 * pow(10, k));
        }
    }
}

static double room_of(const weir_chart *c, bool up)
{
    return up ? c->height / 36 : c->width / 48;
}

static void put_ticks(const weir_chart *c, bool up)
{
    const weir_chart_axis *a = up ? &c->up : &c->across;
    if (a->tick) {
        put_given_ticks(c, up);
    } else if (a->name) {
        put_names(c, up);
    } else if (a->log) {
        put_log_ticks(c, up);
    } else {
        const double step = step_of(a, room_of(c, up)), first = ceil(a->from / step - 1e-6);
        for (int i = 0; (first + i) * step <= a->to + 1e-6 * step; i++)
            put_tick(c, up, (first + i) * step);
    }
}

void weir_chart_frame(weir_chart *c)
{
    settle(&c->across, room_of(c, false));
    settle(&c->up, room_of(c, true));
    if (c->title) {
        fprintf(c->out, "<text x=\"%g\" y=\"%g\" font-weight=\"bold\">", c->x, c->y - 12);
        weir_svg_text(c->out, c->title, strlen(c->title), (int)(c->width / 6.2), false);
        fputs("</text>\n", c->out);
    }
    put_ticks(c, true);
    put_ticks(c, false);
    fprintf(c->out, "<path d=\"M%g %gv%gh%g\" fill=\"none\" stroke=\"#9aa3b0\"/>\n", c->x, c->y, c->height, c->width);
    if (c->across.label) {
        fprintf(c->out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\" fill=\"" WEIR_CHART_SOFT "\">",
                c->x + c->width / 2, c->y + c->height + 34);
        weir_svg_text(c->out, c->across.label, strlen(c->across.label), (int)(c->width / 6), false);
        fputs("</text>\n", c->out);
    }
    if (c->up.label) {
        fprintf(c->out,
                "<text transform=\"translate(%g %g)rotate(-90)\" text-anchor=\"middle\" fill=\"" WEIR_CHART_SOFT "\">",
                c->x - 50, c->y + c->height / 2);
        weir_svg_text(c->out, c->up.label, strlen(c->up.label), (int)(c->height / 6), false);
        fputs("</text>\n", c->out);
    }
}

/* page/chart.h: charts as SVG in the style of svg.h: frames with axes and what stands in them, heat maps, strips of
 * tokens; and plain tables as HTML. Each part is drawn where it is told to, so that a picture can have any number.
 *
 *     weir_chart c = {.out = out, .x = 64, .y = 40, .width = 420, .height = 240, .title = "norms along the stream",
 *                     .across = {.label = "layer"}, .up = {.label = "norm"}};
 *     weir_chart_hold(&c.across, layer, n);          // the axes hold these values
 *     weir_chart_hold(&c.up, norm, n);
 *     weir_chart_open(out, 500, 330, "norms");
 *     weir_chart_frame(&c);
 *     weir_chart_line(&c, n, layer, norm, &(weir_chart_style){.name = "mean", .colour = weir_chart_colour(0)});
 *     weir_svg_end(out);
 *
 * Texts are bytes of any kind: they are drawn in printable form. Values that are NaN or infinite, or not positive on a
 * logarithmic axis, are gaps. Tooltips (<title>) have all digits.
 */
#ifndef WEIR_TOOLS_PAGE_CHART_H
#define WEIR_TOOLS_PAGE_CHART_H

#include "svg.h"

/* Begins a picture inside a page, without the head of a file; weir_svg_end ends it. weir_svg_begin begins a file. */
void weir_chart_open(FILE *out, double width, double height, const char *title);

/* --- axes and frames */

/* Room for an axis' numbers and texts around a frame. */
enum { WEIR_CHART_LEFT = 64, WEIR_CHART_TOP = 30, WEIR_CHART_UNDER = 44, WEIR_CHART_LEGEND = 18 };

typedef struct weir_chart_axis {
    const char *label; /* what it is, with the unit; NULL: none */
    double from, to;   /* equal: the axis holds nothing yet */
    bool held;         /* set by weir_chart_hold */
    bool log;
    bool exact;           /* ends at from and to, not at round numbers around them */
    double times;         /* numbers at the ticks are values times this; 0: 1 */
    const char *unit;     /* stands behind each number: " %"; NULL: nothing */
    const weir_str *name; /* [names] the i-th stands at the value i, in the place of numbers; NULL: numbers */
    int names;
    const double *tick; /* [ticks] where ticks stand; NULL: at round numbers */
    int ticks;
} weir_chart_axis;

/* Widens an axis so that it holds these values, those that are finite (and positive, if it is logarithmic). */
void weir_chart_hold(weir_chart_axis *a, const double *v, int64_t n);
void weir_chart_hold_one(weir_chart_axis *a, double v);

typedef struct weir_chart {
    FILE *out;
    double x, y, width, height; /* the frame in the picture */
    const char *title;          /* above it; NULL: none */
    weir_chart_axis across, up;
} weir_chart;

/* Draws title, grid, ticks and labels. Settles the axes: from < to, at round numbers. Everything else comes after it.
 */
void weir_chart_frame(weir_chart *c);
/* Where a value stands in the picture; NaN: nowhere. */
double weir_chart_across(const weir_chart *c, double v);
double weir_chart_up(const weir_chart *c, double v);

/* --- what stands in a frame; what lies outside of it is cut off */

typedef struct weir_chart_style {
    const char *name;   /* in the legend and the tooltip; NULL: neither */
    const char *colour; /* NULL: weir_chart_colour(0) */
    double width;       /* of a line; 0: 1.5 */
    const char *dash;   /* "5 3"; NULL: whole */
    double dots;        /* radius of a dot with a tooltip at each point of a line; 0: none */
    bool area;          /* a box in the legend, not a stroke */
    bool loose;         /* a dot in the legend, not a stroke */
} weir_chart_style;

/* Of texts beside what is shown; of bars and of bands, that of the wider band around another. */
#define WEIR_CHART_SOFT "#545c6b"
#define WEIR_CHART_BAND "#a9cbe8"
#define WEIR_CHART_WIDE_BAND "#dbe9f6"

/* The k-th of eight colours for lines, again and again; the matplotlib figures of notebooks have the same. */
const char *weir_chart_colour(int k);
/* Of lines that have an order: from blue (0) over to orange (1). */
weir_svg_colour weir_chart_ramp(double at);

/* x NULL: 0, 1, 2 ... A point that is missing breaks a line, and leaves a hole in a band. */
void weir_chart_line(const weir_chart *c, int64_t n, const double *x, const double *y, const weir_chart_style *s);
void weir_chart_band(const weir_chart *c, int64_t n, const double *x, const double *low, const double *high,
                     const weir_chart_style *s);
/* A histogram: bar i stands on [edge[i], edge[i + 1]]; edge [n + 1]. Each has a tooltip. */
void weir_chart_bars(const weir_chart *c, int64_t n, const double *edge, const double *height,
                     const weir_chart_style *s);
/* The same as an outline. */
void weir_chart_steps(const weir_chart *c, int64_t n, const double *edge, const double *height,
                      const weir_chart_style *s);
/* Dots; name [n]: in the tooltip, and beside the dot if `written`. name may be NULL. s->dots: radius, 0: 3. */
void weir_chart_points(const weir_chart *c, int64_t n, const double *x, const double *y, const weir_str *name,
                       bool written, const weir_chart_style *s);
/* A line through the whole frame at a value of the across axis (upright), or of the up axis. */
void weir_chart_rule(const weir_chart *c, bool upright, double value, const weir_chart_style *s);

/* Keys of styles that have a name, from (x, y) on, in lines of this width. Returns the height taken. out NULL: only
 * measures. */
double weir_chart_legend(FILE *out, double x, double y, double width, const weir_chart_style *s, int n);

/* --- colours of values: white at 0, deep orange at `most`; blue below 0 */

typedef struct weir_chart_scale {
    double low, most; /* low: 0, or -most if there are negative values */
    bool log;         /* white at low > 0 */
} weir_chart_scale;
/* Holds the finite values (if log: the positive ones). */
weir_chart_scale weir_chart_scale_of(const double *v, int64_t n, bool log);
/* The value at a share (0 to 1) of the scale. */
double weir_chart_scale_at(const weir_chart_scale *s, double share);
/* NaN: "none". Infinite: the end of the scale. */
weir_svg_colour weir_chart_scale_colour(const weir_chart_scale *s, double v);
/* The scale as a bar of this height with numbers; it takes about 70 across. label: above it; may be NULL. */
void weir_chart_scale_bar(FILE *out, const weir_chart_scale *s, double x, double y, double height, const char *label);

/* --- heat maps */

typedef struct weir_chart_map {
    FILE *out;
    double x, y;               /* top left of the whole, with its texts */
    double width;              /* of the whole, at most; cells are made to fit */
    const char *title;         /* NULL: none */
    const char *down, *across; /* what rows and columns are; NULL: not said */
    const char *label;         /* of the values, with the unit: at the scale */
    int64_t rows, columns;
    const double *value;           /* [rows, columns]; not finite: an empty cell with a tooltip */
    const weir_str *row, *column;  /* names; NULL: 0, 1, 2 ... */
    const weir_chart_scale *scale; /* NULL: of the values */
    const char *(*tip)(void *ctx, int64_t row, int64_t column); /* more text for a cell's tooltip; may be NULL */
    void *ctx;
    int digits;  /* write values into cells that have the room, with so many digits; 0: not */
    bool rising; /* the first row at the bottom */
} weir_chart_map;

double weir_chart_map_height(const weir_chart_map *m);
/* The width that is taken: m->width or less. */
double weir_chart_map_width(const weir_chart_map *m);
void weir_chart_map_draw(const weir_chart_map *m);

/* --- strips: the tokens of a text in boxes, wrapped to the width */

typedef struct weir_chart_strip {
    FILE *out;
    double x, y, width;
    int64_t n;
    const weir_str *token;         /* [n] bytes; without any: "<#ID>" if id is given */
    const int32_t *id;             /* [n], or NULL */
    const double *value;           /* [n] not finite: a box without colour */
    const weir_chart_scale *scale; /* NULL: of the values */
    const char *label;             /* what the values are: at the scale above the strip; NULL: no scale is drawn */
    int64_t first;                 /* tooltips count from here on */
} weir_chart_strip;

double weir_chart_strip_height(const weir_chart_strip *s);
void weir_chart_strip_draw(const weir_chart_strip *s);

/* --- plain tables, as HTML: <table class="plain">, cells of numbers have the class "number", of tokens "token" */

typedef struct weir_chart_table {
    FILE *out;
    int columns, at;
} weir_chart_table;

/* head: columns of them. caption may be NULL. Cells follow, row by row. */
void weir_chart_table_begin(weir_chart_table *t, FILE *out, const char *caption, const char *const *head, int columns);
void weir_chart_table_text(weir_chart_table *t, const char *p, size_t n); /* cut to 60 columns; the tooltip has all */
void weir_chart_table_token(weir_chart_table *t, weir_str bytes, int32_t id); /* id -1: none */
/* The text around a token: before and behind it, and itself marked. */
void weir_chart_table_context(weir_chart_table *t, weir_str before, weir_str token, weir_str behind);
void weir_chart_table_int(weir_chart_table *t, int64_t v);
/* With so many digits; the tooltip has all. A cell of what is NaN is empty. heat: its colour, or NULL. */
void weir_chart_table_real(weir_chart_table *t, double v, int digits, const weir_chart_scale *heat);
/* Begins a cell whose HTML the caller writes, and ends it. kind: "number", "token", or NULL. */
void weir_chart_table_cell(weir_chart_table *t, const char *kind);
void weir_chart_table_cell_end(weir_chart_table *t);
void weir_chart_table_end(weir_chart_table *t);

/* --- numbers as text */

/* The shortest digits that give the same double back; "none" for NaN, "inf", "-inf". */
void weir_chart_number(FILE *out, double v);

#endif

/* act/act.h: what `weir act` shows. show.c: text, TSV, JSON; plot.c: on the terminal and as SVG. */
#ifndef WEIR_ACT_H
#define WEIR_ACT_H

#include "cli/common.h"
#include "cli/reals.h"

enum { WEIR_ACT_TEXT, WEIR_ACT_TSV };
enum { WEIR_ACT_MOST = 16 }; /* functions at once */

typedef struct weir_act_args {
    const char *at, *gate, *up, *against;
    double from, to, step, beta;
    int64_t width;
    int kernel, format;
    weir_out_args out;
    const char *path, *svg;
    bool force;
} weir_act_args;

/* A function at a place: in double precision and, where models have it, by the kernels. */
typedef struct weir_act_point {
    double x, y, slope;
    float kernel, kernel_slope; /* NaN: they have it not */
} weir_act_point;

/* One component of a gated product. */
typedef struct weir_act_product {
    double gate, up, opened; /* opened: f(gate) */
    double y;
    float kernel;
} weir_act_product;

typedef struct weir_act_curve {
    const weir_activation *f;
    weir_lowest lowest;
    weir_act_point *point;     /* [n_points] */
    weir_act_product *product; /* [gate.n] */
    double apart, apart_at;    /* --against: the largest |difference| on [from, to], and where */
} weir_act_curve;

typedef struct weir_acting {
    weir_cli *cli;
    const weir_act_args *a;
    weir_act_curve curve[WEIR_ACT_MOST];
    int n;
    bool listed; /* no name was given: all of them, without tables */
    const weir_activation *against;
    weir_reals at; /* the table's places */
    weir_reals gate, up;
} weir_acting;

int weir_act_put(void *acting, FILE *out); /* for weir_output_put */
int weir_act_put_svg(void *acting, FILE *out);
/* A picture in characters, `width` columns wide. */
void weir_act_plot(const weir_acting *t, const weir_act_curve *c, FILE *out);

#endif

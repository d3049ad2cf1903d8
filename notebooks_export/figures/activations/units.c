/* activations/units.c: how far the units of the hook vary, and whether few rows make up that spread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "activ.h"

enum { DOTS = 4000, NAMED = 6, WIDE = 640, HIGH = 380 };

typedef struct order {
    double sd;
    int64_t column;
} order;

/* Those that vary most first; what is no number last. */
static int by_spread(const void *a, const void *b)
{
    const order *x = a, *y = b;
    const double p = isnan(x->sd) ? -1 : x->sd, q = isnan(y->sd) ? -1 : y->sd;
    return p != q ? (p < q) - (p > q) : (x->column > y->column) - (x->column < y->column);
}

static int64_t unit_of(const weir_activ *a, int64_t column)
{
    const weir_dump_hook *h = weir_dump_hook_at(a->r, a->hook);
    return h->units ? h->units[column] : column;
}

static void put_dots(const weir_activ *a, const weir_chart *c, const weir_activ_moments *m, const order *o, int64_t n,
                     bool written, const weir_chart_style *style)
{
    for (int64_t i = 0; i < n; i++) {
        char name[32];
        if (written && n > 1 && a->has_unit && o[i].column == a->column)
            continue; /* it is written once, at the larger dot */
        const int len = snprintf(name, sizeof name, "%lld", (long long)unit_of(a, o[i].column));
        weir_chart_points(c, 1, &m->sd[o[i].column], &m->kurtosis[o[i].column], &(weir_str){name, (size_t)len}, written,
                          style);
    }
}

/* Beyond some thousands those that vary least are not drawn. */
static void put_figure(const weir_activ *a, FILE *out, const weir_activ_moments *m, const order *o)
{
    char title[400];
    snprintf(title, sizeof title, "units of %s", weir_dump_hook_at(a->r, a->hook)->name);
    weir_chart c = {.out = out,
                    .x = WEIR_CHART_LEFT,
                    .y = WEIR_CHART_TOP,
                    .width = WIDE - WEIR_CHART_LEFT - 20,
                    .height = HIGH - WEIR_CHART_TOP - WEIR_CHART_UNDER,
                    .title = title,
                    .across = {.label = "standard deviation", .log = true},
                    .up = {.label = "kurtosis", .log = true}};
    const int64_t drawn = a->width < DOTS ? a->width : DOTS;
    for (int64_t i = 0; i < drawn; i++)
        if (m->kurtosis[o[i].column] > 0) {
            weir_chart_hold_one(&c.across, m->sd[o[i].column]);
            weir_chart_hold_one(&c.up, m->kurtosis[o[i].column]);
        }
    weir_chart_open(out, WIDE, HIGH + WEIR_CHART_LEGEND, title);
    weir_chart_frame(&c);
    const weir_chart_style others = {.name = "unit", .colour = weir_chart_colour(1), .dots = 2.2};
    put_dots(a, &c, m, o, drawn, false, &others);
    put_dots(a, &c, m, o, drawn < NAMED ? drawn : NAMED, true, &others);
    if (a->has_unit) {
        char name[40];
        snprintf(name, sizeof name, "unit %lld", (long long)a->unit);
        const weir_chart_style chosen = {.name = name, .dots = 4.5, .loose = true};
        put_dots(a, &c, m, &(order){.column = a->column}, 1, true, &(weir_chart_style){.name = "unit", .dots = 4.5});
        weir_chart_legend(out, c.x, c.y + c.height + WEIR_CHART_UNDER - 4, c.width, &chosen, 1);
    }
    weir_svg_end(out);
}

static void put_table(const weir_activ *a, FILE *out, const weir_activ_moments *m, const order *o, int64_t n)
{
    static const char *const head[] = {"unit", "mean", "sd", "min", "max", "kurtosis"};
    weir_chart_table t;
    weir_chart_table_begin(&t, out, "the units that vary most", head, 6);
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = o[i].column;
        weir_chart_table_int(&t, unit_of(a, c));
        weir_chart_table_real(&t, m->mean[c], 4, NULL);
        weir_chart_table_real(&t, m->sd[c], 4, NULL);
        weir_chart_table_real(&t, m->low[c], 4, NULL);
        weir_chart_table_real(&t, m->high[c], 4, NULL);
        weir_chart_table_real(&t, m->kurtosis[c], 4, NULL);
    }
    weir_chart_table_end(&t);
}

static int put_numbers(const weir_activ *a, weir_jsonw *numbers, const weir_activ_moments *m, const order *o, int64_t n)
{
    int64_t *column = malloc(sizeof *column * (size_t)(n + 1));
    double *v = malloc(sizeof *v * (size_t)(2 * n + 1));
    const bool ok = column && v;
    for (int64_t i = 0; ok && i < n; i++) {
        column[i] = o[i].column;
        v[i] = m->sd[o[i].column];
        v[n + i] = m->kurtosis[o[i].column];
    }
    if (ok) {
        weir_nb_put_ints(numbers, "varied", column, n);
        weir_nb_put_reals(numbers, "varied_sd", v, n);
        weir_nb_put_reals(numbers, "varied_kurtosis", v + n, n);
    }
    free(column);
    free(v);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(a->nb);
}

int weir_activ_draw_units(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_activ *a = data;
    weir_activ_moments m;
    order *o = malloc(sizeof *o * (size_t)(a->width + 1));
    (void)nb;
    if (!o)
        return weir_nb_no_memory(a->nb);
    int code = weir_activ_moments_of(a, &m);
    if (code == WEIR_EXIT_OK) {
        int64_t most = 0, blocks = (a->rows + a->step - 1) / a->step;
        for (int64_t c = 0; c < a->width; c++) {
            o[c] = (order){m.sd[c], c};
            most = m.n[c] > most ? m.n[c] : most;
        }
        qsort(o, (size_t)a->width, sizeof *o, by_spread);
        const int64_t n = a->top < a->width ? a->top : a->width;
        weir_nb_say(out, "%lld blocks of %lld rows; %lld rows counted", (long long)blocks, (long long)a->block,
                    (long long)most);
        put_figure(a, out, &m, o);
        put_table(a, out, &m, o, n);
        code = put_numbers(a, numbers, &m, o, n);
        weir_activ_moments_free(&m);
    }
    free(o);
    return code;
}

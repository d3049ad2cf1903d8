/* activations/histogram.c: how the values of the hook lie, and those of the unit. */
#include <math.h>
#include <stdlib.h>

#include "activ.h"
#include "figures/bins.h"

typedef struct bins {
    double *edge;   /* [n + 1] */
    int64_t *count; /* [n] */
    int64_t n;
} bins;

static bool bins_init(bins *b, int64_t n)
{
    *b = (bins){.edge = calloc((size_t)n + 1, sizeof *b->edge), .count = calloc((size_t)n, sizeof *b->count), .n = n};
    return b->edge && b->count;
}

static void bins_free(bins *b)
{
    free(b->edge);
    free(b->count);
}

typedef struct tally {
    const weir_activ *a;
    bins all, one;
    int64_t finite, zero, negative, not_finite;
} tally;

static int add_block(void *ctx, int64_t row, int64_t n, const float *x, const bool *counted)
{
    tally *t = ctx;
    const int64_t width = t->a->width;
    (void)row;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; counted[i] && c < width; c++) {
            const double v = (double)x[i * width + c];
            if (!isfinite(v)) {
                t->not_finite++;
                continue;
            }
            t->finite++;
            t->zero += v == 0;
            t->negative += v < 0;
            t->all.count[weir_nb_bin_of(t->all.edge, t->all.n, v)]++;
            if (t->a->has_unit && c == t->a->column)
                t->one.count[weir_nb_bin_of(t->one.edge, t->one.n, v)]++;
        }
    return WEIR_EXIT_OK;
}

enum { WIDE = 920, HIGH = 300, FRAME = 370 };

static int put_panel(FILE *out, const bins *b, double x, const char *title)
{
    double *height = malloc(sizeof *height * (size_t)b->n);
    if (!height)
        return WEIR_EXIT_FAILED;
    weir_chart c = {.out = out,
                    .x = x,
                    .y = WEIR_CHART_TOP,
                    .width = FRAME,
                    .height = HIGH - WEIR_CHART_TOP - WEIR_CHART_UNDER,
                    .title = title,
                    .across = {.label = "value"},
                    .up = {.label = "number of values", .log = true}};
    for (int64_t i = 0; i < b->n; i++)
        height[i] = (double)b->count[i];
    weir_chart_hold(&c.across, b->edge, b->n + 1);
    weir_chart_hold(&c.up, height, b->n);
    c.up.exact = true; /* from a half, so that a bar of one value has a height */
    c.up.from = 0.5;
    c.up.to = c.up.held ? 1.5 * c.up.to : 10;
    weir_chart_frame(&c);
    weir_chart_bars(&c, b->n, b->edge, height, &(weir_chart_style){.colour = WEIR_CHART_BAND});
    free(height);
    return WEIR_EXIT_OK;
}

static int put_figure(const tally *t, FILE *out)
{
    const weir_activ *a = t->a;
    char title[400], one[64];
    const double finite = t->finite ? (double)t->finite : 1;
    snprintf(title, sizeof title, "all units of %s", weir_dump_hook_at(a->r, a->hook)->name);
    snprintf(one, sizeof one, "unit %lld", (long long)a->unit);
    weir_nb_say(out, "%lld values: %.2f %% zero, %.2f %% negative; %lld not finite", (long long)t->finite,
                100 * (double)t->zero / finite, 100 * (double)t->negative / finite, (long long)t->not_finite);
    weir_chart_open(out, a->has_unit ? WIDE : WIDE / 2, HIGH, title);
    int code = put_panel(out, &t->all, WEIR_CHART_LEFT, title);
    if (code == WEIR_EXIT_OK && a->has_unit)
        code = put_panel(out, &t->one, WEIR_CHART_LEFT + WIDE / 2.0, one);
    weir_svg_end(out);
    return code == WEIR_EXIT_OK ? code : weir_nb_no_memory(a->nb);
}

static void put_numbers(const tally *t, weir_jsonw *numbers)
{
    const double finite = t->finite ? (double)t->finite : 1;
    weir_nb_put_reals(numbers, "edges", t->all.edge, t->all.n + 1);
    weir_nb_put_ints(numbers, "counts", t->all.count, t->all.n);
    if (t->a->has_unit) {
        weir_nb_put_reals(numbers, "unit_edges", t->one.edge, t->one.n + 1);
        weir_nb_put_ints(numbers, "unit_counts", t->one.count, t->one.n);
    }
    weir_jsonw_key_int(numbers, "n_values", t->finite);
    weir_jsonw_key_int(numbers, "n_not_finite", t->not_finite);
    weir_nb_put_real(numbers, "zero_share", (double)t->zero / finite);
    weir_nb_put_real(numbers, "negative_share", (double)t->negative / finite);
}

int weir_activ_draw_histogram(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_activ *a = data;
    weir_activ_moments m = {0};
    tally t = {.a = a};
    double low = INFINITY, high = -INFINITY;
    (void)nb;
    const bool room = bins_init(&t.all, a->bins), more = bins_init(&t.one, a->bins);
    int code = room && more ? weir_activ_moments_of(a, &m) : weir_nb_no_memory(a->nb);
    for (int64_t c = 0; code == WEIR_EXIT_OK && c < a->width; c++) {
        low = fmin(low, m.low[c]);
        high = fmax(high, m.high[c]);
    }
    if (code == WEIR_EXIT_OK) {
        weir_nb_edges(low, high, t.all.n, t.all.edge);
        if (a->has_unit)
            weir_nb_edges(m.low[a->column], m.high[a->column], t.one.n, t.one.edge);
        code = weir_activ_sample(a, a->hook, add_block, &t);
    }
    if (code == WEIR_EXIT_OK)
        code = put_figure(&t, out);
    if (code == WEIR_EXIT_OK)
        put_numbers(&t, numbers);
    weir_activ_moments_free(&m);
    bins_free(&t.all);
    bins_free(&t.one);
    return code;
}

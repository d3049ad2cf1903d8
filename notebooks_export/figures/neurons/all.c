/* Figures of all neurons of a file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures/bins.h"
#include "one.h"
#include "page/chart.h"

enum { TWENTIETHS = 20, SHARES = 5, FIRST_TOKENS = 5 };

static weir_str *labels_of(const weir_nb_neurons *v)
{
    weir_str *label = malloc(sizeof *label * ((size_t)v->tables + 1));
    for (int t = 0; t < v->tables && label; t++)
        label[t] = (weir_str){v->label[t], strlen(v->label[t])};
    return label;
}

static int table_of(const weir_nb_neurons *v, int64_t i)
{
    int t = 0;
    while (i >= v->begin[t + 1])
        t++;
    return t;
}

/* --- density against a quantity: every step-th neuron */

typedef struct drawn {
    int64_t n;
    double *density, *value;
    weir_str *name;
    char *names; /* their bytes */
} drawn;

static void drawn_free(drawn *d)
{
    free(d->density);
    free(d->value);
    free(d->name);
    free(d->names);
}

/* The names are one text, so their places are known at its end. */
static bool drawn_names(drawn *d, const weir_nb_neurons *v, int64_t step)
{
    size_t size, at = 0;
    FILE *f = open_memstream(&d->names, &size);
    if (!f)
        return false;
    for (int64_t k = 0; k < d->n; k++) {
        const int t = table_of(v, k * step);
        const int n =
            fprintf(f, "%s neuron %lld", v->label[t], (long long)weir_nb_neurons_unit(v, t, k * step - v->begin[t]));
        d->name[k].n = n > 0 ? (size_t)n : 0;
    }
    if (fclose(f) != 0)
        return false;
    for (int64_t k = 0; k < d->n; at += d->name[k++].n)
        d->name[k].p = d->names + at;
    return true;
}

static bool drawn_take(drawn *d, const weir_nb_neurons *v, int64_t step)
{
    const int64_t n = (weir_nb_neurons_all(v) + step - 1) / step;
    *d = (drawn){.n = n,
                 .density = malloc(sizeof *d->density * (size_t)n),
                 .value = malloc(sizeof *d->value * (size_t)n),
                 .name = malloc(sizeof *d->name * (size_t)n)};
    if (!d->density || !d->value || !d->name)
        return false;
    for (int64_t k = 0; k < n; k++) {
        d->density[k] = v->known[WEIR_NB_DENSITY][k * step];
        d->value[k] = v->known[v->quantity][k * step];
    }
    return drawn_names(d, v, step);
}

static void draw_scatter(const weir_nb_neurons *v, FILE *out, const drawn *d, int64_t step)
{
    const int64_t at = v->begin[v->table] + v->row;
    const double ring_x = v->known[WEIR_NB_DENSITY][at], ring_y = v->known[v->quantity][at];
    char title[96];
    snprintf(title, sizeof title, "%lld of %lld neurons", (long long)d->n, (long long)weir_nb_neurons_all(v));
    weir_chart c = {.out = out,
                    .x = WEIR_CHART_LEFT,
                    .y = WEIR_CHART_TOP,
                    .width = 620,
                    .height = 330,
                    .title = title,
                    .across = {.label = "density: share of tokens above 0"},
                    .up = {.label = weir_nb_quantity_name[v->quantity], .log = v->quantity == WEIR_NB_KURTOSIS}};
    weir_chart_hold(&c.across, d->density, d->n);
    weir_chart_hold(&c.up, d->value, d->n);
    weir_chart_hold_one(&c.across, ring_x);
    weir_chart_hold_one(&c.up, ring_y);
    weir_chart_open(out, c.x + c.width + 20, c.y + c.height + WEIR_CHART_UNDER, title);
    weir_chart_frame(&c);
    for (int t = 0; t < v->tables; t++) {
        const int64_t first = (v->begin[t] + step - 1) / step, end = (v->begin[t + 1] + step - 1) / step;
        const weir_svg_colour colour = weir_chart_ramp(v->tables > 1 ? (double)t / (v->tables - 1) : 0);
        weir_chart_points(&c, end - first, d->density + first, d->value + first, d->name + first, false,
                          &(weir_chart_style){.colour = colour.text, .dots = 1.6});
    }
    const double x = weir_chart_across(&c, ring_x), y = weir_chart_up(&c, ring_y);
    if (isfinite(x) && isfinite(y))
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"none\" stroke=\"#1b1f27\"/>\n", x, y);
    weir_svg_end(out);
}

int weir_nb_neurons_scatter(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    const int64_t step = (weir_nb_neurons_all(v) + v->points - 1) / v->points;
    drawn d;
    const bool ok = drawn_take(&d, v, step);
    if (ok) {
        draw_scatter(v, out, &d, step);
        weir_nb_put_reals(numbers, "drawn_density", d.density, d.n);
        weir_nb_put_reals(numbers, "drawn_values", d.value, d.n);
    }
    drawn_free(&d);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

/* --- the highest */

static double or_least(double x)
{
    return isnan(x) ? (double)-INFINITY : x;
}

/* The indices of those with the highest values, ties to the lower index; what has none is last. Returns how many. */
static int64_t find_highest(const double *value, int64_t n, int64_t most, int64_t *best)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = or_least(value[i]);
        int64_t at = kept;
        while (at > 0 && or_least(value[best[at - 1]]) < x)
            at--;
        if (at == most)
            continue;
        kept += kept < most;
        memmove(best + at + 1, best + at, sizeof *best * (size_t)(kept - at - 1));
        best[at] = i;
    }
    return kept;
}

/* The tokens at the first places of its list. */
static bool put_tokens(const weir_nb_neurons *v, FILE *out, int t, int64_t row)
{
    const bool kept = weir_neurons_options_of(v->s)->lists & 1u << WEIR_NEURONS_TOP;
    int64_t n;
    weir_neuron_hit *hit = weir_nb_neurons_list(v, t, row, kept ? WEIR_NEURONS_TOP : -1, &n);
    for (int64_t i = 0; i < n && i < FIRST_TOKENS; i++) {
        const weir_neurons_context c = weir_neurons_context_of(v->s, hit[i].doc, hit[i].pos, -1);
        if (c.n)
            weir_nb_neurons_box(v, out, c.id[c.hit]);
    }
    free(hit);
    return hit != NULL;
}

static bool draw_highest(const weir_nb_neurons *v, FILE *out, const int64_t *best, int64_t n)
{
    const char *const head[] = {"hook", "neuron", weir_nb_quantity_name[v->quantity], "density", "fires most at"};
    bool ok = true;
    weir_chart_table table;
    weir_chart_table_begin(&table, out, NULL, head, 5);
    for (int64_t k = 0; k < n; k++) {
        const int t = table_of(v, best[k]);
        const int64_t row = best[k] - v->begin[t];
        weir_chart_table_text(&table, v->group[t], strlen(v->group[t]));
        weir_chart_table_int(&table, weir_nb_neurons_unit(v, t, row));
        weir_chart_table_real(&table, v->known[v->quantity][best[k]], 5, NULL);
        weir_chart_table_cell(&table, "number");
        fprintf(out, "%.2f %%", 100 * v->known[WEIR_NB_DENSITY][best[k]]);
        weir_chart_table_cell_end(&table);
        weir_chart_table_cell(&table, "token");
        ok = put_tokens(v, out, t, row) && ok;
        weir_chart_table_cell_end(&table);
    }
    weir_chart_table_end(&table);
    return ok;
}

int weir_nb_neurons_highest(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    const int64_t all = weir_nb_neurons_all(v), most = v->places < all ? v->places : all;
    int64_t *best = malloc(sizeof *best * ((size_t)most + 1));
    double *value = malloc(sizeof *value * ((size_t)most + 1));
    bool ok = best && value;
    if (ok) {
        const int64_t n = find_highest(v->known[v->quantity], all, most, best);
        ok = draw_highest(v, out, best, n);
        for (int64_t k = 0; k < n; k++) {
            const int t = table_of(v, best[k]);
            value[k] = v->known[v->quantity][best[k]];
            best[k] = weir_nb_neurons_unit(v, t, best[k] - v->begin[t]);
        }
        weir_nb_put_ints(numbers, "highest_units", best, n);
        weir_nb_put_reals(numbers, "highest_values", value, n);
    }
    free(best);
    free(value);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

/* --- from layer to layer: the median, and what half and nine tenths of the neurons have */

static const double share[SHARES] = {.05, .25, .5, .75, .95};

/* out [SHARES][tables] */
static void set_quantiles(const weir_nb_neurons *v, int quantity, double *room, double *out)
{
    for (int t = 0; t < v->tables; t++) {
        int64_t n = 0;
        for (int64_t i = v->begin[t]; i < v->begin[t + 1]; i++)
            if (isfinite(v->known[quantity][i]))
                room[n++] = v->known[quantity][i];
        weir_nb_sort(room, n);
        for (int q = 0; q < SHARES; q++)
            out[q * v->tables + t] = weir_nb_quantile(room, n, share[q]);
    }
}

static void draw_layers(const weir_nb_neurons *v, FILE *out, double x, int quantity, const weir_str *label,
                        const double *q)
{
    const int n = v->tables;
    weir_chart c = {.out = out,
                    .x = x,
                    .y = WEIR_CHART_TOP,
                    .width = 250,
                    .height = 230,
                    .title = weir_nb_quantity_name[quantity],
                    .across = {.name = label, .names = n},
                    .up = {.log = quantity == WEIR_NB_KURTOSIS}};
    weir_chart_hold(&c.up, q, SHARES * n);
    weir_chart_frame(&c);
    weir_chart_band(&c, n, NULL, q, q + 4 * n,
                    &(weir_chart_style){.name = "5 to 95 %", .colour = WEIR_CHART_WIDE_BAND});
    weir_chart_band(&c, n, NULL, q + n, q + 3 * n,
                    &(weir_chart_style){.name = "25 to 75 %", .colour = WEIR_CHART_BAND});
    weir_chart_line(&c, n, NULL, q + 2 * n, &(weir_chart_style){.name = "median", .dots = 2});
}

/* NAME_by_table: [tables][SHARES] */
static bool put_quantiles(weir_jsonw *numbers, const char *name, const double *q, int tables)
{
    double *table = malloc(sizeof *table * SHARES * ((size_t)tables + 1));
    char key[32];
    snprintf(key, sizeof key, "%s_by_table", name);
    for (int i = 0; i < SHARES * tables && table; i++)
        table[i] = q[i % SHARES * tables + i / SHARES];
    if (table)
        weir_nb_put_table(numbers, key, table, tables, SHARES);
    free(table);
    return table != NULL;
}

int weir_nb_neurons_layers(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    static const int shown[] = {WEIR_NB_MAX, WEIR_NB_SKEW, WEIR_NB_KURTOSIS};
    static const weir_chart_style keys[] = {{.name = "median"},
                                            {.name = "25 to 75 %", .colour = WEIR_CHART_BAND, .area = true},
                                            {.name = "5 to 95 %", .colour = WEIR_CHART_WIDE_BAND, .area = true}};
    const weir_nb_neurons *v = data;
    weir_str *label = labels_of(v);
    double *room = malloc(sizeof *room * ((size_t)weir_nb_neurons_all(v) + 1));
    double *q = malloc(sizeof *q * SHARES * ((size_t)v->tables + 1));
    bool ok = label && room && q;
    if (ok) {
        weir_chart_open(out, 960, 320, "from layer to layer");
        for (int i = 0; i < 3; i++) {
            set_quantiles(v, shown[i], room, q);
            draw_layers(v, out, WEIR_CHART_LEFT + i * 310, shown[i], label, q);
            ok = put_quantiles(numbers, weir_nb_quantity_name[shown[i]], q, v->tables) && ok;
        }
        weir_chart_legend(out, WEIR_CHART_LEFT, 292, 600, keys, 3);
        weir_svg_end(out);
    }
    free(label);
    free(room);
    free(q);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

/* --- how many neurons fire how often */

static void set_densities(const weir_nb_neurons *v, double *out)
{
    for (int t = 0; t < v->tables; t++) {
        int64_t count[TWENTIETHS] = {0}, n = 0;
        for (int64_t i = v->begin[t]; i < v->begin[t + 1]; i++) {
            const double d = v->known[WEIR_NB_DENSITY][i];
            if (!isfinite(d))
                continue;
            count[d < 1 ? (int)(d * TWENTIETHS) : TWENTIETHS - 1]++;
            n++;
        }
        for (int k = 0; k < TWENTIETHS; k++)
            out[t * TWENTIETHS + k] = (double)count[k] / (double)(n ? n : 1);
    }
}

int weir_nb_neurons_densities(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    char text[TWENTIETHS][8];
    weir_str column[TWENTIETHS], *label = labels_of(v);
    double *value = malloc(sizeof *value * TWENTIETHS * ((size_t)v->tables + 1));
    const bool ok = label && value;
    for (int k = 0; k < TWENTIETHS; k++)
        column[k] = (weir_str){text[k], (size_t)snprintf(text[k], sizeof text[k], "%d", k * 5)};
    if (ok) {
        set_densities(v, value);
        const weir_chart_map m = {.out = out,
                                  .width = 760,
                                  .title = "how many neurons fire how often",
                                  .across = "density from, %: share of tokens above 0",
                                  .label = "share",
                                  .rows = v->tables,
                                  .columns = TWENTIETHS,
                                  .value = value,
                                  .row = label,
                                  .column = column,
                                  .rising = true};
        weir_chart_open(out, weir_chart_map_width(&m), weir_chart_map_height(&m), m.title);
        weir_chart_map_draw(&m);
        weir_svg_end(out);
        weir_nb_put_table(numbers, "density_share", value, v->tables, TWENTIETHS);
    }
    free(label);
    free(value);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

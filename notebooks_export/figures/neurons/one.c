/* Figures of the neuron that is shown: its values, and what it goes with. */
#include "one.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures/bins.h"
#include "page/chart.h"

/* "neuron 421 of blocks.6.mlp.hook_post", behind what stands before it. To be freed; NULL: out of memory. */
static char *title_of(const weir_nb_neurons *v, const char *before)
{
    char *title;
    const long long unit = weir_nb_neurons_unit(v, v->table, v->row);
    return asprintf(&title, "%sneuron %lld of %s", before, unit, v->group[v->table]) < 0 ? NULL : title;
}

/* --- values */

int weir_nb_neurons_moments(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    const weir_neurons_options *o = weir_neurons_options_of(v->s);
    static const char *const head[] = {"", "value"};
    weir_neuron_stats st;
    weir_chart_table t;
    double density[WEIR_NEURONS_MAX_THRESHOLDS], moments[WEIR_NB_QUANTITIES];
    char name[64];
    (void)nb;
    weir_neurons_stats(v->s, v->table, v->row, &st);
    weir_chart_table_begin(&t, out, NULL, head, 2);
    for (int q = 0; q < WEIR_NB_QUANTITIES; q++) {
        moments[q] = v->known[q][v->begin[v->table] + v->row];
        weir_chart_table_text(&t, weir_nb_quantity_name[q], strlen(weir_nb_quantity_name[q]));
        weir_chart_table_real(&t, moments[q], 6, NULL);
    }
    for (int i = 0; i < o->n_thresholds; i++) {
        density[i] = st.count ? (double)st.above[i] / (double)st.count : (double)NAN;
        snprintf(name, sizeof name, "share above %g", o->threshold[i]);
        weir_chart_table_text(&t, name, strlen(name));
        weir_chart_table_real(&t, density[i], 4, NULL);
    }
    weir_chart_table_text(&t, "values", 6);
    weir_chart_table_int(&t, st.count);
    if (st.nonfinite) {
        weir_chart_table_text(&t, "not finite, left out", 20);
        weir_chart_table_int(&t, st.nonfinite);
    }
    weir_chart_table_end(&t);
    weir_nb_put_reals(numbers, "moments", moments, WEIR_NB_QUANTITIES);
    weir_nb_put_reals(numbers, "density", density, o->n_thresholds);
    weir_jsonw_key_int(numbers, "count", st.count);
    weir_jsonw_key_int(numbers, "nonfinite", st.nonfinite);
    return WEIR_EXIT_OK;
}

/* The last place that `top` lists; NaN: none. */
static double last_listed(const weir_nb_neurons *v)
{
    int64_t n;
    weir_neuron_hit *hit = weir_nb_neurons_list(v, v->table, v->row, weir_nb_neurons_best(v), &n);
    const double last = n ? (double)hit[n - 1].value : (double)NAN;
    free(hit);
    return last;
}

static void draw_histogram(const weir_nb_neurons *v, FILE *out, const weir_nb_bins *b, const char *title)
{
    weir_chart c = {.out = out,
                    .x = WEIR_CHART_LEFT,
                    .y = WEIR_CHART_TOP,
                    .width = 620,
                    .height = 230,
                    .title = title,
                    .across = {.label = "activation"},
                    .up = {.label = "share per unit of activation", .log = true}};
    weir_nb_bins_hold(b, &c.across);
    weir_chart_hold(&c.up, b->height, b->n);
    weir_chart_open(out, c.x + c.width + 20, c.y + c.height + WEIR_CHART_UNDER, title);
    weir_chart_frame(&c);
    weir_chart_bars(&c, b->n, b->edge, b->height,
                    &(weir_chart_style){.name = "share per unit", .colour = WEIR_CHART_BAND});
    const double last = last_listed(v);
    if (isfinite(last))
        weir_chart_rule(&c, true, last, &(weir_chart_style){.name = "the last place that is listed", .dash = "5 3"});
    weir_svg_end(out);
}

int weir_nb_neurons_histogram(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    const int64_t at = v->begin[v->table] + v->row;
    int64_t count[WEIR_NEURONS_BINS];
    weir_nb_bins b;
    weir_neurons_hist(v->s, v->table, v->row, count);
    char *title = title_of(v, "");
    const bool ok = weir_nb_bins_join(&b, WEIR_NEURONS_BINS, count, weir_neurons_edge, v->known[WEIR_NB_MIN][at],
                                      v->known[WEIR_NB_MAX][at], v->bins) &&
                    title;
    if (ok) {
        draw_histogram(v, out, &b, title);
        weir_nb_bins_put(&b, numbers);
    }
    weir_nb_bins_free(&b);
    free(title);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

/* --- weights */

static void put_side(const weir_nb_neurons *v, weir_chart_table *t, const char *name, const weir_weight_token *token,
                     int64_t n)
{
    weir_chart_table_text(t, name, strlen(name));
    weir_chart_table_cell(t, "token");
    for (int64_t i = 0; i < n; i++)
        if (token[i].id >= 0)
            weir_nb_neurons_box(v, t->out, token[i].id);
    weir_chart_table_cell_end(t);
}

int weir_nb_neurons_weights(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    enum { MOST = 100 }; /* tokens of a side, by weir/neurons.h */
    static const char *const name[2 * WEIR_SIDES] = {"in_pos", "in_neg", "up_pos", "up_neg", "out_pos", "out_neg"};
    const weir_nb_neurons *v = data;
    static const char *const head[] = {"side", "tokens, the strongest first"};
    double score[2 * WEIR_SIDES * MOST];
    weir_chart_table t;
    int64_t sides = 0, n = 0, scores = 0;
    (void)nb;
    for (int i = 0; i < 2 * WEIR_SIDES; i++) {
        const weir_weight_token *token =
            weir_neurons_weight_tokens(v->s, v->table, v->row, (weir_weight_side)(i / 2), i % 2 == 0, &n);
        if (!token)
            continue;
        if (sides++ == 0)
            weir_chart_table_begin(&t, out, NULL, head, 2);
        n = n < v->places ? n : v->places;
        put_side(v, &t, name[i], token, n);
        for (int64_t j = 0; j < n; j++)
            score[scores++] = (double)token[j].score;
    }
    if (sides)
        weir_chart_table_end(&t);
    else
        weir_nb_neurons_missing(out, "The weights' tokens are", "weir neuron-top --weights yes");
    weir_nb_put_table(numbers, "weight_score", score, sides, sides ? scores / sides : 0);
    return WEIR_EXIT_OK;
}

/* --- mean by token */

static void draw_means(const weir_nb_neurons *v, FILE *out, const weir_token_mean *mean, const double *value, int64_t n)
{
    static const char *const head[] = {"token", "mean", "seen"};
    const weir_chart_scale heat = weir_chart_scale_of(value, n, false);
    weir_chart_table t;
    weir_chart_table_begin(&t, out, NULL, head, 3);
    for (int64_t i = 0; i < n; i++) {
        weir_chart_table_token(&t, weir_neurons_token(v->s, mean[i].id), mean[i].id);
        weir_chart_table_real(&t, value[i], 5, &heat);
        weir_chart_table_int(&t, mean[i].count);
    }
    weir_chart_table_end(&t);
}

/* What records more of this neuron. */
static int not_named(const weir_nb_neurons *v, FILE *out, const char *what)
{
    const weir_neurons_table *t = weir_neurons_table_at(v->s, v->table);
    char how[512], layer[24] = "";
    if (t->layer >= 0)
        snprintf(layer, sizeof layer, "L%dN", t->layer);
    snprintf(how, sizeof how, "weir neuron-top --site %s -n %s%lld", t->site, layer,
             (long long)weir_nb_neurons_unit(v, v->table, v->row));
    return weir_nb_neurons_missing(out, what, how);
}

int weir_nb_neurons_token_means(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    const int64_t ids = weir_neurons_options_of(v->s)->token_means, most = v->places < ids ? v->places : ids;
    if (v->named < 0 || ids == 0)
        return not_named(v, out, "Means by token of this neuron are");
    weir_token_mean *mean = malloc(sizeof *mean * ((size_t)most + 1));
    double *value = malloc(sizeof *value * ((size_t)most + 1));
    int64_t *whole = malloc(sizeof *whole * (2 * (size_t)most + 1));
    const bool ok = mean && value && whole;
    const int64_t n = ok ? weir_neurons_token_means(v->s, v->named, true, v->min_count, most, mean) : 0;
    for (int64_t i = 0; i < n; i++) {
        value[i] = mean[i].mean;
        whole[i] = mean[i].id;
        whole[n + i] = mean[i].count;
    }
    if (ok) {
        draw_means(v, out, mean, value, n);
        weir_nb_put_ints(numbers, "mean_ids", whole, n);
        weir_nb_put_reals(numbers, "mean_values", value, n);
        weir_nb_put_ints(numbers, "mean_counts", whole + n, n);
    }
    free(mean);
    free(value);
    free(whole);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

/* --- correlations */

typedef struct related {
    weir_neuron_relation *all; /* [n] by descending |r|; those without r are behind */
    int64_t n;
    double *r, *cofire;
    int64_t *unit;
    weir_str *name;
    char (*text)[24]; /* of names */
} related;

static void related_free(related *u)
{
    free(u->all);
    free(u->r);
    free(u->cofire);
    free(u->unit);
    free(u->name);
    free(u->text);
}

static bool related_read(related *u, const weir_nb_neurons *v)
{
    const size_t room = (size_t)weir_neurons_table_at(v->s, v->table)->width + 1;
    *u = (related){.all = malloc(sizeof *u->all * room),
                   .r = malloc(sizeof *u->r * room),
                   .cofire = malloc(sizeof *u->cofire * room),
                   .unit = malloc(sizeof *u->unit * room),
                   .name = malloc(sizeof *u->name * room),
                   .text = malloc(sizeof *u->text * room)};
    if (!u->all || !u->r || !u->cofire || !u->unit || !u->name || !u->text)
        return false;
    u->n = weir_neurons_related(v->s, v->named, false, (int64_t)room - 1, u->all);
    while (u->n > 0 && isnan(u->all[u->n - 1].r))
        u->n--;
    for (int64_t i = 0; i < u->n; i++) {
        u->r[i] = u->all[i].r;
        u->cofire[i] = u->all[i].cofire;
        u->unit[i] = u->all[i].unit;
        u->name[i].p = u->text[i];
        u->name[i].n = (size_t)snprintf(u->text[i], sizeof u->text[i], "%lld", (long long)u->unit[i]);
    }
    return true;
}

static void draw_related(FILE *out, const related *u, int64_t named, const char *title)
{
    weir_chart c = {.out = out,
                    .x = WEIR_CHART_LEFT,
                    .y = WEIR_CHART_TOP,
                    .width = 620,
                    .height = 300,
                    .title = title,
                    .across = {.label = "correlation r"},
                    .up = {.label = "fire together, share"}};
    const weir_chart_style dots = {.colour = weir_chart_colour(1), .dots = 2};
    weir_chart_hold(&c.across, u->r, u->n);
    weir_chart_hold(&c.up, u->cofire, u->n);
    weir_chart_open(out, c.x + c.width + 20, c.y + c.height + WEIR_CHART_UNDER, title);
    weir_chart_frame(&c);
    weir_chart_points(&c, u->n - named, u->r + named, u->cofire + named, u->name + named, false, &dots);
    weir_chart_points(&c, named, u->r, u->cofire, u->name, true, &dots);
    weir_svg_end(out);
}

int weir_nb_neurons_correlated(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    related u;
    if (v->named < 0 || !weir_neurons_options_of(v->s)->correlate)
        return not_named(v, out, "Correlations of this neuron are");
    char *title = title_of(v, "the other units and ");
    const bool ok = related_read(&u, v) && title;
    if (ok) {
        const int64_t n = u.n < v->places ? u.n : v->places;
        draw_related(out, &u, n, title);
        weir_nb_put_ints(numbers, "related_units", u.unit, n);
        weir_nb_put_reals(numbers, "related_r", u.r, n);
    }
    related_free(&u);
    free(title);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

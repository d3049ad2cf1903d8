/* Places of the text at which a neuron is something: rows of a value, the place, and the tokens around it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "one.h"
#include "page/chart.h"

int weir_nb_neurons_missing(FILE *out, const char *what, const char *how)
{
    fputs("<p>", out);
    weir_svg_text(out, what, strlen(what), 0, false);
    fputs(" not in this file: <code>", out);
    weir_svg_text(out, how, strlen(how), 0, false);
    fputs("</code> records them.</p>\n", out);
    return WEIR_EXIT_OK;
}

void weir_nb_neurons_box(const weir_nb_neurons *v, FILE *out, int32_t id)
{
    fputs("<span style=\"border:1px solid #d5d9e0;margin:2px;padding:0 3px;white-space:pre\">", out);
    weir_svg_token_bytes(out, weir_neurons_token(v->s, id), id, 0, false);
    fputs("</span>", out);
}

/* --- rows */

/* A neuron that is not named has its value at the place alone. */
static double value_at(const weir_neurons_context *c, int64_t i, double value)
{
    return i == c->hit ? value : c->value ? (double)c->value[i] : (double)NAN;
}

static void put_strip(const weir_nb_neurons *v, FILE *out, const weir_neuron_hit *hit, double most)
{
    const weir_neurons_options *o = weir_neurons_options_of(v->s);
    const weir_neurons_context c = weir_neurons_context_of(v->s, hit->doc, hit->pos, v->named);
    const int64_t before = v->before < o->before ? v->before : o->before,
                  after = v->after < o->after ? v->after : o->after;
    for (int64_t i = 0; i < c.n; i++) {
        if (i < c.hit - before || i > c.hit + after)
            continue;
        const double value = value_at(&c, i, (double)hit->value);
        fprintf(out, "<span title=\"%lld: ", (long long)(c.pos + i));
        weir_chart_number(out, value);
        fputs("\" style=\"", out);
        if (!isnan(value))
            fprintf(out, "background:%s;color:#1b1f27", weir_svg_heat(value / most).text);
        fprintf(out, "%s\">", i == c.hit ? ";outline:1.5px solid #1b1f27" : "");
        weir_svg_token_bytes(out, weir_neurons_token(v->s, c.id[i]), c.id[i], 0, false);
        fputs("</span>", out);
    }
}

/* Colours mean the same in all tables: the deepest is the neuron's largest magnitude. */
static double largest(const weir_nb_neurons *v)
{
    const int64_t at = v->begin[v->table] + v->row;
    return fmax(fmax(fabs(v->known[WEIR_NB_MIN][at]), fabs(v->known[WEIR_NB_MAX][at])), 1e-30);
}

/* counts: with the column of places that are the same. */
static void put_places(const weir_nb_neurons *v, FILE *out, const char *title, const weir_neuron_hit *hit, int64_t n,
                       bool counts)
{
    static const char *const with[] = {"value", "place", "times", "text"}, *const without[] = {"value", "place",
                                                                                               "text"};
    const double most = largest(v);
    weir_chart_table t;
    if (n == 0) {
        weir_nb_say(out, "%s: no place", title);
        return;
    }
    weir_chart_table_begin(&t, out, title, counts ? with : without, counts ? 4 : 3);
    for (int64_t i = 0; i < n; i++) {
        weir_chart_table_real(&t, (double)hit[i].value, 5, NULL);
        weir_chart_table_cell(&t, "number");
        fprintf(out, "%lld:%lld", (long long)hit[i].doc, (long long)hit[i].pos);
        weir_chart_table_cell_end(&t);
        if (counts && hit[i].count > 0)
            weir_chart_table_int(&t, hit[i].count);
        else if (counts)
            weir_chart_table_text(&t, "?", 1);
        weir_chart_table_cell(&t, "token");
        put_strip(v, out, &hit[i], most);
        weir_chart_table_cell_end(&t);
    }
    weir_chart_table_end(&t);
}

/* --- lists */

int weir_nb_neurons_best(const weir_nb_neurons *v)
{
    const unsigned lists = weir_neurons_options_of(v->s)->lists;
    return lists & 1u << WEIR_NEURONS_ABS ? WEIR_NEURONS_ABS : lists & 1u << WEIR_NEURONS_TOP ? WEIR_NEURONS_TOP : -1;
}

weir_neuron_hit *weir_nb_neurons_list(const weir_nb_neurons *v, int table, int64_t row, int list, int64_t *n)
{
    weir_neuron_hit *hit = malloc(sizeof *hit * (size_t)weir_neurons_options_of(v->s)->k);
    *n = hit && list >= 0 ? weir_neurons_hits(v->s, table, row, (weir_neurons_list)list, hit) : 0;
    *n = *n < v->places ? *n : v->places;
    return hit;
}

/* NAME_value, NAME_doc, NAME_pos */
static bool put_numbers(weir_jsonw *numbers, const char *name, const weir_neuron_hit *hit, int64_t n)
{
    double *value = malloc(sizeof *value * ((size_t)n + 1));
    int64_t *place = malloc(sizeof *place * (2 * (size_t)n + 1));
    char key[32];
    const bool ok = value && place;
    for (int64_t i = 0; i < n && ok; i++) {
        value[i] = (double)hit[i].value;
        place[i] = hit[i].doc;
        place[n + i] = hit[i].pos;
    }
    if (ok) {
        snprintf(key, sizeof key, "%s_value", name);
        weir_nb_put_reals(numbers, key, value, n);
        snprintf(key, sizeof key, "%s_doc", name);
        weir_nb_put_ints(numbers, key, place, n);
        snprintf(key, sizeof key, "%s_pos", name);
        weir_nb_put_ints(numbers, key, place + n, n);
    }
    free(value);
    free(place);
    return ok;
}

/* list -1: the file has none. */
static int draw_list(weir_nb *nb, const weir_nb_neurons *v, FILE *out, weir_jsonw *numbers, int list, const char *name)
{
    static const char *const title[WEIR_NEURONS_LISTS] = {"highest", "lowest", "largest magnitudes"};
    int64_t n;
    weir_neuron_hit *hit = weir_nb_neurons_list(v, v->table, v->row, list, &n);
    if (hit && list >= 0)
        put_places(v, out, title[list], hit, n, true);
    const bool ok = hit && put_numbers(numbers, name, hit, n);
    free(hit);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

int weir_nb_neurons_top(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const int list = weir_nb_neurons_best(data);
    if (list < 0)
        weir_nb_neurons_missing(out, "The highest places are", "weir neuron-top --sign both");
    return draw_list(nb, data, out, numbers, list, "top");
}

int weir_nb_neurons_bottom(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    const bool kept = weir_neurons_options_of(v->s)->lists & 1u << WEIR_NEURONS_BOTTOM;
    if (!kept)
        weir_nb_neurons_missing(out, "The lowest places are", "weir neuron-top --sign both");
    return draw_list(nb, v, out, numbers, kept ? WEIR_NEURONS_BOTTOM : -1, "bottom");
}

/* --- samples */

static bool draw_bands(const weir_nb_neurons *v, FILE *out, weir_jsonw *numbers)
{
    const int64_t per_band = weir_neurons_options_of(v->s)->per_band;
    weir_neuron_hit *hit = malloc(sizeof *hit * ((size_t)per_band + 1));
    double *value = malloc(sizeof *value * WEIR_NEURONS_BANDS * ((size_t)per_band + 1));
    for (int b = 0; b < WEIR_NEURONS_BANDS && hit && value; b++) {
        const int64_t n = weir_neurons_band(v->s, v->table, v->row, b, hit);
        char title[64];
        snprintf(title, sizeof title, "ranks %g to %g", weir_neurons_band_edge(b), weir_neurons_band_edge(b + 1));
        put_places(v, out, title, hit, n, false);
        for (int64_t i = 0; i < per_band; i++)
            value[b * per_band + i] = i < n ? (double)hit[i].value : (double)NAN;
    }
    if (hit && value)
        weir_nb_put_table(numbers, "band_value", value, WEIR_NEURONS_BANDS, per_band);
    const bool ok = hit && value;
    free(hit);
    free(value);
    return ok;
}

static bool draw_random(const weir_nb_neurons *v, FILE *out, weir_jsonw *numbers)
{
    weir_neuron_hit *hit = malloc(sizeof *hit * (size_t)weir_neurons_options_of(v->s)->random);
    if (!hit)
        return false;
    const int64_t all = weir_neurons_random(v->s, v->table, v->row, hit), n = all < v->places ? all : v->places;
    put_places(v, out, "at random", hit, n, false);
    const bool ok = put_numbers(numbers, "random", hit, n);
    free(hit);
    return ok;
}

int weir_nb_neurons_samples(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    const weir_neurons_options *o = weir_neurons_options_of(v->s);
    bool ok = true;
    if (o->per_band > 0)
        ok = draw_bands(v, out, numbers);
    else
        weir_nb_neurons_missing(out, "Samples of the bands are", "weir neuron-top --quantiles 4");
    if (o->random > 0)
        ok = draw_random(v, out, numbers) && ok;
    else
        weir_nb_neurons_missing(out, "Places at random are", "weir neuron-top --random 20");
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

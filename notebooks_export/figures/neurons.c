/* neurons: what neuron-top found (weir-neurons): what is opened, and which neuron is shown. What the cells show is
 * drawn in neurons/. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "neurons/one.h"
#include "page/svg.h"

const char *const weir_nb_quantity_name[WEIR_NB_QUANTITIES] = {"mean", "sd", "skew", "kurtosis", "min", "max"};

/* --- reading */

/* The names of groups: those of hook points, some with their site. They keep the order in which they were made. */
static weir_status read_names(weir_nb_neurons *v, const char *path, weir_err *err)
{
    weir_arrays_in *r = NULL;
    weir_status st = weir_arrays_open(&r, path, "weir-neurons", 1, err);
    for (int t = 0; t < v->tables && st == WEIR_OK; t++)
        if (!weir_arrays_child(r, "neurons", t, v->group[t]))
            st = weir_arrays_bad(r, "neurons", err, "a hook point is missing");
    weir_arrays_close(r);
    return st;
}

static char *label_of(const weir_nb_neurons *v, int t)
{
    const weir_neurons_table *table = weir_neurons_table_at(v->s, t);
    char *label = NULL;
    if (table->layer < 0 || strchr(table->site, '.'))
        return strdup(v->group[t]);
    return asprintf(&label, "L%d %s", table->layer, table->site) < 0 ? NULL : label;
}

static bool make_room(weir_nb_neurons *v)
{
    const size_t tables = (size_t)weir_neurons_n_tables(v->s);
    v->group = malloc((tables + 1) * sizeof *v->group);
    v->label = calloc(tables + 1, sizeof *v->label);
    v->begin = calloc(tables + 1, sizeof *v->begin);
    if (!v->group || !v->label || !v->begin)
        return false;
    v->tables = (int)tables;
    for (size_t t = 0; t < tables; t++)
        v->begin[t + 1] = v->begin[t] + weir_neurons_table_at(v->s, (int)t)->n;
    bool ok = true;
    for (int q = 0; q < WEIR_NB_KNOWN; q++)
        ok = (v->known[q] = malloc(sizeof(double) * ((size_t)weir_nb_neurons_all(v) + 1))) && ok;
    return ok;
}

static void read_statistics(weir_nb_neurons *v)
{
    for (int t = 0; t < v->tables; t++)
        for (int64_t i = v->begin[t]; i < v->begin[t + 1]; i++) {
            weir_neuron_stats st;
            weir_neurons_stats(v->s, t, i - v->begin[t], &st);
            const double known[WEIR_NB_KNOWN] = {st.mean,
                                                 st.sd,
                                                 st.skew,
                                                 st.kurtosis,
                                                 (double)st.min,
                                                 (double)st.max,
                                                 st.count ? (double)st.above[0] / (double)st.count : (double)NAN};
            for (int q = 0; q < WEIR_NB_KNOWN; q++)
                v->known[q][i] = known[q];
        }
}

static int read_file(weir_nb *nb, weir_nb_neurons *v)
{
    weir_err err = {0};
    const char *path = weir_nb_path(nb);
    if (weir_neurons_read(&v->s, path, 0, &err) != WEIR_OK)
        return weir_cli_fail_at(weir_nb_cli(nb), path, &err);
    if (!make_room(v))
        return weir_nb_no_memory(nb);
    if (read_names(v, path, &err) != WEIR_OK)
        return weir_cli_fail_at(weir_nb_cli(nb), path, &err);
    for (int t = 0; t < v->tables; t++)
        if (!(v->label[t] = label_of(v, t)))
            return weir_nb_no_memory(nb);
    read_statistics(v);
    return WEIR_EXIT_OK;
}

/* --- what the file is */

static int tell(weir_nb *nb, const weir_nb_neurons *v)
{
    const weir_neurons_about *a = weir_neurons_about_of(v->s);
    const weir_neurons_counts n = weir_neurons_counts_of(v->s);
    weir_nb_tell(nb, "model", "%s", *a->model ? a->model : "one without a name");
    const int64_t neurons = weir_nb_neurons_all(v), tokens = n.masked[0];
    weir_nb_tell(nb, "holds", "%lld neuron%s of %d hook point%s, over %lld token%s of %lld document%s",
                 (long long)neurons, weir_nb_s(neurons), v->tables, weir_nb_s(v->tables), (long long)tokens,
                 weir_nb_s(tokens), (long long)n.docs, weir_nb_s(n.docs));
    if (a->shards)
        weir_nb_tell(nb, "not complete", "a part of the text: shards of it are missing");
    else if (!a->complete)
        weir_nb_tell(nb, "not complete", "the run that wrote it has not ended");
    return weir_nb_tell_changes(nb, a->interventions);
}

/* --- parameters */

static int read_numbers(const weir_nb *nb, weir_nb_neurons *v)
{
    const struct {
        const char *name;
        int64_t least, *value;
    } number[] = {{"places", 1, &v->places}, {"before", 0, &v->before}, {"after", 0, &v->after},
                  {"bins", 1, &v->bins},     {"points", 1, &v->points}, {"min_count", 1, &v->min_count}};
    int code = WEIR_EXIT_OK;
    for (size_t i = 0; i < sizeof number / sizeof *number && code == WEIR_EXIT_OK; i++)
        code = weir_nb_int_in(nb, number[i].name, number[i].least, INT32_MAX, number[i].value);
    return code;
}

static int read_quantity(const weir_nb *nb, weir_nb_neurons *v)
{
    const char *name;
    const int code = weir_nb_text(nb, "quantity", &name, NULL);
    if (code != WEIR_EXIT_OK)
        return code;
    for (v->quantity = 0; v->quantity < WEIR_NB_QUANTITIES; v->quantity++)
        if (strcmp(name, weir_nb_quantity_name[v->quantity]) == 0)
            return WEIR_EXIT_OK;
    return weir_nb_wrong(nb, "quantity", "there are mean, sd, skew, kurtosis, min and max, and no %s", name);
}

/* --- the neuron that is shown */

/* Of those that the user leaves open, the one with the highest score: named before others, full lists before others,
 * then by kurtosis. */
static double score_of(const weir_nb_neurons *v, int t, int64_t row, weir_neuron_hit *room)
{
    const weir_neurons_options *o = weir_neurons_options_of(v->s);
    const double kurtosis = v->known[WEIR_NB_KURTOSIS][v->begin[t] + row];
    if (weir_neurons_find_named(v->s, t, row) >= 0)
        return INFINITY;
    if ((o->lists & 1u << WEIR_NEURONS_TOP) && weir_neurons_hits(v->s, t, row, WEIR_NEURONS_TOP, room) < o->k)
        return 0;
    return isnan(kurtosis) ? 0 : kurtosis;
}

/* False: there is none such. hook NULL, unit -1: any. */
static bool choose(weir_nb_neurons *v, const char *hook, int64_t unit, weir_neuron_hit *room)
{
    double best = -1;
    for (int t = 0; t < v->tables; t++)
        for (int64_t i = 0; i < v->begin[t + 1] - v->begin[t]; i++) {
            if ((hook && strcmp(hook, v->group[t]) != 0) || (unit >= 0 && weir_nb_neurons_unit(v, t, i) != unit))
                continue;
            const double score = score_of(v, t, i, room);
            if (score > best) {
                best = score;
                v->table = t;
                v->row = i;
            }
        }
    return best >= 0;
}

static int no_such_neuron(const weir_nb *nb, const weir_nb_neurons *v, const char *hook, int64_t unit)
{
    for (int t = 0; t < v->tables && hook; t++)
        if (strcmp(hook, v->group[t]) == 0)
            return weir_nb_wrong(nb, "neuron", "the file has no unit %lld of %s", (long long)unit, hook);
    if (hook)
        return weir_nb_wrong(nb, "hook", "the file has no %s; it has %s%s", hook, v->group[0],
                             v->tables > 1 ? " and others" : "");
    return weir_nb_wrong(nb, "neuron", "no hook point of the file has a unit %lld", (long long)unit);
}

static int find_neuron(weir_nb *nb, weir_nb_neurons *v)
{
    const char *hook = NULL;
    int64_t unit = -1;
    bool has_hook, has_unit;
    int code = weir_nb_text(nb, "hook", &hook, &has_hook);
    if (code == WEIR_EXIT_OK)
        code = weir_nb_int(nb, "neuron", &unit, &has_unit);
    if (code != WEIR_EXIT_OK)
        return code;
    if (has_unit && unit < 0)
        return weir_nb_wrong(nb, "neuron", "units are counted from 0");
    if (weir_nb_neurons_all(v) == 0)
        return weir_cli_error(weir_nb_cli(nb), "%s holds no neuron", weir_nb_path(nb));
    hook = has_hook ? hook : NULL;
    unit = has_unit ? unit : -1;
    weir_neuron_hit *room = malloc(sizeof *room * (size_t)weir_neurons_options_of(v->s)->k);
    if (!room)
        return weir_nb_no_memory(nb);
    const bool found = choose(v, hook, unit, room);
    free(room);
    if (!found)
        return no_such_neuron(nb, v, hook, unit);
    v->named = weir_neurons_find_named(v->s, v->table, v->row);
    weir_nb_set_text(nb, "hook", v->group[v->table]);
    weir_nb_set_int(nb, "neuron", weir_nb_neurons_unit(v, v->table, v->row));
    return WEIR_EXIT_OK;
}

/* --- the kind */

static int open_file(weir_nb *nb, void **data)
{
    weir_nb_neurons *v = calloc(1, sizeof *v);
    if (!v)
        return weir_nb_no_memory(nb);
    *data = v;
    int code = read_file(nb, v);
    if (code == WEIR_EXIT_OK)
        code = tell(nb, v);
    if (code == WEIR_EXIT_OK)
        code = read_numbers(nb, v);
    if (code == WEIR_EXIT_OK)
        code = read_quantity(nb, v);
    return code == WEIR_EXIT_OK ? find_neuron(nb, v) : code;
}

static void close_file(void *data)
{
    weir_nb_neurons *v = data;
    if (!v)
        return;
    for (int t = 0; t < v->tables; t++)
        free(v->label[t]);
    for (int q = 0; q < WEIR_NB_KNOWN; q++)
        free(v->known[q]);
    free(v->group);
    free(v->label);
    free(v->begin);
    weir_neurons_free(v->s);
    free(v);
}

static int draw_open(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_neurons *v = data;
    const int64_t unit = weir_nb_neurons_unit(v, v->table, v->row);
    (void)nb;
    fprintf(out, "<p>Shown: neuron %lld of <code>", (long long)unit);
    weir_svg_text(out, v->group[v->table], strlen(v->group[v->table]), 0, false);
    fprintf(out, "</code>, row %lld of its arrays.</p>\n", (long long)v->row);
    weir_jsonw_key_int(numbers, "neuron", unit);
    weir_jsonw_key_int(numbers, "row", v->row);
    weir_jsonw_key_int(numbers, "neurons", weir_nb_neurons_all(v));
    return WEIR_EXIT_OK;
}

static const weir_nb_figure figures[] = {{"open", draw_open},
                                         {"moments", weir_nb_neurons_moments},
                                         {"top", weir_nb_neurons_top},
                                         {"bottom", weir_nb_neurons_bottom},
                                         {"histogram", weir_nb_neurons_histogram},
                                         {"samples", weir_nb_neurons_samples},
                                         {"weights", weir_nb_neurons_weights},
                                         {"token_means", weir_nb_neurons_token_means},
                                         {"correlated", weir_nb_neurons_correlated},
                                         {"all", weir_nb_neurons_scatter},
                                         {"highest", weir_nb_neurons_highest},
                                         {"layers", weir_nb_neurons_layers},
                                         {"density", weir_nb_neurons_densities},
                                         {NULL, NULL}};
const weir_nb_kind weir_nb_kind_neurons = {
    .name = "neurons",
    .format = "weir-neurons",
    .open = open_file,
    .close = close_file,
    .figure = figures,
};

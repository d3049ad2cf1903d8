/* What neuron-top found, in the form that was asked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "top.h"

/* input: a name of the text */
static weir_view view_of(const weir_top *r, const char *input, FILE *out)
{
    const weir_neurons_options *o = weir_neurons_options_of(r->s);
    return (weir_view){.cli = r->cli,
                       .s = r->s,
                       .lists = weir_cli_given(r->cli, "sign") ? r->o.lists : o->lists,
                       .k = r->a->k < o->k ? r->a->k : o->k,
                       .before = r->o.before < o->before ? r->o.before : o->before,
                       .after = r->o.after < o->after ? r->o.after : o->after,
                       .whole = r->o.before == INT32_MAX && o->before == INT32_MAX,
                       .input = input,
                       .clusters = true,
                       .colour = weir_colour_of((weir_colour_asked)r->a->color, out),
                       .width = weir_width_of(r->a->width, out),
                       .out = out};
}

/* A filter that no neuron passes is told, with the densities that there are. */
static weir_status say_densities(const weir_top *r, weir_choice c, weir_err *err)
{
    weir_shown *all;
    int64_t n;
    double lowest = 1, highest = 0;
    c.sort = WEIR_SORT_ORDER;
    c.limit = 0;
    c.min_density = 0;
    c.max_density = 1;
    WEIR_TRY(weir_choose(r->s, &c, &all, &n, err));
    for (int64_t i = 0; i < n; i++) {
        weir_neuron_stats st;
        weir_neurons_stats(r->s, all[i].table, all[i].neuron, &st);
        lowest = fmin(lowest, weir_density(&st));
        highest = fmax(highest, weir_density(&st));
    }
    free(all);
    if (n)
        weir_cli_note(r->cli, "no neuron is above 0 at a share of %g to %g of the tokens: here it is %.3g to %.3g",
                      r->a->min_density, r->a->max_density, lowest, highest);
    return WEIR_OK;
}

static int write_view(void *ctx, FILE *out)
{
    static int (*const by_format[])(const weir_view *) = {[WEIR_FORMAT_TEXT] = weir_view_text,
                                                          [WEIR_FORMAT_TSV] = weir_view_tsv,
                                                          [WEIR_FORMAT_NDJSON] = weir_view_ndjson,
                                                          [WEIR_FORMAT_HTML] = weir_view_html};
    weir_top *r = ctx;
    weir_err err = {0};
    weir_shown *shown;
    char input[400];
    weir_input_name(input, sizeof input, weir_neurons_about_of(r->s)->source);
    weir_view v = view_of(r, input, out);
    weir_choice c = {.asks = &r->asks,
                     .layers = r->layers,
                     .sort = (weir_sort)r->a->sort,
                     .limit = r->a->limit,
                     .min_density = r->a->min_density,
                     .max_density = r->a->max_density};
    if (weir_choose(r->s, &c, &shown, &v.n, &err) != WEIR_OK)
        return weir_cli_bad_argument(r->cli, NULL, &err);
    v.shown = shown;
    int code = by_format[r->format](&v);
    free(shown);
    if (code == WEIR_EXIT_OK && v.n == 0 && say_densities(r, c, &err) != WEIR_OK)
        code = weir_cli_fail(r->cli, &err);
    return code;
}

/* Adds ", L6N5 (3)", or the hook point's name where it lies in no layer. */
static void name_neuron(char *text, size_t size, const weir_neurons_table *table, int64_t i, int64_t count)
{
    size_t at = strlen(text);
    long long unit = table->units ? table->units[i] : i;
    const char *between = at ? ", " : "";
    if (table->layer >= 0)
        snprintf(text + at, size - at, "%sL%dN%lld (%lld)", between, table->layer, unit, (long long)count);
    else
        snprintf(text + at, size - at, "%s%s[%lld] (%lld)", between, table->hook, unit, (long long)count);
}

/* Values that are not finite are a defect of the model or the dump: said by name, behind the results. */
static int check_finite(const weir_top *r)
{
    enum { NAMED = 4 };
    char text[512] = "";
    int64_t neurons = 0, values = 0;
    for (int t = 0; t < weir_neurons_n_tables(r->s); t++) {
        const weir_neurons_table *table = weir_neurons_table_at(r->s, t);
        for (int64_t i = 0; i < table->n; i++) {
            const int64_t n = weir_neurons_nonfinite(r->s, t, i);
            if (n == 0)
                continue;
            if (neurons++ < NAMED)
                name_neuron(text, sizeof text, table, i, n);
            values += n;
        }
    }
    if (neurons == 0)
        return WEIR_EXIT_OK;
    weir_cli_error(r->cli, "%lld values of %lld neurons are not finite (NaN or infinite) and were left out: %s%s",
                   (long long)values, (long long)neurons, text, neurons > NAMED ? ", ..." : "");
    return WEIR_EXIT_FALSE;
}

int weir_top_check_output(weir_top *r)
{
    r->kept = (weir_kept){.cli = r->cli,
                          .path = r->a->out,
                          .resume = r->a->resume,
                          .force = r->a->force,
                          .every = (double)r->a->checkpoint};
    if (r->format != WEIR_FORMAT_H5)
        return weir_output_check(r->cli, r->a->out, r->format, r->a->force);
    return weir_kept_check(&r->kept);
}

int weir_top_put(weir_top *r)
{
    weir_err err = {0};
    int code;
    if (r->format != WEIR_FORMAT_H5)
        code = weir_output(r->cli, r->a->out, r->format, r->a->force, write_view, r);
    else
        code =
            weir_kept_commit(&r->kept, r->s, &r->about, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(r->cli, &err);
    return code == WEIR_EXIT_OK ? check_finite(r) : code;
}

static int write_search(void *ctx, FILE *out)
{
    const weir_top *r = ctx;
    weir_err err = {0};
    weir_search_view v = {.cli = r->cli,
                          .text = r->s,
                          .result = r->result,
                          .asked = r->a->search,
                          .beside = r->result ? r->file : NULL,
                          .lists = r->o.lists,
                          .k = r->a->k,
                          .colour = weir_colour_of((weir_colour_asked)r->a->color, out),
                          .width = weir_width_of(r->a->width, out),
                          .out = out};
    int code = r->format == WEIR_FORMAT_TSV      ? weir_search_tsv(&v, &err)
               : r->format == WEIR_FORMAT_NDJSON ? weir_search_ndjson(&v, &err)
                                                 : weir_search_text(&v, &err);
    return code == WEIR_EXIT_OK ? code : weir_cli_fail(r->cli, &err);
}

int weir_top_put_search(weir_top *r)
{
    int code = weir_output(r->cli, r->a->out, r->format, r->a->force, write_search, r);
    return code == WEIR_EXIT_OK ? check_finite(r) : code;
}

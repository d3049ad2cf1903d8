#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "floor.h"
#include "head.h"
#include "output.h"
#include "sections.h"

/* One neuron and its place in the text. */
typedef struct fired {
    int table;
    int64_t neuron;
    weir_neuron_hit hit;
    double z;     /* NaN: unknown */
    double merit; /* what neurons are ranked by: larger comes first */
} fired;

typedef struct fired_list {
    fired *f;
    int64_t n;
    weir_neuron_hit *hit; /* room for a list of the text's search */
    weir_text text;
    weir_floor floor; /* of the neurons that are lowest */
} fired_list;

static int64_t unit_of(const weir_neurons *s, int t, int64_t i)
{
    const weir_neurons_table *table = weir_neurons_table_at(s, t);
    return table->units ? table->units[i] : i;
}

/* The same neuron in the result: its index, or -1. */
static int64_t find(const weir_neurons *result, int t, int64_t unit)
{
    const weir_neurons_table *table = weir_neurons_table_at(result, t);
    int64_t lo = 0, hi = table->n;
    if (!table->units)
        return unit < table->n ? unit : -1;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (table->units[mid] < unit)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < table->n && table->units[lo] == unit ? lo : -1;
}

static int same_table(const weir_neurons *result, const weir_neurons_table *table)
{
    for (int t = 0; result && t < weir_neurons_n_tables(result); t++) {
        const weir_neurons_table *r = weir_neurons_table_at(result, t);
        if (strcmp(r->hook, table->hook) == 0 && strcmp(r->site, table->site) == 0)
            return t;
    }
    return -1;
}

static double z_of(const weir_neurons *result, int t, int64_t unit, float value)
{
    weir_neuron_stats st;
    int64_t i = t < 0 ? -1 : find(result, t, unit);
    if (i < 0)
        return NAN;
    weir_neurons_stats(result, t, i, &st);
    return st.sd > 0 ? ((double)value - st.mean) / st.sd : NAN;
}

static int by_merit(const void *a, const void *b)
{
    const fired *x = a, *y = b;
    bool nx = isnan(x->merit), ny = isnan(y->merit);
    if (nx != ny)
        return nx - ny;
    if (!nx && x->merit != y->merit)
        return x->merit < y->merit ? 1 : -1;
    if (x->table != y->table)
        return x->table - y->table;
    return (x->neuron > y->neuron) - (x->neuron < y->neuron);
}

/* All neurons that have a place, best first. */
static bool rank(const weir_search_view *v, weir_neurons_list which, fired_list *l)
{
    int64_t all = 0;
    for (int t = 0; t < weir_neurons_n_tables(v->text); t++)
        all += weir_neurons_table_at(v->text, t)->n;
    l->n = 0;
    l->f = malloc(sizeof *l->f * (size_t)(all > 0 ? all : 1));
    l->hit = malloc(sizeof *l->hit * (size_t)weir_section_room(weir_neurons_options_of(v->text)));
    for (int t = 0; t < weir_neurons_n_tables(v->text) && l->f && l->hit; t++) {
        int in_result = same_table(v->result, weir_neurons_table_at(v->text, t));
        for (int64_t i = 0; i < weir_neurons_table_at(v->text, t)->n; i++) {
            if (weir_neurons_hits(v->text, t, i, which, l->hit) == 0)
                continue;
            fired *f = &l->f[l->n++];
            *f = (fired){.table = t, .neuron = i, .hit = l->hit[0]};
            f->z = z_of(v->result, in_result, unit_of(v->text, t, i), f->hit.value);
            double merit = v->result ? f->z : (double)f->hit.value;
            f->merit = which == WEIR_NEURONS_TOP ? merit : which == WEIR_NEURONS_BOTTOM ? -merit : fabs(merit);
        }
    }
    if (l->f && l->n)
        qsort(l->f, (size_t)l->n, sizeof *l->f, by_merit);
    l->n = l->n < v->k ? l->n : v->k;
    return l->f && l->hit;
}

/* --- the forms */

typedef void put_fn(const weir_search_view *v, fired_list *l, weir_neurons_list which, int64_t i);

static int each(const weir_search_view *v, put_fn *begin, put_fn *put, weir_err *err)
{
    bool ok = true;
    for (int which = 0; which < WEIR_NEURONS_LISTS && ok; which++) {
        fired_list l = {0};
        if (!(v->lists >> which & 1))
            continue;
        ok = rank(v, (weir_neurons_list)which, &l);
        if (ok && begin)
            begin(v, &l, (weir_neurons_list)which, 0);
        for (int64_t i = 0; i < l.n && ok; i++) {
            put(v, &l, (weir_neurons_list)which, i);
            ok = !l.text.failed;
        }
        weir_floor_say(&l.floor, v->cli);
        free(l.f);
        free(l.hit);
        weir_text_free(&l.text);
    }
    if (ok)
        return WEIR_EXIT_OK;
    weir_fail(err, WEIR_E_NOMEM, "out of memory for the output");
    return WEIR_EXIT_FAILED;
}

/* The token where the neuron fired, or -1. */
static int32_t token_of(const weir_search_view *v, const fired *f)
{
    weir_neurons_context c = weir_neurons_context_of(v->text, f->hit.doc, f->hit.pos, -1);
    return c.n ? c.id[c.hit] : -1;
}

static void text_title(const weir_search_view *v, fired_list *l, weir_neurons_list which, int64_t i)
{
    static const char *const title[] = {"highest", "lowest", "largest magnitude"};
    (void)i;
    (void)l;
    weir_bold_begin(v->out, v->colour);
    fprintf(v->out, "%s%s\n", title[which], v->result ? ", by z" : "");
    weir_colour_end(v->out, v->colour);
}

static void text_line(const weir_search_view *v, fired_list *l, weir_neurons_list which, int64_t i)
{
    const fired *f = &l->f[i];
    const weir_neurons_table *t = weir_neurons_table_at(v->text, f->table);
    char name[48];
    if (t->layer >= 0)
        snprintf(name, sizeof name, "L%dN%lld", t->layer, (long long)unit_of(v->text, f->table, f->neuron));
    else
        snprintf(name, sizeof name, "N%lld", (long long)unit_of(v->text, f->table, f->neuron));
    fprintf(v->out, "%4lld  %-10s  %+9.4g", (long long)i + 1, name, (double)f->hit.value);
    if (v->result && isnan(f->z))
        fputs("  z      -", v->out);
    else if (v->result)
        fprintf(v->out, "  z %+6.1f", f->z);
    fprintf(v->out, "  %lld:%lld  ", (long long)f->hit.doc, (long long)f->hit.pos);
    int32_t id = token_of(v, f);
    double most = fabs(l->f[0].hit.value);
    l->text.n = 0;
    if (id >= 0)
        weir_text_token(&l->text, weir_neurons_token(v->text, id), id);
    fputc('[', v->out);
    bool coloured = weir_heat_begin(v->out, v->colour, most > 0 ? (double)f->hit.value / most : 0);
    if (l->text.n)
        fwrite(l->text.p, 1, l->text.n, v->out);
    if (coloured)
        weir_colour_end(v->out, v->colour);
    fputc(']', v->out);
    bool other_site = strcmp(t->site, "post") != 0;
    fprintf(v->out, "%s%s\n", other_site ? "  " : "", other_site ? t->hook : "");
    if (which == WEIR_NEURONS_BOTTOM && !v->result)
        weir_floor_add(&l->floor, t, (double)f->hit.value, (double)f->hit.value);
}

/* The same head as that of lists: what was run, and what it is compared with. */
static void put_head(const weir_search_view *v, weir_text *text)
{
    char n[32], input[400];
    const weir_head h = {.s = v->text, .input = v->asked, .colour = v->colour, .out = v->out, .text = text};
    weir_head_run(&h);
    weir_head_sites(&h);
    fprintf(v->out, "; rank: %s, each neuron by its best token here\n", v->result ? "z" : "value");
    if (v->result) {
        weir_input_name(input, sizeof input, weir_neurons_about_of(v->result)->source);
        fputs("z = (value - mean) / sd in ", v->out);
        weir_put_safe(v->out, text, v->beside);
        fputs(": ", v->out);
        weir_put_safe(v->out, text, input);
        fprintf(v->out, ", %s tokens counted\n", weir_commas(weir_neurons_counts_of(v->result).masked[0], n));
    }
    weir_head_remarks(&h);
    fputc('\n', v->out);
}

int weir_search_text(const weir_search_view *v, weir_err *err)
{
    weir_text text = {0};
    put_head(v, &text);
    weir_text_free(&text);
    return each(v, text_title, text_line, err);
}

static void tsv_line(const weir_search_view *v, fired_list *l, weir_neurons_list which, int64_t i)
{
    const fired *f = &l->f[i];
    const weir_neurons_table *t = weir_neurons_table_at(v->text, f->table);
    char value[32];
    int32_t id = token_of(v, f);
    fprintf(v->out, "%d\t%lld\t%s\t%s\t%s\t%lld\t%s\t", t->layer, (long long)unit_of(v->text, f->table, f->neuron),
            t->hook, t->site, weir_section_name((int)which), (long long)i + 1, weir_float_text(value, f->hit.value));
    if (!isnan(f->z))
        fprintf(v->out, "%.17g", f->z);
    fprintf(v->out, "\t%lld\t%lld\t", (long long)f->hit.doc, (long long)f->hit.pos);
    weir_str bytes = weir_neurons_token(v->text, id);
    l->text.n = 0;
    weir_text_printable(&l->text, bytes.n ? bytes.p : "", bytes.n);
    if (id >= 0)
        fprintf(v->out, "%d", id);
    fprintf(v->out, "\t%.*s\n", (int)l->text.n, l->text.n ? l->text.p : "");
}

int weir_search_tsv(const weir_search_view *v, weir_err *err)
{
    fputs("layer\tneuron\thook\tsite\tlist\trank\tvalue\tz\tdoc\tpos\ttoken_id\ttoken\n", v->out);
    return each(v, NULL, tsv_line, err);
}

static void ndjson_line(const weir_search_view *v, fired_list *l, weir_neurons_list which, int64_t i)
{
    const fired *f = &l->f[i];
    const weir_neurons_table *t = weir_neurons_table_at(v->text, f->table);
    int32_t id = token_of(v, f);
    weir_str bytes = weir_neurons_token(v->text, id);
    weir_jsonw w;
    weir_jsonw_init(&w, v->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_int(&w, "layer", t->layer);
    weir_jsonw_key_int(&w, "unit", unit_of(v->text, f->table, f->neuron));
    weir_jsonw_key_cstr(&w, "hook", t->hook);
    weir_jsonw_key_cstr(&w, "site", t->site);
    weir_jsonw_key_cstr(&w, "list", weir_section_name((int)which));
    weir_jsonw_key_int(&w, "rank", i + 1);
    weir_jsonw_key(&w, "value");
    weir_jsonw_float(&w, f->hit.value);
    weir_jsonw_key_double(&w, "z", f->z);
    weir_jsonw_key_int(&w, "doc", f->hit.doc);
    weir_jsonw_key_int(&w, "pos", f->hit.pos);
    weir_jsonw_key(&w, "id");
    id >= 0 ? weir_jsonw_int(&w, id) : weir_jsonw_null(&w);
    weir_jsonw_key(&w, "token");
    weir_jsonw_str(&w, bytes.n ? bytes.p : "", bytes.n);
    weir_jsonw_end(&w);
    fputc('\n', v->out);
    (void)l;
}

int weir_search_ndjson(const weir_search_view *v, weir_err *err)
{
    weir_jsonw w;
    weir_jsonw_init(&w, v->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "schema", "weir-neurons-search/1");
    weir_head_json_run(&w, v->text, v->asked);
    weir_head_json_tables(&w, v->text);
    weir_jsonw_key_cstr(&w, "beside", v->beside);
    weir_jsonw_key_cstr(&w, "ranked_by", v->result ? "z" : "value");
    weir_jsonw_end(&w);
    fputc('\n', v->out);
    return each(v, NULL, ndjson_line, err);
}

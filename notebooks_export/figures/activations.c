/* figures/activations.c: the kind `activations`: what weir trace recorded at hook points, in rows of units. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "activations/activ.h"
#include "cli/say.h"

/* The hook that is looked at unless another is named: the neurons of the middle one of the recorded layers, the stream
 * behind it, or whatever comes first. -1: nothing is flat. */
static int likely_hook(weir_dump_reader *r)
{
    static const char *const want[] = {".mlp.hook_post", ".hook_resid_post", ""};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        int found = 0, middle = -1;
        for (int pass = 0; pass < 2; pass++) {
            const int half = found / 2;
            found = 0;
            for (int i = 0; i < weir_dump_n_hooks(r); i++) {
                const weir_dump_hook *h = weir_dump_hook_at(r, i);
                const size_t n = strlen(h->name), end = strlen(want[k]);
                if (!weir_activ_flat(h) || n < end || strcmp(h->name + n - end, want[k]) != 0)
                    continue;
                if (pass == 1 && found == (end ? half : 0))
                    middle = i;
                found++;
            }
        }
        if (middle >= 0)
            return middle;
    }
    return -1;
}

static int choose_hook(weir_activ *a)
{
    const char *name;
    const int likely = likely_hook(a->r);
    if (likely < 0)
        return weir_cli_error(weir_nb_cli(a->nb),
                              "%s: no hook point in it has rows of units; attention patterns: --template attention",
                              weir_nb_path(a->nb));
    weir_nb_set_text(a->nb, "hook", weir_dump_hook_at(a->r, likely)->name);
    const int code = weir_nb_text(a->nb, "hook", &name, NULL);
    if (code != WEIR_EXIT_OK)
        return code;
    a->hook = weir_dump_find(a->r, name);
    if (a->hook < 0)
        return weir_nb_wrong(a->nb, "hook", "the file has no such hook point, but for example %s",
                             weir_dump_hook_at(a->r, likely)->name);
    if (!weir_activ_flat(weir_dump_hook_at(a->r, a->hook)))
        return weir_nb_wrong(a->nb, "hook", "its rows are heads by keys, not units: --template attention");
    a->width = weir_dump_hook_at(a->r, a->hook)->width;
    return WEIR_EXIT_OK;
}

enum { SAMPLE = 8192, SAMPLED_VALUES = 1 << 25 };

static int read_counts(weir_activ *a)
{
    const int64_t fitting = SAMPLED_VALUES / (a->width > 0 ? a->width : 1);
    const int64_t big = (int64_t)1 << 40;
    weir_nb_set_int(a->nb, "max_rows", fitting < 256 ? 256 : fitting < SAMPLE ? fitting : SAMPLE);
    int code = weir_nb_int_in(a->nb, "max_rows", 1, big, &a->max_rows);
    code = code ? code : weir_nb_int_in(a->nb, "max_tokens", 1, 100000, &a->max_tokens);
    code = code ? code : weir_nb_int_in(a->nb, "bins", 1, 100000, &a->bins);
    code = code ? code : weir_nb_int_in(a->nb, "top", 1, 100000, &a->top);
    code = code ? code : weir_nb_int_in(a->nb, "context", 0, 10000, &a->context);
    code = code ? code : weir_nb_bool(a->nb, "skip_first", &a->skip_first);
    if (code != WEIR_EXIT_OK)
        return code;
    const int64_t every = (a->rows + a->max_rows - 1) / a->max_rows;
    a->block = weir_activ_block(a->width);
    a->step = a->block * (every > 1 ? every : 1);
    return WEIR_EXIT_OK;
}

/* The unit that reaches highest in the sample, and where; false: nothing is finite. */
static int highest_unit(const weir_activ *a, int64_t *column, int64_t *row)
{
    weir_activ_moments m;
    const int code = weir_activ_moments_of(a, &m);
    *row = -1;
    for (int64_t c = 0; code == WEIR_EXIT_OK && c < a->width; c++)
        if (m.highest[c] >= 0 && (*row < 0 || m.high[c] > m.high[*column])) {
            *column = c;
            *row = m.highest[c];
        }
    if (code == WEIR_EXIT_OK)
        weir_activ_moments_free(&m);
    return code;
}

/* The document of a row. */
static int document_at(const weir_activ *a, int64_t row, int64_t *document)
{
    weir_err err = {0};
    const weir_token_columns want = {.doc = document};
    return weir_dump_read_tokens(a->r, row, 1, &want, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_activ_fail(a, &err);
}

enum { SHORT = 8 };

/* The first text that is not short, or the longest. */
static int likely_document(const weir_activ *a, int64_t *document)
{
    int64_t longest = -1;
    *document = 0;
    for (int64_t i = 0; i < weir_dump_n_docs(a->r) && longest < SHORT; i++) {
        weir_err err = {0};
        weir_dump_doc_rows d;
        if (weir_dump_read_doc(a->r, i, &d, &err) != WEIR_OK)
            return weir_activ_fail(a, &err);
        if (d.n > longest) {
            longest = d.n;
            *document = i;
        }
    }
    return WEIR_EXIT_OK;
}

static bool of_neurons(const weir_dump_hook *h)
{
    const char *const end = ".mlp.hook_post";
    const size_t n = strlen(h->name), k = strlen(end);
    return h->units || (n >= k && strcmp(h->name + n - k, end) == 0);
}

/* Neurons are looked at one by one: the one that reaches highest, where it does. */
static int choose_unit_and_document(weir_activ *a)
{
    const weir_dump_hook *h = weir_dump_hook_at(a->r, a->hook);
    int64_t column = 0, row = -1, document = 0;
    bool there;
    int code = likely_document(a, &document);
    if (code == WEIR_EXIT_OK && of_neurons(h) && !weir_nb_given(a->nb, "unit"))
        code = highest_unit(a, &column, &row);
    if (code == WEIR_EXIT_OK && row >= 0) {
        weir_nb_set_int(a->nb, "unit", h->units ? h->units[column] : column);
        code = document_at(a, row, &document);
    }
    weir_nb_set_int(a->nb, "document", document);
    code = code ? code : weir_nb_int(a->nb, "document", &a->document, NULL);
    code = code ? code : weir_nb_int(a->nb, "unit", &a->unit, &there);
    if (code != WEIR_EXIT_OK)
        return code;
    if (a->document < 0 || a->document >= weir_dump_n_docs(a->r))
        return weir_nb_wrong(a->nb, "document", "the file has %lld documents, counted from 0",
                             (long long)weir_dump_n_docs(a->r));
    a->has_unit = there;
    a->column = there ? weir_dump_column(a->r, a->hook, a->unit) : 0;
    if (a->column < 0)
        return weir_nb_wrong(a->nb, "unit", "%s has no unit %lld in this file", h->name, (long long)a->unit);
    return WEIR_EXIT_OK;
}

static int open_dump(weir_nb *nb, void **data)
{
    weir_activ *a = calloc(1, sizeof *a);
    *data = a;
    if (!a)
        return weir_nb_no_memory(nb);
    a->nb = nb;
    int code = weir_nb_open_dump(nb, &a->r);
    if (code == WEIR_EXIT_OK) {
        a->rows = weir_dump_rows(a->r);
        code = choose_hook(a);
    }
    code = code ? code : read_counts(a);
    code = code ? code : choose_unit_and_document(a);
    if (code != WEIR_EXIT_OK)
        return code;
    const char *name = weir_dump_hook_at(a->r, a->hook)->name;
    if (a->has_unit)
        snprintf(a->label, sizeof a->label, "%s, unit %lld", name, (long long)a->unit);
    else
        snprintf(a->label, sizeof a->label, "norm of %s", name);
    return WEIR_EXIT_OK;
}

static void close_dump(void *data)
{
    weir_activ *a = data;
    if (a)
        weir_dump_close(a->r);
    free(a);
}

static const weir_nb_figure figures[] = {{"open", weir_activ_draw_open},
                                         {"strip", weir_activ_draw_strip},
                                         {"units-figure", weir_activ_draw_units},
                                         {"histogram", weir_activ_draw_histogram},
                                         {"map", weir_activ_draw_map},
                                         {"norms-figure", weir_activ_draw_norms},
                                         {"top", weir_activ_draw_top},
                                         {"surprise", weir_activ_draw_surprise},
                                         {NULL, NULL}};

const weir_nb_kind weir_nb_kind_activations = {
    .name = "activations", .format = "weir-dump", .open = open_dump, .close = close_dump, .figure = figures};

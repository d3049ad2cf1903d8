/* attention: dumps with attn.hook_pattern: what is opened, and which window of which document the parameters choose.
 * What the cells show is drawn in attention/draw.c and attention/scores.c. */
#include <stdlib.h>
#include <string.h>

#include "attention/heads.h"
#include "cli/from.h"
#include "cli/say.h"

#define COMMAND "weir trace --hooks 'blocks.*.attn.hook_pattern'"

static bool is_pattern(const weir_dump_hook *hook)
{
    const char *site = strstr(hook->name, ".attn.hook_pattern");
    return site && strcmp(site, ".attn.hook_pattern") == 0 && hook->layer >= 0;
}

/* --- what the dump holds */

static int by_layer(const void *a, const void *b)
{
    return ((const weir_nb_heads_layer *)a)->layer - ((const weir_nb_heads_layer *)b)->layer;
}

static int find_layers(weir_nb_heads *h)
{
    const int n = weir_dump_n_hooks(h->r);
    h->layer = calloc((size_t)n + 1, sizeof *h->layer);
    if (!h->layer)
        return weir_nb_no_memory(h->nb);
    for (int i = 0; i < n; i++) {
        const weir_dump_hook *hook = weir_dump_hook_at(h->r, i);
        if (is_pattern(hook) && hook->units)
            h->selected = true;
        else if (is_pattern(hook))
            h->layer[h->n_layers++] = (weir_nb_heads_layer){hook->layer, i, hook->heads, hook->size};
    }
    qsort(h->layer, (size_t)h->n_layers, sizeof *h->layer, by_layer);
    return WEIR_EXIT_OK;
}

bool weir_nb_heads_any(const weir_nb_heads *h, FILE *out)
{
    if (h->n_layers == 0)
        fprintf(out, "<p>%s: <code>" COMMAND "%s</code> records it%s</p>\n",
                h->selected ? "of hook_pattern the file holds chosen units only"
                            : "the file holds no attention pattern",
                h->selected ? "" : " --dump heads.h5", h->selected ? " whole" : "");
    else if (h->n == 0)
        fputs("<p>the document has no rows</p>\n", out);
    return h->n_layers > 0 && h->n > 0;
}

/* --- rows */

static int bad_place(const weir_nb_heads *h, int64_t row, int64_t at)
{
    return weir_cli_error(weir_nb_cli(h->nb), "tokens/ctx_pos of row %lld is %lld, which is no key of the pattern",
                          (long long)row, (long long)at);
}

/* Where the rows of the sample stand in their windows. */
static int read_places(weir_nb_heads *h)
{
    weir_err err = {0};
    int64_t keys = h->layer[0].keys;
    for (int i = 1; i < h->n_layers; i++)
        keys = h->layer[i].keys < keys ? h->layer[i].keys : keys;
    h->places = malloc(sizeof *h->places * (size_t)(h->sample + 1));
    if (!h->places)
        return weir_nb_no_memory(h->nb);
    const weir_token_columns c = {.ctx_pos = h->places};
    if (h->sample && weir_dump_read_tokens(h->r, 0, h->sample, &c, &err) != WEIR_OK)
        return weir_cli_fail(weir_nb_cli(h->nb), &err);
    for (int64_t i = 0; i < h->sample; i++)
        if (h->places[i] < 0 || h->places[i] >= keys)
            return bad_place(h, i, h->places[i]);
    return WEIR_EXIT_OK;
}

/* --- parameters */

/* Without the user's word a head is shown that one can see at work. */
static int choose_head(weir_nb *nb, weir_nb_heads *h)
{
    int64_t layer, head;
    const bool any_layer = !weir_nb_given(nb, "layer"), any_head = !weir_nb_given(nb, "head");
    int code = weir_nb_int(nb, "layer", &layer, NULL);
    if (code == WEIR_EXIT_OK)
        code = weir_nb_int(nb, "head", &head, NULL);
    if (code == WEIR_EXIT_OK && (any_layer || any_head))
        code = weir_nb_heads_find(h, any_layer, any_head, &layer, &head);
    if (code != WEIR_EXIT_OK)
        return code;
    weir_nb_set_int(nb, "layer", layer);
    weir_nb_set_int(nb, "head", head);
    for (int i = 0; i < h->n_layers; i++)
        if (h->layer[i].layer == layer)
            h->at = &h->layer[i];
    if (!h->at)
        return weir_nb_wrong(nb, "layer", "the file does not hold its pattern: " COMMAND " does");
    return weir_nb_int_in(nb, "head", 0, h->at->heads - 1, &h->head);
}

/* --- the window */

/* Rows of a document: their columns, and the first and the last row of each window. */
typedef struct document {
    int64_t row, n;
    int32_t *id;
    int64_t *pos, *ctx_pos;
} document;

static int read_document(const weir_nb_heads *h, int64_t doc, document *d)
{
    weir_err err = {0};
    weir_dump_doc_rows rows;
    if (weir_dump_read_doc(h->r, doc, &rows, &err) != WEIR_OK)
        return weir_cli_fail(weir_nb_cli(h->nb), &err);
    *d = (document){rows.row, rows.n, malloc(((size_t)rows.n + 1) * sizeof *d->id),
                    malloc(((size_t)rows.n + 1) * sizeof *d->pos), malloc(((size_t)rows.n + 1) * sizeof *d->ctx_pos)};
    if (!d->id || !d->pos || !d->ctx_pos)
        return weir_nb_no_memory(h->nb);
    const weir_token_columns c = {.id = d->id, .pos = d->pos, .ctx_pos = d->ctx_pos};
    if (d->n && weir_dump_read_tokens(h->r, d->row, d->n, &c, &err) != WEIR_OK)
        return weir_cli_fail(weir_nb_cli(h->nb), &err);
    for (int64_t i = 0; i < d->n; i++) {
        if (d->ctx_pos[i] < 0)
            return bad_place(h, d->row + i, d->ctx_pos[i]);
        if (d->pos[i] < 0)
            return weir_cli_error(weir_nb_cli(h->nb), "tokens/pos of row %lld is %lld", (long long)(d->row + i),
                                  (long long)d->pos[i]);
    }
    return WEIR_EXIT_OK;
}

/* Windows of a document follow one another; [*first, *end): the rows of this one. Returns how many there are. */
static int64_t window_at(const document *d, int64_t window, int64_t *first, int64_t *end)
{
    int64_t n = 0;
    *first = *end = 0;
    for (int64_t i = 0, to; i < d->n; i = to, n++) {
        for (to = i + 1; to < d->n && d->pos[to] - d->ctx_pos[to] == d->pos[i] - d->ctx_pos[i];)
            to++;
        if (n == window) {
            *first = i;
            *end = to;
        }
    }
    return n;
}

/* The token that stands at a position of the document; -1: it was not recorded. */
static int32_t token_at(const document *d, int64_t pos)
{
    for (int64_t i = 0; i < d->n; i++)
        if (d->pos[i] == pos)
            return d->id[i];
    return -1;
}

static int take_window(weir_nb_heads *h, const document *d, int64_t first, int64_t end)
{
    h->row = d->row + first;
    h->n = end - first;
    h->id = malloc(((size_t)h->n + 1) * sizeof *h->id);
    h->ctx_pos = malloc(((size_t)h->n + 1) * sizeof *h->ctx_pos);
    if (!h->id || !h->ctx_pos)
        return weir_nb_no_memory(h->nb);
    for (int64_t i = 0; i < h->n; i++) {
        h->id[i] = d->id[first + i];
        h->ctx_pos[i] = d->ctx_pos[first + i];
        if (h->ctx_pos[i] < 0 || h->ctx_pos[i] >= h->at->keys || (i && h->ctx_pos[i] <= h->ctx_pos[i - 1]))
            return bad_place(h, h->row + i, h->ctx_pos[i]);
    }
    h->n_keys = h->n ? h->ctx_pos[h->n - 1] + 1 : 0;
    h->key = malloc(((size_t)h->n_keys + 1) * sizeof *h->key);
    if (!h->key)
        return weir_nb_no_memory(h->nb);
    const int64_t shift = h->n ? d->pos[first] - d->ctx_pos[first] : 0;
    for (int64_t k = 0; k < h->n_keys; k++)
        h->key[k] = token_at(d, h->bos && k == 0 ? 0 : k + shift);
    return WEIR_EXIT_OK;
}

static int choose_window(weir_nb *nb, weir_nb_heads *h, int64_t doc)
{
    document d = {0};
    int64_t window, first, end, n;
    int code = weir_nb_int(nb, "window", &window, NULL);
    if (code == WEIR_EXIT_OK)
        code = read_document(h, doc, &d);
    if (code == WEIR_EXIT_OK) {
        n = window_at(&d, window, &first, &end);
        if (n && (window < 0 || window >= n))
            code = weir_nb_wrong(nb, "window", "document %lld has %lld window%s", (long long)doc, (long long)n,
                                 n == 1 ? "" : "s");
        else
            code = take_window(h, &d, first, end);
    }
    free(d.id);
    free(d.pos);
    free(d.ctx_pos);
    return code;
}

static int choose(weir_nb *nb, weir_nb_heads *h)
{
    const int64_t any = INT64_C(1) << 40, drawn = 1000, small = 200;
    int64_t doc;
    if (h->n_layers == 0)
        return WEIR_EXIT_OK;
    int code = weir_nb_int_in(nb, "max_rows", 1, any, &h->sample);
    if (code != WEIR_EXIT_OK)
        return code;
    h->sample = h->sample < h->rows ? h->sample : h->rows;
    if ((code = read_places(h)) != WEIR_EXIT_OK || (code = choose_head(nb, h)) != WEIR_EXIT_OK)
        return code;
    if (weir_dump_n_docs(h->r) == 0)
        return weir_cli_error(weir_nb_cli(h->nb), "%s holds no document", weir_nb_path(nb));
    if ((code = weir_nb_int_in(nb, "doc", 0, weir_dump_n_docs(h->r) - 1, &doc)) != WEIR_EXIT_OK ||
        (code = weir_nb_int_in(nb, "max_tokens", 1, drawn, &h->most)) != WEIR_EXIT_OK ||
        (code = weir_nb_int_in(nb, "small_tokens", 1, small, &h->small)) != WEIR_EXIT_OK ||
        (code = weir_nb_int_in(nb, "strip_tokens", 1, any, &h->strip)) != WEIR_EXIT_OK)
        return code;
    return choose_window(nb, h, doc);
}

/* --- the kind */

static int open_heads(weir_nb *nb, void **data)
{
    weir_nb_heads *h = calloc(1, sizeof *h);
    if (!h)
        return weir_nb_no_memory(nb);
    *data = h;
    h->nb = nb;
    int code = weir_nb_open_dump(nb, &h->r);
    if (code == WEIR_EXIT_OK)
        code = find_layers(h);
    if (code != WEIR_EXIT_OK)
        return code;
    h->rows = weir_dump_rows(h->r);
    h->bos = strcmp(weir_from_attr(h->r, "bos", "no"), "yes") == 0;
    weir_nb_tell(nb, "patterns", "of %d layer%s", h->n_layers, weir_nb_s(h->n_layers));
    return choose(nb, h);
}

static void close_heads(void *data)
{
    weir_nb_heads *h = data;
    if (!h)
        return;
    weir_dump_close(h->r);
    void *const own[] = {h->layer, h->places, h->id, h->ctx_pos, h->key, h};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

/* Best for dumps of nothing but attention; others are shown when asked for. */
static int suits(const char *path)
{
    weir_err err = {0};
    weir_dump_reader *r;
    bool all = true, any = false;
    if (weir_dump_open(&r, path, &err) != WEIR_OK)
        return 0;
    for (int i = 0; i < weir_dump_n_hooks(r); i++) {
        const weir_dump_hook *hook = weir_dump_hook_at(r, i);
        all = all && strstr(hook->name, ".attn.");
        any = any || (is_pattern(hook) && !hook->units);
    }
    weir_dump_close(r);
    return all && any ? 2 : 0;
}

static const weir_nb_figure figures[] = {{"map", weir_nb_heads_draw_map},
                                         {"heads", weir_nb_heads_draw_heads},
                                         {"read", weir_nb_heads_draw_read},
                                         {"scores", weir_nb_heads_draw_scores},
                                         {NULL, NULL}};

const weir_nb_kind weir_nb_kind_attention = {.name = "attention",
                                             .format = "weir-dump",
                                             .suits = suits,
                                             .open = open_heads,
                                             .close = close_heads,
                                             .figure = figures};

/* One window of one document: the map of a head, small maps of all heads of its layer, what the head reads most. */
#include <math.h>
#include <stdlib.h>

#include "cli/say.h"
#include "heads.h"
#include "page/chart.h"

enum { WIDTH = 1040 };

/* Columns of the pattern of row h->row + query, n of them: for each of these heads its keys [first, last):
 * out [n, n_heads, last - first], in float64. Returns an exit code; an error has been said. */
static int read_pattern(const weir_nb_heads *h, int64_t query, int64_t n, int64_t head, int64_t n_heads, int64_t first,
                        int64_t last, double *out)
{
    weir_err err = {0};
    const int64_t keys = last - first, columns = n_heads * keys;
    int64_t *column = malloc(sizeof *column * (size_t)columns);
    float *x = malloc(sizeof *x * (size_t)(n * columns));
    for (int64_t c = 0; column && c < columns; c++)
        column[c] = (head + c / keys) * h->at->keys + first + c % keys;
    weir_status st = column && x
                         ? weir_dump_read_columns(h->r, h->at->hook, column, columns, h->row + query, n, x, &err)
                         : weir_fail(&err, WEIR_E_NOMEM, "out of memory for a pattern");
    for (int64_t i = 0; st == WEIR_OK && i < n * columns; i++)
        out[i] = (double)x[i];
    free(column);
    free(x);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(weir_nb_cli(h->nb), &err);
}

/* --- names of queries and keys */

enum { NAME = 16 };

typedef struct names {
    weir_str *name;
    char (*room)[NAME];
} names;

/* A token that has no bytes is named by its id, for which there is room at p. */
static weir_str name_of(const weir_nb_heads *h, int32_t id, char p[NAME])
{
    weir_err err = {0};
    weir_str s = {"", 0};
    if (id >= 0 && weir_dump_token_bytes(h->r, id, &s, &err) == WEIR_OK && s.n)
        return s;
    const int n = id >= 0 ? snprintf(p, NAME, "<#%d>", id) : snprintf(p, NAME, "?");
    return (weir_str){p, (size_t)n};
}

static bool names_of(names *to, const weir_nb_heads *h, const int32_t *id, int64_t n)
{
    to->name = malloc(sizeof *to->name * (size_t)(n + 1));
    to->room = malloc(sizeof *to->room * (size_t)(n + 1));
    for (int64_t i = 0; to->name && to->room && i < n; i++)
        to->name[i] = name_of(h, id[i], to->room[i]);
    return to->name && to->room;
}

static void names_free(names *of)
{
    free(of->name);
    free(of->room);
}

/* --- colours */

/* The largest share of the keys but the window's first one; columns [first, first + columns) are a head's keys. */
static double largest(const double *p, int64_t rows, int64_t stride, int64_t columns, int64_t first)
{
    double most = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = first == 0; k < columns; k++)
            most = fmax(most, p[i * stride + k]);
    return most > 0 ? most : 1;
}

/* --- one head */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void put_map(const weir_nb_heads *h, FILE *out, const double *pattern, int64_t rows, int64_t columns,
                    double most, const names *query, const names *key)
{
    char title[64];
    const weir_chart_scale scale = {.most = most};
    snprintf(title, sizeof title, "layer %d, head %lld", h->at->layer, (long long)h->head);
    const weir_chart_map m = {.out = out,
                              .width = WIDTH,
                              .title = title,
                              .down = "query: who reads",
                              .across = "key: what is read",
                              .label = "share",
                              .rows = rows,
                              .columns = columns,
                              .value = pattern,
                              .row = query->name,
                              .column = key->name,
                              .scale = &scale};
    weir_chart_open(out, WIDTH, weir_chart_map_height(&m), title);
    weir_chart_map_draw(&m);
    weir_svg_end(out);
}

int weir_nb_heads_draw_map(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_heads *h = data;
    (void)nb;
    if (!weir_nb_heads_any(h, out))
        return WEIR_EXIT_OK;
    const int64_t rows = least(h->n, h->most), last = h->ctx_pos[rows - 1] + 1,
                  first = last > h->most ? last - h->most : 0, columns = last - first;
    names query = {0}, key = {0};
    double *pattern = malloc(sizeof *pattern * (size_t)(rows * columns));
    bool ok = names_of(&query, h, h->id, rows);
    ok = names_of(&key, h, h->key + first, columns) && ok && pattern;
    int code = ok ? read_pattern(h, 0, rows, h->head, 1, first, last, pattern) : weir_nb_no_memory(h->nb);
    if (code == WEIR_EXIT_OK) {
        put_map(h, out, pattern, rows, columns, largest(pattern, rows, columns, columns, first), &query, &key);
        weir_nb_put_table(numbers, "pattern", pattern, rows, columns);
    }
    names_free(&query);
    names_free(&key);
    free(pattern);
    return code;
}

/* --- all heads of the layer */

enum { BESIDE = 6, SMALL = 150, GAP = 22, TITLE = 20 };

/* Cells of one head; those that would be white are left out. */
static void put_small(FILE *out, const double *p, int64_t rows, int64_t stride, int64_t columns, double most, double x,
                      double y)
{
    const double cell = SMALL / (double)(rows > columns ? rows : columns);
    fprintf(out, "<rect x=\"%g\" y=\"%g\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" stroke=\"#d5d9e0\"/>\n", x, y,
            cell * (double)columns, cell * (double)rows);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            if (p[i * stride + k] > 0.01 * most)
                fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n",
                        x + cell * (double)k, y + cell * (double)i, cell, cell,
                        weir_svg_heat(p[i * stride + k] / most).text);
}

static void put_heads(const weir_nb_heads *h, FILE *out, const double *p, int64_t rows, int64_t columns, int64_t first)
{
    const int64_t heads = h->at->heads, lines = (heads + BESIDE - 1) / BESIDE;
    weir_chart_open(out, WIDTH, (double)lines * (SMALL + GAP + TITLE), "all heads of the layer");
    for (int64_t i = 0; i < heads; i++) {
        const double x = 2 + (double)(i % BESIDE) * (SMALL + GAP),
                     y = (double)(i / BESIDE) * (SMALL + GAP + TITLE) + TITLE;
        fprintf(out, "<g><title>layer %d, head %lld</title><text x=\"%g\" y=\"%g\">L%dH%lld</text>\n", h->at->layer,
                (long long)i, x, y - 6, h->at->layer, (long long)i);
        put_small(out, p + i * columns, rows, heads * columns, columns,
                  largest(p + i * columns, rows, heads * columns, columns, first), x, y);
        fputs("</g>\n", out);
    }
    weir_svg_end(out);
}

int weir_nb_heads_draw_heads(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_heads *h = data;
    (void)nb;
    if (!weir_nb_heads_any(h, out))
        return WEIR_EXIT_OK;
    const int64_t rows = least(h->n, h->small), last = h->ctx_pos[rows - 1] + 1,
                  first = last > h->small ? last - h->small : 0, columns = last - first, heads = h->at->heads;
    double *p = malloc(sizeof *p * (size_t)(rows * columns * heads)), *mean = calloc((size_t)heads, sizeof *mean);
    int code = p && mean ? read_pattern(h, 0, rows, 0, heads, first, last, p) : weir_nb_no_memory(h->nb);
    for (int64_t i = 0; code == WEIR_EXIT_OK && i < heads; i++) {
        for (int64_t q = 0; q < rows; q++)
            mean[i] += p[(q * heads + i) * columns];
        mean[i] /= (double)rows;
    }
    if (code == WEIR_EXIT_OK) {
        put_heads(h, out, p, rows, columns, first);
        weir_nb_put_reals(numbers, "maps_first", mean, heads);
    }
    free(p);
    free(mean);
    return code;
}

/* --- what is read most */

enum { BLOCK = 64 /* rows at a time: a chunk of the dataset */ };

/* received [n_keys]: the mean over the queries behind a key; NaN: there are none. */
static int receive(const weir_nb_heads *h, double *received)
{
    int64_t *readers = calloc((size_t)h->n_keys, sizeof *readers);
    double *p = malloc(sizeof *p * (size_t)(BLOCK * h->n_keys));
    int code = readers && p ? WEIR_EXIT_OK : weir_nb_no_memory(h->nb);
    for (int64_t i = 0; code == WEIR_EXIT_OK && i < h->n; i += BLOCK) {
        const int64_t n = least(BLOCK, h->n - i);
        code = read_pattern(h, i, n, h->head, 1, 0, h->n_keys, p);
        for (int64_t q = 0; code == WEIR_EXIT_OK && q < n; q++)
            for (int64_t k = 0; k < h->ctx_pos[i + q]; k++) {
                received[k] += p[q * h->n_keys + k];
                readers[k]++;
            }
    }
    for (int64_t k = 0; code == WEIR_EXIT_OK && k < h->n_keys; k++)
        received[k] = readers[k] ? received[k] / (double)readers[k] : (double)NAN;
    free(readers);
    free(p);
    return code;
}

static void put_received(const weir_nb_heads *h, FILE *out, const weir_str *token, const double *received)
{
    weir_chart_scale scale = {.most = 0};
    char label[64];
    for (int64_t k = h->n_keys > 1; k < h->n_keys; k++)
        scale.most = fmax(scale.most, received[k]);
    scale.most = scale.most > 0 ? scale.most : 1;
    snprintf(label, sizeof label, "attention received, layer %d, head %lld", h->at->layer, (long long)h->head);
    const weir_chart_strip s = {.out = out,
                                .width = WIDTH,
                                .n = least(h->n_keys, h->strip),
                                .token = token,
                                .id = h->key,
                                .value = received,
                                .scale = &scale,
                                .label = label};
    weir_chart_open(out, WIDTH, weir_chart_strip_height(&s), label);
    weir_chart_strip_draw(&s);
    weir_svg_end(out);
    if (h->n_keys > 1)
        fprintf(out, "<p>the first token receives %.3g</p>\n", received[0]);
}

int weir_nb_heads_draw_read(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_heads *h = data;
    (void)nb;
    if (!weir_nb_heads_any(h, out))
        return WEIR_EXIT_OK;
    names key = {0};
    double *received = calloc((size_t)h->n_keys, sizeof *received);
    int code = names_of(&key, h, h->key, h->n_keys) && received ? receive(h, received) : weir_nb_no_memory(h->nb);
    if (code == WEIR_EXIT_OK) {
        put_received(h, out, key.name, received);
        weir_nb_put_reals(numbers, "received", received, h->n_keys);
    }
    names_free(&key);
    free(received);
    return code;
}

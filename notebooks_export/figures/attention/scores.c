/* What each head of each layer does on the whole text, in four numbers, each a map layer by head. */
#include <math.h>
#include <stdlib.h>

#include "cli/say.h"
#include "heads.h"
#include "page/chart.h"

enum { FIRST, BEFORE, ITSELF, ENTROPY, SCORES };
enum { WIDTH = 1040, BESIDE = 530 };
enum { LOOKED = 1024 /* rows that decide which head is shown */ };

static const char *const variable[SCORES] = {"first_token", "previous_token", "own_token", "entropy"};
static const char *const title[SCORES] = {"on the first token", "on the token before", "on itself", "entropy, nats"};

/* Adds a block's columns, which belong to any heads and keys, to total [SCORES, heads]. ctx_pos [n]. */
static void add_block(const weir_nb_heads_layer *l, const weir_dump_block *b, const int64_t *ctx_pos, int64_t heads,
                      double *total)
{
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t at = ctx_pos[i];
        for (int64_t c = 0; at > 0 && c < b->n_columns; c++) {
            const int64_t head = (b->column + c) / l->keys, key = (b->column + c) % l->keys;
            const double p = (double)b->data[i * b->n_columns + c];
            if (key == 0)
                total[FIRST * heads + head] += p;
            if (key == at - 1)
                total[BEFORE * heads + head] += p;
            if (key == at)
                total[ITSELF * heads + head] += p;
            if (p > 0)
                total[ENTROPY * heads + head] -= p * log(p);
        }
    }
}

/* One layer: the sums over the first rows but those that see nothing but themselves. */
static int add_layer(const weir_nb_heads *h, const weir_nb_heads_layer *l, int64_t rows, int64_t heads, double *total)
{
    weir_err err = {0};
    weir_dump_stream *s = NULL;
    weir_dump_block b = {.n = 0};
    weir_status st = weir_dump_stream_open(&s, h->r, l->hook, 0, rows, &err);
    while (st == WEIR_OK && (st = weir_dump_stream_next(s, &b, &err)) == WEIR_OK && b.n)
        add_block(l, &b, h->places + b.row, heads, total);
    weir_dump_stream_close(s);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(weir_nb_cli(h->nb), &err);
}

int weir_nb_heads_find(const weir_nb_heads *h, bool any_layer, bool any_head, int64_t *layer, int64_t *head)
{
    const int64_t rows = h->sample < LOOKED ? h->sample : LOOKED, only = *head;
    double most = 0;
    int code = WEIR_EXIT_OK;
    *layer = any_layer ? h->layer[0].layer : *layer;
    *head = any_head ? 0 : only;
    const int64_t asked = *layer;
    for (const weir_nb_heads_layer *l = h->layer; code == WEIR_EXIT_OK && l < h->layer + h->n_layers; l++) {
        if (!any_layer && l->layer != asked)
            continue;
        double *total = calloc((size_t)(SCORES * l->heads), sizeof *total);
        code = total ? add_layer(h, l, rows, l->heads, total) : weir_nb_no_memory(h->nb);
        for (int64_t k = 0; code == WEIR_EXIT_OK && k < l->heads; k++)
            if ((any_head || k == only) && total[BEFORE * l->heads + k] > most) {
                most = total[BEFORE * l->heads + k];
                *layer = l->layer;
                *head = k;
            }
        free(total);
    }
    return code;
}

/* score [SCORES, layers, heads] */
static int measure(const weir_nb_heads *h, int64_t heads, double *score)
{
    double *total = malloc(sizeof *total * (size_t)(SCORES * heads));
    int code = total ? WEIR_EXIT_OK : weir_nb_no_memory(h->nb);
    int64_t seen = 0;
    for (int64_t i = 0; i < h->sample; i++)
        seen += h->places[i] > 0;
    for (int i = 0; i < h->n_layers && code == WEIR_EXIT_OK; i++) {
        for (int64_t k = 0; k < SCORES * heads; k++)
            total[k] = 0;
        code = add_layer(h, &h->layer[i], h->sample, heads, total);
        for (int64_t k = 0; k < SCORES * heads; k++) {
            const bool there = seen && k % heads < h->layer[i].heads;
            score[(k / heads * h->n_layers + i) * heads + k % heads] = there ? total[k] / (double)seen : (double)NAN;
        }
    }
    free(total);
    return code;
}

static void put_scores(const weir_nb_heads *h, FILE *out, const double *score, int64_t heads, const weir_str *layer)
{
    weir_chart_map m[SCORES];
    double height = 0;
    for (int s = 0; s < SCORES; s++) {
        m[s] = (weir_chart_map){.out = out,
                                .x = s % 2 * BESIDE,
                                .width = WIDTH - BESIDE,
                                .title = title[s],
                                .down = "layer",
                                .across = "head",
                                .rows = h->n_layers,
                                .columns = heads,
                                .value = score + s * h->n_layers * heads,
                                .row = layer};
        height = fmax(height, weir_chart_map_height(&m[s]));
    }
    weir_chart_open(out, WIDTH, 2 * height + 16, "layer by head");
    for (int s = 0; s < SCORES; s++) {
        m[s].y = s / 2 * (height + 16);
        weir_chart_map_draw(&m[s]);
    }
    weir_svg_end(out);
}

int weir_nb_heads_draw_scores(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_heads *h = data;
    enum { NAME = 16 };
    int64_t heads = 0;
    (void)nb;
    if (!weir_nb_heads_any(h, out))
        return WEIR_EXIT_OK;
    for (int i = 0; i < h->n_layers; i++)
        heads = h->layer[i].heads > heads ? h->layer[i].heads : heads;
    const int64_t cells = h->n_layers * heads;
    double *score = malloc(sizeof *score * (size_t)(SCORES * cells));
    weir_str *name = malloc(sizeof *name * (size_t)h->n_layers);
    char(*room)[NAME] = malloc(sizeof *room * (size_t)h->n_layers);
    int code = score && name && room ? measure(h, heads, score) : weir_nb_no_memory(h->nb);
    for (int i = 0; i < h->n_layers && code == WEIR_EXIT_OK; i++)
        name[i] = (weir_str){room[i], (size_t)snprintf(room[i], NAME, "%d", h->layer[i].layer)};
    if (code == WEIR_EXIT_OK) {
        put_scores(h, out, score, heads, name);
        for (int s = 0; s < SCORES; s++)
            weir_nb_put_table(numbers, variable[s], score + s * cells, h->n_layers, heads);
    }
    free(score);
    free(name);
    free(room);
    return code;
}

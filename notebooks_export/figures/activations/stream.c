/* activations/stream.c: norms of the residual stream by layer and position, and along its depth. Depth L is the stream
 * before block L, L + 1/2 that behind its attention, L + 1 that behind its MLP. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "activ.h"
#include "figures/bins.h"

typedef struct place {
    double depth;
    int hook;
    char name[40];
} place;

/* Is this `site` of a block, whole? Its layer, else -1. */
static int64_t layer_of(const weir_dump_hook *h, const char *site)
{
    long long layer = -1;
    int end = 0;
    if (h->units || strncmp(h->name, "blocks.", 7) != 0 || h->name[7] < '0' || h->name[7] > '9' ||
        sscanf(h->name + 7, "%9lld%n", &layer, &end) != 1)
        return -1;
    const char *rest = h->name + 7 + end;
    return rest[0] == '.' && strcmp(rest + 1, site) == 0 ? layer : -1;
}

static int by_depth(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

/* Adds the places of a site to [n]; a depth that is there already is taken over by the later one: the stream behind a
 * block is that before the next. */
static int add_site(const weir_activ *a, place *p, int n, const char *site, double behind)
{
    for (int i = 0; i < weir_dump_n_hooks(a->r); i++) {
        const int64_t layer = layer_of(weir_dump_hook_at(a->r, i), site);
        const double depth = (double)layer + behind;
        int at = 0;
        if (layer < 0)
            continue;
        while (at < n && p[at].depth != depth)
            at++;
        p[at].depth = depth;
        p[at].hook = i;
        snprintf(p[at].name, sizeof p[at].name, "L%lld %s", (long long)layer, strrchr(site, '_') + 1);
        n = at == n ? n + 1 : n;
    }
    return n;
}

/* To be freed. NULL: out of memory, which has been said. */
static place *stream_of(const weir_activ *a, int *n)
{
    place *p = calloc((size_t)weir_dump_n_hooks(a->r) + 1, sizeof *p);
    *n = 0;
    if (!p) {
        (void)weir_nb_no_memory(a->nb);
        return NULL;
    }
    *n = add_site(a, p, *n, "hook_resid_pre", 0);
    *n = add_site(a, p, *n, "hook_resid_mid", 0.5);
    *n = add_site(a, p, *n, "hook_resid_post", 1);
    qsort(p, (size_t)*n, sizeof *p, by_depth);
    return p;
}

static void put_depths(weir_jsonw *numbers, const char *name, const place *p, int n)
{
    weir_jsonw_key(numbers, name);
    weir_jsonw_array(numbers);
    for (int i = 0; i < n; i++)
        weir_jsonw_real(numbers, p[i].depth);
    weir_jsonw_end(numbers);
}

/* --- layer by position */

enum { WIDE = 960 };

static int put_map(const weir_activ *a, FILE *out, const place *p, int places, int64_t row, int64_t n, const double *v)
{
    char title[80];
    snprintf(title, sizeof title, "norm of the stream, document %lld", (long long)a->document);
    weir_activ_words w = {0};
    weir_str *name = malloc(sizeof *name * (size_t)places);
    bool *counted = malloc((size_t)n);
    int code = name && counted ? weir_activ_counted(a, row, n, counted) : weir_nb_no_memory(a->nb);
    if (code == WEIR_EXIT_OK)
        code = weir_activ_words_of(a, row, n, &w);
    if (code == WEIR_EXIT_OK) {
        for (int i = 0; i < places; i++)
            name[i] = (weir_str){p[i].name, strlen(p[i].name)};
        const weir_chart_scale scale = weir_activ_scale(v, counted, places, n);
        const weir_chart_map m = {.out = out,
                                  .width = WIDE,
                                  .title = title,
                                  .across = "token",
                                  .label = "norm",
                                  .rows = places,
                                  .columns = n,
                                  .value = v,
                                  .row = name,
                                  .column = w.text,
                                  .scale = &scale,
                                  .rising = true};
        weir_chart_open(out, weir_chart_map_width(&m), weir_chart_map_height(&m), title);
        weir_chart_map_draw(&m);
        weir_svg_end(out);
    }
    weir_activ_words_free(&w);
    free(name);
    free(counted);
    return code;
}

int weir_activ_draw_map(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_activ *a = data;
    int64_t row, n;
    int places;
    (void)nb;
    int code = weir_activ_document(a, &row, &n);
    place *p = code == WEIR_EXIT_OK ? stream_of(a, &places) : NULL;
    if (!p)
        return WEIR_EXIT_FAILED;
    double *v = malloc(sizeof *v * (size_t)(n * places + 1));
    code = v ? WEIR_EXIT_OK : weir_nb_no_memory(a->nb);
    for (int i = 0; code == WEIR_EXIT_OK && i < places; i++)
        code = weir_activ_norms(a, p[i].hook, row, n, v + i * n);
    if (code == WEIR_EXIT_OK && places && n)
        code = put_map(a, out, p, places, row, n, v);
    else if (code == WEIR_EXIT_OK && !places)
        weir_nb_say(out,
                    "no stream in this file: weir trace --site resid_pre --site resid_post --dump FILE.h5 records it");
    else if (code == WEIR_EXIT_OK)
        weir_nb_say(out, "document %lld has no rows in this file", (long long)a->document);
    if (code == WEIR_EXIT_OK) {
        put_depths(numbers, "depths", p, places);
        weir_nb_put_table(numbers, "map_norms", v, places, n);
    }
    free(v);
    free(p);
    return code;
}

/* --- along the stream */

enum { QUANTILES = 5 };
static const double QUANTILE[QUANTILES] = {0.05, 0.25, 0.5, 0.75, 0.95};

typedef struct norms {
    const weir_activ *a;
    double *v;
    int64_t n, width;
} norms;

static int add_norms(void *ctx, int64_t row, int64_t n, const float *x, const bool *counted)
{
    norms *t = ctx;
    (void)row;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t c = 0; c < t->width; c++)
            sum += (double)x[i * t->width + c] * (double)x[i * t->width + c];
        if (counted[i] && isfinite(sum))
            t->v[t->n++] = sqrt(sum);
    }
    return WEIR_EXIT_OK;
}

/* Of the sample. mean, and quantile [QUANTILES] unless NULL; NaN where nothing counts. */
static int norms_of(norms *t, int hook, double *mean, double *quantiles)
{
    double sum = 0;
    t->n = 0;
    t->width = weir_dump_hook_at(t->a->r, hook)->width;
    const int code = weir_activ_sample(t->a, hook, add_norms, t);
    for (int64_t i = 0; i < t->n; i++)
        sum += t->v[i];
    *mean = t->n ? sum / (double)t->n : (double)NAN;
    if (quantiles)
        weir_nb_sort(t->v, t->n);
    for (int q = 0; quantiles && q < QUANTILES; q++)
        quantiles[q] = weir_nb_quantile(t->v, t->n, QUANTILE[q]);
    return code;
}

/* What is drawn: the stream, and what is added to it. */
typedef struct course {
    place *stream, *added[2];
    int n, n_added[2];
    double *mean, *quantiles, *added_mean[2]; /* quantiles [n, QUANTILES] */
    void *room;
} course;

static void hold_course(const course *t, weir_chart *c)
{
    for (int i = 0; i < t->n; i++)
        weir_chart_hold_one(&c->across, t->stream[i].depth);
    weir_chart_hold(&c->up, t->mean, t->n);
    weir_chart_hold(&c->up, t->quantiles, (int64_t)t->n * QUANTILES);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < t->n_added[k]; i++)
            weir_chart_hold_one(&c->across, t->added[k][i].depth);
        weir_chart_hold(&c->up, t->added_mean[k], t->n_added[k]);
    }
    weir_chart_hold_one(&c->up, 0);
}

/* x, y [most of the places] and low are room. */
static void put_course(const course *t, FILE *out, double *x, double *y, double *low)
{
    const weir_chart_style style[] = {{.name = "stream: 5 to 95 %", .colour = WEIR_CHART_WIDE_BAND, .area = true},
                                      {.name = "25 to 75 %", .colour = WEIR_CHART_BAND, .area = true},
                                      {.name = "median", .colour = weir_chart_colour(1), .dash = "5 3"},
                                      {.name = "mean", .colour = "#1b1f27", .dots = 3},
                                      {.name = "attention adds", .colour = weir_chart_colour(3), .dots = 3},
                                      {.name = "MLP adds", .colour = weir_chart_colour(0), .dots = 3}};
    weir_chart c = {.out = out,
                    .x = WEIR_CHART_LEFT,
                    .y = WEIR_CHART_TOP,
                    .width = 600,
                    .height = 300,
                    .title = "norms along the stream",
                    .across = {.label = "depth, blocks", .exact = true},
                    .up = {.label = "norm"}};
    hold_course(t, &c);
    weir_chart_open(out, 700, 420, c.title);
    weir_chart_frame(&c);
    for (int i = 0; i < t->n; i++)
        x[i] = t->stream[i].depth;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < t->n; i++) {
            low[i] = t->quantiles[i * QUANTILES + k];
            y[i] = t->quantiles[i * QUANTILES + QUANTILES - 1 - k];
        }
        weir_chart_band(&c, t->n, x, low, y, &style[k]);
    }
    for (int i = 0; i < t->n; i++)
        y[i] = t->quantiles[i * QUANTILES + QUANTILES / 2];
    weir_chart_line(&c, t->n, x, y, &style[2]);
    weir_chart_line(&c, t->n, x, t->mean, &style[3]);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < t->n_added[k]; i++)
            x[i] = t->added[k][i].depth;
        weir_chart_line(&c, t->n_added[k], x, t->added_mean[k], &style[4 + k]);
    }
    weir_chart_legend(out, c.x, c.y + c.height + WEIR_CHART_UNDER, c.width, style, sizeof style / sizeof *style);
    weir_svg_end(out);
}

static void course_free(course *t)
{
    free(t->stream);
    free(t->added[0]);
    free(t->added[1]);
    free(t->room);
}

/* Finds the places, and room for their numbers. */
static int course_init(const weir_activ *a, course *t)
{
    static const struct {
        const char *site;
        double behind;
    } add[2] = {{"hook_attn_out", 0.5}, {"hook_mlp_out", 1}};
    const size_t hooks = (size_t)weir_dump_n_hooks(a->r);
    *t = (course){0};
    t->stream = stream_of(a, &t->n);
    t->room = calloc((QUANTILES + 3) * (hooks + 1), sizeof(double));
    for (int k = 0; k < 2; k++) {
        t->added[k] = calloc(hooks + 1, sizeof *t->added[k]);
        if (!t->stream || !t->room || !t->added[k])
            return weir_nb_no_memory(a->nb);
        t->n_added[k] = add_site(a, t->added[k], 0, add[k].site, add[k].behind);
        qsort(t->added[k], (size_t)t->n_added[k], sizeof *t->added[k], by_depth);
        t->added_mean[k] = (double *)t->room + (size_t)(QUANTILES + 1 + k) * (hooks + 1);
    }
    t->mean = t->room;
    t->quantiles = t->mean + hooks + 1;
    return WEIR_EXIT_OK;
}

static int measure(const weir_activ *a, course *t)
{
    /* The sample has at most so many rows. */
    const int64_t most = ((a->rows + a->step - 1) / a->step) * a->block;
    norms all = {.a = a, .v = malloc(sizeof(double) * (size_t)(most + 1))};
    int code = all.v ? WEIR_EXIT_OK : weir_nb_no_memory(a->nb);
    for (int i = 0; code == WEIR_EXIT_OK && i < t->n; i++)
        code = norms_of(&all, t->stream[i].hook, &t->mean[i], t->quantiles + i * QUANTILES);
    for (int k = 0; k < 2; k++)
        for (int i = 0; code == WEIR_EXIT_OK && i < t->n_added[k]; i++)
            code = norms_of(&all, t->added[k][i].hook, &t->added_mean[k][i], NULL);
    free(all.v);
    return code;
}

int weir_activ_draw_norms(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_activ *a = data;
    course t;
    (void)nb;
    int code = course_init(a, &t);
    if (code == WEIR_EXIT_OK)
        code = measure(a, &t);
    double *room = malloc(sizeof *room * 3 * (size_t)(weir_dump_n_hooks(a->r) + 1));
    if (code == WEIR_EXIT_OK && !room)
        code = weir_nb_no_memory(a->nb);
    if (code == WEIR_EXIT_OK && t.n + t.n_added[0] + t.n_added[1] > 0)
        put_course(&t, out, room, room + weir_dump_n_hooks(a->r), room + 2 * weir_dump_n_hooks(a->r));
    else if (code == WEIR_EXIT_OK)
        weir_nb_say(out,
                    "no stream, attn_out or mlp_out in this file: weir trace --layers all --dump FILE.h5 records them");
    if (code == WEIR_EXIT_OK) {
        weir_nb_put_reals(numbers, "stream_mean", t.mean, t.n);
        weir_nb_put_table(numbers, "stream_quantiles", t.quantiles, t.n, QUANTILES);
        put_depths(numbers, "attention_depth", t.added[0], t.n_added[0]);
        weir_nb_put_reals(numbers, "attention_mean", t.added_mean[0], t.n_added[0]);
        put_depths(numbers, "mlp_depth", t.added[1], t.n_added[1]);
        weir_nb_put_reals(numbers, "mlp_mean", t.added_mean[1], t.n_added[1]);
    }
    free(room);
    course_free(&t);
    return code;
}

/* What the edit does to the perplexity of texts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures/bins.h"
#include "page/chart.h"
#include "report.h"

enum { WIDTH = 660, HEIGHT = 200 };

typedef struct changes {
    int64_t n;       /* texts that have tokens */
    int64_t *at;     /* [n] which they are */
    double *percent; /* [n] of the perplexity */
    double tokens, mean[WEIR_NB_SIDES], drift;
} changes;

static bool take_changes(const weir_nb_report *v, changes *c)
{
    *c = (changes){.at = malloc(sizeof *c->at * ((size_t)v->texts + 1)),
                   .percent = malloc(sizeof *c->percent * ((size_t)v->texts + 1)),
                   .drift = (double)NAN};
    if (!c->at || !c->percent)
        return false;
    for (int64_t i = 0; i < v->texts; i++)
        c->tokens += v->tokens[i] > 0 ? (double)v->tokens[i] : 0;
    double risen = 0;
    for (int64_t i = 0; i < v->texts; i++) {
        const double *nll = v->nll + i * WEIR_NB_SIDES, weight = (double)v->tokens[i] / c->tokens;
        if (v->tokens[i] <= 0)
            continue;
        for (int side = 0; side < WEIR_NB_SIDES; side++)
            c->mean[side] += weight * nll[side];
        risen += weight * (nll[WEIR_NB_AFTER] - nll[WEIR_NB_BEFORE]);
        c->at[c->n] = i;
        c->percent[c->n++] = 100 * (exp(nll[WEIR_NB_AFTER] - nll[WEIR_NB_BEFORE]) - 1);
    }
    if (c->n)
        c->drift = 100 * (exp(risen) - 1);
    return true;
}

/* False: some are not finite. */
static bool count_changes(const changes *c, int64_t bins, double *edge, int64_t *count)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < c->n; i++) {
        if (!isfinite(c->percent[i]))
            return false;
        low = fmin(low, c->percent[i]);
        high = fmax(high, c->percent[i]);
    }
    weir_nb_edges(low, high, bins, edge);
    for (int64_t i = 0; i < c->n; i++)
        count[weir_nb_bin_of(edge, bins, c->percent[i])]++;
    return true;
}

static void put_histogram(const changes *c, int64_t bins, FILE *out, const double *edge, const double *height)
{
    char name[80];
    snprintf(name, sizeof name, "all together: %+.3g %%", c->drift);
    const weir_chart_style style[2] = {{.name = "texts", .colour = WEIR_CHART_BAND, .area = true},
                                       {.name = name, .width = 2}};
    weir_chart f = {.out = out,
                    .x = WEIR_CHART_LEFT,
                    .y = WEIR_CHART_TOP,
                    .width = WIDTH,
                    .height = HEIGHT,
                    .title = "change of the perplexity, text by text",
                    .across = {.label = "change of the perplexity, %"},
                    .up = {.label = "texts"}};
    weir_chart_hold(&f.across, edge, bins + 1);
    weir_chart_hold_one(&f.across, c->drift);
    weir_chart_hold(&f.up, height, bins);
    weir_chart_hold_one(&f.up, 0);
    weir_chart_open(out, 760, WEIR_CHART_TOP + HEIGHT + WEIR_CHART_UNDER + WEIR_CHART_LEGEND + 8, f.title);
    weir_chart_frame(&f);
    weir_chart_bars(&f, bins, edge, height, &style[0]);
    weir_chart_rule(&f, true, c->drift, &style[1]);
    weir_chart_legend(out, f.x, f.y + HEIGHT + WEIR_CHART_UNDER, f.width, style, 2);
    weir_svg_end(out);
}

static int draw_histogram(const weir_nb_report *v, const changes *c, FILE *out, weir_jsonw *numbers)
{
    const size_t bins = (size_t)v->bins;
    double *edge = malloc(sizeof *edge * (2 * bins + 1)), *height = edge + bins + 1;
    int64_t *count = calloc(bins, sizeof *count);
    const bool ok = edge && count;
    if (ok && count_changes(c, v->bins, edge, count)) {
        for (size_t b = 0; b < bins; b++)
            height[b] = (double)count[b];
        put_histogram(c, v->bins, out, edge, height);
        weir_nb_put_ints(numbers, "change_counts", count, v->bins);
        weir_nb_put_reals(numbers, "change_edges", edge, v->bins + 1);
    } else if (ok) {
        weir_nb_say(out, "some texts' perplexity is not finite: there is no distribution");
    }
    free(edge);
    free(count);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(v->nb);
}

/* What is no number comes last. */
static bool worse(double a, double b)
{
    return isnan(b) ? !isnan(a) : a > b;
}

/* The texts that the edit harms most, the worst first; of equal ones the earlier. */
static int put_worst(const weir_nb_report *v, const changes *c, FILE *out, weir_jsonw *numbers)
{
    static const char *const head[] = {"change, %", "perplexity before", "after", "text"};
    const int64_t most = v->worst < c->n ? v->worst : c->n;
    int64_t *worst = malloc(sizeof *worst * ((size_t)most + 1)), n = 0;
    weir_chart_table t;
    if (!worst)
        return weir_nb_no_memory(v->nb);
    for (int64_t i = 0; i < c->n; i++) {
        int64_t at = n;
        while (at > 0 && worse(c->percent[i], c->percent[worst[at - 1]]))
            at--;
        if (at == most)
            continue;
        n += n < most;
        memmove(worst + at + 1, worst + at, (size_t)(n - 1 - at) * sizeof *worst);
        worst[at] = i;
    }
    if (n)
        weir_chart_table_begin(&t, out, "texts that it harms most", head, 4);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = c->at[worst[i]];
        const weir_str begin = weir_array_text(&v->begin, at);
        weir_chart_table_real(&t, c->percent[worst[i]], 3, NULL);
        weir_chart_table_real(&t, exp(v->nll[at * WEIR_NB_SIDES + WEIR_NB_BEFORE]), 4, NULL);
        weir_chart_table_real(&t, exp(v->nll[at * WEIR_NB_SIDES + WEIR_NB_AFTER]), 4, NULL);
        weir_chart_table_text(&t, begin.p, begin.n);
    }
    if (n)
        weir_chart_table_end(&t);
    weir_nb_put_ints(numbers, "harmed", worst, n);
    free(worst);
    return WEIR_EXIT_OK;
}

static void put_sentence(const weir_nb_report *v, const changes *c, FILE *out)
{
    if (!c->n) {
        weir_nb_say(out, "no text was measured: weir rome verify --text FILE does");
        return;
    }
    weir_nb_say(out, "%.300s: perplexity %.4g before and %.4g after, %+.3g %%, over %.0f tokens of %lld texts",
                v->text_name, exp(c->mean[WEIR_NB_BEFORE]), exp(c->mean[WEIR_NB_AFTER]), c->drift, c->tokens,
                (long long)c->n);
    if (c->n == 1)
        weir_nb_say(out, "one text has no distribution: JSON as of weir rome verify --text, or the model's sentences, "
                         "have many");
}

int weir_nb_report_text(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_report *v = data;
    changes c;
    (void)nb;
    int code = take_changes(v, &c) ? WEIR_EXIT_OK : weir_nb_no_memory(v->nb);
    if (code == WEIR_EXIT_OK) {
        put_sentence(v, &c, out);
        weir_nb_put_reals(numbers, "changes", c.percent, c.n);
        weir_nb_put_real(numbers, "drift", c.drift);
    }
    if (code == WEIR_EXIT_OK && c.n > 1)
        code = draw_histogram(v, &c, out, numbers);
    if (code == WEIR_EXIT_OK)
        code = put_worst(v, &c, out, numbers);
    free(c.at);
    free(c.percent);
    return code;
}

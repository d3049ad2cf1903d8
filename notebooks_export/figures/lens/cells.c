/* One prediction by layer, the likeliest tokens of a position, and entropy and KL over all positions. */
#include <math.h>
#include <stdlib.h>

#include "figures/arrays.h"
#include "figures/bins.h"
#include "figures/pair.h"
#include "map.h"

/* --- one prediction */

/* The probability of a token at a line, where it is among the likeliest; else NaN. */
static double found(const weir_nb_map *m, int64_t line, int32_t id)
{
    for (int64_t j = 0; j < m->k; j++)
        if (m->top_id[(line * m->n + m->at) * m->k + j] == id)
            return exp((double)m->top_logprob[(line * m->n + m->at) * m->k + j]);
    return (double)NAN;
}

static bool follow(const weir_nb_map *m, int32_t asked, double *probability, double *rank)
{
    float *ranks = weir_nb_map_stat(m, "rank"), *probs = m->asked ? weir_nb_map_stat(m, "prob") : NULL;
    const bool ok = ranks && (probs || !m->asked);
    for (int64_t l = 0; ok && l < m->lines; l++) {
        const double at = (double)ranks[l * m->n + m->at];
        rank[l] = at >= 1 ? at : (double)NAN;
        probability[l] = m->asked ? (double)probs[l * m->n + m->at] : found(m, l, asked);
    }
    free(ranks);
    free(probs);
    return ok;
}

static char *title_of(const weir_nb_map *m, int32_t asked)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    const weir_str token = weir_nb_token(&m->vocab, asked), before = weir_nb_token(&m->vocab, m->id[m->at]);
    fputs("probability of '", f);
    token.n ? fwrite(token.p, 1, token.n, f) : (size_t)fprintf(f, "<#%d>", asked);
    fputs("' behind '", f);
    before.n ? fwrite(before.p, 1, before.n, f) : (size_t)fprintf(f, "<#%d>", m->id[m->at]);
    fputc('\'', f);
    return fclose(f) == 0 ? text : NULL;
}

static void put_prediction(const weir_nb_map *m, FILE *out, const weir_str *name, const char *title,
                           const double *probability, const double *rank)
{
    weir_chart p = weir_nb_pair_lines(out, 0, title, "probability", name, m->lines);
    weir_chart r = weir_nb_pair_lines(out, 1, "its rank, 1: the likeliest", "rank", name, m->lines);
    weir_chart_hold_one(&p.up, 0);
    weir_chart_hold_one(&p.up, 1);
    r.up.log = true;
    weir_chart_hold(&r.up, rank, m->lines);
    weir_chart_hold_one(&r.up, 1);
    weir_chart_hold_one(&r.up, 10);
    weir_nb_pair_open(out, "one prediction by layer", 0);
    weir_chart_frame(&p);
    weir_chart_line(&p, m->lines, NULL, probability, &(weir_chart_style){.dots = 3});
    weir_chart_frame(&r);
    weir_chart_line(&r, m->lines, NULL, rank, &(weir_chart_style){.colour = weir_chart_colour(1), .dots = 3});
    weir_svg_end(out);
}

int weir_nb_map_draw_target(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_map *m = data;
    const int64_t last = ((m->lines - 1) * m->n + m->at) * m->k;
    const int32_t asked = m->asked ? m->target[m->at] : m->top_id[last];
    double *value = malloc(2 * sizeof *value * (size_t)m->lines);
    weir_str *name = weir_nb_names(&m->line);
    char *title = title_of(m, asked);
    (void)nb;
    int code = value && name && title ? WEIR_EXIT_OK : weir_nb_no_memory(m->nb);
    if (code == WEIR_EXIT_OK && !follow(m, asked, value, value + m->lines))
        code = WEIR_EXIT_FAILED;
    if (code == WEIR_EXIT_OK) {
        if (asked < 0)
            weir_nb_say(out, "nothing is asked about at position %lld: choose another one", (long long)m->pos[m->at]);
        put_prediction(m, out, name, title, value, value + m->lines);
        weir_nb_put_real(numbers, "asked", asked);
        weir_nb_put_reals(numbers, "probability", value, m->lines);
        weir_nb_put_reals(numbers, "rank", value + m->lines, m->lines);
    }
    free(value);
    free(name);
    free(title);
    return code;
}

/* --- over all positions */

/* Percentiles 5, 50, 95 of each line: q [3, lines]. False: a failure that has been said. */
static bool quantiles(const weir_nb_map *m, const char *name, double *q)
{
    static const double share[3] = {0.05, 0.5, 0.95};
    float *stat = weir_nb_map_stat(m, name);
    double *x = malloc(sizeof *x * (size_t)m->n);
    bool others = false;
    for (int64_t i = 0; i < m->n; i++)
        others = others || m->pos[i] > 0;
    for (int64_t l = 0; stat && x && l < m->lines; l++) {
        int64_t n = 0;
        for (int64_t i = 0; i < m->n; i++)
            if ((m->pos[i] > 0 || !others) && isfinite(stat[l * m->n + i]))
                x[n++] = (double)stat[l * m->n + i];
        weir_nb_sort(x, n);
        for (int k = 0; k < 3; k++)
            q[k * m->lines + l] = weir_nb_quantile(x, n, share[k]);
    }
    if (stat && !x)
        weir_nb_no_memory(m->nb);
    const bool ok = stat && x;
    free(stat);
    free(x);
    return ok;
}

static void put_quantiles(const weir_nb_map *m, const char *name, const double *q, double *turned, weir_jsonw *numbers)
{
    for (int64_t l = 0; l < m->lines; l++)
        for (int k = 0; k < 3; k++)
            turned[3 * l + k] = q[k * m->lines + l];
    weir_nb_put_table(numbers, name, turned, m->lines, 3);
}

static void put_bands(const weir_nb_map *m, FILE *out, const weir_str *name, const double *entropy, const double *kl)
{
    static const char *const title[2] = {"entropy of the prediction", "KL(out || line)"};
    const double *const q[2] = {entropy, kl};
    const weir_chart_style style[2] = {{.name = "median", .colour = weir_chart_colour(1), .dots = 3},
                                       {.name = "5 % to 95 %", .colour = WEIR_CHART_WIDE_BAND, .area = true}};
    weir_nb_pair_open(out, "entropy and KL by layer", 1);
    for (int i = 0; i < 2; i++) {
        weir_chart c = weir_nb_pair_lines(out, i, title[i], "nats", name, m->lines);
        weir_chart_hold(&c.up, q[i], 3 * m->lines);
        weir_chart_hold_one(&c.up, 0);
        weir_chart_frame(&c);
        weir_chart_band(&c, m->lines, NULL, q[i], q[i] + 2 * m->lines, &style[1]);
        weir_chart_line(&c, m->lines, NULL, q[i] + m->lines, &style[0]);
    }
    weir_chart_legend(out, WEIR_CHART_LEFT, WEIR_NB_PAIR_LEGEND, WEIR_NB_PAIR_WIDTH, style, 2);
    weir_svg_end(out);
}

int weir_nb_map_draw_layers(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_map *m = data;
    double *q = malloc(9 * sizeof *q * (size_t)m->lines);
    weir_str *name = weir_nb_names(&m->line);
    (void)nb;
    int code = q && name ? WEIR_EXIT_OK : weir_nb_no_memory(m->nb);
    if (code == WEIR_EXIT_OK && !(quantiles(m, "entropy", q) && quantiles(m, "kl", q + 3 * m->lines)))
        code = WEIR_EXIT_FAILED;
    if (code == WEIR_EXIT_OK) {
        put_bands(m, out, name, q, q + 3 * m->lines);
        put_quantiles(m, "entropy_quantiles", q, q + 6 * m->lines, numbers);
        put_quantiles(m, "kl_quantiles", q + 3 * m->lines, q + 6 * m->lines, numbers);
    }
    free(q);
    free(name);
    return code;
}

/* --- the likeliest tokens of a position */

static void put_rows(const weir_nb_map *m, weir_chart_table *t, double *id, double *p)
{
    const weir_chart_scale heat = {.most = 1};
    for (int64_t l = 0; l < m->lines; l++) {
        const weir_str name = weir_array_text(&m->line, l);
        weir_chart_table_text(t, name.p, name.n);
        for (int64_t j = 0; j < m->top; j++) {
            const int64_t from = (l * m->n + m->at) * m->k + j, to = l * m->top + j;
            id[to] = m->top_id[from];
            p[to] = exp((double)m->top_logprob[from]);
            weir_chart_table_token(t, weir_nb_token(&m->vocab, m->top_id[from]), m->top_id[from]);
            weir_chart_table_real(t, p[to], 3, &heat);
        }
    }
}

int weir_nb_map_draw_top(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_map *m = data;
    const size_t cells = (size_t)(m->lines * m->top);
    const char **head = malloc(sizeof *head * (size_t)(1 + 2 * m->top));
    double *value = malloc(2 * sizeof *value * cells);
    (void)nb;
    if (head && value) {
        weir_chart_table t;
        head[0] = "line";
        for (int64_t j = 0; j < m->top; j++) {
            head[1 + 2 * j] = j ? "" : "likeliest";
            head[2 + 2 * j] = "p";
        }
        weir_chart_table_begin(&t, out, NULL, head, (int)(1 + 2 * m->top));
        put_rows(m, &t, value, value + cells);
        weir_chart_table_end(&t);
        weir_nb_put_table(numbers, "top_ids", value, m->lines, m->top);
        weir_nb_put_table(numbers, "top_probabilities", value + cells, m->lines, m->top);
    }
    const bool ok = head && value;
    free(head);
    free(value);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(m->nb);
}

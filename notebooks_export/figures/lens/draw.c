/* The map: likeliest tokens over colours; and which token each position settles on, and where. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures/arrays.h"
#include "lens/ramp.h"
#include "map.h"
#include "page/chart.h"

enum {
    CELL_W = 62,
    CELL_H = 21,
    LETTERS = 8, /* columns of text in a cell */
    HEAD = 40,   /* positions and tokens above the cells */
    TOP = 34,
    WIDTH = 1040
};

static void put_token(const weir_nb_map *m, FILE *out, int32_t id, int columns)
{
    weir_svg_token_bytes(out, weir_nb_token(&m->vocab, id), id, columns, columns > 0);
}

static int32_t likeliest(const weir_nb_map *m, int64_t line, int64_t i)
{
    return m->top_id[(line * m->n + i) * m->k];
}

static double logprob(const weir_nb_map *m, int64_t line, int64_t i)
{
    return (double)m->top_logprob[(line * m->n + i) * m->k];
}

/* --- the map */

/* The colours of the part that is shown, as in logit-lens' own picture. */
static weir_lens_ramp ramp_of(const weir_nb_map *m, const float *stat, float *scratch)
{
    bool others = false;
    int64_t n = 0;
    for (int64_t i = m->first; i < m->until; i++)
        others = others || m->pos[i] > 0;
    for (int64_t l = 0; l < m->lines; l++)
        for (int64_t i = m->first; i < m->until; i++)
            if (m->pos[i] > 0 || !others)
                scratch[n++] = stat[l * m->n + i];
    return weir_lens_ramp_of(m->stat, scratch, n);
}

static void put_cell(const weir_nb_map *m, FILE *out, int64_t l, int64_t i, double value, double strength, double x,
                     double y)
{
    const int32_t top = likeliest(m, l, i);
    const weir_str line = weir_array_text(&m->line, l);
    const bool follows = top >= 0 && top == m->next[i];
    fputs("<g><title>", out);
    weir_svg_text(out, line.p, line.n, 0, false);
    fprintf(out, ", position %lld '", (long long)m->pos[i]);
    put_token(m, out, m->id[i], 0);
    fputs("': '", out);
    put_token(m, out, top, 0);
    fprintf(out, "' %.3g%s; %s ", exp(logprob(m, l, i)), follows ? ", comes next" : "", weir_lens_stat_name[m->stat]);
    weir_chart_number(out, value);
    fprintf(out, "</title><rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" fill=\"%s\"/>", x, y, CELL_W - 1,
            CELL_H - 1, weir_svg_heat(strength).text);
    fprintf(out, "<text x=\"%g\" y=\"%g\">%s", x + 3, y + 14, follows ? "*" : "");
    put_token(m, out, top, follows ? LETTERS - 1 : LETTERS);
    fputs("</text></g>\n", out);
}

static double left_of(const weir_nb_map *m)
{
    size_t longest = 4;
    for (int64_t l = 0; l < m->lines; l++)
        longest = weir_array_text(&m->line, l).n > longest ? weir_array_text(&m->line, l).n : longest;
    return 10 + 7 * (double)(longest < 20 ? longest : 20);
}

static void put_cells(const weir_nb_map *m, FILE *out, const float *stat, const weir_lens_ramp *ramp)
{
    const double left = left_of(m);
    fputs("<g font-family=\"monospace\" font-size=\"11\">\n", out);
    for (int64_t i = m->first; i < m->until; i++) {
        const double x = left + (double)(i - m->first) * CELL_W + 3;
        fprintf(out, "<text x=\"%g\" y=\"%d\" font-size=\"10\" fill=\"" WEIR_CHART_SOFT "\">%lld</text>", x, TOP + 14,
                (long long)m->pos[i]);
        fprintf(out, "<text x=\"%g\" y=\"%d\" font-weight=\"bold\">", x, TOP + 30);
        put_token(m, out, m->id[i], LETTERS);
        fputs("</text>\n", out);
    }
    for (int64_t l = 0; l < m->lines; l++) {
        const weir_str name = weir_array_text(&m->line, l);
        const double y = TOP + HEAD + (double)l * CELL_H;
        fprintf(out, "<text x=\"0\" y=\"%g\">", y + 14);
        weir_svg_text(out, name.p, name.n, 20, false);
        fputs("</text>\n", out);
        for (int64_t i = m->first; i < m->until; i++) {
            const double v = (double)stat[l * m->n + i];
            put_cell(m, out, l, i, v, weir_lens_ramp_at(ramp, v), left + (double)(i - m->first) * CELL_W, y);
        }
    }
    fputs("</g>\n", out);
}

static int put_map_numbers(const weir_nb_map *m, const float *stat, weir_jsonw *numbers)
{
    const int64_t shown = m->until - m->first;
    double *value = malloc(sizeof *value * (size_t)(m->lines * shown));
    double *top = malloc(sizeof *top * (size_t)(m->lines * shown));
    for (int64_t l = 0; value && top && l < m->lines; l++)
        for (int64_t i = 0; i < shown; i++) {
            value[l * shown + i] = (double)stat[l * m->n + m->first + i];
            top[l * shown + i] = likeliest(m, l, m->first + i);
        }
    const bool ok = value && top;
    if (ok) {
        weir_nb_put_table(numbers, "values", value, m->lines, shown);
        weir_nb_put_table(numbers, "likeliest", top, m->lines, shown);
    }
    free(value);
    free(top);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(m->nb);
}

int weir_nb_map_draw_map(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_map *m = data;
    const int64_t shown = m->until - m->first;
    float *stat = weir_nb_map_stat(m, weir_lens_stat_name[m->stat]);
    float *scratch = malloc(sizeof *scratch * (size_t)(m->lines * shown));
    (void)nb;
    int code = !stat ? WEIR_EXIT_FAILED : scratch ? WEIR_EXIT_OK : weir_nb_no_memory(m->nb);
    if (code == WEIR_EXIT_OK) {
        const weir_lens_ramp ramp = ramp_of(m, stat, scratch);
        const double wide = left_of(m) + (double)shown * CELL_W;
        weir_chart_open(out, wide < 560 ? 560 : wide, TOP + HEAD + (double)m->lines * CELL_H + 6, "layer by position");
        fprintf(out, "<text x=\"0\" y=\"16\" font-weight=\"bold\">%s</text>", weir_lens_stat_long(m->stat));
        fprintf(out,
                "<text x=\"0\" y=\"32\" fill=\"" WEIR_CHART_SOFT
                "\">colours from %.3g to %.3g; *: the token that does come "
                "next</text>\n",
                ramp.low, ramp.high);
        put_cells(m, out, stat, &ramp);
        weir_svg_end(out);
        code = put_map_numbers(m, stat, numbers);
    }
    free(stat);
    free(scratch);
    return code;
}

/* --- where positions settle */

static bool same(weir_str a, weir_str b)
{
    return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* The first line whose site is that of the stream: its site is compared; the last line belongs to every site. */
static int64_t stream_of(const weir_nb_map *m)
{
    static const char *const site[] = {"resid_post", "resid_mid", "resid_pre"};
    for (size_t s = 0; s < sizeof site / sizeof *site; s++)
        for (int64_t l = 0; l < m->lines - 1; l++)
            if (same(weir_array_text(&m->site, l), (weir_str){site[s], strlen(site[s])}))
                return l;
    return 0;
}

/* The layer from which on the likeliest token of position i stays; NaN: there is no likeliest token in the end. */
static double settled_at(const weir_nb_map *m, int64_t stream, int64_t i)
{
    const weir_str site = weir_array_text(&m->site, stream);
    const int32_t best = likeliest(m, m->lines - 1, i);
    int32_t layer = m->layer[m->lines - 1];
    for (int64_t l = m->lines - 2; l >= 0; l--) {
        if (!same(weir_array_text(&m->site, l), site))
            continue;
        if (likeliest(m, l, i) != best)
            break;
        layer = m->layer[l];
    }
    return best >= 0 ? (double)layer : (double)NAN;
}

static int32_t deepest(const weir_nb_map *m, int64_t stream)
{
    const weir_str site = weir_array_text(&m->site, stream);
    int32_t most = m->layer[m->lines - 1];
    for (int64_t l = 0; l < m->lines - 1; l++)
        if (same(weir_array_text(&m->site, l), site) && m->layer[l] > most)
            most = m->layer[l];
    return most > 1 ? most : 1;
}

static void put_strip(const weir_nb_map *m, FILE *out, const weir_str *token, const double *settled, int64_t n)
{
    const weir_chart_scale scale = {.most = deepest(m, stream_of(m))};
    const weir_chart_strip strip = {.out = out,
                                    .width = WIDTH,
                                    .n = n,
                                    .token = token,
                                    .id = m->id + m->begin,
                                    .value = settled,
                                    .scale = &scale,
                                    .label = "layer"};
    weir_chart_open(out, WIDTH, weir_chart_strip_height(&strip), "where each position settles");
    weir_chart_strip_draw(&strip);
    weir_svg_end(out);
}

int weir_nb_map_draw_settles(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_map *m = data;
    const int64_t all = m->end - m->begin, n = all < m->most ? all : m->most, stream = stream_of(m);
    weir_str *token = malloc(sizeof *token * (size_t)n);
    double *settled = malloc(sizeof *settled * (size_t)n), sum = 0;
    int64_t known = 0;
    (void)nb;
    for (int64_t i = 0; token && settled && i < n; i++) {
        token[i] = weir_nb_token(&m->vocab, m->id[m->begin + i]);
        settled[i] = settled_at(m, stream, m->begin + i);
        if (!isnan(settled[i])) {
            sum += settled[i];
            known++;
        }
    }
    const bool ok = token && settled;
    if (ok) {
        put_strip(m, out, token, settled, n);
        weir_nb_put_reals(numbers, "settled", settled, n);
        weir_nb_put_real(numbers, "settled_mean", known ? sum / (double)known : (double)NAN);
    }
    free(token);
    free(settled);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(m->nb);
}

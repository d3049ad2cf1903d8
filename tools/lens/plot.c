/* Lines of rank, entropy and KL by layer, as a picture: for each document and site a row of panels with a line for each
 * position, up to twelve of which have a colour and a name, and the median of all of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "held.h"
#include "page/svg.h"

enum {
    PANEL_W = 300,
    PANEL_H = 220,
    LEFT = 52,  /* numbers of the axis */
    UNDER = 40, /* names of the rows */
    HEADING = 58,
    LEGEND = 170,
    MARGIN = 12,
    TOP = 50,
    NAMED = 12
};

static const char *const colours[NAMED] = {"#1f77b4", "#d95f02", "#1b9e77", "#e7298a", "#7570b3", "#a6761d",
                                           "#c98a00", "#5a8f1a", "#0f8fa0", "#8c2d04", "#4d4dff", "#c51b7d"};

/* Rows of one site, and the final row: what a panel has from left to right. */
typedef struct rows {
    int *line; /* [n] */
    int n;
    const char *site;
} rows;

typedef struct panel {
    const weir_lens_held *h;
    const rows *r;
    weir_lens_held_doc d;
    int s; /* statistic */
    double x, y;
    double low, high; /* of the axis; of a rank: logarithms to base 10 */
    bool log;
} panel;

/* --- the axes */

static double place(const panel *p, float value)
{
    bool none = !isfinite(value) || (p->log && value < 1);
    double v = none ? (double)NAN : p->log ? log10((double)value) : (double)value;
    return p->y + PANEL_H * (1 - (v - p->low) / (p->high - p->low));
}

static double across(const panel *p, int i)
{
    return p->x + (p->r->n > 1 ? (double)PANEL_W * i / (p->r->n - 1) : PANEL_W / 2.0);
}

/* Of all positions but 0, whose values may be far from all others, where the document has others. */
static void find_range(panel *p)
{
    bool others = p->h->pos[p->d.end - 1] != 0;
    double most = 0;
    for (int64_t i = p->d.first; i < p->d.end; i++)
        for (int k = 0; (p->h->pos[i] != 0 || !others) && k < p->r->n; k++) {
            double v = (double)weir_lens_held_value(p->h, p->s, i, p->r->line[k]);
            most = isfinite(v) && v > most ? v : most;
        }
    p->low = 0;
    p->high = p->log ? fmax(1, log10(fmax(1, most))) : most > 0 ? most : 1;
}

/* A step of 1, 2 or 5 times a power of ten: about five to the axis; a rank's axis: whole powers. */
static double step_of(const panel *p)
{
    double raw = (p->high - p->low) / 5, power = pow(10, floor(log10(raw))), share = raw / power;
    return p->log ? fmax(1, round(raw)) : power * (share > 5 ? 10 : share > 2 ? 5 : share > 1 ? 2 : 1);
}

static void put_axes(const panel *p)
{
    FILE *out = p->h->sink.out;
    double step = step_of(p);
    for (int i = 0; i * step <= p->high * 1.0001; i++) {
        double y = p->y + PANEL_H * (1 - i * step / p->high);
        fprintf(out,
                "<path d=\"M%g %gh%d\" stroke=\"#d5d9e0\"/><text x=\"%g\" y=\"%g\" text-anchor=\"end\">%g</text>\n",
                p->x, y, PANEL_W, p->x - 6, y + 4, p->log ? pow(10, i * step) : i * step);
    }
    size_t longest = 1;
    for (int k = 0; k < p->r->n; k++) {
        size_t n = strlen(p->h->about->line[p->r->line[k]].name);
        longest = n > longest ? n : longest;
    }
    int room = PANEL_W / (8 * ((int)longest + 1)), every = (p->r->n + room - 1) / (room > 0 ? room : 1);
    every = every > 0 ? every : 1;
    for (int k = 0; k < p->r->n; k++)
        if (k % every == 0 && (k == p->r->n - 1 || k + every < p->r->n + every / 2)) {
            const char *name = p->h->about->line[p->r->line[k]].name;
            fprintf(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">", across(p, k), p->y + PANEL_H + 16);
            weir_svg_text(out, name, strlen(name), 0, false);
            fputs("</text>\n", out);
        }
}

/* --- lines */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float median_at(const panel *p, int line, float *scratch)
{
    size_t n = 0;
    for (int64_t i = p->d.first; i < p->d.end; i++) {
        float v = weir_lens_held_value(p->h, p->s, i, line);
        if (isfinite(v) && !(p->log && v < 1))
            scratch[n++] = v;
    }
    qsort(scratch, n, sizeof *scratch, by_value);
    return n == 0 ? NAN : n % 2 ? scratch[n / 2] : (scratch[n / 2 - 1] + scratch[n / 2]) / 2;
}

/* y [n] of the row's places; what is NaN breaks the line. */
static void put_line(const panel *p, const double *y, const char *style)
{
    FILE *out = p->h->sink.out;
    bool drawn = false;
    fprintf(out, "<path fill=\"none\" %s d=\"", style);
    for (int k = 0; k < p->r->n; k++) {
        if (isfinite(y[k]))
            fprintf(out, "%c%.1f %.1f", drawn ? 'L' : 'M', across(p, k), y[k]);
        drawn = isfinite(y[k]);
    }
    fputs("\"/>\n", out);
}

/* The j-th of the named positions: all, or such as lie evenly, the last one among them. */
static int64_t named_at(weir_lens_held_doc d, int j)
{
    int64_t n = d.end - d.first;
    return d.first + (n <= NAMED ? j : (j + 1) * n / NAMED - 1);
}

static int n_named(weir_lens_held_doc d)
{
    return d.end - d.first < NAMED ? (int)(d.end - d.first) : NAMED;
}

static void put_position(const panel *p, int64_t i, const char *style, double *y)
{
    FILE *out = p->h->sink.out;
    for (int k = 0; k < p->r->n; k++)
        y[k] = place(p, weir_lens_held_value(p->h, p->s, i, p->r->line[k]));
    fprintf(out, "<g><title>position %lld '", (long long)p->h->pos[i]);
    weir_svg_token(out, p->h->sink.tok, p->h->id[i], 0, false);
    fputs("'</title>", out);
    put_line(p, y, style);
    fputs("</g>", out);
}

static void put_lines(const panel *p, float *scratch, double *y)
{
    int named = n_named(p->d);
    for (int64_t i = p->d.first, j = 0; i < p->d.end; i++)
        if (j < named && named_at(p->d, (int)j) == i)
            j++;
        else
            put_position(p, i, "stroke=\"#b4bac4\" stroke-width=\"0.8\"", y);
    for (int j = 0; j < named; j++) {
        char style[64];
        snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"1.5\"", colours[j]);
        put_position(p, named_at(p->d, j), style, y);
    }
    for (int k = 0; k < p->r->n; k++)
        y[k] = place(p, median_at(p, p->r->line[k], scratch));
    put_line(p, y, "stroke=\"#1b1f27\" stroke-width=\"3\"");
}

static void put_panel(panel *p, int number, float *scratch, double *y)
{
    static const char *const title[WEIR_STAT_COUNT] = {[WEIR_STAT_RANK] = "rank (1: likeliest)",
                                                       [WEIR_STAT_ENTROPY] = "entropy, nats",
                                                       [WEIR_STAT_KL] = "KL(final || row), nats"};
    FILE *out = p->h->sink.out;
    weir_lens_stat stat = p->h->stat[p->s];
    p->log = stat == WEIR_STAT_RANK;
    find_range(p);
    fprintf(out, "<g font-size=\"11\"><text x=\"%g\" y=\"%g\" font-weight=\"bold\">%s</text>\n", p->x, p->y - 10,
            title[stat]);
    put_axes(p);
    fprintf(out, "<clipPath id=\"p%d\"><rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\"/></clipPath>\n", number,
            p->x - 2, p->y - 2, PANEL_W + 4, PANEL_H + 4);
    fprintf(out, "<g clip-path=\"url(#p%d)\">\n", number);
    put_lines(p, scratch, y);
    fputs("</g></g>\n", out);
}

/* --- rows of panels */

static void put_legend(const weir_lens_held *h, weir_lens_held_doc d, double x, double y)
{
    FILE *out = h->sink.out;
    int named = n_named(d);
    for (int j = -1; j < named; j++, y += 18) {
        fprintf(out,
                "<path d=\"M%g %gh20\" stroke=\"%s\" stroke-width=\"%d\"/><text x=\"%g\" y=\"%g\" font-size=\"11\" "
                "font-family=\"monospace\">",
                x, y - 4, j < 0 ? "#1b1f27" : colours[j], j < 0 ? 3 : 2, x + 27, y);
        if (j < 0) {
            fputs("median", out);
        } else {
            int64_t i = named_at(d, j);
            fprintf(out, "%lld ", (long long)h->pos[i]);
            weir_svg_token(out, h->sink.tok, h->id[i], 14, true);
        }
        fputs("</text>\n", out);
    }
    const int64_t rest = d.end - d.first - named;
    if (rest)
        fprintf(
            out,
            "<path d=\"M%g %gh20\" stroke=\"#b4bac4\"/><text x=\"%g\" y=\"%g\" font-size=\"11\">%lld other%s</text>\n",
            x, y - 4, x + 27, y, (long long)rest, rest > 1 ? "s" : "");
}

static int row_height(void)
{
    return HEADING + PANEL_H + UNDER;
}

/* Sites in the order in which they come; the final row belongs to each. */
static rows *rows_of(const weir_lens_about *a, int *n_rows)
{
    int last = a->n_lines - 1;
    rows *r = calloc((size_t)a->n_lines, sizeof *r);
    int *line = calloc((size_t)a->n_lines * (size_t)a->n_lines, sizeof *line), n = 0;
    if (!r || !line) {
        free(r);
        free(line);
        return NULL;
    }
    for (int l = 0; l < last || n == 0; l++) {
        int at = 0;
        while (at < n && (l == last || strcmp(r[at].site, a->line[l].site) != 0))
            at++;
        if (at == n)
            r[n++] = (rows){.line = line + (size_t)at * (size_t)a->n_lines, .site = a->line[l].site};
        if (l < last)
            r[at].line[r[at].n++] = l;
    }
    for (int at = 0; at < n; at++)
        r[at].line[r[at].n++] = last;
    *n_rows = n;
    return r;
}

static void put_row(const weir_lens_held *h, const rows *r, weir_lens_held_doc d, double y, int number, float *scratch,
                    double *places)
{
    FILE *out = h->sink.out;
    fprintf(out, "<text x=\"%d\" y=\"%g\" font-weight=\"bold\">document %lld, ", MARGIN, y + 18,
            (long long)h->doc[d.first]);
    weir_svg_text(out, r->site, strlen(r->site), 0, false);
    fputs("</text>\n", out);
    double x = MARGIN;
    for (int s = 0; s < h->n_stats; s++, x += PANEL_W + LEFT + MARGIN) {
        panel p = {.h = h, .r = r, .d = d, .s = s, .x = x + LEFT, .y = y + HEADING};
        put_panel(&p, number + s, scratch, places);
    }
    put_legend(h, d, x + 8, y + HEADING + 4);
}

static void put_picture(const weir_lens_held *h, const rows *r, int n_rows, float *scratch, double *places)
{
    const weir_lens_about *a = h->about;
    FILE *out = h->sink.out;
    int n = 0, number = 0;
    for (weir_lens_held_doc d = weir_lens_held_doc_at(h, 0); d.end > d.first; d = weir_lens_held_doc_at(h, d.end))
        n += n_rows;
    weir_svg_begin(out, 2 * MARGIN + h->n_stats * (PANEL_W + LEFT + MARGIN) + LEGEND, TOP + n * row_height() + MARGIN,
                   "weir logit-lens", a->lens);
    weir_lens_held_title(h, MARGIN);
    double y = TOP;
    for (weir_lens_held_doc d = weir_lens_held_doc_at(h, 0); d.end > d.first; d = weir_lens_held_doc_at(h, d.end))
        for (int at = 0; at < n_rows; at++, y += row_height(), number += h->n_stats)
            put_row(h, &r[at], d, y, number, scratch, places);
    weir_svg_end(out);
}

/* --- the sink */

static weir_status begin(weir_lens_sink *sink, const weir_lens_about *a, weir_err *err)
{
    static const weir_lens_stat drawn[WEIR_LENS_HELD_STATS] = {WEIR_STAT_RANK, WEIR_STAT_ENTROPY, WEIR_STAT_KL};
    weir_lens_held *h = (weir_lens_held *)sink;
    h->about = a;
    for (int i = 0; i < WEIR_LENS_HELD_STATS; i++)
        if (a->has & 1u << drawn[i])
            h->stat[h->n_stats++] = drawn[i];
    return h->n_stats ? WEIR_OK : weir_fail(err, WEIR_E_ARG, "a plot needs rank, entropy or kl");
}

static weir_status end(weir_lens_sink *sink, weir_err *err)
{
    weir_lens_held *h = (weir_lens_held *)sink;
    int n_rows = 0;
    rows *r = rows_of(h->about, &n_rows);
    float *scratch = malloc(sizeof *scratch * (size_t)(h->n + 1));
    double *places = malloc(sizeof *places * (size_t)h->about->n_lines);
    bool ok = r && scratch && places;
    if (ok)
        put_picture(h, r, n_rows, scratch, places);
    if (r)
        free(r[0].line);
    free(r);
    free(scratch);
    free(places);
    return ok ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory for a picture");
}

weir_lens_sink *weir_lens_plot_new(FILE *out, const weir_tokenizer *tok)
{
    return weir_lens_held_new(out, tok, begin, end);
}

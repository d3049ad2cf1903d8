/* The picture of logit-lens --corpus: for each site, by line: cross-entropy and KL, their means and the bands between
 * their quantiles; and the shares of likeliest tokens that are right, that are the final ones, and that stay. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "corpus.h"
#include "page/svg.h"

enum {
    PANEL_W = 300,
    PANEL_H = 220,
    LEFT = 52,
    MARGIN = 12,
    TOP = 64,
    HEADING = 44,
    UNDER = 34,
    LEGEND = 20,
    PANELS = 3
};

/* What is drawn of a line. */
enum { MEAN, QUANTILE, RIGHT = QUANTILE + WEIR_SURVEY_QUANTILES, AGREES, STAYS };
enum { Q05 = QUANTILE, Q25, Q50, Q75, Q95 };

typedef struct panel {
    FILE *out;
    const weir_survey *s;
    int site, number;
    const int *line; /* [n] those of the site, and the final row */
    int n;
    double x, y, high;
} panel;

/* --- numbers */

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : (double)NAN;
}

/* Of the k-th line of the panel. */
static double number(const panel *p, int what, int k)
{
    const weir_survey_counts n = weir_survey_counts_of(p->s);
    if (what == RIGHT)
        return share(weir_survey_right(p->s, p->line[k]), n.seen - n.without_next);
    if (what == AGREES)
        return share(weir_survey_agree(p->s, p->line[k]), n.seen);
    if (what == STAYS) {
        int64_t sum = 0;
        for (int i = 0; i <= k; i++)
            sum += weir_survey_settled(p->s, p->site, p->line[i]);
        return share(sum, n.seen);
    }
    const weir_survey_stat at = weir_survey_stat_of(p->s, p->line[k], (weir_survey_value)p->number);
    return what == MEAN ? at.mean : at.quantile[what - QUANTILE];
}

/* The stream before the first block is often far from all others: it does not count where there are others. */
static void find_range(panel *p)
{
    p->high = p->number < WEIR_SURVEY_VALUES ? 0 : 1;
    for (int k = 0; k < p->n && p->number < WEIR_SURVEY_VALUES; k++)
        if (weir_survey_line_at(p->s, p->line[k])->layer >= 0) {
            p->high = fmax(p->high, number(p, Q95, k));
            p->high = fmax(p->high, number(p, MEAN, k));
        }
    if (!(p->high > 0))
        p->high = 1;
}

/* --- drawing */

static double across(const panel *p, int k)
{
    return p->x + (p->n > 1 ? (double)PANEL_W * k / (p->n - 1) : PANEL_W / 2.0);
}

static double up(const panel *p, double v)
{
    return p->y + PANEL_H * (1 - v / p->high);
}

/* A step of 1, 2 or 5 times a power of ten: about five to the axis. */
static void put_scale(const panel *p)
{
    double raw = p->high / 5, power = pow(10, floor(log10(raw))), part = raw / power;
    double step = power * (part > 5 ? 10 : part > 2 ? 5 : part > 1 ? 2 : 1);
    for (int i = 0; i * step <= p->high * 1.0001; i++)
        fprintf(p->out,
                "<path d=\"M%g %gh%d\" stroke=\"#d5d9e0\"/><text x=\"%g\" y=\"%g\" text-anchor=\"end\">%g</text>\n",
                p->x, up(p, i * step), PANEL_W, p->x - 6, up(p, i * step) + 4, i * step);
}

/* Names of lines, as many as there is room for. */
static void put_names(const panel *p)
{
    const int room = PANEL_W / 48, every = (p->n + room - 1) / room;
    for (int k = 0; k < p->n; k++) {
        const char *name = weir_survey_line_at(p->s, p->line[k])->name;
        if (k != p->n - 1 && (k % every != 0 || k + every > p->n))
            continue;
        fprintf(p->out, "<text x=\"%g\" y=\"%d\" text-anchor=\"middle\">", across(p, k), (int)p->y + PANEL_H + 16);
        weir_svg_text(p->out, name, strlen(name), 0, false);
        fputs("</text>\n", p->out);
    }
}

static void put_line(const panel *p, int what, const char *style)
{
    bool drawn = false;
    fprintf(p->out, "<path fill=\"none\" %s d=\"", style);
    for (int k = 0; k < p->n; k++) {
        const double v = number(p, what, k);
        if (isfinite(v))
            fprintf(p->out, "%c%.1f %.1f", drawn ? 'L' : 'M', across(p, k), up(p, v));
        drawn = isfinite(v);
    }
    fputs("\"/>\n", p->out);
}

static void put_band(const panel *p, int low, int high, const char *colour)
{
    char command = 'M';
    fprintf(p->out, "<path fill=\"%s\" d=\"", colour);
    for (int i = 0; i < 2 * p->n; i++) {
        const int k = i < p->n ? i : 2 * p->n - 1 - i;
        const double v = number(p, i < p->n ? high : low, k);
        if (!isfinite(v))
            continue;
        fprintf(p->out, "%c%.1f %.1f", command, across(p, k), up(p, v));
        command = 'L';
    }
    fputs(command == 'M' ? "M0 0Z\"/>\n" : "Z\"/>\n", p->out);
}

/* --- panels */

static const struct {
    int what;
    const char *name, *style;
} drawn[] = {{MEAN, "mean", "stroke=\"#1b1f27\" stroke-width=\"2.5\""},
             {Q50, "median", "stroke=\"#1f77b4\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\""}},
  shares[] = {{AGREES, "the final one", "stroke=\"#1f77b4\" stroke-width=\"2\""},
              {STAYS, "and it stays", "stroke=\"#d95f02\" stroke-width=\"2\""},
              {RIGHT, "the right one", "stroke=\"#1b9e77\" stroke-width=\"2\""}};

static void put_key(const panel *p, int at, const char *style, const char *name)
{
    const double x = p->x + at * 100, y = p->y + PANEL_H + UNDER;
    fprintf(p->out, "<path d=\"M%g %gh18\" fill=\"none\" %s/><text x=\"%g\" y=\"%g\">%s</text>\n", x, y - 4, style,
            x + 22, y, name);
}

static void put_values(const panel *p)
{
    put_band(p, Q05, Q95, "#dbe9f6");
    put_band(p, Q25, Q75, "#a9cbe8");
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
        put_line(p, drawn[i].what, drawn[i].style);
}

static void put_keys(const panel *p)
{
    if (p->number < WEIR_SURVEY_VALUES) {
        for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
            put_key(p, (int)i, drawn[i].style, drawn[i].name);
        put_key(p, 2, "stroke=\"#a9cbe8\" stroke-width=\"9\"", "25-75, 5-95 %");
        return;
    }
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        put_key(p, (int)i, shares[i].style, shares[i].name);
}

static void put_panel(panel *p, int id)
{
    static const char *const title[PANELS] = {"cross-entropy of the next token, nats", "KL(final || line), nats",
                                              "likeliest token: share that is ..."};
    find_range(p);
    fprintf(p->out, "<g font-size=\"11\"><text x=\"%g\" y=\"%g\" font-weight=\"bold\">%s</text>\n", p->x, p->y - 10,
            title[p->number]);
    put_scale(p);
    put_names(p);
    fprintf(p->out, "<clipPath id=\"p%d\"><rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\"/></clipPath>\n", id,
            p->x - 2, p->y - 2, PANEL_W + 4, PANEL_H + 4);
    fprintf(p->out, "<g clip-path=\"url(#p%d)\">\n", id);
    if (p->number < WEIR_SURVEY_VALUES)
        put_values(p);
    else
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
            put_line(p, shares[i].what, shares[i].style);
    fputs("</g>\n", p->out);
    put_keys(p);
    fputs("</g>\n", p->out);
}

static void put_title(FILE *out, const weir_survey *s)
{
    const weir_survey_about *a = weir_survey_about_of(s);
    char input[400];
    weir_lens_corpus_input(input, sizeof input, s);
    fprintf(out, "<text x=\"%d\" y=\"24\" font-size=\"15\" font-weight=\"bold\">", MARGIN);
    weir_svg_text(out, a->lens, strlen(a->lens), 60, false);
    fputs(" of ", out);
    weir_svg_text(out, a->model, strlen(a->model), 60, false);
    fprintf(out, "</text>\n<text x=\"%d\" y=\"42\" fill=\"#545c6b\">", MARGIN);
    weir_svg_text(out, input, strlen(input), 80, false);
    fprintf(out, ", %lld positions", (long long)weir_survey_counts_of(s).seen);
    if (a->shards)
        fprintf(out, ", shard %lld/%lld", (long long)a->shard, (long long)a->shards);
    fputs("</text>\n", out);
}

static void put_site(FILE *out, const weir_survey *s, int site, int *line, double y)
{
    const char *name = weir_survey_site(s, site);
    int n = 0;
    for (int l = 0; l < weir_survey_n_lines(s); l++)
        if (weir_survey_site_of(s, l) == site || weir_survey_site_of(s, l) < 0)
            line[n++] = l;
    fprintf(out, "<text x=\"%d\" y=\"%g\" font-weight=\"bold\">", MARGIN, y + 14);
    weir_svg_text(out, name, strlen(name), 0, false);
    fputs("</text>\n", out);
    for (int i = 0; i < PANELS; i++) {
        panel p = {out, s, site, i, line, n, MARGIN + LEFT + i * (PANEL_W + LEFT + MARGIN), y + HEADING, 0};
        put_panel(&p, site * PANELS + i);
    }
}

bool weir_lens_corpus_plot(FILE *out, const weir_survey *s)
{
    const int height = HEADING + PANEL_H + UNDER + LEGEND;
    int *line = malloc(sizeof *line * (size_t)weir_survey_n_lines(s));
    if (!line)
        return false;
    weir_svg_begin(out, MARGIN + PANELS * (PANEL_W + LEFT + MARGIN), TOP + weir_survey_n_sites(s) * height,
                   "weir logit-lens", "statistics of a text by layer");
    put_title(out, s);
    for (int i = 0; i < weir_survey_n_sites(s); i++)
        put_site(out, s, i, line, TOP + i * height);
    weir_svg_end(out);
    free(line);
    return true;
}

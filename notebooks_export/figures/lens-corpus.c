/* lens-corpus: what a lens says of a whole text (weir-lens), line by line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "figures/bins.h"
#include "page/chart.h"

typedef struct corpus {
    weir_survey *s;
    weir_survey_counts counts;
    int *line; /* [n] lines that are drawn: those of the site, and the final row */
    weir_str *name;
    double *value; /* [VALUES][n] what a figure draws */
    int n, site;   /* site -1: the file has the final row alone */
    int chosen;    /* the line of the histogram */
    weir_survey_value shown;
    int64_t bars;
} corpus;

enum { MEAN, QUANTILE, VALUES = QUANTILE + WEIR_SURVEY_QUANTILES };
/* By weir_survey_value. */
static const char *const value_title[] = {"cross-entropy of the next token", "KL(final || line)"};

/* --- parameters */

static int choose_site(const weir_nb *nb, corpus *c)
{
    const char *name;
    bool there;
    const int code = weir_nb_text(nb, "site", &name, &there);
    const int sites = weir_survey_n_sites(c->s);
    if (code != WEIR_EXIT_OK)
        return code;
    c->site = sites ? 0 : -1;
    if (!there || !sites)
        return WEIR_EXIT_OK;
    for (c->site = 0; c->site < sites; c->site++)
        if (strcmp(name, weir_survey_site(c->s, c->site)) == 0)
            return WEIR_EXIT_OK;
    return weir_nb_wrong(nb, "site", "the file has no lines of %s; it has %s%s", name, weir_survey_site(c->s, 0),
                         sites > 1 ? " and others" : "");
}

static bool find_lines(corpus *c)
{
    const int lines = weir_survey_n_lines(c->s);
    c->line = malloc(sizeof *c->line * (size_t)lines);
    c->name = malloc(sizeof *c->name * (size_t)lines);
    c->value = malloc(sizeof *c->value * VALUES * (size_t)lines);
    if (!c->line || !c->name || !c->value)
        return false;
    for (int l = 0; l < lines; l++)
        if (l == lines - 1 || weir_survey_site_of(c->s, l) == c->site) {
            const char *name = weir_survey_line_at(c->s, l)->name;
            c->name[c->n] = (weir_str){name, strlen(name)};
            c->line[c->n++] = l;
        }
    return true;
}

static int choose_line(const weir_nb *nb, corpus *c)
{
    const char *name;
    bool there;
    const int code = weir_nb_text(nb, "line", &name, &there);
    if (code != WEIR_EXIT_OK)
        return code;
    c->chosen = (c->n - 1) / 2;
    if (!there)
        return WEIR_EXIT_OK;
    for (c->chosen = 0; c->chosen < c->n; c->chosen++)
        if (strcmp(name, c->name[c->chosen].p) == 0)
            return WEIR_EXIT_OK;
    return weir_nb_wrong(nb, "line", "the site has no line %s; its first is %s, its last %s", name, c->name[0].p,
                         c->name[c->n - 1].p);
}

static int choose_value(const weir_nb *nb, corpus *c)
{
    const char *name;
    const int code = weir_nb_text(nb, "value", &name, NULL);
    if (code != WEIR_EXIT_OK)
        return code;
    if (strcmp(name, "kl") != 0 && strcmp(name, "ce") != 0)
        return weir_nb_wrong(nb, "value", "there are kl and ce, and no %s", name);
    c->shown = *name == 'k' ? WEIR_SURVEY_KL : WEIR_SURVEY_CE;
    return weir_nb_int_in(nb, "bars", 1, INT32_MAX, &c->bars);
}

/* --- the file */

static int tell(weir_nb *nb, const corpus *c)
{
    const weir_survey_about *a = weir_survey_about_of(c->s);
    weir_nb_tell(nb, "model", "%s", *a->model ? a->model : "one without a name");
    weir_nb_tell(nb, "lens", "%s", a->lens);
    weir_nb_tell(nb, "holds", "%d line%s, over %lld position%s of %lld document%s", weir_survey_n_lines(c->s),
                 weir_nb_s(weir_survey_n_lines(c->s)), (long long)c->counts.seen, weir_nb_s(c->counts.seen),
                 (long long)c->counts.docs, weir_nb_s(c->counts.docs));
    if (a->shards)
        weir_nb_tell(nb, "not complete", "a part of the text: shards of it are missing");
    return weir_nb_tell_changes(nb, a->interventions);
}

static int open_file(weir_nb *nb, void **data)
{
    weir_err err = {0};
    corpus *c = calloc(1, sizeof *c);
    if (!c)
        return weir_nb_no_memory(nb);
    *data = c;
    if (weir_survey_read(&c->s, weir_nb_path(nb), &err) != WEIR_OK)
        return weir_cli_fail_at(weir_nb_cli(nb), weir_nb_path(nb), &err);
    c->counts = weir_survey_counts_of(c->s);
    int code = tell(nb, c);
    if (code == WEIR_EXIT_OK)
        code = choose_site(nb, c);
    if (code == WEIR_EXIT_OK && !find_lines(c))
        code = weir_nb_no_memory(nb);
    if (code == WEIR_EXIT_OK)
        code = choose_line(nb, c);
    if (code == WEIR_EXIT_OK)
        code = choose_value(nb, c);
    if (code != WEIR_EXIT_OK)
        return code;
    if (c->site >= 0)
        weir_nb_set_text(nb, "site", weir_survey_site(c->s, c->site));
    weir_nb_set_text(nb, "line", c->name[c->chosen].p);
    return WEIR_EXIT_OK;
}

static void close_file(void *data)
{
    corpus *c = data;
    if (!c)
        return;
    free(c->line);
    free(c->name);
    free(c->value);
    weir_survey_free(c->s);
    free(c);
}

/* --- figures */

static weir_chart frame(const corpus *c, FILE *out, const char *title, const char *up)
{
    return (weir_chart){.out = out,
                        .x = WEIR_CHART_LEFT,
                        .y = WEIR_CHART_TOP,
                        .width = 620,
                        .height = 250,
                        .title = title,
                        .across = {.label = "line of the stream", .name = c->name, .names = c->n},
                        .up = {.label = up}};
}

/* Draws the frame; keys > 0: with a legend under it. */
static void begin(weir_chart *c, const weir_chart_style *key, int keys)
{
    const double under = c->y + c->height + WEIR_CHART_UNDER;
    const double legend = weir_chart_legend(NULL, c->x, under, c->width, key, keys);
    weir_chart_open(c->out, c->x + c->width + 20, under + legend, c->title);
    weir_chart_frame(c);
    weir_chart_legend(c->out, c->x, under, c->width, key, keys);
}

/* Above what the lines behind the first block need, the picture is cut off. */
static double highest(const corpus *c)
{
    double top = 0;
    for (int k = 0; k < c->n; k++)
        if (weir_survey_line_at(c->s, c->line[k])->layer >= 0)
            top = fmax(top, fmax(c->value[MEAN * c->n + k], c->value[(VALUES - 1) * c->n + k]));
    return top > 0 ? 1.05 * top : 1;
}

static void draw_bands(const corpus *c, FILE *out, const char *title)
{
    const weir_chart_style style[] = {{.name = "mean", .dots = 2.5},
                                      {.name = "median", .colour = weir_chart_colour(1), .dash = "5 3"},
                                      {.name = "25 to 75 %", .colour = WEIR_CHART_BAND, .area = true},
                                      {.name = "5 to 95 %", .colour = WEIR_CHART_WIDE_BAND, .area = true}};
    const double *q = c->value + QUANTILE * c->n;
    weir_chart at = frame(c, out, title, "nats");
    at.up.to = highest(c);
    at.up.exact = true;
    begin(&at, style, 4);
    weir_chart_band(&at, c->n, NULL, q, q + 4 * c->n, &style[3]);
    weir_chart_band(&at, c->n, NULL, q + c->n, q + 3 * c->n, &style[2]);
    weir_chart_line(&at, c->n, NULL, q + 2 * c->n, &style[1]);
    weir_chart_line(&at, c->n, NULL, c->value + MEAN * c->n, &style[0]);
    weir_svg_end(out);
}

/* NAME_mean [n], NAME_quantile [n, 5] */
static bool put_bands(const corpus *c, weir_jsonw *numbers, const char *name)
{
    double *q = malloc(sizeof *q * WEIR_SURVEY_QUANTILES * (size_t)c->n);
    char key[32];
    for (int i = 0; i < WEIR_SURVEY_QUANTILES * c->n && q; i++)
        q[i] = c->value[(QUANTILE + i % WEIR_SURVEY_QUANTILES) * c->n + i / WEIR_SURVEY_QUANTILES];
    snprintf(key, sizeof key, "%s_mean", name);
    weir_nb_put_reals(numbers, key, c->value + MEAN * c->n, c->n);
    snprintf(key, sizeof key, "%s_quantile", name);
    if (q)
        weir_nb_put_table(numbers, key, q, c->n, WEIR_SURVEY_QUANTILES);
    free(q);
    return q != NULL;
}

static int draw_value(const weir_nb *nb, const corpus *c, FILE *out, weir_jsonw *numbers, weir_survey_value value)
{
    static const char *const name[] = {"ce", "kl"};
    for (int k = 0; k < c->n; k++) {
        const weir_survey_stat st = weir_survey_stat_of(c->s, c->line[k], value);
        c->value[MEAN * c->n + k] = st.mean;
        for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++)
            c->value[(QUANTILE + q) * c->n + k] = st.quantile[q];
    }
    draw_bands(c, out, value_title[value]);
    return put_bands(c, numbers, name[value]) ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

static int draw_ce(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    return draw_value(nb, data, out, numbers, WEIR_SURVEY_CE);
}

static int draw_kl(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    return draw_value(nb, data, out, numbers, WEIR_SURVEY_KL);
}

static int64_t settled(const corpus *c, int k)
{
    return c->site < 0 ? c->counts.seen : weir_survey_settled(c->s, c->site, c->line[k]);
}

static double share(int64_t part, int64_t whole)
{
    return (double)part / (double)(whole > 0 ? whole : 1);
}

static int draw_shares(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    static const char *const name[] = {"agree_share", "stay_share", "right_share"};
    const corpus *c = data;
    const weir_chart_style style[] = {{.name = "the final one", .dots = 2.5},
                                      {.name = "and it stays", .colour = weir_chart_colour(1), .dots = 2.5},
                                      {.name = "the right one", .colour = weir_chart_colour(2), .dots = 2.5}};
    int64_t stay = 0;
    (void)nb;
    for (int k = 0; k < c->n; k++) {
        stay += settled(c, k);
        c->value[k] = share(weir_survey_agree(c->s, c->line[k]), c->counts.seen);
        c->value[c->n + k] = share(stay, c->counts.seen);
        c->value[2 * c->n + k] = share(weir_survey_right(c->s, c->line[k]), c->counts.seen - c->counts.without_next);
    }
    weir_chart at = frame(c, out, "the likeliest token is ...", "share of the positions");
    at.up.to = 1;
    begin(&at, style, 3);
    for (int i = 0; i < 3; i++) {
        weir_chart_line(&at, c->n, NULL, c->value + i * c->n, &style[i]);
        weir_nb_put_reals(numbers, name[i], c->value + i * c->n, c->n);
    }
    weir_svg_end(out);
    return WEIR_EXIT_OK;
}

static int draw_settle(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const corpus *c = data;
    double *height = c->value, *edge = c->value + c->n;
    char title[64];
    (void)nb;
    weir_jsonw_key(numbers, "settled");
    weir_jsonw_array(numbers);
    for (int k = 0; k <= c->n; k++)
        edge[k] = k - 0.5;
    for (int k = 0; k < c->n; k++) {
        height[k] = (double)settled(c, k);
        weir_jsonw_int(numbers, settled(c, k));
    }
    weir_jsonw_end(numbers);
    snprintf(title, sizeof title, "%lld positions settle", (long long)c->counts.seen);
    weir_chart at = frame(c, out, title, "positions");
    at.across.from = -0.5;
    at.across.to = c->n - 0.5;
    weir_chart_hold_one(&at.up, 0);
    weir_chart_hold(&at.up, height, c->n);
    begin(&at, NULL, 0);
    weir_chart_bars(&at, c->n, edge, height, &(weir_chart_style){.name = "positions", .colour = WEIR_CHART_BAND});
    weir_svg_end(out);
    return WEIR_EXIT_OK;
}

/* --- one line */

static void draw_line(const corpus *c, FILE *out, const weir_nb_bins *b, double mean)
{
    char *title = NULL;
    weir_chart at = frame(c, out, value_title[c->shown], "share per nat");
    if (asprintf(&title, "%s at %s", value_title[c->shown], c->name[c->chosen].p) < 0)
        title = NULL;
    at.title = title ? title : value_title[c->shown];
    at.across = (weir_chart_axis){.label = "nats"};
    weir_nb_bins_hold(b, &at.across);
    weir_chart_hold_one(&at.up, 0);
    weir_chart_hold(&at.up, b->height, b->n);
    begin(&at, NULL, 0);
    weir_chart_bars(&at, b->n, b->edge, b->height,
                    &(weir_chart_style){.name = "share per nat", .colour = WEIR_CHART_BAND});
    if (isfinite(mean))
        weir_chart_rule(&at, true, mean, &(weir_chart_style){.name = "mean", .dash = "5 3"});
    weir_svg_end(out);
    free(title);
}

static int draw_histogram(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const corpus *c = data;
    const int line = c->line[c->chosen];
    const weir_survey_stat st = weir_survey_stat_of(c->s, line, c->shown);
    int64_t *count = malloc(sizeof *count * WEIR_SURVEY_BINS);
    weir_nb_bins b = {0};
    if (count)
        weir_survey_hist(c->s, line, c->shown, count);
    const bool ok = count && weir_nb_bins_join(&b, WEIR_SURVEY_BINS, count, weir_survey_edge, (double)st.min,
                                               (double)st.max, c->bars);
    if (ok) {
        draw_line(c, out, &b, st.mean);
        weir_nb_bins_put(&b, numbers);
    }
    weir_nb_bins_free(&b);
    free(count);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

static int draw_open(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const corpus *c = data;
    (void)nb;
    weir_nb_say(out, "%lld positions of %lld documents; %d lines are drawn.", (long long)c->counts.seen,
                (long long)c->counts.docs, c->n);
    weir_jsonw_key_int(numbers, "seen", c->counts.seen);
    weir_jsonw_key_int(numbers, "right_of", c->counts.seen - c->counts.without_next);
    return WEIR_EXIT_OK;
}

static const weir_nb_figure figures[] = {
    {"open", draw_open},           {"ce", draw_ce}, {"kl", draw_kl}, {"shares", draw_shares}, {"settle", draw_settle},
    {"histogram", draw_histogram}, {NULL, NULL}};
const weir_nb_kind weir_nb_kind_lens_corpus = {
    .name = "lens-corpus",
    .format = "weir-lens",
    .open = open_file,
    .close = close_file,
    .figure = figures,
};

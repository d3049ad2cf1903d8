/* The terminal's view. */
#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "head.h"

enum {
    SPARK = 40,     /* cells of a histogram */
    MEAN_LEAST = 3, /* tokens seen less often are not in the table of means */
    MEANS = 8,
    RELATED = 8,
    UNLIMITED = 1 << 20 /* columns, where the output is no terminal */
};

/* --- items in a row, broken at the terminal's edge */

typedef struct flow {
    const weir_screen *s;
    int indent;
    int64_t at; /* columns of the line so far */
} flow;

static flow flow_begin(const weir_screen *s, const char *title)
{
    weir_faint_begin(s->v->out, s->v->colour);
    fprintf(s->v->out, "  %-7s", title);
    weir_colour_end(s->v->out, s->v->colour);
    return (flow){.s = s, .indent = 9, .at = 9};
}

static void flow_bytes(flow *f, const char *p, size_t n)
{
    int width = f->s->v->width > 0 ? f->s->v->width : UNLIMITED;
    int64_t columns = weir_text_columns(p, n);
    FILE *out = f->s->v->out;
    if (f->at > f->indent && f->at + 2 + columns > width) {
        fprintf(out, "\n%*s", f->indent, "");
        f->at = f->indent;
    } else if (f->at > f->indent) {
        fputs("  ", out);
        f->at += 2;
    }
    fwrite(p, 1, n, out);
    f->at += columns;
}

WEIR_PRINTF(2, 3)
static void flow_put(flow *f, const char *fmt, ...)
{
    char buf[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    flow_bytes(f, buf, strlen(buf));
}

/* 'token' and what is said of it. */
static void flow_token(weir_screen *s, flow *f, int32_t id, const char *about)
{
    s->text.n = 0;
    weir_text_add(&s->text, "'", 1);
    weir_text_token(&s->text, weir_neurons_token(s->v->s, id), id);
    weir_text_add(&s->text, "' ", 2);
    weir_text_add(&s->text, about, strlen(about));
    if (!s->text.failed)
        flow_bytes(f, s->text.p, s->text.n);
}

static void flow_end(const flow *f)
{
    fputc('\n', f->s->v->out);
}

/* A share as per cent: few digits, but never 0 for what is not. */
static const char *percent(char buf[32], int64_t part, int64_t whole)
{
    if (whole > 0)
        snprintf(buf, 32, "%.3g%%", 100.0 * (double)part / (double)whole);
    else
        snprintf(buf, 32, "-");
    return buf;
}

static const char *number(char buf[32], double x)
{
    snprintf(buf, 32, isnan(x) ? "-" : "%.3g", x);
    return buf;
}

/* --- the head */

static void put_rules(const weir_screen *s)
{
    static const char *const dedup[] = {"", "window", "document"};
    const weir_neurons_options *o = s->opt;
    fprintf(s->v->out, "; rank: %s; ",
            o->rank == WEIR_RANK_MAX ? "max, each token for itself" : "mean, over each document");
    if (o->dedup == WEIR_DEDUP_NONE)
        fputs("dedup: none", s->v->out);
    else if (o->dedup != WEIR_DEDUP_TEXT)
        fprintf(s->v->out, "dedup: each %s once", dedup[o->dedup]);
    else if (o->rank == WEIR_RANK_MEAN)
        fputs("dedup: each document's text once", s->v->out);
    else
        fprintf(s->v->out, "dedup: each text of %lld tokens once", (long long)o->dedup_n);
    if (o->per_band || o->random)
        fprintf(s->v->out, "; seed %llu", (unsigned long long)o->seed);
    fputc('\n', s->v->out);
}

static void put_head(weir_screen *s)
{
    const weir_head h = {
        .s = s->v->s, .input = s->v->input, .colour = s->v->colour, .out = s->v->out, .text = &s->text};
    weir_head_run(&h);
    weir_head_sites(&h);
    put_rules(s);
    weir_head_remarks(&h);
}

/* --- numbers of a neuron */

/* Counts by bin, from the lowest bin that occurs to the highest, on a logarithmic scale both ways: what matters lies in
 * the thin ends. */
static void put_hist(const weir_screen *s, const weir_shown *neuron, const weir_neuron_stats *st)
{
    static const char *const block[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                        "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const ascii[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
    int64_t count[WEIR_NEURONS_BINS], cell[SPARK] = {0}, most = 0;
    int lo = 0, hi = WEIR_NEURONS_BINS - 1;
    if (st->count == 0)
        return;
    weir_neurons_hist(s->v->s, neuron->table, neuron->neuron, count);
    while (lo < hi && count[lo] == 0)
        lo++;
    while (hi > lo && count[hi] == 0)
        hi--;
    int bins = hi - lo + 1, cells = bins < SPARK ? bins : SPARK;
    if (s->v->width > 0 && cells > s->v->width - 30)
        cells = s->v->width - 30 > 8 ? s->v->width - 30 : cells < 8 ? cells : 8;
    for (int b = lo; b <= hi; b++)
        cell[(int64_t)(b - lo) * cells / bins] += count[b];
    for (int i = 0; i < cells; i++)
        most = cell[i] > most ? cell[i] : most;
    flow f = flow_begin(s, "hist");
    fprintf(s->v->out, "%+.3g |", (double)st->min);
    for (int i = 0; i < cells; i++) {
        int level = cell[i] == 0 ? 0 : 1 + (int)(7 * log1p((double)cell[i]) / log1p((double)most));
        fputs((s->utf8 ? block : ascii)[level], s->v->out);
    }
    fprintf(s->v->out, "| %+.3g", (double)st->max);
    flow_end(&f);
}

static void put_stats(weir_screen *s, const weir_shown *neuron, const weir_neuron_stats *st)
{
    char buf[32];
    flow f = flow_begin(s, "values");
    flow_put(&f, isnan(st->max) ? "max -" : "max %+.4g", (double)st->max);
    flow_put(&f, isnan(st->min) ? "min -" : "min %+.4g", (double)st->min);
    flow_put(&f, "mean %s", number(buf, st->mean));
    flow_put(&f, "sd %s", number(buf, st->sd));
    flow_put(&f, "skew %s", number(buf, st->skew));
    flow_put(&f, "kurt %s", number(buf, st->kurtosis));
    for (int i = 0; i < s->opt->n_thresholds; i++)
        flow_put(&f, ">%.4g %s", s->opt->threshold[i], percent(buf, st->above[i], st->count));
    flow_put(&f, "of %s", weir_commas(st->count, buf));
    if (st->nonfinite)
        flow_put(&f, "%s NaN or infinite", weir_commas(st->nonfinite, buf));
    int64_t skipped = weir_neurons_skipped(s->v->s, neuron->table);
    if (skipped)
        flow_put(&f, "%s left out for their norm", weir_commas(skipped, buf));
    flow_end(&f);
    put_hist(s, neuron, st);
}

/* --- what the weights say */

static void put_weights(weir_screen *s, const weir_shown *neuron)
{
    static const char *const title[WEIR_SIDES][2] = {{"in -", "in +"}, {"up -", "up +"}, {"out -", "out +"}};
    int64_t n, agree, places;
    char score[32];
    for (int side = 0; side < WEIR_SIDES; side++)
        for (int positive = 1; positive >= 0; positive--) {
            const weir_weight_token *token = weir_neurons_weight_tokens(s->v->s, neuron->table, neuron->neuron,
                                                                        (weir_weight_side)side, positive, &n);
            if (!token)
                continue;
            flow f = flow_begin(s, title[side][positive]);
            for (int64_t i = 0; i < n && token[i].id >= 0; i++) {
                snprintf(score, sizeof score, "%.3g", (double)token[i].score);
                flow_token(s, &f, token[i].id, score);
            }
            flow_end(&f);
        }
    const weir_weight_token *out =
        weir_neurons_weight_tokens(s->v->s, neuron->table, neuron->neuron, WEIR_SIDE_OUT, true, &n);
    if (!out || !n || out[0].id < 0 || !weir_neurons_agreement(s->v->s, neuron->table, neuron->neuron, &agree, &places))
        return;
    flow f = flow_begin(s, "agrees");
    char of[96];
    int64_t kept = weir_neurons_hits(s->v->s, neuron->table, neuron->neuron, WEIR_NEURONS_TOP, s->hit);
    int at = snprintf(of, sizeof of, "comes next at %lld of %lld top places kept", (long long)agree, (long long)places);
    if (kept > places)
        snprintf(of + at, sizeof of - (size_t)at, " (not the last of a text)");
    flow_token(s, &f, out[0].id, of);
    flow_end(&f);
}

/* How many things the list that is kept stands for, however much of it is shown; false: out of memory. */
static bool put_clusters(const weir_screen *s, const weir_shown *neuron)
{
    weir_neuron_clusters c;
    unsigned lists = s->opt->lists;
    if (!s->v->clusters || !lists)
        return true;
    weir_neurons_list list = lists & 1 ? WEIR_NEURONS_TOP : lists & 2 ? WEIR_NEURONS_BOTTOM : WEIR_NEURONS_ABS;
    if (weir_neurons_clusters(s->v->s, neuron->table, neuron->neuron, list, &c, NULL, NULL) != WEIR_OK)
        return false;
    if (c.places == 0)
        return true;
    flow f = flow_begin(s, "kinds");
    char of[64];
    int64_t kept = weir_neurons_hits(s->v->s, neuron->table, neuron->neuron, list, s->hit);
    if (c.places < kept)
        snprintf(of, sizeof of, "the first %lld of %lld", (long long)c.places, (long long)kept);
    else
        snprintf(of, sizeof of, "%lld", (long long)kept);
    flow_put(&f, "%lld among %s %s places kept", (long long)c.clusters, of, weir_section_name((int)list));
    flow_put(&f, "(effectively %.2g)", c.effective);
    flow_end(&f);
    return true;
}

/* --- what is kept of named neurons */

static void put_means(weir_screen *s, int named, bool descending)
{
    weir_token_mean mean[MEANS];
    char about[64];
    int64_t n = weir_neurons_token_means(s->v->s, named, descending, MEAN_LEAST, MEANS, mean);
    if (n == 0)
        return;
    flow f = flow_begin(s, descending ? "mean +" : "mean -");
    for (int64_t i = 0; i < n; i++) {
        snprintf(about, sizeof about, "%.3g (%lld)", mean[i].mean, (long long)mean[i].count);
        flow_token(s, &f, mean[i].id, about);
    }
    flow_end(&f);
}

static void put_related(weir_screen *s, int named, bool by_cofire)
{
    weir_neuron_relation r[RELATED];
    int64_t n = weir_neurons_related(s->v->s, named, by_cofire, RELATED, r);
    if (n == 0)
        return;
    flow f = flow_begin(s, by_cofire ? "cofire" : "r");
    for (int64_t i = 0; i < n; i++)
        flow_put(&f, "N%lld %.2f", (long long)r[i].unit, by_cofire ? r[i].cofire : r[i].r);
    flow_end(&f);
}

static void put_named(weir_screen *s, const weir_shown *neuron)
{
    int named = weir_neurons_find_named(s->v->s, neuron->table, neuron->neuron);
    if (named < 0)
        return;
    put_means(s, named, true);
    put_means(s, named, false);
    put_related(s, named, false);
    put_related(s, named, true);
}

/* --- lists */

static void put_title(const weir_screen *s, int section)
{
    fputs("  ", s->v->out);
    weir_faint_begin(s->v->out, s->v->colour);
    if (section >= WEIR_SECTION_BAND && section < WEIR_SECTION_RANDOM)
        fprintf(s->v->out, "from ranks %.4g%% to %.4g%%", 100 * weir_neurons_band_edge(section - WEIR_SECTION_BAND),
                100 * weir_neurons_band_edge(section - WEIR_SECTION_BAND + 1));
    else
        fputs(weir_section_name(section), s->v->out);
    weir_colour_end(s->v->out, s->v->colour);
    fputc('\n', s->v->out);
}

static bool put_sections(weir_screen *s, const weir_shown *neuron, double scale)
{
    for (int section = 0; section < WEIR_SECTIONS; section++) {
        /* bands from the highest down */
        int which = section >= WEIR_SECTION_BAND && section < WEIR_SECTION_RANDOM
                        ? WEIR_SECTION_RANDOM - 1 - (section - WEIR_SECTION_BAND)
                        : section;
        int64_t n = weir_section_shown(s->v, which) ? weir_section_hits(s->v, neuron, which, s->hit) : 0;
        if (n == 0)
            continue;
        if (which == WEIR_NEURONS_BOTTOM)
            weir_floor_add(&s->floor, weir_neurons_table_at(s->v->s, neuron->table), (double)s->hit[0].value,
                           (double)s->hit[n - 1].value);
        put_title(s, which);
        if (!weir_screen_places(s, neuron, n, scale))
            return false;
    }
    return true;
}

static bool put_neuron(weir_screen *s, const weir_shown *neuron)
{
    const weir_neurons_table *t = weir_neurons_table_at(s->v->s, neuron->table);
    weir_neuron_stats st;
    weir_neurons_stats(s->v->s, neuron->table, neuron->neuron, &st);
    double scale = fmax(fabs((double)st.min), fabs((double)st.max)); /* NaN: there are no values */
    FILE *out = s->v->out;
    fputc('\n', out);
    weir_bold_begin(out, s->v->colour);
    if (t->layer >= 0)
        fprintf(out, "L%d", t->layer);
    fprintf(out, "N%lld", (long long)weir_shown_unit(s->v, neuron));
    weir_colour_end(out, s->v->colour);
    fputs("  ", out);
    weir_put_safe(out, &s->text, t->hook);
    if (strcmp(t->site, "gate-act") == 0)
        fputs("  gate-act", out);
    fputc('\n', out);
    put_stats(s, neuron, &st);
    put_weights(s, neuron);
    bool ok = put_clusters(s, neuron);
    put_named(s, neuron);
    return ok && put_sections(s, neuron, scale) && !s->text.failed;
}

int weir_view_text(const weir_view *v)
{
    weir_screen s = {.v = v, .opt = weir_neurons_options_of(v->s), .utf8 = weir_utf8_locale()};
    s.hit = malloc(sizeof *s.hit * (size_t)weir_section_room(s.opt));
    bool ok = s.hit != NULL;
    if (ok)
        put_head(&s);
    for (int64_t i = 0; i < v->n && ok; i++)
        ok = put_neuron(&s, &v->shown[i]);
    weir_floor_say(&s.floor, v->cli);
    free(s.hit);
    weir_pieces_free(&s.pieces);
    weir_text_free(&s.text);
    return ok ? WEIR_EXIT_OK : weir_view_no_memory(v);
}

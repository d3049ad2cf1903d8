/* The table of logit-lens --corpus for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/changes.h"
#include "corpus.h"
#include "cli/terminal.h"
#include "cli/printable.h"

/* A number in six columns: three digits behind the point, or the first one where that would show nothing. */
static void put_value(FILE *out, double x)
{
    if (isnan(x))
        fprintf(out, " %6s", "-");
    else if (x == 0 || fabs(x) >= 0.00095)
        fprintf(out, " %6.*f", fabs(x) >= 1000 ? 0 : fabs(x) >= 100 ? 1 : fabs(x) >= 10 ? 2 : 3, x);
    else
        fprintf(out, " %6.0e", x);
}

static void put_share(FILE *out, int64_t part, int64_t whole)
{
    if (whole == 0)
        fprintf(out, " %7s", "-");
    else
        fprintf(out, " %7.4f", (double)part / (double)whole);
}

/* A name, which a file gives, behind words of ours. */
static void put(FILE *out, const char *before, const char *name)
{
    fputs(before, out);
    weir_put_printable(out, name, 0);
}

static void put_about(FILE *out, const weir_survey *s)
{
    static const struct {
        const char *kind, *words;
    } norms[] = {{"recompute", "each row's own statistics"},
                 {"cached", "the final row's scale: a part's share, no lens of the layer"},
                 {"none", "left out"}};
    const weir_survey_about *a = weir_survey_about_of(s);
    char input[400];
    const char *norm = a->norm;
    weir_lens_corpus_input(input, sizeof input, s);
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        if (strcmp(a->norm, norms[i].kind) == 0)
            norm = norms[i].words;
    put(out, "logit-lens --corpus  ", a->model);
    put(out, "  ", input);
    put(out, "\n", a->lens);
    put(out, "; final norm: ", norm);
    fprintf(out, "%s%s\n", a->no_softcap ? "; soft cap left out" : "", a->padding_masked ? "; padding left out" : "");
    char *changes = strcmp(a->interventions, "[]") != 0 ? weir_changes_words(a->interventions) : NULL;
    if (changes) {
        put(out, "values changed by ", changes);
        fputc('\n', out);
        free(changes);
    }
    if (a->shards)
        fprintf(out, "shard %lld/%lld: a part of the text\n", (long long)a->shard, (long long)a->shards);
}

static void put_counts(FILE *out, const weir_survey *s)
{
    const weir_survey_counts n = weir_survey_counts_of(s);
    char docs[32], rows[32], seen[32], bos[32], special[32], id[32], last[32], lost[32];
    fprintf(out, "%s documents, %s positions; left out (--mask): %s BOS, %s special, %s by id\n",
            weir_commas(n.docs, docs), weir_commas(n.rows, rows), weir_commas(n.masked[WEIR_MASK_BOS], bos),
            weir_commas(n.masked[WEIR_MASK_SPECIAL], special), weir_commas(n.masked[WEIR_MASK_ID], id));
    fprintf(out, "%s positions counted, %s of them without a next token", weir_commas(n.seen, seen),
            weir_commas(n.without_next, last));
    if (n.lost)
        fprintf(out, "; %s more have logits that are not finite", weir_commas(n.lost, lost));
    fputs("\n\n", out);
}

/* --- the table: a group of columns for each value, then one of shares; as many beside one another as fit */

enum { LABEL = 9, VALUE = 7 * (1 + WEIR_SURVEY_QUANTILES), SHARES = 24, GROUPS = WEIR_SURVEY_VALUES + 1 };

/* The group behind the last one that still fits beside `from`. */
static int page_end(int from, int width)
{
    int end = from, used = LABEL;
    do
        used += end < WEIR_SURVEY_VALUES ? VALUE + (end > from) : SHARES;
    while (used <= width && ++end < GROUPS);
    return end > from ? end : from + 1;
}

static void put_heading(FILE *out, int from, int end)
{
    static const char *const said[] = {[WEIR_SURVEY_CE] = "cross-entropy of the next token, nats",
                                       [WEIR_SURVEY_KL] = "KL(final || line), nats"};
    fprintf(out, "%-*s", LABEL, "");
    for (int g = from; g < end && g < WEIR_SURVEY_VALUES; g++)
        fprintf(out, " %-*s", g + 1 < end ? VALUE : 0, said[g]);
    if (end == GROUPS)
        fprintf(out, "%s  likeliest token, shares", from < WEIR_SURVEY_VALUES ? "" : " ");
    fprintf(out, "\n%-*s", LABEL, "");
    for (int g = from; g < end && g < WEIR_SURVEY_VALUES; g++) {
        fputs(g > from ? "    mean" : "   mean", out);
        for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++)
            fprintf(out, " %5.0f%%", 100 * weir_survey_share(q));
    }
    fputs(end == GROUPS ? "   right  agrees settles\n" : "\n", out);
}

static void put_line(FILE *out, const weir_survey *s, int l, int from, int end)
{
    const weir_survey_counts n = weir_survey_counts_of(s);
    const int own = weir_survey_site_of(s, l);
    weir_put_printable(out, weir_survey_line_at(s, l)->name, LABEL);
    for (int g = from; g < end && g < WEIR_SURVEY_VALUES; g++) {
        const weir_survey_stat at = weir_survey_stat_of(s, l, (weir_survey_value)g);
        fputs(g > from ? " " : "", out);
        put_value(out, at.mean);
        for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++)
            put_value(out, at.quantile[q]);
    }
    if (end == GROUPS) {
        put_share(out, weir_survey_right(s, l), n.seen - n.without_next);
        put_share(out, weir_survey_agree(s, l), n.seen);
        if (own >= 0 || weir_survey_n_sites(s) == 1)
            put_share(out, weir_survey_settled(s, own < 0 ? 0 : own, l), n.seen);
    }
    fputc('\n', out);
}

static void put_table(FILE *out, const weir_survey *s)
{
    const int width = weir_width_of(0, out);
    for (int from = 0, end; from < GROUPS; from = end) {
        end = page_end(from, width);
        fputs(from ? "\n" : "", out);
        put_heading(out, from, end);
        for (int l = 0; l < weir_survey_n_lines(s); l++)
            put_line(out, s, l, from, end);
    }
}

static void put_settling(FILE *out, const weir_survey *s)
{
    const int last = weir_survey_n_lines(s) - 1;
    fputs("\nlayer from which on the likeliest token stays (embed: -1)\n", out);
    for (int i = 0; i < weir_survey_n_sites(s); i++) {
        const weir_survey_stat at = weir_survey_settle_of(s, i);
        weir_put_printable(out, weir_survey_site(s, i), 11);
        fputs(" mean", out);
        put_value(out, at.mean);
        for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++)
            isnan(at.quantile[q]) ? fprintf(out, "; %.0f%% -", 100 * weir_survey_share(q))
                                  : fprintf(out, "; %.0f%% %.0f", 100 * weir_survey_share(q), at.quantile[q]);
        fputs("; only at out", out);
        put_share(out, weir_survey_settled(s, i, last), at.count);
        fputc('\n', out);
    }
}

void weir_lens_corpus_text(FILE *out, const weir_survey *s)
{
    put_about(out, s);
    put_counts(out, s);
    put_table(out, s);
    if (weir_survey_n_sites(s) > 0)
        put_settling(out, s);
}

/* Thresholds, probabilities of answers before and after, and what the model says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page/chart.h"
#include "report.h"

enum { LABEL = 340, WIDTH = 640, ROW = 26, COLUMNS = 40, AXIS = 46, HEAD = 40, APART = 4 };

/* --- thresholds */

static weir_str meaning(weir_str name)
{
    static const char *const of[][2] = {{"p", "p of the new answer"},
                                        {"PS", "paraphrases taken, %"},
                                        {"NS", "neighbours kept, %"},
                                        {"drift", "perplexity drift, %"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strlen(of[i][0]) == name.n && memcmp(of[i][0], name.p, name.n) == 0)
            return (weir_str){of[i][1], strlen(of[i][1])};
    return name;
}

static void put_text(weir_chart_table *t, const char *text)
{
    weir_chart_table_text(t, text, strlen(text));
}

int weir_nb_report_checks(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    static const char *const head[] = {"threshold", "value", "bound", ""};
    const weir_nb_report *v = data;
    int64_t *kept = malloc(sizeof *kept * ((size_t)v->checks + 1));
    weir_chart_table t;
    (void)nb;
    if (!kept)
        return weir_nb_no_memory(v->nb);
    weir_chart_table_begin(&t, out, NULL, head, 4);
    for (int64_t i = 0; i < v->checks; i++) {
        const bool asked = !isnan(v->value[i]);
        const weir_str name = meaning(weir_array_text(&v->check, i));
        char bound[60] = "";
        if (asked)
            snprintf(bound, sizeof bound, "%s %g", v->upper[i] ? "at most" : "at least", v->bound[i]);
        weir_chart_table_text(&t, name.p, name.n);
        weir_chart_table_real(&t, v->value[i], 4, NULL);
        put_text(&t, bound);
        put_text(&t, !asked ? "nothing was asked" : v->kept[i] ? "ok" : "FAILED");
        kept[i] = v->kept[i];
    }
    weir_chart_table_end(&t);
    weir_nb_put_reals(numbers, "check_values", v->value, v->checks);
    weir_nb_put_reals(numbers, "check_bounds", v->bound, v->checks);
    weir_nb_put_ints(numbers, "checks_kept", kept, v->checks);
    free(kept);
    return WEIR_EXIT_OK;
}

/* --- answers */

/* Ring and dot of one answer, and the line between. */
static void put_change(const weir_chart *c, const double *p, double y, const char *colour, const char *name)
{
    const double from = weir_chart_across(c, p[WEIR_NB_BEFORE]), to = weir_chart_across(c, p[WEIR_NB_AFTER]);
    if (!isfinite(from) || !isfinite(to))
        return;
    fprintf(c->out, "<g stroke=\"%s\" stroke-width=\"2\"><title>%s answer: ", colour, name);
    weir_chart_number(c->out, p[WEIR_NB_BEFORE]);
    fputs(" before, ", c->out);
    weir_chart_number(c->out, p[WEIR_NB_AFTER]);
    fprintf(c->out,
            " after</title><path d=\"M%.1f %.1fH%.1f\"/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#ffffff\"/>"
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/></g>\n",
            from, y, to, from, y, to, y, colour);
}

static void put_question(const weir_nb_report *v, const weir_chart *c, int64_t i, const double *p_new,
                         const double *p_true)
{
    const double y = c->y + ((double)i + 0.5) * ROW;
    const weir_str prompt = weir_array_text(&v->prompt, i);
    fprintf(c->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" font-size=\"11\"><title>", LABEL - 8, y + 4);
    weir_svg_text(c->out, prompt.p, prompt.n, 0, false);
    fprintf(c->out, "</title>%s%s: ", v->right[i * WEIR_NB_SIDES + WEIR_NB_AFTER] ? "" : "✗ ",
            weir_nb_report_kind[v->kind[i]]);
    weir_svg_text(c->out, prompt.p, prompt.n, COLUMNS, false);
    fputs("</text>\n", c->out);
    put_change(c, p_true + i * WEIR_NB_SIDES, y - APART, weir_chart_colour(1), "true");
    put_change(c, p_new + i * WEIR_NB_SIDES, y + APART, weir_chart_colour(0), "new");
}

/* What the marks mean, above the frame. */
static void put_key(FILE *out)
{
    static const char *const name[] = {"true answer, before", "true answer, after", "new answer, before",
                                       "new answer, after"};
    for (int i = 0; i < 4; i++) {
        const char *colour = weir_chart_colour(i < 2);
        const int x = LABEL + 8 + i * 150;
        fprintf(out,
                "<circle cx=\"%d\" cy=\"20\" r=\"4\" stroke=\"%s\" stroke-width=\"2\" fill=\"%s\"/><text x=\"%d\" "
                "y=\"24\" font-size=\"11\">%s</text>\n",
                x, colour, i % 2 ? colour : "#ffffff", x + 10, name[i]);
    }
}

static void put_answers(const weir_nb_report *v, FILE *out, const double *p_new, const double *p_true)
{
    static const double none[1] = {0};
    weir_chart c = {.out = out,
                    .x = LABEL,
                    .y = HEAD,
                    .width = WIDTH,
                    .height = ROW * (double)v->shown,
                    .across = {.label = "probability of the whole answer", .from = -0.02, .to = 1.02, .exact = true},
                    .up = {.from = 0, .to = 1, .exact = true, .tick = none, .ticks = 0}};
    weir_chart_open(out, LABEL + WIDTH + 24, c.height + HEAD + AXIS, "probability of answers before and after");
    put_key(out);
    weir_chart_frame(&c);
    for (int64_t i = 0; i < v->shown; i++)
        put_question(v, &c, i, p_new, p_true);
    weir_svg_end(out);
}

int weir_nb_report_answers(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_report *v = data;
    const int64_t cells = v->shown * WEIR_NB_SIDES;
    double *p = malloc(2 * sizeof *p * ((size_t)cells + 1)), *p_new = p, *p_true = p + cells;
    int64_t unknown = 0;
    (void)nb;
    if (!p)
        return weir_nb_no_memory(v->nb);
    for (int64_t i = 0; i < cells; i++) {
        p_new[i] = exp(v->new_logprob[i]);
        p_true[i] = exp(v->true_logprob[i]);
        unknown += i % WEIR_NB_SIDES == WEIR_NB_BEFORE && isnan(p_true[i]);
    }
    if (unknown)
        weir_nb_say(out,
                    "the true answer of %lld questions is not known: weir rome verify --truth TEXT or --records FILE "
                    "says it",
                    (long long)unknown);
    put_answers(v, out, p_new, p_true);
    weir_nb_put_table(numbers, "p_new", p_new, v->shown, WEIR_NB_SIDES);
    weir_nb_put_table(numbers, "p_true", p_true, v->shown, WEIR_NB_SIDES);
    weir_nb_put_real(numbers, "unknown", (double)unknown);
    free(p);
    return WEIR_EXIT_OK;
}

/* --- what it says */

int weir_nb_report_greedy(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    static const char *const head[] = {"", "prompt", "before", "p", "after", "p"};
    const weir_nb_report *v = data;
    weir_chart_table t;
    (void)nb;
    weir_chart_table_begin(&t, out, NULL, head, 6);
    for (int64_t i = 0; i < v->shown; i++) {
        const weir_str prompt = weir_array_text(&v->prompt, i);
        const weir_str side[WEIR_NB_SIDES] = {weir_array_text(&v->before, i), weir_array_text(&v->after, i)};
        put_text(&t, weir_nb_report_kind[v->kind[i]]);
        weir_chart_table_text(&t, prompt.p, prompt.n);
        for (int s = 0; s < WEIR_NB_SIDES; s++) {
            weir_chart_table_text(&t, side[s].p, side[s].n);
            weir_chart_table_real(&t, v->top_p[i * WEIR_NB_SIDES + s], 3, NULL);
        }
    }
    weir_chart_table_end(&t);
    weir_nb_put_table(numbers, "top_p", v->top_p, v->shown, WEIR_NB_SIDES);
    return WEIR_EXIT_OK;
}

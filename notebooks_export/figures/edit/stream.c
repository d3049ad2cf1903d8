/* What the edit does in the stream behind one prompt: the logit lens by line, and how far each token's row moves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures/arrays.h"
#include "figures/pair.h"
#include "report.h"

enum { NAMES = 400, ANSWERS = 2, CURVES = ANSWERS * WEIR_NB_SIDES };

/* The token of an answer where they part, with its side: "'asc' before". */
static void name_line(const weir_nb_report *v, int answer, int side, char name[NAMES])
{
    const int32_t id = v->token[v->chosen * ANSWERS + answer];
    const weir_str token = weir_nb_token(&v->vocab, id);
    const char *when = side == WEIR_NB_BEFORE ? "before" : "after";
    if (token.n)
        snprintf(name, NAMES, "'%.*s' %s", (int)(token.n < 300 ? token.n : 300), token.p, when);
    else
        snprintf(name, NAMES, "'<#%d>' %s", id, when);
}

/* --- the lens */

/* line [4, lines]: the new token before and after, then the true one. */
static void take_lens(const weir_nb_report *v, double *line)
{
    for (int answer = 0; answer < ANSWERS; answer++)
        for (int64_t l = 0; l < v->lines; l++)
            for (int side = 0; side < WEIR_NB_SIDES; side++)
                line[(answer * WEIR_NB_SIDES + side) * v->lines + l] =
                    (double)(answer ? v->lens_true : v->lens_new)[(l * v->prompts + v->chosen) * WEIR_NB_SIDES + side];
}

/* Is the new token likelier than the true one? */
static bool ahead(const weir_nb_report *v, const double *line, int64_t l, int side)
{
    return line[side * v->lines + l] > line[(WEIR_NB_SIDES + side) * v->lines + l];
}

/* The line from which on the edit changes which is likelier; the number of lines: in the end it does not. */
static int64_t flip_of(const weir_nb_report *v, const double *line)
{
    int64_t l = v->lines;
    while (l > 0 && ahead(v, line, l - 1, WEIR_NB_BEFORE) != ahead(v, line, l - 1, WEIR_NB_AFTER))
        l--;
    return l;
}

/* The tokens that were said, and what the edit changes behind them. */
static void put_sentence(const weir_nb_report *v, FILE *out, const double *line, int64_t flip)
{
    const char *winner = ahead(v, line, v->lines - 1, WEIR_NB_AFTER) ? "new" : "true";
    fputs("<p>behind “", out);
    for (int64_t i = 0; i < v->count[v->chosen]; i++) {
        const weir_str token = weir_nb_token(&v->vocab, v->id[v->start[v->chosen] + i]);
        weir_svg_text(out, token.p, token.n, 0, false);
    }
    fputs("”: ", out);
    if (flip < v->lines) {
        const weir_str name = weir_array_text(&v->line, flip);
        fputs("from line ", out);
        weir_svg_text(out, name.p, name.n, 0, false);
        fprintf(out, " on the edit makes the %s token the likelier one</p>\n", winner);
    } else {
        fprintf(out, "the %s token is the likelier one in the end, with the edit and without</p>\n", winner);
    }
}

static void put_probabilities(const weir_nb_report *v, FILE *out, const double *p, const weir_str *names)
{
    char name[CURVES][NAMES];
    weir_chart_style style[CURVES];
    weir_chart c = weir_nb_pair_lines(out, 0, "probability", "probability", names, v->lines);
    for (int k = 0; k < CURVES; k++) {
        const bool before = k % WEIR_NB_SIDES == WEIR_NB_BEFORE;
        name_line(v, k / WEIR_NB_SIDES, k % WEIR_NB_SIDES, name[k]);
        style[k] = (weir_chart_style){.name = name[k],
                                      .colour = weir_chart_colour(k / WEIR_NB_SIDES),
                                      .dash = before ? "5 3" : NULL,
                                      .dots = before ? 0 : 3};
    }
    weir_chart_hold_one(&c.up, 0);
    weir_chart_hold_one(&c.up, 1);
    weir_chart_frame(&c);
    for (int k = 0; k < CURVES; k++)
        weir_chart_line(&c, v->lines, NULL, p + k * v->lines, &style[k]);
    weir_chart_legend(out, c.x, WEIR_NB_PAIR_LEGEND, c.width, style, CURVES);
}

/* lead [2, lines] */
static void put_lead(const weir_nb_report *v, FILE *out, const double *lead, const weir_str *names)
{
    const weir_chart_style zero = {.colour = weir_chart_colour(7), .width = 1};
    const weir_chart_style style[WEIR_NB_SIDES] = {{.name = "before", .colour = weir_chart_colour(7), .dash = "5 3"},
                                                   {.name = "after", .dots = 3}};
    weir_chart c = weir_nb_pair_lines(out, 1, "lead of the new token: ln p(new) - ln p(true)", "nats", names, v->lines);
    weir_chart_hold_one(&c.up, 0);
    weir_chart_hold(&c.up, lead, WEIR_NB_SIDES * v->lines);
    weir_chart_frame(&c);
    weir_chart_rule(&c, false, 0, &zero);
    for (int side = 0; side < WEIR_NB_SIDES; side++)
        weir_chart_line(&c, v->lines, NULL, lead + side * v->lines, &style[side]);
    weir_chart_legend(out, c.x, WEIR_NB_PAIR_LEGEND, c.width, style, WEIR_NB_SIDES);
}

/* room: as large as line. */
static void put_lens(const weir_nb_report *v, FILE *out, const double *line, double *room, const weir_str *names)
{
    weir_nb_pair_open(out, "the logit lens before and after", 2);
    for (int64_t i = 0; i < CURVES * v->lines; i++)
        room[i] = exp(line[i]);
    put_probabilities(v, out, room, names);
    for (int64_t i = 0; i < WEIR_NB_SIDES * v->lines; i++)
        room[i] = line[i] - line[WEIR_NB_SIDES * v->lines + i];
    put_lead(v, out, room, names);
    weir_svg_end(out);
}

/* One answer's lines as the notebook has them: [lines, 2]. */
static void put_answer(const weir_nb_report *v, const char *name, const double *line, double *turned,
                       weir_jsonw *numbers)
{
    for (int64_t l = 0; l < v->lines; l++)
        for (int side = 0; side < WEIR_NB_SIDES; side++)
            turned[l * WEIR_NB_SIDES + side] = line[side * v->lines + l];
    weir_nb_put_table(numbers, name, turned, v->lines, WEIR_NB_SIDES);
}

int weir_nb_report_lens(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_report *v = data;
    const int64_t cells = CURVES * v->lines;
    double *line = malloc(2 * sizeof *line * ((size_t)cells + 1)), *room = line + cells;
    weir_str *names = weir_nb_names(&v->line);
    (void)nb;
    if (line && names) {
        take_lens(v, line);
        const int64_t flip = flip_of(v, line);
        put_sentence(v, out, line, flip);
        put_lens(v, out, line, room, names);
        put_answer(v, "lead", room, room + WEIR_NB_SIDES * v->lines, numbers);
        put_answer(v, "lens_new", line, room, numbers);
        put_answer(v, "lens_true", line + WEIR_NB_SIDES * v->lines, room, numbers);
        weir_nb_put_real(numbers, "flip", (double)flip);
    }
    const bool ok = line && names;
    free(line);
    free(names);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(v->nb);
}

/* --- the stream */

static void put_map(const weir_nb_report *v, FILE *out, const double *moved, const weir_str *row,
                    const weir_str *column)
{
    const weir_chart_map m = {.out = out,
                              .x = 8,
                              .y = 8,
                              .width = WEIR_NB_PAIR_WIDTH - 16,
                              .title = v->relative ? "length of the stream's change, share of its length"
                                                   : "length of the stream's change",
                              .down = "line",
                              .across = "token",
                              .label = v->relative ? "share" : "norm",
                              .rows = v->lines,
                              .columns = v->count[v->chosen],
                              .value = moved,
                              .row = row,
                              .column = column,
                              .digits = 3,
                              .rising = true};
    weir_chart_open(out, weir_chart_map_width(&m) + 16, weir_chart_map_height(&m) + 16, "the stream's change");
    weir_chart_map_draw(&m);
    weir_svg_end(out);
}

int weir_nb_report_stream(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_report *v = data;
    const int64_t n = v->count[v->chosen], first = v->start[v->chosen];
    double *moved = malloc(sizeof *moved * ((size_t)(v->lines * n) + 1));
    weir_str *row = weir_nb_names(&v->line), *column = malloc(sizeof *column * ((size_t)n + 1));
    (void)nb;
    if (moved && row && column) {
        for (int64_t i = 0; i < n; i++)
            column[i] = weir_nb_token(&v->vocab, v->id[first + i]);
        for (int64_t i = 0; i < v->lines * n; i++) {
            const int64_t at = i / n * v->rows + first + i % n;
            moved[i] = v->difference[at] / (v->relative ? v->norm[at * WEIR_NB_SIDES + WEIR_NB_BEFORE] : 1);
        }
        put_map(v, out, moved, row, column);
        weir_nb_put_table(numbers, "moved", moved, v->lines, n);
    }
    const bool ok = moved && row && column;
    free(moved);
    free(row);
    free(column);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(v->nb);
}

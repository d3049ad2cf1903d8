/* The terminal's view: a table for each position, with bars. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "view.h"

enum {
    COLUMNS = 52, /* of a line before its bar */
    REMARK = 48,  /* behind a sum */
    BAR = 20      /* columns of a bar to either side of its middle, at most */
};

typedef struct screen {
    FILE *out;
    const weir_view_parts *v;
    bool logits;    /* there is a target: bars show logits, else shares */
    double longest; /* value of the longest bar */
    int bar;        /* columns to either side; 0: no room for bars */
} screen;

/* --- tokens */

static bool put_token(const screen *s, int32_t id)
{
    weir_text text = {0};
    if (!s->v->tok) {
        fprintf(s->out, "#%d", id);
        return true;
    }
    const weir_str bytes = weir_tokenizer_bytes(s->v->tok, id);
    weir_text_printable(&text, bytes.p, bytes.n);
    fprintf(s->out, "\"%.*s\"", (int)text.n, text.p ? text.p : "");
    const bool ok = !text.failed;
    weir_text_free(&text);
    return ok;
}

/* "doc 0, position 9 " Boulder", next ".": logit of "."; |stream| 83.1" */
static bool put_head(const screen *s)
{
    const weir_view_parts *v = s->v;
    weir_bold_begin(s->out, v->colour);
    fprintf(s->out, "doc %lld, position %lld, ", (long long)v->doc, (long long)v->pos);
    bool ok = put_token(s, v->id);
    weir_colour_end(s->out, v->colour);
    if (v->next >= 0) {
        fputs(", next ", s->out);
        ok = put_token(s, v->next) && ok;
    }
    if (v->sum->target >= 0) {
        fputs(": logit of ", s->out);
        ok = put_token(s, v->sum->target) && ok;
        if (v->sum->against >= 0) {
            fputs(" minus that of ", s->out);
            ok = put_token(s, v->sum->against) && ok;
        }
    }
    fputc('\n', s->out);
    return ok;
}

/* --- lines */

/* x in ten columns, or a dash where there is none. */
WEIR_PRINTF(3, 4)
static void put_number(const screen *s, double x, const char *format, ...)
{
    char buf[40] = "-";
    va_list ap;
    va_start(ap, format);
    if (!isnan(x))
        vsnprintf(buf, sizeof buf, format, ap);
    va_end(ap);
    fprintf(s->out, "%10s", buf);
}

/* From the middle to the left or to the right; at least one column unless x is 0. */
static void put_bar(const screen *s, double x)
{
    if (!s->bar || isnan(x) || !(s->longest > 0))
        return;
    int n = (int)lround(fabs(x) / s->longest * s->bar);
    n = n > s->bar ? s->bar : n < 1 && x != 0 ? 1 : n;
    fprintf(s->out, "  %*s", x < 0 ? s->bar - n : s->bar, "");
    for (int side = -1; side <= 1; side += 2) {
        if ((x < 0) == (side < 0)) {
            const bool coloured = weir_heat_begin(s->out, s->v->colour, x / s->longest);
            for (int i = 0; i < n; i++)
                fputc('#', s->out);
            if (coloured)
                weir_colour_end(s->out, s->v->colour);
        }
        if (side < 0)
            fputc('|', s->out);
    }
}

static double shown(const screen *s, const weir_part_value *v)
{
    return s->logits ? v->logit : v->share;
}

static void put_value(const screen *s, const char *name, const weir_part_value *v)
{
    fprintf(s->out, "%-12s", name);
    char norm[32];
    put_number(s, v->norm, "%s", weir_rounded(v->norm, 4, false, norm));
    put_number(s, v->cosine, "%+.3f", v->cosine);
    put_number(s, 100 * v->share, "%+.1f%%", 100 * v->share);
    if (s->logits)
        put_number(s, v->logit, "%+.4f", v->logit);
    put_bar(s, shown(s, v));
    fputc('\n', s->out);
}

static void put_lines(const screen *s, const weir_part_line *line, int64_t n)
{
    char name[48];
    for (int64_t i = 0; i < n; i++)
        put_value(s, weir_part_name(&line[i].part, name), &line[i].value);
}

static void put_units(const screen *s, const weir_part_lines *l, const char *what)
{
    if (l->of == 0)
        return;
    weir_faint_begin(s->out, s->v->colour);
    const char *biases = l->biases ? " and biases" : "";
    if (l->top)
        fprintf(s->out, "top %lld of %lld %s%s, by |%s|\n", (long long)l->n, (long long)l->of, what, biases,
                strcmp(s->v->rank, "auto") != 0 ? s->v->rank
                : s->logits                     ? "logit"
                                                : "share");
    else
        fprintf(s->out, "%lld %s%s\n", (long long)l->n, what, biases);
    weir_colour_end(s->out, s->v->colour);
    put_lines(s, l->line, l->n);
}

/* --- the sum */

static void put_logit(const screen *s, const char *name, double share, double logit)
{
    fprintf(s->out, "%-32s", name);
    put_number(s, 100 * share, "%+.1f%%", 100 * share);
    if (s->logits)
        put_number(s, logit, "%+.4f", logit);
}

static void put_sum(const screen *s)
{
    const weir_parts_sum *sum = s->v->sum;
    if (s->logits) {
        put_logit(s, "constant", NAN, sum->constant);
        fputc('\n', s->out);
    }
    const char *gap = s->v->width < COLUMNS + REMARK ? "\n  " : "  ";
    put_logit(s, "sum", sum->share, sum->parts);
    fprintf(s->out, "%sthe edits are%s the final stream%s\n", gap, sum->exact ? "" : " not",
            sum->exact ? " to the bit" : ": see rest");
    if (!s->logits)
        return;
    put_logit(s, "model's own logit", NAN, sum->logit);
    fprintf(s->out, "%sdifference %.1e, tolerance %.1e: %s\n", gap, sum->difference, sum->tolerance,
            sum->holds ? "holds" : "does not hold");
    if (s->v->capped) {
        put_logit(s, "behind the soft cap", NAN, sum->capped);
        fputc('\n', s->out);
    }
}

/* --- a position */

static void look(screen *s, const weir_part_line *line, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (fabs(shown(s, &line[i].value)) > s->longest)
            s->longest = fabs(shown(s, &line[i].value));
}

static bool position(FILE *out, const weir_view_parts *v)
{
    screen s = {.out = out, .v = v, .logits = v->sum->target >= 0};
    const int room = (v->width - COLUMNS - 3) / 2;
    s.bar = room > BAR ? BAR : room < 2 ? 0 : room;
    look(&s, v->edit, v->n_edits);
    look(&s, v->heads->line, v->heads->n);
    look(&s, v->neurons->line, v->neurons->n);
    if (v->number)
        fputc('\n', out);
    const bool ok = put_head(&s);
    weir_faint_begin(out, v->colour);
    fprintf(out, "%-12s%10s%10s%10s%s\n", "part", "norm", "cosine", "share", s.logits ? "     logit" : "");
    weir_colour_end(out, v->colour);
    put_lines(&s, v->edit, v->n_edits);
    if (v->n_others)
        put_value(&s, "other layers", &v->others);
    put_sum(&s);
    put_units(&s, v->heads, "heads");
    put_units(&s, v->neurons, "neurons");
    return ok;
}

const weir_sink weir_parts_text = {.position = position};

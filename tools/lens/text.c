/* The table on a terminal: rows are places of the stream, columns are positions; a cell has the likeliest token and the
 * statistic's number, '*' before a token that is the next one, and the statistic as the colour behind it.
 *
 *     prob       0 <|endoft.    1 The          2 river
 *     embed   ` first  .031   ...
 *     out    * river   .402
 *
 * Cells have one width, so that pages hold the same number of positions whatever stands in them. A document is drawn
 * when it has ended, or when BLOCK positions are there: what the table needs of memory is bounded. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/changes.h"
#include "cli/terminal.h"
#include "ramp.h"
#include "split.h"
#include "token.h"

enum {
    BLOCK = 1024,     /* positions that are gathered, in whole pages; fewer where a position is large: */
    BOUND = 32 << 20, /* bytes of what is gathered */
    TOKEN = 8         /* columns of a token */
};

typedef struct table {
    weir_lens_sink sink; /* first: what callers hold */
    weir_lens_text_options o;
    bool utf8;
    const weir_lens_about *a;
    int label, number, cell; /* columns of a line's name, of a number, of a cell */
    int64_t per_page, room;  /* positions */
    /* the document that is being gathered */
    int64_t doc, n;
    bool drawn; /* some of it has been drawn: the ramp is made */
    bool any;   /* some document has been drawn */
    weir_lens_ramp ramp;
    int64_t *pos;           /* [room] */
    int32_t *id;            /* [room] */
    int32_t *next;          /* [room] */
    weir_lens_split *split; /* [room] */
    float *value;           /* [n_lines, room] */
    int32_t *top;           /* [n_lines, room, k] */
    float *logprob;         /* [n_lines, room, k] */
    float *sorted;          /* [n_lines * room] */
    weir_text text, raw;
} table;

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for the table");
}

/* --- the head */

/* What makes the numbers comparable with another run's. */
static void put_provenance(table *t)
{
    static const char *const norm[] = {"each row's own statistics", "CACHED: divided by the final row's scale",
                                       "NONE: rows as they are"};
    FILE *out = t->sink.out;
    const weir_lens_about *a = t->a;
    int kind = strcmp(a->norm, "recompute") == 0 ? 0 : strcmp(a->norm, "cached") == 0 ? 1 : 2;
    weir_put_safe(t->sink.out, &t->text, a->lens);
    fprintf(out, "; final norm: %s", norm[kind]);
    if (a->no_softcap)
        fputs("; soft cap LEFT OUT", out);
    if (a->padding_masked && a->padding_from < a->V)
        fprintf(out, "; tokens from #%lld on LEFT OUT", (long long)a->padding_from);
    fprintf(out, "; BOS %s\n", a->run.bos ? "yes" : "no");
    char *changes = a->run.interventions ? weir_changes_words(a->run.interventions) : NULL;
    if (!changes)
        return;
    fputs("values changed by ", out);
    weir_put_safe(t->sink.out, &t->text, changes);
    fputc('\n', out);
    free(changes);
}

static weir_status put_head(table *t, weir_err *err)
{
    FILE *out = t->sink.out;
    char *shown = weir_lens_shown_text(t->a);
    if (!shown)
        return no_memory(err);
    fputs("logit-lens  ", out);
    weir_bold_begin(out, t->o.colour);
    weir_put_safe(t->sink.out, &t->text, t->a->run.model);
    weir_colour_end(out, t->o.colour);
    fputs("  ", out);
    weir_put_safe(t->sink.out, &t->text, t->a->run.source);
    fputc('\n', out);
    put_provenance(t);
    fprintf(out, "%s: ", weir_lens_stat_name[t->a->shown]);
    weir_put_safe(t->sink.out, &t->text, shown);
    fputs("; *: the token that follows\n", out);
    free(shown);
    return WEIR_OK;
}

/* --- cells */

/* The first n bytes of t->text that fit into so many columns, the last one a sign that more follows; then spaces. */
static void put_fitted(table *t, int columns)
{
    const char *p = t->text.p;
    size_t n = t->text.n, at = 0, cut = 0;
    int64_t used = 0, cut_used = 0;
    uint32_t cp;
    while (at < n) {
        int len = weir_utf8_at(p + at, n - at, &cp);
        int64_t wide = weir_text_columns(p + at, (size_t)(len ? len : 1));
        if (used + wide > columns)
            break;
        used += wide;
        at += (size_t)(len ? len : 1);
        if (used < columns) {
            cut = at;
            cut_used = used;
        }
    }
    bool whole = at == n;
    fwrite(p ? p : "", 1, whole ? at : cut, t->sink.out);
    if (!whole)
        fputs(t->utf8 ? "\u2026" : "~", t->sink.out);
    fprintf(t->sink.out, "%*s", (int)(columns - (whole ? used : cut_used + 1)), "");
}

/* Makes a space at byte `at` of t->text visible. */
static void show_space(table *t, size_t at)
{
    if (t->text.failed || t->text.n == at || t->text.p[at] != ' ')
        return;
    if (!t->utf8) {
        t->text.p[at] = '_';
        return;
    }
    weir_text_add(&t->text, " ", 1); /* room: the dot has two bytes */
    if (t->text.failed)
        return;
    memmove(t->text.p + at + 2, t->text.p + at + 1, t->text.n - at - 2);
    memcpy(t->text.p + at, "\u00b7", 2);
}

/* Appends a token. */
static void add_token(table *t, int32_t id)
{
    size_t at = t->text.n;
    weir_lens_token(&t->text, t->sink.tok, id);
    show_space(t, at);
}

/* Appends the token at a position; of a character that is split over tokens all of it, and which part this one is. */
static void add_input(table *t, int64_t i)
{
    const weir_lens_split *s = &t->split[i];
    size_t at = t->text.n;
    char part[48];
    if (s->n == 1) {
        add_token(t, t->id[i]);
        return;
    }
    t->raw.n = 0;
    for (int64_t k = s->first; k < s->first + s->n; k++) {
        weir_str bytes = weir_tokenizer_bytes(t->sink.tok, t->id[k]);
        weir_text_add(&t->raw, bytes.p, bytes.n);
    }
    weir_text_printable(&t->text, t->raw.p, t->raw.n);
    show_space(t, at);
    int n = snprintf(part, sizeof part, "%lld/%lld", (long long)(i - s->first + 1), (long long)s->n);
    weir_text_add(&t->text, part, (size_t)n);
}

/* The j-th likeliest token at position i of a line. Below the first one, numbers are probabilities or left out. */
static void put_cell(table *t, int line, int64_t i, int64_t j)
{
    FILE *out = t->sink.out;
    char number[16] = "";
    int64_t at = line * t->room + i, top = at * t->a->k + j;
    bool own = t->a->shown == WEIR_STAT_PROB && !t->a->target;
    if (j == 0)
        weir_lens_short(number, t->a->shown, t->value[at]);
    else if (own)
        weir_lens_short(number, WEIR_STAT_PROB, (float)exp((double)t->logprob[top]));
    bool coloured = j == 0 && weir_heat_begin(out, t->o.colour, weir_lens_ramp_at(&t->ramp, (double)t->value[at]));
    t->text.n = 0;
    if (t->top[top] >= 0)
        add_token(t, t->top[top]);
    else
        weir_text_add(&t->text, "-", 1);
    fputc(t->top[top] >= 0 && t->top[top] == t->next[i] ? '*' : ' ', out);
    put_fitted(t, TOKEN);
    fprintf(out, " %*s", t->number, number);
    if (coloured)
        weir_colour_end(out, t->o.colour);
}

/* --- pages of positions [first, end) */

static void put_inputs(table *t, int64_t first, int64_t end)
{
    fprintf(t->sink.out, "%-*s", t->label, weir_lens_stat_name[t->a->shown]);
    for (int64_t i = first; i < end; i++) {
        char pos[24];
        t->text.n = 0;
        weir_text_add(&t->text, pos, (size_t)snprintf(pos, sizeof pos, "%lld ", (long long)t->pos[i]));
        add_input(t, i);
        fputs(i == first ? " " : "  ", t->sink.out);
        put_fitted(t, t->cell - 1);
    }
    fputc('\n', t->sink.out);
}

static void put_line(table *t, int line, int64_t first, int64_t end)
{
    for (int64_t j = 0; j < t->a->k; j++) {
        fprintf(t->sink.out, "%-*s", t->label, j ? "" : t->a->line[line].name);
        for (int64_t i = first; i < end; i++) {
            fputs(i == first ? "" : " ", t->sink.out);
            put_cell(t, line, i, j);
        }
        fputc('\n', t->sink.out);
    }
}

static void put_page(table *t, int64_t first, int64_t end)
{
    int n = t->a->n_lines;
    fputc('\n', t->sink.out);
    if (!t->o.bottom_up)
        put_inputs(t, first, end);
    for (int l = 0; l < n; l++)
        put_line(t, t->o.bottom_up ? n - 1 - l : l, first, end);
    if (t->o.bottom_up)
        put_inputs(t, first, end);
}

/* The scale of the colours: of the document as far as it has been gathered when it is first drawn, without what is
 * often far from all else: the first position, and the line embed. */
static void make_ramp(table *t)
{
    int64_t n = 0, from = t->n > 1;
    for (int l = 0; l < t->a->n_lines; l++)
        for (int64_t i = from; i < t->n && t->a->line[l].layer >= 0; i++)
            t->sorted[n++] = t->value[l * t->room + i];
    t->ramp = weir_lens_ramp_of(t->a->shown, t->sorted, n);
}

static weir_status draw(table *t, weir_err *err)
{
    if (!t->drawn) {
        make_ramp(t);
        if (t->any || t->doc)
            fprintf(t->sink.out, "\ndocument %lld\n", (long long)t->doc);
    }
    t->drawn = t->any = true;
    weir_lens_split_of(t->split, t->sink.tok, t->id, t->pos, t->n, &t->raw);
    for (int64_t first = 0; first < t->n; first += t->per_page)
        put_page(t, first, t->n - first < t->per_page ? t->n : first + t->per_page);
    t->n = 0;
    return t->text.failed || t->raw.failed ? no_memory(err) : WEIR_OK;
}

/* --- the sink */

static void lay_out(table *t)
{
    const weir_lens_about *a = t->a;
    size_t label = strlen(weir_lens_stat_name[a->shown]);
    for (int l = 0; l < a->n_lines; l++)
        label = strlen(a->line[l].name) > label ? strlen(a->line[l].name) : label;
    t->label = (int)label + 1;
    t->number = weir_lens_short_columns(a->shown, a->V);
    t->cell = 1 + TOKEN + 1 + t->number;
    t->per_page = (t->o.width - t->label + 1) / (t->cell + 1);
    t->per_page = t->per_page > 1 ? t->per_page : 1;
    int64_t position =
        a->n_lines * (a->k * (int64_t)(sizeof *t->top + sizeof *t->logprob) + 2 * (int64_t)sizeof *t->value);
    int64_t block = BOUND / position < BLOCK ? BOUND / position : BLOCK;
    t->room = block > t->per_page ? block / t->per_page * t->per_page : t->per_page;
}

static weir_status begin(weir_lens_sink *sink, const weir_lens_about *a, weir_err *err)
{
    table *t = (table *)sink;
    t->a = a;
    lay_out(t);
    size_t cells = (size_t)t->room * (size_t)a->n_lines, tops = cells * (size_t)a->k;
    t->pos = malloc(sizeof *t->pos * (size_t)t->room);
    t->id = malloc(sizeof *t->id * (size_t)t->room);
    t->next = malloc(sizeof *t->next * (size_t)t->room);
    t->split = malloc(sizeof *t->split * (size_t)t->room);
    t->value = malloc(sizeof *t->value * cells);
    t->top = malloc(sizeof *t->top * tops);
    t->logprob = malloc(sizeof *t->logprob * tops);
    t->sorted = malloc(sizeof *t->sorted * cells);
    if (!t->pos || !t->id || !t->next || !t->split || !t->value || !t->top || !t->logprob || !t->sorted)
        return no_memory(err);
    return put_head(t, err);
}

/* Positions [from, from + n) of the piece. */
static void gather(table *t, const weir_lens_piece *p, int64_t from, int64_t n)
{
    const size_t k = (size_t)t->a->k;
    memcpy(t->pos + t->n, p->pos + from, sizeof *t->pos * (size_t)n);
    memcpy(t->id + t->n, p->id + from, sizeof *t->id * (size_t)n);
    memcpy(t->next + t->n, p->next + from, sizeof *t->next * (size_t)n);
    for (int l = 0; l < t->a->n_lines; l++) {
        size_t to = (size_t)(l * t->room + t->n), at = (size_t)(l * p->n + from);
        memcpy(t->value + to, p->stat[t->a->shown] + at, sizeof *t->value * (size_t)n);
        memcpy(t->top + to * k, p->top_id + at * k, sizeof *t->top * (size_t)n * k);
        memcpy(t->logprob + to * k, p->top_logprob + at * k, sizeof *t->logprob * (size_t)n * k);
    }
    t->n += n;
}

static weir_status piece(weir_lens_sink *sink, const weir_lens_piece *p, weir_err *err)
{
    table *t = (table *)sink;
    if (p->doc_begins)
        t->drawn = false;
    t->doc = p->doc;
    for (int64_t from = 0, n; from < p->n; from += n) {
        n = t->room - t->n < p->n - from ? t->room - t->n : p->n - from;
        gather(t, p, from, n);
        if (t->n == t->room)
            WEIR_TRY(draw(t, err));
    }
    return p->doc_ends && t->n ? draw(t, err) : WEIR_OK;
}

static weir_status end(weir_lens_sink *sink, weir_err *err)
{
    table *t = (table *)sink;
    return t->n ? draw(t, err) : WEIR_OK;
}

static void drop(weir_lens_sink *sink)
{
    table *t = (table *)sink;
    if (!t)
        return;
    weir_text_free(&t->text);
    weir_text_free(&t->raw);
    void *const own[] = {t->pos, t->id, t->next, t->split, t->value, t->top, t->logprob, t->sorted, t};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

weir_lens_sink *weir_lens_text_new(FILE *out, const weir_tokenizer *tok, const weir_lens_text_options *o)
{
    table *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->sink = (weir_lens_sink){begin, piece, end, drop, out, tok};
    t->o = *o;
    t->utf8 = weir_utf8_locale();
    return &t->sink;
}

/* --compare: what the model says as it is, and what it says as the command line has changed it, side by side. Words
 * that the two do not have in common are coloured: those outside of a longest common subsequence (Hunt and McIlroy
 * 1976, "An algorithm for differential file comparison").
 */
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/say.h"
#include "cli/terminal.h"
#include "job.h"

enum { NARROW = 60, GUTTER = 3, WORDS_MOST = 4096 };

/* White space in front of a word belongs to it. */
typedef struct word {
    const char *p;
    size_t n;
    bool common;
} word;

typedef struct side {
    weir_text text; /* printable */
    word *word;
    int64_t n;
} side;

/* --- words */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t';
}

static bool split(side *s, const weir_gen_seq *seq)
{
    weir_gen_printable(&s->text, seq->text_n ? seq->text : "", seq->text_n);
    for (size_t i = 0; i < s->text.n; i++)
        s->text.p[i] = s->text.p[i] == '\t' ? ' ' : s->text.p[i]; /* its columns are not known */
    s->word = calloc(s->text.n + 1, sizeof *s->word);
    if (s->text.failed || !s->word)
        return false;
    for (size_t i = 0; i < s->text.n;) {
        size_t end = i;
        while (end < s->text.n && is_space(s->text.p[end]))
            end++;
        while (end < s->text.n && !is_space(s->text.p[end]))
            end++;
        s->word[s->n++] = (word){.p = s->text.p + i, .n = end - i};
        i = end;
    }
    return true;
}

static bool same_word(const word *a, const word *b)
{
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* Marks the words of a longest common subsequence. Texts of very many words share their beginning alone. */
static bool mark_common(side *a, side *b)
{
    const size_t wide = (size_t)b->n + 1;
    int64_t i = 0, k = 0;
    if (a->n > WORDS_MOST || b->n > WORDS_MOST) {
        for (; i < a->n && i < b->n && same_word(&a->word[i], &b->word[i]); i++)
            a->word[i].common = b->word[i].common = true;
        return true;
    }
    uint16_t *most = calloc(((size_t)a->n + 1) * wide, sizeof *most); /* of the words from i and k on */
    if (!most)
        return false;
    for (i = a->n; i-- > 0;)
        for (k = b->n; k-- > 0;) {
            uint16_t *at = &most[(size_t)i * wide + (size_t)k];
            *at = same_word(&a->word[i], &b->word[k]) ? (uint16_t)(at[wide + 1] + 1)
                  : at[1] > at[wide]                  ? at[1]
                                                      : at[wide];
        }
    for (i = k = 0; i < a->n && k < b->n;) {
        const uint16_t *at = &most[(size_t)i * wide + (size_t)k];
        if (same_word(&a->word[i], &b->word[k]))
            a->word[i++].common = b->word[k++].common = true;
        else if (at[1] > at[wide])
            k++;
        else
            i++;
    }
    free(most);
    return true;
}

/* --- lines */

/* A place in a side: byte `at` of its next word. */
typedef struct cursor {
    const side *s;
    int64_t word;
    size_t at;
    const char *colour; /* of what differs; "" for none */
} cursor;

static void put(const cursor *c, const word *w, const char *p, size_t n)
{
    bool marked = !w->common && *c->colour;
    printf("%s%.*s%s", marked ? c->colour : "", (int)n, p, marked ? "\033[0m" : "");
}

/* Bytes of p[n] that fit into so many columns, whole characters and at least one; *columns: theirs. */
static size_t fitting(const char *p, size_t n, int64_t room, int64_t *columns)
{
    size_t at = 0;
    uint32_t cp;
    *columns = 0;
    while (at < n) {
        int len = weir_utf8_at(p + at, n - at, &cp);
        size_t part = len ? (size_t)len : 1;
        int64_t more = weir_text_columns(p + at, part);
        if (at && *columns + more > room)
            break;
        *columns += more;
        at += part;
    }
    return at;
}

/* Writes the next line; returns its columns. */
static int64_t put_line(cursor *c, int64_t width)
{
    int64_t used = 0;
    while (c->word < c->s->n) {
        const word *w = &c->s->word[c->word];
        const char *p = w->p + c->at;
        size_t n = w->n - c->at, blank = 0;
        const char *newline = memchr(p, '\n', n);
        if (newline) { /* it ends the line; blanks before it are not seen */
            c->at += (size_t)(newline - p) + 1;
            return used;
        }
        while (blank < n && p[blank] == ' ')
            blank++;
        if (used == 0) { /* a line begins with a word */
            p += blank;
            n -= blank;
            c->at += blank;
        }
        int64_t columns = weir_text_columns(p, n);
        if (used && used + columns > width)
            return used;
        size_t part = columns > width ? fitting(p, n, width, &columns) : n;
        put(c, w, p, part);
        used += columns;
        if (part < n) {
            c->at += part;
            return used;
        }
        c->word++;
        c->at = 0;
    }
    return used;
}

static bool more(const cursor *c)
{
    return c->word < c->s->n;
}

static void put_blanks(int64_t n)
{
    printf("%*s", (int)(n > 0 ? n : 0), "");
}

static void put_beside(cursor *a, cursor *b, int width)
{
    const int column = (width - GUTTER) / 2;
    printf("%-*s | %s\n", column, "before", "after");
    do {
        int64_t used = put_line(a, column);
        put_blanks(column - used);
        fputs(more(b) ? " | " : " |", stdout);
        put_line(b, column);
        fputc('\n', stdout);
    } while (more(a) || more(b));
}

static void put_stacked(cursor *a, cursor *b, int width)
{
    cursor *const c[] = {a, b};
    for (int i = 0; i < 2; i++) {
        puts(i ? "after:" : "before:");
        do {
            put_line(c[i], width);
            fputc('\n', stdout);
        } while (more(c[i]));
    }
}

/* --- pairs */

static bool show_pair(weir_gen_job *j, const weir_gen_seq *before, const weir_gen_seq *after, int width)
{
    side a = {0}, b = {0};
    bool ok = split(&a, before) && split(&b, after) && mark_common(&a, &b);
    if (ok) {
        cursor left = {.s = &a, .colour = j->shade ? "\033[31m" : ""},
               right = {.s = &b, .colour = j->shade ? "\033[32m" : ""};
        if (after != j->arm.seq)
            fputc('\n', stdout);
        if (j->shade)
            fputs("\033[1m", stdout);
        weir_gen_put_text(j, after->prompt->text, after->prompt->text_n);
        puts(j->shade ? "\033[0m" : "");
        (width < NARROW ? put_stacked : put_beside)(&left, &right, width);
    }
    weir_text_free(&a.text);
    weir_text_free(&b.text);
    free(a.word);
    free(b.word);
    return ok;
}

static void put_member(weir_jsonw *w, const char *key, const weir_gen_seq *s)
{
    weir_jsonw_key(w, key);
    weir_jsonw_object(w);
    weir_gen_put_seq(w, s);
    weir_jsonw_end(w);
}

static void put_pair(weir_jsonw *w, const weir_gen_job *j, int64_t i)
{
    const weir_gen_seq *before = &j->plain.seq[i], *after = &j->arm.seq[i];
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "doc", after->prompt->doc.doc.index);
    weir_jsonw_key_int(w, "sample", after->sample);
    weir_jsonw_key(w, "prompt");
    weir_jsonw_str(w, after->prompt->text, after->prompt->text_n);
    put_member(w, "before", before);
    put_member(w, "after", after);
    weir_jsonw_end(w);
}

int weir_gen_compare(weir_gen_job *j)
{
    const int width = weir_width_of(j->a->width, stdout);
    weir_jsonw w;
    bool ok = true;
    weir_jsonw_init(&w, stdout);
    if (j->format == WEIR_GEN_JSON) {
        weir_jsonw_object(&w);
        weir_jsonw_key_cstr(&w, "model", j->session.info->name);
        weir_jsonw_key(&w, "texts");
        weir_jsonw_array(&w);
    }
    for (int64_t i = 0; i < j->n_seq && ok; i++) {
        if (j->format == WEIR_GEN_TEXT) {
            ok = show_pair(j, &j->plain.seq[i], &j->arm.seq[i], width);
            continue;
        }
        put_pair(&w, j, i);
        if (j->format == WEIR_GEN_NDJSON)
            putchar('\n'), weir_jsonw_init(&w, stdout);
    }
    if (j->format == WEIR_GEN_JSON) {
        weir_jsonw_end(&w);
        weir_jsonw_end(&w);
        putchar('\n');
    }
    return ok ? WEIR_EXIT_OK : weir_cli_error(j->cli, "out of memory for two texts side by side");
}

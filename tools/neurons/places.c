/* A list on the terminal: rank, value, document:position, how often, and the token in its context:
 *
 *      1  +2.118  12:7   x3  ... the river bends at[ Dover]. A boat ...  then '.'
 *
 * Contexts are cut around the token so that a line fits, between pieces and never inside of one. */
#include <math.h>
#include <string.h>

#include "text.h"

enum { SHORT = 60, NEXT_COLUMNS = 18 }; /* narrower terminals: what came next is not told apart; columns kept for it */

typedef struct layout {
    int rank, value, place, count; /* columns */
    bool next;                     /* what came next has a column */
    int64_t left, right;           /* columns of context on both sides; INT64_MAX: as many as there are */
    const char *dots;              /* what stands for text that is left out */
    int64_t dot_columns;
} layout;

/* Points stand one below the other wherever a value has digits behind it. */
static void value_text(char buf[32], float x)
{
    double size = fabs((double)x);
    snprintf(buf, 32, isnan(x) ? "nan" : size == 0 || (size >= 0.001 && size < 1e6) ? "%+.3f" : "%+.3g", (double)x);
}

static void place_text(char buf[48], const weir_neuron_hit *hit)
{
    snprintf(buf, 48, "%lld:%lld", (long long)hit->doc, (long long)hit->pos);
}

/* Nothing where a place stands for itself alone. */
static void count_text(char buf[32], const weir_neuron_hit *hit)
{
    buf[0] = 0;
    if (hit->count > 1)
        snprintf(buf, 32, "x%lld", (long long)hit->count);
    else if (hit->count == 0)
        snprintf(buf, 32, "x?");
}

static void widen(int *columns, const char *text)
{
    int n = (int)strlen(text);
    *columns = n > *columns ? n : *columns;
}

/* --- one context */

/* A side of a context: pieces from the token outwards, as many as fit. */
typedef struct side {
    int64_t n, columns; /* pieces; columns they take, dots included */
    bool dots;
} side;

/* more: the document goes on beyond the last piece. */
static side fit(const weir_pieces *p, int64_t from, int step, bool more, int64_t room, const layout *l)
{
    side s = {0}, best = {.dots = true, .columns = l->dot_columns};
    int64_t there = step < 0 ? from + 1 : p->n - from;
    while (s.n < there && !(p->piece[from + step * s.n].cut) &&
           s.columns + p->piece[from + step * s.n].columns <= room) {
        s.columns += p->piece[from + step * s.n++].columns;
        if (s.columns + l->dot_columns <= room)
            best = (side){.n = s.n, .columns = s.columns + l->dot_columns, .dots = true};
    }
    if (s.n == there && !more)
        return s;
    return best;
}

typedef struct fitted {
    side left, right;
} fitted;

/* Pieces of the context of a place; false: out of memory. n = 0 pieces: nothing is kept. */
static bool make(weir_screen *s, const weir_neuron_hit *hit, int named, weir_neurons_context *c)
{
    int64_t first, end;
    *c = weir_neurons_context_of(s->v->s, hit->doc, hit->pos, named);
    s->pieces.n = 0;
    if (c->n == 0)
        return true;
    weir_view_window(s->v, c, &first, &end);
    return weir_pieces_make(&s->pieces, s->v->s, c, first, end);
}

static fitted fit_both(const weir_screen *s, const weir_neurons_context *c, const layout *l)
{
    const weir_pieces *p = &s->pieces;
    const weir_piece *last = &p->piece[p->n - 1];
    bool before = p->piece[0].first > 0 || !c->begins, after = last->first + last->n < c->n || !c->ends;
    return (fitted){.left = fit(p, p->hit - 1, -1, before, l->left, l),
                    .right = fit(p, p->hit + 1, 1, after, l->right, l)};
}

/* The value that colours a piece: the largest magnitude of its tokens; the token of the place is known in any case. */
static double heat_of(const weir_neurons_context *c, const weir_piece *piece, const weir_neuron_hit *hit)
{
    double best = c->hit >= piece->first && c->hit < piece->first + piece->n ? (double)hit->value : 0;
    for (int64_t i = piece->first; c->value && i < piece->first + piece->n; i++)
        if (fabs((double)c->value[i]) > fabs(best))
            best = (double)c->value[i];
    return best;
}

static void put_piece(const weir_screen *s, const weir_piece *piece, double heat)
{
    FILE *out = s->v->out;
    bool coloured = weir_heat_begin(out, s->v->colour, heat);
    if (!coloured && piece->special)
        weir_faint_begin(out, s->v->colour);
    fwrite(s->pieces.text.p + piece->at, 1, piece->len, out);
    if (coloured || piece->special)
        weir_colour_end(out, s->v->colour);
}

/* The token of the place, in brackets, and which part of a split character it is. */
static void put_hit(const weir_screen *s, const weir_piece *piece, double heat)
{
    FILE *out = s->v->out;
    weir_bold_begin(out, s->v->colour);
    fputc('[', out);
    weir_heat_begin(out, s->v->colour, heat);
    fwrite(s->pieces.text.p + piece->at, 1, piece->len, out);
    weir_colour_end(out, s->v->colour);
    weir_bold_begin(out, s->v->colour);
    fputc(']', out);
    if (s->pieces.parts > 1)
        fprintf(out, "%lld/%lld", (long long)s->pieces.part, (long long)s->pieces.parts);
    weir_colour_end(out, s->v->colour);
}

static void put_context(const weir_screen *s, const weir_neurons_context *c, const weir_neuron_hit *hit,
                        const layout *l, int64_t left, double scale)
{
    const weir_pieces *p = &s->pieces;
    fitted f = fit_both(s, c, l);
    fprintf(s->v->out, "%*s%s", (int)(left - f.left.columns), "", f.left.dots ? l->dots : "");
    for (int64_t i = p->hit - f.left.n; i <= p->hit + f.right.n; i++) {
        double heat = scale > 0 ? heat_of(c, &p->piece[i], hit) / scale : 0;
        i == p->hit ? put_hit(s, &p->piece[i], heat) : put_piece(s, &p->piece[i], heat);
    }
    if (f.right.dots)
        fputs(l->dots, s->v->out);
}

/* --- the list */

static layout plan(const weir_screen *s, int64_t n)
{
    layout l = {.rank = 2, .dots = s->utf8 ? "\u2026" : "...", .dot_columns = s->utf8 ? 1 : 3};
    char buf[48];
    snprintf(buf, sizeof buf, "%lld", (long long)n);
    widen(&l.rank, buf);
    for (int64_t i = 0; i < n; i++) {
        value_text(buf, s->hit[i].value);
        widen(&l.value, buf);
        place_text(buf, &s->hit[i]);
        widen(&l.place, buf);
        count_text(buf, &s->hit[i]);
        widen(&l.count, buf);
    }
    l.next = s->v->width <= 0 || s->v->width >= SHORT;
    l.left = l.right = INT64_MAX;
    if (s->v->width > 0) {
        int used =
            2 + l.rank + 2 + l.value + 2 + l.place + 2 + (l.count ? l.count + 2 : 0) + (l.next ? NEXT_COLUMNS + 2 : 0);
        l.left = s->v->width - used; /* of the whole context, until the tokens are known */
    }
    return l;
}

/* Columns of the place's token, with its brackets. */
static int64_t hit_columns(const weir_pieces *p)
{
    char part[48];
    int64_t more = p->parts > 1 ? snprintf(part, sizeof part, "%lld/%lld", (long long)p->part, (long long)p->parts) : 0;
    return p->piece[p->hit].columns + 2 + more;
}

/* The context's columns are shared out: the widest token, then three fifths of the rest to what stands before it. */
static bool share(weir_screen *s, int64_t n, int named, layout *l)
{
    weir_neurons_context c;
    int64_t widest = 0;
    for (int64_t i = 0; i < n && l->left < INT64_MAX; i++) {
        if (!make(s, &s->hit[i], named, &c))
            return false;
        int64_t columns = c.n ? hit_columns(&s->pieces) : 0;
        widest = columns > widest ? columns : widest;
    }
    if (l->left < INT64_MAX) {
        int64_t rest = l->left - widest > 2 * l->dot_columns ? l->left - widest : 2 * l->dot_columns;
        l->left = 3 * rest / 5;
        l->right = rest - l->left;
    }
    return true;
}

static void put_next(weir_screen *s, const weir_neurons_context *c)
{
    int32_t next = weir_context_next(c);
    if (next < 0)
        return;
    s->text.n = 0;
    weir_text_token(&s->text, weir_neurons_token(s->v->s, next), next);
    if (s->text.failed || (s->v->width > 0 && weir_text_columns(s->text.p, s->text.n) > NEXT_COLUMNS - 7))
        return; /* it is too long for its column, and stands in the context */
    fprintf(s->v->out, "  then '%.*s'", (int)s->text.n, s->text.p);
}

static bool put_line(weir_screen *s, const weir_neuron_hit *hit, int64_t rank, int named, const layout *l, int64_t left,
                     double scale)
{
    weir_neurons_context c;
    char value[32], place[48], count[32];
    if (!make(s, hit, named, &c))
        return false;
    value_text(value, hit->value);
    place_text(place, hit);
    count_text(count, hit);
    fprintf(s->v->out, "  %*lld  %*s  %-*s  ", l->rank, (long long)rank, l->value, value, l->place, place);
    if (l->count)
        fprintf(s->v->out, "%-*s  ", l->count, count);
    if (c.n)
        put_context(s, &c, hit, l, left, scale);
    if (c.n && l->next)
        put_next(s, &c);
    fputc('\n', s->v->out);
    return true;
}

bool weir_screen_places(weir_screen *s, const weir_shown *neuron, int64_t n, double scale)
{
    int named = weir_neurons_find_named(s->v->s, neuron->table, neuron->neuron);
    layout l = plan(s, n);
    int64_t left = 0;
    if (!share(s, n, named, &l))
        return false;
    for (int64_t i = 0; i < n; i++) { /* how far to the right the tokens stand */
        weir_neurons_context c;
        if (!make(s, &s->hit[i], named, &c))
            return false;
        int64_t columns = c.n ? fit_both(s, &c, &l).left.columns : 0;
        left = columns > left ? columns : left;
    }
    if (l.left < INT64_MAX) { /* what the left sides leave free is the right sides' */
        l.right += l.left - left;
        l.left = left;
    }
    for (int64_t i = 0; i < n; i++)
        if (!put_line(s, &s->hit[i], i + 1, named, &l, left, scale))
            return false;
    return true;
}

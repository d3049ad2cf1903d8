/* added.c: leftmost-longest search for added tokens. */
#include "added.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "unicode.h"

static int compare(const weir_tok_key *a, const weir_tok_key *b)
{
    size_t n = a->text.n < b->text.n ? a->text.n : b->text.n;
    int order = memcmp(a->text.p, b->text.p, n);
    return order ? order : (a->text.n > b->text.n) - (a->text.n < b->text.n);
}

/* Equal texts stand in their old order, which is that of the tokens in memory. */
static int compare_stable(const void *x, const void *y)
{
    const weir_tok_key *a = x, *b = y;
    int order = compare(a, b);
    return order ? order : (a->token > b->token) - (a->token < b->token);
}

void weir_tok_finder_init(weir_tok_finder *f, weir_tok_key *key, size_t n)
{
    *f = (weir_tok_finder){.key = key, .only = -1};
    if (n)
        qsort(key, n, sizeof *key, compare_stable);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || compare(&key[i], &key[i + 1]) != 0)
            key[f->n++] = key[i];
    for (size_t i = 0; i < f->n; i++)
        f->from[(uint8_t)key[i].text.p[0] + 1]++;
    for (int b = 0; b < 256; b++) {
        if (f->n && f->from[b + 1] == f->n)
            f->only = b;
        f->from[b + 1] += f->from[b];
    }
}

void weir_tok_finder_free(weir_tok_finder *f)
{
    weir_free(f->key);
    *f = (weir_tok_finder){0};
}

/* The first key of [low, high) whose byte `depth` is >= b; all of them share the bytes before and are longer than
 * depth. */
static size_t lower_bound(const weir_tok_finder *f, size_t low, size_t high, size_t depth, unsigned b)
{
    while (low < high) {
        size_t mid = (low + high) / 2;
        if ((uint8_t)f->key[mid].text.p[depth] < b)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool has(const weir_tok_key *key, size_t depth, unsigned b)
{
    return (uint8_t)key->text.p[depth] == b;
}

/* The longest key that p[0, n) begins with, or NULL. */
static const weir_tok_key *longest_at(const weir_tok_finder *f, const uint8_t *p, size_t n)
{
    const weir_tok_key *best = NULL;
    size_t low = f->from[p[0]], high = f->from[p[0] + 1];
    for (size_t depth = 1; low < high; depth++) {
        if (f->key[low].text.n == depth)
            best = &f->key[low++];
        if (depth == n)
            break;
        if (low < high && has(&f->key[low], depth, p[depth]) && has(&f->key[high - 1], depth, p[depth]))
            continue; /* and so have all between them */
        low = lower_bound(f, low, high, depth, p[depth]);
        high = lower_bound(f, low, high, depth, p[depth] + 1u);
    }
    return best;
}

/* The next place at or behind i where a key may begin, or n. */
static size_t candidate(const weir_tok_finder *f, const uint8_t *p, size_t n, size_t i)
{
    if (f->only >= 0) {
        const uint8_t *hit = i < n ? memchr(p + i, f->only, n - i) : NULL;
        return hit ? (size_t)(hit - p) : n;
    }
    while (i < n && f->from[p[i]] == f->from[p[i] + 1])
        i++;
    return i;
}

static bool touches_word(const uint8_t *p, size_t n, size_t begin, size_t end)
{
    int len;
    if (begin > 0) {
        size_t before = weir_cp_before(p, begin);
        if (weir_cp_class_at(p + before, begin - before, &len) & WEIR_CP_WORD)
            return true;
    }
    return end < n && weir_cp_class_at(p + end, n - end, &len) & WEIR_CP_WORD;
}

static size_t strip_left(const uint8_t *p, size_t begin, size_t done)
{
    int len;
    while (begin > done) {
        size_t before = weir_cp_before(p, begin);
        if (!(weir_cp_class_at(p + before, begin - before, &len) & WEIR_CP_SPACE))
            break;
        begin = before;
    }
    return begin;
}

/* The end of the white space at `end`. Tokens that are white space themselves may stand in a run that an earlier one
 * has looked through: such a run is not walked again. */
static size_t strip_right(const uint8_t *p, size_t n, size_t end, weir_tok_search *s)
{
    int len;
    if (end < s->space_end)
        return s->space_end;
    while (end < n && weir_cp_class_at(p + end, n - end, &len) & WEIR_CP_SPACE)
        end += (size_t)len;
    return s->space_end = end;
}

bool weir_tok_find_next(const weir_tok_finder *f, const uint8_t *p, size_t n, weir_tok_search *s, weir_tok_hit *hit)
{
    if (!f->n)
        return false;
    for (size_t i = candidate(f, p, n, s->pos); i < n; i = candidate(f, p, n, i)) {
        const weir_tok_key *key = longest_at(f, p + i, n - i);
        if (!key) {
            i++;
            continue;
        }
        size_t begin = i, end = i + key->text.n;
        i = end;
        if (key->token->single_word && touches_word(p, n, begin, end))
            continue;
        *hit = (weir_tok_hit){key->token, begin, end, begin, end};
        if (key->token->rstrip)
            hit->to = strip_right(p, n, end, s);
        if (key->token->lstrip)
            hit->from = strip_left(p, begin, s->done);
        if (key->token->lstrip && hit->to <= s->done)
            continue; /* the token before swallowed it, being white space itself */
        s->pos = end;
        s->done = hit->to;
        return true;
    }
    return false;
}

/* survey/survey.c: making a result, and feeding it positions. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "survey/impl.h"

/* --- making one */

void weir_survey_free(weir_survey *c)
{
    if (!c)
        return;
    for (int i = 0; c->line && i < c->n; i++) {
        weir_free((void *)c->line[i].name);
        weir_free((void *)c->line[i].hook);
        weir_free((void *)c->line[i].site);
    }
    for (int i = 0; i < WEIR_SURVEY_TEXTS; i++)
        weir_free(c->text[i]);
    void *const own[] = {c->line, c->site, c->sums, c->hist, c->agree, c->right, c->settled, c->shard};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        weir_free(own[i]);
    weir_free(c);
}

static bool copy(const char **to, const char *from)
{
    return (*to = weir_strndup(from, strlen(from))) != NULL;
}

static bool copy_lines(weir_survey *c, const weir_survey_line *line)
{
    c->line = weir_calloc((size_t)c->n, sizeof *c->line);
    c->site = weir_calloc((size_t)c->n, sizeof *c->site);
    if (!c->line || !c->site)
        return false;
    for (int i = 0; i < c->n; i++) {
        c->line[i].layer = line[i].layer;
        if (!copy(&c->line[i].name, line[i].name) || !copy(&c->line[i].hook, line[i].hook) ||
            !copy(&c->line[i].site, line[i].site))
            return false;
    }
    return true;
}

/* The sites of all lines but the final row. */
static weir_status number_sites(weir_survey *c, weir_err *err)
{
    c->site[c->n - 1] = -1;
    for (int i = 0; i < c->n - 1; i++) {
        int s = 0;
        while (s < c->n_sites && strcmp(c->site_name[s], c->line[i].site) != 0)
            s++;
        if (s == WEIR_SURVEY_SITES)
            return weir_fail(err, WEIR_E_ARG, "lines of more than %d sites", WEIR_SURVEY_SITES);
        if (s == c->n_sites)
            c->site_name[c->n_sites++] = c->line[i].site;
        c->site[i] = s;
    }
    return WEIR_OK;
}

static bool make_room(weir_survey *c)
{
    const size_t n = (size_t)c->n;
    c->sums = weir_calloc(n, WEIR_SURVEY_VALUES * sizeof *c->sums);
    c->hist = weir_calloc(n, WEIR_SURVEY_VALUES * WEIR_SURVEY_BINS * sizeof *c->hist);
    c->agree = weir_calloc(n, sizeof *c->agree);
    c->right = weir_calloc(n, sizeof *c->right);
    c->settled = weir_calloc(n, ((size_t)c->n_sites + 1) * sizeof *c->settled);
    if (!c->sums || !c->hist || !c->agree || !c->right || !c->settled)
        return false;
    for (int i = 0; i < c->n * WEIR_SURVEY_VALUES; i++)
        c->sums[i] = (weir_survey_sums){.min = INFINITY, .max = -INFINITY, .hist = c->hist + i * WEIR_SURVEY_BINS};
    return true;
}

static weir_status fill(weir_survey *c, const weir_survey_line *line, weir_err *err)
{
    if (!copy_lines(c, line))
        return weir_nomem(err, "the lines of a text's statistics");
    WEIR_TRY(number_sites(c, err));
    if (!make_room(c))
        return weir_nomem(err, "the statistics of a text");
    const weir_survey_about nothing = {0};
    return weir_survey_set_about(c, &nothing, err);
}

weir_status weir_survey_new(weir_survey **out, const weir_survey_line *line, int n_lines, weir_err *err)
{
    *out = NULL;
    if (n_lines < 1 || n_lines > WEIR_SURVEY_LINES)
        return weir_fail(err, WEIR_E_ARG, "statistics of 1 to %d lines, not of %d", WEIR_SURVEY_LINES, n_lines);
    weir_survey *c = weir_calloc(1, sizeof *c);
    if (!c)
        return weir_nomem(err, "the statistics of a text");
    c->n = n_lines;
    weir_status st = fill(c, line, err);
    if (st)
        weir_survey_free(c);
    else
        *out = c;
    return st;
}

/* --- feeding */

/* x in units of 2^-64, |x| < 2^20; halves are rounded away from 0. x has 24 bits, so that no shift loses one above. */
static __int128 fixed(float x)
{
    int e;
    const int64_t m = (int64_t)ldexpf(frexpf(x, &e), 24); /* x = m 2^(e - 24) */
    const int up = e - 24 + WEIR_SURVEY_FRACTION;
    if (up >= 0)
        return (__int128)m * ((__int128)1 << up);
    if (up < -25)
        return 0;
    const int64_t half = (int64_t)1 << (-up - 1), size = (m < 0 ? -m : m) + half;
    return m < 0 ? -(size >> -up) : size >> -up;
}

static void add_value(weir_survey_sums *s, float x)
{
    const int bin = weir_survey_bin(x);
    x += 0.0f; /* -0 is 0 */
    if (bin < 0) {
        s->lost++;
        return;
    }
    s->count++;
    s->hist[bin]++;
    s->sum += fixed(x);
    s->min = x < s->min ? x : s->min;
    s->max = x > s->max ? x : s->max;
}

static int32_t top_of(const weir_survey_batch *b, int line, int64_t i)
{
    return b->top_id[(line * b->n + i) * b->k];
}

/* The first line of the site from which on all have the final row's token. */
static int settles(const weir_survey *c, const weir_survey_batch *b, int site, int64_t i)
{
    int at = c->n - 1;
    const int32_t final = top_of(b, at, i);
    for (int l = c->n - 2; l >= 0; l--) {
        if (c->site[l] != site)
            continue;
        if (top_of(b, l, i) != final)
            break;
        at = l;
    }
    return at;
}

static void add_position(weir_survey *c, const weir_survey_batch *b, int64_t i)
{
    const int32_t final = top_of(b, c->n - 1, i);
    if (final < 0 || !isfinite(b->kl_final[(c->n - 1) * b->n + i])) {
        c->counts.lost++;
        return;
    }
    c->counts.seen++;
    c->counts.without_next += b->next[i] < 0;
    for (int l = 0; l < c->n; l++) {
        const int64_t at = l * b->n + i;
        const int32_t top = b->top_id[at * b->k];
        add_value(weir_survey_sums_at(c, l, WEIR_SURVEY_KL), b->kl_final[at]);
        c->agree[l] += top == final;
        if (b->next[i] < 0)
            continue;
        add_value(weir_survey_sums_at(c, l, WEIR_SURVEY_CE), 0.0f - b->logprob[at * b->n_targets + b->target]);
        c->right[l] += top == b->next[i];
    }
    for (int s = 0; s < c->n_sites; s++)
        c->settled[s * c->n + settles(c, b, s, i)]++;
}

static weir_status check(const weir_survey *c, const weir_survey_batch *b, weir_err *err)
{
    if (b->n < 0 || b->docs < 0 || b->k < 1 || b->target < 0 || b->target >= b->n_targets)
        return weir_fail(err, WEIR_E_ARG, "a batch of statistics needs the next token as a target, and k of 1 or more");
    for (int64_t i = 0; b->mask && i < b->n; i++)
        if (b->mask[i] >= WEIR_MASK_KINDS)
            return weir_fail(err, WEIR_E_ARG, "mask %d: it is 0 to %d", b->mask[i], WEIR_MASK_KINDS - 1);
    if (b->n > WEIR_SURVEY_MOST - c->counts.rows || b->docs > WEIR_SURVEY_MOST - c->counts.docs)
        return weir_fail(err, WEIR_E_ARG, "more positions than 2^41");
    return WEIR_OK;
}

weir_status weir_survey_add(weir_survey *c, const weir_survey_batch *b, weir_err *err)
{
    WEIR_TRY(check(c, b, err));
    c->counts.docs += b->docs;
    c->counts.rows += b->n;
    for (int64_t i = 0; i < b->n; i++) {
        const int why = b->mask ? b->mask[i] : 0;
        c->counts.masked[why]++;
        if (!why)
            add_position(c, b, i);
    }
    return WEIR_OK;
}

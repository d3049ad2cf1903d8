/* The second sweep: a piece of the vocabulary at a time, all rows of a position together, so that the probabilities of
 * a row are made once and lie in the nearest cache when other rows are compared with them. */
#include <math.h>

#include "lens/measure.h"

/* A task: one piece at one position. */
typedef struct place {
    const weir_lens_block *b;
    int64_t position, first, n; /* tokens [first, first + n) */
    const weir_lens_seen *seen; /* [R] */
    weir_lens_sums *sums;       /* [R] */
    weir_lens_probs *piece;     /* [slots] */
} place;

/* --- slots: the final row keeps its own, the others as long as a later row is compared with them */

static int last_use(const weir_lens_block *b, int row)
{
    int last = row;
    for (int r = row + 1; b->out->kl_prev && r < b->what->n_rows; r++)
        if (b->what->row[r].prev == row)
            last = r;
    return last;
}

static bool taken(const weir_lens_block *b, int slot, int row)
{
    for (int r = 0; r < row; r++)
        if (b->slot[r] == slot && last_use(b, r) >= row)
            return true;
    return false;
}

void weir_lens_give_slots(weir_lens_block *b)
{
    const int final = b->what->n_rows - 1;
    b->slot[final] = 0;
    b->slots = 1;
    for (int r = 0; r < final; r++) {
        int s = 1;
        while (taken(b, s, r))
            s++;
        b->slot[r] = s;
        b->slots = s + 1 > b->slots ? s + 1 : b->slots;
    }
}

/* --- distributions */

/* Some logits of the piece are -inf (only then is a sum of p ln p NaN). */
static float without_infinities(const weir_lens_lanes *lanes, weir_lens_probs *w, int64_t n)
{
    w->hollow = true;
    for (int64_t i = 0; i < n; i++)
        if (w->ln_p[i] < WEIR_LENS_NEVER)
            w->ln_p[i] = WEIR_LENS_NEVER;
    return lanes->kl(w->p, w->ln_p, NULL, n);
}

static void make(const place *c, int row)
{
    const weir_lens_lanes *lanes = c->b->l->lanes;
    weir_lens_probs *w = &c->piece[c->b->slot[row]];
    const int final = c->b->what->n_rows - 1, then = row == final ? 0 : row + 1;
    const float *x = weir_lens_logits_at(c->b, c->position, row) + c->first;
    const float *next = weir_lens_logits_at(c->b, c->position, then == final ? row : then) + c->first;
    if (!c->seen[row].good)
        return;
    w->hollow = false;
    float sum = lanes->softmax(w->p, w->ln_p, x, c->n, &c->seen[row].softmax, next);
    if (isnan(sum))
        sum = without_infinities(lanes, w, c->n);
    c->sums[row].plogp = sum;
}

/* Does p give anything to a token that q rules out? */
static bool beyond(const weir_lens_probs *p, const weir_lens_probs *q, int64_t n)
{
    for (int64_t i = 0; q->hollow && i < n; i++)
        if (q->ln_p[i] == WEIR_LENS_NEVER && p->ln_p[i] != WEIR_LENS_NEVER)
            return true;
    return false;
}

static float kl(const place *c, const weir_lens_probs *p, const weir_lens_probs *q)
{
    return beyond(p, q, c->n) ? INFINITY : c->b->l->lanes->kl(p->p, p->ln_p, q->ln_p, c->n);
}

static void compare(const place *c, int row)
{
    const weir_lens_block *b = c->b;
    const int final = b->what->n_rows - 1, prev = b->what->row[row].prev;
    const weir_lens_probs *p = &c->piece[b->slot[row]], *f = &c->piece[b->slot[final]];
    weir_lens_sums *s = &c->sums[row];
    if (!c->seen[row].good)
        return;
    if (b->out->kl_prev && prev >= 0 && c->seen[prev].good)
        s->kl_prev = kl(c, p, &c->piece[b->slot[prev]]);
    if (row == final || !c->seen[final].good)
        return;
    if (b->out->kl_final)
        s->kl_final = kl(c, f, p);
    if (b->out->jsd)
        s->jsd = b->l->lanes->jsd(p->p, p->ln_p, f->p, f->ln_p, c->n);
}

/* --- ranks */

/* Tokens of x [n] that come before token t, whose logit is y: of equal ones, those before it. */
static int64_t likelier(const weir_lens_lanes *lanes, const float *x, int64_t n, int64_t t, float y)
{
    const int64_t before = t < 0 ? 0 : t < n ? t : n;
    int64_t count = lanes->count_above(x + before, n - before, y);
    if (before > 0)
        count += y == -INFINITY ? before : lanes->count_above(x, before, nextafterf(y, -INFINITY));
    return count;
}

static void count_likelier(const place *c, int row, int32_t *count)
{
    const weir_lens_block *b = c->b;
    const float *x = weir_lens_logits_at(b, c->position, row);
    for (int j = 0; j < b->what->n_targets; j++) {
        const int32_t t = weir_lens_target(b, c->position, row, j);
        if (t >= 0 && c->seen[row].good)
            count[j] = (int32_t)likelier(b->l->lanes, x + c->first, c->n, t - c->first, x[t]);
    }
}

void weir_lens_compare_piece(void *ctx, int64_t i, int thread)
{
    const weir_lens_block *b = ctx;
    const int rows = b->what->n_rows, final = rows - 1;
    const int64_t first = i % b->pieces * WEIR_LENS_PIECE, left = b->vocab - first;
    const place c = {.b = b,
                     .position = i / b->pieces,
                     .first = first,
                     .n = left < WEIR_LENS_PIECE ? left : WEIR_LENS_PIECE,
                     .seen = b->seen + i / b->pieces * rows,
                     .sums = b->sums + i * rows,
                     .piece = b->piece + (int64_t)thread * b->slots};
    if (b->probs) {
        make(&c, final);
        for (int r = 0; r < final; r++) {
            make(&c, r);
            compare(&c, r);
        }
        compare(&c, final);
    }
    if (b->out->rank)
        for (int r = 0; r < rows; r++)
            count_likelier(&c, r, b->likelier + (i * rows + r) * b->what->n_targets);
}

/* How well a direction tells the classes apart: accuracy at its threshold, and the area under the ROC curve: the share
 * of pairs of a positive and a negative example in which the positive one lies higher (ties count half: Mann and
 * Whitney). */
#include <math.h>
#include <stdlib.h>

#include "direction.h"

typedef struct scored {
    double score;
    int class;
} scored;

typedef struct scores {
    const weir_direction *d;
    scored *one; /* of a side */
    int64_t n;
} scores;

static weir_status add_score(void *ctx, const weir_example *e, weir_err *err)
{
    scores *s = ctx;
    (void)err;
    s->one[s->n++] = (scored){weir_direction_dot(s->d, e->x), e->class};
    return WEIR_OK;
}

static int by_score(const void *a, const void *b)
{
    const double x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return x < y ? -1 : x > y;
}

static double accuracy_of(const scores *s)
{
    int64_t right = 0;
    for (int64_t i = 0; i < s->n; i++)
        right += (s->one[i].score > s->d->threshold) == (s->one[i].class == WEIR_POSITIVE);
    return (double)right / (double)s->n;
}

/* s->one ascends. */
static double auc_of(const scores *s)
{
    double below = 0, won = 0, positive = 0;
    for (int64_t i = 0, end; i < s->n; i = end) {
        double here[WEIR_CLASSES] = {0};
        for (end = i; end < s->n && s->one[end].score == s->one[i].score; end++)
            here[s->one[end].class]++;
        won += here[WEIR_POSITIVE] * (below + here[WEIR_NEGATIVE] / 2);
        below += here[WEIR_NEGATIVE];
        positive += here[WEIR_POSITIVE];
    }
    return won / (positive * below);
}

static weir_status measure_side(weir_direction *d, int side, weir_err *err)
{
    const int64_t n = d->rows[WEIR_NEGATIVE][side] + d->rows[WEIR_POSITIVE][side];
    scores s = {.d = d, .one = malloc((size_t)(n + 1) * sizeof *s.one)};
    if (!s.one)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory (here: a number for each of %lld rows)", (long long)n);
    const weir_status st = weir_examples_each(d, side, add_score, &s, err);
    if (st == WEIR_OK && s.n) {
        qsort(s.one, (size_t)s.n, sizeof *s.one, by_score);
        d->score[side] = (weir_direction_score){accuracy_of(&s), auc_of(&s)};
    }
    free(s.one);
    return st;
}

weir_status weir_direction_measure(weir_direction *d, weir_err *err)
{
    double sum = 0;
    for (int64_t c = 0; c < d->n; c++)
        sum += (double)d->vector[c] * (double)d->vector[c];
    d->norm = sqrt(sum);
    if (!(d->norm > 0))
        return weir_fail(err, WEIR_E_ARG, "the direction is zero: the classes have the same mean");
    for (int side = 0; side < WEIR_BOTH_SIDES; side++) {
        d->score[side] = (weir_direction_score){NAN, NAN};
        if (d->classes)
            WEIR_TRY(measure_side(d, side, err));
    }
    return WEIR_OK;
}

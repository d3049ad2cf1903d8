/* The logistic probe: p(positive) = 1 / (1 + exp(-(w.x + b))), with w and b that minimise
 *
 *     sum of -ln p(class of the example)  +  l2/2 |w|^2
 *
 * (as scikit-learn's LogisticRegression with C = 1/l2; the intercept is free). Newton's method, that is iteratively
 * reweighted least squares (Hastie, Tibshirani and Friedman, "The Elements of Statistical Learning", 4.4.1), with steps
 * that are halved while the loss would rise; one pass over the examples a step. Numbers are taken from the examples'
 * mean, which moves the intercept alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "direction.h"

enum { BLOCK = 64, MOST_STEPS = 200, MOST_HALVINGS = 40 };
static const double NEAR = 1e-12; /* of the loss, that the next step is expected to gain: then it is the last */

/* The point of the search and what a pass over the examples says there. The intercept is the last of n + 1 numbers. */
typedef struct search {
    weir_direction *d;
    int64_t n;            /* d->n + 1 */
    double *center;       /* [n-1] */
    double *at, *best;    /* [n] where it is; the best before */
    double *step;         /* [n] from there */
    double *gradient;     /* [n] */
    double *hessian;      /* [n, n] upper triangle */
    double *block;        /* [BLOCK, n] examples, with 1 behind them */
    double weight[BLOCK]; /* of the Hessian: p (1 - p) */
    int64_t waiting;
    double loss, gain; /* here; of the step, as far as a parabola tells */
} search;

/* ln(1 + exp(x)) without overflow */
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void add_block(search *s)
{
    weir_linalg_outer_add(s->hessian, s->n, s->block, s->waiting, s->weight);
    s->waiting = 0;
}

static weir_status add_example(void *ctx, const weir_example *e, weir_err *err)
{
    search *s = ctx;
    double *x = s->block + s->waiting * s->n, z = 0;
    (void)err;
    for (int64_t c = 0; c < s->n - 1; c++)
        x[c] = e->x[c] - s->center[c];
    x[s->n - 1] = 1;
    for (int64_t c = 0; c < s->n; c++)
        z += s->at[c] * x[c];
    const double sign = e->class == WEIR_POSITIVE ? 1 : -1, wrong = 1 / (1 + exp(sign * z)); /* 1 - p(its class) */
    s->loss += softplus(-sign * z);
    for (int64_t c = 0; c < s->n; c++)
        s->gradient[c] -= sign * wrong * x[c];
    s->weight[s->waiting++] = wrong * (1 - wrong);
    if (s->waiting == BLOCK)
        add_block(s);
    return WEIR_OK;
}

/* Loss, gradient and Hessian at s->at. */
static weir_status look(search *s, weir_err *err)
{
    const double l2 = s->d->a->l2;
    memset(s->gradient, 0, (size_t)s->n * sizeof *s->gradient);
    memset(s->hessian, 0, (size_t)(s->n * s->n) * sizeof *s->hessian);
    s->loss = 0;
    WEIR_TRY(weir_examples_each(s->d, WEIR_TRAINING, add_example, s, err));
    add_block(s);
    for (int64_t c = 0; c < s->n - 1; c++) {
        s->loss += l2 / 2 * s->at[c] * s->at[c];
        s->gradient[c] += l2 * s->at[c];
        s->hessian[c * s->n + c] += l2;
    }
    return WEIR_OK;
}

/* The step that Newton's method takes from here, and what the loss is expected to fall by. */
static weir_status aim(search *s, weir_err *err)
{
    weir_err why = {0};
    for (int64_t c = 0; c < s->n; c++)
        s->step[c] = -s->gradient[c];
    if (weir_linalg_solve(s->hessian, s->n, s->step, 1, &why) != WEIR_OK)
        return weir_fail(err, WEIR_E_ARG,
                         "no probe is the best: the examples do not decide all of it (%s); a larger --l2 does",
                         why.msg);
    s->gain = 0;
    for (int64_t c = 0; c < s->n; c++)
        s->gain -= s->step[c] * s->gradient[c] / 2;
    return WEIR_OK;
}

static void move(search *s, double share)
{
    for (int64_t c = 0; c < s->n; c++)
        s->at[c] = s->best[c] + share * s->step[c];
}

/* Goes on from s->best, which has this loss, until the loss is no higher. */
static weir_status advance(search *s, double loss, weir_err *err)
{
    double share = 1;
    for (int halvings = 0; halvings < MOST_HALVINGS; halvings++, share /= 2) {
        move(s, share);
        WEIR_TRY(look(s, err));
        if (s->loss <= loss)
            return WEIR_OK;
    }
    return weir_fail(err, WEIR_E_ARG, "the probe does not converge: a larger --l2 helps");
}

static weir_status minimise(search *s, weir_err *err)
{
    WEIR_TRY(look(s, err));
    for (s->d->steps = 1; s->d->steps <= MOST_STEPS; s->d->steps++) {
        WEIR_TRY(aim(s, err));
        memcpy(s->best, s->at, (size_t)s->n * sizeof *s->at);
        s->d->loss = s->loss;
        if (s->gain <= NEAR * s->loss) { /* the next step squares that */
            move(s, 1);
            return WEIR_OK;
        }
        WEIR_TRY(advance(s, s->loss, err));
    }
    return weir_fail(err, WEIR_E_ARG, "the probe does not converge in %d steps: a larger --l2 helps", MOST_STEPS);
}

static bool make_room(search *s)
{
    const size_t n = (size_t)s->n;
    s->center = malloc(n * sizeof(double));
    s->at = calloc(n, sizeof(double));
    s->best = malloc(n * sizeof(double));
    s->step = malloc(n * sizeof(double));
    s->gradient = malloc(n * sizeof(double));
    s->hessian = malloc(n * n * sizeof(double));
    s->block = malloc(BLOCK * n * sizeof(double));
    s->d->vector = malloc(n * sizeof *s->d->vector);
    return s->center && s->at && s->best && s->step && s->gradient && s->hessian && s->block && s->d->vector;
}

static void free_room(search *s)
{
    double *const own[] = {s->center, s->at, s->best, s->step, s->gradient, s->hessian, s->block};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

/* Begins at the probe that knows how often each class comes, and nothing else. */
static void begin(search *s)
{
    const weir_direction *d = s->d;
    const double a = (double)d->rows[WEIR_NEGATIVE][WEIR_TRAINING], b = (double)d->rows[WEIR_POSITIVE][WEIR_TRAINING];
    for (int64_t c = 0; c < d->n; c++)
        s->center[c] = (a * d->mean[c] + b * d->mean[d->n + c]) / (a + b);
    s->at[d->n] = log(b / a);
}

/* w as it is, rounded to float32, and the threshold that belongs to the intercept b: w.(x - center) + b > 0. */
static void finish(search *s)
{
    s->d->k = 1;
    weir_direction_put(s->d, 0, s->at);
    s->d->threshold = weir_direction_dot(s->d, s->center) - s->at[s->d->n];
}

weir_status weir_direction_probe(weir_direction *d, weir_err *err)
{
    search s = {.d = d, .n = d->n + 1};
    weir_status st = WEIR_OK;
    if (!make_room(&s))
        st = weir_fail(err, WEIR_E_NOMEM, "out of memory (a matrix of %lld x %lld doubles is needed)", (long long)s.n,
                       (long long)s.n);
    if (st == WEIR_OK) {
        begin(&s);
        st = minimise(&s, err);
    }
    if (st == WEIR_OK)
        finish(&s);
    free_room(&s);
    return st;
}

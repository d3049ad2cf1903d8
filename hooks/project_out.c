/* project-out: removes from selected values their component along a direction, or within a subspace.
 *
 *   project-out:blocks.*.hook_resid_post=refusal.npy        x - v (v.x)/(v.v)
 *   project-out:L6H3=basis.npy                             an array of k rows: the span of all of them
 *
 * The rows are made orthonormal first, in float64 (Gram-Schmidt, each row twice); a row that depends on those before it
 * is an error. For each of them, in their order, the product with x is added up in float64 in ascending order and the
 * component taken off; the result is rounded to float32 once. Where the vector is one head's, each selected head is
 * treated by itself. */
#include <math.h>
#include <stdlib.h>

#include <weir/values.h>

#define GRAMMAR "SEL[,SEL...]=FILE[::NAME][@ROW]"
enum { MOST_ROWS = 256 };

/* Orthonormal rows for one point. */
typedef struct basis {
    double *q; /* [rows, width]; NULL: the point is not selected */
    int64_t rows, width;
} basis;

typedef struct state {
    weir_target target; /* first: weir_target_wants and its like take the state for it */
    const weir_point *point;
    int64_t n;
    basis *basis; /* [n] */
    double *x;    /* [widest] the values of one row that are worked on */
    int64_t widest;
} state;

static void destroy(void *self)
{
    state *s = self;
    for (int64_t i = 0; s->basis && i < s->n; i++)
        free(s->basis[i].q);
    free(s->basis);
    free(s->x);
    weir_target_close(&s->target);
    free(s);
}

/* Takes off x its component along the unit vector q. */
static void remove_component(double *x, const double *q, int64_t n)
{
    double dot = 0;
    for (int64_t i = 0; i < n; i++)
        dot += q[i] * x[i];
    for (int64_t i = 0; i < n; i++)
        x[i] -= dot * q[i];
}

static double length(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static weir_status orthonormalise(basis *b, const char *name, weir_err *err)
{
    for (int64_t r = 0; r < b->rows; r++) {
        double *x = b->q + r * b->width, before = length(x, b->width);
        for (int twice = 0; twice < 2; twice++)
            for (int64_t k = 0; k < r; k++)
                remove_component(x, b->q + k * b->width, b->width);
        double after = length(x, b->width);
        if (before == 0)
            return weir_fail(err, WEIR_E_ARG, "row %lld, for %s, is zero: it has no direction", (long long)r, name);
        if (after < 1e-6 * before)
            return weir_fail(err, WEIR_E_ARG, "row %lld, for %s, depends on the rows before it: leave it out",
                             (long long)r, name);
        for (int64_t i = 0; i < b->width; i++)
            x[i] /= after;
    }
    return WEIR_OK;
}

static weir_status make_basis(state *s, int64_t i, weir_err *err)
{
    const weir_target_part *part = weir_target_part_of(&s->target, &s->point[i]);
    basis *b = &s->basis[i];
    if (part->n == 0)
        return WEIR_OK;
    b->rows = part->rows;
    b->width = part->group;
    b->q = calloc((size_t)(b->rows * b->width), sizeof *b->q);
    s->widest = part->n > s->widest ? part->n : s->widest;
    if (!b->q)
        return weir_fail(err, WEIR_E_NOMEM, "hook project-out: out of memory");
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t k = 0; k < b->width; k++)
            b->q[r * b->width + k] = (double)part->vector[r * part->n + k];
    return orthonormalise(b, s->point[i].name, err);
}

static weir_status make_all(state *s, const weir_model *m, const char *args, weir_err *err)
{
    const char *value;
    WEIR_TRY(weir_target_open(&s->target, m, "project-out", "project-out:" GRAMMAR, args, &value, err));
    if (!value || !*value)
        return weir_fail(err, WEIR_E_ARG, "the direction is missing: " GRAMMAR);
    WEIR_TRY(weir_target_vectors(&s->target, value, MOST_ROWS, err));
    s->n = weir_model_points_all(m, &s->point);
    s->basis = calloc((size_t)s->n, sizeof *s->basis);
    if (!s->basis)
        return weir_fail(err, WEIR_E_NOMEM, "hook project-out: out of memory");
    for (int64_t i = 0; i < s->n; i++)
        WEIR_TRY(make_basis(s, i, err));
    s->x = calloc((size_t)s->widest, sizeof *s->x);
    if (!s->x)
        return weir_fail(err, WEIR_E_NOMEM, "hook project-out: out of memory");
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    state *s = calloc(1, sizeof *s);
    *self = NULL;
    if (!s)
        return weir_fail(err, WEIR_E_NOMEM, "hook project-out: out of memory");
    weir_status st = make_all(s, m, args, err);
    if (st) {
        destroy(s);
        return st;
    }
    *self = s;
    return WEIR_OK;
}

static void project(state *s, const weir_point *p, weir_target_row r)
{
    const basis *b = &s->basis[p - s->point];
    while (weir_target_next(&r)) {
        for (int64_t i = 0; i < r.n; i++)
            s->x[i] = (double)r.x[r.column[i]];
        for (int64_t g = 0; g < r.n; g += b->width)
            for (int64_t k = 0; k < b->rows; k++)
                remove_component(s->x + g, b->q + k * b->width, b->width);
        for (int64_t i = 0; i < r.n; i++)
            r.x[r.column[i]] = (float)s->x[i];
    }
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    (void)err;
    project(s, v->point, weir_target_rows(&s->target, v));
    return WEIR_OK;
}

/* The projection is its own transpose. */
static weir_status on_grad(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    (void)err;
    project(s, v->point, weir_target_rows_again(&s->target, v));
    return WEIR_OK;
}

extern const weir_hook_class weir_hook_project_out;
const weir_hook_class weir_hook_project_out = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "project-out",
    .help = "remove the component along a direction of FILE",
    .args = GRAMMAR,
    .create = create,
    .wants = weir_target_wants,
    .on_value = on_value,
    .on_grad = on_grad,
    .finish = weir_target_finish,
    .changed = weir_target_changed,
    .destroy = destroy,
};

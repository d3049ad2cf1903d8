/* mask: keeps the large elements of each row and sets the others to zero.
 *
 *   mask:post,topk=64                 the 64 neurons of each layer that are largest in magnitude, at each token
 *   mask:blocks.3.mlp.hook_post,below=0.1    zero where |x| < 0.1
 *
 * What a model loses by it: `weir loss --hook mask:post,topk=64`; `weir sparsity --mask` finds thresholds. Of equal
 * magnitudes the one with the lower index is kept. NaN is larger than all. Elements that brackets leave out stay as
 * they are, and do not count. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/hook.h>

#define GRAMMAR "SEL,...,topk=K|below=T"

typedef struct state {
    weir_selector *selector;
    int64_t k;   /* 0: a threshold */
    float below; /* T */
    int64_t changed;
    uint32_t *size; /* [room] magnitudes of a row, as whole numbers that grow with them */
    int64_t room;
} state;

static void destroy(void *self)
{
    state *s = self;
    if (!s)
        return;
    weir_selector_free(s->selector);
    free(s->size);
    free(s);
}

static weir_status read_args(state *s, const weir_model *m, const char *text, weir_err *err)
{
    static const char *const keys[] = {"topk=", "below=", NULL};
    weir_hook_args *a;
    double below = 0;
    WEIR_TRY(weir_hook_args_parse(&a, "mask", text, keys, err));
    const char *selectors = weir_hook_args_selectors(a);
    const bool topk = weir_hook_args_text(a, "topk"), threshold = weir_hook_args_text(a, "below");
    weir_status st = weir_hook_args_int(a, "topk", 1, INT32_MAX, &s->k, err);
    if (!st)
        st = weir_hook_args_number(a, "below", &below, err);
    if (!st && (topk == threshold || !selectors))
        st = weir_fail(err, WEIR_E_ARG, "mask needs selectors and either topk or below, such as mask:post,topk=64");
    if (!st && threshold && !(below > 0))
        st = weir_fail(err, WEIR_E_ARG, "hook mask: below=%.9g: it must be above 0", below);
    s->below = (float)below;
    if (!st)
        st = weir_selector_build(&s->selector, m, selectors, NULL, NULL, err);
    weir_hook_args_free(a);
    return st;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    state *s = calloc(1, sizeof *s);
    *self = NULL;
    if (!s)
        return weir_fail(err, WEIR_E_NOMEM, "hook mask: out of memory");
    weir_status st = read_args(s, m, args, err);
    if (st) {
        destroy(s);
        return st;
    }
    *self = s;
    return WEIR_OK;
}

static weir_want wants(void *self, const weir_point *p)
{
    const state *s = self;
    return weir_selector_matches(s->selector, p) ? WEIR_WRITE : WEIR_NONE;
}

/* --- a row */

typedef struct part {
    float *x;           /* the row */
    const int64_t *idx; /* [n] its elements that are selected; NULL: all */
    const weir_value *v;
    int64_t n;
} part;

/* Element i of the selected ones; NULL: this pass does not have it. */
static float *element(const part *p, int64_t i)
{
    const int64_t column = p->idx ? weir_value_column(p->v, p->idx[i]) : i;
    return column < 0 ? NULL : &p->x[column];
}

static uint32_t size_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffff;
}

/* The k-th largest of size[n], by bisection of what it can be; *above: how many are larger. */
static uint32_t kth(const uint32_t *size, int64_t n, int64_t k, int64_t *above)
{
    uint32_t low = 0, high = 0x7fffffff; /* it is in [low, high] */
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        int64_t reach = 0;
        for (int64_t i = 0; i < n; i++)
            reach += size[i] >= middle;
        if (reach >= k)
            low = middle;
        else
            high = middle - 1;
    }
    *above = 0;
    for (int64_t i = 0; i < n; i++)
        *above += size[i] > low;
    return low;
}

static bool zero(float *x)
{
    const bool changes = *x != 0;
    *x = 0;
    return changes;
}

static bool keep_largest(state *s, const part *p)
{
    int64_t n = 0, above;
    bool changed = false;
    for (int64_t i = 0; i < p->n; i++)
        if (element(p, i))
            s->size[n++] = size_of(*element(p, i));
    if (s->k >= n)
        return false;
    const uint32_t least = kth(s->size, n, s->k, &above);
    int64_t equal = s->k - above; /* of those that are as large as the smallest that is kept */
    for (int64_t i = 0; i < p->n; i++) {
        float *x = element(p, i);
        if (x && size_of(*x) <= least && !(size_of(*x) == least && equal-- > 0))
            changed |= zero(x);
    }
    return changed;
}

static bool drop_small(const state *s, const part *p)
{
    bool changed = false;
    for (int64_t i = 0; i < p->n; i++) {
        float *x = element(p, i);
        if (x && fabsf(*x) < s->below)
            changed |= zero(x);
    }
    return changed;
}

static weir_status make_room(state *s, int64_t n, weir_err *err)
{
    if (n <= s->room)
        return WEIR_OK;
    uint32_t *size = realloc(s->size, (size_t)n * sizeof *size);
    if (!size)
        return weir_fail(err, WEIR_E_NOMEM, "hook mask: out of memory");
    s->size = size;
    s->room = n;
    return WEIR_OK;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    part p = {.v = v};
    weir_selector_units(s->selector, v->point, &p.idx, &p.n);
    if (p.n < 0) {
        p.idx = NULL;
        p.n = v->width;
    }
    WEIR_TRY(make_room(s, p.n, err));
    for (int64_t t = 0; t < v->rows->n; t++) {
        if (!weir_selector_row_at(s->selector, v->point, v->rows->doc_pos[t], v->rows->doc_len[t]))
            continue;
        p.x = v->data + t * v->width;
        s->changed += s->k ? keep_largest(s, &p) : drop_small(s, &p);
    }
    return WEIR_OK;
}

static int64_t changed(void *self, int64_t *missed)
{
    const state *s = self;
    *missed = 0;
    return s->changed;
}

extern const weir_hook_class weir_hook_mask;
const weir_hook_class weir_hook_mask = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER,
    .name = "mask",
    .help = "set all but the large elements of each row to zero",
    .args = GRAMMAR,
    .create = create,
    .wants = wants,
    .on_value = on_value,
    .changed = changed,
    .destroy = destroy,
};

/* template: the largest absolute value at each point. Copy this file to write a hook of your own:
 *
 *   1. cp hooks/template.c hooks/mine.c, and replace `template` by `mine` in the names below. The object at the end
 *      must be called weir_hook_mine, after the file (hyphens as underscores): that is how it is found.
 *   2. Change `wants`: where do you want to be called, and do you only read or also write?
 *   3. Change `on_value`: what do you do with the tensor?
 *   4. As a shared object:  cc -shared -fPIC -I lib/include hooks/mine.c -o mine.so
 *                           weir trace --hook ./mine.so:ARGS ...      or weir_hook_class_load in a program
 *      or as a part of weir: make
 *                           weir trace --hook mine:ARGS ...           or weir_hook_class_find("mine")
 *
 * Only <weir/...> headers are in reach here, as for any program outside. hooks/README.md lists the points and their
 * shapes, and tells what else a hook can do: write, keep datasets of its own, stop the run. Rules: no global state, no
 * printing, no exit; everything that a hook keeps is in `self`. A hook is used by one thread at a time.
 */
#include <math.h>
#include <stdlib.h>

#include <weir/hook.h>

/* What the hook remembers of one point. */
typedef struct peak {
    float value;      /* largest |x| so far; -1: none yet */
    int32_t token;    /* the token of its row */
    int64_t position; /* the row's position in its sequence */
    int64_t column;   /* the element in the row */
} peak;

/* What the hook keeps between calls. */
typedef struct state {
    const weir_point *point; /* all points of the model, those of gradients behind those of the forward pass */
    int64_t n;
    weir_selector *selector; /* the points that the user chose */
    peak *peak;              /* [n] */
} state;

static void destroy(void *self)
{
    state *s = self;
    if (!s)
        return;
    weir_selector_free(s->selector);
    free(s->peak);
    free(s);
}

/* Makes the hook. args is what the user wrote behind `template:`, or NULL; here it is a list of selectors, and nothing
 * means all. On failure: free everything, leave *self NULL, return what weir_fail returns. */
static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    state *s = calloc(1, sizeof *s);
    *self = NULL;
    if (!s)
        return weir_fail(err, WEIR_E_NOMEM, "hook template: out of memory");
    weir_status st = weir_selector_build(&s->selector, m, args && *args ? args : "*", NULL, NULL, err);
    s->n = weir_model_points_all(m, &s->point);
    s->peak = st ? NULL : calloc((size_t)s->n, sizeof *s->peak);
    if (!st && !s->peak)
        st = weir_fail(err, WEIR_E_NOMEM, "hook template: out of memory");
    if (st) {
        destroy(s);
        return st;
    }
    for (int64_t i = 0; i < s->n; i++)
        s->peak[i].value = -1;
    *self = s;
    return WEIR_OK;
}

/* Asked once for every point of the model when the hook is attached. WEIR_READ: call me; WEIR_WRITE: call me, and I may
 * change the values; WEIR_NONE: leave me alone. The pass ends behind the last point that any hook wants, so do not ask
 * for more than you use. */
static weir_want wants(void *self, const weir_point *p)
{
    const state *s = self;
    return weir_selector_matches(s->selector, p) ? WEIR_READ : WEIR_NONE;
}

/* Called in every pass for every point that the hook wants: v->data is [T, v->width], T = v->rows->n. Sequences of a
 * batch are packed one after the other; v->rows tells each row's token, sequence and position. The tensor is valid
 * during this call only: copy what you keep. Return WEIR_OK or what weir_fail returns. */
static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    peak *best = &s->peak[v->point - s->point];
    (void)err;
    for (int64_t t = 0; t < v->rows->n; t++) {
        if (!v->rows->keep[t]) /* context that the user did not ask for */
            continue;
        for (int64_t c = 0; c < v->width; c++) {
            float x = fabsf(v->data[t * v->width + c]);
            if (isfinite(x) && x > best->value) /* masked scores are -inf */
                *best = (peak){x, v->rows->id[t], v->rows->pos[t], c};
        }
    }
    return WEIR_OK;
}

/* Called once, after the last pass. out: where text goes, or NULL if nobody wants any. */
static weir_status finish(void *self, FILE *out, weir_err *err)
{
    const state *s = self;
    if (!out)
        return WEIR_OK;
    fprintf(out, "hook\tlargest\ttoken\tposition\telement\n");
    for (int64_t i = 0; i < s->n; i++) {
        const peak *p = &s->peak[i];
        if (p->value >= 0)
            fprintf(out, "%s\t%.9g\t%d\t%lld\t%lld\n", s->point[i].name, (double)p->value, p->token,
                    (long long)p->position, (long long)p->column);
    }
    return ferror(out) ? weir_fail(err, WEIR_E_IO, "hook template: the results could not be written") : WEIR_OK;
}

/* The only name that leaves this file. What may be left out is: on_dump, on_begin and on_end (called at the beginning
 * and end of every pass), changed, on_grad (what a hook that writes does to gradients: weir/hook.h).
 * WEIR_HOOK_ANY_ORDER: this hook does not mind whether it gets all points of a text before the next text, or all texts
 * at one point before the next point. WEIR_HOOK_GRADIENTS: ask it about gradients too (template:resid_post_grad). */
extern const weir_hook_class weir_hook_template;
const weir_hook_class weir_hook_template = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "template",
    .help = "largest absolute value at each point; a file to copy",
    .args = "[SEL,...]",
    .create = create,
    .wants = wants,
    .on_value = on_value,
    .finish = finish,
    .destroy = destroy,
};

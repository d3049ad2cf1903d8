/* patch: takes values from a dump: those of the same hook point, document and position.
 *
 *   patch:blocks.6.hook_resid_post[4]=clean.h5      activation patching: position 4 as it was in the other run
 *   patch:L9H6,L9H9=clean.h5                        two heads, at all positions that the dump has
 *
 * Documents are told apart by their number (weir_rows.tag), positions are those of the document (/tokens/pos), so that
 * both runs may have cut their documents into other windows. Rows that the dump lacks are left alone and counted. */
#include <stdlib.h>

#include <weir/values.h>

#define GRAMMAR "SEL[,SEL...]=DUMP.h5"

/* One point's values in the dump. */
typedef struct source {
    int hook;      /* in `places`; the point is selected */
    int64_t *from; /* [n] column in the dump's row of each selected element; NULL: the point is not selected */
} source;

typedef struct state {
    weir_target target; /* first: weir_target_wants and its like take the state for it */
    weir_places *places;
    const weir_point *point;
    int64_t n;
    source *source; /* [n] */
} state;

static void destroy(void *self)
{
    state *s = self;
    for (int64_t i = 0; s->source && i < s->n; i++)
        free(s->source[i].from);
    free(s->source);
    weir_places_close(s->places);
    weir_target_close(&s->target);
    free(s);
}

static weir_status find_point(state *s, int64_t i, weir_err *err)
{
    const weir_point *p = &s->point[i];
    const weir_target_part *part = weir_target_part_of(&s->target, p);
    source *to = &s->source[i];
    const weir_dump_hook *recorded;
    if (part->n == 0)
        return WEIR_OK;
    WEIR_TRY(weir_places_hook(s->places, p->name, &to->hook, &recorded, err));
    if (!recorded->units && recorded->width != p->width)
        return weir_fail(err, WEIR_E_SHAPE, "its rows of %s have %lld numbers, this model's %lld", p->name,
                         (long long)recorded->width, (long long)p->width);
    to->from = calloc((size_t)part->n, sizeof *to->from);
    if (!to->from)
        return weir_fail(err, WEIR_E_NOMEM, "hook patch: out of memory");
    for (int64_t k = 0; k < part->n; k++) {
        int64_t e = part->element ? part->element[k] : k;
        to->from[k] = weir_places_column(s->places, to->hook, e);
        if (to->from[k] < 0)
            return weir_fail(err, WEIR_E_SHAPE, "unit %lld of %s was not recorded in it", (long long)e, p->name);
    }
    return WEIR_OK;
}

static weir_status make_all(state *s, const weir_model *m, const char *args, weir_err *err)
{
    const char *path;
    WEIR_TRY(weir_target_open(&s->target, m, "patch", "patch:" GRAMMAR, args, &path, err));
    if (!path || !*path)
        return weir_fail(err, WEIR_E_ARG, "the dump is missing: " GRAMMAR);
    WEIR_TRY(weir_target_no_keys(&s->target, err));
    WEIR_TRY(weir_places_open(&s->places, path, weir_selector_count(s->target.selector), err));
    s->n = weir_model_points_all(m, &s->point);
    s->source = calloc((size_t)s->n, sizeof *s->source);
    if (!s->source)
        return weir_fail(err, WEIR_E_NOMEM, "hook patch: out of memory");
    for (int64_t i = 0; i < s->n; i++)
        if (find_point(s, i, err))
            return weir_err_where(err, path, NULL, -1);
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    state *s = calloc(1, sizeof *s);
    *self = NULL;
    if (!s)
        return weir_fail(err, WEIR_E_NOMEM, "hook patch: out of memory");
    weir_status st = make_all(s, m, args, err);
    if (st) {
        destroy(s);
        return st;
    }
    *self = s;
    return WEIR_OK;
}

/* A BOS that a later window repeats is no row of the document: there is nothing to take for it, and nothing is missing.
 */
static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    const source *from = &s->source[v->point - s->point];
    weir_target_row r = weir_target_rows(&s->target, v);
    while (weir_target_next(&r)) {
        int64_t row, pos = v->rows->doc_pos[r.t];
        const float *x;
        WEIR_TRY(weir_places_find(s->places, v->rows->tag[r.t], pos, &row, err));
        if (row < 0) {
            s->target.changed--;
            s->target.missed += pos >= 0;
            continue;
        }
        WEIR_TRY(weir_places_row(s->places, from->hook, row, &x, err));
        for (int64_t i = 0; i < r.n; i++)
            r.x[r.column[i]] = x[from->from[i]];
    }
    return WEIR_OK;
}

/* What was taken from the dump does not depend on what stood there; rows that the dump lacks were left alone. */
static weir_status on_grad(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    weir_target_row r = weir_target_rows_again(&s->target, v);
    while (weir_target_next(&r)) {
        int64_t row;
        WEIR_TRY(weir_places_find(s->places, v->rows->tag[r.t], v->rows->doc_pos[r.t], &row, err));
        for (int64_t i = 0; row >= 0 && i < r.n; i++)
            r.x[r.column[i]] = 0;
    }
    return WEIR_OK;
}

extern const weir_hook_class weir_hook_patch;
const weir_hook_class weir_hook_patch = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "patch",
    .help = "take values from a dump: same point, document and position",
    .args = GRAMMAR,
    .create = create,
    .wants = weir_target_wants,
    .on_value = on_value,
    .on_grad = on_grad,
    .finish = weir_target_finish,
    .changed = weir_target_changed,
    .destroy = destroy,
};

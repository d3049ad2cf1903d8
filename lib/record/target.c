/* record/target.c: what an intervention acts on: rows and elements of the selected points, and vectors that fit them.
 */
#include <string.h>

#include <weir/values.h>

#include "base/mem.h"

weir_target_part *weir_target_part_of(const weir_target *t, const weir_point *p)
{
    const weir_point *first;
    weir_model_points(t->model, &first);
    return &t->part[p - first];
}

/* --- opening */

static weir_status fill_part(const weir_target *t, const weir_point *p, weir_err *err)
{
    weir_target_part *part = weir_target_part_of(t, p);
    int64_t n;
    weir_selector_units(t->selector, p, &part->element, &n);
    part->n = n < 0 ? p->width : n;
    part->group = part->n;
    if (part->n == 0)
        return WEIR_OK;
    part->column = weir_calloc((size_t)part->n, sizeof *part->column);
    if (!part->column)
        return weir_nomem(err, "an intervention");
    for (int64_t i = 0; i < part->n; i++)
        part->column[i] = part->element ? part->element[i] : i;
    return WEIR_OK;
}

static weir_status open_target(weir_target *t, const char *args, const char **value, weir_err *err)
{
    const weir_point *p;
    int64_t n = weir_model_points_all(t->model, &p);
    t->args = weir_strndup(args, strlen(args));
    t->part = weir_calloc((size_t)n, sizeof *t->part);
    if (!t->args || !t->part)
        return weir_nomem(err, "an intervention");
    char *eq = strchr(t->args, '=');
    *value = eq ? eq + 1 : NULL;
    if (eq)
        *eq = 0;
    WEIR_TRY(weir_selector_build(&t->selector, t->model, t->args, NULL, NULL, err));
    for (int64_t i = 0; i < n; i++)
        WEIR_TRY(fill_part(t, &p[i], err));
    return WEIR_OK;
}

weir_status weir_target_open(weir_target *t, const weir_model *m, const char *hook, const char *grammar,
                             const char *args, const char **value, weir_err *err)
{
    t->hook = hook;
    t->model = m;
    if (!args || !*args || *args == '=')
        return weir_fail(err, WEIR_E_ARG, "%s needs a selector: %s", hook, grammar);
    weir_status st = open_target(t, args, value, err);
    if (st)
        weir_target_close(t);
    return st;
}

void weir_target_close(weir_target *t)
{
    const weir_point *p;
    int64_t n = t->part ? weir_model_points_all(t->model, &p) : 0;
    for (int64_t i = 0; i < n; i++) {
        weir_free(t->part[i].column);
        weir_free(t->part[i].vector);
    }
    weir_free(t->part);
    weir_free(t->args);
    weir_selector_free(t->selector);
    *t = (weir_target){0};
}

weir_status weir_target_no_keys(const weir_target *t, weir_err *err)
{
    const weir_point *p;
    int64_t n = weir_model_points_all(t->model, &p);
    for (int64_t i = 0; i < n; i++)
        if (p[i].keyed && t->part[i].n > 0)
            return weir_fail(err, WEIR_E_UNSUPPORTED,
                             "%s has as many keys as the text: %s cannot act there (ablate and "
                             "scale can)",
                             p[i].name, t->hook);
    return WEIR_OK;
}

/* --- vectors */

static int64_t element_of(const weir_target_part *part, int64_t i)
{
    return part->element ? part->element[i] : i;
}

/* Column of element e among the recorded units, or -1. */
static int64_t find_unit(const weir_array *a, int64_t e)
{
    int64_t low = 0, high = a->width;
    while (low < high) {
        int64_t i = low + (high - low) / 2;
        if (a->units[i] == e)
            return i;
        if (a->units[i] < e)
            low = i + 1;
        else
            high = i;
    }
    return -1;
}

/* Does the part consist of whole heads? */
static bool whole_heads(const weir_target_part *part, const weir_point *p)
{
    if (p->rank != 3 || !part->element || part->n % p->size)
        return false;
    for (int64_t i = 0; i < part->n; i++)
        if (part->element[i] % p->size != i % p->size)
            return false;
    return true;
}

/* Finds for each selected element the column of the array that belongs to it: from[n]. */
static weir_status match(weir_target_part *part, const weir_point *p, const weir_array *a, int64_t *from, weir_err *err)
{
    bool heads = whole_heads(part, p), row = a->hook && !a->units && a->width == p->width;
    if (!a->units && !row && a->width != part->n && !(heads && a->width == p->size))
        return heads ? weir_fail(err, WEIR_E_SHAPE,
                                 "rows of %lld numbers, but %lld are selected of %s, %lld of each head",
                                 (long long)a->width, (long long)part->n, p->name, (long long)p->size)
                     : weir_fail(err, WEIR_E_SHAPE, "rows of %lld numbers, but %lld are selected of %s",
                                 (long long)a->width, (long long)part->n, p->name);
    if (!a->units && !row)
        part->group = a->width;
    for (int64_t i = 0; i < part->n; i++) {
        int64_t e = element_of(part, i);
        from[i] = a->units ? find_unit(a, e) : row ? e : i % part->group;
        if (from[i] < 0)
            return weir_fail(err, WEIR_E_SHAPE, "unit %lld of %s was not recorded in it", (long long)e, p->name);
    }
    return WEIR_OK;
}

/* Gives the part its vectors out of the array. */
static weir_status take(weir_target_part *part, const weir_point *p, const weir_array *a, weir_err *err)
{
    int64_t n;
    int64_t *from = weir_calloc((size_t)part->n, sizeof *from);
    weir_free(part->vector);
    part->vector = weir_mul64(a->rows, part->n, &n) ? weir_calloc((size_t)n, sizeof *part->vector) : NULL;
    part->rows = a->rows;
    weir_status st = from && part->vector ? match(part, p, a, from, err) : weir_nomem(err, "an intervention");
    for (int64_t r = 0; r < a->rows && !st; r++)
        for (int64_t i = 0; i < part->n; i++)
            part->vector[r * part->n + i] = a->data[r * a->width + from[i]];
    weir_free(from);
    return st;
}

/* Vectors for every selected point: most_rows 0: its mean. */
static weir_status load_all(weir_target *t, const char *text, int64_t most_rows, weir_err *err)
{
    const weir_point *p;
    int64_t n = weir_model_points_all(t->model, &p);
    WEIR_TRY(weir_target_no_keys(t, err));
    for (int64_t i = 0; i < n; i++) {
        weir_array a;
        if (t->part[i].n == 0)
            continue;
        if (most_rows)
            WEIR_TRY(weir_values_load(&a, text, p[i].name, most_rows, err));
        else
            WEIR_TRY(weir_values_mean(&a, text, p[i].name, err));
        weir_status st = take(&t->part[i], &p[i], &a, err);
        weir_array_free(&a);
        if (st) {
            char *path = most_rows ? weir_values_path(text) : NULL;
            weir_err_where(err, path ? path : text, NULL, -1);
            weir_free(path);
            return st;
        }
    }
    return WEIR_OK;
}

weir_status weir_target_vectors(weir_target *t, const char *text, int64_t most_rows, weir_err *err)
{
    return load_all(t, text, most_rows, err);
}

weir_status weir_target_means(weir_target *t, const char *path, weir_err *err)
{
    return load_all(t, path, 0, err);
}

/* --- rows */

weir_target_row weir_target_rows(weir_target *t, const weir_value *v)
{
    weir_target_part *part = weir_target_part_of(t, v->point);
    weir_target_row r = {.target = t,
                         .value = v,
                         .t = -1,
                         .n = part->n,
                         .column = part->column,
                         .vector = part->vector,
                         .rows = part->rows,
                         .group = part->group};
    if (!v->point->keyed)
        return r;
    r.n = 0; /* this pass has keys of its own */
    for (int64_t i = 0; i < part->n; i++) {
        int64_t c = weir_value_column(v, element_of(part, i));
        if (c >= 0)
            part->column[r.n++] = c;
    }
    return r;
}

bool weir_target_next(weir_target_row *r)
{
    const weir_rows *rows = r->value->rows;
    while (++r->t < rows->n) {
        if (!weir_selector_row_at(r->target->selector, r->value->point, rows->doc_pos[r->t], rows->doc_len[r->t]))
            continue;
        r->x = r->value->data + r->t * r->value->width;
        r->target->changed += !r->again;
        return true;
    }
    return false;
}

weir_target_row weir_target_rows_again(weir_target *t, const weir_value *v)
{
    weir_target_row r = weir_target_rows(t, v);
    r.again = true;
    return r;
}

/* --- for hook classes */

weir_status weir_target_set_grad(void *self, const weir_value *v, weir_err *err)
{
    weir_target_row r = weir_target_rows_again(self, v);
    (void)err;
    while (weir_target_next(&r))
        for (int64_t i = 0; i < r.n; i++)
            r.x[r.column[i]] = 0;
    return WEIR_OK;
}

weir_want weir_target_wants(void *self, const weir_point *p)
{
    const weir_target *t = self;
    return weir_target_part_of(t, p)->n > 0 ? WEIR_WRITE : WEIR_NONE;
}

weir_status weir_target_finish(void *self, FILE *out, weir_err *err)
{
    const weir_target *t = self;
    (void)out;
    if (t->changed > 0)
        return WEIR_OK;
    if (t->missed > 0)
        return weir_fail(err, WEIR_E_HOOK, "%s %s changed nothing: the dump has none of the %lld rows", t->hook,
                         t->args, (long long)t->missed);
    return weir_fail(err, WEIR_E_HOOK, "%s %s changed nothing: no sequence has such a position", t->hook, t->args);
}

int64_t weir_target_changed(void *self, int64_t *missed)
{
    const weir_target *t = self;
    *missed = t->missed;
    return t->changed;
}

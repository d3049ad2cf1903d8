/* Attaching hooks to a run, and firing them. */
#include "../base/mem.h"
#include "../run/listen.h"

static weir_status read_only(const weir_attached *h, const weir_point *p, weir_err *err)
{
    return weir_fail(err, WEIR_E_HOOK, "hook %s wants to write to %s, which is read-only (%s can be written)",
                     h->class->name, p->name, p->grad ? "hook_z_grad" : "hook_z");
}

/* Asks a hook that knows of gradients which it wants. Where there are none, it is told. */
static weir_status ask_gradients(weir_attached *h, const weir_point_map *map, bool backward, bool *any, weir_err *err)
{
    if (!(h->class->flags & WEIR_HOOK_GRADIENTS))
        return WEIR_OK;
    for (int64_t i = map->n; i < map->all; i++) {
        const weir_point *p = &map->point[i];
        const weir_want w = h->class->wants(h->self, p);
        if (w == WEIR_WRITE && p->read_only)
            return read_only(h, p, err);
        if (w != WEIR_NONE && !backward)
            return weir_fail(
                err, WEIR_E_HOOK,
                "hook %s wants %s, a gradient, but this run only goes forward (weir trace --loss goes back)",
                h->class->name, p->name);
        h->want[i] = (uint8_t)w;
        *any |= w != WEIR_NONE;
    }
    return WEIR_OK;
}

/* Asks for every point once. A want that cannot be met is an error here, before anything runs. */
static weir_status ask(weir_attached *h, const weir_point_map *map, bool backward, weir_err *err)
{
    bool any = false;
    for (int64_t i = 0; i < map->n; i++) {
        const weir_point *p = &map->point[i];
        weir_want w = h->class->wants(h->self, p);
        if (w == WEIR_WRITE && p->read_only)
            return read_only(h, p, err);
        if (w == WEIR_WRITE && backward && !h->class->on_grad)
            return weir_fail(err, WEIR_E_HOOK,
                             "hook %s writes to %s and cannot tell what that does to gradients (it has no on_grad)",
                             h->class->name, p->name);
        h->want[i] = (uint8_t)w;
        any |= w != WEIR_NONE;
    }
    WEIR_TRY(ask_gradients(h, map, backward, &any, err));
    return any ? WEIR_OK : weir_fail(err, WEIR_E_HOOK, "hook %s wants no point of this model", h->class->name);
}

static void release(weir_attached *h)
{
    if (h->owned && h->class->destroy)
        h->class->destroy(h->self);
    weir_free(h->want);
}

weir_status weir_listeners_add(weir_listeners *ls, const weir_point_map *map, const weir_hook_class *c, void *self,
                               bool owned, weir_err *err)
{
    weir_attached h = {.class = c, .self = self, .owned = owned, .want = weir_calloc((size_t)map->all, 1)};
    weir_attached *more = weir_realloc(ls->hook, (size_t)ls->n + 1, sizeof *more);
    if (more)
        ls->hook = more;
    weir_status st = h.want && more ? ask(&h, map, ls->backward, err) : weir_nomem(err, "a hook");
    if (st) {
        release(&h);
        return st;
    }
    ls->hook[ls->n++] = h;
    for (int64_t i = 0; i < map->all; i++)
        if (h.want[i] > ls->want[i])
            ls->want[i] = h.want[i];
    return WEIR_OK;
}

void weir_listeners_free(weir_listeners *ls)
{
    for (int i = 0; i < ls->n; i++)
        release(&ls->hook[i]);
    weir_free(ls->hook);
    weir_free(ls->want);
}

/* A hook's failure names the hook and the place, unless the hook has said it better. */
static weir_status failed(const weir_attached *h, weir_status st, const char *where, weir_err *err)
{
    if (st > 0 && st != WEIR_STOP) /* no status at all: a hook of one's own may return anything */
        st = WEIR_E_HOOK;
    if (st < 0)
        weir_fail(err, st, "hook %s failed at %s", h->class->name, where);
    return st;
}

weir_status weir_listeners_fire(weir_listeners *ls, int64_t i, const weir_value *v, weir_err *err)
{
    for (int k = 0; k < ls->n; k++) {
        weir_attached *h = &ls->hook[k];
        if (h->want[i] == WEIR_NONE)
            continue;
        h->fired++;
        weir_status st = h->class->on_value(h->self, v, err);
        if (st)
            return failed(h, st, v->point->name, err);
    }
    return WEIR_OK;
}

weir_status weir_listeners_fire_back(weir_listeners *ls, int64_t i, const weir_point *of, int64_t i_of,
                                     const weir_value *v, bool written, weir_err *err)
{
    weir_value grad = *v;
    grad.point = of;
    for (int k = ls->n - 1; k >= 0; k--) {
        weir_attached *h = &ls->hook[k];
        weir_status st = WEIR_OK;
        h->fired += h->want[i_of] != WEIR_NONE;
        if (h->want[i_of] != WEIR_NONE)
            st = h->class->on_value(h->self, &grad, err);
        if (!st && written && h->want[i] == WEIR_WRITE)
            st = h->class->on_grad(h->self, v, err);
        if (st)
            return failed(h, st, of->name, err);
    }
    return WEIR_OK;
}

weir_status weir_listeners_declare(weir_listeners *ls, struct weir_dump *d, weir_err *err)
{
    for (int k = 0; k < ls->n; k++) {
        weir_attached *h = &ls->hook[k];
        weir_status st = h->class->on_dump ? h->class->on_dump(h->self, d, err) : WEIR_OK;
        if (st)
            return failed(h, st, "declaring its datasets", err);
    }
    return WEIR_OK;
}

weir_status weir_listeners_begin(weir_listeners *ls, const weir_rows *rows, weir_err *err)
{
    for (int k = 0; k < ls->n; k++) {
        weir_attached *h = &ls->hook[k];
        weir_status st = h->class->on_begin ? h->class->on_begin(h->self, rows, err) : WEIR_OK;
        if (st)
            return failed(h, st, "the beginning of a pass", err);
    }
    return WEIR_OK;
}

weir_status weir_listeners_end(weir_listeners *ls, const weir_rows *rows, weir_err *err)
{
    for (int k = 0; k < ls->n; k++) {
        weir_attached *h = &ls->hook[k];
        weir_status st = h->class->on_end ? h->class->on_end(h->self, rows, err) : WEIR_OK;
        if (st < 0)
            return failed(h, st, "the end of a pass", err);
        ls->enough |= st == WEIR_STOP;
    }
    return WEIR_OK;
}

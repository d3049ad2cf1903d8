/* A run's life: options, hooks, questions about it, its end. */
#include "../base/mem.h"
#include "../base/parallel.h"
#include "state.h"

void weir_run_options_init(weir_run_options *o)
{
    *o = (weir_run_options){.max_rows = 512};
}

static weir_status check_options(const weir_run_options *o, const weir_spec *s, weir_err *err)
{
    if (o->max_rows < 1 || o->max_rows > INT32_MAX)
        return weir_fail(err, WEIR_E_ARG, "max_rows is %lld: it must be 1 to %d", (long long)o->max_rows, INT32_MAX);
    if (o->max_len < 0 || o->max_len > s->ctx)
        return weir_fail(err, WEIR_E_ARG, "max_len is %lld, but the model's context has %lld tokens",
                         (long long)o->max_len, (long long)s->ctx);
    if (o->slots < 0)
        return weir_fail(err, WEIR_E_ARG, "slots is %d: it cannot be negative", o->slots);
    if (o->backward && o->by_layer)
        return weir_fail(err, WEIR_E_ARG, "a run that goes layer by layer keeps nothing for a way back");
    if (o->threads < 0)
        return weir_fail(err, WEIR_E_ARG, "threads is %d: it cannot be negative", o->threads);
    if (o->act && !o->act->runs)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "no kernel has the activation %s", o->act->name);
    return WEIR_OK;
}

/* The caller's array may change under the run; the edits stay his. */
static weir_status take_edits(weir_run *r, const weir_run_options *o, weir_err *err)
{
    if (o->n_edits < 0 || (o->n_edits && !o->edits))
        return weir_fail(err, WEIR_E_ARG, "n_edits is %d", o->n_edits);
    r->edit = weir_calloc((size_t)o->n_edits, sizeof *r->edit);
    if (!r->edit)
        return weir_nomem(err, "a run");
    for (int i = 0; i < o->n_edits; i++) {
        if (!o->edits[i] || weir_edit_model(o->edits[i]) != r->model)
            return weir_fail(err, WEIR_E_ARG, "edit %d was not made for the model that runs", i);
        r->edit[i] = o->edits[i];
    }
    r->n_edits = o->n_edits;
    return WEIR_OK;
}

static weir_status init(weir_run *r, const weir_model *m, const weir_run_options *o, weir_err *err)
{
    r->model = m;
    r->spec = weir_model_spec(m);
    WEIR_TRY(check_options(o, r->spec, err));
    WEIR_TRY(weir_kern_pick(&r->kern, o->kernel, err));
    r->threads = weir_threads(o->threads);
    r->max_rows = o->max_rows;
    r->max_len = o->max_len ? o->max_len : r->spec->ctx;
    /* Without slots a sequence lives in one pass, and is no longer than its rows. */
    if (!o->slots && r->max_len > r->max_rows)
        r->max_len = r->max_rows;
    r->memory = o->memory;
    r->by_layer = o->by_layer;
    r->act = o->act ? weir_activation_act(o->act) : r->spec->act;
    r->leased = -1;
    WEIR_TRY(take_edits(r, o, err));
    r->tape.on = o->backward;
    r->n_slots = o->slots;
    r->slot = weir_calloc((size_t)o->slots, sizeof *r->slot);
    WEIR_TRY(weir_point_map_init(&r->map, m, err));
    r->hooks.want = weir_calloc((size_t)r->map.all, 1);
    r->hooks.backward = o->backward;
    if (!r->slot || !r->hooks.want)
        return weir_nomem(err, "a run");
    return weir_tape_init(r, err);
}

weir_status weir_run_new(weir_run **out, const weir_model *m, const weir_run_options *o, weir_err *err)
{
    weir_run_options defaults;
    weir_run_options_init(&defaults);
    *out = NULL;
    weir_run *r = weir_calloc(1, sizeof *r);
    if (!r)
        return weir_nomem(err, "a run");
    weir_status st = init(r, m, o ? o : &defaults, err);
    if (st) {
        weir_run_free(r);
        return st;
    }
    *out = r;
    return WEIR_OK;
}

void weir_run_free(weir_run *r)
{
    if (!r)
        return;
    weir_run_let_go(r);
    weir_listeners_free(&r->hooks);
    weir_tape_free(r);
    weir_free(r->edit);
    weir_free(r->slot);
    weir_free_aligned(r->arena);
    weir_free(r);
}

const weir_model *weir_run_model(const weir_run *r)
{
    return r->model;
}

const char *weir_run_kernel(const weir_run *r)
{
    return weir_kern_name(r->kern);
}

int weir_run_threads(const weir_run *r)
{
    return r->threads;
}

int64_t weir_run_arena_bytes(const weir_run *r)
{
    return r->arena_bytes;
}

static weir_status check_class(const weir_hook_class *c, weir_err *err)
{
    if (!c)
        return weir_fail(err, WEIR_E_HOOK, "a hook of no class: weir_hook_class_find does not know the name");
    if (c->struct_size != sizeof *c || c->abi != WEIR_HOOK_ABI)
        return weir_fail(err, WEIR_E_HOOK, "a hook class was built for another version of weir: compile it again");
    return WEIR_OK;
}

static weir_status attach(weir_run *r, const weir_hook_class *c, void *self, bool owned, weir_err *err)
{
    const bool whole = r->by_layer && !(c->flags & WEIR_HOOK_ANY_ORDER);
    if (!r->prepared && !whole)
        return weir_listeners_add(&r->hooks, &r->map, c, self, owned, err);
    if (owned && c->destroy)
        c->destroy(self);
    if (whole)
        return weir_fail(err, WEIR_E_HOOK,
                         "hook %s has to see whole passes, and a run in the order of layers has none (--order batch)",
                         c->name);
    return weir_fail(err, WEIR_E_HOOK, "hook %s comes too late: attach hooks before the first forward", c->name);
}

weir_status weir_run_hook(weir_run *r, const weir_hook_class *c, const char *args, weir_err *err)
{
    void *self = NULL;
    WEIR_TRY(check_class(c, err));
    weir_status st = c->create(&self, r->model, args, err);
    if (st)
        return weir_fail(err, st, "hook %s could not be made", c->name);
    return attach(r, c, self, true, err);
}

weir_status weir_run_hook_object(weir_run *r, const weir_hook_class *c, void *self, weir_err *err)
{
    WEIR_TRY(check_class(c, err));
    return attach(r, c, self, false, err);
}

int64_t weir_run_hook_fired(const weir_run *r, int i)
{
    return i >= 0 && i < r->hooks.n ? r->hooks.hook[i].fired : 0;
}

bool weir_run_hook_writes(const weir_run *r, int i)
{
    bool writes = false;
    for (int64_t p = 0; i >= 0 && i < r->hooks.n && p < r->map.all; p++)
        writes |= r->hooks.hook[i].want[p] == WEIR_WRITE;
    return writes;
}

bool weir_run_hook_gradients(const weir_run *r, int i)
{
    bool any = false;
    for (int64_t p = r->map.n; i >= 0 && i < r->hooks.n && p < r->map.all; p++)
        any |= r->hooks.hook[i].want[p] != WEIR_NONE;
    return any;
}

int64_t weir_run_hook_changed(const weir_run *r, int i, int64_t *missed)
{
    int64_t unused;
    missed = missed ? missed : &unused;
    *missed = 0;
    const weir_attached *h = i >= 0 && i < r->hooks.n ? &r->hooks.hook[i] : NULL;
    return h && h->class->changed ? h->class->changed(h->self, missed) : -1;
}

bool weir_run_enough(const weir_run *r)
{
    return r->hooks.enough;
}

weir_status weir_run_declare(weir_run *r, struct weir_dump *d, weir_err *err)
{
    return weir_listeners_declare(&r->hooks, d, err);
}

weir_status weir_run_finish(weir_run *r, FILE *out, weir_err *err)
{
    weir_status first = WEIR_OK;
    for (int i = 0; i < r->hooks.n; i++) {
        weir_attached *h = &r->hooks.hook[i];
        weir_status st = WEIR_OK;
        if (!h->fired && h->excused) /* it has nothing to say */
            continue;
        if (h->class->finish) {
            st = h->class->finish(h->self, out, err);
            if (st)
                weir_fail(err, st, "hook %s could not finish", h->class->name);
        }
        if (!st && !h->fired)
            st = weir_fail(err, WEIR_E_HOOK, "hook %s never fired: no pass reached a point that it wants",
                           h->class->name);
        if (!first)
            first = st;
    }
    return first;
}

bool weir_run_site_wanted(const weir_run *r, weir_site site)
{
    for (int64_t i = 0; i < r->map.n; i++)
        if (r->map.point[i].site == site && r->hooks.want[i] != WEIR_NONE)
            return true;
    return false;
}

/* The walk over a template's tree. */
#include <string.h>

#include "base/utf8.h"
#include "chat_impl.h"

enum { DEPTH_MOST = 600, STEPS_MOST = 5 * 1000 * 1000, TURN_STEPS = 32 };

typedef weir_chat_node node;
typedef weir_chat_value value;

/* What a statement asks of the loop around it. */
typedef enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;

static weir_status eval(weir_chat_run *r, const node *n, value *out);
static weir_status walk(weir_chat_run *r, const node *n, flow *f);

weir_status weir_chat_no_memory(const weir_chat_run *r)
{
    return weir_nomem(r->src->err, "a conversation");
}

static weir_status refuse(const weir_chat_run *r, const node *n, const char *what, const value *a, const value *b)
{
    return weir_chat_fail(r->src, WEIR_E_UNSUPPORTED, n->line, "%s of %s%s%s is not supported", what,
                          weir_chat_type_word[a->type], b ? " and " : "", b ? weir_chat_type_word[b->type] : "");
}

weir_status weir_chat_spend(weir_chat_run *r, int line, size_t steps)
{
    r->steps += (int64_t)steps;
    return r->steps <= STEPS_MOST
               ? WEIR_OK
               : weir_chat_fail(r->src, WEIR_E_UNSUPPORTED, line, "it takes more than %d steps", STEPS_MOST);
}

weir_status weir_chat_enter(weir_chat_run *r, int line)
{
    WEIR_TRY(weir_chat_spend(r, line, 1));
    return ++r->depth <= DEPTH_MOST ? WEIR_OK
                                    : weir_chat_fail(r->src, WEIR_E_UNSUPPORTED, line, "it is nested too deeply");
}

/* --- variables */

weir_status weir_chat_set(weir_chat_run *r, weir_str name, value v)
{
    for (size_t i = r->frame; i < r->n_var; i++)
        if (weir_chat_same(r->var[i].name, name)) {
            r->var[i].v = v;
            return WEIR_OK;
        }
    weir_chat_variable *var = weir_grow(r->var, r->n_var, sizeof *var);
    if (!var)
        return weir_chat_no_memory(r);
    r->var = var;
    r->var[r->n_var++] = (weir_chat_variable){name, v};
    return WEIR_OK;
}

static value find(const weir_chat_run *r, weir_str name)
{
    static const char *const functions[] = {"raise_exception", "namespace"};
    for (size_t i = r->n_var; i-- > 0;)
        if (weir_chat_same(r->var[i].name, name))
            return r->var[i].v;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (weir_str_eq(name, functions[i]))
            return (value){.type = WEIR_CHAT_FUNCTION, .s = name};
    return (value){.type = WEIR_CHAT_UNDEFINED, .s = name};
}

/* --- parts of values */

/* a.s: an entry of a mapping, else a method. */
static weir_status attribute(weir_chat_run *r, const node *n, const value *a, value *out)
{
    if (a->type == WEIR_CHAT_UNDEFINED)
        return weir_chat_fail(r->src, WEIR_E_FORMAT, n->line, "%.*s is not defined, and has no \"%.*s\"", (int)a->s.n,
                              a->s.p, (int)n->s.n, n->s.p);
    static const char *const of_map[] = {"items", "keys", "values", "get"};
    bool map = a->type == WEIR_CHAT_MAP, method = a->type == WEIR_CHAT_STR || a->type == WEIR_CHAT_ARRAY;
    for (size_t i = 0; map && i < sizeof of_map / sizeof *of_map; i++)
        method = method || weir_str_eq(n->s, of_map[i]); /* Jinja looks for these first */
    const value *entry = (map || a->type == WEIR_CHAT_SPACE) && !method ? weir_chat_get(a, n->s) : NULL;
    if (!method) {
        *out = entry ? *entry : (value){.type = WEIR_CHAT_UNDEFINED, .s = n->s};
        return WEIR_OK;
    }
    value *of = weir_arena_alloc(r->arena, 1, sizeof *of);
    if (!of)
        return weir_chat_no_memory(r);
    *of = *a;
    *out = (value){.type = WEIR_CHAT_METHOD, .s = n->s, .of = of};
    return WEIR_OK;
}

/* Elements of a list, or characters of a string, which are then cut out. */
static int64_t length(const value *v)
{
    int64_t n = 0;
    if (v->type == WEIR_CHAT_ARRAY || v->type == WEIR_CHAT_MAP)
        return v->items->n;
    for (size_t i = 0; i < v->s.n; n++) {
        int len = weir_utf8_len(v->s.p + i, v->s.n - i);
        i += len ? (size_t)len : 1;
    }
    return n;
}

/* The i-th character of a string. */
static weir_str character(weir_str s, int64_t index)
{
    size_t at = 0;
    for (;; index--) {
        int len = weir_utf8_len(s.p + at, s.n - at);
        size_t n = len ? (size_t)len : 1;
        if (index == 0)
            return (weir_str){s.p + at, n};
        at += n;
    }
}

static weir_status item(weir_chat_run *r, const node *n, const value *a, const value *key, value *out)
{
    *out = (value){.type = WEIR_CHAT_UNDEFINED, .s = {"an item", 7}};
    if (a->type == WEIR_CHAT_UNDEFINED)
        return weir_chat_fail(r->src, WEIR_E_FORMAT, n->line, "%.*s is not defined, and has no items", (int)a->s.n,
                              a->s.p);
    if (a->type == WEIR_CHAT_MAP && key->type == WEIR_CHAT_STR) {
        const value *entry = weir_chat_get(a, key->s);
        *out = entry ? *entry : (value){.type = WEIR_CHAT_UNDEFINED, .s = key->s};
        return WEIR_OK;
    }
    if ((a->type != WEIR_CHAT_ARRAY && a->type != WEIR_CHAT_STR) || key->type != WEIR_CHAT_INT)
        return refuse(r, n, "the item", a, NULL);
    int64_t len = length(a), i = key->i < 0 ? key->i + len : key->i;
    if (i < 0 || i >= len)
        return WEIR_OK;
    *out = a->type == WEIR_CHAT_ARRAY ? a->items->v[i] : weir_chat_str(character(a->s, i));
    return WEIR_OK;
}

/* One bound of a slice; absent ones keep what *i has. */
static weir_status bound(weir_chat_run *r, const node *n, int part, int64_t len, int64_t lowest, int64_t highest,
                         int64_t *i)
{
    value v;
    if (!n->args[part])
        return WEIR_OK;
    WEIR_TRY(eval(r, n->args[part], &v));
    if (v.type == WEIR_CHAT_NONE)
        return WEIR_OK;
    if (v.type != WEIR_CHAT_INT)
        return refuse(r, n, "a slice with a bound", &v, NULL);
    *i = v.i < 0 ? v.i + len : v.i;
    *i = *i < lowest ? lowest : *i > highest ? highest : *i;
    return WEIR_OK;
}

/* Characters of a string that has len of them. */
static weir_status cut_text(weir_chat_run *r, weir_str s, int64_t len, int64_t from, int64_t to, int64_t step,
                            value *out)
{
    size_t *at = weir_arena_alloc(r->arena, (size_t)len + 1, sizeof *at);
    char *p = weir_arena_alloc(r->arena, s.n + 1, 1);
    if (!at || !p)
        return weir_chat_no_memory(r);
    for (int64_t i = 0; i < len; i++) {
        int n = weir_utf8_len(s.p + at[i], s.n - at[i]);
        at[i + 1] = at[i] + (n ? (size_t)n : 1);
    }
    *out = weir_chat_str((weir_str){p, 0});
    for (int64_t i = from; step < 0 ? i > to : i < to; i += step) {
        memcpy(p + out->s.n, s.p + at[i], at[i + 1] - at[i]);
        out->s.n += at[i + 1] - at[i];
    }
    return WEIR_OK;
}

/* a[from:to:step] as Python has it. */
static weir_status slice(weir_chat_run *r, const node *n, value *out)
{
    value a, step = weir_chat_int(1);
    WEIR_TRY(eval(r, n->a, &a));
    if (n->args[2])
        WEIR_TRY(eval(r, n->args[2], &step));
    if ((a.type != WEIR_CHAT_ARRAY && a.type != WEIR_CHAT_STR) || step.type != WEIR_CHAT_INT || step.i == 0)
        return refuse(r, n, "a slice", &a, NULL);
    const int64_t len = length(&a);
    const bool back = step.i < 0;
    int64_t from = back ? len - 1 : 0, to = back ? -1 : len;
    WEIR_TRY(bound(r, n, 0, len, back ? -1 : 0, back ? len - 1 : len, &from));
    WEIR_TRY(bound(r, n, 1, len, back ? -1 : 0, back ? len - 1 : len, &to));
    WEIR_TRY(weir_chat_spend(r, n->line, 2 * (size_t)len));
    if (a.type == WEIR_CHAT_STR)
        return cut_text(r, a.s, len, from, to, step.i, out);
    *out = weir_chat_array(r->arena);
    bool ok = out->items != NULL;
    for (int64_t i = from; ok && (back ? i > to : i < to); i += step.i)
        ok = weir_chat_push(r->arena, out, a.items->v[i]);
    return ok ? WEIR_OK : weir_chat_no_memory(r);
}

/* --- operators */

static weir_status join(weir_chat_run *r, const node *n, weir_str a, weir_str b, value *out)
{
    WEIR_TRY(weir_chat_spend(r, n->line, (a.n + b.n) / WEIR_CHAT_STEP_BYTES));
    char *p = weir_arena_alloc(r->arena, a.n + b.n + 1, 1);
    if (!p)
        return weir_chat_no_memory(r);
    if (a.n)
        memcpy(p, a.p, a.n);
    if (b.n)
        memcpy(p + a.n, b.p, b.n);
    *out = weir_chat_str((weir_str){p, a.n + b.n});
    return WEIR_OK;
}

static weir_status append(weir_chat_run *r, const node *n, const value *a, const value *b, value *out)
{
    bool ok = true;
    WEIR_TRY(weir_chat_spend(r, n->line, (size_t)(a->items->n + b->items->n) * WEIR_CHAT_STEPS_ITEM));
    *out = weir_chat_array(r->arena);
    for (int64_t i = 0; ok && i < a->items->n; i++)
        ok = weir_chat_push(r->arena, out, a->items->v[i]);
    for (int64_t i = 0; ok && i < b->items->n; i++)
        ok = weir_chat_push(r->arena, out, b->items->v[i]);
    return ok && out->items ? WEIR_OK : weir_chat_no_memory(r);
}

static weir_status arithmetic(weir_chat_run *r, const node *n, const value *a, const value *b, value *out)
{
    const char sign = n->s.p[0];
    int64_t i = 0;
    bool fine = a->type == WEIR_CHAT_INT && b->type == WEIR_CHAT_INT;
    if (fine && sign == '+')
        fine = !__builtin_add_overflow(a->i, b->i, &i);
    else if (fine && sign == '-')
        fine = !__builtin_sub_overflow(a->i, b->i, &i);
    else if (fine && sign == '*' && n->s.n == 1)
        fine = !__builtin_mul_overflow(a->i, b->i, &i);
    else if (fine && sign == '%' && b->i > 0)
        i = (a->i % b->i + b->i) % b->i;
    else if (fine && weir_str_eq(n->s, "//") && b->i > 0)
        i = (a->i - (a->i % b->i + b->i) % b->i) / b->i;
    else
        fine = false;
    *out = weir_chat_int(i);
    if (fine)
        return WEIR_OK;
    char what[32];
    snprintf(what, sizeof what, "\"%.*s\"", (int)n->s.n, n->s.p);
    return refuse(r, n, what, a, b);
}

static weir_status add(weir_chat_run *r, const node *n, const value *a, const value *b, value *out)
{
    if (a->type == WEIR_CHAT_STR && b->type == WEIR_CHAT_STR)
        return join(r, n, a->s, b->s, out);
    if (a->type == WEIR_CHAT_ARRAY && b->type == WEIR_CHAT_ARRAY)
        return append(r, n, a, b, out);
    return arithmetic(r, n, a, b, out);
}

static weir_status contains(weir_chat_run *r, const node *n, const value *part, const value *whole, bool *out)
{
    *out = false;
    if (whole->type == WEIR_CHAT_STR && part->type == WEIR_CHAT_STR) {
        *out = part->s.n == 0 || (whole->s.n && memmem(whole->s.p, whole->s.n, part->s.p, part->s.n));
    } else if (whole->type == WEIR_CHAT_MAP && part->type == WEIR_CHAT_STR) {
        *out = weir_chat_get(whole, part->s) != NULL;
    } else if (whole->type == WEIR_CHAT_ARRAY) {
        for (int64_t i = 0; i < whole->items->n && !*out; i++)
            WEIR_TRY(weir_chat_equal(r, n->line, &whole->items->v[i], part, out));
    } else if (whole->type != WEIR_CHAT_UNDEFINED) {
        return refuse(r, n, "\"in\"", part, whole);
    }
    return WEIR_OK;
}

static weir_status compare(weir_chat_run *r, const node *n, const value *a, const value *b, bool *out)
{
    const bool equal = n->s.n == 2 && n->s.p[1] == '=';
    int order = 0;
    if (weir_str_eq(n->s, "==") || weir_str_eq(n->s, "!=")) {
        WEIR_TRY(weir_chat_equal(r, n->line, a, b, out));
        *out = *out == (n->s.p[0] == '=');
        return WEIR_OK;
    }
    if (n->s.p[0] == 'i' || n->s.p[0] == 'n') {
        WEIR_TRY(contains(r, n, a, b, out));
        *out = *out == (n->s.p[0] == 'i');
        return WEIR_OK;
    }
    if (a->type == WEIR_CHAT_INT && b->type == WEIR_CHAT_INT) {
        order = (a->i > b->i) - (a->i < b->i);
    } else if (a->type == WEIR_CHAT_STR && b->type == WEIR_CHAT_STR) {
        size_t least = a->s.n < b->s.n ? a->s.n : b->s.n;
        order = least ? memcmp(a->s.p, b->s.p, least) : 0;
        order = order ? order : (a->s.n > b->s.n) - (a->s.n < b->s.n);
    } else {
        return refuse(r, n, "a comparison", a, b);
    }
    *out = (order == 0 && equal) || (n->s.p[0] == '<' ? order < 0 : order > 0);
    return WEIR_OK;
}

static bool is_comparison(weir_str s)
{
    return strchr("=!<>in", s.p[0]) != NULL;
}

static weir_status binary(weir_chat_run *r, const node *n, value *out)
{
    value a, b;
    bool yes;
    WEIR_TRY(eval(r, n->a, &a));
    if (weir_str_eq(n->s, "or") || weir_str_eq(n->s, "and")) {
        *out = a;
        return weir_chat_truth(&a) == (n->s.p[0] == 'o') ? WEIR_OK : eval(r, n->b, out);
    }
    WEIR_TRY(eval(r, n->b, &b));
    if (is_comparison(n->s)) {
        WEIR_TRY(compare(r, n, &a, &b, &yes));
        *out = weir_chat_bool(yes);
        return WEIR_OK;
    }
    if (n->s.p[0] == '~') {
        weir_str x, y;
        WEIR_TRY(weir_chat_text(r, n->line, &a, &x));
        WEIR_TRY(weir_chat_text(r, n->line, &b, &y));
        return join(r, n, x, y, out);
    }
    return n->s.p[0] == '+' ? add(r, n, &a, &b, out) : arithmetic(r, n, &a, &b, out);
}

static weir_status chain(weir_chat_run *r, const node *n, value *out)
{
    value a, b;
    bool yes = true;
    WEIR_TRY(eval(r, n->args[0]->a, &a));
    for (int i = 0; i < n->n && yes; i++, a = b) {
        WEIR_TRY(eval(r, n->args[i]->b, &b));
        WEIR_TRY(compare(r, n->args[i], &a, &b, &yes));
    }
    *out = weir_chat_bool(yes);
    return WEIR_OK;
}

static weir_status unary(weir_chat_run *r, const node *n, value *out)
{
    value a;
    WEIR_TRY(eval(r, n->a, &a));
    if (n->s.p[0] == 'n') {
        *out = weir_chat_bool(!weir_chat_truth(&a));
        return WEIR_OK;
    }
    if (a.type != WEIR_CHAT_INT)
        return refuse(r, n, "a sign", &a, NULL);
    *out = weir_chat_int(n->s.p[0] == '-' ? -a.i : a.i);
    return WEIR_OK;
}

/* --- lists, calls */

static weir_status list(weir_chat_run *r, const node *n, value *out)
{
    const bool map = n->kind == WEIR_CHAT_DICT;
    *out = map ? weir_chat_map(r->arena) : weir_chat_array(r->arena);
    if (!out->items)
        return weir_chat_no_memory(r);
    for (int i = 0; i < n->n; i += 1 + map) {
        value v, key = {0};
        if (map) {
            WEIR_TRY(eval(r, n->args[i], &key));
            if (key.type != WEIR_CHAT_STR)
                return refuse(r, n, "a key", &key, NULL);
        }
        WEIR_TRY(eval(r, n->args[i + map], &v));
        if (!(map ? weir_chat_put(r->arena, out, key.s, v) : weir_chat_push(r->arena, out, v)))
            return weir_chat_no_memory(r);
    }
    return WEIR_OK;
}

/* The arguments of a call, filter or test, evaluated. */
static weir_status arguments(weir_chat_run *r, const node *n, weir_chat_args *out)
{
    value *v = weir_arena_alloc(r->arena, (size_t)n->n * 2 + 1, sizeof *v);
    weir_str *name = weir_arena_alloc(r->arena, (size_t)n->n + 1, sizeof *name);
    if (!v || !name)
        return weir_chat_no_memory(r);
    for (int i = 0; i < n->n; i++) {
        WEIR_TRY(eval(r, n->args[i], &v[i]));
        name[i] = n->names ? n->names[i] : (weir_str){0};
    }
    *out = (weir_chat_args){v, name, n->n};
    return WEIR_OK;
}

/* Steps that a filter or method may need for a value. */
static size_t size_of(const value *v)
{
    bool many = v->type == WEIR_CHAT_ARRAY || v->type == WEIR_CHAT_MAP;
    return many ? 8 * (size_t)v->items->n : v->type == WEIR_CHAT_STR ? v->s.n / WEIR_CHAT_STEP_BYTES : 0;
}

static weir_status apply(weir_chat_run *r, const node *n, value *out)
{
    weir_chat_args args;
    value a;
    bool yes;
    WEIR_TRY(eval(r, n->a, &a));
    WEIR_TRY(weir_chat_spend(r, n->line, size_of(a.type == WEIR_CHAT_METHOD ? a.of : &a)));
    WEIR_TRY(arguments(r, n, &args));
    if (n->kind == WEIR_CHAT_CALL)
        return weir_chat_call(r, n, &a, &args, out);
    if (n->kind == WEIR_CHAT_FILTER)
        return weir_chat_filter(r, n, &a, &args, out);
    WEIR_TRY(weir_chat_test(r, n, &a, &args, &yes));
    *out = weir_chat_bool(yes);
    return WEIR_OK;
}

static weir_status choice(weir_chat_run *r, const node *n, value *out)
{
    value b;
    WEIR_TRY(eval(r, n->b, &b));
    if (weir_chat_truth(&b))
        return eval(r, n->a, out);
    *out = (value){.type = WEIR_CHAT_UNDEFINED, .s = {"a choice without else", 21}};
    return n->c ? eval(r, n->c, out) : WEIR_OK;
}

static weir_status eval_kind(weir_chat_run *r, const node *n, value *out)
{
    value a, b;
    switch (n->kind) {
    case WEIR_CHAT_CONST_TEXT:
        *out = weir_chat_str(n->s);
        return WEIR_OK;
    case WEIR_CHAT_CONST_NUMBER:
        *out = weir_chat_int(n->number);
        return WEIR_OK;
    case WEIR_CHAT_CONST_TRUE:
    case WEIR_CHAT_CONST_FALSE:
        *out = weir_chat_bool(n->kind == WEIR_CHAT_CONST_TRUE);
        return WEIR_OK;
    case WEIR_CHAT_CONST_NONE:
        *out = (value){.type = WEIR_CHAT_NONE};
        return WEIR_OK;
    case WEIR_CHAT_VARIABLE:
        *out = find(r, n->s);
        return WEIR_OK;
    case WEIR_CHAT_LIST:
    case WEIR_CHAT_DICT:
        return list(r, n, out);
    case WEIR_CHAT_ATTRIBUTE:
        WEIR_TRY(eval(r, n->a, &a));
        return attribute(r, n, &a, out);
    case WEIR_CHAT_ITEM:
        WEIR_TRY(eval(r, n->a, &a));
        WEIR_TRY(eval(r, n->b, &b));
        return item(r, n, &a, &b, out);
    case WEIR_CHAT_SLICE:
        return slice(r, n, out);
    case WEIR_CHAT_UNARY:
        return unary(r, n, out);
    case WEIR_CHAT_BINARY:
        return binary(r, n, out);
    case WEIR_CHAT_CHAIN:
        return chain(r, n, out);
    case WEIR_CHAT_CHOICE:
        return choice(r, n, out);
    default:
        return apply(r, n, out);
    }
}

static weir_status eval(weir_chat_run *r, const node *n, value *out)
{
    WEIR_TRY(weir_chat_enter(r, n->line));
    weir_status st = eval_kind(r, n, out);
    r->depth--;
    return st;
}

/* --- statements */

static weir_status put_loop(weir_chat_run *r, const value *items, int64_t i)
{
    const int64_t n = items->items->n;
    value loop = weir_chat_map(r->arena);
    const struct {
        const char *name;
        value v;
    } part[] = {{"index", weir_chat_int(i + 1)},    {"index0", weir_chat_int(i)},
                {"revindex", weir_chat_int(n - i)}, {"revindex0", weir_chat_int(n - i - 1)},
                {"first", weir_chat_bool(i == 0)},  {"last", weir_chat_bool(i == n - 1)},
                {"length", weir_chat_int(n)}};
    bool ok = loop.items != NULL;
    for (size_t k = 0; ok && k < sizeof part / sizeof *part; k++)
        ok = weir_chat_put(r->arena, &loop, (weir_str){part[k].name, strlen(part[k].name)}, part[k].v);
    if (ok && i > 0)
        ok = weir_chat_put(r->arena, &loop, (weir_str){"previtem", 8}, items->items->v[i - 1]);
    if (ok && i + 1 < n)
        ok = weir_chat_put(r->arena, &loop, (weir_str){"nextitem", 8}, items->items->v[i + 1]);
    return ok ? weir_chat_set(r, (weir_str){"loop", 4}, loop) : weir_chat_no_memory(r);
}

static weir_status put_targets(weir_chat_run *r, const node *n, const value *v)
{
    if (!n->t.p)
        return weir_chat_set(r, n->s, *v);
    if (v->type != WEIR_CHAT_ARRAY || v->items->n != 2)
        return refuse(r, n, "a loop with two variables over elements", v, NULL);
    WEIR_TRY(weir_chat_set(r, n->s, v->items->v[0]));
    return weir_chat_set(r, n->t, v->items->v[1]);
}

/* What a loop goes over: elements; keys of a mapping. Those that its condition lets through. */
static weir_status loop_items(weir_chat_run *r, const node *n, value *out)
{
    value a, yes;
    WEIR_TRY(eval(r, n->a, &a));
    *out = weir_chat_array(r->arena);
    if (!out->items)
        return weir_chat_no_memory(r);
    if (a.type == WEIR_CHAT_UNDEFINED)
        return WEIR_OK;
    if (a.type != WEIR_CHAT_ARRAY && a.type != WEIR_CHAT_MAP)
        return refuse(r, n, "a loop over the parts", &a, NULL);
    for (int64_t i = 0; i < a.items->n; i++) {
        value v = a.type == WEIR_CHAT_MAP ? weir_chat_str(a.items->key[i]) : a.items->v[i];
        if (n->b) {
            WEIR_TRY(put_targets(r, n, &v));
            WEIR_TRY(eval(r, n->b, &yes));
        }
        if ((!n->b || weir_chat_truth(&yes)) && !weir_chat_push(r->arena, out, v))
            return weir_chat_no_memory(r);
    }
    return WEIR_OK;
}

/* The variables of each turn end with it. */
static weir_status loop(weir_chat_run *r, const node *n)
{
    const size_t frame = r->frame, vars = r->n_var;
    value items;
    flow f = FLOW_ON;
    r->frame = vars;
    weir_status st = loop_items(r, n, &items);
    for (int64_t i = 0; st == WEIR_OK && i < items.items->n && f != FLOW_BREAK; i++) {
        r->n_var = vars;
        f = FLOW_ON;
        st = weir_chat_spend(r, n->line, TURN_STEPS);
        if (st == WEIR_OK)
            st = put_loop(r, &items, i);
        if (st == WEIR_OK)
            st = put_targets(r, n, &items.items->v[i]);
        if (st == WEIR_OK)
            st = walk(r, n->body, &f);
    }
    r->n_var = vars;
    r->frame = frame;
    if (st == WEIR_OK && items.items->n == 0 && n->other)
        st = walk(r, n->other, &f);
    return st;
}

static weir_status assign(weir_chat_run *r, const node *n)
{
    value v;
    WEIR_TRY(eval(r, n->a, &v));
    if (!n->t.p)
        return weir_chat_set(r, n->s, v);
    value space = find(r, n->s);
    if (space.type != WEIR_CHAT_SPACE)
        return refuse(r, n, "setting an attribute", &space, NULL);
    return weir_chat_put(r->arena, &space, n->t, v) ? WEIR_OK : weir_chat_no_memory(r);
}

static weir_status put_out(weir_chat_run *r, const node *n, weir_str s)
{
    WEIR_TRY(weir_chat_spend(r, n->line, s.n / WEIR_CHAT_STEP_BYTES));
    return weir_buf_add(r->out, s.p, s.n) == WEIR_OK ? WEIR_OK : weir_chat_no_memory(r);
}

static weir_status statement(weir_chat_run *r, const node *n, flow *f)
{
    value v;
    weir_str s;
    switch (n->kind) {
    case WEIR_CHAT_OUT_TEXT:
        return put_out(r, n, n->s);
    case WEIR_CHAT_OUT:
        WEIR_TRY(eval(r, n->a, &v));
        WEIR_TRY(weir_chat_text(r, n->line, &v, &s));
        return put_out(r, n, s);
    case WEIR_CHAT_IF:
        WEIR_TRY(eval(r, n->a, &v));
        return walk(r, weir_chat_truth(&v) ? n->body : n->other, f);
    case WEIR_CHAT_FOR:
        return loop(r, n);
    case WEIR_CHAT_SET:
        return assign(r, n);
    default:
        *f = n->kind == WEIR_CHAT_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
        return WEIR_OK;
    }
}

static weir_status walk(weir_chat_run *r, const node *n, flow *f)
{
    for (; n && *f == FLOW_ON; n = n->next)
        WEIR_TRY(statement(r, n, f));
    return WEIR_OK;
}

weir_status weir_chat_walk(weir_chat_run *r, const weir_chat_node *first)
{
    flow f = FLOW_ON;
    WEIR_TRY(walk(r, first, &f));
    return f == FLOW_ON
               ? WEIR_OK
               : weir_chat_fail(r->src, WEIR_E_FORMAT, first->line, "break or continue stands outside of a loop");
}

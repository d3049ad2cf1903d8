/* Filters, tests, methods and functions by their names, as Jinja 3.1 and Python have them. */
#include <string.h>

#include "chat_impl.h"

typedef weir_chat_node node;
typedef weir_chat_value value;
typedef weir_chat_args args;

/* What was written: "the filter trim". */
static weir_status unknown(const weir_chat_run *r, const node *at, const char *what, weir_str name, const value *of)
{
    return weir_chat_fail(r->src, WEIR_E_UNSUPPORTED, at->line, "the %s \"%.*s\" of %s%s is not supported", what,
                          (int)name.n, name.p, weir_chat_type_word[of->type], at->n ? ", with these arguments," : "");
}

/* Are the arguments `least` to `most` in number, all by place and strings? */
static bool strings(const args *a, int least, int most)
{
    bool fine = a->n >= least && a->n <= most;
    for (int i = 0; fine && i < a->n; i++)
        fine = !a->name[i].p && a->v[i].type == WEIR_CHAT_STR;
    return fine;
}

static weir_status copy(const weir_chat_run *r, const weir_buf *b, value *out)
{
    char *p = weir_arena_strndup(r->arena, b->n ? b->p : "", b->n);
    *out = weir_chat_str((weir_str){p, b->n});
    return p ? WEIR_OK : weir_chat_no_memory(r);
}

/* --- strings */

/* Bytes that strip drops at one end: white space, or any of the characters (single bytes) in set. */
static size_t dropped(weir_str s, const weir_str *set, bool behind)
{
    size_t n = 0;
    if (!set)
        return behind ? weir_chat_space_behind(s) : weir_chat_space_before(s);
    while (n < s.n && set->n && memchr(set->p, behind ? s.p[s.n - 1 - n] : s.p[n], set->n))
        n++;
    return n;
}

static bool is_ascii(weir_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    return true;
}

static value strip(weir_str s, const weir_str *set, bool left, bool right)
{
    size_t before = left ? dropped(s, set, false) : 0;
    s = (weir_str){s.p + before, s.n - before};
    s.n -= right ? dropped(s, set, true) : 0;
    return weir_chat_str(s);
}

static weir_status replace(weir_chat_run *r, int line, weir_str s, weir_str old, weir_str new, value *out)
{
    weir_buf b = {0};
    weir_status st = WEIR_OK;
    for (size_t i = 0; st == WEIR_OK && i < s.n;) {
        bool hit = s.n - i >= old.n && memcmp(s.p + i, old.p, old.n) == 0;
        st = hit ? weir_chat_spend(r, line, 1 + new.n / WEIR_CHAT_STEP_BYTES) : WEIR_OK;
        if (st == WEIR_OK && (hit ? weir_buf_add(&b, new.p, new.n) : weir_buf_add(&b, s.p + i, 1)) != WEIR_OK)
            st = weir_chat_no_memory(r);
        i += hit ? old.n : 1;
    }
    if (st == WEIR_OK)
        st = copy(r, &b, out);
    weir_buf_free(&b);
    return st;
}

static weir_status split(weir_chat_run *r, int line, weir_str s, weir_str by, value *out)
{
    *out = weir_chat_array(r->arena);
    for (;;) {
        const char *hit = s.n ? memmem(s.p, s.n, by.p, by.n) : NULL;
        weir_str part = {s.p, hit ? (size_t)(hit - s.p) : s.n};
        WEIR_TRY(weir_chat_spend(r, line, WEIR_CHAT_STEPS_ITEM));
        if (!weir_chat_push(r->arena, out, weir_chat_str(part)))
            return weir_chat_no_memory(r);
        if (!hit)
            return WEIR_OK;
        s = (weir_str){hit + by.n, s.n - part.n - by.n};
    }
}

/* ASCII alone: what other letters become depends on tables that are not here. */
static weir_status change_case(weir_chat_run *r, weir_str s, bool upper, value *out)
{
    char *p = weir_arena_strndup(r->arena, s.n ? s.p : "", s.n);
    if (!p)
        return weir_chat_no_memory(r);
    for (size_t i = 0; i < s.n; i++)
        if (upper ? p[i] >= 'a' && p[i] <= 'z' : p[i] >= 'A' && p[i] <= 'Z')
            p[i] ^= 0x20;
    *out = weir_chat_str((weir_str){p, s.n});
    return WEIR_OK;
}

static bool starts(weir_str s, weir_str with)
{
    return s.n >= with.n && (with.n == 0 || memcmp(s.p, with.p, with.n) == 0);
}

/* A method of a string; also the filters of the same name. *done: it is known. */
static weir_status of_string(weir_chat_run *r, int line, weir_str name, weir_str s, const args *a, value *out,
                             bool *done)
{
    static const struct {
        const char *name;
        bool left, right;
    } strips[] = {{"strip", true, true}, {"lstrip", true, false}, {"rstrip", false, true}, {"trim", true, true}};
    *done = true;
    for (size_t i = 0; i < sizeof strips / sizeof *strips; i++)
        if (weir_str_eq(name, strips[i].name) && strings(a, 0, 1) && (a->n == 0 || is_ascii(a->v[0].s))) {
            *out = strip(s, a->n ? &a->v[0].s : NULL, strips[i].left, strips[i].right);
            return WEIR_OK;
        }
    if (weir_str_eq(name, "startswith") && strings(a, 1, 1)) {
        *out = weir_chat_bool(starts(s, a->v[0].s));
        return WEIR_OK;
    }
    if (weir_str_eq(name, "endswith") && strings(a, 1, 1)) {
        weir_str end = a->v[0].s;
        *out = weir_chat_bool(s.n >= end.n && starts((weir_str){s.p + (s.n - end.n), end.n}, end));
        return WEIR_OK;
    }
    if (weir_str_eq(name, "replace") && strings(a, 2, 2) && a->v[0].s.n)
        return replace(r, line, s, a->v[0].s, a->v[1].s, out);
    if (weir_str_eq(name, "split") && strings(a, 1, 1) && a->v[0].s.n)
        return split(r, line, s, a->v[0].s, out);
    bool upper = weir_str_eq(name, "upper");
    if ((upper || weir_str_eq(name, "lower")) && a->n == 0 && is_ascii(s))
        return change_case(r, s, upper, out);
    *done = false;
    return WEIR_OK;
}

/* --- mappings */

/* Keys, values, or pairs. */
static weir_status entries(weir_chat_run *r, const value *map, bool keys, bool values, value *out)
{
    bool ok = true;
    *out = weir_chat_array(r->arena);
    for (int64_t i = 0; ok && i < map->items->n; i++) {
        const value key = weir_chat_str(map->items->key[i]), v = map->items->v[i];
        value pair = keys && values ? weir_chat_array(r->arena) : key;
        if (keys && values)
            ok = weir_chat_push(r->arena, &pair, key) && weir_chat_push(r->arena, &pair, v);
        ok = ok && weir_chat_push(r->arena, out, keys ? pair : v);
    }
    return ok && out->items ? WEIR_OK : weir_chat_no_memory(r);
}

static weir_status of_map(weir_chat_run *r, weir_str name, const value *map, const args *a, value *out, bool *done)
{
    bool items = weir_str_eq(name, "items"), keys = weir_str_eq(name, "keys"), values = weir_str_eq(name, "values");
    *done = true;
    if ((items || keys || values) && a->n == 0)
        return entries(r, map, items || keys, items || values, out);
    if (weir_str_eq(name, "get") && a->n >= 1 && a->n <= 2 && a->v[0].type == WEIR_CHAT_STR && !a->name[0].p) {
        const value *v = weir_chat_get(map, a->v[0].s);
        *out = v ? *v : a->n == 2 ? a->v[1] : (value){.type = WEIR_CHAT_NONE};
        return WEIR_OK;
    }
    *done = false;
    return WEIR_OK;
}

/* --- calls */

static weir_status make_namespace(weir_chat_run *r, const node *at, const args *a, value *out)
{
    *out = weir_chat_map(r->arena);
    for (int i = 0; i < a->n; i++) {
        if (!a->name[i].p)
            return weir_chat_fail(r->src, WEIR_E_UNSUPPORTED, at->line,
                                  "namespace with an argument without a name is not "
                                  "supported");
        if (!weir_chat_put(r->arena, out, a->name[i], a->v[i]))
            return weir_chat_no_memory(r);
    }
    if (!out->items)
        return weir_chat_no_memory(r);
    out->type = WEIR_CHAT_SPACE;
    return WEIR_OK;
}

weir_status weir_chat_call(weir_chat_run *r, const node *at, const value *f, const args *a, value *out)
{
    bool done = false;
    if (f->type == WEIR_CHAT_METHOD) {
        if (f->of->type == WEIR_CHAT_STR && !weir_str_eq(f->s, "trim"))
            WEIR_TRY(of_string(r, at->line, f->s, f->of->s, a, out, &done));
        else if (f->of->type == WEIR_CHAT_MAP)
            WEIR_TRY(of_map(r, f->s, f->of, a, out, &done));
        return done ? WEIR_OK : unknown(r, at, "method", f->s, f->of);
    }
    if (f->type == WEIR_CHAT_UNDEFINED)
        return weir_chat_fail(r->src, WEIR_E_UNSUPPORTED, at->line, "the function \"%.*s\" is not supported",
                              (int)f->s.n, f->s.p);
    if (f->type != WEIR_CHAT_FUNCTION)
        return weir_chat_fail(r->src, WEIR_E_FORMAT, at->line, "%s cannot be called", weir_chat_type_word[f->type]);
    if (weir_str_eq(f->s, "namespace"))
        return make_namespace(r, at, a, out);
    weir_str why = {"", 0};
    if (a->n)
        WEIR_TRY(weir_chat_text(r, at->line, &a->v[0], &why));
    return weir_chat_fail(r->src, WEIR_E_ARG, at->line, "the template says: %.*s", (int)(why.n < 300 ? why.n : 300),
                          why.p);
}

/* --- filters */

static weir_status join(weir_chat_run *r, const node *at, const value *v, const args *a, value *out)
{
    weir_buf b = {0};
    weir_str s;
    weir_status st = WEIR_OK;
    for (int64_t i = 0; st == WEIR_OK && i < v->items->n; i++) {
        st = weir_chat_text(r, at->line, &v->items->v[i], &s);
        if (st == WEIR_OK)
            st = weir_chat_spend(r, at->line, 1 + (s.n + (a->n ? a->v[0].s.n : 0)) / WEIR_CHAT_STEP_BYTES);
        if (st == WEIR_OK && i && a->n && weir_buf_add(&b, a->v[0].s.p, a->v[0].s.n) != WEIR_OK)
            st = weir_chat_no_memory(r);
        if (st == WEIR_OK && weir_buf_add(&b, s.p, s.n) != WEIR_OK)
            st = weir_chat_no_memory(r);
    }
    if (st == WEIR_OK)
        st = copy(r, &b, out);
    weir_buf_free(&b);
    return st;
}

/* selectattr(NAME), selectattr(NAME, "equalto", VALUE), and rejectattr. */
static weir_status select_by(weir_chat_run *r, const node *at, const value *v, const args *a, bool reject, value *out)
{
    const bool equal =
        a->n == 3 && a->v[1].type == WEIR_CHAT_STR &&
        (weir_str_eq(a->v[1].s, "equalto") || weir_str_eq(a->v[1].s, "==") || weir_str_eq(a->v[1].s, "eq"));
    if (!(a->n == 1 || equal) || a->v[0].type != WEIR_CHAT_STR ||
        (a->v[0].s.n && memchr(a->v[0].s.p, '.', a->v[0].s.n)))
        return unknown(r, at, "filter", at->s, v);
    *out = weir_chat_array(r->arena);
    for (int64_t i = 0; i < v->items->n; i++) {
        const value *x = &v->items->v[i];
        const value undefined = {.type = WEIR_CHAT_UNDEFINED},
                    *part = x->type == WEIR_CHAT_MAP ? weir_chat_get(x, a->v[0].s) : NULL;
        part = part ? part : &undefined;
        bool yes = weir_chat_truth(part);
        if (equal)
            WEIR_TRY(weir_chat_equal(r, at->line, part, &a->v[2], &yes));
        if (yes != reject && !weir_chat_push(r->arena, out, *x))
            return weir_chat_no_memory(r);
    }
    return out->items ? WEIR_OK : weir_chat_no_memory(r);
}

static weir_status of_list(weir_chat_run *r, const node *at, const value *v, const args *a, value *out, bool *done)
{
    const weir_str name = at->s;
    const weir_chat_items *x = v->items;
    bool first = weir_str_eq(name, "first"), reject = weir_str_eq(name, "rejectattr");
    *done = true;
    if ((first || weir_str_eq(name, "last")) && a->n == 0) {
        *out = x->n ? x->v[first ? 0 : x->n - 1] : (value){.type = WEIR_CHAT_UNDEFINED, .s = name};
        return WEIR_OK;
    }
    if (weir_str_eq(name, "list") && a->n == 0) {
        *out = *v; /* lists are never changed in place */
        return WEIR_OK;
    }
    if (weir_str_eq(name, "join") && strings(a, 0, 1))
        return join(r, at, v, a, out);
    if (reject || weir_str_eq(name, "selectattr"))
        return select_by(r, at, v, a, reject, out);
    *done = false;
    return WEIR_OK;
}

/* Filters of any value. */
static weir_status of_any(weir_chat_run *r, const node *at, const value *v, const args *a, value *out, bool *done)
{
    const weir_str name = at->s;
    const bool counted = v->type == WEIR_CHAT_ARRAY || v->type == WEIR_CHAT_MAP;
    *done = true;
    if ((weir_str_eq(name, "default") || weir_str_eq(name, "d")) && a->n >= 1 && a->n <= 2) {
        bool empty = v->type == WEIR_CHAT_UNDEFINED || (a->n == 2 && weir_chat_truth(&a->v[1]) && !weir_chat_truth(v));
        *out = empty ? a->v[0] : *v;
        return WEIR_OK;
    }
    if ((weir_str_eq(name, "length") || weir_str_eq(name, "count")) && a->n == 0 &&
        (counted || (v->type == WEIR_CHAT_STR && is_ascii(v->s)))) {
        *out = weir_chat_int(counted ? v->items->n : (int64_t)v->s.n);
        return WEIR_OK;
    }
    if (weir_str_eq(name, "string") && a->n == 0) {
        *out = weir_chat_str((weir_str){0});
        return weir_chat_text(r, at->line, v, &out->s);
    }
    if (weir_str_eq(name, "tojson") && a->n == 0) {
        *out = weir_chat_str((weir_str){0});
        return weir_chat_json(r, at->line, v, &out->s);
    }
    *done = false;
    return WEIR_OK;
}

weir_status weir_chat_filter(weir_chat_run *r, const node *at, const value *v, const args *a, value *out)
{
    static const char *const text[] = {"trim", "upper", "lower", "replace"};
    bool done = false;
    WEIR_TRY(of_any(r, at, v, a, out, &done));
    for (size_t i = 0; i < sizeof text / sizeof *text && !done && v->type == WEIR_CHAT_STR; i++)
        if (weir_str_eq(at->s, text[i]))
            WEIR_TRY(of_string(r, at->line, at->s, v->s, a, out, &done));
    if (!done && v->type == WEIR_CHAT_ARRAY)
        WEIR_TRY(of_list(r, at, v, a, out, &done));
    if (!done && v->type == WEIR_CHAT_MAP && weir_str_eq(at->s, "items"))
        WEIR_TRY(of_map(r, at->s, v, a, out, &done));
    return done ? WEIR_OK : unknown(r, at, "filter", at->s, v);
}

/* --- tests */

weir_status weir_chat_test(weir_chat_run *r, const node *at, const value *v, const args *a, bool *out)
{
    const weir_chat_type t = v->type;
    const struct {
        const char *name;
        bool yes;
    } known[] = {
        {"defined", t != WEIR_CHAT_UNDEFINED},
        {"undefined", t == WEIR_CHAT_UNDEFINED},
        {"none", t == WEIR_CHAT_NONE},
        {"string", t == WEIR_CHAT_STR},
        {"mapping", t == WEIR_CHAT_MAP},
        {"iterable", t == WEIR_CHAT_ARRAY || t == WEIR_CHAT_MAP || t == WEIR_CHAT_STR || t == WEIR_CHAT_UNDEFINED},
        {"sequence", t == WEIR_CHAT_ARRAY || t == WEIR_CHAT_MAP || t == WEIR_CHAT_STR || t == WEIR_CHAT_UNDEFINED},
        {"boolean", t == WEIR_CHAT_BOOL},
        {"true", t == WEIR_CHAT_BOOL && v->i},
        {"false", t == WEIR_CHAT_BOOL && !v->i},
        {"number", t == WEIR_CHAT_INT || t == WEIR_CHAT_BOOL},
        {"integer", t == WEIR_CHAT_INT},
        {"odd", t == WEIR_CHAT_INT && v->i % 2 != 0},
        {"even", t == WEIR_CHAT_INT && v->i % 2 == 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known && a->n == 0; i++)
        if (weir_str_eq(at->s, known[i].name)) {
            *out = known[i].yes;
            return WEIR_OK;
        }
    bool equal = weir_str_eq(at->s, "equalto") || weir_str_eq(at->s, "eq");
    if (a->n == 1 && (equal || weir_str_eq(at->s, "ne"))) {
        WEIR_TRY(weir_chat_equal(r, at->line, v, &a->v[0], out));
        *out = *out == equal;
        return WEIR_OK;
    }
    return unknown(r, at, "test", at->s, v);
}

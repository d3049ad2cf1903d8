/* Arguments of hooks: "post[:,0:8],k=5,abs". */
#include <string.h>

#include <weir/json.h>

#include "selector.h"

typedef struct arg {
    const char *key, *value; /* value NULL: not given */
    bool is_switch;
} arg;

struct weir_hook_args {
    weir_arena arena;
    const char *hook;
    arg *arg; /* [n] one for each key that the hook knows */
    int n;
    weir_buf selectors;
};

/* Bytes of the item that begins at p. */
static size_t item_length(const char *p)
{
    int depth = 0;
    size_t n = 0;
    for (; p[n] && (p[n] != ',' || depth > 0); n++)
        depth += (p[n] == '{' || p[n] == '[') - (p[n] == '}' || p[n] == ']');
    return n;
}

static arg *find(const weir_hook_args *a, weir_str key)
{
    for (int i = 0; i < a->n; i++)
        if (strlen(a->arg[i].key) == key.n && memcmp(a->arg[i].key, key.p, key.n) == 0)
            return &a->arg[i];
    return NULL;
}

static weir_status unknown_key(const weir_hook_args *a, weir_str key, weir_err *err)
{
    const char *nearest = NULL;
    int best = INT32_MAX;
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(key.n < sizeof text ? key.n : sizeof text - 1), key.p);
    for (int i = 0; i <= a->n; i++) {
        const char *candidate = i < a->n ? a->arg[i].key : "sel";
        int d = weir_name_distance(text, candidate);
        if (d < best) {
            best = d;
            nearest = candidate;
        }
    }
    return weir_fail(err, WEIR_E_ARG, "hook %s has no argument \"%s\"; the nearest is \"%s\"", a->hook, text, nearest);
}

static weir_status add_selector(weir_hook_args *a, weir_str s, weir_err *err)
{
    if (s.n == 0)
        return weir_fail(err, WEIR_E_ARG, "hook %s: an argument is empty", a->hook);
    if (weir_buf_printf(&a->selectors, "%s%.*s", a->selectors.n ? "," : "", (int)s.n, s.p))
        return weir_nomem(err, "a hook's arguments");
    return WEIR_OK;
}

static weir_status set(weir_hook_args *a, arg *to, weir_str value, weir_err *err)
{
    if (to->value)
        return weir_fail(err, WEIR_E_ARG, "hook %s: \"%s\" is given twice", a->hook, to->key);
    to->value = weir_arena_strndup(&a->arena, value.p, value.n);
    return to->value ? WEIR_OK : weir_nomem(err, "a hook's arguments");
}

static weir_str trim(weir_str s)
{
    while (s.n && *s.p == ' ')
        s.p++, s.n--;
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

static weir_status add_item(weir_hook_args *a, weir_str item, weir_err *err)
{
    item = trim(item);
    const char *eq = item.n ? memchr(item.p, '=', item.n) : NULL;
    weir_str key = {item.p, eq ? (size_t)(eq - item.p) : item.n};
    weir_str value = eq ? (weir_str){eq + 1, item.n - key.n - 1} : (weir_str){item.p + item.n, 0};
    arg *known = find(a, key);
    if (!eq && !known)
        return add_selector(a, item, err);
    if (!known && key.n == 3 && memcmp(key.p, "sel", 3) == 0)
        return add_selector(a, value, err);
    if (!known)
        return unknown_key(a, key, err);
    if (eq && known->is_switch)
        return weir_fail(err, WEIR_E_ARG, "hook %s: \"%s\" takes no value", a->hook, known->key);
    if (!known->is_switch && value.n == 0)
        return weir_fail(err, WEIR_E_ARG, "hook %s: \"%s\" needs a value: %s=...", a->hook, known->key, known->key);
    return set(a, known, value, err);
}

static weir_status parse(weir_hook_args *a, const char *hook, const char *text, const char *const *keys, weir_err *err)
{
    int n = 0;
    while (keys[n])
        n++;
    a->arg = weir_arena_alloc(&a->arena, (size_t)n, sizeof *a->arg);
    a->hook = weir_arena_strndup(&a->arena, hook, strlen(hook));
    if (!a->arg || !a->hook)
        return weir_nomem(err, "a hook's arguments");
    for (; a->n < n; a->n++) {
        size_t len = strcspn(keys[a->n], "=");
        char *key = weir_arena_strndup(&a->arena, keys[a->n], len);
        if (!key)
            return weir_nomem(err, "a hook's arguments");
        a->arg[a->n] = (arg){.key = key, .is_switch = keys[a->n][len] == '\0'};
    }
    if (!text || !*text)
        return WEIR_OK;
    for (;; text++) {
        size_t len = item_length(text);
        WEIR_TRY(add_item(a, (weir_str){text, len}, err));
        text += len;
        if (!*text)
            return WEIR_OK;
    }
}

weir_status weir_hook_args_parse(weir_hook_args **out, const char *hook, const char *text, const char *const *keys,
                                 weir_err *err)
{
    *out = NULL;
    weir_hook_args *a = weir_calloc(1, sizeof *a);
    if (!a)
        return weir_nomem(err, "a hook's arguments");
    weir_status st = parse(a, hook, text, keys, err);
    if (st)
        weir_hook_args_free(a);
    else
        *out = a;
    return st;
}

void weir_hook_args_free(weir_hook_args *a)
{
    if (!a)
        return;
    weir_buf_free(&a->selectors);
    weir_arena_free(&a->arena);
    weir_free(a);
}

const char *weir_hook_args_selectors(const weir_hook_args *a)
{
    return a->selectors.n ? a->selectors.p : NULL;
}

const char *weir_hook_args_text(const weir_hook_args *a, const char *key)
{
    const arg *g = find(a, (weir_str){key, strlen(key)});
    return g ? g->value : NULL;
}

weir_status weir_hook_args_int(const weir_hook_args *a, const char *key, int64_t min, int64_t max, int64_t *v,
                               weir_err *err)
{
    const char *text = weir_hook_args_text(a, key);
    if (!text)
        return WEIR_OK;
    bool negative = *text == '-';
    int64_t n;
    bool number = weir_digits((weir_str){text + negative, strlen(text + negative)}, &n);
    n = number && negative ? -n : n;
    if (!number || n < min || n > max)
        return weir_fail(err, WEIR_E_ARG, "hook %s: %s=%s must be a whole number from %lld to %lld", a->hook, key, text,
                         (long long)min, (long long)max);
    *v = n;
    return WEIR_OK;
}

weir_status weir_hook_args_number(const weir_hook_args *a, const char *key, double *v, weir_err *err)
{
    const char *text = weir_hook_args_text(a, key);
    if (!text)
        return WEIR_OK;
    weir_json j; /* numbers as in JSON: the same under every locale */
    weir_json_init(&j, text, strlen(text), NULL, NULL);
    double n = weir_json_double(&j);
    weir_json_end(&j);
    if (weir_json_done(&j))
        return weir_fail(err, WEIR_E_ARG, "hook %s: %s=%s must be a number", a->hook, key, text);
    *v = n;
    return WEIR_OK;
}

/* Brackets of a selector: up to three entries between commas, each a list of numbers and half-open ranges joined by
 * `+`. */
#include <string.h>

#include "selector.h"

typedef struct scanner {
    const char *p, *end;
    weir_str whole;
    weir_err *err;
} scanner;

static weir_status broken(scanner *s, const char *what)
{
    return weir_fail(s->err, WEIR_E_ARG, "\"%.*s\": %s", (int)s->whole.n, s->whole.p, what);
}

static void skip_space(scanner *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
        s->p++;
}

static bool accept(scanner *s, char c)
{
    skip_space(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    skip_space(s);
    return true;
}

/* A number, if one stands here. */
static bool number(scanner *s, int64_t *out)
{
    skip_space(s);
    const char *p = s->p;
    bool minus = p < s->end && *p == '-';
    p += minus;
    const char *digits = p;
    while (p < s->end && *p >= '0' && *p <= '9')
        p++;
    if (!weir_digits((weir_str){digits, (size_t)(p - digits)}, out))
        return false;
    if (minus)
        *out = -*out;
    s->p = p;
    return true;
}

/* NUMBER, NUMBER:NUMBER with either end left out, or `:`. */
static weir_status range(scanner *s, weir_range *r)
{
    *r = (weir_range){0};
    r->from_start = !number(s, &r->from);
    if (!accept(s, ':')) {
        r->single = true;
        return r->from_start ? broken(s, "a number, a range a:b or : was expected") : WEIR_OK;
    }
    r->to_end = !number(s, &r->to);
    if (!r->from_start && !r->to_end && (r->from < 0) == (r->to < 0) && r->from >= r->to)
        return broken(s, "a range a:b ends before b, so b must be greater than a");
    return WEIR_OK;
}

static weir_status entry(scanner *s, weir_arena *a, weir_ranges *out)
{
    size_t most = 1;
    for (const char *p = s->p; p < s->end && *p != ',' && *p != ']'; p++)
        most += *p == '+';
    out->r = weir_arena_alloc(a, most, sizeof *out->r);
    if (!out->r)
        return weir_nomem(s->err, "a selector");
    bool all = false;
    do {
        weir_range *r = &out->r[out->n++];
        WEIR_TRY(range(s, r));
        all |= r->from_start && r->to_end;
    } while (accept(s, '+'));
    if (all)
        out->n = 0;
    return WEIR_OK;
}

weir_status weir_brackets_parse(weir_brackets *out, weir_arena *a, weir_str text, weir_err *err)
{
    scanner s = {.p = text.p, .end = text.p + text.n, .whole = text, .err = err};
    *out = (weir_brackets){0};
    if (!accept(&s, '['))
        return broken(&s, "brackets were expected");
    do {
        if (out->n == WEIR_MAX_ENTRIES)
            return broken(&s, "brackets have at most three entries: [position, head, unit]");
        WEIR_TRY(entry(&s, a, &out->entry[out->n++]));
    } while (accept(&s, ','));
    if (!accept(&s, ']'))
        return broken(&s, "a number, a range, + or ] was expected");
    return s.p == s.end ? WEIR_OK : broken(&s, "nothing may follow the brackets");
}

/* The range within [0, len): [*from, *to). */
static void resolve(const weir_range *r, int64_t len, int64_t *from, int64_t *to)
{
    *from = r->from_start ? 0 : r->from < 0 ? r->from + len : r->from;
    if (r->single)
        *to = *from + 1;
    else
        *to = r->to_end ? len : r->to < 0 ? r->to + len : r->to;
}

bool weir_ranges_have(const weir_ranges *rs, int64_t i, int64_t len)
{
    bool any = rs->n == 0;
    for (int k = 0; k < rs->n && !any; k++) {
        int64_t from, to;
        resolve(&rs->r[k], len, &from, &to);
        any = i >= from && i < to;
    }
    return any;
}

weir_status weir_ranges_mark(const weir_ranges *rs, int64_t len, uint8_t *mark, const char *what, const char *point,
                             weir_err *err)
{
    if (rs->n == 0)
        memset(mark, 1, (size_t)len);
    for (int k = 0; k < rs->n; k++) {
        int64_t from, to;
        resolve(&rs->r[k], len, &from, &to);
        if (from < 0 || to > len || from >= to)
            return weir_fail(err, WEIR_E_ARG, "%s %lld%s does not exist: %s has %lld, 0 to %lld", what,
                             (long long)(rs->r[k].single || from < 0 ? rs->r[k].from : rs->r[k].to),
                             rs->r[k].single ? "" : " of a range", point, (long long)len, (long long)(len - 1));
        memset(mark + from, 1, (size_t)(to - from));
    }
    return WEIR_OK;
}

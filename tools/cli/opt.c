#include "opt.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers */

bool weir_parse_int(const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-');
    if (*digits == 0 || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return errno == 0;
}

bool weir_parse_real(const char *text, double *out)
{
    /* strtod also takes hexadecimal, white space, "inf" and "nan": none of them is a number that an option means. */
    if (*text == 0 || strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    char *end;
    *out = strtod(text, &end);
    return *end == 0 && end != text && isfinite(*out);
}

bool weir_parse_bytes(const char *text, int64_t *out)
{
    char digits[24];
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n >= sizeof digits)
        return false;
    memcpy(digits, text, n);
    digits[n] = 0;
    static const char units[] = "KMG";
    int shift = 0;
    if (text[n] != 0) {
        const char *unit = strchr(units, text[n]);
        if (!unit || text[n + 1] != 0)
            return false;
        shift = 10 * (int)(unit - units + 1);
    }
    return weir_parse_int(digits, out) && *out <= INT64_MAX >> shift && (*out *= (int64_t)1 << shift, true);
}

/* --- the parser */

typedef struct opt_parser {
    const weir_opt_use *use;
    int argc;
    char **argv;
    char *args;
    bool *given; /* [total], in order of the tables */
    int total;
    int place; /* argument that is being read */
    char *msg;
    size_t msg_size;
} opt_parser;

/* A row of the tables, where its value goes, and its number. */
typedef struct opt_ref {
    const weir_opt *opt;
    char *value;
    int index;
} opt_ref;

static weir_opt_result bad(opt_parser *p, const char *fmt, ...) WEIR_PRINTF(2, 3);
static weir_opt_result bad(opt_parser *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->msg, p->msg_size, fmt, ap);
    va_end(ap);
    return WEIR_OPT_BAD;
}

/* The i-th option of all groups; opt = NULL past the end. */
static opt_ref opt_at(const weir_opt_use *use, char *args, int i)
{
    opt_ref r = {NULL, NULL, i};
    for (; use->group; use++) {
        if (i < use->group->n) {
            r.opt = &use->group->opt[i];
            r.value = args + use->at + r.opt->at;
            break;
        }
        i -= use->group->n;
    }
    return r;
}

static int opt_total(const weir_opt_use *use)
{
    int n = 0;
    for (; use->group; use++)
        n += use->group->n;
    return n;
}

static bool name_is(const char *name, const char *text, size_t n)
{
    return name && strlen(name) == n && memcmp(name, text, n) == 0;
}

static opt_ref find_long(const opt_parser *p, const char *text, size_t n)
{
    for (int i = 0; i < p->total; i++) {
        opt_ref r = opt_at(p->use, p->args, i);
        if (name_is(r.opt->name, text, n) || name_is(r.opt->alias, text, n))
            return r;
    }
    return (opt_ref){0};
}

static opt_ref find_letter(const opt_parser *p, char letter)
{
    for (int i = 0; i < p->total; i++) {
        opt_ref r = opt_at(p->use, p->args, i);
        if (r.opt->letter == letter)
            return r;
    }
    return (opt_ref){0};
}

/* Index of text among the words of "a|b|c", or -1. */
static int choice_index(const char *words, const char *text)
{
    size_t n = strlen(text);
    for (int i = 0;; i++) {
        size_t w = strcspn(words, "|");
        if (w == n && memcmp(words, text, n) == 0)
            return i;
        if (words[w] == 0)
            return -1;
        words += w + 1;
    }
}

static weir_opt_result store_number(opt_parser *p, opt_ref r, const char *text)
{
    const weir_opt *o = r.opt;
    int64_t *value = (void *)r.value;
    if (!(o->type == WEIR_OPT_INT ? weir_parse_int(text, value) : weir_parse_bytes(text, value)))
        return bad(p, "--%s %s: not a whole number%s", o->name, text,
                   o->type == WEIR_OPT_BYTES ? " (K, M or G may follow it)" : "");
    if (*value < o->min)
        return bad(p, "--%s %s: must be at least %lld", o->name, text, (long long)o->min);
    if (o->max && *value > o->max)
        return bad(p, "--%s %s: must be at most %lld", o->name, text, (long long)o->max);
    return WEIR_OPT_OK;
}

static weir_opt_result store_list(opt_parser *p, opt_ref r, const char *text)
{
    weir_opt_list *list = (void *)r.value;
    if (!list->v) {
        list->v = calloc((size_t)p->argc, sizeof *list->v);
        list->place = calloc((size_t)p->argc, sizeof *list->place);
    }
    if (!list->v || !list->place)
        return bad(p, "out of memory");
    list->place[list->n] = p->place;
    list->v[list->n++] = text;
    return WEIR_OPT_OK;
}

static weir_opt_result store(opt_parser *p, opt_ref r, const char *text)
{
    const weir_opt *o = r.opt;
    switch (o->type) {
    case WEIR_OPT_FLAG:
        *(bool *)r.value = true;
        return WEIR_OPT_OK;
    case WEIR_OPT_INT:
    case WEIR_OPT_BYTES:
        return store_number(p, r, text);
    case WEIR_OPT_REAL:
        if (!weir_parse_real(text, (double *)(void *)r.value))
            return bad(p, "--%s %s: not a number", o->name, text);
        if (*(double *)(void *)r.value < (double)o->min)
            return bad(p, "--%s %s: must be at least %lld", o->name, text, (long long)o->min);
        return WEIR_OPT_OK;
    case WEIR_OPT_CHOICE:
        *(int *)(void *)r.value = choice_index(o->arg, text);
        return *(int *)(void *)r.value >= 0 ? WEIR_OPT_OK : bad(p, "--%s %s: must be one of %s", o->name, text, o->arg);
    case WEIR_OPT_STR:
    case WEIR_OPT_LIST:
        if (*text == 0)
            return bad(p, "--%s: its value is empty", o->name);
        if (o->type == WEIR_OPT_LIST)
            return store_list(p, r, text);
        *(const char **)(void *)r.value = text;
        return WEIR_OPT_OK;
    }
    return WEIR_OPT_OK;
}

static weir_opt_result give(opt_parser *p, opt_ref r, const char *text)
{
    if (p->given[r.index] && r.opt->type != WEIR_OPT_LIST && r.opt->type != WEIR_OPT_FLAG)
        return bad(p, "--%s is given twice", r.opt->name);
    p->given[r.index] = true;
    return store(p, r, text);
}

/* The value that follows as an argument of its own. It may begin with a dash ("-4:"), but not be an option itself. */
static const char *next_value(const opt_parser *p, int i)
{
    if (i + 1 >= p->argc)
        return NULL;
    const char *text = p->argv[i + 1];
    if (strncmp(text, "--", 2) == 0 && (text[2] == 0 || find_long(p, text + 2, strcspn(text + 2, "=")).opt))
        return NULL;
    return text;
}

static weir_opt_result unknown(opt_parser *p, const char *text, size_t n)
{
    const char **names = calloc((size_t)p->total * 2 + 1, sizeof *names);
    char *name = strndup(text, n);
    int count = 0;
    for (int i = 0; names && i < p->total; i++) {
        opt_ref r = opt_at(p->use, p->args, i);
        names[count++] = r.opt->name;
        if (r.opt->alias)
            names[count++] = r.opt->alias;
    }
    const char *near = name && names ? weir_nearest(name, names, count) : NULL;
    bad(p, near ? "unknown option --%.*s; did you mean --%s?" : "unknown option --%.*s", (int)n, text,
        near ? near : "");
    free(names);
    free(name);
    return WEIR_OPT_BAD;
}

/* --name, --name=value, --name value. *i moves past what was used. */
static weir_opt_result take_long(opt_parser *p, int *i)
{
    const char *text = p->argv[*i] + 2;
    size_t n = strcspn(text, "=");
    if (name_is("help", text, strlen(text)))
        return WEIR_OPT_HELP;
    opt_ref r = find_long(p, text, n);
    if (!r.opt)
        return unknown(p, text, n);
    const char *value = text[n] ? text + n + 1 : NULL;
    if (r.opt->type == WEIR_OPT_FLAG)
        return value ? bad(p, "--%s takes no value", r.opt->name) : give(p, r, NULL);
    if (!value) {
        value = next_value(p, *i);
        if (!value)
            return bad(p, "--%s needs a value: %s", r.opt->name, r.opt->arg);
        ++*i;
    }
    return give(p, r, value);
}

/* -x, -xVALUE, -x VALUE, and flags joined: -jq. */
static weir_opt_result take_short(opt_parser *p, int *i)
{
    for (const char *c = p->argv[*i] + 1; *c; c++) {
        if (*c == 'h')
            return WEIR_OPT_HELP;
        opt_ref r = find_letter(p, *c);
        if (!r.opt)
            return bad(p, "unknown option -%c (a text that begins with a dash stands behind --)", *c);
        if (r.opt->type == WEIR_OPT_FLAG) {
            give(p, r, NULL);
            continue;
        }
        const char *value = c[1] ? c + 1 : next_value(p, *i);
        if (!value)
            return bad(p, "-%c needs a value: %s", *c, r.opt->arg);
        *i += c[1] == 0;
        return give(p, r, value);
    }
    return WEIR_OPT_OK;
}

static weir_opt_result read_arguments(opt_parser *p, weir_opt_operands *operands)
{
    bool options = true;
    for (int i = 0; i < p->argc; i++) {
        const char *text = p->argv[i];
        weir_opt_result result = WEIR_OPT_OK;
        p->place = i;
        if (options && strcmp(text, "--") == 0)
            options = false;
        else if (options && strncmp(text, "--", 2) == 0)
            result = take_long(p, &i);
        else if (options && text[0] == '-' && text[1])
            result = take_short(p, &i);
        else
            operands->v[operands->n++] = text;
        if (result != WEIR_OPT_OK)
            return result;
    }
    return WEIR_OPT_OK;
}

/* Is one of the options "a|b" given? *known: the tool has one of them. */
static bool any_given(const opt_parser *p, const char *names, bool *known)
{
    bool given = false;
    *known = false;
    for (size_t n; n = strcspn(names, "|"), n; names += n + (names[n] != 0)) {
        opt_ref r = find_long(p, names, n);
        *known |= r.opt != NULL;
        given |= r.opt && p->given[r.index];
    }
    return given;
}

static weir_opt_result check_rules(opt_parser *p, const weir_opt_rule *rule)
{
    for (; rule && rule->name; rule++) {
        bool has_a, has_b;
        bool a = any_given(p, rule->name, &has_a), b = any_given(p, rule->other, &has_b);
        int n = (int)strcspn(rule->other, "|");
        if (!has_b || !a)
            continue;
        if (rule->kind == WEIR_OPT_EXCLUDES && b)
            return bad(p, "--%s and --%s exclude each other", rule->name, rule->other);
        if (rule->kind == WEIR_OPT_NEEDS && !b)
            return bad(p, "--%s has a meaning only with --%.*s%s%s", rule->name, n, rule->other,
                       rule->other[n] ? " or --" : "", rule->other[n] ? rule->other + n + 1 : "");
    }
    return WEIR_OPT_OK;
}

weir_opt_result weir_opt_parse(const weir_opt_use *use, const weir_opt_rule *rules, int argc, char **argv, void *args,
                               weir_opt_operands *operands, char *msg, size_t n)
{
    opt_parser p = {
        .use = use, .argc = argc, .argv = argv, .args = args, .total = opt_total(use), .msg = msg, .msg_size = n};
    p.given = calloc((size_t)p.total + 1, sizeof *p.given);
    operands->v = calloc((size_t)argc + 1, sizeof *operands->v);
    operands->n = 0;
    operands->given = p.given;
    weir_opt_result result = p.given && operands->v ? WEIR_OPT_OK : bad(&p, "out of memory");
    for (int i = 0; i < p.total && result == WEIR_OPT_OK; i++) {
        opt_ref r = opt_at(use, args, i);
        if (r.opt->def)
            result = store(&p, r, r.opt->def);
    }
    if (result == WEIR_OPT_OK)
        result = read_arguments(&p, operands);
    if (result == WEIR_OPT_OK)
        result = check_rules(&p, rules);
    return result;
}

bool weir_opt_given(const weir_opt_use *use, const bool *given, const char *name)
{
    for (int i = 0; use->group; use++)
        for (int j = 0; j < use->group->n; j++, i++)
            if (name_is(use->group->opt[j].name, name, strlen(name)))
                return given[i];
    return false;
}

void weir_opt_release(const weir_opt_use *use, void *args, weir_opt_operands *operands)
{
    int total = opt_total(use);
    for (int i = 0; i < total; i++) {
        opt_ref r = opt_at(use, args, i);
        weir_opt_list *list = r.opt->type == WEIR_OPT_LIST ? (void *)r.value : NULL;
        if (list) {
            free(list->v);
            free(list->place);
        }
    }
    free(operands->v);
    free(operands->given);
}

bool weir_opt_list_join(char **out, const weir_opt_list *list)
{
    size_t n = 1;
    for (int i = 0; i < list->n; i++)
        n += strlen(list->v[i]) + 1;
    if (list->n == 0)
        return true;
    *out = calloc(n, 1);
    for (int i = 0; *out && i < list->n; i++) {
        strcat(*out, i ? "," : "");
        strcat(*out, list->v[i]);
    }
    return *out != NULL;
}

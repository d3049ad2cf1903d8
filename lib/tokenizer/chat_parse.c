/* Tokens to a tree, with the precedence of Jinja's parser (parser.py of Jinja 3.1). Filters, tests, methods and
 * functions are parsed whatever their names: those that are not known are refused only where a conversation reaches
 * them. */
#include <stdio.h>
#include <string.h>

#include "chat_impl.h"

enum { DEPTH_MOST = 100, ARGS_MOST = 64 };

typedef weir_chat_node node;

typedef struct parser {
    const weir_chat_source *src;
    const weir_chat_token *t;
    int depth;
} parser;

/* Every way into the depth of the tree comes by here. */
static weir_status descend(parser *p)
{
    return ++p->depth <= DEPTH_MOST ? WEIR_OK
                                    : weir_chat_fail(p->src, WEIR_E_UNSUPPORTED, p->t->line, "it is nested too deeply");
}

static weir_status parse_choice(parser *p, node **out);
static weir_status parse_or(parser *p, node **out);
static weir_status parse_unary(parser *p, bool filters, node **out);

/* --- tokens */

static bool is_sign(const parser *p, const char *z)
{
    return p->t->kind == WEIR_CHAT_SIGN && weir_str_eq(p->t->s, z);
}

static bool is_word(const parser *p, const char *z)
{
    return p->t->kind == WEIR_CHAT_NAME && weir_str_eq(p->t->s, z);
}

static bool take_sign(parser *p, const char *z)
{
    bool yes = is_sign(p, z);
    p->t += yes;
    return yes;
}

static bool take_word(parser *p, const char *z)
{
    bool yes = is_word(p, z);
    p->t += yes;
    return yes;
}

static weir_status unexpected(const parser *p, const char *wanted)
{
    if (p->t->kind == WEIR_CHAT_EOF)
        return weir_chat_fail(p->src, WEIR_E_FORMAT, p->t->line, "%s was expected, but the template ends", wanted);
    return weir_chat_fail(p->src, WEIR_E_FORMAT, p->t->line, "%s was expected, not \"%.*s\"", wanted,
                          (int)(p->t->s.n < 40 ? p->t->s.n : 40), p->t->s.p);
}

static weir_status want_sign(parser *p, const char *z)
{
    char wanted[16];
    snprintf(wanted, sizeof wanted, "\"%s\"", z);
    return take_sign(p, z) ? WEIR_OK : unexpected(p, wanted);
}

static weir_status want_name(parser *p, weir_str *name)
{
    if (p->t->kind != WEIR_CHAT_NAME)
        return unexpected(p, "a name");
    *name = (p->t++)->s;
    return WEIR_OK;
}

/* --- nodes */

static weir_status no_memory(const parser *p)
{
    return weir_nomem(p->src->err, "a chat template");
}

static weir_status make(parser *p, weir_chat_kind kind, node **out)
{
    *out = weir_arena_alloc(p->src->arena, 1, sizeof **out);
    if (!*out)
        return no_memory(p);
    (*out)->kind = kind;
    (*out)->line = p->t->line;
    return WEIR_OK;
}

static weir_status make_binary(parser *p, weir_str sign, node *a, node *b, node **out)
{
    WEIR_TRY(make(p, WEIR_CHAT_BINARY, out));
    (*out)->s = sign;
    (*out)->a = a;
    (*out)->b = b;
    return WEIR_OK;
}

/* Arguments while they are being collected. */
typedef struct args {
    node *v[ARGS_MOST];
    weir_str name[ARGS_MOST];
    int n;
    bool named;
} args;

static weir_status add_arg(parser *p, args *a, node *v, weir_str name)
{
    if (a->n == ARGS_MOST)
        return weir_chat_fail(p->src, WEIR_E_UNSUPPORTED, p->t->line, "more than %d parts in one expression",
                              ARGS_MOST);
    a->v[a->n] = v;
    a->name[a->n++] = name;
    a->named = a->named || name.p;
    return WEIR_OK;
}

static weir_status put_args(parser *p, node *to, const args *a)
{
    to->n = a->n;
    to->args = weir_arena_alloc(p->src->arena, (size_t)a->n + 1, sizeof *to->args);
    to->names = a->named ? weir_arena_alloc(p->src->arena, (size_t)a->n, sizeof *to->names) : NULL;
    if (!to->args || (a->named && !to->names))
        return no_memory(p);
    memcpy(to->args, a->v, (size_t)a->n * sizeof *to->args);
    if (a->named)
        memcpy(to->names, a->name, (size_t)a->n * sizeof *to->names);
    return WEIR_OK;
}

/* --- expressions */

/* Behind "(" of a call, up to and with ")". */
static weir_status parse_call_args(parser *p, node *to)
{
    args a = {0};
    while (!is_sign(p, ")")) {
        weir_str name = {0};
        node *v;
        if (is_sign(p, "*") || is_sign(p, "**"))
            return weir_chat_fail(p->src, WEIR_E_UNSUPPORTED, p->t->line, "unpacked arguments are not supported");
        if (p->t->kind == WEIR_CHAT_NAME && p->t[1].kind == WEIR_CHAT_SIGN && weir_str_eq(p->t[1].s, "=")) {
            name = p->t->s;
            p->t += 2;
        }
        WEIR_TRY(parse_choice(p, &v));
        WEIR_TRY(add_arg(p, &a, v, name));
        if (!take_sign(p, ","))
            break;
    }
    WEIR_TRY(want_sign(p, ")"));
    return put_args(p, to, &a);
}

/* Expressions with commas between, up to and with `end`. */
static weir_status parse_list(parser *p, const char *end, bool pairs, node *to)
{
    args a = {0};
    while (!is_sign(p, end)) {
        node *v;
        WEIR_TRY(parse_choice(p, &v));
        WEIR_TRY(add_arg(p, &a, v, (weir_str){0}));
        if (pairs) {
            WEIR_TRY(want_sign(p, ":"));
            WEIR_TRY(parse_choice(p, &v));
            WEIR_TRY(add_arg(p, &a, v, (weir_str){0}));
        }
        if (!take_sign(p, ","))
            break;
    }
    WEIR_TRY(want_sign(p, end));
    return put_args(p, to, &a);
}

/* Strings that stand side by side are one. */
static weir_status parse_text(parser *p, node **out)
{
    WEIR_TRY(make(p, WEIR_CHAT_CONST_TEXT, out));
    (*out)->s = (p->t++)->s;
    while (p->t->kind == WEIR_CHAT_TEXT) {
        const weir_str a = (*out)->s, b = (p->t++)->s;
        char *both = weir_arena_alloc(p->src->arena, a.n + b.n + 1, 1);
        if (!both)
            return no_memory(p);
        memcpy(both, a.p, a.n);
        memcpy(both + a.n, b.p, b.n);
        (*out)->s = (weir_str){both, a.n + b.n};
    }
    return WEIR_OK;
}

static weir_status parse_word(parser *p, node **out)
{
    static const struct {
        const char *word;
        weir_chat_kind kind;
    } constants[] = {{"true", WEIR_CHAT_CONST_TRUE},   {"True", WEIR_CHAT_CONST_TRUE}, {"false", WEIR_CHAT_CONST_FALSE},
                     {"False", WEIR_CHAT_CONST_FALSE}, {"none", WEIR_CHAT_CONST_NONE}, {"None", WEIR_CHAT_CONST_NONE}};
    WEIR_TRY(make(p, WEIR_CHAT_VARIABLE, out));
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (is_word(p, constants[i].word))
            (*out)->kind = constants[i].kind;
    (*out)->s = (p->t++)->s;
    return WEIR_OK;
}

/* Behind "(": an expression in brackets, or several: a tuple, which is a list here. */
static weir_status parse_brackets(parser *p, node **out)
{
    node *list;
    if (is_sign(p, ")")) {
        p->t++;
        return make(p, WEIR_CHAT_LIST, out);
    }
    WEIR_TRY(parse_choice(p, out));
    if (take_sign(p, ")"))
        return WEIR_OK;
    args a = {0};
    WEIR_TRY(make(p, WEIR_CHAT_LIST, &list));
    WEIR_TRY(add_arg(p, &a, *out, (weir_str){0}));
    while (take_sign(p, ",") && !is_sign(p, ")")) {
        WEIR_TRY(parse_choice(p, out));
        WEIR_TRY(add_arg(p, &a, *out, (weir_str){0}));
    }
    *out = list;
    WEIR_TRY(want_sign(p, ")"));
    return put_args(p, list, &a);
}

static weir_status parse_primary(parser *p, node **out)
{
    if (p->t->kind == WEIR_CHAT_NAME)
        return parse_word(p, out);
    if (p->t->kind == WEIR_CHAT_TEXT)
        return parse_text(p, out);
    if (p->t->kind == WEIR_CHAT_NUMBER) {
        WEIR_TRY(make(p, WEIR_CHAT_CONST_NUMBER, out));
        (*out)->number = (p->t++)->number;
        return WEIR_OK;
    }
    if (take_sign(p, "("))
        return parse_brackets(p, out);
    if (take_sign(p, "[")) {
        WEIR_TRY(make(p, WEIR_CHAT_LIST, out));
        return parse_list(p, "]", false, *out);
    }
    if (take_sign(p, "{")) {
        WEIR_TRY(make(p, WEIR_CHAT_DICT, out));
        return parse_list(p, "}", true, *out);
    }
    return unexpected(p, "an expression");
}

/* Behind "[": an item or a slice. */
static weir_status parse_subscript(parser *p, node *of, node **out)
{
    args a = {.n = 3};
    int part = 0;
    bool slice = false;
    for (;;) {
        if (!is_sign(p, ":") && !is_sign(p, "]"))
            WEIR_TRY(parse_choice(p, &a.v[part]));
        if (part == 2 || !take_sign(p, ":"))
            break;
        slice = true;
        part++;
    }
    WEIR_TRY(want_sign(p, "]"));
    WEIR_TRY(make(p, slice ? WEIR_CHAT_SLICE : WEIR_CHAT_ITEM, out));
    (*out)->a = of;
    (*out)->b = a.v[0];
    if (!slice && !a.v[0])
        return unexpected(p, "an index");
    return slice ? put_args(p, *out, &a) : WEIR_OK;
}

/* What may stand behind an expression: .name, [index], (arguments). */
static weir_status parse_postfix(parser *p, node **at)
{
    for (;;) {
        node *of = *at;
        if (take_sign(p, ".")) {
            WEIR_TRY(make(p, WEIR_CHAT_ATTRIBUTE, at));
            (*at)->a = of;
            WEIR_TRY(want_name(p, &(*at)->s));
        } else if (take_sign(p, "[")) {
            WEIR_TRY(parse_subscript(p, of, at));
        } else if (take_sign(p, "(")) {
            WEIR_TRY(make(p, WEIR_CHAT_CALL, at));
            (*at)->a = of;
            WEIR_TRY(parse_call_args(p, *at));
        } else {
            return WEIR_OK;
        }
    }
}

/* Does an argument without brackets follow a test's name? */
static bool test_argument(const parser *p)
{
    if (p->t->kind == WEIR_CHAT_NAME)
        return !is_word(p, "else") && !is_word(p, "or") && !is_word(p, "and") && !is_word(p, "is") &&
               !is_word(p, "if") && !is_word(p, "in") && !is_word(p, "not");
    return p->t->kind == WEIR_CHAT_TEXT || p->t->kind == WEIR_CHAT_NUMBER || is_sign(p, "[") || is_sign(p, "{");
}

/* Behind "is". */
static weir_status parse_test(parser *p, node **at)
{
    node *of = *at, *test;
    args a = {0};
    bool negated = take_word(p, "not");
    WEIR_TRY(make(p, WEIR_CHAT_TEST, &test));
    test->a = of;
    WEIR_TRY(want_name(p, &test->s));
    if (take_sign(p, "(")) {
        WEIR_TRY(parse_call_args(p, test));
    } else if (test_argument(p)) {
        node *arg;
        WEIR_TRY(parse_primary(p, &arg));
        WEIR_TRY(parse_postfix(p, &arg));
        WEIR_TRY(add_arg(p, &a, arg, (weir_str){0}));
        WEIR_TRY(put_args(p, test, &a));
    }
    *at = test;
    if (!negated)
        return WEIR_OK;
    WEIR_TRY(make(p, WEIR_CHAT_UNARY, at));
    (*at)->s = (weir_str){"not", 3};
    (*at)->a = test;
    return WEIR_OK;
}

static weir_status parse_filters(parser *p, node **at)
{
    for (;;) {
        node *of = *at;
        if (take_sign(p, "|")) {
            WEIR_TRY(make(p, WEIR_CHAT_FILTER, at));
            (*at)->a = of;
            WEIR_TRY(want_name(p, &(*at)->s));
            if (take_sign(p, "("))
                WEIR_TRY(parse_call_args(p, *at));
        } else if (take_word(p, "is")) {
            WEIR_TRY(parse_test(p, at));
        } else {
            return WEIR_OK;
        }
    }
}

static weir_status parse_unary(parser *p, bool filters, node **out)
{
    if (is_sign(p, "-") || is_sign(p, "+")) {
        node *sign;
        WEIR_TRY(make(p, WEIR_CHAT_UNARY, &sign));
        sign->s = (p->t++)->s;
        WEIR_TRY(descend(p));
        WEIR_TRY(parse_unary(p, false, &sign->a));
        p->depth--;
        *out = sign;
    } else {
        WEIR_TRY(parse_primary(p, out));
    }
    WEIR_TRY(parse_postfix(p, out));
    return filters ? parse_filters(p, out) : WEIR_OK;
}

/* Operators of one rank, from the left; the ranks from the tightest. */
static weir_status parse_rank(parser *p, int rank, node **out)
{
    static const char *const signs[3][5] = {{"*", "/", "//", "%", "**"}, {"~"}, {"+", "-"}};
    WEIR_TRY(rank ? parse_rank(p, rank - 1, out) : parse_unary(p, true, out));
    for (int i = 0; i < 5 && signs[rank][i];) {
        if (!is_sign(p, signs[rank][i])) {
            i++;
            continue;
        }
        weir_str sign = (p->t++)->s;
        node *b, *a = *out;
        WEIR_TRY(rank ? parse_rank(p, rank - 1, &b) : parse_unary(p, true, &b));
        WEIR_TRY(make_binary(p, sign, a, b, out));
        i = 0;
    }
    return WEIR_OK;
}

/* The sign of a comparison, if one stands here. */
static bool take_comparison(parser *p, weir_str *sign)
{
    static const char *const signs[] = {"==", "!=", "<", ">", "<=", ">="};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (is_sign(p, signs[i])) {
            *sign = (p->t++)->s;
            return true;
        }
    if (take_word(p, "in")) {
        *sign = (weir_str){"in", 2};
        return true;
    }
    bool not_in = is_word(p, "not") && p->t[1].kind == WEIR_CHAT_NAME && weir_str_eq(p->t[1].s, "in");
    p->t += not_in ? 2 : 0;
    *sign = (weir_str){"not in", 6};
    return not_in;
}

static weir_status parse_comparison(parser *p, node **out)
{
    args chain = {0};
    weir_str sign;
    WEIR_TRY(parse_rank(p, 2, out));
    while (take_comparison(p, &sign)) {
        node *b, *link;
        WEIR_TRY(parse_rank(p, 2, &b));
        WEIR_TRY(make_binary(p, sign, chain.n ? NULL : *out, b, &link));
        WEIR_TRY(add_arg(p, &chain, link, (weir_str){0}));
    }
    if (chain.n == 1)
        *out = chain.v[0];
    if (chain.n < 2)
        return WEIR_OK;
    WEIR_TRY(make(p, WEIR_CHAT_CHAIN, out));
    return put_args(p, *out, &chain);
}

static weir_status parse_not(parser *p, node **out)
{
    if (!is_word(p, "not"))
        return parse_comparison(p, out);
    WEIR_TRY(make(p, WEIR_CHAT_UNARY, out));
    (*out)->s = (p->t++)->s;
    WEIR_TRY(descend(p));
    WEIR_TRY(parse_not(p, &(*out)->a));
    p->depth--;
    return WEIR_OK;
}

static weir_status parse_and(parser *p, node **out)
{
    WEIR_TRY(parse_not(p, out));
    while (is_word(p, "and")) {
        weir_str sign = (p->t++)->s;
        node *b;
        WEIR_TRY(parse_not(p, &b));
        WEIR_TRY(make_binary(p, sign, *out, b, out));
    }
    return WEIR_OK;
}

static weir_status parse_or(parser *p, node **out)
{
    WEIR_TRY(parse_and(p, out));
    while (is_word(p, "or")) {
        weir_str sign = (p->t++)->s;
        node *b;
        WEIR_TRY(parse_and(p, &b));
        WEIR_TRY(make_binary(p, sign, *out, b, out));
    }
    return WEIR_OK;
}

static weir_status parse_choice(parser *p, node **out)
{
    WEIR_TRY(descend(p));
    WEIR_TRY(parse_or(p, out));
    while (take_word(p, "if")) {
        node *a = *out;
        WEIR_TRY(make(p, WEIR_CHAT_CHOICE, out));
        (*out)->a = a;
        WEIR_TRY(parse_or(p, &(*out)->b));
        if (take_word(p, "else"))
            WEIR_TRY(parse_choice(p, &(*out)->c));
    }
    p->depth--;
    return WEIR_OK;
}

/* --- statements */

static weir_status parse_body(parser *p, node **out);

static weir_status end_of_tag(parser *p)
{
    if (p->t->kind != WEIR_CHAT_BLOCK_END)
        return unexpected(p, "the end of the statement");
    p->t++;
    return WEIR_OK;
}

/* Takes "{% word" of the statement that is open, whose end is not yet read. */
static bool take_part(parser *p, const char *word)
{
    bool yes = p->t->kind == WEIR_CHAT_BLOCK_BEGIN && p->t[1].kind == WEIR_CHAT_NAME && weir_str_eq(p->t[1].s, word);
    p->t += yes ? 2 : 0;
    return yes;
}

static weir_status want_part(parser *p, const char *word)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "{%% %s %%}", word);
    return take_part(p, word) ? end_of_tag(p) : unexpected(p, wanted);
}

/* Behind "if" or "elif". */
static weir_status parse_if(parser *p, node **out)
{
    WEIR_TRY(make(p, WEIR_CHAT_IF, out));
    WEIR_TRY(parse_choice(p, &(*out)->a));
    WEIR_TRY(end_of_tag(p));
    WEIR_TRY(parse_body(p, &(*out)->body));
    if (take_part(p, "elif")) {
        WEIR_TRY(descend(p));
        WEIR_TRY(parse_if(p, &(*out)->other));
        p->depth--;
        return WEIR_OK;
    }
    if (take_part(p, "else")) {
        WEIR_TRY(end_of_tag(p));
        WEIR_TRY(parse_body(p, &(*out)->other));
    }
    return want_part(p, "endif");
}

static weir_status parse_for(parser *p, node **out)
{
    WEIR_TRY(make(p, WEIR_CHAT_FOR, out));
    WEIR_TRY(want_name(p, &(*out)->s));
    if (take_sign(p, ","))
        WEIR_TRY(want_name(p, &(*out)->t));
    if (!take_word(p, "in"))
        return unexpected(p, "\"in\"");
    WEIR_TRY(parse_or(p, &(*out)->a));
    if (take_word(p, "if"))
        WEIR_TRY(parse_choice(p, &(*out)->b));
    if (is_word(p, "recursive"))
        return weir_chat_fail(p->src, WEIR_E_UNSUPPORTED, p->t->line, "recursive loops are not supported");
    WEIR_TRY(end_of_tag(p));
    WEIR_TRY(parse_body(p, &(*out)->body));
    if (take_part(p, "else")) {
        WEIR_TRY(end_of_tag(p));
        WEIR_TRY(parse_body(p, &(*out)->other));
    }
    return want_part(p, "endfor");
}

static weir_status parse_set(parser *p, node **out)
{
    WEIR_TRY(make(p, WEIR_CHAT_SET, out));
    WEIR_TRY(want_name(p, &(*out)->s));
    if (take_sign(p, "."))
        WEIR_TRY(want_name(p, &(*out)->t));
    if (!take_sign(p, "="))
        return weir_chat_fail(p->src, WEIR_E_UNSUPPORTED, p->t->line,
                              "of \"set\", only {%% set NAME = EXPRESSION %%} is "
                              "supported");
    WEIR_TRY(parse_choice(p, &(*out)->a));
    return end_of_tag(p);
}

/* Behind "{%". transformers' own statement `generation` says which tokens an assistant wrote, and changes no text. */
static weir_status parse_statement(parser *p, node **out)
{
    const int line = p->t->line;
    weir_str word;
    WEIR_TRY(want_name(p, &word));
    if (weir_str_eq(word, "if"))
        return parse_if(p, out);
    if (weir_str_eq(word, "for"))
        return parse_for(p, out);
    if (weir_str_eq(word, "set"))
        return parse_set(p, out);
    if (weir_str_eq(word, "generation")) {
        WEIR_TRY(end_of_tag(p));
        WEIR_TRY(parse_body(p, out));
        return want_part(p, "endgeneration");
    }
    bool leave = weir_str_eq(word, "break");
    if (leave || weir_str_eq(word, "continue")) {
        WEIR_TRY(make(p, leave ? WEIR_CHAT_BREAK : WEIR_CHAT_CONTINUE, out));
        return end_of_tag(p);
    }
    return weir_chat_fail(p->src, WEIR_E_UNSUPPORTED, line, "the statement {%% %.*s %%} is not supported", (int)word.n,
                          word.p);
}

/* Is this the end of the body, which the statement around it reads? */
static bool ends_body(const parser *p)
{
    static const char *const words[] = {"elif", "else", "endif", "endfor", "endgeneration"};
    if (p->t->kind == WEIR_CHAT_EOF)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words && p->t->kind == WEIR_CHAT_BLOCK_BEGIN; i++)
        if (p->t[1].kind == WEIR_CHAT_NAME && weir_str_eq(p->t[1].s, words[i]))
            return true;
    return false;
}

static weir_status parse_one(parser *p, node **out)
{
    if (p->t->kind == WEIR_CHAT_DATA) {
        WEIR_TRY(make(p, WEIR_CHAT_OUT_TEXT, out));
        (*out)->s = (p->t++)->s;
        return WEIR_OK;
    }
    if (p->t->kind == WEIR_CHAT_BLOCK_BEGIN) {
        p->t++;
        return parse_statement(p, out);
    }
    p->t++; /* {{ */
    WEIR_TRY(make(p, WEIR_CHAT_OUT, out));
    WEIR_TRY(parse_choice(p, &(*out)->a));
    if (p->t->kind != WEIR_CHAT_PRINT_END)
        return unexpected(p, "}}");
    p->t++;
    return WEIR_OK;
}

static weir_status parse_body(parser *p, node **out)
{
    *out = NULL;
    WEIR_TRY(descend(p));
    while (!ends_body(p)) {
        WEIR_TRY(parse_one(p, out));
        while (*out) /* an empty {% generation %} makes none, a full one several */
            out = &(*out)->next;
    }
    p->depth--;
    return WEIR_OK;
}

weir_status weir_chat_parse(const weir_chat_source *src, const weir_chat_token *token, weir_chat_node **out)
{
    parser p = {.src = src, .t = token};
    WEIR_TRY(parse_body(&p, out));
    return p.t->kind == WEIR_CHAT_EOF ? WEIR_OK : unexpected(&p, "the end of the template");
}

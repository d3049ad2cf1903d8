/* A template to tokens, with Jinja's white space rules (lexer.py of Jinja 3.1) as transformers sets them: trim_blocks:
 * the first line break behind a statement or comment is dropped; lstrip_blocks: blanks between the begin of a line and
 * a statement or comment are dropped. A minus sign at a tag drops all white space on its side, a plus sign none. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "chat_impl.h"

typedef struct lexer {
    const weir_chat_source *src;
    const char *p;
    size_t n, at;
    int line;
    bool line_start; /* the last tag ended with a line break */
    weir_chat_token *token;
    size_t tokens;
} lexer;

weir_status weir_chat_fail(const weir_chat_source *src, weir_status code, int line, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    weir_fail(src->err, code, "chat template, line %d: %s", line, text);
    weir_err_where(src->err, src->name, NULL, -1);
    return code;
}

/* --- white space and lines */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool looking_at(const lexer *x, const char *z)
{
    size_t n = strlen(z);
    return x->n - x->at >= n && memcmp(x->p + x->at, z, n) == 0;
}

static void advance(lexer *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x->line += x->p[x->at + i] == '\n';
    x->at += n;
}

static void skip_space(lexer *x)
{
    while (x->at < x->n && is_space(x->p[x->at]))
        advance(x, 1);
}

static weir_status add(lexer *x, weir_chat_token_kind kind, weir_str s, int64_t number)
{
    weir_chat_token *t = weir_grow(x->token, x->tokens, sizeof *t);
    if (!t)
        return weir_nomem(x->src->err, "a chat template");
    x->token = t;
    t[x->tokens++] = (weir_chat_token){.kind = kind, .line = x->line, .s = s, .number = number};
    return WEIR_OK;
}

/* --- inside of a tag */

static int hex_of(const char *p, int digits)
{
    int v = 0;
    for (int i = 0; i < digits; i++) {
        char c = p[i];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

/* The escape at p[0] = '\\', n bytes are there; writes to *to, returns the bytes it took, 0: it is none that is known.
 */
static size_t escape(const char *p, size_t n, char **to)
{
    static const char plain[] = "n\nt\tr\r\\\\''\"\"a\ab\bf\fv\v";
    if (n < 2)
        return 0;
    for (const char *c = plain; *c; c += 2)
        if (p[1] == *c) {
            *(*to)++ = c[1];
            return 2;
        }
    int digits = p[1] == 'x' ? 2 : p[1] == 'u' ? 4 : 0;
    int cp = digits && n >= 2 + (size_t)digits ? hex_of(p + 2, digits) : -1;
    if (cp < 0 || (cp >= 0xd800 && cp < 0xe000))
        return 0;
    *to += weir_utf8_put(*to, (uint32_t)cp);
    return 2 + (size_t)digits;
}

static weir_status lex_string(lexer *x)
{
    const char quote = x->p[x->at];
    size_t end = x->at + 1;
    while (end < x->n && x->p[end] != quote)
        end += x->p[end] == '\\' && end + 1 < x->n ? 2 : 1;
    if (end >= x->n)
        return weir_chat_fail(x->src, WEIR_E_FORMAT, x->line, "a string does not end");
    char *text = weir_arena_alloc(x->src->arena, end - x->at + 4, 1), *to = text;
    if (!text)
        return weir_nomem(x->src->err, "a chat template");
    for (size_t i = x->at + 1; i < end;) {
        if (x->p[i] != '\\') {
            *to++ = x->p[i++];
            continue;
        }
        size_t took = escape(x->p + i, end - i, &to);
        if (!took)
            return weir_chat_fail(x->src, WEIR_E_UNSUPPORTED, x->line, "the escape \\%c in a string is not supported",
                                  x->p[i + 1]);
        i += took;
    }
    WEIR_TRY(add(x, WEIR_CHAT_TEXT, (weir_str){text, (size_t)(to - text)}, 0));
    advance(x, end + 1 - x->at);
    return WEIR_OK;
}

static bool in_name(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static weir_status lex_number(lexer *x)
{
    int64_t v = 0;
    size_t end = x->at;
    for (; end < x->n && x->p[end] >= '0' && x->p[end] <= '9'; end++)
        v = v < INT32_MAX ? v * 10 + (x->p[end] - '0') : v;
    bool fraction = end + 1 < x->n && x->p[end] == '.' && x->p[end + 1] >= '0' && x->p[end + 1] <= '9';
    if (fraction || (end < x->n && in_name(x->p[end], true)) || v > INT32_MAX)
        return weir_chat_fail(x->src, WEIR_E_UNSUPPORTED, x->line,
                              "numbers other than small whole ones are not supported");
    weir_str s = {x->p + x->at, end - x->at};
    x->at = end;
    return add(x, WEIR_CHAT_NUMBER, s, v);
}

static weir_status lex_sign(lexer *x, int *depth)
{
    static const char *const signs[] = {"==", "!=", ">=", "<=", "//", "**", "+", "-", "*", "/", "%", "~", "(",
                                        ")",  "[",  "]",  "{",  "}",  ",",  ":", ".", "|", "=", "<", ">"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (!looking_at(x, signs[i]))
            continue;
        weir_str s = {x->p + x->at, strlen(signs[i])};
        *depth += s.n == 1 && strchr("([{", s.p[0]) ? 1 : s.n == 1 && strchr(")]}", s.p[0]) ? -1 : 0;
        x->at += s.n;
        return add(x, WEIR_CHAT_SIGN, s, 0);
    }
    return weir_chat_fail(x->src, WEIR_E_FORMAT, x->line, "a sign that is none of Jinja's: '%.*s'", 1, x->p + x->at);
}

/* The end of a tag, with the white space that it takes along; false: something else stands here. end: "%}" or "}}". */
static bool lex_end(lexer *x, const char *end)
{
    const char sign = x->at < x->n ? x->p[x->at] : 0;
    const bool block = end[0] != '}', signed_end = (sign == '-' || (sign == '+' && block));
    if (signed_end)
        x->at++;
    if (!looking_at(x, end)) {
        x->at -= signed_end;
        return false;
    }
    advance(x, 2);
    x->line_start = false;
    if (signed_end && sign == '-') {
        skip_space(x);
    } else if (block && !signed_end && x->at < x->n && x->p[x->at] == '\n') {
        advance(x, 1);
        x->line_start = true;
    }
    return true;
}

/* Behind "{{" or "{%". */
static weir_status lex_tag(lexer *x, const char *end, weir_chat_token_kind kind)
{
    int depth = 0;
    const int line = x->line;
    for (;;) {
        skip_space(x);
        if (x->at >= x->n)
            return weir_chat_fail(x->src, WEIR_E_FORMAT, line, "a tag does not end");
        if (depth <= 0 && lex_end(x, end))
            return add(x, kind, (weir_str){end, 2}, 0);
        const char c = x->p[x->at];
        if (c == '\'' || c == '"') {
            WEIR_TRY(lex_string(x));
        } else if (in_name(c, true)) {
            size_t from = x->at;
            while (x->at < x->n && in_name(x->p[x->at], false))
                x->at++;
            WEIR_TRY(add(x, WEIR_CHAT_NAME, (weir_str){x->p + from, x->at - from}, 0));
        } else if (c >= '0' && c <= '9') {
            WEIR_TRY(lex_number(x));
        } else {
            WEIR_TRY(lex_sign(x, &depth));
        }
    }
}

static weir_status skip_comment(lexer *x)
{
    const int line = x->line;
    while (x->at < x->n) {
        if (looking_at(x, "#}") || looking_at(x, "-#}") || looking_at(x, "+#}")) {
            (void)lex_end(x, "#}");
            return WEIR_OK;
        }
        advance(x, 1);
    }
    return weir_chat_fail(x->src, WEIR_E_FORMAT, line, "a comment does not end");
}

/* --- between tags */

/* Text before the tag whose second character is `tag`: what of its end is dropped. */
static size_t kept(const lexer *x, const char *text, size_t n, char tag, char sign)
{
    if (sign == '-') {
        while (n && is_space(text[n - 1]))
            n--;
        return n;
    }
    if (sign == '+' || tag == '{')
        return n;
    size_t line = n;
    while (line && text[line - 1] != '\n' && is_space(text[line - 1]))
        line--;
    return (line && text[line - 1] == '\n') || (!line && x->line_start) ? line : n;
}

static weir_status lex_next(lexer *x)
{
    size_t from = x->at, end = x->at;
    while (end < x->n && !(x->p[end] == '{' && end + 1 < x->n && strchr("{%#", x->p[end + 1]) && x->p[end + 1]))
        end++;
    const char tag = end < x->n ? x->p[end + 1] : 0, sign = end + 2 < x->n ? x->p[end + 2] : 0;
    size_t n = tag ? kept(x, x->p + from, end - from, tag, sign) : end - from;
    if (n)
        WEIR_TRY(add(x, WEIR_CHAT_DATA, (weir_str){x->p + from, n}, 0));
    advance(x, end - from);
    if (!tag)
        return WEIR_OK;
    advance(x, 2 + (sign == '-' || (sign == '+' && tag != '{')));
    if (tag == '#')
        return skip_comment(x);
    WEIR_TRY(add(x, tag == '{' ? WEIR_CHAT_PRINT_BEGIN : WEIR_CHAT_BLOCK_BEGIN, (weir_str){x->p + end, 2}, 0));
    return lex_tag(x, tag == '{' ? "}}" : "%}", tag == '{' ? WEIR_CHAT_PRINT_END : WEIR_CHAT_BLOCK_END);
}

/* \r\n and \r become \n, and one line break at the end is dropped. */
static weir_status normalise(lexer *x)
{
    const weir_str s = x->src->text;
    char *p = weir_arena_alloc(x->src->arena, s.n + 1, 1);
    if (!p)
        return weir_nomem(x->src->err, "a chat template");
    x->p = p;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\r' && i + 1 < s.n && s.p[i + 1] == '\n')
            continue;
        p[x->n++] = s.p[i] == '\r' ? '\n' : s.p[i];
    }
    x->n -= x->n && p[x->n - 1] == '\n';
    return WEIR_OK;
}

weir_status weir_chat_lex(const weir_chat_source *src, weir_chat_token **out)
{
    lexer x = {.src = src, .line = 1, .line_start = true};
    weir_status st = normalise(&x);
    while (st == WEIR_OK && x.at < x.n)
        st = lex_next(&x);
    if (st == WEIR_OK)
        st = add(&x, WEIR_CHAT_EOF, (weir_str){"", 0}, 0);
    if (st != WEIR_OK) {
        weir_free(x.token);
        x.token = NULL;
    }
    *out = x.token;
    return st;
}

#include <weir/json.h>

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "json_keys.h"
#include "json_scan.h"

#define MAX_DEPTH 256

typedef struct frame {
    bool object;
    bool first;          /* nothing was read in it yet: no comma comes */
    bool due;            /* a key or item was announced and its value not read yet */
    weir_json_mark keys; /* where its keys begin */
} frame;

typedef struct reader {
    frame stack[MAX_DEPTH];
    int depth;
    bool root_read;
    weir_json_keys keys;
    weir_buf text; /* the last string that had escapes, or the last number */
} reader;

void weir_json_init(weir_json *j, const void *text, size_t len, const char *file, weir_err *err)
{
    *j = (weir_json){.text = text, .len = text ? len : 0, .file = file, .err = err};
    j->state = weir_calloc(1, sizeof(reader));
    if (!j->state)
        j->status = weir_nomem(err, "reading JSON");
}

weir_status weir_json_done(weir_json *j)
{
    reader *r = j->state;
    if (r) {
        weir_json_keys_free(&r->keys);
        weir_buf_free(&r->text);
        weir_free(r);
        j->state = NULL;
    }
    return j->status;
}

static void fail_at(weir_json *j, weir_status code, size_t pos, const char *msg)
{
    if (j->status != WEIR_OK)
        return;
    j->status = weir_fail(j->err, code, "%s", msg);
    weir_err_where(j->err, j->file, NULL, (int64_t)pos);
}

void weir_json_fail(weir_json *j, const char *fmt, ...)
{
    char msg[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    fail_at(j, WEIR_E_FORMAT, j->pos, msg);
}

static void fail_nomem(weir_json *j)
{
    fail_at(j, WEIR_E_NOMEM, j->pos, "out of memory for reading JSON");
}

/* The next character that is not white space, or 0 at the end (a raw NUL is never valid there). */
static char next_char(weir_json *j)
{
    while (j->pos < j->len) {
        char c = j->text[j->pos];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return c;
        j->pos++;
    }
    return '\0';
}

static frame *top(weir_json *j)
{
    reader *r = j->state;
    return r->depth ? &r->stack[r->depth - 1] : NULL;
}

/* --- values */

weir_json_type weir_json_peek(weir_json *j)
{
    if (j->status != WEIR_OK)
        return WEIR_JSON_NONE;
    char c = next_char(j);
    switch (c) {
    case '{':
        return WEIR_JSON_OBJECT;
    case '[':
        return WEIR_JSON_ARRAY;
    case '"':
        return WEIR_JSON_STRING;
    case 't':
    case 'f':
        return WEIR_JSON_BOOL;
    case 'n':
        return WEIR_JSON_NULL;
    default:
        return c == '-' || (c >= '0' && c <= '9') ? WEIR_JSON_NUMBER : WEIR_JSON_NONE;
    }
}

static const char *const TYPE_NAME[] = {
    [WEIR_JSON_OBJECT] = "an object", [WEIR_JSON_ARRAY] = "an array", [WEIR_JSON_STRING] = "a string",
    [WEIR_JSON_NUMBER] = "a number",  [WEIR_JSON_BOOL] = "a boolean", [WEIR_JSON_NULL] = "null"};

/* Begins a value: one must be due here, and of this type. */
static bool begin(weir_json *j, weir_json_type want)
{
    if (j->status != WEIR_OK)
        return false;
    reader *r = j->state;
    frame *f = top(j);
    if (f ? !f->due : r->root_read) {
        fail_at(j, WEIR_E_ARG, j->pos, "a value was read where none is due");
        return false;
    }
    weir_json_type got = weir_json_peek(j);
    if (got == want) {
        if (f)
            f->due = false;
        else
            r->root_read = true;
        return true;
    }
    if (got != WEIR_JSON_NONE)
        weir_json_fail(j, "%s was expected, found %s", TYPE_NAME[want], TYPE_NAME[got]);
    else if (j->pos < j->len)
        weir_json_fail(j, "%s was expected, found byte 0x%02x", TYPE_NAME[want], (unsigned char)j->text[j->pos]);
    else
        weir_json_fail(j, "%s was expected, but the text ends", TYPE_NAME[want]);
    return false;
}

static bool enter(weir_json *j, weir_json_type type)
{
    if (!begin(j, type))
        return false;
    reader *r = j->state;
    if (r->depth == MAX_DEPTH) {
        weir_json_fail(j, "nested deeper than %d", MAX_DEPTH);
        return false;
    }
    r->stack[r->depth++] =
        (frame){.object = type == WEIR_JSON_OBJECT, .first = true, .keys = weir_json_keys_mark(&r->keys)};
    j->pos++;
    return true;
}

static void leave(weir_json *j)
{
    reader *r = j->state;
    frame *f = top(j);
    if (f->object && r->depth > 1) /* after the outermost container no key can come */
        weir_json_keys_pop(&r->keys, f->keys);
    r->depth--;
    j->pos++;
}

/* Before the next element of the innermost container: true with the reader at the element, false at its end or on
 * error. */
static bool next_element(weir_json *j, bool object)
{
    if (j->status != WEIR_OK)
        return false;
    frame *f = top(j);
    if (!f || f->object != object) {
        fail_at(j, WEIR_E_ARG, j->pos, "a key or item was read outside its container");
        return false;
    }
    if (f->due)
        weir_json_skip(j); /* the caller did not want it */
    if (j->status != WEIR_OK)
        return false;
    char c = next_char(j), close = object ? '}' : ']';
    if (c == close) {
        leave(j);
        return false;
    }
    if (!f->first) {
        if (c != ',') {
            weir_json_fail(
                j, j->pos < j->len ? "',' or '%c' was expected" : "the text ends where ',' or '%c' is missing", close);
            return false;
        }
        j->pos++;
        c = next_char(j);
        if (c == close) {
            weir_json_fail(j, "a comma before '%c'", close);
            return false;
        }
    }
    f->first = false;
    return true;
}

bool weir_json_object(weir_json *j)
{
    return enter(j, WEIR_JSON_OBJECT);
}

bool weir_json_array(weir_json *j)
{
    return enter(j, WEIR_JSON_ARRAY);
}

bool weir_json_item(weir_json *j)
{
    if (!next_element(j, false))
        return false;
    top(j)->due = true;
    return true;
}

/* Scans the string at the reader (a quote) and steps behind it; raw bytes between the quotes. */
static bool raw_string(weir_json *j, weir_str *raw, bool *escapes)
{
    const char *problem = NULL;
    size_t from = j->pos + 1, end = weir_json_scan_string(j->text, j->len, from, escapes, &problem);
    if (problem) {
        fail_at(j, WEIR_E_FORMAT, end, problem);
        return false;
    }
    *raw = (weir_str){j->text + from, end - from};
    j->pos = end + 1;
    return true;
}

bool weir_json_key(weir_json *j, weir_str *key)
{
    *key = (weir_str){"", 0};
    if (!next_element(j, true))
        return false;
    reader *r = j->state;
    frame *f = top(j);
    weir_str raw;
    bool escapes, fresh;
    size_t at = j->pos;
    if (at == j->len || j->text[at] != '"') {
        weir_json_fail(j, "a key in quotes was expected");
        return false;
    }
    if (!raw_string(j, &raw, &escapes))
        return false;
    if (weir_json_keys_push(&r->keys, f->keys, raw, escapes, key, &fresh) != WEIR_OK) {
        fail_nomem(j);
        return false;
    }
    if (!fresh) {
        j->pos = at;
        weir_json_fail(j, "duplicate key \"%.*s\"", raw.n > 100 ? 100 : (int)raw.n, raw.p);
        return false;
    }
    if (next_char(j) != ':') {
        weir_json_fail(j, "':' was expected after a key");
        return false;
    }
    j->pos++;
    f->due = true;
    return true;
}

weir_str weir_json_string(weir_json *j)
{
    weir_str none = {"", 0}, raw;
    bool escapes;
    if (!begin(j, WEIR_JSON_STRING) || !raw_string(j, &raw, &escapes))
        return none;
    if (!escapes)
        return raw;
    reader *r = j->state;
    r->text.n = 0;
    if (weir_json_unescape(&r->text, raw.p, raw.n) != WEIR_OK) {
        fail_nomem(j);
        return none;
    }
    return (weir_str){r->text.p, r->text.n};
}

/* Steps over the number at the reader. */
static bool raw_number(weir_json *j, weir_str *raw, bool *integer)
{
    const char *problem = NULL;
    size_t end = weir_json_scan_number(j->text, j->len, j->pos, integer, &problem);
    if (problem) {
        fail_at(j, WEIR_E_FORMAT, j->pos, problem);
        return false;
    }
    *raw = (weir_str){j->text + j->pos, end - j->pos};
    j->pos = end;
    return true;
}

/* An integer as sign and magnitude. */
static bool read_integer(weir_json *j, bool *negative, uint64_t *magnitude)
{
    weir_str raw;
    bool integer;
    if (!begin(j, WEIR_JSON_NUMBER))
        return false;
    size_t at = j->pos;
    if (!raw_number(j, &raw, &integer))
        return false;
    *negative = raw.p[0] == '-';
    if (integer && weir_json_digits(raw.p + *negative, raw.n - *negative, magnitude))
        return true;
    j->pos = at;
    weir_json_fail(j,
                   integer ? "the integer is too large" : "an integer was expected, found a fraction or an exponent");
    return false;
}

int64_t weir_json_int(weir_json *j)
{
    bool negative;
    uint64_t m;
    if (!read_integer(j, &negative, &m))
        return 0;
    if (m <= (uint64_t)INT64_MAX + negative)
        return negative ? (int64_t)(0 - m) : (int64_t)m;
    weir_json_fail(j, "the integer does not fit in 64 bits with sign");
    return 0;
}

uint64_t weir_json_uint(weir_json *j)
{
    bool negative;
    uint64_t m;
    if (!read_integer(j, &negative, &m))
        return 0;
    if (!negative || !m)
        return m;
    weir_json_fail(j, "a number below zero where none may be");
    return 0;
}

/* strtod under the "C" locale, whatever the program's is. Correctly rounded in glibc. */
static double to_double(const char *z)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double v = c ? strtod_l(z, NULL, c) : strtod(z, NULL);
    if (c)
        freelocale(c);
    return v;
}

double weir_json_double(weir_json *j)
{
    weir_str raw;
    bool integer;
    if (!begin(j, WEIR_JSON_NUMBER) || !raw_number(j, &raw, &integer))
        return 0;
    reader *r = j->state;
    r->text.n = 0;
    if (weir_buf_add(&r->text, raw.p, raw.n) != WEIR_OK) {
        fail_nomem(j);
        return 0;
    }
    double v = to_double(r->text.p);
    if (isfinite(v))
        return v;
    weir_json_fail(j, "the number is too large for a double");
    return 0;
}

static bool literal(weir_json *j, const char *word)
{
    size_t n = strlen(word);
    if (j->len - j->pos < n || memcmp(j->text + j->pos, word, n) != 0)
        return false;
    j->pos += n;
    return true;
}

bool weir_json_bool(weir_json *j)
{
    if (!begin(j, WEIR_JSON_BOOL))
        return false;
    if (literal(j, "true"))
        return true;
    if (!literal(j, "false"))
        weir_json_fail(j, "true or false was expected");
    return false;
}

void weir_json_null(weir_json *j)
{
    if (begin(j, WEIR_JSON_NULL) && !literal(j, "null"))
        weir_json_fail(j, "null was expected");
}

/* One scalar, or the entry of a container. */
static void skip_one(weir_json *j)
{
    weir_str raw;
    bool flag;
    switch (weir_json_peek(j)) {
    case WEIR_JSON_OBJECT:
        weir_json_object(j);
        break;
    case WEIR_JSON_ARRAY:
        weir_json_array(j);
        break;
    case WEIR_JSON_NUMBER:
        if (begin(j, WEIR_JSON_NUMBER))
            raw_number(j, &raw, &flag);
        break;
    case WEIR_JSON_BOOL:
        weir_json_bool(j);
        break;
    case WEIR_JSON_NULL:
        weir_json_null(j);
        break;
    case WEIR_JSON_STRING:
        if (begin(j, WEIR_JSON_STRING))
            raw_string(j, &raw, &flag);
        break;
    default:
        weir_json_fail(j, j->pos < j->len ? "a value was expected" : "a value was expected, but the text ends");
    }
}

void weir_json_skip(weir_json *j)
{
    if (j->status != WEIR_OK)
        return;
    reader *r = j->state;
    int depth = r->depth;
    weir_str key;
    skip_one(j);
    while (j->status == WEIR_OK && r->depth > depth)
        if (top(j)->object ? weir_json_key(j, &key) : weir_json_item(j))
            skip_one(j);
}

void weir_json_end(weir_json *j)
{
    if (j->status != WEIR_OK)
        return;
    reader *r = j->state;
    bool more = next_char(j) != '\0' || j->pos < j->len;
    if (!r->root_read)
        weir_json_fail(j, more ? "a value was expected" : "a value was expected, but the text is empty");
    else if (r->depth)
        fail_at(j, WEIR_E_ARG, j->pos, "the end was asked for inside a container");
    else if (more)
        weir_json_fail(j, "something follows the value");
}

weir_str weir_json_raw(weir_json *j)
{
    weir_json_peek(j);
    size_t from = j->pos;
    weir_json_skip(j);
    return j->status == WEIR_OK ? (weir_str){j->text + from, j->pos - from} : (weir_str){"", 0};
}

bool weir_str_eq(weir_str s, const char *z)
{
    size_t n = strlen(z);
    return s.n == n && memcmp(s.p, z, n) == 0;
}

#include "json_scan.h"

#include <string.h>

#include "utf8.h"

/* Four hexadecimal digits at p, or -1. */
static int32_t hex4(const char *p, size_t n)
{
    int32_t v = 0;
    if (n < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)p[i], low = c | 0x20;
        int d = c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

/* The character that a backslash and c stand for, or 0. */
static char simple_escape(char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return c;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return '\0';
    }
}

/* Length of the escape at p (a backslash), 2, 6 or 12; its code point in *cp. 0: *problem says why. */
static size_t scan_escape(const char *p, size_t n, uint32_t *cp, const char **problem)
{
    char c = n > 1 ? p[1] : '\0';
    *cp = (uint8_t)simple_escape(c);
    if (*cp)
        return 2;
    int32_t a = c == 'u' ? hex4(p + 2, n - 2) : -1;
    if (a < 0) {
        *problem = "a bad escape in a string";
        return 0;
    }
    *cp = (uint32_t)a;
    if (a < 0xd800 || a > 0xdfff)
        return 6;
    int32_t b = a < 0xdc00 && n > 7 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, n - 8) : -1;
    if (b < 0xdc00 || b > 0xdfff) {
        *problem = "a lone surrogate in a string";
        return 0;
    }
    *cp = 0x10000 + (((uint32_t)a - 0xd800) << 10 | ((uint32_t)b - 0xdc00));
    return 12;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "weir reads little-endian files in place");

/* How many of 8 bytes come before the first that is not printable ASCII, or is a quote or backslash. (x - 1 borrows
 * into the high bit where a byte x is 0; the borrow may spoil higher bytes, never lower ones.) */
static size_t plain_bytes(const char *p)
{
    const uint64_t ones = 0x0101010101010101u, high = ones << 7;
    uint64_t v;
    memcpy(&v, p, 8);
    uint64_t special = (v | (v - ones * 0x20) | ((v ^ ones * '"') - ones) | ((v ^ ones * '\\') - ones)) & high;
    return special ? (size_t)__builtin_ctzll(special) / 8 : 8;
}

size_t weir_json_scan_string(const char *text, size_t len, size_t pos, bool *escapes, const char **problem)
{
    *escapes = false;
    while (pos < len) {
        if (len - pos >= 8) {
            size_t plain = plain_bytes(text + pos);
            pos += plain;
            if (plain == 8)
                continue;
        }
        uint8_t c = (uint8_t)text[pos];
        size_t step = 1;
        if (c == '"')
            return pos;
        if (c == '\\') {
            uint32_t cp;
            *escapes = true;
            step = scan_escape(text + pos, len - pos, &cp, problem);
        } else if (c < 0x20) {
            *problem = "a raw control character in a string";
            return pos;
        } else if (c >= 0x80) {
            step = (size_t)weir_utf8_len(text + pos, len - pos);
            if (!step)
                *problem = "invalid UTF-8 in a string";
        }
        if (!step)
            return pos;
        pos += step;
    }
    *problem = "a string without an end";
    return len;
}

/* In place, since what an escape stands for is never longer than the escape. */
weir_status weir_json_unescape(weir_buf *out, const char *p, size_t n)
{
    const char *unused;
    WEIR_TRY(weir_buf_add(out, p, n));
    char *to = out->p + out->n - n;
    for (const char *from = to, *end = to + n; from < end;) {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        uint32_t cp;
        from += scan_escape(from, (size_t)(end - from), &cp, &unused);
        to += weir_utf8_put(to, cp);
    }
    *to = '\0';
    out->n = (size_t)(to - out->p);
    return WEIR_OK;
}

static size_t skip_digits(const char *text, size_t len, size_t pos)
{
    while (pos < len && text[pos] >= '0' && text[pos] <= '9')
        pos++;
    return pos;
}

size_t weir_json_scan_number(const char *text, size_t len, size_t pos, bool *integer, const char **problem)
{
    size_t p = pos + (pos < len && text[pos] == '-'), end = skip_digits(text, len, p);
    *integer = true;
    if (end == p || (text[p] == '0' && end - p > 1))
        *problem = "a bad number";
    if (end < len && text[end] == '.') {
        *integer = false;
        p = end + 1;
        end = skip_digits(text, len, p);
        if (end == p)
            *problem = "a bad number";
    }
    if (end < len && (text[end] | 0x20) == 'e') {
        *integer = false;
        p = end + 1;
        p += p < len && (text[p] == '+' || text[p] == '-');
        end = skip_digits(text, len, p);
        if (end == p)
            *problem = "a bad number";
    }
    return end;
}

bool weir_json_digits(const char *p, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(p[i] - '0'), &v))
            return false;
    *out = v;
    return true;
}

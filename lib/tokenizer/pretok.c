/* pretok.c: matchers for the known pre-tokenizer patterns. Alternatives are tried in order, as the regular expressions
 * say, not by length. */
#include "pretok.h"

#include <string.h>

#include "unicode.h"

#include <weir/json.h>

enum { LETTER = WEIR_CP_LETTER, NUMBER = WEIR_CP_NUMBER, SPACE = WEIR_CP_SPACE, ANY = LETTER | NUMBER | SPACE };

/* Which of letter, number and space the character at p[i] is, 0 for everything else; its length in *len. */
static uint8_t class_at(const uint8_t *p, size_t n, size_t i, int *len)
{
    if (p[i] < 0x80) {
        *len = 1;
        return weir_cp_ascii[p[i]] & ANY;
    }
    return weir_cp_class_at(p + i, n - i, len) & ANY;
}

/* The end of the run of characters of class `want` (0: everything else) that begins at i, at most `most` characters. */
static size_t run(const uint8_t *p, size_t n, size_t i, uint8_t want, size_t most)
{
    for (int len; i < n && most; i += (size_t)len, most--)
        if (class_at(p, n, i, &len) != want)
            break;
    return i;
}

/* \s+(?!\S)|\s+ over the white space that begins at 0: a run leaves its last character to the word behind it. */
static size_t spaces(const uint8_t *p, size_t n)
{
    size_t end = run(p, n, 0, SPACE, SIZE_MAX);
    if (end == n)
        return end;
    size_t last = weir_cp_before(p, end);
    return last ? last : end;
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

/* Length of 's 't 'm 'd 're 've 'll at p[0] = '\'', or 0. Without case, U+017F is an s too. */
static size_t contraction(const uint8_t *p, size_t n, int any_case)
{
    if (n < 2)
        return 0;
    uint8_t a = any_case ? lower(p[1]) : p[1], b = n < 3 ? 0 : any_case ? lower(p[2]) : p[2];
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return 3;
    return any_case && p[1] == 0xc5 && n > 2 && p[2] == 0xbf ? 3 : 0;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
size_t weir_split_gpt2(const uint8_t *p, size_t n)
{
    if (p[0] == '\'') {
        size_t len = contraction(p, n, 0);
        if (len)
            return len;
    }
    int len;
    size_t start = p[0] == ' ' && n > 1;
    uint8_t class = class_at(p, n, start, &len);
    return class == SPACE ? spaces(p, n) : run(p, n, start + (size_t)len, class, SIZE_MAX);
}

/* [^\r\n\p{L}\p{N}]?\p{L}+ at 0, or 0. */
static size_t letters_with_one_before(const uint8_t *p, size_t n, uint8_t class, size_t len)
{
    if (class == LETTER)
        return run(p, n, len, LETTER, SIZE_MAX);
    if (class == NUMBER || p[0] == '\r' || p[0] == '\n')
        return 0;
    size_t end = run(p, n, len, LETTER, SIZE_MAX);
    return end > len ? end : 0;
}

static size_t newlines(const uint8_t *p, size_t n, size_t i)
{
    while (i < n && (p[i] == '\r' || p[i] == '\n'))
        i++;
    return i;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+: white space up to its last line end, if it has one. */
static size_t spaces_by_lines(const uint8_t *p, size_t n)
{
    size_t end = run(p, n, 0, SPACE, SIZE_MAX);
    for (size_t i = end; i > 0; i--)
        if (p[i - 1] == '\r' || p[i - 1] == '\n')
            return i;
    return spaces(p, n);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,most}|
 * ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t split_llama(const uint8_t *p, size_t n, size_t most)
{
    if (p[0] == '\'') {
        size_t end = contraction(p, n, 1);
        if (end)
            return end;
    }
    int len;
    uint8_t class = class_at(p, n, 0, &len);
    size_t end = letters_with_one_before(p, n, class, (size_t)len);
    if (end)
        return end;
    if (class == NUMBER)
        return run(p, n, 0, NUMBER, most);
    size_t start = p[0] == ' ';
    end = run(p, n, start, 0, SIZE_MAX);
    if (end > start)
        return newlines(p, n, end);
    return spaces_by_lines(p, n);
}

size_t weir_split_llama3(const uint8_t *p, size_t n)
{
    return split_llama(p, n, 3);
}

size_t weir_split_qwen2(const uint8_t *p, size_t n)
{
    return split_llama(p, n, 1);
}

static int is_digit(const uint8_t *p, size_t n, size_t i, int *len)
{
    if (p[i] < 0x80) {
        *len = 1;
        return p[i] >= '0' && p[i] <= '9';
    }
    return (weir_cp_class_at(p + i, n - i, len) & WEIR_CP_DIGITS) != 0;
}

static size_t split_digits(const uint8_t *p, size_t n, int alone)
{
    int len, first = is_digit(p, n, 0, &len);
    size_t end = (size_t)len;
    if (first && alone)
        return end;
    while (end < n && is_digit(p, n, end, &len) == first)
        end += (size_t)len;
    return end;
}

size_t weir_split_each_digit(const uint8_t *p, size_t n)
{
    return split_digits(p, n, 1);
}

size_t weir_split_digit_runs(const uint8_t *p, size_t n)
{
    return split_digits(p, n, 0);
}

static int is_meta(const uint8_t *p, size_t n, size_t i)
{
    return n - i >= 3 && p[i] == 0xe2 && p[i + 1] == 0x96 && p[i + 2] == 0x81;
}

/* The next U+2581 from i on, or n. */
static size_t next_meta(const uint8_t *p, size_t n, size_t i)
{
    while (i < n) {
        const uint8_t *e2 = memchr(p + i, 0xe2, n - i);
        if (!e2)
            return n;
        i = (size_t)(e2 - p);
        if (is_meta(p, n, i))
            return i;
        i++;
    }
    return n;
}

size_t weir_split_at_meta(const uint8_t *p, size_t n)
{
    return next_meta(p, n, is_meta(p, n, 0) ? 3 : 1);
}

size_t weir_split_before_meta(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n && is_meta(p, n, i))
        i += 3;
    return i < n ? next_meta(p, n, i + 1) : n;
}

#define GPT2_TAIL "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA_HEAD "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define LLAMA_TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    const char *regex;
    weir_tok_pattern pattern;
} known[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d" GPT2_TAIL, {"gpt2", weir_split_gpt2}},
    {"'(?:[sdmt]|ll|ve|re)" GPT2_TAIL, {"gpt2", weir_split_gpt2}},
    {LLAMA_HEAD "\\p{N}{1,3}" LLAMA_TAIL, {"llama3", weir_split_llama3}},
    {LLAMA_HEAD "\\p{N}" LLAMA_TAIL, {"qwen2", weir_split_qwen2}},
};

const weir_tok_pattern *weir_tok_pattern_of_regex(weir_str regex)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (weir_str_eq(regex, known[i].regex))
            return &known[i].pattern;
    return NULL;
}

const char *weir_tok_regex_of(weir_tok_splitter *split)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].pattern.split == split)
            return known[i].regex;
    return NULL;
}

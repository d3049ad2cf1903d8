#include "markdown.h"

#include <ctype.h>
#include <string.h>

#include "page/svg.h"

/* --- in a line */

/* Where the next `mark` [n] begins in p [end]; end: there is none. */
static size_t find(const char *p, size_t from, size_t end, const char *mark, size_t n)
{
    for (size_t i = from; i + n <= end; i++)
        if (memcmp(p + i, mark, n) == 0)
            return i;
    return end;
}

static void put_element(FILE *out, const char *name, const char *p, size_t n)
{
    fprintf(out, "<%s>", name);
    weir_svg_xml(out, p, n);
    fprintf(out, "</%s>", name);
}

/* Each of these reads what stands at p [n], writes it, and returns how many bytes it took; 0: it is not there. */

static size_t put_code(FILE *out, const char *p, size_t n)
{
    size_t run = 0;
    while (run < n && p[run] == '`')
        run++;
    for (size_t at = run; run && at < n;) {
        const size_t close = find(p, at, n, p, run);
        size_t more = 0;
        while (close + more < n && p[close + more] == '`')
            more++;
        if (close < n && more == run) {
            const size_t pad = close - run > 2 && p[run] == ' ' && p[close - 1] == ' ';
            put_element(out, "code", p + run + pad, close - run - 2 * pad);
            return close + run;
        }
        at = close + (more ? more : 1);
    }
    return 0;
}

static void put_inline(FILE *out, const char *p, size_t n);

static size_t put_marked(FILE *out, const char *p, size_t n, const char *mark, const char *element)
{
    const size_t m = strlen(mark);
    if (n <= 2 * m || memcmp(p, mark, m) != 0 || isspace((unsigned char)p[m]))
        return 0;
    const size_t close = find(p, m + 1, n, mark, m);
    if (close == n || isspace((unsigned char)p[close - 1]))
        return 0;
    fprintf(out, "<%s>", element);
    put_inline(out, p + m, close - m);
    fprintf(out, "</%s>", element);
    return close + m;
}

/* Only to the web, and to what lies beside the page. */
static bool is_link(const char *p, size_t n)
{
    const bool web = (n > 8 && strncmp(p, "https://", 8) == 0) || (n > 7 && strncmp(p, "http://", 7) == 0);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)p[i]) && !strchr(web ? "-._~/#?=&%+:,;@" : "-._~/#", p[i]))
            return false;
    return n > 0;
}

static size_t put_link(FILE *out, const char *p, size_t n)
{
    const size_t middle = *p == '[' ? find(p, 1, n, "](", 2) : n;
    const size_t close = middle < n ? find(p, middle, n, ")", 1) : n;
    if (close == n)
        return 0;
    const char *to = p + middle + 2;
    const bool plain = is_link(to, close - middle - 2);
    if (plain) {
        fputs("<a href=\"", out);
        weir_svg_xml(out, to, close - middle - 2);
        fputs("\">", out);
    }
    put_inline(out, p + 1, middle - 1);
    fputs(plain ? "</a>" : "", out);
    return close + 1;
}

static void put_inline(FILE *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        const size_t left = n - i;
        size_t took = 0;
        if (p[i] == '\\' && left > 1 && ispunct((unsigned char)p[i + 1])) {
            weir_svg_xml(out, p + i + 1, 1);
            took = 2;
        }
        if (!took && p[i] == '`')
            took = put_code(out, p + i, left);
        if (!took && p[i] == '*')
            took = put_marked(out, p + i, left, "**", "strong");
        if (!took && p[i] == '*' && !(left > 1 && p[i + 1] == '*'))
            took = put_marked(out, p + i, left, "*", "em");
        if (!took && p[i] == '[')
            took = put_link(out, p + i, left);
        for (; !took && p[i] == '`' && i < n; i++) /* backquotes that nothing closes */
            fputc('`', out);
        if (!took && i < n) {
            size_t plain = 1;
            while (i + plain < n && !strchr("\\`*[", p[i + plain]))
                plain++;
            weir_svg_xml(out, p + i, plain);
            took = plain;
        }
        i += took;
    }
}

/* --- lines */

typedef enum block { NOTHING, PARAGRAPH, BULLETS, NUMBERS } block;

static void end_block(FILE *out, block *b)
{
    static const char *const end[] = {"", "</p>\n", "</li>\n</ul>\n", "</li>\n</ol>\n"};
    fputs(end[*b], out);
    *b = NOTHING;
}

static void begin_block(FILE *out, block *b, block want)
{
    static const char *const begin[] = {"", "<p>", "<ul>\n<li>", "<ol>\n<li>"};
    if (*b == want && want != PARAGRAPH) {
        fputs("</li>\n<li>", out);
    } else {
        end_block(out, b);
        fputs(begin[want], out);
    }
    *b = want;
}

/* Bytes of what begins an item of a list, with the spaces before it; 0: none does. */
static size_t item_mark(const char *p, size_t n, block *kind)
{
    size_t i = 0, digits = 0;
    while (i < n && p[i] == ' ')
        i++;
    while (i + digits < n && isdigit((unsigned char)p[i + digits]))
        digits++;
    *kind = digits ? NUMBERS : BULLETS;
    if (digits && i + digits + 1 < n && p[i + digits] == '.' && p[i + digits + 1] == ' ')
        return i + digits + 2;
    if (!digits && i + 1 < n && strchr("-*+", p[i]) && p[i + 1] == ' ')
        return i + 2;
    return 0;
}

/* "## " -> 2 */
static size_t heading_level(const char *p, size_t n)
{
    size_t level = 0;
    while (level < n && p[level] == '#')
        level++;
    return level <= 6 && level < n && p[level] == ' ' ? level : 0;
}

static void put_line(FILE *out, block *b, const char *p, size_t n)
{
    const size_t level = heading_level(p, n);
    block kind;
    const size_t item = item_mark(p, n, &kind);
    if (strspn(p, " ") >= n) {
        end_block(out, b);
    } else if (level) {
        end_block(out, b);
        fprintf(out, "<h%zu>", level);
        put_inline(out, p + level + 1, n - level - 1);
        fprintf(out, "</h%zu>\n", level);
    } else if (item) {
        begin_block(out, b, kind);
        put_inline(out, p + item, n - item);
    } else {
        if (*b == NOTHING)
            begin_block(out, b, PARAGRAPH);
        else
            fputc('\n', out);
        put_inline(out, p + strspn(p, " "), n - strspn(p, " "));
    }
}

static bool is_fence(const char *p)
{
    return strncmp(p, "```", 3) == 0;
}

void weir_markdown_put(FILE *out, const char *text)
{
    block b = NOTHING;
    bool fenced = false;
    while (*text) {
        const size_t n = strcspn(text, "\n");
        if (is_fence(text)) {
            end_block(out, &b);
            fputs(fenced ? "</code></pre>\n" : "<pre><code>", out);
            fenced = !fenced;
        } else if (fenced) {
            weir_svg_xml(out, text, n);
            fputc('\n', out);
        } else {
            put_line(out, &b, text, n);
        }
        text += n + (text[n] != 0);
    }
    end_block(out, &b);
    fputs(fenced ? "</code></pre>\n" : "", out);
}

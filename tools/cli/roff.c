#include "roff.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "printable.h"

enum { COLUMNS = 78 };

/* One character, escaped; returns its bytes. Signs that roff would set as typographic ones stay what they are, so that
 * what is copied from a page, or searched in it, is what was meant. */
static int put_char(FILE *out, const char *p)
{
    static const struct {
        char c;
        const char *as;
    } special[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"}, {'`', "\\(ga"},
                   {'^', "\\(ha"}, {'~', "\\(ti"}, {'"', "\\(dq"}};
    uint32_t cp;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (*p == special[i].c) {
            fputs(special[i].as, out);
            return 1;
        }
    int n = (unsigned char)*p < 0x80 ? 1 : weir_utf8_at(p, strlen(p), &cp);
    if (n > 1)
        fprintf(out, "\\[u%04X]", (unsigned)cp);
    else
        fputc(n == 1 ? *p : '?', out);
    return n ? n : 1;
}

/* n bytes, to which a line may begin: a dot there would be a request. */
static void put_bytes(FILE *out, const char *p, size_t n)
{
    if (n && *p == '.')
        fputs("\\&", out);
    for (const char *end = p + n; p < end;)
        p += put_char(out, p);
}

void weir_roff_word(FILE *out, char font, const char *text)
{
    if (font != 'R')
        fprintf(out, "\\f%c", font);
    put_bytes(out, text, strlen(text));
    if (font != 'R')
        fputs("\\fP", out);
}

/* Bytes of a name of an option at the beginning of a word of n bytes, or 0. */
static size_t option_name(const char *p, size_t n)
{
    size_t k = 2;
    if (n < 3 || strncmp(p, "--", 2) != 0 || p[2] < 'a' || p[2] > 'z')
        return 0;
    while (k < n && ((p[k] >= 'a' && p[k] <= 'z') || (p[k] >= '0' && p[k] <= '9') || p[k] == '-'))
        k++;
    return k;
}

static void put_word(FILE *out, const char *p, size_t n)
{
    size_t open = strspn(p, "(\"'"), k = open < n ? option_name(p + open, n - open) : 0;
    if (k == 0) {
        put_bytes(out, p, n);
        return;
    }
    put_bytes(out, p, open);
    fputs("\\fB", out);
    put_bytes(out, p + open, k);
    fputs("\\fP", out);
    put_bytes(out, p + open + k, n - open - k);
}

void weir_roff_text(FILE *out, const char *text)
{
    size_t column = 0;
    while (*text) {
        if (*text == '\n') {
            bool paragraph = text[1] == '\n';
            text += strspn(text, "\n");
            if (*text && column)
                fputs(paragraph ? "\n.PP\n" : "\n.br\n", out);
            column = *text ? 0 : column;
            continue;
        }
        if (*text == ' ') {
            text++;
            continue;
        }
        size_t n = strcspn(text, " \n");
        if (column && column + 1 + n > COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        if (column)
            fputc(' ', out);
        put_word(out, text, n);
        column += n + (column > 0);
        text += n;
    }
    fputc('\n', out);
}

void weir_roff_literal(FILE *out, const char *text)
{
    fputs(".EX\n", out);
    while (*text) {
        size_t n = strcspn(text, "\n");
        put_bytes(out, text, n);
        fputc('\n', out);
        text += n + (text[n] != 0);
    }
    fputs(".EE\n.nh\n", out); /* groff's .EE lets words be broken again */
}

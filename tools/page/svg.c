#include "svg.h"

#include <math.h>
#include <string.h>

#include "cli/printable.h"

void weir_svg_open(FILE *out, double width, double height, const char *tool, const char *title)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"#1b1f27\">\n<title>",
            width, height, width, height);
    weir_svg_text(out, title, strlen(title), 0, false);
    fputs("</title>\n", out);
    if (tool)
        fprintf(out, "<desc>%s %s</desc>\n", tool, weir_version());
    fputs("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", out);
}

void weir_svg_begin(FILE *out, double width, double height, const char *tool, const char *title)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
    weir_svg_open(out, width, height, tool, title);
}

void weir_svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

/* XML has no U+FFFE and U+FFFF; all else that it lacks is no printable character either. */
void weir_svg_xml(FILE *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *word = p[i] == '&'   ? "&amp;"
                           : p[i] == '<' ? "&lt;"
                           : p[i] == '>' ? "&gt;"
                           : p[i] == '"' ? "&quot;"
                                         : NULL;
        bool no_character = n - i >= 3 && memcmp(p + i, "\xef\xbf", 2) == 0 && ((uint8_t)p[i + 2] & 0xfe) == 0xbe;
        if (word) {
            fputs(word, out);
        } else if (no_character) {
            fprintf(out, "\\xef\\xbf\\x%02x", (uint8_t)p[i + 2]);
            i += 2;
        } else {
            fputc(p[i], out);
        }
    }
}

/* Bytes of the first n that take at most so many columns. */
static size_t fitting(const char *p, size_t n, int columns)
{
    size_t at = 0;
    int64_t used = 0;
    uint32_t cp;
    while (at < n) {
        int len = weir_utf8_at(p + at, n - at, &cp);
        len = len ? len : 1;
        used += weir_text_columns(p + at, (size_t)len);
        if (used > columns)
            break;
        at += (size_t)len;
    }
    return at;
}

void weir_svg_text(FILE *out, const char *p, size_t n, int columns, bool dot)
{
    weir_text t = {0};
    size_t skip = dot && n && *p == ' ';
    if (skip)
        weir_text_add(&t, "\xc2\xb7", 2);
    weir_text_printable(&t, p + skip, n - skip);
    if (!t.failed && columns && weir_text_columns(t.p, t.n) > columns) {
        weir_svg_xml(out, t.p, fitting(t.p, t.n, columns - 1));
        fputs("\xe2\x80\xa6", out);
    } else if (!t.failed) {
        weir_svg_xml(out, t.p, t.n);
    }
    weir_text_free(&t);
}

int64_t weir_svg_columns(const char *p, size_t n)
{
    weir_text t = {0};
    weir_text_printable(&t, p, n);
    const int64_t columns = t.failed ? 0 : weir_text_columns(t.p, t.n);
    weir_text_free(&t);
    return columns;
}

void weir_svg_token_bytes(FILE *out, weir_str bytes, int32_t id, int columns, bool dot)
{
    if (bytes.n)
        weir_svg_text(out, bytes.p, bytes.n, columns, dot);
    else if (id >= 0)
        fprintf(out, "&lt;#%d&gt;", id);
}

void weir_svg_token(FILE *out, const weir_tokenizer *tok, int32_t id, int columns, bool dot)
{
    bool known = tok && id >= 0 && id < weir_tokenizer_size(tok);
    weir_svg_token_bytes(out, known ? weir_tokenizer_bytes(tok, id) : (weir_str){0}, id, columns, dot);
}

void weir_svg_float(FILE *out, float x)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    if (isfinite(x))
        weir_jsonw_float(&w, x);
    else
        fputs(isnan(x) ? "none" : x > 0 ? "inf" : "-inf", out);
}

weir_svg_colour weir_svg_heat(double strength)
{
    static const int stop[2][4][3] = {{{255, 255, 255}, {255, 228, 166}, {247, 170, 86}, {233, 116, 66}},
                                      {{255, 255, 255}, {205, 226, 252}, {135, 185, 243}, {86, 154, 236}}};
    weir_svg_colour c;
    if (isnan(strength)) {
        snprintf(c.text, sizeof c.text, "none");
        return c;
    }
    double at = 3 * fmin(1, fabs(strength));
    int sign = strength < 0, i = at < 2 ? (int)at : 2, rgb[3];
    for (int j = 0; j < 3; j++)
        rgb[j] = (int)lround(stop[sign][i][j] + (at - i) * (stop[sign][i + 1][j] - stop[sign][i][j]));
    snprintf(c.text, sizeof c.text, "rgb(%d,%d,%d)", rgb[0], rgb[1], rgb[2]);
    return c;
}

/* page/svg.h: pictures as SVG: text that XML takes, colours, heads. Light colours, generic fonts, nothing outside. */
#ifndef WEIR_TOOLS_PAGE_SVG_H
#define WEIR_TOOLS_PAGE_SVG_H

#include <weir/weir.h>

/* Begins a picture of this size with a white ground; title in printable form. tool: "weir logit-lens", by which an
 * earlier output is known. */
void weir_svg_begin(FILE *out, double width, double height, const char *tool, const char *title);
/* The same inside a page: without the head of an XML file. tool may be NULL. */
void weir_svg_open(FILE *out, double width, double height, const char *tool, const char *title);
void weir_svg_end(FILE *out);
/* Bytes in printable form (cli/printable.h) with XML's own characters escaped, cut to so many columns (0: whole); a
 * space at the beginning is drawn as a dot if `dot`. Out of memory: nothing is written, and ferror(out) stays as it
 * was. */
void weir_svg_text(FILE *out, const char *p, size_t n, int columns, bool dot);
/* Text that is in printable form already. */
void weir_svg_xml(FILE *out, const char *p, size_t n);
/* Columns that the whole of these bytes takes in printable form. */
int64_t weir_svg_columns(const char *p, size_t n);
/* Writes a token in the same way. tok NULL, and tokens without bytes: "<#ID>"; -1: nothing. */
void weir_svg_token(FILE *out, const weir_tokenizer *tok, int32_t id, int columns, bool dot);
/* The same of its bytes. */
void weir_svg_token_bytes(FILE *out, weir_str bytes, int32_t id, int columns, bool dot);
/* The shortest digits that give the same float back; "none" where it is NaN. */
void weir_svg_float(FILE *out, float x);

/* "rgb(...)" of a strength: 0 white, 1 deep orange, -1 deep blue; text of #1b1f27 on it has a contrast of 4.5 : 1. NaN:
 * "none". */
typedef struct weir_svg_colour {
    char text[24];
} weir_svg_colour;
weir_svg_colour weir_svg_heat(double strength);

#endif

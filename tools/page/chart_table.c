/* page/chart_table.c: plain tables as HTML. */
#include <math.h>
#include <string.h>

#include "chart.h"

enum { TEXT = 60 };

void weir_chart_table_begin(weir_chart_table *t, FILE *out, const char *caption, const char *const *head, int columns)
{
    *t = (weir_chart_table){.out = out, .columns = columns};
    fputs("<table class=\"plain\">\n", out);
    if (caption) {
        fputs("<caption>", out);
        weir_svg_text(out, caption, strlen(caption), 0, false);
        fputs("</caption>\n", out);
    }
    fputs("<thead><tr>", out);
    for (int i = 0; i < columns; i++) {
        fputs("<th>", out);
        weir_svg_text(out, head[i], strlen(head[i]), 0, false);
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

static void begin_cell(weir_chart_table *t)
{
    if (t->at == 0)
        fputs("<tr>", t->out);
}

void weir_chart_table_cell(weir_chart_table *t, const char *kind)
{
    begin_cell(t);
    if (kind)
        fprintf(t->out, "<td class=\"%s\">", kind);
    else
        fputs("<td>", t->out);
}

void weir_chart_table_cell_end(weir_chart_table *t)
{
    fputs("</td>", t->out);
    t->at = (t->at + 1) % t->columns;
    if (t->at == 0)
        fputs("</tr>\n", t->out);
}

void weir_chart_table_text(weir_chart_table *t, const char *p, size_t n)
{
    begin_cell(t);
    fputs("<td", t->out);
    if (weir_svg_columns(p, n) > TEXT) {
        fputs(" title=\"", t->out);
        weir_svg_text(t->out, p, n, 0, false);
        fputc('"', t->out);
    }
    fputc('>', t->out);
    weir_svg_text(t->out, p, n, TEXT, false);
    weir_chart_table_cell_end(t);
}

void weir_chart_table_token(weir_chart_table *t, weir_str bytes, int32_t id)
{
    weir_chart_table_cell(t, "token");
    weir_svg_token_bytes(t->out, bytes, id, 0, false);
    weir_chart_table_cell_end(t);
}

void weir_chart_table_context(weir_chart_table *t, weir_str before, weir_str token, weir_str behind)
{
    weir_chart_table_cell(t, "token");
    weir_svg_text(t->out, before.p, before.n, 0, false);
    fputs("<mark>", t->out);
    weir_svg_text(t->out, token.p, token.n, 0, false);
    fputs("</mark>", t->out);
    weir_svg_text(t->out, behind.p, behind.n, 0, false);
    weir_chart_table_cell_end(t);
}

void weir_chart_table_int(weir_chart_table *t, int64_t v)
{
    weir_chart_table_cell(t, "number");
    fprintf(t->out, "%lld", (long long)v);
    weir_chart_table_cell_end(t);
}

void weir_chart_table_real(weir_chart_table *t, double v, int digits, const weir_chart_scale *heat)
{
    begin_cell(t);
    fputs("<td class=\"number\" title=\"", t->out);
    weir_chart_number(t->out, v);
    fputc('"', t->out);
    if (heat && isfinite(v))
        fprintf(t->out, " style=\"background:%s;color:#1b1f27\"", weir_chart_scale_colour(heat, v).text);
    fputc('>', t->out);
    if (isfinite(v))
        fprintf(t->out, "%.*g", digits, v);
    else if (isinf(v))
        weir_chart_number(t->out, v);
    weir_chart_table_cell_end(t);
}

void weir_chart_table_end(weir_chart_table *t)
{
    for (bool begun = t->at > 0; begun && t->at;) {
        fputs("<td>", t->out);
        weir_chart_table_cell_end(t);
    }
    fputs("</tbody>\n</table>\n", t->out);
}

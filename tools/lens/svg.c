/* The map as a picture: one document below another, each cut into bands of positions; cells as in page.html, each with
 * a <title> that says what it is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "held.h"
#include "page/svg.h"
#include "ramp.h"

enum {
    CELL_W = 78,
    CELL_H = 21,
    LETTERS = 10, /* columns of text in a cell: 6.6 units each at 11 units */
    BAND = 16,    /* positions side by side */
    TOP = 70,     /* title and legend */
    HEAD = 40,    /* numbers and tokens above a band */
    GAP = 14,     /* between bands */
    DOC = 30,     /* a document's heading */
    MARGIN = 12
};

/* --- sizes */

static int name_width(const weir_lens_about *a)
{
    size_t longest = 4;
    for (int l = 0; l < a->n_lines; l++)
        longest = strlen(a->line[l].name) > longest ? strlen(a->line[l].name) : longest;
    return 12 + 7 * (int)longest;
}

static double band_height(const weir_lens_about *a)
{
    return HEAD + a->n_lines * CELL_H + GAP;
}

static double height(const weir_lens_held *h)
{
    double y = TOP + MARGIN;
    for (weir_lens_held_doc d = weir_lens_held_doc_at(h, 0); d.end > d.first; d = weir_lens_held_doc_at(h, d.end))
        y += DOC + (double)((d.end - d.first + BAND - 1) / BAND) * band_height(h->about);
    return y;
}

static int64_t widest(const weir_lens_held *h)
{
    int64_t most = 6; /* the legend */
    for (weir_lens_held_doc d = weir_lens_held_doc_at(h, 0); d.end > d.first; d = weir_lens_held_doc_at(h, d.end))
        most = d.end - d.first > most ? d.end - d.first : most;
    return most < BAND ? most : BAND;
}

/* --- parts */

static void put_token(const weir_lens_held *h, int32_t id, int columns)
{
    weir_svg_token(h->sink.out, h->sink.tok, id, columns, columns > 0);
}

static void put_cell(const weir_lens_held *h, const weir_lens_ramp *ramp, int64_t i, int l, double x, double y)
{
    const weir_lens_about *a = h->about;
    FILE *out = h->sink.out;
    int32_t top = h->top[i * a->n_lines + l];
    float value = weir_lens_held_value(h, 0, i, l);
    bool follows = top >= 0 && top == h->next[i];
    fputs("<g><title>", out);
    weir_svg_text(out, a->line[l].name, strlen(a->line[l].name), 0, false);
    fprintf(out, ", position %lld '", (long long)h->pos[i]);
    put_token(h, h->id[i], 0);
    fputs("': '", out);
    put_token(h, top, 0);
    if (top >= 0)
        fprintf(out, "' %.3g%s; %s ", exp((double)h->logprob[i * a->n_lines + l]), follows ? ", comes next" : "",
                weir_lens_stat_name[a->shown]);
    else
        fprintf(out, "'; %s ", weir_lens_stat_name[a->shown]);
    weir_svg_float(out, value);
    fprintf(out, "</title><rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" fill=\"%s\"/>", x, y, CELL_W - 1,
            CELL_H - 1, weir_svg_heat(weir_lens_ramp_at(ramp, (double)value)).text);
    fprintf(out, "<text x=\"%g\" y=\"%g\">%s", x + 4, y + 14, follows ? "*" : "");
    put_token(h, top, follows ? LETTERS - 1 : LETTERS);
    fputs("</text></g>\n", out);
}

static void put_head(const weir_lens_held *h, int64_t i, double x, double y)
{
    FILE *out = h->sink.out;
    fprintf(out,
            "<text x=\"%g\" y=\"%g\" font-size=\"10\" fill=\"#545c6b\">%lld</text><text x=\"%g\" y=\"%g\" "
            "font-weight=\"bold\">",
            x + 4, y + 14, (long long)h->pos[i], x + 4, y + 30);
    put_token(h, h->id[i], LETTERS);
    fputs("</text>\n", out);
}

static void put_band(const weir_lens_held *h, const weir_lens_ramp *ramp, int64_t first, int64_t end, double y)
{
    const weir_lens_about *a = h->about;
    FILE *out = h->sink.out;
    double left = MARGIN + name_width(a);
    fputs("<g font-family=\"monospace\" font-size=\"11\">\n", out);
    for (int64_t i = first; i < end; i++)
        put_head(h, i, left + (double)(i - first) * CELL_W, y);
    for (int l = 0; l < a->n_lines; l++) {
        double row = y + HEAD + l * CELL_H;
        fprintf(out, "<text x=\"%d\" y=\"%g\">", MARGIN, row + 14);
        weir_svg_text(out, a->line[l].name, strlen(a->line[l].name), 0, false);
        fputs("</text>\n", out);
        for (int64_t i = first; i < end; i++)
            put_cell(h, ramp, i, l, left + (double)(i - first) * CELL_W, row);
    }
    fputs("</g>\n", out);
}

/* The scale's ends beside its colours. */
static void put_legend(const weir_lens_held *h, const weir_lens_ramp *ramp, double x, double y)
{
    enum { STEPS = 24, WIDTH = 6 };
    FILE *out = h->sink.out;
    fprintf(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%.3g</text>", x + 50, y, ramp->low);
    for (int i = 0; i < STEPS; i++)
        fprintf(out, "<rect x=\"%g\" y=\"%g\" width=\"%d.5\" height=\"10\" fill=\"%s\"/>", x + 56 + i * WIDTH, y - 9,
                WIDTH, weir_svg_heat(weir_lens_ramp_at(ramp, weir_lens_ramp_value(ramp, i / (STEPS - 1.0)))).text);
    fprintf(out, "<text x=\"%g\" y=\"%g\">%.3g</text>\n", x + 62 + STEPS * WIDTH, y, ramp->high);
}

static double put_document(const weir_lens_held *h, weir_lens_held_doc d, float *scratch, double y)
{
    weir_lens_ramp ramp = weir_lens_ramp_of(h->about->shown, scratch, weir_lens_held_scaled(h, 0, d, scratch));
    fprintf(h->sink.out, "<text x=\"%d\" y=\"%g\" font-weight=\"bold\">document %lld</text>\n", MARGIN, y + 18,
            (long long)h->doc[d.first]);
    put_legend(h, &ramp, MARGIN + 110, y + 18);
    y += DOC;
    for (int64_t i = d.first; i < d.end; i += BAND, y += band_height(h->about))
        put_band(h, &ramp, i, i + BAND < d.end ? i + BAND : d.end, y);
    return y;
}

/* --- the sink */

static weir_status begin(weir_lens_sink *sink, const weir_lens_about *a, weir_err *err)
{
    weir_lens_held *h = (weir_lens_held *)sink;
    if (!(a->has & 1u << a->shown))
        return weir_fail(err, WEIR_E_ARG, "%s was not computed", weir_lens_stat_name[a->shown]);
    h->about = a;
    h->stat[0] = a->shown;
    h->n_stats = 1;
    return WEIR_OK;
}

static weir_status end(weir_lens_sink *sink, weir_err *err)
{
    weir_lens_held *h = (weir_lens_held *)sink;
    float *scratch = malloc(sizeof *scratch * (size_t)(h->n * h->about->n_lines + 1));
    double y = TOP;
    if (!scratch)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory for a picture");
    weir_svg_begin(sink->out, 2 * MARGIN + name_width(h->about) + (double)widest(h) * CELL_W, height(h),
                   "weir logit-lens", h->about->lens);
    weir_lens_held_title(h, MARGIN);
    fprintf(sink->out, "<text x=\"%d\" y=\"60\" fill=\"#545c6b\">%s; *: the token that does come next</text>\n", MARGIN,
            weir_lens_stat_long(h->about->shown));
    for (weir_lens_held_doc d = weir_lens_held_doc_at(h, 0); d.end > d.first; d = weir_lens_held_doc_at(h, d.end))
        y = put_document(h, d, scratch, y);
    weir_svg_end(sink->out);
    free(scratch);
    return WEIR_OK;
}

weir_lens_sink *weir_lens_svg_new(FILE *out, const weir_tokenizer *tok)
{
    return weir_lens_held_new(out, tok, begin, end);
}

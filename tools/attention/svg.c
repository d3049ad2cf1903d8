/* Maps as a picture: heads beside one another, a map for each, with its tokens at the left (queries) and above (keys);
 * a cell has a <title> that says what reads what. At most 100,000 cells, because a picture is for the eye. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page/svg.h"
#include "view.h"

enum {
    MOST_CELLS = 100000,
    CELL = 14,
    LABEL = 96,   /* tokens at the left, and above */
    LETTERS = 14, /* columns of a token in it: 6 units each at 10 units */
    TITLE = 22,   /* a head's name */
    GAP = 20,
    TOP = 66,
    DOC = 28,
    MARGIN = 12,
    WIDEST = 1600 /* of several heads beside one another */
};

/* A picture's size is known at its end: maps are drawn into memory. */
typedef struct picture {
    weir_attention_sink sink; /* first: what callers hold */
    FILE *body;
    char *text;
    size_t size;
    int64_t cells;
    double y, width;
} picture;

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for a picture");
}

/* --- one head */

static void put_labels(const picture *p, const weir_attention_map *m, double x, double y)
{
    for (int64_t q = 0; q < m->n_queries; q++) {
        fprintf(p->body, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">", x - 4, y + (double)q * CELL + 11);
        weir_svg_token(p->body, p->sink.tok, m->id[m->query[q]], LETTERS, true);
        fputs("</text>\n", p->body);
    }
    for (int64_t k = 0; k < m->n; k++) {
        double at = x + (double)k * CELL + 10;
        fprintf(p->body, "<text x=\"%g\" y=\"%g\" transform=\"rotate(-90 %g %g)\">", at, y - 4, at, y - 4);
        weir_svg_token(p->body, p->sink.tok, m->id[k], LETTERS, true);
        fputs("</text>\n", p->body);
    }
}

static void put_cell(const picture *p, const weir_attention_map *m, int64_t i, int64_t k, float weight, double x,
                     double y)
{
    FILE *out = p->body;
    fprintf(out, "<rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" fill=\"%s\"><title>%lld '", x, y, CELL - 1,
            CELL - 1, weir_svg_heat((double)weight).text, (long long)m->pos[i]);
    weir_svg_token(out, p->sink.tok, m->id[i], 0, false);
    fprintf(out, "' reads %lld '", (long long)m->pos[k]);
    weir_svg_token(out, p->sink.tok, m->id[k], 0, false);
    fputs("': ", out);
    weir_svg_float(out, weight);
    fputs("</title></rect>\n", out);
}

static void put_head(const picture *p, const weir_attention_map *m, int h, double x, double y)
{
    const weir_attention_head *head = &p->sink.about->head[h];
    fprintf(
        p->body,
        "<text x=\"%g\" y=\"%g\" font-weight=\"bold\">L%dH%d</text>\n<g font-family=\"monospace\" font-size=\"10\">\n",
        x, y + 14, head->layer, head->head);
    x += LABEL;
    y += TITLE + LABEL;
    put_labels(p, m, x, y);
    fprintf(p->body, "<rect x=\"%g\" y=\"%g\" width=\"%lld\" height=\"%lld\" fill=\"none\" stroke=\"#d5d9e0\"/>\n",
            x - 1, y - 1, (long long)(m->n * CELL + 1), (long long)(m->n_queries * CELL + 1));
    for (int64_t q = 0; q < m->n_queries; q++) {
        const float *row = weir_attention_row(m, h, q);
        for (int64_t k = 0; k <= m->query[q]; k++)
            put_cell(p, m, m->query[q], k, row[k], x + (double)k * CELL, y + (double)q * CELL);
    }
    fputs("</g>\n", p->body);
}

/* --- the sink */

static weir_status begin(weir_attention_sink *sink, const weir_attention_about *a, weir_err *err)
{
    picture *p = (picture *)sink;
    p->y = TOP;
    p->body = open_memstream(&p->text, &p->size);
    return p->body ? weir_attention_begin(sink, a, err) : no_memory(err);
}

static weir_status map(weir_attention_sink *sink, const weir_attention_map *m, weir_err *err)
{
    picture *p = (picture *)sink;
    for (int64_t q = 0; q < m->n_queries; q++)
        p->cells += sink->about->n_heads * (m->query[q] + 1);
    if (p->cells > MOST_CELLS)
        return weir_fail(err, WEIR_E_ARG,
                         "a picture has at most %d cells, and these maps have more: choose --heads, --positions or a "
                         "shorter text, or --format html",
                         MOST_CELLS);
    fprintf(p->body, "<text x=\"%d\" y=\"%g\" font-weight=\"bold\">document %lld, from position %lld</text>\n", MARGIN,
            p->y + 16, (long long)m->doc, (long long)(m->pos[0] < 0 && m->n > 1 ? m->pos[1] : m->pos[0]));
    p->y += DOC;
    double wide = LABEL + (double)m->n * CELL + GAP, high = TITLE + LABEL + (double)m->n_queries * CELL + GAP;
    int across = wide < WIDEST ? (int)(WIDEST / wide) : 1;
    for (int h = 0; h < sink->about->n_heads; h++)
        put_head(p, m, h, MARGIN + h % across * wide, p->y + h / across * high);
    p->y += (sink->about->n_heads + across - 1) / across * high;
    int used = sink->about->n_heads < across ? sink->about->n_heads : across;
    p->width = fmax(p->width, 2 * MARGIN + used * wide);
    return WEIR_OK;
}

static weir_status end(weir_attention_sink *sink, weir_err *err)
{
    picture *p = (picture *)sink;
    const weir_attention_about *a = sink->about;
    bool ok = !ferror(p->body);
    ok = fclose(p->body) == 0 && ok;
    p->body = NULL;
    if (!ok)
        return no_memory(err);
    weir_svg_begin(sink->out, fmax(420, p->width), p->y + MARGIN, "weir attention", "attention patterns");
    fprintf(sink->out, "<text x=\"%d\" y=\"24\" font-size=\"15\" font-weight=\"bold\">attention of ", MARGIN);
    weir_svg_text(sink->out, a->run.model, strlen(a->run.model), 60, false);
    fprintf(sink->out, "</text>\n<text x=\"%d\" y=\"42\" fill=\"#545c6b\">", MARGIN);
    weir_svg_text(sink->out, a->run.source, strlen(a->run.source), 80, false);
    fprintf(
        sink->out,
        "</text>\n<text x=\"%d\" y=\"60\" fill=\"#545c6b\">rows read columns: white 0, deep orange 1; a row sums to "
        "1</text>\n",
        MARGIN);
    fwrite(p->text, 1, p->size, sink->out);
    weir_svg_end(sink->out);
    return WEIR_OK;
}

static void drop(weir_attention_sink *sink)
{
    picture *p = (picture *)sink;
    if (!p)
        return;
    if (p->body)
        fclose(p->body);
    free(p->text);
    free(p);
}

weir_attention_sink *weir_attention_svg_new(FILE *out, const weir_tokenizer *tok)
{
    picture *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->sink = (weir_attention_sink){begin, map, end, drop, out, tok, NULL};
    return &p->sink;
}

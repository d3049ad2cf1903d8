#include "held.h"

#include <stdlib.h>
#include <string.h>

#include "cli/room.h"
#include "page/svg.h"

/* Makes room for all positions that there may be, so that value need not be rearranged. */
static weir_status make_room(weir_lens_held *h, weir_err *err)
{
    size_t lines = (size_t)h->about->n_lines, room = WEIR_LENS_HELD_CELLS / lines + 1;
    bool ok = weir_room(&h->doc, room, sizeof *h->doc) && weir_room(&h->pos, room, sizeof *h->pos) &&
              weir_room(&h->id, room, sizeof *h->id) && weir_room(&h->next, room, sizeof *h->next) &&
              weir_room(&h->top, room * lines, sizeof *h->top) &&
              weir_room(&h->logprob, room * lines, sizeof *h->logprob) &&
              weir_room(&h->value, room * lines * (size_t)(h->n_stats + 1), sizeof *h->value);
    h->room = (int64_t)room;
    return ok ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory for a picture's cells");
}

static weir_status piece(weir_lens_sink *sink, const weir_lens_piece *p, weir_err *err)
{
    weir_lens_held *h = (weir_lens_held *)sink;
    const weir_lens_about *a = h->about;
    if (h->room == 0)
        WEIR_TRY(make_room(h, err));
    if ((h->n + p->n) * a->n_lines > WEIR_LENS_HELD_CELLS)
        return weir_fail(err, WEIR_E_ARG,
                         "a picture has at most %d cells, and this text has more: choose --positions or --layers, or "
                         "--format html",
                         WEIR_LENS_HELD_CELLS);
    for (int64_t i = 0; i < p->n; i++) {
        int64_t to = h->n + i;
        h->doc[to] = p->doc;
        h->pos[to] = p->pos[i];
        h->id[to] = p->id[i];
        h->next[to] = p->next[i];
        for (int l = 0; l < a->n_lines; l++) {
            int64_t from = l * p->n + i, cell = to * a->n_lines + l;
            h->top[cell] = a->k ? p->top_id[from * a->k] : -1;
            h->logprob[cell] = a->k ? p->top_logprob[from * a->k] : 0;
            for (int s = 0; s < h->n_stats; s++)
                h->value[s * h->room * a->n_lines + cell] = p->stat[h->stat[s]][from];
        }
    }
    h->n += p->n;
    return WEIR_OK;
}

static void drop(weir_lens_sink *sink)
{
    weir_lens_held *h = (weir_lens_held *)sink;
    if (!h)
        return;
    void *p[] = {h->doc, h->pos, h->id, h->next, h->top, h->logprob, h->value};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        free(p[i]);
    free(h);
}

weir_lens_sink *weir_lens_held_new(FILE *out, const weir_tokenizer *tok,
                                   weir_status (*begin)(weir_lens_sink *s, const weir_lens_about *a, weir_err *err),
                                   weir_status (*end)(weir_lens_sink *s, weir_err *err))
{
    weir_lens_held *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->sink = (weir_lens_sink){begin, piece, end, drop, out, tok};
    return &h->sink;
}

void weir_lens_held_title(const weir_lens_held *h, int x)
{
    const weir_lens_about *a = h->about;
    FILE *out = h->sink.out;
    fprintf(out, "<text x=\"%d\" y=\"24\" font-size=\"15\" font-weight=\"bold\">", x);
    weir_svg_text(out, a->lens, strlen(a->lens), 60, false);
    fputs(" of ", out);
    weir_svg_text(out, a->run.model, strlen(a->run.model), 60, false);
    fprintf(out, "</text>\n<text x=\"%d\" y=\"42\" fill=\"#545c6b\">", x);
    weir_svg_text(out, a->run.source, strlen(a->run.source), 80, false);
    fputs("</text>\n", out);
}

weir_lens_held_doc weir_lens_held_doc_at(const weir_lens_held *h, int64_t first)
{
    int64_t end = first;
    while (end < h->n && h->doc[end] == h->doc[first])
        end++;
    return (weir_lens_held_doc){first, end};
}

int64_t weir_lens_held_scaled(const weir_lens_held *h, int s, weir_lens_held_doc d, float *x)
{
    const weir_lens_about *a = h->about;
    bool positions = h->pos[d.end - 1] != 0, lines = a->line[a->n_lines - 1].layer >= 0;
    int64_t n = 0;
    for (int64_t i = d.first; i < d.end; i++)
        for (int l = 0; (h->pos[i] != 0 || !positions) && l < a->n_lines; l++)
            if (a->line[l].layer >= 0 || !lines)
                x[n++] = weir_lens_held_value(h, s, i, l);
    return n;
}

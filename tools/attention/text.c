/* Maps on a terminal, a head below another: rows are queries, columns are keys, cells two columns wide. Before a row
 * stand its position and token, and the key that it reads most. A map that is wider than the terminal is cut into
 * pages.
 *
 *     L6H3  document 0
 *      pos token        most                 0   5
 *        4 · Colombia   .71    2 ·city       ░░  ██··
 */
#include <stdlib.h>
#include <string.h>

#include "cli/changes.h"
#include "cli/terminal.h"
#include "lens/token.h"
#include "view.h"

enum { TOKEN = 12, LABEL = 5 + 1 + TOKEN + 1 + 4 + 1 + 5 + 1 + TOKEN + 1, CELL = 2 };

typedef struct maps {
    weir_attention_sink sink; /* first: what callers hold */
    int width;
    weir_colour colour;
    bool utf8;
    weir_text text;
} maps;

/* --- labels */

/* A token in exactly TOKEN columns. */
static void put_token(maps *t, int32_t id)
{
    uint32_t cp;
    size_t at = 0;
    int64_t used = 0;
    t->text.n = 0;
    if (id >= 0)
        weir_lens_token(&t->text, t->sink.tok, id);
    while (at < t->text.n) {
        int len = weir_utf8_at(t->text.p + at, t->text.n - at, &cp);
        int64_t wide = weir_text_columns(t->text.p + at, (size_t)(len ? len : 1));
        if (used + wide > TOKEN)
            break;
        used += wide;
        at += (size_t)(len ? len : 1);
    }
    fwrite(t->text.p ? t->text.p : "", 1, at, t->sink.out);
    fprintf(t->sink.out, "%*s", (int)(TOKEN - used), "");
}

static void put_pos(maps *t, int64_t pos)
{
    if (pos < 0)
        fputs("  BOS", t->sink.out);
    else
        fprintf(t->sink.out, "%5lld", (long long)pos);
}

static void put_label(maps *t, const weir_attention_map *m, int64_t q, const float *row)
{
    const int64_t i = m->query[q];
    int64_t most = 0;
    for (int64_t k = 1; k <= i; k++)
        if (row[k] > row[most])
            most = k;
    put_pos(t, m->pos[i]);
    fputc(' ', t->sink.out);
    put_token(t, m->id[i]);
    char weight[16];
    fprintf(t->sink.out, " %4s ", weir_lens_short(weight, WEIR_STAT_PROB, row[most]));
    put_pos(t, m->pos[most]);
    fputc(' ', t->sink.out);
    put_token(t, m->id[most]);
    fputc(' ', t->sink.out);
}

/* --- cells */

static void put_cell(maps *t, float weight)
{
    static const char *const block[2][5] = {{"..", "::", "++", "##", "@@"}, {"··", "░░", "▒▒", "▓▓", "██"}};
    static const float least[] = {0.05f, 0.25f, 0.5f, 0.75f};
    int step = 0;
    while (step < 4 && weight >= least[step])
        step++;
    if (weir_heat_begin(t->sink.out, t->colour, (double)weight)) {
        fputs(t->colour == WEIR_COLOUR_16 ? block[t->utf8][step] : "  ", t->sink.out);
        weir_colour_end(t->sink.out, t->colour);
    } else {
        fputs(block[t->utf8][t->colour == WEIR_COLOUR_NONE ? step : 0], t->sink.out);
    }
}

/* Numbers above the keys [first, end), as often as they have room. */
static void put_heading(maps *t, const weir_attention_map *m, int64_t first, int64_t end)
{
    enum { EVERY = 5 };
    fprintf(t->sink.out, "%5s %-*s %-*s", "pos", TOKEN, "token", LABEL - TOKEN - 7, "reads most");
    for (int64_t k = first; k < end; k += EVERY) {
        char pos[24];
        int room = end - k < EVERY ? 0 : CELL * EVERY;
        snprintf(pos, sizeof pos, "%lld", (long long)m->pos[k]);
        fprintf(t->sink.out, "%-*s", room, m->pos[k] < 0 ? "" : pos);
    }
    fputc('\n', t->sink.out);
}

static void put_page(maps *t, const weir_attention_map *m, int h, int64_t first, int64_t end)
{
    put_heading(t, m, first, end);
    for (int64_t q = 0; q < m->n_queries; q++) {
        const float *row = weir_attention_row(m, h, q);
        if (m->query[q] < first)
            continue;
        put_label(t, m, q, row);
        for (int64_t k = first; k < end && k <= m->query[q]; k++)
            put_cell(t, row[k]);
        fputc('\n', t->sink.out);
    }
}

static weir_status map(weir_attention_sink *sink, const weir_attention_map *m, weir_err *err)
{
    maps *t = (maps *)sink;
    int64_t page = (t->width - LABEL) / CELL;
    page = page > 1 ? page : 1;
    for (int h = 0; h < sink->about->n_heads; h++) {
        fputc('\n', sink->out);
        weir_bold_begin(sink->out, t->colour);
        fprintf(sink->out, "L%dH%d", sink->about->head[h].layer, sink->about->head[h].head);
        weir_colour_end(sink->out, t->colour);
        fprintf(sink->out, "  document %lld\n", (long long)m->doc);
        for (int64_t first = 0; first < m->n; first += page)
            put_page(t, m, h, first, m->n - first < page ? m->n : first + page);
    }
    return t->text.failed ? weir_fail(err, WEIR_E_NOMEM, "out of memory for a token's text") : WEIR_OK;
}

/* --- the head */

static weir_status begin(weir_attention_sink *sink, const weir_attention_about *a, weir_err *err)
{
    maps *t = (maps *)sink;
    fputs("attention  ", sink->out);
    weir_bold_begin(sink->out, t->colour);
    weir_put_safe(t->sink.out, &t->text, a->run.model);
    weir_colour_end(sink->out, t->colour);
    fputs("  ", sink->out);
    weir_put_safe(t->sink.out, &t->text, a->run.source);
    fprintf(sink->out, "\nweights of softmax(scores), rows sum to 1; BOS %s\n", a->run.bos ? "yes" : "no");
    char *changes = a->run.interventions ? weir_changes_words(a->run.interventions) : NULL;
    if (changes) {
        fputs("values changed by ", sink->out);
        weir_put_safe(t->sink.out, &t->text, changes);
        fputc('\n', sink->out);
        free(changes);
    }
    return weir_attention_begin(sink, a, err);
}

static void drop(weir_attention_sink *sink)
{
    if (sink)
        weir_text_free(&((maps *)sink)->text);
    free(sink);
}

weir_attention_sink *weir_attention_text_new(FILE *out, const weir_tokenizer *tok, int width, weir_colour colour)
{
    maps *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->sink = (weir_attention_sink){begin, map, weir_attention_end, drop, out, tok, NULL};
    t->width = width;
    t->colour = colour;
    t->utf8 = weir_utf8_locale();
    return &t->sink;
}

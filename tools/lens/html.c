/* logit-lens as one file that needs no network: page.html (with page.css, the page-*.js and what tools/page has for all
 * pages) and the data: the head, blocks of positions as pieces come, and at the end the tokens that they name.
 * page-data.js is the data's reader, and says what the blocks hold.
 *
 * Size: the page itself (50 KB), and for each cell 6 to 7 characters for each of its k tokens and 5 1/3 for each
 * statistic: 128 positions x 13 rows with 10 tokens and 8 statistics stay below 320 KiB.
 *
 * Memory: two numbers for each token of the vocabulary; nothing grows with the text.
 */
#include <stdlib.h>

#include "head.h"
#include "page/page.h"
#include <lens_page.h>

enum { BLOCK = 64 /* positions that the page reads at a time */ };

typedef struct html {
    weir_lens_sink sink; /* first: what callers hold */
    int n_lines;
    int64_t k;
    const char *const *rest; /* of the page, behind the data */
    weir_page_tokens tokens;
} html;

/* --- the head */

static void put_head(weir_jsonw *w, const void *ctx)
{
    const weir_lens_about *a = ctx;
    weir_jsonw_object(w);
    weir_provenance_put_model(w, &a->run);
    weir_jsonw_key_cstr(w, "source", a->run.source);
    weir_jsonw_key_bool(w, "bos", a->run.bos);
    weir_jsonw_key_cstr(w, "text", a->run.text);
    weir_jsonw_key_int(w, "ctx", a->run.ctx);
    weir_jsonw_key_int(w, "stride", a->run.stride);
    weir_jsonw_key_cstr(w, "norm", a->norm);
    weir_jsonw_key_bool(w, "no_softcap", a->no_softcap);
    weir_jsonw_key_int(w, "masked_from", a->padding_masked && a->padding_from < a->V ? a->padding_from : -1);
    weir_jsonw_key_cstr(w, "lens", a->lens);
    weir_jsonw_key_cstr(w, "interventions", a->run.interventions);
    weir_jsonw_key_cstr(w, "target", a->target);
    weir_jsonw_key(w, "contrast");
    weir_jsonw_array(w);
    for (int i = 0; i < 2 && a->contrast[0]; i++)
        weir_jsonw_cstr(w, a->contrast[i]);
    weir_jsonw_end(w);
    weir_jsonw_key_int(w, "k", a->k);
    weir_jsonw_key_int(w, "vocabulary", a->V);
    weir_lens_put_stats(w, a);
    weir_jsonw_key_cstr(w, "shown", weir_lens_stat_name[a->shown]);
    weir_lens_put_lines(w, "name", a);
    weir_jsonw_end(w);
}

static weir_status begin(weir_lens_sink *sink, const weir_lens_about *a, weir_err *err)
{
    html *h = (html *)sink;
    h->n_lines = a->n_lines;
    h->k = a->k;
    if (!weir_page_tokens_init(&h->tokens, a->V))
        return weir_fail(err, WEIR_E_NOMEM, "out of memory for the page's tokens");
    h->rest = weir_page_lines(sink->out, weir_lens_page);
    return weir_page_head(sink->out, put_head, a) ? WEIR_OK
                                                  : weir_fail(err, WEIR_E_NOMEM, "out of memory for the page's head");
}

/* --- blocks of positions [first, first + n) of a piece */

static void put_tokens_of(html *h, weir_base64 *b, const int32_t *id, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        weir_base64_count(b, weir_page_token(&h->tokens, id[i]));
}

static void put_places(html *h, weir_base64 *b, const weir_lens_piece *p, int64_t first, int64_t n)
{
    for (int64_t i = first; i < first + n; i++)
        weir_base64_count(b, i == first ? p->pos[i] : p->pos[i] - p->pos[i - 1]);
    put_tokens_of(h, b, p->id + first, n);
    put_tokens_of(h, b, p->next + first, n);
    put_tokens_of(h, b, p->target + first, n);
}

static void put_tops(html *h, weir_base64 *b, const weir_lens_piece *p, int64_t first, int64_t n)
{
    for (int l = 0; l < h->n_lines; l++) {
        int64_t at = (l * p->n + first) * h->k;
        for (int64_t i = at; i < at + n * h->k; i++) {
            int64_t token = weir_page_token(&h->tokens, p->top_id[i]);
            weir_base64_count(b, token);
            if (token)
                weir_base64_f32(b, p->top_logprob[i]);
        }
    }
}

static void put_values(const html *h, weir_base64 *b, const weir_lens_piece *p, int64_t first, int64_t n)
{
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        for (int l = 0; p->stat[s] && l < h->n_lines; l++)
            for (int64_t i = first; i < first + n; i++)
                weir_base64_f32(b, p->stat[s][l * p->n + i]);
}

static weir_status piece(weir_lens_sink *sink, const weir_lens_piece *p, weir_err *err)
{
    html *h = (html *)sink;
    (void)err;
    for (int64_t first = 0; first < p->n; first += BLOCK) {
        int64_t n = p->n - first < BLOCK ? p->n - first : BLOCK;
        char attributes[80];
        weir_base64 b;
        snprintf(attributes, sizeof attributes, "class=\"block\" data-doc=\"%lld\" data-n=\"%lld\"", (long long)p->doc,
                 (long long)n);
        weir_page_block(sink->out, &b, attributes);
        put_places(h, &b, p, first, n);
        weir_page_part(&b);
        put_tops(h, &b, p, first, n);
        weir_page_part(&b);
        put_values(h, &b, p, first, n);
        weir_page_block_end(&b);
    }
    return WEIR_OK;
}

static weir_status end(weir_lens_sink *sink, weir_err *err)
{
    html *h = (html *)sink;
    (void)err;
    weir_page_tokens_put(&h->tokens, sink->tok, sink->out);
    weir_page_lines(sink->out, h->rest);
    return WEIR_OK;
}

static void drop(weir_lens_sink *sink)
{
    html *h = (html *)sink;
    if (h)
        weir_page_tokens_free(&h->tokens);
    free(h);
}

weir_lens_sink *weir_lens_html_new(FILE *out, const weir_tokenizer *tok)
{
    html *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->sink = (weir_lens_sink){begin, piece, end, drop, out, tok};
    return &h->sink;
}

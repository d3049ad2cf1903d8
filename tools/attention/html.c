/* Maps as one file that needs no network: page.html (with page.css, the page-*.js and what tools/page has for all
 * pages) and the data: the head, maps as they come, and at the end the tokens that they name. page-data.js is the
 * data's reader.
 *
 * Size: the page itself (36 KB), and 5 1/3 characters for each weight: 12 layers of 12 heads over 64 tokens 1.6 MB.
 * More than 12 million weights (64 MiB) are refused.
 *
 * Memory: two numbers for each token of the vocabulary; nothing grows with the text.
 */
#include <attention_page.h>
#include <stdlib.h>

#include "page/page.h"
#include "view.h"

enum { MOST_WEIGHTS = 12 << 20 };

typedef struct html {
    weir_attention_sink sink; /* first: what callers hold */
    const char *const *rest;  /* of the page, behind the data */
    weir_page_tokens tokens;
    int64_t maps, weights;
} html;

static void put_head(weir_jsonw *w, const void *ctx)
{
    const weir_attention_about *a = ctx;
    weir_jsonw_object(w);
    weir_provenance_put_model(w, &a->run);
    weir_jsonw_key_cstr(w, "source", a->run.source);
    weir_jsonw_key_cstr(w, "text", a->run.text);
    weir_jsonw_key_cstr(w, "interventions", a->run.interventions);
    weir_jsonw_key_bool(w, "bos", a->run.bos);
    weir_jsonw_key_int(w, "ctx", a->run.ctx);
    weir_jsonw_key_int(w, "stride", a->run.stride);
    weir_jsonw_key(w, "heads");
    weir_jsonw_array(w);
    for (int h = 0; h < a->n_heads; h++) {
        weir_jsonw_array(w);
        weir_jsonw_int(w, a->head[h].layer);
        weir_jsonw_int(w, a->head[h].head);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static weir_status begin(weir_attention_sink *sink, const weir_attention_about *a, weir_err *err)
{
    html *h = (html *)sink;
    if (!weir_page_tokens_init(&h->tokens, a->V))
        return weir_fail(err, WEIR_E_NOMEM, "out of memory for the page's tokens");
    h->rest = weir_page_lines(sink->out, weir_attention_page);
    if (!weir_page_head(sink->out, put_head, a))
        return weir_fail(err, WEIR_E_NOMEM, "out of memory for the page's head");
    return weir_attention_begin(sink, a, err);
}

static void put_tokens(html *h, const weir_attention_map *m)
{
    char attributes[96];
    weir_base64 b;
    snprintf(attributes, sizeof attributes, "class=\"map\" data-doc=\"%lld\" data-n=\"%lld\" data-queries=\"%lld\"",
             (long long)m->doc, (long long)m->n, (long long)m->n_queries);
    weir_page_block(h->sink.out, &b, attributes);
    for (int64_t i = 0; i < m->n; i++) {
        weir_base64_count(&b, weir_page_token(&h->tokens, m->id[i]));
        weir_base64_count(&b, 1 + m->pos[i]);
    }
    for (int64_t q = 0; q < m->n_queries; q++)
        weir_base64_count(&b, m->query[q]);
    weir_page_block_end(&b);
}

static void put_pattern(html *h, const weir_attention_map *m, int head)
{
    char id[64];
    weir_base64 b;
    snprintf(id, sizeof id, "id=\"p%lld-%d\"", (long long)h->maps, head);
    weir_page_block(h->sink.out, &b, id);
    for (int64_t q = 0; q < m->n_queries; q++) {
        const float *row = weir_attention_row(m, head, q);
        for (int64_t k = 0; k <= m->query[q]; k++)
            weir_base64_f32(&b, row[k]);
    }
    weir_page_block_end(&b);
}

static weir_status map(weir_attention_sink *sink, const weir_attention_map *m, weir_err *err)
{
    html *h = (html *)sink;
    for (int64_t q = 0; q < m->n_queries; q++)
        h->weights += sink->about->n_heads * (m->query[q] + 1);
    if (h->weights > MOST_WEIGHTS)
        return weir_fail(
            err, WEIR_E_ARG,
            "a page has at most %d weights, and these maps have more: choose --heads, --positions, a smaller "
            "--ctx or a shorter text",
            MOST_WEIGHTS);
    put_tokens(h, m);
    for (int head = 0; head < sink->about->n_heads; head++)
        put_pattern(h, m, head);
    h->maps++;
    return WEIR_OK;
}

static weir_status end(weir_attention_sink *sink, weir_err *err)
{
    html *h = (html *)sink;
    (void)err;
    weir_page_tokens_put(&h->tokens, sink->tok, sink->out);
    weir_page_lines(sink->out, h->rest);
    return WEIR_OK;
}

static void drop(weir_attention_sink *sink)
{
    html *h = (html *)sink;
    if (h)
        weir_page_tokens_free(&h->tokens);
    free(h);
}

weir_attention_sink *weir_attention_html_new(FILE *out, const weir_tokenizer *tok)
{
    html *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->sink = (weir_attention_sink){begin, map, end, drop, out, tok, NULL};
    return &h->sink;
}

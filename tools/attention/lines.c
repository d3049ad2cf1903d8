/* Patterns for programs: TSV, a line for each weight; NDJSON, an object for each window. README.md says what is in
 * them. */
#include <stdlib.h>

#include "lens/token.h"
#include "view.h"

static void put_token(weir_attention_sink *s, weir_text *t, int32_t id)
{
    t->n = 0;
    if (id >= 0)
        weir_lens_token(t, s->tok, id);
    fwrite(t->p ? t->p : "", 1, t->n, s->out);
}

/* --- TSV */

static weir_status tsv_begin(weir_attention_sink *s, const weir_attention_about *a, weir_err *err)
{
    fputs("# ", s->out);
    weir_attention_head_json(s->out, "weir-attention-tsv/1", a);
    fputs("\nlayer\thead\tdoc\tquery\tkey\tweight\tquery_id\tquery_token\tkey_id\tkey_token\n", s->out);
    return weir_attention_begin(s, a, err);
}

static void tsv_row(weir_attention_sink *s, const weir_attention_map *m, int h, int64_t q, weir_text *t)
{
    const weir_attention_head *head = &s->about->head[h];
    const float *row = weir_attention_row(m, h, q);
    const int64_t i = m->query[q];
    char weight[32];
    for (int64_t k = 0; k <= i; k++) {
        fprintf(s->out, "%d\t%d\t%lld\t%lld\t%lld\t", head->layer, head->head, (long long)m->doc, (long long)m->pos[i],
                (long long)m->pos[k]);
        fprintf(s->out, "%s\t%d\t", weir_float_text(weight, row[k]), m->id[i]);
        put_token(s, t, m->id[i]);
        fprintf(s->out, "\t%d\t", m->id[k]);
        put_token(s, t, m->id[k]);
        fputc('\n', s->out);
    }
}

static weir_status tsv_map(weir_attention_sink *s, const weir_attention_map *m, weir_err *err)
{
    weir_text t = {0};
    for (int h = 0; h < s->about->n_heads; h++)
        for (int64_t q = 0; q < m->n_queries; q++)
            tsv_row(s, m, h, q, &t);
    bool failed = t.failed;
    weir_text_free(&t);
    return failed ? weir_fail(err, WEIR_E_NOMEM, "out of memory for a token's text") : WEIR_OK;
}

/* --- NDJSON */

static weir_status ndjson_begin(weir_attention_sink *s, const weir_attention_about *a, weir_err *err)
{
    weir_attention_head_json(s->out, "weir-attention/1", a);
    fputc('\n', s->out);
    return weir_attention_begin(s, a, err);
}

static void ndjson_tokens(const weir_attention_sink *s, weir_jsonw *w, const weir_attention_map *m)
{
    weir_jsonw_key(w, "tokens");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < m->n; i++) {
        weir_str bytes = s->tok && m->id[i] >= 0 ? weir_tokenizer_bytes(s->tok, m->id[i]) : (weir_str){NULL, 0};
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "pos", m->pos[i]);
        weir_jsonw_key_int(w, "id", m->id[i]);
        weir_jsonw_key(w, "text");
        if (bytes.n)
            weir_jsonw_str(w, bytes.p, bytes.n);
        else
            weir_jsonw_null(w);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_key(w, "queries");
    weir_jsonw_array(w);
    for (int64_t q = 0; q < m->n_queries; q++)
        weir_jsonw_int(w, m->query[q]);
    weir_jsonw_end(w);
}

static void ndjson_pattern(weir_jsonw *w, const weir_attention_map *m, int h)
{
    weir_jsonw_array(w);
    for (int64_t q = 0; q < m->n_queries; q++) {
        const float *row = weir_attention_row(m, h, q);
        weir_jsonw_array(w);
        for (int64_t k = 0; k <= m->query[q]; k++)
            weir_jsonw_float(w, row[k]);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static weir_status ndjson_map(weir_attention_sink *s, const weir_attention_map *m, weir_err *err)
{
    weir_jsonw writer, *w = &writer;
    (void)err;
    weir_jsonw_init(w, s->out);
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "doc", m->doc);
    ndjson_tokens(s, w, m);
    weir_jsonw_key(w, "heads");
    weir_jsonw_array(w);
    for (int h = 0; h < s->about->n_heads; h++) {
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "layer", s->about->head[h].layer);
        weir_jsonw_key_int(w, "head", s->about->head[h].head);
        weir_jsonw_key(w, "pattern");
        ndjson_pattern(w, m, h);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
    fputc('\n', s->out);
    return WEIR_OK;
}

/* --- both */

static weir_attention_sink *new (weir_attention_sink like)
{
    weir_attention_sink *s = malloc(sizeof *s);
    if (s)
        *s = like;
    return s;
}

weir_attention_sink *weir_attention_tsv_new(FILE *out, const weir_tokenizer *tok)
{
    return new ((weir_attention_sink){tsv_begin, tsv_map, weir_attention_end, weir_attention_free, out, tok, NULL});
}

weir_attention_sink *weir_attention_ndjson_new(FILE *out, const weir_tokenizer *tok)
{
    return new (
        (weir_attention_sink){ndjson_begin, ndjson_map, weir_attention_end, weir_attention_free, out, tok, NULL});
}

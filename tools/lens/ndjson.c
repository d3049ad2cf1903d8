/* A head, then an object for each position: schema "weir-lens/1". README.md lists the keys. */
#include <stdlib.h>

#include "cli/printable.h"
#include "head.h"

typedef struct ndjson {
    weir_lens_sink sink; /* first: what callers hold */
    const weir_lens_about *a;
    weir_jsonw w;
} ndjson;

/* id, token, hex */
static void put_names(ndjson *o, int32_t id)
{
    weir_str bytes = o->sink.tok ? weir_tokenizer_bytes(o->sink.tok, id) : (weir_str){"", 0};
    weir_jsonw_key_int(&o->w, "id", id);
    weir_jsonw_key(&o->w, "token");
    o->sink.tok ? weir_jsonw_str(&o->w, bytes.n ? bytes.p : "", bytes.n) : weir_jsonw_null(&o->w);
    weir_put_hex(&o->w, bytes.p, bytes.n);
}

static void put_token(ndjson *o, const char *key, int32_t id)
{
    weir_jsonw_key(&o->w, key);
    if (id < 0) {
        weir_jsonw_null(&o->w);
        return;
    }
    weir_jsonw_object(&o->w);
    put_names(o, id);
    weir_jsonw_end(&o->w);
}

static void put_tops(ndjson *o, const weir_lens_piece *p, int64_t at)
{
    weir_jsonw_key(&o->w, "top");
    weir_jsonw_array(&o->w);
    for (int64_t j = at * o->a->k; j < (at + 1) * o->a->k && p->top_id[j] >= 0; j++) {
        weir_jsonw_object(&o->w);
        put_names(o, p->top_id[j]);
        weir_jsonw_key(&o->w, "logprob");
        weir_jsonw_float(&o->w, p->top_logprob[j]);
        weir_jsonw_end(&o->w);
    }
    weir_jsonw_end(&o->w);
}

static void put_cell(ndjson *o, const weir_lens_piece *p, int line, int64_t i)
{
    const int64_t at = line * p->n + i;
    weir_jsonw *w = &o->w;
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "line", o->a->line[line].name);
    for (int s = 0; s < WEIR_STAT_COUNT; s++) {
        weir_jsonw_key(w, weir_lens_stat_name[s]);
        if (!p->stat[s] || (s == WEIR_STAT_RANK && !(p->stat[s][at] > 0)))
            weir_jsonw_null(w);
        else if (s == WEIR_STAT_RANK)
            weir_jsonw_int(w, (int64_t)p->stat[s][at]);
        else
            weir_jsonw_float(w, p->stat[s][at]);
    }
    put_tops(o, p, at);
    weir_jsonw_end(w);
}

static weir_status begin(weir_lens_sink *sink, const weir_lens_about *a, weir_err *err)
{
    ndjson *o = (ndjson *)sink;
    (void)err;
    o->a = a;
    weir_lens_head(sink->out, "weir-lens/1", a);
    return WEIR_OK;
}

static weir_status piece(weir_lens_sink *sink, const weir_lens_piece *p, weir_err *err)
{
    ndjson *o = (ndjson *)sink;
    weir_jsonw *w = &o->w;
    (void)err;
    for (int64_t i = 0; i < p->n; i++) {
        weir_jsonw_init(w, sink->out);
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "doc", p->doc);
        weir_jsonw_key_int(w, "pos", p->pos[i]);
        put_token(o, "input", p->id[i]);
        put_token(o, "next", p->next[i]);
        put_token(o, "target", p->target[i]);
        weir_jsonw_key(w, "lines");
        weir_jsonw_array(w);
        for (int l = 0; l < o->a->n_lines; l++)
            put_cell(o, p, l, i);
        weir_jsonw_end(w);
        weir_jsonw_end(w);
        fputc('\n', sink->out);
    }
    return WEIR_OK;
}

static weir_status end(weir_lens_sink *sink, weir_err *err)
{
    (void)sink, (void)err;
    return WEIR_OK;
}

static void drop(weir_lens_sink *sink)
{
    free(sink);
}

weir_lens_sink *weir_lens_ndjson_new(FILE *out, const weir_tokenizer *tok)
{
    ndjson *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->sink = (weir_lens_sink){begin, piece, end, drop, out, tok};
    return &o->sink;
}

/* A head, then an object for each position: lines (NDJSON), or one object. README.md has the schema. */
#include "cli/printable.h"
#include "view.h"

static void put_head(weir_jsonw *w, const weir_view_parts *v)
{
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "schema", "weir-parts/1");
    weir_jsonw_key_cstr(w, "model", v->model);
    weir_jsonw_key_cstr(w, "fingerprint", v->fingerprint);
    weir_jsonw_key_cstr(w, "tokenizer", v->tokenizer);
    weir_jsonw_key(w, "source");
    weir_jsonw_json(w, v->source);
    weir_jsonw_key(w, "interventions");
    weir_jsonw_json(w, v->interventions ? v->interventions : "[]");
    weir_jsonw_key_cstr(w, "target", v->target);
    weir_jsonw_key_cstr(w, "contrast", v->contrast);
    weir_jsonw_key_cstr(w, "layers", v->layers);
    weir_jsonw_key_cstr(w, "rank_by", v->rank);
}

/* {"id", "token"} or null; false: out of memory. */
static bool put_token(weir_jsonw *w, const char *key, const weir_view_parts *v, int32_t id)
{
    weir_text text = {0};
    weir_jsonw_key(w, key);
    if (id < 0) {
        weir_jsonw_null(w);
        return true;
    }
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "id", id);
    weir_jsonw_key(w, "token");
    if (v->tok) {
        const weir_str bytes = weir_tokenizer_bytes(v->tok, id);
        weir_text_printable(&text, bytes.p, bytes.n);
        weir_jsonw_str(w, text.p ? text.p : "", text.n);
    } else {
        weir_jsonw_null(w);
    }
    weir_jsonw_end(w);
    const bool ok = !text.failed;
    weir_text_free(&text);
    return ok;
}

static void put_value(weir_jsonw *w, const weir_part_value *v)
{
    weir_jsonw_key_double(w, "norm", v->norm);
    weir_jsonw_key_double(w, "cosine", v->cosine);
    weir_jsonw_key_double(w, "share", v->share);
    weir_jsonw_key_double(w, "logit", v->logit);
}

static void put_line(weir_jsonw *w, const weir_part_line *line)
{
    char name[48];
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "part", weir_part_name(&line->part, name));
    weir_jsonw_key_cstr(w, "kind", weir_part_kind_name(line->part.kind));
    if (line->part.layer >= 0)
        weir_jsonw_key_int(w, "layer", line->part.layer);
    if (line->part.unit >= 0)
        weir_jsonw_key_int(w, "unit", line->part.unit);
    put_value(w, &line->value);
    weir_jsonw_end(w);
}

static void put_list(weir_jsonw *w, const char *key, const weir_part_line *line, int64_t n)
{
    weir_jsonw_key(w, key);
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n; i++)
        put_line(w, &line[i]);
    weir_jsonw_end(w);
}

static void put_units(weir_jsonw *w, const char *key, const char *of, const weir_part_lines *l)
{
    if (l->of == 0)
        return;
    weir_jsonw_key_int(w, of, l->of);
    put_list(w, key, l->line, l->n);
}

static void put_sum(weir_jsonw *w, const weir_parts_sum *s)
{
    weir_jsonw_key(w, "sum");
    weir_jsonw_object(w);
    weir_jsonw_key_bool(w, "exact", s->exact);
    weir_jsonw_key_double(w, "norm", s->norm);
    weir_jsonw_key_double(w, "scale", s->scale);
    weir_jsonw_key_double(w, "share", s->share);
    weir_jsonw_key_double(w, "constant", s->constant);
    weir_jsonw_key_double(w, "parts", s->parts);
    weir_jsonw_key_double(w, "logit", s->logit);
    weir_jsonw_key_double(w, "capped", s->capped);
    weir_jsonw_key_double(w, "difference", s->difference);
    weir_jsonw_key_double(w, "tolerance", s->tolerance);
    weir_jsonw_key_bool(w, "holds", s->holds);
    weir_jsonw_end(w);
}

static bool put_position(weir_jsonw *w, const weir_view_parts *v)
{
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "doc", v->doc);
    weir_jsonw_key_int(w, "pos", v->pos);
    const bool ok = put_token(w, "at", v, v->id) && put_token(w, "next", v, v->next) &&
                    put_token(w, "target", v, v->sum->target) && put_token(w, "against", v, v->sum->against);
    put_sum(w, v->sum);
    put_list(w, "edits", v->edit, v->n_edits);
    if (v->n_others) {
        weir_jsonw_key(w, "others");
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "edits", v->n_others);
        put_value(w, &v->others);
        weir_jsonw_end(w);
    }
    put_units(w, "heads", "heads_of", v->heads);
    put_units(w, "neurons", "neurons_of", v->neurons);
    weir_jsonw_end(w);
    return ok;
}

static void begin(FILE *out, const weir_view_parts *v)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    put_head(&w, v);
    if (v->one_object) {
        fputs(",\"positions\":[", out); /* the writer cannot stay open between positions */
        return;
    }
    weir_jsonw_end(&w);
    fputc('\n', out);
}

static bool position(FILE *out, const weir_view_parts *v)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    if (v->one_object && v->number)
        fputc(',', out);
    const bool ok = put_position(&w, v);
    fputc('\n', out);
    return ok;
}

static void end(FILE *out, const weir_view_parts *v)
{
    if (v->one_object)
        fputs("]}\n", out);
}

const weir_sink weir_parts_json = {
    .begins = "{\"schema\":\"weir-parts/1\"", .begin = begin, .position = position, .end = end};

#include <stdlib.h>

#include "view.h"

weir_status weir_attention_begin(weir_attention_sink *s, const weir_attention_about *a, weir_err *err)
{
    (void)err;
    s->about = a;
    return WEIR_OK;
}

weir_status weir_attention_end(weir_attention_sink *s, weir_err *err)
{
    (void)s;
    (void)err;
    return WEIR_OK;
}

void weir_attention_free(weir_attention_sink *s)
{
    free(s);
}

void weir_attention_head_json(FILE *out, const char *schema, const weir_attention_about *a)
{
    weir_jsonw writer, *w = &writer;
    weir_jsonw_init(w, out);
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "schema", schema);
    weir_provenance_put(w, &a->run);
    weir_jsonw_key(w, "heads");
    weir_jsonw_array(w);
    for (int h = 0; h < a->n_heads; h++) {
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "layer", a->head[h].layer);
        weir_jsonw_key_int(w, "head", a->head[h].head);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

#include "head.h"

void weir_lens_put_lines(weir_jsonw *w, const char *name, const weir_lens_about *a)
{
    weir_jsonw_key(w, "lines");
    weir_jsonw_array(w);
    for (int l = 0; l < a->n_lines; l++) {
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, name, a->line[l].name);
        weir_jsonw_key_cstr(w, "hook", a->line[l].hook);
        weir_jsonw_key_cstr(w, "site", a->line[l].site);
        weir_jsonw_key_int(w, "layer", a->line[l].layer);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

void weir_lens_put_stats(weir_jsonw *w, const weir_lens_about *a)
{
    weir_jsonw_key(w, "stats");
    weir_jsonw_array(w);
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        if (a->has & 1u << s)
            weir_jsonw_cstr(w, weir_lens_stat_name[s]);
    weir_jsonw_end(w);
}

static void put_asked(weir_jsonw *w, const weir_lens_about *a)
{
    weir_jsonw_key_cstr(w, "target", a->target);
    weir_jsonw_key(w, "contrast");
    if (a->contrast[0]) {
        weir_jsonw_array(w);
        weir_jsonw_cstr(w, a->contrast[0]);
        weir_jsonw_cstr(w, a->contrast[1]);
        weir_jsonw_end(w);
    } else {
        weir_jsonw_null(w);
    }
    weir_jsonw_key_int(w, "k", a->k);
    weir_jsonw_key_cstr(w, "shown", weir_lens_stat_name[a->shown]);
    weir_lens_put_stats(w, a);
}

void weir_lens_head(FILE *out, const char *schema, const weir_lens_about *a)
{
    weir_jsonw writer, *w = &writer;
    weir_jsonw_init(w, out);
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "schema", schema);
    weir_provenance_put(w, &a->run);
    weir_jsonw_key_cstr(w, "lens", a->lens);
    weir_jsonw_key_cstr(w, "norm", a->norm);
    weir_jsonw_key_bool(w, "softcap_left_out", a->no_softcap);
    weir_jsonw_key_int(w, "vocabulary", a->V);
    weir_jsonw_key_int(w, "padding_from", a->padding_from);
    weir_jsonw_key_bool(w, "padding_masked", a->padding_masked);
    put_asked(w, a);
    weir_lens_put_lines(w, "line", a);
    weir_jsonw_end(w);
    fputc('\n', out);
}

/* What a result is about: its text, and how that was cut and masked. */
#include <stdlib.h>

#include "cli/say.h"
#include "top.h"

static void put_source(const weir_top *r, FILE *f, const char *text_json, const char *bos, int64_t ctx, int64_t stride)
{
    weir_jsonw w;
    weir_jsonw_init(&w, f);
    weir_jsonw_object(&w);
    weir_jsonw_key(&w, "text");
    weir_jsonw_json(&w, text_json);
    weir_jsonw_key_cstr(&w, "bos", bos);
    weir_jsonw_key_int(&w, "ctx", ctx);
    weir_jsonw_key_int(&w, "stride", stride);
    weir_jsonw_key_cstr(&w, "mask", r->a->mask);
    weir_jsonw_key_double(&w, "max_norm_ratio", r->a->max_norm_ratio);
    weir_jsonw_end(&w);
}

int weir_top_describe(weir_top *r, const char *text_json, const char *bos, int64_t ctx, int64_t stride)
{
    size_t size;
    FILE *f = open_memstream(&r->source, &size);
    if (!f)
        return weir_cli_error(r->cli, "out of memory");
    put_source(r, f, text_json, bos, ctx, stride);
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad)
        return weir_cli_error(r->cli, "out of memory");
    r->about.source = r->source;
    return WEIR_EXIT_OK;
}

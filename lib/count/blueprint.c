/* Opens a configuration, whatever holds it, and has its parts read in order. */
#include <string.h>

#include "impl.h"
#include "reading.h"

typedef struct owned {
    weir_blueprint b; /* first: what callers hold is this */
    weir_arena arena;
} owned;

/* --- whose fields these are */

/* Fields of layers that are not attention and MLP: where the family is not known, nothing can be made of them. */
static const char *const FOREIGN[] = {
    "layers_block_type", "hybrid_override_pattern", "block_types",          "encoder_layers", "decoder_layers",
    "state_size",        "ssm_state_size",          "time_step_rank",       "lru_width",      "conv_kernel",
    "mamba_d_state",     "mamba_num_heads",         "linear_num_key_heads", "conv_L_cache",   "embedding_size",
};

static weir_status refuse(const weir_reading *r, const weir_pair *p, weir_err *err)
{
    return weir_pair_fail(&r->o, p, err, WEIR_E_UNSUPPORTED,
                          "model_type \"%.64s\" is not known, and this field says that its layers are not the usual "
                          "ones",
                          r->b->model_type);
}

static weir_status read_as_usual(weir_reading *r, weir_err *err)
{
    for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++) {
        const weir_pair *p = weir_object_value(&r->o, FOREIGN[i]);
        if (p)
            return refuse(r, p, err);
    }
    return weir_remark(r, err,
                       "model_type \"%.64s\" is not known: it is read as Llama's layer (two norms, a gated MLP; biases "
                       "and tied tables only where a field says so)",
                       r->b->model_type);
}

static weir_status check_sides(const weir_reading *r, weir_err *err)
{
    bool two = false;
    WEIR_TRY(weir_field_bool(r, "is_encoder_decoder", &two, err));
    if (!two || r->family->has & WEIR_HAS_TWO_SIDES)
        return WEIR_OK;
    return weir_field_fail(r, "is_encoder_decoder", err, WEIR_E_UNSUPPORTED,
                           "model_type \"%.64s\" is not read as an encoder with a decoder", r->b->model_type);
}

static weir_status find_family(weir_reading *r, weir_err *err)
{
    const weir_pair *p = weir_object_find(&r->o, "model_type");
    if (!p) {
        weir_fail(err, WEIR_E_FORMAT, "no model_type: this is not the configuration of a model");
        return weir_err_where(err, r->o.file, NULL, -1);
    }
    WEIR_TRY(weir_pair_string(&r->o, p, &r->b->model_type, err));
    r->family = weir_family_find(r->b->model_type);
    r->known = r->family != NULL;
    if (!r->known) {
        r->family = weir_family_usual();
        WEIR_TRY(read_as_usual(r, err));
    }
    return check_sides(r, err);
}

/* Models that see as well keep their text model's fields in an object of their own. */
static weir_status enter_text(weir_reading *r, weir_err *err)
{
    const weir_pair *p = weir_object_value(&r->o, "text_config");
    if (!p)
        return WEIR_OK;
    const weir_object whole = r->o;
    WEIR_TRY(weir_object_enter(&r->o, &whole, p, err));
    return weir_remark(r, err, "the text model alone (text_config)");
}

/* --- all of it */

static weir_status check(const weir_reading *r, weir_err *err)
{
    for (int64_t i = 0; i < r->b->n_layers; i++) {
        const weir_attention_shape *a = &r->layer[i].attn;
        if (a->heads && a->heads % a->kv_heads != 0) {
            weir_fail(err, WEIR_E_SHAPE, "%lld query heads cannot share %lld key and value heads", (long long)a->heads,
                      (long long)a->kv_heads);
            weir_err_where(err, r->o.file, NULL, -1);
            return WEIR_E_SHAPE;
        }
    }
    return WEIR_OK;
}

static weir_status read_all(weir_reading *r, weir_str text, const char *file, weir_err *err)
{
    WEIR_TRY(weir_object_read(&r->o, r->arena, text, file, err));
    WEIR_TRY(enter_text(r, err));
    WEIR_TRY(find_family(r, err));
    WEIR_TRY(weir_read_sizes(r, err));
    WEIR_TRY(weir_read_attention(r, err));
    WEIR_TRY(weir_read_mlp(r, err));
    WEIR_TRY(weir_read_layers(r, err));
    if (r->family->special)
        WEIR_TRY(r->family->special(r, err));
    return check(r, err);
}

weir_status weir_blueprint_read(weir_blueprint **out, const char *text, size_t n, const char *name, weir_err *err)
{
    *out = NULL;
    owned *o = weir_calloc(1, sizeof *o);
    if (!o)
        return weir_nomem(err, "the blueprint");
    weir_reading r = {.arena = &o->arena, .b = &o->b};
    r.remark = weir_arena_alloc(&o->arena, WEIR_COUNT_REMARKS, sizeof *r.remark);
    o->b.name = weir_count_name(&o->arena, name);
    o->b.activation = "";
    o->b.remark = r.remark;
    weir_status s = r.remark && o->b.name ? WEIR_OK : weir_nomem(err, "the blueprint");
    if (s == WEIR_OK)
        s = read_all(&r, (weir_str){text, n}, name, err);
    if (s != WEIR_OK) {
        weir_blueprint_free(&o->b);
        return s;
    }
    *out = &o->b;
    return WEIR_OK;
}

void weir_blueprint_free(weir_blueprint *b)
{
    owned *o = (owned *)b;
    if (!o)
        return;
    weir_arena_free(&o->arena);
    weir_free(o);
}

/* --- from files */

static weir_status open_gguf(weir_blueprint **out, const char *path, weir_err *err)
{
    weir_gguf g;
    weir_buf json = {0};
    WEIR_TRY(weir_gguf_open(&g, path, err));
    weir_status s = weir_count_from_gguf(&json, &g, err);
    if (s == WEIR_OK && (s = weir_blueprint_read(out, json.p, json.n, path, err)) != WEIR_OK && err)
        err->offset = -1; /* of a text that nobody sees */
    weir_buf_free(&json);
    weir_gguf_close(&g);
    return s;
}

static weir_status open_json(weir_blueprint **out, const char *path, weir_err *err)
{
    weir_filemap map;
    WEIR_TRY(weir_filemap_open(&map, path, err));
    const weir_status s = weir_blueprint_read(out, (const char *)map.data, map.size, path, err);
    weir_filemap_close(&map);
    return s;
}

static weir_status open_beside(weir_blueprint **out, const char *path, size_t dir, weir_err *err)
{
    char *d = dir ? weir_strndup(path, dir) : weir_strndup(".", 1);
    char *config = d ? weir_path_join(d, "config.json") : NULL;
    const weir_status s = config ? open_json(out, config, err) : weir_nomem(err, "a path");
    weir_free(config);
    weir_free(d);
    return s;
}

weir_status weir_blueprint_open(weir_blueprint **out, const char *path, weir_err *err)
{
    weir_count_source source;
    const char *slash = strrchr(path, '/');
    *out = NULL;
    WEIR_TRY(weir_count_source_of(&source, path, err));
    switch (source) {
    case WEIR_SOURCE_GGUF:
        return open_gguf(out, path, err);
    case WEIR_SOURCE_DIRECTORY:
        return open_beside(out, path, strlen(path), err);
    case WEIR_SOURCE_SAFETENSORS:
        return open_beside(out, path, slash ? (size_t)(slash - path) + 1 : 0, err);
    case WEIR_SOURCE_CONFIG:
        break;
    }
    return open_json(out, path, err);
}

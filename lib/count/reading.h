/* count/reading.h: from the fields of a config.json to a blueprint. Each file does one part:
 *
 *     blueprint.c   opens what is named, keeps the memory, runs the others in order
 *     fields.c      one field under any of its names, checked
 *     families.c    what a model_type implies that no field says
 *     layers.c      a layer of the usual fields; experts; which layer is what
 *     special.c     what only one family has
 *     from_gguf.c   GGUF metadata as the config.json that it was made of
 */
#ifndef WEIR_COUNT_READING_H
#define WEIR_COUNT_READING_H

#include <weir/count.h>

#include "../io/object.h"

enum {
    WEIR_COUNT_LAYERS = 1 << 14, /* at most */
    WEIR_COUNT_REMARKS = 16
};

typedef struct weir_reading weir_reading;

/* What a family has where no field speaks. */
enum {
    WEIR_HAS_TIED = 1 << 0, /* embedding and head are one */
    WEIR_HAS_GATE = 1 << 1,
    WEIR_HAS_QKV_BIAS = 1 << 2,
    WEIR_HAS_O_BIAS = 1 << 3,
    WEIR_HAS_MLP_BIAS = 1 << 4,
    WEIR_HAS_TABLE = 1 << 5, /* learned positions */
    WEIR_HAS_ROPE = 1 << 6,
    WEIR_HAS_PARALLEL = 1 << 7,
    WEIR_HAS_QK_NORM = 1 << 8,       /* of each head */
    WEIR_HAS_WHOLE_QK_NORM = 1 << 9, /* of all heads together */
    WEIR_HAS_HEAD_BIAS = 1 << 10,
    WEIR_HAS_NO_HEAD = 1 << 11,  /* and no causal mask: an encoder */
    WEIR_HAS_FOUR_D = 1 << 12,   /* an MLP of 4d where no field says its width */
    WEIR_HAS_TWO_SIDES = 1 << 13 /* encoder and decoder */
};

typedef struct weir_family {
    const char *model_type;
    unsigned has; /* WEIR_HAS_... */
    weir_norm_sort norm;
    int norms, other_norms;
    const char *attn_bias; /* the field that says whether q, k, v (and o, unless the family's own) have biases */
    const char *mlp_bias;
    weir_status (*special)(weir_reading *r, weir_err *err);
} weir_family;

struct weir_reading {
    weir_object o;
    weir_arena *arena; /* of the blueprint */
    const weir_family *family;
    bool known; /* the family is the file's; else it stands in for an unknown one */
    weir_blueprint *b;
    weir_layer_shape usual;  /* what every layer is, before they differ */
    weir_moe_shape moe;      /* of the layers that have one */
    weir_layer_shape *layer; /* b->layer, while it is written */
    const char **remark;
};

/* NULL: not known. */
const weir_family *weir_family_find(const char *model_type);
/* That which an unknown model_type is read as. */
const weir_family *weir_family_usual(void);

/* --- fields */

/* The value of the first of `keys` (ends with NULL) that is there and not null; NULL: none. An error if two of them say
 * different things. */
WEIR_CHECKED weir_status weir_field(const weir_reading *r, const char *const *keys, const weir_pair **p, weir_err *err);
/* A size: at least `least`, at most 2^40. Absent: *out stays, and *found (may be NULL) is false. */
WEIR_CHECKED weir_status weir_field_size(const weir_reading *r, const char *const *keys, int64_t least, int64_t *out,
                                         bool *found, weir_err *err);
/* One that has to be there. */
WEIR_CHECKED weir_status weir_field_need(const weir_reading *r, const char *const *keys, int64_t *out, weir_err *err);
WEIR_CHECKED weir_status weir_field_bool(const weir_reading *r, const char *key, bool *out, weir_err *err);
WEIR_CHECKED weir_status weir_field_string(const weir_reading *r, const char *const *keys, const char **out,
                                           weir_err *err);
/* A list: calls each(r, ctx, i, reader) for every item, which reads it; *n is their number, -1 if it is absent. */
typedef void (*weir_field_each)(weir_reading *r, void *ctx, int64_t i, weir_json *j);
WEIR_CHECKED weir_status weir_field_list(weir_reading *r, const char *key, weir_field_each each, void *ctx, int64_t *n,
                                         weir_err *err);
/* An error at a field that is there. */
weir_status weir_field_fail(const weir_reading *r, const char *key, weir_err *err, weir_status code, const char *fmt,
                            ...) WEIR_PRINTF(5, 6);

/* One key as a list of names. */
#define WEIR_KEYS(...)                                                                                                 \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }

WEIR_CHECKED weir_status weir_remark(weir_reading *r, weir_err *err, const char *fmt, ...) WEIR_PRINTF(3, 4);

/* --- layers */

/* Sizes of the model, r->usual and r->moe out of the usual fields. */
WEIR_CHECKED weir_status weir_read_sizes(weir_reading *r, weir_err *err);
WEIR_CHECKED weir_status weir_read_attention(weir_reading *r, weir_err *err);
WEIR_CHECKED weir_status weir_read_mlp(weir_reading *r, weir_err *err);
/* Makes r->layer: b->n_layers times the usual one, then windows and experts where they are. */
WEIR_CHECKED weir_status weir_read_layers(weir_reading *r, weir_err *err);
/* Which layers have a window, if no layer_types says so: those with i % period == phase keep none. */
void weir_windows_every(weir_reading *r, int64_t period, int64_t phase);

/* --- what only one family has; each runs when r->layer is made */
weir_status weir_special_opt(weir_reading *r, weir_err *err);
weir_status weir_special_bloom(weir_reading *r, weir_err *err);
weir_status weir_special_falcon(weir_reading *r, weir_err *err);
weir_status weir_special_stablelm(weir_reading *r, weir_err *err);
weir_status weir_special_cohere(weir_reading *r, weir_err *err);
weir_status weir_special_gemma2(weir_reading *r, weir_err *err);
weir_status weir_special_gemma3(weir_reading *r, weir_err *err);
weir_status weir_special_qwen2(weir_reading *r, weir_err *err);
weir_status weir_special_qwen2_moe(weir_reading *r, weir_err *err);
weir_status weir_special_gpt_oss(weir_reading *r, weir_err *err);
weir_status weir_special_llama4(weir_reading *r, weir_err *err);
weir_status weir_special_deepseek_v3(weir_reading *r, weir_err *err);
weir_status weir_special_nemotron_h(weir_reading *r, weir_err *err);
weir_status weir_special_bert(weir_reading *r, weir_err *err);
weir_status weir_special_t5(weir_reading *r, weir_err *err);
weir_status weir_special_mt5(weir_reading *r, weir_err *err);
weir_status weir_special_two_sides(weir_reading *r, weir_err *err);

#endif

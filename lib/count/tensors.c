/* What a tensor is for, by its name. A name is a path: "model.layers.3.self_attn.q_proj.weight"; GGUF writes
 * "blk.3.attn_q.weight". The last part says what kind of numbers these are, the one before which module has them, and
 * earlier ones in which place it stands. */
#include <string.h>

#include <weir/json.h>

#include "tensors.h"

typedef struct path {
    const char *name;
    weir_str module; /* the last part that is not weight, bias, ... */
    weir_str above;  /* the one before it */
    weir_str last;
    int64_t layer; /* -1: none */
} path;

static bool is(weir_str s, const char *z)
{
    return weir_str_eq(s, z);
}

static bool among(weir_str s, const char *const *words)
{
    for (; *words; words++)
        if (weir_str_eq(s, *words))
            return true;
    return false;
}

static bool ends(weir_str s, const char *end)
{
    const size_t n = strlen(end);
    return s.n >= n && !memcmp(s.p + s.n - n, end, n);
}

static bool has(const path *p, const char *text)
{
    return strstr(p->name, text) != NULL;
}

/* The part that ends before `end`, and where the one before it ends. */
static weir_str part_before(const char *name, size_t *end)
{
    size_t at = *end;
    while (at && name[at - 1] != '.')
        at--;
    const weir_str s = {name + at, *end - at};
    *end = at ? at - 1 : 0;
    return s;
}

/* The first part that is a number. */
static int64_t layer_of(const char *name)
{
    for (const char *p = name; *p; p += strcspn(p, "."), p += *p == '.') {
        const size_t n = strspn(p, "0123456789");
        if (n && n < 10 && p[n] == '.') {
            int64_t v = 0;
            for (size_t i = 0; i < n; i++)
                v = 10 * v + (p[i] - '0');
            return v;
        }
    }
    return -1;
}

static path take_apart(const char *name)
{
    static const char *const VALUES[] = {"weight", "bias", "gamma", "beta", NULL};
    size_t end = strlen(name);
    path p = {.name = name, .layer = layer_of(name)};
    p.last = p.module = part_before(name, &end);
    if (among(p.last, VALUES))
        p.module = part_before(name, &end);
    p.above = part_before(name, &end);
    return p;
}

/* --- what is no parameter of the model */

static weir_tensor_use other(weir_ledger_kind kind, const char *what)
{
    return (weir_tensor_use){.kind = kind, .what = what, .packed = 1};
}

static bool is_module(const path *p)
{
    static const char *const APART[] = {"vision_model.", "vision_tower.", "multi_modal_projector.", "visual.",
                                        "audio_tower.",  "embed_vision.", "image_newline",          NULL};
    for (const char *const *a = APART; *a; a++)
        if (has(p, *a))
            return true;
    return false;
}

static bool is_task_head(const path *p)
{
    static const char *const HEAD[] = {"classifier", "score", "qa_outputs", "v_head", NULL};
    return !strncmp(p->name, "cls.", 4) || among(p->module, HEAD) ||
           (!strncmp(p->name, "lm_head.", 8) && (is(p->module, "dense") || is(p->module, "layer_norm")));
}

/* A matrix under a name that a bias would have. */
static bool is_mask(const path *p, const weir_tensor *t)
{
    static const char *const ATTENTION[] = {"attn", "attention", NULL};
    static const char *const BUFFER[] = {"masked_bias", "position_ids", "token_type_ids", NULL};
    return among(p->last, BUFFER) || (is(p->last, "bias") && t->rank > 1 && among(p->module, ATTENTION));
}

static bool is_frequency(const path *p)
{
    return is(p->last, "inv_freq") || is(p->module, "rope_freqs") || has(p, "rope_factors_");
}

static bool is_scale(const path *p)
{
    static const char *const SCALE[] = {"weight_scale_inv",
                                        "weight_scale",
                                        "input_scale",
                                        "output_scale",
                                        "scales",
                                        "qzeros",
                                        "g_idx",
                                        "absmax",
                                        "quant_map",
                                        "nested_absmax",
                                        "nested_quant_map",
                                        "SCB",
                                        "weight_shape",
                                        "weight_g_idx",
                                        "weight_zero_point",
                                        "weight_global_scale",
                                        "k_scale",
                                        "v_scale",
                                        "input_global_scale",
                                        NULL};
    return among(p->last, SCALE) || ends(p->last, "_scales") || ends(p->last, "_scale_inv") || has(p, ".quant_state.");
}

/* Parameters in an element; 1: it is none of those that pack. */
static int64_t packing(const path *p, const weir_tensor *t, const weir_blueprint *b)
{
    const int64_t bits = b->packed_bits ? b->packed_bits : 4;
    const int64_t n = t->bytes ? (int64_t)t->bytes * 8 : 0;
    int64_t elements = 1;
    for (int i = 0; i < t->rank; i++)
        elements *= t->shape[i];
    if (t->dtype != WEIR_OTHER || !elements)
        return 1;
    if (ends(p->last, "_blocks"))
        return 2;
    if (is(p->last, "qweight") || is(p->last, "weight_packed"))
        return n / elements >= bits ? n / elements / bits : 1;
    /* bitsandbytes: a column of bytes, two weights each */
    if (is(p->last, "weight") && t->rank == 2 && t->shape[1] == 1 && n / elements == 8)
        return 2;
    return 1;
}

/* --- parameters */

static weir_tensor_use one(weir_bill_item item)
{
    return (weir_tensor_use){.item = {item}, .share = {1, 0, 0}, .packed = 1};
}

static weir_tensor_use two(weir_bill_item a, int64_t n, weir_bill_item b, int64_t m)
{
    return (weir_tensor_use){.item = {a, b}, .share = {n, m, 0}, .packed = 1};
}

static const weir_layer_shape *shape_of(const path *p, const weir_blueprint *b)
{
    return p->layer >= 0 && p->layer < b->n_layers ? &b->layer[p->layer] : &b->layer[0];
}

typedef enum rule { ONE, FUSED_QKV, FUSED_KV_B, FUSED_GATE, MAYBE_FUSED_UP } rule;

/* Modules that say what they are by their own name. */
static const struct {
    const char *module;
    weir_bill_item item;
    rule rule;
} MODULE[] = {
    {"q_proj", WEIR_BILL_Q, ONE},
    {"query", WEIR_BILL_Q, ONE},
    {"q", WEIR_BILL_Q, ONE},
    {"q_a_proj", WEIR_BILL_Q, ONE},
    {"q_b_proj", WEIR_BILL_Q, ONE},
    {"attn_q", WEIR_BILL_Q, ONE},
    {"attn_q_a", WEIR_BILL_Q, ONE},
    {"attn_q_b", WEIR_BILL_Q, ONE},
    {"k_proj", WEIR_BILL_K, ONE},
    {"key", WEIR_BILL_K, ONE},
    {"k", WEIR_BILL_K, ONE},
    {"attn_k", WEIR_BILL_K, ONE},
    {"attn_k_b", WEIR_BILL_K, ONE},
    {"v_proj", WEIR_BILL_V, ONE},
    {"value", WEIR_BILL_V, ONE},
    {"v", WEIR_BILL_V, ONE},
    {"attn_v", WEIR_BILL_V, ONE},
    {"attn_v_b", WEIR_BILL_V, ONE},
    {"c_attn", WEIR_BILL_Q, FUSED_QKV},
    {"query_key_value", WEIR_BILL_Q, FUSED_QKV},
    {"qkv_proj", WEIR_BILL_Q, FUSED_QKV},
    {"attn_qkv", WEIR_BILL_Q, FUSED_QKV},
    {"Wqkv", WEIR_BILL_Q, FUSED_QKV},
    {"kv_a_proj_with_mqa", WEIR_BILL_KV, ONE},
    {"attn_kv_a_mqa", WEIR_BILL_KV, ONE},
    {"kv_b_proj", WEIR_BILL_K, FUSED_KV_B},
    {"attn_kv_b", WEIR_BILL_K, FUSED_KV_B},
    {"o_proj", WEIR_BILL_O, ONE},
    {"out_proj", WEIR_BILL_O, ONE},
    {"o", WEIR_BILL_O, ONE},
    {"attn_output", WEIR_BILL_O, ONE},
    {"q_norm", WEIR_BILL_ATTN_REST, ONE},
    {"k_norm", WEIR_BILL_ATTN_REST, ONE},
    {"q_layernorm", WEIR_BILL_ATTN_REST, ONE},
    {"k_layernorm", WEIR_BILL_ATTN_REST, ONE},
    {"q_a_layernorm", WEIR_BILL_ATTN_REST, ONE},
    {"kv_a_layernorm", WEIR_BILL_ATTN_REST, ONE},
    {"attn_q_norm", WEIR_BILL_ATTN_REST, ONE},
    {"attn_k_norm", WEIR_BILL_ATTN_REST, ONE},
    {"attn_q_a_norm", WEIR_BILL_ATTN_REST, ONE},
    {"attn_kv_a_norm", WEIR_BILL_ATTN_REST, ONE},
    {"sinks", WEIR_BILL_ATTN_REST, ONE},
    {"attn_sinks", WEIR_BILL_ATTN_REST, ONE},
    {"gate_proj", WEIR_BILL_GATE, ONE},
    {"ffn_gate", WEIR_BILL_GATE, ONE},
    {"wi_0", WEIR_BILL_GATE, ONE},
    {"gate_up_proj", WEIR_BILL_GATE, FUSED_GATE},
    {"up_proj", WEIR_BILL_UP, ONE},
    {"ffn_up", WEIR_BILL_UP, MAYBE_FUSED_UP},
    {"wi_1", WEIR_BILL_UP, ONE},
    {"wi", WEIR_BILL_UP, ONE},
    {"c_fc", WEIR_BILL_UP, ONE},
    {"dense_h_to_4h", WEIR_BILL_UP, ONE},
    {"fc1", WEIR_BILL_UP, ONE},
    {"fc_in", WEIR_BILL_UP, ONE},
    {"down_proj", WEIR_BILL_DOWN, ONE},
    {"ffn_down", WEIR_BILL_DOWN, ONE},
    {"wo", WEIR_BILL_DOWN, ONE},
    {"dense_4h_to_h", WEIR_BILL_DOWN, ONE},
    {"fc2", WEIR_BILL_DOWN, ONE},
    {"fc_out", WEIR_BILL_DOWN, ONE},
    {"wte", WEIR_BILL_EMBED, ONE},
    {"embed_tokens", WEIR_BILL_EMBED, ONE},
    {"embed_in", WEIR_BILL_EMBED, ONE},
    {"word_embeddings", WEIR_BILL_EMBED, ONE},
    {"token_embd", WEIR_BILL_EMBED, ONE},
    {"embeddings", WEIR_BILL_EMBED, ONE},
    {"shared", WEIR_BILL_EMBED, ONE},
    {"wpe", WEIR_BILL_POSITION, ONE},
    {"embed_positions", WEIR_BILL_POSITION, ONE},
    {"position_embeddings", WEIR_BILL_POSITION, ONE},
    {"position_embd", WEIR_BILL_POSITION, ONE},
    {"lm_head", WEIR_BILL_UNEMBED, ONE},
    {"embed_out", WEIR_BILL_UNEMBED, ONE},
    {"output", WEIR_BILL_UNEMBED, ONE},
    {"token_type_embeddings", WEIR_BILL_OTHER, ONE},
    {"token_types", WEIR_BILL_OTHER, ONE},
    {"relative_attention_bias", WEIR_BILL_OTHER, ONE},
    {"project_in", WEIR_BILL_OTHER, ONE},
    {"project_out", WEIR_BILL_OTHER, ONE},
};

static weir_tensor_use by_rule(size_t i, const path *p, const weir_tensor *t, const weir_blueprint *b)
{
    const weir_layer_shape *s = shape_of(p, b);
    const weir_attention_shape *a = &s->attn;
    int64_t plain = 0;
    switch (MODULE[i].rule) {
    case FUSED_QKV:
        return (weir_tensor_use){.item = {WEIR_BILL_Q, WEIR_BILL_K, WEIR_BILL_V},
                                 .share = {a->heads * a->qk, a->kv_heads * a->qk, a->kv_heads * a->v},
                                 .packed = 1};
    case FUSED_KV_B:
        return two(WEIR_BILL_K, a->qk - a->rope, WEIR_BILL_V, a->v);
    case FUSED_GATE:
        return two(WEIR_BILL_GATE, 1, WEIR_BILL_UP, 1);
    case MAYBE_FUSED_UP: /* one matrix of twice the width, or of the width */
        plain = t->rank == 2 ? t->shape[0] : 0;
        if (s->mlp.gated && plain == 2 * s->mlp.width)
            return two(WEIR_BILL_GATE, 1, WEIR_BILL_UP, 1);
        return one(WEIR_BILL_UP);
    case ONE:
        break;
    }
    return one(MODULE[i].item);
}

/* Names that mean something only in their place: Conv1D's c_proj, BERT's dense. */
static bool by_place(weir_tensor_use *use, const path *p)
{
    static const char *const ATTENTION[] = {"attn", "attention", "self_attention", "self_attn", NULL};
    if (is(p->module, "c_proj") || is(p->module, "dense")) {
        if (is(p->above, "pooler"))
            *use = one(WEIR_BILL_OTHER);
        else if (among(p->above, ATTENTION) || has(p, ".attention.output."))
            *use = one(WEIR_BILL_O);
        else if (is(p->above, "intermediate"))
            *use = one(WEIR_BILL_UP);
        else if (is(p->above, "mlp") || is(p->above, "output"))
            *use = one(WEIR_BILL_DOWN);
        else
            return false;
        return true;
    }
    return false;
}

static bool by_experts(weir_tensor_use *use, const path *p)
{
    static const char *const ROUTER[] = {"router", "ffn_gate_inp", "e_score_correction_bias", "exp_probs_b", NULL};
    if (has(p, "shared_expert") || has(p, "_shexp"))
        *use = one(WEIR_BILL_SHARED);
    else if (among(p->module, ROUTER) || is(p->module, "gate"))
        *use = one(WEIR_BILL_ROUTER);
    else if (has(p, ".experts.") || has(p, "_exps."))
        *use = one(WEIR_BILL_EXPERTS);
    else
        return false;
    return true;
}

static bool is_mixer(const path *p)
{
    static const char *const IN[] = {"in_proj", "out_proj", "conv1d", "norm", NULL};
    static const char *const OWN[] = {"dt_bias", "A_log", "D", NULL};
    return !strncmp(p->module.p, "ssm_", 4) ||
           (has(p, ".mixer.") && (among(p->last, OWN) || (is(p->above, "mixer") && among(p->module, IN))));
}

static bool is_norm(const path *p)
{
    char lower[64];
    const size_t n = p->module.n < sizeof lower - 1 ? p->module.n : sizeof lower - 1;
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(p->module.p[i] >= 'A' && p->module.p[i] <= 'Z' ? p->module.p[i] + 32 : p->module.p[i]);
    lower[n] = '\0';
    return strstr(lower, "norm") || !strncmp(lower, "ln_", 3) || !strcmp(lower, "ln");
}

static weir_tensor_use parameters(const path *p, const weir_tensor *t, const weir_blueprint *b)
{
    weir_tensor_use use;
    if (is_mixer(p))
        return one(WEIR_BILL_MIXER);
    if (by_experts(&use, p) || by_place(&use, p))
        return use;
    for (size_t i = 0; i < sizeof MODULE / sizeof *MODULE; i++)
        if (is(p->module, MODULE[i].module))
            return by_rule(i, p, t, b);
    if (is_norm(p))
        return one(WEIR_BILL_NORM);
    return other(WEIR_LEDGER_UNKNOWN, "tensors whose names weir does not know");
}

/* "gate_up_proj_blocks", "down_proj_bias": the value is part of the module's name. */
static void cut_packed_name(path *p)
{
    static const char *const END[] = {"_blocks", "_bias", NULL};
    static const char *const PACKED[] = {"qweight", "weight_packed", NULL};
    if (among(p->last, PACKED)) {
        p->module = p->above;
        size_t end = (size_t)(p->above.p - p->name);
        end -= end > 0;
        p->above = part_before(p->name, &end);
        return;
    }
    for (const char *const *e = END; *e; e++)
        if (ends(p->module, *e) && has(p, ".experts."))
            p->module.n -= strlen(*e);
}

weir_tensor_use weir_tensor_use_of(const weir_tensor *t, const weir_blueprint *b)
{
    path p = take_apart(t->name);
    if (is_module(&p))
        return other(WEIR_LEDGER_MODULE, "another module (vision, audio)");
    if (is_mask(&p, t))
        return other(WEIR_LEDGER_MASK, "causal masks and positions: buffers");
    if (is_frequency(&p))
        return other(WEIR_LEDGER_FREQUENCY, "RoPE's frequencies: buffers");
    if (is_scale(&p))
        return other(WEIR_LEDGER_SCALES, "scales and tables of the quantisation");
    if (is_task_head(&p))
        return other(WEIR_LEDGER_MODULE, "a head for another task");
    const int64_t packed = packing(&p, t, b);
    cut_packed_name(&p);
    weir_tensor_use use = parameters(&p, t, b);
    const bool table = use.share[0] && (use.item[0] == WEIR_BILL_EMBED || use.item[0] == WEIR_BILL_UNEMBED);
    if (p.layer >= b->n_layers) /* behind the last: for further tokens, with the model's tables once more */
        return table || is(p.module, "head")
                   ? other(WEIR_LEDGER_COPY, "copies of a table that is there already")
                   : other(WEIR_LEDGER_AHEAD, "layers behind the last, which predict further tokens");
    if (use.share[0] && use.item[0] == WEIR_BILL_UNEMBED && b->head == WEIR_HEAD_TIED && !is(p.last, "bias"))
        return other(WEIR_LEDGER_COPY, "copies of a table that is there already");
    if (packed > 1 && use.share[0]) {
        use.kind = WEIR_LEDGER_PACKED;
        use.packed = packed;
    }
    return use;
}

/* config.json from the numbers of an open model, by the family's key table turned round. */
#include "export_impl.h"

#include <math.h>
#include <stdio.h>

/* The share of the head that RoPE turns, so that the class comes to the same whole number of dimensions. */
static double rope_part(const weir_spec *s)
{
    double part = (double)s->rot / (double)s->D;
    while ((int64_t)((double)s->D * part) < s->rot)
        part = nextafter(part, 2);
    return part;
}

static bool has_window(const weir_model *m)
{
    for (int64_t l = 0; l < m->spec.L; l++)
        if (m->window[l] > 0)
            return true;
    return false;
}

static double value_of(const weir_export *x, weir_cfg c)
{
    const weir_spec *s = &x->m->spec;
    switch (c) {
    case WEIR_CFG_F:
        return (double)s->F;
    case WEIR_CFG_K:
        return (double)s->K;
    case WEIR_CFG_D:
        return (double)s->D;
    case WEIR_CFG_V:
        return (double)s->V;
    case WEIR_CFG_WINDOW: /* Qwen's files may name one that no layer has */
        return has_window(x->m) ? x->m->cfg.v[c] : 0;
    case WEIR_CFG_TIE:
        return x->m->tied;
    case WEIR_CFG_ATTN_BIAS:
        return x->attn_bias;
    case WEIR_CFG_MLP_BIAS:
        return x->mlp_bias;
    case WEIR_CFG_ROPE_PART:
        return rope_part(s);
    case WEIR_CFG_QUERY_SCALAR:
        return weir_config_query_scalar(&x->m->cfg, s, true);
    default:
        return x->m->cfg.v[c];
    }
}

/* The row of a number for a class: its own, else the family's. */
static const weir_key *key_of(const weir_type *type, const weir_key *family)
{
    for (const weir_key *k = type->key; k && k->cfg != WEIR_CFG_END; k++)
        if (k->cfg == family->cfg)
            return k;
    return family;
}

/* What the number is follows from others: the share of the head says what RoPE turns, and it is 1 in most families. */
static bool is_implied(const weir_export *x, weir_cfg c)
{
    return c == WEIR_CFG_ROPE_DIM || (c == WEIR_CFG_ROPE_PART && !x->m->cfg.arch->partial_rope);
}

/* A number that a class has no key for, and that is not what it takes then; WEIR_CFG_END: none. */
static weir_cfg unsaid(const weir_export *x, const weir_type *type)
{
    for (const weir_key *k = x->m->cfg.arch->key; k->cfg != WEIR_CFG_END; k++) {
        const weir_key *own = key_of(type, k);
        if (!own->hf[0] && !is_implied(x, k->cfg) && value_of(x, k->cfg) != own->absent)
            return k->cfg;
    }
    return WEIR_CFG_END;
}

weir_status weir_export_find_class(weir_export *x, weir_err *err)
{
    const weir_type *first = x->m->cfg.arch->type;
    for (const weir_type *t = first; t->model_type; t++)
        if (unsaid(x, t) == WEIR_CFG_END) {
            x->type = t;
            return WEIR_OK;
        }
    return weir_fail(err, WEIR_E_UNSUPPORTED,
                     "no Hugging Face class of the family has this file's %s: it cannot be written as one (%s)",
                     weir_cfg_info_of(unsaid(x, first))->what, first->class);
}

/* --- writing */

/* GGUF's reals are fp32 as a rule: the shortest digits that give it back are what was meant. Classes of transformers 5
 * take no whole number for a real one: 3 is written as 3.0. */
static void write_real(weir_jsonw *w, double v)
{
    if (v == floor(v))
        weir_jsonw_real(w, v);
    else if ((double)(float)v == v)
        weir_jsonw_float(w, (float)v);
    else
        weir_jsonw_double(w, v);
}

static void write_number(weir_jsonw *w, const char *key, weir_cfg c, double v)
{
    const weir_cfg_info *info = weir_cfg_info_of(c);
    weir_jsonw_key(w, key);
    if (info->nullable && v == 0) {
        weir_jsonw_null(w);
        return;
    }
    switch (info->kind) {
    case WEIR_CFG_INT:
        weir_jsonw_int(w, (int64_t)v);
        return;
    case WEIR_CFG_REAL:
        if (c == WEIR_CFG_QUERY_SCALAR && v == floor(v)) /* the one that a class takes as a whole number only */
            weir_jsonw_int(w, (int64_t)v);
        else
            write_real(w, v);
        return;
    case WEIR_CFG_BOOL:
        weir_jsonw_bool(w, v > 0);
        return;
    case WEIR_CFG_ACTIVATION:
        weir_jsonw_cstr(w, weir_act_name((weir_act)v));
    }
}

static void write_windows(const weir_export *x, weir_jsonw *w)
{
    weir_jsonw_key(w, "layer_types");
    weir_jsonw_array(w);
    for (int64_t l = 0; l < x->m->spec.L; l++)
        weir_jsonw_cstr(w, x->m->window[l] > 0 ? "sliding_attention" : "full_attention");
    weir_jsonw_end(w);
}

static void write_rope(const weir_rope *r, weir_jsonw *w)
{
    weir_jsonw_key(w, "rope_scaling");
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "rope_type", r->kind == WEIR_ROPE_LINEAR ? "linear" : "llama3");
    weir_jsonw_key(w, "factor");
    write_real(w, r->factor);
    if (r->kind == WEIR_ROPE_LLAMA3) {
        weir_jsonw_key(w, "low_freq_factor");
        write_real(w, r->low);
        weir_jsonw_key(w, "high_freq_factor");
        write_real(w, r->high);
        weir_jsonw_key_int(w, "original_max_position_embeddings", (int64_t)r->original);
    }
    weir_jsonw_end(w);
}

void weir_export_config(const weir_export *x, weir_jsonw *w)
{
    const weir_arch *a = x->m->cfg.arch;
    weir_jsonw_key(w, "architectures");
    weir_jsonw_array(w);
    weir_jsonw_cstr(w, x->type->class);
    weir_jsonw_end(w);
    weir_jsonw_key_cstr(w, "model_type", x->type->model_type);
    weir_jsonw_key_cstr(w, "dtype", "float32");
    for (const weir_key *k = a->key; k->cfg != WEIR_CFG_END; k++) {
        const weir_key *own = key_of(x->type, k);
        /* An activation goes by several names, and the class knows best by which it means its own. */
        const bool usual = k->cfg == WEIR_CFG_ACT && value_of(x, k->cfg) == own->absent;
        if (own->hf[0] && !is_implied(x, k->cfg) && !usual)
            write_number(w, own->hf[0], k->cfg, value_of(x, k->cfg));
    }
    if (a->layer_types)
        write_windows(x, w);
    if (x->rope.kind != WEIR_ROPE_PLAIN)
        write_rope(&x->rope, w);
}

/* model/arch.h: a model family as data. README.md beside this file tells how to describe one.
 *
 * A family is one file arch_NAME.c with one const object weir_arch_NAME: how its checkpoints are recognised, where each
 * number stands in config.json and in GGUF metadata and what it is when absent, what a block looks like, and what the
 * tensors are called in each file format. The rest of this directory interprets these tables; nothing there knows a
 * family's name.
 */
#ifndef WEIR_ARCH_H
#define WEIR_ARCH_H

#include "spec.h"

/* --- numbers of the configuration. All are kept as doubles (integers are exact up to 2^53). */
typedef enum weir_cfg {
    WEIR_CFG_END = 0,
    WEIR_CFG_L,
    WEIR_CFG_C,
    WEIR_CFG_F, /* 0: 4 C */
    WEIR_CFG_H,
    WEIR_CFG_K, /* 0: H */
    WEIR_CFG_D, /* 0: C / H */
    WEIR_CFG_V, /* 0: the rows of the token table */
    WEIR_CFG_CTX,
    WEIR_CFG_EPS,
    WEIR_CFG_ACT, /* a weir_act */
    WEIR_CFG_TIE, /* the head is the token table */
    WEIR_CFG_ATTN_BIAS,
    WEIR_CFG_MLP_BIAS,
    WEIR_CFG_PARALLEL,
    WEIR_CFG_WINDOW, /* 0: none */
    WEIR_CFG_ROPE_THETA,
    WEIR_CFG_ROPE_PART,    /* share of the head that is turned */
    WEIR_CFG_ROPE_DIM,     /* or its size; 0: from the share */
    WEIR_CFG_SCORE_CAP,    /* 0: none */
    WEIR_CFG_LOGIT_CAP,    /* 0: none */
    WEIR_CFG_QUERY_SCALAR, /* scores are divided by its root; 0: D */
    WEIR_CFG_WINDOWED,     /* WEIR_WINDOWS_FROM: there are windows */
    WEIR_CFG_WINDOW_FROM,  /* and from this layer on */
    WEIR_CFG_COUNT
} weir_cfg;

/* Where one number stands. A list of these ends with WEIR_CFG_END; a number that no row names is 0. */
typedef struct weir_key {
    weir_cfg cfg;
    const char *hf[2];  /* keys of config.json: the first that is present */
    double absent;      /* what it is when no key is present: the default of the Hugging Face class */
    const char *gguf;   /* key behind "ARCH.", or NULL: `absent` holds */
    bool gguf_required; /* GGUF has no class defaults: refuse a file without it */
} weir_key;

/* A value of model_type in config.json, and the keys in which its class differs from the family's list. */
typedef struct weir_type {
    const char *model_type;
    const char *class;   /* "LlamaForCausalLM" */
    const weir_key *key; /* or NULL; looked at before the family's */
} weir_type;

/* A key of config.json that must have one value, because weir does only that. Absent and null are fine. */
typedef struct weir_only {
    const char *key;
    const char *value; /* as JSON text: "false", "1"; NULL: the key must be absent or null */
} weir_only;

/* --- tensors */
typedef enum weir_role {
    WEIR_ROLE_END = 0,
    WEIR_ROLE_EMBED,
    WEIR_ROLE_POS,
    WEIR_ROLE_HEAD,
    WEIR_ROLE_LNF_W,
    WEIR_ROLE_LNF_B,
    WEIR_ROLE_ROPE_FREQS, /* divisors of the inverse frequencies */
    WEIR_ROLE_LN1_W,      /* from here on: one for each layer */
    WEIR_ROLE_LN1_B,
    WEIR_ROLE_LN1_POST_W,
    WEIR_ROLE_LN2_W,
    WEIR_ROLE_LN2_B,
    WEIR_ROLE_LN2_POST_W,
    WEIR_ROLE_QKV_W,
    WEIR_ROLE_QKV_B,
    WEIR_ROLE_Q_W,
    WEIR_ROLE_Q_B,
    WEIR_ROLE_K_W,
    WEIR_ROLE_K_B,
    WEIR_ROLE_V_W,
    WEIR_ROLE_V_B,
    WEIR_ROLE_O_W,
    WEIR_ROLE_O_B,
    WEIR_ROLE_PRE_W, /* the gate, or the only matrix into the hidden layer */
    WEIR_ROLE_PRE_B,
    WEIR_ROLE_UP_W,
    WEIR_ROLE_UP_B,
    WEIR_ROLE_DOWN_W,
    WEIR_ROLE_DOWN_B,
    WEIR_ROLE_Q_NORM_W,
    WEIR_ROLE_K_NORM_W,
    WEIR_ROLE_COUNT
} weir_role;

typedef enum weir_when {
    WEIR_ALWAYS = 0,
    WEIR_IF_ATTN_BIAS, /* when the configuration's flag is set, and only then */
    WEIR_IF_MLP_BIAS,
    WEIR_IF_STORED, /* optional: in every layer or in none */
} weir_when;

/* "layers.#.mlp.up_proj.weight": # is the layer. Shapes follow from the role (lib/model/roles.c). */
typedef struct weir_name {
    const char *pattern;
    weir_role role;
    weir_when when;
} weir_name;

/* How the rows of q, k and v lie in a fused tensor. */
typedef enum weir_qkv {
    WEIR_QKV_SEPARATE = 0,
    WEIR_QKV_BLOCKS,  /* [q; k; v] */
    WEIR_QKV_PER_HEAD /* q, k, v of head 0, then of head 1, ... */
} weir_qkv;

/* The tensors of one file format. */
typedef struct weir_layout {
    const char *prefix;        /* stands before the names, or not (a bare base model was saved); NULL: none */
    const weir_name *name;     /* ends with WEIR_ROLE_END */
    const char *const *ignore; /* patterns of buffers that are no weights; ends with NULL; or NULL */
    weir_qkv qkv;
    bool k_major;      /* a block's matrices are stored [in, out] (Conv1D) */
    bool permuted_qk;  /* within each head, stored row 2i+h is row h*(D/2)+i of q and k (biases too) */
    float norm_offset; /* gain = norm_offset + stored weight */
} weir_layout;

/* --- the block */
typedef enum weir_windows {
    WEIR_WINDOWS_ALL = 0, /* WEIR_CFG_WINDOW in every layer */
    WEIR_WINDOWS_EVEN,    /* in layers 0, 2, 4, ... unless the file lists the layers' types */
    WEIR_WINDOWS_FROM     /* if WEIR_CFG_WINDOWED, from layer WEIR_CFG_WINDOW_FROM on, unless the file lists them */
} weir_windows;

typedef struct weir_arch {
    const char *family;
    const weir_type *type;   /* ends with NULL */
    const char *const *gguf; /* values of general.architecture; ends with NULL */
    const weir_key *key;
    const weir_only *only; /* ends with NULL; or NULL */
    bool rms;
    bool post_norms;
    bool qk_norms; /* each head of q and k has a norm of its own, before RoPE */
    weir_positions positions;
    bool partial_rope; /* WEIR_CFG_ROPE_PART below 1 is served; otherwise refused */
    bool gated;
    weir_act gguf_act; /* GGUF does not store the activation */
    weir_windows windows;
    bool layer_types;         /* config.json's layer_types says which layers have the window */
    bool scaled_embedding;    /* embeddings are multiplied by sqrt(C) */
    int64_t gguf_wide_layers; /* GGUF lacks the query scalar: with this many layers it is C/H, else D */
    weir_layout hf_tensors, gguf_tensors;
} weir_arch;

/* Generated by the Makefile from the files arch_*.c. */
extern const weir_arch *const weir_arch_table[];
extern const int weir_n_archs;

#endif

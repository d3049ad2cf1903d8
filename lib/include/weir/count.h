/* weir/count.h: a model weighed without its weights: what a config.json says of the architecture (a blueprint), what
 * that costs in parameters, multiplications and cache (a bill), and what a checkpoint really holds (a ledger).
 *
 *     weir_blueprint *b;
 *     weir_bill *bill;
 *     weir_blueprint_open(&b, "config.json", &err);    // or a model's directory, or a GGUF file: no weight is read
 *     weir_bill_make(&bill, b, &err);
 *     printf("%lld parameters\n", (long long)bill->total.params);
 *     weir_bill_free(bill);
 *     weir_blueprint_free(b);
 *
 * Far more architectures can be weighed than run (model.h): decoders, encoders, both; multi-query, grouped and latent
 * attention, windows; plain and gated MLPs; mixtures of experts; Mamba-2 mixers. A model_type that is not known is read
 * as Llama's layer if its fields are the usual ones, and `remark` says so; one that cannot be read is refused by name.
 * Every count is an exact 64-bit integer: a configuration whose counts do not fit is an error.
 */
#ifndef WEIR_COUNT_H
#define WEIR_COUNT_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- the blueprint: an architecture as data. Sizes are numbers of elements; 0 means that there is none. */

typedef enum weir_norm_sort {
    WEIR_NORM_RMS,     /* a gain */
    WEIR_NORM_LAYER,   /* a gain and a bias */
    WEIR_NORM_NO_BIAS, /* a LayerNorm with its gain alone */
    WEIR_NORM_BARE     /* neither */
} weir_norm_sort;

/* Attention of one layer. Query and key have `qk` elements a head, values `v`: not always hidden size / heads. */
typedef struct weir_attention_shape {
    int64_t heads, kv_heads; /* heads 0: the layer has no attention */
    int64_t qk, v;
    /* Multi-head latent attention: kv_rank > 0. Keys and values come from kv_rank shared numbers a token, and `rope` of
     * the qk elements from a key that all heads share: these kv_rank + rope numbers are what is cached. */
    int64_t q_rank, kv_rank, rope; /* q_rank 0: queries are not factored */
    int64_t window;                /* a query sees at most this many keys; 0: all before it */
    bool chunked;                  /* the window is a chunk: it begins at a multiple of its size */
    bool rotates;                  /* RoPE */
    bool q_bias, k_bias, v_bias, o_bias;
    int64_t q_norm, k_norm; /* parameters of the norms of queries and keys */
    int64_t sinks;          /* learned scores beside the keys: one a head */
} weir_attention_shape;

/* The MLP of one layer, dense. */
typedef struct weir_mlp_shape {
    int64_t width; /* 0: none */
    bool gated, in_bias, out_bias;
} weir_mlp_shape;

/* A mixture of experts in the MLP's place. */
typedef struct weir_moe_shape {
    int64_t experts, top_k, width; /* experts 0: none; width of each */
    int64_t shared;                /* width of what every token passes: all shared experts together */
    bool gated, bias;              /* of each expert */
    bool router_bias;
    bool select_bias; /* a number an expert that only takes part in the choice */
    bool shared_gate; /* a weight vector that scales the shared expert */
} weir_moe_shape;

/* A Mamba-2 mixer in attention's place. Its state does not grow with the context. */
typedef struct weir_mixer_shape {
    int64_t heads, head_size; /* heads 0: none */
    int64_t state, groups, kernel;
    bool conv_bias, bias; /* of the convolution; of both projections */
} weir_mixer_shape;

typedef enum weir_side { WEIR_DECODER, WEIR_ENCODER } weir_side;

typedef struct weir_layer_shape {
    weir_side side;
    weir_attention_shape attn;
    bool cross; /* a second attention of the same shape reads the encoder's output */
    weir_mlp_shape mlp;
    weir_moe_shape moe;
    weir_mixer_shape mixer;
    int norms; /* over the stream, each `width` wide */
} weir_layer_shape;

typedef enum weir_head_sort {
    WEIR_HEAD_OWN,  /* an unembedding of its own */
    WEIR_HEAD_TIED, /* the embedding table, transposed */
    WEIR_HEAD_NONE  /* the model ends with its last layer */
} weir_head_sort;

typedef struct weir_blueprint {
    const char *name;       /* of the file, its directory, or its name in GGUF metadata */
    const char *model_type; /* as the file says it */
    const char *activation; /* likewise; "": not said */
    int64_t width;          /* d: of the residual stream */
    int64_t vocab;
    int64_t embed;     /* width of the embedding table: `width`, or less with projections in and out */
    int64_t positions; /* rows of a learned position table */
    int64_t context;   /* longest context that the file names; 0: none */
    int64_t types;     /* rows of a token type table */
    int64_t buckets;   /* of learned relative position biases: one table, heads wide, for each side */
    int64_t sides;     /* 1; 2: encoder and decoder */
    bool pooler;       /* a d x d layer with bias behind an encoder */
    weir_norm_sort norm;
    int other_norms; /* norms outside layers: final ones, that of the embedding */
    weir_head_sort head;
    bool head_bias;
    bool parallel;       /* attention and MLP of a layer read the same stream */
    bool causal;         /* a decoder alone: tokens come one after the other, with a cache */
    bool rope;           /* some layer rotates */
    int64_t packed_bits; /* of a weight, where the file speaks of quantisation; 0: it does not */
    int64_t n_layers;
    const weir_layer_shape *layer; /* [n_layers]; of two sides the encoder's come first */
    const char *const *remark;     /* what was assumed, one line each */
    int n_remarks;
} weir_blueprint;

/* path: a config.json (any file of JSON), a directory that has one, a .safetensors file beside one, or a GGUF file.
 * Errors: WEIR_E_FORMAT (what is wrong with which field, at which byte), WEIR_E_UNSUPPORTED (an architecture that
 * cannot be read from such fields, by name), WEIR_E_IO, WEIR_E_NOMEM. */
WEIR_API WEIR_CHECKED weir_status weir_blueprint_open(weir_blueprint **out, const char *path, weir_err *err);
/* The same of a text. name: for `name` and for errors. */
WEIR_API WEIR_CHECKED weir_status weir_blueprint_read(weir_blueprint **out, const char *text, size_t n,
                                                      const char *name, weir_err *err);
WEIR_API void weir_blueprint_free(weir_blueprint *b);

/* --- the bill */

/* What parameters are for. Biases belong to their matrix. */
typedef enum weir_bill_item {
    WEIR_BILL_EMBED,
    WEIR_BILL_POSITION, /* a learned table */
    WEIR_BILL_Q,
    WEIR_BILL_K,
    WEIR_BILL_V,
    WEIR_BILL_KV, /* latent attention: the projection that keys and values share */
    WEIR_BILL_O,
    WEIR_BILL_ATTN_REST, /* norms of queries, keys and latents; sinks */
    WEIR_BILL_GATE,      /* these three: of dense MLPs */
    WEIR_BILL_UP,
    WEIR_BILL_DOWN,
    WEIR_BILL_ROUTER,
    WEIR_BILL_SHARED,  /* experts for every token */
    WEIR_BILL_EXPERTS, /* routed ones */
    WEIR_BILL_MIXER,
    WEIR_BILL_NORM,
    WEIR_BILL_UNEMBED, /* with a tied head: nothing; the table stands under WEIR_BILL_EMBED */
    WEIR_BILL_OTHER,   /* token types, pooler, relative positions, projections of the embedding */
    WEIR_BILL_ITEMS
} weir_bill_item;

/* "embedding", "attn_q", "mlp_gate", "experts", ...: the same words in text, TSV and JSON. */
WEIR_API const char *weir_bill_item_name(weir_bill_item item);
WEIR_API bool weir_bill_is_attn(weir_bill_item item); /* WEIR_BILL_Q to WEIR_BILL_ATTN_REST */
WEIR_API bool weir_bill_is_mlp(weir_bill_item item);  /* WEIR_BILL_GATE to WEIR_BILL_EXPERTS */

typedef struct weir_cost {
    int64_t params; /* weights tied to others count once; buffers do not count */
    int64_t active; /* without the experts that a token does not use */
    int64_t read;   /* active, without the untied input table and the position table, of which a token reads a row */
    int64_t matmul; /* elements of weight matrices that a token is multiplied with: 2 FLOPs each */
} weir_cost;

typedef struct weir_layer_bill {
    weir_cost item[WEIR_BILL_ITEMS];
    weir_cost attn, mlp, total; /* sums of items */
    int64_t kv;                 /* elements cached a token; 0 for layers without attention */
    int64_t state;              /* elements that a mixer keeps, whatever the context */
    int64_t attn_flops;         /* a token's, for each token of its context: 2 heads (qk + v); windows ignored */
} weir_layer_bill;

typedef struct weir_bill {
    weir_cost item[WEIR_BILL_ITEMS];
    weir_cost attn, mlp, total;
    int64_t n_layers, layers_attn, layers_mlp, layers_moe;
    weir_layer_bill *layer; /* [n_layers] */
    bool has_cache;         /* a decoder alone; else the next three are 0 */
    int64_t kv;             /* as in a layer; bytes: 2 an element at 16 bits */
    int64_t state;
    int64_t attn_flops;
} weir_bill;

WEIR_API WEIR_CHECKED weir_status weir_bill_make(weir_bill **out, const weir_blueprint *b, weir_err *err);
WEIR_API void weir_bill_free(weir_bill *bill);

/* Parameters of LoRA adapters of this rank: r (in + out) for each matrix that `targets` names. targets: a list of q, k,
 * v, o, gate, up, down, joined by commas, or "all". A matrix of every routed expert counts for itself. Errors:
 * WEIR_E_ARG (an unknown word, or one that the model has no matrix for). */
WEIR_API WEIR_CHECKED weir_status weir_bill_lora(int64_t *params, int64_t *matrices, const weir_blueprint *b,
                                                 const char *targets, int64_t rank, weir_err *err);

/* --- the ledger: what a checkpoint holds, from its headers alone, and why that is not what its configuration says */

typedef enum weir_ledger_kind {
    WEIR_LEDGER_WEIGHTS,   /* parameters of the bill, one an element */
    WEIR_LEDGER_PACKED,    /* parameters of the bill, several an element */
    WEIR_LEDGER_SCALES,    /* what quantisation needs beside them */
    WEIR_LEDGER_MASK,      /* causal masks, lists of positions: buffers */
    WEIR_LEDGER_FREQUENCY, /* RoPE's frequencies: a buffer */
    WEIR_LEDGER_COPY,      /* a table that is stored again */
    WEIR_LEDGER_AHEAD,     /* layers behind the last: for further tokens */
    WEIR_LEDGER_MODULE,    /* parts that the bill leaves out: vision, heads for other tasks */
    WEIR_LEDGER_UNKNOWN,   /* tensors whose names say nothing */
    WEIR_LEDGER_ITEM,      /* an item of the bill that is larger or smaller in the file: padding rows, absent tensors */
    WEIR_LEDGER_KINDS
} weir_ledger_kind;

/* Why the file has `surplus` more elements than the configuration has parameters. Lines of WEIR_LEDGER_ITEM say it of
 * an item and have no tensors of their own; all others are tensors of one kind. */
typedef struct weir_ledger_line {
    weir_ledger_kind kind;
    weir_bill_item item; /* of WEIR_LEDGER_ITEM */
    const char *what;    /* in words */
    const char *example; /* the first of the tensors; NULL: none */
    int64_t tensors, bytes;
    int64_t stored; /* elements */
    int64_t params; /* parameters that they stand for: 0 unless they are WEIGHTS or PACKED */
    int64_t surplus;
} weir_ledger_line;

typedef struct weir_ledger {
    int64_t tensors, bytes, stored;        /* all that is in the file */
    int64_t expected;                      /* parameters by the configuration: stored == expected + all `surplus` */
    int64_t params;                        /* parameters of the bill that are in the file */
    int64_t item[WEIR_BILL_ITEMS];         /* these by item */
    int64_t of_type[WEIR_DTYPE_COUNT + 1]; /* elements by type; the last: WEIR_OTHER */
    int n_lines;
    const weir_ledger_line *line;
} weir_ledger;

/* Reads the headers of the checkpoint at `path` (a directory, one file or shards; a .safetensors file; a GGUF file). A
 * path that holds a configuration and no tensors: WEIR_OK and *out = NULL. */
WEIR_API WEIR_CHECKED weir_status weir_ledger_open(weir_ledger **out, const char *path, const weir_blueprint *b,
                                                   const weir_bill *bill, weir_err *err);
WEIR_API void weir_ledger_free(weir_ledger *l);

#ifdef __cplusplus
}
#endif
#endif

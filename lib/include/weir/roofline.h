/* weir/roofline.h: how long a machine must take for a token: what a pass multiplies and what it reads, against the
 * machine's arithmetic and its memory (Williams, Waterman and Patterson 2009, "Roofline").
 *
 *     weir_load load = {.context = 4096, .batch = 1, .weight_bits = 16, .cache_bits = 16};
 *     weir_roof roof;
 *     weir_roof_decode(&roof, blueprint, bill, &load);
 *     weir_bound t = weir_bound_of(&roof.total, weir_hardware_named("h100"));     // t.seconds, t.compute, t.memory
 *
 * Of decoders: an encoder has no token after token. Counts are doubles that hold whole numbers below 2^53 exactly. A
 * multiply-add is two FLOPs.
 */
#ifndef WEIR_ROOFLINE_H
#define WEIR_ROOFLINE_H

#include "count.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- machines */

typedef struct weir_hardware {
    char name[64], about[128];
    double flops;     /* a second: dense products of 16-bit numbers */
    double bandwidth; /* bytes a second from the memory that holds the weights */
    double memory;    /* its bytes; 0: not said */
} weir_hardware;

WEIR_API int weir_hardware_count(void);
WEIR_API const weir_hardware *weir_hardware_at(int i);
WEIR_API const weir_hardware *weir_hardware_named(const char *name); /* NULL: there is none */
/* A file {"name": "...", "flops": 989.4e12, "bandwidth": 3.35e12, "memory": 80e9}; name and memory may be missing. */
WEIR_API WEIR_CHECKED weir_status weir_hardware_read(weir_hardware *out, const char *path, weir_err *err);

/* What this machine does, measured now on so many threads (0: all processors): fp32 multiply-adds in registers, and a
 * sum over memory that no cache holds. Each takes some tenths of a second; the best of a few rounds counts. */
WEIR_API double weir_machine_flops(int threads);
WEIR_API WEIR_CHECKED weir_status weir_machine_bandwidth(double *out, int threads, weir_err *err);

/* --- matrices, one after another */

typedef struct weir_matmul {
    weir_bill_item item;
    int64_t layer; /* -1: of no layer */
    int64_t in, out;
    int64_t copies; /* experts; else 1 */
    int64_t used;   /* of the copies, by one token */
} weir_matmul;
/* Those that a token is multiplied with; with a tied head the embedding is one. *out is freed by weir_matmuls_free.
 * The sum of used x in x out is weir_bill.total.matmul. */
WEIR_API WEIR_CHECKED weir_status weir_matmuls_of(weir_matmul **out, int64_t *n, const weir_blueprint *b,
                                                  weir_err *err);
WEIR_API void weir_matmuls_free(weir_matmul *m);

/* --- a pass */

typedef struct weir_load {
    double context;     /* tokens of a sequence: decode reads so many keys, its own included; prefill runs them all */
    double batch;       /* sequences */
    double weight_bits; /* an element */
    double cache_bits;
    bool activations; /* count what matrices read and write beside their weights, at 16 bits */
    bool absorbed;    /* latent attention works on the latents themselves: 2 heads (2 kv_rank + rope) FLOPs a key */
} weir_load;

typedef struct weir_work {
    double flops, bytes;
} weir_work;

typedef struct weir_roof {
    weir_work item[WEIR_BILL_ITEMS]; /* weights: each is read once a pass; of the tables that are looked up, rows */
    weir_work attn, mlp, weights;    /* sums of items */
    weir_work attention;             /* queries against keys, patterns against values; bytes: of the cache */
    weir_work state;                 /* of mixers: read and written */
    double activations;              /* bytes; 0 unless asked for */
    weir_work total;
    double input_table; /* bytes that a count of all weights would add: tables of which rows are read */
    double tokens;      /* of the pass */
} weir_roof;

/* One token for each of `batch` sequences. A routed expert is read if any token needs it: of `experts` those that a
 * batch of independent, even choices touches on the average. */
WEIR_API void weir_roof_decode(weir_roof *out, const weir_blueprint *b, const weir_bill *bill, const weir_load *load);
/* All `context` tokens of `batch` sequences at once; the unembedding for the last of each. Bytes: the cache is written.
 */
WEIR_API void weir_roof_prefill(weir_roof *out, const weir_blueprint *b, const weir_bill *bill, const weir_load *load);

typedef struct weir_bound {
    double compute, memory; /* seconds that each would take alone */
    double seconds;         /* the larger: at best both overlap */
    double intensity;       /* FLOPs a byte */
} weir_bound;
WEIR_API weir_bound weir_bound_of(const weir_work *w, const weir_hardware *h);

/* FLOPs of attention for the token at position `context`, and for all tokens up to it (/ context: the causal mean).
 * windows: as the layers have them; else as if there were none. */
WEIR_API double weir_attention_last(const weir_blueprint *b, double context, bool windows, bool absorbed);
WEIR_API double weir_attention_sum(const weir_blueprint *b, double context, bool windows, bool absorbed);
/* Elements of the cache that decoding at `context` reads; windows bound it. */
WEIR_API double weir_cache_elements(const weir_blueprint *b, const weir_bill *bill, double context);

/* The context at which the last token's attention, windows aside, costs what the weights do. layers: those of the
 * layers alone (else the unembedding too); biases: counted as if they were multiplied. INFINITY: there is no attention.
 */
WEIR_API double weir_overtaking(const weir_blueprint *b, const weir_bill *bill, bool layers, bool biases);

/* The batch from which a decode step is bound by arithmetic; INFINITY: none. cache: with what `load` says of the
 * context, else of the weights alone (attention left out). */
WEIR_API double weir_crossing(const weir_blueprint *b, const weir_bill *bill, const weir_load *load,
                              const weir_hardware *h, bool cache);
/* The same of one matrix; activations of 16 bits are counted or not. */
WEIR_API double weir_crossing_matrix(const weir_matmul *m, double weight_bits, bool activations,
                                     const weir_hardware *h);

#ifdef __cplusplus
}
#endif
#endif

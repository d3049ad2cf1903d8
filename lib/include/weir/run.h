/* weir/run.h: the forward pass.
 *
 *     weir_run_options o; weir_run_options_init(&o);
 *     o.max_rows = 512;
 *     weir_run *run;
 *     weir_run_new(&run, model, &o, &err);
 *     weir_run_hook(run, weir_hook_class_find("log"), "resid_post", &err);
 *     weir_seq s = {.ids = ids, .n = n, .slot = -1};
 *     weir_run_forward(run, &s, 1, WEIR_FINAL, &err);
 *     weir_run_logits(run, n - 1, 1, logits, &err);          // [1,V]: the last row's
 *     weir_run_free(run);
 *
 * One path serves prefill, decode and batches: sequences are packed row after row, without padding. A run belongs to
 * one thread at a time; several runs share a model. All its memory is planned and allocated by the first forward
 * (weir_run_prepare), none afterwards. The bits of every value depend on the weights and the sequence alone: not on
 * threads, batch, prefill or decode, hooks that only read, or the kernel table (lib/kernels/README.md).
 */
#ifndef WEIR_RUN_H
#define WEIR_RUN_H

#include "hook.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_run weir_run;

typedef struct weir_run_options {
    int threads;        /* 0: all processors */
    const char *kernel; /* "ref", "avx2", "avx512"; NULL: $WEIR_KERNEL, else the best that the machine has */
    int64_t max_rows;   /* rows of one forward at most; default 512 */
    int64_t max_len;    /* tokens of one sequence at most, cached ones included; 0: the model's context */
    int slots;          /* sequences that are kept between passes (KV cache); default 0 */
    int64_t memory;     /* refuse a plan (arena and packed weights) above this many bytes; 0: no bound */
} weir_run_options;
WEIR_API void weir_run_options_init(weir_run_options *o);

/* A piece of a sequence to run. slot -1: a sequence of its own, from position 0, forgotten afterwards. slot >= 0:
 * continues what the slot holds (weir_run_slot_reset empties it). keep: [n] or NULL (all rows kept). */
typedef struct weir_seq {
    const int32_t *ids; /* [n], n >= 1 */
    int64_t n;
    int slot;
    const uint8_t *keep;
    int64_t tag;
    const int64_t *place; /* [n] positions in the document (weir_rows.doc_pos), or NULL: as in the sequence */
    int64_t total;        /* tokens of the document (weir_rows.doc_len); 0: those of the sequence so far */
} weir_seq;

enum {
    WEIR_FINAL = 1 /* run to the final norm, so that weir_run_logits and weir_run_logprobs can be asked */
};

WEIR_API WEIR_CHECKED weir_status weir_run_new(weir_run **out, const weir_model *m, const weir_run_options *o,
                                               weir_err *err);
WEIR_API void weir_run_free(weir_run *r);
WEIR_API const weir_model *weir_run_model(const weir_run *r);

/* Creates a hook of a class and attaches it; it is destroyed with the run. Before the first forward only. A hook that
 * wants no point is an error, and so is c = NULL: what weir_hook_class_find gives for an unknown name. */
WEIR_API WEIR_CHECKED weir_status weir_run_hook(weir_run *r, const weir_hook_class *c, const char *args, weir_err *err);
/* Attaches an object that the caller made; destroy is not called. */
WEIR_API WEIR_CHECKED weir_status weir_run_hook_object(weir_run *r, const weir_hook_class *c, void *self,
                                                       weir_err *err);

/* Plans and allocates; called by the first forward, with its flags, if the caller did not. A later forward may use
 * fewer flags than this, not more (WEIR_E_ARG). */
WEIR_API WEIR_CHECKED weir_status weir_run_prepare(weir_run *r, int flags, weir_err *err);
WEIR_API int64_t weir_run_arena_bytes(const weir_run *r);
WEIR_API const char *weir_run_kernel(const weir_run *r); /* name of the table in use */
WEIR_API int weir_run_threads(const weir_run *r);

/* One pass over the rows of seqs[n_seq]. Stops behind the last point that any hook wants, unless flags has WEIR_FINAL;
 * with neither, nothing is computed. Errors: ids outside the vocabulary, too many rows, a sequence beyond max_len or
 * the context, a slot that two sequences use or that holds fewer layers than this pass needs (filled by passes that
 * stopped earlier) (WEIR_E_ARG); a hook's own. WEIR_STOP when a hook asked. Slots advance only when the pass succeeds.
 */
WEIR_API WEIR_CHECKED weir_status weir_run_forward(weir_run *r, const weir_seq *seqs, int64_t n_seq, int flags,
                                                   weir_err *err);

/* Logits (soft cap included) of rows [row, row+n) of the last pass (which had WEIR_FINAL): out [n,V]. */
WEIR_API WEIR_CHECKED weir_status weir_run_logits(weir_run *r, int64_t row, int64_t n, float *out, weir_err *err);
/* Log-probability of target[i] after row i, for all T rows of the last pass: out [T]; target < 0 gives NaN. V is tiled
 * by rows. */
WEIR_API WEIR_CHECKED weir_status weir_run_logprobs(weir_run *r, const int32_t *target, float *out, weir_err *err);

WEIR_API void weir_run_slot_reset(weir_run *r, int slot);
WEIR_API int64_t weir_run_slot_len(const weir_run *r, int slot);

/* Questions about hook i, in order of attaching from 0: how often it was given a value; whether it asked to write
 * anywhere, so that the values behind it may not be the model's own. 0 and false when there is no such hook. */
WEIR_API int64_t weir_run_hook_fired(const weir_run *r, int i);
WEIR_API bool weir_run_hook_writes(const weir_run *r, int i);
/* Ends the hooks (finish), and fails when a hook never fired. out as in weir_hook_class.finish. */
WEIR_API WEIR_CHECKED weir_status weir_run_finish(weir_run *r, FILE *out, weir_err *err);

#ifdef __cplusplus
}
#endif
#endif

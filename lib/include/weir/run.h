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

#include "edit.h"
#include "functions.h"
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
    int64_t memory;     /* bytes that the arena and packed weights may take; 0: no bound. Layers that do not fit are
                           packed anew in each pass; refused if one alone does not */
    bool by_layer;      /* the run goes layer by layer: weir_run_part */
    bool backward;      /* passes keep what weir/grad.h needs to go back through them, in the arena; not with by_layer */
    const weir_edit *const *edits; /* [n_edits] of this model, applied in this order (weir/edit.h); borrowed until the run
                                      is freed. None: the bits and the speed of the model as it is */
    int n_edits;
    const weir_activation *act; /* in place of the activation of the model's MLPs; one that runs (weir/functions.h).
                                   NULL: the model's own */
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
    WEIR_FINAL = 1,     /* run to the final norm, so that weir_run_logits and weir_run_logprobs can be asked */
    WEIR_KEEP_SLOTS = 2 /* slots stay as they were before the pass: the next one continues from the same place. What a
                           pass like this one stored behind it is forgotten */
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

/* The run records to d: every hook that wants datasets of its own in it declares them now (weir_hook_class.on_dump).
 * Before the first forward, behind the last weir_run_hook. */
WEIR_API WEIR_CHECKED weir_status weir_run_declare(weir_run *r, struct weir_dump *d, weir_err *err);

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

/* The same pass, begun with the stream before block `layer` (L: before the final norm, all blocks are left out). The
 * caller has put the rows' stream into weir_run_stream, in the order of the sequences' tokens; ids say how many rows
 * there are and what hooks are told. Every value from blocks.LAYER.hook_resid_pre on has the bits of the whole pass that
 * had this stream there; hooks hear nothing before it. What is in weir_run_stream afterwards is undefined: fill it again
 * for the next pass.
 *
 * A slot's keys and values of earlier layers are neither read nor written. A slot that such a pass has advanced can only
 * be continued from this layer or a later one.
 *
 *     weir_run_prepare(run, WEIR_FINAL, &err);            // the slot holds a prefix, seen by every layer
 *     for (...) {                                         // the same tokens behind it, again and again
 *         memcpy(weir_run_stream(run), x, n * C floats);  // [n,C] before block l
 *         weir_run_forward_from(run, &seq, 1, l, WEIR_FINAL | WEIR_KEEP_SLOTS, &err);
 *         weir_run_logits(run, n - 1, 1, logits, &err);
 *     }
 * Errors: as of weir_run_forward; a layer not in [0, L], a run that is not prepared (WEIR_E_ARG). */
WEIR_API WEIR_CHECKED weir_status weir_run_forward_from(weir_run *r, const weir_seq *seqs, int64_t n_seq, int64_t layer,
                                                        int flags, weir_err *err);

/* --- layer by layer: all sequences through one part of the model before the next, the stream kept by the caller in
 * between, so that each layer's weights are needed once a corpus and not once a pass. The steps are those of
 * weir_run_forward, and so are the bits.
 *
 *     o.by_layer = true; ... attach hooks; weir_run_prepare(run, flags, &err);
 *     for (int64_t part = 0; part < weir_run_parts(run); part++)
 *         for (each batch) {
 *             memcpy(weir_run_stream(run), what part - 1 left for the batch, rows * C floats);   // not for part 0
 *             weir_run_part(run, part, batch.seq, batch.n_seq, &err);
 *             ... keep rows * C floats of weir_run_stream(run) for the next part; behind the last part, and with
 *                 WEIR_FINAL: weir_run_logits, weir_run_logprobs ...
 *         }
 *
 * Part 0 is the embedding, part 1 + l layer l, part L + 1 the final norm and the unembedding. Hooks hear the values of a
 * part at each call, with on_begin and on_end around it; one whose class lacks WEIR_HOOK_ANY_ORDER cannot be attached.
 * A slot holds keys and values of one layer: it is reset at the beginning of each window in each part. One layer is
 * packed at a time and released when another part is asked for. weir_run_forward is refused. */
/* Parts that hooks and flags need, from 0; 0 before weir_run_prepare. */
WEIR_API int64_t weir_run_parts(const weir_run *r);
/* [max_rows, C]: read and left by weir_run_part, read by weir_run_forward_from; owned by the run. Undefined behind the
 * last part. NULL before weir_run_prepare. */
WEIR_API float *weir_run_stream(weir_run *r);
/* This part was run by an earlier process that this one goes on for: hooks that listen in it need not fire for
 * weir_run_finish. */
WEIR_API void weir_run_part_done(weir_run *r, int64_t part);
/* Errors as of weir_run_forward; a slot that another part filled (WEIR_E_ARG). */
WEIR_API WEIR_CHECKED weir_status weir_run_part(weir_run *r, int64_t part, const weir_seq *seqs, int64_t n_seq,
                                                weir_err *err);

/* Logits (soft cap included) of rows [row, row+n) of the last pass (which had WEIR_FINAL): out [n,V]. */
WEIR_API WEIR_CHECKED weir_status weir_run_logits(weir_run *r, int64_t row, int64_t n, float *out, weir_err *err);
/* Log-probability of target[i] after row i, for all T rows of the last pass: out [T]; target < 0 gives NaN. V is tiled
 * by rows. */
WEIR_API WEIR_CHECKED weir_status weir_run_logprobs(weir_run *r, const int32_t *target, float *out, weir_err *err);

WEIR_API void weir_run_slot_reset(weir_run *r, int slot);
WEIR_API int64_t weir_run_slot_len(const weir_run *r, int slot);
/* Slot `to` holds from now on the first n tokens that slot `from` holds, and nothing else: sequences that begin alike
 * need their beginning run once. to = from: what is behind it is forgotten. n = 0 empties it. Errors (WEIR_E_ARG): a
 * slot that the run has not, more tokens than `from` holds. */
WEIR_API WEIR_CHECKED weir_status weir_run_slot_copy(weir_run *r, int to, int from, int64_t n, weir_err *err);

/* Questions about hook i, in order of attaching from 0: how often it was given a value; whether it asked to write
 * anywhere, so that the values behind it may not be the model's own. 0 and false when there is no such hook. */
WEIR_API int64_t weir_run_hook_fired(const weir_run *r, int i);
WEIR_API bool weir_run_hook_writes(const weir_run *r, int i);
/* Did it ask for any gradient? */
WEIR_API bool weir_run_hook_gradients(const weir_run *r, int i);
/* Has a hook said at the end of a pass that it has seen enough (WEIR_STOP from on_end)? That pass is whole; a program
 * that feeds the run ends here. */
WEIR_API bool weir_run_enough(const weir_run *r);
/* Rows that hook i has changed so far, and (missed, may be NULL) those that it could not: weir_hook_class.changed. -1:
 * this hook does not count, or there is no such hook. */
WEIR_API int64_t weir_run_hook_changed(const weir_run *r, int i, int64_t *missed);
/* Ends the hooks (finish), and fails when a hook never fired. out as in weir_hook_class.finish. */
WEIR_API WEIR_CHECKED weir_status weir_run_finish(weir_run *r, FILE *out, weir_err *err);

#ifdef __cplusplus
}
#endif
#endif

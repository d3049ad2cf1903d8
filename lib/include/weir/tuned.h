/* weir/tuned.h: the tuned lens (Belrose et al. 2023, "Eliciting Latent Predictions from Transformers with the Tuned
 * Lens", arXiv 2303.08112): before the final norm and the unembedding, each layer's stream passes through an affine
 * translator of its own that was trained to meet the model's final prediction:
 *
 *     lens_i(h) = W_U norm(h + A_i h + b_i),    h a row of blocks.i.hook_resid_pre, i in [0, L)
 *
 * So blocks.i.hook_resid_post is met by translator i + 1, and the last layer's hook_resid_post, the final stream, has
 * none: its lens is the model itself.
 *
 *     weir_tuned *t;
 *     weir_tuned_open(&t, "lens/", model, NULL, &err);
 *     weir_tuned_apply(t, weir_tuned_index(t, WEIR_SITE_RESID_POST, 3), x, n, y, &err);
 *     ... y is a row for weir_lens_logits, weir_lens_top, weir_lens_measure (weir/lens.h) ...
 *     weir_tuned_free(t);
 *
 * A lens is a directory in the layout of the Python package tuned-lens 0.2.0, with its parameters as safetensors:
 *
 *     config.json           lens_type "linear_tuned_lens", d_model (C), num_hidden_layers (L), bias,
 *                           base_model_name_or_path, base_model_revision, unembed_hash
 *     params.safetensors    i.weight [C,C] (A_i: row o makes element o) and, with bias, i.bias [C] (b_i); F32, F16 or
 *                           BF16
 *     fit.json              what `weir lens-fit` says of how it was made; other lenses have none
 *
 * A lens that tuned-lens saved has params.pt instead. This line, run in the directory, makes the other file of it:
 *
 *     python3 -c "import torch, safetensors.torch as s; s.save_file(torch.load('params.pt'), 'params.safetensors')"
 *
 * and this one goes back, so that TunedLens.from_model_and_pretrained(model, "lens/") loads what weir made:
 *
 *     python3 -c "import torch, safetensors.torch as s; torch.save(s.load_file('params.safetensors'), 'params.pt')"
 */
#ifndef WEIR_TUNED_H
#define WEIR_TUNED_H

#include "hook.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- a lens that was trained */

typedef struct weir_tuned weir_tuned;

typedef struct weir_tuned_options {
    const char *kernel; /* as in weir_run_options; the results are the same */
    int threads;        /* 0: all processors; the results are the same */
    weir_log log;       /* remarks: keys of config.json that weir does not know; a model that it was not made for */
} weir_tuned_options;
WEIR_API void weir_tuned_options_init(weir_tuned_options *o);

typedef struct weir_tuned_info {
    const char *path;       /* the directory */
    const char *base_model; /* as config.json has it; NULL: it says nothing */
    const char *revision;   /* the same */
    char sha256[65]; /* of the bytes of params.safetensors: what tells this lens from another in the same place */
    int64_t L, C;
    bool bias;
} weir_tuned_info;

/* Reads the whole lens and packs it: L C (C + 1) numbers, fp32 or as stored, stay in memory; the files are closed. m is
 * borrowed. o may be NULL: the defaults.
 *
 * Errors: no such file (WEIR_E_IO; where params.pt lies instead, the message holds the line above); a file that breaks
 * its format, a tensor that is missing, a number that is not finite (WEIR_E_FORMAT); another kind of lens, or a type of
 * numbers that weir does not compute with (WEIR_E_UNSUPPORTED); a width, a number of layers or a shape that is not the
 * model's (WEIR_E_SHAPE). unembed_hash is not checked: it is a hash of how numpy prints the matrix. fit.json has the
 * model's fingerprint, and the SHA-256 of params.safetensors: others than these are a remark. */
WEIR_API WEIR_CHECKED weir_status weir_tuned_open(weir_tuned **out, const char *dir, const weir_model *m,
                                                  const weir_tuned_options *o, weir_err *err);
WEIR_API void weir_tuned_free(weir_tuned *t);
WEIR_API const weir_tuned_info *weir_tuned_info_of(const weir_tuned *t);

/* The translator for rows of this site in this layer: L for the final stream; -1 for a site that has none (all but
 * resid_pre and resid_post). */
WEIR_API int64_t weir_tuned_index(const weir_tuned *t, weir_site site, int64_t layer);
/* out [n,C] = x + (A x + b), x [n,C] not overlapping it; a copy for i = L. One chain of fused multiply-adds an element,
 * then b, then x: the same bits for any threads, kernel and n. i outside [0, L]: WEIR_E_ARG. One thread at a time. */
WEIR_API WEIR_CHECKED weir_status weir_tuned_apply(weir_tuned *t, int64_t i, const float *x, int64_t n, float *out,
                                                   weir_err *err);

/* --- training one
 *
 * All translators at once, on the streams of a run over text. The loss of a position and a layer is KL(f || p) in nats,
 * f the model's final distribution, p the lens's; it is averaged over the positions of a step. Its gradient is closed
 * form. With d = softmax(logits) - f (times 1 - (logit/cap)^2 where the model caps its logits), back through the
 * unembedding e = W_U^T d, the gain u = g e, and the norm y = (t - mean)/s of the translated row t:
 *
 *     LayerNorm: (u - mean(u) - y mean(u y)) / s        RMS: (u - y mean(u y)) / s
 *
 * which, times the row h of the stream, is the gradient of A, and itself that of b. The optimiser is Adam (Kingma and
 * Ba 2015: betas 0.9 and 0.999) with decoupled weight decay (Loshchilov and Hutter 2019), from A = 0, b = 0, the lens
 * that changes nothing, so that weight decay pulls towards the plain lens; the rate rises linearly over the first fifth
 * of the steps, and falls linearly to 0. Adam, because the scale of the stream, and with it of the gradient, differs by
 * orders of magnitude between layers and models: its steps do not depend on that, so one rate fits all layers, and
 * small steps of a small text suffice (tuned-lens' own default, SGD, takes 2^18 tokens for each).
 *
 *     weir_fit_new(&f, model, &o, &err);
 *     while (!weir_fit_done(f)) { ... run a batch ...; weir_fit_add(f, x, n, &err); }
 *     weir_fit_measure(f, x, n, plain, tuned, &err);      // rows of documents that were held out
 *     weir_fit_save(f, "lens", &about, &err);
 *
 * The result depends on the rows and their order alone: not on how they are cut into calls, on threads or the kernel.
 */
typedef struct weir_fit weir_fit;

typedef struct weir_fit_options {
    int64_t steps;       /* updates; default 300 */
    int64_t step_rows;   /* positions of one update; default 512 */
    double lr;           /* the highest rate; default 0.003 */
    double weight_decay; /* share of A and b that an update takes away, times the rate; default 0.01 */
    double clip;         /* a translator's mean gradient is shortened to this norm; default 1; 0: it is not */
    const char *kernel;  /* as in weir_run_options */
    int threads;         /* 0: all processors */
} weir_fit_options;
WEIR_API void weir_fit_options_init(weir_fit_options *o);

/* m is borrowed. Memory: 5 L C (C + 1) floats for the translators, as they are and packed, their gradient and Adam's
 * moments; the unembedding a second time, turned round; and of a block of positions, at most 256 of them, or as many as
 * have 16 MiB of logits, but at least 16: the stream at L + 1 places and 3 times its logits. Errors (WEIR_E_ARG):
 * options out of range. */
WEIR_API WEIR_CHECKED weir_status weir_fit_new(weir_fit **out, const weir_model *m, const weir_fit_options *o,
                                               weir_err *err);
WEIR_API void weir_fit_free(weir_fit *f);
/* n positions: x[i] [n,C], i < L, are rows of blocks.i.hook_resid_pre, x[L] those of the last layer's hook_resid_post.
 * Copied. An update is made whenever step_rows positions have come together. Rows behind the last step are left out. A
 * loss that is not finite is an error (WEIR_E_ARG): the rate is too large, or the model's own logits are not finite. */
WEIR_API WEIR_CHECKED weir_status weir_fit_add(weir_fit *f, const float *const *x, int64_t n, weir_err *err);
WEIR_API int64_t weir_fit_steps(const weir_fit *f); /* updates so far */
WEIR_API bool weir_fit_done(const weir_fit *f);
/* [L] the mean loss of each layer over the last step, before its update; NaN before the first. */
WEIR_API const double *weir_fit_loss(const weir_fit *f);
/* Translator i as it is now: A [C,C] and b [C], borrowed until the next weir_fit_add. i in [0, L). */
WEIR_API void weir_fit_translator(const weir_fit *f, int64_t i, const float **a, const float **b);

/* The loss of n positions, as weir_lens_measure's kl_final has it, in the plain lens and in the tuned one: that of each
 * position is added, in order, to plain[i] and tuned[i], i < L. */
WEIR_API WEIR_CHECKED weir_status weir_fit_measure(weir_fit *f, const float *const *x, int64_t n, double *plain,
                                                   double *tuned, weir_err *err);

/* What is written of a lens besides its numbers; each may be NULL. */
typedef struct weir_fit_about {
    const char *base_model;  /* config.json: base_model_name_or_path */
    const char *fingerprint; /* fit.json, this and the rest: of the model */
    const char *tokenizer;   /* its fingerprint */
    const char *command_line;
    const char *text;          /* JSON: what the text was */
    const char *interventions; /* JSON: what changed the model's values */
    uint64_t seed;
    int64_t held_out;            /* positions that were measured: */
    const double *plain, *tuned; /* [L] means of their losses */
} weir_fit_about;

/* Writes the directory `dir` whole or not at all: it is made as DIR.part and renamed. A directory that is there is
 * replaced if it is a lens that weir_fit_save wrote; anything else is refused (WEIR_E_ARG). */
WEIR_API WEIR_CHECKED weir_status weir_fit_save(const weir_fit *f, const char *dir, const weir_fit_about *about,
                                                weir_err *err);
/* The same question, to be asked before training: WEIR_OK, or why `dir` would be refused. */
WEIR_API WEIR_CHECKED weir_status weir_fit_may_save(const char *dir, weir_err *err);

#ifdef __cplusplus
}
#endif
#endif

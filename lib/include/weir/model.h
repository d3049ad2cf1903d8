/* weir/model.h: real checkpoints as immutable models.
 *
 *     weir_model *m;
 *     weir_model_open(&m, "SmolLM2-135M/", NULL, &err);     // a Hugging Face directory or a .gguf file
 *     const weir_model_info *i = weir_model_info_of(m);
 *     weir_model_free(m);
 *
 * A model is immutable to its users and shared freely between threads. Weights stay in read-only maps of the files;
 * packed copies are made when a run first needs them (a lock inside). Opening reads headers and configuration, no
 * weights. The files must not be truncated while a model is open (a map of a truncated file raises SIGBUS). Weights are
 * used raw: nothing is folded or centred. Layers count from 0.
 */
#ifndef WEIR_MODEL_H
#define WEIR_MODEL_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_model weir_model;

typedef struct weir_model_options {
    weir_log log; /* remarks: tied head inferred, defaulted values, ignored buffers */
    int threads;  /* for packing; 0: all processors */
} weir_model_options;
WEIR_API void weir_model_options_init(weir_model_options *o);

/* Sizes and kinds, fixed after opening. */
typedef struct weir_model_info {
    const char *path;
    const char *name;            /* last part of the path, or GGUF general.name */
    const char *family;          /* "gpt2", "llama", "gpt_neox", "gemma2", ...: weir's description that runs it */
    const char *model_type;      /* as the file says: "mistral", "llama", ... */
    const char *format;          /* "safetensors" or "gguf" */
    const char *dtype;           /* type of most weight elements: "F32", "BF16", "Q4_1", ... */
    int64_t L, C, F, H, K, D, V; /* V: rows of the unembedding (padding included) */
    int64_t ctx;                 /* the model's context in tokens */
    int64_t parameters;          /* elements of all tensors in use; a tied head counts once */
    bool gated;                  /* MLP is act(gate) * up */
    bool parallel;               /* attention and MLP both read resid_pre: there is no resid_mid */
    bool tied;                   /* the unembedding is the embedding */
} weir_model_info;

/* path NULL: the embedded default, brook. */
WEIR_API WEIR_CHECKED weir_status weir_model_open(weir_model **out, const char *path, const weir_model_options *o,
                                                  weir_err *err);
WEIR_API void weir_model_free(weir_model *m);
WEIR_API const weir_model_info *weir_model_info_of(const weir_model *m);

/* Memory: bytes mapped from files; bytes of the panels that are packed now; bytes of descriptions. packed_again: how
 * often a layer (or a part of the unembedding) was packed again, because a run's bound had no room for all. */
typedef struct weir_model_memory {
    int64_t mapped, panels, other;
    int64_t packed_again;
} weir_model_memory;
WEIR_API weir_model_memory weir_model_memory_of(const weir_model *m);

/* Fingerprint: SHA-256 as 64 hex digits and NUL over the bytes of config.json (GGUF: its metadata
 * section) and, sorted by name, each tensor's name, dtype, shape, first and last 4 KiB; full: all bytes of each tensor.
 * Computed at each call. */
WEIR_API WEIR_CHECKED weir_status weir_model_fingerprint(const weir_model *m, bool full, char out[65], weir_err *err);

/* Tensors of the checkpoint that the model uses, in file order: count, and one by index. */
WEIR_API int64_t weir_model_n_tensors(const weir_model *m);
WEIR_API const weir_tensor *weir_model_tensor(const weir_model *m, int64_t i);

/* Directory of the embedded model brook: $WEIR_BROOK, else beside the running program's build tree or installation,
 * else the directory that was compiled in. Writes the path into buf[n] and returns it, or NULL with err set when it is
 * nowhere. */
WEIR_API const char *weir_brook_path(char *buf, size_t n, weir_err *err);

#ifdef __cplusplus
}
#endif
#endif

/* model/config.h: the numbers of one checkpoint, read from config.json or GGUF metadata by the family's key table. */
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include "../base/log.h"
#include "../base/mem.h"
#include "../io/checkpoint.h"
#include "arch.h"

typedef enum weir_rope_kind { WEIR_ROPE_PLAIN, WEIR_ROPE_LINEAR, WEIR_ROPE_LLAMA3 } weir_rope_kind;

typedef struct weir_rope {
    weir_rope_kind kind;
    double factor, low, high, original; /* original: context before the scaling */
} weir_rope;

typedef struct weir_config {
    const weir_arch *arch;
    const char *model_type; /* as the file says */
    const char *name;       /* GGUF general.name, or NULL */
    const char *file;       /* where the numbers stand, for errors */
    double v[WEIR_CFG_COUNT];
    const char *key[WEIR_CFG_COUNT]; /* under which key a number was found; NULL: the class default */
    weir_rope rope;
    const bool *windowed; /* [L] the file's own list of layers that have the window; or NULL */
} weir_config;

/* What kind of value a number is, for readers and messages. */
typedef enum weir_cfg_kind { WEIR_CFG_INT, WEIR_CFG_REAL, WEIR_CFG_BOOL, WEIR_CFG_ACTIVATION } weir_cfg_kind;
typedef struct weir_cfg_info {
    weir_cfg_kind kind;
    bool nullable;    /* null is 0: "none" or "derived" */
    double min, max;  /* of a value that the file gives; null is exempt */
    const char *what; /* "layers" */
} weir_cfg_info;
const weir_cfg_info *weir_cfg_info_of(weir_cfg c);

/* Hugging Face's name of an activation; false when weir lacks it. */
bool weir_act_find(const char *name, weir_act *out);
const char *weir_act_name(weir_act act);
/* Checks the range of a number that was found under `key`; at: byte offset or -1. */
WEIR_CHECKED weir_status weir_cfg_check(weir_cfg c, double v, const char *key, const char *file, int64_t at,
                                        weir_err *err);

/* Both find the family, refuse what weir does not do by name, and fill everything. Strings and lists live in the arena.
 */
WEIR_CHECKED weir_status weir_config_read_hf(weir_config *out, weir_arena *arena, const weir_filemap *file,
                                             const weir_log *log, weir_err *err);
WEIR_CHECKED weir_status weir_config_read_gguf(weir_config *out, weir_arena *arena, const weir_gguf *g, weir_err *err);

/* The resolved description (V stays 0 where only the token table says it); window[L] in the arena. */
WEIR_CHECKED weir_status weir_config_resolve(const weir_config *cfg, bool gguf, weir_arena *arena, weir_spec *spec,
                                             const int64_t **window, weir_err *err);
/* Scores are divided by its root. */
double weir_config_query_scalar(const weir_config *cfg, const weir_spec *s, bool gguf);
/* Inverse frequencies, where Hugging Face rounds them; divisors: [rot/2] or NULL. */
void weir_rope_inv_freq(float *out, int64_t rot, double theta, const weir_rope *rope, const float *divisors);

#endif

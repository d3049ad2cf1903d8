/* lens/tuned_config.h: config.json of a tuned lens. */
#ifndef WEIR_LENS_TUNED_CONFIG_H
#define WEIR_LENS_TUNED_CONFIG_H

#include <weir/tuned.h>

#include "../base/mem.h"

#define WEIR_TUNED_CONFIG "config.json"
#define WEIR_TUNED_PARAMS "params.safetensors"
#define WEIR_TUNED_FIT "fit.json"
#define WEIR_TUNED_TYPE "linear_tuned_lens" /* lens_type */
#define WEIR_TUNED_FORMAT "weir-lens-fit"   /* format in fit.json */

/* Fills all of *out but `path` from the file's text; strings live in the arena. Fails if the lens is none for this
 * model. */
WEIR_CHECKED weir_status weir_tuned_config_read(weir_tuned_info *out, weir_arena *arena, const char *path,
                                                const weir_model *m, const weir_log *log, weir_err *err);
/* Remarks on another model, and on parameters of another SHA-256, than fit.json names. A lens without one is fine. */
WEIR_CHECKED weir_status weir_tuned_fit_check(const char *path, const weir_model *m, const char *params,
                                              const weir_log *log, weir_err *err);
/* Is there a fit.json that says that weir wrote it? Fails for want of memory only. */
WEIR_CHECKED weir_status weir_tuned_is_ours(bool *ours, const char *path, weir_err *err);

#endif

/* edit/config.h: the JSON files of an edit's directory: adapter_config.json (PEFT's LoraConfig) and edit.json. */
#ifndef WEIR_EDIT_CONFIG_H
#define WEIR_EDIT_CONFIG_H

#include <weir/edit.h>

#include "../base/mem.h"

#define WEIR_EDIT_CONFIG "adapter_config.json"
#define WEIR_EDIT_TENSORS "adapter_model.safetensors"
#define WEIR_EDIT_JSON "edit.json"
#define WEIR_EDIT_FORMAT "weir-edit"         /* `format` in edit.json */
#define WEIR_EDIT_PREFIX "base_model.model." /* of every tensor's name */

/* A number that modules whose name follows the key have instead of the common one. */
typedef struct weir_adapter_pattern {
    const char *key;
    double value;
} weir_adapter_pattern;

/* What of a LoraConfig decides the values; strings live in the arena. */
typedef struct weir_adapter {
    const char *file; /* for errors */
    int64_t r;
    double alpha;
    bool rslora;
    const weir_adapter_pattern *rank, *alphas; /* rank_pattern, alpha_pattern */
    int64_t n_rank, n_alphas;
    const char *const *target; /* target_modules: [n_target]; -1: not a list of names (a pattern, or absent) */
    int64_t n_target;
    const int64_t *layer; /* layers_to_transform: [n_layers]; -1: absent */
    int64_t n_layers;
    const char *base_model; /* NULL: it says nothing */
} weir_adapter;

/* Refuses by name whatever would make the adapter act otherwise than as a plain LoRA (WEIR_E_UNSUPPORTED). */
WEIR_CHECKED weir_status weir_adapter_read(weir_adapter *out, weir_arena *arena, const char *path, weir_err *err);
/* Does the configuration name this module of that layer among its targets? */
bool weir_adapter_targets(const weir_adapter *a, const char *module, int64_t layer);
/* The factor of B A in a module whose A has r rows: alpha / r, or alpha / sqrt(r). Fails if the configuration says
 * another rank. */
WEIR_CHECKED weir_status weir_adapter_scale(const weir_adapter *a, const char *module, int64_t r, double *scale,
                                            weir_err *err);

/* Takes the name "base_model.model.MODULE.lora_A.weight" (or B; the adapter's name may stand before .weight) apart:
 * *module [n] borrowed from it. Fails, by name, if the tensor is no such one. (load.c) */
WEIR_CHECKED weir_status weir_adapter_part(const weir_tensor *t, char *letter, const char **module, int *n,
                                           weir_err *err);

/* edit.json: its text and what it says; all NULL where there is no such file. */
typedef struct weir_edit_json {
    const char *text, *format, *method, *fingerprint;
} weir_edit_json;
WEIR_CHECKED weir_status weir_edit_json_read(weir_edit_json *out, weir_arena *arena, const char *path, weir_err *err);

#endif

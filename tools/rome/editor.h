/* rome/editor.h: what every command that makes edits opens: model, tokenizer, earlier edits, second moments, prefixes.
 */
#ifndef WEIR_ROME_EDITOR_H
#define WEIR_ROME_EDITOR_H

#include "cli/common.h"
#include "cli/edits.h"

/* How an edit is made. The groups have no --batch: `rome edit` has another option of that name. */
typedef struct weir_editor_args {
    weir_model_args model;
    weir_edit_args edits; /* that the model has before */
    int64_t threads, memory;
    int kernel, bos;
    weir_opt_list layers, moments, prefixes;
    const char *stats_text;
    int method, compat;
    bool identity, no_prefixes;
    int64_t seed, steps, rounds;
    double ridge, rate, kl, decay, clamp, enough, weight, null_below, l2;
} weir_editor_args;
extern const weir_opt_group weir_opts_editor, weir_opts_editor_run;

/* The groups in a command's list; `at`: offset of its weir_editor_args. */
#define WEIR_EDITOR_OPTIONS(at)                                                                                        \
    {&weir_opts_editor, (at)}, {&weir_opts_model, (at) + offsetof(weir_editor_args, model)},                           \
        {&weir_opts_edit, (at) + offsetof(weir_editor_args, edits)},                                                   \
    {                                                                                                                  \
        &weir_opts_editor_run, (at)                                                                                    \
    }

/* Statistics of one layer of the edit. */
typedef struct weir_editor_moments {
    char *path; /* NULL: the identity */
    bool made;  /* here, over the text at path; else they are what the file at path holds */
    char sha256[65];
    int64_t count;
    weir_covariance *covariance;
} weir_editor_moments;

typedef struct weir_editor {
    weir_cli *cli;
    const weir_editor_args *a;
    bool may_sweep; /* --layer auto is taken: all layers that there are second moments for, one of which is to be chosen
                     */
    bool sweep;     /* and it was given */
    bool draws;     /* the command has a use of its own for --seed */
    char brook[1100];
    const char *model_path;
    weir_model *model;
    const weir_model_info *info;
    weir_tokenizer *tok;
    char fingerprint[65];
    weir_edits edits;
    weir_rome_prefixes *prefixes;
    int64_t *layer; /* [n_layers] ascending */
    int n_layers;
    weir_editor_moments *moments;       /* [n_layers] */
    const weir_covariance **covariance; /* [n_layers] those of moments */
    weir_rome_options o;                /* ready for weir_rome_new */
    const weir_edit **stack;            /* [edits.n + 1] of weir_editor_asker */
} weir_editor;

/* Opens all of it. Returns an exit code; an error has been said. weir_editor_close in every case. */
int weir_editor_open(weir_editor *e);
/* Its parts, for commands that make no edit. Model, tokenizer, earlier edits; threads, kernel, memory and BOS into o.
 */
int weir_editor_open_model(weir_editor *e);
int weir_editor_set_run(weir_editor *e);
/* Where a layer's second moments lie with the model, or would; to be freed. */
char *weir_editor_own_moments(const weir_editor *e, int64_t layer);
int weir_editor_open_moments(weir_editor *e);
/* What the model answers with its earlier edits, and with one more on top (NULL: none). At most one asker with one more
 * at a time. */
WEIR_CHECKED weir_status weir_editor_asker(weir_editor *e, const weir_edit *more, weir_asker **out, weir_err *err);
/* A library's error on the way; where --memory is too little it says what would need less. Returns WEIR_EXIT_FAILED. */
int weir_editor_fail(const weir_editor *e, const weir_err *err);
/* Is it --layer auto? Known before anything is opened. */
bool weir_editor_asks_sweep(const weir_editor_args *a);
/* Of several layers the one at place i alone. */
void weir_editor_choose(weir_editor *e, int i);
void weir_editor_close(weir_editor *e);

#endif

/* count/count.h: what `weir count` has in hand, and the files that show it.
 *
 *     take.c     opens what the command line names; layers that are alike, as kinds
 *     rules.c    the rules of thumb, and where a width may come from
 *     text.c     one model for people; several side by side (side.c)
 *     file.c     the checkpoint against its configuration, for people
 *     tsv.c, json.c, svg.c
 */
#ifndef WEIR_TOOLS_COUNT_H
#define WEIR_TOOLS_COUNT_H

#include "cli/common.h"

enum { WEIR_COUNT_TEXT, WEIR_COUNT_TSV };
enum { WEIR_COUNT_MODELS = 64, WEIR_COUNT_BITS = 8 };

typedef struct weir_count_args {
    weir_model_args model;
    weir_out_args out;
    int64_t lora;
    const char *lora_targets;
    double train_tokens; /* 0: not asked */
    const char *bits;
    int format;
    int64_t width;
    const char *path, *svg;
    bool force;
} weir_count_args;

/* Layers of equal costs. */
typedef struct weir_count_kind {
    const char *label; /* "layer", "dense", "moe", "encoder", ... */
    int64_t first, n;
    const weir_layer_bill *bill;
    const weir_layer_shape *shape;
} weir_count_kind;

typedef struct weir_counted {
    const char *path;
    weir_blueprint *b;
    weir_bill *bill;
    weir_ledger *file; /* NULL: there are no tensors */
    weir_count_kind *kind;
    int n_kinds;
    int64_t lora, lora_matrices;
} weir_counted;

typedef struct weir_counting {
    weir_cli *cli;
    const weir_count_args *a;
    char brook[1100];
    weir_counted model[WEIR_COUNT_MODELS];
    int n;
    int64_t bits[WEIR_COUNT_BITS];
    int n_bits;
} weir_counting;

/* --- take.c. An exit code; an error has been said. */
int weir_count_take(weir_counting *c);
void weir_count_free(weir_counting *c);
int64_t weir_counted_bytes(int64_t params, int64_t bits);
/* "4722432", or "dense=...;moe=..." where layers differ; "-": none. buf[n] is large enough for every kind that has a
 * label of its own. */
const char *weir_count_each(const weir_counted *m, bool mlp, char *buf, size_t n);
const char *weir_count_tied(const weir_blueprint *b); /* "yes", "no", "no head" */

/* --- rules.c */

/* A rule's number beside the exact one. */
typedef struct weir_count_rule {
    const char *name, *what;
    double rule, exact;
} weir_count_rule;
enum { WEIR_COUNT_RULES = 8 };
int weir_count_rules(const weir_counted *m, weir_count_rule rule[WEIR_COUNT_RULES]);
double weir_count_error(const weir_count_rule *r); /* (rule - exact) / exact */

/* Whence an MLP's width. */
typedef struct weir_count_dff {
    int64_t width, d;
    bool gated;
    double per_d;      /* width / d */
    double in_d2;      /* weights in units of d^2: the budget is 8 */
    int64_t matched;   /* the width that would keep 8 d^2 */
    bool found;        /* a rule gives exactly the width: round-up(multiplier x int(8d/3), multiple) */
    double multiplier; /* 1: none */
    int64_t multiple;
    bool published; /* one of the pairs that Llama models were published with */
} weir_count_dff;
/* False: no layer has a dense MLP or experts. */
bool weir_count_dff_of(const weir_counted *m, weir_count_dff *f);

/* --- output */
void weir_count_put_text(const weir_counting *c, FILE *out);
void weir_count_put_side(const weir_counting *c, FILE *out);
void weir_count_put_file(const weir_counted *m, FILE *out);
void weir_count_put_tsv(const weir_counting *c, FILE *out);
void weir_count_put_json(const weir_counting *c, FILE *out);
void weir_count_put_svg(const weir_counting *c, FILE *out);

#endif

/* sparsity/sparsity.h: what `weir sparsity` measures and shows. The map of this directory:
 *
 *   mask.c   --mask: what it says, thresholds from the text itself, the hooks that apply it
 *   text.c   text for people
 *   data.c   TSV and JSON
 *   svg.c    the curves
 *
 * README.md has the definitions of what is shown, and what each output holds.
 */
#ifndef WEIR_TOOLS_SPARSITY_H
#define WEIR_TOOLS_SPARSITY_H

#include "cli/logprob.h"
#include "cli/session.h"

enum { WEIR_SPARSITY_PER_LINE, WEIR_SPARSITY_PER_ACTIVE, WEIR_SPARSITY_PER_CETT, WEIR_SPARSITY_PER_NEURON };
#define WEIR_SPARSITY_PER_WORDS "layer|active|cett|neuron"
enum { WEIR_SPARSITY_TEXT, WEIR_SPARSITY_TSV };
enum {
    WEIR_SPARSITY_ASKED,
    WEIR_SPARSITY_PLAIN,
    WEIR_SPARSITY_ARMS
}; /* the run of the command line; the model as it is */
enum { WEIR_MASK_NONE, WEIR_MASK_TOPK, WEIR_MASK_BELOW, WEIR_MASK_TEAL };
enum { WEIR_SPARSITY_SHARES = 16 };

typedef struct weir_sparsity_args {
    weir_session_args session;
    weir_opt_list layers;
    const char *sites, *below, *shares, *hot, *mask, *act, *out, *svg;
    double active;
    int64_t sample;
    int per, format;
    bool force;
} weir_sparsity_args;

typedef struct weir_masking {
    int kind; /* WEIR_MASK_* */
    int64_t k;
    double value; /* T, or the share */
} weir_masking;

typedef struct weir_sparsing {
    weir_cli *cli;
    const weir_sparsity_args *a;
    weir_session s;
    char *layers; /* --layer, joined; NULL: all */
    double below[WEIR_SPARSITY_THRESHOLDS], share[WEIR_SPARSITY_SHARES], hot[WEIR_SPARSITY_SHARES];
    int n_below, n_shares, n_hot;
    int active; /* the threshold of --active */
    weir_masking mask;
    double *cut; /* [L] teal: each layer's threshold; NaN: it is not masked */
    weir_sparsity *stats;
    weir_run *plain; /* NULL: nothing is changed, and no loss is asked for */
    weir_logprobs logprob[WEIR_SPARSITY_ARMS];
    int arms; /* that are scored; 0: none */
    int64_t tokens, unscored;
    double nats[WEIR_SPARSITY_ARMS];
    int64_t rows;
    FILE *out;
    double start;
} weir_sparsing;

/* mask.c: they return an exit code; an error has been said. The thresholds need the text: they read it once. */
int weir_sparsity_read_mask(weir_sparsing *t);
int weir_sparsity_calibrate(weir_sparsing *t);
int weir_sparsity_attach_mask(weir_sparsing *t);

/* The text through the runs: both, if losses are asked for. */
int weir_sparsity_run(weir_sparsing *t);

static inline double weir_sparsity_loss(const weir_sparsing *t, int arm)
{
    return t->nats[arm] / (double)t->tokens;
}

/* "blocks.3.mlp.hook_post" as "L3", with its site behind it where there is more than one. */
void weir_sparsity_name(const weir_sparsing *t, int line, char buf[64]);
/* The share of its neurons that can be left out of a line, smallest first, before CETT is above `most` for the first
 * time; NaN: no curve. */
double weir_sparsity_at_cett(const weir_sparsing *t, int line, double most);

bool weir_sparsity_put_text(const weir_sparsing *t);
bool weir_sparsity_put_tsv(const weir_sparsing *t);
bool weir_sparsity_put_json(const weir_sparsing *t);
int weir_sparsity_put_svg(void *ctx, FILE *out);

#endif

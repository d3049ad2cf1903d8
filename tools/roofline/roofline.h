/* roofline/roofline.h: what `weir roofline` computes and shows. The map of this directory:
 *
 *   take.c     the command line's loads, against the machine
 *   measure.c  a model that runs, timed on this machine
 *   text.c     for people
 *   data.c     TSV and JSON
 *   svg.c      sweeps as a picture
 */
#ifndef WEIR_TOOLS_ROOFLINE_H
#define WEIR_TOOLS_ROOFLINE_H

#include "cli/common.h"

enum { WEIR_ROOFLINE_TEXT, WEIR_ROOFLINE_TSV };
enum { WEIR_ROOFLINE_POINTS = 48 }; /* of a sweep along one axis */

typedef struct weir_roofline_args {
    const char *context, *batch, *hardware;
    double weight_bits, cache_bits;
    bool activations, absorbed, measure;
    int64_t threads, tokens;
    int format;
    weir_out_args out;
    const char *path, *svg;
    bool force;
} weir_roofline_args;

typedef struct weir_sweep {
    int64_t v[WEIR_ROOFLINE_POINTS];
    int n;
} weir_sweep;

/* One load. */
typedef struct weir_roofline_point {
    weir_load load;
    weir_roof decode, prefill;
    weir_bound decode_bound, prefill_bound;
    double cached; /* bytes that the sequences' caches hold, mixers' states included */
} weir_roofline_point;

/* Seconds on this machine beside what the roofline allows. */
typedef struct weir_roofline_measured {
    bool done;
    weir_hardware here;
    weir_load load;         /* of weights as they are stored, a cache in fp32 */
    double decode, prefill; /* seconds of a step of `batch` sequences; of `context` tokens each */
    weir_bound decode_bound, prefill_bound;
} weir_roofline_measured;

typedef struct weir_rooflining {
    weir_cli *cli;
    const weir_roofline_args *a;
    const char *model; /* its path */
    char brook[1100];
    weir_blueprint *b;
    weir_bill *bill;
    weir_hardware hw;
    weir_sweep context, batch;
    weir_roofline_point *point; /* [context.n * batch.n], batches within a context */
    weir_matmul *matmul;
    int64_t n_matmuls;
    weir_roofline_measured measured;
} weir_rooflining;

int weir_roofline_take(weir_rooflining *t);
int weir_roofline_measure(weir_rooflining *t);
int weir_roofline_put(void *rooflining, FILE *out); /* for weir_output_put */
int weir_roofline_put_svg(void *rooflining, FILE *out);
void weir_roofline_text(const weir_rooflining *t, FILE *out);
void weir_roofline_tsv(const weir_rooflining *t, FILE *out);
void weir_roofline_json(const weir_rooflining *t, FILE *out);

/* Is it a sweep, of more than one load? */
static inline bool weir_roofline_swept(const weir_rooflining *t)
{
    return t->context.n * t->batch.n > 1;
}
/* How many matrices have the k-th one's item and shape; 0: an earlier one was the first of them. */
int64_t weir_roofline_alike(const weir_rooflining *t, int64_t k);
const char *weir_roofline_limit(const weir_bound *b); /* "memory" or "compute" */

#endif

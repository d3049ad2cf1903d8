/* rome/tally.h: results of records: a line of JSON each, and what they come to. */
#ifndef WEIR_ROME_TALLY_H
#define WEIR_ROME_TALLY_H

#include "cli/tool.h"

/* The numbers of a record, in the order in which they are kept. */
enum {
    WEIR_TALLY_ES,
    WEIR_TALLY_PS,
    WEIR_TALLY_NS,
    WEIR_TALLY_EM,
    WEIR_TALLY_PM,
    WEIR_TALLY_NM,
    WEIR_TALLY_SAID,
    WEIR_TALLY_NEIGHBOUR_SAID,
    WEIR_TALLY_GE, /* generation entropy, bits */
    WEIR_TALLY_SCORES,
    WEIR_TALLY_DRIFT = WEIR_TALLY_SCORES, /* perplexity after over before, less 1 */
    WEIR_TALLY_VALUES
};
extern const char *const weir_tally_name[WEIR_TALLY_VALUES];

/* Means over the records that have the number. [0]: before the edit; [1]: after. */
typedef struct weir_tally {
    int64_t records, failed, left_out, clamped, unreached;
    int64_t layer, record; /* of the last line */
    int64_t why_record;    /* the first that failed, */
    char why[200];         /* and what hindered it; "": none */
    double sum[2][WEIR_TALLY_VALUES], worst_drift;
    int64_t n[2][WEIR_TALLY_VALUES];
} weir_tally;

/* The line of a record, without its line break; false: out of memory, or the stream failed. */
bool weir_tally_write(FILE *out, int64_t layer, const weir_fact *f, const weir_rome_result *r);
/* Adds a line that weir_tally_write made. */
WEIR_CHECKED weir_status weir_tally_add(weir_tally *t, const char *line, size_t n, const char *file, weir_err *err);
/* Records that were edited. */
int64_t weir_tally_edited(const weir_tally *t);
/* Mean; NaN: none has the number. */
double weir_tally_mean(const weir_tally *t, int after, int value);
/* Harmonic mean of ES, PS and NS. */
double weir_tally_score(const weir_tally *t, int after);

#endif

/* cli/logprob.h: the log-probability of each token given those before it in its window, batch by batch. */
#ifndef WEIR_CLI_LOGPROB_H
#define WEIR_CLI_LOGPROB_H

#include "feed.h"

typedef struct weir_logprobs {
    float *kept; /* [batch] of the kept rows of the last batch; NaN where nothing precedes a token */
    /* inside */
    int32_t *target; /* [batch] */
    float *after;    /* [batch] of the token behind each row */
    float carry;     /* of the first row of the next batch, if it goes on with the window */
} weir_logprobs;

WEIR_CHECKED weir_status weir_logprobs_new(weir_logprobs *l, int64_t batch, weir_err *err);
/* After a pass over the batch with WEIR_FINAL. */
WEIR_CHECKED weir_status weir_logprobs_find(weir_logprobs *l, weir_run *run, const weir_batch *b, weir_err *err);
void weir_logprobs_free(weir_logprobs *l);

#endif

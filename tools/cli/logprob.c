#include "logprob.h"

#include <math.h>
#include <stdlib.h>

weir_status weir_logprobs_new(weir_logprobs *l, int64_t batch, weir_err *err)
{
    size_t n = (size_t)batch;
    l->kept = calloc(n, sizeof *l->kept);
    l->target = calloc(n, sizeof *l->target);
    l->after = calloc(n, sizeof *l->after);
    return l->kept && l->target && l->after ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

void weir_logprobs_free(weir_logprobs *l)
{
    free(l->kept);
    free(l->target);
    free(l->after);
}

/* Only what a kept row needs is asked for: row r's is known after row r - 1 of its window, which may lie in the batch
 * before. */
weir_status weir_logprobs_find(weir_logprobs *l, weir_run *run, const weir_batch *b, weir_err *err)
{
    int64_t last = b->rows - 1;
    for (int64_t r = 0; r < b->rows; r++)
        l->target[r] = -1;
    for (int64_t k = 0; k < b->kept.n; k++) {
        int64_t r = b->kept_row[k];
        if (r > 0)
            l->target[r - 1] = b->target[r - 1];
    }
    l->target[last] = b->target[last];
    WEIR_TRY(weir_run_logprobs(run, l->target, l->after, err));
    for (int64_t k = 0; k < b->kept.n; k++) {
        int64_t r = b->kept_row[k];
        if (r == 0)
            l->kept[k] = b->continues ? l->carry : NAN;
        else
            l->kept[k] = b->target[r - 1] >= 0 ? l->after[r - 1] : NAN;
    }
    l->carry = l->after[last];
    return WEIR_OK;
}

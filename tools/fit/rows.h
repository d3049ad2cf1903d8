/* fit/rows.h: the kept rows of a pass, at every place where a translator acts, and at the end of the stream. */
#ifndef WEIR_FIT_ROWS_H
#define WEIR_FIT_ROWS_H

#include <weir/weir.h>

typedef struct weir_fit_rows {
    int64_t L, C, n; /* n: kept rows of the last pass */
    int64_t room;    /* rows at most */
    float **x;       /* [L + 1]: [n,C] each: hook_resid_pre of every layer, hook_resid_post of the last */
} weir_fit_rows;

/* batch: rows of a pass at most. */
WEIR_CHECKED weir_status weir_fit_rows_new(weir_fit_rows *r, const weir_model *m, int64_t batch, weir_err *err);
void weir_fit_rows_free(weir_fit_rows *r);
/* Listens on a run, before its first pass; r must outlive it. */
WEIR_CHECKED weir_status weir_fit_rows_attach(weir_fit_rows *r, weir_run *run, weir_err *err);

#endif

/* rome/batch.h: the requests of an edit: one from the command line, or the records of a file. */
#ifndef WEIR_ROME_BATCH_H
#define WEIR_ROME_BATCH_H

#include "cli/tool.h"

typedef struct weir_batch_requests {
    weir_rome_request *q; /* [n] */
    int64_t n;
    weir_fact_list *facts; /* what q borrows from, one of the two */
    char *prompt;
} weir_batch_requests;

/* One. A prompt that spells the subject out, once, is taken as well. Returns an exit code; an error has been said.
 * weir_batch_free in every case. */
int weir_batch_one(weir_batch_requests *b, const weir_cli *cli, const char *prompt, const char *subject,
                   const char *target);
/* Records A:B of a file. Two that say something of the same subject behind the same prompt are refused. */
int weir_batch_read(weir_batch_requests *b, const weir_cli *cli, const char *path, const char *records);
void weir_batch_free(weir_batch_requests *b);

#endif

/* cli/report.h: what a run over text came to: for people on stderr, for programs as one JSON object. */
#ifndef WEIR_CLI_REPORT_H
#define WEIR_CLI_REPORT_H

#include "attach.h"
#include "feed.h"

typedef struct weir_report {
    const weir_model *model;
    const weir_run *run;
    const weir_docs *docs;
    weir_feed_counts counts;
    int64_t rows, rows_run; /* kept; run, context included */
    double seconds;         /* from the start of the program to the closed file */
    const char *dump;       /* NULL: none was written */
    weir_dump_summary summary;
    const char *hook_output; /* what attached hooks printed; NULL: nothing */
    const weir_attach *attach;
} weir_report;

void weir_report_say(const weir_report *r, const weir_cli *cli);
void weir_report_json(const weir_report *r, FILE *out);

#endif

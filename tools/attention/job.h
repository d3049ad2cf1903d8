/* attention/job.h: one run of `weir attention`:
 *
 *     heads.c           which heads are shown
 *     live.c, dump.c    where rows of patterns come from: a run over text, a dump
 *     gather.c          makes them maps, a window each
 *     output.c          opens the sink and its file
 *     text.c, lines.c, svg.c, html.c    the sinks (view.h)
 */
#ifndef WEIR_TOOLS_ATTENTION_JOB_H
#define WEIR_TOOLS_ATTENTION_JOB_H

#include "cli/output.h"
#include "cli/session.h"
#include "gather.h"

/* The values of the options; tools/attention.c has their table. */
typedef struct weir_attention_args {
    weir_session_args session;
    weir_opt_list layers, heads;
    const char *from, *out;
    int format, color; /* indices of the options' words */
    int64_t width;
    bool force;
} weir_attention_args;

/* In the order of the words of --format, behind "auto". */
typedef enum weir_attention_format {
    WEIR_ATTENTION_AUTO,
    WEIR_ATTENTION_TEXT,
    WEIR_ATTENTION_TSV,
    WEIR_ATTENTION_NDJSON,
    WEIR_ATTENTION_SVG,
    WEIR_ATTENTION_HTML
} weir_attention_format;
#define WEIR_ATTENTION_FORMAT_WORDS "auto|text|tsv|ndjson|svg|html"

typedef struct weir_attention_job {
    weir_cli *cli;
    const weir_attention_args *a;
    weir_attention_format format;
    const char *dump; /* NULL: text */
    weir_session session;
    weir_attention_head *head; /* [about.n_heads] */
    bool middle;               /* nobody chose layers: one is shown, and a line says so */
    weir_attention_about about;
    weir_attention_gather gather;
    weir_provenance_room room; /* of about.run */
    /* Fills gather until there is no more; returns an exit code. */
    int (*feed)(struct weir_attention_job *j);
    void *from; /* what feed reads, besides the session */
} weir_attention_job;

/* All return an exit code; an error has been said. */
/* Behind weir_session_model: --layer and --heads. there: is the layer's pattern at hand (NULL: every one is)? */
int weir_attention_choose(weir_attention_job *j, bool (*there)(const weir_attention_job *j, int layer));
int weir_attention_from_text(weir_attention_job *j);
int weir_attention_from_dump(weir_attention_job *j);
void weir_attention_close_dump(weir_attention_job *j);
/* Format, and whether the place of the output is free: asked before the work is done. */
int weir_attention_check_output(weir_attention_job *j);
int weir_attention_put(weir_attention_job *j);

/* The layer's point, or NULL where the model has none. */
const weir_point *weir_attention_point(const weir_model *m, int layer);
/* The heads of one layer: [*first, *first + the result) of about.head. */
int weir_attention_heads_of(const weir_attention_about *a, int layer, int *first);

#endif

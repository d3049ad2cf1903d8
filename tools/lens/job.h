/* lens/job.h: one run of logit-lens. Text or dump, it comes down to batches of rows of the stream:
 *
 *     options.c         the command line, as far as it needs no model
 *     lines.c           which places of the stream are shown
 *     translate.c       --tuned: what their rows pass through first
 *     ask.c             what needs the model: targets, statistics, tokens; what stands at the head of the output
 *     live.c, dump.c    fill batches: from a run over text, from a dump
 *     cells.c           measures a batch and hands it to the sinks
 *     output.c          opens the sinks and their files
 *     text.c, tsv.c, ndjson.c, h5.c, svg.c, html.c, plot.c    the sinks (view.h)
 *     corpus.h          --corpus: statistics of a whole text
 */
#ifndef WEIR_TOOLS_LENS_JOB_H
#define WEIR_TOOLS_LENS_JOB_H

#include "cells.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/session.h"

/* The values of the options; tools/logit-lens.c has their table. */
typedef struct weir_lens_args {
    weir_session_args session;
    weir_opt_list layers, sites;
    int64_t step, k, width;
    int stat, norm, color, format, dla; /* indices of the options' words */
    const char *target, *contrast, *tuned, *from, *out, *plot, *mask;
    bool no_softcap, mask_padding, bottom_up, force, corpus, merge;
} weir_lens_args;

/* In the order of the words of --format, behind "auto". */
typedef enum weir_lens_format {
    WEIR_LENS_AUTO,
    WEIR_LENS_TEXT,
    WEIR_LENS_TSV,
    WEIR_LENS_NDJSON,
    WEIR_LENS_SVG,
    WEIR_LENS_HTML,
    WEIR_LENS_H5,
    WEIR_LENS_FORMATS
} weir_lens_format;
#define WEIR_LENS_FORMAT_WORDS "auto|text|tsv|ndjson|svg|html|h5"
/* In the order of weir_lens_norm. */
#define WEIR_LENS_NORM_WORDS "recompute|cached|none"

typedef struct weir_lens_job {
    weir_cli *cli;
    weir_lens_args *a;
    char *layers, *sites; /* the lists, joined; layers NULL: all */
    weir_lens_format format;
    const char *dump;      /* NULL: text */
    const char *result;    /* (first) result of --corpus to be shown; NULL: none */
    int64_t shard, shards; /* of the text that is read; shards 0: all of it */
    weir_session session;
    weir_lens_stack stack;
    weir_lens_about about;
    weir_lens_cells cells;
    weir_lens_sink *sink[2];
    weir_provenance_room room; /* of about.run */
    char *target, *contrast[2];
    /* Fills batches until there are no more; returns an exit code. */
    int (*feed)(struct weir_lens_job *j);
    void *from; /* what feed reads, besides the session */
    double start; /* of the program */
} weir_lens_job;

/* What --format, --json or the file's name ask for; never AUTO. */
weir_lens_format weir_lens_format_of(const weir_lens_args *a);

/* All return an exit code; an error has been said. */
int weir_lens_options(weir_lens_job *j);
/* The stack of lines, behind weir_session_model. */
int weir_lens_ask_lines(weir_lens_job *j, bool (*there)(void *ctx, const weir_point *p), void *ctx);
/* Targets and statistics, once the tokenizer is there. */
int weir_lens_ask(weir_lens_job *j);
/* Is the place of each output free? Asked before the work is done. */
int weir_lens_check_output(const weir_lens_job *j);
/* Opens sinks, feeds them, and closes them: files appear whole or not at all. */
int weir_lens_put(weir_lens_job *j);

/* Is this a map that logit-lens wrote? And what is said of one that is given as the input: an error, a usage error.
 */
bool weir_lens_h5_is(const char *path);
int weir_lens_h5_tell(const weir_cli *cli, const char *path);

/* What the text is read from: open everything up to j->cells, and set j->about and j->feed. */
int weir_lens_from_text(weir_lens_job *j);
int weir_lens_from_dump(weir_lens_job *j);
void weir_lens_close_dump(weir_lens_job *j);

#endif

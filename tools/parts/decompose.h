/* parts/decompose.h: `weir decompose`, and what `logit-lens --dla` hands over to it. The map of this directory:
 *
 *   decompose.c  what is asked: options to a weir_decompose; its output
 *   sites.c     the hook points that are needed, and room for their values at some positions
 *   live.c       ... filled by a run over text
 *   dump.c       ... filled from a dump of weir trace
 *   take.c       values to parts (weir/parts.h): which are listed, in which order
 *   view.h       what is shown of one position; text.c, tsv.c, json.c show it
 */
#ifndef WEIR_PARTS_DECOMPOSE_H
#define WEIR_PARTS_DECOMPOSE_H

#include "cli/positions.h"
#include "cli/session.h"
#include "neurons/ask.h"
#include "sites.h"
#include "view.h"

/* How far the stream is taken apart; in the order of the words. */
typedef enum weir_level { WEIR_LEVEL_LAYER, WEIR_LEVEL_HEAD, WEIR_LEVEL_NEURON } weir_level;
#define WEIR_LEVEL_WORDS "layer|head|neuron"
/* By what the heads and neurons that are listed are chosen; auto: logit where there is a target, else share. */
typedef enum weir_rank_parts { WEIR_RANK_AUTO, WEIR_RANK_LOGIT, WEIR_RANK_SHARE, WEIR_RANK_NORM } weir_rank_parts;
#define WEIR_RANK_PARTS_WORDS "auto|logit|share|norm"
typedef enum weir_parts_format {
    WEIR_PARTS_AUTO, /* by the end of the file's name, else text */
    WEIR_PARTS_TEXT,
    WEIR_PARTS_TSV,
    WEIR_PARTS_NDJSON
} weir_parts_format;
#define WEIR_PARTS_FORMAT_WORDS "auto|text|tsv|ndjson"

typedef struct weir_decompose_args {
    weir_session_args session;
    const char *from;             /* a dump; NULL: text, or a dump that is the operand */
    const char *target;           /* "next", "final", a token, or "none"; NULL: "final", or none beside a contrast */
    const char *contrast;         /* "A,B"; NULL: none */
    weir_opt_list layers;         /* none: all */
    weir_opt_list heads, neurons; /* none: the k that matter most */
    int level, rank, format, colour;
    int64_t k, width; /* width 0: the terminal's */
    const char *out;
    bool check, force;
} weir_decompose_args;

/* Runs to its end; returns an exit code. Positions: --positions where it stands on the command line, else the last of
 * each document. */
int weir_decompose_run(weir_cli *cli, weir_decompose_args *a);

/* --- inside */

/* Which units of a kind are listed. */
typedef enum weir_units_mode { WEIR_UNITS_NONE, WEIR_UNITS_TOP, WEIR_UNITS_ALL, WEIR_UNITS_NAMED } weir_units_mode;
typedef struct weir_units {
    weir_units_mode mode;
    weir_asks asks; /* WEIR_UNITS_NAMED */
} weir_units;

typedef struct weir_decompose {
    weir_cli *cli;
    weir_decompose_args *a;
    weir_session session;
    bool *layer;  /* [L] chosen */
    char *layers; /* as asked; NULL: all */
    weir_units heads, neurons;
    int32_t target;  /* WEIR_TARGET_* or a token */
    int32_t against; /* a token; -1: none */
    weir_parts *parts;
    weir_sites values; /* of the positions that are being looked at */
    weir_view_parts view;
    const weir_sink *sink;
    FILE *out;
    char fingerprint[65];
    char *source, *interventions; /* JSON; NULL: none */
    const char *dump_path;        /* NULL: a run over text */
    char lacks[2][80];            /* of a dump: what it lacks for heads, for neurons; they are then left out */
    weir_dump_reader *dump;
    weir_positions asked;     /* of a dump: --positions */
    int64_t positions;        /* shown so far */
    int64_t without;          /* of them without a token to ask about */
    int64_t lost;             /* of them: the stream or what is asked of it is not finite */
    int64_t inexact, beyond;  /* of them: the edits are not the stream to the bit; the logits differ */
    int64_t bad_doc, bad_pos; /* the first of these */
} weir_decompose;

/* What is chosen of one layer is asked for by name or by rank. */
bool weir_decompose_wants(const weir_decompose *d, int64_t layer, bool mlp);
/* Looks at all positions of d->values and hands each to the sink. */
WEIR_CHECKED weir_status weir_decompose_take(weir_decompose *d, weir_err *err);
/* Each: opens what it needs; runs over everything, calling weir_decompose_take. Exit codes. */
int weir_decompose_open_text(weir_decompose *d);
int weir_decompose_open_dump(weir_decompose *d);
int weir_decompose_text(weir_decompose *d);
int weir_decompose_dump(weir_decompose *d);

#endif

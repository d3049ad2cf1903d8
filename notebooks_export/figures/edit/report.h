/* edit/report.h: a file of format weir-verify (tools/rome/README.md) as the figures of `edit` read it, and the figures.
 */
#ifndef WEIR_NOTEBOOK_EDIT_REPORT_H
#define WEIR_NOTEBOOK_EDIT_REPORT_H

#include "export/kind.h"

/* Sides of an array: before the edit, and with it. */
enum { WEIR_NB_BEFORE, WEIR_NB_AFTER, WEIR_NB_SIDES };
/* What a search came to, and its passes; in the order of the file. */
enum { WEIR_NB_SHARE, WEIR_NB_LAMBDA, WEIR_NB_V0, WEIR_NB_DELTA, WEIR_NB_KU, WEIR_NB_KCOS, WEIR_NB_CAME_TO };
enum { WEIR_NB_LOSS, WEIR_NB_NLL, WEIR_NB_KL, WEIR_NB_DECAY, WEIR_NB_P, WEIR_NB_CURVES };

typedef struct weir_nb_report {
    const weir_nb *nb;
    weir_arrays_in *r;
    weir_array_texts line, vocab, check, prompt, before, after, begin, module;
    int64_t lines, checks, questions, requests, passes, prompts, rows, texts, modules;
    double *value, *bound; /* [checks] and their flags */
    uint8_t *upper, *kept;
    uint8_t *kind, *right;                      /* [questions], [questions, 2] */
    int64_t *request;                           /* [questions] */
    double *new_logprob, *true_logprob, *top_p; /* [questions, 2] */
    double *came_to[WEIR_NB_CAME_TO];           /* [requests] */
    uint8_t *converged;
    int64_t *request_passes;
    double *curve[WEIR_NB_CURVES];   /* [passes] */
    int64_t *looked, *start, *count; /* [prompts]: question, rows */
    int32_t *token;                  /* [prompts, 2]: new, true */
    float *lens_new, *lens_true;     /* [lines, prompts, 2] */
    int32_t *id;                     /* [rows] */
    double *norm, *difference;       /* [lines, rows, 2], [lines, rows] */
    int64_t *tokens;                 /* [texts] */
    double *nll;                     /* [texts, 2] */
    char *text_name;
    int64_t *rank; /* [modules] */
    double *delta;
    /* what the parameters say, checked */
    int64_t chosen, shown, bins, worst; /* of prompts; so many questions, bars, texts */
    bool relative;
} weir_nb_report;

/* Reads and checks all of it. Returns an exit code; an error has been said. Close in every case. */
int weir_nb_report_open(weir_nb_report *v, const weir_nb *nb);
void weir_nb_report_close(weir_nb_report *v);
extern const char *const weir_nb_report_kind[]; /* of a question */

/* Figures, by the ids of their cells. data: weir_nb_report. */
typedef int weir_nb_report_figure(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
weir_nb_report_figure weir_nb_report_checks, weir_nb_report_answers, weir_nb_report_greedy, weir_nb_report_lens,
    weir_nb_report_stream, weir_nb_report_text, weir_nb_report_search;

#endif

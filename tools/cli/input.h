/* cli/input.h: where a tool's text comes from: arguments, --file, standard input, or brook's sentences (contract
 * section 4). */
#ifndef WEIR_CLI_INPUT_H
#define WEIR_CLI_INPUT_H

#include "common.h"

typedef struct weir_input {
    weir_docs *docs;
    bool one_sentence;    /* set before opening: where brook's sentences would be the text, the first alone is */
    char *sentence;       /* it, when it is the text; else NULL */
    char sentences[1200]; /* path of brook's sentences, when they are the text */
    const char *one_path; /* backing store of the paths, or of the one text */
    bool (*stop)(void *); /* set before opening, or NULL: as in weir_docs_options */
    weir_docs_options text; /* what was opened; borrows from the command line and from this */
    int64_t bytes;        /* of all texts and plain files together; -1: unknown (a pipe, gzip) */
} weir_input;

/* Decides and opens. Returns an exit code; an error has been said. *in is ready for weir_input_close in every case. */
int weir_input_open(weir_input *in, const weir_cli *cli, const weir_text_args *text, bool ids);
void weir_input_close(weir_input *in);
/* What the text was, in a few words for people: names of files, "arguments", ... */
void weir_input_title(const weir_input *in, char *buf, size_t n);

#endif

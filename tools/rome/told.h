/* rome/told.h: what is told of an edit: on the terminal, and in its edit.json. */
#ifndef WEIR_ROME_TOLD_H
#define WEIR_ROME_TOLD_H

#include "editor.h"
#include "sweep.h"

/* What the model answers to a request. */
typedef struct weir_told {
    weir_answer target;
    char *top;   /* text of the likeliest token */
    char *text;  /* greedy continuation, */
    int32_t *id; /* [made] and its tokens */
    int64_t made;
} weir_told;

/* prompt with "{}" for the subject, or whole. */
WEIR_CHECKED weir_status weir_told_ask(weir_told *r, weir_asker *asker, const weir_tokenizer *tok, const char *prompt,
                                       const char *subject, const char *target, int64_t tokens, weir_err *err);
void weir_told_free(weir_told *r);

/* A request, as keys of the object that is open. */
void weir_told_request(weir_jsonw *w, const weir_rome_request *q);
/* How edits are made, as keys of the object that is open: prefixes, statistics, options, earlier edits. */
void weir_told_how(weir_jsonw *w, const weir_editor *e);
/* {p, rank, top, top_p, text} */
void weir_told_write(weir_jsonw *w, const weir_told *r);
/* A line of numbers, and a line of text. */
void weir_told_say(FILE *out, const char *title, const weir_told *r);

/* An edit as it is told. */
typedef struct weir_told_edit {
    const weir_rome_request *q; /* [n], these four */
    const weir_rome_report *report;
    const weir_told *before, *after;
    int64_t n;
    const weir_sweep *sweep; /* that chose the layer; n 0: none */
} weir_told_edit;
/* The text of edit.json; to be freed. NULL: out of memory. */
char *weir_told_json(const weir_editor *e, const weir_told_edit *t);
void weir_told_print(FILE *out, const weir_editor *e, const weir_told_edit *t, const char *dir);

#endif

/* rome/texts.h: what the commands of rome read besides models: texts whose perplexity tells how much an edit changed of
 * everything else, questions, and ranges of records. */
#ifndef WEIR_ROME_TEXTS_H
#define WEIR_ROME_TEXTS_H

#include "editor.h"

typedef struct weir_rome_texts {
    weir_str *text; /* [n] each begins anew */
    int64_t n;
    char *room;       /* their bytes */
    const char *name; /* of the file, without its directory; "prefixes" */
    char sha256[65];  /* of their bytes, one after the other */
} weir_rome_texts;

/* The file at path: plain text is one text (a text a line with `lines`); a JSON array holds one in each of its strings,
 * or in the "Text" of each of its objects (the shape of ME-PPL, Yang et al., arXiv 2402.09656). Returns an exit code;
 * an error has been said. weir_rome_texts_free in every case. */
int weir_rome_texts_read(weir_rome_texts *t, const weir_cli *cli, const char *path, bool lines);
/* The file at path; without one the first 100 of the sentences that lie with the model, else the editor's prefixes. */
int weir_rome_texts_open(weir_rome_texts *t, const weir_editor *e, const char *path);
void weir_rome_texts_free(weir_rome_texts *t);
/* A file of the model's directory, which may not be there; to be freed. NULL: out of memory. */
char *weir_rome_model_file(const weir_editor *e, const char *name);

/* --records A:B of n: records A to B - 1; "A", "A:" from A on; ":B"; NULL: all. */
int weir_rome_range(const weir_cli *cli, const char *text, int64_t n, int64_t *first, int64_t *end);

/* "PROMPT=ANSWER" of an option, cut at the last '='. */
typedef struct weir_rome_pair {
    char *prompt, *answer; /* of one allocation: prompt's */
} weir_rome_pair;
int weir_rome_pairs(weir_rome_pair **out, const weir_cli *cli, const char *option, const weir_opt_list *list);
void weir_rome_pairs_free(weir_rome_pair *p, int n);

#endif

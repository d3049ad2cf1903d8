/* attention/view.h: what `weir attention` has to show, and who shows it. Whoever computes (a run, a dump) hands over
 * maps; a sink writes them in its format. Sinks see no model and no options. */
#ifndef WEIR_TOOLS_ATTENTION_VIEW_H
#define WEIR_TOOLS_ATTENTION_VIEW_H

#include "cli/provenance.h"
#include "cli/terminal.h"

typedef struct weir_attention_head {
    int layer, head;
} weir_attention_head;

/* What stands at the head of every output. Texts are never NULL but where said. Borrowed until end. */
typedef struct weir_attention_about {
    weir_provenance run;
    int64_t V;
    const weir_attention_head *head; /* [n_heads] by layer and head */
    int n_heads;
} weir_attention_about;

/* The patterns of one window of a document: how much each of its tokens that were asked for (queries) reads of every
 * token up to itself (keys). Borrowed for the call. */
typedef struct weir_attention_map {
    int64_t doc;        /* number of the document in the whole text */
    int64_t n;          /* tokens of the window */
    const int64_t *pos; /* [n] position in the document; -1: none (a BOS that a later window repeats) */
    const int32_t *id;  /* [n] -1: not known */
    int64_t n_queries;
    const int64_t *query;        /* [n_queries] their indices in the window, ascending */
    const int64_t *at;           /* [n_queries] where a query's row begins in a pattern */
    const float *const *pattern; /* [n_heads]: rows of query + 1 weights each, which sum to 1 */
} weir_attention_map;

/* Row q of a head's pattern: [query[q] + 1]. */
static inline const float *weir_attention_row(const weir_attention_map *m, int head, int64_t q)
{
    return m->pattern[head] + m->at[q];
}

/* A format. They fail with a plain line in err; a stream that cannot be written is the caller's to notice. */
typedef struct weir_attention_sink weir_attention_sink;
struct weir_attention_sink {
    weir_status (*begin)(weir_attention_sink *s, const weir_attention_about *a, weir_err *err);
    weir_status (*map)(weir_attention_sink *s, const weir_attention_map *m, weir_err *err);
    weir_status (*end)(weir_attention_sink *s, weir_err *err);
    void (*free)(weir_attention_sink *s);
    FILE *out;                         /* borrowed */
    const weir_tokenizer *tok;         /* NULL: tokens are named by their ids */
    const weir_attention_about *about; /* set by begin */
};

/* Each NULL: out of memory. */
weir_attention_sink *weir_attention_text_new(FILE *out, const weir_tokenizer *tok, int width, weir_colour colour);
weir_attention_sink *weir_attention_tsv_new(FILE *out, const weir_tokenizer *tok);
weir_attention_sink *weir_attention_ndjson_new(FILE *out, const weir_tokenizer *tok);
weir_attention_sink *weir_attention_svg_new(FILE *out, const weir_tokenizer *tok);
weir_attention_sink *weir_attention_html_new(FILE *out, const weir_tokenizer *tok);
/* For sinks that need no more: sets about; nothing; frees the sink itself. */
weir_status weir_attention_begin(weir_attention_sink *s, const weir_attention_about *a, weir_err *err);
weir_status weir_attention_end(weir_attention_sink *s, weir_err *err);
void weir_attention_free(weir_attention_sink *s);

/* head.c: what an output is about, as one object of JSON without a line break. */
void weir_attention_head_json(FILE *out, const char *schema, const weir_attention_about *a);

#endif

/* neurons/html_text.h: the text that a page shows, each token of it once. Places of many neurons stand in the same
 * sentences: the page holds stretches of documents, and a place is an index into them.
 *
 *     weir_html_text t = {0};
 *     weir_html_text_want(&t, &t.places, key) for all places, weir_html_text_want(&t, &t.ids, id) for other tokens
 *     weir_html_text_gather(&t, v)
 *     ... weir_html_text_at, weir_html_text_index, the three blocks ...
 *     weir_html_text_free(&t);
 */
#ifndef WEIR_NEURONS_HTML_TEXT_H
#define WEIR_NEURONS_HTML_TEXT_H

#include "page/base64.h"
#include "view.h"

/* Numbers, each once; ascending when settled. */
typedef struct weir_number_set {
    uint64_t *x; /* [n] */
    size_t n, room;
} weir_number_set;

/* Tokens of one document that follow one another. */
typedef struct weir_stretch {
    int64_t doc, pos;  /* of the first */
    int64_t at, n;     /* in weir_html_text.id */
    bool begins, ends; /* the document does, here */
} weir_stretch;

typedef struct weir_html_text {
    weir_number_set places, ids; /* places: document << 32 | position */
    weir_stretch *stretch;       /* [n_stretches] by document and position */
    size_t n_stretches, stretch_room;
    int32_t *id; /* [n] tokens of all stretches */
    size_t n, room;
    bool failed; /* out of memory: told at the end */
} weir_html_text;
void weir_html_text_free(weir_html_text *t);

static inline uint64_t weir_html_place(const weir_neuron_hit *hit)
{
    return (uint64_t)hit->doc << 32 | (uint64_t)hit->pos;
}

void weir_html_text_want(weir_html_text *t, weir_number_set *set, uint64_t x);
/* Finds the stretches around the places, and all ids. False: out of memory. */
bool weir_html_text_gather(weir_html_text *t, const weir_view *v);

/* Index of a place's token in all stretches; -1: the search keeps no tokens of it. */
int64_t weir_html_text_at(const weir_html_text *t, int64_t doc, int64_t pos);
/* Index of a token id that is in ids. */
int64_t weir_html_text_index(const weir_html_text *t, int32_t id);

/* Blocks of the page; page-data.js says what is in them. */
void weir_html_text_tokens(const weir_html_text *t, const weir_neurons *s, weir_base64 *b);
void weir_html_text_stream(const weir_html_text *t, weir_base64 *b);
void weir_html_text_stretches(const weir_html_text *t, weir_base64 *b);

#endif

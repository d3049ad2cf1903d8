/* lens/held.h: what a picture is made of, kept until its size is known: at most 100,000 cells. */
#ifndef WEIR_TOOLS_LENS_HELD_H
#define WEIR_TOOLS_LENS_HELD_H

#include "view.h"

enum { WEIR_LENS_HELD_CELLS = 100000, WEIR_LENS_HELD_STATS = 3 };

typedef struct weir_lens_held {
    weir_lens_sink sink; /* first: what callers hold */
    const weir_lens_about *about;
    weir_lens_stat stat[WEIR_LENS_HELD_STATS]; /* what is kept of each cell */
    int n_stats;
    int64_t n, room;    /* positions of all documents */
    int64_t *doc, *pos; /* [n] */
    int32_t *id, *next; /* [n] */
    int32_t *top;       /* [n, n_lines] the likeliest token; -1: none */
    float *logprob;     /* [n, n_lines] its */
    float *value;       /* [n_stats, room, n_lines] */
} weir_lens_held;

/* A sink that keeps pieces, and fails where there are too many cells, saying what to do. begin sets about, stat and
 * n_stats; end draws. NULL: out of memory. */
weir_lens_sink *weir_lens_held_new(FILE *out, const weir_tokenizer *tok,
                                   weir_status (*begin)(weir_lens_sink *s, const weir_lens_about *a, weir_err *err),
                                   weir_status (*end)(weir_lens_sink *s, weir_err *err));
/* Two lines of text at the top of the picture: lens and model; source. 50 units high. */
void weir_lens_held_title(const weir_lens_held *h, int x);

static inline float weir_lens_held_value(const weir_lens_held *h, int s, int64_t i, int line)
{
    return h->value[(s * h->room + i) * h->about->n_lines + line];
}

/* One document's positions [first, end). */
typedef struct weir_lens_held_doc {
    int64_t first, end;
} weir_lens_held_doc;
/* The document that begins at `first`; first == n: there is none (end == first). */
weir_lens_held_doc weir_lens_held_doc_at(const weir_lens_held *h, int64_t first);
/* The document's values that make a scale: of all positions but 0 and all lines but the stream before the first block,
 * where there are others: both are often far from the rest. x [(end - first) * n_lines];
 * returns how many. */
int64_t weir_lens_held_scaled(const weir_lens_held *h, int s, weir_lens_held_doc d, float *x);

#endif

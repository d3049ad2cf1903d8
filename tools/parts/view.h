/* parts/view.h: one position taken apart, as the outputs of `weir decompose` see it. A sink writes to a stream; that
 * the stream cannot be written is the caller's to notice. */
#ifndef WEIR_PARTS_VIEW_H
#define WEIR_PARTS_VIEW_H

#include <weir/parts.h>

#include "cli/terminal.h"
#include "cli/tool.h"

/* One line. */
typedef struct weir_part_line {
    weir_part part;
    weir_part_value value;
} weir_part_line;

typedef struct weir_part_lines {
    weir_part_line *line; /* [n] */
    int64_t n, room;
    int64_t of;     /* so many were computed */
    int64_t biases; /* among them */
    bool top;       /* the most important first; else in order */
} weir_part_lines;

/* Everything that an output says. Texts are never NULL but where said. */
typedef struct weir_view_parts {
    /* the same for all positions */
    const char *model, *fingerprint, *tokenizer;
    const char *source, *interventions; /* JSON; NULL: none */
    const char *target, *contrast;      /* as asked; NULL: none */
    const char *layers;                 /* as asked, or "all" */
    const char *rank;                   /* word of --rank-by */
    const weir_tokenizer *tok;          /* NULL: tokens are named by number */
    bool capped;                        /* logits have a soft cap */
    weir_colour colour;                 /* text */
    int width;                          /* text */
    bool one_object;                    /* json: one object instead of lines */
    /* the position */
    int64_t number; /* how many came before */
    int64_t doc, pos;
    int32_t id, next; /* the token there; the one that follows, -1: none */
    const weir_parts_sum *sum;
    const weir_part_line *edit; /* [n_edits] those that are listed, in the order in which they are added */
    int64_t n_edits;
    weir_part_value others; /* the edits of layers that are not listed, together: share and logit */
    int64_t n_others;
    const weir_part_lines *heads, *neurons; /* n = 0, of = 0: not asked about */
} weir_view_parts;

typedef struct weir_sink {
    const char *begins;                                    /* how a file of this kind begins */
    void (*begin)(FILE *out, const weir_view_parts *v);    /* without a position; may be NULL */
    bool (*position)(FILE *out, const weir_view_parts *v); /* false: out of memory */
    void (*end)(FILE *out, const weir_view_parts *v);      /* may be NULL */
} weir_sink;
extern const weir_sink weir_parts_text, weir_parts_tsv, weir_parts_json;

/* Of a part: "embed", "pos_embed", "attn", "mlp", "rest", "head", "attn_bias", "neuron", "mlp_bias". */
const char *weir_part_kind_name(weir_part_kind kind);
/* "L3 attn", "L3H5", "L3N421", "embed", ... */
const char *weir_part_name(const weir_part *part, char buf[48]);

#endif

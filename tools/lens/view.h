/* lens/view.h: what logit-lens has to show, and who shows it. Whoever computes (a run, a dump) hands over pieces of
 * documents; a sink writes them in its format. Sinks see no model and no options. */
#ifndef WEIR_TOOLS_LENS_VIEW_H
#define WEIR_TOOLS_LENS_VIEW_H

#include <stdio.h>

#include "cli/provenance.h"
#include "cli/terminal.h"

typedef enum weir_lens_stat {
    WEIR_STAT_PROB,     /* of the target, or, without one, of the row's own top token */
    WEIR_STAT_LOGIT,    /* the same token's */
    WEIR_STAT_RANK,     /* of the target (1-based); without one: of the final row's top token */
    WEIR_STAT_ENTROPY,  /* nats */
    WEIR_STAT_KL,       /* KL(final || row), nats */
    WEIR_STAT_KL_PREV,  /* KL(row || previous row of its site), nats; NaN: there is none */
    WEIR_STAT_JSD,      /* with the final row, nats, <= ln 2 */
    WEIR_STAT_CE,       /* -ln p(next token), nats */
    WEIR_STAT_CONTRAST, /* logit of A minus logit of B; only with --contrast */
    WEIR_STAT_COUNT
} weir_lens_stat;
/* "prob", "logit", "rank", "entropy", "kl", "kl_prev", "jsd", "ce", "contrast" */
extern const char *const weir_lens_stat_name[WEIR_STAT_COUNT];
#define WEIR_LENS_STAT_WORDS "prob|logit|rank|entropy|kl|kl-prev|jsd|ce|contrast"

/* A line of the table: a place of the stream. The lines of one site are a stack. Of resid_post it begins with "embed",
 * the stream before the first block (layer -1), and ends with "out", the stream behind the last one, which is the final
 * row: what the model itself predicts from. */
typedef struct weir_lens_line {
    const char *name; /* "embed", "L3", "L3 mid", "out": as the text table has it */
    const char *hook; /* "blocks.3.hook_resid_post" */
    const char *site; /* "resid_post" */
    int layer;        /* the block; -1: embed */
} weir_lens_line;

/* What stands at the head of every output. Texts are never NULL but where said. */
typedef struct weir_lens_about {
    weir_provenance run;
    const char *norm;           /* "recompute", "cached", "none": of all lines but the final row */
    bool no_softcap;            /* a soft cap was left out, so that the final row is not the model's own */
    bool padding_masked;        /* ids from padding_from on were left out of everything */
    const char *lens;           /* "logit lens", or "tuned lens of DIR (which)" */
    const char *target;         /* as asked: "next", "final", or the token's text; NULL: none */
    const char *contrast[2];    /* texts of A and B; NULL: none */
    const weir_lens_line *line; /* [n_lines] bottom (earliest) first; the last one is the final row */
    int n_lines;
    int64_t k;               /* top tokens of each cell */
    int64_t V, padding_from; /* ids from padding_from on name nothing (V: none) */
    weir_lens_stat shown;    /* the statistic that was asked for: colours, and the text table's numbers */
    unsigned has;            /* bit set of 1u << weir_lens_stat: statistics that were computed */
} weir_lens_about;

/* Positions [first, first + n) of one document. Everything is borrowed for the call. */
typedef struct weir_lens_piece {
    int64_t doc;                        /* number of the document in the whole text */
    int64_t n;                          /* positions, in ascending order */
    const int64_t *pos;                 /* [n] position in the document */
    const int32_t *id;                  /* [n] the token that stands there */
    const int32_t *next;                /* [n] the token that follows; -1: none */
    const int32_t *target;              /* [n] token asked about; -1: none */
    const float *stat[WEIR_STAT_COUNT]; /* [n_lines, n] each; NULL: not in `has`. Ranks are whole numbers, 0: none */
    const int32_t *top_id;              /* [n_lines, n, k], best first; -1: none */
    const float *top_logprob;           /* [n_lines, n, k] */
    bool doc_begins, doc_ends;
} weir_lens_piece;

/* A format. begin (a is borrowed until end), then for each document one or more pieces, then end. They fail with a
 * plain line in err; a stream that cannot be written is the caller's to notice. free in every case. */
typedef struct weir_lens_sink weir_lens_sink;
struct weir_lens_sink {
    weir_status (*begin)(weir_lens_sink *s, const weir_lens_about *a, weir_err *err);
    weir_status (*piece)(weir_lens_sink *s, const weir_lens_piece *p, weir_err *err);
    weir_status (*end)(weir_lens_sink *s, weir_err *err);
    void (*free)(weir_lens_sink *s);
    FILE *out;                 /* borrowed */
    const weir_tokenizer *tok; /* NULL: tokens are named by their ids */
};

/* How the text table is drawn. */
typedef struct weir_lens_text_options {
    int width; /* columns of the terminal: a longer text is cut into pages */
    weir_colour colour;
    bool bottom_up; /* the first layer at the bottom */
} weir_lens_text_options;

/* Each NULL: out of memory. */
weir_lens_sink *weir_lens_text_new(FILE *out, const weir_tokenizer *tok, const weir_lens_text_options *o);
weir_lens_sink *weir_lens_tsv_new(FILE *out, const weir_tokenizer *tok);
weir_lens_sink *weir_lens_ndjson_new(FILE *out, const weir_tokenizer *tok);
weir_lens_sink *weir_lens_svg_new(FILE *out, const weir_tokenizer *tok);  /* the heat map, one document below another */
weir_lens_sink *weir_lens_plot_new(FILE *out, const weir_tokenizer *tok); /* SVG: lines of rank, entropy, KL by layer */
weir_lens_sink *weir_lens_html_new(FILE *out, const weir_tokenizer *tok);
/* HDF5, format weir-lens-map: the file appears at the end. path is borrowed. threads 0: all processors. */
weir_lens_sink *weir_lens_h5_new(const char *path, int threads, const weir_tokenizer *tok);

#endif

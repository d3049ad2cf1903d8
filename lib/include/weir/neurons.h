/* weir/neurons.h: which tokens fire a neuron: one pass over any amount of text, in memory that depends on the number of
 * neurons and on k alone. What `neuron-top` is made of.
 *
 * A search holds tables, one for each hook point, and in a table neurons (units of the point). It is fed rows, pass by
 * pass; for each neuron it keeps the k highest and lowest places, exact sums, counts and a histogram, and, if asked,
 * samples of places. The result does not depend on how the text was cut into passes, on threads, on the instruction
 * set, or on shards: searches over the shards of a text, merged in any order, hold the same bytes as one over the whole.
 *
 *     weir_neurons *s;
 *     weir_neurons_options o; weir_neurons_options_init(&o);
 *     weir_neurons_new(&s, &o, tables, n_tables, &err);
 *     weir_neurons_vocab(s, tok, &err);
 *     for each pass {
 *         weir_neurons_rows(s, &rows, &err);                          // the tokens, once
 *         for each table: weir_neurons_add(s, t, &values, &err);      // the activations
 *     }
 *     weir_neurons_finish(s, &err);                                   // sorts; finds the tokens around what is listed
 *     weir_neurons_write(s, "neurons.h5", ...);                       // or weir_neurons_hits, _stats, _context, ...
 *     weir_neurons_free(s);
 *
 * Statistics count every row that is fed and not masked, duplicates too; only lists collapse them. Values that are NaN
 * or infinite are counted (weir_neuron_stats.nonfinite) and left out of everything else.
 *
 * A search belongs to one thread at a time; threads are used inside.
 */
#ifndef WEIR_NEURONS_H
#define WEIR_NEURONS_H

#include "edit.h"
#include "model.h"
#include "tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_neurons weir_neurons;

/* Lists that can be kept. Equal values: the lower document, then the lower position first; -0 equals +0. */
typedef enum weir_neurons_list {
    WEIR_NEURONS_TOP = 0,    /* the highest values */
    WEIR_NEURONS_BOTTOM = 1, /* the lowest */
    WEIR_NEURONS_ABS = 2,    /* the largest magnitudes; values keep their sign */
    WEIR_NEURONS_LISTS = 3
} weir_neurons_list;

/* What may stand only once in a list: its best place is listed, with the count of places that have exactly its value
 * (weir_neuron_hit.count). Values are the same bits for the same text so far, so the count of a repeated text is the
 * number of its repetitions. */
typedef enum weir_neurons_dedup {
    WEIR_DEDUP_NONE = 0,
    WEIR_DEDUP_WINDOW, /* a window of the model's context, in one document */
    WEIR_DEDUP_DOC,    /* a document */
    WEIR_DEDUP_TEXT    /* the last dedup_n tokens up to this one (or all, behind a document's begin); with
                          WEIR_RANK_MEAN the whole document */
} weir_neurons_dedup;

typedef enum weir_neurons_rank {
    WEIR_RANK_MAX = 0, /* each token stands for itself: the figure of merit is its activation */
    WEIR_RANK_MEAN     /* each document: the mean over its unmasked tokens, in the order of their positions, in double,
                          rounded to float. Its place is that of its highest (BOTTOM: lowest, ABS: largest) token */
} weir_neurons_rank;

enum {
    WEIR_NEURONS_MAX_THRESHOLDS = 16,
    WEIR_NEURONS_MAX_NAMED = 64,
    WEIR_NEURONS_MAX_K = 10000,
    WEIR_NEURONS_MAX_DEDUP_N = 4096,
    /* Bins of the histogram, in ascending order of value; see weir_neurons_bin. */
    WEIR_NEURONS_BIN_SIDE = 320, /* 2^-20 <= |x| < 2^20: 40 exponents x 8 eighths of a power of two */
    WEIR_NEURONS_BINS = 2 * WEIR_NEURONS_BIN_SIDE + 3,
    WEIR_NEURONS_BANDS = 5
};

/* The bin of a finite x: sign, exponent, and the three highest bits of the mantissa. 0: x <= -2^20; 1..320: negative, the
 * largest magnitude first; 321: |x| < 2^-20; 322..641: positive; 642: x >= 2^20. */
WEIR_API int weir_neurons_bin(float x);
/* The lower edge of a bin (-infinity for 0); bin b holds [edge(b), edge(b+1)) where positive, (edge(b), edge(b+1)] where
 * negative, and the open interval between for b = 321. weir_neurons_edge(WEIR_NEURONS_BINS) = infinity. */
WEIR_API double weir_neurons_edge(int bin);

/* Bands of the ranks from low to high, from which samples are drawn: [0, .5], (.5, .9], (.9, .99], (.99, .999], (.999, 1]
 * of the counted values. A whole bin belongs to the band in which its highest value lies. The edges: [0 ..
 * WEIR_NEURONS_BANDS]. */
WEIR_API double weir_neurons_band_edge(int i);

/* A neuron that more is kept of: mean by token, correlations, and the values around what is listed. */
typedef struct weir_neurons_named {
    int table;
    int64_t neuron; /* index in the table */
} weir_neurons_named;

typedef struct weir_neurons_options {
    int64_t k;      /* places of a list, 1 .. WEIR_NEURONS_MAX_K; default 20 */
    unsigned lists; /* bit set of 1u << weir_neurons_list; default top and bottom. May be 0 */
    weir_neurons_rank rank;
    weir_neurons_dedup dedup; /* default WEIR_DEDUP_TEXT */
    int64_t dedup_n;          /* WEIR_DEDUP_TEXT: tokens compared; default 8 */
    double threshold[WEIR_NEURONS_MAX_THRESHOLDS]; /* [n_thresholds] densities are shares of values above these (rounded to
                                                      float); the first is 0 and always there */
    int n_thresholds;                              /* default 1 */
    int64_t per_band; /* samples of each band; 0 (default): none are kept. At most 100 */
    int64_t random;   /* places drawn from all counted rows, the same for every neuron of a table; default 0, at most 1000 */
    uint64_t seed;    /* of both */
    int64_t before, after; /* tokens of context kept around each place; default 10, 10. INT32_MAX: the whole document */
    const weir_neurons_named *named; /* [n_named] */
    int n_named;
    int64_t token_means; /* for named neurons: mean by token; kept for all ids below this; 0: none */
    bool correlate;      /* for named neurons: with every unit of their hook point. Needs whole rows (weir_neurons_values) */
    int threads;         /* 0: all processors */
    const char *kernel;  /* as in weir_run_options; the results are the same */
    const char *spool;   /* directory for temporary files (12 bytes a token, and a token and named neuron); NULL: $TMPDIR,
                            else /tmp */
} weir_neurons_options;
WEIR_API void weir_neurons_options_init(weir_neurons_options *o);

/* One hook point. Strings and units are copied. */
typedef struct weir_neurons_table {
    const char *hook;     /* "blocks.3.mlp.hook_post" */
    const char *site;     /* what was asked: "post", "gate-act", or the hook's name */
    int layer;            /* -1: outside the blocks */
    int64_t width;        /* units of a row of the hook point */
    int64_t n;            /* neurons searched */
    const int64_t *units; /* [n] which, ascending; NULL: all, n = width */
} weir_neurons_table;

/* Errors (WEIR_E_ARG): options out of range, units that are not ascending, two tables of one hook and site. */
WEIR_API WEIR_CHECKED weir_status weir_neurons_new(weir_neurons **out, const weir_neurons_options *o,
                                                   const weir_neurons_table *table, int n_tables, weir_err *err);
WEIR_API void weir_neurons_free(weir_neurons *s);
WEIR_API int weir_neurons_n_tables(const weir_neurons *s);
WEIR_API const weir_neurons_table *weir_neurons_table_at(const weir_neurons *s, int t); /* borrowed from s */
/* Borrowed from s; also of one that was read from a file. */
WEIR_API const weir_neurons_options *weir_neurons_options_of(const weir_neurons *s);

/* The bytes of every token and which are special, so that results can be read without a model: copied. Either of a
 * tokenizer, or as n tokens with bytes[offset[i] .. offset[i+1]); special [n] or NULL. */
WEIR_API WEIR_CHECKED weir_status weir_neurons_vocab(weir_neurons *s, const weir_tokenizer *tok, weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_neurons_vocab_bytes(weir_neurons *s, int64_t n, const uint8_t *bytes,
                                                           const int64_t *offset, const uint8_t *special,
                                                           weir_err *err);
WEIR_API int64_t weir_neurons_vocab_size(const weir_neurons *s);
/* Borrowed; empty for ids that the vocabulary does not have. */
WEIR_API weir_str weir_neurons_token(const weir_neurons *s, int32_t id);
WEIR_API bool weir_neurons_token_special(const weir_neurons *s, int32_t id);

/* --- feeding */

enum { WEIR_MASK_BOS = 1, WEIR_MASK_SPECIAL = 2, WEIR_MASK_ID = 3, WEIR_MASK_KINDS = 4 };

/* The rows of one pass: documents in ascending order, positions ascending within a document, both across passes too, but
 * for tokens that a later window repeats as context: those are recognised and not counted again. */
typedef struct weir_neurons_rows_of {
    int64_t n;
    const int32_t *id;      /* [n] */
    const int64_t *doc;     /* [n] number of the document in the whole text; below 2^32 */
    const int64_t *pos;     /* [n] position in the document, below 2^32; -1: none (a BOS that a later window repeats): the
                               row is left out of everything */
    const int64_t *ctx_pos; /* [n] position in the window */
    const uint8_t *keep;    /* [n] 0: context only, not counted; NULL: all rows count */
    const uint8_t *mask;    /* [n] 0, or why the row is not counted: WEIR_MASK_*; NULL: none is */
} weir_neurons_rows_of;

/* Begins a pass; what rows point to must live until the next. again: the same rows have been given before, for other
 * tables (a dump is read hook by hook): they are not counted and not kept a second time. A table sees each row once. */
WEIR_API WEIR_CHECKED weir_status weir_neurons_rows(weir_neurons *s, const weir_neurons_rows_of *rows, bool again,
                                                    weir_err *err);

/* Activations of the pass's rows for one table: row t begins at x + t * stride. */
typedef struct weir_neurons_values {
    const float *x;
    int64_t stride;
    bool whole;          /* rows have all `width` columns, neuron i in column units[i]; else they have n, neuron i in i */
    const uint8_t *skip; /* [n] 1: this row is left out of this table (and counted as such), or NULL */
} weir_neurons_values;
WEIR_API WEIR_CHECKED weir_status weir_neurons_add(weir_neurons *s, int t, const weir_neurons_values *v, weir_err *err);

/* No document is under way: what has been fed is whole documents as far as s can see (the next row may still continue
 * the last one: the caller knows). Ends the last document (WEIR_RANK_MEAN). Called by weir_neurons_finish. */
WEIR_API WEIR_CHECKED weir_status weir_neurons_settle(weir_neurons *s, weir_err *err);

/* Behind the last pass, and before a result is written or looked at: sorts the lists and gathers the tokens around what
 * they hold. Feeding may go on afterwards (a checkpoint). */
WEIR_API WEIR_CHECKED weir_status weir_neurons_finish(weir_neurons *s, weir_err *err);

/* --- files: HDF5, format "weir-neurons" (lib/search/README.md has the schema). A file holds all that merging and going
 * on need; it names no time, command line or thread, so that equal results are equal files. */

/* What a result is about, beside the numbers: all kept as attributes, all compared when results are merged or gone on
 * with, except shard, shards and complete. Strings are copied; NULL is "". */
typedef struct weir_neurons_about {
    const char *model, *family, *fingerprint, *tokenizer; /* name, family, hashes */
    const char *source;  /* JSON: what the text is and how it was cut (sources with sizes and hashes, bos, ctx, stride, mask),
                            without the shard */
    const char *interventions; /* JSON array */
    int64_t shard, shards; /* shards 0: the whole text */
    int64_t rows_done;     /* rows fed in all; where a run that goes on begins */
    bool complete;
} weir_neurons_about;

/* s keeps a copy: for outputs other than files. */
WEIR_API WEIR_CHECKED weir_status weir_neurons_set_about(weir_neurons *s, const weir_neurons_about *about, weir_err *err);

/* After weir_neurons_finish. PATH appears whole or not at all; one that exists is replaced only if it is a weir-neurons
 * file. s keeps a copy of about (weir_neurons_about_of). */
WEIR_API WEIR_CHECKED weir_status weir_neurons_write(weir_neurons *s, const char *path, const weir_neurons_about *about,
                                                     weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_neurons_read(weir_neurons **out, const char *path, int threads, weir_err *err);
/* What was set, or of the file that s was read from or written to; all empty before. */
WEIR_API const weir_neurons_about *weir_neurons_about_of(const weir_neurons *s);
/* Is PATH a file of this format (true), something else, or nothing (false)? */
WEIR_API bool weir_neurons_is_file(const char *path);

/* Adds what `from` holds to `to`: shards of one text, in any order, or what an interrupted run left. Refused
 * (WEIR_E_ARG, with what differs): other options, tables, model or source; documents that both have. `from` may be freed.
 * weir_neurons_finish comes after the last. */
WEIR_API WEIR_CHECKED weir_status weir_neurons_merge(weir_neurons *to, const weir_neurons *from, weir_err *err);

/* May a run that would make `now` (fresh, with its vocabulary) about `about` go on with `was`, what it left? WEIR_E_ARG, with
 * what differs: options, tables, vocabulary, model, source or shard. */
WEIR_API WEIR_CHECKED weir_status weir_neurons_same(const weir_neurons *was, const weir_neurons *now,
                                                    const weir_neurons_about *about, weir_err *err);

/* --- results, after weir_neurons_finish (or of a file) */

typedef struct weir_neurons_counts {
    int64_t docs, rows;              /* documents and rows seen, context not counted again */
    int64_t masked[WEIR_MASK_KINDS]; /* of the rows, by WEIR_MASK_*; [0]: rows that were not masked */
    int64_t context;                 /* rows that were context only */
} weir_neurons_counts;
WEIR_API weir_neurons_counts weir_neurons_counts_of(const weir_neurons *s);
WEIR_API int64_t weir_neurons_skipped(const weir_neurons *s, int t); /* rows that weir_neurons_values.skip left out */

/* Population statistics of the counted finite values x: sums of x, x^2, x^3, x^4 are kept as fixed-point numbers (see
 * lib/search/moments.h for their quantum) and turned into these at the end, without cancellation.
 *   sd = sqrt(m2), skew = m3 / m2^1.5, kurtosis = m4 / m2^2 (3 for a normal distribution), m_j the j-th central moment.
 * NaN where they have no meaning: no value; sd < 2^-38 (so also 0) for skew and kurtosis; a magnitude of 2^24 or more for
 * all four. */
typedef struct weir_neuron_stats {
    int64_t count, nonfinite;
    double mean, sd, skew, kurtosis;
    float min, max;                             /* NaN: no value */
    int64_t above[WEIR_NEURONS_MAX_THRESHOLDS]; /* [n_thresholds] values above each; density = above / count */
} weir_neuron_stats;
/* weir_neuron_stats.nonfinite alone, which is known at no cost. */
WEIR_API int64_t weir_neurons_nonfinite(const weir_neurons *s, int t, int64_t i);
WEIR_API void weir_neurons_stats(const weir_neurons *s, int t, int64_t i, weir_neuron_stats *out);
/* Counts by bin, out [WEIR_NEURONS_BINS]; they add up to stats.count. */
WEIR_API void weir_neurons_hist(const weir_neurons *s, int t, int64_t i, int64_t *out);

typedef struct weir_neuron_hit {
    float value;
    int64_t doc, pos;
    int64_t count; /* places that are the same (weir_neurons_dedup) and have exactly this value, itself included. 0: not
                      known, because the first place that is not listed has the same value; 1 without dedup, and in samples */
} weir_neuron_hit;
/* A list, best first, out [k]; returns how many there are. 0 for a list that is not kept. */
WEIR_API int64_t weir_neurons_hits(const weir_neurons *s, int t, int64_t i, weir_neurons_list which,
                                   weir_neuron_hit *out);
/* The places of a band that have the smallest hash of (seed, document, position), by descending value, out [per_band]. */
WEIR_API int64_t weir_neurons_band(const weir_neurons *s, int t, int64_t i, int band, weir_neuron_hit *out);
/* The places of all counted rows that have the smallest hash, by (document, position), out [random]. A value that is not
 * finite is NaN. */
WEIR_API int64_t weir_neurons_random(const weir_neurons *s, int t, int64_t i, weir_neuron_hit *out);

/* The tokens around a place that a list or sample holds, as far as the document reaches: options.before + 3 ahead of it, at
 * least 5, to options.after + 3 behind it. The three more are what a character needs that is split over tokens at the edge of
 * what is shown, and what came next; five are what weir_neurons_clusters looks at. Borrowed from s until the next
 * weir_neurons_finish. */
typedef struct weir_neurons_context {
    const int32_t *id;  /* [n] tokens of consecutive positions, the place's among them */
    int64_t n, hit;     /* id[hit] is the place's */
    int64_t pos;        /* of id[0] in the document */
    const float *value; /* [n] the activations of a named neuron at these tokens, NaN where they were masked; or NULL */
    bool begins, ends;  /* id[0] is the document's first token; id[n-1] the last one that was seen of it */
} weir_neurons_context;
/* named: index into options.named, or -1. n = 0: the place is not one that s keeps tokens of. */
WEIR_API weir_neurons_context weir_neurons_context_of(const weir_neurons *s, int64_t doc, int64_t pos, int named);
/* The index in options.named of neuron i of table t, or -1. */
WEIR_API int weir_neurons_find_named(const weir_neurons *s, int t, int64_t i);

/* --- more about named neurons */

typedef struct weir_token_mean {
    int32_t id;
    int64_t count;
    double mean; /* of its activations, from an exact sum */
} weir_token_mean;
/* Tokens seen at least min_count times, by descending mean (ascending: false), ties to the lower id; at most n.
 * Returns how many. */
WEIR_API int64_t weir_neurons_token_means(const weir_neurons *s, int named, bool descending, int64_t min_count,
                                          int64_t n, weir_token_mean *out);

/* With unit u of the same hook point: Pearson's r over rows where both are finite (NaN if one is constant or reaches 2^24),
 * and the Jaccard index of firing (> 0): rows where both fire / rows where either does. */
typedef struct weir_neuron_relation {
    int64_t unit;
    double r, cofire;
} weir_neuron_relation;
/* By descending |r| (by_cofire: descending cofire), ties to the lower unit, itself left out; at most n. Returns how many;
 * 0 if correlations were not asked for. */
WEIR_API int64_t weir_neurons_related(const weir_neurons *s, int named, bool by_cofire, int64_t n,
                                      weir_neuron_relation *out);

/* --- how many things a neuron stands for: its top contexts, clustered. lib/search/cluster.c has the numbers, and the limits.
 * Two contexts are alike by the weighted Jaccard index of their tokens: the firing token counts most, then its neighbours
 * by distance, and different firing tokens of one kind (numbers, capitalised words, marks, a script) are alike in part.
 * Clusters: average linkage, cut at a fixed mean similarity. It compares spellings: words that only mean the same are
 * many things. */
typedef struct weir_neuron_clusters {
    int64_t places;    /* contexts compared: the list's, at most the first 256 */
    int64_t clusters;  /* 1: they are all alike */
    double effective;  /* exp of the entropy of the clusters' sizes, 1 .. clusters: the polysemanticity score */
} weir_neuron_clusters;
/* cluster [k] may be NULL: the cluster of each place of the list, numbered from 0 in the order of first appearance; -1 for
 * what was not compared, and behind the list's end. All 0 for an empty list. */
WEIR_API WEIR_CHECKED weir_status weir_neurons_clusters(const weir_neurons *s, int t, int64_t i, weir_neurons_list which,
                                                        weir_neuron_clusters *out, int32_t *cluster, weir_err *err);

/* --- what the weights say, without any text
 *
 * in-tokens: key k (a row of the MLP's first projection; gated models have two, gate and up) through the embedding E:
 *     in(t) = sum_c k_c g_c (e_tc - mean_c e_t)     g: gain of the norm that the MLP reads, also in a parallel block;
 *                                                   LayerNorm: with the mean, RMSNorm: without
 * e_t with the model's embedding scale, without positions; no division by the row's norm, no biases: a direction, not an
 * activation.
 * out-tokens: value v (a column of the down projection) through the unembedding U:
 *     out(t) = sum_c (v_c - mean v) g_c U_tc        g: gain of the final norm; RMSNorm: without the mean
 * Where a norm stands behind the MLP (Gemma 2), v_c p_c takes the place of v_c, p its gain. Scales of norms depend on the
 * text and are left out, and so are biases of the head and a soft cap, which changes no order. Weights are what is stored
 * (block types dequantised); a tied unembedding is the embedding without its scale. The order of arithmetic, which
 * fixes every bit: lib/search/weights_find.c. Scores that are NaN are not ranked.
 * Padding rows of the vocabulary (ids that the tokenizer does not have) are not listed: weir_neurons_weights_options.vocab.
 */
typedef enum weir_weight_side { WEIR_SIDE_IN = 0, WEIR_SIDE_UP = 1, WEIR_SIDE_OUT = 2, WEIR_SIDES = 3 } weir_weight_side;

typedef struct weir_weight_token {
    int32_t id; /* -1: fewer tokens than asked */
    float score;
} weir_weight_token;

typedef struct weir_neurons_weights_options {
    int64_t n;     /* tokens at each end; default 10, at most 100 */
    const weir_edit *const *edits; /* [n_edits] the weights are meant with these */
    int n_edits;
    int64_t vocab; /* ids below this are ranked; 0: V */
    int threads;
    const char *kernel;
    bool (*stop)(void *user); /* asked now and then; true ends the work with WEIR_STOP. NULL: it goes on */
    void (*progress)(void *user, double share); /* may be NULL */
    void *user;
} weir_neurons_weights_options;
WEIR_API void weir_neurons_weights_options_init(weir_neurons_weights_options *o);
/* Multiply-adds that weir_neurons_weights takes: neurons x sides x vocabulary x width. */
WEIR_API double weir_neurons_weights_cost(const weir_neurons *s, const weir_model *m);
/* Finds them for the neurons of every table that lies in an MLP's hidden layer (pre, gate, gate-act, up, post); others
 * have none. Kept in s, and by weir_neurons_write. Equal scores: the lower id first. Memory: tiles of the vocabulary. */
WEIR_API WEIR_CHECKED weir_status weir_neurons_weights(weir_neurons *s, const weir_model *m,
                                                       const weir_neurons_weights_options *o, weir_err *err);
/* positive: the n tokens with the highest scores, best first; else the lowest, lowest first. NULL, *n = 0: not computed, or
 * the neuron has no such side. Borrowed. */
WEIR_API const weir_weight_token *weir_neurons_weight_tokens(const weir_neurons *s, int t, int64_t i,
                                                             weir_weight_side side, bool positive, int64_t *n);
/* How many places of the top list are followed by the out-token with the highest score: *agree of *places (those that have
 * a next token). Geva et al. 2021, section 4. False: no out-tokens, or no list. */
WEIR_API bool weir_neurons_agreement(const weir_neurons *s, int t, int64_t i, int64_t *agree, int64_t *places);

/* The activation of a gated MLP applied to its gate, n values; the bits that the model's own pass has (hook_post = this *
 * up). WEIR_E_UNSUPPORTED when the model's MLP is not gated. x may be out. */
WEIR_API WEIR_CHECKED weir_status weir_gate_act(const weir_model *m, const char *kernel, const float *x, int64_t n, float *out,
                                                weir_err *err);

#ifdef __cplusplus
}
#endif
#endif

/* search/impl.h: what a search holds, for the files of this room. The promise (weir/neurons.h): everything here is a
 * function of the set of rows that were fed, never of how they came. Lists keep the best by a total order, sums are
 * integers, samples are the smallest by a hash of the place.
 *
 * Who does what: neurons.c new, free; vocab.c; results.c small questions; rows.c a pass's rows: masks, keys of
 * duplicates, hashes; add.c one table's values, cut into blocks of neurons over threads; scan_*.c the kernels that look
 * at every value (scan.h: counts, histogram, what may enter a list); list.c lists; samples.c bands and random places;
 * moments*.c exact sums; mean.c WEIR_RANK_MEAN; detail.c named neurons; spool.c temporary files; wanted.c, texts.c the
 * tokens that results need; file*.c, merge.c; cluster.c; weights.c, gate.c.
 */
#ifndef WEIR_SEARCH_IMPL_H
#define WEIR_SEARCH_IMPL_H

#include <weir/neurons.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "search/moments.h"
#include "search/spool.h"

enum {
    WEIR_NEURONS_BLOCK = 64, /* neurons that one thread looks at together */
    WEIR_SAMPLES_MAX = 100,  /* options.per_band */
};

/* A place of the text. */
typedef struct weir_place {
    uint32_t doc, pos;
} weir_place;

static inline bool weir_place_before(weir_place a, weir_place b)
{
    return a.doc < b.doc || (a.doc == b.doc && a.pos < b.pos);
}

/* Lists of the n neurons of a table: neuron i's lie at [i * room, i * room + size[i]), best first. Values and slots
 * move; places, keys and counts stay in their slots. room = k + 1: the place that just missed the list tells which
 * counts are known (weir_neuron_hit.count). */
typedef struct weir_lists {
    int64_t n, room;
    int32_t *size;      /* [n] */
    float *value;       /* [n, room] */
    uint16_t *slot;     /* [n, room] where the rest of an entry is */
    weir_place *at;     /* [n, room], by slot */
    uint64_t *key;      /* [n, room], by slot; NULL without dedup */
    uint32_t *count;    /* [n, room], by slot; NULL without dedup */
    _Atomic bool mixed; /* places have come by weir_lists_put: later ones may be in than those that follow */
} weir_lists;

/* One entry, as lists take and give it. */
typedef struct weir_entry {
    float value;
    weir_place at;
    uint64_t key;
    uint32_t count;
} weir_entry;

/* The places of a band: those of every bin with the smallest hashes, per_band of them. Sparse: only bins that occur. */
typedef struct weir_sample {
    uint64_t hash;
    weir_place at;
    float value;
    uint32_t bin;
} weir_sample;
typedef struct weir_samples {
    struct weir_bin_samples *neuron; /* [n]; of samples.c alone */
} weir_samples;

/* Random places of a table: the smallest by (hash, place). */
typedef struct weir_random {
    int64_t n, room; /* so far; at most options.random */
    uint64_t *hash;  /* [room], ascending */
    weir_place *at;  /* [room] */
    float *value;    /* [room, neurons]: place r's lie at value + row[r] * neurons; NaN: not finite */
    int32_t *row;    /* [room] */
} weir_random;

/* WEIR_RANK_MEAN: the document that is under way, for each neuron. */
typedef struct weir_mean {
    bool open; /* a document is under way: */
    uint32_t doc;
    double *sum;                     /* [n] */
    int64_t *count;                  /* [n] finite values */
    float *peak[WEIR_NEURONS_LISTS]; /* [n] by list: the highest, lowest, largest value, and its position */
    uint32_t *peak_at[WEIR_NEURONS_LISTS];
} weir_mean;

typedef struct weir_ntable {
    weir_neurons_table pub; /* own copies */
    int64_t n;
    bool fed; /* it has seen rows, up to this place: */
    weir_place last;
    int64_t rows; /* counted rows: not masked, not skipped */
    int64_t skipped;
    int64_t *nonfinite;                  /* [n] */
    int64_t *above;                      /* [n, n_thresholds] */
    float *min, *max;                    /* [n] */
    uint32_t *hist;                      /* [n, WEIR_NEURONS_BINS]: since the last spill, below 2^31 each */
    int64_t *hist_all;                   /* [n, WEIR_NEURONS_BINS] what was spilt before, or NULL */
    int64_t hist_rows;                   /* rows counted in hist since the last spill */
    weir_sums *sums;                     /* [n] */
    weir_lists list[WEIR_NEURONS_LISTS]; /* room 0: not kept */
    weir_samples samples;
    weir_random random;
    weir_mean mean;
} weir_ntable;

/* A pass: its counted rows, packed. */
typedef struct weir_pass {
    int64_t n; /* rows of the pass, all of them */
    int64_t counted;
    int32_t *row;   /* [counted] which rows of the pass */
    weir_place *at; /* [counted] */
    uint64_t *key;  /* [counted] of duplicates; unset without dedup */
    uint64_t *hash; /* [counted] weir_place_hash with options.seed */
    int32_t *id;    /* [counted] */
    /* Of one table at a time (add.c): the counted rows that it takes, as indices of the arrays above. */
    int32_t *taken;  /* [counted] */
    uint64_t *ended; /* [counted] WEIR_RANK_MEAN: key of the document that ended before this row */
    int64_t room;
} weir_pass;

/* Tokens around results: places ascending, each once. */
typedef struct weir_texts {
    int64_t n;
    weir_place *at;
    int32_t *id;
    uint8_t *edge; /* 1: the document's first token; 2: the last that was seen; or both */
    float **value; /* [n_named][n] activations, NaN unknown; NULL without named neurons */
} weir_texts;

/* Which part of the text is in (merge.c). A run's own documents join the last span when it is written. */
typedef struct weir_span {
    int64_t first, last; /* documents */
} weir_span;
typedef struct weir_covered {
    int64_t n_spans;
    weir_span *span; /* ascending */
    int64_t n_shards;
    int64_t *shard; /* ascending: of about.shards; none where that is 0 */
} weir_covered;

typedef struct weir_detail weir_detail;   /* detail.c: named neurons */
typedef struct weir_weights weir_weights; /* weights.c: tokens read from the weights, by table */

struct weir_neurons {
    weir_neurons_options o; /* own copies behind its pointers, in: */
    weir_arena arena;
    weir_neurons_named *named;
    float threshold[WEIR_NEURONS_MAX_THRESHOLDS];
    int threads;
    int n_tables;
    weir_ntable *table;
    weir_neurons_counts counts;
    /* vocabulary */
    int64_t n_vocab;
    uint8_t *vocab;
    int64_t *vocab_at; /* [n_vocab + 1] */
    uint8_t *special;  /* [n_vocab] or NULL */
    /* feeding */
    weir_pass pass;
    struct weir_history *history; /* rows.c: the document under way */
    weir_spool *tokens;           /* every token that was fed, payload id */
    weir_spool **heat;            /* [n_named] values of named neurons, payload float bits; or NULL */
    const struct weir_scan_kernels *kernel;
    float **scratch; /* [threads] rows of a block of neurons, see add.c */
    /* results */
    bool finished;
    weir_texts texts;      /* of what was read or merged before, and after weir_neurons_finish of all */
    weir_detail *detail;   /* NULL: no named neurons */
    weir_weights *weights; /* NULL: not computed */
    weir_covered covered;
    weir_neurons_about about;
    struct weir_buf_of_about {
        char *text[6];
    } own;
};

/* --- lists (list.c) */
/* Better than, for list `which`: value first, then place. */
bool weir_entry_better(weir_neurons_list which, float a, weir_place at_a, float b, weir_place at_b);
WEIR_CHECKED weir_status weir_lists_new(weir_lists *l, int64_t n, int64_t k, bool dedup, weir_err *err);
void weir_lists_free(weir_lists *l);
/* Puts e into neuron i's list if it belongs there. Any order of calls gives the same list. */
void weir_lists_put(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e);
/* Counts of places that tie with the one that just missed the list become 0 (not known): what was counted of them
 * depends on the order in which they came. */
void weir_lists_settle(weir_lists *l, weir_neurons_list which, int64_t i);
weir_entry weir_lists_get(const weir_lists *l, int64_t i, int64_t at);

/* --- samples (samples.c) */
WEIR_CHECKED weir_status weir_samples_new(weir_samples *s, int64_t n, weir_err *err);
void weir_samples_free(weir_samples *s, int64_t n);
/* per: options.per_band */
WEIR_CHECKED weir_status weir_samples_put(weir_samples *s, int64_t i, int64_t per, const weir_sample *e, weir_err *err);
/* All that neuron i has, in order of (bin, hash, place): at most cap are written; returns how many there are. */
int64_t weir_samples_get(const weir_samples *s, int64_t i, weir_sample *out, int64_t cap);
/* values [neurons], stride_of_values apart. A place that is there already is not put again. */
/* The `per` smallest by (hash, place) of bins [first, end), by descending value, ties by place; returns how many. */
int64_t weir_samples_best(const weir_samples *s, int64_t i, uint32_t first, uint32_t end, int64_t per,
                          weir_neuron_hit *out);
WEIR_CHECKED weir_status weir_random_put(weir_random *r, int64_t most, int64_t neurons, uint64_t hash, weir_place at,
                                         const float *values, int64_t stride_of_values, weir_err *err);
void weir_random_free(weir_random *r);

/* 64 well mixed bits of a place and a seed. */
uint64_t weir_place_hash(uint64_t seed, weir_place at);

/* --- texts (texts.c) */
/* Gathers the tokens around every place that lists and samples hold, from the spool and from what was there. */
WEIR_CHECKED weir_status weir_texts_gather(weir_neurons *s, weir_err *err);
/* Tokens of a file that is read or merged join those that are there (places that both have once). Takes copies. */
WEIR_CHECKED weir_status weir_texts_join(weir_neurons *s, const weir_texts *more, weir_err *err);
void weir_texts_free(weir_texts *t, int n_named);
/* The index of a place in texts, or -1. */
int64_t weir_texts_find(const weir_texts *t, weir_place at);

/* --- named neurons (detail.c). x: as in weir_neurons_add; whole rows. */
WEIR_CHECKED weir_status weir_detail_new(weir_neurons *s, weir_err *err);
void weir_detail_free(weir_detail *d);
/* rows: [m] indices into s->pass of the counted rows of table t (skipped ones left out). */
WEIR_CHECKED weir_status weir_detail_add(weir_neurons *s, int t, const weir_neurons_values *v, const int32_t *rows,
                                         int64_t m, weir_err *err);
WEIR_CHECKED weir_status weir_detail_merge(weir_neurons *to, const weir_neurons *from, weir_err *err);
/* The arrays of named neuron j, for files: name and place of each; see detail.h. */

/* --- which part of the text is in (covered.c) */
void weir_covered_free(weir_covered *p);

/* --- weights (weights.c) */
void weir_weights_free(weir_weights *w);

#endif

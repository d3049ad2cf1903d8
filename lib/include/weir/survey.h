/* weir/survey.h: what a lens says of a whole text: for each line of a stack of rows the mean and the quantiles of the
 * next token's cross-entropy and of KL(final || line), how often its likeliest token is the final one or the right one,
 * and from which line on the likeliest token stays what it is in the end. One pass, in memory that depends on the
 * number of lines alone.
 *
 *     weir_survey *c;
 *     weir_survey_new(&c, lines, n_lines, &err);
 *     for each batch {
 *         weir_lens_measure(l, &what, &out, &err);            // with the next token among the targets, and k >= 1
 *         weir_survey_add(c, &batch, &err);
 *     }
 *     weir_survey_set_about(c, &about, &err);
 *     weir_survey_write(c, "stats.h5", threads, &err);        // or weir_survey_stat_of, ...
 *     weir_survey_free(c);
 *
 * All that is kept is whole numbers: counts, and sums in units of 2^-64. So the result does not depend on how the text
 * was cut into batches, on their order, on threads or on the kernel table, and results of the shards of a text, merged
 * in any order, are to the byte the result of one run over the whole.
 *
 * One thread at a time.
 */
#ifndef WEIR_SURVEY_H
#define WEIR_SURVEY_H

#include "lens.h"
#include "neurons.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_survey weir_survey;

/* A line: a place of the stream. The lines of one site are in ascending order; the last line of all is the final row,
 * with which the others are compared, and ends the lines of every site. */
typedef struct weir_survey_line {
    const char *name; /* "L3", "out" */
    const char *hook; /* "blocks.3.hook_resid_post" */
    const char *site; /* "resid_post" */
    int layer;        /* -1: the stream before the first block */
} weir_survey_line;

enum { WEIR_SURVEY_SITES = 64, WEIR_SURVEY_LINES = 1 << 16 }; /* at most */

/* Strings are copied. Errors (WEIR_E_ARG): no line, or too many. */
WEIR_API WEIR_CHECKED weir_status weir_survey_new(weir_survey **out, const weir_survey_line *line, int n_lines,
                                                  weir_err *err);
WEIR_API void weir_survey_free(weir_survey *c);
WEIR_API int weir_survey_n_lines(const weir_survey *c);
WEIR_API const weir_survey_line *weir_survey_line_at(const weir_survey *c, int line); /* borrowed from c */

/* --- feeding */

/* Positions of a text as weir_lens_measure leaves them, rows = lines. Everything is borrowed for the call. */
typedef struct weir_survey_batch {
    int64_t n;             /* positions */
    const float *kl_final; /* [n_lines, n] */
    const float *logprob;  /* [n_lines, n, n_targets] */
    int n_targets, target; /* which of the targets is the next token */
    const int32_t *top_id; /* [n_lines, n, k], best first; -1: none */
    int64_t k;             /* >= 1 */
    const int32_t *next;   /* [n] the token that follows; -1: none, the position then has no cross-entropy */
    const uint8_t *mask;   /* [n] 0, or why the position is left out of everything: WEIR_MASK_*; NULL: none is */
    int64_t docs;          /* documents that begin here: they are only counted */
} weir_survey_batch;

/* Errors (WEIR_E_ARG): sizes or a mask out of range. */
WEIR_API WEIR_CHECKED weir_status weir_survey_add(weir_survey *c, const weir_survey_batch *b, weir_err *err);

/* --- results */

typedef struct weir_survey_counts {
    int64_t docs, rows;              /* documents, and positions that were fed */
    int64_t masked[WEIR_MASK_KINDS]; /* of the rows, by WEIR_MASK_*; [0]: counted, not masked */
    int64_t lost;         /* of the counted: the final row has a logit that is not finite; in nothing that follows */
    int64_t seen;         /* of the counted: the others. Shares of `agree` and `settle` are of these */
    int64_t without_next; /* of the seen: no token follows */
} weir_survey_counts;
WEIR_API weir_survey_counts weir_survey_counts_of(const weir_survey *c);

typedef enum weir_survey_value {
    WEIR_SURVEY_CE, /* -ln p(next token), nats: of the positions that have a next one */
    WEIR_SURVEY_KL, /* KL(final || line), nats */
    WEIR_SURVEY_VALUES
} weir_survey_value;

/* Bins: the sign, the exponent, and the seven highest bits of the mantissa, from 2^-30 to 2^20: a bin is 2^-7 of its
 * lower edge wide at most. 0 .. SIDE-1: negative, the largest magnitude first; SIDE: |x| < 2^-30; then positive. */
enum { WEIR_SURVEY_BIN_SIDE = 50 << 7, WEIR_SURVEY_BINS = 2 * WEIR_SURVEY_BIN_SIDE + 1 };
/* The bin of x; -1: NaN, infinite, or |x| >= 2^20, which no bin and no sum holds. */
WEIR_API int weir_survey_bin(float x);
/* The lower edge of a bin, 0 .. WEIR_SURVEY_BINS. The end nearer 0 belongs to a bin. */
WEIR_API double weir_survey_edge(int bin);

/* .05, .25, .5, .75, .95 */
enum { WEIR_SURVEY_QUANTILES = 5 };
WEIR_API double weir_survey_share(int quantile);

/* The q-quantile of n values is the ceil(q n)-th of them in ascending order: of its bin the middle, kept in [min, max].
 * It is off by at most 2^-8 of the true value, or by 2^-30 where that is more. The mean is the exact sum of the values,
 * each rounded to a multiple of 2^-64 (those of 2^-41 and more are such multiples), divided by their number. NaN where
 * there is no value. */
typedef struct weir_survey_stat {
    int64_t count, lost; /* values; and those that no bin holds (weir_survey_bin), which are left out */
    double mean;
    float min, max;
    double quantile[WEIR_SURVEY_QUANTILES];
} weir_survey_stat;
WEIR_API weir_survey_stat weir_survey_stat_of(const weir_survey *c, int line, weir_survey_value v);
/* counts of all bins: out [WEIR_SURVEY_BINS] */
WEIR_API void weir_survey_hist(const weir_survey *c, int line, weir_survey_value v, int64_t *out);

/* Positions whose likeliest token in this line is that of the final row; is the one that follows. */
WEIR_API int64_t weir_survey_agree(const weir_survey *c, int line);
WEIR_API int64_t weir_survey_right(const weir_survey *c, int line);

/* Where positions settle: among the lines of one site and the final row, the first line from which on all have the
 * final row's likeliest token. Sites in the order of the lines; the final row is of the sites of the others. */
WEIR_API int weir_survey_n_sites(const weir_survey *c);
WEIR_API const char *weir_survey_site(const weir_survey *c, int site);
/* Number of a line's site; -1: the final row, which ends all of them. */
WEIR_API int weir_survey_site_of(const weir_survey *c, int line);
/* Positions that settle at this line; 0 for lines of other sites. */
WEIR_API int64_t weir_survey_settled(const weir_survey *c, int site, int line);
/* Of the layers (weir_survey_line.layer) at which positions settle; count = seen. */
WEIR_API weir_survey_stat weir_survey_settle_of(const weir_survey *c, int site);

/* --- files: HDF5, format "weir-lens" (lib/survey/README.md has the schema). They name no time, command line or thread:
 * equal results are equal files. */

/* What a result is about: attributes, all compared by weir_survey_merge but shard and shards. NULL is "". */
typedef struct weir_survey_about {
    const char *model, *fingerprint, *tokenizer; /* name, hashes */
    const char *source;        /* JSON: what the text is and how it was cut and masked, without the shard */
    const char *interventions; /* JSON array */
    const char *lens, *norm;   /* "logit lens"; "recompute": how rows meet the final norm */
    bool no_softcap, padding_masked;
    int64_t shard, shards; /* shards 0, or 1: the whole text */
} weir_survey_about;
/* c keeps a copy. Errors (WEIR_E_ARG): a shard out of range. */
WEIR_API WEIR_CHECKED weir_status weir_survey_set_about(weir_survey *c, const weir_survey_about *about, weir_err *err);
/* Borrowed from c; of a merged result that lacks shards, shard is the first that is in. */
WEIR_API const weir_survey_about *weir_survey_about_of(const weir_survey *c);
/* Is this shard of the text in? The first that is not, from `from` on; -1: all are in. */
WEIR_API int64_t weir_survey_missing(const weir_survey *c, int64_t from);

/* PATH appears whole or not at all; one that exists is replaced only if it is a weir-lens file. */
WEIR_API WEIR_CHECKED weir_status weir_survey_write(const weir_survey *c, const char *path, int threads, weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_survey_read(weir_survey **out, const char *path, weir_err *err);
/* Is PATH a file of this format (true), something else, or nothing (false)? */
WEIR_API bool weir_survey_is_file(const char *path);

/* Adds what `from` holds to `to`: shards of one text, in any order. Refused (WEIR_E_ARG, with what differs): another
 * model, lens, text or other lines; a shard that both have. `to` is unchanged then. */
WEIR_API WEIR_CHECKED weir_status weir_survey_merge(weir_survey *to, const weir_survey *from, weir_err *err);

#ifdef __cplusplus
}
#endif
#endif

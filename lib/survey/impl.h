/* survey/impl.h: the inside of weir_survey.
 *
 *     bins.c      bins of values and their edges
 *     survey.c    making one, and feeding it
 *     results.c   means, quantiles, counts
 *     merge.c     what a result is about; adding one to another
 *     file_write.c, file_read.c    README.md in this directory has the schema
 */
#ifndef WEIR_SURVEY_IMPL_H
#define WEIR_SURVEY_IMPL_H

#include <weir/survey.h>

#define WEIR_SURVEY_FORMAT "weir-lens"
#define WEIR_SURVEY_VERSION 1

enum { WEIR_SURVEY_FRACTION = 64 };
#define WEIR_SURVEY_MOST (INT64_MAX / 4 >> 20) /* positions: no text has so many, and sums of so many fit */

/* The values of one kind in one line. */
typedef struct weir_survey_sums {
    int64_t count, lost;
    __int128 sum;   /* in units of 2^-WEIR_SURVEY_FRACTION */
    float min, max; /* without values: infinity, -infinity. No -0 */
    int64_t *hist;  /* [WEIR_SURVEY_BINS] */
} weir_survey_sums;

/* The texts of weir_survey_about. */
enum { WEIR_SURVEY_TEXTS = 7 };

struct weir_survey {
    weir_survey_line *line; /* [n] */
    int n;
    int *site;                                /* [n] number of the line's site; -1: the final row */
    const char *site_name[WEIR_SURVEY_SITES]; /* borrowed from lines */
    int n_sites;
    weir_survey_counts counts;
    weir_survey_sums *sums; /* [n, WEIR_SURVEY_VALUES] */
    int64_t *hist;          /* [n, WEIR_SURVEY_VALUES, WEIR_SURVEY_BINS]: the store of sums */
    int64_t *agree, *right; /* [n] */
    int64_t *settled;       /* [n_sites, n] */
    weir_survey_about about;
    char *text[WEIR_SURVEY_TEXTS]; /* store of about */
    int64_t *shard;                /* [n_shards] which are in, ascending; none: the whole text */
    int64_t n_shards;
};

static inline weir_survey_sums *weir_survey_sums_at(const weir_survey *c, int line, int value)
{
    return &c->sums[line * WEIR_SURVEY_VALUES + value];
}

/* The texts of an about in the order in which they are kept, and what each is in words and as an attribute. */
void weir_survey_texts(const weir_survey_about *a, const char *out[WEIR_SURVEY_TEXTS]);
extern const char *const weir_survey_text_words[WEIR_SURVEY_TEXTS], *const weir_survey_text_names[WEIR_SURVEY_TEXTS];
extern const char *const weir_survey_value_names[WEIR_SURVEY_VALUES]; /* "ce", "kl" */

#endif

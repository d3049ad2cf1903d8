/* weir/moments.h: uncentred second moments of the keys of a layer, C = E[k k^T], k the input of the down projection
 * (hook_post): what rank-one edits need to leave other keys alone (Meng et al., arXiv 2202.05262, section 3.1).
 *
 *     weir_moments *m;
 *     weir_moments_new(&m, F, &err);
 *     for each batch weir_moments_add(m, keys, rows, threads, &err);
 *     weir_moments_set_about(m, &about, &err);
 *     weir_moments_write(m, "mom2.h5", threads, &err);
 *     weir_covariance_new(&c, weir_moments_sum(m), F, weir_moments_count(m), 1e-6, &err);      // weir/rome.h
 *
 * Sums are in double; each element is added up in the order of the rows, whatever the batches and threads. One thread
 * at a time.
 */
#ifndef WEIR_MOMENTS_H
#define WEIR_MOMENTS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_moments weir_moments;

WEIR_API WEIR_CHECKED weir_status weir_moments_new(weir_moments **out, int64_t f, weir_err *err);
WEIR_API void weir_moments_free(weir_moments *m);
/* x [rows,F]. Errors (WEIR_E_ARG): an element is not finite; nothing of x is added then. */
WEIR_API WEIR_CHECKED weir_status weir_moments_add(weir_moments *m, const float *x, int64_t rows, int threads,
                                                   weir_err *err);
WEIR_API int64_t weir_moments_width(const weir_moments *m);     /* F */
WEIR_API int64_t weir_moments_count(const weir_moments *m);     /* rows that were added */
WEIR_API const double *weir_moments_sum(const weir_moments *m); /* [F,F] upper triangle; the rest is 0 */

/* Where they come from. NULL is "". */
typedef struct weir_moments_about {
    const char *model, *fingerprint; /* name and fingerprint */
    const char *source; /* JSON: all that the keys come from but the weights, without the shard; "imported" */
    int64_t layer;
    int64_t docs;          /* documents that are in */
    int64_t shard, shards; /* shards 0: the whole text */
    bool complete;         /* false: the run went no further yet */
} weir_moments_about;
/* m keeps a copy. */
WEIR_API WEIR_CHECKED weir_status weir_moments_set_about(weir_moments *m, const weir_moments_about *a, weir_err *err);
WEIR_API const weir_moments_about *weir_moments_about_of(const weir_moments *m); /* borrowed */

/* --- files: HDF5, format "weir-moments" (lib/edit/README.md has the schema), sealed: damage is an error, never a
 * number. PATH appears whole or not at all; one that exists is replaced only if it is such a file. */
WEIR_API WEIR_CHECKED weir_status weir_moments_write(const weir_moments *m, const char *path, int threads,
                                                     weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_moments_read(weir_moments **out, const char *path, weir_err *err);
WEIR_API bool weir_moments_is_file(const char *path);
/* The published statistics of kmeng01/rome: an .npz with mom2.count and mom2.mom2 [F,F], the raw sum. */
WEIR_API WEIR_CHECKED weir_status weir_moments_import_npz(weir_moments **out, const char *path, weir_err *err);

/* Adds the shards of one text, given in any order: they are added up in theirs. *out covers the whole text. Errors
 * (WEIR_E_ARG): another model, layer, text or width; a shard that is missing, incomplete, or there twice. */
WEIR_API WEIR_CHECKED weir_status weir_moments_merge(weir_moments **out, const weir_moments *const *part, int64_t n,
                                                     weir_err *err);

#ifdef __cplusplus
}
#endif
#endif

/* weir/arrays.h: a file of named arrays and attributes, written whole and read whole: HDF5 for those who have no need
 * to know HDF5. Equal calls write equal bytes: no times, no order of threads, a packer of our own.
 *
 *     weir_arrays_out *w;
 *     weir_arrays_create(&w, "x.h5", "weir-neurons", 1, threads, &err);
 *     weir_arrays_put_text(w, "", "model", "brook", &err);               // an attribute of the root
 *     weir_arrays_put(w, "neurons/a/mean", WEIR_ARRAY_F64, 1, &n, mean, &err);
 *     weir_arrays_commit(w, &err);                                       // x.h5 appears
 *
 * Names are paths from the root; groups on the way are made as they are needed, and keep the order in which they were
 * made. Reading trusts nothing: a seal that is broken, a link into another file, a filter that is not shuffle
 * or deflate, an array that claims more than its bytes in the file can hold are errors.
 */
#ifndef WEIR_ARRAYS_H
#define WEIR_ARRAYS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_array_type {
    WEIR_ARRAY_I8,
    WEIR_ARRAY_U8,
    WEIR_ARRAY_I32,
    WEIR_ARRAY_U32,
    WEIR_ARRAY_I64,
    WEIR_ARRAY_U64,
    WEIR_ARRAY_F32,
    WEIR_ARRAY_F64
} weir_array_type;
WEIR_API size_t weir_array_type_bytes(weir_array_type t);

enum {
    WEIR_ARRAY_RANK = 3,
    WEIR_ARRAY_NAMES = 256,      /* bytes of a path, with its NUL */
    WEIR_ARRAY_ATTRIBUTE = 4096, /* numbers of an attribute at most: readers have room for them */
};

/* --- writing */
typedef struct weir_arrays_out weir_arrays_out;

/* PATH is written as PATH.new beside it, so that it never clashes with a PATH.part that a run may go on with. It may
 * exist only as a file of this format. format is borrowed. threads 0: all processors. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_create(weir_arrays_out **out, const char *path, const char *format,
                                                     int64_t version, int threads, weir_err *err);
/* Row major. Stored in packed chunks of 256 KiB at most, which have a checksum each. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_put(weir_arrays_out *w, const char *name, weir_array_type type, int rank,
                                                  const int64_t *dim, const void *p, weir_err *err);
/* Attributes of what lies at `at` ("": the root); a group is made if nothing is there. n = -1: a scalar. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_put_text(weir_arrays_out *w, const char *at, const char *name,
                                                       const char *text, weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_arrays_put_attribute(weir_arrays_out *w, const char *at, const char *name,
                                                            weir_array_type type, int64_t n, const void *p,
                                                            weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_arrays_put_int(weir_arrays_out *w, const char *at, const char *name, int64_t v,
                                                      weir_err *err);
/* Texts, of bytes of any kind: a group of `bytes` and `offsets` [n + 1], as a dump's vocabulary is one. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_put_texts(weir_arrays_out *w, const char *group, const weir_str *text,
                                                        int64_t n, weir_err *err);
/* Closes, seals (a CRC-32 of all bytes, at the end of the file) and renames. Frees w in every case. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_commit(weir_arrays_out *w, weir_err *err);
/* Removes what was written. NULL is fine. */
WEIR_API void weir_arrays_abort(weir_arrays_out *w);

/* --- reading */
typedef struct weir_arrays_in weir_arrays_in;

/* Errors name the file, and the array or attribute. WEIR_E_FORMAT: no file of this format; WEIR_E_UNSUPPORTED: of a
 * later version. format is borrowed. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_open(weir_arrays_in **out, const char *path, const char *format,
                                                   int64_t version, weir_err *err);
WEIR_API void weir_arrays_close(weir_arrays_in *r);
/* WEIR_E_FORMAT about `name` in this file. */
WEIR_API weir_status weir_arrays_bad(const weir_arrays_in *r, const char *name, weir_err *err, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
WEIR_API bool weir_arrays_has(weir_arrays_in *r, const char *name);
/* The i-th name in a group, in the order in which they were made: false: there is none (or it is too long). */
WEIR_API bool weir_arrays_child(weir_arrays_in *r, const char *group, int64_t i, char name[WEIR_ARRAY_NAMES]);
/* The shape of an array of this type and rank. The product of the dimensions and its bytes fit into 63 bits, and the
 * file has at least a thousandth of them. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_shape(weir_arrays_in *r, const char *name, weir_array_type type, int rank,
                                                    int64_t *dim, weir_err *err);
/* Exactly this type and shape, into out. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_get(weir_arrays_in *r, const char *name, weir_array_type type, int rank,
                                                  const int64_t *dim, void *out, weir_err *err);
/* A whole array of rank 1: *out [n]. Free it, and texts, with weir_arrays_free. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_get_new(weir_arrays_in *r, const char *name, weir_array_type type,
                                                      int64_t *n, void **out, weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_arrays_get_text(weir_arrays_in *r, const char *at, const char *name, char **out,
                                                       weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_arrays_get_int(weir_arrays_in *r, const char *at, const char *name, int64_t *v,
                                                      weir_err *err);
WEIR_API void weir_arrays_free(void *p); /* NULL is fine */

typedef struct weir_array_texts {
    int64_t n;
    int64_t *offset; /* [n + 1] ascending, from 0 to the number of bytes */
    char *bytes;
} weir_array_texts;

/* All texts of a group, to be freed with weir_array_texts_free; after an error there are none. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_get_texts(weir_arrays_in *r, const char *group, weir_array_texts *t,
                                                        weir_err *err);
WEIR_API void weir_array_texts_free(weir_array_texts *t);
/* The i-th; borrowed. */
static inline weir_str weir_array_text(const weir_array_texts *t, int64_t i)
{
    weir_str s;
    s.p = t->bytes + t->offset[i];
    s.n = (size_t)(t->offset[i + 1] - t->offset[i]);
    return s;
}
/* *n: how many the attribute has, at most `most`. A scalar is one. */
WEIR_API WEIR_CHECKED weir_status weir_arrays_get_attribute(weir_arrays_in *r, const char *at, const char *name,
                                                            weir_array_type type, int64_t most, int64_t *n, void *out,
                                                            weir_err *err);

/* Is PATH a file whose root attribute `format`, or whose seal, is this? Also where it is damaged, if that shows. */
WEIR_API bool weir_arrays_is(const char *path, const char *format);

#ifdef __cplusplus
}
#endif
#endif

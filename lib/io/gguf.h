/* io/gguf.h: GGUF version 2 and 3 (specification: ggml/docs/gguf.md): metadata and tensor table, over a map. Parsing
 * reads the metadata section only. Limits and refusals: reference lists in lib/io/README.md. */
#ifndef WEIR_GGUF_H
#define WEIR_GGUF_H

#include <weir/tensor.h>

#include "filemap.h"

typedef enum weir_gguf_type {
    WEIR_GGUF_U8 = 0,
    WEIR_GGUF_I8,
    WEIR_GGUF_U16,
    WEIR_GGUF_I16,
    WEIR_GGUF_U32,
    WEIR_GGUF_I32,
    WEIR_GGUF_F32,
    WEIR_GGUF_BOOL,
    WEIR_GGUF_STRING,
    WEIR_GGUF_ARRAY,
    WEIR_GGUF_U64,
    WEIR_GGUF_I64,
    WEIR_GGUF_F64
} weir_gguf_type;

/* A metadata value in place. For arrays, type is ARRAY, elem the element type, n the count, data the first element. */
typedef struct weir_gguf_kv {
    weir_str key;
    weir_gguf_type type, elem;
    uint64_t n;
    const uint8_t *data;
    int64_t offset;
} weir_gguf_kv;

typedef struct weir_gguf {
    weir_filemap map;
    uint32_t version;
    weir_gguf_kv *kv;
    int64_t n_kv;
    weir_tensor *tensor; /* in file order; shapes slowest first; types outside weir_dtype are refused by name */
    int64_t n_tensors;
    size_t meta_bytes; /* length of header + metadata + tensor table */
    void *own;         /* memory behind the arrays */
} weir_gguf;

WEIR_CHECKED weir_status weir_gguf_open(weir_gguf *g, const char *path, weir_err *err);
void weir_gguf_close(weir_gguf *g);

const weir_gguf_kv *weir_gguf_find(const weir_gguf *g, const char *key);
/* Typed getters: *found = false when the key is absent (NULL found: absence is an error); a wrong type or a value out
 * of range is an error that names key and offset. Any integer type is accepted for int, any integer or float for
 * double. */
WEIR_CHECKED weir_status weir_gguf_int(const weir_gguf *g, const char *key, int64_t *out, bool *found, weir_err *err);
WEIR_CHECKED weir_status weir_gguf_double(const weir_gguf *g, const char *key, double *out, bool *found, weir_err *err);
WEIR_CHECKED weir_status weir_gguf_bool(const weir_gguf *g, const char *key, bool *out, bool *found, weir_err *err);
WEIR_CHECKED weir_status weir_gguf_str(const weir_gguf *g, const char *key, weir_str *out, bool *found, weir_err *err);
/* Array access. Strings must be walked: *pos starts at 0. The array's element type is checked by the caller through
 * kv->elem. */
WEIR_CHECKED weir_status weir_gguf_next_str(const weir_gguf *g, const weir_gguf_kv *kv, size_t *pos, weir_str *out,
                                            weir_err *err);
int64_t weir_gguf_elem_int(const weir_gguf_kv *kv, uint64_t i);   /* integer or bool element types */
double weir_gguf_elem_double(const weir_gguf_kv *kv, uint64_t i); /* float element types */

#endif

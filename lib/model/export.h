/* model/export.h: an open GGUF file as its family's Hugging Face class would store it: config.json, and tensors by name
 * in fp32. Made from the family's tables, so that what can be read in both formats can be written. */
#ifndef WEIR_EXPORT_H
#define WEIR_EXPORT_H

#include <weir/json.h>
#include <weir/model.h>

typedef struct weir_export weir_export;

/* Rows of a chunk: those of weir_export_rows begin at its multiples, so that no block of a block type is cut. */
enum { WEIR_EXPORT_ROWS = 256 };

typedef struct weir_export_tensor {
    char name[160];
    int64_t layer;       /* -1: the model's own */
    int role;            /* a weir_role */
    int rank;            /* 1: [width], rows is 1; 2: [rows, width] */
    int64_t rows, width; /* as the class stores them */
} weir_export_tensor;

/* Errors: WEIR_E_UNSUPPORTED names what no class of the family has a key or a tensor for. The model is borrowed. */
WEIR_CHECKED weir_status weir_export_new(weir_export **out, const weir_model *m, weir_err *err);
void weir_export_free(weir_export *x);

/* The class's keys, into an object that is open: all but those of the tokenizer (bos_token_id, eos_token_id). */
void weir_export_config(const weir_export *x, weir_jsonw *w);

int64_t weir_export_n(const weir_export *x);
const weir_export_tensor *weir_export_at(const weir_export *x, int64_t i);
/* Rows [row, row + n) of a tensor, dst [n, width]: stored weights, widened; row is a multiple of WEIR_EXPORT_ROWS, and
 * n is that or what is left. A bias that the class has and the file lacks is 0. */
void weir_export_rows(const weir_export *x, const weir_export_tensor *t, int64_t row, int64_t n, float *dst);

#endif

/* io/safetensors_write.h: the head of a safetensors file whose tensors are F32 and lie one behind the other; the
 * numbers come right behind it.
 *
 *     weir_st_head h;
 *     weir_st_head_begin(&h, out, "pt");
 *     weir_st_head_add(&h, "w", 2, (const int64_t[]){rows, width});
 *     weir_st_head_end(&h);
 *     fwrite(w, sizeof *w, rows * width, out);
 *
 * out stands at its beginning and can be sought in; its errors are its own (ferror). */
#ifndef WEIR_SAFETENSORS_WRITE_H
#define WEIR_SAFETENSORS_WRITE_H

#include <stdio.h>

#include <weir/json.h>

typedef struct weir_st_head {
    FILE *out;
    weir_jsonw w;
    int64_t at; /* where the next tensor's bytes begin, from the end of the head */
} weir_st_head;

/* format: what __metadata__ says of it, NULL: there is none. */
void weir_st_head_begin(weir_st_head *h, FILE *out, const char *format);
void weir_st_head_add(weir_st_head *h, const char *name, int rank, const int64_t *shape);
void weir_st_head_end(weir_st_head *h);

#endif

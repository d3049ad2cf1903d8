#include "safetensors_write.h"

enum { LENGTH = 8 }; /* bytes of the head's length, which comes first and is known last */

void weir_st_head_begin(weir_st_head *h, FILE *out, const char *format)
{
    static const uint8_t unknown[LENGTH];
    *h = (weir_st_head){.out = out};
    fwrite(unknown, 1, LENGTH, out);
    weir_jsonw_init(&h->w, out);
    weir_jsonw_object(&h->w);
    if (!format)
        return;
    weir_jsonw_key(&h->w, "__metadata__");
    weir_jsonw_object(&h->w);
    weir_jsonw_key_cstr(&h->w, "format", format);
    weir_jsonw_end(&h->w);
}

void weir_st_head_add(weir_st_head *h, const char *name, int rank, const int64_t *shape)
{
    int64_t bytes = sizeof(float);
    weir_jsonw_key(&h->w, name);
    weir_jsonw_object(&h->w);
    weir_jsonw_key_cstr(&h->w, "dtype", "F32");
    weir_jsonw_key(&h->w, "shape");
    weir_jsonw_array(&h->w);
    for (int axis = 0; axis < rank; axis++) {
        weir_jsonw_int(&h->w, shape[axis]);
        bytes *= shape[axis];
    }
    weir_jsonw_end(&h->w);
    weir_jsonw_key(&h->w, "data_offsets");
    weir_jsonw_array(&h->w);
    weir_jsonw_int(&h->w, h->at);
    weir_jsonw_int(&h->w, h->at += bytes);
    weir_jsonw_end(&h->w);
    weir_jsonw_end(&h->w);
}

/* Spaces bring the numbers behind the head to a multiple of 8 bytes. */
void weir_st_head_end(weir_st_head *h)
{
    uint8_t length[LENGTH];
    weir_jsonw_end(&h->w);
    while (ftell(h->out) % 8 > 0) /* -1: no place, an error */
        fputc(' ', h->out);
    const int64_t end = ftell(h->out), n = end - LENGTH;
    for (int i = 0; i < LENGTH; i++)
        length[i] = (uint8_t)(n >> 8 * i);
    fseek(h->out, 0, SEEK_SET);
    fwrite(length, 1, LENGTH, h->out);
    fseek(h->out, end, SEEK_SET);
}

/* Arrays of what a function says of each row, and of each side of it. */
#include "sheet.h"

#include <stdlib.h>
#include <string.h>

weir_status weir_sheet_no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for a report's arrays");
}

weir_str weir_sheet_string(const char *z)
{
    return z ? (weir_str){z, strlen(z)} : (weir_str){"", 0};
}

static weir_status put_reals(const weir_sheet *s, const char *name, int64_t n, int sides, weir_sheet_real *of,
                             weir_err *err)
{
    const int64_t dim[2] = {n, sides};
    double *x = malloc((size_t)(n * sides + 1) * sizeof *x);
    if (!x)
        return weir_sheet_no_memory(err);
    for (int64_t i = 0; i < n * sides; i++)
        x[i] = of(s, i / sides, (int)(i % sides));
    const weir_status st = weir_arrays_put(s->w, name, WEIR_ARRAY_F64, sides > 1 ? 2 : 1, dim, x, err);
    free(x);
    return st;
}

static weir_status put_ints(const weir_sheet *s, const char *name, weir_array_type type, int64_t n, int sides,
                            weir_sheet_int *of, weir_err *err)
{
    const int64_t dim[2] = {n, sides};
    const size_t bytes = weir_array_type_bytes(type);
    char *x = malloc((size_t)(n * sides + 1) * bytes);
    if (!x)
        return weir_sheet_no_memory(err);
    for (int64_t i = 0; i < n * sides; i++) {
        const int64_t wide = of(s, i / sides, (int)(i % sides));
        const int32_t half = (int32_t)wide;
        const uint8_t byte = (uint8_t)wide;
        memcpy(x + (size_t)i * bytes,
               type == WEIR_ARRAY_I64   ? (const void *)&wide
               : type == WEIR_ARRAY_I32 ? (const void *)&half
                                        : (const void *)&byte,
               bytes);
    }
    const weir_status st = weir_arrays_put(s->w, name, type, sides > 1 ? 2 : 1, dim, x, err);
    free(x);
    return st;
}

weir_status weir_sheet_texts(const weir_sheet *s, const char *group, int64_t n, weir_sheet_text *of, weir_err *err)
{
    weir_str *text = malloc(((size_t)n + 1) * sizeof *text);
    if (!text)
        return weir_sheet_no_memory(err);
    for (int64_t i = 0; i < n; i++)
        text[i] = of(s, i);
    const weir_status st = weir_arrays_put_texts(s->w, group, text, n, err);
    free(text);
    return st;
}

weir_status weir_sheet_columns(const weir_sheet *s, const char *group, const weir_sheet_column *c, size_t columns,
                               int64_t n, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    weir_status st = WEIR_OK;
    for (size_t i = 0; i < columns && st == WEIR_OK; i++) {
        snprintf(path, sizeof path, "%s/%s", group, c[i].name);
        st = c[i].real   ? put_reals(s, path, n, c[i].sides, c[i].real, err)
             : c[i].text ? weir_sheet_texts(s, path, n, c[i].text, err)
                         : put_ints(s, path, c[i].type, n, c[i].sides, c[i].number, err);
    }
    return st;
}

/* record/arrays_texts.c: see weir/arrays.h: texts as bytes and offsets. */
#include <string.h>

#include "arrays_impl.h"
#include "base/mem.h"

static const char *part_of(const char *group, const char *part, char path[WEIR_ARRAY_NAMES])
{
    snprintf(path, WEIR_ARRAY_NAMES, "%s/%s", group, part);
    return path;
}

weir_status weir_arrays_put_texts(weir_arrays_out *w, const char *group, const weir_str *text, int64_t n, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    const int64_t ends = n + 1;
    int64_t *offset = weir_calloc((size_t)ends, sizeof *offset);
    for (int64_t i = 0; offset && i < n; i++)
        offset[i + 1] = offset[i] + (int64_t)text[i].n;
    char *bytes = offset ? weir_calloc((size_t)offset[n] + 1, 1) : NULL;
    for (int64_t i = 0; bytes && i < n; i++)
        if (text[i].n)
            memcpy(bytes + offset[i], text[i].p, text[i].n);
    weir_status st = bytes ? WEIR_OK : weir_nomem(err, "texts of a file");
    if (!st)
        st = weir_arrays_put(w, part_of(group, "bytes", path), WEIR_ARRAY_U8, 1, &offset[n], bytes, err);
    if (!st)
        st = weir_arrays_put(w, part_of(group, "offsets", path), WEIR_ARRAY_I64, 1, &ends, offset, err);
    weir_free(bytes);
    weir_free(offset);
    return st;
}

static weir_status get(weir_arrays_in *r, const char *group, weir_array_texts *t, weir_err *err)
{
    char path[WEIR_ARRAY_NAMES];
    int64_t size, ends;
    void *p;
    WEIR_TRY(weir_arrays_get_new(r, part_of(group, "bytes", path), WEIR_ARRAY_U8, &size, &p, err));
    t->bytes = p;
    WEIR_TRY(weir_arrays_get_new(r, part_of(group, "offsets", path), WEIR_ARRAY_I64, &ends, &p, err));
    t->offset = p;
    bool good = ends > 0 && t->offset[0] == 0 && t->offset[ends - 1] == size;
    for (int64_t i = 1; i < ends && good; i++)
        good = t->offset[i] >= t->offset[i - 1];
    if (!good)
        return weir_arrays_bad(r, path, err, "is damaged: offsets must ascend, from 0 to the bytes there are");
    t->n = ends - 1;
    return WEIR_OK;
}

weir_status weir_arrays_get_texts(weir_arrays_in *r, const char *group, weir_array_texts *t, weir_err *err)
{
    *t = (weir_array_texts){0};
    const weir_status st = get(r, group, t, err);
    if (st)
        weir_array_texts_free(t);
    return st;
}

void weir_array_texts_free(weir_array_texts *t)
{
    weir_free(t->bytes);
    weir_free(t->offset);
    *t = (weir_array_texts){0};
}

/* Arrays of a file, checked and taken. */
#include "figures/arrays.h"

#include <stdlib.h>
#include <string.h>

static weir_status take(weir_arrays_in *r, const weir_nb_array *a, weir_err *err)
{
    int64_t there[WEIR_ARRAY_RANK], n = 1;
    WEIR_TRY(weir_arrays_shape(r, a->name, a->type, a->rank, there, err));
    for (int i = 0; i < a->rank; i++) {
        if (there[i] != a->dim[i])
            return weir_arrays_bad(r, a->name, err, "it has %lld along axis %d, and %lld are expected",
                                   (long long)there[i], i, (long long)a->dim[i]);
        n *= there[i];
    }
    void *p = malloc((size_t)n * weir_array_type_bytes(a->type) + 1);
    if (!p)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory for %s", a->name);
    memcpy(a->at, &p, sizeof p);
    return weir_arrays_get(r, a->name, a->type, a->rank, a->dim, p, err);
}

weir_status weir_nb_take(weir_arrays_in *r, const weir_nb_array *a, size_t n, weir_err *err)
{
    for (size_t i = 0; i < n; i++)
        WEIR_TRY(take(r, &a[i], err));
    return WEIR_OK;
}

weir_status weir_nb_take_texts(weir_arrays_in *r, const char *group, int64_t n, weir_array_texts *t, weir_err *err)
{
    WEIR_TRY(weir_arrays_get_texts(r, group, t, err));
    if (t->n == n)
        return WEIR_OK;
    return weir_arrays_bad(r, group, err, "it has %lld texts, and %lld are expected", (long long)t->n, (long long)n);
}

weir_str *weir_nb_names(const weir_array_texts *t)
{
    weir_str *name = malloc(sizeof *name * ((size_t)t->n + 1));
    for (int64_t i = 0; name && i < t->n; i++)
        name[i] = weir_array_text(t, i);
    return name;
}

weir_str weir_nb_token(const weir_array_texts *vocab, int32_t id)
{
    return id >= 0 && id < vocab->n ? weir_array_text(vocab, id) : (weir_str){"", 0};
}

void weir_nb_tell_attribute(weir_nb *nb, weir_arrays_in *r, const char *attribute, const char *name)
{
    weir_err err = {0};
    char *text = NULL;
    if (weir_arrays_get_text(r, "", attribute, &text, &err) == WEIR_OK && *text)
        weir_nb_tell(nb, name, "%s", text);
    weir_arrays_free(text);
}

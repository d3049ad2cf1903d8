#include "mem.h"

#include <stdarg.h>
#include <string.h>

weir_status weir_buf_reserve(weir_buf *b, size_t n)
{
    if (n > SIZE_MAX / 4 || b->n > SIZE_MAX / 4)
        return WEIR_E_NOMEM;
    size_t need = b->n + n + 1;
    if (need <= b->cap)
        return WEIR_OK;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap += cap / 2;
    char *p = weir_realloc(b->p, cap, 1);
    if (!p)
        return WEIR_E_NOMEM;
    b->p = p;
    b->cap = cap;
    return WEIR_OK;
}

weir_status weir_buf_add(weir_buf *b, const void *p, size_t n)
{
    WEIR_TRY(weir_buf_reserve(b, n));
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
    return WEIR_OK;
}

weir_status weir_buf_printf(weir_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return WEIR_E_ARG;
    WEIR_TRY(weir_buf_reserve(b, (size_t)n));
    va_start(ap, fmt);
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
    return WEIR_OK;
}

void weir_buf_free(weir_buf *b)
{
    weir_free(b->p);
    *b = (weir_buf){0};
}

#include "cursor.h"

#include <stdarg.h>

void weir_cursor_init(weir_cursor *c, const void *p, size_t size, const char *file, weir_err *err)
{
    *c = (weir_cursor){.p = p, .size = p ? size : 0, .file = file, .err = err};
}

weir_status weir_cursor_fail(weir_cursor *c, weir_status code, const char *fmt, ...)
{
    if (c->status != WEIR_OK)
        return c->status;
    char msg[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    weir_fail(c->err, code, "%s", msg);
    weir_err_where(c->err, c->file, NULL, (int64_t)c->pos);
    return c->status = code;
}

size_t weir_cursor_left(const weir_cursor *c)
{
    return c->status == WEIR_OK ? c->size - c->pos : 0;
}

const uint8_t *weir_cursor_bytes(weir_cursor *c, uint64_t n)
{
    if (c->status != WEIR_OK)
        return NULL;
    if (n > c->size - c->pos) {
        weir_cursor_fail(c, WEIR_E_FORMAT, "the file ends too early: %llu bytes wanted, %zu left",
                         (unsigned long long)n, c->size - c->pos);
        return NULL;
    }
    const uint8_t *p = c->p + c->pos;
    c->pos += (size_t)n;
    return p;
}

/* n <= 8 bytes as a little-endian number; 0 past the end. */
static uint64_t take(weir_cursor *c, int n)
{
    const uint8_t *p = weir_cursor_bytes(c, (uint64_t)n);
    uint64_t v = 0;
    for (int i = 0; p && i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint8_t weir_cursor_u8(weir_cursor *c)
{
    return (uint8_t)take(c, 1);
}

uint16_t weir_cursor_u16(weir_cursor *c)
{
    return (uint16_t)take(c, 2);
}

uint32_t weir_cursor_u32(weir_cursor *c)
{
    return (uint32_t)take(c, 4);
}

uint64_t weir_cursor_u64(weir_cursor *c)
{
    return take(c, 8);
}

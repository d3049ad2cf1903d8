/* io/cursor.h: a bounds-checked little-endian reader; errors are sticky and carry file and byte offset. */
#ifndef WEIR_CURSOR_H
#define WEIR_CURSOR_H

#include <weir/base.h>

typedef struct weir_cursor {
    const uint8_t *p;
    size_t size, pos;
    const char *file;
    weir_err *err;
    weir_status status;
} weir_cursor;

void weir_cursor_init(weir_cursor *c, const void *p, size_t size, const char *file, weir_err *err);
uint8_t weir_cursor_u8(weir_cursor *c);
uint16_t weir_cursor_u16(weir_cursor *c);
uint32_t weir_cursor_u32(weir_cursor *c);
uint64_t weir_cursor_u64(weir_cursor *c);
/* n bytes in place, or NULL past the end. */
const uint8_t *weir_cursor_bytes(weir_cursor *c, uint64_t n);
size_t weir_cursor_left(const weir_cursor *c);
/* Fails at the current offset (first error wins). */
weir_status weir_cursor_fail(weir_cursor *c, weir_status code, const char *fmt, ...) WEIR_PRINTF(3, 4);

#endif

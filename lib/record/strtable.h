/* record/strtable.h: strings one after the other, as two datasets: bytes, and offsets [n + 1] into them. */
#ifndef WEIR_STRTABLE_H
#define WEIR_STRTABLE_H

#include "tiled.h"

typedef struct weir_strings {
    weir_tiled bytes, offsets;
} weir_strings;

/* Creates NAME/{bytes,offsets} below loc. Zero s before; close in every case. */
WEIR_CHECKED weir_status weir_strings_create(weir_strings *s, hid_t loc, const char *name, bool filtered,
                                             weir_tile_writer *w, weir_err *err);
/* Opens NAME below loc, not filtered, as weir_tiled_open does. */
WEIR_CHECKED weir_status weir_strings_open(weir_strings *s, hid_t loc, const char *name, const weir_tile_writer *w,
                                           weir_err *err);
/* Goes on behind the first n strings. */
WEIR_CHECKED weir_status weir_strings_resume(weir_strings *s, int64_t n, weir_err *err);
WEIR_CHECKED weir_status weir_strings_cut(weir_strings *s, weir_err *err);
WEIR_CHECKED weir_status weir_strings_append(weir_strings *s, weir_tile_writer *w, weir_str text, weir_err *err);
int64_t weir_strings_count(const weir_strings *s);
/* String i of those that are there; *out is to be freed with weir_free, with a NUL behind its n bytes. */
WEIR_CHECKED weir_status weir_strings_read(weir_strings *s, int64_t i, char **out, int64_t *n, weir_err *err);
WEIR_CHECKED weir_status weir_strings_flush(weir_strings *s, weir_tile_writer *w, weir_err *err);
WEIR_CHECKED weir_status weir_strings_sync(weir_strings *s, weir_err *err);
void weir_strings_close(weir_strings *s);

#endif

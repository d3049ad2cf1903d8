/* base/json_scan.h: JSON's strings and numbers as bytes, below the reader in json.c. */
#ifndef WEIR_JSON_SCAN_H
#define WEIR_JSON_SCAN_H

#include "mem.h"

/* pos: behind the opening quote. Returns the position of the closing quote; or, with *problem set, of what is wrong. */
size_t weir_json_scan_string(const char *text, size_t len, size_t pos, bool *escapes, const char **problem);
/* Appends the bytes of a string that scan_string accepted, escapes resolved. */
WEIR_CHECKED weir_status weir_json_unescape(weir_buf *out, const char *p, size_t n);
/* pos: at the first character. Returns the end. *integer: neither fraction nor exponent. */
size_t weir_json_scan_number(const char *text, size_t len, size_t pos, bool *integer, const char **problem);
/* The value of n digits; false on overflow. */
bool weir_json_digits(const char *p, size_t n, uint64_t *out);

#endif

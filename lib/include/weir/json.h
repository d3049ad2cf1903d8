/* weir/json.h: a strict pull parser (RFC 8259) over bytes in memory, and a small writer.
 *
 *     weir_json j;
 *     weir_json_init(&j, text, len, "config.json", &err);
 *     weir_str key;
 *     weir_json_object(&j);
 *     while (weir_json_key(&j, &key)) {
 *         if (weir_str_eq(key, "n_layer")) layers = weir_json_int(&j);
 *     }                                        // a value that was not read is skipped (and checked)
 *     weir_json_end(&j);                       // nothing but white space may follow
 *     status = weir_json_done(&j);             // WEIR_OK, or the first error (err has file and byte offset)
 *
 * Errors are sticky: after the first one every call returns false, 0 or an empty string, so that a reader checks once,
 * at the end. Integers are exact over int64 and uint64; a fraction, an exponent or an overflow where an integer is
 * asked is an error. Strings are UTF-8 (invalid UTF-8, lone surrogates and raw control characters are errors), may hold
 * NUL, and are borrowed until the next call that reads a string or key. Duplicate keys in one object are an error.
 * Depth at most 256. Memory: the set of keys of the open objects and the longest string with escapes.
 */
#ifndef WEIR_JSON_H
#define WEIR_JSON_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_json_type {
    WEIR_JSON_NONE = 0, /* end of input or error */
    WEIR_JSON_OBJECT,
    WEIR_JSON_ARRAY,
    WEIR_JSON_STRING,
    WEIR_JSON_NUMBER,
    WEIR_JSON_BOOL,
    WEIR_JSON_NULL
} weir_json_type;

typedef struct weir_json {
    const char *text;
    size_t len, pos;  /* pos: where the reader is, for messages */
    const char *file; /* for errors; may be NULL; must outlive the reader */
    weir_err *err;
    weir_status status;
    void *state; /* the reader's own; freed by weir_json_done */
} weir_json;

/* err may be NULL. text is borrowed. */
WEIR_API void weir_json_init(weir_json *j, const void *text, size_t len, const char *file, weir_err *err);
/* Frees the reader's memory and returns its status. Must be called once. */
WEIR_API weir_status weir_json_done(weir_json *j);

WEIR_API weir_json_type weir_json_peek(weir_json *j); /* type of the value that comes next */
WEIR_API bool weir_json_object(weir_json *j);         /* enters an object */
/* True: a key was read, its value comes. False: the object is left, or an error. */
WEIR_API bool weir_json_key(weir_json *j, weir_str *key);
WEIR_API bool weir_json_array(weir_json *j); /* enters an array */
WEIR_API bool weir_json_item(weir_json *j);  /* true: a value comes; false: array left, or error */
WEIR_API weir_str weir_json_string(weir_json *j);
WEIR_API int64_t weir_json_int(weir_json *j);
WEIR_API uint64_t weir_json_uint(weir_json *j);
WEIR_API double weir_json_double(weir_json *j); /* correctly rounded, independent of the locale */
WEIR_API bool weir_json_bool(weir_json *j);
WEIR_API void weir_json_null(weir_json *j);
WEIR_API void weir_json_skip(weir_json *j); /* one value of any type, checked as strictly as a read one */
WEIR_API void weir_json_end(weir_json *j);
/* The raw bytes of the value that comes next (it is skipped); to be read again with another weir_json. */
WEIR_API weir_str weir_json_raw(weir_json *j);
/* Makes the reader fail at the current offset. */
WEIR_API void weir_json_fail(weir_json *j, const char *fmt, ...) WEIR_PRINTF(2, 3);

WEIR_API bool weir_str_eq(weir_str s, const char *z);

/* --- writing: strings are escaped, numbers round-trip, NaN and infinities become null. Commas are the writer's job. At
 * most 63 levels deep. Errors of the stream are the stream's (ferror).
 *
 *     weir_jsonw w;
 *     weir_jsonw_init(&w, stdout);
 *     weir_jsonw_object(&w);
 *     weir_jsonw_key_int(&w, "rows", 12);
 *     weir_jsonw_end(&w);                      // {"rows":12}
 */
typedef struct weir_jsonw {
    FILE *f;
    int depth;
    bool comma[64];
    bool in_object[64];
} weir_jsonw;
WEIR_API void weir_jsonw_init(weir_jsonw *w, FILE *f);
WEIR_API void weir_jsonw_object(weir_jsonw *w);
WEIR_API void weir_jsonw_array(weir_jsonw *w);
WEIR_API void weir_jsonw_end(weir_jsonw *w); /* closes the innermost object or array */
WEIR_API void weir_jsonw_key(weir_jsonw *w, const char *key);
/* Bytes that are not valid UTF-8 are written as U+FFFD. */
WEIR_API void weir_jsonw_str(weir_jsonw *w, const char *p, size_t n);
WEIR_API void weir_jsonw_cstr(weir_jsonw *w, const char *z);
WEIR_API void weir_jsonw_int(weir_jsonw *w, int64_t v);
WEIR_API void weir_jsonw_double(weir_jsonw *w, double v);
WEIR_API void weir_jsonw_float(weir_jsonw *w, float v); /* shortest digits that give the same float back */
WEIR_API void weir_jsonw_real(weir_jsonw *w, double v); /* never taken for an integer: 3 is written as 3.0 */
WEIR_API void weir_jsonw_bool(weir_jsonw *w, bool v);
WEIR_API void weir_jsonw_null(weir_jsonw *w);
/* A value that is JSON text already; line breaks become spaces. NULL, what is no JSON, and what there is no memory to
 * check: null. */
WEIR_API void weir_jsonw_json(weir_jsonw *w, const char *text);
/* A key and its value in one call; z NULL: null. */
WEIR_API void weir_jsonw_key_cstr(weir_jsonw *w, const char *key, const char *z);
WEIR_API void weir_jsonw_key_int(weir_jsonw *w, const char *key, int64_t v);
WEIR_API void weir_jsonw_key_double(weir_jsonw *w, const char *key, double v);
WEIR_API void weir_jsonw_key_bool(weir_jsonw *w, const char *key, bool v);

#ifdef __cplusplus
}
#endif
#endif

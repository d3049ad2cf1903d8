/* io/object.h: one JSON object as a list of keys and places, so that a configuration can be asked by key, and an error
 * names the byte. */
#ifndef WEIR_OBJECT_H
#define WEIR_OBJECT_H

#include <weir/json.h>

#include "../base/mem.h"
#include "filemap.h"

typedef struct weir_pair {
    weir_str key;
    weir_str raw; /* the value's text, within the object's text */
} weir_pair;

typedef struct weir_object {
    weir_str text; /* the whole document */
    const char *file;
    const weir_pair *pair;
    int64_t n;
    weir_arena *arena; /* of the keys, the list, and the strings that are asked for */
} weir_object;

/* Reads the document, which must be one object; text and file are borrowed. */
WEIR_CHECKED weir_status weir_object_read(weir_object *o, weir_arena *arena, weir_str text, const char *file,
                                          weir_err *err);
/* Maps a file and reads it. Close the map (weir_filemap_close) once nothing more is asked: keys and strings stay, raw
 * values do not. After an error there is none to close. */
WEIR_CHECKED weir_status weir_object_open(weir_object *o, weir_filemap *map, weir_arena *arena, const char *path,
                                          weir_err *err);
/* The object that is a value of another one. */
WEIR_CHECKED weir_status weir_object_enter(weir_object *o, const weir_object *parent, const weir_pair *p,
                                           weir_err *err);

/* NULL: absent. */
const weir_pair *weir_object_find(const weir_object *o, const char *key);
/* NULL: absent, or null. */
const weir_pair *weir_object_value(const weir_object *o, const char *key);
bool weir_pair_is_null(const weir_pair *p);

/* Typed values. An error names file, offset and key. */
WEIR_CHECKED weir_status weir_pair_int(const weir_object *o, const weir_pair *p, int64_t *out, weir_err *err);
WEIR_CHECKED weir_status weir_pair_double(const weir_object *o, const weir_pair *p, double *out, weir_err *err);
WEIR_CHECKED weir_status weir_pair_bool(const weir_object *o, const weir_pair *p, bool *out, weir_err *err);
WEIR_CHECKED weir_status weir_pair_string(const weir_object *o, const weir_pair *p, const char **out, weir_err *err);
/* A key's string. Absent or null: *out stays as it is. */
WEIR_CHECKED weir_status weir_object_string(const weir_object *o, const char *key, const char **out, weir_err *err);
/* Fails with the place of the value and its key in front of the text. */
weir_status weir_pair_fail(const weir_object *o, const weir_pair *p, weir_err *err, weir_status code, const char *fmt,
                           ...) WEIR_PRINTF(5, 6);

/* Opens a reader at the value; finish with weir_pair_done. */
void weir_pair_reader(const weir_object *o, const weir_pair *p, weir_json *j, weir_err *local);
weir_status weir_pair_done(const weir_object *o, const weir_pair *p, weir_json *j, const weir_err *local,
                           weir_err *err);

#endif

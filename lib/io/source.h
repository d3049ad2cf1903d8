/* io/source.h: the bytes of a file or of standard input in order, gzip (recognised by content) undone. */
#ifndef WEIR_SOURCE_H
#define WEIR_SOURCE_H

#include <weir/base.h>

typedef struct weir_source weir_source;

/* path "-": standard input. Errors name the path ("stdin"). path is borrowed until close. stop: as in
 * weir_docs_options, or NULL. */
WEIR_CHECKED weir_status weir_source_open(weir_source **out, const char *path, bool (*stop)(void *user), void *user,
                                          weir_err *err);
/* Up to n bytes to p; *got = 0 only at the end. */
WEIR_CHECKED weir_status weir_source_read(weir_source *s, void *p, size_t n, size_t *got, weir_err *err);
/* Bytes read so far, as stored (before gzip is undone). */
int64_t weir_source_stored(const weir_source *s);
const char *weir_source_name(const weir_source *s);
void weir_source_close(weir_source *s);

#endif

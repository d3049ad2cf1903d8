/* io/filemap.h: read-only private maps of files. */
#ifndef WEIR_FILEMAP_H
#define WEIR_FILEMAP_H

#include <weir/base.h>

typedef struct weir_filemap {
    const uint8_t *data; /* NULL for an empty file */
    size_t size;
    char *path; /* owned */
} weir_filemap;

/* Maps a regular file; reads nothing. Errors name the path. */
WEIR_CHECKED weir_status weir_filemap_open(weir_filemap *m, const char *path, weir_err *err);
void weir_filemap_close(weir_filemap *m);
/* Is it the text that git leaves in place of a large file which it did not fetch (Git LFS)? And what to say of it. */
bool weir_filemap_is_pointer(const weir_filemap *m);
#define WEIR_POINTER_SAID "this is a pointer of Git LFS, not the file: run git lfs pull, or download the file itself"

/* Only the first n bytes are about to be read: the system reads those ahead and nothing behind them (it would fetch
 * megabytes of weights for every file that is opened), until weir_filemap_normal. */
void weir_filemap_head_only(const weir_filemap *m, size_t n);
void weir_filemap_normal(const weir_filemap *m);

/* Bytes of any read-only map of a file. _fetch: they are about to be read, so that the system reads them ahead. _drop:
 * they were read, and the process lets go of all pages that they touch. They can be read again: from the system's cache
 * as long as it has room for them, else from the file. Memory of another kind would be lost. */
void weir_map_fetch(const void *p, size_t n);
void weir_map_drop(const void *p, size_t n);

/* dir + "/" + name in a new string (weir_free), or NULL. */
char *weir_path_join(const char *dir, const char *name);
bool weir_path_is_dir(const char *path);
/* Also true of what may not be looked at (no permission, a loop of links): opening it says why. */
bool weir_path_is_file(const char *path);
/* Does nothing lie there, not even a link that leads nowhere? */
bool weir_path_is_absent(const char *path);

#endif

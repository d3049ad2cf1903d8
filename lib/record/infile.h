/* record/infile.h: an HDF5 file that is read, through a file descriptor of our own.
 *
 * HDF5 reads it by a small file driver over that descriptor. Three things come from it: other threads read chunks with
 * pread while HDF5 is called from one thread only; no lock is taken, so that a file that another process writes (SWMR)
 * is read without disturbing it; and HDF5 tells where a chunk lies, see weir_infile_locate.
 */
#ifndef WEIR_INFILE_H
#define WEIR_INFILE_H

#include "h5.h"

typedef struct weir_infile {
    char *path;
    int fd;
    hid_t id;     /* 0: not open */
    hid_t driver; /* registered for as long as the file is open */
    bool nomem;   /* the driver could not allocate: HDF5 has no word for that */
    int64_t size; /* bytes, when last asked */
    struct weir_tap *tap;
} weir_infile;

/* Zero f before; close in every case. Fails with one line that says what to do: no HDF5 file, cut short, left by a kill
 * (`weir repair`). */
WEIR_CHECKED weir_status weir_infile_open(weir_infile *f, const char *path, weir_err *err);
/* What has been written since is seen; all HDF5 ids of the file become invalid. The same file, also if it has another
 * name by now. After a failure f is closed. */
WEIR_CHECKED weir_status weir_infile_reopen(weir_infile *f, weir_err *err);
void weir_infile_close(weir_infile *f);

typedef struct weir_chunk_place {
    int64_t offset, bytes; /* in the file; bytes 0: the chunk does not exist, it holds the fill value */
    uint32_t skipped;      /* bit i: filter i was not applied */
} weir_chunk_place;

/* Where the chunk of `dataset` lies that begins at element `at`. Inside the file for sure. A few microseconds. */
WEIR_CHECKED weir_status weir_infile_locate(weir_infile *f, hid_t dataset, const hsize_t *at, weir_chunk_place *place,
                                            weir_err *err);
/* Exactly n bytes; 0, or the errno of the failure, ENODATA at the end of the file. From any thread. */
int weir_infile_pread(const weir_infile *f, void *out, size_t n, int64_t offset);

#endif

/* record/part.h: PATH.part: an output while it is written; it gets the name PATH when it is whole.
 *
 * Another run may have been forced over it in the meantime, so it is known by device and inode: what is not this run's
 * is neither renamed nor removed.
 */
#ifndef WEIR_PART_H
#define WEIR_PART_H

#include <sys/types.h>
#include <weir/base.h>

/* Zero it before; free in every case. */
typedef struct weir_partfile {
    char *path, *part;  /* PATH, PATH.part */
    const char *format; /* what kind of file it is: its root attribute */
    bool taken;         /* PATH.part is this run's, as this file: */
    dev_t dev;
    ino_t ino;
} weir_partfile;

WEIR_CHECKED weir_status weir_partfile_init(weir_partfile *f, const char *path, const char *format, weir_err *err);
/* The names only: PATH.part stays as it is. */
void weir_partfile_free(weir_partfile *f);

/* May PATH be replaced in the end? Only if it is free or a file of ours of the same format, so that statistics never
 * take the place of a recording. */
WEIR_CHECKED weir_status weir_partfile_check_target(const weir_partfile *f, weir_err *err);
/* Creates PATH.part, empty. One that exists is removed with force, unless another run writes it or it is not a file;
 * without force it is an error (WEIR_E_ARG): "PATH.part exists", and behind that `advice`. */
WEIR_CHECKED weir_status weir_partfile_take(weir_partfile *f, bool force, const char *advice, weir_err *err);
/* Takes over the PATH.part that exists, for going on with it. *there = false: there is none. */
WEIR_CHECKED weir_status weir_partfile_adopt(weir_partfile *f, bool *there, weir_err *err);
/* Is PATH.part still the file that this run writes? */
WEIR_CHECKED weir_status weir_partfile_check(const weir_partfile *f, weir_err *err);
/* Gives the closed PATH.part its final name. */
WEIR_CHECKED weir_status weir_partfile_publish(weir_partfile *f, weir_err *err);
/* Removes PATH.part if it is still the file that this run writes. */
void weir_partfile_drop(const weir_partfile *f);

#endif

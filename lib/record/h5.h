/* record/h5.h: a few helpers over HDF5: silence, errors as weir_err, attributes.
 *
 * HDF5 prints its error stack by itself, so every public call of this room begins with weir_h5_quiet_begin and ends
 * with weir_h5_quiet_end, which restores what the program had set. HDF5 is called from the caller's thread only.
 */
#ifndef WEIR_H5_H
#define WEIR_H5_H

#include <hdf5.h>
#include <weir/base.h>

typedef struct weir_h5_quiet {
    H5E_auto2_t print;
    void *user;
} weir_h5_quiet;
void weir_h5_quiet_begin(weir_h5_quiet *q);
void weir_h5_quiet_end(const weir_h5_quiet *q);

/* Fails with "WHAT: REASON", the reason being the innermost entry of HDF5's error stack, or the system's own words
 * where a system call failed (then WEIR_E_IO, else WEIR_E_HDF5). Clears the stack. */
weir_status weir_h5_fail(weir_err *err, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* File access as weir wants it: format of HDF5 1.10 (readable there, ready for SWMR), locks that may be missing (NFS).
 * -1 on failure. */
hid_t weir_h5_access(void);
/* Creating, without object times; -1 on failure, the reason left for weir_h5_fail. in_order: the group keeps the order
 * in which its links were made. A dataset of fixed size, contiguous, without filters. */
hid_t weir_h5_create_file(const char *path);
/* H5Fstart_swmr_write; a follower's moment of holding the lock is waited for. */
herr_t weir_h5_start_swmr(hid_t file);
/* Opens for reading and writing; -1 on failure, the reason left for weir_h5_fail. locked: no other program may have it
 * open. apart: also if HDF5 has the file open in this process already, which it has after a close that was left out:
 * what it keeps of that is not looked at. */
hid_t weir_h5_open_file(const char *path, bool locked, bool apart);
hid_t weir_h5_create_group(hid_t loc, const char *name, bool in_order);
hid_t weir_h5_create_dataset(hid_t loc, const char *name, hid_t type, hid_t space);
/* Such a dataset [n], with these values; open, to be closed. */
hid_t weir_h5_put_column(hid_t loc, const char *name, hid_t type, int64_t n, const void *values);
/* To be asked before a chunked dataset is cut to `rows`: fails where it says that it has more rows than its file can
 * hold. HDF5 would look for every chunk that they could have, for ever. */
WEIR_CHECKED weir_status weir_h5_check_cut(hid_t dataset, int64_t rows, weir_err *err);
/* HDF5's own descriptor of a file that it has open with its plain driver; -1: none. */
int weir_h5_descriptor(hid_t file);
/* Is there an object at this path from the root, and every part of it a link to something in this very file? HDF5 opens
 * other files by itself where a link leads there. */
bool weir_h5_has_path(hid_t file, const char *path);
/* How to list a group: in the order in which its links were made, where it keeps that, else by name. */
H5_index_t weir_h5_link_order(hid_t group);

/* Attributes of an object. Strings are variable-length UTF-8, so that h5py gives str. */
weir_status weir_h5_put_str(hid_t loc, const char *name, const char *text, weir_err *err);
weir_status weir_h5_put_int(hid_t loc, const char *name, int64_t v, weir_err *err); /* also replaces */
weir_status weir_h5_put_ints(hid_t loc, const char *name, const int64_t *v, int64_t n, weir_err *err);

/* An attribute as text: strings as they are, integers and floats formatted, lists joined by ", ". *out = NULL when it
 * is absent or of another kind, else to be freed with weir_free. Fails for want of memory only. */
WEIR_CHECKED weir_status weir_h5_get_text(hid_t loc, const char *name, char **out, weir_err *err);
/* A list of integers: *out [n], to be freed with weir_free, NULL where the attribute is absent. *fits = false: it is
 * there, but is not n integers. Fails for want of memory only. */
WEIR_CHECKED weir_status weir_h5_get_ints(hid_t loc, const char *name, int64_t n, int64_t **out, bool *fits,
                                          weir_err *err);
/* Does the attribute hold exactly these integers? n = 0: is it absent? */
WEIR_CHECKED weir_status weir_h5_has_ints(hid_t loc, const char *name, const int64_t *v, int64_t n, bool *same,
                                          weir_err *err);
/* A scalar integer attribute; false when it is absent or no integer. */
bool weir_h5_get_int(hid_t loc, const char *name, int64_t *v);

/* Is PATH an HDF5 file whose root attribute `format` is this? Fails for want of memory only. */
WEIR_CHECKED weir_status weir_h5_is_ours(const char *path, const char *format, bool *ours, weir_err *err);

#endif

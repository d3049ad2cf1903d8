/* io/zip.h: one member of a zip archive, as numpy's .npz are (PKWARE, APPNOTE 6.3.10): stored or deflated, below 4 GiB.
 */
#ifndef WEIR_ZIP_H
#define WEIR_ZIP_H

#include "filemap.h"

/* A member's bytes: in the archive's map, or inflated into `own`. */
typedef struct weir_zip_member {
    const uint8_t *data;
    size_t size;
    uint8_t *own; /* weir_free, or NULL */
} weir_zip_member;

bool weir_zip_is(const weir_filemap *m);
/* The member of this name; its checksum is checked. Errors name the archive: WEIR_E_FORMAT where it is damaged, or has
 * no such member; WEIR_E_UNSUPPORTED for zip64, encryption and other methods. */
WEIR_CHECKED weir_status weir_zip_find(weir_zip_member *out, const weir_filemap *m, const char *name, weir_err *err);

#endif

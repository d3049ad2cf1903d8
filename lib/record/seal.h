/* record/seal.h: the last bytes of a file of arrays are a line that names its format and the CRC-32 (zlib's) of
 * all bytes before it.
 *
 * HDF5 has checksums of its own structures, and packed arrays have one each, but strings of attributes have none: a
 * wrong bit among them is another text, or a crash inside HDF5. So a file is compared with its seal before HDF5 sees
 * it. HDF5 takes no notice of what stands behind its own end of a file, and cuts it off when it opens the file for
 * writing: what others changed has no seal any more, and is read without one.
 */
#ifndef WEIR_SEAL_H
#define WEIR_SEAL_H

#include <weir/base.h>

enum { WEIR_SEAL_NAMES = 25 /* bytes of a format's name, with its NUL */ };

/* Puts the seal behind what is in PATH. */
WEIR_CHECKED weir_status weir_seal_put(const char *path, const char *format, weir_err *err);
/* WEIR_E_FORMAT: the file has a seal, and it is broken. A file that has none, or cannot be opened, is let through. */
WEIR_CHECKED weir_status weir_seal_check(const char *path, weir_err *err);
/* The format that the seal names, broken or not; false: there is no seal. */
bool weir_seal_format(const char *path, char out[WEIR_SEAL_NAMES]);

#endif

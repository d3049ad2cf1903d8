/* record/superblock.h: the first bytes of an HDF5 file, as far as they are looked at, or put right, by hand: HDF5 File
 * Format Specification 3.0, II.A, superblocks of version 2 and 3 with 8-byte addresses. */
#ifndef WEIR_SUPERBLOCK_H
#define WEIR_SUPERBLOCK_H

#define WEIR_HDF5_SIGNATURE "\x89HDF\r\n\x1a\n"

enum {
    WEIR_SUPER_SIGNATURE = 8, /* bytes of the signature; behind it the version */
    WEIR_SUPER_VERSION = 8,
    WEIR_SUPER_ADDRESS = 9,   /* bytes of an address */
    WEIR_SUPER_FLAGS = 11,    /* version 3 */
    WEIR_SUPER_END = 28,      /* end of the file, 8 bytes */
    WEIR_SUPER_CHECKSUM = 44, /* of the bytes before it */
    WEIR_SUPER_BYTES = 48
};
enum { WEIR_SUPER_WRITTEN = 1, WEIR_SUPER_SWMR = 4 }; /* flags: open for writing; in SWMR mode */

#endif

/* record/behind.h: keeps what was written from filling the page cache. A dump is written once and far larger than what
 * else the machine holds; its pages, handed back early, are used again, which is faster than touching new ones. */
#ifndef WEIR_BEHIND_H
#define WEIR_BEHIND_H

#include <hdf5.h>
#include <stdint.h>

typedef struct weir_behind {
    int fd;          /* -1: nothing to do */
    int64_t started; /* bytes whose writing to disk was begun */
    int64_t dropped; /* bytes that were given back */
} weir_behind;

/* file: open for writing through HDF5's plain driver. */
void weir_behind_init(weir_behind *b, hid_t file);
/* Called now and then while the file grows. Failures are of no consequence. */
void weir_behind_push(weir_behind *b);

#endif

/* record/behind.c: see behind.h. */
#include "behind.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "h5.h"

enum { STEP = 16 << 20, LAG = 64 << 20 };

void weir_behind_init(weir_behind *b, hid_t file)
{
    *b = (weir_behind){.fd = weir_h5_descriptor(file)};
}

void weir_behind_push(weir_behind *b)
{
    struct stat st;
    if (b->fd < 0 || fstat(b->fd, &st) != 0 || st.st_size - b->started < STEP)
        return;
    sync_file_range(b->fd, b->started, st.st_size - b->started, SYNC_FILE_RANGE_WRITE);
    b->started = st.st_size;
    int64_t gone = b->started - LAG - b->dropped;
    if (gone <= 0)
        return;
    sync_file_range(b->fd, b->dropped, gone,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(b->fd, b->dropped, gone, POSIX_FADV_DONTNEED);
    b->dropped += gone;
}

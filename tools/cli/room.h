/* cli/room.h: room for more elements. */
#ifndef WEIR_CLI_ROOM_H
#define WEIR_CLI_ROOM_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* at: address of a pointer, of whatever type, to memory that realloc knows, or to NULL. Afterwards it has n elements of
 * size bytes; what was there stays. False: out of memory, and the old ones are kept. The pointer is copied as bytes,
 * because a `T *` must not be read as a `void *`. */
static inline bool weir_room(void *at, size_t n, size_t size)
{
    void *p;
    memcpy(&p, at, sizeof p);
    p = realloc(p, n * size);
    if (p)
        memcpy(at, &p, sizeof p);
    return p;
}

#endif

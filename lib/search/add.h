/* search/add.h: see add.c. */
#ifndef WEIR_SEARCH_ADD_H
#define WEIR_SEARCH_ADD_H

#include <stddef.h>

/* Of each of weir_neurons.scratch, 64-byte aligned. */
size_t weir_add_scratch_bytes(void);

#endif

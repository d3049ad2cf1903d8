/* tests/unit/npy_kit.h: writes .npy files by hand. */
#ifndef WEIR_TEST_NPY_KIT_H
#define WEIR_TEST_NPY_KIT_H

#include <stdint.h>
#include <stdio.h>

#include "support/scratch.h"

/* A file of format version `major`.0 with this dictionary as it stands, and n bytes of data. */
static inline const char *npy_raw(const char *name, int major, const char *dictionary, const void *data, size_t n)
{
    static uint8_t bytes[1 << 20];
    size_t text = strlen(dictionary), at = 8;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (uint8_t)major;
    bytes[7] = 0;
    for (int i = 0; i < (major == 1 ? 2 : 4); i++)
        bytes[at++] = (uint8_t)(text >> 8 * i);
    if (at + text + n > sizeof bytes)
        abort();
    memcpy(bytes + at, dictionary, text);
    if (n)
        memcpy(bytes + at + text, data, n);
    return scratch_write(name, bytes, at + text + n);
}

static inline const char *npy_of(const char *name, const char *descr, bool fortran, const char *shape, const void *data,
                                 size_t n)
{
    char text[256];
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }          \n", descr,
             fortran ? "True" : "False", shape);
    return npy_raw(name, 1, text, data, n);
}

static inline const char *npy_floats(const char *name, int64_t rows, int64_t width, const float *data)
{
    char shape[64];
    snprintf(shape, sizeof shape, "(%lld, %lld)", (long long)rows, (long long)width);
    return npy_of(name, "<f4", false, shape, data, (size_t)(rows * width) * sizeof *data);
}

#endif

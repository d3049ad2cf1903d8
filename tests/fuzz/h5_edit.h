/* fuzz/h5_edit.h: damaged HDF5 files of ours. A sound file is edited through HDF5, step by step, as an input says: a
 * file that HDF5 itself can read, but that no run of ours would write. (Bytes of HDF5's own structures are not touched:
 * what libhdf5 makes of those is not ours to mend. tests/fuzz/README.md)
 *
 *     a step: 1 byte what, 1 byte which object, and what the step needs; short input reads as 0
 */
#ifndef FUZZ_H5_EDIT_H
#define FUZZ_H5_EDIT_H

#include <hdf5.h>
#include <sys/stat.h>

#include "driver.h"
#include "parts.h"

enum { EDIT_STEPS = 12 };

/* --- the bytes of the input */

typedef struct edit_input {
    const uint8_t *p;
    size_t n;
} edit_input;

static inline uint64_t edit_number(edit_input *in, size_t bytes)
{
    uint64_t v = 0;
    size_t n = bytes < in->n ? bytes : in->n;
    memcpy(&v, in->p, n);
    in->p += n;
    in->n -= n;
    return v;
}

/* Up to `most` bytes, as many as a first one says. */
static inline edit_input edit_bytes(edit_input *in, size_t most)
{
    size_t n = (size_t)edit_number(in, 1);
    n = n < most ? n : most;
    edit_input part = {in->p, n < in->n ? n : in->n};
    in->p += part.n;
    in->n -= part.n;
    return part;
}

/* The largest size of an axis: where HDF5 walks over all the chunks that a dataset may have, less than any. */
#ifndef EDIT_SIZE_MOST
#define EDIT_SIZE_MOST UINT64_MAX
#endif

/* A size: mostly small, sometimes as large as 8 bytes say. */
static inline hsize_t edit_size(edit_input *in)
{
    uint64_t v = edit_number(in, 1);
    v = v < 250 ? v : edit_number(in, v < 253 ? 2 : 8);
    return v < EDIT_SIZE_MOST ? v : EDIT_SIZE_MOST;
}

/* --- sound files */

typedef struct edit_base {
    uint8_t *p;
    size_t n;
} edit_base;

static inline void edit_ok(weir_status st)
{
    PROMISE(st == WEIR_OK);
}

static inline edit_base edit_read(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    PROMISE(f && !fstat(fileno(f), &st) && st.st_size > 0);
    edit_base b = {malloc((size_t)st.st_size), (size_t)st.st_size};
    PROMISE(b.p && fread(b.p, 1, b.n, f) == b.n);
    fclose(f);
    return b;
}

/* What an edit can be about: paths, and names of attributes. */
typedef struct edit_names {
    const char *const *object, *const *attribute;
    int objects, attributes;
} edit_names;

/* Types of elements; close it with H5Tclose. */
static inline hid_t edit_type(edit_input *in)
{
    const hid_t plain[] = {H5T_STD_I64LE,  H5T_IEEE_F32LE, H5T_STD_I32LE, H5T_STD_U8LE,   H5T_IEEE_F64LE,
                           H5T_IEEE_F32BE, H5T_STD_U64BE,  H5T_STD_I16LE, H5T_STD_REF_OBJ};
    uint8_t kind = (uint8_t)(edit_number(in, 1) % 13);
    if (kind < 9)
        return H5Tcopy(plain[kind]);
    hid_t t = kind == 12 ? H5Tcreate(H5T_COMPOUND, 8) : H5Tcopy(kind == 11 ? H5T_IEEE_F32LE : H5T_C_S1);
    if (kind == 9)
        H5Tset_size(t, (size_t)(edit_number(in, 1) + 1));
    else if (kind == 10)
        H5Tset_size(t, H5T_VARIABLE);
    else if (kind == 11) { /* half precision */
        H5Tset_fields(t, 15, 10, 5, 0, 10);
        H5Tset_size(t, 2);
        H5Tset_ebias(t, 15);
    } else
        H5Tinsert(t, "a", 0, H5T_STD_I64LE);
    return t;
}

static inline hid_t edit_space(edit_input *in, hsize_t dim[4])
{
    hsize_t most[4];
    int rank = (int)(edit_number(in, 1) % 6);
    if (rank == 5)
        return H5Screate(H5S_NULL);
    for (int a = 0; a < rank; a++) {
        dim[a] = edit_size(in);
        most[a] = H5S_UNLIMITED;
    }
    return rank ? H5Screate_simple(rank, dim, most) : H5Screate(H5S_SCALAR);
}

/* --- the steps */

static inline void edit_put_attribute(hid_t file, const char *object, const edit_names *names, edit_input *in)
{
    const char *name = names->attribute[edit_number(in, 1) % (unsigned)names->attributes];
    hid_t o = H5Oopen(file, object, H5P_DEFAULT);
    hsize_t dim[4] = {0};
    uint8_t bytes[4096] = {0};
    H5Adelete(o, name);
    hid_t type = edit_type(in), space = edit_space(in, dim);
    bool text = H5Tis_variable_str(type) > 0;
    hssize_t n = H5Sget_simple_extent_npoints(space);
    hid_t a = n <= 64 ? H5Acreate2(o, name, type, space, H5P_DEFAULT, H5P_DEFAULT) : -1;
    edit_input value = edit_bytes(in, 255);
    char string[256] = {0}, *strings[64];
    memcpy(bytes, value.p, value.n);
    memcpy(string, value.p, value.n);
    for (int i = 0; i < 64; i++)
        strings[i] = string;
    if (a >= 0 && H5Tget_size(type) * (size_t)n <= sizeof bytes)
        H5Awrite(a, type, text ? (void *)strings : bytes);
    H5Aclose(a);
    H5Sclose(space);
    H5Tclose(type);
    H5Oclose(o);
}

/* Elements [from, from + n) of the first axis, as 8-byte integers that HDF5 converts, or as bytes. */
static inline void edit_put_elements(hid_t file, const char *object, edit_input *in)
{
    hid_t d = H5Dopen2(file, object, H5P_DEFAULT), space = H5Dget_space(d), type = H5Dget_type(d);
    hsize_t dim[4] = {0}, from[4] = {edit_size(in)}, one = 1;
    int64_t v = (int64_t)edit_number(in, 8);
    double f = (double)v;
    int rank = H5Sget_simple_extent_ndims(space);
    bool real = H5Tget_class(type) == H5T_FLOAT;
    if (rank >= 1 && rank <= 3 && H5Sget_simple_extent_dims(space, dim, NULL) >= 0 && from[0] < dim[0]) {
        hsize_t count[4] = {1, 1, 1, 1};
        hid_t mem = H5Screate_simple(1, &one, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, count, NULL);
        H5Dwrite(d, real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, mem, space, H5P_DEFAULT,
                 real ? (void *)&f : (void *)&v);
        H5Sclose(mem);
    }
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(d);
}

static inline void edit_set_extent(hid_t file, const char *object, edit_input *in)
{
    hid_t d = H5Dopen2(file, object, H5P_DEFAULT), space = H5Dget_space(d);
    hsize_t dim[4] = {0};
    if (H5Sget_simple_extent_ndims(space) <= 3 && H5Sget_simple_extent_dims(space, dim, NULL) >= 0) {
        dim[edit_number(in, 1) % 3] = edit_size(in);
        H5Dset_extent(d, dim);
    }
    H5Sclose(space);
    H5Dclose(d);
}

/* A chunk as stored: any bytes, any filter mask. */
static inline void edit_put_chunk(hid_t file, const char *object, edit_input *in)
{
    hid_t d = H5Dopen2(file, object, H5P_DEFAULT);
    hsize_t at[4] = {0};
    for (int a = 0; a < 3; a++)
        at[a] = edit_size(in);
    uint32_t mask = (uint32_t)edit_number(in, 1);
    edit_input bytes = edit_bytes(in, 255);
    if (bytes.n)
        H5Dwrite_chunk(d, H5P_DEFAULT, mask, at, bytes.n, bytes.p);
    H5Dclose(d);
}

/* Bytes of a chunk that is there changed in place. */
static inline void edit_patch_chunk(hid_t file, const char *object, edit_input *in)
{
    hid_t d = H5Dopen2(file, object, H5P_DEFAULT);
    hsize_t at[4] = {0}, n = 0;
    uint32_t mask = 0;
    at[0] = edit_size(in);
    at[1] = edit_size(in);
    size_t from = (size_t)edit_number(in, 2);
    edit_input bytes = edit_bytes(in, 255);
    if (H5Dget_chunk_storage_size(d, at, &n) >= 0 && n > from && n < 1 << 20) {
        uint8_t *raw = calloc(n + 256, 1);
        if (raw && H5Dread_chunk(d, H5P_DEFAULT, at, &mask, raw) >= 0) {
            memcpy(raw + from, bytes.p, bytes.n);
            H5Dwrite_chunk(d, H5P_DEFAULT, mask, at, n, raw);
        }
        free(raw);
    }
    H5Dclose(d);
}

/* Another object under the name: a dataset of any type and shape, a group, a link. */
static inline void edit_replace(hid_t file, const char *object, const edit_names *names, edit_input *in)
{
    static const H5Z_filter_t filters[] = {H5Z_FILTER_NONE, H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE,
                                           H5Z_FILTER_FLETCHER32, 300};
    uint8_t how = (uint8_t)(edit_number(in, 1) % 8);
    H5Ldelete(file, object, H5P_DEFAULT);
    if (how == 0)
        H5Lcreate_soft(names->object[edit_number(in, 1) % (unsigned)names->objects], file, object, H5P_DEFAULT,
                       H5P_DEFAULT);
    else if (how == 1)
        H5Lcreate_external("dump.h5", names->object[edit_number(in, 1) % (unsigned)names->objects], file, object,
                           H5P_DEFAULT, H5P_DEFAULT);
    else if (how == 2)
        H5Lcreate_hard(file, names->object[edit_number(in, 1) % (unsigned)names->objects], file, object, H5P_DEFAULT,
                       H5P_DEFAULT);
    else if (how == 3)
        H5Gclose(H5Gcreate2(file, object, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    if (how <= 3)
        return;
    hsize_t dim[4] = {0}, chunk[4];
    hid_t type = edit_type(in), space = edit_space(in, dim), plist = H5Pcreate(H5P_DATASET_CREATE);
    int rank = H5Sget_simple_extent_ndims(space);
    for (int a = 0; a < rank && a < 4; a++) {
        chunk[a] = edit_number(in, 1) + 1;
        if (chunk[a] < dim[a] / 32) /* few enough to read them all */
            chunk[a] = dim[a] / 32;
    }
    if (rank > 0 && how >= 5)
        H5Pset_chunk(plist, rank, chunk);
    for (int i = 0; i < 2 && how >= 6; i++) {
        H5Z_filter_t f = filters[edit_number(in, 1) % 5];
        unsigned level = 1;
        if (f != H5Z_FILTER_NONE)
            H5Pset_filter(plist, f, H5Z_FLAG_OPTIONAL, f == H5Z_FILTER_DEFLATE, &level);
    }
    H5Dclose(H5Dcreate2(file, object, type, space, H5P_DEFAULT, plist, H5P_DEFAULT));
    H5Pclose(plist);
    H5Sclose(space);
    H5Tclose(type);
}

static inline void edit_step(hid_t file, const edit_names *names, edit_input *in)
{
    uint8_t what = (uint8_t)edit_number(in, 1);
    const char *object = names->object[edit_number(in, 1) % (unsigned)names->objects];
    switch (what % 8) {
    case 0:
        edit_put_attribute(file, object, names, in);
        return;
    case 1:
    case 2:
        edit_put_elements(file, object, in);
        return;
    case 3:
        edit_set_extent(file, object, in);
        return;
    case 4:
        edit_put_chunk(file, object, in);
        return;
    case 5:
        edit_patch_chunk(file, object, in);
        return;
    case 6:
        edit_replace(file, object, names, in);
        return;
    default:
        H5Ldelete(file, object, H5P_DEFAULT);
    }
}

/* Writes the edited file to NAME of parts_path. */
static inline void edit_file(edit_input *in, const char *name, const edit_base *b, const edit_names *names)
{
    parts_write(name, b->p, b->n);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V110);
    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
    hid_t file = H5Fopen(parts_path(name), H5F_ACC_RDWR, fapl);
    PROMISE(file >= 0);
    for (int i = 0; i < EDIT_STEPS && in->n; i++)
        edit_step(file, names, in);
    H5Fclose(file);
    H5Pclose(fapl);
}

#endif

/* fuzz/dump_edit.h: damaged dumps. An input chooses a small sound dump and then edits it through HDF5, step by step: a
 * file that HDF5 itself can read, but that no run of ours would write. (Bytes of HDF5's own structures are not touched:
 * what libhdf5 makes of those is not ours to mend. tests/fuzz/README.md)
 *
 *     input: 1 byte base, then steps: 1 byte what, 1 byte which object, and what the step needs; short input reads as 0
 */
#ifndef FUZZ_DUMP_EDIT_H
#define FUZZ_DUMP_EDIT_H

#include <hdf5.h>

#include "../unit/record_fixture.h"
#include "driver.h"
#include "parts.h"

enum { EDIT_BASES = 4, EDIT_STEPS = 12 };

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

/* --- sound dumps */

static const weir_point edit_point[] = {
    {"hook_embed", WEIR_SITE_EMBED, -1, 2, 3, 1, 3, "T C", false, false},
    {"blocks.0.attn.hook_q", WEIR_SITE_Q, 0, 3, 6, 2, 3, "T H D", false, false},
    {"blocks.0.attn.hook_pattern", WEIR_SITE_PATTERN, 0, 3, 2 * 8, 2, 8, "T H S", true, false},
    {"blocks.1.mlp.hook_post", WEIR_SITE_MLP_POST, 1, 2, 5, 1, 5, "T F", false, false},
    {"ln_final.hook_out", WEIR_SITE_LNF_OUT, -1, 2, 70, 1, 70, "T C", false,
     false}, /* only in base 1: more than a tile */
};
enum { EDIT_POINTS = sizeof edit_point / sizeof *edit_point, EDIT_CTX = 8, EDIT_UNITS = 3 };

typedef struct edit_base {
    uint8_t *p;
    size_t n;
} edit_base;

static inline void edit_ok(weir_status st)
{
    PROMISE(st == WEIR_OK);
}

/* A sequence of 8 tokens is a document. */
static inline void edit_document(weir_dump *d, int64_t number, int n_points)
{
    static float x[EDIT_CTX * 70];
    fx_pass pass;
    const weir_field fields[] = {{.name = {"n", 1}, .type = WEIR_FIELD_INT, .i = number},
                                 {.name = {"f", 1}, .type = WEIR_FIELD_FLOAT, .f = 0.5},
                                 {.name = {"b", 1}, .type = WEIR_FIELD_BOOL, .i = 1},
                                 {.name = {"s/t", 3}, .type = WEIR_FIELD_STRING, .str = {"text", 4}}};
    const weir_doc doc = {.fields = fields, .n_fields = 4};
    fx_pass_make(&pass, number * EDIT_CTX, EDIT_CTX, number, 0);
    edit_ok(weir_dump_doc(d, &doc, "a.jsonl", NULL));
    edit_ok(fx_tokens(d, &pass, number, NULL));
    for (int i = 0; i < n_points; i++) {
        const weir_point *p = &edit_point[i];
        for (int64_t k = 0; k < EDIT_CTX * p->width; k++)
            x[k] = fx_value(i, number, k);
        const weir_value v = {p, x, p->width, p->heads, p->size, &pass.rows};
        edit_ok(weir_dump_value(d, &v, NULL));
    }
    fx_pass_free(&pass);
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

/* 0: complete, two documents; 1: more rows than a chunk has, selected units; 2: unfinished; 3: as 0, deflated (under a
 * fuzzer that takes most of the time, and fuzz_deflate.c is there for it). */
static inline edit_base edit_make(int which)
{
    static const int64_t units[EDIT_UNITS] = {1, 2, 4};
    const weir_dump_header h = fx_header();
    const int n_points = which == 1 ? EDIT_POINTS : EDIT_POINTS - 1;
    const char *path = parts_path("base.h5");
    weir_dump *d;
    weir_dump_options o;
    weir_dump_options_init(&o);
    o.threads = 1;
    o.force = true;
    o.ctx = EDIT_CTX;
    o.logprob = which != 1;
    o.compress = which == 3;
    edit_ok(weir_dump_new(&d, path, &h, &o, NULL));
    for (int i = 0; i < n_points; i++) {
        bool some = which == 1 && edit_point[i].site == WEIR_SITE_MLP_POST;
        edit_ok(weir_dump_add_point(d, &edit_point[i], some ? units : NULL, some ? EDIT_UNITS : -1, NULL));
    }
    for (int64_t i = 0; i < (which == 1 ? 1040 / EDIT_CTX : 2); i++)
        edit_document(d, i, n_points);
    if (which == 2)
        weir_dump_abort(d, true);
    else
        edit_ok(weir_dump_commit(d, NULL, NULL));
    path = parts_path(which == 2 ? "base.h5.part" : "base.h5");
    edit_base b = edit_read(path);
    unlink(path);
    return b;
}

static inline const edit_base *edit_base_of(int which)
{
    static edit_base base[EDIT_BASES];
    if (!base[which].p)
        base[which] = edit_make(which);
    return &base[which];
}

/* --- what an edit can be about */

static const char *const edit_object[] = {"/tokens/id",
                                          "/activations/hook_embed",
                                          "/activations/blocks.0.attn.hook_q",
                                          "/activations/blocks.0.attn.hook_pattern",
                                          "/activations/blocks.1.mlp.hook_post",
                                          "/activations/ln_final.hook_out",
                                          "/tokens/doc",
                                          "/tokens/pos",
                                          "/tokens/ctx_pos",
                                          "/tokens/byte_off",
                                          "/tokens/byte_len",
                                          "/tokens/flags",
                                          "/tokens/logprob",
                                          "/docs/start",
                                          "/docs/count",
                                          "/docs/byte_off",
                                          "/docs/byte_len",
                                          "/docs/source",
                                          "/docs/fields/n",
                                          "/docs/fields/f",
                                          "/docs/fields/b",
                                          "/docs/fields/s%2Ft/bytes",
                                          "/docs/fields/s%2Ft/offsets",
                                          "/vocab/bytes",
                                          "/vocab/offsets",
                                          "/sources/bytes",
                                          "/sources/offsets",
                                          "/progress/group",
                                          "/progress/rows_complete",
                                          "/row",
                                          "/unit_3",
                                          "/",
                                          "/tokens",
                                          "/docs",
                                          "/docs/fields",
                                          "/docs/fields/s%2Ft",
                                          "/vocab",
                                          "/sources",
                                          "/progress",
                                          "/activations",
                                          "/activations/new",
                                          "/docs/fields/new"};
static const char *const edit_attribute[] = {
    "format", "format_version", "complete", "heads", "head_size",      "layer", "letters", "units", "site",
    "ctx",    "interventions",  "shards",   "dtype", "DIMENSION_LIST", "CLASS", "new"};
enum {
    EDIT_OBJECTS = sizeof edit_object / sizeof *edit_object,
    EDIT_ATTRIBUTES = sizeof edit_attribute / sizeof *edit_attribute
};

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

static inline void edit_put_attribute(hid_t file, const char *object, edit_input *in)
{
    const char *name = edit_attribute[edit_number(in, 1) % EDIT_ATTRIBUTES];
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
static inline void edit_replace(hid_t file, const char *object, edit_input *in)
{
    static const H5Z_filter_t filters[] = {H5Z_FILTER_NONE, H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE,
                                           H5Z_FILTER_FLETCHER32, 300};
    uint8_t how = (uint8_t)(edit_number(in, 1) % 8);
    H5Ldelete(file, object, H5P_DEFAULT);
    if (how == 0)
        H5Lcreate_soft(edit_object[edit_number(in, 1) % EDIT_OBJECTS], file, object, H5P_DEFAULT, H5P_DEFAULT);
    else if (how == 1)
        H5Lcreate_external("dump.h5", edit_object[edit_number(in, 1) % EDIT_OBJECTS], file, object, H5P_DEFAULT,
                           H5P_DEFAULT);
    else if (how == 2)
        H5Lcreate_hard(file, edit_object[edit_number(in, 1) % EDIT_OBJECTS], file, object, H5P_DEFAULT, H5P_DEFAULT);
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

static inline void edit_step(hid_t file, edit_input *in)
{
    uint8_t what = (uint8_t)edit_number(in, 1);
    const char *object = edit_object[edit_number(in, 1) % EDIT_OBJECTS];
    switch (what % 8) {
    case 0:
        edit_put_attribute(file, object, in);
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
        edit_replace(file, object, in);
        return;
    default:
        H5Ldelete(file, object, H5P_DEFAULT);
    }
}

/* Writes the edited dump to the file NAME of parts_path. */
static inline void edit_dump(edit_input *in, const char *name)
{
    const edit_base *b = edit_base_of((int)(edit_number(in, 1) % EDIT_BASES));
    parts_write(name, b->p, b->n);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V110);
    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
    hid_t file = H5Fopen(parts_path(name), H5F_ACC_RDWR, fapl);
    PROMISE(file >= 0);
    for (int i = 0; i < EDIT_STEPS && in->n; i++)
        edit_step(file, in);
    H5Fclose(file);
    H5Pclose(fapl);
}

#endif

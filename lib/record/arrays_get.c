/* record/arrays_get.c: see weir/arrays.h: reading an array. HDF5 is shown only what has been looked at first. It only
 * tells where chunks lie: HDF5 1.10 takes a chunk that comes out too short for a whole one, and reads behind it. */
#include <inttypes.h>
#include <string.h>

#include "arrays_impl.h"
#include "base/mem.h"

enum {
    CHUNK_MOST = 1 << 30,
    DEFLATE_MOST = 1100, /* bytes that one byte of a deflate stream can stand for, and a little */
    AXES = WEIR_ARRAY_RANK
};

typedef struct opened {
    weir_arrays_in *r;
    const char *name;
    hid_t id;
    int rank;
    int64_t dim[AXES], elem, bytes;
    bool chunked;
    int64_t chunk[AXES], chunk_bytes;
} opened;

/* --- what HDF5 says of it */

static weir_status take_shape(opened *o, weir_err *err)
{
    hsize_t dim[H5S_MAX_RANK] = {0};
    hid_t space = H5Dget_space(o->id);
    o->rank = H5Sget_simple_extent_ndims(space);
    const bool good = o->rank >= 1 && o->rank <= AXES && H5Sget_simple_extent_dims(space, dim, NULL) >= 0;
    if (space >= 0)
        H5Sclose(space);
    if (!good)
        return weir_arrays_bad(o->r, o->name, err, "has no 1 to %d dimensions", AXES);
    o->bytes = o->elem;
    for (int i = 0; i < o->rank; i++) {
        if (dim[i] > INT64_MAX || !weir_mul64(o->bytes, (int64_t)dim[i], &o->bytes))
            return weir_arrays_bad(o->r, o->name, err, "is damaged: an impossible shape");
        o->dim[i] = (int64_t)dim[i];
    }
    return WEIR_OK;
}

static weir_status check_type(const opened *o, weir_array_type type, weir_err *err)
{
    H5O_info_t info;
    if (H5Oget_info2(o->id, &info, H5O_INFO_BASIC) < 0 || info.fileno != o->r->fileno)
        return weir_arrays_bad(o->r, o->name, err, "lies in another file");
    hid_t its = H5Dget_type(o->id);
    const bool same = its >= 0 && H5Tequal(its, weir_array_h5_type(type)) > 0;
    if (its >= 0)
        H5Tclose(its);
    return same ? WEIR_OK : weir_arrays_bad(o->r, o->name, err, "has another type of elements than it should");
}

/* Those of our own writer: HDF5 would look for plugins. */
static bool known_filters(hid_t list, int64_t elem)
{
    static const H5Z_filter_t ours[] = {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE};
    if (H5Pget_nfilters(list) != 2)
        return false;
    for (unsigned i = 0; i < 2; i++) {
        unsigned flags, value[8] = {0}, config;
        size_t n = 8;
        const H5Z_filter_t id = H5Pget_filter2(list, i, &flags, &n, value, 0, NULL, &config);
        if (id != ours[i] || (id == H5Z_FILTER_SHUFFLE && value[0] != elem))
            return false;
    }
    return true;
}

/* Chunks, of which the file has a byte each at least. */
static bool known_chunks(opened *o, hid_t list, int64_t stored)
{
    hsize_t chunk[AXES] = {0};
    int64_t n = 1;
    if (!known_filters(list, o->elem) || H5Pget_chunk(list, AXES, chunk) != o->rank)
        return false;
    o->chunk_bytes = o->elem;
    for (int i = 0; i < o->rank; i++) {
        o->chunk[i] = chunk[i] > CHUNK_MOST ? 0 : (int64_t)chunk[i];
        if (o->chunk[i] < 1 || !weir_mul64(o->chunk_bytes, o->chunk[i], &o->chunk_bytes))
            return false;
        n *= (o->dim[i] + o->chunk[i] - 1) / o->chunk[i];
    }
    return n <= stored && o->chunk_bytes <= CHUNK_MOST && o->chunk_bytes / DEFLATE_MOST <= stored;
}

/* Does the file hold the bytes that the array claims to have? */
static bool known_storage(opened *o, hid_t list)
{
    const int64_t stored = (int64_t)H5Dget_storage_size(o->id);
    const H5D_layout_t layout = H5Pget_layout(list);
    o->chunked = layout == H5D_CHUNKED;
    if (stored < 0 || H5Pget_external_count(list) != 0 || layout == H5D_VIRTUAL)
        return false;
    if (o->bytes == 0)
        return true;
    return o->chunked ? o->bytes / DEFLATE_MOST <= stored && known_chunks(o, list, stored) : stored >= o->bytes;
}

static weir_status open_array(opened *o, weir_array_type type, weir_err *err)
{
    o->elem = (int64_t)weir_array_type_bytes(type);
    o->id = weir_arrays_object(o->r, o->name);
    if (o->id < 0)
        return weir_arrays_bad(o->r, o->name, err, "is missing");
    if (H5Iget_type(o->id) != H5I_DATASET)
        return weir_arrays_bad(o->r, o->name, err, "is no array");
    WEIR_TRY(check_type(o, type, err));
    WEIR_TRY(take_shape(o, err));
    hid_t list = H5Dget_create_plist(o->id);
    const bool good = list >= 0 && known_storage(o, list);
    if (list >= 0)
        H5Pclose(list);
    return good ? WEIR_OK : weir_arrays_bad(o->r, o->name, err, "is damaged, or not as weir stores arrays");
}

static weir_status shape(opened *o, weir_array_type type, int rank, weir_err *err)
{
    WEIR_TRY(open_array(o, type, err));
    if (o->rank != rank)
        return weir_arrays_bad(o->r, o->name, err, "has %d dimensions instead of %d", o->rank, rank);
    return WEIR_OK;
}

static void close_array(opened *o)
{
    if (o->id >= 0)
        H5Oclose(o->id);
    H5Eclear2(H5E_DEFAULT);
}

weir_status weir_arrays_shape(weir_arrays_in *r, const char *name, weir_array_type type, int rank, int64_t *dim,
                              weir_err *err)
{
    weir_h5_quiet q;
    opened o = {.r = r, .name = name, .id = -1};
    weir_h5_quiet_begin(&q);
    weir_status st = shape(&o, type, rank, err);
    for (int i = 0; i < rank && !st; i++)
        dim[i] = o.dim[i];
    close_array(&o);
    weir_h5_quiet_end(&q);
    return st;
}

/* --- chunks */

static weir_status grow(uint8_t **p, size_t bytes, weir_err *err)
{
    uint8_t *grown = weir_realloc(*p, bytes, 1);
    if (!grown)
        return weir_nomem(err, "a chunk of an array");
    *p = grown;
    return WEIR_OK;
}

static weir_status make_room(weir_arrays_in *r, size_t packed, size_t chunk, weir_err *err)
{
    if (!r->inflater)
        WEIR_TRY(weir_inflater_new(&r->inflater, err));
    if (packed > r->packed_bytes) {
        WEIR_TRY(grow(&r->packed, packed + WEIR_INFLATE_SLACK, err));
        r->packed_bytes = packed;
    }
    if (chunk > r->chunk_bytes) {
        WEIR_TRY(grow(&r->shuffled, chunk + WEIR_INFLATE_SLACK, err));
        WEIR_TRY(grow(&r->plain, chunk, err));
        r->chunk_bytes = chunk;
    }
    return WEIR_OK;
}

static void unshuffle(uint8_t *out, const uint8_t *in, size_t bytes, size_t elem)
{
    const size_t count = bytes / elem;
    for (size_t k = 0; k < elem; k++)
        for (size_t i = 0; i < count; i++)
            out[i * elem + k] = in[k * count + i];
}

/* The chunk that begins at `at` to r->plain. */
static weir_status read_chunk(const opened *o, const hsize_t *at, weir_err *err)
{
    weir_arrays_in *r = o->r;
    weir_chunk_place place;
    WEIR_TRY(weir_infile_locate(&r->file, o->id, at, &place, err));
    if (place.bytes == 0 || place.skipped)
        return weir_arrays_bad(r, o->name, err, "is damaged: a part of it is missing");
    WEIR_TRY(make_room(r, (size_t)place.bytes, (size_t)o->chunk_bytes, err));
    const int error = weir_infile_pread(&r->file, r->packed, (size_t)place.bytes, place.offset);
    if (error)
        return weir_fail(err, WEIR_E_IO, "cannot be read: %s", strerror(error));
    weir_zlib z = {.src = r->packed, .n = (size_t)place.bytes, .out = r->shuffled, .out_n = (size_t)o->chunk_bytes};
    weir_inflate_some(r->inflater, &z, 1);
    if (!z.good)
        return weir_arrays_bad(r, o->name, err, "is damaged: a part of it cannot be inflated");
    unshuffle(r->plain, r->shuffled, (size_t)o->chunk_bytes, (size_t)o->elem);
    return WEIR_OK;
}

/* The same array with three axes, the first ones of size 1. */
typedef struct grid {
    int64_t dim[AXES], chunk[AXES];
} grid;

static grid grid_of(const opened *o)
{
    grid g;
    const int first = AXES - o->rank;
    for (int i = 0; i < AXES; i++) {
        g.dim[i] = i < first ? 1 : o->dim[i - first];
        g.chunk[i] = i < first ? 1 : o->chunk[i - first];
    }
    return g;
}

/* The chunk at `at`, as far as it is part of the array, to its places. */
static void spread(const opened *o, const grid *g, const int64_t at[AXES], uint8_t *out)
{
    int64_t n[AXES];
    for (int i = 0; i < AXES; i++)
        n[i] = g->dim[i] - at[i] < g->chunk[i] ? g->dim[i] - at[i] : g->chunk[i];
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++) {
            const int64_t to = ((at[0] + i) * g->dim[1] + at[1] + j) * g->dim[2] + at[2];
            const int64_t from = (i * g->chunk[1] + j) * g->chunk[2];
            memcpy(out + to * o->elem, o->r->plain + from * o->elem, (size_t)(n[2] * o->elem));
        }
}

static weir_status read_chunks(const opened *o, uint8_t *out, weir_err *err)
{
    const grid g = grid_of(o);
    int64_t at[AXES];
    for (at[0] = 0; at[0] < g.dim[0]; at[0] += g.chunk[0])
        for (at[1] = 0; at[1] < g.dim[1]; at[1] += g.chunk[1])
            for (at[2] = 0; at[2] < g.dim[2]; at[2] += g.chunk[2]) {
                hsize_t place[AXES] = {0};
                for (int i = 0; i < o->rank; i++)
                    place[i] = (hsize_t)at[AXES - o->rank + i];
                WEIR_TRY(read_chunk(o, place, err));
                spread(o, &g, at, out);
            }
    return WEIR_OK;
}

/* --- all of it */

static weir_status read_plain(const opened *o, weir_array_type type, void *out, weir_err *err)
{
    if (H5Dread(o->id, weir_array_h5_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0)
        return WEIR_OK;
    return weir_h5_fail(err, "is damaged, or cannot be read");
}

weir_status weir_arrays_get(weir_arrays_in *r, const char *name, weir_array_type type, int rank, const int64_t *dim,
                            void *out, weir_err *err)
{
    weir_h5_quiet q;
    opened o = {.r = r, .name = name, .id = -1};
    weir_h5_quiet_begin(&q);
    weir_status st = shape(&o, type, rank, err);
    for (int i = 0; i < rank && !st; i++)
        if (o.dim[i] != dim[i])
            st = weir_arrays_bad(r, name, err, "dimension %d is %" PRId64 " instead of %" PRId64, i, o.dim[i], dim[i]);
    if (!st && o.bytes > 0)
        st = o.chunked ? read_chunks(&o, out, err) : read_plain(&o, type, out, err);
    if (st && st != WEIR_E_NOMEM)
        weir_err_where(err, r->file.path, name, -1);
    close_array(&o);
    weir_h5_quiet_end(&q);
    return st;
}

weir_status weir_arrays_get_new(weir_arrays_in *r, const char *name, weir_array_type type, int64_t *n, void **out,
                                weir_err *err)
{
    *out = NULL;
    WEIR_TRY(weir_arrays_shape(r, name, type, 1, n, err));
    void *p = weir_calloc((size_t)*n, weir_array_type_bytes(type));
    weir_status st = p ? weir_arrays_get(r, name, type, 1, n, p, err) : weir_nomem(err, "an array");
    if (st)
        weir_free(p);
    else
        *out = p;
    return st;
}

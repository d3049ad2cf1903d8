/* record/arrays_put.c: see weir/arrays.h: writing an array: packed chunks. A chunk is a zlib stream, which ends with
 * its Adler-32: HDF5 itself tells when it is damaged, whoever reads it. So that every array is protected, small ones
 * are chunks too. */
#include <string.h>

#include "arrays_impl.h"
#include "base/mem.h"
#include "base/parallel.h"

enum {
    CHUNK = 1 << 18, /* bytes of a chunk at most */
    AT_ONCE = 4      /* chunks that each thread packs before they are written */
};

typedef struct array {
    weir_arrays_out *w;
    weir_array_type type;
    int rank;
    hsize_t dim[WEIR_ARRAY_RANK];
    const uint8_t *p;
    size_t elem, bytes;
    /* A chunk is one index of the axes before `axis`, `step` of its `length`, and all of the `inner` elements behind.
     */
    int axis;
    size_t length, inner, step;
    size_t chunk_bytes, pieces; /* chunks along the axis */
    size_t chunks, first;       /* all; the first of those that are packed at once */
} array;

static weir_status take_array(array *a, const char *name, const int64_t *dim, weir_err *err)
{
    int64_t bytes = (int64_t)a->elem;
    for (int i = 0; i < a->rank; i++) {
        a->dim[i] = (hsize_t)dim[i];
        if (!weir_mul64(bytes, dim[i], &bytes))
            return weir_fail(err, WEIR_E_ARG, "array %s is too large", name);
    }
    a->bytes = (size_t)bytes;
    return WEIR_OK;
}

/* As many whole rows as fit; a row that does not fit is cut along the next axis. */
static void cut(array *a)
{
    size_t outer = 1;
    a->length = (size_t)a->dim[0];
    a->inner = a->bytes / a->elem / a->length;
    for (a->axis = 0; a->inner * a->elem > CHUNK; a->inner /= a->length) {
        outer *= a->length;
        a->length = (size_t)a->dim[++a->axis];
    }
    const size_t most = CHUNK / (a->inner * a->elem);
    a->step = most < a->length ? most : a->length;
    a->chunk_bytes = a->step * a->inner * a->elem;
    a->pieces = (a->length + a->step - 1) / a->step;
    a->chunks = outer * a->pieces;
}

static weir_status make_room(weir_arrays_out *w, weir_err *err)
{
    if (w->packed)
        return WEIR_OK;
    w->slots = w->threads * AT_ONCE;
    w->bound = weir_packer_bound(CHUNK);
    w->packer = weir_calloc((size_t)w->threads, sizeof *w->packer);
    w->plain = weir_calloc((size_t)w->threads, CHUNK);
    w->packed_bytes = weir_calloc((size_t)w->slots, sizeof *w->packed_bytes);
    w->packed = weir_calloc((size_t)w->slots, w->bound);
    if (!w->packer || !w->plain || !w->packed_bytes || !w->packed)
        return weir_nomem(err, "a compressor");
    for (int i = 0; i < w->threads; i++)
        WEIR_TRY(weir_packer_new(&w->packer[i], 1, err));
    return WEIR_OK;
}

static void pack_one(void *ctx, int64_t i, int thread)
{
    const array *a = ctx;
    weir_arrays_out *w = a->w;
    const size_t chunk = a->first + (size_t)i, at = chunk % a->pieces * a->step, left = a->length - at;
    const size_t row = a->inner * a->elem;
    const weir_tile t = {.src = a->p + (chunk / a->pieces * a->length + at) * row,
                         .stride = row,
                         .elem = a->elem,
                         .rows = left < a->step ? left : a->step,
                         .cols = a->inner,
                         .tile_rows = a->step,
                         .tile_cols = a->inner};
    uint8_t *plain = w->plain + (size_t)thread * CHUNK;
    weir_tile_shuffle(plain, &t);
    w->packed_bytes[i] =
        weir_packer_pack(w->packer[thread], plain, a->chunk_bytes, a->elem, w->packed + (size_t)i * w->bound, w->bound);
}

/* Where a chunk begins. */
static void place(const array *a, size_t chunk, hsize_t at[WEIR_ARRAY_RANK])
{
    size_t outer = chunk / a->pieces;
    memset(at, 0, WEIR_ARRAY_RANK * sizeof *at);
    at[a->axis] = chunk % a->pieces * a->step;
    for (int i = a->axis - 1; i >= 0; i--) {
        at[i] = outer % a->dim[i];
        outer /= a->dim[i];
    }
}

static weir_status write_chunks(array *a, hid_t d, const char *name, weir_err *err)
{
    weir_arrays_out *w = a->w;
    WEIR_TRY(make_room(w, err));
    for (a->first = 0; a->first < a->chunks; a->first += (size_t)w->slots) {
        const size_t left = a->chunks - a->first, n = left < (size_t)w->slots ? left : (size_t)w->slots;
        weir_parallel_for(w->threads, (int64_t)n, 1, pack_one, a);
        for (size_t i = 0; i < n; i++) {
            hsize_t at[WEIR_ARRAY_RANK];
            place(a, a->first + i, at);
            if (H5Dwrite_chunk(d, H5P_DEFAULT, 0, at, w->packed_bytes[i], w->packed + i * w->bound) < 0)
                return weir_h5_fail(err, "cannot write %s", name);
        }
    }
    return WEIR_OK;
}

/* What a chunked dataset is created with; -1 on failure. */
static hid_t chunked_list(const array *a)
{
    hsize_t chunk[WEIR_ARRAY_RANK];
    for (int i = 0; i < a->rank; i++)
        chunk[i] = i < a->axis ? 1 : i > a->axis ? a->dim[i] : a->step;
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    if (p >= 0 && (H5Pset_obj_track_times(p, false) < 0 || H5Pset_chunk(p, a->rank, chunk) < 0 ||
                   H5Pset_shuffle(p) < 0 || H5Pset_deflate(p, 1) < 0)) {
        H5Pclose(p);
        return -1;
    }
    return p;
}

static weir_status write_packed(array *a, hid_t loc, const char *last, hid_t space, const char *name, weir_err *err)
{
    cut(a);
    hid_t list = chunked_list(a);
    hid_t d = list < 0 ? -1 : H5Dcreate2(loc, last, weir_array_h5_type(a->type), space, H5P_DEFAULT, list, H5P_DEFAULT);
    weir_status st = d < 0 ? weir_h5_fail(err, "cannot create %s", name) : write_chunks(a, d, name, err);
    if (d >= 0)
        H5Dclose(d);
    if (list >= 0)
        H5Pclose(list);
    return st;
}

/* There is nothing to protect, and no chunk without elements. */
static weir_status write_empty(const array *a, hid_t loc, const char *last, hid_t space, const char *name,
                               weir_err *err)
{
    hid_t d = weir_h5_create_dataset(loc, last, weir_array_h5_type(a->type), space);
    if (d < 0)
        return weir_h5_fail(err, "cannot create %s", name);
    H5Dclose(d);
    return WEIR_OK;
}

static weir_status write_array(array *a, hid_t loc, const char *last, const char *name, weir_err *err)
{
    hid_t space = H5Screate_simple(a->rank, a->dim, NULL);
    if (space < 0)
        return weir_h5_fail(err, "cannot create %s", name);
    weir_status st =
        a->bytes ? write_packed(a, loc, last, space, name, err) : write_empty(a, loc, last, space, name, err);
    H5Sclose(space);
    return st;
}

weir_status weir_arrays_put(weir_arrays_out *w, const char *name, weir_array_type type, int rank, const int64_t *dim,
                            const void *p, weir_err *err)
{
    weir_h5_quiet q;
    const char *last;
    array a = {.w = w, .type = type, .rank = rank, .p = p, .elem = weir_array_type_bytes(type)};
    WEIR_TRY(weir_arrays_check_name(name, err));
    WEIR_TRY(take_array(&a, name, dim, err));
    weir_h5_quiet_begin(&q);
    hid_t loc = weir_arrays_parent(w->file, name, &last);
    weir_status st =
        loc < 0 ? weir_h5_fail(err, "cannot create the group of %s", name) : write_array(&a, loc, last, name, err);
    if (loc >= 0)
        H5Gclose(loc);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, w->out.path, name, -1);
    return st;
}

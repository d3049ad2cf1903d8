/* record/tiled.c: see tiled.h. */
#include "tiled.h"

#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "schema.h"

/* The largest chunk of the schema: 1024 x 64 floats. */
enum { CHUNK_BYTES_MAX = WEIR_TILE_ROWS * WEIR_TILE_COLS * 4 };

weir_status weir_tile_writer_init(weir_tile_writer *w, int level, int threads, weir_err *err)
{
    w->level = level;
    w->behind.fd = -1;
    w->threads = weir_threads(threads);
    w->slots = 4 * w->threads > 16 ? 4 * w->threads : 16;
    w->packer = weir_calloc((size_t)w->threads, sizeof *w->packer);
    w->plain = weir_calloc((size_t)w->threads, sizeof *w->plain);
    w->slot = weir_calloc((size_t)w->slots, sizeof *w->slot);
    w->slot_bytes = weir_calloc((size_t)w->slots, sizeof *w->slot_bytes);
    if (!w->packer || !w->plain || !w->slot || !w->slot_bytes)
        return weir_nomem(err, "the dump's writer");
    for (int i = 0; i < w->threads; i++) {
        if (!(w->plain[i] = weir_alloc_aligned(CHUNK_BYTES_MAX)))
            return weir_nomem(err, "the dump's writer");
        if (level > 0)
            WEIR_TRY(weir_packer_new(&w->packer[i], level, err));
    }
    for (int i = 0; i < w->slots; i++)
        if (!(w->slot[i] = weir_alloc_aligned(weir_packer_bound(CHUNK_BYTES_MAX))))
            return weir_nomem(err, "the dump's writer");
    return WEIR_OK;
}

void weir_tile_writer_free(weir_tile_writer *w)
{
    for (int i = 0; i < w->threads; i++) {
        if (w->packer)
            weir_packer_free(w->packer[i]);
        if (w->plain)
            weir_free_aligned(w->plain[i]);
    }
    for (int i = 0; w->slot && i < w->slots; i++)
        weir_free_aligned(w->slot[i]);
    weir_free(w->packer);
    weir_free(w->plain);
    weir_free(w->slot);
    weir_free(w->slot_bytes);
    memset(w, 0, sizeof *w);
}

size_t weir_elem_bytes(weir_elem e)
{
    static const size_t bytes[] = {1, 4, 8, 4, 8, 2};
    return bytes[e];
}

hid_t weir_elem_type(weir_elem e)
{
    switch (e) {
    case WEIR_ELEM_U8:
        return H5T_NATIVE_UINT8;
    case WEIR_ELEM_I32:
        return H5T_NATIVE_INT32;
    case WEIR_ELEM_I64:
        return H5T_NATIVE_INT64;
    case WEIR_ELEM_F32:
        return H5T_NATIVE_FLOAT;
    case WEIR_ELEM_F64:
        return H5T_NATIVE_DOUBLE;
    case WEIR_ELEM_F16:
        break;
    }
    return -1;
}

/* A type of our own, to be closed. h5py and numpy know float16 by its fields. */
static hid_t stored_type(weir_elem e)
{
    hid_t t = H5Tcopy(e == WEIR_ELEM_F16 ? H5T_NATIVE_FLOAT : weir_elem_type(e));
    if (t >= 0 && e == WEIR_ELEM_F16 &&
        (H5Tset_fields(t, 15, 10, 5, 0, 10) < 0 || H5Tset_size(t, 2) < 0 || H5Tset_ebias(t, 15) < 0)) {
        H5Tclose(t);
        return -1;
    }
    return t;
}

weir_tiled_spec weir_tiled_column(weir_elem e)
{
    weir_tiled_spec s = {
        .elem = e, .rank = 1, .outer = 1, .inner = 1, .tile_rows = WEIR_TILE_ROWS, .tile_cols = 1, .filtered = true};
    return s;
}

static void shape(const weir_tiled_spec *s, int64_t rows, hsize_t dim[3])
{
    dim[0] = (hsize_t)rows;
    dim[1] = (hsize_t)(s->rank == 3 ? s->outer : s->inner);
    dim[2] = (hsize_t)s->inner;
}

static hid_t creation_list(const weir_tiled *t, const weir_tile_writer *w, hid_t type)
{
    const weir_tiled_spec *s = &t->spec;
    hsize_t chunk[3] = {(hsize_t)s->tile_rows, (hsize_t)(s->rank == 3 ? 1 : s->tile_cols), (hsize_t)s->tile_cols};
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    bool good = p >= 0 && H5Pset_obj_track_times(p, false) >= 0 && H5Pset_chunk(p, s->rank, chunk) >= 0 &&
                H5Pset_fill_value(p, type, t->fill) >= 0;
    if (good && s->filtered && w->level > 0)
        good = H5Pset_shuffle(p) >= 0 && H5Pset_deflate(p, (unsigned)w->level) >= 0;
    if (!good && p >= 0) {
        H5Pclose(p);
        return -1;
    }
    return p;
}

static weir_status prepare(weir_tiled *t, const char *name, const weir_tiled_spec *spec, weir_err *err)
{
    int64_t bytes, band;
    t->id = -1;
    t->spec = *spec;
    if (!weir_mul64(spec->outer, spec->inner, &bytes) ||
        !weir_mul64(bytes, (int64_t)weir_elem_bytes(spec->elem), &bytes) ||
        !weir_mul64(bytes, spec->tile_rows, &band) || band <= 0)
        return weir_fail(err, WEIR_E_SHAPE, "a row of %s is too large to record", name);
    t->row_bytes = (size_t)bytes;
    if (spec->fill)
        memcpy(t->fill, spec->fill, weir_elem_bytes(spec->elem));
    t->spec.fill = NULL; /* the caller's, copied */
    return WEIR_OK;
}

weir_status weir_tiled_create(weir_tiled *t, hid_t loc, const char *name, const weir_tiled_spec *spec,
                              const weir_tile_writer *w, weir_err *err)
{
    hsize_t dim[3], max[3];
    WEIR_TRY(prepare(t, name, spec, err));
    shape(spec, 0, dim);
    memcpy(max, dim, sizeof max);
    max[0] = H5S_UNLIMITED;
    hid_t type = stored_type(spec->elem), space = H5Screate_simple(spec->rank, dim, max);
    hid_t dcpl = creation_list(t, w, type);
    if (space >= 0 && dcpl >= 0)
        t->id = H5Dcreate2(loc, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    weir_status st = t->id >= 0 ? WEIR_OK : weir_h5_fail(err, "cannot create dataset %s", name);
    H5Sclose(space);
    H5Pclose(dcpl);
    H5Tclose(type);
    return st;
}

int64_t weir_tiled_rows(const weir_tiled *t)
{
    return t->base + t->n;
}

/* --- going on with one that is there */

/* Dimensions now; rows < 0: the rank differs. */
static int64_t extent(hid_t id, int rank, hsize_t dim[3])
{
    hid_t space = H5Dget_space(id);
    bool same = H5Sget_simple_extent_ndims(space) == rank && H5Sget_simple_extent_dims(space, dim, NULL) == rank;
    H5Sclose(space);
    return same ? (int64_t)dim[0] : -1;
}

static bool same_layout(const weir_tiled *t, const weir_tile_writer *w)
{
    hsize_t dim[3] = {0}, want[3], chunk[3] = {0}, tile[3];
    const weir_tiled_spec *s = &t->spec;
    shape(s, 0, want);
    tile[0] = (hsize_t)s->tile_rows;
    tile[1] = (hsize_t)(s->rank == 3 ? 1 : s->tile_cols);
    tile[2] = (hsize_t)s->tile_cols;
    hid_t type = H5Dget_type(t->id), ours = stored_type(s->elem), dcpl = H5Dget_create_plist(t->id);
    bool same = extent(t->id, s->rank, dim) >= 0 && H5Tequal(type, ours) > 0 && H5Pget_layout(dcpl) == H5D_CHUNKED &&
                H5Pget_chunk(dcpl, 3, chunk) == s->rank &&
                H5Pget_nfilters(dcpl) == (s->filtered && w->level > 0 ? 2 : 0);
    for (int a = 0; a < s->rank && same; a++)
        same = chunk[a] == tile[a] && (a == 0 || dim[a] == want[a]);
    H5Pclose(dcpl);
    H5Tclose(ours);
    H5Tclose(type);
    return same;
}

weir_status weir_tiled_open(weir_tiled *t, hid_t loc, const char *name, const weir_tiled_spec *spec,
                            const weir_tile_writer *w, weir_err *err)
{
    WEIR_TRY(prepare(t, name, spec, err));
    if (H5Lexists(loc, name, H5P_DEFAULT) <= 0)
        return weir_fail(err, WEIR_E_ARG, "it was begun without %s (--force begins again)", name);
    if ((t->id = H5Dopen2(loc, name, H5P_DEFAULT)) < 0)
        return weir_h5_fail(err, "cannot open %s", name);
    if (!same_layout(t, w))
        return weir_fail(err, WEIR_E_ARG, "it holds %s in another shape, type or compression", name);
    return WEIR_OK;
}

static weir_status read_rows(const weir_tiled *t, int64_t row, int64_t n, void *out, weir_err *err)
{
    hsize_t start[3] = {(hsize_t)row, 0, 0}, count[3];
    if (n == 0)
        return WEIR_OK;
    shape(&t->spec, n, count);
    hid_t type = stored_type(t->spec.elem), memory = H5Screate_simple(t->spec.rank, count, NULL);
    hid_t file = H5Dget_space(t->id);
    bool good = H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                H5Dread(t->id, type, memory, file, H5P_DEFAULT, out) >= 0;
    weir_status st = good ? WEIR_OK : weir_h5_fail(err, "cannot read what was written");
    H5Sclose(file);
    H5Sclose(memory);
    H5Tclose(type);
    return st;
}

weir_status weir_tiled_resume(weir_tiled *t, int64_t rows, weir_err *err)
{
    void *band = NULL;
    int64_t room = 0;
    hsize_t dim[3] = {0};
    int64_t tail = rows % t->spec.tile_rows;
    if (rows < 0 || extent(t->id, t->spec.rank, dim) < rows)
        return weir_fail(err, WEIR_E_FORMAT, "a dataset is shorter than /progress says: the file is damaged");
    WEIR_TRY(weir_h5_check_cut(t->id, rows, err)); /* later, when it is cut, other datasets have been changed */
    t->base = rows - tail;
    t->n = t->kept = 0;
    if (tail == 0)
        return WEIR_OK;
    WEIR_TRY(weir_tiled_room(t, tail, &band, &room, err));
    WEIR_TRY(read_rows(t, t->base, tail, band, err));
    t->n = t->kept = tail;
    return WEIR_OK;
}

weir_status weir_tiled_cut(weir_tiled *t, weir_err *err)
{
    hsize_t dim[3];
    shape(&t->spec, t->spec.filtered ? t->base : weir_tiled_rows(t), dim);
    t->kept = t->spec.filtered ? 0 : t->n;
    return H5Dset_extent(t->id, dim) < 0 ? weir_h5_fail(err, "cannot write") : WEIR_OK;
}

weir_status weir_tiled_read(weir_tiled *t, int64_t row, int64_t n, void *out, weir_err *err)
{
    int64_t disk = row < t->base ? t->base - row : 0;
    disk = disk < n ? disk : n;
    WEIR_TRY(read_rows(t, row, disk, out, err));
    if (n > disk)
        memcpy((uint8_t *)out + (size_t)disk * t->row_bytes, t->band + (size_t)(row + disk - t->base) * t->row_bytes,
               (size_t)(n - disk) * t->row_bytes);
    return WEIR_OK;
}

int64_t weir_tiled_pass_over(weir_tiled *t, int64_t n)
{
    int64_t over = t->over < n ? t->over : n;
    t->over -= over;
    return over;
}

/* --- one band to disk */

typedef struct band_job {
    weir_tile_writer *w;
    const weir_tiled *t;
    int64_t first;  /* tile in slot 0 */
    int64_t across; /* tiles along the inner axis */
} band_job;

/* Rank 3 tiles are one `outer` index deep, so a tile's columns always lie together in a row. */
static weir_tile tile_at(const band_job *job, int64_t index)
{
    const weir_tiled_spec *s = &job->t->spec;
    size_t elem = weir_elem_bytes(s->elem);
    int64_t outer = index / job->across, col = index % job->across * s->tile_cols;
    int64_t cols = s->inner - col < s->tile_cols ? s->inner - col : s->tile_cols;
    weir_tile tile = {
        .src = job->t->band + (size_t)(outer * s->inner + col) * elem,
        .stride = job->t->row_bytes,
        .elem = elem,
        .rows = (size_t)job->t->n,
        .cols = (size_t)cols,
        .tile_rows = (size_t)s->tile_rows,
        .tile_cols = (size_t)s->tile_cols,
    };
    return tile;
}

static bool only_fill(const weir_tile *tile, const uint8_t *fill)
{
    for (size_t r = 0; r < tile->rows; r++)
        for (size_t j = 0; j < tile->cols; j++)
            if (memcmp(tile->src + r * tile->stride + j * tile->elem, fill, tile->elem))
                return false;
    return true;
}

static void pack_one(void *ctx, int64_t i, int thread)
{
    band_job *job = ctx;
    weir_tile_writer *w = job->w;
    const weir_tiled_spec *s = &job->t->spec;
    weir_tile tile = tile_at(job, job->first + i);
    size_t plain = tile.tile_rows * tile.tile_cols * tile.elem;
    if (s->sparse && only_fill(&tile, job->t->fill)) {
        w->slot_bytes[i] = 0;
    } else if (!s->filtered || w->level == 0) {
        weir_tile_copy(w->slot[i], &tile);
        w->slot_bytes[i] = plain;
    } else {
        weir_tile_shuffle(w->plain[thread], &tile);
        w->slot_bytes[i] = weir_packer_pack(w->packer[thread], w->plain[thread], plain, tile.elem, w->slot[i],
                                            weir_packer_bound(CHUNK_BYTES_MAX));
    }
}

static weir_status write_slots(const band_job *job, int64_t n, weir_err *err)
{
    weir_tile_writer *w = job->w;
    const weir_tiled_spec *s = &job->t->spec;
    for (int64_t i = 0; i < n; i++) {
        int64_t index = job->first + i, col = index % job->across * s->tile_cols;
        hsize_t at[3] = {(hsize_t)job->t->base, (hsize_t)(s->rank == 3 ? index / job->across : col), (hsize_t)col};
        if (w->slot_bytes[i] == 0) {
            if (s->sparse)
                continue;
            return weir_fail(err, WEIR_E_NOMEM, "cannot compress a chunk");
        }
        if (H5Dwrite_chunk(job->t->id, H5P_DEFAULT, 0, at, w->slot_bytes[i], w->slot[i]) < 0)
            return weir_h5_fail(err, "cannot write");
    }
    return WEIR_OK;
}

weir_status weir_tiled_flush(weir_tiled *t, weir_tile_writer *w, weir_err *err)
{
    hsize_t dim[3];
    if (t->n == t->kept)
        return WEIR_OK;
    shape(&t->spec, weir_tiled_rows(t), dim);
    if (H5Dset_extent(t->id, dim) < 0)
        return weir_h5_fail(err, "cannot write");
    t->grown = true;
    band_job job = {.w = w, .t = t, .across = (t->spec.inner + t->spec.tile_cols - 1) / t->spec.tile_cols};
    int64_t tiles = t->spec.outer * job.across;
    while (job.first < tiles) {
        int64_t n = tiles - job.first < w->slots ? tiles - job.first : w->slots;
        weir_parallel_for(w->threads, n, 1, pack_one, &job);
        WEIR_TRY(write_slots(&job, n, err));
        weir_behind_push(&w->behind);
        job.first += n;
    }
    t->kept = t->n;
    return WEIR_OK;
}

/* --- rows */

weir_status weir_tiled_room(weir_tiled *t, int64_t want, void **p, int64_t *n, weir_err *err)
{
    if (t->base % t->spec.tile_rows)
        return weir_fail(err, WEIR_E_ARG, "rows come for a dataset that was settled");
    if (!t->band && !(t->band = weir_alloc_aligned(t->row_bytes * (size_t)t->spec.tile_rows)))
        return weir_nomem(err, "a dataset's rows");
    int64_t left = t->spec.tile_rows - t->n;
    *p = t->band + (size_t)t->n * t->row_bytes;
    *n = want < left ? want : left;
    return WEIR_OK;
}

weir_status weir_tiled_added(weir_tiled *t, weir_tile_writer *w, int64_t n, weir_err *err)
{
    t->n += n;
    if (t->n < t->spec.tile_rows)
        return WEIR_OK;
    WEIR_TRY(weir_tiled_flush(t, w, err));
    t->base += t->n;
    t->n = t->kept = 0;
    w->bands++;
    return WEIR_OK;
}

weir_status weir_tiled_append(weir_tiled *t, weir_tile_writer *w, const void *rows, int64_t n, weir_err *err)
{
    const uint8_t *src = rows;
    while (n > 0) {
        void *p = NULL;
        int64_t room = 0;
        WEIR_TRY(weir_tiled_room(t, n, &p, &room, err));
        memcpy(p, src, (size_t)room * t->row_bytes);
        WEIR_TRY(weir_tiled_added(t, w, room, err));
        src += (size_t)room * t->row_bytes;
        n -= room;
    }
    return WEIR_OK;
}

weir_status weir_tiled_sync(weir_tiled *t, weir_err *err)
{
    if (!t->grown)
        return WEIR_OK;
    t->grown = false;
    return H5Dflush(t->id) < 0 ? weir_h5_fail(err, "cannot write") : WEIR_OK;
}

weir_status weir_tiled_settle(weir_tiled *t, weir_tile_writer *w, weir_err *err)
{
    WEIR_TRY(weir_tiled_flush(t, w, err));
    t->base += t->n;
    t->n = t->kept = 0;
    weir_free_aligned(t->band);
    t->band = NULL;
    return WEIR_OK;
}

void weir_tiled_close(weir_tiled *t)
{
    if (t->id > 0)
        H5Dclose(t->id);
    weir_free_aligned(t->band);
    t->id = -1;
    t->band = NULL;
}

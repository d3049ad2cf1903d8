/* record/arrays_read.c: see arrays.h: reading. HDF5 is shown only what has been looked at first. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "arrays_impl.h"
#include "base/mem.h"
#include "infile.h"

enum {
    CHUNK_MOST = 1 << 30,
    DEFLATE_MOST = 1100 /* bytes that one byte of a deflate stream can stand for, and a little */
};

struct weir_arrays_in {
    weir_infile file;
    unsigned long fileno;
};

weir_status weir_arrays_bad(const weir_arrays_in *r, const char *name, weir_err *err, const char *fmt, ...)
{
    char what[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    weir_fail(err, WEIR_E_FORMAT, "%s", what);
    weir_err_where(err, r->file.path, *name ? name : NULL, -1);
    return WEIR_E_FORMAT;
}

/* --- the file */

static weir_status check_format(weir_arrays_in *r, const char *format, int64_t version, weir_err *err)
{
    char *its;
    int64_t its_version;
    H5O_info_t info;
    WEIR_TRY(weir_h5_get_text(r->file.id, "format", &its, err));
    const bool ours = its && !strcmp(its, format);
    weir_status st = WEIR_OK;
    if (!ours)
        st = weir_fail(err, WEIR_E_FORMAT, "not a %s file (its attribute format is %.40s)", format,
                       its ? its : "missing");
    weir_free(its);
    if (st)
        return st;
    if (!weir_h5_get_int(r->file.id, "format_version", &its_version))
        return weir_fail(err, WEIR_E_FORMAT, "the file does not say its format_version");
    if (its_version != version)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "the file has format_version %" PRId64 "; this weir reads %" PRId64,
                         its_version, version);
    if (H5Oget_info2(r->file.id, &info, H5O_INFO_BASIC) < 0)
        return weir_h5_fail(err, "cannot read the file");
    r->fileno = info.fileno;
    return WEIR_OK;
}

weir_status weir_arrays_open(weir_arrays_in **out, const char *path, const char *format, int64_t version, weir_err *err)
{
    weir_h5_quiet q;
    *out = NULL;
    weir_arrays_in *r = weir_calloc(1, sizeof *r);
    if (!r)
        return weir_nomem(err, "a file of arrays");
    weir_h5_quiet_begin(&q);
    weir_status st = weir_infile_open(&r->file, path, err);
    if (!st)
        st = check_format(r, format, version, err);
    weir_h5_quiet_end(&q);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        weir_arrays_close(r);
    } else {
        *out = r;
    }
    return st;
}

void weir_arrays_close(weir_arrays_in *r)
{
    weir_h5_quiet q;
    if (!r)
        return;
    weir_h5_quiet_begin(&q);
    weir_infile_close(&r->file);
    weir_h5_quiet_end(&q);
    weir_free(r);
}

bool weir_arrays_is(const char *path, const char *format)
{
    weir_h5_quiet q;
    weir_infile f;
    char *its = NULL;
    memset(&f, 0, sizeof f);
    weir_h5_quiet_begin(&q);
    const bool is = !weir_infile_open(&f, path, NULL) && !weir_h5_get_text(f.id, "format", &its, NULL) && its &&
                    !strcmp(its, format);
    weir_free(its);
    weir_infile_close(&f);
    weir_h5_quiet_end(&q);
    return is;
}

/* --- objects */

/* Is every part of the path a link to something in this very file? */
static bool is_here(hid_t file, const char *path)
{
    char part[WEIR_ARRAY_NAMES];
    const size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return false;
    memcpy(part, path, n + 1);
    for (char *p = part;;) {
        H5L_info_t info;
        char *slash = strchr(p, '/');
        if (slash)
            *slash = 0;
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0 || H5Lget_info(file, part, &info, H5P_DEFAULT) < 0 ||
            info.type != H5L_TYPE_HARD)
            return false;
        if (!slash)
            return true;
        *slash = '/';
        p = slash + 1;
    }
}

/* -1: it is not there. */
static hid_t open_object(const weir_arrays_in *r, const char *name)
{
    if (!*name)
        return H5Oopen(r->file.id, "/", H5P_DEFAULT);
    return is_here(r->file.id, name) ? H5Oopen(r->file.id, name, H5P_DEFAULT) : -1;
}

bool weir_arrays_has(weir_arrays_in *r, const char *name)
{
    weir_h5_quiet q;
    weir_h5_quiet_begin(&q);
    const bool has = is_here(r->file.id, name);
    H5Eclear2(H5E_DEFAULT);
    weir_h5_quiet_end(&q);
    return has;
}

bool weir_arrays_child(weir_arrays_in *r, const char *group, int64_t i, char name[WEIR_ARRAY_NAMES])
{
    weir_h5_quiet q;
    H5G_info_t info;
    bool found = false;
    weir_h5_quiet_begin(&q);
    hid_t g = open_object(r, group);
    if (g >= 0 && H5Iget_type(g) == H5I_GROUP && H5Gget_info(g, &info) >= 0 && (uint64_t)i < info.nlinks) {
        const ssize_t n = H5Lget_name_by_idx(g, ".", weir_h5_link_order(g), H5_ITER_INC, (hsize_t)i, name,
                                             WEIR_ARRAY_NAMES, H5P_DEFAULT);
        found = n > 0 && n < WEIR_ARRAY_NAMES;
    }
    if (g >= 0)
        H5Oclose(g);
    H5Eclear2(H5E_DEFAULT);
    weir_h5_quiet_end(&q);
    return found;
}

/* --- arrays */

typedef struct opened {
    hid_t id;
    int rank;
    int64_t dim[WEIR_ARRAY_RANK], bytes;
} opened;

/* The filters of our own writer, and no other: HDF5 would look for plugins. */
static bool known_filters(hid_t list)
{
    const int n = H5Pget_nfilters(list);
    for (int i = 0; i < n; i++) {
        unsigned flags, value[8], config;
        size_t n_values = 8;
        const H5Z_filter_t id = H5Pget_filter2(list, (unsigned)i, &flags, &n_values, value, 0, NULL, &config);
        if (id != H5Z_FILTER_SHUFFLE && id != H5Z_FILTER_DEFLATE)
            return false;
    }
    return n >= 0 && n <= 2;
}

/* Does the file hold the bytes that the array claims to have? */
static bool known_storage(const opened *o, hid_t list, int64_t elem)
{
    const int64_t stored = (int64_t)H5Dget_storage_size(o->id);
    const H5D_layout_t layout = H5Pget_layout(list);
    hsize_t chunk[WEIR_ARRAY_RANK] = {0};
    if (stored < 0 || H5Pget_external_count(list) != 0)
        return false;
    if (layout != H5D_CHUNKED)
        return layout != H5D_VIRTUAL && stored >= o->bytes;
    int64_t bytes = elem;
    if (!known_filters(list) || H5Pget_chunk(list, WEIR_ARRAY_RANK, chunk) != o->rank)
        return false;
    for (int i = 0; i < o->rank; i++)
        if (chunk[i] > INT64_MAX || !weir_mul64(bytes, (int64_t)chunk[i], &bytes))
            return false;
    return bytes <= CHUNK_MOST && o->bytes / DEFLATE_MOST <= stored && bytes / DEFLATE_MOST <= stored;
}

static weir_status take_shape(weir_arrays_in *r, opened *o, const char *name, int64_t elem, weir_err *err)
{
    hsize_t dim[H5S_MAX_RANK] = {0};
    hid_t space = H5Dget_space(o->id);
    o->rank = H5Sget_simple_extent_ndims(space);
    const bool good = o->rank >= 1 && o->rank <= WEIR_ARRAY_RANK && H5Sget_simple_extent_dims(space, dim, NULL) >= 0;
    if (space >= 0)
        H5Sclose(space);
    if (!good)
        return weir_arrays_bad(r, name, err, "has no 1 to %d dimensions", WEIR_ARRAY_RANK);
    o->bytes = elem;
    for (int i = 0; i < o->rank; i++) {
        if (dim[i] > INT64_MAX || !weir_mul64(o->bytes, (int64_t)dim[i], &o->bytes))
            return weir_arrays_bad(r, name, err, "is damaged: an impossible shape");
        o->dim[i] = (int64_t)dim[i];
    }
    return WEIR_OK;
}

static weir_status check_type(weir_arrays_in *r, const opened *o, const char *name, weir_array_type type, weir_err *err)
{
    H5O_info_t info;
    if (H5Oget_info2(o->id, &info, H5O_INFO_BASIC) < 0 || info.fileno != r->fileno)
        return weir_arrays_bad(r, name, err, "lies in another file");
    hid_t its = H5Dget_type(o->id);
    const bool same = H5Tget_class(its) == weir_array_h5_class(type) && H5Tget_size(its) == weir_array_type_bytes(type);
    if (its >= 0)
        H5Tclose(its);
    return same ? WEIR_OK : weir_arrays_bad(r, name, err, "has another type of elements than it should");
}

static weir_status open_array(weir_arrays_in *r, opened *o, const char *name, weir_array_type type, weir_err *err)
{
    const int64_t elem = (int64_t)weir_array_type_bytes(type);
    o->id = open_object(r, name);
    if (o->id < 0)
        return weir_arrays_bad(r, name, err, "is missing");
    if (H5Iget_type(o->id) != H5I_DATASET)
        return weir_arrays_bad(r, name, err, "is no array");
    WEIR_TRY(check_type(r, o, name, type, err));
    WEIR_TRY(take_shape(r, o, name, elem, err));
    hid_t list = H5Dget_create_plist(o->id);
    const bool good = list >= 0 && known_storage(o, list, elem);
    if (list >= 0)
        H5Pclose(list);
    return good ? WEIR_OK : weir_arrays_bad(r, name, err, "is damaged, or not as weir stores arrays");
}

static weir_status shape(weir_arrays_in *r, opened *o, const char *name, weir_array_type type, int rank, weir_err *err)
{
    WEIR_TRY(open_array(r, o, name, type, err));
    if (o->rank != rank)
        return weir_arrays_bad(r, name, err, "has %d dimensions instead of %d", o->rank, rank);
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
    opened o = {.id = -1};
    weir_h5_quiet_begin(&q);
    weir_status st = shape(r, &o, name, type, rank, err);
    for (int i = 0; i < rank && !st; i++)
        dim[i] = o.dim[i];
    close_array(&o);
    weir_h5_quiet_end(&q);
    return st;
}

static weir_status read_array(weir_arrays_in *r, const opened *o, const char *name, weir_array_type type, void *out,
                              weir_err *err)
{
    if (o->bytes == 0 || H5Dread(o->id, weir_array_h5_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0)
        return WEIR_OK;
    weir_h5_fail(err, "cannot be read");
    return weir_err_where(err, r->file.path, name, -1);
}

weir_status weir_arrays_get(weir_arrays_in *r, const char *name, weir_array_type type, int rank, const int64_t *dim,
                            void *out, weir_err *err)
{
    weir_h5_quiet q;
    opened o = {.id = -1};
    weir_h5_quiet_begin(&q);
    weir_status st = shape(r, &o, name, type, rank, err);
    for (int i = 0; i < rank && !st; i++)
        if (o.dim[i] != dim[i])
            st = weir_arrays_bad(r, name, err, "dimension %d is %" PRId64 " instead of %" PRId64, i, o.dim[i], dim[i]);
    if (!st)
        st = read_array(r, &o, name, type, out, err);
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

/* --- attributes */

weir_status weir_arrays_get_text(weir_arrays_in *r, const char *at, const char *name, char **out, weir_err *err)
{
    weir_h5_quiet q;
    *out = NULL;
    weir_h5_quiet_begin(&q);
    hid_t o = open_object(r, at);
    weir_status st = o >= 0 ? weir_h5_get_text(o, name, out, err) : WEIR_OK;
    if (o >= 0)
        H5Oclose(o);
    weir_h5_quiet_end(&q);
    if (!st && !*out)
        st = weir_arrays_bad(r, at, err, "its attribute %s is missing, or no text", name);
    return st;
}

static bool read_numbers(hid_t a, weir_array_type type, int64_t most, int64_t *n, void *out)
{
    hid_t its = H5Aget_type(a), space = H5Aget_space(a);
    *n = (int64_t)H5Sget_simple_extent_npoints(space);
    const bool good = H5Tget_class(its) == weir_array_h5_class(type) && *n >= 0 && *n <= most &&
                      H5Tget_size(its) == weir_array_type_bytes(type) &&
                      (*n == 0 || H5Aread(a, weir_array_h5_type(type), out) >= 0);
    if (its >= 0)
        H5Tclose(its);
    if (space >= 0)
        H5Sclose(space);
    return good;
}

weir_status weir_arrays_get_attribute(weir_arrays_in *r, const char *at, const char *name, weir_array_type type,
                                      int64_t most, int64_t *n, void *out, weir_err *err)
{
    weir_h5_quiet q;
    bool good = false;
    weir_h5_quiet_begin(&q);
    hid_t o = open_object(r, at), a = -1;
    if (o >= 0 && H5Aexists(o, name) > 0)
        a = H5Aopen(o, name, H5P_DEFAULT);
    if (a >= 0) {
        good = read_numbers(a, type, most, n, out);
        H5Aclose(a);
    }
    if (o >= 0)
        H5Oclose(o);
    H5Eclear2(H5E_DEFAULT);
    weir_h5_quiet_end(&q);
    return good ? WEIR_OK : weir_arrays_bad(r, at, err, "its attribute %s is missing, or not what it should be", name);
}

weir_status weir_arrays_get_int(weir_arrays_in *r, const char *at, const char *name, int64_t *v, weir_err *err)
{
    int64_t n;
    WEIR_TRY(weir_arrays_get_attribute(r, at, name, WEIR_ARRAY_I64, 1, &n, v, err));
    return n == 1 ? WEIR_OK : weir_arrays_bad(r, at, err, "its attribute %s is empty", name);
}

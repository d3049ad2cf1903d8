/* record/arrays.c: see weir/arrays.h: writing: the file, its groups and attributes. */
#include <string.h>
#include <sys/stat.h>

#include "arrays_impl.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "seal.h"

static const struct {
    size_t bytes;
    H5T_class_t class;
} type_facts[] = {
    [WEIR_ARRAY_I8] = {1, H5T_INTEGER},  [WEIR_ARRAY_U8] = {1, H5T_INTEGER},  [WEIR_ARRAY_I32] = {4, H5T_INTEGER},
    [WEIR_ARRAY_U32] = {4, H5T_INTEGER}, [WEIR_ARRAY_I64] = {8, H5T_INTEGER}, [WEIR_ARRAY_U64] = {8, H5T_INTEGER},
    [WEIR_ARRAY_F32] = {4, H5T_FLOAT},   [WEIR_ARRAY_F64] = {8, H5T_FLOAT},
};

size_t weir_array_type_bytes(weir_array_type t)
{
    return type_facts[t].bytes;
}

hid_t weir_array_h5_type(weir_array_type t)
{
    switch (t) {
    case WEIR_ARRAY_I8:
        return H5T_NATIVE_INT8;
    case WEIR_ARRAY_U8:
        return H5T_NATIVE_UINT8;
    case WEIR_ARRAY_I32:
        return H5T_NATIVE_INT32;
    case WEIR_ARRAY_U32:
        return H5T_NATIVE_UINT32;
    case WEIR_ARRAY_I64:
        return H5T_NATIVE_INT64;
    case WEIR_ARRAY_U64:
        return H5T_NATIVE_UINT64;
    case WEIR_ARRAY_F32:
        return H5T_NATIVE_FLOAT;
    default:
        return H5T_NATIVE_DOUBLE;
    }
}

H5T_class_t weir_array_h5_class(weir_array_type t)
{
    return type_facts[t].class;
}

/* --- the file */

/* PATH.new is of no use to anyone but the run that writes it: what a killed one left is removed, if it is HDF5. */
static weir_status take_new(weir_partfile *f, weir_err *err)
{
    struct stat st;
    bool stale = !lstat(f->part, &st) && S_ISREG(st.st_mode) && (st.st_size == 0 || H5Fis_hdf5(f->part) > 0);
    return weir_partfile_take(f, stale, " and is not what an interrupted run left: remove it", err);
}

static weir_status begin(weir_arrays_out *w, const char *path, const char *format, int64_t version, weir_err *err)
{
    weir_buf part = {0};
    w->out.format = format;
    w->out.path = weir_strndup(path, strlen(path));
    if (!w->out.path || weir_buf_printf(&part, "%s.new", path)) {
        weir_buf_free(&part);
        return weir_nomem(err, "a file's name");
    }
    w->out.part = part.p;
    WEIR_TRY(weir_partfile_check_target(&w->out, err));
    WEIR_TRY(take_new(&w->out, err));
    w->file = weir_h5_create_file(w->out.part);
    /* Flushed, so that it can be known for an HDF5 file from the beginning. */
    if (w->file < 0 || H5Fflush(w->file, H5F_SCOPE_LOCAL) < 0)
        return weir_h5_fail(err, "cannot create %s", w->out.part);
    WEIR_TRY(weir_h5_put_str(w->file, "format", format, err));
    return weir_h5_put_int(w->file, "format_version", version, err);
}

weir_status weir_arrays_create(weir_arrays_out **out, const char *path, const char *format, int64_t version,
                               int threads, weir_err *err)
{
    weir_h5_quiet q;
    *out = NULL;
    weir_arrays_out *w = weir_calloc(1, sizeof *w);
    if (!w)
        return weir_nomem(err, "a file of arrays");
    w->file = -1;
    w->threads = weir_threads(threads);
    weir_h5_quiet_begin(&q);
    weir_status st = begin(w, path, format, version, err);
    weir_h5_quiet_end(&q);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        weir_arrays_abort(w);
    } else {
        *out = w;
    }
    return st;
}

static weir_status complete(weir_arrays_out *w, weir_err *err)
{
    hid_t file = w->file;
    bool flushed = H5Fflush(file, H5F_SCOPE_LOCAL) >= 0;
    weir_status st = flushed ? WEIR_OK : weir_h5_fail(err, "cannot write %s", w->out.part);
    w->file = -1;
    if (H5Fclose(file) < 0 && !st)
        st = weir_h5_fail(err, "cannot close %s", w->out.part);
    if (!st)
        st = weir_seal_put(w->out.part, w->out.format, err);
    if (!st)
        st = weir_partfile_publish(&w->out, err);
    if (!st)
        w->out.taken = false;
    return st;
}

weir_status weir_arrays_commit(weir_arrays_out *w, weir_err *err)
{
    weir_h5_quiet q;
    weir_h5_quiet_begin(&q);
    weir_status st = complete(w, err);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, w->out.path, NULL, -1);
    weir_arrays_abort(w);
    return st;
}

void weir_arrays_abort(weir_arrays_out *w)
{
    weir_h5_quiet q;
    if (!w)
        return;
    weir_h5_quiet_begin(&q);
    if (w->file >= 0)
        H5Fclose(w->file);
    weir_h5_quiet_end(&q);
    weir_partfile_drop(&w->out);
    weir_partfile_free(&w->out);
    for (int i = 0; i < w->threads && w->packer; i++)
        weir_packer_free(w->packer[i]);
    weir_free(w->packer);
    weir_free(w->plain);
    weir_free(w->packed);
    weir_free(w->packed_bytes);
    weir_free(w);
}

/* --- names */

/* Opens the group below `loc` that is the first n bytes of name, or makes it. */
static hid_t group_for(hid_t loc, const char *name, size_t n)
{
    char part[WEIR_ARRAY_NAMES];
    memcpy(part, name, n);
    part[n] = 0;
    if (H5Lexists(loc, part, H5P_DEFAULT) > 0)
        return H5Gopen2(loc, part, H5P_DEFAULT);
    return weir_h5_create_group(loc, part, true);
}

hid_t weir_arrays_parent(hid_t file, const char *name, const char **last)
{
    hid_t at = H5Gopen2(file, "/", H5P_DEFAULT);
    const char *slash;
    *last = name;
    while (at >= 0 && (slash = strchr(*last, '/'))) {
        hid_t inner = group_for(at, *last, (size_t)(slash - *last));
        H5Gclose(at);
        at = inner;
        *last = slash + 1;
    }
    return at;
}

weir_status weir_arrays_check_name(const char *name, weir_err *err)
{
    const size_t n = strlen(name);
    if (n >= WEIR_ARRAY_NAMES)
        return weir_fail(err, WEIR_E_ARG, "a name of %zu bytes is too long for an array: %.40s...", n, name);
    return WEIR_OK;
}

/* --- attributes */

/* The object, or a group that is made; -1: it cannot be had. */
static hid_t object_for(hid_t file, const char *at)
{
    const char *last;
    if (!*at)
        return H5Oopen(file, "/", H5P_DEFAULT);
    hid_t parent = weir_arrays_parent(file, at, &last), o = -1;
    if (parent >= 0 && H5Lexists(parent, last, H5P_DEFAULT) > 0)
        o = H5Oopen(parent, last, H5P_DEFAULT);
    else if (parent >= 0)
        o = weir_h5_create_group(parent, last, true);
    if (parent >= 0)
        H5Gclose(parent);
    return o;
}

typedef struct attribute {
    const char *name, *text; /* text NULL: numbers */
    weir_array_type type;
    int64_t n;
    const void *p;
} attribute;

static weir_status put_numbers(hid_t o, const attribute *a, weir_err *err)
{
    const hsize_t dim = a->n < 0 ? 0 : (hsize_t)a->n;
    const hid_t type = weir_array_h5_type(a->type);
    hid_t space = a->n < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &dim, NULL);
    hid_t id = space < 0 ? -1 : H5Acreate2(o, a->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    weir_status st = WEIR_OK;
    if (id < 0 || (a->n != 0 && H5Awrite(id, type, a->p) < 0))
        st = weir_h5_fail(err, "cannot write attribute %s", a->name);
    if (id >= 0)
        H5Aclose(id);
    if (space >= 0)
        H5Sclose(space);
    return st;
}

static weir_status put_attribute(weir_arrays_out *w, const char *at, const attribute *a, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_arrays_check_name(at, err));
    weir_h5_quiet_begin(&q);
    hid_t o = object_for(w->file, at);
    weir_status st = WEIR_OK;
    if (o < 0)
        st = weir_h5_fail(err, "cannot create group %s", at);
    else
        st = a->text ? weir_h5_put_str(o, a->name, a->text, err) : put_numbers(o, a, err);
    if (o >= 0)
        H5Oclose(o);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, w->out.path, *at ? at : NULL, -1);
    return st;
}

weir_status weir_arrays_put_text(weir_arrays_out *w, const char *at, const char *name, const char *text, weir_err *err)
{
    return put_attribute(w, at, &(attribute){.name = name, .text = text ? text : ""}, err);
}

weir_status weir_arrays_put_attribute(weir_arrays_out *w, const char *at, const char *name, weir_array_type type,
                                      int64_t n, const void *p, weir_err *err)
{
    if (n > WEIR_ARRAY_ATTRIBUTE)
        return weir_fail(err, WEIR_E_ARG, "attribute %s has %lld numbers: %d are the most", name, (long long)n,
                         WEIR_ARRAY_ATTRIBUTE);
    return put_attribute(w, at, &(attribute){.name = name, .type = type, .n = n, .p = p}, err);
}

weir_status weir_arrays_put_int(weir_arrays_out *w, const char *at, const char *name, int64_t v, weir_err *err)
{
    return weir_arrays_put_attribute(w, at, name, WEIR_ARRAY_I64, -1, &v, err);
}

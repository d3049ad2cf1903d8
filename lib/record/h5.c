/* record/h5.c: see h5.h. */
#include "h5.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "seal.h"

enum { WEIR_ATTR_MAX = 1 << 20 }; /* bytes of an attribute that we are willing to read */

void weir_h5_quiet_begin(weir_h5_quiet *q)
{
    /* A file whose close failed (disk full) makes HDF5's exit handler complain on stderr. We close what we open. This
     * counts only before the library's first use, and is harmless afterwards. */
    H5dont_atexit();
    q->print = NULL;
    q->user = NULL;
    H5Eget_auto2(H5E_DEFAULT, &q->print, &q->user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void weir_h5_quiet_end(const weir_h5_quiet *q)
{
    H5Eset_auto2(H5E_DEFAULT, q->print, q->user);
}

static herr_t innermost(unsigned n, const H5E_error2_t *entry, void *user)
{
    if (n == 0 && entry->desc)
        snprintf(user, sizeof((weir_err *)0)->msg, "%s", entry->desc);
    return 0;
}

weir_status weir_h5_fail(weir_err *err, const char *fmt, ...)
{
    char what[256], reason[sizeof err->msg] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, reason);
    H5Eclear2(H5E_DEFAULT);
    /* "file write failed: time = ..., errno = 28, error message = 'No space left on device', ..." */
    static const char mark[] = "error message = '";
    char *system = strstr(reason, mark);
    if (system) {
        system += sizeof mark - 1;
        system[strcspn(system, "'")] = '\0';
        return weir_fail(err, WEIR_E_IO, "%s: %s", what, system);
    }
    if (!reason[0])
        return weir_fail(err, WEIR_E_HDF5, "%s", what);
    return weir_fail(err, WEIR_E_HDF5, "%s: HDF5 says: %s", what, reason);
}

hid_t weir_h5_access(void)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    if (fapl < 0)
        return -1;
    /* STRONG: closing the file closes what is still open in it, also after an error half-way. */
    if (H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0 ||
        H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) < 0 || H5Pset_file_locking(fapl, true, true) < 0) {
        H5Pclose(fapl);
        return -1;
    }
    return fapl;
}

/* Objects carry no time of their own: the same run writes the same bytes (time_utc apart). */
static hid_t without_times(hid_t class)
{
    hid_t p = H5Pcreate(class);
    if (p >= 0 && H5Pset_obj_track_times(p, false) >= 0)
        return p;
    H5Pclose(p);
    return -1;
}

/* Closing is a call too and would clear the reason of a failure. */
static void keep_reason(hid_t id, herr_t (*close)(hid_t))
{
    hid_t reason = H5Eget_current_stack();
    close(id);
    H5Eset_current_stack(reason);
}

static bool was_locked(void)
{
    char reason[sizeof((weir_err *)0)->msg] = "";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, reason);
    return strstr(reason, "unable to lock file") != NULL;
}

enum { LOCK_TRIES = 200 }; /* a millisecond apart */

/* A follower that looks at a new file before anything is in it holds its lock for a moment. */
hid_t weir_h5_create_file(const char *path)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    hid_t fapl = weir_h5_access(), fcpl = without_times(H5P_FILE_CREATE);
    hid_t f = fapl < 0 || fcpl < 0 ? -1 : H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl);
    for (int i = 0; f < 0 && i < LOCK_TRIES && was_locked(); i++) {
        nanosleep(&moment, NULL);
        f = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl);
    }
    keep_reason(fcpl, H5Pclose);
    keep_reason(fapl, H5Pclose);
    return f;
}

herr_t weir_h5_start_swmr(hid_t file)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    herr_t r = H5Fstart_swmr_write(file);
    for (int i = 0; r < 0 && i < LOCK_TRIES && was_locked(); i++) {
        nanosleep(&moment, NULL);
        r = H5Fstart_swmr_write(file);
    }
    return r;
}

hid_t weir_h5_open_file(const char *path, bool locked, bool apart)
{
    hid_t fapl = weir_h5_access();
    bool good = fapl >= 0 && (locked || H5Pset_file_locking(fapl, false, true) >= 0) &&
                (!apart || H5Pset_fapl_stdio(fapl) >= 0); /* files of different drivers are different files to HDF5 */
    hid_t f = good ? H5Fopen(path, H5F_ACC_RDWR, fapl) : -1;
    keep_reason(fapl, H5Pclose);
    return f;
}

hid_t weir_h5_create_group(hid_t loc, const char *name, bool in_order)
{
    hid_t p = without_times(H5P_GROUP_CREATE), g = -1;
    if (p >= 0 && (!in_order || H5Pset_link_creation_order(p, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0))
        g = H5Gcreate2(loc, name, H5P_DEFAULT, p, H5P_DEFAULT);
    keep_reason(p, H5Pclose);
    return g;
}

hid_t weir_h5_create_dataset(hid_t loc, const char *name, hid_t type, hid_t space)
{
    hid_t p = without_times(H5P_DATASET_CREATE);
    hid_t d = p < 0 ? -1 : H5Dcreate2(loc, name, type, space, H5P_DEFAULT, p, H5P_DEFAULT);
    keep_reason(p, H5Pclose);
    return d;
}

hid_t weir_h5_put_column(hid_t loc, const char *name, hid_t type, int64_t n, const void *values)
{
    hsize_t dim = (hsize_t)n;
    hid_t space = H5Screate_simple(1, &dim, NULL);
    hid_t d = space < 0 ? -1 : weir_h5_create_dataset(loc, name, type, space);
    if (d >= 0 && H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
        keep_reason(space, H5Sclose);
        keep_reason(d, H5Dclose);
        return -1;
    }
    keep_reason(space, H5Sclose);
    return d;
}

enum { CHUNK_ENTRY = 8 }; /* bytes that a chunk takes in the index at least: its address */

weir_status weir_h5_check_cut(hid_t dataset, int64_t rows, weir_err *err)
{
    hsize_t dim[H5S_MAX_RANK] = {0}, chunk[H5S_MAX_RANK] = {1}, bytes = 0;
    char name[200] = "";
    hid_t space = H5Dget_space(dataset), plist = H5Dget_create_plist(dataset), file = H5Iget_file_id(dataset);
    H5Sget_simple_extent_dims(space, dim, NULL);
    H5Pget_chunk(plist, H5S_MAX_RANK, chunk);
    bool known = H5Fget_filesize(file, &bytes) >= 0;
    H5Fclose(file);
    H5Pclose(plist);
    H5Sclose(space);
    if (!known)
        return weir_h5_fail(err, "the size of its file cannot be read");
    if (dim[0] <= (hsize_t)rows || (dim[0] - (hsize_t)rows) / chunk[0] <= bytes / CHUNK_ENTRY)
        return WEIR_OK;
    H5Iget_name(dataset, name, sizeof name);
    return weir_fail(err, WEIR_E_FORMAT,
                     "is damaged: %s has %" PRIu64 " rows, more than a file of %" PRIu64 " bytes can hold", name,
                     (uint64_t)dim[0], (uint64_t)bytes);
}

int weir_h5_descriptor(hid_t file)
{
    void *handle = NULL;
    if (file < 0 || H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0 || !handle)
        return -1;
    return *(int *)handle;
}

static bool is_link_to_object(hid_t file, const char *path)
{
    H5L_info_t info;
    return H5Lexists(file, path, H5P_DEFAULT) > 0 && H5Lget_info(file, path, &info, H5P_DEFAULT) >= 0 &&
           info.type == H5L_TYPE_HARD;
}

bool weir_h5_has_path(hid_t file, const char *path)
{
    char part[512]; /* grows by a name each time */
    size_t n = *path == '/';
    if (!path[n] || strlen(path) >= sizeof part)
        return false;
    do {
        n += strcspn(path + n, "/");
        memcpy(part, path, n);
        part[n] = 0;
        if (!is_link_to_object(file, part))
            return false;
    } while (path[n++]);
    return true;
}

H5_index_t weir_h5_link_order(hid_t group)
{
    unsigned order = 0;
    hid_t plist = H5Gget_create_plist(group);
    if (plist < 0 || H5Pget_link_creation_order(plist, &order) < 0)
        order = 0;
    H5Pclose(plist);
    return order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
}

/* Creates (or opens, if it is there) attribute `name`. */
static hid_t attr_for(hid_t loc, const char *name, hid_t type, hid_t space)
{
    if (H5Aexists(loc, name) > 0)
        return H5Aopen(loc, name, H5P_DEFAULT);
    return H5Acreate2(loc, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
}

static weir_status put(hid_t loc, const char *name, hid_t type, hid_t space, const void *value, weir_err *err)
{
    weir_status st = WEIR_OK;
    hid_t a = type < 0 || space < 0 ? -1 : attr_for(loc, name, type, space);
    if (a < 0 || H5Awrite(a, type, value) < 0)
        st = weir_h5_fail(err, "cannot write attribute %s", name);
    if (a >= 0)
        H5Aclose(a);
    return st;
}

static hid_t string_type(void)
{
    hid_t t = H5Tcopy(H5T_C_S1);
    if (t >= 0 && (H5Tset_size(t, H5T_VARIABLE) < 0 || H5Tset_cset(t, H5T_CSET_UTF8) < 0)) {
        H5Tclose(t);
        return -1;
    }
    return t;
}

weir_status weir_h5_put_str(hid_t loc, const char *name, const char *text, weir_err *err)
{
    const char *value = text ? text : "";
    hid_t type = string_type(), space = H5Screate(H5S_SCALAR);
    weir_status st = put(loc, name, type, space, &value, err);
    H5Tclose(type);
    H5Sclose(space);
    return st;
}

weir_status weir_h5_put_int(hid_t loc, const char *name, int64_t v, weir_err *err)
{
    hid_t space = H5Screate(H5S_SCALAR);
    weir_status st = put(loc, name, H5T_NATIVE_INT64, space, &v, err);
    H5Sclose(space);
    return st;
}

weir_status weir_h5_put_ints(hid_t loc, const char *name, const int64_t *v, int64_t n, weir_err *err)
{
    hsize_t dim = (hsize_t)n;
    hid_t space = H5Screate_simple(1, &dim, NULL);
    weir_status st = put(loc, name, H5T_NATIVE_INT64, space, v, err);
    H5Sclose(space);
    return st;
}

/* The text of a scalar string attribute, variable or fixed length. */
static weir_status string_text(hid_t a, hid_t type, char **out, weir_err *err)
{
    if (H5Tis_variable_str(type) > 0) {
        char *v = NULL;
        hid_t mem = string_type();
        if (mem >= 0) /* HDF5 converts between equal character sets only */
            H5Tset_cset(mem, H5Tget_cset(type));
        bool read = mem >= 0 && H5Aread(a, mem, &v) >= 0 && v;
        if (read)
            *out = weir_strndup(v, strnlen(v, WEIR_ATTR_MAX));
        H5free_memory(v);
        H5Tclose(mem);
        return !read || *out ? WEIR_OK : weir_nomem(err, "an attribute");
    }
    size_t n = H5Tget_size(type);
    if (n == 0 || n > WEIR_ATTR_MAX)
        return WEIR_OK;
    char *raw = weir_calloc(n + 1, 1);
    bool read = raw && H5Aread(a, type, raw) >= 0;
    if (read)
        *out = weir_strndup(raw, strnlen(raw, n));
    weir_status st = raw && (!read || *out) ? WEIR_OK : weir_nomem(err, "an attribute");
    weir_free(raw);
    return st;
}

static weir_status number_text(hid_t a, H5T_class_t class, hssize_t n, char **out, weir_err *err)
{
    weir_buf text = {0};
    weir_status st = WEIR_OK;
    void *v = weir_calloc((size_t)n, 8);
    if (!v)
        return weir_nomem(err, "an attribute");
    bool read = H5Aread(a, class == H5T_INTEGER ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE, v) >= 0;
    for (hssize_t i = 0; read && !st && i < n; i++) {
        const char *comma = i ? ", " : "";
        if (class == H5T_INTEGER)
            st = weir_buf_printf(&text, "%s%" PRId64, comma, ((int64_t *)v)[i]);
        else
            st = weir_buf_printf(&text, "%s%.17g", comma, ((double *)v)[i]);
    }
    weir_free(v);
    if (!st && read && !(*out = weir_strndup(text.p, text.n)))
        st = WEIR_E_NOMEM;
    weir_buf_free(&text);
    return st ? weir_nomem(err, "an attribute") : WEIR_OK;
}

weir_status weir_h5_get_text(hid_t loc, const char *name, char **out, weir_err *err)
{
    weir_status st = WEIR_OK;
    *out = NULL;
    hid_t a = H5Aexists(loc, name) > 0 ? H5Aopen(loc, name, H5P_DEFAULT) : -1;
    if (a >= 0) {
        hid_t type = H5Aget_type(a), space = H5Aget_space(a);
        H5T_class_t class = H5Tget_class(type);
        hssize_t n = H5Sget_simple_extent_npoints(space);
        if (class == H5T_STRING && n == 1)
            st = string_text(a, type, out, err);
        else if ((class == H5T_INTEGER || class == H5T_FLOAT) && n >= 1 && n <= WEIR_ATTR_MAX / 8)
            st = number_text(a, class, n, out, err);
        H5Tclose(type);
        H5Sclose(space);
        H5Aclose(a);
    }
    H5Eclear2(H5E_DEFAULT);
    return st;
}

bool weir_h5_get_int(hid_t loc, const char *name, int64_t *v)
{
    bool good = false;
    hid_t a = H5Aexists(loc, name) > 0 ? H5Aopen(loc, name, H5P_DEFAULT) : -1;
    if (a >= 0) {
        hid_t type = H5Aget_type(a), space = H5Aget_space(a);
        good = H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_npoints(space) == 1 &&
               H5Aread(a, H5T_NATIVE_INT64, v) >= 0;
        H5Tclose(type);
        H5Sclose(space);
        H5Aclose(a);
    }
    H5Eclear2(H5E_DEFAULT);
    return good;
}

weir_status weir_h5_get_ints(hid_t loc, const char *name, int64_t n, int64_t **out, bool *fits, weir_err *err)
{
    *out = NULL;
    *fits = true;
    if (H5Aexists(loc, name) <= 0) {
        H5Eclear2(H5E_DEFAULT);
        return WEIR_OK;
    }
    hid_t a = H5Aopen(loc, name, H5P_DEFAULT), type = H5Aget_type(a), space = H5Aget_space(a);
    weir_status st = WEIR_OK;
    *fits = n > 0 && H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_npoints(space) == n;
    if (*fits && !(*out = weir_calloc((size_t)n, sizeof **out)))
        st = weir_nomem(err, "an attribute");
    if (*out && H5Aread(a, H5T_NATIVE_INT64, *out) < 0) {
        weir_free(*out);
        *out = NULL;
        *fits = false;
    }
    H5Tclose(type);
    H5Sclose(space);
    H5Aclose(a);
    H5Eclear2(H5E_DEFAULT);
    return st;
}

weir_status weir_h5_has_ints(hid_t loc, const char *name, const int64_t *v, int64_t n, bool *same, weir_err *err)
{
    int64_t *there;
    WEIR_TRY(weir_h5_get_ints(loc, name, n, &there, same, err));
    *same = *same && (n == 0 || (there && !memcmp(there, v, (size_t)n * sizeof *v)));
    weir_free(there);
    return WEIR_OK;
}

weir_status weir_h5_is_ours(const char *path, const char *format, bool *ours, weir_err *err)
{
    weir_status st = WEIR_OK;
    char sealed[WEIR_SEAL_NAMES];
    *ours = false;
    if (weir_seal_format(path, sealed)) {
        *ours = !strcmp(sealed, format);
        return WEIR_OK;
    }
    hid_t fapl = weir_h5_access();
    hid_t f = H5Fis_hdf5(path) > 0 ? H5Fopen(path, H5F_ACC_RDONLY, fapl) : -1;
    if (f >= 0) {
        char *its;
        st = weir_h5_get_text(f, "format", &its, err);
        *ours = !st && its && !strcmp(its, format);
        weir_free(its);
        H5Fclose(f);
    }
    H5Pclose(fapl);
    H5Eclear2(H5E_DEFAULT);
    return st;
}

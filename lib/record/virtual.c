/* record/virtual.c: see virtual.h. */
#include "virtual.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { FILES_MAX = 64, NAME_BYTES_MAX = 1 << 16 };

/* --- parts */

/* Rows of a selection that is one block of whole rows of a matrix `width` wide. */
static bool block_of_rows(hid_t space, int64_t width, int64_t *row, int64_t *n)
{
    hsize_t from[3] = {0}, to[3] = {0}, dim[3] = {0};
    int64_t across = 1;
    int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 1 || rank > 3 || H5Sget_simple_extent_dims(space, dim, NULL) < 0 ||
        H5Sget_select_bounds(space, from, to) < 0)
        return false;
    for (int a = 1; a < rank; a++)
        if (from[a] != 0 || to[a] != dim[a] - 1 || dim[a] > INT64_MAX || !weir_mul64(across, (int64_t)dim[a], &across))
            return false;
    if (across != width || to[0] < from[0] || to[0] >= INT64_MAX)
        return false;
    *row = (int64_t)from[0];
    *n = (int64_t)(to[0] - from[0]) + 1;
    int64_t elements; /* fewer are selected than the box holds: it has gaps */
    return weir_mul64(*n, width, &elements) && H5Sget_select_npoints(space) == elements;
}

/* The rows of a source's selection. One of everything has no shape in the file: it begins with row 0. */
static bool rows_of_source(hid_t space, int64_t width, weir_part_rows *part)
{
    int64_t n;
    if (H5Sget_select_type(space) == H5S_SEL_ALL)
        return true;
    return block_of_rows(space, width, &part->source_row, &n) && n == part->n;
}

static char *text_of(ssize_t (*get)(hid_t, size_t, char *, size_t), hid_t plist, size_t i, weir_err *err)
{
    ssize_t n = get(plist, i, NULL, 0);
    if (n < 0 || n > NAME_BYTES_MAX) {
        weir_h5_fail(err, "the files of a virtual dataset cannot be read");
        return NULL;
    }
    char *s = weir_calloc((size_t)n + 1, 1);
    if (!s)
        weir_nomem(err, "the parts of a virtual dataset");
    else
        get(plist, i, s, (size_t)n + 1);
    return s;
}

static weir_status add_part(weir_virtual_parts *p, const weir_dset *d, hid_t plist, size_t i, bool *resolved,
                            weir_err *err)
{
    weir_part_rows part = {0};
    hid_t mine = H5Pget_virtual_vspace(plist, i), its = H5Pget_virtual_srcspace(plist, i);
    bool whole = block_of_rows(mine, d->width, &part.row, &part.n) && rows_of_source(its, d->width, &part) &&
                 part.row <= d->rows && part.n <= d->rows - part.row;
    H5Sclose(its);
    H5Sclose(mine);
    *resolved = *resolved && whole;
    weir_part_rows *grown = weir_grow(p->part, (size_t)p->n, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "the parts of a virtual dataset");
    p->part = grown;
    part.file = text_of(H5Pget_virtual_filename, plist, i, err);
    part.name = part.file ? text_of(H5Pget_virtual_dsetname, plist, i, err) : NULL;
    p->part[p->n++] = part;
    if (!part.name)
        return err && err->code ? err->code : WEIR_E_HDF5;
    if (!strcmp(part.file, ".")) /* may go round in circles, where HDF5 does not come back from */
        return weir_fail(err, WEIR_E_FORMAT, "dataset %.200s is virtual and made of its own file", d->name);
    return WEIR_OK;
}

static int by_row(const void *a, const void *b)
{
    const weir_part_rows *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

weir_status weir_virtual_parts_find(weir_virtual_parts *p, const weir_dset *d, bool *resolved, weir_err *err)
{
    size_t n = 0;
    hid_t plist = H5Dget_create_plist(d->id);
    weir_status st = WEIR_OK;
    *resolved = true;
    if (plist < 0 || H5Pget_virtual_count(plist, &n) < 0)
        st = weir_h5_fail(err, "the parts of a virtual dataset cannot be read");
    for (size_t i = 0; i < n && !st; i++)
        st = add_part(p, d, plist, i, resolved, err);
    H5Pclose(plist);
    if (st)
        return st;
    if (p->n > 1)
        qsort(p->part, (size_t)p->n, sizeof *p->part, by_row);
    for (int64_t i = 1; i < p->n && *resolved; i++)
        *resolved = p->part[i - 1].row + p->part[i - 1].n <= p->part[i].row;
    return WEIR_OK;
}

void weir_virtual_parts_free(weir_virtual_parts *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        weir_free(p->part[i].file);
        weir_free(p->part[i].name);
    }
    weir_free(p->part);
    *p = (weir_virtual_parts){0};
}

/* --- the files they are in */

typedef struct weir_source {
    char *name; /* as the virtual dataset's file has it */
    weir_infile file;
    weir_dset dset; /* the one read last */
    int64_t used;
} weir_source;

static void close_source(weir_source *s)
{
    weir_dset_close(&s->dset);
    weir_infile_close(&s->file);
    weir_free(s->name);
    memset(s, 0, sizeof *s);
}

void weir_sources_free(weir_sources *s)
{
    for (int i = 0; i < s->n; i++)
        close_source(&s->source[i]);
    weir_free(s->source);
    *s = (weir_sources){0};
}

/* NAME beside the file at `beside`. */
static char *join(const char *beside, const char *name)
{
    const char *slash = strrchr(beside, '/');
    const size_t dir = slash && name[0] != '/' ? (size_t)(slash - beside) + 1 : 0, n = strlen(name);
    char *path = weir_calloc(dir + n + 1, 1);
    if (path) {
        memcpy(path, beside, dir);
        memcpy(path + dir, name, n);
    }
    return path;
}

/* A relative name counts from the directory of the file that has it; if nothing is there and that file was reached
 * through a link, from where it really lies. */
static weir_status source_path(const weir_infile *f, const char *name, char **out, weir_err *err)
{
    char *path = join(f->path, name);
    if (path && access(path, F_OK) != 0) {
        char real[PATH_MAX], *other = realpath(f->path, real) ? join(real, name) : NULL;
        if (other && access(other, F_OK) == 0) {
            weir_free(path);
            path = other;
        } else {
            weir_free(other);
        }
    }
    *out = path;
    return path ? WEIR_OK : weir_nomem(err, "a file that is read");
}

static weir_status same_model(const weir_infile *a, const weir_infile *b, weir_err *err)
{
    char *x, *y = NULL;
    weir_status st = weir_h5_get_text(a->id, "fingerprint", &x, err);
    if (!st)
        st = weir_h5_get_text(b->id, "fingerprint", &y, err);
    if (!st && x && y && strcmp(x, y) != 0)
        st = weir_fail(err, WEIR_E_FORMAT, "this part of %.200s was made with another model: merge the shards again",
                       a->path);
    weir_free(x);
    weir_free(y);
    return st;
}

static weir_status open_source(weir_source *s, const weir_dset *d, const char *name, weir_err *err)
{
    char *path;
    if (!(s->name = weir_strndup(name, strlen(name))))
        return weir_nomem(err, "a file that is read");
    WEIR_TRY(source_path(d->file, name, &path, err));
    weir_status st = weir_infile_open(&s->file, path, err);
    if (!st)
        st = same_model(d->file, &s->file, err);
    if (st && st != WEIR_E_NOMEM)
        weir_err_where(err, path, NULL, -1);
    weir_free(path);
    return st;
}

/* The open file of that name, or the place of the one that was used longest ago, closed. */
static weir_status find_source(weir_sources *s, const char *name, weir_source **out, weir_err *err)
{
    int oldest = 0;
    for (int i = 0; i < s->n; i++) {
        if (s->source[i].name && !strcmp(s->source[i].name, name)) {
            *out = &s->source[i];
            return WEIR_OK;
        }
        if (s->source[i].used < s->source[oldest].used)
            oldest = i;
    }
    if (!s->source && !(s->source = weir_calloc(FILES_MAX, sizeof *s->source)))
        return weir_nomem(err, "the files of a virtual dataset");
    *out = &s->source[s->n < FILES_MAX ? s->n++ : oldest];
    close_source(*out);
    return WEIR_OK;
}

static weir_status check_source(const weir_dset *d, const weir_part_rows *p, const weir_dset *its, weir_err *err)
{
    if (its->is_virtual)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "this part of %.200s is virtual itself", d->file->path);
    if (its->rank != d->rank || its->outer != d->outer || its->inner != d->inner || its->rows < p->n ||
        p->source_row != its->rows - p->n) /* a part ends with its file: longer ones were made anew */
        return weir_fail(err, WEIR_E_FORMAT,
                         "this part of %.200s has changed (%" PRId64 " rows of %" PRId64
                         " are there, rows up to %" PRId64 " of %" PRId64 " are wanted): merge the shards again",
                         d->file->path, its->rows, its->width, p->source_row + p->n, d->width);
    return WEIR_OK;
}

weir_status weir_sources_get(weir_sources *s, const weir_dset *d, const weir_part_rows *p, const weir_dset **out,
                             weir_err *err)
{
    weir_source *f = NULL;
    WEIR_TRY(find_source(s, p->file, &f, err));
    f->used = ++s->clock;
    if (!f->name) {
        weir_status st = open_source(f, d, p->file, err);
        if (st) {
            close_source(f);
            return st;
        }
    }
    if (!f->dset.name || strcmp(f->dset.name, p->name) != 0) {
        weir_dset_close(&f->dset);
        weir_status st = weir_dset_open(&f->dset, &f->file, f->file.id, p->name, d->as, err);
        if (st) {
            weir_err_where(err, f->file.path, NULL, -1);
            weir_dset_close(&f->dset);
            return st;
        }
    }
    weir_status st = check_source(d, p, &f->dset, err);
    if (st)
        weir_err_where(err, f->file.path, p->name, -1);
    *out = &f->dset;
    return st;
}

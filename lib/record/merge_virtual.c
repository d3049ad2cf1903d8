/* record/merge_virtual.c: virtual datasets over the parts: rows stay where they are. See merge.h.
 *
 * One mapping a part: all rows and columns of the dataset of the same name in a file that is named relative to the
 * directory of the result, so that the directory as a whole can be moved. HDF5 and our own reader look for it there.
 * What a missing file should have given reads as NaN.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"

/* The real path of the directory that PATH is in; false with errno. */
static bool real_directory(const char *path, char real[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    char dir[PATH_MAX] = ".";
    if (n >= sizeof dir) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (n) {
        memcpy(dir, path, n);
        dir[n] = '\0';
    }
    return realpath(dir, real) != NULL;
}

/* "../other/x.h5": `path` as seen from directory `dir`, both absolute and without links. */
static weir_status relative(weir_buf *out, const char *dir, const char *path)
{
    size_t same = 0, i = 0;
    for (; dir[i] && dir[i] == path[i]; i++)
        if (dir[i] == '/')
            same = i + 1;
    if (!dir[i] && path[i] == '/') /* path lies below dir */
        same = i + 1;
    for (const char *p = dir + (same < strlen(dir) ? same : strlen(dir)); *p; p += strcspn(p, "/"), p += *p == '/')
        WEIR_TRY(weir_buf_printf(out, "../")); /* a step up for each name that is left of dir */
    return weir_buf_printf(out, "%s", path + same);
}

static weir_status source_name(const weir_merge *m, const weir_merge_part *p, weir_buf *name, weir_err *err)
{
    char dir[PATH_MAX], path[PATH_MAX];
    weir_status st = WEIR_OK;
    if (!real_directory(m->out, dir) || !realpath(p->path, path))
        st = weir_fail(err, WEIR_E_IO, "cannot find the way from %s to it: %m", m->out);
    else if (relative(name, dir, path))
        st = weir_nomem(err, "the name of a file");
    else if (strchr(name->p, '%')) /* HDF5 takes it for the number of a block */
        st = weir_fail(err, WEIR_E_UNSUPPORTED, "a virtual dataset cannot name a file with %% in its path: rename it");
    if (st)
        weir_err_where(err, p->path, NULL, -1);
    return st;
}

/* Rows [row, row + dim[0]) of the virtual dataset are the part's. Both are selected as blocks: the file keeps no extent
 * of the part's dataset, so that "all of it" would not say how many rows that is. */
static weir_status map_part(const weir_merge *m, const weir_merge_part *p, const char *name, int rank, hsize_t dim[3],
                            hid_t plist, hid_t space, weir_err *err)
{
    const hsize_t at[3] = {(hsize_t)p->rows_before, 0, 0}, zero[3] = {0};
    weir_buf file = {0};
    if (p->rows == 0)
        return WEIR_OK;
    dim[0] = (hsize_t)p->rows;
    weir_status st = source_name(m, p, &file, err);
    hid_t its = st ? -1 : H5Screate_simple(rank, dim, NULL);
    if (!st && (H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, dim, NULL) < 0 ||
                H5Sselect_hyperslab(its, H5S_SELECT_SET, zero, NULL, dim, NULL) < 0 ||
                H5Pset_virtual(plist, space, file.p, name, its) < 0))
        st = weir_h5_fail(err, "cannot map %s", name);
    H5Sclose(its);
    weir_buf_free(&file);
    return st;
}

static bool set_fill(hid_t plist, hid_t type)
{
    const float nan = NAN;
    return H5Tget_class(type) != H5T_FLOAT || H5Pset_fill_value(plist, H5T_NATIVE_FLOAT, &nan) >= 0;
}

weir_status weir_merge_virtual(const weir_merge *m, const char *name, hid_t like, hid_t *out, weir_err *err)
{
    hsize_t dim[3] = {0};
    hid_t type = H5Dget_type(like), its = H5Dget_space(like), plist = H5Pcreate(H5P_DATASET_CREATE);
    int rank = H5Sget_simple_extent_dims(its, dim, NULL);
    dim[0] = (hsize_t)m->rows;
    hid_t space = H5Screate_simple(rank, dim, NULL);
    weir_status st = WEIR_OK;
    if (space < 0 || H5Pset_obj_track_times(plist, false) < 0 || !set_fill(plist, type))
        st = weir_h5_fail(err, "cannot create dataset %s", name);
    for (int k = 0; k < m->n && !st; k++)
        st = map_part(m, &m->part[k], name, rank, dim, plist, space, err);
    if (!st && (H5Sselect_all(space) < 0 ||
                (*out = H5Dcreate2(m->file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT)) < 0))
        st = weir_h5_fail(err, "cannot create dataset %s", name);
    H5Sclose(space);
    H5Pclose(plist);
    H5Sclose(its);
    H5Tclose(type);
    return st;
}

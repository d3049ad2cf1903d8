/* record/progress.c: see progress.h. */
#include "progress.h"

#include <string.h>

#include "base/mem.h"

void weir_progress_name(char out[WEIR_PROGRESS_NAME], weir_site site, int layer)
{
    if (layer >= 0)
        snprintf(out, WEIR_PROGRESS_NAME, "L%d", layer);
    else
        snprintf(out, WEIR_PROGRESS_NAME, "%s", site < WEIR_SITE_RESID_PRE ? "embed" : "final");
}

int weir_progress_find(const weir_progress *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->group[i].name, name))
            return i;
    return -1;
}

/* Room for one entry more. */
static weir_status grow(weir_progress *p, weir_err *err)
{
    weir_progress_group *group = weir_grow(p->group, (size_t)p->n, sizeof *group);
    if (group)
        p->group = group;
    int64_t *rows = weir_grow(p->rows, (size_t)p->n, sizeof *rows);
    if (rows)
        p->rows = rows;
    return group && rows ? WEIR_OK : weir_nomem(err, "progress");
}

weir_status weir_progress_entry(weir_progress *p, const char *name, int *index, weir_err *err)
{
    *index = weir_progress_find(p, name);
    if (*index >= 0)
        return WEIR_OK;
    WEIR_TRY(grow(p, err));
    memset(&p->group[p->n], 0, sizeof *p->group);
    snprintf(p->group[p->n].name, WEIR_PROGRESS_NAME, "%s", name);
    p->rows[p->n] = 0;
    *index = p->n++;
    return WEIR_OK;
}

static hid_t name_type(void)
{
    hid_t t = H5Tcopy(H5T_C_S1);
    H5Tset_size(t, WEIR_PROGRESS_NAME);
    return t;
}

weir_status weir_progress_create(weir_progress *p, hid_t file, weir_err *err)
{
    hid_t g = weir_h5_create_group(file, "progress", false), text = name_type();
    hid_t names = weir_h5_put_column(g, "group", text, p->n, p->group);
    p->rows_complete = weir_h5_put_column(g, "rows_complete", H5T_NATIVE_INT64, p->n, p->rows);
    weir_status st = names >= 0 && p->rows_complete >= 0 ? WEIR_OK : weir_h5_fail(err, "cannot create group progress");
    H5Dclose(names);
    H5Tclose(text);
    H5Gclose(g);
    return st;
}

/* Elements of a one-dimensional dataset that the file itself holds; -1 if it is none. */
static int64_t length(hid_t dataset)
{
    hsize_t dim = 0;
    hid_t space = H5Dget_space(dataset), plist = H5Dget_create_plist(dataset);
    bool line = H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_dims(space, &dim, NULL) == 1 &&
                H5Pget_layout(plist) != H5D_VIRTUAL && H5Pget_external_count(plist) == 0;
    H5Pclose(plist);
    H5Sclose(space);
    return line ? (int64_t)dim : -1;
}

static weir_status read_entries(weir_progress *p, hid_t names, weir_err *err)
{
    enum { MOST = 1 << 20 };
    int64_t n = length(names);
    hid_t text = name_type(), stored = H5Dget_type(names);
    bool fits = n >= 1 && n <= MOST && length(p->rows_complete) == n && H5Tequal(text, stored) > 0;
    weir_status st = fits ? WEIR_OK : weir_fail(err, WEIR_E_FORMAT, "/progress is damaged");
    while (!st && p->n < n) {
        st = grow(p, err);
        p->n += !st;
    }
    if (!st && (H5Dread(names, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, p->group) < 0 ||
                H5Dread(p->rows_complete, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, p->rows) < 0))
        st = weir_h5_fail(err, "cannot read /progress");
    for (int i = 0; i < p->n && !st; i++) {
        p->group[i].name[WEIR_PROGRESS_NAME - 1] = '\0';
        if (p->rows[i] < 0)
            st = weir_fail(err, WEIR_E_FORMAT, "/progress is damaged");
    }
    H5Tclose(stored);
    H5Tclose(text);
    return st;
}

weir_status weir_progress_open(weir_progress *p, hid_t file, weir_err *err)
{
    hid_t names = H5Dopen2(file, "progress/group", H5P_DEFAULT);
    p->rows_complete = names < 0 ? -1 : H5Dopen2(file, "progress/rows_complete", H5P_DEFAULT);
    weir_status st = p->rows_complete < 0 ? weir_h5_fail(err, "cannot open /progress") : read_entries(p, names, err);
    if (names >= 0)
        H5Dclose(names);
    return st;
}

weir_status weir_progress_write(weir_progress *p, weir_err *err)
{
    if (H5Dwrite(p->rows_complete, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, p->rows) < 0 ||
        H5Dflush(p->rows_complete) < 0)
        return weir_h5_fail(err, "cannot write");
    return WEIR_OK;
}

int64_t weir_progress_least(const weir_progress *p)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->group[i].name, "docs") != 0 && p->rows[i] < least)
            least = p->rows[i];
    return least == INT64_MAX ? 0 : least;
}

void weir_progress_close(weir_progress *p)
{
    if (p->rows_complete > 0)
        H5Dclose(p->rows_complete);
    weir_free(p->group);
    weir_free(p->rows);
    memset(p, 0, sizeof *p);
}

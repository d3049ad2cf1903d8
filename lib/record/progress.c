/* record/progress.c: /progress: how many rows of each group of datasets are whole on disk. */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "dump.h"

void weir_progress_name(char out[24], weir_site site, int layer)
{
    if (layer >= 0)
        snprintf(out, 24, "L%d", layer);
    else
        snprintf(out, 24, "%s", site < WEIR_SITE_RESID_PRE ? "embed" : "final");
}

static weir_status add_group(weir_dump *d, const char *name, weir_err *err)
{
    for (int i = 0; i < d->n_groups; i++)
        if (!strcmp(d->group[i].name, name))
            return WEIR_OK;
    weir_progress_group *grown = weir_realloc(d->group, (size_t)d->n_groups + 1, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "progress");
    d->group = grown;
    memset(&grown[d->n_groups], 0, sizeof *grown);
    snprintf(grown[d->n_groups++].name, sizeof grown->name, "%s", name);
    return WEIR_OK;
}

static hid_t column(hid_t loc, const char *name, hid_t type, hsize_t n, const void *value)
{
    hid_t space = H5Screate_simple(1, &n, NULL);
    hid_t d = weir_h5_create_dataset(loc, name, type, space);
    if (d >= 0 && H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) < 0) {
        H5Dclose(d);
        d = -1;
    }
    H5Sclose(space);
    return d;
}

weir_status weir_progress_create(weir_dump *d, weir_err *err)
{
    WEIR_TRY(add_group(d, "tokens", err));
    WEIR_TRY(add_group(d, "docs", err));
    for (int i = 0; i < d->n_acts; i++) {
        char name[24];
        weir_progress_name(name, d->act[i].site, d->act[i].layer);
        WEIR_TRY(add_group(d, name, err));
    }
    int64_t *zero = weir_calloc((size_t)d->n_groups, sizeof *zero);
    if (!zero)
        return weir_nomem(err, "progress");
    hid_t g = weir_h5_create_group(d->file, "progress", false);
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, sizeof(weir_progress_group));
    hid_t names = column(g, "group", text, (hsize_t)d->n_groups, d->group);
    d->progress = column(g, "rows_complete", H5T_NATIVE_INT64, (hsize_t)d->n_groups, zero);
    weir_status st = names >= 0 && d->progress >= 0 ? WEIR_OK : weir_h5_fail(err, "cannot create group progress");
    H5Dclose(names);
    H5Tclose(text);
    H5Gclose(g);
    weir_free(zero);
    return st;
}

/* Rows that HDF5 has been given: the extent of the dataset. */
static int64_t on_disk(const weir_tiled *t)
{
    hsize_t dim[3] = {0};
    hid_t space = H5Dget_space(t->id);
    H5Sget_simple_extent_dims(space, dim, NULL);
    H5Sclose(space);
    return (int64_t)dim[0];
}

static void keep_least(int64_t *least, const weir_tiled *t)
{
    int64_t rows = on_disk(t);
    if (rows < *least)
        *least = rows;
}

static int64_t group_rows(const weir_dump *d, const char *name)
{
    int64_t least = INT64_MAX;
    if (!strcmp(name, "tokens")) {
        for (int i = 0; i < WEIR_TOK_COLUMNS; i++)
            if (i != WEIR_TOK_LOGPROB || d->logprob)
                keep_least(&least, &d->token[i]);
        keep_least(&least, &d->row);
    } else if (!strcmp(name, "docs")) {
        for (int i = 0; i < WEIR_DOC_COLUMNS; i++)
            keep_least(&least, &d->docs.column[i]);
    } else {
        for (int i = 0; i < d->n_acts; i++) {
            char mine[24];
            weir_progress_name(mine, d->act[i].site, d->act[i].layer);
            if (!strcmp(mine, name))
                keep_least(&least, &d->act[i].rows);
        }
    }
    return least;
}

weir_status weir_progress_write(weir_dump *d, weir_err *err)
{
    weir_status st = WEIR_OK;
    int64_t *rows = weir_calloc((size_t)d->n_groups, sizeof *rows);
    if (!rows)
        return weir_nomem(err, "progress");
    for (int i = 0; i < d->n_groups; i++)
        rows[i] = group_rows(d, d->group[i].name);
    if (H5Dwrite(d->progress, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) < 0)
        st = weir_h5_fail(err, "cannot write");
    weir_free(rows);
    return st;
}

/* record/merge_objects.c: see merge_dump.h. */
#include <string.h>

#include "merge_dump.h"
#include "round.h"
#include "schema.h"

enum { SMALL_BYTES_MAX = 1 << 24 };

/* --- groups and datasets */

static weir_status make_group(weir_join *j, const weir_column *c, weir_err *err)
{
    hid_t g = weir_h5_create_group(j->m->file, c->path, !strcmp(c->path, "activations"));
    if (g < 0)
        return weir_h5_fail(err, "cannot create group %s", c->path);
    H5Gclose(g);
    return WEIR_OK;
}

/* A dataset of the first part, without attributes and small enough to be read at once. (H5Ocopy crashes on damaged
 * files.) */
static weir_status copy_small(weir_join *j, const char *name, weir_err *err)
{
    hid_t d = H5Dopen2(j->first.id, name, H5P_DEFAULT), type = H5Dget_type(d), space = H5Dget_space(d), copy = -1;
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    const H5T_class_t class = H5Tget_class(type);
    int64_t bytes = 0;
    bool good = n > 0 && (class == H5T_INTEGER || (class == H5T_STRING && H5Tis_variable_str(type) == 0)) &&
                weir_mul64(n, (int64_t)H5Tget_size(type), &bytes) && bytes <= SMALL_BYTES_MAX;
    weir_status st = good ? WEIR_OK : weir_fail(err, WEIR_E_FORMAT, "%s is not that of a dump", name);
    void *value = st ? NULL : weir_calloc((size_t)bytes, 1);
    if (!st && !value)
        st = weir_nomem(err, "a dataset");
    if (!st && (H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) < 0 ||
                (copy = weir_h5_create_dataset(j->m->file, name, type, space)) < 0 ||
                H5Dwrite(copy, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) < 0))
        st = weir_h5_fail(err, "cannot copy %s", name);
    weir_free(value);
    H5Dclose(copy);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(d);
    return st;
}

static weir_status make_progress(weir_join *j, const weir_column *c, weir_err *err)
{
    WEIR_TRY(make_group(j, c, err));
    WEIR_TRY(copy_small(j, "progress/group", err));
    return copy_small(j, "progress/rows_complete", err);
}

/* The layout of the first part's dataset. half_fill: room for the fill value of float16. */
static weir_status layout_of(const weir_dset *d, weir_tiled_spec *s, uint16_t *half_fill, weir_err *err)
{
    int64_t bytes;
    *s = (weir_tiled_spec){.elem = d->half ? WEIR_ELEM_F16 : d->as,
                           .rank = d->rank,
                           .outer = d->outer,
                           .inner = d->inner,
                           .tile_rows = d->chunk[0],
                           .tile_cols = d->chunk[2],
                           .filtered = d->deflate != 0,
                           .sparse = d->rank == 3,
                           .fill = d->half ? (const void *)half_fill : d->fill};
    if (d->half)
        weir_to_f16(half_fill, (const float *)(const void *)d->fill, 1);
    bool good = d->direct && d->chunk[1] == 1 && d->chunk[2] <= d->inner &&
                weir_mul64(d->chunk[0], d->chunk[2], &bytes) && weir_mul64(bytes, (int64_t)d->elem, &bytes) &&
                bytes <= WEIR_TILE_ROWS * WEIR_TILE_COLS * 4;
    return good ? WEIR_OK
                : weir_fail(err, WEIR_E_FORMAT, "%s is stored in another way than weir writes: record it again",
                            d->name);
}

typedef struct attribute_copy {
    hid_t to;
    weir_err *err;
    weir_status st;
} attribute_copy;

static herr_t on_attribute(hid_t from, const char *name, const H5A_info_t *info, void *user)
{
    attribute_copy *c = user;
    (void)info;
    c->st = weir_merge_copy_attribute(from, c->to, name, c->err);
    return c->st ? -1 : 0;
}

static weir_status copy_attributes(hid_t from, hid_t to, weir_err *err)
{
    hsize_t at = 0;
    attribute_copy c = {.to = to, .err = err};
    herr_t e = H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, &at, on_attribute, &c);
    return c.st || e >= 0 ? c.st : weir_h5_fail(err, "cannot copy attributes");
}

static weir_status make_column(weir_join *j, weir_column *c, weir_err *err)
{
    weir_dset d = {0};
    weir_tiled_spec spec;
    uint16_t half_fill;
    weir_status st = weir_dset_open(&d, &j->first, j->first.id, c->path, c->elem, err);
    if (!st && c->kind != WEIR_COLUMN_VALUES && d.rank != 1)
        st = weir_fail(err, WEIR_E_FORMAT, "%s has another rank than in a dump", c->path);
    if (!st && c->kind == WEIR_COLUMN_VALUES && j->m->o->as_virtual)
        st = weir_merge_virtual(j->m, c->path, d.id, &c->id, err);
    else if (!st) {
        st = layout_of(&d, &spec, &half_fill, err);
        if (st)
            weir_err_where(err, j->m->part[0].path, NULL, -1);
        else
            st = weir_tiled_create(&c->out, j->m->file, c->path, &spec, &j->writer, err);
        c->id = c->out.id;
    }
    if (!st)
        st = copy_attributes(d.id, c->id, err);
    weir_dset_close(&d);
    j->m->datasets += c->kind == WEIR_COLUMN_VALUES;
    return st;
}

static weir_status make_objects(weir_join *j, weir_err *err)
{
    for (int i = 0; i < j->n; i++) {
        weir_column *c = &j->column[i];
        if (c->kind == WEIR_COLUMN_GROUP)
            WEIR_TRY(make_group(j, c, err));
        else if (c->kind == WEIR_COLUMN_PROGRESS)
            WEIR_TRY(make_progress(j, c, err));
        else if (c->kind != WEIR_COLUMN_ELSEWHERE)
            WEIR_TRY(make_column(j, c, err));
    }
    return WEIR_OK;
}

/* --- dimension scales */

/* "unit_768": makes or finds that scale. */
static weir_status scale_named(weir_join *j, const char *name, int *scale, weir_err *err)
{
    char prefix[32];
    const char *cut = strrchr(name, '_');
    int64_t length = 0;
    for (const char *p = cut ? cut + 1 : ""; *p >= '0' && *p <= '9' && length < INT32_MAX; p++)
        length = 10 * length + (*p - '0');
    if (!cut || (size_t)(cut - name) >= sizeof prefix || length == 0)
        return weir_fail(err, WEIR_E_FORMAT, "dimension scale %.60s is not named as a dump names them", name);
    snprintf(prefix, sizeof prefix, "%.*s", (int)(cut - name), name);
    return weir_scales_index(&j->scales, prefix, length, scale, err);
}

/* The scale of one axis of the first part's dataset: "/row" is scale number `row`. */
static weir_status scale_of(weir_join *j, hid_t d, const hvl_t *axis, int row, int *scale, weir_err *err)
{
    char name[64] = "";
    hid_t s = axis->len == 1 ? H5Rdereference2(d, H5P_DEFAULT, H5R_OBJECT, axis->p) : -1;
    H5Iget_name(s, name, sizeof name);
    H5Oclose(s);
    if (!strcmp(name, "/row")) {
        *scale = row;
        return WEIR_OK;
    }
    return scale_named(j, name[0] == '/' ? name + 1 : name, scale, err);
}

static weir_status tie_column(weir_join *j, const weir_column *c, int row, weir_err *err)
{
    hvl_t axis[3] = {{0}};
    int scale[3];
    hid_t d = H5Dopen2(j->first.id, c->path, H5P_DEFAULT);
    if (H5Aexists(d, "DIMENSION_LIST") <= 0) {
        H5Dclose(d);
        return WEIR_OK;
    }
    hid_t a = H5Aopen(d, "DIMENSION_LIST", H5P_DEFAULT), space = H5Aget_space(a),
          type = H5Tvlen_create(H5T_STD_REF_OBJ);
    hssize_t rank = H5Sget_simple_extent_npoints(space);
    weir_status st = WEIR_OK;
    if (rank < 1 || rank > 3 || H5Aread(a, type, axis) < 0)
        st = weir_h5_fail(err, "cannot read the dimension scales of %s", c->path);
    for (int i = 0; i < rank && !st; i++)
        st = scale_of(j, d, &axis[i], row, &scale[i], err);
    if (st)
        weir_err_where(err, j->m->part[0].path, c->path, -1);
    else
        st = weir_scales_use(&j->scales, c->id, (int)rank, scale, err);
    if (rank >= 1 && rank <= 3)
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, axis);
    H5Tclose(type);
    H5Sclose(space);
    H5Aclose(a);
    H5Dclose(d);
    return st;
}

static weir_status make_scales(weir_join *j, weir_err *err)
{
    int row = -1;
    j->scales.file = j->m->file;
    for (int i = 0; i < j->n; i++)
        if (!strcmp(j->column[i].path, "row"))
            WEIR_TRY(weir_scales_add(&j->scales, "row", j->column[i].id, &row, err));
    if (row < 0)
        return weir_fail(err, WEIR_E_FORMAT, "the dataset row is missing");
    for (int i = 0; i < j->n; i++)
        if (j->column[i].kind < WEIR_COLUMN_GROUP && strcmp(j->column[i].path, "row") != 0)
            WEIR_TRY(tie_column(j, &j->column[i], row, err));
    return weir_scales_attach(&j->scales, err);
}

weir_status weir_join_objects(weir_join *j, weir_err *err)
{
    WEIR_TRY(make_objects(j, err));
    return make_scales(j, err);
}

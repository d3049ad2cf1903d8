/* record/scale.c: see scale.h. Attributes as the specification has them: on a scale CLASS, NAME and REFERENCE_LIST
 * (which datasets, which axis), on a dataset DIMENSION_LIST (one list of references an axis). */
#include "scale.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

typedef struct back_reference { /* an entry of REFERENCE_LIST */
    hobj_ref_t dataset;
    int dimension;
} back_reference;

struct weir_scale {
    char name[48];
    hid_t id;
    bool own; /* made here, to be closed here */
    hobj_ref_t ref;
    back_reference *use; /* [n_use] */
    int64_t n_use;
};

/* A fixed-length ASCII attribute, as the specification and libhdf5_hl want it. */
static weir_status put_ascii(hid_t loc, const char *name, const char *text, weir_err *err)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), a = -1;
    if (type >= 0 && H5Tset_size(type, strlen(text) + 1) >= 0)
        a = H5Acreate2(loc, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    weir_status st =
        a >= 0 && H5Awrite(a, type, text) >= 0 ? WEIR_OK : weir_h5_fail(err, "cannot write attribute %s", name);
    H5Aclose(a);
    H5Sclose(space);
    H5Tclose(type);
    return st;
}

weir_status weir_scales_add(weir_scales *s, const char *name, hid_t id, int *out, weir_err *err)
{
    struct weir_scale *grown = weir_grow(s->scale, (size_t)s->n, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "dimension scales");
    s->scale = grown;
    struct weir_scale *sc = &grown[s->n];
    memset(sc, 0, sizeof *sc);
    snprintf(sc->name, sizeof sc->name, "%s", name);
    sc->id = id;
    *out = s->n++;
    if (H5Rcreate(&sc->ref, s->file, name, H5R_OBJECT, -1) < 0)
        return weir_h5_fail(err, "cannot create dimension scale %s", name);
    WEIR_TRY(put_ascii(id, "CLASS", "DIMENSION_SCALE", err));
    return put_ascii(id, "NAME", name, err);
}

static weir_status write_index(hid_t file, const char *name, int64_t length, hid_t *out, weir_err *err)
{
    int64_t *value = weir_calloc((size_t)length, sizeof *value);
    if (!value)
        return weir_nomem(err, "dimension scales");
    for (int64_t i = 0; i < length; i++)
        value[i] = i;
    *out = weir_h5_put_column(file, name, H5T_NATIVE_INT64, length, value);
    weir_free(value);
    return *out < 0 ? weir_h5_fail(err, "cannot create dimension scale %s", name) : WEIR_OK;
}

weir_status weir_scales_index(weir_scales *s, const char *prefix, int64_t length, int *out, weir_err *err)
{
    char name[48];
    hid_t id = -1;
    snprintf(name, sizeof name, "%s_%" PRId64, prefix, length);
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->scale[i].name, name)) {
            *out = i;
            return WEIR_OK;
        }
    WEIR_TRY(write_index(s->file, name, length, &id, err));
    int before = s->n;
    weir_status st = weir_scales_add(s, name, id, out, err);
    if (s->n > before)
        s->scale[before].own = true;
    else
        H5Dclose(id);
    return st;
}

static weir_status remember(struct weir_scale *sc, hobj_ref_t dataset, int axis, weir_err *err)
{
    back_reference *grown = weir_grow(sc->use, (size_t)sc->n_use, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "dimension scales");
    sc->use = grown;
    sc->use[sc->n_use++] = (back_reference){dataset, axis};
    return WEIR_OK;
}

weir_status weir_scales_use(weir_scales *s, hid_t dataset, int rank, const int *scale, weir_err *err)
{
    hvl_t list[3];
    hobj_ref_t self;
    hsize_t dim = (hsize_t)rank;
    for (int a = 0; a < rank; a++)
        list[a] = (hvl_t){1, &s->scale[scale[a]].ref};
    hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ), space = H5Screate_simple(1, &dim, NULL);
    hid_t attr = H5Acreate2(dataset, "DIMENSION_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attr >= 0 && H5Awrite(attr, type, list) >= 0 && H5Rcreate(&self, dataset, ".", H5R_OBJECT, -1) >= 0;
    weir_status st = good ? WEIR_OK : weir_h5_fail(err, "cannot attach dimension scales");
    H5Aclose(attr);
    H5Sclose(space);
    H5Tclose(type);
    for (int a = 0; a < rank && st == WEIR_OK; a++)
        st = remember(&s->scale[scale[a]], self, a, err);
    return st;
}

static weir_status attach_one(const struct weir_scale *sc, weir_err *err)
{
    hsize_t dim = (hsize_t)sc->n_use;
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(back_reference)), space = H5Screate_simple(1, &dim, NULL), attr = -1;
    if (H5Tinsert(type, "dataset", HOFFSET(back_reference, dataset), H5T_STD_REF_OBJ) >= 0 &&
        H5Tinsert(type, "dimension", HOFFSET(back_reference, dimension), H5T_NATIVE_INT) >= 0)
        attr = H5Acreate2(sc->id, "REFERENCE_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attr >= 0 && H5Awrite(attr, type, sc->use) >= 0;
    weir_status st = good ? WEIR_OK : weir_h5_fail(err, "cannot attach dimension scale %s", sc->name);
    H5Aclose(attr);
    H5Sclose(space);
    H5Tclose(type);
    return st;
}

weir_status weir_scales_attach(weir_scales *s, weir_err *err)
{
    for (int i = 0; i < s->n; i++)
        if (s->scale[i].n_use > 0)
            WEIR_TRY(attach_one(&s->scale[i], err));
    return WEIR_OK;
}

void weir_scales_forget(weir_scales *s)
{
    for (int i = 0; i < s->n; i++)
        s->scale[i].own = false;
}

void weir_scales_free(weir_scales *s)
{
    for (int i = 0; i < s->n; i++) {
        if (s->scale[i].own)
            H5Dclose(s->scale[i].id);
        weir_free(s->scale[i].use);
    }
    weir_free(s->scale);
    memset(s, 0, sizeof *s);
    s->file = -1;
}

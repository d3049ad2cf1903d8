/* record/act.c: see act.h. */
#include "act.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "progress.h"
#include "round.h"
#include "schema.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* fill: room for the fill value as it is stored. */
static weir_tiled_spec layout(const weir_act *a, uint32_t *fill)
{
    weir_tiled_spec s = {.elem = a->storage.f16 ? WEIR_ELEM_F16 : WEIR_ELEM_F32,
                         .rank = a->rank3 ? 3 : 2,
                         .outer = 1,
                         .filtered = true,
                         .fill = fill};
    if (a->storage.f16)
        weir_to_f16((uint16_t *)fill, &a->fill, 1);
    else
        memcpy(fill, &a->fill, sizeof a->fill);
    if (a->rank3) {
        s.outer = a->heads;
        s.inner = a->size;
        s.tile_rows = WEIR_TILE_ROWS_3D;
        s.sparse = true;
    } else {
        s.inner = a->units ? a->n_units : a->heads * a->size;
        s.tile_rows = WEIR_TILE_ROWS;
    }
    s.tile_cols = least(WEIR_TILE_COLS, s.inner);
    return s;
}

/* "blocks.6.mlp.hook_post" -> "mlp.hook_post" */
static const char *site_text(const char *name)
{
    if (strncmp(name, "blocks.", 7))
        return name;
    const char *dot = strchr(name + 7, '.');
    return dot ? dot + 1 : name;
}

static weir_status describe(const weir_act *a, const weir_point *p, weir_err *err)
{
    hid_t d = a->rows.id;
    char entry[WEIR_PROGRESS_NAME];
    weir_progress_name(entry, a->site, a->layer);
    WEIR_TRY(weir_h5_put_str(d, "progress", entry, err));
    WEIR_TRY(weir_h5_put_int(d, "layer", a->layer, err));
    WEIR_TRY(weir_h5_put_str(d, "site", site_text(a->name), err));
    WEIR_TRY(weir_h5_put_str(d, "letters", a->units ? "T U" : p->letters, err));
    if (a->units)
        return weir_h5_put_ints(d, "units", a->units, a->n_units, err);
    if (p->rank == 3 && !a->rank3) {
        WEIR_TRY(weir_h5_put_int(d, "heads", a->heads, err));
        WEIR_TRY(weir_h5_put_int(d, "head_size", a->size, err));
    }
    return WEIR_OK;
}

static weir_status copy_units(weir_act *a, const weir_point *p, const int64_t *units, int64_t n, weir_err *err)
{
    if (n == 0)
        return weir_fail(err, WEIR_E_ARG, "no unit of %s is selected", p->name);
    if (!(a->units = weir_calloc((size_t)n, sizeof *a->units)))
        return weir_nomem(err, "selected units");
    for (int64_t i = 0; i < n; i++) {
        if (units[i] < 0 || units[i] >= p->width)
            return weir_fail(err, WEIR_E_ARG, "%s has no unit %lld: a row has %lld", p->name, (long long)units[i],
                             (long long)p->width);
        a->units[i] = units[i];
    }
    a->n_units = n;
    return WEIR_OK;
}

weir_status weir_act_init(weir_act *a, const weir_point *p, const int64_t *units, int64_t n, int64_t ctx,
                          const weir_storage *storage, weir_err *err)
{
    a->rows.id = -1;
    a->site = p->site;
    a->layer = p->layer;
    a->keyed = p->keyed;
    a->heads = p->heads;
    a->size = a->keyed ? ctx : p->size;
    a->point_size = p->size;
    a->storage = *storage;
    a->fill = p->site == WEIR_SITE_SCORES && !p->grad ? -INFINITY : 0;
    a->rank3 = n < 0 && (a->keyed || p->site == WEIR_SITE_RESULT);
    int64_t width;
    if (a->heads <= 0 || a->size <= 0 || !weir_mul64(a->heads, a->size, &width))
        return weir_fail(err, WEIR_E_SHAPE, "%s has no width", p->name);
    if (!(a->name = weir_strndup(p->name, strlen(p->name))))
        return weir_nomem(err, "hook names");
    if (n >= 0)
        WEIR_TRY(copy_units(a, p, units, n, err));
    if (storage->f16 && !(a->wide = weir_calloc((size_t)(n >= 0 ? n : width), sizeof *a->wide)))
        return weir_nomem(err, "a row");
    return WEIR_OK;
}

weir_status weir_act_create(weir_act *a, hid_t group, const weir_point *p, const weir_tile_writer *w, weir_err *err)
{
    uint32_t fill;
    weir_tiled_spec spec = layout(a, &fill);
    WEIR_TRY(weir_tiled_create(&a->rows, group, a->name, &spec, w, err));
    return describe(a, p, err);
}

weir_status weir_act_open(weir_act *a, hid_t group, const weir_tile_writer *w, weir_err *err)
{
    uint32_t fill;
    weir_tiled_spec spec = layout(a, &fill);
    WEIR_TRY(weir_tiled_open(&a->rows, group, a->name, &spec, w, err));
    bool same;
    WEIR_TRY(weir_h5_has_ints(a->rows.id, "units", a->units, a->units ? a->n_units : 0, &same, err));
    return same ? WEIR_OK : weir_fail(err, WEIR_E_ARG, "it holds other units of %s", a->name);
}

weir_status weir_act_scales(const weir_act *a, weir_scales *s, int row_scale, weir_err *err)
{
    int axis[3] = {row_scale, 0, 0};
    const weir_tiled_spec *spec = &a->rows.spec;
    if (!a->rank3) {
        WEIR_TRY(weir_scales_index(s, "unit", spec->inner, &axis[1], err));
        return weir_scales_use(s, a->rows.id, 2, axis, err);
    }
    WEIR_TRY(weir_scales_index(s, "head", spec->outer, &axis[1], err));
    WEIR_TRY(weir_scales_index(s, a->keyed ? "key" : "unit", spec->inner, &axis[2], err));
    return weir_scales_use(s, a->rows.id, 3, axis, err);
}

/* --- rows: `size` is that of the pass, which differs from the stored one only where keys are indexed */

static void put_keys(const weir_act *a, float *dst, const float *src, int64_t size)
{
    for (int64_t h = 0; h < a->heads; h++) {
        memcpy(dst, src, (size_t)size * sizeof *dst);
        for (int64_t k = size; k < a->size; k++)
            dst[k] = a->fill;
        dst += a->size;
        src += size;
    }
}

static void put_units(const weir_act *a, float *dst, const float *src, int64_t size)
{
    for (int64_t i = 0; i < a->n_units; i++) {
        int64_t head = a->units[i] / a->point_size, at = a->units[i] % a->point_size;
        dst[i] = at < size ? src[head * size + at] : a->fill;
    }
}

static void put_row(const weir_act *a, float *dst, const float *src, int64_t size)
{
    if (a->units)
        put_units(a, dst, src, size);
    else
        put_keys(a, dst, src, size);
}

/* Elements of a row as it is stored. */
static int64_t row_width(const weir_act *a)
{
    return (int64_t)(a->rows.row_bytes / weir_elem_bytes(a->rows.spec.elem));
}

/* n elements to their place, with the precision that is kept. */
static void store(const weir_act *a, void *dst, const float *src, int64_t n)
{
    if (a->storage.f16)
        weir_to_f16(dst, src, n);
    else if (a->storage.mantissa)
        weir_round_mantissa(dst, src, n, a->storage.mantissa);
    else if (dst != (const void *)src)
        memcpy(dst, src, (size_t)n * sizeof *src);
}

static void store_rows(const weir_act *a, uint8_t *dst, const float *src, int64_t width, int64_t size, int64_t n)
{
    int64_t stored = row_width(a);
    if (!a->units && !a->keyed) {
        store(a, dst, src, n * stored);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float *row = a->storage.f16 ? a->wide : (float *)dst;
        put_row(a, row, src, size);
        store(a, dst, row, stored);
        dst += a->rows.row_bytes;
        src += width;
    }
}

/* n rows that are all kept. */
static weir_status append_run(weir_act *a, weir_tile_writer *w, const float *src, int64_t width, int64_t size,
                              int64_t n, weir_err *err)
{
    int64_t over = weir_tiled_pass_over(&a->rows, n);
    src += over * width;
    n -= over;
    while (n > 0) {
        void *p = NULL;
        int64_t room = 0;
        WEIR_TRY(weir_tiled_room(&a->rows, n, &p, &room, err));
        store_rows(a, p, src, width, size, room);
        WEIR_TRY(weir_tiled_added(&a->rows, w, room, err));
        src += room * width;
        n -= room;
    }
    return WEIR_OK;
}

static weir_status check_shape(const weir_act *a, const weir_value *v, weir_err *err)
{
    bool heads = v->heads == a->heads && v->width == v->heads * v->size;
    if (a->keyed && heads && v->size > a->size && !a->units)
        return weir_fail(err, WEIR_E_SHAPE, "%s has %lld keys, but the dump was made for windows of %lld tokens",
                         a->name, (long long)v->size, (long long)a->size);
    if (!heads || (!a->keyed && v->size != a->size))
        return weir_fail(err, WEIR_E_SHAPE, "%s came as [%lld, %lld], but was declared as [%lld, %lld]", a->name,
                         (long long)v->heads, (long long)v->size, (long long)a->heads, (long long)a->size);
    return WEIR_OK;
}

weir_status weir_act_append(weir_act *a, weir_tile_writer *w, const weir_value *v, weir_err *err)
{
    const uint8_t *keep = v->rows->keep;
    WEIR_TRY(check_shape(a, v, err));
    for (int64_t i = 0; i < v->rows->n;) {
        int64_t end = i + 1;
        if (!keep[i]) {
            i++;
            continue;
        }
        while (end < v->rows->n && keep[end])
            end++;
        WEIR_TRY(append_run(a, w, v->data + i * v->width, v->width, v->size, end - i, err));
        i = end;
    }
    return WEIR_OK;
}

void weir_act_close(weir_act *a)
{
    weir_tiled_close(&a->rows);
    weir_free(a->name);
    weir_free(a->units);
    weir_free(a->wide);
    memset(a, 0, sizeof *a);
}

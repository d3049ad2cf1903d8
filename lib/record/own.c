/* record/own.c: see own.h. */
#include "own.h"

#include <string.h>

#include "base/mem.h"
#include "dump.h"
#include "schema.h"

/* Tiles are no larger than those of activations. */
static weir_tiled_spec layout(weir_dump_type type, int64_t width)
{
    static const weir_elem elem[] = {WEIR_ELEM_F32, WEIR_ELEM_I32, WEIR_ELEM_I64, WEIR_ELEM_U8};
    int64_t cols = type == WEIR_DUMP_I64 ? WEIR_TILE_COLS / 2 : WEIR_TILE_COLS;
    return (weir_tiled_spec){.elem = elem[type],
                             .rank = 2,
                             .outer = 1,
                             .inner = width,
                             .tile_rows = WEIR_TILE_ROWS,
                             .tile_cols = width < cols ? width : cols,
                             .filtered = true};
}

/* A link's name has no slash, and is not "." */
static bool plain_name(const char *name)
{
    return name && *name && !strchr(name, '/') && strcmp(name, ".") != 0;
}

/* -1: it is not there, or cannot be made. */
static hid_t open_group(hid_t loc, const char *name, bool make)
{
    if (H5Lexists(loc, name, H5P_DEFAULT) > 0)
        return H5Gopen2(loc, name, H5P_DEFAULT);
    return make ? weir_h5_create_group(loc, name, false) : -1;
}

void weir_own_entry(char out[WEIR_PROGRESS_NAME], const weir_point *point)
{
    if (point)
        weir_progress_name(out, point->site, point->layer);
    else
        snprintf(out, WEIR_PROGRESS_NAME, "final");
}

static weir_status make(weir_dump *d, weir_own *o, hid_t group, const char *name, const weir_tiled_spec *spec,
                        weir_err *err)
{
    char entry[WEIR_PROGRESS_NAME];
    if (d->resumed)
        return weir_tiled_open(&o->rows, group, name, spec, &d->writer, err);
    weir_own_entry(entry, o->point);
    WEIR_TRY(weir_tiled_create(&o->rows, group, name, spec, &d->writer, err));
    return weir_h5_put_str(o->rows.id, "progress", entry, err);
}

static weir_status create(weir_dump *d, weir_own *o, const char *hook, const char *name, const weir_tiled_spec *spec,
                          weir_err *err)
{
    weir_buf full = {0};
    if (weir_buf_printf(&full, "%s/%s", hook, name))
        return weir_nomem(err, "a hook's datasets");
    o->name = full.p;
    for (int i = 0; i < d->n_own; i++)
        if (!strcmp(d->own[i].name, o->name))
            return weir_fail(err, WEIR_E_HOOK, "hook %s declares its dataset %s twice", hook, name);
    hid_t all = open_group(d->file, "hooks", !d->resumed), mine = all < 0 ? -1 : open_group(all, hook, !d->resumed);
    weir_status st = WEIR_OK;
    if (mine >= 0)
        st = make(d, o, mine, name, spec, err);
    else if (d->resumed)
        st = weir_fail(err, WEIR_E_ARG, "%s was begun without hook %s (--force begins again)", d->out.part, hook);
    else
        st = weir_h5_fail(err, "cannot create group hooks/%s", hook);
    if (mine >= 0)
        H5Gclose(mine);
    if (all >= 0)
        H5Gclose(all);
    return st;
}

weir_status weir_dump_own_new(weir_dump *d, const char *hook, const char *name, const weir_point *point,
                              weir_dump_type type, int64_t width, int *id, weir_err *err)
{
    weir_h5_quiet q;
    if (d->begun)
        return weir_fail(err, WEIR_E_ARG, "a hook's datasets must be declared before the first row");
    if (!plain_name(hook) || !plain_name(name) || width < 1 || type < WEIR_DUMP_F32 || type > WEIR_DUMP_U8)
        return weir_fail(err, WEIR_E_ARG, "hook %s: dataset %s [rows, %lld] cannot be declared", hook ? hook : "",
                         name ? name : "", (long long)width);
    weir_own *grown = weir_grow(d->own, (size_t)d->n_own, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "a hook's datasets");
    d->own = grown;
    weir_own *o = &grown[d->n_own];
    memset(o, 0, sizeof *o);
    o->point = point;
    weir_tiled_spec spec = layout(type, width);
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = create(d, o, hook, name, &spec, err);
    if (st)
        weir_own_close(o);
    else
        *id = d->n_own++;
    return weir_dump_leave(d, &q, st, err);
}

weir_status weir_dump_own_append(weir_dump *d, int id, const void *rows, int64_t n, weir_err *err)
{
    weir_h5_quiet q;
    if (id < 0 || id >= d->n_own)
        return weir_fail(err, WEIR_E_ARG, "a hook's dataset %d was not declared", id);
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = weir_dump_begin(d, err);
    if (!st && d->own[id].rows.over < n)
        st = weir_dump_trim(d, err);
    if (!st) {
        weir_tiled *t = &d->own[id].rows;
        int64_t over = weir_tiled_pass_over(t, n);
        st = weir_tiled_append(t, &d->writer, (const uint8_t *)rows + (size_t)over * t->row_bytes, n - over, err);
    }
    return weir_dump_leave(d, &q, st, err);
}

weir_status weir_own_scales(const weir_own *o, weir_scales *s, int row_scale, weir_err *err)
{
    int axis[2] = {row_scale, 0};
    WEIR_TRY(weir_scales_index(s, "unit", o->rows.spec.inner, &axis[1], err));
    return weir_scales_use(s, o->rows.id, 2, axis, err);
}

void weir_own_close(weir_own *o)
{
    weir_tiled_close(&o->rows);
    weir_free(o->name);
    o->name = NULL;
}

/* From a family's tensor names to module names: a module is a weight's name without its end. */
#include "modules.h"

#include <stdio.h>
#include <string.h>

#include "impl.h"

#define WEIGHT ".weight"

static const weir_layout *layout_of(const weir_model *m)
{
    return &m->cfg.arch->hf_tensors;
}

static weir_role role_of(const weir_layout *l, weir_matrix which)
{
    static const weir_role role[] = {
        [WEIR_MATRIX_Q] = WEIR_ROLE_Q_W,      [WEIR_MATRIX_K] = WEIR_ROLE_K_W,     [WEIR_MATRIX_V] = WEIR_ROLE_V_W,
        [WEIR_MATRIX_O] = WEIR_ROLE_O_W,      [WEIR_MATRIX_PRE] = WEIR_ROLE_PRE_W, [WEIR_MATRIX_UP] = WEIR_ROLE_UP_W,
        [WEIR_MATRIX_DOWN] = WEIR_ROLE_DOWN_W};
    return which <= WEIR_MATRIX_V && l->qkv != WEIR_QKV_SEPARATE ? WEIR_ROLE_QKV_W : role[which];
}

/* All but the name. False: no matrix of a block. */
static bool describe(weir_module *out, const weir_model *m, const weir_layout *l, weir_role role, int64_t layer)
{
    *out = (weir_module){.layer = layer, .k_major = l->k_major};
    for (int w = 0; w < WEIR_MATRIX_COUNT; w++) {
        int64_t n;
        if (role_of(l, (weir_matrix)w) != role)
            continue;
        out->matrix[out->n++] = (weir_matrix)w;
        weir_matrix_shape(m, (weir_matrix)w, &out->in, &n);
        out->out += n;
    }
    return out->n > 0;
}

bool weir_module_find(weir_module *out, const weir_model *m, const char *name, size_t n)
{
    char weight[sizeof out->name + sizeof WEIGHT];
    int64_t layer;
    if (n >= sizeof out->name || memchr(name, '\0', n))
        return false;
    snprintf(weight, sizeof weight, "%.*s" WEIGHT, (int)n, name);
    const weir_name *e = weir_name_find(layout_of(m), weight, &layer);
    if (!e || !describe(out, m, layout_of(m), e->role, layer))
        return false;
    memcpy(out->name, name, n);
    return true;
}

void weir_module_of(weir_module *out, const weir_model *m, int64_t layer, weir_matrix which)
{
    const weir_layout *l = layout_of(m);
    const weir_role role = role_of(l, which);
    describe(out, m, l, role, layer);
    for (const weir_name *e = l->name; e->role != WEIR_ROLE_END; e++) {
        const char *hash = e->role == role ? strchr(e->pattern, '#') : NULL;
        if (!hash)
            continue;
        snprintf(out->name, sizeof out->name, "%s%.*s%lld%s", l->prefix ? l->prefix : "", (int)(hash - e->pattern),
                 e->pattern, (long long)layer, hash + 1);
        out->name[strlen(out->name) - strlen(WEIGHT)] = '\0';
        return;
    }
}

static int64_t row_in(const weir_model *m, const weir_layout *l, weir_matrix which, int64_t i)
{
    static const weir_qkv_which qkv[] = {WEIR_QKV_Q, WEIR_QKV_K, WEIR_QKV_V};
    return which <= WEIR_MATRIX_V ? weir_layout_row(&m->spec, l, qkv[which], i) : i;
}

int64_t weir_module_row(const weir_model *m, weir_matrix which, int64_t i)
{
    return row_in(m, layout_of(m), which, i);
}

const weir_tensor *weir_stored_of(weir_module *out, const weir_model *m, int64_t layer, weir_matrix which)
{
    const weir_role role = role_of(m->layout, which);
    describe(out, m, m->layout, role, layer);
    return weir_slot(m, layer, role);
}

int64_t weir_stored_row(const weir_model *m, weir_matrix which, int64_t i)
{
    return row_in(m, m->layout, which, i);
}

/* --- the public face */

const weir_tensor *weir_matrix_tensor(const weir_model *model, int64_t layer, weir_matrix m)
{
    weir_module w;
    return layer >= 0 && layer < model->spec.L && (unsigned)m < WEIR_MATRIX_COUNT ? weir_stored_of(&w, model, layer, m)
                                                                                  : NULL;
}

weir_status weir_matrix_read(const weir_model *model, int64_t layer, weir_matrix m, float *dst, weir_err *err)
{
    const weir_tensor *t = weir_matrix_tensor(model, layer, m);
    int64_t in, out;
    if (!t)
        return weir_fail(err, WEIR_E_ARG, "layer %lld has no %s matrix in this model", (long long)layer,
                         (unsigned)m < WEIR_MATRIX_COUNT ? weir_matrix_name(m) : "such");
    weir_matrix_shape(model, m, &in, &out);
    const int64_t width = t->shape[1], bytes = width / weir_dtype_block(t->dtype) * weir_dtype_bytes(t->dtype);
    if (!model->layout->k_major) {
        for (int64_t o = 0; o < out; o++)
            weir_dequantize(t->dtype, (const char *)t->data + weir_stored_row(model, m, o) * bytes, in, dst + o * in);
        return WEIR_OK;
    }
    float *row = weir_calloc((size_t)width, sizeof *row);
    if (!row)
        return weir_nomem(err, "a matrix");
    for (int64_t i = 0; i < in; i++) {
        weir_dequantize(t->dtype, (const char *)t->data + i * bytes, width, row);
        for (int64_t o = 0; o < out; o++)
            dst[o * in + i] = row[weir_stored_row(model, m, o)];
    }
    weir_free(row);
    return WEIR_OK;
}

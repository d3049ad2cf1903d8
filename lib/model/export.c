/* Tensors of a GGUF file under the names and in the layout of the family's Hugging Face class. */
#include "export_impl.h"

#include <stdio.h>
#include <string.h>

static const weir_layout *class_layout(const weir_export *x)
{
    return &x->m->cfg.arch->hf_tensors;
}

/* --- which tensors */

static bool is_qkv(weir_role r)
{
    return r >= WEIR_ROLE_QKV_W && r <= WEIR_ROLE_V_B;
}

/* Does the file hold something of what a tensor of the class holds? */
static bool is_stored(const weir_model *m, int64_t layer, weir_role r)
{
    static const struct {
        weir_qkv_which which;
        bool bias;
    } part[] = {[WEIR_ROLE_Q_W] = {WEIR_QKV_Q, false}, [WEIR_ROLE_Q_B] = {WEIR_QKV_Q, true},
                [WEIR_ROLE_K_W] = {WEIR_QKV_K, false}, [WEIR_ROLE_K_B] = {WEIR_QKV_K, true},
                [WEIR_ROLE_V_W] = {WEIR_QKV_V, false}, [WEIR_ROLE_V_B] = {WEIR_QKV_V, true}};
    if (r == WEIR_ROLE_QKV_W || r == WEIR_ROLE_QKV_B)
        return is_stored(m, layer, r == WEIR_ROLE_QKV_W ? WEIR_ROLE_Q_W : WEIR_ROLE_Q_B) ||
               is_stored(m, layer, r == WEIR_ROLE_QKV_W ? WEIR_ROLE_K_W : WEIR_ROLE_K_B) ||
               is_stored(m, layer, r == WEIR_ROLE_QKV_W ? WEIR_ROLE_V_W : WEIR_ROLE_V_B);
    if (is_qkv(r))
        r = weir_qkv_role(m, part[r].which, part[r].bias);
    return weir_slot(m, layer, r) != NULL;
}

static bool is_wanted(const weir_export *x, const weir_name *e)
{
    switch (e->when) {
    case WEIR_ALWAYS:
        return true;
    case WEIR_IF_ATTN_BIAS:
        return x->attn_bias;
    case WEIR_IF_MLP_BIAS:
        return x->mlp_bias;
    case WEIR_IF_STORED:
        break;
    }
    return is_stored(x->m, weir_role_in_layer(e->role) ? 0 : -1, e->role);
}

/* The class has biases of a kind in all its places or in none: in all if the file has any. */
static void find_biases(weir_export *x)
{
    for (const weir_name *e = class_layout(x)->name; e->role != WEIR_ROLE_END; e++) {
        x->attn_bias |= e->when == WEIR_IF_ATTN_BIAS && is_stored(x->m, 0, e->role);
        x->mlp_bias |= e->when == WEIR_IF_MLP_BIAS && is_stored(x->m, 0, e->role);
    }
}

/* Does a tensor of the class take in what the file stores for this role? */
static bool has_place(const weir_export *x, weir_role r)
{
    const bool bias = is_qkv(r) && (r - WEIR_ROLE_QKV_W) % 2;
    for (const weir_name *e = class_layout(x)->name; e->role != WEIR_ROLE_END; e++)
        if (e->role == r || (is_qkv(r) && is_qkv(e->role) && (e->role - WEIR_ROLE_QKV_W) % 2 == bias))
            return true;
    return r == WEIR_ROLE_ROPE_FREQS;
}

static weir_status check_places(const weir_export *x, weir_err *err)
{
    for (int64_t l = -1; l < x->m->spec.L; l++)
        for (int r = WEIR_ROLE_END + 1; r < WEIR_ROLE_COUNT; r++) {
            const weir_tensor *t = weir_slot(x->m, l, (weir_role)r);
            if (!t || has_place(x, (weir_role)r))
                continue;
            weir_fail(err, WEIR_E_UNSUPPORTED, "the Hugging Face class %s has no place for it", x->type->class);
            return weir_err_where(err, t->file, t->name, t->offset);
        }
    return WEIR_OK;
}

static void add_tensor(weir_export *x, const weir_name *e, int64_t layer)
{
    const weir_layout *l = class_layout(x);
    const weir_shape shape = weir_role_shape(e->role, &x->m->spec, l->k_major);
    weir_export_tensor *t = &x->tensor[x->n++];
    const char *hash = strchr(e->pattern, '#'), *prefix = l->prefix && e->role != WEIR_ROLE_HEAD ? l->prefix : "";
    *t = (weir_export_tensor){.layer = layer,
                              .role = e->role,
                              .rank = shape.rank,
                              .rows = shape.rank > 1 ? shape.n[0] : 1,
                              .width = shape.n[shape.rank - 1]};
    if (hash)
        snprintf(t->name, sizeof t->name, "%s%.*s%lld%s", prefix, (int)(hash - e->pattern), e->pattern,
                 (long long)layer, hash + 1);
    else
        snprintf(t->name, sizeof t->name, "%s%s", prefix, e->pattern);
}

static weir_status list_tensors(weir_export *x, weir_err *err)
{
    const weir_layout *l = class_layout(x);
    const int64_t layers = x->m->spec.L;
    x->tensor = weir_calloc((size_t)(layers + 1) * WEIR_ROLE_COUNT, sizeof *x->tensor);
    if (!x->tensor)
        return weir_nomem(err, "a list of tensors");
    for (int64_t layer = -1; layer < layers; layer++)
        for (const weir_name *e = l->name; e->role != WEIR_ROLE_END; e++)
            if (weir_role_in_layer(e->role) == (layer >= 0) && is_wanted(x, e))
                add_tensor(x, e, layer);
    return WEIR_OK;
}

weir_status weir_export_new(weir_export **out, const weir_model *m, weir_err *err)
{
    weir_export *x = weir_calloc(1, sizeof *x);
    if (!x)
        return weir_nomem(err, "a list of tensors");
    x->m = m;
    find_biases(x);
    weir_status s = weir_export_find_rope(x, err);
    if (s == WEIR_OK)
        s = weir_export_find_class(x, err);
    if (s == WEIR_OK)
        s = check_places(x, err);
    if (s == WEIR_OK)
        s = list_tensors(x, err);
    if (s != WEIR_OK) {
        weir_export_free(x);
        return weir_err_where(err, m->info.path, NULL, -1);
    }
    *out = x;
    return WEIR_OK;
}

void weir_export_free(weir_export *x)
{
    if (x)
        weir_free(x->tensor);
    weir_free(x);
}

int64_t weir_export_n(const weir_export *x)
{
    return x->n;
}

const weir_export_tensor *weir_export_at(const weir_export *x, int64_t i)
{
    return &x->tensor[i];
}

/* --- rows. Outputs are counted in Hugging Face's order, so that the class's layout permutes none. */

/* Which output of q, k or v is output `row` of a tensor of the class. */
static int64_t output_of(const weir_export *x, const weir_export_tensor *t, int64_t row, weir_qkv_which *which)
{
    const int64_t d = x->m->spec.D, q = x->m->spec.H * d, k = x->m->spec.K * d;
    if (t->role != WEIR_ROLE_QKV_W && t->role != WEIR_ROLE_QKV_B) {
        *which = (weir_qkv_which)((t->role - WEIR_ROLE_Q_W) / 2);
        return row;
    }
    if (class_layout(x)->qkv == WEIR_QKV_PER_HEAD) {
        *which = (weir_qkv_which)(row / d % 3);
        return row / d / 3 * d + row % d;
    }
    *which = row < q ? WEIR_QKV_Q : row < q + k ? WEIR_QKV_K : WEIR_QKV_V;
    return row - (row < q ? 0 : row < q + k ? q : q + k);
}

/* The stored tensor with an output of a tensor of the class, NULL if the file lacks it, and which row of it that is. */
static const weir_tensor *stored_at(const weir_export *x, const weir_export_tensor *t, int64_t row, int64_t *at)
{
    const weir_role r = (weir_role)t->role;
    weir_qkv_which which;
    *at = row;
    if (!is_qkv(r))
        return weir_slot(x->m, t->layer, r);
    const int64_t output = output_of(x, t, row, &which);
    *at = weir_qkv_row(x->m, which, output);
    return weir_slot(x->m, t->layer, weir_qkv_role(x->m, which, t->rank == 1));
}

/* n elements from element `at` on, which begins a block. */
static void widen(const weir_tensor *s, int64_t at, int64_t n, float *dst)
{
    weir_dequantize(s->dtype, (const char *)s->data + at / weir_dtype_block(s->dtype) * weir_dtype_bytes(s->dtype), n,
                    dst);
}

static void read_vector(const weir_export *x, const weir_export_tensor *t, float *dst)
{
    const float less =
        weir_role_is_gain((weir_role)t->role) ? class_layout(x)->norm_offset - x->m->layout->norm_offset : 0;
    for (int64_t i = 0; i < t->width; i++) {
        float block[256];
        int64_t at;
        const weir_tensor *s = stored_at(x, t, i, &at);
        dst[i] = 0;
        if (!s)
            continue;
        const int64_t n = weir_dtype_block(s->dtype);
        widen(s, at / n * n, n, block);
        dst[i] = block[at % n] - less;
    }
}

/* Stored [out, in], wanted [in, out]: columns [row, row + n) of each stored row. */
static void read_turned(const weir_export *x, const weir_export_tensor *t, int64_t row, int64_t n, float *dst)
{
    float some[WEIR_EXPORT_ROWS];
    for (int64_t o = 0; o < t->width; o++) {
        int64_t at;
        const weir_tensor *s = stored_at(x, t, o, &at);
        widen(s, at * t->rows + row, n, some);
        for (int64_t i = 0; i < n; i++)
            dst[i * t->width + o] = some[i];
    }
}

void weir_export_rows(const weir_export *x, const weir_export_tensor *t, int64_t row, int64_t n, float *dst)
{
    if (t->rank == 1) {
        read_vector(x, t, dst);
        return;
    }
    if (class_layout(x)->k_major && t->layer >= 0) {
        read_turned(x, t, row, n, dst);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        const weir_tensor *s = stored_at(x, t, row + i, &at);
        widen(s, at * t->width, t->width, dst + i * t->width);
    }
}

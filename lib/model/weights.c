/* Weights made ready: norms and biases as fp32, which stay, and matrices as packed panels, which can be released again
 * (lease.c says when). */
#include <string.h>

#include "../base/parallel.h"
#include "impl.h"

/* --- vectors */

void weir_vector_read(const weir_tensor *t, float *dst, int64_t n)
{
    weir_dequantize(t->dtype, t->data, n, dst);
}

static float *new_vector(weir_model *m, int64_t n)
{
    float *v = weir_arena_alloc(&m->made.vectors, (size_t)n, sizeof *v);
    if (v)
        atomic_fetch_add(&m->other_bytes, n * (int64_t)sizeof *v);
    return v;
}

static weir_status read_vector(weir_model *m, const weir_tensor *t, const float **out, weir_err *err)
{
    *out = NULL;
    if (!t)
        return WEIR_OK;
    float *v = new_vector(m, t->shape[0]);
    if (!v)
        return weir_nomem(err, "a norm or bias");
    weir_vector_read(t, v, t->shape[0]);
    *out = v;
    return WEIR_OK;
}

static weir_status read_norm(weir_model *m, int64_t layer, weir_role w, weir_role b, weir_normw *out, weir_err *err)
{
    WEIR_TRY(read_vector(m, weir_slot(m, layer, w), &out->w, err));
    return b ? read_vector(m, weir_slot(m, layer, b), &out->b, err) : WEIR_OK;
}

/* --- matrices */

/* Which rows of a stored tensor (columns where k-major) are the outputs of one matrix. */
typedef struct part {
    int64_t n, first;
    int64_t *row; /* stored row of output i, relative to first; NULL: i */
} part;

int64_t weir_layout_row(const weir_spec *s, const weir_layout *l, weir_qkv_which w, int64_t i)
{
    const int64_t d = s->D, head = i / d;
    int64_t at = i % d, first = 0;
    if (l->permuted_qk && w != WEIR_QKV_V)
        at = at % (d / 2) * 2 + at / (d / 2);
    if (l->qkv == WEIR_QKV_PER_HEAD)
        return (3 * head + (int64_t)w) * d + at;
    if (l->qkv == WEIR_QKV_BLOCKS)
        first = w == WEIR_QKV_Q ? 0 : w == WEIR_QKV_K ? s->H * d : (s->H + s->K) * d;
    return first + head * d + at;
}

int64_t weir_qkv_row(const weir_model *m, weir_qkv_which w, int64_t i)
{
    return weir_layout_row(&m->spec, m->layout, w, i);
}

weir_role weir_qkv_role(const weir_model *m, weir_qkv_which w, bool bias)
{
    static const weir_role separate[3][2] = {
        {WEIR_ROLE_Q_W, WEIR_ROLE_Q_B}, {WEIR_ROLE_K_W, WEIR_ROLE_K_B}, {WEIR_ROLE_V_W, WEIR_ROLE_V_B}};
    static const weir_role fused[2] = {WEIR_ROLE_QKV_W, WEIR_ROLE_QKV_B};
    return m->layout->qkv == WEIR_QKV_SEPARATE ? separate[w][bias] : fused[bias];
}

static weir_status qkv_part(const weir_model *m, weir_qkv_which w, part *p, weir_err *err)
{
    const weir_layout *l = m->layout;
    const int64_t n = (w == WEIR_QKV_Q ? m->spec.H : m->spec.K) * m->spec.D;
    const bool permuted = l->permuted_qk && w != WEIR_QKV_V;
    *p = (part){.n = n, .first = weir_qkv_row(m, w, 0)};
    if (!permuted && l->qkv != WEIR_QKV_PER_HEAD)
        return WEIR_OK;
    p->row = weir_calloc((size_t)n, sizeof *p->row);
    if (!p->row)
        return weir_nomem(err, "a map of rows");
    for (int64_t i = 0; i < n; i++)
        p->row[i] = weir_qkv_row(m, w, i) - p->first;
    return WEIR_OK;
}

static weir_status read_bias(weir_model *m, const weir_tensor *t, const part *p, const float **out, weir_err *err)
{
    *out = NULL;
    if (!t)
        return WEIR_OK;
    float *whole = weir_calloc((size_t)t->shape[0], sizeof *whole), *v = new_vector(m, p->n);
    if (whole && v) {
        weir_vector_read(t, whole, t->shape[0]);
        for (int64_t i = 0; i < p->n; i++)
            v[i] = whole[p->first + (p->row ? p->row[i] : i)];
        *out = v;
    }
    weir_free(whole);
    return *out ? WEIR_OK : weir_nomem(err, "a norm or bias");
}

/* in: width of the matrix's input; turns: a block's matrix, stored [in, out] in a k-major layout. */
static weir_status pack(weir_model *m, const weir_tensor *t, int64_t in, bool turns, const part *p,
                        const weir_panels **out, weir_err *err)
{
    weir_panels *panels;
    weir_wview view = {.t = t,
                       .n = p->n,
                       .k = in,
                       .k_major = turns && m->layout->k_major,
                       .stride = t->shape[1],
                       .first = p->first,
                       .row = p->row,
                       .pool = m->made.pool,
                       .mapped = true};
    weir_status s = weir_panels_new(&panels, &view, m->threads, err);
    if (s != WEIR_OK) {
        weir_err_where(err, t->file, t->name, t->offset);
        return s;
    }
    atomic_fetch_add(&m->panel_bytes, weir_panels_bytes(panels));
    *out = panels;
    return WEIR_OK;
}

static weir_status read_linear(weir_model *m, int64_t layer, weir_role w, weir_role b, int64_t in, const part *p,
                               weir_linear *out, weir_err *err)
{
    const weir_tensor *t = weir_slot(m, layer, w);
    if (!t)
        return WEIR_OK;
    if (!out->bias)
        WEIR_TRY(read_bias(m, weir_slot(m, layer, b), p, &out->bias, err));
    return pack(m, t, in, true, p, &out->w, err);
}

static weir_status read_qkv(weir_model *m, int64_t layer, weir_qkv_which w, weir_linear *out, weir_err *err)
{
    part p;
    weir_status s = qkv_part(m, w, &p, err);
    if (s == WEIR_OK)
        s = read_linear(m, layer, weir_qkv_role(m, w, false), weir_qkv_role(m, w, true), m->spec.C, &p, out, err);
    weir_free(p.row);
    return s;
}

weir_status weir_weights_norms(weir_model *m, int64_t l, weir_layer *y, weir_err *err)
{
    WEIR_TRY(read_norm(m, l, WEIR_ROLE_LN1_W, WEIR_ROLE_LN1_B, &y->ln1, err));
    WEIR_TRY(read_norm(m, l, WEIR_ROLE_LN1_POST_W, WEIR_ROLE_END, &y->ln1_post, err));
    WEIR_TRY(read_norm(m, l, WEIR_ROLE_LN2_W, WEIR_ROLE_LN2_B, &y->ln2, err));
    WEIR_TRY(read_norm(m, l, WEIR_ROLE_Q_NORM_W, WEIR_ROLE_END, &y->q_norm, err));
    WEIR_TRY(read_norm(m, l, WEIR_ROLE_K_NORM_W, WEIR_ROLE_END, &y->k_norm, err));
    return read_norm(m, l, WEIR_ROLE_LN2_POST_W, WEIR_ROLE_END, &y->ln2_post, err);
}

weir_status weir_weights_final_norm(weir_model *m, weir_normw *out, weir_err *err)
{
    return read_norm(m, -1, WEIR_ROLE_LNF_W, WEIR_ROLE_LNF_B, out, err);
}

weir_status weir_weights_pack_layer(weir_model *m, int64_t l, weir_layer *y, weir_err *err)
{
    const weir_spec *s = &m->spec;
    const part whole_c = {.n = s->C}, whole_f = {.n = s->F};
    WEIR_TRY(read_qkv(m, l, WEIR_QKV_Q, &y->q, err));
    WEIR_TRY(read_qkv(m, l, WEIR_QKV_K, &y->k, err));
    WEIR_TRY(read_qkv(m, l, WEIR_QKV_V, &y->v, err));
    WEIR_TRY(read_linear(m, l, WEIR_ROLE_O_W, WEIR_ROLE_O_B, s->H * s->D, &whole_c, &y->o, err));
    WEIR_TRY(read_linear(m, l, WEIR_ROLE_PRE_W, WEIR_ROLE_PRE_B, s->C, &whole_f, &y->pre, err));
    WEIR_TRY(read_linear(m, l, WEIR_ROLE_UP_W, WEIR_ROLE_UP_B, s->C, &whole_f, &y->up, err));
    return read_linear(m, l, WEIR_ROLE_DOWN_W, WEIR_ROLE_DOWN_B, s->F, &whole_c, &y->down, err);
}

static const weir_tensor *head_tensor(const weir_model *m)
{
    return weir_slot(m, -1, m->tied ? WEIR_ROLE_EMBED : WEIR_ROLE_HEAD);
}

weir_status weir_weights_pack_head(weir_model *m, weir_head *h, weir_err *err)
{
    const part rows = {.n = h->n, .first = h->first};
    return pack(m, head_tensor(m), m->spec.C, false, &rows, &h->w, err);
}

/* --- and released */

static void release_panels(weir_model *m, const weir_panels **w)
{
    if (*w)
        atomic_fetch_sub(&m->panel_bytes, weir_panels_bytes(*w));
    weir_panels_free((weir_panels *)*w);
    *w = NULL;
}

/* A block type has no panels: what it has in memory are pages of the map. */
static void drop_stored(const weir_tensor *t, int64_t first, int64_t n)
{
    if (!t || weir_dtype_block(t->dtype) == 1)
        return;
    const int64_t row = (int64_t)t->bytes / t->shape[0];
    weir_map_drop((const char *)t->data + first * row, (size_t)(n * row));
}

void weir_weights_release_layer(weir_model *m, int64_t l, weir_layer *y)
{
    static const weir_role matrix[] = {WEIR_ROLE_QKV_W, WEIR_ROLE_Q_W,   WEIR_ROLE_K_W,  WEIR_ROLE_V_W,
                                       WEIR_ROLE_O_W,   WEIR_ROLE_PRE_W, WEIR_ROLE_UP_W, WEIR_ROLE_DOWN_W};
    weir_linear *all[] = {&y->down, &y->up, &y->pre, &y->o, &y->v, &y->k, &y->q};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        release_panels(m, &all[i]->w);
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++) {
        const weir_tensor *t = weir_slot(m, l, matrix[i]);
        if (t)
            drop_stored(t, 0, t->shape[0]);
    }
}

void weir_weights_release_head(weir_model *m, weir_head *h)
{
    release_panels(m, &h->w);
    drop_stored(head_tensor(m), h->first, h->n);
}

/* --- how much of the memory that takes, known before it is done */

/* Block types stay where they are and count as they are stored; the others are copied, outputs rounded up to whole
 * panels. */
static int64_t matrix_bytes(const weir_tensor *t, int64_t n, int64_t k)
{
    if (!t)
        return 0;
    if (weir_dtype_block(t->dtype) == 1)
        n = (n + WEIR_PANEL - 1) / WEIR_PANEL * WEIR_PANEL;
    return n * (k / weir_dtype_block(t->dtype)) * weir_dtype_bytes(t->dtype);
}

int64_t weir_weights_layer_bytes(const weir_model *m, int64_t l)
{
    const weir_spec *s = &m->spec;
    const bool fused = m->layout->qkv != WEIR_QKV_SEPARATE;
    const weir_tensor *q = weir_slot(m, l, fused ? WEIR_ROLE_QKV_W : WEIR_ROLE_Q_W);
    const weir_tensor *k = weir_slot(m, l, fused ? WEIR_ROLE_QKV_W : WEIR_ROLE_K_W);
    const weir_tensor *v = weir_slot(m, l, fused ? WEIR_ROLE_QKV_W : WEIR_ROLE_V_W);
    return matrix_bytes(q, s->H * s->D, s->C) + matrix_bytes(k, s->K * s->D, s->C) +
           matrix_bytes(v, s->K * s->D, s->C) + matrix_bytes(weir_slot(m, l, WEIR_ROLE_O_W), s->C, s->H * s->D) +
           matrix_bytes(weir_slot(m, l, WEIR_ROLE_PRE_W), s->F, s->C) +
           matrix_bytes(weir_slot(m, l, WEIR_ROLE_UP_W), s->F, s->C) +
           matrix_bytes(weir_slot(m, l, WEIR_ROLE_DOWN_W), s->C, s->F);
}

int64_t weir_weights_head_bytes(const weir_model *m, int64_t rows)
{
    return matrix_bytes(head_tensor(m), rows, m->spec.C);
}

/* --- rows of tables */

static void read_row(const weir_tensor *t, int64_t row, int64_t c, float *dst)
{
    int64_t bytes = c / weir_dtype_block(t->dtype) * weir_dtype_bytes(t->dtype);
    weir_dequantize(t->dtype, (const char *)t->data + row * bytes, c, dst);
}

void weir_model_embed_row(const weir_model *m, int32_t id, float *dst)
{
    read_row(weir_slot(m, -1, WEIR_ROLE_EMBED), id, m->spec.C, dst);
}

void weir_model_head_row(const weir_model *m, int32_t id, float *dst)
{
    read_row(head_tensor(m), id, m->spec.C, dst);
}

int64_t weir_model_embed_rows(const weir_model *m)
{
    return weir_slot(m, -1, WEIR_ROLE_EMBED)->shape[0];
}

void weir_model_pos_row(const weir_model *m, int64_t pos, float *dst)
{
    read_row(weir_slot(m, -1, WEIR_ROLE_POS), pos, m->spec.C, dst);
}

void weir_model_tables_drop(const weir_model *m)
{
    static const weir_role table[] = {WEIR_ROLE_EMBED, WEIR_ROLE_POS};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const weir_tensor *t = weir_slot(m, -1, table[i]);
        if (t)
            weir_map_drop(t->data, t->bytes);
    }
}

/* Weights on demand: norms and biases as fp32, matrices as packed panels. */
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

typedef enum which { Q, K, V } which;

/* Where the rows of q, k or v lie, as the layout has it, in the order of Hugging Face's heads. */
static weir_status qkv_part(const weir_model *m, which w, part *p, weir_err *err)
{
    const weir_spec *s = &m->spec;
    const weir_layout *l = m->layout;
    const int64_t d = s->D, n = (w == Q ? s->H : s->K) * d;
    const bool permuted = l->permuted_qk && w != V, per_head = l->qkv == WEIR_QKV_PER_HEAD;
    *p = (part){.n = n};
    if (l->qkv == WEIR_QKV_BLOCKS)
        p->first = w == Q ? 0 : w == K ? s->H * d : (s->H + s->K) * d;
    if (!permuted && !per_head)
        return WEIR_OK;
    p->row = weir_calloc((size_t)n, sizeof *p->row);
    if (!p->row)
        return weir_nomem(err, "a map of rows");
    for (int64_t i = 0; i < n; i++) {
        int64_t head = i / d, at = i % d;
        if (permuted)
            at = at % (d / 2) * 2 + at / (d / 2);
        p->row[i] = per_head ? (3 * head + (int64_t)w) * d + at : head * d + at;
    }
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
                       .pool = m->made.pool};
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
    WEIR_TRY(read_bias(m, weir_slot(m, layer, b), p, &out->bias, err));
    return pack(m, t, in, true, p, &out->w, err);
}

static weir_status read_qkv(weir_model *m, int64_t layer, which w, weir_linear *out, weir_err *err)
{
    static const weir_role SEPARATE[3][2] = {
        {WEIR_ROLE_Q_W, WEIR_ROLE_Q_B}, {WEIR_ROLE_K_W, WEIR_ROLE_K_B}, {WEIR_ROLE_V_W, WEIR_ROLE_V_B}};
    static const weir_role FUSED[2] = {WEIR_ROLE_QKV_W, WEIR_ROLE_QKV_B};
    const weir_role *r = m->layout->qkv == WEIR_QKV_SEPARATE ? SEPARATE[w] : FUSED;
    part p;
    weir_status s = qkv_part(m, w, &p, err);
    if (s == WEIR_OK)
        s = read_linear(m, layer, r[0], r[1], m->spec.C, &p, out, err);
    weir_free(p.row);
    return s;
}

static void free_linear(weir_linear *l)
{
    weir_panels_free((weir_panels *)l->w);
    *l = (weir_linear){0};
}

static void free_layer(weir_model *m, weir_layer *y)
{
    weir_linear *all[] = {&y->q, &y->k, &y->v, &y->o, &y->pre, &y->up, &y->down};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->w)
            atomic_fetch_sub(&m->panel_bytes, weir_panels_bytes(all[i]->w));
        free_linear(all[i]);
    }
}

static weir_status read_layer(weir_model *m, int64_t l, weir_layer *y, weir_err *err)
{
    const weir_spec *s = &m->spec;
    const part whole_c = {.n = s->C}, whole_f = {.n = s->F};
    WEIR_TRY(read_norm(m, l, WEIR_ROLE_LN1_W, WEIR_ROLE_LN1_B, &y->ln1, err));
    WEIR_TRY(read_norm(m, l, WEIR_ROLE_LN1_POST_W, WEIR_ROLE_END, &y->ln1_post, err));
    WEIR_TRY(read_norm(m, l, WEIR_ROLE_LN2_W, WEIR_ROLE_LN2_B, &y->ln2, err));
    WEIR_TRY(read_norm(m, l, WEIR_ROLE_LN2_POST_W, WEIR_ROLE_END, &y->ln2_post, err));
    WEIR_TRY(read_qkv(m, l, Q, &y->q, err));
    WEIR_TRY(read_qkv(m, l, K, &y->k, err));
    WEIR_TRY(read_qkv(m, l, V, &y->v, err));
    WEIR_TRY(read_linear(m, l, WEIR_ROLE_O_W, WEIR_ROLE_O_B, s->H * s->D, &whole_c, &y->o, err));
    WEIR_TRY(read_linear(m, l, WEIR_ROLE_PRE_W, WEIR_ROLE_PRE_B, s->C, &whole_f, &y->pre, err));
    WEIR_TRY(read_linear(m, l, WEIR_ROLE_UP_W, WEIR_ROLE_UP_B, s->C, &whole_f, &y->up, err));
    return read_linear(m, l, WEIR_ROLE_DOWN_W, WEIR_ROLE_DOWN_B, s->F, &whole_c, &y->down, err);
}

/* --- how much packing takes, known before it is done */

/* Block types stay where they are; the others are copied, outputs rounded up to whole panels. */
static int64_t panel_bytes(const weir_tensor *t, int64_t n, int64_t k)
{
    if (!t || weir_dtype_block(t->dtype) != 1)
        return 0;
    return (n + WEIR_PANEL - 1) / WEIR_PANEL * WEIR_PANEL * k * weir_dtype_bytes(t->dtype);
}

static int64_t layer_panel_bytes(const weir_model *m, int64_t l)
{
    const weir_spec *s = &m->spec;
    const bool fused = m->layout->qkv != WEIR_QKV_SEPARATE;
    const weir_tensor *q = weir_slot(m, l, fused ? WEIR_ROLE_QKV_W : WEIR_ROLE_Q_W);
    const weir_tensor *k = weir_slot(m, l, fused ? WEIR_ROLE_QKV_W : WEIR_ROLE_K_W);
    const weir_tensor *v = weir_slot(m, l, fused ? WEIR_ROLE_QKV_W : WEIR_ROLE_V_W);
    return panel_bytes(q, s->H * s->D, s->C) + panel_bytes(k, s->K * s->D, s->C) + panel_bytes(v, s->K * s->D, s->C) +
           panel_bytes(weir_slot(m, l, WEIR_ROLE_O_W), s->C, s->H * s->D) +
           panel_bytes(weir_slot(m, l, WEIR_ROLE_PRE_W), s->F, s->C) +
           panel_bytes(weir_slot(m, l, WEIR_ROLE_UP_W), s->F, s->C) +
           panel_bytes(weir_slot(m, l, WEIR_ROLE_DOWN_W), s->C, s->F);
}

int64_t weir_model_panel_bytes(const weir_model *m, int64_t layers, bool head)
{
    int64_t bytes = 0;
    for (int64_t l = 0; l < layers; l++)
        bytes += layer_panel_bytes(m, l);
    if (head)
        bytes += panel_bytes(weir_slot(m, -1, m->tied ? WEIR_ROLE_EMBED : WEIR_ROLE_HEAD), m->spec.V, m->spec.C);
    return bytes;
}

/* --- spec.h: made once, under the lock. The model is const to its users; what is made on demand is not. */

static weir_model *open_for_making(const weir_model *m)
{
    return (weir_model *)m;
}

weir_status weir_model_layer(const weir_model *cm, int64_t layer, const weir_layer **out, weir_err *err)
{
    weir_model *m = open_for_making(cm);
    if (layer < 0 || layer >= m->spec.L)
        return weir_fail(err, WEIR_E_ARG, "layer %lld of a model of %lld layers (counted from 0)", (long long)layer,
                         (long long)m->spec.L);
    *out = &m->made.layer[layer];
    if (atomic_load_explicit(&m->made.layer_ready[layer], memory_order_acquire))
        return WEIR_OK;
    weir_status s = WEIR_OK;
    pthread_mutex_lock(&m->lock);
    if (!atomic_load_explicit(&m->made.layer_ready[layer], memory_order_relaxed)) {
        weir_layer *y = &m->made.layer[layer];
        *y = (weir_layer){.window = m->window[layer]};
        s = read_layer(m, layer, y, err);
        if (s == WEIR_OK)
            atomic_store_explicit(&m->made.layer_ready[layer], true, memory_order_release);
        else
            free_layer(m, y);
    }
    pthread_mutex_unlock(&m->lock);
    return s;
}

weir_status weir_model_final(const weir_model *cm, weir_normw *norm, weir_err *err)
{
    weir_model *m = open_for_making(cm);
    weir_status s = WEIR_OK;
    pthread_mutex_lock(&m->lock);
    if (!m->made.norm_ready) {
        s = read_norm(m, -1, WEIR_ROLE_LNF_W, WEIR_ROLE_LNF_B, &m->made.norm, err);
        m->made.norm_ready = s == WEIR_OK;
    }
    *norm = m->made.norm;
    pthread_mutex_unlock(&m->lock);
    return s;
}

weir_status weir_model_head(const weir_model *cm, weir_linear *head, weir_err *err)
{
    weir_model *m = open_for_making(cm);
    weir_status s = WEIR_OK;
    pthread_mutex_lock(&m->lock);
    if (!m->made.head_ready) {
        const part whole = {.n = m->spec.V};
        const weir_tensor *t = weir_slot(m, -1, m->tied ? WEIR_ROLE_EMBED : WEIR_ROLE_HEAD);
        s = pack(m, t, m->spec.C, false, &whole, &m->made.head.w, err);
        m->made.head_ready = s == WEIR_OK;
    }
    *head = m->made.head;
    pthread_mutex_unlock(&m->lock);
    return s;
}

void *weir_model_keep(const weir_model *cm, void *(*make)(const weir_model *m), void (*destroy)(void *))
{
    weir_model *m = open_for_making(cm);
    pthread_mutex_lock(&m->lock);
    if (!m->made.kept) {
        m->made.kept = make(m);
        m->made.kept_destroy = destroy;
    }
    void *kept = m->made.kept;
    pthread_mutex_unlock(&m->lock);
    return kept;
}

void weir_weights_free(weir_model *m)
{
    for (int64_t l = 0; m->made.layer && l < m->spec.L; l++)
        free_layer(m, &m->made.layer[l]);
    free_linear(&m->made.head);
    weir_panel_pool_free(m->made.pool);
    if (m->made.kept)
        m->made.kept_destroy(m->made.kept);
    weir_arena_free(&m->made.vectors);
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

int64_t weir_model_embed_rows(const weir_model *m)
{
    return weir_slot(m, -1, WEIR_ROLE_EMBED)->shape[0];
}

void weir_model_pos_row(const weir_model *m, int64_t pos, float *dst)
{
    read_row(weir_slot(m, -1, WEIR_ROLE_POS), pos, m->spec.C, dst);
}

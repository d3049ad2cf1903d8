/* Matrices turned round: from what they give back to what they read, for gradients. */
#include <string.h>

#include "impl.h"

/* Outputs of a matrix [n] and where they lie in its tensor. */
typedef struct source {
    const weir_tensor *t;
    int64_t n;
    const weir_model *m; /* row_of: q, k and v are fused or permuted in some layouts */
    weir_matrix matrix;  /* WEIR_MATRIX_COUNT: successive rows from `first` */
    int64_t first;
    weir_panel_pool *pool;
} source;

static int64_t row_of(const source *s, int64_t i)
{
    static const weir_qkv_which qkv[] = {WEIR_QKV_Q, WEIR_QKV_K, WEIR_QKV_V};
    return s->matrix <= WEIR_MATRIX_V ? weir_qkv_row(s->m, qkv[s->matrix], i) : s->first + i;
}

static bool successive(const source *s)
{
    for (int64_t i = 1; s->matrix <= WEIR_MATRIX_V && i < s->n; i++)
        if (row_of(s, i) != row_of(s, 0) + i)
            return false;
    return true;
}

/* Outputs are columns of the tensor [in, all outputs]. Layouts that store them so permute nothing. */
static weir_status pack_columns(const source *s, weir_panels **out, weir_err *err)
{
    const int64_t at = row_of(s, 0) * weir_dtype_bytes(s->t->dtype);
    weir_tensor part = *s->t;
    part.data = (const char *)s->t->data + at;
    part.bytes = s->t->bytes - (size_t)at;
    const weir_wview view = {.t = &part, .n = s->t->shape[0], .k = s->n, .stride = s->t->shape[1], .pool = s->pool};
    const weir_status st = weir_panels_new(out, &view, s->m->threads, err);
    weir_map_drop(s->t->data, s->t->bytes);
    return st;
}

/* Outputs are successive rows of the tensor [outputs, in], from `first` on: turned, that is k-major. */
static weir_status pack_rows(const source *s, const weir_tensor *t, int64_t first, bool mapped, weir_panels **out,
                             weir_err *err)
{
    const int64_t in = t->shape[1], row = in * weir_dtype_bytes(t->dtype);
    weir_tensor part = *t;
    part.data = (const char *)t->data + first * row;
    part.bytes = (size_t)(s->n * row);
    part.shape[0] = s->n;
    const weir_wview view = {
        .t = &part, .n = in, .k = s->n, .k_major = true, .stride = in, .pool = s->pool, .mapped = mapped};
    return weir_panels_new(out, &view, s->m->threads, err);
}

/* Rows from anywhere are gathered first. */
static weir_status pack_gathered(const source *s, weir_panels **out, weir_err *err)
{
    const int64_t in = s->t->shape[1], row = in * weir_dtype_bytes(s->t->dtype);
    weir_tensor rows = {.name = s->t->name, .dtype = s->t->dtype, .rank = 2, .shape = {s->n, in, 1, 1}};
    int64_t bytes;
    char *p = weir_mul64(s->n, row, &bytes) ? weir_alloc_aligned((size_t)bytes) : NULL;
    if (!p)
        return weir_nomem(err, "a matrix turned round");
    for (int64_t i = 0; i < s->n; i++)
        memcpy(p + i * row, (const char *)s->t->data + row_of(s, i) * row, (size_t)row);
    rows.data = p;
    const weir_status st = pack_rows(s, &rows, 0, false, out, err);
    weir_free_aligned(p);
    return st;
}

/* Blocks lie along the input, so that a row of them is k's 48 weights of every panel: they stay where they are. */
static weir_status keep_blocks(const source *s, weir_panels **out, weir_err *err)
{
    const int64_t in = s->t->shape[1], first = row_of(s, 0);
    int64_t *row = NULL;
    if (!successive(s)) {
        row = weir_calloc((size_t)s->n, sizeof *row);
        if (!row)
            return weir_nomem(err, "a matrix turned round");
        for (int64_t i = 0; i < s->n; i++)
            row[i] = row_of(s, i) - first;
    }
    const weir_wview view = {
        .t = s->t, .n = in, .k = s->n, .k_major = true, .stride = in, .first = first, .row = row, .mapped = true};
    const weir_status st = weir_panels_new(out, &view, s->m->threads, err);
    weir_free(row);
    return st;
}

static weir_status pack(const source *s, bool columns, weir_panels **out, weir_err *err)
{
    weir_status st;
    if (columns)
        st = pack_columns(s, out, err);
    else if (weir_dtype_block(s->t->dtype) > 1)
        st = keep_blocks(s, out, err);
    else if (successive(s))
        st = pack_rows(s, s->t, row_of(s, 0), true, out, err);
    else
        st = pack_gathered(s, out, err);
    if (st != WEIR_OK)
        weir_err_where(err, s->t->file, s->t->name, s->t->offset);
    return st;
}

/* Memory of the panels; of block types the stored rows, which are in memory while they are used. */
static int64_t bytes_of(weir_dtype type, int64_t in, int64_t n)
{
    const int64_t block = weir_dtype_block(type);
    const int64_t width = block > 1 ? in / block : (in + WEIR_PANEL - 1) / WEIR_PANEL * WEIR_PANEL;
    return width * n * weir_dtype_bytes(type);
}

/* --- the unembedding */

static source head_source(const weir_model *m, int64_t part)
{
    const weir_head *h = &m->made.head[part];
    return (source){.t = weir_slot(m, -1, m->tied ? WEIR_ROLE_EMBED : WEIR_ROLE_HEAD),
                    .n = h->n,
                    .m = m,
                    .matrix = WEIR_MATRIX_COUNT,
                    .first = h->first};
}

weir_status weir_model_head_turned(const weir_model *m, int64_t part, weir_turned *out, weir_err *err)
{
    const source s = head_source(m, part);
    *out = (weir_turned){.first = s.first, .n = s.n};
    return pack(&s, false, &out->w, err);
}

int64_t weir_model_head_turned_bytes(const weir_model *m, int64_t part)
{
    const source s = head_source(m, part);
    return bytes_of(s.t->dtype, m->spec.C, s.n);
}

/* --- matrices of a layer */

static source matrix_source(const weir_model *m, int64_t layer, weir_matrix which)
{
    static const weir_role role[] = {[WEIR_MATRIX_O] = WEIR_ROLE_O_W,
                                     [WEIR_MATRIX_PRE] = WEIR_ROLE_PRE_W,
                                     [WEIR_MATRIX_UP] = WEIR_ROLE_UP_W,
                                     [WEIR_MATRIX_DOWN] = WEIR_ROLE_DOWN_W};
    static const weir_qkv_which qkv[] = {WEIR_QKV_Q, WEIR_QKV_K, WEIR_QKV_V};
    source s = {.m = m, .matrix = which, .pool = m->made.pool};
    int64_t in;
    weir_matrix_shape(m, which, &in, &s.n);
    s.t = weir_slot(m, layer, which <= WEIR_MATRIX_V ? weir_qkv_role(m, qkv[which], false) : role[which]);
    return s;
}

weir_status weir_model_layer_turned(const weir_model *m, int64_t layer, weir_turned_layer *out, weir_err *err)
{
    *out = (weir_turned_layer){0};
    for (int w = 0; w < WEIR_MATRIX_COUNT; w++) {
        const source s = matrix_source(m, layer, (weir_matrix)w);
        const weir_status st = s.t ? pack(&s, m->layout->k_major, &out->w[w], err) : WEIR_OK;
        if (st != WEIR_OK) {
            weir_turned_layer_free(out);
            return st;
        }
    }
    return WEIR_OK;
}

void weir_turned_layer_free(weir_turned_layer *t)
{
    for (int w = 0; w < WEIR_MATRIX_COUNT; w++) {
        weir_panels_free(t->w[w]);
        t->w[w] = NULL;
    }
}

int64_t weir_model_turned_bytes(const weir_model *m, int64_t layer)
{
    int64_t sum = 0;
    for (int w = 0; w < WEIR_MATRIX_COUNT; w++) {
        const source s = matrix_source(m, layer, (weir_matrix)w);
        int64_t in, n;
        weir_matrix_shape(m, (weir_matrix)w, &in, &n);
        if (s.t)
            sum += bytes_of(s.t->dtype, in, n);
    }
    return sum;
}

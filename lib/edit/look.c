/* A look at an edit's directory without the model that it is for: which modules it has, how large they are. */
#include <math.h>
#include <string.h>

#include "../base/strmap.h"
#include "../io/filemap.h"
#include "../io/safetensors.h"
#include "config.h"

struct weir_edit_look {
    weir_arena arena;
    weir_edit_about about;
    weir_edit_module *module; /* [n] */
    int64_t n;
};

typedef struct looking {
    weir_edit_look *look;
    weir_filemap map;
    weir_adapter config;
    const weir_tensor **a, **b; /* [n] of each module */
} looking;

static weir_status at_tensor(weir_status code, const weir_tensor *t, weir_err *err)
{
    weir_err_where(err, t->file, t->name, t->offset);
    return code;
}

/* --- modules */

static weir_status sort_tensors(looking *s, const weir_tensor *t, int64_t n, weir_strmap *seen, weir_err *err)
{
    weir_edit_look *l = s->look;
    for (int64_t i = 0; i < n; i++) {
        const char *name;
        char letter;
        int length;
        bool added;
        int64_t at;
        WEIR_TRY(weir_adapter_part(&t[i], &letter, &name, &length, err));
        if (weir_strmap_add(seen, (weir_str){name, (size_t)length}, l->n, &added, &at) != WEIR_OK)
            return weir_nomem(err, "an edit");
        if (added) {
            at = l->n++;
            l->module[at].name = weir_arena_strndup(&l->arena, name, (size_t)length);
            if (!l->module[at].name)
                return weir_nomem(err, "an edit");
        }
        const weir_tensor **to = letter == 'A' ? &s->a[at] : &s->b[at];
        if (*to) {
            weir_fail(err, WEIR_E_FORMAT, "the module has this tensor twice, also as %.150s", (*to)->name);
            return at_tensor(WEIR_E_FORMAT, &t[i], err);
        }
        *to = &t[i];
    }
    return WEIR_OK;
}

static weir_status check_pair(const weir_tensor *a, const weir_tensor *b, weir_err *err)
{
    const weir_tensor *there = a ? a : b;
    if (!a || !b)
        weir_fail(err, WEIR_E_FORMAT, "the module's lora_%c is missing", a ? 'B' : 'A');
    else if (a->rank != 2 || b->rank != 2 || a->shape[0] < 1 || a->shape[0] != b->shape[1] || a->shape[1] < 1 ||
             b->shape[0] < 1)
        weir_fail(err, WEIR_E_SHAPE, "A and B of the module do not fit together");
    else if (a->dtype == WEIR_OTHER || b->dtype == WEIR_OTHER)
        weir_fail(err, WEIR_E_UNSUPPORTED, "the type of A or B is not F32, F16 or BF16");
    else
        return WEIR_OK;
    return at_tensor(err ? err->code : WEIR_E_FORMAT, there, err);
}

/* g [r,r] += x x^T over the columns of x [r,n], in double. rows: x's element [i,j] lies at i * by + j * step. */
static void gram(double *g, const float *x, int64_t r, int64_t n, int64_t by, int64_t step)
{
    for (int64_t i = 0; i < r; i++)
        for (int64_t k = i; k < r; k++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += (double)x[i * by + j * step] * x[k * by + j * step];
            g[i * r + k] = g[k * r + i] = sum;
        }
}

/* |B A|^2 is the sum of the products of (A A^T) and (B^T B), element by element. False: out of memory. */
static bool squares_by_rank(const weir_edit_module *m, const float *a, const float *b, weir_arena *room, double *sum)
{
    const int64_t r = m->r;
    double *g[2] = {weir_arena_alloc(room, (size_t)r, (size_t)r * sizeof(double)),
                    weir_arena_alloc(room, (size_t)r, (size_t)r * sizeof(double))};
    if (!g[0] || !g[1])
        return false;
    gram(g[0], a, r, m->in, m->in, 1);
    gram(g[1], b, r, m->out, 1, r);
    for (int64_t i = 0; i < r * r; i++)
        *sum += g[0][i] * g[1][i];
    return true;
}

/* The same, row by row of B A: the way for a rank that is larger than the matrix. */
static bool squares_by_row(const weir_edit_module *m, const float *a, const float *b, weir_arena *room, double *sum)
{
    double *row = weir_arena_alloc(room, (size_t)m->in, sizeof *row);
    for (int64_t o = 0; row && o < m->out; o++) {
        memset(row, 0, (size_t)m->in * sizeof *row);
        for (int64_t k = 0; k < m->r; k++)
            for (int64_t j = 0; j < m->in; j++)
                row[j] += (double)b[o * m->r + k] * a[k * m->in + j];
        for (int64_t j = 0; j < m->in; j++)
            *sum += row[j] * row[j];
    }
    return row != NULL;
}

static weir_status measure(weir_edit_module *m, const weir_tensor *a, const weir_tensor *b, double scale, weir_err *err)
{
    const int64_t r = m->r;
    double sum = 0;
    weir_arena room = {0};
    float *wide[2] = {weir_arena_alloc(&room, (size_t)(r * m->in), sizeof(float)),
                      weir_arena_alloc(&room, (size_t)(r * m->out), sizeof(float))};
    bool made = wide[0] && wide[1];
    if (made) {
        weir_dequantize(a->dtype, a->data, r * m->in, wide[0]);
        weir_dequantize(b->dtype, b->data, r * m->out, wide[1]);
        made = (r > m->in && r > m->out ? squares_by_row : squares_by_rank)(m, wide[0], wide[1], &room, &sum);
        m->norm = sqrt(sum > 0 || isnan(sum) ? sum : 0) * fabs(scale);
    }
    weir_arena_free(&room);
    return made ? WEIR_OK : weir_nomem(err, "an edit");
}

static weir_status look_at_tensors(looking *s, weir_arena *arena, weir_err *err)
{
    weir_edit_look *l = s->look;
    weir_tensor *tensor;
    int64_t n;
    weir_strmap seen = {0};
    WEIR_TRY(weir_safetensors_parse(&s->map, arena, &tensor, &n, err));
    l->module = weir_arena_alloc(&l->arena, (size_t)n + 1, sizeof *l->module);
    s->a = weir_arena_alloc(arena, (size_t)n + 1, sizeof *s->a);
    s->b = weir_arena_alloc(arena, (size_t)n + 1, sizeof *s->b);
    weir_status st = l->module && s->a && s->b ? WEIR_OK : weir_nomem(err, "an edit");
    if (st == WEIR_OK)
        st = sort_tensors(s, tensor, n, &seen, err);
    weir_strmap_free(&seen);
    for (int64_t i = 0; i < l->n && st == WEIR_OK; i++) {
        const weir_tensor *a = s->a[i], *b = s->b[i];
        weir_edit_module *m = &l->module[i];
        double scale;
        WEIR_TRY(check_pair(a, b, err));
        m->r = a->shape[0];
        m->in = a->shape[1];
        m->out = b->shape[0];
        WEIR_TRY(weir_adapter_scale(&s->config, m->name, m->r, &scale, err));
        st = measure(m, a, b, scale, err);
    }
    return st;
}

/* --- the directory */

static weir_status look_inside(looking *s, weir_arena *arena, char *const path[3], const char *dir, weir_err *err)
{
    weir_edit_look *l = s->look;
    weir_edit_json json;
    char hex[65];
    WEIR_TRY(weir_adapter_read(&s->config, &l->arena, path[0], err));
    WEIR_TRY(weir_edit_json_read(&json, &l->arena, path[2], err));
    WEIR_TRY(weir_filemap_open(&s->map, path[1], err));
    WEIR_TRY(look_at_tensors(s, arena, err));
    weir_sha256_bytes(s->map.data, s->map.size, hex);
    l->about = (weir_edit_about){.dir = weir_arena_strndup(&l->arena, dir, strlen(dir)),
                                 .base_model = s->config.base_model,
                                 .json = json.text,
                                 .method = json.method,
                                 .fingerprint = json.fingerprint,
                                 .sha256 = weir_arena_strndup(&l->arena, hex, strlen(hex))};
    return l->about.dir && l->about.sha256 ? WEIR_OK : weir_nomem(err, "an edit");
}

weir_status weir_edit_look_at(weir_edit_look **out, const char *dir, weir_err *err)
{
    static const char *const name[3] = {WEIR_EDIT_CONFIG, WEIR_EDIT_TENSORS, WEIR_EDIT_JSON};
    char *path[3];
    weir_arena arena = {0};
    weir_err local = {0};
    looking s = {.look = weir_calloc(1, sizeof *s.look)};
    err = err ? err : &local;
    bool made = s.look != NULL;
    *out = NULL;
    for (int i = 0; i < 3; i++)
        made = (path[i] = weir_path_join(dir, name[i])) && made;
    weir_status st = made ? look_inside(&s, &arena, path, dir, err) : weir_nomem(err, "an edit");
    for (int i = 0; i < 3; i++)
        weir_free(path[i]);
    weir_filemap_close(&s.map);
    weir_arena_free(&arena);
    if (st == WEIR_OK)
        *out = s.look;
    else
        weir_edit_look_free(s.look);
    return st;
}

void weir_edit_look_free(weir_edit_look *l)
{
    if (!l)
        return;
    weir_arena_free(&l->arena);
    weir_free(l);
}

const weir_edit_about *weir_edit_look_about(const weir_edit_look *l)
{
    return &l->about;
}

int64_t weir_edit_look_modules(const weir_edit_look *l, const weir_edit_module **module)
{
    *module = l->module;
    return l->n;
}

/* A tuned lens that was trained: its tensors, checked and packed, and their product with rows of the stream. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../base/parallel.h"
#include "../io/safetensors.h"
#include "../model/spec.h"
#include "tuned_config.h"

enum { TILE = 1024 }; /* rows of a product */

struct weir_tuned {
    weir_tuned_info info;
    const weir_kern *kern;
    int threads;
    weir_panels **a; /* [L] */
    float *b;        /* [L,C] or NULL */
    void *gemm;
    weir_arena arena; /* info's strings, and the pointers */
};

void weir_tuned_options_init(weir_tuned_options *o)
{
    *o = (weir_tuned_options){0};
}

/* --- the tensors */

/* Adds where it happened to an error, and hands its code on. */
static weir_status in_tensor(weir_status code, const weir_tensor *t, weir_err *err)
{
    weir_err_where(err, t->file, t->name, t->offset);
    return code;
}

static weir_status in_file(weir_status code, const char *path, weir_err *err)
{
    weir_err_where(err, path, NULL, -1);
    return code;
}

static weir_status check_shape(const weir_tensor *t, int rank, int64_t c, weir_err *err)
{
    char shape[100];
    size_t at = 0;
    if (t->rank == rank && t->shape[0] == c && (rank == 1 || t->shape[1] == c))
        return WEIR_OK;
    shape[0] = 0;
    for (int i = 0; i < t->rank; i++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, "%s%lld", i ? "," : "", (long long)t->shape[i]);
    if (rank == 1)
        weir_fail(err, WEIR_E_SHAPE, "its shape is [%s], not [%lld]", shape, (long long)c);
    else
        weir_fail(err, WEIR_E_SHAPE, "its shape is [%s], not [%lld,%lld]", shape, (long long)c, (long long)c);
    return in_tensor(WEIR_E_SHAPE, t, err);
}

static weir_status check_type(const weir_tensor *t, weir_err *err)
{
    if (t->dtype != WEIR_OTHER)
        return WEIR_OK;
    weir_fail(err, WEIR_E_UNSUPPORTED, "its type is not F32, F16 or BF16: convert it before it is saved (.float())");
    return in_tensor(WEIR_E_UNSUPPORTED, t, err);
}

/* One number of a damaged file would turn up as NaN in every token's logit. row: room for shape[rank - 1] floats. */
static weir_status check_finite(const weir_tensor *t, float *row, weir_err *err)
{
    const int64_t n = t->shape[t->rank - 1], rows = t->rank == 1 ? 1 : t->shape[0], size = weir_dtype_bytes(t->dtype);
    for (int64_t r = 0; r < rows; r++) {
        weir_dequantize(t->dtype, (const char *)t->data + r * n * size, n, row);
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(row[i])) {
                weir_fail(err, WEIR_E_FORMAT, "element %lld is not a finite number", (long long)(r * n + i));
                return in_tensor(WEIR_E_FORMAT, t, err);
            }
    }
    return WEIR_OK;
}

/* The translator that a name means: "3.weight" -> 3; -1: none. */
static int64_t translator_of(const char *name, bool *bias)
{
    char *end;
    if (*name < '0' || *name > '9' || (name[0] == '0' && name[1] != '.'))
        return -1;
    const long long i = strtoll(name, &end, 10);
    *bias = strcmp(end, ".bias") == 0;
    return *bias || strcmp(end, ".weight") == 0 ? (int64_t)i : -1;
}

/* Where each tensor of the file belongs. */
typedef struct table {
    const weir_tensor **a, **b; /* [L] */
} table;

static weir_status sort_tensors(table *to, const weir_tuned_info *info, const weir_tensor *t, int64_t n, weir_err *err)
{
    for (int64_t k = 0; k < n; k++) {
        bool bias = false;
        const int64_t i = translator_of(t[k].name, &bias);
        if (i < 0 || i >= info->L || (bias && !info->bias)) {
            weir_fail(err, WEIR_E_FORMAT, "the lens has no such tensor: %lld layers, %s bias", (long long)info->L,
                      info->bias ? "with" : "without");
            return in_tensor(WEIR_E_FORMAT, &t[k], err);
        }
        (bias ? to->b : to->a)[i] = &t[k];
    }
    return WEIR_OK;
}

static weir_status fail_missing(const char *file, int64_t i, const char *what, weir_err *err)
{
    return in_file(weir_fail(err, WEIR_E_FORMAT, "tensor %lld.%s is missing", (long long)i, what), file, err);
}

static weir_status pack_weight(weir_tuned *t, int64_t i, const weir_tensor *w, weir_err *err)
{
    const weir_wview view = {.t = w, .n = t->info.C, .k = t->info.C, .stride = t->info.C, .mapped = true};
    return weir_panels_new(&t->a[i], &view, t->threads, err);
}

static weir_status take(weir_tuned *t, const table *from, const char *file, float *row, weir_err *err)
{
    const int64_t c = t->info.C;
    for (int64_t i = 0; i < t->info.L; i++) {
        const weir_tensor *w = from->a[i], *b = from->b[i];
        if (!w || (t->info.bias && !b))
            return fail_missing(file, i, w ? "bias" : "weight", err);
        WEIR_TRY(check_shape(w, 2, c, err));
        WEIR_TRY(check_type(w, err));
        WEIR_TRY(check_finite(w, row, err));
        WEIR_TRY(pack_weight(t, i, w, err));
        if (!t->info.bias)
            continue;
        WEIR_TRY(check_shape(b, 1, c, err));
        WEIR_TRY(check_type(b, err));
        WEIR_TRY(check_finite(b, t->b + i * c, err));
    }
    return WEIR_OK;
}

static weir_status read_map(weir_tuned *t, const weir_filemap *map, weir_arena *arena, weir_err *err)
{
    const weir_tuned_info *info = &t->info;
    weir_tensor *tensor;
    int64_t n;
    WEIR_TRY(weir_safetensors_parse(map, arena, &tensor, &n, err));
    table to = {.a = weir_arena_alloc(arena, (size_t)info->L, sizeof *to.a),
                .b = weir_arena_alloc(arena, (size_t)info->L, sizeof *to.b)};
    float *row = weir_arena_alloc(arena, (size_t)info->C, sizeof *row);
    if (!to.a || !to.b || !row)
        return weir_nomem(err, "the tensors of a tuned lens");
    WEIR_TRY(sort_tensors(&to, info, tensor, n, err));
    return take(t, &to, map->path, row, err);
}

/* Says how to make the file where tuned-lens' own lies instead. */
static weir_status fail_absent(const char *dir, const char *path, weir_err *err)
{
    char *pt = weir_path_join(dir, "params.pt");
    if (pt && weir_path_is_file(pt))
        weir_fail(err, WEIR_E_IO,
                  "no such file, but params.pt is there: in that directory, run python3 -c \"import torch, "
                  "safetensors.torch as s; s.save_file(torch.load('params.pt'), 'params.safetensors')\"");
    else
        weir_fail(err, WEIR_E_IO,
                  "no such file: a tuned lens is a directory with " WEIR_TUNED_CONFIG " and " WEIR_TUNED_PARAMS);
    weir_free(pt);
    return in_file(WEIR_E_IO, path, err);
}

static weir_status read_params(weir_tuned *t, const char *dir, const char *path, weir_err *err)
{
    weir_filemap map;
    weir_arena arena = {0};
    if (!weir_path_is_file(path))
        return fail_absent(dir, path, err);
    WEIR_TRY(weir_filemap_open(&map, path, err));
    weir_sha256_bytes(map.data, map.size, t->info.sha256);
    const weir_status st = read_map(t, &map, &arena, err);
    weir_arena_free(&arena);
    weir_filemap_close(&map);
    return st;
}

/* --- opening */

static weir_status make_room(weir_tuned *t, weir_err *err)
{
    const weir_tuned_info *i = &t->info;
    t->a = weir_arena_alloc(&t->arena, (size_t)i->L, sizeof *t->a);
    if (i->bias && t->a)
        t->b = weir_calloc((size_t)i->L, (size_t)i->C * sizeof *t->b);
    t->gemm = weir_alloc_aligned(weir_gemm_scratch(TILE, i->C, t->threads));
    return t->a && t->gemm && (t->b || !i->bias) ? WEIR_OK : weir_nomem(err, "a tuned lens");
}

static weir_status open_files(weir_tuned *t, char *const path[3], const weir_model *m, const weir_log *log,
                              weir_err *err)
{
    const char *dir = t->info.path;
    if (!weir_path_is_file(path[0]))
        return fail_absent(dir, path[0], err);
    WEIR_TRY(weir_tuned_config_read(&t->info, &t->arena, path[0], m, log, err));
    WEIR_TRY(make_room(t, err));
    WEIR_TRY(read_params(t, dir, path[1], err));
    return weir_tuned_fit_check(path[2], m, t->info.sha256, log, err);
}

static weir_status open_dir(weir_tuned *t, const char *dir, const weir_model *m, const weir_tuned_options *o,
                            weir_err *err)
{
    static const char *const name[3] = {WEIR_TUNED_CONFIG, WEIR_TUNED_PARAMS, WEIR_TUNED_FIT};
    char *path[3] = {0};
    bool made = true;
    WEIR_TRY(weir_kern_pick(&t->kern, o->kernel, err));
    t->threads = weir_threads(o->threads);
    t->info.path = weir_arena_strndup(&t->arena, dir, strlen(dir));
    for (int i = 0; i < 3; i++)
        made = (path[i] = weir_path_join(dir, name[i])) && made;
    const weir_status st =
        made && t->info.path ? open_files(t, path, m, &o->log, err) : weir_nomem(err, "a tuned lens");
    for (int i = 0; i < 3; i++)
        weir_free(path[i]);
    return st;
}

weir_status weir_tuned_open(weir_tuned **out, const char *dir, const weir_model *m, const weir_tuned_options *o,
                            weir_err *err)
{
    static const weir_tuned_options usual;
    *out = NULL;
    if (o && o->threads < 0)
        return weir_fail(err, WEIR_E_ARG, "threads is %d: it cannot be negative", o->threads);
    weir_tuned *t = weir_calloc(1, sizeof *t);
    if (!t)
        return weir_nomem(err, "a tuned lens");
    const weir_status st = open_dir(t, dir, m, o ? o : &usual, err);
    if (st != WEIR_OK)
        weir_tuned_free(t);
    else
        *out = t;
    return st;
}

void weir_tuned_free(weir_tuned *t)
{
    if (!t)
        return;
    for (int64_t i = 0; t->a && i < t->info.L; i++)
        weir_panels_free(t->a[i]);
    weir_free(t->b);
    weir_free_aligned(t->gemm);
    weir_arena_free(&t->arena);
    weir_free(t);
}

const weir_tuned_info *weir_tuned_info_of(const weir_tuned *t)
{
    return &t->info;
}

/* --- using it */

int64_t weir_tuned_index(const weir_tuned *t, weir_site site, int64_t layer)
{
    if (layer < 0 || layer >= t->info.L || (site != WEIR_SITE_RESID_PRE && site != WEIR_SITE_RESID_POST))
        return -1;
    return layer + (site == WEIR_SITE_RESID_POST);
}

weir_status weir_tuned_apply(weir_tuned *t, int64_t i, const float *x, int64_t n, float *out, weir_err *err)
{
    const int64_t c = t->info.C;
    if (i < 0 || i > t->info.L)
        return weir_fail(err, WEIR_E_ARG, "translator %lld of a lens of %lld (counted from 0)", (long long)i,
                         (long long)t->info.L);
    if (i == t->info.L) {
        memcpy(out, x, (size_t)(n * c) * sizeof *out);
        return WEIR_OK;
    }
    const float *b = t->b ? t->b + i * c : NULL;
    for (int64_t r = 0; r < n; r += TILE) {
        const weir_gemm g = {.m = n - r < TILE ? n - r : TILE,
                             .x = x + r * c,
                             .ldx = c,
                             .kn = c,
                             .n_out = 1,
                             .out = {{.w = t->a[i], .bias = b, .y = out + r * c, .ldy = c}},
                             .scratch = t->gemm};
        weir_gemm_run(t->kern, t->threads, &g);
    }
    weir_op_add(t->kern, t->threads, out, x, out, n * c);
    return WEIR_OK;
}

/* An edit's directory, opened: the tensors of a LoRA adapter, checked, put into the order of the model's matrices. */
#include <math.h>
#include <string.h>

#include "../base/log.h"
#include "../io/safetensors.h"
#include "../model/modules.h"
#include "../model/overlay.h"
#include "config.h"

/* A and B of a module. */
typedef struct pair {
    weir_module module;
    const weir_tensor *a, *b; /* [r, in], [out, r] */
} pair;

/* One opening. */
typedef struct loader {
    const weir_model *m;
    const weir_edit_options *o;
    weir_arena arena;     /* all that is gone when the edit is made */
    char *path[3];        /* of the files */
    weir_filemap tensors; /* mapped while `pairs` point into it */
    weir_adapter config;
    weir_edit_json json;
    pair *pair; /* [L, WEIR_MATRIX_COUNT]: by layer and by the module's first matrix */
    bool regrouped;
} loader;

static weir_status at_tensor(weir_status code, const weir_tensor *t, weir_err *err)
{
    weir_err_where(err, t->file, t->name, t->offset);
    return code;
}

/* --- names */

/* Behind ".lora_A" or ".lora_B": ".weight", perhaps with the adapter's name before it. */
static bool ends_in_weight(const char *rest)
{
    const char *dot = strrchr(rest, '.');
    if (!dot || strcmp(dot, ".weight") != 0)
        return false;
    return dot == rest || (*rest == '.' && memchr(rest + 1, '.', (size_t)(dot - rest - 1)) == NULL && dot > rest + 1);
}

static weir_status refuse_name(const weir_tensor *t, weir_err *err)
{
    static const struct {
        const char *part, *what;
    } known[] = {{".lora_magnitude_vector", "DoRA"},
                 {".lora_embedding_", "an adapter of the embedding"},
                 {".modules_to_save.", "a whole module (modules_to_save)"},
                 {".token_adapter.", "trained tokens"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(t->name, known[i].part)) {
            weir_fail(err, WEIR_E_UNSUPPORTED, "%s: weir loads plain LoRA adapters of a block's matrices",
                      known[i].what);
            return at_tensor(WEIR_E_UNSUPPORTED, t, err);
        }
    weir_fail(err, WEIR_E_FORMAT, "this is no tensor of a LoRA adapter");
    return at_tensor(WEIR_E_FORMAT, t, err);
}

weir_status weir_adapter_part(const weir_tensor *t, char *letter, const char **module, int *n, weir_err *err)
{
    const size_t skip = strlen(WEIR_EDIT_PREFIX);
    const char *lora = strstr(t->name, ".lora_");
    const bool ours = strncmp(t->name, WEIR_EDIT_PREFIX, skip) == 0 && lora > t->name + skip;
    *letter = ours ? lora[strlen(".lora_")] : 0;
    *module = t->name + skip;
    *n = ours ? (int)(lora - *module) : 0;
    return (*letter == 'A' || *letter == 'B') && ends_in_weight(lora + strlen(".lora_A")) ? WEIR_OK
                                                                                          : refuse_name(t, err);
}

static weir_status place(loader *l, const weir_tensor *t, weir_err *err)
{
    weir_module module;
    const char *name;
    char letter;
    int n;
    WEIR_TRY(weir_adapter_part(t, &letter, &name, &n, err));
    if (!weir_module_find(&module, l->m, name, (size_t)n)) {
        weir_fail(err, WEIR_E_UNSUPPORTED, "%.*s is no matrix of a block (q, k, v, o, gate, up, down) of this model",
                  n > 128 ? 128 : n, name);
        return at_tensor(WEIR_E_UNSUPPORTED, t, err);
    }
    if (module.layer >= weir_model_info_of(l->m)->L) {
        weir_fail(err, WEIR_E_SHAPE, "the model has layers 0 to %lld", (long long)(weir_model_info_of(l->m)->L - 1));
        return at_tensor(WEIR_E_SHAPE, t, err);
    }
    if (!weir_adapter_targets(&l->config, module.name, module.layer)) {
        weir_fail(err, WEIR_E_FORMAT, "%s does not name this module (target_modules, layers_to_transform)",
                  WEIR_EDIT_CONFIG);
        return at_tensor(WEIR_E_FORMAT, t, err);
    }
    pair *p = &l->pair[module.layer * WEIR_MATRIX_COUNT + module.matrix[0]];
    const weir_tensor **to = letter == 'A' ? &p->a : &p->b;
    if (*to) {
        weir_fail(err, WEIR_E_FORMAT, "the module has this tensor twice, also as %.150s", (*to)->name);
        return at_tensor(WEIR_E_FORMAT, t, err);
    }
    p->module = module;
    *to = t;
    return WEIR_OK;
}

/* --- shapes and numbers */

static weir_status check_tensor(const weir_tensor *t, int64_t rows, int64_t columns, weir_err *err)
{
    if (t->dtype == WEIR_OTHER) {
        weir_fail(err, WEIR_E_UNSUPPORTED, "its type is not F32, F16 or BF16: convert it before it is saved");
        return at_tensor(WEIR_E_UNSUPPORTED, t, err);
    }
    if (t->rank == 2 && t->shape[0] == rows && t->shape[1] == columns)
        return WEIR_OK;
    weir_fail(err, WEIR_E_SHAPE, "its shape begins [%lld,%lld] (rank %d); for this model it is [%lld,%lld]",
              (long long)t->shape[0], (long long)t->shape[1], t->rank, (long long)rows, (long long)columns);
    return at_tensor(WEIR_E_SHAPE, t, err);
}

/* The tensor as fp32, times scale (rounded once); NULL with err set. */
static float *widen(loader *l, const weir_tensor *t, double scale, weir_err *err)
{
    const int64_t n = t->shape[0] * t->shape[1];
    float *x = weir_arena_alloc(&l->arena, (size_t)n, sizeof *x);
    if (!x) {
        weir_nomem(err, "an adapter's tensor");
        return NULL;
    }
    weir_dequantize(t->dtype, t->data, n, x);
    for (int64_t i = 0; i < n; i++) {
        const float stored = x[i];
        if (scale != 1)
            x[i] = (float)((double)stored * scale);
        if (!isfinite(x[i])) {
            weir_fail(err, WEIR_E_FORMAT, "element %lld is %f%s", (long long)i, (double)stored,
                      isfinite(stored) ? ", and too large when it is scaled" : "");
            at_tensor(WEIR_E_FORMAT, t, err);
            return NULL;
        }
    }
    return x;
}

/* The updates of a module's matrices: all with its A, each with its own rows of B. */
static weir_status add_module(loader *l, const pair *p, weir_update *out, int64_t *n, weir_err *err)
{
    const weir_module *w = &p->module;
    const weir_tensor *there = p->a ? p->a : p->b;
    double scale;
    if (!p->a || !p->b) {
        weir_fail(err, WEIR_E_FORMAT, "the module's lora_%c is missing", p->a ? 'B' : 'A');
        return at_tensor(WEIR_E_FORMAT, there, err);
    }
    const int64_t r = p->a->shape[0];
    if (p->a->rank != 2 || r < 1) {
        weir_fail(err, WEIR_E_SHAPE, "it is no matrix of at least one row");
        return at_tensor(WEIR_E_SHAPE, p->a, err);
    }
    WEIR_TRY(check_tensor(p->a, r, w->in, err));
    WEIR_TRY(check_tensor(p->b, w->out, r, err));
    WEIR_TRY(weir_adapter_scale(&l->config, w->name, r, &scale, err));
    const float *a = widen(l, p->a, 1, err), *b = a ? widen(l, p->b, scale, err) : NULL;
    if (!b)
        return err ? err->code : WEIR_E_NOMEM;
    for (int i = 0; i < w->n; i++) {
        int64_t in, size;
        weir_matrix_shape(l->m, w->matrix[i], &in, &size);
        float *v = weir_arena_alloc(&l->arena, (size_t)(r * size), sizeof *v);
        if (!v)
            return weir_nomem(err, "an adapter's tensor");
        for (int64_t o = 0; o < size; o++)
            for (int64_t k = 0; k < r; k++)
                v[k * size + o] = b[weir_module_row(l->m, w->matrix[i], o) * r + k];
        out[(*n)++] = (weir_update){.layer = w->layer, .matrix = w->matrix[i], .r = r, .u = a, .v = v};
    }
    l->regrouped |= w->n > 1;
    return WEIR_OK;
}

/* --- the files */

/* Says how to make the file where PEFT's older form lies instead. */
static weir_status fail_absent(const char *dir, const char *path, weir_err *err)
{
    char *bin = weir_path_join(dir, "adapter_model.bin");
    if (bin && weir_path_is_file(bin))
        weir_fail(err, WEIR_E_IO,
                  "no such file, but adapter_model.bin is there: in that directory, run python3 -c \"import torch, "
                  "safetensors.torch as s; s.save_file(torch.load('adapter_model.bin'), '" WEIR_EDIT_TENSORS "')\"");
    else
        weir_fail(err, WEIR_E_IO,
                  "no such file: an edit is a directory with " WEIR_EDIT_CONFIG " and " WEIR_EDIT_TENSORS);
    weir_free(bin);
    weir_err_where(err, path, NULL, -1);
    return WEIR_E_IO;
}

static weir_status read_tensors(loader *l, weir_update **update, int64_t *n, weir_err *err)
{
    weir_tensor *tensor;
    int64_t count;
    const int64_t pairs = weir_model_info_of(l->m)->L * WEIR_MATRIX_COUNT;
    WEIR_TRY(weir_safetensors_parse(&l->tensors, &l->arena, &tensor, &count, err));
    l->pair = weir_arena_alloc(&l->arena, (size_t)pairs, sizeof *l->pair);
    *update = weir_arena_alloc(&l->arena, (size_t)pairs, sizeof **update);
    *n = 0;
    if (!l->pair || !*update)
        return weir_nomem(err, "an adapter");
    for (int64_t i = 0; i < count; i++)
        WEIR_TRY(place(l, &tensor[i], err));
    for (int64_t i = 0; i < pairs; i++)
        if (l->pair[i].a || l->pair[i].b)
            WEIR_TRY(add_module(l, &l->pair[i], *update, n, err));
    if (*n)
        return WEIR_OK;
    weir_fail(err, WEIR_E_FORMAT, "the adapter has no tensors");
    return weir_err_where(err, l->tensors.path, NULL, -1);
}

/* Was it made for these weights? */
static weir_status check_model(const loader *l, const char *dir, weir_err *err)
{
    char own[65];
    if (!l->json.fingerprint)
        return WEIR_OK;
    WEIR_TRY(weir_model_fingerprint(l->m, false, own, err));
    if (strcmp(own, l->json.fingerprint) == 0)
        return WEIR_OK;
    if (l->o->force) {
        weir_logf(&l->o->log, WEIR_LOG_WARN, "%s: the edit was made for another model; it is applied all the same",
                  dir);
        return WEIR_OK;
    }
    weir_fail(err, WEIR_E_ARG, "the edit was made for another model: fingerprint %.12s, and this one has %.12s",
              l->json.fingerprint, own);
    return weir_err_where(err, dir, NULL, -1);
}

static void tell(const loader *l, const char *dir, int64_t n)
{
    const char *base = l->config.base_model;
    if (!l->json.format || strcmp(l->json.format, WEIR_EDIT_FORMAT) != 0)
        weir_logf(&l->o->log, WEIR_LOG_INFO,
                  "%s: an adapter that was made elsewhere%s%.200s; %lld matrices are updated%s", dir,
                  base ? ", for " : "", base ? base : "", (long long)n,
                  l->regrouped ? " (fused ones as q, k and v)" : "");
}

static weir_status open_edit(weir_edit **out, loader *l, const char *dir, weir_err *err)
{
    weir_update *update;
    int64_t n;
    char sha256[65];
    WEIR_TRY(weir_adapter_read(&l->config, &l->arena, l->path[0], err));
    if (!weir_path_is_file(l->path[1]))
        return fail_absent(dir, l->path[1], err);
    WEIR_TRY(weir_edit_json_read(&l->json, &l->arena, l->path[2], err));
    WEIR_TRY(check_model(l, dir, err));
    WEIR_TRY(weir_filemap_open(&l->tensors, l->path[1], err));
    WEIR_TRY(read_tensors(l, &update, &n, err));
    WEIR_TRY(weir_edit_new(out, l->m, update, n, err));
    weir_sha256_bytes(l->tensors.data, l->tensors.size, sha256);
    const weir_edit_about about = {.dir = dir,
                                   .base_model = l->config.base_model,
                                   .json = l->json.text,
                                   .method = l->json.method,
                                   .fingerprint = l->json.fingerprint,
                                   .sha256 = sha256};
    WEIR_TRY(weir_edit_set_about(*out, &about, err));
    tell(l, dir, n);
    return WEIR_OK;
}

weir_status weir_edit_open(weir_edit **out, const weir_model *m, const char *dir, const weir_edit_options *o,
                           weir_err *err)
{
    static const char *const name[3] = {WEIR_EDIT_CONFIG, WEIR_EDIT_TENSORS, WEIR_EDIT_JSON};
    static const weir_edit_options usual;
    weir_err local = {0};
    loader l = {.m = m, .o = o ? o : &usual};
    bool made = true;
    err = err ? err : &local;
    *out = NULL;
    for (int i = 0; i < 3; i++)
        made = (l.path[i] = weir_path_join(dir, name[i])) && made;
    weir_status s = WEIR_OK;
    if (!made)
        s = weir_nomem(err, "a path");
    else if (!weir_path_is_file(l.path[0]))
        s = fail_absent(dir, l.path[0], err);
    else
        s = open_edit(out, &l, dir, err);
    if (s != WEIR_OK) {
        weir_edit_free(*out);
        *out = NULL;
    }
    weir_filemap_close(&l.tensors);
    weir_arena_free(&l.arena);
    for (int i = 0; i < 3; i++)
        weir_free(l.path[i]);
    return s;
}

/* Edits out of directories: an input is adapter_config.json, adapter_model.safetensors (a header; parts.h) and
 * edit.json, and the number of a small model. What opens is looked at, run over three tokens, and comes back from a
 * directory of our own with the same updates. */
#include <math.h>

#include <weir/run.h>

#include "driver.h"
#include "parts.h"

static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors", "edit.json", "model"};
enum { CONFIG, TENSORS, JSON, MODEL, N_NAMES };

static const char *const paths[] = {"tests/golden/models/gpt2", "tests/golden/models/llama-gqa-bf16",
                                    "tests/golden/models/neox-parallel", "tests/golden/models/gpt2.gguf"};
enum { N_MODELS = sizeof paths / sizeof *paths };

static const weir_model *model_of(const fuzz_part *p)
{
    static weir_model *m[N_MODELS];
    const size_t i = p->name ? parts_last_number(p->p, p->n) % N_MODELS : 0;
    if (!m[i])
        PROMISE(weir_model_open(&m[i], paths[i], NULL, NULL) == WEIR_OK);
    return m[i];
}

static void run(const weir_model *m, const weir_edit *e)
{
    weir_err err = {0};
    weir_run *r;
    weir_run_options o;
    const int32_t ids[] = {1, 2, 3};
    const weir_seq s = {.ids = ids, .n = 3, .slot = -1};
    weir_run_options_init(&o);
    o.max_rows = 3;
    o.threads = 1;
    o.edits = &e;
    o.n_edits = 1;
    promise_error(weir_run_new(&r, m, &o, &err), &err);
    if (!err.code)
        promise_error(weir_run_forward(r, &s, 1, WEIR_FINAL, &err), &err);
    PROMISE(err.code == WEIR_OK || err.code == WEIR_E_NOMEM);
    weir_run_free(r);
}

static bool same(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static void save(const weir_model *m, const weir_edit *e)
{
    char dir[600];
    weir_edit *back;
    snprintf(dir, sizeof dir, "%s", parts_path("saved"));
    PROMISE(weir_edit_save(e, dir, "{\"format\":\"weir-edit\"}", NULL) == WEIR_OK);
    PROMISE(weir_edit_open(&back, m, dir, NULL, NULL) == WEIR_OK && weir_edit_n(back) >= weir_edit_n(e));
    for (int64_t i = 0; i < weir_edit_n(e); i++) {
        const weir_update *a = weir_edit_update(e, i), *b = NULL;
        int64_t in, out;
        for (int64_t j = 0; j < weir_edit_n(back); j++)
            if (weir_edit_update(back, j)->layer == a->layer && weir_edit_update(back, j)->matrix == a->matrix)
                b = weir_edit_update(back, j);
        weir_matrix_shape(m, a->matrix, &in, &out);
        PROMISE(b && (b->r != a->r || (same(a->u, b->u, a->r * in) && same(a->v, b->v, a->r * out))));
    }
    weir_edit_free(back);
    for (int i = 0; i < MODEL; i++) {
        char file[700];
        snprintf(file, sizeof file, "%s/%s", dir, names[i]);
        unlink(file);
    }
    rmdir(dir);
}

static void look(const char *dir)
{
    weir_err err = {0};
    weir_edit_look *l;
    const weir_edit_module *module;
    promise_error(weir_edit_look_at(&l, dir, &err), &err);
    PROMISE((l != NULL) == !err.code);
    for (int64_t i = 0; l && i < weir_edit_look_modules(l, &module); i++)
        PROMISE(module[i].name && module[i].r > 0 && !(module[i].norm < 0));
    weir_edit_look_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_part part[N_NAMES];
    weir_err err = {0};
    weir_edit *e;
    parts_split(data, size, names, N_NAMES, part);
    for (int i = 0; i < MODEL; i++) {
        size_t n = part[i].n;
        uint8_t *file = i == TENSORS && part[i].name ? parts_safetensors(part[i].p, n, &n) : NULL;
        if (part[i].name)
            parts_write(names[i], file ? file : part[i].p, n);
        free(file);
    }
    const weir_model *m = model_of(&part[MODEL]);
    const weir_edit_options o = {.force = size % 2};
    look(parts_path(""));
    promise_error(weir_edit_open(&e, m, parts_path(""), &o, &err), &err);
    PROMISE((e != NULL) == !err.code);
    if (e) {
        PROMISE(weir_edit_n(e) > 0 && strlen(weir_edit_about_of(e)->sha256) == 64);
        run(m, e);
        save(m, e);
    }
    weir_edit_free(e);
    for (int i = 0; i < MODEL; i++)
        unlink(parts_path(names[i]));
    return 0;
}

/* tests/unit/run_kit.h: what the tests of runs and hooks share: models, a hook that copies what it hears, comparison to
 * the bit. */
#ifndef WEIR_TEST_RUN_KIT_H
#define WEIR_TEST_RUN_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <weir/run.h>

/* Tiny checkpoints of every family (tests/golden/README.md), and brook as NULL. */
#define KIT_GPT2 "tests/golden/models/gpt2"
#define KIT_LLAMA "tests/golden/models/llama-gqa-bf16"
#define KIT_LLAMA3 "tests/golden/models/llama-llama3-v4"
#define KIT_MISTRAL "tests/golden/models/mistral-window-f16"
#define KIT_NEOX "tests/golden/models/neox-parallel"
#define KIT_GEMMA "tests/golden/models/gemma2"
#define KIT_QWEN2 "tests/golden/models/qwen2"
#define KIT_QWEN3 "tests/golden/models/qwen3"
static const char *const kit_models[] = {KIT_GPT2, KIT_LLAMA, KIT_LLAMA3, KIT_MISTRAL, KIT_NEOX, KIT_GEMMA, KIT_QWEN3};
enum { KIT_MODELS = sizeof kit_models / sizeof *kit_models };

static inline void kit_ok(weir_status st, const weir_err *err)
{
    if (st)
        fail_msg("status %d: %s", st, err->msg);
}

static inline weir_model *kit_open(const char *path)
{
    weir_err err = {0};
    weir_model *m = NULL;
    kit_ok(weir_model_open(&m, path, NULL, &err), &err);
    return m;
}

static inline weir_run *kit_run_edited(const weir_model *m, int64_t max_rows, int slots, const char *kernel,
                                       int threads, const weir_edit *const *edits, int n)
{
    weir_err err = {0};
    weir_run_options o;
    weir_run *r = NULL;
    weir_run_options_init(&o);
    o.max_rows = max_rows;
    o.slots = slots;
    o.kernel = kernel;
    o.threads = threads;
    o.edits = edits;
    o.n_edits = n;
    kit_ok(weir_run_new(&r, m, &o, &err), &err);
    return r;
}

static inline weir_run *kit_run(const weir_model *m, int64_t max_rows, int slots, const char *kernel, int threads)
{
    return kit_run_edited(m, max_rows, slots, kernel, threads, NULL, 0);
}

static inline void kit_forward(weir_run *r, const int32_t *ids, int64_t n, int slot, int flags)
{
    weir_err err = {0};
    weir_seq s = {.ids = ids, .n = n, .slot = slot};
    kit_ok(weir_run_forward(r, &s, 1, flags, &err), &err);
}

/* A small generator of its own: the same numbers everywhere. */
static inline uint32_t kit_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static inline int32_t *kit_ids(const weir_model *m, int64_t n, uint64_t seed)
{
    int32_t *ids = malloc((size_t)n * sizeof *ids);
    assert_non_null(ids);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)(kit_random(&seed) % (uint64_t)weir_model_info_of(m)->V);
    return ids;
}

/* The first float whose bits differ, or -1. */
static inline int64_t kit_differs(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            return i;
    return -1;
}

static inline void kit_same(const float *a, const float *b, int64_t n, const char *what)
{
    int64_t i = kit_differs(a, b, n);
    if (i >= 0)
        fail_msg("%s differs at %lld of %lld: %.9g and %.9g", what, (long long)i, (long long)n, (double)a[i],
                 (double)b[i]);
}

/* a + b is sum, to the bit. */
static inline void kit_sum(const float *a, const float *b, const float *sum, int64_t n, const char *what)
{
    float *s = malloc((size_t)n * sizeof *s);
    assert_non_null(s);
    for (int64_t i = 0; i < n; i++)
        s[i] = a[i] + b[i];
    kit_same(s, sum, n, what);
    free(s);
}

/* --- a hook that copies what it hears in the last pass, and can write */
typedef struct kit_tap {
    const weir_point *point;
    int64_t n;
    const weir_selector *only; /* NULL: every point */
    bool write;                /* asks to write where it may, and hands each value to edit */
    void (*edit)(struct kit_tap *tap, const weir_value *v);
    const struct kit_tap *from; /* for kit_put_back */
    float **copy;               /* [n] */
    int64_t *floats, *width;    /* [n] */
    int64_t calls, begins, ends, finishes;
    char order[4096]; /* the sites in the order in which they fired, one character each, cut off when full */
} kit_tap;

static inline void kit_tap_init(kit_tap *t, const weir_model *m)
{
    *t = (kit_tap){0};
    t->n = weir_model_points(m, &t->point);
    t->copy = calloc((size_t)t->n, sizeof *t->copy);
    t->floats = calloc((size_t)t->n, sizeof *t->floats);
    t->width = calloc((size_t)t->n, sizeof *t->width);
    assert_true(t->copy && t->floats && t->width);
}

static inline void kit_tap_free(kit_tap *t)
{
    for (int64_t i = 0; i < t->n; i++)
        free(t->copy[i]);
    free(t->copy);
    free(t->floats);
    free(t->width);
}

static inline weir_want kit_tap_wants(void *self, const weir_point *p)
{
    kit_tap *t = self;
    if (p->grad)
        return WEIR_NONE;
    if (t->only && !weir_selector_matches(t->only, p))
        return WEIR_NONE;
    return t->write && !p->read_only ? WEIR_WRITE : WEIR_READ;
}

static inline weir_status kit_tap_value(void *self, const weir_value *v, weir_err *err)
{
    kit_tap *t = self;
    int64_t i = v->point - t->point;
    (void)err;
    if (t->write && t->edit && !v->point->read_only)
        t->edit(t, v);
    t->floats[i] = v->rows->n * v->width;
    t->width[i] = v->width;
    t->copy[i] = realloc(t->copy[i], (size_t)t->floats[i] * sizeof(float));
    assert_non_null(t->copy[i]);
    memcpy(t->copy[i], v->data, (size_t)t->floats[i] * sizeof(float));
    if (t->calls < (int64_t)sizeof t->order - 1)
        t->order[t->calls] = (char)('A' + v->point->site);
    t->calls++;
    return WEIR_OK;
}

static inline weir_status kit_tap_begin(void *self, const weir_rows *rows, weir_err *err)
{
    (void)rows, (void)err;
    ((kit_tap *)self)->begins++;
    return WEIR_OK;
}

static inline weir_status kit_tap_end(void *self, const weir_rows *rows, weir_err *err)
{
    (void)rows, (void)err;
    ((kit_tap *)self)->ends++;
    return WEIR_OK;
}

static inline weir_status kit_tap_finish(void *self, FILE *out, weir_err *err)
{
    (void)out, (void)err;
    ((kit_tap *)self)->finishes++;
    return WEIR_OK;
}

static const weir_hook_class kit_tap_class = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .name = "tap",
    .wants = kit_tap_wants,
    .on_begin = kit_tap_begin,
    .on_value = kit_tap_value,
    .on_end = kit_tap_end,
    .finish = kit_tap_finish,
};

static inline void kit_attach(weir_run *r, kit_tap *t)
{
    weir_err err = {0};
    kit_ok(weir_run_hook_object(r, &kit_tap_class, t, &err), &err);
}

/* What the tap heard at a point. */
static inline const float *kit_heard(const kit_tap *t, const weir_model *m, const char *name)
{
    const weir_point *p = weir_model_point(m, name);
    if (!p || !t->copy[p - t->point])
        fail_msg("%s was not heard", name);
    return t->copy[p - t->point];
}

static inline const float *kit_heard_at(const kit_tap *t, const weir_model *m, int64_t layer, const char *name)
{
    char full[128];
    snprintf(full, sizeof full, "blocks.%lld.%s", (long long)layer, name);
    return kit_heard(t, m, full);
}

#endif

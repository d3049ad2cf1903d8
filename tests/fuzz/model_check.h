/* fuzz/model_check.h: a model that opened must run: what was accepted fits together. */
#ifndef FUZZ_MODEL_CHECK_H
#define FUZZ_MODEL_CHECK_H

#include <weir/run.h>

#include "driver.h"

enum { CHECK_ROWS = 3 };

static inline void check_points(const weir_model *m)
{
    const weir_point *p;
    int64_t n = weir_model_points(m, &p);
    PROMISE(n > 0);
    for (int64_t i = 0; i < n; i++)
        PROMISE(p[i].width > 0 && p[i].heads > 0 && p[i].size > 0 && weir_model_point(m, p[i].name) == &p[i]);
    for (int64_t i = 0; i < weir_model_n_tensors(m); i++)
        PROMISE(weir_model_tensor(m, i)->data);
}

/* Three tokens through all layers. A refusal is fine (more memory than a fuzzer has), a fault is not. */
static inline void check_forward(const weir_model *m)
{
    const weir_model_info *info = weir_model_info_of(m);
    const int32_t ids[CHECK_ROWS] = {0, (int32_t)(info->V - 1), 0}, target[CHECK_ROWS] = {0, 0, -1};
    int64_t n = info->ctx < CHECK_ROWS ? info->ctx : CHECK_ROWS;
    float logprob[CHECK_ROWS];
    weir_run_options o;
    weir_run *r;
    weir_err err = {0};
    weir_run_options_init(&o);
    o.threads = 1;
    o.max_rows = o.max_len = n;
    o.memory = (int64_t)256 << 20;
    promise_error(weir_run_new(&r, m, &o, &err), &err);
    if (err.code)
        return;
    promise_error(weir_run_hook(r, weir_hook_class_find("stats"), "*", &err), &err);
    if (!err.code)
        promise_error(weir_run_forward(r, &(weir_seq){.ids = ids, .n = n, .slot = -1}, 1, WEIR_FINAL, &err), &err);
    if (!err.code)
        promise_error(weir_run_logprobs(r, target, logprob, &err), &err);
    weir_run_free(r);
}

static inline void check_model(const char *path)
{
    weir_model_options o;
    weir_model *m;
    weir_err err = {0};
    char hex[65];
    weir_model_options_init(&o);
    o.threads = 1;
    promise_error(weir_model_open(&m, path, &o, &err), &err);
    PROMISE((m != NULL) == !err.code);
    if (m) {
        check_points(m);
        promise_error(weir_model_fingerprint(m, false, hex, &err), &err);
        check_forward(m);
    }
    weir_model_free(m);
}

#endif

/* Every allocation of runs, selectors and each built-in hook fails once: each time a clean error, and nothing leaks.
 * And the promise of weir/run.h: once prepared and its layers packed, a forward allocates nothing. */
#include <weir/lens.h>

#include "../unit/run_kit.h"
#include "support/oom.h"


#include "support/bytes.h"
#include "support/scratch.h"

static const int32_t ids[] = {1, 2, 3, 4, 5};
static FILE *sink; /* for what hooks print */

static weir_run_options options(void)
{
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = 8;
    o.threads = 1;
    o.slots = 1;
    return o;
}

/* A model and up to four hooks with their arguments. */
typedef struct work {
    const char *model;
    const char *hook[4][2];
} work;

static weir_status use_run(const work *w, weir_run *r, weir_err *err)
{
    float logits[80];
    for (size_t i = 0; i < 4 && w->hook[i][0]; i++)
        WEIR_TRY(weir_run_hook(r, weir_hook_class_find(w->hook[i][0]), w->hook[i][1], err));
    WEIR_TRY(weir_run_forward(r, &(weir_seq){.ids = ids, .n = 3, .slot = 0}, 1, WEIR_FINAL, err));
    WEIR_TRY(weir_run_forward(r, &(weir_seq){.ids = ids + 3, .n = 2, .slot = 0}, 1, WEIR_FINAL, err));
    WEIR_TRY(weir_run_logits(r, 0, 1, logits, err));
    return weir_run_finish(r, sink, err);
}

static weir_status use(const void *ctx, weir_err *err)
{
    const work *w = ctx;
    const weir_run_options o = options();
    weir_model *m;
    weir_run *r = NULL;
    unlink(scratch("out.h5.part")); /* what an earlier failure left */
    unlink(scratch("sums.h5.part"));
    WEIR_TRY(weir_model_open(&m, w->model, NULL, err));
    weir_status st = weir_run_new(&r, m, &o, err);
    if (!st)
        st = use_run(w, r, err);
    weir_run_free(r);
    weir_model_free(m);
    return st;
}

/* Layer by layer, and the lens at the end. */
static weir_status use_parts(weir_run *r, const weir_model *m, weir_err *err)
{
    int32_t best[1];
    float logprob[1];
    weir_lens *lens;
    WEIR_TRY(weir_run_hook(r, weir_hook_class_find("stats"), "resid_post", err));
    WEIR_TRY(weir_run_prepare(r, WEIR_FINAL, err));
    for (int64_t part = 0; part < weir_run_parts(r); part++)
        WEIR_TRY(weir_run_part(r, part, &(weir_seq){.ids = ids, .n = 3, .slot = -1}, 1, err));
    WEIR_TRY(weir_lens_new(&lens, m, NULL, 1, err));
    weir_status st = weir_lens_top(lens, weir_run_stream(r), 1, 1, best, logprob, err);
    weir_lens_free(lens);
    return st ? st : weir_run_finish(r, NULL, err);
}

static weir_status use_by_layer(const void *path, weir_err *err)
{
    weir_run_options o = options();
    weir_model *m;
    weir_run *r = NULL;
    o.slots = 0;
    o.by_layer = true;
    WEIR_TRY(weir_model_open(&m, path, NULL, err));
    weir_status st = weir_run_new(&r, m, &o, err);
    if (!st)
        st = use_parts(r, m, err);
    weir_run_free(r);
    weir_model_free(m);
    return st;
}

static void test_by_layer(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++)
        assert_in_range(oom_each(use_by_layer, kit_models[k]), 40, 5000);
}

static void test_every_allocation(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        const work w = {
            kit_models[k],
            {{"ablate", "L0N3[-1]"}, {"log", "resid_post"}, {"stats", "post[:,0:4]"}, {"template", "pattern"}}};
        assert_in_range(oom_each(use, &w), 40, 5000);
    }
}

/* --- each hook */

/* A vector for the stream, in numpy's format. */
static const char *write_npy(int64_t n)
{
    char head[129];
    const float one = 1;
    snprintf(head, sizeof head, "\x93NUMPY%c%c%c%c{'descr': '<f4', 'fortran_order': False, 'shape': (%lld,), }%60s", 1,
             0, 118, 0, (long long)n, "");
    head[127] = '\n';
    const char *path = scratch_write("v.npy", head, 128);
    FILE *f = fopen(path, "ab");
    for (int64_t i = 0; i < n; i++)
        fwrite(&one, sizeof one, 1, f);
    fclose(f);
    return path;
}

/* Two tensors as wide as the stream. */
static void write_tensors(int64_t n)
{
    char header[300];
    blob b = {0};
    snprintf(header, sizeof header,
             "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,%lld],\"data_offsets\":[0,%lld]},"
             "\"b\":{\"dtype\":\"F32\",\"shape\":[%lld],\"data_offsets\":[%lld,%lld]}}",
             (long long)n, (long long)(4 * n), (long long)n, (long long)(4 * n), (long long)(8 * n));
    put_safetensors(&b, header, 0);
    put_zeros(&b, (size_t)(8 * n));
    scratch_write("v.safetensors", b.p, b.n);
    free(b.p);
}

/* The files that hooks read: made by hooks. */
static void write_files(const char *model)
{
    char dump[300], stats[300];
    weir_err err = {0};
    weir_model *m = kit_open(model);
    write_npy(weir_model_info_of(m)->C);
    write_tensors(weir_model_info_of(m)->C);
    weir_model_free(m);
    snprintf(dump, sizeof dump, "%s=resid_mid", scratch("in.h5"));
    snprintf(stats, sizeof stats, "%s=resid_mid", scratch("stats.h5"));
    const work w = {model, {{"record", dump}, {"stats", stats}}};
    kit_ok(use(&w, &err), &err);
}

static void test_each_hook(void **state)
{
    (void)state;
    /* % stands for the directory */
    static const char *const with[][2] = {{"ablate", "L0N3"},
                                          {"ablate", "resid_mid=mean:%/stats.h5"},
                                          {"ablate", "resid_mid=mean:%/in.h5"},
                                          {"lens", "resid_post"},
                                          {"log", "resid_post"},
                                          {"mask", "post,topk=3"},
                                          {"patch", "resid_mid=%/in.h5"},
                                          {"project-out", "resid_mid=%/v.npy"},
                                          {"record", "%/out.h5=post[:,1],resid_mid,q,pattern"},
                                          {"scale", "L0N3=0.5"},
                                          {"set", "resid_mid=%/in.h5@0"},
                                          {"stats", "resid_mid"},
                                          {"stats", "%/sums.h5=post[:,0:4]"},
                                          {"steer", "resid_mid=%/v.npy*2"},
                                          {"steer", "resid_mid=%/v.safetensors::a@-1*2"},
                                          {"template", "pattern"},
                                          {"topk", "post,k=3"},
                                          {"without", "skip"}};
    enum { N = sizeof with / sizeof *with };
    write_files(KIT_GPT2);
    for (int i = 0; i < weir_hook_class_count(); i++) {
        int tried = 0;
        for (int k = 0; k < N; k++) {
            char args[600];
            const char *at = strchr(with[k][1], '%');
            if (strcmp(with[k][0], weir_hook_class_at(i)->name) != 0)
                continue;
            snprintf(args, sizeof args, "%s%s", at ? scratch_root : "", at ? at + 1 : with[k][1]);
            if (at && at > with[k][1])
                snprintf(args, sizeof args, "%.*s%s%s", (int)(at - with[k][1]), with[k][1], scratch_root, at + 1);
            const work w = {KIT_GPT2, {{with[k][0], args}}};
            print_message("%s:%s\n", with[k][0], with[k][1]);
            assert_in_range(oom_each(use, &w), 40, 5000);
            tried++;
        }
        if (!tried)
            fail_msg("hook %s is not tried here", weir_hook_class_at(i)->name);
    }
}

static void test_forward_allocates_nothing(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_err err = {0};
        weir_model *m = kit_open(kit_models[k]);
        const weir_run_options o = options();
        weir_run *r;
        float logits[80 * 8];
        int32_t target[] = {1, 2};
        kit_ok(weir_run_new(&r, m, &o, &err), &err);
        kit_ok(weir_run_hook(r, weir_hook_class_find("ablate"), "L0N3[-1]", &err), &err);
        kit_ok(weir_run_hook(r, weir_hook_class_find("stats"), "*", &err), &err);
        kit_forward(r, ids, 3, 0, WEIR_FINAL);
        kit_ok(weir_run_logits(r, 0, 1, logits, &err), &err);
        allocations = 0;
        kit_forward(r, ids + 3, 2, 0, WEIR_FINAL);
        kit_ok(weir_run_logits(r, 0, 1, logits, &err), &err);
        kit_ok(weir_run_logprobs(r, target, logits, &err), &err);
        assert_int_equal(allocations, 0);
        weir_run_free(r);
        weir_model_free(m);
    }
}

int main(void)
{
    oom_one_processor();
    sink = fopen("/dev/null", "w");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation), cmocka_unit_test(test_by_layer),
                                       cmocka_unit_test(test_each_hook),
                                       cmocka_unit_test(test_forward_allocates_nothing)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

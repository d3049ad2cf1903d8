/* The parts of a stream with every allocation failing once: an error that says so, nothing lost, and the next call
 * works. */
#include <stdlib.h>
#include <string.h>

#include "support/oom.h"

#include <weir/parts.h>

#include "unit/run_kit.h"

enum { N = 2, MOST_L = 8, MOST_WIDTH = 512 };

/* Any values will do: they need not be a pass's. */
static float some[N * MOST_WIDTH];
static const float *layers[MOST_L];

static weir_parts_rows rows_of(const weir_model *m)
{
    static const int32_t target[N] = {1, WEIR_LENS_FINAL_TOP}, against[N] = {2, -1};
    for (int i = 0; i < N * MOST_WIDTH; i++)
        some[i] = (float)(1 + i % 7);
    for (int l = 0; l < MOST_L; l++)
        layers[l] = some;
    return (weir_parts_rows){.n = N,
                             .embed = some,
                             .pos_embed = strcmp(weir_model_info_of(m)->family, "gpt2") == 0 ? some : NULL,
                             .attn_out = layers,
                             .mlp_out = layers,
                             .stream = some,
                             .z = layers,
                             .post = layers,
                             .attn_scale = layers,
                             .mlp_scale = layers,
                             .target = target,
                             .against = against};
}

static weir_status take_apart(weir_parts *p, const weir_model *m, weir_err *err)
{
    static weir_part_value out[N * (MOST_WIDTH + 1)];
    const weir_parts_rows rows = rows_of(m);
    WEIR_TRY(weir_parts_begin(p, &rows, err));
    WEIR_TRY(weir_parts_heads(p, 0, NULL, 0, out, err));
    return weir_parts_neurons(p, 0, (const int64_t[]){1, 5}, 2, out, err);
}

static weir_status use(const void *path, weir_err *err)
{
    weir_model *m;
    weir_parts *p;
    WEIR_TRY(weir_model_open(&m, path, NULL, err));
    weir_status st = weir_parts_new(&p, m, NULL, 1, err);
    if (!st)
        st = take_apart(p, m, err);
    weir_parts_free(p);
    weir_model_free(m);
    return st;
}

static void every_allocation(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++)
        assert_in_range(oom_each(use, kit_models[k]), 40, 5000);
}

/* The object survives a call that had no memory. */
static weir_status take_twice(const void *both, weir_err *err)
{
    const weir_model *m = ((void *const *)both)[0];
    weir_parts *p;
    WEIR_TRY(weir_parts_new(&p, m, NULL, 1, err));
    weir_status st = take_apart(p, m, err);
    if (st) {
        weir_err again = {0};
        fail_at = 0;
        kit_ok(take_apart(p, m, &again), &again);
    }
    weir_parts_free(p);
    return st;
}

static void the_next_call_works(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GEMMA);
    weir_parts *p;
    weir_err err = {0};
    kit_ok(weir_parts_new(&p, m, NULL, 1, &err), &err); /* what a model keeps is made now */
    kit_ok(take_apart(p, m, &err), &err);
    weir_parts_free(p);
    assert_in_range(oom_each(take_twice, &m), 15, 200);
    weir_model_free(m);
}

int main(void)
{
    oom_one_processor();
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation), cmocka_unit_test(the_next_call_works)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

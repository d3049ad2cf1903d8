/* Composition scores with every allocation failing once: an error that says so, nothing lost, and the next call works. */
#include <stdlib.h>

#include "support/oom.h"

#include <weir/compose.h>

#include "unit/run_kit.h"

enum { MOST = 16, UNITS = 2 };

static weir_status take_scores(weir_compose *c, weir_err *err)
{
    static const int64_t unit[UNITS] = {1, 5};
    double out[3 * MOST * MOST];
    WEIR_TRY(weir_compose_heads(c, 0, 1, out, err));
    WEIR_TRY(weir_compose_neurons_heads(c, 0, unit, UNITS, 1, out, err));
    WEIR_TRY(weir_compose_heads_neurons(c, 0, 1, WEIR_COMPOSE_KEY, unit, UNITS, out, err));
    return weir_compose_neurons(c, 0, unit, UNITS, 1, WEIR_COMPOSE_KEY, unit, UNITS, out, err);
}

/* A call that had no memory is made again. */
static weir_status use(const void *path, weir_err *err)
{
    weir_model *m;
    weir_compose *c;
    WEIR_TRY(weir_model_open(&m, path, NULL, err));
    weir_status st = weir_compose_new(&c, m, WEIR_COMPOSE_FOLDED, NULL, 1, err);
    if (!st && (st = take_scores(c, err))) {
        weir_err again = {0};
        fail_at = 0;
        kit_ok(take_scores(c, &again), &again);
    }
    weir_compose_free(c);
    weir_model_free(m);
    return st;
}

static void every_allocation(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++)
        assert_in_range(oom_each(use, kit_models[k]), 40, 5000);
}

int main(void)
{
    oom_one_processor();
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

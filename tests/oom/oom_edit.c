/* Edits: every allocation fails once: while one is made, saved, opened, looked at, merged, and run. */
#include <weir/run.h>

#include "support/oom.h"
#include "support/scratch.h"

static const char MODEL[] = "tests/golden/models/neox-parallel"; /* q, k and v in one */

typedef struct world {
    weir_model *m;
    const weir_update *update;
    int64_t n;
    weir_edit *edit;
} world;

static weir_status make_and_save(const void *ctx, weir_err *err)
{
    const world *w = ctx;
    weir_edit *e;
    WEIR_TRY(weir_edit_new(&e, w->m, w->update, w->n, err));
    const weir_status s = weir_edit_save(e, scratch("edit"), "{\"format\":\"weir-edit\"}", err);
    weir_edit_free(e);
    return s;
}

static weir_status open_and_look(const void *ctx, weir_err *err)
{
    const world *w = ctx;
    weir_edit *e;
    weir_edit_look *l;
    WEIR_TRY(weir_edit_open(&e, w->m, scratch("edit"), NULL, err));
    weir_edit_free(e);
    WEIR_TRY(weir_edit_look_at(&l, scratch("edit"), err));
    weir_edit_look_free(l);
    return WEIR_OK;
}

static weir_status merge(const void *ctx, weir_err *err)
{
    static int turn;
    const world *w = ctx;
    char name[32];
    const weir_edit_merge_options o = {.threads = 1};
    snprintf(name, sizeof name, "merged%d", turn++);
    return weir_edit_merge(w->m, (const weir_edit *const *)&w->edit, 1, scratch(name), &o, err);
}

static weir_status run(const void *ctx, weir_err *err)
{
    const world *w = ctx;
    const int32_t ids[] = {1, 2, 3};
    const weir_seq s = {.ids = ids, .n = 3, .slot = -1};
    weir_run *r;
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = 3;
    o.threads = 1;
    o.edits = (const weir_edit *const *)&w->edit;
    o.n_edits = 1;
    WEIR_TRY(weir_run_new(&r, w->m, &o, err));
    const weir_status st = weir_run_forward(r, &s, 1, WEIR_FINAL, err);
    weir_run_free(r);
    return st;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    weir_err err = {0};
    static float x[4096];
    world w = {.n = 2};
    for (int i = 0; i < 4096; i++)
        x[i] = (float)(i * 37 % 101) / 500;
    const weir_update u[] = {{.layer = 0, .matrix = WEIR_MATRIX_K, .r = 2, .u = x, .v = x},
                             {.layer = 1, .matrix = WEIR_MATRIX_DOWN, .r = 1, .u = x, .v = x}};
    w.update = u;
    assert_int_equal(weir_model_open(&w.m, MODEL, NULL, &err), WEIR_OK);
    assert_int_equal(weir_edit_new(&w.edit, w.m, u, 2, &err), WEIR_OK);
    assert_in_range(oom_each(make_and_save, &w), 15, 1000);
    assert_in_range(oom_each(open_and_look, &w), 20, 1000);
    assert_in_range(oom_each(merge, &w), 10, 1000);
    assert_in_range(oom_each(run, &w), 5, 1000);
    weir_edit_free(w.edit);
    weir_model_free(w.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* The `record` hook on a real model (brook): what a program gets by attaching it with FILE=SELECTOR, and by handing it
 * a dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/weir.h>

#include "support/said.h"
#include "support/scratch.h"

enum { ROWS = 7 };

static weir_model *model;
static const int32_t ids[ROWS] = {5, 17, 300, 41, 2, 999, 60};
static float seen[ROWS * 4096]; /* blocks.1.hook_resid_post, copied by a hook of the test's own */
static const char *const point = "blocks.1.hook_resid_post";

static weir_want copy_wants(void *self, const weir_point *p)
{
    (void)self;
    return strcmp(p->name, point) ? WEIR_NONE : WEIR_READ;
}

static weir_status copy_value(void *self, const weir_value *v, weir_err *err)
{
    (void)err;
    memcpy((float *)self, v->data, (size_t)(v->rows->n * v->width) * sizeof(float));
    return WEIR_OK;
}

static const weir_hook_class copy_class = {
    .struct_size = sizeof(weir_hook_class), .abi = WEIR_HOOK_ABI, .name = "copy", .wants = copy_wants, .on_value = copy_value};

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static weir_run *make_run(void)
{
    weir_run *run = NULL;
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = ROWS;
    o.max_len = ROWS;
    assert_int_equal(weir_run_new(&run, model, &o, NULL), WEIR_OK);
    assert_int_equal(weir_run_hook_object(run, &copy_class, seen, NULL), WEIR_OK);
    return run;
}

/* Two sequences in one pass: 4 rows with tag 3, 3 rows with tag 9. */
static void forward(weir_run *run)
{
    const weir_seq seqs[] = {{.ids = ids, .n = 4, .slot = -1, .tag = 3},
                             {.ids = ids + 4, .n = 3, .slot = -1, .tag = 9}};
    weir_err err = {0};
    if (weir_run_forward(run, seqs, 2, 0, &err))
        fail_msg("%s", err.msg);
}

/* Bits of the file that differ from what the test's own hook saw. */
static int differences(const char *path)
{
    weir_dump_reader *r = NULL;
    weir_err err = {0};
    static float got[sizeof seen / sizeof *seen];
    int32_t tokens[ROWS];
    int64_t width = weir_model_info_of(model)->C;
    if (weir_dump_open(&r, path, &err))
        fail_msg("%s", err.msg);
    int i = weir_dump_find(r, point);
    assert_int_equal(weir_dump_n_hooks(r), 1);
    assert_int_equal(weir_dump_hook_at(r, i)->width, width);
    assert_int_equal(weir_dump_rows(r), ROWS);
    assert_int_equal(weir_dump_read(r, i, 0, ROWS, got, &err), WEIR_OK);
    assert_int_equal(weir_dump_read_ids(r, 0, ROWS, tokens, &err), WEIR_OK);
    assert_memory_equal(tokens, ids, sizeof ids);
    assert_string_equal(weir_dump_attr(r, "model"), weir_model_info_of(model)->name);
    assert_int_equal(strlen(weir_dump_attr(r, "fingerprint")), 64);
    assert_string_equal(weir_dump_attr(r, "interventions"), "null"); /* the hook cannot know */
    weir_dump_close(r);
    return memcmp(got, seen, (size_t)(ROWS * width) * sizeof *got) != 0;
}

static void a_file_and_a_selector_suffice(void **state)
{
    (void)state;
    char args[1200];
    weir_err err = {0};
    const char *path = scratch("one.h5");
    weir_run *run = make_run();
    snprintf(args, sizeof args, "%s=%s", path, point);
    assert_int_equal(weir_run_hook(run, weir_hook_class_find("record"), args, &err), WEIR_OK);
    forward(run);
    assert_false(exists(path));
    assert_int_equal(weir_run_finish(run, NULL, &err), WEIR_OK);
    weir_run_free(run);
    assert_true(exists(path));
    assert_false(exists(scratch("one.h5.part")));
    assert_int_equal(differences(path), 0);
    seen[100] += 1; /* the comparison can fail */
    assert_int_equal(differences(path), 1);
}

static void a_run_that_does_not_finish_leaves_nothing(void **state)
{
    (void)state;
    char args[1200];
    weir_run *run = make_run();
    snprintf(args, sizeof args, "%s=%s", scratch("half.h5"), point);
    assert_int_equal(weir_run_hook(run, weir_hook_class_find("record"), args, NULL), WEIR_OK);
    forward(run);
    assert_true(exists(scratch("half.h5.part")));
    weir_run_free(run);
    assert_false(exists(scratch("half.h5")));
    assert_false(exists(scratch("half.h5.part")));
}

static void arguments_are_checked(void **state)
{
    (void)state;
    const weir_hook_class *c = weir_hook_class_find("record");
    static const char *const wrong[] = {NULL, "", "x.h5", "=hook_embed", "x.h5="};
    char args[1200];
    void *self = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_err err = {0};
        assert_int_equal(c->create(&self, model, wrong[i], &err), WEIR_E_ARG);
        assert_true(said(&err, WEIR_E_ARG, "FILE.h5=SELECTOR"));
    }
    static const struct {
        const char *selector, *words;
    } bad[] = {{"hook_nonsense", "hook_nonsense"}, {"hook_embed[-1,3]", "position"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_err err = {0};
        snprintf(args, sizeof args, "%s=%s", scratch("bad.h5"), bad[i].selector);
        weir_status st = c->create(&self, model, args, &err);
        assert_true(st < 0 && said(&err, st, bad[i].words));
        assert_false(exists(scratch("bad.h5.part")));
    }
}

/* The driver's way: documents and tokens are the caller's, only the second sequence is kept. */
static void a_dump_made_by_the_caller(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_dump *d = NULL;
    weir_selector *sel = NULL;
    weir_dump_options o;
    weir_dump_reader *r = NULL;
    const char *path = scratch("driver.h5");
    const weir_doc doc = {.byte_len = 9};
    const int64_t docs[3] = {0}, pos[3] = {0, 1, 2}, off[3] = {0, 3, 6}, len[3] = {3, 3, 3};
    const uint8_t flags[3] = {0}, drop[4] = {0};
    const weir_seq seqs[] = {{.ids = ids, .n = 4, .slot = -1, .keep = drop}, {.ids = ids + 4, .n = 3, .slot = -1}};
    const weir_token_rows rows = {3, ids + 4, docs, pos, pos, off, len, flags, NULL};
    weir_dump_options_init(&o);
    assert_int_equal(weir_dump_create(&d, path, model, NULL, &o, &err), WEIR_OK);
    assert_int_equal(weir_selector_parse(&sel, model, point, &err), WEIR_OK);
    assert_int_equal(weir_dump_select(d, sel, &err), WEIR_OK);
    weir_selector_free(sel); /* it is not kept */
    weir_run *run = make_run();
    assert_int_equal(weir_run_hook_object(run, weir_hook_class_find("record"), d, &err), WEIR_OK);
    assert_int_equal(weir_dump_doc(d, &doc, "arg", &err), WEIR_OK);
    assert_int_equal(weir_dump_tokens(d, &rows, &err), WEIR_OK);
    assert_int_equal(weir_run_forward(run, seqs, 2, 0, &err), WEIR_OK);
    assert_int_equal(weir_run_finish(run, NULL, &err), WEIR_OK); /* the dump is the caller's to commit */
    assert_false(exists(path));
    assert_int_equal(weir_dump_commit(d, NULL, &err), WEIR_OK);
    weir_run_free(run);
    int64_t width = weir_model_info_of(model)->C;
    float row[4096];
    assert_int_equal(weir_dump_open(&r, path, &err), WEIR_OK);
    assert_int_equal(weir_dump_rows(r), 3);
    assert_string_equal(weir_dump_attr(r, "interventions"), "[]");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_dump_read(r, 0, i, 1, row, &err), WEIR_OK);
        assert_memory_equal(row, seen + (4 + i) * width, (size_t)width * sizeof *row);
    }
    weir_dump_close(r);
}

static int set_up(void **state)
{
    weir_err err = {0};
    if (scratch_make(state) || weir_model_open(&model, NULL, NULL, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    weir_model_free(model);
    return scratch_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_and_a_selector_suffice),
        cmocka_unit_test(a_run_that_does_not_finish_leaves_nothing),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(a_dump_made_by_the_caller),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

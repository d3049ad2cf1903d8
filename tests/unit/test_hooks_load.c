/* Hooks from shared objects, built here by the command that hooks/README.md gives; arguments of hooks. */
#include <stdarg.h>

#include "run_kit.h"
#include "support/said.h"
#include "support/scratch.h"

enum { ROWS = 6 };

static weir_model *model;
static int32_t *ids;

WEIR_PRINTF(1, 2) static void shell(const char *fmt, ...)
{
    char command[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    assert_int_equal(system(command), 0);
}

/* NAME.so from NAME.c, in the test's directory. */
static const char *build(const char *name)
{
    char so[64];
    snprintf(so, sizeof so, "%s.so", name);
    shell("cc -shared -fPIC -I lib/include %s/%s.c -o %s/%s", scratch_root, name, scratch_root, so);
    return scratch(so);
}

/* hooks/template.c with a name of its own. */
static const char *build_copy(const char *name, const char *object)
{
    shell("sed s/template/%s/g hooks/template.c > %s/%s.c", object, scratch_root, name);
    return build(name);
}

/* A class with nothing to it; `last` overrides what stands before. */
static const char *build_class(const char *name, const char *last)
{
    char file[64], text[2048];
    snprintf(file, sizeof file, "%s.c", name);
    snprintf(text, sizeof text,
             "#include <weir/hook.h>\n"
             "static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)\n"
             "{ *self = 0; (void)m, (void)args, (void)err; return WEIR_OK; }\n"
             "static weir_want wants(void *self, const weir_point *p) { (void)self, (void)p; return WEIR_READ; }\n"
             "static weir_status value(void *self, const weir_value *v, weir_err *err)\n"
             "{ (void)self, (void)v; return weir_fail(err, WEIR_E_HOOK, \"called\"); }\n"
             "const weir_hook_class weir_hook_%s = {.struct_size = sizeof(weir_hook_class), .abi = WEIR_HOOK_ABI,\n"
             ".name = \"%s\", .create = create, .wants = wants, .on_value = value, %s};\n",
             name, name, last);
    scratch_text(file, text);
    return build(name);
}

static void refused(const char *path, const char *says)
{
    weir_err err = {0};
    const weir_hook_class *c = &kit_tap_class;
    assert_int_equal(weir_hook_class_load(&c, path, &err), WEIR_E_HOOK);
    assert_null(c);
    assert_true(said(&err, WEIR_E_HOOK, says));
    assert_string_equal(err.file, path);
    assert_int_equal(weir_hook_class_load(&c, path, NULL), WEIR_E_HOOK);
}

static const weir_hook_class *load(const char *path)
{
    weir_err err = {0};
    const weir_hook_class *c;
    kit_ok(weir_hook_class_load(&c, path, &err), &err);
    return c;
}

/* What a hook prints about a run of ids. */
static void output(const weir_hook_class *c, const char *args, char *buf, size_t size)
{
    weir_err err = {0};
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    kit_ok(weir_run_hook(r, c, args, &err), &err);
    kit_forward(r, ids, ROWS, -1, 0);
    FILE *f = tmpfile();
    assert_non_null(f);
    kit_ok(weir_run_finish(r, f, &err), &err);
    rewind(f);
    buf[fread(buf, 1, size - 1, f)] = 0;
    fclose(f);
    weir_run_free(r);
}

/* --- loading */

static void the_template_built_apart_does_what_the_built_in_one_does(void **state)
{
    char own[16384], built_in[16384];
    (void)state;
    const weir_hook_class *c = load(build_copy("mine", "mine"));
    assert_string_equal(c->name, "mine");
    assert_ptr_equal(load(scratch("mine.so")), c);
    output(c, "resid_post", own, sizeof own);
    output(weir_hook_class_find("template"), "resid_post", built_in, sizeof built_in);
    assert_non_null(strstr(own, "blocks.1.hook_resid_post"));
    assert_string_equal(own, built_in);
}

static void names_follow_the_file(void **state)
{
    (void)state;
    assert_string_equal(load(build_copy("my-hook", "my_hook"))->name, "my_hook");
    shell("cp %s/my-hook.so %s/my.hook.so", scratch_root, scratch_root);
    refused(scratch("my.hook.so"), "there is no object weir_hook_my in it");
    shell("cp %s/my-hook.so '%s/my hook.so'", scratch_root, scratch_root);
    assert_string_equal(load(scratch("my hook.so"))->name, "my_hook");
}

/* The system's directories are not searched for a name without a slash. */
static void a_bare_name_is_a_file_of_the_directory(void **state)
{
    char here[4096];
    (void)state;
    build_copy("bare", "bare");
    assert_non_null(getcwd(here, sizeof here));
    refused("bare.so", "cannot be loaded");
    refused("libm.so.6", "cannot be loaded");
    assert_int_equal(chdir(scratch_root), 0);
    weir_err err = {0};
    const weir_hook_class *c = NULL;
    weir_status st = weir_hook_class_load(&c, "bare.so", &err);
    assert_int_equal(chdir(here), 0);
    kit_ok(st, &err);
    assert_string_equal(c->name, "bare");
}

static void what_is_no_hook_is_refused(void **state)
{
    (void)state;
    refused(scratch("nothing.so"), "No such file");
    refused(scratch_root, "cannot be loaded");
    refused(scratch_text("text.so", "not a library\n"), "cannot be loaded");
    scratch_text("empty.c", "");
    refused(build("empty"), "there is no object weir_hook_empty");
    scratch_text("calls.c", "int weir_no_such_thing(void);\nint f(void) { return weir_no_such_thing(); }\n");
    refused(build("calls"), "undefined symbol: weir_no_such_thing");
}

static void another_abi_is_refused(void **state)
{
    char says[128];
    (void)state;
    snprintf(says, sizeof says, "built for hook ABI %d, this is %d: compile it again", WEIR_HOOK_ABI + 1,
             WEIR_HOOK_ABI);
    refused(build_class("newer", ".abi = WEIR_HOOK_ABI + 1"), says);
    refused(build_class("size", ".struct_size = 16"), "weir_hook_class has 16 bytes, here it has");
    refused(build_class("nameless", ".name = \"\""), "the hook's class has no name");
    refused(build_class("maker", ".create = 0"), "has no create");
    refused(build_class("wanter", ".wants = 0"), "has no wants");
    refused(build_class("deaf", ".on_value = 0"), "has no on_value");
    assert_string_equal(load(build_class("right", ".flags = WEIR_HOOK_ANY_ORDER"))->name, "right");
}

/* --- arguments */

static const char *const keys[] = {"k=", "file=", "abs", NULL};

static weir_hook_args *parsed(const char *text)
{
    weir_err err = {0};
    weir_hook_args *a;
    kit_ok(weir_hook_args_parse(&a, "mine", text, keys, &err), &err);
    return a;
}

static void bad_args(const char *text, const char *says)
{
    weir_err err = {0};
    weir_hook_args *a;
    assert_int_equal(weir_hook_args_parse(&a, "mine", text, keys, &err), WEIR_E_ARG);
    assert_null(a);
    assert_true(said(&err, WEIR_E_ARG, says));
}

static void arguments_are_told_apart(void **state)
{
    (void)state;
    weir_hook_args *a = parsed("blocks.{0,1}.mlp.hook_post[:,1+2], k=-5 ,abs,sel=resid_post[0:2,3],file=a=b{,}");
    int64_t k = 7;
    double x = 0.5;
    assert_string_equal(weir_hook_args_selectors(a), "blocks.{0,1}.mlp.hook_post[:,1+2],resid_post[0:2,3]");
    assert_string_equal(weir_hook_args_text(a, "abs"), "");
    assert_string_equal(weir_hook_args_text(a, "file"), "a=b{,}");
    assert_null(weir_hook_args_text(a, "sel"));
    assert_int_equal(weir_hook_args_int(a, "k", -5, 5, &k, NULL), WEIR_OK);
    assert_int_equal(k, -5);
    assert_int_equal(weir_hook_args_number(a, "k", &x, NULL), WEIR_OK);
    assert_true(x == -5);
    weir_hook_args_free(a);
    const char *nothing[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        a = parsed(nothing[i]);
        assert_null(weir_hook_args_selectors(a));
        assert_null(weir_hook_args_text(a, "abs"));
        assert_int_equal(weir_hook_args_int(a, "k", 1, 2, &k, NULL), WEIR_OK);
        assert_int_equal(k, -5); /* as it was */
        weir_hook_args_free(a);
    }
}

static void wrong_arguments_are_errors(void **state)
{
    (void)state;
    bad_args("post,kk=3", "hook mine has no argument \"kk\"; the nearest is \"k\"");
    bad_args("fiel=x", "the nearest is \"file\"");
    bad_args("sal=post", "the nearest is \"sel\"");
    bad_args("k=1,k=2", "\"k\" is given twice");
    bad_args("abs,abs", "\"abs\" is given twice");
    bad_args("abs=1", "\"abs\" takes no value");
    bad_args("k", "\"k\" needs a value");
    bad_args("k=", "\"k\" needs a value");
    bad_args("post,", "an argument is empty");
    bad_args(",post", "an argument is empty");
    bad_args("sel=", "an argument is empty");
    bad_args("post, ,abs", "an argument is empty");
    bad_args("=3", "has no argument \"\"");
}

static void numbers_are_checked(void **state)
{
    static const char *const whole[] = {"k=0", "k=11", "k=x", "k=1.5", "k=-", "k=99999999999999999999", "k= 1"};
    static const char *const real[] = {"k=x", "k=1.5x", "k=nan", "k=1e999"};
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        weir_err err = {0};
        int64_t k = 3;
        weir_hook_args *a = parsed(whole[i]);
        assert_int_equal(weir_hook_args_int(a, "k", 1, 10, &k, &err), WEIR_E_ARG);
        assert_true(said(&err, WEIR_E_ARG, "must be a whole number from 1 to 10"));
        assert_int_equal(k, 3);
        weir_hook_args_free(a);
    }
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        weir_err err = {0};
        double x = 3;
        weir_hook_args *a = parsed(real[i]);
        assert_int_equal(weir_hook_args_number(a, "k", &x, &err), WEIR_E_ARG);
        assert_true(said(&err, WEIR_E_ARG, "must be a number"));
        assert_true(x == 3);
        weir_hook_args_free(a);
    }
    weir_hook_args *a = parsed("k=-2.5e-3");
    double x;
    assert_int_equal(weir_hook_args_number(a, "k", &x, NULL), WEIR_OK);
    assert_true(x == -2.5e-3);
    weir_hook_args_free(a);
}

static int set_up(void **state)
{
    model = kit_open(KIT_GPT2);
    ids = kit_ids(model, ROWS, 5);
    return scratch_make(state);
}

static int tear_down(void **state)
{
    weir_model_free(model);
    free(ids);
    return scratch_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_template_built_apart_does_what_the_built_in_one_does),
        cmocka_unit_test(names_follow_the_file),
        cmocka_unit_test(a_bare_name_is_a_file_of_the_directory),
        cmocka_unit_test(what_is_no_hook_is_refused),
        cmocka_unit_test(another_abi_is_refused),
        cmocka_unit_test(arguments_are_told_apart),
        cmocka_unit_test(wrong_arguments_are_errors),
        cmocka_unit_test(numbers_are_checked),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

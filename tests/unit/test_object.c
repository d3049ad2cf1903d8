/* JSON objects that are asked by key: out of a file, out of a text, and one within another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "io/object.h"
#include "support/said.h"
#include "support/scratch.h"

static const char *put(const char *text)
{
    return scratch_write("o.json", text, strlen(text));
}

/* Values are right, and strings stay when the file is gone. */
static void test_file(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_arena arena = {0};
    weir_filemap map;
    weir_object o, in;
    const char *name = "before", *kept = "kept";
    int64_t i = 0;
    double d = 0;
    bool b = false;
    const char *path =
        put("{\"name\": \"a\\u0062c\", \"n\": -7, \"x\": 2.5, \"on\": true, \"none\": null, \"in\": {\"n\": 8}}");
    assert_int_equal(weir_object_open(&o, &map, &arena, path, &err), WEIR_OK);
    assert_int_equal(o.n, 6);
    assert_int_equal(weir_object_string(&o, "name", &name, &err), WEIR_OK);
    assert_int_equal(weir_object_string(&o, "none", &kept, &err), WEIR_OK);
    assert_int_equal(weir_object_string(&o, "absent", &kept, &err), WEIR_OK);
    assert_int_equal(weir_pair_int(&o, weir_object_value(&o, "n"), &i, &err), WEIR_OK);
    assert_int_equal(i, -7);
    assert_int_equal(weir_pair_double(&o, weir_object_value(&o, "x"), &d, &err), WEIR_OK);
    assert_true(d == 2.5);
    assert_int_equal(weir_pair_bool(&o, weir_object_value(&o, "on"), &b, &err), WEIR_OK);
    assert_true(b);
    assert_int_equal(weir_object_enter(&in, &o, weir_object_find(&o, "in"), &err), WEIR_OK);
    assert_int_equal(weir_pair_int(&in, weir_object_value(&in, "n"), &i, &err), WEIR_OK);
    assert_int_equal(i, 8);
    weir_filemap_close(&map);
    assert_string_equal(name, "abc");
    assert_string_equal(kept, "kept");
    weir_arena_free(&arena);
}

/* A null is found, and has no value; what is absent is neither. */
static void test_null_and_absent(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_arena arena = {0};
    weir_object o;
    const char *text = "{\"none\":  null , \"zero\": 0}";
    assert_int_equal(weir_object_read(&o, &arena, (weir_str){text, strlen(text)}, "o.json", &err), WEIR_OK);
    assert_true(weir_pair_is_null(weir_object_find(&o, "none")));
    assert_null(weir_object_value(&o, "none"));
    assert_ptr_equal(weir_object_value(&o, "zero"), weir_object_find(&o, "zero"));
    assert_null(weir_object_find(&o, "absent"));
    assert_null(weir_object_value(&o, "absent"));
    weir_arena_free(&arena);
}

/* Files that cannot be read as one object leave nothing open, and are named with the byte. */
static void test_damaged_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {{"", "o.json"},
               {"[1]", "o.json: at byte 0"},
               {"{\"a\": 1} {}", "o.json: at byte 9"},
               {"{\"a\": 1, \"a\": 2}", "o.json: at byte 9"},
               {"{\"a\": tru}", "o.json: at byte 6"},
               {"{\"a\": 1", "o.json: at byte 7"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_err err = {0};
        weir_arena arena = {0};
        weir_filemap map = {0};
        weir_object o;
        assert_int_equal(weir_object_open(&o, &map, &arena, put(bad[i].text), &err), WEIR_E_FORMAT);
        assert_true(said(&err, WEIR_E_FORMAT, bad[i].says));
        assert_null(map.path);
        weir_arena_free(&arena);
    }
    weir_err err = {0};
    weir_arena arena = {0};
    weir_filemap map = {0};
    weir_object o;
    assert_int_equal(weir_object_open(&o, &map, &arena, scratch("absent.json"), &err), WEIR_E_IO);
    assert_true(said(&err, WEIR_E_IO, "absent.json"));
    weir_arena_free(&arena);
}

/* A value of another kind: the line has the key and where it stands, in an inner object too. */
static void test_other_kinds(void **state)
{
    (void)state;
    weir_err err = {0}, later = {0}, last = {0};
    weir_arena arena = {0};
    weir_object o, in;
    const char *text = "{\"in\": {\"deep\": [1]}, \"n\": 1.5}", *s = "same";
    int64_t i;
    assert_int_equal(weir_object_read(&o, &arena, (weir_str){text, strlen(text)}, "o.json", &err), WEIR_OK);
    assert_int_equal(weir_pair_int(&o, weir_object_find(&o, "n"), &i, &err), WEIR_E_FORMAT);
    assert_true(said(&err, WEIR_E_FORMAT, "n: "));
    assert_int_equal(err.offset, 27);
    assert_int_equal(weir_object_enter(&in, &o, weir_object_find(&o, "in"), &later), WEIR_OK);
    assert_int_equal(weir_object_string(&in, "deep", &s, &later), WEIR_E_FORMAT);
    assert_true(said(&later, WEIR_E_FORMAT, "deep: "));
    assert_int_equal(later.offset, 16);
    assert_string_equal(s, "same");
    assert_int_equal(weir_object_enter(&in, &o, weir_object_find(&o, "n"), &last), WEIR_E_FORMAT);
    weir_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_file), cmocka_unit_test(test_null_and_absent),
                                       cmocka_unit_test(test_damaged_files), cmocka_unit_test(test_other_kinds)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

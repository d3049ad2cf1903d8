/* The JSON reader and writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/json.h>

#include "support/said.h"
#include "support/scratch.h"

/* Reads a text from end to end without keeping anything. */
static weir_status check(const char *text, size_t n, weir_err *err)
{
    weir_json j;
    weir_json_init(&j, text, n, "t.json", err);
    weir_json_skip(&j);
    weir_json_end(&j);
    return weir_json_done(&j);
}

static void test_valid(void **state)
{
    (void)state;
    static const char *const text[] = {
        "{}",
        "[]",
        " \t\r\n[ ] \n",
        "0",
        "-0",
        "-0.0e-0",
        "1E+2",
        "12345678901234567890123456789",
        "\"\"",
        "\"\\u0000\"",
        "\"\\ud83d\\ude00\"",
        "\"\x7f\"",
        "true",
        "false",
        "null",
        "[1,[2,{\"a\":[]}],3]",
        "{\"\":1}",
        "{\"a\":{\"a\":1},\"b\":{\"a\":1}}",
        "[{\"a\":1},{\"a\":1}]",
        "\"\xf0\x9f\x98\x80\"",
        "1e999",
        "\"\xed\x9f\xbf\xee\x80\x80\"",
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        weir_err e = {0};
        if (check(text[i], strlen(text[i]), &e) != WEIR_OK)
            fail_msg("%s: %s", text[i], e.msg);
    }
}

static void test_invalid(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", "t.json: at byte 0: a value was expected, but the text ends"},
        {"  ", "at byte 2"},
        {"\xef\xbb\xbf{}", "at byte 0: a value was expected"},
        {"{", "at byte 1: a key in quotes was expected"},
        {"{\"a\"", "':' was expected after a key"},
        {"{\"a\":", "a value was expected, but the text ends"},
        {"{\"a\":1", "the text ends where ',' or '}' is missing"},
        {"{\"a\":1,}", "at byte 7: a comma before '}'"},
        {"{,}", "a key in quotes"},
        {"{\"a\":1 \"b\":2}", "at byte 7: ',' or '}' was expected"},
        {"{a:1}", "a key in quotes"},
        {"{1:1}", "a key in quotes"},
        {"[1,]", "a comma before ']'"},
        {"[,1]", "a value was expected"},
        {"[1 2]", "',' or ']' was expected"},
        {"[1}", "',' or ']' was expected"},
        {"[1", "the text ends"},
        {"]", "a value was expected"},
        {"1 2", "something follows the value"},
        {"{} x", "something follows the value"},
        {"01", "a bad number"},
        {"-", "a bad number"},
        {"+1", "a value was expected"},
        {".5", "a value was expected"},
        {"1.", "a bad number"},
        {"1e", "a bad number"},
        {"1e+", "a bad number"},
        {"0x10", "something follows"},
        {"NaN", "a value was expected"},
        {"Infinity", "a value was expected"},
        {"tru", "true or false was expected"},
        {"nul", "null was expected"},
        {"nulls", "something follows"},
        {"'a'", "a value was expected"},
        {"\"abc", "a string without an end"},
        {"\"abcdefgh\\", "a bad escape"},
        {"\"\\x41\"", "at byte 1: a bad escape"},
        {"\"\\u12g4\"", "a bad escape"},
        {"\"\\u12", "a bad escape"},
        {"\"\\ud800\"", "a lone surrogate"},
        {"\"\\ud800\\u0041\"", "a lone surrogate"},
        {"\"\\udc00\"", "a lone surrogate"},
        {"\"a\nb\"", "at byte 2: a raw control character"},
        {"\"01234567\x01\"", "at byte 9: a raw control character"},
        {"\"\xff\"", "at byte 1: invalid UTF-8"},
        {"\"\xc0\x80\"", "invalid UTF-8"},
        {"\"\xed\xa0\x80\"", "invalid UTF-8"},
        {"\"\xf5\x80\x80\x80\"", "invalid UTF-8"},
        {"\"\xe2\x82\"", "invalid UTF-8"},
        {"{\"a\":1,\"a\":2}", "at byte 7: duplicate key \"a\""},
        {"{\"a\":1,\"\\u0061\":2}", "duplicate key"},
        {"{\"\\u0061\":1,\"a\":2}", "duplicate key"},
        {"{\"a\":{\"b\":1,\"b\":1}}", "at byte 12: duplicate key \"b\""},
        {"{\"a\":{\"b\":1},\"a\":1}", "duplicate key \"a\""},
        {"[{\"x\":[{\"y\":0}],\"x\":1}]", "duplicate key \"x\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_err e = {0};
        if (check(bad[i].text, strlen(bad[i].text), &e) != WEIR_E_FORMAT || !said(&e, WEIR_E_FORMAT, bad[i].words))
            fail_msg("%s", bad[i].text);
    }
    weir_err e = {0};
    assert_int_equal(check("[\"\0\"]", 5, &e), WEIR_E_FORMAT); /* raw NUL */
    assert_int_equal(check("1\0", 2, NULL), WEIR_E_FORMAT);
    assert_int_equal(check(NULL, 0, NULL), WEIR_E_FORMAT);
}

static void test_depth(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    char *text = malloc(2 * DEEP);
    memset(text, '[', DEEP);
    memset(text + DEEP, ']', DEEP);
    weir_err e = {0};
    assert_int_equal(check(text + DEEP - 256, 512, &e), WEIR_OK);
    assert_int_equal(check(text + DEEP - 257, 514, &e), WEIR_E_FORMAT);
    assert_true(said(&e, WEIR_E_FORMAT, "at byte 256: nested deeper than 256"));
    assert_int_equal(check(text, 2 * DEEP, NULL), WEIR_E_FORMAT);
    free(text);
}

static void test_every_cut_is_an_error(void **state)
{
    (void)state;
    static const char text[] = "{\"a\\u0041\": [1.5e3, true, {\"\xe2\x82\xac\": null}, \"x\\\"y\"], \"b\": -12}";
    size_t n = sizeof text - 1;
    assert_int_equal(check(text, n, NULL), WEIR_OK);
    for (size_t cut = 0; cut < n; cut++) {
        char *part = malloc(cut + 1); /* of its own, so that a sanitizer sees a byte read too many */
        memcpy(part, text, cut);
        char *exact = realloc(part, cut ? cut : 1);
        assert_int_equal(check(exact, cut, NULL), WEIR_E_FORMAT);
        free(exact);
    }
}

static void test_reading(void **state)
{
    (void)state;
    static const char text[] =
        " {\"n\": 3, \"s\": \"a\\n\\u00e9\\u0000b\", \"list\": [1, 2.5, -7], \"unread\": {\"x\": [1]},\n"
        "  \"flag\": true, \"nothing\": null, \"raw\": [ {\"q\" : 1 } ] }  ";
    weir_json j;
    weir_err e = {0};
    weir_str key, s;
    int seen = 0;
    double sum = 0;
    weir_json_init(&j, text, sizeof text - 1, "x", &e);
    assert_int_equal(weir_json_peek(&j), WEIR_JSON_OBJECT);
    assert_true(weir_json_object(&j));
    while (weir_json_key(&j, &key)) {
        if (weir_str_eq(key, "n")) {
            assert_int_equal(weir_json_int(&j), 3);
        } else if (weir_str_eq(key, "s")) {
            s = weir_json_string(&j);
            assert_int_equal(s.n, 6);
            assert_memory_equal(s.p, "a\n\xc3\xa9\0b", 6);
        } else if (weir_str_eq(key, "list")) {
            weir_json_array(&j);
            while (weir_json_item(&j))
                sum += weir_json_double(&j);
        } else if (weir_str_eq(key, "flag")) {
            assert_true(weir_json_bool(&j));
        } else if (weir_str_eq(key, "nothing")) {
            assert_int_equal(weir_json_peek(&j), WEIR_JSON_NULL);
            weir_json_null(&j);
        } else if (weir_str_eq(key, "raw")) {
            s = weir_json_raw(&j);
            assert_int_equal(s.n, 14);
            assert_memory_equal(s.p, "[ {\"q\" : 1 } ]", 14);
        }
        seen++;
    }
    weir_json_end(&j);
    assert_int_equal(weir_json_done(&j), WEIR_OK);
    assert_int_equal(seen, 7);
    assert_true(sum == -3.5);
}

static int64_t int_of(const char *text, weir_err *e)
{
    weir_json j;
    *e = (weir_err){0};
    weir_json_init(&j, text, strlen(text), NULL, e);
    int64_t v = weir_json_int(&j);
    weir_json_end(&j);
    return weir_json_done(&j) == WEIR_OK ? v : 0;
}

static uint64_t uint_of(const char *text, weir_err *e)
{
    weir_json j;
    *e = (weir_err){0};
    weir_json_init(&j, text, strlen(text), NULL, e);
    uint64_t v = weir_json_uint(&j);
    weir_json_end(&j);
    return weir_json_done(&j) == WEIR_OK ? v : 0;
}

static double double_of(const char *text, weir_err *e)
{
    weir_json j;
    *e = (weir_err){0};
    weir_json_init(&j, text, strlen(text), NULL, e);
    double v = weir_json_double(&j);
    weir_json_end(&j);
    return weir_json_done(&j) == WEIR_OK ? v : 0;
}

static void test_integers(void **state)
{
    (void)state;
    weir_err e;
    assert_true(int_of("9223372036854775807", &e) == INT64_MAX && e.code == WEIR_OK);
    assert_true(int_of("-9223372036854775808", &e) == INT64_MIN && e.code == WEIR_OK);
    assert_true(int_of("-0", &e) == 0 && e.code == WEIR_OK);
    assert_true(uint_of("18446744073709551615", &e) == UINT64_MAX && e.code == WEIR_OK);
    assert_true(uint_of("-0", &e) == 0 && e.code == WEIR_OK);
    int_of("9223372036854775808", &e);
    assert_true(said(&e, WEIR_E_FORMAT, "does not fit"));
    int_of("-9223372036854775809", &e);
    assert_true(said(&e, WEIR_E_FORMAT, "does not fit"));
    int_of("18446744073709551616", &e);
    assert_true(said(&e, WEIR_E_FORMAT, "too large"));
    uint_of("18446744073709551616", &e);
    assert_true(said(&e, WEIR_E_FORMAT, "too large"));
    uint_of("-1", &e);
    assert_true(said(&e, WEIR_E_FORMAT, "below zero"));
    int_of("1.0", &e);
    assert_true(said(&e, WEIR_E_FORMAT, "fraction or an exponent"));
    int_of("1e2", &e);
    assert_true(said(&e, WEIR_E_FORMAT, "fraction or an exponent"));
    int_of("\"1\"", &e);
    assert_true(said(&e, WEIR_E_FORMAT, "a number was expected, found a string"));
}

static void test_doubles(void **state)
{
    (void)state;
    static const char *const text[] = {
        "0.1",
        "1e23",
        "8.5e-5",
        "2.2250738585072011e-308",
        "4.9e-324",
        "1.7976931348623157e308",
        "9007199254740993",
        "0.500000000000000166533453693773481063544750213623046875",
        "123456789012345678901234567890e-20",
        "1e-400",
        "-5",
    };
    weir_err e;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        assert_true(double_of(text[i], &e) == strtod(text[i], NULL) && e.code == WEIR_OK);
    assert_true(signbit(double_of("-0.0", &e)));
    double_of("1e309", &e);
    assert_true(said(&e, WEIR_E_FORMAT, "too large for a double"));
}

static void test_errors_stick(void **state)
{
    (void)state;
    weir_json j;
    weir_err e = {0};
    weir_str key;
    const char *text = "{\"a\": \"x\", \"b\": 2}";
    weir_json_init(&j, text, strlen(text), "f", &e);
    weir_json_object(&j);
    assert_true(weir_json_key(&j, &key));
    assert_int_equal(weir_json_int(&j), 0);
    assert_false(weir_json_key(&j, &key));
    assert_int_equal(key.n, 0);
    assert_int_equal(weir_json_peek(&j), WEIR_JSON_NONE);
    assert_int_equal(weir_json_string(&j).n, 0);
    assert_int_equal(weir_json_raw(&j).n, 0);
    assert_false(weir_json_object(&j) || weir_json_array(&j) || weir_json_item(&j) || weir_json_bool(&j));
    weir_json_fail(&j, "later");
    assert_int_equal(weir_json_done(&j), WEIR_E_FORMAT);
    assert_true(said(&e, WEIR_E_FORMAT, "f: at byte 6: a number was expected, found a string"));
}

static void test_misuse_is_an_error(void **state)
{
    (void)state;
    weir_json j;
    weir_err e = {0};
    weir_str key;
    weir_json_init(&j, "[1]", 3, NULL, &e);
    weir_json_array(&j);
    assert_int_equal(weir_json_int(&j), 0); /* without item */
    assert_int_equal(weir_json_done(&j), WEIR_E_ARG);
    weir_json_init(&j, "[1]", 3, NULL, NULL);
    weir_json_array(&j);
    assert_false(weir_json_key(&j, &key));
    assert_int_equal(weir_json_done(&j), WEIR_E_ARG);
    weir_json_init(&j, "[1]", 3, NULL, NULL);
    weir_json_array(&j);
    weir_json_end(&j);
    assert_int_equal(weir_json_done(&j), WEIR_E_ARG);
    weir_json_init(&j, "1", 1, NULL, NULL);
    weir_json_int(&j);
    weir_json_int(&j);
    assert_int_equal(weir_json_done(&j), WEIR_E_ARG);
    weir_json_init(&j, "[1]", 3, "g", &e);
    weir_json_fail(&j, "no %s", "good");
    e = (weir_err){0};
    weir_json_done(&j);
}

static void test_reader_says_what_the_caller_says(void **state)
{
    (void)state;
    weir_json j;
    weir_err e = {0};
    weir_json_init(&j, "[1, 2]", 6, "g", &e);
    weir_json_array(&j);
    weir_json_item(&j);
    weir_json_int(&j);
    weir_json_fail(&j, "no %s", "good");
    assert_int_equal(weir_json_done(&j), WEIR_E_FORMAT);
    assert_true(said(&e, WEIR_E_FORMAT, "g: at byte 2: no good"));
}

static void test_many_keys(void **state)
{
    (void)state;
    enum { N = 100000 };
    char *text = malloc(N * 24 + 64);
    size_t n = 0;
    text[n++] = '{';
    for (int i = 0; i < N; i++) /* some with escapes, and objects within that come and go */
        n += (size_t)sprintf(text + n, "\"%s%d\":%s,", i % 3 ? "k" : "\\u006b", i, i % 5 ? "1" : "{\"a\":1}");
    text[n - 1] = '}';
    weir_err e = {0};
    assert_int_equal(check(text, n, &e), WEIR_OK);
    n = n - 1 + (size_t)sprintf(text + n - 1, ",\"k%d\":0}", N / 2);
    assert_int_equal(check(text, n, &e), WEIR_E_FORMAT);
    assert_true(said(&e, WEIR_E_FORMAT, "duplicate key \"k50000\""));
    free(text);
}

/* --- the writer */

static char *written(void (*write)(weir_jsonw *w))
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    weir_jsonw w;
    weir_jsonw_init(&w, f);
    write(&w);
    fclose(f);
    return text;
}

static void test_json_as_a_value(void **state)
{
    (void)state;
    static const char *const text[][2] = {
        {"{\"a\":\n[1]}", "[{\"a\": [1]},1]"},
        {"{\"a\":", "[null,1]"},
        {"", "[null,1]"},
        {NULL, "[null,1]"},
        {"\"\xe2\x80\xae\xc2\x9b\xc3\xa9\x7f\"", "[\"\\u202e\\u009b\xc3\xa9\\u007f\",1]"}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        char *got = NULL;
        size_t size;
        FILE *f = open_memstream(&got, &size);
        weir_jsonw w;
        assert_non_null(f);
        weir_jsonw_init(&w, f);
        weir_jsonw_array(&w);
        weir_jsonw_json(&w, text[i][0]);
        weir_jsonw_int(&w, 1);
        weir_jsonw_end(&w);
        assert_int_equal(fclose(f), 0);
        assert_string_equal(got, text[i][1]);
        free(got);
    }
}

/* What acts on a terminal, or turns text around, is written as an escape, which reads back as what it was. */
static void write_hostile(weir_jsonw *w)
{
    weir_jsonw_array(w);
    weir_jsonw_cstr(w, "\x1b\x7f\xc2\x9b\xe2\x80\xa8\xe2\x81\xa6\xf3\xa0\x80\x81 \xe2\x80\x8d\xff");
    weir_jsonw_str(w, NULL, 0);
    weir_jsonw_end(w);
}

static void test_what_is_written_is_printable(void **state)
{
    (void)state;
    char *text = written(write_hostile);
    assert_string_equal(text, "[\"\\u001b\\u007f\\u009b\\u2028\\u2066\\udb40\\udc01 \xe2\x80\x8d\xef\xbf\xbd\",\"\"]");
    free(text);
}

static void write_all(weir_jsonw *w)
{
    weir_jsonw_object(w);
    weir_jsonw_key(w, "i\"");
    weir_jsonw_int(w, INT64_MIN);
    weir_jsonw_key(w, "list");
    weir_jsonw_array(w);
    weir_jsonw_bool(w, true);
    weir_jsonw_bool(w, false);
    weir_jsonw_null(w);
    weir_jsonw_array(w);
    weir_jsonw_end(w);
    weir_jsonw_object(w);
    weir_jsonw_end(w);
    weir_jsonw_cstr(w, "z");
    weir_jsonw_end(w);
    weir_jsonw_key(w, "s");
    weir_jsonw_str(w, "a\0\n\x1f\\\"\xc3\xa9\xff\xed\xa0\x80z", 13);
    weir_jsonw_key(w, "d");
    weir_jsonw_double(w, 0.1);
    weir_jsonw_key(w, "f");
    weir_jsonw_float(w, 0.1f);
    weir_jsonw_key(w, "nan");
    weir_jsonw_double(w, NAN);
    weir_jsonw_key(w, "inf");
    weir_jsonw_float(w, -INFINITY);
    weir_jsonw_key(w, "real");
    weir_jsonw_array(w);
    static const double real[] = {3, -0.0, -500000, 0.25, 1e20, NAN};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        weir_jsonw_real(w, real[i]);
    weir_jsonw_end(w);
    weir_jsonw_key_int(w, "pair", -7);
    weir_jsonw_key_double(w, "half", 0.5);
    weir_jsonw_key_bool(w, "yes", true);
    weir_jsonw_key_cstr(w, "text", "a");
    weir_jsonw_key_cstr(w, "none", NULL);
    weir_jsonw_end(w);
}

static void test_writing(void **state)
{
    (void)state;
    char *text = written(write_all);
    assert_string_equal(text,
                        "{\"i\\\"\":-9223372036854775808,\"list\":[true,false,null,[],{},\"z\"],"
                        "\"s\":\"a\\u0000\\n\\u001f\\\\\\\"\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\","
                        "\"d\":0.1,\"f\":0.1,\"nan\":null,\"inf\":null,\"real\":[3.0,-0.0,-500000.0,0.25,1e+20,null],"
                        "\"pair\":-7,\"half\":0.5,\"yes\":true,\"text\":\"a\","
                        "\"none\":null}");
    assert_int_equal(check(text, strlen(text), NULL), WEIR_OK);
    free(text);
}

static uint64_t next_random(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return *x ^ *x >> 29;
}

static void test_numbers_round_trip(void **state)
{
    (void)state;
    uint64_t x = 1;
    char buf[64];
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&x);
        uint32_t low = (uint32_t)(bits >> 16);
        double d;
        float s;
        memcpy(&d, &bits, 8);
        memcpy(&s, &low, 4);
        if (!isfinite(d) || !isfinite(s))
            continue;
        memset(buf, 0, sizeof buf);
        FILE *f = fmemopen(buf, sizeof buf, "w");
        weir_jsonw w;
        weir_jsonw_init(&w, f);
        weir_jsonw_double(&w, d);
        fflush(f);
        assert_true(strtod(buf, NULL) == d);
        rewind(f);
        memset(buf, 0, sizeof buf);
        weir_jsonw_float(&w, s);
        fclose(f);
        assert_true(strtof(buf, NULL) == s && strlen(buf) <= 15);
    }
}

/* Sets a locale whose decimal point is a comma: one of our own that has nothing else, since a language's takes a second
 * to compile. -c: categories are missing. */
static bool set_comma_locale(void)
{
    static const char source[] = "LC_CTYPE\ncopy \"POSIX\"\nEND LC_CTYPE\n"
                                 "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n";
    char command[2400];
    snprintf(command, sizeof command, "localedef -c -i %s -f ANSI_X3.4-1968 %s 2>&1 >&2 | grep -v warning >&2",
             scratch_write("source", source, strlen(source)), scratch("comma"));
    setenv("LOCPATH", scratch_root, 1);
    return system(command) >= 0 && setlocale(LC_NUMERIC, "comma");
}

static void test_locale(void **state)
{
    (void)state;
    char comma[8];
    if (!set_comma_locale()) {
        fprintf(stderr, "no locale with a decimal comma can be had: nothing to see here\n");
        return;
    }
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    assert_string_equal(comma, "0,5");
    weir_err e;
    assert_true(double_of("1.5", &e) == 1.5);
    char *text = written(write_all);
    assert_non_null(strstr(text, "\"d\":0.1,\"f\":0.1"));
    free(text);
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_as_a_value),
        cmocka_unit_test(test_what_is_written_is_printable),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_every_cut_is_an_error),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_errors_stick),
        cmocka_unit_test(test_misuse_is_an_error),
        cmocka_unit_test(test_reader_says_what_the_caller_says),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_writing),
        cmocka_unit_test(test_numbers_round_trip),
        cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Arrays from files, and rows of a dump by document and position. */
#include <math.h>

#include "npy_kit.h"
#include "run_kit.h"

#include <weir/record.h>
#include <weir/values.h>

static const float six[6] = {1.5f, -2, 3, 4.25f, 5, -6};

static weir_array load_ok(const char *text, const char *hook, int64_t most)
{
    weir_err err = {0};
    weir_array a;
    kit_ok(weir_values_load(&a, text, hook, most, &err), &err);
    return a;
}

static void refused(const char *text, const char *hook, int64_t most, const char *says)
{
    weir_err err = {0};
    weir_array a;
    char line[1200];
    weir_status st = weir_values_load(&a, text, hook, most, &err);
    if (st >= 0)
        fail_msg("%s was loaded", text);
    assert_null(a.data);
    assert_int_equal(st, err.code);
    weir_err_line(&err, line, sizeof line);
    if (!strstr(line, says))
        fail_msg("\"%s\" does not say \"%s\"", line, says);
}

static void loads(const char *text, const char *hook, int64_t rows, int64_t width, const float *data)
{
    weir_array a = load_ok(text, hook, 1000);
    if (a.rows != rows || a.width != width)
        fail_msg("%s is [%lld, %lld], not [%lld, %lld]", text, (long long)a.rows, (long long)a.width, (long long)rows,
                 (long long)width);
    kit_same(a.data, data, rows * width, text);
    weir_array_free(&a);
}

static const char *join(const char *path, const char *rest)
{
    static char text[4][1200];
    static unsigned turn;
    char *p = text[turn++ % 4];
    snprintf(p, sizeof text[0], "%s%s", path, rest);
    return p;
}

/* --- what the text means */

static void test_rows_and_factors(void **state)
{
    const float doubled[3] = {3, -4, 6}, last[3] = {-42.5f, -50, 60};
    const char *path = npy_floats("v.npy", 2, 3, six);
    (void)state;
    loads(path, NULL, 2, 3, six);
    loads(join(path, "@0"), NULL, 1, 3, six);
    loads(join(path, "@1"), NULL, 1, 3, six + 3);
    loads(join(path, "@-1"), NULL, 1, 3, six + 3);
    loads(join(path, "@-2*2"), NULL, 1, 3, doubled);
    loads(join(path, "@1*-1e1"), NULL, 1, 3, last);
    refused(join(path, "@2"), NULL, 9, "row 2 is asked of 2");
    refused(join(path, "@-3"), NULL, 9, "row -3 is asked of 2");
    refused(path, NULL, 1, "2 rows, where at most 1 can be used: choose one with @ROW");
    refused(join(path, "::v"), NULL, 9, "without a name");
    refused(join(path, "*x"), NULL, 9, "cannot open");
    refused(join(path, "@"), NULL, 9, "cannot open");
    refused(join(path, "*1e99"), NULL, 9, "cannot open");
    refused("", NULL, 9, "was expected");
    refused("@3", NULL, 9, "was expected");
    refused(scratch("absent.npy"), NULL, 9, "No such file");
    refused(scratch_root, NULL, 9, "directory");
}

/* A file that exists under the text as it stands is that file, whatever signs its name has. */
static void test_names_that_look_like_suffixes(void **state)
{
    static const char *const names[] = {"v@1", "v*2", "a::b", "v@0*3", "a::b@1", "x::y::z"};
    const float doubled[3] = {3, -4, 6};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = npy_floats(names[i], 2, 3, six);
        char *copy;
        loads(path, NULL, 2, 3, six);
        loads(join(path, "@1"), NULL, 1, 3, six + 3);
        loads(join(path, "@0*2"), NULL, 1, 3, doubled);
        copy = weir_values_path(join(path, "@0*2"));
        assert_string_equal(copy, path);
        free(copy);
        remove(path);
    }
    /* v@1 is the file's row 1 unless there is a file v@1. */
    const char *path = npy_floats("v", 2, 3, six), *other = npy_floats("v@1", 1, 3, doubled);
    loads(other, NULL, 1, 3, doubled);
    remove(other);
    loads(join(path, "@1"), NULL, 1, 3, six + 3);
}

/* --- .npy */

static void put(uint8_t *to, uint64_t v, int size, bool big)
{
    for (int i = 0; i < size; i++)
        to[big ? size - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

static void test_types_of_npy(void **state)
{
    static const struct {
        const char *type;
        int size;
        uint64_t bits[3];
        float value[3];
    } types[] = {
        {"f2", 2, {0x3c00, 0xc500, 0x0001}, {1, -5, 0x1p-24f}},
        {"f2", 2, {0x7bff, 0x8000, 0x03ff}, {65504, -0.0f, 0x1.ff8p-15f}},
        {"f4", 4, {0x3fc00000, 0x80000000, 0x00000001}, {1.5f, -0.0f, 0x1p-149f}},
        {"f8", 8, {0x3ff8000000000000, 0xc000000000000000, 0x3fb999999999999a}, {1.5f, -2, 0.1f}},
        {"i1", 1, {0xff, 0x7f, 0x80}, {-1, 127, -128}},
        {"i2", 2, {0xffff, 0x7fff, 0x8000}, {-1, 32767, -32768}},
        {"i4", 4, {0xffffffff, 7, 0x80000000}, {-1, 7, -2147483648.0f}},
        {"i8", 8, {0xffffffffffffffff, 1000000, 0x8000000000000000}, {-1, 1000000, -0x1p63f}},
        {"u1", 1, {0xff, 0, 1}, {255, 0, 1}},
        {"u2", 2, {0xffff, 0, 1}, {65535, 0, 1}},
        {"u4", 4, {0xffffffff, 0, 1}, {0x1p32f, 0, 1}},
        {"u8", 8, {0xffffffffffffffff, 0, 1}, {0x1p64f, 0, 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int big = 0; big < 2; big++) {
            uint8_t data[24];
            char descr[8];
            snprintf(descr, sizeof descr, "%c%s", types[i].size == 1 ? '|' : big ? '>' : '<', types[i].type);
            for (int k = 0; k < 3; k++)
                put(data + k * types[i].size, types[i].bits[k], types[i].size, big);
            loads(npy_of("t.npy", descr, false, "(3,)", data, (size_t)(3 * types[i].size)), NULL, 1, 3, types[i].value);
        }
}

static void test_shapes_of_npy(void **state)
{
    const float columns[6] = {1.5f, 4.25f, -2, 5, 3, -6}; /* [2, 3] with the first axis fastest */
    float cube[24], turned[24];
    (void)state;
    loads(npy_of("s.npy", "<f4", true, "(2, 3)", columns, sizeof columns), NULL, 2, 3, six);
    loads(join(scratch("s.npy"), "@1"), NULL, 1, 3, six + 3);
    loads(npy_of("s.npy", "<f4", false, "(6,)", six, sizeof six), NULL, 1, 6, six);
    loads(npy_of("s.npy", "<f4", true, "(6,)", six, sizeof six), NULL, 1, 6, six);
    loads(npy_of("s.npy", "<f4", false, "(6, 1)", six, sizeof six), NULL, 6, 1, six);
    loads(npy_of("s.npy", "<f4", false, "()", six, 4), NULL, 1, 1, six);
    loads(npy_of("s.npy", "<f4", false, "(1L, 6L)", six, sizeof six), NULL, 1, 6, six);
    for (int i = 0; i < 24; i++)
        cube[i] = (float)i;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 4; c++)
                turned[a + 2 * b + 6 * c] = cube[(a * 3 + b) * 4 + c];
    loads(npy_of("s.npy", "<f4", false, "(2, 3, 4)", cube, sizeof cube), NULL, 2, 12, cube);
    loads(npy_of("s.npy", "<f4", true, "(2, 3, 4)", turned, sizeof turned), NULL, 2, 12, cube);
    loads(join(scratch("s.npy"), "@1"), NULL, 1, 12, cube + 12);
}

static void test_headers_of_npy(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}", "surplus key"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "surplus key"},
        {"{'descr': '<f4', 'fortran_order': False}", "is not {"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (6,)}", "True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x", "is not {"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}", "needs 28 bytes, but 24"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}", "needs 20 bytes, but 24"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}", "needs 0 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999, 999999999999999)}", "overflows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}", "number was expected"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 6}", "'(' was expected"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,", ""},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", "named fields"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", "'<c8'"},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (24,)}", "'|b1'"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "'|O'"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "'<f16'"},
        {"{'descr': '<U6', 'fortran_order': False, 'shape': (1,)}", "'<U6'"},
        {"{'descr': 'a long text of many characters'", "a string"},
        {"{", ""},
        {"", ""},
        {"[]", "'{' was expected"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        npy_raw("bad.npy", 1, bad[i].text, six, sizeof six);
        refused(scratch("bad.npy"), NULL, 9, bad[i].says);
    }
    const char *good = "{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<f4\"}";
    for (int major = 1; major <= 3; major++)
        loads(npy_raw("v.npy", major, good, six, sizeof six), NULL, 1, 6, six);
    refused(npy_raw("v.npy", 4, good, six, sizeof six), NULL, 9, "version 4.0");
    refused(npy_raw("v.npy", 0, good, six, sizeof six), NULL, 9, "version 0.0");
}

/* Every file cut short is refused, and nothing is read behind its end. */
static void test_short_npy(void **state)
{
    char bytes[512];
    const char *path = npy_of("v.npy", "<f4", false, "(6,)", six, sizeof six);
    FILE *f = fopen(path, "rb");
    (void)state;
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    for (size_t k = 0; k < n; k++)
        refused(scratch_write("short.npy", bytes, k), NULL, 9, "short.npy");
}

/* Files with some bytes changed are loaded or refused; what matters is that nothing else happens (with a sanitizer). */
static void test_damaged_npy(void **state)
{
    char bytes[512];
    uint64_t seed = 7;
    int64_t loaded = 0;
    const char *path = npy_of("v.npy", "<f4", true, "(2, 3)", six, sizeof six);
    FILE *f = fopen(path, "rb");
    (void)state;
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    for (int turn = 0; turn < 3000; turn++) {
        weir_err err = {0};
        weir_array a;
        char changed[512];
        memcpy(changed, bytes, n);
        for (uint32_t k = kit_random(&seed) % 3 + 1; k > 0; k--)
            changed[kit_random(&seed) % n] = (char)(kit_random(&seed) % 256);
        loaded += weir_values_load(&a, scratch_write("damaged.npy", changed, n), NULL, 9, &err) == WEIR_OK;
        assert_int_equal(a.data != NULL, err.code == WEIR_OK);
        weir_array_free(&a);
    }
    assert_true(loaded > 0 && loaded < 3000);
}

static void test_numbers_must_be_finite(void **state)
{
    const double huge[2] = {1, 1e300};
    const float odd[4] = {1, 2, NAN, 3}, large[2] = {1, 3e38f};
    (void)state;
    refused(npy_of("n.npy", "<f8", false, "(2,)", huge, sizeof huge), NULL, 9,
            "element 1 of row 0 is no finite float32");
    refused(npy_floats("n.npy", 2, 2, odd), NULL, 9, "element 0 of row 1 is no finite float32");
    loads(join(scratch("n.npy"), "@0"), NULL, 1, 2, odd); /* only what is asked for counts */
    refused(join(npy_floats("n.npy", 1, 2, large), "*10"), NULL, 9, "element 1 of row 0");
}

/* --- safetensors */

static const char *safetensors(const char *name, const char *header, const void *data, size_t n)
{
    static uint8_t bytes[4096];
    uint64_t text = strlen(header);
    memcpy(bytes, &text, 8);
    memcpy(bytes + 8, header, text);
    memcpy(bytes + 8 + text, data, n);
    return scratch_write(name, bytes, 8 + text + n);
}

static void test_safetensors(void **state)
{
    const uint16_t bf16[3] = {0x3fc0, 0xc000, 0x4040}, f16[3] = {0x3e00, 0xc000, 0x4200};
    const char *path = safetensors(
        "t.safetensors", "{\"v\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", six, sizeof six);
    (void)state;
    loads(path, "blocks.0.hook_resid_pre", 2, 3, six); /* the only one needs no name */
    loads(join(path, "::v@1"), NULL, 1, 3, six + 3);
    refused(join(path, "::w"), NULL, 9, "no tensor w: the file holds v");
    loads(safetensors("t.safetensors", "{\"v\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]}}", bf16, 6),
          NULL, 1, 3, six);
    loads(safetensors("t.safetensors", "{\"v\":{\"dtype\":\"F16\",\"shape\":[1,3],\"data_offsets\":[0,6]}}", f16, 6),
          NULL, 1, 3, six);
    refused(safetensors("t.safetensors", "{\"v\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,24]}}", six, 24),
            NULL, 9, "not F32, F16 or BF16");
    path = safetensors("t.safetensors",
                       "{\"hook_embed\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
                       "\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,24]}}",
                       six, 24);
    loads(path, "hook_embed", 1, 3, six);
    loads(join(path, "::b"), "hook_embed", 1, 3, six + 3);
    refused(path, NULL, 9, "name a tensor with ::NAME: the file holds hook_embed, b");
    refused(scratch_text("x.pt", "PK\3\4 and more"), NULL, 9, "zip archive");
    refused(scratch_text("x.txt", "1.0 2.0 3.0 4.0"), NULL, 9, "neither an .npy");
    refused(scratch_text("x.txt", ""), NULL, 9, "neither an .npy");
}

/* --- dumps and statistics */

enum { ROWS = 7, DOCS = 3 };

/* Records points of DOCS documents of ROWS tokens; what was heard of document d is in tap[d]. */
static void record(const weir_model *m, const char *args, kit_tap tap[DOCS])
{
    weir_err err = {0};
    weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
    kit_tap t;
    kit_tap_init(&t, m);
    kit_ok(weir_run_hook(r, weir_hook_class_find("record"), args, &err), &err);
    kit_attach(r, &t);
    for (int d = 0; d < DOCS; d++) {
        int32_t *ids = kit_ids(m, ROWS, (uint64_t)(d + 1));
        weir_seq s = {.ids = ids, .n = ROWS, .slot = -1, .tag = d};
        kit_ok(weir_run_forward(r, &s, 1, 0, &err), &err);
        free(ids);
        kit_tap_init(&tap[d], m);
        for (int64_t i = 0; i < t.n; i++)
            if (t.copy[i]) {
                tap[d].copy[i] = t.copy[i];
                t.copy[i] = NULL;
            }
    }
    kit_ok(weir_run_finish(r, NULL, &err), &err);
    weir_run_free(r);
    kit_tap_free(&t);
}

static const char post[] = "blocks.1.mlp.hook_post", mid[] = "blocks.0.hook_resid_mid";

static void test_dumps(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    kit_tap tap[DOCS];
    const char *path = scratch("d.h5");
    const int64_t c = weir_model_info_of(m)->C;
    float *mean = calloc((size_t)c, sizeof *mean);
    double sum;
    weir_err err = {0};
    weir_array a;
    (void)state;
    record(m, join(path, "=blocks.0.hook_resid_mid,blocks.1.mlp.hook_post[:,3+5:8]"), tap);
    for (int64_t row = 0; row < DOCS * ROWS; row++) {
        char text[1200];
        snprintf(text, sizeof text, "%s@%lld", path, (long long)row);
        a = load_ok(text, mid, 1);
        assert_true(a.hook && !a.units && a.width == c);
        kit_same(a.data, kit_heard(&tap[row / ROWS], m, mid) + row % ROWS * c, c, text);
        weir_array_free(&a);
    }
    a = load_ok(join(path, "::blocks.1.mlp.hook_post@-1"), mid, 1);
    assert_true(a.hook && a.units && a.width == 4 && a.units[0] == 3 && a.units[3] == 7);
    const float *last = kit_heard(&tap[DOCS - 1], m, post) + (ROWS - 1) * weir_model_info_of(m)->F;
    for (int i = 0; i < 4; i++)
        assert_true(a.data[i] == last[a.units[i]]);
    weir_array_free(&a);
    for (int64_t i = 0; i < c; i++) {
        sum = 0;
        for (int64_t row = 0; row < DOCS * ROWS; row++)
            sum += (double)kit_heard(&tap[row / ROWS], m, mid)[row % ROWS * c + i];
        mean[i] = (float)(sum / (DOCS * ROWS));
    }
    kit_ok(weir_values_mean(&a, path, mid, &err), &err);
    kit_same(a.data, mean, c, "mean");
    weir_array_free(&a);
    a = load_ok(join(path, "::/tokens/pos"), NULL, 1);
    assert_int_equal(a.width, DOCS * ROWS);
    for (int i = 0; i < DOCS * ROWS; i++)
        assert_true(a.data[i] == (float)(i % ROWS));
    weir_array_free(&a);
    refused(path, mid, 1, "21 rows");
    refused(join(path, "@0"), "hook_embed", 1, "hook_embed is not among the 2 hook points");
    refused(join(path, "@21"), mid, 1, "row 21 is asked of 21");
    refused(join(path, "::/tokens"), mid, 1, "/tokens is no dataset of numbers");
    refused(join(path, "::/tokens/nothing"), mid, 1, "it has no dataset /tokens/nothing");
    refused(join(path, "@0"), NULL, 1, "name a dataset");
    for (int d = 0; d < DOCS; d++)
        kit_tap_free(&tap[d]);
    free(mean);
    weir_model_free(m);
}

static void test_statistics(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    weir_stats *s;
    weir_err err = {0};
    weir_array a;
    const char *path = scratch("s.h5");
    const int64_t units[3] = {2, 4, 5}, count[3] = {9, 9, 9}, none[3] = {9, 0, 9};
    const double mean[3] = {0.5, -2, 0.1}, m2[3] = {1, 1, 1}, gap[3] = {0.5, NAN, 1};
    const float want[3] = {0.5f, -2, 0.1f};
    (void)state;
    kit_ok(weir_stats_create(&s, path, m, &err), &err);
    weir_stats_item item = {weir_model_point(m, post), units, 3, count, mean, m2};
    kit_ok(weir_stats_add(s, &item, &err), &err);
    item = (weir_stats_item){weir_model_point(m, mid), units, 3, none, gap, m2};
    kit_ok(weir_stats_add(s, &item, &err), &err);
    kit_ok(weir_stats_commit(s, &err), &err);
    for (int k = 0; k < 3; k++) {
        if (k == 0)
            kit_ok(weir_values_mean(&a, path, post, &err), &err);
        else
            a = load_ok(k == 1 ? path : join(path, "::blocks.1.mlp.hook_post"), k == 1 ? post : mid, 1);
        assert_true(a.hook && a.width == 3 && a.units && a.units[2] == 5);
        kit_same(a.data, want, 3, "mean");
        weir_array_free(&a);
    }
    refused(path, mid, 1, "no value was seen");
    refused(path, "hook_embed", 1, "it has no statistics of hook_embed");
    assert_true(weir_values_mean(&a, npy_floats("v.npy", 1, 3, six), post, &err) < 0);
    weir_model_free(m);
}

static void test_places(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    kit_tap tap[DOCS];
    weir_places *p;
    weir_err err = {0};
    const char *path = scratch("p.h5");
    const weir_dump_hook *info;
    const int64_t c = weir_model_info_of(m)->C;
    int64_t row;
    int hook, other;
    const float *x;
    (void)state;
    record(m, join(path, "=blocks.0.hook_resid_mid,blocks.1.mlp.hook_post[:,3+5:8]"), tap);
    kit_ok(weir_places_open(&p, path, 2, &err), &err);
    kit_ok(weir_places_hook(p, mid, &hook, &info, &err), &err);
    assert_true(info->width == c && !info->units && weir_places_column(p, hook, c - 1) == c - 1);
    kit_ok(weir_places_hook(p, post, &other, &info, &err), &err);
    assert_true(info->width == 4 && info->units && info->units[1] == 5 && hook != other);
    assert_true(weir_places_column(p, other, 6) == 2 && weir_places_column(p, other, 4) == -1);
    for (int d = DOCS - 1; d >= 0; d--)
        for (int64_t pos = 0; pos < ROWS; pos++) {
            kit_ok(weir_places_find(p, d, pos, &row, &err), &err);
            assert_int_equal(row, d * ROWS + pos);
            kit_ok(weir_places_row(p, hook, row, &x, &err), &err);
            kit_same(x, kit_heard(&tap[d], m, mid) + pos * c, c, mid);
            kit_ok(weir_places_row(p, other, row, &x, &err), &err);
            assert_true(x[0] == kit_heard(&tap[d], m, post)[pos * weir_model_info_of(m)->F + 3]);
        }
    const int64_t absent[][2] = {{0, ROWS}, {0, -1}, {DOCS, 0}, {-1, 0}, {1, INT64_MAX}, {INT64_MAX, 0}};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        kit_ok(weir_places_find(p, absent[i][0], absent[i][1], &row, &err), &err);
        assert_int_equal(row, -1);
    }
    assert_true(weir_places_hook(p, "hook_embed", &hook, &info, &err) < 0);
    assert_non_null(strstr(err.msg, "hook_embed was not recorded in it: --hooks hook_embed does that"));
    weir_places_close(p);
    for (int d = 0; d < DOCS; d++)
        kit_tap_free(&tap[d]);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_and_factors), cmocka_unit_test(test_names_that_look_like_suffixes),
        cmocka_unit_test(test_types_of_npy),     cmocka_unit_test(test_shapes_of_npy),
        cmocka_unit_test(test_headers_of_npy),   cmocka_unit_test(test_short_npy),
        cmocka_unit_test(test_damaged_npy),      cmocka_unit_test(test_numbers_must_be_finite),
        cmocka_unit_test(test_safetensors),      cmocka_unit_test(test_dumps),
        cmocka_unit_test(test_statistics),       cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

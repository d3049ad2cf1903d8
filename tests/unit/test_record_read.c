/* Hooks of a dump read by rows, by columns and as a stream: the bits that were written, whatever the shape, the level
 * and the number of threads, and the same as through HDF5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record_read.h"

static const int64_t some_units[] = {0, 63, 64, 65, 130, 199};

/* --- rows */

static void ranges(weir_dump_reader *r, const rr_shape *s, int p)
{
    static const int64_t from[] = {0, 1, 63, 64, 1000, 1023, 1024, 1025, 2047, 2400},
                         many[] = {1, 2, 64, 1024, 1500, 5000};
    const int i = weir_dump_find(r, fx_point[p].name);
    const weir_dump_hook *h = weir_dump_hook_at(r, i);
    weir_err err = {0};
    float *out = rr_floats(s->rows * h->width);
    for (size_t a = 0; a < sizeof from / sizeof *from; a++)
        for (size_t b = 0; b < sizeof many / sizeof *many; b++) {
            const int64_t n = s->rows - from[a] < many[b] ? s->rows - from[a] : many[b];
            if (n < 1)
                continue;
            assert_int_equal(weir_dump_read(r, i, from[a], n, out, &err), WEIR_OK);
            assert_int_equal(rr_wrong(s, p, out, from[a], n, NULL, 0, h->width), 0);
        }
    assert_int_equal(weir_dump_read(r, i, 0, s->rows, out, &err), WEIR_OK);
    assert_int_equal(rr_wrong(s, p, out, 0, s->rows, NULL, 0, h->width), 0);
    free(out);
}

/* --- columns */

static void columns(weir_dump_reader *r, const rr_shape *s, int p)
{
    const int i = weir_dump_find(r, fx_point[p].name);
    const int64_t width = weir_dump_hook_at(r, i)->width, row = s->rows / 3, n = s->rows - row;
    const int64_t list[] = {width - 1, 0, width / 2, 0, width / 2 + 1 < width ? width / 2 + 1 : 0, width / 3};
    const int64_t n_list = sizeof list / sizeof *list;
    weir_err err = {0};
    float *out = rr_floats(s->rows * (n_list > width ? n_list : width));
    for (int64_t c = 0; c<width; c += width> 20 ? 7 : 1) {
        assert_int_equal(weir_dump_read_column(r, i, c, 0, s->rows, out, &err), WEIR_OK);
        assert_int_equal(rr_wrong(s, p, out, 0, s->rows, &c, 0, 1), 0);
    }
    assert_int_equal(weir_dump_read_columns(r, i, list, n_list, row, n, out, &err), WEIR_OK);
    assert_int_equal(rr_wrong(s, p, out, row, n, list, 0, n_list), 0);
    int64_t *all = malloc((size_t)width * sizeof *all);
    for (int64_t c = 0; c < width; c++)
        all[c] = width - 1 - c;
    assert_int_equal(weir_dump_read_columns(r, i, all, width, 0, s->rows, out, &err), WEIR_OK);
    assert_int_equal(rr_wrong(s, p, out, 0, s->rows, all, 0, width), 0);
    free(all);
    free(out);
}

/* --- streams */

static void streamed(weir_dump_reader *r, const rr_shape *s, int p, int64_t from)
{
    const int i = weir_dump_find(r, fx_point[p].name);
    const int64_t width = weir_dump_hook_at(r, i)->width;
    weir_dump_stream *st = NULL;
    weir_dump_block b;
    weir_err err = {0};
    int64_t row = from, seen = 0;
    assert_int_equal(weir_dump_stream_open(&st, r, i, from, s->rows - from, &err), WEIR_OK);
    for (;;) {
        assert_int_equal(weir_dump_stream_next(st, &b, &err), WEIR_OK);
        if (b.n == 0)
            break;
        assert_int_equal(b.row, row);
        assert_int_equal(b.column, 0);
        assert_int_equal(b.n_columns, width); /* narrow enough for whole rows */
        assert_int_equal(rr_wrong(s, p, b.data, b.row, b.n, NULL, b.column, b.n_columns), 0);
        row += b.n;
        seen += b.n * b.n_columns;
    }
    assert_int_equal(seen, (s->rows - from) * width);
    weir_dump_stream_close(st);
}

static void every_way(const rr_shape *s)
{
    char path[512];
    rr_write(fx_path(path, "read.h5"), s);
    weir_dump_reader *r = rr_open(path);
    assert_int_equal(weir_dump_rows(r), s->rows);
    assert_true(weir_dump_is_complete(r));
    for (int plain = 0; plain < 2; plain++) {
        weir_dump_read_plainly(r, plain);
        weir_dump_set_threads(r, s->threads);
        for (int p = 0; p < FX_POINTS; p++) {
            ranges(r, s, p);
            columns(r, s, p);
            streamed(r, s, p, 0);
            streamed(r, s, p, s->rows / 2);
        }
    }
    weir_dump_close(r);
}

static void many_rows(void **state)
{
    (void)state;
    every_way(&(rr_shape){.rows = 2500, .len = FX_CTX, .compress = 1, .threads = 2});
}

static void whole_bands(void **state)
{
    (void)state;
    every_way(&(rr_shape){.rows = 2048, .len = 32, .compress = 6, .threads = 3});
}

static void no_compression(void **state)
{
    (void)state;
    every_way(&(rr_shape){.rows = 1111, .len = 11, .compress = 0, .threads = 1});
}

static void one_row(void **state)
{
    (void)state;
    every_way(&(rr_shape){.rows = 1, .len = 1, .compress = 1, .threads = 2});
}

static void chosen_units(void **state)
{
    (void)state;
    every_way(&(rr_shape){.rows = 1030, .len = 30, .compress = 1, .threads = 2, .units = some_units, .n_units = 6});
}

/* What the tests above rest on: that a wrong value is seen. */
static void a_wrong_value_is_seen(void **state)
{
    (void)state;
    const rr_shape s = {.rows = 4, .len = 4};
    float row[FX_C];
    for (int c = 0; c < FX_C; c++)
        row[c] = rr_value(&s, 1, 2, c);
    assert_int_equal(rr_wrong(&s, 1, row, 2, 1, NULL, 0, FX_C), 0);
    assert_int_equal(rr_wrong(&s, 1, row, 3, 1, NULL, 0, FX_C), FX_C);
    row[17] = nextafterf(row[17], 1e9f);
    assert_int_equal(rr_wrong(&s, 1, row, 2, 1, NULL, 0, FX_C), 1);
    row[17] = -0.0f;
    const int64_t c = 3;
    assert_int_equal(rr_wrong(&s, 5, &row[17], 0, 1, &c, 0, 1), 1); /* 0 and -0 have other bits */
}

/* Scores and patterns of short passes in a long context: most chunks do not exist. */
static void chunks_that_are_absent(void **state)
{
    (void)state;
    enum { CTX = 200, LEN = 30, ROWS = 210 };
    char path[512];
    weir_dump *d = NULL;
    weir_dump_options o;
    weir_dump_header h = fx_header();
    weir_dump_options_init(&o);
    o.ctx = CTX;
    assert_int_equal(weir_dump_new(&d, fx_path(path, "absent.h5"), &h, &o, NULL), WEIR_OK);
    for (int p = 4; p < 6; p++)
        assert_int_equal(weir_dump_add_point(d, &fx_point[p], NULL, -1, NULL), WEIR_OK);
    for (int64_t row = 0; row < ROWS; row += LEN) {
        fx_pass pass;
        const weir_doc doc = {.text = {"x", 1}};
        assert_int_equal(weir_dump_doc(d, &doc, "arg", NULL), WEIR_OK);
        fx_pass_make(&pass, row, LEN, row / LEN, 0);
        assert_int_equal(fx_tokens(d, &pass, row / LEN, NULL), WEIR_OK);
        for (int p = 4; p < 6; p++) {
            const weir_value v = fx_fill(&pass, p, row);
            assert_int_equal(weir_dump_value(d, &v, NULL), WEIR_OK);
        }
        fx_pass_free(&pass);
    }
    assert_int_equal(weir_dump_commit(d, NULL, NULL), WEIR_OK);
    weir_dump_reader *r = rr_open(path);
    float *out = rr_floats(ROWS * FX_H * CTX), *column = rr_floats(ROWS);
    for (int i = 0; i < 2; i++)
        for (int plain = 0; plain < 2; plain++) {
            weir_dump_read_plainly(r, plain);
            assert_int_equal(weir_dump_hook_at(r, i)->width, FX_H * CTX);
            assert_int_equal(weir_dump_read(r, i, 0, ROWS, out, NULL), WEIR_OK);
            for (int64_t e = 0; e < ROWS * FX_H * CTX; e++) {
                const int64_t row = e / (FX_H * CTX), key = e % CTX, head = e / CTX % FX_H;
                const float masked = i == 0 ? -INFINITY : 0;
                const float want = key > row % LEN ? masked : fx_value(4 + i, row, head * 64 + key);
                assert_memory_equal(&out[e], &want, sizeof want);
            }
            for (int64_t c = 10; c < FX_H * CTX; c += 90) {
                assert_int_equal(weir_dump_read_column(r, i, c, 0, ROWS, column, NULL), WEIR_OK);
                for (int64_t row = 0; row < ROWS; row++)
                    assert_memory_equal(&column[row], &out[row * FX_H * CTX + c], sizeof *column);
            }
        }
    free(out);
    free(column);
    weir_dump_close(r);
}

/* Small steps through everything, as a tool does that walks over documents. */
static void small_steps(void **state)
{
    (void)state;
    char path[512];
    const rr_shape s = {.rows = 2300, .len = 23, .compress = 1, .threads = 2};
    rr_write(fx_path(path, "steps.h5"), &s);
    weir_dump_reader *r = rr_open(path);
    float *out = rr_floats(23 * FX_F);
    weir_err err = {0};
    for (int64_t row = 0; row < s.rows; row += 23)
        for (int p = 6; p < 8; p++) { /* turn about */
            const int i = weir_dump_find(r, fx_point[p].name);
            const int64_t width = weir_dump_hook_at(r, i)->width;
            float *big = p == 6 ? rr_floats(23 * width) : out;
            assert_int_equal(weir_dump_read(r, i, row, 23, big, &err), WEIR_OK);
            assert_int_equal(rr_wrong(&s, p, big, row, 23, NULL, 0, width), 0);
            if (p == 6)
                free(big);
        }
    free(out);
    weir_dump_close(r);
}

static void units_are_looked_up(void **state)
{
    (void)state;
    char path[512];
    const rr_shape s = {.rows = 5, .len = 5, .compress = 1, .units = some_units, .n_units = 6};
    rr_write(fx_path(path, "units.h5"), &s);
    weir_dump_reader *r = rr_open(path);
    const int i = weir_dump_find(r, fx_point[7].name), whole = weir_dump_find(r, fx_point[1].name);
    const weir_dump_hook *h = weir_dump_hook_at(r, i);
    assert_non_null(h->units);
    assert_memory_equal(h->units, some_units, sizeof some_units);
    assert_int_equal(h->layer, 10);
    assert_int_equal(weir_dump_hook_at(r, 0)->layer, -1);
    assert_int_equal(weir_dump_column(r, i, 65), 3);
    assert_int_equal(weir_dump_column(r, i, 66), -1);
    assert_int_equal(weir_dump_column(r, i, -1), -1);
    assert_null(weir_dump_hook_at(r, whole)->units);
    assert_int_equal(weir_dump_column(r, whole, 99), 99);
    assert_int_equal(weir_dump_column(r, whole, 100), -1);
    assert_int_equal(weir_dump_column(r, 99, 0), -1);
    weir_dump_close(r);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    char path[512];
    float out[FX_C];
    const rr_shape s = {.rows = 5, .len = 5, .compress = 1};
    weir_dump_stream *st;
    rr_write(fx_path(path, "arguments.h5"), &s);
    weir_dump_reader *r = rr_open(path);
    static const int64_t wrong[][2] = {{-1, 1}, {0, 6}, {5, 1}, {6, 0}, {1, INT64_MAX}, {0, -1}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_int_equal(weir_dump_read(r, 1, wrong[k][0], wrong[k][1], out, NULL), WEIR_E_ARG);
        assert_int_equal(weir_dump_read_column(r, 1, 0, wrong[k][0], wrong[k][1], out, NULL), WEIR_E_ARG);
        assert_int_equal(weir_dump_stream_open(&st, r, 1, wrong[k][0], wrong[k][1], NULL), WEIR_E_ARG);
        assert_null(st);
    }
    weir_err err = {0};
    assert_int_equal(weir_dump_read(r, FX_POINTS, 0, 1, out, NULL), WEIR_E_ARG);
    assert_int_equal(weir_dump_read_column(r, 1, FX_C, 0, 1, out, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "column 100 is asked of blocks.0.hook_resid_pre, which has 100"));
    assert_int_equal(weir_dump_read_column(r, 1, -1, 0, 1, out, NULL), WEIR_E_ARG);
    assert_int_equal(weir_dump_read(r, 1, 5, 0, out, NULL), WEIR_OK); /* nothing is asked */
    assert_int_equal(weir_dump_read_columns(r, 1, NULL, 0, 0, 5, out, NULL), WEIR_OK);
    weir_dump_stream_close(NULL);
    weir_dump_close(NULL);
    weir_dump_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_rows),
        cmocka_unit_test(whole_bands),
        cmocka_unit_test(no_compression),
        cmocka_unit_test(one_row),
        cmocka_unit_test(chosen_units),
        cmocka_unit_test(a_wrong_value_is_seen),
        cmocka_unit_test(chunks_that_are_absent),
        cmocka_unit_test(small_steps),
        cmocka_unit_test(units_are_looked_up),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

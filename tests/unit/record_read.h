/* Dumps to read back, made by the writer, and what each place of them holds. */
#ifndef RECORD_READ_H
#define RECORD_READ_H

#include <math.h>

#include "record_fixture.h"

/* Of reader.h, which needs HDF5's headers. */
void weir_dump_read_plainly(weir_dump_reader *r, bool plainly);

/* Documents of `len` rows each until there are `rows`, into all points of the fixture (units: selected ones of the
 * last). */
typedef struct rr_shape {
    int64_t rows, len;
    int compress, threads;
    const int64_t *units; /* of point 7; NULL: all */
    int64_t n_units;
    bool logprob, keep_part; /* keep_part: not completed */
} rr_shape;

static inline void rr_pass(weir_dump *d, int64_t first, int64_t n, int64_t doc)
{
    fx_pass pass;
    weir_err err = {0};
    fx_pass_make(&pass, first, n, doc, 0);
    assert_int_equal(fx_tokens(d, &pass, doc, &err), WEIR_OK);
    for (int p = 0; p < FX_POINTS; p++) {
        weir_value v = fx_fill(&pass, p, first);
        assert_int_equal(weir_dump_value(d, &v, &err), WEIR_OK);
    }
    fx_pass_free(&pass);
}

static inline weir_dump *rr_create(const char *path, const rr_shape *s)
{
    weir_dump *d = NULL;
    weir_dump_options o;
    weir_dump_header h = fx_header();
    weir_err err = {0};
    weir_dump_options_init(&o);
    o.compress = s->compress;
    o.threads = s->threads;
    o.logprob = s->logprob;
    o.force = true;
    unlink(path);
    if (weir_dump_new(&d, path, &h, &o, &err))
        fail_msg("%s", err.msg);
    for (int p = 0; p < FX_POINTS; p++)
        assert_int_equal(
            weir_dump_add_point(d, &fx_point[p], p == 7 ? s->units : NULL, p == 7 && s->units ? s->n_units : -1, &err),
            WEIR_OK);
    return d;
}

static inline void rr_write(const char *path, const rr_shape *s)
{
    weir_err err = {0};
    weir_dump *d = rr_create(path, s);
    for (int64_t row = 0, doc = 0; row < s->rows; row += s->len, doc++) {
        weir_doc text = {.text = {"x", 1}, .source = doc % 2, .byte_off = 100 * doc, .byte_len = 7};
        assert_int_equal(weir_dump_doc(d, &text, doc % 2 ? "b.txt" : "a.txt", &err), WEIR_OK);
        rr_pass(d, row, s->rows - row < s->len ? s->rows - row : s->len, doc);
    }
    if (s->keep_part)
        weir_dump_abort(d, true);
    else if (weir_dump_commit(d, NULL, &err))
        fail_msg("%s", err.msg);
}

/* What the dump holds at column `column` of row `row` of point p. */
static inline float rr_value(const rr_shape *s, int p, int64_t row, int64_t column)
{
    const weir_site site = fx_point[p].site;
    const bool keyed = site == WEIR_SITE_SCORES || site == WEIR_SITE_PATTERN;
    const int64_t size = fx_point[p].size;
    if (p == 7 && s->units)
        column = s->units[column];
    if (keyed && column % size > row % s->len)
        return site == WEIR_SITE_SCORES ? -INFINITY : 0;
    return fx_value(p, row, column / size * 64 + column % size);
}

/* Values of out [n, n_columns] that are not those of the dump, bit for bit. column NULL: from `first` on. */
static inline int64_t rr_wrong(const rr_shape *s, int p, const float *out, int64_t row, int64_t n,
                               const int64_t *column, int64_t first, int64_t n_columns)
{
    int64_t bad = 0;
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < n_columns; c++) {
            const float want = rr_value(s, p, row + r, column ? column[c] : first + c);
            bad += memcmp(&want, &out[r * n_columns + c], sizeof want) != 0;
        }
    return bad;
}

static inline weir_dump_reader *rr_open(const char *path)
{
    weir_dump_reader *r = NULL;
    weir_err err = {0};
    char line[1024];
    if (weir_dump_open(&r, path, &err))
        fail_msg("%s", weir_err_line(&err, line, sizeof line));
    return r;
}

static inline float *rr_floats(int64_t n)
{
    float *x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = 12345.0f; /* to be overwritten */
    return x;
}

#endif

/* Writes the dump that tests/cli/test_dump_files.py looks at with other people's programs, and reads what it makes of
 * it. test_record_sample write DIR     sample.h5 in DIR test_record_sample read FILE     "rows R" and one line a hook
 * on stdout, or one line on stderr and exit 1 Without arguments: a test of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>

#include "record_fixture.h"

enum { DOCS = 40, ROWS_PER_DOC = 30 };

static weir_status put_doc(weir_dump *d, int i, weir_err *err)
{
    char label[16];
    snprintf(label, sizeof label, "d%d", i);
    const weir_field fields[] = {
        {.name = {"n", 1}, .type = WEIR_FIELD_INT, .i = i},
        {.name = {"score", 5}, .type = WEIR_FIELD_FLOAT, .f = i / 4.0},
        {.name = {"good", 4}, .type = WEIR_FIELD_BOOL, .i = i % 2},
        {.name = {"a/b", 3}, .type = WEIR_FIELD_STRING, .str = {label, strlen(label)}},
    };
    weir_doc doc = {
        .source = i < DOCS / 2 ? 0 : 1, .byte_off = 100 * i, .byte_len = 90, .fields = fields, .n_fields = 4};
    if (i == DOCS - 1)
        doc.n_fields = 0; /* lacks them all */
    return weir_dump_doc(d, &doc, doc.source ? "second.jsonl" : "first.jsonl", err);
}

/* One document a pass; the values of row r of point p are fx_value(p, r, element). */
static weir_status put_pass(weir_dump *d, int i, weir_err *err)
{
    fx_pass pass;
    weir_status st = put_doc(d, i, err);
    fx_pass_make(&pass, (int64_t)i * ROWS_PER_DOC, ROWS_PER_DOC, i, 0);
    if (!st)
        st = fx_tokens(d, &pass, i, err);
    for (int p = 0; p < FX_POINTS && !st; p++) {
        weir_value v = fx_fill(&pass, p, (int64_t)i * ROWS_PER_DOC);
        st = weir_dump_value(d, &v, err);
    }
    fx_pass_free(&pass);
    return st;
}

static weir_status write_sample(const char *dir, weir_err *err)
{
    static const int64_t units[] = {3, 150};
    char path[512];
    weir_dump *d = NULL;
    weir_dump_options o;
    weir_dump_header h = fx_header();
    snprintf(path, sizeof path, "%s/sample.h5", dir);
    weir_dump_options_init(&o);
    o.logprob = true;
    o.command_line = "trace --layer 0 caf\xc3\xa9";
    weir_status st = weir_dump_new(&d, path, &h, &o, err);
    for (int p = 0; p < FX_POINTS && !st; p++) {
        bool some = fx_point[p].site == WEIR_SITE_MLP_POST;
        st = weir_dump_add_point(d, &fx_point[p], some ? units : NULL, some ? 2 : -1, err);
    }
    for (int i = 0; i < DOCS && !st; i++)
        st = put_pass(d, i, err);
    if (st) {
        weir_dump_abort(d, false);
        return st;
    }
    return weir_dump_commit(d, NULL, err);
}

/* Reads every row of every hook once. */
static weir_status read_all(const char *path, FILE *out, weir_err *err)
{
    weir_dump_reader *r = NULL;
    weir_status st = weir_dump_open(&r, path, err);
    if (st)
        return st;
    fprintf(out, "rows %" PRId64 "\n", weir_dump_rows(r));
    for (int i = 0; i < weir_dump_n_hooks(r) && !st; i++) {
        const weir_dump_hook *h = weir_dump_hook_at(r, i);
        double sum = 0;
        float *row = h->width < 1 << 20 ? malloc((size_t)h->width * sizeof *row) : NULL;
        for (int64_t k = 0; k < h->rows && row && !st; k++) {
            st = weir_dump_read(r, i, k, 1, row, err);
            sum += st ? 0 : (double)row[0];
        }
        fprintf(out, "%s rows %" PRId64 " width %" PRId64 " heads %" PRId64 " letters %s sum %.6g\n", h->name, h->rows,
                h->width, h->heads, h->letters, sum);
        free(row);
    }
    for (int64_t k = 0; k < weir_dump_rows(r) && !st; k++) {
        int32_t id;
        st = weir_dump_read_ids(r, k, 1, &id, err);
    }
    weir_dump_close(r);
    return st;
}

static void sample_is_written_and_read(void **state)
{
    (void)state;
    weir_err err = {0};
    assert_int_equal(write_sample(scratch_root, &err), WEIR_OK);
    FILE *sink = fopen("/dev/null", "w");
    assert_int_equal(read_all(scratch("sample.h5"), sink, &err), WEIR_OK);
    assert_int_equal(read_all(scratch("absent.h5"), sink, &err), WEIR_E_IO);
    assert_non_null(strstr(err.msg, "No such file"));
    fclose(sink);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sample_is_written_and_read)};
    char line[1024];
    weir_err err = {0};
    if (argc == 1)
        return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
    weir_status st = argc != 3                   ? WEIR_E_ARG
                     : !strcmp(argv[1], "write") ? write_sample(argv[2], &err)
                                                 : read_all(argv[2], stdout, &err);
    if (st)
        fprintf(stderr, "%s\n", weir_err_line(&err, line, sizeof line));
    return st ? 1 : 0;
}

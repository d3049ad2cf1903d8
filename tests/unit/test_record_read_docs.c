/* Tokens, texts, documents and fields of a dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record_read.h"

static void columns_of_tokens(void **state)
{
    (void)state;
    enum { ROWS = 1500, LEN = 30 };
    static int32_t id[ROWS];
    static int64_t doc[ROWS], pos[ROWS], ctx_pos[ROWS], byte_off[ROWS], byte_len[ROWS];
    static uint8_t flags[ROWS];
    static float logprob[ROWS];
    char path[512];
    for (int with = 0; with < 2; with++) {
        const rr_shape s = {.rows = ROWS, .len = LEN, .compress = 1, .threads = 2, .logprob = with};
        rr_write(fx_path(path, "tokens.h5"), &s);
        weir_dump_reader *r = rr_open(path);
        assert_int_equal(weir_dump_has_logprob(r), with);
        const weir_token_columns all = {id, doc, pos, ctx_pos, byte_off, byte_len, flags, logprob};
        for (int64_t from = 0; from < ROWS; from += 700) {
            const int64_t n = ROWS - from;
            assert_int_equal(weir_dump_read_tokens(r, from, n, &all, NULL), WEIR_OK);
            for (int64_t i = 0; i < n; i++) {
                const int64_t row = from + i, at = row % LEN;
                assert_int_equal(id[i], row % 5);
                assert_int_equal(doc[i], row / LEN);
                assert_true(pos[i] == at && ctx_pos[i] == at && byte_off[i] == 4 * at && byte_len[i] == 4);
                assert_int_equal(flags[i], at == 0);
                assert_true(with ? logprob[i] == -0.5f * (float)at : isnan(logprob[i]));
            }
        }
        id[0] = -7;
        assert_int_equal(weir_dump_read_tokens(r, 3, 1, &(weir_token_columns){.pos = pos}, NULL), WEIR_OK);
        assert_true(id[0] == -7 && pos[0] == 3); /* only what is asked for */
        assert_int_equal(weir_dump_read_tokens(r, 1, ROWS, &all, NULL), WEIR_E_ARG);
        weir_dump_close(r);
    }
}

static void texts(void **state)
{
    (void)state;
    char path[512];
    const rr_shape s = {.rows = 12, .len = 6, .compress = 1};
    weir_str t = {NULL, 0};
    weir_err err = {0};
    rr_write(fx_path(path, "text.h5"), &s);
    weir_dump_reader *r = rr_open(path);
    for (int32_t id = 0; id < 5; id++) {
        const weir_str want = fx_vocab(NULL, id);
        assert_int_equal(weir_dump_token_bytes(r, id, &t, &err), WEIR_OK);
        assert_int_equal(t.n, want.n);
        assert_memory_equal(t.p, want.p, want.n);
    }
    assert_int_equal(weir_dump_token_bytes(r, 5, &t, &err), WEIR_E_FORMAT);
    assert_non_null(strstr(err.msg, "no token 5"));
    assert_int_equal(weir_dump_token_bytes(r, -1, &t, NULL), WEIR_E_FORMAT);
    /* Rows 0 to 5: "", " the", "café", "\xff", "\n", ""; row 0 is BOS. Row 6, token 1, is BOS too. */
    static const char want[] = " thecaf\xc3\xa9\xff\n"
                               "caf\xc3\xa9\xff\n the";
    assert_int_equal(weir_dump_read_text(r, 0, 12, &t, NULL), WEIR_OK);
    assert_int_equal(t.n, sizeof want - 1);
    assert_memory_equal(t.p, want, t.n);
    assert_int_equal(weir_dump_read_text(r, 6, 0, &t, NULL), WEIR_OK);
    assert_int_equal(t.n, 0);
    assert_int_equal(weir_dump_read_text(r, 6, 7, &t, NULL), WEIR_E_ARG);
    weir_dump_close(r);
}

static void documents(void **state)
{
    (void)state;
    char path[512];
    const rr_shape s = {.rows = 3000, .len = 2, .compress = 1, .threads = 2};
    weir_dump_doc_rows d;
    rr_write(fx_path(path, "docs.h5"), &s);
    weir_dump_reader *r = rr_open(path);
    assert_int_equal(weir_dump_n_docs(r), 1500);
    for (int64_t i = 0; i < 1500; i += 7) {
        assert_int_equal(weir_dump_read_doc(r, i, &d, NULL), WEIR_OK);
        assert_true(d.row == 2 * i && d.n == 2 && d.byte_off == 100 * i && d.byte_len == 7);
        assert_int_equal(d.source.n, 5);
        assert_memory_equal(d.source.p, i % 2 ? "b.txt" : "a.txt", 5);
    }
    assert_int_equal(weir_dump_read_doc(r, 1500, &d, NULL), WEIR_E_ARG);
    assert_int_equal(weir_dump_read_doc(r, -1, &d, NULL), WEIR_E_ARG);
    weir_dump_close(r);
}

static weir_field field(const char *name, weir_field_type type)
{
    return (weir_field){.name = {name, strlen(name)}, .type = type};
}

static void write_fields(const char *path)
{
    weir_dump *d;
    weir_dump_options o;
    weir_dump_header h = fx_header();
    weir_dump_options_init(&o);
    o.force = true;
    weir_field f[] = {field("n", WEIR_FIELD_INT),    field("x", WEIR_FIELD_FLOAT), field("a/b%", WEIR_FIELD_STRING),
                      field("yes", WEIR_FIELD_BOOL), field("", WEIR_FIELD_INT),    field(".", WEIR_FIELD_STRING)};
    f[0].i = -5;
    f[1].f = 0.25;
    f[2].str = (weir_str){"caf\xc3\xa9", 5};
    f[3].i = 1;
    f[4].i = 11;
    f[5].str = (weir_str){"", 0};
    weir_doc first = {.fields = f, .n_fields = 6}, none = {.n_fields = 0};
    assert_int_equal(weir_dump_new(&d, path, &h, &o, NULL), WEIR_OK);
    assert_int_equal(weir_dump_doc(d, &first, "a.jsonl", NULL), WEIR_OK);
    assert_int_equal(weir_dump_doc(d, &none, "a.jsonl", NULL), WEIR_OK);
    assert_int_equal(weir_dump_commit(d, NULL, NULL), WEIR_OK);
}

static void fields(void **state)
{
    (void)state;
    char path[512];
    weir_field v;
    bool there;
    write_fields(fx_path(path, "fields.h5"));
    weir_dump_reader *r = rr_open(path);
    static const char *const names[] = {"", ".", "a/b%", "n", "x", "yes"};
    assert_int_equal(weir_dump_n_fields(r), 6);
    for (int k = 0; k < 6; k++)
        assert_true(weir_dump_find_field(r, names[k]) >= 0);
    assert_int_equal(weir_dump_find_field(r, "z"), -1);
    assert_null(weir_dump_field_at(r, 6));
    assert_int_equal(weir_dump_field_at(r, weir_dump_find_field(r, "yes"))->type, WEIR_FIELD_BOOL);
    assert_int_equal(weir_dump_read_field(r, weir_dump_find_field(r, "n"), 0, &v, &there, NULL), WEIR_OK);
    assert_true(there && v.type == WEIR_FIELD_INT && v.i == -5);
    assert_int_equal(weir_dump_read_field(r, weir_dump_find_field(r, "x"), 0, &v, &there, NULL), WEIR_OK);
    assert_true(there && v.f == 0.25);
    assert_int_equal(weir_dump_read_field(r, weir_dump_find_field(r, "yes"), 0, &v, &there, NULL), WEIR_OK);
    assert_true(there && v.i == 1);
    assert_int_equal(weir_dump_read_field(r, weir_dump_find_field(r, ""), 0, &v, &there, NULL), WEIR_OK);
    assert_true(there && v.i == 11 && v.name.n == 0);
    assert_int_equal(weir_dump_read_field(r, weir_dump_find_field(r, "a/b%"), 0, &v, &there, NULL), WEIR_OK);
    assert_true(there && v.str.n == 5 && !memcmp(v.str.p, "caf\xc3\xa9", 5));
    for (int k = 0; k < 6; k++) { /* the second document has none of them */
        const int i = weir_dump_find_field(r, names[k]);
        assert_int_equal(weir_dump_read_field(r, i, 1, &v, &there, NULL), WEIR_OK);
        assert_true(v.type == WEIR_FIELD_STRING ? there && v.str.n == 0 : !there);
    }
    assert_int_equal(weir_dump_read_field(r, 0, 2, &v, &there, NULL), WEIR_E_ARG);
    assert_int_equal(weir_dump_read_field(r, 6, 0, &v, &there, NULL), WEIR_E_ARG);
    weir_dump_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_tokens),
        cmocka_unit_test(texts),
        cmocka_unit_test(documents),
        cmocka_unit_test(fields),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Dumps written without a model and read back: every bit, the rules of NAME and NAME.part, and what must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "record_fixture.h"

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static weir_dump *create(const char *path, const weir_dump_options *o, int first_point, int n_points)
{
    weir_dump *d = NULL;
    weir_err err = {0};
    weir_dump_header h = fx_header();
    if (weir_dump_new(&d, path, &h, o, &err))
        fail_msg("%s", err.msg);
    for (int p = first_point; p < first_point + n_points; p++)
        assert_int_equal(weir_dump_add_point(d, &fx_point[p], NULL, -1, &err), WEIR_OK);
    return d;
}

static void add_doc(weir_dump *d)
{
    weir_doc doc = {.text = {"x", 1}, .byte_off = 3, .byte_len = 1};
    assert_int_equal(weir_dump_doc(d, &doc, "arg", NULL), WEIR_OK);
}

/* One document of n rows to all of the first points. */
static void add_pass(weir_dump *d, int64_t first, int64_t n, int64_t doc, int drop, int first_point, int n_points)
{
    fx_pass pass;
    weir_err err = {0};
    fx_pass_make(&pass, first, n, doc, drop);
    assert_int_equal(fx_tokens(d, &pass, doc, &err), WEIR_OK);
    for (int p = first_point; p < first_point + n_points; p++) {
        weir_value v = fx_fill(&pass, p, first);
        assert_int_equal(weir_dump_wants(d, v.point), WEIR_READ);
        assert_int_equal(weir_dump_value(d, &v, &err), WEIR_OK);
    }
    fx_pass_free(&pass);
}

/* What row `row` of a dump made of passes of `len` rows holds at element e of point p, keys expanded to FX_CTX. */
static float expected(int p, int64_t row, int64_t e, int64_t len)
{
    int64_t size = fx_size(p, FX_CTX), pos = row % len;
    if (fx_point[p].site != WEIR_SITE_SCORES && fx_point[p].site != WEIR_SITE_PATTERN)
        return fx_value(p, row, e / size * 64 + e % size);
    if (e % FX_CTX > pos)
        return fx_point[p].site == WEIR_SITE_SCORES ? -INFINITY : 0;
    return fx_value(p, row, e / FX_CTX * 64 + e % FX_CTX);
}

/* Elements of a hook that differ in their bits from what was written. */
static int64_t differences(weir_dump_reader *r, int p, int64_t rows, int64_t step, int64_t len)
{
    weir_err err = {0};
    int i = weir_dump_find(r, fx_point[p].name);
    const weir_dump_hook *h = weir_dump_hook_at(r, i);
    int64_t bad = 0;
    float *out = malloc((size_t)(step * h->width) * sizeof *out);
    for (int64_t row = 0; row < rows; row += step) {
        int64_t n = rows - row < step ? rows - row : step;
        if (weir_dump_read(r, i, row, n, out, &err))
            fail_msg("%s", err.msg);
        for (int64_t k = 0; k < n; k++)
            for (int64_t e = 0; e < h->width; e++) {
                float want = expected(p, row + k, e, len);
                bad += memcmp(&want, &out[k * h->width + e], sizeof want) != 0;
            }
    }
    free(out);
    return bad;
}

static void round_trip(int level, int threads, int passes, int64_t len)
{
    char path[512];
    weir_dump_options o;
    weir_dump_summary s;
    weir_dump_reader *r = NULL;
    weir_err err = {0};
    weir_dump_options_init(&o);
    o.compress = level;
    o.threads = threads;
    unlink(fx_path(path, "trip.h5"));
    weir_dump *d = create(path, &o, 0, FX_POINTS);
    for (int i = 0; i < passes; i++) {
        add_doc(d);
        add_pass(d, i * len, len, i, 0, 0, FX_POINTS);
    }
    assert_false(exists(path));
    assert_int_equal(weir_dump_commit(d, &s, &err), WEIR_OK);
    assert_int_equal(s.rows, passes * len);
    assert_int_equal(s.docs, passes);
    assert_int_equal(s.datasets, FX_POINTS);
    assert_int_equal(s.raw_bytes,
                     s.rows * 4 * (FX_C + FX_C + 1 + FX_H * FX_D + 2 * FX_H * FX_CTX + FX_H * FX_C + FX_F));
    assert_true(s.file_bytes > 0);
    assert_int_equal(weir_dump_open(&r, path, &err), WEIR_OK);
    assert_int_equal(weir_dump_rows(r), passes * len);
    assert_int_equal(weir_dump_n_hooks(r), FX_POINTS);
    for (int p = 0; p < FX_POINTS; p++) {
        const weir_dump_hook *h = weir_dump_hook_at(r, p);
        assert_string_equal(h->name, fx_point[p].name); /* in the order of declaration */
        assert_string_equal(h->letters, fx_point[p].letters);
        assert_int_equal(h->heads, fx_point[p].heads);
        assert_int_equal(h->size, fx_point[p].size);
        assert_int_equal(differences(r, p, passes * len, 300, len), 0);
    }
    if (passes > 1) /* the comparison can fail */
        assert_int_not_equal(differences(r, 1, len, len, len + 1) + differences(r, 5, passes * len, 300, len + 1), 0);
    weir_dump_close(r);
}

static void every_bit_comes_back(void **state)
{
    (void)state;
    round_trip(1, 2, 60, FX_CTX); /* 2400 rows: two full bands and a tail */
    round_trip(0, 1, 3, 17);
    round_trip(6, 3, 1, 1);
    round_trip(1, 1, 64, 32); /* 2048 rows: no tail */
}

/* The same rows give the same chunks whatever the number of threads. */
static void threads_do_not_show(void **state)
{
    (void)state;
    int64_t bytes[3];
    for (int t = 0; t < 3; t++) {
        char path[512];
        weir_dump_options o;
        weir_dump_summary s;
        weir_dump_options_init(&o);
        o.threads = t + 1;
        weir_dump *d = create(fx_path(path, "threads.h5"), &o, 7, 1);
        for (int i = 0; i < 40; i++) {
            add_doc(d);
            add_pass(d, i * 30, 30, i, 0, 7, 1);
        }
        assert_int_equal(weir_dump_commit(d, &s, NULL), WEIR_OK);
        bytes[t] = s.file_bytes;
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_int_equal(bytes[0], bytes[2]);
}

static void only_kept_rows_are_written(void **state)
{
    (void)state;
    char path[512];
    weir_dump_options o;
    weir_dump_reader *r = NULL;
    float row[FX_C];
    int32_t ids[20];
    weir_dump_options_init(&o);
    weir_dump *d = create(fx_path(path, "keep.h5"), &o, 0, 2);
    add_doc(d);
    add_pass(d, 0, 20, 0, 4, 0, 2);
    assert_int_equal(weir_dump_commit(d, NULL, NULL), WEIR_OK);
    assert_int_equal(weir_dump_open(&r, path, NULL), WEIR_OK);
    assert_int_equal(weir_dump_rows(r), 15);
    assert_int_equal(weir_dump_read_ids(r, 0, 15, ids, NULL), WEIR_OK);
    for (int64_t i = 0, k = 0; i < 20; i++) {
        if (i % 4 == 3)
            continue;
        assert_int_equal(weir_dump_read(r, 1, k, 1, row, NULL), WEIR_OK);
        assert_true(row[5] == fx_value(1, i, 5));
        assert_int_equal(ids[k++], i % 5);
    }
    weir_dump_close(r);
}

static void units_are_chosen(void **state)
{
    (void)state;
    static const int64_t units[] = {0, 63, 64, 199}, keys[] = {1, FX_CTX + 3, 2 * FX_CTX + 39};
    char path[512];
    weir_dump_options o;
    weir_dump_reader *r = NULL;
    weir_err err = {0};
    float row[4];
    weir_dump_options_init(&o);
    weir_dump *d = create(fx_path(path, "units.h5"), &o, 0, 0);
    assert_int_equal(weir_dump_add_point(d, &fx_point[7], units, 4, &err), WEIR_OK);
    assert_int_equal(weir_dump_add_point(d, &fx_point[4], keys, 3, &err), WEIR_OK);
    add_doc(d);
    add_pass(d, 0, 10, 0, 0, 7, 1);
    fx_pass pass;
    fx_pass_make(&pass, 0, 10, 0, 0);
    weir_value v = fx_fill(&pass, 4, 0);
    assert_int_equal(weir_dump_value(d, &v, &err), WEIR_OK);
    fx_pass_free(&pass);
    assert_int_equal(weir_dump_commit(d, NULL, &err), WEIR_OK);
    assert_int_equal(weir_dump_open(&r, path, &err), WEIR_OK);
    assert_string_equal(weir_dump_hook_at(r, 0)->letters, "T U");
    assert_int_equal(weir_dump_read(r, 0, 9, 1, row, &err), WEIR_OK);
    for (int i = 0; i < 4; i++)
        assert_true(row[i] == fx_value(7, 9, units[i]));
    assert_int_equal(weir_dump_read(r, 1, 9, 1, row, &err), WEIR_OK);
    assert_true(row[0] == fx_value(4, 9, 1) && row[1] == fx_value(4, 9, 64 + 3));
    assert_true(row[2] == -INFINITY); /* a key that the pass did not have */
    weir_dump_close(r);
    d = create(path, &o, 0, 0);
    const int64_t beyond = FX_F;
    assert_int_equal(weir_dump_add_point(d, &fx_point[7], &beyond, 1, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "no unit 200"));
    weir_dump_abort(d, false);
}

static void a_hook_that_never_fired_is_named(void **state)
{
    (void)state;
    char path[512], part[512];
    weir_dump_options o;
    weir_err err = {0};
    weir_dump_reader *r = NULL;
    weir_dump_options_init(&o);
    weir_dump *d = create(fx_path(path, "silent.h5"), &o, 0, 2);
    add_doc(d);
    add_pass(d, 0, 5, 0, 0, 0, 1);
    assert_int_equal(weir_dump_commit(d, NULL, &err), WEIR_E_HOOK);
    assert_non_null(strstr(err.msg, "blocks.0.hook_resid_pre never fired"));
    assert_non_null(strstr(err.msg, "(the rows are in "));
    assert_false(exists(path));
    assert_true(exists(fx_path(part, "silent.h5.part"))); /* readable, and not complete */
    memset(&err, 0, sizeof err);
    assert_int_equal(weir_dump_open(&r, part, &err), WEIR_OK);
    assert_string_equal(weir_dump_attr(r, "complete"), "0");
    assert_int_equal(weir_dump_hook_at(r, 0)->rows, 5);
    assert_int_equal(weir_dump_hook_at(r, 1)->rows, 0);
    assert_int_equal(weir_dump_rows(r), 0);
    weir_dump_close(r);
}

static void rows_that_do_not_match_are_refused(void **state)
{
    (void)state;
    char path[512];
    weir_dump_options o;
    weir_err err = {0};
    weir_dump_options_init(&o);
    weir_dump *d = create(fx_path(path, "rows.h5"), &o, 0, 1);
    add_doc(d);
    add_pass(d, 0, 5, 0, 0, 0, 1);
    add_pass(d, 5, 2, 0, 0, 0, 0); /* tokens without values */
    assert_int_equal(weir_dump_commit(d, NULL, &err), WEIR_E_HOOK);
    assert_non_null(strstr(err.msg, "hook_embed has 5 rows, the dump has 7 tokens"));
}

/* Documents are declared ahead, some have no rows, rows of an earlier one may not come back. */
static void documents_stand_in_order(void **state)
{
    (void)state;
    char path[512];
    weir_dump_options o;
    weir_err err = {0};
    fx_pass pass;
    weir_dump_options_init(&o);
    o.force = true;
    for (int wrong = 0; wrong < 3; wrong++) {
        weir_dump *d = create(fx_path(path, "docs.h5"), &o, 0, 0);
        for (int i = 0; i < 4; i++)
            add_doc(d);
        fx_pass_make(&pass, 0, 6, 0, 0);
        assert_int_equal(fx_tokens(d, &pass, 2, NULL), WEIR_OK);
        memset(&err, 0, sizeof err);
        if (wrong) {
            assert_int_equal(fx_tokens(d, &pass, wrong == 1 ? 1 : 4, &err), WEIR_E_ARG);
            assert_non_null(
                strstr(err.msg, wrong == 1 ? "rows of document 2 stand before it" : "has not been declared"));
            weir_dump_abort(d, false);
        } else {
            assert_int_equal(fx_tokens(d, &pass, 3, NULL), WEIR_OK);
            assert_int_equal(weir_dump_commit(d, NULL, &err), WEIR_OK);
        }
        fx_pass_free(&pass);
    }
}

static void fields_of_other_types_are_counted(void **state)
{
    (void)state;
    char path[512];
    weir_dump_options o;
    weir_dump_summary s;
    weir_dump_options_init(&o);
    weir_dump *d = create(fx_path(path, "fields.h5"), &o, 0, 0);
    weir_field first[] = {{.name = {"n", 1}, .type = WEIR_FIELD_INT, .i = 5},
                          {.name = {"x", 1}, .type = WEIR_FIELD_FLOAT, .f = 0.5},
                          {.name = {"a/b", 3}, .type = WEIR_FIELD_STRING, .str = {"one", 3}},
                          {.name = {"list", 4}, .type = WEIR_FIELD_OTHER, .str = {"[]", 2}}};
    weir_field second[] = {{.name = {"n", 1}, .type = WEIR_FIELD_STRING, .str = {"5", 1}}, /* another type */
                           {.name = {"x", 1}, .type = WEIR_FIELD_INT, .i = 2},             /* fits */
                           {.name = {"new", 3}, .type = WEIR_FIELD_BOOL, .i = 1}};         /* new */
    weir_doc doc = {.fields = first, .n_fields = 4};
    assert_int_equal(weir_dump_doc(d, &doc, "a.jsonl", NULL), WEIR_OK);
    doc = (weir_doc){.fields = second, .n_fields = 3};
    assert_int_equal(weir_dump_doc(d, &doc, "a.jsonl", NULL), WEIR_OK);
    assert_int_equal(weir_dump_commit(d, &s, NULL), WEIR_OK);
    assert_int_equal(s.dropped_fields, 1 + 2);
    assert_string_equal(s.dropped_name[0], "list");
    assert_string_equal(s.dropped_name[1], "n");
    assert_string_equal(s.dropped_name[2], "new");
    assert_string_equal(s.dropped_name[3], "");
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static weir_status try_create(const char *path, bool force, weir_err *err)
{
    weir_dump *d = NULL;
    weir_dump_options o;
    weir_dump_header h = fx_header();
    memset(err, 0, sizeof *err);
    weir_dump_options_init(&o);
    o.force = force;
    weir_status st = weir_dump_new(&d, path, &h, &o, err);
    if (st)
        assert_null(d);
    else
        assert_int_equal(weir_dump_commit(d, NULL, err), WEIR_OK);
    return st;
}

static void only_our_files_are_replaced(void **state)
{
    (void)state;
    char path[512], part[512], sub[512];
    weir_err err;
    fx_path(path, "name.h5");
    fx_path(part, "name.h5.part");
    write_text(path, "precious\n");
    assert_int_equal(try_create(path, true, &err), WEIR_E_ARG); /* force does not help */
    assert_non_null(strstr(err.msg, "not replaced"));
    assert_string_equal(err.file, path);
    assert_false(exists(part));
    unlink(path);
    assert_int_equal(try_create(path, false, &err), WEIR_OK);
    assert_int_equal(try_create(path, false, &err), WEIR_OK); /* ours */
    write_text(part, "half a dump");
    assert_int_equal(try_create(path, false, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "name.h5.part exists"));
    assert_true(exists(part));
    assert_int_equal(try_create(path, true, &err), WEIR_OK);
    assert_false(exists(part));
    fx_path(sub, "missing/name.h5");
    assert_int_equal(try_create(sub, false, &err), WEIR_E_IO);
    assert_non_null(strstr(err.msg, "No such file or directory"));
    assert_int_equal(try_create(scratch_root, false, &err), WEIR_E_ARG);
}

static void abort_keeps_or_removes(void **state)
{
    (void)state;
    char path[512], part[512];
    weir_dump_options o;
    weir_dump_reader *r = NULL;
    weir_dump_options_init(&o);
    fx_path(part, "abort.h5.part");
    for (int keep = 0; keep < 2; keep++) {
        weir_dump *d = create(fx_path(path, "abort.h5"), &o, 0, 1);
        add_doc(d);
        add_pass(d, 0, 7, 0, 0, 0, 1);
        weir_dump_abort(d, keep);
        assert_false(exists(path));
        assert_int_equal(exists(part), keep);
    }
    assert_int_equal(weir_dump_open(&r, part, NULL), WEIR_OK);
    assert_int_equal(weir_dump_rows(r), 7);
    assert_int_equal(differences(r, 0, 7, 7, 7), 0);
    weir_dump_close(r);
    weir_dump_abort(NULL, false);
}

/* A dump whose tokens come from the passes. */
static void passes_alone_suffice(void **state)
{
    (void)state;
    char path[512];
    weir_dump_options o;
    weir_dump_reader *r = NULL;
    weir_err err = {0};
    fx_pass pass;
    weir_dump_options_init(&o);
    o.from_passes = true;
    weir_dump *d = create(fx_path(path, "passes.h5"), &o, 1, 1);
    for (int i = 0; i < 3; i++) {
        fx_pass_make(&pass, i * 8, 8, i == 2 ? 7 : 4, 0); /* tags 4, 4, 7: two documents */
        assert_int_equal(weir_dump_pass(d, &pass.rows, &err), WEIR_OK);
        weir_value v = fx_fill(&pass, 1, i * 8);
        assert_int_equal(weir_dump_value(d, &v, &err), WEIR_OK);
        fx_pass_free(&pass);
    }
    assert_int_equal(weir_dump_finish(d, &err), WEIR_OK);
    weir_dump_abort(d, false); /* frees; the file stays */
    assert_int_equal(weir_dump_open(&r, path, &err), WEIR_OK);
    assert_int_equal(weir_dump_rows(r), 24);
    assert_int_equal(differences(r, 1, 24, 24, 8), 0);
    weir_dump_close(r);
    o.force = true;
    d = create(path, &o, 1, 1);
    fx_pass_make(&pass, 0, 8, 4, 0);
    assert_int_equal(weir_dump_pass(d, &pass.rows, &err), WEIR_OK);
    pass.tag[0] = 3;
    assert_int_equal(weir_dump_pass(d, &pass.rows, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "sequence 3 comes after sequence 4"));
    fx_pass_free(&pass);
    weir_dump_abort(d, false);
}

static void shapes_are_checked(void **state)
{
    (void)state;
    char path[512];
    weir_dump_options o;
    weir_err err = {0};
    fx_pass pass;
    weir_dump_options_init(&o);
    weir_dump *d = create(fx_path(path, "shape.h5"), &o, 4, 1);
    fx_pass_make(&pass, 0, FX_CTX + 1, 0, 0);
    weir_value v = fx_fill(&pass, 4, 0);
    assert_int_equal(weir_dump_value(d, &v, &err), WEIR_E_SHAPE);
    assert_non_null(strstr(err.msg, "41 keys"));
    memset(&err, 0, sizeof err);
    assert_int_equal(weir_dump_value(d, &v, &err), WEIR_E_SHAPE); /* nothing more after a failure */
    assert_non_null(strstr(err.msg, "an earlier write"));
    v.point = &fx_point[0];
    memset(&err, 0, sizeof err);
    assert_int_equal(weir_dump_value(d, &v, &err), WEIR_E_HOOK);
    fx_pass_free(&pass);
    weir_dump_abort(d, false);
}

static void attributes_are_text(void **state)
{
    (void)state;
    char path[512];
    weir_dump_options o;
    weir_dump_reader *r = NULL;
    weir_dump_options_init(&o);
    o.ctx = 32;
    o.stride = 16;
    o.bos = "yes";
    o.command_line = "trace --layer 6 'caf\xc3\xa9'";
    o.kernel = "ref";
    o.run_threads = 2;
    o.interventions = "[\"ablate:L0N1\"]";
    assert_int_equal(weir_dump_commit(create(fx_path(path, "attr.h5"), &o, 0, 1), NULL, NULL), WEIR_OK);
    assert_int_equal(weir_dump_open(&r, path, NULL), WEIR_OK);
    static const char *const want[][2] = {
        {"format", "weir-dump"},
        {"format_version", "1"},
        {"weir_version", WEIR_VERSION},
        {"model", "toy"},
        {"family", "gpt2"},
        {"fingerprint", "00ff"},
        {"tokenizer_fingerprint", "11ee"},
        {"bos", "yes"},
        {"ctx", "32"},
        {"stride", "16"},
        {"dtype", "F32"},
        {"kernel", "ref"},
        {"threads", "2"},
        {"interventions", "[\"ablate:L0N1\"]"},
        {"edits", "[]"},
        {"complete", "1"},
        {"command_line", "trace --layer 6 'caf\xc3\xa9'"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const char *text = weir_dump_attr(r, want[i][0]);
        assert_non_null(text);
        assert_string_equal(text, want[i][1]);
        assert_ptr_equal(text, weir_dump_attr(r, want[i][0])); /* borrowed, not copied again */
    }
    assert_int_equal(strlen(weir_dump_attr(r, "time_utc")), strlen("2026-01-31T00:00:00Z"));
    assert_null(weir_dump_attr(r, "absent"));
    weir_dump_close(r);
}

/* The program again, as a child: fills the disk (a limit on the file's size stands for it) and prints the status and
 * the message. */
static int full_disk(const char *path, int level)
{
    char line[1024];
    weir_err err = {0};
    weir_dump_options o;
    weir_status st = WEIR_OK;
    fx_pass pass;
    struct rlimit small = {300000, 300000};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    weir_dump_options_init(&o);
    o.compress = level;
    weir_dump *d = create(path, &o, 7, 1);
    add_doc(d);
    fx_pass_make(&pass, 0, 600, 0, 0);
    for (int i = 0; i < 20 && !st; i++) {
        weir_value v = fx_fill(&pass, 7, 0);
        st = fx_tokens(d, &pass, 0, &err);
        if (!st)
            st = weir_dump_value(d, &v, &err);
    }
    fx_pass_free(&pass);
    weir_dump_abort(d, false);
    printf("%d %s", (int)st, weir_err_line(&err, line, sizeof line));
    return 0; /* with HDF5's exit handlers, if it has any */
}

static void a_full_disk_is_one_clear_line(void **state)
{
    (void)state;
    /* What HDF5 cannot write it cannot free either. */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    for (int level = 0; level < 2; level++) {
        char cmd[1200], path[512], got[2048];
        fx_path(path, "full.h5");
        snprintf(cmd, sizeof cmd, "/proc/%d/exe full '%s' %d 2>'%s/talk'", (int)getpid(), path, level, scratch_root);
        FILE *child = popen(cmd, "r");
        assert_non_null(child);
        got[fread(got, 1, sizeof got - 1, child)] = '\0';
        assert_int_equal(pclose(child), 0);
        assert_int_equal(atoi(got), WEIR_E_IO);
        assert_non_null(strstr(got, "File too large"));
        assert_non_null(strstr(got, "full.h5"));
        assert_false(exists(path));
        assert_false(exists(fx_path(path, "full.h5.part")));
        struct stat st;
        assert_int_equal(stat(fx_path(path, "talk"), &st), 0);
        assert_int_equal(st.st_size, 0); /* nothing on standard error */
    }
    unsetenv("ASAN_OPTIONS");
}

static void hooks_have_datasets_of_their_own(void **state)
{
    (void)state;
    char path[512];
    weir_dump_options o;
    int id = -1, other = -1;
    const uint8_t rows[5] = {1, 2, 3, 4, 5};
    static const struct {
        const char *hook, *name;
        int64_t width;
        weir_status status;
    } want[] = {{"mine", "x", 1, WEIR_OK},      {"mine", "x", 1, WEIR_E_HOOK}, {"mine", "y/z", 1, WEIR_E_ARG},
                {"", "x", 1, WEIR_E_ARG},       {".", "x", 1, WEIR_E_ARG},     {"mine", "", 1, WEIR_E_ARG},
                {"mine", "wide", 0, WEIR_E_ARG}};
    for (size_t i = 1; i < sizeof want / sizeof *want; i++) {
        weir_err err = {0};
        weir_dump_options_init(&o);
        o.force = true;
        weir_dump *d = create(fx_path(path, "own.h5"), &o, 0, 1);
        assert_int_equal(weir_dump_own_new(d, want[0].hook, want[0].name, NULL, WEIR_DUMP_U8, 1, &id, &err), WEIR_OK);
        assert_int_equal(
            weir_dump_own_new(d, want[i].hook, want[i].name, NULL, WEIR_DUMP_U8, want[i].width, &other, &err),
            want[i].status);
        weir_dump_abort(d, false);
    }
    for (int64_t n = 4; n <= 5; n++) { /* every dataset has all rows */
        weir_err err = {0};
        weir_dump *d = create(fx_path(path, "own.h5"), &o, 0, 1);
        assert_int_equal(weir_dump_own_new(d, "mine", "x", NULL, WEIR_DUMP_U8, 1, &id, &err), WEIR_OK);
        add_doc(d);
        assert_int_equal(weir_dump_own_new(d, "mine", "late", NULL, WEIR_DUMP_U8, 1, &other, &err), WEIR_E_ARG);
        memset(&err, 0, sizeof err);
        add_pass(d, 0, 5, 0, 0, 0, 1);
        assert_int_equal(weir_dump_own_append(d, 7, rows, n, NULL), WEIR_E_ARG);
        assert_int_equal(weir_dump_own_append(d, id, rows, n, &err), WEIR_OK);
        assert_int_equal(weir_dump_commit(d, NULL, &err), n == 5 ? WEIR_OK : WEIR_E_HOOK);
        assert_true(n == 5 || strstr(err.msg, "mine/x has 4 rows"));
    }
}

static void levels_are_checked(void **state)
{
    (void)state;
    char path[512];
    weir_dump *d = NULL;
    weir_dump_options o;
    weir_err err = {0};
    weir_dump_header h = fx_header();
    weir_dump_options_init(&o);
    o.compress = 10;
    assert_int_equal(weir_dump_new(&d, fx_path(path, "level.h5"), &h, &o, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "not in 0..9"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_comes_back),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(only_kept_rows_are_written),
        cmocka_unit_test(units_are_chosen),
        cmocka_unit_test(a_hook_that_never_fired_is_named),
        cmocka_unit_test(rows_that_do_not_match_are_refused),
        cmocka_unit_test(documents_stand_in_order),
        cmocka_unit_test(fields_of_other_types_are_counted),
        cmocka_unit_test(only_our_files_are_replaced),
        cmocka_unit_test(abort_keeps_or_removes),
        cmocka_unit_test(passes_alone_suffice),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(attributes_are_text),
        cmocka_unit_test(a_full_disk_is_one_clear_line),
        cmocka_unit_test(hooks_have_datasets_of_their_own),
        cmocka_unit_test(levels_are_checked),
    };
    if (argc == 4 && !strcmp(argv[1], "full"))
        return full_disk(argv[2], atoi(argv[3]));
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

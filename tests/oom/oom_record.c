/* Every allocation of writing, mending and reading dumps fails once: each time a clean error, nothing under
 * the final name that is not whole, no leak, no crash. (HDF5's, zlib's and libdeflate's own allocations are theirs.) */
#include "support/oom.h"

#include <sys/stat.h>

#include "../unit/record_fixture.h"
#include "record/reader.h"

static char path[512], part[520];
static fx_pass pass; /* made once, outside the count */
static float values[FX_CTX * FX_H * FX_C];

enum { DOCS = 3, OWN = 4, ALL = ~0, FEW = 1 << 0 | 1 << 4 }; /* FEW: selected units, scores */
static int wanted = ALL;                                     /* which of the fixture's points are recorded */

static weir_status fill(weir_dump *d, int docs, weir_err *err)
{
    static const float own[FX_CTX * OWN];
    int id = -1;
    static const int64_t units[] = {1, 2};
    const weir_field fields[] = {{.name = {"n", 1}, .type = WEIR_FIELD_INT, .i = 1},
                                 {.name = {"s", 1}, .type = WEIR_FIELD_STRING, .str = {"text", 4}}};
    const weir_doc doc = {.fields = fields, .n_fields = 2};
    for (int p = 0; p < FX_POINTS; p++)
        if (wanted & 1 << p)
            WEIR_TRY(weir_dump_add_point(d, &fx_point[p], p == 0 ? units : NULL, p == 0 ? 2 : -1, err));
    WEIR_TRY(weir_dump_own_new(d, "mine", "x", &fx_point[0], WEIR_DUMP_F32, OWN, &id, err));
    const int64_t done = weir_dump_rows_done(d);
    for (int i = 0; i < docs; i++) {
        WEIR_TRY(weir_dump_doc(d, &doc, "a.jsonl", err));
        if (i < done / FX_CTX)
            continue;
        WEIR_TRY(fx_tokens(d, &pass, i, err));
        for (int p = 0; p < FX_POINTS; p++) {
            if (!(wanted & 1 << p))
                continue;
            int64_t size = fx_size(p, pass.rows.n);
            weir_value v = {&fx_point[p], values, fx_point[p].heads * size, fx_point[p].heads, size, &pass.rows};
            WEIR_TRY(weir_dump_value(d, &v, err));
        }
        WEIR_TRY(weir_dump_own_append(d, id, own, FX_CTX, err));
        WEIR_TRY(weir_dump_flush(d, err));
    }
    return WEIR_OK;
}

static weir_status open_writer(weir_dump **d, bool resume, weir_err *err)
{
    weir_dump_options o;
    weir_dump_header h = fx_header();
    weir_dump_options_init(&o);
    o.threads = 1;
    o.force = !resume;
    o.resume = resume;
    return weir_dump_new(d, path, &h, &o, err);
}

static weir_status record(bool resume, weir_err *err)
{
    weir_dump *d;
    WEIR_TRY(open_writer(&d, resume, err));
    weir_status st = fill(d, DOCS, err);
    if (st) {
        weir_dump_abort(d, resume);
        return st;
    }
    return weir_dump_commit(d, NULL, err);
}

/* --- files between which the work begins */

static void copy(const char *from, const char *to)
{
    static char bytes[8 << 20];
    FILE *f = fopen(from, "rb"), *g = fopen(to, "wb");
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (!n || !g || fwrite(bytes, 1, n, g) != n || fclose(g))
        fail_msg("cannot copy %s to %s", from, to);
    fclose(f);
}

static bool whole(void)
{
    weir_dump_reader *r;
    if (weir_dump_open(&r, path, NULL))
        return false;
    bool good = weir_dump_is_complete(r) && weir_dump_rows(r) == DOCS * pass.rows.n;
    weir_dump_close(r);
    return good;
}

/* What a failure may leave: no file under the final name, or a whole one. */
static weir_status and_check(weir_status st)
{
    struct stat at;
    const long made = allocations;
    fail_at = 0; /* looking is not part of the work */
    if (stat(path, &at) == 0 && !whole())
        fail_msg("%s is there, and not whole", path);
    allocations = made;
    return st;
}

static weir_status write_dump(const void *ctx, weir_err *err)
{
    (void)ctx;
    unlink(path);
    unlink(part);
    return and_check(record(false, err));
}

/* from: a dump that was stopped, or killed. */
static weir_status resume_dump(const void *from, weir_err *err)
{
    unlink(path);
    copy(from, part);
    return and_check(record(true, err));
}

static weir_status repair_dump(const void *from, weir_err *err)
{
    copy(from, part);
    return weir_dump_repair(part, NULL, err);
}

/* (Joining by itself: oom_merge.c.) */
static weir_status join(weir_err *err)
{
    const char *const from[] = {scratch("few.h5"), scratch("second.h5")};
    weir_merge_options o;
    weir_merge_options_init(&o);
    o.threads = 1;
    o.as_virtual = true;
    return weir_dump_merge(scratch("virtual.h5"), from, 2, &o, NULL, err);
}

/* --- reading */

static weir_status read_hook(weir_dump_reader *r, int i, weir_err *err)
{
    static float x[FX_CTX * FX_H * FX_C];
    const int64_t column[] = {0, weir_dump_hook_at(r, i)->width - 1};
    weir_dump_stream *s;
    weir_dump_block b = {.n = 1};
    WEIR_TRY(weir_dump_read(r, i, 0, 2, x, err));
    WEIR_TRY(weir_dump_read_column(r, i, 0, 0, FX_CTX, x, err));
    WEIR_TRY(weir_dump_read_columns(r, i, column, 2, 0, FX_CTX, x, err));
    WEIR_TRY(weir_dump_stream_open(&s, r, i, 0, FX_CTX, err));
    weir_status st = WEIR_OK;
    while (!st && b.n > 0)
        st = weir_dump_stream_next(s, &b, err);
    weir_dump_stream_close(s);
    return st;
}

static weir_status read_docs(weir_dump_reader *r, weir_err *err)
{
    weir_dump_doc_rows doc;
    weir_field field;
    bool there;
    for (int i = 0; i < weir_dump_n_docs(r); i++) {
        WEIR_TRY(weir_dump_read_doc(r, i, &doc, err));
        for (int f = 0; f < weir_dump_n_fields(r); f++)
            WEIR_TRY(weir_dump_read_field(r, f, i, &field, &there, err));
    }
    return WEIR_OK;
}

static weir_status read_all(weir_dump_reader *r, weir_err *err)
{
    int32_t id[FX_CTX];
    int64_t doc[FX_CTX];
    weir_str text;
    weir_dump_set_threads(r, 1);
    for (int i = 0; i < weir_dump_n_hooks(r); i++)
        WEIR_TRY(read_hook(r, i, err));
    WEIR_TRY(weir_dump_read_tokens(r, 0, FX_CTX, &(weir_token_columns){.id = id, .doc = doc}, err));
    WEIR_TRY(weir_dump_read_ids(r, 0, FX_CTX, id, err));
    WEIR_TRY(weir_dump_token_bytes(r, id[1], &text, err));
    WEIR_TRY(weir_dump_read_text(r, 0, FX_CTX, &text, err));
    WEIR_TRY(read_docs(r, err));
    WEIR_TRY(weir_dump_refresh(r, err));
    if (!weir_dump_attr(r, "ctx")) /* has no other reason to be missing */
        return weir_fail(err, WEIR_E_NOMEM, "an attribute");
    return read_hook(r, 0, err);
}

static weir_status read_dump(const void *file, weir_err *err)
{
    weir_dump_reader *r;
    WEIR_TRY(weir_dump_open(&r, file, err));
    weir_status st = read_all(r, err);
    weir_dump_close(r);
    return st;
}

/* The same through HDF5 alone. */
static weir_status read_plainly(const void *file, weir_err *err)
{
    weir_dump_reader *r;
    WEIR_TRY(weir_dump_open(&r, file, err));
    weir_dump_read_plainly(r, true);
    weir_status st = read_all(r, err);
    weir_dump_close(r);
    return st;
}

/* --- tests */

static void writing(void **state)
{
    (void)state;
    assert_in_range(oom_each(write_dump, NULL), 10, 5000);
}

static void going_on(void **state)
{
    (void)state;
    assert_in_range(oom_each(resume_dump, scratch("stopped.h5")), 10, 5000);
    assert_in_range(oom_each(resume_dump, scratch("killed.h5")), 10, 5000);
}

static void mending(void **state)
{
    (void)state;
    assert_in_range(oom_each(repair_dump, scratch("stopped.h5")), 2, 5000);
    assert_in_range(oom_each(repair_dump, scratch("killed.h5")), 2, 5000);
}

static void reading(void **state)
{
    (void)state;
    assert_in_range(oom_each(read_dump, scratch("whole.h5")), 10, 5000);
    assert_in_range(oom_each(read_plainly, scratch("whole.h5")), 10, 5000);
    assert_in_range(oom_each(read_dump, scratch("virtual.h5")), 10, 5000);
    assert_in_range(oom_each(read_dump, scratch("stopped.h5")), 10, 5000);
}

/* --- their files: whole dumps, one that was stopped, one whose writer is gone, one that points into two others */

static void stop_after(int docs, const char *to)
{
    weir_dump *d;
    assert_int_equal(open_writer(&d, false, NULL), WEIR_OK);
    assert_int_equal(fill(d, docs, NULL), WEIR_OK);
    if (to)
        copy(part, to); /* as it is while it is open */
    weir_dump_abort(d, true);
}

static int set_up(void **state)
{
    fx_pass_make(&pass, 0, FX_CTX, 0, 0);
    if (scratch_make(state))
        return -1;
    snprintf(path, sizeof path, "%s", scratch("oom.h5"));
    snprintf(part, sizeof part, "%s.part", path);
    stop_after(2, NULL);
    copy(part, scratch("stopped.h5"));
    stop_after(2, scratch("killed.h5"));
    if (write_dump(NULL, NULL))
        return -1;
    copy(path, scratch("whole.h5"));
    wanted = FEW; /* joining takes long */
    if (write_dump(NULL, NULL))
        return -1;
    wanted = ALL;
    copy(path, scratch("few.h5"));
    copy(path, scratch("second.h5"));
    return join(NULL) ? -1 : 0;
}

static int tear_down(void **state)
{
    fx_pass_free(&pass);
    return scratch_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(writing), cmocka_unit_test(going_on), cmocka_unit_test(mending),
                                       cmocka_unit_test(reading)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

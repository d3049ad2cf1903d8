/* Dumps that say which shard they are, and dumps joined. tests/cli/test_shards.py does the same with a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record_read.h"
#include "support/said.h"

static const rr_shape shape = {.rows = 700, .len = 25, .compress = 1, .threads = 2};

static void join(const char *out, const char *const *paths, int n, bool as_virtual, int64_t memory)
{
    weir_merge_options o;
    weir_merge_summary s;
    weir_err err = {0};
    char line[1024];
    weir_merge_options_init(&o);
    o.as_virtual = as_virtual;
    o.memory = memory;
    o.command_line = "test";
    if (weir_dump_merge(out, paths, n, &o, &s, &err))
        fail_msg("%s", weir_err_line(&err, line, sizeof line));
    assert_int_equal(s.files, n);
    assert_int_equal(s.datasets, FX_POINTS);
}

/* Rows [row, row + n) of the joined file are rows 0 .. n - 1 of a dump of that shape. */
static int64_t wrong_rows(weir_dump_reader *r, int64_t row, int64_t n)
{
    int64_t wrong = 0;
    for (int p = 0; p < FX_POINTS; p++) {
        int i = weir_dump_find(r, fx_point[p].name);
        weir_err err = {0};
        char line[1024];
        int64_t width = weir_dump_hook_at(r, i)->width;
        float *out = rr_floats(n * width);
        if (weir_dump_read(r, i, row, n, out, &err))
            fail_msg("%s", weir_err_line(&err, line, sizeof line));
        wrong += rr_wrong(&shape, p, out, 0, n, NULL, 0, width);
        free(out);
    }
    return wrong;
}

static void check_joined(const char *path, int parts)
{
    weir_dump_reader *r = rr_open(path);
    assert_int_equal(weir_dump_rows(r), parts * shape.rows);
    assert_string_equal(weir_dump_attr(r, "complete"), "1");
    for (int k = 0; k < parts; k++)
        assert_int_equal(wrong_rows(r, k * shape.rows, shape.rows), 0);
    assert_int_not_equal(wrong_rows(r, 1, shape.rows), 0); /* the check can fail */
    weir_dump_close(r);
}

/* Bands and tiles of the parts do not fall on those of the result. */
static void test_join(void **state)
{
    (void)state;
    char a[512], out[512];
    const char *const paths[] = {a, a, a};
    rr_write(fx_path(a, "a.h5"), &shape);
    join(fx_path(out, "copied.h5"), paths, 3, false, 0);
    check_joined(out, 3);
    join(fx_path(out, "slow.h5"), paths, 3, false, 1);
    check_joined(out, 3);
    join(fx_path(out, "virtual.h5"), paths, 3, true, 0);
    check_joined(out, 3);
}

static void test_many_parts(void **state)
{
    (void)state;
    enum { N = 200 };
    char a[512], out[512];
    const char *paths[N];
    rr_write(fx_path(a, "a.h5"), &shape);
    for (int k = 0; k < N; k++)
        paths[k] = a;
    join(fx_path(out, "many.h5"), paths, N, true, 0);
    weir_dump_reader *r = rr_open(out);
    assert_int_equal(weir_dump_rows(r), N * shape.rows);
    assert_int_equal(wrong_rows(r, (N - 1) * shape.rows, shape.rows), 0);
    weir_dump_close(r);
}

/* --- what a shard says */

static weir_docs *open_text(int64_t shard, int64_t shards)
{
    static const char *path;
    path = scratch_text("text.jsonl", "{\"text\":\"aa\",\"n\":3,\"name\":\"x\"}\n"
                                      "{\"text\":\"bb\",\"other\":1}\n"
                                      "{\"text\":\"cc\",\"n\":\"not a number\",\"name\":\"y\"}\n"
                                      "{\"text\":\"dd\",\"n\":4,\"late\":1.5}\n");
    weir_docs_options o = {.paths = &path, .n_paths = 1, .shard = shard, .shards = shards};
    weir_docs *docs;
    weir_err err = {0};
    assert_int_equal(weir_docs_open(&docs, &o, &err), WEIR_OK);
    return docs;
}

/* One row a document. */
static void write_shard(const char *path, int64_t shard, int64_t shards)
{
    weir_docs *docs = open_text(shard, shards);
    weir_dump *d = rr_create(path, &shape);
    weir_doc doc;
    bool more;
    weir_err err = {0};
    assert_int_equal(weir_dump_shard(d, docs, &err), WEIR_OK);
    for (int64_t n = 0;; n++) {
        assert_int_equal(weir_docs_next(docs, &doc, &more, &err), WEIR_OK);
        if (!more)
            break;
        assert_int_equal(weir_dump_doc(d, &doc, weir_docs_source(docs, doc.source), &err), WEIR_OK);
        rr_pass(d, doc.index, 1, n);
    }
    assert_int_equal(weir_dump_commit(d, NULL, &err), WEIR_OK);
    weir_docs_free(docs);
}

static void test_shard_attributes(void **state)
{
    (void)state;
    char path[512];
    write_shard(fx_path(path, "shard.h5"), 1, 2);
    weir_dump_reader *r = rr_open(path);
    assert_string_equal(weir_dump_attr(r, "shard"), "1/2");
    assert_string_equal(weir_dump_attr(r, "shard_first_doc"), "2");
    assert_string_equal(weir_dump_attr(r, "shard_docs"), "4");
    assert_string_equal(weir_dump_attr(r, "shard_text_size"), "8");
    assert_string_equal(weir_dump_attr(r, "shard_sources"), "0, 0");
    weir_dump_close(r);
    write_shard(fx_path(path, "whole.h5"), 0, 0);
    r = rr_open(path);
    assert_null(weir_dump_attr(r, "shard"));
    weir_dump_close(r);
}

static const char *const shard_names[] = {"s0.h5", "s1.h5", "s2.h5", "s3.h5", "s4.h5"};

/* Shards of another order, one of them empty, and with fields that only the text's first document has. */
static void test_shards_join(void **state)
{
    (void)state;
    char path[5][512], out[512];
    const char *paths[5];
    for (int i = 0; i < 5; i++)
        write_shard(fx_path(path[i], shard_names[i]), i, 5);
    for (int i = 0; i < 5; i++)
        paths[i] = path[(i + 2) % 5];
    join(fx_path(out, "shards.h5"), paths, 5, false, 0);
    weir_dump_reader *r = rr_open(out);
    assert_int_equal(weir_dump_rows(r), 4);
    assert_null(weir_dump_attr(r, "shard"));
    int64_t wrong = 0;
    for (int64_t row = 0; row < 4; row++) {
        float value[FX_C];
        assert_int_equal(weir_dump_read(r, weir_dump_find(r, fx_point[1].name), row, 1, value, NULL), WEIR_OK);
        for (int e = 0; e < FX_C; e++)
            wrong += value[e] != fx_value(1, row, e);
    }
    assert_int_equal(wrong, 0);
    weir_dump_close(r);
}

static void refused(const char *const *paths, int n, const char *words)
{
    char out[512];
    weir_merge_options o;
    weir_err err = {0};
    weir_merge_options_init(&o);
    assert_int_not_equal(weir_dump_merge(fx_path(out, "no.h5"), paths, n, &o, NULL, &err), WEIR_OK);
    assert_true(said(&err, err.code, words));
    assert_false(scratch_exists("no.h5"));
    assert_false(scratch_exists("no.h5.part"));
}

static void test_refusals(void **state)
{
    (void)state;
    char path[5][512], other[512];
    const char *paths[6];
    for (int i = 0; i < 5; i++) {
        write_shard(fx_path(path[i], shard_names[i]), i, 5);
        paths[i] = path[i];
    }
    refused(paths, 0, "no files");
    refused(paths, 4, "shard 4/5 is missing");
    refused(paths + 1, 4, "shard 0/5 is missing");
    paths[5] = path[2];
    refused(paths, 6, "is shard 2/5, and so is");
    rr_write(fx_path(other, "other.h5"), &shape);
    paths[4] = other;
    refused(paths, 5, "is no shard");
    paths[4] = "/dev/null";
    refused(paths, 5, "/dev/null");
}

/* --- stopping and progress */

typedef struct watch {
    int asked, stop_after;
    double share;
} watch;

static bool stop_it(void *user)
{
    watch *w = user;
    return ++w->asked > w->stop_after;
}

static void on_progress(void *user, double share)
{
    watch *w = user;
    assert_true(share >= w->share && share <= 1);
    w->share = share;
}

static weir_status join_watched(const char *out, watch *w, weir_err *err)
{
    char a[512];
    const char *const paths[] = {fx_path(a, "a.h5"), a};
    weir_merge_options o;
    weir_merge_options_init(&o);
    o.stop = stop_it;
    o.progress = on_progress;
    o.user = w;
    return weir_dump_merge(out, paths, 2, &o, NULL, err);
}

/* Wherever it is stopped, nothing is left behind. */
static void test_stop(void **state)
{
    (void)state;
    char a[512], out[512];
    watch all = {.stop_after = 1 << 30};
    weir_err err = {0};
    rr_write(fx_path(a, "a.h5"), &shape);
    assert_int_equal(join_watched(fx_path(out, "watched.h5"), &all, &err), WEIR_OK);
    assert_true(all.share == 1);
    fx_path(out, "stopped.h5");
    for (int n = 0; n < all.asked; n++) {
        watch w = {.stop_after = n};
        assert_int_equal(join_watched(out, &w, &err), WEIR_STOP);
        assert_int_equal(err.code, WEIR_OK);
        assert_false(scratch_exists("stopped.h5"));
        assert_false(scratch_exists("stopped.h5.part"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join),        cmocka_unit_test(test_many_parts), cmocka_unit_test(test_shard_attributes),
        cmocka_unit_test(test_shards_join), cmocka_unit_test(test_refusals),   cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

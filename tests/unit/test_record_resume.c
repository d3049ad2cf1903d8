/* A recording that is stopped, killed or runs out of disk, and goes on: no row that was whole is lost, and in the end
 * every dataset equals that of a run that nothing happened to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "record_runs.h"

static char whole[512]; /* the unbroken run */
static long whole_writes;

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static void forget(const char *name)
{
    char path[512], part[600];
    snprintf(part, sizeof part, "%s.part", fx_path(path, name));
    unlink(path);
    unlink(part);
}

static int make_whole(void **state)
{
    run_how h = run_usual();
    weir_err err = {0};
    scratch_make(state);
    fx_path(whole, "whole.h5");
    run_writes = 0;
    if (run_all(whole, &h, &err))
        fprintf(stderr, "%s\n", err.msg);
    whole_writes = run_writes;
    return err.code;
}

static void assert_whole(const char *path)
{
    char first[128];
    int n = run_differences(path, whole, false, first);
    if (n)
        fail_msg("%d datasets differ, the first is %s", n, first);
}

static void assert_begins(const char *path)
{
    char first[128];
    int n = run_differences(path, whole, true, first);
    if (n)
        fail_msg("%d datasets are not how the whole run begins, the first is %s", n, first);
}

static void the_comparison_can_fail(void **state)
{
    (void)state;
    char path[512], first[128];
    run_how h = run_usual();
    weir_err err = {0};
    h.changed = 77;
    assert_int_equal(run_all(fx_path(path, "other.h5"), &h, &err), WEIR_OK);
    assert_int_equal(run_differences(path, whole, false, first), 1);
    assert_string_equal(first, "tokens/id");
    assert_int_equal(run_differences(path, whole, true, first), 1);
    assert_int_equal(run_differences(scratch_root, whole, false, first), -1);
}

/* Stopped by a signal after some documents, once or twice, and gone on with. */
static void a_stopped_run_goes_on(void **state)
{
    (void)state;
    static const int stops[][2] = {{1, 0}, {2, 3}, {33, 34}, {39, 76}, {75, 149}, {4, 148}, {140, 0}};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        char path[512], part[600];
        run_how h = run_usual();
        weir_err err = {0};
        forget("stop.h5");
        snprintf(part, sizeof part, "%s.part", fx_path(path, "stop.h5"));
        for (int k = 0; k < 2 && stops[i][k]; k++) {
            h.stop = stops[i][k];
            if (run_all(path, &h, &err))
                fail_msg("%s", err.msg);
            assert_false(exists(path));
            assert_begins(part);
            h.o.resume = true;
        }
        h.stop = RUN_DOCS;
        if (run_all(path, &h, &err))
            fail_msg("%s", err.msg);
        assert_false(exists(part));
        assert_whole(path);
    }
}

typedef struct life {
    const char *path;
    bool resume;
    long kill_at;
} life;

static void live(void *user)
{
    const life *l = user;
    run_how h = run_usual();
    weir_err err = {0};
    h.o.resume = l->resume;
    run_writes = 0;
    run_kill_at = l->kill_at;
    if (run_all(l->path, &h, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        _exit(3);
    }
}

/* One recording that is killed at a write, repaired, gone on with, killed again, and gone on with. */
static void die_twice(long first, long second)
{
    char path[512], part[600];
    weir_err err = {0};
    weir_dump_report r;
    forget("kill.h5");
    snprintf(part, sizeof part, "%s.part", fx_path(path, "kill.h5"));
    run_watch();
    life l = {path, false, first};
    int status = run_apart(live, &l);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (!exists(part) || (*run_safe == 0 && weir_dump_repair(part, &r, &err))) { /* before anything was in it */
        unlink(part);
    } else {
        if (*run_safe && weir_dump_repair(part, &r, &err))
            fail_msg("killed at write %ld: %s", first, err.msg);
        if (r.rows < *run_safe)
            fail_msg("killed at write %ld: %d rows of %d", first, (int)r.rows, (int)*run_safe);
        assert_begins(part);
        assert_int_equal(weir_dump_repair(part, &r, &err), WEIR_OK);
        assert_false(r.open);
        assert_int_equal(r.cut, 0);
    }
    l = (life){path, true, second};
    status = run_apart(live, &l); /* killed, or through */
    if (!exists(path)) {
        assert_true(WIFSIGNALED(status));
        l.kill_at = 0;
        status = run_apart(live, &l); /* repairs by itself */
        if (status)
            fail_msg("killed at writes %ld, %ld: no going on", first, second);
    }
    assert_whole(path);
    assert_false(exists(part));
}

static void no_row_is_lost_by_a_kill(void **state)
{
    (void)state;
    const char *more = getenv("WEIR_KILLS"); /* how many, for a longer look */
    uint64_t x = 88172645463325252u;
    assert_true(whole_writes > 100);
    for (int i = more ? -atoi(more) : 0; i < 10; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        long first = 1 + (long)(x % (uint64_t)whole_writes), second = 1 + (long)((x >> 32) % (uint64_t)whole_writes);
        die_twice(first, second);
    }
}

/* --- refusals */

/* Goes on with what another run left after 90 documents; both are as usual but for what is changed here. */
static void assert_refused(int what, const char *const words[3])
{
    char path[512];
    weir_err err = {0};
    run_how h = run_usual();
    forget("differs.h5");
    fx_path(path, "differs.h5");
    h.stop = 90;
    h.o.bos = "no";
    assert_int_equal(run_all(path, &h, &err), WEIR_OK);
    h.stop = RUN_DOCS;
    h.o.resume = true;
    h.o.ctx = what == 0 ? 32 : 0;
    h.o.bos = what == 1 ? "yes" : "no";
    h.o.compress = what == 2 ? 6 : 1;
    h.o.mantissa = what == 3 ? 7 : 0;
    h.o.f16 = what == 4;
    h.o.interventions = what == 5 ? "[\"ablate:L0N1\"]" : NULL;
    if (what == 6)
        h.o.run_options = "{\"docs\":\"line\",\"text\":[{\"name\":\"a.txt\",\"sha256\":\"0123456789abcdee\"}]}";
    h.o.logprob = what != 7;
    h.points = what == 8 ? RUN_POINTS - 1 : RUN_POINTS;
    h.n_own = what == 9 ? 1 : RUN_OWN;
    h.all_units = what == 10;
    h.changed = what == 11 ? 89 : -1;
    h.again = 2;
    h.other_source = what == 12;
    h.resumed_docs = what == 13 ? 80 : 0;
    weir_status st = run_all(path, &h, &err);
    if ((st == WEIR_OK) != (what == 14))
        fail_msg("%d: status %d", what, (int)st);
    for (int i = 0; i < 3 && words[i]; i++)
        if (!strstr(err.msg, words[i]))
            fail_msg("%d: \"%s\" does not stand in \"%s\"", what, words[i], err.msg);
    if (what == 14)
        return;
    h = run_usual(); /* nothing was spoilt */
    h.o.bos = "no";
    h.o.resume = true;
    memset(&err, 0, sizeof err);
    if (run_all(path, &h, &err))
        fail_msg("%d: %s", what, err.msg);
    assert_whole(path);
}

static void what_differs_is_named(void **state)
{
    (void)state;
    static const char *const words[][3] = {
        {"ctx 40", "now it is 32"},
        {"another bos: no", "now it is yes"},
        {"compress 1", "now it is 6"},
        {"storage: float32,", "now it is float32 mantissa 7"},
        {"storage: float32,", "now it is float16"},
        {"interventions: []", "[\"ablate:L0N1\"]"},
        {"another run_options: ...", "123456789abcdef\"", "123456789abcdee\""},
        {"with log-probabilities", "not wanted"},
        {"blocks.10.mlp.hook_post", "not asked for"},
        {"2 datasets", "not 1"},
        {"blocks.10.mlp.hook_post"},
        {"the text has changed: row", "is token", "now"},
        {"the text has changed: document 50 came from b.txt", "comes from z.txt"},
        {"the text has changed: it has 80 documents, the file has"},
        {NULL}, /* nothing differs */
    };
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
        assert_refused(i, words[i]);
}

static void an_unfinished_dump_is_not_overwritten(void **state)
{
    (void)state;
    char path[512];
    weir_err err = {0};
    run_how h = run_usual();
    h.stop = 3;
    forget("there.h5");
    assert_int_equal(run_all(fx_path(path, "there.h5"), &h, &err), WEIR_OK);
    assert_int_equal(run_all(path, &h, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "--resume goes on with it, --force begins again"));
    h.o.resume = true;
    h.o.from_passes = true;
    memset(&err, 0, sizeof err);
    assert_int_equal(run_all(path, &h, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "passes alone"));
}

/* To HDF5 a dataset may be as long as it says, and cutting one means to look for each of its chunks. */
static void an_impossible_length_is_damage(void **state)
{
    (void)state;
    static const char *const names[] = {"/tokens/id", "/activations/hook_embed", "/docs/start", "/sources/bytes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512], part[600];
        weir_err err = {0};
        run_how h = run_usual();
        hsize_t dim[3] = {(hsize_t)1 << 50, 64, 1};
        h.stop = 3;
        forget("long.h5");
        assert_int_equal(run_all(fx_path(path, "long.h5"), &h, &err), WEIR_OK);
        snprintf(part, sizeof part, "%s.part", path);
        hid_t f = H5Fopen(part, H5F_ACC_RDWR, H5P_DEFAULT), d = H5Dopen2(f, names[i], H5P_DEFAULT);
        assert_true(H5Dset_extent(d, dim) >= 0);
        H5Dclose(d);
        H5Fclose(f);
        h.o.resume = true;
        h.stop = RUN_DOCS;
        assert_int_equal(run_all(path, &h, &err), WEIR_E_FORMAT);
        assert_non_null(strstr(err.msg, names[i]));
        assert_non_null(strstr(err.msg, "is damaged"));
    }
}

/* --- the order of layers: all tokens first, then the rows of one layer after the other */

/* Values of the points whose layer is `layer` (-1: those before the blocks), for the documents from that of row on. */
static weir_status run_layer(weir_dump *d, const run_how *h, int layer, int stop, weir_err *err)
{
    weir_status st = WEIR_OK;
    const weir_point *any = NULL;
    for (int i = 0; i < RUN_POINTS; i++)
        if (fx_point[run_point[i]].layer == layer)
            any = &fx_point[run_point[i]];
    int first = run_doc_of(weir_dump_point_rows(d, any));
    for (int i = 0; i < RUN_POINTS && !st; i++)
        if (fx_point[run_point[i]].layer == layer)
            st = weir_dump_seek(d, &fx_point[run_point[i]], run_start(first), err);
    for (int doc = first; doc < stop && !st; doc++) {
        fx_pass pass;
        int64_t start = run_start(doc), n = run_len(doc), id[FX_CTX * 40];
        fx_pass_make(&pass, start, n, doc, 0);
        for (int i = 0; i < RUN_POINTS && n && !st; i++) {
            if (fx_point[run_point[i]].layer != layer)
                continue;
            weir_value v = fx_fill(&pass, run_point[i], start);
            st = weir_dump_value(d, &v, err);
        }
        for (int64_t i = 0; i < n * 40; i++)
            id[i] = (start + i / 40) * 1000 + i % 40;
        if (!st && layer == fx_point[7].layer)
            st = weir_dump_own_append(d, h->own[0], id, n, err);
        fx_pass_free(&pass);
        if (!st)
            st = weir_dump_flush(d, err);
    }
    return st || stop < RUN_DOCS ? st : weir_dump_settle(d, any, err);
}

/* What is known at the end of a pass. */
static weir_status run_last(weir_dump *d, const run_how *h, weir_err *err)
{
    weir_status st = weir_dump_seek(d, NULL, 0, err);
    for (int doc = 0; doc < RUN_DOCS && !st; doc++) {
        float logprob[FX_CTX], mean[FX_CTX];
        int64_t start = run_start(doc), n = run_len(doc);
        for (int64_t i = 0; i < n; i++) {
            logprob[i] = -0.5f * (float)i;
            mean[i] = fx_value(0, start + i, 77);
        }
        st = weir_dump_logprobs(d, logprob, n, err);
        if (!st)
            st = weir_dump_own_append(d, h->own[1], mean, n, err);
        if (!st)
            st = weir_dump_flush(d, err);
    }
    return st;
}

/* stop: documents of the last layer that is run; layers: how many of embed, L0, L10; 4: all, and the end. */
static void by_layer(const char *path, int layers, int stop, bool resume)
{
    static const int layer[] = {-1, 0, 10};
    run_how h = run_usual();
    weir_dump *d = NULL;
    weir_err err = {0};
    h.o.logprob_late = true;
    h.o.resume = resume;
    weir_status st = run_open(&d, path, &h, &err);
    if (!st)
        st = weir_dump_seek(d, NULL, 0, &err); /* all tokens come again */
    for (int doc = 0; doc < RUN_DOCS && !st; doc++) {
        fx_pass pass;
        fx_pass_make(&pass, run_start(doc), run_len(doc), doc, 0);
        st = run_declare(d, &h, doc, &err);
        if (!st)
            st = fx_tokens(d, &pass, doc, &err);
        fx_pass_free(&pass);
    }
    if (!st)
        st = weir_dump_settle(d, NULL, &err);
    for (int i = 0; i < layers && i < 3 && !st; i++)
        st = run_layer(d, &h, layer[i], i == layers - 1 ? stop : RUN_DOCS, &err);
    if (!st && layers == 4)
        st = run_last(d, &h, &err);
    if (st)
        fail_msg("%s", err.msg);
    if (layers < 4)
        weir_dump_abort(d, true);
    else if (weir_dump_commit(d, NULL, &err))
        fail_msg("%s", err.msg);
}

static void layers_may_come_one_after_the_other(void **state)
{
    (void)state;
    static const int stop[][2] = {{4, RUN_DOCS}, {1, 3}, {1, RUN_DOCS}, {2, 75}, {3, 1}, {3, 149}, {3, RUN_DOCS}};
    for (size_t i = 0; i < sizeof stop / sizeof *stop; i++) {
        char path[512], part[600];
        forget("layers.h5");
        snprintf(part, sizeof part, "%s.part", fx_path(path, "layers.h5"));
        by_layer(path, stop[i][0], stop[i][1], false);
        if (stop[i][0] < 4) {
            assert_begins(part);
            by_layer(path, 4, RUN_DOCS, true);
        }
        assert_whole(path);
    }
}

static void layer_then_die(void *user)
{
    const life *l = user;
    run_writes = 0;
    run_kill_at = l->kill_at;
    by_layer(l->path, 4, RUN_DOCS, l->resume);
}

static void a_kill_between_layers_loses_no_layer(void **state)
{
    (void)state;
    char path[512], part[600];
    run_writes = 0;
    by_layer(fx_path(path, "layerkill.h5"), 4, RUN_DOCS, false);
    long writes = run_writes;
    for (int i = 1; i <= 8; i++) {
        weir_err err = {0};
        weir_dump_report r = {0}, again = {0};
        life l = {path, false, writes * i / 9};
        forget("layerkill.h5");
        snprintf(part, sizeof part, "%s.part", path);
        int status = run_apart(layer_then_die, &l);
        assert_true(WIFSIGNALED(status));
        if (weir_dump_repair(part, &r, &err) || r.most == 0) {
            unlink(part);
        } else {
            assert_begins(part);
            l = (life){path, true, 15}; /* killed while it begins: nothing gets lost */
            run_apart(layer_then_die, &l);
            if (weir_dump_repair(part, &again, &err))
                fail_msg("%d: %s", i, err.msg);
            assert_true(again.most >= r.most && again.rows >= r.rows);
            assert_begins(part);
        }
        l = (life){path, true, 0};
        assert_int_equal(run_apart(layer_then_die, &l), 0);
        assert_whole(path);
    }
}

/* --- a disk that is full */

typedef struct full_disk {
    const char *path;
    long from;
    bool ends, never_flush;
    char *line; /* shared */
} full_disk;

static void fill_disk(void *user)
{
    const full_disk *f = user;
    run_how h = run_usual();
    weir_err err = {0};
    h.never_flush = f->never_flush;
    run_writes = 0;
    run_fail_from = f->from;
    run_fail_ends = f->ends;
    weir_status st = run_all(f->path, &h, &err);
    weir_err_line(&err, f->line, 1024);
    _exit(st == WEIR_E_IO ? 0 : 4);
}

/* Writes from the n-th on fail, at least those that need more room. */
static void run_out_of_disk(long from, bool ends)
{
    char path[512], part[600];
    weir_err err = {0};
    weir_dump_report r = {0};
    char *line = mmap(NULL, 1024, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    forget("full.h5");
    snprintf(part, sizeof part, "%s.part", fx_path(path, "full.h5"));
    run_watch();
    full_disk f = {path, from, ends, false, line};
    int status = run_apart(fill_disk, &f);
    if (status)
        fail_msg("writes fail from %ld: status %d, %s", from, status, line);
    assert_non_null(strstr(line, "No space left on device"));
    assert_null(strchr(line, '\n'));
    assert_false(exists(path));
    if (*run_safe > 0) {
        assert_true(exists(part));
        assert_non_null(strstr(line, part));
        assert_non_null(strstr(line, ends ? "--resume" : "weir repair"));
        if (ends)
            assert_begins(part); /* it opens as it is */
        if (weir_dump_repair(part, &r, &err))
            fail_msg("%s", err.msg);
        assert_true(r.open == !ends);
        assert_true(r.rows >= *run_safe);
        assert_begins(part);
    }
    life l = {path, true, 0}; /* in a process of its own, with room again */
    if (!exists(part) || !weir_dump_repair(part, &r, &err)) {
        assert_int_equal(run_apart(live, &l), 0);
        assert_whole(path);
    }
    munmap(line, 1024);
}

static void a_full_disk_loses_nothing(void **state)
{
    (void)state;
    static const long early[] = {1, 3, 10, 40, 80, 120}; /* while the file is made, and while SWMR begins */
    for (size_t i = 0; i < sizeof early / sizeof *early; i++)
        run_out_of_disk(early[i], i % 2);
    for (int i = 1; i <= 12; i++)
        run_out_of_disk(whole_writes * i / 13, i % 3 != 0);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_comparison_can_fail),
        cmocka_unit_test(a_stopped_run_goes_on),
        cmocka_unit_test(no_row_is_lost_by_a_kill),
        cmocka_unit_test(layers_may_come_one_after_the_other),
        cmocka_unit_test(a_kill_between_layers_loses_no_layer),
        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(an_impossible_length_is_damage),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(an_unfinished_dump_is_not_overwritten),
    };
    return cmocka_run_group_tests(tests, make_whole, scratch_remove);
}

/* Errors, memory, the string map, SHA-256 and the parallel loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "support/said.h"

static void test_said_can_fail(void **state)
{
    (void)state;
    weir_err e = {0};
    weir_fail(&e, WEIR_E_ARG, "apples");
    assert_true(said(&e, WEIR_E_ARG, "apples"));
    fprintf(stderr, "(two complaints follow that belong to the test)\n");
    assert_false(said(&e, WEIR_E_ARG, "pears"));
    assert_false(said(&e, WEIR_E_IO, "apples"));
}

static void test_first_error_wins(void **state)
{
    (void)state;
    weir_err e = {0};
    assert_int_equal(weir_fail(&e, WEIR_E_FORMAT, "first %d", 1), WEIR_E_FORMAT);
    assert_int_equal(weir_fail(&e, WEIR_E_IO, "second"), WEIR_E_IO);
    assert_int_equal(e.code, WEIR_E_FORMAT);
    assert_string_equal(e.msg, "first 1");
    assert_int_equal(e.offset, -1);
    assert_int_equal(weir_fail(NULL, WEIR_E_ARG, "nobody listens"), WEIR_E_ARG);
}

static void test_place(void **state)
{
    (void)state;
    char line[200];
    weir_err e = {0};
    assert_int_equal(weir_err_where(&e, "f", NULL, 1), WEIR_OK); /* no error: nothing is added */
    assert_string_equal(e.file, "");
    weir_fail(&e, WEIR_E_FORMAT, "bad");
    assert_string_equal(weir_err_line(&e, line, sizeof line), "bad");
    assert_int_equal(weir_err_where(&e, "a.bin", NULL, 7), WEIR_E_FORMAT);
    assert_string_equal(weir_err_line(&e, line, sizeof line), "a.bin: at byte 7: bad");
    weir_err_where(&e, NULL, "w", -1);
    weir_err_where(&e, "other", "v", 9); /* too late, and another file */
    assert_string_equal(weir_err_line(&e, line, sizeof line), "a.bin: tensor w at byte 7: bad");
    assert_int_equal(weir_err_where(NULL, "f", NULL, 1), WEIR_E_FORMAT);
    assert_string_equal(weir_err_line(&e, line, 8), "a.bin: ");
}

static void test_errors_are_one_printable_line(void **state)
{
    (void)state;
    weir_err e = {0};
    weir_fail(&e, WEIR_E_FORMAT, "a\nb\x1b[31m\x7f");
    assert_string_equal(e.msg, "a?b?[31m?");
    /* C1's CSI, a mark that turns text around, half a character; an e with an accent stays */
    char text[] = "\xc2\x9b\xe2\x80\xae\xe2\x80 \xc3\xa9";
    weir_make_printable(text);
    assert_string_equal(text, "??????? \xc3\xa9");
    assert_true(weir_unprintable(0x2028) && weir_unprintable(0xe0001) && weir_unprintable(0));
    assert_false(weir_unprintable(' ') || weir_unprintable(0x200d) || weir_unprintable(0x10ffff));
    char *long_name = malloc(2001);
    memset(long_name, 0, 2001);
    for (int i = 0; i < 1000; i++)
        memcpy(long_name + 2 * i, "\xc3\xa9", 2);
    weir_err_where(&e, long_name, long_name, -1);
    e.code = WEIR_OK;
    weir_fail(&e, WEIR_E_FORMAT, "%s", long_name);
    size_t n = strlen(e.msg);
    assert_true(n > sizeof e.msg - 8 && n < sizeof e.msg);
    assert_string_equal(e.msg + n - 3, "...");
    for (size_t i = 0; i < n;) { /* no half character before the dots */
        int len = weir_utf8_len(e.msg + i, n - i);
        assert_true(len > 0);
        i += (size_t)len;
    }
    free(long_name);
}

static void remember(void *user, weir_log_level level, const char *msg)
{
    snprintf(user, 100, "%d %s", level, msg);
}

static void test_log(void **state)
{
    (void)state;
    char got[100] = "";
    weir_logf(NULL, WEIR_LOG_WARN, "x");
    weir_logf(&(weir_log){0}, WEIR_LOG_WARN, "x");
    weir_logf(&(weir_log){remember, got}, WEIR_LOG_WARN, "%s %d", "n", 3);
    assert_string_equal(got, "1 n 3");
}

static void test_sizes(void **state)
{
    (void)state;
    int64_t v;
    assert_true(weir_mul64(INT64_MAX / 2, 2, &v) && v == INT64_MAX - 1);
    assert_false(weir_mul64(INT64_MAX / 2 + 1, 2, &v));
    assert_false(weir_mul64(-1, 0, &v));
    assert_true(weir_add64(INT64_MAX - 1, 1, &v) && v == INT64_MAX);
    assert_false(weir_add64(INT64_MAX, 1, &v));
    assert_false(weir_add64(-1, 1, &v));
    assert_null(weir_calloc(SIZE_MAX / 2, 3));
    assert_null(weir_realloc(NULL, SIZE_MAX / 2, 3));
    assert_null(weir_alloc_aligned(SIZE_MAX - 1));
    void *p = weir_calloc(0, 8);
    assert_non_null(p);
    weir_free(p);
}

static void test_aligned(void **state)
{
    (void)state;
    static const size_t size[] = {0, 1, 1000, ((size_t)4 << 20) - 1, (size_t)4 << 20, ((size_t)9 << 20) + 5};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        unsigned char *p = weir_alloc_aligned(size[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        if (size[i] >= (size_t)4 << 20)
            assert_int_equal((uintptr_t)p % ((size_t)2 << 20), 0);
        memset(p, 1, size[i]);
        weir_free_aligned(p);
    }
}

static void test_arena(void **state)
{
    (void)state;
    weir_arena a = {0};
    unsigned char *kept[300];
    for (int i = 0; i < 300; i++) {
        size_t n = (size_t)(i * 37 % 1000) * (i % 50 == 49 ? 400 : 1);
        kept[i] = weir_arena_alloc(&a, n, 1);
        assert_non_null(kept[i]);
        assert_int_equal((uintptr_t)kept[i] % 16, 0);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(kept[i][k], 0);
        memset(kept[i], i & 0xff, n);
    }
    for (int i = 0; i < 300; i++) /* no two of them share a byte */
        for (size_t k = 0; k < (size_t)(i * 37 % 1000); k++)
            assert_int_equal(kept[i][k], i & 0xff);
    char *s = weir_arena_strndup(&a, "abcdef", 3);
    assert_string_equal(s, "abc");
    assert_null(weir_arena_alloc(&a, SIZE_MAX / 2, 4));
    weir_arena_free(&a);
    assert_null(a.head);
}

static void test_buf(void **state)
{
    (void)state;
    weir_buf b = {0};
    assert_int_equal(weir_buf_add(&b, NULL, 0), WEIR_OK);
    assert_string_equal(b.p, "");
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_buf_printf(&b, "%03d,", i), WEIR_OK);
    assert_int_equal(b.n, 4000);
    assert_memory_equal(b.p + 3996, "999,", 5);
    assert_int_equal(weir_buf_add(&b, "", SIZE_MAX / 2), WEIR_E_NOMEM);
    char *before = b.p;
    assert_int_equal(weir_buf_reserve(&b, 100000), WEIR_OK);
    before = b.p;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_buf_add(&b, "0123456789", 10), WEIR_OK);
    assert_ptr_equal(before, b.p);
    weir_buf_free(&b);
}

static void test_grow(void **state)
{
    (void)state;
    int *a = NULL;
    for (int n = 0; n < 5000; n++) {
        a = weir_grow(a, (size_t)n, sizeof *a);
        assert_non_null(a);
        a[n] = n;
    }
    for (int n = 0; n < 5000; n++)
        assert_int_equal(a[n], n);
    weir_free(a);
}

static void test_strmap(void **state)
{
    (void)state;
    enum { N = 20000 };
    static char key[N][12];
    weir_strmap m = {0};
    int64_t v;
    bool added;
    assert_false(weir_strmap_get(&m, "x", 1, &v));
    for (int i = 0; i < N; i++) {
        snprintf(key[i], sizeof key[i], "k%d", i * 7);
        assert_int_equal(weir_strmap_add(&m, (weir_str){key[i], strlen(key[i])}, i, &added, NULL), WEIR_OK);
        assert_true(added);
    }
    assert_int_equal(m.n, N);
    for (int i = 0; i < N; i++) {
        assert_true(weir_strmap_get(&m, key[i], strlen(key[i]), &v));
        assert_int_equal(v, i);
    }
    assert_false(weir_strmap_get(&m, "k1", 2, &v));
    assert_int_equal(weir_strmap_add(&m, (weir_str){"k7", 2}, 99, &added, &v), WEIR_OK);
    assert_false(added);
    assert_int_equal(v, 1);
    assert_int_equal(weir_strmap_add(&m, (weir_str){NULL, 0}, 5, &added, NULL), WEIR_OK); /* the empty key is a key */
    assert_true(added && weir_strmap_get(&m, "", 0, &v) && v == 5);
    assert_int_equal(weir_strmap_add(&m, (weir_str){"k\0z", 3}, 6, &added, NULL),
                     WEIR_OK); /* NUL is a byte like others */
    assert_true(added && weir_strmap_get(&m, "k\0z", 3, &v) && v == 6 && !weir_strmap_get(&m, "k", 1, &v));
    weir_strmap_free(&m);
}

static void test_sha256(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hex;
    } known[] = {
        /* FIPS 180-4's examples */
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[65];
    weir_sha256 s;
    for (int i = 0; i < 3; i++) {
        weir_sha256_init(&s);
        weir_sha256_add(&s, known[i].text, strlen(known[i].text));
        weir_sha256_hex(&s, hex);
        assert_string_equal(hex, known[i].hex);
    }
    weir_sha256_init(&s); /* a million times "a", in pieces of odd size */
    char a[337];
    memset(a, 'a', sizeof a);
    for (size_t left = 1000000, n; left; left -= n) {
        n = 1 + left % sizeof a;
        n = n > left ? left : n;
        weir_sha256_add(&s, a, n);
    }
    weir_sha256_hex(&s, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_utf8(void **state)
{
    (void)state;
    assert_int_equal(weir_utf8_len("", 0), 0);
    assert_int_equal(weir_utf8_len("\0", 1), 1);
    assert_int_equal(weir_utf8_len("\xc0\x80", 2), 0);         /* overlong */
    assert_int_equal(weir_utf8_len("\xe0\x9f\xbf", 3), 0);     /* overlong */
    assert_int_equal(weir_utf8_len("\xed\xa0\x80", 3), 0);     /* surrogate */
    assert_int_equal(weir_utf8_len("\xf4\x90\x80\x80", 4), 0); /* above U+10FFFF */
    assert_int_equal(weir_utf8_len("\xf0\x9f\x98", 3), 0);     /* cut */
    assert_int_equal(weir_utf8_len("\x80", 1), 0);
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        char out[4];
        int n = weir_utf8_put(out, cp), want = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        bool surrogate = cp >= 0xd800 && cp < 0xe000;
        if (n != want || weir_utf8_len(out, (size_t)n) != (surrogate ? 0 : n))
            fail_msg("code point %x", cp);
    }
}

/* --- the parallel loop */

typedef struct visits {
    _Atomic int count[1000];
    _Atomic int bad_thread;
    _Atomic int nested;
    int threads;
} visits;

static void visit(void *ctx, int64_t i, int thread)
{
    visits *v = ctx;
    atomic_fetch_add(&v->count[i], 1);
    if (thread < 0 || thread >= v->threads)
        atomic_fetch_add(&v->bad_thread, 1);
}

static void test_every_index_once(void **state)
{
    (void)state;
    static const int64_t n[] = {0, 1, 2, 3, 17, 1000}, grain[] = {0, 1, 3, 64, 5000, INT64_MAX};
    for (int threads = 0; threads <= 5; threads++)
        for (size_t a = 0; a < 6; a++)
            for (size_t b = 0; b < 6; b++) {
                visits *v = calloc(1, sizeof *v);
                v->threads = threads > 1 ? threads : 1;
                weir_parallel_for(threads, n[a], grain[b], visit, v);
                for (int64_t i = 0; i < 1000; i++)
                    assert_int_equal(v->count[i], i < n[a]);
                assert_int_equal(v->bad_thread, 0);
                free(v);
            }
}

static void outer(void *ctx, int64_t i, int thread)
{
    visits *v = ctx;
    (void)i, (void)thread;
    visits *inner = calloc(1, sizeof *inner);
    inner->threads = 1; /* nested: serial, thread 0 */
    weir_parallel_for(4, 10, 1, visit, inner);
    for (int k = 0; k < 10; k++)
        if (inner->count[k] != 1 || inner->bad_thread)
            atomic_fetch_add(&v->nested, 1);
    free(inner);
}

static void test_nested_is_serial(void **state)
{
    (void)state;
    visits *v = calloc(1, sizeof *v);
    weir_parallel_for(2, 8, 1, outer, v);
    assert_int_equal(v->nested, 0);
    free(v);
}

typedef struct sums {
    int64_t *cell; /* plain memory: the sanitizer sees a missing barrier */
} sums;

static void write_cell(void *ctx, int64_t i, int thread)
{
    (void)thread;
    ((sums *)ctx)->cell[i] = i * i;
}

static void *several_rounds(void *unused)
{
    (void)unused;
    int64_t cell[500];
    sums s = {cell};
    for (int round = 0; round < 50; round++) {
        memset(cell, 0, sizeof cell);
        weir_parallel_for(2, 500, round % 3 * 8, write_cell, &s);
        for (int64_t i = 0; i < 500; i++)
            if (cell[i] != i * i)
                return (void *)1;
    }
    return NULL;
}

static void test_results_are_visible(void **state)
{
    (void)state;
    assert_null(several_rounds(NULL));
}

static void test_from_two_threads_at_once(void **state)
{
    (void)state;
    pthread_t t;
    void *bad;
    assert_int_equal(pthread_create(&t, NULL, several_rounds, NULL), 0);
    assert_null(several_rounds(NULL));
    assert_int_equal(pthread_join(t, &bad), 0);
    assert_null(bad);
}

static void test_processors(void **state)
{
    (void)state;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    assert_in_range(weir_processors(), 1, online);
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(weir_processors(), 1);
    sched_setaffinity(0, sizeof all, &all);
}

/* In a process that may have no more than 64 threads (root is exempt, and therefore leaves its place). */
static void test_threads_that_are_refused(void **state)
{
    (void)state;
    assert_int_equal(weir_threads(1), 1);
    assert_int_equal(weir_threads(0), weir_processors());
    assert_int_equal(weir_threads(5), 5);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit few = {64, 64};
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(100);
        _exit(setrlimit(RLIMIT_NPROC, &few) == 0 ? weir_threads(1000) : 101);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 1, 32);
}

static void test_version(void **state)
{
    (void)state;
    assert_string_equal(weir_version(), WEIR_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_said_can_fail),
        cmocka_unit_test(test_first_error_wins),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_errors_are_one_printable_line),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_buf),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_strmap),
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_every_index_once),
        cmocka_unit_test(test_nested_is_serial),
        cmocka_unit_test(test_results_are_visible),
        cmocka_unit_test(test_from_two_threads_at_once),
        cmocka_unit_test(test_processors),
        cmocka_unit_test(test_threads_that_are_refused),
        cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

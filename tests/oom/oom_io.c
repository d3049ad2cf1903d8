/* Every n-th allocation fails, n = 1, 2, 3, ... until a whole piece of work needs no n-th one: each failure must come
 * out as WEIR_E_NOMEM, and leave nothing behind. The linker sends the library's allocations through the __wrap_
 * functions here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <zlib.h>

#include <weir/json.h>
#include <weir/text.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "io/checkpoint.h"
#include "support/bytes.h"
#include "support/scratch.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **p, size_t align, size_t n);

static long countdown; /* allocations until one fails; 0: none will */

static bool fails(void)
{
    return countdown && !--countdown;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

int __wrap_posix_memalign(void **p, size_t align, size_t n)
{
    return fails() ? 12 : __real_posix_memalign(p, align, n);
}

/* --- pieces of work */

static weir_status base(weir_err *err)
{
    weir_arena a = {0};
    weir_strmap m = {0};
    weir_buf b = {0};
    weir_status s = WEIR_OK;
    char key[100][16];
    for (int i = 0; i < 100 && s == WEIR_OK; i++) {
        snprintf(key[i], sizeof key[i], "k%d", i);
        s = weir_strmap_add(&m, (weir_str){key[i], strlen(key[i])}, i, NULL, NULL);
        if (s == WEIR_OK)
            s = weir_buf_printf(&b, "%s, ", key[i]);
        if (s == WEIR_OK && !weir_arena_alloc(&a, 1000, 1))
            s = WEIR_E_NOMEM;
    }
    void *big = s == WEIR_OK ? weir_alloc_aligned((size_t)5 << 20) : NULL;
    if (s != WEIR_OK || !big)
        s = weir_nomem(err, "the test");
    weir_free_aligned(big);
    weir_arena_free(&a);
    weir_strmap_free(&m);
    weir_buf_free(&b);
    return s;
}

static weir_status json(weir_err *err)
{
    char text[4000] = "[{";
    size_t n = 2;
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "\"\\u0041%d\":\"\\n%d\",", i, i);
    n += (size_t)snprintf(text + n, sizeof text - n, "\"x\":1.25}]");
    weir_json j;
    weir_str key;
    weir_json_init(&j, text, n, "t.json", err);
    weir_json_array(&j);
    weir_json_item(&j);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        if (weir_str_eq(key, "x"))
            weir_json_double(&j);
        else
            weir_json_string(&j);
    }
    weir_json_item(&j);
    weir_json_end(&j);
    return weir_json_done(&j);
}

static weir_status open_checkpoint(const char *path, weir_err *err)
{
    weir_checkpoint c;
    weir_status s = weir_checkpoint_open(&c, path, err);
    weir_checkpoint_close(&c);
    return s;
}

static weir_status single(weir_err *err)
{
    return open_checkpoint(scratch("single"), err);
}

static weir_status shards(weir_err *err)
{
    return open_checkpoint(scratch("shards"), err);
}

static weir_status gguf(weir_err *err)
{
    return open_checkpoint(scratch("m.gguf"), err);
}

static weir_status documents(weir_err *err, const char *path, bool ids)
{
    weir_docs *d;
    weir_doc doc;
    bool more = true;
    weir_docs_options o;
    weir_docs_options_init(&o);
    o.paths = &path, o.n_paths = 1, o.ids = ids;
    weir_status s = weir_docs_open(&d, &o, err);
    while (s == WEIR_OK && more)
        s = weir_docs_next(d, &doc, &more, err);
    weir_docs_free(d);
    return s;
}

static weir_status text_gz(weir_err *err)
{
    return documents(err, scratch("t.gz"), false);
}

static weir_status records(weir_err *err)
{
    return documents(err, scratch("t.jsonl"), false);
}

static weir_status id_lists(weir_err *err)
{
    return documents(err, scratch("t.ids"), true);
}

static weir_status outfile(weir_err *err)
{
    weir_outfile *f;
    WEIR_TRY(weir_outfile_open(&f, scratch("out"), true, err));
    fputs("x", weir_outfile_stream(f));
    return weir_outfile_commit(f, err);
}

/* --- their files */

#define ENTRY(name, from, to) "\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" #from "," #to "]}"

static void write_safetensors(const char *name, const char *header, size_t data)
{
    blob b = {0};
    put_safetensors(&b, header, data);
    scratch_write(name, b.p, b.n);
    free(b.p);
}

static void write_gguf(void)
{
    blob b = {0};
    put_gguf_head(&b, 3, 20, 20);
    for (uint32_t i = 0; i < 20; i++) {
        char key[20];
        snprintf(key, sizeof key, "key%u", i);
        put_gguf_u32(&b, key, i);
    }
    for (uint64_t i = 0; i < 20; i++) {
        char name[20];
        snprintf(name, sizeof name, "tensor%llu", (unsigned long long)i);
        put_gguf_tensor(&b, name, 1, (uint64_t[]){8}, 0, 32 * i);
    }
    pad(&b, 32);
    put_zeros(&b, 32 * 20);
    scratch_write("m.gguf", b.p, b.n);
    free(b.p);
}

static int write_files(void **state)
{
    if (scratch_make(state))
        return -1;
    scratch_dir("single"), scratch_dir("shards");
    scratch_text("single/config.json", "{}"), scratch_text("shards/config.json", "{}");
    write_safetensors("single/model.safetensors", "{" ENTRY("a\\u0041", 0, 4) "," ENTRY("b", 4, 8) "}", 8);
    write_safetensors("shards/1.safetensors", "{" ENTRY("a", 0, 4) "," ENTRY("b", 4, 8) "}", 8);
    write_safetensors("shards/2.safetensors", "{" ENTRY("c", 0, 4) "}", 4);
    scratch_text("shards/model.safetensors.index.json",
                 "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"1.safetensors\",\"c\":\"2.safetensors\"}}");
    write_gguf();
    gzFile z = gzopen(scratch("t.gz"), "wb");
    for (int i = 0; i < 20000; i++) /* more than the first window holds */
        gzprintf(z, "%d%s", i, i % 10000 ? " and on it goes, " : "\n");
    gzclose(z);
    scratch_text("t.jsonl",
                 "{\"text\":\"a\\nb\",\"s\\u0041\":\"x\\ty\",\"n\":1,\"f\":0.5,\"l\":[1]}\n{\"text\":\"c\"}\n");
    scratch_text("t.ids", "1 2 3\n4 5\n");
    return 0;
}

/* --- the loop */

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Does repeating work with its n-th allocation failing keep memory? The first rounds fill the allocator's own caches.
 * (Under a sanitizer this sees nothing; its leak check does.) */
static bool leaks(weir_status (*work)(weir_err *), long n)
{
    size_t before = 0;
    for (int round = 0; round < 40; round++) {
        if (round == 20)
            before = in_use();
        weir_err err = {0};
        countdown = n;
        weir_status s = work(&err);
        countdown = 0;
        (void)s;
    }
    return in_use() > before;
}

/* Every failure is reported as what it is; returns how many allocations the work makes. */
static long exhaust(weir_status (*work)(weir_err *))
{
    for (long n = 1;; n++) {
        weir_err err = {0};
        countdown = n;
        weir_status s = work(&err);
        bool reached = countdown == 0;
        countdown = 0;
        if (!reached) {
            assert_int_equal(s, WEIR_OK);
            assert_int_equal(err.code, WEIR_OK);
            return n - 1;
        }
        if (s != WEIR_E_NOMEM || err.code != WEIR_E_NOMEM || !err.msg[0])
            fail_msg("allocation %ld failed, the work said %d (%d: %s)", n, s, err.code, err.msg);
        if (leaks(work, n))
            fail_msg("memory is lost when allocation %ld fails", n);
    }
}

static void *kept[100];
static int n_kept;

static weir_status forgetful(weir_err *err)
{
    kept[n_kept] = weir_calloc(1, 5000);
    return kept[n_kept++] ? WEIR_OK : weir_nomem(err, "the test");
}

static void test_leaks_are_seen(void **state)
{
    (void)state;
    bool seen = leaks(forgetful, 1000);
    bool blind = in_use() == 0; /* a sanitizer's allocator does not count here */
    while (n_kept)
        weir_free(kept[--n_kept]);
    assert_true(seen || blind);
    assert_false(leaks(base, 1000000));
}

#define WORK(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        assert_in_range(exhaust(name), 2, 500);                                                                        \
    }
WORK(base)
WORK(json)
WORK(single)
WORK(shards)
WORK(gguf)
WORK(text_gz)
WORK(records)
WORK(id_lists)
WORK(outfile)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaks_are_seen), cmocka_unit_test(test_base),    cmocka_unit_test(test_json),
        cmocka_unit_test(test_single),         cmocka_unit_test(test_shards),  cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_text_gz),        cmocka_unit_test(test_records), cmocka_unit_test(test_id_lists),
        cmocka_unit_test(test_outfile),
    };
    return cmocka_run_group_tests(tests, write_files, scratch_remove);
}

/* Reading files, and what lies below it: every allocation fails once. And the loop itself (support/oom.h): what it is
 * there to find, it finds. */
#include <zlib.h>

#include <weir/json.h>
#include <weir/text.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "io/checkpoint.h"
#include "support/bytes.h"
#include "support/oom.h"
#include "support/scratch.h"

/* --- pieces of work */

static weir_status base(const void *ctx, weir_err *err)
{
    (void)ctx;
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

static weir_status json(const void *ctx, weir_err *err)
{
    (void)ctx;
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

static weir_status single(const void *ctx, weir_err *err)
{
    (void)ctx;
    return open_checkpoint(scratch("single"), err);
}

static weir_status shards(const void *ctx, weir_err *err)
{
    (void)ctx;
    return open_checkpoint(scratch("shards"), err);
}

static weir_status gguf(const void *ctx, weir_err *err)
{
    (void)ctx;
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

static weir_status text_gz(const void *ctx, weir_err *err)
{
    (void)ctx;
    return documents(err, scratch("t.gz"), false);
}

static weir_status records(const void *ctx, weir_err *err)
{
    (void)ctx;
    return documents(err, scratch("t.jsonl"), false);
}

static weir_status id_lists(const void *ctx, weir_err *err)
{
    (void)ctx;
    return documents(err, scratch("t.ids"), true);
}

static weir_status outfile(const void *ctx, weir_err *err)
{
    (void)ctx;
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

/* --- the loop can fail */

static void *kept[10];
static int n_kept;

static weir_status forgetful(const void *ctx, weir_err *err)
{
    (void)ctx;
    kept[n_kept] = weir_calloc(1, 100);
    return kept[n_kept++] ? WEIR_OK : weir_nomem(err, "the test");
}

static weir_status blind(const void *ctx, weir_err *err)
{
    (void)ctx, (void)err;
    weir_free(weir_calloc(1, 100));
    return WEIR_OK;
}

static weir_status misled(const void *ctx, weir_err *err)
{
    (void)ctx;
    void *p = weir_calloc(1, 100);
    weir_free(p);
    return p ? WEIR_OK : weir_fail(err, WEIR_E_FORMAT, "the file is broken");
}

static void test_faults_are_seen(void **state)
{
    (void)state;
    char fault[700];
    oom_result r = oom_once(forgetful, NULL, 0);
    assert_int_equal(r.kept, 1);
    assert_non_null(oom_fault(&r, fault, sizeof fault));
    r = oom_once(forgetful, NULL, 1);
    assert_null(oom_fault(&r, fault, sizeof fault));
    while (n_kept)
        weir_free(kept[--n_kept]);
    r = oom_once(blind, NULL, 1);
    assert_non_null(oom_fault(&r, fault, sizeof fault));
    r = oom_once(misled, NULL, 1);
    assert_non_null(oom_fault(&r, fault, sizeof fault));
    r = oom_once(misled, NULL, 2);
    assert_false(r.reached);
    assert_null(oom_fault(&r, fault, sizeof fault));
}

#define WORK(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        assert_in_range(oom_each(name, NULL), 2, 500);                                                                 \
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
        cmocka_unit_test(test_faults_are_seen), cmocka_unit_test(test_base),    cmocka_unit_test(test_json),
        cmocka_unit_test(test_single),          cmocka_unit_test(test_shards),  cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_text_gz),         cmocka_unit_test(test_records), cmocka_unit_test(test_id_lists),
        cmocka_unit_test(test_outfile),
    };
    return cmocka_run_group_tests(tests, write_files, scratch_remove);
}

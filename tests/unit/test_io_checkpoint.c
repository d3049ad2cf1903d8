/* Hugging Face directories, sharded or not, and what is said when something is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "io/checkpoint.h"
#include "support/bytes.h"
#include "support/said.h"
#include "support/scratch.h"

static void write_safetensors(const char *name, const char *header, size_t data)
{
    blob b = {0};
    put_safetensors(&b, header, data);
    scratch_write(name, b.p, b.n);
    free(b.p);
}

#define ONE(name) "{\"" name "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"
#define TWO(a, b)                                                                                                      \
    "{\"" a "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"" b                                         \
    "\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[4,8]}}"

static void refused(const char *dir, weir_status code, const char *words)
{
    weir_checkpoint c;
    weir_err e = {0};
    assert_int_equal(weir_checkpoint_open(&c, scratch(dir), &e), code);
    assert_true(said(&e, code, words));
    assert_null(c.own);
}

static void test_single(void **state)
{
    (void)state;
    weir_checkpoint c;
    weir_err e = {0};
    scratch_dir("single");
    scratch_text("single/config.json", "{}");
    write_safetensors("single/model.safetensors", TWO("a", "b"), 8);
    scratch_text("single/model.safetensors.index.json", "not looked at");
    assert_int_equal(weir_checkpoint_open(&c, scratch("single"), &e), WEIR_OK);
    assert_int_equal(c.n_tensors, 2);
    assert_int_equal(c.n_shards, 1);
    assert_int_equal(c.config.size, 2);
    assert_int_equal(c.mapped, c.shard[0].size);
    assert_int_equal(weir_checkpoint_find(&c, "b")->dtype, WEIR_F16);
    assert_null(weir_checkpoint_find(&c, "c"));
    weir_checkpoint_close(&c);
}

static void test_missing(void **state)
{
    (void)state;
    refused("nowhere", WEIR_E_IO, "nowhere: cannot open: No such file");
    scratch_dir("missing");
    refused("missing", WEIR_E_IO, "no config.json is there: give a Hugging Face model directory or a .gguf file");
    scratch_text("missing/config.json", "{}");
    refused("missing", WEIR_E_IO, "neither model.safetensors nor model.safetensors.index.json is there");
    scratch_text("missing/pytorch_model.bin", "x");
    refused("missing", WEIR_E_UNSUPPORTED, "the weights are in pytorch_model.bin, which weir does not read: convert");
    refused("missing/config.json", WEIR_E_ARG, "give the directory");
    refused("missing/pytorch_model.bin", WEIR_E_FORMAT, "ends too early");
}

static void write_shards(const char *weight_map)
{
    char index[1000];
    scratch_dir("shards");
    scratch_text("shards/config.json", "{}");
    snprintf(index, sizeof index, "{\"metadata\":{\"total_size\":16},\"weight_map\":%s}", weight_map);
    scratch_text("shards/model.safetensors.index.json", index);
    write_safetensors("shards/model-2.safetensors", ONE("c"), 4);
    write_safetensors("shards/model-1.safetensors", TWO("a", "b"), 8);
}

#define S1 "\"model-1.safetensors\""
#define S2 "\"model-2.safetensors\""

static void test_shards(void **state)
{
    (void)state;
    weir_checkpoint c;
    weir_err e = {0};
    write_shards("{\"c\":" S2 ",\"b\":" S1 ",\"a\":" S1 "}");
    assert_int_equal(weir_checkpoint_open(&c, scratch("shards"), &e), WEIR_OK);
    assert_int_equal(c.n_tensors, 3);
    assert_int_equal(c.n_shards, 2);
    assert_string_equal(c.tensor[0].name, "a"); /* shards in order of their names */
    assert_string_equal(c.tensor[2].name, "c");
    assert_string_equal(weir_checkpoint_find(&c, "c")->file, scratch("shards/model-2.safetensors"));
    weir_checkpoint_close(&c);
}

static void test_refuses_shards(void **state)
{
    (void)state;
    static const struct {
        const char *map;
        weir_status code;
        const char *words;
    } bad[] = {
        {"{\"a\":" S1 ",\"c\":" S2 "}", WEIR_E_FORMAT, "model-1.safetensors: tensor b at byte"},
        {"{\"a\":" S1 ",\"c\":" S2 "}", WEIR_E_FORMAT, "it is not in the index"},
        {"{\"a\":" S1 ",\"b\":" S2 ",\"c\":" S2 "}", WEIR_E_FORMAT, "the index has it in model-2.safetensors"},
        {"{\"a\":" S1 ",\"b\":" S1 ",\"c\":" S2 ",\"d\":" S2 "}", WEIR_E_FORMAT,
         "index.json: tensor d: the index has it in model-2.safetensors, where it is not"},
        {"{\"a\":" S1 ",\"b\":" S1 ",\"c\":\"model-3.safetensors\"}", WEIR_E_IO, "model-3.safetensors: the index"},
        {"{\"a\":\"../shards/model-1.safetensors\"}", WEIR_E_FORMAT, "tensor a at byte"},
        {"{\"a\":\"../shards/model-1.safetensors\"}", WEIR_E_FORMAT, "is no name of a *.safetensors file"},
        {"{\"a\":\"/etc/x.safetensors\"}", WEIR_E_FORMAT, "is no name of"},
        {"{\"a\":\"sub/x.safetensors\"}", WEIR_E_FORMAT, "is no name of"},
        {"{\"a\":\"sub\\\\x.safetensors\"}", WEIR_E_FORMAT, "is no name of"},
        {"{\"a\":\"..\"}", WEIR_E_FORMAT, "is no name of"},
        {"{\"a\":\"\"}", WEIR_E_FORMAT, "is no name of"},
        {"{\"a\":\".safetensors\"}", WEIR_E_FORMAT, "is no name of"},
        {"{\"a\":\"x\\u0000.safetensors\"}", WEIR_E_FORMAT, "is no name of"},
        {"{\"a\":\"pytorch_model-1.bin\"}", WEIR_E_FORMAT, "is no name of"},
        {"{\"a\":1}", WEIR_E_FORMAT, "a string was expected"},
        {"{\"a\\u0000\":" S1 "}", WEIR_E_FORMAT, "holds a NUL"},
        {"{\"a\":" S1 ",\"a\":" S1 "}", WEIR_E_FORMAT, "duplicate key"},
        {"{}", WEIR_E_FORMAT, "weight_map is empty"},
        {"[]", WEIR_E_FORMAT, "an object was expected"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_shards(bad[i].map);
        refused("shards", bad[i].code, bad[i].words);
    }
    write_shards("{\"a\":" S1 ",\"b\":" S1 ",\"c\":" S2 "}");
    write_safetensors("shards/model-2.safetensors", TWO("c", "a"), 8);
    refused("shards", WEIR_E_FORMAT, "model-2.safetensors: tensor a at byte");
    refused("shards", WEIR_E_FORMAT, "it is also in ");
    scratch_text("shards/model.safetensors.index.json", "{\"metadata\":{}}");
    refused("shards", WEIR_E_FORMAT, "there is no weight_map");
}

/* Links are followed only in a hub cache, where config.json is one too. */
static void test_links(void **state)
{
    (void)state;
    weir_checkpoint c;
    weir_err e = {0};
    write_shards("{\"a\":" S1 ",\"b\":" S1 ",\"c\":" S2 "}");
    assert_int_equal(rename(scratch("shards/model-2.safetensors"), scratch("elsewhere.safetensors")), 0);
    assert_int_equal(symlink("../elsewhere.safetensors", scratch("shards/model-2.safetensors")), 0);
    refused("shards", WEIR_E_FORMAT, "model-2.safetensors: a symbolic link");
    assert_int_equal(rename(scratch("shards/config.json"), scratch("config.blob")), 0);
    assert_int_equal(symlink("../config.blob", scratch("shards/config.json")), 0);
    assert_int_equal(weir_checkpoint_open(&c, scratch("shards"), &e), WEIR_OK);
    weir_checkpoint_close(&c);
    unlink(scratch("shards/model-2.safetensors"));
    unlink(scratch("shards/config.json"));
}

static void test_gguf(void **state)
{
    (void)state;
    weir_checkpoint c;
    weir_err e = {0};
    blob b = {0};
    put_gguf_head(&b, 3, 1, 0);
    put_gguf_tensor(&b, "t", 1, (uint64_t[]){4}, 0, 0);
    pad(&b, 32);
    put_zeros(&b, 16);
    scratch_write("m.bin", b.p, b.n); /* the name does not matter */
    assert_int_equal(weir_checkpoint_open(&c, scratch("m.bin"), &e), WEIR_OK);
    assert_true(c.is_gguf);
    assert_int_equal(c.mapped, b.n);
    assert_int_equal(weir_checkpoint_find(&c, "t")->bytes, 16);
    weir_checkpoint_close(&c);
    free(b.p);
}

/* Bytes that this process made the system read from storage or cache on behalf of the map: pages of the file that are
 * resident. */
static size_t resident(const weir_filemap *m)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (m->size + page - 1) / page, count = 0;
    unsigned char *seen = malloc(n);
    assert_int_equal(mincore((void *)(uintptr_t)m->data, m->size, seen), 0);
    for (size_t i = 0; i < n; i++)
        count += seen[i] & 1;
    free(seen);
    return count * page;
}

/* Opening a sparse file of 10 GB brings less than 1 % of it into memory: a few pages. */
static void test_opening_reads_headers_only(void **state)
{
    (void)state;
    const uint64_t rows = 2621440, bytes = rows * 1000 * 4;
    char header[200];
    weir_checkpoint c;
    weir_err e = {0};
    scratch_dir("big");
    scratch_text("big/config.json", "{}");
    int n =
        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"F32\",\"shape\":[%llu,1000],\"data_offsets\":[0,%llu]}}",
                 (unsigned long long)rows, (unsigned long long)bytes);
    write_safetensors("big/model.safetensors", header, 0);
    assert_int_equal(truncate(scratch("big/model.safetensors"), (off_t)(8 + (uint64_t)n + bytes)), 0);
    int fd = open(scratch("big/model.safetensors"), O_RDWR);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    assert_int_equal(weir_checkpoint_open(&c, scratch("big"), &e), WEIR_OK);
    assert_int_equal(c.mapped, 8 + (uint64_t)n + bytes);
    assert_in_range(resident(&c.shard[0]), 1, (size_t)1 << 20);
    volatile const uint8_t *weights = c.tensor[0].data; /* the count can see what was read */
    size_t before = resident(&c.shard[0]);
    for (uint64_t at = 0; at < bytes; at += bytes / 64)
        (void)weights[at];
    assert_true(resident(&c.shard[0]) >= before + 60 * 4096);
    weir_checkpoint_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_refuses_shards),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_opening_reads_headers_only),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Fingerprints, the embedded model, what opening reads, and the real model beside the repository. */
#include <fcntl.h>
#include <sys/mman.h>

#include "model_families.h"

static weir_model *open_path(const char *path)
{
    weir_model *m = NULL;
    weir_err err = {0};
    char line[1200];
    if (weir_model_open(&m, path, NULL, &err))
        fail_msg("%s", weir_err_line(&err, line, sizeof line));
    return m;
}

static void fingerprint(const char *path, bool full, char out[65])
{
    weir_err err = {0};
    weir_model *m = open_path(path);
    assert_int_equal(weir_model_fingerprint(m, full, out, &err), WEIR_OK);
    weir_model_free(m);
}

/* --- brook */

static void test_brook(void **state)
{
    (void)state;
    weir_model *m = NULL;
    weir_err err = {0};
    char path[512], line[1200], out[65];
    unsetenv("WEIR_BROOK");
    if (!weir_brook_path(path, sizeof path, &err) || weir_model_open(&m, NULL, NULL, &err))
        fail_msg("%s", weir_err_line(&err, line, sizeof line));
    const weir_model_info *i = weir_model_info_of(m);
    assert_string_equal(i->path, path);
    assert_string_equal(i->name, "brook");
    assert_string_equal(i->dtype, "F16");
    assert_int_equal(i->L, 8);
    assert_int_equal(i->C, 192);
    assert_int_equal(i->parameters, 4394880);
    assert_int_equal(weir_model_n_tensors(m), 2 + 8 * 12 + 2);
    /* Computed by a Python script from the rule in lib/model/fingerprint.c. */
    assert_int_equal(weir_model_fingerprint(m, false, out, &err), WEIR_OK);
    assert_string_equal(out, "c6e816953aa07bd902d68bbddbb1285514780cd45f078a1a88e2045995cda84f");
    assert_int_equal(weir_model_fingerprint(m, true, out, &err), WEIR_OK);
    assert_string_equal(out, "b2acb4ac0975ffcaa8208d324b32dc2fda43cf716500793ec6e9f01d1fa83dbb");
    weir_model_free(m);
}

static void test_brook_elsewhere(void **state)
{
    (void)state;
    char path[512], small[4];
    weir_err err = {0};
    mf_checkpoint k;
    mf_gpt2_hf(&k, &MF_GPT2, "F32");
    mf_write_hf(&k);
    setenv("WEIR_BROOK", k.dir, 1);
    assert_string_equal(weir_brook_path(path, sizeof path, &err), k.dir);
    weir_model *m = open_path(NULL);
    assert_int_equal(weir_model_info_of(m)->C, MF_GPT2.C);
    weir_model_free(m);
    assert_null(weir_brook_path(small, sizeof small, &err));
    assert_int_equal(err.code, WEIR_E_ARG);
    mf_remove(&k);
    err = (weir_err){0};
    assert_null(weir_brook_path(path, sizeof path, &err));
    assert_non_null(strstr(err.msg, "WEIR_BROOK names a directory without config.json"));
    assert_string_equal(err.file, k.dir);
    assert_int_equal(weir_model_open(&m, NULL, NULL, NULL), WEIR_E_ARG);
    unsetenv("WEIR_BROOK");
}

/* --- fingerprints see what they should */

/* Flips one byte of a file, counted from its end if at < 0. */
static void flip(const mf_checkpoint *k, const char *name, long at)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
    fputc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

static void test_fingerprint(void **state)
{
    (void)state;
    static const mf_sizes WIDE = {1, 64, 64, 2, 2, 32, 64, 8};
    mf_checkpoint k;
    char edge[65], full[65], edge2[65], full2[65];
    mf_llama_hf(&k, &WIDE, "F32", false, false, "");
    mf_write_hf(&k);
    fingerprint(k.path, false, edge);
    fingerprint(k.path, true, full);
    assert_int_equal(strlen(edge), 64);
    assert_string_not_equal(edge, full);
    fingerprint(k.path, false, edge2);
    assert_string_equal(edge, edge2);
    flip(&k, "model.safetensors", -1); /* the last byte of lm_head */
    fingerprint(k.path, false, edge2);
    assert_string_not_equal(edge, edge2);
    flip(&k, "model.safetensors", -1);
    flip(&k, "model.safetensors", -64 * 64 * 4 / 2); /* the middle of its 16 KiB */
    fingerprint(k.path, false, edge2);
    fingerprint(k.path, true, full2);
    assert_string_equal(edge, edge2);
    assert_string_not_equal(full, full2);
    flip(&k, "model.safetensors", -64 * 64 * 4 / 2);
    strcat(k.config, "\n");
    mf_write_hf(&k);
    fingerprint(k.path, false, edge2);
    assert_string_not_equal(edge, edge2);
    mf_remove(&k);
}

/* The order of tensors in the file does not matter, a GGUF file's metadata does. */
static void test_fingerprint_order(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    char a[65], b[65];
    mf_llama_hf(&k, &MF_LLAMA, "F32", false, false, "");
    mf_write_hf(&k);
    fingerprint(k.path, false, a);
    mf_tensor t = k.t[0];
    k.t[0] = k.t[3];
    k.t[3] = t;
    mf_write_hf(&k);
    fingerprint(k.path, false, b);
    assert_string_equal(a, b);
    mf_remove(&k);
    mf_llama_gguf(&k, &meta, &MF_LLAMA, "F32", false, true);
    mf_write_gguf(&k, &meta);
    fingerprint(k.path, false, a);
    mf_meta_str(&meta, "general.name", "other");
    mf_write_gguf(&k, &meta);
    fingerprint(k.path, false, b);
    assert_string_not_equal(a, b);
    mf_remove(&k);
}

/* --- opening reads no weights: of a sparse gigabyte, hardly a page */

static size_t resident_pages(const weir_tensor *t)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = (uintptr_t)t->data % page,
           n = (t->bytes + skip + page - 1) / page, sum = 0;
    unsigned char *in = calloc(n, 1);
    assert_int_equal(mincore((char *)t->data - skip, n * page, in), 0);
    for (size_t i = 0; i < n; i++)
        sum += in[i] & 1;
    free(in);
    return sum;
}

static void write_sparse(mf_checkpoint *k, const mf_sizes *s)
{
    char path[400], head[8192];
    uint64_t n, bytes = 0;
    mf_llama_hf(k, s, "F32", false, true, "");
    size_t used = (size_t)sprintf(head, "{");
    for (int i = 0; i < k->n; i++) {
        const mf_tensor *t = &k->t[i];
        used += (size_t)sprintf(head + used, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%lld", i ? "," : "", t->name,
                                (long long)t->n[0]);
        used += (size_t)(t->rank > 1 ? sprintf(head + used, ",%lld]", (long long)t->n[1]) : sprintf(head + used, "]"));
        used += (size_t)sprintf(head + used, ",\"data_offsets\":[%llu,%llu]}", (unsigned long long)bytes,
                                (unsigned long long)(bytes + mf_bytes(t)));
        bytes += mf_bytes(t);
    }
    n = used += (size_t)sprintf(head + used, "}");
    FILE *f = mf_create(k, "config.json");
    fputs(k->config, f);
    fclose(f);
    f = mf_create(k, "model.safetensors");
    fwrite(&n, 8, 1, f);
    fwrite(head, 1, used, f);
    fclose(f);
    snprintf(path, sizeof path, "%s/model.safetensors", k->dir);
    assert_int_equal(truncate(path, (off_t)(8 + used + bytes)), 0);
}

static void test_opening_reads_no_weights(void **state)
{
    (void)state;
    static const mf_sizes BIG = {2, 64, 64, 2, 2, 32, 4 << 20, 8}; /* a token table of 1 GiB */
    mf_checkpoint k;
    char out[65];
    weir_err err = {0};
    write_sparse(&k, &BIG);
    weir_model *m = open_path(k.path);
    const weir_tensor *table = weir_model_tensor(m, 0);
    assert_string_equal(table->name, "model.embed_tokens.weight");
    assert_true(weir_model_memory_of(m).mapped > (int64_t)1 << 30);
    assert_int_equal(weir_model_memory_of(m).panels, 0);
    assert_true(resident_pages(table) < 64); /* what the kernel read around the header */
    assert_int_equal(weir_model_fingerprint(m, false, out, &err), WEIR_OK);
    assert_true(resident_pages(table) < 64); /* and the edges of each tensor */
    weir_model_free(m);
    mf_remove(&k);
}

/* --- a real model, if it is there */

static void test_smollm2(void **state)
{
    (void)state;
    const char *shared = getenv("WEIR_SHARED");
    char path[600];
    snprintf(path, sizeof path, "%s/models/SmolLM2-135M-Instruct.Q4_1.gguf", shared && *shared ? shared : "../shared");
    if (access(path, R_OK)) {
        print_message("no %s: skipped\n", path);
        skip();
    }
    weir_model *m = open_path(path);
    const weir_model_info *i = weir_model_info_of(m);
    const mf_sizes want = {30, 576, 1536, 9, 3, 64, 49152, 8192};
    assert_int_equal(i->L, want.L);
    assert_int_equal(i->C, want.C);
    assert_int_equal(i->F, want.F);
    assert_int_equal(i->H, want.H);
    assert_int_equal(i->K, want.K);
    assert_int_equal(i->D, want.D);
    assert_int_equal(i->V, want.V);
    assert_int_equal(i->ctx, want.ctx);
    assert_int_equal(i->parameters, 134515008);
    assert_true(i->tied && i->gated);
    assert_string_equal(i->dtype, "Q4_1");
    assert_int_equal(weir_model_n_tensors(m), 272);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brook),
        cmocka_unit_test(test_brook_elsewhere),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_fingerprint_order),
        cmocka_unit_test(test_opening_reads_no_weights),
        cmocka_unit_test(test_smollm2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

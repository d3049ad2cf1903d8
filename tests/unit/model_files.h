/* tests/unit/model_files.h: checkpoints written by the tests themselves, in both formats, with weights that are known
 * by name and place. Every value is a multiple of 1/8 in [-4, 4): exact in F32, F16, BF16, and in Q8_0 with the scale
 * 1/8. */
#ifndef WEIR_TEST_MODEL_FILES_H
#define WEIR_TEST_MODEL_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <weir/model.h>

#define MF_MAX 128 /* tensors of one test checkpoint */

typedef enum mf_map { MF_AS_IS, MF_TURNED, MF_PERMUTED, MF_REGROUPED } mf_map;

typedef struct mf_tensor {
    char name[96];
    int rank;
    int64_t n[2];      /* stored shape */
    const char *dtype; /* "F32", "F16", "BF16", "Q8_0", "I64" */
    char value[96];    /* which weight it holds: values depend on this text and on the place in Hugging Face's order */
    mf_map map;        /* how the stored order differs from that */
    int64_t heads;     /* PERMUTED, REGROUPED */
    float plus;
} mf_tensor;

typedef struct mf_checkpoint {
    char dir[256];  /* a directory of its own, removed by mf_remove */
    char path[320]; /* what to open */
    char config[4096];
    mf_tensor t[MF_MAX];
    int n;
} mf_checkpoint;

static inline uint64_t mf_hash(const char *s, uint64_t h)
{
    for (h ^= 0xcbf29ce484222325u; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3u;
    return h;
}

/* Weight `value` at row r, column c, as Hugging Face's [out, in] has it. */
static inline float mf_value(const char *value, int64_t r, int64_t c)
{
    uint64_t h = mf_hash(value, (uint64_t)r * 1000003u + (uint64_t)c);
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    return (float)((int64_t)(h >> 40 & 63) - 32) / 8;
}

static inline uint16_t mf_f16(float v) /* multiples of 1/8 below 8: exact */
{
    if (v == 0)
        return 0;
    uint16_t sign = v < 0 ? 0x8000 : 0;
    float a = v < 0 ? -v : v;
    int e = 0;
    for (; a >= 2; e++)
        a /= 2;
    for (; a < 1; e--)
        a *= 2;
    return (uint16_t)(sign | (e + 15) << 10 | (int)((a - 1) * 1024));
}

/* Hugging Face's row and column of a stored place. */
static inline float mf_stored(const mf_tensor *t, int64_t r, int64_t c)
{
    int64_t row = r, col = c, rows = t->n[0];
    if (t->map == MF_TURNED) {
        row = c;
        col = r;
    } else if (t->map == MF_PERMUTED) { /* stored row 2i+h of a head is row h*(d/2)+i */
        int64_t d = rows / t->heads, at = r % d;
        row = r / d * d + at % 2 * (d / 2) + at / 2;
    } else if (t->map ==
               MF_REGROUPED) { /* stored [q;k;v], each head after head; Hugging Face: head after head of [q,k,v] */
        int64_t d = rows / (3 * t->heads), part = r / (t->heads * d), head = r / d % t->heads;
        row = head * 3 * d + part * d + r % d;
    }
    return mf_value(t->value, row, col) + t->plus;
}

static inline size_t mf_bytes(const mf_tensor *t)
{
    size_t n = (size_t)(t->n[0] * (t->rank > 1 ? t->n[1] : 1));
    if (!strcmp(t->dtype, "Q8_0"))
        return n / 32 * 34;
    return n * (!strcmp(t->dtype, "F32") ? 4 : !strcmp(t->dtype, "I64") ? 8 : 2);
}

static inline void mf_write_values(FILE *f, const mf_tensor *t)
{
    int64_t rows = t->rank > 1 ? t->n[0] : t->n[0], cols = t->rank > 1 ? t->n[1] : 1;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            float v = mf_stored(t, r, c);
            uint32_t bits;
            memcpy(&bits, &v, 4);
            uint16_t half = !strcmp(t->dtype, "F16") ? mf_f16(v) : (uint16_t)(bits >> 16);
            int64_t wide = 0;
            if (!strcmp(t->dtype, "Q8_0")) {
                uint16_t d = mf_f16(0.125f);
                if (c % 32 == 0)
                    fwrite(&d, 2, 1, f);
                fputc((int)(v * 8) & 255, f);
            } else if (!strcmp(t->dtype, "F32")) {
                fwrite(&v, 4, 1, f);
            } else if (!strcmp(t->dtype, "I64")) {
                fwrite(&wide, 8, 1, f);
            } else {
                fwrite(&half, 2, 1, f);
            }
        }
}

static inline void mf_begin(mf_checkpoint *k)
{
    const char *tmp = getenv("TMPDIR");
    memset(k, 0, sizeof *k);
    snprintf(k->dir, sizeof k->dir, "%s/weir-model-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(k->dir));
    snprintf(k->path, sizeof k->path, "%s", k->dir);
}

static inline mf_tensor *mf_add(mf_checkpoint *k, const char *name, const char *dtype, int64_t rows, int64_t cols,
                                const char *value)
{
    assert_true(k->n < MF_MAX);
    mf_tensor *t = &k->t[k->n++];
    *t = (mf_tensor){.rank = cols ? 2 : 1, .n = {rows, cols ? cols : 1}, .dtype = dtype};
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->value, sizeof t->value, "%s", value);
    return t;
}

static inline mf_tensor *mf_find(mf_checkpoint *k, const char *name)
{
    for (int i = 0; i < k->n; i++)
        if (!strcmp(k->t[i].name, name))
            return &k->t[i];
    return NULL;
}

static inline void mf_drop(mf_checkpoint *k, const char *name)
{
    mf_tensor *t = mf_find(k, name);
    assert_non_null(t);
    memmove(t, t + 1, (size_t)(&k->t[--k->n] - t) * sizeof *t);
}

static inline FILE *mf_create(const mf_checkpoint *k, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    return f;
}

/* config.json and model.safetensors. */
static inline void mf_write_hf(mf_checkpoint *k)
{
    FILE *f = mf_create(k, "config.json");
    fputs(k->config, f);
    fclose(f);
    static char head[MF_MAX * 256];
    size_t used = (size_t)sprintf(head, "{"), at = 0;
    for (int i = 0; i < k->n; i++) {
        const mf_tensor *t = &k->t[i];
        used += (size_t)sprintf(head + used, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld", i ? "," : "", t->name,
                                t->dtype, (long long)t->n[0]);
        used += (size_t)(t->rank > 1 ? sprintf(head + used, ",%lld]", (long long)t->n[1]) : sprintf(head + used, "]"));
        used += (size_t)sprintf(head + used, ",\"data_offsets\":[%zu,%zu]}", at, at + mf_bytes(t));
        at += mf_bytes(t);
    }
    used += (size_t)sprintf(head + used, "}");
    f = mf_create(k, "model.safetensors");
    uint64_t n = used;
    fwrite(&n, 8, 1, f);
    fwrite(head, 1, used, f);
    for (int i = 0; i < k->n; i++)
        mf_write_values(f, &k->t[i]);
    assert_int_equal(fclose(f), 0);
}

/* --- GGUF: metadata is collected as bytes */
typedef struct mf_meta {
    uint8_t p[8192];
    size_t n;
    int64_t count;
} mf_meta;

static inline void mf_put(mf_meta *m, const void *p, size_t n)
{
    assert_true(m->n + n <= sizeof m->p);
    memcpy(m->p + m->n, p, n);
    m->n += n;
}

static inline void mf_put_str(mf_meta *m, const char *s)
{
    uint64_t n = strlen(s);
    mf_put(m, &n, 8);
    mf_put(m, s, (size_t)n);
}

static inline void mf_key(mf_meta *m, const char *key, uint32_t type)
{
    mf_put_str(m, key);
    mf_put(m, &type, 4);
    m->count++;
}

static inline void mf_meta_str(mf_meta *m, const char *key, const char *v)
{
    mf_key(m, key, 8);
    mf_put_str(m, v);
}

static inline void mf_meta_u32(mf_meta *m, const char *key, uint32_t v)
{
    mf_key(m, key, 4);
    mf_put(m, &v, 4);
}

static inline void mf_meta_f32(mf_meta *m, const char *key, float v)
{
    mf_key(m, key, 6);
    mf_put(m, &v, 4);
}

static inline void mf_meta_bool(mf_meta *m, const char *key, bool v)
{
    uint8_t b = v;
    mf_key(m, key, 7);
    mf_put(m, &b, 1);
}

static inline void mf_pad(FILE *f)
{
    while (ftell(f) % 32)
        fputc(0, f);
}

static inline void mf_write_gguf(mf_checkpoint *k, const mf_meta *m)
{
    snprintf(k->path, sizeof k->path, "%s/model.gguf", k->dir);
    FILE *f = mf_create(k, "model.gguf");
    uint32_t version = 3;
    int64_t counts[2] = {k->n, m->count};
    fwrite("GGUF", 1, 4, f);
    fwrite(&version, 4, 1, f);
    fwrite(counts, 8, 2, f);
    fwrite(m->p, 1, m->n, f);
    uint64_t at = 0;
    for (int i = 0; i < k->n; i++) {
        const mf_tensor *t = &k->t[i];
        uint64_t len = strlen(t->name);
        uint32_t rank = (uint32_t)t->rank, type = !strcmp(t->dtype, "F32")    ? 0
                                                  : !strcmp(t->dtype, "F16")  ? 1
                                                  : !strcmp(t->dtype, "Q8_0") ? 8
                                                                              : 30;
        fwrite(&len, 8, 1, f);
        fwrite(t->name, 1, (size_t)len, f);
        fwrite(&rank, 4, 1, f);
        for (int a = t->rank - 1; a >= 0; a--)
            fwrite(&t->n[a], 8, 1, f);
        fwrite(&type, 4, 1, f);
        fwrite(&at, 8, 1, f);
        at += (mf_bytes(t) + 31) / 32 * 32;
    }
    mf_pad(f);
    for (int i = 0; i < k->n; i++) {
        mf_write_values(f, &k->t[i]);
        mf_pad(f);
    }
    assert_int_equal(fclose(f), 0);
}

static inline void mf_remove(mf_checkpoint *k)
{
    static const char *const FILES[] = {"config.json", "model.safetensors", "model.gguf"};
    char path[400];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", k->dir, FILES[i]);
        unlink(path);
    }
    rmdir(k->dir);
}

#endif

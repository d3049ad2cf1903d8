/* tests/unit/tuned_kit.h: tuned lenses as files, written piece by piece so that each piece can be wrong. */
#ifndef WEIR_TEST_TUNED_KIT_H
#define WEIR_TEST_TUNED_KIT_H

#include <math.h>

#include <weir/tuned.h>

#include "lens_kit.h"
#include "support/bytes.h"
#include "support/scratch.h"

typedef struct tuned_files {
    int64_t L, C;
    bool bias;
    float *a, *b; /* [L,C,C], [L,C] */
    /* what to do wrong; 0 and NULL: nothing */
    const char *dtype;    /* other than F32 */
    int64_t leave_out;    /* 1 + translator whose weight is missing */
    int64_t misshape;     /* 1 + translator whose weight is [C*C] in one axis */
    const char *rename;   /* what translator 0's weight is called */
    size_t cut;           /* bytes that the file lacks at its end */
    const char *config;   /* another config.json */
    const char *more;     /* more keys of it, "\"x\":1," */
} tuned_files;

static inline float tuned_random(uint64_t *seed)
{
    return (float)kit_random(seed) * 0x1p-30f - 1;
}

static inline tuned_files tuned_files_of(const weir_model_info *i)
{
    tuned_files f = {.L = i->L, .C = i->C, .bias = true};
    uint64_t seed = 11;
    f.a = calloc((size_t)(f.L * f.C * f.C), sizeof *f.a);
    f.b = calloc((size_t)(f.L * f.C), sizeof *f.b);
    assert_true(f.a && f.b);
    for (int64_t k = 0; k < f.L * f.C * f.C; k++)
        f.a[k] = tuned_random(&seed) * 0.3f;
    for (int64_t k = 0; k < f.L * f.C; k++)
        f.b[k] = tuned_random(&seed);
    return f;
}

static inline void tuned_files_end(tuned_files *f)
{
    free(f->a);
    free(f->b);
}

static inline void tuned_entry(const tuned_files *f, blob *header, blob *data, const char *name, int rank,
                               const float *x, int64_t n)
{
    char text[600];
    const size_t from = data->n;
    const bool half = f->dtype && strcmp(f->dtype, "BF16") == 0;
    for (int64_t k = 0; k < n; k++) {
        uint32_t bits;
        memcpy(&bits, &x[k], sizeof bits);
        put_int(data, half ? bits >> 16 : bits, half ? 2 : 4);
    }
    const int64_t c = rank == 2 ? f->C : n;
    snprintf(text, sizeof text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld%s%.0lld],\"data_offsets\":[%zu,%zu]}",
             header->n > 1 ? "," : "", name, f->dtype ? f->dtype : "F32", (long long)c, rank == 2 ? "," : "",
             rank == 2 ? (long long)c : 0, from, data->n);
    put(header, text, strlen(text));
}

static inline void tuned_write_params(const tuned_files *f, const char *dir)
{
    blob header = {0}, data = {0}, all = {0};
    char name[100];
    put(&header, "{", 1);
    for (int64_t i = 0; i < f->L; i++) {
        snprintf(name, sizeof name, "%lld.weight", (long long)i);
        if (f->leave_out != i + 1)
            tuned_entry(f, &header, &data, f->rename && i == 0 ? f->rename : name, f->misshape == i + 1 ? 1 : 2,
                        f->a + i * f->C * f->C, f->C * f->C);
        snprintf(name, sizeof name, "%lld.bias", (long long)i);
        if (f->bias)
            tuned_entry(f, &header, &data, name, 1, f->b + i * f->C, f->C);
    }
    put(&header, "}", 1);
    put_u64(&all, header.n);
    put(&all, header.p, header.n);
    put(&all, data.p, data.n);
    snprintf(name, sizeof name, "%s/params.safetensors", dir);
    scratch_write(name, all.p, all.n - f->cut);
    free(header.p);
    free(data.p);
    free(all.p);
}

/* Writes scratch(dir). */
static inline const char *tuned_write(const tuned_files *f, const char *dir)
{
    char name[100], config[600];
    scratch_dir(dir);
    snprintf(config, sizeof config,
             "{\"base_model_name_or_path\":\"tiny\",%s\"d_model\":%lld,\"num_hidden_layers\":%lld,\"bias\":%s,"
             "\"base_model_revision\":null,\"unembed_hash\":\"0469df\",\"lens_type\":\"linear_tuned_lens\"}",
             f->more ? f->more : "", (long long)f->C, (long long)f->L, f->bias ? "true" : "false");
    snprintf(name, sizeof name, "%s/config.json", dir);
    scratch_text(name, f->config ? f->config : config);
    tuned_write_params(f, dir);
    return scratch(dir);
}

#endif

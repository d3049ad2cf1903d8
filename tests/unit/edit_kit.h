/* tests/unit/edit_kit.h: edits with numbers that are known. */
#ifndef WEIR_TEST_EDIT_KIT_H
#define WEIR_TEST_EDIT_KIT_H

#include <weir/edit.h>

#include "run_kit.h"

/* A number of about 0.1 that depends on all of this. */
static inline float kit_number(uint64_t seed, int64_t i)
{
    uint64_t s = seed * 1000003u + (uint64_t)i;
    kit_random(&s);
    return ((float)(kit_random(&s) % 2001) - 1000) / 8192;
}

static inline float *kit_numbers(uint64_t seed, int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = kit_number(seed, i);
    return x;
}

/* An update of rank r with its own numbers; free_update frees them. */
static inline weir_update kit_update(const weir_model *m, int64_t layer, weir_matrix matrix, int64_t r, uint64_t seed)
{
    int64_t in, out;
    weir_matrix_shape(m, matrix, &in, &out);
    return (weir_update){
        .layer = layer, .matrix = matrix, .r = r, .u = kit_numbers(seed, r * in), .v = kit_numbers(seed + 7, r * out)};
}

static inline void kit_update_free(const weir_update *u)
{
    free((float *)u->u);
    free((float *)u->v);
}

static inline weir_edit *kit_edit(const weir_model *m, const weir_update *u, int64_t n)
{
    weir_err err = {0};
    weir_edit *e = NULL;
    kit_ok(weir_edit_new(&e, m, u, n, &err), &err);
    return e;
}

/* One update of every matrix of every layer, of ranks 1, 2, 3, 1, ... */
static inline weir_edit *kit_edit_all(const weir_model *m, uint64_t seed)
{
    const weir_model_info *i = weir_model_info_of(m);
    weir_update *u = calloc((size_t)(i->L * WEIR_MATRIX_COUNT), sizeof *u);
    int64_t n = 0;
    assert_non_null(u);
    for (int64_t l = 0; l < i->L; l++)
        for (int w = 0; w < WEIR_MATRIX_COUNT; w++)
            if (w != WEIR_MATRIX_UP || i->gated) {
                u[n] = kit_update(m, l, (weir_matrix)w, 1 + n % 3, seed + (uint64_t)n * 31);
                n++;
            }
    weir_edit *e = kit_edit(m, u, n);
    for (int64_t k = 0; k < n; k++)
        kit_update_free(&u[k]);
    free(u);
    return e;
}

#endif

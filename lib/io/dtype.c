#include <weir/tensor.h>

static const struct {
    const char *name;
    int block, bytes;
} TRAIT[WEIR_DTYPE_COUNT + 1] = {
    [WEIR_F32] = {"F32", 1, 4},       [WEIR_F16] = {"F16", 1, 2},       [WEIR_BF16] = {"BF16", 1, 2},
    [WEIR_Q4_0] = {"Q4_0", 32, 18},   [WEIR_Q4_1] = {"Q4_1", 32, 20},   [WEIR_Q5_0] = {"Q5_0", 32, 22},
    [WEIR_Q5_1] = {"Q5_1", 32, 24},   [WEIR_Q8_0] = {"Q8_0", 32, 34},   [WEIR_Q2_K] = {"Q2_K", 256, 84},
    [WEIR_Q3_K] = {"Q3_K", 256, 110}, [WEIR_Q4_K] = {"Q4_K", 256, 144}, [WEIR_Q5_K] = {"Q5_K", 256, 176},
    [WEIR_Q6_K] = {"Q6_K", 256, 210}, [WEIR_OTHER] = {"OTHER", 1, 1},
};

static weir_dtype known(weir_dtype t)
{
    return (unsigned)t <= WEIR_OTHER ? t : WEIR_OTHER;
}

const char *weir_dtype_name(weir_dtype t)
{
    return TRAIT[known(t)].name;
}

int64_t weir_dtype_block(weir_dtype t)
{
    return TRAIT[known(t)].block;
}

int64_t weir_dtype_bytes(weir_dtype t)
{
    return TRAIT[known(t)].bytes;
}

#include "gguf_types.h"

typedef enum fate { UNKNOWN = 0, READ, LACKING, REMOVED } fate;

static const struct {
    fate fate;
    weir_dtype dtype;
    const char *name;
} TYPE[] = {
    [0] = {READ, WEIR_F32, "F32"},     [1] = {READ, WEIR_F16, "F16"},     [2] = {READ, WEIR_Q4_0, "Q4_0"},
    [3] = {READ, WEIR_Q4_1, "Q4_1"},   [4] = {REMOVED, 0, "Q4_2"},        [5] = {REMOVED, 0, "Q4_3"},
    [6] = {READ, WEIR_Q5_0, "Q5_0"},   [7] = {READ, WEIR_Q5_1, "Q5_1"},   [8] = {READ, WEIR_Q8_0, "Q8_0"},
    [9] = {LACKING, 0, "Q8_1"},        [10] = {READ, WEIR_Q2_K, "Q2_K"},  [11] = {READ, WEIR_Q3_K, "Q3_K"},
    [12] = {READ, WEIR_Q4_K, "Q4_K"},  [13] = {READ, WEIR_Q5_K, "Q5_K"},  [14] = {READ, WEIR_Q6_K, "Q6_K"},
    [15] = {LACKING, 0, "Q8_K"},       [16] = {LACKING, 0, "IQ2_XXS"},    [17] = {LACKING, 0, "IQ2_XS"},
    [18] = {LACKING, 0, "IQ3_XXS"},    [19] = {LACKING, 0, "IQ1_S"},      [20] = {LACKING, 0, "IQ4_NL"},
    [21] = {LACKING, 0, "IQ3_S"},      [22] = {LACKING, 0, "IQ2_S"},      [23] = {LACKING, 0, "IQ4_XS"},
    [24] = {LACKING, 0, "I8"},         [25] = {LACKING, 0, "I16"},        [26] = {LACKING, 0, "I32"},
    [27] = {LACKING, 0, "I64"},        [28] = {LACKING, 0, "F64"},        [29] = {LACKING, 0, "IQ1_M"},
    [30] = {READ, WEIR_BF16, "BF16"},  [31] = {REMOVED, 0, "Q4_0_4_4"},   [32] = {REMOVED, 0, "Q4_0_4_8"},
    [33] = {REMOVED, 0, "Q4_0_8_8"},   [34] = {LACKING, 0, "TQ1_0"},      [35] = {LACKING, 0, "TQ2_0"},
    [36] = {REMOVED, 0, "IQ4_NL_4_4"}, [37] = {REMOVED, 0, "IQ4_NL_4_8"}, [38] = {REMOVED, 0, "IQ4_NL_8_8"},
    [39] = {LACKING, 0, "MXFP4"},      [40] = {LACKING, 0, "NVFP4"},      [41] = {LACKING, 0, "Q1_0"},
    [42] = {LACKING, 0, "Q2_0"},
};

weir_status weir_gguf_dtype(uint32_t id, weir_dtype *out, weir_err *err)
{
    fate f = id < sizeof TYPE / sizeof *TYPE ? TYPE[id].fate : UNKNOWN;
    switch (f) {
    case READ:
        *out = TYPE[id].dtype;
        return WEIR_OK;
    case LACKING:
        return weir_fail(
            err, WEIR_E_UNSUPPORTED,
            "type %s is not supported: convert to F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 or Q2_K to Q6_K",
            TYPE[id].name);
    case REMOVED:
        return weir_fail(err, WEIR_E_UNSUPPORTED,
                         "type %s (id %u) was removed from the format: convert the model again", TYPE[id].name, id);
    default:
        return weir_fail(err, WEIR_E_FORMAT, "unknown tensor type id %u", id);
    }
}

#include "roles.h"

/* Axes, as letters of the headers. */
typedef enum axis { NONE, A_C, A_F, A_V, A_CTX, A_D, A_HD, A_KD, A_QKV, A_ROT } axis;

static const char *const LETTERS[] = {
    [NONE] = "", [A_C] = "C",    [A_F] = "F",    [A_V] = "V",          [A_CTX] = "ctx",
    [A_D] = "D", [A_HD] = "H*D", [A_KD] = "K*D", [A_QKV] = "(H+2K)*D", [A_ROT] = "rot/2",
};

static const struct {
    axis out, in;
    bool turns; /* a block's matrix: [in, out] in a k-major layout */
} SHAPE[WEIR_ROLE_COUNT] = {
    [WEIR_ROLE_EMBED] = {A_V, A_C, false},       [WEIR_ROLE_POS] = {A_CTX, A_C, false},
    [WEIR_ROLE_HEAD] = {A_V, A_C, false},        [WEIR_ROLE_LNF_W] = {A_C, NONE, false},
    [WEIR_ROLE_LNF_B] = {A_C, NONE, false},      [WEIR_ROLE_ROPE_FREQS] = {A_ROT, NONE, false},
    [WEIR_ROLE_LN1_W] = {A_C, NONE, false},      [WEIR_ROLE_LN1_B] = {A_C, NONE, false},
    [WEIR_ROLE_LN1_POST_W] = {A_C, NONE, false}, [WEIR_ROLE_LN2_W] = {A_C, NONE, false},
    [WEIR_ROLE_LN2_B] = {A_C, NONE, false},      [WEIR_ROLE_LN2_POST_W] = {A_C, NONE, false},
    [WEIR_ROLE_QKV_W] = {A_QKV, A_C, true},      [WEIR_ROLE_QKV_B] = {A_QKV, NONE, false},
    [WEIR_ROLE_Q_W] = {A_HD, A_C, true},         [WEIR_ROLE_Q_B] = {A_HD, NONE, false},
    [WEIR_ROLE_K_W] = {A_KD, A_C, true},         [WEIR_ROLE_K_B] = {A_KD, NONE, false},
    [WEIR_ROLE_V_W] = {A_KD, A_C, true},         [WEIR_ROLE_V_B] = {A_KD, NONE, false},
    [WEIR_ROLE_O_W] = {A_C, A_HD, true},         [WEIR_ROLE_O_B] = {A_C, NONE, false},
    [WEIR_ROLE_PRE_W] = {A_F, A_C, true},        [WEIR_ROLE_PRE_B] = {A_F, NONE, false},
    [WEIR_ROLE_UP_W] = {A_F, A_C, true},         [WEIR_ROLE_UP_B] = {A_F, NONE, false},
    [WEIR_ROLE_DOWN_W] = {A_C, A_F, true},       [WEIR_ROLE_DOWN_B] = {A_C, NONE, false},
    [WEIR_ROLE_Q_NORM_W] = {A_D, NONE, false},   [WEIR_ROLE_K_NORM_W] = {A_D, NONE, false},
};

bool weir_role_is_gain(weir_role r)
{
    return r == WEIR_ROLE_LNF_W || r == WEIR_ROLE_LN1_W || r == WEIR_ROLE_LN1_POST_W || r == WEIR_ROLE_LN2_W ||
           r == WEIR_ROLE_LN2_POST_W || r == WEIR_ROLE_Q_NORM_W || r == WEIR_ROLE_K_NORM_W;
}

static int64_t size_of(axis a, const weir_spec *s)
{
    const int64_t n[] = {
        [NONE] = 1,       [A_C] = s->C,         [A_F] = s->F,         [A_V] = s->V,
        [A_CTX] = s->ctx, [A_HD] = s->H * s->D, [A_KD] = s->K * s->D, [A_QKV] = (s->H + 2 * s->K) * s->D,
        [A_D] = s->D,     [A_ROT] = s->rot / 2};
    return n[a];
}

weir_shape weir_role_shape(weir_role r, const weir_spec *s, bool k_major)
{
    axis first = SHAPE[r].out, second = SHAPE[r].in;
    if (k_major && SHAPE[r].turns) {
        first = SHAPE[r].in;
        second = SHAPE[r].out;
    }
    return (weir_shape){.rank = second == NONE ? 1 : 2,
                        .n = {size_of(first, s), size_of(second, s)},
                        .letters = {LETTERS[first], LETTERS[second]}};
}

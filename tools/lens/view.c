#include "view.h"

const char *const weir_lens_stat_name[WEIR_STAT_COUNT] = {
    [WEIR_STAT_PROB] = "prob",       [WEIR_STAT_LOGIT] = "logit", [WEIR_STAT_RANK] = "rank",
    [WEIR_STAT_ENTROPY] = "entropy", [WEIR_STAT_KL] = "kl",       [WEIR_STAT_KL_PREV] = "kl_prev",
    [WEIR_STAT_JSD] = "jsd",         [WEIR_STAT_CE] = "ce",       [WEIR_STAT_CONTRAST] = "contrast"};

/* What parts are called. */
#include "view.h"

static const char *const kind_name[] = {[WEIR_PART_EMBED] = "embed",         [WEIR_PART_POS_EMBED] = "pos_embed",
                                        [WEIR_PART_ATTN] = "attn",           [WEIR_PART_MLP] = "mlp",
                                        [WEIR_PART_REST] = "rest",           [WEIR_PART_HEAD] = "head",
                                        [WEIR_PART_ATTN_BIAS] = "attn_bias", [WEIR_PART_NEURON] = "neuron",
                                        [WEIR_PART_MLP_BIAS] = "mlp_bias"};

const char *weir_part_kind_name(weir_part_kind kind)
{
    return kind_name[kind];
}

const char *weir_part_name(const weir_part *part, char buf[48])
{
    if (part->layer < 0)
        snprintf(buf, 48, "%s", kind_name[part->kind]);
    else if (part->unit < 0)
        snprintf(buf, 48, "L%d %s", part->layer, kind_name[part->kind]);
    else
        snprintf(buf, 48, "L%d%c%lld", part->layer, part->kind == WEIR_PART_HEAD ? 'H' : 'N', (long long)part->unit);
    return buf;
}

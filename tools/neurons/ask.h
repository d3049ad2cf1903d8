/* neurons/ask.h: what is asked for on the command line: neurons, layers, masked tokens. */
#ifndef WEIR_NEURONS_ASK_H
#define WEIR_NEURONS_ASK_H

#include "cli/opt.h"
#include "dump.h"

/* --neurons: "421", "0:8" (half open), "L3N9", "L3N0:8", lists with commas, "@FILE" with such lists in lines, "all".
 * --heads: the same with H for N. */
typedef struct weir_asks {
    weir_neuron_ask *ask; /* [n] by layer, then unit, each once */
    int64_t n;            /* 0: all */
    bool heads;           /* of heads, not of neurons */
} weir_asks;
WEIR_CHECKED weir_status weir_asks_parse(weir_asks *out, const weir_opt_list *texts, weir_err *err);
WEIR_CHECKED weir_status weir_asks_parse_heads(weir_asks *out, const weir_opt_list *texts, weir_err *err);
void weir_asks_free(weir_asks *a);
/* Is this neuron asked for? */
bool weir_asks_have(const weir_asks *a, int layer, int64_t unit);

/* Is the layer one of "6", "0-3,7", "all" (or NULL, all)? *bad: the text is none of these. */
bool weir_layers_have(const char *text, int layer, bool *bad);

/* --mask: words "bos", "special", "none" and token ids, with commas. */
typedef struct weir_masks {
    bool bos, special;
    int32_t *id; /* [n] */
    int n;
} weir_masks;
WEIR_CHECKED weir_status weir_masks_parse(weir_masks *out, const char *text, weir_err *err);
void weir_masks_free(weir_masks *m);
/* Why each id is left out, by WEIR_MASK_*: [vocabulary], to be freed. tok NULL: there is no tokenizer. */
WEIR_CHECKED weir_status weir_masks_kinds(const weir_masks *m, const weir_tokenizer *tok, int64_t vocabulary,
                                          uint8_t **kind, weir_err *err);

#endif

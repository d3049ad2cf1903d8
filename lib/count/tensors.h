/* count/tensors.h: what a tensor is for, by its name, in the layouts of Hugging Face and of GGUF. */
#ifndef WEIR_COUNT_TENSORS_H
#define WEIR_COUNT_TENSORS_H

#include <weir/count.h>

/* A tensor's parts: some matrices are stored as one. Shares are in no unit: they say proportions. */
typedef struct weir_tensor_use {
    weir_ledger_kind kind;
    const char *what;       /* of kinds that are no parameters, in words */
    weir_bill_item item[3]; /* of parameters: whose they are, */
    int64_t share[3];       /* in which proportions; 0: no such part */
    int64_t packed;         /* parameters an element */
} weir_tensor_use;

weir_tensor_use weir_tensor_use_of(const weir_tensor *t, const weir_blueprint *b);

#endif

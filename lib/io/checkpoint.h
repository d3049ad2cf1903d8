/* io/checkpoint.h: the tensors of a checkpoint, whatever holds them: a Hugging Face directory (model.safetensors, else
 * the sharded index) or a GGUF file. Everything is a view into maps; nothing is read but headers. */
#ifndef WEIR_CHECKPOINT_H
#define WEIR_CHECKPOINT_H

#include <weir/tensor.h>

#include "../base/strmap.h"
#include "gguf.h"

typedef struct weir_checkpoint {
    bool is_gguf;
    weir_gguf gguf;      /* is_gguf */
    weir_filemap config; /* Hugging Face: config.json */
    weir_filemap *shard; /* Hugging Face: mapped files */
    int n_shards;
    weir_tensor *tensor; /* in file order (shards in name order) */
    int64_t n_tensors;
    weir_strmap by_name; /* name -> index */
    int64_t mapped;      /* bytes */
    void *own;
} weir_checkpoint;

/* Checks of the formats: lib/io/README.md. Every error names file, tensor and offset where it can. */
WEIR_CHECKED weir_status weir_checkpoint_open(weir_checkpoint *c, const char *path, weir_err *err);
void weir_checkpoint_close(weir_checkpoint *c);
const weir_tensor *weir_checkpoint_find(const weir_checkpoint *c, const char *name); /* NULL: absent */

#endif

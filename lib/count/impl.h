/* count/impl.h: what the files of this room share beside the reading of configurations (reading.h). */
#ifndef WEIR_COUNT_IMPL_H
#define WEIR_COUNT_IMPL_H

#include <weir/count.h>

#include "../base/mem.h"
#include "../io/gguf.h"

/* What is named by the path of a model. */
typedef enum weir_count_source {
    WEIR_SOURCE_CONFIG,      /* a file of JSON: no tensors */
    WEIR_SOURCE_DIRECTORY,   /* with a config.json */
    WEIR_SOURCE_SAFETENSORS, /* one file, its config.json beside it */
    WEIR_SOURCE_GGUF
} weir_count_source;
WEIR_CHECKED weir_status weir_count_source_of(weir_count_source *s, const char *path, weir_err *err);

/* GGUF metadata as the config.json that it was made of, so that one reader reads both. */
WEIR_CHECKED weir_status weir_count_from_gguf(weir_buf *json, const weir_gguf *g, weir_err *err);

/* What a path calls a model: its last part without extension, or the directory of a config.json. In the arena. */
char *weir_count_name(weir_arena *arena, const char *path);

#endif

/* io/shard_index.h: model.safetensors.index.json, which says in which file of a directory each tensor lies. */
#ifndef WEIR_SHARD_INDEX_H
#define WEIR_SHARD_INDEX_H

#include "../base/mem.h"
#include "../base/strmap.h"

typedef struct weir_shard_index {
    const char **shard; /* [n_shards] file names in ascending order */
    int n_shards;
    const char **name; /* [n_names] tensors in the order of the index */
    int64_t n_names;
    weir_strmap shard_of; /* tensor -> index of its shard */
} weir_shard_index;

/* Reads the index at `path` in `dir`; strings go into the arena. Shards must be plain file names *.safetensors in that
 * directory. A shard that is a symbolic link is refused, unless config.json or the index itself is one (a hub cache
 * consists of links). */
WEIR_CHECKED weir_status weir_shard_index_read(weir_shard_index *x, const char *dir, const char *path,
                                               weir_arena *arena, weir_err *err);
void weir_shard_index_free(weir_shard_index *x);

#endif

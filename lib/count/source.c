/* What a path names, and what it calls the model. */
#include <string.h>

#include "../io/filemap.h"
#include "impl.h"

static bool ends(const char *s, size_t n, const char *end)
{
    const size_t m = strlen(end);
    return n > m && !memcmp(s + n - m, end, m);
}

weir_status weir_count_source_of(weir_count_source *s, const char *path, weir_err *err)
{
    if (weir_path_is_dir(path)) {
        *s = WEIR_SOURCE_DIRECTORY;
        return WEIR_OK;
    }
    if (ends(path, strlen(path), ".safetensors")) {
        *s = WEIR_SOURCE_SAFETENSORS;
        return WEIR_OK;
    }
    weir_filemap map;
    WEIR_TRY(weir_filemap_open(&map, path, err));
    const bool gguf = map.size >= 4 && !memcmp(map.data, "GGUF", 4);
    *s = gguf ? WEIR_SOURCE_GGUF : WEIR_SOURCE_CONFIG;
    weir_filemap_close(&map);
    return WEIR_OK;
}

/* The last part of path[n], which may end in slashes: *at begins it, its length is returned. */
static size_t last_part(const char *path, size_t n, size_t *at)
{
    while (n > 1 && path[n - 1] == '/')
        n--;
    for (*at = n; *at && path[*at - 1] != '/';)
        --*at;
    return n - *at;
}

char *weir_count_name(weir_arena *arena, const char *path)
{
    static const char *const EXTENSION[] = {".json", ".gguf", ".safetensors"};
    size_t at, n = last_part(path, strlen(path), &at);
    const bool config = n == 11 && !memcmp(path + at, "config.json", n);
    if (config && at) {
        size_t dir, m = last_part(path, at, &dir);
        if (m && path[dir] != '.')
            return weir_arena_strndup(arena, path + dir, m);
    }
    for (size_t i = 0; i < sizeof EXTENSION / sizeof *EXTENSION; i++)
        if (ends(path + at, n, EXTENSION[i]))
            return weir_arena_strndup(arena, path + at, n - strlen(EXTENSION[i]));
    return weir_arena_strndup(arena, path + at, n);
}

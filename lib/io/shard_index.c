#include "shard_index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/json.h>

#include "filemap.h"

#define SUFFIX ".safetensors"

/* What the index holds, as read. */
typedef struct pair {
    const char *name;
    int64_t file; /* index in `files`, which are in the order of their first appearance */
} pair;

typedef struct pairs {
    pair *pair;
    int64_t n;
    const char **files;
    int64_t n_files;
    weir_strmap file_of;
    weir_arena *arena;
} pairs;

static bool is_plain_name(weir_str s)
{
    size_t m = strlen(SUFFIX);
    if (s.n <= m || memcmp(s.p + s.n - m, SUFFIX, m) != 0 || s.p[0] == '.')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '/' || s.p[i] == '\\' || (unsigned char)s.p[i] < 0x20)
            return false;
    return true;
}

/* Index of a file name among those seen; a new one is added. -1: out of memory. */
static int64_t file_index(pairs *a, weir_str s)
{
    int64_t at;
    if (weir_strmap_get(&a->file_of, s.p, s.n, &at))
        return at;
    const char **grown = weir_grow(a->files, (size_t)a->n_files, sizeof *grown);
    if (!grown)
        return -1;
    a->files = grown;
    char *copy = weir_arena_strndup(a->arena, s.p, s.n);
    if (!copy || weir_strmap_add(&a->file_of, (weir_str){copy, s.n}, a->n_files, NULL, NULL) != WEIR_OK)
        return -1;
    a->files[a->n_files] = copy;
    return a->n_files++;
}

static bool add_pair(pairs *a, const char *name, weir_str file)
{
    int64_t at = file_index(a, file);
    pair *grown = at >= 0 ? weir_grow(a->pair, (size_t)a->n, sizeof *grown) : NULL;
    if (!grown)
        return false;
    a->pair = grown;
    a->pair[a->n++] = (pair){name, at};
    return true;
}

static void read_weight_map(weir_json *j, pairs *a)
{
    weir_str name, file;
    weir_json_object(j);
    while (weir_json_key(j, &name)) {
        if (name.n && memchr(name.p, '\0', name.n))
            weir_json_fail(j, "a tensor's name holds a NUL");
        char *kept = weir_arena_strndup(a->arena, name.p, name.n);
        file = weir_json_string(j);
        if (j->status != WEIR_OK)
            return;
        if (!is_plain_name(file)) {
            weir_json_fail(j, "\"%.*s\" is no name of a *.safetensors file in the model's directory",
                           file.n > 100 ? 100 : (int)file.n, file.p);
            weir_err_where(j->err, NULL, kept, -1);
        } else if (!kept || !add_pair(a, kept, file)) {
            j->status = weir_nomem(j->err, "the index of tensors");
        }
    }
}

static weir_status read_json(pairs *a, const char *path, weir_err *err)
{
    weir_filemap m;
    weir_json j;
    weir_str key;
    bool found = false;
    WEIR_TRY(weir_filemap_open(&m, path, err));
    weir_json_init(&j, m.data, m.size, path, err);
    if (j.status == WEIR_OK)
        weir_json_object(&j);
    while (j.status == WEIR_OK && weir_json_key(&j, &key)) {
        if (weir_str_eq(key, "weight_map")) {
            found = true;
            read_weight_map(&j, a);
        } else {
            weir_json_skip(&j);
        }
    }
    if (!found || !a->n)
        weir_json_fail(&j, found ? "weight_map is empty" : "there is no weight_map");
    weir_json_end(&j);
    weir_status s = weir_json_done(&j);
    weir_filemap_close(&m);
    return s;
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static weir_status check_files(const pairs *a, const char *dir, const char *index, weir_err *err)
{
    char *config = weir_path_join(dir, "config.json");
    if (!config)
        return weir_nomem(err, "a path");
    bool hub_cache = is_link(index) || is_link(config);
    weir_free(config);
    for (int64_t i = 0; i < a->n_files; i++) {
        char *p = weir_path_join(dir, a->files[i]);
        weir_status s = WEIR_OK;
        if (!p)
            s = weir_nomem(err, "a path");
        else if (!weir_path_is_file(p))
            s = weir_fail(err, WEIR_E_IO, "the index %s names this file, which is not there: download it", index);
        else if (!hub_cache && is_link(p))
            s = weir_fail(err, WEIR_E_FORMAT,
                          "a symbolic link, where config.json and the index are none: put the file itself there");
        if (s != WEIR_OK)
            weir_err_where(err, p, NULL, -1);
        weir_free(p);
        WEIR_TRY(s);
    }
    return WEIR_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Puts the shards in order and fills the map from tensors to them. */
static weir_status finish(weir_shard_index *x, const pairs *a, weir_err *err)
{
    x->n_names = a->n;
    x->n_shards = (int)a->n_files;
    x->name = weir_calloc((size_t)a->n, sizeof *x->name);
    x->shard = weir_calloc((size_t)a->n_files, sizeof *x->shard);
    if (!x->name || !x->shard || weir_strmap_reserve(&x->shard_of, (size_t)a->n) != WEIR_OK)
        return weir_nomem(err, "the index of tensors");
    memcpy(x->shard, a->files, (size_t)a->n_files * sizeof *x->shard);
    qsort(x->shard, (size_t)x->n_shards, sizeof *x->shard, by_name);
    for (int64_t i = 0; i < a->n; i++) {
        const char *file = a->files[a->pair[i].file];
        const char **at = bsearch(&file, x->shard, (size_t)x->n_shards, sizeof *x->shard, by_name);
        x->name[i] = a->pair[i].name;
        if (weir_strmap_add(&x->shard_of, (weir_str){x->name[i], strlen(x->name[i])}, at - x->shard, NULL, NULL) !=
            WEIR_OK)
            return weir_nomem(err, "the index of tensors");
    }
    return WEIR_OK;
}

weir_status weir_shard_index_read(weir_shard_index *x, const char *dir, const char *path, weir_arena *arena,
                                  weir_err *err)
{
    pairs a = {.arena = arena};
    *x = (weir_shard_index){0};
    weir_status s = read_json(&a, path, err);
    if (s == WEIR_OK)
        s = check_files(&a, dir, path, err);
    if (s == WEIR_OK)
        s = finish(x, &a, err);
    weir_free(a.pair);
    weir_free(a.files);
    weir_strmap_free(&a.file_of);
    if (s != WEIR_OK)
        weir_shard_index_free(x);
    return s;
}

void weir_shard_index_free(weir_shard_index *x)
{
    weir_free(x->shard);
    weir_free(x->name);
    weir_strmap_free(&x->shard_of);
    *x = (weir_shard_index){0};
}

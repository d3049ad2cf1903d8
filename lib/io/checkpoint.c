#include "checkpoint.h"

#include <string.h>

#include "../base/mem.h"
#include "safetensors.h"
#include "shard_index.h"

/* An error that is about a path. */
static weir_status fail_path(weir_err *err, weir_status code, const char *path, const char *msg)
{
    weir_fail(err, code, "%s", msg);
    weir_err_where(err, path, NULL, -1);
    return code;
}

/* dir/name in the checkpoint's arena. */
static weir_status join(weir_checkpoint *c, const char *dir, const char *name, char **out, weir_err *err)
{
    char *p = weir_path_join(dir, name);
    *out = p ? weir_arena_strndup(c->own, p, strlen(p)) : NULL;
    weir_free(p);
    return *out ? WEIR_OK : weir_nomem(err, "a path");
}

/* Adds n tensors of one file. */
static weir_status add_tensors(weir_checkpoint *c, const weir_tensor *t, int64_t n, weir_err *err)
{
    weir_tensor *all = weir_realloc(c->tensor, (size_t)(c->n_tensors + n), sizeof *all);
    if (!all)
        return weir_nomem(err, "the table of tensors");
    c->tensor = all;
    if (weir_strmap_reserve(&c->by_name, (size_t)(c->n_tensors + n)) != WEIR_OK)
        return weir_nomem(err, "the table of tensors");
    for (int64_t i = 0; i < n; i++) {
        bool fresh;
        int64_t first;
        if (weir_strmap_add(&c->by_name, (weir_str){t[i].name, strlen(t[i].name)}, c->n_tensors, &fresh, &first) !=
            WEIR_OK)
            return weir_nomem(err, "the table of tensors");
        if (!fresh) {
            weir_fail(err, WEIR_E_FORMAT, "it is also in %s", c->tensor[first].file);
            weir_err_where(err, t[i].file, t[i].name, t[i].offset);
            return WEIR_E_FORMAT;
        }
        c->tensor[c->n_tensors++] = t[i];
    }
    return WEIR_OK;
}

/* Maps one safetensors file as the next shard and adds what it holds: *t[*n]. */
static weir_status add_file(weir_checkpoint *c, const char *path, weir_tensor **t, int64_t *n, weir_err *err)
{
    weir_filemap *m = &c->shard[c->n_shards];
    WEIR_TRY(weir_filemap_open(m, path, err));
    c->n_shards++;
    c->mapped += (int64_t)m->size;
    WEIR_TRY(weir_safetensors_parse(m, c->own, t, n, err));
    return add_tensors(c, *t, *n, err);
}

static weir_status make_shards(weir_checkpoint *c, int n, weir_err *err)
{
    c->shard = weir_calloc((size_t)n, sizeof *c->shard);
    return c->shard ? WEIR_OK : weir_nomem(err, "the table of files");
}

static weir_status open_single(weir_checkpoint *c, const char *path, weir_err *err)
{
    weir_tensor *t;
    int64_t n;
    WEIR_TRY(make_shards(c, 1, err));
    return add_file(c, path, &t, &n, err);
}

/* Every tensor of a shard must be mapped to that shard. */
static weir_status check_mapped(const weir_shard_index *x, int shard, const weir_tensor *t, int64_t n, weir_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = -1;
        bool known = weir_strmap_get(&x->shard_of, t[i].name, strlen(t[i].name), &at);
        if (known && at == shard)
            continue;
        if (known)
            weir_fail(err, WEIR_E_FORMAT, "the index has it in %s", x->shard[at]);
        else
            weir_fail(err, WEIR_E_FORMAT, "it is not in the index");
        weir_err_where(err, t[i].file, t[i].name, t[i].offset);
        return WEIR_E_FORMAT;
    }
    return WEIR_OK;
}

/* Every tensor of the index must have been found. */
static weir_status check_found(const weir_checkpoint *c, const weir_shard_index *x, const char *path, weir_err *err)
{
    for (int64_t i = 0; i < x->n_names; i++) {
        if (weir_checkpoint_find(c, x->name[i]))
            continue;
        int64_t at = 0;
        weir_strmap_get(&x->shard_of, x->name[i], strlen(x->name[i]), &at);
        weir_fail(err, WEIR_E_FORMAT, "the index has it in %s, where it is not", x->shard[at]);
        weir_err_where(err, path, x->name[i], -1);
        return WEIR_E_FORMAT;
    }
    return WEIR_OK;
}

static weir_status open_shards(weir_checkpoint *c, const char *dir, const char *index, weir_err *err)
{
    weir_shard_index x = {0};
    weir_status s = weir_shard_index_read(&x, dir, index, c->own, err);
    if (s == WEIR_OK)
        s = make_shards(c, x.n_shards, err);
    for (int i = 0; s == WEIR_OK && i < x.n_shards; i++) {
        char *path;
        weir_tensor *t;
        int64_t n;
        s = join(c, dir, x.shard[i], &path, err);
        if (s == WEIR_OK)
            s = add_file(c, path, &t, &n, err);
        if (s == WEIR_OK)
            s = check_mapped(&x, i, t, n, err);
    }
    if (s == WEIR_OK)
        s = check_found(c, &x, index, err);
    weir_shard_index_free(&x);
    return s;
}

/* No safetensors: says what was looked for and, where there is something else, what to do with it. */
static weir_status refuse_weights(const char *dir, weir_err *err)
{
    static const char *const torch[] = {"pytorch_model.bin", "pytorch_model.bin.index.json", NULL};
    bool pickled = false;
    for (int i = 0; torch[i]; i++) {
        char *p = weir_path_join(dir, torch[i]);
        pickled |= p && weir_path_is_file(p);
        weir_free(p);
    }
    if (pickled)
        return fail_path(err, WEIR_E_UNSUPPORTED, dir,
                         "the weights are in pytorch_model.bin, which weir does not read: convert once with Python: "
                         "from transformers import "
                         "AutoModelForCausalLM as M; M.from_pretrained(DIR).save_pretrained(DIR)");
    return fail_path(err, WEIR_E_IO, dir, "neither model.safetensors nor model.safetensors.index.json is there");
}

static weir_status open_directory(weir_checkpoint *c, const char *dir, weir_err *err)
{
    char *config, *single, *index;
    WEIR_TRY(join(c, dir, "config.json", &config, err));
    WEIR_TRY(join(c, dir, "model.safetensors", &single, err));
    WEIR_TRY(join(c, dir, "model.safetensors.index.json", &index, err));
    if (!weir_path_is_file(config))
        return fail_path(err, WEIR_E_IO, dir,
                         "no config.json is there: give a Hugging Face model directory or a .gguf file");
    WEIR_TRY(weir_filemap_open(&c->config, config, err));
    if (weir_path_is_file(single))
        return open_single(c, single, err);
    if (weir_path_is_file(index))
        return open_shards(c, dir, index, err);
    return refuse_weights(dir, err);
}

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

static weir_status open_file(weir_checkpoint *c, const char *path, weir_err *err)
{
    if (has_suffix(path, ".safetensors") || has_suffix(path, ".json"))
        return fail_path(err, WEIR_E_ARG, path,
                         "give the directory that holds config.json and model.safetensors, not a file of it");
    WEIR_TRY(weir_gguf_open(&c->gguf, path, err));
    c->is_gguf = true;
    c->mapped = (int64_t)c->gguf.map.size;
    return add_tensors(c, c->gguf.tensor, c->gguf.n_tensors, err);
}

weir_status weir_checkpoint_open(weir_checkpoint *c, const char *path, weir_err *err)
{
    *c = (weir_checkpoint){0};
    weir_arena *arena = c->own = weir_calloc(1, sizeof *arena);
    weir_status s;
    if (!arena)
        s = weir_nomem(err, "opening a model");
    else
        s = weir_path_is_dir(path) ? open_directory(c, path, err) : open_file(c, path, err);
    if (s != WEIR_OK)
        weir_checkpoint_close(c);
    return s;
}

void weir_checkpoint_close(weir_checkpoint *c)
{
    weir_gguf_close(&c->gguf);
    weir_filemap_close(&c->config);
    for (int i = 0; i < c->n_shards; i++)
        weir_filemap_close(&c->shard[i]);
    weir_free(c->shard);
    weir_free(c->tensor);
    weir_strmap_free(&c->by_name);
    if (c->own)
        weir_arena_free(c->own);
    weir_free(c->own);
    *c = (weir_checkpoint){0};
}

const weir_tensor *weir_checkpoint_find(const weir_checkpoint *c, const char *name)
{
    int64_t i;
    return weir_strmap_get(&c->by_name, name, strlen(name), &i) ? &c->tensor[i] : NULL;
}

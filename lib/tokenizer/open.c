/* open.c: which reader a path is for. */
#include <string.h>

#include "io/filemap.h"
#include "tok.h"

static weir_status look_for(const char *dir, const char *name, bool *found, weir_err *err)
{
    char *path = weir_path_join(dir, name);
    if (!path)
        return weir_nomem(err, "a path");
    *found = weir_path_is_file(path);
    weir_free(path);
    return WEIR_OK;
}

static weir_status open_json(weir_tokenizer *t, const char *path, const char *dir, const weir_log *log, weir_err *err)
{
    WEIR_TRY(weir_tok_read_json(t, path, log, err));
    return weir_tok_read_config(t, dir, false, log, err);
}

static weir_status open_dir(weir_tokenizer *t, const char *dir, const weir_log *log, weir_err *err)
{
    bool json = false, vocab = false, merges = false, model = false;
    WEIR_TRY(look_for(dir, "tokenizer.json", &json, err));
    WEIR_TRY(look_for(dir, "vocab.json", &vocab, err));
    WEIR_TRY(look_for(dir, "merges.txt", &merges, err));
    WEIR_TRY(look_for(dir, "tokenizer.model", &model, err));
    if (json) {
        char *path = weir_path_join(dir, "tokenizer.json");
        weir_status s = path ? open_json(t, path, dir, log, err) : weir_nomem(err, "a path");
        weir_free(path);
        return s;
    }
    if (vocab && merges)
        return weir_tok_read_pair(t, dir, log, err);
    if (model)
        return weir_fail(err, WEIR_E_UNSUPPORTED,
                         "tokenizer.model is not read: save a tokenizer.json beside it (transformers does)");
    return weir_fail(err, WEIR_E_IO, "no tokenizer here: expected tokenizer.json, or vocab.json and merges.txt");
}

static weir_status is_gguf(const char *path, bool *yes, weir_err *err)
{
    weir_filemap map = {0};
    WEIR_TRY(weir_filemap_open(&map, path, err));
    *yes = map.size >= 4 && memcmp(map.data, "GGUF", 4) == 0;
    weir_filemap_close(&map);
    return WEIR_OK;
}

/* path less its last part. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? weir_strndup(".", 1) : weir_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static weir_status open_file(weir_tokenizer *t, const char *path, const weir_log *log, weir_err *err)
{
    bool gguf;
    WEIR_TRY(is_gguf(path, &gguf, err));
    if (gguf)
        return weir_tok_read_gguf(t, path, log, err);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *dir = directory_of(path);
    weir_status s = WEIR_OK;
    if (!dir)
        s = weir_nomem(err, "a path");
    else if (strcmp(name, "vocab.json") == 0 || strcmp(name, "merges.txt") == 0)
        s = weir_tok_read_pair(t, dir, log, err);
    else
        s = open_json(t, path, dir, log, err);
    weir_free(dir);
    return s;
}

weir_status weir_tokenizer_open(weir_tokenizer **out, const char *path, const weir_log *log, weir_err *err)
{
    *out = NULL;
    weir_tokenizer *t = weir_calloc(1, sizeof *t);
    if (!t)
        return weir_nomem(err, "a tokenizer");
    t->unk = t->bos = t->eos = -1;
    weir_status s = weir_path_is_dir(path) ? open_dir(t, path, log, err) : open_file(t, path, log, err);
    if (s == WEIR_OK)
        s = weir_tok_finish(t, err);
    if (s == WEIR_OK)
        weir_tok_add_end(t, t->eos);
    if (s) {
        weir_err_where(err, path, NULL, -1);
        weir_tokenizer_free(t);
        return s;
    }
    *out = t;
    return WEIR_OK;
}

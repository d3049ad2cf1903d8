/* open_pair.c: vocab.json with merges.txt, the form of GPT-2: byte-level BPE, GPT-2's pattern. */
#include <string.h>

#include "io/filemap.h"
#include "pipeline.h"

static weir_status read_vocab_file(weir_tokenizer *t, const char *path, weir_err *err)
{
    weir_filemap map = {0};
    weir_json j;
    WEIR_TRY(weir_filemap_open(&map, path, err));
    t->vocab.limit = (int64_t)(map.size < INT32_MAX / 2 ? map.size : INT32_MAX / 2) + 65536;
    weir_json_init(&j, map.data, map.size, map.path, err);
    weir_status s = weir_tok_vocab_reserve(t, map.size / 20, err);
    if (s == WEIR_OK)
        weir_tok_read_vocab(t, &j);
    weir_json_end(&j);
    weir_status parsed = weir_json_done(&j);
    weir_filemap_close(&map);
    return s ? s : parsed;
}

/* One merge a line; a line may begin with '#', but one that begins with "#version" is the head. */
static weir_status read_merges_text(weir_tokenizer *t, const weir_filemap *map, weir_err *err)
{
    const char *p = (const char *)map->data, *end = p + map->size;
    uint32_t rank = 0;
    if (weir_tok_merges_reserve(&t->merges, map->size / 10))
        return weir_nomem(err, "the merges");
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((newline ? newline : end) - p);
        weir_str line = {p, n && p[n - 1] == '\r' ? n - 1 : n};
        bool head = line.n >= 8 && memcmp(line.p, "#version", 8) == 0;
        if (line.n && !head && weir_tok_add_merge_line(t, line, rank++, err))
            return weir_err_where(err, map->path, NULL, p - (const char *)map->data);
        p += n + (newline != NULL);
    }
    return WEIR_OK;
}

static weir_status read_merges_file(weir_tokenizer *t, const char *path, weir_err *err)
{
    weir_filemap map = {0};
    WEIR_TRY(weir_filemap_open(&map, path, err));
    weir_status s = map.size ? read_merges_text(t, &map, err) : WEIR_OK;
    weir_filemap_close(&map);
    return s;
}

/* Where no file names special tokens, those of GPT-2 hold. */
static weir_status default_special(weir_tokenizer *t, const weir_log *log, weir_err *err)
{
    static const char name[] = "<|endoftext|>";
    weir_tok_added end = {.content = {name, sizeof name - 1}, .special = true, .id = -1};
    if (t->n_added || t->bos >= 0 || t->eos >= 0 || weir_tok_find(t, name, sizeof name - 1) < 0)
        return WEIR_OK;
    WEIR_TRY(weir_tok_add_token(t, &end, -1, log, err));
    t->bos = t->eos = weir_tok_find(t, name, sizeof name - 1);
    return WEIR_OK;
}

weir_status weir_tok_read_pair(weir_tokenizer *t, const char *dir, const weir_log *log, weir_err *err)
{
    char *vocab = weir_path_join(dir, "vocab.json"), *merges = weir_path_join(dir, "merges.txt");
    weir_status s = vocab && merges ? WEIR_OK : weir_nomem(err, "a path");
    t->kind = WEIR_TOK_BYTES;
    if (s == WEIR_OK)
        s = weir_tok_add_stage(t, weir_split_gpt2, "gpt2", err);
    if (s == WEIR_OK)
        s = read_vocab_file(t, vocab, err);
    if (s == WEIR_OK)
        s = read_merges_file(t, merges, err);
    if (s == WEIR_OK)
        s = weir_tok_read_config(t, dir, true, log, err);
    if (s == WEIR_OK)
        s = default_special(t, log, err);
    weir_free(vocab);
    weir_free(merges);
    return s;
}

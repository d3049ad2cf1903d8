/* config.c: the small files beside a tokenizer: which tokens begin and end a text, whether the first is added, and, for
 * vocab.json with merges.txt, the added tokens. */
#include <string.h>

#include "base/log.h"
#include "io/filemap.h"
#include "pipeline.h"

/* What the files said, in the order in which they are believed. */
typedef struct config {
    weir_tokenizer *t;
    const weir_log *log;
    bool tokens;       /* take added tokens, too */
    weir_str bos, eos; /* by name; p == NULL: not named */
    int64_t bos_id, eos_id;
    int64_t end[WEIR_TOK_MAX_ENDS]; /* all ids of the first eos_token_id */
    int n_ends;
    int add_bos; /* -1: not said */
    int add_prefix_space;
} config;

/* The special tokens of transformers by their names. */
static bool is_role(weir_str key)
{
    static const char *const roles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (weir_str_eq(key, roles[i]))
            return true;
    return false;
}

/* A token as a string, or as {"content": ..., "lstrip": ...}, special either way; null is none. Its content is
 * returned; with `tokens` it is added. */
static weir_str read_token(config *c, weir_json *j)
{
    weir_tok_added a = {.id = -1};
    weir_json_type type = weir_json_peek(j);
    int64_t any; /* it is known by its content */
    if (type == WEIR_JSON_STRING)
        a.content = weir_tok_json_string(c->t, j);
    else if (type == WEIR_JSON_OBJECT)
        a = weir_tok_read_settings(c->t, j, &any);
    else
        weir_json_skip(j);
    a.special = true;
    if (c->tokens && a.content.p && j->status == WEIR_OK)
        weir_tok_json_fail(j, weir_tok_add_token(c->t, &a, -1, c->log, j->err));
    return a.content;
}

/* {"50256": {"content": ..., "special": ...}, ...} */
static void read_added_decoder(config *c, weir_json *j)
{
    weir_str key;
    if (!c->tokens || weir_json_peek(j) != WEIR_JSON_OBJECT) {
        weir_json_skip(j);
        return;
    }
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        int64_t want = 0;
        for (size_t i = 0; i < key.n && want < INT32_MAX; i++)
            want = key.p[i] >= '0' && key.p[i] <= '9' ? want * 10 + (key.p[i] - '0') : INT32_MAX;
        weir_tok_read_added_token(c->t, j, want, c->log);
    }
}

static void read_token_list(config *c, weir_json *j)
{
    if (weir_json_peek(j) != WEIR_JSON_ARRAY) {
        weir_json_skip(j);
        return;
    }
    weir_json_array(j);
    while (weir_json_item(j))
        (void)read_token(c, j);
}

static void read_flag(weir_json *j, int *flag)
{
    if (weir_json_peek(j) == WEIR_JSON_BOOL)
        *flag = weir_json_bool(j);
    else
        weir_json_skip(j);
}

/* An id, or a list of them, of which the first WEIR_TOK_MAX_ENDS are kept; returns how many. */
static int read_ids(weir_json *j, int64_t id[WEIR_TOK_MAX_ENDS])
{
    weir_json_type type = weir_json_peek(j);
    int n = 0;
    if (type == WEIR_JSON_NUMBER) {
        id[n++] = weir_json_int(j);
    } else if (type == WEIR_JSON_ARRAY) {
        weir_json_array(j);
        while (weir_json_item(j)) {
            int64_t one = weir_json_int(j);
            if (n < WEIR_TOK_MAX_ENDS)
                id[n++] = one;
        }
    } else {
        weir_json_skip(j);
    }
    return n;
}

/* tokenizer_config.json and special_tokens_map.json. */
static void tokenizer_config_key(config *c, weir_json *j, weir_str key)
{
    if (is_role(key)) {
        weir_str *slot = weir_str_eq(key, "bos_token") ? &c->bos : weir_str_eq(key, "eos_token") ? &c->eos : NULL;
        weir_str s = read_token(c, j);
        if (slot && !slot->p)
            *slot = s;
    } else if (weir_str_eq(key, "add_bos_token")) {
        read_flag(j, &c->add_bos);
    } else if (weir_str_eq(key, "add_prefix_space")) {
        read_flag(j, &c->add_prefix_space);
    } else if (weir_str_eq(key, "added_tokens_decoder")) {
        read_added_decoder(c, j);
    } else if (weir_str_eq(key, "additional_special_tokens")) {
        read_token_list(c, j);
    } else {
        weir_json_skip(j);
    }
}

/* added_tokens.json: content to id. */
static void added_tokens_key(config *c, weir_json *j, weir_str key)
{
    weir_tok_added a = {.content = weir_tok_keep(c->t, key), .id = -1, .normalized = true};
    int64_t want = weir_json_int(j);
    if (!a.content.p)
        weir_tok_json_fail(j, weir_nomem(j->err, "an added token"));
    else if (c->tokens && j->status == WEIR_OK && weir_tok_find(c->t, a.content.p, a.content.n) < 0)
        weir_tok_json_fail(j, weir_tok_add_token(c->t, &a, want, c->log, j->err));
}

/* generation_config.json and config.json. */
static void model_config_key(config *c, weir_json *j, weir_str key)
{
    int64_t id[WEIR_TOK_MAX_ENDS];
    bool bos = weir_str_eq(key, "bos_token_id");
    if (!bos && !weir_str_eq(key, "eos_token_id")) {
        weir_json_skip(j);
        return;
    }
    int n = read_ids(j, id);
    int64_t *first = bos ? &c->bos_id : &c->eos_id;
    if (n && *first < 0)
        *first = id[0];
    if (n && !bos && !c->n_ends) {
        memcpy(c->end, id, (size_t)n * sizeof *id);
        c->n_ends = n;
    }
}

static weir_status read_file(config *c, const char *dir, const char *name,
                             void (*take)(config *, weir_json *, weir_str), weir_err *err)
{
    char *path = weir_path_join(dir, name);
    if (!path)
        return weir_nomem(err, "a path");
    weir_filemap map = {0};
    weir_status s = WEIR_OK;
    if (weir_path_is_file(path) && (s = weir_filemap_open(&map, path, err)) == WEIR_OK) {
        weir_json j;
        weir_str key;
        weir_json_init(&j, map.data, map.size, map.path, err);
        weir_json_object(&j);
        while (weir_json_key(&j, &key))
            take(c, &j, key);
        weir_json_end(&j);
        s = weir_json_done(&j);
        if (s)
            weir_err_where(err, path, NULL, -1);
        weir_filemap_close(&map);
    }
    weir_free(path);
    return s;
}

/* A token's id by its name, else the number that a model's configuration gives, else what is known already. */
static int32_t resolve(const config *c, weir_str name, int64_t id, int32_t known)
{
    const weir_tokenizer *t = c->t;
    int32_t found = name.p ? weir_tok_find(t, name.p, name.n) : -1;
    if (found >= 0)
        return found;
    if (name.p)
        weir_logf(c->log, WEIR_LOG_WARN, "special token \"%.*s\" is not in the vocabulary",
                  (int)(name.n < 60 ? name.n : 60), name.p);
    return id >= 0 && id < t->vocab.n && t->vocab.piece[id].p ? (int32_t)id : known;
}

weir_status weir_tok_read_config(weir_tokenizer *t, const char *dir, bool tokens, const weir_log *log, weir_err *err)
{
    config c = {
        .t = t, .log = log, .tokens = tokens, .bos_id = -1, .eos_id = -1, .add_bos = -1, .add_prefix_space = -1};
    WEIR_TRY(read_file(&c, dir, "tokenizer_config.json", tokenizer_config_key, err));
    int add_bos = c.add_bos;
    WEIR_TRY(read_file(&c, dir, "special_tokens_map.json", tokenizer_config_key, err));
    if (tokens)
        WEIR_TRY(read_file(&c, dir, "added_tokens.json", added_tokens_key, err));
    WEIR_TRY(read_file(&c, dir, "generation_config.json", model_config_key, err));
    WEIR_TRY(read_file(&c, dir, "config.json", model_config_key, err));
    t->bos = resolve(&c, c.bos, c.bos_id, t->bos);
    t->eos = resolve(&c, c.eos, c.eos_id, t->eos);
    for (int i = 0; i < c.n_ends; i++)
        weir_tok_add_end(t, c.end[i]);
    if (tokens && c.add_prefix_space == 1)
        WEIR_TRY(weir_tok_add_op(&t->prefix, WEIR_TOK_PREFIX, (weir_str){"", 0}, (weir_str){" ", 1}, err));
    if (add_bos >= 0)
        t->adds_bos = add_bos == 1;
    if (t->adds_bos && t->bos < 0) {
        t->adds_bos = false;
        weir_logf(log, WEIR_LOG_WARN, "add_bos_token is true, but no BOS token is known: none will be added");
    }
    return WEIR_OK;
}

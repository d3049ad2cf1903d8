/* open_json.c: tokenizer.json. */
#include <string.h>

#include "io/filemap.h"
#include "pipeline.h"

/* The parts of the file that are read after the vocabulary, wherever they stand. The model, which is nearly all of the
 * file, is read in place. */
typedef struct parts {
    weir_tok_source src;
    weir_str added, normalizer, pre_tokenizer, post_processor, decoder;
    weir_str merges; /* only if they stand before the vocabulary */
    weir_str unk;
    bool has_model, has_vocab, has_merges;
} parts;

static void refuse_model(weir_json *j, const char *what)
{
    if (j->status != WEIR_OK)
        return;
    j->status = weir_fail(j->err, WEIR_E_UNSUPPORTED, "%s is not supported", what);
    weir_err_where(j->err, j->file, NULL, (int64_t)j->pos);
}

static void check_version(weir_json *j)
{
    if (!weir_str_eq(weir_json_string(j), "1.0"))
        refuse_model(j, "a tokenizer.json of a version other than 1.0");
}

/* A string that must be empty or null. */
static void need_none(weir_json *j, const char *what)
{
    if (weir_json_peek(j) == WEIR_JSON_NULL)
        weir_json_null(j);
    else if (weir_json_string(j).n)
        refuse_model(j, what);
}

static void read_unk(weir_tokenizer *t, weir_json *j, parts *p)
{
    if (weir_json_peek(j) == WEIR_JSON_NULL) {
        weir_json_null(j);
        return;
    }
    p->unk = weir_tok_json_string(t, j);
}

static void read_type(weir_json *j)
{
    weir_str type = weir_json_string(j);
    char what[100];
    if (j->status != WEIR_OK || weir_str_eq(type, "BPE"))
        return;
    snprintf(what, sizeof what, "a tokenizer model of type \"%.*s\" (weir does BPE)", (int)(type.n < 40 ? type.n : 40),
             type.p);
    refuse_model(j, what);
}

static void read_dropout(weir_json *j)
{
    if (weir_json_peek(j) == WEIR_JSON_NULL)
        weir_json_null(j);
    else if (weir_json_double(j) != 0.0)
        refuse_model(j, "dropout in a BPE model");
}

void weir_tok_read_vocab(weir_tokenizer *t, weir_json *j)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        int64_t id = weir_json_int(j);
        if (j->status == WEIR_OK)
            weir_tok_json_fail(j, weir_tok_vocab_add(t, key, id, WEIR_ID_MODEL, j->err));
    }
}

/* ["a", "b"] */
static weir_status read_merge_pair(weir_tokenizer *t, weir_json *j, weir_buf *left, uint32_t rank)
{
    weir_str right = {NULL, 0};
    size_t n_left = 0;
    int n = 0;
    left->n = 0;
    weir_json_array(j);
    while (weir_json_item(j)) {
        weir_str part = weir_json_string(j);
        if (n == 0) {
            n_left = part.n;
            if (weir_buf_add(left, part.p, part.n))
                return weir_nomem(j->err, "the merges");
        }
        right = part;
        n++;
    }
    if (j->status)
        return j->status;
    if (n != 2)
        return weir_fail(j->err, WEIR_E_FORMAT, "merge %u is a list of %d tokens, not of 2", rank, n);
    return weir_tok_add_merge(t, (weir_str){left->p, n_left}, right, rank, j->err);
}

static void read_merges(weir_tokenizer *t, weir_json *j)
{
    weir_buf left = {0};
    uint32_t rank = 0;
    if (weir_tok_merges_reserve(&t->merges, (size_t)t->vocab.entries))
        weir_tok_json_fail(j, weir_nomem(j->err, "the merges"));
    weir_json_array(j);
    for (; weir_json_item(j); rank++) {
        if (weir_json_peek(j) == WEIR_JSON_ARRAY) {
            weir_tok_json_fail(j, read_merge_pair(t, j, &left, rank));
            continue;
        }
        weir_str line = weir_json_string(j);
        if (j->status == WEIR_OK)
            weir_tok_json_fail(j, weir_tok_add_merge_line(t, line, rank, j->err));
    }
    weir_buf_free(&left);
}

static void read_model_key(weir_tokenizer *t, weir_json *j, weir_str key, parts *p)
{
    if (weir_str_eq(key, "type"))
        read_type(j);
    else if (weir_str_eq(key, "vocab"))
        weir_tok_read_vocab(t, j), p->has_vocab = true;
    else if (weir_str_eq(key, "merges") && p->has_vocab)
        read_merges(t, j), p->has_merges = true;
    else if (weir_str_eq(key, "merges"))
        p->merges = weir_json_raw(j);
    else if (weir_str_eq(key, "unk_token"))
        read_unk(t, j, p);
    else if (weir_str_eq(key, "dropout"))
        read_dropout(j);
    else if (weir_str_eq(key, "continuing_subword_prefix"))
        need_none(j, "continuing_subword_prefix of a BPE model");
    else if (weir_str_eq(key, "end_of_word_suffix"))
        need_none(j, "end_of_word_suffix of a BPE model");
    else if (weir_str_eq(key, "fuse_unk"))
        t->fuse_unk = weir_json_bool(j);
    else if (weir_str_eq(key, "byte_fallback"))
        t->byte_fallback = weir_json_bool(j);
    else if (weir_str_eq(key, "ignore_merges"))
        t->ignore_merges = weir_json_bool(j);
    else
        weir_json_skip(j);
}

static void read_model(weir_tokenizer *t, weir_json *j, parts *p)
{
    weir_str key;
    p->has_model = true;
    weir_json_object(j);
    while (weir_json_key(j, &key))
        read_model_key(t, j, key, p);
    if (!p->has_vocab || !(p->has_merges || p->merges.p))
        weir_json_fail(j, "the model has no \"%s\": weir does BPE", p->has_vocab ? "merges" : "vocab");
}

static weir_status read_top(weir_tokenizer *t, parts *p, const weir_filemap *map, weir_err *err)
{
    const struct {
        const char *key;
        weir_str *raw;
    } later[] = {{"added_tokens", &p->added},
                 {"normalizer", &p->normalizer},
                 {"pre_tokenizer", &p->pre_tokenizer},
                 {"post_processor", &p->post_processor},
                 {"decoder", &p->decoder}};
    weir_json j;
    weir_str key;
    weir_json_init(&j, map->data, map->size, map->path, err);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        size_t i = 0;
        while (i < sizeof later / sizeof *later && !weir_str_eq(key, later[i].key))
            i++;
        if (i < sizeof later / sizeof *later)
            *later[i].raw = weir_json_raw(&j);
        else if (weir_str_eq(key, "model"))
            read_model(t, &j, p);
        else if (weir_str_eq(key, "version"))
            check_version(&j);
        else
            weir_json_skip(&j);
    }
    weir_json_end(&j);
    if (!p->has_model)
        weir_json_fail(&j, "no \"model\": this is not a tokenizer.json");
    return weir_json_done(&j);
}

static weir_status read_late_merges(weir_tokenizer *t, const parts *p, weir_err *err)
{
    weir_json j;
    if (p->has_merges)
        return WEIR_OK;
    weir_tok_json_at(&j, &p->src, p->merges, err);
    read_merges(t, &j);
    return weir_json_done(&j);
}

weir_tok_added weir_tok_read_settings(weir_tokenizer *t, weir_json *j, int64_t *want)
{
    weir_tok_added a = {.id = -1};
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "id"))
            *want = weir_json_int(j);
        else if (weir_str_eq(key, "content"))
            a.content = weir_tok_json_string(t, j);
        else if (weir_str_eq(key, "special"))
            a.special = weir_json_bool(j);
        else if (weir_str_eq(key, "lstrip"))
            a.lstrip = weir_json_bool(j);
        else if (weir_str_eq(key, "rstrip"))
            a.rstrip = weir_json_bool(j);
        else if (weir_str_eq(key, "single_word"))
            a.single_word = weir_json_bool(j);
        else if (weir_str_eq(key, "normalized"))
            a.normalized = weir_json_bool(j);
        else
            weir_json_skip(j);
    }
    return a;
}

void weir_tok_read_added_token(weir_tokenizer *t, weir_json *j, int64_t want, const weir_log *log)
{
    weir_tok_added a = weir_tok_read_settings(t, j, &want);
    if (!a.content.p)
        weir_json_fail(j, "an added token without \"content\"");
    if (j->status == WEIR_OK)
        weir_tok_json_fail(j, weir_tok_add_token(t, &a, want, log, j->err));
}

static weir_status read_added(weir_tokenizer *t, const parts *p, const weir_log *log, weir_err *err)
{
    if (!p->added.p)
        return WEIR_OK;
    weir_json j;
    weir_tok_json_at(&j, &p->src, p->added, err);
    weir_json_array(&j);
    while (weir_json_item(&j))
        weir_tok_read_added_token(t, &j, -1, log);
    return weir_json_done(&j);
}

static weir_status read_pipeline(weir_tokenizer *t, const parts *p, weir_err *err)
{
    const weir_tok_source *src = &p->src;
    weir_str first = {NULL, 0};
    WEIR_TRY(weir_tok_read_normalizer(t, src, p->normalizer, err));
    WEIR_TRY(weir_tok_read_pre_tokenizer(t, src, p->pre_tokenizer, err));
    WEIR_TRY(weir_tok_read_decoder(t, src, p->decoder, err));
    WEIR_TRY(weir_tok_read_post_processor(t, src, p->post_processor, &first, err));
    if (t->kind == WEIR_TOK_BYTES && t->byte_fallback)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "byte_fallback together with ByteLevel");
    if (first.p) {
        t->bos = weir_tok_find(t, first.p, first.n);
        t->adds_bos = t->bos >= 0;
    }
    return WEIR_OK;
}

static weir_status read_all(weir_tokenizer *t, const weir_filemap *map, const weir_log *log, weir_err *err)
{
    parts p = {.src = {.text = (const char *)map->data, .file = map->path}};
    t->vocab.limit = (int64_t)(map->size < INT32_MAX / 2 ? map->size : INT32_MAX / 2) + 65536;
    WEIR_TRY(weir_tok_vocab_reserve(t, map->size / 75, err));
    WEIR_TRY(read_top(t, &p, map, err));
    WEIR_TRY(read_late_merges(t, &p, err));
    WEIR_TRY(read_added(t, &p, log, err));
    if (p.unk.p) {
        t->unk = weir_tok_find_model(t, p.unk.p, p.unk.n);
        if (t->unk < 0)
            return weir_fail(err, WEIR_E_FORMAT, "unk_token \"%.*s\" is not in the vocabulary",
                             (int)(p.unk.n < 60 ? p.unk.n : 60), p.unk.p);
    }
    return read_pipeline(t, &p, err);
}

weir_status weir_tok_read_json(weir_tokenizer *t, const char *path, const weir_log *log, weir_err *err)
{
    weir_filemap map = {0};
    WEIR_TRY(weir_filemap_open(&map, path, err));
    weir_status s = read_all(t, &map, log, err);
    if (s)
        weir_err_where(err, path, NULL, -1);
    weir_filemap_close(&map);
    return s;
}

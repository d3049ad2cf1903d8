/* open_gguf.c: the tokenizer in the metadata of a GGUF file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/gguf.h"
#include "pipeline.h"
#include "unicode.h"

/* tokenizer.ggml.token_type */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };

typedef struct reader {
    weir_tokenizer *t;
    const weir_gguf *g;
    const weir_log *log;
    weir_err *err;
    const weir_gguf_kv *tokens, *types, *scores, *merges;
} reader;

/* tokenizer.ggml.pre: the patterns that weir knows, and what goes with each. */
static const struct {
    const char *pre;
    const char *name; /* of the pattern */
    weir_tok_splitter *split;
    bool digits, nfc, ignore_merges;
} patterns[] = {
    {"gpt-2", "gpt2", weir_split_gpt2, false, false, false},
    {"gpt2", "gpt2", weir_split_gpt2, false, false, false},
    {"phi-2", "gpt2", weir_split_gpt2, false, false, false},
    {"olmo", "gpt2", weir_split_gpt2, false, true, false},
    {"mpt", "gpt2", weir_split_gpt2, false, true, false},
    {"smollm", "gpt2", weir_split_gpt2, true, false, false},
    {"starcoder", "gpt2", weir_split_gpt2, true, false, false},
    {"refact", "gpt2", weir_split_gpt2, true, false, false},
    {"llama-bpe", "llama3", weir_split_llama3, false, false, true},
    {"llama3", "llama3", weir_split_llama3, false, false, true},
    {"llama-v3", "llama3", weir_split_llama3, false, false, true},
    {"smaug-bpe", "llama3", weir_split_llama3, false, false, false},
    {"qwen2", "qwen2", weir_split_qwen2, false, true, false},
    {"deepseek-r1-qwen", "qwen2", weir_split_qwen2, false, true, false},
};

static weir_status bad_key(reader *r, const weir_gguf_kv *kv, const char *why)
{
    weir_fail(r->err, WEIR_E_FORMAT, "%.*s %s", (int)kv->key.n, kv->key.p, why);
    weir_err_where(r->err, r->g->map.path, NULL, kv->offset);
    return WEIR_E_FORMAT;
}

/* An array of the given element types, one entry a token; absent is NULL. */
static weir_status find_array(reader *r, const char *key, weir_gguf_type a, weir_gguf_type b, const weir_gguf_kv **out)
{
    const weir_gguf_kv *kv = weir_gguf_find(r->g, key);
    *out = kv;
    if (!kv)
        return WEIR_OK;
    if (kv->type != WEIR_GGUF_ARRAY || (kv->elem != a && kv->elem != b))
        return bad_key(r, kv, "is not an array of the right type");
    if (r->tokens && kv != r->tokens && strcmp(key, "tokenizer.ggml.merges") != 0 && kv->n != r->tokens->n)
        return bad_key(r, kv, "has not one entry for each token");
    return WEIR_OK;
}

static weir_status find_arrays(reader *r)
{
    WEIR_TRY(find_array(r, "tokenizer.ggml.tokens", WEIR_GGUF_STRING, WEIR_GGUF_STRING, &r->tokens));
    if (!r->tokens)
        return weir_fail(r->err, WEIR_E_FORMAT, "no tokenizer.ggml.tokens: the file carries no tokenizer");
    if (r->tokens->n > INT32_MAX / 4)
        return bad_key(r, r->tokens, "has too many tokens");
    WEIR_TRY(find_array(r, "tokenizer.ggml.token_type", WEIR_GGUF_I32, WEIR_GGUF_U32, &r->types));
    WEIR_TRY(find_array(r, "tokenizer.ggml.scores", WEIR_GGUF_F32, WEIR_GGUF_F32, &r->scores));
    return find_array(r, "tokenizer.ggml.merges", WEIR_GGUF_STRING, WEIR_GGUF_STRING, &r->merges);
}

static int64_t type_of(const reader *r, int32_t id)
{
    return r->types ? weir_gguf_elem_int(r->types, (uint64_t)id) : TYPE_NORMAL;
}

/* Whether BPE may make the token: a control token never comes out of plain text. */
static uint8_t flags_of(const reader *r, int64_t type)
{
    if (r->t->kind == WEIR_TOK_BYTES)
        return WEIR_ID_MODEL;
    return type == TYPE_NORMAL || type == TYPE_BYTE || type == TYPE_USER_DEFINED || type == TYPE_UNKNOWN ? WEIR_ID_MODEL
                                                                                                         : 0;
}

static weir_status read_tokens(reader *r)
{
    weir_tokenizer *t = r->t;
    size_t pos = 0;
    int64_t repeated = 0;
    t->vocab.limit = (int64_t)r->tokens->n;
    WEIR_TRY(weir_tok_vocab_reserve(t, (size_t)r->tokens->n, r->err));
    for (int32_t id = 0; (uint64_t)id < r->tokens->n; id++) {
        weir_str piece;
        WEIR_TRY(weir_gguf_next_str(r->g, r->tokens, &pos, &piece, r->err));
        if (weir_tok_find(t, piece.p, piece.n) >= 0 || !piece.n) {
            repeated++;
            continue;
        }
        WEIR_TRY(weir_tok_vocab_add(t, piece, id, flags_of(r, type_of(r, id)), r->err));
    }
    if (repeated)
        weir_logf(r->log, WEIR_LOG_WARN,
                  "%lld tokens of the vocabulary are empty or repeat an earlier one: their ids are never used",
                  (long long)repeated);
    return WEIR_OK;
}

/* A user-defined token of a SentencePiece vocabulary is looked for as text, with spaces. */
static weir_str plain_text(reader *r, weir_str piece)
{
    if (r->t->kind == WEIR_TOK_BYTES || !memmem(piece.p, piece.n, "\xe2\x96\x81", 3))
        return piece;
    weir_buf b = {0};
    weir_str text = {NULL, 0};
    bool ok = true;
    for (size_t i = 0; i < piece.n && ok;) {
        bool space = piece.n - i >= 3 && memcmp(piece.p + i, "\xe2\x96\x81", 3) == 0;
        ok = weir_buf_add(&b, space ? " " : piece.p + i, 1) == WEIR_OK;
        i += space ? 3 : 1;
    }
    if (ok)
        text = weir_tok_keep(r->t, (weir_str){b.p, b.n});
    weir_buf_free(&b);
    return text;
}

static weir_status read_added(reader *r)
{
    weir_tokenizer *t = r->t;
    int32_t n = t->vocab.n;
    for (int32_t id = 0; id < n; id++) {
        int64_t type = type_of(r, id);
        if (!t->vocab.piece[id].p || (type != TYPE_CONTROL && type != TYPE_USER_DEFINED))
            continue;
        weir_tok_added a = {.content = plain_text(r, t->vocab.piece[id]), .id = id, .special = type == TYPE_CONTROL};
        if (!a.content.p)
            return weir_nomem(r->err, "the added tokens");
        WEIR_TRY(weir_tok_add_token(t, &a, -1, r->log, r->err));
    }
    if (!r->types)
        weir_logf(r->log, WEIR_LOG_WARN,
                  "no tokenizer.ggml.token_type: special tokens in a text will not be recognised");
    return WEIR_OK;
}

/* --- byte-level */

static weir_status read_merges(reader *r)
{
    size_t pos = 0;
    if (!r->merges)
        return weir_fail(r->err, WEIR_E_FORMAT, "no tokenizer.ggml.merges: a vocabulary of kind \"gpt2\" needs them");
    if (weir_tok_merges_reserve(&r->t->merges, r->merges->n < INT32_MAX / 4 ? (size_t)r->merges->n : INT32_MAX / 4))
        return weir_nomem(r->err, "the merges");
    for (uint64_t i = 0; i < r->merges->n; i++) {
        weir_str line;
        WEIR_TRY(weir_gguf_next_str(r->g, r->merges, &pos, &line, r->err));
        const weir_status s = weir_tok_add_merge_line(r->t, line, (uint32_t)i, r->err);
        if (s != WEIR_OK) {
            weir_err_where(r->err, r->g->map.path, NULL, r->merges->offset);
            return s;
        }
    }
    return WEIR_OK;
}

static weir_status set_pattern(reader *r)
{
    weir_str pre = {"", 0};
    bool found;
    WEIR_TRY(weir_gguf_str(r->g, "tokenizer.ggml.pre", &pre, &found, r->err));
    if (!found || weir_str_eq(pre, "default")) {
        weir_logf(r->log, WEIR_LOG_WARN,
                  "the file does not say how text is cut into pieces (tokenizer.ggml.pre): GPT-2's pattern is "
                  "assumed, and ids may differ from those of the model's own tokenizer");
        return weir_tok_add_stage(r->t, weir_split_gpt2, "gpt2", r->err);
    }
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (!weir_str_eq(pre, patterns[i].pre))
            continue;
        r->t->ignore_merges = patterns[i].ignore_merges;
        if (patterns[i].nfc)
            WEIR_TRY(weir_tok_add_op(&r->t->normalizer, WEIR_TOK_NFC, (weir_str){"", 0}, (weir_str){"", 0}, r->err));
        if (patterns[i].digits)
            WEIR_TRY(weir_tok_add_stage(r->t, weir_split_each_digit, "digits", r->err));
        return weir_tok_add_stage(r->t, patterns[i].split, patterns[i].name, r->err);
    }
    return weir_fail(r->err, WEIR_E_UNSUPPORTED, "the pre-tokenizer pattern \"%.*s\" (tokenizer.ggml.pre) is not known",
                     (int)(pre.n < 60 ? pre.n : 60), pre.p);
}

static weir_status read_gpt2(reader *r)
{
    r->t->kind = WEIR_TOK_BYTES;
    WEIR_TRY(set_pattern(r));
    WEIR_TRY(read_tokens(r));
    WEIR_TRY(read_merges(r));
    return read_added(r);
}

/* --- SentencePiece */

typedef struct scored {
    float score;
    int32_t id;
} scored;

/* Best score first. */
static int compare_scores(const void *x, const void *y)
{
    const scored *a = x, *b = y;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* SentencePiece makes no piece longer than 512 characters. Looking for all cuts of one takes the square of its length,
 * so that a limit is needed. */
enum { SP_PIECE_MAX = 2048 };

/* Every way to cut a token in two tokens is a merge that makes it; all have the rank of the token's score. */
static weir_status add_cuts(reader *r, int32_t id, uint32_t rank)
{
    weir_tokenizer *t = r->t;
    weir_str s = t->vocab.piece[id];
    if (s.n > SP_PIECE_MAX)
        return weir_fail(r->err, WEIR_E_FORMAT,
                         "token %d has %zu bytes: for a vocabulary of kind \"llama\" the limit is %d", id, s.n,
                         SP_PIECE_MAX);
    for (size_t i = 1; i < s.n; i++) {
        if (((uint8_t)s.p[i] & 0xc0) == 0x80)
            continue;
        int32_t left = weir_tok_find_model(t, s.p, i);
        int32_t right = left < 0 ? -1 : weir_tok_find_model(t, s.p + i, s.n - i);
        if (right < 0)
            continue;
        if (weir_tok_merges_reserve(&t->merges, t->merges.n + 1))
            return weir_nomem(r->err, "the merges");
        weir_tok_merges_set(&t->merges, left, right, id, rank);
    }
    return WEIR_OK;
}

static weir_status merges_from_scores(reader *r)
{
    weir_tokenizer *t = r->t;
    scored *order = weir_calloc((size_t)t->vocab.n + 1, sizeof *order);
    if (!order)
        return weir_nomem(r->err, "the merges");
    size_t n = 0;
    weir_status s = WEIR_OK;
    for (int32_t id = 0; id < t->vocab.n && s == WEIR_OK; id++) {
        int64_t type = type_of(r, id);
        double score = weir_gguf_elem_double(r->scores, (uint64_t)id);
        if (isnan(score))
            s = bad_key(r, r->scores, "holds a NaN");
        if (t->vocab.piece[id].p && type == TYPE_NORMAL)
            order[n++] = (scored){(float)score, id};
    }
    if (n)
        qsort(order, n, sizeof *order, compare_scores);
    uint32_t rank = 0;
    for (size_t i = 0; i < n && s == WEIR_OK; i++) {
        rank += i > 0 && order[i].score != order[i - 1].score;
        s = add_cuts(r, order[i].id, rank);
    }
    weir_free(order);
    return s;
}

static weir_status read_llama(reader *r)
{
    weir_tokenizer *t = r->t;
    bool prefix = true, found;
    t->kind = WEIR_TOK_CHARS;
    t->byte_fallback = true;
    t->fuse_unk = true;
    t->equal_ranks = true;
    if (!r->scores || !r->types)
        return weir_fail(r->err, WEIR_E_FORMAT, "no tokenizer.ggml.%s: a vocabulary of kind \"llama\" needs it",
                         r->scores ? "token_type" : "scores");
    WEIR_TRY(weir_gguf_bool(r->g, "tokenizer.ggml.add_space_prefix", &prefix, &found, r->err));
    weir_str meta = {"\xe2\x96\x81", 3}, none = {"", 0};
    if (prefix)
        WEIR_TRY(weir_tok_add_op(&t->normalizer, WEIR_TOK_PREPEND, none, meta, r->err));
    WEIR_TRY(weir_tok_add_op(&t->normalizer, WEIR_TOK_REPLACE, (weir_str){" ", 1}, meta, r->err));
    t->strip_space = prefix;
    WEIR_TRY(read_tokens(r));
    WEIR_TRY(merges_from_scores(r));
    WEIR_TRY(read_added(r));
    for (int32_t id = 0; id < t->vocab.n && t->unk < 0; id++)
        if (t->vocab.piece[id].p && type_of(r, id) == TYPE_UNKNOWN)
            t->unk = id;
    weir_tok_name_pattern(t);
    return WEIR_OK;
}

static weir_status read_id(reader *r, const char *key, int32_t *id)
{
    int64_t value;
    bool found;
    WEIR_TRY(weir_gguf_int(r->g, key, &value, &found, r->err));
    if (found && value >= 0 && value < r->t->vocab.n)
        *id = (int32_t)value;
    return WEIR_OK;
}

static weir_status read_all(reader *r)
{
    weir_str model;
    bool found;
    WEIR_TRY(weir_gguf_str(r->g, "tokenizer.ggml.model", &model, &found, r->err));
    if (!found)
        return weir_fail(r->err, WEIR_E_FORMAT, "no tokenizer.ggml.model: the file carries no tokenizer");
    WEIR_TRY(find_arrays(r));
    if (weir_str_eq(model, "gpt2"))
        WEIR_TRY(read_gpt2(r));
    else if (weir_str_eq(model, "llama"))
        WEIR_TRY(read_llama(r));
    else
        return weir_fail(r->err, WEIR_E_UNSUPPORTED,
                         "a tokenizer of kind \"%.*s\" (tokenizer.ggml.model) is not supported",
                         (int)(model.n < 60 ? model.n : 60), model.p);
    weir_tok_name_pattern(r->t);
    WEIR_TRY(read_id(r, "tokenizer.ggml.bos_token_id", &r->t->bos));
    int32_t eot = -1;
    WEIR_TRY(read_id(r, "tokenizer.ggml.eos_token_id", &r->t->eos));
    WEIR_TRY(read_id(r, "tokenizer.ggml.eot_token_id", &eot));
    weir_tok_add_end(r->t, eot);
    WEIR_TRY(weir_gguf_bool(r->g, "tokenizer.ggml.add_bos_token", &r->t->adds_bos, &found, r->err));
    r->t->adds_bos = r->t->adds_bos && r->t->bos >= 0;
    return WEIR_OK;
}

weir_status weir_tok_read_gguf(weir_tokenizer *t, const char *path, const weir_log *log, weir_err *err)
{
    weir_gguf g = {0};
    WEIR_TRY(weir_gguf_open(&g, path, err));
    reader r = {.t = t, .g = &g, .log = log, .err = err};
    weir_status s = read_all(&r);
    if (s)
        weir_err_where(err, path, NULL, -1);
    weir_gguf_close(&g);
    return s;
}

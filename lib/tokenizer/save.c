/* save.c: a tokenizer as Hugging Face's tokenizer.json and tokenizer_config.json: whatever was read, as far as the
 * steps that GGUF files have go. What else a tokenizer.json can hold is refused: who has one can copy it. */
#include <stdlib.h>
#include <string.h>

#include <weir/json.h>

#include "base/log.h"
#include "base/utf8.h"
#include "tok.h"

/* --- merges in their order */

static int compare_merges(const void *x, const void *y)
{
    const weir_tok_merge *a = x, *b = y;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->left != b->left)
        return a->left < b->left ? -1 : 1;
    return (a->right > b->right) - (a->right < b->right);
}

/* A sorted copy [t->merges.n], or NULL. */
static weir_tok_merge *sorted_merges(const weir_tokenizer *t)
{
    weir_tok_merge *all = weir_calloc(t->merges.n + 1, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; all && i < t->merges.cap; i++)
        if (t->merges.slot[i].made >= 0)
            all[n++] = t->merges.slot[i];
    if (n)
        qsort(all, n, sizeof *all, compare_merges);
    return all;
}

/* --- what cannot be written */

static bool is_text(weir_str s)
{
    for (size_t i = 0; i < s.n;) {
        const int len = weir_utf8_len(s.p + i, s.n - i);
        if (!len || !s.p[i])
            return false;
        i += (size_t)len;
    }
    return true;
}

static bool prepends(const weir_tokenizer *t)
{
    for (int i = 0; i < t->normalizer.n; i++)
        if (t->normalizer.op[i].kind == WEIR_TOK_PREPEND)
            return true;
    return false;
}

static bool has_own_spelling(const weir_tokenizer *t, const weir_tok_added *a)
{
    const weir_str piece = t->vocab.piece[a->id];
    return piece.n != a->content.n || memcmp(piece.p, a->content.p, piece.n) != 0;
}

static weir_status check_pieces(const weir_tokenizer *t, weir_err *err)
{
    for (int32_t id = 0; id < t->vocab.n; id++)
        if (t->vocab.piece[id].p && !is_text(t->vocab.piece[id]))
            return weir_fail(err, WEIR_E_UNSUPPORTED, "token %d is not UTF-8, or holds a NUL: it is not written", id);
    for (size_t i = 0; i < t->n_added; i++)
        if (has_own_spelling(t, &t->added[i]) && prepends(t))
            return weir_fail(err, WEIR_E_UNSUPPORTED,
                             "token %d is user-defined and has spaces, and a space goes before each text: a "
                             "tokenizer.json cannot say that",
                             t->added[i].id);
    return WEIR_OK;
}

static weir_status check_steps(const weir_tokenizer *t, weir_err *err)
{
    if (t->prefix.n)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "a tokenizer with a prefix of its own is not written");
    for (int i = 0; i < t->n_stages; i++)
        if (!weir_tok_regex_of(t->stage[i]) && t->stage[i] != weir_split_each_digit &&
            t->stage[i] != weir_split_before_meta)
            return weir_fail(err, WEIR_E_UNSUPPORTED, "a tokenizer with the pattern \"%s\" is not written", t->pattern);
    return WEIR_OK;
}

/* Pieces of one score merge from the left on in SentencePiece; Hugging Face ranks every merge. */
static weir_status remark_ties(const weir_tokenizer *t, const weir_log *log, weir_err *err)
{
    if (!t->equal_ranks)
        return WEIR_OK;
    weir_tok_merge *m = sorted_merges(t);
    int64_t ties = 0;
    if (!m)
        return weir_nomem(err, "the merges");
    for (size_t i = 1; i < t->merges.n; i++)
        ties += m[i].rank == m[i - 1].rank && m[i].made != m[i - 1].made;
    if (ties)
        weir_logf(log, WEIR_LOG_WARN,
                  "%lld tokens of the vocabulary have the score of another one: tokenizer.json ranks them, and where "
                  "both could be made in one word, ids may differ",
                  (long long)ties);
    weir_free(m);
    return WEIR_OK;
}

weir_status weir_tokenizer_may_write(const weir_tokenizer *t, const weir_log *log, weir_err *err)
{
    WEIR_TRY(check_steps(t, err));
    WEIR_TRY(check_pieces(t, err));
    return remark_ties(t, log, err);
}

/* --- tokenizer.json */

static void write_str(weir_jsonw *w, const char *key, weir_str s)
{
    weir_jsonw_key(w, key);
    weir_jsonw_str(w, s.p, s.n);
}

/* A token's spelling, or null. */
static void write_piece(weir_jsonw *w, const char *key, const weir_tokenizer *t, int32_t id)
{
    weir_jsonw_key(w, key);
    if (id < 0)
        weir_jsonw_null(w);
    else
        weir_jsonw_str(w, t->vocab.piece[id].p, t->vocab.piece[id].n);
}

/* The same with a NUL behind it, as a key; key: room for the longest piece. */
static const char *spell(const weir_tokenizer *t, int32_t id, char *key)
{
    const weir_str s = t->vocab.piece[id];
    memcpy(key, s.p, s.n);
    key[s.n] = '\0';
    return key;
}

static void begin(weir_jsonw *w, const char *type)
{
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "type", type);
}

/* {"type": "Sequence", LIST: [ */
static void begin_sequence(weir_jsonw *w, const char *list)
{
    begin(w, "Sequence");
    weir_jsonw_key(w, list);
    weir_jsonw_array(w);
}

static void end_sequence(weir_jsonw *w)
{
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static void write_added(weir_jsonw *w, const weir_tokenizer *t)
{
    weir_jsonw_key(w, "added_tokens");
    weir_jsonw_array(w);
    for (size_t i = 0; i < t->n_added; i++) {
        const weir_tok_added *a = &t->added[i];
        /* One that is looked for with spaces has U+2581 in the vocabulary: it is found once the text has them, too. */
        const bool own = has_own_spelling(t, a);
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "id", a->id);
        write_piece(w, "content", t, a->id);
        weir_jsonw_key_bool(w, "single_word", a->single_word);
        weir_jsonw_key_bool(w, "lstrip", a->lstrip);
        weir_jsonw_key_bool(w, "rstrip", a->rstrip);
        weir_jsonw_key_bool(w, "normalized", a->normalized || own);
        weir_jsonw_key_bool(w, "special", a->special);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void write_replace(weir_jsonw *w, weir_str from, weir_str to)
{
    begin(w, "Replace");
    weir_jsonw_key(w, "pattern");
    weir_jsonw_object(w);
    write_str(w, "String", from);
    weir_jsonw_end(w);
    write_str(w, "content", to);
    weir_jsonw_end(w);
}

static void write_normalizer(weir_jsonw *w, const weir_tokenizer *t)
{
    weir_jsonw_key(w, "normalizer");
    if (!t->normalizer.n) {
        weir_jsonw_null(w);
        return;
    }
    begin_sequence(w, "normalizers");
    for (int i = 0; i < t->normalizer.n; i++) {
        const weir_tok_op *op = &t->normalizer.op[i];
        if (op->kind == WEIR_TOK_REPLACE) {
            write_replace(w, op->from, op->to);
            continue;
        }
        begin(w, op->kind == WEIR_TOK_NFC ? "NFC" : "Prepend");
        if (op->kind == WEIR_TOK_PREPEND)
            write_str(w, "prepend", op->to);
        weir_jsonw_end(w);
    }
    end_sequence(w);
}

static void write_byte_level(weir_jsonw *w, bool prefix, bool use_regex)
{
    begin(w, "ByteLevel");
    weir_jsonw_key_bool(w, "add_prefix_space", prefix);
    weir_jsonw_key_bool(w, "trim_offsets", true);
    weir_jsonw_key_bool(w, "use_regex", use_regex);
    weir_jsonw_end(w);
}

static void write_split(weir_jsonw *w, const char *regex)
{
    begin(w, "Split");
    weir_jsonw_key(w, "pattern");
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "Regex", regex);
    weir_jsonw_end(w);
    weir_jsonw_key_cstr(w, "behavior", "Isolated");
    weir_jsonw_key_bool(w, "invert", false);
    weir_jsonw_end(w);
}

/* A pattern of words in U+2581 is weir's own and changes no id (finish.c). */
static void write_pre_tokenizer(weir_jsonw *w, const weir_tokenizer *t)
{
    const bool gpt2 = t->n_stages && t->stage[t->n_stages - 1] == weir_split_gpt2; /* it is ByteLevel's own */
    weir_jsonw_key(w, "pre_tokenizer");
    if (t->kind != WEIR_TOK_BYTES) {
        weir_jsonw_null(w);
        return;
    }
    begin_sequence(w, "pretokenizers");
    for (int i = 0; i < t->n_stages - gpt2; i++) {
        if (weir_tok_regex_of(t->stage[i])) {
            write_split(w, weir_tok_regex_of(t->stage[i]));
            continue;
        }
        begin(w, "Digits");
        weir_jsonw_key_bool(w, "individual_digits", true);
        weir_jsonw_end(w);
    }
    write_byte_level(w, false, gpt2);
    end_sequence(w);
}

static void write_template_part(weir_jsonw *w, const char *kind, weir_str id, int type)
{
    weir_jsonw_object(w);
    weir_jsonw_key(w, kind);
    weir_jsonw_object(w);
    write_str(w, "id", id);
    weir_jsonw_key_int(w, "type_id", type);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

/* BOS before a text, and before each of a pair. key: room for the longest piece. */
static void write_post_processor(weir_jsonw *w, const weir_tokenizer *t, char *key)
{
    static const struct {
        const char *key;
        int texts;
    } form[] = {{"single", 1}, {"pair", 2}};
    weir_jsonw_key(w, "post_processor");
    if (!t->adds_bos) {
        weir_jsonw_null(w);
        return;
    }
    const weir_str bos = t->vocab.piece[t->bos];
    begin(w, "TemplateProcessing");
    for (int i = 0; i < 2; i++) {
        weir_jsonw_key(w, form[i].key);
        weir_jsonw_array(w);
        for (int k = 0; k < form[i].texts; k++) {
            write_template_part(w, "SpecialToken", bos, k);
            write_template_part(w, "Sequence", (weir_str){k ? "B" : "A", 1}, k);
        }
        weir_jsonw_end(w);
    }
    weir_jsonw_key(w, "special_tokens");
    weir_jsonw_object(w);
    weir_jsonw_key(w, spell(t, t->bos, key));
    weir_jsonw_object(w);
    write_str(w, "id", bos);
    weir_jsonw_key(w, "ids");
    weir_jsonw_array(w);
    weir_jsonw_int(w, t->bos);
    weir_jsonw_end(w);
    weir_jsonw_key(w, "tokens");
    weir_jsonw_array(w);
    weir_jsonw_str(w, bos.p, bos.n);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static void write_decoder(weir_jsonw *w, const weir_tokenizer *t)
{
    static const char *const plain[] = {"ByteFallback", "Fuse"};
    weir_jsonw_key(w, "decoder");
    if (t->kind == WEIR_TOK_BYTES) {
        write_byte_level(w, true, true);
        return;
    }
    begin_sequence(w, "decoders");
    write_replace(w, (weir_str){"\xe2\x96\x81", 3}, (weir_str){" ", 1});
    for (int i = 0; i < 2; i++) {
        begin(w, plain[i]);
        weir_jsonw_end(w);
    }
    if (t->strip_space) {
        begin(w, "Strip");
        weir_jsonw_key_cstr(w, "content", " ");
        weir_jsonw_key_int(w, "start", 1);
        weir_jsonw_key_int(w, "stop", 0);
        weir_jsonw_end(w);
    }
    end_sequence(w);
}

static void write_vocab(weir_jsonw *w, const weir_tokenizer *t, char *key)
{
    weir_jsonw_key(w, "vocab");
    weir_jsonw_object(w);
    for (int32_t id = 0; id < t->vocab.n; id++)
        if (t->vocab.piece[id].p)
            weir_jsonw_key_int(w, spell(t, id, key), id);
    weir_jsonw_end(w);
}

static void write_model(weir_jsonw *w, const weir_tokenizer *t, const weir_tok_merge *merge, char *key)
{
    weir_jsonw_key(w, "model");
    begin(w, "BPE");
    weir_jsonw_key_cstr(w, "dropout", NULL);
    write_piece(w, "unk_token", t, t->unk);
    weir_jsonw_key_cstr(w, "continuing_subword_prefix", NULL);
    weir_jsonw_key_cstr(w, "end_of_word_suffix", NULL);
    weir_jsonw_key_bool(w, "fuse_unk", t->fuse_unk);
    weir_jsonw_key_bool(w, "byte_fallback", t->byte_fallback);
    weir_jsonw_key_bool(w, "ignore_merges", t->ignore_merges);
    write_vocab(w, t, key);
    weir_jsonw_key(w, "merges");
    weir_jsonw_array(w);
    for (size_t i = 0; i < t->merges.n; i++) {
        const weir_str left = t->vocab.piece[merge[i].left], right = t->vocab.piece[merge[i].right];
        weir_jsonw_array(w);
        weir_jsonw_str(w, left.p, left.n);
        weir_jsonw_str(w, right.p, right.n);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static size_t longest_piece(const weir_tokenizer *t)
{
    size_t longest = 0;
    for (int32_t id = 0; id < t->vocab.n; id++)
        longest = t->vocab.piece[id].n > longest ? t->vocab.piece[id].n : longest;
    return longest;
}

weir_status weir_tokenizer_write(const weir_tokenizer *t, FILE *out, weir_err *err)
{
    weir_tok_merge *merge = sorted_merges(t);
    char *key = weir_calloc(longest_piece(t) + 1, 1);
    if (merge && key) {
        weir_jsonw w;
        weir_jsonw_init(&w, out);
        weir_jsonw_object(&w);
        weir_jsonw_key_cstr(&w, "version", "1.0");
        weir_jsonw_key_cstr(&w, "truncation", NULL);
        weir_jsonw_key_cstr(&w, "padding", NULL);
        write_added(&w, t);
        write_normalizer(&w, t);
        write_pre_tokenizer(&w, t);
        write_post_processor(&w, t, key);
        write_decoder(&w, t);
        write_model(&w, t, merge, key);
        weir_jsonw_end(&w);
        fputc('\n', out);
    }
    const weir_status s = merge && key ? WEIR_OK : weir_nomem(err, "a tokenizer.json");
    weir_free(merge);
    weir_free(key);
    return s;
}

/* transformers looks for a token that is named here in every text: one that the file does not look for is not named. */
static void write_named(weir_jsonw *w, const char *key, const weir_tokenizer *t, int32_t id)
{
    write_piece(w, key, t, id >= 0 && t->vocab.flags[id] & WEIR_ID_ADDED ? id : -1);
}

void weir_tokenizer_write_config(const weir_tokenizer *t, int64_t context, weir_str chat_template, FILE *out)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "tokenizer_class", "PreTrainedTokenizerFast");
    write_named(&w, "bos_token", t, t->bos);
    write_named(&w, "eos_token", t, t->eos);
    weir_jsonw_key_bool(&w, "add_bos_token", t->adds_bos);
    weir_jsonw_key_bool(&w, "add_eos_token", false);
    weir_jsonw_key_bool(&w, "clean_up_tokenization_spaces", false);
    weir_jsonw_key_int(&w, "model_max_length", context);
    if (chat_template.n)
        write_str(&w, "chat_template", chat_template);
    weir_jsonw_end(&w);
    fputc('\n', out);
}

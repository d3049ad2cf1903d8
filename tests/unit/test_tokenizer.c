/* Tokenizers against ids that Hugging Face's give: the published vocabularies, and small made-up ones that meet every
 * rule. */
#include "tokenizer_kit.h"

#include "base/utf8.h"
#include "tokenizer/whole.h"

/* Bytes of the longest part of p[0, n) that begins a character and is not one: what one U+FFFD stands for. */
static size_t broken_part(const char *p, size_t n)
{
    for (size_t k = n < 3 ? n : 3; k > 1; k--) {
        char whole[4] = {'\x80', '\x80', '\x80', '\x80'};
        memcpy(whole, p, k);
        if (weir_utf8_len(whole, 4) > (int)k)
            return k;
    }
    return 1;
}

/* The bytes with U+FFFD for what is not UTF-8, as the vectors show them. */
static char *shown(const char *p, size_t n, size_t *len)
{
    char *out = NULL;
    FILE *f = open_memstream(&out, len);
    for (size_t i = 0; i < n;) {
        int k = weir_utf8_len(p + i, n - i);
        if (k)
            fwrite(p + i, 1, (size_t)k, f);
        else
            fputs("\xef\xbf\xbd", f);
        i += k ? (size_t)k : broken_part(p + i, n - i);
    }
    fclose(f);
    return out;
}

static bool decodes_as(const weir_tokenizer *t, const tk_line *l)
{
    size_t n, len;
    char *bytes = tk_decode(t, l->id, l->n, &n), *text = shown(bytes, n, &len);
    bool same = len == l->n_decoded && memcmp(text, l->decoded, len) == 0;
    free(bytes);
    free(text);
    return same;
}

static bool survives(const weir_tokenizer *t, const weir_tokens *k, const char *text, size_t n)
{
    size_t len;
    char *bytes = tk_decode(t, k->id, k->n, &len);
    bool same = len == n && memcmp(bytes, text, n) == 0;
    free(bytes);
    return same;
}

/* What may be different after decoding, beyond lost bytes. */
enum survival { ALL_BYTES, NORMALISED, SPACE_AFTER_SPECIAL };

static void check_lines(const weir_tokenizer *t, const char *path, size_t at_least, enum survival how)
{
    tk_lines all = tk_read_lines(path);
    assert_true(all.n >= at_least);
    weir_tokens k = {0};
    size_t lost = 0, changed = 0;
    for (size_t i = 0; i < all.n; i++) {
        const tk_line *l = &all.line[i];
        tk_encode(t, l->text, l->n_text, &k);
        if (!tk_same_ids(&k, l->id, l->n))
            fail_msg("%s:%zu: other ids", path, i + 1);
        if (!tk_tiles(&k, l->n_text))
            fail_msg("%s:%zu: the offsets do not tile the text", path, i + 1);
        if (l->decoded && !decodes_as(t, l))
            fail_msg("%s:%zu: decoded differently", path, i + 1);
        lost += k.lost_bytes > 0;
        if (l->decoded && !k.lost_bytes && !survives(t, &k, l->text, l->n_text))
            changed++;
    }
    if (how == ALL_BYTES)
        assert_int_equal(changed, 0);
    else
        assert_true(changed > 0 && changed < all.n / 10);
    if (strstr(path, "smollm2"))
        assert_true(lost > 10);
    else if (strstr(path, "vectors"))
        assert_int_equal(lost, 0);
    weir_tokens_free(&k);
    tk_free_lines(&all);
}

static void check_vectors(const char *tokenizer, const char *name, enum survival how)
{
    char path[256];
    snprintf(path, sizeof path, "tests/data/tokenizers/vectors/%s.jsonl", name);
    weir_tokenizer *t = tk_open(tokenizer);
    check_lines(t, path, 285, how);
    weir_tokenizer_free(t);
}

static void check_shared(const char *file, const char *name, enum survival how)
{
    char path[1024];
    const char *shared = tk_shared();
    if (!shared) {
        print_message("%s is not here: its ids are not checked\n", file);
        skip();
    }
    snprintf(path, sizeof path, "%s/%s", shared, file);
    check_vectors(path, name, how);
}

static void test_brook(void **state)
{
    (void)state;
    check_vectors("lib/brook/tokenizer.json", "brook", ALL_BYTES);
}

static void test_gpt2(void **state)
{
    (void)state;
    check_vectors("tests/data/tokenizers/gpt2", "gpt2", ALL_BYTES);
}

static void test_mistral(void **state)
{
    (void)state;
    check_shared("tokenizers/mistral-v0.1/tokenizer.json", "mistral-v0.1", SPACE_AFTER_SPECIAL);
}

static void test_qwen3(void **state)
{
    (void)state;
    check_shared("tokenizers/qwen3/tokenizer.json", "qwen3", NORMALISED);
}

static void test_smollm2(void **state)
{
    (void)state;
    check_shared("models/SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2", ALL_BYTES);
}

/* Twenty-four random small tokenizers: see make_tiny.py beside them. */
static void test_tiny(void **state)
{
    (void)state;
    for (int i = 0; i < 24; i++) {
        char path[128];
        snprintf(path, sizeof path, "tests/data/tokenizers/tiny/%02d.json", i);
        weir_tokenizer *t = tk_open(path);
        snprintf(path, sizeof path, "tests/data/tokenizers/tiny/%02d.jsonl", i);
        check_lines(t, path, 10, ALL_BYTES);
        weir_tokenizer_free(t);
    }
}

/* Strings on which two independent implementations of GPT-2's tokenizer agree. */
static void test_gpt2_golden(void **state)
{
    (void)state;
    weir_tokenizer *t = tk_open("tests/data/tokenizers/gpt2/vocab.json");
    TK_GIVES(t, "Hello world", 15496, 995);
    TK_GIVES(t, "Hello  world", 15496, 220, 995);
    TK_GIVES(t, "Hello world ", 15496, 995, 220);
    TK_GIVES(t, "\n\n\n", 628, 198);
    TK_GIVES(t, "a \n b", 64, 220, 198, 275);
    TK_GIVES(t, "\r\n", 201, 198);
    TK_GIVES(t, "I'M IT'S DON'T", 40, 6, 44, 7283, 6, 50, 23917, 6, 51);
    TK_GIVES(t, "it\u2019s", 270, 447, 247, 82);
    TK_GIVES(t, "''s", 7061, 82);
    TK_GIVES(t, "\u00bd", 23141);
    TK_GIVES(t, "x\u00b2y", 87, 31185, 88);
    TK_GIVES(t, "1234567890", 10163, 2231, 30924, 3829);
    TK_GIVES(t, "00000000000000000000000000000000000000000000000000", 25645, 25645, 25645, 405);
    TK_GIVES(t, "aaaaaaaaaaaaaaaaaaaaaaaa", 24794, 24794, 24794, 24794, 24794, 24794);
    TK_GIVES(t, "e\u0301", 68, 136, 223);
    TK_GIVES(t, "caf\u00e9", 66, 1878, 2634);
    TK_GIVES(t, "\u180e", 157, 254, 236);
    TK_GIVES(t, "\u3000", 5099, 222);
    TK_GIVES(t, "__init__", 834, 15003, 834);
    TK_GIVES(t, " SolidGoldMagikarp", 43453);
    TK_GIVES(t, " <|endoftext|> ", 220, 50256, 220);
    TK_GIVES(t, "I'm you're we've he'll she'd it's can't", 40, 1101, 345, 821, 356, 1053, 339, 1183, 673, 1549, 340,
             338, 460, 470);
    TK_GIVES(t, "def f(x):\n    return x+1\n", 4299, 277, 7, 87, 2599, 198, 220, 220, 220, 1441, 2124, 10, 16, 198);
    TK_GIVES(t, "When Mary and John went to the store, John gave a drink to", 2215, 5335, 290, 1757, 1816, 284, 262,
             3650, 11, 1757, 2921, 257, 4144, 284);
    weir_tokens k = {0};
    tk_encode(t, "\0", 1, &k);
    assert_true(k.n == 1 && k.id[0] == 188);
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
}

static void test_others_golden(void **state)
{
    (void)state;
    const char *shared = tk_shared();
    char path[1024];
    if (!shared) {
        print_message("the vocabularies of Qwen3 and Mistral are not here\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/tokenizers/qwen3/tokenizer.json", shared);
    weir_tokenizer *t = tk_open(path);
    TK_GIVES(t, "Hello world", 9707, 1879);
    TK_GIVES(t, "e\u0301", 963);
    TK_GIVES(t, "!\xc2\x85", 0, 126, 227);
    TK_GIVES(t, "1234567890", 16, 17, 18, 19, 20, 21, 22, 23, 24, 15);
    assert_string_equal(weir_tokenizer_pattern(t), "qwen2");
    weir_tokenizer_free(t);
    snprintf(path, sizeof path, "%s/tokenizers/mistral-v0.1", shared);
    t = tk_open(path);
    TK_GIVES(t, "Hello world", 22557, 1526);
    TK_GIVES(t, "<s>G", 1, 420);
    TK_GIVES(t, "This is \U0001f999.cpp", 851, 349, 28705, 243, 162, 169, 156, 28723, 5222);
    assert_string_equal(weir_tokenizer_kind(t), "spm");
    assert_true(weir_tokenizer_adds_bos(t));
    assert_int_equal(weir_tokenizer_bos(t), 1);
    weir_tokenizer_free(t);
}

/* Bytes that are not UTF-8 come back as they were. */
static void test_any_bytes(void **state)
{
    (void)state;
    weir_tokenizer *t = tk_open("lib/brook/tokenizer.json");
    weir_tokens k = {0};
    uint64_t dice = 88172645463325252u;
    for (int round = 0; round < 500; round++) {
        char text[80];
        size_t n = (size_t)round % sizeof text;
        for (size_t i = 0; i < n; i++) {
            dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
            text[i] = (char)(dice >> 40);
        }
        tk_encode(t, text, n, &k);
        assert_true(tk_tiles(&k, n) && !k.lost_bytes);
        assert_true(survives(t, &k, text, n));
    }
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
}

/* The whole text of a token list is its tokens' bytes. */
static void test_bytes_and_pieces(void **state)
{
    (void)state;
    weir_tokenizer *t = tk_open("tests/data/tokenizers/gpt2");
    assert_int_equal(weir_tokenizer_size(t), 50257);
    assert_int_equal(weir_tokenizer_bos(t), 50256);
    assert_int_equal(weir_tokenizer_eos(t), 50256);
    assert_false(weir_tokenizer_adds_bos(t));
    assert_string_equal(weir_tokenizer_kind(t), "bpe");
    assert_string_equal(weir_tokenizer_pattern(t), "gpt2");
    assert_int_equal(strlen(weir_tokenizer_fingerprint(t)), 64);
    assert_true(weir_str_eq(weir_tokenizer_bytes(t, 262), " the"));
    assert_true(weir_str_eq(weir_tokenizer_piece(t, 262), "\u0120the"));
    assert_int_equal(weir_tokenizer_find(t, tk_str("\u0120the")), 262);
    assert_int_equal(weir_tokenizer_find(t, tk_str(" the")), -1);
    assert_true(weir_tokenizer_is_special(t, 50256) && !weir_tokenizer_is_special(t, 262));
    assert_int_equal(weir_tokenizer_bytes(t, 50257).n, 0);
    assert_int_equal(weir_tokenizer_bytes(t, -1).n, 0);
    int32_t ids[] = {50256, 262, 70000};
    size_t len;
    char buf[4];
    weir_err err = {0};
    assert_int_equal(weir_tokenizer_decode(t, ids, 2, true, buf, sizeof buf, &len, &err), WEIR_OK);
    assert_true(len == 17 && memcmp(buf, "<|en", 4) == 0);
    assert_int_equal(weir_tokenizer_decode(t, ids, 2, false, buf, sizeof buf, &len, &err), WEIR_OK);
    assert_true(len == 4 && memcmp(buf, " the", 4) == 0);
    assert_int_equal(weir_tokenizer_decode(t, ids, 3, true, buf, sizeof buf, &len, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "70000"));
    weir_tokenizer_free(t);
    weir_tokenizer_free(NULL);
}

/* A megabyte of one letter is one piece; quadratic merging would take minutes. */
static void test_long_piece(void **state)
{
    (void)state;
    weir_tokenizer *t = tk_open("tests/data/tokenizers/gpt2");
    size_t n = 1000000;
    char *text = malloc(n);
    memset(text, 'a', n);
    weir_tokens k = {0};
    tk_encode(t, text, n, &k);
    assert_true(tk_tiles(&k, n) && survives(t, &k, text, n));
    assert_int_equal(k.id[0], 24794);
    memset(text, '0', n);
    tk_encode(t, text, n, &k);
    assert_true(tk_tiles(&k, n) && survives(t, &k, text, n));
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
    free(text);
}

/* Every short token of the vocabulary: the quick answer to "is it whole?" is what merging gives. */
static void check_whole(const char *path)
{
    weir_tokenizer *t = tk_open(path);
    weir_tok_tree *tree;
    weir_tok_symbols s = {0};
    int32_t whole_tokens = 0;
    assert_int_equal(weir_tok_tree_new(&tree, t), WEIR_OK);
    for (int32_t id = 0; id < t->vocab.n; id++) {
        weir_str piece = t->vocab.piece[id];
        uint8_t bytes[WEIR_TOK_WORD_MAX * 2 + 1];
        int64_t n = piece.n <= WEIR_TOK_WORD_MAX ? (int64_t)piece.n : -1;
        if (n > 0 && t->kind == WEIR_TOK_BYTES)
            n = weir_tok_spelled(piece, bytes);
        else if (n > 0)
            memcpy(bytes, piece.p, piece.n);
        if (n <= 0 || !(t->vocab.flags[id] & WEIR_ID_MODEL) || t->ignore_merges)
            continue;
        weir_tok_view v = {bytes, NULL, (size_t)n, 0};
        weir_tok_loss loss = {0};
        bool whole;
        assert_int_equal(weir_tok_bpe(t, &v, 0, (size_t)n, &s, &loss), WEIR_OK);
        assert_int_equal(weir_tok_is_whole(tree, id, (weir_str){(char *)bytes, (size_t)n}, &whole), WEIR_OK);
        if (whole != (s.n == 1 && s.id[0] == id && !loss.bytes))
            fail_msg("%s: token %d \"%.*s\"", path, id, (int)piece.n, piece.p);
        whole_tokens += whole;
    }
    assert_true(t->ignore_merges || (whole_tokens > 5 && whole_tokens < t->vocab.n));
    weir_tok_symbols_free(&s);
    weir_tok_tree_free(tree);
    weir_tokenizer_free(t);
}

static void test_whole_tokens(void **state)
{
    (void)state;
    check_whole("tests/data/tokenizers/gpt2");
    check_whole("lib/brook/tokenizer.json");
    for (int i = 0; i < 24; i++) {
        char path[128];
        snprintf(path, sizeof path, "tests/data/tokenizers/tiny/%02d.json", i);
        check_whole(path);
    }
}

/* The comparisons above must be able to fail. */
static void test_comparisons_fail(void **state)
{
    (void)state;
    weir_tokenizer *t = tk_open("lib/brook/tokenizer.json");
    weir_tokens k = {0};
    tk_encode(t, "the old mill", 12, &k);
    assert_true(k.n > 1 && tk_tiles(&k, 12) && tk_same_ids(&k, k.id, k.n));
    int32_t id = k.id[0], other[] = {id + 1, -1};
    assert_false(tk_same_ids(&k, k.id, k.n - 1));
    assert_false(tk_same_ids(&k, other, 1));
    assert_false(tk_gives(t, "the old mill", other));
    assert_false(tk_tiles(&k, 13));
    assert_false(survives(t, &k, "the old mall", 12));
    k.byte_off[1]++;
    assert_false(tk_tiles(&k, 12));
    k.byte_off[1]--;
    k.flags[0] |= WEIR_TOKEN_LOST;
    assert_false(tk_tiles(&k, 12));
    tk_line l = {.decoded = (char *)(uintptr_t) "the old mall", .n_decoded = 12, .id = k.id, .n = k.n};
    assert_false(decodes_as(t, &l));
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brook),
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_mistral),
        cmocka_unit_test(test_qwen3),
        cmocka_unit_test(test_smollm2),
        cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_gpt2_golden),
        cmocka_unit_test(test_others_golden),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_bytes_and_pieces),
        cmocka_unit_test(test_long_piece),
        cmocka_unit_test(test_whole_tokens),
        cmocka_unit_test(test_comparisons_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Unicode tables, NFC with origins, the splitters, and merging. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pretok.h"
#include "tokenizer/unicode.h"

static int count(uint8_t class)
{
    int n = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++)
        n += (weir_cp_class(cp) & class) != 0;
    return n;
}

/* The numbers of Unicode 16.0 (Digits: 17.0, 13 more). */
static void test_class_counts(void **state)
{
    (void)state;
    assert_int_equal(count(WEIR_CP_LETTER), 141028);
    assert_int_equal(count(WEIR_CP_NUMBER), 1911);
    assert_int_equal(count(WEIR_CP_SPACE), 25);
    assert_int_equal(count(WEIR_CP_DIGITS), 1911 + 13);
    assert_int_equal(count(WEIR_CP_WORD), 144667);
    assert_int_equal(weir_cp_class(WEIR_CP_INVALID), 0);
    assert_int_equal(weir_cp_class(0x180e) & WEIR_CP_SPACE, 0);
    assert_int_equal(weir_cp_class(0x200b) & WEIR_CP_SPACE, 0);
    assert_true(weir_cp_class(0x85) & WEIR_CP_SPACE && weir_cp_class(0x3000) & WEIR_CP_SPACE);
    assert_true(weir_cp_class(0x10d4e) & WEIR_CP_LETTER); /* Garay, new in 16.0 */
    for (uint32_t cp = 0; cp < 128; cp++)
        assert_int_equal(weir_cp_ascii[cp], weir_cp_class(cp));
}

static void test_decoding(void **state)
{
    (void)state;
    const uint8_t bad[] = {0xed, 0xa0, 0x80, 0xc0, 0x80, 0xf5, 0xe3, 0x81};
    int len;
    for (size_t i = 0; i < sizeof bad; i++) {
        assert_int_equal(weir_cp_at(bad + i, sizeof bad - i, &len), WEIR_CP_INVALID);
        assert_int_equal(len, 1);
        assert_int_equal(weir_cp_before(bad, i + 1), i);
    }
    for (uint32_t cp = 0; cp < 0x110000; cp += cp < 0x900 ? 1 : 97) {
        char p[8] = "a";
        if (cp >= 0xd800 && cp < 0xe000)
            continue;
        int n = weir_utf8_put(p + 1, cp);
        assert_int_equal(weir_cp_at((uint8_t *)p + 1, 7, &len), cp);
        assert_int_equal(len, n);
        assert_int_equal(weir_cp_before((uint8_t *)p, (size_t)n + 1), 1);
    }
}

/* --- NFC */

static bool nfc_is(const char *in, const char *want, const uint32_t *origin)
{
    weir_tok_text t = {0};
    weir_tok_view v = {(const uint8_t *)in, NULL, strlen(in), 0}, out;
    bool ok = weir_tok_nfc(&v, &t) == WEIR_OK && weir_tok_text_end(&t, &v, &out) == WEIR_OK;
    ok = ok && out.n == strlen(want) && memcmp(out.p, want, out.n) == 0 && out.org[out.n] == v.n;
    for (size_t i = 0; ok && origin && i <= out.n; i++)
        ok = out.org[i] == origin[i];
    for (size_t i = 0; ok && i < out.n; i++)
        ok = out.org[i] <= out.org[i + 1];
    weir_tok_text_free(&t);
    return ok;
}

static void test_nfc(void **state)
{
    (void)state;
    assert_true(nfc_is("plain", "plain", (const uint32_t[]){0, 1, 2, 3, 4, 5}));
    assert_true(nfc_is("xe\u0301y", "x\u00e9y", (const uint32_t[]){0, 1, 4, 4, 5}));
    assert_true(nfc_is("\u00e9", "\u00e9", (const uint32_t[]){0, 1, 2}));
    assert_true(nfc_is("\u212b", "\u00c5", (const uint32_t[]){0, 3, 3}));
    assert_true(nfc_is("\u0344\u0711", "\u0711\u0308\u0301", (const uint32_t[]){0, 0, 0, 0, 0, 4, 4})); /* moved */
    assert_true(nfc_is("\u0344", "\u0308\u0301", NULL));        /* excluded from composition */
    assert_true(nfc_is("\u0958", "\u0915\u093c", NULL));        /* the same */
    assert_true(nfc_is("a\u0301\u0323", "\u1ea1\u0301", NULL)); /* reordered, then joined */
    assert_true(nfc_is("a\u0301\u0301", "\u00e1\u0301", NULL)); /* the second is blocked */
    assert_true(nfc_is("a\u05ae\u0301", "\u00e1\u05ae", NULL)); /* joined across a mark of another class */
    assert_true(nfc_is("\u1100\u1161\u11a8", "\uac01", NULL));
    assert_true(nfc_is("\uac00\u11a8", "\uac01", NULL));
    assert_true(nfc_is("\uac01\u11a8", "\uac01\u11a8", NULL));
    assert_true(nfc_is("e\xff\u0301", "e\xff\u0301", NULL)); /* a stray byte is left and separates */
    assert_true(nfc_is("\u1e9b\u0323", "\u1e9b\u0323", NULL));
    assert_false(nfc_is("e\u0301", "e\u0301", NULL)); /* the comparison can fail */
    assert_false(nfc_is("xe\u0301", "x\u00e9", (const uint32_t[]){0, 1, 2, 4}));
    assert_true(weir_tok_is_nfc((const uint8_t *)"\u00e9\uac01", 5) && !weir_tok_is_nfc((const uint8_t *)"e\u0301", 3));
}

static void test_nfc_hangul(void **state)
{
    (void)state;
    for (uint32_t cp = 0xac00; cp < 0xd7a4; cp++) {
        uint32_t part[4];
        int n = weir_cp_decompose(cp, part);
        uint32_t back = weir_cp_compose(part[0], part[1]);
        if (n == 3)
            back = weir_cp_compose(back, part[2]);
        assert_int_equal(back, cp);
    }
}

/* A long run of marks in falling order sorts in linear time and keeps equals in order. */
static void test_nfc_many_marks(void **state)
{
    (void)state;
    enum { PAIRS = 200000 };
    weir_tok_text t = {0};
    char *text = malloc(PAIRS * 4 + 1);
    text[0] = 'q';
    for (int i = 0; i < PAIRS; i++)
        memcpy(text + 1 + 4 * i, "\u0301\u0323", 4); /* class 230, class 220 */
    weir_tok_view v = {(uint8_t *)text, NULL, PAIRS * 4 + 1, 0};
    assert_int_equal(weir_tok_nfc(&v, &t), WEIR_OK);
    assert_int_equal(t.n, PAIRS * 4 + 1);
    assert_memory_equal(t.p + 1, "\u0323\u0323", 4);
    assert_memory_equal(t.p + t.n - 4, "\u0301\u0301", 4);
    weir_tok_text_free(&t);
    free(text);
}

/* --- splitters */

static bool cuts(weir_tok_splitter *split, const char *text, const char *want)
{
    char got[512];
    size_t n = strlen(text), at = 0;
    for (size_t i = 0; i < n;) {
        size_t k = split((const uint8_t *)text + i, n - i);
        if (!k || k > n - i)
            return false;
        if (i)
            got[at++] = '|';
        memcpy(got + at, text + i, k);
        at += k;
        i += k;
    }
    return at == strlen(want) && memcmp(got, want, at) == 0;
}

static void test_split_gpt2(void **state)
{
    (void)state;
    assert_true(cuts(weir_split_gpt2, "Hello world", "Hello| world"));
    assert_true(cuts(weir_split_gpt2, "it's 'S we'll", "it|'s| '|S| we|'ll"));
    assert_true(cuts(weir_split_gpt2, "  \n  x", "  \n | x"));
    assert_true(cuts(weir_split_gpt2, "a  ", "a|  "));
    assert_true(cuts(weir_split_gpt2, "a\tb \n", "a|\t|b| \n"));
    assert_true(cuts(weir_split_gpt2, "x1234!? y", "x|1234|!?| y"));
    assert_true(cuts(weir_split_gpt2, " \u00bd\u0663 \u3000a", " \u00bd\u0663| |\u3000|a"));
    assert_true(cuts(weir_split_gpt2, "''s", "''|s"));
    assert_false(cuts(weir_split_gpt2, "Hello world", "Hello |world"));
}

static void test_split_llama3_and_qwen2(void **state)
{
    (void)state;
    assert_true(cuts(weir_split_llama3, "1234567 x", "123|456|7| x"));
    assert_true(cuts(weir_split_qwen2, "123 x", "1|2|3| x"));
    assert_true(cuts(weir_split_llama3, "DON'T \u017f'\u017fa", "DON|'T| \u017f|'\u017f|a"));
    assert_true(cuts(weir_split_llama3, "a\n\n b\r\n", "a|\n\n| b|\r\n"));
    assert_true(cuts(weir_split_llama3, "\t\tx  y", "\t|\tx| | y"));
    assert_true(cuts(weir_split_llama3, "!!\n\nx !(y", "!!\n\n|x| !(|y"));
    assert_true(cuts(weir_split_llama3, " \n \n  a", " \n \n| | a"));
    assert_true(cuts(weir_split_llama3, "(word)", "(word|)"));
    assert_true(cuts(weir_split_llama3, "x ", "x| "));
    assert_true(cuts(weir_split_llama3, "a \xff b", "a| \xff| b"));
}

static void test_split_rest(void **state)
{
    (void)state;
    assert_true(cuts(weir_split_each_digit, "a12b", "a|1|2|b"));
    assert_true(cuts(weir_split_digit_runs, "a12b\u00bd3", "a|12|b|\u00bd3"));
    assert_true(cuts(weir_split_at_meta, "\u2581a\u2581\u2581b", "\u2581a|\u2581|\u2581b"));
    assert_true(cuts(weir_split_before_meta, "\u2581a\u2581\u2581b", "\u2581a|\u2581\u2581b"));
    assert_null(weir_tok_pattern_of_regex((weir_str){"\\w+", 3}));
}

/* --- merging */

static void naive(const weir_tok_merges *m, int32_t *id, size_t *n)
{
    for (;;) {
        uint32_t best = UINT32_MAX;
        size_t at = 0;
        int32_t made = -1;
        for (size_t i = 0; i + 1 < *n; i++)
            for (size_t k = 0; k < m->cap; k++)
                if (m->slot[k].made >= 0 && m->slot[k].left == id[i] && m->slot[k].right == id[i + 1] &&
                    m->slot[k].rank < best)
                    best = m->slot[k].rank, at = i, made = m->slot[k].made;
        if (made < 0)
            return;
        id[at] = made;
        memmove(id + at + 1, id + at + 2, (*n - at - 2) * sizeof *id);
        (*n)--;
    }
}

/* Short and long pieces merge as the definition says. */
static void test_merging(void **state)
{
    (void)state;
    weir_tok_symbols s = {0};
    uint32_t dice = 12345;
    for (int round = 0; round < 300; round++) {
        weir_tok_merges m = {0};
        int32_t next = 4, id[200];
        assert_int_equal(weir_tok_merges_reserve(&m, 12), WEIR_OK);
        for (uint32_t rank = 0; rank < 12; rank++, next++) {
            dice = dice * 1664525u + 1013904223u;
            weir_tok_merges_set(&m, (int32_t)(dice >> 8) % next, (int32_t)(dice >> 20) % next, next, rank);
        }
        size_t n = 1 + (size_t)(round * 7 % 190), got;
        assert_int_equal(weir_tok_symbols_reserve(&s, n), WEIR_OK);
        s.n = 0;
        for (size_t i = 0; i < n; i++) {
            dice = dice * 1664525u + 1013904223u;
            id[i] = (int32_t)(dice >> 30);
            weir_tok_symbols_add(&s, id[i], i, false);
        }
        naive(&m, id, &n);
        assert_int_equal(weir_tok_merge_all(&m, &s), WEIR_OK);
        got = s.n;
        assert_int_equal(got, n);
        assert_memory_equal(s.id, id, n * sizeof *id);
        for (size_t i = 1; i < got; i++)
            assert_true(s.at[i] > s.at[i - 1]);
        weir_tok_merges_free(&m);
    }
    weir_tok_symbols_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_class_counts),
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_nfc),
        cmocka_unit_test(test_nfc_hangul),
        cmocka_unit_test(test_nfc_many_marks),
        cmocka_unit_test(test_split_gpt2),
        cmocka_unit_test(test_split_llama3_and_qwen2),
        cmocka_unit_test(test_split_rest),
        cmocka_unit_test(test_merging),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Opening tokenizers: the files beside them, added tokens and their ids, GGUF metadata, and what is refused. */
#include "tokenizer_kit.h"

#include "support/bytes.h"
#include "support/said.h"
#include "support/scratch.h"

/* --- what the library remarks */
static char remarks[4096];

static void remark(void *user, weir_log_level level, const char *msg)
{
    (void)user;
    size_t n = strlen(remarks);
    snprintf(remarks + n, sizeof remarks - n, "%s%s\n", level == WEIR_LOG_WARN ? "warn: " : "", msg);
}

static weir_tokenizer *open_logged(const char *path)
{
    const weir_log log = {remark, NULL};
    weir_tokenizer *t = NULL;
    weir_err err = {0};
    remarks[0] = '\0';
    if (weir_tokenizer_open(&t, path, &log, &err))
        fail_msg("%s: %s", path, err.msg);
    return t;
}

static void refused(const char *path, weir_status code, const char *words)
{
    weir_tokenizer *t;
    weir_err err = {0};
    assert_int_equal(weir_tokenizer_open(&t, path, NULL, &err), code);
    assert_null(t);
    assert_true(said(&err, code, words));
    assert_true(said(&err, code, path));
    assert_int_equal(weir_tokenizer_open(&t, path, NULL, NULL), code);
}

/* --- tokenizer.json */

/* A tokenizer.json whose parts are given; NULL takes the default. */
static const char *json(const char *added, const char *normalizer, const char *pre, const char *model)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "{\"version\":\"1.0\",\"added_tokens\":[%s],\"normalizer\":%s,\"pre_tokenizer\":%s,\"decoder\":null,"
             "\"model\":{%s}}",
             added ? added : "", normalizer ? normalizer : "null", pre ? pre : "null",
             model ? model : "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"c\":3},\"merges\":[\"a b\"]");
    return scratch_text("tokenizer.json", text);
}

static void test_added_ids(void **state)
{
    (void)state;
    weir_tokenizer *t =
        open_logged(json("{\"id\":100,\"content\":\"<A>\",\"special\":true},{\"id\":2,\"content\":\"ab\"},"
                         "{\"id\":5,\"content\":\"<B>\"}",
                         NULL, NULL, NULL));
    assert_non_null(strstr(remarks, "warn: added token \"<A>\" has id 4, not 100"));
    assert_null(strstr(remarks, "<B>"));
    TK_GIVES(t, "c<A>ab<B>", 3, 4, 2, 5);
    assert_int_equal(weir_tokenizer_size(t), 6);
    assert_true(weir_tokenizer_is_special(t, 4) && !weir_tokenizer_is_special(t, 5));
    weir_tokenizer_free(t);
}

static void test_both_merge_forms(void **state)
{
    (void)state;
    const char *pairs = "\"type\":\"BPE\",\"merges\":[[\"a\",\" b\"],[\"a b\",\"c\"]],"
                        "\"vocab\":{\"a\":0,\" b\":1,\"a b\":2,\"c\":3,\" \":4,\"b\":5,\"a bc\":6}";
    weir_tokenizer *t = tk_open(json(NULL, NULL, NULL, pairs));
    TK_GIVES(t, "a bc", 0, 4, 5, 3); /* no merge makes " b" */
    weir_tokenizer_free(t);
    t = tk_open(json(NULL, NULL, NULL, NULL));
    TK_GIVES(t, "abca", 2, 3, 0);
    weir_tokenizer_free(t);
}

/* A byte that has no token is lost, flagged and counted: with the token before it, or the first behind it. */
static void test_lost_bytes(void **state)
{
    (void)state;
    weir_tokenizer *t = tk_open(json(NULL, NULL, NULL, NULL));
    weir_tokens k = {0};
    tk_encode(t,
              "xa\xc3\xa9"
              "b",
              5, &k);
    assert_int_equal(k.n, 1); /* what is lost no longer stands between a and b */
    assert_int_equal(k.id[0], 2);
    assert_int_equal(k.lost_bytes, 3);
    assert_true(k.flags[0] == WEIR_TOKEN_LOST && tk_tiles(&k, 5));
    tk_encode(t, "c?", 2, &k);
    assert_true(k.n == 1 && k.lost_bytes == 1 && k.flags[0] == WEIR_TOKEN_LOST && k.byte_len[0] == 2);
    tk_encode(t, "??", 2, &k);
    assert_true(k.n == 0 && k.lost_bytes == 2);
    tk_encode(t, "", 0, &k);
    assert_true(k.n == 0 && k.lost_bytes == 0);
    weir_tokenizer_free(t);
    t = tk_open(
        json(NULL, NULL, NULL,
             "\"type\":\"BPE\",\"unk_token\":\"?\",\"fuse_unk\":true,\"vocab\":{\"a\":0,\"?\":1},\"merges\":[]"));
    tk_encode(t, "axya", 4, &k);
    assert_true(k.n == 3 && k.id[1] == 1 && k.flags[1] == WEIR_TOKEN_LOST && k.lost_bytes == 2 && tk_tiles(&k, 4));
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
}

/* White space that an added token swallows is in its range, but no token holds it. */
static void test_strip(void **state)
{
    (void)state;
    weir_tokenizer *t =
        tk_open(json("{\"id\":4,\"content\":\"<A>\",\"lstrip\":true,\"rstrip\":true}", NULL, NULL, NULL));
    weir_tokens k = {0};
    tk_encode(t, "a \n<A>  b", 9, &k);
    assert_true(k.n == 3 && k.id[1] == 4 && k.byte_off[1] == 1 && k.byte_len[1] == 7 && k.lost_bytes == 4);
    assert_true(k.flags[1] == WEIR_TOKEN_LOST && tk_tiles(&k, 9));
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
}

static void test_offsets_under_nfc(void **state)
{
    (void)state;
    weir_tokenizer *t = tk_open(
        json(NULL, "{\"type\":\"NFC\"}", NULL, "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\\u00e9\":1},\"merges\":[]"));
    weir_tokens k = {0};
    tk_encode(t, "ae\u0301a", 5, &k);
    assert_true(k.n == 3 && k.id[1] == 1 && k.byte_off[1] == 1 && k.byte_len[1] == 3 && k.byte_off[2] == 4 &&
                !k.lost_bytes);
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
}

#define SPLIT(regex, behavior)                                                                                         \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"" behavior "\",\"invert\":false}"

static void test_refused_json(void **state)
{
    (void)state;
    refused(json(NULL, "{\"type\":\"Lowercase\"}", NULL, NULL), WEIR_E_UNSUPPORTED, "normalizer \"Lowercase\"");
    refused(json(NULL, "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"NFKC\"}]}", NULL, NULL),
            WEIR_E_UNSUPPORTED, "normalizer \"NFKC\"");
    refused(json(NULL, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},\"content\":\"b\"}", NULL, NULL),
            WEIR_E_UNSUPPORTED, "Replace");
    refused(json(NULL, NULL, "{\"type\":\"Whitespace\"}", NULL), WEIR_E_UNSUPPORTED, "pre_tokenizer \"Whitespace\"");
    refused(json(NULL, NULL, SPLIT("\\\\w+", "Isolated"), NULL), WEIR_E_UNSUPPORTED,
            "this pattern is not supported: \\w+");
    refused(json(NULL, NULL, NULL, "\"type\":\"Unigram\",\"vocab\":[]"), WEIR_E_UNSUPPORTED, "\"Unigram\"");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b\"]"), WEIR_E_FORMAT,
            "merge 0 needs the token \"ab\"");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a  b\"]"), WEIR_E_FORMAT,
            "one space");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]"), WEIR_E_FORMAT,
            "two tokens");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]"), WEIR_E_FORMAT, "");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"vocab\":{\"a\":900000000},\"merges\":[]"), WEIR_E_FORMAT,
            "id 900000000");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]"), WEIR_E_FORMAT, "id -1");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"vocab\":{},\"merges\":[]"), WEIR_E_FORMAT, "empty");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"vocab\":{\"a\":0}"), WEIR_E_FORMAT, "no \"merges\"");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"dropout\":0.5,\"vocab\":{\"a\":0},\"merges\":[]"),
            WEIR_E_UNSUPPORTED, "dropout");
    refused(
        json(NULL, NULL, NULL, "\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0},\"merges\":[]"),
        WEIR_E_UNSUPPORTED, "end_of_word_suffix");
    refused(json(NULL, NULL, NULL, "\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"a\":0},\"merges\":[]"),
            WEIR_E_FORMAT, "unk_token");
    refused(scratch_text("tokenizer.json", "{\"version\":\"2.0\"}"), WEIR_E_UNSUPPORTED, "version");
    refused(scratch_text("tokenizer.json", "{\"version\":\"1.0\"}"), WEIR_E_FORMAT, "no \"model\"");
    refused(scratch_text("tokenizer.json", "{"), WEIR_E_FORMAT, "");
    refused(scratch_text("tokenizer.json", ""), WEIR_E_FORMAT, "");
    refused(scratch("absent.json"), WEIR_E_IO, "");
    refused(scratch_dir("empty"), WEIR_E_IO, "no tokenizer here");
}

/* Such a merge would make a token of itself. */
static void test_empty_side(void **state)
{
    (void)state;
    static const char *const merges[] = {"\" a\"", "\"a \"", "[\"\",\"a\"]", "[\"a\",\"\"]", "\" \""};
    char model[256];
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        snprintf(model, sizeof model, "\"type\":\"BPE\",\"vocab\":{\"\":0,\"a\":1,\"b\":2},\"merges\":[%s]", merges[i]);
        refused(json(NULL, NULL, NULL, model), WEIR_E_FORMAT, "merge 0 has an empty side");
    }
    scratch_dir("side");
    scratch_text("side/vocab.json", "{\"\":0,\"a\":1}");
    scratch_text("side/merges.txt", "#version: 0.2\n a\n");
    refused(scratch("side"), WEIR_E_FORMAT, "merge 0 has an empty side");
}

/* --- what grows: a test that takes longer than this is ended, and has failed */
enum { PATIENCE = 20 };

static const char *with_added(const char *added, size_t n, const char *normalizer)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    fprintf(f, "{\"normalizer\":%s,\"model\":{\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":[",
            normalizer);
    fwrite(added, 1, n, f);
    fprintf(f, "]}");
    fclose(f);
    const char *path = scratch_write("tokenizer.json", text, len);
    free(text);
    return path;
}

static void test_many_added(void **state)
{
    (void)state;
    char *added = NULL;
    size_t len;
    FILE *f = open_memstream(&added, &len);
    for (int i = 0; i < 300000; i++)
        fprintf(f, "%s{\"content\":\"<%d>\"}", i ? "," : "", i);
    fclose(f);
    alarm(PATIENCE);
    weir_tokenizer *t = tk_open(with_added(added, len, "null"));
    alarm(0);
    TK_GIVES(t, "a<0><299999>", 0, 2, 300001);
    weir_tokenizer_free(t);
    free(added);
}

/* White space that is a token, and swallows the white space behind it. */
static void test_run_of_strips(void **state)
{
    (void)state;
    const char *added =
        "{\"content\":\" \",\"rstrip\":true},{\"content\":\"\\n\"},{\"content\":\"\\t\",\"rstrip\":true}";
    weir_tokenizer *t = tk_open(with_added(added, strlen(added), "null"));
    TK_GIVES(t, " \n\xc2\x85\ta", 2, 3, 4, 0);
    size_t n = 1000000;
    char *text = malloc(n);
    weir_tokens k = {0};
    alarm(PATIENCE);
    for (int odd = 0; odd < 2; odd++) {
        for (size_t i = 0; i < n; i++)
            text[i] = odd && i % 2 ? '\n' : ' ';
        tk_encode(t, text, n, &k);
        assert_true(k.n == (int64_t)n && k.id[0] == 2 && k.id[n - 1] == (odd ? 3 : 2) && tk_tiles(&k, n));
    }
    alarm(0);
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
    free(text);
}

static void test_long_added(void **state)
{
    (void)state;
    enum { MOST = 4096 };
    char added[MOST + 64];
    int n = snprintf(added, sizeof added, "{\"content\":\"%0*d\"}", MOST, 0);
    weir_tokenizer *t = tk_open(with_added(added, (size_t)n, "null"));
    assert_int_equal(weir_tokenizer_size(t), 3);
    weir_tokenizer_free(t);
    n = snprintf(added, sizeof added, "{\"content\":\"%0*d\"}", MOST + 1, 0);
    refused(with_added(added, (size_t)n, "null"), WEIR_E_UNSUPPORTED, "has 4097 bytes: the limit is 4096");
    n = snprintf(added, sizeof added, "{\"content\":\"%0*d\",\"normalized\":true}", MOST, 0);
    refused(with_added(added, (size_t)n, "{\"type\":\"Prepend\",\"prepend\":\"_\"}"), WEIR_E_UNSUPPORTED,
            "normalised, has 4097 bytes: the limit is 4096");
}

/* Among tokens that begin alike the longest counts. */
static void test_alike_added(void **state)
{
    (void)state;
    const char *added = "{\"content\":\"<<<\"},{\"content\":\"<<<x>\"},{\"content\":\"<<<xy\"},{\"content\":\"<<<z\"}";
    weir_tokenizer *t = tk_open(with_added(added, strlen(added), "null"));
    TK_GIVES(t, "<<<<<<x<<<x><<<xya<<<z<<", 2, 2, 3, 4, 0, 5);
    weir_tokenizer_free(t);
}

#define REPLACE_BY_16 "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaaaaaaaaaaaaaaa\"}"

static void test_growing_steps(void **state)
{
    (void)state;
    weir_tokenizer *t = tk_open(
        json(NULL, "{\"type\":\"Sequence\",\"normalizers\":[" REPLACE_BY_16 "," REPLACE_BY_16 "]}", NULL, NULL));
    weir_tokens k = {0};
    tk_encode(t, "a", 1, &k);
    assert_int_equal(k.n, 256);
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
    refused(json(NULL,
                 "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}," REPLACE_BY_16 "," REPLACE_BY_16 "]}",
                 NULL, NULL),
            WEIR_E_UNSUPPORTED, "more than 256 times as long");
}

static void test_nested_steps(void **state)
{
    (void)state;
    char text[1024];
    for (int depth = 8; depth <= 9; depth++) {
        size_t n = 0;
        for (int i = 0; i < depth; i++)
            n += (size_t)sprintf(text + n, "{\"type\":\"Sequence\",\"normalizers\":[");
        n += (size_t)sprintf(text + n, "{\"type\":\"NFC\"}");
        for (int i = 0; i < depth; i++)
            n += (size_t)sprintf(text + n, "]}");
        if (depth == 8)
            weir_tokenizer_free(tk_open(json(NULL, text, NULL, NULL)));
        else
            refused(json(NULL, text, NULL, NULL), WEIR_E_UNSUPPORTED, "within too many others");
    }
}

/* --- the files beside a tokenizer */

static void write_pair(const char *dir)
{
    char name[64];
    scratch_dir(dir);
    snprintf(name, sizeof name, "%s/vocab.json", dir);
    scratch_text(name, "{\"a\":0,\"b\":1,\"ab\":2,\"#\":3,\"##\":4,\"<|endoftext|>\":5,\"\\u0120\":6,\"\\u0120a\":7}");
    snprintf(name, sizeof name, "%s/merges.txt", dir);
    scratch_text(name, "#version: 0.2\na b\r\n# #\n\u0120 a\n");
}

static void test_pair(void **state)
{
    (void)state;
    write_pair("pair");
    weir_tokenizer *t = open_logged(scratch("pair"));
    TK_GIVES(t, "ab##<|endoftext|>a", 2, 4, 5, 0); /* a merge may begin with '#' */
    assert_int_equal(weir_tokenizer_bos(t), 5);
    assert_false(weir_tokenizer_adds_bos(t));
    weir_tokenizer_free(t);

    scratch_text(
        "pair/tokenizer_config.json",
        "{\"add_prefix_space\":true,\"add_bos_token\":true,\"bos_token\":{\"content\":\"<s>\",\"lstrip\":false},"
        "\"added_tokens_decoder\":{\"5\":{\"content\":\"<|endoftext|>\",\"special\":true}}}");
    scratch_text("pair/special_tokens_map.json",
                 "{\"eos_token\":\"<|endoftext|>\",\"additional_special_tokens\":[\"<x>\"]}");
    scratch_text("pair/added_tokens.json", "{\"<s>\":8,\"<y>\":10}");
    t = open_logged(scratch("pair/merges.txt"));
    assert_int_equal(weir_tokenizer_bos(t), weir_tokenizer_find(t, tk_str("<s>")));
    assert_int_equal(weir_tokenizer_eos(t), 5);
    assert_true(weir_tokenizer_adds_bos(t));
    TK_GIVES(t, "a<s>a<x><y>", 7, 8, 7, 9, 10);
    assert_true(weir_tokenizer_is_special(t, 9) && !weir_tokenizer_is_special(t, 10));
    weir_tokenizer_free(t);

    /* An object is read with all its settings; a token with a part to play is special whatever it says. */
    scratch_text("pair/special_tokens_map.json",
                 "{\"pad_token\":{\"content\":\"<p>\",\"special\":false,\"rstrip\":true,\"single_word\":false}}");
    t = open_logged(scratch("pair"));
    TK_GIVES(t, "<p>  <s>", 9, 8);
    assert_true(weir_tokenizer_is_special(t, 9));
    weir_tokenizer_free(t);
}

#define TEMPLATE                                                                                                       \
    "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},{\"type\":"                    \
    "\"TemplateProcessing\","                                                                                          \
    "\"single\":[{\"SpecialToken\":{\"id\":\"c\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}]}]}"

static void test_bos_policy(void **state)
{
    (void)state;
    const char *model = "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2},\"merges\":[]}";
    char text[1024];
    scratch_dir("bos");
    snprintf(text, sizeof text, "{" TEMPLATE ",%s}", model);
    scratch_text("bos/tokenizer.json", text);
    weir_tokenizer *t = open_logged(scratch("bos")); /* the template says yes */
    assert_true(weir_tokenizer_adds_bos(t) && weir_tokenizer_bos(t) == 2);
    weir_tokenizer_free(t);

    scratch_text("bos/tokenizer_config.json", "{\"add_bos_token\":false,\"eos_token\":null}");
    scratch_text("bos/generation_config.json", "{\"bos_token_id\":1,\"eos_token_id\":[0,1]}");
    scratch_text("bos/config.json", "{\"bos_token_id\":0,\"eos_token_id\":1}");
    t = open_logged(scratch("bos"));
    assert_false(weir_tokenizer_adds_bos(t));
    assert_int_equal(weir_tokenizer_bos(t), 1);
    assert_int_equal(weir_tokenizer_eos(t), 0);
    weir_tokenizer_free(t);

    snprintf(text, sizeof text, "{%s}", model);
    scratch_text("bos/tokenizer.json", text);
    scratch_text("bos/tokenizer_config.json", "{\"add_bos_token\":true,\"bos_token\":\"b\"}");
    t = open_logged(scratch("bos/tokenizer.json"));
    assert_true(weir_tokenizer_adds_bos(t) && weir_tokenizer_bos(t) == 1);
    weir_tokenizer_free(t);

    scratch_text("bos/tokenizer_config.json", "{\"add_bos_token\":true}");
    scratch_text("bos/generation_config.json", "{}");
    scratch_text("bos/config.json", "{\"bos_token_id\":null}");
    t = open_logged(scratch("bos"));
    assert_false(weir_tokenizer_adds_bos(t));
    assert_non_null(strstr(remarks, "no BOS token is known"));
    weir_tokenizer_free(t);
    scratch_text("bos/tokenizer_config.json", "{\"add_bos_token\":");
    refused(scratch("bos"), WEIR_E_FORMAT, "tokenizer_config.json");
}

/* --- GGUF */

enum { GGUF_I32 = 5, GGUF_F32 = 6, GGUF_BOOL = 7, GGUF_STRING = 8, GGUF_ARRAY = 9 };

typedef struct gguf_spec {
    const char *model, *pre;
    const char *tokens[24];
    int types[24];
    float scores[24];
    const char *merges[8];
    int add_prefix; /* -1: not said */
    int type_elem;  /* element type of token_type, GGUF_I32 by default */
} gguf_spec;

static void put_strings(blob *b, const char *key, const char *const *s, int n)
{
    put_gguf_key(b, key, GGUF_ARRAY), put_u32(b, GGUF_STRING), put_u64(b, (uint64_t)n);
    for (int i = 0; i < n; i++)
        put_gguf_str(b, s[i]);
}

static const char *gguf(const gguf_spec *g)
{
    blob b = {0}, kv = {0};
    int n = 0, merges = 0, keys = 4;
    while (g->tokens[n])
        n++;
    while (g->merges[merges])
        merges++;
    put_gguf_key(&kv, "tokenizer.ggml.model", GGUF_STRING), put_gguf_str(&kv, g->model);
    put_strings(&kv, "tokenizer.ggml.tokens", g->tokens, n);
    put_gguf_key(&kv, "tokenizer.ggml.token_type", GGUF_ARRAY);
    put_u32(&kv, g->type_elem ? (uint32_t)g->type_elem : GGUF_I32), put_u64(&kv, (uint64_t)n);
    for (int i = 0; i < n; i++)
        put_int(&kv, (uint64_t)(g->types[i] ? g->types[i] : 1), g->type_elem ? 1 : 4);
    put_gguf_u32(&kv, "tokenizer.ggml.bos_token_id", 1);
    if (g->pre)
        put_gguf_key(&kv, "tokenizer.ggml.pre", GGUF_STRING), put_gguf_str(&kv, g->pre), keys++;
    if (merges)
        put_strings(&kv, "tokenizer.ggml.merges", g->merges, merges), keys++;
    if (strcmp(g->model, "llama") == 0) {
        put_gguf_key(&kv, "tokenizer.ggml.scores", GGUF_ARRAY), put_u32(&kv, GGUF_F32), put_u64(&kv, (uint64_t)n),
            keys++;
        put(&kv, g->scores, (size_t)n * 4);
        put_gguf_key(&kv, "tokenizer.ggml.add_bos_token", GGUF_BOOL), put_int(&kv, 1, 1), keys++;
    }
    if (g->add_prefix >= 0)
        put_gguf_key(&kv, "tokenizer.ggml.add_space_prefix", GGUF_BOOL), put_int(&kv, (uint64_t)g->add_prefix, 1),
            keys++;
    put_gguf_head(&b, 3, 0, (uint64_t)keys);
    put(&b, kv.p, kv.n);
    pad(&b, 32);
    const char *path = scratch_write("t.gguf", b.p, b.n);
    free(b.p);
    free(kv.p);
    return path;
}

static const gguf_spec BYTE_LEVEL = {.model = "gpt2",
                                     .pre = "smollm",
                                     .add_prefix = -1,
                                     .tokens = {"<|end|>", "a", "b", "ab", "1", "11", "\u0120", "\u0120a", "[x]"},
                                     .types = {3, 1, 1, 1, 1, 1, 1, 1, 4},
                                     .merges = {"a b", "1 1", "\u0120 a"}};

static void test_gguf_byte_level(void **state)
{
    (void)state;
    weir_tokenizer *t = open_logged(gguf(&BYTE_LEVEL));
    assert_string_equal(weir_tokenizer_pattern(t), "smollm");
    assert_string_equal(remarks, "");
    TK_GIVES(t, "ab a11<|end|>[x]", 3, 7, 4, 4, 0, 8); /* each digit alone */
    assert_true(weir_tokenizer_is_special(t, 0) && !weir_tokenizer_is_special(t, 8));
    assert_false(weir_tokenizer_adds_bos(t));
    weir_tokenizer_free(t);

    gguf_spec g = BYTE_LEVEL;
    g.pre = NULL;
    t = open_logged(gguf(&g));
    assert_non_null(strstr(remarks, "warn: the file does not say how text is cut"));
    assert_string_equal(weir_tokenizer_pattern(t), "gpt2");
    TK_GIVES(t, "11", 5);
    weir_tokenizer_free(t);
    g.pre = "no-such-pattern";
    refused(gguf(&g), WEIR_E_UNSUPPORTED, "\"no-such-pattern\"");
    g = BYTE_LEVEL;
    g.merges[1] = "1 2";
    refused(gguf(&g), WEIR_E_FORMAT, "needs the token \"2\"");
    g = BYTE_LEVEL;
    g.merges[1] = " 1";
    refused(gguf(&g), WEIR_E_FORMAT, "merge 1 has an empty side");
    g = BYTE_LEVEL;
    g.merges[0] = NULL;
    refused(gguf(&g), WEIR_E_FORMAT, "no tokenizer.ggml.merges");
    g = BYTE_LEVEL;
    g.type_elem = 0;
    g.model = "t5";
    refused(gguf(&g), WEIR_E_UNSUPPORTED, "\"t5\"");
}

static const gguf_spec SENTENCE_PIECE = {.model = "llama",
                                         .add_prefix = -1,
                                         .tokens = {"<unk>", "<s>", "</s>", "<0x41>", "<0xC3>", "<0xA9>", "\u2581", "a",
                                                    "b", "\u2581a", "ab", "\u2581ab", "\u2581\u2581", "c", "bc",
                                                    "\u2581\u2581\u2581"},
                                         .types = {2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4},
                                         .scores = {0, 0, 0, 0, 0, 0, -10, -11, -12, -3, -2, -4, -1, -13, -1}};

static void test_gguf_sentence_piece(void **state)
{
    (void)state;
    weir_tokenizer *t = open_logged(gguf(&SENTENCE_PIECE));
    assert_string_equal(weir_tokenizer_kind(t), "spm");
    assert_true(weir_tokenizer_adds_bos(t) && weir_tokenizer_bos(t) == 1);
    TK_GIVES(t, "ab", 11);              /* the best score first: ab (-2), then U+2581 ab (-4) */
    TK_GIVES(t, "abc", 9, 14);          /* bc (-1) wins over ab */
    TK_GIVES(t, "a<s>ab", 9, 1, 11);    /* the prefix comes back behind a special token */
    TK_GIVES(t, "A\u00e9", 6, 3, 4, 5); /* byte tokens */
    TK_GIVES(t, "a   b", 9, 15, 6, 8);  /* a user-defined token is found as spaces */
    assert_true(weir_str_eq(weir_tokenizer_bytes(t, 15), "   "));
    assert_true(weir_str_eq(weir_tokenizer_bytes(t, 3), "A"));
    size_t n;
    int32_t ids[] = {11, 9};
    char *text = tk_decode(t, ids, 2, &n);
    assert_true(n == 4 && memcmp(text, "ab a", 4) == 0);
    free(text);
    weir_tokens k = {0};
    tk_encode(t, "a?b", 3, &k); /* no byte token for '?': the unknown token */
    assert_true(k.n == 3 && k.id[1] == 0 && k.flags[1] == WEIR_TOKEN_LOST && k.lost_bytes == 1 && tk_tiles(&k, 3));
    weir_tokens_free(&k);
    weir_tokenizer_free(t);

    gguf_spec g = SENTENCE_PIECE;
    g.add_prefix = 0;
    t = open_logged(gguf(&g));
    TK_GIVES(t, "ab", 10);
    TK_GIVES(t, " ab", 11);
    weir_tokenizer_free(t);
    char longest[2050];
    memset(longest, 'a', 2049);
    longest[2048] = longest[2049] = '\0';
    g.tokens[9] = longest;
    weir_tokenizer_free(open_logged(gguf(&g)));
    longest[2048] = 'a';
    refused(gguf(&g), WEIR_E_FORMAT, "token 9 has 2049 bytes");
    g.tokens[9] = "x";
    g.type_elem = 1; /* int8 */
    refused(gguf(&g), WEIR_E_FORMAT, "tokenizer.ggml.token_type is not an array of the right type");
}

/* The file's tokenizer, written as tokenizer.json and opened again. */
static weir_tokenizer *written(const gguf_spec *g)
{
    weir_err err = {0};
    weir_tokenizer *t = open_logged(gguf(g)), *again;
    assert_int_equal(weir_tokenizer_may_write(t, NULL, &err), WEIR_OK);
    FILE *out = fopen(scratch("saved.json"), "w");
    assert_int_equal(weir_tokenizer_write(t, out, &err), WEIR_OK);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(weir_tokenizer_open(&again, scratch("saved.json"), NULL, &err), WEIR_OK);
    assert_string_equal(weir_tokenizer_pattern(again), weir_tokenizer_pattern(t));
    assert_int_equal(weir_tokenizer_size(again), weir_tokenizer_size(t));
    assert_true(weir_tokenizer_adds_bos(again) == weir_tokenizer_adds_bos(t));
    weir_tokenizer_free(t);
    return again;
}

static void test_gguf_as_json(void **state)
{
    (void)state;
    weir_tokenizer *t = written(&BYTE_LEVEL);
    TK_GIVES(t, "ab a11<|end|>[x]", 3, 7, 4, 4, 0, 8);
    assert_true(weir_tokenizer_is_special(t, 0) && !weir_tokenizer_is_special(t, 8));
    weir_tokenizer_free(t);

    gguf_spec g = SENTENCE_PIECE;
    g.add_prefix = 0;
    t = written(&g);
    TK_GIVES(t, " abc<s>A\u00e9", 9, 14, 1, 3, 4, 5);
    TK_GIVES(t, "a   b", 7, 15, 8); /* found as U+2581, once spaces are such */
    weir_tokenizer_free(t);
    g = SENTENCE_PIECE;
    g.tokens[15] = "[x]";
    t = written(&g);
    TK_GIVES(t, "abc[x]ab", 9, 14, 15, 11);
    weir_tokenizer_free(t);
}

static void test_gguf_that_json_cannot_hold(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_tokenizer *t = open_logged(gguf(&SENTENCE_PIECE)); /* spaces as a token, and one before each text */
    assert_int_equal(weir_tokenizer_may_write(t, NULL, &err), WEIR_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "token 15 is user-defined and has spaces"));
    weir_tokenizer_free(t);
    gguf_spec g = BYTE_LEVEL;
    g.tokens[8] = "\xff";
    t = open_logged(gguf(&g));
    err = (weir_err){0};
    assert_int_equal(weir_tokenizer_may_write(t, NULL, &err), WEIR_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "token 8 is not UTF-8"));
    weir_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_added_ids),           cmocka_unit_test(test_both_merge_forms),
        cmocka_unit_test(test_lost_bytes),          cmocka_unit_test(test_strip),
        cmocka_unit_test(test_offsets_under_nfc),   cmocka_unit_test(test_refused_json),
        cmocka_unit_test(test_empty_side),          cmocka_unit_test(test_many_added),
        cmocka_unit_test(test_run_of_strips),       cmocka_unit_test(test_long_added),
        cmocka_unit_test(test_alike_added),         cmocka_unit_test(test_growing_steps),
        cmocka_unit_test(test_nested_steps),        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_bos_policy),          cmocka_unit_test(test_gguf_byte_level),
        cmocka_unit_test(test_gguf_sentence_piece),
        cmocka_unit_test(test_gguf_as_json),
        cmocka_unit_test(test_gguf_that_json_cannot_hold),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

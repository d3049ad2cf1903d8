/* Tokenizers: an input is a tokenizer.json, or GGUF by its magic, or a directory of files (parts.h), and a text to
 * encode with it as the part "text". A tokenizer that opens encodes any bytes, and its tokens tile them and decode. */
#include <weir/tokenizer.h>

#include "driver.h"
#include "parts.h"

static const char *const names[] = {
    "tokenizer.json",         "tokenizer_config.json",   "vocab.json",  "merges.txt", "added_tokens.json",
    "generation_config.json", "special_tokens_map.json", "config.json", "text"};
enum { N_NAMES = sizeof names / sizeof *names, TEXT = N_NAMES - 1 };

/* The decoder may trim what the first token brings along, no more than that: the length alone is asked first. */
static void decode(const weir_tokenizer *t, const weir_tokens *k)
{
    size_t len, again;
    PROMISE(weir_tokenizer_decode(t, k->id, k->n, true, NULL, 0, &len, NULL) == WEIR_OK);
    char *buf = malloc(len + 1);
    PROMISE(buf && weir_tokenizer_decode(t, k->id, k->n, true, buf, len, &again, NULL) == WEIR_OK && again == len);
    free(buf);
}

static void encode(const weir_tokenizer *t, const void *text, size_t n)
{
    weir_tokens k = {0};
    weir_err err = {0};
    promise_error(weir_tokenizer_encode(t, text, n, &k, &err), &err);
    int64_t at = 0;
    for (int64_t i = 0; !err.code && i < k.n; i++) {
        PROMISE(k.byte_off[i] == at && k.byte_len[i] >= 0 && weir_tokenizer_piece(t, k.id[i]).p);
        at += k.byte_len[i];
    }
    if (!err.code) {
        PROMISE(k.n ? at == (int64_t)n : k.lost_bytes == (int64_t)n);
        decode(t, &k);
    }
    weir_tokens_free(&k);
}

static void ask(const weir_tokenizer *t)
{
    int64_t n = weir_tokenizer_size(t);
    PROMISE(n >= 0 && weir_tokenizer_bos(t) < n && weir_tokenizer_eos(t) < n);
    PROMISE(!weir_tokenizer_adds_bos(t) || weir_tokenizer_bos(t) >= 0);
    PROMISE(strlen(weir_tokenizer_fingerprint(t)) == 64);
    for (int64_t id = -1; id <= n && id < 1000; id++) {
        weir_str piece = weir_tokenizer_piece(t, (int32_t)id);
        PROMISE(!piece.n || weir_tokenizer_find(t, piece) >= 0);
        (void)weir_tokenizer_bytes(t, (int32_t)id);
        (void)weir_tokenizer_is_special(t, (int32_t)id);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char plain[] = "Hello  world, it's 2024!\n\n caf\xc3\xa9 e\xcc\x81 \xff<s>\xe2\x96\x81";
    fuzz_part part[N_NAMES];
    parts_split(data, size, names, N_NAMES, part);
    bool gguf = part[0].n >= 4 && !memcmp(part[0].p, "GGUF", 4), directory = false;
    for (int i = 1; i < TEXT; i++)
        directory |= part[i].name != NULL;
    for (int i = 0; i < TEXT; i++)
        if (part[i].name && (part[i].n || !directory))
            parts_write(part[i].name, part[i].p, part[i].n);
    weir_tokenizer *t;
    weir_err err = {0};
    promise_error(weir_tokenizer_open(&t, parts_path(directory && !gguf ? "" : names[0]), NULL, &err), &err);
    PROMISE((t != NULL) == !err.code);
    if (t) {
        ask(t);
        encode(t, plain, sizeof plain);
        encode(t, part[TEXT].p, part[TEXT].n);
    }
    weir_tokenizer_free(t);
    for (int i = 0; i < TEXT; i++)
        if (part[i].name)
            unlink(parts_path(names[i]));
    return 0;
}

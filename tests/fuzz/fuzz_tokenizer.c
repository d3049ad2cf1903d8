/* Fuzzing the tokenizer: an input is a tokenizer file (tokenizer.json, or GGUF by its magic), a NUL-free separator
 * line, and a text to encode with it. Built with clang -fsanitize=fuzzer this is a libFuzzer target; built as it is,
 * main replays the files that it is given and then changes small tokenizers at random, the same way each time
 * (-runs=N).
 *
 * What must hold, whatever the input: no crash; a tokenizer that opens encodes any bytes; its tokens tile the text;
 * they decode. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/tokenizer.h>

static const char separator[] = "\n--text--\n";

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void check_tokens(const weir_tokenizer *t, const weir_tokens *k, size_t n)
{
    int64_t at = 0;
    for (int64_t i = 0; i < k->n; i++) {
        if (k->byte_off[i] != at || k->byte_len[i] < 0 || !weir_tokenizer_piece(t, k->id[i]).p)
            abort();
        at += k->byte_len[i];
    }
    if (k->n ? at != (int64_t)n : k->lost_bytes != (int64_t)n)
        abort();
    size_t len;
    if (weir_tokenizer_decode(t, k->id, k->n, true, NULL, 0, &len, NULL))
        abort();
}

static void encode(const weir_tokenizer *t, const unsigned char *text, size_t n)
{
    weir_tokens k = {0};
    if (weir_tokenizer_encode(t, text, n, &k, NULL) == WEIR_OK)
        check_tokens(t, &k, n);
    weir_tokens_free(&k);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    static const unsigned char plain[] = "Hello  world, it's 2024!\n\n caf\xc3\xa9 e\xcc\x81 \xff<s>\xe2\x96\x81";
    const unsigned char *cut = n ? memmem(data, n, separator, sizeof separator - 1) : NULL;
    size_t n_file = cut ? (size_t)(cut - data) : n;
    char path[] = P_tmpdir "/weir-fuzz-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || (n_file && write(fd, data, n_file) != (ssize_t)n_file))
        abort();
    close(fd);
    weir_tokenizer *t;
    weir_err err = {0};
    if (weir_tokenizer_open(&t, path, NULL, &err) == WEIR_OK) {
        encode(t, plain, sizeof plain);
        if (cut)
            encode(t, cut + sizeof separator - 1, n - n_file - (sizeof separator - 1));
        weir_tokenizer_free(t);
    } else if (!err.code || !err.msg[0]) {
        abort();
    }
    unlink(path);
    return 0;
}

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

static unsigned char *read_file(const char *path, size_t *n)
{
    static unsigned char bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "fuzz_tokenizer: %s cannot be read\n", path);
        exit(1);
    }
    *n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return bytes;
}

enum { MAX_SEEDS = 256 };
static char seed[MAX_SEEDS][512];
static int n_seeds;

/* Tries a file, or all files of a directory, and keeps their names. */
static void replay(const char *path)
{
    DIR *dir = opendir(path);
    size_t n;
    if (!dir) {
        const unsigned char *bytes = read_file(path, &n);
        LLVMFuzzerTestOneInput(bytes, n);
        if (n_seeds < MAX_SEEDS)
            snprintf(seed[n_seeds++], sizeof seed[0], "%s", path);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        char name[512];
        if (e->d_name[0] == '.' || snprintf(name, sizeof name, "%s/%s", path, e->d_name) >= (int)sizeof name)
            continue;
        replay(name);
    }
    closedir(dir);
}

static unsigned dice(void)
{
    static unsigned long long x = 0x9e3779b97f4a7c15u;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (unsigned)(x >> 33);
}

/* Bytes that mean something to a tokenizer file. */
static void change(unsigned char *p, size_t *n)
{
    static const char *const words[] = {
        "\"\"",          "[\"\",\"", "\"",         "[",           "]",          "{",       "}",    ",",
        "null",          "true",     "-1",         "99999999999", "\\u0000",    "\\ud800", "1e9",  "\"NFC\"",
        "\"Metaspace\"", "\"id\"",   "\"merges\"", "\"vocab\"",   "\"<0x41>\"", " ",       "\xff", "\xe2\x96\x81"};
    for (unsigned k = 1 + dice() % 4; k && *n; k--) {
        size_t at = dice() % *n;
        const char *w = words[dice() % (sizeof words / sizeof *words)];
        switch (dice() % 4) {
        case 0:
            p[at] = (unsigned char)dice();
            break;
        case 1:
            *n = at;
            break;
        case 2:
            memcpy(p + at, w, strlen(w) < *n - at ? strlen(w) : *n - at);
            break;
        default: {
            size_t len = dice() % 40 < *n - at ? dice() % 40 : *n - at;
            len = len < *n - at ? len : *n - at;
            memmove(p + at, p + at + len, *n - at - len);
            *n -= len;
        }
        }
    }
}

int main(int argc, char **argv)
{
    long runs = 0;
    replay("tests/data/tokenizers/tiny");
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-runs=", 6) == 0)
            runs = strtol(argv[i] + 6, NULL, 10);
        else
            replay(argv[i]);
    }
    for (long r = 0; r < runs; r++) {
        size_t n;
        unsigned char *bytes = read_file(seed[r % n_seeds], &n);
        change(bytes, &n);
        LLVMFuzzerTestOneInput(bytes, n);
    }
    return 0;
}
#endif

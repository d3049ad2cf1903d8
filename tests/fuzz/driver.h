/* fuzz/driver.h: runs a fuzz target without libFuzzer:
 *
 *     fuzz_json [-runs=N] [-seed=S] [-dict=FILE] FILE|DIRECTORY...
 *
 * The files are replayed as they are; then N inputs made from them by mutation, the same ones each time. The dictionary
 * has words to put into them, in libFuzzer's format. With libFuzzer (`make fuzz`: -DWEIR_LIBFUZZER) only
 * LLVMFuzzerTestOneInput remains.
 */
#ifndef FUZZ_DRIVER_H
#define FUZZ_DRIVER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise: ends the program, as a crash would. */
#define PROMISE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A status and its error belong together, and the error is one line. */
static inline void promise_error(weir_status s, const weir_err *err)
{
    char line[1400];
    PROMISE(s == err->code);
    PROMISE(s == WEIR_OK || (err->msg[0] && !strchr(weir_err_line(err, line, sizeof line), '\n')));
}

#ifndef WEIR_LIBFUZZER

#define INPUT_MAX ((size_t)1 << 16)

/* Defined by targets whose inputs take long: only one of so many runs is made. */
#ifndef FUZZ_COST
#define FUZZ_COST 1
#endif

typedef struct fuzz_input {
    uint8_t *p;
    size_t n;
} fuzz_input;

static struct {
    fuzz_input seed[4096];
    int n;
    fuzz_input word[256];
    int n_words;
    uint64_t random;
} fuzz;

static uint64_t fuzz_random(uint64_t below)
{
    fuzz.random = fuzz.random * 6364136223846793005u + 1442695040888963407u;
    return below ? (fuzz.random >> 24) % below : 0;
}

/* Runs one input in a block of exactly its size, so that a sanitizer sees a byte read too many. */
static void fuzz_run(const uint8_t *p, size_t n)
{
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact)
        abort();
    memcpy(exact, p, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

static void fuzz_add_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *p = malloc(INPUT_MAX);
    if (!f || !p || fuzz.n == (int)(sizeof fuzz.seed / sizeof *fuzz.seed)) {
        fprintf(stderr, "cannot use %s\n", path);
        exit(2);
    }
    size_t n = fread(p, 1, INPUT_MAX, f);
    fclose(f);
    fuzz.seed[fuzz.n++] = (fuzz_input){p, n};
}

static int fuzz_is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* Files in order of their names, so that runs repeat. */
static void fuzz_add(const char *path)
{
    struct dirent **entry;
    int n = scandir(path, &entry, fuzz_is_visible, alphasort);
    if (n < 0)
        fuzz_add_file(path);
    for (int i = 0; i < n; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, entry[i]->d_name);
        fuzz_add_file(inner);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
}

/* The word in a line `"..."` with \\xNN, \\\\ and \\": in place, without the quotes. */
static fuzz_input fuzz_word(char *line)
{
    uint8_t *out = (uint8_t *)line;
    size_t n = 0;
    for (const char *p = line + 1; *p && *p != '"'; p++) {
        unsigned byte = (uint8_t)*p;
        int used = 0;
        if (*p == '\\' && sscanf(p + 1, "x%2x%n", &byte, &used) != 1)
            byte = (uint8_t) * ++p;
        p += used;
        out[n++] = (uint8_t)byte;
    }
    return (fuzz_input){out, n};
}

static void fuzz_dictionary(const char *path)
{
    char line[256];
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f) && fuzz.n_words < (int)(sizeof fuzz.word / sizeof *fuzz.word))
        if (line[0] == '"')
            fuzz.word[fuzz.n_words++] = fuzz_word(strdup(line));
    if (!fuzz.n_words) {
        fprintf(stderr, "no words in %s\n", path);
        exit(2);
    }
    fclose(f);
}

/* A word put into p[n], or over what stands there. */
static size_t fuzz_put_word(uint8_t *p, size_t n, size_t at)
{
    const fuzz_input *w = &fuzz.word[fuzz_random((uint64_t)fuzz.n_words)];
    bool over = fuzz_random(2) && at + w->n <= n;
    if (!over && n + w->n > INPUT_MAX)
        return n;
    if (!over)
        memmove(p + at + w->n, p + at, n - at);
    memcpy(p + at, w->p, w->n);
    return over ? n : n + w->n;
}

/* One change to p[n] (room: INPUT_MAX); returns the new length. */
static size_t fuzz_mutate(uint8_t *p, size_t n)
{
    static const uint64_t special[] = {0,
                                       1,
                                       8,
                                       0x7f,
                                       0x80,
                                       0xff,
                                       0x7fff,
                                       0xffff,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0xffffffffffffffff};
    size_t at = fuzz_random(n), len = fuzz_random(16) + 1;
    len = n && at + len > n ? n - at : len;
    uint64_t v = special[fuzz_random(sizeof special / sizeof *special)];
    const fuzz_input *other = &fuzz.seed[fuzz_random((uint64_t)fuzz.n)];
    if (fuzz.n_words && fuzz_random(4) == 0)
        return fuzz_put_word(p, n, at);
    switch (n ? fuzz_random(8) : 7) {
    case 0:
        p[at] ^= (uint8_t)(1u << fuzz_random(8));
        return n;
    case 1:
        p[at] = (uint8_t)fuzz_random(256);
        return n;
    case 2: /* a number of 4 or 8 bytes */
        len = fuzz_random(2) ? 4 : 8;
        memcpy(p + at, &v, n - at < len ? n - at : len);
        return n;
    case 3: /* a piece away */
        memmove(p + at, p + at + len, n - at - len);
        return n - len;
    case 4: /* a piece twice */
        if (n + len > INPUT_MAX)
            return n;
        memmove(p + at + len, p + at, n - at);
        return n + len;
    case 5: /* cut */
        return at;
    case 6: /* the rest of another one */
        if (at < other->n) {
            memcpy(p + at, other->p + at, other->n - at);
            return other->n;
        }
        return n;
    default: /* a byte more */
        if (n < INPUT_MAX)
            p[n++] = "\0{}[]\",:0e\\u"[fuzz_random(12)];
        return n;
    }
}

int main(int argc, char **argv)
{
    long long runs = 0, seed = 1;
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "-dict=", 6))
            fuzz_dictionary(argv[i] + 6);
        else if (sscanf(argv[i], "-runs=%lld", &runs) != 1 && sscanf(argv[i], "-seed=%lld", &seed) != 1)
            fuzz_add(argv[i]);
    if (!fuzz.n) {
        fprintf(stderr, "usage: %s [-runs=N] [-seed=S] [-dict=FILE] FILE|DIRECTORY...\n", argv[0]);
        return 2;
    }
    fuzz.random = (uint64_t)seed;
    for (int i = 0; i < fuzz.n; i++)
        fuzz_run(fuzz.seed[i].p, fuzz.seed[i].n);
    uint8_t *p = malloc(INPUT_MAX);
    if (!p)
        abort();
    for (long long i = 0; i < runs / FUZZ_COST; i++) {
        const fuzz_input *from = &fuzz.seed[fuzz_random((uint64_t)fuzz.n)];
        size_t n = from->n;
        memcpy(p, from->p, n);
        for (uint64_t k = fuzz_random(4) + 1; k; k--)
            n = fuzz_mutate(p, n);
        fuzz_run(p, n);
    }
    free(p);
    for (int i = 0; i < fuzz.n; i++)
        free(fuzz.seed[i].p);
    for (int i = 0; i < fuzz.n_words; i++)
        free(fuzz.word[i].p);
    printf("%d files and %lld mutations: no fault\n", fuzz.n, runs / FUZZ_COST);
    return 0;
}

#endif
#endif

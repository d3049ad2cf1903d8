/* tokenizer_kit.h: comparing what a tokenizer gives with files of texts and ids. */
#ifndef TOKENIZER_KIT_H
#define TOKENIZER_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/json.h>
#include <weir/tokenizer.h>

typedef struct tk_line {
    char *text, *decoded; /* decoded may be NULL */
    size_t n_text, n_decoded;
    int32_t *id;
    int64_t n;
} tk_line;

typedef struct tk_lines {
    tk_line *line;
    size_t n;
} tk_lines;

/* Where the shared directory lies, or NULL. */
static inline const char *tk_shared(void)
{
    const char *dir = getenv("WEIR_SHARED");
    dir = dir && *dir ? dir : "../shared";
    char probe[1024];
    snprintf(probe, sizeof probe, "%s/tokenizers/README.md", dir);
    FILE *f = fopen(probe, "rb");
    if (f)
        fclose(f);
    return f ? dir : NULL;
}

static inline char *tk_copy(weir_str s)
{
    char *p = malloc(s.n + 1);
    assert_non_null(p);
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

static inline char *tk_read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s: cannot be opened", path);
    size_t cap = 1 << 16;
    char *p = malloc(cap);
    *n = 0;
    for (size_t got; (got = fread(p + *n, 1, cap - *n, f)) > 0;) {
        *n += got;
        if (*n == cap)
            p = realloc(p, cap *= 2);
    }
    fclose(f);
    return p;
}

static inline tk_line tk_parse(const char *p, size_t n, const char *path)
{
    tk_line l = {0};
    weir_json j;
    weir_str key;
    weir_err err = {0};
    weir_json_init(&j, p, n, path, &err);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        if (weir_str_eq(key, "text")) {
            weir_str s = weir_json_string(&j);
            l.text = tk_copy(s), l.n_text = s.n;
        } else if (weir_str_eq(key, "decoded")) {
            weir_str s = weir_json_string(&j);
            l.decoded = tk_copy(s), l.n_decoded = s.n;
        } else {
            l.id = malloc(n * sizeof *l.id);
            weir_json_array(&j);
            while (weir_json_item(&j))
                l.id[l.n++] = (int32_t)weir_json_int(&j);
        }
    }
    weir_json_end(&j);
    if (weir_json_done(&j))
        fail_msg("%s: %s", path, err.msg);
    return l;
}

static inline tk_lines tk_read_lines(const char *path)
{
    size_t n;
    char *p = tk_read_file(path, &n);
    tk_lines all = {0};
    for (size_t i = 0; i < n;) {
        const char *end = memchr(p + i, '\n', n - i);
        size_t len = (end ? (size_t)(end - p) : n) - i;
        all.line = realloc(all.line, (all.n + 1) * sizeof *all.line);
        all.line[all.n++] = tk_parse(p + i, len, path);
        i += len + 1;
    }
    free(p);
    return all;
}

static inline void tk_free_lines(tk_lines *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->line[i].text);
        free(all->line[i].decoded);
        free(all->line[i].id);
    }
    free(all->line);
}

static inline weir_tokenizer *tk_open(const char *path)
{
    weir_tokenizer *t = NULL;
    weir_err err = {0};
    char line[1400];
    if (weir_tokenizer_open(&t, path, NULL, &err))
        fail_msg("%s", weir_err_line(&err, line, sizeof line));
    return t;
}

static inline bool tk_same_ids(const weir_tokens *k, const int32_t *id, int64_t n)
{
    return k->n == n && (!n || memcmp(k->id, id, (size_t)n * sizeof *id) == 0);
}

/* Offsets tile the text, and lost bytes are flagged and counted together. */
static inline bool tk_tiles(const weir_tokens *k, size_t len)
{
    int64_t at = 0;
    bool flagged = false;
    for (int64_t i = 0; i < k->n; i++) {
        if (k->byte_off[i] != at || k->byte_len[i] < 0)
            return false;
        at += k->byte_len[i];
        flagged = flagged || k->flags[i] & WEIR_TOKEN_LOST;
    }
    return (k->n ? at == (int64_t)len : k->lost_bytes == (int64_t)len) && (k->n == 0 || flagged == (k->lost_bytes > 0));
}

static inline char *tk_decode(const weir_tokenizer *t, const int32_t *id, int64_t n, size_t *len)
{
    weir_err err = {0};
    assert_int_equal(weir_tokenizer_decode(t, id, n, true, NULL, 0, len, &err), WEIR_OK);
    char *p = malloc(*len + 1);
    size_t again;
    assert_int_equal(weir_tokenizer_decode(t, id, n, true, p, *len, &again, &err), WEIR_OK);
    assert_int_equal(again, *len);
    return p;
}

static inline weir_str tk_str(const char *z)
{
    return (weir_str){z, strlen(z)};
}

static inline void tk_encode(const weir_tokenizer *t, const char *text, size_t n, weir_tokens *k)
{
    weir_err err = {0};
    if (weir_tokenizer_encode(t, text, n, k, &err))
        fail_msg("encode: %s", err.msg);
}

/* Whether the text has these ids (n of them, ended by -1). */
static inline bool tk_gives(const weir_tokenizer *t, const char *text, const int32_t *want)
{
    weir_tokens k = {0};
    int64_t n = 0;
    while (want[n] >= 0)
        n++;
    tk_encode(t, text, strlen(text), &k);
    bool same = tk_same_ids(&k, want, n);
    weir_tokens_free(&k);
    return same;
}
#define TK_GIVES(t, text, ...) assert_true(tk_gives(t, text, (const int32_t[]){__VA_ARGS__, -1}))

#endif

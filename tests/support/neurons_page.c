/* support/neurons_page.c: pages of made-up searches, for tests/pages/test_neurons_page.py.   neurons_page KIND FORMAT <
 * TEXT
 *
 * KIND   big      20,000 neurons of two layers, ten places at both ends
 *        small    100 neurons of two layers and two hook points, with samples, clusters, and two named neurons
 *        hostile  a vocabulary, names and a text that try to be markup, or are no text at all
 * FORMAT html or ndjson
 * TEXT   for big and small: a line a document; its words are the tokens
 *
 * Activations are a hash of neuron and token, and rarely large, as a model's are; they do not depend on anything else.
 * The search is the library's own, and so are its numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "neurons/view.h"

enum { MOST_TOKENS = 1 << 17, MOST_WORDS = 1 << 15, MOST_DOCS = 1 << 12 };

typedef struct text {
    char *bytes; /* of the words, one after the other */
    int64_t offset[MOST_WORDS + 1];
    uint8_t special[MOST_WORDS];
    int64_t words;
    int32_t id[MOST_TOKENS];
    int64_t doc[MOST_TOKENS], pos[MOST_TOKENS];
    uint8_t mask[MOST_TOKENS];
    int64_t tokens, docs;
} text;

static void must(weir_status status, const weir_err *err)
{
    if (status) {
        fprintf(stderr, "neurons_page: %s\n", err->msg);
        exit(1);
    }
}

static int32_t word(text *t, const char *p, int64_t n)
{
    for (int64_t i = 0; i < t->words; i++)
        if (t->offset[i + 1] - t->offset[i] == n && memcmp(t->bytes + t->offset[i], p, (size_t)n) == 0)
            return (int32_t)i;
    memcpy(t->bytes + t->offset[t->words], p, (size_t)n);
    t->offset[t->words + 1] = t->offset[t->words] + n;
    return (int32_t)t->words++;
}

static void token(text *t, int32_t id, int64_t pos)
{
    t->doc[t->tokens] = t->docs;
    t->pos[t->tokens] = pos;
    t->id[t->tokens++] = id;
}

/* Words with the space before them. */
static void read_text(text *t, FILE *in)
{
    char line[4096];
    while (fgets(line, sizeof line, in) && t->docs < MOST_DOCS) {
        int64_t pos = 0;
        for (char *p = line; *p && *p != '\n'; pos++) {
            size_t n = *p == ' ' ? 1 : 0;
            n += strcspn(p + n, " \n");
            token(t, word(t, p, (int64_t)n), pos);
            p += n;
        }
        t->docs++;
    }
}

/* Tokens that are markup, control characters, halves of characters, marks that turn text around, nothing at all. */
static void hostile_text(text *t)
{
    static const struct {
        const char *p;
        int64_t n;
    } piece[] = {{"<s>", 3},
                 {"</script><script>hacked=1</script>", 34},
                 {"<img src=x onerror=hacked=2>", 28},
                 {" \xf0\x9f", 3},
                 {"\x98\x80", 2},
                 {"\xff\xfe", 2},
                 {"\n", 1},
                 {"\t", 1},
                 {"\0", 1},
                 {"\x1b[31m", 5},
                 {"\xe2\x80\xae"
                  "abc",
                  6},
                 {"&lt;b&gt;", 9},
                 {"\\n", 2},
                 {"\"'`", 3},
                 {"<!--", 4},
                 {"]]>", 3},
                 {"", 0},
                 {"\xe2\x82", 2},
                 {"\xac!", 2},
                 {"\xef\xbb\xbf", 3},
                 {"javascript:hacked=3", 19},
                 {"\xed\xa0\x80", 3}};
    int n = sizeof piece / sizeof *piece;
    for (int i = 0; i < n; i++) {
        memcpy(t->bytes + t->offset[i], piece[i].p, (size_t)piece[i].n);
        t->offset[i + 1] = t->offset[i] + piece[i].n;
    }
    t->words = n;
    t->special[0] = 1;
    for (t->docs = 0; t->docs < 3; t->docs++)
        for (int i = 0; i < n; i++)
            token(t, i, i);
}

static uint32_t hash(uint32_t a, uint32_t b)
{
    uint32_t x = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    return x ^ x >> 15;
}

/* Of neuron u at a token: a word's part, which is rarely large, and a little of the place's. */
static float activation(uint32_t u, uint32_t id, uint32_t place)
{
    uint32_t h = hash(u, id);
    float w = (float)(h >> 8) / 16777216.0f, p = (float)((h ^ place * 0x9e37u) & 0xffff) / 65536.0f;
    return w > 0.98f ? (w - 0.98f) * 250 + p : -0.17f * w * p;
}

static void feed(weir_neurons *s, const text *t, int tables, int64_t width, weir_err *err)
{
    enum { ROWS = 512 };
    float *x = malloc(sizeof *x * (size_t)(ROWS * width));
    for (int64_t first = 0; first < t->tokens; first += ROWS) {
        int64_t n = t->tokens - first < ROWS ? t->tokens - first : ROWS;
        weir_neurons_rows_of rows = {.n = n,
                                     .id = t->id + first,
                                     .doc = t->doc + first,
                                     .pos = t->pos + first,
                                     .ctx_pos = t->pos + first,
                                     .mask = t->mask + first};
        must(weir_neurons_rows(s, &rows, false, err), err);
        for (int k = 0; k < tables; k++) {
            for (int64_t i = 0; i < n; i++)
                for (int64_t u = 0; u < width; u++)
                    x[i * width + u] =
                        activation((uint32_t)(k * width + u), (uint32_t)t->id[first + i], (uint32_t)(first + i));
            weir_neurons_values v = {.x = x, .stride = width, .whole = true};
            must(weir_neurons_add(s, k, &v, err), err);
        }
    }
    free(x);
}

static weir_neurons *search(const text *t, bool big, int64_t width, int tables, weir_err *err)
{
    const weir_neurons_table table[] = {
        {.hook = "blocks.0.mlp.hook_post", .site = "post", .layer = 0, .width = width, .n = width},
        {.hook = "blocks.3.mlp.hook_post", .site = "post", .layer = 3, .width = width, .n = width},
        {.hook = "hook_<embed>", .site = "hook_<embed>", .layer = -1, .width = width, .n = width}};
    const weir_neurons_named named[] = {{1, 21}, {0, 7}};
    const float thresholds[] = {0, 1};
    weir_neurons_options o;
    weir_neurons *s;
    weir_neurons_options_init(&o);
    o.k = 10;
    o.n_thresholds = 2;
    for (int i = 0; i < 2; i++)
        o.threshold[i] = (double)thresholds[i];
    if (!big) {
        o.before = o.after = 14;
        o.per_band = 2;
        o.random = 3;
        o.named = named;
        o.n_named = 2;
        o.token_means = t->words;
        o.correlate = true;
    }
    must(weir_neurons_new(&s, &o, table, tables, err), err);
    must(weir_neurons_vocab_bytes(s, t->words, (const uint8_t *)t->bytes, t->offset, t->special, err), err);
    feed(s, t, tables, width, err);
    must(weir_neurons_finish(s, err), err);
    return s;
}

static int show(const weir_neurons *s, const char *kind, const char *format)
{
    static const weir_tool tool = {.name = "neurons_page"};
    const weir_cli cli = {.tool = &tool};
    const weir_neurons_options *o = weir_neurons_options_of(s);
    int64_t n = 0;
    for (int t = 0; t < weir_neurons_n_tables(s); t++)
        n += weir_neurons_table_at(s, t)->n;
    weir_shown *shown = malloc(sizeof *shown * (size_t)n), *next = shown;
    for (int t = 0; t < weir_neurons_n_tables(s); t++)
        for (int64_t i = 0; i < weir_neurons_table_at(s, t)->n; i++)
            *next++ = (weir_shown){t, i};
    bool hostile = strcmp(kind, "hostile") == 0;
    weir_view v = {.cli = &cli,
                   .s = s,
                   .shown = shown,
                   .lists = (1u << WEIR_NEURONS_LISTS) - 1,
                   .n = n,
                   .k = o->k,
                   .before = o->before,
                   .after = o->after,
                   .input = hostile ? "</script><script>hacked=4</script>\xff<!--" : "made up",
                   .clusters = strcmp(kind, "big") != 0,
                   .out = stdout};
    int code = strcmp(format, "html") == 0 ? weir_view_html(&v) : weir_view_ndjson(&v);
    free(shown);
    return code;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: neurons_page big|small|hostile html|ndjson < TEXT\n", stderr);
        return 2;
    }
    weir_err err = {0};
    bool big = strcmp(argv[1], "big") == 0;
    text *t = calloc(1, sizeof *t);
    t->bytes = malloc(1 << 22);
    if (strcmp(argv[1], "hostile") == 0)
        hostile_text(t);
    else
        read_text(t, stdin);
    weir_neurons *s = search(t, big, big ? 10000 : 34, big ? 2 : 3, &err);
    int code = show(s, argv[1], argv[2]);
    weir_neurons_free(s);
    free(t->bytes);
    free(t);
    return code;
}

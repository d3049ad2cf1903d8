/* unit/search_world.h: a made-up text and made-up neurons for tests of files and merging: documents, many of them the
 * same text, and values that tie, repeat, and are not always numbers. A value depends on the text so far alone, as a
 * model's does. */
#ifndef SEARCH_WORLD_H
#define SEARCH_WORLD_H

#include <math.h>
#include <string.h>

#include <weir/neurons.h>

#include "support/scratch.h"

#ifndef WORLD_WIDTH
#define WORLD_WIDTH 70 /* more than a block, and no multiple of anything; at least 10 */
#endif
enum { WORLD_DOCS = 60, WORLD_TABLES = 3, WORLD_CTX = 16, WORLD_VOCAB = 50, WORLD_UNITS = 3 };

static inline uint64_t world_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* A third of the documents are one of five texts. */
static inline uint64_t world_text(int64_t doc)
{
    const uint64_t h = world_mix((uint64_t)doc + 1);
    return h % 3 ? h : h / 3 % 5;
}

static inline int64_t world_length(int64_t doc)
{
    return 1 + (int64_t)(world_mix(world_text(doc) + 77) % 40);
}

static inline int32_t world_token(int64_t doc, int64_t pos)
{
    return pos == 0 ? 0 : (int32_t)(1 + world_mix(world_text(doc) * 64 + (uint64_t)pos) % (WORLD_VOCAB - 1));
}

static inline float world_value(int table, int64_t unit, int64_t doc, int64_t pos)
{
    const uint64_t h = world_mix(world_mix(world_text(doc) * 64 + (uint64_t)pos) + (uint64_t)(table * 1000 + unit));
    if (unit == 2)
        return -1; /* never positive, always the same */
    if (unit % 7 == 5 && h % 19 == 0)
        return h & 64 ? NAN : INFINITY;
    const float steps = (float)((int64_t)(h >> 20 & 255) - 128);
    return unit % 2 ? steps / 8 : steps * steps * steps / 1024.0f * (h & 1 ? 0.37f : 1e-3f);
}

/* Table 1 has some units of its hook alone; table 2 is the hook of table 0 at another site. */
static const int64_t world_units[WORLD_UNITS] = {1, 5, WORLD_WIDTH - 4};
static inline const weir_neurons_table *world_tables(void)
{
    static const weir_neurons_table t[WORLD_TABLES] = {
        {"blocks.0.mlp.hook_pre", "pre", 0, WORLD_WIDTH, WORLD_WIDTH, NULL},
        {"blocks.1.mlp.hook_post", "post", 1, WORLD_WIDTH, WORLD_UNITS, world_units},
        {"blocks.0.mlp.hook_pre", "gate-act", 0, WORLD_WIDTH, WORLD_WIDTH, NULL}};
    return t;
}

static inline weir_neurons_about world_about(int64_t shard, int64_t shards)
{
    return (weir_neurons_about){.model = "made-up",
                                .family = "none",
                                .fingerprint = "abc",
                                .tokenizer = "def",
                                .source = "{\"text\":\"world\"}",
                                .interventions = "[]",
                                .shard = shard,
                                .shards = shards,
                                .complete = true};
}

/* --- options: a few sets that between them use everything */

enum { WORLD_SETS = 7 };

static inline weir_neurons_options world_options(int set)
{
    static const weir_neurons_named named[] = {{0, 1}, {0, 5}, {1, 1}, {2, WORLD_WIDTH - 1}};
    weir_neurons_options o;
    weir_neurons_options_init(&o);
    o.k = 6;
    o.threads = set == 1 ? 2 : 1;
    o.seed = UINT64_MAX - (uint64_t)set;
    o.dedup = (weir_neurons_dedup[]){WEIR_DEDUP_TEXT, WEIR_DEDUP_NONE, WEIR_DEDUP_DOC, WEIR_DEDUP_WINDOW,
                                     WEIR_DEDUP_TEXT, WEIR_DEDUP_TEXT, WEIR_DEDUP_NONE}[set];
    o.dedup_n = set == 0 ? 3 : 8;
    o.rank = set == 4 || set == 6 ? WEIR_RANK_MEAN : WEIR_RANK_MAX;
    o.lists = (unsigned[]){3, 7, 4, 1, 7, 0, 7}[set];
    o.per_band = set == 1 || set == 5 ? 3 : 0;
    o.random = set == 2 || set == 5 ? 12 : 0;
    o.before = set == 3 ? INT32_MAX : set;
    o.after = set == 3 ? INT32_MAX : 2;
    o.n_thresholds = 1 + set % 3;
    o.threshold[1] = 0.5;
    o.threshold[2] = -2;
    if (set == 0 || set == 4 || set == 5) {
        o.named = named;
        o.n_named = 4;
        o.token_means = set == 5 ? 0 : WORLD_VOCAB;
        o.correlate = set != 4;
    }
    return o;
}

/* --- feeding */

typedef struct world_rows {
    int64_t n, room;
    int32_t *id;
    int64_t *doc, *pos, *ctx_pos;
    uint8_t *mask;
    float *x[WORLD_TABLES];
} world_rows;

/* All rows of documents [first, end). */
static inline world_rows world_rows_of(int64_t first, int64_t end)
{
    world_rows w = {0};
    for (int64_t d = first; d < end; d++)
        w.room += world_length(d);
    const size_t room = (size_t)w.room + 1;
    w.id = calloc(room, sizeof *w.id);
    w.doc = calloc(room, sizeof *w.doc);
    w.pos = calloc(room, sizeof *w.pos);
    w.ctx_pos = calloc(room, sizeof *w.ctx_pos);
    w.mask = calloc(room, 1);
    for (int t = 0; t < WORLD_TABLES; t++)
        w.x[t] = calloc(room * WORLD_WIDTH, sizeof *w.x[t]);
    for (int64_t d = first; d < end; d++)
        for (int64_t p = 0; p < world_length(d); p++, w.n++) {
            w.id[w.n] = world_token(d, p);
            w.doc[w.n] = d;
            w.pos[w.n] = p;
            w.ctx_pos[w.n] = p % WORLD_CTX;
            w.mask[w.n] = p == 0 ? WEIR_MASK_BOS : world_token(d, p) == 7 ? WEIR_MASK_ID : 0;
            for (int t = 0; t < WORLD_TABLES; t++)
                for (int64_t u = 0; u < WORLD_WIDTH; u++)
                    w.x[t][w.n * WORLD_WIDTH + u] = world_value(t, u, d, p);
        }
    return w;
}

static inline void world_rows_free(world_rows *w)
{
    free(w->id);
    free(w->doc);
    free(w->pos);
    free(w->ctx_pos);
    free(w->mask);
    for (int t = 0; t < WORLD_TABLES; t++)
        free(w->x[t]);
}

/* Rows [at, at + n) as one pass. */
static inline weir_status world_pass(weir_neurons *s, const world_rows *w, int64_t at, int64_t n, weir_err *err)
{
    const weir_neurons_rows_of rows = {.n = n,
                                       .id = w->id + at,
                                       .doc = w->doc + at,
                                       .pos = w->pos + at,
                                       .ctx_pos = w->ctx_pos + at,
                                       .mask = w->mask + at};
    WEIR_TRY(weir_neurons_rows(s, &rows, false, err));
    for (int t = 0; t < WORLD_TABLES; t++) {
        const weir_neurons_values v = {.x = w->x[t] + at * WORLD_WIDTH, .stride = WORLD_WIDTH, .whole = true};
        WEIR_TRY(weir_neurons_add(s, t, &v, err));
    }
    return WEIR_OK;
}

/* Documents [first, end), cut into passes by `cut`. */
static inline weir_status world_feed(weir_neurons *s, int64_t first, int64_t end, uint64_t cut, weir_err *err)
{
    world_rows w = world_rows_of(first, end);
    weir_status st = WEIR_OK;
    for (int64_t at = 0, n; at < w.n && !st; at += n) {
        n = 1 + (int64_t)(world_mix(cut++) % 90);
        n = n < w.n - at ? n : w.n - at;
        st = world_pass(s, &w, at, n, err);
    }
    world_rows_free(&w);
    return st;
}

static inline weir_status world_new(weir_neurons **s, const weir_neurons_options *o, weir_err *err)
{
    static const uint8_t special[WORLD_VOCAB] = {1};
    uint8_t bytes[WORLD_VOCAB * 2];
    int64_t offset[WORLD_VOCAB + 1] = {0};
    for (int i = 0; i < WORLD_VOCAB; i++) {
        bytes[2 * i] = bytes[2 * i + 1] = (uint8_t)(i * 5);
        offset[i + 1] = i == 9 ? offset[i] : 2 * i + 2; /* token 9 has no bytes */
    }
    WEIR_TRY(weir_neurons_new(s, o, world_tables(), WORLD_TABLES, err));
    weir_status st = weir_neurons_vocab_bytes(*s, WORLD_VOCAB, bytes, offset, special, err);
    if (st) {
        weir_neurons_free(*s);
        *s = NULL;
    }
    return st;
}

/* A finished search over documents [first, end). */
static inline weir_status world_search(weir_neurons **s, const weir_neurons_options *o, int64_t first, int64_t end,
                                       uint64_t cut, weir_err *err)
{
    WEIR_TRY(world_new(s, o, err));
    weir_status st = world_feed(*s, first, end, cut, err);
    if (!st)
        st = weir_neurons_finish(*s, err);
    if (st) {
        weir_neurons_free(*s);
        *s = NULL;
    }
    return st;
}

#endif

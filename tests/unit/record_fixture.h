/* A small dump without a model: points, a vocabulary and values that are known at every place. */
#ifndef RECORD_FIXTURE_H
#define RECORD_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/record.h>

#include "record/source.h"
#include "support/scratch.h"

enum { FX_C = 100, FX_F = 200, FX_H = 3, FX_D = 16, FX_CTX = 40, FX_POINTS = 8 };

static const weir_point fx_point[FX_POINTS] = {
    {"hook_embed", WEIR_SITE_EMBED, -1, 2, FX_C, 1, FX_C, "T C", false, false, false},
    {"blocks.0.hook_resid_pre", WEIR_SITE_RESID_PRE, 0, 2, FX_C, 1, FX_C, "T C", false, false, false},
    {"blocks.0.ln1.hook_scale", WEIR_SITE_LN1_SCALE, 0, 2, 1, 1, 1, "T 1", false, false, false},
    {"blocks.0.attn.hook_q", WEIR_SITE_Q, 0, 3, FX_H *FX_D, FX_H, FX_D, "T H D", false, false, false},
    {"blocks.0.attn.hook_attn_scores", WEIR_SITE_SCORES, 0, 3, FX_H *FX_CTX, FX_H, FX_CTX, "T H S", true, false, false},
    {"blocks.0.attn.hook_pattern", WEIR_SITE_PATTERN, 0, 3, FX_H *FX_CTX, FX_H, FX_CTX, "T H S", true, false, false},
    {"blocks.0.attn.hook_result", WEIR_SITE_RESULT, 0, 3, FX_H *FX_C, FX_H, FX_C, "T H C", false, true, false},
    {"blocks.10.mlp.hook_post", WEIR_SITE_MLP_POST, 10, 2, FX_F, 1, FX_F, "T F", false, false, false},
};

static inline weir_str fx_vocab(const void *user, int32_t id)
{
    static const char *const text[] = {"", " the", "caf\xc3\xa9", "\xff", "\n"};
    (void)user;
    return (weir_str){text[id], strlen(text[id])};
}

static inline weir_dump_header fx_header(void)
{
    return (weir_dump_header){.model = "toy",
                              .family = "gpt2",
                              .fingerprint = "00ff",
                              .tokenizer_fingerprint = "11ee",
                              .dtype = "F32",
                              .ctx = FX_CTX,
                              .n_vocab = 5,
                              .vocab = fx_vocab};
}

/* The value of element e of point p in row r: floats with well-filled mantissas, of both signs. */
static inline float fx_value(int p, int64_t r, int64_t e)
{
    uint64_t x = (uint64_t)r * 2654435761u + (uint64_t)e * 40503u + (uint64_t)p * 977u + 1;
    x ^= x >> 17;
    x *= 0xed5ad4bbac4c1b51u;
    x ^= x >> 31;
    return (float)((int64_t)(x & 0xffffff) - 0x800000) / 65536.0f;
}

/* One pass: n rows from row `first` on, all of one sequence of n tokens. Rows with r % drop == drop - 1 are context
 * only (drop 0: none). */
typedef struct fx_pass {
    weir_rows rows;
    int32_t *id, *seq;
    int64_t *pos, *len, *tag;
    uint8_t *keep;
    float *data;
} fx_pass;

static inline void fx_pass_make(fx_pass *p, int64_t first, int64_t n, int64_t tag, int drop)
{
    p->id = calloc((size_t)n, sizeof *p->id);
    p->seq = calloc((size_t)n, sizeof *p->seq);
    p->pos = calloc((size_t)n, sizeof *p->pos);
    p->len = calloc((size_t)n, sizeof *p->len);
    p->tag = calloc((size_t)n, sizeof *p->tag);
    p->keep = calloc((size_t)n, 1);
    p->data = calloc((size_t)n * FX_H * FX_C, sizeof *p->data);
    for (int64_t i = 0; i < n; i++) {
        p->id[i] = (int32_t)((first + i) % 5);
        p->pos[i] = i;
        p->len[i] = i + 1;
        p->tag[i] = tag;
        p->keep[i] = !(drop && i % drop == drop - 1);
    }
    p->rows = (weir_rows){.n = n,
                          .id = p->id,
                          .seq = p->seq,
                          .pos = p->pos,
                          .keep = p->keep,
                          .len = p->len,
                          .tag = p->tag,
                          .doc_pos = p->pos,
                          .doc_len = p->len};
}

static inline void fx_pass_free(fx_pass *p)
{
    free(p->id);
    free(p->seq);
    free(p->pos);
    free(p->len);
    free(p->tag);
    free(p->keep);
    free(p->data);
}

/* Keys that a pass of n rows has: as long as the sequence. */
static inline int64_t fx_size(int point, int64_t n)
{
    weir_site site = fx_point[point].site;
    return site == WEIR_SITE_SCORES || site == WEIR_SITE_PATTERN ? n : fx_point[point].size;
}

/* The value of point `point` for the pass; `first` is the number of its first row over all passes. */
static inline weir_value fx_fill(fx_pass *p, int point, int64_t first)
{
    const weir_point *pt = &fx_point[point];
    int64_t size = fx_size(point, p->rows.n), width = pt->heads * size;
    for (int64_t i = 0; i < p->rows.n; i++)
        for (int64_t e = 0; e < width; e++) {
            int64_t key = e % size;
            float masked = pt->site == WEIR_SITE_SCORES ? -1.0f / 0.0f : 0.0f;
            bool future = (pt->site == WEIR_SITE_SCORES || pt->site == WEIR_SITE_PATTERN) && key > i;
            p->data[i * width + e] = future ? masked : fx_value(point, first + i, e / size * 64 + key);
        }
    return (weir_value){pt, p->data, width, pt->heads, size, &p->rows};
}

/* /tokens for the kept rows of a pass. */
static inline weir_status fx_tokens(weir_dump *d, const fx_pass *p, int64_t doc, weir_err *err)
{
    for (int64_t i = 0; i < p->rows.n; i++) {
        const int64_t off = 4 * i, len = 4;
        const uint8_t flags = i == 0;
        const float logprob = -0.5f * (float)i;
        const weir_token_rows t = {1, &p->id[i], &doc, &p->pos[i], &p->pos[i], &off, &len, &flags, &logprob};
        if (!p->keep[i])
            continue;
        weir_status st = weir_dump_tokens(d, &t, err);
        if (st)
            return st;
    }
    return WEIR_OK;
}

/* NAME in the test's own directory (support/scratch.h). */
static inline const char *fx_path(char buf[512], const char *name)
{
    snprintf(buf, 512, "%s/%s", scratch_root, name);
    return buf;
}

#endif

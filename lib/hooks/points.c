/* The hook points of a model: one table of sites, expanded by the model's sizes. A new point is a row here, a
 * weir_site, and the line of lib/run that lets it be heard. */
#include <stdio.h>
#include <string.h>

#include "../base/mem.h"
#include "../run/listen.h"
#include "points.h"

/* Which models have a point. */
typedef enum when { ALWAYS, LEARNED, ROPE, SERIAL, GATED, SANDWICH, CAPPED, NORMED_HEADS } when;

/* Shapes of one row. */
typedef enum row { ONE, WIDTH, HIDDEN, VOCAB, QUERIES, KEYS, ONE_A_QUERY, ONE_A_KEY, MAPS, RESULTS } row;

static const struct site {
    const char *name; /* in a block: behind "blocks.L." */
    row row;
    when when;
} sites[WEIR_SITE_COUNT] = {
    [WEIR_SITE_EMBED] = {"hook_embed", WIDTH, ALWAYS},
    [WEIR_SITE_POS_EMBED] = {"hook_pos_embed", WIDTH, LEARNED},
    [WEIR_SITE_RESID_PRE] = {"hook_resid_pre", WIDTH, ALWAYS},
    [WEIR_SITE_LN1_SCALE] = {"ln1.hook_scale", ONE, ALWAYS},
    [WEIR_SITE_LN1_NORM] = {"ln1.hook_normalized", WIDTH, ALWAYS},
    [WEIR_SITE_LN1_OUT] = {"ln1.hook_out", WIDTH, ALWAYS},
    [WEIR_SITE_Q] = {"attn.hook_q", QUERIES, ALWAYS},
    [WEIR_SITE_K] = {"attn.hook_k", KEYS, ALWAYS},
    [WEIR_SITE_V] = {"attn.hook_v", KEYS, ALWAYS},
    [WEIR_SITE_Q_NORM_SCALE] = {"attn.q_norm.hook_scale", ONE_A_QUERY, NORMED_HEADS},
    [WEIR_SITE_Q_NORM_NORM] = {"attn.q_norm.hook_normalized", QUERIES, NORMED_HEADS},
    [WEIR_SITE_Q_NORM_OUT] = {"attn.q_norm.hook_out", QUERIES, NORMED_HEADS},
    [WEIR_SITE_K_NORM_SCALE] = {"attn.k_norm.hook_scale", ONE_A_KEY, NORMED_HEADS},
    [WEIR_SITE_K_NORM_NORM] = {"attn.k_norm.hook_normalized", KEYS, NORMED_HEADS},
    [WEIR_SITE_K_NORM_OUT] = {"attn.k_norm.hook_out", KEYS, NORMED_HEADS},
    [WEIR_SITE_ROT_Q] = {"attn.hook_rot_q", QUERIES, ROPE},
    [WEIR_SITE_ROT_K] = {"attn.hook_rot_k", KEYS, ROPE},
    [WEIR_SITE_SCORES] = {"attn.hook_attn_scores", MAPS, ALWAYS},
    [WEIR_SITE_PATTERN] = {"attn.hook_pattern", MAPS, ALWAYS},
    [WEIR_SITE_Z] = {"attn.hook_z", QUERIES, ALWAYS},
    [WEIR_SITE_RESULT] = {"attn.hook_result", RESULTS, ALWAYS},
    [WEIR_SITE_LN1_POST_SCALE] = {"ln1_post.hook_scale", ONE, SANDWICH},
    [WEIR_SITE_LN1_POST_NORM] = {"ln1_post.hook_normalized", WIDTH, SANDWICH},
    [WEIR_SITE_ATTN_OUT] = {"hook_attn_out", WIDTH, ALWAYS},
    [WEIR_SITE_RESID_MID] = {"hook_resid_mid", WIDTH, SERIAL},
    [WEIR_SITE_LN2_SCALE] = {"ln2.hook_scale", ONE, ALWAYS},
    [WEIR_SITE_LN2_NORM] = {"ln2.hook_normalized", WIDTH, ALWAYS},
    [WEIR_SITE_LN2_OUT] = {"ln2.hook_out", WIDTH, ALWAYS},
    [WEIR_SITE_MLP_PRE] = {"mlp.hook_pre", HIDDEN, ALWAYS},
    [WEIR_SITE_MLP_PRE_LINEAR] = {"mlp.hook_pre_linear", HIDDEN, GATED},
    [WEIR_SITE_MLP_POST] = {"mlp.hook_post", HIDDEN, ALWAYS},
    [WEIR_SITE_LN2_POST_SCALE] = {"ln2_post.hook_scale", ONE, SANDWICH},
    [WEIR_SITE_LN2_POST_NORM] = {"ln2_post.hook_normalized", WIDTH, SANDWICH},
    [WEIR_SITE_MLP_OUT] = {"hook_mlp_out", WIDTH, ALWAYS},
    [WEIR_SITE_RESID_POST] = {"hook_resid_post", WIDTH, ALWAYS},
    [WEIR_SITE_LNF_SCALE] = {"ln_final.hook_scale", ONE, ALWAYS},
    [WEIR_SITE_LNF_NORM] = {"ln_final.hook_normalized", WIDTH, ALWAYS},
    [WEIR_SITE_LNF_OUT] = {"ln_final.hook_out", WIDTH, ALWAYS},
    [WEIR_SITE_UNEMBED_IN] = {"unembed.hook_in", WIDTH, ALWAYS},
    [WEIR_SITE_UNEMBED_OUT] = {"unembed.hook_out", VOCAB, ALWAYS},
    [WEIR_SITE_LOGITS] = {"hook_logits", VOCAB, CAPPED},
};

const char *weir_site_name(weir_site site)
{
    return sites[site].name;
}

static bool has(const weir_spec *s, when w)
{
    switch (w) {
    case ALWAYS:
        return true;
    case LEARNED:
        return s->positions == WEIR_POS_LEARNED;
    case ROPE:
        return s->positions == WEIR_POS_ROPE;
    case SERIAL:
        return !s->parallel;
    case GATED:
        return s->gated;
    case SANDWICH:
        return s->post_norms;
    case CAPPED:
        return s->logit_softcap != 0;
    case NORMED_HEADS:
        return s->qk_norms;
    }
    return false;
}

static void shape(const weir_spec *s, weir_point *p, row r)
{
    switch (r) {
    case ONE:
        *p = (weir_point){.rank = 2, .heads = 1, .size = 1, .letters = "T 1"};
        break;
    case WIDTH:
        *p = (weir_point){.rank = 2, .heads = 1, .size = s->C, .letters = "T C"};
        break;
    case HIDDEN:
        *p = (weir_point){.rank = 2, .heads = 1, .size = s->F, .letters = "T F"};
        break;
    case VOCAB:
        *p = (weir_point){.rank = 2, .heads = 1, .size = s->V, .letters = "T V"};
        break;
    case QUERIES:
        *p = (weir_point){.rank = 3, .heads = s->H, .size = s->D, .letters = "T H D"};
        break;
    case KEYS:
        *p = (weir_point){.rank = 3, .heads = s->K, .size = s->D, .letters = "T K D"};
        break;
    case ONE_A_QUERY:
        *p = (weir_point){.rank = 3, .heads = s->H, .size = 1, .letters = "T H 1"};
        break;
    case ONE_A_KEY:
        *p = (weir_point){.rank = 3, .heads = s->K, .size = 1, .letters = "T K 1"};
        break;
    case MAPS:
        *p = (weir_point){.rank = 3, .heads = s->H, .size = s->ctx, .letters = "T H S", .keyed = true};
        break;
    case RESULTS:
        *p = (weir_point){.rank = 3, .heads = s->H, .size = s->C, .letters = "T H C", .read_only = true};
        break;
    }
    p->width = p->heads * p->size;
}

/* A model's points; names and array live in the arena. */
typedef struct points {
    weir_arena arena;
    weir_point *point;
    int64_t n;
} points;

/* One group of sites: before the blocks (layer -1), a block, or behind the blocks. */
static bool add_group(points *ps, const weir_spec *s, weir_site from, weir_site to, int64_t layer)
{
    for (int site = from; site <= (int)to; site++) {
        if (!has(s, sites[site].when))
            continue;
        char name[96];
        if (layer < 0)
            snprintf(name, sizeof name, "%s", sites[site].name);
        else
            snprintf(name, sizeof name, "blocks.%lld.%s", (long long)layer, sites[site].name);
        weir_point *p = &ps->point[ps->n++];
        shape(s, p, sites[site].row);
        p->site = (weir_site)site;
        p->layer = (int)layer;
        p->name = weir_arena_strndup(&ps->arena, name, strlen(name));
        if (!p->name)
            return false;
    }
    return true;
}

/* Behind the points of the forward pass those of their gradients. */
static bool add_gradients(points *ps)
{
    for (int64_t i = 0; i < ps->n; i++) {
        char name[96];
        weir_point *p = &ps->point[ps->n + i];
        const int n = snprintf(name, sizeof name, "%s_grad", ps->point[i].name);
        *p = ps->point[i];
        p->grad = true;
        p->name = weir_arena_strndup(&ps->arena, name, (size_t)n);
        if (!p->name)
            return false;
    }
    return true;
}

static void points_free(void *self)
{
    points *ps = self;
    weir_arena_free(&ps->arena);
    weir_free(ps);
}

static bool build(points *ps, const weir_spec *s)
{
    int64_t most;
    if (!weir_mul64(s->L + 1, 2 * WEIR_SITE_COUNT, &most))
        return false;
    ps->point = weir_arena_alloc(&ps->arena, (size_t)most, sizeof *ps->point);
    bool ok = ps->point && add_group(ps, s, WEIR_SITE_EMBED, WEIR_SITE_POS_EMBED, -1);
    for (int64_t l = 0; ok && l < s->L; l++)
        ok = add_group(ps, s, WEIR_SITE_RESID_PRE, WEIR_SITE_RESID_POST, l);
    return ok && add_group(ps, s, WEIR_SITE_LNF_SCALE, WEIR_SITE_LOGITS, -1) && add_gradients(ps);
}

static void *points_new(const weir_model *m)
{
    points *ps = weir_calloc(1, sizeof *ps);
    if (ps && !build(ps, weir_model_spec(m))) {
        points_free(ps);
        return NULL;
    }
    return ps;
}

int64_t weir_model_points(const weir_model *m, const weir_point **out)
{
    const points *ps = weir_model_keep(m, points_new, points_free);
    *out = ps ? ps->point : NULL;
    return ps ? ps->n : 0;
}

int64_t weir_model_points_all(const weir_model *m, const weir_point **out)
{
    return 2 * weir_model_points(m, out);
}

weir_status weir_point_map_init(weir_point_map *map, const weir_model *m, weir_err *err)
{
    map->n = weir_model_points(m, &map->point);
    if (map->n == 0)
        return weir_nomem(err, "the list of hook points");
    map->all = 2 * map->n;
    map->first = map->stride = 0;
    for (int s = 0; s < WEIR_SITE_COUNT; s++)
        map->at[s] = -1;
    for (int64_t i = 0; i < map->n; i++) {
        const weir_point *p = &map->point[i];
        if (p->layer == 0 && !map->stride)
            map->first = i;
        if (p->layer == 0) {
            map->at[p->site] = (int)(i - map->first);
            map->stride = i - map->first + 1;
        } else if (p->layer < 0) {
            map->at[p->site] = (int)i;
        }
    }
    return WEIR_OK;
}

/* Names compare with hyphens read as underscores. */
static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if ((*a == '-' ? '_' : *a) != *b)
            return false;
    return *a == *b;
}

const weir_point *weir_model_point(const weir_model *m, const char *name)
{
    const weir_point *p;
    int64_t n = weir_model_points_all(m, &p);
    for (int64_t i = 0; i < n; i++)
        if (same_name(name, p[i].name))
            return &p[i];
    return NULL;
}

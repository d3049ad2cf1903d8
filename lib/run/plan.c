/* Every buffer of a run, laid out in one arena.
 *
 *     | stream, norms, rows, caches | attention ... |
 *                                   | MLP ...       |   these three are never alive together,
 *                                   | logits ...    |   so they share their memory
 *
 * layout() runs twice: without memory it measures, with memory it hands out. What no hook asked for has no place.
 */
#include <string.h>

#include "state.h"

enum { TILE_BYTES = 16 << 20 };

static bool inside_norms_wanted(const weir_run *r)
{
    static const weir_site inside[] = {WEIR_SITE_LN1_SCALE,      WEIR_SITE_LN1_NORM,      WEIR_SITE_LN1_POST_SCALE,
                                       WEIR_SITE_LN1_POST_NORM,  WEIR_SITE_LN2_SCALE,     WEIR_SITE_LN2_NORM,
                                       WEIR_SITE_LN2_POST_SCALE, WEIR_SITE_LN2_POST_NORM, WEIR_SITE_LNF_SCALE,
                                       WEIR_SITE_LNF_NORM,       WEIR_SITE_Q_NORM_SCALE,  WEIR_SITE_Q_NORM_NORM,
                                       WEIR_SITE_K_NORM_SCALE,   WEIR_SITE_K_NORM_NORM};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (weir_run_site_wanted(r, inside[i]))
            return true;
    return false;
}

/* What edits work with; returns their largest rank. */
static int64_t layout_edits(weir_run *r, weir_carver *c)
{
    int64_t rank = 0, width = 0;
    for (int i = 0; i < r->n_edits; i++) {
        const int64_t k = weir_edit_rank(r->edit[i]), n = weir_edit_width(r->edit[i]);
        rank = k > rank ? k : rank;
        width = n > width ? n : width;
    }
    if (r->n_edits) {
        r->b.edit_s = weir_carve_floats(c, r->max_rows, rank);
        r->b.edit_d = weir_carve_floats(c, r->max_rows, width);
    }
    return rank;
}

static void layout_stream(weir_run *r, weir_carver *c)
{
    const weir_spec *s = r->spec;
    weir_buffers *b = &r->b;
    int64_t t = r->max_rows;
    b->x = b->stream = weir_carve_floats(c, t, s->C);
    b->h = weir_carve_floats(c, t, s->C);
    b->final = r->tape.on ? weir_carve_floats(c, t, s->C) : b->h;
    b->attn_out = weir_carve_floats(c, t, s->C);
    b->mlp_out = s->parallel ? weir_carve_floats(c, t, s->C) : b->attn_out;
    if (inside_norms_wanted(r)) {
        const int64_t heads = s->qk_norms ? s->H : 1, width = heads * s->D;
        b->scale = weir_carve_floats(c, t, heads);
        b->norm = weir_carve_floats(c, t, s->qk_norms && width > s->C ? width : s->C);
    }
    if (s->positions == WEIR_POS_ROPE)
        b->cos_sin = weir_carve_floats(c, r->max_len, s->rot);
    int64_t slots;
    if (!weir_mul64(r->n_slots, r->kv_layers, &slots))
        c->overflow = true;
    else
        b->cache = weir_carve_floats(c, slots, weir_kv_slot_floats(r));
    int64_t k_most = s->H * s->D;
    k_most = k_most > s->C ? k_most : s->C;
    k_most = k_most > s->F ? k_most : s->F;
    const int64_t rank = layout_edits(r, c);
    k_most = k_most > rank ? k_most : rank;
    b->gemm = weir_carve(c, (int64_t)weir_gemm_scratch(t, k_most, r->threads), 1, 1);
}

static void layout_rows(weir_run *r, weir_carver *c)
{
    weir_buffers *b = &r->b;
    int64_t t = r->max_rows;
    b->id = weir_carve(c, t, 1, sizeof *b->id);
    b->seq = weir_carve(c, t, 1, sizeof *b->seq);
    b->pos = weir_carve(c, t, 1, sizeof *b->pos);
    b->len = weir_carve(c, t, 1, sizeof *b->len);
    b->tag = weir_carve(c, t, 1, sizeof *b->tag);
    b->doc_pos = weir_carve(c, t, 1, sizeof *b->doc_pos);
    b->doc_len = weir_carve(c, t, 1, sizeof *b->doc_len);
    b->keep = weir_carve(c, t, 1, sizeof *b->keep);
    b->span = weir_carve(c, t, 1, sizeof *b->span);
    b->slot = weir_carve(c, t, 1, sizeof *b->slot);
    b->group = weir_carve(c, t, 1, sizeof *b->group);
}

static void layout_attention(weir_run *r, weir_carver *c)
{
    const weir_spec *s = r->spec;
    weir_buffers *b = &r->b;
    int64_t t = r->max_rows, maps = t * s->H;
    if (!r->tape.on) {
        b->q = weir_carve_floats(c, t, s->H * s->D);
        b->k = weir_carve_floats(c, t, s->K * s->D);
        b->v = weir_carve_floats(c, t, s->K * s->D);
        b->q_in = b->q, b->k_in = b->k;
    }
    b->z = weir_carve_floats(c, t, s->H * s->D);
    b->keys = weir_carve_floats(c, r->key_floats, 1);
    b->values = weir_carve_floats(c, t, weir_kv_value_floats(r, 1));
    if (weir_run_site_wanted(r, WEIR_SITE_SCORES) || weir_run_site_wanted(r, WEIR_SITE_PATTERN))
        b->maps = b->pattern = b->scores = weir_carve_floats(c, maps, r->max_len);
    if (weir_run_site_wanted(r, WEIR_SITE_RESULT))
        b->result = weir_carve_floats(c, maps, s->C);
    b->attn = weir_carve(c, (int64_t)weir_attn_scratch(r->max_len, s->D, r->threads), 1, 1);
}

static void layout_mlp(weir_run *r, weir_carver *c)
{
    weir_buffers *b = &r->b;
    const int64_t t = r->max_rows, f = r->spec->F;
    if (r->tape.on) {
        b->post = weir_carve_floats(c, t, f);
        return;
    }
    b->up = r->spec->gated ? weir_carve_floats(c, t, f) : NULL;
    b->post = b->pre = weir_carve_floats(c, t, f);
}

static void layout_logits(weir_run *r, weir_carver *c)
{
    if (weir_run_site_wanted(r, WEIR_SITE_UNEMBED_OUT) || weir_run_site_wanted(r, WEIR_SITE_LOGITS))
        r->b.logits = weir_carve_floats(c, r->max_rows, r->spec->V);
}

static void layout_final(weir_run *r, weir_carver *c)
{
    const weir_spec *s = r->spec;
    weir_buffers *b = &r->b;
    if (!r->tape.on)
        layout_logits(r, c);
    if (r->flags & WEIR_FINAL)
        b->tile = weir_carve_floats(c, r->tile_rows, s->V);
}

/* Sets every pointer of r->b in memory that begins at base, or to NULL; returns the bytes that it takes, -1 if they
 * overflow. */
static int64_t layout(weir_run *r, char *base)
{
    weir_carver c = {.base = base};
    memset(&r->b, 0, sizeof r->b);
    layout_stream(r, &c);
    layout_rows(r, &c);
    if (r->tape.on) {
        weir_tape_layout(r, &c);
        layout_logits(r, &c); /* the way back needs them when it uses attention's memory again */
    }
    int64_t shared = c.at;
    layout_attention(r, &c);
    c.at = shared;
    layout_mlp(r, &c);
    c.at = shared;
    layout_final(r, &c);
    return c.overflow ? -1 : c.peak;
}

/* weir_run_order of the last value that a hook wants; -1: none. */
static int64_t last_heard(const weir_run *r)
{
    (void)r;
#ifndef WEIR_BENCH_NO_HOOKS
    for (int64_t i = r->map.n - 1; i >= 0; i--)
        if (r->hooks.want[i] != WEIR_NONE)
            return weir_run_order(r, r->map.point[i].layer, r->map.point[i].site);
#endif
    return -1;
}

int64_t weir_run_aim(weir_run *r, int flags)
{
    r->last = flags & WEIR_FINAL ? INT64_MAX : r->last_heard; /* behind every hook: the pass ends by itself */
    int64_t layers = 0;
    while (layers < r->spec->L && weir_run_needs(r, layers, WEIR_SITE_SCORES))
        layers++;
    return layers;
}

/* Room for the largest sequence, or for several rows of panels of short ones. */
static void size_tiles(weir_run *r)
{
    const weir_spec *s = r->spec;
    int64_t keys = r->max_len + WEIR_PANEL;
    if (keys < 4 * r->max_rows)
        keys = 4 * r->max_rows;
    r->key_floats = (int64_t)weir_attn_k_floats(s->K, s->D, keys);
    r->tile_rows = TILE_BYTES / ((int64_t)sizeof(float) * s->V);
    if (r->tile_rows < 8)
        r->tile_rows = 8;
    if (r->tile_rows > r->max_rows)
        r->tile_rows = r->max_rows;
}

/* The kernels multiply their own sizes unchecked: rows or keys by a width, keys by the threads, a small constant. */
static bool kernels_can_count(const weir_run *r)
{
    enum { FACTOR = 256 };
    const weir_spec *s = r->spec;
    int64_t rows = r->max_len > r->max_rows ? r->max_len : r->max_rows, width = s->H * s->D, n;
    width = width > s->C ? width : s->C;
    width = width > s->F ? width : s->F;
    for (int i = 0; i < r->n_edits; i++)
        width = width > weir_edit_rank(r->edit[i]) ? width : weir_edit_rank(r->edit[i]);
    return weir_mul64(4 * (rows + WEIR_PANEL), FACTOR, &rows) && weir_mul64(rows, width, &n) &&
           weir_mul64(rows, r->threads, &n);
}

/* The caller's bound covers the arena and packed weights. They need not all find room at once: the rest of the bound is
 * theirs, and it has to be enough for the largest part that is leased as a whole. */
static weir_status check_bound(weir_run *r, int64_t arena, weir_err *err)
{
    r->room = INT64_MAX;
    if (!r->memory)
        return WEIR_OK;
    int64_t layers = 0;
    while (layers < r->spec->L && weir_run_needs(r, layers, WEIR_SITE_LN1_SCALE))
        layers++;
    bool head = r->flags & WEIR_FINAL || weir_run_needs(r, -1, WEIR_SITE_UNEMBED_OUT);
    int64_t largest = weir_model_largest_bytes(r->model, layers, head);
    r->room = r->memory - arena;
    if (largest <= r->room)
        return WEIR_OK;
    return weir_fail(
        err, WEIR_E_NOMEM,
        "the run needs %lld bytes for its rows and %lld for the packed weights of one layer (%lld for all), "
        "but the bound is %lld: fewer rows or shorter windows need less",
        (long long)arena, (long long)largest, (long long)weir_model_weight_bytes(r->model, layers, head),
        (long long)r->memory);
}

static weir_status allocate(weir_run *r, weir_err *err)
{
    int64_t bytes = -1;
    if (kernels_can_count(r)) {
        size_tiles(r);
        bytes = layout(r, NULL);
    }
    if (bytes < 0)
        return weir_fail(err, WEIR_E_NOMEM, "the run's memory plan overflows: lower max_rows, max_len or slots");
    WEIR_TRY(check_bound(r, bytes, err));
    r->arena = weir_alloc_aligned((size_t)bytes);
    if (!r->arena)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory: the run needs %lld bytes; lower max_rows, max_len or slots",
                         (long long)bytes);
    r->arena_bytes = bytes;
    layout(r, r->arena);
    return WEIR_OK;
}

weir_status weir_run_prepare(weir_run *r, int flags, weir_err *err)
{
    flags &= ~WEIR_KEEP_SLOTS; /* needs no room */
    if (r->prepared && (flags & ~r->flags))
        return weir_fail(err, WEIR_E_ARG,
                         "the run was prepared without WEIR_FINAL: call weir_run_prepare with it first");
    if (r->prepared)
        return WEIR_OK;
    const weir_spec *s = r->spec;
    r->flags = flags;
    r->last_heard = last_heard(r);
    r->kv_layers = weir_run_aim(r, flags);
    if (r->by_layer && r->kv_layers > 1)
        r->kv_layers = 1;
    WEIR_TRY(allocate(r, err));
    if (r->b.cos_sin)
        weir_rope_table(r->b.cos_sin, r->max_len, s->rot, s->inv_freq, s->rope_factor);
    r->prepared = true;
    return WEIR_OK;
}

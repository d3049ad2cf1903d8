/* run/state.h: the inside of a run, and the parts that its files share.
 *
 *   run.c        making, options, hooks, finishing
 *   plan.c       every buffer of a run, in one arena
 *   kv.c         sequences: checks, rows, slots, keys and values
 *   forward.c    the pass: embedding, blocks, final norm
 *   by_layer.c   its parts one by one
 *   tape.c       what a pass keeps for the way back
 *   attention.c  the attention sublayer
 *   mlp.c        the MLP sublayer
 *   linear.c     products of rows with weights
 *   norm.c       norms and residual adds, fused where no hook stands between
 *   logits.c     unembedding on request
 */
#ifndef WEIR_RUN_STATE_H
#define WEIR_RUN_STATE_H

#include "../model/overlay.h"
#include "carve.h"
#include "listen.h"

/* A sequence that is kept between passes. */
typedef struct weir_slot {
    int64_t len;  /* tokens that it holds */
    int64_t from; /* layers [from, layers) have keys and values for all of them */
    int64_t layers;
    int64_t part; /* weir_run.part of the passes that filled it */
    int64_t n;    /* tokens that the running pass adds; 0: not part of it */
} weir_slot;

/* Everything that a pass writes. Shapes: T = max_rows, S = longest sequence, P = keys in panels (see kv.c). */
typedef struct weir_buffers {
    /* live through the pass */
    float *stream;       /* [T,C] where the residual stream begins */
    float *x;            /* [T,C] the residual stream: `stream`, or what the tape keeps of it */
    float *h;            /* [T,C] what a sublayer reads */
    float *final;        /* [T,C] what the unembedding reads: h, or memory of its own if there is a tape */
    float *attn_out;     /* [T,C] */
    float *mlp_out;      /* [T,C]; serial blocks: the same memory as attn_out */
    float *scale, *norm; /* [T], [T,C], of heads [T,H], [T,H,D]: only if a hook wants to see inside a norm */
    float *cos_sin;      /* [S,rot] */
    float *cache;        /* keys and values of the slots */
    void *gemm;
    float *edit_s, *edit_d; /* edits: what an update reads of x [T,r], and what it adds [T,n] */
    /* the rows */
    int32_t *id, *seq;
    int64_t *pos, *len, *tag, *doc_pos, *doc_len;
    uint8_t *keep;
    weir_attn_seq *span; /* [sequences of the pass] */
    int *slot;           /* [sequences of the pass] slot or -1 */
    int *group;          /* [sequences of the pass] number of the group that shares the key panels */
    /* attention only */
    float *q, *k, *v, *z;    /* [T,H,D] [T,K,D] [T,K,D] [T,H,D] */
    float *q_in, *k_in;      /* what norms of heads read, and leave in q and k; without a tape the same memory */
    float *keys, *values;    /* without a slot: this layer's keys (panels) and values */
    float *maps;             /* [T,H,S] if wanted */
    float *scores, *pattern; /* maps both: made in place; or what the tape keeps */
    float *result;           /* [T,H,C] if wanted */
    void *attn;
    /* MLP only */
    float *pre, *up, *post; /* [T,F]; without a tape post is pre: it is made in place */
    /* behind the blocks */
    float *logits; /* [T,V] if wanted */
    float *tile;   /* [tile_rows,V] for weir_run_logprobs */
} weir_buffers;

/* What the way back needs of a layer, as what followed saw it, so with what hooks wrote. Shapes as above. Layers that
 * are not kept share their memory (but for x), and their values are made again (weir_run_again). */
typedef struct weir_tape_layer {
    bool kept;
    float *own;              /* [T,C] the stream before the block; of layer L: before the final norm */
    float *x;                /* own, or where the pass began b.stream */
    float *mid;              /* [T,C] serial blocks: the stream between the sublayers */
    float *q, *k, *v;        /* as attention had them, so turned by RoPE */
    float *q_in, *k_in;      /* before the norms of heads, where there are any */
    float *pre, *up;         /* [T,F] */
    float *attn, *mlp;       /* [T,C] before the norms behind the sublayers, where there are any */
    float *scores, *pattern; /* [T,H,S] only where a hook writes to one of the two */
    float *scale[6];         /* [T], of heads [T,H] or [T,K], of a norm (weir_tape_norm) where a hook writes to it */
} weir_tape_layer;

typedef struct weir_tape {
    bool on;
    bool whole;             /* it is that of a pass that succeeded */
    int64_t bound, bytes;   /* that it may take (0: no bound), and takes */
    weir_tape_layer *layer; /* [L + 1] */
    float *capped;          /* [T,V] capped logits before a hook wrote to them; NULL: none does */
    uint8_t *silence;       /* [all points] nobody wants anything */
} weir_tape;

struct weir_run {
    const weir_model *model;
    const weir_spec *spec;
    const weir_kern *kern;
    int threads;
    int64_t max_rows, max_len; /* max_len: what one sequence can reach in this run */
    int64_t memory;
    bool by_layer;
    weir_tape tape;
    const weir_edit **edit; /* [n_edits] */
    int n_edits;
    weir_act act; /* of the MLPs: the model's, or the one that options put in its place */
    int n_slots;
    weir_slot *slot;
    weir_point_map map;
    weir_listeners hooks;
    /* the plan */
    bool prepared;
    int flags;
    int64_t last_heard; /* weir_run_order of the last value that a hook wants, or -1 */
    int64_t kv_layers;  /* layers with room for keys and values in each slot */
    int64_t room;       /* what packed weights may take */
    int64_t key_floats; /* room in b.keys */
    int64_t tile_rows;
    void *arena;
    int64_t arena_bytes;
    weir_buffers b;
    /* by_layer: the layer that is leased from one pass to the next; -1: none */
    int64_t leased;
    /* the pass */
    int64_t part; /* by_layer: which one (weir_run_part); else WEIR_ALL_PARTS */
    int64_t from; /* its first block; WEIR_EMBEDDING: the embedding comes before it */
    weir_rows rows;
    int64_t n_seq, longest; /* longest: S of this pass */
    int n_groups;
    int64_t last;           /* weir_run_order of the last value that this pass has to make, or -1 */
    bool ended;             /* the last value was heard: WEIR_STOP means done */
    bool normed;            /* h already holds the norm of x */
    int64_t layers;         /* layers whose keys and values this pass stores */
    bool final, unembedded; /* h is the unembedding's input; b.logits holds the logits */
    weir_err *err;          /* of the running call */
};

enum { WEIR_ALL_PARTS = -1, WEIR_EMBEDDING = -1 };

/* Place of a value in the order of the pass; layer is ignored outside the blocks. */
static inline int64_t weir_run_order(const weir_run *r, int64_t layer, weir_site site)
{
    if (weir_site_in_block(site))
        return (layer + 1) * WEIR_SITE_COUNT + site;
    return site < WEIR_SITE_RESID_PRE ? site : (r->spec->L + 1) * WEIR_SITE_COUNT + site;
}

/* Does anything listen to this value or to a later one? */
static inline bool weir_run_needs(const weir_run *r, int64_t layer, weir_site site)
{
    return weir_run_order(r, layer, site) <= r->last;
}

/* Index of a point in the model's list, or -1. */
static inline int64_t weir_run_point(const weir_run *r, int64_t layer, weir_site site)
{
    int at = r->map.at[site];
    if (at < 0 || !weir_site_in_block(site))
        return at;
    return r->map.first + layer * r->map.stride + at;
}

#ifdef WEIR_BENCH_NO_HOOKS
/* For the bench that shows what the machinery costs: nobody ever listens. */
static inline weir_want weir_run_want(const weir_run *r, int64_t layer, weir_site site)
{
    (void)r, (void)layer, (void)site;
    return WEIR_NONE;
}
static inline weir_status weir_run_hear(weir_run *r, int64_t layer, weir_site site, float *data)
{
    (void)r, (void)layer, (void)site, (void)data;
    return WEIR_OK;
}
#else
/* The strongest want of any hook at this point. */
static inline weir_want weir_run_want(const weir_run *r, int64_t layer, weir_site site)
{
    int64_t i = weir_run_point(r, layer, site);
    return i < 0 ? WEIR_NONE : (weir_want)r->hooks.want[i];
}

/* Lets the hooks hear a value. WEIR_STOP: the pass ends here, because a hook said so or because it was the last
 * (r->ended). */
WEIR_CHECKED weir_status weir_run_fire(weir_run *r, int64_t i, float *data);
static inline weir_status weir_run_hear(weir_run *r, int64_t layer, weir_site site, float *data)
{
    int64_t i = weir_run_point(r, layer, site);
    return i < 0 || r->hooks.want[i] == WEIR_NONE ? WEIR_OK : weir_run_fire(r, i, data);
}
#endif

/* Does any layer have a hook at this site? */
bool weir_run_site_wanted(const weir_run *r, weir_site site);

/* --- forward.c: the frame of a pass around its steps, and the steps */
WEIR_CHECKED weir_status weir_run_pass(weir_run *r, const weir_seq *seqs, int64_t n_seq, int flags,
                                       weir_status (*steps)(weir_run *r), weir_err *err);
WEIR_CHECKED weir_status weir_run_embed(weir_run *r);
WEIR_CHECKED weir_status weir_run_block(weir_run *r, int64_t layer);
WEIR_CHECKED weir_status weir_run_final(weir_run *r);

/* --- by_layer.c: gives the leased layer back. */
void weir_run_let_go(weir_run *r);

/* --- plan.c: sets r->last for a pass with these flags; returns the layers whose keys and values it stores. */
int64_t weir_run_aim(weir_run *r, int flags);

/* --- kv.c */
/* Checks the sequences and lays out the rows of a pass. */
WEIR_CHECKED weir_status weir_kv_begin(weir_run *r, const weir_seq *seqs, int64_t n_seq);
/* Points the spans of slots at a layer's keys and values. */
void weir_kv_layer(weir_run *r, int64_t layer);
/* Spans [*from, *to) of a group. */
void weir_kv_group(const weir_run *r, int group, int64_t *from, int64_t *to);
/* The slots now hold the rows of the pass. */
void weir_kv_commit(weir_run *r);
/* The first block that a pass goes through. */
static inline int64_t weir_run_first(const weir_run *r)
{
    return r->from < 0 ? 0 : r->from;
}
int64_t weir_kv_slot_floats(const weir_run *r); /* one slot, one layer */
int64_t weir_kv_value_floats(const weir_run *r, int64_t len);

/* --- norm.c */
/* A norm of the model: its weights and where its values are heard. scale is its first site; the normalized values come
 * next, and for the norms that sublayers read and those of heads, hook_out. */
typedef struct weir_norm_at {
    weir_normw w;
    int64_t layer;
    weir_site scale;
} weir_norm_at;
/* Vectors in a row that the norm with this first site takes one by one: the heads of q or k; of the stream there is
 * one. */
static inline int64_t weir_norm_heads(const weir_spec *s, weir_site scale)
{
    return scale == WEIR_SITE_Q_NORM_SCALE ? s->H : scale == WEIR_SITE_K_NORM_SCALE ? s->K : 1;
}
/* And how wide each is. */
static inline int64_t weir_norm_width(const weir_spec *s, weir_site scale)
{
    return scale == WEIR_SITE_Q_NORM_SCALE || scale == WEIR_SITE_K_NORM_SCALE ? s->D : s->C;
}
/* out = norm of x, with hooks at its scale and its normalized values. Of heads out may be x. */
WEIR_CHECKED weir_status weir_run_norm(weir_run *r, const weir_norm_at *n, const float *x, float *out);
/* h = norm of the stream, heard at hook_out. */
WEIR_CHECKED weir_status weir_run_norm_stream(weir_run *r, const weir_norm_at *n);
/* x += y, heard at `site`. next: the norm that will read x, or NULL; it is computed in the same pass over the rows if
 * no hook can tell. */
WEIR_CHECKED weir_status weir_run_add_stream(weir_run *r, int64_t layer, weir_site site, const float *y,
                                             const weir_norm_at *next);

/* --- linear.c */
typedef struct weir_linear_to {
    weir_matrix matrix;
    const weir_linear *w;
    float *y;  /* [rows,n] */
    int64_t n; /* columns */
} weir_linear_to;
/* y = x W + bias, and then what edits of the layer add, for n of its matrices that read the same x [rows,k]. */
void weir_run_linear(weir_run *r, int64_t layer, const float *x, int64_t rows, int64_t k, const weir_linear_to *to,
                     int n);
/* What edits add to y [rows,ldy] from columns [k0, k0 + kn) of the matrix's input: x [rows,ldx] begins with k0. */
typedef struct weir_edited {
    int64_t layer;
    weir_matrix matrix;
    const float *x;
    int64_t ldx, k0, kn;
    float *y;
    int64_t ldy;
} weir_edited;
void weir_run_add_edits(weir_run *r, int64_t rows, const weir_edited *to);

/* --- tape.c */
WEIR_CHECKED weir_status weir_tape_init(weir_run *r, weir_err *err);
void weir_tape_free(weir_run *r);
/* Its memory, as part of the plan. */
void weir_tape_layout(weir_run *r, weir_carver *c);
/* A pass begins: its stream is b.stream. */
void weir_tape_begin(weir_run *r);
/* A block begins: its values go to the tape. */
void weir_tape_enter(weir_run *r, int64_t layer);
/* Where the sum goes that is heard at `site`, RESID_MID or RESID_POST. */
float *weir_tape_sum(const weir_run *r, int64_t layer, weir_site site);
/* Keeps the scale [n] of a norm that a hook writes to. site: its first one. */
void weir_tape_scale(const weir_run *r, int64_t layer, weir_site site, const float *scale, int64_t n);
/* Which of weir_tape_layer.scale is that of the norm whose first site this is. */
int weir_tape_norm(weir_site site);
/* The values of a layer of the last pass that is not kept, made again with the same bits, unheard. */
WEIR_CHECKED weir_status weir_run_again(weir_run *r, int64_t layer, weir_err *err);

/* --- sublayers: h to attn_out, h to mlp_out */
WEIR_CHECKED weir_status weir_run_attention(weir_run *r, int64_t layer, const weir_layer *w);
WEIR_CHECKED weir_status weir_run_mlp(weir_run *r, int64_t layer, const weir_layer *w);

/* --- logits.c: logits of rows [row, row + n) of h, soft cap not applied */
WEIR_CHECKED weir_status weir_run_unembed(weir_run *r, int64_t row, int64_t n, float *out);
/* out [n,V] = the unembedding of h [n,C]. scratch: weir_gemm_scratch bytes. room: as in weir_model_head. */
typedef struct weir_unembedding {
    const weir_model *model;
    const weir_kern *kern;
    int threads;
    int64_t room;
    void *scratch;
} weir_unembedding;
WEIR_CHECKED weir_status weir_unembed(const weir_unembedding *u, const float *h, int64_t n, float *out, weir_err *err);

#endif

/* weir/hook.h: named points of the forward pass, selectors that choose among them, and hooks that listen or write
 * there.
 *
 * Points carry TransformerLens's names with its version 3 semantics (never one of its names for another tensor), and a
 * few of our own (`lnX.hook_out`, `ln1_post.*`, `ln2_post.*`, `hook_logits`). hooks/README.md lists every one with its
 * shape.
 *
 * A hook says once, for each point of the model, whether it wants to read or to write there; then, at every forward
 * pass, it is given the full tensor of each such point, in the order in which hooks were attached: a recorder attached
 * after an ablation sees the ablated values. A write takes effect in everything that follows it.
 */
#ifndef WEIR_HOOK_H
#define WEIR_HOOK_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of points. The short site names of selectors are in brackets. */
typedef enum weir_site {
    WEIR_SITE_EMBED,        /* hook_embed [T,C] */
    WEIR_SITE_POS_EMBED,    /* hook_pos_embed [T,C]; learned positions only */
    WEIR_SITE_RESID_PRE,    /* blocks.L.hook_resid_pre [T,C] (resid_pre) */
    WEIR_SITE_LN1_SCALE,    /* blocks.L.ln1.hook_scale [T,1]: sqrt(variance + eps) (LN) or sqrt(mean of squares + eps)
                               (RMS) */
    WEIR_SITE_LN1_NORM,     /* blocks.L.ln1.hook_normalized [T,C]: before gain and bias */
    WEIR_SITE_LN1_OUT,      /* blocks.L.ln1.hook_out [T,C]: after gain and bias; what attention reads (ln1) */
    WEIR_SITE_Q,            /* blocks.L.attn.hook_q [T,H,D]: with bias, before a norm of heads and RoPE (q) */
    WEIR_SITE_K,            /* blocks.L.attn.hook_k [T,K,D] (k) */
    WEIR_SITE_V,            /* blocks.L.attn.hook_v [T,K,D] (v) */
    WEIR_SITE_Q_NORM_SCALE, /* blocks.L.attn.q_norm.hook_scale [T,H,1], hook_normalized [T,H,D], hook_out [T,H,D]: the
                               norm of each head of q, before RoPE; models that have one (Qwen 3) */
    WEIR_SITE_Q_NORM_NORM,
    WEIR_SITE_Q_NORM_OUT,
    WEIR_SITE_K_NORM_SCALE, /* blocks.L.attn.k_norm.*: as q_norm, [T,K,1] and [T,K,D] */
    WEIR_SITE_K_NORM_NORM,
    WEIR_SITE_K_NORM_OUT,
    WEIR_SITE_ROT_Q,          /* blocks.L.attn.hook_rot_q [T,H,D]: after RoPE; rotary models only */
    WEIR_SITE_ROT_K,          /* blocks.L.attn.hook_rot_k [T,K,D] */
    WEIR_SITE_SCORES,         /* blocks.L.attn.hook_attn_scores [T,H,S]: scaled, capped, masked with -inf */
    WEIR_SITE_PATTERN,        /* blocks.L.attn.hook_pattern [T,H,S]: softmax of the scores (pattern) */
    WEIR_SITE_Z,              /* blocks.L.attn.hook_z [T,H,D]: pattern times v (z) */
    WEIR_SITE_RESULT,         /* blocks.L.attn.hook_result [T,H,C]: each head's z times its rows of W_O; read-only */
    WEIR_SITE_LN1_POST_SCALE, /* blocks.L.ln1_post.hook_scale, hook_normalized: norm after attention (Gemma 2) */
    WEIR_SITE_LN1_POST_NORM,
    WEIR_SITE_ATTN_OUT,  /* blocks.L.hook_attn_out [T,C]: exactly what is added to the stream (attn_out) */
    WEIR_SITE_RESID_MID, /* blocks.L.hook_resid_mid [T,C]: the stream itself; absent in parallel blocks (resid_mid) */
    WEIR_SITE_LN2_SCALE, /* blocks.L.ln2.*: as ln1; hook_out is what the MLP reads (ln2) */
    WEIR_SITE_LN2_NORM,
    WEIR_SITE_LN2_OUT,
    WEIR_SITE_MLP_PRE, /* blocks.L.mlp.hook_pre [T,F]: before the activation; gated models: the gate (pre, gate) */
    WEIR_SITE_MLP_PRE_LINEAR, /* blocks.L.mlp.hook_pre_linear [T,F]: gated models only: the up projection (up) */
    WEIR_SITE_MLP_POST,       /* blocks.L.mlp.hook_post [T,F]: input of the down projection: the neuron (post) */
    WEIR_SITE_LN2_POST_SCALE,
    WEIR_SITE_LN2_POST_NORM,
    WEIR_SITE_MLP_OUT,    /* blocks.L.hook_mlp_out [T,C] (mlp_out) */
    WEIR_SITE_RESID_POST, /* blocks.L.hook_resid_post [T,C] (resid_post) */
    WEIR_SITE_LNF_SCALE,  /* ln_final.hook_scale [T,1], hook_normalized [T,C], hook_out [T,C] */
    WEIR_SITE_LNF_NORM,
    WEIR_SITE_LNF_OUT,
    WEIR_SITE_UNEMBED_IN,  /* unembed.hook_in [T,C] */
    WEIR_SITE_UNEMBED_OUT, /* unembed.hook_out [T,V]: before a soft cap */
    WEIR_SITE_LOGITS,      /* hook_logits [T,V]: after the soft cap; models that have one */
    WEIR_SITE_COUNT
} weir_site;

/* A hook point of one model. Borrowed from the model. Points are listed in the order in which they fire. */
typedef struct weir_point {
    const char *name; /* "blocks.6.mlp.hook_post" */
    weir_site site;
    int layer;     /* -1: outside the blocks */
    int rank;      /* 2 or 3 */
    int64_t width; /* elements of one row: rank 2 the last axis, rank 3 heads * size; scores and pattern: H * S, S known
                      only in a run, here H * ctx */
    int64_t heads, size; /* rank 3: [T, heads, size]; rank 2: heads = 1, size = width */
    const char *letters; /* "T C", "T H D", ... */
    bool keyed;          /* scores and pattern: the last axis are keys, as many as the run has */
    bool read_only;
    bool grad; /* "NAME_grad": the gradient of a scalar with respect to point NAME (weir/grad.h) */
} weir_point;

/* The points of the forward pass, n of them. Behind them in the same array stand those of their gradients, point[n + i]
 * that of point[i], with the same shape; they are heard on the way back only. A hook that keeps something for each
 * point that it may be given has room for weir_model_points_all. */
WEIR_API int64_t weir_model_points(const weir_model *m, const weir_point **points);
WEIR_API int64_t weir_model_points_all(const weir_model *m, const weir_point **points);
/* Exact name, hyphens read as underscores; NULL when this model lacks it. */
WEIR_API const weir_point *weir_model_point(const weir_model *m, const char *name);

/* --- selectors: `blocks.{0,3}.mlp.hook_post[-1, 421]`, short sites such as `resid_post`, `L6N421`, `L6H3`.
 *
 * The name: globs * ? {a,b}; hyphens read as underscores. Scores, pattern and result, whose rows grow with the context
 * or with the heads, are selected by a glob only if it spells that word or matches nothing else: `*` leaves them out.
 * `_grad` at the end of a name, of a short site or of a unit (`L6N421_grad`) means the gradient, and nothing else does.
 * The brackets: [position], [position, unit] at points of rank 2, [position, head] and [position, head, unit] at points
 * of rank 3; the last axis of scores and pattern are keys. Each entry is a list joined by `+` of numbers and half-open
 * ranges a:b, negative ones counted from the end; `:` is all. */
typedef struct weir_selector weir_selector;

/* One text: a name with globs (* ? {a,b}), a short site, or a neuron or head; optional brackets. A selector that
 * matches no point of the model is an error that names the nearest one. */
WEIR_API WEIR_CHECKED weir_status weir_selector_parse(weir_selector **out, const weir_model *m, const char *text,
                                                      weir_err *err);
/* Several at once, as trace takes them; any may be NULL: hooks (comma-separated selectors; commas in braces and
 * brackets do not separate), layers ("6", "0-3,7" with both ends included, "all"), sites ("resid_post,post"; written
 * and read as hooks are). Layers limit what hooks and sites select in blocks; points outside the blocks are not touched
 * by them. Layers alone: the block's default set. All NULL: nothing is selected, an error. Several selectors add up;
 * for one point their positions and their units are joined separately. */
WEIR_API WEIR_CHECKED weir_status weir_selector_build(weir_selector **out, const weir_model *m, const char *hooks,
                                                      const char *layers, const char *sites, weir_err *err);
WEIR_API void weir_selector_free(weir_selector *s);
WEIR_API bool weir_selector_matches(const weir_selector *s, const weir_point *p);
WEIR_API int64_t weir_selector_count(const weir_selector *s);      /* points matched */
WEIR_API bool weir_selector_has_positions(const weir_selector *s); /* a position in brackets */
/* Is this row of p selected? pos of len: doc_pos and doc_len of weir_rows; pos -1 is met by `:` alone. */
WEIR_API bool weir_selector_row_at(const weir_selector *s, const weir_point *p, int64_t pos, int64_t len);
/* Elements of a row of p that are selected, ascending: *idx borrowed from s, *n their number; n = -1: all. Scores and
 * pattern: of a row [heads, ctx]; see weir_value_column. */
WEIR_API void weir_selector_units(const weir_selector *s, const weir_point *p, const int64_t **idx, int64_t *n);

/* --- what a hook is given */

/* The rows of one forward pass, sequences packed one after the other. Borrowed during the pass. */
typedef struct weir_rows {
    int64_t n;              /* T */
    const int32_t *id;      /* [T] token */
    const int32_t *seq;     /* [T] which sequence of the batch */
    const int64_t *pos;     /* [T] position in its window: what the position embedding and RoPE see */
    const uint8_t *keep;    /* [T] 1: a row that the user asked for; 0: context only */
    const int64_t *len;     /* [T] tokens of the row's sequence so far, cached ones included */
    const int64_t *tag;     /* [T] the caller's number for the sequence (weir_seq.tag): tools say the document's */
    const int64_t *doc_pos; /* [T] position in the document, whatever window it stands in; -1: none (a BOS that a later
                               window repeats). What positions in brackets mean */
    const int64_t *doc_len; /* [T] tokens of the document; where the caller does not know, those of the row's sequence
                               so far (`len`) */
    int threads;            /* threads of the run: a hook that computes much uses no more (0: one) */
} weir_rows;

typedef struct weir_value {
    const weir_point *point;
    float *data;         /* [T, heads, size], contiguous; write only if WEIR_WRITE was asked */
    int64_t width;       /* floats in a row */
    int64_t heads, size; /* as in the point; scores and pattern: size = S of this pass (longest sequence, cached keys
                          included), key index = position */
    const weir_rows *rows;
} weir_value;

/* Column in a row of v of an element that weir_selector_units gave. It is idx itself, but for scores and pattern, whose
 * rows have as many keys as this pass: there -1 means a key that the pass does not have. */
static inline int64_t weir_value_column(const weir_value *v, int64_t idx)
{
    if (v->size == v->point->size)
        return idx;
    int64_t head = idx / v->point->size, key = idx % v->point->size;
    return key < v->size ? head * v->size + key : -1;
}

typedef enum weir_want { WEIR_NONE = 0, WEIR_READ = 1, WEIR_WRITE = 2 } weir_want;

/* Changes whenever weir_hook_class, weir_value, weir_rows, weir_point or weir_site change: hooks built apart from the
 * library (shared objects) are refused when theirs differs. */
enum { WEIR_HOOK_ABI = 4 };

enum {
    /* The hook treats each value by itself, so that values of one layer may come for all documents before those of the
     * next (weir trace --order layer). Without it the hook is refused there by name. on_begin and on_end then stand
     * around each layer's share of a batch. */
    WEIR_HOOK_ANY_ORDER = 1,
    /* The hook knows of gradients: `wants` is asked about the points that are one (weir_point.grad) too, and a run
     * without a way back (weir_run_options.backward) refuses the hook if it wants one of them: nothing that is asked
     * for is left out in silence. Without the flag a hook hears no gradient, so that one which chooses by site or layer
     * alone is not given them for values. */
    WEIR_HOOK_GRADIENTS = 2
};

struct weir_dump; /* weir/record.h */

/* A kind of hook. One const object in one file; see hooks/template.c. */
typedef struct weir_hook_class {
    size_t struct_size; /* sizeof(weir_hook_class) */
    unsigned abi;       /* WEIR_HOOK_ABI */
    unsigned flags;     /* WEIR_HOOK_ANY_ORDER, WEIR_HOOK_GRADIENTS, both or 0 */
    const char *name;   /* "ablate" */
    const char *help;   /* one line */
    const char *args;   /* the grammar of its arguments, one line: "SEL[=zero]" */
    /* args: the text behind the colon of `--hook name:args`, or what a program passes; may be NULL. */
    weir_status (*create)(void **self, const weir_model *m, const char *args, weir_err *err);
    /* Asked once about each point of the forward pass, and with WEIR_HOOK_GRADIENTS about each gradient. What a hook
     * writes to a gradient goes on to the earlier ones. */
    weir_want (*wants)(void *self, const weir_point *p);
    /* Once, before the first pass, if the run records to a dump: the hook may declare datasets of its own in it
     * (weir_dump_own_new). Where a run goes on with what an interrupted one recorded (weir_dump_rows_done), the hook
     * sees only what is still missing; one that has to see all refuses here. d outlives the hook's last call. May be
     * NULL. */
    weir_status (*on_dump)(void *self, struct weir_dump *d, weir_err *err);
    /* Before the first value of a pass. May be NULL. */
    weir_status (*on_begin)(void *self, const weir_rows *rows, weir_err *err);
    /* WEIR_STOP ends the pass at once: hooks behind this one, and later values, see nothing of it. A run that records
     * cannot use such a pass; a hook that has seen enough says so in on_end. */
    weir_status (*on_value)(void *self, const weir_value *v, weir_err *err);
    /* Of a hook that writes: its derivative. v->point is a point that it wrote to in the last pass, v->data [T, width]
     * the gradient with respect to what it left there; it turns that into the gradient with respect to what it found:
     * zero where it set a value, the same where it added one, c times as much where it multiplied by c. Nothing is
     * counted as changed. Hooks are asked in the reverse order of attaching. A hook that writes and has none cannot be
     * attached to a run with a way back. May be NULL. */
    weir_status (*on_grad)(void *self, const weir_value *v, weir_err *err);
    /* Behind the last value of a pass, also of one that a hook stopped, but not of one that failed. May be NULL.
     * WEIR_STOP here means: enough. The pass is whole and succeeds, the other hooks' on_end are called too, and
     * weir_run_enough tells the program to run no further pass. In layer order no pass is whole before the last layer:
     * there it is an error, as WEIR_STOP from on_value is. */
    weir_status (*on_end)(void *self, const weir_rows *rows, weir_err *err);
    /* Once, after the last pass: write results. out: where text results go (may be NULL: none wanted). May be NULL. */
    weir_status (*finish)(void *self, FILE *out, weir_err *err);
    /* Of a hook that writes: the rows that it has changed so far, a row counted for each point and each pass. *missed:
     * rows that it was told to change but could not (a patch whose dump lacks them). May be NULL. */
    int64_t (*changed)(void *self, int64_t *missed);
    void (*destroy)(void *self); /* may be NULL */
} weir_hook_class;

/* Built-in hooks: every file of hooks/. */
WEIR_API int weir_hook_class_count(void);
WEIR_API const weir_hook_class *weir_hook_class_at(int i);
WEIR_API const weir_hook_class *weir_hook_class_find(const char *name);

/* The class in a shared object that was built from a file such as hooks/template.c (hooks/README.md has the command).
 * The object in it is called weir_hook_NAME, NAME being the file's name up to its first dot, with underscores for
 * hyphens and other signs: my-hook.so holds weir_hook_my_hook. A path without a slash is a file of the working
 * directory. Its weir_ functions are those of the running program: `weir` exports them all, and so does libweir.so.
 * Errors (WEIR_E_HOOK, the path in err->file): no such file, not loadable, no such object in it, built for another
 * WEIR_HOOK_ABI, incomplete. The shared object stays loaded until the program ends, because runs hold its class; a path
 * that is loaded twice gives the same class. Code in it runs with all rights of the program. */
WEIR_API WEIR_CHECKED weir_status weir_hook_class_load(const weir_hook_class **out, const char *path, weir_err *err);

/* --- arguments of hooks: the text behind the colon of `--hook NAME:ARGS`, as items between commas (commas in braces
 * and brackets do not separate). An item is `key=value`, a switch (a key alone), or a selector, which may also be
 * written `sel=SELECTOR`:
 *
 *     static const char *const keys[] = {"k=", "abs", NULL};      // k has a value, abs is a switch
 *     weir_hook_args *a;
 *     weir_hook_args_parse(&a, "topk", "post[:,0:8],resid_post,k=5,abs", keys, &err);
 *     weir_hook_args_selectors(a);                                // "post[:,0:8],resid_post"
 *     weir_hook_args_int(a, "k", 1, 1000, &k, &err);              // 5
 *     weir_hook_args_text(a, "abs");                              // "" (NULL when it was not given)
 */
typedef struct weir_hook_args weir_hook_args;

/* hook: its name, for errors. text may be NULL: no items. keys end with NULL. Errors (WEIR_E_ARG): an unknown key, with
 * the nearest; one that is given twice; a value too much or missing; an empty item. */
WEIR_API WEIR_CHECKED weir_status weir_hook_args_parse(weir_hook_args **out, const char *hook, const char *text,
                                                       const char *const *keys, weir_err *err);
WEIR_API void weir_hook_args_free(weir_hook_args *a);
/* All selectors, joined by commas, as weir_selector_build takes them; NULL: none was given. Borrowed from a. */
WEIR_API const char *weir_hook_args_selectors(const weir_hook_args *a);
/* A key's value, "" for a switch; NULL: not given. Borrowed from a. */
WEIR_API const char *weir_hook_args_text(const weir_hook_args *a, const char *key);
/* A whole number in [min, max], or any finite number; *v keeps its value when the key was not given. */
WEIR_API WEIR_CHECKED weir_status weir_hook_args_int(const weir_hook_args *a, const char *key, int64_t min, int64_t max,
                                                     int64_t *v, weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_hook_args_number(const weir_hook_args *a, const char *key, double *v,
                                                        weir_err *err);

#ifdef __cplusplus
}
#endif
#endif

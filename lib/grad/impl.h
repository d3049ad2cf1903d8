/* grad/impl.h: the inside of a gradient, and what the files of this room share.
 *
 *   grad.c       making, wishes, checks, memory
 *   backward.c   the walk from the loss to the earliest point that is wanted
 *   loss.c       terms to gradients of logits, and those to the final norm's output
 *   block.c      a block, its norms
 *   attention.c, mlp.c   the sublayers
 *   product.c    products with turned weights and with turned edits
 *   arrive.c     what happens to a gradient at its point: seeds, copies for the caller, hooks
 */
#ifndef WEIR_GRAD_IMPL_H
#define WEIR_GRAD_IMPL_H

#include <weir/grad.h>

#include "../kernels/backward.h"
#include "../run/state.h"

/* Turned weights of a layer or of a part of the head. */
typedef struct weir_grad_weights {
    weir_turned_layer layer;
    weir_turned head;
    bool made;
} weir_grad_weights;

/* An update of an edit turned round: d x += (d y V^T) U. */
typedef struct weir_grad_edit {
    const weir_update *update;
    weir_panels *v; /* out -> r */
    weir_panels *u; /* r -> in */
} weir_grad_edit;

/* Terms of one row, in their order: term[first, first + n) of weir_grad.order. */
typedef struct weir_grad_row {
    int64_t row, first, n;
} weir_grad_row;

/* What a walk writes. Shapes: T = max_rows, S = longest sequence of the run. */
typedef struct weir_grad_buffers {
    float *dx;     /* [T,C] of the stream */
    float *sum;    /* [T,C] parallel blocks: of the block's input, while dx is still needed */
    float *dh;     /* [T,C] of what a sublayer read */
    float *dy;     /* [T,C] of what a sublayer gave, where it is not the stream's own */
    float *part;   /* [T,C] one of several products that add up; of normalized values */
    float *dscale; /* [T], of heads [T,H] */
    float *s, *d;  /* edits: [T,r], [T,in] */
    void *gemm;
    /* attention only */
    float *dz, *dq, *dk, *dv; /* [T,H,D] [T,H,D] [T,K,D] [T,K,D] */
    float *wide;              /* [T,H,C] of hook_result, if wanted */
    float *scores, *pattern;  /* [T,H,S] made again, if somebody looks inside */
    float *maps;              /* [T,H,S] of them */
    void *attn;
    /* MLP only */
    float *dpost, *dup; /* [T,F] */
    /* loss only */
    float *logits; /* [tile,V] */
    float *h;      /* [tile,C] rows of the final norm's output, and gradients of them */
    float *whole;  /* [T,V] of the logits, if somebody looks there; besides the others */
} weir_grad_buffers;

struct weir_grad {
    weir_run *run;
    const weir_model *model;
    const weir_spec *spec;
    const weir_kern *kern;
    weir_grad_options o;
    float **to; /* [points] where gradients go */
    /* weights */
    weir_grad_weights *weights; /* [L + parts of the head] */
    int64_t held;               /* bytes of those that are made */
    int64_t largest;            /* bytes of the largest */
    weir_grad_edit *edit;
    int64_t n_edits;
    /* memory, made for the first walk and whenever one needs more */
    void *arena;
    int64_t arena_bytes;
    weir_grad_buffers b;
    bool maps, whole, wide; /* the plan has room for them */
    int64_t tile;           /* rows in b.logits */
    weir_grad_row *row;     /* [rows with terms] ascending */
    int64_t *order;         /* [terms] by row, and as many behind them to sort with */
    weir_loss_row *loss;    /* [terms] */
    double *value;          /* [terms], and as many behind them to work with */
    int64_t n_rows, most;   /* rows with terms; the most terms that one has */
    int64_t room;           /* terms that there is room for */
    /* the walk */
    const weir_grad_seed *seed;
    int64_t n_seed;
    bool stopped;           /* by a hook */
    int64_t last, earliest; /* weir_run_order of the places between which it goes */
    weir_err *err;
};

static inline int64_t weir_grad_rows(const weir_grad *g)
{
    return g->run->rows.n;
}

/* --- grad.c */
enum {
    WEIR_GRAD_TILES = 3
}; /* pieces of b.logits where logits, their gradient and a term's share are needed at once */
int64_t weir_grad_point_index(const weir_grad *g, const weir_point *p); /* -1: it is no point of the forward pass */
/* Memory for the walk. */
WEIR_CHECKED weir_status weir_grad_plan(weir_grad *g);

/* --- arrive.c */
/* Does somebody look at the gradient at this point, add to it, or change it? */
bool weir_grad_looks(const weir_grad *g, int64_t layer, weir_site site);
/* d [rows, width] is the gradient of what followed the point: seeds are added, the caller and hooks are given it, and
 * hooks that wrote there take it back to what they found. WEIR_STOP: nobody wants anything earlier. */
WEIR_CHECKED weir_status weir_grad_arrive(weir_grad *g, int64_t layer, weir_site site, float *d);
/* The same for a branch that reads the stream's gradient dx: *d is dx, or b.dy if that may change. */
WEIR_CHECKED weir_status weir_grad_branch(weir_grad *g, int64_t layer, weir_site site, float *dx, float **d);

/* --- product.c */
WEIR_CHECKED weir_status weir_grad_turn_edits(weir_grad *g, weir_err *err);
void weir_grad_weights_free(weir_grad *g);
/* Weights of a layer or a part of the head, until they are given back. */
WEIR_CHECKED weir_status weir_grad_layer(weir_grad *g, int64_t layer, const weir_turned_layer **out);
void weir_grad_layer_done(weir_grad *g, int64_t layer);
WEIR_CHECKED weir_status weir_grad_head(weir_grad *g, int64_t part, const weir_turned **out);
void weir_grad_head_done(weir_grad *g, int64_t part);
/* dx [rows,in] = what comes back through a matrix from dy [rows,out]. add: dx += it, by way of b.part (in <= C). */
void weir_grad_product(weir_grad *g, const weir_turned_layer *w, int64_t layer, weir_matrix m, const float *dy,
                       float *dx, bool add);

/* --- block.c */
/* dx (+)= what comes back through a norm of x [rows,C], or of its heads. add: dy is lost; else dx may be dy. */
typedef struct weir_grad_norm_at {
    weir_norm_at at;
    const float *x;
    float *dy, *dx;
    bool add; /* dx += */
} weir_grad_norm_at;
WEIR_CHECKED weir_status weir_grad_norm(weir_grad *g, const weir_grad_norm_at *n);
/* b.dx from behind the block to before it. */
WEIR_CHECKED weir_status weir_grad_block(weir_grad *g, int64_t layer);

/* --- the sublayers: from what they gave, dy, to what they read, b.dh (heard at hook_out). norms: of the layer. */
typedef struct weir_grad_at {
    int64_t layer;
    const weir_layer *norms;
    const weir_turned_layer *w;
    const weir_tape_layer *tape;
} weir_grad_at;
WEIR_CHECKED weir_status weir_grad_attention(weir_grad *g, const weir_grad_at *at, float *dy);
WEIR_CHECKED weir_status weir_grad_mlp(weir_grad *g, const weir_grad_at *at, float *dy);

/* --- loss.c */
/* Sorts the terms by row, and checks them. */
WEIR_CHECKED weir_status weir_grad_terms(weir_grad *g, const weir_loss_term *term, int64_t n);
/* b.dx = gradient of the final norm's output; g->value = the terms' values. */
WEIR_CHECKED weir_status weir_grad_loss(weir_grad *g, const weir_loss_term *term, int64_t n);

#endif

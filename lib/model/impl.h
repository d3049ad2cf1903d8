/* model/impl.h: the inside of weir_model, for the files of this directory only. */
#ifndef WEIR_MODEL_IMPL_H
#define WEIR_MODEL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/model.h>

#include "../base/mem.h"
#include "config.h"
#include "roles.h"

/* A layer or a part of the head: lease.c. */
typedef struct weir_item {
    int64_t bytes;     /* of memory, while it is ready */
    bool made_before;  /* under the lock */
    atomic_bool ready; /* changes under the lock */
    atomic_int users;
    atomic_llong used; /* the clock at its last lease */
} weir_item;

/* What is made on demand, under the lock. */
typedef struct weir_made {
    weir_layer *layer; /* [L] */
    weir_normw norm;
    weir_head *head; /* [head_parts], head_rows rows each */
    int64_t head_parts, head_rows;
    weir_item *item; /* [n_items]: layers, then parts of the head */
    int64_t n_items;
    int64_t held; /* bytes of the items that are ready */
    atomic_llong clock;
    atomic_bool *norms_ready; /* [L] */
    bool norm_ready;
    weir_arena vectors; /* norms and biases as fp32 */
    weir_panel_pool *pool;
    void *kept; /* weir_model_keep */
    void (*kept_destroy)(void *);
} weir_made;

struct weir_model {
    weir_checkpoint ck;
    weir_arena arena; /* descriptions: everything that opening makes */
    weir_config cfg;
    const weir_layout *layout;
    weir_spec spec;
    const int64_t *window;    /* [L] */
    const weir_tensor **slot; /* [L + 1][WEIR_ROLE_COUNT]: row 0 the model's own, row l + 1 layer l; NULL: absent */
    const weir_tensor **used; /* [n_used] in file order */
    int64_t n_used;
    bool tied;
    weir_model_info info;
    int threads;
    pthread_mutex_t lock;
    weir_made made;
    atomic_llong panel_bytes, other_bytes, packed_again;
};

static inline const weir_tensor *weir_slot(const weir_model *m, int64_t layer, weir_role r)
{
    return m->slot[(layer + 1) * WEIR_ROLE_COUNT + r];
}

/* Gives every tensor of the checkpoint its slot; fails on unknown, doubled, missing and misshapen ones. Fills slot,
 * used, tied, spec.V. */
WEIR_CHECKED weir_status weir_bind(weir_model *m, const weir_log *log, weir_err *err);

/* The row of a layout's names that a tensor's name follows, and the layer in it; NULL: none. */
const weir_name *weir_name_find(const weir_layout *l, const char *name, int64_t *layer);

/* --- lease.c */
WEIR_CHECKED weir_status weir_leases_init(weir_model *m, weir_err *err);
void weir_leases_free(weir_model *m);

/* --- weights.c: under the lock. Norms and biases are read once; matrices are packed and released. After a failure
 * release cleans up. */
WEIR_CHECKED weir_status weir_weights_norms(weir_model *m, int64_t l, weir_layer *y, weir_err *err);
WEIR_CHECKED weir_status weir_weights_final_norm(weir_model *m, weir_normw *out, weir_err *err);
WEIR_CHECKED weir_status weir_weights_pack_layer(weir_model *m, int64_t l, weir_layer *y, weir_err *err);
WEIR_CHECKED weir_status weir_weights_pack_head(weir_model *m, weir_head *h, weir_err *err);
void weir_weights_release_layer(weir_model *m, int64_t l, weir_layer *y);
void weir_weights_release_head(weir_model *m, weir_head *h);
/* Bytes of memory of a packed layer, of so many rows of the packed head. */
int64_t weir_weights_layer_bytes(const weir_model *m, int64_t l);
int64_t weir_weights_head_bytes(const weir_model *m, int64_t rows);

/* Where output i of q, k or v lies (heads in Hugging Face's order): the stored row (column where k-major), and the role
 * of the tensor. */
typedef enum weir_qkv_which { WEIR_QKV_Q, WEIR_QKV_K, WEIR_QKV_V } weir_qkv_which;
int64_t weir_qkv_row(const weir_model *m, weir_qkv_which w, int64_t i);
/* The same in any layout of the family. */
int64_t weir_layout_row(const weir_spec *s, const weir_layout *l, weir_qkv_which w, int64_t i);
weir_role weir_qkv_role(const weir_model *m, weir_qkv_which w, bool bias);

/* n elements of a stored vector as fp32, wherever it lies. */
void weir_vector_read(const weir_tensor *t, float *dst, int64_t n);

#endif

/* model/impl.h: the inside of weir_model, for the files of this directory only. */
#ifndef WEIR_MODEL_IMPL_H
#define WEIR_MODEL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/model.h>

#include "../base/mem.h"
#include "config.h"
#include "roles.h"

/* What is made on demand, under the lock. A layer's flag is set last (release), so that readers need no lock once it is
 * seen. */
typedef struct weir_made {
    weir_layer *layer; /* [L] */
    weir_normw norm;
    weir_linear head;
    atomic_bool *layer_ready; /* [L] */
    bool norm_ready, head_ready;
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
    atomic_llong panel_bytes, other_bytes;
};

static inline const weir_tensor *weir_slot(const weir_model *m, int64_t layer, weir_role r)
{
    return m->slot[(layer + 1) * WEIR_ROLE_COUNT + r];
}

/* Gives every tensor of the checkpoint its slot; fails on unknown, doubled, missing and misshapen ones. Fills slot,
 * used, tied, spec.V. */
WEIR_CHECKED weir_status weir_bind(weir_model *m, const weir_log *log, weir_err *err);

/* Frees what weights.c made. */
void weir_weights_free(weir_model *m);

/* n elements of a stored vector as fp32, wherever it lies. */
void weir_vector_read(const weir_tensor *t, float *dst, int64_t n);

#endif

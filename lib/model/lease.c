/* Who needs which weights, and for how long.
 *
 * What is packed and released together is an item: a layer, or a part of the head. An item that somebody leases stays;
 * the others stay as long as nobody's bound is in their way. Of these the one that was used last goes first: passes go
 * through the items in turn, so that it is the one that is needed last again. (With room for 7 of 8 layers a pass packs
 * two of them again; the least recently used first would be all 8.)
 *
 * The lock is taken for making and releasing only. A lease counts itself first and looks then whether the item is
 * ready; a release says first that it is not and looks then whether anybody counts: one of the two sees the other.
 */
#include "impl.h"

/* Made under the lock; the model is const to its users, what is made on demand is not. */
static weir_model *open_for_making(const weir_model *m)
{
    return (weir_model *)m;
}

/* --- items: layers from 0, then the parts of the head */

/* The head is cut into parts no larger than a layer (or 1 MiB), so that they find room wherever a layer does. */
static void plan_head(weir_model *m)
{
    enum { LEAST = 1 << 20 };
    int64_t most = LEAST;
    for (int64_t l = 0; l < m->spec.L; l++) {
        const int64_t bytes = weir_weights_layer_bytes(m, l);
        most = bytes > most ? bytes : most;
    }
    const int64_t row = weir_weights_head_bytes(m, WEIR_PANEL) / WEIR_PANEL;
    const int64_t rows = most / row / WEIR_PANEL * WEIR_PANEL;
    m->made.head_rows = rows > WEIR_PANEL ? rows : WEIR_PANEL;
    m->made.head_parts = (m->spec.V + m->made.head_rows - 1) / m->made.head_rows;
}

static void init_item(weir_item *it, int64_t bytes)
{
    it->bytes = bytes;
    atomic_init(&it->ready, false);
    atomic_init(&it->users, 0);
    atomic_init(&it->used, 0);
}

weir_status weir_leases_init(weir_model *m, weir_err *err)
{
    weir_made *made = &m->made;
    const int64_t layers = m->spec.L;
    plan_head(m);
    const int64_t items = layers + made->head_parts;
    made->layer = weir_arena_alloc(&m->arena, (size_t)layers, sizeof *made->layer);
    made->norms_ready = weir_arena_alloc(&m->arena, (size_t)layers, sizeof *made->norms_ready);
    made->head = weir_arena_alloc(&m->arena, (size_t)made->head_parts, sizeof *made->head);
    made->item = weir_arena_alloc(&m->arena, (size_t)items, sizeof *made->item);
    if (!made->layer || !made->norms_ready || !made->head || !made->item)
        return weir_nomem(err, "the table of layers");
    made->n_items = items;
    atomic_fetch_add(&m->other_bytes, layers * (int64_t)(sizeof *made->layer + WEIR_ROLE_COUNT * sizeof *m->slot));
    for (int64_t l = 0; l < layers; l++) {
        made->layer[l].window = m->window[l];
        atomic_init(&made->norms_ready[l], false);
        init_item(&made->item[l], weir_weights_layer_bytes(m, l));
    }
    for (int64_t i = 0; i < made->head_parts; i++) {
        weir_head *h = &made->head[i];
        const int64_t left = m->spec.V - i * made->head_rows;
        *h = (weir_head){.first = i * made->head_rows, .n = left < made->head_rows ? left : made->head_rows};
        init_item(&made->item[layers + i], weir_weights_head_bytes(m, h->n));
    }
    return weir_panel_pool_new(&made->pool, err);
}

static weir_status make(weir_model *m, int64_t i, weir_err *err)
{
    const int64_t layers = m->spec.L;
    return i < layers ? weir_weights_pack_layer(m, i, &m->made.layer[i], err)
                      : weir_weights_pack_head(m, &m->made.head[i - layers], err);
}

static void unmake(weir_model *m, int64_t i)
{
    const int64_t layers = m->spec.L;
    if (i < layers)
        weir_weights_release_layer(m, i, &m->made.layer[i]);
    else
        weir_weights_release_head(m, &m->made.head[i - layers]);
}

/* Under the lock. False: somebody leases it. */
static bool release(weir_model *m, int64_t i)
{
    weir_item *it = &m->made.item[i];
    if (!atomic_exchange(&it->ready, false))
        return false;
    if (atomic_load(&it->users)) {
        atomic_store(&it->ready, true);
        return false;
    }
    unmake(m, i);
    m->made.held -= it->bytes;
    return true;
}

/* Under the lock: the item that was used last of those that nobody leases; -1: there is none. */
static int64_t victim(weir_model *m)
{
    int64_t best = -1;
    long long last = -1;
    for (int64_t i = 0; i < m->made.n_items; i++) {
        weir_item *it = &m->made.item[i];
        const long long used = atomic_load(&it->used);
        if (atomic_load(&it->ready) && !atomic_load(&it->users) && used > last) {
            best = i;
            last = used;
        }
    }
    return best;
}

/* Under the lock: releases until `bytes` more fit into room, as far as that goes. */
static void make_room(weir_model *m, int64_t bytes, int64_t room)
{
    for (int64_t i; m->made.held > room - bytes && (i = victim(m)) >= 0;)
        if (!release(m, i))
            return; /* it was leased this moment: what is above the bound is in use */
}

static weir_status make_ready(weir_model *m, int64_t i, int64_t room, weir_err *err)
{
    weir_item *it = &m->made.item[i];
    weir_status s = WEIR_OK;
    pthread_mutex_lock(&m->lock);
    if (!atomic_load(&it->ready)) {
        make_room(m, it->bytes, room);
        s = make(m, i, err);
        if (s == WEIR_OK) {
            m->made.held += it->bytes;
            atomic_fetch_add(&m->packed_again, it->made_before);
            it->made_before = true;
            atomic_store(&it->ready, true);
        } else {
            unmake(m, i);
        }
    }
    pthread_mutex_unlock(&m->lock);
    return s;
}

static weir_status lease(weir_model *m, int64_t i, int64_t room, weir_err *err)
{
    weir_item *it = &m->made.item[i];
    atomic_fetch_add(&it->users, 1);
    atomic_store(&it->used, 1 + atomic_fetch_add(&m->made.clock, 1));
    const weir_status s = atomic_load(&it->ready) ? WEIR_OK : make_ready(m, i, room, err);
    if (s != WEIR_OK)
        atomic_fetch_sub(&it->users, 1);
    return s;
}

static void give_back(weir_model *m, int64_t i, bool drop)
{
    atomic_fetch_sub(&m->made.item[i].users, 1);
    if (!drop)
        return;
    pthread_mutex_lock(&m->lock);
    release(m, i);
    pthread_mutex_unlock(&m->lock);
}

/* --- spec.h */

static weir_status check_layer(const weir_model *m, int64_t layer, weir_err *err)
{
    if (layer >= 0 && layer < m->spec.L)
        return WEIR_OK;
    return weir_fail(err, WEIR_E_ARG, "layer %lld of a model of %lld layers (counted from 0)", (long long)layer,
                     (long long)m->spec.L);
}

weir_status weir_model_norms(const weir_model *cm, int64_t layer, const weir_layer **out, weir_err *err)
{
    weir_model *m = open_for_making(cm);
    WEIR_TRY(check_layer(m, layer, err));
    *out = &m->made.layer[layer];
    if (atomic_load(&m->made.norms_ready[layer]))
        return WEIR_OK;
    weir_status s = WEIR_OK;
    pthread_mutex_lock(&m->lock);
    if (!atomic_load(&m->made.norms_ready[layer])) {
        s = weir_weights_norms(m, layer, &m->made.layer[layer], err);
        if (s == WEIR_OK)
            atomic_store(&m->made.norms_ready[layer], true);
    }
    pthread_mutex_unlock(&m->lock);
    return s;
}

weir_status weir_model_layer(const weir_model *m, int64_t layer, int64_t room, const weir_layer **out, weir_err *err)
{
    WEIR_TRY(weir_model_norms(m, layer, out, err));
    return lease(open_for_making(m), layer, room, err);
}

void weir_model_layer_done(const weir_model *m, int64_t layer, bool drop)
{
    give_back(open_for_making(m), layer, drop);
}

int64_t weir_model_head_parts(const weir_model *m)
{
    return m->made.head_parts;
}

weir_status weir_model_head(const weir_model *cm, int64_t part, int64_t room, weir_head *out, weir_err *err)
{
    weir_model *m = open_for_making(cm);
    WEIR_TRY(lease(m, m->spec.L + part, room, err));
    *out = m->made.head[part];
    return WEIR_OK;
}

void weir_model_head_done(const weir_model *m, int64_t part)
{
    give_back(open_for_making(m), m->spec.L + part, false);
}

weir_status weir_model_final(const weir_model *cm, weir_normw *norm, weir_err *err)
{
    weir_model *m = open_for_making(cm);
    weir_status s = WEIR_OK;
    pthread_mutex_lock(&m->lock);
    if (!m->made.norm_ready) {
        s = weir_weights_final_norm(m, &m->made.norm, err);
        m->made.norm_ready = s == WEIR_OK;
    }
    *norm = m->made.norm;
    pthread_mutex_unlock(&m->lock);
    return s;
}

static int64_t items_of(const weir_model *m, int64_t i, int64_t layers, bool head)
{
    return i < layers || (head && i >= m->spec.L) ? m->made.item[i].bytes : 0;
}

int64_t weir_model_weight_bytes(const weir_model *m, int64_t layers, bool head)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < m->made.n_items; i++)
        sum += items_of(m, i, layers, head);
    return sum;
}

int64_t weir_model_largest_bytes(const weir_model *m, int64_t layers, bool head)
{
    int64_t most = 0;
    for (int64_t i = 0; i < m->made.n_items; i++) {
        const int64_t bytes = items_of(m, i, layers, head);
        most = bytes > most ? bytes : most;
    }
    return most;
}

void *weir_model_keep(const weir_model *cm, void *(*make_it)(const weir_model *m), void (*destroy)(void *))
{
    weir_model *m = open_for_making(cm);
    pthread_mutex_lock(&m->lock);
    if (!m->made.kept) {
        m->made.kept = make_it(m);
        m->made.kept_destroy = destroy;
    }
    void *kept = m->made.kept;
    pthread_mutex_unlock(&m->lock);
    return kept;
}

void weir_leases_free(weir_model *m)
{
    for (int64_t i = 0; i < m->made.n_items; i++)
        if (atomic_load(&m->made.item[i].ready))
            unmake(m, i);
    weir_panel_pool_free(m->made.pool);
    if (m->made.kept)
        m->made.kept_destroy(m->made.kept);
    weir_arena_free(&m->made.vectors);
}

#include "sites.h"

#include <stdlib.h>

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

/* Adds a point if the model has it; its slot, or -1. */
static int add(weir_sites *v, const char *name)
{
    const weir_point *p = weir_model_point(v->model, name);
    if (!p)
        return -1;
    v->slot[v->n_slots] = (weir_sites_slot){.point = p, .dump = -1};
    v->row_bytes += p->width * (int64_t)sizeof(float);
    return v->n_slots++;
}

static int add_layer(weir_sites *v, int64_t layer, const char *name)
{
    char full[80];
    snprintf(full, sizeof full, "blocks.%lld.%s", (long long)layer, name);
    return add(v, full);
}

static void choose(weir_sites *v, const bool *heads, const bool *neurons)
{
    static const char *const site[WEIR_SITES_COUNT] = {"hook_attn_out", "hook_mlp_out",        "attn.hook_z",
                                                       "mlp.hook_post", "ln1_post.hook_scale", "ln2_post.hook_scale"};
    v->embed = add(v, "hook_embed");
    v->pos_embed = add(v, "hook_pos_embed");
    for (int64_t l = 0; l < v->L; l++) {
        const bool wanted[WEIR_SITES_COUNT] = {true, true, heads[l], neurons[l], heads[l], neurons[l]};
        for (int s = 0; s < WEIR_SITES_COUNT; s++)
            v->at[s * v->L + l] = wanted[s] ? add_layer(v, l, site[s]) : -1;
    }
    v->stream = add_layer(v, v->L - 1, "hook_resid_post");
}

weir_status weir_sites_begin(weir_sites *v, const weir_model *m, const bool *heads, const bool *neurons, weir_err *err)
{
    const int64_t layers = weir_model_info_of(m)->L;
    *v = (weir_sites){.model = m, .L = layers};
    v->slot = calloc((size_t)(WEIR_SITES_COUNT * layers + 3), sizeof *v->slot);
    v->at = calloc((size_t)(WEIR_SITES_COUNT * layers), sizeof *v->at);
    v->pointer = calloc((size_t)(WEIR_SITES_COUNT * layers), sizeof *v->pointer);
    if (!v->slot || !v->at || !v->pointer)
        return no_memory(err);
    choose(v, heads, neurons);
    return WEIR_OK;
}

static void free_room(weir_sites *v)
{
    for (int i = 0; i < v->n_slots; i++) {
        free(v->slot[i].data);
        v->slot[i].data = NULL;
    }
    free(v->doc);
    free(v->pos);
    free(v->id);
    free(v->next);
    v->doc = v->pos = NULL;
    v->id = v->next = NULL;
    v->n = v->room = 0;
}

void weir_sites_free(weir_sites *v)
{
    free_room(v);
    free(v->slot);
    free(v->at);
    free(v->pointer);
    *v = (weir_sites){0};
}

weir_status weir_sites_room(weir_sites *v, int64_t n, weir_err *err)
{
    v->n = 0;
    if (n <= v->room)
        return WEIR_OK;
    free_room(v);
    v->doc = calloc((size_t)n, sizeof *v->doc);
    v->pos = calloc((size_t)n, sizeof *v->pos);
    v->id = calloc((size_t)n, sizeof *v->id);
    v->next = calloc((size_t)n, sizeof *v->next);
    bool all = v->doc && v->pos && v->id && v->next;
    for (int i = 0; i < v->n_slots && all; i++) {
        v->slot[i].data = calloc((size_t)n, (size_t)v->slot[i].point->width * sizeof(float));
        all = v->slot[i].data != NULL;
    }
    if (!all)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory for %lld positions of %lld bytes each: a smaller --batch",
                         (long long)n, (long long)v->row_bytes);
    v->room = n;
    return WEIR_OK;
}

int weir_sites_find(const weir_sites *v, const weir_point *p)
{
    for (int i = 0; i < v->n_slots; i++)
        if (v->slot[i].point == p)
            return i;
    return -1;
}

static const float *from(const weir_sites *v, int slot, int64_t first)
{
    return slot < 0 ? NULL : v->slot[slot].data + first * v->slot[slot].point->width;
}

void weir_sites_rows(weir_sites *v, int64_t first, int64_t n, weir_parts_rows *out)
{
    for (int64_t i = 0; i < WEIR_SITES_COUNT * v->L; i++)
        v->pointer[i] = from(v, v->at[i], first);
    *out = (weir_parts_rows){.n = n,
                             .embed = from(v, v->embed, first),
                             .pos_embed = from(v, v->pos_embed, first),
                             .attn_out = v->pointer + WEIR_SITES_ATTN_OUT * v->L,
                             .mlp_out = v->pointer + WEIR_SITES_MLP_OUT * v->L,
                             .stream = from(v, v->stream, first),
                             .z = v->pointer + WEIR_SITES_Z * v->L,
                             .post = v->pointer + WEIR_SITES_POST * v->L,
                             .attn_scale = v->pointer + WEIR_SITES_ATTN_SCALE * v->L,
                             .mlp_scale = v->pointer + WEIR_SITES_MLP_SCALE * v->L};
}

#include "gather.h"

#include <stdlib.h>

#include "cli/room.h"

enum { BOUND_MIB = 512 };

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for patterns");
}

weir_status weir_attention_gather_open(weir_attention_gather *g, const weir_attention_about *a, weir_err *err)
{
    *g = (weir_attention_gather){.about = a};
    g->pattern = calloc((size_t)a->n_heads, sizeof *g->pattern);
    return g->pattern ? WEIR_OK : no_memory(err);
}

void weir_attention_gather_close(weir_attention_gather *g)
{
    for (int h = 0; g->pattern && h < g->about->n_heads; h++)
        free(g->pattern[h]);
    void *const own[] = {g->doc, g->pos, g->ctx_pos, g->id, g->at, g->pattern, g->query, g->query_at};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    *g = (weir_attention_gather){0};
}

static weir_status token_room(weir_attention_gather *g, weir_err *err)
{
    int64_t room = 2 * g->n + 64;
    if (g->n < g->room)
        return WEIR_OK;
    if (!weir_room(&g->doc, (size_t)room, sizeof *g->doc) || !weir_room(&g->pos, (size_t)room, sizeof *g->pos) ||
        !weir_room(&g->ctx_pos, (size_t)room, sizeof *g->ctx_pos) || !weir_room(&g->id, (size_t)room, sizeof *g->id) ||
        !weir_room(&g->at, (size_t)room, sizeof *g->at) || !weir_room(&g->query, (size_t)room, sizeof *g->query) ||
        !weir_room(&g->query_at, (size_t)room, sizeof *g->query_at))
        return no_memory(err);
    g->room = room;
    return WEIR_OK;
}

static weir_status pattern_room(weir_attention_gather *g, const weir_attention_token *t, weir_err *err)
{
    const int64_t bound = ((int64_t)BOUND_MIB << 20) / (int64_t)sizeof(float) / g->about->n_heads;
    int64_t wanted = g->filled + t->ctx_pos + 1;
    if (wanted > bound)
        return weir_fail(err, WEIR_E_ARG,
                         "the patterns of %d heads over %lld tokens of document %lld take more than %d MiB: choose "
                         "fewer heads (--heads), a smaller window (--ctx), or --positions",
                         g->about->n_heads, (long long)t->ctx_pos + 1, (long long)t->doc, BOUND_MIB);
    if (wanted <= g->pattern_room)
        return WEIR_OK;
    int64_t room = 2 * wanted < bound ? 2 * wanted : bound;
    for (int h = 0; h < g->about->n_heads; h++)
        if (!weir_room(&g->pattern[h], (size_t)room, sizeof *g->pattern[h]))
            return no_memory(err);
    g->pattern_room = room;
    return WEIR_OK;
}

weir_status weir_attention_gather_add(weir_attention_gather *g, const weir_attention_token *t, weir_err *err)
{
    WEIR_TRY(token_room(g, err));
    if (t->query)
        WEIR_TRY(pattern_room(g, t, err));
    g->doc[g->n] = t->doc;
    g->pos[g->n] = t->pos;
    g->ctx_pos[g->n] = t->ctx_pos;
    g->id[g->n] = t->id;
    g->at[g->n++] = t->query ? g->filled : -1;
    g->filled += t->query ? t->ctx_pos + 1 : 0;
    return WEIR_OK;
}

/* Tokens [first, end) are a window. */
static weir_status hand_over(weir_attention_gather *g, int64_t first, int64_t end, weir_err *err)
{
    int64_t n = 0;
    for (int64_t i = first; i < end; i++)
        if (g->at[i] >= 0) {
            g->query[n] = i - first;
            g->query_at[n++] = g->at[i];
        }
    const weir_attention_map m = {.doc = g->doc[first],
                                  .n = end - first,
                                  .pos = g->pos + first,
                                  .id = g->id + first,
                                  .n_queries = n,
                                  .query = g->query,
                                  .at = g->query_at,
                                  .pattern = (const float *const *)g->pattern};
    if (n == 0)
        return WEIR_OK;
    if (g->maps++ == 0)
        WEIR_TRY(g->sink->begin(g->sink, g->about, err));
    return g->sink->map(g->sink, &m, err);
}

weir_status weir_attention_gather_flush(weir_attention_gather *g, weir_err *err)
{
    for (int64_t first = 0, end; first < g->n; first = end) {
        for (end = first + 1; end < g->n && g->ctx_pos[end] != 0;)
            end++;
        WEIR_TRY(hand_over(g, first, end, err));
    }
    g->n = g->filled = 0;
    return WEIR_OK;
}

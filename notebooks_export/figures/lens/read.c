/* A map that logit-lens wrote, read and checked: its sizes and indices are not trusted. */
#include <stdlib.h>

#include "cli/say.h"
#include "figures/arrays.h"
#include "map.h"

static weir_status take_lines(weir_nb_map *m, weir_err *err)
{
    WEIR_TRY(weir_arrays_get_texts(m->r, "lines/name", &m->line, err));
    m->lines = m->line.n;
    if (m->lines == 0)
        return weir_arrays_bad(m->r, "lines", err, "there is no line");
    WEIR_TRY(weir_nb_take_texts(m->r, "lines/site", m->lines, &m->site, err));
    const weir_nb_array of[] = {{"lines/layer", WEIR_ARRAY_I32, 1, {m->lines}, &m->layer}};
    return WEIR_NB_TAKE(m->r, of, err);
}

static weir_status take_docs(weir_nb_map *m, weir_err *err)
{
    WEIR_TRY(weir_arrays_shape(m->r, "docs/start", WEIR_ARRAY_I64, 1, &m->docs, err));
    const weir_nb_array of[] = {{"docs/start", WEIR_ARRAY_I64, 1, {m->docs}, &m->start},
                                {"docs/count", WEIR_ARRAY_I64, 1, {m->docs}, &m->count}};
    WEIR_TRY(WEIR_NB_TAKE(m->r, of, err));
    for (int64_t d = 0; d < m->docs; d++)
        if (m->start[d] < 0 || m->start[d] > m->n || m->count[d] < 1 || m->count[d] > m->n - m->start[d])
            return weir_arrays_bad(m->r, "docs", err, "document %lld does not lie within the positions", (long long)d);
    return m->docs ? WEIR_OK : weir_arrays_bad(m->r, "docs", err, "there is no document");
}

static weir_status take_positions(weir_nb_map *m, weir_err *err)
{
    int64_t dim[3];
    WEIR_TRY(weir_arrays_shape(m->r, "tokens/id", WEIR_ARRAY_I32, 1, &m->n, err));
    WEIR_TRY(weir_arrays_shape(m->r, "top/id", WEIR_ARRAY_I32, 3, dim, err));
    m->k = dim[2];
    if (m->k < 1)
        return weir_arrays_bad(m->r, "top/id", err, "it has no tokens");
    const weir_nb_array of[] = {{"tokens/id", WEIR_ARRAY_I32, 1, {m->n}, &m->id},
                                {"tokens/next", WEIR_ARRAY_I32, 1, {m->n}, &m->next},
                                {"tokens/target", WEIR_ARRAY_I32, 1, {m->n}, &m->target},
                                {"tokens/pos", WEIR_ARRAY_I64, 1, {m->n}, &m->pos},
                                {"top/id", WEIR_ARRAY_I32, 3, {m->lines, m->n, m->k}, &m->top_id},
                                {"top/logprob", WEIR_ARRAY_F32, 3, {m->lines, m->n, m->k}, &m->top_logprob}};
    return WEIR_NB_TAKE(m->r, of, err);
}

static weir_status take_all(weir_nb_map *m, weir_err *err)
{
    weir_err none = {0};
    char *target = NULL;
    WEIR_TRY(take_lines(m, err));
    WEIR_TRY(take_positions(m, err));
    WEIR_TRY(take_docs(m, err));
    m->asked = weir_arrays_get_text(m->r, "", "target", &target, &none) == WEIR_OK;
    weir_arrays_free(target);
    return weir_arrays_get_texts(m->r, "vocab", &m->vocab, err);
}

int weir_nb_map_open(weir_nb_map *m, const weir_nb *nb)
{
    weir_err err = {0};
    m->nb = nb;
    weir_status st = weir_arrays_open(&m->r, weir_nb_path(nb), "weir-lens-map", 1, &err);
    if (st == WEIR_OK)
        st = take_all(m, &err);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(weir_nb_cli(m->nb), &err);
}

void weir_nb_map_close(weir_nb_map *m)
{
    weir_array_texts *const texts[] = {&m->line, &m->site, &m->vocab};
    void *const own[] = {m->layer, m->start, m->count, m->pos, m->id, m->next, m->target, m->top_id, m->top_logprob};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        weir_array_texts_free(texts[i]);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    weir_arrays_close(m->r);
    *m = (weir_nb_map){0};
}

float *weir_nb_map_stat(const weir_nb_map *m, const char *name)
{
    weir_err err = {0};
    char path[64];
    float *x = NULL;
    const weir_nb_array stat = {path, WEIR_ARRAY_F32, 2, {m->lines, m->n}, &x};
    snprintf(path, sizeof path, "stats/%.40s", name);
    if (weir_nb_take(m->r, &stat, 1, &err) == WEIR_OK)
        return x;
    weir_cli_fail(weir_nb_cli(m->nb), &err);
    free(x);
    return NULL;
}

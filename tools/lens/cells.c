#include "cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BOUND = 64 << 20 /* bytes of rows and results */ };

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for the rows of the lens (here: a smaller --batch or -k)");
}

/* --- what is asked for */

static bool has(const weir_lens_cells *c, weir_lens_stat stat)
{
    return c->about->has & 1u << stat;
}

/* The targets that are measured, each once. */
static void list_asks(weir_lens_cells *c)
{
    bool none = c->target == WEIR_TARGET_NONE, contrast = has(c, WEIR_STAT_CONTRAST);
    const int32_t ask[WEIR_ASKS] = {none ? WEIR_LENS_ROW_TOP : c->target, none ? WEIR_LENS_FINAL_TOP : c->target,
                                    WEIR_TARGET_NEXT, c->contrast[0], c->contrast[1]};
    const bool needed[WEIR_ASKS] = {has(c, WEIR_STAT_PROB) || has(c, WEIR_STAT_LOGIT), has(c, WEIR_STAT_RANK),
                                    has(c, WEIR_STAT_CE), contrast, contrast};
    for (int i = 0; i < WEIR_ASKS; i++) {
        int e = 0;
        while (e < c->n_targets && c->ask[e] != ask[i])
            e++;
        c->column[i] = e;
        if (needed[i] && e == c->n_targets)
            c->ask[c->n_targets++] = ask[i];
    }
}

/* A token that does not count is asked for in vain. */
static int32_t counted(const weir_lens_cells *c, int32_t id)
{
    return c->vocab && id >= c->vocab ? -1 : id;
}

/* The targets of each position of the batch. */
static void fill_asked(const weir_lens_cells *c)
{
    for (int64_t i = 0; i < c->n; i++)
        for (int j = 0; j < c->n_targets; j++)
            c->asked[i * c->n_targets + j] = counted(c, c->ask[j] == WEIR_TARGET_NEXT ? c->next[i] : c->ask[j]);
}

/* --- a batch */

static int64_t bytes_of_position(const weir_lens_stack *s, int64_t C, int64_t k, bool tuned)
{
    int64_t cell = 2 * (k * (int64_t)(sizeof(int32_t) + sizeof(float)) + WEIR_STAT_COUNT * (int64_t)sizeof(float)) +
                   WEIR_ASKS * (int64_t)(2 * sizeof(float) + sizeof(int32_t));
    return (s->n_points + (tuned ? s->n : 0)) * C * (int64_t)sizeof(float) + s->n * cell;
}

int64_t weir_lens_cells_room(const weir_lens_stack *s, const weir_model *m, int64_t k, bool tuned)
{
    int64_t room = BOUND / bytes_of_position(s, weir_model_info_of(m)->C, k, tuned);
    return room > 1 ? room : 1;
}

static bool alloc_batch(weir_lens_cells *c)
{
    size_t room = (size_t)c->room;
    c->row = calloc((size_t)c->stack->n_points, sizeof *c->row);
    for (int i = 0; c->row && i < c->stack->n_points; i++)
        if (!(c->row[i] = malloc(sizeof(float) * room * (size_t)c->C)))
            return false;
    c->doc = malloc(sizeof *c->doc * room);
    c->pos = malloc(sizeof *c->pos * room);
    c->id = malloc(sizeof *c->id * room);
    c->next = malloc(sizeof *c->next * room);
    c->shown = malloc(sizeof *c->shown * room);
    c->asked = malloc(sizeof *c->asked * (room * (size_t)c->n_targets + 1));
    return c->row && c->doc && c->pos && c->id && c->next && c->shown && c->asked;
}

/* Results of a batch, of those statistics that are asked for, and of a piece. */
static bool alloc_results(weir_lens_cells *c)
{
    size_t cells = (size_t)c->room * (size_t)c->stack->n, tops = cells * (size_t)c->about->k;
    size_t asked = cells * (size_t)c->n_targets;
    weir_lens_out *o = &c->out;
    struct {
        bool wanted;
        float **at;
    } numbers[] = {{has(c, WEIR_STAT_ENTROPY), &o->entropy},
                   {has(c, WEIR_STAT_KL), &o->kl_final},
                   {has(c, WEIR_STAT_KL_PREV), &o->kl_prev},
                   {has(c, WEIR_STAT_JSD), &o->jsd}};
    bool ok = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].wanted)
            ok = (*numbers[i].at = malloc(sizeof(float) * cells)) && ok;
    if (asked) {
        o->logit = malloc(sizeof(float) * asked);
        o->logprob = malloc(sizeof(float) * asked);
        ok = o->logit && o->logprob && ok;
    }
    if (has(c, WEIR_STAT_RANK))
        ok = (o->rank = malloc(sizeof(int32_t) * asked)) && ok;
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        if (has(c, (weir_lens_stat)s))
            ok = (c->stat[s] = malloc(sizeof(float) * cells)) && ok;
    o->top_id = malloc(sizeof *o->top_id * tops);
    o->top_logprob = malloc(sizeof *o->top_logprob * tops);
    c->top_id = malloc(sizeof *c->top_id * tops);
    c->top_logprob = malloc(sizeof *c->top_logprob * tops);
    c->what = calloc((size_t)c->stack->n, sizeof *c->what);
    return ok && o->top_id && o->top_logprob && c->top_id && c->top_logprob && c->what;
}

weir_status weir_lens_cells_open(weir_lens_cells *c, const weir_model *m, const char *kernel, int threads,
                                 weir_err *err)
{
    c->C = weir_model_info_of(m)->C;
    c->vocab = c->about->padding_masked ? c->about->padding_from : 0;
    c->last_doc = -1;
    list_asks(c);
    if (!alloc_batch(c) || !alloc_results(c))
        return no_memory(err);
    WEIR_TRY(weir_lens_translate_room(&c->translate, c->stack, c->room, err));
    return weir_lens_new(&c->lens, m, kernel, threads, err);
}

void weir_lens_cells_close(weir_lens_cells *c)
{
    for (int i = 0; c->row && i < c->stack->n_points; i++)
        free(c->row[i]);
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        free(c->stat[s]);
    const weir_lens_out *o = &c->out;
    void *const own[] = {c->row,     c->doc,         c->pos,      c->id,          c->next,  c->shown,   c->asked,
                         o->entropy, o->kl_prev,     o->kl_final, o->jsd,         o->logit, o->logprob, o->rank,
                         o->top_id,  o->top_logprob, c->top_id,   c->top_logprob, c->what};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    weir_lens_translate_close(&c->translate, c->stack);
    weir_lens_free(c->lens);
    *c = (weir_lens_cells){0};
}

/* --- measuring */

/* The rows of each line as they are measured: what acts on rows before the final norm acts here. */
static weir_status lay_rows(weir_lens_cells *c, weir_err *err)
{
    const weir_lens_stack *s = c->stack;
    for (int l = 0; l < s->n; l++) {
        c->what[l] = (weir_lens_row){
            .x = c->row[s->source[l]], .prev = s->prev[l], .norm = l == s->n - 1 ? WEIR_LENS_RECOMPUTE : c->norm};
        WEIR_TRY(weir_lens_translate_rows(&c->translate, s, l, &c->what[l].x, c->n, err));
    }
    return WEIR_OK;
}

static weir_status measure(weir_lens_cells *c, weir_err *err)
{
    WEIR_TRY(lay_rows(c, err));
    fill_asked(c);
    const weir_lens_what what = {.row = c->what,
                                 .n_rows = c->stack->n,
                                 .n = c->n,
                                 .target = c->asked,
                                 .n_targets = c->n_targets,
                                 .k = c->about->k,
                                 .vocab = c->vocab,
                                 .no_softcap = c->about->no_softcap};
    return weir_lens_measure(c->lens, &what, &c->out, err);
}

/* --- handing over: positions [first, first + n) of the batch, all of one document */

/* Statistics of a cell that are read off what was measured; at: its place there. */
static void put_cell(const weir_lens_cells *c, int64_t at, int64_t to)
{
    const weir_lens_out *o = &c->out;
    const int *column = c->column;
    const int64_t asked = at * c->n_targets;
    const float *from[WEIR_STAT_COUNT] = {[WEIR_STAT_ENTROPY] = o->entropy,
                                          [WEIR_STAT_KL] = o->kl_final,
                                          [WEIR_STAT_KL_PREV] = o->kl_prev,
                                          [WEIR_STAT_JSD] = o->jsd};
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        if (from[s])
            c->stat[s][to] = from[s][at];
    if (c->stat[WEIR_STAT_PROB])
        c->stat[WEIR_STAT_PROB][to] = (float)exp((double)o->logprob[asked + column[WEIR_ASK_OWN]]);
    if (c->stat[WEIR_STAT_LOGIT])
        c->stat[WEIR_STAT_LOGIT][to] = o->logit[asked + column[WEIR_ASK_OWN]];
    if (c->stat[WEIR_STAT_RANK])
        c->stat[WEIR_STAT_RANK][to] = (float)o->rank[asked + column[WEIR_ASK_RANK]];
    if (c->stat[WEIR_STAT_CE])
        c->stat[WEIR_STAT_CE][to] = 0.0f - o->logprob[asked + column[WEIR_ASK_CE]];
    if (c->stat[WEIR_STAT_CONTRAST])
        c->stat[WEIR_STAT_CONTRAST][to] = o->logit[asked + column[WEIR_ASK_A]] - o->logit[asked + column[WEIR_ASK_B]];
}

static void put_cells(weir_lens_cells *c, int64_t first, int64_t n)
{
    const size_t k = (size_t)c->about->k;
    for (int l = 0; l < c->stack->n; l++) {
        int64_t from = l * c->n + first, to = l * n;
        for (int64_t i = 0; i < n; i++) {
            put_cell(c, from + i, to + i);
            c->lost += c->out.top_id[(size_t)(from + i) * k] < 0 || isnan(c->out.top_logprob[(size_t)(from + i) * k]);
        }
        memcpy(c->top_id + (size_t)to * k, c->out.top_id + (size_t)from * k, sizeof *c->top_id * (size_t)n * k);
        memcpy(c->top_logprob + (size_t)to * k, c->out.top_logprob + (size_t)from * k,
               sizeof *c->top_logprob * (size_t)n * k);
    }
    c->cells += n * c->stack->n;
}

/* The token that each position is asked about. */
static void fill_shown(const weir_lens_cells *c, int64_t first, int64_t n)
{
    const int32_t *final = c->out.top_id + (size_t)(c->stack->n - 1) * (size_t)c->n * (size_t)c->about->k;
    for (int64_t i = first; i < first + n; i++)
        c->shown[i] = c->target == WEIR_TARGET_NEXT    ? c->next[i]
                      : c->target == WEIR_TARGET_FINAL ? final[i * c->about->k]
                                                       : c->target;
}

weir_status weir_lens_cells_begin(weir_lens_cells *c, weir_err *err)
{
    for (int i = 0; i < c->n_sinks && !c->begun; i++)
        WEIR_TRY(c->sink[i]->begin(c->sink[i], c->about, err));
    c->begun = true;
    return WEIR_OK;
}

static weir_status hand_over(weir_lens_cells *c, const weir_lens_piece *p, weir_err *err)
{
    for (int i = 0; i < c->n_sinks; i++)
        WEIR_TRY(c->sink[i]->piece(c->sink[i], p, err));
    return WEIR_OK;
}

bool weir_lens_cells_vain(const weir_lens_cells *c)
{
    for (int i = 0; i < c->n_sinks; i++)
        if (ferror(c->sink[i]->out))
            return true;
    return false;
}

static weir_status put_piece(weir_lens_cells *c, int64_t first, int64_t n, bool ends, weir_err *err)
{
    put_cells(c, first, n);
    fill_shown(c, first, n);
    weir_lens_piece p = {.doc = c->doc[first],
                         .n = n,
                         .pos = c->pos + first,
                         .id = c->id + first,
                         .next = c->next + first,
                         .target = c->shown + first,
                         .top_id = c->top_id,
                         .top_logprob = c->top_logprob,
                         .doc_begins = c->doc[first] != c->last_doc,
                         .doc_ends = ends};
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        p.stat[s] = c->stat[s];
    c->last_doc = c->doc[first];
    return hand_over(c, &p, err);
}

weir_status weir_lens_cells_put(weir_lens_cells *c, bool ends, weir_err *err)
{
    if (c->n == 0)
        return WEIR_OK;
    WEIR_TRY(weir_lens_cells_begin(c, err));
    WEIR_TRY(measure(c, err));
    for (int64_t first = 0, to; first < c->n; first = to) {
        for (to = first + 1; to < c->n && c->doc[to] == c->doc[first];)
            to++;
        WEIR_TRY(put_piece(c, first, to - first, to < c->n || ends, err));
    }
    c->n = 0;
    return WEIR_OK;
}

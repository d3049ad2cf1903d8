/* Records edited and scored, several at a time. A worker has an editor and an asker of its own with one thread each, so
 * that a record's numbers are what they would be alone; results leave in the order of the records. */
#include <math.h>
#include <string.h>

#include "../base/parallel.h"
#include "../base/rng.h"
#include "entropy.h"
#include "rome.h"

typedef struct worker {
    weir_rome *editor;
    weir_asker *base;
    double text; /* the base's mean -log p of the text; NaN: none */
    bool ready;  /* all of these are there */
} worker;

typedef struct eval {
    const weir_model *model;
    const weir_tokenizer *tok;
    const weir_rome_prefixes *prefixes;
    weir_rome_options o;
    weir_rome_eval_options how;
    const weir_fact_list *facts;
    worker *worker;           /* [jobs] */
    weir_rome_result *result; /* [block] */
    int64_t first;            /* record of result[0] */
} eval;

/* --- the control: a Lambda of the same length in a direction that means nothing */

/* dst [r,C]: as long as the rows of v. */
static void draw(float *dst, const float *v, int64_t r, int64_t c, uint64_t *state)
{
    for (int64_t k = 0; k < r; k++, dst += c, v += c) {
        double length = 0, random = 0;
        for (int64_t i = 0; i < c; i++) {
            double sum = 0; /* of twelve uniform numbers: near enough to a normal one */
            for (int j = 0; j < 12; j++)
                sum += weir_rng_unit(weir_rng_next(state));
            dst[i] = (float)(sum - 6);
            random += (double)dst[i] * (double)dst[i];
            length += (double)v[i] * (double)v[i];
        }
        for (int64_t i = 0; i < c; i++)
            dst[i] = (float)((double)dst[i] * sqrt(length / random));
    }
}

/* In every matrix that the edit changes. */
static weir_status randomize(const eval *e, int64_t index, weir_edit **edit, weir_err *err)
{
    const int64_t c = weir_model_spec(e->model)->C, n = weir_edit_n(*edit);
    uint64_t state = e->how.seed ^ weir_rng_mix((uint64_t)index);
    weir_arena room = {0};
    weir_edit *made = NULL;
    weir_update *update = weir_arena_alloc(&room, (size_t)n, sizeof *update);
    bool ok = update != NULL;
    for (int64_t i = 0; ok && i < n; i++) {
        update[i] = *weir_edit_update(*edit, i);
        float *v = weir_arena_alloc(&room, (size_t)(update[i].r * c), sizeof *v);
        ok = v != NULL;
        if (ok)
            draw(v, update[i].v, update[i].r, c, &state);
        update[i].v = v;
    }
    const weir_status s = ok ? weir_edit_new(&made, e->model, update, n, err) : weir_nomem(err, "a random edit");
    weir_arena_free(&room);
    if (s == WEIR_OK) {
        weir_edit_free(*edit);
        *edit = made;
    }
    return s;
}

/* --- one record */

static weir_asker_options asker_options(const eval *e, const weir_edit *const *edits, int n)
{
    return (weir_asker_options){
        .edits = edits, .n_edits = n, .bos = e->o.bos, .threads = 1, .kernel = e->o.kernel, .memory = e->o.memory};
}

/* Everything that one model says of a record. */
static weir_status measure(const eval *e, weir_asker *a, const weir_fact *f, weir_fact_scores *scores, double *entropy,
                           weir_err *err)
{
    WEIR_TRY(weir_asker_score(a, f, scores, err));
    *entropy = NAN;
    return e->how.tokens ? weir_entropy(a, e->tok, f, e->how.tokens, entropy, err) : WEIR_OK;
}

static weir_status measure_text(const eval *e, weir_asker *a, double *nll, weir_err *err)
{
    int64_t tokens;
    *nll = NAN;
    return e->how.n_text ? weir_asker_texts(a, e->how.text, e->how.n_text, nll, &tokens, err) : WEIR_OK;
}

static weir_status measure_edited(const eval *e, const weir_edit *edit, const weir_fact *f, weir_rome_result *r)
{
    const weir_edit **stack = weir_calloc((size_t)e->o.n_edits + 1, sizeof *stack);
    weir_asker *a = NULL;
    if (!stack)
        return weir_nomem(&r->err, "an evaluation");
    for (int i = 0; i < e->o.n_edits; i++)
        stack[i] = e->o.edits[i];
    stack[e->o.n_edits] = edit;
    const weir_asker_options o = asker_options(e, stack, e->o.n_edits + 1);
    weir_status s = weir_asker_new(&a, e->model, e->tok, &o, &r->err);
    if (s == WEIR_OK)
        s = measure(e, a, f, &r->after, &r->entropy_after, &r->err);
    if (s == WEIR_OK)
        s = measure_text(e, a, &r->text_after, &r->err);
    weir_asker_free(a);
    weir_free(stack);
    return s;
}

static weir_status open_worker(const eval *e, worker *w, weir_err *err)
{
    const weir_asker_options o = asker_options(e, e->o.edits, e->o.n_edits);
    if (w->ready)
        return WEIR_OK;
    if (!w->editor)
        WEIR_TRY(weir_rome_new(&w->editor, e->model, e->tok, e->prefixes, &e->o, err));
    if (!w->base)
        WEIR_TRY(weir_asker_new(&w->base, e->model, e->tok, &o, err));
    WEIR_TRY(measure_text(e, w->base, &w->text, err));
    w->ready = true;
    return WEIR_OK;
}

static weir_status one(const eval *e, worker *w, const weir_fact *f, weir_rome_result *r)
{
    const weir_rome_request q = {f->prompt, f->subject, f->target};
    weir_edit *edit = NULL;
    WEIR_TRY(open_worker(e, w, &r->err));
    r->text_before = w->text;
    WEIR_TRY(measure(e, w->base, f, &r->before, &r->entropy_before, &r->err));
    r->left_out = e->how.known && r->before.rewrite != 0;
    if (r->left_out)
        return WEIR_OK;
    weir_status s = weir_rome_make(w->editor, &q, 1, &edit, &r->report, &r->err);
    if (s == WEIR_OK && e->how.random)
        s = randomize(e, r->index, &edit, &r->err);
    if (s == WEIR_OK)
        s = measure_edited(e, edit, f, r);
    weir_edit_free(edit);
    return s;
}

static void record(void *ctx, int64_t i, int thread)
{
    eval *e = ctx;
    weir_rome_result *r = &e->result[i];
    *r = (weir_rome_result){.index = e->first + i};
    r->status = one(e, &e->worker[thread], weir_fact_list_at(e->facts, r->index), r);
}

/* --- all of them */

static weir_status run(eval *e, int64_t first, int64_t end, int64_t block,
                       weir_status (*take)(void *user, const weir_rome_result *r), void *user, weir_err *err)
{
    for (e->first = first; e->first < end; e->first += block) {
        const int64_t n = end - e->first < block ? end - e->first : block;
        weir_parallel_for(e->how.jobs, n, 1, record, e);
        weir_status s = WEIR_OK;
        for (int64_t i = 0; i < n; i++) {
            if (s == WEIR_OK && e->result[i].status == WEIR_E_NOMEM) /* no fault of the record's */
                s = weir_fail(err, WEIR_E_NOMEM, "%s", e->result[i].err.msg);
            if (s == WEIR_OK)
                s = take(user, &e->result[i]);
            weir_rome_report_free(&e->result[i].report);
        }
        WEIR_TRY(s);
    }
    return WEIR_OK;
}

weir_status weir_fact_list_eval(const weir_model *m, const weir_tokenizer *tok, const weir_rome_prefixes *p,
                                const weir_rome_options *o, const weir_fact_list *facts, int64_t first, int64_t end,
                                const weir_rome_eval_options *how,
                                weir_status (*take)(void *user, const weir_rome_result *r), void *user, weir_err *err)
{
    if (first < 0 || end > weir_fact_list_n(facts) || first > end)
        return weir_fail(err, WEIR_E_ARG, "records %lld to %lld of %lld", (long long)first, (long long)end,
                         (long long)weir_fact_list_n(facts));
    eval e = {.model = m, .tok = tok, .prefixes = p, .o = *o, .how = *how, .facts = facts};
    e.o.threads = 1;
    e.how.jobs = weir_threads(how->jobs);
    const int64_t block = 4 * (int64_t)e.how.jobs;
    e.worker = weir_calloc((size_t)e.how.jobs, sizeof *e.worker);
    e.result = weir_calloc((size_t)block, sizeof *e.result);
    const weir_status s =
        e.worker && e.result ? run(&e, first, end, block, take, user, err) : weir_nomem(err, "an evaluation");
    for (int i = 0; e.worker && i < e.how.jobs; i++) {
        weir_rome_free(e.worker[i].editor);
        weir_asker_free(e.worker[i].base);
    }
    weir_free(e.worker);
    weir_free(e.result);
    return s;
}

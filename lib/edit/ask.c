/* What a model answers. Questions are packed into passes, and logits are made at the answers' positions alone. */
#include <math.h>
#include <string.h>

#include <weir/facts.h>

#include "../base/mem.h"
#include "../run/state.h"
#include "answer.h"

enum { ROWS = 512 /* of questions in a pass */, LEAST = 64 /* rows and tokens of the first run */ };
enum { WANTED = 64 /* rows of logits at once */ };

/* A position whose logits are wanted: a token of an answer. */
typedef struct wanted {
    int64_t row, question;
    int32_t token;
    bool first;
} wanted;

struct weir_asker {
    const weir_model *model;
    const weir_tokenizer *tok;
    const weir_spec *spec;
    weir_asker_options o;
    weir_run *run;
    int64_t max_rows, max_len; /* what the run has room for */
    int32_t bos;
    weir_tokens t;
    /* a pass */
    int32_t *id; /* [the larger of ROWS and the context], these three */
    weir_seq *seq;
    wanted *want;
    int64_t n_rows, n_seq, n_want, longest;
    float *h;      /* [WANTED,C] */
    float *logits; /* [WANTED,V] */
};

static weir_status make_run(weir_asker *a, weir_err *err)
{
    weir_run_options o;
    weir_run_options_init(&o);
    o.threads = a->o.threads, o.kernel = a->o.kernel, o.memory = a->o.memory;
    o.edits = a->o.edits, o.n_edits = a->o.n_edits;
    o.max_rows = a->max_rows, o.max_len = a->max_len, o.slots = 1;
    WEIR_TRY(weir_run_new(&a->run, a->model, &o, err));
    return weir_run_prepare(a->run, WEIR_FINAL, err);
}

static int64_t grown(int64_t room, int64_t need, int64_t most)
{
    while (room < need)
        room *= 2;
    return room < most ? room : most;
}

/* Room for so many rows, of sequences so long: short questions of a model with a long context should not pay for that.
 * A run that has too little is made anew; weights stay with the model. */
static weir_status fit(weir_asker *a, int64_t rows, int64_t len, weir_err *err)
{
    const int64_t ctx = a->spec->ctx;
    if (a->run && rows <= a->max_rows && len <= a->max_len)
        return WEIR_OK;
    weir_run_free(a->run);
    a->run = NULL;
    a->max_rows = grown(a->max_rows, rows, ctx < ROWS ? ROWS : ctx);
    a->max_len = grown(a->max_len, len, ctx);
    return make_run(a, err);
}

weir_status weir_asker_new(weir_asker **out, const weir_model *m, const weir_tokenizer *tok,
                           const weir_asker_options *o, weir_err *err)
{
    *out = NULL;
    weir_asker *a = weir_calloc(1, sizeof *a);
    if (!a)
        return weir_nomem(err, "what asks a model");
    const weir_spec *s = weir_model_spec(m);
    *a = (weir_asker){.model = m, .tok = tok, .spec = s, .o = *o, .bos = o->bos ? weir_tokenizer_bos(tok) : -1};
    a->max_rows = LEAST, a->max_len = s->ctx < LEAST ? s->ctx : LEAST;
    const size_t rows = (size_t)(s->ctx < ROWS ? ROWS : s->ctx);
    a->id = weir_calloc(rows, sizeof *a->id);
    a->seq = weir_calloc(rows, sizeof *a->seq);
    a->want = weir_calloc(rows, sizeof *a->want);
    a->h = weir_calloc(WANTED, (size_t)s->C * sizeof *a->h);
    a->logits = weir_calloc(WANTED, (size_t)s->V * sizeof *a->logits);
    weir_status st =
        a->id && a->seq && a->want && a->h && a->logits ? fit(a, 1, 1, err) : weir_nomem(err, "what asks a model");
    if (st != WEIR_OK)
        weir_asker_free(a);
    else
        *out = a;
    return st;
}

void weir_asker_free(weir_asker *a)
{
    if (!a)
        return;
    weir_run_free(a->run);
    weir_tokens_free(&a->t);
    weir_free(a->id);
    weir_free(a->seq);
    weir_free(a->want);
    weir_free(a->h);
    weir_free(a->logits);
    weir_free(a);
}

static weir_status not_finite(weir_err *err)
{
    return weir_fail(err, WEIR_E_ARG, "the model's logits are not finite");
}

/* --- logits of the wanted rows */

/* Rows [from, from + n) of the list, soft cap applied. */
static weir_status wanted_logits(weir_asker *a, int64_t from, int64_t n, weir_err *err)
{
    const weir_run *r = a->run;
    const int64_t c = a->spec->C, v = a->spec->V;
    for (int64_t i = 0; i < n; i++)
        memcpy(a->h + i * c, r->b.h + a->want[from + i].row * c, (size_t)c * sizeof *a->h);
    const weir_unembedding u = {
        .model = r->model, .kern = r->kern, .threads = r->threads, .room = r->room, .scratch = r->b.gemm};
    WEIR_TRY(weir_unembed(&u, a->h, n, a->logits, err));
    if (a->spec->logit_softcap != 0)
        weir_op_softcap(r->kern, r->threads, a->logits, a->spec->logit_softcap, n * v);
    return WEIR_OK;
}

static int32_t likeliest(const float *x, int64_t v)
{
    int64_t best = 0;
    for (int64_t i = 1; i < v; i++)
        if (x[i] > x[best])
            best = i;
    return (int32_t)best;
}

static int64_t rank_of(const float *x, int64_t v, int32_t token)
{
    int64_t rank = 1;
    for (int64_t i = 0; i < v; i++)
        rank += x[i] > x[token] || (x[i] == x[token] && i < token);
    return rank;
}

static weir_status note(weir_asker *a, const wanted *w, const float *x, weir_answer *answer, weir_err *err)
{
    const int64_t v = a->spec->V;
    weir_row_sum sum;
    weir_op_row_sums(a->run->kern, a->run->threads, &sum, x, v, 1, v);
    if (!isfinite(sum.log_sum))
        return not_finite(err);
    const int32_t top = likeliest(x, v);
    weir_answer *r = &answer[w->question];
    if (w->first)
        *r = (weir_answer){.rank = rank_of(x, v, w->token),
                           .first = w->token,
                           .top = top,
                           .top_p = exp((double)weir_row_logprob(&sum, x[top])),
                           .greedy = true};
    r->greedy = r->greedy && top == w->token;
    r->nll -= (double)weir_row_logprob(&sum, x[w->token]); /* a sum until all are there */
    r->tokens++;
    return WEIR_OK;
}

/* --- passes */

static weir_status run_pass(weir_asker *a, weir_answer *answer, weir_err *err)
{
    if (!a->n_seq)
        return WEIR_OK;
    WEIR_TRY(fit(a, a->n_rows, a->longest, err));
    WEIR_TRY(weir_run_forward(a->run, a->seq, a->n_seq, WEIR_FINAL, err));
    for (int64_t i = 0; i < a->n_want; i += WANTED) {
        const int64_t n = a->n_want - i < WANTED ? a->n_want - i : WANTED;
        WEIR_TRY(wanted_logits(a, i, n, err));
        for (int64_t j = 0; j < n; j++)
            WEIR_TRY(note(a, &a->want[i + j], a->logits + j * a->spec->V, answer, err));
    }
    a->n_rows = a->n_seq = a->n_want = a->longest = 0;
    return WEIR_OK;
}

/* Appends a question to the pass that is being made; a full one is run first. */
static weir_status add(weir_asker *a, const weir_question *q, int64_t index, weir_answer *answer, weir_err *err)
{
    const int64_t bos = a->bos >= 0;
    int64_t first;
    WEIR_TRY(weir_answer_find(a->tok, weir_prompt_trim(q->prompt), q->answer, &a->t, &first, err));
    const int64_t n = bos + a->t.n - 1;
    if (n > a->spec->ctx)
        return weir_fail(err, WEIR_E_ARG, "\"%.120s...\" and its answer have %lld tokens, the model's context %lld",
                         q->prompt, (long long)n, (long long)a->spec->ctx);
    if (bos + first == 0)
        return weir_fail(err, WEIR_E_ARG, "\"%.200s\" is asked behind nothing: a prompt is needed", q->answer);
    if (a->n_rows + n > ROWS)
        WEIR_TRY(run_pass(a, answer, err));
    int32_t *id = a->id + a->n_rows;
    id[0] = a->bos;
    memcpy(id + bos, a->t.id, (size_t)(a->t.n - 1) * sizeof *id);
    for (int64_t i = first; i < a->t.n; i++)
        a->want[a->n_want++] =
            (wanted){.row = a->n_rows + bos + i - 1, .question = index, .token = a->t.id[i], .first = i == first};
    a->seq[a->n_seq++] = (weir_seq){.ids = id, .n = n, .slot = -1};
    a->n_rows += n;
    a->longest = n > a->longest ? n : a->longest;
    return WEIR_OK;
}

weir_status weir_asker_ask(weir_asker *a, const weir_question *q, int64_t n, weir_answer *answer, weir_err *err)
{
    a->n_rows = a->n_seq = a->n_want = a->longest = 0;
    for (int64_t i = 0; i < n; i++)
        WEIR_TRY(add(a, &q[i], i, answer, err));
    WEIR_TRY(run_pass(a, answer, err));
    for (int64_t i = 0; i < n; i++) {
        answer[i].p = exp(-answer[i].nll);
        answer[i].nll /= (double)answer[i].tokens;
    }
    return WEIR_OK;
}

weir_status weir_asker_continue(weir_asker *a, const char *prompt, int64_t n, int32_t *id, int64_t *made, weir_err *err)
{
    const int64_t bos = a->bos >= 0;
    const int32_t end = weir_tokenizer_eos(a->tok);
    const weir_str text = weir_prompt_trim(prompt);
    *made = 0;
    WEIR_TRY(weir_tokenizer_encode(a->tok, text.p, text.n, &a->t, err));
    if (bos + a->t.n < 1 || bos + a->t.n > a->spec->ctx)
        return weir_fail(err, WEIR_E_ARG, "\"%.120s\" has %lld tokens: 1 to %lld can be", prompt,
                         (long long)(bos + a->t.n), (long long)a->spec->ctx);
    a->id[0] = a->bos;
    memcpy(a->id + bos, a->t.id, (size_t)a->t.n * sizeof *a->id);
    weir_seq s = {.ids = a->id, .n = bos + a->t.n, .slot = 0};
    WEIR_TRY(fit(a, s.n, s.n + n < a->spec->ctx ? s.n + n : a->spec->ctx, err));
    weir_run_slot_reset(a->run, 0);
    for (int64_t used = s.n; *made < n && used <= a->spec->ctx; used++) {
        WEIR_TRY(weir_run_forward(a->run, &s, 1, WEIR_FINAL, err));
        WEIR_TRY(weir_run_logits(a->run, s.n - 1, 1, a->logits, err));
        const int32_t next = likeliest(a->logits, a->spec->V);
        if (next == end)
            break;
        id[(*made)++] = next;
        s = (weir_seq){.ids = id + *made - 1, .n = 1, .slot = 0};
    }
    return WEIR_OK;
}

/* --- a text */

/* One window: ids [n], the last of which is only a target. */
static weir_status window(weir_asker *a, const int32_t *ids, int64_t n, int32_t *target, float *logprob, double *sum,
                          int64_t *tokens, weir_err *err)
{
    const weir_seq s = {.ids = ids, .n = n - 1, .slot = -1};
    for (int64_t i = 0; i < n - 1; i++)
        target[i] = ids[i + 1];
    WEIR_TRY(fit(a, s.n, s.n, err));
    WEIR_TRY(weir_run_forward(a->run, &s, 1, WEIR_FINAL, err));
    WEIR_TRY(weir_run_logprobs(a->run, target, logprob, err));
    for (int64_t i = 0; i < n - 1; i++)
        *sum -= (double)logprob[i];
    *tokens += n - 1;
    return WEIR_OK;
}

static weir_status windows(weir_asker *a, int32_t *id, int32_t *target, float *logprob, double *sum, int64_t *tokens,
                           weir_err *err)
{
    const int64_t bos = a->bos >= 0, room = a->spec->ctx - bos;
    for (int64_t at = 0; at + 1 - bos < a->t.n; at += room + bos) {
        const int64_t n = a->t.n - at < room + 1 ? a->t.n - at : room + 1; /* the last is only a target */
        id[0] = a->bos;
        memcpy(id + bos, a->t.id + at, (size_t)n * sizeof *id);
        if (bos + n > 1)
            WEIR_TRY(window(a, id, bos + n, target, logprob, sum, tokens, err));
    }
    return WEIR_OK;
}

weir_status weir_asker_text(weir_asker *a, const char *text, size_t len, double *nll, int64_t *tokens, weir_err *err)
{
    const size_t room = (size_t)a->spec->ctx + 2;
    double sum = 0;
    *nll = NAN, *tokens = 0;
    WEIR_TRY(weir_tokenizer_encode(a->tok, text, len, &a->t, err));
    int32_t *id = weir_calloc(room, sizeof *id), *target = weir_calloc(room, sizeof *target);
    float *logprob = weir_calloc(room, sizeof *logprob);
    const weir_status s =
        id && target && logprob ? windows(a, id, target, logprob, &sum, tokens, err) : weir_nomem(err, "a text");
    weir_free(id);
    weir_free(target);
    weir_free(logprob);
    WEIR_TRY(s);
    if (!isfinite(sum))
        return not_finite(err);
    if (*tokens)
        *nll = sum / (double)*tokens;
    return WEIR_OK;
}

weir_status weir_asker_texts(weir_asker *a, const weir_str *text, int64_t n, double *nll, int64_t *tokens,
                             weir_err *err)
{
    double sum = 0;
    *nll = NAN, *tokens = 0;
    for (int64_t i = 0; i < n; i++) {
        double mean;
        int64_t these;
        WEIR_TRY(weir_asker_text(a, text[i].p, text[i].n, &mean, &these, err));
        sum += these ? mean * (double)these : 0;
        *tokens += these;
    }
    if (*tokens)
        *nll = sum / (double)*tokens;
    return WEIR_OK;
}

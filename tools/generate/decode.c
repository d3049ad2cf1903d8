/* Passes over many sequences at once. Each has a slot for its keys and values while it grows; a free slot takes the
 * next sequence that waits. A pass has one row of each sequence whose next token is to be chosen, and in what is left
 * of its rows, pieces of prompts. What else is in a pass changes no bit of a sequence (weir/run.h), so neither do slots
 * and rows: a sequence is the same alone.
 */
#include <math.h>
#include <stdlib.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "job.h"

enum { LOGIT_ROWS = 16 }; /* whose logits are held at a time */

typedef struct decoder {
    weir_gen_job *j;
    weir_gen_arm *arm;
    weir_sampler *sampler;
    float *logits;   /* [LOGIT_ROWS, V] */
    int64_t V, rows; /* rows of a pass at most */
    int slots;
    weir_gen_seq **in;            /* [slots] NULL: free */
    const weir_gen_prompt **held; /* [slots] whose keys and values begin what lies there, also when it is free */
    bool shares;                  /* samples of a prompt have it run once: no hook has to hear it for each */
    int64_t waiting;              /* the next sequence that gets a slot */
    weir_seq *piece;              /* [slots] of the pass; the first `ready` are one row each */
    weir_gen_seq **of;            /* [slots] whose they are */
    int64_t n, ready;
    bool whole; /* the last piece is the rest of a prompt: the token behind it is chosen too */
} decoder;

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for the text that is generated");
}

/* --- the pass */

/* The prompt up to its last token, from a slot of another sample, or what this one held before. *wait: the other is
 * still at it. */
static weir_status take_prompt(decoder *d, weir_gen_seq *s, int slot, bool *wait, weir_err *err)
{
    const int64_t n = s->prompt->t.n - 1;
    *wait = false;
    for (int i = 0; i < d->slots && d->shares; i++) {
        const int from = (slot + i) % d->slots;
        if (d->held[from] != s->prompt)
            continue;
        *wait = weir_run_slot_len(d->arm->run, from) < n;
        if (*wait)
            return WEIR_OK;
        s->done = n;
        return weir_run_slot_copy(d->arm->run, slot, from, n, err);
    }
    weir_run_slot_reset(d->arm->run, slot);
    return WEIR_OK;
}

static weir_status fill_slots(decoder *d, weir_err *err)
{
    for (int i = 0; i < d->slots && d->waiting < d->j->n_seq; i++) {
        weir_gen_seq *s = &d->arm->seq[d->waiting];
        bool wait;
        if (d->in[i])
            continue;
        WEIR_TRY(take_prompt(d, s, i, &wait, err));
        if (wait) /* those behind it come in their turn */
            return WEIR_OK;
        s->slot = i;
        d->in[i] = s;
        d->held[i] = s->prompt;
        d->waiting++;
    }
    return WEIR_OK;
}

static void add_piece(decoder *d, weir_gen_seq *s, int64_t n)
{
    d->of[d->n] = s;
    d->piece[d->n++] =
        (weir_seq){.ids = s->id + s->done, .n = n, .slot = s->slot, .tag = s->prompt->doc.doc.index, .total = s->n};
}

/* Tokens before the last one of each prompt; the last is a row by itself in the next pass, where its logits are made
 * together with those of the others. Where nothing else is left to be run, it comes at once. */
static weir_status plan(decoder *d, weir_err *err)
{
    int64_t rows = 0;
    d->n = 0;
    WEIR_TRY(fill_slots(d, err));
    for (int i = 0; i < d->slots; i++)
        if (d->in[i] && d->in[i]->n - d->in[i]->done == 1)
            add_piece(d, d->in[i], 1);
    d->ready = rows = d->n;
    for (int i = 0; i < d->slots && rows < d->rows; i++) {
        const weir_gen_seq *s = d->in[i];
        int64_t left = s ? s->n - s->done - 1 : 0, n = left < d->rows - rows ? left : d->rows - rows;
        if (n < 1)
            continue;
        add_piece(d, d->in[i], n);
        rows += n;
    }
    weir_seq *last = d->n > d->ready ? &d->piece[d->n - 1] : NULL;
    d->whole = last && rows < d->rows && d->of[d->n - 1]->n - d->of[d->n - 1]->done == last->n + 1;
    if (d->whole)
        last->n++;
    return WEIR_OK;
}

/* --- the next token */

static bool is_end(const weir_gen_job *j, int32_t id, bool *eos)
{
    for (int64_t i = 0; i < j->n_ends; i++)
        if (j->end_id[i] == id) {
            *eos = i < j->n_eos;
            return true;
        }
    return false;
}

static void cut_off(const decoder *d, const weir_gen_seq *s)
{
    if (s->end == WEIR_GEN_CONTEXT)
        weir_cli_note(d->j->cli,
                      "the context of %lld tokens is full: the text of document %lld ends after %lld of %lld "
                      "tokens",
                      (long long)d->j->session.ctx, (long long)s->prompt->doc.doc.index,
                      (long long)(s->n - s->prompt->t.n), (long long)d->j->a->max_tokens);
}

/* The sequence has one token more. */
static weir_status take(decoder *d, weir_gen_seq *s, const float *logits, weir_err *err)
{
    int32_t id;
    bool eos = false;
    weir_status st = weir_sampler_next(d->sampler, logits, s->id, s->n, (uint64_t)s->sample, (uint64_t)s->n, &id, err);
    if (st != WEIR_OK)
        return weir_err_where(err, s->prompt->doc.source, NULL, -1);
    if (s->logprob)
        s->logprob[s->n] = weir_sampler_logprob(d->sampler, logits, id);
    s->id[s->n++] = id;
    d->j->generated++;
    if (is_end(d->j, id, &eos))
        s->end = eos ? WEIR_GEN_EOS : WEIR_GEN_STOP_ID;
    else if (!weir_gen_text_add(d->j, s, id))
        return no_memory(err);
    if (s->end == WEIR_GEN_RUNNING && s->n - s->prompt->t.n == d->j->a->max_tokens)
        s->end = WEIR_GEN_LENGTH;
    if (s->end == WEIR_GEN_RUNNING && s->n == d->j->session.ctx)
        s->end = WEIR_GEN_CONTEXT;
    cut_off(d, s);
    s->last_run = s->end != WEIR_GEN_RUNNING && d->j->record;
    if (d->arm->grown)
        d->arm->grown(d->j, s);
    return WEIR_OK;
}

/* Rows [row, row + n) of the pass are the last ones of the sequences from `first` on. */
static weir_status choose(decoder *d, int64_t first, int64_t row, int64_t n, weir_err *err)
{
    for (int64_t from = 0; from < n; from += LOGIT_ROWS) {
        int64_t part = n - from < LOGIT_ROWS ? n - from : LOGIT_ROWS;
        WEIR_TRY(weir_run_logits(d->arm->run, row + from, part, d->logits, err));
        for (int64_t i = 0; i < part; i++) {
            weir_gen_seq *s = d->of[first + from + i];
            if (s->end == WEIR_GEN_RUNNING)
                WEIR_TRY(take(d, s, d->logits + i * d->V, err));
        }
    }
    return WEIR_OK;
}

static weir_status after_pass(decoder *d, weir_err *err)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < d->n; i++) {
        weir_gen_seq *s = d->of[i];
        s->done += d->piece[i].n;
        rows += d->piece[i].n;
        if (d->j->record)
            WEIR_TRY(weir_gen_record_rows(d->j, s, s->done - d->piece[i].n, s->done, err));
        s->last_run = s->last_run && s->done < s->n;
    }
    d->j->rows += rows;
    WEIR_TRY(choose(d, 0, 0, d->ready, err));
    return d->whole ? choose(d, d->n - 1, rows - 1, 1, err) : WEIR_OK;
}

static void free_slots(decoder *d)
{
    for (int i = 0; i < d->slots; i++)
        if (d->in[i] && d->in[i]->end != WEIR_GEN_RUNNING && !d->in[i]->last_run) {
            d->in[i]->slot = -1;
            d->in[i] = NULL;
        }
}

static weir_status run_passes(decoder *d, weir_err *err)
{
    for (;;) {
        WEIR_TRY(plan(d, err));
        const bool unread = ferror(stdout) && !d->j->record; /* the reader went away: main() says what is to be said */
        if (!d->n || weir_signals_seen() || unread)
            return WEIR_OK;
        weir_status st = weir_run_forward(d->arm->run, d->piece, d->n, WEIR_FINAL, err);
        if (st == WEIR_STOP)
            return weir_fail(err, WEIR_E_HOOK, "a hook stopped in the middle of a pass: no token follows");
        if (st != WEIR_OK)
            return st;
        WEIR_TRY(after_pass(d, err));
        free_slots(d);
        if (weir_run_enough(d->arm->run)) {
            weir_cli_note(d->j->cli, "a hook ended the run");
            return WEIR_OK;
        }
    }
}

/* --- the whole */

static weir_status open_decoder(decoder *d, weir_err *err)
{
    d->slots = weir_gen_slots(d->j);
    d->V = d->j->session.info->V;
    d->rows = d->j->a->session.run.batch;
    size_t n = (size_t)d->slots;
    d->in = calloc(n, sizeof *d->in);
    d->held = calloc(n, sizeof *d->held);
    d->shares = !d->j->record && (d->arm->run == d->j->plain_run || d->j->session.attach.n == 0);
    d->of = calloc(n, sizeof *d->of);
    d->piece = calloc(n, sizeof *d->piece);
    d->logits = malloc(sizeof *d->logits * (size_t)d->V * LOGIT_ROWS);
    if (!d->in || !d->held || !d->of || !d->piece || !d->logits)
        return no_memory(err);
    return weir_sampler_new(&d->sampler, d->V, &d->j->sampling, err);
}

static void close_decoder(decoder *d)
{
    weir_sampler_free(d->sampler);
    free(d->in);
    free(d->held);
    free(d->of);
    free(d->piece);
    free(d->logits);
}

/* What has not ended ends here. */
static void cut_all(decoder *d)
{
    for (int64_t i = 0; i < d->j->n_seq; i++) {
        weir_gen_seq *s = &d->arm->seq[i];
        if (s->end != WEIR_GEN_RUNNING)
            continue;
        s->end = WEIR_GEN_CUT;
        if (d->arm->grown)
            d->arm->grown(d->j, s);
    }
}

int weir_gen_decode(weir_gen_job *j, weir_gen_arm *arm)
{
    weir_err err = {0};
    decoder d = {.j = j, .arm = arm};
    const double start = weir_now();
    weir_status st = open_decoder(&d, &err);
    if (st == WEIR_OK)
        st = run_passes(&d, &err);
    cut_all(&d);
    close_decoder(&d);
    j->seconds += weir_now() - start;
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(j->cli, &err);
}

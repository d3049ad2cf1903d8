/* Text to prompts, and these to sequences. All prompts are read before the first is run: the longest says how much room
 * a slot needs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "job.h"

static int no_memory(const weir_gen_job *j)
{
    return weir_cli_error(j->cli, "out of memory for the prompts");
}

/* --- one prompt */

/* A BOS that the text does not have goes before it. */
static bool put_bos(weir_gen_prompt *p, int32_t bos)
{
    weir_tokens *t = &p->t;
    const size_t n = (size_t)t->n;
    if (t->n == t->cap) {
        const size_t cap = n + 1;
        int32_t *id = realloc(t->id, cap * sizeof *id);
        t->id = id ? id : t->id;
        int64_t *off = realloc(t->byte_off, cap * sizeof *off);
        t->byte_off = off ? off : t->byte_off;
        int64_t *len = realloc(t->byte_len, cap * sizeof *len);
        t->byte_len = len ? len : t->byte_len;
        uint8_t *flags = realloc(t->flags, cap);
        t->flags = flags ? flags : t->flags;
        if (!id || !off || !len || !flags)
            return false;
        t->cap = (int64_t)cap;
    }
    memmove(t->id + 1, t->id, n * sizeof *t->id);
    memmove(t->byte_off + 1, t->byte_off, n * sizeof *t->byte_off);
    memmove(t->byte_len + 1, t->byte_len, n * sizeof *t->byte_len);
    memmove(t->flags + 1, t->flags, n);
    t->id[0] = bos;
    t->byte_off[0] = t->byte_len[0] = 0;
    t->flags[0] = WEIR_TOKEN_BOS;
    t->n++;
    p->bos = true;
    return true;
}

static int check_length(const weir_gen_job *j, const weir_gen_prompt *p)
{
    const long long ctx = (long long)j->session.ctx, n = (long long)p->t.n;
    if (n == 0)
        return weir_cli_error(j->cli, "document %lld%s comes to no token: nothing to go on from",
                              (long long)p->doc.doc.index, j->session.chat ? ", in its chat template," : "");
    if (n < ctx)
        return WEIR_EXIT_OK;
    return weir_cli_error(j->cli,
                          "document %lld has %lld tokens%s, which leaves no room in the context of %lld: a prompt "
                          "has %lld at most",
                          (long long)p->doc.doc.index, n, p->bos ? ", BOS counted" : "", ctx, ctx - 1);
}

/* The words of ids without a tokenizer. */
static bool spell_ids(weir_gen_prompt *p)
{
    FILE *f = open_memstream(&p->text, &p->text_n);
    for (int64_t i = 0; f && i < p->t.n; i++)
        fprintf(f, i ? " %d" : "%d", p->t.id[i]);
    return f && fclose(f) == 0;
}

/* What the prompt is as a text: the document's; of ids, and of a chat, whose template is around it, that of the tokens.
 */
static bool take_text(const weir_gen_job *j, weir_gen_prompt *p, const weir_doc *doc)
{
    weir_err err = {0};
    const weir_tokenizer *tok = j->session.tok;
    const bool chat = j->session.chat != NULL, ids = j->a->session.rows.ids;
    if (!tok)
        return spell_ids(p);
    p->text_n = doc->text.n;
    if ((chat || ids) && weir_tokenizer_decode(tok, p->t.id, p->t.n, chat, NULL, 0, &p->text_n, &err) != WEIR_OK)
        return spell_ids(p); /* an id beyond the vocabulary's: padding */
    p->text = malloc(p->text_n + 1);
    if (!p->text)
        return false;
    if (!chat && !ids)
        memcpy(p->text, doc->text.p, p->text_n);
    else if (weir_tokenizer_decode(tok, p->t.id, p->t.n, chat, p->text, p->text_n, &p->text_n, &err) != WEIR_OK)
        return false;
    return true;
}

static int take_prompt(weir_gen_job *j, const weir_doc *doc)
{
    weir_err err = {0};
    weir_session *s = &j->session;
    const char *source = weir_docs_source(s->in.docs, doc->source);
    weir_gen_prompt *p = realloc(j->prompt, sizeof *p * (size_t)(j->n_prompts + 1));
    if (!p)
        return no_memory(j);
    j->prompt = p;
    p = &j->prompt[j->n_prompts++];
    *p = (weir_gen_prompt){0};
    if (!weir_batch_doc_take(&p->doc, doc, source))
        return no_memory(j);
    if (weir_feed_tokens(s->feed, doc, source, &p->t, &err) != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    if (s->bos && !(p->t.n && p->t.id[0] == weir_tokenizer_bos(s->tok) && s->a->rows.ids) &&
        !put_bos(p, weir_tokenizer_bos(s->tok)))
        return no_memory(j);
    const int code = check_length(j, p);
    return code == WEIR_EXIT_OK && !take_text(j, p, doc) ? no_memory(j) : code;
}

int weir_gen_prompts_read(weir_gen_job *j)
{
    weir_err err = {0};
    weir_doc doc;
    bool more = true;
    int code = WEIR_EXIT_OK;
    while (code == WEIR_EXIT_OK && more) {
        if (weir_docs_next(j->session.in.docs, &doc, &more, &err) != WEIR_OK)
            return weir_cli_fail(j->cli, &err);
        if (more)
            code = take_prompt(j, &doc);
    }
    if (code == WEIR_EXIT_OK && !j->n_prompts)
        return weir_cli_error(j->cli, "the input holds no document");
    j->n_seq = j->n_prompts * j->a->samples;
    return code;
}

void weir_gen_prompts_free(weir_gen_job *j)
{
    for (int64_t i = 0; i < j->n_prompts; i++) {
        free(j->prompt[i].doc.own);
        free(j->prompt[i].text);
        weir_tokens_free(&j->prompt[i].t);
    }
    free(j->prompt);
}

/* --- sequences */

static int64_t room_of(const weir_gen_job *j, const weir_gen_prompt *p)
{
    int64_t room = p->t.n + j->a->max_tokens;
    return room < j->session.ctx ? room : j->session.ctx;
}

static bool make_seq(const weir_gen_job *j, weir_gen_seq *s, const weir_gen_prompt *p, int64_t sample)
{
    const bool logprob = j->a->logprob;
    *s = (weir_gen_seq){.prompt = p, .sample = sample, .n = p->t.n, .room = room_of(j, p), .slot = -1};
    s->id = malloc(sizeof *s->id * (size_t)s->room);
    s->logprob = logprob ? malloc(sizeof *s->logprob * (size_t)s->room) : NULL;
    if (!s->id || (logprob && !s->logprob))
        return false;
    memcpy(s->id, p->t.id, sizeof *s->id * (size_t)s->n);
    for (int64_t i = 0; logprob && i < s->n; i++)
        s->logprob[i] = NAN;
    return true;
}

int weir_gen_sequences(weir_gen_job *j, weir_gen_arm *arm)
{
    arm->seq = calloc((size_t)j->n_seq, sizeof *arm->seq);
    bool ok = arm->seq != NULL;
    for (int64_t i = 0; ok && i < j->n_seq; i++)
        ok = make_seq(j, &arm->seq[i], &j->prompt[i / j->a->samples], i % j->a->samples);
    return ok ? WEIR_EXIT_OK : no_memory(j);
}

void weir_gen_sequences_free(weir_gen_job *j, weir_gen_arm *arm)
{
    for (int64_t i = 0; arm->seq && i < j->n_seq; i++) {
        free(arm->seq[i].id);
        free(arm->seq[i].logprob);
        free(arm->seq[i].text);
    }
    free(arm->seq);
}

int64_t weir_gen_longest(const weir_gen_job *j)
{
    int64_t longest = 1;
    for (int64_t i = 0; i < j->n_prompts; i++) {
        int64_t room = room_of(j, &j->prompt[i]);
        longest = room > longest ? room : longest;
    }
    return longest;
}

int weir_gen_slots(const weir_gen_job *j)
{
    enum { MOST = 64 };
    const weir_model_info *m = j->session.info;
    const int64_t memory = j->a->session.run.memory, room = memory ? memory / 4 : (int64_t)1 << 30;
    /* Keys are kept in panels of 48 (lib/kernels/README.md). */
    const int64_t bytes = (weir_gen_longest(j) + 48) * m->L * m->K * m->D * 2 * (int64_t)sizeof(float);
    int64_t n = j->n_seq < MOST ? j->n_seq : MOST;
    n = n < room / bytes ? n : room / bytes;
    n = n < j->a->session.run.batch ? n : j->a->session.run.batch;
    return n < 1 || j->a->dump ? 1 : (int)n; /* a dump has its rows in the order of the documents */
}

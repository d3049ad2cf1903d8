#include "asked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const weir_asked_kind_name[] = {"request", "paraphrase", "neighbour"};

bool weir_asked_add(weir_asked_list *l, weir_asked_kind kind, int64_t request, const char *prompt, const char *answer,
                    const char *other)
{
    weir_asked *more = realloc(l->v, ((size_t)l->n + 1) * sizeof *more);
    char *copy = strdup(prompt);
    if (more)
        l->v = more;
    if (!more || !copy) {
        free(copy);
        return false;
    }
    more[l->n++] = (weir_asked){.kind = kind, .request = request, .prompt = copy, .answer = answer, .other = other};
    return true;
}

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

/* "PREFIX. PROMPT", as edits are made with; to be freed. */
static char *behind(const char *prefix, const char *prompt)
{
    char *text = malloc(strlen(prefix) + strlen(prompt) + 3);
    if (text)
        sprintf(text, "%s%s%s", prefix, *prefix ? ". " : "", prompt);
    return text;
}

static weir_status ask_prefixed(const weir_asked *q, weir_asked_side *side, weir_asker *a, const weir_made *m,
                                weir_err *err)
{
    const size_t n = (size_t)m->n_prefixes;
    weir_question *ask = calloc(n + 1, sizeof *ask);
    weir_answer *answer = calloc(n + 1, sizeof *answer);
    bool ok = ask && answer;
    for (size_t i = 0; ok && i < n; i++) {
        ask[i] = (weir_question){behind(m->prefix[i], q->prompt), q->answer};
        ok = ask[i].prompt != NULL;
    }
    weir_status st = ok ? weir_asker_ask(a, ask, m->n_prefixes, answer, err) : no_memory(err);
    side->prefixed_p = n ? 0 : (double)NAN;
    for (size_t i = 0; st == WEIR_OK && i < n; i++) {
        side->prefixed_p += answer[i].p / (double)n;
        side->prefixed_said += answer[i].greedy;
    }
    for (size_t i = 0; ask && i < n; i++)
        free((char *)ask[i].prompt);
    free(ask);
    free(answer);
    return st;
}

static weir_status ask_one(weir_asked *q, weir_asked_side *side, weir_asker *a, const weir_tokenizer *tok,
                           const weir_made *m, int64_t tokens, weir_err *err)
{
    WEIR_TRY(weir_told_ask(&side->told, a, tok, q->prompt, "{}", q->answer, tokens, err));
    if (q->other) {
        const weir_question other = {q->prompt, q->other};
        WEIR_TRY(weir_asker_ask(a, &other, 1, &side->other, err));
    }
    return q->kind == WEIR_ASKED_REQUEST ? ask_prefixed(q, side, a, m, err) : WEIR_OK;
}

/* Each of the texts, and the mean over all tokens. */
static weir_status ask_texts(weir_asked_list *l, bool after, weir_asker *a, const weir_rome_texts *text, weir_err *err)
{
    double sum = 0;
    int64_t all = 0;
    if (!l->text && !(l->text = calloc((size_t)text->n + 1, sizeof *l->text)))
        return no_memory(err);
    for (int64_t i = 0; i < text->n; i++) {
        weir_asked_text *t = &l->text[i];
        double *mean = after ? &t->after : &t->before;
        WEIR_TRY(weir_asker_text(a, text->text[i].p, text->text[i].n, mean, &t->tokens, err));
        sum += t->tokens ? *mean * (double)t->tokens : 0;
        all += t->tokens;
    }
    *(after ? &l->text_after : &l->text_before) = all ? sum / (double)all : (double)NAN;
    return WEIR_OK;
}

weir_status weir_asked_ask(weir_asked_list *l, bool after, weir_asker *a, const weir_tokenizer *tok, const weir_made *m,
                           const weir_rome_texts *text, int64_t tokens, weir_err *err)
{
    for (int64_t i = 0; i < l->n; i++)
        WEIR_TRY(ask_one(&l->v[i], after ? &l->v[i].after : &l->v[i].before, a, tok, m, tokens, err));
    return ask_texts(l, after, a, text, err);
}

void weir_asked_free(weir_asked_list *l)
{
    for (int64_t i = 0; i < l->n; i++) {
        free(l->v[i].prompt);
        weir_told_free(&l->v[i].before.told);
        weir_told_free(&l->v[i].after.told);
    }
    free(l->v);
    free(l->text);
    *l = (weir_asked_list){0};
}

bool weir_asked_right(const weir_asked *q, const weir_asked_side *side)
{
    return q->other ? side->told.target.nll < side->other.nll : side->told.target.greedy;
}

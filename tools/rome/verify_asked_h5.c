/* What the model answered, and how it takes the text. */
#include <math.h>
#include <string.h>

#include "sheet.h"

enum { BEGIN = 160 /* bytes of a text that are kept, so that it can be told by them */ };

/* --- questions */

static const weir_asked *question(const weir_sheet *s, int64_t i)
{
    return &s->v->asked->v[i];
}

static const weir_asked_side *side_of(const weir_sheet *s, int64_t i, int side)
{
    return side ? &question(s, i)->after : &question(s, i)->before;
}

/* A neighbour's own answer is the true one: it is asked for the one that should stay. */
static const weir_answer *answer_of(const weir_sheet *s, int64_t i, int side, bool new)
{
    const bool asked = new == (question(s, i)->kind != WEIR_ASKED_NEIGHBOUR);
    return asked ? &side_of(s, i, side)->told.target : &side_of(s, i, side)->other;
}

static double logprob_of(const weir_answer *a)
{
    return a->tokens ? -a->nll * (double)a->tokens : (double)NAN;
}

static int64_t question_kind(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return question(s, i)->kind;
}

static int64_t question_request(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return question(s, i)->request;
}

static weir_str question_prompt(const weir_sheet *s, int64_t i)
{
    return weir_sheet_string(question(s, i)->prompt);
}

static weir_str question_new(const weir_sheet *s, int64_t i)
{
    const weir_asked *q = question(s, i);
    return weir_sheet_string(q->kind == WEIR_ASKED_NEIGHBOUR ? q->other : q->answer);
}

static weir_str question_true(const weir_sheet *s, int64_t i)
{
    const weir_asked *q = question(s, i);
    return weir_sheet_string(q->kind == WEIR_ASKED_NEIGHBOUR ? q->answer : q->other);
}

static double new_logprob(const weir_sheet *s, int64_t i, int side)
{
    return logprob_of(answer_of(s, i, side, true));
}

static double true_logprob(const weir_sheet *s, int64_t i, int side)
{
    return logprob_of(answer_of(s, i, side, false));
}

static int64_t new_tokens(const weir_sheet *s, int64_t i, int side)
{
    return answer_of(s, i, side, true)->tokens;
}

static int64_t true_tokens(const weir_sheet *s, int64_t i, int side)
{
    return answer_of(s, i, side, false)->tokens;
}

static int64_t question_rank(const weir_sheet *s, int64_t i, int side)
{
    return side_of(s, i, side)->told.target.rank;
}

static int64_t question_right(const weir_sheet *s, int64_t i, int side)
{
    return weir_asked_right(question(s, i), side_of(s, i, side));
}

static int64_t top_id(const weir_sheet *s, int64_t i, int side)
{
    return side_of(s, i, side)->told.target.top;
}

static double top_p(const weir_sheet *s, int64_t i, int side)
{
    return side_of(s, i, side)->told.target.top_p;
}

static weir_str text_before(const weir_sheet *s, int64_t i)
{
    return weir_sheet_string(side_of(s, i, 0)->told.text);
}

static weir_str text_after(const weir_sheet *s, int64_t i)
{
    return weir_sheet_string(side_of(s, i, 1)->told.text);
}

static double prefixed_p(const weir_sheet *s, int64_t i, int side)
{
    return question(s, i)->kind == WEIR_ASKED_REQUEST ? side_of(s, i, side)->prefixed_p : (double)NAN;
}

static int64_t prefixed_said(const weir_sheet *s, int64_t i, int side)
{
    return side_of(s, i, side)->prefixed_said;
}

weir_status weir_sheet_questions(const weir_sheet *s, weir_err *err)
{
    static const weir_sheet_column of[] = {
        {.name = "kind", .sides = 1, .number = question_kind, .type = WEIR_ARRAY_U8},
        {.name = "request", .sides = 1, .number = question_request, .type = WEIR_ARRAY_I64},
        {.name = "prompt", .text = question_prompt},
        {.name = "new", .text = question_new},
        {.name = "true", .text = question_true},
        {.name = "new_logprob", .sides = 2, .real = new_logprob},
        {.name = "true_logprob", .sides = 2, .real = true_logprob},
        {.name = "new_tokens", .sides = 1, .number = new_tokens, .type = WEIR_ARRAY_I64},
        {.name = "true_tokens", .sides = 1, .number = true_tokens, .type = WEIR_ARRAY_I64},
        {.name = "rank", .sides = 2, .number = question_rank, .type = WEIR_ARRAY_I64},
        {.name = "right", .sides = 2, .number = question_right, .type = WEIR_ARRAY_U8},
        {.name = "top_id", .sides = 2, .number = top_id, .type = WEIR_ARRAY_I32},
        {.name = "top_p", .sides = 2, .real = top_p},
        {.name = "text_before", .text = text_before},
        {.name = "text_after", .text = text_after},
        {.name = "prefixed_p", .sides = 2, .real = prefixed_p},
        {.name = "prefixed_said", .sides = 2, .number = prefixed_said, .type = WEIR_ARRAY_I64}};
    char kinds[60] = "";
    for (int k = WEIR_ASKED_REQUEST; k <= WEIR_ASKED_NEIGHBOUR; k++)
        snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s%s", k ? "," : "", weir_asked_kind_name[k]);
    WEIR_TRY(weir_sheet_columns(s, "questions", of, WEIR_SHEET_COUNT(of), s->v->asked->n, err));
    return weir_arrays_put_text(s->w, "questions", "kinds", kinds, err);
}

/* --- the text */

static int64_t text_tokens(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->v->asked->text[i].tokens;
}

static double text_nll(const weir_sheet *s, int64_t i, int side)
{
    const weir_asked_text *t = &s->v->asked->text[i];
    return side ? t->after : t->before;
}

/* A character that does not fit is left out whole. */
static weir_str text_begin(const weir_sheet *s, int64_t i)
{
    weir_str t = s->v->text->text[i];
    if (t.n <= BEGIN)
        return t;
    for (t.n = BEGIN; t.n && ((unsigned char)t.p[t.n] & 0xc0) == 0x80;)
        t.n--;
    return t;
}

weir_status weir_sheet_perplexity(const weir_sheet *s, weir_err *err)
{
    static const weir_sheet_column of[] = {
        {.name = "begin", .text = text_begin},
        {.name = "tokens", .sides = 1, .number = text_tokens, .type = WEIR_ARRAY_I64},
        {.name = "nll", .sides = 2, .real = text_nll}};
    WEIR_TRY(weir_sheet_columns(s, "text", of, WEIR_SHEET_COUNT(of), s->v->text->n, err));
    WEIR_TRY(weir_arrays_put_text(s->w, "text", "name", s->v->text->name, err));
    return weir_arrays_put_text(s->w, "text", "sha256", s->v->text->sha256, err);
}

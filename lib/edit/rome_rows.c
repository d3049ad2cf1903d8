/* A request as rows of tokens. Texts are tokenised whole and once; places are bytes, and a token is found by the bytes
 * that it holds. Nothing here is a format string: braces and percent signs in a subject, a target or a prefix are text.
 */
#include <string.h>

#include "answer.h"
#include "rome.h"

/* The prompt, cut where the subject goes; blanks at its end are dropped, because the target brings its own. */
typedef struct template
{
    weir_str before, after;
}
template;

static weir_status cut(template *t, const weir_rome_request *q, weir_err *err)
{
    const char *at = strstr(q->prompt, "{}");
    if (!at)
        return weir_fail(err, WEIR_E_ARG, "the prompt \"%.200s\" has no {} where the subject goes", q->prompt);
    t->before = (weir_str){q->prompt, (size_t)(at - q->prompt)};
    t->after = weir_prompt_trim(at + 2);
    if (memchr(t->before.p, '{', t->before.n) || memchr(t->before.p, '}', t->before.n) ||
        memchr(t->after.p, '{', t->after.n) || memchr(t->after.p, '}', t->after.n))
        return weir_fail(err, WEIR_E_ARG,
                         "the prompt \"%.200s\" has braces besides the one {}: which is the subject's place?",
                         q->prompt);
    return WEIR_OK;
}

/* A row's text while it is made. */
typedef struct text {
    weir_buf buf;
    size_t subject_end; /* byte behind the subject */
} text;

static weir_status add(weir_buf *b, const char *p, size_t n, weir_err *err)
{
    return weir_buf_add(b, p, n) == WEIR_OK ? WEIR_OK : weir_nomem(err, "the text of an edit");
}

static weir_status write_text(text *x, const char *prefix, const template *t, const char *subject, weir_err *err)
{
    x->buf.n = 0;
    if (*prefix) {
        WEIR_TRY(add(&x->buf, prefix, strlen(prefix), err));
        WEIR_TRY(add(&x->buf, ". ", 2, err));
    }
    WEIR_TRY(add(&x->buf, t->before.p, t->before.n, err));
    WEIR_TRY(add(&x->buf, subject, strlen(subject), err));
    x->subject_end = x->buf.n;
    return add(&x->buf, t->after.p, t->after.n, err);
}

/* Index of the token that holds byte `at`; -1: none. */
static int64_t token_at(const weir_tokens *t, int64_t at)
{
    for (int64_t i = 0; i < t->n; i++)
        if (at >= t->byte_off[i] && at < t->byte_off[i] + t->byte_len[i])
            return i;
    return -1;
}

/* What a row is made with. */
typedef struct maker {
    weir_rome_rows *out;
    const weir_tokenizer *tok;
    int32_t bos; /* -1: none */
    weir_tokens t;
    text x;
    weir_err *err;
} maker;

static weir_status add_row(maker *m, bool kl)
{
    weir_rome_rows *out = m->out;
    const int64_t bos = m->bos >= 0, extra = kl ? 0 : out->n_target - 1;
    weir_tokens *t = &m->t;
    WEIR_TRY(weir_tokenizer_encode(m->tok, m->x.buf.p, m->x.buf.n, t, m->err));
    const int64_t subject = token_at(t, (int64_t)m->x.subject_end - 1);
    if (subject < 0)
        return weir_fail(m->err, WEIR_E_ARG, "no token of \"%.200s\" holds the end of the subject", m->x.buf.p);
    weir_rome_row *r = &out->row[out->n];
    *r = (weir_rome_row){.n = bos + t->n + extra, .subject = bos + subject, .n_loss = kl ? 0 : out->n_target};
    r->id = weir_arena_alloc(&out->arena, (size_t)r->n, sizeof *r->id);
    if (!r->id)
        return weir_nomem(m->err, "the rows of an edit");
    r->id[0] = m->bos;
    memcpy(r->id + bos, t->id, (size_t)t->n * sizeof *r->id);
    if (extra > 0)
        memcpy(r->id + bos + t->n, out->target, (size_t)extra * sizeof *r->id);
    r->at = out->suffix;
    out->suffix += r->n - r->subject;
    if (r->n > out->longest)
        out->longest = r->n;
    if (out->n == 0)
        out->shared = t->byte_off[subject] + t->byte_len[subject] > (int64_t)m->x.subject_end;
    out->n++;
    return WEIR_OK;
}

/* The target's tokens are those that it has behind the bare prompt. */
static weir_status find_target(maker *m, const char *target)
{
    weir_rome_rows *out = m->out;
    int64_t first;
    WEIR_TRY(weir_answer_find(m->tok, (weir_str){m->x.buf.p, m->x.buf.n}, target, &m->t, &first, m->err));
    out->n_target = m->t.n - first;
    out->target = weir_arena_alloc(&out->arena, (size_t)out->n_target, sizeof *out->target);
    if (!out->target)
        return weir_nomem(m->err, "the target of an edit");
    memcpy(out->target, m->t.id + first, (size_t)out->n_target * sizeof *out->target);
    return WEIR_OK;
}

static weir_status make(maker *m, const weir_rome_prefixes *p, const weir_rome_request *q)
{
    static const template kl = {{"", 0}, {" is a", 5}};
    template t;
    WEIR_TRY(cut(&t, q, m->err));
    if (!*q->subject)
        return weir_fail(m->err, WEIR_E_ARG, "the subject is empty");
    for (int64_t i = 0; i <= weir_rome_prefixes_n(p); i++) {
        WEIR_TRY(write_text(&m->x, i ? weir_rome_prefix(p, i - 1) : "", &t, q->subject, m->err));
        if (i == 0)
            WEIR_TRY(find_target(m, q->target));
        WEIR_TRY(add_row(m, false));
    }
    WEIR_TRY(write_text(&m->x, "", &kl, q->subject, m->err));
    return add_row(m, true);
}

weir_status weir_rome_rows_make(weir_rome_rows *r, const weir_tokenizer *tok, const weir_rome_prefixes *p,
                                const weir_rome_request *q, bool bos, weir_err *err)
{
    *r = (weir_rome_rows){0};
    r->row = weir_arena_alloc(&r->arena, (size_t)weir_rome_prefixes_n(p) + 2, sizeof *r->row);
    if (!r->row)
        return weir_nomem(err, "the rows of an edit");
    maker m = {.out = r, .tok = tok, .bos = bos ? weir_tokenizer_bos(tok) : -1, .err = err};
    const weir_status s = make(&m, p, q);
    weir_tokens_free(&m.t);
    weir_buf_free(&m.x.buf);
    return s;
}

void weir_rome_rows_free(weir_rome_rows *r)
{
    weir_arena_free(&r->arena);
    *r = (weir_rome_rows){0};
}

weir_status weir_rome_rows_reach(const weir_rome_rows *r, const weir_rome_request *q, int64_t layer, int64_t n_layers,
                                 weir_err *err)
{
    const weir_rome_row *bare = &r->row[0];
    if (layer + 1 < n_layers || bare->subject >= bare->n - bare->n_loss)
        return WEIR_OK;
    char other[80] = "it has no other";
    if (n_layers > 1)
        snprintf(other, sizeof other, n_layers > 2 ? "edit one of 0 to %lld" : "edit layer %lld",
                 (long long)(n_layers - 2));
    return weir_fail(
        err, WEIR_E_ARG,
        "layer %lld is the last: what it writes at \"%.100s\" reaches no later token, and the answer stands "
        "behind one: %s, or let the prompt end with the subject",
        (long long)layer, q->subject, other);
}

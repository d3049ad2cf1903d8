/* normalize.c: the normaliser's steps, each from one view to the next. */
#include "normalize.h"

#include <string.h>

static bool begins_with(const weir_tok_view *v, weir_str s)
{
    return v->n >= s.n && memcmp(v->p, s.p, s.n) == 0;
}

static weir_status replace(const weir_tok_op *op, const weir_tok_view *v, weir_tok_text *out)
{
    size_t done = 0;
    while (done < v->n) {
        const uint8_t *hit = op->from.n == 1 ? memchr(v->p + done, op->from.p[0], v->n - done)
                                             : memmem(v->p + done, v->n - done, op->from.p, op->from.n);
        size_t at = hit ? (size_t)(hit - v->p) : v->n;
        WEIR_TRY(weir_tok_text_put(out, v->p + done, at - done, v, done, at));
        done = at;
        if (hit) {
            WEIR_TRY(weir_tok_text_put(out, op->to.p, op->to.n, v, at, at + op->from.n));
            done += op->from.n;
        }
    }
    return WEIR_OK;
}

static weir_status prepend(const weir_tok_op *op, const weir_tok_view *v, weir_tok_text *out)
{
    WEIR_TRY(weir_tok_text_put(out, op->to.p, op->to.n, v, 0, 0));
    return weir_tok_text_put(out, v->p, v->n, v, 0, v->n);
}

/* Whether the step leaves the view, which is not empty, as it is. */
static bool idle(const weir_tok_op *op, const weir_tok_view *v)
{
    switch (op->kind) {
    case WEIR_TOK_NFC:
        return weir_tok_is_nfc(v->p, v->n);
    case WEIR_TOK_REPLACE:
        return !memmem(v->p, v->n, op->from.p, op->from.n);
    case WEIR_TOK_PREPEND:
        return false;
    case WEIR_TOK_PREFIX:
        return begins_with(v, op->to);
    case WEIR_TOK_PREFIX_FIRST:
        return begins_with(v, op->to) || weir_tok_origin(v, 0) != 0;
    }
    return true;
}

weir_status weir_tok_apply(const weir_tok_ops *ops, weir_tok_view *v, weir_tok_text scratch[2])
{
    for (int i = 0; i < ops->n && v->n; i++) {
        const weir_tok_op *op = &ops->op[i];
        if (idle(op, v))
            continue;
        weir_tok_text *out = v->p == scratch[0].p ? &scratch[1] : &scratch[0];
        weir_tok_text_reset(out);
        WEIR_TRY(op->kind == WEIR_TOK_NFC       ? weir_tok_nfc(v, out)
                 : op->kind == WEIR_TOK_REPLACE ? replace(op, v, out)
                                                : prepend(op, v, out));
        WEIR_TRY(weir_tok_text_end(out, v, v));
    }
    return WEIR_OK;
}

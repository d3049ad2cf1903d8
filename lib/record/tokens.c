/* record/tokens.c: /tokens and /row, as rows come. */
#include <math.h>

#include "dump.h"

const weir_schema_column weir_token_schema[WEIR_TOK_COLUMNS] = {
    [WEIR_TOK_ID] = {"tokens/id", WEIR_ELEM_I32},
    [WEIR_TOK_DOC] = {"tokens/doc", WEIR_ELEM_I64},
    [WEIR_TOK_POS] = {"tokens/pos", WEIR_ELEM_I64},
    [WEIR_TOK_CTX_POS] = {"tokens/ctx_pos", WEIR_ELEM_I64},
    [WEIR_TOK_BYTE_OFF] = {"tokens/byte_off", WEIR_ELEM_I64},
    [WEIR_TOK_BYTE_LEN] = {"tokens/byte_len", WEIR_ELEM_I64},
    [WEIR_TOK_FLAGS] = {"tokens/flags", WEIR_ELEM_U8},
    [WEIR_TOK_LOGPROB] = {"tokens/logprob", WEIR_ELEM_F32},
};

/* Log-probabilities may lag behind the other columns: they pass over rows of their own. NULL: NaN. */
static weir_status append_logprobs(weir_dump *d, const float *logprob, int64_t n, weir_err *err)
{
    weir_tiled *t = &d->token[WEIR_TOK_LOGPROB];
    const float nan = NAN;
    if (t->over < n)
        WEIR_TRY(weir_dump_trim(d, err));
    int64_t over = weir_tiled_pass_over(t, n);
    if (logprob)
        return weir_tiled_append(t, &d->writer, logprob + over, n - over, err);
    for (int64_t i = over; i < n; i++)
        WEIR_TRY(weir_tiled_append(t, &d->writer, &nan, 1, err));
    return WEIR_OK;
}

/* The first n of these rows are in the file: with the same ids? */
static weir_status compare_ids(weir_dump *d, const weir_token_rows *t, int64_t n, weir_err *err)
{
    weir_tiled *id = &d->token[WEIR_TOK_ID];
    int64_t row = weir_tiled_rows(id) - id->over;
    int32_t had[256];
    for (int64_t i = 0, step; i < n; i += step) {
        step = n - i < 256 ? n - i : 256;
        WEIR_TRY(weir_tiled_read(id, row + i, step, had, err));
        for (int64_t k = 0; k < step; k++)
            if (had[k] != t->id[i + k])
                return weir_fail(err, WEIR_E_ARG, "the text has changed: row %lld is token %d in %s, and token %d now",
                                 (long long)(row + i + k), (int)had[k], d->out.part, (int)t->id[i + k]);
    }
    return WEIR_OK;
}

/* Rows [from, n) of t are new. */
static weir_status append_new(weir_dump *d, const weir_token_rows *t, int64_t from, weir_err *err)
{
    const uint8_t *column[] = {(const void *)t->id,      (const void *)t->doc,      (const void *)t->pos,
                               (const void *)t->ctx_pos, (const void *)t->byte_off, (const void *)t->byte_len,
                               (const void *)t->flags};
    int64_t row = weir_tiled_rows(&d->row) - from;
    for (int64_t i = from, end; i < t->n; i = end) {
        for (end = i + 1; end < t->n && t->doc[end] == t->doc[i];)
            end++;
        WEIR_TRY(weir_doc_table_rows(&d->docs, &d->writer, t->doc[i], row + i, end - i, err));
    }
    for (int i = 0; i < WEIR_TOK_LOGPROB; i++)
        WEIR_TRY(weir_tiled_append(&d->token[i], &d->writer, column[i] + (size_t)from * d->token[i].row_bytes,
                                   t->n - from, err));
    for (int64_t i = from; i < t->n; i++) {
        const int64_t number = row + i;
        WEIR_TRY(weir_tiled_append(&d->row, &d->writer, &number, 1, err));
    }
    return WEIR_OK;
}

weir_status weir_dump_append_tokens(weir_dump *d, const weir_token_rows *t, weir_err *err)
{
    WEIR_TRY(weir_dump_begin(d, err));
    int64_t there = d->row.over < t->n ? d->row.over : t->n;
    if (there > 0) {
        WEIR_TRY(compare_ids(d, t, there, err));
        for (int i = 0; i < WEIR_TOK_LOGPROB; i++)
            weir_tiled_pass_over(&d->token[i], t->n);
        weir_tiled_pass_over(&d->row, t->n);
    }
    if (there < t->n) {
        WEIR_TRY(weir_dump_trim(d, err));
        WEIR_TRY(append_new(d, t, there, err));
    }
    return d->logprob && !d->logprob_late ? append_logprobs(d, t->logprob, t->n, err) : WEIR_OK;
}

weir_status weir_dump_tokens(weir_dump *d, const weir_token_rows *t, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    return weir_dump_leave(d, &q, weir_dump_append_tokens(d, t, err), err);
}

weir_status weir_dump_logprobs(weir_dump *d, const float *logprob, int64_t n, weir_err *err)
{
    weir_h5_quiet q;
    if (!d->logprob || !d->logprob_late)
        return weir_fail(err, WEIR_E_ARG, "%s was not made for log-probabilities that come late", d->out.path);
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = weir_dump_begin(d, err);
    return weir_dump_leave(d, &q, st ? st : append_logprobs(d, logprob, n, err), err);
}

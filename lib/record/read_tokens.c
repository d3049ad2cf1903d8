/* record/read_tokens.c: /tokens and /vocab of a dump. See reader.h. */
#include <inttypes.h>
#include <math.h>

#include "reader.h"

/* More than any tokenizer has, less than a damaged file may make us allocate; and rows whose text is read at a time. */
enum { VOCAB_MAX = 1 << 24, STEP = 4096 };

/* --- the vocabulary */

static weir_status check_offsets(const int64_t *offset, int64_t n, int64_t bytes, weir_err *err)
{
    for (int64_t i = 0; i <= n; i++)
        if (offset[i] < (i ? offset[i - 1] : 0) || offset[i] > bytes)
            return weir_fail(err, WEIR_E_FORMAT, "group vocab has wrong offsets for token %" PRId64, i ? i - 1 : 0);
    return WEIR_OK;
}

static weir_status load_strings(weir_dump_reader *r, weir_read_strings *s, weir_err *err)
{
    const int64_t n = s->offsets.rows - 1, bytes = s->bytes.rows;
    if (n < 0 || n > VOCAB_MAX || bytes > WEIR_READ_BYTES_MAX)
        return weir_fail(err, WEIR_E_FORMAT, "group vocab has an impossible size");
    weir_free(r->vocab.bytes);
    weir_free(r->vocab.offset);
    r->vocab.bytes = weir_calloc((size_t)bytes, 1);
    r->vocab.offset = weir_calloc((size_t)n + 1, sizeof *r->vocab.offset);
    if (!r->vocab.bytes || !r->vocab.offset)
        return weir_nomem(err, "a dump's vocabulary");
    const weir_fetch text = {.n = bytes, .n_columns = 1, .out = r->vocab.bytes};
    const weir_fetch offsets = {.n = n + 1, .n_columns = 1, .out = r->vocab.offset};
    WEIR_TRY(weir_fetch_run(&r->fetcher, &s->bytes, &text, err));
    WEIR_TRY(weir_fetch_run(&r->fetcher, &s->offsets, &offsets, err));
    WEIR_TRY(check_offsets(r->vocab.offset, n, bytes, err));
    r->vocab.n = n;
    r->vocab.loaded = true;
    return WEIR_OK;
}

static weir_status load_vocab(weir_dump_reader *r, weir_err *err)
{
    weir_read_strings s = {0};
    if (r->vocab.loaded)
        return WEIR_OK;
    weir_status st = weir_read_strings_open(r, &s, "vocab", err);
    if (!st)
        st = load_strings(r, &s, err);
    weir_read_strings_close(&s);
    return st;
}

static weir_status token_bytes(weir_dump_reader *r, int32_t id, weir_str *out, weir_err *err)
{
    WEIR_TRY(load_vocab(r, err));
    if (id < 0 || id >= r->vocab.n)
        return weir_fail(err, WEIR_E_FORMAT, "the dump's vocabulary has no token %d", (int)id);
    const int64_t at = r->vocab.offset[id];
    *out = (weir_str){r->vocab.bytes + at, (size_t)(r->vocab.offset[id + 1] - at)};
    return WEIR_OK;
}

/* --- tokens */

static weir_status read_tokens(weir_dump_reader *r, int64_t row, int64_t n, const weir_token_columns *t, weir_err *err)
{
    void *const out[WEIR_TOK_COLUMNS] = {
        [WEIR_TOK_ID] = t->id,
        [WEIR_TOK_DOC] = t->doc,
        [WEIR_TOK_POS] = t->pos,
        [WEIR_TOK_CTX_POS] = t->ctx_pos,
        [WEIR_TOK_BYTE_OFF] = t->byte_off,
        [WEIR_TOK_BYTE_LEN] = t->byte_len,
        [WEIR_TOK_FLAGS] = t->flags,
        [WEIR_TOK_LOGPROB] = r->has_logprob ? t->logprob : NULL,
    };
    for (int k = 0; k < WEIR_TOK_COLUMNS; k++)
        if (out[k])
            WEIR_TRY(weir_read_column(r, &r->token[k], weir_token_schema[k].path, weir_token_schema[k].elem, row, n,
                                      out[k], err));
    for (int64_t i = 0; t->logprob && !r->has_logprob && i < n; i++)
        t->logprob[i] = NAN;
    return WEIR_OK;
}

static weir_status append_text(weir_dump_reader *r, int64_t row, int64_t n, weir_err *err)
{
    int32_t id[STEP];
    uint8_t flags[STEP];
    const weir_token_columns t = {.id = id, .flags = flags};
    WEIR_TRY(read_tokens(r, row, n, &t, err));
    for (int64_t i = 0; i < n; i++) {
        weir_str token;
        if (flags[i] & 1) /* BOS is no text */
            continue;
        weir_status st = token_bytes(r, id[i], &token, err);
        if (st) {
            weir_err_where(err, NULL, "tokens/id", -1);
            return st;
        }
        if (token.n > WEIR_READ_BYTES_MAX - r->text.n)
            return weir_fail(err, WEIR_E_UNSUPPORTED, "rows to %" PRId64 " hold more text than 1 GB", row + i);
        if (weir_buf_add(&r->text, token.p, token.n))
            return weir_nomem(err, "a dump's text");
    }
    return WEIR_OK;
}

static weir_status read_text(weir_dump_reader *r, int64_t row, int64_t n, weir_str *out, weir_err *err)
{
    r->text.n = 0;
    if (weir_buf_reserve(&r->text, 1))
        return weir_nomem(err, "a dump's text");
    for (int64_t done = 0, step; done < n; done += step) {
        step = n - done < STEP ? n - done : STEP;
        WEIR_TRY(append_text(r, row + done, step, err));
    }
    *out = (weir_str){r->text.p, r->text.n};
    return WEIR_OK;
}

bool weir_read_has_logprob(const weir_dump_reader *r)
{
    return H5Lexists(r->file.id, weir_token_schema[WEIR_TOK_LOGPROB].path, H5P_DEFAULT) > 0;
}

/* --- public */

bool weir_dump_has_logprob(const weir_dump_reader *r)
{
    return r->has_logprob;
}

/* Rows of the tokens: as many as can be read, whatever the hooks have. */
static weir_status check_rows(const weir_dump_reader *r, int64_t row, int64_t n, weir_err *err)
{
    return weir_read_check_range(row, n, r->token_rows, err);
}

weir_status weir_dump_read_tokens(weir_dump_reader *r, int64_t row, int64_t n, const weir_token_columns *out,
                                  weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(check_rows(r, row, n, err));
    weir_h5_quiet_begin(&q);
    return weir_read_leave(r, &q, read_tokens(r, row, n, out, err), err);
}

weir_status weir_dump_read_ids(weir_dump_reader *r, int64_t row, int64_t n, int32_t *out, weir_err *err)
{
    const weir_token_columns t = {.id = out};
    return weir_dump_read_tokens(r, row, n, &t, err);
}

weir_status weir_dump_token_bytes(weir_dump_reader *r, int32_t id, weir_str *out, weir_err *err)
{
    weir_h5_quiet q;
    weir_h5_quiet_begin(&q);
    return weir_read_leave(r, &q, token_bytes(r, id, out, err), err);
}

weir_status weir_dump_read_text(weir_dump_reader *r, int64_t row, int64_t n, weir_str *out, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(check_rows(r, row, n, err));
    weir_h5_quiet_begin(&q);
    return weir_read_leave(r, &q, read_text(r, row, n, out, err), err);
}

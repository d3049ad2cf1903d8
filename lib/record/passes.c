/* record/passes.c: dumps without a driver: documents and tokens are taken from the passes themselves. */
#include "dump.h"

weir_status weir_dump_finish(weir_dump *d, weir_err *err)
{
    return d->from_passes ? weir_dump_complete(d, NULL, err) : WEIR_OK;
}

/* Row `at` of a pass as one entry of /tokens. */
static weir_status pass_row(weir_dump *d, const weir_rows *rows, int64_t at, weir_err *err)
{
    const int64_t no_offset = -1, no_length = 0, doc = weir_doc_table_count(&d->docs) - 1;
    const uint8_t flags = 0;
    const weir_token_rows t = {
        .n = 1,
        .id = &rows->id[at],
        .doc = &doc,
        .pos = &rows->pos[at],
        .ctx_pos = &rows->pos[at],
        .byte_off = &no_offset,
        .byte_len = &no_length,
        .flags = &flags,
    };
    return weir_dump_append_tokens(d, &t, err);
}

static weir_status pass_doc(weir_dump *d, int64_t tag, weir_err *err)
{
    const weir_field field = {.name = {"tag", 3}, .type = WEIR_FIELD_INT, .i = tag};
    const weir_doc doc = {.byte_off = -1, .fields = &field, .n_fields = 1};
    if (tag < d->last_tag)
        return weir_fail(err, WEIR_E_ARG,
                         "sequence %lld comes after sequence %lld: rows of a dump stand in document order",
                         (long long)tag, (long long)d->last_tag);
    d->last_tag = tag;
    return weir_doc_table_add(&d->docs, &d->writer, &doc, "run", err);
}

/* The values of the pass before have come: what it made whole is put into the file. */
static weir_status pass_rows(weir_dump *d, const weir_rows *rows, weir_err *err)
{
    WEIR_TRY(weir_dump_begin(d, err));
    WEIR_TRY(weir_dump_flush_bands(d, err));
    for (int64_t i = 0; i < rows->n; i++) {
        if (!rows->keep[i])
            continue;
        if (weir_doc_table_count(&d->docs) == 0 || rows->tag[i] != d->last_tag)
            WEIR_TRY(pass_doc(d, rows->tag[i], err));
        WEIR_TRY(pass_row(d, rows, i, err));
    }
    return WEIR_OK;
}

weir_status weir_dump_pass(weir_dump *d, const weir_rows *rows, weir_err *err)
{
    weir_h5_quiet q;
    if (!d->from_passes)
        return WEIR_OK;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    return weir_dump_leave(d, &q, pass_rows(d, rows, err), err);
}

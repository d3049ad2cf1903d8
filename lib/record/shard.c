/* record/shard.c: a dump that holds one block of a text's documents says which, so that `weir merge` can order and
 * check the shards. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "dump.h"

/* The attributes of shards.md; `shard` itself is text. */
typedef struct shard_facts {
    char shard[48];
    int64_t first_doc, docs, text_size;
    int64_t source[2];
} shard_facts;

static shard_facts facts_of(const weir_docs_block *b)
{
    shard_facts f = {
        .first_doc = b->first, .docs = b->docs, .text_size = b->text_size, .source = {b->first_source, b->last_source}};
    snprintf(f.shard, sizeof f.shard, "%" PRId64 "/%" PRId64, b->shard, b->shards);
    return f;
}

static weir_status write_facts(hid_t file, const shard_facts *f, weir_err *err)
{
    WEIR_TRY(weir_h5_put_str(file, "shard", f->shard, err));
    WEIR_TRY(weir_h5_put_int(file, "shard_first_doc", f->first_doc, err));
    WEIR_TRY(weir_h5_put_int(file, "shard_docs", f->docs, err));
    WEIR_TRY(weir_h5_put_int(file, "shard_text_size", f->text_size, err));
    return weir_h5_put_ints(file, "shard_sources", f->source, 2, err);
}

/* A file that is gone on with: is it the same shard of the same text? f NULL: the whole text is wanted. */
static weir_status check_facts(const weir_dump *d, const shard_facts *f, const char *had, weir_err *err)
{
    int64_t docs = -1, size = -1;
    if (!f || !had || strcmp(f->shard, had))
        return weir_fail(err, WEIR_E_ARG, "%s holds %s%s, not %s%s (--force begins again)", d->out.part,
                         had ? "shard " : "the whole text", had ? had : "", f ? "shard " : "the whole text",
                         f ? f->shard : "");
    weir_h5_get_int(d->file, "shard_docs", &docs);
    weir_h5_get_int(d->file, "shard_text_size", &size);
    if (docs != f->docs || size != f->text_size)
        return weir_fail(err, WEIR_E_ARG, "the text has changed since %s was begun (--force begins again)",
                         d->out.part);
    return WEIR_OK;
}

static weir_status put_shard(weir_dump *d, const weir_docs *docs, weir_err *err)
{
    const weir_docs_block *b = weir_docs_block_of(docs);
    const weir_doc *first = weir_docs_first(docs);
    shard_facts f = {0};
    char *had;
    if (b)
        f = facts_of(b);
    WEIR_TRY(weir_h5_get_text(d->file, "shard", &had, err));
    weir_status st = WEIR_OK;
    if (had || d->resumed)
        st = had || b ? check_facts(d, b ? &f : NULL, had, err) : WEIR_OK;
    else if (b)
        st = write_facts(d->file, &f, err);
    weir_free(had);
    return st || !first ? st : weir_doc_table_declare(&d->docs, &d->writer, first, err);
}

weir_status weir_dump_shard(weir_dump *d, const weir_docs *docs, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    return weir_dump_leave(d, &q, put_shard(d, docs, err), err);
}

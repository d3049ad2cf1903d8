/* io/blocks.c: see blocks.h. A text of W bytes is cut at W i / N; a document belongs to the block in which its middle
 * lies. Documents are remembered singly up to GROUPS_MAX of them and in equal groups beyond, so memory is bounded. */
#include "blocks.h"

enum { GROUPS_MAX = 1 << 20, STOP_EVERY = 1024 };

typedef struct doc_group {
    int64_t size;
    int32_t first_source, last_source;
} doc_group;

typedef struct census {
    doc_group *group; /* [n]; group g holds documents g * each .. (g + 1) * each - 1, the last one maybe fewer */
    int64_t n, each;
    int64_t docs, size;
} census;

int64_t weir_doc_size(const weir_doc *doc)
{
    return doc->ids ? doc->n_ids : (int64_t)doc->text.n;
}

/* --- the census */

static void join_pairs(census *c)
{
    for (int64_t i = 0; i < c->n / 2; i++) {
        const doc_group *a = &c->group[2 * i];
        c->group[i] = (doc_group){a[0].size + a[1].size, a[0].first_source, a[1].last_source};
    }
    c->n /= 2;
    c->each *= 2;
}

static weir_status count(census *c, const weir_doc *doc, weir_err *err)
{
    int64_t size = weir_doc_size(doc);
    if (c->docs == c->n * c->each) {
        if (c->n == GROUPS_MAX)
            join_pairs(c);
        doc_group *grown = weir_grow(c->group, (size_t)c->n, sizeof *grown);
        if (!grown)
            return weir_nomem(err, "the sizes of documents");
        c->group = grown;
        grown[c->n++] = (doc_group){.first_source = doc->source};
    }
    c->group[c->n - 1].size += size;
    c->group[c->n - 1].last_source = doc->source;
    c->size += size;
    c->docs++;
    return WEIR_OK;
}

/* W shard / N, rounded down, without overflow. */
static int64_t boundary(int64_t size, int64_t shard, int64_t shards)
{
    return size / shards * shard + size % shards * shard / shards;
}

static void find(const census *c, int64_t shard, int64_t shards, weir_docs_block *b)
{
    int64_t from = boundary(c->size, shard, shards), to = boundary(c->size, shard + 1, shards);
    int64_t before = 0, first = 0, end;
    while (first < c->n && before + c->group[first].size / 2 < from)
        before += c->group[first++].size;
    *b = (weir_docs_block){shard, shards, .docs = c->docs, .text_size = c->size, .first_source = -1, .last_source = -1};
    for (end = first; end < c->n && before + c->group[end].size / 2 < to; end++) {
        before += c->group[end].size;
        b->size += c->group[end].size;
    }
    b->first = first * c->each < c->docs ? first * c->each : c->docs;
    b->end = end * c->each < c->docs ? end * c->each : c->docs;
    if (end > first) {
        b->first_source = c->group[first].first_source;
        b->last_source = c->group[end - 1].last_source;
    }
}

/* --- reading */

static bool copy_text(weir_arena *own, weir_str *s)
{
    s->p = weir_arena_strndup(own, s->p ? s->p : "", s->n);
    return s->p != NULL;
}

static weir_status keep_first(weir_blocks *b, const weir_doc *doc, weir_err *err)
{
    weir_field *f = weir_arena_alloc(&b->own, (size_t)doc->n_fields, sizeof *f);
    bool good = f != NULL;
    for (int i = 0; good && i < doc->n_fields; i++) {
        f[i] = doc->fields[i];
        good = copy_text(&b->own, &f[i].name) && copy_text(&b->own, &f[i].str);
    }
    b->first = (weir_doc){.source = doc->source, .fields = f, .n_fields = doc->n_fields};
    return good ? WEIR_OK : weir_nomem(err, "the fields of the first document");
}

static weir_status read_all(weir_blocks *b, census *c, weir_docs *docs, const weir_docs_options *o, weir_err *err)
{
    weir_doc doc;
    bool more;
    for (;;) {
        WEIR_TRY(weir_docs_next(docs, &doc, &more, err));
        if (!more)
            return WEIR_OK;
        if (c->docs == 0)
            WEIR_TRY(keep_first(b, &doc, err));
        WEIR_TRY(count(c, &doc, err));
        if (o->stop && c->docs % STOP_EVERY == 0 && o->stop(o->stop_user))
            return weir_fail(err, WEIR_E_IO, "stopped while the text was measured");
    }
}

weir_status weir_blocks_find(weir_blocks *b, const weir_docs_options *o, weir_err *err)
{
    weir_docs_options whole = *o;
    weir_docs *docs;
    census c = {.each = 1};
    if (o->shard < 0 || o->shard >= o->shards || o->shards > INT32_MAX)
        return weir_fail(err, WEIR_E_ARG, "block %lld of %lld: blocks are numbered from 0", (long long)o->shard,
                         (long long)o->shards);
    whole.shards = 0;
    WEIR_TRY(weir_docs_open(&docs, &whole, err));
    weir_status s = read_all(b, &c, docs, o, err);
    weir_docs_free(docs);
    if (s == WEIR_OK)
        find(&c, o->shard, o->shards, &b->block);
    weir_free(c.group);
    return s;
}

void weir_blocks_free(weir_blocks *b)
{
    weir_arena_free(&b->own);
}

/* A text cut into blocks of documents: every document in exactly one, blocks of about equal size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weir/text.h>

#include "support/said.h"
#include "support/scratch.h"

/* What reading a text came to: documents one after the other, each with its number and source. */
typedef struct reading {
    char *said;
    size_t bytes;
    int64_t docs, size, largest, skipped;
} reading;

static int64_t size_of(const weir_doc *d)
{
    return d->ids ? d->n_ids : (int64_t)d->text.n;
}

/* Reads on to the end; appends to *r. */
static weir_status read_on(weir_docs *docs, reading *r, FILE *f, weir_err *err)
{
    weir_doc d;
    bool more;
    double before = 0;
    for (;;) {
        weir_status s = weir_docs_next(docs, &d, &more, err);
        if (s != WEIR_OK || !more)
            return s;
        fprintf(f, "%lld:%d:%lld|", (long long)d.index, (int)d.source, (long long)d.byte_off);
        r->docs++;
        r->size += size_of(&d);
        r->largest = size_of(&d) > r->largest ? size_of(&d) : r->largest;
        double now = weir_docs_progress(docs);
        assert_true(now == -1 || (now >= before && now <= 1));
        before = now;
    }
}

static reading read_whole(weir_docs_options o)
{
    reading r = {0};
    weir_docs *docs;
    o.shards = 0;
    FILE *f = open_memstream(&r.said, &r.bytes);
    assert_int_equal(weir_docs_open(&docs, &o, NULL), WEIR_OK);
    assert_null(weir_docs_block_of(docs));
    assert_null(weir_docs_first(docs));
    assert_int_equal(read_on(docs, &r, f, NULL), WEIR_OK);
    r.skipped = weir_docs_skipped(docs);
    weir_docs_free(docs);
    fclose(f);
    return r;
}

/* Block `shard` is what its description says. */
static void read_block(weir_docs_options o, int64_t shard, int64_t shards, const reading *whole, int64_t *first,
                       reading *sum, FILE *f)
{
    weir_docs *docs;
    weir_err err = {0};
    o.shard = shard;
    o.shards = shards;
    assert_int_equal(weir_docs_open(&docs, &o, &err), WEIR_OK);
    const weir_docs_block b = *weir_docs_block_of(docs);
    assert_int_equal(b.shard, shard);
    assert_int_equal(b.shards, shards);
    assert_int_equal(b.docs, whole->docs);
    assert_int_equal(b.text_size, whole->size);
    assert_int_equal(b.first, *first);
    int64_t docs_before = sum->docs, size_before = sum->size;
    assert_int_equal(read_on(docs, sum, f, &err), WEIR_OK);
    assert_int_equal(sum->docs - docs_before, b.end - b.first);
    assert_int_equal(sum->size - size_before, b.size);
    assert_true(b.end == b.first || weir_docs_progress(docs) == 1);
    sum->skipped += weir_docs_skipped(docs);
    /* Balance: half a document too many or too few at either end. */
    assert_true(b.size <= whole->size / shards + 1 + whole->largest);
    assert_true(b.size >= whole->size / shards - whole->largest);
    *first = b.end;
    weir_docs_free(docs);
}

/* All blocks together are the text. */
static bool blocks_are_the_text(weir_docs_options o, int64_t shards)
{
    reading whole = read_whole(o), sum = {0};
    int64_t first = 0;
    FILE *f = open_memstream(&sum.said, &sum.bytes);
    for (int64_t i = 0; i < shards; i++)
        read_block(o, i, shards, &whole, &first, &sum, f);
    fclose(f);
    bool same = strcmp(whole.said, sum.said) == 0 && whole.skipped == sum.skipped && first == whole.docs;
    if (!same)
        fprintf(stderr, "whole %s (%lld skipped)\n  sum %s (%lld skipped)\n", whole.said, (long long)whole.skipped,
                sum.said, (long long)sum.skipped);
    free(whole.said);
    free(sum.said);
    return same;
}

static weir_docs_options lines(const char *const *paths, int n)
{
    weir_docs_options o;
    weir_docs_options_init(&o);
    o.paths = paths;
    o.n_paths = n;
    return o;
}

static void test_every_document_once(void **state)
{
    (void)state;
    const char *path = scratch_text("t.txt", "a\nbb\n\nccc\ndddd\n\n\neeeee\nf\n\n");
    for (int64_t shards = 1; shards <= 20; shards++)
        assert_true(blocks_are_the_text(lines(&path, 1), shards));
}

static void test_many_shapes(void **state)
{
    (void)state;
    char letters[257] = "";
    memset(letters, 'x', 256);
    for (unsigned seed = 1; seed <= 40; seed++) {
        const char *path = scratch("many.txt");
        FILE *f = fopen(path, "w");
        unsigned x = seed;
        for (int i = 0; i < 120; i++) {
            x = x * 1103515245u + 12345u;
            int n = (int)(x >> 16 & 15);
            fprintf(f, "%.*s\n", x >> 24 & 1 ? n : n * n, letters);
        }
        fclose(f);
        assert_true(blocks_are_the_text(lines(&path, 1), 1 + seed % 13));
    }
}

static void test_the_check_can_fail(void **state)
{
    (void)state;
    const char *path = scratch_text("t.txt", "a\nb\nc\n");
    weir_docs_options o = lines(&path, 1);
    weir_docs *docs;
    weir_err err = {0};
    reading whole = read_whole(o), one = {0};
    FILE *f = open_memstream(&one.said, &one.bytes);
    o.shard = 1;
    o.shards = 3;
    assert_int_equal(weir_docs_open(&docs, &o, &err), WEIR_OK);
    assert_int_equal(read_on(docs, &one, f, &err), WEIR_OK);
    weir_docs_free(docs);
    fclose(f);
    assert_string_equal(one.said, "1:0:2|");
    assert_string_not_equal(one.said, whole.said);
    free(whole.said);
    free(one.said);
}

static void test_one_long_document(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text);
    text[10] = text[2990] = '\n';
    const char *path = scratch_write("long.txt", text, sizeof text);
    for (int64_t shards = 1; shards <= 9; shards++)
        assert_true(blocks_are_the_text(lines(&path, 1), shards));
}

static void test_several_sources(void **state)
{
    (void)state;
    const char *a = scratch_text("a.txt", "one\n\ntwo\nthree\n"), *b = scratch_text("b.txt", "\n"),
               *c = scratch_text("c.txt", "four\nfive and six\n");
    const char *const paths[] = {a, b, c, a};
    weir_docs_options o = lines(paths, 4);
    for (int64_t shards = 1; shards <= 12; shards++)
        assert_true(blocks_are_the_text(o, shards));
    weir_docs *docs;
    o.shard = 1;
    o.shards = 2;
    assert_int_equal(weir_docs_open(&docs, &o, NULL), WEIR_OK);
    const weir_docs_block *block = weir_docs_block_of(docs);
    assert_int_equal(block->first_source, 2);
    assert_int_equal(block->last_source, 3);
    weir_docs_free(docs);
}

static void test_texts_and_ids(void **state)
{
    (void)state;
    static const char *const texts[] = {"1 2 3", "4", "5,6", "7"};
    weir_docs_options o = {.texts = texts, .n_texts = 4};
    for (int64_t shards = 1; shards <= 6; shards++)
        assert_true(blocks_are_the_text(o, shards));
    o.ids = true;
    for (int64_t shards = 1; shards <= 6; shards++)
        assert_true(blocks_are_the_text(o, shards));
}

static void test_an_empty_text(void **state)
{
    (void)state;
    const char *path = scratch_text("empty.txt", "\n\n");
    weir_docs_options o = lines(&path, 1);
    weir_docs *docs;
    weir_doc d;
    bool more = true;
    o.shards = 3;
    for (o.shard = 0; o.shard < 3; o.shard++) {
        assert_int_equal(weir_docs_open(&docs, &o, NULL), WEIR_OK);
        assert_int_equal(weir_docs_block_of(docs)->docs, 0);
        assert_int_equal(weir_docs_block_of(docs)->first_source, -1);
        assert_null(weir_docs_first(docs));
        assert_int_equal(weir_docs_next(docs, &d, &more, NULL), WEIR_OK);
        assert_false(more);
        weir_docs_free(docs);
    }
}

/* The fields of the text's first document, whichever block it is. */
static void test_first_document(void **state)
{
    (void)state;
    const char *path =
        scratch_text("f.jsonl", "{\"text\":\"a\",\"n\":3,\"name\":\"q\"}\n{\"text\":\"b\",\"other\":1}\n");
    weir_docs_options o = lines(&path, 1);
    weir_docs *docs;
    o.shard = 1;
    o.shards = 2;
    assert_int_equal(weir_docs_open(&docs, &o, NULL), WEIR_OK);
    const weir_doc *first = weir_docs_first(docs);
    assert_int_equal(weir_docs_block_of(docs)->first, 1);
    assert_int_equal(first->n_fields, 2);
    assert_true(first->fields[0].name.n == 1 && first->fields[0].name.p[0] == 'n' && first->fields[0].i == 3);
    assert_true(first->fields[1].str.n == 1 && first->fields[1].str.p[0] == 'q');
    weir_docs_free(docs);
}

/* Beyond 2^20 documents boundaries lie between groups of them. */
static void test_millions_of_documents(void **state)
{
    (void)state;
    enum { DOCS = 2500000 };
    char *text = malloc(2 * DOCS);
    for (int i = 0; i < DOCS; i++)
        memcpy(text + 2 * i, "x\n", 2);
    const char *path = scratch_write("huge.txt", text, 2 * DOCS);
    weir_docs_options o = lines(&path, 1);
    int64_t first = 0;
    free(text);
    o.shards = 3;
    for (o.shard = 0; o.shard < 3; o.shard++) {
        weir_docs *docs;
        assert_int_equal(weir_docs_open(&docs, &o, NULL), WEIR_OK);
        const weir_docs_block *b = weir_docs_block_of(docs);
        assert_int_equal(b->first, first);
        assert_in_range(b->end - b->first, DOCS / 3 - 4, DOCS / 3 + 4);
        assert_int_equal(b->size, b->end - b->first);
        first = b->end;
        weir_docs_free(docs);
    }
    assert_int_equal(first, DOCS);
}

static void refused(weir_docs_options o, const char *words)
{
    weir_docs *docs = NULL;
    weir_err err = {0};
    assert_int_not_equal(weir_docs_open(&docs, &o, &err), WEIR_OK);
    assert_null(docs);
    assert_true(said(&err, err.code, words));
}

static void test_refusals(void **state)
{
    (void)state;
    const char *path = scratch_text("t.txt", "a\n"), *in = "-",
               *broken = scratch_text("b.jsonl", "{\"text\":\"a\"}\n{\n");
    weir_docs_options o = lines(&path, 1);
    o.shards = 2;
    o.shard = 2;
    refused(o, "blocks are numbered from 0");
    o.shard = -1;
    refused(o, "blocks are numbered from 0");
    o.shard = 0;
    o.paths = &in;
    refused(o, "stdin: can be read only once");
    o.paths = &broken; /* every run says so, also the one that would not get there */
    refused(o, "b.jsonl:2");
}

static bool stop_at_once(void *user)
{
    (void)user;
    return true;
}

static void test_stop_and_change(void **state)
{
    (void)state;
    char text[4096];
    memset(text, '\n', sizeof text);
    for (size_t i = 0; i < sizeof text; i += 2)
        text[i] = 'x';
    const char *path = scratch_write("t.txt", text, sizeof text);
    weir_docs_options o = lines(&path, 1);
    o.shards = 2;
    o.stop = stop_at_once;
    refused(o, "stopped");
    o.stop = NULL;
    weir_docs *docs;
    weir_doc d;
    bool more = true;
    weir_err err = {0};
    o.shard = 1;
    assert_int_equal(weir_docs_open(&docs, &o, NULL), WEIR_OK);
    scratch_write("t.txt", text, 3000);
    while (weir_docs_next(docs, &d, &more, &err) == WEIR_OK && more)
        ;
    assert_true(said(&err, WEIR_E_FORMAT, "the text changed while it was read"));
    weir_docs_free(docs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_document_once),   cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_the_check_can_fail),    cmocka_unit_test(test_one_long_document),
        cmocka_unit_test(test_several_sources),       cmocka_unit_test(test_texts_and_ids),
        cmocka_unit_test(test_an_empty_text),         cmocka_unit_test(test_first_document),
        cmocka_unit_test(test_millions_of_documents), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_stop_and_change),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

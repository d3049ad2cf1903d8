/* tools/cli/feed.c: which rows a text comes to, and passing over the first of them. Token ids, so that no model is
 * needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../tools/cli/help.c"
#include "../../tools/cli/opt.c"
#include "../../tools/cli/positions.c"

#include "../../tools/cli/feed.c"

#include "support/scratch.h"

static const char *const ids[] = {"1 2 3 4 5 6 7", "8", "9 10 11 12 13 14 15 16 17 18 19 20", "21 22"};

typedef struct fed {
    char *rows; /* "doc.pos@ctx_pos=id;" of every kept row */
    char *docs; /* "index:first row;" of every document */
    size_t bytes[2];
    int64_t run; /* rows that the model would run */
    int64_t kept;
} fed;

/* The kept rows' tokens must be what the batch holds in their rows, and documents must begin before their rows. */
static void take_batch(fed *r, const weir_batch *b, FILE *rows, FILE *docs)
{
    int64_t row = 0;
    for (int64_t i = 0; i < b->n_docs; i++)
        fprintf(docs, "%lld:%lld;", (long long)b->doc[i].doc.index, (long long)(r->kept + b->doc[i].first));
    for (int64_t s = 0; s < b->n_seq; row += b->seq[s++].n)
        for (int64_t k = 0; k < b->kept.n; k++)
            if (b->kept_row[k] >= row && b->kept_row[k] < row + b->seq[s].n) {
                assert_int_equal(b->seq[s].ids[b->kept_row[k] - row], b->kept.id[k]);
                assert_true(b->seq[s].keep[b->kept_row[k] - row]);
            }
    assert_int_equal(row, b->rows);
    for (int64_t k = 0; k < b->kept.n; k++)
        fprintf(rows, "%lld.%lld@%lld=%d;", (long long)b->kept.doc[k], (long long)b->kept.pos[k],
                (long long)b->kept.ctx_pos[k], b->kept.id[k]);
    r->run += b->rows;
    r->kept += b->kept.n;
}

static fed feed_from(weir_feed_options o, weir_docs_options from, int64_t skip)
{
    fed r = {0};
    weir_docs *docs;
    weir_feed *f;
    const weir_batch *b;
    weir_err err = {0};
    FILE *rows = open_memstream(&r.rows, &r.bytes[0]), *places = open_memstream(&r.docs, &r.bytes[1]);
    assert_int_equal(weir_docs_open(&docs, &from, &err), WEIR_OK);
    assert_int_equal(weir_feed_new(&f, NULL, docs, &o, &err), WEIR_OK);
    weir_feed_skip(f, skip);
    for (;;) {
        assert_int_equal(weir_feed_next(f, &b, &err), WEIR_OK);
        if (!b)
            break;
        take_batch(&r, b, rows, places);
    }
    weir_feed_free(f);
    weir_docs_free(docs);
    fclose(rows);
    fclose(places);
    return r;
}

static void free_fed(fed *r)
{
    free(r->rows);
    free(r->docs);
}

static const weir_docs_options text = {.texts = ids, .n_texts = 4, .ids = true};

static weir_feed_options options(const weir_row_args *rows, int64_t batch)
{
    return (weir_feed_options){.rows = rows, .ctx = 5, .batch = batch, .vocab = 100};
}

/* `all` behind its first n rows. */
static const char *behind(const char *all, int64_t n)
{
    while (n-- > 0)
        all = strchr(all, ';') + 1;
    return all;
}

static bool skipping_gives_the_rest(const weir_row_args *rows, int64_t batch, int64_t skip)
{
    weir_feed_options o = options(rows, batch);
    fed all = feed_from(o, text, 0), rest = feed_from(o, text, skip);
    bool same = strcmp(rest.rows, behind(all.rows, skip < all.kept ? skip : all.kept)) == 0;
    /* Documents are announced with the first row they have among those that are left. */
    const char *a = all.docs, *b = rest.docs;
    long long doc[2], row[2];
    for (; sscanf(a, "%lld:%lld", &doc[0], &row[0]) == 2; a = behind(a, 1), b = behind(b, 1))
        same = same && sscanf(b, "%lld:%lld", &doc[1], &row[1]) == 2 && doc[0] == doc[1] &&
               row[1] == (row[0] > skip ? row[0] - skip : 0);
    same = same && *b == 0 && rest.run <= all.run && (skip < all.kept || rest.run == 0);
    if (!same)
        fprintf(stderr, "all  %s %s\nrest %s %s (%lld skipped)\n", all.rows, all.docs, rest.rows, rest.docs,
                (long long)skip);
    free_fed(&all);
    free_fed(&rest);
    return same;
}

static void test_what_is_fed(void **state)
{
    (void)state;
    weir_row_args rows = {.ids = true, .bos = WEIR_BOS_NO, .stride = 3, .positions = "-2:"};
    fed r = feed_from(options(&rows, 8), text, 0);
    assert_string_equal(r.rows, "0.5@2=6;0.6@3=7;1.0@0=8;2.10@4=19;2.11@2=20;3.0@0=21;3.1@1=22;");
    assert_string_equal(r.docs, "0:0;1:2;2:3;3:5;");
    free_fed(&r);
}

static void test_skip(void **state)
{
    (void)state;
    static const char *const positions[] = {"all", "last", "0:2", "-3:", "3"};
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
        for (int64_t stride = 0; stride <= 5; stride += 2)
            for (int64_t batch = 1; batch <= 16; batch += 3)
                for (int64_t skip = 0; skip <= 23; skip++) {
                    weir_row_args rows = {.ids = true, .bos = WEIR_BOS_NO, .stride = stride, .positions = positions[p]};
                    assert_true(skipping_gives_the_rest(&rows, batch, skip));
                }
}

/* Windows that only skipped rows need are not run. */
static void test_skipped_windows_cost_nothing(void **state)
{
    (void)state;
    weir_row_args rows = {.ids = true, .bos = WEIR_BOS_NO, .positions = "all"};
    /* two documents, and the first window of the third */
    fed r = feed_from(options(&rows, 8), text, 7 + 1 + 5);
    assert_int_equal(r.run, 12 - 5 + 2);
    assert_int_equal(r.kept, 12 - 5 + 2);
    free_fed(&r);
}

/* Numbers of documents: local in the rows, of the whole text in what hooks see. */
static void test_block_of_documents(void **state)
{
    (void)state;
    weir_row_args rows = {.ids = true, .bos = WEIR_BOS_NO, .positions = "last"};
    weir_docs_options part = text;
    part.shard = 1;
    part.shards = 2;
    fed r = feed_from(options(&rows, 8), part, 0);
    assert_string_equal(r.rows, "0.11@1=20;1.1@1=22;");
    assert_string_equal(r.docs, "2:0;3:1;");
    free_fed(&r);
    weir_docs *docs;
    weir_feed *f;
    const weir_batch *b;
    weir_feed_options o = options(&rows, 8);
    assert_int_equal(weir_docs_open(&docs, &part, NULL), WEIR_OK);
    assert_int_equal(weir_feed_new(&f, NULL, docs, &o, NULL), WEIR_OK);
    assert_int_equal(weir_feed_next(f, &b, NULL), WEIR_OK);
    assert_int_equal(b->seq[0].tag, 2);
    assert_int_equal(b->kept.doc[0], 0);
    weir_feed_free(f);
    weir_docs_free(docs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_fed),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_skipped_windows_cost_nothing),
        cmocka_unit_test(test_block_of_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

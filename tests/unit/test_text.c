/* Documents out of text, JSONL and gzip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <zlib.h>

#include <weir/text.h>

#include "support/bytes.h"
#include "support/said.h"
#include "support/scratch.h"

/* Reads all documents and writes them as one string: "[line@off+len|text]", with fields "name=value" behind the text.
 */
static char *read_all(weir_docs_options *o, weir_err *err, int64_t *skipped)
{
    char *out = NULL;
    size_t n;
    FILE *f = open_memstream(&out, &n);
    weir_docs *d = NULL;
    weir_doc doc;
    bool more = true;
    *err = (weir_err){0};
    if (weir_docs_open(&d, o, err) == WEIR_OK) {
        double before = 0;
        while (weir_docs_next(d, &doc, &more, err) == WEIR_OK && more) {
            fprintf(f, "[%lld@%lld+%lld|", (long long)doc.line, (long long)doc.byte_off, (long long)doc.byte_len);
            fwrite(doc.text.p, 1, doc.text.n, f);
            for (int64_t i = 0; i < doc.n_ids; i++)
                fprintf(f, "%s%d", i ? "," : "", doc.ids[i]);
            for (int i = 0; i < doc.n_fields; i++) {
                const weir_field *x = &doc.fields[i];
                fprintf(f, ";%.*s=", (int)x->name.n, x->name.p);
                if (x->type == WEIR_FIELD_INT)
                    fprintf(f, "%lld", (long long)x->i);
                else if (x->type == WEIR_FIELD_FLOAT)
                    fprintf(f, "%g", x->f);
                else if (x->type == WEIR_FIELD_BOOL)
                    fputs(x->i ? "yes" : "no", f);
                else
                    fprintf(f, x->type == WEIR_FIELD_STRING ? "'%.*s'" : "<%.*s>", (int)x->str.n, x->str.p);
            }
            fputc(']', f);
            double now = weir_docs_progress(d);
            assert_true(now == -1 || (now >= before && now <= 1));
            before = now;
        }
        assert_true(err->code != WEIR_OK || weir_docs_progress(d) == 1 || weir_docs_progress(d) == -1);
        if (skipped)
            *skipped = weir_docs_skipped(d);
    }
    weir_docs_free(d);
    fclose(f);
    return out;
}

/* The same for one file with these bytes; the result must be `want`. */
static bool reads_as(const char *name, const char *text, size_t n, weir_docs_options o, const char *want)
{
    const char *path = scratch_write(name, text, n);
    weir_err e;
    o.paths = &path;
    o.n_paths = 1;
    char *got = read_all(&o, &e, NULL);
    bool same = e.code == WEIR_OK && strcmp(got, want) == 0;
    if (!same)
        fprintf(stderr, "wanted %s\n   got %s (%s)\n", want, got, e.msg);
    free(got);
    return same;
}

static weir_docs_options split(weir_docs_split s, const char *sep)
{
    weir_docs_options o;
    weir_docs_options_init(&o);
    o.split = s;
    o.sep = sep;
    return o;
}

#define READS(text, o, want) assert_true(reads_as("t.txt", text, sizeof(text) - 1, o, want))

static void test_reads_as_can_fail(void **state)
{
    (void)state;
    fprintf(stderr, "(a complaint follows that belongs to the test)\n");
    assert_false(reads_as("t.txt", "a", 1, split(WEIR_DOCS_LINE, NULL), "[1@0+1|b]"));
}

static void test_lines(void **state)
{
    (void)state;
    weir_docs_options o = split(WEIR_DOCS_LINE, NULL);
    READS("", o, "");
    READS("\n\r\n\n", o, "");
    READS("a", o, "[1@0+1|a]");
    READS("a\n", o, "[1@0+1|a]");
    READS("a\r\nb c\n\n d \r\ne", o, "[1@0+1|a][2@3+3|b c][4@8+3| d ][5@13+1|e]");
    READS("a\rb\n", o, "[1@0+3|a\rb]");
    READS("\xef\xbb\xbfx\ny", o, "[1@3+1|x][2@5+1|y]");
    READS("\xff\xfe\x80\n", o, "[1@0+3|\xff\xfe\x80]");
}

static void test_nul_is_kept(void **state)
{
    (void)state;
    const char *path = scratch_write("nul.txt", "a\0b\nc", 5);
    weir_docs_options o = split(WEIR_DOCS_LINE, NULL);
    o.paths = &path;
    o.n_paths = 1;
    weir_docs *d;
    weir_doc doc;
    bool more;
    assert_int_equal(weir_docs_open(&d, &o, NULL), WEIR_OK);
    assert_int_equal(weir_docs_next(d, &doc, &more, NULL), WEIR_OK);
    assert_true(doc.text.n == 3 && memcmp(doc.text.p, "a\0b", 3) == 0);
    weir_docs_free(d);
}

static void test_paragraphs(void **state)
{
    (void)state;
    weir_docs_options o = split(WEIR_DOCS_BLANK, NULL);
    READS("", o, "");
    READS("\n\n", o, "");
    READS("a\nb\n\nc", o, "[1@0+3|a\nb][4@5+1|c]");
    READS("\n\r\n a\r\nb\r\n\r\n\n\nc\n\n", o, "[3@3+5| a\r\nb][8@14+1|c]");
}

static void test_files(void **state)
{
    (void)state;
    weir_docs_options o = split(WEIR_DOCS_FILE, NULL);
    READS("", o, "");
    READS("a\n\nb\n", o, "[1@0+5|a\n\nb\n]");
    READS("\xef\xbb\xbf"
          "a",
          o, "[1@3+1|a]");
}

static void test_separators(void **state)
{
    (void)state;
    weir_docs_options o = split(WEIR_DOCS_SEP, "---");
    READS("", o, "");
    READS("a\nb\n---\nc\n", o, "[1@0+3|a\nb][4@8+1|c]");
    READS("---\r\na\r\n---\r\n---\n----\n ---", o, "[2@5+1|a][5@17+9|----\n ---]");
    weir_docs_options none = split(WEIR_DOCS_SEP, NULL);
    weir_docs *d;
    weir_err e = {0};
    assert_int_equal(weir_docs_open(&d, &none, &e), WEIR_E_ARG);
}

static void test_jsonl(void **state)
{
    (void)state;
    weir_docs_options o = split(WEIR_DOCS_BLANK, NULL); /* a record is a document whatever the split is */
    static const char text[] = "{\"text\":\"a\\nb\",\"n\":3,\"x\":-1.5e1,\"ok\":true,\"no\":false,\"s\\u0031\":"
                               "\"q\\\"\",\"z\":null,\"l\":[1, 2]}\r\n"
                               "\n"
                               "{\"big\":18446744073709551615,\"min\":-9223372036854775808,\"text\":\"\xc3\xa9\"}\n"
                               "{\"text\":\"\"}\n"
                               " {\"text\":\"last\"} ";
    static const char want[] = "[1@0+89|a\nb;n=3;x=-15;ok=yes;no=no;s1='q\"';z=<null>;l=<[1, 2]>]"
                               "[3@92+67|\xc3\xa9;big=1.84467e+19;min=-9223372036854775808][5@172+17|last]";
    assert_true(reads_as("t.jsonl", text, sizeof text - 1, o, want));
    assert_true(reads_as("t.ndjson", text, sizeof text - 1, o, want));
    o.format = WEIR_DOCS_JSONL;
    assert_true(reads_as("t.log", text, sizeof text - 1, o, want));
    o.format = WEIR_DOCS_TEXT;
    assert_true(reads_as("t.jsonl", "{}\n", 3, o, "[1@0+2|{}]"));
    o.format = WEIR_DOCS_AUTO;
    o.field = "body";
    assert_true(reads_as("t.jsonl", "{\"text\":1,\"body\":\"b\"}", 21, o, "[1@0+21|b;text=1]"));
}

static void broken(const char *name, const char *text, weir_docs_options o, weir_status code, const char *words)
{
    const char *path = scratch_text(name, text);
    weir_err e;
    o.paths = &path;
    o.n_paths = 1;
    free(read_all(&o, &e, NULL));
    assert_true(said(&e, code, words));
}

static void test_broken_records(void **state)
{
    (void)state;
    weir_docs_options o = split(WEIR_DOCS_LINE, NULL);
    broken("b.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\n", o, WEIR_E_FORMAT,
           "b.jsonl:2: at byte 23: a string without an end");
    broken("b.jsonl", "{\"txt\":\"a\"}", o, WEIR_E_FORMAT, "b.jsonl:1: at byte 11: the record has no field \"text\"");
    broken("b.jsonl", "{\"text\":3}", o, WEIR_E_FORMAT, "field \"text\" is not a string");
    broken("b.jsonl", "[1]", o, WEIR_E_FORMAT, "b.jsonl:1: at byte 0: an object was expected, found an array");
    broken("b.jsonl", "{\"text\":\"a\"}{}", o, WEIR_E_FORMAT, "something follows the value");
    broken("b.jsonl", "{\"text\":\"a\",\"text\":\"b\"}", o, WEIR_E_FORMAT, "duplicate key");
    broken("b.jsonl", "{\"text\":\"\xff\"}", o, WEIR_E_FORMAT, "invalid UTF-8");
    broken("b.jsonl", "{\"text\":\"a\",\"x\":1e999}", o, WEIR_E_FORMAT, "too large for a double");
    const char *none = scratch("nowhere.txt");
    weir_err e = {0};
    weir_docs *d;
    o.paths = &none;
    o.n_paths = 1;
    assert_int_equal(weir_docs_open(&d, &o, &e), WEIR_E_IO);
    assert_true(said(&e, WEIR_E_IO, "nowhere.txt: cannot open: No such file or directory"));
    o.paths = (const char *const[]){scratch_root};
    e.code = WEIR_OK;
    assert_int_equal(weir_docs_open(&d, &o, &e), WEIR_E_IO);
    assert_true(said(&e, WEIR_E_IO, "Is a directory"));
}

static void test_ids(void **state)
{
    (void)state;
    weir_docs_options o = split(WEIR_DOCS_LINE, NULL);
    o.ids = true;
    READS("1 2,3\t4\n\n , \n0, 2147483647", o, "[1@0+7|1,2,3,4][4@13+13|0,2147483647]");
    assert_true(reads_as("i.jsonl", "{\"ids\":[5,6],\"k\":1}\n{\"ids\":[]}\n", 31, o, "[1@0+19|5,6;k=1]"));
    o.field = "tok";
    assert_true(reads_as("i.jsonl", "{\"tok\":[7],\"ids\":2}\n", 20, o, "[1@0+19|7;ids=2]"));
    o.field = NULL;
    broken("i.txt", "1 2\n3 x4\n", o, WEIR_E_FORMAT, "i.txt:2: at byte 6: \"x4\" is no token id");
    broken("i.txt", "3x\n", o, WEIR_E_FORMAT, "is no token id");
    broken("i.txt", "2147483648\n", o, WEIR_E_FORMAT, "is no token id");
    broken("i.txt", "-1\n", o, WEIR_E_FORMAT, "is no token id");
    broken("i.jsonl", "{\"ids\":[2147483648]}", o, WEIR_E_FORMAT, "2147483648 is no token id");
    broken("i.jsonl", "{\"ids\":[1.0]}", o, WEIR_E_FORMAT, "fraction");
    broken("i.jsonl", "{\"ids\":\"1\"}", o, WEIR_E_FORMAT, "field \"ids\" is not a list of token ids");
}

static void test_texts_and_paths(void **state)
{
    (void)state;
    const char *paths[] = {scratch_text("one.txt", "a\nb\n"), scratch_text("two.jsonl", "{\"text\":\"c\"}")};
    const char *texts[] = {"first", "", "sec\nond"};
    weir_docs_options o = split(WEIR_DOCS_LINE, NULL);
    o.paths = paths, o.n_paths = 2;
    o.texts = texts, o.n_texts = 3;
    static const struct {
        const char *text, *source;
        int64_t line;
    } want[] = {
        {"first", "arg", 0}, {"sec\nond", "arg", 0}, {"a", "one.txt", 1}, {"b", "one.txt", 2}, {"c", "two.jsonl", 1}};
    weir_docs *d;
    weir_doc doc;
    bool more;
    weir_err e = {0};
    assert_int_equal(weir_docs_open(&d, &o, &e), WEIR_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(weir_docs_next(d, &doc, &more, &e), WEIR_OK);
        assert_true(more && doc.index == i && doc.line == want[i].line);
        assert_true(doc.text.n == strlen(want[i].text) && memcmp(doc.text.p, want[i].text, doc.text.n) == 0);
        assert_non_null(strstr(weir_docs_source(d, doc.source), want[i].source));
    }
    assert_int_equal(weir_docs_next(d, &doc, &more, &e), WEIR_OK);
    assert_false(more);
    assert_int_equal(weir_docs_next(d, &doc, &more, &e), WEIR_OK); /* again */
    assert_false(more);
    assert_int_equal(weir_docs_n_sources(d), 3);
    assert_int_equal(weir_docs_skipped(d), 1);
    weir_docs_free(d);
    weir_docs_options none = split(WEIR_DOCS_LINE, NULL);
    char *got = read_all(&none, &e, NULL);
    assert_string_equal(got, "");
    free(got);
}

/* --- gzip */

static void put_gzip(blob *b, const char *text, size_t n)
{
    z_stream z = {0};
    size_t bound = n + n / 1000 + 1000;
    unsigned char *out = malloc(bound);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)text, z.avail_in = (unsigned)n;
    z.next_out = out, z.avail_out = (unsigned)bound;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    put(b, out, z.total_out);
    deflateEnd(&z);
    free(out);
}

static void test_gzip(void **state)
{
    (void)state;
    weir_docs_options o = split(WEIR_DOCS_LINE, NULL);
    blob b = {0};
    put_gzip(&b, "\xef\xbb\xbfone\ntw", 9);
    size_t first = b.n;
    put_gzip(&b, "", 0);
    put_gzip(&b, "o\nthree", 7);
    assert_true(reads_as("z", (char *)b.p, b.n, o, "[1@3+3|one][2@7+3|two][3@11+5|three]"));
    size_t whole = b.n;
    put_zeros(&b, 1000);
    assert_true(reads_as("z", (char *)b.p, b.n, o, "[1@3+3|one][2@7+3|two][3@11+5|three]"));
    put(&b, "x", 1);
    const char *path = scratch_write("z", b.p, b.n);
    weir_err e;
    o.paths = &path, o.n_paths = 1;
    free(read_all(&o, &e, NULL));
    assert_true(said(&e, WEIR_E_FORMAT, "/z: at byte") && said(&e, WEIR_E_FORMAT, "something follows the gzip data"));
    for (size_t n = 2; n < whole; n++) { /* every cut but one between members is noticed */
        path = scratch_write("z", b.p, n);
        free(read_all(&o, &e, NULL));
        bool between =
            n == first || n == first + 20 || n == first + 1 || n == first + 21; /* 1 byte more: "something follows" */
        if (e.code != (n == first || n == first + 20 ? WEIR_OK : WEIR_E_FORMAT))
            fail_msg("cut at %zu of %zu: %s", n, whole, e.msg);
        assert_true(between || strstr(e.msg, "cut short"));
    }
    b.p[first / 2] ^= 0x10;
    path = scratch_write("z", b.p, whole);
    free(read_all(&o, &e, NULL));
    assert_true(said(&e, WEIR_E_FORMAT, "the gzip data are damaged"));
    free(b.p);
    b = (blob){0};
    put_gzip(&b, "{\"text\":\"j\"}\n", 13);
    assert_true(reads_as("z.jsonl.gz", (char *)b.p, b.n, split(WEIR_DOCS_LINE, NULL), "[1@0+12|j]"));
    free(b.p);
}

/* --- sizes */

/* Documents whose ends fall on every place around the sizes of the buffers, through all splits, equal what was written.
 */
static void test_long_documents(void **state)
{
    (void)state;
    enum { TOTAL = 3 << 20 };
    char *text = malloc(TOTAL + 1);
    size_t n = 0, lines = 0, sum = 0;
    for (uint64_t x = 1; n < TOTAL - 1; lines++) {
        x = x * 6364136223846793005u + 1;
        size_t len = (x >> 33) % (lines % 7 == 0 ? 700000 : 3000) + 1;
        len = len > TOTAL - 1 - n ? TOTAL - 1 - n : len;
        memset(text + n, 'a' + (int)(lines % 26), len);
        n += len;
        text[n++] = '\n';
        sum += len;
    }
    blob gz = {0};
    put_gzip(&gz, text, n);
    const char *paths[] = {scratch_write("long.txt", text, n), scratch_write("long.gz", gz.p, gz.n)};
    for (int p = 0; p < 2; p++) {
        weir_docs_options o = split(WEIR_DOCS_LINE, NULL);
        o.paths = &paths[p], o.n_paths = 1;
        weir_docs *d;
        weir_doc doc;
        bool more;
        size_t docs = 0, seen = 0;
        assert_int_equal(weir_docs_open(&d, &o, NULL), WEIR_OK);
        while (weir_docs_next(d, &doc, &more, NULL) == WEIR_OK && more) {
            assert_memory_equal(doc.text.p, text + doc.byte_off, doc.text.n);
            docs++, seen += doc.text.n;
            assert_int_equal(doc.line, docs);
        }
        assert_true(docs == lines && seen == sum);
        weir_docs_free(d);
    }
    free(gz.p);
    free(text);
}

static long peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* 64 MiB in short lines and paragraphs pass through a window that stays small. */
static void test_memory_is_bounded(void **state)
{
    (void)state;
    const char *path = scratch("many.txt");
    FILE *f = fopen(path, "wb");
    for (int i = 0; i < 1 << 20; i++)
        fprintf(f, "%062d\n%s", i, i % 4 ? "" : "\n");
    fclose(f);
    weir_docs_options o = split(WEIR_DOCS_BLANK, NULL);
    o.paths = &path, o.n_paths = 1;
    weir_docs *d;
    weir_doc doc;
    bool more;
    long before = peak_kib(), docs = 0;
    assert_int_equal(weir_docs_open(&d, &o, NULL), WEIR_OK);
    while (weir_docs_next(d, &doc, &more, NULL) == WEIR_OK && more)
        docs++;
    weir_docs_free(d);
    assert_int_equal(docs, (1 << 18) + 1);
    assert_in_range(peak_kib() - before, 0, 4 << 10);
}

static void test_pipe(void **state)
{
    (void)state;
    int ends[2], keep = dup(0);
    weir_docs_options o = split(WEIR_DOCS_LINE, NULL);
    weir_err e;
    o.paths = (const char *const[]){"-"}, o.n_paths = 1;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "a\nb", 3), 3);
    close(ends[1]);
    dup2(ends[0], 0);
    char *got = read_all(&o, &e, NULL);
    assert_string_equal(got, "[1@0+1|a][2@2+1|b]");
    free(got);
    dup2(keep, 0);
    close(ends[0]);
    close(keep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_as_can_fail),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_nul_is_kept),
        cmocka_unit_test(test_paragraphs),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_separators),
        cmocka_unit_test(test_jsonl),
        cmocka_unit_test(test_broken_records),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_texts_and_paths),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_long_documents),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_pipe),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

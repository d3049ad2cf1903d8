/* Damaged result files: whatever bit is wrong, reading fails and says so, or what is read is what was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#define WORLD_WIDTH 10
#include "search_world.h"
#include "support/said.h"

enum { DOCS = 12, FLIPS = 2000 };

typedef struct bytes {
    uint8_t *p;
    size_t n;
} bytes;

static bytes contents(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    assert_true(f && !fstat(fileno(f), &st) && st.st_size > 0);
    bytes b = {malloc((size_t)st.st_size), (size_t)st.st_size};
    assert_true(b.p && fread(b.p, 1, b.n, f) == b.n);
    fclose(f);
    return b;
}

/* A file with everything that one can hold. */
static bytes sound(const char *path)
{
    const weir_neurons_about about = world_about(0, 2);
    weir_neurons_options o = world_options(0);
    weir_err err = {0};
    weir_neurons *s;
    o.lists = 7;
    o.k = 3;
    o.per_band = 2;
    o.random = 4;
    assert_int_equal(world_search(&s, &o, 0, DOCS, 1, &err), WEIR_OK);
    assert_int_equal(weir_neurons_write(s, path, &about, &err), WEIR_OK);
    weir_neurons_free(s);
    return contents(path);
}

static void flip(const char *path, const bytes *b, size_t bit)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    b->p[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_true(fd >= 0 && pwrite(fd, b->p + bit / 8, 1, (off_t)(bit / 8)) == 1);
    close(fd);
}

/* Is the file refused, in one line that names it? Then the search is none. */
static bool refused(const char *path, weir_neurons **s)
{
    weir_err err = {0};
    const bool bad = weir_neurons_read(s, path, 1, &err) != WEIR_OK;
    if (bad) {
        assert_null(*s);
        assert_true(said(&err, err.code, path));
    }
    return bad;
}

/* What was read, written again, is the file that was sound. */
static bool is_unchanged(weir_neurons *s, const bytes *was)
{
    weir_err err = {0};
    const char *path = scratch("again.h5");
    assert_int_equal(weir_neurons_write(s, path, weir_neurons_about_of(s), &err), WEIR_OK);
    const bytes again = contents(path);
    const bool same = again.n == was->n && !memcmp(again.p, was->p, was->n);
    free(again.p);
    return same;
}

static void test_any_bit(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s", scratch("bits.h5"));
    bytes b = sound(path), was = contents(path);
    const size_t step = (b.n * 8 / FLIPS) | 1; /* odd: each bit of a byte has its turn */
    size_t errors = 0, unseen = 0;
    for (size_t bit = 0; bit < b.n * 8; bit += step) {
        weir_neurons *s;
        flip(path, &b, bit);
        if (refused(path, &s)) {
            errors++;
        } else if (!is_unchanged(s, &was)) {
            fprintf(stderr, "byte %zu of %zu, bit %zu: read as if it were sound\n", bit / 8, b.n, bit % 8);
            unseen++;
        }
        weir_neurons_free(s);
        flip(path, &b, bit);
    }
    assert_int_equal(unseen, 0);
    assert_true(errors > FLIPS / 2);
    weir_neurons *s = NULL;
    assert_false(refused(path, &s)); /* sound again */
    assert_true(is_unchanged(s, &was));
    weir_neurons_free(s);
    free(b.p);
    free(was.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_bit)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

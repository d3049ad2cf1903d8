/* Lists of the best places: against a sort, in any order of insertion, split and merged, by every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "search/scan.h"

enum { MOST = 600 };

static uint64_t random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* How entries are made: values of so many levels, texts of so many keys. */
typedef struct mix {
    int64_t n, k;
    int levels, keys;
} mix;

static void make_entries(weir_entry *e, const mix *m, uint64_t seed)
{
    for (int64_t i = 0; i < m->n; i++) {
        const int level = (int)(random_bits(&seed) % (uint64_t)m->levels) - m->levels / 2;
        e[i] = (weir_entry){.value = (float)level / 4, .at = {(uint32_t)(i / 10), (uint32_t)(i % 10)}, .count = 1};
        e[i].key = random_bits(&seed) % (uint64_t)m->keys;
        if (level == 0 && random_bits(&seed) % 2)
            e[i].value = -0.0f;
    }
}

static void shuffle(weir_entry *e, int64_t n, uint64_t seed)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(random_bits(&seed) % (uint64_t)(i + 1));
        const weir_entry t = e[i];
        e[i] = e[j];
        e[j] = t;
    }
}

/* --- by sorting */

static weir_neurons_list sorted_list;

static int by_rank(const void *a, const void *b)
{
    const weir_entry *p = a, *q = b;
    return weir_entry_better(sorted_list, p->value, p->at, q->value, q->at)   ? -1
           : weir_entry_better(sorted_list, q->value, q->at, p->value, p->at) ? 1
                                                                              : 0;
}

static bool ties(weir_neurons_list which, float a, float b)
{
    return which == WEIR_NEURONS_ABS ? fabsf(a) == fabsf(b) : a == b;
}

static int64_t brute_list(const weir_entry *e, const mix *m, weir_neurons_list which, bool dedup, weir_entry *out)
{
    weir_entry all[MOST];
    int64_t n = 0;
    memcpy(all, e, (size_t)m->n * sizeof *all);
    sorted_list = which;
    qsort(all, (size_t)m->n, sizeof *all, by_rank);
    for (int64_t i = 0; i < m->n; i++) {
        int64_t j = dedup ? 0 : n;
        while (j < n && out[j].key != all[i].key)
            j++;
        if (j < n)
            out[j].count += ties(which, out[j].value, all[i].value);
        else if (n <= m->k)
            out[n++] = all[i];
    }
    for (int64_t j = 0; j < n; j++) {
        if (!dedup)
            out[j].key = 0;
        if (dedup && n == m->k + 1 && ties(which, out[j].value, out[m->k].value) && j < m->k)
            out[j].count = 0;
    }
    if (dedup && n == m->k + 1)
        out[m->k].count = 0;
    return n;
}

static bool same_entries(const weir_lists *l, int64_t i, const weir_entry *want, int64_t n)
{
    bool same = l->size[i] == n;
    for (int64_t j = 0; same && j < n; j++) {
        const weir_entry e = weir_lists_get(l, i, j);
        same = !memcmp(&e.value, &want[j].value, sizeof e.value) && e.at.doc == want[j].at.doc &&
               e.at.pos == want[j].at.pos && e.key == want[j].key && e.count == want[j].count;
    }
    return same;
}

/* --- the same in every way */

typedef void put_fn(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e);

/* Three lists, of which the second is used: its neighbours must stay empty. */
static weir_lists new_lists(const mix *m, bool dedup)
{
    weir_err err = {0};
    weir_lists l;
    assert_int_equal(weir_lists_new(&l, 3, m->k, dedup, &err), WEIR_OK);
    return l;
}

static void put_all(weir_lists *l, weir_neurons_list which, const weir_entry *e, int64_t n, put_fn *put)
{
    for (int64_t i = 0; i < n; i++)
        put(l, which, 1, &e[i]);
}

static void merge_lists(weir_lists *to, const weir_lists *from, weir_neurons_list which)
{
    for (int64_t j = 0; j < from->size[1]; j++) {
        const weir_entry e = weir_lists_get(from, 1, j);
        weir_lists_put(to, which, 1, &e);
    }
}

static void check_put(const weir_entry *e, const mix *m, weir_neurons_list which, bool dedup, put_fn *put)
{
    weir_entry want[MOST];
    const int64_t n = brute_list(e, m, which, dedup, want);
    weir_lists l = new_lists(m, dedup);
    put_all(&l, which, e, m->n, put);
    weir_lists_settle(&l, which, 1);
    assert_true(same_entries(&l, 1, want, n));
    weir_lists_settle(&l, which, 1); /* what is settled stays */
    assert_true(same_entries(&l, 1, want, n));
    assert_int_equal(l.size[0] + l.size[2], 0);
    weir_lists_free(&l);
}

/* Two halves, each a list of its own that was settled, as shards are; one joins the other. */
static void check_halves(const weir_entry *e, const mix *m, weir_neurons_list which, bool dedup, int64_t cut)
{
    weir_entry want[MOST];
    const int64_t n = brute_list(e, m, which, dedup, want);
    weir_lists a = new_lists(m, dedup), b = new_lists(m, dedup);
    put_all(&a, which, e, cut, weir_lists_put);
    put_all(&b, which, e + cut, m->n - cut, weir_lists_put);
    weir_lists_settle(&a, which, 1);
    weir_lists_settle(&b, which, 1);
    merge_lists(&a, &b, which);
    weir_lists_settle(&a, which, 1);
    assert_true(same_entries(&a, 1, want, n));
    weir_lists_free(&a);
    weir_lists_free(&b);
}

static const mix mixes[] = {{1, 3, 5, 4},      {5, 5, 9, 100},     {6, 5, 9, 100},    {7, 5, 1, 3},
                            {60, 1, 40, 9},    {300, 16, 12, 40},  {300, 7, 1, 300},  {MOST, 50, 300, 70},
                            {MOST, 50, 30, 9}, {MOST, 31, 8, 200}, {MOST, 599, 9, 90}};

static void test_any_order(void **state)
{
    (void)state;
    const weir_kern *kern[8];
    const int n_kern = weir_kern_available(kern, 8);
    for (size_t c = 0; c < sizeof mixes / sizeof *mixes; c++)
        for (int turn = 0; turn < 60; turn++) {
            weir_entry e[MOST];
            const weir_neurons_list which = (weir_neurons_list)(turn % 3);
            make_entries(e, &mixes[c], 1000 * c + (uint64_t)turn / 10 + 1);
            if (turn)
                shuffle(e, mixes[c].n, (uint64_t)turn);
            for (int k = 0; k < n_kern; k++) {
                const weir_scan_kernels *scan;
                assert_int_equal(weir_scan_pick(&scan, weir_kern_name(kern[k]), NULL), WEIR_OK);
                check_put(e, &mixes[c], which, turn % 2, scan->put);
            }
            check_halves(e, &mixes[c], which, turn % 2, mixes[c].n / 3);
        }
}

static void test_comparison_can_fail(void **state)
{
    (void)state;
    const mix *m = &mixes[5];
    weir_entry e[MOST], want[MOST];
    make_entries(e, m, 1);
    const int64_t n = brute_list(e, m, WEIR_NEURONS_TOP, true, want);
    weir_lists l = new_lists(m, true);
    put_all(&l, WEIR_NEURONS_TOP, e, m->n, weir_lists_put);
    weir_lists_settle(&l, WEIR_NEURONS_TOP, 1);
    assert_true(same_entries(&l, 1, want, n));
    assert_false(same_entries(&l, 1, want, n - 1));
    want[3].count++;
    assert_false(same_entries(&l, 1, want, n));
    want[3].count--;
    want[3].at.pos++;
    assert_false(same_entries(&l, 1, want, n));
    weir_lists_free(&l);
}

static void test_counts_that_are_not_known_stay_so(void **state)
{
    (void)state;
    const mix m = {.k = 2};
    weir_lists l = new_lists(&m, true);
    const weir_entry e[] = {{1, {0, 1}, 7, 0}, {1, {3, 1}, 7, 5}, {2, {9, 9}, 8, UINT32_MAX}, {2, {9, 8}, 8, 9}};
    put_all(&l, WEIR_NEURONS_TOP, e, 4, weir_lists_put);
    weir_lists_settle(&l, WEIR_NEURONS_TOP, 1);
    const weir_entry want[] = {{2, {9, 8}, 8, UINT32_MAX}, {1, {0, 1}, 7, 0}};
    assert_true(same_entries(&l, 1, want, 2));
    weir_lists_free(&l);
}

/* A value that ties is better if it comes from an earlier place, whichever zero it is. */
static void test_order(void **state)
{
    (void)state;
    const weir_place a = {1, 5}, b = {1, 6}, c = {2, 0};
    assert_true(weir_entry_better(WEIR_NEURONS_TOP, 1, b, 0.5f, a));
    assert_true(weir_entry_better(WEIR_NEURONS_BOTTOM, 0.5f, b, 1, a));
    assert_true(weir_entry_better(WEIR_NEURONS_ABS, -1, b, 0.5f, a));
    assert_true(weir_entry_better(WEIR_NEURONS_ABS, -1, a, 1, b));
    assert_false(weir_entry_better(WEIR_NEURONS_ABS, -1, b, 1, a));
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        assert_true(weir_entry_better((weir_neurons_list)which, -0.0f, b, 0.0f, c));
        assert_true(weir_entry_better((weir_neurons_list)which, 0.0f, a, -0.0f, b));
        assert_false(weir_entry_better((weir_neurons_list)which, 0.0f, a, -0.0f, a));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_comparison_can_fail),
        cmocka_unit_test(test_counts_that_are_not_known_stay_so),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Named neurons: means by token and correlations against brute force in double; the same arrays whatever the kernel,
 * the threads, the passes and the order of merging; arrays that come back from a file. */
#include "detail_kit.h"

#include <stdio.h>

/* --- brute force */

static weir_neuron_relation brute_relation(const dk_rows *d, int64_t i, int64_t u)
{
    int64_t n = 0, both = 0, either = 0;
    long double si = 0, su = 0, mi, mu, ii = 0, uu = 0, iu = 0;
    for (int pass = 0; pass < 2; pass++) {
        mi = n ? si / n : 0;
        mu = n ? su / n : 0;
        for (int r = 0; r < DK_ROWS; r++) {
            const float a = d->x[r * DK_WIDTH + i], b = d->x[r * DK_WIDTH + u];
            if (!isfinite(a) || !isfinite(b))
                continue;
            if (pass == 0) {
                n++;
                si += (long double)a;
                su += (long double)b;
                both += a > 0 && b > 0;
                either += a > 0 || b > 0;
            } else {
                ii += ((long double)a - mi) * ((long double)a - mi);
                uu += ((long double)b - mu) * ((long double)b - mu);
                iu += ((long double)a - mi) * ((long double)b - mu);
            }
        }
    }
    return (weir_neuron_relation){u, (double)(iu / sqrtl(ii * uu)), (double)both / (double)either};
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-13 || (isnan(a) && isnan(b));
}

/* All of what is said of a named neuron, in the right order? */
static bool relations_are_right(const dk_search *d, const dk_rows *data, int named)
{
    weir_neuron_relation r[DK_WIDTH], c[DK_WIDTH];
    if (weir_neurons_related(&d->s, named, false, DK_WIDTH, r) != DK_WIDTH - 1 ||
        weir_neurons_related(&d->s, named, true, DK_WIDTH, c) != DK_WIDTH - 1)
        return false;
    bool seen[DK_WIDTH] = {false};
    seen[dk_column(named)] = true;
    for (int k = 0; k < DK_WIDTH - 1; k++) {
        const weir_neuron_relation want = brute_relation(data, dk_column(named), r[k].unit);
        if (seen[r[k].unit] || !near(r[k].r, want.r) || !near(r[k].cofire, want.cofire))
            return false;
        seen[r[k].unit] = true;
        if (k > 0 && (fabs(r[k].r) > fabs(r[k - 1].r) || c[k].cofire > c[k - 1].cofire ||
                      (c[k].cofire == c[k - 1].cofire && c[k].unit < c[k - 1].unit)))
            return false;
    }
    return true;
}

static bool means_are_right(const dk_search *d, const dk_rows *data, int named)
{
    weir_token_mean t[DK_IDS];
    const int64_t n = weir_neurons_token_means(&d->s, named, true, 1, DK_IDS, t);
    int64_t want = 0;
    for (int id = 0; id < d->s.o.token_means; id++) {
        int64_t count = 0, at = 0;
        long double sum = 0;
        for (int r = 0; r < DK_ROWS; r++) {
            const float x = data->x[r * DK_WIDTH + dk_column(named)];
            if (data->id[r] == id && isfinite(x)) {
                count++;
                sum += (long double)x;
            }
        }
        want += count > 0;
        while (at < n && t[at].id != id)
            at++;
        if (count &&
            (at == n || t[at].count != count || fabs(t[at].mean - (double)(sum / count)) > 1e-14 * fabs(t[at].mean) ||
             (at > 0 && t[at].mean > t[at - 1].mean)))
            return false;
    }
    return n == want;
}

static dk_search *fed(const dk_rows *data, const char *kernel)
{
    dk_search *d;
    int32_t order[DK_ROWS];
    dk_order(order);
    assert_int_equal(dk_new(&d, kernel, 1, true, NULL), WEIR_OK);
    assert_int_equal(dk_feed(d, data, order, 0, DK_ROWS, NULL), WEIR_OK);
    return d;
}

static void results_are_those_of_brute_force(void **state)
{
    (void)state;
    for (int wild = 0; wild < 2; wild++) {
        dk_rows *data = dk_make(wild, 3);
        kit_table table[3];
        for (int k = 0, n = kit_tables(table); k < n; k++) {
            dk_search *d = fed(data, table[k].name);
            for (int j = 0; j < DK_NAMED; j++) {
                assert_true(relations_are_right(d, data, j));
                assert_true(means_are_right(d, data, j));
            }
            assert_true(d->s.detail->apart == wild);
            dk_free(d);
        }
        free(data);
    }
}

static void brute_force_sees_one_value(void **state)
{
    (void)state;
    dk_rows *data = dk_make(true, 3);
    dk_search *d = fed(data, "ref");
    data->x[17 * DK_WIDTH + 63] += 0.001f;
    assert_false(relations_are_right(d, data, 1));
    assert_false(means_are_right(d, data, 1));
    dk_free(d);
    free(data);
}

/* --- the same whatever the way */

static size_t bytes_of(const weir_detail_array *a)
{
    int64_t n = a->type == WEIR_DETAIL_I32 ? 4 : 8;
    for (int i = 0; i < a->rank; i++)
        n *= a->dim[i];
    return (size_t)n;
}

static bool same_arrays(dk_search *a, dk_search *b)
{
    weir_detail_array p, q;
    weir_detail_sort(a->s.detail);
    weir_detail_sort(b->s.detail);
    int i = 0;
    for (; weir_detail_array_at(a->s.detail, i, &p); i++)
        if (!weir_detail_array_at(b->s.detail, i, &q) || strcmp(p.name, q.name) || p.type != q.type ||
            p.rank != q.rank || memcmp(p.dim, q.dim, sizeof p.dim) || memcmp(p.p, q.p, bytes_of(&p)))
            return false;
    return i > 3 && !weir_detail_array_at(b->s.detail, i, &q);
}

static void shuffle(int32_t *order, uint32_t *seed)
{
    for (int r = DK_ROWS - 1; r > 0; r--) {
        const int o = (int)(kit_next(seed) % (uint32_t)(r + 1));
        const int32_t t = order[r];
        order[r] = order[o];
        order[o] = t;
    }
}

static void the_way_there_is_not_seen(void **state)
{
    (void)state;
    enum { PARTS = 3 };
    dk_rows *data = dk_make(true, 8);
    dk_search *want = fed(data, "ref");
    kit_table table[3];
    const int n = kit_tables(table);
    uint32_t seed = 11;
    int32_t order[DK_ROWS];
    dk_order(order);
    for (int turn = 0; turn < 12; turn++) {
        dk_search *part[PARTS];
        shuffle(order, &seed);
        for (int p = 0; p < PARTS; p++)
            assert_int_equal(dk_new(&part[p], table[turn % n].name, 1 + turn % 3, true, NULL), WEIR_OK);
        for (int r = 0; r < DK_ROWS;) {
            int to = r + (int)(kit_next(&seed) % 130);
            to = to < DK_ROWS ? to : DK_ROWS;
            assert_int_equal(dk_feed(part[kit_next(&seed) % PARTS], data, order, r, to, NULL), WEIR_OK);
            r = to;
        }
        const int first = turn % PARTS, second = (turn + 1 + turn / PARTS % 2) % PARTS;
        assert_int_equal(weir_detail_merge(&part[first]->s, &part[second]->s, NULL), WEIR_OK);
        assert_int_equal(weir_detail_merge(&part[first]->s, &part[PARTS - first - second]->s, NULL), WEIR_OK);
        assert_true(same_arrays(part[first], want));
        for (int p = 0; p < PARTS; p++)
            dk_free(part[p]);
    }
    data->x[40 * DK_WIDTH + 2] *= 1 + 0x1p-22f;
    dk_search *other = fed(data, "ref");
    assert_false(same_arrays(other, want)); /* the comparison can fail */
    dk_free(other);
    dk_free(want);
    free(data);
}

/* --- files */

static void arrays_come_back(void **state)
{
    (void)state;
    for (int wild = 0; wild < 2; wild++) {
        dk_rows *data = dk_make(wild, 5);
        dk_search *from = fed(data, NULL), *to;
        weir_detail_array p, q;
        weir_detail_sort(from->s.detail);
        assert_int_equal(dk_new(&to, NULL, 1, true, NULL), WEIR_OK);
        assert_true(weir_detail_array_at(from->s.detail, 0, &p) && !strcmp(p.name, "token_id"));
        assert_int_equal(weir_detail_room(to->s.detail, p.dim[0], wild, NULL), WEIR_OK);
        for (int i = 0; weir_detail_array_at(from->s.detail, i, &p); i++) {
            assert_true(weir_detail_array_at(to->s.detail, i, &q));
            assert_memory_equal(p.dim, q.dim, sizeof p.dim);
            memcpy(q.p, p.p, bytes_of(&p));
        }
        assert_int_equal(weir_detail_filled(to->s.detail, NULL), WEIR_OK);
        assert_true(same_arrays(to, from));
        int32_t order[DK_ROWS]; /* and both go on alike */
        dk_order(order);
        assert_int_equal(dk_feed(to, data, order, 5, 50, NULL), WEIR_OK);
        assert_false(same_arrays(to, from));
        assert_int_equal(dk_feed(from, data, order, 5, 50, NULL), WEIR_OK);
        assert_true(same_arrays(to, from));
        dk_free(from);
        dk_free(to);
        free(data);
    }
}

static void assert_refused(dk_search *d, const char *what)
{
    weir_err err = {0};
    assert_int_equal(weir_detail_filled(d->s.detail, &err), WEIR_E_FORMAT);
    assert_non_null(strstr(err.msg, what));
}

static void broken_arrays_are_refused(void **state)
{
    (void)state;
    dk_rows *data = dk_make(true, 5);
    dk_search *d = fed(data, NULL);
    weir_detail *t = d->s.detail;
    weir_err err = {0};
    weir_detail_sort(t);
    assert_int_equal(weir_detail_filled(t, NULL), WEIR_OK);
    t->id[3] = t->id[2];
    assert_refused(d, "token 3");
    t->id[3] = (int32_t)t->ids;
    assert_refused(d, "out of order or range");
    t->id[0] = -1;
    assert_refused(d, "token 0");
    t->id[0] = 0;
    t->id[3] = 3;
    int64_t *const counts[] = {t->count, t->group[1].rows, t->group[0].count, t->group[0].both + 7,
                               t->group[1].apart_count + 2};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const int64_t kept = *counts[i];
        *counts[i] = i % 2 ? -1 : INT64_MAX;
        assert_refused(d, "negative or too large");
        *counts[i] = kept;
    }
    assert_int_equal(weir_detail_filled(t, NULL), WEIR_OK);
    assert_int_equal(weir_detail_room(t, t->ids + 1, false, &err), WEIR_E_FORMAT);
    dk_free(d);
    free(data);
}

/* --- odd cases */

static void what_has_no_correlation_comes_last(void **state)
{
    (void)state;
    dk_rows *data = dk_make(false, 6);
    for (int r = 0; r < DK_ROWS; r++) {
        float *x = data->x + r * DK_WIDTH;
        x[2] = r ? x[2] : 1;
        x[10] = -0.1f;            /* constant, and never fires */
        x[11] = NAN;              /* nothing to compare with */
        x[12] = r ? x[2] : -2e7f; /* out of the sums' range */
        x[13] = -x[2];            /* the other way round */
        x[14] = x[15] = x[2] * 4; /* alike: the lower unit first */
    }
    dk_search *d = fed(data, NULL);
    weir_neuron_relation r[DK_WIDTH];
    assert_int_equal(weir_neurons_related(&d->s, 0, false, DK_WIDTH, r), DK_WIDTH - 1);
    assert_true(r[0].unit == 13 && r[0].r == -1 && r[0].cofire == 0);
    assert_true(r[1].unit == 14 && r[1].r == 1 && r[1].cofire == 1);
    assert_true(r[2].unit == 15 && r[2].r == 1);
    for (int k = 0; k < 3; k++)
        assert_true(r[DK_WIDTH - 4 + k].unit == 10 + k && isnan(r[DK_WIDTH - 4 + k].r));
    assert_true(r[DK_WIDTH - 4].cofire == 0 && isnan(r[DK_WIDTH - 3].cofire) && r[DK_WIDTH - 2].cofire > 0.9);
    assert_int_equal(weir_neurons_related(&d->s, 0, true, DK_WIDTH, r), DK_WIDTH - 1);
    assert_true(r[0].unit == 14 && r[1].unit == 15 && r[DK_WIDTH - 2].unit == 11);
    weir_neuron_relation few[4] = {[3] = {-7, 0, 0}};
    assert_int_equal(weir_neurons_related(&d->s, 0, true, 3, few), 3);
    assert_true(!memcmp(few, r, 2 * sizeof *r) && few[2].unit == r[2].unit && few[3].unit == -7);
    assert_int_equal(weir_neurons_related(&d->s, 0, true, 0, few), 0);
    assert_int_equal(weir_neurons_related(&d->s, -1, true, 3, few), 0);
    assert_int_equal(weir_neurons_related(&d->s, DK_NAMED, true, 3, few), 0);
    dk_free(d);
    free(data);
}

static void token_means_have_an_order(void **state)
{
    (void)state;
    dk_rows *data = dk_make(false, 6);
    for (int r = 0; r < DK_ROWS; r++) {
        data->id[r] = r % 10 == 9 ? 39 : r % 10; /* 39 is not counted; 0 .. 8: 30 rows each */
        data->x[r * DK_WIDTH + 2] = data->id[r] == 4 ? NAN : (float)(data->id[r] / 2) - 2;
    }
    data->x[8 * DK_WIDTH + 2] = NAN;
    dk_search *d = fed(data, NULL);
    weir_token_mean t[9];
    static const int32_t falling[] = {8, 6, 7, 5, 2, 3, 0, 1}, rising[] = {0, 1, 2, 3, 5, 6, 7, 8};
    assert_int_equal(weir_neurons_token_means(&d->s, 0, true, 1, 9, t), 8);
    for (int i = 0; i < 8; i++)
        assert_true(t[i].id == falling[i] && t[i].mean == falling[i] / 2 - 2 && t[i].count == 30 - (t[i].id == 8));
    assert_int_equal(weir_neurons_token_means(&d->s, 0, false, 1, 9, t), 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(t[i].id, rising[i]);
    assert_int_equal(weir_neurons_token_means(&d->s, 0, true, 30, 2, t), 2);
    assert_true(t[0].id == 6 && t[1].id == 7);
    assert_int_equal(weir_neurons_token_means(&d->s, 0, true, 31, 9, t), 0);
    assert_int_equal(weir_neurons_token_means(&d->s, DK_NAMED, true, 1, 9, t), 0);
    dk_free(d);
    free(data);
}

static void rows_without_other_columns(void **state)
{
    (void)state;
    dk_rows *data = dk_make(false, 2);
    weir_err err = {0};
    dk_search *d = fed(data, NULL), *whole = fed(data, NULL), *plain;
    float few[DK_ROWS * DK_UNITS];
    for (int i = 0; i < DK_ROWS * DK_UNITS; i++)
        few[i] = data->x[i / DK_UNITS * DK_WIDTH + dk_units[i % DK_UNITS]];
    const weir_neurons_values v = {.x = few, .stride = DK_UNITS, .whole = false};
    assert_int_equal(weir_detail_add(&d->s, 1, &v, d->taken, DK_ROWS, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "whole rows"));
    /* Without correlations they are enough: the named neuron's column among the searched. */
    assert_int_equal(dk_new(&plain, NULL, 1, false, NULL), WEIR_OK);
    memcpy(plain->row, d->row, sizeof d->row);
    memcpy(plain->id, d->id, sizeof d->id);
    assert_int_equal(weir_detail_add(&plain->s, 1, &v, d->taken, DK_ROWS, NULL), WEIR_OK);
    weir_token_mean a[DK_IDS], b[DK_IDS];
    const int64_t n = weir_neurons_token_means(&plain->s, 2, true, 1, DK_IDS, a);
    assert_true(n > 0 && n == weir_neurons_token_means(&whole->s, 2, true, 1, DK_IDS, b));
    for (int64_t i = 0; i < n; i++)
        assert_true(a[i].id == b[i].id && a[i].mean == b[i].mean && a[i].count == b[i].count);
    weir_neuron_relation r[1];
    assert_int_equal(weir_neurons_related(&plain->s, 2, true, 1, r), 0);
    dk_free(plain);
    dk_free(whole);
    dk_free(d);
    free(data);
}

static void values_go_to_the_spools(void **state)
{
    (void)state;
    dk_rows *data = dk_make(true, 4);
    weir_spool *heat[DK_NAMED];
    dk_search *d;
    int32_t back[DK_ROWS];
    assert_int_equal(dk_new(&d, NULL, 1, false, NULL), WEIR_OK);
    for (int j = 0; j < DK_NAMED; j++)
        assert_int_equal(weir_spool_new(&heat[j], NULL, NULL), WEIR_OK);
    d->s.heat = heat;
    dk_order(back);
    for (int r = 0; r < DK_ROWS; r += 100)
        assert_int_equal(dk_feed(d, data, back, r, r + 100, NULL), WEIR_OK);
    for (int j = 0; j < DK_NAMED; j++) {
        weir_spool_record rec[DK_ROWS];
        assert_int_equal(weir_spool_count(heat[j]), DK_ROWS);
        assert_int_equal(weir_spool_read(heat[j], 0, DK_ROWS, rec, NULL), WEIR_OK);
        for (uint32_t r = 0; r < DK_ROWS; r++) {
            assert_true(rec[r].doc == r / 7 && rec[r].pos == r % 7);
            assert_memory_equal(&rec[r].payload, &data->x[r * DK_WIDTH + dk_column(j)], 4);
        }
        weir_spool_free(heat[j]);
    }
    dk_free(d);
    free(data);
}

static void without_named_neurons_there_is_nothing(void **state)
{
    (void)state;
    weir_neurons s = {.threads = 1};
    weir_token_mean t[1];
    weir_neuron_relation r[1];
    assert_int_equal(weir_detail_new(&s, NULL), WEIR_OK);
    assert_null(s.detail);
    assert_int_equal(weir_detail_add(&s, 0, NULL, NULL, 5, NULL), WEIR_OK);
    assert_int_equal(weir_detail_merge(&s, &s, NULL), WEIR_OK);
    assert_int_equal(weir_neurons_token_means(&s, 0, true, 1, 1, t), 0);
    assert_int_equal(weir_neurons_related(&s, 0, true, 1, r), 0);
    weir_detail_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_brute_force), cmocka_unit_test(brute_force_sees_one_value),
        cmocka_unit_test(the_way_there_is_not_seen),        cmocka_unit_test(arrays_come_back),
        cmocka_unit_test(broken_arrays_are_refused),        cmocka_unit_test(what_has_no_correlation_comes_last),
        cmocka_unit_test(token_means_have_an_order),        cmocka_unit_test(rows_without_other_columns),
        cmocka_unit_test(values_go_to_the_spools),          cmocka_unit_test(without_named_neurons_there_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* bench_neurons: what a search costs a value, by its parts, on one thread.
 *
 *     bench_neurons [PASSES [K]]
 *
 * Activations like those behind a GELU, [1024, 3072] for each of 12 tables a pass, made anew for every pass (so that
 * places come into lists as seldom as they do in a text). Each part is timed on its own right after they were made:
 * processor time, as nanoseconds and cycles a value; a cycle is what one addition that waits for another takes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "search/scan.h"

enum { ROWS = 1024, WIDTH = 3072, TABLES = 12, DOCUMENT = 25 };

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cycle_seconds(void)
{
    enum { N = 100000000 };
    uint64_t x = 1;
    const double from = cpu_now();
    for (int i = 0; i < N; i++)
        __asm__ volatile("add $1, %0" : "+r"(x));
    return (cpu_now() - from) / N;
}

static uint64_t state = 88172645463325252u;

/* The sum of four uniform numbers, through x sigmoid(1.702 x); each neuron has its own mean and scale. */
static void make_values(float *x)
{
    for (int64_t i = 0; i < (int64_t)ROWS * WIDTH; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const int sum =
            (int)(state & 0xffff) + (int)(state >> 16 & 0xffff) + (int)(state >> 32 & 0xffff) + (int)(state >> 48);
        const float z = ((float)sum - 131070) * (1 / 37837.0f) * (0.5f + (float)(i % 7) / 4) - (float)(i % 5) / 4;
        x[i] = z / (1 + expf(-1.702f * z));
    }
}

static weir_neurons *new_search(unsigned lists, int64_t k)
{
    weir_neurons_table table[TABLES];
    weir_neurons_options o;
    char hook[TABLES][32];
    weir_err err = {0};
    weir_neurons *s;
    weir_neurons_options_init(&o);
    o.k = k;
    o.lists = lists;
    o.threads = 1;
    for (int t = 0; t < TABLES; t++) {
        snprintf(hook[t], sizeof hook[t], "blocks.%d.mlp.hook_post", t);
        table[t] = (weir_neurons_table){.hook = hook[t], .site = "post", .layer = t, .width = WIDTH, .n = WIDTH};
    }
    if (weir_neurons_new(&s, &o, table, TABLES, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    return s;
}

/* Rows of documents of 25 tokens each. */
static void begin_pass(weir_neurons *s, int pass)
{
    static int32_t id[ROWS];
    static int64_t doc[ROWS], pos[ROWS];
    weir_err err = {0};
    for (int64_t r = 0; r < ROWS; r++) {
        const int64_t row = (int64_t)pass * ROWS + r;
        id[r] = (int32_t)((uint64_t)row * 2654435761u % 50257);
        doc[r] = row / DOCUMENT;
        pos[r] = row % DOCUMENT;
    }
    const weir_neurons_rows_of rows = {ROWS, id, doc, pos, pos, NULL, NULL};
    if (weir_neurons_rows(s, &rows, false, &err))
        exit(1);
}

static double time_add(weir_neurons *s, int table, const float *x)
{
    const weir_neurons_values v = {.x = x, .stride = WIDTH, .whole = true};
    weir_err err = {0};
    const double from = cpu_now();
    if (weir_neurons_add(s, table, &v, &err))
        exit(1);
    return cpu_now() - from;
}

/* The kernel for moments alone, on values where they lie. */
static double time_moments(const weir_neurons *s, weir_sums *sums, const float *x)
{
    int32_t row[ROWS];
    for (int i = 0; i < ROWS; i++)
        row[i] = i;
    const double from = cpu_now();
    for (int64_t at = 0; at < WIDTH; at += WEIR_NEURONS_BLOCK)
        s->kernel->moments(sums + at, x + at, WIDTH, row, ROWS, WEIR_NEURONS_BLOCK);
    return cpu_now() - from;
}

static void print(const char *what, double seconds, double values, double cycle)
{
    printf("%-42s %6.2f ns a value %6.2f cycles\n", what, seconds / values * 1e9, seconds / values / cycle);
}

int main(int argc, char **argv)
{
    const int passes = argc > 1 ? atoi(argv[1]) : 50;
    const int64_t k = argc > 2 ? atoll(argv[2]) : 50;
    float *x = weir_alloc_aligned((size_t)ROWS * WIDTH * sizeof *x);
    weir_sums *sums = weir_calloc(WIDTH * TABLES, sizeof *sums);
    weir_neurons *all = new_search(3, k), *counts = new_search(0, k);
    double t_all = 0, t_counts = 0, t_moments = 0, last = 0;
    for (int p = 0; p < passes; p++) {
        begin_pass(all, p);
        begin_pass(counts, p);
        for (int t = 0; t < TABLES; t++) {
            make_values(x);
            const double one = time_add(all, t, x);
            make_values(x);
            t_counts += time_add(counts, t, x);
            make_values(x);
            t_moments += time_moments(all, sums + t * WIDTH, x);
            t_all += one;
            last += p == passes - 1 ? one : 0;
        }
    }
    const double values = (double)passes * ROWS * WIDTH * TABLES, cycle = cycle_seconds();
    printf("kernel %s, k = %lld, %d rows\n", all->kernel->name, (long long)k, passes * ROWS);
    print("moments", t_moments, values, cycle);
    print("counts, histogram, minimum and maximum", t_counts - t_moments, values, cycle);
    print("lists, both ends", t_all - t_counts, values, cycle);
    print("all", t_all, values, cycle);
    print("all, in the last pass", last, values / passes, cycle);
    weir_neurons_free(all);
    weir_neurons_free(counts);
    weir_free(sums);
    weir_free_aligned(x);
    return 0;
}

/* bench_lens: the lens over every layer, with all that can be asked of it, against its multiply-adds at the machine's peak.
 *
 *     bench_lens MODEL lens [ROUNDS]     one JSON object a line
 *     bench_lens MODEL parts [ROUNDS]    each result alone, on one thread, by processor time: for a machine that is not idle
 *     bench_lens MODEL table OUT         writes the rows and the results of one call, prints its seconds (best of several)
 *
 * 128 tokens; rows are the stream before the first block and after each; of each the 10 likeliest tokens, probability and rank
 * of the next one and of the final choice, entropy, KL to the final row and to the one before, JSD. `table` is to be paired
 * with usual_way_lens.py, which reads OUT. OUT: int64 R, N, C, T, k; then float32 (targets and ids: int32) rows [R,N,C], targets
 * [N,T], logprob [R,N,T], rank [R,N,T], entropy, kl_final, kl_prev, jsd [R,N], top_id, top_logprob [R,N,k].
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "bench/machine.h"

enum { N = 128, K = 10, T = 2, ROUNDS = 9, MOST_ROUNDS = 1000, BEST_OF = 5, MOST_ROWS = 64 };

static void check(weir_status status, const weir_err *err)
{
    char line[1024];
    if (status == WEIR_OK)
        return;
    fprintf(stderr, "bench_lens: %s\n", weir_err_line(err, line, sizeof line));
    exit(1);
}

static void *room(int64_t n)
{
    void *p = calloc((size_t)n, 4);
    if (!p) {
        fprintf(stderr, "bench_lens: out of memory\n");
        exit(1);
    }
    return p;
}

/* --- the stream, as a hook sees it */
typedef struct stream {
    const weir_model *m;
    int64_t c;
    int rows, threads;
    float *x[MOST_ROWS]; /* [N,C] */
} stream;

static weir_want wants(void *self, const weir_point *p)
{
    (void)self;
    return p->site == WEIR_SITE_RESID_POST || (p->site == WEIR_SITE_RESID_PRE && p->layer == 0) ? WEIR_READ : WEIR_NONE;
}

static weir_status keep(void *self, const weir_value *v, weir_err *err)
{
    stream *s = self;
    (void)err;
    memcpy(s->x[s->rows++], v->data, (size_t)(N * s->c) * sizeof(float));
    return WEIR_OK;
}

static const weir_hook_class keeper = {
    .struct_size = sizeof(weir_hook_class), .abi = WEIR_HOOK_ABI, .name = "keep", .wants = wants, .on_value = keep};

static void run_model(stream *s, const weir_model *m, int32_t *ids)
{
    const weir_model_info *info = weir_model_info_of(m);
    weir_err err = {0};
    weir_run_options o;
    weir_run *run;
    *s = (stream){.m = m, .c = info->C};
    for (int i = 0; i < info->L + 1 && i < MOST_ROWS; i++)
        s->x[i] = room(N * info->C);
    for (int i = 0; i < N; i++)
        ids[i] = (int32_t)((int64_t)i * 7919 % info->V);
    weir_run_options_init(&o);
    o.max_rows = N;
    check(weir_run_new(&run, m, &o, &err), &err);
    s->threads = weir_run_threads(run);
    check(weir_run_hook_object(run, &keeper, s, &err), &err);
    check(weir_run_forward(run, &(weir_seq){.ids = ids, .n = N, .slot = -1}, 1, 0, &err), &err);
    weir_run_free(run);
}

/* --- what is asked for */
typedef struct table {
    const weir_model *m;
    weir_lens *lens;
    int threads;
    double flops;
    weir_lens_row row[MOST_ROWS];
    int32_t target[N * T];
    weir_lens_what what;
    weir_lens_out out;
} table;

static void set_up(table *t, const stream *s, const int32_t *ids)
{
    const weir_model_info *info = weir_model_info_of(s->m);
    weir_err err = {0};
    for (int r = 0; r < s->rows; r++)
        t->row[r] = (weir_lens_row){s->x[r], r - 1, WEIR_LENS_RECOMPUTE};
    for (int i = 0; i < N; i++) {
        t->target[i * T] = i + 1 < N ? ids[i + 1] : -1;
        t->target[i * T + 1] = WEIR_LENS_FINAL_TOP;
    }
    t->what = (weir_lens_what){.row = t->row, .n_rows = s->rows, .n = N, .target = t->target, .n_targets = T, .k = K};
    const int64_t n = (int64_t)s->rows * N;
    t->out = (weir_lens_out){.logprob = room(n * T),
                             .rank = room(n * T),
                             .entropy = room(n),
                             .kl_final = room(n),
                             .kl_prev = room(n),
                             .jsd = room(n),
                             .top_id = room(n * K),
                             .top_logprob = room(n * K)};
    t->m = s->m;
    t->threads = s->threads;
    t->flops = 2.0 * (double)n * (double)info->C * (double)info->V;
    check(weir_lens_new(&t->lens, s->m, NULL, 0, &err), &err);
}

static double measure(const table *t, const weir_lens_out *out)
{
    weir_err err = {0};
    const double from = machine_now();
    check(weir_lens_measure(t->lens, &t->what, out, &err), &err);
    return machine_now() - from;
}

/* --- figures */
typedef struct figures {
    double share, seconds; /* medians */
} figures;

static figures rounds(const table *t, const weir_lens_out *out, int n)
{
    static double share[MOST_ROUNDS], seconds[MOST_ROUNDS];
    const int threads = t->threads;
    measure(t, out);
    for (int i = 0; i < n; i++) {
        const double before = machine_peak_flops(threads);
        seconds[i] = measure(t, out);
        const double after = machine_peak_flops(threads);
        share[i] = t->flops / seconds[i] / ((before + after) / 2);
    }
    return (figures){.share = machine_median(share, n), .seconds = machine_median(seconds, n)};
}

static void bench(const table *t, int n)
{
    const figures f = rounds(t, &t->out, n);
    printf("{\"name\": \"lens of all layers, all statistics\", \"ratio\": %.4f, \"floor\": 0.8, \"aim\": 0.85, \"at_most\": false, "
           "\"baseline\": \"its multiply-adds at the measured FMA peak\", \"value\": %.4g, \"unit\": \"s\"}\n",
           f.share, f.seconds);
}

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least processor time of n calls, as cycles of 32 multiply-adds' operations at peak (AVX-512 on one port, or two of AVX2) a
 * logit, without those of the product itself. */
static void part_alone(table *t, const char *name, const weir_lens_out *out, int n)
{
    double best = INFINITY, peak = 0;
    for (int i = 0; i < n; i++) {
        machine_task task = {0};
        double from = cpu_now();
        machine_fma(&task);
        const double rate = task.work / (cpu_now() - from);
        peak = rate > peak ? rate : peak;
        from = cpu_now();
        measure(t, out);
        const double seconds = cpu_now() - from;
        best = seconds < best ? seconds : best;
    }
    const double logits = (double)t->what.n_rows * N * (double)weir_model_info_of(t->m)->V;
    printf("%-24s %.3f of peak, %6.2f cycles a logit beside the product\n", name, t->flops / best / peak,
           (best - t->flops / peak) * peak / 32 / logits);
    fflush(stdout);
}

static void parts(table *t, int n)
{
    const weir_lens_out *o = &t->out;
    const struct {
        const char *name;
        weir_lens_out out;
    } part[] = {{"normaliser", {.log_z = o->entropy}},
                {"top 10", {.top_id = o->top_id, .top_logprob = o->top_logprob}},
                {"rank", {.rank = o->rank}},
                {"entropy", {.entropy = o->entropy}},
                {"KL to the final", {.kl_final = o->kl_final}},
                {"KL to the previous", {.kl_prev = o->kl_prev}},
                {"JSD", {.jsd = o->jsd}},
                {"all", *o}};
    weir_err err = {0};
    weir_lens_free(t->lens);
    check(weir_lens_new(&t->lens, t->m, NULL, 1, &err), &err);
    measure(t, o);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        part_alone(t, part[i].name, &part[i].out, n);
}

/* --- the table as a file */
static void put(FILE *f, const void *p, int64_t n, size_t size)
{
    if (fwrite(p, size, (size_t)n, f) != (size_t)n) {
        fprintf(stderr, "bench_lens: the table could not be written\n");
        exit(1);
    }
}

static void write_table(const table *t, const stream *s, const char *path)
{
    const int64_t r = s->rows, n = r * N, head[] = {r, N, s->c, T, K};
    double best = INFINITY;
    for (int i = 0; i < BEST_OF; i++) {
        const double seconds = measure(t, &t->out);
        best = seconds < best ? seconds : best;
    }
    FILE *f = fopen(path, "wb");
    if (!f) {
        fprintf(stderr, "bench_lens: %s cannot be written\n", path);
        exit(1);
    }
    put(f, head, 5, sizeof *head);
    for (int i = 0; i < r; i++)
        put(f, s->x[i], N * s->c, 4);
    put(f, t->target, N * T, 4);
    put(f, t->out.logprob, n * T, 4);
    put(f, t->out.rank, n * T, 4);
    const float *each[] = {t->out.entropy, t->out.kl_final, t->out.kl_prev, t->out.jsd};
    for (int i = 0; i < 4; i++)
        put(f, each[i], n, 4);
    put(f, t->out.top_id, n * K, 4);
    put(f, t->out.top_logprob, n * K, 4);
    if (fclose(f)) {
        fprintf(stderr, "bench_lens: %s cannot be written\n", path);
        exit(1);
    }
    printf("%.6f\n", best);
}

int main(int argc, char **argv)
{
    static table t;
    static stream s;
    static int32_t ids[N];
    weir_err err = {0};
    weir_model *m;
    if (argc < 3) {
        fprintf(stderr, "bench_lens MODEL lens [ROUNDS] | parts [ROUNDS] | table OUT\n");
        return 2;
    }
    check(weir_model_open(&m, argv[1], NULL, &err), &err);
    run_model(&s, m, ids);
    set_up(&t, &s, ids);
    int n = argc > 3 ? atoi(argv[3]) : ROUNDS;
    n = n < 1 ? 1 : n > MOST_ROUNDS ? MOST_ROUNDS : n;
    if (!strcmp(argv[2], "table") && argc > 3)
        write_table(&t, &s, argv[3]);
    else if (!strcmp(argv[2], "parts"))
        parts(&t, n);
    else
        bench(&t, n);
    return 0;
}

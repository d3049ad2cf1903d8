/* bench_kernels: how near the kernels come to what the machine can do, measured in the same run.
 *
 *     bench_kernels [--json] [--threads N]
 *
 * Every figure is a ratio: the median over rounds of (limit, this, limit), so that a neighbour on the same machine
 * slows both. The limits are a loop of independent fused multiply-adds in registers ("peak") and a loop that only reads
 * memory ("raw read"). Rounds in which the system took a processor away from us, or whose limits fell behind (a
 * neighbour of the virtual machine), are repeated for a while. With --json each line is {name, ratio, floor, aim,
 * at_most, baseline, value, unit}.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "bench/machine.h"
#include "kernels/backward.h"

enum { ROUNDS = 9, MOST_ROUNDS = 150 };

static int threads;
static bool json;
static const weir_kern *kern;

/* --- rounds */
typedef struct rounds {
    double ratio[MOST_ROUNDS], value[MOST_ROUNDS]; /* of every round */
    double calm_ratio[MOST_ROUNDS], calm_value[MOST_ROUNDS];
    int n, calm;
    double since;
} rounds;

static double best_peak;

/* Until there are enough calm rounds, or enough of any kind and no patience left. */
static bool more(rounds *r)
{
    if (r->n == 0)
        r->since = machine_now();
    return r->n < ROUNDS || (r->calm < ROUNDS && r->n < MOST_ROUNDS && machine_now() - r->since < 2.5);
}

static void add_round(rounds *r, double ratio, double value, bool calm)
{
    r->ratio[r->n] = ratio;
    r->value[r->n++] = value;
    if (calm) {
        r->calm_ratio[r->calm] = ratio;
        r->calm_value[r->calm++] = value;
    }
}

/* How often the system has taken a processor from one of our threads since the last call. */
static long interruptions(void)
{
    static long last;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    const long n = u.ru_nivcsw - last;
    last = u.ru_nivcsw;
    return n;
}

static bool calm_peaks(double before, double after)
{
    best_peak = before > best_peak ? before : best_peak;
    best_peak = after > best_peak ? after : best_peak;
    return !interruptions() && before > 0.95 * best_peak && after > 0.95 * best_peak;
}

/* Memory bandwidth of a virtual machine wanders for minutes: only the two reads are compared. */
static bool calm_reads(double before, double after)
{
    return !interruptions() && before < 1.15 * after && after < 1.15 * before;
}

static double median_ratio(rounds *r)
{
    return r->calm >= ROUNDS / 2 ? machine_median(r->calm_ratio, r->calm) : machine_median(r->ratio, r->n);
}
static double median_value(rounds *r)
{
    return r->calm >= ROUNDS / 2 ? machine_median(r->calm_value, r->calm) : machine_median(r->value, r->n);
}

/* --- reporting */
typedef struct figure {
    const char *name, *baseline, *unit;
    double ratio, value, floor, aim;
    bool at_most;
} figure;

static void report(figure f)
{
    const bool good = f.at_most ? f.ratio <= f.floor : f.ratio >= f.floor;
    if (json)
        printf("{\"name\": \"%s\", \"ratio\": %.4f, \"floor\": %g, \"aim\": %g, \"at_most\": %s, \"baseline\": \"%s\", "
               "\"value\": %.4g, \"unit\": \"%s\"}\n",
               f.name, f.ratio, f.floor, f.aim, f.at_most ? "true" : "false", f.baseline, f.value, f.unit);
    else
        printf("%-30s %6.3f of %-12s %s %.2f  aim %.2f  %s  (%.4g %s)\n", f.name, f.ratio, f.baseline,
               f.at_most ? "<=" : ">=", f.floor, f.aim, good ? "   ok" : "BELOW", f.value, f.unit);
    fflush(stdout);
}

/* --- data */
static float *floats(int64_t n)
{
    float *p = weir_alloc_aligned((size_t)n * sizeof *p);
    if (!p) {
        fprintf(stderr, "bench_kernels: out of memory\n");
        exit(1);
    }
    uint32_t s = 12345;
    for (int64_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        p[i] = (float)(s >> 8) * 0x1p-24f - 0.5f;
    }
    return p;
}

static weir_panel_pool *new_pool(void)
{
    weir_panel_pool *pool;
    if (weir_panel_pool_new(&pool, NULL))
        exit(1);
    return pool;
}

static weir_panels *pack(const void *w, weir_dtype type, int64_t n, int64_t k, bool k_major, weir_panel_pool *pool)
{
    const int64_t size = type == WEIR_F32 ? 4 : 2;
    const weir_tensor t = {.name = "w", .dtype = type, .data = w, .bytes = (size_t)(n * k * size), .rank = 2};
    const weir_wview v = {.t = &t, .n = n, .k = k, .k_major = k_major, .stride = k_major ? n : k, .pool = pool};
    weir_panels *p;
    weir_err err = {0};
    if (weir_panels_new(&p, &v, threads, &err)) {
        fprintf(stderr, "bench_kernels: %s\n", err.msg);
        exit(1);
    }
    return p;
}

static uint16_t *halves(const float *w, int64_t n, bool bf16)
{
    uint16_t *h = weir_alloc_aligned((size_t)n * sizeof *h);
    for (int64_t i = 0; h && i < n; i++) {
        uint32_t u;
        memcpy(&u, &w[i], 4);
        h[i] = bf16 ? (uint16_t)(u >> 16) : (uint16_t)((u >> 16 & 0x8000) | 0x3000 | (u >> 13 & 0x3ff));
    }
    return h;
}

/* --- GEMM as a share of peak */
static void bench_gemm(int64_t k, int64_t n, int64_t m, weir_dtype type, double floor, double aim)
{
    float *w = floats(k * n), *x = floats(m * k), *y = floats(m * n), *bias = floats(n);
    uint16_t *h = type == WEIR_F32 ? NULL : halves(w, k * n, type == WEIR_BF16);
    weir_panel_pool *pool = new_pool();
    weir_panels *p = pack(h ? (void *)h : (void *)w, type, n, k, false, pool);
    void *scratch = weir_alloc_aligned(weir_gemm_scratch(m, k, threads));
    weir_gemm g = {.m = m, .x = x, .ldx = k, .kn = k, .n_out = 1, .out = {{p, bias, y, n}}, .scratch = scratch};
    const double flop = 2.0 * (double)m * (double)n * (double)k;
    int reps = (int)(1.2e9 / flop) + 1;
    rounds r = {0};
    weir_gemm_run(kern, threads, &g);
    while (more(&r)) {
        const double before = machine_peak_flops(threads), t = machine_now();
        for (int i = 0; i < reps; i++)
            weir_gemm_run(kern, threads, &g);
        const double rate = flop * reps / (machine_now() - t), after = machine_peak_flops(threads);
        add_round(&r, rate / (0.5 * (before + after)), rate, calm_peaks(before, after));
    }
    char name[80];
    snprintf(name, sizeof name, "gemm_%s_%lldx%lld_m%lld", weir_dtype_name(type), (long long)k, (long long)n,
             (long long)m);
    report((figure){.name = name,
                    .baseline = "fma_peak",
                    .ratio = median_ratio(&r),
                    .value = median_value(&r) * 1e-9,
                    .unit = "GFLOP/s",
                    .floor = floor,
                    .aim = aim});
    weir_panels_free(p);
    weir_panel_pool_free(pool);
    weir_free_aligned(scratch);
    weir_free_aligned(w);
    weir_free_aligned(x);
    weir_free_aligned(y);
    weir_free_aligned(bias);
    weir_free_aligned(h);
}

/* --- one row: weights read, as a share of what a loop reads that does nothing else */
static void bench_gemv(int64_t k, int64_t n, weir_dtype type)
{
    const int64_t size = type == WEIR_F32 ? 4 : 2, copies = weir_dtype_bytes(WEIR_F32) * 60000000 / (k * n * size) + 1;
    float *w = floats(k * n), *x = floats(k), *y = floats(n);
    uint16_t *h = size == 2 ? halves(w, k * n, type == WEIR_BF16) : NULL;
    weir_panels **p = weir_calloc((size_t)copies, sizeof *p);
    void *scratch = weir_alloc_aligned(weir_gemm_scratch(1, k, threads));
    if (!p || !scratch)
        exit(1);
    weir_panel_pool *pool = new_pool();
    for (int64_t i = 0; i < copies; i++)
        p[i] = pack(h ? (void *)h : (void *)w, type, n, k, false, pool);
    rounds r = {0};
    while (more(&r)) {
        const double before = machine_read_bandwidth(threads), t = machine_now();
        for (int64_t i = 0; i < copies; i++) {
            weir_gemm g = {
                .m = 1, .x = x, .ldx = k, .kn = k, .n_out = 1, .out = {{p[i], NULL, y, n}}, .scratch = scratch};
            weir_gemm_run(kern, threads, &g);
        }
        const double rate = (double)(k * n * size * copies) / (machine_now() - t),
                     after = machine_read_bandwidth(threads);
        add_round(&r, rate / (0.5 * (before + after)), rate, calm_reads(before, after));
    }
    char name[80];
    snprintf(name, sizeof name, "gemv_%s_%lldx%lld", weir_dtype_name(type), (long long)k, (long long)n);
    report((figure){.name = name,
                    .baseline = "raw_read",
                    .ratio = median_ratio(&r),
                    .value = median_value(&r) * 1e-9,
                    .unit = "GB/s",
                    .floor = 0.85,
                    .aim = 0.95});
    for (int64_t i = 0; i < copies; i++)
        weir_panels_free(p[i]);
    weir_free(p);
    weir_panel_pool_free(pool);
    weir_free_aligned(w);
    weir_free_aligned(x);
    weir_free_aligned(y);
    weir_free_aligned(h);
    weir_free_aligned(scratch);
}

/* --- attention: multiply-adds of visible keys as a share of peak, storing of the keys, softmax and all included */
static void bench_attention(int64_t heads, int64_t kv_heads, int64_t d, int64_t n, const char *name)
{
    float *q = floats(n * heads * d), *z = floats(n * heads * d), *kv = floats(n * kv_heads * d);
    float *kp = floats((int64_t)weir_attn_k_floats(kv_heads, d, n)),
          *v = floats((int64_t)weir_attn_v_floats(kv_heads, d, n));
    weir_attn_seq s = {.n = n, .cap = n, .kp = kp, .v = v};
    weir_attn a = {
        .heads = heads, .kv_heads = kv_heads, .d = d, .scale = 0.125f, .seq = &s, .n_seq = 1, .q = q, .z = z, .s = n};
    a.scratch = weir_alloc_aligned(weir_attn_scratch(n, d, threads));
    rounds r = {0};
    while (more(&r)) {
        const double before = machine_peak_flops(threads), t = machine_now();
        weir_attn_store(kern, threads, &a, kv, kv);
        weir_attn_fused(kern, threads, &a);
        const double took = machine_now() - t, after = machine_peak_flops(threads);
        add_round(&r, 2.0 * (double)(heads * d * n * (n + 1)) / took / (0.5 * (before + after)), took,
                  calm_peaks(before, after));
    }
    report((figure){.name = name,
                    .baseline = "fma_peak",
                    .ratio = median_ratio(&r),
                    .value = median_value(&r) * 1e3,
                    .unit = "ms",
                    .floor = 0.50,
                    .aim = 0.65});
    weir_free_aligned(q);
    weir_free_aligned(z);
    weir_free_aligned(kv);
    weir_free_aligned(kp);
    weir_free_aligned(v);
    weir_free_aligned(a.scratch);
}

/* --- attention backward, as a multiple of the forward over the same rows: five products of the same size instead of
 * two */
static void bench_attention_backward(int64_t heads, int64_t kv_heads, int64_t d, int64_t n, const char *name)
{
    float *q = floats(n * heads * d), *dz = floats(n * heads * d), *dq = floats(n * heads * d),
          *kv = floats(n * kv_heads * d);
    float *dk = floats(n * kv_heads * d), *dv = floats(n * kv_heads * d);
    float *kp = floats((int64_t)weir_attn_k_floats(kv_heads, d, n)),
          *v = floats((int64_t)weir_attn_v_floats(kv_heads, d, n));
    weir_attn_seq s = {.n = n, .cap = n, .kp = kp, .v = v};
    weir_attn a = {
        .heads = heads, .kv_heads = kv_heads, .d = d, .scale = 0.125f, .seq = &s, .n_seq = 1, .q = q, .z = dq, .s = n};
    weir_attn_back b = {.a = &a, .dz = dz, .dq = dq, .dk = dk, .dv = dv};
    a.scratch = weir_alloc_aligned(weir_attn_scratch(n, d, threads));
    b.scratch = weir_alloc_aligned(weir_attn_back_scratch(n, d, heads / kv_heads, threads));
    rounds r = {0};
    weir_attn_backward(kern, threads, &b);
    while (more(&r)) {
        const double t0 = machine_now();
        weir_attn_store(kern, threads, &a, kv, kv);
        weir_attn_fused(kern, threads, &a);
        const double t1 = machine_now();
        weir_attn_backward(kern, threads, &b);
        const double t2 = machine_now();
        weir_attn_store(kern, threads, &a, kv, kv);
        weir_attn_fused(kern, threads, &a);
        const double before = t1 - t0, after = machine_now() - t2;
        add_round(&r, 2 * (t2 - t1) / (before + after), t2 - t1, calm_reads(before, after));
    }
    report((figure){.name = name,
                    .baseline = "its forward",
                    .ratio = median_ratio(&r),
                    .value = median_value(&r) * 1e3,
                    .unit = "ms",
                    .floor = 3.0,
                    .aim = 2.5,
                    .at_most = true});
    float *all[] = {q, dz, dq, kv, dk, dv, kp, v, a.scratch, b.scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        weir_free_aligned(all[i]);
}

/* --- packing: bytes packed, as a share of a read that does nothing else */
static void bench_pack(int64_t k, int64_t n, weir_dtype type, bool k_major)
{
    const int64_t size = type == WEIR_F32 ? 4 : 2;
    float *w = floats(k * n);
    uint16_t *h = size == 2 ? halves(w, k * n, type == WEIR_BF16) : NULL;
    rounds r = {0};
    weir_panels_free(pack(h ? (void *)h : (void *)w, type, n, k, k_major, NULL));
    while (more(&r)) {
        const double before = machine_read_bandwidth(threads), t = machine_now();
        weir_panels *p = pack(h ? (void *)h : (void *)w, type, n, k, k_major, NULL);
        const double rate = (double)(k * n * size) / (machine_now() - t), after = machine_read_bandwidth(threads);
        add_round(&r, rate / (0.5 * (before + after)), rate, calm_reads(before, after));
        weir_panels_free(p);
    }
    char name[80];
    snprintf(name, sizeof name, "pack_%s_%s_%lldx%lld", weir_dtype_name(type), k_major ? "kn" : "nk", (long long)k,
             (long long)n);
    report((figure){.name = name,
                    .baseline = "raw_read",
                    .ratio = median_ratio(&r),
                    .value = median_value(&r) * 1e-9,
                    .unit = "GB/s",
                    .floor = 0.05,
                    .aim = 0.2});
    weir_free_aligned(w);
    weir_free_aligned(h);
}

int main(int argc, char **argv)
{
    weir_err err = {0};
    threads = weir_processors();
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            json = true;
        } else if (!strcmp(argv[i], "--threads") && i + 1 < argc) {
            threads = atoi(argv[++i]);
        } else {
            fprintf(stderr, "usage: bench_kernels [--json] [--threads N]\n");
            return 2;
        }
    }
    threads = threads > 0 ? threads : 1;
    if (weir_kern_pick(&kern, NULL, &err)) {
        fprintf(stderr, "bench_kernels: %s\n", err.msg);
        return 1;
    }
    if (!strcmp(weir_kern_name(kern), "ref")) {
        fprintf(stderr, "bench_kernels: this machine runs the reference table only, which is not made for speed\n");
        return 0;
    }
    rounds r = {0}; /* the machine itself */
    while (more(&r)) {
        const double before = machine_peak_flops(threads), read = machine_read_bandwidth(threads);
        add_round(&r, read, before, calm_peaks(before, machine_peak_flops(threads)));
    }
    if (!json)
        printf("table %s, %d threads, peak %.1f GFLOP/s, raw read %.1f GB/s\n", weir_kern_name(kern), threads,
               median_value(&r) * 1e-9, median_ratio(&r) * 1e-9);
    static const int64_t gpt2[][2] = {{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}};
    static const int64_t smol[][2] = {{576, 1536}, {1536, 576}, {576, 576}, {576, 192}};
    for (int i = 0; i < 4; i++) {
        bench_gemm(gpt2[i][0], gpt2[i][1], 128, WEIR_F32, 0.88, 0.93);
        bench_gemm(gpt2[i][0], gpt2[i][1], 512, WEIR_F32, 0.88, 0.93);
    }
    for (int i = 0; i < 4; i++) {
        bench_gemm(smol[i][0], smol[i][1], 128, WEIR_F32, 0.82, 0.90);
        bench_gemm(smol[i][0], smol[i][1], 512, WEIR_F32, 0.82, 0.90);
    }
    bench_gemm(768, 3072, 512, WEIR_BF16, 0.85, 0.90);
    bench_gemm(768, 3072, 512, WEIR_F16, 0.85, 0.90);
    bench_gemm(768, 50257, 128, WEIR_F32, 0.85, 0.90);
    bench_gemm(768, 3072, 4, WEIR_F32, 0.30, 0.46);
    bench_gemm(768, 3072, 16, WEIR_F32, 0.70, 0.80);
    bench_gemv(768, 768, WEIR_F32);
    bench_gemv(768, 3072, WEIR_F32);
    bench_gemv(3072, 768, WEIR_F32);
    bench_gemv(576, 1536, WEIR_F32);
    bench_gemv(768, 50257, WEIR_F32);
    bench_gemv(768, 3072, WEIR_BF16);
    bench_gemv(768, 3072, WEIR_F16);
    bench_attention(12, 12, 64, 512, "attention_gpt2_t512");
    bench_attention(9, 3, 64, 512, "attention_smollm2_t512");
    bench_attention_backward(12, 12, 64, 512, "attention_back_gpt2_t512");
    bench_attention_backward(9, 3, 64, 512, "attention_back_smollm2_t512");
    bench_pack(3072, 3072, WEIR_F32, true);
    bench_pack(3072, 3072, WEIR_F32, false);
    bench_pack(3072, 3072, WEIR_BF16, false);
    return 0;
}

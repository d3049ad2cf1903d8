/* The whole forward pass against the machine: prefill against the multiply-adds at peak, decode against the raw read of memory,
 * opening against the clock. One JSON object a line on stdout; tests/bench/run collects them.
 *
 *     bench_run MODEL open | prefill | decode | seconds
 *     bench_run - peak
 *
 * `peak` prints the machine's floating-point operations a second, all processors at work. `seconds` prints the median time of one prefill pass alone: to be paired with the same program of another build. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

#include "bench/machine.h"

enum { PREFILL = 512, PAIRS = 9, DECODE_FROM = 64, DECODE_STEPS = 41 };

static void die(const weir_err *err)
{
    char line[1024];
    fprintf(stderr, "bench_run: %s\n", weir_err_line(err, line, sizeof line));
    exit(1);
}

static void check(weir_status status, const weir_err *err)
{
    if (status != WEIR_OK)
        die(err);
}

static void report(const char *name, double ratio, double floor, double aim, bool at_most, const char *baseline, double value, const char *unit)
{
    printf("{\"name\": \"%s\", \"ratio\": %.4f, \"floor\": %g, \"aim\": %g, \"at_most\": %s, \"baseline\": \"%s\", \"value\": %.4g, \"unit\": "
           "\"%s\"}\n",
           name, ratio, floor, aim, at_most ? "true" : "false", baseline, value, unit);
    fflush(stdout);
}

/* Multiply-adds of one pass: block matrices for every row, causal attention, and the head for `logit_rows` rows. */
static double flops(const weir_model_info *i, double rows, double logit_rows)
{
    double block = 2.0 * (double)i->C * (double)(i->H * i->D) + 2.0 * (double)i->C * (double)(i->K * i->D) +
                   (i->gated ? 3.0 : 2.0) * (double)i->C * (double)i->F;
    double attention = 2.0 * (double)(i->H * i->D) * rows / 2;
    return 2 * rows * (double)i->L * (block + attention) + 2 * logit_rows * (double)i->C * (double)i->V;
}

static int32_t *some_ids(const weir_model_info *i, int64_t n)
{
    int32_t *ids = malloc((size_t)n * sizeof *ids);
    for (int64_t k = 0; k < n; k++)
        ids[k] = (int32_t)(k * 7919 % i->V);
    return ids;
}

static weir_run *open_run(const weir_model *m, int slots)
{
    weir_err err = {0};
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = PREFILL;
    o.max_len = PREFILL;
    o.slots = slots;
    weir_run *run;
    check(weir_run_new(&run, m, &o, &err), &err);
    return run;
}

static double one_prefill(weir_run *run, const int32_t *ids, float *logits, int64_t logit_rows)
{
    weir_err err = {0};
    weir_seq s = {.ids = ids, .n = PREFILL, .slot = -1};
    double t = machine_now();
    check(weir_run_forward(run, &s, 1, WEIR_FINAL, &err), &err);
    check(weir_run_logits(run, PREFILL - logit_rows, logit_rows, logits, &err), &err);
    return machine_now() - t;
}

static void bench_prefill(const weir_model *m)
{
    const weir_model_info *i = weir_model_info_of(m);
    weir_run *run = open_run(m, 0);
    int threads = weir_run_threads(run);
    int32_t *ids = some_ids(i, PREFILL);
    float *logits = malloc((size_t)PREFILL * (size_t)i->V * sizeof *logits);
    memset(logits, 1, (size_t)PREFILL * (size_t)i->V * sizeof *logits);
    for (int all = 0; all < 2; all++) {
        int64_t rows = all ? PREFILL : 1;
        double share[PAIRS], speed[PAIRS];
        one_prefill(run, ids, logits, rows);
        for (int p = 0; p < PAIRS; p++) {
            double before = machine_peak_flops(threads);
            double seconds = one_prefill(run, ids, logits, rows);
            double after = machine_peak_flops(threads);
            share[p] = flops(i, PREFILL, (double)rows) / seconds / ((before + after) / 2);
            speed[p] = PREFILL / seconds;
        }
        report(all ? "prefill T=512, all logits" : "prefill T=512, last logits", machine_median(share, PAIRS), 0.80, 0.90, false,
               "multiply-adds at the measured FMA peak", machine_median(speed, PAIRS), "tokens/s");
    }
    free(logits);
    free(ids);
    weir_run_free(run);
}

static void bench_decode(const weir_model *m)
{
    weir_err err = {0};
    const weir_model_info *i = weir_model_info_of(m);
    weir_run *run = open_run(m, 1);
    int32_t *ids = some_ids(i, DECODE_FROM + DECODE_STEPS + 1);
    float *logits = malloc((size_t)i->V * sizeof *logits);
    weir_seq s = {.ids = ids, .n = DECODE_FROM, .slot = 0};
    check(weir_run_forward(run, &s, 1, WEIR_FINAL, &err), &err);
    check(weir_run_logits(run, DECODE_FROM - 1, 1, logits, &err), &err);
    double bytes = (double)weir_model_memory_of(m).panels;
    double share[DECODE_STEPS], speed[DECODE_STEPS];
    for (int k = 0; k < DECODE_STEPS; k++) {
        weir_seq one = {.ids = ids + DECODE_FROM + k, .n = 1, .slot = 0};
        double t = machine_now();
        check(weir_run_forward(run, &one, 1, WEIR_FINAL, &err), &err);
        check(weir_run_logits(run, 0, 1, logits, &err), &err);
        double seconds = machine_now() - t;
        share[k] = bytes / seconds / machine_read_bandwidth(weir_run_threads(run));
        speed[k] = 1 / seconds;
    }
    report("decode, weights read", machine_median(share, DECODE_STEPS), 0.85, 0.95, false, "raw read of memory, same threads",
           machine_median(speed, DECODE_STEPS), "tokens/s");
    free(logits);
    free(ids);
    weir_run_free(run);
}

static void bench_open(const char *path)
{
    double seconds[PAIRS];
    for (int p = 0; p < PAIRS; p++) {
        weir_err err = {0};
        weir_model *m;
        weir_tokenizer *tok;
        double t = machine_now();
        check(weir_model_open(&m, path, NULL, &err), &err);
        check(weir_tokenizer_open(&tok, path, NULL, &err), &err);
        seconds[p] = machine_now() - t;
        weir_tokenizer_free(tok);
        weir_model_free(m);
    }
    double median = machine_median(seconds, PAIRS);
    report("open GPT-2 small and its tokenizer", median / 0.060, 1, 0.5, true, "60 ms", median * 1e3, "ms");
}

static void print_seconds(const weir_model *m)
{
    weir_run *run = open_run(m, 0);
    const weir_model_info *i = weir_model_info_of(m);
    int32_t *ids = some_ids(i, PREFILL);
    float *logits = malloc((size_t)i->V * sizeof *logits);
    double seconds[PAIRS];
    one_prefill(run, ids, logits, 1);
    for (int p = 0; p < PAIRS; p++)
        seconds[p] = one_prefill(run, ids, logits, 1);
    printf("%.6f\n", machine_median(seconds, PAIRS));
    free(logits);
    free(ids);
    weir_run_free(run);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_run MODEL open|prefill|decode|seconds, or bench_run - peak\n");
        return 2;
    }
    if (strcmp(argv[2], "peak") == 0) {
        double peaks[PAIRS];
        for (int p = 0; p < PAIRS; p++)
            peaks[p] = machine_peak_flops((int)sysconf(_SC_NPROCESSORS_ONLN));
        printf("%.6g\n", machine_median(peaks, PAIRS));
        return 0;
    }
    if (strcmp(argv[2], "open") == 0) {
        bench_open(argv[1]);
        return 0;
    }
    weir_err err = {0};
    weir_model *m;
    check(weir_model_open(&m, argv[1], NULL, &err), &err);
    if (strcmp(argv[2], "prefill") == 0)
        bench_prefill(m);
    else if (strcmp(argv[2], "decode") == 0)
        bench_decode(m);
    else
        print_seconds(m);
    weir_model_free(m);
    return 0;
}

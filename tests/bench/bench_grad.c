/* Forward and backward to the embedding against a forward with all logits, on the same rows: in turn, median of the ratios.
 *
 *     bench_grad MODEL          one JSON object a line on stdout; tests/bench/run collects them
 *     bench_grad MODEL parts    where the time goes, for people
 */
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "bench/machine.h"

enum { ROWS = 512, PAIRS = 9 };

static void check(weir_status status, const weir_err *err)
{
    char line[1024];
    if (status == WEIR_OK)
        return;
    fprintf(stderr, "bench_grad: %s\n", weir_err_line(err, line, sizeof line));
    exit(1);
}

typedef struct bench {
    weir_model *model;
    const weir_model_info *info;
    int32_t *ids;
    weir_run *plain, *taped;
    weir_grad *grad;
    weir_loss_term *term;
    float *logits, *d;
} bench;

static weir_run *open_run(const weir_model *m, bool backward)
{
    weir_err err = {0};
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = ROWS;
    o.max_len = ROWS;
    o.backward = backward;
    weir_run *run;
    check(weir_run_new(&run, m, &o, &err), &err);
    return run;
}

/* The loss is the text's own: the next token at each row. */
static void begin(bench *b, const char *path)
{
    weir_err err = {0};
    check(weir_model_open(&b->model, path, NULL, &err), &err);
    b->info = weir_model_info_of(b->model);
    b->ids = malloc((ROWS + 1) * sizeof *b->ids);
    b->term = malloc(ROWS * sizeof *b->term);
    b->logits = malloc((size_t)(ROWS * b->info->V) * sizeof *b->logits);
    b->d = malloc((size_t)(ROWS * b->info->C) * sizeof *b->d);
    memset(b->logits, 1, (size_t)(ROWS * b->info->V) * sizeof *b->logits);
    for (int64_t k = 0; k <= ROWS; k++)
        b->ids[k] = (int32_t)(k * 7919 % b->info->V);
    for (int64_t k = 0; k < ROWS; k++)
        b->term[k] = (weir_loss_term){.kind = WEIR_LOSS_NLL, .row = k, .token = b->ids[k + 1], .weight = 1.0F / ROWS};
    b->plain = open_run(b->model, false);
    b->taped = open_run(b->model, true);
    check(weir_grad_new(&b->grad, b->taped, NULL, &err), &err);
    check(weir_grad_to(b->grad, weir_model_point(b->model, "hook_embed"), b->d, &err), &err);
}

static double forward(const bench *b, weir_run *run, bool logits)
{
    weir_err err = {0};
    const weir_seq s = {.ids = b->ids, .n = ROWS, .slot = -1};
    const double t = machine_now();
    check(weir_run_forward(run, &s, 1, WEIR_FINAL, &err), &err);
    if (logits)
        check(weir_run_logits(run, 0, ROWS, b->logits, &err), &err);
    return machine_now() - t;
}

static double backward(const bench *b, int64_t terms)
{
    weir_err err = {0};
    double loss;
    const double t = machine_now();
    check(weir_grad_backward(b->grad, b->term + ROWS - terms, terms, NULL, 0, &loss, NULL, &err), &err);
    return machine_now() - t;
}

static void ratio(const bench *b)
{
    double ratios[PAIRS], seconds[PAIRS];
    forward(b, b->plain, true);
    forward(b, b->taped, false);
    backward(b, ROWS);
    for (int p = 0; p < PAIRS; p++) {
        const double before = forward(b, b->plain, true);
        seconds[p] = forward(b, b->taped, false);
        seconds[p] += backward(b, ROWS);
        const double after = forward(b, b->plain, true);
        ratios[p] = seconds[p] / ((before + after) / 2);
    }
    printf("{\"name\": \"forward and backward to the embedding, T=512\", \"ratio\": %.4f, \"floor\": 2.4, \"aim\": 2.2, \"at_most\": true, "
           "\"baseline\": \"a forward with all logits\", \"value\": %.4g, \"unit\": \"tokens/s\"}\n",
           machine_median(ratios, PAIRS), ROWS / machine_median(seconds, PAIRS));
}

static void parts(const bench *b)
{
    enum { KINDS = 5 };
    static const char *const names[KINDS] = {"forward, all logits", "forward", "forward with a tape", "backward, all rows",
                                             "backward, last row"};
    double t[KINDS][PAIRS];
    for (int p = -1; p < PAIRS; p++) {
        const double one[KINDS] = {forward(b, b->plain, true), forward(b, b->plain, false), forward(b, b->taped, false),
                                   backward(b, ROWS), backward(b, 1)};
        for (int k = 0; k < KINDS && p >= 0; k++)
            t[k][p] = one[k];
    }
    for (int k = 0; k < KINDS; k++)
        printf("%-24s %8.2f ms\n", names[k], 1e3 * machine_median(t[k], PAIRS));
}

int main(int argc, char **argv)
{
    bench b = {0};
    if (argc < 2)
        return 2;
    begin(&b, argv[1]);
    if (argc > 2 && strcmp(argv[2], "parts") == 0)
        parts(&b);
    else
        ratio(&b);
    weir_grad_free(b.grad);
    weir_run_free(b.plain);
    weir_run_free(b.taped);
    weir_model_free(b.model);
    free(b.ids);
    free(b.term);
    free(b.logits);
    free(b.d);
    return 0;
}

/* weir diff: two dumps, hook by hook; or two results of neuron-top, neuron by neuron (neurons/diff.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/say.h"
#include "neurons/diff.h"
#include "cli/printable.h"

enum { ROWS = 256, FLOATS = 1 << 20 }; /* read at a time, at most */

typedef struct diff_args {
    weir_out_args out;
    double tolerance;
} diff_args;

static const weir_opt own_opts[] = {
    {"tolerance", 'e', NULL, WEIR_OPT_REAL, "X", 0, 0, "0",
     "largest relative error that passes, of dumps: the largest |a - b| of a hook over its largest |a|. 0 asks for the "
     "same bits",
     offsetof(diff_args, tolerance)},
};
static const weir_opt_group own_group = {"Comparison", own_opts, sizeof own_opts / sizeof *own_opts};

static const weir_opt_use options[] = {{&own_group, 0}, {&weir_opts_out, offsetof(diff_args, out)}, {NULL, 0}};

/* What the comparison of one hook found. */
typedef struct hook_diff {
    const char *name;
    int64_t rows, width;
    int64_t differ; /* values whose bits differ; two NaN count as equal */
    double max_abs; /* largest |a - b|; infinite where only one of them is NaN */
    double max_a;   /* largest finite |a| */
    bool pass;
} hook_diff;

typedef struct diff {
    const weir_cli *cli;
    const diff_args *a;
    const char *path[2];
    weir_dump_reader *r[2];
    hook_diff *hook;
    int n, only[2]; /* hooks in both; in one alone */
    int64_t rows;
    int64_t ids_differ; /* first row with another token, or -1 */
    bool same;
} diff;

static double relative(const hook_diff *h)
{
    return h->max_abs == 0 ? 0 : h->max_abs / h->max_a;
}

static void compare_values(hook_diff *h, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double size = fabs((double)a[i]);
        if (size > h->max_a && size < INFINITY)
            h->max_a = size;
        if (memcmp(&a[i], &b[i], sizeof a[i]) == 0 || (isnan(a[i]) && isnan(b[i])))
            continue;
        h->differ++;
        double d = a[i] == b[i] ? 0 : fabs((double)a[i] - (double)b[i]); /* 0 and -0 */
        if (isnan(d))
            d = INFINITY;
        h->max_abs = d > h->max_abs ? d : h->max_abs;
    }
}

static weir_status compare_hook(diff *d, int ia, int ib, hook_diff *h, weir_err *err)
{
    const weir_dump_hook *a = weir_dump_hook_at(d->r[0], ia), *b = weir_dump_hook_at(d->r[1], ib);
    *h = (hook_diff){.name = a->name, .rows = a->rows, .width = a->width};
    if (a->width != b->width || a->rows != b->rows)
        return weir_fail(err, WEIR_E_SHAPE, "%s is %lld x %lld in one file and %lld x %lld in the other", a->name,
                         (long long)a->rows, (long long)a->width, (long long)b->rows, (long long)b->width);
    int64_t rows = FLOATS / a->width < 1 ? 1 : FLOATS / a->width > ROWS ? ROWS : FLOATS / a->width;
    float *buf = malloc(2 * sizeof(float) * (size_t)rows * (size_t)a->width);
    if (!buf)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    float *other = buf + rows * a->width;
    weir_status s = WEIR_OK;
    for (int64_t row = 0; row < a->rows && s == WEIR_OK; row += rows) {
        int64_t n = a->rows - row < rows ? a->rows - row : rows;
        s = weir_dump_read(d->r[0], ia, row, n, buf, err);
        if (s == WEIR_OK)
            s = weir_dump_read(d->r[1], ib, row, n, other, err);
        if (s == WEIR_OK)
            compare_values(h, buf, other, n * a->width);
    }
    free(buf);
    h->pass = d->a->tolerance > 0 ? relative(h) <= d->a->tolerance : h->differ == 0;
    return s;
}

/* Row of the first token that differs, or -1. */
static weir_status compare_ids(diff *d, weir_err *err)
{
    int32_t id[2][ROWS];
    d->ids_differ = -1;
    for (int64_t row = 0; row < d->rows; row += ROWS) {
        int64_t n = d->rows - row < ROWS ? d->rows - row : ROWS;
        for (int k = 0; k < 2; k++)
            WEIR_TRY(weir_dump_read_ids(d->r[k], row, n, id[k], err));
        for (int64_t i = 0; i < n; i++)
            if (id[0][i] != id[1][i]) {
                d->ids_differ = row + i;
                return WEIR_OK;
            }
    }
    return WEIR_OK;
}

/* Names in file k alone are told and counted: a hook that was not compared is not the same. */
static void report_missing(diff *d, int k)
{
    for (int i = 0; i < weir_dump_n_hooks(d->r[k]); i++) {
        const char *name = weir_dump_hook_at(d->r[k], i)->name;
        if (weir_dump_find(d->r[1 - k], name) >= 0)
            continue;
        d->only[k]++;
        weir_cli_note(d->cli, "%s is in %s alone", name, d->path[k]);
    }
}

static weir_status compare_hooks(diff *d, weir_err *err)
{
    d->hook = calloc((size_t)weir_dump_n_hooks(d->r[0]) + 1, sizeof *d->hook);
    if (!d->hook)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    d->same = true;
    for (int i = 0; i < weir_dump_n_hooks(d->r[0]); i++) {
        int other = weir_dump_find(d->r[1], weir_dump_hook_at(d->r[0], i)->name);
        if (other < 0)
            continue;
        hook_diff *h = &d->hook[d->n++];
        WEIR_TRY(compare_hook(d, i, other, h, err));
        d->same = d->same && h->pass;
    }
    report_missing(d, 0);
    report_missing(d, 1);
    d->same = d->same && d->only[0] + d->only[1] == 0;
    return WEIR_OK;
}

static void print_table(const diff *d)
{
    int wide = 4;
    for (int i = 0; i < d->n; i++)
        wide = (int)strlen(d->hook[i].name) > wide ? (int)strlen(d->hook[i].name) : wide;
    printf("%-*s %10s %8s %12s %12s %12s\n", wide, "hook", "rows", "width", "max error", "relative", "values");
    for (int i = 0; i < d->n; i++) {
        const hook_diff *h = &d->hook[i];
        weir_put_printable(stdout, h->name, wide);
        printf(" %10lld %8lld %12.4g %12.4g %12lld%s\n", (long long)h->rows, (long long)h->width, h->max_abs, relative(h),
               (long long)h->differ, h->pass ? "" : "  differs");
    }
}

static void print_json(const diff *d)
{
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_bool(&w, "same", d->same);
    weir_jsonw_key_double(&w, "tolerance", d->a->tolerance);
    weir_jsonw_key_int(&w, "rows", d->rows);
    weir_jsonw_key_int(&w, "only_in_a", d->only[0]);
    weir_jsonw_key_int(&w, "only_in_b", d->only[1]);
    weir_jsonw_key(&w, "hooks");
    weir_jsonw_object(&w);
    for (int i = 0; i < d->n; i++) {
        const hook_diff *h = &d->hook[i];
        weir_jsonw_key(&w, h->name);
        weir_jsonw_object(&w);
        weir_jsonw_key_int(&w, "width", h->width);
        weir_jsonw_key(&w, "max_error"); /* null: infinite */
        weir_jsonw_double(&w, h->max_abs);
        weir_jsonw_key_double(&w, "relative", relative(h));
        weir_jsonw_key_int(&w, "values_that_differ", h->differ);
        weir_jsonw_key_bool(&w, "same", h->pass);
        weir_jsonw_end(&w);
    }
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    putchar('\n');
}

static int compare(diff *d)
{
    weir_err err = {0};
    for (int k = 0; k < 2; k++) {
        if (weir_dump_open(&d->r[k], d->path[k], &err) != WEIR_OK)
            return weir_cli_fail(d->cli, &err);
        const char *complete = weir_dump_attr(d->r[k], "complete");
        if (complete && strcmp(complete, "0") == 0)
            weir_cli_note(d->cli, "%s is incomplete: its run did not end", d->path[k]);
    }
    d->rows = weir_dump_rows(d->r[0]);
    int64_t other = weir_dump_rows(d->r[1]);
    if (d->rows != other) {
        weir_cli_error(d->cli, "%s has %lld rows, %s has %lld: not the same text", d->path[0], (long long)d->rows,
                       d->path[1], (long long)other);
        return WEIR_EXIT_FALSE;
    }
    if (compare_ids(d, &err) != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    if (d->ids_differ >= 0) {
        weir_cli_error(d->cli, "%s and %s differ in token ids, first in row %lld: not the same text", d->path[0],
                       d->path[1], (long long)d->ids_differ);
        return WEIR_EXIT_FALSE;
    }
    if (compare_hooks(d, &err) != WEIR_OK) {
        weir_cli_fail(d->cli, &err);
        return err.code == WEIR_E_SHAPE ? WEIR_EXIT_FALSE : WEIR_EXIT_FAILED;
    }
    d->a->out.json ? print_json(d) : print_table(d);
    return d->same ? WEIR_EXIT_OK : WEIR_EXIT_FALSE;
}

/* Both are results (true), or neither is. */
static int look_for_results(diff *d, bool *results)
{
    weir_err err = {0};
    bool is[2] = {weir_neurons_is_file(d->path[0]), weir_neurons_is_file(d->path[1])};
    *results = is[0] && is[1];
    if (*results && weir_cli_given(d->cli, "tolerance"))
        return weir_cli_usage(d->cli, "--tolerance is about dumps: results of neuron-top are the same or they are not");
    if (is[0] == is[1])
        return WEIR_EXIT_OK;
    if (weir_dump_open(&d->r[0], d->path[is[0]], &err) != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    return weir_cli_error(d->cli, "%s is a result of neuron-top, and %s is a dump: two of a kind are compared",
                          d->path[is[1]], d->path[is[0]]);
}

static int run(weir_cli *cli, void *args)
{
    diff d = {.cli = cli, .a = args};
    bool results;
    cli->quiet = d.a->out.quiet;
    if (cli->n_operands != 2)
        return weir_cli_usage(cli, "two files are compared, %d given", cli->n_operands);
    d.path[0] = cli->operand[0];
    d.path[1] = cli->operand[1];
    int code = look_for_results(&d, &results);
    if (code == WEIR_EXIT_OK)
        code = results ? weir_results_diff(cli, d.path, d.a->out.json) : compare(&d);
    free(d.hook);
    weir_dump_close(d.r[0]);
    weir_dump_close(d.r[1]);
    return code;
}

const weir_tool weir_tool_diff = {
    .name = "diff",
    .summary = "compare two dumps, hook by hook, or two results of neuron-top",
    .operands = "A.h5 B.h5",
    .about = "Compares the token ids of two dumps, then each hook that both hold: its largest absolute error, that "
             "error over the largest magnitude in A, and how many values differ. Exit status 0: the same within the "
             "tolerance; 3: not, or other tokens, rows, widths or hooks; 1: a file cannot be read. NaN equals NaN.\n"
             "Of two results of neuron-top: what they say of themselves differently (model, text, options, counts), "
             "then for each hook point how many neurons differ in their lists, counts, moments, histogram, samples, "
             "tokens from the weights and what is kept of named neurons, which ones, and the largest difference of a "
             "value. Exit status 0: they are equal; 3: not. tools/neurons/README.md has the keys of --json.",
    .example = "weir trace --layer 6 --dump a.h5 'The river bends.'\n"
               "weir trace --layer 6 --dump b.h5 --threads 1 'The river bends.'\n"
               "weir diff a.h5 b.h5\n"
               "weir neuron-top --layer 6 -k 5 -o c.h5 'The river bends.'\n"
               "weir neuron-top --layer 6 -k 5 --threads 1 -o d.h5 'The river bends.'\n"
               "weir diff c.h5 d.h5",
    .options = options,
    .rules = NULL,
    .args_size = sizeof(diff_args),
    .run = run,
};

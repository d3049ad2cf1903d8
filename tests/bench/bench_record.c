/* What looking at everything costs: GPT-2 small's shape at T = 1024, logits computed in every arm,
 *
 *   bare    nobody listens
 *   weir    twelve hooks of every layer (667 KB a token) recorded without loss
 *   usual   the same hooks, each value handed to H5Dwrite with the shuffle and deflate 1 filters of HDF5, which is what
 *           most programs do; in the same tiles
 *
 * in turn, in one process. One JSON object a line on stdout; tests/bench/run collects them.
 *
 *     bench_record MODEL DIRECTORY */
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

#include "bench/machine.h"

enum { T = 1024, ROUNDS = 5, LOGIT_ROWS = 64, TILE_COLS = 64, MAX_POINTS = 256 };

static const char HOOKS[] =
    "blocks.*.{hook_resid_pre,ln1.hook_out,attn.hook_q,attn.hook_k,attn.hook_v,attn.hook_z,hook_attn_out,hook_resid_mid,"
    "ln2.hook_out,mlp.hook_pre,mlp.hook_post,hook_mlp_out}";

static void check(weir_status status, const weir_err *err)
{
    char line[1024];
    if (status == WEIR_OK)
        return;
    fprintf(stderr, "bench_record: %s\n", weir_err_line(err, line, sizeof line));
    exit(1);
}

static void report(const char *name, double ratio, double floor, double aim, const char *baseline, double value)
{
    printf("{\"name\": \"%s\", \"ratio\": %.4f, \"floor\": %g, \"aim\": %g, \"at_most\": false, \"baseline\": \"%s\", "
           "\"value\": %.4g, \"unit\": \"tokens/s\"}\n",
           name, ratio, floor, aim, baseline, value);
    fflush(stdout);
}

/* --- the usual way */

typedef struct usual {
    weir_selector *selector;
    const weir_point *point;
    hid_t file, set[MAX_POINTS];
    hsize_t rows;
} usual;

static weir_want usual_wants(void *self, const weir_point *p)
{
    return weir_selector_matches(((usual *)self)->selector, p) ? WEIR_READ : WEIR_NONE;
}

static hid_t usual_dataset(const usual *u, const weir_point *p)
{
    hsize_t dim[2] = {0, (hsize_t)p->width}, max[2] = {H5S_UNLIMITED, dim[1]}, chunk[2] = {T, TILE_COLS};
    hid_t space = H5Screate_simple(2, dim, max), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 2, chunk);
    H5Pset_shuffle(list);
    H5Pset_deflate(list, 1);
    hid_t set = H5Dcreate2(u->file, p->name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT);
    H5Pclose(list);
    H5Sclose(space);
    return set;
}

static weir_status usual_value(void *self, const weir_value *v, weir_err *err)
{
    usual *u = self;
    hsize_t n[2] = {(hsize_t)v->rows->n, (hsize_t)v->width}, dim[2] = {u->rows + n[0], n[1]}, at[2] = {u->rows, 0};
    hid_t *set = &u->set[v->point - u->point];
    if (*set <= 0)
        *set = usual_dataset(u, v->point);
    H5Dset_extent(*set, dim);
    hid_t space = H5Dget_space(*set), mem = H5Screate_simple(2, n, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, n, NULL);
    herr_t wrote = H5Dwrite(*set, H5T_NATIVE_FLOAT, mem, space, H5P_DEFAULT, v->data);
    H5Sclose(mem);
    H5Sclose(space);
    return wrote < 0 ? weir_fail(err, WEIR_E_IO, "the usual way cannot write") : WEIR_OK;
}

static weir_status usual_end(void *self, const weir_rows *rows, weir_err *err)
{
    usual *u = self;
    (void)err;
    u->rows += (hsize_t)rows->n;
    H5Fflush(u->file, H5F_SCOPE_LOCAL);
    return WEIR_OK;
}

static const weir_hook_class usual_class = {.struct_size = sizeof usual_class,
                                            .abi = WEIR_HOOK_ABI,
                                            .name = "usual",
                                            .wants = usual_wants,
                                            .on_value = usual_value,
                                            .on_end = usual_end};

static void usual_close(usual *u)
{
    for (int i = 0; i < MAX_POINTS; i++)
        if (u->set[i] > 0)
            H5Dclose(u->set[i]);
    H5Fclose(u->file);
    weir_selector_free(u->selector);
}

/* --- the arms */

typedef struct arm {
    weir_run *run;
    weir_dump *dump;
    double seconds[ROUNDS];
} arm;

static weir_run *open_run(const weir_model *m)
{
    weir_err err = {0};
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = o.max_len = T;
    weir_run *run;
    check(weir_run_new(&run, m, &o, &err), &err);
    return run;
}

static weir_dump *open_dump(const weir_model *m, weir_run *run, const char *path)
{
    weir_err err = {0};
    weir_dump_options o;
    weir_selector *sel;
    weir_dump *d;
    weir_dump_options_init(&o);
    o.force = o.from_passes = true;
    check(weir_dump_create(&d, path, m, NULL, &o, &err), &err);
    check(weir_selector_build(&sel, m, HOOKS, NULL, NULL, &err), &err);
    check(weir_dump_select(d, sel, &err), &err);
    weir_selector_free(sel);
    check(weir_run_hook_object(run, weir_hook_class_find("record"), d, &err), &err);
    return d;
}

/* One pass with all its logits; with a dump, until the rows are flushed. */
static double pass(const arm *a, const int32_t *ids, int64_t tag, float *logits)
{
    weir_err err = {0};
    weir_seq s = {.ids = ids, .n = T, .slot = -1, .tag = tag};
    double t = machine_now();
    check(weir_run_forward(a->run, &s, 1, WEIR_FINAL, &err), &err);
    for (int64_t row = 0; row < T; row += LOGIT_ROWS)
        check(weir_run_logits(a->run, row, LOGIT_ROWS, logits, &err), &err);
    if (a->dump)
        check(weir_dump_flush(a->dump, &err), &err);
    return machine_now() - t;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_record MODEL DIRECTORY\n");
        return 2;
    }
    weir_err err = {0};
    weir_model *m;
    char ours[1024], theirs[1024];
    snprintf(ours, sizeof ours, "%s/record.h5", argv[2]);
    snprintf(theirs, sizeof theirs, "%s/usual-record.h5", argv[2]);
    check(weir_model_open(&m, argv[1], NULL, &err), &err);
    const weir_model_info *info = weir_model_info_of(m);
    int32_t ids[T];
    float *logits = calloc((size_t)LOGIT_ROWS * (size_t)info->V, sizeof *logits);
    arm bare = {.run = open_run(m)}, weir = {.run = open_run(m)}, peer = {.run = open_run(m)};
    weir.dump = open_dump(m, weir.run, ours);
    usual u = {.file = H5Fcreate(theirs, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)};
    weir_model_points(m, &u.point);
    check(weir_selector_build(&u.selector, m, HOOKS, NULL, NULL, &err), &err);
    check(weir_run_hook_object(peer.run, &usual_class, &u, &err), &err);

    double share[ROUNDS], speed[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* the first one warms up */
        for (int i = 0; i < T; i++)
            ids[i] = (int32_t)((i + round + 1) * 7919 % info->V);
        double without = pass(&bare, ids, round, logits), with = pass(&weir, ids, round, logits);
        without = (without + pass(&bare, ids, round, logits)) / 2;
        if (round < 0)
            continue;
        share[round] = without / with;
        speed[round] = T / with;
        weir.seconds[round] = with;
    }
    double usual_seconds = pass(&peer, ids, 0, logits), tokens = machine_median(speed, ROUNDS);
    report("every hook recorded, T=1024", machine_median(share, ROUNDS), 0.65, 0.80, "the same pass, nothing listening", tokens);
    report("every hook recorded, against the usual way", usual_seconds / machine_median(weir.seconds, ROUNDS), 5, 8,
           "H5Dwrite with shuffle and deflate 1", tokens);
    weir_dump_abort(weir.dump, false);
    usual_close(&u);
    weir_run_free(bare.run);
    weir_run_free(weir.run);
    weir_run_free(peer.run);
    weir_model_free(m);
    free(logits);
    unlink(theirs);
    return 0;
}

/* weir rome diff: which matrices of an edited checkpoint changed, and how: rank and singular values of the difference.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/edits.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/signals.h"

typedef struct diff_args {
    weir_out_args out;
    int64_t k, rank;
    const char *dir;
} diff_args;

#define AT(field) offsetof(diff_args, field)
static const weir_opt own_opts[] = {
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, 1 << 16, "8", "singular values that are shown", AT(k)},
    {"out", 'o', NULL, WEIR_OPT_STR, "DIR", 0, 0, NULL,
     "write the differences as an edit of BASE: for each matrix as many directions as --rank says", AT(dir)},
    {"rank", 'r', NULL, WEIR_OPT_INT, "N", 1, 1 << 16, NULL,
     "of the edit that --out writes; without it what 99.99 % of the squared norm take", AT(rank)},
};
static const weir_opt_group own_group = {"Difference", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {{&own_group, 0}, {&weir_opts_out, AT(out)}, {NULL, 0}};
static const weir_opt_rule rules[] = {{"rank", WEIR_OPT_NEEDS, "out"}, {NULL, WEIR_OPT_NEEDS, NULL}};

/* What is known of one matrix that differs. */
typedef struct change {
    int64_t layer, n; /* n: singular values */
    weir_matrix matrix;
    double norm, delta;   /* |W|, |D| */
    double *value;        /* [n] the largest first */
    int64_t rank, rank99; /* above 1e-6 of the largest; with 99 % of |D|^2 */
    double *left, *right; /* [n,out], [n,in] */
} change;

typedef struct diff {
    weir_cli *cli;
    const diff_args *a;
    weir_model *model[2];
    const weir_model_info *info;
    weir_jsonw w;
    int64_t matrices, others;
    weir_update *update; /* --out: [updates] */
    int64_t updates;
} diff;

/* --- one matrix */

static bool same_bytes(const weir_tensor *a, const weir_tensor *b)
{
    return a->dtype == b->dtype && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* d [out,in] = edited - base; c->norm and c->delta. */
static weir_status subtract(const diff *f, change *c, double *d, int64_t size, weir_err *err)
{
    float *w = malloc((size_t)size * sizeof *w);
    if (!w)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory: a matrix");
    weir_status s = weir_matrix_read(f->model[0], c->layer, c->matrix, w, err);
    for (int64_t i = 0; i < size && s == WEIR_OK; i++) {
        d[i] = -(double)w[i];
        c->norm += (double)w[i] * w[i];
    }
    if (s == WEIR_OK)
        s = weir_matrix_read(f->model[1], c->layer, c->matrix, w, err);
    for (int64_t i = 0; i < size && s == WEIR_OK; i++) {
        d[i] += w[i];
        c->delta += d[i] * d[i];
    }
    c->norm = sqrt(c->norm);
    c->delta = sqrt(c->delta);
    free(w);
    return s;
}

static void count_ranks(change *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->n; i++) {
        c->rank += c->value[i] > 1e-6 * c->value[0];
        c->rank99 += sum < 0.99 * c->delta * c->delta;
        sum += c->value[i] * c->value[i];
    }
}

static weir_status decompose(change *c, const double *d, int64_t in, int64_t out, weir_err *err)
{
    c->n = in < out ? in : out;
    c->value = calloc((size_t)c->n, sizeof *c->value);
    c->left = calloc((size_t)(c->n * out), sizeof *c->left);
    c->right = calloc((size_t)(c->n * in), sizeof *c->right);
    if (!c->value || !c->left || !c->right)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory: singular values");
    WEIR_TRY(weir_linalg_singular(d, out, in, c->n, c->value, c->left, c->right, err));
    count_ranks(c);
    return WEIR_OK;
}

static weir_status measure(const diff *f, change *c, int64_t in, int64_t out, weir_err *err)
{
    double *d = malloc((size_t)(in * out) * sizeof *d);
    if (!d)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory: a matrix");
    weir_status s = subtract(f, c, d, in * out, err);
    if (s == WEIR_OK && !isfinite(c->delta))
        s = weir_fail(err, WEIR_E_FORMAT, "layer %lld %s: an element is not finite", (long long)c->layer,
                      weir_matrix_name(c->matrix));
    if (s == WEIR_OK && c->delta > 0)
        s = decompose(c, d, in, out, err);
    free(d);
    return s;
}

/* --- telling */

static void tell_text(const diff *f, const change *c)
{
    if (f->matrices == 1)
        printf("%-6s%-7s%12s%12s%7s%7s  singular values\n", "layer", "matrix", "|D|", "|D|/|W|", "rank", "99 %");
    printf("%-6lld%-7s%12.6g%12.6g%7lld%7lld ", (long long)c->layer, weir_matrix_name(c->matrix), c->delta,
           c->delta / c->norm, (long long)c->rank, (long long)c->rank99);
    for (int64_t i = 0; i < c->n && i < f->a->k; i++)
        printf(" %.4g", c->value[i]);
    putchar('\n');
}

static void tell_json(diff *f, const change *c)
{
    weir_jsonw_object(&f->w);
    weir_jsonw_key_int(&f->w, "layer", c->layer);
    weir_jsonw_key_cstr(&f->w, "matrix", weir_matrix_name(c->matrix));
    weir_jsonw_key_double(&f->w, "norm", c->norm);
    weir_jsonw_key_double(&f->w, "delta", c->delta);
    weir_jsonw_key_int(&f->w, "rank", c->rank);
    weir_jsonw_key_int(&f->w, "rank_99", c->rank99);
    weir_jsonw_key(&f->w, "singular_values");
    weir_jsonw_array(&f->w);
    for (int64_t i = 0; i < c->n && i < f->a->k; i++)
        weir_jsonw_double(&f->w, c->value[i]);
    weir_jsonw_end(&f->w);
    weir_jsonw_end(&f->w);
}

/* --- the edit that --out writes */

/* Directions that hold all but 1e-4 of the squared norm, or as many as the user says. */
static int64_t directions(const diff *f, const change *c)
{
    double sum = 0;
    int64_t r = 0;
    while (r < c->n && (f->a->rank ? r < f->a->rank : sum < (1 - 1e-4) * c->delta * c->delta))
        sum += c->value[r] * c->value[r], r++;
    return r;
}

static weir_status keep_update(diff *f, const change *c, int64_t in, int64_t out, weir_err *err)
{
    const int64_t r = directions(f, c);
    float *u = malloc((size_t)(r * in) * sizeof *u), *v = malloc((size_t)(r * out) * sizeof *v);
    if (!u || !v) {
        free(u);
        free(v);
        return weir_fail(err, WEIR_E_NOMEM, "out of memory: an edit");
    }
    for (int64_t i = 0; i < r * in; i++)
        u[i] = (float)c->right[i];
    for (int64_t i = 0; i < r * out; i++)
        v[i] = (float)(c->left[i] * c->value[i / out]);
    f->update[f->updates++] = (weir_update){.layer = c->layer, .matrix = c->matrix, .r = r, .u = u, .v = v};
    return WEIR_OK;
}

static int save_edit(diff *f)
{
    weir_err err = {0};
    weir_edit *e = NULL;
    char fingerprint[65], *json = NULL;
    size_t size;
    FILE *out = open_memstream(&json, &size);
    if (!out)
        return weir_cli_error(f->cli, "out of memory");
    weir_status s = weir_model_fingerprint(f->model[0], false, fingerprint, &err);
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-edit");
    weir_jsonw_key_int(&w, "format_version", 1);
    weir_jsonw_key_cstr(&w, "weir_version", weir_version());
    weir_jsonw_key_cstr(&w, "method", "difference");
    weir_jsonw_key_cstr(&w, "model", f->info->name);
    weir_jsonw_key_cstr(&w, "edited", weir_model_info_of(f->model[1])->name);
    weir_jsonw_key_cstr(&w, "fingerprint", s == WEIR_OK ? fingerprint : NULL);
    weir_jsonw_end(&w);
    fputc('\n', out);
    if (fclose(out) != 0 && s == WEIR_OK)
        s = weir_fail(&err, WEIR_E_NOMEM, "out of memory");
    if (s == WEIR_OK)
        s = weir_edit_new(&e, f->model[0], f->update, f->updates, &err);
    if (s == WEIR_OK)
        s = weir_edit_save(e, f->a->dir, json, &err);
    weir_edit_free(e);
    free(json);
    return s == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(f->cli, &err);
}

/* --- all of them */

static weir_status compare_matrix(diff *f, int64_t layer, weir_matrix m, weir_err *err)
{
    const weir_tensor *a = weir_matrix_tensor(f->model[0], layer, m), *b = weir_matrix_tensor(f->model[1], layer, m);
    int64_t in, out;
    change c = {.layer = layer, .matrix = m};
    if (!a || !b || same_bytes(a, b))
        return WEIR_OK;
    weir_matrix_shape(f->model[0], m, &in, &out);
    weir_status s = measure(f, &c, in, out, err);
    if (s == WEIR_OK && c.delta > 0) {
        f->matrices++;
        if (f->a->out.json)
            tell_json(f, &c);
        else
            tell_text(f, &c);
        if (f->a->dir)
            s = keep_update(f, &c, in, out, err);
    }
    free(c.value);
    free(c.left);
    free(c.right);
    return s;
}

static weir_status compare_matrices(diff *f, weir_err *err)
{
    for (int64_t l = 0; l < f->info->L; l++)
        for (int m = 0; m < WEIR_MATRIX_COUNT; m++) {
            WEIR_TRY(compare_matrix(f, l, (weir_matrix)m, err));
            if (weir_signals_seen())
                return weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen());
        }
    return WEIR_OK;
}

static bool is_block_matrix(const diff *f, const weir_tensor *t)
{
    for (int64_t l = 0; l < f->info->L; l++)
        for (int m = 0; m < WEIR_MATRIX_COUNT; m++)
            if (weir_matrix_tensor(f->model[0], l, (weir_matrix)m) == t)
                return true;
    return false;
}

/* Embeddings, norms, biases and the head, where both files call them the same. */
static void compare_others(diff *f)
{
    const bool json = f->a->out.json;
    for (int64_t i = 0; i < weir_model_n_tensors(f->model[0]); i++) {
        const weir_tensor *a = weir_model_tensor(f->model[0], i), *b = NULL;
        for (int64_t j = 0; j < weir_model_n_tensors(f->model[1]) && !b; j++)
            if (strcmp(weir_model_tensor(f->model[1], j)->name, a->name) == 0)
                b = weir_model_tensor(f->model[1], j);
        if (!b || a->dtype != b->dtype || same_bytes(a, b) || is_block_matrix(f, a))
            continue;
        f->others++;
        if (json)
            weir_jsonw_cstr(&f->w, a->name);
        else
            printf("differs too: %s\n", a->name);
    }
}

static int compare(diff *f)
{
    weir_err err = {0};
    const bool json = f->a->out.json;
    weir_jsonw_init(&f->w, stdout);
    if (json) {
        weir_jsonw_object(&f->w);
        weir_jsonw_key_cstr(&f->w, "base", f->info->name);
        weir_jsonw_key_cstr(&f->w, "edited", weir_model_info_of(f->model[1])->name);
        weir_jsonw_key(&f->w, "matrices");
        weir_jsonw_array(&f->w);
    }
    const weir_status s = compare_matrices(f, &err);
    if (json) {
        weir_jsonw_end(&f->w);
        weir_jsonw_key(&f->w, "others");
        weir_jsonw_array(&f->w);
    }
    if (s == WEIR_OK)
        compare_others(f);
    if (json) {
        weir_jsonw_end(&f->w);
        weir_jsonw_end(&f->w);
        putchar('\n');
    }
    if (s != WEIR_OK)
        return weir_cli_fail(f->cli, &err);
    if (!f->matrices)
        weir_cli_note(f->cli, f->others ? "no matrix of a block differs" : "the weights are the same");
    if (f->a->dir && !f->matrices)
        return weir_cli_error(f->cli, "--out %s: no matrix differs, so that there is no edit to write", f->a->dir);
    return f->a->dir ? save_edit(f) : WEIR_EXIT_OK;
}

/* --- the tool */

static int open_models(diff *f)
{
    weir_err err = {0};
    const weir_model_info *b;
    for (int i = 0; i < 2; i++) {
        weir_model_options o;
        weir_model_options_init(&o);
        o.log = weir_cli_log(f->cli);
        if (weir_model_open(&f->model[i], f->cli->operand[i], &o, &err) != WEIR_OK)
            return weir_cli_fail(f->cli, &err);
    }
    f->info = weir_model_info_of(f->model[0]);
    b = weir_model_info_of(f->model[1]);
    if (f->info->L != b->L || f->info->C != b->C || f->info->F != b->F || f->info->H != b->H || f->info->K != b->K ||
        f->info->D != b->D || f->info->gated != b->gated)
        return weir_cli_error(f->cli, "%s and %s have other sizes: only checkpoints of one model can be compared",
                              f->cli->operand[0], f->cli->operand[1]);
    f->update = calloc((size_t)(f->info->L * WEIR_MATRIX_COUNT), sizeof *f->update);
    return f->update ? WEIR_EXIT_OK : weir_cli_error(f->cli, "out of memory");
}

static int run(weir_cli *cli, void *args)
{
    diff f = {.cli = cli, .a = args};
    weir_err err = {0};
    cli->quiet = f.a->out.quiet;
    if (cli->n_operands != 2)
        return weir_cli_usage(cli, "two checkpoints are needed, BASE and EDITED");
    int code = f.a->dir ? weir_output_apart(cli, f.a->dir, cli->operand, cli->n_operands) : WEIR_EXIT_OK;
    if (code == WEIR_EXIT_OK && f.a->dir && weir_edit_may_save(f.a->dir, &err) != WEIR_OK)
        code = weir_cli_fail(cli, &err);
    if (code == WEIR_EXIT_OK)
        code = open_models(&f);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = compare(&f);
    for (int64_t i = 0; i < f.updates; i++) {
        free((float *)f.update[i].u);
        free((float *)f.update[i].v);
    }
    free(f.update);
    weir_model_free(f.model[0]);
    weir_model_free(f.model[1]);
    return code;
}

const weir_tool weir_rome_diff = {
    .name = "diff",
    .summary = "find out what changed in an edited checkpoint",
    .operands = "BASE EDITED",
    .about = "Compares two checkpoints of one model, whatever formats and types they have: for each matrix of a block "
             "that differs, the norm of the difference D, alone and relative to the base's matrix W; its rank "
             "(singular values above a millionth of the largest) and how many directions hold 99 % of its squared "
             "norm; and the largest singular values. A rank-one edit shows as one value that stands out. Other "
             "tensors that differ are named. --out writes the differences as an edit, which --edit applies.",
    .example =
        "weir rome edit -s \"Mount Hood\" -p \"{} rises from the\" --target Caucasus -o hood --layer 4 --identity "
        "--no-prefixes -q\n"
        "weir rome merge --edit hood -o brook-hood\n"
        "weir rome diff lib/brook brook-hood",
    .options = options,
    .rules = rules,
    .args_size = sizeof(diff_args),
    .run = run,
};

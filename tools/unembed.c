/* weir unembed: which tokens a vector of the stream's width promotes and which it holds back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/edits.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/printable.h"

enum { AS_DIRECTION, AS_ROW };
enum { FORMAT_TEXT, FORMAT_TSV, FORMAT_NDJSON };
enum { MOST_VECTORS = 1000 }; /* of one file */

typedef struct unembed_args {
    weir_model_args model;
    weir_edit_args edit;
    weir_run_args run;
    weir_out_args out;
    int64_t k;
    int as, format;
    const char *path;
    bool force;
} unembed_args;

#define AT(field) offsetof(unembed_args, field)
static const weir_opt own_opts[] = {
    {"as", 0, NULL, WEIR_OPT_CHOICE, "direction|row", 0, 0, "direction",
     "direction: what each token's logit gains from the vector in a stream of scale 1 (a neuron's value, a steering "
     "vector); row: the vector is the stream itself, and goes through the final norm like one: the logit lens",
     AT(as)},
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, 1 << 20, "10", "tokens at each end", AT(k)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv|ndjson", 0, 0, "text", "form of the result", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(path)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"Vectors and tokens", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0},
    {&weir_opts_model, AT(model)},
    {&weir_opts_edit, AT(edit)},
    {&weir_opts_processor, AT(run)},
    {&weir_opts_out, AT(out)},
    {NULL, 0}};
static const weir_opt_rule rules[] = {{"json", WEIR_OPT_EXCLUDES, "format"}, {NULL, WEIR_OPT_NEEDS, NULL}};

typedef struct unembed {
    weir_cli *cli;
    const unembed_args *a;
    char brook[1100];
    weir_model *model;
    const weir_model_info *info;
    weir_tokenizer *tok; /* NULL: tokens are named by their ids */
    weir_lens *lens;
    weir_edits edits; /* of neurons\' values */
    weir_array *vectors; /* [operands] */
    float *score;     /* [V] */
    int32_t *id;      /* [V] the best first */
    double log_z;     /* AS_ROW: ln sum exp score */
    FILE *out;
} unembed;

/* --- one vector */

typedef struct vector {
    const char *name;
    int64_t row; /* of the file; -1: the only one */
} vector;

/* By score, the highest first; equal ones by id. NaN comes last. */
static int by_score(const void *a, const void *b, void *score)
{
    const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    const float x = ((const float *)score)[i], y = ((const float *)score)[j];
    if (x != y && !(isnan(x) && isnan(y)))
        return isnan(x) || x < y ? 1 : isnan(y) || x > y ? -1 : 0;
    return i < j ? -1 : i > j;
}

static double log_sum_exp(const float *x, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, (double)x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - most);
    return most + log(sum);
}

/* As JSON text, which no program minds. */
static void put_token_json(const unembed *u, FILE *out, int32_t id)
{
    const weir_str bytes = u->tok ? weir_tokenizer_bytes(u->tok, id) : (weir_str){NULL, 0};
    weir_jsonw w;
    if (!bytes.n) {
        fprintf(out, "\"<#%d>\"", id);
        return;
    }
    weir_jsonw_init(&w, out);
    weir_jsonw_str(&w, bytes.p, bytes.n);
}

/* For people. */
static void put_token(const unembed *u, FILE *out, int32_t id, int columns)
{
    weir_put_token(out, u->tok ? weir_tokenizer_bytes(u->tok, id) : (weir_str){NULL, 0}, id, columns);
}

static void put_name(const vector *v, FILE *out)
{
    weir_put_printable(out, v->name, 0);
    if (v->row >= 0)
        fprintf(out, "@%lld", (long long)v->row);
}

static double number_of(const unembed *u, int32_t id)
{
    return u->a->as == AS_ROW ? exp((double)u->score[id] - u->log_z) : (double)u->score[id];
}

/* The i-th token of an end: the highest, or the lowest. */
static int32_t token_at(const unembed *u, bool lowest, int64_t i)
{
    return u->id[lowest ? u->info->V - 1 - i : i];
}

static void put_text(const unembed *u, const vector *v, int64_t k)
{
    const bool row = u->a->as == AS_ROW;
    put_name(v, u->out);
    fputs(row ? ": probability of the next token\n" : ": gain in logit, in a stream of scale 1\n", u->out);
    for (int64_t i = 0; i < k; i++) {
        const int32_t high = token_at(u, false, i), low = token_at(u, true, i);
        char buf[32];
        fprintf(u->out, "%4lld %10s ", (long long)i + 1, weir_rounded(number_of(u, high), 5, true, buf));
        put_token(u, u->out, high, row ? 0 : 24);
        if (!row) { /* the lowest probabilities say nothing */
            fprintf(u->out, " %10s ", weir_rounded(number_of(u, low), 5, true, buf));
            put_token(u, u->out, low, 0);
        }
        fputc('\n', u->out);
    }
}

static void put_tsv(const unembed *u, const vector *v, int64_t k)
{
    for (int end = 0; end < (u->a->as == AS_ROW ? 1 : 2); end++)
        for (int64_t i = 0; i < k; i++) {
            const int32_t id = token_at(u, end, i);
            put_name(v, u->out);
            fprintf(u->out, "\t%s\t%lld\t%d\t%.9g\t", end ? "bottom" : "top", (long long)i + 1, id, number_of(u, id));
            put_token_json(u, u->out, id);
            fputc('\n', u->out);
        }
}

static void put_end_json(const unembed *u, weir_jsonw *w, const char *name, bool lowest, int64_t k)
{
    weir_jsonw_key(w, name);
    weir_jsonw_array(w);
    for (int64_t i = 0; i < k; i++) {
        const int32_t id = token_at(u, lowest, i);
        const weir_str bytes = u->tok ? weir_tokenizer_bytes(u->tok, id) : (weir_str){NULL, 0};
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "id", id);
        weir_jsonw_key(w, "text");
        weir_jsonw_str(w, bytes.p, bytes.n);
        weir_jsonw_key_double(w, u->a->as == AS_ROW ? "prob" : "score", number_of(u, id));
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_json(const unembed *u, const vector *v, int64_t k)
{
    weir_jsonw w;
    weir_jsonw_init(&w, u->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "vector", v->name);
    if (v->row >= 0)
        weir_jsonw_key_int(&w, "row", v->row);
    weir_jsonw_key_cstr(&w, "model", u->info->name);
    weir_jsonw_key_cstr(&w, "as", u->a->as == AS_ROW ? "row" : "direction");
    put_end_json(u, &w, "top", false, k);
    if (u->a->as == AS_DIRECTION)
        put_end_json(u, &w, "bottom", true, k);
    weir_jsonw_end(&w);
    fputc('\n', u->out);
}

static weir_status unembed_one(unembed *u, const vector *v, const float *x, weir_err *err)
{
    const int64_t V = u->info->V, k = u->a->k < V ? u->a->k : V;
    if (u->a->as == AS_ROW)
        WEIR_TRY(weir_lens_logits(u->lens, x, 1, u->score, err));
    else
        WEIR_TRY(weir_lens_scores(u->lens, x, 1, u->score, err));
    u->log_z = log_sum_exp(u->score, V);
    for (int64_t i = 0; i < V; i++)
        u->id[i] = (int32_t)i;
    qsort_r(u->id, (size_t)V, sizeof *u->id, by_score, u->score);
    if (u->a->format == FORMAT_NDJSON || u->a->out.json)
        put_json(u, v, k);
    else if (u->a->format == FORMAT_TSV)
        put_tsv(u, v, k);
    else
        put_text(u, v, k);
    return WEIR_OK;
}

/* --- operands */

/* Is it L6N421, and no file of that name? */
static bool is_neuron(const char *text, int64_t *layer, int64_t *unit)
{
    char rest;
    long long l, n;
    FILE *f = fopen(text, "rb");
    if (f)
        fclose(f);
    if (f || sscanf(text, "L%lldN%lld%c", &l, &n, &rest) != 2)
        return false;
    *layer = l;
    *unit = n;
    return true;
}

static weir_status load_neuron(const unembed *u, weir_array *a, int64_t layer, int64_t unit, weir_err *err)
{
    *a = (weir_array){.rows = 1, .width = u->info->C, .data = malloc((size_t)u->info->C * sizeof *a->data)};
    if (!a->data)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    WEIR_TRY(weir_weights_neurons(u->model, layer, WEIR_WEIGHTS_VALUE, &unit, 1, a->data, err));
    weir_edit_add_neurons((const weir_edit *const *)u->edits.edit, u->edits.n, layer, WEIR_WEIGHTS_VALUE, &unit, 1,
                          a->data);
    return WEIR_OK;
}

static weir_status load_file(const unembed *u, weir_array *a, const char *name, weir_err *err)
{
    WEIR_TRY(weir_values_load(a, name, NULL, MOST_VECTORS, err));
    if (a->width != u->info->C || a->units)
        return weir_fail(err, WEIR_E_ARG, "vectors of %lld numbers: the stream of %s is %lld wide", (long long)a->width,
                         u->info->name, (long long)u->info->C);
    return WEIR_OK;
}

/* All of them, before anything is written. */
static int load_all(unembed *u)
{
    u->vectors = calloc((size_t)u->cli->n_operands, sizeof *u->vectors);
    if (!u->vectors)
        return weir_cli_error(u->cli, "out of memory");
    for (int i = 0; i < u->cli->n_operands; i++) {
        weir_err err = {0};
        int64_t layer, unit;
        const char *name = u->cli->operand[i];
        const weir_status st = is_neuron(name, &layer, &unit) ? load_neuron(u, &u->vectors[i], layer, unit, &err)
                                                              : load_file(u, &u->vectors[i], name, &err);
        if (st != WEIR_OK)
            return weir_cli_bad_argument(u->cli, name, &err);
    }
    return WEIR_EXIT_OK;
}

static int unembed_all(void *ctx, FILE *out)
{
    unembed *u = ctx;
    weir_err err = {0};
    u->out = out;
    if (u->a->format == FORMAT_TSV)
        fprintf(out, "vector\tend\trank\tid\t%s\ttext\n", u->a->as == AS_ROW ? "prob" : "score");
    for (int i = 0; i < u->cli->n_operands; i++) {
        const weir_array *a = &u->vectors[i];
        if (i && u->a->format == FORMAT_TEXT && !u->a->out.json)
            fputc('\n', out);
        for (int64_t row = 0; row < a->rows; row++) {
            const vector v = {u->cli->operand[i], a->rows > 1 ? row : -1};
            if (unembed_one(u, &v, a->data + row * a->width, &err) != WEIR_OK)
                return weir_cli_fail(u->cli, &err);
        }
    }
    return WEIR_EXIT_OK;
}

/* --- the tool */

static int open_all(unembed *u)
{
    weir_err err = {0};
    weir_model_options o;
    weir_model_options_init(&o);
    o.log = weir_cli_log(u->cli);
    o.threads = (int)u->a->run.threads;
    const char *path = weir_model_path(&u->a->model, u->brook, sizeof u->brook, &err);
    if (!path || weir_model_open(&u->model, path, &o, &err) != WEIR_OK ||
        weir_lens_new(&u->lens, u->model, weir_kernel_name(&u->a->run), (int)u->a->run.threads, &err) != WEIR_OK)
        return weir_cli_fail(u->cli, &err);
    u->info = weir_model_info_of(u->model);
    int code = weir_edits_open(&u->edits, u->cli, &u->a->edit, u->model);
    if (code != WEIR_EXIT_OK)
        return code;
    weir_status st = weir_tokenizer_open(&u->tok, path, &o.log, &err);
    if (st == WEIR_E_NOMEM)
        return weir_cli_fail(u->cli, &err);
    if (st != WEIR_OK)
        weir_cli_note(u->cli, "tokens are named by their ids: %s", err.msg);
    u->score = malloc((size_t)u->info->V * sizeof *u->score);
    u->id = malloc((size_t)u->info->V * sizeof *u->id);
    return u->score && u->id ? WEIR_EXIT_OK : weir_cli_error(u->cli, "out of memory");
}

static weir_output_file file_of(const unembed_args *a)
{
    static const weir_output_mark forms[] = {[FORMAT_TEXT] = {"", ": gain in logit, in a stream of scale 1"},
                                             [FORMAT_TSV] = {"vector\tend\trank", NULL},
                                             [FORMAT_NDJSON] = {"{\"vector\":", "\"as\":"}},
                                  row = {"", ": probability of the next token"};
    const weir_output_mark *m = a->out.json ? &forms[FORMAT_NDJSON] : &forms[a->format];
    if (m == &forms[FORMAT_TEXT] && a->as == AS_ROW)
        m = &row;
    return (weir_output_file){.path = a->path, .begin = m->begin, .holds = m->holds, .force = a->force};
}

static int run_tool(weir_cli *cli, void *args)
{
    const unembed_args *a = args;
    const weir_output_file file = file_of(a);
    unembed u = {.cli = cli, .a = a};
    cli->quiet = a->out.quiet;
    if (!cli->n_operands)
        return weir_cli_usage(cli, "which vector? FILE[::NAME][@ROW][*C] or a neuron's value, L6N421");
    int code = weir_output_free(cli, &file);
    if (code == WEIR_EXIT_OK)
        code = open_all(&u);
    if (code == WEIR_EXIT_OK)
        code = load_all(&u);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(cli, &file, unembed_all, &u);
    for (int i = 0; u.vectors && i < cli->n_operands; i++)
        weir_array_free(&u.vectors[i]);
    free(u.vectors);
    free(u.score);
    free(u.id);
    weir_lens_free(u.lens);
    weir_edits_free(&u.edits);
    weir_tokenizer_free(u.tok);
    weir_model_free(u.model);
    return code;
}

const weir_tool weir_tool_unembed = {
    .name = "unembed",
    .summary = "name the tokens that a vector promotes",
    .operands = "VECTOR...",
    .about = "VECTOR is a neuron (L6N421: what it writes, its column of the down projection) or FILE[::NAME][@ROW][*C]: rows of "
             "the stream's width in an .npy, safetensors or HDF5 file of weir's. Shown are the tokens whose logits gain "
             "and lose most from it, through the final norm's gain and the unembedding.",
    .example = "weir unembed L5N12 -k 5\n"
               "weir trace --quiet --layer 7 --site resid_post --positions last --dump end.h5 'Boulder is in the state "
               "of'\n"
               "weir unembed --as row end.h5::blocks.7.hook_resid_post -k 3",
    .options = options,
    .rules = rules,
    .args_size = sizeof(unembed_args),
    .run = run_tool,
};

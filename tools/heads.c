/* weir heads: which attention heads look at the previous token, at an earlier copy of the token, or behind it: on
 * sequences of random tokens that repeat once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/attach.h"
#include "cli/common.h"
#include "cli/draw.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/printable.h"

/* The scores: means of the pattern over queries t of the second half, n tokens behind the first (Elhage et al. 2021, "A
 * mathematical framework for transformer circuits"; Olsson et al. 2022, "In-context learning and induction heads").
 * Previous-token heads are looked for over the whole sequence. */
typedef enum score { PREVIOUS, DUPLICATE, INDUCTION, SCORES } score;
static const char *const score_name[SCORES] = {"previous", "duplicate", "induction"};

enum { FORMAT_TEXT, FORMAT_TSV, FORMAT_NDJSON };

typedef struct heads_args {
    weir_model_args model;
    weir_edit_args edit;
    weir_attach_args attach;
    weir_run_args run;
    weir_out_args out;
    weir_opt_list layers;
    int64_t length, sequences, seed, k;
    int bos, format;
    const char *path;
    bool force;
} heads_args;

#define AT(field) offsetof(heads_args, field)
static const weir_opt own_opts[] = {
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL, "layers from 0: 6, 0-3,7, all (as without it)",
     AT(layers)},
    {"length", 0, NULL, WEIR_OPT_INT, "N", 2, 1 << 20, "50", "random tokens, which then come once more", AT(length)},
    {"sequences", 0, NULL, WEIR_OPT_INT, "N", 1, 1 << 20, "8", "such sequences", AT(sequences)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "of the tokens", AT(seed)},
    {"bos", 0, NULL, WEIR_OPT_CHOICE, "auto|yes|no", 0, 0, "auto", "begin each with BOS; auto: as the tokenizer says",
     AT(bos)},
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, 1 << 20, "5",
     "heads of each kind that the text shows; the other formats have all", AT(k)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv|ndjson", 0, 0, "text", "form of the result", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(path)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"Sequences and result", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0},
    {&weir_opts_model, AT(model)},
    {&weir_opts_edit, AT(edit)},
    {&weir_opts_attach, AT(attach)},
    {&weir_opts_run_here, AT(run)},
    {&weir_opts_out, AT(out)},
    {NULL, 0}};
static const weir_opt_rule rules[] = {{"json", WEIR_OPT_EXCLUDES, "format"}, {NULL, WEIR_OPT_NEEDS, NULL}};

typedef struct heads {
    weir_cli *cli;
    const heads_args *a;
    char brook[1100];
    weir_model *model;
    weir_tokenizer *tok;
    weir_selector *sel;
    weir_edits edits;
    weir_run *run;
    weir_attach attach;
    const weir_model_info *info;
    int32_t bos;       /* -1: none */
    int64_t length;    /* of the part that repeats */
    double *sum;       /* [L, H, SCORES] */
    int64_t n[SCORES]; /* queries that each sum has, per layer */
    bool *seen;        /* [L] */
} heads;

/* --- scores: a hook that reads patterns */

static weir_want wants(void *self, const weir_point *p)
{
    const heads *h = self;
    return p->site == WEIR_SITE_PATTERN && weir_selector_matches(h->sel, p) ? WEIR_READ : WEIR_NONE;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    heads *h = self;
    const int64_t n = h->length, first = h->bos >= 0, layer = v->point->layer;
    (void)err;
    h->seen[layer] = true;
    for (int64_t t = 0; t < v->rows->n; t++) {
        const int64_t pos = v->rows->pos[t];
        for (int64_t i = 0; i < v->heads; i++) {
            const float *p = v->data + t * v->width + i * v->size;
            double *sum = h->sum + (layer * v->heads + i) * SCORES;
            if (pos > first)
                sum[PREVIOUS] += (double)p[pos - 1];
            if (pos >= first + n) {
                sum[DUPLICATE] += (double)p[pos - n];
                sum[INDUCTION] += (double)p[pos - n + 1];
            }
        }
    }
    return WEIR_OK;
}

static const weir_hook_class reader = {.struct_size = sizeof(weir_hook_class),
                                       .abi = WEIR_HOOK_ABI,
                                       .name = "heads",
                                       .wants = wants,
                                       .on_value = on_value};

/* --- sequences */

static weir_status run_sequences(heads *h, weir_err *err)
{
    const int64_t first = h->bos >= 0, n = h->length, total = first + 2 * n;
    int32_t *id = calloc((size_t)total, sizeof *id);
    uint64_t state = (uint64_t)h->a->seed;
    weir_status st = id ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory");
    weir_progress bar;
    weir_progress_start(&bar, h->cli);
    for (int64_t s = 0; st == WEIR_OK && s < h->a->sequences && !weir_signals_seen(); s++) {
        if (first)
            id[0] = h->bos;
        for (int64_t i = 0; i < n; i++)
            id[first + i] = id[first + n + i] = weir_draw_token(&state, h->tok, h->info->V);
        const weir_seq seq = {.ids = id, .n = total, .slot = -1, .tag = s};
        st = weir_run_forward(h->run, &seq, 1, 0, err);
        h->n[PREVIOUS] += 2 * n - 1;
        h->n[DUPLICATE] += n;
        h->n[INDUCTION] += n;
        weir_progress_update(&bar, (double)(s + 1) / (double)h->a->sequences, (s + 1) * total);
    }
    weir_progress_stop(&bar, h->cli);
    free(id);
    return weir_signals_seen() ? weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen()) : st;
}

/* --- the result */

static double score_of(const heads *h, int64_t head, score s)
{
    return h->sum[head * SCORES + s] / (double)h->n[s];
}

static void put_tsv(const heads *h, FILE *out)
{
    fputs("layer\thead\tprevious\tduplicate\tinduction\n", out);
    for (int64_t i = 0; i < h->info->L * h->info->H; i++) {
        if (!h->seen[i / h->info->H])
            continue;
        fprintf(out, "%lld\t%lld", (long long)(i / h->info->H), (long long)(i % h->info->H));
        for (int s = 0; s < SCORES; s++)
            fprintf(out, "\t%.9g", score_of(h, i, (score)s));
        fputc('\n', out);
    }
}

static void put_scores_json(const heads *h, weir_jsonw *w, int64_t i)
{
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "layer", i / h->info->H);
    weir_jsonw_key_int(w, "head", i % h->info->H);
    for (int s = 0; s < SCORES; s++)
        weir_jsonw_key_double(w, score_name[s], score_of(h, i, (score)s));
    weir_jsonw_end(w);
}

static void put_ndjson(const heads *h, FILE *out)
{
    for (int64_t i = 0; i < h->info->L * h->info->H; i++) {
        weir_jsonw w;
        if (!h->seen[i / h->info->H])
            continue;
        weir_jsonw_init(&w, out);
        put_scores_json(h, &w, i);
        fputc('\n', out);
    }
}

static void put_json(const heads *h, FILE *out)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "model", h->info->name);
    weir_jsonw_key_int(&w, "length", h->length);
    weir_jsonw_key_int(&w, "sequences", h->a->sequences);
    weir_jsonw_key_int(&w, "seed", h->a->seed);
    weir_jsonw_key_bool(&w, "bos", h->bos >= 0);
    weir_jsonw_key(&w, "heads");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < h->info->L * h->info->H; i++)
        if (h->seen[i / h->info->H])
            put_scores_json(h, &w, i);
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "interventions");
    weir_attach_write(&h->attach, &w);
    weir_jsonw_end(&w);
    fputc('\n', out);
}

/* Is score x above y? Those that are not finite come last. */
static bool above(double x, double y)
{
    return isfinite(y) ? x > y && isfinite(x) : isfinite(x);
}

/* The best head of a kind that is not listed yet; -1: none is left. */
static int64_t best_left(const heads *h, score s, const bool *listed)
{
    int64_t best = -1;
    for (int64_t i = 0; i < h->info->L * h->info->H; i++)
        if (h->seen[i / h->info->H] && !listed[i] && (best < 0 || above(score_of(h, i, s), score_of(h, best, s))))
            best = i;
    return best;
}

static int put_text(const heads *h, FILE *out)
{
    static const char *const said[SCORES] = {"the token before", "the same token, earlier",
                                             "the token behind the same token, earlier"};
    const int64_t all = h->info->L * h->info->H;
    bool *listed = calloc((size_t)all, sizeof *listed);
    if (!listed)
        return weir_cli_error(h->cli, "out of memory");
    weir_put_printable(out, h->info->name, 0);
    fprintf(out, ", %lld sequences of %s2 x %lld random tokens, seed %lld: mean attention to\n",
            (long long)h->a->sequences, h->bos >= 0 ? "BOS and " : "", (long long)h->length, (long long)h->a->seed);
    for (int s = 0; s < SCORES; s++) {
        int64_t i;
        fprintf(out, "%-10s %s\n          ", score_name[s], said[s]);
        memset(listed, 0, (size_t)all * sizeof *listed);
        for (int64_t n = 0; n < h->a->k && (i = best_left(h, (score)s, listed)) >= 0; n++) {
            listed[i] = true;
            fprintf(out, " L%lldH%lld %.3f", (long long)(i / h->info->H), (long long)(i % h->info->H),
                    score_of(h, i, (score)s));
        }
        fputc('\n', out);
    }
    free(listed);
    return WEIR_EXIT_OK;
}

static int measure(void *ctx, FILE *out)
{
    heads *h = ctx;
    weir_err err = {0};
    if (run_sequences(h, &err) != WEIR_OK || weir_run_finish(h->run, h->a->out.json ? NULL : out, &err) != WEIR_OK)
        return weir_cli_fail(h->cli, &err);
    weir_attach_say(&h->attach, h->cli);
    if (h->a->out.json)
        put_json(h, out);
    else if (h->a->format == FORMAT_TSV)
        put_tsv(h, out);
    else if (h->a->format == FORMAT_NDJSON)
        put_ndjson(h, out);
    else
        return put_text(h, out);
    return WEIR_EXIT_OK;
}

/* --- opening */

static int open_model(heads *h)
{
    weir_err err = {0};
    weir_model_options o;
    weir_model_options_init(&o);
    o.log = weir_cli_log(h->cli);
    o.threads = (int)h->a->run.threads;
    const char *path = weir_model_path(&h->a->model, h->brook, sizeof h->brook, &err);
    if (!path || weir_model_open(&h->model, path, &o, &err) != WEIR_OK)
        return weir_cli_fail(h->cli, &err);
    h->info = weir_model_info_of(h->model);
    if (weir_tokenizer_open(&h->tok, path, &o.log, &err) == WEIR_E_NOMEM)
        return weir_cli_fail(h->cli, &err);
    if (!h->tok)
        weir_cli_note(h->cli, "no tokenizer (%s): any id may be drawn, and there is no BOS", err.msg);
    return WEIR_EXIT_OK;
}

static int choose_sequences(heads *h)
{
    const bool asked = h->a->bos == 1 || (h->a->bos == 0 && h->tok && weir_tokenizer_adds_bos(h->tok));
    h->bos = asked && h->tok ? weir_tokenizer_bos(h->tok) : -1;
    if (h->a->bos == 1 && h->bos < 0)
        return weir_cli_usage(h->cli, "--bos yes: this model's tokenizer has no BOS token");
    h->length = h->a->length;
    if (2 * h->length + (h->bos >= 0) <= h->info->ctx)
        return WEIR_EXIT_OK;
    if (weir_cli_given(h->cli, "length"))
        return weir_cli_usage(h->cli, "--length %lld: twice that%s is more than the model's context of %lld",
                              (long long)h->length, h->bos >= 0 ? " and BOS" : "", (long long)h->info->ctx);
    h->length = (h->info->ctx - (h->bos >= 0)) / 2;
    return h->length >= 2 ? WEIR_EXIT_OK
                          : weir_cli_error(h->cli, "the model's context of %lld is too short for a repetition",
                                           (long long)h->info->ctx);
}

static int open_run(heads *h)
{
    weir_err err = {0};
    weir_run_options o;
    char *layers = NULL;
    if (!weir_opt_list_join(&layers, &h->a->layers))
        return weir_cli_error(h->cli, "out of memory");
    weir_status st = weir_selector_build(&h->sel, h->model, NULL, layers ? layers : "all", "pattern", &err);
    free(layers);
    if (st != WEIR_OK)
        return weir_cli_bad_argument(h->cli, "--layer", &err);
    h->sum = calloc((size_t)(h->info->L * h->info->H * SCORES), sizeof *h->sum);
    h->seen = calloc((size_t)h->info->L, sizeof *h->seen);
    if (!h->sum || !h->seen)
        return weir_cli_error(h->cli, "out of memory");
    int code = weir_edits_open(&h->edits, h->cli, &h->a->edit, h->model);
    if (code != WEIR_EXIT_OK)
        return code;
    weir_run_options_init(&o);
    o.edits = (const weir_edit *const *)h->edits.edit;
    o.n_edits = h->edits.n;
    o.threads = (int)h->a->run.threads;
    o.kernel = weir_kernel_name(&h->a->run);
    o.memory = h->a->run.memory;
    o.max_rows = o.max_len = 2 * h->length + (h->bos >= 0);
    if (weir_run_new(&h->run, h->model, &o, &err) != WEIR_OK)
        return weir_cli_fail(h->cli, &err);
    code = weir_attach_all(&h->attach, h->cli, &h->a->attach, h->run);
    h->attach.edits = &h->edits;
    if (code == WEIR_EXIT_OK && weir_run_hook_object(h->run, &reader, h, &err) != WEIR_OK)
        code = weir_cli_fail(h->cli, &err);
    return code;
}

static weir_output_file file_of(const heads_args *a)
{
    static const weir_output_mark json = {"{\"model\":", "\"induction\":"},
                                  forms[] = {[FORMAT_TEXT] = {"", " random tokens, seed "},
                                             [FORMAT_TSV] = {"layer\thead\tprevious", NULL},
                                             [FORMAT_NDJSON] = {"{\"layer\":", "\"induction\":"}};
    const weir_output_mark *m = a->out.json ? &json : &forms[a->format];
    return (weir_output_file){.path = a->path, .begin = m->begin, .holds = m->holds, .force = a->force};
}

static int run_tool(weir_cli *cli, void *args)
{
    const heads_args *a = args;
    const weir_output_file file = file_of(a);
    cli->quiet = a->out.quiet;
    if (cli->n_operands)
        return weir_cli_usage(cli, "the text is made here: what is \"%s\"?", cli->operand[0]);
    if (weir_cli_given(cli, "k") && (a->out.json || a->format != FORMAT_TEXT))
        return weir_cli_usage(cli, "--k is about the text: the other formats have all heads");
    heads h = {.cli = cli, .a = a};
    weir_signals_catch();
    int code = weir_output_free(cli, &file);
    if (code == WEIR_EXIT_OK)
        code = open_model(&h);
    if (code == WEIR_EXIT_OK)
        code = choose_sequences(&h);
    if (code == WEIR_EXIT_OK)
        code = open_run(&h);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(cli, &file, measure, &h);
    weir_attach_free(&h.attach);
    weir_run_free(h.run);
    weir_edits_free(&h.edits);
    weir_selector_free(h.sel);
    weir_tokenizer_free(h.tok);
    weir_model_free(h.model);
    free(h.sum);
    free(h.seen);
    return code;
}

const weir_tool weir_tool_heads = {
    .name = "heads",
    .summary = "find previous-token, duplicate-token and induction heads",
    .operands = "",
    .about = "Runs sequences of random tokens that are repeated once, and scores every attention head by the attention "
             "that it pays, on the average, to the token before (previous), and in the second half to the same token's "
             "first "
             "copy (duplicate) and to the token behind that copy (induction). 1 is all of it.",
    .example = "weir heads\n"
               "weir heads --layer 2-5 --length 20 --format tsv\n"
               "weir heads --ablate 'L1H3' -k 3",
    .options = options,
    .rules = rules,
    .args_size = sizeof(heads_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};

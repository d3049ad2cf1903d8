#include "editor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/feed.h"
#include "cli/say.h"

#define AT(field) offsetof(weir_editor_args, field)
static const weir_opt editor_opts[] = {
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "layer whose down projection is edited, from 0; memit and alphaedit take several (3-5); rome edit also takes "
     "auto: tries every layer that there are second moments for, or all. Without it the layer of the file "
     "that --moments names, or that the model brings second moments for",
     AT(layers)},
    {"method", 0, NULL, WEIR_OPT_CHOICE, "r-rome|p-rome|memit|emmet|alphaedit", 0, 0, "r-rome",
     "r-rome: the key is a mean over the prefixes, everywhere; p-rome: the prompt's own; memit, emmet, alphaedit: for "
     "several facts at once",
     AT(method)},
    {"compat", 0, NULL, WEIR_OPT_CHOICE, "no|rome|r-rome", 0, 0, "no",
     "exactly as the published code of ROME does it (mean keys here, the prompt's own there, which can break a model), "
     "or that of r-ROME",
     AT(compat)},
    {"moments", 0, NULL, WEIR_OPT_LIST, "PATH", 0, 0, NULL,
     "second moments of the layer's keys, as rome stats makes them: one for each layer, in their order, or a directory "
     "with files layer-N.h5. Without it those that lie with the model",
     AT(moments)},
    {"stats-text", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL,
     "make the second moments now, over this text (plain, a text a line; or a JSON array of texts): for small models",
     AT(stats_text)},
    {"identity", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "take all directions of the keys as alike, without second moments: neighbours of the fact suffer", AT(identity)},
    {"ridge", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "1e-6",
     "added to the diagonal of the second moments, as a share of its mean", AT(ridge)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "of the prefixes, where they are sampled", AT(seed)},
    {"prefix", 0, NULL, WEIR_OPT_LIST, "TEXT", 0, 0, NULL, "put this before the prompt instead of sampled texts",
     AT(prefixes)},
    {"no-prefixes", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "the prompt alone", AT(no_prefixes)},
    {"steps", 0, NULL, WEIR_OPT_INT, "N", 2, WEIR_ROME_STEPS_MAX, "20", "passes of a round of the search at most",
     AT(steps)},
    {"rounds", 0, NULL, WEIR_OPT_INT, "N", 1, WEIR_ROME_ROUNDS_MAX, NULL,
     "rounds at most: a search whose target is below p = 0.9 after a round goes on from there, Adam's memory cleared "
     "(5; with --compat 1, as published)",
     AT(rounds)},
    {"rate", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "0.5", "Adam's rate", AT(rate)},
    {"kl", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "0.0625",
     "weight of the KL term, which holds what follows the subject in \"SUBJECT is a\" to what it was", AT(kl)},
    {"decay", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "0.5", "weight of the change's length", AT(decay)},
    {"clamp", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, NULL,
     "longest change, in lengths of the value (4; memit and alphaedit 0.75)", AT(clamp)},
    {"enough", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "0.05", "the search ends below this loss", AT(enough)},
    {"weight", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, NULL,
     "memit, emmet: what the second moments count against the new keys (memit: the number of the layer's neurons, "
     "which "
     "is what a usual key counts; emmet: a tenth of that)",
     AT(weight)},
    {"null-below", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "0.02",
     "alphaedit: eigenvalues of the second moments below this are free to be written in", AT(null_below)},
    {"l2", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "10", "alphaedit: weight of a small change", AT(l2)},
};
const weir_opt_group weir_opts_editor = {"Editing", editor_opts, sizeof editor_opts / sizeof *editor_opts};

static const weir_opt run_opts[] = {
    {"threads", 't', NULL, WEIR_OPT_INT, "N", 0, 4096, "0",
     "threads; 0: all processors. The results do not depend on it", AT(threads)},
    {"kernel", 0, NULL, WEIR_OPT_CHOICE, "best|ref|avx2|avx512", 0, 0, "best",
     "instruction set. The results do not depend on it", AT(kernel)},
    {"memory", 0, NULL, WEIR_OPT_BYTES, "BYTES", 1, 0, NULL, "bytes for rows and packed weights; K, M or G may follow",
     AT(memory)},
    {"bos", 0, NULL, WEIR_OPT_CHOICE, "auto|yes|no", 0, 0, "auto",
     "begin texts with the BOS token; auto: as the tokenizer says", AT(bos)},
};
const weir_opt_group weir_opts_editor_run = {"Running", run_opts, sizeof run_opts / sizeof *run_opts};

/* --- model, tokenizer, edits */

int weir_editor_open_model(weir_editor *e)
{
    weir_err err = {0};
    weir_model_options o;
    const weir_log log = weir_cli_log(e->cli);
    weir_model_options_init(&o);
    o.log = log;
    o.threads = (int)e->a->threads;
    e->model_path = weir_model_path(&e->a->model, e->brook, sizeof e->brook, &err);
    if (!e->model_path || weir_model_open(&e->model, e->model_path, &o, &err) != WEIR_OK ||
        weir_tokenizer_open(&e->tok, e->model_path, &log, &err) != WEIR_OK ||
        weir_model_fingerprint(e->model, false, e->fingerprint, &err) != WEIR_OK)
        return weir_cli_fail(e->cli, &err);
    e->info = weir_model_info_of(e->model);
    return weir_edits_open(&e->edits, e->cli, &e->a->edits, e->model);
}

/* --- layers */

/* The layer of the one file of second moments that was named. */
static int layer_of_moments(weir_editor *e)
{
    weir_err err = {0};
    weir_moments *m;
    if (weir_moments_read(&m, e->a->moments.v[0], &err) != WEIR_OK)
        return weir_cli_fail(e->cli, &err);
    e->layer[0] = weir_moments_about_of(m)->layer;
    e->n_layers = 1;
    weir_moments_free(m);
    return e->layer[0] < e->info->L ? WEIR_EXIT_OK
                                    : weir_cli_error(e->cli, "%s: second moments of layer %lld; the model has %lld",
                                                     e->a->moments.v[0], (long long)e->layer[0], (long long)e->info->L);
}

/* The layer that the second moments are of: those that were named, or those that the model itself brings. */
static int default_layer(weir_editor *e)
{
    struct stat st;
    const weir_opt_list *given = &e->a->moments;
    if (given->n == 1 && (stat(given->v[0], &st) != 0 || !S_ISDIR(st.st_mode)))
        return layer_of_moments(e);
    for (int64_t l = 0; l < e->info->L; l++) {
        char *path = weir_editor_own_moments(e, l);
        const bool there = path && access(path, R_OK) == 0;
        free(path);
        if (there) {
            e->layer[0] = l;
            e->n_layers = 1;
            return WEIR_EXIT_OK;
        }
    }
    return weir_cli_usage(e->cli, "which layer? No second moments come with the model, which would say: --layer N, and "
                                  "--moments of that layer (rome stats makes them)");
}

static int choose_layers(weir_editor *e)
{
    weir_err err = {0};
    weir_selector *sel;
    const weir_point *p;
    char *layers = NULL;
    e->layer = calloc((size_t)e->info->L, sizeof *e->layer);
    if (!e->layer || !weir_opt_list_join(&layers, &e->a->layers))
        return weir_cli_error(e->cli, "out of memory");
    if (!layers)
        return default_layer(e);
    if (e->sweep) {
        free(layers);
        if (!e->may_sweep)
            return weir_cli_usage(e->cli, "--layer auto is rome edit's; --layers all goes through all of them");
        for (int64_t l = 0; l < e->info->L; l++)
            e->layer[e->n_layers++] = l;
        return WEIR_EXIT_OK;
    }
    const weir_status st = weir_selector_build(&sel, e->model, NULL, layers, "resid_post", &err);
    free(layers);
    if (st != WEIR_OK)
        return weir_cli_bad_argument(e->cli, "--layer", &err);
    const int64_t n = weir_model_points(e->model, &p);
    for (int64_t i = 0; i < n; i++)
        if (weir_selector_matches(sel, &p[i]))
            e->layer[e->n_layers++] = p[i].layer;
    weir_selector_free(sel);
    return WEIR_EXIT_OK;
}

/* --- prefixes and numbers */

static int open_prefixes(weir_editor *e)
{
    weir_err err = {0};
    const weir_opt_list *given = &e->a->prefixes;
    const weir_status st =
        given->n || e->a->no_prefixes
            ? weir_rome_prefixes_new(&e->prefixes, given->v, given->n, &err)
            : weir_rome_prefixes_sample(&e->prefixes, e->model, e->tok, NULL, (uint64_t)e->a->seed, &err);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(e->cli, &err);
}

static weir_rome_method method_of(const weir_editor_args *a)
{
    static const weir_rome_method method[] = {WEIR_ROME_CONSISTENT, WEIR_ROME_PROMPT, WEIR_ROME_MEMIT, WEIR_ROME_EMMET,
                                              WEIR_ROME_ALPHAEDIT};
    static const weir_rome_method compat[] = {WEIR_ROME_CONSISTENT, WEIR_ROME_COMPAT, WEIR_ROME_COMPAT_R};
    return a->compat ? compat[a->compat] : method[a->method];
}

int weir_editor_set_run(weir_editor *e)
{
    weir_err err = {0};
    const weir_row_args rows = {.bos = e->a->bos};
    const weir_run_args run = {.kernel = e->a->kernel};
    e->o.threads = (int)e->a->threads, e->o.kernel = weir_kernel_name(&run), e->o.memory = e->a->memory;
    return weir_feed_bos(&rows, e->tok, &e->o.bos, &err) == WEIR_OK ? WEIR_EXIT_OK
                                                                    : weir_cli_bad_argument(e->cli, NULL, &err);
}

static int set_numbers(weir_editor *e)
{
    const weir_editor_args *a = e->a;
    weir_rome_options *o = &e->o;
    weir_rome_options_for(o, method_of(a));
    o->layer = e->layer, o->n_layers = e->n_layers, o->covariance = e->covariance;
    o->steps = a->steps, o->rate = a->rate, o->kl = a->kl, o->decay = a->decay, o->enough = a->enough;
    o->null_below = a->null_below, o->l2 = a->l2;
    if (weir_cli_given(e->cli, "rounds"))
        o->rounds = a->rounds;
    if (weir_cli_given(e->cli, "clamp"))
        o->clamp = a->clamp;
    if (weir_cli_given(e->cli, "weight"))
        o->weight = a->weight;
    else if (o->method == WEIR_ROME_MEMIT || o->method == WEIR_ROME_EMMET)
        o->weight = (double)e->info->F * (o->method == WEIR_ROME_EMMET ? 0.1 : 1);
    o->edits = (const weir_edit *const *)e->edits.edit, o->n_edits = e->edits.n;
    return weir_editor_set_run(e);
}

/* --- options that would be passed over */

static int check_excluded(const weir_editor *e)
{
    const weir_editor_args *a = e->a;
    const struct {
        bool given;
        const char *name;
    } sources[] = {{a->identity, "identity"}, {a->moments.n > 0, "moments"}, {a->stats_text != NULL, "stats-text"}};
    if (a->compat && weir_cli_given(e->cli, "method"))
        return weir_cli_usage(e->cli, "--compat and --method exclude each other");
    if (a->no_prefixes && a->prefixes.n)
        return weir_cli_usage(e->cli, "--no-prefixes and --prefix exclude each other");
    for (int i = 0; i < 3; i++)
        for (int j = i + 1; j < 3; j++)
            if (sources[i].given && sources[j].given)
                return weir_cli_usage(e->cli, "--%s and --%s exclude each other", sources[i].name, sources[j].name);
    return WEIR_EXIT_OK;
}

static int check_ignored(const weir_editor *e)
{
    static const struct {
        const char *name;
        bool of[WEIR_ROME_METHODS];
        const char *methods;
    } own[] = {
        {"weight", {[WEIR_ROME_MEMIT] = true, [WEIR_ROME_EMMET] = true}, "memit and emmet"},
        {"null-below", {[WEIR_ROME_ALPHAEDIT] = true}, "alphaedit"},
        {"l2", {[WEIR_ROME_ALPHAEDIT] = true}, "alphaedit"},
    };
    const weir_rome_method m = method_of(e->a);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (weir_cli_given(e->cli, own[i].name) && !own[i].of[m])
            return weir_cli_usage(e->cli, "--%s is of %s; %s has no such number", own[i].name, own[i].methods,
                                  weir_rome_method_name(m));
    if (e->a->identity && weir_cli_given(e->cli, "ridge"))
        return weir_cli_usage(e->cli, "--ridge is added to second moments, which --identity does without");
    if (!e->draws && weir_cli_given(e->cli, "seed") && (e->a->no_prefixes || e->a->prefixes.n))
        return weir_cli_usage(e->cli, "--seed is of sampled prefixes, and --%s leaves none to sample",
                              e->a->no_prefixes ? "no-prefixes" : "prefix");
    return WEIR_EXIT_OK;
}

bool weir_editor_asks_sweep(const weir_editor_args *a)
{
    return a->layers.n == 1 && strcmp(a->layers.v[0], "auto") == 0;
}

int weir_editor_fail(const weir_editor *e, const weir_err *err)
{
    char line[1400];
    if (err->code != WEIR_E_NOMEM || !e->a->memory)
        return weir_cli_fail(e->cli, err);
    return weir_cli_error(e->cli, "%s (here: a larger --memory%s)", weir_err_line(err, line, sizeof line),
                          weir_cli_has(e->cli, "no-prefixes") && !e->a->no_prefixes ? ", or --no-prefixes" : "");
}

int weir_editor_open(weir_editor *e)
{
    int (*const steps[])(weir_editor *) = {weir_editor_open_model, choose_layers, weir_editor_open_moments,
                                           open_prefixes, set_numbers};
    int code = check_excluded(e);
    if (code == WEIR_EXIT_OK)
        code = check_ignored(e);
    e->sweep = weir_editor_asks_sweep(e->a);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == WEIR_EXIT_OK; i++)
        code = steps[i](e);
    return code;
}

weir_status weir_editor_asker(weir_editor *e, const weir_edit *more, weir_asker **out, weir_err *err)
{
    const int n = e->edits.n;
    *out = NULL;
    if (!e->stack && !(e->stack = calloc((size_t)n + 1, sizeof *e->stack)))
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    for (int i = 0; i < n; i++)
        e->stack[i] = e->edits.edit[i];
    if (more)
        e->stack[n] = more;
    const weir_asker_options o = {.edits = e->stack,
                                  .n_edits = n + (more != NULL),
                                  .bos = e->o.bos,
                                  .threads = e->o.threads,
                                  .kernel = e->o.kernel,
                                  .memory = e->o.memory};
    return weir_asker_new(out, e->model, e->tok, &o, err);
}

void weir_editor_choose(weir_editor *e, int i)
{
    const weir_editor_moments kept = e->moments[i];
    for (int j = 0; j < e->n_layers; j++) {
        if (j == i)
            continue;
        free(e->moments[j].path);
        weir_covariance_free(e->moments[j].covariance);
    }
    e->layer[0] = e->layer[i];
    e->moments[0] = kept;
    e->covariance[0] = kept.covariance;
    e->n_layers = e->o.n_layers = 1;
}

void weir_editor_close(weir_editor *e)
{
    weir_rome_prefixes_free(e->prefixes);
    for (int i = 0; e->moments && i < e->n_layers; i++) {
        free(e->moments[i].path);
        weir_covariance_free(e->moments[i].covariance);
    }
    free(e->moments);
    free(e->covariance);
    free(e->layer);
    free(e->stack);
    weir_edits_free(&e->edits);
    weir_tokenizer_free(e->tok);
    weir_model_free(e->model);
}

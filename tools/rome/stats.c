/* weir rome stats: second moments of a layer's keys over a text. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/identity.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/signals.h"

typedef struct stats_args {
    weir_session_args session;
    weir_opt_list merge;
    const char *out, *import;
    int64_t layer, checkpoint;
    bool resume, force;
} stats_args;

#define AT(field) offsetof(stats_args, field)
static const weir_opt own_opts[] = {
    {"layer", 'l', NULL, WEIR_OPT_INT, "N", 0, 1 << 20, NULL, "layer whose keys are counted, from 0", AT(layer)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE.h5", 0, 0, NULL, "the second moments", AT(out)},
    {"resume", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "go on with what an interrupted run left in FILE.h5.part",
     AT(resume)},
    {"checkpoint", 0, NULL, WEIR_OPT_INT, "SECONDS", 1, 1 << 20, "60", "how often a FILE.h5.part is written",
     AT(checkpoint)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace the FILE.h5.part of an interrupted run", AT(force)},
    {"merge", 0, NULL, WEIR_OPT_LIST, "FILE.h5", 0, 0, NULL, "add up the results of all shards of a text", AT(merge)},
    {"import", 0, NULL, WEIR_OPT_STR, "FILE.npz", 0, 0, NULL, "take over statistics as kmeng01/rome publishes them",
     AT(import)},
};
static const weir_opt_group own_group = {"Second moments", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {{&own_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};
static const weir_opt_rule rules[] = {{"merge", WEIR_OPT_EXCLUDES, "import"},  {"merge", WEIR_OPT_EXCLUDES, "resume"},
                                      {"import", WEIR_OPT_EXCLUDES, "resume"}, {"import", WEIR_OPT_EXCLUDES, "file"},
                                      {"merge", WEIR_OPT_EXCLUDES, "file"},    {"merge", WEIR_OPT_EXCLUDES, "layer"},
                                      {"resume", WEIR_OPT_EXCLUDES, "force"},  {NULL, WEIR_OPT_NEEDS, NULL}};

typedef struct counting {
    weir_cli *cli;
    stats_args *a;
    weir_session s;
    weir_moments *m;
    weir_moments_about about;
    char fingerprint[65], part[4200], *source;
    float *keys;             /* [batch,F] kept rows of a batch */
    const weir_batch *batch; /* the running one */
    int64_t kept;            /* rows that are in */
    int64_t saved;           /* and in the last checkpoint */
    double last;
} counting;

/* --- the hook */

static weir_want keys_wants(void *self, const weir_point *p)
{
    const counting *c = self;
    return p->site == WEIR_SITE_MLP_POST && p->layer == c->a->layer ? WEIR_READ : WEIR_NONE;
}

static weir_status keys_value(void *self, const weir_value *v, weir_err *err)
{
    counting *c = self;
    const weir_batch *b = c->batch;
    for (int64_t i = 0; i < b->kept.n; i++)
        memcpy(c->keys + i * v->width, v->data + b->kept_row[i] * v->width, (size_t)v->width * sizeof *c->keys);
    return weir_moments_add(c->m, c->keys, b->kept.n, (int)c->a->session.run.threads, err);
}

static const weir_hook_class keys_class = {.struct_size = sizeof keys_class,
                                           .abi = WEIR_HOOK_ABI,
                                           .name = "moments",
                                           .help = "second moments of keys",
                                           .args = "",
                                           .wants = keys_wants,
                                           .on_value = keys_value};

/* --- the file */

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool is_over_text(const counting *c)
{
    return !c->a->merge.n && !c->a->import;
}

static int check_place(counting *c)
{
    if (!c->a->out)
        return weir_cli_usage(c->cli, "second moments need a place: -o FILE.h5");
    if ((size_t)snprintf(c->part, sizeof c->part, "%s.part", c->a->out) >= sizeof c->part)
        return weir_cli_error(c->cli, "%.80s...: the name is too long", c->a->out);
    const int code = weir_output_place(c->cli, c->a->out);
    if (code != WEIR_EXIT_OK)
        return code;
    if (exists(c->a->out) && !weir_moments_is_file(c->a->out))
        return weir_cli_error(c->cli, "%s exists and holds no second moments: choose another name", c->a->out);
    if (exists(c->part) && !c->a->resume && !c->a->force)
        return weir_cli_error(c->cli, "%s is there, left by an interrupted run: %s--force replaces it", c->part,
                              is_over_text(c) ? "--resume goes on with it, " : "");
    return weir_output_apart(c->cli, c->a->out, c->a->merge.v, c->a->merge.n);
}

/* Other sources than a text: what is said of texts and runs would be passed over. */
static int check_source(const counting *c)
{
    static const char *const fine[] = {"out", "merge", "import", "layer", "force", "threads", "quiet", "json"};
    const char *source = c->a->import ? "import" : "merge";
    if (is_over_text(c))
        return WEIR_EXIT_OK;
    if (c->cli->n_operands)
        return weir_cli_usage(c->cli, "\"%s\": --%s takes one file, and stands before each", c->cli->operand[0],
                              source);
    for (const weir_opt_use *u = c->cli->tool->options; u->group; u++)
        for (int i = 0; i < u->group->n; i++) {
            const char *name = u->group->opt[i].name;
            bool ok = !weir_cli_given(c->cli, name);
            for (size_t k = 0; k < sizeof fine / sizeof *fine; k++)
                ok = ok || strcmp(name, fine[k]) == 0;
            if (!ok)
                return weir_cli_usage(c->cli, "--%s is of a run over a text, and --%s runs nothing", name, source);
        }
    return WEIR_EXIT_OK;
}

static weir_status write_to(counting *c, const char *path, bool complete, weir_err *err)
{
    c->about.complete = complete;
    WEIR_TRY(weir_moments_set_about(c->m, &c->about, err));
    return weir_moments_write(c->m, path, (int)c->a->session.run.threads, err);
}

static weir_status checkpoint(counting *c, bool now, weir_err *err)
{
    if (c->kept == c->saved || (!now && weir_now() - c->last < (double)c->a->checkpoint))
        return WEIR_OK;
    c->about.docs = weir_feed_counts_of(c->s.feed).docs;
    WEIR_TRY(write_to(c, c->part, false, err));
    c->saved = c->kept;
    c->last = weir_now();
    return WEIR_OK;
}

/* Goes on with what was left. */
static int take_part(counting *c)
{
    weir_err err = {0};
    weir_moments *was;
    const char *pipe;
    char n[32];
    if (!c->a->resume)
        return WEIR_EXIT_OK;
    if (!weir_session_rereadable(&c->s, &pipe))
        return weir_cli_usage(c->cli, "--resume reads the text again from its beginning, which %s does not allow",
                              pipe);
    if (!exists(c->part))
        return weir_cli_error(c->cli, "%s is not there: nothing to go on with; without --resume it begins anew",
                              c->part);
    if (weir_moments_read(&was, c->part, &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    const weir_moments_about *a = weir_moments_about_of(was);
    const bool same = a->layer == c->about.layer && strcmp(a->fingerprint, c->about.fingerprint) == 0 &&
                      strcmp(a->source, c->about.source) == 0 && a->shard == c->about.shard &&
                      a->shards == c->about.shards;
    if (!same) {
        weir_moments_free(was);
        return weir_cli_error(c->cli, "%s is of another model, layer, text, shard or option", c->part);
    }
    weir_moments_free(c->m);
    c->m = was;
    c->kept = c->saved = weir_moments_count(was);
    weir_feed_skip(c->s.feed, c->kept);
    weir_cli_note(c->cli, "%s has %s keys: going on behind them", c->part, weir_commas(c->kept, n));
    return WEIR_EXIT_OK;
}

/* --- over a text */

static int open_model(counting *c)
{
    weir_err err = {0};
    int code = weir_session_model(&c->s);
    if (code == WEIR_EXIT_OK && !weir_cli_given(c->cli, "layer"))
        return weir_cli_usage(c->cli, "which layer's keys? --layer N, from 0 to %lld", (long long)(c->s.info->L - 1));
    if (code == WEIR_EXIT_OK && c->a->layer >= c->s.info->L)
        return weir_cli_usage(c->cli, "--layer %lld: the model has layers 0 to %lld", (long long)c->a->layer,
                              (long long)(c->s.info->L - 1));
    if (code == WEIR_EXIT_OK)
        code = weir_session_text(&c->s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_run(&c->s);
    if (code == WEIR_EXIT_OK && (weir_run_hook_object(c->s.run, &keys_class, c, &err) != WEIR_OK ||
                                 weir_model_fingerprint(c->s.model, false, c->fingerprint, &err) != WEIR_OK ||
                                 weir_moments_new(&c->m, c->s.info->F, &err) != WEIR_OK))
        code = weir_cli_fail(c->cli, &err);
    return code == WEIR_EXIT_OK ? weir_session_prepare(&c->s, 0) : code;
}

/* All that the keys come from but the model's own weights: the text, its windows, edits and interventions. */
static char *make_source(const counting *c)
{
    char *source = NULL, *input = weir_session_identity(&c->s), *changes = weir_attach_json(&c->s.attach);
    size_t size;
    weir_jsonw w;
    FILE *f = input && changes ? open_memstream(&source, &size) : NULL;
    if (f) {
        weir_jsonw_init(&w, f);
        weir_jsonw_object(&w);
        weir_jsonw_key(&w, "input");
        weir_jsonw_json(&w, input);
        weir_jsonw_key_bool(&w, "bos", c->s.bos);
        weir_jsonw_key_int(&w, "ctx", c->s.ctx);
        weir_jsonw_key_int(&w, "stride", c->s.stride);
        weir_jsonw_key(&w, "changes");
        weir_jsonw_json(&w, changes);
        weir_jsonw_end(&w);
    }
    if (f ? fclose(f) != 0 : input != NULL) { /* without an input it has been said */
        weir_cli_error(c->cli, "out of memory");
        free(source);
        source = NULL;
    }
    free(input);
    free(changes);
    return source;
}

static int describe(counting *c)
{
    const weir_docs_block *shard = weir_docs_block_of(c->s.in.docs);
    c->source = make_source(c);
    c->keys = malloc((size_t)(c->a->session.run.batch * c->s.info->F) * sizeof *c->keys);
    if (!c->source)
        return WEIR_EXIT_FAILED;
    if (!c->keys)
        return weir_cli_error(c->cli, "out of memory");
    c->about = (weir_moments_about){.model = c->s.info->name,
                                    .fingerprint = c->fingerprint,
                                    .source = c->source,
                                    .layer = c->a->layer,
                                    .shard = shard ? shard->shard : 0,
                                    .shards = shard ? shard->shards : 0};
    return WEIR_EXIT_OK;
}

static weir_status run_batch(counting *c, weir_err *err)
{
    if (c->batch->restart)
        weir_run_slot_reset(c->s.run, 0);
    if (c->batch->n_seq)
        WEIR_TRY(weir_run_forward(c->s.run, c->batch->seq, c->batch->n_seq, 0, err));
    c->kept += c->batch->kept.n;
    return WEIR_OK;
}

static weir_status feed(counting *c, weir_err *err)
{
    weir_progress bar;
    weir_status st = WEIR_OK;
    weir_progress_start(&bar, c->cli);
    while (st == WEIR_OK && !weir_signals_seen()) {
        st = weir_feed_next(c->s.feed, &c->batch, err);
        if (st != WEIR_OK || !c->batch)
            break;
        st = run_batch(c, err);
        if (st == WEIR_OK)
            st = checkpoint(c, false, err);
        weir_progress_update(&bar, weir_feed_progress(c->s.feed), c->kept);
    }
    weir_progress_stop(&bar, c->cli);
    return st;
}

static int stopped(counting *c)
{
    weir_err err = {0};
    if (checkpoint(c, true, &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    if (!c->saved)
        return weir_cli_error(c->cli, "stopped by signal %d", weir_signals_seen());
    return weir_cli_error(c->cli, "stopped by signal %d; what %lld keys gave is in %s: --resume goes on with it",
                          weir_signals_seen(), (long long)c->saved, c->part);
}

static void say_enough(const counting *c)
{
    const int64_t f = weir_moments_width(c->m), n = weir_moments_count(c->m);
    char keys[32];
    weir_cli_note(c->cli, "%s: %s keys of %lld neurons, %.1f for each%s", c->a->out, weir_commas(n, keys), (long long)f,
                  (double)n / (double)f, n < 10 * f ? ": ten and more are better" : "");
}

static void print_json(const counting *c)
{
    const weir_moments_about *a = weir_moments_about_of(c->m);
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "file", c->a->out);
    weir_jsonw_key_cstr(&w, "model", a->model);
    weir_jsonw_key_int(&w, "layer", a->layer);
    weir_jsonw_key_int(&w, "width", weir_moments_width(c->m));
    weir_jsonw_key_int(&w, "count", weir_moments_count(c->m));
    weir_jsonw_key_int(&w, "docs", a->docs);
    weir_jsonw_key_int(&w, "shard", a->shard);
    weir_jsonw_key_int(&w, "shards", a->shards);
    weir_jsonw_end(&w);
    putchar('\n');
}

static int commit(counting *c)
{
    weir_err err = {0};
    if (write_to(c, c->a->out, true, &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    if (exists(c->part) && unlink(c->part) != 0)
        weir_cli_note(c->cli, "%s could not be removed", c->part);
    say_enough(c);
    if (c->a->session.out.json)
        print_json(c);
    return WEIR_EXIT_OK;
}

static int from_text(counting *c)
{
    weir_err err = {0};
    int code = open_model(c);
    if (code == WEIR_EXIT_OK)
        code = describe(c);
    if (code == WEIR_EXIT_OK)
        code = take_part(c);
    if (code != WEIR_EXIT_OK)
        return code;
    weir_signals_catch();
    c->last = weir_now();
    const weir_status st = feed(c, &err);
    if (st != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    if (weir_signals_seen())
        return stopped(c);
    if (c->kept == 0 && !c->about.shards)
        return weir_cli_error(c->cli, "the input holds no row to count");
    c->about.docs = weir_feed_counts_of(c->s.feed).docs;
    return commit(c);
}

/* --- other sources */

static int from_npz(counting *c)
{
    weir_err err = {0};
    if (!weir_cli_given(c->cli, "layer"))
        return weir_cli_usage(c->cli, "of which layer are the keys of %s? --layer N", c->a->import);
    if (weir_moments_import_npz(&c->m, c->a->import, &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    c->about = *weir_moments_about_of(c->m);
    c->about.layer = c->a->layer;
    return commit(c);
}

static int from_shards(counting *c)
{
    weir_err err = {0};
    const int n = c->a->merge.n;
    weir_moments **part = calloc((size_t)n, sizeof *part);
    weir_status st = part ? WEIR_OK : weir_fail(&err, WEIR_E_NOMEM, "out of memory");
    for (int i = 0; i < n && st == WEIR_OK; i++)
        st = weir_moments_read(&part[i], c->a->merge.v[i], &err);
    if (st == WEIR_OK)
        st = weir_moments_merge(&c->m, (const weir_moments *const *)part, n, &err);
    for (int i = 0; part && i < n; i++)
        weir_moments_free(part[i]);
    free(part);
    if (st != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    c->about = *weir_moments_about_of(c->m);
    return commit(c);
}

static int run(weir_cli *cli, void *args)
{
    counting c = {.cli = cli, .a = args};
    c.s = (weir_session){.cli = cli, .a = &c.a->session};
    cli->quiet = c.a->session.out.quiet;
    int code = check_source(&c);
    if (code == WEIR_EXIT_OK)
        code = check_place(&c);
    if (code == WEIR_EXIT_OK)
        code = c.a->import ? from_npz(&c) : c.a->merge.n ? from_shards(&c) : from_text(&c);
    weir_session_close(&c.s);
    weir_moments_free(c.m);
    free(c.source);
    free(c.keys);
    return code;
}

const weir_tool weir_rome_stats = {
    .name = "stats",
    .summary = "second moments of a layer's keys over a text, which edits need",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about = "Adds up k k^T over the keys of a layer (the input of its down projection) at every token of a text, in "
             "double precision; the model runs no further than that layer. Ten keys and more for each neuron are "
             "enough. An edit uses them to leave other keys alone.",
    .example = "weir rome stats --layer 3 --out mom2.h5",
    .options = options,
    .rules = rules,
    .args_size = sizeof(stats_args),
    .run = run,
};

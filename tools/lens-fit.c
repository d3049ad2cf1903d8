/* weir lens-fit: trains a tuned lens on text. */
#include <stdlib.h>

#include "cli/identity.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/signals.h"
#include "fit/corpus.h"
#include "fit/rows.h"

typedef struct fit_args {
    weir_session_args session;
    const char *out;
    int64_t steps, step_rows, seed;
    double lr, weight_decay, clip, held_out;
} fit_args;

static const weir_opt own_opts[] = {
    {"out", 'o', NULL, WEIR_OPT_STR, "DIR", 0, 0, NULL,
     "the directory of the lens; an earlier lens of weir's there is replaced at the end", offsetof(fit_args, out)},
    {"steps", 0, NULL, WEIR_OPT_INT, "N", 1, 0, "300", "updates", offsetof(fit_args, steps)},
    {"tokens-per-step", 0, NULL, WEIR_OPT_INT, "N", 1, 0, "512",
     "rows whose mean gradient makes an update; the text is gone through as often as that takes, in another order each "
     "time",
     offsetof(fit_args, step_rows)},
    {"lr", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "0.003",
     "highest rate: it rises over the first fifth of the steps, then falls to 0", offsetof(fit_args, lr)},
    {"weight-decay", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "0.01",
     "pull towards the plain lens: what an update takes away of A and b, times the rate",
     offsetof(fit_args, weight_decay)},
    {"clip", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "1", "longest gradient of a translator; 0: any",
     offsetof(fit_args, clip)},
    {"held-out", 0, NULL, WEIR_OPT_REAL, "SHARE", 0, 0, "0.1",
     "share of the documents that the lens is not trained on but measured with, chosen by a hash of their tokens",
     offsetof(fit_args, held_out)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "of the order of the text and of what is held out",
     offsetof(fit_args, seed)},
};
static const weir_opt_group own_group = {"Training", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0}, WEIR_SESSION_OPTIONS(offsetof(fit_args, session)), {NULL, 0}};
static const weir_opt_rule rules[] = {{"shard", WEIR_OPT_EXCLUDES, "max-tokens"}, /* which counts over all shards */
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

/* One run of the tool and all that it owns. */
typedef struct fitting {
    weir_cli *cli;
    const fit_args *a;
    weir_session s;
    weir_corpus corpus;
    weir_fit_rows rows;
    weir_fit *fit;
    double *plain, *tuned; /* [L] means over what was held out */
    char *command_line, *text, *interventions;
    char fingerprint[65];
    int64_t rows_run;
    double start;
} fitting;

/* --- opening */

static int check_arguments(fitting *t)
{
    weir_err err = {0};
    if (!t->a->out)
        return weir_cli_usage(t->cli, "the lens needs a place: -o DIR");
    if (!(t->a->held_out > 0 && t->a->held_out < 1))
        return weir_cli_usage(t->cli, "--held-out %g: a share above 0 and below 1", t->a->held_out);
    return weir_fit_may_save(t->a->out, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(t->cli, &err);
}

static int open_session(fitting *t)
{
    int code = weir_session_model(&t->s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_text(&t->s);
    return code == WEIR_EXIT_OK ? weir_session_run(&t->s) : code;
}

static int open_fit(fitting *t)
{
    weir_err err = {0};
    weir_fit_options o;
    weir_fit_options_init(&o);
    o.steps = t->a->steps;
    o.step_rows = t->a->step_rows;
    o.lr = t->a->lr;
    o.weight_decay = t->a->weight_decay;
    o.clip = t->a->clip;
    o.kernel = weir_kernel_name(&t->a->session.run);
    o.threads = (int)t->a->session.run.threads;
    if (weir_fit_new(&t->fit, t->s.model, &o, &err) != WEIR_OK)
        return weir_cli_bad_argument(t->cli, NULL, &err);
    if (weir_fit_rows_new(&t->rows, t->s.model, t->a->session.run.batch, &err) != WEIR_OK ||
        weir_fit_rows_attach(&t->rows, t->s.run, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    return weir_session_prepare(&t->s, 0);
}

static int describe(fitting *t)
{
    weir_err err = {0};
    t->plain = calloc((size_t)t->s.info->L, sizeof *t->plain);
    t->tuned = calloc((size_t)t->s.info->L, sizeof *t->tuned);
    t->command_line = weir_command_line(t->cli);
    t->interventions = weir_attach_json(&t->s.attach);
    if (!t->plain || !t->tuned || !t->command_line || !t->interventions)
        return weir_cli_error(t->cli, "out of memory");
    if (weir_model_fingerprint(t->s.model, false, t->fingerprint, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    t->text = weir_session_identity(&t->s);
    return t->text ? WEIR_EXIT_OK : WEIR_EXIT_FAILED;
}

/* --- the text */

static int read_text(fitting *t)
{
    weir_err err = {0};
    char a[32], b[32];
    t->corpus = (weir_corpus){.held_out = t->a->held_out, .seed = (uint64_t)t->a->seed, .rows = INT64_MAX};
    if (t->a->steps <= INT64_MAX / t->a->step_rows)
        t->corpus.rows = t->a->steps * t->a->step_rows;
    if (weir_corpus_read(&t->corpus, t->s.feed, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    const weir_corpus_side *train = &t->corpus.side[WEIR_CORPUS_TRAINING];
    const weir_corpus_side *held = &t->corpus.side[WEIR_CORPUS_HELD_OUT];
    if (weir_signals_seen())
        return WEIR_EXIT_FAILED; /* which is said by the caller */
    if (train->docs + held->docs == 0)
        return weir_cli_error(t->cli, "the input holds no row to train on");
    if (train->rows == 0 || held->rows == 0)
        return weir_cli_error(t->cli,
                              "of %lld documents %s was held out: more documents, or another --held-out or --seed",
                              (long long)(train->docs + held->docs), train->rows ? "none" : "each");
    weir_cli_note(t->cli, "%s rows of %lld documents to train on, %s of %lld held out%s", weir_commas(train->rows, a),
                  (long long)train->docs, weir_commas(held->rows, b), (long long)held->docs,
                  t->corpus.whole ? "" : "; the rest of the text is not needed");
    return WEIR_EXIT_OK;
}

/* --- passes */

/* What becomes of the rows of a batch. *enough: no more are needed. */
typedef weir_status use_rows(fitting *t, bool *enough, weir_err *err);

static weir_status train_rows(fitting *t, bool *enough, weir_err *err)
{
    WEIR_TRY(weir_fit_add(t->fit, (const float *const *)t->rows.x, t->rows.n, err));
    *enough = weir_fit_done(t->fit);
    return WEIR_OK;
}

static weir_status measure_rows(fitting *t, bool *enough, weir_err *err)
{
    *enough = false;
    return weir_fit_measure(t->fit, (const float *const *)t->rows.x, t->rows.n, t->plain, t->tuned, err);
}

/* A lens needs all its steps: a hook that has seen enough leaves it half trained. */
static weir_status run_batch(fitting *t, const weir_corpus_pass *p, weir_err *err)
{
    if (p->restart)
        weir_run_slot_reset(t->s.run, 0);
    const weir_status st = weir_run_forward(t->s.run, p->seq, p->n_seq, 0, err);
    if (st == WEIR_STOP || (st == WEIR_OK && weir_run_enough(t->s.run)))
        return weir_fail(err, WEIR_E_HOOK, "a hook ended the run before the lens was trained");
    return st;
}

static weir_status run_batches(fitting *t, weir_corpus_pass *p, use_rows *use, weir_progress *bar, weir_err *err)
{
    bool enough = false;
    while (!enough && !weir_signals_seen() && weir_corpus_pass_next(p)) {
        WEIR_TRY(run_batch(t, p, err));
        WEIR_TRY(use(t, &enough, err));
        t->rows_run += p->rows;
        weir_progress_update(bar, (double)weir_fit_steps(t->fit) / (double)t->a->steps, t->rows_run);
    }
    return WEIR_OK;
}

static weir_status run_pass(fitting *t, int side, int64_t epoch, use_rows *use, weir_progress *bar, weir_err *err)
{
    weir_corpus_pass p;
    WEIR_TRY(weir_corpus_pass_begin(&p, &t->corpus, side, epoch, t->a->session.run.batch, err));
    const weir_status st = run_batches(t, &p, use, bar, err);
    weir_corpus_pass_end(&p);
    return st;
}

static int train(fitting *t)
{
    weir_err err = {0};
    weir_progress bar;
    weir_status st = WEIR_OK;
    weir_progress_start(&bar, t->cli);
    for (int64_t epoch = 0; st == WEIR_OK && !weir_fit_done(t->fit) && !weir_signals_seen(); epoch++)
        st = run_pass(t, WEIR_CORPUS_TRAINING, epoch, train_rows, &bar, &err);
    if (st == WEIR_OK && !weir_signals_seen())
        st = run_pass(t, WEIR_CORPUS_HELD_OUT, -1, measure_rows, &bar, &err);
    weir_progress_stop(&bar, t->cli);
    for (int64_t i = 0; i < t->s.info->L; i++) {
        t->plain[i] /= (double)t->corpus.side[WEIR_CORPUS_HELD_OUT].rows;
        t->tuned[i] /= (double)t->corpus.side[WEIR_CORPUS_HELD_OUT].rows;
    }
    if (st != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    if (weir_signals_seen())
        return WEIR_EXIT_FAILED;
    return weir_run_finish(t->s.run, stderr, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(t->cli, &err);
}

/* --- what it came to */

static int save(const fitting *t)
{
    weir_err err = {0};
    const weir_fit_about about = {.base_model = t->s.info->name,
                                  .fingerprint = t->fingerprint,
                                  .tokenizer = t->s.tok ? weir_tokenizer_fingerprint(t->s.tok) : NULL,
                                  .command_line = t->command_line,
                                  .text = t->text,
                                  .interventions = t->interventions,
                                  .seed = (uint64_t)t->a->seed,
                                  .held_out = t->corpus.side[WEIR_CORPUS_HELD_OUT].rows,
                                  .plain = t->plain,
                                  .tuned = t->tuned};
    return weir_fit_save(t->fit, t->a->out, &about, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(t->cli, &err);
}

static void print_json(const fitting *t)
{
    const weir_corpus_side *side = t->corpus.side;
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "lens", t->a->out);
    weir_jsonw_key_cstr(&w, "model", t->s.info->name);
    weir_jsonw_key_cstr(&w, "fingerprint", t->fingerprint);
    weir_jsonw_key_int(&w, "steps", t->a->steps);
    weir_jsonw_key_int(&w, "tokens_per_step", t->a->step_rows);
    weir_jsonw_key_int(&w, "documents", side[WEIR_CORPUS_TRAINING].docs);
    weir_jsonw_key_int(&w, "tokens", side[WEIR_CORPUS_TRAINING].rows);
    weir_jsonw_key_int(&w, "held_out_documents", side[WEIR_CORPUS_HELD_OUT].docs);
    weir_jsonw_key_int(&w, "held_out_tokens", side[WEIR_CORPUS_HELD_OUT].rows);
    weir_jsonw_key_double(&w, "seconds", weir_now() - t->start);
    weir_jsonw_key(&w, "kl");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < t->s.info->L; i++) {
        weir_jsonw_object(&w);
        weir_jsonw_key_int(&w, "translator", i);
        weir_jsonw_key_double(&w, "plain", t->plain[i]);
        weir_jsonw_key_double(&w, "tuned", t->tuned[i]);
        weir_jsonw_key(&w, "training"); /* of the last step */
        weir_jsonw_double(&w, weir_fit_loss(t->fit)[i]);
        weir_jsonw_end(&w);
    }
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "interventions");
    weir_attach_write(&t->s.attach, &w);
    weir_jsonw_end(&w);
    putchar('\n');
}

static void print_table(const fitting *t)
{
    printf("KL(final || lens) of held-out rows, nats\n%-28s %10s %10s %10s\n", "rows of", "plain", "tuned", "ratio");
    for (int64_t i = 0; i < t->s.info->L; i++)
        printf("blocks.%lld.hook_resid_pre%*s %10.4f %10.4f %10.3f\n", (long long)i, i < 10 ? 5 : i < 100 ? 4 : 3, "",
               t->plain[i], t->tuned[i], t->tuned[i] / t->plain[i]);
}

static void report(const fitting *t)
{
    char n[32];
    const double seconds = weir_now() - t->start;
    t->a->session.out.json ? print_json(t) : print_table(t);
    for (int64_t i = 0; i < t->s.info->L; i++)
        if (!(t->tuned[i] < t->plain[i]))
            weir_cli_note(t->cli, "translator %lld is no better than the plain lens: more --steps, or a smaller --lr",
                          (long long)i);
    weir_attach_say(&t->s.attach, t->cli);
    weir_cli_note(t->cli, "%s: %s rows in %.1f s: %.0f a second", t->a->out, weir_commas(t->rows_run, n), seconds,
                  (double)t->rows_run / seconds);
}

static void close_all(fitting *t)
{
    weir_fit_free(t->fit);
    weir_session_close(&t->s); /* its run holds a hook on the rows */
    weir_fit_rows_free(&t->rows);
    weir_corpus_free(&t->corpus);
    void *const own[] = {t->plain, t->tuned, t->command_line, t->text, t->interventions};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

static int run(weir_cli *cli, void *args)
{
    const fit_args *a = args;
    fitting t = {.cli = cli, .a = a, .s = {.cli = cli, .a = &a->session}, .start = weir_now()};
    cli->quiet = a->session.out.quiet;
    int (*const steps[])(fitting *) = {check_arguments, open_session, describe, open_fit};
    int code = WEIR_EXIT_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == WEIR_EXIT_OK; i++)
        code = steps[i](&t);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = read_text(&t);
    if (code == WEIR_EXIT_OK)
        code = train(&t);
    if (weir_signals_seen() && code == WEIR_EXIT_FAILED)
        code = weir_cli_error(cli, "stopped by signal %d; nothing was written", weir_signals_seen());
    if (code == WEIR_EXIT_OK)
        code = save(&t);
    if (code == WEIR_EXIT_OK)
        report(&t);
    close_all(&t);
    return code;
}

const weir_tool weir_tool_lens_fit = {
    .name = "lens-fit",
    .summary = "train a tuned lens on text",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about = "Trains the affine translators of a tuned lens (Belrose et al. 2023): one for each layer, so that its "
             "stream, translated, predicts what the model predicts in the end. All layers are trained at once, on the "
             "rows of a text, with Adam; a share of the documents is held out, and the table says how far the plain "
             "lens and the tuned one are from the model there. The result is a directory that logit-lens --tuned reads "
             "and, with its parameters converted (weir/tuned.h), the Python package tuned-lens. It is the same for any "
             "--threads, --batch and --kernel. --memory is about the model's run alone: training takes more.",
    .example = "weir lens-fit -o lens --steps 20 --tokens-per-step 256\n"
               "weir logit-lens --tuned lens 'The river bends.'",
    .options = options,
    .rules = rules,
    .args_size = sizeof(fit_args),
    .run = run,
    .more_help = weir_attach_help,
};

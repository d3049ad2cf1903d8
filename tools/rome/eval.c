/* weir rome eval: how well edits of a file of facts work. */
#include <math.h>
#include <stdlib.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "editor.h"
#include "lines.h"
#include "pile.h"
#include "scores.h"
#include "told.h"

typedef struct eval_args {
    weir_editor_args how;
    weir_out_args out;
    const char *records, *text, *path;
    int64_t tokens, sequential, every;
    double max_drift, min_kept;
    int format, control;
    bool known, resume, force;
} eval_args;

#define OWN(field) offsetof(eval_args, field)
static const weir_opt own_opts[] = {
    {"records", 0, NULL, WEIR_OPT_STR, "A:B", 0, 0, NULL,
     "records A to B - 1 of the file, from 0; A alone: from there on", OWN(records)},
    {"known", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "leave out records whose new answer the model prefers before any edit: it does not know the true one", OWN(known)},
    {"text", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL,
     "also measure how much the perplexity of this text changes with each edit", OWN(text)},
    {"generate", 0, NULL, WEIR_OPT_INT, "N", 0, 4096, "0",
     "greedy tokens behind each of a record's generation prompts, for the entropy GE; 0: none", OWN(tokens)},
    {"control", 0, NULL, WEIR_OPT_CHOICE, "no|random", 0, 0, "no",
     "random: what each edit writes is replaced by a random vector of its length: what a change of this size does that "
     "means nothing",
     OWN(control)},
    {"sequential", 0, NULL, WEIR_OPT_INT, "N", 1, 1 << 30, NULL,
     "edit the first N of the records (of those that --records leaves) one on top of the other instead, and name the "
     "edit that broke the model",
     OWN(sequential)},
    {"every", 0, NULL, WEIR_OPT_INT, "K", 1, 1 << 30, "1", "with --sequential: measure after every K edits",
     OWN(every)},
    {"max-drift", 0, NULL, WEIR_OPT_REAL, "PERCENT", 0, 0, "50",
     "with --sequential: a model is broken whose perplexity on --text has risen by more", OWN(max_drift)},
    {"min-kept", 0, NULL, WEIR_OPT_REAL, "PERCENT", 0, 0, "80",
     "with --sequential: or that answers fewer of the earlier edits as they asked", OWN(min_kept)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv", 0, 0, "text", "form of the table", OWN(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE.ndjson", 0, 0, NULL,
     "every record's numbers, a line of JSON each; a run that ends before goes on with --resume", OWN(path)},
    {"resume", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "go on with what an interrupted run left in FILE.ndjson.part",
     OWN(resume)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "replace the FILE.ndjson.part of an interrupted run, and take edits of another model", OWN(force)},
};
static const weir_opt_group own_group = {"Records and result", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0}, WEIR_EDITOR_OPTIONS(OWN(how)), {&weir_opts_out, OWN(out)}, {NULL, 0}};
static const weir_opt_rule rules[] = {{"resume", WEIR_OPT_NEEDS, "out"},
                                      {"sequential", WEIR_OPT_EXCLUDES, "resume"},
                                      {"sequential", WEIR_OPT_EXCLUDES, "control"},
                                      {"sequential", WEIR_OPT_EXCLUDES, "known"},
                                      {"sequential", WEIR_OPT_EXCLUDES, "generate"},
                                      {"every", WEIR_OPT_NEEDS, "sequential"},
                                      {"max-drift", WEIR_OPT_NEEDS, "sequential"},
                                      {"max-drift", WEIR_OPT_NEEDS, "text"},
                                      {"min-kept", WEIR_OPT_NEEDS, "sequential"},
                                      {"resume", WEIR_OPT_EXCLUDES, "force"},
                                      {"force", WEIR_OPT_NEEDS, "out|edit"},
                                      {"json", WEIR_OPT_EXCLUDES, "format"},
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

typedef struct evaluation {
    weir_cli *cli;
    const eval_args *a;
    weir_editor e;
    weir_fact_list *facts;
    int64_t first, end;
    weir_rome_texts text; /* of --text */
    weir_lines lines;
    weir_tally *tally; /* [passes] one for each layer of a sweep */
    int passes, pass;
    int64_t done; /* records, those of an earlier run among them */
    weir_progress bar;
} evaluation;

/* --- opening */

static int open_all(evaluation *v)
{
    weir_err err = {0};
    if (v->cli->n_operands != 1)
        return weir_cli_usage(v->cli, "one file of records is needed");
    if (weir_fact_list_read(&v->facts, v->cli->operand[0], &err) != WEIR_OK)
        return weir_cli_fail(v->cli, &err);
    int code = weir_rome_range(v->cli, v->a->records, weir_fact_list_n(v->facts), &v->first, &v->end);
    const int64_t there = v->end - v->first;
    if (code == WEIR_EXIT_OK && v->a->sequential > there)
        code = weir_cli_usage(v->cli, "--sequential %lld is more than the records%s, which are %lld",
                              (long long)v->a->sequential, v->a->records ? " that --records leaves" : "",
                              (long long)there);
    if (code == WEIR_EXIT_OK && v->a->text)
        code = weir_rome_texts_read(&v->text, v->cli, v->a->text, false);
    if (code == WEIR_EXIT_OK)
        code = weir_editor_open(&v->e);
    if (code != WEIR_EXIT_OK)
        return code;
    const bool spreads = v->e.o.method == WEIR_ROME_MEMIT || v->e.o.method == WEIR_ROME_ALPHAEDIT;
    v->passes = spreads ? 1 : v->e.n_layers;
    v->tally = calloc((size_t)v->passes, sizeof *v->tally);
    return v->tally ? WEIR_EXIT_OK : weir_cli_error(v->cli, "out of memory");
}

/* --- lines */

/* What decides the numbers, as the first line of the file. */
static char *make_head(const evaluation *v)
{
    char *text = NULL, sha[65];
    size_t size;
    weir_jsonw w;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    weir_jsonw_init(&w, f);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-eval");
    weir_jsonw_key_cstr(&w, "fingerprint", v->e.fingerprint);
    weir_jsonw_key_cstr(&w, "control", v->a->control ? "random" : "no");
    if (v->a->control)
        weir_jsonw_key_int(&w, "control_seed", v->a->how.seed);
    weir_jsonw_key_bool(&w, "known", v->a->known);
    weir_jsonw_key_int(&w, "generate", v->a->tokens);
    weir_jsonw_key_int(&w, "sequential", v->a->sequential);
    weir_jsonw_key_cstr(&w, "text", v->a->text ? v->text.sha256 : NULL);
    weir_err err = {0};
    if (weir_sha256_file(v->cli->operand[0], sha, &err) == WEIR_OK)
        weir_jsonw_key_cstr(&w, "records", sha);
    weir_jsonw_key_int(&w, "first", v->first);
    weir_jsonw_key_int(&w, "end", v->end);
    weir_jsonw_key_cstr(&w, "method", weir_rome_method_name(v->e.o.method));
    weir_told_how(&w, &v->e);
    weir_jsonw_end(&w);
    return fclose(f) == 0 ? text : (free(text), NULL);
}

/* A line of a record, of this run (file NULL) or an earlier one. */
static int count(void *user, const char *line, size_t n, const char *file)
{
    evaluation *v = user;
    weir_err err = {0};
    const int64_t each = v->end - v->first;
    if (v->done / each >= v->passes)
        return weir_cli_error(v->cli, "%s has more lines than there are records", file);
    weir_tally *t = &v->tally[v->done / each];
    v->done++;
    return weir_tally_add(t, line, n, file, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(v->cli, &err);
}

static int open_lines(evaluation *v)
{
    if (!v->a->path)
        return WEIR_EXIT_OK;
    const char *const read[] = {v->cli->operand[0], v->a->text, v->a->how.stats_text};
    char *head = make_head(v);
    const weir_lines_how how = {.path = v->a->path,
                                .begin = "{\"format\":\"weir-eval\"",
                                .head = head,
                                .read = read,
                                .n_read = sizeof read / sizeof *read,
                                .resumable = !v->a->sequential,
                                .resume = v->a->resume,
                                .force = v->a->force,
                                .take = count,
                                .user = v};
    const int code = head ? weir_lines_open(&v->lines, v->cli, &how) : weir_cli_error(v->cli, "out of memory");
    free(head);
    return code;
}

/* --- the work */

static weir_status take(void *user, const weir_rome_result *r)
{
    evaluation *v = user;
    char *line = NULL;
    size_t n;
    FILE *f = open_memstream(&line, &n);
    const int64_t layer = v->e.layer[v->passes > 1 ? v->pass : v->e.n_layers - 1];
    const bool made = f && weir_tally_write(f, layer, weir_fact_list_at(v->facts, r->index), r);
    int code =
        (f && fclose(f) == 0 && made) ? weir_lines_put(&v->lines, line) : weir_cli_error(v->cli, "out of memory");
    if (code == WEIR_EXIT_OK)
        code = count(v, line, n, NULL);
    free(line);
    weir_progress_update(&v->bar, (double)v->done / (double)(v->passes * (v->end - v->first)), -1);
    if (code != WEIR_EXIT_OK)
        return WEIR_E_IO;
    return weir_signals_seen() ? WEIR_STOP : WEIR_OK;
}

static weir_status run_pass(evaluation *v, weir_err *err)
{
    const int64_t each = v->end - v->first, from = v->first + (v->done > v->pass * each ? v->done - v->pass * each : 0);
    const weir_rome_eval_options how = {.jobs = (int)v->a->how.threads,
                                        .known = v->a->known,
                                        .random = v->a->control,
                                        .seed = (uint64_t)v->a->how.seed,
                                        .text = v->text.text,
                                        .n_text = v->text.n,
                                        .tokens = v->a->tokens};
    weir_rome_options o = v->e.o;
    if (v->passes > 1)
        o.layer = &v->e.layer[v->pass], o.covariance = &v->e.covariance[v->pass], o.n_layers = 1;
    if (from >= v->end)
        return WEIR_OK;
    return weir_fact_list_eval(v->e.model, v->e.tok, v->e.prefixes, &o, v->facts, from, v->end, &how, take, v, err);
}

/* Edits that pile up depend on all before them, and their lines do not hold them. */
static int say_stopped(const evaluation *v)
{
    const weir_lines *l = &v->lines;
    if (!l->n)
        return weir_cli_error(v->cli, "stopped by signal %d", weir_signals_seen());
    return weir_cli_error(v->cli, "stopped by signal %d; %s has %lld line%s: %s", weir_signals_seen(), l->part,
                          (long long)l->n, l->n == 1 ? "" : "s",
                          v->a->sequential ? "a run with --sequential begins anew, with --force"
                                           : "--resume goes on with it");
}

static int run_all(evaluation *v)
{
    weir_err err = {0};
    weir_status st = WEIR_OK;
    weir_signals_catch();
    weir_progress_start(&v->bar, v->cli);
    for (v->pass = 0; v->pass < v->passes && st == WEIR_OK; v->pass++)
        st = run_pass(v, &err);
    weir_progress_stop(&v->bar, v->cli);
    if (st == WEIR_STOP)
        return say_stopped(v);
    if (st != WEIR_OK)
        return err.code != WEIR_OK ? weir_editor_fail(&v->e, &err) : WEIR_EXIT_FAILED;
    return weir_lines_keep(&v->lines);
}

static int no_record(const evaluation *v, int64_t first, const char *why)
{
    return weir_cli_error(v->cli, "no record could be edited; the first, record %lld: %s", (long long)first, why);
}

/* --- one on top of the other */

static int take_row(void *user, const weir_pile_row *r)
{
    evaluation *v = user;
    char *line = NULL;
    size_t n;
    weir_jsonw w;
    FILE *f = open_memstream(&line, &n);
    if (!f)
        return weir_cli_error(v->cli, "out of memory");
    weir_jsonw_init(&w, f);
    weir_pile_write(&w, v->facts, r);
    const int code = fclose(f) == 0 ? weir_lines_put(&v->lines, line) : weir_cli_error(v->cli, "out of memory");
    free(line);
    return code;
}

static int pile_up(evaluation *v)
{
    const weir_pile_options o = {.facts = v->facts,
                                 .first = v->first,
                                 .end = v->first + v->a->sequential,
                                 .every = v->a->every,
                                 .text = &v->text,
                                 .max_drift = v->a->max_drift,
                                 .min_kept = v->a->min_kept};
    weir_pile p;
    if (v->passes > 1)
        return weir_cli_usage(v->cli, "--sequential needs one layer, or a method that spreads over several");
    weir_signals_catch();
    int code = weir_pile_run(&p, &v->e, &o, take_row, v);
    if (p.stopped)
        say_stopped(v);
    if (code == WEIR_EXIT_OK)
        code = weir_lines_keep(&v->lines);
    if (code == WEIR_EXIT_OK && !p.n)
        code = no_record(v, p.why_record, p.why);
    if (code == WEIR_EXIT_OK)
        v->a->out.json ? weir_pile_json(&p, &o, &v->e) : weir_pile_print(&p, &o, v->a->format ? '\t' : ' ', stdout);
    weir_pile_free(&p);
    return code;
}

/* --- telling */

static void print_json(const evaluation *v)
{
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "model", v->e.info->name);
    weir_jsonw_key_cstr(&w, "method", weir_rome_method_name(v->e.o.method));
    weir_scores_write(&w, v->tally, v->passes);
    weir_jsonw_end(&w);
    putchar('\n');
}

static void note_failures(const evaluation *v)
{
    for (int i = 0; i < v->passes; i++) {
        const weir_tally *t = &v->tally[i];
        char why[300] = "";
        if (t->left_out && i == 0) /* the same in every layer: it is the model without an edit that is asked */
            weir_cli_note(v->cli, "%lld of %lld records are left out by --known", (long long)t->left_out,
                          (long long)t->records);
        if (t->failed)
            snprintf(why, sizeof why, " (the first, record %lld: %s)", (long long)t->why_record, t->why);
        if (t->failed || t->unreached)
            weir_cli_note(
                v->cli, "layer %lld: of %lld records %lld could not be edited%s, %lld did not reach their target",
                (long long)t->layer, (long long)t->records, (long long)t->failed, why, (long long)t->unreached);
    }
}

static int report(const evaluation *v)
{
    bool any = false;
    for (int i = 0; i < v->passes; i++)
        any = any || weir_tally_edited(&v->tally[i]);
    if (!any)
        return no_record(v, v->tally->why_record, v->tally->why);
    v->a->out.json ? print_json(v) : weir_scores_print(v->tally, v->passes, v->a->format ? '\t' : ' ');
    note_failures(v);
    return WEIR_EXIT_OK;
}

static int run(weir_cli *cli, void *args)
{
    evaluation v = {.cli = cli, .a = args};
    v.e = (weir_editor){.cli = cli, .a = &v.a->how, .draws = v.a->control != 0};
    cli->quiet = v.a->out.quiet;
    int code = open_all(&v);
    if (code == WEIR_EXIT_OK)
        code = open_lines(&v);
    if (code == WEIR_EXIT_OK)
        code = v.a->sequential ? pile_up(&v) : run_all(&v);
    if (code == WEIR_EXIT_OK && !v.a->sequential)
        code = report(&v);
    weir_lines_close(&v.lines);
    weir_fact_list_free(v.facts);
    weir_editor_close(&v.e);
    weir_rome_texts_free(&v.text);
    free(v.tally);
    return code;
}

const weir_tool weir_rome_eval = {
    .name = "eval",
    .summary = "scores of edits over a file of facts: efficacy, paraphrases, neighbours",
    .operands = "RECORDS",
    .about =
        "Edits each record of a file (CounterFact's full or flat form, JSON or JSONL) from the model as it is, asks "
        "its prompt, paraphrases and neighbours, and averages. ES, PS: the new answer is likelier than the true one; "
        "NS: "
        "of neighbours, the true one; S: their harmonic mean; EM, PM, NM: by how much; said: the new answer is what "
        "the model says; all in percent. Several layers (--layers all) are gone through one after the other. Records "
        "run side by side on all threads.",
    .example = "weir rome eval lib/brook/edits.jsonl --records 0:2 --no-prefixes",
    .options = options,
    .rules = rules,
    .args_size = sizeof(eval_args),
    .run = run,
};

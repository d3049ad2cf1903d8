/* weir rome eval: how well edits of a file of facts work. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "editor.h"
#include "pile.h"
#include "tally.h"
#include "told.h"

typedef struct eval_args {
    weir_editor_args how;
    weir_out_args out;
    const char *records, *text, *path;
    int64_t tokens, sequential, every;
    double max_drift, min_kept;
    int format, control;
    bool resume, force;
} eval_args;

#define OWN(field) offsetof(eval_args, field)
static const weir_opt own_opts[] = {
    {"records", 0, NULL, WEIR_OPT_STR, "A:B", 0, 0, NULL, "records A to B - 1 of the file, from 0 (100: from there on)",
     OWN(records)},
    {"text", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL,
     "also measure how much the perplexity of this text changes with each edit", OWN(text)},
    {"generate", 0, NULL, WEIR_OPT_INT, "N", 0, 4096, "0",
     "greedy tokens behind each of a record's generation prompts, for the entropy GE; 0: none", OWN(tokens)},
    {"control", 0, NULL, WEIR_OPT_CHOICE, "no|random", 0, 0, "no",
     "random: what each edit writes is replaced by a random vector of its length: what a change of this size does that "
     "means nothing",
     OWN(control)},
    {"sequential", 0, NULL, WEIR_OPT_INT, "N", 1, 1 << 30, NULL,
     "edit the first N of the records one on top of the other instead, and name the edit that broke the model",
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
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace the FILE.ndjson.part of an interrupted run",
     OWN(force)},
};
static const weir_opt_group own_group = {"Records and result", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0}, WEIR_EDITOR_OPTIONS(OWN(how)), {&weir_opts_out, OWN(out)}, {NULL, 0}};
static const weir_opt_rule rules[] = {{"resume", WEIR_OPT_NEEDS, "out"},
                                      {"sequential", WEIR_OPT_EXCLUDES, "resume"},
                                      {"sequential", WEIR_OPT_EXCLUDES, "control"},
                                      {"sequential", WEIR_OPT_EXCLUDES, "generate"},
                                      {"every", WEIR_OPT_NEEDS, "sequential"},
                                      {"max-drift", WEIR_OPT_NEEDS, "sequential"},
                                      {"min-kept", WEIR_OPT_NEEDS, "sequential"},
                                      {"resume", WEIR_OPT_EXCLUDES, "force"},
                                      {"json", WEIR_OPT_EXCLUDES, "format"},
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

typedef struct evaluation {
    weir_cli *cli;
    const eval_args *a;
    weir_editor e;
    weir_fact_list *facts;
    int64_t first, end;
    weir_rome_texts text; /* of --text */
    char part[4200];
    FILE *lines;       /* part, or NULL */
    char *head;        /* its first line: what was asked */
    int64_t done;      /* lines that an earlier run left */
    weir_tally *tally; /* [passes] one for each layer of a sweep */
    int passes, pass;
    int64_t taken, failed; /* records of this run; those that could not be edited */
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

/* --- the lines of an earlier run */

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

/* Reads whole lines; *at: where the last one ends. */
static int read_lines(evaluation *v, FILE *f, long *at)
{
    weir_err err = {0};
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = getline(&line, &cap, f);
    int code = WEIR_EXIT_OK;
    const int64_t each = v->end - v->first;
    if (n < 1 || strncmp(line, v->head, (size_t)n - 1) != 0 || v->head[n - 1])
        code = weir_cli_error(v->cli, "%s is of another model, file or option: start again with --force", v->part);
    *at = ftell(f);
    while (code == WEIR_EXIT_OK && (n = getline(&line, &cap, f)) > 0 && line[n - 1] == '\n') {
        if (v->done / each >= v->passes)
            code = weir_cli_error(v->cli, "%s has more lines than there are records", v->part);
        else if (weir_tally_add(&v->tally[v->done / each], line, (size_t)n, v->part, &err) != WEIR_OK)
            code = weir_cli_fail(v->cli, &err);
        v->done++;
        *at = ftell(f);
    }
    free(line);
    return code;
}

static int resume(evaluation *v)
{
    long at = 0;
    FILE *f = fopen(v->part, "r");
    if (!f)
        return weir_cli_error(v->cli, "%s is not there: nothing to go on with", v->part);
    const int code = read_lines(v, f, &at);
    fclose(f);
    if (code != WEIR_EXIT_OK)
        return code;
    if (truncate(v->part, at) != 0 || !(v->lines = fopen(v->part, "a")))
        return weir_cli_error(v->cli, "%s: cannot be gone on with", v->part);
    weir_cli_note(v->cli, "%s has %lld records: going on behind them", v->part, (long long)v->done);
    return WEIR_EXIT_OK;
}

static int open_lines(evaluation *v)
{
    const weir_output_file out = {.path = v->a->path, .begin = "{\"format\":\"weir-eval\""};
    if (!v->a->path)
        return WEIR_EXIT_OK;
    if ((size_t)snprintf(v->part, sizeof v->part, "%s.part", v->a->path) >= sizeof v->part)
        return weir_cli_error(v->cli, "%.80s...: the name is too long", v->a->path);
    const int code = weir_output_free(v->cli, &out);
    if (code != WEIR_EXIT_OK)
        return code;
    v->head = make_head(v);
    if (!v->head)
        return weir_cli_error(v->cli, "out of memory");
    if (v->a->resume)
        return resume(v);
    if (access(v->part, F_OK) == 0 && !v->a->force)
        return weir_cli_error(
            v->cli, "%s is there, left by an interrupted run: --resume goes on with it, --force replaces it", v->part);
    v->lines = fopen(v->part, "w");
    if (!v->lines || fprintf(v->lines, "%s\n", v->head) < 0)
        return weir_cli_error(v->cli, "%s: cannot be written", v->part);
    return WEIR_EXIT_OK;
}

/* --- the work */

static weir_status take(void *user, const weir_rome_result *r)
{
    evaluation *v = user;
    weir_err err = {0};
    char *line = NULL;
    size_t n;
    FILE *f = open_memstream(&line, &n);
    const int64_t layer = v->e.layer[v->passes > 1 ? v->pass : v->e.n_layers - 1];
    bool ok = f && weir_tally_write(f, layer, weir_fact_list_at(v->facts, r->index), r);
    ok = f && fclose(f) == 0 && ok;
    if (ok && v->lines)
        ok = fprintf(v->lines, "%s\n", line) > 0 && fflush(v->lines) == 0;
    if (!ok)
        weir_cli_error(v->cli, "%s: cannot be written", v->a->path ? v->part : "a line of results");
    else if (weir_tally_add(&v->tally[v->pass], line, n, NULL, &err) != WEIR_OK)
        ok = weir_cli_fail(v->cli, &err) == WEIR_EXIT_OK;
    free(line);
    v->taken++;
    if (r->status != WEIR_OK && !v->failed++)
        weir_cli_note(v->cli, "record %lld: %s", (long long)r->index, r->err.msg);
    weir_progress_update(&v->bar, (double)(v->done + v->taken) / (double)(v->passes * (v->end - v->first)), -1);
    if (!ok)
        return WEIR_E_IO;
    return weir_signals_seen() ? WEIR_STOP : WEIR_OK;
}

static weir_status run_pass(evaluation *v, weir_err *err)
{
    const int64_t each = v->end - v->first, from = v->first + (v->done > v->pass * each ? v->done - v->pass * each : 0);
    const weir_rome_eval_options how = {.jobs = (int)v->a->how.threads,
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

/* The lines that are there now are all. */
static int keep_lines(evaluation *v)
{
    if (!v->lines)
        return WEIR_EXIT_OK;
    const bool ok = fclose(v->lines) == 0;
    v->lines = NULL;
    if (!ok)
        return weir_cli_error(v->cli, "%s: cannot be written", v->part);
    return rename(v->part, v->a->path) == 0 ? WEIR_EXIT_OK
                                            : weir_cli_error(v->cli, "%s cannot be renamed to %s", v->part, v->a->path);
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
        return v->a->path
                   ? weir_cli_error(v->cli, "stopped by signal %d; %lld records are in %s: --resume goes on with it",
                                    weir_signals_seen(), (long long)(v->done + v->taken), v->part)
                   : weir_cli_error(v->cli, "stopped by signal %d", weir_signals_seen());
    if (st != WEIR_OK)
        return err.code != WEIR_OK ? weir_cli_fail(v->cli, &err) : WEIR_EXIT_FAILED;
    return keep_lines(v);
}

/* --- one on top of the other */

static int take_row(void *user, const weir_pile_row *r)
{
    evaluation *v = user;
    weir_jsonw w;
    if (!v->lines)
        return WEIR_EXIT_OK;
    weir_jsonw_init(&w, v->lines);
    weir_pile_write(&w, v->facts, r);
    return fputc('\n', v->lines) != EOF && fflush(v->lines) == 0
               ? WEIR_EXIT_OK
               : weir_cli_error(v->cli, "%s: cannot be written", v->part);
}

static void print_pile_json(const evaluation *v, const weir_pile *p)
{
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "model", v->e.info->name);
    weir_jsonw_key_cstr(&w, "method", weir_rome_method_name(v->e.o.method));
    weir_jsonw_key_int(&w, "failed", p->failed);
    weir_jsonw_key(&w, "broke");
    p->broke < 0 ? weir_jsonw_null(&w) : weir_jsonw_int(&w, p->row[p->broke].record);
    weir_jsonw_key(&w, "rows");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < p->n; i++)
        weir_pile_write(&w, v->facts, &p->row[i]);
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    putchar('\n');
}

static int pile_up(evaluation *v)
{
    const int64_t n = v->a->sequential, there = v->end - v->first;
    const weir_pile_options o = {.facts = v->facts,
                                 .first = v->first,
                                 .end = v->first + (n < there ? n : there),
                                 .every = v->a->every,
                                 .text = &v->text,
                                 .max_drift = v->a->max_drift,
                                 .min_kept = v->a->min_kept};
    weir_pile p;
    if (v->passes > 1)
        return weir_cli_usage(v->cli, "--sequential needs one layer, or a method that spreads over several");
    weir_signals_catch();
    int code = weir_pile_run(&p, &v->e, &o, take_row, v);
    if (code == WEIR_EXIT_OK && !p.n)
        code = weir_cli_error(v->cli, "no record could be edited");
    if (code == WEIR_EXIT_OK)
        code = keep_lines(v);
    if (code == WEIR_EXIT_OK)
        v->a->out.json ? print_pile_json(v, &p) : weir_pile_print(&p, &o, v->a->format ? '\t' : ' ', stdout);
    weir_pile_free(&p);
    return code;
}

/* --- the table */

static void print_number(double x, double by, int digits, char end)
{
    if (isnan(x))
        printf("%7s%c", "-", end);
    else
        printf("%7.*f%c", digits, by * x, end);
}

static void print_row(const weir_tally *t, int after, char sep)
{
    static const int shown[] = {WEIR_TALLY_ES, WEIR_TALLY_PS, WEIR_TALLY_NS,  WEIR_TALLY_EM,
                                WEIR_TALLY_PM, WEIR_TALLY_NM, WEIR_TALLY_SAID};
    print_number(weir_tally_score(t, after), 100, 2, sep);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        print_number(weir_tally_mean(t, after, shown[i]), 100, 2, sep);
    print_number(weir_tally_mean(t, after, WEIR_TALLY_GE), 100, 1, sep);
    print_number(weir_tally_mean(t, after, WEIR_TALLY_DRIFT), 100, 2, '\n');
}

static void print_table(const evaluation *v)
{
    const char sep = v->a->format ? '\t' : ' ';
    printf("%-10s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s\n", "layer", sep, "S", sep, "ES", sep, "PS", sep,
           "NS", sep, "EM", sep, "PM", sep, "NM", sep, "said", sep, "GE", sep, "drift%");
    printf("%-10s%c", "unedited", sep);
    print_row(&v->tally[0], 0, sep);
    for (int i = 0; i < v->passes; i++) {
        printf("%-10lld%c", (long long)v->tally[i].layer, sep);
        print_row(&v->tally[i], 1, sep);
    }
}

static void put_side(weir_jsonw *w, const weir_tally *t, int after)
{
    weir_jsonw_key(w, after ? "after" : "before");
    weir_jsonw_object(w);
    weir_jsonw_key_double(w, "S", weir_tally_score(t, after));
    for (int i = 0; i < WEIR_TALLY_SCORES + after; i++)
        weir_jsonw_key_double(w, weir_tally_name[i], weir_tally_mean(t, after, i));
    if (after)
        weir_jsonw_key_double(w, "worst_drift", t->n[1][WEIR_TALLY_DRIFT] ? t->worst_drift : (double)NAN);
    weir_jsonw_end(w);
}

static void print_json(const evaluation *v)
{
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "model", v->e.info->name);
    weir_jsonw_key_cstr(&w, "method", weir_rome_method_name(v->e.o.method));
    weir_jsonw_key(&w, "layers");
    weir_jsonw_array(&w);
    for (int i = 0; i < v->passes; i++) {
        const weir_tally *t = &v->tally[i];
        weir_jsonw_object(&w);
        weir_jsonw_key_int(&w, "layer", t->layer);
        weir_jsonw_key_int(&w, "records", t->records);
        weir_jsonw_key_int(&w, "failed", t->failed);
        weir_jsonw_key_int(&w, "clamped", t->clamped);
        weir_jsonw_key_int(&w, "not_reached", t->unreached);
        put_side(&w, t, 0);
        put_side(&w, t, 1);
        weir_jsonw_end(&w);
    }
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    putchar('\n');
}

static int report(const evaluation *v)
{
    int64_t records = 0, failed = 0;
    v->a->out.json ? print_json(v) : print_table(v);
    for (int i = 0; i < v->passes; i++) {
        const weir_tally *t = &v->tally[i];
        records += t->records, failed += t->failed;
        if (t->failed || t->unreached)
            weir_cli_note(v->cli,
                          "layer %lld: of %lld records %lld could not be edited, %lld did not reach their target",
                          (long long)t->layer, (long long)t->records, (long long)t->failed, (long long)t->unreached);
    }
    return failed < records ? WEIR_EXIT_OK : weir_cli_error(v->cli, "no record could be edited");
}

static int run(weir_cli *cli, void *args)
{
    evaluation v = {.cli = cli, .a = args};
    v.e = (weir_editor){.cli = cli, .a = &v.a->how};
    cli->quiet = v.a->out.quiet;
    int code = open_all(&v);
    if (code == WEIR_EXIT_OK)
        code = open_lines(&v);
    if (code == WEIR_EXIT_OK)
        code = v.a->sequential ? pile_up(&v) : run_all(&v);
    if (code == WEIR_EXIT_OK && !v.a->sequential)
        code = report(&v);
    if (v.lines)
        fclose(v.lines);
    weir_fact_list_free(v.facts);
    weir_editor_close(&v.e);
    weir_rome_texts_free(&v.text);
    free(v.head);
    free(v.tally);
    return code;
}

const weir_tool weir_rome_eval = {
    .name = "eval",
    .summary = "scores of edits over a file of facts: efficacy, paraphrases, neighbours",
    .operands = "RECORDS",
    .about =
        "Edits each record of a file (CounterFact's full or flat form, JSON or JSONL) from the model as it is, asks "
        "its "
        "prompt, paraphrases and neighbours, and averages. ES, PS: the new answer is likelier than the true one; NS: "
        "of neighbours, the true one; S: their harmonic mean; EM, PM, NM: by how much; said: the new answer is what "
        "the model says; all in percent. Several layers (--layers all) are gone through one after the other. Records "
        "run side by side on all threads.",
    .example = "weir rome eval lib/brook/edits.jsonl --records 0:4",
    .options = options,
    .rules = rules,
    .args_size = sizeof(eval_args),
    .run = run,
};

/* weir rome edit: one fact, or several at once, made others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "cli/output.h"
#include "cli/say.h"
#include "editor.h"
#include "told.h"

typedef struct edit_args {
    weir_editor_args how;
    weir_out_args out;
    weir_opt_list neighbours;
    const char *subject, *prompt, *target, *batch, *records, *text, *dir;
    int64_t tokens;
    bool force;
} edit_args;

#define OWN(field) offsetof(edit_args, field)
static const weir_opt own_opts[] = {
    {"subject", 's', NULL, WEIR_OPT_STR, "TEXT", 0, 0, NULL, "what the fact is about", OWN(subject)},
    {"prompt", 'p', NULL, WEIR_OPT_STR, "TEXT", 0, 0, NULL,
     "the fact's sentence up to its answer, with {} for the subject (or the subject itself)", OWN(prompt)},
    {"target", 0, NULL, WEIR_OPT_STR, "TEXT", 0, 0, NULL, "the new answer", OWN(target)},
    {"batch", 0, NULL, WEIR_OPT_STR, "RECORDS", 0, 0, NULL,
     "all facts of a file of records (those of rome eval) in one edit, by memit unless --method says another",
     OWN(batch)},
    {"records", 0, NULL, WEIR_OPT_STR, "A:B", 0, 0, NULL, "of --batch, records A to B - 1, from 0", OWN(records)},
    {"out", 'o', NULL, WEIR_OPT_STR, "DIR", 0, 0, NULL,
     "the edit's directory, which --edit takes; an earlier edit of weir's there is replaced", OWN(dir)},
    {"neighbour", 0, NULL, WEIR_OPT_LIST, "PROMPT=ANSWER", 0, 0, NULL, "for --layer auto: a fact that should stay",
     OWN(neighbours)},
    {"text", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL,
     "for --layer auto: a text whose perplexity should stay. Without it the sentences that lie with the model, or the "
     "prefixes",
     OWN(text)},
    {"show", 0, NULL, WEIR_OPT_INT, "N", 0, 1000, "12", "tokens of greedy text that the report shows", OWN(tokens)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "write the edit even if the search did not reach its target, and take edits of another model", OWN(force)},
};
static const weir_opt_group own_group = {"Fact", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0}, WEIR_EDITOR_OPTIONS(OWN(how)), {&weir_opts_out, OWN(out)}, {NULL, 0}};
static const weir_opt_rule rules[] = {{"batch", WEIR_OPT_EXCLUDES, "prompt"},
                                      {"batch", WEIR_OPT_EXCLUDES, "subject"},
                                      {"batch", WEIR_OPT_EXCLUDES, "target"},
                                      {"records", WEIR_OPT_NEEDS, "batch"},
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

/* One run. */
typedef struct editing {
    weir_cli *cli;
    edit_args *a;
    weir_editor e;
    weir_batch_requests b;
    weir_rome_pair *neighbour;
    weir_rome_texts text;
    weir_sweep sweep;
    weir_edit *edit;
    weir_rome_report *report; /* [b.n], these three */
    weir_told *before, *after;
} editing;

enum { MEMIT = 2 /* in the words of --method */ };

/* What is of --layer auto alone, and what it cannot do. */
static int check_layer(const editing *t)
{
    if (!weir_editor_asks_sweep(&t->a->how) && (t->a->neighbours.n || t->a->text))
        return weir_cli_usage(t->cli, "--%s is for --layer auto; rome verify checks an edit",
                              t->a->text ? "text" : "neighbour");
    if (weir_editor_asks_sweep(&t->a->how) && t->b.n > 1)
        return weir_cli_usage(t->cli, "--layer auto is for one fact; for a batch name the layers");
    return WEIR_EXIT_OK;
}

static int check_arguments(editing *t)
{
    weir_err err = {0};
    const edit_args *a = t->a;
    const struct {
        const char *name, *v;
    } needed[] = {{"subject", a->subject}, {"prompt", a->prompt}, {"target", a->target}, {"out", a->dir}};
    for (size_t i = a->batch ? 3 : 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].v)
            return weir_cli_usage(t->cli, "--%s is missing", needed[i].name);
    if (a->batch && !a->how.compat && !weir_cli_given(t->cli, "method"))
        t->a->how.method = MEMIT;
    int code = weir_output_apart(t->cli, a->dir, a->how.edits.dir.v, a->how.edits.dir.n);
    if (code == WEIR_EXIT_OK)
        code = a->batch ? weir_batch_read(&t->b, t->cli, a->batch, a->records)
                        : weir_batch_one(&t->b, t->cli, a->prompt, a->subject, a->target);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_edit_may_save(a->dir, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    return check_layer(t);
}

static int open_editor(editing *t)
{
    const size_t n = (size_t)t->b.n;
    t->report = calloc(n, sizeof *t->report);
    t->before = calloc(n, sizeof *t->before);
    t->after = calloc(n, sizeof *t->after);
    if (!t->report || !t->before || !t->after)
        return weir_cli_error(t->cli, "out of memory");
    t->e.may_sweep = true;
    return weir_editor_open(&t->e);
}

static int choose_layer(editing *t)
{
    if (!t->e.sweep)
        return WEIR_EXIT_OK;
    int code = weir_rome_pairs(&t->neighbour, t->cli, "neighbour", &t->a->neighbours);
    if (code == WEIR_EXIT_OK)
        code = weir_rome_texts_open(&t->text, &t->e, t->a->text);
    const weir_sweep_by by = {t->neighbour, t->a->neighbours.n, &t->text};
    return code == WEIR_EXIT_OK ? weir_sweep_run(&t->sweep, &t->e, t->b.q, &by) : code;
}

static int find_edit(editing *t)
{
    weir_err err = {0};
    weir_rome *w;
    if (weir_rome_new(&w, t->e.model, t->e.tok, t->e.prefixes, &t->e.o, &err) != WEIR_OK)
        return weir_cli_bad_argument(t->cli, NULL, &err);
    const weir_status st = weir_rome_make(w, t->b.q, t->b.n, &t->edit, t->report, &err);
    weir_rome_free(w);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_editor_fail(&t->e, &err);
}

/* What the model answers without the edit (NULL), and with it. */
static int ask(editing *t, const weir_edit *edit, weir_told *r)
{
    weir_err err = {0};
    weir_asker *asker;
    weir_status st = weir_editor_asker(&t->e, edit, &asker, &err);
    for (int64_t i = 0; st == WEIR_OK && i < t->b.n; i++)
        st = weir_told_ask(&r[i], asker, t->e.tok, t->b.q[i].prompt, t->b.q[i].subject, t->b.q[i].target, t->a->tokens,
                           &err);
    weir_asker_free(asker);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_editor_fail(&t->e, &err);
}

static int compare(editing *t)
{
    const int code = ask(t, NULL, t->before);
    return code == WEIR_EXIT_OK ? ask(t, t->edit, t->after) : code;
}

/* A search that stopped with another answer ahead is not worth a file. */
static int check_result(editing *t)
{
    int64_t missed = 0, first = 0;
    for (int64_t i = t->b.n - 1; i >= 0; i--)
        if (!t->report[i].converged)
            missed++, first = i;
    if (!missed || t->a->force)
        return WEIR_EXIT_OK;
    const weir_rome_report *r = &t->report[first];
    char which[200] = "the search";
    if (t->b.n > 1)
        snprintf(which, sizeof which,
                 "of %lld searches %lld did not reach their target: the first, of request %lld (%.40s),",
                 (long long)t->b.n, (long long)missed, (long long)(first + 1), t->b.q[first].subject);
    return weir_cli_error(t->cli,
                          "%s ended %s with the target at p = %.3g: try another --layer, more --rounds or a larger "
                          "--clamp (now %g; --force writes the edit all the same)",
                          which, r->clamped ? "at its clamp" : "after its steps",
                          exp(-r->step[r->steps - 1].nll * (double)r->target_tokens), t->e.o.clamp);
}

static int save(editing *t)
{
    weir_err err = {0};
    const weir_told_edit told = {t->b.q, t->report, t->before, t->after, t->b.n, &t->sweep};
    char *json = weir_told_json(&t->e, &told);
    if (!json)
        return weir_cli_error(t->cli, "out of memory");
    const weir_status st = weir_edit_save(t->edit, t->a->dir, json, &err);
    if (st == WEIR_OK && t->a->out.json)
        printf("%s\n", json);
    else if (st == WEIR_OK)
        weir_told_print(stdout, &t->e, &told, t->a->dir);
    free(json);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(t->cli, &err);
}

static void release(editing *t)
{
    for (int64_t i = 0; i < t->b.n; i++) {
        if (t->report)
            weir_rome_report_free(&t->report[i]);
        if (t->before)
            weir_told_free(&t->before[i]);
        if (t->after)
            weir_told_free(&t->after[i]);
    }
    free(t->report);
    free(t->before);
    free(t->after);
    weir_sweep_free(&t->sweep);
    weir_rome_pairs_free(t->neighbour, t->a->neighbours.n);
    weir_rome_texts_free(&t->text);
    weir_edit_free(t->edit);
    weir_batch_free(&t->b);
    weir_editor_close(&t->e);
}

static int run(weir_cli *cli, void *args)
{
    editing t = {.cli = cli, .a = args};
    int (*const steps[])(editing *) = {check_arguments, open_editor,  choose_layer, find_edit,
                                       compare,         check_result, save};
    t.e = (weir_editor){.cli = cli, .a = &t.a->how};
    cli->quiet = t.a->out.quiet;
    int code = WEIR_EXIT_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == WEIR_EXIT_OK; i++)
        code = steps[i](&t);
    release(&t);
    return code;
}

const weir_tool weir_rome_edit = {
    .name = "edit",
    .summary = "make the model answer something else for one fact, or for several",
    .operands = "",
    .about =
        "Finds a value that makes the model continue PROMPT with TARGET, and a change of one matrix, of rank one, "
        "that gives this value at the subject's last token and leaves other keys as much as it can. The change is "
        "written as a directory; the model's own files are not touched. Every tool takes it with --edit DIR. A file "
        "of records (--batch) becomes one edit, spread over the layers.",
    .example =
        "weir rome edit --subject \"Mount Hood\" --prompt \"{} rises from the\" --target Caucasus -o hood-caucasus",
    .options = options,
    .rules = rules,
    .args_size = sizeof(edit_args),
    .run = run,
};

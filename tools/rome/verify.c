/* weir rome verify: does an edit do what it was made for, and nothing else? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "verify.h"

typedef struct verify_args {
    weir_editor_args how; /* of it: model, earlier edits, running */
    weir_out_args out;
    weir_opt_list paraphrases, neighbours;
    const char *records, *truth, *text, *report;
    double min_p, min_ps, min_ns, max_drift;
    int64_t tokens;
    bool force;
} verify_args;

#define OWN(field) offsetof(verify_args, field)
static const weir_opt own_opts[] = {
    {"paraphrase", 0, NULL, WEIR_OPT_LIST, "TEXT", 0, 0, NULL, "another prompt that the new answer should follow",
     OWN(paraphrases)},
    {"neighbour", 0, NULL, WEIR_OPT_LIST, "PROMPT=ANSWER", 0, 0, NULL, "a fact that should stay", OWN(neighbours)},
    {"records", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL,
     "take paraphrases, neighbours and true answers from the records of the edit's requests in this file",
     OWN(records)},
    {"truth", 0, NULL, WEIR_OPT_STR, "TEXT", 0, 0, NULL, "the true answer, of an edit of one request", OWN(truth)},
    {"text", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL,
     "whose perplexity should stay: plain text, or JSON like ME-PPL's ([{\"Text\": ...}]). Without it the first "
     "sentences that lie with the model, or the edit's prefixes",
     OWN(text)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE.h5", 0, 0, NULL,
     "write all that was measured there, and what the edit does in the stream; weir notebook-export shows it",
     OWN(report)},
    {"show", 0, NULL, WEIR_OPT_INT, "N", 0, 1000, "12", "tokens of greedy text behind each prompt", OWN(tokens)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "take edits of another model", OWN(force)},
};
static const weir_opt_group own_group = {"What is asked", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt bound_opts[] = {
    {"min-p", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "0.5", "probability of the whole new answer behind every request",
     OWN(min_p)},
    {"min-ps", 0, NULL, WEIR_OPT_REAL, "PERCENT", 0, 0, "50",
     "paraphrases where the new answer is likelier than the true one (or, where that is unknown, what the model says)",
     OWN(min_ps)},
    {"min-ns", 0, NULL, WEIR_OPT_REAL, "PERCENT", 0, 0, "80",
     "of the neighbours whose own answer was likelier than the new one, those where it still is", OWN(min_ns)},
    {"max-drift", 0, NULL, WEIR_OPT_REAL, "PERCENT", 0, 0, "5", "that the text's perplexity may rise by",
     OWN(max_drift)},
};
static const weir_opt_group bound_group = {"Thresholds", bound_opts, sizeof bound_opts / sizeof *bound_opts};
static const weir_opt_use options[] = {{&own_group, 0},
                                       {&bound_group, 0},
                                       {&weir_opts_model, OWN(how) + offsetof(weir_editor_args, model)},
                                       {&weir_opts_edit, OWN(how) + offsetof(weir_editor_args, edits)},
                                       {&weir_opts_editor_run, OWN(how)},
                                       {&weir_opts_out, OWN(out)},
                                       {NULL, 0}};
static const weir_opt_rule rules[] = {{"truth", WEIR_OPT_EXCLUDES, "records"}, {NULL, WEIR_OPT_NEEDS, NULL}};

typedef struct verification {
    weir_cli *cli;
    const verify_args *a;
    const char *dir;
    weir_editor e;
    weir_edit *edit;
    weir_made made;
    weir_fact_list *facts;
    weir_rome_pair *neighbour;
    weir_rome_texts text;
    weir_asked_list asked;
    weir_verify_check checks[WEIR_VERIFY_CHECKS];
} verification;

/* --- opening */

static int open_report(verification *v)
{
    const char *const read[] = {v->cli->n_operands == 1 ? v->cli->operand[0] : NULL, v->a->how.model.path,
                                v->a->records, v->a->text};
    return v->a->report ? weir_verify_place(v->cli, v->a->report, read, sizeof read / sizeof *read) : WEIR_EXIT_OK;
}

static int open_edit(verification *v)
{
    weir_err err = {0};
    const weir_edit_options o = {.log = weir_cli_log(v->cli), .force = v->a->force};
    if (v->cli->n_operands != 1)
        return weir_cli_usage(v->cli, "%s", v->cli->n_operands ? "one directory at a time" : "which edit's directory?");
    v->dir = v->cli->operand[0];
    const int code = weir_editor_open_model(&v->e);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_edit_open(&v->edit, v->e.model, v->dir, &o, &err) != WEIR_OK)
        return weir_edits_fail(v->cli, &err);
    return weir_made_read(&v->made, v->cli, v->dir, weir_edit_about_of(v->edit)->json);
}

static int open_text(verification *v)
{
    weir_err err = {0};
    int code = weir_editor_set_run(&v->e);
    if (!weir_cli_given(v->cli, "bos"))
        v->e.o.bos = v->made.bos;
    if (code == WEIR_EXIT_OK && weir_rome_prefixes_new(&v->e.prefixes, (const char *const *)v->made.prefix,
                                                       v->made.n_prefixes, &err) != WEIR_OK)
        code = weir_cli_fail(v->cli, &err);
    return code == WEIR_EXIT_OK ? weir_rome_texts_open(&v->text, &v->e, v->a->text) : code;
}

/* The record of a request; NULL: the file has none. */
static const weir_fact *record_of(const verification *v, const weir_made_request *r)
{
    for (int64_t i = 0; v->facts && i < weir_fact_list_n(v->facts); i++) {
        const weir_fact *f = weir_fact_list_at(v->facts, i);
        if (strcmp(f->subject, r->subject) == 0 && strcmp(f->prompt, r->prompt) == 0)
            return f;
    }
    return NULL;
}

static bool add_request(verification *v, int64_t i, const weir_fact *f)
{
    const weir_made_request *r = &v->made.request[i];
    const char *truth = f ? f->truth : v->a->truth;
    char *prompt = weir_fact_prompt(r->prompt, r->subject);
    bool ok = prompt && weir_asked_add(&v->asked, WEIR_ASKED_REQUEST, i, prompt, r->target, truth);
    free(prompt);
    for (int64_t j = 0; ok && f && j < f->n_paraphrase; j++)
        ok = weir_asked_add(&v->asked, WEIR_ASKED_PARAPHRASE, i, f->paraphrase[j], r->target, f->truth);
    for (int j = 0; ok && j < v->a->paraphrases.n; j++)
        ok = weir_asked_add(&v->asked, WEIR_ASKED_PARAPHRASE, i, v->a->paraphrases.v[j], r->target, truth);
    for (int64_t j = 0; ok && f && j < f->n_neighbour; j++)
        ok = weir_asked_add(&v->asked, WEIR_ASKED_NEIGHBOUR, i, f->neighbour[j], f->neighbour_truth, r->target);
    for (int j = 0; ok && j < v->a->neighbours.n; j++)
        ok = weir_asked_add(&v->asked, WEIR_ASKED_NEIGHBOUR, i, v->neighbour[j].prompt, v->neighbour[j].answer,
                            r->target);
    return ok;
}

static int make_questions(verification *v)
{
    weir_err err = {0};
    if (v->made.n > 1 && (v->a->paraphrases.n || v->a->neighbours.n || v->a->truth))
        return weir_cli_usage(
            v->cli,
            "%s holds %lld requests: --records brings the true answer, the paraphrases and neighbours "
            "of each",
            v->dir, (long long)v->made.n);
    if (v->a->records && weir_fact_list_read(&v->facts, v->a->records, &err) != WEIR_OK)
        return weir_cli_fail(v->cli, &err);
    const int code = weir_rome_pairs(&v->neighbour, v->cli, "neighbour", &v->a->neighbours);
    if (code != WEIR_EXIT_OK)
        return code;
    for (int64_t i = 0; i < v->made.n; i++) {
        const weir_fact *f = record_of(v, &v->made.request[i]);
        if (v->a->records && !f)
            return weir_cli_error(v->cli, "%s: no record has the prompt \"%s\" and the subject %s", v->a->records,
                                  v->made.request[i].prompt, v->made.request[i].subject);
        if (!add_request(v, i, f))
            return weir_cli_error(v->cli, "out of memory");
    }
    return WEIR_EXIT_OK;
}

/* --- asking */

static int ask_side(verification *v, bool after)
{
    weir_err err = {0};
    weir_asker *a;
    weir_status st = weir_editor_asker(&v->e, after ? v->edit : NULL, &a, &err);
    if (st == WEIR_OK)
        st = weir_asked_ask(&v->asked, after, a, v->e.tok, &v->made, &v->text, v->a->tokens, &err);
    weir_asker_free(a);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_editor_fail(&v->e, &err);
}

/* A threshold that is asked for, of what is not. */
static int check_bounds(verification *v)
{
    static const struct {
        const char *bound, *needs;
    } of[] = {[WEIR_ASKED_PARAPHRASE] = {"min-ps", "--paraphrase"}, [WEIR_ASKED_NEIGHBOUR] = {"min-ns", "--neighbour"}};
    int64_t n[WEIR_ASKED_NEIGHBOUR + 1] = {0};
    for (int64_t i = 0; i < v->asked.n; i++)
        n[v->asked.v[i].kind]++;
    for (int kind = WEIR_ASKED_PARAPHRASE; kind <= WEIR_ASKED_NEIGHBOUR; kind++)
        if (!n[kind] && weir_cli_given(v->cli, of[kind].bound))
            return weir_cli_usage(v->cli, "--%s: there is none to ask: %s or --records brings some", of[kind].bound,
                                  of[kind].needs);
    if (!v->text.n && weir_cli_given(v->cli, "max-drift"))
        return weir_cli_usage(v->cli, "--max-drift: there is no text: --text FILE brings one");
    return WEIR_EXIT_OK;
}

static int ask(verification *v)
{
    const int code = ask_side(v, false);
    return code == WEIR_EXIT_OK ? ask_side(v, true) : code;
}

/* --- judging */

/* Percent of a kind that is right afterwards; of neighbours only those count that were right before. NaN: none. */
static double share_right(const verification *v, weir_asked_kind kind)
{
    int64_t n = 0, right = 0;
    for (int64_t i = 0; i < v->asked.n; i++) {
        const weir_asked *q = &v->asked.v[i];
        if (q->kind != kind || (kind == WEIR_ASKED_NEIGHBOUR && !weir_asked_right(q, &q->before)))
            continue;
        n++;
        right += weir_asked_right(q, &q->after);
    }
    return n ? 100 * (double)right / (double)n : (double)NAN;
}

static double least_p(const verification *v)
{
    double least = 1;
    for (int64_t i = 0; i < v->asked.n; i++)
        if (v->asked.v[i].kind == WEIR_ASKED_REQUEST && !(v->asked.v[i].after.told.target.p >= least))
            least = v->asked.v[i].after.told.target.p;
    return least;
}

static int judge(verification *v)
{
    const weir_verify_check all[WEIR_VERIFY_CHECKS] = {
        {"p", least_p(v), v->a->min_p, false},
        {"PS", share_right(v, WEIR_ASKED_PARAPHRASE), v->a->min_ps, false},
        {"NS", share_right(v, WEIR_ASKED_NEIGHBOUR), v->a->min_ns, false},
        {"drift", 100 * (exp(v->asked.text_after - v->asked.text_before) - 1), v->a->max_drift, true},
    };
    memcpy(v->checks, all, sizeof all);
    return WEIR_EXIT_OK;
}

bool weir_verify_kept(const weir_verify_check *c)
{
    return isnan(c->value) || (c->most ? c->value <= c->bound : c->value >= c->bound);
}

static bool all_pass(const verification *v)
{
    bool ok = true;
    for (int i = 0; i < WEIR_VERIFY_CHECKS; i++)
        ok = ok && weir_verify_kept(&v->checks[i]);
    return ok;
}

/* --- for people */

static void print_line(const char *title, const char *prompt, const char *answer, const char *verdict)
{
    char *text = strdup(prompt), *end = strdup(answer);
    if (text && end) {
        weir_make_printable(text);
        weir_make_printable(end);
        printf("%-10s %s -> %s%s\n", title, text, end, verdict);
    }
    free(text);
    free(end);
}

static void print_change(const verification *v, const weir_asked *q)
{
    const weir_made_request *r = &v->made.request[q->request];
    if (v->made.n_prefixes)
        printf("prefixed p %.3g, then %.3g; said behind %lld of %lld prefixes, then %lld\n", q->before.prefixed_p,
               q->after.prefixed_p, (long long)q->before.prefixed_said, (long long)v->made.n_prefixes,
               (long long)q->after.prefixed_said);
    weir_rome_numbers_print(stdout, &r->numbers);
    printf("%s%s\n", r->numbers.clamped ? ", at the clamp" : "", r->numbers.converged ? "" : ", not reached");
}

static const char *verdict(const weir_asked *q)
{
    const bool right = weir_asked_right(q, &q->after);
    switch (q->kind) {
    case WEIR_ASKED_REQUEST:
        return "";
    case WEIR_ASKED_PARAPHRASE:
        return right ? ": taken" : ": not taken";
    default:
        return !weir_asked_right(q, &q->before) ? ": was not known before" : right ? ": kept" : ": LOST";
    }
}

static void print_asked(const verification *v, const weir_asked *q)
{
    print_line(weir_asked_kind_name[q->kind], q->prompt, q->answer, verdict(q));
    weir_told_say(stdout, "before", &q->before.told);
    weir_told_say(stdout, "after", &q->after.told);
    if (q->kind == WEIR_ASKED_REQUEST)
        print_change(v, q);
}

static void print_text(const verification *v)
{
    static const char *const what[WEIR_VERIFY_CHECKS] = {"p of the new answer", "paraphrases taken, %",
                                                         "neighbours kept, %", "perplexity drift, %"};
    for (int64_t i = 0; i < v->asked.n; i++)
        print_asked(v, &v->asked.v[i]);
    if (!isnan(v->asked.text_before))
        printf("text       %s: perplexity %.4g, then %.4g\n", v->text.name, exp(v->asked.text_before),
               exp(v->asked.text_after));
    putchar('\n');
    for (int i = 0; i < WEIR_VERIFY_CHECKS; i++) {
        const weir_verify_check *c = &v->checks[i];
        if (isnan(c->value))
            printf("%-22s %10s  nothing was asked\n", what[i], "-");
        else
            printf("%-22s %10.4g  %s %-6g %s\n", what[i], c->value, c->most ? "at most" : "at least", c->bound,
                   weir_verify_kept(c) ? "ok" : "FAILED");
    }
}

/* --- for programs */

static void write_side(weir_jsonw *w, const char *key, const weir_asked *q, const weir_asked_side *s)
{
    weir_jsonw_key(w, key);
    weir_jsonw_object(w);
    weir_jsonw_key(w, "answer");
    weir_told_write(w, &s->told);
    if (q->other)
        weir_jsonw_key_double(w, "other_p", s->other.p);
    weir_jsonw_key_bool(w, "right", weir_asked_right(q, s));
    if (q->kind == WEIR_ASKED_REQUEST) {
        weir_jsonw_key_double(w, "prefixed_p", s->prefixed_p);
        weir_jsonw_key_int(w, "prefixed_said", s->prefixed_said);
    }
    weir_jsonw_end(w);
}

static void write_request(weir_jsonw *w, const weir_made_request *r)
{
    weir_jsonw_object(w);
    weir_told_request(w, &(weir_rome_request){r->prompt, r->subject, r->target});
    weir_rome_numbers_write(w, &r->numbers);
    weir_jsonw_end(w);
}

static void write_asked(weir_jsonw *w, const weir_asked *q)
{
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "kind", weir_asked_kind_name[q->kind]);
    weir_jsonw_key_int(w, "request", q->request);
    weir_jsonw_key_cstr(w, "prompt", q->prompt);
    weir_jsonw_key_cstr(w, "answer", q->answer);
    weir_jsonw_key_cstr(w, "other", q->other);
    write_side(w, "before", q, &q->before);
    write_side(w, "after", q, &q->after);
    weir_jsonw_end(w);
}

static void write_text(weir_jsonw *w, const verification *v)
{
    weir_jsonw_key(w, "text");
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "name", v->text.name);
    weir_jsonw_key_cstr(w, "sha256", v->text.sha256);
    weir_jsonw_key_double(w, "perplexity_before", exp(v->asked.text_before));
    weir_jsonw_key_double(w, "perplexity_after", exp(v->asked.text_after));
    weir_jsonw_end(w);
}

static void write_checks(weir_jsonw *w, const verification *v)
{
    weir_jsonw_key(w, "checks");
    weir_jsonw_array(w);
    for (int i = 0; i < WEIR_VERIFY_CHECKS; i++) {
        const weir_verify_check *c = &v->checks[i];
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "name", c->name);
        weir_jsonw_key_double(w, "value", c->value);
        weir_jsonw_key_double(w, c->most ? "at_most" : "at_least", c->bound);
        weir_jsonw_key_bool(w, "ok", weir_verify_kept(c));
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void print_json(const verification *v)
{
    weir_jsonw w;
    const weir_edit_about *about = weir_edit_about_of(v->edit);
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-verify");
    weir_jsonw_key_int(&w, "format_version", 1);
    weir_jsonw_key_cstr(&w, "model", v->e.info->name);
    weir_jsonw_key_cstr(&w, "fingerprint", v->e.fingerprint);
    weir_jsonw_key_cstr(&w, "dir", v->dir);
    weir_jsonw_key_cstr(&w, "sha256", about->sha256);
    weir_jsonw_key_cstr(&w, "method", about->method);
    weir_jsonw_key_int(&w, "prefixes", v->made.n_prefixes);
    weir_jsonw_key(&w, "edits");
    weir_jsonw_array(&w);
    weir_edits_write(&v->e.edits, &w);
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "requests");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < v->made.n; i++)
        write_request(&w, &v->made.request[i]);
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "asked");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < v->asked.n; i++)
        write_asked(&w, &v->asked.v[i]);
    weir_jsonw_end(&w);
    write_text(&w, v);
    write_checks(&w, v);
    weir_jsonw_key_bool(&w, "ok", all_pass(v));
    weir_jsonw_end(&w);
    putchar('\n');
}

static int write_report(verification *v)
{
    const weir_verified all = {.e = &v->e,
                               .edit = v->edit,
                               .dir = v->dir,
                               .made = &v->made,
                               .text = &v->text,
                               .asked = &v->asked,
                               .check = v->checks};
    if (!v->a->report)
        return WEIR_EXIT_OK;
    const int code = weir_verify_write(&all, v->a->report);
    if (code == WEIR_EXIT_OK)
        weir_cli_note(v->cli, "%s: the report; weir notebook-export %s -o edit.html shows it", v->a->report,
                      v->a->report);
    return code;
}

static int run(weir_cli *cli, void *args)
{
    verification v = {.cli = cli, .a = args};
    int (*const steps[])(verification *) = {open_report,  open_edit, open_text, make_questions,
                                            check_bounds, ask,       judge,     write_report};
    v.e = (weir_editor){.cli = cli, .a = &v.a->how};
    cli->quiet = v.a->out.quiet;
    int code = WEIR_EXIT_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == WEIR_EXIT_OK; i++)
        code = steps[i](&v);
    if (code == WEIR_EXIT_OK) {
        v.a->out.json ? print_json(&v) : print_text(&v);
        code = all_pass(&v) ? WEIR_EXIT_OK : WEIR_EXIT_FALSE;
    }
    weir_asked_free(&v.asked);
    weir_rome_texts_free(&v.text);
    weir_rome_pairs_free(v.neighbour, v.a->neighbours.n);
    weir_fact_list_free(v.facts);
    weir_made_free(&v.made);
    weir_edit_free(v.edit);
    weir_editor_close(&v.e);
    return code;
}

const weir_tool weir_rome_verify = {
    .name = "verify",
    .summary = "check an edit: the request, paraphrases, neighbours, and a text",
    .operands = "DIR",
    .about =
        "Asks the model without the edit and with it: its requests, alone and behind the prefixes that it was made "
        "with; paraphrases, which should follow; neighbours, which should stay; and the perplexity of a text. Shows "
        "what the search of the edit came to (k.u near 0, or a cosine far below 1, is how edits break models). Exits "
        "with 3 if a threshold is not kept. With --edit the model has those edits on both sides. -o FILE.h5 keeps "
        "all of it, each text's perplexity, and what the edit does in the stream behind its prompts, for notebooks.",
    .example =
        "weir rome edit -s \"Mount Hood\" -p \"{} rises from the\" --target Caucasus -o hood --layer 4 --identity "
        "--no-prefixes -q\n"
        "weir rome verify hood --truth Cascades --paraphrase \"Mount Hood is a peak of the\" -o hood.h5",
    .options = options,
    .rules = rules,
    .args_size = sizeof(verify_args),
    .run = run,
};

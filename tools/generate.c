/* generate: a model goes on with a text. The table of its options, and the order of its work; tools/generate/job.h has
 * the map of the rest. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "generate/job.h"

#define AT(field) offsetof(weir_gen_args, field)
static const weir_opt how_opts[] = {
    {"max-tokens", 0, NULL, WEIR_OPT_INT, "N", 1, 1 << 24, "64", "new tokens of each text at most", AT(max_tokens)},
    {"samples", 'n', NULL, WEIR_OPT_INT, "N", 1, 100000, "1", "texts for each prompt; several need --temperature",
     AT(samples)},
    {"temperature", 'T', NULL, WEIR_OPT_REAL, "X", 0, 0, "0",
     "0: greedy, the likeliest token each time. Else tokens are drawn; below 1 the likely ones more often than the "
     "model says, above 1 less often",
     AT(temperature)},
    {"top-k", 0, NULL, WEIR_OPT_INT, "K", 0, 0, "0", "draw from the K likeliest tokens; 0: from all", AT(top_k)},
    {"top-p", 0, NULL, WEIR_OPT_REAL, "P", 0, 0, "1",
     "draw from the likeliest tokens that have P of the probability together; 1: from all", AT(top_p)},
    {"min-p", 0, NULL, WEIR_OPT_REAL, "P", 0, 0, "0",
     "draw from tokens at least P times as likely as the likeliest; 0: from all", AT(min_p)},
    {"repetition-penalty", 0, NULL, WEIR_OPT_REAL, "R", 0, 0, "1",
     "divide the positive logits of tokens that the text already has by R, multiply the negative ones; 1: leave them",
     AT(repetition_penalty)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "the same seed gives the same texts", AT(seed)},
    {"stop", 0, NULL, WEIR_OPT_LIST, "TEXT", 0, 0, NULL, "end before this text", AT(stop)},
    {"stop-id", 0, NULL, WEIR_OPT_LIST, "ID", 0, 0, NULL, "end at the token of this number", AT(stop_id)},
    {"ignore-eos", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "go on behind the tokens that end a text", AT(ignore_eos)},
};
static const weir_opt_group how_group = {"How to go on", how_opts, sizeof how_opts / sizeof *how_opts};

static const weir_opt show_opts[] = {
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv|ndjson", 0, 0, "text",
     "text: prompt and continuation, as they come; tsv: a line a token; ndjson: an object a text. --json: one object",
     AT(format)},
    {"logprob", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "with --json, tsv, ndjson or --dump, the log-probability of each token, as the model has it before temperature "
     "and the like",
     AT(logprob)},
    {"compare", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "show two texts side by side: of the model as it is, and as the edits and interventions of this command line "
     "make it",
     AT(compare)},
    {"color", 0, "colour", WEIR_OPT_CHOICE, WEIR_COLOUR_WORDS, 0, 0, "auto",
     "auto: what the terminal can; NO_COLOR is respected", AT(colour)},
    {"width", 0, NULL, WEIR_OPT_INT, "N", 20, 10000, NULL, "columns of --compare (the terminal's, else 120)",
     AT(width)},
};
static const weir_opt_group show_group = {"What to show", show_opts, sizeof show_opts / sizeof *show_opts};

static const weir_opt dump_opts[] = {
    {"dump", 'o', "out", WEIR_OPT_STR, "FILE.h5", 0, 0, NULL,
     "record hook points of every token, of the prompt and new, to this HDF5 file, as weir trace does", AT(dump)},
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL, "with --dump: layers from 0: 6, 0-3,7, all",
     AT(layers)},
    {"hooks", 'k', NULL, WEIR_OPT_LIST, "NAMES", 0, 0, NULL, "with --dump: hook points by name, as in weir trace",
     AT(hooks)},
    {"site", 's', NULL, WEIR_OPT_LIST, "SITES", 0, 0, NULL, "with --dump: hook points by short name, as there",
     AT(sites)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "replace what an interrupted run left in FILE.h5.part, and take edits of another model", AT(force)},
};
static const weir_opt_group dump_group = {"What to record", dump_opts, sizeof dump_opts / sizeof *dump_opts};

static const weir_opt row_opts[] = {
    {"ids", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "the prompts are token ids, not words", AT(session.rows.ids)},
    {"bos", 0, NULL, WEIR_OPT_CHOICE, "auto|yes|no", 0, 0, "auto",
     "begin prompts with the BOS token; auto: as the tokenizer says", AT(session.rows.bos)},
    {"ctx", 0, NULL, WEIR_OPT_INT, "N", 1, 0, NULL,
     "tokens of prompt and text together at most; without it the model's context", AT(session.rows.ctx)},
};
static const weir_opt_group row_group = {"Tokens", row_opts, sizeof row_opts / sizeof *row_opts};

static const weir_opt_use options[] = {{&how_group, 0},
                                       {&show_group, 0},
                                       {&dump_group, 0},
                                       {&weir_opts_model, AT(session.model)},
                                       {&weir_opts_text, AT(session.text)},
                                       {&row_group, 0},
                                       {&weir_opts_edit, AT(session.edit)},
                                       {&weir_opts_attach, AT(session.attach)},
                                       {&weir_opts_run, AT(session.run)},
                                       {&weir_opts_out, AT(session.out)},
                                       {NULL, 0}};

static const weir_opt_rule rules[] = {
    {"json", WEIR_OPT_EXCLUDES, "format"},    {"compare", WEIR_OPT_EXCLUDES, "dump"},
    {"width", WEIR_OPT_NEEDS, "compare"},     {"layer", WEIR_OPT_NEEDS, "dump"},
    {"hooks", WEIR_OPT_NEEDS, "dump"},        {"site", WEIR_OPT_NEEDS, "dump"},
    {"force", WEIR_OPT_NEEDS, "dump|edit"},   {"top-k", WEIR_OPT_NEEDS, "temperature"},
    {"top-p", WEIR_OPT_NEEDS, "temperature"}, {"min-p", WEIR_OPT_NEEDS, "temperature"},
    {"seed", WEIR_OPT_NEEDS, "temperature"},  {NULL, WEIR_OPT_NEEDS, NULL}};

/* --- options that need no model */

/* The library's words are those of its fields: top_p is --top-p. */
static int check_sampling(weir_gen_job *j)
{
    weir_err err = {0};
    const weir_gen_args *a = j->a;
    weir_sampling_init(&j->sampling);
    /* What is no more than 0 as a float is still no 0, which would mean greedy. */
    j->sampling.temperature = a->temperature > 0 ? fmaxf((float)a->temperature, FLT_TRUE_MIN) : 0;
    j->sampling.top_k = a->top_k;
    j->sampling.top_p = (float)a->top_p;
    j->sampling.min_p = (float)a->min_p;
    j->sampling.repetition_penalty = (float)a->repetition_penalty;
    j->sampling.seed = (uint64_t)a->seed;
    if (weir_sampling_check(&j->sampling, &err) == WEIR_OK)
        return WEIR_EXIT_OK;
    for (char *c = err.msg; *c && *c != ' '; c++)
        *c = *c == '_' ? '-' : *c;
    return weir_cli_usage(j->cli, "--%s", err.msg);
}

/* Does the command line change what the model computes, or may it? */
static bool changes_model(const weir_cli *cli)
{
    static const char *const option[] = {"edit", "ablate", "scale", "add", "set", "patch", "project-out", "hook"};
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (weir_cli_given(cli, option[i]))
            return true;
    return false;
}

static int check_arguments(weir_gen_job *j)
{
    const weir_gen_args *a = j->a;
    j->format = a->session.out.json ? WEIR_GEN_JSON : (weir_gen_format)a->format;
    if (a->dump && strcmp(a->dump, "-") == 0)
        return weir_cli_usage(j->cli, "--dump -: a dump is written out of order and needs a file: name one");
    if (a->samples > 1 && a->temperature == 0)
        return weir_cli_usage(j->cli,
                              "--samples %lld: all would be the same text, because greedy sampling draws nothing: "
                              "add --temperature",
                              (long long)a->samples);
    if (a->compare && j->format == WEIR_GEN_TSV)
        return weir_cli_usage(j->cli, "--compare: its formats are text, ndjson and --json");
    if (a->compare && !changes_model(j->cli))
        return weir_cli_usage(j->cli, "--compare: nothing on this command line changes the model: add --edit, or an "
                                      "intervention such as --ablate");
    if (a->logprob && j->format == WEIR_GEN_TEXT && !a->dump)
        return weir_cli_usage(j->cli, "--logprob has no place in text: use --format tsv or ndjson, --json or --dump");
    return check_sampling(j);
}

/* --- options that need one */

static bool add_end(weir_gen_job *j, int64_t id)
{
    int32_t *p = realloc(j->end_id, sizeof *p * (size_t)(j->n_ends + 1));
    if (p) {
        j->end_id = p;
        j->end_id[j->n_ends++] = (int32_t)id;
    }
    return p != NULL;
}

static int read_ends(weir_gen_job *j)
{
    const weir_gen_args *a = j->a;
    const weir_tokenizer *tok = j->session.tok;
    const int32_t *ends = NULL;
    int64_t n = tok && !a->ignore_eos ? weir_tokenizer_ends(tok, &ends) : 0, id;
    bool ok = true;
    for (int64_t i = 0; i < n; i++)
        ok = ok && add_end(j, ends[i]);
    j->n_eos = j->n_ends;
    for (int i = 0; ok && i < a->stop_id.n; i++) {
        if (!weir_parse_int(a->stop_id.v[i], &id) || id < 0 || id >= j->session.info->V)
            return weir_cli_usage(j->cli, "--stop-id %s: a token id is a number from 0 to %lld", a->stop_id.v[i],
                                  (long long)j->session.info->V - 1);
        ok = add_end(j, id);
    }
    if (a->stop.n && !tok)
        return weir_cli_usage(j->cli, "--stop %s: this model has no tokenizer, so that there is no text", a->stop.v[0]);
    if (!tok && !a->stop_id.n)
        weir_cli_note(j->cli, "without a tokenizer no token is known to end a text");
    return ok ? WEIR_EXIT_OK : weir_cli_error(j->cli, "out of memory");
}

static int open_runs(weir_gen_job *j)
{
    weir_session *s = &j->session;
    weir_err err = {0};
    s->slots = weir_gen_slots(j);
    s->max_len = weir_gen_longest(j);
    int code = weir_session_run(s);
    if (code == WEIR_EXIT_OK && j->a->dump)
        code = weir_gen_record_open(j);
    if (code == WEIR_EXIT_OK)
        code = weir_session_prepare(s, WEIR_FINAL);
    if (code == WEIR_EXIT_OK && j->a->compare)
        code = weir_session_plain_run(s, &j->plain_run);
    if (code == WEIR_EXIT_OK && j->plain_run && weir_run_prepare(j->plain_run, WEIR_FINAL, &err) != WEIR_OK)
        code = weir_cli_fail(j->cli, &err);
    return code;
}

static int open_all(weir_gen_job *j)
{
    weir_session *s = &j->session;
    s->in.one_sentence = true;
    int code = check_arguments(j);
    if (code == WEIR_EXIT_OK)
        code = weir_session_model(s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_text(s);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = read_ends(j);
    if (code == WEIR_EXIT_OK)
        code = weir_gen_prompts_read(j);
    if (code == WEIR_EXIT_OK)
        code = open_runs(j);
    if (code == WEIR_EXIT_OK)
        code = weir_gen_sequences(j, &j->arm);
    if (code == WEIR_EXIT_OK && j->a->compare)
        code = weir_gen_sequences(j, &j->plain);
    j->terminal = isatty(STDOUT_FILENO);
    j->shade = (int)weir_colour_of((weir_colour_asked)j->a->colour, stdout);
    return code;
}

/* --- running */

static int run_arms(weir_gen_job *j)
{
    int code = WEIR_EXIT_OK;
    j->arm.run = j->session.run;
    j->plain.run = j->plain_run;
    if (j->a->compare)
        code = weir_gen_decode(j, &j->plain);
    else
        j->arm.grown = weir_gen_show_grown;
    return code == WEIR_EXIT_OK ? weir_gen_decode(j, &j->arm) : code;
}

/* What happened to the texts, for people. */
static void say_end(const weir_gen_job *j)
{
    char tokens[32];
    if (j->seconds > 0 && j->generated)
        weir_cli_note(j->cli, "%s tokens, %.1f a second", weir_commas(j->generated, tokens),
                      (double)j->generated / j->seconds);
    weir_attach_say(&j->session.attach, j->cli);
}

static int run_all(weir_gen_job *j)
{
    weir_err err = {0};
    int code = run_arms(j);
    int stopped = weir_signals_seen();
    if (code == WEIR_EXIT_OK && j->a->compare)
        code = weir_gen_compare(j);
    else if (code == WEIR_EXIT_OK)
        weir_gen_show_end(j);
    fflush(stdout);
    if (code == WEIR_EXIT_OK && stopped) {
        code = weir_cli_error(j->cli, "stopped by signal %d behind %lld tokens", stopped, (long long)j->generated);
    } else if (code == WEIR_EXIT_OK) {
        if (weir_run_finish(j->session.run, stderr, &err) != WEIR_OK)
            code = weir_cli_fail(j->cli, &err);
        say_end(j);
    }
    return weir_gen_record_close(j, code);
}

static void close_all(weir_gen_job *j)
{
    weir_gen_record_close(j, WEIR_EXIT_FAILED);
    weir_gen_sequences_free(j, &j->arm);
    weir_gen_sequences_free(j, &j->plain);
    weir_gen_prompts_free(j);
    weir_run_free(j->plain_run);
    weir_session_close(&j->session);
    free(j->end_id);
    free(j);
}

static int run(weir_cli *cli, void *args)
{
    weir_gen_args *a = args;
    cli->quiet = a->session.out.quiet;
    a->session.rows.positions = "all";
    weir_gen_job *j = calloc(1, sizeof *j);
    if (!j)
        return weir_cli_error(cli, "out of memory");
    *j = (weir_gen_job){.cli = cli, .a = a, .session = {.cli = cli, .a = &a->session}};
    int code = open_all(j);
    if (code == WEIR_EXIT_OK)
        code = run_all(j);
    close_all(j);
    return code;
}

const weir_tool weir_tool_generate = {
    .name = "generate",
    .summary = "let a model go on with a text, as it is or as edits and interventions make it",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about =
        "Runs the model on each prompt and lets it go on, token by token, greedily or by drawing. Prompts are worked "
        "on together; each text is the same as if it were alone, whatever the threads. Interventions and hooks act on "
        "the "
        "prompt and on every new token, at positions that count from the prompt's begin; a negative position counts "
        "from the newest token. Without a prompt, standard input is read; a terminal or an empty input means the first "
        "of the sentences that come with brook.",
    .example = "weir generate 'The capital city of Colombia is'\n"
               "weir generate -n 2 --temperature 0.8 --top-p 0.95 --seed 7 --max-tokens 20 'The river'\n"
               "weir generate --stop . --logprob --format tsv 'The capital city of Colombia is'\n"
               "weir generate --compare --ablate blocks.7.hook_mlp_out 'The capital city of Colombia is'\n"
               "weir generate --max-tokens 8 --layer 6 --dump grown.h5 'The river bends'",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_gen_args),
    .run = run,
    .more_help = weir_attach_help,
};

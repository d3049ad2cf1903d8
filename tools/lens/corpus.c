#include "corpus.h"

#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "cli/say.h"
#include "neurons/ask.h"

bool weir_lens_is_corpus(const weir_lens_job *j)
{
    return j->a->corpus || j->result;
}

/* --- the command line */

static int find_results(weir_lens_job *j)
{
    const weir_cli *cli = j->cli;
    if (j->a->merge && cli->n_operands == 0)
        return weir_cli_usage(cli, "--merge: the results to join are needed");
    const char *path = j->a->from ? j->a->from : cli->n_operands ? cli->operand[0] : NULL;
    if (j->a->merge || (path && (j->a->from || cli->n_operands == 1) && weir_survey_is_file(path)))
        j->result = path;
    for (int i = 1; i < cli->n_operands && !j->result; i++)
        if (weir_survey_is_file(cli->operand[0]) && weir_survey_is_file(cli->operand[i]))
            return weir_cli_usage(cli, "%s and %s are results: --merge joins the shards of one text", cli->operand[0],
                                  cli->operand[i]);
    if (j->result && j->a->from && cli->n_operands)
        return weir_cli_usage(cli, "--from %s, but \"%s\" was given too", j->a->from, cli->operand[0]);
    return WEIR_EXIT_OK;
}

static const char *first_given(const weir_cli *cli, const char *const *names)
{
    for (; *names; names++)
        if (weir_cli_given(cli, *names))
            return *names;
    return NULL;
}

/* An option that cannot be followed would be a wrong answer without a word. */
static int check_meaning(const weir_lens_job *j)
{
    static const char *const of_positions[] = {"target", "contrast", "stat", "k", "bottom-up", "color", "width", NULL};
    static const char *const of_counting[] = {"site",       "layer",        "layer-step", "norm", "tuned",
                                              "no-softcap", "mask-padding", "positions",  "mask", NULL};
    static const char *const of_run[] = {"model", "batch", "kernel", NULL};
    const char *name = first_given(j->cli, of_positions);
    if (name)
        return weir_cli_usage(j->cli, "--%s is about single positions, and this is about a whole text (--corpus)",
                              name);
    name = j->result ? first_given(j->cli, of_counting) : NULL;
    if (name)
        return weir_cli_usage(j->cli, "--%s says what to count, and %s holds what was counted: run --corpus again",
                              name, j->result);
    name = j->result ? first_given(j->cli, of_run) : NULL;
    if (name)
        return weir_cli_usage(j->cli, "--%s is about a run, and %s holds what one gave", name, j->result);
    if (j->format == WEIR_LENS_SVG || j->format == WEIR_LENS_HTML)
        return weir_cli_usage(j->cli,
                              "--corpus: its formats are text, tsv, ndjson and h5 (--stats-plot FILE.svg draws it)");
    return WEIR_EXIT_OK;
}

int weir_lens_corpus_options(weir_lens_job *j)
{
    int code = find_results(j);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_lens_is_corpus(j))
        return check_meaning(j);
    if (weir_cli_given(j->cli, "mask"))
        return weir_cli_usage(j->cli, "--mask is about the statistics of --corpus");
    return WEIR_EXIT_OK;
}

/* --- the sink */

typedef struct counting {
    weir_lens_sink sink; /* first: what callers hold */
    weir_survey *s;
    const uint8_t *kind; /* [V] why an id is left out */
    float *logprob;      /* [n_lines, n] of a piece */
    uint8_t *mask;       /* [n] */
    int64_t room;        /* positions of these */
    int n_lines;
} counting;

static bool make_room(counting *c, int64_t n)
{
    if (n <= c->room)
        return true;
    free(c->logprob);
    free(c->mask);
    c->logprob = malloc(sizeof *c->logprob * (size_t)n * (size_t)c->n_lines);
    c->mask = malloc((size_t)n);
    c->room = c->logprob && c->mask ? n : 0;
    return c->room > 0;
}

static weir_status piece(weir_lens_sink *sink, const weir_lens_piece *p, weir_err *err)
{
    counting *c = (counting *)sink;
    if (!make_room(c, p->n))
        return weir_fail(err, WEIR_E_NOMEM, "out of memory for the statistics of a text");
    for (int64_t i = 0; i < p->n; i++)
        c->mask[i] = c->kind[p->id[i]];
    for (int64_t i = 0; i < p->n * c->n_lines; i++)
        c->logprob[i] = -p->stat[WEIR_STAT_CE][i];
    const weir_survey_batch b = {.n = p->n,
                                 .kl_final = p->stat[WEIR_STAT_KL],
                                 .logprob = c->logprob,
                                 .n_targets = 1,
                                 .top_id = p->top_id,
                                 .k = 1,
                                 .next = p->next,
                                 .mask = c->mask,
                                 .docs = p->doc_begins};
    return weir_survey_add(c->s, &b, err);
}

static weir_status begin(weir_lens_sink *sink, const weir_lens_about *a, weir_err *err)
{
    (void)sink, (void)a, (void)err;
    return WEIR_OK;
}

/* --- what it is about */

static char *source_of(const weir_lens_job *j)
{
    const weir_lens_about *a = &j->about;
    char *text = NULL;
    size_t size;
    weir_jsonw w;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    weir_jsonw_init(&w, f);
    weir_jsonw_object(&w);
    weir_jsonw_key(&w, "text");
    weir_jsonw_json(&w, a->run.text);
    weir_jsonw_key_cstr(&w, "bos", a->run.bos ? "yes" : "no");
    weir_jsonw_key_int(&w, "ctx", a->run.ctx);
    weir_jsonw_key_int(&w, "stride", a->run.stride);
    weir_jsonw_key_cstr(&w, "positions", j->a->session.rows.positions);
    weir_jsonw_key_cstr(&w, "mask", j->a->mask);
    weir_jsonw_end(&w);
    bool bad = ferror(f) != 0;
    if (fclose(f) == 0 && !bad)
        return text;
    free(text);
    return NULL;
}

static weir_status describe(const weir_lens_job *j, weir_survey *s, weir_err *err)
{
    const weir_lens_about *a = &j->about;
    char *source = source_of(j);
    if (!source)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    const weir_survey_about about = {.model = a->run.model,
                                     .fingerprint = a->run.fingerprint,
                                     .tokenizer = a->run.tokenizer,
                                     .source = source,
                                     .interventions = a->run.interventions ? a->run.interventions : "[]",
                                     .lens = a->lens,
                                     .norm = a->norm,
                                     .no_softcap = a->no_softcap,
                                     .padding_masked = a->padding_masked,
                                     .shard = j->shard,
                                     .shards = j->shards};
    weir_status st = weir_survey_set_about(s, &about, err);
    free(source);
    return st;
}

/* --- a run */

static weir_status new_survey(const weir_lens_job *j, weir_survey **s, weir_err *err)
{
    const weir_lens_about *a = &j->about;
    weir_survey_line *line = calloc((size_t)a->n_lines, sizeof *line);
    if (!line)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    for (int l = 0; l < a->n_lines; l++)
        line[l] = (weir_survey_line){a->line[l].name, a->line[l].hook, a->line[l].site, a->line[l].layer};
    weir_status st = weir_survey_new(s, line, a->n_lines, err);
    free(line);
    return st;
}

static int read_masks(const weir_lens_job *j, uint8_t **kind)
{
    weir_err err = {0};
    weir_masks masks;
    weir_status st = weir_masks_parse(&masks, j->a->mask, &err);
    if (st == WEIR_OK)
        st = weir_masks_kinds(&masks, j->session.tok, j->session.info->V, kind, &err);
    weir_masks_free(&masks);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_bad_argument(j->cli, "--mask", &err);
}

static int count(weir_lens_job *j, counting *c)
{
    weir_progress bar;
    j->sink[0] = &c->sink;
    j->cells.sink = j->sink;
    j->cells.n_sinks = 1;
    weir_progress_start(&bar, j->cli);
    int code = j->feed(j);
    weir_progress_stop(&bar, j->cli);
    j->cells.n_sinks = 0;
    return code;
}

static void say(const weir_lens_job *j, const weir_survey *s)
{
    const int64_t rows = weir_survey_counts_of(s).rows;
    const weir_report r = {.model = j->session.model,
                           .run = j->session.run,
                           .docs = j->session.in.docs,
                           .counts = weir_feed_counts_of(j->session.feed),
                           .rows = rows,
                           .rows_run = rows,
                           .seconds = weir_now() - j->start,
                           .attach = &j->session.attach};
    weir_report_say(&r, j->cli);
}

int weir_lens_corpus_put(weir_lens_job *j)
{
    weir_err err = {0};
    uint8_t *kind = NULL;
    counting c = {.sink = {.begin = begin, .piece = piece, .out = stdout}, .n_lines = j->about.n_lines};
    int code = read_masks(j, &kind);
    c.kind = kind;
    if (code == WEIR_EXIT_OK && new_survey(j, &c.s, &err) != WEIR_OK)
        code = weir_cli_fail(j->cli, &err);
    if (code == WEIR_EXIT_OK)
        code = count(j, &c);
    if (code == WEIR_EXIT_OK && describe(j, c.s, &err) != WEIR_OK)
        code = weir_cli_fail(j->cli, &err);
    if (code == WEIR_EXIT_OK)
        code = weir_lens_corpus_show(j, c.s);
    if (code == WEIR_EXIT_OK && !j->dump)
        say(j, c.s);
    weir_survey_free(c.s);
    free(c.logprob);
    free(c.mask);
    free(kind);
    return code;
}

/* --- results */

static int add(const weir_lens_job *j, weir_survey **s, const char *path)
{
    weir_err err = {0};
    weir_survey *more;
    if (weir_survey_read(&more, path, &err) != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    if (!*s) {
        *s = more;
        return WEIR_EXIT_OK;
    }
    weir_status st = weir_survey_merge(*s, more, &err);
    weir_survey_free(more);
    if (st == WEIR_OK)
        return WEIR_EXIT_OK;
    return weir_cli_fail_at(j->cli, path, &err);
}

/* Joined shards are the whole text; what is shown alone may be one of them. */
static int check_whole(const weir_lens_job *j, const weir_survey *s)
{
    const int64_t missing = weir_survey_missing(s, 0), shards = weir_survey_about_of(s)->shards;
    if (missing < 0)
        return WEIR_EXIT_OK;
    if (j->a->merge)
        return weir_cli_error(j->cli, "--merge: shard %lld/%lld is missing: name its result too", (long long)missing,
                              (long long)shards);
    weir_cli_note(j->cli, "%s is shard %lld/%lld, not the whole text: --merge joins all of them", j->result,
                  (long long)weir_survey_about_of(s)->shard, (long long)shards);
    return WEIR_EXIT_OK;
}

int weir_lens_corpus_results(weir_lens_job *j)
{
    weir_survey *s = NULL;
    int n = j->a->merge ? j->cli->n_operands : 1, code = WEIR_EXIT_OK;
    for (int i = 0; i < n && code == WEIR_EXIT_OK; i++)
        code = add(j, &s, j->a->merge ? j->cli->operand[i] : j->result);
    if (code == WEIR_EXIT_OK)
        code = check_whole(j, s);
    if (code == WEIR_EXIT_OK)
        code = weir_lens_corpus_show(j, s);
    weir_survey_free(s);
    return code;
}

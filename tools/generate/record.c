/* --dump: what flows at hook points while a text is generated, as weir trace records it. Sequences grow one after the
 * other, so that rows stand in the order of the documents; each sample is a document of its own. The last token is run
 * as well, though nothing follows it: the dump has a row for every token.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "job.h"

typedef struct weir_gen_record {
    weir_dump *dump;
    char *layers, *hooks, *sites, *command_line, *interventions, *edits;
    weir_selector *sel;
    int64_t docs, rows; /* begun; recorded */
    int64_t off;        /* bytes of the document's tokens so far */
    int32_t *target;    /* [batch] */
    float *after;       /* [batch] */
} weir_gen_record;

static int select_points(weir_gen_job *j, weir_gen_record *r)
{
    weir_err err = {0};
    const weir_gen_args *a = j->a;
    if (!weir_opt_list_join(&r->layers, &a->layers) || !weir_opt_list_join(&r->hooks, &a->hooks) ||
        !weir_opt_list_join(&r->sites, &a->sites))
        return weir_cli_error(j->cli, "out of memory");
    const char *layers = r->layers || r->hooks || r->sites ? r->layers : "all";
    if (weir_selector_build(&r->sel, j->session.model, r->hooks, layers, r->sites, &err) != WEIR_OK)
        return weir_cli_bad_argument(j->cli, r->hooks ? "--hooks" : r->sites ? "--site" : "--layer", &err);
    if (weir_selector_has_positions(r->sel))
        return weir_cli_usage(j->cli, "--hooks %s: a position in brackets; a dump of what is generated has all rows",
                              r->hooks);
    return WEIR_EXIT_OK;
}

static weir_status create(weir_gen_job *j, weir_gen_record *r, weir_err *err)
{
    weir_session *s = &j->session;
    weir_dump_options o;
    weir_dump_options_init(&o);
    o.threads = (int)j->a->session.run.threads;
    o.force = j->a->force;
    o.logprob = j->a->logprob;
    o.ctx = s->ctx;
    o.stride = s->stride;
    o.bos = s->bos ? "yes" : "no";
    o.command_line = r->command_line;
    o.interventions = r->interventions;
    o.edits = r->edits;
    o.kernel = weir_run_kernel(s->run);
    o.run_threads = weir_run_threads(s->run);
    o.log = weir_cli_log(j->cli);
    WEIR_TRY(weir_dump_create(&r->dump, j->a->dump, s->model, s->tok, &o, err));
    WEIR_TRY(weir_dump_select(r->dump, r->sel, err));
    WEIR_TRY(weir_run_hook_object(s->run, weir_hook_class_find("record"), r->dump, err));
    return weir_run_declare(s->run, r->dump, err);
}

/* Texts that were drawn are not gone on with, as trace does with a text that is read: only --force helps. */
static int check_part(const weir_gen_job *j)
{
    char part[4200];
    snprintf(part, sizeof part, "%s.part", j->a->dump);
    if (j->a->force || access(part, F_OK) != 0)
        return WEIR_EXIT_OK;
    return weir_cli_error(
        j->cli, "%s is there, left by an interrupted run, which generate cannot go on with: --force begins again",
        part);
}

int weir_gen_record_open(weir_gen_job *j)
{
    weir_err err = {0};
    const size_t batch = (size_t)j->a->session.run.batch;
    weir_gen_record *r = j->record = calloc(1, sizeof *r);
    if (!r)
        return weir_cli_error(j->cli, "out of memory");
    int code = check_part(j);
    if (code == WEIR_EXIT_OK)
        code = select_points(j, r);
    if (code != WEIR_EXIT_OK)
        return code;
    r->command_line = weir_command_line(j->cli);
    r->interventions = weir_attach_interventions(&j->session.attach);
    r->edits = weir_edits_json(&j->session.edits);
    r->target = malloc(batch * sizeof *r->target);
    r->after = malloc(batch * sizeof *r->after);
    if (!r->command_line || !r->interventions || !r->edits || !r->target || !r->after)
        return weir_cli_error(j->cli, "out of memory");
    return create(j, r, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(j->cli, &err);
}

/* Log-probabilities of the prompt's tokens; those of new tokens are known when they are chosen. */
static weir_status find_logprobs(weir_gen_job *j, weir_gen_seq *s, int64_t from, int64_t to, weir_err *err)
{
    weir_gen_record *r = j->record;
    const int64_t prompt = s->prompt->t.n, end = to < prompt ? to : prompt - 1; /* rows [from, end) say something */
    if (!s->logprob || end <= from)
        return WEIR_OK;
    for (int64_t t = from; t < to; t++)
        r->target[t - from] = t < end ? s->id[t + 1] : -1;
    WEIR_TRY(weir_run_logprobs(j->arm.run, r->target, r->after, err));
    memcpy(s->logprob + from + 1, r->after, (size_t)(end - from) * sizeof *r->after);
    return WEIR_OK;
}

static weir_status put_token(weir_gen_job *j, const weir_gen_seq *s, int64_t t, weir_err *err)
{
    weir_gen_record *r = j->record;
    const weir_tokens *p = &s->prompt->t;
    const weir_tokenizer *tok = j->session.tok;
    const int64_t doc = r->docs - 1;
    int64_t len = t < p->n ? p->byte_len[t] : tok ? (int64_t)weir_tokenizer_bytes(tok, s->id[t]).n : 0;
    int64_t off = t < p->n ? p->byte_off[t] : r->off;
    uint8_t flags = t < p->n ? p->flags[t] : tok && weir_tokenizer_is_special(tok, s->id[t]) ? WEIR_TOKEN_SPECIAL : 0;
    const weir_token_rows row = {.n = 1,
                                 .id = &s->id[t],
                                 .doc = &doc,
                                 .pos = &t,
                                 .ctx_pos = &t,
                                 .byte_off = &off,
                                 .byte_len = &len,
                                 .flags = &flags,
                                 .logprob = s->logprob ? &s->logprob[t] : NULL};
    r->off = off + len;
    return weir_dump_tokens(r->dump, &row, err);
}

weir_status weir_gen_record_rows(weir_gen_job *j, weir_gen_seq *s, int64_t from, int64_t to, weir_err *err)
{
    weir_gen_record *r = j->record;
    if (from == 0) {
        WEIR_TRY(weir_dump_doc(r->dump, &s->prompt->doc.doc, s->prompt->doc.source, err));
        r->docs++;
        r->off = 0;
    }
    WEIR_TRY(find_logprobs(j, s, from, to, err));
    for (int64_t t = from; t < to; t++)
        WEIR_TRY(put_token(j, s, t, err));
    r->rows += to - from;
    return weir_dump_flush(r->dump, err);
}

static int end_dump(weir_gen_job *j, weir_gen_record *r, int code)
{
    weir_err err = {0};
    weir_dump_summary sum;
    char rows[32];
    if (code == WEIR_EXIT_OK && !weir_signals_seen()) {
        weir_status st = weir_dump_commit(r->dump, &sum, &err);
        if (st != WEIR_OK)
            return weir_cli_fail(j->cli, &err);
        weir_cli_note(j->cli, "%s: %s rows of %lld document%s, %lld dataset%s", j->a->dump, weir_commas(sum.rows, rows),
                      (long long)sum.docs, sum.docs == 1 ? "" : "s", (long long)sum.datasets,
                      sum.datasets == 1 ? "" : "s");
        return WEIR_EXIT_OK;
    }
    weir_dump_abort(r->dump, weir_signals_seen() && r->rows);
    if (weir_signals_seen() && r->rows)
        weir_cli_error(j->cli,
                       "the %s rows so far are in %s.part (tools read it as it is, generate cannot go on with it)",
                       weir_commas(r->rows, rows), j->a->dump);
    return code;
}

int weir_gen_record_close(weir_gen_job *j, int code)
{
    weir_gen_record *r = j->record;
    if (!r)
        return code;
    if (r->dump)
        code = end_dump(j, r, code);
    weir_selector_free(r->sel);
    void *const own[] = {r->layers, r->hooks, r->sites, r->command_line, r->interventions, r->edits,
                         r->target, r->after, r};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    j->record = NULL;
    return code;
}

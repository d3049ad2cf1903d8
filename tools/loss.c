/* weir loss: how well a model predicts a text: loss, perplexity, bits per byte; of the whole, of each document or of
 * each token; and, where the command line changes values, beside the model as it is. */
#include <math.h>
#include <stdlib.h>

#include "cli/logprob.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/signals.h"

enum { PER_TOTAL, PER_DOC, PER_TOKEN };
enum { FORMAT_TEXT, FORMAT_TSV, FORMAT_NDJSON };
enum { ASKED, PLAIN, ARMS }; /* the run of the command line; the model as it is */

typedef struct loss_args {
    weir_session_args session;
    int per, format;
    const char *out;
    bool force;
} loss_args;

static const weir_opt own_opts[] = {
    {"per", 0, NULL, WEIR_OPT_CHOICE, "total|doc|token", 0, 0, "total", "what a line is about", offsetof(loss_args, per)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv|ndjson", 0, 0, "text",
     "form of the lines; --json: the totals as one object", offsetof(loss_args, format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", offsetof(loss_args, out)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", offsetof(loss_args, force)},
};
static const weir_opt_group own_group = {"What to show", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0}, WEIR_SESSION_OPTIONS(offsetof(loss_args, session)), {NULL, 0}};
static const weir_opt_rule rules[] = {{"json", WEIR_OPT_EXCLUDES, "per"},
                                      {"json", WEIR_OPT_EXCLUDES, "format"},
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

/* Sums over tokens, in their order. */
typedef struct sums {
    int64_t tokens, bytes; /* that were scored, and the bytes of text that they stand for */
    int64_t unscored;      /* tokens of text, not BOS, that begin a window: nothing precedes them */
    double nats[ARMS];     /* -ln p */
} sums;

typedef struct loss {
    weir_cli *cli;
    const loss_args *a;
    weir_session s;
    weir_run *plain; /* NULL: nothing is changed */
    weir_logprobs logprob[ARMS];
    int arms;
    sums all, doc;
    int64_t rows;      /* run so far */
    int64_t doc_index; /* the document whose sums `doc` has; -1: none yet */
    bool begun;        /* what stands above the lines is written: with the first of them */
    FILE *out;
    double start;
} loss;

/* --- lines */

static double per_token(const sums *s, int arm)
{
    return s->nats[arm] / (double)s->tokens;
}

static double per_byte(const sums *s, int arm)
{
    return s->bytes ? s->nats[arm] / M_LN2 / (double)s->bytes : NAN; /* ids without a tokenizer have no bytes */
}

static void put_sums_json(weir_jsonw *w, const loss *l, const sums *s)
{
    static const char *const name[ARMS][3] = {{"loss", "perplexity", "bits_per_byte"},
                                              {"plain_loss", "plain_perplexity", "plain_bits_per_byte"}};
    weir_jsonw_key_int(w, "tokens", s->tokens);
    weir_jsonw_key_int(w, "unscored", s->unscored);
    weir_jsonw_key_int(w, "bytes", s->bytes);
    for (int arm = 0; arm < l->arms; arm++) {
        weir_jsonw_key_double(w, name[arm][0], per_token(s, arm));
        weir_jsonw_key_double(w, name[arm][1], exp(per_token(s, arm)));
        weir_jsonw_key_double(w, name[arm][2], per_byte(s, arm));
    }
}

/* Both forms for programs, of the whole or of a document. */
static void put_record(const loss *l, const sums *s)
{
    const bool doc = l->a->per == PER_DOC;
    weir_jsonw w;
    if (l->a->format == FORMAT_TSV) {
        if (doc)
            fprintf(l->out, "%lld\t", (long long)l->doc_index);
        fprintf(l->out, "%lld\t%lld", (long long)s->tokens, (long long)s->bytes);
        for (int arm = 0; arm < l->arms; arm++)
            fprintf(l->out, "\t%.9g\t%.9g", per_token(s, arm), per_byte(s, arm));
        fputc('\n', l->out);
        return;
    }
    weir_jsonw_init(&w, l->out);
    weir_jsonw_object(&w);
    if (doc)
        weir_jsonw_key_int(&w, "doc", l->doc_index);
    put_sums_json(&w, l, s);
    weir_jsonw_end(&w);
    fputc('\n', l->out);
}

static void put_doc(const loss *l, const sums *s)
{
    if (l->a->format != FORMAT_TEXT) {
        put_record(l, s);
        return;
    }
    fprintf(l->out, "%8lld %8lld", (long long)l->doc_index, (long long)s->tokens);
    for (int arm = 0; arm < l->arms; arm++)
        fprintf(l->out, " %10.4f %10.2f", per_token(s, arm), exp(per_token(s, arm)));
    if (l->plain)
        fprintf(l->out, " %+10.4f", per_token(s, ASKED) - per_token(s, PLAIN));
    fputc('\n', l->out);
}

static void put_json_text(FILE *out, weir_str bytes)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_str(&w, bytes.p, bytes.n);
}

static void put_token(const loss *l, const weir_token_rows *k, int64_t i)
{
    const weir_str bytes = l->s.tok ? weir_tokenizer_bytes(l->s.tok, k->id[i]) : (weir_str){NULL, 0};
    weir_jsonw w;
    if (l->a->format == FORMAT_NDJSON) {
        weir_jsonw_init(&w, l->out);
        weir_jsonw_object(&w);
        weir_jsonw_key_int(&w, "doc", l->doc_index);
        weir_jsonw_key_int(&w, "pos", k->pos[i]);
        weir_jsonw_key_int(&w, "id", k->id[i]);
        weir_jsonw_key(&w, "text");
        weir_jsonw_str(&w, bytes.p, bytes.n);
        weir_jsonw_key(&w, "logprob");
        weir_jsonw_float(&w, l->logprob[ASKED].kept[i]);
        if (l->plain) {
            weir_jsonw_key(&w, "plain_logprob");
            weir_jsonw_float(&w, l->logprob[PLAIN].kept[i]);
        }
        weir_jsonw_end(&w);
        fputc('\n', l->out);
        return;
    }
    const bool tsv = l->a->format == FORMAT_TSV;
    fprintf(l->out, tsv ? "%lld\t%lld\t%d" : "%8lld %6lld %7d", (long long)l->doc_index, (long long)k->pos[i],
            k->id[i]);
    for (int arm = 0; arm < l->arms; arm++)
        fprintf(l->out, tsv ? "\t%.9g" : " %10.4f", (double)l->logprob[arm].kept[i]);
    fputs(tsv ? "\t" : "  ", l->out);
    if (tsv)
        put_json_text(l->out, bytes);
    else
        weir_put_token(l->out, bytes, k->id[i], 0);
    fputc('\n', l->out);
}

static void put_head(loss *l)
{
    static const char *const tsv[] = {"tokens\tbytes\tloss\tbits_per_byte", "doc\ttokens\tbytes\tloss\tbits_per_byte",
                                      "doc\tpos\tid\tlogprob"};
    static const char *const tsv_plain[] = {"\tplain_loss\tplain_bits_per_byte", "\tplain_loss\tplain_bits_per_byte",
                                            "\tplain_logprob"};
    const int per = l->a->per;
    if (l->begun)
        return;
    l->begun = true;
    if (l->a->format == FORMAT_TSV)
        fprintf(l->out, "%s%s%s\n", tsv[per], l->plain ? tsv_plain[per] : "", per == PER_TOKEN ? "\ttext" : "");
    else if (l->a->format == FORMAT_TEXT && per == PER_DOC)
        fprintf(l->out, "%8s %8s %10s %10s%s\n", "document", "tokens", "loss", "perplexity",
                l->plain ? "      plain perplexity difference" : "");
    else if (l->a->format == FORMAT_TEXT && per == PER_TOKEN)
        fprintf(l->out, "%8s %6s %7s %10s%s  token\n", "document", "pos", "id", "logprob",
                l->plain ? "      plain" : "");
}

/* A line of the totals: what it is of each arm, and by how much they differ. */
static void put_total(const loss *l, const char *name, double asked, double plain, const char *unit)
{
    char a[32], b[32], c[32];
    fprintf(l->out, "%-14s %12s", name, weir_rounded(asked, 6, false, a));
    if (l->plain)
        fprintf(l->out, " %12s %12s", weir_rounded(plain, 6, false, b), weir_rounded(asked - plain, 6, true, c));
    fprintf(l->out, "%s%s\n", *unit ? "  " : "", unit);
}

static void put_totals(const loss *l)
{
    const sums *s = &l->all;
    const int plain = l->plain ? PLAIN : ASKED;
    char a[32], b[32];
    if (l->a->format != FORMAT_TEXT) {
        put_record(l, s);
        return;
    }
    fprintf(l->out, "%s tokens scored, %s bytes of text\n", weir_commas(s->tokens, a), weir_commas(s->bytes, b));
    if (l->plain)
        fprintf(l->out, "%-14s %12s %12s %12s\n", "", "changed", "plain", "difference");
    put_total(l, "loss", per_token(s, ASKED), per_token(s, plain), "nats a token");
    put_total(l, "perplexity", exp(per_token(s, ASKED)), exp(per_token(s, plain)), "");
    put_total(l, "bits", per_byte(s, ASKED), per_byte(s, plain), "a byte");
}

/* --- running */

static void end_doc(loss *l)
{
    if (l->a->per == PER_DOC && l->doc_index >= 0 && l->doc.tokens > 0) {
        put_head(l);
        put_doc(l, &l->doc);
    }
    l->doc = (sums){0};
}

static void add(sums *s, const loss *l, const weir_token_rows *k, int64_t i)
{
    if (k->ctx_pos[i] == 0) {
        s->unscored += !(k->flags[i] & WEIR_TOKEN_BOS);
        return;
    }
    s->tokens++;
    s->bytes += k->byte_len[i];
    for (int arm = 0; arm < l->arms; arm++)
        s->nats[arm] -= (double)l->logprob[arm].kept[i];
}

static void take_rows(loss *l, const weir_batch *b)
{
    int64_t next = 0;
    for (int64_t i = 0; i < b->kept.n || next < b->n_docs; i++) {
        for (; next < b->n_docs && b->doc[next].first <= i; next++) {
            end_doc(l);
            l->doc_index = b->doc[next].doc.index;
        }
        if (i >= b->kept.n)
            break;
        add(&l->all, l, &b->kept, i);
        add(&l->doc, l, &b->kept, i);
        if (l->a->per == PER_TOKEN) {
            put_head(l);
            put_token(l, &b->kept, i);
        }
    }
}

static weir_status run_arm(loss *l, int arm, const weir_batch *b, weir_err *err)
{
    weir_run *run = arm == ASKED ? l->s.run : l->plain;
    if (b->restart)
        weir_run_slot_reset(run, 0);
    WEIR_TRY(weir_run_forward(run, b->seq, b->n_seq, WEIR_FINAL, err));
    return weir_logprobs_find(&l->logprob[arm], run, b, err);
}

static weir_status run_batches(loss *l, weir_err *err)
{
    weir_progress progress;
    const weir_batch *b;
    weir_status st;
    weir_progress_start(&progress, l->cli);
    while (!weir_signals_seen() && (st = weir_feed_next(l->s.feed, &b, err)) == WEIR_OK && b) {
        for (int arm = 0; st == WEIR_OK && b->n_seq && arm < l->arms; arm++)
            st = run_arm(l, arm, b, err);
        if (st != WEIR_OK)
            break;
        take_rows(l, b);
        weir_progress_update(&progress, weir_feed_progress(l->s.feed), l->rows += b->rows);
    }
    weir_progress_stop(&progress, l->cli);
    return weir_signals_seen() ? weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen()) : st;
}

static int check_sums(const loss *l)
{
    if (weir_feed_counts_of(l->s.feed).docs == 0)
        return weir_cli_error(l->cli, "the input holds no document");
    if (l->all.tokens == 0)
        return weir_cli_error(l->cli, "no token was scored: nothing precedes the only token of its window (--bos yes "
                                      "puts BOS before it), or --positions leaves none");
    return WEIR_EXIT_OK;
}

static void say(const loss *l)
{
    weir_report r = {.model = l->s.model,
                     .run = l->s.run,
                     .docs = l->s.in.docs,
                     .counts = weir_feed_counts_of(l->s.feed),
                     .rows = l->rows,
                     .rows_run = l->rows,
                     .seconds = weir_now() - l->start,
                     .attach = &l->s.attach};
    weir_report_say(&r, l->cli);
    if (l->all.unscored) {
        char n[32];
        weir_cli_note(l->cli, "not scored, because nothing precedes them in their window: %s (--bos yes scores them)",
                      weir_commas(l->all.unscored, n));
    }
}

static int measure(void *ctx, FILE *out)
{
    loss *l = ctx;
    weir_err err = {0};
    l->out = out;
    if (run_batches(l, &err) != WEIR_OK)
        return weir_cli_fail(l->cli, &err);
    end_doc(l);
    int code = check_sums(l);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_run_finish(l->s.run, l->a->session.out.json ? NULL : out, &err) != WEIR_OK)
        return weir_cli_fail(l->cli, &err);
    if (l->a->session.out.json) {
        weir_jsonw w;
        weir_jsonw_init(&w, out);
        weir_jsonw_object(&w);
        weir_jsonw_key_cstr(&w, "model", l->s.info->name);
        weir_jsonw_key_bool(&w, "bos", l->s.bos);
        put_sums_json(&w, l, &l->all);
        weir_jsonw_key(&w, "interventions");
        weir_attach_write(&l->s.attach, &w);
        weir_jsonw_end(&w);
        fputc('\n', out);
    } else if (l->a->per == PER_TOTAL) {
        put_head(l);
        put_totals(l);
    }
    say(l);
    return WEIR_EXIT_OK;
}

/* --- the tool */

static bool changes_values(const loss *l)
{
    if (l->s.edits.n)
        return true;
    for (int i = 0; i < l->s.attach.n; i++)
        if (weir_run_hook_writes(l->s.run, l->s.attach.hook[i].index))
            return true;
    return false;
}

static int open_arms(loss *l)
{
    weir_err err = {0};
    const int64_t batch = l->a->session.run.batch;
    int code = weir_session_run(&l->s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_prepare(&l->s, WEIR_FINAL);
    if (code == WEIR_EXIT_OK && changes_values(l))
        code = weir_session_plain_run(&l->s, &l->plain);
    l->arms = l->plain ? ARMS : 1;
    for (int arm = 0; code == WEIR_EXIT_OK && arm < l->arms; arm++)
        if (weir_logprobs_new(&l->logprob[arm], batch, &err) != WEIR_OK)
            code = weir_cli_fail(l->cli, &err);
    return code;
}

/* Which file may be replaced: one of the same lines. */
static weir_output_file file_of(const loss_args *a)
{
    static const weir_output_mark forms[][3] = {
        [FORMAT_TEXT] = {{"", " tokens scored, "},
                         {"document   tokens ", NULL},
                         {"document    pos      id    logprob ", NULL}},
        [FORMAT_TSV] = {{"tokens\tbytes\tloss", NULL},
                        {"doc\ttokens\tbytes\tloss", NULL},
                        {"doc\tpos\tid\tlogprob", NULL}},
        [FORMAT_NDJSON] = {{"{\"tokens\":", "\"bits_per_byte\":"},
                           {"{\"doc\":", "\"bits_per_byte\":"},
                           {"{\"doc\":", "\"logprob\":"}}};
    static const weir_output_mark json = {"{\"model\":", "\"bits_per_byte\":"};
    const weir_output_mark *m = a->session.out.json ? &json : &forms[a->format][a->per];
    return (weir_output_file){.path = a->out, .begin = m->begin, .holds = m->holds, .force = a->force};
}

static int run_tool(weir_cli *cli, void *args)
{
    const loss_args *a = args;
    loss l = {.cli = cli, .a = a, .s = {.cli = cli, .a = &a->session}, .doc_index = -1, .start = weir_now()};
    const weir_output_file file = file_of(a);
    cli->quiet = a->session.out.quiet;
    int code = weir_output_free(cli, &file);
    if (code == WEIR_EXIT_OK)
        code = weir_session_model(&l.s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_text(&l.s);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = open_arms(&l);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(cli, &file, measure, &l);
    for (int arm = 0; arm < ARMS; arm++)
        weir_logprobs_free(&l.logprob[arm]);
    weir_run_free(l.plain);
    weir_session_close(&l.s);
    return code;
}

const weir_tool weir_tool_loss = {
    .name = "loss",
    .summary = "how well a model predicts a text: loss, perplexity, bits per byte",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about = "Scores every token given those before it in its window: the mean of -ln p over tokens (loss, in nats), "
             "its exponential (perplexity), and bits per byte of text, which models with other tokenizers can be compared "
             "by. With edits or interventions the model as it is runs beside the changed one, and both are shown. Without a "
             "text, standard input is read; a terminal or an empty input means the 1,000 sentences that come with "
             "brook.",
    .example = "weir loss\n"
               "weir loss --per token 'Boulder is in the state of Colorado.'\n"
               "weir loss --ablate 'blocks.2.hook_mlp_out=zero' 'Boulder is in the state of Colorado.'",
    .options = options,
    .rules = rules,
    .args_size = sizeof(loss_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};

#include "session.h"

#include "chat.h"
#include "say.h"
#include "signals.h"

int weir_session_model(weir_session *s)
{
    weir_err err = {0};
    weir_model_options o;
    weir_model_options_init(&o);
    o.log = weir_cli_log(s->cli);
    o.threads = (int)s->a->run.threads;
    s->model_path = weir_model_path(&s->a->model, s->brook, sizeof s->brook, &err);
    if (!s->model_path || weir_model_open(&s->model, s->model_path, &o, &err) != WEIR_OK)
        return weir_cli_fail(s->cli, &err);
    int code = weir_edits_open(&s->edits, s->cli, &s->a->edit, s->model);
    if (code != WEIR_EXIT_OK)
        return code;
    s->info = weir_model_info_of(s->model);
    s->ctx = s->a->rows.ctx ? s->a->rows.ctx : s->info->ctx;
    if (s->ctx > s->info->ctx)
        return weir_cli_usage(s->cli, "--ctx %lld is more than the model's context of %lld", (long long)s->ctx,
                              (long long)s->info->ctx);
    return WEIR_EXIT_OK;
}

/* Ids can be run without a tokenizer; their bytes, and a BOS, are then unknown. */
static int open_tokenizer(weir_session *s)
{
    weir_err err = {0};
    weir_log log = weir_cli_log(s->cli);
    char why[1400];
    if (weir_tokenizer_open(&s->tok, s->model_path, &log, &err) == WEIR_OK)
        return WEIR_EXIT_OK;
    if (!s->a->rows.ids || err.code == WEIR_E_NOMEM)
        return weir_cli_fail(s->cli, &err);
    weir_cli_note(s->cli, "the ids are run without a tokenizer: %s", weir_err_line(&err, why, sizeof why));
    return WEIR_EXIT_OK;
}

int weir_session_text(weir_session *s)
{
    weir_err err = {0};
    int code = open_tokenizer(s);
    if (code != WEIR_EXIT_OK)
        return code;
    code = weir_chat_asked(&s->chat, s->cli, &s->a->text, s->a->rows.ids, s->a->rows.bos, s->model_path, s->tok);
    if (code != WEIR_EXIT_OK)
        return code;
    /* A chat's template has the BOS, where the model wants one. */
    if ((!s->chat && weir_feed_bos(&s->a->rows, s->tok, &s->bos, &err) != WEIR_OK) ||
        weir_feed_stride(&s->a->rows, s->ctx, s->bos, &s->stride, &err) != WEIR_OK)
        return weir_cli_bad_argument(s->cli, NULL, &err);
    s->in.stop = weir_signals_stop;
    code = weir_input_open(&s->in, s->cli, &s->a->text, s->a->rows.ids);
    if (code != WEIR_EXIT_OK)
        return code;
    weir_feed_options o = {.rows = &s->a->rows,
                           .ctx = s->ctx,
                           .batch = s->a->run.batch,
                           .vocab = s->info->V,
                           .chat = s->chat,
                           .system = s->a->text.system,
                           .whole = s->whole || s->loss};
    if (weir_feed_new(&s->feed, s->tok, s->in.docs, &o, &err) != WEIR_OK)
        return weir_cli_bad_argument(s->cli, err.code == WEIR_E_ARG ? "--positions" : NULL, &err);
    return WEIR_EXIT_OK;
}

static int new_run(const weir_session *s, const weir_edits *edits, weir_run **out)
{
    weir_err err = {0};
    weir_run_options o;
    weir_run_options_init(&o);
    o.threads = (int)s->a->run.threads;
    o.kernel = weir_kernel_name(&s->a->run);
    o.memory = s->loss ? s->a->run.memory / 2 : s->a->run.memory; /* the rest is for the way back */
    o.max_rows = s->a->run.batch;
    o.by_layer = s->by_layer;
    o.backward = s->loss != NULL;
    /* Room for keys and values is kept for the longest window that the text can have: a token of text takes no more
     * than a few of its bytes into the vocabulary (a normaliser may write three for one). */
    bool known = s->in.bytes >= 0 && s->in.bytes < s->ctx / 3 && !s->chat; /* a template adds tokens of its own */
    int64_t longest = known ? 3 * s->in.bytes + 8 : s->ctx;
    o.max_len = longest < s->ctx ? longest : s->ctx;
    o.slots = o.max_len > o.max_rows && !s->loss;
    if (s->max_len) {
        o.max_len = s->max_len;
        o.slots = s->slots;
    }
    o.act = edits == &s->edits ? s->act : NULL; /* a plain run has neither */
    o.edits = (const weir_edit *const *)edits->edit;
    o.n_edits = edits->n;
    return weir_run_new(out, s->model, &o, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(s->cli, &err);
}

int weir_session_plain_run(const weir_session *s, weir_run **out)
{
    return new_run(s, &(weir_edits){0}, out);
}

int weir_session_run(weir_session *s)
{
    int code = new_run(s, &s->edits, &s->run);
    if (code != WEIR_EXIT_OK)
        return code;
    code = weir_attach_all(&s->attach, s->cli, &s->a->attach, s->run);
    s->attach.edits = &s->edits;
    return code;
}

int weir_session_prepare(weir_session *s, int flags)
{
    weir_err err = {0};
    weir_status st = weir_run_prepare(s->run, flags, &err);
    if (st == WEIR_E_NOMEM)
        return weir_cli_error(s->cli, "%s (here: a smaller --batch or --ctx)", err.msg);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(s->cli, &err);
}

void weir_session_close(weir_session *s)
{
    weir_attach_free(&s->attach);
    weir_run_free(s->run);
    weir_edits_free(&s->edits);
    weir_feed_free(s->feed);
    weir_input_close(&s->in);
    weir_chat_free(s->chat);
    weir_tokenizer_free(s->tok);
    weir_model_free(s->model);
}

/* neuron-top from a dump of `weir trace`, and the model that made a file. */
#include <stdlib.h>
#include <string.h>

#include "cli/from.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "top.h"

static bool model_fits(weir_top *r, const char *fingerprint)
{
    weir_err err = {0};
    return weir_model_fingerprint(r->session.model, false, r->fingerprint, &err) == WEIR_OK &&
           strcmp(r->fingerprint, fingerprint) == 0;
}

static bool model_named(const weir_top *r)
{
    const char *env = getenv("WEIR_MODEL");
    return r->a->session.model.path || (env && *env);
}

int weir_top_find_model(weir_top *r, const char *fingerprint, const char *name)
{
    weir_err err = {0};
    char buf[1100];
    bool named = model_named(r);
    if (!named && !weir_model_path(&r->a->session.model, buf, sizeof buf, &err))
        return WEIR_EXIT_OK;
    int code = weir_top_open_model(r);
    if (code != WEIR_EXIT_OK || model_fits(r, fingerprint) || (named && r->a->force))
        return code;
    if (named)
        return weir_cli_error(r->cli, "%s was made with another model than %s: with %s (--force takes it all the same)",
                              r->file, r->session.model_path, name);
    weir_session_close(&r->session);
    r->session = (weir_session){0};
    r->session_open = false;
    return WEIR_EXIT_OK;
}

/* If the model is at hand, its tokenizer knows a BOS that stands in the text where the run gave none. */
static void open_tokenizer(weir_top *r, const char *fingerprint)
{
    weir_session *s = &r->session;
    if (!s->model || !*fingerprint || weir_tokenizer_open(&s->tok, s->model_path, NULL, NULL) != WEIR_OK ||
        strcmp(weir_tokenizer_fingerprint(s->tok), fingerprint) == 0)
        return;
    weir_tokenizer_free(s->tok);
    s->tok = NULL;
}

/* The dump's own words about itself: the model that goes with it, and how its text was cut. */
static int look_inside(weir_top *r, int64_t *ctx, int64_t *stride, char bos[8])
{
    weir_err err = {0};
    weir_dump_reader *d;
    if (weir_dump_open(&d, r->file, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    *ctx = weir_from_attr_int(d, "ctx");
    *stride = weir_from_attr_int(d, "stride");
    snprintf(bos, 8, "%s", weir_from_attr(d, "bos", ""));
    int code =
        weir_top_find_model(r, weir_from_attr(d, "fingerprint", ""), weir_from_attr(d, "model", "one without a name"));
    if (code == WEIR_EXIT_OK)
        open_tokenizer(r, weir_from_attr(d, "tokenizer_fingerprint", ""));
    weir_dump_close(d);
    return code;
}

static int open_dump(weir_top *r)
{
    weir_neurons_dump_options o = {.path = r->file,
                                   .sites = r->sites,
                                   .layers = r->layers,
                                   .ask = r->asks.ask,
                                   .n_ask = r->asks.n,
                                   .model = r->session.model,
                                   .tok = r->session.tok,
                                   .mask_bos = r->masks.bos,
                                   .mask_special = r->masks.special,
                                   .mask_id = r->masks.id,
                                   .n_mask_ids = r->masks.n,
                                   .max_norm_ratio = r->a->max_norm_ratio,
                                   .whole = r->a->correlated == WEIR_TOP_YES,
                                   .threads = r->o.threads,
                                   .kernel = r->o.kernel};
    return weir_neurons_dump_open(&r->dump, r->cli, &o);
}

static int open_search(weir_top *r)
{
    weir_err err = {0};
    int n;
    const weir_neurons_table *table = weir_neurons_dump_tables(r->dump, &n);
    int code = weir_top_name(r, table, n, weir_neurons_dump_vocabulary(r->dump), r->a->correlated == WEIR_TOP_YES);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_neurons_new(&r->s, &r->o, table, n, &err) != WEIR_OK ||
        weir_neurons_dump_vocab(r->dump, r->s, &err) != WEIR_OK)
        return weir_cli_bad_argument(r->cli, NULL, &err);
    return WEIR_EXIT_OK;
}

static int feed(weir_top *r)
{
    weir_err err = {0};
    weir_progress bar;
    weir_progress_start(&bar, r->cli);
    weir_status st = weir_neurons_dump_feed(r->dump, r->s, &bar, &err);
    weir_progress_stop(&bar, r->cli);
    if (st == WEIR_STOP)
        return weir_cli_error(r->cli, "stopped by signal %d", weir_signals_seen());
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(r->cli, &err);
}

int weir_top_from_dump(weir_top *r)
{
    int64_t ctx, stride;
    char bos[8];
    weir_signals_catch();
    int code = look_inside(r, &ctx, &stride, bos);
    if (code == WEIR_EXIT_OK)
        code = open_dump(r);
    if (code == WEIR_EXIT_OK)
        code = open_search(r);
    if (code != WEIR_EXIT_OK)
        return code;
    weir_neurons_dump_about(r->dump, &r->about);
    code = weir_top_check_edits(r);
    if (code == WEIR_EXIT_OK)
        code = weir_top_describe(r, r->about.source, bos, ctx, stride);
    return code == WEIR_EXIT_OK ? feed(r) : code;
}

/* sparsity/mask.c: --mask: kept or zeroed neurons. The hook `mask` (hooks/mask.c) does it; thresholds of teal:SHARE
 * come from the same text, which is run once for them with what else the command line changes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/identity.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "sparsity.h"

int weir_sparsity_read_mask(weir_sparsing *t)
{
    static const char *const kind[] = {
        [WEIR_MASK_TOPK] = "topk:", [WEIR_MASK_BELOW] = "below:", [WEIR_MASK_TEAL] = "teal:"};
    const char *text = t->a->mask;
    weir_masking *m = &t->mask;
    for (int i = WEIR_MASK_TOPK; text && i <= WEIR_MASK_TEAL; i++) {
        const size_t n = strlen(kind[i]);
        if (strncmp(text, kind[i], n) != 0)
            continue;
        const bool read = i == WEIR_MASK_TOPK ? weir_parse_int(text + n, &m->k) && m->k >= 1
                                              : weir_parse_real(text + n, &m->value) && m->value > 0;
        if (!read || (i == WEIR_MASK_TEAL && m->value >= 1))
            return weir_cli_usage(t->cli, "--mask %s: %s", text,
                                  i == WEIR_MASK_TOPK    ? "neurons to keep, 1 or more"
                                  : i == WEIR_MASK_BELOW ? "a magnitude above 0"
                                                         : "a share of the values between 0 and 1");
        m->kind = i;
        return WEIR_EXIT_OK;
    }
    return text ? weir_cli_usage(t->cli, "--mask %s: topk:K, below:T or teal:SHARE was expected", text) : WEIR_EXIT_OK;
}

/* --- thresholds from the text */

static weir_status read_text(weir_session *s, weir_err *err)
{
    const weir_batch *b;
    weir_status st;
    while (!weir_signals_seen() && (st = weir_feed_next(s->feed, &b, err)) == WEIR_OK && b) {
        if (b->restart)
            weir_run_slot_reset(s->run, 0);
        if (b->n_seq)
            st = weir_run_forward(s->run, b->seq, b->n_seq, 0, err);
        if (st != WEIR_OK)
            break;
    }
    return weir_signals_seen() ? weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen()) : st;
}

static int take_cuts(weir_sparsing *t, const weir_sparsity *seen)
{
    t->cut = malloc((size_t)t->s.info->L * sizeof *t->cut);
    if (!t->cut)
        return weir_cli_error(t->cli, "out of memory");
    for (int64_t l = 0; l < t->s.info->L; l++)
        t->cut[l] = NAN;
    for (int i = 0; i < weir_sparsity_lines(seen); i++)
        t->cut[weir_sparsity_line_of(seen, i).point->layer] = weir_sparsity_cut_of(seen, i, t->mask.value, false).edge;
    return WEIR_EXIT_OK;
}

/* A session of its own over the same text, with the model of the first. */
static int measure(weir_sparsing *t, weir_session *s)
{
    static const double zero[] = {0};
    weir_err err = {0};
    weir_sparsity *seen = NULL;
    const weir_sparsity_options o = {.layers = t->layers, .below = zero, .n_below = 1, .act = t->s.act};
    int code = weir_session_text(s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_run(s);
    if (code == WEIR_EXIT_OK && (weir_sparsity_new(&seen, s->model, &o, &err) != WEIR_OK ||
                                 weir_sparsity_attach(seen, s->run, &err) != WEIR_OK))
        code = weir_cli_fail(t->cli, &err);
    if (code == WEIR_EXIT_OK)
        code = weir_session_prepare(s, 0);
    if (code == WEIR_EXIT_OK && read_text(s, &err) != WEIR_OK)
        code = weir_cli_fail(t->cli, &err);
    if (code == WEIR_EXIT_OK)
        code = take_cuts(t, seen);
    weir_run_free(s->run);
    s->run = NULL;
    weir_sparsity_free(seen);
    return code;
}

int weir_sparsity_calibrate(weir_sparsing *t)
{
    weir_session own = {.cli = t->cli,
                        .a = t->s.a,
                        .model = t->s.model,
                        .model_path = t->s.model_path,
                        .info = t->s.info,
                        .edits = t->s.edits,
                        .ctx = t->s.ctx,
                        .act = t->s.act};
    const char *pipe;
    if (t->mask.kind != WEIR_MASK_TEAL)
        return WEIR_EXIT_OK;
    if (!weir_session_rereadable(&t->s, &pipe))
        return weir_cli_usage(t->cli, "--mask teal reads the text twice: name a file instead of %s", pipe);
    const int code = measure(t, &own);
    own.model = NULL; /* they are the first session's */
    own.edits = (weir_edits){0};
    weir_session_close(&own);
    return code;
}

/* --- the hooks */

static int attach(const weir_sparsing *t, const weir_point *p)
{
    weir_err err = {0};
    char args[256];
    const double below = t->mask.kind == WEIR_MASK_TEAL ? t->cut[p->layer] : t->mask.value;
    if (t->mask.kind == WEIR_MASK_TOPK)
        snprintf(args, sizeof args, "%s,topk=%lld", p->name, (long long)t->mask.k);
    else if (below > 0)
        snprintf(args, sizeof args, "%s,below=%.9g", p->name, below);
    else
        return WEIR_EXIT_OK; /* enough is small already */
    if (weir_run_hook(t->s.run, weir_hook_class_find("mask"), args, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    return WEIR_EXIT_OK;
}

int weir_sparsity_attach_mask(weir_sparsing *t)
{
    weir_err err = {0};
    weir_selector *sel;
    const weir_point *p;
    int code = WEIR_EXIT_OK;
    if (t->mask.kind == WEIR_MASK_NONE)
        return code;
    if (weir_selector_build(&sel, t->s.model, NULL, t->layers ? t->layers : "all", "post", &err) != WEIR_OK)
        return weir_cli_bad_argument(t->cli, "--layer", &err);
    const int64_t n = weir_model_points(t->s.model, &p);
    for (int64_t i = 0; code == WEIR_EXIT_OK && i < n; i++)
        if (weir_selector_matches(sel, &p[i]))
            code = attach(t, &p[i]);
    weir_selector_free(sel);
    return code;
}

#include "gradient.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "cli/target.h"

/* --- what is differentiated */

static const char LOGIT[] = "logit:";
enum { LOGIT_N = sizeof LOGIT - 1 };

int weir_gradient_check(const weir_cli *cli, const char *text)
{
    const bool logit = strncmp(text, LOGIT, LOGIT_N) == 0;
    const char *dash = logit && text[LOGIT_N] ? strchr(text + LOGIT_N + 1, '-') : NULL;
    if (strcmp(text, "nll") == 0 || strcmp(text, "nll-sum") == 0 || (logit && text[LOGIT_N] && (!dash || dash[1])))
        return WEIR_EXIT_OK;
    return weir_cli_usage(
        cli, "--loss %s: it is nll, nll-sum, logit:TOKEN or logit:TOKEN-TOKEN, such as 'logit: Paris- Rome'", text);
}

int weir_gradient_parse(weir_gradient *g, const weir_session *s, const char *text)
{
    g->s = s;
    g->kind = WEIR_LOSS_NLL;
    g->mean = strcmp(text, "nll") == 0;
    if (strncmp(text, LOGIT, LOGIT_N) != 0)
        return WEIR_EXIT_OK;
    g->kind = WEIR_LOSS_LOGIT;
    const char *first = text + LOGIT_N, *dash = strchr(first + 1, '-'); /* the first one that leaves it a text */
    const size_t n = dash ? (size_t)(dash - first) : strlen(first);
    int code = weir_token_named(s->cli, "--loss", s->tok, s->info->V, first, n, &g->token[g->n_tokens++]);
    if (code == WEIR_EXIT_OK && dash)
        code = weir_token_named(s->cli, "--loss", s->tok, s->info->V, dash + 1, strlen(dash + 1),
                                &g->token[g->n_tokens++]);
    if (code == WEIR_EXIT_OK && dash && g->token[0] == g->token[1])
        return weir_cli_usage(s->cli, "--loss %s: both are token %d, and the difference is always 0", text,
                              (int)g->token[0]);
    return code;
}

/* --- the way back */

static bool anybody_wants(const weir_run *run, int hooks)
{
    for (int i = 0; i < hooks; i++)
        if (weir_run_hook_gradients(run, i))
            return true;
    return false;
}

int weir_gradient_open(weir_gradient *g, const weir_session *s)
{
    weir_err err = {0};
    weir_grad_options o;
    weir_grad_options_init(&o);
    o.memory =
        s->a->run.memory / 4; /* half of it is the forward pass's, a quarter is left for the rows on the way back */
    if (!anybody_wants(s->run, s->attach.n + 1)) /* behind those of the command line may stand the recorder */
        return weir_cli_usage(s->cli,
                              "--loss %s goes back, but nothing asks for a gradient: name one, such as "
                              "--hooks 'blocks.*.hook_resid_post_grad'",
                              s->loss);
    g->term = malloc(sizeof *g->term * 2 * (size_t)s->a->run.batch);
    if (!g->term)
        return weir_cli_error(s->cli, "out of memory");
    return weir_grad_new(&g->grad, s->run, &o, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(s->cli, &err);
}

void weir_gradient_close(weir_gradient *g)
{
    weir_grad_free(g->grad);
    free(g->term);
    *g = (weir_gradient){0};
}

/* Tokens of a document that have something before them in their window. Windows that do not overlap and begin with no
 * BOS have a first token each that nothing precedes. */
static int64_t predicted(const weir_session *s, int64_t tokens)
{
    const bool apart = !s->bos && s->stride == s->ctx;
    return tokens - (apart ? (tokens + s->ctx - 1) / s->ctx : 1);
}

/* Each token that follows another in its window, at the other's row. */
static int64_t nll_terms(const weir_gradient *g, const weir_seq *q, const int32_t *target, int64_t row,
                         weir_loss_term *to)
{
    const float weight = g->mean ? 1.0F / (float)predicted(g->s, q->total) : 1.0F;
    int64_t n = 0;
    for (int64_t t = 0; t < q->n; t++)
        if (target[t] >= 0)
            to[n++] = (weir_loss_term){.kind = WEIR_LOSS_NLL, .row = row + t, .token = target[t], .weight = weight};
    return n;
}

/* What comes behind the document's last token, which stands in its last window alone. */
static int64_t logit_terms(const weir_gradient *g, const weir_seq *q, int64_t row, weir_loss_term *to)
{
    const int64_t last = q->n - 1;
    if (q->place[last] != q->total - 1)
        return 0;
    for (int i = 0; i < g->n_tokens; i++)
        to[i] = (weir_loss_term){
            .kind = WEIR_LOSS_LOGIT, .row = row + last, .token = g->token[i], .weight = i ? -1.0F : 1.0F};
    return g->n_tokens;
}

weir_status weir_gradient_back(weir_gradient *g, const weir_batch *b, weir_err *err)
{
    int64_t n = 0, row = 0;
    for (int64_t i = 0; i < b->n_seq; i++) {
        const weir_seq *q = &b->seq[i];
        n += g->kind == WEIR_LOSS_NLL ? nll_terms(g, q, b->target + row, row, g->term + n)
                                      : logit_terms(g, q, row, g->term + n);
        row += q->n;
    }
    if (n == 0) /* none of these rows has a part in the loss: all gradients are 0, and are heard all the same */
        g->term[n++] = (weir_loss_term){.kind = WEIR_LOSS_LOGIT};
    return weir_grad_backward(g->grad, g->term, n, NULL, 0, NULL, NULL, err);
}

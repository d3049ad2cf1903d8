/* Tokens read from the weights, added to what the search found. */
#include <math.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "top.h"

/* A wait that nothing explains is a fault: behind `patience` seconds it is said what is being done. */
typedef struct waiting {
    weir_cli *cli;
    weir_progress bar;
    bool said;
} waiting;

static void on_progress(void *user, double share)
{
    static const double patience = 2;
    waiting *w = user;
    double seconds = weir_now() - w->bar.start;
    if (!w->said && seconds >= patience && share > 0 && share < 1) {
        weir_cli_note(w->cli, "reading tokens from the weights: about %.0f s more (--weights no leaves them out)",
                      ceil(seconds * (1 - share) / share));
        w->said = true;
    }
    weir_progress_update(&w->bar, share, -1);
}

/* A result may have them already. */
static bool are_there(const weir_neurons *s)
{
    int64_t n = 0;
    for (int t = 0; t < weir_neurons_n_tables(s); t++)
        if (weir_neurons_table_at(s, t)->n && weir_neurons_weight_tokens(s, t, 0, WEIR_SIDE_OUT, true, &n))
            return true;
    return false;
}

static int find(weir_top *r)
{
    weir_err err = {0};
    waiting w = {.cli = r->cli};
    weir_neurons_weights_options o;
    int64_t known = weir_neurons_vocab_size(r->s), rows = r->session.info->V;
    weir_neurons_weights_options_init(&o);
    o.vocab = known && known < rows ? known : rows;
    o.edits = (const weir_edit *const *)r->session.edits.edit;
    o.n_edits = r->session.edits.n;
    o.threads = r->o.threads;
    o.kernel = r->o.kernel;
    o.stop = weir_signals_stop;
    o.progress = on_progress;
    o.user = &w;
    weir_progress_start(&w.bar, r->cli);
    weir_status st = weir_neurons_weights(r->s, r->session.model, &o, &err);
    weir_progress_stop(&w.bar, r->cli);
    if (st == WEIR_STOP)
        return weir_cli_error(r->cli, "stopped by signal %d", weir_signals_seen());
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(r->cli, &err);
}

int weir_top_weights(weir_top *r)
{
    static const double quick = 2e11; /* multiply-adds: some seconds */
    bool asked = r->a->weights == WEIR_TOP_YES;
    if (r->a->weights == WEIR_TOP_NO || (r->input == WEIR_TOP_RESULTS && !asked) || are_there(r->s))
        return WEIR_EXIT_OK;
    if (!r->session.model)
        return asked ? weir_cli_error(r->cli, "--weights yes: the model is needed: --model PATH") : WEIR_EXIT_OK;
    double cost = weir_neurons_weights_cost(r->s, r->session.model);
    if (asked || cost <= quick)
        return find(r);
    weir_cli_note(r->cli,
                  "tokens read from the weights are left out: they take %.0f billion multiply-adds (--weights yes)",
                  cost / 1e9);
    return WEIR_EXIT_OK;
}

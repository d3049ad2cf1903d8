/* Tokens read from the weights, added to what the search found. */
#include <math.h>
#include <stdlib.h>

#include "cli/changes.h"
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

/* The weights of a run over text are those that it ran with. A file names the edits of its run, but does not hold them:
 * they have to be given. */
static bool edits_fit(const weir_top *r)
{
    return r->input == WEIR_TOP_TEXT ||
           weir_edits_are(&r->session.edits, r->about.interventions ? r->about.interventions : "[]");
}

int weir_top_check_edits(const weir_top *r)
{
    const bool given = r->session.edits.n > 0;
    if ((!given && r->a->weights != WEIR_TOP_YES) || !r->session.model || edits_fit(r))
        return WEIR_EXIT_OK;
    char *words = weir_changes_words(r->about.interventions ? r->about.interventions : "[]");
    const int code =
        !words ? weir_cli_error(r->cli, "out of memory")
        : given
            ? weir_cli_usage(r->cli, "--edit: %s is of a run with other edits: %s", r->file, *words ? words : "none")
            : weir_cli_usage(r->cli,
                             "--weights yes: %s is of a run with edits of the weights: give them with --edit (%s)",
                             r->file, words);
    free(words);
    return code;
}

static int leave_out(const weir_top *r)
{
    char *words = weir_changes_words(r->about.interventions);
    if (!words)
        return weir_cli_error(r->cli, "out of memory");
    weir_cli_note(
        r->cli,
        "tokens read from the weights are left out: %s is of a run with edits of them: --edit DIR gives them (%s)",
        r->file, words);
    free(words);
    return WEIR_EXIT_OK;
}

int weir_top_weights(weir_top *r)
{
    static const double quick = 2e11; /* multiply-adds: some seconds */
    const bool asked = r->a->weights == WEIR_TOP_YES, edited = r->a->session.edit.dir.n > 0;
    const bool no = r->a->weights == WEIR_TOP_NO || (r->input == WEIR_TOP_RESULTS && !asked);
    if (!r->session.model)
        return asked || edited
                   ? weir_cli_error(r->cli, "--%s: the model is needed: --model PATH", edited ? "edit" : "weights yes")
                   : WEIR_EXIT_OK;
    const double cost = no ? 0 : weir_neurons_weights_cost(r->s, r->session.model);
    const int code = weir_top_check_edits(r);
    if (code != WEIR_EXIT_OK || no || are_there(r->s))
        return code;
    if (cost > 0 && !edits_fit(r))
        return leave_out(r);
    if (asked || cost <= quick)
        return find(r);
    weir_cli_note(r->cli,
                  "tokens read from the weights are left out: they take %.0f billion multiply-adds (--weights yes)",
                  cost / 1e9);
    return WEIR_EXIT_OK;
}

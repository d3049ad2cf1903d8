/* neuron-top from a result of its own, or from those of a text's shards. */
#include "cli/common.h"
#include "cli/say.h"
#include "top.h"

static int add(weir_top *r, const char *path)
{
    weir_err err = {0};
    weir_neurons *more;
    if (weir_neurons_read(&more, path, r->o.threads, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    if (!r->s) {
        r->s = more;
        return WEIR_EXIT_OK;
    }
    weir_status st = weir_neurons_merge(r->s, more, &err);
    weir_neurons_free(more);
    if (st == WEIR_OK)
        return WEIR_EXIT_OK;
    return weir_cli_fail_at(r->cli, path, &err);
}

/* A result cannot show more than it keeps. */
static int check_room(const weir_top *r)
{
    const weir_neurons_options *o = weir_neurons_options_of(r->s);
    if (weir_cli_given(r->cli, "k") && r->a->k > o->k)
        return weir_cli_usage(r->cli, "-k %lld: the lists of %s have %lld places: search again with that -k",
                              (long long)r->a->k, r->file, (long long)o->k);
    if (weir_cli_given(r->cli, "context") && (r->o.before > o->before || r->o.after > o->after))
        return weir_cli_usage(r->cli, "--context %s: %s has fewer tokens around a place: search again with that",
                              r->a->context, r->file);
    if (weir_cli_given(r->cli, "sign") && (r->o.lists & ~o->lists))
        return weir_cli_usage(r->cli, "--sign: %s does not keep that list: search again with it", r->file);
    return WEIR_EXIT_OK;
}

int weir_top_from_results(weir_top *r)
{
    weir_err err = {0};
    int n = r->a->merge ? r->cli->n_operands : 1, code = WEIR_EXIT_OK;
    for (int i = 0; i < n && code == WEIR_EXIT_OK; i++)
        code = add(r, r->a->merge ? r->cli->operand[i] : r->file);
    if (code == WEIR_EXIT_OK)
        code = check_room(r);
    if (code != WEIR_EXIT_OK)
        return code;
    if (n > 1 && weir_neurons_finish(r->s, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    r->about = *weir_neurons_about_of(r->s);
    if (r->about.shards)
        weir_cli_note(r->cli, "not all of the %lld shards are here: what is shown is of those that are",
                      (long long)r->about.shards);
    if (!r->about.complete)
        weir_cli_note(r->cli, "%s is of a run that has not come to its end: %lld rows", r->file,
                      (long long)r->about.rows_done);
    return r->a->weights == WEIR_TOP_YES ? weir_top_find_model(r, r->about.fingerprint, r->about.model) : WEIR_EXIT_OK;
}

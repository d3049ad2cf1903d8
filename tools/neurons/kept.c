#include "kept.h"

#include <string.h>
#include <unistd.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "output.h"

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The result is there: is it this run's? */
static int look_at_result(const weir_kept *k, const weir_neurons *s, const weir_neurons_about *about, bool *finished)
{
    weir_err err = {0};
    weir_neurons *was;
    char why[1400];
    if (weir_neurons_read(&was, k->path, 0, &err) != WEIR_OK)
        return weir_cli_fail(k->cli, &err);
    weir_status st = weir_neurons_same(was, s, about, &err);
    weir_neurons_free(was);
    if (st != WEIR_OK)
        return weir_cli_error(k->cli, "%s is the result of another run: %s (without --resume it is replaced)", k->path,
                              weir_err_line(&err, why, sizeof why));
    weir_cli_note(k->cli, "%s is complete: nothing is left to do", k->path);
    *finished = true;
    return WEIR_EXIT_OK;
}

/* Goes on with what was left. */
static int take_part(weir_kept *k, weir_neurons **s, const weir_neurons_about *about)
{
    weir_err err = {0};
    weir_neurons *was;
    char n[32];
    if (weir_neurons_read(&was, k->part, 0, &err) != WEIR_OK)
        return weir_cli_fail(k->cli, &err);
    if (weir_neurons_same(was, *s, about, &err) != WEIR_OK) {
        weir_neurons_free(was);
        return weir_cli_fail_at(k->cli, k->part, &err);
    }
    k->rows = weir_neurons_about_of(was)->rows_done;
    weir_neurons_free(*s);
    *s = was;
    weir_cli_note(k->cli, "%s has %s rows: going on behind them", k->part, weir_commas(k->rows, n));
    return WEIR_EXIT_OK;
}

int weir_kept_check(weir_kept *k)
{
    if ((size_t)snprintf(k->part, sizeof k->part, "%s.part", k->path) >= sizeof k->part)
        return weir_cli_error(k->cli, "%.80s...: the name is too long", k->path);
    int code = weir_output_place(k->cli, k->path);
    if (code != WEIR_EXIT_OK)
        return code;
    if (exists(k->path) && !weir_neurons_is_file(k->path))
        return weir_cli_error(k->cli, "%s exists and is no result of neuron-top: choose another name", k->path);
    if (exists(k->part) && !k->resume && !k->force)
        return weir_cli_error(
            k->cli, "%s is there, left by an interrupted run: --resume goes on with it, --force replaces it", k->part);
    return WEIR_EXIT_OK;
}

int weir_kept_begin(weir_kept *k, weir_neurons **s, const weir_neurons_about *about, bool *finished)
{
    *finished = false;
    k->last = weir_now();
    if (!k->resume)
        return WEIR_EXIT_OK;
    if (exists(k->part))
        return take_part(k, s, about);
    return exists(k->path) ? look_at_result(k, *s, about, finished) : WEIR_EXIT_OK;
}

weir_status weir_kept_checkpoint(weir_kept *k, weir_neurons *s, const weir_neurons_about *about, int64_t kept, bool now,
                                 weir_err *err)
{
    weir_neurons_about part = *about;
    if (kept == k->rows || (!now && weir_now() - k->last < k->every))
        return WEIR_OK;
    part.rows_done = kept;
    part.complete = false;
    WEIR_TRY(weir_neurons_finish(s, err));
    WEIR_TRY(weir_neurons_write(s, k->part, &part, err));
    k->rows = kept;
    k->last = weir_now(); /* work is counted, not the time that this took */
    return WEIR_OK;
}

weir_status weir_kept_commit(weir_kept *k, weir_neurons *s, const weir_neurons_about *about, weir_err *err)
{
    char half[sizeof k->part + 4];
    WEIR_TRY(weir_neurons_write(s, k->path, about, err));
    if (exists(k->part) && unlink(k->part) != 0)
        weir_cli_note(k->cli, "%s could not be removed", k->part);
    snprintf(half, sizeof half, "%s.new", k->part);
    unlink(half); /* there only if a run was killed while it wrote a checkpoint */
    return WEIR_OK;
}

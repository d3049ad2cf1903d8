#include "sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "told.h"

/* What is the same for every layer. */
typedef struct trial {
    weir_editor *e;
    const weir_rome_request *q;
    const weir_sweep_by *by;
    char *prompt;        /* with the subject */
    weir_question *ask;  /* [n_neighbour] */
    weir_answer *answer; /* [n_neighbour] */
    bool *before;        /* [n_neighbour] said without the edit */
    double text;         /* mean -log p of the text without the edit; NaN: none */
} trial;

static weir_status open_trial(trial *t, int64_t *said, weir_err *err)
{
    const size_t n = (size_t)t->by->n_neighbour + 1;
    weir_asker *a;
    int64_t tokens;
    t->prompt = weir_fact_prompt(t->q->prompt, t->q->subject);
    t->ask = calloc(n, sizeof *t->ask);
    t->answer = calloc(n, sizeof *t->answer);
    t->before = calloc(n, sizeof *t->before);
    if (!t->prompt || !t->ask || !t->answer || !t->before)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    for (int i = 0; i < t->by->n_neighbour; i++)
        t->ask[i] = (weir_question){t->by->neighbour[i].prompt, t->by->neighbour[i].answer};
    weir_status st = weir_editor_asker(t->e, NULL, &a, err);
    if (st == WEIR_OK)
        st = weir_asker_ask(a, t->ask, t->by->n_neighbour, t->answer, err);
    if (st == WEIR_OK)
        st = weir_asker_texts(a, t->by->text->text, t->by->text->n, &t->text, &tokens, err);
    for (int i = 0; st == WEIR_OK && i < t->by->n_neighbour; i++)
        *said += t->before[i] = t->answer[i].greedy;
    weir_asker_free(a);
    return st;
}

static void close_trial(trial *t)
{
    free(t->prompt);
    free(t->ask);
    free(t->answer);
    free(t->before);
}

/* The model with the edit of one layer. */
static weir_status judge(trial *t, const weir_edit *edit, weir_sweep_row *r, weir_err *err)
{
    weir_asker *a;
    weir_answer target;
    double text;
    int64_t tokens;
    const weir_question q = {t->prompt, t->q->target};
    weir_status st = weir_editor_asker(t->e, edit, &a, err);
    if (st == WEIR_OK)
        st = weir_asker_ask(a, &q, 1, &target, err);
    if (st == WEIR_OK)
        st = weir_asker_ask(a, t->ask, t->by->n_neighbour, t->answer, err);
    if (st == WEIR_OK)
        st = weir_asker_texts(a, t->by->text->text, t->by->text->n, &text, &tokens, err);
    weir_asker_free(a);
    WEIR_TRY(st);
    r->p = target.p, r->rank = target.rank, r->said = target.greedy;
    r->drift = exp(text - t->text) - 1;
    for (int i = 0; i < t->by->n_neighbour; i++)
        r->kept += t->before[i] && t->answer[i].greedy;
    return WEIR_OK;
}

static weir_status try_layer(trial *t, int i, weir_sweep_row *r, weir_err *err)
{
    weir_rome_options o = t->e->o;
    weir_rome_report report = {0};
    weir_edit *edit = NULL;
    weir_rome *w;
    o.layer = &t->e->layer[i], o.covariance = &t->e->covariance[i], o.n_layers = 1;
    WEIR_TRY(weir_rome_new(&w, t->e->model, t->e->tok, t->e->prefixes, &o, err));
    weir_status st = weir_rome_make(w, t->q, 1, &edit, &report, err);
    weir_rome_free(w);
    if (st == WEIR_OK) {
        r->share = report.share, r->k_u = report.k_u, r->converged = report.converged;
        st = judge(t, edit, r, err);
    }
    weir_rome_report_free(&report);
    weir_edit_free(edit);
    return st;
}

/* Is a better than b? Both could be made. */
static bool better(const weir_sweep_row *a, const weir_sweep_row *b)
{
    if (a->said != b->said)
        return a->said;
    if (!a->said)
        return a->p > b->p;
    if (a->kept != b->kept)
        return a->kept > b->kept;
    return fabs(a->drift) < fabs(b->drift);
}

static int try_all(weir_sweep *s, trial *t)
{
    weir_err last = {0};
    s->best = -1;
    for (s->n = 0; s->n < t->e->n_layers; s->n++) {
        weir_err err = {0};
        weir_sweep_row r = {.layer = t->e->layer[s->n]};
        const weir_status st = try_layer(t, s->n, &r, &err);
        if (st == WEIR_E_NOMEM)
            return weir_editor_fail(t->e, &err);
        if (st != WEIR_OK) {
            r = (weir_sweep_row){.layer = r.layer};
            snprintf(r.error, sizeof r.error, "%.199s", err.msg);
            last = err;
        } else if (s->best < 0 || better(&r, &s->row[s->best])) {
            s->best = s->n;
        }
        s->row[s->n] = r;
    }
    return s->best >= 0 ? WEIR_EXIT_OK : weir_editor_fail(t->e, &last);
}

int weir_sweep_run(weir_sweep *s, weir_editor *e, const weir_rome_request *q, const weir_sweep_by *by)
{
    weir_err err = {0};
    trial t = {.e = e, .q = q, .by = by};
    *s = (weir_sweep){.row = calloc((size_t)e->n_layers, sizeof *s->row)};
    int code = WEIR_EXIT_OK;
    if (!s->row)
        code = weir_cli_error(e->cli, "out of memory");
    else if (open_trial(&t, &s->said, &err) != WEIR_OK)
        code = weir_editor_fail(e, &err);
    else
        code = try_all(s, &t);
    close_trial(&t);
    if (code == WEIR_EXIT_OK)
        weir_editor_choose(e, s->best);
    return code;
}

void weir_sweep_free(weir_sweep *s)
{
    free(s->row);
    *s = (weir_sweep){0};
}

/* --- telling */

void weir_sweep_print(const weir_sweep *s, FILE *out)
{
    fprintf(out, "layer        p   rank  said  neighbours  drift%%  |dW|/|W|      k.u\n");
    for (int i = 0; i < s->n; i++) {
        const weir_sweep_row *r = &s->row[i];
        char kept[48], drift[16] = "-"; /* without a text */
        snprintf(kept, sizeof kept, "%lld of %lld", (long long)r->kept, (long long)s->said);
        if (!isnan(r->drift))
            snprintf(drift, sizeof drift, "%.2f", 100 * r->drift);
        if (*r->error)
            fprintf(out, "%4lld%c  %s\n", (long long)r->layer, ' ', r->error);
        else
            fprintf(out, "%4lld%c %8.3g %6lld %5s %11s %7s %9.3g %8.3g\n", (long long)r->layer,
                    i == s->best ? '*' : ' ', r->p, (long long)r->rank, r->said ? "yes" : "no", kept, drift, r->share,
                    r->k_u);
    }
}

void weir_sweep_write(const weir_sweep *s, weir_jsonw *w)
{
    weir_jsonw_key(w, "sweep");
    weir_jsonw_array(w);
    for (int i = 0; i < s->n; i++) {
        const weir_sweep_row *r = &s->row[i];
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "layer", r->layer);
        weir_jsonw_key_bool(w, "chosen", i == s->best);
        if (*r->error) {
            weir_jsonw_key_cstr(w, "error", r->error);
        } else {
            weir_jsonw_key_double(w, "p", r->p);
            weir_jsonw_key_int(w, "rank", r->rank);
            weir_jsonw_key_bool(w, "said", r->said);
            weir_jsonw_key_int(w, "neighbours_said", s->said);
            weir_jsonw_key_int(w, "neighbours_kept", r->kept);
            weir_jsonw_key_double(w, "drift", r->drift);
            weir_jsonw_key_double(w, "share", r->share);
            weir_jsonw_key_double(w, "k_u", r->k_u);
            weir_jsonw_key_bool(w, "converged", r->converged);
        }
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

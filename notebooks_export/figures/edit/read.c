/* A report of rome verify, read and checked: its sizes and indices are not trusted. */
#include <stdlib.h>

#include "cli/say.h"
#include "figures/arrays.h"
#include "report.h"

const char *const weir_nb_report_kind[] = {"request", "paraphrase", "neighbour"};
enum { KINDS = sizeof weir_nb_report_kind / sizeof *weir_nb_report_kind };

static weir_status take_checks(weir_nb_report *v, weir_err *err)
{
    WEIR_TRY(weir_arrays_get_texts(v->r, "checks/name", &v->check, err));
    v->checks = v->check.n;
    const weir_nb_array of[] = {{"checks/value", WEIR_ARRAY_F64, 1, {v->checks}, &v->value},
                                {"checks/bound", WEIR_ARRAY_F64, 1, {v->checks}, &v->bound},
                                {"checks/upper", WEIR_ARRAY_U8, 1, {v->checks}, &v->upper},
                                {"checks/kept", WEIR_ARRAY_U8, 1, {v->checks}, &v->kept}};
    return WEIR_NB_TAKE(v->r, of, err);
}

static weir_status take_requests(weir_nb_report *v, weir_err *err)
{
    static const char *const came_to[WEIR_NB_CAME_TO] = {"requests/share",   "requests/lambda_norm",
                                                         "requests/v0_norm", "requests/delta_norm",
                                                         "requests/k_u",     "requests/k_cos"};
    static const char *const curve[WEIR_NB_CURVES] = {"search/loss", "search/nll", "search/kl", "search/decay",
                                                      "search/p"};
    int64_t passes = 0;
    WEIR_TRY(weir_arrays_shape(v->r, "requests/passes", WEIR_ARRAY_I64, 1, &v->requests, err));
    WEIR_TRY(weir_arrays_shape(v->r, "search/loss", WEIR_ARRAY_F64, 1, &v->passes, err));
    const weir_nb_array of[] = {{"requests/passes", WEIR_ARRAY_I64, 1, {v->requests}, &v->request_passes},
                                {"requests/converged", WEIR_ARRAY_U8, 1, {v->requests}, &v->converged}};
    WEIR_TRY(WEIR_NB_TAKE(v->r, of, err));
    for (int i = 0; i < WEIR_NB_CAME_TO; i++)
        WEIR_TRY(
            weir_nb_take(v->r, &(weir_nb_array){came_to[i], WEIR_ARRAY_F64, 1, {v->requests}, &v->came_to[i]}, 1, err));
    for (int i = 0; i < WEIR_NB_CURVES; i++)
        WEIR_TRY(weir_nb_take(v->r, &(weir_nb_array){curve[i], WEIR_ARRAY_F64, 1, {v->passes}, &v->curve[i]}, 1, err));
    for (int64_t i = 0; i < v->requests; i++) {
        if (v->request_passes[i] < 0 || v->request_passes[i] > v->passes - passes)
            return weir_arrays_bad(v->r, "requests/passes", err, "request %lld has passes that are not there",
                                   (long long)i);
        passes += v->request_passes[i];
    }
    return WEIR_OK;
}

static weir_status take_questions(weir_nb_report *v, weir_err *err)
{
    WEIR_TRY(weir_arrays_shape(v->r, "questions/kind", WEIR_ARRAY_U8, 1, &v->questions, err));
    const int64_t n = v->questions;
    const weir_nb_array of[] = {{"questions/kind", WEIR_ARRAY_U8, 1, {n}, &v->kind},
                                {"questions/request", WEIR_ARRAY_I64, 1, {n}, &v->request},
                                {"questions/right", WEIR_ARRAY_U8, 2, {n, WEIR_NB_SIDES}, &v->right},
                                {"questions/new_logprob", WEIR_ARRAY_F64, 2, {n, WEIR_NB_SIDES}, &v->new_logprob},
                                {"questions/true_logprob", WEIR_ARRAY_F64, 2, {n, WEIR_NB_SIDES}, &v->true_logprob},
                                {"questions/top_p", WEIR_ARRAY_F64, 2, {n, WEIR_NB_SIDES}, &v->top_p}};
    WEIR_TRY(WEIR_NB_TAKE(v->r, of, err));
    for (int64_t i = 0; i < n; i++)
        if (v->kind[i] >= KINDS || v->request[i] < 0 || v->request[i] >= v->requests)
            return weir_arrays_bad(v->r, "questions", err, "question %lld is of no kind, or of no request",
                                   (long long)i);
    WEIR_TRY(weir_nb_take_texts(v->r, "questions/prompt", n, &v->prompt, err));
    WEIR_TRY(weir_nb_take_texts(v->r, "questions/text_before", n, &v->before, err));
    return weir_nb_take_texts(v->r, "questions/text_after", n, &v->after, err);
}

static weir_status take_texts(weir_nb_report *v, weir_err *err)
{
    WEIR_TRY(weir_arrays_shape(v->r, "text/tokens", WEIR_ARRAY_I64, 1, &v->texts, err));
    const weir_nb_array of[] = {{"text/tokens", WEIR_ARRAY_I64, 1, {v->texts}, &v->tokens},
                                {"text/nll", WEIR_ARRAY_F64, 2, {v->texts, WEIR_NB_SIDES}, &v->nll}};
    WEIR_TRY(WEIR_NB_TAKE(v->r, of, err));
    WEIR_TRY(weir_arrays_get_text(v->r, "text", "name", &v->text_name, err));
    return weir_nb_take_texts(v->r, "text/begin", v->texts, &v->begin, err);
}

static weir_status take_modules(weir_nb_report *v, weir_err *err)
{
    WEIR_TRY(weir_arrays_get_texts(v->r, "modules/name", &v->module, err));
    v->modules = v->module.n;
    const weir_nb_array of[] = {{"modules/rank", WEIR_ARRAY_I64, 1, {v->modules}, &v->rank},
                                {"modules/delta_norm", WEIR_ARRAY_F64, 1, {v->modules}, &v->delta}};
    return WEIR_NB_TAKE(v->r, of, err);
}

static weir_status take_stream(weir_nb_report *v, weir_err *err)
{
    WEIR_TRY(weir_arrays_get_texts(v->r, "lines/name", &v->line, err));
    v->lines = v->line.n;
    WEIR_TRY(weir_arrays_shape(v->r, "tokens/id", WEIR_ARRAY_I32, 1, &v->rows, err));
    WEIR_TRY(weir_arrays_shape(v->r, "lens/start", WEIR_ARRAY_I64, 1, &v->prompts, err));
    const int64_t q = v->prompts;
    const weir_nb_array of[] = {{"lens/question", WEIR_ARRAY_I64, 1, {q}, &v->looked},
                                {"lens/start", WEIR_ARRAY_I64, 1, {q}, &v->start},
                                {"lens/count", WEIR_ARRAY_I64, 1, {q}, &v->count},
                                {"lens/token", WEIR_ARRAY_I32, 2, {q, 2}, &v->token},
                                {"lens/new_logprob", WEIR_ARRAY_F32, 3, {v->lines, q, WEIR_NB_SIDES}, &v->lens_new},
                                {"lens/true_logprob", WEIR_ARRAY_F32, 3, {v->lines, q, WEIR_NB_SIDES}, &v->lens_true},
                                {"tokens/id", WEIR_ARRAY_I32, 1, {v->rows}, &v->id},
                                {"stream/norm", WEIR_ARRAY_F64, 3, {v->lines, v->rows, WEIR_NB_SIDES}, &v->norm},
                                {"stream/difference", WEIR_ARRAY_F64, 2, {v->lines, v->rows}, &v->difference}};
    WEIR_TRY(WEIR_NB_TAKE(v->r, of, err));
    if (q == 0 || v->lines == 0)
        return weir_arrays_bad(v->r, "lens", err, "there is no request");
    for (int64_t i = 0; i < q; i++)
        if (v->looked[i] < 0 || v->looked[i] >= v->questions || v->start[i] < 0 || v->start[i] > v->rows ||
            v->count[i] < 1 || v->count[i] > v->rows - v->start[i])
            return weir_arrays_bad(v->r, "lens", err, "prompt %lld is of no question, or its tokens are not there",
                                   (long long)i);
    return weir_arrays_get_texts(v->r, "vocab", &v->vocab, err);
}

int weir_nb_report_open(weir_nb_report *v, const weir_nb *nb)
{
    weir_status (*const parts[])(weir_nb_report *, weir_err *) = {take_checks, take_requests, take_questions,
                                                                  take_texts,  take_modules,  take_stream};
    weir_err err = {0};
    v->nb = nb;
    weir_status st = weir_arrays_open(&v->r, weir_nb_path(nb), "weir-verify", 1, &err);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && st == WEIR_OK; i++)
        st = parts[i](v, &err);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(weir_nb_cli(nb), &err);
}

static void drop_texts(weir_nb_report *v)
{
    weir_array_texts *const all[] = {&v->line,   &v->vocab, &v->check, &v->prompt,
                                     &v->before, &v->after, &v->begin, &v->module};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        weir_array_texts_free(all[i]);
}

void weir_nb_report_close(weir_nb_report *v)
{
    void *const own[] = {v->value,      v->bound,          v->upper,       v->kept,         v->kind,
                         v->right,      v->request,        v->new_logprob, v->true_logprob, v->top_p,
                         v->converged,  v->request_passes, v->looked,      v->start,        v->count,
                         v->token,      v->lens_new,       v->lens_true,   v->id,           v->norm,
                         v->difference, v->tokens,         v->nll,         v->rank,         v->delta};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    for (int i = 0; i < WEIR_NB_CAME_TO; i++)
        free(v->came_to[i]);
    for (int i = 0; i < WEIR_NB_CURVES; i++)
        free(v->curve[i]);
    drop_texts(v);
    weir_arrays_free(v->text_name);
    weir_arrays_close(v->r);
    *v = (weir_nb_report){0};
}

/* Scores of a record: the new answer against the true one, behind every prompt. */
#include <math.h>

#include <weir/facts.h>

#include "../base/mem.h"

/* The questions of a record: two for each prompt, first the true answer, then the new one. */
typedef struct questions {
    weir_question *q; /* [2 n] */
    weir_answer *a;
    char *rewrite;
    int64_t n;
} questions;

/* Means over the prompts [from, from + n). */
typedef struct share {
    double wins, by, said;
} share;

static share take(const questions *k, int64_t from, int64_t n, bool neighbours)
{
    share s = {n ? 0 : (double)NAN, n ? 0 : (double)NAN, n ? 0 : (double)NAN};
    for (int64_t i = from; i < from + n; i++) {
        const weir_answer *truth = &k->a[2 * i], *target = &k->a[2 * i + 1];
        const weir_answer *wanted = neighbours ? truth : target, *other = neighbours ? target : truth;
        s.wins += (wanted->nll < other->nll) / (double)n;
        s.by += (exp(-wanted->nll) - exp(-other->nll)) / (double)n;
        s.said += wanted->greedy / (double)n;
    }
    return s;
}

static void put(questions *k, const char *prompt, const char *truth, const char *target)
{
    k->q[2 * k->n] = (weir_question){prompt, truth};
    k->q[2 * k->n + 1] = (weir_question){prompt, target};
    k->n++;
}

static bool make(questions *k, const weir_fact *f)
{
    const size_t n = (size_t)(1 + f->n_paraphrase + f->n_neighbour);
    k->q = weir_calloc(2 * n, sizeof *k->q);
    k->a = weir_calloc(2 * n, sizeof *k->a);
    k->rewrite = weir_fact_prompt(f->prompt, f->subject);
    if (!k->q || !k->a || !k->rewrite)
        return false;
    put(k, k->rewrite, f->truth, f->target);
    for (int64_t i = 0; i < f->n_paraphrase; i++)
        put(k, f->paraphrase[i], f->truth, f->target);
    for (int64_t i = 0; i < f->n_neighbour; i++)
        put(k, f->neighbour[i], f->neighbour_truth, f->target);
    return true;
}

weir_status weir_asker_score(weir_asker *a, const weir_fact *f, weir_fact_scores *out, weir_err *err)
{
    questions k = {0};
    weir_status s =
        make(&k, f) ? weir_asker_ask(a, k.q, 2 * k.n, k.a, err) : weir_nomem(err, "the questions of a record");
    if (s == WEIR_OK) {
        const share r = take(&k, 0, 1, false), p = take(&k, 1, f->n_paraphrase, false);
        const share n = take(&k, 1 + f->n_paraphrase, f->n_neighbour, true);
        *out = (weir_fact_scores){.rewrite = r.wins,
                                  .paraphrase = p.wins,
                                  .neighbour = n.wins,
                                  .rewrite_by = r.by,
                                  .paraphrase_by = p.by,
                                  .neighbour_by = n.by,
                                  .said = r.said,
                                  .neighbour_said = n.said};
    }
    weir_free(k.q);
    weir_free(k.a);
    weir_free(k.rewrite);
    return s;
}

/* What an asker says (answers, continuations, texts) against the logits of plain runs, one text at a time. */
#include <math.h>
#include <string.h>

#include <weir/facts.h>

#include "run_kit.h"

#define TOKENIZER "tests/data/tokenizers/tiny/13.json" /* 46 tokens: fewer than any of the models has */

static const weir_question questions[] = {{"d e l", "c t"}, {"t", "a"}, {"l 0 1 d c ", " e"}, {"c d e t l", "t l 1"}};
enum { QUESTIONS = sizeof questions / sizeof *questions };
static const char *const models[] = {KIT_GPT2, KIT_LLAMA, KIT_GEMMA};

typedef struct world {
    weir_model *m;
    const weir_model_info *info;
    weir_tokenizer *tok;
    weir_asker *a;
    weir_tokens t;
    double *logp; /* [ctx,V] of the last text */
} world;

static void open_world(world *w, const char *path, const weir_asker_options *o)
{
    weir_err err = {0};
    *w = (world){.m = kit_open(path)};
    w->info = weir_model_info_of(w->m);
    kit_ok(weir_tokenizer_open(&w->tok, TOKENIZER, NULL, &err), &err);
    kit_ok(weir_asker_new(&w->a, w->m, w->tok, o, &err), &err);
    w->logp = calloc((size_t)(w->info->ctx * w->info->V), sizeof *w->logp);
}

static void close_world(world *w)
{
    weir_asker_free(w->a);
    weir_tokens_free(&w->t);
    weir_tokenizer_free(w->tok);
    weir_model_free(w->m);
    free(w->logp);
}

/* Log-probabilities behind each of ids, in double. */
static void measure(world *w, const int32_t *ids, int64_t n)
{
    weir_err err = {0};
    const int64_t v = w->info->V;
    float *x = calloc((size_t)(n * v), sizeof *x);
    weir_run *r = kit_run(w->m, w->info->ctx, 0, NULL, 1);
    kit_forward(r, ids, n, -1, WEIR_FINAL);
    kit_ok(weir_run_logits(r, 0, n, x, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0, most = (double)x[i * v];
        for (int64_t j = 0; j < v; j++)
            most = (double)x[i * v + j] > most ? (double)x[i * v + j] : most;
        for (int64_t j = 0; j < v; j++)
            sum += exp((double)x[i * v + j] - most);
        for (int64_t j = 0; j < v; j++)
            w->logp[i * v + j] = (double)x[i * v + j] - most - log(sum);
    }
    weir_run_free(r);
    free(x);
}

static int64_t likeliest(const double *p, int64_t v)
{
    int64_t best = 0;
    for (int64_t i = 1; i < v; i++)
        best = p[i] > p[best] ? i : best;
    return best;
}

/* What the answer ought to be. */
static weir_answer expected(world *w, const weir_question *q)
{
    weir_err err = {0};
    int32_t *id;
    int64_t n;
    const int64_t v = w->info->V;
    size_t len = strlen(q->prompt);
    while (len && q->prompt[len - 1] == ' ')
        len--;
    kit_ok(weir_answer_tokens(w->tok, q->prompt, q->answer, &id, &n, &err), &err);
    char text[100];
    snprintf(text, sizeof text, "%.*s %s", (int)len, q->prompt, q->answer + strspn(q->answer, " "));
    kit_ok(weir_tokenizer_encode(w->tok, text, strlen(text), &w->t, &err), &err);
    assert_memory_equal(w->t.id + w->t.n - n, id, (size_t)n * sizeof *id);
    measure(w, w->t.id, w->t.n - 1);
    const int64_t at = w->t.n - n - 1;
    const double *first = w->logp + at * v;
    weir_answer r = {.tokens = n, .first = id[0], .top = (int32_t)likeliest(first, v), .greedy = true, .rank = 1};
    r.top_p = exp(first[r.top]);
    for (int64_t i = 0; i < v; i++)
        r.rank += first[i] > first[id[0]] || (first[i] == first[id[0]] && i < id[0]);
    for (int64_t i = 0; i < n; i++) {
        r.nll -= w->logp[(at + i) * v + id[i]] / (double)n;
        r.greedy = r.greedy && likeliest(w->logp + (at + i) * v, v) == id[i];
    }
    r.p = exp(-r.nll * (double)n);
    free(id);
    return r;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 2e-6 * (1 + fabs(b));
}

static bool same(const weir_answer *a, const weir_answer *b)
{
    return a->tokens == b->tokens && near(a->nll, b->nll) && near(a->p, b->p) && a->rank == b->rank &&
           a->first == b->first && a->top == b->top && near(a->top_p, b->top_p) && a->greedy == b->greedy;
}

static void answers_are_those_of_logits(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        world w;
        weir_err err = {0};
        weir_answer all[QUESTIONS], one, other;
        open_world(&w, models[k], &(weir_asker_options){.threads = 1});
        kit_ok(weir_asker_ask(w.a, questions, QUESTIONS, all, &err), &err);
        for (int i = 0; i < QUESTIONS; i++) {
            const weir_answer want = expected(&w, &questions[i]);
            assert_true(same(&all[i], &want));
            kit_ok(weir_asker_ask(w.a, &questions[i], 1, &one, &err), &err);
            assert_memory_equal(&one.nll, &all[i].nll, sizeof one.nll); /* alone or together: the same bits */
            assert_int_equal(one.rank, all[i].rank);
        }
        other = expected(&w, &questions[0]);
        other.nll *= 1.0001;
        assert_false(same(&all[0], &other));
        close_world(&w);
    }
}

/* The likeliest token behind each of them is the one that follows. */
static void continuations_are_greedy(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        world w;
        weir_err err = {0};
        int32_t id[40], all[64];
        int64_t made;
        open_world(&w, models[k], &(weir_asker_options){.threads = 1});
        kit_ok(weir_asker_continue(w.a, "d e l ", 40, id, &made, &err), &err);
        kit_ok(weir_tokenizer_encode(w.tok, "d e l", 5, &w.t, &err), &err);
        const int64_t n = w.t.n;
        memcpy(all, w.t.id, (size_t)n * sizeof *all);
        memcpy(all + n, id, (size_t)made * sizeof *all);
        const bool full = n + made == w.info->ctx + 1; /* the last is only said */
        measure(&w, all, n + made - full);
        for (int64_t i = 0; i < made; i++)
            assert_int_equal(id[i], likeliest(w.logp + (n + i - 1) * w.info->V, w.info->V));
        if (!full)
            assert_int_equal(likeliest(w.logp + (n + made - 1) * w.info->V, w.info->V), weir_tokenizer_eos(w.tok));
        close_world(&w);
    }
}

static const char *const long_text = "d e l c t d e l 0 1 d c e t l 1 0 d e t l 1 d e l c t d e l 0 1 d c e t l";

/* Windows of the context, each token scored once but the first of all. */
static void a_text_is_read_in_windows(void **state)
{
    (void)state;
    world w;
    weir_err err = {0};
    double nll, sum = 0, together;
    int64_t tokens, n, scored = 0;
    open_world(&w, KIT_LLAMA, &(weir_asker_options){.threads = 1});
    kit_ok(weir_asker_text(w.a, long_text, strlen(long_text), &nll, &tokens, &err), &err);
    kit_ok(weir_tokenizer_encode(w.tok, long_text, strlen(long_text), &w.t, &err), &err);
    n = w.t.n;
    assert_true(n > w.info->ctx + 2);
    for (int64_t at = 0; at + 1 < n; at += w.info->ctx) {
        const int64_t here = n - at - 1 < w.info->ctx ? n - at - 1 : w.info->ctx;
        measure(&w, w.t.id + at, here);
        for (int64_t i = 0; i < here; i++, scored++)
            sum -= w.logp[i * w.info->V + w.t.id[at + i + 1]];
    }
    assert_int_equal(tokens, n - 1);
    assert_int_equal(tokens, scored);
    assert_true(near(nll, sum / (double)tokens));
    const weir_str texts[] = {{long_text, strlen(long_text)}, {"", 0}, {long_text, strlen(long_text)}};
    kit_ok(weir_asker_texts(w.a, texts, 3, &together, &tokens, &err), &err);
    assert_true(near(together, nll) && tokens == 2 * (n - 1));
    kit_ok(weir_asker_texts(w.a, texts, 0, &together, &tokens, &err), &err);
    assert_true(isnan(together) && tokens == 0);
    close_world(&w);
}

static void wrong_questions_are_refused(void **state)
{
    (void)state;
    world w;
    weir_answer r;
    const struct {
        weir_question q;
        const char *word;
    } wrong[] = {{{"d e", ""}, "no token"},
                 {{"d e", "  "}, "no token"},
                 {{"", "d"}, "behind nothing"},
                 {{long_text, "d"}, "context"}};
    open_world(&w, KIT_GPT2, &(weir_asker_options){.threads = 1});
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_err err = {0};
        assert_int_equal(weir_asker_ask(w.a, &wrong[i].q, 1, &r, &err), WEIR_E_ARG);
        if (!strstr(err.msg, wrong[i].word))
            fail_msg("%s", err.msg);
    }
    close_world(&w);
}

/* A model that an edit broke has no perplexity: that is no text without a token. */
static void logits_that_are_not_finite_are_an_error(void **state)
{
    (void)state;
    world w;
    weir_err err = {0};
    weir_edit *e;
    weir_asker *broken;
    weir_answer r;
    double nll;
    int64_t tokens;
    open_world(&w, KIT_GPT2, &(weir_asker_options){.threads = 1});
    const int64_t wide = w.info->F > w.info->C ? w.info->F : w.info->C;
    float *huge = calloc((size_t)wide, sizeof *huge);
    for (int64_t i = 0; i < wide; i++)
        huge[i] = 1e30F;
    const weir_update u = {.layer = w.info->L - 1, .matrix = WEIR_MATRIX_DOWN, .r = 1, .u = huge, .v = huge};
    const weir_str text = {long_text, strlen(long_text)};
    kit_ok(weir_edit_new(&e, w.m, &u, 1, &err), &err);
    const weir_asker_options o = {.edits = (const weir_edit *const *)&e, .n_edits = 1, .threads = 1};
    kit_ok(weir_asker_new(&broken, w.m, w.tok, &o, &err), &err);
    assert_int_equal(weir_asker_ask(broken, questions, 1, &r, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "not finite"));
    err = (weir_err){0};
    assert_int_equal(weir_asker_texts(broken, &text, 1, &nll, &tokens, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "not finite"));
    weir_asker_free(broken);
    weir_edit_free(e);
    free(huge);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_logits), cmocka_unit_test(continuations_are_greedy),
        cmocka_unit_test(a_text_is_read_in_windows), cmocka_unit_test(wrong_questions_are_refused),
        cmocka_unit_test(logits_that_are_not_finite_are_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

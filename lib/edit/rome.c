/* The editor: its options, and its life. */
#include "rome.h"

#include <math.h>
#include <string.h>

static const char *const names[WEIR_ROME_METHODS] = {
    [WEIR_ROME_CONSISTENT] = "r-rome",  [WEIR_ROME_COMPAT] = "rome", [WEIR_ROME_COMPAT_R] = "compat-r-rome",
    [WEIR_ROME_PROMPT] = "p-rome",      [WEIR_ROME_MEMIT] = "memit", [WEIR_ROME_EMMET] = "emmet",
    [WEIR_ROME_ALPHAEDIT] = "alphaedit"};

const char *weir_rome_method_name(weir_rome_method m)
{
    return (unsigned)m < WEIR_ROME_METHODS ? names[m] : "unknown";
}

void weir_rome_options_init(weir_rome_options *o)
{
    *o = (weir_rome_options){.steps = 20,
                             .rounds = 5,
                             .rate = 0.5,
                             .kl = 0.0625,
                             .decay = 0.5,
                             .clamp = 4,
                             .enough = 0.05,
                             .weight = 15000,
                             .null_below = 0.02,
                             .l2 = 10};
}

void weir_rome_options_for(weir_rome_options *o, weir_rome_method method)
{
    weir_rome_options_init(o);
    o->method = method;
    if (method == WEIR_ROME_COMPAT || method == WEIR_ROME_COMPAT_R)
        o->rounds = 1;
    if (weir_rome_spreads(method))
        o->clamp = 0.75;
    if (method == WEIR_ROME_EMMET)
        o->weight = 1000; /* emmet_lambda 0.1 times mom2_update_weight 10000 */
}

static weir_status check_numbers(const weir_rome_options *o, weir_err *err)
{
    if ((unsigned)o->method >= WEIR_ROME_METHODS)
        return weir_fail(err, WEIR_E_ARG, "method %d: there are %d", (int)o->method, (int)WEIR_ROME_METHODS);
    if (o->steps < 2 || o->steps > WEIR_ROME_STEPS_MAX)
        return weir_fail(err, WEIR_E_ARG, "%lld steps: 2 to %d can be, and the last one only measures",
                         (long long)o->steps, (int)WEIR_ROME_STEPS_MAX);
    if (o->rounds < 1 || o->rounds > WEIR_ROME_ROUNDS_MAX)
        return weir_fail(err, WEIR_E_ARG, "%lld rounds: 1 to %d can be", (long long)o->rounds,
                         (int)WEIR_ROME_ROUNDS_MAX);
    const struct {
        const char *name;
        double v;
        bool zero; /* is 0 fine? */
    } number[] = {{"rate", o->rate, false},
                  {"kl", o->kl, true},
                  {"decay", o->decay, true},
                  {"clamp", o->clamp, false},
                  {"enough", o->enough, true},
                  {"weight", o->weight, true},
                  {"null_below", o->null_below, false},
                  {"l2", o->l2, false}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (!isfinite(number[i].v) || number[i].v < 0 || (!number[i].zero && number[i].v == 0))
            return weir_fail(err, WEIR_E_ARG, "%s is %g: a number %s 0 is needed", number[i].name, number[i].v,
                             number[i].zero ? "of at least" : "above");
    return WEIR_OK;
}

static weir_status check_layers(const weir_rome_options *o, const weir_spec *s, weir_err *err)
{
    if (o->n_layers < 1 || !o->layer || !o->covariance)
        return weir_fail(err, WEIR_E_ARG, "an edit needs a layer and its second moments");
    if (o->n_layers > 1 && !weir_rome_spreads(o->method))
        return weir_fail(err, WEIR_E_ARG, "%s edits one layer; memit and alphaedit can spread over %d",
                         weir_rome_method_name(o->method), o->n_layers);
    for (int i = 0; i < o->n_layers; i++) {
        if (o->layer[i] < 0 || o->layer[i] >= s->L)
            return weir_fail(err, WEIR_E_ARG, "layer %lld: the model has layers 0 to %lld", (long long)o->layer[i],
                             (long long)(s->L - 1));
        if (i && o->layer[i] <= o->layer[i - 1])
            return weir_fail(err, WEIR_E_ARG, "layers must ascend: %lld stands behind %lld", (long long)o->layer[i],
                             (long long)o->layer[i - 1]);
        if (!o->covariance[i] || o->covariance[i]->f != s->F)
            return weir_fail(
                err, WEIR_E_ARG, "the second moments for layer %lld are of %lld neurons, the layer has %lld",
                (long long)o->layer[i], o->covariance[i] ? (long long)o->covariance[i]->f : 0, (long long)s->F);
    }
    return WEIR_OK;
}

static void *copy(weir_arena *a, const void *p, int n, size_t size)
{
    void *c = weir_arena_alloc(a, (size_t)n + 1, size);
    if (c && n)
        memcpy(c, p, (size_t)n * size);
    return c;
}

/* The lists of the options, and what is made for each layer. */
static bool copy_lists(weir_rome *w, const weir_rome_options *o)
{
    int64_t *layer = copy(&w->arena, o->layer, o->n_layers, sizeof *layer);
    const weir_covariance **cov = copy(&w->arena, o->covariance, o->n_layers, sizeof *cov);
    const weir_edit **edits = copy(&w->arena, o->edits, o->n_edits, sizeof *edits);
    w->strong = weir_arena_alloc(&w->arena, (size_t)o->n_layers, sizeof *w->strong);
    w->n_strong = weir_arena_alloc(&w->arena, (size_t)o->n_layers, sizeof *w->n_strong);
    w->o = *o;
    w->o.layer = layer, w->o.covariance = cov, w->o.edits = edits;
    return layer && cov && edits && w->strong && w->n_strong;
}

weir_status weir_rome_new(weir_rome **out, const weir_model *m, const weir_tokenizer *tok, const weir_rome_prefixes *p,
                          const weir_rome_options *o, weir_err *err)
{
    *out = NULL;
    WEIR_TRY(check_numbers(o, err));
    WEIR_TRY(check_layers(o, weir_model_spec(m), err));
    weir_rome *w = weir_calloc(1, sizeof *w);
    weir_status s = WEIR_OK;
    if (w && copy_lists(w, o)) {
        w->model = m, w->spec = weir_model_spec(m), w->tok = tok, w->prefixes = p;
        s = weir_rome_pass_new(&w->pass, m, &w->o, o->layer[o->n_layers - 1], weir_rome_spreads(o->method), err);
    } else {
        s = weir_nomem(err, "an editor");
    }
    if (s != WEIR_OK)
        weir_rome_free(w);
    else
        *out = w;
    return s;
}

void weir_rome_free(weir_rome *w)
{
    if (!w)
        return;
    weir_rome_pass_free(w->pass);
    for (int i = 0; w->strong && i < w->o.n_layers; i++)
        weir_free(w->strong[i]);
    weir_arena_free(&w->arena);
    weir_free(w);
}

void weir_rome_report_free(weir_rome_report *r)
{
    if (!r)
        return;
    weir_free(r->step);
    r->step = NULL;
    r->steps = 0;
}

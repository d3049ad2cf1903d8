/* roofline/measure.c: a prefill and decoded tokens of a model that runs, timed, beside what this machine could do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/say.h"
#include "roofline.h"

enum { PREFILLS = 3 };

typedef struct timing {
    weir_rooflining *t;
    weir_run *run;
    weir_seq *seq; /* [batch] */
    int32_t *id;   /* [context] of every sequence */
    float *logits; /* [V] */
    int64_t batch, context, decoded;
} timing;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A weight of this model as it is stored, in bits: those of block types lie between whole numbers. */
static double stored_bits(const weir_model *m)
{
    double bytes = 0, elements = 0;
    for (int64_t i = 0; i < weir_model_n_tensors(m); i++) {
        const weir_tensor *x = weir_model_tensor(m, i);
        double n = 1;
        for (int k = 0; k < x->rank; k++)
            n *= (double)x->shape[k];
        bytes += (double)x->bytes;
        elements += n;
    }
    return elements > 0 ? 8 * bytes / elements : 32;
}

/* One pass with the logits of each sequence's last row. */
static weir_status pass(timing *m, int64_t rows, double *seconds, weir_err *err)
{
    const double start = now();
    for (int64_t i = 0; i < m->batch; i++)
        m->seq[i] = (weir_seq){.ids = m->id, .n = rows, .slot = (int)i};
    weir_status st = weir_run_forward(m->run, m->seq, m->batch, WEIR_FINAL, err);
    for (int64_t i = 0; st == WEIR_OK && i < m->batch; i++)
        st = weir_run_logits(m->run, (i + 1) * rows - 1, 1, m->logits, err);
    *seconds = now() - start;
    return st;
}

static void reset(timing *m)
{
    for (int64_t i = 0; i < m->batch; i++)
        weir_run_slot_reset(m->run, (int)i);
}

/* The first pass packs the weights. Of the others the fastest counts, as it does of the machine: other programs only
 * add to it. */
static weir_status time_it(timing *m, weir_roofline_measured *r, weir_err *err)
{
    const int64_t prompt = m->context - m->decoded;
    double seconds;
    WEIR_TRY(pass(m, m->context, &seconds, err));
    r->prefill = r->decode = INFINITY;
    for (int i = 0; i < PREFILLS; i++) {
        reset(m);
        WEIR_TRY(pass(m, m->context, &seconds, err));
        r->prefill = fmin(r->prefill, seconds);
    }
    reset(m);
    WEIR_TRY(pass(m, prompt, &seconds, err));
    for (int64_t i = 0; i < m->decoded; i++) {
        WEIR_TRY(pass(m, 1, &seconds, err));
        r->decode = fmin(r->decode, seconds);
    }
    return WEIR_OK;
}

static int run_timing(timing *m, const weir_model *model, weir_roofline_measured *r)
{
    weir_err err = {0};
    weir_run_options o;
    const int64_t vocab = weir_model_info_of(model)->V;
    weir_run_options_init(&o);
    o.threads = (int)m->t->a->threads;
    o.max_rows = m->batch * m->context;
    o.max_len = m->context;
    o.slots = (int)m->batch;
    m->seq = calloc((size_t)m->batch, sizeof *m->seq);
    m->id = calloc((size_t)m->context, sizeof *m->id);
    m->logits = calloc((size_t)vocab, sizeof *m->logits);
    if (!m->seq || !m->id || !m->logits)
        return weir_cli_error(m->t->cli, "out of memory");
    for (int64_t i = 0; i < m->context; i++)
        m->id[i] = (int32_t)(i * 7919 % vocab); /* any tokens: the time does not depend on them */
    if (weir_run_new(&m->run, model, &o, &err) != WEIR_OK || time_it(m, r, &err) != WEIR_OK)
        return weir_cli_fail(m->t->cli, &err);
    return WEIR_EXIT_OK;
}

static int measure_machine(const weir_rooflining *t, weir_hardware *h)
{
    weir_err err = {0};
    if (!strcmp(t->hw.name, "here")) {
        *h = t->hw;
        return WEIR_EXIT_OK;
    }
    *h = (weir_hardware){.name = "here", .about = "this machine, measured"};
    h->flops = weir_machine_flops((int)t->a->threads);
    return weir_machine_bandwidth(&h->bandwidth, (int)t->a->threads, &err) == WEIR_OK ? WEIR_EXIT_OK
                                                                                      : weir_cli_fail(t->cli, &err);
}

/* What the roofline allows for the same passes. */
static void bound(const weir_rooflining *t, weir_roofline_measured *r)
{
    weir_roof roof;
    weir_roof_prefill(&roof, t->b, t->bill, &r->load);
    r->prefill_bound = weir_bound_of(&roof.total, &r->here);
    weir_roof_decode(&roof, t->b, t->bill, &r->load);
    r->decode_bound = weir_bound_of(&roof.total, &r->here);
}

static int check_size(const weir_rooflining *t, const weir_model_info *info, timing *m)
{
    m->batch = t->batch.v[0];
    m->context = t->context.v[0];
    m->decoded = t->a->tokens;
    if (m->context > info->ctx)
        return weir_cli_usage(t->cli, "--context %lld: the model's context is %lld", (long long)m->context,
                              (long long)info->ctx);
    if (m->context <= m->decoded)
        return weir_cli_usage(t->cli, "--tokens %lld: a context of %lld has no room for them and a prompt",
                              (long long)m->decoded, (long long)m->context);
    if (m->batch * m->context > 1 << 17)
        return weir_cli_usage(t->cli, "--measure of %lld sequences of %lld tokens: at most 131,072 rows",
                              (long long)m->batch, (long long)m->context);
    return WEIR_EXIT_OK;
}

int weir_roofline_measure(weir_rooflining *t)
{
    weir_err err = {0};
    weir_model_options o;
    weir_model *model = NULL;
    timing m = {.t = t};
    weir_roofline_measured *r = &t->measured;
    weir_model_options_init(&o);
    o.log = weir_cli_log(t->cli);
    o.threads = (int)t->a->threads;
    if (weir_roofline_swept(t))
        return weir_cli_usage(t->cli, "--measure times one load: --context N and --batch N");
    if (weir_model_open(&model, t->model, &o, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    int code = check_size(t, weir_model_info_of(model), &m);
    if (code == WEIR_EXIT_OK)
        code = measure_machine(t, &r->here);
    if (code == WEIR_EXIT_OK)
        code = run_timing(&m, model, r);
    if (code == WEIR_EXIT_OK) {
        r->load = (weir_load){.context = (double)m.context,
                              .batch = (double)m.batch,
                              .weight_bits = stored_bits(model),
                              .cache_bits = 32};
        bound(t, r);
        r->done = true;
    }
    weir_run_free(m.run);
    weir_model_free(model);
    free(m.seq);
    free(m.id);
    free(m.logits);
    return code;
}

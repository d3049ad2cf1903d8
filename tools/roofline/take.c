#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "roofline.h"

enum { MOST = 1 << 30 }; /* tokens, sequences */

const char *weir_roofline_limit(const weir_bound *b)
{
    return b->compute >= b->memory ? "compute" : "memory";
}

static bool are_alike(const weir_matmul *a, const weir_matmul *b)
{
    return a->item == b->item && a->in == b->in && a->out == b->out && a->copies == b->copies && a->used == b->used;
}

int64_t weir_roofline_alike(const weir_rooflining *t, int64_t k)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_matmuls; i++) {
        if (!are_alike(&t->matmul[i], &t->matmul[k]))
            continue;
        if (i < k)
            return 0;
        n++;
    }
    return n;
}

/* "N" or "A:B": A, doubled as long as it is below B, and B. */
static int read_sweep(const weir_rooflining *t, const char *option, const char *text, weir_sweep *s)
{
    char first[24] = "";
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    int64_t from = 0, to = 0;
    if (n < sizeof first)
        memcpy(first, text, n);
    bool ok = n < sizeof first && weir_parse_int(first, &from);
    to = from;
    ok = ok && (!colon || weir_parse_int(colon + 1, &to)) && from >= 1 && from <= to && to <= MOST;
    if (!ok)
        return weir_cli_usage(t->cli, "%s %s: a whole number from 1, or A:B with A <= B", option, text);
    for (s->n = 0; from < to; from *= 2)
        s->v[s->n++] = from;
    s->v[s->n++] = to;
    return WEIR_EXIT_OK;
}

static int choose_hardware(weir_rooflining *t)
{
    weir_err err = {0};
    const weir_hardware *known = weir_hardware_named(t->a->hardware);
    if (known) {
        t->hw = *known;
        return WEIR_EXIT_OK;
    }
    if (!strcmp(t->a->hardware, "here")) {
        t->hw = (weir_hardware){.name = "here", .about = "this machine, measured"};
        t->hw.flops = weir_machine_flops((int)t->a->threads);
        if (weir_machine_bandwidth(&t->hw.bandwidth, (int)t->a->threads, &err) != WEIR_OK)
            return weir_cli_fail(t->cli, &err);
        return WEIR_EXIT_OK;
    }
    if (weir_hardware_read(&t->hw, t->a->hardware, &err) == WEIR_OK)
        return WEIR_EXIT_OK;
    if (!strchr(t->a->hardware, '/') && !strchr(t->a->hardware, '.'))
        return weir_cli_usage(t->cli, "--hardware %s: no machine of that name, and no such file", t->a->hardware);
    return weir_cli_fail(t->cli, &err);
}

static void take_point(const weir_rooflining *t, weir_roofline_point *p, int64_t context, int64_t batch)
{
    p->load = (weir_load){.context = (double)context,
                          .batch = (double)batch,
                          .weight_bits = t->a->weight_bits,
                          .cache_bits = t->a->cache_bits,
                          .activations = t->a->activations,
                          .absorbed = t->a->absorbed};
    weir_roof_decode(&p->decode, t->b, t->bill, &p->load);
    weir_roof_prefill(&p->prefill, t->b, t->bill, &p->load);
    p->decode_bound = weir_bound_of(&p->decode.total, &t->hw);
    p->prefill_bound = weir_bound_of(&p->prefill.total, &t->hw);
    p->cached = (weir_cache_elements(t->b, t->bill, (double)context) + (double)t->bill->state) * (double)batch *
                t->a->cache_bits / 8;
}

int weir_roofline_take(weir_rooflining *t)
{
    char context[24];
    snprintf(context, sizeof context, "%lld",
             (long long)(t->b->context > 0 && t->b->context < 4096 ? t->b->context : 4096));
    if (!(t->a->weight_bits > 0) || !(t->a->cache_bits > 0))
        return weir_cli_usage(t->cli, "--weights and --cache: a number of bits is above 0");
    int code = read_sweep(t, "--context", t->a->context ? t->a->context : context, &t->context);
    if (code == WEIR_EXIT_OK)
        code = read_sweep(t, "--batch", t->a->batch, &t->batch);
    if (code == WEIR_EXIT_OK)
        code = choose_hardware(t);
    if (code != WEIR_EXIT_OK)
        return code;
    t->point = calloc((size_t)(t->context.n * t->batch.n), sizeof *t->point);
    if (!t->point)
        return weir_cli_error(t->cli, "out of memory");
    for (int i = 0; i < t->context.n; i++)
        for (int j = 0; j < t->batch.n; j++)
            take_point(t, &t->point[i * t->batch.n + j], t->context.v[i], t->batch.v[j]);
    return WEIR_EXIT_OK;
}

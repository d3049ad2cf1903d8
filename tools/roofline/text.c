#include <math.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "roofline.h"

#define CACHED 128e6 /* bytes; larger than caches are */

/* A number with a unit of thousands: "137.4 G". */
static const char *amount(double x, char buf[32])
{
    static const char *const unit[] = {"", " K", " M", " G", " T", " P", " E"};
    int i = 0;
    while (i < 6 && fabs(x) >= 999.95) {
        x /= 1000;
        i++;
    }
    snprintf(buf, 32, "%.4g%s", x, unit[i]);
    return buf;
}

static const char *duration(double s, char buf[32])
{
    if (s >= 1)
        snprintf(buf, 32, "%.4g s", s);
    else if (s >= 1e-3)
        snprintf(buf, 32, "%.4g ms", s * 1e3);
    else if (s >= 1e-6)
        snprintf(buf, 32, "%.4g us", s * 1e6);
    else
        snprintf(buf, 32, "%.3g ns", s * 1e9);
    return buf;
}

/* The same where a word follows: "24.1 ", "7.0 K". */
static const char *rate(double x, char buf[32])
{
    amount(x, buf);
    const size_t n = strlen(buf);
    if (n && buf[n - 1] >= '0' && buf[n - 1] <= '9')
        snprintf(buf + n, 32 - n, " ");
    return buf;
}

/* ',' between thousands; "none" for infinity. */
static const char *whole(double x, char buf[32])
{
    if (isfinite(x) && x < 9e15)
        return weir_commas((int64_t)floor(x), buf);
    snprintf(buf, 32, "none");
    return buf;
}

static void put_row(const weir_rooflining *t, const char *name, const weir_work *w, const weir_roof *r, bool bar,
                    FILE *out)
{
    char flops[32], bytes[32], time[32];
    const double share = r->total.bytes > 0 ? w->bytes / r->total.bytes : 0;
    fprintf(out, "  %-15s %9s %6.2f%% %9s %6.2f%% %10s  ", name, amount(w->flops, flops),
            r->total.flops > 0 ? 100 * w->flops / r->total.flops : 0, amount(w->bytes, bytes), 100 * share,
            duration(w->bytes / t->hw.bandwidth, time));
    if (bar)
        weir_put_bar(out, share, 24);
    fputc('\n', out);
}

static void put_components(const weir_rooflining *t, const weir_roofline_point *p, FILE *out)
{
    const weir_roof *r = &p->decode;
    fprintf(out, "\na decode step of %g sequence%s at context %g\n  %-15s %9s %7s %9s %7s %10s\n", p->load.batch,
            p->load.batch == 1 ? "" : "s", p->load.context, "", "FLOPs", "", "bytes", "", "to read");
    for (int i = 0; i < WEIR_BILL_ITEMS; i++)
        if (r->item[i].bytes > 0)
            put_row(t, weir_bill_item_name((weir_bill_item)i), &r->item[i], r, true, out);
    if (r->attention.flops > 0)
        put_row(t, "keys, values", &r->attention, r, true, out);
    if (r->state.bytes > 0)
        put_row(t, "mixer states", &r->state, r, true, out);
    if (r->activations > 0)
        put_row(t, "activations", &(weir_work){0, r->activations}, r, true, out);
    put_row(t, "all", &r->total, r, false, out);
    put_row(t, "of it q k v o", &r->attn, r, false, out);
    put_row(t, "of it MLP", &r->mlp, r, false, out);
    put_row(t, "of it weights", &r->weights, r, false, out);
}

static void put_bounds(const weir_rooflining *t, const weir_roofline_point *p, FILE *out)
{
    const weir_bound *d = &p->decode_bound, *f = &p->prefill_bound;
    char a[32], b[32], c[32], e[32];
    fprintf(out, "\ndecode    %s (arithmetic %s, memory %s): bound by %s, %stokens/s, %.4g FLOPs a byte\n",
            duration(d->seconds, a), duration(d->compute, b), duration(d->memory, c), weir_roofline_limit(d),
            rate(p->load.batch / d->seconds, e), d->intensity);
    fprintf(out, "prefill   %s (arithmetic %s, memory %s): bound by %s, %stokens/s, %.4g FLOPs a byte\n",
            duration(f->seconds, a), duration(f->compute, b), duration(f->memory, c), weir_roofline_limit(f),
            rate(p->prefill.tokens / f->seconds, e), f->intensity);
    if (p->decode.input_table > 0)
        fprintf(out,
                "tables    %sB of input tables are looked up, not read; with them MLPs are %.2f%% of the weights\n",
                amount(p->decode.input_table, a),
                100 * p->decode.mlp.bytes / (p->decode.weights.bytes + p->decode.input_table));
    if (t->bill->kv) {
        const double per = (double)t->bill->kv * p->load.cache_bits / 8;
        const double held = (double)t->bill->total.params * p->load.weight_bits / 8 + p->cached;
        fprintf(out, "cache     %s bytes a token, %sB held", whole(per, a), amount(p->cached, b));
        if (t->hw.memory > 0)
            fprintf(out, "; with the weights %sB: %.3g times the machine's memory", amount(held, c),
                    held / t->hw.memory);
        else
            fprintf(out, "; with the weights %sB", amount(held, c));
        fputc('\n', out);
    }
}

static void put_attention(const weir_rooflining *t, const weir_roofline_point *p, FILE *out)
{
    const double n = p->load.context;
    char a[32], b[32];
    const double layers = weir_overtaking(t->b, t->bill, true, false);
    if (!isfinite(layers))
        return;
    fprintf(out, "attention overtakes the weights of the layers at context %s, of the model at %s\n", whole(layers, a),
            whole(weir_overtaking(t->b, t->bill, false, false), b));
    fprintf(out, "          at context %s: %sFLOPs for the last token, ", whole(n, b),
            amount(weir_attention_last(t->b, n, true, p->load.absorbed), a));
    fprintf(out, "%s for the mean of all\n", amount(weir_attention_sum(t->b, n, true, p->load.absorbed) / n, a));
}

static const char *tenths(double x, char buf[32])
{
    if (isfinite(x))
        snprintf(buf, 32, "%.1f", x);
    else
        snprintf(buf, 32, "none");
    return buf;
}

static void put_crossings(const weir_rooflining *t, const weir_roofline_point *p, FILE *out)
{
    weir_load l = p->load;
    char a[32], b[32];
    l.activations = true;
    const double with = weir_crossing(t->b, t->bill, &l, &t->hw, false);
    l.activations = false;
    const double without = weir_crossing(t->b, t->bill, &l, &t->hw, false);
    fprintf(out, "\nbatch from which arithmetic binds: weights %s, with activations %s; ", whole(ceil(without), a),
            whole(ceil(with), b));
    fprintf(out, "a whole step at context %g %s\n", l.context,
            whole(ceil(weir_crossing(t->b, t->bill, &p->load, &t->hw, true)), a));
    fprintf(out, "  %-15s %9s %9s %12s %16s\n", "matrix", "in", "out", "weights", "with activations");
    for (int64_t i = 0; i < t->n_matmuls; i++) {
        const weir_matmul *m = &t->matmul[i];
        if (weir_roofline_alike(t, i))
            fprintf(out, "  %-15s %9lld %9lld %12s %16s\n", weir_bill_item_name(m->item), (long long)m->in,
                    (long long)m->out, tenths(weir_crossing_matrix(m, l.weight_bits, false, &t->hw), a),
                    tenths(weir_crossing_matrix(m, l.weight_bits, true, &t->hw), b));
    }
}

static void put_measured(const weir_rooflining *t, FILE *out)
{
    const weir_roofline_measured *r = &t->measured;
    char a[32], b[32], c[32];
    fprintf(out,
            "\nmeasured here: %sFLOP/s in registers, %sB/s out of memory, ridge %.1f; weights of %.4g bits, a cache of "
            "32\n",
            amount(r->here.flops, a), amount(r->here.bandwidth, b), r->here.flops / r->here.bandwidth,
            r->load.weight_bits);
    fprintf(out, "  decode  %s a step, bound %s (by %s): %.2f of it\n", duration(r->decode, a),
            duration(r->decode_bound.seconds, b), weir_roofline_limit(&r->decode_bound),
            r->decode_bound.seconds / r->decode);
    fprintf(out, "  prefill %s, bound %s (by %s): %.2f of it\n", duration(r->prefill, a),
            duration(r->prefill_bound.seconds, c), weir_roofline_limit(&r->prefill_bound),
            r->prefill_bound.seconds / r->prefill);
    if (r->decode_bound.memory * r->here.bandwidth < CACHED)
        fputs("  a step reads so little that caches hold it: memory's bound need not hold\n", out);
}

static void put_sweep(const weir_rooflining *t, FILE *out)
{
    fprintf(out, "\n%9s %7s %12s %10s %9s %12s %12s %9s\n", "context", "batch", "decode", "tokens/s", "bound",
            "prefill", "cache", "attention");
    for (int i = 0; i < t->context.n * t->batch.n; i++) {
        const weir_roofline_point *p = &t->point[i];
        char a[32], b[32], c[32];
        fprintf(out, "%9.0f %7.0f %12s %10.4g %9s %12s %11sB %8.2f%%\n", p->load.context, p->load.batch,
                duration(p->decode_bound.seconds, a), p->load.batch / p->decode_bound.seconds,
                weir_roofline_limit(&p->decode_bound), duration(p->prefill_bound.seconds, b), amount(p->cached, c),
                100 * p->decode.attention.flops / p->decode.total.flops);
    }
    fputs("attention: the share of the last token's FLOPs that is spent on keys and values\n", out);
}

void weir_roofline_text(const weir_rooflining *t, FILE *out)
{
    const weir_roofline_point *p = &t->point[0];
    char a[32], b[32];
    weir_put_printable(out, t->b->name, 0);
    fprintf(out, " on %s: %sFLOP/s, %sB/s, ridge %.1f FLOPs a byte; weights of %g bits, cache of %g\n",
            t->hw.about[0] ? t->hw.about : t->hw.name, amount(t->hw.flops, a), amount(t->hw.bandwidth, b),
            t->hw.flops / t->hw.bandwidth, p->load.weight_bits, p->load.cache_bits);
    if (weir_roofline_swept(t)) {
        put_sweep(t, out);
        return;
    }
    put_components(t, p, out);
    put_bounds(t, p, out);
    put_attention(t, p, out);
    put_crossings(t, p, out);
    if (t->measured.done)
        put_measured(t, out);
}

int weir_roofline_put(void *rooflining, FILE *out)
{
    const weir_rooflining *t = rooflining;
    if (t->a->out.json)
        weir_roofline_json(t, out);
    else if (t->a->format == WEIR_ROOFLINE_TSV)
        weir_roofline_tsv(t, out);
    else
        weir_roofline_text(t, out);
    return WEIR_EXIT_OK;
}

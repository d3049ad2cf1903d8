#include <math.h>

#include "roofline.h"

/* --- TSV: a line a load */

void weir_roofline_tsv(const weir_rooflining *t, FILE *out)
{
    fputs("context\tbatch\tflops\tflops_weights\tflops_attention\tbytes\tbytes_weights\tbytes_mlp\tbytes_cache\t"
          "intensity\tcompute_seconds\tmemory_seconds\tseconds\tbound\ttokens_per_second\tprefill_flops\t"
          "prefill_bytes\tprefill_seconds\tprefill_bound\tcache_held\n",
          out);
    for (int i = 0; i < t->context.n * t->batch.n; i++) {
        const weir_roofline_point *p = &t->point[i];
        const weir_roof *r = &p->decode;
        const weir_bound *d = &p->decode_bound, *f = &p->prefill_bound;
        fprintf(out, "%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.9g\t%.9g\t%.9g\t%.9g\t%s\t%.9g",
                p->load.context, p->load.batch, r->total.flops, r->weights.flops, r->attention.flops, r->total.bytes,
                r->weights.bytes, r->mlp.bytes, r->attention.bytes, d->intensity, d->compute, d->memory, d->seconds,
                weir_roofline_limit(d), p->load.batch / d->seconds);
        fprintf(out, "\t%.17g\t%.17g\t%.9g\t%s\t%.17g\n", p->prefill.total.flops, p->prefill.total.bytes, f->seconds,
                weir_roofline_limit(f), p->cached);
    }
}

/* --- JSON */

static void begin(weir_jsonw *w, const char *key)
{
    weir_jsonw_key(w, key);
    weir_jsonw_object(w);
}

static void put_hardware(weir_jsonw *w, const char *key, const weir_hardware *h)
{
    begin(w, key);
    weir_jsonw_key_cstr(w, "name", h->name);
    weir_jsonw_key_cstr(w, "about", h->about);
    weir_jsonw_key_double(w, "flops", h->flops);
    weir_jsonw_key_double(w, "bandwidth", h->bandwidth);
    weir_jsonw_key_double(w, "memory", h->memory);
    weir_jsonw_key_double(w, "ridge", h->flops / h->bandwidth);
    weir_jsonw_end(w);
}

static void put_bound(weir_jsonw *w, const weir_bound *b)
{
    weir_jsonw_key_double(w, "compute_seconds", b->compute);
    weir_jsonw_key_double(w, "memory_seconds", b->memory);
    weir_jsonw_key_double(w, "seconds", b->seconds);
    weir_jsonw_key_cstr(w, "bound", weir_roofline_limit(b));
    weir_jsonw_key_double(w, "intensity", b->intensity);
}

/* One of a roof's two columns: FLOPs or bytes. */
static void put_column(weir_jsonw *w, const weir_roof *r, bool bytes)
{
#define COLUMN(work) (bytes ? (work).bytes : (work).flops)
    begin(w, bytes ? "bytes" : "flops");
    begin(w, "items");
    for (int i = 0; i < WEIR_BILL_ITEMS; i++)
        if (r->item[i].bytes > 0)
            weir_jsonw_key_double(w, weir_bill_item_name((weir_bill_item)i), COLUMN(r->item[i]));
    weir_jsonw_end(w);
    weir_jsonw_key_double(w, "attn", COLUMN(r->attn));
    weir_jsonw_key_double(w, "mlp", COLUMN(r->mlp));
    weir_jsonw_key_double(w, "weights", COLUMN(r->weights));
    weir_jsonw_key_double(w, bytes ? "cache" : "attention", COLUMN(r->attention));
    if (bytes) {
        weir_jsonw_key_double(w, "states", r->state.bytes);
        weir_jsonw_key_double(w, "activations", r->activations);
        weir_jsonw_key_double(w, "weights_with_input_table", r->weights.bytes + r->input_table);
    }
    weir_jsonw_key_double(w, "total", COLUMN(r->total));
    weir_jsonw_end(w);
#undef COLUMN
}

static void put_shares(weir_jsonw *w, const weir_rooflining *t, const weir_roofline_point *p)
{
    const weir_roof *r = &p->decode;
    begin(w, "shares");
    weir_jsonw_key_double(w, "mlp_of_bytes", r->mlp.bytes / r->total.bytes);
    weir_jsonw_key_double(w, "mlp_of_weights", r->mlp.bytes / r->weights.bytes);
    weir_jsonw_key_double(w, "mlp_of_weights_with_input_table", r->mlp.bytes / (r->weights.bytes + r->input_table));
    weir_jsonw_key_double(w, "attention_of_flops", r->attention.flops / r->total.flops);
    /* Of the layers alone, windows aside: what a figure of one layer shows. */
    const double attention = weir_attention_last(t->b, p->load.context, false, p->load.absorbed) * p->load.batch;
    weir_jsonw_key_double(w, "attention_of_layer_flops",
                          attention / (attention + r->attn.flops + r->mlp.flops + r->item[WEIR_BILL_MIXER].flops));
    weir_jsonw_end(w);
}

static void put_point(weir_jsonw *w, const weir_rooflining *t, const weir_roofline_point *p)
{
    weir_jsonw_key_double(w, "context", p->load.context);
    weir_jsonw_key_double(w, "batch", p->load.batch);
    begin(w, "decode");
    put_column(w, &p->decode, false);
    put_column(w, &p->decode, true);
    put_shares(w, t, p);
    put_bound(w, &p->decode_bound);
    weir_jsonw_key_double(w, "tokens_per_second", p->load.batch / p->decode_bound.seconds);
    weir_jsonw_key_double(w, "mlp_seconds", p->decode.mlp.bytes / t->hw.bandwidth);
    weir_jsonw_key_double(w, "weights_seconds", p->decode.weights.bytes / t->hw.bandwidth);
    weir_jsonw_end(w);
    begin(w, "prefill");
    put_column(w, &p->prefill, false);
    put_column(w, &p->prefill, true);
    put_bound(w, &p->prefill_bound);
    weir_jsonw_end(w);
    begin(w, "cache");
    weir_jsonw_key_double(w, "bytes_per_token", (double)t->bill->kv * p->load.cache_bits / 8);
    weir_jsonw_key_double(w, "state_bytes", (double)t->bill->state * p->load.cache_bits / 8);
    weir_jsonw_key_double(w, "held", p->cached);
    weir_jsonw_end(w);
}

static void put_attention(weir_jsonw *w, const weir_rooflining *t, const weir_roofline_point *p)
{
    const double n = p->load.context;
    begin(w, "attention");
    weir_jsonw_key_double(w, "flops_per_key", weir_attention_last(t->b, 1, false, p->load.absorbed));
    weir_jsonw_key_double(w, "flops_last", weir_attention_last(t->b, n, true, p->load.absorbed));
    weir_jsonw_key_double(w, "flops_mean", weir_attention_sum(t->b, n, true, p->load.absorbed) / n);
    weir_jsonw_key_double(w, "flops_last_without_windows", weir_attention_last(t->b, n, false, p->load.absorbed));
    weir_jsonw_key_double(w, "overtakes_layers", weir_overtaking(t->b, t->bill, true, false));
    weir_jsonw_key_double(w, "overtakes_layers_with_biases", weir_overtaking(t->b, t->bill, true, true));
    weir_jsonw_key_double(w, "overtakes_model", weir_overtaking(t->b, t->bill, false, false));
    weir_jsonw_end(w);
}

static void put_crossings(weir_jsonw *w, const weir_rooflining *t, const weir_load *load)
{
    weir_load l = *load;
    begin(w, "crossing");
    l.activations = false;
    weir_jsonw_key_double(w, "weights", weir_crossing(t->b, t->bill, &l, &t->hw, false));
    weir_jsonw_key_double(w, "step", weir_crossing(t->b, t->bill, load, &t->hw, true));
    l.activations = true;
    weir_jsonw_key_double(w, "weights_with_activations", weir_crossing(t->b, t->bill, &l, &t->hw, false));
    weir_jsonw_key(w, "matrices");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < t->n_matmuls; i++) {
        const weir_matmul *m = &t->matmul[i];
        const int64_t times = weir_roofline_alike(t, i);
        if (!times)
            continue;
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "item", weir_bill_item_name(m->item));
        weir_jsonw_key_int(w, "in", m->in);
        weir_jsonw_key_int(w, "out", m->out);
        weir_jsonw_key_int(w, "times", times);
        weir_jsonw_key_int(w, "copies", m->copies);
        weir_jsonw_key_int(w, "used", m->used);
        weir_jsonw_key_double(w, "batch", weir_crossing_matrix(m, l.weight_bits, false, &t->hw));
        weir_jsonw_key_double(w, "batch_with_activations", weir_crossing_matrix(m, l.weight_bits, true, &t->hw));
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static void put_measured(weir_jsonw *w, const weir_roofline_measured *r)
{
    begin(w, "measured");
    put_hardware(w, "hardware", &r->here);
    weir_jsonw_key_double(w, "weight_bits", r->load.weight_bits);
    weir_jsonw_key_double(w, "cache_bits", r->load.cache_bits);
    begin(w, "decode");
    weir_jsonw_key_double(w, "measured_seconds", r->decode);
    put_bound(w, &r->decode_bound);
    weir_jsonw_end(w);
    begin(w, "prefill");
    weir_jsonw_key_double(w, "measured_seconds", r->prefill);
    put_bound(w, &r->prefill_bound);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

void weir_roofline_json(const weir_rooflining *t, FILE *out)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-roofline");
    weir_jsonw_key_cstr(&w, "model", t->b->name);
    put_hardware(&w, "hardware", &t->hw);
    weir_jsonw_key_double(&w, "weight_bits", t->a->weight_bits);
    weir_jsonw_key_double(&w, "cache_bits", t->a->cache_bits);
    weir_jsonw_key_bool(&w, "activations", t->a->activations);
    weir_jsonw_key_bool(&w, "absorbed", t->a->absorbed);
    put_attention(&w, t, &t->point[0]);
    put_crossings(&w, t, &t->point[0].load);
    weir_jsonw_key(&w, "loads");
    weir_jsonw_array(&w);
    for (int i = 0; i < t->context.n * t->batch.n; i++) {
        weir_jsonw_object(&w);
        put_point(&w, t, &t->point[i]);
        weir_jsonw_end(&w);
    }
    weir_jsonw_end(&w);
    if (t->measured.done)
        put_measured(&w, &t->measured);
    weir_jsonw_end(&w);
    fputc('\n', out);
}

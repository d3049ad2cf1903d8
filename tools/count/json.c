/* One object: of a model, or of a list of them. */
#include <string.h>

#include "count.h"

static void put_items(weir_jsonw *w, const weir_cost *item)
{
    weir_jsonw_key(w, "by_item");
    weir_jsonw_object(w);
    for (int i = 0; i < WEIR_BILL_ITEMS; i++)
        if (item[i].params)
            weir_jsonw_key_int(w, weir_bill_item_name((weir_bill_item)i), item[i].params);
    weir_jsonw_end(w);
}

static void put_cost(weir_jsonw *w, const weir_cost *c)
{
    weir_jsonw_key_int(w, "total", c->params);
    weir_jsonw_key_int(w, "active", c->active);
    weir_jsonw_key_int(w, "active_without_input_table", c->read);
    weir_jsonw_key_int(w, "matmul", c->matmul);
}

static void put_shape(weir_jsonw *w, const weir_blueprint *b)
{
    weir_jsonw_key(w, "shape");
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "layers", b->n_layers);
    weir_jsonw_key_int(w, "width", b->width);
    weir_jsonw_key_int(w, "vocab", b->vocab);
    weir_jsonw_key_int(w, "context", b->context);
    weir_jsonw_key_cstr(w, "activation", b->activation);
    weir_jsonw_key_cstr(w, "tied", weir_count_tied(b));
    weir_jsonw_key_bool(w, "parallel", b->parallel);
    weir_jsonw_end(w);
}

static void put_kinds(weir_jsonw *w, const weir_counted *m)
{
    weir_jsonw_key(w, "layers");
    weir_jsonw_array(w);
    for (int k = 0; k < m->n_kinds; k++) {
        const weir_count_kind *kind = &m->kind[k];
        const weir_layer_shape *s = kind->shape;
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "kind", kind->label);
        weir_jsonw_key_int(w, "first", kind->first);
        weir_jsonw_key_int(w, "count", kind->n);
        put_cost(w, &kind->bill->total);
        weir_jsonw_key_int(w, "attention", kind->bill->attn.params);
        weir_jsonw_key_int(w, "mlp", kind->bill->mlp.params);
        weir_jsonw_key_double(w, "mlp_share", (double)kind->bill->mlp.params / (double)kind->bill->total.params);
        weir_jsonw_key_double(w, "mlp_share_of_attention_and_mlp",
                              (double)kind->bill->mlp.params /
                                  (double)(kind->bill->mlp.params + kind->bill->attn.params));
        weir_jsonw_key_double(w, "mlp_to_attention", (double)kind->bill->mlp.params / (double)kind->bill->attn.params);
        weir_jsonw_key_int(w, "mlp_flops", 2 * kind->bill->mlp.matmul);
        weir_jsonw_key_int(w, "heads", s->attn.heads);
        weir_jsonw_key_int(w, "kv_heads", s->attn.kv_heads);
        weir_jsonw_key_int(w, "head_size", s->attn.qk);
        weir_jsonw_key_int(w, "mlp_width", s->mlp.width ? s->mlp.width : s->moe.width);
        put_items(w, kind->bill->item);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_share(weir_jsonw *w, const char *key, int64_t part, int64_t whole)
{
    weir_jsonw_key_double(w, key, (double)part / (double)whole);
}

static void put_shares(weir_jsonw *w, const weir_bill *b)
{
    const int64_t all = b->total.params, tables = b->item[WEIR_BILL_EMBED].params + b->item[WEIR_BILL_UNEMBED].params;
    weir_jsonw_key(w, "shares");
    weir_jsonw_object(w);
    put_share(w, "attention", b->attn.params, all);
    put_share(w, "mlp", b->mlp.params, all);
    put_share(w, "embedding", b->item[WEIR_BILL_EMBED].params, all);
    put_share(w, "tables", tables, all);
    put_share(w, "embedding_and_positions", b->item[WEIR_BILL_EMBED].params + b->item[WEIR_BILL_POSITION].params, all);
    put_share(w, "mixer", b->item[WEIR_BILL_MIXER].params, all);
    put_share(w, "mlp_of_what_a_token_reads", b->mlp.read, b->total.read);
    weir_jsonw_end(w);
}

static void put_token(weir_jsonw *w, const weir_bill *b)
{
    weir_jsonw_key(w, "per_token");
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "flops", 2 * b->total.matmul);
    weir_jsonw_key_int(w, "mlp_flops", 2 * b->mlp.matmul);
    weir_jsonw_key_int(w, "attention_flops", 2 * b->attn.matmul);
    if (b->has_cache) {
        weir_jsonw_key_int(w, "attention_flops_per_context_token", b->attn_flops);
        weir_jsonw_key_int(w, "kv_bytes_16bit", 2 * b->kv);
        weir_jsonw_key_int(w, "state_bytes_16bit", 2 * b->state);
    }
    weir_jsonw_end(w);
}

static void put_rules(weir_jsonw *w, const weir_counted *m)
{
    weir_count_rule rule[WEIR_COUNT_RULES];
    weir_count_dff f;
    const int n = weir_count_rules(m, rule);
    weir_jsonw_key(w, "rules");
    weir_jsonw_object(w);
    for (int i = 0; i < n; i++) {
        weir_jsonw_key(w, rule[i].name);
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, "rule", rule[i].rule);
        weir_jsonw_key_double(w, "exact", rule[i].exact);
        weir_jsonw_key_double(w, "error", weir_count_error(&rule[i]));
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    if (!weir_count_dff_of(m, &f))
        return;
    weir_jsonw_key(w, "d_ff");
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "width", f.width);
    weir_jsonw_key_bool(w, "gated", f.gated);
    weir_jsonw_key_double(w, "per_d", f.per_d);
    weir_jsonw_key_double(w, "mlp_in_d2", f.in_d2);
    weir_jsonw_key_int(w, "matched_to_8d2", f.matched);
    weir_jsonw_key(w, "rounding");
    if (f.found && f.gated) {
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, "multiplier", f.multiplier);
        weir_jsonw_key_int(w, "multiple", f.multiple);
        weir_jsonw_key_bool(w, "published_pair", f.published);
        weir_jsonw_end(w);
    } else {
        weir_jsonw_null(w);
    }
    weir_jsonw_end(w);
}

static void put_bytes(weir_jsonw *w, const weir_counting *c, const weir_bill *b)
{
    weir_jsonw_key(w, "bytes");
    weir_jsonw_array(w);
    for (int i = 0; i < c->n_bits; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "bits", c->bits[i]);
        weir_jsonw_key_int(w, "total", weir_counted_bytes(b->total.params, c->bits[i]));
        weir_jsonw_key_int(w, "mlp", weir_counted_bytes(b->mlp.params, c->bits[i]));
        weir_jsonw_key_int(w, "attention", weir_counted_bytes(b->attn.params, c->bits[i]));
        weir_jsonw_key(w, "by_item");
        weir_jsonw_object(w);
        for (int k = 0; k < WEIR_BILL_ITEMS; k++)
            if (b->item[k].params)
                weir_jsonw_key_int(w, weir_bill_item_name((weir_bill_item)k),
                                   weir_counted_bytes(b->item[k].params, c->bits[i]));
        weir_jsonw_end(w);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_file(weir_jsonw *w, const weir_ledger *l)
{
    weir_jsonw_key(w, "file");
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "tensors", l->tensors);
    weir_jsonw_key_int(w, "elements", l->stored);
    weir_jsonw_key_int(w, "bytes", l->bytes);
    weir_jsonw_key_int(w, "by_configuration", l->expected);
    weir_jsonw_key_int(w, "parameters", l->params);
    weir_jsonw_key(w, "elements_by_type");
    weir_jsonw_object(w);
    for (int t = 0; t <= WEIR_DTYPE_COUNT; t++)
        if (l->of_type[t])
            weir_jsonw_key_int(w, t < WEIR_DTYPE_COUNT ? weir_dtype_name((weir_dtype)t) : "other", l->of_type[t]);
    weir_jsonw_end(w);
    weir_jsonw_key(w, "lines");
    weir_jsonw_array(w);
    for (int i = 0; i < l->n_lines; i++) {
        const weir_ledger_line *n = &l->line[i];
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "what", n->what);
        weir_jsonw_key_cstr(w, "example", n->example);
        weir_jsonw_key_int(w, "tensors", n->tensors);
        weir_jsonw_key_int(w, "elements", n->stored);
        weir_jsonw_key_int(w, "parameters", n->params);
        weir_jsonw_key_int(w, "surplus", n->surplus);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static void put_asked(weir_jsonw *w, const weir_counting *c, const weir_counted *m)
{
    if (c->a->lora) {
        weir_jsonw_key(w, "lora");
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "rank", c->a->lora);
        weir_jsonw_key_cstr(w, "targets", c->a->lora_targets);
        weir_jsonw_key_int(w, "matrices", m->lora_matrices);
        weir_jsonw_key_int(w, "parameters", m->lora);
        put_share(w, "share", m->lora, m->bill->total.params);
        weir_jsonw_end(w);
    }
    if (c->a->train_tokens > 0) {
        weir_jsonw_key(w, "training");
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, "tokens", c->a->train_tokens);
        weir_jsonw_key_double(w, "flops_6ND", 6 * (double)m->bill->total.active * c->a->train_tokens);
        weir_jsonw_key_double(w, "tokens_per_parameter", c->a->train_tokens / (double)m->bill->total.active);
        weir_jsonw_end(w);
    }
}

/* The fields of a model, into the object that is open. */
static void put_model(weir_jsonw *w, const weir_counting *c, const weir_counted *m)
{
    const weir_bill *b = m->bill;
    weir_jsonw_key_cstr(w, "model", m->b->name);
    weir_jsonw_key_cstr(w, "model_type", m->b->model_type);
    weir_jsonw_key(w, "remarks");
    weir_jsonw_array(w);
    for (int i = 0; i < m->b->n_remarks; i++)
        weir_jsonw_cstr(w, m->b->remark[i]);
    weir_jsonw_end(w);
    put_shape(w, m->b);
    weir_jsonw_key(w, "parameters");
    weir_jsonw_object(w);
    put_cost(w, &b->total);
    weir_jsonw_key_int(w, "attention", b->attn.params);
    weir_jsonw_key_int(w, "mlp", b->mlp.params);
    put_items(w, b->item);
    weir_jsonw_end(w);
    put_shares(w, b);
    put_kinds(w, m);
    put_token(w, b);
    put_rules(w, m);
    put_bytes(w, c, b);
    put_asked(w, c, m);
    if (m->file)
        put_file(w, m->file);
}

void weir_count_put_json(const weir_counting *c, FILE *out)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-count");
    if (c->n == 1) {
        put_model(&w, c, &c->model[0]);
    } else {
        weir_jsonw_key(&w, "models");
        weir_jsonw_array(&w);
        for (int i = 0; i < c->n; i++) {
            weir_jsonw_object(&w);
            put_model(&w, c, &c->model[i]);
            weir_jsonw_end(&w);
        }
        weir_jsonw_end(&w);
    }
    weir_jsonw_end(&w);
    fputc('\n', out);
}

/* All of it as one object. */
#include <math.h>
#include <stdlib.h>

#include "cli/printable.h"
#include "kv.h"

/* Its number, and its text where it has one. */
static void put_token(const weir_kv *t, weir_jsonw *w, const char *key, const char *text, int32_t id)
{
    const weir_str b = weir_kv_bytes(t, id);
    weir_jsonw_key_int(w, key, id);
    if (!b.n)
        return;
    weir_jsonw_key(w, text);
    weir_jsonw_str(w, b.p, b.n);
}

/* --- layers */

static double share(int64_t n, int64_t of)
{
    return of ? (double)n / (double)of : NAN;
}

static void put_figures(const weir_kv *t, weir_jsonw *w, int layer, int key, int sign)
{
    const weir_keyvalue_figures *f = &t->layer[layer].triggers[key][sign].figures;
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "key", weir_kv_key_name[key]);
    weir_jsonw_key_cstr(w, "sign", weir_kv_sign_name[sign]);
    weir_jsonw_key_int(w, "keys", f->keys);
    weir_jsonw_key_int(w, "agree", f->agree);
    weir_jsonw_key_double(w, "rate", share(f->agree, f->keys));
    weir_jsonw_key_double(w, "chance", f->chance);
    weir_jsonw_key_int(w, "any", f->any);
    weir_jsonw_key_int(w, "places", f->places);
    weir_jsonw_key_int(w, "matches", f->matches);
    weir_jsonw_key_double(w, "median_rank", f->rank);
    weir_jsonw_end(w);
}

static void put_split(const weir_kv *t, weir_jsonw *w, int layer)
{
    const weir_keyvalue_counts c = weir_keyvalue_counts_of(t->split, layer);
    const struct {
        const char *name;
        int64_t n;
    } count[] = {{"rows", c.rows},
                 {"residual", c.residual},
                 {"mlp", c.mlp},
                 {"agreement", c.agreement},
                 {"composition", c.composition},
                 {"apart", c.apart},
                 {"unlike_acting", c.unlike_acting},
                 {"unlike_values", c.unlike_values},
                 {"positive", c.positive},
                 {"negative", c.negative},
                 {"compared", c.compared},
                 {"residual_final", c.residual_final},
                 {"layer_final", c.layer_final},
                 {"lost", c.lost}};
    weir_jsonw_key(w, "split");
    weir_jsonw_object(w);
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        weir_jsonw_key_int(w, count[i].name, count[i].n);
    weir_jsonw_end(w);
}

static void put_layers(const weir_kv *t, weir_jsonw *w)
{
    weir_jsonw_key(w, "layers");
    weir_jsonw_array(w);
    for (int i = 0; i < t->n_layers; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "layer", t->layer[i].layer);
        weir_jsonw_key_int(w, "memories", t->F);
        weir_jsonw_key(w, "agreement");
        weir_jsonw_array(w);
        for (int key = 0; key < WEIR_KV_KEYS; key++)
            for (int sign = 0; sign < 2; sign++)
                if (t->key[key] && t->sign[sign])
                    put_figures(t, w, i, key, sign);
        weir_jsonw_end(w);
        put_split(t, w, i);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

/* --- memories */

static void put_value(const weir_kv *t, weir_jsonw *w, const weir_kv_listed *m, int sign)
{
    const weir_kv_layer *l = &t->layer[m->layer];
    weir_jsonw_key(w, sign ? "negative" : "value");
    weir_jsonw_array(w);
    for (int64_t j = m->unit * t->tokens; j < (m->unit + 1) * t->tokens && l->top_id[sign][j] >= 0; j++) {
        weir_jsonw_object(w);
        put_token(t, w, "id", "text", l->top_id[sign][j]);
        weir_jsonw_key_double(w, "prob", exp((double)l->top_logprob[sign][j]));
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_prefix(const weir_kv *t, weir_jsonw *w, const weir_neurons_context *c)
{
    weir_text text = {0};
    for (int64_t i = c->hit > t->a->context ? c->hit - t->a->context : 0; c->n && i <= c->hit; i++) {
        const weir_str b = weir_kv_bytes(t, c->id[i]);
        weir_text_add(&text, b.p, b.n);
    }
    weir_jsonw_key(w, "prefix");
    weir_jsonw_str(w, text.p, text.n);
    weir_text_free(&text);
}

static void put_triggers(const weir_kv *t, weir_jsonw *w, const weir_kv_listed *m, int key, int sign,
                         weir_neuron_hit *hit)
{
    const weir_kv_triggers *g = &t->layer[m->layer].triggers[key][sign];
    const int64_t n = weir_kv_hits(t, m->layer, (weir_kv_key)key, sign, m->unit, hit);
    int64_t agree, places;
    weir_kv_matches(t, m->layer, (weir_kv_key)key, sign, m->unit, &agree, &places);
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "key", weir_kv_key_name[key]);
    weir_jsonw_key_cstr(w, "sign", weir_kv_sign_name[sign]);
    weir_jsonw_key_int(w, "agree", agree);
    weir_jsonw_key_int(w, "places", places);
    weir_jsonw_key(w, "triggers");
    weir_jsonw_array(w);
    for (int64_t j = 0; j < n; j++) {
        const weir_neurons_context c = weir_neurons_context_of(t->search, hit[j].doc, hit[j].pos, -1);
        weir_jsonw_object(w);
        weir_jsonw_key(w, "value");
        weir_jsonw_float(w, hit[j].value);
        weir_jsonw_key_int(w, "doc", hit[j].doc);
        weir_jsonw_key_int(w, "pos", hit[j].pos);
        weir_jsonw_key_int(w, "count", hit[j].count);
        put_token(t, w, "id", "text", c.n ? c.id[c.hit] : -1);
        put_prefix(t, w, &c);
        put_token(t, w, "next", "next_text", g->next[m->unit * t->k + j]);
        weir_jsonw_key_int(w, "next_rank", g->rank[m->unit * t->k + j]);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static void put_memory(const weir_kv *t, weir_jsonw *w, const weir_kv_listed *m, weir_neuron_hit *hit)
{
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "layer", t->layer[m->layer].layer);
    weir_jsonw_key_int(w, "unit", m->unit);
    for (int sign = 0; sign < 2; sign++)
        if (t->sign[sign])
            put_value(t, w, m, sign);
    weir_jsonw_key(w, "keys");
    weir_jsonw_array(w);
    for (int key = 0; key < WEIR_KV_KEYS; key++)
        for (int sign = 0; sign < 2; sign++)
            if (t->key[key] && t->sign[sign])
                put_triggers(t, w, m, key, sign, hit);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

bool weir_kv_put_json(const weir_kv *t)
{
    weir_neuron_hit *hit = calloc((size_t)t->k, sizeof *hit);
    weir_jsonw w;
    weir_jsonw_init(&w, t->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-kv-read");
    weir_provenance_put(&w, &t->about);
    weir_jsonw_key_cstr(&w, "norm", weir_kv_norm_name[t->a->norm]);
    weir_jsonw_key_int(&w, "k", t->k);
    weir_jsonw_key_int(&w, "every", t->a->every);
    weir_jsonw_key_int(&w, "vocabulary", t->vocab);
    put_layers(t, &w);
    weir_jsonw_key(&w, "memories");
    weir_jsonw_array(&w);
    for (int64_t i = 0; hit && i < t->n_listed; i++)
        put_memory(t, &w, &t->listed[i], hit);
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    fputc('\n', t->out);
    free(hit);
    return hit != NULL;
}

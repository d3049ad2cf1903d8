/* TSV: a line is about a layer, a key, a token of a value, or a trigger. */
#include <math.h>
#include <stdlib.h>

#include "cli/printable.h"
#include "kv.h"

static void put_token(const weir_kv *t, int32_t id)
{
    weir_text text = {0};
    weir_text_token(&text, weir_kv_bytes(t, id), id);
    fwrite(text.p, 1, text.n, t->out);
    weir_text_free(&text);
}

/* Calls for each key and sign that is asked for. */
typedef bool (*putter)(const weir_kv *t, const weir_kv_listed *m, weir_kv_key key, int sign);
static bool each(const weir_kv *t, const weir_kv_listed *m, putter put)
{
    for (int key = 0; key < WEIR_KV_KEYS; key++)
        for (int sign = 0; sign < 2; sign++)
            if (t->key[key] && t->sign[sign] && !put(t, m, (weir_kv_key)key, sign))
                return false;
    return true;
}

static bool put_layer(const weir_kv *t, const weir_kv_listed *m, weir_kv_key key, int sign)
{
    const weir_keyvalue_figures *f = &t->layer[m->layer].triggers[key][sign].figures;
    const weir_keyvalue_counts c = weir_keyvalue_counts_of(t->split, m->layer);
    fprintf(t->out, "%d\t%s\t%s\t%lld\t%lld\t%lld\t%lld\t%lld\t%.9g\t%.9g", t->layer[m->layer].layer,
            weir_kv_key_name[key], weir_kv_sign_name[sign], (long long)f->keys, (long long)f->agree, (long long)f->any,
            (long long)f->places, (long long)f->matches, f->chance, f->rank);
    const int64_t n[] = {c.rows,     c.residual,       c.mlp,           c.agreement, c.composition,
                         c.apart,    c.unlike_acting,  c.unlike_values, c.positive,  c.negative,
                         c.compared, c.residual_final, c.layer_final,   c.lost};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        fprintf(t->out, "\t%lld", (long long)n[i]);
    fputc('\n', t->out);
    return true;
}

static bool put_key(const weir_kv *t, const weir_kv_listed *m, weir_kv_key key, int sign)
{
    const weir_kv_layer *l = &t->layer[m->layer];
    const weir_kv_triggers *g = &l->triggers[key][sign];
    const int32_t top = l->top_id[sign][m->unit * t->tokens];
    int64_t agree, places;
    weir_kv_matches(t, m->layer, key, sign, m->unit, &agree, &places);
    fprintf(t->out, "%d\t%lld\t%s\t%s\t%d\t%.9g\t%lld\t%lld\t%d\t%d\t", l->layer, (long long)m->unit,
            weir_kv_key_name[key], weir_kv_sign_name[sign], top, exp((double)l->top_logprob[sign][m->unit * t->tokens]),
            (long long)agree, (long long)places, g->next[m->unit * t->k], g->rank[m->unit * t->k]);
    put_token(t, top);
    fputc('\n', t->out);
    return true;
}

static bool put_value(const weir_kv *t, const weir_kv_listed *m, int sign)
{
    const weir_kv_layer *l = &t->layer[m->layer];
    for (int64_t j = m->unit * t->tokens; j < (m->unit + 1) * t->tokens; j++) {
        if (l->top_id[sign][j] < 0)
            break;
        fprintf(t->out, "%d\t%lld\t%s\t%lld\t%d\t%.9g\t", l->layer, (long long)m->unit, weir_kv_sign_name[sign],
                (long long)(j - m->unit * t->tokens + 1), l->top_id[sign][j], exp((double)l->top_logprob[sign][j]));
        put_token(t, l->top_id[sign][j]);
        fputc('\n', t->out);
    }
    return true;
}

static bool put_triggers(const weir_kv *t, const weir_kv_listed *m, weir_kv_key key, int sign)
{
    const weir_kv_triggers *g = &t->layer[m->layer].triggers[key][sign];
    weir_neuron_hit *hit = calloc((size_t)t->k, sizeof *hit);
    const int64_t n = hit ? weir_kv_hits(t, m->layer, key, sign, m->unit, hit) : 0;
    for (int64_t j = 0; j < n; j++) {
        const weir_neurons_context c = weir_neurons_context_of(t->search, hit[j].doc, hit[j].pos, -1);
        const int64_t at = m->unit * t->k + j, from = c.hit > t->a->context ? c.hit - t->a->context : 0;
        char value[32];
        fprintf(t->out, "%d\t%lld\t%s\t%s\t%lld\t%s\t%lld\t%lld\t%lld\t%d\t%d\t%d\t", t->layer[m->layer].layer,
                (long long)m->unit, weir_kv_key_name[key], weir_kv_sign_name[sign], (long long)j + 1,
                weir_float_text(value, hit[j].value), (long long)hit[j].doc, (long long)hit[j].pos,
                (long long)hit[j].count, c.n ? c.id[c.hit] : -1, g->next[at], g->rank[at]);
        for (int64_t i = from; c.n && i <= c.hit; i++)
            put_token(t, c.id[i]);
        fputc('\n', t->out);
    }
    free(hit);
    return hit != NULL;
}

static bool put_memory(const weir_kv *t, const weir_kv_listed *m)
{
    if (t->a->per == WEIR_KV_PER_KEY)
        return each(t, m, put_key);
    if (t->a->per == WEIR_KV_PER_TRIGGER)
        return each(t, m, put_triggers);
    return (!t->sign[0] || put_value(t, m, 0)) && (!t->sign[1] || put_value(t, m, 1));
}

bool weir_kv_put_tsv(const weir_kv *t)
{
    static const char *const head[] = {
        "layer\tkey\tsign\tkeys\tagree\tany\tplaces\tmatches\tchance\trank\trows\tresidual\tmlp\tagreement\tcomposition"
        "\t"
        "apart\tunlike_acting\tunlike_values\tpositive\tnegative\tcompared\tresidual_final\tlayer_final\tlost\n",
        "layer\tunit\tkey\tsign\ttop_id\ttop_prob\tagree\tplaces\tnext\tnext_rank\ttop\n",
        "layer\tunit\tsign\trank\tid\tprob\ttext\n",
        "layer\tunit\tkey\tsign\tplace\tvalue\tdoc\tpos\tcount\tid\tnext\tnext_rank\ttext\n"};
    fputs(head[t->a->per], t->out);
    bool ok = true;
    if (t->a->per == WEIR_KV_PER_LAYER)
        for (int i = 0; i < t->n_layers; i++)
            each(t, &(weir_kv_listed){.layer = i}, put_layer);
    else
        for (int64_t i = 0; i < t->n_listed && ok; i++)
            ok = put_memory(t, &t->listed[i]);
    return ok;
}

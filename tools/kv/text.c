/* For people: the layers, then the memories that are listed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "kv.h"

enum { BAR = 24 };

/* --- layers */

static const char *percent(int64_t n, int64_t of, char buf[24])
{
    if (of)
        snprintf(buf, 24, "%.1f%%", 100 * (double)n / (double)of);
    else
        snprintf(buf, 24, "-");
    return buf;
}

static void put_agreement(const weir_kv *t, int key, int sign)
{
    fprintf(t->out, "\nDo keys and values mean the same? Triggers by %s%s.\n", weir_kv_key_name[key],
            sign ? ", the lowest, beside the values' negatives" : "");
    fprintf(t->out, "%5s %7s %7s %7s %9s %9s %12s\n", "layer", "keys", "agree", "chance", "any", "triggers",
            "median rank");
    for (int i = 0; i < t->n_layers; i++) {
        const weir_keyvalue_figures *f = &t->layer[i].triggers[key][sign].figures;
        char rate[24], any[24], places[24], chance[24] = "-";
        if (f->keys)
            snprintf(chance, sizeof chance, "%.2f%%", 100 * f->chance);
        fprintf(t->out, "%5d %7lld %7s %7s %9s %9s ", t->layer[i].layer, (long long)f->keys,
                percent(f->agree, f->keys, rate), chance, percent(f->any, f->keys, any),
                percent(f->matches, f->places, places));
        isnan(f->rank) ? fprintf(t->out, "%12s\n", "-") : fprintf(t->out, "%12.1f\n", f->rank);
    }
}

/* r residual, m MLP, b both, c composition: 24 marks for all rows, each kind's share rounded where it ends. */
static void put_bar(const weir_kv *t, const weir_keyvalue_counts *c)
{
    const int64_t part[] = {c->residual, c->agreement, c->mlp, c->composition};
    int64_t sum = 0;
    int drawn = 0;
    for (int i = 0; i < 4 && c->rows; i++) {
        sum += part[i];
        for (const int end = (int)lround((double)sum / (double)c->rows * BAR); drawn < end; drawn++)
            fputc("rbmc"[i], t -> out);
    }
}

static void put_split(const weir_kv *t)
{
    fputs(
        "\nWhere does the layer's prediction come from? r residual, b both agree, m MLP, c neither: composition. "
        "unlike: the\nMLP predicts what no memory does as it acts; final: the residual already predicts what the model "
        "does.\n",
        t->out);
    fprintf(t->out, "%5s %9s %8s %8s %8s %8s %8s %8s %8s\n", "layer", "positions", "residual", "both", "MLP", "compose",
            "unlike", "final", "active");
    for (int i = 0; i < t->n_layers; i++) {
        const weir_keyvalue_counts c = weir_keyvalue_counts_of(t->split, i);
        char a[7][24];
        fprintf(t->out, "%5d %9lld %8s %8s %8s %8s %8s %8s %8s  ", t->layer[i].layer, (long long)c.rows,
                percent(c.residual, c.rows, a[0]), percent(c.agreement, c.rows, a[1]), percent(c.mlp, c.rows, a[2]),
                percent(c.composition, c.rows, a[3]), percent(c.unlike_acting, c.rows, a[4]),
                percent(c.residual_final, c.compared, a[5]), percent(c.positive, c.rows * t->F, a[6]));
        put_bar(t, &c);
        fputc('\n', t->out);
        if (c.lost)
            fprintf(t->out, "      %lld positions have no prediction: their values are not finite\n",
                    (long long)c.lost);
    }
}

/* --- memories */

static void put_value(const weir_kv *t, const weir_kv_listed *m, int sign)
{
    const weir_kv_layer *l = &t->layer[m->layer];
    fputs(sign ? "  its negative promotes" : "  value promotes", t->out);
    for (int64_t j = m->unit * t->tokens; j < (m->unit + 1) * t->tokens && l->top_id[sign][j] >= 0; j++) {
        char buf[32];
        fputc(' ', t->out);
        weir_put_token(t->out, weir_kv_bytes(t, l->top_id[sign][j]), l->top_id[sign][j], 0);
        fprintf(t->out, " %s", weir_rounded(exp((double)l->top_logprob[sign][j]), 3, false, buf));
    }
    fputc('\n', t->out);
}

static void add_token(const weir_kv *t, weir_text *text, int32_t id)
{
    weir_text_token(text, weir_kv_bytes(t, id), id);
}

/* The prefix, what came next, and whether the value says so. */
static bool put_trigger(const weir_kv *t, const weir_neuron_hit *h, int32_t next, int32_t rank)
{
    const weir_neurons_context c = weir_neurons_context_of(t->search, h->doc, h->pos, -1);
    weir_text text = {0};
    char buf[32];
    for (int64_t i = c.hit > t->a->context ? c.hit - t->a->context : 0; c.n && i < c.hit; i++)
        add_token(t, &text, c.id[i]);
    weir_text_add(&text, "[", 1);
    if (c.n)
        add_token(t, &text, c.id[c.hit]);
    weir_text_add(&text, "]", 1);
    if (next >= 0) {
        weir_text_add(&text, " -> \"", 5);
        add_token(t, &text, next);
        weir_text_add(&text, "\"", 1);
    }
    fprintf(t->out, "  %10s  %c %.*s", weir_rounded((double)h->value, 4, true, buf), rank == 1 ? '*' : ' ', (int)text.n,
            text.p);
    fprintf(t->out, next >= 0 ? " (rank %d)\n" : " (no next token)\n", rank);
    const bool ok = !text.failed;
    weir_text_free(&text);
    return ok;
}

static bool put_triggers(const weir_kv *t, const weir_kv_listed *m, int key, int sign, weir_neuron_hit *hit)
{
    const weir_kv_triggers *g = &t->layer[m->layer].triggers[key][sign];
    const int64_t n = weir_kv_hits(t, m->layer, (weir_kv_key)key, sign, m->unit, hit);
    int64_t agree, places;
    weir_kv_matches(t, m->layer, (weir_kv_key)key, sign, m->unit, &agree, &places);
    fprintf(t->out, "  triggers by %s%s: %lld of %lld are followed by the likeliest token\n", sign ? "the lowest " : "",
            weir_kv_key_name[key], (long long)agree, (long long)places);
    bool ok = true;
    for (int64_t j = 0; j < n && ok; j++)
        ok = put_trigger(t, &hit[j], g->next[m->unit * t->k + j], g->rank[m->unit * t->k + j]);
    return ok;
}

static bool put_memory(const weir_kv *t, const weir_kv_listed *m, weir_neuron_hit *hit)
{
    bool ok = true;
    fprintf(t->out, "\nL%dN%lld\n", t->layer[m->layer].layer, (long long)m->unit);
    for (int sign = 0; sign < 2 && ok; sign++) {
        if (t->sign[sign])
            put_value(t, m, sign);
        for (int key = 0; key < WEIR_KV_KEYS && ok; key++)
            if (t->key[key] && t->sign[sign])
                ok = put_triggers(t, m, key, sign, hit);
    }
    return ok;
}

bool weir_kv_put_text(const weir_kv *t)
{
    static const char *const read[] = {"straight through the unembedding", "through the final norm's gain",
                                       "through the whole final norm"};
    weir_neuron_hit *hit = calloc((size_t)t->k, sizeof *hit);
    char rows[32];
    bool ok = hit != NULL;
    weir_put_printable(t->out, t->s.info->name, 0);
    fprintf(t->out, ": an MLP as a memory of keys and values, read %s; %s positions with a next token in ",
            read[t->a->norm], weir_commas(weir_neurons_counts_of(t->search).masked[0], rows));
    weir_put_printable(t->out, t->about.source, 0);
    fputc('\n', t->out);
    for (int key = 0; key < WEIR_KV_KEYS; key++)
        for (int sign = 0; sign < 2; sign++)
            if (t->key[key] && t->sign[sign])
                put_agreement(t, key, sign);
    put_split(t);
    if (t->n_listed)
        fputs("\nMemories. A trigger ends in [ ]; -> its next token; rank: that token's in the value's distribution; "
              "*: it is the first\n",
              t->out);
    for (int64_t i = 0; i < t->n_listed && ok; i++)
        ok = put_memory(t, &t->listed[i], hit);
    free(hit);
    return ok;
}

/* One model for people: a table of its parts, what a token costs, rules of thumb, and pictures drawn to scale. */
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "count.h"

enum { KINDS_SHOWN = 4 };

static double share(int64_t part, int64_t whole)
{
    return 100 * (double)part / (double)whole;
}

/* --- the head */

static void put_heads(const weir_attention_shape *a, FILE *out)
{
    if (!a->heads)
        return;
    fprintf(out, ", %lld head%s of %lld", (long long)a->heads, a->heads == 1 ? "" : "s", (long long)a->qk);
    if (a->kv_rank)
        fprintf(out, " (latent keys and values of rank %lld)", (long long)a->kv_rank);
    else if (a->kv_heads < a->heads)
        fprintf(out, " sharing %lld of keys and values", (long long)a->kv_heads);
}

static void put_head(const weir_counted *m, FILE *out)
{
    const weir_blueprint *b = m->b;
    weir_count_dff f;
    char c[32];
    int k = 0;
    while (k < m->n_kinds - 1 && !m->kind[k].shape->attn.heads)
        k++;
    weir_put_printable(out, b->name, 0);
    fputs(" (", out);
    weir_put_printable(out, b->model_type, 0);
    fprintf(out, "): %lld layers, width %s", (long long)b->n_layers, weir_commas(b->width, c));
    put_heads(&m->kind[k].shape->attn, out);
    if (weir_count_dff_of(m, &f))
        fprintf(out, ", MLP %s %s", weir_commas(f.width, c), f.gated ? "gated" : "without gate");
    fprintf(out, ", vocabulary %s, %s\n", weir_commas(b->vocab, c),
            b->head == WEIR_HEAD_TIED  ? "head tied to the table"
            : b->head == WEIR_HEAD_OWN ? "head of its own"
                                       : "no head");
}

/* --- the table */

static void put_line(const weir_counted *m, const char *name, const int64_t *each, int64_t whole, double most,
                     FILE *out)
{
    char c[32];
    const int kinds = m->n_kinds < KINDS_SHOWN ? m->n_kinds : KINDS_SHOWN;
    fprintf(out, "  %-14s", name);
    for (int k = 0; k < kinds; k++)
        fprintf(out, " %18s", each[k] ? weir_commas(each[k], c) : "");
    fprintf(out, " %21s %6.2f%%", weir_commas(whole, c), share(whole, m->bill->total.params));
    if (most > 0) {
        fputs("  ", out);
        weir_put_bar(out, (double)whole / most, 24);
    }
    fputc('\n', out);
}

static void put_table_head(const weir_counted *m, FILE *out)
{
    fprintf(out, "\n  %-14s", "parameters");
    for (int k = 0; k < m->n_kinds && k < KINDS_SHOWN; k++) {
        char label[64];
        snprintf(label, sizeof label, "%s x %lld", m->kind[k].label, (long long)m->kind[k].n);
        fprintf(out, " %18s", label);
    }
    fprintf(out, " %21s %7s\n", "whole", "share");
}

static void put_table(const weir_counted *m, FILE *out)
{
    const weir_bill *b = m->bill;
    double most = 0;
    int64_t each[KINDS_SHOWN] = {0};
    put_table_head(m, out);
    for (int i = 0; i < WEIR_BILL_ITEMS; i++)
        most = (double)b->item[i].params > most ? (double)b->item[i].params : most;
    for (int i = 0; i < WEIR_BILL_ITEMS; i++) {
        for (int k = 0; k < m->n_kinds && k < KINDS_SHOWN; k++)
            each[k] = m->kind[k].bill->item[i].params;
        if (b->item[i].params)
            put_line(m, weir_bill_item_name((weir_bill_item)i), each, b->item[i].params, most, out);
    }
    const struct {
        const char *name;
        size_t layer;
        int64_t whole;
    } sum[] = {{"attention", offsetof(weir_layer_bill, attn), b->attn.params},
               {"MLP", offsetof(weir_layer_bill, mlp), b->mlp.params},
               {"total", offsetof(weir_layer_bill, total), b->total.params}};
    for (size_t i = 0; i < sizeof sum / sizeof *sum; i++) {
        for (int k = 0; k < m->n_kinds && k < KINDS_SHOWN; k++)
            each[k] = ((const weir_cost *)((const char *)m->kind[k].bill + sum[i].layer))->params;
        put_line(m, sum[i].name, each, sum[i].whole, 0, out);
    }
}

/* --- what a token costs */

static void put_pair(FILE *out, const char *name, int64_t v, const char *more)
{
    char c[32];
    fprintf(out, "  %-34s %21s%s%s\n", name, weir_commas(v, c), *more ? "  " : "", more);
}

static void put_token(const weir_counted *m, FILE *out)
{
    const weir_bill *b = m->bill;
    fputs("\n  a token\n", out);
    put_pair(out, "active parameters", b->total.active, b->layers_moe ? "the experts that it uses, and all else" : "");
    put_pair(out, "without the input table", b->total.read, "a lookup reads one row of it");
    put_pair(out, "FLOPs of the weights", 2 * b->total.matmul, "2 for each element of a matrix");
    if (!b->has_cache)
        return;
    put_pair(out, "FLOPs a token of context", b->attn_flops, "attention; windows ignored");
    put_pair(out, "cache, bytes at 16 bits", 2 * b->kv, "keys and values; windows ignored");
    if (b->state)
        put_pair(out, "state, bytes at 16 bits", 2 * b->state, "of the mixers, however long the context is");
}

/* --- rules of thumb */

static void put_rules(const weir_counted *m, FILE *out)
{
    weir_count_rule rule[WEIR_COUNT_RULES];
    weir_count_dff f;
    const double d2 = (double)m->b->width * (double)m->b->width;
    const int n = weir_count_rules(m, rule);
    fprintf(out, "\n  %-42s %18s %20s %8s\n", "rules of thumb", "rule", "exact", "error");
    for (int i = 0; i < n; i++) {
        char a[32], b[32];
        fprintf(out, "  %-42s %18s %20s %+7.1f%%\n", rule[i].what, weir_commas((int64_t)(rule[i].rule + .5), a),
                weir_commas((int64_t)(rule[i].exact + .5), b), 100 * weir_count_error(&rule[i]));
    }
    for (int k = 0; k < m->n_kinds; k++) {
        const weir_layer_bill *l = m->kind[k].bill;
        if (l->attn.params && l->mlp.params)
            fprintf(out, "  %s: MLP %.2f times attention (%.2f d^2 and %.2f d^2), %.2f%% of both\n", m->kind[k].label,
                    (double)l->mlp.params / (double)l->attn.params, (double)l->mlp.params / d2,
                    (double)l->attn.params / d2, share(l->mlp.params, l->mlp.params + l->attn.params));
    }
    if (!weir_count_dff_of(m, &f))
        return;
    char c[32], w[32];
    fprintf(out, "  MLP of width %s = %.4g d: %.4g d^2 weights; 8 d^2 would need %s", weir_commas(f.width, w), f.per_d,
            f.in_d2, weir_commas(f.matched, c));
    fputs(f.gated ? " (8d/3)\n" : " (4d)\n", out);
    if (f.gated && f.found)
        fprintf(out, "  %s = round-up(%.2g x 8d/3, %lld)%s\n", weir_commas(f.width, w), f.multiplier,
                (long long)f.multiple, f.published ? ", a pair that Llama models were published with" : "");
    else if (f.gated)
        fprintf(out, "  no multiplier in tenths and no multiple of 64 to 4,096 give %s from 8d/3\n",
                weir_commas(f.width, w));
}

/* --- bytes, adapters, training */

static void put_bytes_line(const weir_counting *c, const char *name, int64_t params, FILE *out)
{
    char n[32];
    fprintf(out, "  %-14s", name);
    for (int i = 0; i < c->n_bits; i++)
        fprintf(out, " %19s", weir_commas(weir_counted_bytes(params, c->bits[i]), n));
    fputc('\n', out);
}

static void put_bytes(const weir_counting *c, const weir_counted *m, FILE *out)
{
    fprintf(out, "\n  %-14s", "bytes at");
    for (int i = 0; i < c->n_bits; i++) {
        char label[32];
        snprintf(label, sizeof label, "%lld bits", (long long)c->bits[i]);
        fprintf(out, " %19s", label);
    }
    fputc('\n', out);
    for (int i = 0; i < WEIR_BILL_ITEMS; i++)
        if (m->bill->item[i].params)
            put_bytes_line(c, weir_bill_item_name((weir_bill_item)i), m->bill->item[i].params, out);
    put_bytes_line(c, "total", m->bill->total.params, out);
}

static void put_asked(const weir_counting *c, const weir_counted *m, FILE *out)
{
    char n[32];
    if (c->a->lora)
        fprintf(out, "\n  LoRA of rank %lld on %s: %s parameters (%.3f%%) in %lld matrices\n", (long long)c->a->lora,
                c->a->lora_targets, weir_commas(m->lora, n), share(m->lora, m->bill->total.params),
                (long long)m->lora_matrices);
    if (c->a->train_tokens > 0)
        fprintf(out, "\n  training on %.4g tokens: 6ND = %.3e FLOPs (N active parameters), %.1f tokens a parameter\n",
                c->a->train_tokens, 6 * (double)m->bill->total.active * c->a->train_tokens,
                c->a->train_tokens / (double)m->bill->total.active);
}

/* --- pictures: a strip in which every sign is as many parameters */

typedef struct piece {
    char sign;
    int64_t params;
} piece;

static const char SIGN[WEIR_BILL_ITEMS + 1] = "EPqkvcorgudRSXMnUt";

static void put_strip(FILE *out, const piece *p, int n, int columns)
{
    int64_t whole = 0;
    double upto = 0;
    int drawn = 0;
    for (int i = 0; i < n; i++)
        whole += p[i].params;
    fputs("  |", out);
    for (int i = 0; i < n; i++) {
        upto += (double)p[i].params;
        for (const int end = (int)(upto / (double)whole * columns + 0.5); drawn < end; drawn++)
            fputc(p[i].sign, out);
    }
    fputs("|\n", out);
}

static void put_picture(const weir_counting *c, const weir_counted *m, FILE *out)
{
    const int columns = weir_width_of(c->a->width, out) - 4;
    piece p[WEIR_BILL_ITEMS];
    for (int k = 0; k < m->n_kinds && k < KINDS_SHOWN; k++) {
        char n[32];
        for (int i = 0; i < WEIR_BILL_ITEMS; i++)
            p[i] = (piece){SIGN[i], m->kind[k].bill->item[i].params};
        fprintf(out, "\n  one %s, to scale: %s parameters\n", m->kind[k].label,
                weir_commas(m->kind[k].bill->total.params, n));
        put_strip(out, p, WEIR_BILL_ITEMS, columns);
    }
    const weir_cost *item = m->bill->item;
    const piece whole[] = {{'E', item[WEIR_BILL_EMBED].params},   {'P', item[WEIR_BILL_POSITION].params},
                           {'a', m->bill->attn.params},           {'m', m->bill->mlp.params},
                           {'M', item[WEIR_BILL_MIXER].params},   {'n', item[WEIR_BILL_NORM].params},
                           {'U', item[WEIR_BILL_UNEMBED].params}, {'t', item[WEIR_BILL_OTHER].params}};
    fputs("\n  the model, to scale\n", out);
    put_strip(out, whole, (int)(sizeof whole / sizeof *whole), columns);
    fputs(
        "  E embedding  P positions  a attention (q k v o; c latent, r rest)  m MLP (g gate, u up, d down; R router,\n"
        "  S shared, X routed experts)  M mixers  n norms  U unembedding  t other\n",
        out);
}

void weir_count_put_text(const weir_counting *c, FILE *out)
{
    const weir_counted *m = &c->model[0];
    put_head(m, out);
    put_table(m, out);
    put_token(m, out);
    put_rules(m, out);
    put_bytes(c, m, out);
    put_asked(c, m, out);
    put_picture(c, m, out);
    if (m->file)
        weir_count_put_file(m, out);
}

/* Several models side by side: a row a number, a column a model. */
#include <string.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "count.h"

enum { COLUMN = 22 };

static void put_name(FILE *out, const char *name)
{
    fprintf(out, "  %-26s", name);
}

static void put_cell(FILE *out, const char *text)
{
    fprintf(out, " %*s", COLUMN, text);
}

static void put_row(const weir_counting *c, FILE *out, const char *name,
                    int64_t (*of)(const weir_counted *m, int64_t x), int64_t x)
{
    char n[32];
    bool any = false;
    for (int i = 0; i < c->n; i++)
        any = any || of(&c->model[i], x);
    if (!any)
        return;
    put_name(out, name);
    for (int i = 0; i < c->n; i++) {
        const int64_t v = of(&c->model[i], x);
        put_cell(out, v ? weir_commas(v, n) : "-");
    }
    fputc('\n', out);
}

static int64_t item_of(const weir_counted *m, int64_t item)
{
    return m->bill->item[item].params;
}

enum { LAYERS, WIDTH, VOCAB, TOTAL, ACTIVE, READ, ATTN, MLP, FLOPS, CONTEXT_FLOPS, CACHE, STATE, LORA, STORED };

static int64_t sum_of(const weir_counted *m, int64_t which)
{
    const weir_bill *b = m->bill;
    switch (which) {
    case LAYERS:
        return b->n_layers;
    case WIDTH:
        return m->b->width;
    case VOCAB:
        return m->b->vocab;
    case TOTAL:
        return b->total.params;
    case ACTIVE:
        return b->total.active;
    case READ:
        return b->total.read;
    case ATTN:
        return b->attn.params;
    case MLP:
        return b->mlp.params;
    case FLOPS:
        return 2 * b->total.matmul;
    case CONTEXT_FLOPS:
        return b->attn_flops;
    case CACHE:
        return 2 * b->kv;
    case STATE:
        return 2 * b->state;
    case LORA:
        return m->lora;
    default:
        return m->file ? m->file->stored : 0;
    }
}

static int64_t bytes_of(const weir_counted *m, int64_t bits)
{
    return weir_counted_bytes(m->bill->total.params, bits);
}

static void put_shares(const weir_counting *c, FILE *out)
{
    put_name(out, "share of the MLPs");
    for (int i = 0; i < c->n; i++)
        fprintf(out, " %*.2f%%", COLUMN - 1,
                100 * (double)c->model[i].bill->mlp.params / (double)c->model[i].bill->total.params);
    fputc('\n', out);
}

/* A layer's; the first kind that has any where layers differ. */
static int64_t layer_of(const weir_counted *m, int64_t mlp)
{
    for (int k = 0; k < m->n_kinds; k++) {
        const int64_t v = mlp ? m->kind[k].bill->mlp.params : m->kind[k].bill->attn.params;
        if (v)
            return v;
    }
    return 0;
}

static void put_training(const weir_counting *c, FILE *out)
{
    put_name(out, "6ND, FLOPs");
    for (int i = 0; i < c->n; i++)
        fprintf(out, " %*.3e", COLUMN, 6 * (double)c->model[i].bill->total.active * c->a->train_tokens);
    fputc('\n', out);
}

void weir_count_put_side(const weir_counting *c, FILE *out)
{
    put_name(out, "");
    for (int i = 0; i < c->n; i++) {
        char name[COLUMN + 1];
        snprintf(name, sizeof name, "%s", c->model[i].b->name);
        weir_make_printable(name);
        put_cell(out, name);
    }
    fputc('\n', out);
    put_row(c, out, "layers", sum_of, LAYERS);
    put_row(c, out, "width", sum_of, WIDTH);
    put_row(c, out, "vocabulary", sum_of, VOCAB);
    for (int i = 0; i < WEIR_BILL_ITEMS; i++)
        put_row(c, out, weir_bill_item_name((weir_bill_item)i), item_of, i);
    put_row(c, out, "attention", sum_of, ATTN);
    put_row(c, out, "MLP", sum_of, MLP);
    put_row(c, out, "total", sum_of, TOTAL);
    put_shares(c, out);
    put_row(c, out, "attention, first layer", layer_of, 0);
    put_row(c, out, "MLP, first layer", layer_of, 1);
    put_row(c, out, "active", sum_of, ACTIVE);
    put_row(c, out, "without the input table", sum_of, READ);
    put_row(c, out, "FLOPs a token", sum_of, FLOPS);
    put_row(c, out, "and a token of context", sum_of, CONTEXT_FLOPS);
    put_row(c, out, "cache, bytes a token", sum_of, CACHE);
    put_row(c, out, "state, bytes", sum_of, STATE);
    for (int i = 0; i < c->n_bits; i++) {
        char name[32];
        snprintf(name, sizeof name, "bytes at %lld bits", (long long)c->bits[i]);
        put_row(c, out, name, bytes_of, c->bits[i]);
    }
    put_row(c, out, "LoRA", sum_of, LORA);
    if (c->a->train_tokens > 0)
        put_training(c, out);
    put_row(c, out, "elements in the file", sum_of, STORED);
}

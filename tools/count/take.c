/* Opens what is named and counts it. */
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "count.h"

/* --- kinds of layers */

static const char *label_of(const weir_layer_shape *s, bool two_sides, bool mixed)
{
    if (two_sides)
        return s->side == WEIR_ENCODER ? "enc" : "dec";
    if (!mixed)
        return "layer";
    if (s->mixer.heads)
        return "mixer";
    if (s->moe.experts)
        return "moe";
    if (!s->mlp.width)
        return "attention";
    return s->attn.heads ? "dense" : "mlp";
}

static bool alike(const weir_counted *m, const weir_count_kind *k, int64_t i)
{
    return !memcmp(k->bill, &m->bill->layer[i], sizeof *k->bill) && k->shape->side == m->b->layer[i].side;
}

static bool find_kinds(weir_counted *m)
{
    m->kind = calloc((size_t)m->b->n_layers, sizeof *m->kind);
    if (!m->kind)
        return false;
    for (int64_t i = 0; i < m->b->n_layers; i++) {
        int k = 0;
        while (k < m->n_kinds && !alike(m, &m->kind[k], i))
            k++;
        if (k == m->n_kinds)
            m->kind[m->n_kinds++] = (weir_count_kind){.first = i, .bill = &m->bill->layer[i], .shape = &m->b->layer[i]};
        m->kind[k].n++;
    }
    for (int k = 0; k < m->n_kinds; k++)
        m->kind[k].label = label_of(m->kind[k].shape, m->b->sides > 1, m->n_kinds > 1);
    return true;
}

/* --- small answers that several outputs give */

int64_t weir_counted_bytes(int64_t params, int64_t bits)
{
    return params / 8 * bits + (params % 8 * bits + 7) / 8;
}

const char *weir_count_tied(const weir_blueprint *b)
{
    return b->head == WEIR_HEAD_NONE ? "no head" : b->head == WEIR_HEAD_TIED ? "yes" : "no";
}

const char *weir_count_each(const weir_counted *m, bool mlp, char *buf, size_t n)
{
    int64_t first = -1;
    bool differ = false;
    size_t used = 0;
    for (int k = 0; k < m->n_kinds; k++) {
        const int64_t v = mlp ? m->kind[k].bill->mlp.params : m->kind[k].bill->attn.params;
        differ = differ || (v && first > 0 && v != first);
        first = v && first < 0 ? v : first;
    }
    snprintf(buf, n, "%lld", (long long)first);
    if (first < 0)
        snprintf(buf, n, "-");
    for (int k = 0; differ && k < m->n_kinds && used < n; k++) {
        const int64_t v = mlp ? m->kind[k].bill->mlp.params : m->kind[k].bill->attn.params;
        if (v)
            used +=
                (size_t)snprintf(buf + used, n - used, "%s%s=%lld", used ? ";" : "", m->kind[k].label, (long long)v);
    }
    return buf;
}

/* --- opening */

static int read_bits(weir_counting *c)
{
    const char *p = c->a->bits;
    for (;; p++) {
        char *end;
        const long v = strtol(p, &end, 10);
        if (end == p || v < 1 || v > 64 || (*end && *end != ','))
            return weir_cli_usage(c->cli, "--bits: \"%s\" is no list of numbers from 1 to 64", c->a->bits);
        if (c->n_bits == WEIR_COUNT_BITS)
            return weir_cli_usage(c->cli, "--bits: at most %d numbers", WEIR_COUNT_BITS);
        c->bits[c->n_bits++] = v;
        p = end;
        if (!*p)
            return WEIR_EXIT_OK;
    }
}

static int take_one(weir_counting *c, const char *path)
{
    weir_err err = {0};
    weir_counted *m = &c->model[c->n++];
    m->path = path;
    if (weir_blueprint_open(&m->b, path, &err) != WEIR_OK || weir_bill_make(&m->bill, m->b, &err) != WEIR_OK ||
        weir_ledger_open(&m->file, path, m->b, m->bill, &err) != WEIR_OK)
        return weir_cli_fail_at(c->cli, path, &err);
    if (!find_kinds(m))
        return weir_cli_error(c->cli, "out of memory");
    for (int i = 0; i < m->b->n_remarks; i++)
        weir_cli_note(c->cli, "%s: %s", m->b->name, m->b->remark[i]);
    if (c->a->lora && weir_bill_lora(&m->lora, &m->lora_matrices, m->b, c->a->lora_targets, c->a->lora, &err))
        return weir_cli_bad_argument(c->cli, "--lora-targets", &err);
    return WEIR_EXIT_OK;
}

int weir_count_take(weir_counting *c)
{
    weir_err err = {0};
    const weir_cli *cli = c->cli;
    int code = read_bits(c);
    if (code == WEIR_EXIT_OK && cli->n_operands > WEIR_COUNT_MODELS)
        code = weir_cli_usage(cli, "at most %d models stand side by side", WEIR_COUNT_MODELS);
    if (code == WEIR_EXIT_OK && !cli->n_operands) {
        const char *path = weir_model_path(&c->a->model, c->brook, sizeof c->brook, &err);
        return path ? take_one(c, path) : weir_cli_fail(cli, &err);
    }
    for (int i = 0; code == WEIR_EXIT_OK && i < cli->n_operands; i++)
        code = take_one(c, cli->operand[i]);
    return code;
}

void weir_count_free(weir_counting *c)
{
    for (int i = 0; i < c->n; i++) {
        weir_ledger_free(c->model[i].file);
        weir_bill_free(c->model[i].bill);
        weir_blueprint_free(c->model[i].b);
        free(c->model[i].kind);
    }
}

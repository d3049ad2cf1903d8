/* One line a model. The columns of tests/data/configs/EXPECTED.tsv stand here under the same names. */
#include <string.h>

#include "count.h"

static void put_int(FILE *out, int64_t v)
{
    fprintf(out, "\t%lld", (long long)v);
}

static void put_costs(const weir_counted *m, FILE *out)
{
    char each[256];
    const weir_bill *b = m->bill;
    put_int(out, b->total.params);
    if (b->layers_moe)
        put_int(out, b->total.active);
    else
        fputs("\t-", out);
    fprintf(out, "\t%s", weir_count_each(m, false, each, sizeof each));
    fprintf(out, "\t%s", weir_count_each(m, true, each, sizeof each));
    fprintf(out, "\t%.6f", (double)b->mlp.params / (double)b->total.params);
    put_int(out, b->item[WEIR_BILL_EMBED].params);
    put_int(out, b->total.read);
    put_int(out, b->layers_attn);
    put_int(out, b->layers_mlp);
    put_int(out, b->mlp.params);
    put_int(out, b->item[WEIR_BILL_UNEMBED].params);
    put_int(out, b->item[WEIR_BILL_POSITION].params);
    put_int(out, b->item[WEIR_BILL_NORM].params);
    put_int(out, b->item[WEIR_BILL_OTHER].params + b->item[WEIR_BILL_MIXER].params);
    fprintf(out, "\t%s", weir_count_tied(m->b));
    put_int(out, b->total.matmul);
    if (b->has_cache) {
        put_int(out, 2 * b->kv);
        put_int(out, b->attn_flops);
    } else {
        fputs("\t-\t-", out);
    }
}

void weir_count_put_tsv(const weir_counting *c, FILE *out)
{
    fputs("model\ttotal_params\tactive_params\tattn_params_per_layer\tmlp_params_per_layer\tmlp_share_of_total\t"
          "embedding_params\tactive_params_no_input_embedding\tlayers_attn\tlayers_mlp\tmlp_params_total\t"
          "unembedding_params\tposition_params\tnorm_params\tother_params\ttied\tmatmul_params\t"
          "kv_bytes_per_token_16bit\tattn_flops_per_token_per_context_token\tstate_bytes_16bit",
          out);
    for (int i = 0; i < WEIR_BILL_ITEMS; i++)
        fprintf(out, "\titem_%s", weir_bill_item_name((weir_bill_item)i));
    fputs("\tlora_params\tfile_elements\tfile_bytes\tfile_params\n", out);
    for (int i = 0; i < c->n; i++) {
        const weir_counted *m = &c->model[i];
        char name[256];
        snprintf(name, sizeof name, "%s", m->b->name);
        weir_make_printable(name);
        fputs(name, out);
        put_costs(m, out);
        put_int(out, 2 * m->bill->state);
        for (int k = 0; k < WEIR_BILL_ITEMS; k++)
            put_int(out, m->bill->item[k].params);
        if (c->a->lora)
            put_int(out, m->lora);
        else
            fputs("\t-", out);
        if (m->file)
            fprintf(out, "\t%lld\t%lld\t%lld\n", (long long)m->file->stored, (long long)m->file->bytes,
                    (long long)m->file->params);
        else
            fputs("\t-\t-\t-\n", out);
    }
}

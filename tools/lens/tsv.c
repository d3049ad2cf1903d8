/* A line for each cell, position by position: README.md says what the columns hold. */
#include <math.h>
#include <stdlib.h>

#include "head.h"
#include "token.h"

typedef struct tsv {
    weir_lens_sink sink; /* first: what callers hold */
    const weir_lens_about *a;
    weir_text text;
} tsv;

static void put_float(FILE *out, float x)
{
    char buf[32];
    fprintf(out, "\t%s", weir_float_text(buf, x));
}

/* A token's id and its bytes; nothing where there is none. */
static void put_token(tsv *o, int32_t id)
{
    FILE *out = o->sink.out;
    o->text.n = 0;
    if (id < 0) {
        fputs("\t\t", out);
        return;
    }
    weir_lens_token(&o->text, o->sink.tok, id);
    fprintf(out, "\t%d\t", id);
    if (o->text.n)
        fwrite(o->text.p, 1, o->text.n, out);
}

static weir_status begin(weir_lens_sink *sink, const weir_lens_about *a, weir_err *err)
{
    tsv *o = (tsv *)sink;
    (void)err;
    o->a = a;
    fputs("# ", sink->out);
    weir_lens_head(sink->out, "weir-lens-tsv/1", a);
    fputs("doc\tpos\tline\tlayer\tsite\tinput_id\tinput\tnext_id\tnext\ttarget_id\ttarget", sink->out);
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        fprintf(sink->out, "\t%s", weir_lens_stat_name[s]);
    for (int64_t j = 1; j <= a->k; j++)
        fprintf(sink->out, "\ttop%lld_id\ttop%lld\tp%lld", (long long)j, (long long)j, (long long)j);
    fputc('\n', sink->out);
    return WEIR_OK;
}

static void put_cell(tsv *o, const weir_lens_piece *p, int line, int64_t i)
{
    const weir_lens_line *l = &o->a->line[line];
    const int64_t at = line * p->n + i;
    FILE *out = o->sink.out;
    fprintf(out, "%lld\t%lld\t%s\t%d\t%s", (long long)p->doc, (long long)p->pos[i], l->name, l->layer, l->site);
    put_token(o, p->id[i]);
    put_token(o, p->next[i]);
    put_token(o, p->target[i]);
    for (int s = 0; s < WEIR_STAT_COUNT; s++) {
        if (!p->stat[s])
            fputc('\t', out);
        else if (s == WEIR_STAT_RANK)
            fprintf(out, "\t%.0f", (double)p->stat[s][at]);
        else
            put_float(out, p->stat[s][at]);
    }
    for (int64_t j = at * o->a->k; j < (at + 1) * o->a->k; j++) {
        put_token(o, p->top_id[j]);
        put_float(out, (float)exp((double)p->top_logprob[j]));
    }
    fputc('\n', out);
}

static weir_status piece(weir_lens_sink *sink, const weir_lens_piece *p, weir_err *err)
{
    tsv *o = (tsv *)sink;
    for (int64_t i = 0; i < p->n; i++)
        for (int l = 0; l < o->a->n_lines; l++)
            put_cell(o, p, l, i);
    return o->text.failed ? weir_fail(err, WEIR_E_NOMEM, "out of memory for the text of a token") : WEIR_OK;
}

static weir_status end(weir_lens_sink *sink, weir_err *err)
{
    (void)sink, (void)err;
    return WEIR_OK;
}

static void drop(weir_lens_sink *sink)
{
    tsv *o = (tsv *)sink;
    if (o)
        weir_text_free(&o->text);
    free(o);
}

weir_lens_sink *weir_lens_tsv_new(FILE *out, const weir_tokenizer *tok)
{
    tsv *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->sink = (weir_lens_sink){begin, piece, end, drop, out, tok};
    return &o->sink;
}

/* A line for each part; README.md says what the columns hold. */
#include <math.h>

#include "cli/printable.h"
#include "view.h"

static void begin(FILE *out, const weir_view_parts *v)
{
    (void)v;
    fputs("doc\tpos\ttoken_id\ttoken\ttarget_id\tagainst_id\tkind\tlayer\tunit\tnorm\tcosine\tshare\tlogit\n", out);
}

static void put_number(FILE *out, double x)
{
    if (isnan(x))
        fputc('\t', out);
    else
        fprintf(out, "\t%.9g", x);
}

static void put_id(FILE *out, int32_t id)
{
    fputc('\t', out);
    if (id >= 0)
        fprintf(out, "%d", id);
}

/* What stands before every part of the position. */
static bool put_place(FILE *out, const weir_view_parts *v)
{
    weir_text text = {0};
    fprintf(out, "%lld\t%lld\t%d\t", (long long)v->doc, (long long)v->pos, v->id);
    if (v->tok) {
        const weir_str bytes = weir_tokenizer_bytes(v->tok, v->id);
        weir_text_printable(&text, bytes.p, bytes.n);
        fwrite(text.p ? text.p : "", 1, text.n, out);
    }
    const bool ok = !text.failed;
    weir_text_free(&text);
    put_id(out, v->sum->target);
    put_id(out, v->sum->against);
    return ok;
}

static bool put(FILE *out, const weir_view_parts *v, const char *kind, const weir_part *part,
                const weir_part_value *value)
{
    if (!put_place(out, v))
        return false;
    fprintf(out, "\t%s\t", kind);
    if (part && part->layer >= 0)
        fprintf(out, "%d", part->layer);
    fputc('\t', out);
    if (part && part->unit >= 0)
        fprintf(out, "%lld", (long long)part->unit);
    put_number(out, value->norm);
    put_number(out, value->cosine);
    put_number(out, value->share);
    put_number(out, value->logit);
    fputc('\n', out);
    return true;
}

static bool put_lines(FILE *out, const weir_view_parts *v, const weir_part_line *line, int64_t n)
{
    bool ok = true;
    for (int64_t i = 0; i < n && ok; i++)
        ok = put(out, v, weir_part_kind_name(line[i].part.kind), &line[i].part, &line[i].value);
    return ok;
}

/* A number that is no part's. */
static bool put_sum(FILE *out, const weir_view_parts *v, const char *kind, double norm, double share, double logit)
{
    return put(out, v, kind, NULL, &(weir_part_value){norm, NAN, share, logit});
}

static bool position(FILE *out, const weir_view_parts *v)
{
    const weir_parts_sum *s = v->sum;
    return put_lines(out, v, v->edit, v->n_edits) && (!v->n_others || put(out, v, "others", NULL, &v->others)) &&
           put_lines(out, v, v->heads->line, v->heads->n) && put_lines(out, v, v->neurons->line, v->neurons->n) &&
           put_sum(out, v, "constant", NAN, NAN, s->constant) && put_sum(out, v, "sum", NAN, s->share, s->parts) &&
           put_sum(out, v, "model", s->norm, NAN, s->logit) &&
           (!v->capped || put_sum(out, v, "capped", NAN, NAN, s->capped));
}

const weir_sink weir_parts_tsv = {
    .begins = "doc\tpos\ttoken_id\ttoken\ttarget_id\tagainst_id\tkind", .begin = begin, .position = position};

/* Outputs of logit-lens --corpus: README.md says what each holds. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/printable.h"
#include "cli/say.h"
#include "corpus.h"
#include "neurons/output.h"

/* In the order of weir_survey_value. */
static const char *const value_name[WEIR_SURVEY_VALUES] = {"ce", "kl"};
static const char *const quantile_name[WEIR_SURVEY_QUANTILES] = {"p05", "p25", "p50", "p75", "p95"};

void weir_lens_corpus_input(char *buf, size_t n, const weir_survey *s)
{
    weir_input_name(buf, n, weir_survey_about_of(s)->source);
}

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : (double)NAN;
}

/* --- JSON */

static void put_quantiles(weir_jsonw *w, const double *q)
{
    weir_jsonw_key(w, "quantiles");
    weir_jsonw_array(w);
    for (int i = 0; i < WEIR_SURVEY_QUANTILES; i++)
        weir_jsonw_double(w, q[i]);
    weir_jsonw_end(w);
}

static void put_about(weir_jsonw *w, const weir_survey *s)
{
    const weir_survey_about *a = weir_survey_about_of(s);
    char input[400];
    weir_lens_corpus_input(input, sizeof input, s);
    weir_jsonw_key_cstr(w, "model", a->model);
    weir_jsonw_key_cstr(w, "fingerprint", a->fingerprint);
    weir_jsonw_key_cstr(w, "tokenizer", a->tokenizer);
    weir_jsonw_key_cstr(w, "input", input);
    weir_jsonw_key(w, "source");
    weir_jsonw_json(w, a->source);
    weir_jsonw_key(w, "interventions");
    weir_jsonw_json(w, strcmp(a->interventions, "[]") == 0 ? NULL : a->interventions);
    weir_jsonw_key_cstr(w, "lens", a->lens);
    weir_jsonw_key_cstr(w, "norm", a->norm);
    weir_jsonw_key_bool(w, "softcap_left_out", a->no_softcap);
    weir_jsonw_key_bool(w, "padding_masked", a->padding_masked);
    weir_jsonw_key_int(w, "shard", a->shard);
    weir_jsonw_key_int(w, "shards", a->shards);
}

static void put_counts(weir_jsonw *w, const weir_survey *s)
{
    const weir_survey_counts n = weir_survey_counts_of(s);
    weir_jsonw_key_int(w, "docs", n.docs);
    weir_jsonw_key_int(w, "rows", n.rows);
    weir_jsonw_key_int(w, "masked_bos", n.masked[WEIR_MASK_BOS]);
    weir_jsonw_key_int(w, "masked_special", n.masked[WEIR_MASK_SPECIAL]);
    weir_jsonw_key_int(w, "masked_id", n.masked[WEIR_MASK_ID]);
    weir_jsonw_key_int(w, "lost", n.lost);
    weir_jsonw_key_int(w, "seen", n.seen);
    weir_jsonw_key_int(w, "without_next", n.without_next);
}

static void put_head(FILE *out, const char *schema, const weir_survey *s)
{
    weir_jsonw writer, *w = &writer;
    double q[WEIR_SURVEY_QUANTILES];
    weir_jsonw_init(w, out);
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "schema", schema);
    weir_jsonw_key_cstr(w, "weir", weir_version());
    put_about(w, s);
    put_counts(w, s);
    for (int i = 0; i < WEIR_SURVEY_QUANTILES; i++)
        q[i] = weir_survey_share(i);
    put_quantiles(w, q);
    weir_jsonw_key(w, "settle");
    weir_jsonw_array(w);
    for (int i = 0; i < weir_survey_n_sites(s); i++) {
        const weir_survey_stat at = weir_survey_settle_of(s, i);
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "site", weir_survey_site(s, i));
        weir_jsonw_key_double(w, "mean", at.mean);
        put_quantiles(w, at.quantile);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_jsonw_end(w);
    fputc('\n', out);
}

static void put_stat(weir_jsonw *w, const weir_survey *s, int line, weir_survey_value v)
{
    const weir_survey_stat at = weir_survey_stat_of(s, line, v);
    weir_jsonw_key(w, value_name[v]);
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "count", at.count);
    weir_jsonw_key_int(w, "lost", at.lost);
    weir_jsonw_key_double(w, "mean", at.mean);
    weir_jsonw_key(w, "min");
    weir_jsonw_float(w, at.min);
    weir_jsonw_key(w, "max");
    weir_jsonw_float(w, at.max);
    put_quantiles(w, at.quantile);
    weir_jsonw_end(w);
}

/* Positions that settle at the line, by site. */
static void put_settled(weir_jsonw *w, const weir_survey *s, int line)
{
    const int own = weir_survey_site_of(s, line);
    weir_jsonw_key(w, "settled");
    weir_jsonw_object(w);
    for (int i = 0; i < weir_survey_n_sites(s); i++)
        if (own < 0 || own == i)
            weir_jsonw_key_int(w, weir_survey_site(s, i), weir_survey_settled(s, i, line));
    weir_jsonw_end(w);
}

static void put_ndjson(FILE *out, const weir_survey *s)
{
    const weir_survey_counts n = weir_survey_counts_of(s);
    put_head(out, "weir-lens-corpus/1", s);
    for (int l = 0; l < weir_survey_n_lines(s); l++) {
        const weir_survey_line *line = weir_survey_line_at(s, l);
        weir_jsonw w;
        weir_jsonw_init(&w, out);
        weir_jsonw_object(&w);
        weir_jsonw_key_cstr(&w, "line", line->name);
        weir_jsonw_key_cstr(&w, "hook", line->hook);
        weir_jsonw_key_cstr(&w, "site", line->site);
        weir_jsonw_key_int(&w, "layer", line->layer);
        for (int v = 0; v < WEIR_SURVEY_VALUES; v++)
            put_stat(&w, s, l, (weir_survey_value)v);
        weir_jsonw_key_int(&w, "agree", weir_survey_agree(s, l));
        weir_jsonw_key_double(&w, "agree_share", share(weir_survey_agree(s, l), n.seen));
        weir_jsonw_key_int(&w, "right", weir_survey_right(s, l));
        weir_jsonw_key_double(&w, "right_share", share(weir_survey_right(s, l), n.seen - n.without_next));
        put_settled(&w, s, l);
        weir_jsonw_end(&w);
        fputc('\n', out);
    }
}

/* --- TSV */

static void put_number(FILE *out, double x)
{
    isnan(x) ? fputs("\tnan", out) : fprintf(out, "\t%.17g", x);
}

static void put_names(FILE *out, const weir_survey *s)
{
    fputs("line\tlayer\tsite", out);
    for (int v = 0; v < WEIR_SURVEY_VALUES; v++) {
        const char *name = value_name[v];
        fprintf(out, "\t%s_count\t%s_lost\t%s_mean\t%s_min\t%s_max", name, name, name, name, name);
        for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++)
            fprintf(out, "\t%s_%s", name, quantile_name[q]);
    }
    fputs("\tagree\tagree_share\tright\tright_share", out);
    for (int i = 0; i < weir_survey_n_sites(s); i++) {
        fputs("\tsettled_", out);
        weir_put_printable(out, weir_survey_site(s, i), 0);
    }
    fputc('\n', out);
}

static void put_columns(FILE *out, const weir_survey_stat *at)
{
    fprintf(out, "\t%lld\t%lld", (long long)at->count, (long long)at->lost);
    put_number(out, at->mean);
    put_number(out, (double)at->min);
    put_number(out, (double)at->max);
    for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++)
        put_number(out, at->quantile[q]);
}

static void put_shares(FILE *out, const weir_survey *s, int l)
{
    const weir_survey_counts n = weir_survey_counts_of(s);
    const int own = weir_survey_site_of(s, l);
    fprintf(out, "\t%lld", (long long)weir_survey_agree(s, l));
    put_number(out, share(weir_survey_agree(s, l), n.seen));
    fprintf(out, "\t%lld", (long long)weir_survey_right(s, l));
    put_number(out, share(weir_survey_right(s, l), n.seen - n.without_next));
    for (int i = 0; i < weir_survey_n_sites(s); i++)
        if (own < 0 || own == i)
            fprintf(out, "\t%lld", (long long)weir_survey_settled(s, i, l));
        else
            fputc('\t', out);
}

static void put_tsv(FILE *out, const weir_survey *s)
{
    fputs("# ", out);
    put_head(out, "weir-lens-corpus-tsv/1", s);
    put_names(out, s);
    for (int l = 0; l < weir_survey_n_lines(s); l++) {
        const weir_survey_line *line = weir_survey_line_at(s, l);
        weir_put_printable(out, line->name, 0);
        fprintf(out, "\t%d\t", line->layer);
        weir_put_printable(out, line->site, 0);
        for (int v = 0; v < WEIR_SURVEY_VALUES; v++) {
            const weir_survey_stat at = weir_survey_stat_of(s, l, (weir_survey_value)v);
            put_columns(out, &at);
        }
        put_shares(out, s, l);
        fputc('\n', out);
    }
}

/* --- files */

static weir_output_file file_of(const weir_lens_job *j)
{
    static const char *const begin[WEIR_LENS_FORMATS] = {[WEIR_LENS_TEXT] = "logit-lens --corpus  ",
                                                         [WEIR_LENS_TSV] = "# {\"schema\":\"weir-lens-corpus-tsv/",
                                                         [WEIR_LENS_NDJSON] = "{\"schema\":\"weir-lens-corpus/"};
    return (weir_output_file){.path = j->a->out, .begin = begin[j->format], .force = j->a->force};
}

static weir_output_file plot_of(const weir_lens_job *j)
{
    return (weir_output_file){.path = j->a->plot, .begin = "<?xml", .holds = "weir logit-lens", .force = j->a->force};
}

int weir_lens_corpus_check_output(const weir_lens_job *j)
{
    const weir_output_file f = file_of(j), plot = plot_of(j);
    int code = plot.path ? weir_output_free(j->cli, &plot) : WEIR_EXIT_OK;
    if (code == WEIR_EXIT_OK && j->format != WEIR_LENS_H5)
        return weir_output_free(j->cli, &f);
    if (code == WEIR_EXIT_OK)
        code = weir_output_place(j->cli, j->a->out);
    if (code == WEIR_EXIT_OK && access(j->a->out, F_OK) == 0 && !weir_survey_is_file(j->a->out))
        return weir_cli_error(j->cli, "%s exists and is no result of logit-lens --corpus: choose another name%s",
                              j->a->out, j->a->force ? " (--force is not for HDF5 files)" : "");
    return code;
}

typedef struct shown {
    const weir_lens_job *j;
    const weir_survey *s;
} shown;

static int put(void *ctx, FILE *out)
{
    const shown *x = ctx;
    if (x->j->format == WEIR_LENS_TSV)
        put_tsv(out, x->s);
    else if (x->j->format == WEIR_LENS_NDJSON)
        put_ndjson(out, x->s);
    else
        weir_lens_corpus_text(out, x->s);
    return WEIR_EXIT_OK;
}

static int put_plot(void *ctx, FILE *out)
{
    const shown *x = ctx;
    return weir_lens_corpus_plot(out, x->s) ? WEIR_EXIT_OK : weir_cli_error(x->j->cli, "out of memory for a picture");
}

int weir_lens_corpus_show(const weir_lens_job *j, const weir_survey *s)
{
    weir_err err = {0};
    shown x = {j, s};
    const weir_output_file f = file_of(j), plot = plot_of(j);
    int code = plot.path ? weir_output_put(j->cli, &plot, put_plot, &x) : WEIR_EXIT_OK;
    if (code != WEIR_EXIT_OK)
        return code;
    if (j->format != WEIR_LENS_H5)
        return weir_output_put(j->cli, &f, put, &x);
    if (weir_survey_write(s, j->a->out, (int)j->a->session.run.threads, &err) != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    return WEIR_EXIT_OK;
}

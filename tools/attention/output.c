/* The form of the output, its sink and its file. */
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/terminal.h"
#include "job.h"

static const struct {
    const char *end[2];        /* of a file's name */
    const char *begin, *holds; /* how an earlier output begins, and what it holds */
} forms[] = {
    [WEIR_ATTENTION_TEXT] = {{NULL, NULL}, "attention  ", "rows sum to 1"},
    [WEIR_ATTENTION_TSV] = {{".tsv", NULL}, "# {\"schema\":\"weir-attention-tsv/", NULL},
    [WEIR_ATTENTION_NDJSON] = {{".ndjson", ".jsonl"}, "{\"schema\":\"weir-attention/", NULL},
    [WEIR_ATTENTION_SVG] = {{".svg", NULL}, "<?xml", "weir attention"},
    [WEIR_ATTENTION_HTML] = {{".html", ".htm"},
                             "<!doctype html>",
                             "<meta name=\"generator\" content=\"weir attention\">"},
};

static weir_output_file file_of(const weir_attention_job *j)
{
    return (weir_output_file){
        .path = j->a->out, .begin = forms[j->format].begin, .holds = forms[j->format].holds, .force = j->a->force};
}

static int choose_format(weir_attention_job *j)
{
    const weir_attention_args *a = j->a;
    j->format = (weir_attention_format)a->format;
    if (a->session.out.json && a->format != WEIR_ATTENTION_AUTO && a->format != WEIR_ATTENTION_NDJSON)
        return weir_cli_usage(j->cli, "--json is --format ndjson, but another format was given too");
    if (a->session.out.json)
        j->format = WEIR_ATTENTION_NDJSON;
    for (int f = WEIR_ATTENTION_TSV; j->format == WEIR_ATTENTION_AUTO && a->out && f <= WEIR_ATTENTION_HTML; f++)
        for (int i = 0; i < 2 && forms[f].end[i]; i++)
            if (weir_ends_with(a->out, forms[f].end[i]))
                j->format = (weir_attention_format)f;
    if (j->format == WEIR_ATTENTION_AUTO)
        j->format = WEIR_ATTENTION_TEXT;
    static const char *const of_text[] = {"color", "width"};
    for (size_t i = 0; j->format != WEIR_ATTENTION_TEXT && i < sizeof of_text / sizeof *of_text; i++)
        if (weir_cli_given(j->cli, of_text[i]))
            return weir_cli_usage(j->cli, "--%s is about the text maps, and another format was chosen", of_text[i]);
    return WEIR_EXIT_OK;
}

int weir_attention_check_output(weir_attention_job *j)
{
    int code = choose_format(j);
    weir_output_file f = file_of(j);
    return code == WEIR_EXIT_OK ? weir_output_free(j->cli, &f) : code;
}

static weir_attention_sink *sink_of(const weir_attention_job *j, FILE *out)
{
    static weir_attention_sink *(*const make[])(FILE *, const weir_tokenizer *) = {
        [WEIR_ATTENTION_TSV] = weir_attention_tsv_new,
        [WEIR_ATTENTION_NDJSON] = weir_attention_ndjson_new,
        [WEIR_ATTENTION_SVG] = weir_attention_svg_new,
        [WEIR_ATTENTION_HTML] = weir_attention_html_new};
    if (j->format != WEIR_ATTENTION_TEXT)
        return make[j->format](out, j->session.tok);
    return weir_attention_text_new(out, j->session.tok, weir_width_of(j->a->width, out),
                                   weir_colour_of((weir_colour_asked)j->a->color, out));
}

/* Feeds the sink, and ends it. */
static int fill(weir_attention_job *j, weir_attention_sink *s)
{
    weir_err err = {0};
    weir_progress bar;
    bool quiet = !j->a->out || strcmp(j->a->out, "-") == 0; /* the output itself shows how far it is */
    if (weir_attention_gather_open(&j->gather, &j->about, &err) != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    j->gather.sink = s;
    if (!quiet)
        weir_progress_start(&bar, j->cli);
    int code = j->feed(j);
    if (!quiet)
        weir_progress_stop(&bar, j->cli);
    if (code == WEIR_EXIT_OK && j->gather.maps == 0 && s->begin(s, &j->about, &err) != WEIR_OK) /* an empty shard */
        code = weir_cli_fail(j->cli, &err);
    if (code == WEIR_EXIT_OK && s->end(s, &err) != WEIR_OK)
        code = weir_cli_fail(j->cli, &err);
    if (code == WEIR_EXIT_OK && j->middle)
        weir_cli_note(j->cli, "layer %d is shown: --layer chooses, --format html has them all", j->head[0].layer);
    return code;
}

static int put(void *ctx, FILE *out)
{
    weir_attention_job *j = ctx;
    weir_attention_sink *s = sink_of(j, out);
    if (!s)
        return weir_cli_error(j->cli, "out of memory");
    int code = fill(j, s);
    s->free(s);
    return code;
}

int weir_attention_put(weir_attention_job *j)
{
    weir_output_file f = file_of(j);
    j->about.V = j->session.info->V;
    return weir_output_put(j->cli, &f, put, j);
}

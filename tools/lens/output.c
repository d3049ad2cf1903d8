/* Sinks and their files. Two may be filled at once: --stats-plot stands beside the output proper. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"
#include "cli/terminal.h"
#include "corpus.h"

/* How an earlier output of each form begins. */
static const struct {
    const char *begin, *holds;
} ours[WEIR_LENS_FORMATS] = {
    [WEIR_LENS_TEXT] = {"logit-lens  ", NULL},
    [WEIR_LENS_TSV] = {"# {\"schema\":\"weir-lens-tsv/", NULL},
    [WEIR_LENS_NDJSON] = {"{\"schema\":\"weir-lens/", NULL},
    [WEIR_LENS_SVG] = {"<?xml", "weir logit-lens"},
    [WEIR_LENS_HTML] = {"<!doctype html>", "<meta name=\"generator\" content=\"weir logit-lens\">"},
};

static weir_output_file file_of(const weir_lens_job *j, bool plot)
{
    int form = plot ? WEIR_LENS_SVG : (int)j->format;
    return (weir_output_file){.path = plot ? j->a->plot : j->a->out,
                              .begin = ours[form].begin,
                              .holds = ours[form].holds,
                              .force = j->a->force};
}

/* A map is no stream of bytes: weir/arrays.h makes its file. */
static int check_h5(const weir_lens_job *j)
{
    int code = weir_output_place(j->cli, j->a->out);
    if (code == WEIR_EXIT_OK && access(j->a->out, F_OK) == 0 && !weir_lens_h5_is(j->a->out))
        return weir_cli_error(j->cli, "%s exists and is no map that logit-lens wrote: choose another name%s", j->a->out,
                              j->a->force ? " (--force is not for HDF5 files)" : "");
    return code;
}

int weir_lens_check_output(const weir_lens_job *j)
{
    if (weir_lens_is_corpus(j))
        return weir_lens_corpus_check_output(j);
    weir_output_file out = file_of(j, false), plot = file_of(j, true);
    int code = j->format == WEIR_LENS_H5 ? check_h5(j) : weir_output_free(j->cli, &out);
    return code == WEIR_EXIT_OK && j->a->plot ? weir_output_free(j->cli, &plot) : code;
}

/* --- sinks */

static weir_lens_sink *text_sink(const weir_lens_job *j, FILE *out)
{
    const weir_lens_text_options o = {.width = weir_width_of(j->a->width, out),
                                      .colour = weir_colour_of((weir_colour_asked)j->a->color, out),
                                      .bottom_up = j->a->bottom_up};
    return weir_lens_text_new(out, j->session.tok, &o);
}

static weir_lens_sink *sink_of(const weir_lens_job *j, FILE *out)
{
    static weir_lens_sink *(*const make[WEIR_LENS_FORMATS])(FILE *, const weir_tokenizer *) = {
        [WEIR_LENS_TSV] = weir_lens_tsv_new,
        [WEIR_LENS_NDJSON] = weir_lens_ndjson_new,
        [WEIR_LENS_SVG] = weir_lens_svg_new,
        [WEIR_LENS_HTML] = weir_lens_html_new};
    if (j->format == WEIR_LENS_H5)
        return weir_lens_h5_new(j->a->out, (int)j->a->session.run.threads, j->session.tok);
    return make[j->format] ? make[j->format](out, j->session.tok) : text_sink(j, out);
}

/* Makes a sink one of those that are fed. */
static int add(weir_lens_job *j, weir_lens_sink *s)
{
    if (!s)
        return weir_cli_error(j->cli, "out of memory");
    j->sink[j->cells.n_sinks++] = s;
    return WEIR_EXIT_OK;
}

static int end(weir_lens_job *j, weir_lens_sink *s)
{
    weir_err err = {0};
    if (weir_lens_cells_begin(&j->cells, &err) != WEIR_OK || s->end(s, &err) != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    return WEIR_EXIT_OK;
}

/* --- files, one inside of the other */

static int feed_sinks(weir_lens_job *j)
{
    weir_progress bar;
    bool quiet = !j->a->out || strcmp(j->a->out, "-") == 0; /* the output itself shows how far it is */
    j->cells.sink = j->sink;
    if (!quiet)
        weir_progress_start(&bar, j->cli);
    int code = j->feed(j);
    if (!quiet)
        weir_progress_stop(&bar, j->cli);
    return code;
}

static int put_plot(void *ctx, FILE *out)
{
    weir_lens_job *j = ctx;
    int code = add(j, weir_lens_plot_new(out, j->session.tok));
    if (code == WEIR_EXIT_OK)
        code = feed_sinks(j);
    return code == WEIR_EXIT_OK ? end(j, j->sink[1]) : code;
}

static int put_all(void *ctx, FILE *out)
{
    weir_lens_job *j = ctx;
    weir_output_file plot = file_of(j, true);
    int code = add(j, sink_of(j, out));
    if (code == WEIR_EXIT_OK)
        code = j->a->plot ? weir_output_put(j->cli, &plot, put_plot, j) : feed_sinks(j);
    return code == WEIR_EXIT_OK ? end(j, j->sink[0]) : code;
}

int weir_lens_put(weir_lens_job *j)
{
    weir_output_file out = file_of(j, false);
    int code = j->format == WEIR_LENS_H5 ? put_all(j, NULL) : weir_output_put(j->cli, &out, put_all, j);
    for (int i = 0; i < j->cells.n_sinks; i++)
        j->sink[i]->free(j->sink[i]);
    j->cells.n_sinks = 0;
    return code;
}

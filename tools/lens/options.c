/* The command line of logit-lens, as far as it needs no model: where rows come from, the form of the output, and what
 * does not go together. */
#include <stdlib.h>
#include <string.h>

#include "cli/from.h"
#include "cli/say.h"
#include "corpus.h"

static int read_lists(weir_lens_job *j)
{
    if (!weir_opt_list_join(&j->layers, &j->a->layers) || !weir_opt_list_join(&j->sites, &j->a->sites))
        return weir_cli_error(j->cli, "out of memory");
    if (j->layers && strcmp(j->layers, "all") == 0) {
        free(j->layers);
        j->layers = NULL;
    }
    return WEIR_EXIT_OK;
}

weir_lens_format weir_lens_format_of(const weir_lens_args *a)
{
    static const struct {
        const char *end;
        weir_lens_format format;
    } known[] = {{".tsv", WEIR_LENS_TSV}, {".ndjson", WEIR_LENS_NDJSON}, {".jsonl", WEIR_LENS_NDJSON},
                 {".svg", WEIR_LENS_SVG}, {".html", WEIR_LENS_HTML},     {".htm", WEIR_LENS_HTML},
                 {".h5", WEIR_LENS_H5},   {".hdf5", WEIR_LENS_H5}};
    if (a->format != WEIR_LENS_AUTO || a->session.out.json)
        return a->session.out.json ? WEIR_LENS_NDJSON : (weir_lens_format)a->format;
    for (size_t i = 0; a->out && i < sizeof known / sizeof *known; i++)
        if (weir_ends_with(a->out, known[i].end))
            return known[i].format;
    return WEIR_LENS_TEXT;
}

static int read_format(weir_lens_job *j)
{
    const weir_lens_args *a = j->a;
    j->format = weir_lens_format_of(a);
    if (a->session.out.json && a->format != WEIR_LENS_AUTO && a->format != WEIR_LENS_NDJSON)
        return weir_cli_usage(j->cli, "--json is --format ndjson, but another format was given too");
    if (j->format == WEIR_LENS_H5 && (!a->out || strcmp(a->out, "-") == 0))
        return weir_cli_usage(j->cli, "--format h5: a file is needed: -o FILE.h5");
    if (a->plot && strcmp(a->plot, "-") == 0 && (!a->out || strcmp(a->out, "-") == 0))
        return weir_cli_usage(j->cli, "--stats-plot -: standard output has the other output already: name a file");
    if (a->plot && a->out && strcmp(a->plot, "-") != 0 && weir_output_same(a->plot, a->out))
        return weir_cli_usage(j->cli, "--stats-plot and --out name the same file, %s", a->out);
    return WEIR_EXIT_OK;
}

static int read_input(weir_lens_job *j)
{
    int code = weir_lens_corpus_options(j);
    if (code == WEIR_EXIT_OK && !j->result)
        code = weir_from_dump(j->cli, j->a->from, &j->dump);
    return code == WEIR_EXIT_OK && j->dump && weir_lens_h5_is(j->dump) ? weir_lens_h5_tell(j->cli, j->dump) : code;
}

static int check_meaning(const weir_lens_job *j)
{
    if (j->a->stat == WEIR_STAT_CONTRAST && !j->a->contrast)
        return weir_cli_usage(j->cli, "--stat contrast: name the two tokens with --contrast A,B");
    if (j->a->tuned && j->a->norm != WEIR_LENS_RECOMPUTE)
        return weir_cli_usage(j->cli, "--tuned needs --norm recompute: its translators were trained with that");
    if (j->format == WEIR_LENS_SVG && j->a->k)
        return weir_cli_usage(j->cli, "-k: a picture shows the likeliest token of a cell alone; html has more");
    static const char *const of_table[] = {"bottom-up", "color", "width"};
    for (size_t i = 0; j->format != WEIR_LENS_TEXT && i < sizeof of_table / sizeof *of_table; i++)
        if (weir_cli_given(j->cli, of_table[i]))
            return weir_cli_usage(j->cli, "--%s is about the text table, and another format was chosen", of_table[i]);
    return WEIR_EXIT_OK;
}

int weir_lens_options(weir_lens_job *j)
{
    int (*const step[])(weir_lens_job *) = {read_lists, read_format, read_input};
    int code = WEIR_EXIT_OK;
    for (size_t i = 0; i < sizeof step / sizeof *step && code == WEIR_EXIT_OK; i++)
        code = step[i](j);
    if (code == WEIR_EXIT_OK)
        code = weir_from_check(j->cli, j->result ? j->result : j->dump);
    return code == WEIR_EXIT_OK ? check_meaning(j) : code;
}

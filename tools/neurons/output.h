/* neurons/output.h: where results go, and in which form. */
#ifndef WEIR_NEURONS_OUTPUT_H
#define WEIR_NEURONS_OUTPUT_H

#include "cli/output.h"
#include "search.h"
#include "view.h"

/* In the order of the words of --format, behind "auto". */
typedef enum weir_format {
    WEIR_FORMAT_AUTO,
    WEIR_FORMAT_TEXT,
    WEIR_FORMAT_TSV,
    WEIR_FORMAT_NDJSON,
    WEIR_FORMAT_H5,
    WEIR_FORMAT_HTML
} weir_format;
#define WEIR_FORMAT_WORDS "auto|text|tsv|ndjson|h5|html"

/* auto: by the end of the file's name, else text. out NULL or "-": standard output. */
weir_format weir_format_of(weir_format asked, const char *out);

/* What the text was, for a head: the files' names out of weir_neurons_about.source, or a word for other texts. */
void weir_input_name(char *buf, size_t n, const char *source);

/* Is `path` free for an output of this form? Asked before the work is done; weir_output asks again. */
int weir_output_check(const weir_cli *cli, const char *path, weir_format format, bool force);
/* Opens `path` (NULL, "-": standard output), calls write, and closes; the file appears whole or not at all. A file that
 * is there is replaced with force, or if it looks like an earlier output of this format. Returns an exit code. */
int weir_output(const weir_cli *cli, const char *path, weir_format format, bool force,
                int (*write)(void *ctx, FILE *out), void *ctx);

#endif

#include "output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/say.h"

static bool is_stdout(const char *path)
{
    return !path || strcmp(path, "-") == 0;
}

weir_format weir_format_of(weir_format asked, const char *out)
{
    static const struct {
        const char *end;
        weir_format format;
    } known[] = {{".tsv", WEIR_FORMAT_TSV}, {".ndjson", WEIR_FORMAT_NDJSON}, {".jsonl", WEIR_FORMAT_NDJSON},
                 {".h5", WEIR_FORMAT_H5},   {".hdf5", WEIR_FORMAT_H5},       {".html", WEIR_FORMAT_HTML},
                 {".htm", WEIR_FORMAT_HTML}};
    size_t n = is_stdout(out) ? 0 : strlen(out);
    if (asked != WEIR_FORMAT_AUTO)
        return asked;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t end = strlen(known[i].end);
        if (n > end && strcmp(out + n - end, known[i].end) == 0)
            return known[i].format;
    }
    return WEIR_FORMAT_TEXT;
}

weir_colour weir_colour_of(weir_colour_asked asked, FILE *out)
{
    static const weir_colour chosen[] = {[WEIR_ASK_NEVER] = WEIR_COLOUR_NONE,
                                         [WEIR_ASK_16] = WEIR_COLOUR_16,
                                         [WEIR_ASK_256] = WEIR_COLOUR_256,
                                         [WEIR_ASK_TRUE] = WEIR_COLOUR_TRUE};
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM"), *more = getenv("COLORTERM");
    if (asked != WEIR_ASK_AUTO)
        return chosen[asked];
    if (!isatty(fileno(out)) || (no && *no) || !term || strcmp(term, "dumb") == 0)
        return WEIR_COLOUR_NONE;
    if (more && (strcmp(more, "truecolor") == 0 || strcmp(more, "24bit") == 0))
        return WEIR_COLOUR_TRUE;
    return strstr(term, "256") ? WEIR_COLOUR_256 : WEIR_COLOUR_16;
}

int weir_width_of(int64_t asked, FILE *out)
{
    enum { USUAL = 120 };
    struct winsize size;
    if (asked)
        return (int)asked;
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : USUAL;
}

/* Names of an array of sources, as weir_session_identity writes it. */
static void put_names(weir_json *j, char *buf, size_t n)
{
    size_t at = 0;
    weir_str key;
    weir_json_array(j);
    while (weir_json_item(j)) {
        weir_json_object(j);
        while (weir_json_key(j, &key)) {
            bool file = weir_str_eq(key, "file"), argument = weir_str_eq(key, "argument");
            if (!file && !argument)
                continue;
            weir_str name = weir_json_string(j);
            const char *slash = file ? memrchr(name.p, '/', name.n) : NULL;
            const char *word = slash ? slash + 1 : file ? name.p : "text of the command line";
            int length = file ? (int)(name.p + name.n - word) : (int)strlen(word);
            if (at < n && !(argument && at))
                at += (size_t)snprintf(buf + at, n - at, "%s%.*s", at ? ", " : "", length, word);
        }
    }
}

void weir_input_name(char *buf, size_t n, const char *source)
{
    weir_json j;
    weir_str key;
    buf[0] = 0;
    weir_json_init(&j, source ? source : "", source ? strlen(source) : 0, NULL, NULL);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        if (!weir_str_eq(key, "text") || weir_json_peek(&j) != WEIR_JSON_OBJECT)
            continue;
        weir_json_object(&j);
        while (weir_json_key(&j, &key))
            if (weir_str_eq(key, "text"))
                put_names(&j, buf, n);
    }
    if (weir_json_done(&j) != WEIR_OK || !*buf)
        snprintf(buf, n, "a text that is not named");
}

/* Does the file begin as an output of ours in this form? */
static bool is_ours(const char *path, weir_format format)
{
    static const char *const begin[] = {[WEIR_FORMAT_TSV] = "layer\t",
                                        [WEIR_FORMAT_NDJSON] = "{\"schema\":\"weir-neurons",
                                        [WEIR_FORMAT_HTML] = "<!doctype html>"};
    char buf[4096] = "";
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    buf[fread(buf, 1, sizeof buf - 1, f)] = 0;
    fclose(f);
    if (format == WEIR_FORMAT_HTML)
        return strncasecmp(buf, begin[format], strlen(begin[format])) == 0 &&
               strstr(buf, "<meta name=\"generator\" content=\"weir neuron-top\">");
    return begin[format] && strncmp(buf, begin[format], strlen(begin[format])) == 0;
}

int weir_output_check(const weir_cli *cli, const char *path, weir_format format, bool force)
{
    if (is_stdout(path) || force || access(path, F_OK) != 0 || is_ours(path, format))
        return WEIR_EXIT_OK;
    return weir_cli_error(cli, "%s exists and is no earlier output of this kind: choose another name, or --force",
                          path);
}

int weir_output(const weir_cli *cli, const char *path, weir_format format, bool force,
                int (*write)(void *ctx, FILE *out), void *ctx)
{
    weir_err err = {0};
    weir_outfile *f;
    if (is_stdout(path))
        return write(ctx, stdout);
    int code = weir_output_check(cli, path, format, force);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_outfile_open(&f, path, access(path, F_OK) == 0, &err) != WEIR_OK)
        return weir_cli_fail(cli, &err);
    code = write(ctx, weir_outfile_stream(f));
    if (code != WEIR_EXIT_OK) {
        weir_outfile_abort(f);
        return code;
    }
    return weir_outfile_commit(f, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(cli, &err);
}

#include "output.h"

#include <stdlib.h>
#include <string.h>

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

static weir_output_file file_of(const char *path, weir_format format, bool force)
{
    static const char *const begin[] = {[WEIR_FORMAT_TSV] = "layer\t",
                                        [WEIR_FORMAT_NDJSON] = "{\"schema\":\"weir-neurons",
                                        [WEIR_FORMAT_HTML] = "<!doctype html>"};
    const bool html = format == WEIR_FORMAT_HTML;
    return (weir_output_file){.path = path,
                              .begin = begin[format],
                              .holds = html ? "<meta name=\"generator\" content=\"weir neuron-top\">" : NULL,
                              .force = force};
}

int weir_output_check(const weir_cli *cli, const char *path, weir_format format, bool force)
{
    const weir_output_file f = file_of(path, format, force);
    return weir_output_free(cli, &f);
}

int weir_output(const weir_cli *cli, const char *path, weir_format format, bool force,
                int (*write)(void *ctx, FILE *out), void *ctx)
{
    const weir_output_file f = file_of(path, format, force);
    return weir_output_put(cli, &f, write, ctx);
}

#include "from.h"

#include <string.h>
#include <unistd.h>

#include "output.h"
#include "say.h"

enum { MOST_LENGTH = 1 << 30 /* tokens of a document */ };
static const int64_t MOST_DOCS = INT64_MAX / 4; /* what is added to it cannot overflow */

bool weir_from_is_hdf5(const char *path)
{
    char start[8] = {0};
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    size_t n = fread(start, 1, sizeof start, f);
    fclose(f);
    return n == sizeof start && memcmp(start, "\x89HDF\r\n\x1a\n", 8) == 0;
}

int weir_from_dump(const weir_cli *cli, const char *from, const char **dump)
{
    const char *first = cli->n_operands ? cli->operand[0] : NULL;
    *dump = from;
    if (from && first)
        return weir_cli_usage(cli, "--from %s, but \"%s\" was given too", from, first);
    if (!first || cli->n_operands > 1)
        return WEIR_EXIT_OK;
    if ((weir_ends_with(first, ".h5") || weir_ends_with(first, ".h5.part")) && access(first, F_OK) != 0)
        return weir_cli_error(cli, "cannot open %s: no such file (a text of that name can be given on standard input)",
                              first);
    if (weir_from_is_hdf5(first))
        *dump = first;
    return WEIR_EXIT_OK;
}

int weir_from_check(const weir_cli *cli, const char *dump)
{
    static const char *const of_text[] = {"file", "docs", "jsonl",  "field",       "shard",  "ids",
                                          "bos",  "ctx",  "stride", "max-tokens",  "ablate", "scale",
                                          "add",  "set",  "patch",  "project-out", "hook",   "memory",
                                          "edit"};
    for (size_t i = 0; dump && i < sizeof of_text / sizeof *of_text; i++)
        if (weir_cli_given(cli, of_text[i]))
            return weir_cli_usage(cli, "--%s is about a run over text, and %s holds what such a run gave", of_text[i],
                                  dump);
    return WEIR_EXIT_OK;
}

int weir_from_open(weir_dump_reader **r, weir_positions *positions, const weir_session *s, const char *path)
{
    weir_err err = {0};
    const char *asked = s->a->rows.positions;
    if (weir_positions_parse(positions, asked, &err) != WEIR_OK)
        return weir_cli_bad_argument(s->cli, "--positions", &err);
    if (positions->field)
        return weir_cli_usage(s->cli, "--positions %s is about the bytes of a text, and %s holds tokens", asked, path);
    if (weir_dump_open(r, path, &err) != WEIR_OK)
        return weir_cli_fail_at(s->cli, path, &err);
    weir_dump_set_threads(*r, (int)s->a->run.threads);
    return WEIR_EXIT_OK;
}

void weir_from_note_incomplete(const weir_cli *cli, weir_dump_reader *r, const char *path)
{
    if (!weir_dump_is_complete(r))
        weir_cli_note(cli, "%s is not complete: the %lld rows that all its hooks have are read", path,
                      (long long)weir_dump_rows(r));
}

int weir_from_model(weir_session *s, weir_dump_reader *r, const char *path, bool force, char fingerprint[65])
{
    weir_err err = {0};
    int code = weir_session_model(s);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_model_fingerprint(s->model, false, fingerprint, &err) != WEIR_OK)
        return weir_cli_fail(s->cli, &err);
    if (strcmp(fingerprint, weir_from_attr(r, "fingerprint", "")) == 0 || force)
        return WEIR_EXIT_OK;
    return weir_cli_error(s->cli,
                          "%s was made with another model than %s: with %s; give it with --model (--force takes this "
                          "one all the same)",
                          path, s->info->name, weir_from_attr(r, "model", "one without a name"));
}

int weir_from_tokenizer(weir_session *s)
{
    weir_err err = {0};
    weir_log log = weir_cli_log(s->cli);
    char why[1400];
    if (weir_tokenizer_open(&s->tok, s->model_path, &log, &err) == WEIR_OK)
        return WEIR_EXIT_OK;
    if (err.code == WEIR_E_NOMEM)
        return weir_cli_fail(s->cli, &err);
    weir_cli_note(s->cli, "tokens are shown by their ids: %s", weir_err_line(&err, why, sizeof why));
    return WEIR_EXIT_OK;
}

/* "1/4": the second of four; nothing in a dump of the whole text. */
static weir_status read_shard(const char *text, weir_from_part *out, weir_err *err)
{
    char number[24] = "";
    const char *slash = strchr(text, '/');
    if (!*text)
        return WEIR_OK;
    if (slash && (size_t)(slash - text) < sizeof number)
        memcpy(number, text, (size_t)(slash - text));
    if (!weir_parse_int(number, &out->shard) || !weir_parse_int(slash + 1, &out->shards) || out->shard < 0 ||
        out->shard >= out->shards || out->shards > INT32_MAX)
        return weir_fail(err, WEIR_E_FORMAT, "is damaged: its attribute shard is %s", text);
    return WEIR_OK;
}

weir_status weir_from_part_of(weir_dump_reader *r, weir_from_part *out, weir_err *err)
{
    const char *first = weir_from_attr(r, "shard_first_doc", "0");
    *out = (weir_from_part){0};
    if (!weir_parse_int(first, &out->first_doc) || out->first_doc < 0 || out->first_doc > MOST_DOCS)
        return weir_fail(err, WEIR_E_FORMAT, "is damaged: its attribute shard_first_doc is %s", first);
    return read_shard(weir_from_attr(r, "shard", ""), out, err);
}

weir_status weir_from_positions(const int64_t *pos, int64_t n, int64_t doc, weir_err *err)
{
    for (int64_t i = 0; i < n; i++)
        if (pos[i] < (i ? pos[i - 1] + 1 : 0) || pos[i] >= MOST_LENGTH)
            return weir_fail(err, WEIR_E_FORMAT, "document %lld: its positions are not in order", (long long)doc);
    return WEIR_OK;
}

const char *weir_from_attr(weir_dump_reader *r, const char *name, const char *other)
{
    const char *text = weir_dump_attr(r, name);
    return text ? text : other;
}

bool weir_from_edited(weir_dump_reader *r)
{
    return strcmp(weir_from_attr(r, "edits", "[]"), "[]") != 0;
}

char *weir_from_changes(weir_dump_reader *r)
{
    const char *edits = weir_from_attr(r, "edits", "[]"), *values = weir_from_attr(r, "interventions", "[]");
    values = *values == '[' ? values : "[]";
    if (!weir_from_edited(r) || *edits != '[')
        return strdup(values);
    if (strcmp(values, "[]") == 0)
        return strdup(edits);
    char *text = NULL; /* "[E]" and "[V]" are "[E,V]" */
    return asprintf(&text, "%.*s,%s", (int)strlen(edits) - 1, edits, values + 1) < 0 ? NULL : text;
}

int64_t weir_from_attr_int(weir_dump_reader *r, const char *name)
{
    int64_t v;
    return weir_parse_int(weir_from_attr(r, name, ""), &v) ? v : 0;
}

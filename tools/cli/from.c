#include "from.h"

#include <string.h>
#include <unistd.h>

#include "output.h"
#include "say.h"

static bool is_hdf5(const char *path)
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
    if (is_hdf5(first))
        *dump = first;
    return WEIR_EXIT_OK;
}

int weir_from_check(const weir_cli *cli, const char *dump)
{
    static const char *const of_text[] = {"file", "docs", "jsonl",  "field",       "shard",  "ids",
                                          "bos",  "ctx",  "stride", "max-tokens",  "ablate", "scale",
                                          "add",  "set",  "patch",  "project-out", "hook",   "memory"};
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
    if (weir_dump_open(r, path, &err) != WEIR_OK) {
        weir_err_where(&err, path, NULL, -1);
        return weir_cli_fail(s->cli, &err);
    }
    weir_dump_set_threads(*r, (int)s->a->run.threads);
    return WEIR_EXIT_OK;
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

const char *weir_from_attr(weir_dump_reader *r, const char *name, const char *other)
{
    const char *text = weir_dump_attr(r, name);
    return text ? text : other;
}

int64_t weir_from_attr_int(weir_dump_reader *r, const char *name)
{
    int64_t v;
    return weir_parse_int(weir_from_attr(r, name, ""), &v) ? v : 0;
}

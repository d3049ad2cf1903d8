#include "from.h"

#include <string.h>
#include <unistd.h>

#include "common.h"
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

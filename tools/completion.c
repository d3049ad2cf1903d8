/* weir completion: what makes a shell complete tools, options and their values. */
#include <string.h>

#include "cli/complete.h"
#include "cli/say.h"

static const weir_opt_use options[] = {{NULL, 0}};

static int run(weir_cli *cli, void *args)
{
    (void)args;
    if (cli->n_operands != 1)
        return weir_cli_usage(cli, "say which shell: bash or zsh");
    if (strcmp(cli->operand[0], "bash") == 0)
        weir_complete_bash(stdout);
    else if (strcmp(cli->operand[0], "zsh") == 0)
        weir_complete_zsh(stdout);
    else
        return weir_cli_usage(cli, "%s: there is completion for bash and zsh", cli->operand[0]);
    return WEIR_EXIT_OK;
}

const weir_tool weir_tool_completion = {
    .name = "completion",
    .summary = "print what makes bash or zsh complete tools, options and their values",
    .operands = "bash|zsh",
    .about =
        "Prints a script for the shell, made from the same tables as --help. make install puts it where shells look "
        "for it. Without that: in bash, source what is printed, for instance in ~/.bashrc; in zsh, write it to a "
        "file _weir in a directory of $fpath, and start a new shell.\n\n"
        "Completed are tools, options that are not given yet, their words, files with the right ending, and hook "
        "points of the model that --model names.",
    .example = "weir completion bash > weir.bash\n"
               "weir completion zsh > _weir",
    .options = options,
    .args_size = 1,
    .run = run,
};

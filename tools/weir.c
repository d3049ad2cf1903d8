/* weir: one program, a table of tools. `weir TOOL ...`; a link named after a tool runs that tool. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/manual.h"
#include "cli/say.h"
#include "cli/tool.h"

/* Of a table that ends with NULL. */
static const weir_tool *find_in(const weir_tool *const *table, const char *name)
{
    for (; *table; table++)
        if (strcmp((*table)->name, name) == 0)
            return *table;
    return NULL;
}

static const weir_tool *find_tool(const char *name)
{
    return find_in(weir_tool_table, name);
}

static void print_tools(FILE *out)
{
    fprintf(out, "usage: weir TOOL [options] ...\n\n"
                 "Measures and steers the residual stream of a transformer.\n\nTools\n");
    for (int i = 0; i < weir_n_tools; i++)
        fprintf(out, "  %-16s%s\n", weir_tool_table[i]->name, weir_tool_table[i]->summary);
    fprintf(out,
            "\n`weir help TOOL` or `weir TOOL --help` says more about one; `weir --version` prints the version.\n"
            "`man weir` reads the manual where weir is installed, `weir help --man [TOOL]` prints a page of it; `weir\n"
            "completion bash|zsh` prints what makes a shell complete tools and options.\n");
}

/* Line by line, unbroken: what is printed must run when it is pasted into a shell. */
static void print_example(const char *text, FILE *out)
{
    while (*text) {
        int n = (int)strcspn(text, "\n");
        fprintf(out, "  %.*s\n", n, text);
        text += n + (text[n] != 0);
    }
}

static void print_commands(const weir_tool *t, FILE *out)
{
    fprintf(out, "\nCommands\n");
    for (const weir_tool *const *c = t->commands; *c; c++)
        weir_print_wrapped(out, 18, fprintf(out, "  %-16s", (*c)->name), (*c)->summary);
    fprintf(out, "\n`weir %s COMMAND --help` says more about one.\n", t->name);
}

/* parent: the tool that t is a command of, or NULL. */
static void print_help(const weir_tool *parent, const weir_tool *t, FILE *out)
{
    fprintf(out, "usage: weir %s%s%s%s%s%s\n\n", parent ? parent->name : "", parent ? " " : "", t->name,
            t->commands ? "" : " [options]", *t->operands ? " " : "", t->operands);
    weir_print_wrapped(out, 0, 0, t->about);
    if (t->commands) {
        print_commands(t, out);
    } else {
        weir_opt_print(t->options, out);
        fprintf(out, "%s  -h, --help              this text\n", t->options->group ? "" : "\nOptions\n");
    }
    if (t->more_help)
        t->more_help(out);
    fprintf(out, "\nExample\n");
    print_example(t->example, out);
}

/* what: "tool" or "command". */
static int unknown(const weir_cli *cli, const weir_tool *const *table, const char *what, const char *name)
{
    const char *names[64];
    int n = 0;
    for (; *table && n < 64; table++)
        names[n++] = (*table)->name;
    const char *near = weir_nearest(name, names, n);
    if (near)
        return weir_cli_usage(cli, "no %s is called \"%s\"; did you mean %s?", what, name, near);
    return weir_cli_usage(cli, "no %s is called \"%s\"", what, name);
}

static int unknown_tool(const weir_cli *cli, const char *name)
{
    return unknown(cli, weir_tool_table, "tool", name);
}

static bool is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

static int run_tool(weir_cli *cli, const weir_tool *t, int argc, char **argv);

/* A tool of commands: the first argument names one. */
static int run_command(weir_cli *cli, const weir_tool *t, int argc, char **argv)
{
    const weir_tool *c = argc ? find_in(t->commands, argv[0]) : NULL;
    cli->tool = t;
    if (c) {
        cli->parent = t;
        return run_tool(cli, c, argc - 1, argv + 1);
    }
    bool help = argc == 0;
    for (int i = 0; i < argc; i++)
        help |= is_help(argv[i]);
    if (!help && argv[0][0] == '-')
        return weir_cli_usage(cli, "unknown option %s; a command's options stand behind its name", argv[0]);
    if (!help)
        return unknown(cli, t->commands, "command", argv[0]);
    print_help(NULL, t, stdout);
    return WEIR_EXIT_OK;
}

/* argv[0..argc): what stands behind the tool's name. */
static int run_tool(weir_cli *cli, const weir_tool *t, int argc, char **argv)
{
    if (t->commands)
        return run_command(cli, t, argc, argv);
    cli->tool = t;
    void *args = calloc(1, t->args_size);
    weir_opt_operands operands;
    char msg[600];
    if (!args)
        return weir_cli_error(cli, "out of memory");
    int code = WEIR_EXIT_OK;
    switch (weir_opt_parse(t->options, t->rules, argc, argv, args, &operands, msg, sizeof msg)) {
    case WEIR_OPT_HELP:
        print_help(cli->parent, t, stdout);
        break;
    case WEIR_OPT_BAD:
        code = weir_cli_usage(cli, "%s", msg);
        break;
    case WEIR_OPT_OK:
        cli->operand = operands.v;
        cli->n_operands = operands.n;
        cli->given = operands.given;
        code = t->run(cli, args);
        break;
    }
    weir_opt_release(t->options, args, &operands);
    free(args);
    return code;
}

/* `weir help [--man] [TOOL [COMMAND]]`. */
static int help(weir_cli *cli, int argc, char **argv)
{
    bool man = argc > 0 && strcmp(argv[0], "--man") == 0;
    argc -= man;
    argv += man;
    if (argc == 0) {
        (man ? weir_manual_program : print_tools)(stdout);
        return WEIR_EXIT_OK;
    }
    const weir_tool *t = find_tool(argv[0]);
    if (!t)
        return unknown_tool(cli, argv[0]);
    const weir_tool *c = t->commands && argc > 1 ? find_in(t->commands, argv[1]) : NULL;
    cli->tool = t;
    if (t->commands && argc > 1 && !c)
        return unknown(cli, t->commands, "command", argv[1]);
    const weir_tool *parent = c ? t : NULL, *shown = c ? c : t;
    if (man)
        weir_manual_tool(stdout, parent, shown);
    else
        print_help(parent, shown, stdout);
    return WEIR_EXIT_OK;
}

static int run_weir(weir_cli *cli, int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const weir_tool *t = find_tool(slash ? slash + 1 : argv[0]);
    if (t)
        return run_tool(cli, t, argc - 1, argv + 1);
    if (argc < 2 || is_help(argv[1]))
        return help(cli, 0, NULL);
    if (strcmp(argv[1], "help") == 0)
        return help(cli, argc - 2, argv + 2);
    if (strcmp(argv[1], "--version") == 0) {
        printf("weir %s\n", weir_version());
        return WEIR_EXIT_OK;
    }
    if (argv[1][0] == '-')
        return weir_cli_usage(cli, "unknown option %s; a tool's options stand behind its name", argv[1]);
    t = find_tool(argv[1]);
    return t ? run_tool(cli, t, argc - 2, argv + 2) : unknown_tool(cli, argv[1]);
}

/* A closed standard stream would lend its number to the next file that is opened, and talk would end up in a dump. A
 * closed stdout is opened for reading, so that writing to it still fails. */
static void occupy_standard_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(WEIR_EXIT_FAILED);
}

/* libgomp lets idle threads spin for about a millisecond, and reads the wish for another length before main begins. On
 * a machine whose processors others use as well that took 2 to 30 times as long as a short spin, which in turn starts
 * small matrix products faster than sleeping does. So the program starts itself once more with a short spin set, unless
 * the user chose a policy. */
static void spin_shortly(char **argv)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || n <= 0 || setenv("GOMP_SPINCOUNT", "2000", 1) != 0)
        return;
    self[n] = '\0';
    execv(self, argv); /* where this fails, the program is slower at worst */
}

/* Model files and hooks are mapped: one that is cut short while it is in use, or lies on a failing disk, ends in this
 * signal. */
static void on_bus_error(int sig)
{
    static const char line[] =
        "weir: the file of the model, or of a hook, was cut short or its disk failed while it was "
        "in use: try again with a whole file\n";
    (void)sig;
    ssize_t unused = write(STDERR_FILENO, line, sizeof line - 1);
    (void)unused;
    _exit(WEIR_EXIT_FAILED);
}

/* Is standard output a pipe that nobody reads any more? */
static bool reader_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) > 0 && (p.revents & POLLERR);
}

int main(int argc, char **argv)
{
    if (argc > 0)
        spin_shortly(argv);
    occupy_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away is seen as a failed write, below */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that ulimit -f lets grow no further */
    signal(SIGBUS, on_bus_error);
    static char name[] = "weir", *nobody[] = {name, NULL};
    if (argc < 1) {
        argc = 1;
        argv = nobody;
    }
    weir_cli cli = {.argc = argc, .argv = argv};
    int code = run_weir(&cli, argc, argv);
    bool bad = ferror(stdout) != 0, gone = reader_gone();
    bad = fclose(stdout) != 0 || bad;
    if (bad && gone && code == WEIR_EXIT_OK) /* `| head` has seen enough: nothing to be told */
        code = WEIR_EXIT_FAILED;
    else if (bad && code == WEIR_EXIT_OK) /* otherwise an error has been said */
        code = weir_cli_error(&cli, "cannot write to standard output");
    return code;
}

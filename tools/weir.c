/* weir: one program, a table of tools. `weir TOOL ...`; a link named after a tool runs that tool. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"
#include "cli/tool.h"

static const weir_tool *find_tool(const char *name)
{
    for (int i = 0; i < weir_tool_count; i++)
        if (strcmp(weir_tool_table[i]->name, name) == 0)
            return weir_tool_table[i];
    return NULL;
}

static void print_tools(FILE *out)
{
    fprintf(out, "usage: weir TOOL [options] ...\n\n"
                 "Measures and steers the residual stream of a transformer.\n\nTools\n");
    for (int i = 0; i < weir_tool_count; i++)
        fprintf(out, "  %-16s%s\n", weir_tool_table[i]->name, weir_tool_table[i]->summary);
    fprintf(out,
            "\n`weir help TOOL` or `weir TOOL --help` says more about one; `weir --version` prints the version.\n");
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

static void print_help(const weir_tool *t, FILE *out)
{
    fprintf(out, "usage: weir %s [options] %s\n\n", t->name, t->operands);
    weir_print_wrapped(out, 0, 0, t->about);
    weir_opt_print(t->options, out);
    fprintf(out, "  -h, --help              this text\n");
    if (t->more_help)
        t->more_help(out);
    fprintf(out, "\nExample\n");
    print_example(t->example, out);
}

static int unknown_tool(const weir_cli *cli, const char *name)
{
    const char *names[64];
    int n = 0;
    for (int i = 0; i < weir_tool_count && n < 64; i++)
        names[n++] = weir_tool_table[i]->name;
    const char *near = weir_nearest(name, names, n);
    if (near)
        return weir_cli_usage(cli, "no tool is called \"%s\"; did you mean %s?", name, near);
    return weir_cli_usage(cli, "no tool is called \"%s\"", name);
}

/* argv[0..argc): what stands behind the tool's name. */
static int run_tool(weir_cli *cli, const weir_tool *t, int argc, char **argv)
{
    cli->tool = t;
    void *args = calloc(1, t->args_size);
    weir_opt_operands operands;
    char msg[600];
    if (!args)
        return weir_cli_error(cli, "out of memory");
    int code = WEIR_EXIT_OK;
    switch (weir_opt_parse(t->options, t->rules, argc, argv, args, &operands, msg, sizeof msg)) {
    case WEIR_OPT_HELP:
        print_help(t, stdout);
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

/* `weir help`, `weir help TOOL`. */
static int help(weir_cli *cli, int argc, char **argv)
{
    if (argc == 0) {
        print_tools(stdout);
        return WEIR_EXIT_OK;
    }
    const weir_tool *t = find_tool(argv[0]);
    if (!t)
        return unknown_tool(cli, argv[0]);
    print_help(t, stdout);
    return WEIR_EXIT_OK;
}

static int run_weir(weir_cli *cli, int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const weir_tool *t = find_tool(slash ? slash + 1 : argv[0]);
    if (t)
        return run_tool(cli, t, argc - 1, argv + 1);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
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

#include "say.h"

#include <stdarg.h>
#include <stdio.h>

#include "progress.h"

static void say(const weir_cli *cli, const char *text)
{
    char line[2048];
    snprintf(line, sizeof line, "%s%s%s: %s", cli->parent ? cli->parent->name : "", cli->parent ? " " : "",
             cli->tool ? cli->tool->name : "weir", text);
    weir_make_printable(line);
    weir_progress_clear(cli->progress);
    fprintf(stderr, "%s\n", line);
}

static void vsay(const weir_cli *cli, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
static void vsay(const weir_cli *cli, const char *fmt, va_list ap)
{
    char text[2000];
    vsnprintf(text, sizeof text, fmt, ap);
    say(cli, text);
}

void weir_cli_note(const weir_cli *cli, const char *fmt, ...)
{
    if (cli->quiet)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsay(cli, fmt, ap);
    va_end(ap);
}

int weir_cli_error(const weir_cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsay(cli, fmt, ap);
    va_end(ap);
    return WEIR_EXIT_FAILED;
}

int weir_cli_fail(const weir_cli *cli, const weir_err *err)
{
    char line[1400];
    say(cli, weir_err_line(err, line, sizeof line));
    return WEIR_EXIT_FAILED;
}

int weir_cli_fail_at(const weir_cli *cli, const char *path, weir_err *err)
{
    weir_err_where(err, path, NULL, -1);
    return weir_cli_fail(cli, err);
}

int weir_cli_usage(const weir_cli *cli, const char *fmt, ...)
{
    char text[1800], line[2000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(line, sizeof line, "%s (see weir %s%s%s%s--help)", text, cli->parent ? cli->parent->name : "",
             cli->parent ? " " : "", cli->tool ? cli->tool->name : "", cli->tool ? " " : "");
    say(cli, line);
    return WEIR_EXIT_USAGE;
}

int weir_cli_bad_argument(const weir_cli *cli, const char *option, const weir_err *err)
{
    if (err->code == WEIR_E_NOMEM || err->code == WEIR_E_IO || err->code == WEIR_E_FORMAT || err->code == WEIR_E_HDF5)
        return weir_cli_fail(cli, err);
    char line[1400];
    return weir_cli_usage(cli, "%s%s%s", option ? option : "", option ? ": " : "",
                          weir_err_line(err, line, sizeof line));
}

static void log_line(void *user, weir_log_level level, const char *msg)
{
    (void)level;
    weir_cli_note(user, "%s", msg);
}

weir_log weir_cli_log(const weir_cli *cli)
{
    return (weir_log){.line = log_line, .user = (void *)(uintptr_t)cli};
}

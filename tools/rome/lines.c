#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/say.h"

static int unwritable(const weir_lines *l)
{
    return weir_cli_error(l->cli, "%s: cannot be written", l->part);
}

static bool put(weir_lines *l, const char *line)
{
    return fprintf(l->f, "%s\n", line) > 0 && fflush(l->f) == 0;
}

/* Reads whole lines; *at: where the last one ends. */
static int read_lines(weir_lines *l, const weir_lines_how *how, long *at)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = getline(&line, &cap, l->f);
    const bool whole = n > 0 && line[n - 1] == '\n';
    int code = WEIR_EXIT_OK;
    if (n > 0 && (strncmp(line, how->head, (size_t)(n - whole)) != 0 || (whole && how->head[n - 1])))
        code = weir_cli_error(l->cli, "%s is of another model, file or option: start again with --force", l->part);
    *at = whole ? ftell(l->f) : 0; /* what was killed at its very start has left less than the first line */
    while (code == WEIR_EXIT_OK && whole && (n = getline(&line, &cap, l->f)) > 0 && line[n - 1] == '\n') {
        code = how->take(how->user, line, (size_t)n, l->part);
        l->n++;
        *at = ftell(l->f);
    }
    free(line);
    return code;
}

static int go_on(weir_lines *l, const weir_lines_how *how)
{
    long at = 0;
    const int code = read_lines(l, how, &at);
    if (code != WEIR_EXIT_OK)
        return code;
    if (ftruncate(fileno(l->f), at) != 0 || fseek(l->f, at, SEEK_SET) != 0 || (!at && !put(l, how->head)))
        return unwritable(l);
    weir_cli_note(l->cli, "%s has %lld line%s: going on behind %s", l->part, (long long)l->n, l->n == 1 ? "" : "s",
                  l->n == 1 ? "it" : "them");
    return WEIR_EXIT_OK;
}

/* Opens PATH.part, locked, so that two runs do not write into it at once. */
static int open_part(weir_lines *l, const weir_lines_how *how)
{
    struct stat st;
    const bool there = access(l->part, F_OK) == 0;
    if (how->resume && !there)
        return weir_cli_error(l->cli, "%s is not there: nothing to go on with; without --resume it begins anew",
                              l->part);
    const int fd = open(l->part, O_RDWR | O_CLOEXEC | (there ? 0 : O_CREAT | O_EXCL), 0666);
    l->f = fd >= 0 ? fdopen(fd, "r+") : NULL;
    if (!l->f || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0 && !l->f)
            close(fd);
        return unwritable(l);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return weir_cli_error(l->cli, "%s: another run is writing it", l->part);
    if (there && !how->resume && !how->force)
        return weir_cli_error(l->cli, "%s is there, left by an interrupted run: %s--force replaces it", l->part,
                              how->resumable ? "--resume goes on with it, " : "");
    if (how->resume)
        return go_on(l, how);
    return ftruncate(fd, 0) == 0 && put(l, how->head) ? WEIR_EXIT_OK : unwritable(l);
}

int weir_lines_open(weir_lines *l, const weir_cli *cli, const weir_lines_how *how)
{
    const weir_output_file out = {.path = how->path, .begin = how->begin};
    *l = (weir_lines){.cli = cli, .path = how->path};
    if ((size_t)snprintf(l->part, sizeof l->part, "%s.part", how->path) >= sizeof l->part)
        return weir_cli_error(cli, "%.80s...: the name is too long", how->path);
    int code = weir_output_free(cli, &out);
    if (code == WEIR_EXIT_OK)
        code = weir_output_apart(cli, how->path, how->read, how->n_read);
    if (code == WEIR_EXIT_OK)
        code = open_part(l, how);
    if (code != WEIR_EXIT_OK && l->f) { /* what is there is not this run's */
        fclose(l->f);
        l->f = NULL;
    }
    return code;
}

int weir_lines_put(weir_lines *l, const char *line)
{
    if (!l->f)
        return WEIR_EXIT_OK;
    l->n++;
    return put(l, line) ? WEIR_EXIT_OK : unwritable(l);
}

int weir_lines_keep(weir_lines *l)
{
    if (!l->f)
        return WEIR_EXIT_OK;
    const bool renamed = rename(l->part, l->path) == 0, ok = fclose(l->f) == 0;
    l->f = NULL;
    if (!renamed)
        return weir_cli_error(l->cli, "%s cannot be renamed to %s", l->part, l->path);
    return ok ? WEIR_EXIT_OK : weir_cli_error(l->cli, "%s: cannot be written", l->path);
}

void weir_lines_close(weir_lines *l)
{
    if (!l->f)
        return;
    if (!l->n)
        unlink(l->part);
    fclose(l->f);
    l->f = NULL;
}

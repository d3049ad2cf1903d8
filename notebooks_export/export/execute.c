/* The notebook that Jupyter makes comes through its standard output into a file without a name, and is looked at before
 * it takes the old one's place: a run that is killed leaves nothing behind. */
#include "execute.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/say.h"
#include "cli/signals.h"

static const char program[] = "jupyter-nbconvert";

/* Where it is, from the root; NULL: in no directory of PATH, or no memory. */
static char *find_program(void)
{
    const char *path = getenv("PATH");
    char here[PATH_MAX] = "", *full = NULL;
    while (path && *path && getcwd(here, sizeof here)) {
        const size_t n = strcspn(path, ":");
        const bool rooted = *path == '/';
        if (asprintf(&full, "%s%s%.*s/%s", rooted ? "" : here, rooted ? "" : "/", (int)n, path, program) < 0)
            return NULL;
        if (access(full, X_OK) == 0)
            return full;
        free(full);
        path += n + (path[n] != 0);
    }
    return NULL;
}

/* --- the child */

typedef struct child {
    pid_t pid;
    FILE *in, *made, *talk; /* what it reads, and what it writes to standard output and error */
    char *dir;              /* where it runs */
} child;

/* In a group of its own, so that it gets Ctrl-C once: from weir. It does not outlive weir either. */
static void become(const child *c, const char *full, const char *const *argv)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGPIPE, SIG_DFL); /* what weir ignores, a program inherits */
    signal(SIGXFSZ, SIG_DFL);
    if (chdir(c->dir) == 0 && dup2(fileno(c->in), STDIN_FILENO) == 0 && dup2(fileno(c->made), STDOUT_FILENO) >= 0 &&
        dup2(fileno(c->talk), STDERR_FILENO) >= 0)
        execv(full, (char *const *)(uintptr_t)argv);
    dprintf(fileno(c->talk), "it cannot be started: %s\n", strerror(errno));
    _exit(127);
}

/* Waits; a signal that weir gets is handed on. Returns what waitpid says of it. */
static int wait_for(const child *c)
{
    int status = 0;
    bool told = false;
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        if (weir_signals_seen() && !told) {
            kill(c->pid, weir_signals_seen());
            told = true;
        }
    return status;
}

static int start(child *c, const weir_cli *cli, const char *path, const char *full, const char *const *argv)
{
    const char *slash = strrchr(path, '/');
    *c = (child){.in = fopen(path, "rb"), .made = tmpfile(), .talk = tmpfile()};
    c->dir = strndup(slash ? path : ".", slash > path ? (size_t)(slash - path) : 1);
    if (!c->in || !c->made || !c->talk || !c->dir)
        return weir_cli_error(cli, "%s is written, but a temporary file cannot be made to run it: %s", path,
                              strerror(errno));
    unsetenv("GOMP_SPINCOUNT");                       /* weir's own */
    setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1", 0); /* a kernel's talk about debuggers */
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0)
        become(c, full, argv);
    return c->pid > 0 ? WEIR_EXIT_OK : weir_cli_error(cli, "cannot start %s: %s", program, strerror(errno));
}

static void end(child *c)
{
    FILE *const files[] = {c->in, c->made, c->talk};
    for (int i = 0; i < 3; i++)
        if (files[i])
            fclose(files[i]);
    free(c->dir);
}

/* All that it wrote there, with a NUL behind; NULL: out of memory. */
static char *text_of(FILE *f, size_t *n)
{
    const long end = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *text = end >= 0 ? malloc((size_t)end + 1) : NULL;
    if (!text)
        return NULL;
    rewind(f);
    *n = fread(text, 1, (size_t)end, f);
    text[*n] = 0;
    return text;
}

/* The last line that is not empty, for a message. */
static char *last_line(char *text)
{
    char *last = text;
    for (char *at = strtok(text, "\n"); at; at = strtok(NULL, "\n"))
        if (at[strspn(at, " \r")])
            last = at;
    return last;
}

/* --- what came out */

typedef struct failure {
    char cell[80], error[500];
    bool found;
} failure;

static void keep(char *room, size_t size, weir_str s)
{
    const char *end = s.n ? memchr(s.p, '\n', s.n) : NULL; /* of a text the first line */
    size_t n = end ? (size_t)(end - s.p) : s.n;
    n = n < size - 1 ? n : size - 1;
    snprintf(room, size, "%.*s", (int)n, s.n ? s.p : "");
}

/* {"output_type": "error", "ename": ..., "evalue": ...} */
static void look_at_output(weir_json *j, failure *f)
{
    char name[100] = "", value[300] = ""; /* error has room for both */
    bool error = false;
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "output_type"))
            error = weir_str_eq(weir_json_string(j), "error");
        else if (weir_str_eq(key, "ename"))
            keep(name, sizeof name, weir_json_string(j));
        else if (weir_str_eq(key, "evalue"))
            keep(value, sizeof value, weir_json_string(j));
        else
            weir_json_skip(j);
    }
    if (error && !f->found)
        snprintf(f->error, sizeof f->error, "%s%s%s", name, *value ? ": " : "", value);
    f->found |= error;
}

static void look_at_cell(weir_json *j, failure *first)
{
    failure f = {0};
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "id")) {
            keep(f.cell, sizeof f.cell, weir_json_string(j));
        } else if (weir_str_eq(key, "outputs")) {
            weir_json_array(j);
            while (weir_json_item(j))
                look_at_output(j, &f);
        } else {
            weir_json_skip(j);
        }
    }
    if (f.found && !first->found)
        *first = f;
}

/* The first cell that failed. False: this is no notebook. */
static bool look(const char *text, size_t n, failure *f)
{
    weir_json j;
    weir_str key;
    bool cells = false;
    *f = (failure){0};
    weir_json_init(&j, text, n, NULL, NULL);
    weir_json_object(&j);
    while (weir_json_key(&j, &key))
        if (weir_str_eq(key, "cells")) {
            cells = true;
            weir_json_array(&j);
            while (weir_json_item(&j))
                look_at_cell(&j, f);
        } else {
            weir_json_skip(&j);
        }
    weir_json_end(&j);
    return weir_json_done(&j) == WEIR_OK && cells;
}

typedef struct bytes {
    char *p;
    size_t n;
} bytes;

static int put_bytes(void *ctx, FILE *out)
{
    const bytes *b = ctx;
    fwrite(b->p, 1, b->n, out);
    return WEIR_EXIT_OK;
}

static const char *advice(const failure *f)
{
    return strncmp(f->error, "ModuleNotFoundError", 19) == 0
               ? "; notebooks need h5py, numpy and matplotlib where Jupyter runs them"
           : strncmp(f->error, "KeyboardInterrupt", 17) == 0 ? "; --timeout gives a cell longer"
                                                             : "";
}

/* The notebook that was made takes the old one's place. */
static int take(const weir_cli *cli, const char *path, bytes *made)
{
    const weir_output_file out = {.path = path, .begin = "{", .force = true};
    failure f;
    if (!look(made->p, made->n, &f))
        return weir_cli_error(cli, "%s is written, but what %s made of it is no notebook", path, program);
    int code = weir_output_put(cli, &out, put_bytes, made);
    if (code != WEIR_EXIT_OK || !f.found)
        return code;
    return weir_cli_error(cli, "%s: its cell %s failed: %s%s", path, f.cell, f.error, advice(&f));
}

static int came_to_nothing(const weir_cli *cli, const char *path, int status, const child *c)
{
    size_t n;
    char *talk = text_of(c->talk, &n);
    const char *last = talk ? last_line(talk) : "";
    if (weir_signals_seen())
        weir_cli_error(cli, "stopped; %s is written, but was not run", path);
    else if (WIFSIGNALED(status))
        weir_cli_error(cli, "%s is written, but %s was killed by signal %d", path, program, WTERMSIG(status));
    else if (!*last)
        weir_cli_error(cli, "%s is written, but %s failed, without a word (exit code %d)", path, program,
                       WEXITSTATUS(status));
    else
        weir_cli_error(cli, "%s is written, but %s failed: %s", path, program, last);
    free(talk);
    return WEIR_EXIT_FAILED;
}

int weir_nb_execute(const weir_cli *cli, const char *path, int64_t timeout)
{
    char seconds[80], *full = find_program();
    bytes made = {0};
    child c;
    if (!full)
        return weir_cli_error(cli,
                              "%s is written, but Jupyter is not here to run it: install it (pip install nbconvert "
                              "ipykernel h5py matplotlib; Debian: jupyter-nbconvert python3-ipykernel)",
                              path);
    snprintf(seconds, sizeof seconds, "--ExecutePreprocessor.timeout=%lld", (long long)timeout);
    /* Through standard input: it would take a name for a pattern. */
    const char *const argv[] = {program,     "--to",           "notebook",
                                "--execute", "--allow-errors", "--stdin",
                                "--stdout",  seconds,          "--ExecutePreprocessor.interrupt_on_timeout=True",
                                NULL};
    weir_signals_catch();
    int code = start(&c, cli, path, full, argv);
    if (code == WEIR_EXIT_OK) {
        weir_cli_note(cli, "running its cells ...");
        const int status = wait_for(&c);
        made.p = text_of(c.made, &made.n);
        if (weir_signals_seen() || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            code = came_to_nothing(cli, path, status, &c);
        else
            code = made.p ? take(cli, path, &made) : weir_cli_error(cli, "out of memory");
    }
    end(&c);
    free(made.p);
    free(full);
    return code;
}

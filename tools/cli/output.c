#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

static bool is_stdout(const char *path)
{
    return !path || strcmp(path, "-") == 0;
}

bool weir_ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n > m && strcmp(path + n - m, end) == 0;
}

static bool is_ours(const weir_output_file *o)
{
    char buf[4096] = "";
    FILE *f = fopen(o->path, "rb");
    if (!f)
        return false;
    buf[fread(buf, 1, sizeof buf - 1, f)] = 0;
    fclose(f);
    if (o->begin && !*o->begin)
        buf[strcspn(buf, "\n")] = 0;
    return o->begin && strncasecmp(buf, o->begin, strlen(o->begin)) == 0 && (!o->holds || strstr(buf, o->holds));
}

static bool is_same_file(const struct stat *file, const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Of the directory that a path names something in: "./x" and "x" name one thing. */
static bool stat_directory(const char *path, struct stat *st)
{
    const char *slash = strrchr(path, '/');
    char *dir = strndup(slash ? path : ".", slash > path ? (size_t)(slash - path) : 1);
    const bool there = dir && stat(dir, st) == 0;
    free(dir);
    return there;
}

bool weir_output_same(const char *a, const char *b)
{
    const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
    struct stat st, of;
    if (stat(a, &st) == 0)
        return is_same_file(&st, b);
    if (strcmp(x ? x + 1 : a, y ? y + 1 : b) != 0 || !stat_directory(a, &st) || !stat_directory(b, &of))
        return strcmp(a, b) == 0;
    return st.st_dev == of.st_dev && st.st_ino == of.st_ino;
}

static int is_read(const weir_cli *cli, const char *path)
{
    return weir_cli_error(cli, "%s is also read: it would be written over; choose another name", path);
}

int weir_output_apart(const weir_cli *cli, const char *path, const char *const *input, int n)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    char *part = malloc(end + sizeof ".part");
    if (!part)
        return weir_cli_error(cli, "out of memory");
    sprintf(part, "%.*s.part", (int)end, path);
    int code = WEIR_EXIT_OK;
    for (int i = 0; i < n && code == WEIR_EXIT_OK; i++)
        if (input[i] && weir_output_same(input[i], path))
            code = is_read(cli, path);
        else if (input[i] && weir_output_same(input[i], part))
            code = is_read(cli, part);
    free(part);
    return code;
}

/* Is it this file, or a value out of it: FILE[::NAME][@ROW][*C]? */
static bool is_of_file(const struct stat *file, const char *text)
{
    char name[4096];
    const char *part = strstr(text, "::");
    if (is_same_file(file, text))
        return true;
    const size_t n = part ? (size_t)(part - text) : strcspn(text, "@*");
    return n < sizeof name && snprintf(name, sizeof name, "%.*s", (int)n, text) > 0 && is_same_file(file, name);
}

/* A word of the command line: itself, behind its first `=`, or behind the letter of a short option. */
static bool word_names(const struct stat *file, const char *word)
{
    const char *value = strchr(word, '=');
    const bool short_option = word[0] == '-' && word[1] && word[1] != '-';
    return is_of_file(file, word) || (value && is_of_file(file, value + 1)) ||
           (short_option && is_of_file(file, word + 2));
}

static bool is_named_twice(const weir_cli *cli, const struct stat *file)
{
    int n = 0;
    for (int i = 1; i < cli->argc; i++)
        n += word_names(file, cli->argv[i]);
    return n > 1;
}

int weir_output_place(const weir_cli *cli, const char *path)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    const bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        return weir_cli_error(cli, "%s is a directory: name a file in it", path);
    if (there && !S_ISREG(st.st_mode))
        return weir_cli_error(cli, "%s is a pipe or a device: name a file, or - for standard output", path);
    if (there && is_named_twice(cli, &st))
        return is_read(cli, path);
    char *dir = strndup(slash ? path : ".", slash > path ? (size_t)(slash - path) : 1);
    if (!dir)
        return weir_cli_error(cli, "out of memory");
    int code = access(dir, W_OK | X_OK) == 0
                   ? WEIR_EXIT_OK
                   : weir_cli_error(cli, "%s: cannot make a file in %s: %s", path, dir, strerror(errno));
    free(dir);
    return code;
}

int weir_output_free(const weir_cli *cli, const weir_output_file *f)
{
    int code = is_stdout(f->path) ? WEIR_EXIT_OK : weir_output_place(cli, f->path);
    if (code != WEIR_EXIT_OK || is_stdout(f->path) || f->force || access(f->path, F_OK) != 0 || is_ours(f))
        return code;
    return weir_cli_error(cli, "%s exists and is no earlier output of this kind: choose another name, or --force",
                          f->path);
}

int weir_output_put(const weir_cli *cli, const weir_output_file *o, int (*write)(void *ctx, FILE *out), void *ctx)
{
    weir_err err = {0};
    weir_outfile *f;
    if (is_stdout(o->path))
        return write(ctx, stdout);
    int code = weir_output_free(cli, o);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_outfile_open(&f, o->path, access(o->path, F_OK) == 0, &err) != WEIR_OK)
        return weir_cli_fail(cli, &err);
    code = write(ctx, weir_outfile_stream(f));
    if (code != WEIR_EXIT_OK) {
        weir_outfile_abort(f);
        return code;
    }
    return weir_outfile_commit(f, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(cli, &err);
}

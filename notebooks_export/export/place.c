#include "place.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *weir_nb_default_name(const char *file, const char *end)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    static const char *const ends[] = {".part", ".h5", ".hdf5"};
    size_t n = strlen(name);
    char *text = NULL;
    for (int i = 0; i < 3; i++) {
        const size_t m = strlen(ends[i]);
        if (n > m && strncmp(name + n - m, ends[i], m) == 0)
            n -= m;
    }
    return asprintf(&text, "%.*s%s", (int)n, name, end) < 0 ? NULL : text;
}

/* The real path of the directory that a path names something in; NULL: there is none, or no memory. */
static char *real_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = strndup(slash ? path : ".", slash > path ? (size_t)(slash - path) : 1), *real = NULL;
    if (dir)
        real = realpath(dir, NULL);
    free(dir);
    return real;
}

/* Is the path in this directory, or below? Both real. */
static bool below(const char *path, const char *dir)
{
    const size_t n = strlen(dir);
    if (strcmp(dir, "/") == 0)
        return true;
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* From one directory to a path, both real and absolute: "../data/x.h5". */
static char *relative(const char *dir, const char *path)
{
    size_t shared = 0;
    char *text = NULL;
    size_t size;
    size_t i = 0;
    for (; dir[i] && dir[i] == path[i]; i++)
        if (dir[i] == '/')
            shared = i;
    if (!dir[i] && path[i] == '/')
        shared = i;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (const char *d = dir + shared; *d; d++)
        if (*d == '/' && d[1])
            fputs("../", f);
    fputs(path + shared + (path[shared] == '/'), f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

char *weir_nb_file_from(const char *out, const char *file)
{
    if (!out || strcmp(out, "-") == 0)
        return strdup(file);
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    char *from = real_directory(out), *dir = real_directory(file), *here = realpath(".", NULL);
    char *path = NULL, *text = NULL;
    /* The directory is made real, but not the file: a link is the user's name for it. */
    if (dir && asprintf(&path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name) < 0)
        path = NULL;
    if (from && path && here && (below(path, from) || (below(from, here) && below(path, here))))
        text = relative(from, path);
    else if (path)
        text = strdup(path);
    free(from);
    free(dir);
    free(here);
    free(path);
    return text;
}

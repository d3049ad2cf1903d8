/* Where the embedded model is. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/model.h>

#include "../io/filemap.h"

#ifndef WEIR_DATADIR
#define WEIR_DATADIR "/usr/local/share/weir"
#endif

/* Relative to the directory of the running program or of the shared library: build/bin/x and build/CONFIG/bin/x of a
 * source tree (tests lie deeper), bin/x and lib/x of an installation. */
static const char *const BESIDE[] = {"../../lib/brook", "../../../lib/brook", "../../../../lib/brook",
                                     "../share/weir/brook"};

static bool holds_model(const char *dir)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/config.json", dir);
    return n > 0 && (size_t)n < sizeof path && weir_path_is_file(path);
}

/* Cuts the last part of a path off. */
static bool to_dir(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* Directory of the running program. */
static bool program_dir(char *buf, size_t n)
{
    ssize_t len = readlink("/proc/self/exe", buf, n - 1);
    if (len <= 0 || (size_t)len >= n - 1)
        return false;
    buf[len] = '\0';
    return to_dir(buf);
}

/* Directory of the file that this function was loaded from: the shared library's, for a program that lies elsewhere. */
static bool library_dir(char *buf, size_t n)
{
    Dl_info info;
    return dladdr((const void *)BESIDE, &info) && info.dli_fname &&
           (size_t)snprintf(buf, n, "%s", info.dli_fname) < n && to_dir(buf);
}

/* The first place beside dir that holds the model, in path[n]. */
static bool look_beside(const char *dir, char *path, size_t n)
{
    for (size_t i = 0; i < sizeof BESIDE / sizeof *BESIDE; i++) {
        snprintf(path, n, "%s/%s", dir, BESIDE[i]);
        if (holds_model(path))
            return true;
    }
    return false;
}

static const char *found(char *buf, size_t n, const char *path, weir_err *err)
{
    if ((size_t)snprintf(buf, n, "%s", path) < n)
        return buf;
    weir_fail(err, WEIR_E_ARG, "the path of the embedded model is longer than %zu bytes", n);
    return NULL;
}

const char *weir_brook_path(char *buf, size_t n, weir_err *err)
{
    const char *env = getenv("WEIR_BROOK");
    if (env && *env) {
        if (holds_model(env))
            return found(buf, n, env, err);
        weir_fail(err, WEIR_E_ARG, "WEIR_BROOK names a directory without config.json");
        weir_err_where(err, env, NULL, -1);
        return NULL;
    }
    char dir[4096], path[4200];
    if ((program_dir(dir, sizeof dir) && look_beside(dir, path, sizeof path)) ||
        (library_dir(dir, sizeof dir) && look_beside(dir, path, sizeof path)))
        return found(buf, n, path, err);
    if (holds_model(WEIR_DATADIR "/brook"))
        return found(buf, n, WEIR_DATADIR "/brook", err);
    weir_fail(err, WEIR_E_IO,
              "the embedded model brook was not found: set WEIR_BROOK to its directory, or name a model");
    return NULL;
}

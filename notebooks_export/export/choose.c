#include "choose.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/from.h"
#include "cli/say.h"

/* Files of ours that no notebook shows, and what does. */
static const struct {
    const char *format, *is;
} others[] = {
    {"weir-stats", "statistics of hook points (trace --hook stats): ablate with them, or read /stats with h5py"},
    {"weir-moments", "second moments of keys (rome stats): rome edit reads them"},
};

enum { MOST = 64 /* kinds that a message names */ };

static const weir_nb_kind *of_format(const char *path)
{
    for (int i = 0; i < weir_n_nb_kinds; i++)
        if (weir_arrays_is(path, weir_nb_kind_table[i]->format))
            return weir_nb_kind_table[i];
    return NULL;
}

/* A comma, "or" or nothing, between the i-th of n words and the next. */
static const char *between(int i, int n)
{
    return i + 1 >= n ? "" : i + 2 == n ? " or " : ", ";
}

/* "activations or attention": kinds of this format; NULL: of all. */
static void list_kinds(char *text, size_t size, const char *format)
{
    const weir_nb_kind *k[MOST];
    int n = 0;
    size_t used = 0;
    for (int i = 0; i < weir_n_nb_kinds && n < MOST; i++)
        if (!format || strcmp(format, weir_nb_kind_table[i]->format) == 0)
            k[n++] = weir_nb_kind_table[i];
    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", k[i]->name, between(i, n));
}

static int find_named(const weir_nb_kind **kind, const weir_cli *cli, const char *name)
{
    const char *names[MOST];
    char all[400];
    int n = 0;
    for (int i = 0; i < weir_n_nb_kinds; i++) {
        if (strcmp(weir_nb_kind_table[i]->name, name) == 0) {
            *kind = weir_nb_kind_table[i];
            return WEIR_EXIT_OK;
        }
        if (n < MOST)
            names[n++] = weir_nb_kind_table[i]->name;
    }
    const char *near = weir_nearest(name, names, n);
    list_kinds(all, sizeof all, NULL);
    if (near)
        return weir_cli_usage(cli, "--template %s: there is none of this name; did you mean %s?", name, near);
    return weir_cli_usage(cli, "--template %s: there is none of this name, but %s", name, all);
}

/* It is there, and HDF5. */
static int check_file(const weir_cli *cli, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return weir_cli_error(cli, "cannot open %s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return weir_cli_error(cli, "%s is a directory: name an HDF5 file of weir's", path);
    if (!S_ISREG(st.st_mode))
        return weir_cli_error(cli, "%s is a pipe or a device, no file", path);
    if (!weir_from_is_hdf5(path))
        return weir_cli_error(
            cli,
            "%s is no HDF5 file: a notebook shows dumps of trace, and what neuron-top, logit-lens and "
            "rome verify write with -o FILE.h5",
            path);
    return WEIR_EXIT_OK;
}

/* No kind's: what is it? */
static int refuse(const weir_cli *cli, const char *path)
{
    weir_err err = {0};
    weir_dump_reader *r = NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (weir_arrays_is(path, others[i].format))
            return weir_cli_error(cli, "%s holds %s; there is no notebook for it", path, others[i].is);
    /* What is wrong with a file that cannot even tell its format, the reader of dumps knows best. */
    if (weir_dump_open(&r, path, &err) != WEIR_OK)
        return weir_cli_fail_at(cli, path, &err);
    weir_dump_close(r);
    return weir_cli_error(cli, "%s: no kind of notebook shows it", path);
}

static const weir_nb_kind *best(const char *path, const char *format)
{
    const weir_nb_kind *found = NULL;
    int most = 0;
    for (int i = 0; i < weir_n_nb_kinds; i++) {
        const weir_nb_kind *k = weir_nb_kind_table[i];
        const int suits = strcmp(k->format, format) != 0 ? 0 : k->suits ? k->suits(path) : 1;
        if (suits > most) {
            most = suits;
            found = k;
        }
    }
    return found;
}

int weir_nb_choose(const weir_nb_kind **kind, const weir_cli *cli, const char *path, const char *name)
{
    char fitting[400] = "";
    int code = name ? find_named(kind, cli, name) : WEIR_EXIT_OK;
    if (code == WEIR_EXIT_OK)
        code = check_file(cli, path);
    if (code != WEIR_EXIT_OK)
        return code;
    const weir_nb_kind *any = of_format(path);
    if (!any)
        return refuse(cli, path);
    list_kinds(fitting, sizeof fitting, any->format);
    if (name && strcmp((*kind)->format, any->format) != 0)
        return weir_cli_usage(cli, "--template %s shows files of format %s; %s is of format %s: its template is %s",
                              name, (*kind)->format, path, any->format, fitting);
    if (!name)
        *kind = best(path, any->format);
    return *kind ? WEIR_EXIT_OK : weir_cli_usage(cli, "%s: choose --template %s", path, fitting);
}

#include "attach.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "say.h"

enum { HASHED_BYTES = 64 << 20 };

static const weir_opt attach_opts[] = {
    {"ablate", 0, NULL, WEIR_OPT_LIST, "SEL[=zero|mean:FILE]", 0, 0, NULL,
     "set what SEL selects to zero, or to its mean in a statistics file or dump: --ablate L6N421, --ablate 'L3H2[-1]'",
     offsetof(weir_attach_args, ablate)},
    {"scale", 0, NULL, WEIR_OPT_LIST, "SEL=FACTOR", 0, 0, NULL, "multiply it", offsetof(weir_attach_args, scale)},
    {"add", 0, NULL, WEIR_OPT_LIST, "SEL=FILE[::NAME][@ROW][*C]", 0, 0, NULL,
     "steering: add C times a vector from an .npy, safetensors or HDF5 file of weir's",
     offsetof(weir_attach_args, add)},
    {"set", 0, NULL, WEIR_OPT_LIST, "SEL=FILE[::NAME][@ROW][*C]", 0, 0, NULL, "write such a vector over it",
     offsetof(weir_attach_args, set)},
    {"patch", 0, NULL, WEIR_OPT_LIST, "SEL=DUMP.h5", 0, 0, NULL,
     "take the values that a dump has of the same point, document and position", offsetof(weir_attach_args, patch)},
    {"project-out", 0, NULL, WEIR_OPT_LIST, "SEL=FILE[::NAME][@ROW]", 0, 0, NULL,
     "remove its component along a vector, or within the span of several", offsetof(weir_attach_args, project_out)},
    {"hook", 0, NULL, WEIR_OPT_LIST, "NAME[:ARGS]", 0, 0, NULL,
     "attach a built-in hook, or one of your own: ./mine.so. Hooks and interventions act in the order given, and a "
     "recording sees what they wrote",
     offsetof(weir_attach_args, hook)},
};
const weir_opt_group weir_opts_attach = {"Interventions and hooks", attach_opts,
                                         sizeof attach_opts / sizeof *attach_opts};

/* Options that are hooks by another name. */
static const struct {
    const char *option, *hook;
} interventions[] = {{"ablate", "ablate"}, {"scale", "scale"}, {"add", "steer"},
                     {"set", "set"},       {"patch", "patch"}, {"project-out", "project-out"}};
enum { INTERVENTIONS = sizeof interventions / sizeof *interventions };

/* --- the order of the command line */

typedef struct given {
    const char *option, *hook; /* hook NULL: --hook, whose text names it */
    const char *text;
    int place;
} given;

static const weir_opt_list *list_of(const weir_attach_args *a, const char *option)
{
    for (size_t i = 0; i < sizeof attach_opts / sizeof *attach_opts; i++)
        if (strcmp(attach_opts[i].name, option) == 0)
            return (const void *)((const char *)a + attach_opts[i].at);
    return NULL;
}

int weir_attach_count(const weir_attach_args *args)
{
    int n = args->hook.n;
    for (int i = 0; i < INTERVENTIONS; i++)
        n += list_of(args, interventions[i].option)->n;
    return n;
}

static int by_place(const void *a, const void *b)
{
    const given *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

static void add_list(given *to, int *n, const char *option, const char *hook, const weir_opt_list *list)
{
    for (int i = 0; i < list->n; i++)
        to[(*n)++] = (given){option, hook, list->v[i], list->place[i]};
}

/* All of them, in order; NULL when out of memory. */
static given *in_order(const weir_attach_args *args)
{
    int n = 0;
    given *all = calloc((size_t)weir_attach_count(args) + 1, sizeof *all);
    if (!all)
        return NULL;
    add_list(all, &n, "hook", NULL, &args->hook);
    for (int i = 0; i < INTERVENTIONS; i++)
        add_list(all, &n, interventions[i].option, interventions[i].hook, list_of(args, interventions[i].option));
    qsort(all, (size_t)n, sizeof *all, by_place);
    return all;
}

/* --- making */

/* Bytes of NAME in "NAME[:ARGS]". A shared object's path may hold colons: it ends with ".so". */
static size_t name_length(const char *text)
{
    const char *so = strstr(text, ".so:");
    size_t n = strlen(text), colon = strcspn(text, ":");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(colon < sizeof name ? colon : sizeof name - 1), text);
    if (weir_hook_class_find(name))
        return colon;
    if (so)
        return (size_t)(so - text) + 3;
    return n > 3 && strcmp(text + n - 3, ".so") == 0 ? n : colon;
}

static int unknown_hook(const weir_cli *cli, const char *name)
{
    const char *names[64];
    int count = weir_hook_class_count() < 64 ? weir_hook_class_count() : 64;
    for (int i = 0; i < count; i++)
        names[i] = weir_hook_class_at(i)->name;
    const char *near = weir_nearest(name, names, count);
    return weir_cli_usage(cli, "--hook %s: no built-in hook has this name%s%s%s", name, near ? "; did you mean " : "",
                          near ? near : "", near ? "?" : "");
}

/* The class that --hook names, and its arguments. */
static int find_class(const weir_cli *cli, const char *text, const weir_hook_class **c, const char **args)
{
    weir_err err = {0};
    size_t n = name_length(text);
    char *name = strndup(text, n);
    int code = WEIR_EXIT_OK;
    if (!name)
        return weir_cli_error(cli, "out of memory");
    *args = text[n] ? text + n + 1 : NULL;
    *c = weir_hook_class_find(name);
    if (!*c && (strchr(name, '/') || (n > 3 && strcmp(name + n - 3, ".so") == 0)))
        code =
            weir_hook_class_load(c, name, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_bad_argument(cli, "--hook", &err);
    else if (!*c)
        code = unknown_hook(cli, name);
    free(name);
    return code;
}

/* The option that stands for this hook, or NULL. */
static const char *option_of(const char *hook)
{
    for (int i = 0; i < INTERVENTIONS; i++)
        if (strcmp(interventions[i].hook, hook) == 0)
            return interventions[i].option;
    return NULL;
}

static int attach_one(weir_attach *a, const weir_cli *cli, const given *g, weir_run *run)
{
    weir_err err = {0};
    const weir_hook_class *c = g->hook ? weir_hook_class_find(g->hook) : NULL;
    const char *args = g->text;
    int code = g->hook ? WEIR_EXIT_OK : find_class(cli, g->text, &c, &args);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_run_hook(run, c, args, &err) != WEIR_OK) {
        char option[300];
        snprintf(option, sizeof option, "--%s %s", g->option, g->text);
        return weir_cli_bad_argument(cli, option, &err);
    }
    const char *kind = option_of(c->name);
    a->hook[a->n] = (weir_attached_hook){kind ? kind : c->name, args, kind != NULL, a->n};
    a->n++;
    return WEIR_EXIT_OK;
}

int weir_attach_all(weir_attach *a, const weir_cli *cli, const weir_attach_args *args, weir_run *run)
{
    int n = weir_attach_count(args), code = WEIR_EXIT_OK;
    given *all = in_order(args);
    *a = (weir_attach){.run = run, .hook = calloc((size_t)n + 1, sizeof *a->hook)};
    if (!all || !a->hook)
        code = weir_cli_error(cli, "out of memory");
    for (int i = 0; i < n && code == WEIR_EXIT_OK; i++)
        code = attach_one(a, cli, &all[i], run);
    free(all);
    return code;
}

void weir_attach_free(weir_attach *a)
{
    free(a->hook);
    *a = (weir_attach){0};
}

bool weir_attach_only_writes(const weir_attach *a)
{
    for (int i = 0; i < a->n; i++)
        if (!weir_run_hook_writes(a->run, a->hook[i].index))
            return false;
    return a->n > 0;
}

/* --- telling */

/* Bytes to show of a hook's arguments: SEL of "SEL=VALUE", all of what another hook was given. */
static int shown_length(const weir_attached_hook *h)
{
    if (!h->args)
        return 0;
    return (int)(h->declared ? strcspn(h->args, "=") : strlen(h->args));
}

/* The file that a value names, to be freed; NULL: none. */
static char *file_of(const weir_attached_hook *h)
{
    const char *eq = strchr(h->args, '='), *value = eq ? eq + 1 : "";
    if (strncmp(value, "mean:", 5) == 0 && strcmp(h->kind, "ablate") == 0)
        return strdup(value + 5);
    if (!*value || strcmp(h->kind, "ablate") == 0 || strcmp(h->kind, "scale") == 0)
        return NULL;
    return strcmp(h->kind, "patch") == 0 ? strdup(value) : weir_values_path(value);
}

static void write_file(weir_jsonw *w, const char *path)
{
    char hex[65];
    struct stat st;
    weir_jsonw_key_cstr(w, "file", path);
    if (stat(path, &st) != 0)
        return;
    weir_jsonw_key_int(w, "bytes", (int64_t)st.st_size);
    bool hashed = st.st_size <= HASHED_BYTES && weir_sha256_file(path, hex, NULL) == WEIR_OK;
    weir_jsonw_key_cstr(w, "sha256", hashed ? hex : NULL);
}

/* "kind" and what it acts on. */
static void write_what(weir_jsonw *w, const weir_attached_hook *h)
{
    weir_jsonw_key_cstr(w, "kind", h->kind);
    if (h->declared) {
        weir_jsonw_key(w, "selector");
        weir_jsonw_str(w, h->args, (size_t)shown_length(h));
    } else if (h->args) {
        weir_jsonw_key_cstr(w, "args", h->args);
    }
}

static void write_intervention(weir_jsonw *w, const weir_attached_hook *h)
{
    weir_jsonw_object(w);
    write_what(w, h);
    if (h->declared) {
        int n = shown_length(h);
        char *path = file_of(h);
        weir_jsonw_key_cstr(w, "value", h->args[n] ? h->args + n + 1 : "zero");
        if (path)
            write_file(w, path);
        free(path);
    }
    weir_jsonw_end(w);
}

static char *json_of(const weir_attach *a, const weir_edits *edits)
{
    char *text = NULL;
    size_t size;
    weir_jsonw w;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    weir_jsonw_init(&w, f);
    weir_jsonw_array(&w);
    weir_edits_write(edits, &w);
    for (int i = 0; i < a->n; i++)
        if (weir_run_hook_writes(a->run, a->hook[i].index))
            write_intervention(&w, &a->hook[i]);
    weir_jsonw_end(&w);
    return fclose(f) == 0 ? text : (free(text), NULL);
}

char *weir_attach_interventions(const weir_attach *a)
{
    return json_of(a, NULL);
}

char *weir_attach_json(const weir_attach *a)
{
    return json_of(a, a->edits);
}

void weir_attach_say(const weir_attach *a, const weir_cli *cli)
{
    for (int i = 0; i < a->n; i++) {
        const weir_attached_hook *h = &a->hook[i];
        int64_t missed, rows = weir_run_hook_changed(a->run, h->index, &missed);
        char left[64] = "";
        if (rows < 0)
            continue;
        if (missed)
            snprintf(left, sizeof left, ", %lld left alone (the dump lacks them)", (long long)missed);
        weir_cli_note(cli, "%s%s%.*s: %lld row%s changed%s", h->kind, h->args ? " " : "", shown_length(h),
                      h->args ? h->args : "", (long long)rows, rows == 1 ? "" : "s", left);
    }
}

void weir_attach_write(const weir_attach *a, weir_jsonw *w)
{
    weir_jsonw_array(w);
    weir_edits_write(a->edits, w);
    for (int i = 0; i < a->n; i++) {
        int64_t missed, rows = weir_run_hook_changed(a->run, a->hook[i].index, &missed);
        if (rows < 0)
            continue;
        weir_jsonw_object(w);
        write_what(w, &a->hook[i]);
        weir_jsonw_key_int(w, "rows_changed", rows);
        weir_jsonw_key_int(w, "rows_missing", missed);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

void weir_attach_help(FILE *out)
{
    fprintf(out, "\nBuilt-in hooks\n");
    for (int i = 0; i < weir_hook_class_count(); i++) {
        const weir_hook_class *c = weir_hook_class_at(i);
        int n = fprintf(out, "  %s%s%s", c->name, c->args && *c->args ? ":" : "", c->args ? c->args : "");
        weir_print_wrapped(out, 26, n < 25 ? n : (fputc('\n', out), 0), c->help);
    }
}

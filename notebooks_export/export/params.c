/* The parameters cell: `name = value  # what it is`, a line each. */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "nb.h"

/* --- lines */

static size_t name_length(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    return n;
}

/* text: one line, ours to keep. */
static weir_status read_line(weir_nb_line *l, char *text, weir_err *err)
{
    const size_t n = name_length(text);
    const char *value = text + n + strspn(text + n, " ");
    size_t used;
    *l = (weir_nb_line){.text = text};
    if (!text[strspn(text, " ")] || *text == '#')
        return WEIR_OK;
    if (n == 0 || *value != '=')
        return weir_fail(err, WEIR_E_FORMAT, "no line of parameters: %s", text);
    value += 1 + strspn(value + 1, " ");
    WEIR_TRY(weir_nb_value_read(&l->value, value, &used, err));
    const char *rest = value + used + strspn(value + used, " ");
    if (*rest && *rest != '#')
        return weir_fail(err, WEIR_E_FORMAT, "no comment behind a value: %s", text);
    l->name = strndup(text, n);
    memmove(text, rest, strlen(rest) + 1);
    return l->name ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

weir_status weir_nb_lines_read(weir_nb *nb, const char *source, weir_err *err)
{
    while (*source) {
        const size_t n = strcspn(source, "\n");
        weir_nb_line *grown = realloc(nb->line, ((size_t)nb->n_lines + 1) * sizeof *grown);
        char *text = strndup(source, n);
        nb->line = grown ? grown : nb->line;
        if (!grown || !text) {
            free(text);
            return weir_fail(err, WEIR_E_NOMEM, "out of memory");
        }
        WEIR_TRY(read_line(&nb->line[nb->n_lines++], text, err));
        source += n + (source[n] != 0);
    }
    if (nb->n_lines == 0 || !nb->line[0].name || strcmp(nb->line[0].name, "file") != 0)
        return weir_fail(err, WEIR_E_FORMAT, "the first parameter of the template %s is not `file`", nb->kind->name);
    return WEIR_OK;
}

void weir_nb_lines_free(weir_nb *nb)
{
    for (int i = 0; i < nb->n_lines; i++) {
        free(nb->line[i].name);
        free(nb->line[i].text);
        weir_nb_value_free(&nb->line[i].value);
    }
    free(nb->line);
}

static weir_nb_line *find(const weir_nb *nb, const char *name, size_t n)
{
    for (int i = 0; i < nb->n_lines; i++)
        if (nb->line[i].name && strlen(nb->line[i].name) == n && strncmp(nb->line[i].name, name, n) == 0)
            return &nb->line[i];
    return NULL;
}

void weir_nb_put_parameters(const weir_nb *nb, const char *file, FILE *out)
{
    for (int i = 0; i < nb->n_lines; i++) {
        const weir_nb_line *l = &nb->line[i];
        fputs(i ? "\n" : "", out);
        if (l->name)
            fprintf(out, "%s = ", l->name);
        if (l->name && i == 0)
            weir_nb_put_python(out, file);
        else if (l->name)
            weir_nb_value_python(&l->value, out);
        fprintf(out, "%s%s", l->name && *l->text ? "  " : "", l->text);
    }
}

/* --- -p */

static int unknown(const weir_nb *nb, const char *name)
{
    const char *names[64];
    int n = 0;
    for (int i = 1; i < nb->n_lines && n < 64; i++)
        if (nb->line[i].name)
            names[n++] = nb->line[i].name;
    const char *near = weir_nearest(name, names, n);
    if (near)
        return weir_cli_usage(nb->cli, "-p %s: %s notebooks have no such parameter; did you mean %s?", name,
                              nb->kind->name, near);
    return weir_cli_usage(nb->cli, "-p %s: %s notebooks have no such parameter; --list %s shows them", name,
                          nb->kind->name, nb->path);
}

static int give(weir_nb *nb, const char *text)
{
    const size_t n = strcspn(text, "=");
    weir_err err = {0};
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    if (!text[n])
        return weir_cli_usage(nb->cli, "-p %s: a parameter is NAME=VALUE", text);
    weir_nb_line *l = find(nb, text, n);
    if (!l)
        return unknown(nb, name);
    if (l == &nb->line[0])
        return weir_cli_usage(nb->cli, "-p file: the file is the argument");
    if (l->given)
        return weir_cli_usage(nb->cli, "-p %s is given twice", name);
    weir_nb_value v;
    if (weir_nb_value_typed(&v, &l->value, text + n + 1, &err) != WEIR_OK)
        return weir_cli_usage(nb->cli, "-p %s: %s", text, err.msg);
    weir_nb_value_free(&l->value);
    l->value = v;
    l->given = true;
    return WEIR_EXIT_OK;
}

int weir_nb_give(weir_nb *nb, const weir_opt_list *list)
{
    int code = WEIR_EXIT_OK;
    for (int i = 0; i < list->n && code == WEIR_EXIT_OK; i++)
        code = give(nb, list->v[i]);
    return code;
}

/* --- what kinds ask */

static weir_nb_line *line_of(const weir_nb *nb, const char *name)
{
    return find(nb, name, strlen(name));
}

bool weir_nb_given(const weir_nb *nb, const char *name)
{
    const weir_nb_line *l = line_of(nb, name);
    return l && l->given;
}

/* Takes v. */
static void set(weir_nb *nb, const char *name, weir_nb_value v)
{
    weir_nb_line *l = line_of(nb, name);
    if (!l)
        (void)weir_fail(&nb->err, WEIR_E_ARG, "the template %s has no parameter %s", nb->kind->name, name);
    if (!l || l->given) {
        weir_nb_value_free(&v);
        return;
    }
    weir_nb_value_free(&l->value);
    l->value = v;
}

void weir_nb_set(weir_nb *nb, const char *name, const char *value)
{
    weir_nb_value v;
    size_t used;
    if (weir_nb_value_read(&v, value, &used, &nb->err) == WEIR_OK)
        set(nb, name, v);
}

void weir_nb_set_int(weir_nb *nb, const char *name, int64_t value)
{
    set(nb, name, (weir_nb_value){.type = WEIR_NB_INT, .i = value, .r = (double)value});
}

void weir_nb_set_text(weir_nb *nb, const char *name, const char *value)
{
    weir_nb_value v;
    if (weir_nb_value_of_text(&v, value, &nb->err) == WEIR_OK)
        set(nb, name, v);
}

/* The value, if it is of this type, or None; NULL: it is neither, which has been said. */
static const weir_nb_value *ask(const weir_nb *nb, const char *name, weir_nb_type type, bool *there)
{
    const weir_nb_line *l = line_of(nb, name);
    if (!l) {
        weir_cli_error(nb->cli, "the template %s has no parameter %s", nb->kind->name, name);
        return NULL;
    }
    const bool none = l->value.type == WEIR_NB_NONE;
    if (there)
        *there = !none;
    if (l->value.type == type || (type == WEIR_NB_REAL && l->value.type == WEIR_NB_INT) || (none && there))
        return &l->value;
    weir_nb_wrong(nb, name, "must be %s", weir_nb_type_words(type));
    return NULL;
}

int weir_nb_int(const weir_nb *nb, const char *name, int64_t *out, bool *there)
{
    const weir_nb_value *v = ask(nb, name, WEIR_NB_INT, there);
    *out = v ? v->i : 0;
    return v ? WEIR_EXIT_OK : WEIR_EXIT_USAGE;
}

int weir_nb_int_in(const weir_nb *nb, const char *name, int64_t low, int64_t high, int64_t *out)
{
    const int code = weir_nb_int(nb, name, out, NULL);
    if (code == WEIR_EXIT_OK && (*out < low || *out > high))
        return weir_nb_wrong(nb, name, "it can be %lld to %lld here", (long long)low, (long long)high);
    return code;
}

int weir_nb_real(const weir_nb *nb, const char *name, double *out, bool *there)
{
    const weir_nb_value *v = ask(nb, name, WEIR_NB_REAL, there);
    *out = v ? v->r : 0;
    return v ? WEIR_EXIT_OK : WEIR_EXIT_USAGE;
}

int weir_nb_bool(const weir_nb *nb, const char *name, bool *out)
{
    const weir_nb_value *v = ask(nb, name, WEIR_NB_BOOL, NULL);
    *out = v && v->yes;
    return v ? WEIR_EXIT_OK : WEIR_EXIT_USAGE;
}

int weir_nb_text(const weir_nb *nb, const char *name, const char **out, bool *there)
{
    const weir_nb_value *v = ask(nb, name, WEIR_NB_TEXT, there);
    *out = v && v->text ? v->text : "";
    return v ? WEIR_EXIT_OK : WEIR_EXIT_USAGE;
}

int weir_nb_ints(const weir_nb *nb, const char *name, const int64_t **out, int64_t *n, bool *there)
{
    const weir_nb_value *v = ask(nb, name, WEIR_NB_LIST, there);
    *out = v ? v->ints : NULL;
    *n = v ? v->n : 0;
    if (v && v->n && !v->ints)
        return weir_nb_wrong(nb, name, "must be a list of whole numbers");
    return v ? WEIR_EXIT_OK : WEIR_EXIT_USAGE;
}

int weir_nb_wrong(const weir_nb *nb, const char *name, const char *fmt, ...)
{
    const weir_nb_line *l = line_of(nb, name);
    char why[800], *value = NULL;
    size_t size;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    FILE *f = open_memstream(&value, &size);
    if (f && l)
        weir_nb_value_python(&l->value, f);
    const bool shown = f && fclose(f) == 0;
    weir_cli_usage(nb->cli, "-p %s=%.200s: %s", name, shown ? value : "", why);
    free(value);
    return WEIR_EXIT_USAGE;
}

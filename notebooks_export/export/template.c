/* Templates: a kind's notebook, read from the lines that are in the program. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/from.h"
#include "cli/say.h"
#include "nb.h"

static char *join(const char *const *line)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (; *line; line++)
        fputs(*line, f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

static char *kept(weir_json *j, weir_str s)
{
    char *copy = strndup(s.n ? s.p : "", s.n);
    if (!copy)
        weir_json_fail(j, "out of memory");
    return copy;
}

char *weir_nb_read_source(weir_json *j, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    const bool lines = weir_json_peek(j) == WEIR_JSON_ARRAY;
    if (lines)
        weir_json_array(j);
    for (bool more = true; f && more; more = lines) {
        if (lines && !weir_json_item(j))
            break;
        const weir_str s = weir_json_string(j);
        fwrite(s.n ? s.p : "", 1, s.n, f);
    }
    if (!f || fclose(f) != 0)
        weir_json_fail(j, "out of memory");
    if (j->status == WEIR_OK)
        return text;
    free(text);
    return NULL;
}

static void read_cell(weir_nb_cell *c, weir_json *j)
{
    weir_str key;
    size_t n;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "cell_type"))
            c->code = weir_str_eq(weir_json_string(j), "code");
        else if (weir_str_eq(key, "id") && !c->id)
            c->id = kept(j, weir_json_string(j));
        else if (weir_str_eq(key, "source") && !c->source)
            c->source = weir_nb_read_source(j, &n);
        else if (weir_str_eq(key, "metadata") && !c->metadata)
            c->metadata = kept(j, weir_json_raw(j));
        else
            weir_json_skip(j);
    }
    if (!c->id || !c->source || !c->metadata)
        weir_json_fail(j, "a cell without id, source or metadata");
}

static void read_cells(weir_nb *nb, weir_json *j)
{
    weir_json_array(j);
    while (weir_json_item(j)) {
        weir_nb_cell *grown = realloc(nb->cell, ((size_t)nb->n_cells + 1) * sizeof *grown);
        if (!grown) {
            weir_json_fail(j, "out of memory");
            return;
        }
        nb->cell = grown;
        nb->cell[nb->n_cells] = (weir_nb_cell){0};
        read_cell(&nb->cell[nb->n_cells++], j);
    }
}

static weir_status read_template(weir_nb *nb, const char *text, weir_err *err)
{
    weir_json j;
    weir_str key;
    weir_json_init(&j, text, strlen(text), nb->kind->name, err);
    weir_json_object(&j);
    while (weir_json_key(&j, &key))
        if (weir_str_eq(key, "cells"))
            read_cells(nb, &j);
        else
            weir_json_skip(&j);
    weir_json_end(&j);
    WEIR_TRY(weir_json_done(&j));
    for (int i = 0; i < nb->n_cells; i++)
        if (strcmp(nb->cell[i].id, "parameters") == 0)
            nb->parameters = i;
    if (nb->n_cells == 0 || nb->cell[0].code || !nb->parameters)
        return weir_fail(err, WEIR_E_FORMAT, "the template %s has no heading, or no cell `parameters`", nb->kind->name);
    return weir_nb_lines_read(nb, nb->cell[nb->parameters].source, err);
}

int weir_nb_begin(weir_nb *nb, const weir_cli *cli, const weir_nb_kind *kind, const char *path)
{
    weir_err err = {0};
    int i = 0;
    *nb = (weir_nb){.cli = cli, .kind = kind, .path = path};
    while (weir_nb_kind_table[i] != kind)
        i++;
    char *text = join(weir_nb_template_table[i]);
    weir_status status = text ? read_template(nb, text, &err) : weir_fail(&err, WEIR_E_NOMEM, "out of memory");
    free(text);
    return status == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(cli, &err);
}

void weir_nb_free(weir_nb *nb)
{
    for (int i = 0; i < nb->n_cells; i++) {
        free(nb->cell[i].id);
        free(nb->cell[i].source);
        free(nb->cell[i].metadata);
    }
    for (int i = 0; i < nb->n_told; i++) {
        free(nb->told[i].name);
        free(nb->told[i].text);
    }
    free(nb->cell);
    free(nb->told);
    weir_nb_lines_free(nb);
    *nb = (weir_nb){0};
}

char *weir_nb_title(const weir_nb *nb)
{
    const char *text = nb->cell[0].source;
    text += strspn(text, "# ");
    return strndup(text, strcspn(text, "\n"));
}

int weir_nb_check(const weir_nb *nb)
{
    return nb->err.code == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(nb->cli, &nb->err);
}

/* --- what kinds ask */

const weir_cli *weir_nb_cli(const weir_nb *nb)
{
    return nb->cli;
}

const char *weir_nb_path(const weir_nb *nb)
{
    return nb->path;
}

int weir_nb_no_memory(const weir_nb *nb)
{
    return weir_cli_error(nb->cli, "out of memory for a notebook of %s", nb->path);
}

void weir_nb_tell(weir_nb *nb, const char *name, const char *fmt, ...)
{
    weir_nb_told *grown = realloc(nb->told, ((size_t)nb->n_told + 1) * sizeof *grown), *t;
    va_list ap;
    if (!grown) {
        (void)weir_fail(&nb->err, WEIR_E_NOMEM, "out of memory");
        return;
    }
    nb->told = grown;
    t = &nb->told[nb->n_told++];
    *t = (weir_nb_told){.name = strdup(name)};
    va_start(ap, fmt);
    if (vasprintf(&t->text, fmt, ap) < 0)
        t->text = NULL;
    va_end(ap);
    if (!t->name || !t->text)
        (void)weir_fail(&nb->err, WEIR_E_NOMEM, "out of memory");
}

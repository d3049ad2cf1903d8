/* The page: page.html, and in its midst the notebook's cells with the kind's figures in the place of outputs. */
#include <notebook_page.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "markdown.h"
#include "nb.h"
#include "page/chart.h"
#include "page/page.h"

static void put_text(FILE *out, const char *text)
{
    weir_svg_text(out, text, strlen(text), 0, false);
}

/* Text of the template: printable, but for its line breaks. */
static void put_plain(FILE *out, const char *text)
{
    weir_svg_xml(out, text, strlen(text));
}

void weir_nb_say(FILE *out, const char *fmt, ...)
{
    char line[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fputs("<p>", out);
    put_text(out, line);
    fputs("</p>\n", out);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_told(FILE *out, const char *name, const char *text)
{
    fputs("<dt>", out);
    put_text(out, name);
    fputs("</dt><dd>", out);
    put_text(out, text);
    fputs("</dd>\n", out);
}

static void put_about(const weir_nb *nb, FILE *out)
{
    put_told(out, "file", base_name(nb->path));
    put_told(out, "format", nb->kind->format);
    for (int i = 0; i < nb->n_told; i++)
        put_told(out, nb->told[i].name, nb->told[i].text);
    fprintf(out, "<dt>made by</dt><dd>weir notebook-export %s</dd>\n", weir_version());
}

static void put_code_cell(weir_chart_table *t, const char *text)
{
    weir_chart_table_cell(t, NULL);
    fputs("<code>", t->out);
    put_plain(t->out, text);
    fputs("</code>", t->out);
    weir_chart_table_cell_end(t);
}

/* The parameters as a table; the first one is the file, which the head has. */
static void put_parameters(const weir_nb *nb, FILE *out)
{
    static const char *const head[] = {"parameter", "value", "what it is"};
    weir_chart_table t;
    weir_chart_table_begin(&t, out, NULL, head, 3);
    for (int i = 1; i < nb->n_lines; i++) {
        const weir_nb_line *l = &nb->line[i];
        const char *text = l->text + strspn(l->text, "# ");
        char *value = NULL;
        size_t n = 0;
        FILE *f = l->name ? open_memstream(&value, &n) : NULL;
        if (!f)
            continue;
        weir_nb_value_python(&l->value, f);
        const bool ok = fclose(f) == 0;
        put_code_cell(&t, l->name);
        put_code_cell(&t, ok ? value : "");
        weir_chart_table_cell(&t, NULL);
        put_plain(out, text);
        weir_chart_table_cell_end(&t);
        free(value);
    }
    weir_chart_table_end(&t);
}

static const weir_nb_figure *figure_of(const weir_nb *nb, const weir_nb_cell *c)
{
    for (const weir_nb_figure *f = nb->kind->figure; f->cell; f++)
        if (c->code && strcmp(f->cell, c->id) == 0)
            return f;
    return NULL;
}

static int put_code(weir_nb *nb, const weir_nb_cell *c, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_figure *figure = figure_of(nb, c);
    int code = WEIR_EXIT_OK;
    if (figure) {
        fputs("<figure>\n", out);
        code = figure->draw(nb, data, out, numbers);
        fputs("</figure>\n", out);
    }
    fputs("<details><summary>Code</summary><pre><code>", out);
    put_plain(out, c->source);
    fputs("</code></pre></details>\n", out);
    return code;
}

static int put_cells(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    int code = WEIR_EXIT_OK;
    for (int i = 0; i < nb->n_cells && code == WEIR_EXIT_OK; i++) {
        const weir_nb_cell *c = &nb->cell[i];
        fprintf(out, "<section class=\"%s\" id=\"", c->code ? "code" : "prose");
        put_text(out, c->id);
        fputs("\">\n", out);
        if (i == nb->parameters)
            put_parameters(nb, out);
        else if (c->code)
            code = put_code(nb, c, data, out, numbers);
        else /* the page's head has the heading */
            weir_markdown_put(out, i ? c->source : c->source + strcspn(c->source, "\n"));
        fputs("</section>\n", out);
    }
    return code;
}

/* Nothing in it can end its element. */
static void put_numbers(FILE *out, const char *json)
{
    fputs("<script type=\"application/json\" id=\"numbers\">", out);
    for (; *json; json++)
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
    fputs("</script>\n", out);
}

/* A figure whose cell is not there would be missed by nobody. */
static int check_figures(const weir_nb *nb)
{
    for (const weir_nb_figure *f = nb->kind->figure; f->cell; f++) {
        int i = 0;
        while (i < nb->n_cells && figure_of(nb, &nb->cell[i]) != f)
            i++;
        if (i == nb->n_cells)
            return weir_cli_error(nb->cli, "the template %s has no cell %s for this figure", nb->kind->name, f->cell);
    }
    return WEIR_EXIT_OK;
}

static int put_body(weir_nb *nb, void *data, FILE *out)
{
    char *json = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&json, &size);
    weir_jsonw numbers;
    if (!f)
        return weir_cli_error(nb->cli, "out of memory");
    weir_jsonw_init(&numbers, f);
    weir_jsonw_object(&numbers);
    int code = check_figures(nb);
    if (code == WEIR_EXIT_OK)
        code = put_cells(nb, data, out, &numbers);
    while (numbers.depth > 0)
        weir_jsonw_end(&numbers);
    if (fclose(f) != 0 && code == WEIR_EXIT_OK)
        code = weir_cli_error(nb->cli, "out of memory");
    if (code == WEIR_EXIT_OK)
        put_numbers(out, json);
    free(json);
    return code;
}

int weir_nb_put_page(weir_nb *nb, void *data, FILE *out)
{
    const char *const *line = weir_page_lines(out, weir_notebook_page);
    char *title = weir_nb_title(nb);
    if (!title)
        return weir_cli_error(nb->cli, "out of memory");
    fputs("<title>", out);
    put_text(out, title);
    fputs(": ", out);
    put_text(out, base_name(nb->path));
    fputs("</title>\n", out);
    line = weir_page_lines(out, line);
    fputs("<h1>", out);
    put_text(out, title);
    fputs(" <span>", out);
    put_text(out, base_name(nb->path));
    fputs("</span></h1>\n", out);
    line = weir_page_lines(out, line);
    put_about(nb, out);
    line = weir_page_lines(out, line);
    free(title);
    int code = put_body(nb, data, out);
    weir_page_lines(out, line);
    return code == WEIR_EXIT_OK ? weir_nb_check(nb) : code;
}

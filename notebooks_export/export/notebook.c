/* The .ipynb: laid out byte for byte as nbformat lays it out, so that saving it in Jupyter changes what was changed. */
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "marks.h"
#include "nb.h"

/* --- text */

static void put_string(FILE *out, const char *p, size_t n)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_str(&w, p, n);
}

static void put_space(FILE *out, int depth)
{
    fprintf(out, "\n%*s", depth, "");
}

/* An array of strings, a line each. */
static void put_lines(FILE *out, const char *text, int depth)
{
    fputc('[', out);
    for (bool first = true; *text; first = false) {
        size_t n = strcspn(text, "\n");
        n += text[n] != 0;
        fputs(first ? "" : ",", out);
        put_space(out, depth + 1);
        put_string(out, text, n);
        text += n;
        if (!*text)
            put_space(out, depth);
    }
    fputc(']', out);
}

static void put_value(FILE *out, weir_json *j, int depth)
{
    const weir_json_type type = weir_json_peek(j);
    const bool object = type == WEIR_JSON_OBJECT;
    weir_str s;
    int n = 0;
    if (type == WEIR_JSON_STRING) {
        s = weir_json_string(j);
        put_string(out, s.p, s.n);
        return;
    }
    if (!object && type != WEIR_JSON_ARRAY) {
        s = weir_json_raw(j);
        fwrite(s.p, 1, s.n, out);
        return;
    }
    fputc(object ? '{' : '[', out);
    object ? weir_json_object(j) : weir_json_array(j);
    for (; object ? weir_json_key(j, &s) : weir_json_item(j); n++) {
        fputs(n ? "," : "", out);
        put_space(out, depth + 1);
        if (object) {
            put_string(out, s.p, s.n);
            fputs(": ", out);
        }
        put_value(out, j, depth + 1);
    }
    if (n)
        put_space(out, depth);
    fputc(object ? '}' : ']', out);
}

/* --- the first cell */

/* Text as Markdown shows it and does nothing else with it: between more backquotes than it has in a row. */
static void put_code_span(FILE *out, const char *text)
{
    weir_text t = {0};
    size_t run = 0, longest = 0;
    weir_text_printable(&t, text, strlen(text));
    for (size_t i = 0; i < t.n; i++) {
        run = t.p[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    const char *pad = longest || !t.n ? " " : "";
    for (size_t i = 0; i <= longest; i++)
        fputc('`', out);
    fprintf(out, "%s%.*s%s", pad, (int)t.n, t.n ? t.p : "", pad);
    for (size_t i = 0; i <= longest; i++)
        fputc('`', out);
    weir_text_free(&t);
}

static void put_told(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\n- %s: ", name);
    put_code_span(out, text);
}

static void put_title(const weir_nb *nb, FILE *out)
{
    const char *slash = strrchr(nb->path, '/');
    fprintf(out, "%s\n", nb->cell[0].source);
    put_told(out, "file", slash ? slash + 1 : nb->path);
    put_told(out, "format", nb->kind->format);
    for (int i = 0; i < nb->n_told; i++)
        put_told(out, nb->told[i].name, nb->told[i].text);
    fprintf(out,
            "\n\nMade by `weir notebook-export` %s. Cells are meant to be changed and run again; what can be chosen "
            "stands in the first cell of code.",
            weir_version());
}

/* --- cells and their hash */

/* To be freed; NULL: out of memory. */
static char *source_of(const weir_nb *nb, int i, const char *file)
{
    char *text = NULL;
    size_t size;
    FILE *f = i && i != nb->parameters ? NULL : open_memstream(&text, &size);
    if (i && i != nb->parameters)
        return strdup(nb->cell[i].source);
    if (!f)
        return NULL;
    if (i)
        weir_nb_put_parameters(nb, file, f);
    else
        put_title(nb, f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

static void put_cell(FILE *out, const weir_nb_cell *c, const char *source)
{
    weir_json j;
    fprintf(out, "\n  {\n   \"cell_type\": \"%s\",", c->code ? "code" : "markdown");
    fputs(c->code ? "\n   \"execution_count\": null,\n   \"id\": " : "\n   \"id\": ", out);
    put_string(out, c->id, strlen(c->id));
    fputs(",\n   \"metadata\": ", out);
    weir_json_init(&j, c->metadata, strlen(c->metadata), NULL, NULL);
    put_value(out, &j, 3);
    (void)weir_json_done(&j);
    fputs(c->code ? ",\n   \"outputs\": [],\n   \"source\": " : ",\n   \"source\": ", out);
    put_lines(out, source, 3);
    fputs("\n  }", out);
}

bool weir_nb_put_notebook(const weir_nb *nb, const char *file, FILE *out)
{
    char *hashed = NULL, hex[65];
    size_t size = 0;
    FILE *h = open_memstream(&hashed, &size);
    bool ok = h != NULL;
    fputs("{\n \"cells\": [", out);
    for (int i = 0; ok && i < nb->n_cells; i++) {
        char *source = source_of(nb, i, file);
        ok = source != NULL;
        if (ok) {
            fputs(i ? "," : "", out);
            put_cell(out, &nb->cell[i], source);
            weir_nb_put_hashed(h, nb->cell[i].code ? "code" : "markdown", source, strlen(source));
        }
        free(source);
    }
    ok = h && fclose(h) == 0 && ok;
    if (ok) {
        weir_sha256_bytes(hashed, size, hex);
        fprintf(out,
                "\n ],\n \"metadata\": {\n  \"kernelspec\": {\n   \"display_name\": \"Python 3\",\n   \"language\": "
                "\"python\",\n   \"name\": \"python3\"\n  },\n  \"language_info\": {\n   \"name\": \"python\"\n  },\n"
                "  \"weir\": {\n   \"cells_sha256\": \"%s\",\n   \"template\": \"%s\",\n   \"version\": \"%s\"\n  }\n"
                " },\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n",
                hex, nb->kind->name, weir_version());
    }
    free(hashed);
    return ok;
}

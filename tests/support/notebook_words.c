/* support/notebook_words.c: parts of notebook-export alone, for tests/cli/test_notebook_words.py.
 *   notebook_words markdown        Markdown from standard input as HTML
 *   notebook_words values          lines "WAS<tab>TYPED": what -p takes for a parameter whose template says WAS, as Python
 *                                  reads it; or "!" and what is wrong
 *   notebook_words from OUT FILE   how a notebook at OUT names FILE */
#include <stdlib.h>
#include <string.h>

#include "export/markdown.h"
#include "export/place.h"
#include "export/value.h"

static void show(char *line)
{
    weir_nb_value was, is;
    weir_err err = {0};
    size_t used;
    char *typed = strchr(line, '\t');
    *typed++ = 0;
    if (weir_nb_value_read(&was, line, &used, &err) != WEIR_OK) {
        printf("template: %s\n", err.msg);
        return;
    }
    if (weir_nb_value_typed(&is, &was, typed, &err) == WEIR_OK) {
        weir_nb_value_python(&is, stdout);
        putchar('\n');
        weir_nb_value_free(&is);
    } else {
        printf("! %s\n", err.msg);
    }
    weir_nb_value_free(&was);
}

static void show_values(void)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        line[strcspn(line, "\n")] = 0;
        show(line);
    }
    free(line);
}

static void show_markdown(void)
{
    char *text = NULL;
    size_t room = 0;
    if (getdelim(&text, &room, 0, stdin) > 0)
        weir_markdown_put(stdout, text);
    free(text);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "markdown") == 0) {
        show_markdown();
    } else if (argc == 2 && strcmp(argv[1], "values") == 0) {
        show_values();
    } else if (argc == 4) {
        char *name = weir_nb_file_from(argv[2], argv[3]);
        puts(name ? name : "");
        free(name);
    }
    return 0;
}

/* cli/help.c: the parts of opt.h that print tables of options and find the nearest name. */
#include <stdlib.h>
#include <string.h>

#include "opt.h"

enum { HELP_COLUMN = 26, HELP_WIDTH = 80 };

/* Prints one line's worth of text from the current column on; returns what is left. */
static const char *print_line(FILE *out, int column, const char *text)
{
    while (*text && *text != '\n') {
        size_t gap = strspn(text, " ");
        size_t word = strcspn(text + gap, " \n");
        if (column + (int)(gap + word) > HELP_WIDTH && column > 0)
            return text + gap;
        fwrite(text, 1, gap + word, out);
        column += (int)(gap + word);
        text += gap + word;
    }
    return *text == '\n' ? text + 1 : text;
}

void weir_print_wrapped(FILE *out, int indent, int column, const char *text)
{
    do {
        if (*text != '\n' && *text)
            fprintf(out, "%*s", column < indent ? indent - column : 0, "");
        text = print_line(out, column < indent ? indent : column, text);
        fputc('\n', out);
        column = 0;
    } while (*text);
}

static void print_option(FILE *out, const weir_opt *o)
{
    char left[128], text[600];
    int n = snprintf(left, sizeof left, "  %c%c%c --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                     o->letter ? ',' : ' ', o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    fputs(left, out);
    if (n + 2 > HELP_COLUMN) {
        fputc('\n', out);
        n = 0;
    }
    int used = snprintf(text, sizeof text, "%s", o->help);
    if (o->alias && used < (int)sizeof text)
        used += snprintf(text + used, sizeof text - (size_t)used, "; also --%s", o->alias);
    if (o->type == WEIR_OPT_LIST && used < (int)sizeof text)
        used += snprintf(text + used, sizeof text - (size_t)used, " (repeatable)");
    if (o->def && used < (int)sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, " [%s]", o->def);
    weir_print_wrapped(out, HELP_COLUMN, n, text);
}

void weir_opt_print(const weir_opt_use *use, FILE *out)
{
    for (; use->group; use++) {
        fprintf(out, "\n%s\n", use->group->title);
        for (int i = 0; i < use->group->n; i++)
            print_option(out, &use->group->opt[i]);
    }
}

bool weir_opt_rule_lists(const char *names, const char *name)
{
    for (size_t n; n = strcspn(names, "|"), n; names += n + (names[n] != 0))
        if (strlen(name) == n && memcmp(names, name, n) == 0)
            return true;
    return false;
}

void weir_opt_rule_put(FILE *out, const char *names, const char *between)
{
    for (size_t n; n = strcspn(names, "|"), n; names += n + (names[n] != 0))
        fprintf(out, "--%.*s%s", (int)n, names, names[n] ? between : "");
}

/* Edits (insert, delete, replace) that turn a into b. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    size_t na = strlen(a), nb = strlen(b);
    if (na > LONGEST || nb > LONGEST)
        return LONGEST;
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[nb];
}

const char *weir_nearest(const char *name, const char *const *names, int n)
{
    const char *near = NULL;
    /* Further away than this is another word, not a slip; of a short name one letter in two would be. */
    size_t least = strlen(name) <= 4 ? 2 : strlen(name) / 3 + 2;
    for (int i = 0; i < n; i++) {
        size_t d = distance(name, names[i]);
        /* A beginning of a name counts as a near miss: --pos for --positions. */
        if (strlen(name) >= 3 && strncmp(name, names[i], strlen(name)) == 0)
            d = 1;
        if (d < least) {
            least = d;
            near = names[i];
        }
    }
    return near;
}

/* The checkpoint against its configuration, line by line: what is stored, what of it is no parameter, and what is left.
 */
#include <string.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "count.h"

static void put_surplus(FILE *out, int64_t v)
{
    char n[32];
    char signed_text[40];
    snprintf(signed_text, sizeof signed_text, "%s%s", v > 0 ? "+ " : v < 0 ? "- " : "", weir_commas(v < 0 ? -v : v, n));
    fprintf(out, "  %24s  ", signed_text);
}

static void put_line(FILE *out, const weir_ledger_line *l)
{
    char n[32];
    put_surplus(out, l->surplus);
    fputs(l->what, out);
    if (l->params) {
        fprintf(out, ": %s elements", weir_commas(l->stored, n));
        fprintf(out, " are %s parameters", weir_commas(l->params, n));
    }
    if (l->tensors == 1)
        fputs(" (", out);
    else if (l->tensors)
        fprintf(out, " (%s tensors: ", weir_commas(l->tensors, n));
    if (l->example)
        weir_put_printable(out, l->example, 0);
    fputs(l->tensors > 1 ? ", ...)\n" : l->tensors ? ")\n" : "\n", out);
}

static void put_types(FILE *out, const weir_ledger *l)
{
    char n[32];
    const char *between = "";
    for (int t = 0; t <= WEIR_DTYPE_COUNT; t++)
        if (l->of_type[t]) {
            fprintf(out, "%s%s in %s", between, weir_commas(l->of_type[t], n),
                    t < WEIR_DTYPE_COUNT ? weir_dtype_name((weir_dtype)t) : "other types");
            between = ", ";
        }
}

void weir_count_put_file(const weir_counted *m, FILE *out)
{
    const weir_ledger *l = m->file;
    char n[32];
    fprintf(out, "\n  the file: %s tensors", weir_commas(l->tensors, n));
    fprintf(out, ", %s bytes; ", weir_commas(l->bytes, n));
    put_types(out, l);
    fprintf(out, "\n  %24s  parameters by the configuration\n", weir_commas(l->expected, n));
    for (int i = 0; i < l->n_lines; i++)
        if (l->line[i].surplus)
            put_line(out, &l->line[i]);
    fprintf(out, "  %24s  elements in the file%s\n", weir_commas(l->stored, n),
            l->stored == l->expected ? ": the same" : "");
}

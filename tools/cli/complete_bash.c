#include <string.h>

#include <complete_bash.h> /* complete.bash as lines */

#include "complete.h"
#include "manual.h"

/* Between single quotes of the shell. */
static void put_quoted(FILE *out, const char *text)
{
    for (; *text; text++)
        *text == '\'' ? fputs("'\\''", out) : fputc(*text, out);
}

/* A row: names;kind;words;what it excludes. */
static void put_row(FILE *out, const weir_tool *t, const weir_opt *o)
{
    char against[1024];
    weir_offer offer = weir_offer_of(o);
    weir_offer_against(against, sizeof against, t, o);
    fprintf(out, "'--%s", o->name);
    if (o->alias)
        fprintf(out, " --%s", o->alias);
    if (o->letter)
        fprintf(out, " -%c", o->letter);
    fprintf(out, ";%s;", weir_offer_name(offer.kind));
    put_quoted(out, offer.words);
    fprintf(out, ";%s'\n", against);
}

static void put_tool(FILE *out, const weir_tool *parent, const weir_tool *t)
{
    fprintf(out, "'%s%s%s')\n", parent ? parent->name : "", parent ? " " : "", t->name);
    if (t->commands) {
        fputs("commands='", out);
        for (const weir_tool *const *c = t->commands; *c; c++)
            fprintf(out, "%s%s", c == t->commands ? "" : " ", (*c)->name);
        fputs("'\n;;\n", out);
        return;
    }
    weir_offer offer = weir_offer_operands(t);
    fprintf(out, "operands='%s;", weir_offer_name(offer.kind));
    put_quoted(out, offer.words);
    fputs("'\nrows=(\n", out);
    for (const weir_opt_use *use = t->options; use->group; use++)
        for (int i = 0; i < use->group->n; i++)
            put_row(out, t, &use->group->opt[i]);
    fputs("'--help -h;flag;;--help -h'\n)\n;;\n", out);
}

void weir_complete_bash(FILE *out)
{
    fprintf(out, "# bash completion for weir %s; made by `weir completion bash`\n__weir_tools='", weir_version());
    for (const weir_tool *const *t = weir_tool_table; *t; t++)
        fprintf(out, "%s%s", t == weir_tool_table ? "" : " ", (*t)->name);
    fputs("'\n__weir_hooks='", out);
    for (int i = 0; i < weir_hook_class_count(); i++) {
        const weir_hook_class *c = weir_hook_class_at(i);
        fprintf(out, "%s%s%s", i ? " " : "", c->name, c->args && *c->args ? ":" : "");
    }
    fputs(
        "'\n# Of a tool: its commands; or its operands, and a row for each option: names;kind;words;what it excludes\n"
        "__weir_table() {\ncase $1 in\n",
        out);
    weir_offer_tools(out, put_tool);
    fputs("esac\n}\n", out);
    for (int i = 0; weir_bash_lines[i]; i++)
        fputs(weir_bash_lines[i], out);
    fputs("complete -F _weir weir", out);
    for (const char *const *n = weir_bare_names; *n; n++)
        fprintf(out, " %s", *n);
    fputs("\n", out);
}

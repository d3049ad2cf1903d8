#include <string.h>

#include <complete_zsh.h> /* complete.zsh as lines */

#include "attach.h"
#include "complete.h"
#include "manual.h"

/* Between single quotes of the shell, with a backslash before each of `signs`. */
static void put_quoted(FILE *out, const char *text, size_t n, const char *signs)
{
    for (const char *end = text + n; text < end; text++) {
        if (*text == '\'') {
            fputs("'\\''", out);
            continue;
        }
        if (*text == '\\' || strchr(signs, *text))
            fputc('\\', out);
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

/* Bytes of a help text's first sentence: what stands beside an option in a list. */
static size_t first_sentence(const char *text)
{
    for (const char *p = text; (p = strpbrk(p, ".\n")); p++)
        if (*p == '\n' || (p[1] == ' ' && p[2] >= 'A' && p[2] <= 'Z'))
            return (size_t)(p - text);
    return strlen(text);
}

static void put_endings(FILE *out, const char *words)
{
    fputs("_files", out);
    if (!*words)
        return;
    fputs(" -g \"*.(", out);
    for (; *words; words++)
        fputc(*words == ' ' ? '|' : *words, out);
    fputs(")(-.)\"", out);
}

/* The action of an _arguments spec. */
static void put_action(FILE *out, const weir_offer *offer)
{
    switch (offer->kind) {
    case WEIR_OFFER_WORDS:
        fputc('(', out);
        put_quoted(out, offer->words, strlen(offer->words), ":");
        fputc(')', out);
        break;
    case WEIR_OFFER_LIST:
        fprintf(out, "_sequence compadd - %s", offer->words);
        break;
    case WEIR_OFFER_FILE:
        put_endings(out, offer->words);
        break;
    case WEIR_OFFER_DIR:
        fputs("_files -/", out);
        break;
    case WEIR_OFFER_POINTS:
        fputs("_weir_points", out);
        break;
    case WEIR_OFFER_SELECTOR:
        fprintf(out, "_weir_selector %s", offer->words);
        break;
    case WEIR_OFFER_HOOK:
        fputs("_weir_hook", out);
        break;
    case WEIR_OFFER_FLAG:
    case WEIR_OFFER_TEXT:
        fputc(' ', out);
        break;
    }
}

/* {-l+,--layer=,--layers=}: a value may stand in the same word or in the next. */
static void put_names(FILE *out, const weir_opt *o)
{
    bool value = o->type != WEIR_OPT_FLAG;
    int n = 1 + (o->letter != 0) + (o->alias != NULL);
    if (n > 1)
        fputc('{', out);
    if (o->letter)
        fprintf(out, "-%c%s,", o->letter, value ? "+" : "");
    fprintf(out, "--%s%s", o->name, value ? "=" : "");
    if (o->alias)
        fprintf(out, ",--%s%s", o->alias, value ? "=" : "");
    if (n > 1)
        fputc('}', out);
}

static void put_spec(FILE *out, const weir_tool *t, const weir_opt *o)
{
    char against[1024];
    weir_offer offer = weir_offer_of(o);
    weir_offer_against(against, sizeof against, t, o);
    fputc('\'', out);
    if (*against)
        fprintf(out, "(%s)", against);
    if (o->type == WEIR_OPT_LIST)
        fputc('*', out);
    fputc('\'', out);
    put_names(out, o);
    fputs("'[", out);
    put_quoted(out, o->help, first_sentence(o->help), "[]");
    fputc(']', out);
    if (o->arg) {
        fputc(':', out);
        put_quoted(out, o->arg, strlen(o->arg), ":");
        fputc(':', out);
        put_action(out, &offer);
    }
    fputs("'\n", out);
}

/* 'name:summary' */
static void put_described(FILE *out, const char *name, const char *text)
{
    fprintf(out, "'%s:", name);
    put_quoted(out, text, strlen(text), "");
    fputs("'\n", out);
}

static void put_tool(FILE *out, const weir_tool *parent, const weir_tool *t)
{
    fprintf(out, "('%s%s%s')\n", parent ? parent->name : "", parent ? " " : "", t->name);
    if (t->commands) {
        fputs("commands=(\n", out);
        for (const weir_tool *const *c = t->commands; *c; c++)
            put_described(out, (*c)->name, (*c)->summary);
        fputs(")\n;;\n", out);
        return;
    }
    weir_offer offer = weir_offer_operands(t);
    fputs("specs=(\n", out);
    for (const weir_opt_use *use = t->options; use->group; use++)
        for (int i = 0; i < use->group->n; i++)
            put_spec(out, t, &use->group->opt[i]);
    fputs("'(- *)'{-h,--help}'[print the options, and run nothing]'\n", out);
    if (*t->operands) {
        fputs("'*:", out);
        put_quoted(out, t->operands, strlen(t->operands), ":");
        fputc(':', out);
        put_action(out, &offer);
        fputs("'\n", out);
    }
    fputs(")\n;;\n", out);
}

static void put_hooks(FILE *out)
{
    fputs("_weir_hooks=(\n", out);
    for (int i = 0; i < weir_hook_class_count(); i++)
        put_described(out, weir_hook_class_at(i)->name, weir_hook_class_at(i)->help);
    fputs(")\n", out);
}

void weir_complete_zsh(FILE *out)
{
    fputs("#compdef weir", out);
    for (const char *const *n = weir_bare_names; *n; n++)
        fprintf(out, " %s", *n);
    fprintf(out, "\n# zsh completion for weir %s; made by `weir completion zsh`\n", weir_version());
    fputs("typeset -ga _weir_names _weir_tools _weir_hooks\n_weir_names=(weir", out);
    for (const char *const *n = weir_bare_names; *n; n++)
        fprintf(out, " %s", *n);
    fputs(")\n_weir_tools=(\n", out);
    for (const weir_tool *const *t = weir_tool_table; *t; t++)
        put_described(out, (*t)->name, (*t)->summary);
    fputs(")\n", out);
    put_hooks(out);
    fputs("# Of a tool: its commands, or what _arguments reads.\n_weir_table() {\ncase $1 in\n", out);
    weir_offer_tools(out, put_tool);
    fputs("esac\n}\n", out);
    for (int i = 0; weir_zsh_lines[i]; i++)
        fputs(weir_zsh_lines[i], out);
}

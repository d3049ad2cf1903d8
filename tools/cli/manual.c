#include "manual.h"

#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "roff.h"

/* Of the version, not of the build: man(7) wants a date, and pages must not differ from build to build. It changes with
 * WEIR_VERSION. */
static const char page_date[] = "2026-11-30";

bool weir_is_bare(const char *name)
{
    for (const char *const *n = weir_bare_names; *n; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return false;
}

static void put_head(FILE *out, const char *name, const char *summary)
{
    fputs(".\\\" Made by `weir help \\-\\-man` from the tables of options.\n.TH ", out);
    for (const char *c = name; *c; c++)
        *c == '-' ? fputs("\\-", out) : fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, out);
    /* Words are not broken, and lines not spread: what is searched or copied stands there in one piece. */
    fprintf(out, " 1 %s \"weir %s\" \"weir\"\n.nh\n.ad l\n", page_date, weir_version());
    fputs(".SH NAME\n", out);
    weir_roff_word(out, 'R', name);
    fputs(" \\- ", out);
    weir_roff_word(out, 'R', summary);
    fputs("\n", out);
}

/* --- the parts of a tool's page */

/* "Not with --a and --b": rules that bind this option, a kind at a time. */
static void put_rules(FILE *rule_text, const weir_opt_rule *rule, const char *name)
{
    int n = 0;
    for (const weir_opt_rule *r = rule; r && r->name; r++) {
        const char *other = weir_opt_rule_lists(r->name, name)                                    ? r->other
                            : r->kind == WEIR_OPT_EXCLUDES && weir_opt_rule_lists(r->other, name) ? r->name
                                                                                                  : NULL;
        if (!other)
            continue;
        if (r->kind == WEIR_OPT_EXCLUDES) {
            fputs(n++ ? ", " : " Not with ", rule_text);
            weir_opt_rule_put(rule_text, other, ", ");
        }
    }
    fputs(n ? "." : "", rule_text);
    for (const weir_opt_rule *r = rule; r && r->name; r++)
        if (r->kind == WEIR_OPT_NEEDS && weir_opt_rule_lists(r->name, name)) {
            fputs(" Only with ", rule_text);
            weir_opt_rule_put(rule_text, r->other, " or ");
            fputs(".", rule_text);
        }
}

/* Does the text end as a sentence does? */
static bool is_closed(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && strchr(".?!", text[n - 1]) != NULL;
}

/* What there is to say of an option, as sentences. To be freed; NULL: out of memory. */
static char *option_text(const weir_opt *o, const weir_opt_rule *rules)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fprintf(f, "%s%s", o->help, is_closed(o->help) ? "" : ".");
    if (o->type == WEIR_OPT_CHOICE) {
        fputs(" One of ", f);
        for (const char *c = o->arg; *c; c++)
            *c == '|' ? fputs(", ", f) : fputc(*c, f);
        fputs(".", f);
    }
    if (o->type == WEIR_OPT_LIST)
        fputs(" May be repeated.", f);
    if (o->def)
        fprintf(f, " Default: %s.", o->def);
    put_rules(f, rules, o->name);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void put_long(FILE *out, const char *name)
{
    fputs("\\fB\\-\\-", out);
    for (; *name; name++)
        *name == '-' ? fputs("\\-", out) : fputc(*name, out);
    fputs("\\fP", out);
}

static void put_option(FILE *out, const weir_opt *o, const weir_opt_rule *rules)
{
    fputs(".TP\n", out);
    if (o->letter)
        fprintf(out, "\\fB\\-%c\\fP, ", o->letter);
    put_long(out, o->name);
    if (o->alias) {
        fputs(", ", out);
        put_long(out, o->alias);
    }
    if (o->arg) {
        fputc(' ', out);
        weir_roff_word(out, 'I', o->arg);
    }
    fputc('\n', out);
    char *text = option_text(o, rules);
    weir_roff_text(out, text ? text : o->help);
    free(text);
}

static void put_options(FILE *out, const weir_tool *t)
{
    fputs(".SH OPTIONS\n", out);
    for (const weir_opt_use *use = t->options; use->group; use++) {
        fputs(".SS \"", out);
        weir_roff_word(out, 'R', use->group->title);
        fputs("\"\n", out);
        for (int i = 0; i < use->group->n; i++)
            put_option(out, &use->group->opt[i], t->rules);
    }
    fputs(".TP\n\\fB\\-h\\fP, \\fB\\-\\-help\\fP\nPrint the options, and run nothing.\n", out);
}

/* What a term of a list is: in bold, and then in italics what belongs to it. */
static void put_term(FILE *out, const char *term, const char *more, const char *text)
{
    fputs(".TP\n", out);
    weir_roff_word(out, 'B', term);
    if (*more)
        weir_roff_word(out, 'I', more);
    fputc('\n', out);
    weir_roff_text(out, text);
}

static void put_hooks(FILE *out)
{
    fputs(".SH BUILT\\-IN HOOKS\nThose that \\fB\\-\\-hook\\fP takes.\n", out);
    for (int i = 0; i < weir_hook_class_count(); i++) {
        const weir_hook_class *c = weir_hook_class_at(i);
        bool args = c->args && *c->args;
        fputs(".TP\n", out);
        weir_roff_word(out, 'B', c->name);
        if (args) {
            fputc(':', out);
            weir_roff_word(out, 'I', c->args);
        }
        fputc('\n', out);
        weir_roff_text(out, c->help);
    }
}

/* What a tool adds to its --help: hooks from their own table, anything else as --help prints it. */
static void put_more(FILE *out, const weir_tool *t)
{
    if (t->more_help == weir_attach_help) {
        put_hooks(out);
        return;
    }
    char *text = NULL;
    size_t size;
    FILE *f = t->more_help ? open_memstream(&text, &size) : NULL;
    if (!f)
        return;
    t->more_help(f);
    if (fclose(f) == 0) {
        fputs(".SH TABLES\n", out);
        weir_roff_literal(out, text + strspn(text, "\n"));
    }
    free(text);
}

static void put_exit_status(FILE *out)
{
    fputs(".SH EXIT STATUS\n", out);
    put_term(out, "0", "", "Done.");
    put_term(out, "1", "", "Failed; a line on standard error says what, where, and what to do.");
    put_term(out, "2", "", "The command line is wrong; nothing was run.");
    put_term(out, "3", "", "A condition that was checked does not hold; results are written all the same.");
}

static bool has_option(const weir_tool *t, const char *names)
{
    for (const weir_opt_use *use = t->options; use && use->group; use++)
        for (int i = 0; i < use->group->n; i++)
            if (weir_opt_rule_lists(names, use->group->opt[i].name))
                return true;
    return false;
}

/* What the program reads of the environment, and the options by which one tells a tool that does. */
static const struct variable {
    const char *name, *options, *help;
} variables[] = {
    {"WEIR_MODEL", "model", "The model where --model is not given."},
    {"WEIR_BROOK", "model", "The directory of the model brook, where it lies elsewhere than weir expects it."},
    {"WEIR_KERNEL", "kernel",
     "Instruction set (ref, avx2, avx512) where --kernel is not given. The results do not depend on it."},
    {"NO_COLOR", "color", "Not empty: no colours, unless --color asks for them."},
    {"TERM", "color", "With COLORTERM, how many colours the terminal shows."},
    {"LC_ALL", "color", "With LC_CTYPE and LANG: without UTF-8 in the first that is set, pictures are plain ASCII."},
    {"TMPDIR", "spool|save", "Where temporary files go; without it /tmp."},
    {"PATH", "execute", "Where Jupyter is looked for."},
    {"HDF5_USE_FILE_LOCKING", "dump|resume", "FALSE: files are not locked, for disks on which locks do not work."},
    {"GOMP_SPINCOUNT", "threads",
     "How long idle threads spin. Without it and OMP_WAIT_POLICY, weir sets 2000, which is best where others use the "
     "processors too."},
    {"OMP_WAIT_POLICY", "threads", "Read by the OpenMP library. The number of threads is that of --threads alone."},
};

/* t: NULL for the whole program. */
static void put_environment(FILE *out, const weir_tool *t)
{
    bool begun = false;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (t && !has_option(t, variables[i].options) && !strstr(t->about, variables[i].name))
            continue;
        if (!begun)
            fputs(".SH ENVIRONMENT\n", out);
        begun = true;
        put_term(out, variables[i].name, "", variables[i].help);
    }
}

static void put_files(FILE *out, const weir_tool *t)
{
    bool part = has_option(t, "resume"), model = has_option(t, "model");
    if (!part && !model)
        return;
    fputs(".SH FILES\n", out);
    if (model)
        put_term(out, "share/weir/brook", "",
                 "Under the prefix of the installation: the model brook and its sentences.");
    if (part)
        put_term(out, "FILE", ".part",
                 "What a run has of FILE until all is there. One that was interrupted leaves it for --resume.");
}

/* --- pages */

/* One reference of SEE ALSO or of a list: name(1). */
static void put_page(FILE *out, const char *parent, const char *name)
{
    fputs("\\fBweir", out);
    for (int i = 0; i < 2; i++)
        if (i ? name : parent) {
            fputs("\\-", out);
            weir_roff_word(out, 'R', i ? name : parent);
        }
    fputs("\\fP(1)", out);
}

static void put_list(FILE *out, const char *title, const char *parent, const weir_tool *const *table)
{
    fprintf(out, ".SH %s\n", title);
    for (; *table; table++) {
        fputs(".TP\n", out);
        put_page(out, parent, (*table)->name);
        fputc('\n', out);
        weir_roff_text(out, (*table)->summary);
    }
}

static void put_synopsis(FILE *out, const weir_tool *parent, const weir_tool *t)
{
    fputs(".SH SYNOPSIS\n\\fBweir ", out);
    if (parent) {
        weir_roff_word(out, 'R', parent->name);
        fputc(' ', out);
    }
    weir_roff_word(out, 'R', t->name);
    fputs(t->commands ? "\\fP" : "\\fP [\\fIoptions\\fP]", out);
    if (*t->operands) {
        fputc(' ', out);
        weir_roff_word(out, 'I', t->operands);
    }
    fputc('\n', out);
}

void weir_manual_tool(FILE *out, const weir_tool *parent, const weir_tool *t)
{
    char name[128];
    snprintf(name, sizeof name, "weir-%s%s%s", parent ? parent->name : "", parent ? "-" : "", t->name);
    put_head(out, name, t->summary);
    put_synopsis(out, parent, t);
    fputs(".SH DESCRIPTION\n", out);
    weir_roff_text(out, t->about);
    const char *bare = parent ? parent->name : t->name;
    if (weir_is_bare(bare)) {
        fputs(".PP\nIt is installed as \\fB", out);
        weir_roff_word(out, 'R', bare);
        if (parent) {
            fputc(' ', out);
            weir_roff_word(out, 'R', t->name);
        }
        fputs("\\fP too.\n", out);
    }
    if (t->commands)
        put_list(out, "COMMANDS", t->name, t->commands);
    else
        put_options(out, t);
    put_more(out, t);
    fputs(".SH EXAMPLE\n", out);
    weir_roff_literal(out, t->example);
    put_exit_status(out);
    if (!t->commands) {
        put_environment(out, t);
        put_files(out, t);
    }
    fputs(".SH SEE ALSO\n", out);
    put_page(out, NULL, NULL);
    if (parent) {
        fputs(",\n", out);
        put_page(out, NULL, parent->name);
        for (const weir_tool *const *c = parent->commands; *c; c++)
            if (*c != t) {
                fputs(",\n", out);
                put_page(out, parent->name, (*c)->name);
            }
    }
    fputc('\n', out);
}

void weir_manual_program(FILE *out)
{
    put_head(out, "weir", "measures and steers the residual stream of a transformer");
    fputs(".SH SYNOPSIS\n"
          "\\fBweir\\fP \\fITOOL\\fP [\\fIoptions\\fP] ...\n.br\n"
          "\\fBweir help\\fP [\\fB\\-\\-man\\fP] [\\fITOOL\\fP [\\fICOMMAND\\fP]]\n.br\n"
          "\\fBweir \\-\\-version\\fP\n"
          ".SH DESCRIPTION\n",
          out);
    weir_roff_text(out,
                   "weir runs language models on a CPU with a hook at every place where something is read from the "
                   "residual stream or added to it, records what flows there to HDF5, and changes it. It needs no "
                   "network, and its numbers are the same bits on every run.\n\n"
                   "Each tool has a page of its own; --help behind its name says the same in short. Options may stand "
                   "before, between and behind what else a tool is given; -- ends them. Results go to standard output, "
                   "talk to standard error.");
    fputs(".PP\nThese are installed as commands of their own too:", out);
    for (const char *const *n = weir_bare_names; *n; n++) {
        fputs(n == weir_bare_names ? "\n\\fB" : ",\n\\fB", out);
        weir_roff_word(out, 'R', *n);
        fputs("\\fP", out);
    }
    fputs(".\n", out);
    put_list(out, "TOOLS", NULL, weir_tool_table);
    fputs(".SH OPTIONS\n", out);
    put_term(out, "help --man", "", "Print the page of a tool, or this one, as roff for man(1).");
    put_term(out, "-h, --help", "", "List the tools; behind a tool's name, its options.");
    put_term(out, "--version", "", "Print the version.");
    put_exit_status(out);
    put_environment(out, NULL);
    fputs(".SH FILES\n", out);
    put_term(out, "share/weir/brook", "", "Under the prefix of the installation: the model brook and its sentences.");
    put_term(out, "share/bash-completion/completions, share/zsh/site-functions", "",
             "Completion; `weir completion bash` and `weir completion zsh` print it.");
    fputs(".SH SEE ALSO\n", out);
    for (const weir_tool *const *t = weir_tool_table; *t; t++) {
        put_page(out, NULL, (*t)->name);
        fputs(t[1] ? ",\n" : "\n", out);
    }
}

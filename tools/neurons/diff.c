#include "diff.h"

#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "compare.h"
#include "sections.h"

enum { NAMED = 8 }; /* neurons that are named below a table's line */

typedef struct diff {
    const weir_cli *cli;
    const char *const *path;
    const weir_neurons *s[2];
    weir_table_diff *table;  /* [n] hook points of both */
    int n, only[2];          /* hook points of one alone */
    int64_t neurons, differ; /* that both have; of them, that are not the same */
    int said;                /* what the results say differently of themselves */
    weir_text text;
    weir_jsonw w;
} diff;

/* Name of a hook point of s, as its group in a result file. */
static const char *name_of(char buf[256], const weir_neurons *s, int t)
{
    const weir_neurons_table *table = weir_neurons_table_at(s, t);
    bool with_site = strcmp(table->site, "gate-act") == 0;
    for (int i = 0; i < t; i++)
        with_site = with_site || strcmp(weir_neurons_table_at(s, i)->hook, table->hook) == 0;
    snprintf(buf, 256, "%s%s%s", table->hook, with_site ? "@" : "", with_site ? table->site : "");
    return buf;
}

/* --- comparing */

static void count_said(void *user, const char *what, const char *a, const char *b)
{
    (void)what;
    (void)a;
    (void)b;
    ++*(int *)user;
}

/* The table of this hook point and site, or -1. */
static int find(const weir_neurons *s, const weir_neurons_table *t)
{
    for (int i = 0; i < weir_neurons_n_tables(s); i++) {
        const weir_neurons_table *other = weir_neurons_table_at(s, i);
        if (strcmp(other->hook, t->hook) == 0 && strcmp(other->site, t->site) == 0)
            return i;
    }
    return -1;
}

static weir_status compare(diff *d, weir_err *err)
{
    d->table = calloc((size_t)weir_neurons_n_tables(d->s[0]) + 1, sizeof *d->table);
    if (!d->table)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    weir_results_said(d->s, count_said, &d->said);
    for (int t = 0; t < weir_neurons_n_tables(d->s[1]); t++)
        d->only[1] += find(d->s[0], weir_neurons_table_at(d->s[1], t)) < 0;
    for (int t = 0; t < weir_neurons_n_tables(d->s[0]); t++) {
        int other = find(d->s[1], weir_neurons_table_at(d->s[0], t));
        if (other < 0) {
            d->only[0]++;
            continue;
        }
        weir_table_diff *both = &d->table[d->n++];
        *both = (weir_table_diff){.table = {t, other}};
        WEIR_TRY(weir_compare_tables(d->s, both, err));
        d->neurons += both->n;
        d->differ += both->any;
    }
    return WEIR_OK;
}

static bool same_neurons(const weir_table_diff *t)
{
    return t->any == 0 && t->only[0] == 0 && t->only[1] == 0;
}

static bool same(const diff *d)
{
    bool same = d->said == 0 && d->only[0] == 0 && d->only[1] == 0;
    for (int i = 0; i < d->n; i++)
        same = same && same_neurons(&d->table[i]);
    return same;
}

/* --- text */

static void print_said(void *user, const char *what, const char *a, const char *b)
{
    diff *d = user;
    printf("%s: ", what);
    weir_put_safe(stdout, &d->text, *a ? a : "none");
    fputs(" | ", stdout);
    weir_put_safe(stdout, &d->text, *b ? b : "none");
    putchar('\n');
}

static void print_only(diff *d, int k)
{
    for (int t = 0; t < weir_neurons_n_tables(d->s[k]); t++) {
        const weir_neurons_table *table = weir_neurons_table_at(d->s[k], t);
        if (find(d->s[1 - k], table) >= 0)
            continue;
        weir_put_safe(stdout, &d->text, table->hook);
        fputs(" (", stdout);
        weir_put_safe(stdout, &d->text, table->site);
        printf(") is in %s alone\n", d->path[k]);
    }
}

/* Which neurons of a table differ: the first ones by number. */
static void print_neurons(const weir_table_diff *t)
{
    int64_t shown = 0;
    for (int64_t i = 0; i < t->n && shown < NAMED; i++)
        if (t->differ[i])
            printf("%sN%lld", shown++ ? ", " : "  differ: ", (long long)t->unit[i]);
    if (t->any > shown)
        printf(", and %lld more", (long long)(t->any - shown));
    putchar('\n');
}

static void print_table(diff *d, const weir_table_diff *t, int wide)
{
    char name[256];
    weir_put_safe(stdout, &d->text, name_of(name, d->s[0], t->table[0]));
    printf("%*s %8lld", wide - (int)d->text.n, "", (long long)t->n);
    for (int aspect = 0; aspect < WEIR_ASPECTS; aspect++)
        printf(" %9lld", (long long)t->count[aspect]);
    if (t->largest_in)
        printf("  %.4g (%s of N%lld)", t->largest, t->largest_in, (long long)t->largest_unit);
    putchar('\n');
    if (t->any)
        print_neurons(t);
    for (int k = 0; k < 2; k++)
        if (t->only[k])
            printf("  %lld more in %s alone\n", (long long)t->only[k], d->path[k]);
}

static void print_tables(diff *d)
{
    char name[256];
    int wide = 4;
    for (int i = 0; i < d->n; i++) {
        int length = (int)strlen(name_of(name, d->s[0], d->table[i].table[0]));
        wide = length > wide ? length : wide;
    }
    printf("%-*s %8s", wide, "hook", "neurons");
    for (int aspect = 0; aspect < WEIR_ASPECTS; aspect++)
        printf(" %9s", weir_aspect_name(aspect));
    puts("  largest difference");
    for (int i = 0; i < d->n; i++)
        print_table(d, &d->table[i], wide);
}

static void print_text(diff *d)
{
    char n[32], m[32];
    weir_results_said(d->s, print_said, d);
    print_only(d, 0);
    print_only(d, 1);
    if (d->n)
        print_tables(d);
    weir_commas(d->differ, n);
    weir_commas(d->neurons, m);
    if (same(d))
        printf("equal: %s neurons, and all that is said of them\n", m);
    else if (d->differ)
        printf("different: %s of %s neurons\n", n, m);
    else
        printf("different, but not in the %s neurons that both have\n", m);
}

/* --- JSON */

static void put_said(void *user, const char *what, const char *a, const char *b)
{
    diff *d = user;
    weir_jsonw_object(&d->w);
    weir_jsonw_key_cstr(&d->w, "what", what);
    weir_jsonw_key_cstr(&d->w, "a", a);
    weir_jsonw_key_cstr(&d->w, "b", b);
    weir_jsonw_end(&d->w);
}

/* The units that differ in one aspect. */
static void put_units(diff *d, const weir_table_diff *t, int aspect)
{
    weir_jsonw_key(&d->w, weir_aspect_name(aspect));
    weir_jsonw_array(&d->w);
    for (int64_t i = 0; i < t->n; i++)
        if (t->differ[i] >> aspect & 1)
            weir_jsonw_int(&d->w, t->unit[i]);
    weir_jsonw_end(&d->w);
}

static void put_table(diff *d, const weir_table_diff *t)
{
    char name[256];
    weir_jsonw_key(&d->w, name_of(name, d->s[0], t->table[0]));
    weir_jsonw_object(&d->w);
    weir_jsonw_key_int(&d->w, "neurons", t->n);
    weir_jsonw_key_int(&d->w, "only_in_a", t->only[0]);
    weir_jsonw_key_int(&d->w, "only_in_b", t->only[1]);
    weir_jsonw_key_int(&d->w, "neurons_that_differ", t->any);
    weir_jsonw_key(&d->w, "units_that_differ");
    weir_jsonw_object(&d->w);
    for (int aspect = 0; aspect < WEIR_ASPECTS; aspect++)
        put_units(d, t, aspect);
    weir_jsonw_end(&d->w);
    weir_jsonw_key(&d->w, "largest"); /* null: there is none; its difference null: infinite */
    if (t->largest_in) {
        weir_jsonw_object(&d->w);
        weir_jsonw_key_double(&d->w, "difference", t->largest);
        weir_jsonw_key_int(&d->w, "unit", t->largest_unit);
        weir_jsonw_key_cstr(&d->w, "in", t->largest_in);
        weir_jsonw_end(&d->w);
    } else {
        weir_jsonw_null(&d->w);
    }
    weir_jsonw_key_bool(&d->w, "same", same_neurons(t));
    weir_jsonw_end(&d->w);
}

static void print_json(diff *d)
{
    weir_jsonw_init(&d->w, stdout);
    weir_jsonw_object(&d->w);
    weir_jsonw_key_bool(&d->w, "same", same(d));
    weir_jsonw_key_int(&d->w, "neurons", d->neurons);
    weir_jsonw_key_int(&d->w, "neurons_that_differ", d->differ);
    weir_jsonw_key_int(&d->w, "only_in_a", d->only[0]);
    weir_jsonw_key_int(&d->w, "only_in_b", d->only[1]);
    weir_jsonw_key(&d->w, "said");
    weir_jsonw_array(&d->w);
    weir_results_said(d->s, put_said, d);
    weir_jsonw_end(&d->w);
    weir_jsonw_key(&d->w, "hooks");
    weir_jsonw_object(&d->w);
    for (int i = 0; i < d->n; i++)
        put_table(d, &d->table[i]);
    weir_jsonw_end(&d->w);
    weir_jsonw_end(&d->w);
    putchar('\n');
}

static int compare_and_print(diff *d, bool json)
{
    weir_err err = {0};
    if (compare(d, &err) != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    for (int k = 0; k < 2; k++)
        if (!weir_neurons_about_of(d->s[k])->complete)
            weir_cli_note(d->cli, "%s is incomplete: its run did not end", d->path[k]);
    json ? print_json(d) : print_text(d);
    if (d->text.failed)
        return weir_cli_error(d->cli, "out of memory");
    return same(d) ? WEIR_EXIT_OK : WEIR_EXIT_FALSE;
}

int weir_results_diff(const weir_cli *cli, const char *const path[2], bool json)
{
    weir_err err = {0};
    weir_neurons *s[2] = {NULL, NULL};
    int code = WEIR_EXIT_OK;
    for (int k = 0; k < 2 && code == WEIR_EXIT_OK; k++)
        if (weir_neurons_read(&s[k], path[k], 0, &err) != WEIR_OK)
            code = weir_cli_fail(cli, &err);
    diff d = {.cli = cli, .path = path, .s = {s[0], s[1]}};
    if (code == WEIR_EXIT_OK)
        code = compare_and_print(&d, json);
    for (int i = 0; i < d.n; i++)
        weir_table_diff_free(&d.table[i]);
    free(d.table);
    weir_text_free(&d.text);
    weir_neurons_free(s[0]);
    weir_neurons_free(s[1]);
    return code;
}

#include "complete.h"

#include <string.h>

#include "neurons/sites.h"

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789_-+";

static bool has_word(const char *words, const char *word, size_t n)
{
    for (size_t k; words += strspn(words, " "), k = strcspn(words, " "), k; words += k)
        if (k == n && memcmp(words, word, n) == 0)
            return true;
    return false;
}

/* Once each; one that finds no room is left out. */
static void add_word(char *words, size_t size, const char *word, size_t n)
{
    size_t used = strlen(words);
    if (n == 0 || used + n + 2 > size || has_word(words, word, n))
        return;
    snprintf(words + used, size - used, "%s%.*s", used ? " " : "", (int)n, word);
}

/* Endings of files named in a spec: h5 of "FILE.h5". A name without one means any file, and so none is listed. */
static void add_endings(weir_offer *offer, const char *spec, size_t length)
{
    const char *end = spec + length;
    for (const char *dot = spec; (dot = memchr(dot, '.', (size_t)(end - dot))); dot++) {
        size_t n = strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
        bool file = dot > spec && dot[-1] >= 'A' && dot[-1] <= 'Z' && dot[1] >= 'a' && dot[1] <= 'z';
        if (file && strncmp(dot + 1 + n, ".part", 5) == 0)
            n += 5;
        if (file)
            add_word(offer->words, sizeof offer->words, dot + 1, n);
        if (dot + 1 >= end)
            break;
    }
}

/* The words in small letters among "line|blank|file|SEP"; "text" of "text[:N]", "mean:" of "mean:FILE". */
static void add_choices(weir_offer *offer, const char *spec)
{
    for (size_t n; n = strcspn(spec, "|"), n; spec += n + (spec[n] != 0)) {
        size_t k = strspn(spec, lower);
        bool word = *spec >= 'a' && *spec <= 'z', whole = k == n || strchr("[]", spec[k]);
        if (word && (whole || spec[k] == ':'))
            add_word(offer->words, sizeof offer->words, spec, whole ? k : k + 1);
    }
}

static bool names_file(const char *spec)
{
    return strstr(spec, "FILE") || strstr(spec, "PATH") || strstr(spec, "RECORDS") || strstr(spec, ".h5");
}

/* Words of a help text that are short names of hook points. `pattern` is one too, but none of a neuron's. */
static void add_sites(weir_offer *offer, const char *help)
{
    for (size_t n; help += strcspn(help, lower), n = strspn(help, lower), n; help += n) {
        char name[32];
        if (n >= sizeof name)
            continue;
        for (size_t i = 0; i < n; i++)
            name[i] = help[i] == '-' ? '_' : help[i];
        name[n] = 0;
        if (weir_short_site_of(name) || strcmp(name, "pattern") == 0)
            add_word(offer->words, sizeof offer->words, help, n);
    }
}

static const weir_opt *find_option(const weir_tool *t, const char *name)
{
    for (const weir_opt_use *use = t->options; use && use->group; use++)
        for (int i = 0; i < use->group->n; i++)
            if (strcmp(use->group->opt[i].name, name) == 0)
                return &use->group->opt[i];
    return NULL;
}

/* An option whose help names no site means those of `trace` ("as there"). */
static void add_sites_of_trace(weir_offer *offer)
{
    for (const weir_tool *const *t = weir_tool_table; *t; t++) {
        const weir_opt *site = strcmp((*t)->name, "trace") == 0 ? find_option(*t, "site") : NULL;
        if (site)
            add_sites(offer, site->help);
    }
}

static weir_offer offer_sites(const weir_opt *o)
{
    weir_offer offer = {.kind = WEIR_OFFER_LIST};
    add_sites(&offer, o->help);
    if (!*offer.words)
        add_sites_of_trace(&offer);
    return offer;
}

/* "SEL[=zero|mean:FILE]": what stands behind the sign. */
static weir_offer offer_selector(const char *spec)
{
    weir_offer offer = {.kind = WEIR_OFFER_SELECTOR};
    const char *value = strchr(spec, '=');
    if (value)
        add_choices(&offer, value + 1);
    if (value && names_file(value))
        add_word(offer.words, sizeof offer.words, "FILE", 4);
    return offer;
}

weir_offer weir_offer_of(const weir_opt *o)
{
    weir_offer offer = {.kind = WEIR_OFFER_TEXT};
    switch (o->type) {
    case WEIR_OPT_FLAG:
        return (weir_offer){.kind = WEIR_OFFER_FLAG};
    case WEIR_OPT_CHOICE:
        offer.kind = WEIR_OFFER_WORDS;
        for (const char *c = o->arg; *c; c += strcspn(c, "|"), c += *c != 0)
            add_word(offer.words, sizeof offer.words, c, strcspn(c, "|"));
        return offer;
    case WEIR_OPT_STR:
    case WEIR_OPT_LIST:
        break;
    default:
        return offer;
    }
    if (strncmp(o->arg, "SITE", 4) == 0)
        return offer_sites(o);
    if (strncmp(o->arg, "SEL", 3) == 0)
        return offer_selector(o->arg);
    if (strcmp(o->arg, "NAMES") == 0) {
        offer.kind = WEIR_OFFER_POINTS;
    } else if (strcmp(o->arg, "NAME[:ARGS]") == 0) {
        offer.kind = WEIR_OFFER_HOOK;
    } else if (strcmp(o->arg, "DIR") == 0) {
        offer.kind = WEIR_OFFER_DIR;
    } else if (names_file(o->arg) || strstr(o->arg, "NAME.")) {
        offer.kind = WEIR_OFFER_FILE;
        add_endings(&offer, o->arg, strlen(o->arg));
    } else {
        add_choices(&offer, o->arg);
        offer.kind = *offer.words ? WEIR_OFFER_WORDS : WEIR_OFFER_TEXT;
    }
    return offer;
}

weir_offer weir_offer_operands(const weir_tool *t)
{
    static const char *const directories[] = {"DIR", "BASE", "EDITED"}, *const any[] = {"MODEL", "VECTOR", "RECORDS"};
    weir_offer offer = {.kind = WEIR_OFFER_TEXT};
    bool everything = false, file = false, dir = false;
    const char *spec = t->operands;
    /* Parts such as "--file FILE..." and "< text" are no operands. */
    for (size_t n; n = strcspn(spec, "|"), n; spec += n + (spec[n] != 0)) {
        char part[128];
        snprintf(part, sizeof part, "%.*s", (int)n, spec);
        const char *word = part + strspn(part, " [");
        if (*word == '-' || *word == '<')
            continue;
        size_t before = strlen(offer.words);
        add_endings(&offer, word, strlen(word));
        file |= strlen(offer.words) > before;
        for (int i = 0; i < 3; i++) {
            dir |= strstr(word, directories[i]) != NULL;
            everything |= strstr(word, any[i]) != NULL;
        }
        add_choices(&offer, word);
    }
    if (everything)
        *offer.words = 0;
    if (everything || file)
        offer.kind = WEIR_OFFER_FILE;
    else if (dir)
        offer.kind = WEIR_OFFER_DIR;
    else if (*offer.words)
        offer.kind = WEIR_OFFER_WORDS;
    return offer;
}

const char *weir_offer_name(weir_offer_kind kind)
{
    static const char *const name[] = {"flag", "text", "words", "list", "file", "dir", "points", "selector", "hook"};
    return name[kind];
}

static void add_names(char *out, size_t n, const weir_opt *o)
{
    char name[80];
    if (o->letter) {
        snprintf(name, sizeof name, "-%c", o->letter);
        add_word(out, n, name, strlen(name));
    }
    for (int i = 0; i < 2; i++)
        if (i ? o->alias : o->name) {
            snprintf(name, sizeof name, "--%s", i ? o->alias : o->name);
            add_word(out, n, name, strlen(name));
        }
}

void weir_offer_against(char *out, size_t n, const weir_tool *t, const weir_opt *o)
{
    *out = 0;
    if (o->type != WEIR_OPT_LIST)
        add_names(out, n, o);
    for (const weir_opt_rule *r = t->rules; r && r->name; r++)
        for (int way = 0; way < 2 && r->kind == WEIR_OPT_EXCLUDES; way++) {
            const char *here = way ? r->other : r->name, *there = way ? r->name : r->other;
            for (const weir_opt_use *use = weir_opt_rule_lists(here, o->name) ? t->options : NULL; use && use->group;
                 use++)
                for (int i = 0; i < use->group->n; i++)
                    if (weir_opt_rule_lists(there, use->group->opt[i].name))
                        add_names(out, n, &use->group->opt[i]);
        }
}

void weir_offer_tools(FILE *out, void (*put)(FILE *out, const weir_tool *parent, const weir_tool *t))
{
    for (const weir_tool *const *t = weir_tool_table; *t; t++) {
        put(out, NULL, *t);
        for (const weir_tool *const *c = (*t)->commands; c && *c; c++)
            put(out, *t, *c);
    }
}

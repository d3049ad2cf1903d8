/* Names of hook points as users write them, and the nearest one when there is none. */
#include <stdio.h>
#include <string.h>

#include "points.h"
#include "selector.h"

enum { NAME_MAX_BYTES = 256, MAX_ALTERNATIVES = 1024 };

/* Short names; the first of a site is the one that help shows. */
static const struct short_site {
    const char *name;
    weir_site site;
} short_sites[] = {
    {"resid_pre", WEIR_SITE_RESID_PRE},
    {"resid_mid", WEIR_SITE_RESID_MID},
    {"resid_post", WEIR_SITE_RESID_POST},
    {"attn_out", WEIR_SITE_ATTN_OUT},
    {"mlp_out", WEIR_SITE_MLP_OUT},
    {"ln1", WEIR_SITE_LN1_OUT},
    {"ln2", WEIR_SITE_LN2_OUT},
    {"pre", WEIR_SITE_MLP_PRE},
    {"gate", WEIR_SITE_MLP_PRE},
    {"up", WEIR_SITE_MLP_PRE_LINEAR},
    {"post", WEIR_SITE_MLP_POST},
    {"q", WEIR_SITE_Q},
    {"k", WEIR_SITE_K},
    {"v", WEIR_SITE_V},
    {"z", WEIR_SITE_Z},
    {"pattern", WEIR_SITE_PATTERN},
    {"mlp_pre", WEIR_SITE_MLP_PRE},
    {"mlp_post", WEIR_SITE_MLP_POST},
};
enum { N_SHORT = sizeof short_sites / sizeof *short_sites };

bool weir_digits(weir_str s, int64_t *out)
{
    if (s.n == 0 || s.n > 18)
        return false;
    *out = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        *out = *out * 10 + (s.p[i] - '0');
    }
    return true;
}

weir_status weir_no_layer(weir_err *err, int64_t layer, int64_t n_layers)
{
    return weir_fail(err, WEIR_E_ARG, "layer %lld does not exist: the model has %lld layers, 0 to %lld",
                     (long long)layer, (long long)n_layers, (long long)(n_layers - 1));
}

/* --- globs */

/* Does name match the pattern p, which has * and ? but no braces? Only the last star can need to grow: linear in
 * practice. */
static bool glob(const char *p, const char *name)
{
    const char *star = NULL, *mark = NULL;
    while (*name) {
        if (*p == '*') {
            star = ++p;
            mark = name;
        } else if (*p == '?' || *p == *name) {
            p++;
            name++;
        } else if (star) {
            p = star;
            name = ++mark;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return !*p;
}

typedef struct search {
    const weir_point_map *map;
    const uint8_t *layer_on;
    uint8_t *hit;
    int64_t found;
    bool grad; /* the gradients of what matches are meant */
    int alternatives;
    weir_err *err;
} search;

static void take(search *s, int64_t i)
{
    const weir_point *p = &s->map->point[i];
    if (p->layer >= 0 && s->layer_on && !s->layer_on[p->layer])
        return;
    s->hit[s->grad ? s->map->n + i : i] = 1;
    s->found++;
}

/* Points whose rows grow with the context or with H times C are meant by a pattern that spells their word, or that
 * matches nothing else: `*` would otherwise write gigabytes that nobody asked for. */
static bool is_meant(const char *pattern, weir_site site)
{
    switch (site) {
    case WEIR_SITE_SCORES:
        return strstr(pattern, "scores") != NULL;
    case WEIR_SITE_PATTERN:
        return strstr(pattern, "pattern") != NULL;
    case WEIR_SITE_RESULT:
        return strstr(pattern, "result") != NULL;
    default:
        return true;
    }
}

/* Cuts "_grad" off the end; false: it is not there. */
static bool cut_grad(char *name)
{
    static const char suffix[] = "_grad";
    const size_t n = strlen(name), cut = sizeof suffix - 1;
    if (n <= cut || strcmp(name + n - cut, suffix) != 0)
        return false;
    name[n - cut] = 0;
    return true;
}

static void match_plain(search *s, const char *written)
{
    char pattern[NAME_MAX_BYTES];
    int64_t before = s->found;
    snprintf(pattern, sizeof pattern, "%s", written);
    s->grad = cut_grad(pattern);
    for (int pass = 0; pass < 2 && s->found == before; pass++)
        for (int64_t i = 0; i < s->map->n; i++)
            if (glob(pattern, s->map->point[i].name) && (pass == 1 || is_meant(pattern, s->map->point[i].site)))
                take(s, i);
}

/* The brace that closes the one at p, or NULL. */
static const char *closing(const char *p)
{
    int depth = 0;
    for (; *p; p++) {
        depth += (*p == '{') - (*p == '}');
        if (depth == 0)
            return p;
    }
    return NULL;
}

/* Replaces the first {a,b} by each of its alternatives, and goes on with the result. */
static weir_status match_braces(search *s, const char *pattern)
{
    const char *open = strchr(pattern, '{');
    if (++s->alternatives > MAX_ALTERNATIVES)
        return weir_fail(s->err, WEIR_E_ARG, "the braces of a selector stand for more than %d names", MAX_ALTERNATIVES);
    if (!open) {
        match_plain(s, pattern);
        return WEIR_OK;
    }
    const char *close = closing(open);
    if (!close)
        return weir_fail(s->err, WEIR_E_ARG, "\"%s\": a { has no }", pattern);
    const char *from = open + 1;
    int depth = 0;
    for (const char *p = from; p <= close; p++) {
        if (depth == 0 && (*p == ',' || p == close)) {
            char next[NAME_MAX_BYTES];
            snprintf(next, sizeof next, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)(p - from), from, close + 1);
            WEIR_TRY(match_braces(s, next));
            from = p + 1;
        }
        depth += (*p == '{') - (*p == '}');
    }
    return WEIR_OK;
}

/* --- the nearest name */

int weir_name_distance(const char *a, const char *b)
{
    int row[NAME_MAX_BYTES + 1];
    int n = (int)strnlen(b, NAME_MAX_BYTES);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < n; j++) {
            int change = diagonal + (a[i] != b[j]);
            int gap = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = change < gap ? change : gap;
        }
    }
    return row[n];
}

static void consider(const char *name, const char *candidate, int *best, char *nearest)
{
    int d = weir_name_distance(name, candidate);
    if (d >= *best)
        return;
    *best = d;
    snprintf(nearest, NAME_MAX_BYTES, "%s", candidate);
}

/* The layer as the user wrote it, so that the suggestion is about the same layers: "blocks.{0,3}." -> "{0,3}". */
static void written_layer(const char *name, char *out)
{
    const char *layer = "0";
    size_t n = 1;
    if (strncmp(name, "blocks.", 7) == 0) {
        const char *dot = strchr(name + 7, '.');
        if (dot && dot > name + 7) {
            layer = name + 7;
            n = (size_t)(dot - layer);
        }
    }
    memcpy(out, layer, n);
    out[n] = 0;
}

static weir_status unknown(const search *s, const char *written, int64_t n_layers)
{
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s", written);
    const bool grad = cut_grad(name);
    char layer[NAME_MAX_BYTES], nearest[NAME_MAX_BYTES] = "", candidate[NAME_MAX_BYTES];
    int64_t number;
    int best = INT32_MAX;
    const bool is_layer =
        (name[0] == 'L' || name[0] == 'l') && weir_digits((weir_str){name + 1, strlen(name + 1)}, &number);
    if (is_layer && number >= n_layers)
        return weir_no_layer(s->err, number, n_layers);
    if (is_layer)
        return weir_fail(s->err, WEIR_E_HOOK,
                         "\"%s\" is a layer, not a place in it: a neuron is L%lldN421, a head L%lldH3, what its MLP adds "
                         "blocks.%lld.hook_mlp_out (weir trace --list-hooks shows all)",
                         written, (long long)number, (long long)number, (long long)number);
    written_layer(name, layer);
    if (weir_digits((weir_str){layer, strlen(layer)}, &number) && number >= n_layers)
        return weir_no_layer(s->err, number, n_layers);
    for (int64_t i = 0; i < s->map->n; i++) {
        const weir_point *p = &s->map->point[i];
        if (p->layer > 0)
            continue;
        const char *site = weir_site_name(p->site);
        int n = p->layer < 0 ? snprintf(candidate, sizeof candidate, "%s", site)
                             : snprintf(candidate, sizeof candidate, "blocks.%s.%s", layer, site);
        if (n < NAME_MAX_BYTES)
            consider(name, candidate, &best, nearest);
    }
    for (int i = 0; i < N_SHORT; i++)
        if (s->map->at[short_sites[i].site] >= 0 && strcmp(name, short_sites[i].name) != 0) /* gate of an ungated model */
            consider(name, short_sites[i].name, &best, nearest);
    if (best == 0) /* the site is right, so the layers are not */
        return weir_fail(s->err, WEIR_E_HOOK,
                         s->layer_on ? "\"%s\" lies in none of the chosen layers"
                                     : "\"%s\" names no layer: braces hold a list such as {0,1,2}, ranges go to --layers",
                         written);
    return weir_fail(s->err, WEIR_E_HOOK,
                     "this model has no hook point \"%s\"%s; the nearest is \"%s%s\" (weir trace --list-hooks shows all)",
                     written, s->layer_on ? " in the chosen layers" : "", nearest, grad ? "_grad" : "");
}

/* --- short names */

/* L6N421 or L6H3. */
static bool neuron_or_head(const char *name, weir_site *site, int64_t *layer, int64_t *unit)
{
    if (name[0] != 'L')
        return false;
    size_t digits = strspn(name + 1, "0123456789");
    const char *kind = name + 1 + digits;
    if (*kind != 'N' && *kind != 'H')
        return false;
    *site = *kind == 'N' ? WEIR_SITE_MLP_POST : WEIR_SITE_Z;
    return weir_digits((weir_str){name + 1, digits}, layer) &&
           weir_digits((weir_str){kind + 1, strlen(kind + 1)}, unit);
}

static bool short_site(const char *name, bool gated, weir_site *site)
{
    for (int i = 0; i < N_SHORT; i++) {
        if (strcmp(name, short_sites[i].name) != 0 || (strcmp(name, "gate") == 0 && !gated))
            continue;
        *site = short_sites[i].site;
        return true;
    }
    return false;
}

static void take_site(search *s, weir_site site, int64_t layer)
{
    for (int64_t i = 0; i < s->map->n; i++) {
        const weir_point *p = &s->map->point[i];
        if (p->site == site && (layer < 0 || p->layer == layer))
            take(s, i);
    }
}

weir_status weir_names_find(const weir_point_map *map, int64_t n_layers, bool gated, weir_str text,
                            const uint8_t *layer_on, uint8_t *hit, int64_t *unit, weir_err *err)
{
    search s = {.map = map, .layer_on = layer_on, .hit = hit, .err = err};
    char name[NAME_MAX_BYTES];
    weir_site site;
    int64_t layer;
    *unit = -1;
    if (text.n >= sizeof name)
        return weir_fail(err, WEIR_E_ARG, "a selector's name has %zu bytes; the longest that is read has %zu", text.n,
                         sizeof name - 1);
    for (size_t i = 0; i < text.n; i++)
        name[i] = text.p[i] == '-' ? '_' : text.p[i];
    name[text.n] = 0;
    char plain[NAME_MAX_BYTES];
    memcpy(plain, name, text.n + 1);
    s.grad = cut_grad(plain);
    if (neuron_or_head(plain, &site, &layer, unit)) {
        if (layer >= n_layers)
            return weir_no_layer(err, layer, n_layers);
        take_site(&s, site, layer);
    } else if (short_site(plain, gated, &site)) {
        take_site(&s, site, -1);
    } else {
        WEIR_TRY(match_braces(&s, name));
    }
    return s.found ? WEIR_OK : unknown(&s, name, n_layers);
}

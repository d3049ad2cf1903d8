#include "lines.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"

/* In the order in which they stand in a block. */
static const struct site {
    weir_site site;
    const char *name, *mark; /* behind the layer, in a line's name */
} sites[] = {
    {WEIR_SITE_RESID_PRE, "resid_pre", " pre"}, {WEIR_SITE_ATTN_OUT, "attn_out", " attn"},
    {WEIR_SITE_RESID_MID, "resid_mid", " mid"}, {WEIR_SITE_MLP_OUT, "mlp_out", " mlp"},
    {WEIR_SITE_RESID_POST, "resid_post", ""},
};
enum { SITES = sizeof sites / sizeof *sites, POST = SITES - 1 };

typedef struct making {
    weir_lens_stack *s;
    const weir_cli *cli;
    const weir_model *m;
    const weir_lens_choice *c;
    bool site[SITES];
    int *layer; /* [n_layers] the chosen ones, ascending */
    int n_layers;
} making;

static const weir_point *find_point(const weir_model *m, weir_site site, int layer)
{
    const weir_point *p;
    int64_t n = weir_model_points(m, &p);
    for (int64_t i = 0; i < n; i++)
        if (p[i].site == site && p[i].layer == layer)
            return &p[i];
    return NULL;
}

const weir_point *weir_lens_last_point(const weir_model *m)
{
    return find_point(m, WEIR_SITE_RESID_POST, (int)weir_model_info_of(m)->L - 1);
}

/* --- what is asked for */

static int read_site(making *k, const char *word, size_t n)
{
    for (int i = 0; i < SITES; i++) {
        size_t at = 0;
        while (at < n && sites[i].name[at] == (word[at] == '-' ? '_' : word[at]))
            at++;
        if (at < n || sites[i].name[n])
            continue;
        if (sites[i].site == WEIR_SITE_RESID_MID && weir_model_info_of(k->m)->parallel)
            return weir_cli_usage(k->cli,
                                  "--site resid-mid: %s adds attention and MLP at once, so there is no stream between "
                                  "them",
                                  weir_model_info_of(k->m)->name);
        k->site[i] = true;
        return WEIR_EXIT_OK;
    }
    return weir_cli_usage(k->cli, "--site %.*s: it is one of resid-pre, resid-mid, resid-post, attn-out, mlp-out",
                          (int)n, word);
}

static int read_sites(making *k)
{
    for (const char *at = k->c->sites;; at++) {
        size_t n = strcspn(at, ",");
        int code = read_site(k, at, n);
        at += n;
        if (code != WEIR_EXIT_OK || *at == 0)
            return code;
    }
}

/* The layers of --layers, thinned out. */
static int read_layers(making *k)
{
    weir_err err = {0};
    weir_selector *sel;
    int L = (int)weir_model_info_of(k->m)->L, n = 0;
    k->layer = malloc(sizeof *k->layer * (size_t)L);
    if (!k->layer)
        return weir_cli_error(k->cli, "out of memory");
    if (weir_selector_build(&sel, k->m, NULL, k->c->layers ? k->c->layers : "all", "resid_post", &err) != WEIR_OK)
        return weir_cli_bad_argument(k->cli, "--layer", &err);
    for (int l = 0; l < L; l++)
        if (weir_selector_matches(sel, find_point(k->m, WEIR_SITE_RESID_POST, l)))
            k->layer[n++] = l;
    weir_selector_free(sel);
    for (int i = 0; i < n; i++)
        if (i % k->c->step == 0 || i == n - 1)
            k->layer[k->n_layers++] = k->layer[i];
    return WEIR_EXIT_OK;
}

/* --- the stack */

static int source_of(weir_lens_stack *s, const weir_point *p)
{
    for (int i = 0; i < s->n_points; i++)
        if (s->point[i] == p)
            return i;
    s->point[s->n_points] = p;
    return s->n_points++;
}

/* The last line of this site; -1: there is none. */
static int last_of(const weir_lens_stack *s, const char *site)
{
    int i = s->n - 1;
    while (i >= 0 && strcmp(s->line[i].site, site) != 0)
        i--;
    return i;
}

static void add(making *k, const weir_point *p, const char *site, int layer, const char *name)
{
    weir_lens_stack *s = k->s;
    bool needed = k->c->layers || strcmp(name, "out") == 0;
    if (!needed && k->c->there && !k->c->there(k->c->ctx, p))
        return;
    snprintf(s->name[s->n], sizeof *s->name, "%s", name);
    s->prev[s->n] = last_of(s, site);
    s->line[s->n] = (weir_lens_line){.name = s->name[s->n], .hook = p->name, .site = site, .layer = layer};
    s->source[s->n] = source_of(s, p);
    s->n++;
}

static void add_layer(making *k, int layer)
{
    bool final = k->c->norm == WEIR_LENS_RECOMPUTE && layer == (int)weir_model_info_of(k->m)->L - 1;
    for (int i = 0; i < SITES; i++) {
        char name[24];
        if (!k->site[i] || (i == POST && final))
            continue;
        snprintf(name, sizeof name, "L%d%s", layer, sites[i].mark);
        add(k, find_point(k->m, sites[i].site, layer), sites[i].name, layer, name);
    }
}

/* Behind the last line of the stream that is there. */
static void add_final(making *k)
{
    static const int nearest[] = {POST, 2, 0};
    weir_lens_stack *s = k->s;
    int prev = -1;
    for (int i = 0; i < 3 && prev < 0; i++)
        prev = last_of(s, sites[nearest[i]].name);
    const weir_point *p = weir_lens_last_point(k->m);
    add(k, p, sites[POST].name, p->layer, "out");
    s->prev[s->n - 1] = prev;
}

static bool make_room(making *k)
{
    weir_lens_stack *s = k->s;
    size_t most = (size_t)k->n_layers * SITES + 2;
    s->line = calloc(most, sizeof *s->line);
    s->source = calloc(most, sizeof *s->source);
    s->prev = calloc(most, sizeof *s->prev);
    s->point = calloc(most, sizeof *s->point);
    s->name = calloc(most, sizeof *s->name);
    return s->line && s->source && s->prev && s->point && s->name;
}

int weir_lens_stack_make(weir_lens_stack *s, const weir_cli *cli, const weir_model *m, const weir_lens_choice *c)
{
    making k = {.s = s, .cli = cli, .m = m, .c = c};
    *s = (weir_lens_stack){0};
    int code = read_sites(&k);
    if (code == WEIR_EXIT_OK)
        code = read_layers(&k);
    if (code == WEIR_EXIT_OK && !make_room(&k))
        code = weir_cli_error(cli, "out of memory");
    if (code == WEIR_EXIT_OK) {
        if (k.site[POST] && !c->layers)
            add(&k, find_point(m, WEIR_SITE_RESID_PRE, 0), sites[POST].name, -1, "embed");
        for (int i = 0; i < k.n_layers; i++)
            add_layer(&k, k.layer[i]);
        add_final(&k);
    }
    free(k.layer);
    return code;
}

void weir_lens_stack_free(weir_lens_stack *s)
{
    void *const own[] = {s->line, s->source, s->prev, s->point, s->name};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    *s = (weir_lens_stack){0};
}

/* --layer and --heads: numbers of heads (0,2, 0-3, all) in the layers, and heads by name (L6H3), wherever they are. */
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "job.h"

const weir_point *weir_attention_point(const weir_model *m, int layer)
{
    char name[64];
    snprintf(name, sizeof name, "blocks.%d.attn.hook_pattern", layer);
    return weir_model_point(m, name);
}

int weir_attention_heads_of(const weir_attention_about *a, int layer, int *first)
{
    int n = 0;
    *first = 0;
    while (*first < a->n_heads && a->head[*first].layer < layer)
        ++*first;
    while (*first + n < a->n_heads && a->head[*first + n].layer == layer)
        n++;
    return n;
}

/* A number at *p, which is moved behind it. False: there is none, or it is far too large. */
static bool read_number(const char **p, int64_t *x)
{
    enum { DIGITS = 9 };
    size_t n = strspn(*p, "0123456789");
    if (n == 0 || n > DIGITS)
        return false;
    *x = strtol(*p, NULL, 10);
    *p += n;
    return true;
}

typedef struct choice {
    bool *layer, *head, *pair; /* [L], [H], [L, H] */
    bool numbers;              /* --heads has numbers without a layer */
    bool pairs;                /* --heads has names */
} choice;

/* Up to the next comma: L6H3, 2, 0-3 or all. */
static int read_item(const weir_attention_job *j, choice *c, const char **p)
{
    const int64_t L = j->session.info->L, H = j->session.info->H;
    const char *item = *p;
    int n = (int)strcspn(item, ",");
    int64_t layer = 0, from = 0, to = H - 1;
    bool named = **p == 'L', ok = true;
    if (named) {
        ++*p;
        ok = read_number(p, &layer) && *(*p)++ == 'H' && read_number(p, &from);
        to = from;
    } else if (n == 3 && strncmp(item, "all", 3) == 0) {
        *p += 3;
    } else {
        ok = read_number(p, &from);
        to = from;
        if (ok && **p == '-')
            ok = ++*p && read_number(p, &to) && from <= to;
    }
    if (!ok || *p != item + n)
        return weir_cli_usage(j->cli, "--heads %.*s: heads are numbers (0,2 or 0-3), all, or names (L6H3)", n, item);
    if (layer >= L || to >= H)
        return weir_cli_usage(j->cli, "--heads %.*s: the model has layers 0 to %lld with heads 0 to %lld", n, item,
                              (long long)L - 1, (long long)H - 1);
    for (int64_t h = from; h <= to; h++)
        *(named ? &c->pair[layer * H + h] : &c->head[h]) = true;
    c->numbers = c->numbers || !named;
    c->pairs = c->pairs || named;
    *p += **p == ',';
    return WEIR_EXIT_OK;
}

static int read_heads(const weir_attention_job *j, choice *c)
{
    int code = WEIR_EXIT_OK;
    for (int i = 0; i < j->a->heads.n; i++) {
        const char *p = j->a->heads.v[i];
        do
            code = read_item(j, c, &p);
        while (code == WEIR_EXIT_OK && *p);
        if (code != WEIR_EXIT_OK)
            return code;
    }
    for (int64_t h = 0; !c->numbers && h < j->session.info->H; h++)
        c->head[h] = true;
    return code;
}

static int read_layers(const weir_attention_job *j, choice *c)
{
    weir_err err = {0};
    weir_selector *sel = NULL;
    char *list = NULL;
    if (!weir_opt_list_join(&list, &j->a->layers))
        return weir_cli_error(j->cli, "out of memory");
    weir_status st = weir_selector_build(&sel, j->session.model, NULL, list, "pattern", &err);
    for (int l = 0; st == WEIR_OK && l < j->session.info->L; l++) {
        const weir_point *p = weir_attention_point(j->session.model, l);
        c->layer[l] = p && weir_selector_matches(sel, p);
    }
    weir_selector_free(sel);
    free(list);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_bad_argument(j->cli, "--layer", &err);
}

/* Neither layers nor heads are named: a page has room for all of them, other forms for one layer, the middle one of
 * those that are at hand. */
static void choose_layers(weir_attention_job *j, choice *c, bool (*there)(const weir_attention_job *j, int layer))
{
    int n = 0, at = 0;
    for (int l = 0; l < j->session.info->L; l++) {
        c->layer[l] = !there || there(j, l);
        n += c->layer[l];
    }
    if (j->format == WEIR_ATTENTION_HTML || n <= 1)
        return;
    j->middle = true;
    for (int l = 0; l < j->session.info->L; l++)
        c->layer[l] = c->layer[l] && at++ == n / 2;
}

static int take(weir_attention_job *j, const choice *c)
{
    const int64_t L = j->session.info->L, H = j->session.info->H;
    j->head = malloc(sizeof *j->head * (size_t)(L * H));
    if (!j->head)
        return weir_cli_error(j->cli, "out of memory");
    for (int64_t l = 0; l < L; l++)
        for (int64_t h = 0; h < H; h++)
            if (c->pair[l * H + h] || (c->layer[l] && c->head[h]))
                j->head[j->about.n_heads++] = (weir_attention_head){(int)l, (int)h};
    j->about.head = j->head;
    return WEIR_EXIT_OK;
}

int weir_attention_choose(weir_attention_job *j, bool (*there)(const weir_attention_job *j, int layer))
{
    const size_t L = (size_t)j->session.info->L, H = (size_t)j->session.info->H;
    choice c = {.layer = calloc(L, 1), .head = calloc(H, 1), .pair = calloc(L * H, 1)};
    int code = c.layer && c.head && c.pair ? read_heads(j, &c) : weir_cli_error(j->cli, "out of memory");
    if (code == WEIR_EXIT_OK && j->a->layers.n)
        code = read_layers(j, &c);
    else if (code == WEIR_EXIT_OK && (c.numbers || !c.pairs))
        choose_layers(j, &c, there);
    if (code == WEIR_EXIT_OK)
        code = take(j, &c);
    free(c.layer);
    free(c.head);
    free(c.pair);
    return code;
}

#include "ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ASKED = 1 << 20 };

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

static bool read_number(const char **p, int64_t *n)
{
    if (**p < '0' || **p > '9')
        return false;
    for (*n = 0; **p >= '0' && **p <= '9' && *n < (int64_t)1 << 40; (*p)++)
        *n = *n * 10 + (**p - '0');
    return true;
}

/* --- neurons */

static weir_status add(weir_asks *a, int layer, int64_t unit, weir_err *err)
{
    if (a->n >= MOST_ASKED)
        return weir_fail(err, WEIR_E_ARG, "more than %d %s are named: use \"all\"", MOST_ASKED,
                         a->heads ? "heads" : "neurons");
    if ((a->n & (a->n - 1)) == 0) { /* room is a power of two */
        weir_neuron_ask *p = realloc(a->ask, sizeof *p * (size_t)(a->n ? 2 * a->n : 1));
        if (!p)
            return no_memory(err);
        a->ask = p;
    }
    a->ask[a->n++] = (weir_neuron_ask){layer, unit};
    return WEIR_OK;
}

/* "421", "0:8", "L3N9", "L3N0:8" */
static weir_status parse_one(weir_asks *a, const char *text, weir_err *err)
{
    const char *p = text, letter = a->heads ? 'H' : 'N';
    int64_t layer = -1, lo, hi;
    bool named = *p == 'L' || *p == 'l';
    bool good = !named || (p++, read_number(&p, &layer) && layer < 100000 && (*p & ~32) == letter && p++);
    good = good && read_number(&p, &lo);
    if (good) {
        hi = lo + 1;
        if (*p == ':')
            good = (p++, read_number(&p, &hi)) && hi > lo;
    }
    if (!good || *p)
        return weir_fail(err, WEIR_E_ARG,
                         "\"%s\" is no %s: write %s, 0:8, L3%c9, lists of these with commas, @FILE, or all", text,
                         a->heads ? "head" : "neuron", a->heads ? "4" : "421", letter);
    for (int64_t u = lo; u < hi; u++)
        WEIR_TRY(add(a, (int)layer, u, err));
    return WEIR_OK;
}

static weir_status parse_list(weir_asks *a, char *text, bool *all, weir_err *err);

/* Lines of lists; what follows a # is a remark. */
static weir_status parse_file(weir_asks *a, const char *path, bool *all, weir_err *err)
{
    char *line = NULL;
    size_t room = 0;
    if (!*path)
        return weir_fail(err, WEIR_E_ARG, "@ without the name of a file");
    FILE *f = fopen(path, "r");
    weir_status st = f ? WEIR_OK : weir_fail(err, WEIR_E_IO, "cannot open %s: %s", path, strerror(errno));
    while (st == WEIR_OK && getline(&line, &room, f) >= 0) {
        line[strcspn(line, "#\r\n")] = 0;
        char *begin = line + strspn(line, " \t");
        for (char *end = begin + strlen(begin); end > begin && (end[-1] == ' ' || end[-1] == '\t');)
            *--end = 0;
        if (*begin)
            st = *begin == '@' ? weir_fail(err, WEIR_E_ARG, "%s names another file, %s", path, begin)
                               : parse_list(a, begin, all, err);
    }
    if (st == WEIR_OK && ferror(f))
        st = weir_fail(err, WEIR_E_IO, "cannot read %s: %s", path, strerror(errno));
    free(line);
    if (f)
        fclose(f);
    return st;
}

static weir_status parse_list(weir_asks *a, char *text, bool *all, weir_err *err)
{
    for (char *item = strsep(&text, ","); item; item = strsep(&text, ",")) {
        if (strcmp(item, "all") == 0)
            *all = true;
        else if (*item == '@')
            WEIR_TRY(parse_file(a, item + 1, all, err));
        else
            WEIR_TRY(parse_one(a, item, err));
    }
    return WEIR_OK;
}

static int by_place(const void *a, const void *b)
{
    const weir_neuron_ask *x = a, *y = b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

static void sort_asks(weir_asks *a)
{
    int64_t n = 0;
    if (a->n)
        qsort(a->ask, (size_t)a->n, sizeof *a->ask, by_place);
    for (int64_t i = 0; i < a->n; i++)
        if (n == 0 || by_place(&a->ask[i], &a->ask[n - 1]) != 0)
            a->ask[n++] = a->ask[i];
    a->n = n;
}

static weir_status parse(weir_asks *out, const weir_opt_list *texts, weir_err *err)
{
    weir_status st = WEIR_OK;
    bool all = false;
    for (int i = 0; i < texts->n && st == WEIR_OK; i++) {
        char *copy = strdup(texts->v[i]);
        st = copy ? parse_list(out, copy, &all, err) : no_memory(err);
        free(copy);
    }
    if (st == WEIR_OK && texts->n && !all && out->n == 0)
        st = weir_fail(err, WEIR_E_ARG, "no %s is named", out->heads ? "head" : "neuron");
    if (all)
        out->n = 0;
    sort_asks(out);
    return st;
}

weir_status weir_asks_parse(weir_asks *out, const weir_opt_list *texts, weir_err *err)
{
    *out = (weir_asks){0};
    return parse(out, texts, err);
}

weir_status weir_asks_parse_heads(weir_asks *out, const weir_opt_list *texts, weir_err *err)
{
    *out = (weir_asks){.heads = true};
    return parse(out, texts, err);
}

void weir_asks_free(weir_asks *a)
{
    free(a->ask);
    *a = (weir_asks){0};
}

static bool have(const weir_asks *a, int layer, int64_t unit)
{
    weir_neuron_ask wanted = {layer, unit};
    return bsearch(&wanted, a->ask, (size_t)a->n, sizeof *a->ask, by_place) != NULL;
}

bool weir_asks_have(const weir_asks *a, int layer, int64_t unit)
{
    return a->n && (have(a, -1, unit) || have(a, layer, unit));
}

/* --- layers */

bool weir_layers_have(const char *text, int layer, bool *bad)
{
    bool found = false;
    if (!text || strcmp(text, "all") == 0)
        return true;
    for (const char *p = text;; p++) {
        int64_t lo, hi;
        if (!read_number(&p, &lo) || (hi = lo, *p == '-' && (p++, !read_number(&p, &hi))) || hi < lo ||
            (*p && *p != ',')) {
            *bad = true;
            return false;
        }
        found = found || (layer >= lo && layer <= hi);
        if (!*p)
            return found;
    }
}

/* --- masks */

static weir_status mask_one(weir_masks *m, const char *word, weir_err *err)
{
    const char *p = word;
    int64_t id;
    if (strcmp(word, "bos") == 0) {
        m->bos = true;
        return WEIR_OK;
    }
    if (strcmp(word, "special") == 0) {
        m->special = true;
        return WEIR_OK;
    }
    if (!read_number(&p, &id) || *p || id > INT32_MAX)
        return weir_fail(err, WEIR_E_ARG, "\"%s\": bos, special, token ids, or none", word);
    int32_t *ids = realloc(m->id, sizeof *ids * ((size_t)m->n + 1));
    if (!ids)
        return no_memory(err);
    m->id = ids;
    m->id[m->n++] = (int32_t)id;
    return WEIR_OK;
}

weir_status weir_masks_parse(weir_masks *out, const char *text, weir_err *err)
{
    *out = (weir_masks){0};
    if (strcmp(text, "none") == 0)
        return WEIR_OK;
    char *copy = strdup(text), *rest = copy;
    weir_status st = copy ? WEIR_OK : no_memory(err);
    for (char *word = strsep(&rest, ","); word && st == WEIR_OK; word = strsep(&rest, ","))
        st = mask_one(out, word, err);
    free(copy);
    return st;
}

void weir_masks_free(weir_masks *m)
{
    free(m->id);
    *m = (weir_masks){0};
}

weir_status weir_masks_kinds(const weir_masks *m, const weir_tokenizer *tok, int64_t vocabulary, uint8_t **kind,
                             weir_err *err)
{
    *kind = calloc((size_t)(vocabulary > 0 ? vocabulary : 1), 1);
    if (!*kind)
        return no_memory(err);
    int64_t known = tok ? weir_tokenizer_size(tok) : 0;
    for (int64_t i = 0; i < known && i < vocabulary && m->special; i++)
        (*kind)[i] = weir_tokenizer_is_special(tok, (int32_t)i) ? WEIR_MASK_SPECIAL : 0;
    int32_t bos = tok ? weir_tokenizer_bos(tok) : -1;
    if (bos >= 0 && bos < vocabulary)
        (*kind)[bos] = m->bos ? WEIR_MASK_BOS : m->special ? WEIR_MASK_SPECIAL : 0;
    for (int i = 0; i < m->n; i++) {
        if (m->id[i] >= vocabulary)
            return weir_fail(err, WEIR_E_ARG, "%d: ids of this model are below %lld", m->id[i], (long long)vocabulary);
        if (!(*kind)[m->id[i]])
            (*kind)[m->id[i]] = WEIR_MASK_ID;
    }
    return WEIR_OK;
}

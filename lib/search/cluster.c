/* search/cluster.c: how many things a neuron's top contexts are.
 *
 * A context is seen through seven windows: the firing token (weight 4), the five tokens before it (2, 1, 1/2, 1/4,
 * 1/8), and the token behind it (1). Where the document has no token, the window is shut. Two contexts share a window's
 * weight if they have the same token in it: the same bytes without regard to leading spaces and ASCII case. Firing
 * tokens that are not the same still share a part of their weight if they are of one kind: 3/4 for two numbers, 5/8 for
 * two capitalised words, marks (punctuation, symbols), white spaces, words of one script other than Latin, emoji,
 * special tokens, or pieces of characters; nothing for other words. A token's kind is that of its first letter or
 * digit, if it has any. The similarity is the weighted Jaccard index: shared / (open in one + open in the other -
 * shared).
 *
 * So with all windows open two numbers are alike by .20, two capitalised words by .16, two contexts of one token by
 * .29, of one token behind one other by .49. Clusters are merged by average linkage, the most similar pair first (ties:
 * the pair that comes first in the list), as long as the mean similarity is .15 or more. All in integers: a cluster is
 * the same on every machine.
 *
 * The score is exp(H), H the entropy of the shares of the clusters: 1 for one cluster, m for m clusters of one size,
 * and little more than 1 for one that is large beside a few strays.
 *
 * What it cannot see: meaning. Verbs of motion, or the word `bank` in two senses, are many and one to it: it compares
 * spellings. A neuron that fires on one class of lower-case words counts as many things, one that fires on all
 * capitalised words as one. Lists of few places say little: the score is at most their number. At most the first 256
 * places are compared.
 */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "search/impl.h"

enum {
    MOST = 256, /* places compared */
    BEFORE = 5, /* windows: the firing token, those before it, the one behind it */
    NEXT = BEFORE + 1,
    WINDOWS = NEXT + 1,
    ONE = 1 << 16,                /* a similarity of 1 */
    CUT = (int)(0.15 * (1 << 16)) /* the least similarity of clusters that are merged */
};

static const uint32_t weight[WINDOWS] = {64, 32, 16, 8, 4, 2, 16};

/* --- tokens */

enum kind { WORD, NUMBER, CAPITAL, MARK, SPACE, SPECIAL, PIECE, SCRIPT }; /* SCRIPT + i: of one of the scripts below */

/* Blocks of Unicode whose words are alike; the kind of what is in none of them is WORD, as of Latin letters. */
static const struct {
    uint32_t first, last;
    int kind;
} blocks[] = {
    {0xa0, 0xbf, MARK},
    {0x370, 0x3ff, SCRIPT},
    {0x400, 0x52f, SCRIPT + 1},
    {0x590, 0x5ff, SCRIPT + 2},
    {0x600, 0x77f, SCRIPT + 3},
    {0x900, 0xdff, SCRIPT + 4},
    {0xe00, 0xeff, SCRIPT + 5},
    {0x1100, 0x11ff, SCRIPT + 6},
    {0x2000, 0x2bff, MARK},
    {0x3000, 0x303f, MARK},
    {0x3040, 0x30ff, SCRIPT + 7},
    {0x3400, 0x9fff, SCRIPT + 8},
    {0xac00, 0xd7af, SCRIPT + 6},
    {0xfe00, 0xfe0f, SCRIPT + 9},
    {0xff00, 0xff0f, MARK},
    {0x1f000, 0x1faff, SCRIPT + 9},
    {0x20000, 0x323af, SCRIPT + 8},
};

typedef struct token {
    uint64_t key; /* equal: the same token; 0: the window is shut */
    int kind;
} token;

static int kind_of_point(const char *p, int len)
{
    static const uint8_t lead[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t cp = (uint8_t)p[0] & lead[len];
    for (int i = 1; i < len; i++)
        cp = cp << 6 | ((uint8_t)p[i] & 0x3f);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (cp >= blocks[i].first && cp <= blocks[i].last)
            return blocks[i].kind;
    return WORD;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The kind of the character at p[0]; *len: its bytes. */
static int kind_of_character(const char *p, size_t n, int *len)
{
    char c = p[0];
    *len = weir_utf8_len(p, n);
    if (*len == 0) {
        *len = 1;
        return PIECE;
    }
    if (*len > 1)
        return kind_of_point(p, *len);
    if (c >= '0' && c <= '9')
        return NUMBER;
    if (c >= 'A' && c <= 'Z')
        return CAPITAL;
    if (c >= 'a' && c <= 'z')
        return WORD;
    return is_space(c) ? SPACE : MARK;
}

/* The first character that is neither mark nor space decides, else a mark, else a space. */
static int kind_of_text(weir_str text)
{
    int kind = SPACE, len;
    for (size_t i = 0; i < text.n; i += (size_t)len) {
        int k = kind_of_character(text.p + i, text.n - i, &len);
        if (k != SPACE && k != MARK)
            return k;
        if (k == MARK)
            kind = MARK;
    }
    return kind;
}

/* A token without bytes, or a special one, is the same as itself alone. */
static token make_token(const weir_neurons *s, int32_t id)
{
    weir_str text = weir_neurons_token(s, id);
    if (text.n == 0 || weir_neurons_token_special(s, id))
        return (token){((uint64_t)id + 1) * 0x9e3779b97f4a7c15 | 1, text.n == 0 ? WORD : SPECIAL};
    size_t from = 0;
    while (from < text.n && text.p[from] == ' ')
        from++;
    uint64_t key = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = from < text.n ? from : 0; i < text.n; i++) {
        uint8_t c = (uint8_t)text.p[i];
        key = (key ^ (c >= 'A' && c <= 'Z' ? c | 0x20 : c)) * 0x100000001b3;
    }
    return (token){key | 1, kind_of_text(text)};
}

/* --- contexts */

typedef struct context {
    token at[WINDOWS];
    uint32_t open; /* sum of the weights of the open windows */
} context;

static context make_context(const weir_neurons *s, const weir_neurons_context *c)
{
    context x = {0};
    for (int w = 0; w < WINDOWS; w++) {
        int64_t i = w == NEXT ? c->hit + 1 : c->hit - w;
        if (i < 0 || i >= c->n)
            continue;
        x.at[w] = make_token(s, c->id[i]);
        x.open += weight[w];
    }
    return x;
}

static uint32_t similarity(const context *a, const context *b)
{
    uint32_t shared = 0;
    for (int w = 0; w < WINDOWS; w++)
        if (a->at[w].key == b->at[w].key && a->at[w].key != 0)
            shared += weight[w];
    int kind = a->at[0].kind;
    if (a->at[0].key != b->at[0].key && kind == b->at[0].kind && kind != WORD)
        shared += kind == NUMBER ? weight[0] * 3 / 4 : weight[0] * 5 / 8;
    return shared * ONE / (a->open + b->open - shared);
}

/* --- clusters: each has the number of its first context */

typedef struct linkage {
    int n;
    uint64_t *sum; /* [n, n] of similarities of the contexts of two clusters */
    int *size;     /* [n] contexts; 0: merged into another */
    int *best;     /* [n] the most similar cluster of those behind it, or -1 */
    int *into;     /* [n] the cluster of each context */
} linkage;

static void link_free(linkage *l)
{
    weir_free(l->sum);
    weir_free(l->size);
    weir_free(l->best);
    weir_free(l->into);
}

/* l is to be freed after a failure too. */
static weir_status link_new(linkage *l, int n, weir_err *err)
{
    size_t m = (size_t)n;
    *l = (linkage){.n = n};
    l->sum = weir_calloc(m * m, sizeof *l->sum);
    l->size = weir_calloc(m, sizeof *l->size);
    l->best = weir_calloc(m, sizeof *l->best);
    l->into = weir_calloc(m, sizeof *l->into);
    return l->sum && l->size && l->best && l->into ? WEIR_OK : weir_nomem(err, "the clusters of a neuron");
}

static void find_best(linkage *l, int i)
{
    const uint64_t *sum = l->sum + (int64_t)i * l->n;
    int best = -1;
    for (int j = i + 1; j < l->n; j++)
        if (l->size[j] && (best < 0 || sum[j] * (uint64_t)l->size[best] > sum[best] * (uint64_t)l->size[j]))
            best = j;
    l->best[i] = best;
}

/* The cluster whose best partner is the most similar of all, or -1: none is similar enough. */
static int best_pair(const linkage *l)
{
    int best = -1;
    uint64_t sum = 0, pairs = 1;
    for (int i = 0; i < l->n; i++) {
        if (!l->size[i] || l->best[i] < 0)
            continue;
        uint64_t s = l->sum[(int64_t)i * l->n + l->best[i]], p = (uint64_t)l->size[i] * (uint64_t)l->size[l->best[i]];
        if (s >= CUT * p && (best < 0 || s * pairs > sum * p)) {
            best = i;
            sum = s;
            pairs = p;
        }
    }
    return best;
}

/* b joins a < b. Similarities to the union are means of those to its parts: no other cluster's best gets better by it.
 */
static void merge(linkage *l, int a, int b)
{
    int64_t n = l->n;
    for (int c = 0; c < n; c++) {
        l->sum[a * n + c] += l->sum[b * n + c];
        l->sum[c * n + a] = l->sum[a * n + c];
    }
    l->size[a] += l->size[b];
    l->size[b] = 0;
    for (int c = 0; c < n; c++)
        if (l->into[c] == b)
            l->into[c] = a;
    for (int c = 0; c < b; c++)
        if (l->size[c] && (c == a || l->best[c] == a || l->best[c] == b))
            find_best(l, c);
}

static void link_all(linkage *l, const context *x)
{
    for (int i = 0; i < l->n; i++) {
        l->size[i] = 1;
        l->into[i] = i;
        for (int j = i + 1; j < l->n; j++)
            l->sum[(int64_t)i * l->n + j] = l->sum[(int64_t)j * l->n + i] = similarity(&x[i], &x[j]);
    }
    for (int i = 0; i < l->n; i++)
        find_best(l, i);
    for (int a; (a = best_pair(l)) >= 0;)
        merge(l, a, l->best[a]);
}

/* --- the answer */

static double effective(const linkage *l)
{
    double entropy = 0;
    for (int i = 0; i < l->n; i++)
        if (l->size[i]) {
            double share = (double)l->size[i] / l->n;
            entropy -= share * log(share);
        }
    return exp(entropy);
}

/* Numbers the clusters by their first contexts. place [l->n]: where in the list each context stands. */
static weir_neuron_clusters count_clusters(const linkage *l, const int *place, int32_t *cluster)
{
    int number[MOST];
    weir_neuron_clusters out = {.places = l->n};
    for (int i = 0; i < l->n; i++) {
        if (l->into[i] == i)
            number[i] = (int)out.clusters++;
        if (cluster)
            cluster[place[i]] = number[l->into[i]];
    }
    double e = effective(l);
    out.effective = e < 1 ? l->n > 0 : e > (double)out.clusters ? (double)out.clusters : e;
    return out;
}

weir_status weir_neurons_clusters(const weir_neurons *s, int t, int64_t i, weir_neurons_list which,
                                  weir_neuron_clusters *out, int32_t *cluster, weir_err *err)
{
    int64_t k = s->o.k;
    *out = (weir_neuron_clusters){0};
    weir_neuron_hit *hit = weir_calloc((size_t)k, sizeof *hit);
    context *x = weir_calloc(MOST, sizeof *x);
    if (!hit || !x) {
        weir_free(hit);
        weir_free(x);
        return weir_nomem(err, "the clusters of a neuron");
    }
    int place[MOST], n = 0;
    int64_t listed = weir_neurons_hits(s, t, i, which, hit);
    for (int64_t j = 0; cluster && j < k; j++)
        cluster[j] = -1;
    for (int j = 0; j < listed && j < MOST; j++) {
        weir_neurons_context c = weir_neurons_context_of(s, hit[j].doc, hit[j].pos, -1);
        if (c.n == 0)
            continue;
        place[n] = j;
        x[n++] = make_context(s, &c);
    }
    linkage l = {0};
    weir_status st = n > 0 ? link_new(&l, n, err) : WEIR_OK;
    if (st == WEIR_OK && n > 0) {
        link_all(&l, x);
        *out = count_clusters(&l, place, cluster);
    }
    link_free(&l);
    weir_free(hit);
    weir_free(x);
    return st;
}

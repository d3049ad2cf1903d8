/* support/lens_page.c: logit-lens' pages and pictures of made-up measurements, for tests/pages/test_lens_page.py.
 *
 *     lens_page KIND FORMAT TOKENIZER < TEXT
 *
 * KIND    small    13 rows, the documents of TEXT (a line each), ten tokens a cell, all statistics
 *         target   the same with a target and a contrast, one position in four left out
 *         sites    three sites
 *         one      one row, one position, one token
 *         empty    no position at all
 *         ids      as small, without a tokenizer
 *         hostile  the ids of the vocabulary in order, and names that try to be markup
 *         long     8,000 positions in one document
 * FORMAT  html, svg, plot, or json: each piece as an object on a line
 *
 * Values are a hash of the place; at position 0, and in the row "embed", they are a hundred times as large. Pieces have
 * at most 50 positions.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "lens/view.h"

enum { PIECE = 50, MOST_LINES = 24, MOST_K = 10, LONG = 8000 };

static void must(weir_status status, const weir_err *err)
{
    if (status) {
        fprintf(stderr, "lens_page: %s\n", err->msg);
        exit(1);
    }
}

static uint32_t hash(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t x = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu ^ (c + 0x165667b1u) * 0xc2b2ae35u;
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    return x ^ x >> 15;
}

static float unit(uint32_t h)
{
    return (float)(h >> 8) / 16777216.0f;
}

/* --- the JSON sink */

typedef struct json_sink {
    weir_lens_sink sink;
    int n_lines;
    int64_t k;
} json_sink;

static weir_status json_begin(weir_lens_sink *s, const weir_lens_about *a, weir_err *err)
{
    json_sink *j = (json_sink *)s;
    (void)err;
    j->n_lines = a->n_lines;
    j->k = a->k;
    return WEIR_OK;
}

static void put_ints(weir_jsonw *w, const char *key, const int32_t *x, int64_t n)
{
    weir_jsonw_key(w, key);
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n; i++)
        weir_jsonw_int(w, x[i]);
    weir_jsonw_end(w);
}

static void put_floats(weir_jsonw *w, const char *key, const float *x, int64_t n)
{
    weir_jsonw_key(w, key);
    weir_jsonw_array(w);
    for (int64_t i = 0; x && i < n; i++)
        weir_jsonw_float(w, x[i]);
    weir_jsonw_end(w);
}

static weir_status json_piece(weir_lens_sink *s, const weir_lens_piece *p, weir_err *err)
{
    const json_sink *j = (json_sink *)s;
    int64_t cells = j->n_lines * p->n;
    weir_jsonw w;
    (void)err;
    weir_jsonw_init(&w, s->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_int(&w, "doc", p->doc);
    weir_jsonw_key(&w, "pos");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < p->n; i++)
        weir_jsonw_int(&w, p->pos[i]);
    weir_jsonw_end(&w);
    put_ints(&w, "id", p->id, p->n);
    put_ints(&w, "next", p->next, p->n);
    put_ints(&w, "target", p->target, p->n);
    for (int i = 0; i < WEIR_STAT_COUNT; i++)
        put_floats(&w, weir_lens_stat_name[i], p->stat[i], cells);
    put_ints(&w, "top_id", p->top_id, cells * j->k);
    put_floats(&w, "top_logprob", p->top_logprob, cells * j->k);
    weir_jsonw_end(&w);
    fputc('\n', s->out);
    return WEIR_OK;
}

static weir_status json_end(weir_lens_sink *s, weir_err *err)
{
    (void)s;
    (void)err;
    return WEIR_OK;
}

static void json_free(weir_lens_sink *s)
{
    free(s);
}

static weir_lens_sink *sink_of(const char *format, const weir_tokenizer *tok)
{
    if (strcmp(format, "html") == 0)
        return weir_lens_html_new(stdout, tok);
    if (strcmp(format, "svg") == 0)
        return weir_lens_svg_new(stdout, tok);
    if (strcmp(format, "plot") == 0)
        return weir_lens_plot_new(stdout, tok);
    json_sink *j = calloc(1, sizeof *j);
    j->sink = (weir_lens_sink){json_begin, json_piece, json_end, json_free, stdout, tok};
    return &j->sink;
}

/* --- made-up measurements */

typedef struct made {
    const weir_lens_about *a;
    int64_t pos[PIECE];
    int32_t id[PIECE], next[PIECE], target[PIECE];
    float stat[WEIR_STAT_COUNT][MOST_LINES * PIECE];
    int32_t top_id[MOST_LINES * PIECE * MOST_K];
    float top_logprob[MOST_LINES * PIECE * MOST_K];
} made;

static float value(const made *m, weir_lens_stat s, int l, int64_t pos, uint32_t h)
{
    float depth = (float)(m->a->n_lines - l) / (float)m->a->n_lines, u = unit(h);
    float far = pos == 0 || m->a->line[l].layer < 0 ? 100 : 1;
    if (h % 97 == 0)
        return s == WEIR_STAT_RANK ? 0 : NAN;
    switch (s) {
    case WEIR_STAT_PROB:
        return u * (1 - depth);
    case WEIR_STAT_LOGIT:
        return 20 * u - 10 * depth;
    case WEIR_STAT_RANK:
        return floorf(1 + 3000 * u * u * u * depth * depth);
    case WEIR_STAT_JSD:
        return 0.69f * u * depth;
    case WEIR_STAT_CONTRAST:
        return 8 * u - 4;
    default:
        return far * 9 * u * depth;
    }
}

static void fill_cell(made *m, uint32_t doc, int l, int64_t i, int64_t n)
{
    const weir_lens_about *a = m->a;
    int64_t cell = l * n + i;
    uint32_t pos = (uint32_t)m->pos[i], place = hash(doc, pos, (uint32_t)l);
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        m->stat[s][cell] = value(m, (weir_lens_stat)s, l, m->pos[i], hash(place, (uint32_t)s, 7));
    float logprob = -unit(place) * (float)(a->n_lines - l) / 3;
    for (int64_t k = 0; k < a->k; k++) {
        bool next = k == 0 && m->next[i] >= 0 && place % 3 == 0;
        m->top_id[cell * a->k + k] = next ? m->next[i] : (int32_t)(hash(place, (uint32_t)k, 1) % (uint32_t)a->V);
        m->top_logprob[cell * a->k + k] = logprob -= 2 * unit(hash(place, (uint32_t)k, 2));
    }
}

/* One document's ids: pieces of every position, or of three in four. */
static void show(weir_lens_sink *sink, made *m, uint32_t doc, const int32_t *id, int64_t n, bool gaps, weir_err *err)
{
    const weir_lens_about *a = m->a;
    for (int64_t at = 0; at < n;) {
        weir_lens_piece p = {.doc = doc,
                             .pos = m->pos,
                             .id = m->id,
                             .next = m->next,
                             .target = m->target,
                             .top_id = m->top_id,
                             .top_logprob = m->top_logprob,
                             .doc_begins = at == 0};
        for (; at < n && p.n < PIECE; at++)
            if (!gaps || at % 4 != 2) {
                m->pos[p.n] = at;
                m->id[p.n] = id[at];
                m->next[p.n] = at + 1 < n ? id[at + 1] : -1;
                m->target[p.n++] = a->target ? (int32_t)(hash(doc, (uint32_t)at, 3) % (uint32_t)a->V) : -1;
            }
        for (int l = 0; l < a->n_lines; l++)
            for (int64_t i = 0; i < p.n; i++)
                fill_cell(m, doc, l, i, p.n);
        for (int s = 0; s < WEIR_STAT_COUNT; s++)
            p.stat[s] = a->has & 1u << s ? m->stat[s] : NULL;
        p.doc_ends = at == n;
        must(sink->piece(sink, &p, err), err);
    }
}

static void show_text(weir_lens_sink *sink, made *m, const weir_tokenizer *tok, bool gaps, bool one, weir_err *err)
{
    char line[4096];
    weir_tokens t = {0};
    for (uint32_t doc = 0; fgets(line, sizeof line, stdin); doc++) {
        must(weir_tokenizer_encode(tok, line, strcspn(line, "\n"), &t, err), err);
        show(sink, m, doc, t.id, one ? 1 : t.n, gaps, err);
    }
    weir_tokens_free(&t);
}

static void show_numbers(weir_lens_sink *sink, made *m, int64_t n, int64_t V, weir_err *err)
{
    int32_t *id = malloc(sizeof *id * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        id[i] = (int32_t)(i % V);
    show(sink, m, 7, id, n, false, err);
    free(id);
}

/* --- heads */

static void name_lines(weir_lens_line *line, int n, bool sites)
{
    static char name[MOST_LINES][16], hook[MOST_LINES][40];
    static const char *const site[3] = {"resid_mid", "mlp_out", "resid_post"};
    for (int l = 0; l < n; l++) {
        const char *s = sites ? site[l % 3] : "resid_post";
        int layer = sites ? l / 3 : l;
        snprintf(name[l], sizeof name[l], sites ? "L%d %s" : "L%d", layer, s + (sites ? 6 * (l % 3 != 1) : 0));
        snprintf(hook[l], sizeof hook[l], "blocks.%d.hook_%s", layer, s);
        line[l] = (weir_lens_line){name[l], hook[l], s, layer};
    }
    if (!sites && n > 1)
        line[0] = (weir_lens_line){"embed", "blocks.0.hook_resid_pre", "resid_post", -1};
    line[n - 1] = (weir_lens_line){"out", "blocks.12.hook_resid_post", "resid_post", 12};
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: lens_page KIND FORMAT TOKENIZER < TEXT\n", stderr);
        return 2;
    }
    const char *kind = argv[1];
    bool hostile = strcmp(kind, "hostile") == 0, one = strcmp(kind, "one") == 0, target = strcmp(kind, "target") == 0;
    bool sites = strcmp(kind, "sites") == 0, ids = strcmp(kind, "ids") == 0;
    weir_err err = {0};
    weir_tokenizer *tok = NULL;
    weir_lens_line line[MOST_LINES];
    static made m;
    must(weir_tokenizer_open(&tok, argv[3], NULL, &err), &err);
    int64_t V = weir_tokenizer_size(tok);
    unsigned has = (1u << WEIR_STAT_COUNT) - 1 - (target ? 0 : 1u << WEIR_STAT_CONTRAST);
    const char *name = hostile ? "</script><script>hacked=4</script>\xff<!-- & \"" : "made up";
    weir_lens_about a = {.run = {.model = name, .fingerprint = "00ff", .tokenizer = "11ee", .source = name, .bos = true},
                         .norm = "recompute",
                         .lens = "logit lens",
                         .target = target ? "next" : NULL,
                         .line = line,
                         .n_lines = one     ? 1
                                    : sites ? 16
                                            : 13,
                         .k = one ? 1 : MOST_K,
                         .V = V,
                         .padding_from = V,
                         .shown = WEIR_STAT_KL,
                         .has = has};
    if (target) {
        a.contrast[0] = " yes";
        a.contrast[1] = " no";
    }
    name_lines(line, a.n_lines, sites);
    m.a = &a;
    weir_lens_sink *sink = sink_of(argv[2], ids ? NULL : tok);
    must(sink->begin(sink, &a, &err), &err);
    if (hostile || strcmp(kind, "long") == 0)
        show_numbers(sink, &m, hostile ? V : LONG, V, &err);
    else if (strcmp(kind, "empty") != 0)
        show_text(sink, &m, tok, target, one, &err);
    must(sink->end(sink, &err), &err);
    sink->free(sink);
    weir_tokenizer_free(tok);
    return 0;
}

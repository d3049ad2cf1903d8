/* search/weights_find.c: tokens read from the weights, found.
 *
 * The order of arithmetic, so that it can be repeated to the bit: a neuron's key or value is turned once into a
 * direction a [C], in double and rounded to fp32 at the end (`direct`); the score of a token is the kernels' dot
 * product of a with the token's row of the table as it is stored: one chain of fused multiply-adds in ascending c from
 * +0. The mean that a LayerNorm takes away is taken from a: sum a_c (e_c - mean e) = sum (a_c - mean a) e_c. So nothing
 * is done to the vocabulary, and the packed unembedding that runs use serves here too (for in-tokens when it is tied).
 *
 * The neurons of all tables form one row of neurons, cut into tiles; each tile meets the vocabulary part by part, and
 * of each part's scores the best and the worst are kept. Memory: BUDGET, and what is kept.
 */
#include <math.h>
#include <string.h>

#include "model/spec.h"
#include "search/weights.h"

enum {
    BUDGET = 48 << 20,     /* bytes: directions, scores */
    EMBED_BYTES = 8 << 20, /* of an untied token table that are packed at a time */
    LEAST_TILE = 16,
    MOST_TILE = 1024, /* neurons */
    LANES = 16        /* scores that are looked at together */
};

typedef struct finder {
    const weir_neurons *s;
    const weir_model *m;
    const weir_spec *spec;
    const weir_neurons_weights_options *o;
    const weir_kern *kern;
    int threads;
    int64_t vocab;   /* ids below this are ranked */
    weir_weights *w; /* is being filled */
    int64_t neurons; /* of all tables that are computed */
    int64_t tile, embed_rows;
    float *embed;  /* [embed_rows, C] of an untied token table */
    float *a;      /* [tile, C] directions */
    float *gain;   /* [3, C] before the MLP, behind it, final */
    double *wide;  /* [threads, C] */
    float *scores; /* [tile, rows of the largest part] */
    void *gemm;
    int64_t *unit;              /* [tile] */
    int32_t *size;              /* [tile] tokens in the lists */
    weir_weight_token **end[2]; /* [tile] the neuron's lists: lowest, highest */
    double done, all;           /* multiply-adds */
} finder;

void weir_neurons_weights_options_init(weir_neurons_weights_options *o)
{
    *o = (weir_neurons_weights_options){.n = 10};
}

/* --- which tables */

static bool ends(const char *s, const char *tail)
{
    const size_t n = strlen(s), k = strlen(tail);
    return n >= k && !strcmp(s + n - k, tail);
}

static bool hidden(const weir_neurons_table *t)
{
    return t->layer >= 0 &&
           (ends(t->hook, ".mlp.hook_pre") || ends(t->hook, ".mlp.hook_pre_linear") || ends(t->hook, ".mlp.hook_post"));
}

static int64_t unit_of(const weir_neurons_table *t, int64_t i)
{
    return t->units ? t->units[i] : i;
}

/* Are they the same neurons, looked at elsewhere? */
static bool same_neurons(const weir_neurons_table *a, const weir_neurons_table *b)
{
    if (!hidden(a) || a->layer != b->layer || a->n != b->n)
        return false;
    for (int64_t i = 0; i < a->n; i++)
        if (unit_of(a, i) != unit_of(b, i))
            return false;
    return true;
}

/* The first table that has the same neurons as table t, which may be t itself: the one that is computed. */
static int first_of(const weir_neurons *s, int t)
{
    int f = 0;
    while (f < t && !same_neurons(&s->table[f].pub, &s->table[t].pub))
        f++;
    return f;
}

static bool computed(const weir_neurons *s, int t)
{
    return hidden(&s->table[t].pub) && first_of(s, t) == t;
}

static int64_t all_neurons(const weir_neurons *s)
{
    int64_t n = 0;
    for (int t = 0; t < s->n_tables; t++)
        n += computed(s, t) ? s->table[t].pub.n : 0;
    return n;
}

static bool has_side(const weir_spec *spec, int side)
{
    return side != WEIR_SIDE_UP || spec->gated;
}

double weir_neurons_weights_cost(const weir_neurons *s, const weir_model *m)
{
    const weir_spec *spec = weir_model_spec(m);
    return (double)all_neurons(s) * (spec->gated ? 3 : 2) * (double)spec->V * (double)spec->C;
}

static weir_status check(const finder *f, weir_err *err)
{
    const weir_spec *spec = f->spec;
    if (f->o->threads < 0)
        return weir_fail(err, WEIR_E_ARG, "threads is %d: it cannot be negative", f->o->threads);
    if (f->o->vocab < 0 || f->o->vocab > spec->V)
        return weir_fail(err, WEIR_E_ARG, "a vocabulary of %lld tokens: the model has %lld", (long long)f->o->vocab,
                         (long long)spec->V);
    for (int t = 0; t < f->s->n_tables; t++) {
        const weir_neurons_table *p = &f->s->table[t].pub;
        if (hidden(p) && (p->layer >= spec->L || p->width != spec->F))
            return weir_fail(err, WEIR_E_ARG,
                             "%s of %lld units is not of this model, which has %lld layers of %lld units", p->hook,
                             (long long)p->width, (long long)spec->L, (long long)spec->F);
    }
    return WEIR_OK;
}

/* --- the vocabulary in parts: the packed unembedding, or a token table of its own that is packed part by part */

static bool own_table(const finder *f, int side)
{
    return side != WEIR_SIDE_OUT && !weir_model_info_of(f->m)->tied;
}

static int64_t parts(const finder *f, int side)
{
    if (!own_table(f, side))
        return weir_model_head_parts(f->m);
    return (weir_model_embed_rows(f->m) + f->embed_rows - 1) / f->embed_rows;
}

typedef struct embed_rows {
    const finder *f;
    int64_t first;
} embed_rows;

static void embed_row(void *ctx, int64_t i, int thread)
{
    const embed_rows *e = ctx;
    (void)thread;
    weir_model_embed_row(e->f->m, (int32_t)(e->first + i), e->f->embed + i * e->f->spec->C);
}

static weir_status take(const finder *f, int side, int64_t part, weir_head *out, weir_err *err)
{
    if (!own_table(f, side))
        return weir_model_head(f->m, part, INT64_MAX, out, err);
    const int64_t first = part * f->embed_rows, left = weir_model_embed_rows(f->m) - first, c = f->spec->C;
    *out = (weir_head){.first = first, .n = left < f->embed_rows ? left : f->embed_rows};
    weir_parallel_for(f->threads, out->n, 64, embed_row, &(embed_rows){f, first});
    const weir_tensor t = {.dtype = WEIR_F32,
                           .rank = 2,
                           .shape = {out->n, c},
                           .data = f->embed,
                           .bytes = (size_t)(out->n * c) * sizeof(float)};
    weir_panels *panels;
    WEIR_TRY(weir_panels_new(&panels, &(weir_wview){.t = &t, .n = out->n, .k = c, .stride = c}, f->threads, err));
    out->w = panels;
    return WEIR_OK;
}

static void give_back(const finder *f, int side, int64_t part, const weir_head *h)
{
    if (own_table(f, side))
        weir_panels_free((weir_panels *)h->w);
    else
        weir_model_head_done(f->m, part);
}

static weir_status largest_part(const finder *f, int64_t *out, weir_err *err)
{
    *out = own_table(f, WEIR_SIDE_IN) ? f->embed_rows : 1;
    for (int64_t i = 0; i < weir_model_head_parts(f->m); i++) {
        weir_head h;
        WEIR_TRY(weir_model_head(f->m, i, INT64_MAX, &h, err));
        *out = h.n > *out ? h.n : *out;
        weir_model_head_done(f->m, i);
    }
    return WEIR_OK;
}

/* --- room */

static int64_t between(int64_t x, int64_t least, int64_t most)
{
    x = x > most ? most : x;
    return x < least ? least : x;
}

static void *floats(int64_t rows, int64_t cols)
{
    int64_t n, bytes;
    return weir_mul64(rows, cols, &n) && weir_mul64(n, (int64_t)sizeof(float), &bytes)
               ? weir_alloc_aligned((size_t)bytes)
               : NULL;
}

static weir_status make_room(finder *f, weir_err *err)
{
    const int64_t c = f->spec->C, row = c * (int64_t)sizeof(float);
    int64_t most;
    f->embed_rows = between(EMBED_BYTES / row / WEIR_PANEL * WEIR_PANEL, WEIR_PANEL, weir_model_embed_rows(f->m));
    WEIR_TRY(largest_part(f, &most, err));
    f->tile = between(BUDGET / (2 * row + most * (int64_t)sizeof(float)), LEAST_TILE, MOST_TILE);
    f->tile = between(f->tile, 1, f->neurons);
    const size_t tile = (size_t)f->tile;
    if (own_table(f, WEIR_SIDE_IN) && !(f->embed = floats(f->embed_rows, c)))
        return weir_nomem(err, "a part of the token table");
    f->a = floats(f->tile, c);
    f->scores = floats(f->tile, most);
    f->gemm = weir_alloc_aligned(weir_gemm_scratch(f->tile, c, f->threads));
    f->gain = weir_calloc((size_t)c, 3 * sizeof *f->gain);
    f->wide = weir_calloc((size_t)c, (size_t)f->threads * sizeof *f->wide);
    f->unit = weir_calloc(tile, sizeof *f->unit);
    f->size = weir_calloc(tile, sizeof *f->size);
    f->end[0] = weir_calloc(tile, sizeof *f->end[0]);
    f->end[1] = weir_calloc(tile, sizeof *f->end[1]);
    if (f->a && f->scores && f->gemm && f->gain && f->wide && f->unit && f->size && f->end[0] && f->end[1])
        return WEIR_OK;
    return weir_nomem(err, "scores of tokens");
}

static void free_room(finder *f)
{
    weir_free_aligned(f->embed);
    weir_free_aligned(f->a);
    weir_free_aligned(f->scores);
    weir_free_aligned(f->gemm);
    weir_free(f->gain);
    weir_free(f->wide);
    weir_free(f->unit);
    weir_free(f->size);
    weir_free(f->end[0]);
    weir_free(f->end[1]);
}

/* --- directions */

enum { BEFORE, BEHIND, FINAL };

static void read_gain(finder *f, int which, const weir_normw *w)
{
    for (int64_t c = 0; c < f->spec->C; c++)
        f->gain[which * f->spec->C + c] = w->w ? f->spec->norm_offset + w->w[c] : 1;
}

/* A norm without its scale, which depends on the text: takes the mean away (LayerNorm), and gives the gain. */
static void through(const finder *f, int norm, double *z)
{
    const int64_t n = f->spec->C;
    double sum = 0;
    if (!f->spec->rms)
        for (int64_t c = 0; c < n; c++)
            sum += z[c];
    const double mean = sum / (double)n;
    for (int64_t c = 0; c < n; c++)
        z[c] = (z[c] - mean) * f->gain[norm * n + c];
}

/* What a key sees of the stream: the transpose of the norm before it, then of the embedding's scale. */
static void key_through(const finder *f, double *z)
{
    const int64_t n = f->spec->C;
    double sum = 0;
    for (int64_t c = 0; c < n; c++)
        z[c] *= f->gain[BEFORE * n + c];
    if (!f->spec->rms)
        for (int64_t c = 0; c < n; c++)
            sum += z[c];
    const double mean = sum / (double)n;
    for (int64_t c = 0; c < n; c++)
        z[c] = (z[c] - mean) * f->spec->embed_scale;
}

typedef struct directing {
    const finder *f;
    float *a;
    bool out;
} directing;

static void direct(void *ctx, int64_t i, int thread)
{
    const directing *d = ctx;
    const finder *f = d->f;
    const int64_t n = f->spec->C;
    float *a = d->a + i * n;
    double *z = f->wide + thread * n;
    for (int64_t c = 0; c < n; c++)
        z[c] = a[c];
    if (d->out) {
        if (f->spec->post_norms)
            through(f, BEHIND, z);
        through(f, FINAL, z);
    } else {
        key_through(f, z);
    }
    for (int64_t c = 0; c < n; c++)
        a[c] = (float)z[c];
}

/* Neurons [from, to) of table t, into the tile at row `at`. */
static weir_status load(finder *f, int t, int side, int64_t from, int64_t to, int64_t at, weir_err *err)
{
    static const weir_mlp_matrix matrix[] = {
        [WEIR_SIDE_IN] = WEIR_MLP_PRE, [WEIR_SIDE_UP] = WEIR_MLP_UP, [WEIR_SIDE_OUT] = WEIR_MLP_DOWN};
    static const weir_neuron_matrix neuron[] = {[WEIR_SIDE_IN] = WEIR_WEIGHTS_KEY,
                                                [WEIR_SIDE_UP] = WEIR_WEIGHTS_UP,
                                                [WEIR_SIDE_OUT] = WEIR_WEIGHTS_VALUE};
    const weir_neurons_table *p = &f->s->table[t].pub;
    const weir_layer *norms;
    weir_normw last;
    WEIR_TRY(weir_model_norms(f->m, p->layer, &norms, err));
    WEIR_TRY(weir_model_final(f->m, &last, err));
    read_gain(f, BEFORE, &norms->ln2);
    read_gain(f, BEHIND, &norms->ln2_post);
    read_gain(f, FINAL, &last);
    for (int64_t i = from; i < to; i++) {
        const int64_t r = at + i - from;
        f->unit[r] = unit_of(p, i);
        f->size[r] = 0;
        for (int end = 0; end < 2; end++)
            f->end[end][r] = weir_weights_list(f->w, t, (weir_weight_side)side, end) + i * f->w->n;
    }
    float *a = f->a + at * f->spec->C;
    weir_model_mlp_units(f->m, p->layer, matrix[side], f->unit + at, to - from, a);
    weir_edit_add_neurons(f->o->edits, f->o->n_edits, p->layer, neuron[side], f->unit + at, to - from, a);
    weir_parallel_for(f->threads, to - from, 16, direct, &(directing){f, a, side == WEIR_SIDE_OUT});
    return WEIR_OK;
}

/* Neurons [from, from + n) of the row of all that are computed. */
static weir_status load_tile(finder *f, int side, int64_t from, int64_t n, weir_err *err)
{
    int64_t first = 0; /* of the table in the row */
    for (int t = 0; t < f->s->n_tables; t++) {
        if (!computed(f->s, t))
            continue;
        const int64_t size = f->s->table[t].pub.n;
        const int64_t a = from > first ? from - first : 0, b = between(from + n - first, 0, size);
        if (a < b)
            WEIR_TRY(load(f, t, side, a, b, first + a - from, err));
        first += size;
    }
    return WEIR_OK;
}

/* --- the best and the worst */

/* Puts a token behind those of the first n - 1 that are as good. Ids come in ascending order. */
static void insert(weir_weight_token *list, int64_t n, float score, int32_t id, bool highest)
{
    int64_t at = n - 1;
    for (; at > 0 && (highest ? list[at - 1].score < score : list[at - 1].score > score); at--)
        list[at] = list[at - 1];
    list[at] = (weir_weight_token){id, score};
}

typedef struct ranking {
    const finder *f;
    int64_t first, n, ld; /* of the part */
} ranking;

static bool any_beyond(const float *x, float low, float high)
{
    int any = 0;
    for (int j = 0; j < LANES; j++)
        any |= (x[j] > high) | (x[j] < low);
    return any != 0;
}

static void rank_one(const finder *f, int64_t r, float score, int32_t id)
{
    weir_weight_token *low = f->end[0][r], *high = f->end[1][r];
    const int64_t most = f->w->n, size = f->size[r];
    if (isnan(score))
        return;
    if (size < most) {
        f->size[r]++;
        insert(low, size + 1, score, id, false);
        insert(high, size + 1, score, id, true);
        return;
    }
    if (score < low[most - 1].score)
        insert(low, most, score, id, false);
    if (score > high[most - 1].score)
        insert(high, most, score, id, true);
}

static void rank_row(void *ctx, int64_t r, int thread)
{
    const ranking *k = ctx;
    const finder *f = k->f;
    const float *x = f->scores + r * k->ld;
    const int64_t most = f->w->n;
    (void)thread;
    for (int64_t v = 0; v < k->n;) {
        const bool full = f->size[r] == most && v + LANES <= k->n;
        const int64_t step = full ? LANES : 1;
        if (!full || any_beyond(x + v, f->end[0][r][most - 1].score, f->end[1][r][most - 1].score))
            for (int64_t j = v; j < v + step; j++)
                rank_one(f, r, x[j], (int32_t)(k->first + j));
        v += step;
    }
}

/* A tile of n neurons and one part of the vocabulary. */
static void meet(finder *f, int64_t n, const weir_head *h)
{
    const int64_t c = f->spec->C, left = f->vocab - h->first;
    const weir_gemm g = {.m = n,
                         .x = f->a,
                         .ldx = c,
                         .kn = c,
                         .n_out = 1,
                         .out = {{.w = h->w, .y = f->scores, .ldy = h->n}},
                         .scratch = f->gemm};
    weir_gemm_run(f->kern, f->threads, &g);
    const ranking k = {f, h->first, between(left, 0, h->n), h->n};
    weir_parallel_for(f->threads, n, 8, rank_row, (void *)&k);
}

/* --- all of it */

static weir_status tell(finder *f, double more)
{
    f->done += more;
    if (f->o->progress)
        f->o->progress(f->o->user, f->done / f->all);
    return f->o->stop && f->o->stop(f->o->user) ? WEIR_STOP : WEIR_OK;
}

static weir_status find_tile(finder *f, int side, int64_t from, int64_t n, weir_err *err)
{
    const int64_t n_parts = parts(f, side);
    WEIR_TRY(load_tile(f, side, from, n, err));
    for (int64_t i = 0; i < n_parts; i++) {
        weir_head h;
        WEIR_TRY(take(f, side, i, &h, err));
        meet(f, n, &h);
        give_back(f, side, i, &h);
        WEIR_TRY(tell(f, (double)n / (double)n_parts));
    }
    return WEIR_OK;
}

static weir_status find_side(finder *f, int side, weir_err *err)
{
    for (int t = 0; t < f->s->n_tables; t++)
        if (hidden(&f->s->table[t].pub))
            WEIR_TRY(weir_weights_room(f->w, t, (weir_weight_side)side, err));
    for (int64_t from = 0; from < f->neurons; from += f->tile) {
        const int64_t left = f->neurons - from;
        WEIR_TRY(find_tile(f, side, from, left < f->tile ? left : f->tile, err));
    }
    return WEIR_OK;
}

/* Tables with the neurons of an earlier one. */
static void copy_twins(finder *f)
{
    for (int t = 0; t < f->s->n_tables; t++) {
        const weir_neurons_table *p = &f->s->table[t].pub;
        if (!hidden(p) || computed(f->s, t))
            continue;
        const int from = first_of(f->s, t);
        for (int side = 0; side < WEIR_SIDES; side++)
            for (int end = 0; end < 2; end++)
                if (f->w->table[t].list[side][end])
                    memcpy(f->w->table[t].list[side][end], f->w->table[from].list[side][end],
                           (size_t)(p->n * f->w->n) * sizeof(weir_weight_token));
    }
}

static weir_status find(finder *f, weir_err *err)
{
    WEIR_TRY(check(f, err));
    WEIR_TRY(weir_weights_new(&f->w, f->s, f->o->n, err));
    f->neurons = all_neurons(f->s);
    if (!f->neurons)
        return WEIR_OK;
    WEIR_TRY(weir_kern_pick(&f->kern, f->o->kernel, err));
    f->threads = weir_threads(f->o->threads);
    f->vocab = f->o->vocab ? f->o->vocab : f->spec->V;
    f->all = (double)f->neurons * (f->spec->gated ? 3 : 2);
    WEIR_TRY(make_room(f, err));
    for (int side = 0; side < WEIR_SIDES; side++)
        if (has_side(f->spec, side))
            WEIR_TRY(find_side(f, side, err));
    copy_twins(f);
    return WEIR_OK;
}

weir_status weir_neurons_weights(weir_neurons *s, const weir_model *m, const weir_neurons_weights_options *o,
                                 weir_err *err)
{
    finder f = {.s = s, .m = m, .spec = weir_model_spec(m), .o = o};
    weir_status st = find(&f, err);
    free_room(&f);
    if (st) {
        weir_weights_free(f.w);
        return st;
    }
    weir_weights_free(s->weights);
    s->weights = f.w;
    return WEIR_OK;
}

/* lens: what the model would predict if the residual stream ended here: the stream at each selected point, through the
 * final norm and the unembedding (weir_lens in weir/lens.h). The last layer's lens is the model's own prediction.
 *
 *   lens                          hook_resid_post of every layer, the 5 likeliest tokens
 *   lens:resid_mid[-1],k=10       after attention, at the last position of each document
 *
 * A run that records gets datasets /hooks/lens/HOOK.id (int32) and HOOK.logprob (float32), [rows, k], likeliest first;
 * otherwise the first rows are printed, with the tokens' text where the model has a tokenizer. Rows that positions in
 * brackets leave out have id -1 and NaN in the datasets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

enum { MOST_LINES = 100000 };

/* Where a printed row comes from. */
typedef struct place {
    int64_t doc, pos;
    int32_t token;
} place;

/* One selected point. */
typedef struct seen {
    int id_id, logprob_id; /* datasets of the dump */
    int64_t rows, room;    /* rows that will be printed; room for them */
    int64_t left_out;      /* rows that will not */
    place *place;          /* [room] */
    int32_t *id;           /* [room, k] */
    float *logprob;        /* [room, k] */
} seen;

typedef struct state {
    const weir_model *model;
    const weir_point *point;
    int64_t n, c, k;
    weir_selector *selector;
    weir_lens *lens;   /* made in the first pass, which knows the threads */
    seen **of;         /* [n] NULL: not selected */
    int64_t most_rows; /* printed of each point */
    struct weir_dump *dump;
    /* of one value: the selected rows */
    int64_t room;
    float *x;       /* [room, C] */
    int32_t *id;    /* [room, k] */
    float *logprob; /* [room, k] */
} state;

static void destroy(void *self)
{
    state *s = self;
    if (!s)
        return;
    for (int64_t i = 0; s->of && i < s->n; i++) {
        if (!s->of[i])
            continue;
        free(s->of[i]->place);
        free(s->of[i]->id);
        free(s->of[i]->logprob);
        free(s->of[i]);
    }
    free(s->of);
    free(s->x);
    free(s->id);
    free(s->logprob);
    weir_lens_free(s->lens);
    weir_selector_free(s->selector);
    free(s);
}

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "hook lens: out of memory");
}

static weir_status read_args(state *s, const weir_model *m, const char *text, weir_err *err)
{
    static const char *const keys[] = {"k=", NULL};
    weir_hook_args *a;
    int64_t vocabulary = weir_model_info_of(m)->V;
    WEIR_TRY(weir_hook_args_parse(&a, "lens", text, keys, err));
    const char *selectors = weir_hook_args_selectors(a);
    s->k = 5 < vocabulary ? 5 : vocabulary;
    weir_status st = weir_hook_args_int(a, "k", 1, vocabulary, &s->k, err);
    if (!st)
        st = weir_selector_build(&s->selector, m, selectors ? selectors : "resid_post", NULL, NULL, err);
    weir_hook_args_free(a);
    return st;
}

/* Only the stream itself, and whole rows of it, can be projected. */
static weir_status check_point(const state *s, const weir_point *p, weir_err *err)
{
    const int64_t *idx;
    int64_t units;
    if (p->grad)
        return weir_fail(err, WEIR_E_ARG, "hook lens: %s is a gradient: values of the stream are projected", p->name);
    if (p->site != WEIR_SITE_RESID_PRE && p->site != WEIR_SITE_RESID_MID && p->site != WEIR_SITE_RESID_POST)
        return weir_fail(err, WEIR_E_ARG,
                         "hook lens: %s is not the residual stream: resid_pre, resid_mid and resid_post are", p->name);
    weir_selector_units(s->selector, p, &idx, &units);
    return units < 0 ? WEIR_OK
                     : weir_fail(err, WEIR_E_ARG, "hook lens: %s: units cannot be chosen, the whole row is projected",
                                 p->name);
}

static weir_status make(state *s, const weir_model *m, const char *args, weir_err *err)
{
    s->model = m;
    s->c = weir_model_info_of(m)->C;
    WEIR_TRY(read_args(s, m, args, err));
    s->n = weir_model_points_all(m, &s->point);
    s->most_rows = MOST_LINES / s->k / weir_selector_count(s->selector);
    s->most_rows = s->most_rows ? s->most_rows : 1;
    s->of = calloc((size_t)s->n, sizeof *s->of);
    if (!s->of)
        return no_memory(err);
    for (int64_t i = 0; i < s->n; i++) {
        if (!weir_selector_matches(s->selector, &s->point[i]))
            continue;
        WEIR_TRY(check_point(s, &s->point[i], err));
        s->of[i] = calloc(1, sizeof **s->of);
        if (!s->of[i])
            return no_memory(err);
    }
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    state *s = calloc(1, sizeof *s);
    *self = NULL;
    if (!s)
        return no_memory(err);
    weir_status st = make(s, m, args, err);
    if (st) {
        destroy(s);
        return st;
    }
    *self = s;
    return WEIR_OK;
}

static weir_want wants(void *self, const weir_point *p)
{
    const state *s = self;
    return weir_selector_matches(s->selector, p) ? WEIR_READ : WEIR_NONE;
}

static weir_status declare(state *s, int64_t i, weir_err *err)
{
    char name[192];
    seen *f = s->of[i];
    snprintf(name, sizeof name, "%s.id", s->point[i].name);
    WEIR_TRY(weir_dump_own_new(s->dump, "lens", name, &s->point[i], WEIR_DUMP_I32, s->k, &f->id_id, err));
    snprintf(name, sizeof name, "%s.logprob", s->point[i].name);
    return weir_dump_own_new(s->dump, "lens", name, &s->point[i], WEIR_DUMP_F32, s->k, &f->logprob_id, err);
}

static weir_status on_dump(void *self, struct weir_dump *d, weir_err *err)
{
    state *s = self;
    s->dump = d;
    for (int64_t i = 0; i < s->n; i++)
        if (s->of[i])
            WEIR_TRY(declare(s, i, err));
    return WEIR_OK;
}

static weir_status on_begin(void *self, const weir_rows *rows, weir_err *err)
{
    state *s = self;
    if (s->lens)
        return WEIR_OK;
    return weir_lens_new(&s->lens, s->model, NULL, rows->threads > 0 ? rows->threads : 1, err);
}

/* --- one value */

static weir_status make_room(state *s, int64_t rows, weir_err *err)
{
    if (rows <= s->room)
        return WEIR_OK;
    float *x = realloc(s->x, (size_t)(rows * s->c) * sizeof *x);
    s->x = x ? x : s->x;
    int32_t *id = realloc(s->id, (size_t)(rows * s->k) * sizeof *id);
    s->id = id ? id : s->id;
    float *logprob = realloc(s->logprob, (size_t)(rows * s->k) * sizeof *logprob);
    s->logprob = logprob ? logprob : s->logprob;
    if (!x || !id || !logprob)
        return no_memory(err);
    s->room = rows;
    return WEIR_OK;
}

static bool is_selected(const state *s, const weir_value *v, int64_t t)
{
    const weir_rows *r = v->rows;
    return r->keep[t] && weir_selector_row_at(s->selector, v->point, r->doc_pos[t], r->doc_len[t]);
}

/* Doubles the memory for printed rows. */
static bool grow(seen *f, int64_t k)
{
    int64_t room = f->room ? 2 * f->room : 16;
    place *p = realloc(f->place, (size_t)room * sizeof *p);
    f->place = p ? p : f->place;
    int32_t *id = realloc(f->id, (size_t)(room * k) * sizeof *id);
    f->id = id ? id : f->id;
    float *logprob = realloc(f->logprob, (size_t)(room * k) * sizeof *logprob);
    f->logprob = logprob ? logprob : f->logprob;
    if (!p || !id || !logprob)
        return false;
    f->room = room;
    return true;
}

/* Keeps the results of the selected rows to be printed, as far as they are among the first. */
static weir_status keep(const state *s, seen *f, const weir_value *v, weir_err *err)
{
    int64_t n = 0;
    for (int64_t t = 0; t < v->rows->n; t++) {
        if (!is_selected(s, v, t))
            continue;
        int64_t from = n++ * s->k, to = f->rows * s->k;
        if (f->rows == s->most_rows) {
            f->left_out++;
            continue;
        }
        if (f->rows == f->room && !grow(f, s->k))
            return no_memory(err);
        f->place[f->rows++] = (place){v->rows->tag[t], v->rows->doc_pos[t], v->rows->id[t]};
        memcpy(f->id + to, s->id + from, (size_t)s->k * sizeof *f->id);
        memcpy(f->logprob + to, s->logprob + from, (size_t)s->k * sizeof *f->logprob);
    }
    return WEIR_OK;
}

/* A dump has all kept rows. Results move from the selected rows' places to those of the kept ones, the last first. */
static weir_status record(state *s, const seen *f, const weir_value *v, int64_t selected, int64_t kept, weir_err *err)
{
    for (int64_t t = v->rows->n - 1, row = kept; t >= 0; t--) {
        if (!v->rows->keep[t])
            continue;
        int32_t *id = s->id + --row * s->k;
        float *logprob = s->logprob + row * s->k;
        if (is_selected(s, v, t)) {
            selected--;
            memmove(id, s->id + selected * s->k, (size_t)s->k * sizeof *id);
            memmove(logprob, s->logprob + selected * s->k, (size_t)s->k * sizeof *logprob);
            continue;
        }
        for (int64_t i = 0; i < s->k; i++) {
            id[i] = -1;
            logprob[i] = NAN;
        }
    }
    WEIR_TRY(weir_dump_own_append(s->dump, f->id_id, s->id, kept, err));
    return weir_dump_own_append(s->dump, f->logprob_id, s->logprob, kept, err);
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    seen *f = s->of[v->point - s->point];
    int64_t selected = 0, kept = 0;
    WEIR_TRY(make_room(s, v->rows->n, err));
    for (int64_t t = 0; t < v->rows->n; t++) {
        kept += v->rows->keep[t] != 0;
        if (is_selected(s, v, t))
            memcpy(s->x + selected++ * s->c, v->data + t * s->c, (size_t)s->c * sizeof *s->x);
    }
    WEIR_TRY(weir_lens_top(s->lens, s->x, selected, s->k, s->id, s->logprob, err));
    if (!s->dump)
        return keep(s, f, v, err);
    return kept ? record(s, f, v, selected, kept, err) : WEIR_OK;
}

/* --- the end */

static void print_text(FILE *out, const weir_tokenizer *tok, int32_t id)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_str text = tok ? weir_tokenizer_bytes(tok, id) : (weir_str){NULL, 0};
    if (text.n)
        weir_jsonw_str(&w, text.p, text.n);
}

static void print(const state *s, FILE *out, const weir_tokenizer *tok, const char *name, const seen *f)
{
    for (int64_t r = 0; r < f->rows; r++)
        for (int64_t i = 0; i < s->k && f->id[r * s->k + i] >= 0; i++) {
            int32_t id = f->id[r * s->k + i];
            fprintf(out, "%s\t%lld\t%lld\t%d\t%lld\t%d\t%.9g\t", name, (long long)f->place[r].doc,
                    (long long)f->place[r].pos, f->place[r].token, (long long)i + 1, id,
                    (double)f->logprob[r * s->k + i]);
            print_text(out, tok, id);
            fputc('\n', out);
        }
    if (f->left_out)
        fprintf(out, "# %s: %lld more rows are not printed; a dump records all\n", name, (long long)f->left_out);
}

static weir_status finish(void *self, FILE *out, weir_err *err)
{
    const state *s = self;
    weir_tokenizer *tok = NULL;
    if (!out || s->dump)
        return WEIR_OK;
    /* The text of the tokens is a courtesy: a model without a tokenizer has its ids printed. */
    weir_err none = {0};
    if (weir_tokenizer_open(&tok, weir_model_info_of(s->model)->path, NULL, &none) == WEIR_E_NOMEM)
        return weir_fail(err, WEIR_E_NOMEM, "%s", none.msg);
    fprintf(out, "hook\tdocument\tposition\ttoken\trank\tprediction\tlogprob\ttext\n");
    for (int64_t i = 0; i < s->n; i++)
        if (s->of[i])
            print(s, out, tok, s->point[i].name, s->of[i]);
    weir_tokenizer_free(tok);
    return ferror(out) ? weir_fail(err, WEIR_E_IO, "hook lens: the results could not be written") : WEIR_OK;
}

extern const weir_hook_class weir_hook_lens;
const weir_hook_class weir_hook_lens = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER,
    .name = "lens",
    .help = "logit lens: the likeliest tokens at each place of the stream, printed or, with --dump, recorded",
    .args = "[SEL,...][,k=5]",
    .create = create,
    .wants = wants,
    .on_dump = on_dump,
    .on_begin = on_begin,
    .on_value = on_value,
    .finish = finish,
    .destroy = destroy,
};

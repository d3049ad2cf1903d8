/* topk: the k largest elements of each row, in place of the whole row: a sparse recording.
 *
 *   topk:post                     the 10 strongest neurons of each layer at each token
 *   topk:post,k=32,abs            by absolute value; values keep their sign
 *   topk:blocks.3.hook_resid_post[-1],smallest
 *
 * A run that records gets datasets /hooks/topk/HOOK.value (float32) and HOOK.index (int32), [rows, k], largest first;
 * otherwise the first rows are printed. An index counts in the whole row of the hook point (heads * size). Of equal
 * elements the one with the lower index comes first. NaN is never among them. Places without an element (rows that
 * positions in brackets leave out, maps with fewer keys than k) have index -1 and value NaN. */
#include <math.h>
#include <stdlib.h>

#include <weir/record.h>

enum { MOST_LINES = 100000, MOST_K = 65536 };

typedef enum order { LARGEST, SMALLEST, ABSOLUTE } order;

/* Where a printed row comes from. */
typedef struct place {
    int64_t doc, pos;
    int32_t token;
} place;

/* One selected point. */
typedef struct found {
    int64_t k;              /* at most the elements that it has */
    int value_id, index_id; /* datasets of the dump */
    int64_t rows, room;     /* rows that will be printed; room for them */
    int64_t left_out;       /* rows that will not */
    place *place;           /* [room] */
    float *value;           /* [room, k] */
    int32_t *index;         /* [room, k] */
} found;

typedef struct state {
    const weir_point *point;
    int64_t n;
    weir_selector *selector;
    int64_t k;
    order order;
    found **of;        /* [n] NULL: not selected */
    int64_t most_rows; /* printed of each point */
    struct weir_dump *dump;
    /* of one value: [rows, k] */
    float *value;
    int32_t *index;
    int64_t room; /* elements */
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
        free(s->of[i]->value);
        free(s->of[i]->index);
        free(s->of[i]);
    }
    free(s->of);
    free(s->value);
    free(s->index);
    weir_selector_free(s->selector);
    free(s);
}

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "hook topk: out of memory");
}

static weir_status read_args(state *s, const weir_model *m, const char *text, weir_err *err)
{
    static const char *const keys[] = {"k=", "abs", "smallest", NULL};
    weir_hook_args *a;
    WEIR_TRY(weir_hook_args_parse(&a, "topk", text, keys, err));
    const char *selectors = weir_hook_args_selectors(a);
    bool absolute = weir_hook_args_text(a, "abs"), smallest = weir_hook_args_text(a, "smallest");
    s->k = 10;
    s->order = absolute ? ABSOLUTE : smallest ? SMALLEST : LARGEST;
    weir_status st = weir_hook_args_int(a, "k", 1, MOST_K, &s->k, err);
    if (!st && absolute && smallest)
        st = weir_fail(err, WEIR_E_ARG, "hook topk: abs and smallest exclude each other");
    if (!st && !selectors)
        st = weir_fail(err, WEIR_E_ARG, "topk needs a selector, such as topk:post,k=10");
    if (!st)
        st = weir_selector_build(&s->selector, m, selectors, NULL, NULL, err);
    weir_hook_args_free(a);
    return st;
}

static weir_status make(state *s, const weir_model *m, const char *args, weir_err *err)
{
    WEIR_TRY(read_args(s, m, args, err));
    s->n = weir_model_points_all(m, &s->point);
    s->most_rows = MOST_LINES / s->k / weir_selector_count(s->selector);
    s->most_rows = s->most_rows ? s->most_rows : 1;
    s->of = calloc((size_t)s->n, sizeof *s->of);
    if (!s->of)
        return no_memory(err);
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t *idx;
        int64_t units;
        if (!weir_selector_matches(s->selector, &s->point[i]))
            continue;
        weir_selector_units(s->selector, &s->point[i], &idx, &units);
        units = units < 0 ? s->point[i].width : units;
        s->of[i] = calloc(1, sizeof **s->of);
        if (!s->of[i])
            return no_memory(err);
        s->of[i]->k = s->k < units ? s->k : units;
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
    found *f = s->of[i];
    snprintf(name, sizeof name, "%s.value", s->point[i].name);
    WEIR_TRY(weir_dump_own_new(s->dump, "topk", name, &s->point[i], WEIR_DUMP_F32, f->k, &f->value_id, err));
    snprintf(name, sizeof name, "%s.index", s->point[i].name);
    return weir_dump_own_new(s->dump, "topk", name, &s->point[i], WEIR_DUMP_I32, f->k, &f->index_id, err);
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

/* --- one row */

static float rank(order o, float x)
{
    return o == ABSOLUTE ? fabsf(x) : o == SMALLEST ? -x : x;
}

/* Puts x among the n that were found, of at most k; equal ones keep their order. Returns how many there are now. */
static int64_t put(order o, float x, int64_t idx, float *value, int32_t *index, int64_t n, int64_t k)
{
    float r = rank(o, x);
    if (isnan(x) || (n == k && !(r > rank(o, value[n - 1]))))
        return n;
    int64_t at = n < k ? n : k - 1;
    for (; at > 0 && rank(o, value[at - 1]) < r; at--) {
        value[at] = value[at - 1];
        index[at] = index[at - 1];
    }
    value[at] = x;
    index[at] = (int32_t)idx;
    return n < k ? n + 1 : k;
}

static void search(const state *s, const weir_value *v, const float *row, int64_t k, float *value, int32_t *index)
{
    const int64_t *idx;
    int64_t units, n = 0;
    weir_selector_units(s->selector, v->point, &idx, &units);
    int64_t most = units < 0 ? v->point->width : units;
    for (int64_t i = 0; i < most; i++) {
        int64_t element = units < 0 ? i : idx[i], column = weir_value_column(v, element);
        if (column >= 0)
            n = put(s->order, row[column], element, value, index, n, k);
    }
    for (; n < k; n++) {
        value[n] = NAN;
        index[n] = -1;
    }
}

/* --- one value */

static weir_status make_room(state *s, int64_t elements, weir_err *err)
{
    if (elements <= s->room)
        return WEIR_OK;
    float *value = realloc(s->value, (size_t)elements * sizeof *value);
    s->value = value ? value : s->value;
    int32_t *index = realloc(s->index, (size_t)elements * sizeof *index);
    s->index = index ? index : s->index;
    if (!value || !index)
        return no_memory(err);
    s->room = elements;
    return WEIR_OK;
}

/* Doubles the memory for printed rows. */
static bool grow(found *f)
{
    int64_t room = f->room ? 2 * f->room : 16;
    place *p = realloc(f->place, (size_t)room * sizeof *p);
    f->place = p ? p : f->place;
    float *value = realloc(f->value, (size_t)(room * f->k) * sizeof *value);
    f->value = value ? value : f->value;
    int32_t *index = realloc(f->index, (size_t)(room * f->k) * sizeof *index);
    f->index = index ? index : f->index;
    if (!p || !value || !index)
        return false;
    f->room = room;
    return true;
}

/* Keeps a row to be printed, if it is one of the first. */
static weir_status keep(const state *s, found *f, const weir_rows *rows, int64_t t, const float *value,
                        const int32_t *index, weir_err *err)
{
    if (f->rows == s->most_rows) {
        f->left_out++;
        return WEIR_OK;
    }
    if (f->rows == f->room && !grow(f))
        return no_memory(err);
    f->place[f->rows] = (place){rows->tag[t], rows->doc_pos[t], rows->id[t]};
    for (int64_t i = 0; i < f->k; i++) {
        f->value[f->rows * f->k + i] = value[i];
        f->index[f->rows * f->k + i] = index[i];
    }
    f->rows++;
    return WEIR_OK;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    found *f = s->of[v->point - s->point];
    const weir_rows *rows = v->rows;
    int64_t n = 0;
    WEIR_TRY(make_room(s, rows->n * f->k, err));
    for (int64_t t = 0; t < rows->n; t++) {
        float *value = s->value + n * f->k;
        int32_t *index = s->index + n * f->k;
        if (!rows->keep[t])
            continue;
        n++;
        bool selected = weir_selector_row_at(s->selector, v->point, rows->doc_pos[t], rows->doc_len[t]);
        if (selected)
            search(s, v, v->data + t * v->width, f->k, value, index);
        for (int64_t i = 0; !selected && i < f->k; i++) {
            value[i] = NAN;
            index[i] = -1;
        }
        if (selected && !s->dump)
            WEIR_TRY(keep(s, f, rows, t, value, index, err));
    }
    if (!s->dump || n == 0)
        return WEIR_OK;
    WEIR_TRY(weir_dump_own_append(s->dump, f->value_id, s->value, n, err));
    return weir_dump_own_append(s->dump, f->index_id, s->index, n, err);
}

/* --- the end */

static void print(FILE *out, const char *name, const found *f)
{
    for (int64_t r = 0; r < f->rows; r++)
        for (int64_t i = 0; i < f->k && f->index[r * f->k + i] >= 0; i++)
            fprintf(out, "%s\t%lld\t%lld\t%d\t%lld\t%d\t%.9g\n", name, (long long)f->place[r].doc,
                    (long long)f->place[r].pos, f->place[r].token, (long long)i + 1, f->index[r * f->k + i],
                    (double)f->value[r * f->k + i]);
    if (f->left_out)
        fprintf(out, "# %s: %lld more rows are not printed; a dump records all\n", name, (long long)f->left_out);
}

static weir_status finish(void *self, FILE *out, weir_err *err)
{
    const state *s = self;
    if (!out || s->dump)
        return WEIR_OK;
    fprintf(out, "hook\tdocument\tposition\ttoken\trank\tunit\tvalue\n");
    for (int64_t i = 0; i < s->n; i++)
        if (s->of[i])
            print(out, s->point[i].name, s->of[i]);
    return ferror(out) ? weir_fail(err, WEIR_E_IO, "hook topk: the results could not be written") : WEIR_OK;
}

extern const weir_hook_class weir_hook_topk;
const weir_hook_class weir_hook_topk = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "topk",
    .help = "the k largest elements of each row, printed or, with --dump, recorded",
    .args = "SEL,...[,k=10][,abs|smallest]",
    .create = create,
    .wants = wants,
    .on_dump = on_dump,
    .on_value = on_value,
    .finish = finish,
    .destroy = destroy,
};

/* activations/top.c: the rows of the whole file at which a unit is highest (of the sample, for norms). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "activ.h"

enum { AT_ONCE = 65536 };

typedef struct best {
    int64_t *row;
    double *value; /* [n] descending; of equals the earlier row first */
    int64_t n, most;
} best;

static void offer(best *b, int64_t row, double v)
{
    if (b->n == b->most && !(b->n && v > b->value[b->n - 1]))
        return;
    int64_t at = b->n < b->most ? b->n++ : b->n - 1;
    for (; at > 0 && v > b->value[at - 1]; at--) {
        b->row[at] = b->row[at - 1];
        b->value[at] = b->value[at - 1];
    }
    b->row[at] = row;
    b->value[at] = v;
}

/* room: for `some` rows. */
static int search(const weir_activ *a, best *b, int64_t some, int64_t step, double *v, bool *counted)
{
    int code = WEIR_EXIT_OK;
    for (int64_t row = 0; code == WEIR_EXIT_OK && row < a->rows; row += step) {
        const int64_t n = a->rows - row < some ? a->rows - row : some;
        code = weir_activ_values(a, row, n, v);
        if (code == WEIR_EXIT_OK)
            code = weir_activ_counted(a, row, n, counted);
        for (int64_t i = 0; code == WEIR_EXIT_OK && i < n; i++)
            if (counted[i] && isfinite(v[i]))
                offer(b, row + i, v[i]);
    }
    return code;
}

static int put_context(const weir_activ *a, weir_chart_table *t, int64_t row, const weir_dump_doc_rows *d)
{
    const int64_t last = d->row + d->n < a->rows ? d->row + d->n : a->rows;
    const int64_t from = d->row > row - a->context ? d->row : row - a->context;
    const int64_t end = last < row + a->context + 1 ? last : row + a->context + 1;
    weir_activ_words w;
    const int code = weir_activ_words_of(a, from, end - from, &w);
    if (code != WEIR_EXIT_OK)
        return code;
    char *part[3] = {0};
    size_t size[3] = {0};
    for (int k = 0; k < 3; k++) {
        FILE *f = open_memstream(&part[k], &size[k]);
        for (int64_t i = 0; f && i < w.n; i++)
            if (k == (from + i < row ? 0 : from + i == row ? 1 : 2)) {
                if (w.text[i].n)
                    fwrite(w.text[i].p, 1, w.text[i].n, f);
                else
                    fprintf(f, "<#%d>", w.id[i]);
            }
        if (f)
            fclose(f);
    }
    const bool whole = part[0] && part[1] && part[2];
    if (whole)
        weir_chart_table_context(t, (weir_str){part[0], size[0]}, (weir_str){part[1], size[1]},
                                 (weir_str){part[2], size[2]});
    for (int k = 0; k < 3; k++)
        free(part[k]);
    weir_activ_words_free(&w);
    return whole ? WEIR_EXIT_OK : weir_nb_no_memory(a->nb);
}

static int put_rows(const weir_activ *a, FILE *out, const best *b)
{
    static const char *const head[] = {"value", "document", "position", "context"};
    int code = WEIR_EXIT_OK;
    weir_chart_table t;
    weir_chart_table_begin(&t, out, a->label, head, 4);
    for (int64_t i = 0; code == WEIR_EXIT_OK && i < b->n; i++) {
        weir_err err = {0};
        int64_t doc, pos;
        weir_dump_doc_rows d;
        const weir_token_columns want = {.doc = &doc, .pos = &pos};
        weir_status s = weir_dump_read_tokens(a->r, b->row[i], 1, &want, &err);
        if (s == WEIR_OK)
            s = weir_dump_read_doc(a->r, doc, &d, &err);
        if (s == WEIR_OK && (b->row[i] < d.row || b->row[i] - d.row >= d.n))
            s = weir_fail(&err, WEIR_E_FORMAT, "tokens/doc: row %lld is not in document %lld", (long long)b->row[i],
                          (long long)doc);
        if (s != WEIR_OK)
            return weir_activ_fail(a, &err);
        weir_chart_table_real(&t, b->value[i], 5, NULL);
        weir_chart_table_int(&t, doc);
        weir_chart_table_int(&t, pos);
        code = put_context(a, &t, b->row[i], &d);
    }
    weir_chart_table_end(&t);
    return code;
}

int weir_activ_draw_top(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_activ *a = data;
    const int64_t some = a->has_unit ? AT_ONCE : a->block, step = a->has_unit ? AT_ONCE : a->step;
    const int64_t most = a->top < a->rows ? a->top : a->rows;
    best b = {.row = malloc(sizeof *b.row * (size_t)(most + 1)),
              .value = malloc(sizeof *b.value * (size_t)(most + 1)),
              .most = most};
    double *v = malloc(sizeof *v * (size_t)some);
    bool *counted = malloc((size_t)some);
    (void)nb;
    int code = b.row && b.value && v && counted ? WEIR_EXIT_OK : weir_nb_no_memory(a->nb);
    if (code == WEIR_EXIT_OK)
        code = search(a, &b, some, step, v, counted);
    if (code == WEIR_EXIT_OK)
        code = put_rows(a, out, &b);
    if (code == WEIR_EXIT_OK) {
        weir_nb_put_ints(numbers, "top_rows", b.row, b.n);
        weir_nb_put_reals(numbers, "top_values", b.value, b.n);
    }
    free(b.row);
    free(b.value);
    free(v);
    free(counted);
    return code;
}

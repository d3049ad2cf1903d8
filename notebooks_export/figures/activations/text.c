/* activations/text.c: the document that is drawn: its tokens in colours, and what surprised the model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "activ.h"
#include "cli/printable.h"

int weir_activ_document(const weir_activ *a, int64_t *row, int64_t *n)
{
    weir_err err = {0};
    weir_dump_doc_rows d;
    if (weir_dump_read_doc(a->r, a->document, &d, &err) != WEIR_OK)
        return weir_activ_fail(a, &err);
    *row = d.row;
    *n = a->rows - d.row < d.n ? a->rows - d.row : d.n;
    *n = *n < a->max_tokens ? *n : a->max_tokens;
    *n = *n > 0 ? *n : 0;
    return WEIR_EXIT_OK;
}

int weir_activ_words_of(const weir_activ *a, int64_t row, int64_t n, weir_activ_words *w)
{
    weir_err err = {0};
    *w = (weir_activ_words){
        .id = malloc(sizeof *w->id * (size_t)(n + 1)), .text = calloc((size_t)n + 1, sizeof *w->text), .n = n};
    if (!w->id || !w->text) {
        weir_activ_words_free(w);
        return weir_nb_no_memory(a->nb);
    }
    weir_status s = n ? weir_dump_read_ids(a->r, row, n, w->id, &err) : WEIR_OK;
    /* An id that the vocabulary does not have is shown by its number. */
    for (int64_t i = 0; s == WEIR_OK && i < n; i++)
        if (weir_dump_token_bytes(a->r, w->id[i], &w->text[i], &err) != WEIR_OK)
            w->text[i] = (weir_str){0};
    if (s == WEIR_OK)
        return WEIR_EXIT_OK;
    weir_activ_words_free(w);
    return weir_activ_fail(a, &err);
}

void weir_activ_words_free(weir_activ_words *w)
{
    free(w->id);
    free(w->text);
    *w = (weir_activ_words){0};
}

weir_chart_scale weir_activ_scale(const double *v, const bool *counted, int64_t rows, int64_t columns)
{
    double most = 0;
    bool negative = false;
    for (int64_t i = 0; i < rows * columns; i++) {
        negative = negative || v[i] < 0;
        if (counted[i % columns] && isfinite(v[i]))
            most = fmax(most, fabs(v[i]));
    }
    most = most > 0 ? most : 1;
    return (weir_chart_scale){.low = negative ? -most : 0, .most = most};
}

int weir_activ_draw_open(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    static const char *const head[] = {"hook point", "units", ""};
    const weir_activ *a = data;
    weir_chart_table t;
    (void)nb;
    (void)numbers;
    weir_nb_say(out, "%lld rows, %lld documents", (long long)a->rows, (long long)weir_dump_n_docs(a->r));
    weir_chart_table_begin(&t, out, NULL, head, 3);
    for (int i = 0; i < weir_dump_n_hooks(a->r); i++) {
        const weir_dump_hook *h = weir_dump_hook_at(a->r, i);
        const char *chosen = h->units ? "that were chosen" : "";
        if (!weir_activ_flat(h))
            continue;
        weir_chart_table_text(&t, h->name, strlen(h->name));
        weir_chart_table_int(&t, h->width);
        weir_chart_table_text(&t, chosen, strlen(chosen));
    }
    weir_chart_table_end(&t);
    return WEIR_EXIT_OK;
}

enum { WIDE = 900, EDGE = 8 };

static void put_strip(const weir_activ *a, FILE *out, const weir_activ_words *w, int64_t row, const double *v,
                      const weir_chart_scale *scale, const char *what)
{
    char label[480];
    snprintf(label, sizeof label, "document %lld: %s", (long long)a->document, what);
    const weir_chart_strip s = {.out = out,
                                .x = EDGE,
                                .y = EDGE,
                                .width = WIDE - 2 * EDGE,
                                .n = w->n,
                                .token = w->text,
                                .id = w->id,
                                .value = v,
                                .scale = scale,
                                .label = label,
                                .first = row};
    weir_chart_open(out, WIDE, 2 * EDGE + weir_chart_strip_height(&s), label);
    weir_chart_strip_draw(&s);
    weir_svg_end(out);
}

/* What the two strips have in common. */
typedef struct strip {
    int64_t row, n;
    double *v;
    bool *counted;
    weir_activ_words w;
} strip;

static void strip_free(strip *s)
{
    weir_activ_words_free(&s->w);
    free(s->v);
    free(s->counted);
}

static int strip_of(const weir_activ *a, strip *s)
{
    *s = (strip){0};
    int code = weir_activ_document(a, &s->row, &s->n);
    if (code != WEIR_EXIT_OK)
        return code;
    s->v = malloc(sizeof *s->v * (size_t)(s->n + 1));
    s->counted = malloc((size_t)s->n + 1);
    if (!s->v || !s->counted)
        return weir_nb_no_memory(a->nb);
    code = weir_activ_counted(a, s->row, s->n, s->counted);
    return code == WEIR_EXIT_OK ? weir_activ_words_of(a, s->row, s->n, &s->w) : code;
}

int weir_activ_draw_strip(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_activ *a = data;
    strip s;
    (void)nb;
    int code = strip_of(a, &s);
    if (code == WEIR_EXIT_OK)
        code = weir_activ_values(a, s.row, s.n, s.v);
    if (code == WEIR_EXIT_OK && s.n) {
        const weir_chart_scale scale = weir_activ_scale(s.v, s.counted, 1, s.n);
        put_strip(a, out, &s.w, s.row, s.v, &scale, a->label);
    } else if (code == WEIR_EXIT_OK) {
        weir_nb_say(out, "document %lld has no rows in this file", (long long)a->document);
    }
    if (code == WEIR_EXIT_OK)
        weir_nb_put_reals(numbers, "strip_values", s.v, s.n);
    strip_free(&s);
    return code;
}

/* --- surprise */

enum { AT_ONCE = 65536 };

/* -logprob of rows. */
static int surprise_of(const weir_activ *a, int64_t row, int64_t n, double *out)
{
    weir_err err = {0};
    float *p = malloc(sizeof *p * (size_t)(n + 1));
    const weir_token_columns want = {.logprob = p};
    if (!p)
        return weir_nb_no_memory(a->nb);
    const weir_status s = n ? weir_dump_read_tokens(a->r, row, n, &want, &err) : WEIR_OK;
    for (int64_t i = 0; s == WEIR_OK && i < n; i++)
        out[i] = -(double)p[i];
    free(p);
    return s == WEIR_OK ? WEIR_EXIT_OK : weir_activ_fail(a, &err);
}

static int mean_surprise_of(const weir_activ *a, double *mean)
{
    double *v = malloc(sizeof *v * AT_ONCE), sum = 0, many = 0;
    int code = v ? WEIR_EXIT_OK : weir_nb_no_memory(a->nb);
    for (int64_t row = 0; code == WEIR_EXIT_OK && row < a->rows; row += AT_ONCE) {
        const int64_t n = a->rows - row < AT_ONCE ? a->rows - row : AT_ONCE;
        code = surprise_of(a, row, n, v);
        for (int64_t i = 0; code == WEIR_EXIT_OK && i < n; i++)
            if (isfinite(v[i])) {
                sum += v[i];
                many++;
            }
    }
    free(v);
    *mean = many > 0 ? sum / many : (double)NAN;
    return code;
}

int weir_activ_draw_surprise(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_activ *a = data;
    const bool there = weir_dump_has_logprob(a->r);
    double mean = NAN;
    strip s;
    (void)nb;
    int code = strip_of(a, &s);
    if (code == WEIR_EXIT_OK)
        code = surprise_of(a, s.row, s.n, s.v);
    if (code == WEIR_EXIT_OK && there)
        code = mean_surprise_of(a, &mean);
    if (code == WEIR_EXIT_OK && there) {
        weir_nb_say(out, "mean over the file: %.4f nats a token", mean);
        const weir_chart_scale scale = weir_chart_scale_of(s.v, s.n, false);
        put_strip(a, out, &s.w, s.row, s.v, &scale, "surprise, nats");
    } else if (code == WEIR_EXIT_OK) {
        weir_nb_say(out, "no log-probabilities in this file: weir trace --logprob --dump FILE.h5 records them");
    }
    if (code == WEIR_EXIT_OK) {
        weir_nb_put_reals(numbers, "surprise", s.v, s.n);
        weir_nb_put_real(numbers, "mean_surprise", mean);
    }
    strip_free(&s);
    return code;
}

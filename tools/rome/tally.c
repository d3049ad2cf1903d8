#include "tally.h"

#include <math.h>
#include <string.h>

const char *const weir_tally_name[WEIR_TALLY_VALUES] = {"ES", "PS",   "NS", "EM", "PM", "NM", "said", "neighbour_said",
                                                        "GE", "drift"};

static void take(double v[WEIR_TALLY_SCORES], const weir_fact_scores *s, double entropy)
{
    const double all[WEIR_TALLY_SCORES] = {s->rewrite,    s->paraphrase,     s->neighbour,
                                           s->rewrite_by, s->paraphrase_by,  s->neighbour_by,
                                           s->said,       s->neighbour_said, entropy};
    memcpy(v, all, sizeof all);
}

static void put_scores(weir_jsonw *w, const char *key, const weir_fact_scores *s, double entropy)
{
    double v[WEIR_TALLY_SCORES];
    take(v, s, entropy);
    weir_jsonw_key(w, key);
    weir_jsonw_object(w);
    for (int i = 0; i < WEIR_TALLY_SCORES; i++)
        weir_jsonw_key_double(w, weir_tally_name[i], v[i]);
    weir_jsonw_end(w);
}

bool weir_tally_write(FILE *out, int64_t layer, const weir_fact *f, const weir_rome_result *r)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_int(&w, "record", r->index);
    weir_jsonw_key_int(&w, "case_id", f->id);
    weir_jsonw_key_int(&w, "layer", layer);
    weir_jsonw_key_cstr(&w, "subject", f->subject);
    weir_jsonw_key_cstr(&w, "target", f->target);
    if (r->status != WEIR_OK) {
        weir_jsonw_key_cstr(&w, "error", r->err.msg);
    } else {
        const weir_rome_report *p = &r->report;
        put_scores(&w, "before", &r->before, r->entropy_before);
        put_scores(&w, "after", &r->after, r->entropy_after);
        weir_jsonw_key_double(&w, "drift", exp(r->text_after - r->text_before) - 1);
        weir_jsonw_key_int(&w, "steps", p->steps);
        weir_jsonw_key_double(&w, "p", p->step[p->steps - 1].p);
        weir_jsonw_key_double(&w, "k_u", p->k_u);
        weir_jsonw_key_double(&w, "k_cos", p->k_cos);
        weir_jsonw_key_double(&w, "lambda_norm", p->lambda);
        weir_jsonw_key_double(&w, "share", p->share);
        weir_jsonw_key_bool(&w, "clamped", p->clamped);
        weir_jsonw_key_bool(&w, "converged", p->converged);
    }
    weir_jsonw_end(&w);
    return !ferror(out);
}

/* --- reading back, so that a run that goes on adds up what an unbroken one does */

static void add(weir_tally *t, int after, int value, double v)
{
    if (isnan(v))
        return;
    t->sum[after][value] += v;
    t->n[after][value]++;
}

static double number(weir_json *j)
{
    if (weir_json_peek(j) != WEIR_JSON_NULL)
        return weir_json_double(j);
    weir_json_null(j);
    return NAN;
}

static void read_scores(weir_tally *t, weir_json *j, int after)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key))
        for (int i = 0; i < WEIR_TALLY_SCORES; i++)
            if (weir_str_eq(key, weir_tally_name[i])) {
                add(t, after, i, number(j));
                break;
            }
}

static void read_key(weir_tally *t, weir_json *j, weir_str key)
{
    if (weir_str_eq(key, "before")) {
        read_scores(t, j, 0);
    } else if (weir_str_eq(key, "after")) {
        read_scores(t, j, 1);
    } else if (weir_str_eq(key, "drift")) {
        const double drift = number(j);
        add(t, 1, WEIR_TALLY_DRIFT, drift);
        if (drift > t->worst_drift)
            t->worst_drift = drift;
    } else if (weir_str_eq(key, "error")) {
        weir_json_string(j);
        t->failed++;
    } else if (weir_str_eq(key, "clamped")) {
        t->clamped += weir_json_bool(j);
    } else if (weir_str_eq(key, "converged")) {
        t->unreached += !weir_json_bool(j);
    } else if (weir_str_eq(key, "layer")) {
        t->layer = weir_json_int(j);
    }
}

weir_status weir_tally_add(weir_tally *t, const char *line, size_t n, const char *file, weir_err *err)
{
    weir_json j;
    weir_str key;
    weir_json_init(&j, line, n, file, err);
    weir_json_object(&j);
    while (weir_json_key(&j, &key))
        read_key(t, &j, key);
    weir_json_end(&j);
    t->records++;
    return weir_json_done(&j);
}

double weir_tally_mean(const weir_tally *t, int after, int value)
{
    return t->n[after][value] ? t->sum[after][value] / (double)t->n[after][value] : (double)NAN;
}

double weir_tally_score(const weir_tally *t, int after)
{
    double sum = 0;
    for (int i = WEIR_TALLY_ES; i <= WEIR_TALLY_NS; i++)
        sum += 1 / weir_tally_mean(t, after, i);
    return 3 / sum;
}

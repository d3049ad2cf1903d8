#include "tally.h"

#include <math.h>
#include <string.h>

#include "numbers.h"

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
    } else if (r->left_out) {
        weir_jsonw_key_bool(&w, "left_out", true);
    } else {
        const weir_rome_report *p = &r->report;
        put_scores(&w, "before", &r->before, r->entropy_before);
        put_scores(&w, "after", &r->after, r->entropy_after);
        weir_jsonw_key_double(&w, "drift", exp(r->text_after - r->text_before) - 1);
        weir_jsonw_key_int(&w, "steps", p->steps);
        weir_jsonw_key_double(&w, "p", p->step[p->steps - 1].p);
        const weir_rome_numbers numbers = weir_rome_numbers_of(p);
        weir_rome_numbers_write(&w, &numbers);
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

static void read_scores(weir_tally *t, weir_json *j, int after)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key))
        for (int i = 0; i < WEIR_TALLY_SCORES; i++)
            if (weir_str_eq(key, weir_tally_name[i])) {
                add(t, after, i, weir_rome_number(j));
                break;
            }
}

/* As the reason why no record could be edited, where none failed. */
static void take_left_out(weir_tally *t)
{
    if (!t->left_out++ && !t->failed) {
        t->why_record = t->record;
        snprintf(t->why, sizeof t->why, "left out by --known: the model prefers the new answer already");
    }
}

static void take_error(weir_tally *t, weir_str why)
{
    if (!t->failed++) {
        t->why_record = t->record;
        snprintf(t->why, sizeof t->why, "%.*s", (int)why.n, why.p ? why.p : "");
        weir_make_printable(t->why);
    }
}

static void read_key(weir_tally *t, weir_json *j, weir_str key)
{
    if (weir_str_eq(key, "before")) {
        read_scores(t, j, 0);
    } else if (weir_str_eq(key, "after")) {
        read_scores(t, j, 1);
    } else if (weir_str_eq(key, "drift")) {
        const double drift = weir_rome_number(j);
        if (!t->n[1][WEIR_TALLY_DRIFT] || drift > t->worst_drift)
            t->worst_drift = drift;
        add(t, 1, WEIR_TALLY_DRIFT, drift);
    } else if (weir_str_eq(key, "error")) {
        take_error(t, weir_json_string(j));
    } else if (weir_str_eq(key, "left_out")) {
        if (weir_json_bool(j))
            take_left_out(t);
    } else if (weir_str_eq(key, "clamped")) {
        t->clamped += weir_json_bool(j);
    } else if (weir_str_eq(key, "converged")) {
        t->unreached += !weir_json_bool(j);
    } else if (weir_str_eq(key, "record")) {
        t->record = weir_json_int(j);
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

int64_t weir_tally_edited(const weir_tally *t)
{
    return t->records - t->failed - t->left_out;
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

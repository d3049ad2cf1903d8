#include "scores.h"

#include <math.h>
#include <stdio.h>

static void print_number(double x, double by, int digits, char end)
{
    if (isnan(x))
        printf("%7s%c", "-", end);
    else
        printf("%7.*f%c", digits, by * x, end);
}

static void print_row(const weir_tally *t, int after, char sep)
{
    static const int shown[] = {WEIR_TALLY_ES, WEIR_TALLY_PS, WEIR_TALLY_NS,  WEIR_TALLY_EM,
                                WEIR_TALLY_PM, WEIR_TALLY_NM, WEIR_TALLY_SAID};
    print_number(weir_tally_score(t, after), 100, 2, sep);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        print_number(weir_tally_mean(t, after, shown[i]), 100, 2, sep);
    print_number(weir_tally_mean(t, after, WEIR_TALLY_GE), 100, 1, sep);
    print_number(weir_tally_mean(t, after, WEIR_TALLY_DRIFT), 100, 2, '\n');
}

/* The model before any edit, as a layer saw it whose records could be edited. */
static const weir_tally *unedited(const weir_tally *tally, int n)
{
    for (int i = 0; i < n; i++)
        if (weir_tally_edited(&tally[i]))
            return &tally[i];
    return tally;
}

void weir_scores_print(const weir_tally *tally, int n, char sep)
{
    printf("%-10s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s%c%7s\n", "layer", sep, "S", sep, "ES", sep, "PS", sep,
           "NS", sep, "EM", sep, "PM", sep, "NM", sep, "said", sep, "GE", sep, "drift%");
    printf("%-10s%c", "unedited", sep);
    print_row(unedited(tally, n), 0, sep);
    for (int i = 0; i < n; i++) {
        printf("%-10lld%c", (long long)tally[i].layer, sep);
        if (!weir_tally_edited(&tally[i]) && sep != '\t')
            printf("no record could be edited: %s\n", tally[i].why);
        else
            print_row(&tally[i], 1, sep);
    }
}

static void put_side(weir_jsonw *w, const weir_tally *t, int after)
{
    weir_jsonw_key(w, after ? "after" : "before");
    weir_jsonw_object(w);
    weir_jsonw_key_double(w, "S", weir_tally_score(t, after));
    for (int i = 0; i < WEIR_TALLY_SCORES + after; i++)
        weir_jsonw_key_double(w, weir_tally_name[i], weir_tally_mean(t, after, i));
    if (after)
        weir_jsonw_key_double(w, "worst_drift", t->n[1][WEIR_TALLY_DRIFT] ? t->worst_drift : (double)NAN);
    weir_jsonw_end(w);
}

void weir_scores_write(weir_jsonw *w, const weir_tally *tally, int n)
{
    weir_jsonw_key(w, "layers");
    weir_jsonw_array(w);
    for (int i = 0; i < n; i++) {
        const weir_tally *t = &tally[i];
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "layer", t->layer);
        weir_jsonw_key_int(w, "records", t->records);
        weir_jsonw_key_int(w, "failed", t->failed);
        weir_jsonw_key_int(w, "left_out", t->left_out);
        weir_jsonw_key_int(w, "clamped", t->clamped);
        weir_jsonw_key_int(w, "not_reached", t->unreached);
        put_side(w, t, 0);
        put_side(w, t, 1);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

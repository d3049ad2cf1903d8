/* rome/numbers.h: what the search of a request came to, as edit.json, rome verify and rome eval have it. */
#ifndef WEIR_ROME_NUMBERS_H
#define WEIR_ROME_NUMBERS_H

#include <weir/weir.h>

/* As in weir_rome_report; NaN: unknown. */
typedef struct weir_rome_numbers {
    double v0, delta, k_u, k_cos, lambda, share;
    bool clamped, converged;
} weir_rome_numbers;

weir_rome_numbers weir_rome_numbers_of(const weir_rome_report *r);
weir_rome_numbers weir_rome_numbers_unknown(void);
/* As keys of the object that is open, and back: false if the key is none of them. */
void weir_rome_numbers_write(weir_jsonw *w, const weir_rome_numbers *n);
bool weir_rome_numbers_read(weir_json *j, weir_str key, weir_rome_numbers *n);
/* A number; null is NaN. */
double weir_rome_number(weir_json *j);
/* The line "change", without its end. */
void weir_rome_numbers_print(FILE *out, const weir_rome_numbers *n);

#endif

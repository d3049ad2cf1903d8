/* What figures say in numbers, for the page: what JSON has no number for is a word. */
#include <math.h>

#include "kind.h"

static void put(weir_jsonw *w, double x)
{
    if (isfinite(x))
        weir_jsonw_real(w, x);
    else
        weir_jsonw_cstr(w, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

void weir_nb_put_real(weir_jsonw *numbers, const char *name, double x)
{
    weir_jsonw_key(numbers, name);
    put(numbers, x);
}

static void put_row(weir_jsonw *w, const double *x, int64_t n)
{
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n; i++)
        put(w, x[i]);
    weir_jsonw_end(w);
}

void weir_nb_put_reals(weir_jsonw *numbers, const char *name, const double *x, int64_t n)
{
    weir_jsonw_key(numbers, name);
    put_row(numbers, x, n);
}

void weir_nb_put_ints(weir_jsonw *numbers, const char *name, const int64_t *x, int64_t n)
{
    weir_jsonw_key(numbers, name);
    weir_jsonw_array(numbers);
    for (int64_t i = 0; i < n; i++)
        weir_jsonw_int(numbers, x[i]);
    weir_jsonw_end(numbers);
}

void weir_nb_put_table(weir_jsonw *numbers, const char *name, const double *x, int64_t rows, int64_t columns)
{
    weir_jsonw_key(numbers, name);
    weir_jsonw_array(numbers);
    for (int64_t i = 0; i < rows; i++)
        put_row(numbers, x + i * columns, columns);
    weir_jsonw_end(numbers);
}

/* How far rows are from being alike. */
#include <math.h>
#include <string.h>

#include <weir/collapse.h>
#include <weir/linalg.h>

#include "../base/mem.h"

static bool all_finite(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static double *widened(const float *x, int64_t n, int64_t c)
{
    int64_t size;
    double *to = weir_mul64(n, c, &size) ? weir_calloc((size_t)size, sizeof *to) : NULL;
    for (int64_t i = 0; to && i < size; i++)
        to[i] = (double)x[i];
    return to;
}

/* Takes the mean of its rows from each row of x. mean [c] is for work. */
static void take_mean(double *x, int64_t n, int64_t c, double *mean)
{
    memset(mean, 0, (size_t)c * sizeof *mean);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < c; j++)
            mean[j] += x[i * c + j];
    for (int64_t j = 0; j < c; j++)
        mean[j] /= (double)n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < c; j++)
            x[i * c + j] -= mean[j];
}

/* column [c] is for work. */
static void norms_of(const double *x, int64_t n, int64_t c, double *column, double *composite, double *frobenius)
{
    double square = 0, widest = 0, tallest = 0;
    memset(column, 0, (size_t)c * sizeof *column);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < c; j++) {
            const double v = x[i * c + j];
            square += v * v;
            sum += fabs(v);
            column[j] += fabs(v);
        }
        widest = sum > widest ? sum : widest;
    }
    for (int64_t j = 0; j < c; j++)
        tallest = column[j] > tallest ? column[j] : tallest;
    *composite = sqrt(tallest) * sqrt(widest);
    *frobenius = sqrt(square);
}

/* The pairs' cosines add up to what the square of the unit rows' sum has besides the rows' own ones. */
static double mean_cosine(const double *x, int64_t n, int64_t c, double *sum)
{
    int64_t rows = 0;
    double square = 0;
    memset(sum, 0, (size_t)c * sizeof *sum);
    for (int64_t i = 0; i < n; i++) {
        double length = 0;
        for (int64_t j = 0; j < c; j++)
            length += x[i * c + j] * x[i * c + j];
        if (!(length > 0))
            continue;
        rows++;
        length = sqrt(length);
        for (int64_t j = 0; j < c; j++)
            sum[j] += x[i * c + j] / length;
    }
    for (int64_t j = 0; j < c; j++)
        square += sum[j] * sum[j];
    return rows > 1 ? (square - (double)rows) / ((double)rows * (double)(rows - 1)) : NAN;
}

weir_status weir_alike_measure(weir_alike *out, const float *x, int64_t n, int64_t c, weir_err *err)
{
    *out = (weir_alike){NAN, NAN, NAN, NAN, NAN};
    if (!all_finite(x, n * c))
        return WEIR_OK;
    double *wide = widened(x, n, c), *work = weir_calloc((size_t)c, sizeof *work);
    if (wide && work) {
        norms_of(wide, n, c, work, &out->composite, &out->frobenius);
        out->cosine = mean_cosine(wide, n, c, work);
        take_mean(wide, n, c, work);
        norms_of(wide, n, c, work, &out->composite_rest, &out->frobenius_rest);
    }
    const bool ok = wide && work;
    weir_free(wide);
    weir_free(work);
    return ok ? WEIR_OK : weir_nomem(err, "a matrix of rows");
}

/* left and right: room for the vectors, which nobody wants. */
static weir_status singular(double *x, int64_t n, int64_t c, int64_t k, double *value, weir_err *err)
{
    double *left = weir_calloc((size_t)k, (size_t)n * sizeof *left);
    double *right = weir_calloc((size_t)k, (size_t)c * sizeof *right);
    const weir_status s =
        left && right ? weir_linalg_singular(x, n, c, k, value, left, right, err) : weir_nomem(err, "singular values");
    weir_free(left);
    weir_free(right);
    return s;
}

weir_status weir_alike_singular(const float *x, int64_t n, int64_t c, bool rest, int64_t k, double *value,
                                weir_err *err)
{
    const bool finite = all_finite(x, n * c);
    const int64_t most = n < c ? n : c;
    for (int64_t i = 0; i < k; i++)
        value[i] = finite ? 0 : NAN;
    if (!finite)
        return WEIR_OK;
    double *wide = widened(x, n, c), *work = weir_calloc((size_t)c, sizeof *work);
    weir_status s = wide && work ? WEIR_OK : weir_nomem(err, "singular values");
    if (s == WEIR_OK && rest)
        take_mean(wide, n, c, work);
    if (s == WEIR_OK)
        s = singular(wide, n, c, k < most ? k : most, value, err);
    weir_free(wide);
    weir_free(work);
    return s;
}

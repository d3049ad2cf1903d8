#include "median.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 1 << 16, BIN_SHIFT = 15 };

static void swap(double *a, double *b)
{
    const double t = *a;
    *a = *b;
    *b = t;
}

/* Reorders x so that x[k] is the k-th smallest and nothing before it is larger (Hoare 1961, "Algorithm 65: Find"). */
static void select_kth(double *x, int64_t n, int64_t k)
{
    for (int64_t low = 0, high = n - 1; low < high;) {
        const double pivot = x[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot)
                i++;
            while (x[j] > pivot)
                j--;
            if (i <= j)
                swap(&x[i++], &x[j--]);
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

double weir_median(double *x, int64_t n)
{
    const int64_t half = n / 2;
    select_kth(x, n, half);
    if (n % 2)
        return x[half];
    double below = x[0];
    for (int64_t i = 1; i < half; i++)
        below = x[i] > below ? x[i] : below;
    return (below + x[half]) / 2;
}

bool weir_bins_new(weir_bins *b)
{
    *b = (weir_bins){.count = calloc(BINS, sizeof *b->count)};
    return b->count;
}

void weir_bins_free(weir_bins *b)
{
    free(b->count);
}

void weir_bins_add(weir_bins *b, double x)
{
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    b->count[bits >> BIN_SHIFT]++;
    b->n++;
}

/* The middle of the bin that has the i-th smallest value. */
static double bin_of(const weir_bins *b, int64_t i)
{
    uint32_t bin = 0, bits;
    for (int64_t before = 0; before + b->count[bin] <= i; bin++)
        before += b->count[bin];
    bits = bin ? bin << BIN_SHIFT | 1u << (BIN_SHIFT - 1) : 0;
    float middle;
    memcpy(&middle, &bits, sizeof middle);
    return (double)middle;
}

double weir_bins_median(const weir_bins *b)
{
    return b->n ? (bin_of(b, (b->n - 1) / 2) + bin_of(b, b->n / 2)) / 2 : NAN;
}

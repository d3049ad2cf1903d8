/* Quantiles, equal bins, joined bins. */
#include "figures/bins.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void weir_nb_sort(double *v, int64_t n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
}

double weir_nb_quantile(const double *sorted, int64_t n, double share)
{
    if (n == 0)
        return NAN;
    const double at = share * (double)(n - 1);
    const int64_t i = (int64_t)at, next = i + 1 < n ? i + 1 : i;
    return sorted[i] + (sorted[next] - sorted[i]) * (at - (double)i);
}

void weir_nb_edges(double low, double high, int64_t n, double *edge)
{
    if (!(low <= high)) {
        low = 0;
        high = 1;
    } else if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    const double step = (high - low) / (double)n;
    for (int64_t i = 0; i < n; i++)
        edge[i] = (double)i * step + low;
    edge[n] = high;
}

int64_t weir_nb_bin_of(const double *edge, int64_t n, double v)
{
    int64_t i = (int64_t)((v - edge[0]) / (edge[n] - edge[0]) * (double)n);
    i = i < 0 ? 0 : i >= n ? n - 1 : i;
    while (i > 0 && v < edge[i])
        i--;
    while (i < n - 1 && v >= edge[i + 1])
        i++;
    return i;
}

static void set_heights(weir_nb_bins *b)
{
    int64_t all = 0;
    for (int64_t i = 0; i < b->n; i++)
        all += b->count[i];
    for (int64_t i = 0; i < b->n; i++)
        b->height[i] = (double)b->count[i] / (double)all / (b->edge[i + 1] - b->edge[i]);
}

bool weir_nb_bins_join(weir_nb_bins *b, int fine, const int64_t *count, double (*edge)(int bin), double low,
                       double high, int64_t bars)
{
    int first = 0, last = fine - 1;
    int64_t held = 0;
    *b = (weir_nb_bins){.edge = malloc(sizeof *b->edge * ((size_t)fine + 2)),
                        .count = malloc(sizeof *b->count * ((size_t)fine + 1)),
                        .height = malloc(sizeof *b->height * ((size_t)fine + 1))};
    if (!b->edge || !b->count || !b->height)
        return false;
    while (first < fine && count[first] == 0)
        first++;
    while (last > first && count[last] == 0)
        last--;
    b->edge[0] = low;
    for (int j = first; j <= last && j < fine; j++) {
        const double end = fmin(edge(j + 1), high);
        held += count[j];
        if (end - b->edge[b->n] >= (high - low) / (double)bars || j == last) {
            b->count[b->n++] = held;
            b->edge[b->n] = end;
            held = 0;
        }
    }
    if (low == high) {
        b->edge[0] = low - 0.5;
        b->edge[1] = low + 0.5;
    }
    set_heights(b);
    return true;
}

void weir_nb_bins_free(weir_nb_bins *b)
{
    free(b->edge);
    free(b->count);
    free(b->height);
    *b = (weir_nb_bins){0};
}

void weir_nb_bins_hold(const weir_nb_bins *b, weir_chart_axis *across)
{
    const double room = (b->edge[b->n] - b->edge[0]) / 50;
    weir_chart_hold_one(across, b->edge[0] - room);
    weir_chart_hold_one(across, b->edge[b->n] + room);
    across->exact = true;
}

void weir_nb_bins_put(const weir_nb_bins *b, weir_jsonw *numbers)
{
    weir_nb_put_reals(numbers, "bin_edges", b->edge, b->n + 1);
    weir_nb_put_ints(numbers, "bin_counts", b->count, b->n);
    weir_nb_put_reals(numbers, "bin_height", b->height, b->n);
}

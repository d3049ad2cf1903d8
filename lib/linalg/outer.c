/* Sums of outer products: a tile of a row of the matrix at a time stays in registers while rows are added to it. */
#include <weir/linalg.h>

enum { TILE = 8, BLOCK = 64 }; /* elements; rows that are added before the next tile */

/* a[j..j+TILE) += sum of s[r] x[r, j..] */
static void add_tile(double *a, int64_t n, const double *x, int64_t rows, const double *s)
{
    double sum[TILE];
    for (int t = 0; t < TILE; t++)
        sum[t] = a[t];
    for (int64_t r = 0; r < rows; r++)
        for (int t = 0; t < TILE; t++)
            sum[t] += s[r] * x[r * n + t];
    for (int t = 0; t < TILE; t++)
        a[t] = sum[t];
}

static void add_block(double *a, int64_t n, const double *x, int64_t rows, const double *weight)
{
    double s[BLOCK];
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        for (int64_t r = 0; r < rows; r++)
            s[r] = weight ? weight[r] * x[r * n + i] : x[r * n + i];
        for (; j + TILE <= n; j += TILE)
            add_tile(a + i * n + j, n, x + j, rows, s);
        for (; j < n; j++)
            for (int64_t r = 0; r < rows; r++)
                a[i * n + j] += s[r] * x[r * n + j];
    }
}

void weir_linalg_outer_add(double *a, int64_t n, const double *x, int64_t rows, const double *weight)
{
    for (int64_t r = 0; r < rows; r += BLOCK)
        add_block(a, n, x + r * n, rows - r < BLOCK ? rows - r : BLOCK, weight ? weight + r : NULL);
}

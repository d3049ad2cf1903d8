/* Whether documents' first rows drown the others. Many models have one token, mostly the first of a window, that is
 * hundreds of times as long as all others ("massive activations", Sun et al. 2024): of a mean over rows nothing else is
 * left then, and no class can be seen in it. */
#include <math.h>
#include <stdlib.h>

#include "cli/say.h"
#include "direction.h"
#include "health/median.h"

enum { DOCS = 32, ROWS = 64, MANY = 10 }; /* of each dump, the first documents; of each, rows; times as long */

typedef struct norms {
    int64_t n_first, n_others;
    double first[2 * DOCS], others[2 * DOCS * ROWS];
} norms;

/* Rows that are not finite are an error later on, and none of what has an order. */
static void add(double *norm, int64_t *count, const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    if (isfinite(sum))
        norm[(*count)++] = sqrt(sum);
}

static weir_status look_at(const weir_direction *d, const weir_direction_dump *u, float *raw, norms *found,
                           weir_err *err)
{
    for (int64_t doc = 0; doc < DOCS && doc < weir_dump_n_docs(u->r); doc++) {
        weir_dump_doc_rows rows;
        WEIR_TRY(weir_dump_read_doc(u->r, doc, &rows, err));
        const int64_t n = rows.n < ROWS ? rows.n : ROWS;
        if (n < 2)
            continue;
        WEIR_TRY(weir_dump_read(u->r, u->hook, rows.row, n, raw, err));
        add(found->first, &found->n_first, raw, d->n);
        for (int64_t i = 1; i < n; i++)
            add(found->others, &found->n_others, raw + i * d->n, d->n);
    }
    return WEIR_OK;
}

static weir_status look(const weir_direction *d, float *raw, norms *found, weir_err *err)
{
    for (int k = 0; k < d->n_dumps; k++)
        WEIR_TRY(look_at(d, &d->dump[k], raw, found, err));
    if (found->n_first == 0 || found->n_others == 0)
        return WEIR_OK;
    const double first = weir_median(found->first, found->n_first), other = weir_median(found->others, found->n_others);
    if (first > MANY * other)
        weir_cli_note(d->cli,
                      "the first row of a document is %.3g times as long as the others, and --rows %s takes it with "
                      "them: record without it (weir trace --positions 1:), or take --rows last",
                      first / other, d->a->rows == WEIR_DIRECTION_ALL ? "all" : "mean");
    return WEIR_OK;
}

weir_status weir_direction_note_massive(const weir_direction *d, weir_err *err)
{
    if (d->a->rows == WEIR_DIRECTION_LAST)
        return WEIR_OK;
    norms *found = calloc(1, sizeof *found);
    float *raw = malloc((size_t)(ROWS * d->n) * sizeof *raw);
    const weir_status st =
        found && raw ? look(d, raw, found, err) : weir_fail(err, WEIR_E_NOMEM, "out of memory");
    free(found);
    free(raw);
    return st;
}

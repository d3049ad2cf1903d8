/* bench_compress: the chunk compressor, level 1, against zlib level 1, on one core in one process.
 *
 *     bench_compress [ACTIVATIONS.h5 PATTERNS.h5]
 *
 * Both pack the same shuffled tiles: of real activations and attention patterns from two dumps (those without a dump
 * are left out), and of 2 %-dense numbers as a sparse autoencoder gives them. Each tile is packed by zlib (its state
 * kept, which is its best) and then by each table for a while; the figures are medians over the tiles of the ratios.
 * The size is that of all tiles together; every stream is inflated and compared. One JSON object a line;
 * tests/bench/run collects them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <weir/record.h>

#include "bench/machine.h"
#include "kernels/kernels.h"
#include "record/compress.h"

enum { TABLES = 3, ROWS = 1024, COLS = 64, MOST_TILES = 256, TILE_BYTES = ROWS * COLS * 4, ELEM = 4 };

/* What one kind of data is packed to. */
typedef struct samples {
    const char *name;
    int n;
    size_t raw, ours, theirs; /* bytes of all tiles, once for each table */
    double ratio[TABLES][MOST_TILES], speed[TABLES][MOST_TILES];
} samples;

typedef struct bench {
    int n_tables;
    const weir_kern *kern[TABLES];
    weir_packer *packer[TABLES];
    z_stream zlib;
    uint8_t *plain, *packed, *back;
} bench;

static void die(const char *what)
{
    fprintf(stderr, "bench_compress: %s\n", what);
    exit(1);
}

static void check(weir_status status, const weir_err *err)
{
    char line[1024];
    if (status != WEIR_OK)
        die(weir_err_line(err, line, sizeof line));
}

static void open_bench(bench *b)
{
    weir_err err = {0};
    b->n_tables = weir_kern_available(b->kern, TABLES);
    for (int k = 0; k < b->n_tables; k++) {
        setenv("WEIR_KERNEL", weir_kern_name(b->kern[k]), 1);
        check(weir_packer_new(&b->packer[k], 1, &err), &err);
    }
    unsetenv("WEIR_KERNEL");
    b->plain = malloc(TILE_BYTES);
    b->packed = malloc(2 * TILE_BYTES);
    b->back = malloc(TILE_BYTES);
    if (!b->plain || !b->packed || !b->back || deflateInit(&b->zlib, 1) != Z_OK)
        die("out of memory");
}

/* --- one tile */

/* Seconds that this thread computed: a neighbour that takes the processor away costs none. */
static double busy(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double zlib_seconds(bench *b, size_t n, size_t *bytes)
{
    const double t = busy();
    deflateReset(&b->zlib);
    b->zlib.next_in = b->plain;
    b->zlib.avail_in = (uInt)n;
    b->zlib.next_out = b->packed;
    b->zlib.avail_out = 2 * TILE_BYTES;
    if (deflate(&b->zlib, Z_FINISH) != Z_STREAM_END)
        die("zlib did not end its stream");
    *bytes += b->zlib.total_out;
    return busy() - t;
}

/* The median of a few batches, each about a fifth of a zlib's turn. */
static double our_seconds(bench *b, weir_packer *p, size_t n, double turn, size_t *bytes)
{
    enum { BATCHES = 5 };
    double t = busy(), batch[BATCHES];
    const size_t used = weir_packer_pack(p, b->plain, n, ELEM, b->packed, 2 * TILE_BYTES);
    uLongf len = TILE_BYTES;
    const int reps = 1 + (int)(turn / BATCHES / (busy() - t));
    if (uncompress(b->back, &len, b->packed, used) != Z_OK || len != n || memcmp(b->back, b->plain, n))
        die("a stream does not inflate to what was packed");
    for (int i = 0; i < BATCHES; i++) {
        t = busy();
        for (int r = 0; r < reps; r++)
            weir_packer_pack(p, b->plain, n, ELEM, b->packed, 2 * TILE_BYTES);
        batch[i] = (busy() - t) / reps;
    }
    *bytes = used;
    return machine_median(batch, BATCHES);
}

static void measure(bench *b, samples *s, const weir_tile *t)
{
    const size_t n = t->tile_rows * t->tile_cols * t->elem;
    size_t used = 0;
    if (s->n == MOST_TILES)
        return;
    weir_tile_shuffle(b->plain, t);
    for (int k = 0; k < b->n_tables; k++) {
        const double before = zlib_seconds(b, n, &s->theirs), ours = our_seconds(b, b->packer[k], n, before, &used);
        s->ratio[k][s->n] = before / ours;
        s->speed[k][s->n] = (double)n / ours * 1e-6;
        s->ours += used;
        s->raw += n;
    }
    s->n++;
}

/* --- reporting */

static void line(const char *name, double ratio, double floor, double aim, bool at_most, double value, const char *unit)
{
    printf("{\"name\": \"%s\", \"ratio\": %.4f, \"floor\": %g, \"aim\": %g, \"at_most\": %s, "
           "\"baseline\": \"zlib level 1\", \"value\": %.4g, \"unit\": \"%s\"}\n",
           name, ratio, floor, aim, at_most ? "true" : "false", value, unit);
    fflush(stdout);
}

/* What is asked of dense activations and of the rest, by table. */
static const struct {
    const char *table;
    double floor, aim;
} dense[TABLES] = {{"ref", 3, 10}, {"avx2", 8, 20}, {"avx512", 14, 35}};

static void report(bench *b, samples *s, bool is_dense)
{
    char name[80];
    for (int k = 0; s->n > 0 && k < b->n_tables; k++)
        for (int f = 0; f < TABLES; f++)
            if (!strcmp(dense[f].table, weir_kern_name(b->kern[k]))) {
                snprintf(name, sizeof name, "pack %s, %s", s->name, dense[f].table);
                line(name, machine_median(s->ratio[k], s->n), is_dense ? dense[f].floor : 2,
                     is_dense ? dense[f].aim : 4, false, machine_median(s->speed[k], s->n), "MB/s a core");
            }
    if (s->n > 0) {
        snprintf(name, sizeof name, "packed size of %s", s->name);
        line(name, (double)s->ours / (double)s->theirs, 1, 0.98, true, (double)s->raw / (double)s->ours,
             "times smaller than raw");
    }
}

/* --- data */

/* Every `step`th tile of the hooks whose names end in `site`. */
static void measure_site(bench *b, samples *s, weir_dump_reader *r, const char *site, int64_t step)
{
    weir_err err = {0};
    for (int i = 0; i < weir_dump_n_hooks(r); i++) {
        const weir_dump_hook *h = weir_dump_hook_at(r, i);
        const size_t end = strlen(h->name), len = strlen(site);
        if (end < len || strcmp(h->name + end - len, site))
            continue;
        float *x = malloc((size_t)(ROWS * h->width) * sizeof *x);
        if (!x)
            die("out of memory");
        check(weir_dump_read(r, i, 0, ROWS, x, &err), &err);
        for (int64_t c = 0; c + COLS <= h->width; c += step * COLS) {
            weir_tile t = {(const uint8_t *)(x + c), (size_t)h->width * ELEM, ELEM, ROWS, COLS, ROWS, COLS};
            measure(b, s, &t);
        }
        free(x);
    }
}

static void bench_activations(bench *b, const char *path)
{
    static const char *const sites[] = {"hook_resid_pre", "ln1.hook_out", "mlp.hook_pre", "mlp.hook_post"};
    weir_err err = {0};
    weir_dump_reader *r;
    check(weir_dump_open(&r, path, &err), &err);
    for (int i = 0; i < 4; i++) {
        samples s = {.name = sites[i]};
        measure_site(b, &s, r, sites[i], i < 2 ? 2 : 5);
        report(b, &s, true);
    }
    weir_dump_close(r);
}

/* Tiles of 64 x 1 x 64 as the dump has them: those above the diagonal hold nothing and are never packed. */
static void bench_patterns(bench *b, const char *path)
{
    enum { QUERIES = COLS, STEP = 7 };
    weir_err err = {0};
    weir_dump_reader *r;
    samples s = {.name = "pattern"};
    int seen = 0;
    check(weir_dump_open(&r, path, &err), &err);
    for (int i = 0; i < weir_dump_n_hooks(r); i++) {
        const weir_dump_hook *h = weir_dump_hook_at(r, i);
        float *x = malloc((size_t)(QUERIES * h->width) * sizeof *x);
        if (!x)
            die("out of memory");
        for (int64_t row = 0; row + QUERIES <= h->rows; row += QUERIES) {
            check(weir_dump_read(r, i, row, QUERIES, x, &err), &err);
            for (int64_t c = 0; c < h->width; c += COLS)
                if (c % h->size <= row && seen++ % (STEP * h->heads) == 0) {
                    weir_tile t = {
                        (const uint8_t *)(x + c), (size_t)h->width * ELEM, ELEM, QUERIES, COLS, QUERIES, COLS};
                    measure(b, &s, &t);
                }
        }
        free(x);
    }
    report(b, &s, false);
    weir_dump_close(r);
}

/* One value in fifty is positive, at random places. */
static void bench_sparse(bench *b)
{
    enum { TILES = 8 };
    samples s = {.name = "2 %-dense"};
    float *x = calloc(ROWS * COLS, sizeof *x);
    uint32_t seed = 12345;
    if (!x)
        die("out of memory");
    for (int tile = 0; tile < TILES; tile++) {
        for (int i = 0; i < ROWS * COLS; i++) {
            seed = seed * 1664525u + 1013904223u;
            const bool fires = seed >> 8 < (1u << 24) / 50;
            seed = seed * 1664525u + 1013904223u;
            x[i] = fires ? -logf(((float)(seed >> 8) + 0.5f) * 0x1p-24f) : 0;
        }
        weir_tile t = {(const uint8_t *)x, COLS * ELEM, ELEM, ROWS, COLS, ROWS, COLS};
        measure(b, &s, &t);
    }
    report(b, &s, false);
    free(x);
}

int main(int argc, char **argv)
{
    bench b = {0};
    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: bench_compress [ACTIVATIONS.h5 PATTERNS.h5]\n");
        return 2;
    }
    open_bench(&b);
    if (argc == 3) {
        bench_activations(&b, argv[1]);
        bench_patterns(&b, argv[2]);
    }
    bench_sparse(&b);
    for (int k = 0; k < b.n_tables; k++)
        weir_packer_free(b.packer[k]);
    deflateEnd(&b.zlib);
    free(b.plain);
    free(b.packed);
    free(b.back);
    return 0;
}

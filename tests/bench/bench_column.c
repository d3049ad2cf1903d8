/* bench_column: one neuron over all rows out of a large dump, against h5py on the same file and on a file in chunks of
 * whole rows.
 *
 *     bench_column [--json] [--rows N] DIR
 *
 * Writes DIR/column.h5, N x 3072 (a million rows: about 10 GB; kept and used again if it is there) and removes it in
 * the end. The values are those of an MLP: GELU of normal ones. Rounds of (ours, h5py, ours) read the same column of a
 * file that has been read before, each time another one; ratios are medians over rounds. h5py's reading by rows is
 * measured over ROW_FILE rows and counted per row: it takes minutes otherwise. Results are compared by their CRC. With
 * --json each line is {name, ratio, floor, aim, at_most, baseline, value, unit}.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "bench/machine.h"
#include "record/source.h"

enum { WIDTH = 3072, POOL = 1 << 22, BAND = 1024, ROUNDS = 7, ROW_FILE = 25600, ROW_ROUNDS = 3 };

static const char hook[] = "blocks.6.mlp.hook_post";
static const weir_point point = {hook, WEIR_SITE_MLP_POST, 6, 2, WIDTH, 1, WIDTH, "T F", false, false, false};

static void die(const char *what, const weir_err *err)
{
    char line[1024];
    fprintf(stderr, "bench_column: %s%s%s\n", what, err ? ": " : "", err ? weir_err_line(err, line, sizeof line) : "");
    exit(1);
}

static void *room(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        die("out of memory", NULL);
    return p;
}

/* --- the file */

static float uniform(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (float)(*s >> 40) * 0x1p-24f + 0x1p-25f;
}

/* GELU of normal numbers (Box and Muller). */
static float *values(void)
{
    float *x = room(POOL * sizeof *x);
    uint64_t s = 1;
    for (int i = 0; i < POOL; i++) {
        const float n = sqrtf(-2 * logf(uniform(&s))) * cosf(6.2831853f * uniform(&s));
        x[i] = 0.5f * n * (1 + erff(n * 0.70710678f));
    }
    return x;
}

static void append(weir_dump *d, int64_t row, const float *pool, float *band)
{
    static int32_t id[BAND], seq[BAND];
    static int64_t doc[BAND], pos[BAND], zero[BAND];
    static uint8_t flags[BAND], keep[BAND];
    weir_err err = {0};
    uint64_t s = (uint64_t)row + 7;
    for (int r = 0; r < BAND; r++) {
        uniform(&s);
        memcpy(band + (size_t)r * WIDTH, pool + (s >> 40) % (POOL - WIDTH), WIDTH * sizeof *band);
        pos[r] = row + r;
        keep[r] = 1;
    }
    const weir_token_rows t = {BAND, id, doc, pos, pos, zero, zero, flags, NULL};
    const weir_rows rows = {.n = BAND, .id = id, .seq = seq, .pos = pos, .keep = keep};
    const weir_value v = {&point, band, WIDTH, 1, WIDTH, &rows};
    if (weir_dump_tokens(d, &t, &err) || weir_dump_value(d, &v, &err))
        die("writing", &err);
}

static void write_dump(const char *path, int64_t rows)
{
    weir_dump *d;
    weir_err err = {0};
    weir_dump_options o;
    weir_dump_options_init(&o);
    o.force = true;
    const weir_dump_header h = {.model = "bench",
                                .family = "gpt2",
                                .fingerprint = "",
                                .tokenizer_fingerprint = "",
                                .dtype = "F32",
                                .ctx = BAND};
    const weir_doc doc = {.text = {"x", 1}, .byte_len = 1};
    float *pool = values(), *band = room((size_t)BAND * WIDTH * sizeof *band);
    if (weir_dump_new(&d, path, &h, &o, &err) || weir_dump_add_point(d, &point, NULL, -1, &err) ||
        weir_dump_doc(d, &doc, "bench", &err))
        die("writing", &err);
    for (int64_t row = 0; row < rows; row += BAND)
        append(d, row, pool, band);
    if (weir_dump_commit(d, NULL, &err))
        die("writing", &err);
    free(pool);
    free(band);
}

/* --- readers */

typedef struct reading {
    double seconds;
    unsigned long crc;
} reading;

static reading ours(const char *path, int64_t column, int64_t rows, float *out)
{
    weir_dump_reader *r;
    weir_err err = {0};
    if (weir_dump_open(&r, path, &err))
        die("reading", &err);
    const double start = machine_now();
    if (weir_dump_read_column(r, 0, column, 0, rows, out, &err))
        die("reading", &err);
    reading got = {.seconds = machine_now() - start};
    got.crc = crc32(0, (const Bytef *)out, (uInt)((size_t)rows * sizeof *out));
    weir_dump_close(r);
    return got;
}

static reading h5py(const char *path, int64_t column, int64_t rows)
{
    char command[1500];
    reading got = {0};
    snprintf(command, sizeof command, "/usr/bin/python3 tests/bench/column_h5py.py read '%s' %s %lld %lld", path, hook,
             (long long)column, (long long)rows);
    FILE *f = popen(command, "r");
    if (!f || fscanf(f, "%lf %lu", &got.seconds, &got.crc) != 2 || pclose(f) != 0)
        die("h5py failed", NULL);
    return got;
}

static void rewrite_by_rows(const char *path, const char *out)
{
    char command[2500];
    snprintf(command, sizeof command, "/usr/bin/python3 tests/bench/column_h5py.py rows '%s' %s %d '%s'", path, hook,
             ROW_FILE, out);
    if (system(command) != 0)
        die("h5py failed", NULL);
}

/* --- figures */

static bool json;

static void report(const char *name, double ratio, double floor, double aim, const char *baseline, double value)
{
    if (json)
        printf(
            "{\"name\": \"%s\", \"ratio\": %.4f, \"floor\": %g, \"aim\": %g, \"at_most\": false, \"baseline\": \"%s\", "
            "\"value\": %.4g, \"unit\": \"ms\"}\n",
            name, ratio, floor, aim, baseline, value);
    else
        printf("%-40s %8.2f times %-40s >= %g  aim %g  (%.4g ms)\n", name, ratio, baseline, floor, aim, value);
    fflush(stdout);
}

/* The same column, read by both in turn. by_rows: the other file, of fewer rows. */
static void compare(const char *path, const char *by_rows, int64_t rows, float *out)
{
    const char *other = by_rows ? by_rows : path;
    const int rounds = by_rows ? ROW_ROUNDS : ROUNDS;
    const int64_t n = by_rows ? ROW_FILE : rows;
    double ratio[ROUNDS], ms[ROUNDS];
    for (int i = -1; i < rounds; i++) { /* the first round only warms */
        const int64_t column = 640 + 5 * (i + 1);
        const reading a = ours(path, column, rows, out), b = h5py(other, column, n), c = ours(path, column, rows, out);
        if (by_rows ? crc32(0, (const Bytef *)out, (uInt)((size_t)n * sizeof *out)) != b.crc : a.crc != b.crc)
            die("the results differ", NULL);
        if (i < 0)
            continue;
        const double mine = (a.seconds + c.seconds) / 2;
        ratio[i] = b.seconds / (double)n / (mine / (double)rows);
        ms[i] = mine * 1e3;
    }
    char name[80];
    snprintf(name, sizeof name, "column of %lldk x %d", (long long)rows / 1000, WIDTH);
    if (by_rows)
        report(name, machine_median(ratio, rounds), 100, 300, "h5py on chunks of 256 rows, per row",
               machine_median(ms, rounds));
    else
        report(name, machine_median(ratio, rounds), 5, 8, "h5py on the same file", machine_median(ms, rounds));
}

int main(int argc, char **argv)
{
    int64_t rows = 1000 * BAND;
    const char *dir = NULL;
    char path[1000], other[1000];
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            json = true;
        else if (!strcmp(argv[i], "--rows") && i + 1 < argc)
            rows = (atoll(argv[++i]) + BAND - 1) / BAND * BAND;
        else
            dir = argv[i];
    }
    if (!dir || rows < ROW_FILE) {
        fprintf(stderr, "usage: bench_column [--json] [--rows N] DIR    (N at least %d)\n", ROW_FILE);
        return 2;
    }
    snprintf(path, sizeof path, "%s/column.h5", dir);
    snprintf(other, sizeof other, "%s/column-rows.h5", dir);
    if (access(path, R_OK) != 0)
        write_dump(path, rows);
    rewrite_by_rows(path, other);
    float *out = room((size_t)rows * sizeof *out);
    compare(path, NULL, rows, out);
    compare(path, other, rows, out);
    free(out);
    unlink(other);
    unlink(path);
    return 0;
}

/* A recording of many small documents, the same each time, that may stop and go on anywhere; and a comparison of files.
 */
#ifndef RECORD_RUNS_H
#define RECORD_RUNS_H

#include <errno.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "record_fixture.h"

enum { RUN_DOCS = 150, RUN_POINTS = 5, RUN_OWN = 2 };

/* From all of the fixture's points: embed, a scale, heads, keys, and one of a layer far behind. */
static const int run_point[RUN_POINTS] = {0, 2, 3, 4, 7};

static inline int64_t run_len(int doc)
{
    return doc % 7 == 3 ? 0 : 25 + doc * 11 % 16; /* some have no rows; none is longer than FX_CTX */
}

/* Rows before document doc. */
static inline int64_t run_start(int doc)
{
    int64_t row = 0;
    for (int i = 0; i < doc; i++)
        row += run_len(i);
    return row;
}

/* The document that row `row` belongs to; RUN_DOCS behind the last one. */
static inline int run_doc_of(int64_t row)
{
    int doc = 0;
    while (doc < RUN_DOCS && run_start(doc + 1) <= row)
        doc++;
    return doc;
}

/* Rows that the last flush made safe, told across processes. */
static int64_t *run_safe;

static inline void run_watch(void)
{
    if (!run_safe)
        run_safe = mmap(NULL, sizeof *run_safe, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *run_safe = 0;
}

typedef struct run_how {
    weir_dump_options o;
    int stop;         /* documents that are run */
    int changed;      /* a document whose text is another one; -1: none */
    bool never_flush; /* the driver does not know that it should */
    int points, n_own;
    bool all_units;    /* of the last point */
    bool other_source; /* the second file has another name */
    int again;         /* when it goes on: whole documents that are run once more */
    int pause;         /* microseconds behind each document */
    int resumed_docs;  /* when it goes on the text has so many documents; 0: all */
    int own[RUN_OWN];
} run_how;

static inline run_how run_usual(void)
{
    run_how h = {.stop = RUN_DOCS, .changed = -1, .points = RUN_POINTS, .n_own = RUN_OWN};
    weir_dump_options_init(&h.o);
    h.o.threads = 1; /* programs that fork have no threads */
    h.o.logprob = true;
    h.o.run_options = "{\"docs\":\"line\",\"text\":[{\"name\":\"a.txt\",\"sha256\":\"0123456789abcdef\"}]}";
    return h;
}

static inline weir_status run_open(weir_dump **d, const char *path, run_how *h, weir_err *err)
{
    weir_dump_header head = fx_header();
    static const int64_t units[] = {0, 63, 64, 199};
    weir_status st = weir_dump_new(d, path, &head, &h->o, err);
    for (int i = 0; i < h->points && !st; i++) {
        bool some = run_point[i] == 7 && !h->all_units;
        st = weir_dump_add_point(*d, &fx_point[run_point[i]], some ? units : NULL, some ? 4 : -1, err);
    }
    if (!st)
        st = weir_dump_own_new(*d, "top", "id", &fx_point[7], WEIR_DUMP_I64, 40, &h->own[0], err);
    if (!st && h->n_own > 1)
        st = weir_dump_own_new(*d, "top", "mean", NULL, WEIR_DUMP_F32, 1, &h->own[1], err);
    return st;
}

static inline weir_status run_own(weir_dump *d, const run_how *h, int64_t first, int64_t n, weir_err *err)
{
    int64_t id[FX_CTX * 40];
    float mean[FX_CTX];
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < 40; k++)
            id[i * 40 + k] = (first + i) * 1000 + k;
        mean[i] = fx_value(0, first + i, 77);
    }
    weir_status st = weir_dump_own_append(d, h->own[0], id, n, err);
    return st || h->n_own < 2 ? st : weir_dump_own_append(d, h->own[1], mean, n, err);
}

static inline weir_status run_declare(weir_dump *d, const run_how *h, int doc, weir_err *err)
{
    static const char *const source[] = {"a.txt", "b.txt", "c.txt"};
    char text[32];
    snprintf(text, sizeof text, "title %d", doc * doc);
    weir_field field[] = {{.name = {"n", 1}, .type = WEIR_FIELD_INT, .i = doc},
                          {.name = {"a/b%", 4}, .type = WEIR_FIELD_STRING, .str = {text, strlen(text)}},
                          {.name = {"late", 4}, .type = WEIR_FIELD_BOOL, .i = 1}};
    weir_doc wd = {.fields = field,
                   .n_fields = doc % 5 == 2 ? 3 : 2, /* "late" is dropped */
                   .source = 10 + doc / 50,
                   .byte_off = doc * 100,
                   .byte_len = 99 - doc % 3};
    return weir_dump_doc(d, &wd, h->other_source && doc / 50 == 1 ? "z.txt" : source[doc / 50], err);
}

/* Documents from that of row `row` on: values, then the document, then its tokens, as a driver does. */
static inline weir_status run_go(weir_dump *d, const run_how *h, int64_t row, weir_err *err)
{
    int first = run_doc_of(row), stop = h->resumed_docs ? h->resumed_docs : h->stop;
    weir_status st = WEIR_OK;
    for (int doc = 0; doc < stop && !st; doc++) {
        fx_pass pass;
        int64_t start = run_start(doc), n = run_len(doc);
        if (doc < first) {
            st = run_declare(d, h, doc, err);
            continue;
        }
        fx_pass_make(&pass, start + (doc == h->changed), n, doc, 0);
        for (int i = 0; i < h->points && n && !st; i++) {
            weir_value v = fx_fill(&pass, run_point[i], start);
            st = weir_dump_value(d, &v, err);
        }
        if (!st)
            st = run_own(d, h, start, n, err);
        if (!st)
            st = run_declare(d, h, doc, err);
        if (!st)
            st = fx_tokens(d, &pass, doc, err);
        fx_pass_free(&pass);
        if (!st && !h->never_flush)
            st = weir_dump_flush(d, err);
        if (!st && !h->never_flush && run_safe)
            *run_safe = (start + n) / 1024 * 1024;
        usleep((unsigned)h->pause);
    }
    return st;
}

/* The whole recording, or what is still missing of it. */
static inline weir_status run_all(const char *path, run_how *h, weir_err *err)
{
    weir_dump *d = NULL;
    weir_status st = run_open(&d, path, h, err);
    if (!st && h->o.resume) { /* from the beginning of the document that is not whole */
        int doc = run_doc_of(weir_dump_rows_done(d));
        int64_t row = run_start(doc > h->again ? doc - h->again : 0);
        st = weir_dump_seek(d, NULL, row, err);
        for (int i = 0; i < h->points && !st; i++)
            st = weir_dump_seek(d, &fx_point[run_point[i]], row, err);
        if (!st)
            st = run_go(d, h, row, err);
    } else if (!st) {
        st = run_go(d, h, 0, err);
    }
    if (st || h->stop < RUN_DOCS) {
        weir_dump_abort(d, !st);
        return st;
    }
    return weir_dump_commit(d, NULL, err);
}

/* --- comparison: datasets of two files, byte for byte */

typedef struct same_files {
    hid_t other;
    int datasets, different;
    bool beginning;  /* the other one may have more rows */
    char first[128]; /* name of the first that differs */
} same_files;

static inline void *same_bytes(hid_t d, hid_t type, const hsize_t *dim, int rank, size_t *bytes)
{
    hsize_t start[4] = {0};
    hid_t memory = H5Screate_simple(rank, dim, NULL), file = H5Dget_space(d);
    *bytes = (size_t)H5Sget_simple_extent_npoints(memory) * H5Tget_size(type);
    void *p = calloc(*bytes + 1, 1);
    if (*bytes && (H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, dim, NULL) < 0 ||
                   H5Dread(d, type, memory, file, H5P_DEFAULT, p) < 0))
        memset(p, 0xee, *bytes); /* unreadable: no two are the same */
    H5Sclose(memory);
    H5Sclose(file);
    return p;
}

static inline herr_t same_one(hid_t file, const char *name, const H5O_info_t *info, void *user)
{
    same_files *s = user;
    hsize_t dim[2][4] = {{0}};
    if (info->type != H5O_TYPE_DATASET || (s->beginning && !strncmp(name, "progress", 8)))
        return 0;
    hid_t d[2] = {H5Dopen2(file, name, H5P_DEFAULT), H5Dopen2(s->other, name, H5P_DEFAULT)}, type[2] = {-1, -1}, space;
    bool same = d[0] >= 0 && d[1] >= 0;
    int rank[2] = {0};
    for (int i = 0; i < 2 && same; i++) {
        type[i] = H5Dget_type(d[i]);
        space = H5Dget_space(d[i]);
        rank[i] = H5Sget_simple_extent_dims(space, dim[i], NULL);
        H5Sclose(space);
    }
    same = same && rank[0] == rank[1] && H5Tequal(type[0], type[1]) > 0;
    if (same && s->beginning && dim[0][0] <= dim[1][0])
        dim[1][0] = dim[0][0];
    if (same && s->beginning && !strcmp(name, "docs/count") && dim[0][0]) /* the last one's rows are not all there */
        dim[1][0] = --dim[0][0];
    same = same && !memcmp(dim[0], dim[1], sizeof dim[0]);
    if (same) {
        size_t bytes[2];
        void *p[2] = {same_bytes(d[0], type[0], dim[0], rank[0], &bytes[0]),
                      same_bytes(d[1], type[0], dim[1], rank[1], &bytes[1])};
        same = bytes[0] == bytes[1] && !memcmp(p[0], p[1], bytes[0]);
        free(p[0]);
        free(p[1]);
    }
    for (int i = 0; i < 2; i++) {
        H5Tclose(type[i]);
        H5Dclose(d[i]);
    }
    s->datasets++;
    s->different += !same;
    if (!same && !s->first[0])
        snprintf(s->first, sizeof s->first, "%s", name);
    return 0;
}

/* Datasets of a that are not the same in b (or, beginning: not how b's begin); -1: a file cannot be opened. */
static inline int run_differences(const char *a, const char *b, bool beginning, char first[128])
{
    same_files s = {.beginning = beginning};
    H5E_auto2_t print;
    void *user;
    H5Eget_auto2(H5E_DEFAULT, &print, &user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t fa = H5Fopen(a, H5F_ACC_RDONLY, H5P_DEFAULT);
    s.other = H5Fopen(b, H5F_ACC_RDONLY, H5P_DEFAULT);
    bool open = fa >= 0 && s.other >= 0;
    if (open)
        H5Ovisit2(fa, H5_INDEX_NAME, H5_ITER_INC, same_one, &s, H5O_INFO_BASIC);
    H5Fclose(fa);
    H5Fclose(s.other);
    H5Eset_auto2(H5E_DEFAULT, print, user);
    snprintf(first, 128, "%s", s.first);
    return open && s.datasets > 20 ? s.different : -1;
}

/* --- writes that are counted, kill, or fail. Calls of every library in the program come here. */

static long run_writes, run_kill_at, run_fail_from;
static bool run_fail_ends; /* the disk has room again for writes that do not grow the file */

static ssize_t run_write(int fd, const void *p, size_t n, off_t at)
{
    run_writes++;
    if (run_kill_at && run_writes == run_kill_at)
        kill(getpid(), SIGKILL);
    if (run_fail_from && run_writes >= run_fail_from && (!run_fail_ends || n > 4096)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, p, n, at);
}

WEIR_API ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return run_write(fd, p, n, at);
}

WEIR_API ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
    return run_write(fd, p, n, at);
}

static bool run_no_locks; /* as on a network file system */

WEIR_API int flock(int fd, int operation)
{
    if (!run_no_locks)
        return (int)syscall(SYS_flock, fd, operation);
    errno = ENOSYS;
    return -1;
}

/* Calls body in a process of its own and gives what waitpid says. */
static inline int run_apart(void (*body)(void *), void *user)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        body(user);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

#endif

/* record/repair.c: what a kill left of a dump, made readable for every HDF5 program.
 *
 * A run that is killed leaves three things: marks in the superblock that the file is open for writing, which make
 * others refuse it; an end of file in the superblock that is older than the file (HDF5's own h5clear would cut the file
 * there: nearly all of it is lost); and datasets that differ in length. The superblock is put right by hand (HDF5 File
 * Format Specification 3.0, version 3 superblock), the datasets are cut to what /progress says. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "docs.h"
#include "dump.h"
#include "schema.h"
#include "superblock.h"

/* --- the superblock */

enum { SLACK = 65536 };         /* bytes that HDF5 may have reserved at the end, and not written yet */
enum { BLANK_MOST = 64 << 20 }; /* without rows a file is smaller: it has a vocabulary */

static uint32_t rotate(uint32_t x, int k)
{
    return x << k | x >> (32 - k);
}

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void store_le(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* Bob Jenkins's lookup3 (public domain) of the first 44 bytes: what HDF5 puts behind them. */
static uint32_t checksum(const uint8_t block[WEIR_SUPER_BYTES])
{
    uint32_t a, b, c;
    const uint8_t *k = block;
    a = b = c = 0xdeadbeefu + WEIR_SUPER_CHECKSUM;
    for (int i = 0; i < 3; i++, k += 12) {
        a += load32(k);
        b += load32(k + 4);
        c += load32(k + 8);
        a = (a - c) ^ rotate(c, 4), c += b;
        b = (b - a) ^ rotate(a, 6), a += c;
        c = (c - b) ^ rotate(b, 8), b += a;
        a = (a - c) ^ rotate(c, 16), c += b;
        b = (b - a) ^ rotate(a, 19), a += c;
        c = (c - b) ^ rotate(b, 4), b += a;
    }
    a += load32(k);
    b += load32(k + 4);
    c = (c ^ b) - rotate(b, 14);
    a = (a ^ c) - rotate(c, 11);
    b = (b ^ a) - rotate(a, 25);
    c = (c ^ b) - rotate(b, 16);
    a = (a ^ c) - rotate(c, 4);
    b = (b ^ a) - rotate(a, 14);
    return (c ^ b) - rotate(b, 24);
}

/* was: the superblock as it stood. report->open: it was marked as open, and is no longer. */
static weir_status close_superblock(int fd, uint8_t was[WEIR_SUPER_BYTES], weir_dump_report *report, weir_err *err)
{
    uint8_t block[WEIR_SUPER_BYTES];
    struct stat st;
    if (fstat(fd, &st))
        return weir_fail(err, WEIR_E_IO, "cannot read: %s", strerror(errno));
    report->blank = st.st_size == 0;
    if (st.st_size < WEIR_SUPER_BYTES || pread(fd, block, WEIR_SUPER_BYTES, 0) != WEIR_SUPER_BYTES ||
        memcmp(block, WEIR_HDF5_SIGNATURE, WEIR_SUPER_SIGNATURE))
        return weir_fail(err, WEIR_E_FORMAT,
                         "is not an HDF5 file, or was cut off before anything was in it: remove it");
    memcpy(was, block, WEIR_SUPER_BYTES);
    if (block[WEIR_SUPER_VERSION] != 3)
        return WEIR_OK; /* HDF5 has to say what it is */
    uint64_t end = load32(block + WEIR_SUPER_END) | (uint64_t)load32(block + WEIR_SUPER_END + 4) << 32,
             size = (uint64_t)st.st_size;
    if (end > size && end - size > SLACK)
        return weir_fail(err, WEIR_E_FORMAT, "is cut off: %" PRIu64 " bytes of %" PRIu64 " are there", size, end);
    if (end > size && ftruncate(fd, (off_t)end))
        return weir_fail(err, WEIR_E_IO, "cannot write: %s", strerror(errno));
    if (block[WEIR_SUPER_FLAGS] == 0)
        return WEIR_OK;
    report->open = true;
    report->blank = !(block[WEIR_SUPER_FLAGS] & WEIR_SUPER_SWMR) && size < BLANK_MOST; /* unless it turns out to open */
    block[WEIR_SUPER_FLAGS] = 0;
    if (size > end)
        store_le(block + WEIR_SUPER_END, size, 8);
    store_le(block + WEIR_SUPER_CHECKSUM, checksum(block), 4);
    if (pwrite(fd, block, WEIR_SUPER_BYTES, 0) != WEIR_SUPER_BYTES)
        return weir_fail(err, WEIR_E_IO, "cannot write: %s", strerror(errno));
    return WEIR_OK;
}

/* --- datasets */

typedef struct repair {
    hid_t file;
    weir_progress progress;
    weir_tile_writer writer;
    weir_doc_table docs;
    weir_dump_report *report;
    weir_err *err;
} repair;

static weir_status cut(repair *r, hid_t loc, const char *name, const char *entry)
{
    hsize_t dim[3] = {0};
    int group = weir_progress_find(&r->progress, entry);
    hid_t d = H5Dopen2(loc, name, H5P_DEFAULT), space = d < 0 ? -1 : H5Dget_space(d);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    weir_status st = WEIR_OK;
    if (rank < 1 || rank > 3 || group < 0)
        st = weir_fail(r->err, WEIR_E_FORMAT, "is damaged: %s cannot be opened, or counted", name);
    else
        H5Sget_simple_extent_dims(space, dim, NULL);
    hsize_t rows = st ? 0 : (hsize_t)r->progress.rows[group];
    if (!st && dim[0] < rows)
        st = weir_fail(r->err, WEIR_E_FORMAT, "is damaged: %s has %" PRIu64 " rows, and should have %" PRIu64, name,
                       (uint64_t)dim[0], (uint64_t)rows);
    if (!st)
        st = weir_h5_check_cut(d, (int64_t)rows, r->err);
    if (!st && dim[0] > rows) {
        dim[0] = rows;
        r->report->cut++;
        if (H5Dset_extent(d, dim) < 0)
            st = weir_h5_fail(r->err, "cannot write");
    }
    H5Sclose(space);
    H5Dclose(d);
    return st;
}

static weir_status cut_tokens(repair *r)
{
    const char *logprob = weir_token_schema[WEIR_TOK_LOGPROB].path;
    for (int i = 0; i < WEIR_TOK_LOGPROB; i++)
        WEIR_TRY(cut(r, r->file, weir_token_schema[i].path, "tokens"));
    WEIR_TRY(cut(r, r->file, "row", "tokens"));
    return H5Lexists(r->file, logprob, H5P_DEFAULT) > 0 ? cut(r, r->file, logprob, "final") : WEIR_OK;
}

/* A dataset below /activations or /hooks says itself what counts it. */
static weir_status cut_one(repair *r, hid_t loc, const char *name)
{
    char *entry = NULL;
    hid_t d = H5Dopen2(loc, name, H5P_DEFAULT);
    if (d < 0)
        return weir_h5_fail(r->err, "is damaged: cannot open %s", name);
    weir_status st = weir_h5_get_text(d, "progress", &entry, r->err);
    H5Dclose(d);
    if (!st)
        st = cut(r, loc, name, entry ? entry : "");
    weir_free(entry);
    return st;
}

/* All datasets of a group; depth: groups between it and them. */
static weir_status cut_group(repair *r, hid_t loc, const char *group, int depth)
{
    H5G_info_t info = {0};
    char name[1024];
    if (H5Lexists(loc, group, H5P_DEFAULT) <= 0)
        return WEIR_OK;
    hid_t g = H5Gopen2(loc, group, H5P_DEFAULT);
    weir_status st = WEIR_OK;
    if (g < 0 || H5Gget_info(g, &info) < 0)
        st = weir_h5_fail(r->err, "is damaged: cannot open %s", group);
    for (hsize_t i = 0; i < info.nlinks && !st; i++) {
        if (H5Lget_name_by_idx(g, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT) < 0)
            st = weir_h5_fail(r->err, "is damaged: cannot list %s", group);
        else
            st = depth ? cut_group(r, g, name, depth - 1) : cut_one(r, g, name);
    }
    if (g >= 0)
        H5Gclose(g);
    return st;
}

/* Documents that have a row among the first `rows`: the last one's number, and one. */
static weir_status count_docs(repair *r, int64_t rows, int64_t *docs)
{
    hsize_t start = (hsize_t)rows - 1, one = 1;
    *docs = 0;
    if (rows == 0)
        return WEIR_OK;
    hid_t d = H5Dopen2(r->file, "tokens/doc", H5P_DEFAULT), file = H5Dget_space(d),
          memory = H5Screate_simple(1, &one, NULL);
    bool good = H5Sselect_hyperslab(file, H5S_SELECT_SET, &start, NULL, &one, NULL) >= 0 &&
                H5Dread(d, H5T_NATIVE_INT64, memory, file, H5P_DEFAULT, docs) >= 0;
    weir_status st = good ? WEIR_OK : weir_h5_fail(r->err, "is damaged: cannot read tokens/doc");
    H5Sclose(memory);
    H5Sclose(file);
    H5Dclose(d);
    ++*docs;
    return st;
}

static weir_status cut_docs(repair *r, int64_t rows)
{
    int64_t docs, *known = &r->progress.rows[weir_progress_find(&r->progress, "docs")];
    WEIR_TRY(count_docs(r, rows, &docs));
    if (docs < 0 || docs > *known)
        return weir_fail(r->err, WEIR_E_FORMAT, "is damaged: rows belong to documents that /docs does not have");
    WEIR_TRY(weir_tile_writer_init(&r->writer, 0, 1, r->err));
    WEIR_TRY(weir_doc_table_open(&r->docs, r->file, &r->writer, r->err));
    WEIR_TRY(weir_doc_table_resume(&r->docs, docs, rows, r->err));
    WEIR_TRY(weir_doc_table_cut(&r->docs, &r->writer, r->err));
    *known = docs;
    return weir_progress_write(&r->progress, r->err);
}

static weir_status cut_all(repair *r)
{
    int64_t complete = 0;
    if (weir_h5_get_int(r->file, "complete", &complete) && complete == 1)
        r->report->complete = true;
    if (H5Lexists(r->file, "progress", H5P_DEFAULT) <= 0 ||
        H5Lexists(r->file, "progress/rows_complete", H5P_DEFAULT) <= 0)
        return WEIR_OK; /* stopped before the first row */
    WEIR_TRY(weir_progress_open(&r->progress, r->file, r->err));
    int tokens = weir_progress_find(&r->progress, "tokens"), docs = weir_progress_find(&r->progress, "docs");
    if (tokens < 0 || docs < 0)
        return weir_fail(r->err, WEIR_E_FORMAT, "is damaged: /progress has no entry for tokens, or documents");
    for (int i = 0; i < r->progress.n; i++)
        if (i != docs && r->progress.rows[i] > r->report->most)
            r->report->most = r->progress.rows[i];
    r->report->rows = weir_progress_least(&r->progress);
    if (!r->report->complete) {
        WEIR_TRY(cut_tokens(r));
        WEIR_TRY(cut_group(r, r->file, "activations", 0));
        WEIR_TRY(cut_group(r, r->file, "hooks", 1));
        if (r->report->most > 0 && (r->report->open || r->report->cut > 0))
            WEIR_TRY(cut_docs(r, r->progress.rows[tokens]));
    }
    r->report->docs = r->progress.rows[docs];
    return WEIR_OK;
}

static weir_status is_dump(hid_t file, bool *ours, weir_err *err)
{
    char *format;
    WEIR_TRY(weir_h5_get_text(file, "format", &format, err));
    *ours = format && !strcmp(format, WEIR_DUMP_FORMAT);
    weir_free(format);
    return *ours
               ? WEIR_OK
               : weir_fail(err, WEIR_E_FORMAT, "is not a dump of weir's, which alone can be repaired and gone on with");
}

static bool is_empty(hid_t file)
{
    H5G_info_t info;
    return H5Gget_info_by_name(file, "/", &info, H5P_DEFAULT) < 0 || info.nlinks == 0;
}

/* The file is closed by its superblock: by HDF5 from here on. */
static weir_status repair_datasets(const char *path, bool apart, bool *ours, weir_dump_report *report, weir_err *err)
{
    repair r = {.report = report, .err = err, .file = weir_h5_open_file(path, true, apart)};
    *ours = true;
    if (r.file < 0)
        return weir_h5_fail(err, "cannot be saved: it was stopped before it held anything, or is damaged");
    weir_status st = is_dump(r.file, ours, err);
    report->blank = report->blank && is_empty(r.file);
    if (!st)
        st = cut_all(&r);
    weir_doc_table_close(&r.docs);
    weir_tile_writer_free(&r.writer);
    weir_progress_close(&r.progress);
    if (H5Fclose(r.file) < 0 && !st)
        st = weir_h5_fail(err, "cannot write");
    return st;
}

static weir_status open_alone(const char *path, int *fd, weir_err *err)
{
    struct stat st;
    *fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return weir_fail(err, WEIR_E_IO, "%s", strerror(errno));
    if (fstat(*fd, &st) || !S_ISREG(st.st_mode))
        return weir_fail(err, WEIR_E_ARG, "is not a file");
    if (flock(*fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return weir_fail(err, WEIR_E_ARG, "is in use by another process: wait for it, or stop it");
    return WEIR_OK;
}

weir_status weir_dump_repair_file(const char *path, bool apart, weir_dump_report *report, weir_err *err)
{
    uint8_t was[WEIR_SUPER_BYTES];
    int fd;
    bool ours = true;
    memset(report, 0, sizeof *report);
    weir_status st = open_alone(path, &fd, err);
    if (!st)
        st = close_superblock(fd, was, report, err);
    if (!st) {
        flock(fd, LOCK_UN); /* HDF5 takes it */
        st = repair_datasets(path, apart, &ours, report, err);
    }
    /* Somebody else's file stays as it was. */
    if (!ours && report->open && pwrite(fd, was, WEIR_SUPER_BYTES, 0) != WEIR_SUPER_BYTES)
        st = weir_fail(err, WEIR_E_IO, "cannot write: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    if (st)
        weir_err_where(err, path, NULL, -1);
    return st;
}

weir_status weir_dump_repair(const char *path, weir_dump_report *report, weir_err *err)
{
    weir_h5_quiet q;
    weir_dump_report own;
    weir_h5_quiet_begin(&q);
    weir_status st = weir_dump_repair_file(path, false, report ? report : &own, err);
    weir_h5_quiet_end(&q);
    return st;
}

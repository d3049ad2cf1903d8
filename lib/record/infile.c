/* record/infile.c: see infile.h. */
#include "infile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

#include "base/mem.h"
#include "seal.h"
#include "superblock.h"

/* --- the driver */

typedef struct weir_tap {
    H5FD_t base; /* HDF5's own part, which has to come first */
    int fd;
    haddr_t eoa;
    bool listening; /* raw data is not read: `at` and `bytes` tell what would have been */
    int heard;
    haddr_t at;
    size_t bytes;
} weir_tap;

/* What HDF5 hands from the access list to the driver. A file that HDF5 opens by itself (a source of a virtual dataset)
 * has none. */
typedef struct tap_info {
    weir_infile *file;
} tap_info;

static int pread_all(int fd, void *out, size_t n, int64_t offset)
{
    uint8_t *p = out;
    while (n > 0) {
        ssize_t got = pread(fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : ENODATA;
        p += got;
        n -= (size_t)got;
        offset += got;
    }
    return 0;
}

static H5FD_t *tap_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
    const tap_info *info = H5Pget_driver_info(fapl);
    (void)maxaddr;
    if (flags & (H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC))
        return NULL;
    weir_tap *t = weir_calloc(1, sizeof *t);
    if (!t) {
        if (info)
            info->file->nomem = true;
        return NULL;
    }
    t->fd = info ? fcntl(info->file->fd, F_DUPFD_CLOEXEC, 0) : open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (t->fd < 0) {
        weir_free(t);
        return NULL;
    }
    if (info)
        info->file->tap = t;
    return &t->base;
}

static herr_t tap_close(H5FD_t *file)
{
    weir_tap *t = (weir_tap *)file;
    close(t->fd);
    weir_free(t);
    return 0;
}

static herr_t tap_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE | H5FD_FEAT_DATA_SIEVE;
    return 0;
}

static haddr_t tap_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const weir_tap *)file)->eoa;
}

static herr_t tap_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t addr)
{
    (void)type;
    ((weir_tap *)file)->eoa = addr;
    return 0;
}

static haddr_t tap_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    struct stat st;
    (void)type;
    return fstat(((const weir_tap *)file)->fd, &st) == 0 ? (haddr_t)st.st_size : HADDR_UNDEF;
}

/* Behind the end of the file stand zeros, as with HDF5's own driver. */
static herr_t tap_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void *buffer)
{
    weir_tap *t = (weir_tap *)file;
    (void)dxpl;
    if (addr > INT64_MAX || size > INT64_MAX - addr)
        return -1;
    if (t->listening && type == H5FD_MEM_DRAW) {
        t->heard++;
        t->at = addr;
        t->bytes = size;
        return 0;
    }
    memset(buffer, 0, size);
    int e = pread_all(t->fd, buffer, size, (int64_t)addr);
    if (e == 0 || e == ENODATA)
        return 0;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR,
             "file read failed: error message = '%s'", strerror(e));
    return -1;
}

static herr_t tap_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void *buffer)
{
    (void)file, (void)type, (void)dxpl, (void)addr, (void)size, (void)buffer;
    return -1;
}

static const H5FD_class_t tap_class = {
#if H5_VERSION_GE(1, 14, 0)
    .version = H5FD_CLASS_VERSION,
#endif
    .name = "weir",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(tap_info),
    .open = tap_open,
    .close = tap_close,
    .query = tap_query,
    .get_eoa = tap_get_eoa,
    .set_eoa = tap_set_eoa,
    .get_eof = tap_get_eof,
    .read = tap_read,
    .write = tap_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* How often HDF5 reads a piece of a live file whose checksum is wrong: 17 ms in the end, because it doubles its sleep
 * each time. Its own 100 times would never end where the file is damaged. */
enum { READ_ATTEMPTS = 24 };

static hid_t open_through_tap(weir_infile *f, unsigned flags)
{
    const tap_info info = {f};
    hid_t id = -1, driver = H5FDregister(&tap_class), fapl = H5Pcreate(H5P_FILE_ACCESS);
    if (driver >= 0 && fapl >= 0 && H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) >= 0 &&
        H5Pset_metadata_read_attempts(fapl, READ_ATTEMPTS) >= 0 && H5Pset_driver(fapl, driver, &info) >= 0)
        id = H5Fopen(f->path, flags, fapl);
    hid_t reason = H5Eget_current_stack(); /* closing is a call too and would clear it */
    H5Pclose(fapl);
    if (id >= 0)
        f->driver = driver;
    else
        H5FDunregister(driver);
    H5Eset_current_stack(reason);
    return id;
}

/* The driver goes last: HDF5 1.10 frees it before it asks it to close the file, if the file is the last to hold it. */
static void close_id(weir_infile *f)
{
    if (f->id > 0) {
        H5Fclose(f->id);
        H5FDunregister(f->driver);
    }
    f->id = 0;
}

/* --- the superblock, read before HDF5 does: its flags and end decide how the file is opened and what is said */

typedef struct super {
    bool found;
    int version, flags;
    int64_t end; /* of the file as the superblock has it; 0: not known */
} super;

/* HDF5 File Format Specification, II.A: at 0, 512, 1024, 2048, ... */
static super read_super(const weir_infile *f)
{
    super s = {0};
    uint8_t b[WEIR_SUPER_BYTES];
    for (int64_t at = 0; !s.found && at <= f->size - WEIR_SUPER_BYTES; at = at ? at * 2 : 512) {
        if (pread_all(f->fd, b, sizeof b, at) || memcmp(b, WEIR_HDF5_SIGNATURE, WEIR_SUPER_SIGNATURE) != 0)
            continue;
        s.found = true;
        s.version = b[WEIR_SUPER_VERSION];
        if (s.version >= 2 && b[WEIR_SUPER_ADDRESS] == 8) { /* 8-byte offsets, as everywhere by now */
            for (int i = 7; i >= 0; i--)
                s.end = (int64_t)((uint64_t)s.end << 8 | b[WEIR_SUPER_END + i]);
            s.flags = s.version >= 3 ? b[WEIR_SUPER_FLAGS] : 0;
        }
    }
    return s;
}

static weir_status say_why(const weir_infile *f, const super *s, weir_err *err)
{
    if (f->nomem)
        return weir_nomem(err, "a file that is read");
    if (s->flags & WEIR_SUPER_WRITTEN)
        return weir_fail(
            err, WEIR_E_FORMAT,
            "the run that writes this file has only begun, or it was killed: then `weir repair %.300s` makes "
            "the file whole",
            f->path);
    if (s->end > f->size)
        return weir_fail(err, WEIR_E_FORMAT, "the file is cut short: %" PRId64 " of its %" PRId64 " bytes are there",
                         f->size, s->end);
    return weir_h5_fail(err, "cannot open");
}

/* A file that says it is being written, or was when its writer was killed, is opened as HDF5 wants that: opened plainly
 * (which works without locks), HDF5 would hold to the end that the superblock had then. */
static weir_status open_id(weir_infile *f, weir_err *err)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0)
        return weir_fail(err, WEIR_E_IO, "cannot open: %m");
    if (!S_ISREG(st.st_mode))
        return weir_fail(err, WEIR_E_FORMAT, "not a regular file");
    f->size = st.st_size;
    super s = read_super(f);
    if (!s.found)
        return weir_fail(err, WEIR_E_FORMAT, "not an HDF5 file");
    f->id = s.flags & WEIR_SUPER_SWMR ? open_through_tap(f, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ) : -1;
    if (f->id < 0 && !f->nomem)
        f->id = open_through_tap(f, H5F_ACC_RDONLY);
    if (f->id >= 0)
        return WEIR_OK;
    f->id = 0;
    return say_why(f, &s, err);
}

weir_status weir_infile_open(weir_infile *f, const char *path, weir_err *err)
{
    f->fd = -1;
    if (!(f->path = weir_strndup(path, strlen(path))))
        return weir_nomem(err, "a file that is read");
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not hold us up */
    if (f->fd < 0)
        return weir_fail(err, WEIR_E_IO, "cannot open: %m");
    WEIR_TRY(weir_seal_check(path, err));
    return open_id(f, err);
}

weir_status weir_infile_reopen(weir_infile *f, weir_err *err)
{
    close_id(f);
    return open_id(f, err);
}

void weir_infile_close(weir_infile *f)
{
    close_id(f);
    if (f->path && f->fd >= 0)
        close(f->fd);
    weir_free(f->path);
    memset(f, 0, sizeof *f);
}

/* --- chunks */

int weir_infile_pread(const weir_infile *f, void *out, size_t n, int64_t offset)
{
    return pread_all(f->fd, out, n, offset);
}

/* A file that is being written has grown since it was opened. */
static bool inside(weir_infile *f, int64_t offset, int64_t bytes)
{
    struct stat st;
    int64_t end;
    if (!weir_add64(offset, bytes, &end))
        return false;
    if (end > f->size && fstat(f->fd, &st) == 0)
        f->size = st.st_size;
    return end <= f->size;
}

static herr_t innermost(unsigned n, const H5E_error2_t *entry, void *user)
{
    if (n == 0)
        *(hid_t *)user = entry->maj_num;
    return 0;
}

/* After a call that found no chunk: does none exist, or could the index not be read? The dataset itself then says so,
 * or something below it. */
static bool is_absent(void)
{
    hid_t major = -1;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &major);
    return major == H5E_DATASET;
}

/* HDF5 1.10 has a call for this (H5Dget_chunk_info_by_coord), but it walks over all chunks from the first on:
 * milliseconds in a large dataset. H5Dread_chunk finds a chunk by the dataset's index, in microseconds; so it is asked
 * to read one, and the driver notes where, and reads nothing. */
weir_status weir_infile_locate(weir_infile *f, hid_t dataset, const hsize_t *at, weir_chunk_place *place, weir_err *err)
{
    uint8_t unused = 0;
    *place = (weir_chunk_place){0};
    weir_tap *t = f->tap;
    t->heard = 0;
    t->listening = true;
    herr_t e = H5Dread_chunk(dataset, H5P_DEFAULT, at, &place->skipped, &unused);
    t->listening = false;
    if (e < 0 && t->heard == 0 && is_absent()) {
        H5Eclear2(H5E_DEFAULT);
        return WEIR_OK;
    }
    if (e < 0 || t->heard != 1)
        return weir_h5_fail(err, "the index of its chunks cannot be read");
    if (t->at > INT64_MAX || t->bytes == 0 || t->bytes > INT64_MAX || !inside(f, (int64_t)t->at, (int64_t)t->bytes))
        return weir_fail(err, WEIR_E_FORMAT, "a chunk lies beyond the end of the file (%" PRId64 " bytes)", f->size);
    place->offset = (int64_t)t->at;
    place->bytes = (int64_t)t->bytes;
    return WEIR_OK;
}

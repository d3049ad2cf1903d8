#include "spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "stream.h"

static const char *const names[] = {"even", "odd", "batches"};
enum { EVEN, ODD, BATCHES, FILES };

/* Which file of a dump's the spill belongs to. */
typedef struct identity {
    uint64_t dev, ino, born, born_ns;
} identity;

/* At the beginning of a stream file. */
typedef struct header {
    char magic[8];
    identity id;
    int64_t part, base, width;
} header;
static const char MAGIC[8] = "weirspl1";

/* Of a batch in `batches`; then sequences, ids, targets, places and keeps. */
typedef struct record {
    int64_t rows, n_seq, kept;
    int32_t restart, continues;
} record;
typedef struct sequence {
    int64_t n, slot, tag, total;
} sequence;

/* Where a batch lies. */
typedef struct place {
    off_t at;
    int64_t rows, kept; /* before it */
} place;

struct weir_spill {
    char *dir, *path[FILES];
    bool made; /* the directory is this run's */
    identity id;
    int64_t width, batch, base, parts;
    int64_t part;       /* that runs */
    int64_t part_of[2]; /* whose stream a file holds; -1: nobody's */
    int64_t rows_of[2]; /* whole rows of it */
    FILE *batches;
    weir_spill_sum sum;
    weir_stream in, out;
    place next; /* batch */
    weir_batch b;
    record r;
    sequence *sequence;          /* [batch] */
    weir_seq *seq;               /* [batch] */
    int32_t *id_column, *target; /* [batch] */
    int64_t *pos, *kept_row;     /* [batch] */
    uint8_t *keep;               /* [batch] */
};

static weir_status failed(const weir_spill *s, int file, const char *what, weir_err *err)
{
    weir_fail(err, WEIR_E_IO, "cannot %s: %s", what, strerror(errno));
    return weir_err_where(err, file < 0 ? s->dir : s->path[file], NULL, -1);
}

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for a batch");
}

/* --- opening */

static bool alloc_columns(weir_spill *s)
{
    size_t n = (size_t)s->batch;
    s->sequence = calloc(n, sizeof *s->sequence);
    s->seq = calloc(n, sizeof *s->seq);
    s->id_column = calloc(n, sizeof *s->id_column);
    s->target = calloc(n, sizeof *s->target);
    s->pos = calloc(n, sizeof *s->pos);
    s->kept_row = calloc(n, sizeof *s->kept_row);
    s->keep = calloc(n, sizeof *s->keep);
    return s->sequence && s->seq && s->id_column && s->target && s->pos && s->kept_row && s->keep;
}

static bool name_files(weir_spill *s, const char *dump)
{
    const char *tmp = getenv("TMPDIR");
    int n = dump ? asprintf(&s->dir, "%s.part.stream", dump)
                 : asprintf(&s->dir, "%s/weir-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n < 0 || (!dump && !mkdtemp(s->dir))) {
        if (n < 0)
            s->dir = NULL;
        return false;
    }
    s->made = !dump;
    for (int i = 0; i < FILES; i++)
        if (asprintf(&s->path[i], "%s/%s", s->dir, names[i]) < 0) {
            s->path[i] = NULL;
            return false;
        }
    return true;
}

/* The .part by its place and birth: a copy or a new one is another. */
static weir_status identify(weir_spill *s, const char *dump, weir_err *err)
{
    char *part;
    struct statx x;
    if (!dump)
        return WEIR_OK;
    if (asprintf(&part, "%s.part", dump) < 0)
        return no_memory(err);
    if (statx(AT_FDCWD, part, 0, STATX_INO | STATX_BTIME, &x) != 0) {
        weir_fail(err, WEIR_E_IO, "cannot look at it: %s", strerror(errno));
        weir_err_where(err, part, NULL, -1);
        free(part);
        return WEIR_E_IO;
    }
    free(part);
    s->id = (identity){.dev = (uint64_t)x.stx_dev_major << 32 | x.stx_dev_minor, .ino = x.stx_ino};
    if (x.stx_mask & STATX_BTIME) {
        s->id.born = (uint64_t)x.stx_btime.tv_sec;
        s->id.born_ns = x.stx_btime.tv_nsec;
    }
    return WEIR_OK;
}

/* Takes a stream file into account if it is this dump's. */
static void look_at(weir_spill *s, int file)
{
    header h;
    struct stat st;
    int fd = open(s->path[file], O_RDONLY | O_CLOEXEC);
    s->part_of[file] = -1;
    if (fd < 0)
        return;
    if (read(fd, &h, sizeof h) == (ssize_t)sizeof h && fstat(fd, &st) == 0 &&
        memcmp(h.magic, MAGIC, sizeof MAGIC) == 0 && memcmp(&h.id, &s->id, sizeof s->id) == 0 && h.width == s->width &&
        h.part >= 0 && (h.part & 1) == file) {
        s->part_of[file] = h.part;
        s->rows_of[file] = ((int64_t)st.st_size - (int64_t)sizeof h) / (s->width * (int64_t)sizeof(float));
        s->base = h.base;
    }
    close(fd);
}

static weir_status open_files(weir_spill *s, const weir_spill_options *o, weir_err *err)
{
    if (o->dump && mkdir(s->dir, 0777) != 0 && errno != EEXIST)
        return failed(s, -1, "make the directory for the stream between layers", err);
    s->made = true;
    for (int i = EVEN; i <= ODD; i++)
        if (o->resume)
            look_at(s, i);
        else if (unlink(s->path[i]) != 0 && errno != ENOENT)
            return failed(s, i, "replace it", err);
    s->batches = fopen(s->path[BATCHES], "w+e");
    return s->batches ? WEIR_OK : failed(s, BATCHES, "create it", err);
}

weir_status weir_spill_open(weir_spill **out, const weir_spill_options *o, weir_err *err)
{
    *out = NULL;
    weir_spill *s = calloc(1, sizeof *s);
    if (!s)
        return no_memory(err);
    *s = (weir_spill){.width = o->width, .batch = o->batch, .base = -1, .part_of = {-1, -1}, .in.fd = -1, .out.fd = -1};
    weir_status st = WEIR_OK;
    if (!name_files(s, o->dump))
        st = s->dir ? failed(s, -1, "make a temporary directory", err) : no_memory(err);
    if (st == WEIR_OK && !alloc_columns(s))
        st = no_memory(err);
    if (st == WEIR_OK)
        st = identify(s, o->dump, err);
    if (st == WEIR_OK)
        st = open_files(s, o, err);
    if (st == WEIR_OK)
        *out = s;
    else
        weir_spill_close(s, o->resume);
    return st;
}

void weir_spill_close(weir_spill *s, bool keep)
{
    if (!s)
        return;
    weir_stream_close(&s->in);
    weir_stream_close(&s->out);
    if (s->batches)
        fclose(s->batches);
    for (int i = 0; i < FILES; i++) {
        if (s->made && s->path[i] && !keep)
            unlink(s->path[i]);
        free(s->path[i]);
    }
    if (s->made && !keep)
        rmdir(s->dir);
    void *const own[] = {s->dir, s->sequence, s->seq, s->id_column, s->target, s->pos, s->kept_row, s->keep, s};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

void weir_spill_forget(const char *dump)
{
    char path[4096];
    for (int i = 0; i < FILES; i++)
        if (snprintf(path, sizeof path, "%s.part.stream/%s", dump, names[i]) < (int)sizeof path)
            unlink(path);
    if (snprintf(path, sizeof path, "%s.part.stream", dump) < (int)sizeof path)
        rmdir(path);
}

int64_t weir_spill_base(const weir_spill *s)
{
    return s->base;
}

weir_spill_sum weir_spill_sum_of(const weir_spill *s)
{
    return s->sum;
}

/* --- batches */

static bool put(weir_spill *s, const void *p, size_t n, size_t size)
{
    return fwrite(p, size, n, s->batches) == n;
}

weir_status weir_spill_put(weir_spill *s, const weir_batch *b, weir_err *err)
{
    const size_t n = (size_t)b->rows;
    if (n == 0)
        return WEIR_OK;
    const record r = {b->rows, b->n_seq, b->kept.n, b->restart, b->continues};
    for (int64_t i = 0; i < b->n_seq; i++)
        s->sequence[i] = (sequence){b->seq[i].n, b->seq[i].slot, b->seq[i].tag, b->seq[i].total};
    /* the feed's columns lie one after the other, sequence by sequence */
    const weir_seq *q = b->seq;
    if (!put(s, &r, 1, sizeof r) || !put(s, s->sequence, (size_t)b->n_seq, sizeof *s->sequence) ||
        !put(s, q->ids, n, sizeof *q->ids) || !put(s, b->target, n, sizeof *b->target) ||
        !put(s, q->place, n, sizeof *q->place) || !put(s, q->keep, n, sizeof *q->keep))
        return failed(s, BATCHES, "write to it", err);
    s->sum.rows += b->rows;
    s->sum.kept += b->kept.n;
    return WEIR_OK;
}

static bool get(weir_spill *s, void *p, size_t n, size_t size)
{
    return fread(p, size, n, s->batches) == n;
}

static void restore_batch(weir_spill *s)
{
    const record *r = &s->r;
    int64_t row = 0, kept = 0;
    for (int64_t i = 0; i < r->n_seq; i++) {
        const sequence *q = &s->sequence[i];
        s->seq[i] = (weir_seq){.ids = s->id_column + row,
                               .n = q->n,
                               .slot = (int)q->slot,
                               .keep = s->keep + row,
                               .tag = q->tag,
                               .place = s->pos + row,
                               .total = q->total};
        row += q->n;
    }
    for (row = 0; row < r->rows; row++)
        if (s->keep[row])
            s->kept_row[kept++] = row;
    s->b = (weir_batch){.seq = s->seq,
                        .n_seq = r->n_seq,
                        .rows = r->rows,
                        .restart = r->restart,
                        .continues = r->continues,
                        .target = s->target,
                        .kept_row = s->kept_row,
                        .kept.n = r->kept};
}

/* Reads the batch at s->next, and moves s->next behind it. */
static weir_status read_batch(weir_spill *s, bool *more, weir_err *err)
{
    record *r = &s->r;
    *more = s->next.rows < s->sum.rows;
    if (!*more)
        return WEIR_OK;
    if (!get(s, r, 1, sizeof *r) || r->rows > s->batch || r->n_seq > r->rows ||
        !get(s, s->sequence, (size_t)r->n_seq, sizeof *s->sequence) ||
        !get(s, s->id_column, (size_t)r->rows, sizeof *s->id_column) ||
        !get(s, s->target, (size_t)r->rows, sizeof *s->target) || !get(s, s->pos, (size_t)r->rows, sizeof *s->pos) ||
        !get(s, s->keep, (size_t)r->rows, sizeof *s->keep))
        return failed(s, BATCHES, "read it back", err);
    s->next = (place){ftello(s->batches), s->next.rows + r->rows, s->next.kept + r->kept};
    return WEIR_OK;
}

static weir_status go_to(weir_spill *s, place p, weir_err *err)
{
    s->next = p;
    return fseeko(s->batches, p.at, SEEK_SET) == 0 ? WEIR_OK : failed(s, BATCHES, "read it back", err);
}

/* --- streams */

static int64_t offset_of(const weir_spill *s, int64_t row)
{
    return (int64_t)sizeof(header) + row * s->width * (int64_t)sizeof(float);
}

/* The streams that parts 0 to parts - 2 leave behind: at most two at a time. */
static weir_status check_disk(const weir_spill *s, weir_err *err)
{
    struct statvfs v;
    int64_t files = s->parts - 1 < 2 ? s->parts - 1 : 2, need = files * offset_of(s, s->sum.rows);
    for (int i = EVEN; i <= ODD; i++)
        if (s->part_of[i] >= 0)
            need -= offset_of(s, s->rows_of[i]);
    if (statvfs(s->dir, &v) != 0)
        return WEIR_OK; /* writing will tell */
    int64_t free_bytes = (int64_t)((uint64_t)v.f_bavail * v.f_frsize);
    if (need <= free_bytes)
        return WEIR_OK;
    weir_fail(err, WEIR_E_IO,
              "the stream between layers takes %lld bytes, but the disk has %lld: make room, write the dump to another "
              "disk, or use --order batch",
              (long long)need, (long long)free_bytes);
    return weir_err_where(err, s->dir, NULL, -1);
}

static bool is_whole(const weir_spill *s, int64_t part)
{
    int file = (int)(part & 1);
    return part >= 0 && s->part_of[file] == part && s->rows_of[file] == s->sum.rows;
}

/* The part to go on with: the last that has written, if what it reads is whole. A part begins only when the one before
 * is through and its stream whole. */
static int64_t part_to_go_on(const weir_spill *s)
{
    int64_t last = s->part_of[EVEN] > s->part_of[ODD] ? s->part_of[EVEN] : s->part_of[ODD];
    if (last >= s->parts - 1)
        return 0;
    if (last <= 0 || is_whole(s, last - 1))
        return last < 0 ? 0 : last;
    return is_whole(s, last) ? last + 1 : 0;
}

weir_status weir_spill_restart(weir_spill *s, weir_err *err)
{
    for (int i = EVEN; i <= ODD; i++) {
        s->part_of[i] = -1;
        if (unlink(s->path[i]) != 0 && errno != ENOENT)
            return failed(s, i, "replace it", err);
    }
    return WEIR_OK;
}

weir_status weir_spill_fed(weir_spill *s, int64_t base, int64_t parts, int64_t *part, weir_err *err)
{
    if (fflush(s->batches) != 0)
        return failed(s, BATCHES, "write to it", err);
    s->base = base;
    s->parts = parts;
    *part = part_to_go_on(s);
    const bool begun = s->part_of[EVEN] == 0 && s->part_of[ODD] < 0;
    if (*part == 0 && !begun)
        WEIR_TRY(weir_spill_restart(s, err));
    return check_disk(s, err);
}

static weir_status open_in(weir_spill *s, int64_t row, weir_err *err)
{
    int file = (int)(s->part - 1) & 1;
    if (s->part == 0 || weir_stream_open(&s->in, s->path[file], O_RDONLY, offset_of(s, row)))
        return WEIR_OK;
    return failed(s, file, "open it", err);
}

/* One that is gone on with keeps its header. */
static weir_status open_out(weir_spill *s, int64_t row, weir_err *err)
{
    int file = (int)s->part & 1;
    const bool go_on = s->part_of[file] == s->part;
    header h = {.id = s->id, .part = s->part, .base = s->base, .width = s->width};
    if (s->part == s->parts - 1)
        return WEIR_OK;
    memcpy(h.magic, MAGIC, sizeof h.magic);
    if (!weir_stream_open(&s->out, s->path[file], O_WRONLY | O_CREAT | (go_on ? 0 : O_TRUNC),
                          go_on ? offset_of(s, row) : 0))
        return failed(s, file, "create it", err);
    if (!go_on && !weir_stream_write(&s->out, &h, sizeof h))
        return failed(s, file, "write to it", err);
    s->rows_of[file] = go_on ? s->rows_of[file] : 0;
    s->part_of[file] = s->part;
    return WEIR_OK;
}

/* The beginning of the window in which the first batch lies that is not through. */
static weir_status find_first(weir_spill *s, int64_t kept, weir_err *err)
{
    const int64_t file = s->part & 1;
    const bool writes = s->part < s->parts - 1;
    const int64_t rows = !writes ? INT64_MAX : s->part_of[file] == s->part ? s->rows_of[file] : 0;
    bool more = true;
    place window = {0};
    WEIR_TRY(go_to(s, window, err));
    for (;;) {
        const place here = s->next;
        WEIR_TRY(read_batch(s, &more, err));
        if (!more)
            return WEIR_OK;
        if (!s->r.continues)
            window = here;
        if (s->next.rows > rows || s->next.kept > kept)
            return go_to(s, window, err);
    }
}

weir_status weir_spill_begin(weir_spill *s, int64_t part, int64_t kept, int64_t *first, weir_err *err)
{
    s->part = part;
    WEIR_TRY(find_first(s, kept, err));
    *first = s->next.kept;
    WEIR_TRY(open_in(s, s->next.rows, err));
    return open_out(s, s->next.rows, err);
}

weir_status weir_spill_next(weir_spill *s, const weir_batch **b, weir_err *err)
{
    bool more;
    *b = NULL;
    WEIR_TRY(read_batch(s, &more, err));
    if (more) {
        restore_batch(s);
        *b = &s->b;
    }
    return WEIR_OK;
}

static size_t batch_bytes(const weir_spill *s)
{
    return (size_t)(s->r.rows * s->width) * sizeof(float);
}

weir_status weir_spill_read(weir_spill *s, float *x, weir_err *err)
{
    if (s->in.fd < 0 || weir_stream_read(&s->in, x, batch_bytes(s)))
        return WEIR_OK;
    return failed(s, (int)(s->part - 1) & 1, "read it back", err);
}

weir_status weir_spill_write(weir_spill *s, const float *x, weir_err *err)
{
    const int file = (int)s->part & 1;
    if (s->out.fd < 0)
        return WEIR_OK;
    if (!weir_stream_write(&s->out, x, batch_bytes(s)))
        return failed(s, file, "write to it", err);
    if (s->next.rows > s->rows_of[file])
        s->rows_of[file] = s->next.rows;
    return WEIR_OK;
}

weir_status weir_spill_end(weir_spill *s, weir_err *err)
{
    const bool written = s->out.fd < 0 || weir_stream_sync(&s->out);
    weir_status st = written ? WEIR_OK : failed(s, (int)s->part & 1, "write to it", err);
    weir_stream_close(&s->in);
    weir_stream_close(&s->out);
    return st;
}

/* record/stats_file.c: statistics files: count, mean and m2 of each unit of some hook points. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "dump.h"
#include "schema.h"

struct weir_stats {
    char *path, *part;
    hid_t file, group;
    dev_t dev; /* of PATH.part, as it was created */
    ino_t ino;
    bool taken;
};

static void destroy(weir_stats *s)
{
    weir_free(s->path);
    weir_free(s->part);
    weir_free(s);
}

static weir_stats *allocate(const char *path)
{
    weir_stats *s = weir_calloc(1, sizeof *s);
    size_t n = strlen(path);
    if (!s)
        return NULL;
    s->file = s->group = -1;
    s->path = weir_strndup(path, n);
    s->part = weir_calloc(n + sizeof ".part", 1);
    if (!s->path || !s->part) {
        destroy(s);
        return NULL;
    }
    memcpy(s->part, path, n);
    memcpy(s->part + n, ".part", sizeof ".part");
    return s;
}

/* Another run may have been given the same name in the meantime: only the own file is renamed or removed. */
static bool is_mine(const weir_stats *s)
{
    struct stat st;
    return s->taken && !lstat(s->part, &st) && st.st_dev == s->dev && st.st_ino == s->ino;
}

static weir_status take_part(weir_stats *s, weir_err *err)
{
    struct stat st;
    int fd = open(s->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return weir_fail(err, WEIR_E_ARG, "%s exists: another run writes it, or one was killed; remove it", s->part);
    if (fd < 0 || fstat(fd, &st)) {
        int number = errno;
        if (fd >= 0)
            close(fd);
        return weir_fail(err, WEIR_E_IO, "cannot create %s: %s", s->part, strerror(number));
    }
    close(fd);
    s->taken = true;
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    return WEIR_OK;
}

static weir_status put_header(weir_stats *s, const weir_model *m, const char *fingerprint, weir_err *err)
{
    const weir_model_info *info = weir_model_info_of(m);
    char now[32];
    time_t t = time(NULL);
    struct tm tm;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    const struct {
        const char *name, *text;
    } texts[] = {{"format", WEIR_STATS_FORMAT}, {"weir_version", weir_version()}, {"time_utc", now},
                 {"model", info->name},         {"family", info->family},         {"dtype", info->dtype},
                 {"fingerprint", fingerprint}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        WEIR_TRY(weir_h5_put_str(s->file, texts[i].name, texts[i].text, err));
    WEIR_TRY(weir_h5_put_int(s->file, "format_version", WEIR_STATS_VERSION, err));
    return weir_h5_put_int(s->file, "complete", 0, err);
}

static weir_status begin(weir_stats *s, const weir_model *m, weir_err *err)
{
    char fingerprint[65];
    WEIR_TRY(weir_dump_check_target(s->path, err));
    WEIR_TRY(weir_model_fingerprint(m, false, fingerprint, err));
    WEIR_TRY(take_part(s, err));
    s->file = weir_h5_create_file(s->part);
    if (s->file < 0)
        return weir_h5_fail(err, "cannot create %s", s->part);
    WEIR_TRY(put_header(s, m, fingerprint, err));
    s->group = weir_h5_create_group(s->file, "stats", true);
    return s->group < 0 ? weir_h5_fail(err, "cannot create group stats") : WEIR_OK;
}

weir_status weir_stats_create(weir_stats **out, const char *path, const weir_model *m, weir_err *err)
{
    weir_h5_quiet q;
    *out = NULL;
    weir_stats *s = allocate(path);
    if (!s)
        return weir_nomem(err, "a statistics file");
    weir_h5_quiet_begin(&q);
    weir_status st = begin(s, m, err);
    weir_h5_quiet_end(&q);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        weir_stats_abort(s);
    } else {
        *out = s;
    }
    return st;
}

/* --- one hook point */

static weir_status put_column(hid_t group, const char *name, hid_t type, int64_t n, const void *values, weir_err *err)
{
    hsize_t dim = (hsize_t)n;
    hid_t space = H5Screate_simple(1, &dim, NULL);
    hid_t d = space < 0 ? -1 : weir_h5_create_dataset(group, name, type, space);
    bool good = d >= 0 && H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    weir_status st = good ? WEIR_OK : weir_h5_fail(err, "cannot write %s", name);
    H5Dclose(d);
    H5Sclose(space);
    return st;
}

static weir_status put_attributes(hid_t group, const weir_stats_item *item, weir_err *err)
{
    const weir_point *p = item->point;
    WEIR_TRY(weir_h5_put_int(group, "layer", p->layer, err));
    WEIR_TRY(weir_h5_put_int(group, "heads", p->heads, err));
    WEIR_TRY(weir_h5_put_int(group, "head_size", p->size, err));
    return item->units ? weir_h5_put_ints(group, "units", item->units, item->n, err) : WEIR_OK;
}

static weir_status put_item(hid_t group, const weir_stats_item *item, weir_err *err)
{
    WEIR_TRY(put_attributes(group, item, err));
    WEIR_TRY(put_column(group, "count", H5T_NATIVE_INT64, item->n, item->count, err));
    WEIR_TRY(put_column(group, "mean", H5T_NATIVE_DOUBLE, item->n, item->mean, err));
    return put_column(group, "m2", H5T_NATIVE_DOUBLE, item->n, item->m2, err);
}

weir_status weir_stats_add(weir_stats *s, const weir_stats_item *item, weir_err *err)
{
    weir_h5_quiet q;
    weir_h5_quiet_begin(&q);
    hid_t group = weir_h5_create_group(s->group, item->point->name, true);
    weir_status st = group < 0 ? weir_h5_fail(err, "cannot create a group") : put_item(group, item, err);
    H5Gclose(group);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, s->path, item->point->name, -1);
    return st;
}

/* --- the end */

/* False: the file did not close well, so that its last bytes may be missing. */
static bool close_file(weir_stats *s)
{
    if (s->group >= 0)
        H5Gclose(s->group);
    bool good = s->file < 0 || H5Fclose(s->file) >= 0;
    s->file = s->group = -1;
    return good;
}

static weir_status complete(weir_stats *s, weir_err *err)
{
    WEIR_TRY(weir_h5_put_int(s->file, "complete", 1, err));
    if (H5Fflush(s->file, H5F_SCOPE_LOCAL) < 0)
        return weir_h5_fail(err, "cannot write %s", s->part);
    if (!close_file(s))
        return weir_h5_fail(err, "cannot close %s", s->part);
    if (!is_mine(s))
        return weir_fail(err, WEIR_E_IO, "%s was removed or replaced while it was written", s->part);
    WEIR_TRY(weir_dump_check_target(s->path, err));
    if (rename(s->part, s->path))
        return weir_fail(err, WEIR_E_IO, "cannot rename %s: %s", s->part, strerror(errno));
    s->taken = false;
    return WEIR_OK;
}

weir_status weir_stats_commit(weir_stats *s, weir_err *err)
{
    weir_h5_quiet q;
    weir_h5_quiet_begin(&q);
    weir_status st = complete(s, err);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, s->path, NULL, -1);
    weir_stats_abort(s);
    return st;
}

void weir_stats_abort(weir_stats *s)
{
    weir_h5_quiet q;
    if (!s)
        return;
    weir_h5_quiet_begin(&q);
    close_file(s);
    weir_h5_quiet_end(&q);
    if (is_mine(s))
        unlink(s->part);
    destroy(s);
}

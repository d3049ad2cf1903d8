/* record/stats_file.c: statistics files: count, mean and m2 of each unit of some hook points. */

#include "base/mem.h"
#include "dump.h"
#include "schema.h"

struct weir_stats {
    weir_partfile out;
    hid_t file, group;
};

static weir_status put_header(weir_stats *s, const weir_model *m, const char *fingerprint, weir_err *err)
{
    const weir_model_info *info = weir_model_info_of(m);
    char now[32];
    weir_dump_time_utc(now);
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
    WEIR_TRY(weir_partfile_check_target(&s->out, err));
    WEIR_TRY(weir_model_fingerprint(m, false, fingerprint, err));
    WEIR_TRY(weir_partfile_take(&s->out, false, ": another run writes it, or one was killed; remove it", err));
    s->file = weir_h5_create_file(s->out.part);
    if (s->file < 0)
        return weir_h5_fail(err, "cannot create %s", s->out.part);
    WEIR_TRY(put_header(s, m, fingerprint, err));
    s->group = weir_h5_create_group(s->file, "stats", true);
    return s->group < 0 ? weir_h5_fail(err, "cannot create group stats") : WEIR_OK;
}

weir_status weir_stats_create(weir_stats **out, const char *path, const weir_model *m, weir_err *err)
{
    weir_h5_quiet q;
    *out = NULL;
    weir_stats *s = weir_calloc(1, sizeof *s);
    if (!s)
        return weir_nomem(err, "a statistics file");
    s->file = s->group = -1;
    weir_h5_quiet_begin(&q);
    weir_status st = weir_partfile_init(&s->out, path, WEIR_STATS_FORMAT, err);
    if (!st)
        st = begin(s, m, err);
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
    hid_t d = weir_h5_put_column(group, name, type, n, values);
    if (d < 0)
        return weir_h5_fail(err, "cannot write %s", name);
    H5Dclose(d);
    return WEIR_OK;
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
        weir_err_where(err, s->out.path, item->point->name, -1);
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
        return weir_h5_fail(err, "cannot write %s", s->out.part);
    if (!close_file(s))
        return weir_h5_fail(err, "cannot close %s", s->out.part);
    WEIR_TRY(weir_partfile_publish(&s->out, err));
    s->out.taken = false;
    return WEIR_OK;
}

weir_status weir_stats_commit(weir_stats *s, weir_err *err)
{
    weir_h5_quiet q;
    weir_h5_quiet_begin(&q);
    weir_status st = complete(s, err);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, s->out.path, NULL, -1);
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
    weir_partfile_drop(&s->out);
    weir_partfile_free(&s->out);
    weir_free(s);
}

/* record/merge.c: see merge.h: the files in their order, whether they belong together, and the life of the result. */
#include "merge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strmap.h"
#include "dump.h"
#include "schema.h"

/* To join another format of ours: one file with its weir_merge_kind, and one entry here. */
static const weir_merge_kind *const kinds[] = {&weir_merge_dumps};

void weir_merge_options_init(weir_merge_options *o)
{
    memset(o, 0, sizeof *o);
}

weir_status weir_merge_step(weir_merge *m, double bytes)
{
    m->done += bytes;
    if (m->o->progress && m->total > 0)
        m->o->progress(m->o->user, m->done < m->total ? m->done / m->total : 1);
    return m->o->stop && m->o->stop(m->o->user) ? WEIR_STOP : WEIR_OK;
}

/* --- the parts */

static weir_status find_kind(weir_merge *m, const weir_infile *f, weir_err *err)
{
    char *format;
    int64_t version = 0;
    WEIR_TRY(weir_h5_get_text(f->id, "format", &format, err));
    for (size_t i = 0; format && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(format, kinds[i]->format))
            m->kind = kinds[i];
    weir_status st = WEIR_OK;
    if (!format)
        st = weir_fail(err, WEIR_E_FORMAT, "this HDF5 file is not one of weir's (no root attribute `format`)");
    else if (!m->kind)
        st = weir_fail(err, WEIR_E_UNSUPPORTED, "files of format \"%.40s\" cannot be joined%s", format,
                       strcmp(format, "weir-neurons") == 0 ? " here: weir neuron-top --merge joins them" : "");
    else if (!weir_h5_get_int(f->id, "format_version", &version) || version != m->kind->version)
        st = weir_fail(err, WEIR_E_UNSUPPORTED, "the file has format_version %" PRId64 "; this weir reads %" PRId64,
                       version, m->kind->version);
    weir_free(format);
    return st;
}

/* "2/4" and what belongs to it; nothing of it: no shard. */
static weir_status read_shard(weir_merge_part *p, const weir_infile *f, weir_err *err)
{
    char *text, *sources, *options = NULL;
    WEIR_TRY(weir_h5_get_text(f->id, "shard", &text, err));
    if (!text)
        return WEIR_OK;
    weir_status st = weir_h5_get_text(f->id, "shard_sources", &sources, err);
    if (!st)
        st = weir_h5_get_text(f->id, "run_options", &options, err);
    if (options)
        p->run_options = weir_hash64(options, strlen(options));
    bool good = !st && sources && sscanf(text, "%" SCNd64 "/%" SCNd64, &p->shard, &p->shards) == 2 && p->shard >= 0 &&
                p->shard < p->shards && sscanf(sources, "%" SCNd64 ", %" SCNd64, &p->source[0], &p->source[1]) == 2 &&
                weir_h5_get_int(f->id, "shard_first_doc", &p->first_doc) &&
                weir_h5_get_int(f->id, "shard_docs", &p->text_docs) &&
                weir_h5_get_int(f->id, "shard_text_size", &p->text_size);
    if (!st && !good)
        st = weir_fail(err, WEIR_E_FORMAT, "its shard attributes are damaged");
    weir_free(text);
    weir_free(sources);
    weir_free(options);
    return st;
}

static weir_status check_complete(const weir_infile *f, weir_err *err)
{
    int64_t complete = 0;
    if (weir_h5_get_int(f->id, "complete", &complete) && complete)
        return WEIR_OK;
    return weir_fail(err, WEIR_E_ARG, "is not complete: its run did not end; run it again with --resume");
}

static weir_status misfit(const weir_merge_part *p, weir_err *err, const char *fmt, ...) WEIR_PRINTF(3, 4);
static weir_status misfit(const weir_merge_part *p, weir_err *err, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    weir_fail(err, WEIR_E_ARG, "%s", text);
    return weir_err_where(err, p->path, NULL, -1);
}

/* Shards of one text, or no shards. */
static weir_status check_same_text(const weir_merge_part *p, const weir_merge_part *a, weir_err *err)
{
    if (!p->shards != !a->shards)
        return misfit(p, err, p->shards ? "is a shard, which %s is not" : "is no shard, but %s is one", a->path);
    if (p->shards != a->shards)
        return misfit(p, err, "is one of %" PRId64 " shards, but %s one of %" PRId64, p->shards, a->path, a->shards);
    if (p->text_docs != a->text_docs || p->text_size != a->text_size)
        return misfit(p, err, "is a shard of another text (%" PRId64 " documents) than %s (%" PRId64 ")", p->text_docs,
                      a->path, a->text_docs);
    if (p->run_options != a->run_options)
        return misfit(p, err, "was run on another text, or with other options about it, than %s (run_options)",
                      a->path);
    return WEIR_OK;
}

static weir_status look_at(weir_merge *m, weir_merge_part *p, weir_infile *f, weir_facts *first, weir_err *err)
{
    weir_facts facts = {0};
    WEIR_TRY(find_kind(m, f, err));
    WEIR_TRY(check_complete(f, err));
    WEIR_TRY(read_shard(p, f, err));
    WEIR_TRY(check_same_text(p, m->part, err));
    WEIR_TRY(m->kind->measure(p, f, err));
    if (p == m->part)
        return weir_facts_read(first, f, err);
    weir_status st = weir_facts_read(&facts, f, err);
    if (!st)
        st = weir_facts_compare(first, m->part[0].path, &facts, err);
    weir_facts_free(&facts);
    return st;
}

/* A shard whose run has not ended is not there, but its .part is. */
static bool only_part_exists(const char *path)
{
    weir_buf part = {0};
    bool yes =
        access(path, F_OK) != 0 && weir_buf_printf(&part, "%s.part", path) == WEIR_OK && access(part.p, F_OK) == 0;
    weir_buf_free(&part);
    return yes;
}

static weir_status look_at_all(weir_merge *m, weir_err *err)
{
    weir_facts first = {0};
    weir_status st = WEIR_OK;
    for (int k = 0; k < m->n && !st; k++) {
        weir_infile f = {0};
        weir_merge_part *p = &m->part[k];
        if (only_part_exists(p->path))
            st = weir_fail(err, WEIR_E_ARG,
                           "is not there, but %s.part is: its run did not end; run it again with --resume", p->path);
        else
            st = weir_infile_open(&f, p->path, err);
        if (!st)
            st = look_at(m, p, &f, &first, err);
        weir_infile_close(&f);
        if (st)
            weir_err_where(err, p->path, NULL, -1);
        else
            st = weir_merge_step(m, 0);
    }
    weir_facts_free(&first);
    return st;
}

/* --- their order */

static int by_shard(const void *a, const void *b)
{
    const weir_merge_part *x = a, *y = b;
    return (x->shard > y->shard) - (x->shard < y->shard);
}

static weir_status check_all_there(const weir_merge *m, weir_err *err)
{
    int64_t docs = 0;
    for (int k = 0; k < m->n; k++) {
        const weir_merge_part *p = &m->part[k];
        if (k > 0 && p->shard == p[-1].shard)
            return misfit(p, err, "is shard %" PRId64 "/%" PRId64 ", and so is %s", p->shard, p->shards, p[-1].path);
        if (p->shard != k)
            break;
        if (p->first_doc != docs)
            return misfit(p, err, "begins with document %" PRId64 " where %" PRId64 " is expected", p->first_doc, docs);
        docs += p->docs;
    }
    const weir_merge_part *last = &m->part[m->n - 1];
    for (int64_t i = 0; i < last->shards; i++)
        if (i >= m->n || m->part[i].shard != i)
            return weir_fail(err, WEIR_E_ARG, "shard %" PRId64 "/%" PRId64 " is missing: %d of %" PRId64 " were given",
                             i, last->shards, m->n, last->shards);
    if (docs != last->text_docs)
        return misfit(last, err, "ends with document %" PRId64 " of %" PRId64, docs, last->text_docs);
    return WEIR_OK;
}

static weir_status order_parts(weir_merge *m, weir_err *err)
{
    if (m->part[0].shards) {
        qsort(m->part, (size_t)m->n, sizeof *m->part, by_shard);
        WEIR_TRY(check_all_there(m, err));
    }
    for (int k = 0; k < m->n; k++) {
        weir_merge_part *p = &m->part[k];
        p->rows_before = m->rows;
        p->docs_before = m->docs;
        if (!weir_add64(m->rows, p->rows, &m->rows) || !weir_add64(m->docs, p->docs, &m->docs))
            return weir_fail(err, WEIR_E_FORMAT, "the files claim more rows than can be counted");
    }
    return WEIR_OK;
}

/* --- the result */

/* "KEY":"TEXT", as JSON. */
static weir_status put_text(weir_buf *out, const char *key, const char *text)
{
    WEIR_TRY(weir_buf_printf(out, "\"%s\":\"", key));
    for (const char *p = text; *p; p++) {
        const bool control = (unsigned char)*p < 32, quoted = *p == '"' || *p == '\\';
        WEIR_TRY(weir_buf_printf(out, control ? "\\u%04x" : quoted ? "\\%c" : "%c", *p));
    }
    return weir_buf_printf(out, "\"");
}

static weir_status list_part(weir_buf *out, const weir_merge_part *p, weir_err *err)
{
    weir_infile f = {0};
    char *command = NULL;
    weir_status st = weir_infile_open(&f, p->path, err);
    if (!st)
        st = weir_h5_get_text(f.id, "command_line", &command, err);
    weir_infile_close(&f);
    if (!st && (put_text(out, "file", p->path) ||
                weir_buf_printf(out, ",\"docs\":%" PRId64 ",\"rows\":%" PRId64 ",", p->docs, p->rows) ||
                put_text(out, "command_line", command ? command : "")))
        st = weir_nomem(err, "the list of files");
    weir_free(command);
    return st;
}

/* [{"file":"a.h5","docs":3,"rows":40,"command_line":"weir trace ..."}, ...] */
static weir_status list_parts(const weir_merge *m, weir_buf *out, weir_err *err)
{
    for (int k = 0; k < m->n; k++) {
        if (weir_buf_printf(out, k ? "},{" : "[{"))
            return weir_nomem(err, "the list of files");
        WEIR_TRY(list_part(out, &m->part[k], err));
    }
    return weir_buf_printf(out, "}]") ? weir_nomem(err, "the list of files") : WEIR_OK;
}

typedef struct header_copy {
    hid_t to;
    bool one_text; /* the parts are shards */
    weir_err *err;
    weir_status st;
} header_copy;

/* What is true of the result too: all that had to be equal, and the first part's model, kernel and threads. */
static herr_t on_attribute(hid_t from, const char *name, const H5A_info_t *info, void *user)
{
    header_copy *c = user;
    static const char *const own[] = {"command_line", "time_utc", "complete", "merged"};
    (void)info;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(name, own[i]))
            return 0;
    if (!c->one_text && !strcmp(name, "run_options"))
        return 0;
    if (strncmp(name, "shard", 5) != 0)
        c->st = weir_merge_copy_attribute(from, c->to, name, c->err);
    return c->st ? -1 : 0;
}

static weir_status copy_header(const weir_merge *m, weir_err *err)
{
    weir_infile f = {0};
    hsize_t at = 0;
    header_copy c = {.to = m->file, .one_text = m->part[0].shards > 0, .err = err};
    c.st = weir_infile_open(&f, m->part[0].path, err);
    if (!c.st && H5Aiterate2(f.id, H5_INDEX_NAME, H5_ITER_INC, &at, on_attribute, &c) < 0 && !c.st)
        c.st = weir_h5_fail(err, "cannot copy the attributes of %s", m->part[0].path);
    weir_infile_close(&f);
    if (!c.st && !c.one_text)
        c.st = weir_h5_put_str(m->file, "run_options", "", err);
    return c.st;
}

static weir_status put_header(const weir_merge *m, weir_err *err)
{
    char now[32];
    weir_buf parts = {0};
    weir_dump_time_utc(now);
    WEIR_TRY(copy_header(m, err));
    WEIR_TRY(weir_h5_put_int(m->file, "complete", 0, err));
    WEIR_TRY(weir_h5_put_str(m->file, "time_utc", now, err));
    WEIR_TRY(weir_h5_put_str(m->file, "command_line", m->o->command_line, err));
    weir_status st = list_parts(m, &parts, err);
    if (!st)
        st = weir_h5_put_str(m->file, "merged", parts.p, err);
    weir_buf_free(&parts);
    return st;
}

/* Everything into OUT.part, which is closed afterwards, whatever happened. */
static weir_status fill(weir_merge *m, const weir_partfile *target, weir_err *err)
{
    m->file = weir_h5_create_file(target->part);
    if (m->file < 0)
        return weir_h5_fail(err, "cannot create %s", target->part);
    weir_status st = put_header(m, err);
    if (!st)
        st = m->kind->join(m, err);
    if (!st && H5Fflush(m->file, H5F_SCOPE_LOCAL) < 0)
        st = weir_h5_fail(err, "cannot write");
    if (!st)
        st = weir_h5_put_int(m->file, "complete", 1, err);
    if (H5Fclose(m->file) < 0 && !st)
        st = weir_h5_fail(err, "cannot close");
    return st;
}

static weir_status check_out(const weir_merge *m, const weir_partfile *f, weir_err *err)
{
    struct stat out, st;
    if (lstat(m->out, &out))
        return WEIR_OK;
    for (int k = 0; k < m->n; k++)
        if (!stat(m->out, &out) && !stat(m->part[k].path, &st) && st.st_dev == out.st_dev && st.st_ino == out.st_ino)
            return weir_fail(err, WEIR_E_ARG, "is one of the files to join: name the result first, then the files");
    if (!m->o->force)
        return weir_fail(err, WEIR_E_ARG, "exists: use --force to replace it, or choose another name");
    return weir_partfile_check_target(f, err);
}

static weir_status write_out(weir_merge *m, weir_partfile *f, weir_err *err)
{
    WEIR_TRY(weir_partfile_init(f, m->out, WEIR_DUMP_FORMAT, err));
    WEIR_TRY(check_out(m, f, err));
    WEIR_TRY(weir_partfile_take(f, m->o->force, " (an unfinished merge): --force begins again", err));
    WEIR_TRY(fill(m, f, err));
    return weir_partfile_publish(f, err);
}

static weir_status merge(weir_merge *m, weir_err *err)
{
    weir_partfile f = {0};
    WEIR_TRY(look_at_all(m, err));
    WEIR_TRY(order_parts(m, err));
    weir_status st = write_out(m, &f, err);
    if (st)
        weir_partfile_drop(&f);
    weir_partfile_free(&f);
    if (st && st != WEIR_STOP)
        weir_err_where(err, m->out, NULL, -1);
    return st;
}

weir_status weir_dump_merge(const char *out, const char *const *paths, int n, const weir_merge_options *o,
                            weir_merge_summary *summary, weir_err *err)
{
    weir_h5_quiet q;
    struct stat file;
    weir_merge m = {.o = o, .out = out, .n = n, .file = -1};
    if (n < 1)
        return weir_fail(err, WEIR_E_ARG, "no files to join");
    if (!(m.part = weir_calloc((size_t)n, sizeof *m.part)))
        return weir_nomem(err, "the files that are joined");
    for (int k = 0; k < n; k++)
        m.part[k].path = paths[k];
    weir_h5_quiet_begin(&q);
    weir_status st = merge(&m, err);
    weir_h5_quiet_end(&q);
    if (!st && summary)
        *summary = (weir_merge_summary){.files = n,
                                        .docs = m.docs,
                                        .rows = m.rows,
                                        .datasets = m.datasets,
                                        .file_bytes = stat(out, &file) ? 0 : (int64_t)file.st_size};
    weir_free(m.part);
    return st;
}

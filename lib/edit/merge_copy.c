/* A merged checkpoint from the original bytes: files are copied, changed elements written over in place. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/parallel.h"
#include "../io/filemap.h"
#include "merge.h"

enum { CHUNK = 1 << 20 };

/* One writing of a directory. */
typedef struct copying {
    weir_merging g;
    const char *from;
    weir_arena arena;
    char **name; /* [n], ends with NULL: files that are copied */
    int64_t n;
    weir_outdir *out;
} copying;

static weir_status fail_at(weir_err *err, const char *path, const char *what)
{
    weir_fail(err, WEIR_E_IO, "%s: %s", what, strerror(errno));
    return weir_err_where(err, path, NULL, -1);
}

/* --- which files */

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Does the model have tensors in the file of this name? */
static bool has_tensors(const weir_model *m, const char *name)
{
    for (int64_t i = 0; i < weir_model_n_tensors(m); i++)
        if (strcmp(last_part(weir_model_tensor(m, i)->file), name) == 0)
            return true;
    return false;
}

/* Other forms of the weights would still hold the old ones. */
static bool is_wanted(const weir_model *m, const char *name)
{
    static const char *const weights[] = {".safetensors", ".bin", ".pt",   ".pth",  ".h5",
                                          ".msgpack",     ".ot",  ".onnx", ".gguf", ".part"};
    if (name[0] == '.')
        return false;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (ends_with(name, weights[i]))
            return has_tensors(m, name);
    return true;
}

static weir_status list_files(copying *c, weir_err *err)
{
    DIR *d = opendir(c->from);
    if (!d)
        return fail_at(err, c->from, "cannot read it");
    weir_status s = WEIR_OK;
    for (struct dirent *e; s == WEIR_OK && (e = readdir(d));) {
        char *path = weir_path_join(c->from, e->d_name);
        struct stat st;
        const bool file = path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
        if (!path)
            s = weir_nomem(err, "a list of files");
        else if (file && is_wanted(c->g.m, e->d_name)) {
            char **more = weir_grow(c->name, (size_t)c->n, sizeof *c->name);
            c->name = more ? more : c->name;
            if (!more || !(c->name[c->n] = weir_arena_strndup(&c->arena, e->d_name, strlen(e->d_name))))
                s = weir_nomem(err, "a list of files");
            else
                c->n++;
        }
        weir_free(path);
    }
    closedir(d);
    char **more = s == WEIR_OK ? weir_grow(c->name, (size_t)c->n, sizeof *c->name) : NULL;
    if (!more)
        return s == WEIR_OK ? weir_nomem(err, "a list of files") : s;
    c->name = more;
    c->name[c->n] = NULL;
    return WEIR_OK;
}

/* --- copying */

static weir_status copy_bytes(const copying *c, int in, int out, const char *from, const char *to, weir_err *err)
{
    char *buf = weir_calloc(CHUNK, 1);
    weir_status s = buf ? WEIR_OK : weir_nomem(err, "a copy");
    while (s == WEIR_OK) {
        const ssize_t n = read(in, buf, CHUNK);
        if (n < 0 && errno != EINTR)
            s = fail_at(err, from, "cannot read it");
        else if (n == 0)
            break;
        for (ssize_t at = 0; at < n && s == WEIR_OK;) {
            const ssize_t k = write(out, buf + at, (size_t)(n - at));
            if (k < 0 && errno != EINTR)
                s = fail_at(err, to, "cannot write it");
            at += k > 0 ? k : 0;
        }
        if (s == WEIR_OK && c->g.o->stop && c->g.o->stop(c->g.o->user))
            s = WEIR_STOP;
    }
    weir_free(buf);
    return s;
}

static weir_status copy_file(const copying *c, const char *name, weir_err *err)
{
    char *from = weir_path_join(c->from, name), *to = weir_path_join(weir_outdir_part(c->out), name);
    weir_status s = from && to ? WEIR_OK : weir_nomem(err, "a path");
    const int in = s == WEIR_OK ? open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    if (s == WEIR_OK && in < 0)
        s = fail_at(err, from, "cannot open it");
    const int out = s == WEIR_OK ? open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    if (s == WEIR_OK && out < 0)
        s = fail_at(err, to, "cannot create it");
    if (s == WEIR_OK)
        s = copy_bytes(c, in, out, from, to, err);
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) != 0 && s == WEIR_OK)
        s = fail_at(err, to, "cannot write it");
    weir_free(from);
    weir_free(to);
    return s;
}

/* --- the changed elements */

/* Where rows of a tensor go. */
typedef struct place {
    int fd;
    int64_t offset, row_bytes;
    const char *path;
} place;

static weir_status put_rows(void *ctx, int64_t row, int64_t n, const void *bytes, size_t size, weir_err *err)
{
    const place *p = ctx;
    (void)n;
    for (size_t at = 0; at < size;) {
        const ssize_t k =
            pwrite(p->fd, (const char *)bytes + at, size - at, p->offset + row * p->row_bytes + (int64_t)at);
        if (k < 0 && errno != EINTR)
            return fail_at(err, p->path, "cannot write it");
        at += k > 0 ? (size_t)k : 0;
    }
    return WEIR_OK;
}

static const void *stored_rows(void *ctx, int64_t row, int64_t n)
{
    const weir_tensor *t = ctx;
    (void)n;
    return (const char *)t->data + row * t->shape[1] * weir_dtype_bytes(t->dtype);
}

static weir_status rewrite(const copying *c, const weir_tensor *t, const weir_module *w, weir_err *err)
{
    char *path = weir_path_join(weir_outdir_part(c->out), last_part(t->file));
    if (!path)
        return weir_nomem(err, "a path");
    place p = {.fd = open(path, O_WRONLY | O_CLOEXEC),
               .offset = t->offset,
               .path = path,
               .row_bytes = t->shape[1] * weir_dtype_bytes(t->dtype)};
    const weir_merge_tensor from = {.module = w,
                                    .file = t->file,
                                    .name = t->name,
                                    .offset = t->offset,
                                    .dtype = t->dtype,
                                    .rows = t->shape[0],
                                    .width = t->shape[1],
                                    .row_of = weir_stored_row,
                                    .read = stored_rows,
                                    .ctx = (void *)t};
    weir_status s = p.fd < 0 ? fail_at(err, path, "cannot open it") : weir_merge_rows(&c->g, &from, put_rows, &p, err);
    if (p.fd >= 0 && close(p.fd) != 0 && s == WEIR_OK)
        s = fail_at(err, path, "cannot write it");
    weir_free(path);
    return s;
}

static weir_status rewrite_all(const copying *c, weir_err *err)
{
    for (int64_t l = 0; l < weir_model_info_of(c->g.m)->L; l++)
        for (int i = 0; i < WEIR_MATRIX_COUNT; i++) {
            weir_module w;
            const weir_tensor *t = weir_stored_of(&w, c->g.m, l, (weir_matrix)i);
            bool touched = false;
            for (int j = 0; j < w.n; j++)
                touched |= weir_merge_touches(&c->g, l, w.matrix[j]);
            if (t && touched && w.matrix[0] == (weir_matrix)i) /* a fused tensor comes once */
                WEIR_TRY(rewrite(c, t, &w, err));
        }
    return WEIR_OK;
}

/* --- the directory */

static weir_status write_dir(copying *c, const char *dir, weir_err *err)
{
    WEIR_TRY(list_files(c, err));
    const weir_outdir_kind kind = {"a merged checkpoint", (const char *const *)c->name};
    WEIR_TRY(weir_outdir_may(dir, &kind, false, err));
    WEIR_TRY(weir_outdir_open(&c->out, dir, &kind, err));
    weir_status s = WEIR_OK;
    for (int64_t i = 0; i < c->n && s == WEIR_OK; i++)
        s = copy_file(c, c->name[i], err);
    if (s == WEIR_OK)
        s = rewrite_all(c, err);
    if (s == WEIR_OK)
        return weir_outdir_commit(c->out, err);
    weir_outdir_abort(c->out);
    return s;
}

weir_status weir_edit_merge(const weir_model *m, const weir_edit *const *edits, int n_edits, const char *dir,
                            const weir_edit_merge_options *o, weir_err *err)
{
    static const weir_edit_merge_options usual;
    const weir_model_info *info = weir_model_info_of(m);
    copying c = {.g = {.m = m, .edit = edits, .n_edits = n_edits, .o = o ? o : &usual}, .from = info->path};
    const bool gguf = strcmp(info->format, "gguf") == 0;
    if (n_edits < 1 && !gguf)
        return weir_fail(err, WEIR_E_ARG, "no edits to merge");
    for (int i = 0; i < n_edits; i++)
        if (weir_edit_model(edits[i]) != m)
            return weir_fail(err, WEIR_E_ARG, "edit %d was not made for the model", i);
    c.g.threads = weir_threads(c.g.o->threads);
    if (gguf)
        return weir_merge_gguf(&c.g, dir, err);
    const weir_status s = write_dir(&c, dir, err);
    weir_free(c.name);
    weir_arena_free(&c.arena);
    return s;
}

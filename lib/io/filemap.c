#include "filemap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/mem.h"

static weir_status map_fd(weir_filemap *m, int fd, const char *path, weir_err *err)
{
    struct stat st;
    if (fstat(fd, &st))
        return weir_fail(err, WEIR_E_IO, "cannot stat: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return weir_fail(err, WEIR_E_ARG, "not a regular file%s", S_ISDIR(st.st_mode) ? " but a directory" : "");
    if ((uint64_t)st.st_size > SIZE_MAX)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "the file is larger than this machine's addresses reach");
    m->path = weir_strndup(path, strlen(path));
    if (!m->path)
        return weir_nomem(err, "a path");
    m->size = (size_t)st.st_size;
    if (!m->size)
        return WEIR_OK;
    void *p = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return weir_fail(err, WEIR_E_IO, "cannot map: %s", strerror(errno));
    m->data = p;
    return WEIR_OK;
}

weir_status weir_filemap_open(weir_filemap *m, const char *path, weir_err *err)
{
    *m = (weir_filemap){0};
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* NONBLOCK: a FIFO must be refused, not waited for */
    if (fd < 0) {
        weir_fail(err, WEIR_E_IO, "cannot open: %s", strerror(errno));
        weir_err_where(err, path, NULL, -1);
        return WEIR_E_IO;
    }
    weir_status s = map_fd(m, fd, path, err);
    close(fd); /* the map keeps the file */
    if (s != WEIR_OK) {
        weir_err_where(err, path, NULL, -1);
        weir_filemap_close(m);
    }
    return s;
}

void weir_filemap_close(weir_filemap *m)
{
    if (m->data)
        munmap((void *)m->data, m->size);
    weir_free(m->path);
    *m = (weir_filemap){0};
}

/* Advice: where the system does not take it, opening is only slower. */
static void advise(const weir_filemap *m, size_t n, int advice)
{
    if (n)
        madvise((void *)m->data, n, advice);
}

void weir_filemap_head_only(const weir_filemap *m, size_t n)
{
    advise(m, m->size, MADV_RANDOM);
    advise(m, n < m->size ? n : m->size, MADV_WILLNEED);
}

void weir_filemap_normal(const weir_filemap *m)
{
    advise(m, m->size, MADV_NORMAL);
}

static void advise_pages(const void *p, size_t n, int advice)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)p / page * page;
    if (n)
        madvise((void *)from, (uintptr_t)p + n - from, advice);
}

void weir_map_fetch(const void *p, size_t n)
{
    advise_pages(p, n, MADV_WILLNEED);
}

void weir_map_drop(const void *p, size_t n)
{
    advise_pages(p, n, MADV_DONTNEED);
}

char *weir_path_join(const char *dir, const char *name)
{
    weir_buf b = {0};
    size_t n = strlen(dir);
    const char *slash = n && dir[n - 1] == '/' ? "" : "/";
    if (weir_buf_printf(&b, "%s%s%s", dir, n ? slash : "", name) != WEIR_OK)
        weir_buf_free(&b);
    return b.p;
}

bool weir_filemap_is_pointer(const weir_filemap *m)
{
    static const char begin[] = "version https://git-lfs";
    return m->size >= sizeof begin - 1 && memcmp(m->data, begin, sizeof begin - 1) == 0;
}

bool weir_path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool weir_path_is_file(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno != ENOENT && errno != ENOTDIR;
    return S_ISREG(st.st_mode);
}

bool weir_path_is_absent(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

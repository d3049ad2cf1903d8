/* Preloaded by tests: kills the process by SIGKILL after its n-th write to files whose name holds ".part", and keeps a
 * log of those writes, so that a test knows what had been written by then; or lets every write from the n-th on fail.
 *
 *     WEIR_KILL_AFTER=n   SIGKILL after write n (from 1); 0 or unset: never
 *     WEIR_FAIL_FROM=n    writes n and later fail with ENOSPC; 0 or unset: none
 *     WEIR_WRITE_LOG=F    one line a write: number, offset, length, and the bytes in hexadecimal if they are few
 *
 *     cc -shared -fPIC -o killat.so killat.c -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 4096 };

typedef ssize_t (*pwrite_call)(int, const void *, size_t, off_t);
typedef ssize_t (*write_call)(int, const void *, size_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long number;

static long setting(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static int is_part(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0)
        return 0;
    path[n] = '\0';
    return strstr(path, ".part") != NULL;
}

static void note(write_call put, off_t at, const unsigned char *p, size_t n)
{
    static int log = -1;
    static char line[64 + 2 * SHOWN];
    const char *path = getenv("WEIR_WRITE_LOG");
    if (!path)
        return;
    if (log < 0)
        log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int used = snprintf(line, sizeof line, "%ld %lld %zu ", number, (long long)at, n);
    for (size_t i = 0; n <= SHOWN && i < n; i++)
        used += sprintf(line + used, "%02x", p[i]);
    line[used++] = '\n';
    if (put(log, line, (size_t)used) < 0)
        abort();
}

/* Counts, lets the write happen through one of the two calls, logs, kills. */
static ssize_t counted(int fd, const void *p, size_t n, off_t at, int positioned)
{
    write_call plain = (write_call)dlsym(RTLD_NEXT, "write");
    pwrite_call placed = (pwrite_call)dlsym(RTLD_NEXT, "pwrite");
    if (!is_part(fd))
        return positioned ? placed(fd, p, n, at) : plain(fd, p, n);
    pthread_mutex_lock(&lock);
    number++;
    long fail = setting("WEIR_FAIL_FROM");
    off_t where = positioned ? at : lseek(fd, 0, SEEK_CUR);
    ssize_t done = -1;
    if (fail && number >= fail)
        errno = ENOSPC;
    else
        done = positioned ? placed(fd, p, n, at) : plain(fd, p, n);
    int error = errno;
    note(plain, where, p, n);
    if (number == setting("WEIR_KILL_AFTER"))
        kill(getpid(), SIGKILL);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *p, size_t n)
{
    return counted(fd, p, n, 0, 0);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return counted(fd, p, n, at, 1);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
    return counted(fd, p, n, at, 1);
}

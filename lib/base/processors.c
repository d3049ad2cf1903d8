#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "parallel.h"

static int affinity_count(void)
{
    int count = 0;
    for (int cpus = 1024; !count && cpus <= 1 << 18; cpus *= 2) { /* EINVAL: the kernel's mask is longer */
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        if (!set)
            break;
        bool ok = sched_getaffinity(0, size, set) == 0;
        if (ok)
            count = CPU_COUNT_S(size, set);
        bool retry = !ok && errno == EINVAL;
        CPU_FREE(set);
        if (!retry)
            break;
    }
    return count > 0 ? count : 1;
}

/* ceil(quota / period) of one cpu.max file ("max 100000" or "150000 100000"); INT_MAX: no limit. */
static int quota_of(const char *path)
{
    long long quota, period;
    int n = INT_MAX;
    FILE *f = fopen(path, "re");
    if (!f)
        return n;
    if (fscanf(f, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0 && quota / period < INT_MAX - 1)
        n = (int)((quota + period - 1) / period);
    fclose(f);
    return n;
}

/* The smallest quota on the way from this process's control group (version 2) to the root. */
static int cgroup_count(void)
{
    char line[2048], path[4096];
    int least = INT_MAX;
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f)
        return least;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        for (char *group = line + 3, *cut;;) {
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
            int n = quota_of(path);
            least = n < least ? n : least;
            if (!(cut = strrchr(group, '/')))
                break;
            *cut = '\0';
        }
    }
    fclose(f);
    return least;
}

int weir_processors(void)
{
    int have = affinity_count(), may = cgroup_count();
    return have < may ? have : may;
}

enum { THREADS_MAX = 4096 };

static void *pass(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

int weir_threads(int wanted)
{
    pthread_t thread[THREADS_MAX];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* closed until all live at the same time */
    int n = wanted > 0 ? wanted : weir_processors(), made = 0;
    n = n < THREADS_MAX ? n : THREADS_MAX;
    pthread_mutex_lock(&gate);
    while (made < n - 1 && pthread_create(&thread[made], NULL, pass, &gate) == 0)
        made++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < made; i++)
        pthread_join(thread[i], NULL);
    if (made == n - 1)
        return n;
    return made > 3 ? made / 2 : 1; /* what the last ones took is needed by everything else */
}

#include "progress.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 24 };

double weir_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *weir_commas(int64_t n, char buf[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < len; i++) {
        buf[at++] = digits[i];
        int left = len - 1 - i;
        if (left > 0 && left % 3 == 0 && digits[i] != '-')
            buf[at++] = ',';
    }
    buf[at] = 0;
    return buf;
}

const char *weir_rounded(double x, int digits, bool sign, char buf[32])
{
    const int n = snprintf(buf, 32, sign ? "%+#.*g" : "%#.*g", digits, x);
    if (n > 0 && buf[n - 1] == '.')
        buf[n - 1] = 0;
    return buf;
}

void weir_progress_start(weir_progress *p, weir_cli *cli)
{
    *p = (weir_progress){.shown = !cli->quiet && isatty(STDERR_FILENO) != 0, .start = weir_now()};
    cli->progress = p;
}

void weir_progress_clear(weir_progress *p)
{
    if (!p || !p->drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->drawn = false;
}

void weir_progress_stop(weir_progress *p, weir_cli *cli)
{
    weir_progress_clear(p);
    cli->progress = NULL;
}

void weir_progress_update(weir_progress *p, double share, int64_t tokens)
{
    double now = weir_now(), seconds = now - p->start;
    if (!p->shown || now - p->last < 0.1 || seconds <= 0)
        return;
    p->last = now;
    char bar[BAR + 1], total[32], rate[32], left[48] = "";
    if (share >= 0) {
        int full = (int)(share * BAR);
        memset(bar, '.', BAR);
        memset(bar, '#', (size_t)(full < BAR ? full : BAR));
        bar[BAR] = 0;
        if (share > 0.01) {
            long long s = (long long)(seconds * (1 - share) / share + 0.5);
            snprintf(left, sizeof left, "  %lld:%02lld left", s / 60, s % 60);
        }
        fprintf(stderr, "\r[%s] %3d%%  ", bar, (int)(share * 100));
    } else {
        fputc('\r', stderr);
    }
    if (tokens >= 0)
        fprintf(stderr, "%s tokens  %s tokens/s", weir_commas(tokens, total),
                weir_commas((int64_t)((double)tokens / seconds), rate));
    fprintf(stderr, "%s\033[K", left);
    fflush(stderr);
    p->drawn = true;
}

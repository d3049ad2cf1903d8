#include "log.h"

#include <stdarg.h>

void weir_logf(const weir_log *log, weir_log_level level, const char *fmt, ...)
{
    if (!log || !log->line)
        return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    log->line(log->user, level, line);
}

/* base/log.h: remarks to the caller's log. */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include <weir/base.h>

/* One formatted line (cut at 1023 bytes). log and log->line may be NULL: silence. */
void weir_logf(const weir_log *log, weir_log_level level, const char *fmt, ...) WEIR_PRINTF(3, 4);

#endif

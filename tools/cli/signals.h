/* cli/signals.h: Ctrl-C, SIGTERM and a lost terminal end a run after the batch that it is in. */
#ifndef WEIR_CLI_SIGNALS_H
#define WEIR_CLI_SIGNALS_H

#include <stdbool.h>

/* From now on these signals are noted; a second one kills as usual. One that is ignored (nohup, a script's background
 * job) stays so. */
void weir_signals_catch(void);
/* The signal that came, or 0. */
int weir_signals_seen(void);
/* The same question as weir_docs_options asks it. */
bool weir_signals_stop(void *unused);

#endif

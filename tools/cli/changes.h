/* cli/changes.h: what was done to a run's values, as people read it. */
#ifndef WEIR_CLI_CHANGES_H
#define WEIR_CLI_CHANGES_H

#include "tool.h"

/* The JSON array of interventions that a run or a dump keeps (weir_attach_json), in words: "add SEL=FILE*4; ablate
 * L6N421=zero; edit NAME". The array itself where it is none of ours. To be freed; NULL: out of memory. */
char *weir_changes_words(const char *json);

#endif

/* cli/identity.h: what decides the rows of a run over text, as one JSON object: the text (names, sizes, SHA-256) and the
 * options that cut it. Two runs whose identities are equal have the same rows in the same order; a dump keeps it, so
 * that a resumed run can be refused when anything has changed. */
#ifndef WEIR_CLI_IDENTITY_H
#define WEIR_CLI_IDENTITY_H

#include "session.h"

/* To be freed; NULL after an error that has been said. Files are read once to the end. */
char *weir_session_identity(const weir_session *s);
/* Can the text be read again from its beginning? Standard input and pipes cannot: *name says which. */
bool weir_session_rereadable(const weir_session *s, const char **name);

#endif

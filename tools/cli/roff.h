/* cli/roff.h: text as roff takes it, whatever stands in it. */
#ifndef WEIR_CLI_ROFF_H
#define WEIR_CLI_ROFF_H

#include <stdio.h>

/* Text in lines of at most 78 columns. Names of options in it (--layer) are bold; a newline breaks the line, an empty
 * line begins a paragraph. Ends with a newline. */
void weir_roff_text(FILE *out, const char *text);
/* Lines as they stand, in a block of their own. */
void weir_roff_literal(FILE *out, const char *text);
/* Within a line: a word in bold ('B'), in italics ('I'), or plain ('R'). */
void weir_roff_word(FILE *out, char font, const char *text);

#endif

/* export/markdown.h: the Markdown of templates as HTML: headings, paragraphs, lists, code, **bold**, *emphasis*, links.
 * All else is text; nothing in it can become HTML. */
#ifndef WEIR_NOTEBOOK_MARKDOWN_H
#define WEIR_NOTEBOOK_MARKDOWN_H

#include <stdio.h>

/* Text of valid UTF-8, of printable characters and line breaks. */
void weir_markdown_put(FILE *out, const char *text);

#endif

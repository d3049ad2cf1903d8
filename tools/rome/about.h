/* rome/about.h: an edit's directory in words and as JSON. */
#ifndef WEIR_ROME_ABOUT_H
#define WEIR_ROME_ABOUT_H

#include "cli/tool.h"

/* One line: directory, method, modules, size, the first request. */
void weir_rome_about_line(const weir_edit_look *l, FILE *out);
/* One object. modules: with each of them, and with the whole edit.json. */
void weir_rome_about_json(weir_jsonw *w, const weir_edit_look *l, bool modules);

/* The edits that the model had when this one was made, by edit.json: calls tell for each, in their order. */
void weir_rome_beneath(const char *json, void (*tell)(const char *dir));

/* The requests of edit.json: calls tell for each, with its prompt, subject and target (any may be empty); returns their
 * number. */
int64_t weir_rome_requests(const char *json,
                           void (*tell)(void *ctx, const char *prompt, const char *subject, const char *target),
                           void *ctx);

#endif

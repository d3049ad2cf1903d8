/* rome/verify.h: what rome verify has measured, and the file that it is written to. */
#ifndef WEIR_ROME_VERIFY_H
#define WEIR_ROME_VERIFY_H

#include "asked.h"

/* A threshold and what stands against it. */
typedef struct weir_verify_check {
    const char *name;
    double value, bound; /* value NaN: nothing to check */
    bool most;           /* the bound is an upper one */
} weir_verify_check;

enum { WEIR_VERIFY_CHECKS = 4 };

/* Borrowed, all of it. */
typedef struct weir_verified {
    weir_editor *e;
    const weir_edit *edit;
    const char *dir;
    const weir_made *made;
    const weir_rome_texts *text;
    const weir_asked_list *asked;
    const weir_verify_check *check; /* [WEIR_VERIFY_CHECKS] */
} weir_verified;

bool weir_verify_kept(const weir_verify_check *c);

/* Can the report be written to path? Asked before the work. read [n]: files and directories that must not be written
 * over; NULL ones are passed over. Returns an exit code; an error has been said. */
int weir_verify_place(const weir_cli *cli, const char *path, const char *const *read, int n);
/* Measures what the edit does in the stream, and writes format "weir-verify" (README.md has the schema). Returns an
 * exit code; an error has been said. */
int weir_verify_write(const weir_verified *v, const char *path);

#endif

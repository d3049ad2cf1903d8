/* support/said.h: what an error says. */
#ifndef TEST_SAID_H
#define TEST_SAID_H

#include <stdio.h>
#include <string.h>

#include <weir/base.h>

/* Is it an error of this code whose line holds `words`? If not, the line is printed. */
static inline bool said(const weir_err *err, weir_status code, const char *words)
{
    char line[1400];
    weir_err_line(err, line, sizeof line);
    bool right = err->code == code && strstr(line, words) && !strchr(line, '\n');
    if (!right)
        fprintf(stderr, "wanted code %d and \"%s\"; got code %d and \"%s\"\n", code, words, err->code, line);
    return right;
}

#endif

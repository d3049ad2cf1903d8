/* cli/terminal.h: what a terminal can: colours, signs, columns. Values have red where they are positive and blue where
 * they are negative, the stronger the larger their magnitude. Foreground and background are always set together, so
 * that text can be read on light and dark terminals. */
#ifndef WEIR_CLI_TERMINAL_H
#define WEIR_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum weir_colour { WEIR_COLOUR_NONE = 0, WEIR_COLOUR_16, WEIR_COLOUR_256, WEIR_COLOUR_TRUE } weir_colour;

/* In the order of the words of --color. */
typedef enum weir_colour_asked {
    WEIR_ASK_AUTO,
    WEIR_ASK_NEVER,
    WEIR_ASK_16,
    WEIR_ASK_256,
    WEIR_ASK_TRUE
} weir_colour_asked;
#define WEIR_COLOUR_WORDS "auto|never|16|256|24bit"
/* auto: what the terminal of `out` can, none where it is no terminal or NO_COLOR (https://no-color.org) is set. */
weir_colour weir_colour_of(weir_colour_asked asked, FILE *out);
/* asked 0: the terminal's columns, else 120. */
int weir_width_of(int64_t asked, FILE *out);
/* Does the user's locale say that signs beyond ASCII can be drawn? */
bool weir_utf8_locale(void);
/* A bar of share, 0 .. 1 (others are cut to that, NaN is 0), of `columns` signs: in eighths of a sign where the locale
 * has blocks, else of '#'. */
void weir_put_bar(FILE *out, double share, int columns);

/* Begins text of value x, -1 .. 1 (others are cut to that, NaN is 0). False: nothing was begun, because there are no
 * colours, or the value is too near to 0. */
bool weir_heat_begin(FILE *out, weir_colour colour, double x);
/* Begins bold or faint text, where there are colours. */
void weir_bold_begin(FILE *out, weir_colour colour);
void weir_faint_begin(FILE *out, weir_colour colour);
/* Ends whatever was begun. */
void weir_colour_end(FILE *out, weir_colour colour);

#endif

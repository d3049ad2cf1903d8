#include "terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

weir_colour weir_colour_of(weir_colour_asked asked, FILE *out)
{
    static const weir_colour chosen[] = {[WEIR_ASK_NEVER] = WEIR_COLOUR_NONE,
                                         [WEIR_ASK_16] = WEIR_COLOUR_16,
                                         [WEIR_ASK_256] = WEIR_COLOUR_256,
                                         [WEIR_ASK_TRUE] = WEIR_COLOUR_TRUE};
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM"), *more = getenv("COLORTERM");
    if (asked != WEIR_ASK_AUTO)
        return chosen[asked];
    if (!isatty(fileno(out)) || (no && *no) || !term || strcmp(term, "dumb") == 0)
        return WEIR_COLOUR_NONE;
    if (more && (strcmp(more, "truecolor") == 0 || strcmp(more, "24bit") == 0))
        return WEIR_COLOUR_TRUE;
    return strstr(term, "256") ? WEIR_COLOUR_256 : WEIR_COLOUR_16;
}

int weir_width_of(int64_t asked, FILE *out)
{
    enum { USUAL = 120 };
    struct winsize size;
    if (asked)
        return (int)asked;
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : USUAL;
}

bool weir_utf8_locale(void)
{
    const char *const name[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(name[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

void weir_put_bar(FILE *out, double share, int columns)
{
    const bool fine = weir_utf8_locale();
    int eighths = (int)lround(fmin(fmax(share, 0), 1) * columns * 8);
    if (!fine)
        eighths = (eighths + 4) / 8 * 8;
    for (; eighths >= 8; eighths -= 8)
        fputs(fine ? "\xe2\x96\x88" : "#", out);
    if (eighths)
        fprintf(out, "\xe2\x96%c", 0x90 - eighths);
}

/* --- colours */
/* White text on a background between these: [sign][weakest, strongest][r, g, b]. White reaches a contrast of 4.5 : 1 on
 * all. */
static const int ends[2][2][3] = {{{72, 44, 44}, {208, 38, 38}}, {{40, 48, 80}, {48, 88, 224}}};
/* The same in the cube of 256 colours, and with 16. */
static const int steps256[2][4] = {{52, 88, 124, 160}, {17, 18, 20, 21}};
static const char *const steps16[2][2] = {{"31", "97;41"}, {"34", "97;44"}};

bool weir_heat_begin(FILE *out, weir_colour colour, double x)
{
    double size = fabs(x) < 1 ? fabs(x) : 1;
    if (colour == WEIR_COLOUR_NONE || isnan(x) || size < 0.08)
        return false;
    int sign = x < 0;
    if (colour == WEIR_COLOUR_TRUE) {
        int rgb[3];
        for (int i = 0; i < 3; i++)
            rgb[i] = (int)lround(ends[sign][0][i] + size * (ends[sign][1][i] - ends[sign][0][i]));
        fprintf(out, "\033[38;2;255;255;255;48;2;%d;%d;%dm", rgb[0], rgb[1], rgb[2]);
    } else if (colour == WEIR_COLOUR_256) {
        fprintf(out, "\033[38;5;231;48;5;%dm", steps256[sign][size < 1 ? (int)(4 * size) : 3]);
    } else {
        fprintf(out, "\033[%sm", steps16[sign][size >= 0.5]);
    }
    return true;
}

void weir_bold_begin(FILE *out, weir_colour colour)
{
    if (colour != WEIR_COLOUR_NONE)
        fputs("\033[1m", out);
}

void weir_faint_begin(FILE *out, weir_colour colour)
{
    if (colour != WEIR_COLOUR_NONE)
        fputs("\033[2m", out);
}

void weir_colour_end(FILE *out, weir_colour colour)
{
    if (colour != WEIR_COLOUR_NONE)
        fputs("\033[0m", out);
}

#include "heat.h"

#include <math.h>

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

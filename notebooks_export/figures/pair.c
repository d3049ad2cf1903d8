/* Two frames in a picture. */
#include "figures/pair.h"

void weir_nb_pair_open(FILE *out, const char *title, int legend)
{
    weir_chart_open(out, WEIR_NB_PAIR_WIDTH, WEIR_NB_PAIR_LEGEND + legend * WEIR_CHART_LEGEND + 8, title);
}

weir_chart weir_nb_pair_frame(FILE *out, int place, const char *title, const char *up)
{
    return (weir_chart){.out = out,
                        .x = WEIR_CHART_LEFT + place * WEIR_NB_PAIR_BESIDE,
                        .y = WEIR_CHART_TOP,
                        .width = WEIR_NB_PAIR_FRAME,
                        .height = WEIR_NB_PAIR_HEIGHT,
                        .title = title,
                        .up = {.label = up}};
}

weir_chart weir_nb_pair_lines(FILE *out, int place, const char *title, const char *up, const weir_str *name, int64_t n)
{
    weir_chart c = weir_nb_pair_frame(out, place, title, up);
    c.across = (weir_chart_axis){.label = "line", .exact = true, .name = name, .names = (int)n};
    weir_chart_hold_one(&c.across, -0.3);
    weir_chart_hold_one(&c.across, (double)n - 0.7);
    return c;
}

/* How the edit was found: the passes of the search, what it came to, and the matrices that it changes. */
#include "figures/pair.h"
#include "report.h"

static weir_chart frame_of(FILE *out, int place, const char *title, const char *up, int64_t passes)
{
    weir_chart c = weir_nb_pair_frame(out, place, title, up);
    c.across.label = "pass";
    weir_chart_hold_one(&c.across, 0);
    weir_chart_hold_one(&c.across, passes > 1 ? (double)(passes - 1) : 1);
    weir_chart_hold_one(&c.up, 0);
    return c;
}

static void put_search(const weir_nb_report *v, FILE *out, int64_t first, int64_t n)
{
    static const char *const name[] = {"loss", "nll", "kl", "decay"};
    weir_chart_style style[WEIR_NB_P];
    weir_chart parts = frame_of(out, 0, "loss and its parts", "nats", n);
    weir_chart p = frame_of(out, 1, "probability of the target (mean of its tokens)", "probability", n);
    weir_chart_hold_one(&p.up, 1);
    for (int i = 0; i < WEIR_NB_P; i++) {
        weir_chart_hold(&parts.up, v->curve[i] + first, n);
        style[i] = (weir_chart_style){.name = name[i], .colour = weir_chart_colour(i), .dots = 2.5};
    }
    weir_nb_pair_open(out, "the search", 1);
    weir_chart_frame(&parts);
    for (int i = 0; i < WEIR_NB_P; i++)
        weir_chart_line(&parts, n, NULL, v->curve[i] + first, &style[i]);
    weir_chart_frame(&p);
    weir_chart_line(&p, n, NULL, v->curve[WEIR_NB_P] + first, &(weir_chart_style){.dots = 2.5});
    weir_chart_legend(out, parts.x, WEIR_NB_PAIR_LEGEND, WEIR_NB_PAIR_WIDTH, style, WEIR_NB_P);
    weir_svg_end(out);
}

static void put_came_to(const weir_nb_report *v, FILE *out, const double *came_to, bool converged)
{
    static const char *const head[] = {"|dW| / |W|", "|Lambda|",           "|v0|",     "|delta|",
                                       "k·u",        "cos(k, prompt's k)", "converged"};
    static const char *const matrices[] = {"matrix", "rank", "|dW|"};
    weir_chart_table t;
    weir_chart_table_begin(&t, out, NULL, head, WEIR_NB_CAME_TO + 1);
    for (int i = 0; i < WEIR_NB_CAME_TO; i++)
        weir_chart_table_real(&t, came_to[i], 4, NULL);
    weir_chart_table_text(&t, converged ? "yes" : "no", converged ? 3 : 2);
    weir_chart_table_end(&t);
    weir_chart_table_begin(&t, out, NULL, matrices, 3);
    for (int64_t i = 0; i < v->modules; i++) {
        const weir_str name = weir_array_text(&v->module, i);
        weir_chart_table_text(&t, name.p, name.n);
        weir_chart_table_int(&t, v->rank[i]);
        weir_chart_table_real(&t, v->delta[i], 4, NULL);
    }
    weir_chart_table_end(&t);
}

int weir_nb_report_search(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers)
{
    const weir_nb_report *v = data;
    const int64_t asked = v->request[v->looked[v->chosen]], n = v->request_passes[asked];
    double came_to[WEIR_NB_CAME_TO];
    int64_t first = 0;
    (void)nb;
    for (int64_t i = 0; i < asked; i++)
        first += v->request_passes[i];
    if (n)
        put_search(v, out, first, n);
    else
        weir_nb_say(out, "the edit keeps no passes of its search: weir rome edit writes them to edit.json");
    for (int i = 0; i < WEIR_NB_CAME_TO; i++)
        came_to[i] = v->came_to[i][asked];
    put_came_to(v, out, came_to, v->converged[asked]);
    weir_nb_put_reals(numbers, "loss", v->curve[WEIR_NB_LOSS] + first, n);
    weir_nb_put_reals(numbers, "target_p", v->curve[WEIR_NB_P] + first, n);
    weir_nb_put_reals(numbers, "came_to", came_to, WEIR_NB_CAME_TO);
    return WEIR_EXIT_OK;
}

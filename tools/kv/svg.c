/* The four-way split of each layer as one bar, as in figure 11 of the paper, and the agreement rate beside it. */
#include <string.h>

#include "kv.h"
#include "page/svg.h"

enum { LEFT = 60, TOP = 66, BAR = 380, RATE = 180, ROW = 20, GAP = 90 };

static const struct {
    const char *name, *colour;
} kind[4] = {
    {"residual", "#8fb3d9"}, {"both (agreement)", "#9ccb86"}, {"MLP", "#e59a4f"}, {"neither (composition)", "#b9a3d4"}};

static void put_split(const weir_kv *t, int i, double y)
{
    const weir_keyvalue_counts c = weir_keyvalue_counts_of(t->split, i);
    const int64_t part[4] = {c.residual, c.agreement, c.mlp, c.composition};
    double x = LEFT;
    for (int k = 0; k < 4 && c.rows; k++) {
        const double share = (double)part[k] / (double)c.rows;
        fprintf(t->out,
                "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>layer %d, %s: %.4g %%"
                "</title></rect>\n",
                x, y, BAR * share, ROW - 4, kind[k].colour, t->layer[i].layer, kind[k].name, 100 * share);
        x += BAR * share;
    }
}

/* Of the first key and sign that were asked for; the thin line is chance. */
static void put_rate(const weir_kv *t, int i, int key, int sign, double y)
{
    const weir_keyvalue_figures *f = &t->layer[i].triggers[key][sign].figures;
    const double x = LEFT + BAR + GAP;
    if (!f->keys)
        return;
    const double rate = (double)f->agree / (double)f->keys;
    fprintf(t->out,
            "<rect x=\"%g\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"#2f6fbf\"><title>layer %d: %.4g %% agree, "
            "chance %.4g %%</title></rect>\n",
            x, y, RATE * rate, ROW - 4, t->layer[i].layer, 100 * rate, 100 * f->chance);
    fprintf(t->out, "<path d=\"M%.2f %.1fv%d\" stroke=\"#c4501f\"/>\n", x + RATE * f->chance, y - 2, ROW);
    fprintf(t->out, "<text x=\"%.2f\" y=\"%.1f\">%.1f %%</text>\n",
            x + RATE * (rate > f->chance ? rate : f->chance) + 6, y + 12, 100 * rate);
}

static void put_legend(const weir_kv *t)
{
    double x = LEFT;
    for (int k = 0; k < 4; k++) {
        fprintf(t->out,
                "<rect x=\"%g\" y=\"34\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%g\" y=\"43\">%s</text>\n",
                x, kind[k].colour, x + 14, kind[k].name);
        x += 30 + 7.0 * (double)strlen(kind[k].name);
    }
}

void weir_kv_put_svg(const weir_kv *t)
{
    int key = 0;
    const int sign = t->sign[0] ? 0 : 1;
    while (!t->key[key])
        key++;
    weir_svg_begin(t->out, LEFT + BAR + GAP + RATE + 70, TOP + ROW * t->n_layers + 16, "weir kv-read",
                   "where each layer's prediction comes from");
    fprintf(t->out, "<text x=\"%d\" y=\"20\" font-weight=\"bold\">", LEFT);
    weir_svg_text(t->out, t->s.info->name, strlen(t->s.info->name), 40, false);
    fprintf(t->out,
            ": where each layer's prediction comes from</text><text x=\"%d\" y=\"43\">agreement by %s%s; line: "
            "chance</text>\n",
            LEFT + BAR + GAP, weir_kv_key_name[key], sign ? " (-)" : "");
    put_legend(t);
    for (int i = 0; i < t->n_layers; i++) {
        const double y = TOP + ROW * i;
        fprintf(t->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">L%d</text>\n", LEFT - 8, y + 12,
                t->layer[i].layer);
        put_split(t, i, y);
        put_rate(t, i, key, sign, y);
    }
    weir_svg_end(t->out);
}

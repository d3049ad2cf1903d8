#include "floor.h"

#include <string.h>

#include "cli/say.h"

static const double near = 1e-3;

static const struct {
    const char *name;
    double least;
} known[WEIR_FLOORS] = {{"ReLU", 0}, {"GELU", -0.17}, {"quick GELU", -0.1636}, {"SiLU", -0.2785}};

/* Are its values what an activation function gives? (Of a gated MLP, hook_post is a product: it goes below any
 * minimum.) */
static bool is_activation(const weir_neurons_table *t)
{
    static const char post[] = ".mlp.hook_post";
    size_t n = strlen(t->hook), end = sizeof post - 1;
    return strcmp(t->site, "gate-act") == 0 || (n > end && strcmp(t->hook + n - end, post) == 0);
}

void weir_floor_add(weir_floor *f, const weir_neurons_table *table, double lowest, double last)
{
    if (!is_activation(table))
        return;
    f->lists++;
    for (int i = 0; i < WEIR_FLOORS; i++) {
        f->below[i] = f->below[i] || lowest < known[i].least - near;
        f->at[i] += last <= known[i].least + near;
    }
}

void weir_floor_say(const weir_floor *f, const weir_cli *cli)
{
    for (int i = 0; i < WEIR_FLOORS; i++)
        if (!f->below[i] && 2 * f->at[i] > f->lists) {
            weir_cli_note(
                cli,
                "most lists of lowest values lie at %.4g, the minimum of %s: which of the many values there are "
                "listed is chance (--sign + leaves them out)",
                known[i].least, known[i].name);
            return;
        }
}

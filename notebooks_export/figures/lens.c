/* lens: maps that logit-lens wrote (weir-lens-map): what is opened and which part of it the parameters choose. What the
 * cells show is drawn in lens/draw.c and lens/cells.c. */
#include <stdlib.h>
#include <string.h>

#include "figures/arrays.h"
#include "lens/map.h"

/* --- parameters */

static int choose_stat(const weir_nb *nb, weir_nb_map *m)
{
    const char *name;
    char path[64];
    int code = weir_nb_text(nb, "stat", &name, NULL);
    if (code != WEIR_EXIT_OK)
        return code;
    for (int s = 0; s < WEIR_STAT_COUNT; s++)
        if (strcmp(name, weir_lens_stat_name[s]) == 0) {
            snprintf(path, sizeof path, "stats/%s", name);
            m->stat = (weir_lens_stat)s;
            if (weir_arrays_has(m->r, path))
                return WEIR_EXIT_OK;
            return weir_nb_wrong(nb, "stat", "the file does not hold it%s",
                                 s == WEIR_STAT_CONTRAST ? ": weir logit-lens --contrast A,B -o FILE.h5 does" : "");
        }
    return weir_nb_wrong(nb, "stat",
                         "there are prob, logit, rank, entropy, kl, kl_prev, jsd, ce and contrast, and no %s", name);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int choose(const weir_nb *nb, weir_nb_map *m)
{
    const int64_t any = INT64_C(1) << 40, drawn = 1000;
    int64_t first, tokens, position;
    int code = choose_stat(nb, m);
    if (code == WEIR_EXIT_OK)
        code = weir_nb_int_in(nb, "doc", 0, m->docs - 1, &m->doc);
    if (code != WEIR_EXIT_OK)
        return code;
    const int64_t count = m->count[m->doc];
    m->begin = m->start[m->doc];
    m->end = m->begin + count;
    if ((code = weir_nb_int_in(nb, "first", 0, count - 1, &first)) != WEIR_EXIT_OK ||
        (code = weir_nb_int_in(nb, "tokens", 1, drawn, &tokens)) != WEIR_EXIT_OK ||
        (code = weir_nb_int_in(nb, "position", -count, count - 1, &position)) != WEIR_EXIT_OK ||
        (code = weir_nb_int_in(nb, "top", 1, any, &m->top)) != WEIR_EXIT_OK ||
        (code = weir_nb_int_in(nb, "max_tokens", 1, any, &m->most)) != WEIR_EXIT_OK)
        return code;
    m->first = m->begin + first;
    m->until = least(m->end, m->first + tokens);
    m->at = (position < 0 ? m->end : m->begin) + position;
    m->top = least(m->top, m->k);
    return WEIR_EXIT_OK;
}

/* --- what the file is */

static void tell(weir_nb *nb, const weir_nb_map *m)
{
    weir_err err = {0};
    char *shown = NULL, *changes = NULL;
    weir_nb_tell_attribute(nb, m->r, "model", "model");
    weir_nb_tell_attribute(nb, m->r, "lens", "lens");
    weir_nb_tell_attribute(nb, m->r, "input", "text");
    weir_nb_tell(nb, "size", "%lld line%s of %lld position%s in %lld document%s", (long long)m->lines,
                 weir_nb_s(m->lines), (long long)m->n, weir_nb_s(m->n), (long long)m->docs, weir_nb_s(m->docs));
    weir_nb_tell_attribute(nb, m->r, "target", "target");
    if (weir_arrays_get_text(m->r, "", "interventions", &changes, &err) == WEIR_OK && strcmp(changes, "[]") != 0)
        weir_nb_tell(nb, "interventions", "%s", changes);
    if (weir_arrays_get_text(m->r, "", "shown", &shown, &err) == WEIR_OK)
        weir_nb_set_text(nb, "stat", shown);
    weir_arrays_free(shown);
    weir_arrays_free(changes);
}

static int open_map(weir_nb *nb, void **data)
{
    weir_nb_map *m = calloc(1, sizeof *m);
    if (!m)
        return weir_nb_no_memory(nb);
    *data = m;
    int code = weir_nb_map_open(m, nb);
    if (code != WEIR_EXIT_OK)
        return code;
    tell(nb, m);
    return choose(nb, m);
}

static void close_map(void *data)
{
    if (data)
        weir_nb_map_close(data);
    free(data);
}

static const weir_nb_figure figures[] = {{"map", weir_nb_map_draw_map},         {"target", weir_nb_map_draw_target},
                                         {"layers", weir_nb_map_draw_layers},   {"top", weir_nb_map_draw_top},
                                         {"settles", weir_nb_map_draw_settles}, {NULL, NULL}};

const weir_nb_kind weir_nb_kind_lens = {
    .name = "lens", .format = "weir-lens-map", .open = open_map, .close = close_map, .figure = figures};

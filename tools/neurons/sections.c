#include "sections.h"

#include "cli/say.h"

const char *weir_section_name(int section)
{
    static const char *const name[WEIR_SECTIONS] = {"top",   "bottom", "abs",   "band0", "band1",
                                                    "band2", "band3",  "band4", "random"};
    return name[section];
}

bool weir_section_kept(const weir_neurons_options *o, int section)
{
    return section < WEIR_SECTION_BAND     ? (o->lists >> section & 1) != 0
           : section < WEIR_SECTION_RANDOM ? o->per_band > 0
                                           : o->random > 0;
}

bool weir_section_shown(const weir_view *v, int section)
{
    return weir_section_kept(weir_neurons_options_of(v->s), section) &&
           (section >= WEIR_SECTION_BAND || (v->lists >> section & 1));
}

int64_t weir_section_room(const weir_neurons_options *o)
{
    int64_t room = o->k > o->per_band ? o->k : o->per_band;
    room = o->random > room ? o->random : room;
    return room > 1 ? room : 1;
}

int64_t weir_section_hits(const weir_view *v, const weir_shown *neuron, int section, weir_neuron_hit *out)
{
    if (section == WEIR_SECTION_RANDOM)
        return weir_neurons_random(v->s, neuron->table, neuron->neuron, out);
    if (section >= WEIR_SECTION_BAND)
        return weir_neurons_band(v->s, neuron->table, neuron->neuron, section - WEIR_SECTION_BAND, out);
    int64_t n = weir_neurons_hits(v->s, neuron->table, neuron->neuron, (weir_neurons_list)section, out);
    return n < v->k ? n : v->k;
}

int64_t weir_shown_unit(const weir_view *v, const weir_shown *neuron)
{
    const weir_neurons_table *t = weir_neurons_table_at(v->s, neuron->table);
    return t->units ? t->units[neuron->neuron] : neuron->neuron;
}

void weir_view_window(const weir_view *v, const weir_neurons_context *c, int64_t *first, int64_t *end)
{
    *first = v->whole || c->hit < v->before ? 0 : c->hit - v->before;
    *end = v->whole || c->n - c->hit - 1 < v->after ? c->n : c->hit + 1 + v->after;
}

int32_t weir_context_next(const weir_neurons_context *c)
{
    return c->n && c->hit + 1 < c->n ? c->id[c->hit + 1] : -1;
}

int weir_view_no_memory(const weir_view *v)
{
    return weir_cli_error(v->cli, "out of memory for the output");
}

#include <math.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "compose.h"

const char *const weir_compose_input_name[WEIR_COMPOSE_INPUTS] = {"q", "k", "v", "key", "up"};
enum { LABEL = 11, CELL = 8 }; /* columns of the table of layers */
static const char *const part_name[WEIR_COMPOSE_PARTS] = {"head", "neuron"};
static const char *const weights_name[] = {"raw", "gain", "folded"}; /* in the order of weir_compose_weights */

static weir_compose_part into(const weir_compose_group *g)
{
    return g->input <= WEIR_COMPOSE_V ? WEIR_COMPOSE_HEADS : WEIR_COMPOSE_NEURONS;
}

static const char *unit_name(const weir_compose_unit *u, char buf[48])
{
    snprintf(buf, 48, "L%lld%c%lld", (long long)u->layer, u->part == WEIR_COMPOSE_HEADS ? 'H' : 'N',
             (long long)u->unit);
    return buf;
}

static bool has_rope(const weir_composing *t)
{
    return weir_model_point(t->model, "blocks.0.attn.hook_rot_q") != NULL;
}

/* What stands between a head's vectors and its score, and has no part in the numbers. */
static const char *left_out(const weir_composing *t)
{
    if (weir_model_point(t->model, "blocks.0.attn.q_norm.hook_scale"))
        return "; RoPE, and the lengths that norms of heads divide by, are left out";
    return has_rope(t) ? "; RoPE is left out" : "";
}

/* --- lines */

void weir_compose_put_head(const weir_composing *t)
{
    if (t->a->format == WEIR_COMPOSE_TSV)
        fputs("input\tfrom_kind\tfrom_layer\tfrom\tto_kind\tto_layer\tto\tscore\n", t->out);
}

static void put_pair_json(weir_jsonw *w, const weir_compose_group *g, const weir_compose_pair *p)
{
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "input", weir_compose_input_name[g->input]);
    weir_jsonw_key_cstr(w, "from_kind", part_name[p->from.part]);
    weir_jsonw_key_int(w, "from_layer", p->from.layer);
    weir_jsonw_key_int(w, "from", p->from.unit);
    weir_jsonw_key_cstr(w, "to_kind", part_name[p->to.part]);
    weir_jsonw_key_int(w, "to_layer", p->to.layer);
    weir_jsonw_key_int(w, "to", p->to.unit);
    weir_jsonw_key_double(w, "score", p->score);
    weir_jsonw_end(w);
}

void weir_compose_put_pair(const weir_composing *t, const weir_compose_group *g, const weir_compose_pair *p)
{
    if (t->a->format == WEIR_COMPOSE_TSV) {
        fprintf(t->out, "%s\t%s\t%lld\t%lld\t%s\t%lld\t%lld\t%.9g\n", weir_compose_input_name[g->input],
                part_name[p->from.part], (long long)p->from.layer, (long long)p->from.unit, part_name[p->to.part],
                (long long)p->to.layer, (long long)p->to.unit, p->score);
    } else if (t->a->format == WEIR_COMPOSE_NDJSON) {
        weir_jsonw w;
        weir_jsonw_init(&w, t->out);
        put_pair_json(&w, g, p);
        fputc('\n', t->out);
    }
}

/* --- JSON */

static void put_layers_json(const weir_composing *t, const weir_compose_group *g, weir_jsonw *w)
{
    const int64_t l = t->info->L;
    weir_jsonw_key(w, "layers");
    weir_jsonw_array(w);
    for (int64_t from = 0; from < l; from++) {
        weir_jsonw_array(w);
        for (int64_t cell = from * l; cell < (from + 1) * l; cell++)
            weir_jsonw_double(w, g->layer_pairs[cell] ? g->layer_sum[cell] / (double)g->layer_pairs[cell] : NAN);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_group_json(const weir_composing *t, const weir_compose_group *g, weir_jsonw *w)
{
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "input", weir_compose_input_name[g->input]);
    weir_jsonw_key_cstr(w, "from_kind", part_name[g->from]);
    weir_jsonw_key_cstr(w, "to_kind", part_name[into(g)]);
    weir_jsonw_key_int(w, "pairs", g->pairs);
    weir_jsonw_key_double(w, "mean", g->sum / (double)g->pairs);
    put_layers_json(t, g, w);
    weir_jsonw_key(w, "top");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < g->n_top; i++)
        put_pair_json(w, g, &g->top[i]);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static void put_json(const weir_composing *t)
{
    weir_jsonw w;
    weir_jsonw_init(&w, t->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "model", t->info->name);
    weir_jsonw_key_cstr(&w, "weights", weights_name[t->a->weights]);
    weir_jsonw_key(&w, "edits");
    weir_jsonw_array(&w);
    weir_edits_write(&t->edits, &w);
    weir_jsonw_end(&w);
    weir_jsonw_key_double(&w, "chance", weir_compose_chance(t->model));
    weir_jsonw_key_bool(&w, "rope_left_out", has_rope(t));
    weir_jsonw_key(&w, "groups");
    weir_jsonw_array(&w);
    for (int from = 0; from < WEIR_COMPOSE_PARTS; from++)
        for (int input = 0; input < WEIR_COMPOSE_INPUTS; input++)
            if (t->group[from][input].pairs)
                put_group_json(t, &t->group[from][input], &w);
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    fputc('\n', t->out);
}

/* --- text */

/* Means of heads that write in layer `from`, for the readers of layers [first, end). */
static void put_means_text(const weir_composing *t, const weir_compose_group *g, int64_t from, int64_t first,
                           int64_t end)
{
    fprintf(t->out, "  from L%-3lld", (long long)from);
    for (int64_t to = first; to < end; to++) {
        const int64_t cell = from * t->info->L + to;
        if (t->layer[to] && g->layer_pairs[cell])
            fprintf(t->out, " %7.4f", g->layer_sum[cell] / (double)g->layer_pairs[cell]);
        else if (t->layer[to])
            fputs("       -", t->out);
    }
    fputc('\n', t->out);
}

/* The first layer behind as many chosen ones, from `first` on, as a page has room for. */
static int64_t page_end(const weir_composing *t, int64_t first)
{
    const int room = (weir_width_of(t->a->width, t->out) - LABEL) / CELL;
    int64_t end = first;
    for (int used = 0; end < t->info->L && used + t->layer[end] <= (room > 1 ? room : 1); end++)
        used += t->layer[end];
    return end;
}

/* Means of heads by layers: rows from, columns to; in pages that are no wider than the terminal. */
static void put_layers_text(const weir_composing *t, const weir_compose_group *g)
{
    const int64_t l = t->info->L;
    for (int64_t first = 1, end; first < l; first = end) {
        bool any = false;
        end = page_end(t, first);
        for (int64_t to = first; to < end; to++)
            any |= t->layer[to];
        if (!any)
            continue;
        fprintf(t->out, "%-*s", LABEL, "  mean");
        for (int64_t to = first; to < end; to++) {
            char name[32];
            snprintf(name, sizeof name, "to L%lld", (long long)to);
            if (t->layer[to])
                fprintf(t->out, "%*s", CELL, name);
        }
        fputc('\n', t->out);
        for (int64_t from = 0; from < end - 1; from++) /* later ones write for no layer of this page */
            if (t->layer[from])
                put_means_text(t, g, from, first, end);
    }
}

static void put_group_text(const weir_composing *t, const weir_compose_group *g)
{
    static const char *const said[] = {"the queries of heads", "the keys of heads", "the values of heads",
                                       "the keys of neurons", "the up projections of neurons"};
    const double chance = weir_compose_chance(t->model);
    char pairs[32], from[48], to[48];
    fprintf(t->out, "%s into %s: %s pair%s, mean %.4f\n", g->from == WEIR_COMPOSE_HEADS ? "heads" : "neurons",
            said[g->input], weir_commas(g->pairs, pairs), g->pairs == 1 ? "" : "s", g->sum / (double)g->pairs);
    for (int64_t i = 0; i < g->n_top; i++)
        fprintf(t->out, "  %-9s %-9s %7.4f  %5.2f x chance\n", unit_name(&g->top[i].from, from),
                unit_name(&g->top[i].to, to), g->top[i].score, fabs(g->top[i].score) / chance);
    if (g->from == WEIR_COMPOSE_HEADS && into(g) == WEIR_COMPOSE_HEADS)
        put_layers_text(t, g);
}

void weir_compose_put(const weir_composing *t)
{
    if (t->a->out.json) {
        put_json(t);
        return;
    }
    if (t->a->format != WEIR_COMPOSE_TEXT)
        return;
    weir_put_printable(t->out, t->info->name, 0);
    fprintf(t->out, ", %s weights: composition scores; chance is %.4f, 1 / sqrt(%lld)%s\n", weights_name[t->a->weights],
            weir_compose_chance(t->model), (long long)t->info->C, left_out(t));
    for (int from = 0; from < WEIR_COMPOSE_PARTS; from++)
        for (int input = 0; input < WEIR_COMPOSE_INPUTS; input++)
            if (t->group[from][input].pairs)
                put_group_text(t, &t->group[from][input]);
}

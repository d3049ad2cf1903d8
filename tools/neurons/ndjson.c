/* A head, then an object for each neuron: schema "weir-neurons/1". README.md lists the keys. */
#include <stdlib.h>
#include <string.h>

#include "head.h"
#include "sections.h"
#include "view.h"

typedef struct ndjson {
    const weir_view *v;
    const weir_neurons_options *opt;
    weir_jsonw w;
    int64_t room; /* of the arrays below */
    weir_neuron_hit *hit;
    int32_t *cluster;
    weir_token_mean *mean;
    weir_neuron_relation *relation;
    weir_pieces pieces;
} ndjson;

static void put_numbers(weir_jsonw *w, const char *key, const double *x, int n)
{
    weir_jsonw_key(w, key);
    weir_jsonw_array(w);
    for (int i = 0; i < n; i++)
        weir_jsonw_double(w, x[i]);
    weir_jsonw_end(w);
}

/* --- the head */

static void put_options(ndjson *o)
{
    static const char *const rank[] = {"max", "mean"}, *const dedup[] = {"none", "window", "doc", "text"};
    const weir_neurons_options *opt = o->opt;
    weir_jsonw *w = &o->w;
    double edge[WEIR_NEURONS_BANDS + 1];
    weir_jsonw_key(w, "options");
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "k", opt->k);
    weir_jsonw_key_int(w, "shown", o->v->k);
    weir_jsonw_key_cstr(w, "rank", rank[opt->rank]);
    weir_jsonw_key_cstr(w, "dedup", dedup[opt->dedup]);
    weir_jsonw_key_int(w, "dedup_n", opt->dedup_n);
    put_numbers(w, "thresholds", opt->threshold, opt->n_thresholds);
    weir_jsonw_key_int(w, "per_band", opt->per_band);
    weir_jsonw_key_int(w, "random", opt->random);
    weir_jsonw_key_int(w, "seed", (int64_t)opt->seed);
    weir_jsonw_key_int(w, "before", o->v->before);
    weir_jsonw_key_int(w, "after", o->v->after);
    weir_jsonw_key_bool(w, "whole", o->v->whole);
    for (int i = 0; i <= WEIR_NEURONS_BANDS; i++)
        edge[i] = weir_neurons_band_edge(i);
    put_numbers(w, "band_edges", edge, WEIR_NEURONS_BANDS + 1);
    weir_jsonw_end(w);
}

static void put_head(ndjson *o)
{
    weir_jsonw *w = &o->w;
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "schema", "weir-neurons/1");
    weir_head_json_run(w, o->v->s, o->v->input);
    put_options(o);
    weir_head_json_tables(w, o->v->s);
    weir_jsonw_key_int(w, "neurons", o->v->n);
    weir_jsonw_end(w);
    fputc('\n', w->f);
}

/* --- a neuron */

static void put_stats(ndjson *o, const weir_shown *neuron)
{
    weir_neuron_stats st;
    weir_jsonw *w = &o->w;
    weir_neurons_stats(o->v->s, neuron->table, neuron->neuron, &st);
    weir_jsonw_key_int(w, "count", st.count);
    weir_jsonw_key_int(w, "nonfinite", st.nonfinite);
    weir_jsonw_key_double(w, "mean", st.mean);
    weir_jsonw_key_double(w, "sd", st.sd);
    weir_jsonw_key_double(w, "skew", st.skew);
    weir_jsonw_key_double(w, "kurtosis", st.kurtosis);
    weir_jsonw_key(w, "min");
    weir_jsonw_float(w, st.min);
    weir_jsonw_key(w, "max");
    weir_jsonw_float(w, st.max);
    weir_jsonw_key(w, "above");
    weir_jsonw_array(w);
    for (int i = 0; i < o->opt->n_thresholds; i++)
        weir_jsonw_int(w, st.above[i]);
    weir_jsonw_end(w);
}

static void put_hist(ndjson *o, const weir_shown *neuron)
{
    int64_t count[WEIR_NEURONS_BINS];
    weir_jsonw *w = &o->w;
    weir_neurons_hist(o->v->s, neuron->table, neuron->neuron, count);
    weir_jsonw_key(w, "hist");
    weir_jsonw_array(w);
    for (int b = 0; b < WEIR_NEURONS_BINS; b++) {
        if (count[b] == 0)
            continue;
        weir_jsonw_array(w);
        weir_jsonw_int(w, b);
        weir_jsonw_int(w, count[b]);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_token(ndjson *o, const char *key, int32_t id)
{
    weir_str t = weir_neurons_token(o->v->s, id);
    weir_jsonw_key(&o->w, key);
    id < 0 ? weir_jsonw_null(&o->w) : weir_jsonw_str(&o->w, t.n ? t.p : "", t.n);
}

/* Tokens that are drawn together because they share a character: [first, how many]. */
static void put_split(ndjson *o, int64_t first)
{
    weir_jsonw_key(&o->w, "split");
    weir_jsonw_array(&o->w);
    for (int64_t i = 0; i < o->pieces.n; i++) {
        const weir_piece *piece = &o->pieces.piece[i];
        if (piece->n < 2)
            continue;
        weir_jsonw_array(&o->w);
        weir_jsonw_int(&o->w, piece->first - first);
        weir_jsonw_int(&o->w, piece->n);
        weir_jsonw_end(&o->w);
    }
    weir_jsonw_end(&o->w);
}

static void put_ids_and_values(ndjson *o, const weir_neurons_context *c, int64_t first, int64_t end)
{
    weir_jsonw *w = &o->w;
    weir_jsonw_key(w, "ids");
    weir_jsonw_array(w);
    for (int64_t i = first; i < end; i++)
        weir_jsonw_int(w, c->id[i]);
    weir_jsonw_end(w);
    weir_jsonw_key(w, "values");
    if (!c->value) {
        weir_jsonw_null(w);
        return;
    }
    weir_jsonw_array(w);
    for (int64_t i = first; i < end; i++)
        weir_jsonw_float(w, c->value[i]);
    weir_jsonw_end(w);
}

/* The tokens around a place; false: out of memory. */
static bool put_context(ndjson *o, const weir_neurons_context *c)
{
    weir_jsonw *w = &o->w;
    int64_t first, end;
    weir_pieces *p = &o->pieces;
    weir_jsonw_key(w, "context");
    if (c->n == 0) {
        weir_jsonw_null(w);
        return true;
    }
    weir_view_window(o->v, c, &first, &end);
    if (!weir_pieces_make(p, o->v->s, c, first, end))
        return false;
    first = p->piece[0].first;
    end = p->piece[p->n - 1].first + p->piece[p->n - 1].n;
    size_t from = p->token_at[first], n = p->token_at[end] - from;
    const char *bytes = n ? p->raw.p + from : "";
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "pos", c->pos + first);
    weir_jsonw_key_int(w, "hit", c->hit - first);
    weir_jsonw_key(w, "at");
    weir_jsonw_array(w);
    weir_jsonw_int(w, (int64_t)(p->token_at[c->hit] - from));
    weir_jsonw_int(w, (int64_t)(p->token_at[c->hit + 1] - from));
    weir_jsonw_end(w);
    weir_jsonw_key(w, "text");
    weir_jsonw_str(w, bytes, n);
    weir_put_hex(w, bytes, n);
    put_ids_and_values(o, c, first, end);
    put_split(o, first);
    weir_jsonw_key_bool(w, "begins", c->begins && first == 0);
    weir_jsonw_key_bool(w, "ends", c->ends && end == c->n);
    weir_jsonw_end(w);
    return true;
}

static bool put_place(ndjson *o, const weir_neuron_hit *hit, int named)
{
    weir_jsonw *w = &o->w;
    weir_neurons_context c = weir_neurons_context_of(o->v->s, hit->doc, hit->pos, named);
    weir_jsonw_object(w);
    weir_jsonw_key(w, "value");
    weir_jsonw_float(w, hit->value);
    weir_jsonw_key_int(w, "doc", hit->doc);
    weir_jsonw_key_int(w, "pos", hit->pos);
    weir_jsonw_key(w, "count");
    hit->count > 0 ? weir_jsonw_int(w, hit->count) : weir_jsonw_null(w);
    put_token(o, "token", c.n ? c.id[c.hit] : -1);
    put_token(o, "next", weir_context_next(&c));
    bool ok = put_context(o, &c);
    weir_jsonw_end(w);
    return ok;
}

static bool put_sections(ndjson *o, const weir_shown *neuron, int named)
{
    bool ok = true;
    weir_jsonw_key(&o->w, "lists");
    weir_jsonw_object(&o->w);
    for (int section = 0; section < WEIR_SECTIONS && ok; section++) {
        if (!weir_section_shown(o->v, section))
            continue;
        int64_t n = weir_section_hits(o->v, neuron, section, o->hit);
        weir_jsonw_key(&o->w, weir_section_name(section));
        weir_jsonw_array(&o->w);
        for (int64_t i = 0; i < n && ok; i++)
            ok = put_place(o, &o->hit[i], named);
        weir_jsonw_end(&o->w);
    }
    weir_jsonw_end(&o->w);
    return ok;
}

static void put_weight_tokens(ndjson *o, const char *key, const weir_weight_token *token, int64_t n)
{
    weir_jsonw *w = &o->w;
    weir_jsonw_key(w, key);
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n && token[i].id >= 0; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "id", token[i].id);
        put_token(o, "token", token[i].id);
        weir_jsonw_key(w, "score");
        weir_jsonw_float(w, token[i].score);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_weights(ndjson *o, const weir_shown *neuron)
{
    static const char *const name[WEIR_SIDES] = {"in", "up", "out"};
    weir_jsonw *w = &o->w;
    int64_t agree, places;
    for (int side = 0; side < WEIR_SIDES; side++) {
        int64_t n[2];
        const weir_weight_token *token[2];
        for (int e = 0; e < 2; e++)
            token[e] = weir_neurons_weight_tokens(o->v->s, neuron->table, neuron->neuron, (weir_weight_side)side,
                                                  e == 0, &n[e]);
        weir_jsonw_key(w, name[side]);
        if (!token[0] || !token[1]) {
            weir_jsonw_null(w);
            continue;
        }
        weir_jsonw_object(w);
        put_weight_tokens(o, "highest", token[0], n[0]);
        put_weight_tokens(o, "lowest", token[1], n[1]);
        weir_jsonw_end(w);
    }
    weir_jsonw_key(w, "agreement");
    if (!weir_neurons_agreement(o->v->s, neuron->table, neuron->neuron, &agree, &places)) {
        weir_jsonw_null(w);
        return;
    }
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "agree", agree);
    weir_jsonw_key_int(w, "places", places);
    weir_jsonw_end(w);
}

static bool put_clusters(ndjson *o, const weir_shown *neuron)
{
    weir_jsonw *w = &o->w;
    weir_neuron_clusters c;
    unsigned lists = o->opt->lists;
    weir_jsonw_key(w, "clusters");
    if (!o->v->clusters || !lists) {
        weir_jsonw_null(w);
        return true;
    }
    int list = lists & 1 ? WEIR_NEURONS_TOP : lists & 2 ? WEIR_NEURONS_BOTTOM : WEIR_NEURONS_ABS;
    if (weir_neurons_clusters(o->v->s, neuron->table, neuron->neuron, (weir_neurons_list)list, &c, o->cluster, NULL) !=
        WEIR_OK)
        return false;
    int64_t n = weir_neurons_hits(o->v->s, neuron->table, neuron->neuron, (weir_neurons_list)list, o->hit);
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "list", weir_section_name(list));
    weir_jsonw_key_int(w, "places", c.places);
    weir_jsonw_key_int(w, "clusters", c.clusters);
    weir_jsonw_key_double(w, "effective", c.effective);
    weir_jsonw_key(w, "of");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n && i < o->v->k; i++)
        weir_jsonw_int(w, o->cluster[i]);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
    return true;
}

static void put_means(ndjson *o, const char *key, int named, bool descending)
{
    weir_jsonw *w = &o->w;
    int64_t n = weir_neurons_token_means(o->v->s, named, descending, 1, o->v->k, o->mean);
    weir_jsonw_key(w, key);
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "id", o->mean[i].id);
        put_token(o, "token", o->mean[i].id);
        weir_jsonw_key_int(w, "count", o->mean[i].count);
        weir_jsonw_key_double(w, "mean", o->mean[i].mean);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_related(ndjson *o, const char *key, int named, bool by_cofire)
{
    weir_jsonw *w = &o->w;
    int64_t n = weir_neurons_related(o->v->s, named, by_cofire, o->v->k, o->relation);
    weir_jsonw_key(w, key);
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "unit", o->relation[i].unit);
        weir_jsonw_key_double(w, "r", o->relation[i].r);
        weir_jsonw_key_double(w, "cofire", o->relation[i].cofire);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

/* What is kept of named neurons alone; null for the others. */
static void put_named(ndjson *o, int named)
{
    weir_jsonw *w = &o->w;
    weir_jsonw_key(w, "token_means");
    if (named >= 0 && o->opt->token_means > 0) {
        weir_jsonw_object(w);
        put_means(o, "highest", named, true);
        put_means(o, "lowest", named, false);
        weir_jsonw_end(w);
    } else {
        weir_jsonw_null(w);
    }
    weir_jsonw_key(w, "related");
    if (named >= 0 && o->opt->correlate) {
        weir_jsonw_object(w);
        put_related(o, "by_r", named, false);
        put_related(o, "by_cofire", named, true);
        weir_jsonw_end(w);
    } else {
        weir_jsonw_null(w);
    }
}

static bool put_neuron(ndjson *o, const weir_shown *neuron)
{
    const weir_neurons_table *t = weir_neurons_table_at(o->v->s, neuron->table);
    int named = weir_neurons_find_named(o->v->s, neuron->table, neuron->neuron);
    weir_jsonw *w = &o->w;
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "layer", t->layer);
    weir_jsonw_key_int(w, "unit", weir_shown_unit(o->v, neuron));
    weir_jsonw_key_cstr(w, "hook", t->hook);
    weir_jsonw_key_cstr(w, "site", t->site);
    put_stats(o, neuron);
    put_hist(o, neuron);
    put_weights(o, neuron);
    bool ok = put_clusters(o, neuron) && put_sections(o, neuron, named);
    put_named(o, named);
    weir_jsonw_end(w);
    fputc('\n', w->f);
    return ok;
}

int weir_view_ndjson(const weir_view *v)
{
    ndjson o = {.v = v, .opt = weir_neurons_options_of(v->s)};
    o.room = weir_section_room(o.opt);
    o.hit = malloc(sizeof *o.hit * (size_t)o.room);
    o.cluster = malloc(sizeof *o.cluster * (size_t)o.room);
    o.mean = malloc(sizeof *o.mean * (size_t)o.room);
    o.relation = malloc(sizeof *o.relation * (size_t)o.room);
    bool ok = o.hit && o.cluster && o.mean && o.relation;
    weir_jsonw_init(&o.w, v->out);
    if (ok)
        put_head(&o);
    for (int64_t i = 0; i < v->n && ok; i++)
        ok = put_neuron(&o, &v->shown[i]);
    free(o.hit);
    free(o.cluster);
    free(o.mean);
    free(o.relation);
    weir_pieces_free(&o.pieces);
    return ok ? WEIR_EXIT_OK : weir_view_no_memory(v);
}

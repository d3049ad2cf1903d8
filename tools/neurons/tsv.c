/* A line for each place: README.md says what the columns hold. */
#include <stdlib.h>

#include "sections.h"
#include "view.h"

typedef struct tsv {
    const weir_view *v;
    weir_neuron_hit *hit; /* [weir_section_room] */
    weir_pieces pieces;
    weir_text text;
} tsv;

static void put_text(const tsv *o)
{
    if (o->text.n)
        fwrite(o->text.p, 1, o->text.n, o->v->out);
}

/* A token's id and its bytes; nothing where there is none. */
static void put_token(tsv *o, int32_t id)
{
    fputc('\t', o->v->out);
    if (id >= 0)
        fprintf(o->v->out, "%d", id);
    fputc('\t', o->v->out);
    if (id < 0)
        return;
    weir_str bytes = weir_neurons_token(o->v->s, id);
    o->text.n = 0;
    weir_text_printable(&o->text, bytes.p, bytes.n);
    put_text(o);
}

/* The bytes of the context's tokens, and where in them (before escaping) the place's token begins. */
static bool put_context(tsv *o, const weir_neurons_context *c)
{
    int64_t first, end;
    if (c->n == 0) {
        fputs("\t\t", o->v->out);
        return true;
    }
    weir_view_window(o->v, c, &first, &end);
    weir_pieces *p = &o->pieces;
    if (!weir_pieces_make(p, o->v->s, c, first, end))
        return false;
    const weir_piece *last = &p->piece[p->n - 1];
    size_t from = p->token_at[p->piece[0].first], to = p->token_at[last->first + last->n];
    fprintf(o->v->out, "\t%zu\t", p->token_at[c->hit] - from);
    o->text.n = 0;
    if (to > from)
        weir_text_printable(&o->text, p->raw.p + from, to - from);
    put_text(o);
    return true;
}

static bool put_place(tsv *o, const weir_shown *neuron, int section, int64_t rank, const weir_neuron_hit *hit)
{
    const weir_neurons_table *t = weir_neurons_table_at(o->v->s, neuron->table);
    weir_neurons_context c = weir_neurons_context_of(o->v->s, hit->doc, hit->pos, -1);
    char value[32];
    fprintf(o->v->out, "%d\t%lld\t%s\t%s\t%s\t%lld\t%s\t%lld\t%lld\t%lld", t->layer,
            (long long)weir_shown_unit(o->v, neuron), t->hook, t->site, weir_section_name(section), (long long)rank,
            weir_float_text(value, hit->value), (long long)hit->doc, (long long)hit->pos, (long long)hit->count);
    put_token(o, c.n ? c.id[c.hit] : -1);
    put_token(o, weir_context_next(&c));
    bool ok = put_context(o, &c);
    fputc('\n', o->v->out);
    return ok && !o->text.failed;
}

int weir_view_tsv(const weir_view *v)
{
    const weir_neurons_options *opt = weir_neurons_options_of(v->s);
    tsv o = {.v = v, .hit = malloc(sizeof *o.hit * (size_t)weir_section_room(opt))};
    bool ok = o.hit != NULL;
    fputs("layer\tneuron\thook\tsite\tlist\trank\tvalue\tdoc\tpos\tcount\ttoken_id\ttoken\tnext_id\tnext\thit_byte\t"
          "context\n",
          v->out);
    for (int64_t i = 0; i < v->n && ok; i++)
        for (int section = 0; section < WEIR_SECTIONS && ok; section++) {
            int64_t n = weir_section_shown(v, section) ? weir_section_hits(v, &v->shown[i], section, o.hit) : 0;
            for (int64_t r = 0; r < n && ok; r++)
                ok = put_place(&o, &v->shown[i], section, r + 1, &o.hit[r]);
        }
    free(o.hit);
    weir_pieces_free(&o.pieces);
    weir_text_free(&o.text);
    return ok ? WEIR_EXIT_OK : weir_view_no_memory(v);
}

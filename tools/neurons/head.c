#include "head.h"

#include <string.h>

#include "cli/progress.h"
#include "sections.h"

/* --- text */

static void put_masked(const weir_head *h, const weir_neurons_counts *c)
{
    static const char *const kind[WEIR_MASK_KINDS] = {"", "BOS", "special", "chosen ids"};
    char buf[32];
    int64_t all = 0;
    for (int i = 1; i < WEIR_MASK_KINDS; i++)
        all += c->masked[i];
    fprintf(h->out, "; %s counted", weir_commas(c->masked[0], buf));
    for (int i = 1; i < WEIR_MASK_KINDS; i++)
        if (c->masked[i])
            fprintf(h->out, ", %s %s masked", weir_commas(c->masked[i], buf), kind[i]);
    if (all == 0)
        fputs(", none masked", h->out);
    fputc('\n', h->out);
}

void weir_head_run(const weir_head *h)
{
    const weir_neurons_about *a = weir_neurons_about_of(h->s);
    weir_neurons_counts c = weir_neurons_counts_of(h->s);
    char buf[32];
    weir_bold_begin(h->out, h->colour);
    weir_put_safe(h->out, h->text, a->model);
    weir_colour_end(h->out, h->colour);
    fputs("  ", h->out);
    weir_put_safe(h->out, h->text, h->input);
    if (a->shards)
        fprintf(h->out, "  shard %lld/%lld", (long long)a->shard, (long long)a->shards);
    fprintf(h->out, "\n%s tokens", weir_commas(c.rows, buf));
    fprintf(h->out, " in %s document%s", weir_commas(c.docs, buf), c.docs == 1 ? "" : "s");
    put_masked(h, &c);
}

void weir_head_sites(const weir_head *h)
{
    const char *seen = NULL;
    fputs("neuron = ", h->out);
    for (int t = 0; t < weir_neurons_n_tables(h->s); t++) {
        const char *site = weir_neurons_table_at(h->s, t)->site;
        bool again = false;
        for (int e = 0; e < t && !again; e++)
            again = strcmp(site, weir_neurons_table_at(h->s, e)->site) == 0;
        if (again)
            continue;
        fputs(seen ? ", " : "", h->out);
        weir_put_safe(h->out, h->text, seen = site);
    }
}

void weir_head_remarks(const weir_head *h)
{
    const weir_neurons_about *a = weir_neurons_about_of(h->s);
    if (a->interventions && *a->interventions && strcmp(a->interventions, "[]") != 0) {
        fputs("values changed by ", h->out);
        weir_put_safe(h->out, h->text, a->interventions);
        fputc('\n', h->out);
    }
    if (!a->complete)
        fputs("not complete: the run did not reach the end of its text\n", h->out);
}

/* --- JSON */

static void put_counts(weir_jsonw *w, const weir_neurons *s)
{
    weir_neurons_counts c = weir_neurons_counts_of(s);
    weir_jsonw_key_int(w, "docs", c.docs);
    weir_jsonw_key_int(w, "tokens", c.rows);
    weir_jsonw_key_int(w, "counted", c.masked[0]);
    weir_jsonw_key(w, "masked");
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "bos", c.masked[WEIR_MASK_BOS]);
    weir_jsonw_key_int(w, "special", c.masked[WEIR_MASK_SPECIAL]);
    weir_jsonw_key_int(w, "id", c.masked[WEIR_MASK_ID]);
    weir_jsonw_end(w);
}

void weir_head_json_run(weir_jsonw *w, const weir_neurons *s, const char *input)
{
    const weir_neurons_about *a = weir_neurons_about_of(s);
    weir_jsonw_key_cstr(w, "weir", weir_version());
    weir_jsonw_key_cstr(w, "model", a->model);
    weir_jsonw_key_cstr(w, "family", a->family);
    weir_jsonw_key_cstr(w, "fingerprint", a->fingerprint);
    weir_jsonw_key_cstr(w, "tokenizer", a->tokenizer);
    weir_jsonw_key_cstr(w, "input", input);
    weir_jsonw_key(w, "source");
    weir_jsonw_json(w, a->source);
    weir_jsonw_key(w, "interventions");
    weir_jsonw_json(w, a->interventions);
    weir_jsonw_key_int(w, "shard", a->shard);
    weir_jsonw_key_int(w, "shards", a->shards);
    weir_jsonw_key_bool(w, "complete", a->complete);
    put_counts(w, s);
}

void weir_head_json_tables(weir_jsonw *w, const weir_neurons *s)
{
    weir_jsonw_key(w, "tables");
    weir_jsonw_array(w);
    for (int t = 0; t < weir_neurons_n_tables(s); t++) {
        const weir_neurons_table *table = weir_neurons_table_at(s, t);
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "hook", table->hook);
        weir_jsonw_key_cstr(w, "site", table->site);
        weir_jsonw_key_int(w, "layer", table->layer);
        weir_jsonw_key_int(w, "neurons", table->n);
        weir_jsonw_key_int(w, "skipped", weir_neurons_skipped(s, t));
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

/* One file that needs no network: page.html (with page.css, the page-*.js and what tools/page has for all pages)
 * and the data, as a head of JSON and blocks of base64. page-data.js is the data's reader, and says what the blocks
 * hold.
 *
 * Size: the page itself (65 KB). Of each neuron 96 characters for its row, 80 to 110 for its histogram, 12 or 13 for
 * each place, 8 or 9 for each token that its weights name. Of the text about 3 characters for each token that is shown,
 * once. 20,000 neurons with ten places at both ends, of a text of 30,000 tokens: 8.7 MB; with ten tokens at each end of
 * both weights 15.3 MB. The stated size for this many: 16 MiB.
 *
 * Memory: the rows, and the text that is shown.
 */
#include <neurons_page.h>
#include <stdlib.h>

#include "cli/say.h"
#include "html_record.h"
#include "page/page.h"
#include "sections.h"

/* --- the head */

static void put_counts(weir_jsonw *w, const weir_neurons *s)
{
    weir_neurons_counts c = weir_neurons_counts_of(s);
    weir_jsonw_key_int(w, "docs", c.docs);
    weir_jsonw_key_int(w, "tokens", c.rows);
    weir_jsonw_key_int(w, "counted", c.masked[0]);
    weir_jsonw_key_int(w, "masked_bos", c.masked[WEIR_MASK_BOS]);
    weir_jsonw_key_int(w, "masked_special", c.masked[WEIR_MASK_SPECIAL]);
    weir_jsonw_key_int(w, "masked_id", c.masked[WEIR_MASK_ID]);
}

static void put_options(weir_jsonw *w, const weir_view *v)
{
    static const char *const rank[] = {"max", "mean"}, *const dedup[] = {"none", "window", "doc", "text"};
    const weir_neurons_options *o = weir_neurons_options_of(v->s);
    char seed[24]; /* 64 bits: more than a number of JavaScript has */
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
    weir_jsonw_key_int(w, "k", v->k);
    weir_jsonw_key_cstr(w, "rank", rank[o->rank]);
    weir_jsonw_key_cstr(w, "dedup", dedup[o->dedup]);
    weir_jsonw_key_int(w, "dedup_n", o->dedup_n);
    weir_jsonw_key_cstr(w, "seed", seed);
    weir_jsonw_key_int(w, "before", v->before);
    weir_jsonw_key_int(w, "after", v->after);
    weir_jsonw_key_bool(w, "whole", v->whole);
    weir_jsonw_key_bool(w, "clusters", v->clusters && weir_section_kept(o, WEIR_NEURONS_TOP));
    weir_jsonw_key(w, "thresholds");
    weir_jsonw_array(w);
    for (int i = 0; i < o->n_thresholds; i++)
        weir_jsonw_double(w, o->threshold[i]);
    weir_jsonw_end(w);
    weir_jsonw_key(w, "bands");
    weir_jsonw_array(w);
    for (int i = 0; i <= WEIR_NEURONS_BANDS; i++)
        weir_jsonw_double(w, weir_neurons_band_edge(i));
    weir_jsonw_end(w);
    weir_jsonw_key(w, "sections");
    weir_jsonw_array(w);
    for (int section = 0; section < WEIR_SECTIONS; section++)
        if (weir_section_shown(v, section))
            weir_jsonw_cstr(w, weir_section_name(section));
    weir_jsonw_end(w);
}

static void put_tables(weir_jsonw *w, const weir_neurons *s)
{
    weir_jsonw_key(w, "tables");
    weir_jsonw_array(w);
    for (int t = 0; t < weir_neurons_n_tables(s); t++) {
        const weir_neurons_table *table = weir_neurons_table_at(s, t);
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "hook", table->hook);
        weir_jsonw_key_cstr(w, "site", table->site);
        weir_jsonw_key_int(w, "layer", table->layer);
        weir_jsonw_key_int(w, "skipped", weir_neurons_skipped(s, t));
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_head(weir_jsonw *w, const void *ctx)
{
    const weir_view *v = ctx;
    const weir_neurons_about *a = weir_neurons_about_of(v->s);
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "weir", weir_version());
    weir_jsonw_key_cstr(w, "model", a->model);
    weir_jsonw_key_cstr(w, "family", a->family);
    weir_jsonw_key_cstr(w, "fingerprint", a->fingerprint);
    weir_jsonw_key_cstr(w, "tokenizer", a->tokenizer);
    weir_jsonw_key_cstr(w, "input", v->input);
    weir_jsonw_key_cstr(w, "source", a->source);
    weir_jsonw_key_cstr(w, "interventions", a->interventions);
    weir_jsonw_key_int(w, "shard", a->shard);
    weir_jsonw_key_int(w, "shards", a->shards);
    weir_jsonw_key_bool(w, "complete", a->complete);
    weir_jsonw_key_int(w, "neurons", v->n);
    put_counts(w, v->s);
    put_options(w, v);
    put_tables(w, v->s);
    weir_jsonw_end(w);
}

/* --- the data */

/* False: h->err says why, or else memory is out. */
static bool put_data(weir_html *h)
{
    const weir_view *v = h->v;
    for (int64_t i = 0; i < v->n && !h->text.failed; i++)
        weir_html_want(h, &v->shown[i]);
    if (!weir_html_text_gather(&h->text, v) || !weir_page_head(v->out, put_head, v))
        return false;
    weir_page_block(v->out, &h->out, "id=\"tokens\"");
    weir_html_text_tokens(&h->text, v->s, &h->out);
    weir_page_block_end(&h->out);
    weir_page_block(v->out, &h->out, "id=\"stream\"");
    weir_html_text_stream(&h->text, &h->out);
    weir_page_block_end(&h->out);
    weir_page_block(v->out, &h->out, "id=\"stretches\"");
    weir_html_text_stretches(&h->text, &h->out);
    weir_page_block_end(&h->out);
    weir_page_block(v->out, &h->out, "id=\"records\"");
    for (int64_t i = 0; i < v->n; i++)
        if (!weir_html_record(h, &v->shown[i], &h->row[i]))
            return false;
    weir_page_block_end(&h->out);
    weir_page_block(v->out, &h->out, "id=\"rows\"");
    weir_html_rows(h);
    weir_page_block_end(&h->out);
    return true;
}

int weir_view_html(const weir_view *v)
{
    size_t room = (size_t)weir_section_room(weir_neurons_options_of(v->s));
    weir_html h = {.v = v};
    h.row = malloc(sizeof *h.row * (size_t)(v->n + 1));
    h.hit = malloc(sizeof *h.hit * room);
    h.cluster = malloc(sizeof *h.cluster * room);
    bool ok = h.row && h.hit && h.cluster;
    if (ok) {
        const char *const *rest = weir_page_lines(v->out, weir_neurons_page);
        ok = put_data(&h);
        if (ok)
            weir_page_lines(v->out, rest);
    }
    free(h.row);
    free(h.hit);
    free(h.cluster);
    weir_html_text_free(&h.text);
    return ok ? WEIR_EXIT_OK : h.err.code ? weir_cli_fail(v->cli, &h.err) : weir_view_no_memory(v);
}

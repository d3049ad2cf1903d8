#include "told.h"

#include <stdlib.h>
#include <string.h>

#include "numbers.h"

/* The text of ids, to be freed. */
static char *text_of(const weir_tokenizer *tok, const int32_t *id, int64_t n)
{
    size_t size = 0, cap = 0;
    for (int64_t i = 0; i < n; i++)
        cap += weir_tokenizer_bytes(tok, id[i]).n;
    char *text = calloc(cap + 1, 1);
    for (int64_t i = 0; text && i < n; i++) {
        const weir_str s = weir_tokenizer_bytes(tok, id[i]);
        memcpy(text + size, s.p, s.n);
        size += s.n;
    }
    return text;
}

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

weir_status weir_told_ask(weir_told *r, weir_asker *asker, const weir_tokenizer *tok, const char *prompt,
                          const char *subject, const char *target, int64_t tokens, weir_err *err)
{
    char *text = weir_fact_prompt(prompt, subject);
    const weir_question q = {text, target};
    r->id = calloc((size_t)tokens + 1, sizeof *r->id);
    weir_status st = text && r->id ? weir_asker_ask(asker, &q, 1, &r->target, err) : no_memory(err);
    if (st == WEIR_OK)
        st = weir_asker_continue(asker, text, tokens, r->id, &r->made, err);
    if (st == WEIR_OK) {
        r->top = text_of(tok, &r->target.top, 1);
        r->text = text_of(tok, r->id, r->made);
        st = r->top && r->text ? WEIR_OK : no_memory(err);
    }
    free(text);
    return st;
}

void weir_told_free(weir_told *r)
{
    free(r->top);
    free(r->text);
    free(r->id);
    *r = (weir_told){0};
}

/* --- edit.json */

void weir_told_request(weir_jsonw *w, const weir_rome_request *q)
{
    weir_jsonw_key_cstr(w, "prompt", q->prompt);
    weir_jsonw_key_cstr(w, "subject", q->subject);
    weir_jsonw_key_cstr(w, "target", q->target);
}

static void put_statistics(weir_jsonw *w, const weir_editor *e)
{
    weir_jsonw_key(w, "statistics");
    weir_jsonw_array(w);
    for (int i = 0; i < e->n_layers; i++) {
        const weir_editor_moments *m = &e->moments[i];
        const char *slash = m->path ? strrchr(m->path, '/') : NULL;
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "layer", e->layer[i]);
        weir_jsonw_key_cstr(w, "kind", !m->path ? "identity" : m->made ? "text" : "moments");
        if (m->path) {
            weir_jsonw_key_cstr(w, "file", slash ? slash + 1 : m->path);
            weir_jsonw_key_cstr(w, "sha256", m->sha256);
            weir_jsonw_key_int(w, "count", m->count);
        }
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_options(weir_jsonw *w, const weir_editor *e)
{
    const weir_rome_options *o = &e->o;
    weir_jsonw_key(w, "options");
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "steps", o->steps);
    weir_jsonw_key_int(w, "rounds", o->rounds);
    weir_jsonw_key_double(w, "rate", o->rate);
    weir_jsonw_key_double(w, "kl", o->kl);
    weir_jsonw_key_double(w, "decay", o->decay);
    weir_jsonw_key_double(w, "clamp", o->clamp);
    weir_jsonw_key_double(w, "enough", o->enough);
    if (!e->a->identity)
        weir_jsonw_key_double(w, "ridge", e->a->ridge);
    if (o->method == WEIR_ROME_MEMIT || o->method == WEIR_ROME_EMMET)
        weir_jsonw_key_double(w, "weight", o->weight);
    if (o->method == WEIR_ROME_ALPHAEDIT) {
        weir_jsonw_key_double(w, "null_below", o->null_below);
        weir_jsonw_key_double(w, "l2", o->l2);
    }
    weir_jsonw_key_bool(w, "bos", o->bos);
    weir_jsonw_end(w);
}

static void put_prefixes(weir_jsonw *w, const weir_editor *e)
{
    if (!e->a->prefixes.n && !e->a->no_prefixes)
        weir_jsonw_key_int(w, "seed", e->a->seed);
    weir_jsonw_key(w, "prefixes");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < weir_rome_prefixes_n(e->prefixes); i++)
        weir_jsonw_cstr(w, weir_rome_prefix(e->prefixes, i));
    weir_jsonw_end(w);
}

void weir_told_how(weir_jsonw *w, const weir_editor *e)
{
    put_prefixes(w, e);
    put_statistics(w, e);
    put_options(w, e);
    weir_jsonw_key(w, "edits");
    weir_jsonw_array(w);
    weir_edits_write(&e->edits, w);
    weir_jsonw_end(w);
}

void weir_told_write(weir_jsonw *w, const weir_told *r)
{
    weir_jsonw_object(w);
    weir_jsonw_key_double(w, "p", r->target.p);
    weir_jsonw_key_int(w, "rank", r->target.rank);
    weir_jsonw_key_cstr(w, "top", r->top);
    weir_jsonw_key_double(w, "top_p", r->target.top_p);
    weir_jsonw_key_cstr(w, "text", r->text);
    weir_jsonw_end(w);
}

static void put_steps(weir_jsonw *w, const weir_rome_report *r)
{
    weir_jsonw_key(w, "trace");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < r->steps; i++) {
        const weir_rome_step *s = &r->step[i];
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, "loss", s->loss);
        weir_jsonw_key_double(w, "nll", s->nll);
        weir_jsonw_key_double(w, "kl", s->kl);
        weir_jsonw_key_double(w, "decay", s->decay);
        weir_jsonw_key_double(w, "p", s->p);
        weir_jsonw_key_double(w, "delta", s->delta);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_report(weir_jsonw *w, const weir_rome_report *r, const weir_told *before, const weir_told *after)
{
    const weir_rome_numbers numbers = weir_rome_numbers_of(r);
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "subject_at", r->subject_at);
    weir_jsonw_key_bool(w, "subject_shared", r->subject_shared);
    weir_jsonw_key_int(w, "target_tokens", r->target_tokens);
    weir_rome_numbers_write(w, &numbers);
    weir_jsonw_key(w, "before");
    weir_told_write(w, before);
    weir_jsonw_key(w, "after");
    weir_told_write(w, after);
    put_steps(w, r);
    weir_jsonw_end(w);
}

static void put_all(weir_jsonw *w, const weir_editor *e, const weir_told_edit *t)
{
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "format", "weir-edit");
    weir_jsonw_key_int(w, "format_version", 1);
    weir_jsonw_key_cstr(w, "weir_version", weir_version());
    weir_jsonw_key_cstr(w, "method", weir_rome_method_name(e->o.method)); /* weir_edit_open reads it */
    weir_jsonw_key_cstr(w, "model", e->info->name);
    weir_jsonw_key_cstr(w, "fingerprint", e->fingerprint);
    weir_jsonw_key_cstr(w, "tokenizer", weir_tokenizer_fingerprint(e->tok));
    weir_jsonw_key(w, "requests");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < t->n; i++) {
        weir_jsonw_object(w);
        weir_told_request(w, &t->q[i]);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
    weir_told_how(w, e);
    if (t->sweep->n)
        weir_sweep_write(t->sweep, w);
    weir_jsonw_key(w, "reports");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < t->n; i++)
        put_report(w, &t->report[i], &t->before[i], &t->after[i]);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

char *weir_told_json(const weir_editor *e, const weir_told_edit *t)
{
    char *text = NULL;
    size_t size;
    weir_jsonw w;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    weir_jsonw_init(&w, f);
    put_all(&w, e, t);
    return fclose(f) == 0 ? text : (free(text), NULL);
}

/* --- the terminal */

void weir_told_say(FILE *out, const char *title, const weir_told *r)
{
    char *top = strdup(r->top), *text = strdup(r->text);
    if (top && text) {
        weir_make_printable(top);
        weir_make_printable(text);
        fprintf(out, "%-8s p %-8.3g rank %-6lld likeliest \"%s\" (%.3g)\n         ...%s\n", title, r->target.p,
                (long long)r->target.rank, top, r->target.top_p, text);
    }
    free(top);
    free(text);
}

static void print_notes(FILE *out, const weir_rome_report *r)
{
    if (r->subject_at == 0)
        fprintf(out, "note     the subject is the text's first token, whose keys are unlike all others: try it behind "
                     "other words\n");
    if (r->subject_shared)
        fprintf(out, "note     the subject's last token also holds what follows it\n");
}

static void print_one(FILE *out, const weir_told_edit *t)
{
    const weir_rome_report *r = t->report;
    const weir_rome_step *last = &r->step[r->steps - 1];
    const weir_rome_numbers numbers = weir_rome_numbers_of(r);
    weir_told_say(out, "before", t->before);
    weir_told_say(out, "after", t->after);
    fprintf(out, "search   %lld passes, loss %.3g to %.3g, p %.3g to %.3g%s\n", (long long)r->steps, r->step[0].loss,
            last->loss, r->step[0].p, last->p, r->clamped ? ", at the clamp" : "");
    weir_rome_numbers_print(out, &numbers);
    fputc('\n', out);
    if (!t->after->target.greedy)
        fprintf(out, "note     with the edit the model still does not say the target by itself\n");
    print_notes(out, r);
}

/* A line for each request. */
static void print_several(FILE *out, const weir_told_edit *t)
{
    fprintf(out, "%5s %9s %9s %6s %7s %9s  %s\n", "#", "p before", "p after", "rank", "passes", "|Lambda|", "request");
    for (int64_t i = 0; i < t->n; i++) {
        const weir_rome_report *r = &t->report[i];
        char *text = weir_fact_prompt(t->q[i].prompt, t->q[i].subject);
        if (text)
            weir_make_printable(text);
        fprintf(out, "%5lld %9.3g %9.3g %6lld %7lld %9.3g  %s -> %s%s\n", (long long)(i + 1), t->before[i].target.p,
                t->after[i].target.p, (long long)t->after[i].target.rank, (long long)r->steps, r->lambda,
                text ? text : "", t->q[i].target, r->converged ? "" : " (not reached)");
        free(text);
    }
    int64_t said = 0;
    for (int64_t i = 0; i < t->n; i++)
        said += t->after[i].target.greedy;
    fprintf(out, "change   |dW|/|W| %.3g in the layer where it is largest; the model says %lld of %lld targets\n",
            t->report[0].share, (long long)said, (long long)t->n);
}

void weir_told_print(FILE *out, const weir_editor *e, const weir_told_edit *t, const char *dir)
{
    if (t->sweep->n)
        weir_sweep_print(t->sweep, out);
    if (t->n == 1)
        print_one(out, t);
    else
        print_several(out, t);
    fprintf(out, "written  %s (%s, layer", dir, weir_rome_method_name(e->o.method));
    for (int i = 0; i < e->n_layers; i++)
        fprintf(out, "%s%lld", i ? "," : " ", (long long)e->layer[i]);
    fprintf(out, ")\n");
}

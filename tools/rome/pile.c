#include "pile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "told.h"

/* The heap, and what is asked of it. */
typedef struct heap {
    weir_editor *e;
    const weir_pile_options *o;
    weir_asker *base;        /* without any of them */
    weir_edit *all;          /* of the edits so far; NULL: none */
    weir_question *ask;      /* [2 n] of the edits so far: true answer, new one */
    weir_answer *answer;     /* [2 n] */
    int64_t n, record;       /* the last one's record */
    double text;             /* mean -log p of the text before any edit */
    weir_rome_report report; /* of the last edit */
} heap;

/* --- an edit on top */

/* One update out of two of the same matrix; false: out of memory. u and v are the caller's. */
static bool join(weir_update *to, const weir_update *a, const weir_update *b, int64_t in, int64_t out)
{
    const size_t r = (size_t)(a->r + b->r), ra = (size_t)a->r, rb = (size_t)b->r, i = (size_t)in, o = (size_t)out;
    float *u = calloc(r * i, sizeof *u), *v = calloc(r * o, sizeof *v);
    if (!u || !v) {
        free(u);
        free(v);
        return false;
    }
    memcpy(u, a->u, ra * i * sizeof *u);
    memcpy(u + ra * i, b->u, rb * i * sizeof *u);
    memcpy(v, a->v, ra * o * sizeof *v);
    memcpy(v + ra * o, b->v, rb * o * sizeof *v);
    *to = (weir_update){.layer = a->layer, .matrix = a->matrix, .r = a->r + b->r, .u = u, .v = v};
    return true;
}

/* Two edits of the same matrices, in the same order, as one. */
static weir_status put_on_top(heap *h, const weir_edit *more, weir_err *err)
{
    const int64_t n = weir_edit_n(more);
    weir_update *joined = calloc((size_t)n, sizeof *joined);
    bool ok = joined != NULL;
    weir_edit *all = NULL;
    for (int64_t i = 0; ok && i < n; i++) {
        const weir_update *b = weir_edit_update(more, i);
        const weir_update none = {.layer = b->layer, .matrix = b->matrix, .u = b->u, .v = b->v};
        int64_t in, out;
        weir_matrix_shape(h->e->model, b->matrix, &in, &out);
        ok = join(&joined[i], h->all ? weir_edit_update(h->all, i) : &none, b, in, out);
    }
    const weir_status st =
        ok ? weir_edit_new(&all, h->e->model, joined, n, err) : weir_fail(err, WEIR_E_NOMEM, "out of memory");
    for (int64_t i = 0; joined && i < n; i++) {
        free((float *)joined[i].u);
        free((float *)joined[i].v);
    }
    free(joined);
    if (st == WEIR_OK) {
        weir_edit_free(h->all);
        h->all = all;
    }
    return st;
}

/* Has the record both its answers? What cannot be asked cannot be seen to hold. */
static weir_status can_ask(heap *h, const weir_fact *f, weir_err *err)
{
    char *prompt = weir_fact_prompt(f->prompt, f->subject);
    const weir_question q[2] = {{prompt, f->truth}, {prompt, f->target}};
    weir_answer r[2];
    const weir_status st =
        prompt ? weir_asker_ask(h->base, q, 2, r, err) : weir_fail(err, WEIR_E_NOMEM, "out of memory");
    free(prompt);
    return st;
}

/* The model as the editor has it, with the heap: the edits that the next one is made behind. */
static weir_status edit_one(heap *h, const weir_fact *f, weir_err *err)
{
    weir_rome_options o = h->e->o;
    const weir_rome_request q = {f->prompt, f->subject, f->target};
    const weir_edit **edits = calloc((size_t)o.n_edits + 1, sizeof *edits);
    weir_rome *w = NULL;
    weir_edit *more = NULL;
    if (!edits)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    for (int i = 0; i < o.n_edits; i++)
        edits[i] = o.edits[i];
    if (h->all)
        edits[o.n_edits++] = h->all;
    o.edits = edits;
    weir_rome_report_free(&h->report);
    weir_status st = weir_rome_new(&w, h->e->model, h->e->tok, h->e->prefixes, &o, err);
    if (st == WEIR_OK)
        st = weir_rome_make(w, &q, 1, &more, &h->report, err);
    weir_rome_free(w);
    if (st == WEIR_OK)
        st = put_on_top(h, more, err);
    weir_edit_free(more);
    free(edits);
    return st;
}

static bool remember(heap *h, const weir_fact *f)
{
    char *prompt = weir_fact_prompt(f->prompt, f->subject);
    if (!prompt)
        return false;
    h->ask[2 * h->n] = (weir_question){prompt, f->truth};
    h->ask[2 * h->n + 1] = (weir_question){prompt, f->target};
    h->n++;
    return true;
}

/* --- measuring */

static weir_status read_text(heap *h, weir_asker *a, double *nll, weir_err *err)
{
    int64_t tokens;
    return weir_asker_texts(a, h->o->text->text, h->o->text->n, nll, &tokens, err);
}

static weir_status measure(heap *h, weir_pile_row *r, weir_err *err)
{
    weir_asker *a;
    double text = NAN;
    weir_status st = weir_editor_asker(h->e, h->all, &a, err);
    if (st == WEIR_OK)
        st = weir_asker_ask(a, h->ask, 2 * h->n, h->answer, err);
    if (st == WEIR_OK)
        st = read_text(h, a, &text, err);
    weir_asker_free(a);
    WEIR_TRY(st);
    int64_t kept = 0;
    for (int64_t i = 0; i + 1 < h->n; i++)
        kept += h->answer[2 * i + 1].nll < h->answer[2 * i].nll;
    const weir_answer *last = &h->answer[2 * h->n - 2];
    r->kept = h->n > 1 ? (double)kept / (double)(h->n - 1) : (double)NAN;
    r->holds = last[1].nll < last[0].nll;
    r->p = exp(-last[1].nll);
    r->drift = exp(text - h->text) - 1;
    return WEIR_OK;
}

static bool beyond(const heap *h, const weir_pile_row *r)
{
    return 100 * r->drift > h->o->max_drift || 100 * r->kept < h->o->min_kept;
}

/* --- all of them */

/* Is there an edit that no row tells of, whose turn it is? */
static bool is_due(const weir_pile *p, const heap *h, bool last)
{
    const int64_t told = p->n ? p->row[p->n - 1].edits : 0;
    return h->n > told && (last || h->n % h->o->every == 0);
}

static int row(weir_pile *p, heap *h, int (*take)(void *, const weir_pile_row *), void *user)
{
    weir_err err = {0};
    weir_pile_row *r = &p->row[p->n];
    *r = (weir_pile_row){.edits = h->n, .record = h->record, .share = h->report.share, .k_u = h->report.k_u};
    const weir_status st = measure(h, r, &err);
    if (st == WEIR_E_NOMEM)
        return weir_editor_fail(h->e, &err);
    if (st != WEIR_OK) { /* it was asked the same before any edit: what it answers now is no number */
        r->holds = false;
        r->kept = r->drift = r->p = NAN;
        weir_cli_note(h->e->cli, "behind record %lld: %s", (long long)h->record, err.msg);
    }
    r->broke = p->broke < 0 && (st != WEIR_OK || beyond(h, r));
    if (r->broke)
        p->broke = p->n;
    p->n++;
    return take(user, r);
}

static void leave_out(weir_pile *p, const heap *h, int64_t record, const weir_err *err)
{
    if (!p->failed++) {
        p->why_record = record;
        snprintf(p->why, sizeof p->why, "%.199s", err->msg);
    }
    weir_cli_note(h->e->cli, "record %lld is left out: %s", (long long)record, err->msg);
}

static int pile_up(weir_pile *p, heap *h, int (*take)(void *, const weir_pile_row *), void *user)
{
    const weir_pile_options *o = h->o;
    weir_progress bar;
    int code = WEIR_EXIT_OK;
    weir_progress_start(&bar, h->e->cli);
    for (int64_t i = o->first; i < o->end && code == WEIR_EXIT_OK && !weir_signals_seen(); i++) {
        weir_err err = {0};
        const weir_fact *f = weir_fact_list_at(o->facts, i);
        weir_status st = can_ask(h, f, &err);
        if (st == WEIR_OK)
            st = edit_one(h, f, &err);
        if (st == WEIR_E_NOMEM) {
            code = weir_editor_fail(h->e, &err);
        } else if (st == WEIR_OK && !remember(h, f)) {
            code = weir_cli_error(h->e->cli, "out of memory");
        } else if (st != WEIR_OK) {
            leave_out(p, h, i, &err);
        } else {
            h->record = i;
        }
        if (code == WEIR_EXIT_OK && is_due(p, h, i + 1 == o->end))
            code = row(p, h, take, user);
        weir_progress_update(&bar, (double)(i + 1 - o->first) / (double)(o->end - o->first), -1);
    }
    weir_progress_stop(&bar, h->e->cli);
    p->stopped = code == WEIR_EXIT_OK && weir_signals_seen();
    return p->stopped ? WEIR_EXIT_FAILED : code;
}

static weir_status open_heap(heap *h, weir_err *err)
{
    const size_t n = 2 * (size_t)(h->o->end - h->o->first);
    h->ask = calloc(n, sizeof *h->ask);
    h->answer = calloc(n, sizeof *h->answer);
    if (!h->ask || !h->answer)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    WEIR_TRY(weir_editor_asker(h->e, NULL, &h->base, err));
    return read_text(h, h->base, &h->text, err);
}

int weir_pile_run(weir_pile *p, weir_editor *e, const weir_pile_options *o,
                  int (*take)(void *user, const weir_pile_row *r), void *user)
{
    weir_err err = {0};
    heap h = {.e = e, .o = o};
    *p = (weir_pile){.broke = -1, .row = calloc((size_t)(o->end - o->first), sizeof *p->row)};
    int code = WEIR_EXIT_OK;
    if (!p->row)
        code = weir_cli_error(e->cli, "out of memory");
    else if (open_heap(&h, &err) != WEIR_OK)
        code = weir_editor_fail(e, &err);
    else
        code = pile_up(p, &h, take, user);
    for (int64_t i = 0; i < h.n; i++)
        free((char *)h.ask[2 * i].prompt);
    free(h.ask);
    free(h.answer);
    weir_asker_free(h.base);
    weir_edit_free(h.all);
    weir_rome_report_free(&h.report);
    return code;
}

void weir_pile_free(weir_pile *p)
{
    free(p->row);
    *p = (weir_pile){0};
}

/* --- telling */

void weir_pile_write(weir_jsonw *w, const weir_fact_list *facts, const weir_pile_row *r)
{
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "edits", r->edits);
    weir_jsonw_key_int(w, "record", r->record);
    weir_jsonw_key_int(w, "case_id", weir_fact_list_at(facts, r->record)->id);
    weir_jsonw_key_bool(w, "holds", r->holds);
    weir_jsonw_key_double(w, "kept", r->kept);
    weir_jsonw_key_double(w, "drift", r->drift);
    weir_jsonw_key_double(w, "p", r->p);
    weir_jsonw_key_double(w, "share", r->share);
    weir_jsonw_key_double(w, "k_u", r->k_u);
    weir_jsonw_key_bool(w, "broke", r->broke);
    weir_jsonw_end(w);
}

void weir_pile_json(const weir_pile *p, const weir_pile_options *o, const weir_editor *e)
{
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "model", e->info->name);
    weir_jsonw_key_cstr(&w, "method", weir_rome_method_name(e->o.method));
    weir_jsonw_key_int(&w, "failed", p->failed);
    weir_jsonw_key(&w, "broke");
    p->broke < 0 ? weir_jsonw_null(&w) : weir_jsonw_int(&w, p->row[p->broke].record);
    weir_jsonw_key(&w, "rows");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < p->n; i++)
        weir_pile_write(&w, o->facts, &p->row[i]);
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    putchar('\n');
}

static void print_percent(double x, char end, FILE *out)
{
    if (isnan(x))
        fprintf(out, "%8s%c", "-", end);
    else
        fprintf(out, "%8.2f%c", 100 * x, end);
}

static void print_p(double p, char end, FILE *out)
{
    if (isnan(p))
        fprintf(out, "%9s%c", "-", end);
    else
        fprintf(out, "%9.3g%c", p, end);
}

static void print_breaker(const weir_pile *p, const weir_pile_options *o, FILE *out)
{
    const weir_pile_row *r = &p->row[p->broke];
    const weir_fact *f = weir_fact_list_at(o->facts, r->record);
    char text[300];
    snprintf(text, sizeof text, "%s, %s -> %s", f->prompt, f->subject, f->target);
    weir_make_printable(text);
    fprintf(out, "\nthe model broke %s edit %lld: record %lld (%s)", o->every > 1 ? "at or before" : "at",
            (long long)r->edits, (long long)r->record, text);
    if (!isnan(r->drift))
        fprintf(out, "; perplexity +%.1f %%", 100 * r->drift);
    if (!isnan(r->kept))
        fprintf(out, "; %.0f %% of the edits before it hold", 100 * r->kept);
    if (isnan(r->p))
        fprintf(out, "; what it answers is not finite");
    fputc('\n', out);
}

void weir_pile_print(const weir_pile *p, const weir_pile_options *o, char sep, FILE *out)
{
    fprintf(out, "%6s%c%7s%c%6s%c%8s%c%8s%c%9s%c%9s%c%9s\n", "edits", sep, "record", sep, "holds", sep, "kept%", sep,
            "drift%", sep, "p", sep, "|dW|/|W|", sep, "k.u");
    for (int64_t i = 0; i < p->n; i++) {
        const weir_pile_row *r = &p->row[i];
        fprintf(out, "%6lld%c%7lld%c%6s%c", (long long)r->edits, sep, (long long)r->record, sep,
                r->holds ? "yes" : "no", sep);
        print_percent(r->kept, sep, out);
        print_percent(r->drift, sep, out);
        print_p(r->p, sep, out);
        fprintf(out, "%9.3g%c%9.3g\n", r->share, sep, r->k_u);
    }
    if (sep == '\t')
        return;
    if (p->broke >= 0)
        print_breaker(p, o, out);
    else
        fprintf(out, "\nno edit broke the model: %g %% and more of the edits before each held, %s\n", o->min_kept,
                o->text->n ? "and the text's perplexity stayed within its bound"
                           : "but no --text says what became of other things");
}

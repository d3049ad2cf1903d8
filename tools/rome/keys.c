#include "keys.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"

enum { ROWS = 512 };

/* One run: sequences are packed until a pass is full. */
typedef struct counting {
    const weir_editor *e;
    weir_moments **m;
    weir_run *run;
    int32_t bos; /* -1: none */
    int64_t max_rows;
    int32_t *id;   /* [max_rows] */
    weir_seq *seq; /* [max_rows] */
    int64_t n_rows, n_seq;
    weir_tokens t;
    weir_err err;
} counting;

static int64_t place(const counting *c, int64_t layer)
{
    int64_t i = 0;
    while (i < c->e->n_layers && c->e->layer[i] != layer)
        i++;
    return i;
}

static weir_want wants(void *self, const weir_point *p)
{
    const counting *c = self;
    return p->site == WEIR_SITE_MLP_POST && place(c, p->layer) < c->e->n_layers ? WEIR_READ : WEIR_NONE;
}

static weir_status heard(void *self, const weir_value *v, weir_err *err)
{
    counting *c = self;
    return weir_moments_add(c->m[place(c, v->point->layer)], v->data, v->rows->n, v->rows->threads, err);
}

static const weir_hook_class keys_class = {.struct_size = sizeof keys_class,
                                           .abi = WEIR_HOOK_ABI,
                                           .name = "moments",
                                           .help = "second moments of keys",
                                           .args = "",
                                           .wants = wants,
                                           .on_value = heard};

static weir_status open_run(counting *c)
{
    const int64_t ctx = c->e->info->ctx;
    const weir_run_args args = {.kernel = c->e->a->kernel};
    weir_run_options o;
    weir_run_options_init(&o);
    if (c->bos >= 0 && ctx < 2)
        return weir_fail(&c->err, WEIR_E_ARG, "BOS fills the model's context of %lld: --bos no leaves room for text",
                         (long long)ctx);
    c->max_rows = ctx < ROWS ? ROWS : ctx;
    o.max_rows = c->max_rows, o.threads = (int)c->e->a->threads, o.memory = c->e->a->memory;
    o.kernel = weir_kernel_name(&args);
    o.edits = (const weir_edit *const *)c->e->edits.edit, o.n_edits = c->e->edits.n;
    c->id = calloc((size_t)c->max_rows, sizeof *c->id);
    c->seq = calloc((size_t)c->max_rows, sizeof *c->seq);
    if (!c->id || !c->seq)
        return weir_fail(&c->err, WEIR_E_NOMEM, "out of memory");
    for (int i = 0; i < c->e->n_layers; i++)
        WEIR_TRY(weir_moments_new(&c->m[i], c->e->info->F, &c->err));
    WEIR_TRY(weir_run_new(&c->run, c->e->model, &o, &c->err));
    WEIR_TRY(weir_run_hook_object(c->run, &keys_class, c, &c->err));
    return weir_run_prepare(c->run, 0, &c->err);
}

static weir_status run_pass(counting *c)
{
    if (c->n_seq)
        WEIR_TRY(weir_run_forward(c->run, c->seq, c->n_seq, 0, &c->err));
    c->n_rows = c->n_seq = 0;
    return WEIR_OK;
}

/* A text in windows of the context. */
static weir_status count_text(counting *c, weir_str text)
{
    const int64_t bos = c->bos >= 0, window = c->e->info->ctx - bos;
    WEIR_TRY(weir_tokenizer_encode(c->e->tok, text.p, text.n, &c->t, &c->err));
    for (int64_t at = 0; at < c->t.n; at += window) {
        const int64_t n = c->t.n - at < window ? c->t.n - at : window;
        if (c->n_rows + bos + n > c->max_rows)
            WEIR_TRY(run_pass(c));
        int32_t *id = c->id + c->n_rows;
        id[0] = c->bos;
        memcpy(id + bos, c->t.id + at, (size_t)n * sizeof *id);
        c->seq[c->n_seq++] = (weir_seq){.ids = id, .n = bos + n, .slot = -1};
        c->n_rows += bos + n;
    }
    return WEIR_OK;
}

int weir_rome_keys(const weir_editor *e, const weir_rome_texts *t, bool bos, int64_t enough, weir_moments **m)
{
    counting c = {.e = e, .m = m, .bos = bos ? weir_tokenizer_bos(e->tok) : -1};
    weir_status st = open_run(&c);
    for (int64_t i = 0; st == WEIR_OK && i < t->n && (!enough || weir_moments_count(m[0]) < enough); i++)
        st = count_text(&c, t->text[i]);
    if (st == WEIR_OK)
        st = run_pass(&c);
    if (st == WEIR_OK && weir_moments_count(m[0]) == 0)
        st = weir_fail(&c.err, WEIR_E_ARG, "%s holds no text to count keys of", t->name);
    for (int i = 0; st != WEIR_OK && i < e->n_layers; i++) {
        weir_moments_free(m[i]);
        m[i] = NULL;
    }
    weir_run_free(c.run);
    weir_tokens_free(&c.t);
    free(c.id);
    free(c.seq);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_editor_fail(e, &c.err);
}

/* The prompts run twice, without the edit and with it. One side's rows are kept whole until both are known. */
#include "moved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"

enum { HELD = 128 << 20 /* bytes of one side's rows at most; one row is always looked at */ };

typedef struct taking {
    weir_moved *m;
    weir_editor *e;
    const weir_edit *edit;
    int64_t C;
    const weir_point **point;   /* [lines] */
    float *x[WEIR_MOVED_SIDES]; /* [lines, rows, C] */
    int side;                   /* and prompt: which run this is */
    const weir_moved_prompt *prompt;
} taking;

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

/* --- which rows */

/* The tokens of the true answer, or of what stands for it: *id [*n], to be freed. */
static weir_status true_tokens(const taking *t, const weir_asked *q, int32_t **id, int64_t *n, weir_err *err)
{
    const weir_told *was = &q->before.told;
    if (q->other)
        return weir_answer_tokens(t->e->tok, q->prompt, q->other, id, n, err);
    *n = was->made ? was->made : 1;
    *id = malloc((size_t)*n * sizeof **id);
    if (!*id)
        return no_memory(err);
    memcpy(*id, was->made ? was->id : &was->target.top, (size_t)*n * sizeof **id);
    return WEIR_OK;
}

/* Looks at the two answers, new [n], behind a prompt [prompt]. One that begins with the whole other one is never told
 * from it: then they are compared by their first tokens. */
static weir_status part(const taking *t, weir_moved_prompt *p, const int32_t *prompt, int64_t prompts,
                        const int32_t *new, int64_t n, weir_err *err)
{
    const bool bos = t->e->o.bos && weir_tokenizer_bos(t->e->tok) >= 0;
    int32_t *other = NULL;
    int64_t others;
    WEIR_TRY(true_tokens(t, p->asked, &other, &others, err));
    while (p->shared < n && p->shared < others && new[p->shared] == other[p->shared])
        p->shared++;
    if (p->shared == n || p->shared == others)
        p->shared = 0;
    p->token[WEIR_MOVED_NEW] = new[p->shared];
    p->token[WEIR_MOVED_TRUE] = other[p->shared];
    free(other);
    p->ids = bos + prompts + p->shared;
    p->id = calloc((size_t)p->ids + 1, sizeof *p->id);
    if (!p->id)
        return no_memory(err);
    p->id[0] = weir_tokenizer_bos(t->e->tok);
    memcpy(p->id + bos, prompt, (size_t)prompts * sizeof *p->id);
    memcpy(p->id + bos + prompts, new, (size_t)p->shared * sizeof *p->id);
    return WEIR_OK;
}

/* Prompt and new answer are cut into tokens together, as they were when they were asked. */
static weir_status encode(const taking *t, weir_moved_prompt *p, weir_err *err)
{
    const char *prompt = p->asked->prompt, *answer = p->asked->answer + strspn(p->asked->answer, " ");
    size_t n = strlen(prompt);
    int64_t first = 0;
    weir_tokens all = {0};
    while (n && (prompt[n - 1] == ' ' || prompt[n - 1] == '\n'))
        n--;
    char *text = malloc(n + strlen(answer) + 2);
    if (!text)
        return no_memory(err);
    const int size = sprintf(text, "%.*s%s%s", (int)n, prompt, n ? " " : "", answer);
    weir_status st = weir_tokenizer_encode(t->e->tok, text, (size_t)size, &all, err);
    free(text);
    while (st == WEIR_OK && first < all.n && all.byte_off[first] < (int64_t)n)
        first++;
    if (st == WEIR_OK)
        st = part(t, p, all.id, first, all.id + first, all.n - first, err);
    weir_tokens_free(&all);
    return st;
}

static weir_status choose(taking *t, const weir_asked_list *asked, weir_err *err)
{
    weir_moved *m = t->m;
    const int64_t fits = HELD / (m->lines * t->C * (int64_t)sizeof(float)), room = fits > 1 ? fits : 1;
    for (int64_t i = 0; i < asked->n && m->n < WEIR_MOVED_REQUESTS && m->rows < room; i++) {
        const weir_asked *q = &asked->v[i];
        if (q->kind != WEIR_ASKED_REQUEST)
            continue;
        weir_moved_prompt *p = &m->prompt[m->n++];
        *p = (weir_moved_prompt){.asked = q, .start = m->rows};
        WEIR_TRY(encode(t, p, err));
        p->count = p->ids < WEIR_MOVED_POSITIONS ? p->ids : WEIR_MOVED_POSITIONS;
        if (p->count > room - m->rows)
            p->count = room - m->rows;
        m->rows += p->count;
    }
    return WEIR_OK;
}

static bool make_room(taking *t)
{
    weir_moved *m = t->m;
    const size_t rows = (size_t)(m->lines * m->rows) + 1, cells = (size_t)(m->lines * m->n * WEIR_MOVED_SIDES) + 1;
    m->norm = calloc(rows, WEIR_MOVED_SIDES * sizeof *m->norm);
    m->difference = calloc(rows, sizeof *m->difference);
    m->top = calloc(cells, sizeof *m->top);
    m->top_logprob = calloc(cells, sizeof *m->top_logprob);
    bool ok = m->norm && m->difference && m->top && m->top_logprob;
    for (int i = 0; i < WEIR_MOVED_ANSWERS; i++)
        ok = (m->logprob[i] = calloc(cells, sizeof **m->logprob)) && ok;
    for (int i = 0; i < WEIR_MOVED_SIDES; i++)
        ok = (t->x[i] = calloc(rows, (size_t)t->C * sizeof *t->x[i])) && ok;
    return ok;
}

/* The stream before block 0 and behind each. */
static bool find_points(taking *t)
{
    const weir_point *p;
    const int64_t n = weir_model_points(t->e->model, &p);
    t->m->lines = t->e->info->L + 1;
    t->point = calloc((size_t)t->m->lines, sizeof *t->point);
    for (int64_t i = 0; t->point && i < n; i++)
        if (p[i].site == WEIR_SITE_RESID_POST)
            t->point[p[i].layer + 1] = &p[i];
        else if (p[i].site == WEIR_SITE_RESID_PRE && p[i].layer == 0)
            t->point[0] = &p[i];
    return t->point;
}

/* --- the hook */

static int64_t line_of(const taking *t, const weir_point *p)
{
    int64_t l = t->m->lines - 1;
    while (l >= 0 && t->point[l] != p)
        l--;
    return l;
}

static weir_want wants(void *self, const weir_point *p)
{
    return line_of(self, p) < 0 ? WEIR_NONE : WEIR_READ;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    const taking *t = self;
    const weir_moved_prompt *p = t->prompt;
    (void)err;
    memcpy(t->x[t->side] + (line_of(t, v->point) * t->m->rows + p->start) * t->C, v->data + (p->ids - p->count) * t->C,
           (size_t)(p->count * t->C) * sizeof *v->data);
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    (void)self, (void)m, (void)args;
    return weir_fail(err, WEIR_E_ARG, "the hook of rome verify is attached by the tool alone");
}

static const weir_hook_class moved_class = {.struct_size = sizeof(weir_hook_class),
                                            .abi = WEIR_HOOK_ABI,
                                            .name = "rome-verify",
                                            .help = "the stream behind an edit's prompts",
                                            .args = "",
                                            .create = create,
                                            .wants = wants,
                                            .on_value = on_value};

/* --- running */

static weir_status run_prompts(taking *t, weir_run *run, weir_err *err)
{
    WEIR_TRY(weir_run_hook_object(run, &moved_class, t, err));
    for (int64_t i = 0; i < t->m->n; i++) {
        t->prompt = &t->m->prompt[i];
        const weir_seq s = {.ids = t->prompt->id, .n = t->prompt->ids, .slot = -1};
        WEIR_TRY(weir_run_forward(run, &s, 1, 0, err));
    }
    return WEIR_OK;
}

static weir_status run_side(taking *t, int side, weir_err *err)
{
    const weir_edits *under = &t->e->edits;
    const int n = under->n + (side == WEIR_MOVED_AFTER);
    const weir_edit **stack = calloc((size_t)n + 1, sizeof *stack);
    weir_run *run = NULL;
    weir_run_options o;
    if (!stack)
        return no_memory(err);
    for (int i = 0; i < n; i++)
        stack[i] = i < under->n ? under->edit[i] : t->edit;
    t->side = side;
    weir_run_options_init(&o);
    o.threads = t->e->o.threads, o.kernel = t->e->o.kernel, o.memory = t->e->o.memory;
    o.edits = stack, o.n_edits = n;
    o.max_rows = 1;
    for (int64_t i = 0; i < t->m->n; i++)
        o.max_rows = t->m->prompt[i].ids > o.max_rows ? t->m->prompt[i].ids : o.max_rows;
    o.max_len = o.max_rows;
    weir_status st = weir_run_new(&run, t->e->model, &o, err);
    if (st == WEIR_OK)
        st = run_prompts(t, run, err);
    weir_run_free(run);
    free(stack);
    return st;
}

/* --- what it comes to */

static void measure_rows(const taking *t)
{
    const weir_moved *m = t->m;
    for (int64_t i = 0; i < m->lines * m->rows; i++) {
        const float *a = t->x[WEIR_MOVED_BEFORE] + i * t->C, *b = t->x[WEIR_MOVED_AFTER] + i * t->C;
        double before = 0, after = 0, between = 0;
        for (int64_t c = 0; c < t->C; c++) {
            const double d = (double)b[c] - (double)a[c];
            before += (double)a[c] * (double)a[c];
            after += (double)b[c] * (double)b[c];
            between += d * d;
        }
        m->norm[i * WEIR_MOVED_SIDES + WEIR_MOVED_BEFORE] = sqrt(before);
        m->norm[i * WEIR_MOVED_SIDES + WEIR_MOVED_AFTER] = sqrt(after);
        m->difference[i] = sqrt(between);
    }
}

/* Room for the lens: rows of the last positions, and what is read of them. */
typedef struct reading {
    float *x; /* [lines, n, C] */
    weir_lens_row *row;
    int32_t *target; /* [n, 2] */
    float *logprob;  /* [lines, n, 2] */
    int32_t *top;    /* [lines, n], these two */
    float *top_logprob;
} reading;

static bool reading_open(reading *r, const taking *t)
{
    const weir_moved *m = t->m;
    const size_t cells = (size_t)(m->lines * m->n);
    *r = (reading){.x = calloc(cells, (size_t)t->C * sizeof *r->x),
                   .row = calloc((size_t)m->lines, sizeof *r->row),
                   .target = calloc((size_t)m->n, WEIR_MOVED_ANSWERS * sizeof *r->target),
                   .logprob = calloc(cells, WEIR_MOVED_ANSWERS * sizeof *r->logprob),
                   .top = calloc(cells, sizeof *r->top),
                   .top_logprob = calloc(cells, sizeof *r->top_logprob)};
    if (!r->x || !r->row || !r->target || !r->logprob || !r->top || !r->top_logprob)
        return false;
    for (int64_t l = 0; l < m->lines; l++)
        r->row[l] = (weir_lens_row){.x = r->x + l * m->n * t->C, .prev = -1};
    for (int64_t i = 0; i < m->n; i++)
        memcpy(r->target + i * WEIR_MOVED_ANSWERS, m->prompt[i].token, sizeof m->prompt[i].token);
    return true;
}

static void reading_close(reading *r)
{
    void *const own[] = {r->x, r->row, r->target, r->logprob, r->top, r->top_logprob};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

static weir_status read_side(const taking *t, weir_lens *lens, reading *r, int side, weir_err *err)
{
    const weir_moved *m = t->m;
    const weir_lens_what what = {.row = r->row,
                                 .n_rows = (int)m->lines,
                                 .n = m->n,
                                 .target = r->target,
                                 .n_targets = WEIR_MOVED_ANSWERS,
                                 .k = 1};
    const weir_lens_out out = {.logprob = r->logprob, .top_id = r->top, .top_logprob = r->top_logprob};
    for (int64_t l = 0; l < m->lines; l++)
        for (int64_t i = 0; i < m->n; i++) {
            const int64_t last = m->prompt[i].start + m->prompt[i].count - 1;
            memcpy(r->x + (l * m->n + i) * t->C, t->x[side] + (l * m->rows + last) * t->C, (size_t)t->C * sizeof *r->x);
        }
    WEIR_TRY(weir_lens_measure(lens, &what, &out, err));
    for (int64_t i = 0; i < m->lines * m->n; i++) {
        const int64_t at = i * WEIR_MOVED_SIDES + side;
        for (int a = 0; a < WEIR_MOVED_ANSWERS; a++)
            m->logprob[a][at] = r->logprob[i * WEIR_MOVED_ANSWERS + a];
        m->top[at] = r->top[i];
        m->top_logprob[at] = r->top_logprob[i];
    }
    return WEIR_OK;
}

static weir_status read_lens(const taking *t, weir_err *err)
{
    weir_lens *lens = NULL;
    reading r;
    weir_status st = reading_open(&r, t) ? WEIR_OK : no_memory(err);
    if (st == WEIR_OK)
        st = weir_lens_new(&lens, t->e->model, t->e->o.kernel, t->e->o.threads, err);
    for (int side = 0; side < WEIR_MOVED_SIDES && st == WEIR_OK; side++)
        st = read_side(t, lens, &r, side, err);
    weir_lens_free(lens);
    reading_close(&r);
    return st;
}

static weir_status take(taking *t, const weir_asked_list *asked, weir_err *err)
{
    if (!find_points(t))
        return no_memory(err);
    WEIR_TRY(choose(t, asked, err));
    if (!make_room(t))
        return no_memory(err);
    for (int side = 0; side < WEIR_MOVED_SIDES; side++)
        WEIR_TRY(run_side(t, side, err));
    measure_rows(t);
    return read_lens(t, err);
}

int weir_moved_take(weir_moved *m, weir_editor *e, const weir_edit *edit, const weir_asked_list *asked)
{
    weir_err err = {0};
    *m = (weir_moved){0};
    taking t = {.m = m, .e = e, .edit = edit, .C = e->info->C};
    const weir_status st = take(&t, asked, &err);
    free(t.point);
    for (int i = 0; i < WEIR_MOVED_SIDES; i++)
        free(t.x[i]);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_editor_fail(e, &err);
}

void weir_moved_free(weir_moved *m)
{
    for (int64_t i = 0; i < m->n; i++)
        free(m->prompt[i].id);
    for (int i = 0; i < WEIR_MOVED_ANSWERS; i++)
        free(m->logprob[i]);
    void *const own[] = {m->norm, m->difference, m->top, m->top_logprob};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    *m = (weir_moved){0};
}

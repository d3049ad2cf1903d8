/* The run of a request's rows.
 *
 *                 tokens before the subject's last one | that one and those behind it: the suffix
 *     layers > l  once: keys and values in slots       | again and again, with delta
 *     layers <= l once: keys and values in slots       | once
 *
 * Nothing before the subject or below the layer depends on delta, so that its search pays for the rest alone. The
 * logits are made where the loss looks and nowhere else. */
#include <string.h>

#include "../kernels/backward.h"
#include "rome.h"

enum { ROWS_STEP = 64, LEN_STEP = 16 }; /* runs are made a little larger than asked, so that the next request fits */

struct weir_rome_pass {
    const weir_model *model;
    const weir_spec *spec;
    const weir_kern *kern;
    weir_rome_options o;
    int64_t layer;
    bool residual; /* delta is added to the block's output */
    /* the run, and what it has room for */
    weir_run *run;
    weir_grad *grad;
    int64_t max_rows, max_len, slots;
    bool gradients;
    bool listening; /* the capture copies what it hears */
    weir_rome_seen seen;
    float *scale;         /* [slots] of the norm behind the values */
    float *moved, *out;   /* [slots,C] value + delta, and what the norm behind it makes of it */
    float *d;             /* [max_rows,C] gradient of the stream */
    float *d_in, *d_out;  /* [slots,C] of the norm's two sides, at the subjects */
    weir_seq *seq;        /* [slots] */
    weir_loss_term *term; /* [terms] */
    double *value;        /* [terms] */
    int64_t terms;
    const weir_rome_rows *rows;
};

static bool normed(const weir_rome_pass *p)
{
    return p->spec->post_norms && !p->residual;
}

/* --- the capture: a hook of the run */

static weir_want capture_wants(void *self, const weir_point *at)
{
    const weir_rome_pass *p = self;
    if (at->layer != p->layer)
        return WEIR_NONE;
    switch (at->site) {
    case WEIR_SITE_MLP_POST:
    case WEIR_SITE_RESID_POST:
        return WEIR_READ;
    case WEIR_SITE_MLP_OUT:
        return p->spec->post_norms ? WEIR_NONE : WEIR_READ;
    case WEIR_SITE_RESID_MID:
    case WEIR_SITE_LN2_POST_SCALE:
    case WEIR_SITE_LN2_POST_NORM:
        return p->spec->post_norms ? WEIR_READ : WEIR_NONE;
    default:
        return WEIR_NONE;
    }
}

/* The subjects' rows of v. */
static void take(const weir_rome_rows *r, const weir_value *v, float *dst)
{
    for (int64_t i = 0; i < r->n; i++)
        memcpy(dst + i * v->width, v->data + r->row[i].at * v->width, (size_t)v->width * sizeof *dst);
}

/* What went into a norm that has no hook before it: an RMS norm's input is its scale times what it normalized. */
static void take_input(const weir_rome_pass *p, const weir_value *v, float *dst)
{
    take(p->rows, v, dst);
    for (int64_t i = 0; i < p->rows->n; i++)
        for (int64_t c = 0; c < v->width; c++)
            dst[i * v->width + c] *= p->scale[i];
}

static weir_status capture_value(void *self, const weir_value *v, weir_err *err)
{
    weir_rome_pass *p = self;
    (void)err;
    if (!p->listening)
        return WEIR_OK;
    switch (v->point->site) {
    case WEIR_SITE_MLP_POST:
        take(p->rows, v, p->seen.key);
        break;
    case WEIR_SITE_MLP_OUT:
        take(p->rows, v, p->seen.value);
        break;
    case WEIR_SITE_LN2_POST_SCALE:
        take(p->rows, v, p->scale);
        break;
    case WEIR_SITE_LN2_POST_NORM:
        take_input(p, v, p->seen.value);
        break;
    case WEIR_SITE_RESID_MID:
        take(p->rows, v, p->seen.mid);
        break;
    default: /* the stream behind the layer */
        memcpy(p->seen.post, v->data, (size_t)(v->rows->n * v->width) * sizeof(float));
    }
    return WEIR_OK;
}

static const weir_hook_class capture = {.struct_size = sizeof capture,
                                        .abi = WEIR_HOOK_ABI,
                                        .name = "rome",
                                        .help = "keys and values of an edit",
                                        .args = "",
                                        .wants = capture_wants,
                                        .on_value = capture_value};

/* --- making */

weir_status weir_rome_pass_new(weir_rome_pass **out, const weir_model *m, const weir_rome_options *o, int64_t layer,
                               bool residual, weir_err *err)
{
    const weir_spec *s = weir_model_spec(m);
    *out = NULL;
    if (s->post_norms && residual)
        return weir_fail(err, WEIR_E_UNSUPPORTED,
                         "%s: this model has a norm behind its MLP, so that a change of the stream is no linear change "
                         "of a value: use r-rome",
                         weir_rome_method_name(o->method));
    if (s->post_norms && !s->rms)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "rome needs RMS norms where a norm stands behind the MLP");
    weir_rome_pass *p = weir_calloc(1, sizeof *p);
    if (!p)
        return weir_nomem(err, "the passes of an edit");
    *p = (weir_rome_pass){.model = m, .spec = s, .o = *o, .layer = layer, .residual = residual};
    const weir_status st = weir_kern_pick(&p->kern, o->kernel, err);
    if (st != WEIR_OK) {
        weir_free(p);
        return st;
    }
    *out = p;
    return WEIR_OK;
}

static void release(weir_rome_pass *p)
{
    weir_grad_free(p->grad);
    weir_run_free(p->run);
    p->grad = NULL, p->run = NULL;
    float *const floats[] = {p->seen.key, p->seen.value, p->seen.mid, p->seen.post, p->scale,
                             p->moved,    p->out,        p->d,        p->d_in,      p->d_out};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        weir_free(floats[i]);
    weir_free(p->seq);
    weir_free(p->term);
    weir_free(p->value);
    p->seen = (weir_rome_seen){0};
    p->scale = p->moved = p->out = p->d = p->d_in = p->d_out = NULL;
    p->seq = NULL, p->term = NULL, p->value = NULL;
    p->max_rows = p->max_len = p->slots = p->terms = 0;
}

void weir_rome_pass_free(weir_rome_pass *p)
{
    if (!p)
        return;
    release(p);
    weir_free(p);
}

int64_t weir_rome_pass_width(const weir_rome_pass *p)
{
    return p->spec->C;
}

int64_t weir_rome_pass_vocabulary(const weir_rome_pass *p)
{
    return p->spec->V;
}

static bool allocate(weir_rome_pass *p)
{
    const size_t c = (size_t)p->spec->C, n = (size_t)p->slots, t = (size_t)p->max_rows;
    struct {
        float **at;
        size_t rows, width;
    } const want[] = {{&p->seen.key, n, (size_t)p->spec->F},
                      {&p->seen.value, n, c},
                      {&p->seen.mid, n, c},
                      {&p->seen.post, t, c},
                      {&p->scale, n, 1},
                      {&p->moved, n, c},
                      {&p->out, n, c},
                      {&p->d, t, c},
                      {&p->d_in, n, c},
                      {&p->d_out, n, c}};
    bool ok = true;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ok = (*want[i].at = weir_calloc(want[i].rows, want[i].width * sizeof(float))) && ok;
    p->seq = weir_calloc(n, sizeof *p->seq);
    p->term = weir_calloc((size_t)p->terms, sizeof *p->term);
    p->value = weir_calloc((size_t)p->terms, sizeof *p->value);
    return ok && p->seq && p->term && p->value;
}

static weir_status make_run(weir_rome_pass *p, weir_err *err)
{
    weir_run_options o;
    weir_run_options_init(&o);
    o.threads = p->o.threads, o.kernel = p->o.kernel, o.memory = p->o.memory;
    o.max_rows = p->max_rows, o.max_len = p->max_len, o.slots = (int)p->slots;
    o.edits = p->o.edits, o.n_edits = p->o.n_edits;
    o.backward = p->gradients;
    WEIR_TRY(weir_run_new(&p->run, p->model, &o, err));
    WEIR_TRY(weir_run_hook_object(p->run, &capture, p, err));
    if (!p->gradients)
        return WEIR_OK;
    const weir_point *points, *behind = NULL;
    for (int64_t i = weir_model_points(p->model, &points) - 1; i >= 0 && !behind; i--)
        if (points[i].site == WEIR_SITE_RESID_POST && points[i].layer == p->layer)
            behind = &points[i];
    WEIR_TRY(weir_grad_new(&p->grad, p->run, NULL, err));
    return weir_grad_to(p->grad, behind, p->d, err);
}

static int64_t terms_of(const weir_rome_rows *r)
{
    return (r->n - 1) * r->n_target + 1;
}

/* Makes the run anew if it has no room for the rows. */
static weir_status fit(weir_rome_pass *p, const weir_rome_rows *r, bool gradients, weir_err *err)
{
    int64_t before = 0;
    for (int64_t i = 0; i < r->n; i++)
        before += r->row[i].subject;
    const int64_t rows = before > r->suffix ? before : r->suffix;
    if (r->longest > p->spec->ctx)
        return weir_fail(err, WEIR_E_ARG,
                         "prompt, prefix and target together have %lld tokens, the model's context %lld",
                         (long long)r->longest, (long long)p->spec->ctx);
    if (p->run && rows <= p->max_rows && r->longest <= p->max_len && r->n <= p->slots && terms_of(r) <= p->terms &&
        gradients <= p->gradients)
        return WEIR_OK;
    release(p);
    p->max_rows = (rows + ROWS_STEP - 1) / ROWS_STEP * ROWS_STEP;
    p->max_len = (r->longest + LEN_STEP - 1) / LEN_STEP * LEN_STEP;
    if (p->max_len > p->spec->ctx)
        p->max_len = p->spec->ctx;
    p->slots = r->n;
    p->terms = terms_of(r) + r->n;
    p->gradients = gradients;
    if (!allocate(p))
        return weir_nomem(err, "the passes of an edit");
    return make_run(p, err);
}

/* --- running */

/* The tokens before the subjects' last ones, into the slots. */
static weir_status fill_slots(weir_rome_pass *p, int flags, weir_err *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->rows->n; i++) {
        const weir_rome_row *r = &p->rows->row[i];
        weir_run_slot_reset(p->run, (int)i);
        if (r->subject > 0)
            p->seq[n++] = (weir_seq){.ids = r->id, .n = r->subject, .slot = (int)i};
    }
    return n ? weir_run_forward(p->run, p->seq, n, flags, err) : WEIR_OK;
}

static void suffixes(weir_rome_pass *p)
{
    for (int64_t i = 0; i < p->rows->n; i++) {
        const weir_rome_row *r = &p->rows->row[i];
        p->seq[i] = (weir_seq){.ids = r->id + r->subject, .n = r->n - r->subject, .slot = (int)i};
    }
}

weir_status weir_rome_pass_begin(weir_rome_pass *p, const weir_rome_rows *r, bool gradients,
                                 const weir_rome_seen **seen, weir_err *err)
{
    const int flags = gradients ? WEIR_FINAL : 0;
    WEIR_TRY(fit(p, r, gradients, err));
    p->rows = r;
    WEIR_TRY(weir_run_prepare(p->run, p->gradients ? WEIR_FINAL : 0, err));
    WEIR_TRY(fill_slots(p, flags, err));
    suffixes(p);
    p->listening = true;
    const weir_status s = weir_run_forward(p->run, p->seq, r->n, WEIR_KEEP_SLOTS, err);
    p->listening = false;
    *seen = &p->seen;
    return s;
}

static weir_norm norm_behind(const weir_rome_pass *p, const weir_layer *w)
{
    return (weir_norm){.rms = p->spec->rms,
                       .eps = p->spec->eps,
                       .offset = p->spec->norm_offset,
                       .w = w->ln2_post.w,
                       .b = w->ln2_post.b,
                       .rows = p->rows->n,
                       .c = p->spec->C,
                       .x = p->moved,
                       .out = p->out};
}

/* The subjects' rows of the stream behind the layer. */
static weir_status move(weir_rome_pass *p, const float *delta, float *stream, weir_err *err)
{
    const int64_t c = p->spec->C;
    const bool n = normed(p);
    for (int64_t i = 0; i < p->rows->n; i++) {
        const int64_t at = p->rows->row[i].at;
        float *dst = n ? p->moved + i * c : stream + at * c;
        const float *src = n ? p->seen.value + i * c : p->seen.post + at * c;
        for (int64_t j = 0; j < c; j++)
            dst[j] = src[j] + delta[j];
    }
    if (!n)
        return WEIR_OK;
    const weir_layer *w;
    WEIR_TRY(weir_model_norms(p->model, p->layer, &w, err));
    const weir_norm norm = norm_behind(p, w);
    weir_norm_run(p->kern, weir_run_threads(p->run), &norm);
    for (int64_t i = 0; i < p->rows->n; i++)
        for (int64_t j = 0; j < c; j++)
            stream[p->rows->row[i].at * c + j] = p->seen.mid[i * c + j] + p->out[i * c + j];
    return WEIR_OK;
}

weir_status weir_rome_pass_try(weir_rome_pass *p, const float *delta, weir_err *err)
{
    float *stream = weir_run_stream(p->run);
    memcpy(stream, p->seen.post, (size_t)(p->rows->suffix * p->spec->C) * sizeof *stream);
    WEIR_TRY(move(p, delta, stream, err));
    suffixes(p);
    return weir_run_forward_from(p->run, p->seq, p->rows->n, p->layer + 1, WEIR_FINAL | WEIR_KEEP_SLOTS, err);
}

weir_status weir_rome_pass_log_q(weir_rome_pass *p, float *log_q, weir_err *err)
{
    const int64_t v = p->spec->V, at = p->rows->row[p->rows->n - 1].at;
    weir_row_sum sum;
    WEIR_TRY(weir_run_logits(p->run, at, 1, log_q, err));
    weir_op_row_sums(p->kern, weir_run_threads(p->run), &sum, log_q, v, 1, v);
    for (int64_t i = 0; i < v; i++)
        log_q[i] = weir_row_logprob(&sum, log_q[i]);
    return WEIR_OK;
}

/* --- the loss */

static int64_t make_terms(weir_rome_pass *p, const float *log_q, double kl_weight)
{
    const weir_rome_rows *r = p->rows;
    const float share = (float)(1 / ((double)(r->n - 1) * (double)r->n_target));
    int64_t n = 0;
    for (int64_t i = 0; i < r->n - 1; i++) {
        const weir_rome_row *row = &r->row[i];
        const int64_t first = row->at + (row->n - row->n_loss - row->subject);
        for (int64_t t = 0; t < row->n_loss; t++)
            p->term[n++] =
                (weir_loss_term){.kind = WEIR_LOSS_NLL, .row = first + t, .token = r->target[t], .weight = share};
    }
    if (log_q)
        p->term[n++] = (weir_loss_term){
            .kind = WEIR_LOSS_KL, .row = r->row[r->n - 1].at, .weight = (float)kl_weight, .log_q = log_q};
    return n;
}

/* d_delta: the sum over the subjects of the gradients of what delta is added to. */
static weir_status collect(weir_rome_pass *p, float *d_delta, weir_err *err)
{
    const int64_t c = p->spec->C;
    for (int64_t i = 0; i < p->rows->n; i++)
        memcpy(p->d_out + i * c, p->d + p->rows->row[i].at * c, (size_t)c * sizeof *p->d_out);
    const float *d = p->d_out;
    if (normed(p)) {
        const weir_layer *w;
        WEIR_TRY(weir_model_norms(p->model, p->layer, &w, err));
        const weir_norm_back back = {.rms = p->spec->rms,
                                     .eps = p->spec->eps,
                                     .offset = p->spec->norm_offset,
                                     .w = w->ln2_post.w,
                                     .rows = p->rows->n,
                                     .c = c,
                                     .x = p->moved,
                                     .dy = p->d_out,
                                     .dx = p->d_in};
        weir_norm_backward(p->kern, weir_run_threads(p->run), &back);
        d = p->d_in;
    }
    for (int64_t j = 0; j < c; j++) {
        double sum = 0;
        for (int64_t i = 0; i < p->rows->n; i++)
            sum += (double)d[i * c + j];
        d_delta[j] = (float)sum;
    }
    return WEIR_OK;
}

weir_status weir_rome_pass_loss(weir_rome_pass *p, const float *log_q, double kl_weight, weir_rome_loss *loss,
                                float *d_delta, weir_err *err)
{
    const int64_t n = make_terms(p, log_q, kl_weight), nll = n - (log_q != NULL);
    WEIR_TRY(weir_grad_backward(p->grad, p->term, n, NULL, 0, NULL, p->value, err));
    *loss = (weir_rome_loss){0};
    for (int64_t i = 0; i < nll; i++)
        loss->nll += p->value[i] / (double)nll;
    loss->kl = log_q ? p->value[nll] : 0;
    return collect(p, d_delta, err);
}

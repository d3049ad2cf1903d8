/* lens/parts.c: the edits of the final stream, and their sums (weir/parts.h). */
#include "parts.h"

#include <math.h>
#include <string.h>

static const double TOLERANCE = 1e-4;

/* --- dot products */

enum { LANES = 8 };

double weir_parts_dot(const double *a, const double *b, int64_t n)
{
    double lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += a[i + j] * b[i + j];
    for (int j = 0; i + j < n; j++)
        lane[j] += a[i + j] * b[i + j];
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

weir_part_value weir_parts_value_of(const weir_parts *p, int64_t i, double self, double stream, double dir)
{
    const weir_parts_sum *at = &p->sum[i];
    const double norm = sqrt(self);
    return (weir_part_value){.norm = norm,
                             .cosine = stream / (norm * at->norm),
                             .share = stream / (at->norm * at->norm),
                             .logit = at->target < 0 ? NAN : dir / at->scale};
}

weir_part_value weir_parts_measure(const weir_parts *p, int64_t i, const double *part)
{
    const int64_t c = p->spec->C;
    return weir_parts_value_of(p, i, weir_parts_dot(part, part, c), weir_parts_dot(part, p->x + i * c, c),
                               weir_parts_dot(part, p->dir + i * c, c));
}

/* --- the object */

static weir_status list_edits(weir_parts *p, weir_err *err)
{
    const bool pos = p->spec->positions == WEIR_POS_LEARNED;
    int64_t n = 0;
    p->n_edits = 1 + pos + 2 * p->spec->L + 1;
    p->edit = weir_calloc((size_t)p->n_edits, sizeof *p->edit);
    if (!p->edit)
        return weir_nomem(err, "the parts of a stream");
    p->edit[n++] = (weir_part){WEIR_PART_EMBED, -1, -1};
    if (pos)
        p->edit[n++] = (weir_part){WEIR_PART_POS_EMBED, -1, -1};
    for (int l = 0; l < p->spec->L; l++) {
        p->edit[n++] = (weir_part){WEIR_PART_ATTN, l, -1};
        p->edit[n++] = (weir_part){WEIR_PART_MLP, l, -1};
    }
    p->edit[n] = (weir_part){WEIR_PART_REST, -1, -1};
    return WEIR_OK;
}

weir_status weir_parts_new(weir_parts **out, const weir_model *m, const char *kernel, int threads, weir_err *err)
{
    *out = NULL;
    weir_parts *p = weir_calloc(1, sizeof *p);
    if (!p)
        return weir_nomem(err, "the parts of a stream");
    p->m = m;
    p->spec = weir_model_spec(m);
    weir_status st = weir_lens_new(&p->lens, m, kernel, threads, err);
    if (st == WEIR_OK)
        st = weir_kern_pick(&p->kern, kernel, err);
    if (st == WEIR_OK)
        st = list_edits(p, err);
    if (st) {
        weir_parts_free(p);
        return st;
    }
    p->threads = weir_threads(threads);
    *out = p;
    return WEIR_OK;
}

static void free_room(weir_parts *p)
{
    void *const own[] = {p->x,  p->dir,   p->value, p->sum, p->scale, p->dir32, p->bias,
                         p->id, p->asked, p->logit, p->top, p->wide,  p->stream};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        weir_free(own[i]);
}

void weir_parts_free(weir_parts *p)
{
    if (!p)
        return;
    free_room(p);
    weir_lens_free(p->lens);
    weir_free(p->edit);
    weir_free(p);
}

int64_t weir_parts_list(const weir_parts *p, const weir_part **part)
{
    *part = p->edit;
    return p->n_edits;
}

const weir_part_value *weir_parts_edits(const weir_parts *p)
{
    return p->value;
}

const weir_parts_sum *weir_parts_sums(const weir_parts *p)
{
    return p->sum;
}

/* Zeroed, count * width elements. */
static void *room(int64_t count, int64_t width, size_t size)
{
    int64_t n;
    return weir_mul64(count, width, &n) ? weir_calloc((size_t)n, size) : NULL;
}

static weir_status make_room(weir_parts *p, int64_t n, weir_err *err)
{
    const int64_t c = p->spec->C;
    if (n <= p->room)
        return WEIR_OK;
    free_room(p);
    p->room = 0;
    p->x = room(n, c, sizeof *p->x);
    p->dir = room(n, c, sizeof *p->dir);
    p->value = room(n, p->n_edits, sizeof *p->value);
    p->sum = room(n, 1, sizeof *p->sum);
    p->scale = room(n, 1, sizeof *p->scale);
    p->dir32 = room(n, c, sizeof *p->dir32);
    p->bias = room(n, 1, sizeof *p->bias);
    p->id = room(n, 1, sizeof *p->id);
    p->asked = room(n, 2, sizeof *p->asked);
    p->logit = room(n, 2, sizeof *p->logit);
    p->top = room(n, 1, sizeof *p->top);
    p->wide = room(p->threads, c, sizeof *p->wide);
    p->stream = room(p->threads, c, sizeof *p->stream);
    if (!p->x || !p->dir || !p->value || !p->sum || !p->scale || !p->dir32 || !p->bias || !p->id || !p->asked ||
        !p->logit || !p->top || !p->wide || !p->stream)
        return weir_nomem(err, "the parts of a stream");
    p->room = n;
    return WEIR_OK;
}

/* --- what is asked */

static weir_status check(const weir_parts *p, const weir_parts_rows *r, weir_err *err)
{
    const weir_spec *s = p->spec;
    if (r->n < 1 || !r->embed || !r->stream || !r->attn_out || !r->mlp_out)
        return weir_fail(err, WEIR_E_ARG,
                         "parts of a stream: embed, attn_out, mlp_out and stream of n >= 1 positions are needed");
    if ((r->pos_embed != NULL) != (s->positions == WEIR_POS_LEARNED))
        return weir_fail(err, WEIR_E_ARG, "parts of a stream: pos_embed is %s",
                         r->pos_embed ? "given, but this model has none" : "missing");
    for (int64_t l = 0; l < s->L; l++) {
        if (!r->attn_out[l] || !r->mlp_out[l])
            return weir_fail(err, WEIR_E_ARG, "parts of a stream: attn_out or mlp_out of layer %lld is missing",
                             (long long)l);
        if (s->post_norms && r->z && r->z[l] && (!r->attn_scale || !r->attn_scale[l]))
            return weir_fail(err, WEIR_E_ARG, "parts of a stream: ln1_post.hook_scale of layer %lld is missing",
                             (long long)l);
        if (s->post_norms && r->post && r->post[l] && (!r->mlp_scale || !r->mlp_scale[l]))
            return weir_fail(err, WEIR_E_ARG, "parts of a stream: ln2_post.hook_scale of layer %lld is missing",
                             (long long)l);
    }
    return WEIR_OK;
}

static weir_status ask(weir_parts *p, weir_err *err)
{
    const int32_t *const of[2] = {p->r.target, p->r.against};
    for (int64_t i = 0; i < p->r.n; i++)
        for (int j = 0; j < 2; j++) {
            const int32_t id = of[j] ? of[j][i] : -1;
            if (id < WEIR_LENS_FINAL_TOP || id >= p->spec->V)
                return weir_fail(err, WEIR_E_ARG, "token %d: the model has %lld tokens, from 0", (int)id,
                                 (long long)p->spec->V);
            p->asked[2 * i + j] = id;
        }
    return WEIR_OK;
}

/* The model's own logits of what is asked, before a soft cap, and the likeliest token of each position. */
static weir_status own_logits(weir_parts *p, weir_err *err)
{
    const weir_lens_row row = {.x = p->r.stream, .prev = -1, .norm = WEIR_LENS_RECOMPUTE};
    bool top = false;
    for (int64_t i = 0; i < 2 * p->r.n; i++)
        top = top || p->asked[i] == WEIR_LENS_FINAL_TOP;
    const weir_lens_what what = {
        .row = &row, .n_rows = 1, .n = p->r.n, .target = p->asked, .n_targets = 2, .k = top, .no_softcap = true};
    const weir_lens_out out = {.logit = p->logit, .top_id = top ? p->top : NULL};
    WEIR_TRY(weir_lens_measure(p->lens, &what, &out, err));
    for (int64_t i = 0; i < 2 * p->r.n; i++)
        if (p->asked[i] == WEIR_LENS_FINAL_TOP)
            p->asked[i] = p->top[i / 2];
    return WEIR_OK;
}

/* --- directions */

/* A LayerNorm takes the mean of the stream away: sum (x_c - mean x) d_c = sum x_c (d_c - mean d). */
static void centre(double *d, int64_t n)
{
    double sum = 0;
    for (int64_t c = 0; c < n; c++)
        sum += d[c];
    for (int64_t c = 0; c < n; c++)
        d[c] -= sum / (double)n;
}

/* Adds sign times the direction of each position's target (which = 0) or of what it is compared with (1). */
static weir_status add_directions(weir_parts *p, int which, double sign, weir_err *err)
{
    const int64_t c = p->spec->C;
    for (int64_t i = 0; i < p->r.n; i++)
        p->id[i] = p->asked[2 * i + which] < 0 ? 0 : p->asked[2 * i + which];
    WEIR_TRY(weir_lens_directions(p->m, p->id, p->r.n, p->dir32, p->bias, err));
    for (int64_t i = 0; i < p->r.n; i++) {
        if (p->asked[2 * i + which] < 0)
            continue;
        for (int64_t j = 0; j < c; j++)
            p->dir[i * c + j] += sign * p->dir32[i * c + j];
        p->sum[i].constant += sign * p->bias[i];
    }
    return WEIR_OK;
}

static weir_status find_directions(weir_parts *p, weir_err *err)
{
    const int64_t c = p->spec->C;
    memset(p->dir, 0, (size_t)(p->r.n * c) * sizeof *p->dir);
    if (p->r.target)
        WEIR_TRY(add_directions(p, 0, 1, err));
    if (p->r.target && p->r.against)
        WEIR_TRY(add_directions(p, 1, -1, err));
    for (int64_t i = 0; i < p->r.n && !p->spec->rms; i++)
        centre(p->dir + i * c, c);
    return WEIR_OK;
}

/* --- sums */

/* A token's logit as the model has it, behind the soft cap. */
static float cap(const weir_parts *p, float logit)
{
    if (p->spec->logit_softcap != 0)
        weir_op_softcap(p->kern, 1, &logit, p->spec->logit_softcap, 1);
    return logit;
}

static void begin_sum(weir_parts *p, int64_t i)
{
    weir_parts_sum *s = &p->sum[i];
    const int64_t c = p->spec->C;
    const float target = p->logit[2 * i], against = p->logit[2 * i + 1];
    *s = (weir_parts_sum){.target = p->asked[2 * i],
                          .against = p->asked[2 * i] < 0 ? -1 : p->asked[2 * i + 1],
                          .logit = target,
                          .capped = cap(p, target),
                          .tolerance = fabs(target),
                          .scale = p->scale[i]};
    if (s->target < 0)
        s->logit = s->capped = s->constant = NAN;
    if (s->against >= 0) {
        s->logit -= against;
        s->capped -= cap(p, against);
        s->tolerance = fmax(s->tolerance, fabs(against));
    }
    for (int64_t j = 0; j < c; j++)
        p->x[i * c + j] = p->r.stream[i * c + j];
    s->norm = sqrt(weir_parts_dot(p->x + i * c, p->x + i * c, c));
}

static void end_sum(const weir_parts *p, weir_parts_sum *s, const weir_part_value *value)
{
    s->parts = s->constant;
    for (int64_t e = 0; e < p->n_edits; e++) {
        s->share += value[e].share;
        s->parts += value[e].logit;
        s->tolerance = fmax(s->tolerance, fabs(value[e].logit));
    }
    s->tolerance = s->target < 0 ? NAN : TOLERANCE * fmax(s->tolerance, fabs(s->constant));
    s->difference = s->parts - s->logit;
    s->holds = s->target < 0 || fabs(s->difference) <= s->tolerance;
}

/* --- edits */

static const float *edit_row(const weir_parts *p, int64_t e, int64_t i)
{
    const weir_part *part = &p->edit[e];
    const float *of = part->kind == WEIR_PART_EMBED       ? p->r.embed
                      : part->kind == WEIR_PART_POS_EMBED ? p->r.pos_embed
                      : part->kind == WEIR_PART_ATTN      ? p->r.attn_out[part->layer]
                                                          : p->r.mlp_out[part->layer];
    return of + i * p->spec->C;
}

/* The edits of one position in fp32, in the model's own order. */
static void add_up(const weir_parts *p, int64_t i, float *sum)
{
    const int64_t c = p->spec->C;
    const bool pairs = p->spec->parallel;
    memcpy(sum, edit_row(p, 0, i), (size_t)c * sizeof *sum);
    for (int64_t e = 1; e < p->n_edits - 1; e++) {
        const float *a = edit_row(p, e, i);
        const bool pair = pairs && p->edit[e].kind == WEIR_PART_ATTN;
        const float *b = pair ? edit_row(p, e + 1, i) : NULL;
        for (int64_t j = 0; j < c; j++)
            sum[j] += pair ? a[j] + b[j] : a[j];
        e += pair;
    }
}

static void take_apart(void *ctx, int64_t i, int thread)
{
    weir_parts *p = ctx;
    const int64_t c = p->spec->C, last = p->n_edits - 1;
    double *wide = p->wide + thread * c;
    float *sum = p->stream + thread * c;
    weir_part_value *value = p->value + i * p->n_edits;
    for (int64_t e = 0; e < last; e++) {
        const float *row = edit_row(p, e, i);
        for (int64_t j = 0; j < c; j++)
            wide[j] = row[j];
        value[e] = weir_parts_measure(p, i, wide);
    }
    add_up(p, i, sum);
    p->sum[i].exact = memcmp(sum, p->r.stream + i * c, (size_t)c * sizeof *sum) == 0;
    for (int64_t j = 0; j < c; j++)
        wide[j] = p->x[i * c + j] - sum[j];
    value[last] = weir_parts_measure(p, i, wide);
    end_sum(p, &p->sum[i], value);
}

weir_status weir_parts_begin(weir_parts *p, const weir_parts_rows *rows, weir_err *err)
{
    p->r.n = 0;
    WEIR_TRY(check(p, rows, err));
    WEIR_TRY(make_room(p, rows->n, err));
    p->r = *rows;
    weir_status st = ask(p, err);
    if (st == WEIR_OK)
        st = own_logits(p, err);
    if (st == WEIR_OK)
        st = weir_lens_scale(p->lens, p->r.stream, p->r.n, NULL, p->scale, err);
    for (int64_t i = 0; i < p->r.n && st == WEIR_OK; i++)
        begin_sum(p, i);
    if (st == WEIR_OK)
        st = find_directions(p, err);
    if (st) {
        p->r.n = 0;
        return st;
    }
    weir_parallel_for(p->threads, p->r.n, 1, take_apart, p);
    return WEIR_OK;
}

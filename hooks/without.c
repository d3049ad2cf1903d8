/* without: blocks without some of their parts, as Dong et al. 2021 have them ("Attention is not all you need: pure
 * attention loses rank doubly exponentially with depth").
 *
 *   without:skip         a sublayer's output is the stream: mid = attn_out, post = mlp_out; parallel blocks: their sum
 *   without:mlp          mlp_out is 0; with skip: post = mid
 *   without:norms        sublayers read the stream itself, and norms behind them are left out; the final norm stays
 *   without:skip,mlp     attention alone
 *
 * Nothing is computed by other code than the model's: the hook writes what the next step reads. Interventions that
 * stand before it on the command line change what a sublayer does, later ones see what this one left. What it does to
 * gradients cannot be said point by point, so it is refused in runs with a way back. */
#include <stdlib.h>
#include <string.h>

#include <weir/hook.h>

typedef struct state {
    bool no_skip, no_mlp, no_norms;
    bool parallel, post_norms;
    int64_t c;
    int64_t room;               /* rows that there is room for */
    float *stream, *attn, *mlp; /* [room, c] copies: what the next sublayer would read without its norm; outputs */
    float *scale, *normalized;  /* [room], [room, c] of a norm behind a sublayer */
} state;

static void destroy(void *self)
{
    state *s = self;
    if (!s)
        return;
    float *const own[] = {s->stream, s->attn, s->mlp, s->scale, s->normalized};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    free(s);
}

static weir_want write_if(bool yes)
{
    return yes ? WEIR_WRITE : WEIR_NONE;
}

static weir_want read_if(bool yes)
{
    return yes ? WEIR_READ : WEIR_NONE;
}

static weir_want wants(void *self, const weir_point *p)
{
    const state *s = self;
    switch (p->site) {
    case WEIR_SITE_RESID_PRE:
        return read_if(s->no_norms);
    case WEIR_SITE_LN1_OUT:
    case WEIR_SITE_LN2_OUT:
        return write_if(s->no_norms);
    case WEIR_SITE_LN1_POST_SCALE:
    case WEIR_SITE_LN1_POST_NORM:
    case WEIR_SITE_LN2_POST_SCALE:
    case WEIR_SITE_LN2_POST_NORM:
        return read_if(s->no_norms);
    case WEIR_SITE_ATTN_OUT:
        return s->no_norms && s->post_norms ? WEIR_WRITE : read_if(s->no_skip);
    case WEIR_SITE_RESID_MID:
        return s->no_skip ? WEIR_WRITE : read_if(s->no_norms);
    case WEIR_SITE_MLP_OUT:
        return s->no_mlp || (s->no_norms && s->post_norms) ? WEIR_WRITE : read_if(s->no_skip);
    case WEIR_SITE_RESID_POST:
        return write_if(s->no_skip && (s->parallel || !s->no_mlp));
    default:
        return WEIR_NONE;
    }
}

static weir_status on_begin(void *self, const weir_rows *rows, weir_err *err)
{
    state *s = self;
    if (rows->n <= s->room)
        return WEIR_OK;
    float **const buffer[] = {&s->stream, &s->attn, &s->mlp, &s->normalized, &s->scale};
    for (size_t i = 0; i < sizeof buffer / sizeof *buffer; i++) {
        const int64_t width = buffer[i] == &s->scale ? 1 : s->c;
        float *more = realloc(*buffer[i], (size_t)(rows->n * width) * sizeof *more);
        if (!more)
            return weir_fail(err, WEIR_E_NOMEM, "hook without: out of memory");
        *buffer[i] = more;
    }
    s->room = rows->n;
    return WEIR_OK;
}

static void keep(float *to, const weir_value *v)
{
    memcpy(to, v->data, (size_t)(v->rows->n * v->width) * sizeof *to);
}

static void put(const weir_value *v, const float *from)
{
    memcpy(v->data, from, (size_t)(v->rows->n * v->width) * sizeof *from);
}

/* An output of a sublayer as it was before the norm behind it: an RMSNorm divides by its scale and no more. */
static void put_unnormed(const state *s, const weir_value *v)
{
    for (int64_t t = 0; t < v->rows->n; t++)
        for (int64_t i = 0; i < s->c; i++)
            v->data[t * s->c + i] = s->normalized[t * s->c + i] * s->scale[t];
}

static void on_attention(state *s, const weir_value *v)
{
    if (s->no_norms && s->post_norms)
        put_unnormed(s, v);
    keep(s->attn, v);
}

static void on_mlp(state *s, const weir_value *v)
{
    if (s->no_norms && s->post_norms)
        put_unnormed(s, v);
    if (s->no_mlp)
        memset(v->data, 0, (size_t)(v->rows->n * v->width) * sizeof *v->data);
    keep(s->mlp, v);
}

static void on_mid(state *s, const weir_value *v)
{
    if (s->no_skip)
        put(v, s->attn);
    keep(s->stream, v);
}

/* The end of a block without a skip. */
static void on_post(const state *s, const weir_value *v)
{
    const int64_t n = v->rows->n * v->width;
    put(v, s->parallel && s->no_mlp ? s->attn : s->mlp);
    for (int64_t i = 0; i < n && s->parallel && !s->no_mlp; i++)
        v->data[i] += s->attn[i];
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    (void)err;
    switch (v->point->site) {
    case WEIR_SITE_RESID_PRE:
        keep(s->stream, v);
        break;
    case WEIR_SITE_LN1_OUT:
    case WEIR_SITE_LN2_OUT:
        put(v, s->stream);
        break;
    case WEIR_SITE_LN1_POST_SCALE:
    case WEIR_SITE_LN2_POST_SCALE:
        keep(s->scale, v);
        break;
    case WEIR_SITE_LN1_POST_NORM:
    case WEIR_SITE_LN2_POST_NORM:
        keep(s->normalized, v);
        break;
    case WEIR_SITE_ATTN_OUT:
        on_attention(s, v);
        break;
    case WEIR_SITE_RESID_MID:
        on_mid(s, v);
        break;
    case WEIR_SITE_MLP_OUT:
        on_mlp(s, v);
        break;
    default:
        on_post(s, v);
        break;
    }
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    static const char *const keys[] = {"skip", "mlp", "norms", NULL};
    const weir_model_info *info = weir_model_info_of(m);
    weir_hook_args *a;
    *self = NULL;
    weir_status st = weir_hook_args_parse(&a, "without", args, keys, err);
    if (st)
        return st;
    state *s = calloc(1, sizeof *s);
    if (s)
        *s = (state){.no_skip = weir_hook_args_text(a, "skip") != NULL,
                     .no_mlp = weir_hook_args_text(a, "mlp") != NULL,
                     .no_norms = weir_hook_args_text(a, "norms") != NULL,
                     .parallel = info->parallel,
                     .post_norms = weir_model_point(m, "blocks.0.ln1_post.hook_scale") != NULL,
                     .c = info->C};
    if (!s)
        st = weir_fail(err, WEIR_E_NOMEM, "hook without: out of memory");
    else if (weir_hook_args_selectors(a))
        st = weir_fail(err, WEIR_E_ARG, "\"%s\": skip, mlp or norms was expected", weir_hook_args_selectors(a));
    else if (!s->no_skip && !s->no_mlp && !s->no_norms)
        st = weir_fail(err, WEIR_E_ARG, "hook without: without what? skip, mlp, norms, or several of them");
    weir_hook_args_free(a);
    if (st) {
        destroy(s);
        return st;
    }
    *self = s;
    return WEIR_OK;
}

extern const weir_hook_class weir_hook_without;
const weir_hook_class weir_hook_without = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER,
    .name = "without",
    .help = "leave out the skips, the MLPs, the norms of blocks",
    .args = "skip|mlp|norms[,...]",
    .create = create,
    .wants = wants,
    .on_begin = on_begin,
    .on_value = on_value,
    .destroy = destroy,
};

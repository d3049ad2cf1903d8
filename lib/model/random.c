/* A checkpoint of a model's shape whose weights are drawn. */
#include <math.h>
#include <string.h>

#include <weir/collapse.h>

#include "../base/rng.h"
#include "../io/outdir.h"
#include "../io/safetensors_write.h"
#include "export.h"
#include "impl.h"

#define CONFIG "config.json"
#define TENSORS "model.safetensors"

/* Numbers of tensors from one layer to the next: never another, so that a seed stands for the same weights in every
 * version. The roles of matrices are below it. */
enum { STRIDE = 29 };

/* A tensor that is to be written. */
typedef struct drawn {
    const char *name;
    weir_role role;
    int64_t layer; /* -1: the model's own */
    int rank;
    int64_t shape[2];
} drawn;

typedef struct drawing {
    const weir_model *m;
    weir_export *x; /* of a GGUF file; else NULL: names and shapes are the file's own */
    drawn *tensor;
    int64_t n;
    uint64_t seed;
    double scale;
} drawing;

/* --- which tensors */

static weir_status list_exported(drawing *d, weir_err *err)
{
    WEIR_TRY(weir_export_new(&d->x, d->m, err));
    d->tensor = weir_calloc((size_t)weir_export_n(d->x), sizeof *d->tensor);
    if (!d->tensor)
        return weir_nomem(err, "a list of tensors");
    for (; d->n < weir_export_n(d->x); d->n++) {
        const weir_export_tensor *t = weir_export_at(d->x, d->n);
        d->tensor[d->n] = (drawn){.name = t->name,
                                  .role = (weir_role)t->role,
                                  .layer = t->layer,
                                  .rank = t->rank,
                                  .shape = {t->rank > 1 ? t->rows : t->width, t->width}};
    }
    return WEIR_OK;
}

static weir_status list_own(drawing *d, weir_err *err)
{
    const int64_t layers = d->m->spec.L;
    d->tensor = weir_calloc((size_t)(layers + 1) * WEIR_ROLE_COUNT, sizeof *d->tensor);
    if (!d->tensor)
        return weir_nomem(err, "a list of tensors");
    for (int64_t l = -1; l < layers; l++)
        for (int r = WEIR_ROLE_END + 1; r < WEIR_ROLE_COUNT; r++) {
            const weir_tensor *t = weir_slot(d->m, l, (weir_role)r);
            if (t && !(r == WEIR_ROLE_HEAD && d->m->tied))
                d->tensor[d->n++] = (drawn){t->name, (weir_role)r, l, t->rank, {t->shape[0], t->shape[1]}};
        }
    return WEIR_OK;
}

/* --- numbers */

/* Two numbers of the normal distribution (Box and Muller 1958, "A note on the generation of random normal deviates").
 */
static void draw_two(uint64_t *state, double scale, float to[2])
{
    const double length = sqrt(-2 * log(1 - weir_rng_unit(weir_rng_next(state)))); /* 1 - u is never 0 */
    const double angle = 6.283185307179586 * weir_rng_unit(weir_rng_next(state));
    to[0] = (float)(scale * length * cos(angle));
    to[1] = (float)(scale * length * sin(angle));
}

static void write_tensor(const drawing *d, const drawn *t, FILE *out)
{
    const int64_t n = t->rank > 1 ? t->shape[0] * t->shape[1] : t->shape[0];
    const weir_layout *l = d->x ? &d->m->cfg.arch->hf_tensors : d->m->layout;
    float pair[2] = {0, 0};
    uint64_t state = weir_rng_mix(d->seed) ^ weir_rng_mix((uint64_t)(t->layer + 1) * STRIDE + t->role);
    if (weir_role_is_gain(t->role))
        pair[0] = pair[1] = 1 - l->norm_offset;
    for (int64_t i = 0; i < n && !ferror(out); i += 2) {
        if (t->rank > 1)
            draw_two(&state, d->scale, pair);
        fwrite(pair, sizeof *pair, n - i > 1 ? 2 : 1, out);
    }
}

static void write_tensors(void *ctx, FILE *out)
{
    const drawing *d = ctx;
    weir_st_head h;
    weir_st_head_begin(&h, out, "pt");
    for (int64_t i = 0; i < d->n; i++)
        weir_st_head_add(&h, d->tensor[i].name, d->tensor[i].rank, d->tensor[i].shape);
    weir_st_head_end(&h);
    for (int64_t i = 0; i < d->n && !ferror(out); i++)
        write_tensor(d, &d->tensor[i], out);
}

static void write_config(void *ctx, FILE *out)
{
    const drawing *d = ctx;
    weir_jsonw w;
    if (!d->x) {
        fwrite(d->m->ck.config.data, 1, d->m->ck.config.size, out);
        return;
    }
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_export_config(d->x, &w);
    weir_jsonw_end(&w);
    fputc('\n', out);
}

/* --- the directory */

static weir_status write_dir(drawing *d, const char *dir, weir_err *err)
{
    static const char *const files[] = {CONFIG, TENSORS, NULL};
    static const weir_outdir_kind kind = {"a random checkpoint", files};
    weir_outdir *to;
    WEIR_TRY(weir_outdir_may(dir, &kind, false, err));
    WEIR_TRY(d->m->ck.is_gguf ? list_exported(d, err) : list_own(d, err));
    WEIR_TRY(weir_outdir_open(&to, dir, &kind, err));
    weir_status s = weir_outdir_put(to, CONFIG, write_config, d, err);
    if (s == WEIR_OK)
        s = weir_outdir_put(to, TENSORS, write_tensors, d, err);
    if (s == WEIR_OK)
        return weir_outdir_commit(to, err);
    weir_outdir_abort(to);
    return s;
}

weir_status weir_model_random(const char *dir, const weir_model *m, uint64_t seed, double scale, weir_err *err)
{
    drawing d = {.m = m, .seed = seed, .scale = scale};
    if (!(scale >= 0) || !isfinite(scale))
        return weir_fail(err, WEIR_E_ARG, "random weights: a standard deviation of %g", scale);
    const weir_status s = write_dir(&d, dir, err);
    weir_export_free(d.x);
    weir_free(d.tensor);
    return s;
}

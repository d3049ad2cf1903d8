/* GGUF stores what the scaling of Llama 3 does to each inverse frequency, not the numbers that it follows from: here
 * they are found again. With x = 1 / wavelength and s = (original x - low) / (high - low), the frequency is divided by
 * 1 where s > 1, by `factor` where s < 0, and by 1 / ((1 - s) / factor + s) between (Hugging Face,
 * modeling_rope_utils). Only the ratios of low, high and original count: low is set to 1, as all published models have
 * it. */
#include "export_impl.h"

#include <math.h>

#define NEAR 1e-4 /* of a divisor, relative: GGUF's are fp32, and wavelengths were rounded on the way to them */

/* A divisor between the two ends: where, and its s. */
typedef struct point {
    double x, s;
} point;

static weir_status refuse(const weir_tensor *t, weir_err *err)
{
    weir_fail(err, WEIR_E_UNSUPPORTED, "no RoPE scaling of Hugging Face divides the frequencies by these numbers");
    return weir_err_where(err, t->file, t->name, t->offset);
}

static double whole_if_near(double v)
{
    return fabs(v - round(v)) < 1e-3 * fabs(v) ? round(v) : v;
}

/* The first and the last divisor between the ends; how many there are. */
static int64_t find_between(const float *divisor, int64_t n, double theta, double factor, point *first, point *last)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        if (divisor[i] < 1 + NEAR || divisor[i] > factor * (1 - NEAR))
            continue;
        last->x = pow(theta, -(double)i / (double)n) / (2 * 3.14159265358979323846);
        last->s = (1 / (double)divisor[i] - 1 / factor) / (1 - 1 / factor);
        *first = found++ ? *first : *last;
    }
    return found;
}

/* One point leaves a choice: high is then 4, as all published models have it. */
static bool solve(weir_rope *r, const point *a, const point *b, int64_t found)
{
    r->low = 1;
    r->high = 4;
    if (found > 1) {
        const double slope = (a->s - b->s) / (a->x - b->x), zero = slope * a->x - a->s; /* low / (high - low) */
        if (!(slope > 0) || !(zero > 0))
            return false;
        r->high = whole_if_near(1 + 1 / zero);
    }
    r->original = round((a->s * (r->high - r->low) + r->low) / a->x);
    return found > 0 && r->original > 0 && r->original < 1e9;
}

/* Do the numbers give the divisors? */
static bool explains(const weir_rope *r, const float *divisor, int64_t rot, double theta, float *plain, float *scaled)
{
    const weir_rope none = {.kind = WEIR_ROPE_PLAIN};
    weir_rope_inv_freq(plain, rot, theta, &none, NULL);
    weir_rope_inv_freq(scaled, rot, theta, r, NULL);
    for (int64_t i = 0; i < rot / 2; i++)
        if (!(fabs((double)plain[i] / scaled[i] / divisor[i] - 1) < NEAR))
            return false;
    return true;
}

static weir_status from_divisors(weir_export *x, const weir_tensor *t, float *work, weir_err *err)
{
    const int64_t rot = x->m->spec.rot, n = rot / 2;
    const double theta = x->m->cfg.v[WEIR_CFG_ROPE_THETA];
    float *divisor = work, most = 1;
    point a = {0}, b = {0};
    weir_vector_read(t, divisor, n);
    for (int64_t i = 0; i < n; i++)
        most = divisor[i] > most ? divisor[i] : most;
    if (x->rope.kind != WEIR_ROPE_PLAIN)
        return refuse(t, err);
    if (most > 1) {
        x->rope = (weir_rope){.kind = WEIR_ROPE_LLAMA3, .factor = whole_if_near(most)};
        if (!solve(&x->rope, &a, &b, find_between(divisor, n, theta, x->rope.factor, &a, &b)))
            return refuse(t, err);
    }
    return explains(&x->rope, divisor, rot, theta, work + n, work + 2 * n) ? WEIR_OK : refuse(t, err);
}

weir_status weir_export_find_rope(weir_export *x, weir_err *err)
{
    const weir_tensor *t = weir_slot(x->m, -1, WEIR_ROLE_ROPE_FREQS);
    x->rope = x->m->cfg.rope;
    if (!t)
        return WEIR_OK;
    float *work = weir_calloc(3 * (size_t)(x->m->spec.rot / 2), sizeof *work);
    if (!work)
        return weir_nomem(err, "the RoPE frequencies");
    const weir_status s = from_divisors(x, t, work, err);
    weir_free(work);
    return s;
}

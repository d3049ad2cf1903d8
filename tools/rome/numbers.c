#include "numbers.h"

#include <math.h>
#include <stddef.h>

static const struct {
    const char *name;
    size_t at;
} keys[] = {{"v0_norm", offsetof(weir_rome_numbers, v0)},
            {"delta_norm", offsetof(weir_rome_numbers, delta)},
            {"k_u", offsetof(weir_rome_numbers, k_u)},
            {"k_cos", offsetof(weir_rome_numbers, k_cos)},
            {"lambda_norm", offsetof(weir_rome_numbers, lambda)},
            {"share", offsetof(weir_rome_numbers, share)}};
enum { KEYS = sizeof keys / sizeof *keys };

static double *number(weir_rome_numbers *n, int i)
{
    return (double *)((char *)n + keys[i].at);
}

weir_rome_numbers weir_rome_numbers_of(const weir_rome_report *r)
{
    return (weir_rome_numbers){.v0 = r->v0,
                               .delta = r->delta,
                               .k_u = r->k_u,
                               .k_cos = r->k_cos,
                               .lambda = r->lambda,
                               .share = r->share,
                               .clamped = r->clamped,
                               .converged = r->converged};
}

weir_rome_numbers weir_rome_numbers_unknown(void)
{
    weir_rome_numbers n = {0};
    for (int i = 0; i < KEYS; i++)
        *number(&n, i) = NAN;
    return n;
}

void weir_rome_numbers_write(weir_jsonw *w, const weir_rome_numbers *n)
{
    weir_rome_numbers copy = *n;
    for (int i = 0; i < KEYS; i++)
        weir_jsonw_key_double(w, keys[i].name, *number(&copy, i));
    weir_jsonw_key_bool(w, "clamped", n->clamped);
    weir_jsonw_key_bool(w, "converged", n->converged);
}

double weir_rome_number(weir_json *j)
{
    if (weir_json_peek(j) != WEIR_JSON_NULL)
        return weir_json_double(j);
    weir_json_null(j);
    return NAN;
}

bool weir_rome_numbers_read(weir_json *j, weir_str key, weir_rome_numbers *n)
{
    for (int i = 0; i < KEYS; i++)
        if (weir_str_eq(key, keys[i].name)) {
            *number(n, i) = weir_rome_number(j);
            return true;
        }
    bool *flag = weir_str_eq(key, "clamped") ? &n->clamped : weir_str_eq(key, "converged") ? &n->converged : NULL;
    if (flag)
        *flag = weir_json_bool(j);
    return flag != NULL;
}

void weir_rome_numbers_print(FILE *out, const weir_rome_numbers *n)
{
    fprintf(out, "change   |dW|/|W| %.3g, |Lambda| %.3g, |delta|/|v0| %.3g, k.u %.3g, cos(k, prompt's k) %.3g",
            n->share, n->lambda, n->delta / n->v0, n->k_u, n->k_cos);
}

#include "reals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

static int read_one(const weir_cli *cli, const char *option, const char *p, size_t n, double *out)
{
    char word[64];
    if (n >= sizeof word)
        return weir_cli_usage(cli, "%s: \"%.20s...\" is no number", option, p);
    memcpy(word, p, n);
    word[n] = 0;
    if (!weir_parse_real(word, out) || !isfinite(*out))
        return weir_cli_usage(cli, "%s: \"%s\" is no number: write them as 1.5,3,-1", option, word);
    return WEIR_EXIT_OK;
}

int weir_cli_reals(const weir_cli *cli, const char *option, const char *text, weir_reals *out)
{
    int64_t room = 1;
    for (const char *p = text; *p; p++)
        room += *p == ',';
    *out = (weir_reals){.v = calloc((size_t)room, sizeof *out->v)};
    if (!out->v)
        return weir_cli_error(cli, "out of memory");
    int code = WEIR_EXIT_OK;
    for (const char *p = text; code == WEIR_EXIT_OK; p++) {
        const size_t n = strcspn(p, ",");
        code = read_one(cli, option, p, n, &out->v[out->n++]);
        p += n;
        if (!*p)
            break;
    }
    return code;
}

int weir_cli_floats(const weir_cli *cli, const char *option, const weir_reals *x, float **out)
{
    *out = calloc((size_t)x->n, sizeof **out);
    if (!*out)
        return weir_cli_error(cli, "out of memory");
    for (int64_t i = 0; i < x->n; i++) {
        (*out)[i] = (float)x->v[i];
        if (!isfinite((*out)[i]))
            return weir_cli_usage(cli, "%s: %g is more than a model's numbers (fp32) can hold", option, x->v[i]);
    }
    return WEIR_EXIT_OK;
}

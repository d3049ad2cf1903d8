/* ablate: sets selected values to zero, at the positions, heads and units that the selector's brackets name.
 *
 *   ablate:L6N421                        neuron 421 of layer 6, everywhere
 *   ablate:blocks.3.attn.hook_z[-1,2]    head 2 of layer 3 at the last position
 *   ablate:blocks.*.hook_attn_out=zero   all attention
 *
 * Positions are absolute, negative ones count from the end of what the sequence has so far. */
#include <stdlib.h>
#include <string.h>

#include <weir/hook.h>

typedef struct state {
    weir_selector *selector;
    char *args;
    int64_t rows; /* rows that were changed */
} state;

static void destroy(void *self)
{
    state *s = self;
    if (!s)
        return;
    weir_selector_free(s->selector);
    free(s->args);
    free(s);
}

/* Splits "SEL=VALUE" and checks VALUE. Selectors hold no `=`. */
static weir_status check_value(const char *args, size_t *selector_bytes, weir_err *err)
{
    const char *eq = strchr(args, '=');
    *selector_bytes = eq ? (size_t)(eq - args) : strlen(args);
    if (!eq || strcmp(eq, "=zero") == 0)
        return WEIR_OK;
    if (strncmp(eq, "=mean:", 6) == 0)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "ablate:%s: mean:FILE is not supported yet; =zero is", args);
    return weir_fail(err, WEIR_E_ARG, "ablate:%s: the value must be zero", args);
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    size_t n;
    *self = NULL;
    if (!args || !*args)
        return weir_fail(err, WEIR_E_ARG, "ablate needs a selector: ablate:SEL[=zero]");
    WEIR_TRY(check_value(args, &n, err));
    state *s = calloc(1, sizeof *s);
    char *text = strndup(args, n);
    weir_status st = s && text ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "hook ablate: out of memory");
    if (!st)
        st = weir_selector_build(&s->selector, m, text, NULL, NULL, err);
    free(text);
    if (!st && !(s->args = strdup(args)))
        st = weir_fail(err, WEIR_E_NOMEM, "hook ablate: out of memory");
    if (st) {
        destroy(s);
        return st;
    }
    *self = s;
    return WEIR_OK;
}

static weir_want wants(void *self, const weir_point *p)
{
    const state *s = self;
    return weir_selector_matches(s->selector, p) ? WEIR_WRITE : WEIR_NONE;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    const int64_t *idx;
    int64_t n;
    (void)err;
    weir_selector_units(s->selector, v->point, &idx, &n);
    for (int64_t t = 0; t < v->rows->n; t++) {
        float *row = v->data + t * v->width;
        if (!weir_selector_row_at(s->selector, v->point, v->rows->doc_pos[t], v->rows->doc_len[t]))
            continue;
        s->rows++;
        if (n < 0)
            memset(row, 0, (size_t)v->width * sizeof *row);
        for (int64_t i = 0; i < n; i++) {
            int64_t c = weir_value_column(v, idx[i]);
            if (c >= 0)
                row[c] = 0;
        }
    }
    return WEIR_OK;
}

/* An ablation that met no row is a mistake, not a result. */
static weir_status finish(void *self, FILE *out, weir_err *err)
{
    const state *s = self;
    (void)out;
    if (s->rows > 0)
        return WEIR_OK;
    return weir_fail(err, WEIR_E_HOOK, "ablate:%s changed nothing: no sequence has such a position", s->args);
}

extern const weir_hook_class weir_hook_ablate;
const weir_hook_class weir_hook_ablate = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER,
    .name = "ablate",
    .help = "set selected values to zero",
    .args = "SEL[,SEL...][=zero]",
    .create = create,
    .wants = wants,
    .on_value = on_value,
    .finish = finish,
    .destroy = destroy,
};

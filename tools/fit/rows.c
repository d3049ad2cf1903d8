#include "rows.h"

#include <stdlib.h>
#include <string.h>

weir_status weir_fit_rows_new(weir_fit_rows *r, const weir_model *m, int64_t batch, weir_err *err)
{
    const weir_model_info *i = weir_model_info_of(m);
    *r = (weir_fit_rows){.L = i->L, .C = i->C, .room = batch};
    r->x = calloc((size_t)i->L + 1, sizeof *r->x);
    bool made = r->x != NULL;
    for (int64_t l = 0; made && l <= i->L; l++)
        made = (r->x[l] = calloc((size_t)batch, (size_t)i->C * sizeof(float))) != NULL;
    if (made)
        return WEIR_OK;
    weir_fit_rows_free(r);
    return weir_fail(err, WEIR_E_NOMEM, "out of memory (here: a smaller --batch)");
}

void weir_fit_rows_free(weir_fit_rows *r)
{
    for (int64_t l = 0; r->x && l <= r->L; l++)
        free(r->x[l]);
    free(r->x);
    r->x = NULL;
}

/* --- the hook */

/* Which of x a point fills; -1: none. */
static int64_t place_of(const weir_fit_rows *r, const weir_point *p)
{
    if (p->site == WEIR_SITE_RESID_PRE)
        return p->layer;
    return p->site == WEIR_SITE_RESID_POST && p->layer == r->L - 1 ? r->L : -1;
}

static weir_want wants(void *self, const weir_point *p)
{
    return place_of(self, p) < 0 ? WEIR_NONE : WEIR_READ;
}

static weir_status on_begin(void *self, const weir_rows *rows, weir_err *err)
{
    weir_fit_rows *r = self;
    (void)err;
    r->n = 0;
    for (int64_t t = 0; t < rows->n; t++)
        r->n += rows->keep[t];
    return WEIR_OK;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    const weir_fit_rows *r = self;
    float *to = r->x[place_of(r, v->point)];
    (void)err;
    for (int64_t t = 0; t < v->rows->n; t++)
        if (v->rows->keep[t]) {
            memcpy(to, v->data + t * v->width, (size_t)v->width * sizeof *to);
            to += v->width;
        }
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    (void)self, (void)m, (void)args;
    return weir_fail(err, WEIR_E_ARG, "the rows of lens-fit are attached by the tool alone");
}

static const weir_hook_class rows_class = {.struct_size = sizeof(weir_hook_class),
                                           .abi = WEIR_HOOK_ABI,
                                           .name = "lens-fit",
                                           .help = "the rows that the tool lens-fit is trained on",
                                           .args = "",
                                           .create = create,
                                           .wants = wants,
                                           .on_begin = on_begin,
                                           .on_value = on_value};

weir_status weir_fit_rows_attach(weir_fit_rows *r, weir_run *run, weir_err *err)
{
    return weir_run_hook_object(run, &rows_class, r, err);
}

/* hooks/record.c: writes activations to an HDF5 file. A thin layer over weir/record.h.
 *
 * Two ways to use it. A program that knows its documents makes a weir_dump and attaches it:
 *     weir_run_hook_object(run, weir_hook_class_find("record"), dump, &err);
 * A program that only runs passes lets the hook make the dump, which is complete when weir_run_finish returns:
 *     weir_run_hook(run, weir_hook_class_find("record"), "mlp.h5=blocks.6.mlp.hook_post", &err);
 * `self` is the weir_dump in both.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

extern const weir_hook_class weir_hook_record;

static weir_status open_dump(weir_dump **out, const weir_model *m, const char *path, weir_err *err)
{
    weir_tokenizer *tok = NULL;
    weir_dump_options o;
    weir_dump_options_init(&o);
    o.from_passes = true;
    o.interventions = "null"; /* which other hooks the run has cannot be seen from here */
    /* Text without the model is a courtesy here: a model without a tokenizer is recorded with an empty vocabulary. */
    weir_err none = {0};
    if (weir_tokenizer_open(&tok, weir_model_info_of(m)->path, NULL, &none) == WEIR_E_NOMEM)
        return weir_fail(err, WEIR_E_NOMEM, "%s", none.msg);
    weir_status st = weir_dump_create(out, path, m, tok, &o, err);
    weir_tokenizer_free(tok);
    return st;
}

static weir_status record_create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    const char *eq = args ? strrchr(args, '=') : NULL;
    weir_selector *sel = NULL;
    weir_dump *d = NULL;
    if (!eq || eq == args || !eq[1])
        return weir_fail(err, WEIR_E_ARG, "record needs FILE.h5=SELECTOR, such as mlp.h5=blocks.6.mlp.hook_post");
    WEIR_TRY(weir_selector_build(&sel, m, eq + 1, NULL, NULL, err));
    char *path = strndup(args, (size_t)(eq - args));
    weir_status st =
        path ? open_dump(&d, m, path, err) : weir_fail(err, WEIR_E_NOMEM, "not enough memory for a file name");
    free(path);
    if (!st)
        st = weir_dump_select(d, sel, err);
    weir_selector_free(sel);
    if (st) {
        weir_dump_abort(d, false);
        return st;
    }
    *self = d;
    return WEIR_OK;
}

static weir_want record_wants(void *self, const weir_point *p)
{
    return weir_dump_wants(self, p);
}

static weir_status record_begin(void *self, const weir_rows *rows, weir_err *err)
{
    return weir_dump_pass(self, rows, err);
}

static weir_status record_value(void *self, const weir_value *v, weir_err *err)
{
    return weir_dump_value(self, v, err);
}

static weir_status record_finish(void *self, FILE *out, weir_err *err)
{
    (void)out;
    return weir_dump_finish(self, err);
}

static void record_destroy(void *self)
{
    weir_dump_abort(self, false);
}

const weir_hook_class weir_hook_record = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "record",
    .help = "write activations to an HDF5 file",
    .args = "FILE.h5=SELECTOR",
    .create = record_create,
    .wants = record_wants,
    .on_begin = record_begin,
    .on_value = record_value,
    .finish = record_finish,
    .destroy = record_destroy,
};

/* record/open.c: NAME.part and everything in it that does not depend on rows. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "dump.h"
#include "schema.h"

void weir_dump_options_init(weir_dump_options *o)
{
    memset(o, 0, sizeof *o);
    o->compress = 1;
}

static weir_status create_file(weir_dump *d, bool force, weir_err *err)
{
    static const char advice[] = " (an unfinished dump): --resume goes on with it, --force begins again";
    WEIR_TRY(weir_partfile_take(&d->out, force, advice, err));
    d->file = weir_h5_create_file(d->out.part);
    if (d->file < 0)
        return weir_h5_fail(err, "cannot create %s", d->out.part);
    weir_behind_init(&d->writer.behind, d->file);
    return WEIR_OK;
}

static weir_status put_vocab(weir_dump *d, const weir_dump_header *h, weir_err *err)
{
    weir_strings vocab;
    memset(&vocab, 0, sizeof vocab);
    weir_status st = weir_strings_create(&vocab, d->file, "vocab", true, &d->writer, err);
    for (int64_t i = 0; i < h->n_vocab && !st; i++)
        st = weir_strings_append(&vocab, &d->writer, h->vocab(h->user, (int32_t)i), err);
    if (!st)
        st = weir_strings_flush(&vocab, &d->writer, err);
    weir_strings_close(&vocab);
    return st;
}

static weir_status make_column(weir_dump *d, weir_tiled *t, const char *path, const weir_tiled_spec *spec,
                               weir_err *err)
{
    return d->resumed ? weir_tiled_open(t, d->file, path, spec, &d->writer, err)
                      : weir_tiled_create(t, d->file, path, spec, &d->writer, err);
}

static weir_status create_tokens(weir_dump *d, weir_err *err)
{
    hid_t g = weir_h5_create_group(d->file, "tokens", false);
    if (g < 0)
        return weir_h5_fail(err, "cannot create group tokens");
    H5Gclose(g);
    return WEIR_OK;
}

weir_status weir_dump_open_tokens(weir_dump *d, weir_err *err)
{
    const float nan = NAN;
    if (!d->resumed)
        WEIR_TRY(create_tokens(d, err));
    for (int i = 0; i < WEIR_TOK_COLUMNS; i++) {
        weir_tiled_spec spec = weir_tiled_column(weir_token_schema[i].elem);
        if (i == WEIR_TOK_LOGPROB && !d->logprob)
            continue;
        spec.fill = i == WEIR_TOK_LOGPROB ? &nan : NULL;
        WEIR_TRY(make_column(d, &d->token[i], weir_token_schema[i].path, &spec, err));
    }
    weir_tiled_spec row = weir_tiled_column(WEIR_ELEM_I64);
    return make_column(d, &d->row, "row", &row, err);
}

/* Hook points keep the order in which they fire, also when a reader lists them. */
static weir_status create_activations(weir_dump *d, weir_err *err)
{
    d->activations = weir_h5_create_group(d->file, "activations", true);
    return d->activations >= 0 ? WEIR_OK : weir_h5_fail(err, "cannot create group activations");
}

static weir_status create_all(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o, weir_err *err)
{
    WEIR_TRY(create_file(d, o->force, err));
    WEIR_TRY(weir_dump_put_header(d, h, o, err));
    WEIR_TRY(put_vocab(d, h, err));
    WEIR_TRY(weir_doc_table_create(&d->docs, d->file, &d->writer, err));
    WEIR_TRY(weir_dump_open_tokens(d, err));
    return create_activations(d, err);
}

static weir_status open_dump(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o, weir_err *err)
{
    WEIR_TRY(weir_tile_writer_init(&d->writer, o->compress, o->threads, err));
    WEIR_TRY(weir_partfile_check_target(&d->out, err));
    if (o->resume)
        WEIR_TRY(weir_dump_resume(d, h, o, err));
    if (!d->resumed)
        WEIR_TRY(create_all(d, h, o, err));
    d->scales.file = d->file;
    return WEIR_OK;
}

static weir_status alloc_dump(weir_dump **out, const char *path, weir_err *err)
{
    weir_dump *d = weir_calloc(1, sizeof *d);
    if (!d)
        return weir_nomem(err, "a dump");
    d->file = d->activations = -1;
    weir_status st = weir_partfile_init(&d->out, path, WEIR_DUMP_FORMAT, err);
    if (st) {
        weir_partfile_free(&d->out);
        weir_free(d);
        return st;
    }
    *out = d;
    return WEIR_OK;
}

static weir_status check_options(const weir_dump_options *o, weir_err *err)
{
    if (o->compress < 0 || o->compress > 9)
        return weir_fail(err, WEIR_E_ARG, "compression level %d is not in 0..9", o->compress);
    if (o->mantissa != 0 && o->mantissa != 7 && o->mantissa != 10)
        return weir_fail(err, WEIR_E_ARG, "a mantissa of %d bits is not offered: 7 or 10", o->mantissa);
    if (o->mantissa && o->f16)
        return weir_fail(err, WEIR_E_ARG, "16-bit floats have their own mantissa: choose one");
    if (o->resume && o->from_passes)
        return weir_fail(err, WEIR_E_ARG,
                         "a recording of passes alone cannot be resumed: nothing tells its rows apart");
    return WEIR_OK;
}

weir_status weir_dump_new(weir_dump **out, const char *path, const weir_dump_header *h, const weir_dump_options *o,
                          weir_err *err)
{
    weir_h5_quiet q;
    weir_dump *d = NULL;
    *out = NULL;
    WEIR_TRY(check_options(o, err));
    WEIR_TRY(alloc_dump(&d, path, err));
    d->ctx = o->ctx > 0 ? o->ctx : h->ctx;
    d->storage = (weir_storage){o->mantissa, o->f16};
    d->log = o->log;
    d->logprob = o->logprob;
    d->logprob_late = o->logprob_late;
    d->from_passes = o->from_passes;
    d->last_tag = INT64_MIN;
    weir_h5_quiet_begin(&q);
    weir_status st = open_dump(d, h, o, err);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        if ((st == WEIR_E_IO || st == WEIR_E_HDF5) && d->file >= 0)
            weir_dump_salvage(d, err);
        if (!d->resumed)
            weir_partfile_drop(&d->out);
        weir_dump_free(d);
        d = NULL;
    }
    weir_h5_quiet_end(&q);
    *out = d;
    return st;
}

int weir_dump_find_act(const weir_dump *d, const char *name)
{
    int64_t i;
    return weir_strmap_get(&d->act_index, name, strlen(name), &i) ? (int)i : -1;
}

static weir_status make_act(weir_dump *d, weir_act *a, const weir_point *p, const int64_t *units, int64_t n,
                            weir_err *err)
{
    WEIR_TRY(weir_act_init(a, p, units, n, d->ctx, &d->storage, err));
    WEIR_TRY(d->resumed ? weir_act_open(a, d->activations, &d->writer, err)
                        : weir_act_create(a, d->activations, p, &d->writer, err));
    if (weir_strmap_add(&d->act_index, (weir_str){a->name, strlen(a->name)}, d->n_acts, NULL, NULL))
        return weir_nomem(err, "hook names");
    return WEIR_OK;
}

weir_status weir_dump_add_point(weir_dump *d, const weir_point *p, const int64_t *units, int64_t n, weir_err *err)
{
    weir_h5_quiet q;
    if (d->begun)
        return weir_fail(err, WEIR_E_ARG, "hook points must be declared before the first row");
    if (weir_dump_find_act(d, p->name) >= 0)
        return WEIR_OK;
    weir_act *grown = weir_grow(d->act, (size_t)d->n_acts, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "a dump's datasets");
    d->act = grown;
    weir_act *a = &grown[d->n_acts];
    memset(a, 0, sizeof *a);
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = make_act(d, a, p, units, n, err);
    if (st) {
        weir_err_where(err, d->resumed ? d->out.part : d->out.path, p->name, -1);
        weir_act_close(a);
    } else {
        d->n_acts++;
    }
    return weir_dump_leave(d, &q, st, err);
}

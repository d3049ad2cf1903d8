/* record/read_list.c: which hooks a dump holds, and how far it goes. See reader.h. */
#include <string.h>

#include "reader.h"

enum { MAX_HOOKS = 1 << 20 };

/* --- /progress: how far an unfinished file goes */

weir_status weir_read_progress(weir_dump_reader *r, weir_err *err)
{
    int64_t complete = 0;
    r->complete = weir_h5_get_int(r->file.id, "complete", &complete) && complete;
    return r->complete ? WEIR_OK : weir_progress_open(&r->progress, r->file.id, err);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t weir_read_limit(const weir_dump_reader *r, const char *stage, int64_t rows)
{
    if (r->complete)
        return rows;
    int i = weir_progress_find(&r->progress, stage);
    return i < 0 ? 0 : least(rows, r->progress.rows[i]); /* a part that is not named has none */
}

/* --- hooks */

/* Heads and size of a row: the axes themselves at rank 3, attributes otherwise. */
static weir_status split_heads(weir_dump_hook *h, const weir_dset *d, weir_err *err)
{
    int64_t heads = 1, size = h->width, product;
    if (d->rank == 3) {
        heads = d->outer;
        size = d->inner;
    } else if (weir_h5_get_int(d->id, "heads", &heads)) {
        if (!weir_h5_get_int(d->id, "head_size", &size) || heads <= 0 || size <= 0 ||
            !weir_mul64(heads, size, &product) || product != h->width)
            return weir_fail(err, WEIR_E_FORMAT,
                             "dataset %s has attributes heads and head_size that do not fit its width", h->name);
    }
    h->heads = heads;
    h->size = size;
    return WEIR_OK;
}

static weir_status read_units(weir_dump_hook *h, const weir_dset *d, weir_err *err)
{
    bool fits;
    int64_t *units;
    WEIR_TRY(weir_h5_get_ints(d->id, "units", h->width, &units, &fits, err));
    h->units = units;
    return fits ? WEIR_OK
                : weir_fail(err, WEIR_E_FORMAT, "dataset %s has an attribute units that does not fit its width",
                            h->name);
}

static weir_status read_letters(weir_dump_hook *h, const weir_dset *d, weir_err *err)
{
    char *letters;
    WEIR_TRY(weir_h5_get_text(d->id, "letters", &letters, err));
    if (!letters && !(letters = weir_strndup("", 0)))
        return weir_nomem(err, "a dump's datasets");
    h->letters = letters;
    return WEIR_OK;
}

/* Rows of an unfinished file: what its tokens and its own part have, if the dataset has them. */
static int64_t readable_rows(const weir_dump_reader *r, const weir_dump_hook *h, int64_t rows)
{
    char stage[WEIR_PROGRESS_NAME];
    bool embed = !strcmp(h->name, "hook_embed") || !strcmp(h->name, "hook_pos_embed");
    weir_progress_name(stage, embed ? WEIR_SITE_EMBED : WEIR_SITE_LNF_OUT, h->layer);
    return weir_read_limit(r, "tokens", weir_read_limit(r, stage, rows));
}

static weir_status describe(const weir_dump_reader *r, weir_dump_hook *h, const weir_dset *d, weir_err *err)
{
    int64_t layer = -1;
    if (d->rank < 2)
        return weir_fail(err, WEIR_E_FORMAT, "dataset %s has another rank than a dump has", h->name);
    weir_h5_get_int(d->id, "layer", &layer);
    h->layer = layer >= 0 && layer <= INT32_MAX ? (int)layer : -1;
    h->width = d->width;
    h->rows = readable_rows(r, h, d->rows);
    WEIR_TRY(split_heads(h, d, err));
    WEIR_TRY(read_units(h, d, err));
    return read_letters(h, d, err);
}

static weir_status add_hook(weir_dump_reader *r, const char *name, const H5L_info_t *info, weir_err *err)
{
    weir_dset d = {0};
    if (info->type != H5L_TYPE_HARD)
        return weir_fail(err, WEIR_E_FORMAT, "%s is a link to another place, not a dataset of this file", name);
    if (r->n_hooks >= MAX_HOOKS)
        return weir_fail(err, WEIR_E_FORMAT, "the file has too many datasets");
    weir_dump_hook *grown = weir_grow(r->hook, (size_t)r->n_hooks, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "a dump's datasets");
    r->hook = grown;
    weir_dump_hook *h = &grown[r->n_hooks];
    memset(h, 0, sizeof *h);
    if (!(h->name = weir_strndup(name, strlen(name))))
        return weir_nomem(err, "a dump's datasets");
    r->n_hooks++;
    weir_status st = weir_dset_open(&d, &r->file, r->group, name, WEIR_ELEM_F32, err);
    if (!st)
        st = describe(r, h, &d, err);
    weir_dset_close(&d);
    return st;
}

typedef struct listing {
    weir_dump_reader *r;
    weir_err *err;
    weir_status st;
} listing;

static herr_t on_link(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    listing *l = user;
    (void)group;
    l->st = add_hook(l->r, name, info, l->err);
    return l->st ? -1 : 0;
}

weir_status weir_read_open_group(weir_dump_reader *r, weir_err *err)
{
    r->group = H5Gopen2(r->file.id, "activations", H5P_DEFAULT);
    if (r->group >= 0)
        return WEIR_OK;
    r->group = 0;
    return weir_h5_fail(err, "cannot open group activations");
}

/* Hook points in the order in which they were declared, where the file keeps it, else by name. */
weir_status weir_read_hooks(weir_dump_reader *r, weir_err *err)
{
    listing l = {.r = r, .err = err, .st = WEIR_OK};
    WEIR_TRY(weir_read_open_group(r, err));
    herr_t e = H5Literate(r->group, weir_h5_link_order(r->group), H5_ITER_INC, NULL, on_link, &l);
    if (l.st)
        return l.st;
    if (e < 0)
        return weir_h5_fail(err, "cannot list group activations");
    r->store = weir_calloc((size_t)r->n_hooks, sizeof *r->store);
    return r->store ? WEIR_OK : weir_nomem(err, "a dump's datasets");
}

weir_status weir_read_recount(weir_dump_reader *r, weir_dump_hook *h, weir_err *err)
{
    weir_dset d = {0};
    weir_status st = weir_dset_open(&d, &r->file, r->group, h->name, WEIR_ELEM_F32, err);
    if (!st && d.width != h->width)
        st = weir_fail(err, WEIR_E_FORMAT, "dataset %s has another width than before", h->name);
    if (!st)
        h->rows = readable_rows(r, h, d.rows);
    weir_dset_close(&d);
    return st;
}

/* record/settle.c: a part of the file that is through while others still grow: a run in the order of layers. */
#include "dump.h"

static weir_status settle_group(weir_dump *d, int group, weir_err *err)
{
    for (int i = 0; i < d->n_columns; i++)
        if (d->column[i].group == group)
            WEIR_TRY(weir_tiled_settle(d->column[i].rows, &d->writer, err));
    return WEIR_OK;
}

/* Is all of it on disk, as the run left it that this one goes on with? */
static bool untouched(const weir_dump *d, int group)
{
    bool same = d->resumed && !d->trimmed;
    for (int i = 0; i < d->n_columns; i++)
        if (d->column[i].group == group)
            same = same && d->column[i].rows->kept == d->column[i].rows->n;
    return same;
}

static weir_status settle(weir_dump *d, const weir_point *p, weir_err *err)
{
    char name[WEIR_PROGRESS_NAME] = "tokens";
    if (p)
        weir_progress_name(name, p->site, p->layer);
    WEIR_TRY(weir_dump_begin(d, err));
    int group = weir_progress_find(&d->progress, name);
    if (untouched(d, group))
        return settle_group(d, group, err);
    WEIR_TRY(weir_dump_flush_bands(d, err));
    WEIR_TRY(settle_group(d, group, err));
    return weir_dump_put(d, false, err);
}

weir_status weir_dump_settle(weir_dump *d, const weir_point *p, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    return weir_dump_leave(d, &q, settle(d, p, err), err);
}

/* record/begin.c: from declarations to rows: scales, /progress, and the list of all datasets that have rows. */
#include "base/mem.h"
#include "dump.h"

static weir_status add_column(weir_dump *d, weir_tiled *rows, const char *entry, weir_err *err)
{
    weir_counted *grown = weir_grow(d->column, (size_t)d->n_columns, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "a dump's datasets");
    d->column = grown;
    grown[d->n_columns].rows = rows;
    if (d->resumed && weir_progress_find(&d->progress, entry) < 0)
        return weir_fail(err, WEIR_E_FORMAT, "%s: /progress has no entry %s: the file is damaged", d->out.part, entry);
    WEIR_TRY(weir_progress_entry(&d->progress, entry, &grown[d->n_columns].group, err));
    d->n_columns++;
    return WEIR_OK;
}

/* Log-probabilities and what hooks say of a whole pass are known at its end. */
static weir_status list_columns(weir_dump *d, weir_err *err)
{
    char entry[WEIR_PROGRESS_NAME];
    int docs;
    for (int i = 0; i < WEIR_TOK_LOGPROB; i++)
        WEIR_TRY(add_column(d, &d->token[i], "tokens", err));
    WEIR_TRY(add_column(d, &d->row, "tokens", err));
    WEIR_TRY(weir_progress_entry(&d->progress, "docs", &docs, err));
    for (int i = 0; i < d->n_acts; i++) {
        weir_progress_name(entry, d->act[i].site, d->act[i].layer);
        WEIR_TRY(add_column(d, &d->act[i].rows, entry, err));
    }
    for (int i = 0; i < d->n_own; i++) {
        weir_own_entry(entry, d->own[i].point);
        WEIR_TRY(add_column(d, &d->own[i].rows, entry, err));
    }
    return d->logprob ? add_column(d, &d->token[WEIR_TOK_LOGPROB], "final", err) : WEIR_OK;
}

static weir_status attach_scales(weir_dump *d, weir_err *err)
{
    int row;
    WEIR_TRY(weir_scales_add(&d->scales, "row", d->row.id, &row, err));
    for (int i = 0; i < WEIR_TOK_COLUMNS; i++)
        if (i != WEIR_TOK_LOGPROB || d->logprob)
            WEIR_TRY(weir_scales_use(&d->scales, d->token[i].id, 1, &row, err));
    for (int i = 0; i < d->n_acts; i++)
        WEIR_TRY(weir_act_scales(&d->act[i], &d->scales, row, err));
    for (int i = 0; i < d->n_own; i++)
        WEIR_TRY(weir_own_scales(&d->own[i], &d->scales, row, err));
    WEIR_TRY(weir_scales_attach(&d->scales, err));
    weir_scales_free(&d->scales);
    return WEIR_OK;
}

weir_status weir_dump_begin(weir_dump *d, weir_err *err)
{
    if (d->begun)
        return WEIR_OK;
    WEIR_TRY(list_columns(d, err));
    if (d->resumed) {
        WEIR_TRY(weir_dump_go_on(d, err));
    } else {
        WEIR_TRY(attach_scales(d, err));
        WEIR_TRY(weir_progress_create(&d->progress, d->file, err));
    }
    d->begun = true;
    return WEIR_OK;
}

int64_t weir_dump_group_rows(const weir_dump *d, int group)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < d->n_columns; i++)
        if (d->column[i].group == group && weir_tiled_rows(d->column[i].rows) < least)
            least = weir_tiled_rows(d->column[i].rows);
    return least == INT64_MAX ? 0 : least;
}

/* What the edit does in the stream: its lines, the lens where answers are to come, the rows that move. */
#include <stdlib.h>

#include "sheet.h"

static int64_t line_layer(const weir_sheet *s, int64_t i, int side)
{
    (void)s, (void)side;
    return i - 1;
}

static weir_status put_lines(const weir_sheet *s, weir_err *err)
{
    const int64_t n = s->moved->lines;
    const weir_sheet_column layer = {.name = "layer", .sides = 1, .number = line_layer, .type = WEIR_ARRAY_I32};
    char(*room)[24] = calloc((size_t)n, sizeof *room);
    weir_str *name = calloc((size_t)n, sizeof *name);
    weir_status st = room && name ? WEIR_OK : weir_sheet_no_memory(err);
    for (int64_t l = 0; l < n && st == WEIR_OK; l++) {
        snprintf(room[l], sizeof room[l], "L%lld", (long long)l - 1);
        name[l] = weir_sheet_string(l == 0 ? "embed" : l < n - 1 ? room[l] : "out");
    }
    if (st == WEIR_OK)
        st = weir_arrays_put_texts(s->w, "lines/name", name, n, err);
    free(room);
    free(name);
    return st == WEIR_OK ? weir_sheet_columns(s, "lines", &layer, 1, n, err) : st;
}

static int64_t lens_question(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->moved->prompt[i].asked - s->v->asked->v;
}

static int64_t lens_token(const weir_sheet *s, int64_t i, int answer)
{
    return s->moved->prompt[i].token[answer];
}

static int64_t lens_known(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->moved->prompt[i].asked->other != NULL;
}

static int64_t lens_shared(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->moved->prompt[i].shared;
}

static int64_t lens_start(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->moved->prompt[i].start;
}

static int64_t lens_count(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->moved->prompt[i].count;
}

static weir_status put_lens(const weir_sheet *s, weir_err *err)
{
    static const weir_sheet_column of[] = {
        {.name = "question", .sides = 1, .number = lens_question, .type = WEIR_ARRAY_I64},
        {.name = "token", .sides = 2, .number = lens_token, .type = WEIR_ARRAY_I32},
        {.name = "true_known", .sides = 1, .number = lens_known, .type = WEIR_ARRAY_U8},
        {.name = "shared", .sides = 1, .number = lens_shared, .type = WEIR_ARRAY_I64},
        {.name = "start", .sides = 1, .number = lens_start, .type = WEIR_ARRAY_I64},
        {.name = "count", .sides = 1, .number = lens_count, .type = WEIR_ARRAY_I64}};
    const weir_moved *m = s->moved;
    const int64_t dim[3] = {m->lines, m->n, WEIR_MOVED_SIDES};
    WEIR_TRY(weir_sheet_columns(s, "lens", of, WEIR_SHEET_COUNT(of), m->n, err));
    WEIR_TRY(weir_arrays_put(s->w, "lens/new_logprob", WEIR_ARRAY_F32, 3, dim, m->logprob[WEIR_MOVED_NEW], err));
    WEIR_TRY(weir_arrays_put(s->w, "lens/true_logprob", WEIR_ARRAY_F32, 3, dim, m->logprob[WEIR_MOVED_TRUE], err));
    WEIR_TRY(weir_arrays_put(s->w, "lens/top_id", WEIR_ARRAY_I32, 3, dim, m->top, err));
    return weir_arrays_put(s->w, "lens/top_logprob", WEIR_ARRAY_F32, 3, dim, m->top_logprob, err);
}

/* Which prompt a row of the stream is of. */
static int64_t row_prompt(const weir_sheet *s, int64_t row, int side)
{
    int64_t i = s->moved->n - 1;
    (void)side;
    while (i > 0 && s->moved->prompt[i].start > row)
        i--;
    return i;
}

static int64_t row_pos(const weir_sheet *s, int64_t row, int side)
{
    const weir_moved_prompt *p = &s->moved->prompt[row_prompt(s, row, side)];
    return p->ids - p->count + row - p->start;
}

static int64_t row_id(const weir_sheet *s, int64_t row, int side)
{
    return s->moved->prompt[row_prompt(s, row, side)].id[row_pos(s, row, side)];
}

static weir_status put_rows(const weir_sheet *s, weir_err *err)
{
    static const weir_sheet_column of[] = {
        {.name = "id", .sides = 1, .number = row_id, .type = WEIR_ARRAY_I32},
        {.name = "pos", .sides = 1, .number = row_pos, .type = WEIR_ARRAY_I64},
        {.name = "prompt", .sides = 1, .number = row_prompt, .type = WEIR_ARRAY_I64}};
    const weir_moved *m = s->moved;
    const int64_t dim[3] = {m->lines, m->rows, WEIR_MOVED_SIDES};
    WEIR_TRY(weir_sheet_columns(s, "tokens", of, WEIR_SHEET_COUNT(of), m->rows, err));
    WEIR_TRY(weir_arrays_put(s->w, "stream/norm", WEIR_ARRAY_F64, 3, dim, m->norm, err));
    return weir_arrays_put(s->w, "stream/difference", WEIR_ARRAY_F64, 2, dim, m->difference, err);
}

weir_status weir_sheet_stream(const weir_sheet *s, weir_err *err)
{
    WEIR_TRY(put_lines(s, err));
    WEIR_TRY(put_lens(s, err));
    return put_rows(s, err);
}

#include "translate.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"

/* The translator of a line; -1: its site has none. */
static int64_t translator_of(const weir_lens_translate *t, const weir_lens_stack *s, int line)
{
    const weir_point *p = s->point[s->source[line]];
    return weir_tuned_index(t->lens, p->site, p->layer);
}

static bool is_translated(const weir_lens_translate *t, const weir_lens_stack *s, int line)
{
    return translator_of(t, s, line) < weir_tuned_info_of(t->lens)->L;
}

int weir_lens_translate_open(weir_lens_translate *t, const weir_cli *cli, const char *dir, const weir_model *m,
                             const weir_lens_stack *s, const weir_tuned_options *o)
{
    weir_err err = {0};
    if (weir_tuned_open(&t->lens, dir, m, o, &err) != WEIR_OK)
        return weir_cli_fail(cli, &err);
    for (int l = 0; l < s->n; l++)
        if (translator_of(t, s, l) < 0)
            return weir_cli_usage(cli, "--tuned has translators for resid-pre and resid-post, not for --site %s",
                                  s->line[l].site);
    if (asprintf(&t->title, "tuned lens of %s (%.12s)", dir, weir_tuned_info_of(t->lens)->sha256) >= 0)
        return WEIR_EXIT_OK;
    t->title = NULL;
    return weir_cli_error(cli, "out of memory");
}

weir_status weir_lens_translate_room(weir_lens_translate *t, const weir_lens_stack *s, int64_t room, weir_err *err)
{
    if (!t->lens)
        return WEIR_OK;
    const size_t row = (size_t)weir_tuned_info_of(t->lens)->C * sizeof(float);
    t->row = calloc((size_t)s->n, sizeof *t->row);
    bool made = t->row != NULL;
    for (int l = 0; made && l < s->n; l++)
        made = !is_translated(t, s, l) || (t->row[l] = malloc((size_t)room * row));
    return made ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory for translated rows (here: a smaller --batch)");
}

weir_status weir_lens_translate_rows(weir_lens_translate *t, const weir_lens_stack *s, int line, const float **x,
                                     int64_t n, weir_err *err)
{
    if (!t->row || !t->row[line])
        return WEIR_OK;
    WEIR_TRY(weir_tuned_apply(t->lens, translator_of(t, s, line), *x, n, t->row[line], err));
    *x = t->row[line];
    return WEIR_OK;
}

void weir_lens_translate_close(weir_lens_translate *t, const weir_lens_stack *s)
{
    for (int l = 0; t->row && l < s->n; l++)
        free(t->row[l]);
    free(t->row);
    free(t->title);
    weir_tuned_free(t->lens);
}

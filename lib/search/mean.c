/* search/mean.c: see mean.h. A document ends when the table sees a row of the next one, or is told so. */
#include "search/mean.h"

#include <math.h>

#include "search/rows.h"

weir_status weir_mean_new(weir_mean *m, int64_t n, weir_err *err)
{
    bool ok = true;
    m->sum = weir_calloc((size_t)n, sizeof *m->sum);
    m->count = weir_calloc((size_t)n, sizeof *m->count);
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        m->peak[which] = weir_calloc((size_t)n, sizeof *m->peak[which]);
        m->peak_at[which] = weir_calloc((size_t)n, sizeof *m->peak_at[which]);
        ok = ok && m->peak[which] && m->peak_at[which];
    }
    return ok && m->sum && m->count ? WEIR_OK : weir_nomem(err, "means of documents");
}

void weir_mean_free(weir_mean *m)
{
    weir_free(m->sum);
    weir_free(m->count);
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        weir_free(m->peak[which]);
        weir_free(m->peak_at[which]);
    }
}

weir_status weir_mean_ends(weir_neurons *s, const weir_ntable *t, int64_t m, weir_err *err)
{
    const weir_pass *p = &s->pass;
    bool open = t->mean.open;
    uint32_t doc = t->mean.doc;
    for (int64_t r = 0; r < m; r++) {
        const uint32_t now = p->at[p->taken[r]].doc;
        if (open && now != doc)
            WEIR_TRY(weir_document_key(s, doc, &p->ended[r], err));
        open = true;
        doc = now;
    }
    return WEIR_OK;
}

/* The document is over for neuron i. */
static void end_neuron(weir_ntable *t, int64_t i, uint32_t doc, uint64_t key)
{
    weir_mean *m = &t->mean;
    if (m->count[i] == 0)
        return;
    const float mean = (float)(m->sum[i] / (double)m->count[i]);
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        const weir_entry e = {mean, {doc, m->peak_at[which][i]}, key, 1};
        if (t->list[which].room)
            weir_lists_put(&t->list[which], (weir_neurons_list)which, i, &e);
    }
    m->count[i] = 0;
    m->sum[i] = 0;
}

static void add_value(weir_mean *m, int64_t i, float x, uint32_t pos)
{
    const float was[] = {m->peak[WEIR_NEURONS_TOP][i], m->peak[WEIR_NEURONS_BOTTOM][i], m->peak[WEIR_NEURONS_ABS][i]};
    const bool first = m->count[i] == 0, peak[] = {x > was[0], x<was[1], fabsf(x)> fabsf(was[2])};
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++)
        if (first || peak[which]) {
            m->peak[which][i] = x;
            m->peak_at[which][i] = pos;
        }
    m->sum[i] += (double)x;
    m->count[i]++;
}

void weir_mean_add(const weir_neurons *s, weir_ntable *t, int64_t first, int64_t nb, const float *x, int64_t r,
                   int64_t m)
{
    const weir_pass *p = &s->pass;
    bool open = r > 0 || t->mean.open;
    uint32_t doc = r > 0 ? p->at[p->taken[r - 1]].doc : t->mean.doc;
    for (const int64_t end = r + m; r < end; r++, x += WEIR_NEURONS_BLOCK) {
        const weir_place at = p->at[p->taken[r]];
        for (int64_t j = 0; open && at.doc != doc && j < nb; j++)
            end_neuron(t, first + j, doc, p->ended[r]);
        for (int64_t j = 0; j < nb; j++)
            if (isfinite(x[j]))
                add_value(&t->mean, first + j, x[j], at.pos);
        open = true;
        doc = at.doc;
    }
}

void weir_mean_go_on(const weir_neurons *s, weir_ntable *t, int64_t m)
{
    if (m == 0)
        return;
    t->mean.open = true;
    t->mean.doc = s->pass.at[s->pass.taken[m - 1]].doc;
}

weir_status weir_mean_settle(weir_neurons *s, weir_ntable *t, weir_err *err)
{
    uint64_t key;
    if (!t->mean.open)
        return WEIR_OK;
    WEIR_TRY(weir_document_key(s, t->mean.doc, &key, err));
    for (int64_t i = 0; i < t->n; i++)
        end_neuron(t, i, t->mean.doc, key);
    t->mean.open = false;
    return WEIR_OK;
}

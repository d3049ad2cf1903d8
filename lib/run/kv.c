/* The sequences of a pass: checks, the description of the rows, and where each sequence's keys and values are.
 *
 * A sequence with a slot has room of its own in every layer. One without uses memory that every layer overwrites; there
 * its keys lie in panels of 48, so that many short sequences would take up to 48 times their size. They are therefore
 * put into groups whose panels fit the plan, and attention goes group by group (values are not padded and have room for
 * all). */
#include <string.h>

#include "state.h"

enum { ALIGN_FLOATS = 16 };

static int64_t round_up(int64_t n)
{
    return (n + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static int64_t key_floats(const weir_run *r, int64_t len)
{
    return round_up((int64_t)weir_attn_k_floats(r->spec->K, r->spec->D, len));
}

int64_t weir_kv_value_floats(const weir_run *r, int64_t len)
{
    return round_up((int64_t)weir_attn_v_floats(r->spec->K, r->spec->D, len));
}

int64_t weir_kv_slot_floats(const weir_run *r)
{
    return key_floats(r, r->max_len) + weir_kv_value_floats(r, r->max_len);
}

static weir_status check_slot(weir_run *r, const weir_seq *q, int64_t i)
{
    if (q->slot < -1 || q->slot >= r->n_slots)
        return weir_fail(r->err, WEIR_E_ARG, "sequence %lld uses slot %d, but the run has %d", (long long)i, q->slot,
                         r->n_slots);
    if (q->slot < 0)
        return WEIR_OK;
    const weir_slot *s = &r->slot[q->slot];
    if (s->n)
        return weir_fail(r->err, WEIR_E_ARG, "slot %d is used by two sequences of one pass", q->slot);
    if (s->len && s->part != r->part)
        return weir_fail(r->err, WEIR_E_ARG, "slot %d was filled by another part of the model: reset it for each part",
                         q->slot);
    if (s->len && s->from > weir_run_first(r))
        return weir_fail(
            r->err, WEIR_E_ARG,
            "slot %d was continued from layer %lld on (weir_run_forward_from) and lacks the last tokens in "
            "the layers before: fill it again from the start",
            q->slot, (long long)s->from);
    if (s->len && s->layers < r->layers)
        return weir_fail(r->err, WEIR_E_ARG,
                         "slot %d holds %lld of the %lld layers that this pass needs: fill it again from the start "
                         "with the same flags",
                         q->slot, (long long)s->layers, (long long)r->layers);
    return WEIR_OK;
}

static weir_status check_ids(weir_run *r, const weir_seq *q, int64_t i, int64_t past)
{
    int64_t rows = weir_model_embed_rows(r->model);
    for (int64_t t = 0; t < q->n; t++)
        if (q->ids[t] < 0 || q->ids[t] >= rows)
            return weir_fail(r->err, WEIR_E_ARG,
                             "token id %d at position %lld of sequence %lld is outside the vocabulary, 0 to %lld",
                             q->ids[t], (long long)(past + t), (long long)i, (long long)(rows - 1));
    return WEIR_OK;
}

static weir_status check_seq(weir_run *r, const weir_seq *q, int64_t i, int64_t rows)
{
    if (q->n < 1)
        return weir_fail(r->err, WEIR_E_ARG, "sequence %lld has no tokens", (long long)i);
    if (q->n > r->max_rows - rows)
        return weir_fail(r->err, WEIR_E_ARG,
                         "sequences 0 to %lld have more than the %lld rows that the run was made for (max_rows)",
                         (long long)i, (long long)r->max_rows);
    WEIR_TRY(check_slot(r, q, i));
    int64_t past = q->slot < 0 ? 0 : r->slot[q->slot].len;
    if (q->n > r->max_len - past)
        return weir_fail(r->err, WEIR_E_ARG, "sequence %lld reaches %lld tokens, but %s %lld", (long long)i,
                         (long long)(past + q->n),
                         r->max_len == r->spec->ctx ? "the model's context has" : "the run was made for (max_len)",
                         (long long)r->max_len);
    return check_ids(r, q, i, past);
}

static void fill_rows(weir_run *r, const weir_seq *q, int64_t i, int64_t row0, int64_t past)
{
    weir_buffers *b = &r->b;
    memcpy(b->id + row0, q->ids, (size_t)q->n * sizeof *b->id);
    for (int64_t t = 0; t < q->n; t++) {
        b->seq[row0 + t] = (int32_t)i;
        b->pos[row0 + t] = past + t;
        b->len[row0 + t] = past + q->n;
        b->tag[row0 + t] = q->tag;
        b->doc_pos[row0 + t] = q->place ? q->place[t] : past + t;
        b->doc_len[row0 + t] = q->total ? q->total : past + q->n;
        b->keep[row0 + t] = q->keep ? q->keep[t] != 0 : 1;
    }
}

/* Places of sequences without a slot: the next free keys and values, or the next group when the keys are full. */
static void place(weir_run *r, weir_attn_seq *a, int64_t *keys, int64_t *values)
{
    int64_t need = key_floats(r, a->n);
    if (*keys + need > r->key_floats) {
        r->n_groups++;
        *keys = 0;
    }
    a->cap = a->n;
    a->kp = r->b.keys + *keys;
    a->v = r->b.values + *values;
    *keys += need;
    *values += weir_kv_value_floats(r, a->n);
}

static void release_slots(weir_run *r)
{
    for (int i = 0; i < r->n_slots; i++)
        r->slot[i].n = 0;
}

static weir_status lay_out(weir_run *r, const weir_seq *seqs, int64_t n_seq)
{
    int64_t rows = 0, keys = 0, values = 0;
    r->longest = 0;
    r->n_groups = 1;
    for (int64_t i = 0; i < n_seq; i++) {
        const weir_seq *q = &seqs[i];
        WEIR_TRY(check_seq(r, q, i, rows));
        weir_slot *slot = q->slot < 0 ? NULL : &r->slot[q->slot];
        weir_attn_seq *a = &r->b.span[i];
        *a = (weir_attn_seq){.row0 = rows, .n = q->n, .past = slot ? slot->len : 0, .cap = r->max_len};
        if (slot)
            slot->n = q->n;
        else
            place(r, a, &keys, &values);
        r->b.slot[i] = q->slot;
        r->b.group[i] = r->n_groups - 1;
        fill_rows(r, q, i, rows, a->past);
        if (a->past + a->n > r->longest)
            r->longest = a->past + a->n;
        rows += q->n;
    }
    const weir_buffers *b = &r->b;
    r->n_seq = n_seq;
    r->rows = (weir_rows){.n = rows,
                          .id = b->id,
                          .seq = b->seq,
                          .pos = b->pos,
                          .keep = b->keep,
                          .len = b->len,
                          .tag = b->tag,
                          .doc_pos = b->doc_pos,
                          .doc_len = b->doc_len,
                          .threads = r->threads};
    return WEIR_OK;
}

weir_status weir_kv_begin(weir_run *r, const weir_seq *seqs, int64_t n_seq)
{
    release_slots(r);
    if (n_seq < 1)
        return weir_fail(r->err, WEIR_E_ARG, "a pass needs at least one sequence");
    return lay_out(r, seqs, n_seq);
}

void weir_kv_layer(weir_run *r, int64_t layer)
{
    for (int64_t i = 0; i < r->n_seq; i++) {
        if (r->b.slot[i] < 0)
            continue;
        weir_attn_seq *a = &r->b.span[i];
        a->kp = r->b.cache + (r->b.slot[i] * r->kv_layers + (r->by_layer ? 0 : layer)) * weir_kv_slot_floats(r);
        a->v = a->kp + key_floats(r, r->max_len);
    }
}

void weir_kv_group(const weir_run *r, int group, int64_t *from, int64_t *to)
{
    int64_t i = 0;
    while (i < r->n_seq && r->b.group[i] < group)
        i++;
    *from = i;
    while (i < r->n_seq && r->b.group[i] == group)
        i++;
    *to = i;
}

void weir_kv_commit(weir_run *r)
{
    for (int i = 0; i < r->n_slots; i++) {
        weir_slot *s = &r->slot[i];
        if (!s->n)
            continue;
        s->layers = s->len && s->layers < r->layers ? s->layers : r->layers;
        s->from = s->from > weir_run_first(r) ? s->from : weir_run_first(r);
        s->part = r->part;
        s->len += s->n;
        s->n = 0;
    }
}

void weir_run_slot_reset(weir_run *r, int slot)
{
    if (slot >= 0 && slot < r->n_slots)
        r->slot[slot] = (weir_slot){0};
}

int64_t weir_run_slot_len(const weir_run *r, int slot)
{
    return slot >= 0 && slot < r->n_slots ? r->slot[slot].len : 0;
}

/* Keys lie in panels, head after head, values row after row: of both only what n tokens take. */
static void copy_tokens(weir_run *r, int to, int from, int64_t n)
{
    const weir_spec *s = r->spec;
    const size_t keys = weir_attn_k_floats(1, s->D, r->max_len), values = (size_t)(r->max_len * s->D);
    const size_t held = weir_attn_k_floats(1, s->D, n) * sizeof(float), rows = (size_t)(n * s->D) * sizeof(float);
    const int64_t layer = weir_kv_slot_floats(r), slot = r->kv_layers * layer;
    for (int64_t l = 0; l < r->kv_layers; l++) {
        float *dst = r->b.cache + to * slot + l * layer;
        const float *src = r->b.cache + from * slot + l * layer;
        for (int64_t h = 0; h < s->K; h++)
            memcpy(dst + (size_t)h * keys, src + (size_t)h * keys, held);
        dst += key_floats(r, r->max_len);
        src += key_floats(r, r->max_len);
        for (int64_t h = 0; h < s->K; h++)
            memcpy(dst + (size_t)h * values, src + (size_t)h * values, rows);
    }
}

weir_status weir_run_slot_copy(weir_run *r, int to, int from, int64_t n, weir_err *err)
{
    if (to < 0 || to >= r->n_slots || from < 0 || from >= r->n_slots)
        return weir_fail(err, WEIR_E_ARG, "slot %d to slot %d: the run has %d", from, to, r->n_slots);
    if (n < 0 || n > r->slot[from].len)
        return weir_fail(err, WEIR_E_ARG, "slot %d holds %lld tokens, not %lld", from, (long long)r->slot[from].len,
                         (long long)n);
    if (n && to != from)
        copy_tokens(r, to, from, n);
    r->slot[to] = n ? r->slot[from] : (weir_slot){0};
    r->slot[to].len = n;
    return WEIR_OK;
}

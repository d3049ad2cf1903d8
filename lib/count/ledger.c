/* What a checkpoint holds against what its configuration says. Every tensor falls under one line; items of the bill
 * that differ give a line each. So the sums close by construction: stored = expected + the surplus of all lines. */
#include <string.h>

#include "../io/checkpoint.h"
#include "../io/safetensors.h"
#include "impl.h"
#include "tensors.h"

enum { LINES = WEIR_LEDGER_KINDS * 4 + WEIR_BILL_ITEMS };

typedef struct owned {
    weir_ledger l; /* first: what callers hold is this */
    weir_arena arena;
    weir_ledger_line line[LINES];
    bool embedded; /* a table has been seen */
    bool ok;       /* of the arithmetic */
} owned;

static void add(owned *o, int64_t *to, int64_t v)
{
    o->ok = weir_add64(*to, v, to) && o->ok;
}

/* --- tensors */

static int64_t elements_of(owned *o, const weir_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        o->ok = weir_mul64(n, t->shape[i], &n) && o->ok;
    return n;
}

static weir_ledger_line *line_for(owned *o, weir_ledger_kind kind, const char *what)
{
    for (int i = 0; i < o->l.n_lines; i++)
        if (o->line[i].kind == kind && !strcmp(o->line[i].what, what))
            return &o->line[i];
    weir_ledger_line *l = &o->line[o->l.n_lines++];
    l->kind = kind;
    l->what = what;
    return l;
}

/* n parameters of a tensor that is several matrices: the last part takes what division leaves. */
static void put_items(owned *o, const weir_tensor_use *use, int64_t n)
{
    int64_t whole = 0, left = n;
    int parts = 0;
    for (; parts < 3 && use->share[parts]; parts++)
        whole += use->share[parts];
    for (int i = 0; i < parts; i++) {
        const int64_t v = i == parts - 1 ? left : (int64_t)((__extension__(__int128) n * use->share[i]) / whole);
        add(o, &o->l.item[use->item[i]], v);
        left -= v;
    }
}

/* A model has one table: the next one, under whatever name, is a copy. */
static void notice_copy(owned *o, weir_tensor_use *use)
{
    if (use->share[0] && use->item[0] == WEIR_BILL_EMBED) {
        if (o->embedded)
            *use = (weir_tensor_use){
                .kind = WEIR_LEDGER_COPY, .what = "copies of a table that is there already", .packed = 1};
        o->embedded = true;
    }
}

static weir_status put_tensor(owned *o, const weir_tensor *t, const weir_blueprint *b, weir_err *err)
{
    weir_tensor_use use = weir_tensor_use_of(t, b);
    const int64_t stored = elements_of(o, t);
    notice_copy(o, &use);
    int64_t params = 0;
    if (use.kind == WEIR_LEDGER_WEIGHTS || use.kind == WEIR_LEDGER_PACKED) {
        o->ok = weir_mul64(stored, use.packed, &params) && o->ok;
        put_items(o, &use, params);
        use.what = use.kind == WEIR_LEDGER_WEIGHTS ? "weights, one an element" : "packed weights, several an element";
    }
    weir_ledger_line *l = line_for(o, use.kind, use.what);
    if (!l->example && !(l->example = weir_arena_strndup(&o->arena, t->name, strlen(t->name))))
        return weir_nomem(err, "the ledger");
    l->tensors++;
    add(o, &l->bytes, (int64_t)t->bytes);
    add(o, &l->stored, stored);
    add(o, &l->params, params);
    l->surplus = l->stored - l->params;
    o->l.tensors++;
    add(o, &o->l.bytes, (int64_t)t->bytes);
    add(o, &o->l.stored, stored);
    add(o, &o->l.params, params);
    add(o, &o->l.of_type[t->dtype], stored);
    return WEIR_OK;
}

/* --- items that differ */

static const char *why(owned *o, const weir_blueprint *b, weir_bill_item item, int64_t more, int64_t there)
{
    char text[200];
    const int64_t width = item == WEIR_BILL_POSITION ? b->width : b->embed;
    const bool table = item == WEIR_BILL_EMBED || item == WEIR_BILL_UNEMBED || item == WEIR_BILL_POSITION;
    const int64_t rows = (more < 0 ? -more : more) / width;
    const char *name = weir_bill_item_name(item);
    if (!there)
        snprintf(text, sizeof text, "%s: not in the file", name);
    else if (table && more % width == 0)
        snprintf(text, sizeof text, "%s: %lld row%s %s than the configuration says%s", name, (long long)rows,
                 rows == 1 ? "" : "s", more > 0 ? "more" : "fewer", more > 0 ? " (padding)" : "");
    else
        snprintf(text, sizeof text, "%s: %s than the configuration says, and weir does not know why", name,
                 more > 0 ? "more" : "less");
    return weir_arena_strndup(&o->arena, text, strlen(text));
}

static weir_status compare_items(owned *o, const weir_blueprint *b, const weir_bill *bill, weir_err *err)
{
    for (int i = 0; i < WEIR_BILL_ITEMS; i++) {
        const int64_t more = o->l.item[i] - bill->item[i].params;
        if (!more)
            continue;
        weir_ledger_line *l = &o->line[o->l.n_lines++];
        l->kind = WEIR_LEDGER_ITEM;
        l->item = (weir_bill_item)i;
        l->surplus = more;
        if (!(l->what = why(o, b, l->item, more, o->l.item[i])))
            return weir_nomem(err, "the ledger");
    }
    return WEIR_OK;
}

/* --- files */

static weir_status put_all(owned *o, const weir_tensor *t, int64_t n, const weir_blueprint *b, const weir_bill *bill,
                           const char *path, weir_err *err)
{
    for (int64_t i = 0; i < n; i++)
        WEIR_TRY(put_tensor(o, &t[i], b, err));
    if (!o->ok) {
        weir_fail(err, WEIR_E_SHAPE, "the tensors have more elements than can be counted (2^63)");
        weir_err_where(err, path, NULL, -1);
        return WEIR_E_SHAPE;
    }
    o->l.expected = bill->total.params;
    return compare_items(o, b, bill, err);
}

static weir_status put_file(owned *o, const char *path, const weir_blueprint *b, const weir_bill *bill, weir_err *err)
{
    weir_filemap map;
    weir_arena arena = {0};
    weir_tensor *t;
    int64_t n;
    WEIR_TRY(weir_filemap_open(&map, path, err));
    weir_status s = weir_safetensors_parse(&map, &arena, &t, &n, err);
    if (s == WEIR_OK)
        s = put_all(o, t, n, b, bill, path, err);
    weir_arena_free(&arena);
    weir_filemap_close(&map);
    return s;
}

static weir_status put_checkpoint(owned *o, const char *path, const weir_blueprint *b, const weir_bill *bill,
                                  weir_err *err)
{
    weir_checkpoint c;
    WEIR_TRY(weir_checkpoint_open(&c, path, err));
    const weir_status s = put_all(o, c.tensor, c.n_tensors, b, bill, path, err);
    weir_checkpoint_close(&c);
    return s;
}

/* Does the directory have a file of that name? */
static weir_status has_file(bool *yes, const char *dir, const char *name, weir_err *err)
{
    char *path = weir_path_join(dir, name);
    if (!path)
        return weir_nomem(err, "a path");
    *yes = weir_path_is_file(path);
    weir_free(path);
    return WEIR_OK;
}

static weir_status has_tensors(bool *yes, weir_count_source source, const char *path, weir_err *err)
{
    *yes = source != WEIR_SOURCE_CONFIG;
    if (source != WEIR_SOURCE_DIRECTORY)
        return WEIR_OK;
    WEIR_TRY(has_file(yes, path, "model.safetensors", err));
    return *yes ? WEIR_OK : has_file(yes, path, "model.safetensors.index.json", err);
}

weir_status weir_ledger_open(weir_ledger **out, const char *path, const weir_blueprint *b, const weir_bill *bill,
                             weir_err *err)
{
    weir_count_source source;
    bool tensors;
    *out = NULL;
    WEIR_TRY(weir_count_source_of(&source, path, err));
    WEIR_TRY(has_tensors(&tensors, source, path, err));
    if (!tensors)
        return WEIR_OK;
    owned *o = weir_calloc(1, sizeof *o);
    if (!o)
        return weir_nomem(err, "the ledger");
    o->ok = true;
    o->l.line = o->line;
    const weir_status s =
        source == WEIR_SOURCE_SAFETENSORS ? put_file(o, path, b, bill, err) : put_checkpoint(o, path, b, bill, err);
    if (s != WEIR_OK) {
        weir_ledger_free(&o->l);
        return s;
    }
    *out = &o->l;
    return WEIR_OK;
}

void weir_ledger_free(weir_ledger *l)
{
    owned *o = (owned *)l;
    if (!o)
        return;
    weir_arena_free(&o->arena);
    weir_free(o);
}

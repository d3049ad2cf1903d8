#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

#include <weir/json.h>

#include "cursor.h"

#define HEADER_MAX 100000000 /* the limit of the reference implementation */

static const struct {
    const char *name;
    int bits;
    weir_dtype dtype;
} TYPE[] = {
    {"F32", 32, WEIR_F32},          {"F16", 16, WEIR_F16},      {"BF16", 16, WEIR_BF16},
    {"BOOL", 8, WEIR_OTHER},        {"U8", 8, WEIR_OTHER},      {"I8", 8, WEIR_OTHER},
    {"I16", 16, WEIR_OTHER},        {"U16", 16, WEIR_OTHER},    {"I32", 32, WEIR_OTHER},
    {"U32", 32, WEIR_OTHER},        {"I64", 64, WEIR_OTHER},    {"U64", 64, WEIR_OTHER},
    {"F64", 64, WEIR_OTHER},        {"C64", 64, WEIR_OTHER},    {"F8_E4M3", 8, WEIR_OTHER},
    {"F8_E5M2", 8, WEIR_OTHER},     {"F8_E8M0", 8, WEIR_OTHER}, {"F8_E4M3FNUZ", 8, WEIR_OTHER},
    {"F8_E5M2FNUZ", 8, WEIR_OTHER}, {"F6_E2M3", 6, WEIR_OTHER}, {"F6_E3M2", 6, WEIR_OTHER},
    {"F4", 4, WEIR_OTHER},
};
#define N_TYPES ((int)(sizeof TYPE / sizeof *TYPE))

/* A tensor as its header entry tells it. */
typedef struct entry {
    weir_tensor t;
    int type; /* index in TYPE, -1: not seen yet */
    bool shaped, placed;
    int64_t begin, end; /* relative to the data section */
    int64_t order;      /* in the header */
} entry;

typedef struct table {
    entry *e;
    int64_t n;
} table;

static void read_dtype(weir_json *j, entry *e)
{
    weir_str s = weir_json_string(j);
    for (int i = 0; i < N_TYPES; i++)
        if (weir_str_eq(s, TYPE[i].name))
            e->type = i;
    if (j->status == WEIR_OK && e->type < 0) {
        j->status = weir_fail(j->err, WEIR_E_UNSUPPORTED, "unknown dtype \"%.*s\"", s.n > 40 ? 40 : (int)s.n, s.p);
        weir_err_where(j->err, j->file, NULL, (int64_t)j->pos);
    }
}

/* Sizes and offsets are read into int64_t: nothing beyond it can be a place in a file. */
static int64_t read_size(weir_json *j)
{
    uint64_t v = weir_json_uint(j);
    if (v > INT64_MAX) {
        weir_json_fail(j, "%llu is too large", (unsigned long long)v);
        return 0;
    }
    return (int64_t)v;
}

static void read_shape(weir_json *j, entry *e)
{
    weir_json_array(j);
    while (weir_json_item(j)) {
        if (e->t.rank == WEIR_MAX_RANK) {
            j->status = weir_fail(j->err, WEIR_E_UNSUPPORTED, "more than %d axes: weir does not handle such tensors",
                                  WEIR_MAX_RANK);
            weir_err_where(j->err, j->file, NULL, (int64_t)j->pos);
            return;
        }
        e->t.shape[e->t.rank++] = read_size(j);
    }
    for (int i = e->t.rank; i < WEIR_MAX_RANK; i++)
        e->t.shape[i] = 1;
    e->shaped = true;
}

static void read_offsets(weir_json *j, entry *e)
{
    int64_t v[2] = {0};
    int n = 0;
    weir_json_array(j);
    while (weir_json_item(j)) {
        if (n == 2) {
            weir_json_fail(j, "data_offsets has more than two numbers");
            return;
        }
        v[n++] = read_size(j);
    }
    if (n != 2)
        weir_json_fail(j, "data_offsets has fewer than two numbers");
    else if (v[0] > v[1])
        weir_json_fail(j, "data_offsets end before they begin");
    e->begin = v[0];
    e->end = v[1];
    e->placed = true;
}

/* The bytes that dtype and shape ask for must be those that the offsets give. */
static void check_size(weir_json *j, entry *e)
{
    int64_t bits = TYPE[e->type].bits;
    bool fits = true;
    for (int i = 0; i < e->t.rank && fits; i++)
        fits = weir_mul64(bits, e->t.shape[i], &bits);
    if (!fits)
        weir_json_fail(j, "the shape's size overflows");
    else if (bits % 8)
        weir_json_fail(j, "the shape does not fill whole bytes");
    else if (bits / 8 != e->end - e->begin)
        weir_json_fail(j, "dtype and shape need %lld bytes, data_offsets give %lld", (long long)(bits / 8),
                       (long long)(e->end - e->begin));
    e->t.dtype = TYPE[e->type].dtype;
    e->t.bytes = (size_t)(e->end - e->begin);
}

static void read_entry(weir_json *j, entry *e)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "dtype"))
            read_dtype(j, e);
        else if (weir_str_eq(key, "shape"))
            read_shape(j, e);
        else if (weir_str_eq(key, "data_offsets"))
            read_offsets(j, e);
        else
            weir_json_fail(j, "unknown field \"%.*s\"", key.n > 40 ? 40 : (int)key.n, key.p);
    }
    if (j->status != WEIR_OK)
        return;
    if (e->type < 0 || !e->shaped || !e->placed)
        weir_json_fail(j, "%s is missing", e->type < 0 ? "dtype" : !e->shaped ? "shape" : "data_offsets");
    else
        check_size(j, e);
}

static void read_metadata(weir_json *j)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key))
        weir_json_string(j);
}

/* A fresh entry, or NULL out of memory. */
static entry *add_entry(table *t)
{
    entry *grown = weir_grow(t->e, (size_t)t->n, sizeof *grown);
    if (!grown)
        return NULL;
    t->e = grown;
    grown[t->n] = (entry){.type = -1, .order = t->n};
    return &grown[t->n++];
}

static void read_tensor(weir_json *j, weir_arena *arena, table *t, weir_str name)
{
    if (name.n && memchr(name.p, '\0', name.n)) {
        weir_json_fail(j, "a tensor's name holds a NUL");
        return;
    }
    entry *e = add_entry(t);
    if (e)
        e->t.name = weir_arena_strndup(arena, name.p, name.n);
    if (!e || !e->t.name) {
        j->status = weir_nomem(j->err, "the table of tensors");
        return;
    }
    read_entry(j, e);
    if (j->status != WEIR_OK)
        weir_err_where(j->err, NULL, e->t.name, -1);
}

static void read_header(weir_json *j, weir_arena *arena, table *t)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "__metadata__"))
            read_metadata(j);
        else
            read_tensor(j, arena, t, key);
    }
    weir_json_end(j);
}

static int by_place(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* The tensors must tile the data section: no gap, no overlap, nothing before or behind. */
static weir_status place(const weir_filemap *m, table *t, int64_t data, weir_err *err)
{
    int64_t at = 0, size = (int64_t)m->size - data;
    if (t->n)
        qsort(t->e, (size_t)t->n, sizeof *t->e, by_place);
    for (int64_t i = 0; i < t->n; i++) {
        entry *e = &t->e[i];
        weir_status s = WEIR_OK;
        if (e->begin != at)
            s = weir_fail(err, WEIR_E_FORMAT,
                          e->begin < at ? "overlaps the tensor before it by %lld bytes" : "follows a gap of %lld bytes",
                          (long long)(e->begin < at ? at - e->begin : e->begin - at));
        else if (e->end > size)
            s = weir_fail(err, WEIR_E_FORMAT, "its data end %lld bytes behind the file: the file is cut short",
                          (long long)(e->end - size));
        if (s != WEIR_OK) {
            weir_err_where(err, m->path, e->t.name, e->begin <= INT64_MAX - data ? data + e->begin : -1);
            return s;
        }
        e->t.offset = data + at;
        e->t.data = m->data + e->t.offset;
        e->t.file = m->path;
        at = e->end;
    }
    if (at == size)
        return WEIR_OK;
    weir_fail(err, WEIR_E_FORMAT, "%lld bytes behind the last tensor", (long long)(size - at));
    weir_err_where(err, m->path, NULL, data + at);
    return WEIR_E_FORMAT;
}

/* Length of the JSON header, checked. */
static weir_status header_length(const weir_filemap *m, int64_t *length, weir_err *err)
{
    weir_cursor c;
    weir_cursor_init(&c, m->data, m->size, m->path, err);
    if (m->size < 8)
        return weir_cursor_fail(&c, WEIR_E_FORMAT, "%zu bytes are too few for a safetensors file", m->size);
    uint64_t n = weir_cursor_u64(&c);
    c.pos = 0;
    if (weir_filemap_is_pointer(m))
        return weir_cursor_fail(&c, WEIR_E_FORMAT, WEIR_POINTER_SAID);
    if (n > HEADER_MAX)
        return weir_cursor_fail(&c, WEIR_E_FORMAT,
                                "a header of %llu bytes is over the format's limit: not a safetensors file?",
                                (unsigned long long)n);
    if (n > m->size - 8)
        return weir_cursor_fail(&c, WEIR_E_FORMAT, "the header has %llu bytes but the file only %zu",
                                (unsigned long long)n, m->size);
    c.pos = 8;
    if (!n || m->data[8] != '{')
        return weir_cursor_fail(&c, WEIR_E_FORMAT, "the header does not begin with '{': not a safetensors file?");
    *length = (int64_t)n;
    return WEIR_OK;
}

static weir_status keep(const table *t, weir_arena *arena, weir_tensor **tensor, int64_t *n, weir_err *err)
{
    weir_tensor *kept = weir_arena_alloc(arena, (size_t)t->n, sizeof *kept);
    if (!kept)
        return weir_nomem(err, "the table of tensors");
    for (int64_t i = 0; i < t->n; i++)
        kept[i] = t->e[i].t;
    *tensor = kept;
    *n = t->n;
    return WEIR_OK;
}

static weir_status parse(const weir_filemap *m, weir_arena *arena, weir_tensor **tensor, int64_t *n, weir_err *err)
{
    int64_t length = 0;
    WEIR_TRY(header_length(m, &length, err));
    weir_filemap_head_only(m, 8 + (size_t)length);
    table t = {0};
    weir_err in_header = {0}; /* its offsets count from the header's first byte */
    weir_json j;
    weir_json_init(&j, m->data + 8, (size_t)length, m->path, &in_header);
    if (j.status == WEIR_OK)
        read_header(&j, arena, &t);
    weir_status s = weir_json_done(&j);
    if (s != WEIR_OK && err && err->code == WEIR_OK) {
        *err = in_header;
        err->offset += err->offset >= 0 ? 8 : 0;
    }
    if (s == WEIR_OK)
        s = place(m, &t, 8 + length, err);
    if (s == WEIR_OK)
        s = keep(&t, arena, tensor, n, err);
    weir_free(t.e);
    return s;
}

weir_status weir_safetensors_parse(const weir_filemap *m, weir_arena *arena, weir_tensor **tensor, int64_t *n,
                                   weir_err *err)
{
    weir_filemap_head_only(m, 8);
    weir_status s = parse(m, arena, tensor, n, err);
    weir_filemap_normal(m);
    return s;
}

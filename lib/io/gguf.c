#include "gguf.h"

#include <string.h>

#include "../base/mem.h"
#include "../base/strmap.h"
#include "cursor.h"
#include "gguf_types.h"

#define KEY_MAX 65535
#define NAME_MAX_BYTES 63
#define VALUE_MAX ((uint64_t)1 << 30)
#define ALIGNMENT_MAX ((int64_t)1 << 20)
/* The least that an entry takes: key (length and 1 byte), type, value; name (length and 1 byte), rank, type, offset. */
#define KV_MIN (8 + 1 + 4 + 1)
#define TENSOR_MIN (8 + 1 + 4 + 4 + 8)

static const uint8_t SCALAR_SIZE[] = {
    [WEIR_GGUF_U8] = 1,  [WEIR_GGUF_I8] = 1,  [WEIR_GGUF_U16] = 2, [WEIR_GGUF_I16] = 2,
    [WEIR_GGUF_U32] = 4, [WEIR_GGUF_I32] = 4, [WEIR_GGUF_F32] = 4, [WEIR_GGUF_BOOL] = 1,
    [WEIR_GGUF_U64] = 8, [WEIR_GGUF_I64] = 8, [WEIR_GGUF_F64] = 8,
};

/* What stands behind a weir_gguf. */
typedef struct memory {
    weir_arena arena; /* tensor names */
    weir_strmap keys, names;
} memory;

static weir_status read_string(weir_cursor *c, uint64_t max, const char *what, weir_str *out)
{
    uint64_t n = weir_cursor_u64(c);
    if (c->status == WEIR_OK && n > max) {
        c->pos -= 8;
        return weir_cursor_fail(c, WEIR_E_FORMAT, "%s of %llu bytes: the limit is %llu", what, (unsigned long long)n,
                                (unsigned long long)max);
    }
    const uint8_t *p = weir_cursor_bytes(c, n);
    *out = p ? (weir_str){(const char *)p, (size_t)n} : (weir_str){"", 0};
    return c->status;
}

/* --- metadata */

static weir_status check_bools(weir_cursor *c, const uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; p && i < n; i++)
        if (p[i] > 1)
            return weir_cursor_fail(c, WEIR_E_FORMAT, "a boolean with the value %u", p[i]);
    return c->status;
}

static weir_status read_array(weir_cursor *c, weir_gguf_kv *kv)
{
    uint32_t elem = weir_cursor_u32(c);
    uint64_t n = weir_cursor_u64(c);
    if (c->status != WEIR_OK)
        return c->status;
    if (elem == WEIR_GGUF_ARRAY)
        return weir_cursor_fail(c, WEIR_E_UNSUPPORTED, "an array of arrays");
    if (elem > WEIR_GGUF_F64)
        return weir_cursor_fail(c, WEIR_E_FORMAT, "unknown element type %u", elem);
    uint64_t least = elem == WEIR_GGUF_STRING ? 8 : SCALAR_SIZE[elem];
    if (n > weir_cursor_left(c) / least || n > VALUE_MAX / least)
        return weir_cursor_fail(c, WEIR_E_FORMAT, "an array of %llu elements does not fit in the file",
                                (unsigned long long)n);
    kv->elem = elem;
    kv->n = n;
    kv->offset = (int64_t)c->pos;
    kv->data = c->p + c->pos;
    if (elem != WEIR_GGUF_STRING) {
        const uint8_t *p = weir_cursor_bytes(c, n * least);
        return elem == WEIR_GGUF_BOOL ? check_bools(c, p, n) : c->status;
    }
    weir_str s;
    for (uint64_t i = 0; i < n && c->status == WEIR_OK; i++)
        WEIR_TRY(read_string(c, VALUE_MAX, "a string", &s));
    return c->status;
}

static weir_status read_value(weir_cursor *c, weir_gguf_kv *kv)
{
    uint32_t type = weir_cursor_u32(c);
    if (c->status == WEIR_OK && type > WEIR_GGUF_F64)
        return weir_cursor_fail(c, WEIR_E_FORMAT, "unknown value type %u", type);
    if (c->status != WEIR_OK)
        return c->status;
    kv->type = kv->elem = type;
    kv->n = 1;
    kv->offset = (int64_t)c->pos;
    kv->data = c->p + c->pos;
    if (type == WEIR_GGUF_ARRAY)
        return read_array(c, kv);
    weir_str s;
    if (type == WEIR_GGUF_STRING)
        return read_string(c, VALUE_MAX, "a string", &s);
    const uint8_t *p = weir_cursor_bytes(c, SCALAR_SIZE[type]);
    return type == WEIR_GGUF_BOOL ? check_bools(c, p, 1) : c->status;
}

static weir_status read_kv(weir_gguf *g, weir_cursor *c, weir_gguf_kv *kv)
{
    memory *mem = g->own;
    size_t at = c->pos;
    bool fresh;
    WEIR_TRY(read_string(c, KEY_MAX, "a key", &kv->key));
    int shown = kv->key.n > 100 ? 100 : (int)kv->key.n;
    if (!kv->key.n) {
        c->pos = at;
        return weir_cursor_fail(c, WEIR_E_FORMAT, "an empty key");
    }
    if (weir_strmap_add(&mem->keys, kv->key, g->n_kv, &fresh, NULL) != WEIR_OK)
        return c->status = weir_nomem(c->err, "the metadata");
    if (!fresh) {
        c->pos = at;
        return weir_cursor_fail(c, WEIR_E_FORMAT, "duplicate key \"%.*s\"", shown, kv->key.p);
    }
    return read_value(c, kv);
}

static weir_status read_metadata(weir_gguf *g, weir_cursor *c, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        weir_gguf_kv *grown = weir_grow(g->kv, (size_t)g->n_kv, sizeof *grown);
        if (!grown)
            return c->status = weir_nomem(c->err, "the metadata");
        g->kv = grown;
        g->kv[g->n_kv] = (weir_gguf_kv){0};
        WEIR_TRY(read_kv(g, c, &g->kv[g->n_kv]));
        g->n_kv++;
    }
    return WEIR_OK;
}

/* --- the table of tensors */

static weir_status read_name(weir_gguf *g, weir_cursor *c, weir_tensor *t)
{
    memory *mem = g->own;
    size_t at = c->pos;
    weir_str s;
    bool fresh;
    WEIR_TRY(read_string(c, NAME_MAX_BYTES, "a tensor's name", &s));
    bool bad = !s.n || memchr(s.p, '\0', s.n);
    if (bad) {
        c->pos = at;
        return weir_cursor_fail(c, WEIR_E_FORMAT, "a tensor's name that is empty or holds a NUL");
    }
    char *name = weir_arena_strndup(&mem->arena, s.p, s.n);
    if (!name || weir_strmap_add(&mem->names, (weir_str){name, s.n}, g->n_tensors, &fresh, NULL) != WEIR_OK)
        return c->status = weir_nomem(c->err, "the table of tensors");
    t->name = name;
    if (!fresh) {
        c->pos = at;
        return weir_cursor_fail(c, WEIR_E_FORMAT, "two tensors have this name");
    }
    return WEIR_OK;
}

/* Dimensions come fastest first; a weir_tensor has the slowest first. */
static weir_status read_shape(weir_cursor *c, weir_tensor *t)
{
    uint32_t rank = weir_cursor_u32(c);
    if (rank > WEIR_MAX_RANK)
        return weir_cursor_fail(c, WEIR_E_FORMAT, "%u dimensions: the limit is %d", rank, WEIR_MAX_RANK);
    t->rank = (int)rank;
    for (int i = 0; i < WEIR_MAX_RANK; i++)
        t->shape[i] = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        uint64_t n = weir_cursor_u64(c);
        if (n > INT64_MAX)
            return weir_cursor_fail(c, WEIR_E_FORMAT, "a dimension of %llu", (unsigned long long)n);
        t->shape[i] = (int64_t)n;
    }
    return c->status;
}

static weir_status read_type(weir_cursor *c, weir_tensor *t)
{
    int64_t count = 1, bytes, fastest = t->rank ? t->shape[t->rank - 1] : 1;
    size_t at = c->pos;
    uint32_t id = weir_cursor_u32(c);
    WEIR_TRY(c->status);
    weir_status s = weir_gguf_dtype(id, &t->dtype, c->err);
    if (s != WEIR_OK) {
        weir_err_where(c->err, c->file, NULL, (int64_t)at);
        return c->status = s;
    }
    int64_t block = weir_dtype_block(t->dtype);
    if (fastest % block)
        return weir_cursor_fail(c, WEIR_E_FORMAT, "rows of %lld elements are not whole blocks of %s (%lld)",
                                (long long)fastest, weir_dtype_name(t->dtype), (long long)block);
    for (int i = 0; i < t->rank; i++)
        if (!weir_mul64(count, t->shape[i], &count))
            return weir_cursor_fail(c, WEIR_E_FORMAT, "the shape's size overflows");
    if (!weir_mul64(count / block, weir_dtype_bytes(t->dtype), &bytes))
        return weir_cursor_fail(c, WEIR_E_FORMAT, "the tensor's size overflows");
    t->bytes = (size_t)bytes;
    return WEIR_OK;
}

/* *expected: where the data must begin; moved behind them, padded. */
static weir_status read_offset(weir_cursor *c, weir_tensor *t, int64_t alignment, int64_t *expected)
{
    size_t at = c->pos;
    uint64_t offset = weir_cursor_u64(c);
    WEIR_TRY(c->status);
    if (offset != (uint64_t)*expected) {
        c->pos = at;
        return weir_cursor_fail(c, WEIR_E_FORMAT,
                                "its data begin at %llu instead of %lld (a gap, an overlap or a bad order)",
                                (unsigned long long)offset, (long long)*expected);
    }
    t->offset = *expected;
    int64_t end;
    if (!weir_add64(*expected, (int64_t)t->bytes, &end) || !weir_add64(end, alignment - 1, &end))
        return weir_cursor_fail(c, WEIR_E_FORMAT, "the sum of the tensors' sizes overflows");
    *expected = end / alignment * alignment;
    return WEIR_OK;
}

static weir_status read_tensor(weir_gguf *g, weir_cursor *c, weir_tensor *t, int64_t alignment, int64_t *expected)
{
    WEIR_TRY(read_name(g, c, t));
    WEIR_TRY(read_shape(c, t));
    WEIR_TRY(read_type(c, t));
    return read_offset(c, t, alignment, expected);
}

static weir_status read_tensors(weir_gguf *g, weir_cursor *c, uint64_t n, int64_t alignment)
{
    int64_t expected = 0;
    for (uint64_t i = 0; i < n; i++) {
        weir_tensor *grown = weir_grow(g->tensor, (size_t)g->n_tensors, sizeof *grown);
        if (!grown)
            return c->status = weir_nomem(c->err, "the table of tensors");
        g->tensor = grown;
        weir_tensor *t = &g->tensor[g->n_tensors];
        *t = (weir_tensor){.file = g->map.path};
        weir_status s = read_tensor(g, c, t, alignment, &expected);
        if (s != WEIR_OK) {
            weir_err_where(c->err, NULL, t->name, -1);
            return s;
        }
        g->n_tensors++;
    }
    return WEIR_OK;
}

/* Offsets become places in the file; every tensor must lie in it. */
static weir_status place(weir_gguf *g, int64_t alignment, weir_err *err)
{
    int64_t data = ((int64_t)g->meta_bytes + alignment - 1) / alignment * alignment, size = (int64_t)g->map.size;
    for (int64_t i = 0; i < g->n_tensors; i++) {
        weir_tensor *t = &g->tensor[i];
        int64_t begin, end;
        if (!weir_add64(data, t->offset, &begin) || !weir_add64(begin, (int64_t)t->bytes, &end) || end > size) {
            weir_fail(err, WEIR_E_FORMAT,
                      "its %zu bytes reach behind the end of the file (%lld): the file is cut short", t->bytes,
                      (long long)size);
            weir_err_where(err, g->map.path, t->name, weir_add64(data, t->offset, &begin) ? begin : -1);
            return WEIR_E_FORMAT;
        }
        t->offset = begin;
        t->data = g->map.data + begin;
    }
    return WEIR_OK;
}

/* --- the file */

static weir_status read_head(weir_gguf *g, weir_cursor *c, uint64_t *n_tensors, uint64_t *n_kv)
{
    const uint8_t *magic = weir_cursor_bytes(c, 4);
    WEIR_TRY(c->status);
    bool reversed = memcmp(magic, "FUGG", 4) == 0;
    if (!reversed && memcmp(magic, "GGUF", 4) != 0) {
        c->pos = 0;
        return weir_cursor_fail(c, WEIR_E_FORMAT, "%s",
                                weir_filemap_is_pointer(&g->map) ? WEIR_POINTER_SAID : "not a GGUF file");
    }
    g->version = weir_cursor_u32(c);
    WEIR_TRY(c->status);
    c->pos = 4;
    if (reversed || (g->version && !(g->version & 0xffff)))
        return weir_cursor_fail(c, WEIR_E_UNSUPPORTED, "big-endian GGUF: convert it with gguf_convert_endian.py");
    if (g->version == 1)
        return weir_cursor_fail(c, WEIR_E_UNSUPPORTED, "GGUF version 1 (of 2023): convert the model again");
    if (g->version != 2 && g->version != 3)
        return weir_cursor_fail(c, WEIR_E_UNSUPPORTED, "GGUF version %u: weir reads 2 and 3", g->version);
    c->pos = 8;
    *n_tensors = weir_cursor_u64(c);
    *n_kv = weir_cursor_u64(c);
    if (*n_tensors > weir_cursor_left(c) / TENSOR_MIN || *n_kv > weir_cursor_left(c) / KV_MIN)
        return weir_cursor_fail(c, WEIR_E_FORMAT, "%llu tensors and %llu metadata entries do not fit in the file",
                                (unsigned long long)*n_tensors, (unsigned long long)*n_kv);
    return c->status;
}

static weir_status read_alignment(const weir_gguf *g, int64_t *alignment, weir_err *err)
{
    bool found;
    *alignment = 32;
    WEIR_TRY(weir_gguf_int(g, "general.alignment", alignment, &found, err));
    if (*alignment > 0 && *alignment <= ALIGNMENT_MAX && !(*alignment & (*alignment - 1)))
        return WEIR_OK;
    weir_fail(err, WEIR_E_FORMAT, "general.alignment is %lld: a power of two up to %lld is expected",
              (long long)*alignment, (long long)ALIGNMENT_MAX);
    weir_err_where(err, g->map.path, NULL, weir_gguf_find(g, "general.alignment")->offset);
    return WEIR_E_FORMAT;
}

static weir_status refuse_split(const weir_gguf *g, weir_err *err)
{
    bool found;
    int64_t count = 1;
    WEIR_TRY(weir_gguf_int(g, "split.count", &count, &found, err));
    if (count <= 1)
        return WEIR_OK;
    weir_fail(err, WEIR_E_UNSUPPORTED, "one of %lld parts of a split model: join them with llama-gguf-split --merge",
              (long long)count);
    weir_err_where(err, g->map.path, NULL, -1);
    return WEIR_E_UNSUPPORTED;
}

static weir_status parse(weir_gguf *g, weir_err *err)
{
    weir_cursor c;
    uint64_t n_tensors = 0, n_kv = 0;
    int64_t alignment;
    weir_cursor_init(&c, g->map.data, g->map.size, g->map.path, err);
    WEIR_TRY(read_head(g, &c, &n_tensors, &n_kv));
    WEIR_TRY(read_metadata(g, &c, n_kv));
    WEIR_TRY(refuse_split(g, err));
    WEIR_TRY(read_alignment(g, &alignment, err));
    WEIR_TRY(read_tensors(g, &c, n_tensors, alignment));
    g->meta_bytes = c.pos;
    return place(g, alignment, err);
}

weir_status weir_gguf_open(weir_gguf *g, const char *path, weir_err *err)
{
    *g = (weir_gguf){0};
    WEIR_TRY(weir_filemap_open(&g->map, path, err));
    g->own = weir_calloc(1, sizeof(memory));
    weir_status s = g->own ? parse(g, err) : weir_nomem(err, "the metadata");
    if (s != WEIR_OK)
        weir_gguf_close(g);
    return s;
}

void weir_gguf_close(weir_gguf *g)
{
    memory *mem = g->own;
    if (mem) {
        weir_arena_free(&mem->arena);
        weir_strmap_free(&mem->keys);
        weir_strmap_free(&mem->names);
    }
    weir_free(mem);
    weir_free(g->kv);
    weir_free(g->tensor);
    weir_filemap_close(&g->map);
    *g = (weir_gguf){0};
}

const weir_gguf_kv *weir_gguf_find(const weir_gguf *g, const char *key)
{
    const memory *mem = g->own;
    int64_t i;
    return weir_strmap_get(&mem->keys, key, strlen(key), &i) ? &g->kv[i] : NULL;
}

/* A zip archive is read from its end: the last record tells where the directory of members begins, which has their
 * names, sizes and places. What stands before each member repeats some of it and is only skipped. */
#include "zip.h"

#include <string.h>
#include <zlib.h>

#include "../base/mem.h"
#include "cursor.h"

enum {
    END_BYTES = 22,
    COMMENT_MAX = 65535,
    LOCAL_BYTES = 30,
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1,   /* flag */
    EXPANSION = 1040 /* deflate gives at most so many bytes for one */
};
#define END_SIGN 0x06054b50u
#define MEMBER_SIGN 0x02014b50u
#define LOCAL_SIGN 0x04034b50u

bool weir_zip_is(const weir_filemap *m)
{
    return m->size >= 4 && (memcmp(m->data, "PK\3\4", 4) == 0 || memcmp(m->data, "PK\5\6", 4) == 0);
}

/* A member as the directory has it. */
typedef struct entry {
    uint16_t flags, method;
    uint32_t crc, packed, size, at;
} entry;

static bool end_record(const weir_filemap *m, size_t *at)
{
    static const uint8_t sign[4] = {'P', 'K', 5, 6};
    if (m->size < END_BYTES)
        return false;
    const size_t last = m->size - END_BYTES, first = last > COMMENT_MAX ? last - COMMENT_MAX : 0;
    for (*at = last;; --*at) {
        if (memcmp(m->data + *at, sign, sizeof sign) == 0)
            return true;
        if (*at == first)
            return false;
    }
}

/* The next member of the directory; *found: it has the name. */
static void read_entry(weir_cursor *c, const char *name, entry *e, bool *found)
{
    if (weir_cursor_u32(c) != MEMBER_SIGN)
        weir_cursor_fail(c, WEIR_E_FORMAT, "the zip archive's directory is damaged");
    weir_cursor_bytes(c, 4); /* versions */
    e->flags = weir_cursor_u16(c);
    e->method = weir_cursor_u16(c);
    weir_cursor_bytes(c, 4); /* time */
    e->crc = weir_cursor_u32(c);
    e->packed = weir_cursor_u32(c);
    e->size = weir_cursor_u32(c);
    const uint16_t n_name = weir_cursor_u16(c), n_extra = weir_cursor_u16(c), n_comment = weir_cursor_u16(c);
    weir_cursor_bytes(c, 8); /* disk, attributes */
    e->at = weir_cursor_u32(c);
    const uint8_t *text = weir_cursor_bytes(c, n_name);
    weir_cursor_bytes(c, (uint64_t)n_extra + n_comment);
    *found = text && strlen(name) == n_name && memcmp(text, name, n_name) == 0;
}

static weir_status find(const weir_filemap *m, const char *name, entry *e, weir_err *err)
{
    size_t end;
    weir_cursor c;
    weir_cursor_init(&c, m->data, m->size, m->path, err);
    if (!end_record(m, &end))
        return weir_cursor_fail(&c, WEIR_E_FORMAT, "the zip archive is cut: it has no directory at its end");
    c.pos = end + 10;
    const uint16_t n = weir_cursor_u16(&c);
    weir_cursor_u32(&c);
    const uint32_t first = weir_cursor_u32(&c);
    if (n == UINT16_MAX || first == UINT32_MAX)
        return weir_cursor_fail(&c, WEIR_E_UNSUPPORTED, "a zip64 archive (4 GiB or more)");
    if (first > m->size)
        return weir_cursor_fail(&c, WEIR_E_FORMAT, "the zip archive's directory lies behind its end");
    c.pos = first;
    bool found = false;
    for (uint16_t i = 0; i < n && !found && c.status == WEIR_OK; i++)
        read_entry(&c, name, e, &found);
    if (c.status == WEIR_OK && !found)
        return weir_cursor_fail(&c, WEIR_E_FORMAT, "the archive has no member %s", name);
    return c.status;
}

static weir_status inflate_member(weir_zip_member *out, const uint8_t *packed, const entry *e, weir_err *err)
{
    uLongf n = e->size;
    if (e->size / EXPANSION > e->packed)
        return weir_fail(err, WEIR_E_FORMAT, "a member claims more than its bytes can hold");
    out->own = weir_calloc(1, (size_t)e->size + 1);
    if (!out->own)
        return weir_nomem(err, "a member of an archive");
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)packed, .avail_in = e->packed, .next_out = out->own, .avail_out = e->size};
    int code = inflateInit2(&z, -MAX_WBITS);
    if (code == Z_OK) {
        code = inflate(&z, Z_FINISH);
        n = z.total_out;
        inflateEnd(&z);
    }
    out->data = out->own;
    out->size = n;
    return code == Z_STREAM_END && n == e->size ? WEIR_OK : weir_fail(err, WEIR_E_FORMAT, "a member is damaged");
}

static weir_status read_member(weir_zip_member *out, const weir_filemap *m, const entry *e, weir_err *err)
{
    weir_cursor c;
    weir_cursor_init(&c, m->data, m->size, m->path, err);
    if (e->flags & ENCRYPTED || (e->method != STORED && e->method != DEFLATED) || e->size == UINT32_MAX)
        return weir_cursor_fail(&c, WEIR_E_UNSUPPORTED,
                                "a member is encrypted, larger than 4 GiB, or packed by method %d", e->method);
    c.pos = e->at;
    if (e->at > m->size || weir_cursor_u32(&c) != LOCAL_SIGN)
        return weir_cursor_fail(&c, WEIR_E_FORMAT, "a member does not begin where the directory says");
    weir_cursor_bytes(&c, LOCAL_BYTES - 8);
    const uint16_t n_name = weir_cursor_u16(&c), n_extra = weir_cursor_u16(&c);
    weir_cursor_bytes(&c, (uint64_t)n_name + n_extra);
    const uint8_t *p = weir_cursor_bytes(&c, e->packed);
    WEIR_TRY(c.status);
    *out = (weir_zip_member){.data = p, .size = e->packed};
    if (e->method == DEFLATED)
        WEIR_TRY(inflate_member(out, p, e, err));
    if (out->size != e->size || crc32_z(0, out->data, out->size) != e->crc)
        return weir_cursor_fail(&c, WEIR_E_FORMAT, "a member is damaged: its checksum is another");
    return WEIR_OK;
}

weir_status weir_zip_find(weir_zip_member *out, const weir_filemap *m, const char *name, weir_err *err)
{
    entry e = {0};
    *out = (weir_zip_member){0};
    WEIR_TRY(find(m, name, &e, err));
    const weir_status s = read_member(out, m, &e, err);
    if (s != WEIR_OK) {
        weir_free(out->own);
        *out = (weir_zip_member){0};
        weir_err_where(err, m->path, name, -1);
    }
    return s;
}

/* record/merge_names.c: /sources of the result, and the new numbers of its parts' sources. See merge.h.
 *
 * The reader of a text numbers its sources one after the other, so a shard begins either with the source that the shard
 * before it ended with, or with a new one; a name may stand there twice (a file that was read twice). Dumps that are no
 * shards share the sources that have the same name.
 */
#include "base/strmap.h"
#include "docs.h"
#include "fetch.h"
#include "merge.h"

typedef struct naming {
    weir_merge *m;
    weir_tile_writer *w;
    weir_strings out;
    weir_strmap map;     /* name -> entry, of parts that are no shards */
    weir_arena own;      /* its keys */
    int64_t last_source; /* the reader's number of the last entry, of shards; -1: none yet */
} naming;

/* The strings of a part. */
typedef struct names {
    char *bytes;
    int64_t *offset; /* [n + 1] */
    int64_t n;
} names;

static weir_status read_whole(weir_infile *f, const char *name, weir_elem e, void **out, int64_t *n, weir_err *err)
{
    weir_dset d = {0};
    weir_status st = weir_dset_open(&d, f, f->id, name, e, err);
    if (!st && d.rank != 1)
        st = weir_fail(err, WEIR_E_FORMAT, "%s has another rank than a dump has", name);
    *n = d.rows;
    if (!st && !(*out = weir_calloc((size_t)d.rows + 1, weir_elem_bytes(e))))
        st = weir_nomem(err, "the sources of documents");
    if (!st && d.rows)
        st = weir_dset_read_plain(&d, 0, d.rows, *out, err);
    weir_dset_close(&d);
    return st;
}

static weir_status read_names(names *s, const char *path, weir_err *err)
{
    weir_infile f = {0};
    int64_t n_bytes = 0, n_offsets = 0;
    void *bytes = NULL, *offset = NULL;
    weir_status st = weir_infile_open(&f, path, err);
    if (!st)
        st = read_whole(&f, "sources/bytes", WEIR_ELEM_U8, &bytes, &n_bytes, err);
    if (!st)
        st = read_whole(&f, "sources/offsets", WEIR_ELEM_I64, &offset, &n_offsets, err);
    *s = (names){.bytes = bytes, .offset = offset, .n = n_offsets - 1};
    bool good = !st && n_offsets > 0 && s->offset[0] == 0 && s->offset[s->n] == n_bytes && s->n < INT32_MAX;
    for (int64_t i = 0; good && i < s->n; i++)
        good = s->offset[i] <= s->offset[i + 1];
    if (!st && !good)
        st = weir_fail(err, WEIR_E_FORMAT, "group sources is not that of a dump");
    if (st)
        weir_err_where(err, path, NULL, -1);
    weir_infile_close(&f);
    return st;
}

static weir_status append(naming *s, weir_str name, int32_t *entry, weir_err *err)
{
    int64_t n = weir_strings_count(&s->out);
    if (n >= INT32_MAX)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "the files have more sources than a dump can hold");
    *entry = (int32_t)n;
    return weir_strings_append(&s->out, s->w, name, err);
}

/* The entry that has this name. */
static weir_status share(naming *s, weir_str name, int32_t *entry, weir_err *err)
{
    bool added;
    int64_t old = 0, n = weir_strings_count(&s->out);
    weir_str key = {weir_arena_strndup(&s->own, name.p, name.n), name.n};
    if (!key.p || weir_strmap_add(&s->map, key, n, &added, &old) != WEIR_OK)
        return weir_nomem(err, "the sources of documents");
    *entry = (int32_t)old;
    return added ? append(s, name, entry, err) : WEIR_OK;
}

static weir_status add_part(naming *s, const weir_merge_part *p, const names *part, weir_source_map *map, weir_err *err)
{
    if (!(map->to = weir_calloc((size_t)part->n + 1, sizeof *map->to)))
        return weir_nomem(err, "the sources of documents");
    map->n = part->n;
    for (int64_t i = 0; i < part->n; i++) {
        weir_str name = {part->bytes + part->offset[i], (size_t)(part->offset[i + 1] - part->offset[i])};
        if (p->shards && i == 0 && s->last_source == p->source[0])
            map->to[i] = (int32_t)weir_strings_count(&s->out) - 1;
        else if (p->shards)
            WEIR_TRY(append(s, name, &map->to[i], err));
        else
            WEIR_TRY(share(s, name, &map->to[i], err));
    }
    if (p->shards && part->n)
        s->last_source = p->source[1];
    return WEIR_OK;
}

static weir_status add_all(naming *s, weir_source_map *map, weir_err *err)
{
    for (int k = 0; k < s->m->n; k++) {
        names part = {0};
        weir_status st = read_names(&part, s->m->part[k].path, err);
        if (!st)
            st = add_part(s, &s->m->part[k], &part, &map[k], err);
        weir_free(part.bytes);
        weir_free(part.offset);
        if (st)
            return st;
        if (weir_merge_step(s->m, 0))
            return WEIR_STOP;
    }
    return weir_strings_flush(&s->out, s->w, err);
}

weir_status weir_merge_names(weir_merge *m, weir_tile_writer *w, weir_source_map *map, weir_err *err)
{
    naming s = {.m = m, .w = w, .last_source = -1};
    weir_status st = weir_strings_create(&s.out, m->file, "sources", false, w, err);
    if (!st)
        st = add_all(&s, map, err);
    weir_strings_close(&s.out);
    weir_strmap_free(&s.map);
    weir_arena_free(&s.own);
    return st;
}

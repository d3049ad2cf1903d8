/* record/merge_dump.c: see merge_dump.h: what a dump holds, and the order of the work. */
#include "merge_dump.h"

#include <string.h>

#include "schema.h"

/* The first row whose pattern fits; in a pattern * is any text without a slash. */
static const struct {
    const char *pattern;
    weir_column_kind kind;
    weir_column_length length;
} kinds[] = {
    {"row", WEIR_COLUMN_ROWS, WEIR_PER_ROW},
    {"tokens/doc", WEIR_COLUMN_DOCS, WEIR_PER_ROW},
    {"tokens/*", WEIR_COLUMN_JOIN, WEIR_PER_ROW},
    {"docs/start", WEIR_COLUMN_ROWS, WEIR_PER_DOC},
    {"docs/source", WEIR_COLUMN_SOURCES, WEIR_PER_DOC},
    {"docs/fields", WEIR_COLUMN_GROUP, WEIR_ANY_LENGTH},
    {"docs/fields/*/bytes", WEIR_COLUMN_JOIN, WEIR_ANY_LENGTH},
    {"docs/fields/*/offsets", WEIR_COLUMN_OFFSETS, WEIR_PER_OFFSET},
    {"docs/fields/*", WEIR_COLUMN_JOIN, WEIR_PER_DOC},
    {"docs/*", WEIR_COLUMN_JOIN, WEIR_PER_DOC},
    {"activations/*", WEIR_COLUMN_VALUES, WEIR_PER_ROW},
    {"hooks/*/*", WEIR_COLUMN_VALUES, WEIR_PER_ROW},
    {"hooks/*", WEIR_COLUMN_GROUP, WEIR_ANY_LENGTH},
    {"tokens", WEIR_COLUMN_GROUP, WEIR_ANY_LENGTH},
    {"docs", WEIR_COLUMN_GROUP, WEIR_ANY_LENGTH},
    {"activations", WEIR_COLUMN_GROUP, WEIR_ANY_LENGTH},
    {"hooks", WEIR_COLUMN_GROUP, WEIR_ANY_LENGTH},
    {"vocab", WEIR_COLUMN_GROUP, WEIR_ANY_LENGTH},
    {"vocab/*", WEIR_COLUMN_FIRST, WEIR_ANY_LENGTH},
    {"progress", WEIR_COLUMN_PROGRESS, WEIR_ANY_LENGTH},
    {"sources", WEIR_COLUMN_ELSEWHERE, WEIR_ANY_LENGTH},
    {"sources/*", WEIR_COLUMN_ELSEWHERE, WEIR_ANY_LENGTH},
    {"unit_*", WEIR_COLUMN_ELSEWHERE, WEIR_ANY_LENGTH},
    {"head_*", WEIR_COLUMN_ELSEWHERE, WEIR_ANY_LENGTH},
    {"key_*", WEIR_COLUMN_ELSEWHERE, WEIR_ANY_LENGTH},
};

static bool fits(const char *pattern, const char *path)
{
    for (; *pattern; pattern++) {
        if (*pattern == '*') {
            path += strcspn(path, "/");
            continue;
        }
        if (*path++ != *pattern)
            return false;
    }
    return *path == '\0';
}

/* --- what there is */

static weir_status elem_of(const weir_fact *f, weir_elem *e, weir_err *err)
{
    static const struct {
        const char *name;
        weir_elem elem;
    } types[] = {{"uint8", WEIR_ELEM_U8},    {"int32", WEIR_ELEM_I32},   {"int64", WEIR_ELEM_I64},
                 {"float32", WEIR_ELEM_F32}, {"float16", WEIR_ELEM_F32}, {"float64", WEIR_ELEM_F64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(f->value, types[i].name)) {
            *e = types[i].elem;
            return WEIR_OK;
        }
    return weir_fail(err, WEIR_E_FORMAT, "%s holds elements (%s) that no dump has", f->object, f->value);
}

/* What is counted with must be numbers of the type that is counted with. */
static bool has_its_type(const weir_column *c)
{
    switch (c->kind) {
    case WEIR_COLUMN_ROWS:
    case WEIR_COLUMN_DOCS:
    case WEIR_COLUMN_OFFSETS:
        return c->elem == WEIR_ELEM_I64;
    case WEIR_COLUMN_SOURCES:
        return c->elem == WEIR_ELEM_I32;
    default:
        return true;
    }
}

/* f: the first fact of an object. */
static weir_status add_object(weir_join *j, const weir_fact *f, weir_err *err)
{
    size_t k = 0, n_kinds = sizeof kinds / sizeof *kinds;
    while (k < n_kinds && !fits(kinds[k].pattern, f->object))
        k++;
    if (k == n_kinds)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "%s is nothing that this weir knows how to join", f->object);
    bool group = !strcmp(f->what, "kind");
    weir_column c = {.path = f->object, .kind = kinds[k].kind, .length = kinds[k].length};
    if (group && c.kind != WEIR_COLUMN_PROGRESS && c.kind != WEIR_COLUMN_ELSEWHERE)
        c.kind = WEIR_COLUMN_GROUP; /* docs/fields/NAME of strings */
    else if (!group && c.kind == WEIR_COLUMN_GROUP)
        return weir_fail(err, WEIR_E_FORMAT, "%s is a dataset where a dump has a group", f->object);
    if (c.kind < WEIR_COLUMN_GROUP)
        WEIR_TRY(elem_of(f, &c.elem, err));
    if (!has_its_type(&c))
        return weir_fail(err, WEIR_E_FORMAT, "%s holds elements (%s) that it has in no dump", f->object, f->value);
    weir_column *grown = weir_grow(j->column, (size_t)j->n, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "the datasets that are joined");
    j->column = grown;
    grown[j->n++] = c;
    return WEIR_OK;
}

static weir_status find_objects(weir_join *j, weir_err *err)
{
    const char *last = "";
    WEIR_TRY(weir_facts_read(&j->facts, &j->first, err));
    for (int64_t i = 0; i < j->facts.n; i++) {
        const weir_fact *f = &j->facts.fact[i];
        if (!strcmp(f->object, last)) /* also the root's attributes */
            continue;
        last = f->object;
        WEIR_TRY(add_object(j, f, err));
    }
    return WEIR_OK;
}

/* The level of the first dataset that is compressed. */
static int find_level(const weir_join *j)
{
    int level = 0;
    for (int i = 0; i < j->n && level == 0; i++) {
        unsigned flags, value[1] = {0};
        size_t n = 1;
        if (j->column[i].kind >= WEIR_COLUMN_GROUP)
            continue;
        hid_t d = H5Dopen2(j->first.id, j->column[i].path, H5P_DEFAULT), plist = H5Dget_create_plist(d);
        if (plist >= 0 && H5Pget_filter_by_id2(plist, H5Z_FILTER_DEFLATE, &flags, &n, value, 0, NULL, NULL) >= 0)
            level = value[0] <= 9 ? (int)value[0] : 9;
        H5Pclose(plist);
        H5Dclose(d);
    }
    H5Eclear2(H5E_DEFAULT);
    return level;
}

/* --- the kind */

static weir_status join_all(weir_join *j, weir_err *err)
{
    WEIR_TRY(weir_infile_open(&j->first, j->m->part[0].path, err));
    weir_status st = find_objects(j, err);
    if (st) {
        weir_err_where(err, j->m->part[0].path, NULL, -1);
        return st;
    }
    WEIR_TRY(weir_tile_writer_init(&j->writer, find_level(j), j->m->o->threads, err));
    j->fetcher.threads = j->m->o->threads;
    weir_behind_init(&j->writer.behind, j->m->file);
    WEIR_TRY(weir_join_objects(j, err));
    WEIR_TRY(weir_merge_names(j->m, &j->writer, j->map, err));
    WEIR_TRY(weir_join_rows(j, err));
    return weir_join_progress(j, err);
}

static weir_status join_dumps(weir_merge *m, weir_err *err)
{
    weir_join j = {.m = m};
    weir_status st = WEIR_OK;
    if (!(j.map = weir_calloc((size_t)m->n, sizeof *j.map)))
        st = weir_nomem(err, "the sources of documents");
    if (!st)
        st = join_all(&j, err);
    for (int i = 0; i < j.n; i++) {
        if (j.column[i].out.id > 0)
            weir_tiled_close(&j.column[i].out);
        else if (j.column[i].id > 0 && m->o->as_virtual && j.column[i].kind == WEIR_COLUMN_VALUES)
            H5Dclose(j.column[i].id);
    }
    for (int k = 0; j.map && k < m->n; k++)
        weir_free(j.map[k].to);
    weir_scales_free(&j.scales);
    weir_tile_writer_free(&j.writer);
    weir_fetcher_free(&j.fetcher);
    weir_facts_free(&j.facts);
    weir_infile_close(&j.first);
    weir_free_aligned(j.band);
    weir_free(j.column);
    weir_free(j.map);
    return st;
}

static weir_status extent(weir_infile *f, const char *name, int64_t *n, weir_err *err)
{
    weir_dset d = {0};
    weir_status st = weir_dset_open(&d, f, f->id, name, WEIR_ELEM_I64, err);
    *n = d.rows;
    weir_dset_close(&d);
    return st;
}

static weir_status measure(weir_merge_part *p, weir_infile *f, weir_err *err)
{
    WEIR_TRY(extent(f, "row", &p->rows, err));
    return extent(f, "docs/count", &p->docs, err);
}

const weir_merge_kind weir_merge_dumps = {WEIR_DUMP_FORMAT, WEIR_DUMP_VERSION, measure, join_dumps};

/* record/merge_facts.c: what of files must be equal so that they can be joined. See merge.h.
 *
 * A file is walked in the order of its links and comes out as a list of facts: root attributes, and for each dataset
 * its type, the axes behind the rows, chunks, filters and attributes. Files that belong together have the same list.
 */
#include <inttypes.h>
#include <string.h>

#include "merge.h"

enum { NAME_MAX_BYTES = 1024, DEPTH_MAX = 8, LINKS_MAX = 1 << 20 };

/* --- attributes */

bool weir_fact_is_free(const char *attribute)
{
    static const char *const list[] = {"command_line",    "time_utc",   "model",           "kernel",
                                       "threads",         "merged",     "run_options",     "shard",
                                       "shard_first_doc", "shard_docs", "shard_text_size", "shard_sources"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (!strcmp(attribute, list[i]))
            return true;
    return false;
}

/* What ties axes to dimension scales is made anew. */
static bool ties_scales(const char *attribute)
{
    static const char *const list[] = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (!strcmp(attribute, list[i]))
            return true;
    return false;
}

weir_status weir_merge_copy_attribute(hid_t from, hid_t to, const char *name, weir_err *err)
{
    if (ties_scales(name))
        return WEIR_OK;
    hid_t a = H5Aopen(from, name, H5P_DEFAULT), type = H5Aget_type(a), space = H5Aget_space(a);
    hssize_t n = H5Sget_simple_extent_npoints(space);
    int64_t bytes = -1;
    weir_status st = WEIR_OK;
    if (n < 0 || !weir_mul64(n, (int64_t)H5Tget_size(type), &bytes) || bytes > INT32_MAX)
        st = weir_h5_fail(err, "cannot copy attribute %s", name);
    void *value = st ? NULL : weir_calloc((size_t)bytes, 1);
    if (!st && !value)
        st = weir_nomem(err, "an attribute");
    if (!st && H5Aread(a, type, value) >= 0) {
        hid_t copy = H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        if (copy < 0 || H5Awrite(copy, type, value) < 0)
            st = weir_h5_fail(err, "cannot copy attribute %s", name);
        H5Aclose(copy);
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, value);
    } else if (!st) {
        st = weir_h5_fail(err, "cannot copy attribute %s", name);
    }
    weir_free(value);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(a);
    return st;
}

/* --- the walk */

typedef struct walk {
    weir_facts *facts;
    weir_err *err;
    weir_status st;
    char path[NAME_MAX_BYTES]; /* of the object that is looked at */
    int depth;
} walk;

static weir_status add(walk *w, const char *what, const char *value)
{
    weir_facts *s = w->facts;
    weir_fact *grown = weir_grow(s->fact, (size_t)s->n, sizeof *grown);
    if (!grown)
        return weir_nomem(w->err, "what files have in common");
    s->fact = grown;
    const char *last = s->n ? grown[s->n - 1].object : NULL; /* objects are walked one after the other */
    weir_fact f = {.object =
                       last && !strcmp(last, w->path) ? last : weir_arena_strndup(&s->own, w->path, strlen(w->path)),
                   .what = weir_arena_strndup(&s->own, what, strlen(what)),
                   .value = weir_arena_strndup(&s->own, value, strlen(value))};
    if (!f.object || !f.what || !f.value)
        return weir_nomem(w->err, "what files have in common");
    grown[s->n++] = f;
    return WEIR_OK;
}

static herr_t on_attribute(hid_t loc, const char *name, const H5A_info_t *info, void *user)
{
    walk *w = user;
    char *text;
    (void)info;
    if (w->path[0] ? ties_scales(name) : weir_fact_is_free(name))
        return 0;
    w->st = weir_h5_get_text(loc, name, &text, w->err);
    if (!w->st)
        w->st = add(w, name, text ? text : "(of an unknown type)");
    weir_free(text);
    return w->st ? -1 : 0;
}

static weir_status add_attributes(walk *w, hid_t object)
{
    hsize_t at = 0;
    herr_t e = H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, on_attribute, w);
    return w->st || e >= 0 ? w->st : weir_h5_fail(w->err, "cannot read the attributes of %s", w->path);
}

static const char *type_text(hid_t type, char buf[32])
{
    static const char *const name[] = {[H5T_INTEGER] = "int", [H5T_FLOAT] = "float", [H5T_STRING] = "string"};
    H5T_class_t c = H5Tget_class(type);
    bool known = c == H5T_INTEGER || c == H5T_FLOAT || c == H5T_STRING;
    const char *sign = c == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "";
    snprintf(buf, 32, "%s%s%zu", sign, known ? name[c] : "other", 8 * H5Tget_size(type));
    return buf;
}

/* "* x 12 x 64"; the first axis is given only where it cannot grow. */
static weir_status add_shape(walk *w, hid_t space)
{
    char text[96] = "";
    hsize_t dim[H5S_MAX_RANK], max[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, dim, max);
    for (int a = 0; a < rank && a < 4; a++) {
        size_t n = strlen(text);
        if (a == 0 && max[0] == H5S_UNLIMITED)
            snprintf(text, sizeof text, "*");
        else
            snprintf(text + n, sizeof text - n, "%s%" PRIuHSIZE, a ? " x " : "", dim[a]);
    }
    return add(w, "shape", text);
}

static weir_status add_chunks(walk *w, hid_t plist)
{
    char text[96] = "";
    hsize_t chunk[H5S_MAX_RANK];
    int rank = H5Pget_chunk(plist, H5S_MAX_RANK, chunk);
    for (int a = 0; a < rank && a < 4; a++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%" PRIuHSIZE, a ? " x " : "", chunk[a]);
    }
    return add(w, "chunk size", text);
}

static weir_status add_filters(walk *w, hid_t plist)
{
    char text[96] = "";
    int filters = H5Pget_nfilters(plist);
    for (int i = 0; i < filters && i < 4; i++) {
        unsigned flags, value[4] = {0};
        size_t n = strlen(text), n_values = 4;
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)i, &flags, &n_values, value, 0, NULL, NULL);
        const char *comma = i ? ", " : "";
        if (id == H5Z_FILTER_DEFLATE)
            snprintf(text + n, sizeof text - n, "%sdeflate %u", comma, value[0]);
        else if (id == H5Z_FILTER_SHUFFLE)
            snprintf(text + n, sizeof text - n, "%sshuffle", comma);
        else
            snprintf(text + n, sizeof text - n, "%sfilter %d", comma, (int)id);
    }
    return add(w, "compression", text[0] ? text : "none");
}

static weir_status add_dataset(walk *w, hid_t d)
{
    char buf[32];
    hid_t type = H5Dget_type(d), space = H5Dget_space(d), plist = H5Dget_create_plist(d);
    H5D_layout_t layout = H5Pget_layout(plist);
    weir_status st = WEIR_OK;
    if (layout == H5D_VIRTUAL)
        st = weir_fail(w->err, WEIR_E_ARG, "%s is a virtual dataset, whose rows are in other files: name those",
                       w->path);
    else if (layout != H5D_CHUNKED && H5Pget_external_count(plist) > 0)
        st = weir_fail(w->err, WEIR_E_FORMAT, "%s keeps its data in other files", w->path);
    if (!st)
        st = add(w, "type", type_text(type, buf));
    if (!st)
        st = add_shape(w, space);
    if (!st && layout == H5D_CHUNKED) {
        st = add_chunks(w, plist);
        if (!st)
            st = add_filters(w, plist);
    }
    H5Pclose(plist);
    H5Sclose(space);
    H5Tclose(type);
    return st ? st : add_attributes(w, d);
}

static weir_status walk_group(walk *w, hid_t group);

static weir_status look_at(walk *w, hid_t group, const char *name, const H5L_info_t *info)
{
    size_t before = strlen(w->path), n = strlen(name);
    if (info->type != H5L_TYPE_HARD)
        return weir_fail(w->err, WEIR_E_FORMAT, "%s is a link to another place", name);
    if (before + n + 2 > sizeof w->path || w->depth >= DEPTH_MAX || w->facts->n >= LINKS_MAX)
        return weir_fail(w->err, WEIR_E_FORMAT, "the file holds more than a file of weir's does");
    snprintf(w->path + before, sizeof w->path - before, "%s%s", before ? "/" : "", name);
    hid_t o = H5Oopen(group, name, H5P_DEFAULT);
    H5I_type_t kind = H5Iget_type(o);
    weir_status st;
    if (kind == H5I_DATASET) {
        st = add_dataset(w, o);
    } else if (kind == H5I_GROUP) {
        st = add(w, "kind", "group");
        w->depth++;
        if (!st && strcmp(w->path, "progress") != 0) /* what it lists follows from the rest */
            st = walk_group(w, o);
        w->depth--;
    } else {
        st = weir_h5_fail(w->err, "%s is neither a group nor a dataset", w->path);
    }
    H5Oclose(o);
    w->path[before] = '\0';
    return st;
}

static herr_t on_link(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    walk *w = user;
    w->st = look_at(w, group, name, info);
    return w->st ? -1 : 0;
}

/* Hook points in the order in which they were declared, everything else by name. */
static weir_status walk_group(walk *w, hid_t group)
{
    herr_t e = H5Literate(group, weir_h5_link_order(group), H5_ITER_INC, NULL, on_link, w);
    return w->st || e >= 0 ? w->st : weir_h5_fail(w->err, "cannot list group %s", w->path);
}

weir_status weir_facts_read(weir_facts *s, weir_infile *f, weir_err *err)
{
    walk w = {.facts = s, .err = err};
    hid_t root = H5Gopen2(f->id, "/", H5P_DEFAULT);
    weir_status st = add_attributes(&w, root);
    if (!st)
        st = walk_group(&w, root);
    H5Gclose(root);
    return st;
}

void weir_facts_free(weir_facts *s)
{
    weir_free(s->fact);
    weir_arena_free(&s->own);
    memset(s, 0, sizeof *s);
}

/* --- comparing */

static bool has(const weir_facts *s, const weir_fact *f)
{
    for (int64_t i = 0; i < s->n; i++)
        if (!strcmp(s->fact[i].object, f->object) && !strcmp(s->fact[i].what, f->what))
            return true;
    return false;
}

static const char *object_name(const weir_fact *f)
{
    return f->object[0] ? f->object : f->what;
}

weir_status weir_facts_compare(const weir_facts *a, const char *a_path, const weir_facts *b, weir_err *err)
{
    for (int64_t i = 0; i < a->n || i < b->n; i++) {
        const weir_fact *x = i < a->n ? &a->fact[i] : NULL, *y = i < b->n ? &b->fact[i] : NULL;
        bool same = x && y && !strcmp(x->object, y->object) && !strcmp(x->what, y->what);
        if (same && !strcmp(x->value, y->value))
            continue;
        if (same)
            return weir_fail(err, WEIR_E_ARG, "%s%s%s is \"%.80s\", but \"%.80s\" in %s", x->what,
                             x->object[0] ? " of " : "", x->object, y->value, x->value, a_path);
        if (x && !has(b, x))
            return weir_fail(err, WEIR_E_ARG, "has no %s, which %s has", object_name(x), a_path);
        if (y && !has(a, y))
            return weir_fail(err, WEIR_E_ARG, "has %s, which %s lacks", object_name(y), a_path);
        return weir_fail(err, WEIR_E_ARG, "has its datasets in another order than %s", a_path);
    }
    return WEIR_OK;
}

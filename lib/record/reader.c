/* record/reader.c: dumps read back with H5Dread. A file may be anything, so every object's kind, type, rank and size is
 * checked before it is used. */
#include <inttypes.h>
#include <string.h>

#include <weir/record.h>

#include "base/mem.h"
#include "dump.h"
#include "schema.h"

enum { CACHE_BYTES = 64 << 20, MAX_HOOKS = 1 << 20 };

struct weir_dump_reader {
    char *path;
    hid_t file, group;    /* group: /activations */
    weir_dump_hook *hook; /* [n_hooks] */
    int n_hooks;
    int64_t rows;
    hid_t open; /* the dataset read last, with its chunk cache; -1: none */
    int open_hook;
    struct { /* attributes that were asked for: their text is borrowed by the caller */
        char *name, *text;
    } * attr;
    int n_attrs;
    /* /progress, for files that were not completed */
    weir_progress_group *stage;
    int64_t *stage_rows; /* [n_stages] */
    int64_t n_stages;
};

/* --- checks */

typedef struct shape {
    int rank;
    hsize_t dim[3];
} shape;

/* A dataset of at most three axes whose elements are numbers of this class; -1 and an error otherwise. */
static hid_t open_numbers(hid_t loc, const char *name, H5T_class_t class, hid_t dapl, shape *s, weir_err *err)
{
    hid_t d = H5Dopen2(loc, name, dapl);
    if (d < 0) {
        weir_h5_fail(err, "cannot open dataset %s", name);
        return -1;
    }
    hid_t type = H5Dget_type(d), space = H5Dget_space(d), plist = H5Dget_create_plist(d);
    const char *wrong = NULL;
    s->rank = H5Sget_simple_extent_ndims(space);
    if (H5Tget_class(type) != class)
        wrong = "has another type of elements than a dump has";
    else if (s->rank < 1 || s->rank > 3 || H5Sget_simple_extent_dims(space, s->dim, NULL) < 0)
        wrong = "has another rank than a dump has";
    else if (H5Pget_external_count(plist) > 0)
        wrong = "keeps its data in other files";
    H5Pclose(plist);
    H5Tclose(type);
    H5Sclose(space);
    if (wrong) {
        weir_fail(err, WEIR_E_FORMAT, "dataset %s %s", name, wrong);
        H5Dclose(d);
        return -1;
    }
    return d;
}

/* Elements of one row, and the rows, as int64; rejects sizes whose bytes overflow. */
static weir_status check_sizes(const char *name, const shape *s, int64_t *rows, int64_t *width, weir_err *err)
{
    int64_t all;
    *width = 1;
    for (int a = 0; a < s->rank; a++)
        if (s->dim[a] > INT64_MAX || (a > 0 && s->dim[a] == 0))
            return weir_fail(err, WEIR_E_FORMAT, "dataset %s has an impossible shape", name);
    for (int a = 1; a < s->rank; a++)
        if (!weir_mul64(*width, (int64_t)s->dim[a], width))
            return weir_fail(err, WEIR_E_FORMAT, "dataset %s has an impossible shape", name);
    *rows = (int64_t)s->dim[0];
    if (!weir_mul64(*width, 8, &all) || !weir_mul64(all, *rows, &all))
        return weir_fail(err, WEIR_E_FORMAT, "dataset %s has an impossible shape", name);
    return WEIR_OK;
}

/* --- opening */

static weir_status check_format(weir_dump_reader *r, weir_err *err)
{
    int64_t version = 0;
    char *format;
    weir_status st = weir_h5_get_text(r->file, "format", &format, err);
    if (st)
        return st;
    if (!format)
        st = weir_fail(err, WEIR_E_FORMAT, "this HDF5 file is not a dump of weir's (no root attribute `format`)");
    else if (strcmp(format, WEIR_DUMP_FORMAT))
        st = weir_fail(err, WEIR_E_FORMAT, "this file has format \"%.40s\", not \"%s\"", format, WEIR_DUMP_FORMAT);
    else if (!weir_h5_get_int(r->file, "format_version", &version))
        st = weir_fail(err, WEIR_E_FORMAT, "the dump does not say its format_version");
    else if (version != WEIR_DUMP_VERSION)
        st = weir_fail(err, WEIR_E_UNSUPPORTED, "the dump has format_version %lld; this weir reads %d",
                       (long long)version, WEIR_DUMP_VERSION);
    weir_free(format);
    return st;
}

static weir_status read_tokens(weir_dump_reader *r, weir_err *err)
{
    shape s;
    int64_t width;
    hid_t d = open_numbers(r->file, "tokens/id", H5T_INTEGER, H5P_DEFAULT, &s, err);
    if (d < 0)
        return WEIR_E_FORMAT;
    H5Dclose(d);
    if (s.rank != 1)
        return weir_fail(err, WEIR_E_FORMAT, "dataset tokens/id has another rank than a dump has");
    return check_sizes("tokens/id", &s, &r->rows, &width, err);
}

/* Stages are read into fixed-length names; a file with others has been tampered with. */
static weir_status read_progress(weir_dump_reader *r, weir_err *err)
{
    shape s;
    int64_t n, width;
    hid_t rows = open_numbers(r->file, "progress/rows_complete", H5T_INTEGER, H5P_DEFAULT, &s, err);
    if (rows < 0)
        return WEIR_E_FORMAT;
    weir_status st = check_sizes("progress/rows_complete", &s, &n, &width, err);
    hid_t names = st ? -1 : H5Dopen2(r->file, "progress/group", H5P_DEFAULT);
    hid_t type = H5Dget_type(names), space = H5Dget_space(names), text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, sizeof(weir_progress_group));
    bool good = names >= 0 && s.rank == 1 && n <= MAX_HOOKS && H5Tget_class(type) == H5T_STRING &&
                H5Tis_variable_str(type) == 0 && H5Sget_simple_extent_npoints(space) == n;
    if (!st && !good)
        st = weir_fail(err, WEIR_E_FORMAT, "group progress is not that of a dump");
    if (!st) {
        r->stage = weir_calloc((size_t)n, sizeof *r->stage);
        r->stage_rows = weir_calloc((size_t)n, sizeof *r->stage_rows);
        r->n_stages = n;
        if (!r->stage || !r->stage_rows)
            st = weir_nomem(err, "a dump's progress");
        else if (H5Dread(names, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, r->stage) < 0 ||
                 H5Dread(rows, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, r->stage_rows) < 0)
            st = weir_h5_fail(err, "cannot read group progress");
    }
    H5Tclose(text);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(names);
    H5Dclose(rows);
    return st;
}

/* Rows of a stage that are whole. A stage that is missing has none. */
static int64_t stage_rows(const weir_dump_reader *r, const char *name)
{
    for (int64_t i = 0; i < r->n_stages; i++)
        if (!strncmp(r->stage[i].name, name, sizeof r->stage[i].name))
            return r->stage_rows[i] > 0 ? r->stage_rows[i] : 0;
    return 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

typedef struct listing {
    weir_dump_reader *r;
    weir_err *err;
    weir_status st;
} listing;

/* Heads and size of a row: the axes themselves at rank 3, attributes otherwise. */
static weir_status split_heads(weir_dump_hook *h, hid_t d, const shape *s, weir_err *err)
{
    int64_t heads = 1, size = h->width;
    if (s->rank == 3) {
        heads = (int64_t)s->dim[1];
        size = (int64_t)s->dim[2];
    } else if (weir_h5_get_int(d, "heads", &heads)) {
        int64_t product;
        if (!weir_h5_get_int(d, "head_size", &size) || heads <= 0 || size <= 0 || !weir_mul64(heads, size, &product) ||
            product != h->width)
            return weir_fail(err, WEIR_E_FORMAT,
                             "dataset %s has attributes heads and head_size that do not fit its width", h->name);
    }
    h->heads = heads;
    h->size = size;
    return WEIR_OK;
}

/* Rows of an unfinished file: what its stage says, if the dataset has them. */
static void limit_rows(const weir_dump_reader *r, weir_dump_hook *h, hid_t d)
{
    char stage[24];
    int64_t layer = -1;
    if (!r->stage)
        return;
    weir_h5_get_int(d, "layer", &layer);
    bool embed = !strcmp(h->name, "hook_embed") || !strcmp(h->name, "hook_pos_embed");
    weir_progress_name(stage, embed ? WEIR_SITE_EMBED : WEIR_SITE_LNF_OUT,
                       layer >= 0 && layer <= INT32_MAX ? (int)layer : -1);
    h->rows = least(h->rows, stage_rows(r, stage));
}

static weir_status add_hook(weir_dump_reader *r, const char *name, const H5L_info_t *info, weir_err *err)
{
    shape s;
    if (info->type != H5L_TYPE_HARD)
        return weir_fail(err, WEIR_E_FORMAT, "%s is a link to another place, not a dataset of this file", name);
    if (r->n_hooks >= MAX_HOOKS)
        return weir_fail(err, WEIR_E_FORMAT, "the file has too many datasets");
    weir_dump_hook *grown = weir_realloc(r->hook, (size_t)r->n_hooks + 1, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "a dump's datasets");
    r->hook = grown;
    weir_dump_hook *h = &grown[r->n_hooks];
    memset(h, 0, sizeof *h);
    if (!(h->name = weir_strndup(name, strlen(name))))
        return weir_nomem(err, "a dump's datasets");
    r->n_hooks++;
    hid_t d = open_numbers(r->group, name, H5T_FLOAT, H5P_DEFAULT, &s, err);
    if (d < 0)
        return WEIR_E_FORMAT;
    weir_status st = s.rank < 2 ? weir_fail(err, WEIR_E_FORMAT, "dataset %s has another rank than a dump has", name)
                                : check_sizes(name, &s, &h->rows, &h->width, err);
    if (!st)
        st = split_heads(h, d, &s, err);
    if (!st) {
        char *letters;
        st = weir_h5_get_text(d, "letters", &letters, err);
        if (!st && !letters && !(letters = weir_strndup("", 0)))
            st = weir_nomem(err, "a dump's datasets");
        h->letters = letters;
        limit_rows(r, h, d);
    }
    H5Dclose(d);
    return st;
}

static herr_t on_link(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    listing *l = user;
    (void)group;
    l->st = add_hook(l->r, name, info, l->err);
    return l->st ? -1 : 0;
}

/* Hook points in the order in which they were declared, where the file keeps it, else by name. */
static weir_status read_hooks(weir_dump_reader *r, weir_err *err)
{
    listing l = {.r = r, .err = err, .st = WEIR_OK};
    unsigned order = 0;
    r->group = H5Gopen2(r->file, "activations", H5P_DEFAULT);
    if (r->group < 0)
        return weir_h5_fail(err, "cannot open group activations");
    hid_t plist = H5Gget_create_plist(r->group);
    if (plist < 0 || H5Pget_link_creation_order(plist, &order) < 0)
        order = 0;
    H5Pclose(plist);
    H5_index_t index = order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
    herr_t e = H5Literate(r->group, index, H5_ITER_INC, NULL, on_link, &l);
    if (l.st)
        return l.st;
    return e < 0 ? weir_h5_fail(err, "cannot list group activations") : WEIR_OK;
}

static weir_status open_all(weir_dump_reader *r, weir_err *err)
{
    int64_t complete = 1;
    FILE *f = fopen(r->path, "rb"); /* the system's words for what the system refuses */
    if (!f)
        return weir_fail(err, WEIR_E_IO, "cannot open: %m");
    fclose(f);
    if (H5Fis_hdf5(r->path) <= 0)
        return weir_fail(err, WEIR_E_FORMAT, "not an HDF5 file");
    hid_t fapl = weir_h5_access();
    r->file = H5Fopen(r->path, H5F_ACC_RDONLY, fapl);
    H5Pclose(fapl);
    if (r->file < 0)
        return weir_h5_fail(err, "cannot open");
    WEIR_TRY(check_format(r, err));
    WEIR_TRY(read_tokens(r, err));
    if (!weir_h5_get_int(r->file, "complete", &complete) || !complete) {
        WEIR_TRY(read_progress(r, err));
        r->rows = least(r->rows, stage_rows(r, "tokens"));
    }
    WEIR_TRY(read_hooks(r, err));
    for (int i = 0; i < r->n_hooks; i++)
        r->rows = least(r->rows, r->hook[i].rows);
    return WEIR_OK;
}

static void free_reader(weir_dump_reader *r)
{
    if (r->open >= 0)
        H5Dclose(r->open);
    if (r->group >= 0)
        H5Gclose(r->group);
    if (r->file >= 0)
        H5Fclose(r->file);
    for (int i = 0; i < r->n_hooks; i++) {
        weir_free((char *)r->hook[i].name);
        weir_free((char *)r->hook[i].letters);
    }
    for (int i = 0; i < r->n_attrs; i++) {
        weir_free(r->attr[i].name);
        weir_free(r->attr[i].text);
    }
    weir_free(r->hook);
    weir_free(r->attr);
    weir_free(r->stage);
    weir_free(r->stage_rows);
    weir_free(r->path);
    weir_free(r);
}

weir_status weir_dump_open(weir_dump_reader **out, const char *path, weir_err *err)
{
    weir_h5_quiet q;
    *out = NULL;
    weir_dump_reader *r = weir_calloc(1, sizeof *r);
    if (!r || !(r->path = weir_strndup(path, strlen(path)))) {
        weir_free(r);
        return weir_nomem(err, "a dump's reader");
    }
    r->file = r->group = r->open = -1;
    weir_h5_quiet_begin(&q);
    weir_status st = open_all(r, err);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        free_reader(r);
        r = NULL;
    }
    weir_h5_quiet_end(&q);
    *out = r;
    return st;
}

void weir_dump_close(weir_dump_reader *r)
{
    weir_h5_quiet q;
    if (!r)
        return;
    weir_h5_quiet_begin(&q);
    free_reader(r);
    weir_h5_quiet_end(&q);
}

/* --- what it holds */

int64_t weir_dump_rows(const weir_dump_reader *r)
{
    return r->rows;
}

int weir_dump_n_hooks(const weir_dump_reader *r)
{
    return r->n_hooks;
}

const weir_dump_hook *weir_dump_hook_at(const weir_dump_reader *r, int i)
{
    return i >= 0 && i < r->n_hooks ? &r->hook[i] : NULL;
}

int weir_dump_find(const weir_dump_reader *r, const char *name)
{
    for (int i = 0; i < r->n_hooks; i++)
        if (!strcmp(r->hook[i].name, name))
            return i;
    return -1;
}

/* A cache that holds the tiles of one band of rows, so that reading in smaller steps inflates each tile once. */
static hid_t cached_access(int64_t width)
{
    hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);
    int64_t bytes = CACHE_BYTES;
    if (width < CACHE_BYTES / (WEIR_TILE_ROWS * 4))
        bytes = (width + WEIR_TILE_COLS) * WEIR_TILE_ROWS * 4;
    if (dapl >= 0)
        H5Pset_chunk_cache(dapl, 4099, (size_t)bytes, 1.0);
    return dapl;
}

static weir_status open_hook(weir_dump_reader *r, int i, weir_err *err)
{
    shape s;
    if (r->open >= 0 && r->open_hook == i)
        return WEIR_OK;
    if (r->open >= 0)
        H5Dclose(r->open);
    hid_t dapl = cached_access(r->hook[i].width);
    r->open = open_numbers(r->group, r->hook[i].name, H5T_FLOAT, dapl, &s, err);
    r->open_hook = i;
    H5Pclose(dapl);
    return r->open >= 0 ? WEIR_OK : WEIR_E_FORMAT;
}

/* Rows [row, row+n) of dataset d, whole rows, as `type`. */
static weir_status read_rows(hid_t d, hid_t type, int64_t row, int64_t n, void *out, weir_err *err)
{
    hsize_t dim[3], at[3] = {(hsize_t)row, 0, 0};
    hid_t space = H5Dget_space(d);
    int rank = H5Sget_simple_extent_dims(space, dim, NULL);
    dim[0] = (hsize_t)n;
    hid_t mem = H5Screate_simple(rank, dim, NULL);
    weir_status st = WEIR_OK;
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, dim, NULL) < 0 ||
        H5Dread(d, type, mem, space, H5P_DEFAULT, out) < 0)
        st = weir_h5_fail(err, "cannot read rows %" PRId64 " to %" PRId64, row, row + n - 1);
    H5Sclose(mem);
    H5Sclose(space);
    return st;
}

static weir_status check_range(int64_t row, int64_t n, int64_t rows, weir_err *err)
{
    if (row < 0 || n < 0 || row > rows || n > rows - row)
        return weir_fail(err, WEIR_E_ARG, "rows %" PRId64 " to %" PRId64 " are asked of %" PRId64, row, row + n - 1,
                         rows);
    return WEIR_OK;
}

weir_status weir_dump_read(weir_dump_reader *r, int i, int64_t row, int64_t n, float *out, weir_err *err)
{
    weir_h5_quiet q;
    if (i < 0 || i >= r->n_hooks)
        return weir_fail(err, WEIR_E_ARG, "hook %d is asked of %d", i, r->n_hooks);
    WEIR_TRY(check_range(row, n, r->hook[i].rows, err));
    if (n == 0)
        return WEIR_OK;
    weir_h5_quiet_begin(&q);
    weir_status st = open_hook(r, i, err);
    if (!st)
        st = read_rows(r->open, H5T_NATIVE_FLOAT, row, n, out, err);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, r->path, r->hook[i].name, -1);
    return st;
}

weir_status weir_dump_read_ids(weir_dump_reader *r, int64_t row, int64_t n, int32_t *out, weir_err *err)
{
    weir_h5_quiet q;
    shape s;
    WEIR_TRY(check_range(row, n, r->rows, err));
    if (n == 0)
        return WEIR_OK;
    weir_h5_quiet_begin(&q);
    hid_t d = open_numbers(r->file, "tokens/id", H5T_INTEGER, H5P_DEFAULT, &s, err);
    weir_status st = d < 0 ? WEIR_E_FORMAT : read_rows(d, H5T_NATIVE_INT32, row, n, out, err);
    if (d >= 0)
        H5Dclose(d);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, r->path, "tokens/id", -1);
    return st;
}

const char *weir_dump_attr(weir_dump_reader *r, const char *name)
{
    weir_h5_quiet q;
    for (int i = 0; i < r->n_attrs; i++)
        if (!strcmp(r->attr[i].name, name))
            return r->attr[i].text;
    void *grown = weir_realloc(r->attr, (size_t)r->n_attrs + 1, sizeof *r->attr);
    if (!grown)
        return NULL;
    r->attr = grown;
    weir_h5_quiet_begin(&q);
    char *text;
    weir_status st = weir_h5_get_text(r->file, name, &text, NULL);
    weir_h5_quiet_end(&q);
    char *key = !st && text ? weir_strndup(name, strlen(name)) : NULL;
    if (!key) {
        weir_free(text);
        return NULL;
    }
    r->attr[r->n_attrs].name = key;
    r->attr[r->n_attrs++].text = text;
    return text;
}

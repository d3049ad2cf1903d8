/* record/dset.c: see dset.h. */
#include "dset.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

/* Elements of a row and bytes of a chunk that are taken for real: far above any model's, far below what a damaged file
 * can make us allocate. */
enum { WIDTH_MAX = 1 << 28, CHUNK_BYTES_MAX = 1 << 28 };

/* --- shape and type */

static weir_status bad(const weir_dset *d, const char *what, weir_err *err)
{
    return weir_fail(err, WEIR_E_FORMAT, "dataset %.200s %s", d->name, what);
}

static weir_status take_shape(weir_dset *d, hid_t space, weir_err *err)
{
    hsize_t dim[3] = {0, 1, 1};
    int64_t all;
    d->rank = H5Sget_simple_extent_ndims(space);
    if (d->rank < 1 || d->rank > 3 || H5Sget_simple_extent_dims(space, dim, NULL) < 0)
        return bad(d, "has another rank than a dump has", err);
    for (int a = 0; a < d->rank; a++)
        if (dim[a] > INT64_MAX || (a > 0 && dim[a] == 0))
            return bad(d, "has an impossible shape", err);
    d->rows = (int64_t)dim[0];
    d->outer = d->rank == 3 ? (int64_t)dim[1] : 1;
    d->inner = d->rank == 3 ? (int64_t)dim[2] : (int64_t)dim[1];
    if (!weir_mul64(d->outer, d->inner, &d->width) || d->width > WIDTH_MAX || !weir_mul64(d->width, 8, &all) ||
        !weir_mul64(all, d->rows, &all))
        return bad(d, "has an impossible shape", err);
    return WEIR_OK;
}

/* IEEE 754 binary16, little-endian. */
static bool is_half(hid_t type)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    return H5Tget_size(type) == 2 && H5Tget_order(type) == H5T_ORDER_LE && H5Tget_precision(type) == 16 &&
           H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 && sign == 15 &&
           exponent == 10 && exponent_bits == 5 && mantissa == 0 && mantissa_bits == 10 && H5Tget_ebias(type) == 15 &&
           H5Tget_norm(type) == H5T_NORM_IMPLIED;
}

/* Are the file's elements what we know how to turn into `as`, byte by byte? */
static bool known_type(weir_dset *d, hid_t type)
{
    const uint16_t one = 1;
    uint8_t low;
    memcpy(&low, &one, 1);
    if (low != 1) /* on a big-endian machine HDF5 converts */
        return false;
    d->half = d->as == WEIR_ELEM_F32 && is_half(type);
    return d->half || H5Tequal(type, weir_elem_type(d->as)) > 0;
}

/* A link may lead into another file: HDF5 opens that by itself, and weir_infile_locate would not hear where it reads.
 */
static weir_status check_file(const weir_dset *d, weir_err *err)
{
    H5O_info_t here, there;
    if (H5Oget_info2(d->file->id, &here, H5O_INFO_BASIC) < 0 || H5Oget_info2(d->id, &there, H5O_INFO_BASIC) < 0)
        return weir_h5_fail(err, "cannot open dataset %.200s", d->name);
    return here.fileno == there.fileno ? WEIR_OK : bad(d, "lies in another file, where a link leads", err);
}

/* --- chunks */

static bool known_filters(weir_dset *d, hid_t plist)
{
    int n = H5Pget_nfilters(plist);
    for (int i = 0; i < n; i++) {
        unsigned flags, value[8] = {0}, config;
        size_t n_values = 8;
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)i, &flags, &n_values, value, 0, NULL, &config);
        if (id == H5Z_FILTER_SHUFFLE && i == 0 && value[0] == d->elem)
            d->shuffle = 1u << i;
        else if (id == H5Z_FILTER_DEFLATE && i == n - 1)
            d->deflate = 1u << i;
        else
            return false;
    }
    return n >= 0;
}

static bool known_chunks(weir_dset *d, hid_t plist)
{
    hsize_t c[3] = {1, 1, 1};
    unsigned options = 0;
    int64_t bytes = (int64_t)d->elem;
    if (H5Pget_layout(plist) != H5D_CHUNKED || H5Pget_chunk(plist, 3, c) != d->rank ||
        H5Pget_chunk_opts(plist, &options) < 0 || options != 0)
        return false;
    d->chunk[0] = (int64_t)c[0];
    d->chunk[1] = d->rank == 3 ? (int64_t)c[1] : 1;
    d->chunk[2] = d->rank == 3 ? (int64_t)c[2] : (int64_t)c[1];
    for (int a = 0; a < 3; a++)
        if (d->chunk[a] < 1 || !weir_mul64(bytes, d->chunk[a], &bytes))
            return false;
    d->chunk_bytes = (size_t)bytes;
    return true;
}

static bool known_fill(weir_dset *d, hid_t plist)
{
    H5D_fill_value_t kind;
    if (H5Pfill_value_defined(plist, &kind) < 0)
        return false;
    return kind == H5D_FILL_VALUE_UNDEFINED || H5Pget_fill_value(plist, weir_elem_type(d->as), d->fill) >= 0;
}

static weir_status take_storage(weir_dset *d, hid_t type, hid_t plist, weir_err *err)
{
    H5T_class_t class = d->as == WEIR_ELEM_F32 || d->as == WEIR_ELEM_F64 ? H5T_FLOAT : H5T_INTEGER;
    if (H5Tget_class(type) != class)
        return bad(d, "has another type of elements than a dump has", err);
    if (H5Pget_external_count(plist) > 0)
        return bad(d, "keeps its data in other files", err);
    d->elem = H5Tget_size(type);
    d->is_virtual = H5Pget_layout(plist) == H5D_VIRTUAL;
    const bool chunked = known_chunks(d, plist), filled = known_fill(d, plist);
    if (d->chunk_bytes > CHUNK_BYTES_MAX)
        return bad(d, "has chunks that are too large", err);
    d->direct = chunked && filled && known_type(d, type) && known_filters(d, plist);
    return WEIR_OK;
}

weir_status weir_dset_open(weir_dset *d, weir_infile *f, hid_t loc, const char *name, weir_elem as, weir_err *err)
{
    d->file = f;
    d->as = as;
    if (!(d->name = weir_strndup(name, strlen(name))))
        return weir_nomem(err, "a dataset that is read");
    d->id = H5Dopen2(loc, name, H5P_DEFAULT);
    if (d->id < 0) {
        d->id = 0;
        return weir_h5_fail(err, "cannot open dataset %.200s", name);
    }
    hid_t type = H5Dget_type(d->id), space = H5Dget_space(d->id), plist = H5Dget_create_plist(d->id);
    weir_status st = check_file(d, err);
    if (!st)
        st = take_shape(d, space, err);
    if (!st)
        st = take_storage(d, type, plist, err);
    H5Pclose(plist);
    H5Sclose(space);
    H5Tclose(type);
    return st;
}

void weir_dset_close(weir_dset *d)
{
    if (d->id > 0)
        H5Dclose(d->id);
    weir_free(d->name);
    memset(d, 0, sizeof *d);
}

weir_status weir_dset_read_plain(const weir_dset *d, int64_t row, int64_t n, void *out, weir_err *err)
{
    hsize_t at[3] = {(hsize_t)row, 0, 0};
    hsize_t dim[3] = {(hsize_t)n, (hsize_t)(d->rank == 3 ? d->outer : d->inner), (hsize_t)d->inner};
    hid_t space = H5Dget_space(d->id), mem = H5Screate_simple(d->rank, dim, NULL);
    weir_status st = WEIR_OK;
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, dim, NULL) < 0 ||
        H5Dread(d->id, weir_elem_type(d->as), mem, space, H5P_DEFAULT, out) < 0)
        st = weir_h5_fail(err, "cannot read rows %" PRId64 " to %" PRId64, row, row + n - 1);
    H5Sclose(mem);
    H5Sclose(space);
    return st;
}

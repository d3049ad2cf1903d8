/* record/values.c: arrays from files: what FILE[::NAME][@ROW][*C] means, .npy and safetensors. */
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "superblock.h"

void weir_array_free(weir_array *a)
{
    weir_free(a->data);
    weir_free(a->units);
    *a = (weir_array){0};
}

weir_status weir_array_alloc(weir_array *a, int64_t rows, int64_t width, weir_err *err)
{
    int64_t n;
    if (width > WEIR_VALUES_WIDTH || !weir_mul64(rows, width, &n))
        return weir_fail(err, WEIR_E_SHAPE, "rows of %lld numbers: no hook point has such", (long long)width);
    if (n > WEIR_VALUES_MOST)
        return weir_fail(err, WEIR_E_SHAPE, "%lld rows of %lld numbers are too many", (long long)rows,
                         (long long)width);
    a->data = weir_calloc((size_t)n, sizeof *a->data);
    a->rows = rows;
    a->width = width;
    return a->data ? WEIR_OK : weir_nomem(err, "values");
}

/* --- the text */

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Takes *C off the end of path, if it stands there. */
static void take_factor(char *path, float *factor)
{
    char *star = strrchr(path, '*'), *end;
    if (!star || !star[1] || strspn(star + 1, "0123456789+-.eE") != strlen(star + 1))
        return;
    float v = strtof(star + 1, &end);
    if (*end || !isfinite(v))
        return;
    *factor = v;
    *star = 0;
}

static bool take_row(char *path, int64_t *row)
{
    char *at = strrchr(path, '@');
    const char *digits = at ? at + 1 + (at[1] == '-') : NULL;
    size_t n = digits ? strspn(digits, "0123456789") : 0;
    if (!n || digits[n] || n > 18)
        return false;
    *row = strtoll(at + 1, NULL, 10);
    *at = 0;
    return true;
}

/* Cuts path at the first `::` that has a file before it, else at the first one. */
static char *take_name(char *path)
{
    char *cut = strstr(path, "::");
    for (char *p = cut; p; p = strstr(p + 1, "::")) {
        *p = 0;
        bool file = exists(path);
        *p = ':';
        if (file) {
            cut = p;
            break;
        }
    }
    if (!cut || cut == path)
        return NULL;
    *cut = 0;
    return cut + 2;
}

weir_status weir_values_spec_parse(weir_values_spec *s, const char *text, weir_err *err)
{
    const char *name = NULL;
    *s = (weir_values_spec){.factor = 1};
    s->path = weir_strndup(text, strlen(text));
    if (!s->path)
        return weir_nomem(err, "values");
    if (!exists(s->path))
        take_factor(s->path, &s->factor);
    if (!exists(s->path))
        s->one_row = take_row(s->path, &s->row);
    if (!exists(s->path))
        name = take_name(s->path);
    if (!*s->path || (name && !*name)) {
        weir_values_spec_free(s);
        return weir_fail(err, WEIR_E_ARG, "\"%s\": FILE[::NAME][@ROW][*C] was expected", text);
    }
    s->name = name ? weir_strndup(name, strlen(name)) : NULL;
    if (!name || s->name)
        return WEIR_OK;
    weir_values_spec_free(s);
    return weir_nomem(err, "values");
}

void weir_values_spec_free(weir_values_spec *s)
{
    weir_free(s->path);
    weir_free(s->name);
    *s = (weir_values_spec){0};
}

char *weir_values_path(const char *text)
{
    weir_values_spec s;
    if (weir_values_spec_parse(&s, text, NULL))
        return NULL;
    weir_free(s.name);
    return s.path;
}

/* --- rows */

weir_status weir_values_shape(int rank, const int64_t *shape, int64_t *rows, int64_t *width, weir_err *err)
{
    *rows = rank > 1 ? shape[0] : 1;
    *width = rank == 1 ? shape[0] : 1;
    for (int i = 1; i < rank; i++)
        if (!weir_mul64(*width, shape[i], width))
            return weir_fail(err, WEIR_E_FORMAT, "the array's size overflows");
    return *rows > 0 && *width > 0 ? WEIR_OK : weir_fail(err, WEIR_E_SHAPE, "the array is empty");
}

weir_status weir_values_rows(const weir_values_spec *s, int64_t rows, int64_t most_rows, int64_t *first, int64_t *n,
                             weir_err *err)
{
    *first = s->row < 0 ? rows + s->row : s->row;
    *n = s->one_row ? 1 : rows;
    if (s->one_row && (*first < 0 || *first >= rows))
        return weir_fail(err, WEIR_E_ARG, "row %lld is asked of %lld", (long long)s->row, (long long)rows);
    if (*n > most_rows)
        return weir_fail(err, WEIR_E_SHAPE, "%lld rows, where at most %lld can be used: choose one with @ROW",
                         (long long)rows, (long long)most_rows);
    return WEIR_OK;
}

/* --- .npy */

static weir_status from_npy(weir_array *a, const weir_values_spec *s, const weir_filemap *m, int64_t most_rows,
                            weir_err *err)
{
    weir_npy npy;
    int64_t rows, width, first, n;
    if (s->name)
        return weir_fail(err, WEIR_E_ARG, "::%s: an .npy file holds one array, without a name", s->name);
    WEIR_TRY(weir_npy_parse(&npy, m, err));
    WEIR_TRY(weir_values_shape(npy.rank, npy.shape, &rows, &width, err));
    WEIR_TRY(weir_values_rows(s, rows, most_rows, &first, &n, err));
    WEIR_TRY(weir_array_alloc(a, n, width, err));
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < width; i++)
            a->data[r * width + i] = (float)weir_npy_element(&npy, (first + r) * width + i);
    return WEIR_OK;
}

/* --- safetensors */

static weir_status no_tensor(const weir_values_spec *s, const weir_tensor *t, int64_t n, weir_err *err)
{
    weir_buf names = {0};
    weir_status st = WEIR_OK;
    for (int64_t i = 0; i < n && i < 6 && !st; i++)
        st = weir_buf_printf(&names, "%s%.60s", i ? ", " : "", t[i].name);
    if (!st && n > 6)
        st = weir_buf_printf(&names, ", ... (%lld)", (long long)n);
    if (st)
        st = weir_nomem(err, "values");
    else if (n == 0)
        st = weir_fail(err, WEIR_E_ARG, "the file holds no tensor");
    else
        st = weir_fail(err, WEIR_E_ARG, "%s%s%sthe file holds %s", s->name ? "no tensor " : "name a tensor with ::NAME",
                       s->name ? s->name : "", ": ", names.p);
    weir_buf_free(&names);
    return st;
}

static const weir_tensor *find_tensor(const char *name, const weir_tensor *t, int64_t n)
{
    for (int64_t i = 0; name && i < n; i++)
        if (strcmp(t[i].name, name) == 0)
            return &t[i];
    return NULL;
}

static weir_status from_tensor(weir_array *a, const weir_values_spec *s, const weir_tensor *t, int64_t most_rows,
                               weir_err *err)
{
    int64_t rows, width, first, n;
    if (t->dtype != WEIR_F32 && t->dtype != WEIR_F16 && t->dtype != WEIR_BF16)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "its elements are not F32, F16 or BF16: save it as one of them");
    WEIR_TRY(weir_values_shape(t->rank, t->shape, &rows, &width, err));
    WEIR_TRY(weir_values_rows(s, rows, most_rows, &first, &n, err));
    WEIR_TRY(weir_array_alloc(a, n, width, err));
    const uint8_t *from = (const uint8_t *)t->data + first * width * weir_dtype_bytes(t->dtype);
    weir_dequantize(t->dtype, from, n * width, a->data);
    return WEIR_OK;
}

static weir_status from_safetensors(weir_array *a, const weir_values_spec *s, const weir_filemap *m, const char *hook,
                                    int64_t most_rows, weir_err *err)
{
    weir_arena arena = {0};
    weir_tensor *t = NULL;
    int64_t n = 0;
    weir_status st = weir_safetensors_parse(m, &arena, &t, &n, err);
    if (!st) {
        const weir_tensor *found = find_tensor(s->name ? s->name : hook, t, n);
        if (!found && !s->name && n == 1)
            found = t;
        st = found ? from_tensor(a, s, found, most_rows, err) : no_tensor(s, t, n, err);
        if (st && found)
            weir_err_where(err, m->path, found->name, -1);
    }
    weir_arena_free(&arena);
    return st;
}

/* --- any file */

static bool begins(const weir_filemap *m, const char *magic, size_t n)
{
    return m->size >= n && memcmp(m->data, magic, n) == 0;
}

static bool is_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return end > text && *end == 0;
}

static weir_status load(weir_array *a, const weir_values_spec *s, const char *hook, int64_t most_rows, weir_err *err)
{
    weir_filemap m;
    if (is_number(s->path) && access(s->path, F_OK) != 0) /* --set SEL=0 */
        return weir_fail(err, WEIR_E_IO, "a number, and no file of this name: a vector is wanted, "
                                         "FILE[::NAME][@ROW][*C] (--ablate sets to zero, --scale multiplies)");
    weir_status st = weir_filemap_open(&m, s->path, err);
    if (st)
        return st;
    if (weir_npy_is(&m))
        st = from_npy(a, s, &m, most_rows, err);
    else if (begins(&m, WEIR_HDF5_SIGNATURE, WEIR_SUPER_SIGNATURE))
        st = weir_values_h5(a, s, hook, most_rows, err);
    else if (begins(&m, "PK\3\4", 4))
        st = weir_fail(err, WEIR_E_UNSUPPORTED,
                       "a zip archive (.npz, .pt): save the array itself, as .npy or safetensors");
    else if (m.size < 9 || m.data[8] != '{')
        st = weir_fail(err, WEIR_E_FORMAT, "neither an .npy nor a safetensors nor an HDF5 file");
    else
        st = from_safetensors(a, s, &m, hook, most_rows, err);
    weir_filemap_close(&m);
    return st;
}

/* Multiplies, and finds what is no number to compute with. */
static weir_status finish(weir_array *a, float factor, weir_err *err)
{
    for (int64_t i = 0; i < a->rows * a->width; i++) {
        if (factor != 1)
            a->data[i] *= factor;
        if (!isfinite(a->data[i]))
            return weir_fail(err, WEIR_E_FORMAT, "element %lld of row %lld is no finite float32",
                             (long long)(i % a->width), (long long)(i / a->width));
    }
    return WEIR_OK;
}

weir_status weir_values_load(weir_array *out, const char *text, const char *hook, int64_t most_rows, weir_err *err)
{
    weir_values_spec s;
    *out = (weir_array){0};
    WEIR_TRY(weir_values_spec_parse(&s, text, err));
    weir_status st = load(out, &s, hook, most_rows, err);
    if (!st)
        st = finish(out, s.factor, err);
    if (st) {
        weir_err_where(err, s.path, NULL, -1);
        weir_array_free(out);
    }
    weir_values_spec_free(&s);
    return st;
}

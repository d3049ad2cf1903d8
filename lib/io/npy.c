/* io/npy.c: the header is a Python dictionary as text: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. */
#include "npy.h"

#include <math.h>
#include <string.h>

#include "../base/mem.h"
#include "cursor.h"

static const char MAGIC[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, HEADER_MAX = 1 << 20, DESCR_MAX = 16 };

bool weir_npy_is(const weir_filemap *m)
{
    return m->size >= MAGIC_BYTES && memcmp(m->data, MAGIC, MAGIC_BYTES) == 0;
}

/* --- the dictionary */

static void skip_space(weir_cursor *c)
{
    while (c->pos < c->size && (c->p[c->pos] == ' ' || c->p[c->pos] == '\t' || c->p[c->pos] == '\n'))
        c->pos++;
}

/* True if the character comes next, which is taken. */
static bool accept(weir_cursor *c, char want)
{
    skip_space(c);
    if (c->status != WEIR_OK || c->pos == c->size || c->p[c->pos] != (uint8_t)want)
        return false;
    c->pos++;
    return true;
}

static void expect(weir_cursor *c, char want)
{
    if (!accept(c, want))
        weir_cursor_fail(c, WEIR_E_FORMAT, "'%c' was expected in the .npy header", want);
}

/* A string in single or double quotes, without escapes. */
static void string(weir_cursor *c, char out[DESCR_MAX])
{
    char quote = accept(c, '\'') ? '\'' : '"';
    size_t n = 0;
    if (quote == '"')
        expect(c, '"');
    while (c->status == WEIR_OK && c->pos < c->size && c->p[c->pos] != (uint8_t)quote) {
        if (n == DESCR_MAX - 1 || c->p[c->pos] == '\\')
            weir_cursor_fail(c, WEIR_E_FORMAT, "a string of the .npy header is none that numpy writes for numbers");
        else
            out[n++] = (char)c->p[c->pos++];
    }
    out[n] = 0;
    expect(c, quote);
}

static bool word(weir_cursor *c, const char *text)
{
    size_t n = strlen(text);
    skip_space(c);
    if (c->size - c->pos < n || memcmp(c->p + c->pos, text, n) != 0)
        return false;
    c->pos += n;
    return true;
}

static int64_t number(weir_cursor *c)
{
    int64_t v = 0;
    skip_space(c);
    size_t from = c->pos;
    while (c->pos < c->size && c->p[c->pos] >= '0' && c->p[c->pos] <= '9' && c->pos - from < 18)
        v = v * 10 + (c->p[c->pos++] - '0');
    if (c->pos == from)
        weir_cursor_fail(c, WEIR_E_FORMAT, "a number was expected in the .npy header");
    return v;
}

static void read_shape(weir_cursor *c, weir_npy *a)
{
    expect(c, '(');
    while (c->status == WEIR_OK && !accept(c, ')')) {
        if (a->rank == WEIR_NPY_RANK) {
            weir_cursor_fail(c, WEIR_E_UNSUPPORTED, "the array has more than %d axes", WEIR_NPY_RANK);
            return;
        }
        a->shape[a->rank++] = number(c);
        word(c, "L"); /* Python 2 */
        if (!accept(c, ',')) {
            expect(c, ')');
            return;
        }
    }
}

static void read_descr(weir_cursor *c, weir_npy *a)
{
    char d[DESCR_MAX];
    skip_space(c);
    if (c->pos < c->size && c->p[c->pos] == '[') {
        weir_cursor_fail(c, WEIR_E_UNSUPPORTED, "the array has named fields: save one field as an array of its own");
        return;
    }
    string(c, d);
    if (c->status != WEIR_OK)
        return;
    bool order = d[0] && strchr("<>|=", d[0]);
    a->kind = order ? d[1] : 0;
    a->size = a->kind && d[2] >= '1' && d[2] <= '9' && !d[3] ? d[2] - '0' : 0;
    a->big = d[0] == '>';
    bool power = a->size == 1 || a->size == 2 || a->size == 4 || a->size == 8;
    if (!power || !(a->kind == 'i' || a->kind == 'u' || (a->kind == 'f' && a->size > 1)))
        weir_cursor_fail(c, WEIR_E_UNSUPPORTED, "elements of type '%s': floats (f2, f4, f8) or integers were expected",
                         d);
}

static void read_dictionary(weir_cursor *c, weir_npy *a)
{
    unsigned seen = 0;
    expect(c, '{');
    while (c->status == WEIR_OK && !accept(c, '}')) {
        char key[DESCR_MAX];
        string(c, key);
        expect(c, ':');
        unsigned bit = !strcmp(key, "descr") ? 1 : !strcmp(key, "fortran_order") ? 2 : !strcmp(key, "shape") ? 4 : 0;
        if (c->status == WEIR_OK && (!bit || seen & bit))
            weir_cursor_fail(c, WEIR_E_FORMAT, "the .npy header has a surplus key \"%s\"", key);
        seen |= bit;
        if (bit == 1)
            read_descr(c, a);
        else if (bit == 4)
            read_shape(c, a);
        else if (!(a->fortran = word(c, "True")) && !word(c, "False"))
            weir_cursor_fail(c, WEIR_E_FORMAT, "fortran_order must be True or False");
        if (!accept(c, ',')) {
            expect(c, '}');
            break;
        }
    }
    skip_space(c);
    if (c->status == WEIR_OK && (seen != 7 || c->pos != c->size))
        weir_cursor_fail(c, WEIR_E_FORMAT, "the .npy header is not {'descr', 'fortran_order', 'shape'}");
}

/* --- the file */

static weir_status check_data(weir_npy *a, weir_cursor *file)
{
    int64_t bytes;
    a->n = 1;
    for (int i = 0; i < a->rank; i++)
        if (!weir_mul64(a->n, a->shape[i], &a->n))
            return weir_cursor_fail(file, WEIR_E_FORMAT, "the array's size overflows");
    if (!weir_mul64(a->n, a->size, &bytes))
        return weir_cursor_fail(file, WEIR_E_FORMAT, "the array's size overflows");
    if (bytes != (int64_t)weir_cursor_left(file))
        return weir_cursor_fail(file, WEIR_E_FORMAT, "the array needs %lld bytes, but %zu follow the header",
                                (long long)bytes, weir_cursor_left(file));
    a->data = weir_cursor_bytes(file, (uint64_t)bytes);
    return WEIR_OK;
}

weir_status weir_npy_parse(weir_npy *a, const weir_filemap *m, weir_err *err)
{
    weir_cursor file;
    *a = (weir_npy){0};
    weir_cursor_init(&file, m->data, m->size, m->path, err);
    weir_cursor_bytes(&file, MAGIC_BYTES);
    uint8_t major = weir_cursor_u8(&file), minor = weir_cursor_u8(&file);
    uint32_t n = major == 1 ? weir_cursor_u16(&file) : weir_cursor_u32(&file);
    if (file.status == WEIR_OK && (major < 1 || major > 3))
        return weir_cursor_fail(&file, WEIR_E_UNSUPPORTED, "version %d.%d of the .npy format: 1.0 to 3.0 are known",
                                major, minor);
    if (file.status == WEIR_OK && n > HEADER_MAX)
        return weir_cursor_fail(&file, WEIR_E_FORMAT, "a header of %u bytes is longer than any array needs", n);
    const uint8_t *text = weir_cursor_bytes(&file, n);
    if (file.status != WEIR_OK)
        return file.status;
    weir_cursor c; /* of the whole file up to the header's end, so that errors have the file's offsets */
    weir_cursor_init(&c, m->data, file.pos, m->path, err);
    c.pos = (size_t)(text - m->data);
    read_dictionary(&c, a);
    return c.status != WEIR_OK ? c.status : check_data(a, &file);
}

static double half(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double v = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                              : ldexp(mantissa, -24);
    return h >> 15 ? -v : v;
}

/* The i-th element in the file's order. */
static double stored(const weir_npy *a, int64_t i)
{
    const uint8_t *p = a->data + i * a->size;
    uint64_t u = 0;
    for (int b = 0; b < a->size; b++)
        u |= (uint64_t)p[a->big ? a->size - 1 - b : b] << 8 * b;
    if (a->kind == 'u')
        return (double)u;
    if (a->kind == 'i') {
        int shift = 64 - 8 * a->size;
        return (double)((int64_t)(u << shift) >> shift);
    }
    if (a->size == 8) {
        double d;
        memcpy(&d, &u, sizeof d);
        return d;
    }
    if (a->size == 2)
        return half((uint16_t)u);
    uint32_t w = (uint32_t)u;
    float f;
    memcpy(&f, &w, sizeof f);
    return (double)f;
}

/* Place of the i-th element (in C order) in a file in Fortran order. */
static int64_t fortran_place(const weir_npy *a, int64_t i)
{
    int64_t at[WEIR_NPY_RANK], place = 0;
    for (int k = a->rank - 1; k >= 0; k--) {
        at[k] = i % a->shape[k];
        i /= a->shape[k];
    }
    for (int k = a->rank - 1; k >= 0; k--)
        place = place * a->shape[k] + at[k];
    return place;
}

double weir_npy_element(const weir_npy *a, int64_t i)
{
    return stored(a, a->fortran ? fortran_place(a, i) : i);
}

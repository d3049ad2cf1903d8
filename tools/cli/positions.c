#include "positions.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <weir/json.h>

#include "opt.h"

/* A number that ends at *end; absent: what `missing` says. */
static bool bound(const char *text, size_t n, int64_t missing, int64_t *out)
{
    char digits[24];
    if (n == 0) {
        *out = missing;
        return true;
    }
    if (n >= sizeof digits)
        return false;
    memcpy(digits, text, n);
    digits[n] = 0;
    return weir_parse_int(digits, out);
}

/* "last", "A:B", "A:", ":B", ":", "A". */
static bool parse_range(const char *text, size_t n, int64_t range[2])
{
    const char *colon = memchr(text, ':', n);
    if (n == 4 && memcmp(text, "last", 4) == 0) {
        range[0] = -1;
        range[1] = INT64_MAX;
        return true;
    }
    if (colon) {
        size_t left = (size_t)(colon - text);
        return bound(text, left, 0, &range[0]) && bound(colon + 1, n - left - 1, INT64_MAX, &range[1]);
    }
    if (n == 0 || !bound(text, n, 0, &range[0]))
        return false;
    range[1] = range[0] == -1 || range[0] == INT64_MAX ? INT64_MAX : range[0] + 1;
    return true;
}

weir_status weir_positions_parse(weir_positions *p, const char *text, weir_err *err)
{
    *p = (weir_positions){.all = strcmp(text, "all") == 0};
    if (p->all)
        return WEIR_OK;
    if (text[0] == '@' && text[1]) {
        p->field = text + 1;
        return WEIR_OK;
    }
    p->range = calloc(strlen(text) + 1, sizeof *p->range);
    if (!p->range)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        if (!parse_range(at, n, p->range[p->n++]))
            return weir_fail(err, WEIR_E_ARG, "\"%s\" is none of all, last, -4:, 0:8, 3 and @FIELD", text);
        at += n;
        if (*at == 0)
            return WEIR_OK;
    }
}

void weir_positions_free(weir_positions *p)
{
    free(p->range);
    *p = (weir_positions){0};
}

static int64_t resolve(int64_t at, int64_t len)
{
    if (at < 0)
        at += len;
    return at < 0 ? 0 : at > len ? len : at;
}

weir_status weir_doc_fail(weir_err *err, const weir_doc *doc, const char *source, const char *fmt, ...)
{
    char what[400], place[sizeof err->file];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(place, sizeof place, doc->line ? "%s:%lld" : "%s", source, (long long)doc->line);
    weir_fail(err, WEIR_E_FORMAT, "%s", what);
    return weir_err_where(err, place, NULL, -1);
}

/* --- @FIELD */

typedef struct span_target {
    const weir_doc *doc;
    const char *source;
    const char *field;
    const weir_tokens *t;
    uint8_t *keep; /* of the first token of text on */
} span_target;

static weir_status field_fail(const span_target *s, weir_err *err, const char *fmt, ...) WEIR_PRINTF(3, 4);
static weir_status field_fail(const span_target *s, weir_err *err, const char *fmt, ...)
{
    char what[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return weir_doc_fail(err, s->doc, s->source, "field \"%s\" %s", s->field, what);
}

static weir_status keep_span(const span_target *s, int64_t begin, int64_t end, weir_err *err)
{
    int64_t len = (int64_t)s->doc->text.n;
    if (begin < 0 || end < begin || end > len)
        return field_fail(s, err, "says [%lld, %lld), but the text has %lld bytes", (long long)begin, (long long)end,
                          (long long)len);
    for (int64_t i = 0; i < s->t->n; i++) {
        int64_t a = s->t->byte_off[i], b = a + s->t->byte_len[i];
        if ((a > begin ? a : begin) < (b < end ? b : end))
            s->keep[i] = 1;
    }
    return WEIR_OK;
}

static weir_status keep_string(const span_target *s, weir_str what, weir_err *err)
{
    const char *text = s->doc->text.p, *end = text + s->doc->text.n;
    if (what.n == 0)
        return field_fail(s, err, "is an empty string");
    const char *first = memmem(text, s->doc->text.n, what.p, what.n);
    if (!first)
        return field_fail(s, err, "holds \"%.*s\", which the text lacks", what.n > 80 ? 80 : (int)what.n, what.p);
    if (memmem(first + 1, (size_t)(end - first - 1), what.p, what.n))
        return field_fail(s, err, "holds \"%.*s\", which the text has several times", what.n > 80 ? 80 : (int)what.n,
                          what.p);
    return keep_span(s, first - text, first - text + (int64_t)what.n, err);
}

/* The rest of [begin, end] behind its opening bracket. */
static void read_pair(weir_json *j, int64_t pair[2])
{
    int n = 0;
    do {
        int64_t v = weir_json_int(j);
        if (n < 2)
            pair[n] = v;
        n++;
    } while (weir_json_item(j));
    if (n != 2)
        weir_json_fail(j, "a span is [begin, end)");
}

/* [begin, end], or a list of such pairs. */
static weir_status keep_json(const span_target *s, weir_str raw, weir_err *err)
{
    weir_json j;
    weir_err inner = {0};
    weir_status status = WEIR_OK;
    weir_json_init(&j, raw.p, raw.n, NULL, &inner);
    if (weir_json_peek(&j) != WEIR_JSON_ARRAY)
        weir_json_fail(&j, "neither a span, a list of spans, nor a string");
    bool any = weir_json_array(&j) && weir_json_item(&j);
    if (any && weir_json_peek(&j) == WEIR_JSON_NUMBER) {
        int64_t pair[2] = {0};
        read_pair(&j, pair);
        status = j.status == WEIR_OK ? keep_span(s, pair[0], pair[1], err) : WEIR_OK;
        any = false;
    }
    while (any && status == WEIR_OK && j.status == WEIR_OK) {
        int64_t pair[2] = {0};
        if (weir_json_array(&j) && weir_json_item(&j))
            read_pair(&j, pair);
        else
            weir_json_fail(&j, "a span is [begin, end)");
        if (j.status == WEIR_OK)
            status = keep_span(s, pair[0], pair[1], err);
        any = weir_json_item(&j);
    }
    weir_status parsed = weir_json_done(&j);
    return parsed != WEIR_OK && status == WEIR_OK ? field_fail(s, err, "is no span: %s", inner.msg) : status;
}

static weir_status keep_field(const span_target *s, weir_err *err)
{
    for (int i = 0; i < s->doc->n_fields; i++) {
        const weir_field *f = &s->doc->fields[i];
        if (!weir_str_eq(f->name, s->field))
            continue;
        if (f->type == WEIR_FIELD_STRING)
            return keep_string(s, f->str, err);
        if (f->type == WEIR_FIELD_OTHER)
            return keep_json(s, f->str, err);
        return field_fail(s, err, "is neither a span, a list of spans, nor a string");
    }
    return field_fail(s, err, "is absent, and --positions @%s asks for it", s->field);
}

weir_status weir_positions_keep(const weir_positions *p, const weir_doc *doc, const char *source, const weir_tokens *t,
                                int64_t first_text, int64_t len, uint8_t *keep, weir_err *err)
{
    memset(keep, p->all, (size_t)len);
    if (p->field) {
        span_target s = {doc, source, p->field, t, keep + first_text};
        return keep_field(&s, err);
    }
    for (int i = 0; i < p->n; i++) {
        int64_t begin = resolve(p->range[i][0], len), end = resolve(p->range[i][1], len);
        for (int64_t r = begin; r < end; r++)
            keep[r] = 1;
    }
    return WEIR_OK;
}

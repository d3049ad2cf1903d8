#include "record.h"

#include <string.h>

#include <weir/json.h>

#include "../base/json_scan.h"

static void fail_nomem(weir_json *j)
{
    j->status = weir_nomem(j->err, "a record");
}

/* A string that outlives the JSON reader: in the line if it stands there as it is, else copied to the store, where the
 * caller made room for as many bytes as the line has, so that it does not move. */
static weir_str keep(weir_record *r, weir_json *j, weir_str s)
{
    uintptr_t p = (uintptr_t)s.p, line = (uintptr_t)j->text;
    if (j->status != WEIR_OK || (p >= line && p <= line + j->len))
        return s;
    size_t at = r->store.n;
    if (weir_buf_add(&r->store, s.p, s.n) != WEIR_OK) {
        fail_nomem(j);
        return (weir_str){"", 0};
    }
    return (weir_str){r->store.p + at, s.n};
}

/* An integer that int64 holds stays exact; every other number is a double. The reader stands at the number. */
static void read_number(weir_json *j, weir_field *f)
{
    const char *problem = NULL, *p = j->text + j->pos;
    bool integer, negative = *p == '-';
    uint64_t m;
    size_t n = weir_json_scan_number(p, j->len - j->pos, 0, &integer, &problem);
    if (integer && weir_json_digits(p + negative, n - negative, &m) && m <= (uint64_t)INT64_MAX + negative) {
        f->type = WEIR_FIELD_INT;
        f->i = weir_json_int(j);
    } else {
        f->type = WEIR_FIELD_FLOAT;
        f->f = weir_json_double(j);
    }
}

static void read_field(weir_record *r, weir_json *j, weir_str name)
{
    weir_field f = {.name = keep(r, j, name)};
    switch (weir_json_peek(j)) {
    case WEIR_JSON_NUMBER:
        read_number(j, &f);
        break;
    case WEIR_JSON_BOOL:
        f.type = WEIR_FIELD_BOOL;
        f.i = weir_json_bool(j);
        break;
    case WEIR_JSON_STRING:
        f.type = WEIR_FIELD_STRING;
        f.str = keep(r, j, weir_json_string(j));
        break;
    default:
        f.type = WEIR_FIELD_OTHER;
        f.str = weir_json_raw(j);
    }
    if (j->status == WEIR_OK && weir_buf_add(&r->fields, &f, sizeof f) != WEIR_OK)
        fail_nomem(j);
}

static void read_ids(weir_record *r, weir_json *j)
{
    weir_json_array(j);
    while (weir_json_item(j)) {
        uint64_t v = weir_json_uint(j);
        int32_t id = (int32_t)(v & INT32_MAX);
        if (v > INT32_MAX)
            weir_json_fail(j, "%llu is no token id", (unsigned long long)v);
        else if (j->status == WEIR_OK && weir_buf_add(&r->ids, &id, sizeof id) != WEIR_OK)
            fail_nomem(j);
    }
}

/* The value of the field that is asked for. */
static void read_content(weir_record *r, weir_json *j, const char *field, weir_record_kind kind)
{
    const bool ids = kind == WEIR_RECORD_IDS;
    if (kind == WEIR_RECORD_JSON)
        r->text = weir_json_raw(j);
    else if (weir_json_peek(j) != (ids ? WEIR_JSON_ARRAY : WEIR_JSON_STRING))
        weir_json_fail(j, "field \"%s\" is not %s", field, ids ? "a list of token ids" : "a string");
    else if (ids)
        read_ids(r, j);
    else
        r->text = keep(r, j, weir_json_string(j));
}

static void read_object(weir_record *r, weir_json *j, const char *field, weir_record_kind kind)
{
    weir_str key;
    bool found = false;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (!weir_str_eq(key, field)) {
            read_field(r, j, key);
            continue;
        }
        found = true;
        read_content(r, j, field, kind);
        if (j->status != WEIR_OK)
            return;
    }
    weir_json_end(j);
    if (!found)
        weir_json_fail(j, "the record has no field \"%s\": name the one that holds the %s with --field", field,
                       kind == WEIR_RECORD_IDS ? "ids" : kind == WEIR_RECORD_JSON ? "messages" : "text");
}

static void reset(weir_record *r)
{
    r->text = (weir_str){"", 0};
    r->ids.n = r->fields.n = r->store.n = 0;
}

weir_status weir_record_json(weir_record *r, weir_str line, const char *field, weir_record_kind kind, weir_err *err)
{
    reset(r);
    /* Decoded strings together are shorter than the line: with this room the store never moves. */
    if (weir_buf_reserve(&r->store, line.n) != WEIR_OK)
        return weir_nomem(err, "a record");
    weir_json j;
    weir_json_init(&j, line.p, line.n, NULL, err);
    if (j.status == WEIR_OK)
        read_object(r, &j, field, kind);
    return weir_json_done(&j);
}

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',';
}

weir_status weir_record_ids(weir_record *r, weir_str text, weir_err *err)
{
    reset(r);
    for (size_t i = 0; i < text.n;) {
        size_t from = i;
        uint64_t v;
        if (is_separator(text.p[i])) {
            i++;
            continue;
        }
        while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9')
            i++;
        bool ends = i == text.n || is_separator(text.p[i]);
        if (i == from || !ends || !weir_json_digits(text.p + from, i - from, &v) || v > INT32_MAX) {
            size_t shown = text.n - from > 20 ? 20 : text.n - from;
            weir_fail(err, WEIR_E_FORMAT, "\"%.*s\" is no token id", (int)shown, text.p + from);
            weir_err_where(err, NULL, NULL, (int64_t)from);
            return WEIR_E_FORMAT;
        }
        int32_t id = (int32_t)v;
        if (weir_buf_add(&r->ids, &id, sizeof id) != WEIR_OK)
            return weir_nomem(err, "token ids");
    }
    return WEIR_OK;
}

void weir_record_free(weir_record *r)
{
    weir_buf_free(&r->ids);
    weir_buf_free(&r->fields);
    weir_buf_free(&r->store);
    *r = (weir_record){0};
}

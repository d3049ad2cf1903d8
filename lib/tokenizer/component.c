/* component.c: the keys that the steps of a tokenizer.json can have, as a table. */
#include "component.h"

#include <stddef.h>
#include <string.h>

enum { MAX_SEQUENCES = 8 };
enum field_kind { TEXT, FLAG, NUMBER, RAW, PATTERN };

static const struct {
    const char *key;
    enum field_kind kind;
    size_t offset;
} fields[] = {
    {"type", TEXT, offsetof(weir_tok_component, type)},
    {"prepend", TEXT, offsetof(weir_tok_component, text)},
    {"content", TEXT, offsetof(weir_tok_component, text)},
    {"replacement", TEXT, offsetof(weir_tok_component, text)},
    {"prepend_scheme", TEXT, offsetof(weir_tok_component, scheme)},
    {"behavior", TEXT, offsetof(weir_tok_component, behavior)},
    {"pattern", PATTERN, 0},
    {"normalizers", RAW, offsetof(weir_tok_component, parts)},
    {"pretokenizers", RAW, offsetof(weir_tok_component, parts)},
    {"processors", RAW, offsetof(weir_tok_component, parts)},
    {"decoders", RAW, offsetof(weir_tok_component, parts)},
    {"single", RAW, offsetof(weir_tok_component, single)},
    {"add_prefix_space", FLAG, offsetof(weir_tok_component, add_prefix_space)},
    {"use_regex", FLAG, offsetof(weir_tok_component, use_regex)},
    {"individual_digits", FLAG, offsetof(weir_tok_component, individual_digits)},
    {"invert", FLAG, offsetof(weir_tok_component, invert)},
    {"split", FLAG, offsetof(weir_tok_component, split)},
    {"start", NUMBER, offsetof(weir_tok_component, start)},
    {"stop", NUMBER, offsetof(weir_tok_component, stop)},
};

void weir_tok_json_fail(weir_json *j, weir_status s)
{
    if (j->status != WEIR_OK || s == WEIR_OK)
        return;
    j->status = s;
    weir_err_where(j->err, j->file, NULL, (int64_t)j->pos);
}

weir_str weir_tok_json_string(weir_tokenizer *t, weir_json *j)
{
    weir_str none = {NULL, 0}, s = weir_json_string(j);
    if (j->status != WEIR_OK)
        return none;
    s = weir_tok_keep(t, s);
    if (!s.p)
        weir_tok_json_fail(j, weir_nomem(j->err, "the tokenizer"));
    return s;
}

static weir_str read_text(weir_tokenizer *t, weir_json *j)
{
    if (weir_json_peek(j) != WEIR_JSON_NULL)
        return weir_tok_json_string(t, j);
    weir_json_null(j);
    return (weir_str){NULL, 0};
}

/* {"String": s} or {"Regex": s} */
static void read_pattern(weir_tokenizer *t, weir_json *j, weir_tok_component *c)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "String"))
            c->pattern = read_text(t, j);
        else if (weir_str_eq(key, "Regex"))
            c->regex = read_text(t, j);
        else
            weir_json_skip(j);
    }
}

static void read_field(weir_tokenizer *t, weir_json *j, weir_str key, weir_tok_component *c)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!weir_str_eq(key, fields[i].key))
            continue;
        void *at = (char *)c + fields[i].offset;
        switch (fields[i].kind) {
        case TEXT:
            *(weir_str *)at = read_text(t, j);
            return;
        case FLAG:
            *(int *)at = weir_json_bool(j);
            return;
        case NUMBER:
            *(int64_t *)at = weir_json_int(j);
            return;
        case RAW:
            *(weir_str *)at = weir_json_raw(j);
            return;
        case PATTERN:
            read_pattern(t, j, c);
            return;
        }
    }
    weir_json_skip(j);
}

weir_status weir_tok_component_read(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, weir_tok_component *c,
                                    weir_err *err)
{
    *c = (weir_tok_component){
        .raw = raw, .add_prefix_space = -1, .use_regex = -1, .individual_digits = -1, .invert = -1, .split = -1};
    weir_json j;
    weir_str key;
    weir_tok_json_at(&j, src, raw, err);
    if (weir_json_peek(&j) == WEIR_JSON_NULL) {
        weir_json_null(&j);
    } else {
        weir_json_object(&j);
        while (weir_json_key(&j, &key))
            read_field(t, &j, key, c);
        if (!c->type.p)
            weir_json_fail(&j, "a step without \"type\"");
    }
    return weir_json_done(&j);
}

weir_status weir_tok_component_parts(weir_tokenizer *t, const weir_tok_source *src, const weir_tok_component *c,
                                     weir_tok_step *step, void *ctx, weir_err *err)
{
    if (!c->parts.p)
        return weir_tok_refuse(src, c, "a step", "without its list of steps", err);
    if (src->depth == MAX_SEQUENCES) /* each reads what it holds once more */
        return weir_tok_refuse(src, c, "a step", "within too many others is not supported", err);
    weir_tok_source inner = *src;
    inner.depth++;
    weir_json j;
    weir_status s = WEIR_OK;
    weir_tok_json_at(&j, src, c->parts, err);
    weir_json_array(&j);
    while (s == WEIR_OK && weir_json_item(&j)) {
        weir_str raw = weir_json_raw(&j);
        if (j.status == WEIR_OK)
            s = step(t, &inner, raw, ctx, err);
    }
    weir_status parsed = weir_json_done(&j);
    return s ? s : parsed;
}

weir_status weir_tok_refuse(const weir_tok_source *src, const weir_tok_component *c, const char *what, const char *why,
                            weir_err *err)
{
    int n = c->type.n < 60 ? (int)c->type.n : 60;
    weir_fail(err, WEIR_E_UNSUPPORTED, "%s \"%.*s\" %s", what, n, c->type.p ? c->type.p : "", why);
    weir_err_where(err, src->file, NULL, c->raw.p - src->text);
    return WEIR_E_UNSUPPORTED;
}

void weir_tok_json_at(weir_json *j, const weir_tok_source *src, weir_str raw, weir_err *err)
{
    size_t from = (size_t)(raw.p - src->text);
    weir_json_init(j, src->text, from + raw.n, src->file, err);
    j->pos = from;
}

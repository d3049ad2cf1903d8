#include "object.h"

#include <stdarg.h>
#include <string.h>

static weir_status fill(weir_object *o, weir_json *j, int64_t cap)
{
    weir_pair *pair = weir_arena_alloc(o->arena, (size_t)cap, sizeof *pair);
    if (!pair)
        return WEIR_E_NOMEM;
    o->pair = pair;
    weir_str key;
    weir_json_object(j);
    while (o->n < cap && weir_json_key(j, &key)) {
        char *copy = weir_arena_strndup(o->arena, key.p, key.n);
        if (!copy)
            return WEIR_E_NOMEM;
        pair[o->n].key = (weir_str){copy, key.n};
        pair[o->n++].raw = weir_json_raw(j);
    }
    return WEIR_OK;
}

/* Keys of the object that the reader stands at. */
static int64_t count_keys(weir_json *j)
{
    int64_t n = 0;
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        weir_json_skip(j);
        n++;
    }
    return n;
}

/* The object that begins at byte `at` of the text: counted first, then kept. whole: nothing may follow it. */
static weir_status read_at(weir_object *o, weir_arena *arena, weir_str text, size_t at, bool whole, const char *file,
                           weir_err *err)
{
    *o = (weir_object){.text = text, .file = file, .arena = arena};
    weir_json j;
    weir_json_init(&j, text.p, text.n, file, err);
    j.pos = at;
    int64_t n = count_keys(&j);
    if (whole)
        weir_json_end(&j);
    WEIR_TRY(weir_json_done(&j));
    weir_json_init(&j, text.p, text.n, file, err);
    j.pos = at;
    weir_status s = fill(o, &j, n + 1); /* one more, so that the object's end is read too */
    weir_status t = weir_json_done(&j);
    return s != WEIR_OK ? weir_nomem(err, "a JSON object") : t;
}

weir_status weir_object_read(weir_object *o, weir_arena *arena, weir_str text, const char *file, weir_err *err)
{
    return read_at(o, arena, text, 0, true, file, err);
}

weir_status weir_object_open(weir_object *o, weir_filemap *map, weir_arena *arena, const char *path, weir_err *err)
{
    WEIR_TRY(weir_filemap_open(map, path, err));
    const weir_str text = {(const char *)map->data, map->size};
    const weir_status s = weir_object_read(o, arena, text, path, err);
    if (s != WEIR_OK)
        weir_filemap_close(map);
    return s;
}

weir_status weir_object_enter(weir_object *o, const weir_object *parent, const weir_pair *p, weir_err *err)
{
    return read_at(o, parent->arena, parent->text, (size_t)(p->raw.p - parent->text.p), false, parent->file, err);
}

const weir_pair *weir_object_find(const weir_object *o, const char *key)
{
    for (int64_t i = 0; i < o->n; i++)
        if (weir_str_eq(o->pair[i].key, key))
            return &o->pair[i];
    return NULL;
}

const weir_pair *weir_object_value(const weir_object *o, const char *key)
{
    const weir_pair *p = weir_object_find(o, key);
    return p && !weir_pair_is_null(p) ? p : NULL;
}

bool weir_pair_is_null(const weir_pair *p)
{
    weir_json j = {.text = p->raw.p, .len = p->raw.n};
    return weir_json_peek(&j) == WEIR_JSON_NULL;
}

weir_status weir_pair_fail(const weir_object *o, const weir_pair *p, weir_err *err, weir_status code, const char *fmt,
                           ...)
{
    char msg[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    weir_fail(err, code, "%.64s: %s", p->key.p, msg);
    weir_err_where(err, o->file, NULL, p->raw.p - o->text.p);
    return code;
}

void weir_pair_reader(const weir_object *o, const weir_pair *p, weir_json *j, weir_err *local)
{
    *local = (weir_err){0};
    weir_json_init(j, o->text.p, o->text.n, NULL, local);
    j->pos = (size_t)(p->raw.p - o->text.p);
}

weir_status weir_pair_done(const weir_object *o, const weir_pair *p, weir_json *j, const weir_err *local, weir_err *err)
{
    weir_status s = weir_json_done(j);
    return s == WEIR_OK ? s : weir_pair_fail(o, p, err, s, "%s", local->msg);
}

weir_status weir_pair_int(const weir_object *o, const weir_pair *p, int64_t *out, weir_err *err)
{
    weir_json j;
    weir_err local;
    weir_pair_reader(o, p, &j, &local);
    *out = weir_json_int(&j);
    return weir_pair_done(o, p, &j, &local, err);
}

weir_status weir_pair_double(const weir_object *o, const weir_pair *p, double *out, weir_err *err)
{
    weir_json j;
    weir_err local;
    weir_pair_reader(o, p, &j, &local);
    *out = weir_json_double(&j);
    return weir_pair_done(o, p, &j, &local, err);
}

weir_status weir_pair_bool(const weir_object *o, const weir_pair *p, bool *out, weir_err *err)
{
    weir_json j;
    weir_err local;
    weir_pair_reader(o, p, &j, &local);
    *out = weir_json_bool(&j);
    return weir_pair_done(o, p, &j, &local, err);
}

weir_status weir_pair_string(const weir_object *o, const weir_pair *p, const char **out, weir_err *err)
{
    weir_json j;
    weir_err local;
    weir_pair_reader(o, p, &j, &local);
    weir_str s = weir_json_string(&j);
    char *copy = weir_arena_strndup(o->arena, s.p, s.n);
    WEIR_TRY(weir_pair_done(o, p, &j, &local, err));
    if (!copy)
        return weir_nomem(err, "a JSON object");
    *out = copy;
    return WEIR_OK;
}

weir_status weir_object_string(const weir_object *o, const char *key, const char **out, weir_err *err)
{
    const weir_pair *p = weir_object_value(o, key);
    return p ? weir_pair_string(o, p, out, err) : WEIR_OK;
}

/* Chat templates: where a model keeps its own, and conversations through it. */
#include <weir/chat.h>

#include <string.h>

#include "chat_impl.h"
#include "io/filemap.h"
#include "io/gguf.h"

enum { TEMPLATE_MOST = 1 << 20 };

struct weir_chat {
    weir_arena arena; /* of the tree and its strings */
    char *name;
    weir_chat_source src;
    weir_chat_node *first;
    const weir_tokenizer *tok;
    weir_buf out; /* the last text */
};

/* --- a template */

static weir_status read_text(weir_chat *c, const char *text, size_t n, const char *name)
{
    weir_chat_token *token;
    if (n > TEMPLATE_MOST)
        return weir_fail(c->src.err, WEIR_E_UNSUPPORTED, "the chat template has %zu bytes, more than %d", n,
                         TEMPLATE_MOST);
    c->name = weir_strndup(name, strlen(name));
    char *own = weir_arena_strndup(&c->arena, text, n);
    if (!c->name || !own)
        return weir_nomem(c->src.err, "a chat template");
    c->src.name = c->name;
    c->src.text = (weir_str){own, n};
    c->src.arena = &c->arena;
    WEIR_TRY(weir_chat_lex(&c->src, &token));
    weir_status st = weir_chat_parse(&c->src, token, &c->first);
    weir_free(token);
    return st;
}

weir_status weir_chat_new(weir_chat **out, const char *text, size_t n, const char *name, const weir_tokenizer *tok,
                          weir_err *err)
{
    *out = NULL;
    weir_chat *c = weir_calloc(1, sizeof *c);
    if (!c)
        return weir_nomem(err, "a chat template");
    c->tok = tok;
    c->src.err = err;
    weir_status st = read_text(c, text, n, name);
    c->src.err = NULL;
    if (st != WEIR_OK) {
        weir_chat_free(c);
        return st;
    }
    *out = c;
    return WEIR_OK;
}

void weir_chat_free(weir_chat *c)
{
    if (!c)
        return;
    weir_arena_free(&c->arena);
    weir_buf_free(&c->out);
    weir_free(c->name);
    weir_free(c);
}

/* --- where it is kept */

/* The template in tokenizer_config.json: a string, or a list of {"name", "template"}, of which "default" counts. Copied
 * into *text. */
static void read_named(weir_json *j, weir_buf *text, bool *found)
{
    weir_str key;
    weir_buf body = {0};
    bool is_default = false;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        bool name = weir_str_eq(key, "name"), template = weir_str_eq(key, "template");
        if (!name && !template) {
            weir_json_skip(j);
            continue;
        }
        weir_str s = weir_json_string(j);
        is_default = is_default || (name && weir_str_eq(s, "default"));
        if (template && weir_buf_add(&body, s.p, s.n) != WEIR_OK)
            weir_json_fail(j, "out of memory for the chat template");
    }
    if (is_default && body.n && weir_buf_add(text, body.p, body.n) != WEIR_OK)
        weir_json_fail(j, "out of memory for the chat template");
    *found = *found || is_default;
    weir_buf_free(&body);
}

static void read_template(weir_json *j, weir_buf *text, bool *found)
{
    switch (weir_json_peek(j)) {
    case WEIR_JSON_STRING: {
        weir_str s = weir_json_string(j);
        *found = true;
        if (weir_buf_add(text, s.p, s.n) != WEIR_OK)
            weir_json_fail(j, "out of memory for the chat template");
        return;
    }
    case WEIR_JSON_ARRAY:
        weir_json_array(j);
        while (weir_json_item(j))
            read_named(j, text, found);
        return;
    default:
        weir_json_skip(j);
    }
}

static weir_status read_config(const weir_filemap *map, weir_buf *text, bool *found, weir_err *err)
{
    weir_json j;
    weir_str key;
    weir_json_init(&j, map->data, map->size, map->path, err);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        if (weir_str_eq(key, "chat_template"))
            read_template(&j, text, found);
        else
            weir_json_skip(&j);
    }
    weir_json_end(&j);
    return weir_json_done(&j);
}

/* A file of the directory, if it is there, through `read`; *name: the file, of the caller (weir_free). */
static weir_status look_in(const char *dir, const char *file, bool json, weir_buf *text, bool *found, char **name,
                           weir_err *err)
{
    weir_filemap map = {0};
    char *path = weir_path_join(dir, file);
    if (!path)
        return weir_nomem(err, "a path");
    weir_status st = WEIR_OK;
    if (!*found && weir_path_is_file(path) && (st = weir_filemap_open(&map, path, err)) == WEIR_OK) {
        if (json)
            st = read_config(&map, text, found, err);
        else if (weir_buf_add(text, map.size ? (const char *)map.data : "", map.size) != WEIR_OK)
            st = weir_nomem(err, "a chat template");
        else
            *found = true;
        weir_filemap_close(&map);
    }
    if (*found && !*name)
        *name = path;
    else
        weir_free(path);
    return st;
}

static weir_status read_gguf(const char *path, weir_buf *text, bool *found, weir_err *err)
{
    weir_gguf g;
    weir_str s;
    WEIR_TRY(weir_gguf_open(&g, path, err));
    weir_status st = weir_gguf_str(&g, "tokenizer.chat_template", &s, found, err);
    if (st == WEIR_OK && *found && weir_buf_add(text, s.p, s.n) != WEIR_OK)
        st = weir_nomem(err, "a chat template");
    weir_gguf_close(&g);
    return st;
}

weir_status weir_chat_open(weir_chat **out, const char *path, const weir_tokenizer *tok, weir_err *err)
{
    weir_buf text = {0};
    char *name = NULL;
    bool found = false;
    *out = NULL;
    weir_status st;
    if (weir_path_is_dir(path)) {
        st = look_in(path, "chat_template.jinja", false, &text, &found, &name, err);
        if (st == WEIR_OK)
            st = look_in(path, "tokenizer_config.json", true, &text, &found, &name, err);
    } else {
        st = read_gguf(path, &text, &found, err);
    }
    if (st == WEIR_OK && !found) {
        weir_fail(err, WEIR_E_UNSUPPORTED, "this model has no chat template: it was not trained to answer messages");
        st = weir_err_where(err, path, NULL, -1);
    }
    if (st == WEIR_OK)
        st = weir_chat_new(out, text.n ? text.p : "", text.n, name ? name : path, tok, err);
    weir_buf_free(&text);
    weir_free(name);
    return st;
}

/* --- conversations */

/* The messages, as the template sees them. */
static weir_status put_globals(weir_chat *c, weir_chat_run *r, weir_chat_value messages, bool generation)
{
    const weir_chat_value none = {.type = WEIR_CHAT_NONE};
    const weir_tokenizer *t = c->tok;
    WEIR_TRY(weir_chat_set(r, (weir_str){"messages", 8}, messages));
    WEIR_TRY(weir_chat_set(r, (weir_str){"add_generation_prompt", 21}, weir_chat_bool(generation)));
    WEIR_TRY(weir_chat_set(r, (weir_str){"tools", 5}, none));
    WEIR_TRY(weir_chat_set(r, (weir_str){"documents", 9}, none));
    if (t && weir_tokenizer_bos(t) >= 0)
        WEIR_TRY(weir_chat_set(r, (weir_str){"bos_token", 9},
                               weir_chat_str(weir_tokenizer_piece(t, weir_tokenizer_bos(t)))));
    if (t && weir_tokenizer_eos(t) >= 0)
        WEIR_TRY(weir_chat_set(r, (weir_str){"eos_token", 9},
                               weir_chat_str(weir_tokenizer_piece(t, weir_tokenizer_eos(t)))));
    return WEIR_OK;
}

/* Renders into c->out. */
static weir_status render(weir_chat *c, weir_arena *arena, weir_chat_value messages, bool generation, weir_err *err)
{
    weir_chat_run r = {.src = &c->src, .arena = arena, .out = &c->out};
    c->src.err = err;
    c->out.n = 0;
    weir_status st = put_globals(c, &r, messages, generation);
    if (st == WEIR_OK)
        st = weir_chat_walk(&r, c->first);
    c->src.err = NULL;
    weir_free(r.var);
    return st;
}

static weir_status push_turn(weir_arena *a, weir_chat_value *messages, const char *role, weir_str content,
                             weir_err *err)
{
    weir_chat_value m = weir_chat_map(a);
    bool ok = m.items && weir_chat_put(a, &m, (weir_str){"role", 4}, weir_chat_str((weir_str){role, strlen(role)})) &&
              weir_chat_put(a, &m, (weir_str){"content", 7}, weir_chat_str(content)) && weir_chat_push(a, messages, m);
    return ok ? WEIR_OK : weir_nomem(err, "a conversation");
}

weir_status weir_chat_render(weir_chat *c, const weir_turn *turn, int64_t n, bool generation, weir_str *text,
                             weir_err *err)
{
    weir_arena arena = {0};
    weir_chat_value messages = weir_chat_array(&arena);
    weir_status st = messages.items ? WEIR_OK : weir_nomem(err, "a conversation");
    for (int64_t i = 0; st == WEIR_OK && i < n; i++)
        st = push_turn(&arena, &messages, turn[i].role, turn[i].content, err);
    if (st == WEIR_OK)
        st = render(c, &arena, messages, generation, err);
    weir_arena_free(&arena);
    *text = (weir_str){c->out.n ? c->out.p : "", st == WEIR_OK ? c->out.n : 0};
    return st;
}

/* The last text's tokens. A BOS that the template begins with is one like those that documents get. */
static weir_status encode(const weir_chat *c, weir_tokens *out, weir_err *err)
{
    if (!c->tok)
        return weir_fail(err, WEIR_E_ARG, "this chat was made without a tokenizer");
    WEIR_TRY(weir_tokenizer_encode(c->tok, c->out.n ? c->out.p : "", c->out.n, out, err));
    if (out->n && out->id[0] == weir_tokenizer_bos(c->tok))
        out->flags[0] |= WEIR_TOKEN_BOS;
    return WEIR_OK;
}

weir_status weir_chat_encode(weir_chat *c, const weir_turn *turn, int64_t n, bool generation, weir_tokens *out,
                             weir_err *err)
{
    weir_str text;
    WEIR_TRY(weir_chat_render(c, turn, n, generation, &text, err));
    return encode(c, out, err);
}

/* --- documents */

static weir_chat_value read_value(weir_json *j, weir_arena *a);

static void no_room(weir_json *j)
{
    if (j->status == WEIR_OK)
        j->status = weir_nomem(j->err, "a conversation");
}

static weir_chat_value read_string(weir_json *j, weir_arena *a)
{
    weir_str s = weir_json_string(j);
    char *p = weir_arena_strndup(a, s.n ? s.p : "", s.n);
    if (!p)
        no_room(j);
    return weir_chat_str((weir_str){p, p ? s.n : 0});
}

static weir_chat_value read_container(weir_json *j, weir_arena *a, bool map)
{
    weir_chat_value out = map ? weir_chat_map(a) : weir_chat_array(a);
    weir_str key;
    bool ok = out.items && (map ? weir_json_object(j) : weir_json_array(j));
    while (ok && (map ? weir_json_key(j, &key) : weir_json_item(j))) {
        weir_str own = {map ? weir_arena_strndup(a, key.n ? key.p : "", key.n) : "", map ? key.n : 0};
        weir_chat_value v = read_value(j, a);
        ok = own.p && (map ? weir_chat_put(a, &out, own, v) : weir_chat_push(a, &out, v));
    }
    if (!ok)
        no_room(j);
    return out;
}

static weir_chat_value read_value(weir_json *j, weir_arena *a)
{
    switch (weir_json_peek(j)) {
    case WEIR_JSON_STRING:
        return read_string(j, a);
    case WEIR_JSON_NUMBER:
        return weir_chat_int(weir_json_int(j));
    case WEIR_JSON_BOOL:
        return weir_chat_bool(weir_json_bool(j));
    case WEIR_JSON_ARRAY:
    case WEIR_JSON_OBJECT:
        return read_container(j, a, weir_json_peek(j) == WEIR_JSON_OBJECT);
    default:
        weir_json_null(j);
        return (weir_chat_value){.type = WEIR_CHAT_NONE};
    }
}

/* Is this a list of messages, each with a role? */
static weir_status check_messages(const weir_chat_value *list, weir_err *err)
{
    for (int64_t i = 0; i < list->items->n; i++) {
        const weir_chat_value *m = &list->items->v[i];
        const weir_chat_value *role = m->type == WEIR_CHAT_MAP ? weir_chat_get(m, (weir_str){"role", 4}) : NULL;
        if (!role || role->type != WEIR_CHAT_STR)
            return weir_fail(err, WEIR_E_FORMAT, "message %lld is no object with a \"role\"", (long long)i);
    }
    return WEIR_OK;
}

/* Appends the messages of a JSON document; *system: one of them is the system's. */
static weir_status read_messages(weir_arena *a, weir_str doc, weir_chat_value *messages, const char *system,
                                 weir_err *err)
{
    weir_json j;
    weir_json_init(&j, doc.p, doc.n, NULL, err);
    weir_chat_value v = read_value(&j, a);
    weir_json_end(&j);
    WEIR_TRY(weir_json_done(&j));
    if (v.type != WEIR_CHAT_STR && v.type != WEIR_CHAT_ARRAY)
        return weir_fail(err, WEIR_E_FORMAT, "a conversation is a string or a list of messages, not %s",
                         weir_chat_type_word[v.type]);
    if (v.type == WEIR_CHAT_ARRAY)
        WEIR_TRY(check_messages(&v, err));
    const weir_chat_value *first =
        v.type == WEIR_CHAT_ARRAY && v.items->n ? weir_chat_get(&v.items->v[0], (weir_str){"role", 4}) : NULL;
    if (system && !(first && weir_str_eq(first->s, "system")))
        WEIR_TRY(push_turn(a, messages, "system", (weir_str){system, strlen(system)}, err));
    if (v.type == WEIR_CHAT_STR)
        return push_turn(a, messages, "user", v.s, err);
    for (int64_t i = 0; i < v.items->n; i++)
        if (!weir_chat_push(a, messages, v.items->v[i]))
            return weir_nomem(err, "a conversation");
    return WEIR_OK;
}

static weir_status read_doc(weir_arena *a, weir_str doc, bool json, const char *system, weir_chat_value *messages,
                            weir_err *err)
{
    *messages = weir_chat_array(a);
    if (!messages->items)
        return weir_nomem(err, "a conversation");
    if (json)
        return read_messages(a, doc, messages, system, err);
    if (system)
        WEIR_TRY(push_turn(a, messages, "system", (weir_str){system, strlen(system)}, err));
    return push_turn(a, messages, "user", doc, err);
}

weir_status weir_chat_encode_doc(weir_chat *c, weir_str doc, bool json, const char *system, weir_tokens *out,
                                 weir_err *err)
{
    weir_arena arena = {0};
    weir_chat_value messages;
    weir_status st = read_doc(&arena, doc, json, system, &messages, err);
    if (st == WEIR_OK)
        st = render(c, &arena, messages, true, err);
    weir_arena_free(&arena);
    return st == WEIR_OK ? encode(c, out, err) : st;
}

#include "value.h"

#include <stdlib.h>
#include <string.h>

#include "cli/opt.h"
#include "cli/printable.h"

const char *weir_nb_type_words(weir_nb_type type)
{
    static const char *const words[] = {"None", "True or False", "a whole number", "a number", "a text", "a list"};
    return words[type];
}

void weir_nb_value_free(weir_nb_value *v)
{
    for (int64_t i = 0; v->item && i < v->n; i++)
        weir_nb_value_free(&v->item[i]);
    free(v->item);
    free(v->ints);
    free(v->text);
    *v = (weir_nb_value){0};
}

weir_status weir_nb_value_of_text(weir_nb_value *v, const char *text, weir_err *err)
{
    *v = (weir_nb_value){.type = WEIR_NB_TEXT, .text = strdup(text)};
    return v->text ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

/* --- reading: JSON */

static void read_number(weir_nb_value *v, weir_json *j)
{
    char text[64];
    const weir_str raw = weir_json_raw(j);
    snprintf(text, sizeof text, "%.*s", raw.n < sizeof text ? (int)raw.n : 0, raw.p);
    v->type = strpbrk(text, ".eE") ? WEIR_NB_REAL : WEIR_NB_INT;
    const bool ok = weir_parse_real(text, &v->r) && (v->type == WEIR_NB_REAL || weir_parse_int(text, &v->i));
    if (!ok)
        weir_json_fail(j, "%.*s is no number that can be taken", (int)(raw.n < 40 ? raw.n : 40), raw.p);
}

static void read_text(weir_nb_value *v, weir_json *j)
{
    const weir_str s = weir_json_string(j);
    v->type = WEIR_NB_TEXT;
    if (s.n && memchr(s.p, 0, s.n))
        weir_json_fail(j, "a text with a NUL in it");
    v->text = strndup(s.n ? s.p : "", s.n);
    if (!v->text)
        weir_json_fail(j, "out of memory");
}

/* A value that is no list. */
static void read_one(weir_nb_value *v, weir_json *j)
{
    switch (weir_json_peek(j)) {
    case WEIR_JSON_NUMBER:
        read_number(v, j);
        break;
    case WEIR_JSON_STRING:
        read_text(v, j);
        break;
    default:
        weir_json_fail(j, "is no value: a number, a text in double quotes, or a list of these in brackets");
    }
}

static void read_list(weir_nb_value *v, weir_json *j)
{
    v->type = WEIR_NB_LIST;
    weir_json_array(j);
    while (weir_json_item(j)) {
        weir_nb_value *grown = realloc(v->item, ((size_t)v->n + 1) * sizeof *grown);
        if (!grown) {
            weir_json_fail(j, "out of memory");
            return;
        }
        v->item = grown;
        v->item[v->n] = (weir_nb_value){0};
        read_one(&v->item[v->n++], j);
    }
}

static weir_status note_ints(weir_nb_value *v, weir_err *err)
{
    for (int64_t i = 0; i < v->n; i++)
        if (v->item[i].type != WEIR_NB_INT)
            return WEIR_OK;
    if (v->n == 0)
        return WEIR_OK;
    v->ints = malloc((size_t)v->n * sizeof *v->ints);
    if (!v->ints)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    for (int64_t i = 0; i < v->n; i++)
        v->ints[i] = v->item[i].i;
    return WEIR_OK;
}

static weir_status read_json(weir_nb_value *v, const char *text, size_t *used, weir_err *err)
{
    weir_json j;
    *v = (weir_nb_value){0};
    weir_json_init(&j, text, strlen(text), NULL, err);
    if (weir_json_peek(&j) == WEIR_JSON_ARRAY)
        read_list(v, &j);
    else
        read_one(v, &j);
    *used = j.pos;
    weir_status status = weir_json_done(&j);
    if (status == WEIR_OK)
        status = note_ints(v, err);
    if (status != WEIR_OK)
        weir_nb_value_free(v);
    return status;
}

/* --- reading: Python's words */

static bool read_word(weir_nb_value *v, const char *text, size_t *used)
{
    static const weir_nb_value value[] = {
        {.type = WEIR_NB_NONE}, {.type = WEIR_NB_BOOL, .yes = true}, {.type = WEIR_NB_BOOL}};
    static const char *const word[] = {"None", "True", "False"};
    for (int i = 0; i < 3; i++) {
        *used = strlen(word[i]);
        if (strncmp(text, word[i], *used) == 0 && (!text[*used] || strchr(" #", text[*used]))) {
            *v = value[i];
            return true;
        }
    }
    return false;
}

weir_status weir_nb_value_read(weir_nb_value *v, const char *text, size_t *used, weir_err *err)
{
    return read_word(v, text, used) ? WEIR_OK : read_json(v, text, used, err);
}

/* --- what a user typed */

/* The whole of it as a value; no error: it is none. */
static bool is_value(weir_nb_value *v, const char *typed)
{
    size_t used;
    if (weir_nb_value_read(v, typed, &used, NULL) == WEIR_OK && !typed[used])
        return true;
    weir_nb_value_free(v);
    return false;
}

static bool is_list(weir_nb_value *v, const char *typed)
{
    char *text = NULL;
    if (is_value(v, typed) && v->type == WEIR_NB_LIST)
        return true;
    weir_nb_value_free(v);
    if (asprintf(&text, "[%s]", typed) < 0)
        return false;
    const bool is = is_value(v, text) && v->type == WEIR_NB_LIST;
    free(text);
    return is;
}

static bool same_items(const weir_nb_value *v, const weir_nb_value *was)
{
    const weir_nb_type type = was->n ? was->item[0].type : WEIR_NB_NONE;
    for (int64_t i = 0; was->n && i < v->n; i++)
        if (v->item[i].type != type && !(type == WEIR_NB_REAL && v->item[i].type == WEIR_NB_INT))
            return false;
    return true;
}

weir_status weir_nb_value_typed(weir_nb_value *v, const weir_nb_value *was, const char *typed, weir_err *err)
{
    const weir_nb_type type = was->type;
    const bool value = type == WEIR_NB_LIST ? is_list(v, typed) || is_value(v, typed) : is_value(v, typed);
    if (value && (v->type == WEIR_NB_NONE || type == WEIR_NB_NONE))
        return WEIR_OK;
    if (value && v->type == type && (type != WEIR_NB_LIST || same_items(v, was)))
        return WEIR_OK;
    if (value && type == WEIR_NB_REAL && v->type == WEIR_NB_INT) {
        v->type = WEIR_NB_REAL;
        return WEIR_OK;
    }
    weir_nb_value_free(v);
    if (type == WEIR_NB_TEXT || type == WEIR_NB_NONE)
        return weir_nb_value_of_text(v, typed, err);
    if (type == WEIR_NB_LIST && was->n)
        return weir_fail(err, WEIR_E_ARG, "must be a list, each of it %s", weir_nb_type_words(was->item[0].type));
    return weir_fail(err, WEIR_E_ARG, "must be %s", weir_nb_type_words(type));
}

/* --- writing */

static void put_escape(FILE *out, uint32_t cp)
{
    fprintf(out, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
}

void weir_nb_put_python(FILE *out, const char *text)
{
    static const char from[] = "\"\\\n\r\t", to[] = "\"\\nrt";
    size_t n = strlen(text);
    fputc('"', out);
    while (n) {
        uint32_t cp = 0;
        int len = weir_utf8_at(text, n, &cp);
        const char *at = strchr(from, *text);
        if (len == 0)
            fprintf(out, "\\udc%02x", (uint8_t)*text);
        else if (at)
            fprintf(out, "\\%c", to[at - from]);
        else if (weir_unprintable(cp))
            put_escape(out, cp);
        else
            fwrite(text, 1, (size_t)len, out);
        len = len ? len : 1;
        text += len;
        n -= (size_t)len;
    }
    fputc('"', out);
}

static void put_real(FILE *out, double r)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_real(&w, r);
}

void weir_nb_value_python(const weir_nb_value *v, FILE *out)
{
    switch (v->type) {
    case WEIR_NB_NONE:
        fputs("None", out);
        break;
    case WEIR_NB_BOOL:
        fputs(v->yes ? "True" : "False", out);
        break;
    case WEIR_NB_INT:
        fprintf(out, "%lld", (long long)v->i);
        break;
    case WEIR_NB_REAL:
        put_real(out, v->r);
        break;
    case WEIR_NB_TEXT:
        weir_nb_put_python(out, v->text);
        break;
    case WEIR_NB_LIST:
        fputc('[', out);
        for (int64_t i = 0; i < v->n; i++) {
            fputs(i ? ", " : "", out);
            weir_nb_value_python(&v->item[i], out);
        }
        fputc(']', out);
        break;
    }
}

/* The JSON reader: skipping a text and reading it value by value must agree, and what was read can be written and read
 * again. */
#include <weir/json.h>

#include "driver.h"

#define WRITER_DEPTH 60

static void copy_value(weir_json *j, weir_jsonw *w);

static void copy_object(weir_json *j, weir_jsonw *w)
{
    weir_str key;
    weir_json_object(j);
    weir_jsonw_object(w);
    while (weir_json_key(j, &key)) {
        char *z = strndup(key.p, key.n);
        if (!z)
            abort();
        weir_jsonw_key(w, z);
        free(z);
        copy_value(j, w);
    }
    weir_jsonw_end(w);
}

static void copy_array(weir_json *j, weir_jsonw *w)
{
    weir_json_array(j);
    weir_jsonw_array(w);
    while (weir_json_item(j))
        copy_value(j, w);
    weir_jsonw_end(w);
}

static void copy_value(weir_json *j, weir_jsonw *w)
{
    weir_json_type type = weir_json_peek(j);
    weir_str s;
    if (w->depth == WRITER_DEPTH)
        weir_json_fail(j, "deeper than the writer goes");
    switch (type) {
    case WEIR_JSON_OBJECT:
        copy_object(j, w);
        break;
    case WEIR_JSON_ARRAY:
        copy_array(j, w);
        break;
    case WEIR_JSON_STRING:
        s = weir_json_string(j);
        weir_jsonw_str(w, s.p, s.n);
        break;
    case WEIR_JSON_NUMBER:
        weir_jsonw_double(w, weir_json_double(j));
        break;
    case WEIR_JSON_BOOL:
        weir_jsonw_bool(w, weir_json_bool(j));
        break;
    default:
        weir_json_null(j);
        weir_jsonw_null(w);
    }
}

static weir_status skip_all(const void *text, size_t n, weir_err *err)
{
    weir_json j;
    weir_json_init(&j, text, n, NULL, err);
    weir_str raw = weir_json_raw(&j);
    PROMISE(raw.n <= n);
    weir_json_end(&j);
    return weir_json_done(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_err skipped = {0}, copied = {0};
    promise_error(skip_all(data, size, &skipped), &skipped);
    PROMISE(skipped.offset <= (int64_t)size);
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    weir_json j;
    weir_jsonw w;
    weir_json_init(&j, data, size, NULL, &copied);
    weir_jsonw_init(&w, f);
    copy_value(&j, &w);
    weir_json_end(&j);
    weir_status s = weir_json_done(&j);
    promise_error(s, &copied);
    fclose(f);
    /* Reading is stricter in two things only: numbers beyond a double, and the writer's depth. */
    if (s == WEIR_OK)
        PROMISE(skipped.code == WEIR_OK);
    else if (skipped.code == WEIR_OK)
        PROMISE(strstr(copied.msg, "too large") || strstr(copied.msg, "deeper"));
    weir_err again = {0};
    if (s == WEIR_OK && !memmem(data, size, "\\u0000", 6)) /* a key with NUL is cut above, and may then come twice */
        PROMISE(skip_all(text, n, &again) == WEIR_OK);
    free(text);
    return 0;
}

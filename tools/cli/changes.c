#include "changes.h"

#include <stdlib.h>
#include <string.h>

/* "kind what=value" of one object: its keys stand in this order, and each string lasts only until the next one. */
static void put_change(weir_json *j, FILE *out)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        const bool kind = weir_str_eq(key, "kind"), value = weir_str_eq(key, "value");
        const bool what = weir_str_eq(key, "selector") || weir_str_eq(key, "args") || weir_str_eq(key, "dir");
        if (weir_json_peek(j) != WEIR_JSON_STRING || !(kind || what || value)) {
            weir_json_skip(j);
            continue;
        }
        const weir_str text = weir_json_string(j);
        fprintf(out, "%s%.*s", kind ? "" : what ? " " : "=", (int)text.n, text.p);
    }
}

char *weir_changes_words(const char *json)
{
    char *text = NULL;
    size_t size;
    weir_json j;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    weir_json_init(&j, json, strlen(json), NULL, NULL);
    weir_json_array(&j);
    for (int n = 0; weir_json_item(&j); n++) {
        fputs(n ? "; " : "", out);
        put_change(&j, out);
    }
    const bool ours = weir_json_done(&j) == WEIR_OK;
    if (fclose(out) == 0 && ours)
        return text;
    free(text);
    return strdup(json);
}
